/*
 * Two dumps become pairs of layers and slots, each pair is measured once, and the figures
 * are judged against the policy.  Reading order: select -> align -> measure -> judge ->
 * freeze.
 */
#ifndef ND_COMPARE_COMPARE_H
#define ND_COMPARE_COMPARE_H

#include "formats/dump.h"
#include "kernels/slices.h"
#include "normdiff/options.h"
#include "normdiff/result.h"

enum { MAX_NOTES = 12 };

/* What became of a pair of slots. */
enum slot_state {
    SLOT_COMPARED,
    SLOT_ONE_SIDED, /* side[0] or side[1] is NULL */
    SLOT_UNREADABLE,
    SLOT_SKIPPED, /* undefined by nature, or evidence that cannot be compared */
    SLOT_SHAPE    /* no layout reconciles the shapes */
};

/* Which side's values are variances that stand for 1 / sqrt(variance + eps). */
enum to_rstd { TO_RSTD_NONE, TO_RSTD_REFERENCE, TO_RSTD_CANDIDATE };

struct slot_pair {
    const struct dump_slot *side[2];
    struct dump_slot       *adjusted[2]; /* --layout applied; NULL: as dumped */
    enum slot_state         state;
    const char             *reason; /* for everything but COMPARED */
    enum to_rstd            to_rstd;
    bool                    scatter; /* an output that is a variance or an rstd, says its type */
    double                  scatter_eps;
    const struct nd_moments *moments; /* zeros, shared, for pairs that need no values */
    bool                    measured; /* moments are there */
    struct nd_detail       *detail;   /* NULL: not run */
    struct worst_slice      channel, row; /* with the detail */
    struct nd_slot         *result;
    const char             *notes[MAX_NOTES];
    bool                    integer;     /* both sides are integers or bool */
    bool                    undefined;   /* skipped: its content has no meaning */
    bool                    one_lsb;     /* integers of a quantising operator, one apart */
    bool                    localised, negligible;
    bool                    kink; /* what is off is a gradient at an activation's kink */
    double                  rms[2]; /* over the n positions; NAN: unknown */
    bool                    differs; /* for --fail-on any */
    const struct statistics *print[2]; /* evidence statistics: what the sides say; or NULL */
};

struct layer_pair {
    const struct dump_layer *side[2]; /* side[1] NULL: unpaired */
    enum nd_match            match;
    int64_t                  step, rank;
    bool                     container; /* frame of other layers of the dump */
    bool                     reordered; /* slots are paired across names */
    const char              *covered_by; /* the candidate's operator that stands for it */
    const char              *original; /* what the model itself calls it; NULL: unknown */
    struct slot_pair        *slots;
    size_t                   slot_count;
    size_t                   worst_slot; /* gave the tier; ND_NO_INDEX: none */
    enum nd_fail             uncompared;  /* MISSING, UNREADABLE or NONE */
    enum nd_fail             drifted;     /* the first of the others, or NONE */
    const struct dump_layer *const *parts; /* concat: candidate layers; NULL: none */
    size_t                   part_count;
    uint32_t                 part_axis; /* counted from the front after wrapping */
    int64_t                  part_axis_asked;
};

struct comparison {
    struct arena             *arena; /* of the result */
    struct arena             *scratch; /* what only pairing needs: freed when it is done */
    const struct nd_options  *options;
    const struct dump        *dump[2];
    const struct kernel_set  *kernels;
    const struct metric      *metric; /* what drift means */
    /* The kind of operator that a layer's type is, as text; false: not known.  May be NULL. */
    bool (*family)(const char *type, char *buf, size_t size);
    struct layer_pair        *layers; /* in execution order; reference's layers */
    size_t                    layer_count;
    const struct dump_layer **unpaired_candidate;
    size_t                    unpaired_candidate_count;
    size_t                    excluded;
    const double             *golden[2]; /* drift against --golden, one a layer; NULL: none */
    struct nd_named          *skipped; /* recomputed calls and the like */
    size_t                    skipped_count, skipped_capacity;
    uint64_t                  bytes_total, bytes_done;
    bool                      order_borrowed; /* of the candidate, since the reference has none */
    bool                      by_graph; /* the candidate's order is that of --fusion */
    struct nd_phrase         *warnings; /* of pairing */
    size_t                    warning_count, warning_capacity;
    uint64_t                  detail_done; /* bytes that the detail pass has read again */
};

