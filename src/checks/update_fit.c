/*
 * Fitting rules.  What a rule is linear in (rate, decay, momentum) comes out of least
 * squares; eps, and the decay of Adam, out of searches of fixed length.
 */
#include "checks/update_fit.h"

#include <math.h>
#include <stdlib.h>

/* Rounding of a parameter twice (decay, then the step) at 0.42 u each; an Adam step of a
 * handful of float32 operations. */
static const double ROUNDINGS = 0.6, ARITHMETIC = 2;
static const double FITS = 2.5;   /* times the floor, as for every cause */
static const double BETTER = 1.3; /* a further term has to earn its place */

bool nd_update_fits(double residual, double floor)
{
    return residual <= FITS * floor && residual < 0.05;
}

double nd_update_floor(const struct update *update, int side)
{
    const double u = update->roundoff[side], v = update->grad_roundoff[side];
    double rounding = 0, size = 0;

    for (uint64_t i = 0; i < update->n; i++) {
        const double p = update->p[side][0][i], d = p - update->p[side][1][i];
        if (!isfinite(d))
            continue;
        rounding += ROUNDINGS * ROUNDINGS * u * u * p * p;
        size += d * d;
    }
    return size > 0 ? hypot(sqrt(rounding / size), ARITHMETIC * v) : HUGE_VAL;
}

/* --- the direction of one element --- */

static double direction(const struct update *update, int side,
                        const struct update_rule *rule, uint64_t i)
{
    double m = 0, v = 0, one = 1, two = 1;

    if (rule->kind == UPDATE_SGD)
        return update->g[side][0][i];
    for (unsigned j = update->history; j-- > 0;) {
        const double coupled = rule->kind == UPDATE_ADAM ? rule->decay : 0;
        const double g = update->g[side][j][i] + coupled * update->p[side][j + 1][i];
        m = rule->beta[0] * m + (1 - rule->beta[0]) * g;
        v = rule->beta[1] * v + (1 - rule->beta[1]) * g * g;
        one *= rule->beta[0];
        two *= rule->beta[1];
    }
    if (!rule->is_raw) {
        m /= 1 - one;
        v /= 1 - two;
    }
    const double root = rule->is_inside ? sqrt(v + rule->eps) : sqrt(v) + rule->eps;
    return root > 0 ? m / root : 0;
}

double nd_update_step(const struct update *update, int side, const struct update_rule *rule,
                      uint64_t i)
{
    const double p = update->p[side][1][i];
    double step = -rule->lr * direction(update, side, rule, i);

    if (rule->kind != UPDATE_ADAM)
        step -= rule->lr * rule->decay * p;
    if (rule->momentum != 0 && update->history > 1)
        step += rule->momentum * (p - update->p[side][2][i]);
    return step;
}

double nd_update_misfit(const struct update *update, int side,
                        const struct update_rule *rule)
{
    double error = 0, size = 0;

    for (uint64_t i = 0; i < update->n; i++) {
        const double d = update->p[side][0][i] - update->p[side][1][i];
        const double e = d - nd_update_step(update, side, rule, i);
        if (!isfinite(e))
            continue;
        error += e * e;
        size += d * d;
    }
    return size > 0 ? sqrt(error / size) : HUGE_VAL;
}

/* --- least squares --- */

enum { TERMS = 3 };

/* Solves the normal equations of up to three terms by elimination with pivots; a term that
 * the others span gets 0. */
static void solve(double a[TERMS][TERMS + 1], unsigned terms, double *ret)
{
    for (unsigned k = 0; k < terms; k++) {
        unsigned pivot = k;
        for (unsigned r = k + 1; r < terms; r++)
            if (fabs(a[r][k]) > fabs(a[pivot][k]))
                pivot = r;
        for (unsigned c = 0; c <= terms; c++) {
            const double swapped = a[k][c];
            a[k][c] = a[pivot][c];
            a[pivot][c] = swapped;
        }
        for (unsigned r = k + 1; r < terms && fabs(a[k][k]) > 1e-12; r++) {
            const double factor = a[r][k] / a[k][k];
            for (unsigned c = k; c <= terms; c++)
                a[r][c] -= factor * a[k][c];
        }
    }
    for (unsigned k = terms; k-- > 0;) {
        double sum = a[k][terms];
        for (unsigned c = k + 1; c < terms; c++)
            sum -= a[k][c] * ret[c];
        ret[k] = fabs(a[k][k]) > 1e-12 ? sum / a[k][k] : 0;
    }
}

static void terms_of(const struct update *update, int side, const struct update_rule *rule,
                     uint64_t i, double *ret)
{
    unsigned count = 0;

    ret[count++] = direction(update, side, rule, i);
    if (rule->has_decay && rule->kind != UPDATE_ADAM)
        ret[count++] = update->p[side][1][i];
    if (rule->has_momentum)
        ret[count++] = update->p[side][1][i] - update->p[side][2][i];
}

