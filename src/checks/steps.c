/*
 * Steps and their commands.
 */
#include "checks/steps.h"

#include <string.h>

enum { MAX_ARGUMENTS = 8 };

static struct nd_step step_with(struct arena *arena, const struct nd_result *result,
                                const char *id, const char *option, const char *value)
{
    const char *words[] = {"normdiff", result->dump[0].path, result->dump[1].path, option,
                           value};
    const char **argv = nd_arena_alloc(arena, MAX_ARGUMENTS, sizeof *argv);
    struct nd_step step = {.id = id, .status = ND_STEP_OPEN};

    if (argv == NULL)
        return step;
    for (size_t i = 0; i < sizeof words / sizeof *words && words[i] != NULL; i++)
        argv[step.argc++] = words[i];
    step.argv = argv;
    return step;
}

static struct nd_step step_randomness(struct arena *arena, const struct nd_result *result)
{
    struct nd_step step =
        step_with(arena, result, "randomness", "--rerun-candidate", "SECOND_CANDIDATE_RUN");

    step.evidence = nd_phrase_plain("step.randomness.open");
    return step;
}

static bool is_single(const struct nd_dump_info *dump)
{
    return dump->dtype != NULL &&
           (strcmp(dump->dtype, "float32") == 0 || strcmp(dump->dtype, "float64") == 0);
}

/* Half precision in disguise: most of a side's wide outputs lie on a narrower grid. */
static bool is_disguised(const struct diagnosis_input *input,
                         const struct layer_facts *facts)
{
    size_t narrow = 0, all = 0;

    for (size_t i = 0; i < input->result->layer_count; i++) {
        if (facts[i].out.count == 0 || facts[i].out.n < 16)
            continue;
        all++;
        narrow += facts[i].grid[0] <= GRID_F16 || facts[i].grid[1] <= GRID_F16;
    }
    return all > 0 && narrow * 2 > all;
}

static struct nd_step step_fp32(struct arena *arena, const struct diagnosis_input *input,
                                const struct layer_facts *facts)
{
    const struct nd_result *result = input->result;
    const bool single = is_single(&result->dump[0]) && is_single(&result->dump[1]);

    if (single && !is_disguised(input, facts))
        return (struct nd_step){.id = "fp32",
                                .status = ND_STEP_DONE,
                                .evidence = nd_phrase_plain("step.fp32.done")};
    const bool candidate = !is_single(&result->dump[1]) || single;
    struct nd_step step = step_with(
        arena, result, "fp32", candidate ? "--fp32-candidate" : "--fp32-reference",
        candidate ? "CANDIDATE_RUN_IN_FLOAT32" : "REFERENCE_RUN_IN_FLOAT32");
    step.evidence = nd_phrase_plain(single ? "step.fp32.disguised" : "step.fp32.open");
    return step;
}

static struct nd_step step_layers(struct arena *arena, const struct nd_result *result)
{
    return (struct nd_step){
        .id = "layers",
        .status = ND_STEP_DONE,
        .evidence = ND_PHRASE(arena, "step.layers.done",
                              ND_NUMBER("layers", (double)result->layer_count))};
}

static struct nd_step step_norm(struct arena *arena, const struct subject *subject)
{
    if (subject == NULL)
        return (struct nd_step){.id = "norm",
                                .status = ND_STEP_DONE,
                                .evidence = nd_phrase_plain("step.norm.nothing")};
    if (subject->norm == NULL)
        return (struct nd_step){.id = "norm",
                                .status = ND_STEP_DONE,
                                .evidence =
                                    ND_PHRASE(arena, "step.norm.other",
                                              ND_WORD("layer", subject->layer->name),
                                              ND_WORD("type", subject->layer->type))};
    return (struct nd_step){
        .id = "norm",
        .status = subject->is_trusted ? ND_STEP_DONE : ND_STEP_OPEN,
        .evidence =
            ND_PHRASE(arena, subject->is_trusted ? "step.norm.done" : "step.norm.open",
                      ND_WORD("layer", subject->layer->name))};
}

enum nd_status nd_steps_make(const struct diagnosis_input *input,
                             const struct subject *subject, const struct layer_facts *facts,
                             struct arena *arena, struct diagnosis *ret,
                             struct nd_error *err)
{
    struct nd_step *steps = nd_arena_alloc(arena, 4, sizeof *steps);

    if (steps == NULL)
        return nd_fail_memory(err);
    steps[0] = step_randomness(arena, input->result);
    steps[1] = step_fp32(arena, input, facts);
    steps[2] = step_layers(arena, input->result);
    steps[3] = step_norm(arena, subject);
    ret->steps = steps;
    ret->step_count = 4;
    return ND_OK;
}