/* Chooses the layers that the options ask for and pairs them. */
enum nd_status nd_align(struct comparison *comparison, struct nd_error *err);
/* Measures every pair: hot pass, layout search, detail pass where needed. */
enum nd_status nd_measure(struct comparison *comparison, struct nd_error *err);
/* Runs the detail pass for one layer's slots that lack it. */
enum nd_status nd_measure_detail(struct comparison *comparison, struct layer_pair *layer,
                                 struct nd_error *err);
/* Tiers, localised faults, negligible slots, per-layer verdicts; fills result->layers. */
enum nd_status nd_judge(struct comparison *comparison, struct nd_result *result,
                        struct nd_error *err);
/* After the diagnosis: what depends on it in failures; summary, verdict, exit status. */
void nd_conclude(const struct comparison *comparison, struct nd_result *result);
/* Once the first diverging layer is known: the span in which the drift entered, and where in
 * the program that layer was called. */
enum nd_status nd_span_find(struct comparison *comparison, struct nd_result *result,
                            struct nd_error *err);
void nd_stack_find(const struct comparison *comparison, struct nd_result *result);
/* The coverage lists and counts. */
enum nd_status nd_cover(struct comparison *comparison, struct nd_coverage *coverage,
                        struct nd_error *err);
/* The last layer's output, with top-1 agreement over its last axis. */
void nd_outcome(struct comparison *comparison, const struct nd_result *result,
                struct nd_outcome *ret);
/* (Re)writes one layer's slots into the result, metrics included. */
enum nd_status nd_freeze_layer(struct comparison *comparison, struct layer_pair *pair,
                               struct nd_layer *layer, struct nd_error *err);

/*
 * The layers as the checks see them: every slot's values, as far as mappings and temporary
 * space reach (what lies beyond has no tensor there).
 */
struct evidence {
    const struct comparison *comparison;
    struct held             *held; /* what views need beside the dumps' own mappings, in order */
    size_t                   held_count, held_capacity;
    uint64_t                 memory;  /* bytes of decoded members among it */
    struct glance          **glances; /* one a worker, made by it */
    atomic_bool              short_of_memory; /* layers were shown as empty */
};
enum nd_status nd_evidence_open(struct comparison *comparison, struct evidence *ret,
                                struct nd_error *err);
nd_look_fn nd_evidence_look; /* of a struct evidence; thread-safe for different workers */
void nd_evidence_close(struct evidence *evidence);

/* Adds a warning; the parameters are copied, texts are not. */
enum nd_status nd_warn(struct comparison *comparison, const char *id,
                       const struct nd_param *params, size_t count, struct nd_error *err);
/* Adds a note once. */
void nd_slot_note(struct slot_pair *slot, const char *note);
/* The tier of a drift under the policy's bounds. */
enum nd_tier nd_tier_of(const double *tiers, double drift);
/* The slot's real dtype: what the run computed in. */
enum nd_dtype nd_slot_dtype(const struct dump_slot *slot);

/* nature.c: what an operator's type says about a slot. */
bool nd_layer_leaves_undefined(const struct dump_layer *layer, const char *slot);
bool nd_layer_quantises(const struct dump_layer *layer);

/* image.c: a picture that the device prepares, beside the tensor made of it. */
bool nd_slot_is_image(const struct layer_pair *layer, const struct slot_pair *slot);
bool nd_slot_skip_image(struct arena *arena, struct slot_pair *slot); /* false: no memory */

#endif
