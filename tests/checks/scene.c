/*
 * Building scenes.
 */
#include "checks/scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { MAX_LAYERS = 512, MAX_SLOTS = 12, MAX_ATTRIBUTES = 12, METRICS = 6 };

struct scene_layer {
    struct layer_view side[2];
    struct slot_view slots[2][MAX_SLOTS];
    struct attribute attributes[2][MAX_ATTRIBUTES];
    struct nd_slot compared[MAX_SLOTS];
    struct nd_layer layer;
};

struct scene {
    struct arena *arena;
    struct scene_layer layers[MAX_LAYERS];
    size_t count;
    struct nd_layer list[MAX_LAYERS];
    struct layer_pair_view pairs[MAX_LAYERS];
    struct nd_result result;
    struct diagnosis diagnosis;
};

struct scene *scene_new(void)
{
    struct scene *scene = calloc(1, sizeof *scene);

    if (scene != NULL)
        scene->arena = nd_arena_new();
    return scene;
}

void scene_free(struct scene *scene)
{
    nd_arena_free(scene->arena);
    free(scene);
}

static struct scene_layer *last(struct scene *scene)
{
    return &scene->layers[scene->count - 1];
}

void scene_layer(struct scene *scene, const char *name, const char *type)
{
    struct scene_layer *of = &scene->layers[scene->count];

    of->layer = (struct nd_layer){.index = scene->count++,
                                  .step = -1,
                                  .rank = -1,
                                  .name = name,
                                  .candidate_name = name,
                                  .type = type,
                                  .direction = "forward",
                                  .matched_by = ND_MATCH_EXACT,
                                  .slots = of->compared};
    for (int side = 0; side < 2; side++)
        of->side[side] = (struct layer_view){.name = name,
                                             .type = type,
                                             .direction = "forward",
                                             .slots = of->slots[side],
                                             .attributes = of->attributes[side]};
}

void scene_number(struct scene *scene, int side, const char *key, double value)
{
    struct layer_view *view = &last(scene)->side[side];

    last(scene)->attributes[side][view->attribute_count++] =
        (struct attribute){.key = key, .kind = ATTRIBUTE_NUMBER, .number = value};
}

void scene_container(struct scene *scene)
{
    last(scene)->side[0].container = last(scene)->side[1].container = true;
    last(scene)->layer.role = ND_ROLE_CONTAINER; /* as compare/ marks a frame of compared leaves */
}

void scene_step(struct scene *scene, int64_t step)
{
    last(scene)->layer.step = step;
}

void scene_backward(struct scene *scene)
{
    struct scene_layer *of = last(scene);

    of->layer.direction = of->side[0].direction = of->side[1].direction = "backward";
}

void scene_masked(struct scene *scene, uint64_t count)
{
    struct scene_layer *of = last(scene);

    of->compared[of->layer.slot_count - 1].masked = count;
}

void scene_valid(struct scene *scene, const uint64_t *valid, size_t count)
{
    struct scene_layer *of = last(scene);
    struct slot_view *view = &of->slots[1][of->side[1].slot_count - 1];

    view->valid = valid;
    view->valid_count = count;
}

static struct nd_metric_value metric(const char *key, enum nd_metric_kind kind, double a,
                                     double b)
{
    return (struct nd_metric_value){
        .key = key, .kind = kind, .value = {a, b}
    };
}

static void slot_metrics(struct scene *scene, struct nd_slot *slot, uint64_t n,
                         const float *r, const float *c)
{
    struct nd_metric_value *metrics =
        nd_arena_alloc(scene->arena, METRICS, sizeof *metrics);
    double rr = 0, cc = 0, ee = 0, mean[2] = {0, 0}, min[2] = {HUGE_VAL, HUGE_VAL};
    double max[2] = {-HUGE_VAL, -HUGE_VAL};

    for (uint64_t i = 0; i < n; i++) {
        const double pair[2] = {(double)r[i], (double)c[i]};
        slot->differ += !(pair[0] == pair[1]);
        if (!isfinite(pair[0]) || !isfinite(pair[1])) {
            slot->nonfinite_mismatches += isfinite(pair[0]) != isfinite(pair[1]);
            for (int side = 0; side < 2; side++)
                slot->nonfinite[side].nan += isnan(pair[side]) != 0;
            continue;
        }
        slot->n++;
        rr += pair[0] * pair[0];
        cc += pair[1] * pair[1];
        ee += (pair[1] - pair[0]) * (pair[1] - pair[0]);
        for (int side = 0; side < 2; side++) {
            mean[side] += pair[side] / (double)n;
            min[side] = fmin(min[side], pair[side]);
            max[side] = fmax(max[side], pair[side]);
        }
    }
    slot->drift = ee > 0 ? sqrt(ee / rr) : 0;
    slot->tier = slot->nonfinite_mismatches > 0 ? ND_TIER_FAULT
                 : slot->differ == 0            ? ND_TIER_EXACT
                 : slot->drift <= 1e-6          ? ND_TIER_NOISE
                 : slot->drift <= 1e-3          ? ND_TIER_REDUCTION
                 : slot->drift < 1e-1           ? ND_TIER_ELEVATED
                                                : ND_TIER_FAULT;
    const struct nd_metric_value values[METRICS] = {
        metric("rel_l2", ND_METRIC_NUMBER, slot->drift, 0),
        metric("rmse", ND_METRIC_NUMBER, sqrt(ee / (double)n), 0),
        metric("min", ND_METRIC_PAIR, min[0], min[1]),
        metric("max", ND_METRIC_PAIR, max[0], max[1]),
        metric("mean", ND_METRIC_PAIR, mean[0], mean[1]),
        metric("norm", ND_METRIC_PAIR, sqrt(rr), sqrt(cc)),
    };
    memcpy(metrics, values, sizeof values);
    slot->metrics = metrics;
    slot->metric_count = METRICS;
}

