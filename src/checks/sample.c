/*
 * Loading rows of a layer's tensors.
 */
#include "checks/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "base/room.h"

uint64_t nd_sample_bytes(unsigned inputs, uint64_t elements)
{
    return elements * sizeof(double) * 2 * (inputs + 1);
}

static const struct tensor_view *sample_tensor(const struct layer_view *layer,
                                               const char *kind, unsigned number)
{
    char name[32];

    snprintf(name, sizeof name, "%s.%u", kind, number);
    const struct slot_view *slot = nd_layer_slot(layer, name);
    return slot != NULL && slot->has_tensor ? &slot->tensor : NULL;
}

static bool sample_fits(const struct tensor_view *view, const struct nd_shape *shape)
{
    return view != NULL && nd_dtype_info(view->dtype)->kind == ND_KIND_FLOAT &&
           nd_shape_equal(&view->shape, shape);
}

bool nd_sample_possible(const struct layer_pair_view *pair, unsigned inputs,
                        struct nd_shape *ret_shape)
{
    if (pair->side[0] == NULL || pair->side[1] == NULL)
        return false;
    const struct tensor_view *first = sample_tensor(pair->side[0], "output", 0);
    if (first == NULL || first->count == 0)
        return false;
    for (int side = 0; side < 2; side++) {
        if (!sample_fits(sample_tensor(pair->side[side], "output", 0), &first->shape))
            return false;
        for (unsigned k = 0; k < inputs; k++)
            if (!sample_fits(sample_tensor(pair->side[side], "input", k), &first->shape))
                return false;
    }
    *ret_shape = first->shape;
    return true;
}

/* One row out of each of `count` equal slices; the worst one stands for its slice. */
static void sample_choose(struct sample *sample, uint64_t seed, uint64_t worst)
{
    const uint64_t rows = sample->rows.rows;

    for (uint64_t i = 0; i < sample->count; i++) {
        const double step = (double)rows / (double)sample->count;
        const uint64_t from = sample->whole ? i : (uint64_t)((double)i * step);
        uint64_t to = sample->whole ? i + 1 : (uint64_t)((double)(i + 1) * step);
        if (to <= from)
            to = from + 1;
        uint64_t row = from + mix64(seed ^ (i << 20)) % (to - from);
        if (worst >= from && worst < to)
            row = worst;
        sample->row[i] = row < rows ? row : rows - 1;
    }
}

static bool sample_read(const struct tensor_view *view, const struct sample *sample,
                        double **ret_values)
{
    struct tensor_view ordered = *view;
    const uint64_t n = sample->rows.row_len;
    double *values = nd_room_take(nd_sample_elements(sample), sizeof *values);

    if (values == NULL)
        return false;
    nd_view_permute(&ordered, sample->rows.order);
    if (sample->whole)
        nd_view_decode(&ordered, 0, nd_sample_elements(sample), values);
    else
        for (uint64_t i = 0; i < sample->count; i++)
            nd_view_decode(&ordered, sample->row[i] * n, n, values + i * n);
    *ret_values = values;
    return true;
}

/* Figures are kept per channel; no layer in use has a million of them. */
enum { MAX_CHANNELS = 1 << 20 };

bool nd_sample_load(const struct layer_pair_view *pair, const struct op_rows *rows,
                    unsigned inputs, uint64_t elements, uint64_t limit, uint64_t seed,
                    uint64_t worst, struct sample *ret_sample)
{
    struct sample sample = {.rows = *rows, .inputs = inputs};
    struct nd_shape shape;
    bool good = true;

    if (!nd_sample_possible(pair, inputs, &shape) || rows->row_len > limit ||
        rows->channels > MAX_CHANNELS)
        return false;
    sample.count = rows->rows;
    if (sample.count > elements / rows->row_len)
        sample.count = elements / rows->row_len > 0 ? elements / rows->row_len : 1;
    sample.whole = sample.count == rows->rows;
    sample.row = malloc(sample.count * sizeof *sample.row);
    if (sample.row == NULL)
        return false;
    sample_choose(&sample, seed, worst);
    for (int side = 0; side < 2 && good; side++) {
        const struct layer_view *layer = pair->side[side];
        for (unsigned k = 0; k < inputs && good; k++)
            good =
                sample_read(sample_tensor(layer, "input", k), &sample, &sample.in[side][k]);
        good = good &&
               sample_read(sample_tensor(layer, "output", 0), &sample, &sample.out[side]);
    }
    if (!good)
        nd_sample_done(&sample);
    else
        *ret_sample = sample;
    return good;
}

