/*
 * The size of what cancels: |mean| / sigma times the weight, row by row.
 */
#include "checks/conditioning.h"

#include <math.h>

#include "checks/residual.h"

static double row_weight(const struct norm_model *model, const struct op_rows *rows,
                         uint64_t row)
{
    struct op_channel channel = nd_op_channel_first(rows, row);
    double largest = 0;

    if (rows->span > 1) { /* few channels in a row, each a run of elements */
        const uint64_t count = (rows->row_len + rows->span - 1) / rows->span;
        for (uint64_t c = 0; c < count; c++)
            largest = fmax(largest, fabs(nd_norm_weight(model, channel.at + c)));
        return largest;
    }
    for (uint64_t j = 0; j < rows->row_len; j++)
        largest = fmax(largest, fabs(nd_norm_weight(model, channel.at + j)));
    return largest;
}

struct leeway nd_norm_conditioning(const struct sample *sample, int side,
                                   const struct norm_model *model)
{
    const struct op_rows *rows = &sample->rows;
    const double single = 0x1p-24;
    const double rms = nd_finite_rms(sample->out[side], nd_sample_elements(sample));
    double squares = 0, weighted = 0, worst = 0, fourths = 0;

    if (!model->centre || rms == 0)
        return (struct leeway){.rel = 0};
    for (uint64_t i = 0; i < sample->count; i++) {
        double mean, var;
        nd_norm_statistics(model, rows, sample->row[i],
                           sample->in[side][0] + i * rows->row_len, &mean, &var);
        const double cancels = fabs(mean) * nd_norm_scale(model, var);
        if (!isfinite(cancels))
            continue;
        const double scaled = cancels * row_weight(model, rows, sample->row[i]);
        squares += cancels * cancels;
        fourths += cancels * cancels * cancels * cancels;
        weighted += scaled * scaled;
        worst = fmax(worst, scaled);
    }
    const double count = (double)sample->count;
    /* 0.3 u for each |mean| / sigma was measured where a row's own mean is taken off.  That
     * is an average: where few rows make up the sum, one of them may err by three times. */
    const double few = fourths > 0 ? 2 * sqrt(fourths) / squares : 0;
    const double rel =
        model->var == NULL ? sqrt(squares / count) : sqrt(weighted / count) / rms;
    return (struct leeway){.rel = 0.3 * single * (1 + few) * rel,
                           .local = single * worst / rms};
}
