/*
 * Replays and the thresholds of their verdicts.  The thresholds were set on honest pairs in
 * float32, bfloat16 and float16 whose reductions ran in another order: a clean layer's
 * residual was at most 2.7 times the reference's.
 */
#include "checks/replay.h"

#include <math.h>
#include <stdlib.h>

static const double FLOOR_OF_ROUNDOFF = 0.35; /* rms of one rounding is 0.42 u */
static const double RESIDUAL_FACTOR = 6, REFERENCE_FACTOR = 12;
static const double LOCAL_FACTOR = 8,
                    LOCAL_FITTED_FACTOR = 32; /* few values fit a channel */
static const double SLOPE_ERRORS = 12, CHANNEL_ERRORS = 6;
static const double SINGLE = 0x1p-24; /* roundoff of float32 */

static bool slope_stands_out(const struct residual *own, const struct residual *other,
                             double roundoff, double floor)
{
    const bool half = roundoff > SINGLE;
    /* A side that leaves more than one rounding may have rounded its statistics as well, which
     * moves whole rows. */
    const double coarse = half && other->rel > 0.8 * roundoff ? 0.5 * other->rel : 0;
    const double limit = fmax(fmax(8 * SINGLE, half ? roundoff / 5 : 0.5 * floor),
                              fmax(4 * fabs(other->slope), coarse));

    return own->slope_z > SLOPE_ERRORS && fabs(own->slope) > limit &&
           own->channel_t > CHANNEL_ERRORS;
}

/* What a side is measured against. */
struct bar {
    double roundoff, floor;
    double factor; /* of the floor, that the residual may not exceed */
    double local;  /* that the worst element may not exceed */
};

static enum replay_flag judge_side(const struct residual *own, const struct residual *other,
                                   const struct bar *bar)
{
    if (own->mismatches > other->mismatches)
        return REPLAY_NONFINITE;
    if (own->rel > bar->factor * bar->floor &&
        (bar->roundoff != SINGLE || own->rel > 3e-6 || other->rel < 1e-6))
        return REPLAY_RESIDUAL;
    if (own->local > bar->local)
        return REPLAY_LOCAL;
    return slope_stands_out(own, other, bar->roundoff, bar->floor) ? REPLAY_SLOPE
                                                                   : REPLAY_FOLLOWS;
}

static struct bar bar_of(const struct residual *other, double roundoff,
                         struct leeway leeway, double factor, bool fitted)
{
    const double least = fmax(FLOOR_OF_ROUNDOFF * roundoff, hypot(leeway.rel, leeway.fit));
    const double floor = fmax(other->rel, least);
    const double local = fmax(other->local, 3 * fmax(roundoff, floor));

    return (struct bar){.roundoff = roundoff,
                        .floor = floor,
                        .factor = factor,
                        .local = (fitted ? LOCAL_FITTED_FACTOR : LOCAL_FACTOR) *
                                 fmax(local, leeway.local)};
}

/* What a side may leave and still be said to follow its formula.  Rows far from zero leave
 * 0.3 u for each |mean| / sigma at best, six times as much where their sum is long. */
static double replay_gate(double roundoff, struct leeway leeway)
{
    return fmax(fmax(4 * roundoff, 64 * SINGLE), 10 * leeway.rel);
}

/*
 * Honest sides leave about one rounding each: 0.40 to 0.63 u in 16 bits, 1.4 u in 32.  The
 * gate is wider than that, for kernels that round more often on both sides; but a
 * reference that stands out beside a candidate that follows is the one to look at.
 */
static bool reference_stands_out(const struct replay *replay, double roundoff,
                                 struct leeway leeway)
{
    const struct residual *reference = &replay->residual[0];
    const struct residual *candidate = &replay->residual[1];
    const double least = fmax(FLOOR_OF_ROUNDOFF * roundoff, hypot(leeway.rel, leeway.fit));
    const bool half = roundoff > SINGLE;

    return candidate->n > 0 && candidate->mismatches == 0 &&
           candidate->rel <= (half ? 0.8 : 2) * roundoff &&
           reference->rel > (half ? 0 : 2e-6) &&
           reference->rel > RESIDUAL_FACTOR * fmax(candidate->rel, least);
}