/* Sets rate, decay and momentum of a rule whose other constants are given, over every
 * `stride`-th element; the residual is measured on the same. */
static void fit_linear(const struct update *update, int side, uint64_t stride,
                       struct update_rule *rule)
{
    const unsigned terms =
        1u + (rule->has_decay && rule->kind != UPDATE_ADAM) + rule->has_momentum;
    double sum[TERMS][TERMS + 1] = {{0}}, scale[TERMS], got[TERMS] = {0}, x[TERMS] = {0};
    double size = 0, error = 0;

    for (uint64_t i = 0; i < update->n; i += stride) {
        const double d = update->p[side][0][i] - update->p[side][1][i];
        terms_of(update, side, rule, i, x);
        if (!isfinite(d) || !isfinite(x[0]))
            continue;
        size += d * d;
        for (unsigned r = 0; r < terms; r++) {
            for (unsigned c = 0; c < terms; c++)
                sum[r][c] += x[r] * x[c];
            sum[r][terms] += x[r] * d;
        }
    }
    for (unsigned r = 0; r < terms; r++)
        scale[r] = sum[r][r] > 0 ? sqrt(sum[r][r]) : 1;
    for (unsigned r = 0; r < terms; r++) {
        for (unsigned c = 0; c < terms; c++)
            sum[r][c] /= scale[r] * scale[c];
        sum[r][terms] /= scale[r];
    }
    solve(sum, terms, got);
    for (unsigned r = 0; r < terms; r++)
        got[r] /= scale[r];
    for (uint64_t i = 0; i < update->n; i += stride) {
        double e = update->p[side][0][i] - update->p[side][1][i];
        terms_of(update, side, rule, i, x);
        for (unsigned r = 0; r < terms; r++)
            e -= got[r] * x[r];
        error += isfinite(e) ? e * e : 0;
    }
    rule->residual = size > 0 ? sqrt(error / size) : HUGE_VAL;
    rule->lr = -got[0];
    if (rule->kind != UPDATE_ADAM)
        rule->decay = rule->has_decay && rule->lr != 0 ? -got[1] / rule->lr : 0;
    rule->momentum = rule->has_momentum ? got[terms - 1] : 0;
}

/* Keeps the rule that fits better; one with more terms has to be clearly better. */
static void keep(const struct update_rule *rule, struct update_rule *best)
{
    if (!(rule->lr > 0))
        return;
    if (best->kind == UPDATE_NONE || rule->residual * BETTER < best->residual)
        *best = *rule;
}

/* --- SGD --- */

static void fit_sgd(const struct update *update, int side, struct update_rule *best)
{
    for (int form = 0; form < 4; form++) {
        struct update_rule rule = {.kind = UPDATE_SGD,
                                   .has_decay = (form & 1) != 0,
                                   .has_momentum = (form & 2) != 0};
        if (rule.has_momentum && update->history < 2)
            continue;
        fit_linear(update, side, 1, &rule);
        keep(&rule, best);
    }
}

/* --- Adam --- */

/* The pairs in use: torch's default, and those of language models and of GANs. */
static const double betas[][2] = {
    {0.9,  0.999},
    {0.9,  0.95 },
    {0.9,  0.98 },
    {0.9,  0.99 },
    {0.95, 0.95 },
    {0.5,  0.999},
    {0.0,  0.99 },
};
enum {
    BETAS = sizeof betas / sizeof *betas,
    ROUNDS = 40,
    SAMPLE = 1 << 10,
    FINE = 1 << 14
};

static uint64_t stride_of(const struct update *update, uint64_t values)
{
    return update->n <= values ? 1 : update->n / values;
}

/* The constant that is searched for. */
static double *constant_of(struct update_rule *rule, bool is_eps)
{
    return is_eps ? &rule->eps : &rule->decay;
}

/* Golden section on the logarithm, one decade to either side. */
static void refine(const struct update *update, int side, bool is_eps,
                   struct update_rule *rule)
{
    const uint64_t stride = stride_of(update, FINE);
    static const double golden = 0.6180339887498949;
    struct update_rule one = *rule, two = *rule;
    double low = log10(*constant_of(rule, is_eps)) - 1, high = low + 2;

    fit_linear(update, side, stride, rule);
    for (int round = 0; round < ROUNDS; round++) {
        *constant_of(&one, is_eps) = pow(10, high - golden * (high - low));
        *constant_of(&two, is_eps) = pow(10, low + golden * (high - low));
        fit_linear(update, side, stride, &one);
        fit_linear(update, side, stride, &two);
        if (one.residual <= two.residual)
            high = low + golden * (high - low);
        else
            low = high - golden * (high - low);
    }
    if (one.residual < rule->residual)
        *rule = one;
    if (two.residual < rule->residual)
        *rule = two;
}

