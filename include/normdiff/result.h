/*
 * The result of a comparison: plain constant data, owned by one struct nd_result and
 * freed with nd_result_free().  Reports read it and nothing else.  The JSON report is
 * this structure written out; docs/report.schema.json names every key.
 */
#ifndef NORMDIFF_RESULT_H
#define NORMDIFF_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "normdiff/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ND_NO_INDEX SIZE_MAX

/* Buckets of drift, best first.  The last two stand outside the scale. */
enum nd_tier {
    ND_TIER_EXACT,
    ND_TIER_NOISE,
    ND_TIER_REDUCTION,
    ND_TIER_ELEVATED,
    ND_TIER_FAULT,
    ND_TIER_UNRESOLVED, /* statistics too coarse to see anything */
    ND_TIER_CHECKSUM,   /* checksums differ: no size is known */
    ND_TIER_NONE        /* not compared (JSON null) */
};
#define ND_TIER_COUNT 7 /* those that the summary counts */

/* Why a layer fails; the first that holds, in this order. */
enum nd_fail {
    ND_FAIL_NONE,
    ND_FAIL_MISSING,
    ND_FAIL_UNREADABLE,
    ND_FAIL_SHAPE,
    ND_FAIL_NONFINITE,
    ND_FAIL_INTEGER,
    ND_FAIL_DTYPE,
    ND_FAIL_DRIFT,
    ND_FAIL_LOCALISED,
    ND_FAIL_CHECKSUM /* only with --fail-on any */
};

enum nd_role {
    ND_ROLE_UNKNOWN,
    ND_ROLE_CLEAN,
    ND_ROLE_ORIGIN,
    ND_ROLE_INHERITED,
    ND_ROLE_GAP,
    ND_ROLE_CONTAINER
};

enum nd_tristate { ND_UNKNOWN, ND_NO, ND_YES };
enum nd_match { ND_MATCH_NONE, ND_MATCH_EXACT, ND_MATCH_NORMALISED, ND_MATCH_MAP, ND_MATCH_ORDER, ND_MATCH_LONE };
enum nd_verdict { ND_VERDICT_AGREE, ND_VERDICT_SUSPECT, ND_VERDICT_DRIFT, ND_VERDICT_INCOMPLETE };
enum nd_check_status { ND_CHECK_OK, ND_CHECK_MISMATCH, ND_CHECK_SUSPECT, ND_CHECK_UNKNOWN };
enum nd_cause_status { ND_CAUSE_CONFIRMED, ND_CAUSE_SUPPORTED, ND_CAUSE_POSSIBLE };
enum nd_side { ND_SIDE_UNKNOWN, ND_SIDE_REFERENCE, ND_SIDE_CANDIDATE };
enum nd_step_status { ND_STEP_DONE, ND_STEP_OPEN, ND_STEP_FAILED };

/* The words that JSON uses for the enumerations above; never NULL. */
const char *nd_tier_word(enum nd_tier tier);
const char *nd_evidence_word(enum nd_evidence evidence);
const char *nd_fail_word(enum nd_fail fail); /* NULL for ND_FAIL_NONE */
const char *nd_role_word(enum nd_role role);
const char *nd_order_word(enum nd_order order);
const char *nd_match_word(enum nd_match match);
const char *nd_verdict_word(enum nd_verdict verdict);
const char *nd_check_status_word(enum nd_check_status status);
const char *nd_cause_status_word(enum nd_cause_status status);
const char *nd_side_word(enum nd_side side);
const char *nd_step_status_word(enum nd_step_status status);

/*
 * A sentence of the catalogue with its values.  `id` keys the catalogue (src/text);
 * a parameter is named there as {key}.  NULL id: no sentence.
 */
struct nd_param {
    const char *key;
    const char *text; /* NULL: the value is `number` */
    double      number;
};
struct nd_phrase {
    const char            *id;
    const struct nd_param *params;
    size_t                 param_count;
};

struct nd_dump_info {
    const char   *path;   /* as typed */
    const char   *format; /* the --input-format word */
    const char   *title;  /* the format's name for people */
    const char   *device; /* NULL: not recorded */
    const char   *dtype;  /* the commonest floating dtype among outputs; NULL: none */
    size_t        layers;
    size_t        tensors;
    uint64_t      bytes;
    enum nd_order order;
    bool          partial; /* the run that wrote it did not finish */
};

