/*
 * The diagnosis: where drift entered, and why.  A check is one question about the first
 * diverging layer, one line of the checklist, and the causes it can name: one file
 * check_<word>.c each (see subject.h) and one row of checks.def.
 */
#ifndef ND_CHECKS_CHECK_H
#define ND_CHECKS_CHECK_H

#include "base/arena.h"
#include "checks/runs.h"
#include "normdiff/result.h"
#include "tensor/view.h"

/* A dump given beside the pair (--rerun-*, --golden, --fp32-*), compared by the same rules.
 */
struct side_evidence {
    bool given;
    size_t compared;        /* layers */
    bool bit_equal;         /* all of them */
    double worst;           /* largest drift of a layer */
    size_t over;            /* layers that are elevated or worse */
    const char *first_over; /* NULL: none */
    const double *drift;    /* one a layer of the result; NAN: not there; NULL: not given */
};

/* What every check sees. */
struct diagnosis_input {
    const struct nd_result *result; /* compared and frozen; roles not yet set */
    nd_look_fn *look; /* at the layers of the result, see nd_pair_of() */
    void *layers;
    unsigned worker; /* that looks: threads that look have different ones */
    uint64_t max_mem; /* bytes that diagnosis may allocate */
    unsigned jobs;
    const struct run_index *runs; /* nd_diagnose() makes it */
    struct side_evidence rerun[2];  /* the side against its own second run */
    struct side_evidence golden[2]; /* the side against the golden dump */
    struct side_evidence fp32;      /* the two float32 runs against each other */
    const char *fp32_path[2];       /* what was compared there */
    /* The options that were given, as words: how to read, match and judge; further dumps. */
    const char *const *given, *const *given_dumps;
    size_t given_count, given_dump_count;
};

/* The views of result->layers[index]; how long they stay: see ND_LOOKS_KEPT. */
static inline const struct layer_pair_view *nd_pair_of(const struct diagnosis_input *input,
                                                       size_t index)
{
    return input->look(input->layers, input->worker, index);
}

/* The layer before this one in its run; ND_NO_INDEX: none. */
static inline size_t nd_before(const struct diagnosis_input *input, size_t index)
{
    return input->runs->before[index];
}

/* What the diagnosis says; normdiff.c copies it into the result. */
struct diagnosis {
    enum nd_role *roles;        /* one a layer */
    enum nd_tristate *expected; /* one a layer */
    struct nd_phrase *role_why; /* one a layer; id NULL: nothing to say */
    size_t origin;              /* ND_NO_INDEX: none established */
    const char *origin_role;    /* "origin" or "gap" */
    size_t origin_slot;
    /* The layer that the checklist is about: the origin, else the first one at or after
     * `over_bar` that is elevated or worse and not expected, else ND_NO_INDEX. */
    size_t first;
    double input_drift; /* of that layer; NAN: no inputs */
    struct nd_phrase why;
    struct nd_lowered lowered;
    struct nd_finding *checklist;
    size_t checklist_count;
    struct nd_cause *causes;
    size_t cause_count;
    struct nd_step *steps;
    size_t step_count;
};

/*
 * Everything allocated comes from `arena`, the result's own.  `over_bar` is the layer that
 * first_divergence falls back to where no origin is established (ND_NO_INDEX: none).
 */
enum nd_status nd_diagnose(const struct diagnosis_input *input, size_t over_bar,
                           struct arena *arena, struct diagnosis *ret,
                           struct nd_error *err);

#endif
