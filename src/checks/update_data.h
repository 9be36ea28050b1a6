/*
 * One parameter of one layer around one step of the optimiser, on both sides: its values
 * before and after, and the gradients in between.  A dump that holds several steps shows
 * them under the layer's name at the step and at the one before.
 */
#ifndef ND_CHECKS_UPDATE_DATA_H
#define ND_CHECKS_UPDATE_DATA_H

#include "checks/facts.h"

/* The layers of all steps, sorted so that those of one name at one step are found. */
struct step_index {
    const struct nd_result *result;
    size_t *layers; /* NULL: one step only */
    size_t count;
};

/* False without memory. */
bool nd_steps_index(const struct nd_result *result, struct step_index *ret_index);
void nd_steps_done(struct step_index *index);

enum { UPDATE_HISTORY = 6 };

struct update {
    size_t layer, slot; /* the parameter after the step, in the result */
    const char *name;   /* "weight" */
    uint64_t n, total;  /* elements that were taken, and all there are */
    unsigned history;   /* steps whose gradients are known, at least 1 */
    /* [side][j]: j steps before the last.  p[.][0] is after the step, p[.][1] before it,
     * g[.][0] the gradient in between. */
    double *p[2][UPDATE_HISTORY + 1], *g[2][UPDATE_HISTORY];
    double roundoff[2];      /* that the parameters were kept with */
    double grad_roundoff[2]; /* of the gradients' type */
    double grad_rel;         /* how far the gradients of the two sides are apart, at most */
    bool has_noise; /* before the step the parameter differed by more than rounding */
    enum nd_dtype dtype[2]; /* of the parameters */
    enum grid grid[2];      /* narrower grid that they lie on after the step */
};

/*
 * Loads the largest parameter of layer i that differs while it agreed one step before, to
 * rounding or eight times better, and while its gradient agrees too.  At most `elements`
 * values in blocks spread over the tensor.  False: none, or no memory.
 */
bool nd_update_load(const struct diagnosis_input *input, const struct step_index *index,
                    size_t i, uint64_t elements, struct update *ret_update);
void nd_update_done(struct update *update);

/*
 * What the steps moved the reference's parameter by since both sides agreed on it, relative
 * to its size; 0 where no such step was dumped.  Where gradients are noise, an optimizer that divides by their
 * size moves the sides apart by as much, and nobody loaded other weights.
 */
double nd_update_moved(const struct diagnosis_input *input, const struct step_index *index,
                       size_t i, size_t slot);

/* One side alone keeps the parameter in fewer bits than its type has. */
bool nd_update_is_narrowed(const struct update *update, int side);

/* None of its values moved. */
bool nd_update_is_still(const struct update *update, int side);

/* How the two sides' updates compare where parameter and gradient agree by the element. */
struct update_gap {
    double rel;      /* ||d_c - d_r|| over the larger of the two */
    double allowed;  /* what rounding and the gradients' own differences explain */
    double ratio;    /* ||d_c|| / ||d_r|| */
    double still[2]; /* share of elements that did not move though the other side's did */
};

/* False where too few elements agree to tell. */
bool nd_update_gap(const struct update *update, struct update_gap *ret_gap);

/* Of the parameters of that step, how many did not move on a side; at most 4096 are seen.
 */
void nd_update_count(const struct diagnosis_input *input, const struct step_index *index,
                     size_t i, int side, size_t *ret_still, size_t *ret_count);

#endif
