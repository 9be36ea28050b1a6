/*
 * Do the bytes mean the same on both sides?  Declared: the formats of the slots. Recovered:
 * a layout under which the sides agree, found by the comparison or by trying the mix-ups of
 * NCHW and NHWC on the expected output.
 */
#include "checks/flat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *layout_word(const char *layout)
{
    return layout == NULL ? "logical" : layout;
}

static bool layout_is_transposed(const char *label)
{
    return label != NULL && strncmp(label, "axes ", 5) == 0;
}

static void layout_found(struct subject *subject, struct nd_finding *finding)
{
    const struct nd_slot *slot = subject->slot;
    const char *label = slot->layout[1] != NULL ? slot->layout[1] : slot->layout[0];
    const bool transposed =
        layout_is_transposed(slot->layout[0]) || layout_is_transposed(slot->layout[1]);

    finding->status = ND_CHECK_MISMATCH;
    finding->recovered[0] = layout_word(slot->layout[0]);
    finding->recovered[1] = layout_word(slot->layout[1]);
    finding->evidence = ND_PHRASE(subject->arena, "finding.layout.found",
                                  ND_WORD("reference", layout_word(slot->layout[0])),
                                  ND_WORD("value", layout_word(slot->layout[1])),
                                  ND_NUMBER("before", nd_slot_rel(slot)),
                                  ND_NUMBER("drift", slot->found_drift));
    finding->advice = nd_phrase_plain("advice.layout.found");
    const struct hypothesis other = {.id = transposed ? "transposed" : "layout",
                                     .residual = slot->found_drift,
                                     .is_certain = true,
                                     .side = nd_subject_side(subject)};
    ND_PROPOSE(subject, other, ND_WORD("found", label == NULL ? "" : label),
               ND_NUMBER("c0", (double)slot->c0));
}

/* flat[n][a][b][c] of the expected output, read in another order of axes. */
static double layout_try(const struct subject *subject, double *moved,
                         const uint32_t *order, bool inverse)
{
    const uint64_t *dim = subject->shape.dim;
    uint64_t step[4] = {dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1};
    uint64_t at = 0;

    for (uint64_t n = 0; n < dim[order[0]]; n++)
        for (uint64_t a = 0; a < dim[order[1]]; a++)
            for (uint64_t b = 0; b < dim[order[2]]; b++)
                for (uint64_t c = 0; c < dim[order[3]]; c++, at++) {
                    const uint64_t from = n * step[order[0]] + a * step[order[1]] +
                                          b * step[order[2]] + c * step[order[3]];
                    if (inverse)
                        moved[from] = subject->expected[at];
                    else
                        moved[at] = subject->expected[from];
                }
    /* A mask has to move with the values: else the few that are left may agree by chance. */
    return nd_flat_distance(subject->actual, moved, NULL, subject->count);
}

static void layout_search(struct subject *subject, struct nd_finding *finding)
{
    static const uint32_t nhwc[] = {0, 2, 3, 1}, swapped[] = {0, 1, 3, 2};
    const struct {
        const char *id, *found;
        const uint32_t *order;
        bool inverse;
    } tries[] = {
        {"layout",     "NHWC",         nhwc,    false},
        {"layout",     "NCHW",         nhwc,    true },
        {"transposed", "axes 0,1,3,2", swapped, false}
    };

    if (subject->actual == NULL || subject->shape.rank != 4 ||
        !(subject->unexplained > 1e-2))
        return;
    double *moved = malloc(subject->count * sizeof *moved);
    if (moved == NULL)
        return;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        if (tries[i].order == swapped && subject->shape.dim[2] != subject->shape.dim[3])
            continue;
        const double residual =
            layout_try(subject, moved, tries[i].order, tries[i].inverse);
        if (!(residual < 0.25 * subject->unexplained))
            continue;
        const struct hypothesis moved_axes = {.id = tries[i].id,
                                              .residual = residual,
                                              .penalty = -0.3,
                                              .side = nd_subject_side(subject)};
        ND_PROPOSE(subject, moved_axes, ND_WORD("found", tries[i].found));
        finding->status = ND_CHECK_MISMATCH;
        finding->recovered[subject->side] = tries[i].found;
        finding->evidence =
            ND_PHRASE(subject->arena, "finding.layout.replay",
                      ND_NUMBER("is_candidate", subject->side),
                      ND_WORD("found", tries[i].found), ND_NUMBER("residual", residual));
        finding->advice = nd_phrase_plain("advice.layout.found");
    }
    free(moved);
}

static bool layout_noted(const struct nd_slot *slot, const char *note)
{
    for (size_t i = 0; i < slot->note_count; i++)
        if (strcmp(slot->notes[i], note) == 0)
            return true;
    return false;
}

/* Do a side's bytes lie in another order than the logical one?  A layout may be noted of the
 * device beside bytes that were brought into logical order before they were written. */
static bool layout_converts(const struct subject *subject, int side)
{
    const struct slot_view *slot =
        subject->pair->side[side] == NULL
            ? NULL
            : nd_layer_slot(subject->pair->side[side], subject->slot->name);

    return slot != NULL && slot->has_tensor && slot->layout != NULL && !slot->tensor.contiguous;
}

/* What the layouts are, and what was made of them. */
static struct nd_phrase layout_say(const struct subject *subject)
{
    const struct nd_slot *slot = subject->slot;
    const char *id = "finding.layout.noted";

    if (slot->layout[0] == NULL && slot->layout[1] == NULL)
        return nd_phrase_plain("finding.layout.logical");
    if (layout_noted(slot, "layout_found") || layout_noted(slot, "reshaped"))
        id = "finding.layout.searched";
    else if (layout_converts(subject, 0) || layout_converts(subject, 1))
        id = "finding.layout.converted";
    if (layout_noted(slot, "padding_nonzero"))
        id = "finding.layout.padding";
    return ND_PHRASE(subject->arena, id, ND_WORD("reference", layout_word(slot->layout[0])),
                     ND_WORD("value", layout_word(slot->layout[1])),
                     ND_NUMBER("c0", (double)slot->c0));
}

static void layout_run(struct subject *subject, struct nd_finding *finding)
{
    const struct nd_slot *slot = subject->slot;

    if (slot == NULL) {
        finding->evidence = nd_phrase_plain("finding.layout.none");
        return;
    }
    if (nd_slot_found(slot) && !subject->own->input_found) {
        layout_found(subject, finding);
        return;
    }
    finding->status = ND_CHECK_OK;
    const bool searched = layout_noted(slot, "layout_found") || layout_noted(slot, "reshaped");
    for (int side = 0; side < 2; side++)
        *(searched ? &finding->recovered[side] : &finding->declared[side]) =
            layout_word(slot->layout[side]);
    finding->evidence = layout_say(subject);
    if (slot->fails == ND_FAIL_SHAPE) {
        finding->status = ND_CHECK_MISMATCH;
        finding->evidence = nd_phrase_plain("finding.layout.shape");
        return;
    }
    layout_search(subject, finding);
}

const struct check nd_check_layout = {.id = "layout", .is_line = true, .run = layout_run};
