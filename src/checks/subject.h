/*
 * The first diverging layer as the checks see it: its tensors in float64, the formula that
 * it should follow, and the hypotheses about what it does instead.
 */
#ifndef ND_CHECKS_SUBJECT_H
#define ND_CHECKS_SUBJECT_H

#include "checks/check.h"
#include "checks/facts.h"
#include "checks/origin.h"
#include "checks/phrase.h"
#include "checks/stand_in.h"
#include "checks/window.h"

/* A hypothesis: what the faulty side does, and how much of the error that leaves. */
struct hypothesis {
    const char *id;   /* the cause's */
    double residual;  /* ||y - expected under it|| / ||expected||; NAN: not tested */
    double floor;     /* that confirms it; 0: the subject's */
    double penalty;   /* added to log residual: for free parameters */
    bool is_free;     /* parameters per row or channel: fits too easily */
    bool is_declared; /* stands in the dumps themselves */
    bool is_certain;  /* the comparison itself proves it */
    bool is_weak;     /* something else is likelier: possible at most */
    bool
        is_fingerprint; /* not tested, but the error has the size and shape that it makes */
    enum nd_side side;
    const struct nd_param *params;
    size_t param_count;
    struct nd_phrase summary;
};

enum { MAX_HYPOTHESES = 48 };

struct subject {
    const struct diagnosis_input *input;
    const struct layer_facts *facts; /* of all layers */
    const struct origin *origin;
    const struct nd_lowered *lowered; /* dtype[1] NULL: the candidate is not */
    struct arena *arena;
    size_t index;
    enum origin_kind kind;
    const struct nd_layer *layer;
    const struct nd_slot *slot; /* the output in question; NULL: none */
    const struct layer_facts *own;
    const struct layer_pair_view *pair; /* of large tensors a part: see window */
    const struct layer_pair_view *whole; /* the same pair uncut */
    const struct norm_facts *norm;       /* NULL: no norm */

    int side; /* the one that is thought to be wrong: 1 candidate, 0 reference */
    struct stand_in stand_in; /* the pair with the inputs that were proved */
    struct window window;     /* the part that is looked at, of tensors too large for all */
    bool is_rounded_input;    /* the model's input differs by rounding to a type only */
    bool has_formula;         /* its tensors could be loaded and recomputed */
    bool is_trusted;          /* and the formula reproduces the side that is right */
    bool is_one_sided;        /* the scales of many channels moved one way, as eps does it */
    struct formula formula;
    double unexplained; /* residual that a cause has to explain */
    double floor;       /* residual that rounding leaves */

    /* The wrong side's output and what was expected, in logical order; of the window where
     * there is one.  NULL where the shapes differ, or memory does not allow it. */
    double *actual, *expected;
    uint64_t count;
    struct nd_shape shape;
    double flat_floor; /* nd_flat_floor(), which many ask for; 0: not taken yet */
    bool is_replayed; /* expected is the formula's, else the other side's output */

    struct hypothesis hypotheses[MAX_HYPOTHESES];
    size_t hypothesis_count;
};

/* One line of the checklist. */
struct check {
    const char *id;
    bool is_line;     /* false: names causes only; one that clears finding->id has none */
    bool of_norms;    /* asked about norms, */
    bool of_products; /* about linear layers and convolutions; neither: about all */
    void (*run)(struct subject *subject, struct nd_finding *finding);
};

/* Loads what memory allows; checks say what is missing. */
void nd_subject_open(struct subject *subject, const struct diagnosis_input *input,
                     const struct layer_facts *facts, const struct origin *origin,
                     size_t index, struct arena *arena);
void nd_subject_done(struct subject *subject);

/* Puts a hypothesis forward.  Parameters are copied. */
void nd_propose(struct subject *subject, const struct hypothesis *hypothesis);
void nd_propose_with(struct subject *subject, const struct hypothesis *hypothesis,
                     const struct nd_param *params, size_t param_count);

/* ND_PROPOSE(subject, hypothesis, ND_NUMBER("eps", 1e-5), ...) */
#define ND_PROPOSE(subject_, hypothesis_, ...)                                             \
    nd_propose_with((subject_), &(hypothesis_), (const struct nd_param[]){__VA_ARGS__},    \
                    sizeof((const struct nd_param[]){__VA_ARGS__}) /                       \
                        sizeof(struct nd_param))

/*
 * Puts forward that the wrong side follows `model` instead of the reference's; the residual
 * is measured here and returned (NAN: it could not be).
 */
double nd_propose_norm(struct subject *subject, const char *id,
                       const struct norm_model *model, double penalty,
                       const struct nd_param *params, size_t param_count);

/* The wrong side's residual under another model or other rows; NAN: could not be measured.
 */
double nd_norm_misfit(const struct subject *subject, const struct norm_model *model,
                      const struct op_rows *rows);

/* The wrong side's residual as any scale and shift per channel of its input: what other
 * statistics look like that were not dumped.  Too free to be proved; NAN: could not be
 * measured. */
double nd_norm_free_misfit(const struct subject *subject);

/* A floating-point slot of the layer that has the output's shape; NULL: none such. */
const struct tensor_view *nd_subject_like_output(const struct subject *subject, int side,
                                                 const char *name);

/* The formula of a norm, with its parameters; NULL where none is at hand. */
const struct norm_model *nd_subject_model(const struct subject *subject);

/* Residual of the wrong side against expected values that a check computed; elements where
 * keep is false are left out (keep NULL: none). */
double nd_flat_misfit(const struct subject *subject, const double *expected,
                      const bool *keep);

/* The layer itself is at fault, not what came in. */
static inline bool nd_subject_is_own(const struct subject *subject)
{
    return subject->kind != ORIGIN_INPUT && subject->kind != ORIGIN_GAP &&
           subject->kind != ORIGIN_UPDATE;
}

/* The side that is thought to be wrong. */
enum nd_side nd_subject_side(const struct subject *subject);

/* Texts in the arena: "1.000e-05", ... NULL without memory. */
const char *nd_say_number(const struct subject *subject, double value);

/* A hypothesis under another id than those in `except` is confirmed so far. */
bool nd_has_confirmed(const struct subject *subject, const char *except);

/* Ranks the hypotheses into causes, best first. */
enum nd_status nd_rank_causes(const struct subject *subject, struct nd_cause **ret_causes,
                              size_t *ret_count, struct nd_error *err);

#endif