void nd_replay_judge(struct replay *replay, double roundoff, struct leeway leeway)
{
    const struct residual *reference = &replay->residual[0];
    const struct residual *candidate = &replay->residual[1];
    const double gate = replay_gate(roundoff, leeway);
    /* Parameters fitted to a reference that does not follow the formula prove nothing. */
    const bool settled = leeway.fit <= 2 * gate;
    struct bar bar = bar_of(reference, roundoff, leeway, RESIDUAL_FACTOR, replay->fitted);

    replay->side = 1;
    replay->floor = bar.floor;
    replay->trusted =
        settled && reference->n > 0 && reference->rel <= gate && reference->mismatches == 0;
    if (reference_stands_out(replay, roundoff, leeway)) {
        bar = bar_of(candidate, roundoff, leeway, RESIDUAL_FACTOR, replay->fitted);
        replay->flag = judge_side(reference, candidate, &bar);
        replay->trusted = true;
        replay->side = 0;
        replay->floor = bar.floor;
        return;
    }
    if (replay->trusted) {
        replay->flag = judge_side(candidate, reference, &bar);
        return;
    }
    /* The formula does not fit the reference: does it fit the candidate? */
    const bool fitted_here = replay->fitted && replay->fitted_on == 1;
    if ((replay->fitted && !(fitted_here && settled)) || candidate->n == 0 ||
        candidate->mismatches > 0 ||
        candidate->rel > fmax(2.5 * roundoff, 4 * leeway.rel))
        return;
    bar = bar_of(candidate, roundoff, leeway, REFERENCE_FACTOR, fitted_here);
    replay->flag = judge_side(reference, candidate, &bar);
    replay->trusted = replay->flag != REPLAY_FOLLOWS;
    replay->side = 0;
    replay->floor = bar.floor;
}

struct plain {
    const struct formula *formula;
    int side;
};

static void plain_row(const void *user, uint64_t i, double *out)
{
    const struct plain *of = user;

    nd_formula_row(of->formula, of->side, i, out);
}

void nd_formula_row(const struct formula *formula, int side, uint64_t i, double *out)
{
    const struct sample *sample = &formula->sample;
    const uint64_t n = sample->rows.row_len;
    const double *inputs[OP_MAX_INPUTS] = {NULL};

    for (unsigned k = 0; k < sample->inputs; k++)
        inputs[k] = sample->in[side][k] + i * n;
    if (formula->op->norm != NULL)
        nd_norm_row(&formula->study.model[side], &sample->rows, sample->row[i], inputs[0],
                    out);
    else
        formula->op->row(&formula->call, inputs, n, out);
}

/* Elements that tell the formulas of one name apart where they are far apart. */
enum { VARIANT_ELEMENTS = 1 << 12 };
static const double VARIANT_CLOSE = 4;

static bool formula_try(struct formula *formula, const struct formula *on, unsigned variant,
                        struct residual *ret)
{
    const struct plain of = {on, 0};

    formula->call.variant = variant;
    return nd_residual_measure(&on->sample, on->sample.out[0], plain_row, &of, ret);
}

/* Variants that a few rows speak against are not tried on all; bit k: variant k is. */
static bool formula_rank(const struct formula *formula, uint32_t *ret_tried)
{
    struct formula few = *formula;
    double rel[32], least = HUGE_VAL;
    struct residual measured;
    bool good = true;

    *ret_tried = ~UINT32_C(0);
    if (formula->op->variants < 2 || formula->op->variants > 32 ||
        nd_sample_elements(&formula->sample) <= 4 * VARIANT_ELEMENTS)
        return true;
    if (!nd_sample_thin(&formula->sample, VARIANT_ELEMENTS, &few.sample))
        return false;
    for (unsigned k = 0; k < formula->op->variants && good; k++) {
        good = formula_try(&few, &few, k, &measured);
        rel[k] = good ? measured.rel : HUGE_VAL;
        least = fmin(least, rel[k]);
    }
    for (unsigned k = 0; k < formula->op->variants && good; k++)
        if (rel[k] > VARIANT_CLOSE * least)
            *ret_tried &= ~(UINT32_C(1) << k);
    nd_sample_done(&few.sample);
    return good;
}

