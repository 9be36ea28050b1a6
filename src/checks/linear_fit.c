/*
 * Least squares and matching pursuit on the rows of a product.
 */
#include "checks/linear_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Multiply-adds of one form; weights of a channel that a sparse change may touch. */
enum { FIT_WORK = 1 << 26, FIT_ATOMS = 6 };

static bool is_tested(uint64_t row)
{
    return row % 4 == 3;
}

static const double *fit_inputs(const struct linear_rows *rows, uint64_t channel)
{
    const uint64_t each = rows->channels / rows->groups;

    return rows->input + channel / each * rows->count * rows->terms;
}

/* --- simple forms --- */

/* Root mean square of the errors, over the outputs'. */
static double rows_relative(const struct linear_rows *rows, double squares, uint64_t count)
{
    return count == 0 ? HUGE_VAL : sqrt(squares / (double)count) / rows->size;
}

double nd_linear_error(const struct linear_rows *rows)
{
    const uint64_t all = rows->channels * rows->count;
    double squares = 0;

    for (uint64_t i = 0; i < all; i++)
        squares += rows->error[i] * rows->error[i];
    return rows_relative(rows, squares, all);
}

double nd_linear_constant(const struct linear_rows *rows)
{
    double squares = 0;

    for (uint64_t c = 0; c < rows->channels; c++) {
        const double *error = rows->error + c * rows->count;
        double mean = 0;
        for (uint64_t r = 0; r < rows->count; r++)
            mean += error[r] / (double)rows->count;
        for (uint64_t r = 0; r < rows->count; r++)
            squares += (error[r] - mean) * (error[r] - mean);
    }
    return rows_relative(rows, squares, rows->channels * rows->count);
}

static double channel_rms(const struct linear_rows *rows, uint64_t channel)
{
    const double *error = rows->error + channel * rows->count;
    double squares = 0;

    for (uint64_t r = 0; r < rows->count; r++)
        squares += error[r] * error[r];
    return sqrt(squares / (double)rows->count) / rows->size;
}

uint64_t nd_linear_wrong(const struct linear_rows *rows, double limit)
{
    uint64_t wrong = 0;

    for (uint64_t c = 0; c < rows->channels; c++)
        wrong += channel_rms(rows, c) > limit;
    return wrong;
}

void nd_linear_scale(const struct linear_rows *rows, struct linear_fit *ret_fit)
{
    const uint64_t all = rows->channels * rows->count;
    double cross = 0, square = 0, squares = 0;

    for (uint64_t i = 0; i < all; i++) {
        cross += rows->error[i] * rows->plain[i];
        square += rows->plain[i] * rows->plain[i];
    }
    *ret_fit = (struct linear_fit){.scale = square > 0 ? cross / square : 0};
    for (uint64_t i = 0; i < all; i++) {
        const double left = rows->error[i] - ret_fit->scale * rows->plain[i];
        squares += left * left;
    }
    ret_fit->residual = rows_relative(rows, squares, all);
}

/* --- a few weights of a channel --- */

struct pursuit {
    uint64_t atom[FIT_ATOMS];
    unsigned count;
    double *left;   /* what the atoms do not explain, of every row */
    double *square; /* of every input, over the rows fitted */
};

/* Solves the normal equations of the atoms by elimination; false: they are not apart. */
static bool pursuit_solve(const struct pursuit *of, const double *x, uint64_t terms,
                          uint64_t count, const double *error, double *ret_weights)
{
    const unsigned n = of->count;
    double a[FIT_ATOMS][FIT_ATOMS + 1] = {{0}};

    for (uint64_t r = 0; r < count; r++) {
        if (is_tested(r))
            continue;
        for (unsigned i = 0; i < n; i++) {
            const double xi = x[r * terms + of->atom[i]];
            for (unsigned j = 0; j < n; j++)
                a[i][j] += xi * x[r * terms + of->atom[j]];
            a[i][n] += xi * error[r];
        }
    }
    for (unsigned i = 0; i < n; i++) {
        if (!(a[i][i] > 0))
            return false;
        for (unsigned k = i + 1; k < n; k++) {
            const double factor = a[k][i] / a[i][i];
            for (unsigned j = i; j <= n; j++)
                a[k][j] -= factor * a[i][j];
        }
    }
    for (unsigned i = n; i-- > 0;) {
        ret_weights[i] = a[i][n];
        for (unsigned j = i + 1; j < n; j++)
            ret_weights[i] -= a[i][j] * ret_weights[j];
        ret_weights[i] /= a[i][i];
    }
    return true;
}

