/*
 * Which precision did each side compute in?  Declared: the slots' types.  Recovered: the
 * grid that the values lie on, whatever container holds them.
 */
#include "checks/flat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"

enum { DTYPE_BUDGET = 1 << 22 };

struct dtype_evidence {
    enum grid grid[2];
    double share[2]; /* of each side's values on the coarser grid */
    bool whole;
    bool values; /* on both sides */
};

static void dtype_look(const struct subject *subject, struct dtype_evidence *ret)
{
    struct grid_shares shares[2] = {
        {{0}, 0, false},
        {{0}, 0, false}
    };

    *ret = (struct dtype_evidence){
        .grid = {GRID_NONE, GRID_NONE},
          .whole = true,
          .values = true
    };
    for (int side = 0; side < 2; side++) {
        const struct slot_view *slot =
            subject->pair->side[side] == NULL
                ? NULL
                : nd_layer_slot(subject->pair->side[side], subject->slot->name);
        if (slot == NULL || !slot->has_tensor) {
            ret->values = false;
            continue;
        }
        nd_grid_shares(&slot->tensor, DTYPE_BUDGET, &shares[side]);
        ret->grid[side] = nd_grid_of(&shares[side], slot->real_dtype);
        ret->whole = ret->whole && shares[side].whole;
    }
    const enum grid coarser = ret->grid[0] < ret->grid[1] ? ret->grid[0] : ret->grid[1];
    for (int side = 0; side < 2 && coarser != GRID_NONE; side++)
        ret->share[side] = shares[side].share[coarser];
}

/* Layers whose output lies on this grid on one side only, among those that round at all. */
static bool dtype_is_global(const struct subject *subject, int side, enum grid grid)
{
    size_t on = 0, all = 0;

    for (size_t i = 0; i < subject->input->result->layer_count; i++) {
        const struct layer_facts *facts = &subject->facts[i];
        const bool rounds =
            facts->op != NULL && (facts->op->norm != NULL || facts->op->product);
        if (facts->container || !rounds || facts->out.count == 0 || facts->out.n < 16)
            continue;
        all++;
        on += facts->grid[side] == grid && facts->grid[!side] != grid;
    }
    return all >= 3 && on * 10 >= all * 9;
}

/* Rounds what was expected of a side onto the grid: what is left is rounding the other way
 * where a value lay close to the middle, 2 u in a share of noise / u of the values. */
static double dtype_misfit(const struct subject *subject, int side, enum grid grid,
                           double *ret_floor)
{
    const bool is_own = side == subject->side;
    const double *y = is_own ? subject->actual : subject->expected;
    const double *z = is_own ? subject->expected : subject->actual;
    double *rounded, misfit;

    *ret_floor = fmax(subject->floor, 2 * sqrt(subject->floor * nd_grid_roundoff(grid)));
    /* A replay is about the side in question alone. */
    if (subject->actual == NULL || (!is_own && subject->is_replayed))
        return (double)NAN;
    rounded = nd_room_take(subject->count, sizeof *rounded);
    if (rounded == NULL)
        return (double)NAN;
    for (uint64_t i = 0; i < subject->count; i++)
        rounded[i] = nd_grid_round(grid, z[i]);
    misfit = nd_flat_distance(y, rounded, NULL, subject->count);
    nd_room_give(rounded);
    return misfit;
}

/* Units of roundoff that a layer computed in a type throughout is off by. */
static const double WHOLE_LAYER = 16;

static void dtype_propose_effective(struct subject *subject, int side, enum grid grid)
{
    const bool is_global = dtype_is_global(subject, side, grid);
    double floor;
    double residual = dtype_misfit(subject, side, grid, &floor);
    /* Rounded on the way too, so that rounding what was expected explains little: the values
     * lie on the grid all the same, and are off by no more than that. */
    const bool is_fingerprint =
        !is_global && !(residual < 0.5 * subject->unexplained) &&
        subject->unexplained <= WHOLE_LAYER * nd_grid_roundoff(grid);

    if (is_fingerprint)
        residual = (double)NAN;
    struct hypothesis rounded = {
        .id = is_global ? "dtype_global" : "dtype_effective",
        .residual = residual,
        .floor = floor,
        .penalty = is_fingerprint ? 0.2 : -0.5, /* what says more goes first */
        .is_declared = is_global,
        .is_certain = is_global,
        .is_fingerprint = is_fingerprint,
        .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE};
    if (is_fingerprint)
        rounded.summary = ND_PHRASE(subject->arena, "summary.dtype_effective.grid",
                                    ND_NUMBER("is_candidate", side),
                                    ND_WORD("dtype", nd_grid_name(grid)),
                                    ND_NUMBER("drift", subject->unexplained));
    ND_PROPOSE(subject, rounded, ND_WORD("dtype", nd_grid_name(grid)));
}