/* Among the formulas that go by the operator's name, the one that the reference follows. */
static bool formula_choose(struct formula *formula)
{
    const struct plain candidate = {formula, 1};
    struct residual best = {.rel = HUGE_VAL}, measured;
    unsigned chosen = formula->op->variants;
    uint32_t tried;

    if (!formula_rank(formula, &tried))
        return false;
    for (unsigned variant = 0; variant < formula->op->variants; variant++) {
        if ((tried >> variant % 32 & 1) == 0)
            continue;
        if (!formula_try(formula, formula, variant, &measured))
            return false;
        if (chosen == formula->op->variants || measured.rel < best.rel) {
            best = measured;
            chosen = variant;
        }
    }
    formula->call.variant = chosen;
    formula->residual[0] = best;
    return nd_residual_measure(&formula->sample, formula->sample.out[1], plain_row,
                               &candidate, &formula->residual[1]);
}

/* The rows of a layer's tensors as its operator sees them; a GroupNorm without declared
 * groups gets one row a sample of the batch. */
static bool formula_rows(const struct layer_pair_view *pair, struct formula *formula,
                         struct op_rows *ret_rows)
{
    const struct op *op = formula->op;
    const unsigned inputs = op->norm != NULL ? 1 : op->inputs;

    if (inputs == 0 || !nd_sample_possible(pair, inputs, &formula->shape))
        return false;
    if (op->norm == NULL)
        return op->plan(pair->side[0], &formula->shape, ret_rows, &formula->call);
    return nd_norm_rows(op, pair->side[0], &formula->shape, 0, ret_rows) ||
           nd_norm_rows(op, pair->side[0], &formula->shape, 1, ret_rows);
}

static bool formula_study(const struct layer_pair_view *pair, double roundoff,
                          struct formula *formula)
{
    const struct op_rows rows = formula->sample.rows;
    const uint64_t count = formula->sample.count;

    if (!nd_norm_study_make(formula->op, pair, &formula->sample, roundoff, &formula->study))
        return false;
    const double enough = replay_gate(roundoff, formula->study.leeway);
    if (nd_norm_study_refit(formula->op, pair, &rows, count, roundoff, enough,
                            &formula->sample, &formula->study))
        return true;
    nd_norm_study_done(&formula->study);
    return false;
}

bool nd_formula_open(const struct layer_pair_view *pair, const struct op *op,
                     double roundoff, const struct replay_limits *limits,
                     const uint64_t *worst, struct formula *ret_formula)
{
    struct formula formula = {.op = op};
    struct op_rows rows;
    bool good;

    if (op == NULL || !formula_rows(pair, &formula, &rows))
        return false;
    const uint64_t row =
        worst == NULL ? UINT64_MAX : nd_rows_of_index(&rows, &formula.shape, worst);
    const uint64_t least = limits->rows * rows.row_len;
    if (!nd_sample_load(pair, &rows, op->norm != NULL ? 1 : op->inputs,
                        limits->elements > least ? limits->elements : least, limits->row, limits->seed, row, &formula.sample))
        return false;
    if (op->norm == NULL) {
        good = formula_choose(&formula);
    } else {
        good = formula_study(pair, roundoff, &formula);
        formula.residual[0] = formula.study.residual[0];
        formula.residual[1] = formula.study.residual[1];
        formula.leeway = formula.study.leeway;
    }
    if (!good)
        nd_sample_done(&formula.sample);
    else
        *ret_formula = formula;
    return good;
}

void nd_formula_close(struct formula *formula)
{
    if (formula->op != NULL && formula->op->norm != NULL)
        nd_norm_study_done(&formula->study);
    nd_sample_done(&formula->sample);
    formula->op = NULL;
}

void nd_replay_layer(const struct layer_pair_view *pair, const struct op *op,
                     double roundoff, const struct replay_limits *limits,
                     const uint64_t *worst, struct replay *ret_replay)
{
    struct formula formula;

    *ret_replay = (struct replay){.side = 1};
    if (!nd_formula_open(pair, op, roundoff, limits, worst, &formula))
        return;
    ret_replay->done = true;
    ret_replay->whole = formula.sample.whole;
    ret_replay->residual[0] = formula.residual[0];
    ret_replay->residual[1] = formula.residual[1];
    ret_replay->fitted = op->norm != NULL && (!formula.study.weights_known ||
                                              formula.study.mode == NORM_MODE_AFFINE);
    ret_replay->fitted_on = formula.study.fitted_on;
    nd_replay_judge(ret_replay, roundoff, formula.leeway);
    nd_formula_close(&formula);
}
