/*
 * Which formula does a norm layer follow?  The parameters are taken from the dumps where
 * they stand there, and estimated from the reference's own input and output where not; the
 * reference is believed when a formula reproduces it.
 */
#ifndef ND_CHECKS_NORM_STUDY_H
#define ND_CHECKS_NORM_STUDY_H

#include "checks/conditioning.h"
#include "checks/residual.h"
#include "ops/norm.h"

/* Where a BatchNorm takes its statistics. */
enum norm_mode { NORM_MODE_BATCH, NORM_MODE_RUNNING, NORM_MODE_AFFINE };

struct norm_study {
    const struct op *op;
    enum norm_mode mode; /* of the reference */
    struct norm_model
        model[2]; /* the reference's formula with each side's own parameters */
    uint64_t channels;
    double declared_eps[2];  /* NAN: not declared */
    double declared_mode[2]; /* training: 1, 0, or NAN */
    bool weights_known;      /* dumped, or declared not to exist */
    int fitted_on;           /* the side that unknown ones were estimated on */
    bool running_known;
    struct leeway leeway; /* what fitted parameters and conditioning add to a residual */
    struct residual residual[2];
    /* Parameters by side; NULL where not dumped. */
    double *weight[2], *bias[2], *mean[2], *var[2];
    double *fitted_weight, *fitted_bias, *zero, *one;
};

/*
 * Studies a layer pair on a sample of its rows.  For a GroupNorm whose groups are not
 * declared the sample must be one row a sample of the batch, and is regrouped in place.
 * False without memory.
 */
bool nd_norm_study_make(const struct op *op, const struct layer_pair_view *pair,
                        struct sample *inout_sample, double roundoff,
                        struct norm_study *ret_study);
void nd_norm_study_done(struct norm_study *study);

/* A BatchNorm of which no more is known than a scale and a shift per channel. */
static inline bool nd_norm_study_is_table(const struct norm_study *study)
{
    return study->op->norm->running &&
           (study->mode == NORM_MODE_AFFINE ||
            (study->mode == NORM_MODE_BATCH && !study->weights_known));
}

/*
 * The study again with its parameters estimated on the candidate: where the reference is
 * the faulty side, its own estimate fits nothing.  Replaces the study, and the groups of
 * the sample, if the candidate then follows its formula to `enough`.
 */
bool nd_norm_study_refit(const struct op *op, const struct layer_pair_view *pair,
                         const struct op_rows *rows, uint64_t count, double roundoff,
                         double enough, struct sample *inout_sample,
                         struct norm_study *inout_study);

/* Measures one side against a model. */
bool nd_norm_residual(const struct sample *sample, int side, const struct norm_model *model,
                      struct residual *ret);

/* The declared eps under its names; NAN: none. */
double nd_declared_eps(const struct layer_view *layer);
/* 1: statistics of the batch, 0: running ones, NAN: not declared. */
double nd_declared_mode(const struct layer_view *layer);

/* Splits rows of a whole sample into `groups` groups each. */
bool nd_sample_regroup(struct sample *sample, uint64_t channels, uint64_t groups);

#endif