/* The input that goes best with what is left. */
static uint64_t pursuit_best(const struct pursuit *of, const double *x, uint64_t terms,
                             uint64_t count)
{
    uint64_t best = 0;
    double highest = -1;

    for (uint64_t k = 0; k < terms; k++) {
        double cross = 0;
        for (uint64_t r = 0; r < count; r++)
            cross += is_tested(r) ? 0 : x[r * terms + k] * of->left[r];
        const double gain = of->square[k] > 0 ? cross * cross / of->square[k] : 0;
        if (gain > highest) {
            highest = gain;
            best = k;
        }
    }
    return best;
}

static double pursuit_left(const struct pursuit *of, uint64_t count, bool tested)
{
    double squares = 0;
    uint64_t n = 0;

    for (uint64_t r = 0; r < count; r++)
        if (is_tested(r) == tested) {
            squares += of->left[r] * of->left[r];
            n++;
        }
    return sqrt(squares / (double)n);
}

/* Adds atoms until the rows fitted are at the floor; returns how many. */
static unsigned pursuit_channel(struct pursuit *of, const double *x, uint64_t terms,
                                uint64_t count, const double *error, double enough)
{
    unsigned most = (unsigned)(count / 12);
    double weights[FIT_ATOMS];

    most = most > FIT_ATOMS ? FIT_ATOMS : most;
    of->count = 0;
    memcpy(of->left, error, count * sizeof *error);
    while (of->count < most && pursuit_left(of, count, false) > enough) {
        of->atom[of->count] = pursuit_best(of, x, terms, count);
        of->count++;
        if (!pursuit_solve(of, x, terms, count, error, weights))
            break;
        for (uint64_t r = 0; r < count; r++) {
            of->left[r] = error[r];
            for (unsigned i = 0; i < of->count; i++)
                of->left[r] -= weights[i] * x[r * terms + of->atom[i]];
        }
    }
    return of->count;
}

bool nd_linear_sparse(const struct linear_rows *rows, double floor,
                      struct linear_fit *ret_fit)
{
    const uint64_t wrong = nd_linear_wrong(rows, 2 * floor);
    struct pursuit of = {.left = malloc(rows->count * sizeof(double)),
                         .square = malloc(rows->terms * sizeof(double))};
    double squares = 0;
    uint64_t tested = 0;

    *ret_fit = (struct linear_fit){.residual = HUGE_VAL};
    if (of.left == NULL || of.square == NULL ||
        wrong > FIT_WORK / (rows->count * rows->terms) / FIT_ATOMS) {
        free(of.left);
        free(of.square);
        return false;
    }
    for (uint64_t c = 0; c < rows->channels; c++) {
        const double *x = fit_inputs(rows, c), *error = rows->error + c * rows->count;
        memset(of.square, 0, rows->terms * sizeof *of.square);
        for (uint64_t r = 0; r < rows->count; r++)
            for (uint64_t k = 0; k < rows->terms && !is_tested(r); k++)
                of.square[k] += x[r * rows->terms + k] * x[r * rows->terms + k];
        of.count = 0;
        if (channel_rms(rows, c) > 2 * floor)
            ret_fit->terms += pursuit_channel(&of, x, rows->terms, rows->count, error,
                                              1.5 * floor * rows->size);
        else
            memcpy(of.left, error, rows->count * sizeof *error);
        const double left = pursuit_left(&of, rows->count, true);
        squares += left * left;
        tested++;
    }
    ret_fit->residual = rows_relative(rows, squares, tested);
    free(of.left);
    free(of.square);
    return true;
}

