/*
 * Steps and their commands.
 */
#include "checks/steps.h"

#include <string.h>

/* A path that could be taken for an option. */
static const char *operand(struct arena *arena, const char *path)
{
    return path[0] == '-' && path[1] != '\0' ? nd_arena_format(arena, "./%s", path) : path;
}

/* The command that compares two dumps as these were compared; a further dump may be added
 * in place of one that was given. */
static void step_command(struct arena *arena, const struct diagnosis_input *input,
                         const char *const *paths, const char *option, const char *value,
                         struct nd_step *step)
{
    const char **argv = nd_arena_alloc(
        arena, input->given_count + input->given_dump_count + 5, sizeof *argv);

    if (argv == NULL)
        return;
    argv[step->argc++] = "normdiff";
    for (size_t i = 0; i < input->given_count; i++)
        argv[step->argc++] = input->given[i];
    for (int side = 0; side < 2; side++)
        argv[step->argc++] = operand(arena, paths[side]);
    for (size_t i = 0; option != NULL && i + 1 < input->given_dump_count; i += 2)
        if (strcmp(input->given_dumps[i], option) != 0) {
            argv[step->argc++] = input->given_dumps[i];
            argv[step->argc++] = input->given_dumps[i + 1];
        }
    if (option != NULL) {
        argv[step->argc++] = option;
        argv[step->argc++] = value;
    }
    step->argv = argv;
}

static struct nd_step step_with(struct arena *arena, const struct diagnosis_input *input,
                                const char *id, const char *option, const char *value)
{
    const char *const paths[] = {input->result->dump[0].path, input->result->dump[1].path};
    struct nd_step step = {.id = id, .status = ND_STEP_OPEN};

    step_command(arena, input, paths, option, value, &step);
    return step;
}

/* The first layer that a side's second run did not repeat; NULL: none that is known. */
static const char *rerun_first(const struct diagnosis_input *input,
                               const struct side_evidence *rerun)
{
    for (size_t i = 0; rerun->drift != NULL && i < input->result->layer_count; i++)
        if (rerun->drift[i] > 0)
            return input->result->layers[i].name;
    return NULL;
}

static bool is_repeated(const struct side_evidence *rerun)
{
    return rerun->compared > 0 && rerun->bit_equal;
}

/* The side whose reruns have something to say: one that did not repeat itself first. */
static int rerun_side(const struct side_evidence *rerun)
{
    if (rerun[1].given && !is_repeated(&rerun[1]))
        return 1;
    if (rerun[0].given && !is_repeated(&rerun[0]))
        return 0;
    return rerun[1].given || !rerun[0].given;
}

static struct nd_phrase rerun_differs(struct arena *arena,
                                      const struct diagnosis_input *input, int side)
{
    const struct side_evidence *rerun = &input->rerun[side];
    const char *first = rerun_first(input, rerun);

    if (rerun->compared == 0)
        return ND_PHRASE(arena, "step.randomness.nothing", ND_NUMBER("is_candidate", side));
    if (first == NULL)
        return ND_PHRASE(arena, "step.randomness.bits", ND_NUMBER("is_candidate", side));
    return ND_PHRASE(arena, "step.randomness.differs", ND_NUMBER("is_candidate", side),
                     ND_NUMBER("drift", rerun->worst), ND_WORD("layer", first));
}

/*
 * Reruns that are not bit-equal leave the step open: as long as a side does not repeat
 * itself, its drift cannot be told from its noise.
 */
