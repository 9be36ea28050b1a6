/*
 * One slot pair's figures: moments into the result's fields, measuring on one thread, and
 * the layout search where the plain reading is hopeless.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/slot_pair.h"
#include "compare/stage.h"
#include "metrics/metric.h"

void nd_measure_serially(const struct kernel_set *kernels, const struct tensor_view *view,
                         const enum nd_dtype *real, const struct moments_policy *policy,
                         struct nd_moments *ret)
{
    const struct moments_pivot pivot =
        nd_moments_pivot(kernels, &view[0], &view[1], real[0], real[1]);
    struct stage               stage;

    nd_moments_init(ret);
    nd_stage_init(view, &stage);
    nd_stage_measure(&stage, kernels, view, real, 0, view[0].count, &pivot, policy, ret);
    nd_stage_done(&stage);
}

struct moments_policy nd_policy_moments(const struct comparison *comparison, double scale)
{
    return (struct moments_policy){.nan_strict = comparison->options->nan_strict, .scale = scale};
}

bool nd_pair_is_integer(const struct pair_views *views)
{
    for (unsigned side = 0; side < 2; side++) {
        const enum nd_kind kind = nd_dtype_info(views->view[side].dtype)->kind;
        if (kind != ND_KIND_INT && kind != ND_KIND_BOOL)
            return false;
    }
    return true;
}

/* An empty pair has no chunk that could have told. */
static bool slot_same_dtype(const struct slot_pair *slot)
{
    return slot->side[1] == NULL || slot->side[0]->dtype == slot->side[1]->dtype;
}

static double slot_rel_l2(const struct slot_pair *slot)
{
    double value[2];

    return nd_metric_by_name("rel_l2")->value(slot->moments, NULL, value) ? value[0] : 0;
}

/* A metric of the detail pass has no value before it: rel_l2 stands in. */
double nd_slot_drift(const struct comparison *comparison, const struct slot_pair *slot)
{
    const struct nd_moments *moments = slot->moments;
    double                   value[2];

    if (slot->integer)
        return moments->total == 0 ? 0 : (double)moments->differ / (double)moments->total;
    if ((!comparison->metric->detail || slot->detail != NULL) &&
        comparison->metric->value(moments, slot->detail, value))
        return value[0];
    return slot_rel_l2(slot);
}

void nd_slot_set_moments(const struct comparison *comparison, struct slot_pair *slot,
                             const struct nd_moments *moments)
{
    struct nd_slot *result = slot->result;

    *(struct nd_moments *)(uintptr_t)slot->moments = *moments;
    slot->measured = true;
    result->n = moments->n;
    result->differ = moments->differ;
    result->bit_equal = moments->bit_equal && slot_same_dtype(slot);
    result->nonfinite_mismatches = moments->mismatches;
    result->masked = moments->masked;
    for (unsigned side = 0; side < 2; side++)
        result->nonfinite[side] = (struct nd_nonfinite_side){
            moments->side[side].nan, moments->side[side].pos_inf, moments->side[side].neg_inf};
    const double n = (double)moments->n;
    slot->rms[0] = moments->n == 0 ? 0 : sqrt(moments->sum_rr / n) / moments->scale;
    slot->rms[1] = moments->n == 0 ? 0 : sqrt(moments->sum_cc / n) / moments->scale;
    slot->differs = moments->differ > 0 || moments->masks_differ > 0;
    result->drift = nd_slot_drift(comparison, slot);
    if (moments->masks_differ > 0)
        nd_slot_note(slot, "mask_constants_differ");
    if (moments->total == 0)
        nd_slot_note(slot, "empty");
    else if (moments->n == 0 && moments->masked > 0)
        nd_slot_note(slot, "all_masked");
    else if (moments->n == 0)
        nd_slot_note(slot, "no_finite_positions");
}

/* A plain comparison this far off is worth a search (two unrelated tensors give 1.4). */
static const double HOPELESS = 0.3;

bool nd_slot_is_hopeless(const struct slot_pair *slot)
{
    return !slot->integer && slot->moments->n >= 8 && slot_rel_l2(slot) >= HOPELESS;
}

/* Two forms of one statistic agree to this, and unlike ones do not. */
static const double SAME_STATISTIC = 1e-2;

/* rel_l2 of 1 / sqrt(`of` + eps) against the other side; INFINITY where it was not tried. */
static double rstd_drift(const struct tensor_view *of, const struct tensor_view *other,
                         double eps)
{
    double *made = nd_rstd_of(of, eps);
    double  error = 0, size = 0;

    for (uint64_t i = 0; made != NULL && i < of->count; i++) {
        const double value = nd_view_at(other, i), e = value - made[i];
        error += e * e;
        size += value * value;
    }
    free(made);
    return size > 0 ? sqrt(error / size) : (double)INFINITY;
}

/* An output that holds the variance on one side and the reciprocal deviation on the other,
 * although both operators call it the same. */