/* The best eps of a rule, from decade to decade. */
static void search_eps(const struct update *update, int side, uint64_t stride, int step,
                       struct update_rule *rule)
{
    struct update_rule best = {.residual = HUGE_VAL};

    for (int decade = -12; decade <= 0; decade += step) {
        struct update_rule one = *rule;
        one.eps = pow(10, decade);
        fit_linear(update, side, stride, &one);
        if (one.residual < best.residual)
            best = one;
    }
    *rule = best;
}

/* The numbers tell eps only where another one fits worse. */
static void settle_eps(const struct update *update, int side, struct update_rule *rule)
{
    struct update_rule less = *rule, more = *rule;

    less.eps /= 2;
    more.eps *= 2;
    fit_linear(update, side, 1, &less);
    fit_linear(update, side, 1, &more);
    rule->has_eps = fmin(less.residual, more.residual) > BETTER * rule->residual;
}

static bool is_first_step(const struct update *update)
{
    return update->history == 1;
}

/* Terms were chosen with eps known to a decade only: once more with the right one. */
static void refine_terms(const struct update *update, int side, struct update_rule *rule)
{
    struct update_rule other = *rule;

    other.has_decay = !rule->has_decay;
    refine(update, side, true, rule);
    refine(update, side, true, &other);
    fit_linear(update, side, 1, rule);
    fit_linear(update, side, 1, &other);
    if (rule->has_decay ? other.residual <= BETTER * rule->residual
                        : other.residual * BETTER < rule->residual)
        *rule = other;
}

/* The best betas and correction for one place of eps. */
static void fit_adamw_form(const struct update *update, int side, bool is_inside,
                           struct update_rule *best)
{
    const int pairs = is_first_step(update) ? 1 : BETAS,
              raws = is_first_step(update) ? 1 : 2;
    const uint64_t stride = stride_of(update, SAMPLE);
    struct update_rule found = {.kind = UPDATE_NONE};

    for (int form = 0; form < pairs * raws * 2; form++) {
        const double *pair = betas[form / 2 % pairs];
        struct update_rule rule = {
            .kind = UPDATE_ADAMW,
            .beta = {pair[0], pair[1]},
            .has_betas = !is_first_step(update),
            .has_decay = (form & 1) != 0,
            .is_inside = is_inside,
            .is_raw = form / 2 / pairs != 0
        };
        search_eps(update, side, stride, 1, &rule);
        keep(&rule, &found);
    }
    if (found.kind == UPDATE_NONE || found.residual > 0.5)
        return;
    refine_terms(update, side, &found);
    settle_eps(update, side, &found);
    keep(&found, best);
}

static void fit_adamw(const struct update *update, int side, struct update_rule *best)
{
    fit_adamw_form(update, side, false, best);
    if (!nd_update_fits(best->residual, nd_update_floor(update, side)))
        fit_adamw_form(update, side, true, best);
}

/* Decay that goes through the moments. */
static void fit_adam(const struct update *update, int side, struct update_rule *best)
{
    static const double decays[] = {1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3,
                                    1e-2, 3e-2, 1e-1, 3e-1, 1};
    const int pairs = is_first_step(update) ? 1 : BETAS;
    const uint64_t stride = stride_of(update, SAMPLE);
    struct update_rule found = {.kind = UPDATE_NONE};

    for (int pair = 0; pair < pairs; pair++)
        for (size_t k = 0; k < sizeof decays / sizeof *decays; k++) {
            struct update_rule rule = {
                .kind = UPDATE_ADAM,
                .beta = {betas[pair][0], betas[pair][1]},
                .has_betas = !is_first_step(update),
                .has_decay = true,
                .decay = decays[k]
            };
            search_eps(update, side, stride, 2, &rule);
            if (found.kind == UPDATE_NONE || rule.residual < found.residual)
                found = rule;
        }
    if (found.residual > 0.5)
        return;
    for (int round = 0; round < 3; round++) {
        refine(update, side, false, &found);
        refine(update, side, true, &found);
    }
    fit_linear(update, side, 1, &found);
    settle_eps(update, side, &found);
    keep(&found, best);
}

bool nd_update_fit(const struct update *update, int side, struct update_rule *ret_rule)
{
    struct update_rule best = {.kind = UPDATE_NONE, .residual = HUGE_VAL};
    const double floor = nd_update_floor(update, side);

    fit_sgd(update, side, &best);
    if (!nd_update_fits(best.residual, floor))
        fit_adamw(update, side, &best);
    if (!nd_update_fits(best.residual, floor))
        fit_adam(update, side, &best);
    best.floor = floor;
    if (!nd_update_fits(best.residual, floor))
        best.kind = UPDATE_NONE;
    *ret_rule = best;
    return best.kind != UPDATE_NONE;
}
