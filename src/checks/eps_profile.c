/*
 * The search: a grid of logarithms, then golden sections, with a fit at each point.
 */
#include "checks/eps_profile.h"

#include <math.h>

#include "checks/affine_fit.h"

const double nd_eps_common[] = {1e-12, 1e-9,    1e-8, 1e-7,   0x1p-23, 1e-6, 1e-5,
                                1e-4,  0x1p-10, 1e-3, 0x1p-7, 1e-2,    1e-1};
const size_t nd_eps_common_count = sizeof nd_eps_common / sizeof *nd_eps_common;

double nd_eps_profile(struct formula *formula, double eps)
{
    struct norm_study *study = &formula->study;
    const int side = study->fitted_on;
    struct residual residual;

    study->model[0].eps = study->model[1].eps = eps;
    if (!nd_affine_fit(&formula->sample, side, &study->model[side], study->fitted_weight,
                       study->fitted_bias) ||
        !nd_norm_residual(&formula->sample, side, &study->model[side], &residual))
        return HUGE_VAL;
    return residual.rel;
}

enum {
    PROFILE_LIMIT = 1 << 17,
    PROFILE_MOST = 1 << 19, /* long rows: a few dozen of them fix their channels */
    PROFILE_ROWS = 48,
    PROFILE_GRID = 45,
    PROFILE_GOLDEN = 30
};

/* That side's eps where its weights are unknown too: a search with a fit at each point. */
static void eps_search_profile(struct formula *formula, struct eps_fit *ret)
{
    const double step = 12.0 / (PROFILE_GRID - 1), golden = (sqrt(5) - 1) / 2;
    const double rows = (double)formula->sample.count;
    double best = HUGE_VAL, low = -13, high = -1;

    for (int i = 0; i < PROFILE_GRID; i++) {
        const double residual = nd_eps_profile(formula, pow(10, -13 + i * step));
        if (residual >= best)
            continue;
        best = residual;
        low = -13 + (i > 0 ? i - 1 : 0) * step;
        high = -13 + (i < PROFILE_GRID - 1 ? i + 1 : i) * step;
    }
    for (int i = 0; i < PROFILE_GOLDEN; i++) {
        const double c = high - golden * (high - low), d = low + golden * (high - low);
        if (nd_eps_profile(formula, pow(10, c)) < nd_eps_profile(formula, pow(10, d)))
            high = d;
        else
            low = c;
    }
    const double eps = pow(10, (low + high) / 2), h = 0.05;
    const double at = nd_eps_profile(formula, eps),
                 up = nd_eps_profile(formula, eps * (1 + h));
    const double down = nd_eps_profile(formula, eps * (1 - h));
    const double bend = (up * up - 2 * at * at + down * down) / (eps * h * eps * h);
    *ret = (struct eps_fit){.eps = eps, .residual = at, .rows = formula->sample.count};
    ret->sigma = bend > 0 ? sqrt(2 * at * at / (rows * bend)) : HUGE_VAL;
    ret->upper = eps + 3 * ret->sigma;
    ret->identifiable = ret->sigma < 0.1 * eps;
    for (size_t i = 0; i < nd_eps_common_count; i++)
        if (fabs(nd_eps_common[i] - eps) < 3 * ret->sigma + 0.01 * eps &&
            nd_eps_profile(formula, nd_eps_common[i]) <= 1.02 * at) {
            ret->eps = nd_eps_common[i];
            break;
        }
}

bool nd_eps_of_reference(struct formula *formula, struct eps_fit *ret)
{
    const uint64_t rows = PROFILE_ROWS * formula->sample.rows.row_len;
    const uint64_t most = rows < PROFILE_MOST ? rows : PROFILE_MOST;
    struct formula part = *formula;

    if (!nd_sample_thin(&formula->sample, most > PROFILE_LIMIT ? most : PROFILE_LIMIT,
                        &part.sample))
        return false;
    eps_search_profile(&part, ret);
    nd_sample_done(&part.sample);
    (void)nd_eps_profile(formula, ret->eps);
    return true;
}