static enum grid dtype_grid_of(const char *name)
{
    const enum nd_dtype dtype = nd_dtype_by_name(name, strlen(name));

    return dtype == ND_DTYPE_bf16  ? GRID_BF16
           : dtype == ND_DTYPE_f16 ? GRID_F16
                                   : GRID_NONE;
}

static void dtype_propose_declared(struct subject *subject)
{
    const char *const *names = subject->slot->dtype;
    const int side = nd_dtype_roundoff(nd_dtype_by_name(names[1], strlen(names[1]))) >=
                     nd_dtype_roundoff(nd_dtype_by_name(names[0], strlen(names[0])));
    const enum grid grid = dtype_grid_of(names[side]);
    double floor = 0, residual = (double)NAN;

    if (grid != GRID_NONE)
        residual = dtype_misfit(subject, side, grid, &floor);
    nd_propose(subject,
               &(struct hypothesis){
                   .id = "dtype_declared",
                   .residual = residual,
                   .floor = floor,
                   .is_declared = true,
                   .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
                   .param_count = 2,
                   .params = (const struct nd_param[]){ND_WORD("reference", names[0]),
                                                       ND_WORD("value", names[1])}
    });
}

/* The whole candidate is narrower: said in place of this layer's own types. */
static void dtype_say_lowered(const struct subject *subject, struct nd_finding *finding)
{
    const struct nd_lowered *lowered = subject->lowered;

    if (lowered == NULL || lowered->dtype[1] == NULL)
        return;
    finding->status = ND_CHECK_MISMATCH;
    finding->evidence = ND_PHRASE(
        subject->arena, "finding.dtype.lowered", ND_WORD("candidate", lowered->dtype[1]),
        ND_WORD("reference", lowered->dtype[0] == NULL ? "" : lowered->dtype[0]),
        ND_NUMBER("layers", (double)lowered->layers), ND_NUMBER("of", (double)lowered->of),
        ND_NUMBER("explains", lowered->explains));
    finding->advice = nd_phrase_plain("advice.dtype.lowered");
}

/* The types agree; what the numbers say of them. */
static struct nd_phrase dtype_agree(const struct subject *subject,
                                    const struct dtype_evidence *look)
{
    if (!look->values)
        return nd_phrase_plain("finding.dtype.statistics");
    if (look->grid[0] != GRID_NONE && look->grid[0] == look->grid[1])
        return ND_PHRASE(subject->arena, "finding.dtype.same_grid",
                         ND_WORD("dtype", nd_grid_name(look->grid[0])));
    return nd_phrase_plain("finding.dtype.ok");
}

static void dtype_run(struct subject *subject, struct nd_finding *finding)
{
    struct dtype_evidence look;

    if (subject->slot == NULL) {
        finding->evidence = nd_phrase_plain("finding.dtype.none");
        return;
    }
    const struct nd_slot *slot = subject->slot;
    const bool known = slot->dtype[0] != NULL && slot->dtype[1] != NULL;
    const bool alike = known && strcmp(slot->dtype[0], slot->dtype[1]) == 0;
    dtype_look(subject, &look);
    for (int side = 0; side < 2; side++) {
        finding->declared[side] = slot->dtype[side];
        finding->recovered[side] =
            look.grid[side] != GRID_NONE ? nd_grid_name(look.grid[side]) : NULL;
    }
    finding->status = ND_CHECK_OK;
    finding->evidence = known ? dtype_agree(subject, &look)
                              : nd_phrase_plain("finding.dtype.undeclared");
    if (known && !alike) {
        finding->status = ND_CHECK_MISMATCH;
        finding->evidence = nd_phrase_plain("finding.dtype.declared");
        finding->advice = nd_phrase_plain("advice.dtype.declared");
        dtype_propose_declared(subject);
    }
    dtype_say_lowered(subject, finding);
    if (look.grid[0] == look.grid[1])
        return;
    const int side = look.grid[1] < look.grid[0];
    if (look.share[!side] > 0.5)
        return; /* sparse or rounded values on both sides */
    finding->status = ND_CHECK_MISMATCH;
    finding->evidence = ND_PHRASE(subject->arena, "finding.dtype.effective",
                                  ND_NUMBER("is_candidate", side),
                                  ND_WORD("dtype", nd_grid_name(look.grid[side])),
                                  ND_NUMBER("percent", 100 * look.share[side]),
                                  ND_NUMBER("other", 100 * look.share[!side]));
    finding->advice = nd_phrase_plain("advice.dtype.effective");
    if (alike || !known)
        dtype_propose_effective(subject, side, look.grid[side]);
}

const struct check nd_check_dtype = {.id = "dtype", .is_line = true, .run = dtype_run};