void nd_sample_done(struct sample *sample)
{
    for (int side = 0; side < 2; side++) {
        for (unsigned k = 0; k < OP_MAX_INPUTS; k++)
            nd_room_give(sample->in[side][k]);
        nd_room_give(sample->out[side]);
    }
    free(sample->row);
    *sample = (struct sample){.row = NULL};
}

/* Rows 0, step, 2 step ... of an array of rows. */
static double *sample_rows(const double *values, uint64_t count, uint64_t step, uint64_t n)
{
    double *rows = nd_room_take(count * n, sizeof *rows);

    for (uint64_t i = 0; rows != NULL && i < count; i++)
        memcpy(rows + i * n, values + i * step * n, n * sizeof *rows);
    return rows;
}

bool nd_sample_thin(const struct sample *sample, uint64_t elements, struct sample *ret_thin)
{
    const uint64_t n = sample->rows.row_len;
    const uint64_t most = elements / n > 0 ? elements / n : 1;
    const uint64_t step = (sample->count + most - 1) / most;
    struct sample thin = {.rows = sample->rows, .inputs = sample->inputs};
    bool good = true;

    thin.count = (sample->count + step - 1) / step;
    thin.whole = sample->whole && step == 1;
    thin.row = malloc(thin.count * sizeof *thin.row);
    for (uint64_t i = 0; thin.row != NULL && i < thin.count; i++)
        thin.row[i] = sample->row[i * step];
    for (int side = 0; side < 2; side++) {
        for (unsigned k = 0; k < sample->inputs; k++) {
            thin.in[side][k] = sample_rows(sample->in[side][k], thin.count, step, n);
            good = good && thin.in[side][k] != NULL;
        }
        thin.out[side] = sample_rows(sample->out[side], thin.count, step, n);
        good = good && thin.out[side] != NULL;
    }
    if (good && thin.row != NULL)
        *ret_thin = thin;
    else
        nd_sample_done(&thin);
    return good && thin.row != NULL;
}

uint64_t nd_rows_of_index(const struct op_rows *rows, const struct nd_shape *shape,
                          const uint64_t *index)
{
    uint64_t flat = 0;

    for (uint32_t k = 0; k < rows->rank; k++)
        flat = flat * shape->dim[rows->order[k]] + index[rows->order[k]];
    return flat / rows->row_len;
}

void nd_rows_scatter(const struct op_rows *rows, const struct nd_shape *shape, uint64_t row,
                     const double *values, double *flat)
{
    struct nd_shape ordered = {.rank = rows->rank};
    uint64_t stride[ND_MAX_RANK], index[ND_MAX_RANK] = {0}, step = 1;

    for (uint32_t k = shape->rank; k-- > 0;) {
        for (uint32_t m = 0; m < rows->rank; m++)
            if (rows->order[m] == k)
                stride[m] = step;
        step *= shape->dim[k];
    }
    for (uint32_t k = 0; k < rows->rank; k++)
        ordered.dim[k] = shape->dim[rows->order[k]];
    nd_shape_unravel(&ordered, row * rows->row_len, index);
    for (uint64_t i = 0; i < rows->row_len; i++) {
        uint64_t at = 0;
        for (uint32_t k = 0; k < rows->rank; k++)
            at += index[k] * stride[k];
        flat[at] = values[i];
        for (uint32_t k = rows->rank; k-- > 0;) {
            if (++index[k] < ordered.dim[k])
                break;
            index[k] = 0;
        }
    }
}