static struct nd_step step_randomness(struct arena *arena,
                                      const struct diagnosis_input *input)
{
    const struct side_evidence *rerun = input->rerun;
    const int side = rerun_side(rerun);

    if (rerun[side].given && is_repeated(&rerun[side]))
        return (struct nd_step){
            .id = "randomness",
            .status = ND_STEP_DONE,
            .evidence = ND_PHRASE(arena,
                                  rerun[0].given && rerun[1].given ? "step.randomness.both"
                                                                   : "step.randomness.done",
                                  ND_NUMBER("is_candidate", side),
                                  ND_NUMBER("layers", (double)rerun[side].compared))};
    struct nd_step step =
        step_with(arena, input, "randomness",
                  side == 1 ? "--rerun-candidate" : "--rerun-reference",
                  side == 1 ? "SECOND_CANDIDATE_RUN" : "SECOND_REFERENCE_RUN");
    step.evidence = rerun[side].given ? rerun_differs(arena, input, side)
                                      : nd_phrase_plain("step.randomness.open");
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

/* What the float32 runs said about each other. */
static struct nd_step step_fp32_given(struct arena *arena,
                                      const struct diagnosis_input *input)
{
    const struct side_evidence *fp32 = &input->fp32;
    struct nd_step step = {.id = "fp32", .status = ND_STEP_DONE};

    if (fp32->over == 0) {
        step.evidence = ND_PHRASE(arena, "step.fp32.agrees",
                                  ND_NUMBER("layers", (double)fp32->compared),
                                  ND_NUMBER("drift", fp32->worst));
        return step;
    }
    /* Next: locate it in float32, where no rounding hides it. */
    step.status = ND_STEP_FAILED;
    if (input->fp32_path[0] != NULL && input->fp32_path[1] != NULL)
        step_command(arena, input, input->fp32_path, NULL, NULL, &step);
    step.evidence =
        ND_PHRASE(arena, "step.fp32.diverges", ND_NUMBER("layers", (double)fp32->over),
                  ND_NUMBER("drift", fp32->worst), ND_WORD("layer", fp32->first_over));
    return step;
}

static struct nd_step step_fp32(struct arena *arena, const struct diagnosis_input *input,
                                const struct layer_facts *facts)
{
    const struct nd_result *result = input->result;
    if (input->fp32.given && input->fp32.compared > 0)
        return step_fp32_given(arena, input);
    const bool single = is_single(&result->dump[0]) && is_single(&result->dump[1]);

    if (single && !is_disguised(input, facts)) {
        const bool same = strcmp(result->dump[0].dtype, result->dump[1].dtype) == 0;
        const bool wide = strcmp(result->dump[0].dtype, "float32") != 0;
        const char *id = !same  ? "step.fp32.wider"
                         : wide ? "step.fp32.double"
                                : "step.fp32.done";
        return (struct nd_step){
            .id = "fp32", .status = ND_STEP_DONE, .evidence = nd_phrase_plain(id)};
    }
    const bool candidate = !is_single(&result->dump[1]) || single;
    struct nd_step step = step_with(
        arena, input, "fp32", candidate ? "--fp32-candidate" : "--fp32-reference",
        candidate ? "CANDIDATE_RUN_IN_FLOAT32" : "REFERENCE_RUN_IN_FLOAT32");
    step.evidence = nd_phrase_plain(single ? "step.fp32.disguised" : "step.fp32.open");
    return step;
}

static struct nd_step step_layers(struct arena *arena, const struct diagnosis_input *input)
{
    const struct nd_result *result = input->result;
    const struct side_evidence *golden = input->golden;

    if (golden[0].given && golden[1].given)
        return (struct nd_step){
            .id = "layers",
            .status = ND_STEP_DONE,
            .evidence = ND_PHRASE(arena, "step.layers.golden",
                                  ND_NUMBER("layers", (double)result->layer_count),
                                  ND_NUMBER("golden", (double)golden[1].compared),
                                  ND_NUMBER("reference", golden[0].worst),
                                  ND_NUMBER("candidate", golden[1].worst))};
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
    steps[0] = step_randomness(arena, input);
    steps[1] = step_fp32(arena, input, facts);
    steps[2] = step_layers(arena, input);
    steps[3] = step_norm(arena, subject);
    ret->steps = steps;
    ret->step_count = 4;
    return ND_OK;
}
