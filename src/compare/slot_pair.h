/*
 * One pair of slots with its bytes at hand: opened, brought to one logical shape, closed.
 */
#ifndef ND_COMPARE_SLOT_PAIR_H
#define ND_COMPARE_SLOT_PAIR_H

#include "compare/compare.h"

struct pair_views {
    struct open_slot   open[2];
    bool               is_open[2];
    struct map         joined; /* concatenated candidate parts, spooled */
    bool               is_joined;
    struct tensor_view view[2]; /* of one logical shape once `ready` */
    enum nd_dtype      real[2];
    bool               ready;
    bool               squeezed;
    bool               search;       /* shapes differ: only the layout search can help */
    bool               contradicts;  /* a declared layout does not fit: the bytes are plain */
    double            *converted;    /* rstd made of a side's variances; NULL: none */
    bool               unreadable;
    uint64_t           padding[2];   /* non-zero padding lanes found */
    char               reason[1536]; /* why not */
};

/* Opens what a slot pair needs; never fails as a whole: see `ready` and `reason`.
 * Thread-safe for different pairs. */
void nd_pair_open(const struct comparison *comparison, const struct layer_pair *layer,
                  const struct slot_pair *slot, struct pair_views *ret);
/* Whether a pair can be measured as streams: a side is deflated, both in logical order, and
 * their shapes meet.  Looks at no bytes. */
bool nd_pair_streams(const struct layer_pair *layer, const struct slot_pair *slot);
/* Opens such a pair: views of deflated sides are without data. */
void nd_pair_open_stream(const struct comparison *comparison, const struct slot_pair *slot,
                         struct pair_views *ret);
/* A side turned out to be unreadable: views are no longer ready. */
void nd_pair_fail(struct pair_views *views, unsigned side, const struct nd_error *err);
/* The path of a file that shrank meanwhile; NULL: none did. */
const char *nd_pair_close(struct pair_views *views);

/* A layout under which the two sides agree far better; labels are for people and JSON. */
struct found_layout {
    struct tensor_view view[2];
    char               label[2][64]; /* "" for the side that is plain */
    uint32_t           c0;
    double             sampled_drift;
    /* Of a blocked layout, to look at its padding; NULL: another reading. */
    const struct layout *layout;
    struct nd_shape      logical, stored; /* in the layout's order of axes */
    bool                 has_order;       /* the view's axis k is logical axis order[k] */
    uint32_t             order[ND_MAX_RANK];
    uint64_t             groups;
    unsigned             side;
};
/* Tries what the element counts allow, by samples; false: nothing fits. plain_drift is the
 * drift of the plain reading (INFINITY where shapes differ). */
bool nd_search_layout(const struct pair_views *views, double plain_drift,
                      struct found_layout *ret);

/* What people call the bytes of shape `stored` whose axes, row-major, are `shape`'s in this
 * order, and what they call `shape` then; each label has `size` bytes. */
void nd_name_permutation(const uint32_t *order, const struct nd_shape *shape,
                         const struct nd_shape *stored, char *ret_stored, char *ret_shape,
                         size_t size);

/* 1 / sqrt(v + eps) of a small tensor of floats, to be freed; NULL: large, or no memory. */
double *nd_rstd_of(const struct tensor_view *view, double eps);

/* Decides without reading values, where that is enough; true: they are to be measured. */
bool nd_slot_needs_values(struct comparison *comparison, struct layer_pair *layer,
                          struct slot_pair *slot);
/* Computes, on all threads, what values that stand beside prints would print; what it leaves
 * out, nd_compare_statistics computes. */
void nd_statistics_ahead(struct comparison *comparison);
/* Statistics on at least one side. */
void nd_compare_statistics(const struct comparison *comparison, const struct layer_pair *layer,
                           struct slot_pair *slot);
/* What a side's values say in statistics: max, min, mean, norm as torch would print them. */
bool nd_statistics_of_values(const struct comparison *comparison, const struct tensor_view *view,
                             enum nd_dtype real, struct statistics *ret);
/* One whole pair on the calling thread (statistics, searches, rare re-measurements). */
void nd_measure_serially(const struct kernel_set *kernels, const struct tensor_view *view,
                         const enum nd_dtype *real, const struct moments_policy *policy,
                         struct nd_moments *ret);

/* Positions a unit of work measures: cuts depend on sizes alone. */
enum { MEASURE_UNIT = 16 * MOMENTS_CHUNK };

struct moments_policy nd_policy_moments(const struct comparison *comparison, double scale);
bool                  nd_pair_is_integer(const struct pair_views *views);
/* Fills the slot's figures and notes from its moments. */
void nd_slot_set_moments(const struct comparison *comparison, struct slot_pair *slot,
                         const struct nd_moments *moments);
/* By the policy's metric; the detail pass makes it final where the metric needs that. */
double nd_slot_drift(const struct comparison *comparison, const struct slot_pair *slot);
/* A plain reading so far off that another layout is worth a search. */
bool nd_slot_is_hopeless(const struct slot_pair *slot);
/* Searches, proves on the whole, and records what was found; where the shapes could not be
 * compared before, views become ready. */
enum nd_status nd_slot_search(const struct comparison *comparison, struct slot_pair *slot,
                              struct pair_views *views, struct nd_error *err);
bool           nd_slot_wants_detail(const struct comparison *comparison, const struct slot_pair *slot);
enum nd_status nd_slot_detail(struct comparison *comparison, struct slot_pair *slot,
                              const struct pair_views *views, struct nd_error *err);

#endif