/* One measured quantity.  `pair` metrics hold a value for each side. */
enum nd_metric_kind { ND_METRIC_NUMBER, ND_METRIC_PAIR, ND_METRIC_INDEX };
struct nd_metric_value {
    const char         *key;
    double              value[2]; /* NUMBER: [0]; PAIR: reference, candidate */
    const uint64_t     *index;    /* INDEX: a logical multi-index */
    uint32_t            index_len;
    enum nd_metric_kind kind;
};

struct nd_worst {
    const uint64_t *index;
    uint32_t        index_len;
    double          reference, candidate;
};

/* The channel or row with the largest drift of its own. */
struct nd_slice {
    uint32_t axis;                /* channel: the axis */
    uint64_t index[ND_MAX_RANK];  /* channel: [0]; row: the index without its last axis */
    uint32_t index_len;
    double   drift;
};

struct nd_nonfinite_side {
    uint64_t nan, pos_inf, neg_inf;
};

struct nd_slot {
    const char                   *name; /* output.0, param.weight ... */
    enum nd_evidence              evidence;
    enum nd_tier                  tier;
    double                        drift; /* NAN: none */
    const char                   *dtype[2];
    struct nd_shape               shape;    /* logical; of the reference */
    const struct nd_shape        *shape_of[2]; /* of rank 0 where there is none */
    const char                   *layout[2]; /* NULL: logical and contiguous */
    uint32_t                      c0;        /* 0: does not apply */
    const char                   *layout_how; /* "declared", "found" or NULL */
    double                        found_drift; /* rel_l2 under a found layout; NAN: none */
    uint64_t                      n, differ;
    bool                          bit_equal;
    double                        hidden_up_to; /* NAN: does not apply */
    const char *const            *notes;        /* short ids */
    size_t                        note_count;
    const struct nd_metric_value *metrics;
    size_t                        metric_count;
    const struct nd_worst        *worst;
    size_t                        worst_count;
    const struct nd_slice        *worst_channel, *worst_row; /* NULL: not known */
    uint64_t                      nonfinite_mismatches, masked;
    struct nd_nonfinite_side      nonfinite[2];
    enum nd_fail                  fails;
    bool                          judged; /* counts for its layer's tier and verdict */
};

struct nd_layer {
    size_t                index;
    int64_t               step, rank; /* -1: none */
    const char           *name, *candidate_name; /* candidate_name NULL: unpaired */
    const char           *original;  /* what the model itself calls it; NULL: not known */
    const char           *type;      /* "" where unknown */
    const char           *direction; /* "forward" or "backward" */
    enum nd_match         matched_by;
    enum nd_tier          tier;
    double                drift; /* NAN: none */
    enum nd_fail          fails;
    double                bound;
    enum nd_tristate      expected;
    enum nd_role          role;
    const struct nd_slot *slots;
    size_t                slot_count;
    size_t                worst_slot; /* the slot that gave the tier, or ND_NO_INDEX */
};

struct nd_finding {
    const char          *id; /* dtype, eps, layout ... */
    enum nd_check_status status;
    const char          *declared[2];  /* NULL: not declared */
    const char          *recovered[2]; /* NULL: not recovered */
    struct nd_phrase     evidence;
    struct nd_phrase     advice;
};

struct nd_cause {
    const char            *id;
    enum nd_cause_status   status;
    enum nd_side           side;
    double                 explains; /* 1 - residual / unexplained residual */
    const struct nd_param *params;
    size_t                 param_count;
    struct nd_phrase       summary;
};

struct nd_step {
    const char         *id; /* randomness, fp32, layers, norm */
    enum nd_step_status status;
    struct nd_phrase    evidence;
    const char *const  *argv; /* the command that would settle it; may be empty */
    size_t              argc;
};

/* Where drift entered, if layers without a partner stand before the first one that shows it. */
struct nd_span {
    size_t             points;     /* layers that are compared; 0: no span */
    size_t             from, to;   /* the last of them that agrees (ND_NO_INDEX: none), and the
                                    * first diverging one */
    const char *const *skipped[2]; /* of reference and candidate: not compared in between */
    size_t             skipped_count[2];
};

struct nd_first { /* first_divergence */
    size_t           layer; /* index into layers, ND_NO_INDEX: none */
    size_t           slot;
    const char      *role; /* "origin", "gap" or "first_over" */
    double           input_drift; /* NAN: no inputs in the dumps */
    struct nd_phrase why;         /* how the role was established */
    struct nd_span   span;
    const char      *stack[2]; /* lines of the call, innermost first, joined by \n; NULL: none */
};

