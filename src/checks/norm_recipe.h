/*
 * A norm as a kernel computes it, step by step: which steps are rounded, over which
 * elements the statistics run, how the root is taken.  A recipe is a formula with no free
 * parameters, so what follows it to the last digits was computed that way.
 */
#ifndef ND_CHECKS_NORM_RECIPE_H
#define ND_CHECKS_NORM_RECIPE_H

#include "checks/grid.h"
#include "checks/subject.h"

/* Values that a kernel holds on its way; a set of bits. */
enum recipe_place {
    PLACE_INPUT = 1,
    PLACE_MEAN = 2,
    PLACE_CENTRED = 4,
    PLACE_SQUARE = 8,
    PLACE_VAR = 16,
    PLACE_RSTD = 32,
    PLACE_XHAT = 64,
    PLACE_WEIGHTED = 128,
    PLACE_OUT = 256
};

enum recipe_root {
    ROOT_EXACT,
    ROOT_NEWTON, /* the exponent trick, then `bits` Newton steps */
    ROOT_MIDDLE, /* a table of `bits` bits of the mantissa; the middle of each interval */
    ROOT_FLOOR   /* the same, its lower end */
};

/* Sums of squares in float16. */
enum recipe_squares { SQUARES_WIDE, SQUARES_INFINITE, SQUARES_SATURATE };

struct norm_recipe {
    struct norm_model model;
    enum grid grid; /* of the places */
    unsigned places;
    enum recipe_root root;
    unsigned bits;
    double var_factor;  /* on the variance; 0: 1 */
    uint64_t shards;    /* statistics over a part of the row each; 0: over the row */
    int64_t neighbour;  /* elements of the next row counted too, or own ones left out */
    bool eps_by_square; /* eps times the square of the row's largest value */
    enum recipe_squares squares;
    bool wide_squares; /* float16 holds the sum only */
};

/* Room for one row, and where the trial begins: a window of rows about the worst one. */
struct recipe_bench {
    const struct subject *subject;
    /* The formula that the right side follows; statistics of the batch where a BatchNorm
     * is known as scale and shift only. */
    const struct norm_model *model;
    struct sample window;
    uint64_t first;  /* row of the window in the sample */
    double baseline; /* the formula's own misfit there */
};

/* Statistics of the batch for a BatchNorm known as scale and shift only; NULL: that is not
 * so, or the dumps say otherwise. */
const struct norm_model *nd_recipe_batch_model(const struct subject *subject);

/* False where there is no trusted formula of a norm, or nothing inside it is in question.
 */
bool nd_recipe_bench(const struct subject *subject, struct recipe_bench *ret);

/* The wrong side's residual under a recipe; NAN: not measured, or no better than the
 * formula. */
double nd_recipe_misfit(const struct recipe_bench *bench, const struct norm_recipe *recipe);

/*
 * What a recipe that rounds to `roundoff` leaves where it is right: float32 noise moves a
 * few values over the middle between two neighbours of the coarser grid.
 */
double nd_recipe_floor(const struct subject *subject, double roundoff);

/* Rows of a recipe whose sum of squares leaves float16. */
uint64_t nd_recipe_overflows(const struct recipe_bench *bench,
                             const struct norm_recipe *recipe);

#endif
