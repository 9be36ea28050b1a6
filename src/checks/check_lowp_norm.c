/*
 * Which step inside a norm was rounded, or taken with a coarse root?  Every place and every
 * grid is tried; what is right reproduces the rounding of single values.
 */
#include "checks/norm_recipe.h"

#include <math.h>

/* --- rounded steps --------------------------------------------------------------------- */

struct lowp_row {
    const char *id;
    const char *place; /* as reports name it */
    unsigned places;
};

enum {
    STATISTICS = PLACE_MEAN | PLACE_SQUARE | PLACE_VAR,
    INSIDE = PLACE_MEAN | PLACE_CENTRED | PLACE_SQUARE | PLACE_VAR | PLACE_RSTD | PLACE_XHAT
};

/* Those that PyTorch, CANN and hand-written kernels are known to round at. */
static const struct lowp_row lowp_rows[] = {
    {"norm_internal_lowp", "every step",
     PLACE_INPUT | INSIDE | PLACE_WEIGHTED | PLACE_OUT                                  },
    {"norm_internal_lowp", "every step up to xhat", PLACE_INPUT | INSIDE                },
    {"norm_internal_lowp", "the input",             PLACE_INPUT                         },
    {"norm_internal_lowp", "the input and the output", PLACE_INPUT | PLACE_OUT          },
    {"norm_internal_lowp", "mean and variance",     PLACE_MEAN | PLACE_VAR              },
    {"norm_internal_lowp", "the statistics",        STATISTICS                          },
    {"norm_internal_lowp", "mean, variance, rstd",  STATISTICS | PLACE_RSTD             },
    {"norm_internal_lowp", "the mean",              PLACE_MEAN                          },
    {"norm_internal_lowp", "the variance",          PLACE_VAR                           },
    {"norm_internal_lowp", "x - mean",              PLACE_CENTRED                       },
    {"norm_internal_lowp", "the squares",           PLACE_SQUARE                        },
    {"norm_internal_lowp", "xhat, weight and bias",
     PLACE_XHAT | PLACE_WEIGHTED | PLACE_OUT                                            },
    {"rstd_rounded",       "rstd",                  PLACE_RSTD                          },
    {"cast_before_weight", "xhat",                  PLACE_XHAT                          },
    {"cast_before_weight", "xhat and the output",   PLACE_XHAT | PLACE_OUT              },
};

/* A place that this norm does not have makes a row the twin of another one. */
static bool lowp_applies(const struct norm_model *model, unsigned places)
{
    if (model->var != NULL && (places == (PLACE_MEAN | PLACE_VAR) || places == PLACE_MEAN ||
                               places == PLACE_VAR || places == PLACE_SQUARE ||
                               (places & ~(unsigned)PLACE_RSTD) == STATISTICS))
        return false;
    if (!model->centre && (places == PLACE_MEAN || places == PLACE_CENTRED))
        return false;
    /* Without a weight xhat is the output. */
    return model->weight != NULL ||
           (places & (PLACE_XHAT | PLACE_RSTD | PLACE_INPUT)) != PLACE_XHAT;
}

static void lowp_places(struct subject *subject, const struct recipe_bench *bench)
{
    static const enum grid grids[] = {GRID_BF16, GRID_F16, GRID_TF32};

    for (size_t i = 0; i < sizeof lowp_rows / sizeof *lowp_rows; i++) {
        const struct lowp_row *row = &lowp_rows[i];
        if (!lowp_applies(bench->model, row->places))
            continue;
        for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
            const struct norm_recipe recipe = {
                .model = *bench->model, .grid = grids[g], .places = row->places};
            const struct hypothesis rounded = {
                .id = row->id,
                .residual = nd_recipe_misfit(bench, &recipe),
                .floor = nd_recipe_floor(subject, nd_grid_roundoff(grids[g])),
                .penalty = 0.05 + (grids[g] == GRID_TF32 ? 0.02 : 0),
                .side = nd_subject_side(subject)};
            if (rounded.residual < 0.5 * subject->unexplained)
                ND_PROPOSE(subject, rounded, ND_WORD("dtype", nd_grid_name(grids[g])),
                           ND_WORD("place", row->place));
        }
    }
}

/* --- coarse roots ---------------------------------------------------------------------- */

static void lowp_root(struct subject *subject, const struct recipe_bench *bench,
                      enum recipe_root root, unsigned bits)
{
    static const char *const names[] = {
        [ROOT_EXACT] = "exact",
        [ROOT_NEWTON] = "exponent trick",
        [ROOT_MIDDLE] = "table, middle of the interval",
        [ROOT_FLOOR] = "table, start of the interval",
    };
    const struct norm_recipe recipe = {.model = *bench->model, .root = root, .bits = bits};
    const bool newton = root == ROOT_NEWTON;
    const struct hypothesis coarse = {
        .id = "approximate_rsqrt",
        .residual = nd_recipe_misfit(bench, &recipe),
        .floor = newton ? 0 : nd_recipe_floor(subject, ldexp(1, -(int)bits)),
        .penalty = 0.05,
        .side = nd_subject_side(subject)};

    if (coarse.residual < 0.5 * subject->unexplained)
        ND_PROPOSE(subject, coarse, ND_WORD("method", names[root]),
                   ND_NUMBER(newton ? "steps" : "bits", (double)bits));
}

static void lowp_norm_run(struct subject *subject, struct nd_finding *finding)
{
    struct recipe_bench bench;

    (void)finding;
    if (!nd_recipe_bench(subject, &bench))
        return;
    lowp_places(subject, &bench);
    for (unsigned steps = 0; steps <= 2; steps++)
        lowp_root(subject, &bench, ROOT_NEWTON, steps);
    for (unsigned bits = 6; bits <= 14; bits++) {
        lowp_root(subject, &bench, ROOT_MIDDLE, bits);
        lowp_root(subject, &bench, ROOT_FLOOR, bits);
    }
}

const struct check nd_check_lowp_norm = {
    .id = "lowp_norm", .of_norms = true, .run = lowp_norm_run};