struct nd_named { /* a name and a reason or a partner */
    const char *name, *reason;
};

struct nd_coverage {
    size_t                 pairs, tensors_compared;
    uint64_t               bytes_compared, bytes_total;
    const char *const     *reference_only;
    size_t                 reference_only_count;
    const char *const     *candidate_only;
    size_t                 candidate_only_count;
    const struct nd_named *covered_by;
    size_t                 covered_by_count;
    size_t                 excluded;
    const struct nd_named *skipped;
    size_t                 skipped_count;
    size_t                 uncompared_layers; /* reference layers that cost the exit status */
};

struct nd_policy {
    double      tiers[3];
    const char *metric;  /* "rel_l2" ... */
    const char *metrics; /* "default" or "all" */
    const char *fail_on; /* word or number */
    const char *nan;     /* "equal" or "strict" */
    double      rel_floor, abs_floor; /* NAN: automatic */
    bool        strict_dtype;
    size_t      worst;
    const struct nd_named *tol; /* glob and number */
    size_t      tol_count;
};

struct nd_outcome { /* the last layer's output */
    size_t      layer; /* ND_NO_INDEX: none */
    size_t      slot;
    double      drift;
    double      top1_agreement; /* share of rows; NAN: does not apply */
    uint64_t    top1_rows;
};

/*
 * A candidate that computed nearly all of its layers in a narrower type than the reference
 * (graph compilers do so by default).  dtype[1] NULL: it did not.
 */
struct nd_lowered_layer {
    size_t layer;     /* index into layers */
    double own;       /* relative error that its inputs do not explain; infinite: NaN or
                       * infinity appears */
    double times;     /* that, in roundings of its output to the type */
    double explained; /* drift that roundings alone explain up to here */
};
struct nd_lowered {
    const char *dtype[2];
    size_t      layers, of; /* how many of those with values were lowered */
    double      explains;   /* drift that roundings alone explain, at its largest */
    const struct nd_lowered_layer *ranked; /* those that stand out, worst first */
    size_t                         ranked_count;
};

struct nd_result {
    struct nd_dump_info       dump[2]; /* reference, candidate */
    struct nd_policy          policy;
    struct nd_coverage        coverage;
    size_t                    summary[ND_TIER_COUNT]; /* layers by tier */
    enum nd_verdict           verdict;
    struct nd_phrase          reason;
    int                       exit_code;
    struct nd_outcome         outcome;
    size_t                    first_elevated, first_fault, first_origin; /* or ND_NO_INDEX */
    struct nd_first           first;
    struct nd_lowered         lowered;
    const struct nd_finding  *checklist;
    size_t                    checklist_count;
    const struct nd_cause    *causes;
    size_t                    cause_count;
    const struct nd_step     *steps;
    size_t                    step_count;
    const struct nd_layer    *layers;
    size_t                    layer_count;
    bool                      order_borrowed; /* layers stand in the candidate's order, not the
                                               * reference's, which records none */
    const struct nd_phrase   *warnings; /* for standard error: swapped devices, same path ... */
    size_t                    warning_count;
    void                     *arena;
};

void nd_result_free(struct nd_result *result); /* NULL is fine */

/* What --list shows: one dump, its layers and slots. */
struct nd_list_slot {
    const char      *name;
    enum nd_evidence evidence;
    const char      *dtype; /* NULL: unknown */
    struct nd_shape  shape; /* logical */
    struct nd_shape  storage;
    const char      *layout; /* NULL: logical and contiguous */
    const char      *broken; /* NULL: readable; else why not */
    const char      *meaning; /* what the operator calls this output: rstd; NULL: unknown */
    bool             has_stats;
    double           max, min, mean, norm; /* NAN: unknown */
    struct nd_nonfinite_side nonfinite;
    uint64_t         n;
    bool             is_nan[4]; /* max, min, mean, norm: NaN was printed, it is not unknown */
};
struct nd_list_layer {
    const char                *name, *type, *direction;
    int64_t                    call, step, rank;
    const char                *attributes; /* "eps=1e-05 training=false", "" where none */
    bool                       container;
    const struct nd_list_slot *slots;
    size_t                     slot_count;
};
struct nd_listing {
    struct nd_dump_info         dump;
    const struct nd_list_layer *layers;
    size_t                      layer_count;
    const char *const          *ignored; /* what the container holds besides tensors */
    size_t                      ignored_count;
    void                       *arena;
};

void nd_listing_free(struct nd_listing *listing); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