/* --- any weights --- */

/* Gram matrix of the rows fitted, with a constant as the last term, factored in place:
 * lower triangle of Cholesky's. */
static bool full_factor(const double *x, uint64_t terms, uint64_t count, double *gram)
{
    const uint64_t n = terms + 1;

    memset(gram, 0, n * n * sizeof *gram);
    for (uint64_t r = 0; r < count; r++) {
        if (is_tested(r))
            continue;
        for (uint64_t i = 0; i < n; i++) {
            const double xi = i < terms ? x[r * terms + i] : 1;
            for (uint64_t j = 0; j <= i; j++)
                gram[i * n + j] += xi * (j < terms ? x[r * terms + j] : 1);
        }
    }
    for (uint64_t i = 0; i < n; i++) { /* inputs that are always zero carry no weight */
        gram[i * n + i] += gram[i * n + i] * 1e-13 + (gram[i * n + i] > 0 ? 0 : 1);
        for (uint64_t j = 0; j <= i; j++) {
            double sum = gram[i * n + j];
            for (uint64_t k = 0; k < j; k++)
                sum -= gram[i * n + k] * gram[j * n + k];
            if (i == j && !(sum > 0))
                return false;
            gram[i * n + j] = i == j ? sqrt(sum) : sum / gram[j * n + j];
        }
    }
    return true;
}

static void full_solve(const double *factor, uint64_t n, double *weights)
{
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < i; k++)
            weights[i] -= factor[i * n + k] * weights[k];
        weights[i] /= factor[i * n + i];
    }
    for (uint64_t i = n; i-- > 0;) {
        for (uint64_t k = i + 1; k < n; k++)
            weights[i] -= factor[k * n + i] * weights[k];
        weights[i] /= factor[i * n + i];
    }
}

/* Squares of what the fit leaves of one channel's tested rows. */
static double full_channel(const struct linear_rows *rows, const double *x,
                           const double *error, const double *factor, double *weights)
{
    const uint64_t terms = rows->terms;
    double squares = 0;

    memset(weights, 0, (terms + 1) * sizeof *weights);
    for (uint64_t r = 0; r < rows->count; r++) {
        if (is_tested(r))
            continue;
        for (uint64_t k = 0; k < terms; k++)
            weights[k] += x[r * terms + k] * error[r];
        weights[terms] += error[r];
    }
    full_solve(factor, terms + 1, weights);
    for (uint64_t r = 0; r < rows->count; r++) {
        if (!is_tested(r))
            continue;
        double left = error[r] - weights[terms];
        for (uint64_t k = 0; k < terms; k++)
            left -= weights[k] * x[r * terms + k];
        squares += left * left;
    }
    return squares;
}

bool nd_linear_full(const struct linear_rows *rows, struct linear_fit *ret_fit)
{
    const uint64_t n = rows->terms + 1, fitted = rows->count - rows->count / 4;
    const uint64_t each = rows->channels / rows->groups;
    double squares = 0;
    bool good = fitted >= n + n / 4 + 8 && n * n <= FIT_WORK / fitted / rows->groups;
    double *factor = good ? malloc(n * n * sizeof *factor) : NULL;
    double *weights = good ? malloc(n * sizeof *weights) : NULL;

    good = good && factor != NULL && weights != NULL;
    for (uint64_t c = 0; c < rows->channels && good; c++) {
        const double *x = fit_inputs(rows, c);
        if (c % each == 0)
            good = full_factor(x, rows->terms, rows->count, factor);
        if (good)
            squares +=
                full_channel(rows, x, rows->error + c * rows->count, factor, weights);
    }
    free(factor);
    free(weights);
    if (!good)
        return false;
    *ret_fit = (struct linear_fit){
        .residual = rows_relative(rows, squares, rows->channels * (rows->count / 4)),
        .spread = sqrt(1 + (double)n / (double)(fitted - n))};
    return true;
}
