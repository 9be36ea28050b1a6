/*
 * With k(e) = 1 / sqrt(var + e), a row's output is k p + b, where p = w (x - mean).  About
 * a first guess e0 the residual of a row is r - (k - k0) p with r = y - b - k0 p, so three
 * sums a row (r r, r p, p p) give the residual for every eps: the search costs rows, not
 * elements.  A second reading about the best eps keeps the digits that differences lose.
 */
#include "checks/eps_fit.h"

#include <math.h>
#include <stdlib.h>

#include "checks/residual.h"

struct eps_row {
    double var, rr, rp, pp;
};

struct eps_search {
    const struct norm_model *model;
    struct eps_row *rows;
    uint64_t count, row_len;
    double eps0; /* the sums are about this value */
};

static double eps_scale(const struct norm_model *model, double var, double eps)
{
    struct norm_model other = *model;

    other.eps = eps;
    return nd_norm_scale(&other, var);
}

static void eps_sum_row(const struct sample *sample, int side,
                        const struct norm_model *model, uint64_t i, struct eps_row *ret)
{
    const struct op_rows *rows = &sample->rows;
    const double *x = sample->in[side][0] + i * rows->row_len;
    const double *y = sample->out[side] + i * rows->row_len;
    double centre;

    *ret = (struct eps_row){0};
    nd_norm_statistics(model, rows, sample->row[i], x, &centre, &ret->var);
    const double scale = nd_norm_scale(model, ret->var);
    struct op_channel channel = nd_op_channel_first(rows, sample->row[i]);
    for (uint64_t j = 0; j < rows->row_len; j++, nd_op_channel_next(rows, &channel)) {
        const double p = (x[j] - centre) * nd_norm_weight(model, channel.at);
        const double r = y[j] - nd_norm_bias(model, channel.at) - scale * p;
        if (!isfinite(r))
            continue;
        ret->rr += r * r;
        ret->rp += r * p;
        ret->pp += p * p;
    }
}

/* Sums about eps0.  With given statistics the variance is the channel's. */
static void eps_sum(const struct sample *sample, int side, struct eps_search *search,
                    double eps0)
{
    struct norm_model about = *search->model;

    about.eps = search->eps0 = eps0;
    for (uint64_t i = 0; i < search->count; i++)
        eps_sum_row(sample, side, &about, i, &search->rows[i]);
}

static double eps_cost(const struct eps_search *search, double eps)
{
    double cost = 0;

    for (uint64_t i = 0; i < search->count; i++) {
        const struct eps_row *row = &search->rows[i];
        const double d = eps_scale(search->model, row->var, eps) -
                         eps_scale(search->model, row->var, search->eps0);
        cost += row->rr - 2 * d * row->rp + d * d * row->pp;
    }
    return cost;
}

enum { EPS_GRID = 45, EPS_GOLDEN = 30, EPS_NEWTON = 3 };
static const double EPS_LOG_LOW = -13, EPS_LOG_HIGH = -1;

static double eps_golden(const struct eps_search *search)
{
    const double step = (EPS_LOG_HIGH - EPS_LOG_LOW) / (EPS_GRID - 1);
    const double golden = (sqrt(5) - 1) / 2;
    double best = HUGE_VAL;
    int at = 0;

    for (int i = 0; i < EPS_GRID; i++) {
        const double cost = eps_cost(search, pow(10, EPS_LOG_LOW + i * step));
        if (cost < best) {
            best = cost;
            at = i;
        }
    }
    double low = EPS_LOG_LOW + (at > 0 ? at - 1 : 0) * step;
    double high = EPS_LOG_LOW + (at < EPS_GRID - 1 ? at + 1 : at) * step;
    for (int i = 0; i < EPS_GOLDEN; i++) {
        const double c = high - golden * (high - low), d = low + golden * (high - low);
        if (eps_cost(search, pow(10, c)) < eps_cost(search, pow(10, d)))
            high = d;
        else
            low = c;
    }
    return pow(10, (low + high) / 2);
}