static bool holds_other_statistic(const struct slot_pair *slot, const struct pair_views *views)
{
    if (!slot->scatter || slot->to_rstd != TO_RSTD_NONE || !views->ready)
        return false;
    return rstd_drift(&views->view[0], &views->view[1], slot->scatter_eps) < SAME_STATISTIC ||
           rstd_drift(&views->view[1], &views->view[0], slot->scatter_eps) < SAME_STATISTIC;
}

static void note_found_padding(struct slot_pair *slot, const struct pair_views *views,
                               const struct found_layout *found)
{
    const struct tensor_view *bytes = &views->open[found->side].storage;
    struct tensor_view        storage;

    if (found->layout == NULL)
        return;
    nd_view_contiguous(&storage, bytes->data, bytes->data_size, bytes->dtype, &found->stored);
    storage.swapped = bytes->swapped;
    storage.base = bytes->base;
    if (nd_view_check(&storage) &&
        nd_layout_padding_nonzero_groups(&storage, found->layout, &found->logical,
                                         found->groups, 0) > 0)
        nd_slot_note(slot, "padding_nonzero");
}

/* A slot, and what it points to. */
struct adopted {
    struct dump_slot slot;
    struct nd_shape logical;
    int64_t stride[ND_MAX_RANK];
};

/* Later openings of the pair, and the checks, see the slot under what was found. */
static enum nd_status adopt_found(const struct comparison *comparison, struct slot_pair *slot,
                                  const struct pair_views *views,
                                  const struct found_layout *found, struct nd_error *err)
{
    const unsigned            side = found->side;
    const struct tensor_view *view = &found->view[side];
    struct dump_slot         *adopted;
    struct adopted           *room;

    if (slot->side[side] == NULL || (found->layout != NULL && views->open[side].storage.base != 0))
        return ND_OK;
    room = nd_arena_alloc(comparison->arena, 1, sizeof *room);
    if (room == NULL)
        return nd_fail_memory(err);
    adopted = &room->slot;
    *adopted = slot->adjusted[side] != NULL ? *slot->adjusted[side] : *slot->side[side];
    adopted->broken = NULL;
    adopted->layout = found->layout;
    adopted->logical = NULL;
    adopted->has_order = adopted->strided = false;
    adopted->c0 = 0;
    if (found->layout != NULL) {
        adopted->storage = found->stored;
        room->logical = found->logical;
        adopted->logical = &room->logical;
        adopted->groups = found->groups;
        adopted->has_order = found->has_order;
        for (uint32_t k = 0; k < ND_MAX_RANK; k++)
            adopted->order[k] = (uint8_t)found->order[k];
    } else {
        adopted->storage = view->shape;
        adopted->strided = true;
        adopted->base = view->base;
        for (uint32_t k = 0; k < view->shape.rank; k++)
            room->stride[k] = view->axis[k].outer;
        adopted->stride = room->stride;
    }
    slot->adjusted[side] = adopted;
    return ND_OK;
}

enum nd_status nd_slot_search(const struct comparison *comparison, struct slot_pair *slot,
                              struct pair_views *views, struct nd_error *err)
{
    struct found_layout  found;
    struct nd_moments    moments;
    const double         plain = views->ready ? slot_rel_l2(slot) : (double)INFINITY;
    double               value[2];
    const struct metric *drift = nd_metric_by_name("rel_l2");

    if (holds_other_statistic(slot, views)) {
        nd_slot_note(slot, "variance_for_rstd");
        return ND_OK;
    }
    if (!nd_search_layout(views, plain, &found))
        return ND_OK;
    const struct moments_policy policy = nd_policy_moments(comparison, 1);
    nd_measure_serially(comparison->kernels, found.view, views->real, &policy, &moments);
    if (!drift->value(&moments, NULL, value) || !(value[0] < 1e-1))
        return ND_OK; /* the samples agreed by luck */
    for (unsigned side = 0; side < 2; side++)
        if (found.label[side][0] != '\0') {
            slot->result->layout[side] = nd_arena_string(comparison->arena, found.label[side]);
            if (slot->result->layout[side] == NULL)
                return nd_fail_memory(err);
        }
    note_found_padding(slot, views, &found);
    slot->result->layout_how = "found";
    slot->result->c0 = found.c0;
    slot->result->found_drift = value[0];
    if (views->ready) {
        nd_slot_note(slot, "equal_under_layout"); /* the plain drift stands: it is what is there */
        return ND_OK;
    }
    memcpy(views->view, found.view, sizeof found.view);
    views->ready = true;
    ND_TRY(adopt_found(comparison, slot, views, &found, err));
    nd_slot_note(slot, strcmp(found.label[1], "reshaped") == 0 ? "reshaped" : "layout_found");
    nd_slot_set_moments(comparison, slot, &moments);
    return ND_OK;
}
