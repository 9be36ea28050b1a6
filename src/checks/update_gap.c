/*
 * Two steps of the optimiser compared element by element, whatever their rules.
 */
#include "checks/update_fit.h"

#include <math.h>

/* A gradient this close to the other side's moves a parameter alike under every rule: Adam
 * turns the sign of one that is all noise into a whole step. */
static const double ALIKE = 0x1p-10;
static const double BEYOND = 8;

bool nd_update_is_narrowed(const struct update *update, int side)
{
    return update->grid[side] != GRID_NONE && update->grid[!side] == GRID_NONE &&
           update->dtype[0] == update->dtype[1] &&
           update->roundoff[side] >= 8 * update->roundoff[!side];
}

/* Where only one side lies on a narrower grid, that is a difference and no rounding. */
static double gap_roundoff(const struct update *update)
{
    for (int side = 0; side < 2; side++)
        if (nd_update_is_narrowed(update, side))
            return update->roundoff[!side];
    return hypot(update->roundoff[0], update->roundoff[1]);
}

static bool element_agrees(const struct update *update, uint64_t i)
{
    const double pr = update->p[0][1][i], pc = update->p[1][1][i];

    for (unsigned j = 0; j < update->history; j++) {
        const double gr = update->g[0][j][i], gc = update->g[1][j][i];
        if (!isfinite(gr) || !isfinite(gc) || !(fabs(gc - gr) <= ALIKE * fabs(gr)))
            return false;
    }
    return isfinite(pr) && isfinite(pc) && isfinite(update->p[0][0][i]) &&
           isfinite(update->p[1][0][i]) &&
           (update->has_noise || fabs(pc - pr) <= 4 * gap_roundoff(update) * fabs(pr));
}

bool nd_update_gap(const struct update *update, struct update_gap *ret_gap)
{
    double error = 0, size[2] = {0, 0}, rounding = 0;
    uint64_t agree = 0, still[2] = {0, 0};
    const double coarse = gap_roundoff(update);

    for (uint64_t i = 0; i < update->n; i++) {
        if (!element_agrees(update, i))
            continue;
        const double dr = update->p[0][0][i] - update->p[0][1][i];
        const double dc = update->p[1][0][i] - update->p[1][1][i];
        agree++;
        error += (dc - dr) * (dc - dr);
        size[0] += dr * dr;
        size[1] += dc * dc;
        rounding += coarse * coarse * update->p[0][0][i] * update->p[0][0][i];
        still[0] += dr == 0 && dc != 0;
        still[1] += dc == 0 && dr != 0;
    }
    const double larger = fmax(size[0], size[1]);
    if (agree < 8 || agree * 2 < update->n || !(larger > 0))
        return false;
    ret_gap->rel = sqrt(error / larger);
    ret_gap->ratio = size[0] > 0 ? sqrt(size[1] / size[0]) : HUGE_VAL;
    ret_gap->allowed =
        BEYOND * fmax(sqrt(rounding / larger),
                      fmax(update->grad_rel,
                           fmax(update->grad_roundoff[0], update->grad_roundoff[1])));
    for (int side = 0; side < 2; side++)
        ret_gap->still[side] = (double)still[side] / (double)agree;
    return true;
}

bool nd_update_is_still(const struct update *update, int side)
{
    for (uint64_t i = 0; i < update->n; i++)
        if (update->p[side][0][i] != update->p[side][1][i])
            return false;
    return true;
}

/* The rules differ where one leaves this many times what rounding leaves. */
static const double OTHER = 5;

bool nd_update_rules_differ(const struct update *update, const struct update_rule rule[2])
{
    const double other =
        fmax(nd_update_misfit(update, 1, &rule[0]), nd_update_misfit(update, 0, &rule[1]));

    return other > OTHER * fmax(rule[0].floor, rule[1].floor);
}

bool nd_update_is_damage(const struct update *update, const bool fits[2],
                         const struct update_rule rule[2])
{
    const int known = fits[0] ? 0 : 1;
    const double u = fmax(update->roundoff[!known], update->grad_roundoff[!known]);
    uint64_t follow = 0;

    if (fits[0] == fits[1])
        return false;
    for (uint64_t i = 0; i < update->n; i++) {
        const double p = update->p[!known][1][i], d = update->p[!known][0][i] - p;
        const double step = nd_update_step(update, !known, &rule[known], i);
        follow += fabs(d - step) <= BEYOND * u * (fabs(p) + fabs(step));
    }
    return 2 * follow > update->n;
}