/* dk/de */
static double eps_slope(const struct norm_model *model, double var, double eps)
{
    const double k = eps_scale(model, var, eps);

    return model->eps_outside ? -k * k : -k * k * k / 2;
}

/* Least squares on the linearised model: one step from the current point. */
static double eps_newton(const struct eps_search *search, double eps)
{
    double jr = 0, jj = 0;

    for (uint64_t i = 0; i < search->count; i++) {
        const struct eps_row *row = &search->rows[i];
        const double d = eps_scale(search->model, row->var, eps) -
                         eps_scale(search->model, row->var, search->eps0);
        const double slope = eps_slope(search->model, row->var, eps);
        jr += slope * (row->rp - d * row->pp);
        jj += slope * slope * row->pp;
    }
    const double next = jj > 0 ? eps + jr / jj : eps;
    return next > eps / 2 && next < eps * 2 ? next : eps;
}

/*
 * The standard error: the larger of what the residuals show when a row's elements err
 * together (a rounded 1/sigma moves a whole row), and what rounding alone predicts, with
 * float32 statistics and an output rounded to `roundoff`.
 */
static double eps_sigma(const struct eps_search *search, double eps, double roundoff)
{
    const double single = 0x1p-24, rounding = 0.4247 * roundoff;
    double jj = 0, clustered = 0, information = 0;

    for (uint64_t i = 0; i < search->count; i++) {
        const struct eps_row *row = &search->rows[i];
        const double k = eps_scale(search->model, row->var, eps);
        const double d = k - eps_scale(search->model, row->var, search->eps0);
        const double slope = eps_slope(search->model, row->var, eps);
        const double jr = slope * (row->rp - d * row->pp);
        jj += slope * slope * row->pp;
        clustered += jr * jr;
        const double noise =
            single * single + rounding * rounding / (double)search->row_len;
        information += row->pp > 0 ? slope * slope / (k * k) / noise : 0;
    }
    const double rows = (double)search->count;
    const double shown =
        jj > 0 ? sqrt(clustered * rows / fmax(rows - 1, 0.5)) / jj : HUGE_VAL;
    const double predicted = information > 0 ? 1 / sqrt(information) : HUGE_VAL;
    return fmax(shown, predicted);
}

/* The variance that the information about eps comes from, on the whole. */
static double eps_typical_var(const struct eps_search *search, double eps)
{
    double sum = 0, weights = 0;

    for (uint64_t i = 0; i < search->count; i++) {
        const struct eps_row *row = &search->rows[i];
        const double slope = eps_slope(search->model, row->var, eps);
        sum += slope * slope * row->pp * row->var;
        weights += slope * slope * row->pp;
    }
    return weights > 0 ? sum / weights : 0;
}

bool nd_eps_fit(const struct sample *sample, int side, const struct norm_model *model,
                double roundoff, struct eps_fit *ret)
{
    struct eps_search search = {
        .model = model, .count = sample->count, .row_len = sample->rows.row_len};

    search.rows = malloc(search.count * sizeof *search.rows);
    if (search.rows == NULL)
        return false;
    eps_sum(sample, side, &search, model->eps);
    double eps = eps_golden(&search);
    eps_sum(sample, side, &search, eps);
    for (int i = 0; i < EPS_NEWTON; i++)
        eps = eps_newton(&search, eps);
    const double n = (double)nd_sample_elements(sample);
    const double norm =
        nd_finite_rms(sample->out[side], nd_sample_elements(sample)) * sqrt(n);
    *ret = (struct eps_fit){.eps = eps, .rows = search.count};
    ret->residual = norm > 0 ? sqrt(fmax(eps_cost(&search, eps), 0)) / norm : 0;
    ret->sigma = eps_sigma(&search, eps, roundoff);
    ret->upper = eps + 3 * ret->sigma;
    ret->identifiable = ret->sigma < 0.1 * eps;
    ret->typical_var = eps_typical_var(&search, eps);
    free(search.rows);
    return true;
}
