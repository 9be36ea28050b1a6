/*
 * A few rows against the formulas of RMSNorm and LayerNorm.  Weights may be estimated on
 * them, so they have to be many more than the parameters of a column.
 */
#include "checks/norm_recognise.h"

#include <math.h>

enum { RECOGNISE_ROWS = 24, RECOGNISE_LEAST = 12, RECOGNISE_LONGEST = 1 << 16 };

/* Rows of one size are normalised already: a plain product would pass for a norm. */
static const double LEAST_RANGE = 1.2;

static bool recognise_varies(const struct sample *sample, bool centre)
{
    double least = HUGE_VAL, most = 0;

    for (uint64_t i = 0; i < sample->count; i++) {
        double mean, var;
        nd_norm_moments(sample->in[0][0] + i * sample->rows.row_len, sample->rows.row_len,
                        &mean, &var);
        const double size = sqrt(centre ? var : var + mean * mean);
        least = fmin(least, size);
        most = fmax(most, size);
    }
    return most > LEAST_RANGE * least;
}

static bool recognise_follows(const struct layer_pair_view *pair, const struct op *op,
                              double roundoff, uint64_t row_len)
{
    const struct replay_limits limits = {
        .elements = RECOGNISE_ROWS * row_len, .row = row_len, .seed = 1};
    const double enough = 4 * roundoff > 0x1p-18 ? 4 * roundoff : 0x1p-18;
    struct formula formula;

    if (op == NULL || !nd_formula_open(pair, op, roundoff, &limits, NULL, &formula))
        return false;
    const bool is_whole_row = formula.sample.rows.row_len == row_len;
    const struct residual *best = formula.residual[0].rel <= formula.residual[1].rel
                                      ? &formula.residual[0]
                                      : &formula.residual[1];
    const bool follows = is_whole_row && best->n >= RECOGNISE_LEAST * row_len &&
                         best->mismatches == 0 && best->rel <= enough &&
                         recognise_varies(&formula.sample, op->norm->centre);
    nd_formula_close(&formula);
    return follows;
}

const struct op *nd_recognise(const struct layer_pair_view *pair, double roundoff)
{
    static const char *const names[] = {"RMSNorm", "LayerNorm"};
    struct nd_shape shape;

    if (!nd_sample_possible(pair, 1, &shape) || shape.rank < 2)
        return NULL;
    const uint64_t row_len = shape.dim[shape.rank - 1];
    /* Short rows are affine in too many ways. */
    if (row_len < 8 || row_len > RECOGNISE_LONGEST)
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct op *op = nd_op_for(names[i]);
        if (recognise_follows(pair, op, roundoff, row_len))
            return op;
    }
    return NULL;
}