void scene_integers(struct scene *scene, const char *name, uint64_t n, uint64_t differ)
{
    struct scene_layer *of = last(scene);

    of->compared[of->layer.slot_count++] = (struct nd_slot){
        .name = name,
        .evidence = ND_EVIDENCE_VALUES,
        .shape = {.rank = 1, .dim = {n}},
        .dtype = {"int64",   "int64"   },
        .n = n,
        .differ = differ,
        .drift = (double)differ / (double)n,
        .hidden_up_to = (double)NAN,
        .found_drift = (double)NAN,
        .tier = differ > 0 ? ND_TIER_FAULT : ND_TIER_EXACT
    };
}

void scene_slot(struct scene *scene, const char *name, enum nd_dtype real, uint32_t rank,
                const uint64_t *dim, const double *reference, const double *candidate)
{
    struct scene_layer *of = last(scene);
    struct nd_shape shape = {.rank = rank};
    const double *const given[2] = {reference, candidate};
    float *values[2];
    uint64_t count;

    memcpy(shape.dim, dim, rank * sizeof *dim);
    nd_shape_count(&shape, &count);
    for (int side = 0; side < (candidate == NULL ? 1 : 2); side++) {
        struct slot_view *view = &of->slots[side][of->side[side].slot_count++];
        values[side] = nd_arena_alloc(scene->arena, count, sizeof **values);
        for (uint64_t i = 0; i < count; i++)
            values[side][i] = (float)nd_dtype_round(real, given[side][i]);
        *view = (struct slot_view){.name = name, .has_tensor = true, .real_dtype = real};
        nd_view_contiguous(&view->tensor, values[side], count * sizeof(float), ND_DTYPE_f32,
                           &shape);
    }
    if (candidate == NULL)
        return;
    struct nd_slot *slot = &of->compared[of->layer.slot_count++];
    *slot = (struct nd_slot){
        .name = name,
        .evidence = ND_EVIDENCE_VALUES,
        .shape = shape,
        .hidden_up_to = (double)NAN,
        .found_drift = (double)NAN,
        .judged = true,
        .dtype = {nd_dtype_info(real)->name, nd_dtype_info(real)->name}
    };
    slot_metrics(scene, slot, count, values[0], values[1]);
}

static const struct layer_pair_view *scene_look(void *layers, unsigned worker, size_t index)
{
    (void)worker;
    return &((const struct layer_pair_view *)layers)[index];
}

const struct diagnosis *scene_diagnose(struct scene *scene)
{
    struct nd_error error;
    size_t over = ND_NO_INDEX;

    for (size_t i = 0; i < scene->count; i++) {
        struct scene_layer *of = &scene->layers[i];
        for (int side = 0; side < 2; side++)
            scene->pairs[i].side[side] = &of->side[side];
        for (size_t k = 0; k < of->layer.slot_count; k++)
            if (strncmp(of->compared[k].name, "output", 6) == 0 &&
                of->compared[k].tier > of->layer.tier)
                of->layer.tier = of->compared[k].tier;
        if (over == ND_NO_INDEX && of->layer.tier >= ND_TIER_ELEVATED)
            over = i;
        scene->list[i] = of->layer;
    }
    for (int side = 0; side < 2; side++)
        scene->result.dump[side] = (struct nd_dump_info){.path = side == 0 ? "gpu" : "npu",
                                                         .dtype = "float32",
                                                         .order = ND_ORDER_RECORDED};
    scene->result.layers = scene->list;
    scene->result.layer_count = scene->count;
    const struct diagnosis_input input = {
        .result = &scene->result, .look = scene_look, .layers = scene->pairs,
        .max_mem = 1u << 28, .jobs = 2};
    return nd_diagnose(&input, over, scene->arena, &scene->diagnosis, &error) == ND_OK
               ? &scene->diagnosis
               : NULL;
}

const struct nd_finding *scene_finding(const struct diagnosis *diagnosis, const char *id)
{
    for (size_t i = 0; i < diagnosis->checklist_count; i++)
        if (strcmp(diagnosis->checklist[i].id, id) == 0)
            return &diagnosis->checklist[i];
    return NULL;
}

double scene_parameter(const struct nd_cause *cause, const char *key)
{
    for (size_t i = 0; i < cause->param_count; i++)
        if (strcmp(cause->params[i].key, key) == 0)
            return cause->params[i].number;
    return (double)NAN;
}

double scene_normal(uint64_t *state)
{
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 11) * 0x1p-53;
    }
    return sum;
}
