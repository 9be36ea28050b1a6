/*
 * Do other weights explain the output exactly?  The error of a linear layer or convolution
 * is then a fixed linear map of its input: one factor on all weights, a few single weights,
 * or, with more rows than weights a channel, any weights at all.  What is fitted to three
 * quarters of the rows is tested on the last quarter, so a fit that holds is a proof.
 */
#include "checks/linear_fit.h"
#include "checks/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks/flat.h"

/* Layers before this one whose output may be its input, where none is dumped. */
enum { PROOF_BEHIND = 10 };

/* The bias alone is another cause's; the output alone is rounded by its own type. */
static const double PROOF_FACTOR = 2.5, PROOF_SHARE = 0.5;

struct proof {
    double floor;     /* relative, of what honest sides leave */
    double residual;  /* of the best form */
    double error;     /* that there was to explain */
    const char *form; /* NULL: none fits */
    double scale;
    uint64_t wrong, channels, terms; /* terms: changed weights of a sparse change */
};

static void proof_take(struct proof *proof, const char *form, double residual, double floor)
{
    if (proof->form != NULL || !(residual <= PROOF_FACTOR * floor) ||
        !(residual <= PROOF_SHARE * proof->error))
        return;
    proof->form = form;
    proof->residual = residual;
    proof->floor = floor;
}

/* Too few rows to fit them all: like rows have like errors, which is a hint. */
static void proof_hint(struct subject *subject, const struct linear_rows *rows,
                       const struct proof *proof, int side)
{
    double error;
    const double slope = nd_linear_gram(rows, &error);
    const bool is_map = error < 0.1 && slope > 0.85 && slope < 1.25;

    if (!is_map || !(proof->error > 4 * proof->floor) ||
        nd_linear_constant(rows) <= PROOF_SHARE * proof->error)
        return;
    const struct hypothesis weights = {
        .id = "different_weights",
        .residual = (double)NAN,
        .is_fingerprint = true,
        .penalty = -0.7,
        .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
        .summary = ND_PHRASE(subject->arena, "summary.different_weights.map",
                             ND_NUMBER("slope", slope),
                             ND_NUMBER("channels", (double)proof->wrong),
                             ND_NUMBER("count", (double)proof->channels))};
    ND_PROPOSE(subject, weights, ND_NUMBER("slope", slope));
}

/* All forms on one set of rows; `has_scale`: the products stand in the rows as they are. */
static void proof_try(struct linear_rows *rows, bool has_scale, struct proof *proof)
{
    const double floor = proof->floor;
    struct linear_fit fit;

    proof->error = nd_linear_error(rows);
    proof->channels = rows->channels;
    if (!(proof->error > 4 * floor) || nd_linear_constant(rows) <= 4 * floor)
        return;
    proof->wrong = nd_linear_wrong(rows, 6 * floor);
    if (has_scale) {
        nd_linear_scale(rows, &fit);
        proof->scale = fit.scale;
        proof_take(proof, "scaled", fit.residual, floor);
    }
    if (nd_linear_sparse(rows, floor, &fit)) {
        proof->terms = fit.terms;
        proof_take(proof, "single", fit.residual, floor);
    }
    if (nd_linear_full(rows, &fit))
        proof_take(proof, "all", fit.residual, floor * fit.spread);
}

static void proof_propose(struct subject *subject, const struct proof *proof, int side)
{
    const struct nd_param params[] = {ND_WORD("form", proof->form),
                                      ND_NUMBER("scale", 1 + proof->scale),
                                      ND_NUMBER("weights", (double)proof->terms),
                                      ND_NUMBER("channels", (double)proof->wrong),
                                      ND_NUMBER("count", (double)proof->channels),
                                      ND_NUMBER("residual", proof->residual),
                                      ND_NUMBER("is_candidate", side)};
    const char *const id =
        strcmp(proof->form, "scaled") == 0   ? "summary.different_weights.scaled"
        : strcmp(proof->form, "single") == 0 ? "summary.different_weights.single"
                                             : "summary.different_weights.fitted";
    const struct hypothesis weights = {
        .id = "different_weights",
        .residual = proof->residual,
        .floor = proof->floor,
        .is_certain = true,
        .penalty = 1, /* behind what the comparison itself shows */
        .side = side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
        .params = params,
        .param_count = 5,
        .summary =
            nd_phrase_make(subject->arena, id, params, sizeof params / sizeof *params)};

    nd_propose(subject, &weights);
}

/* --- weights and input at hand --- */

static bool proof_with_weights(struct subject *subject)
{
    const double u = subject->own->roundoff;
    struct proof proof = {.form = NULL};
    struct product product;
    struct linear_rows rows;

    if (!nd_product_open(subject->pair, fmax(4 * u, 64 * 0x1p-24), subject->input->max_mem,
                         subject->index, &product))
        return false;
    const int bad = product.residual[1] >= product.residual[0];
    const double honest = product.residual[!bad];
    proof.floor = fmax(honest, fmax(0.4247 * u, 0x1p-24));
    if (product.form != PRODUCT_TIMES && product.form != PRODUCT_SCORES &&
        nd_linear_of_product(&product, subject->pair, bad, &rows)) {
        proof_try(&rows, true, &proof);
        if (proof.form == NULL)
            proof_hint(subject, &rows, &proof, bad);
        nd_linear_done(&rows);
    }
    nd_product_close(&product);
    if (proof.form != NULL)
        proof_propose(subject, &proof, bad);
    return true;
}

/* --- without weights: the sides' difference against the input --- */

static const struct tensor_view *proof_view(const struct layer_view *layer,
                                            const char *name)
{
    const struct slot_view *slot = layer == NULL ? NULL : nd_layer_slot(layer, name);

    return slot != NULL && slot->has_tensor && slot->tensor.count > 0 &&
                   nd_dtype_info(slot->tensor.dtype)->kind == ND_KIND_FLOAT
               ? &slot->tensor
               : NULL;
}

static bool proof_from(struct subject *subject, const struct tensor_view *input)
{
    struct proof proof = {.floor = fmax(subject->floor, 0x1p-24)};
    struct linear_rows rows;

    if (input == NULL ||
        !nd_linear_of_views(input, &subject->shape, subject->actual, subject->expected,
                            subject->input->max_mem, &rows))
        return false;
    proof_try(&rows, false, &proof);
    nd_linear_done(&rows);
    if (proof.form != NULL)
        proof_propose(subject, &proof, subject->side);
    return proof.form != NULL;
}

static void proof_without_weights(struct subject *subject)
{
    const struct tensor_view *input =
        proof_view(subject->pair->side[subject->side], "input.0");

    if (subject->shape.rank < 2 || strcmp(subject->own->op->name, "linear") != 0)
        return;
    if (input != NULL) {
        (void)proof_from(subject, input);
        return;
    }
    size_t i = nd_before(subject->input, subject->index);
    for (int back = 0; back < PROOF_BEHIND && i != ND_NO_INDEX;
         back++, i = nd_before(subject->input, i)) {
        if (!subject->facts[i].container &&
            proof_from(subject, proof_view(nd_pair_of(subject->input, i)->side[subject->side],
                                           "output.0")))
            return;
    }
}

/* A norm that was folded into the layer is no fault of its weights. */
static bool proof_is_folded(const struct subject *subject)
{
    for (size_t i = 0; i < subject->hypothesis_count; i++)
        if (strcmp(subject->hypotheses[i].id, "not_same_tensor") == 0)
            return true;
    return false;
}

static void proof_run(struct subject *subject, struct nd_finding *finding)
{
    const struct op *op = subject->own->op;

    (void)finding;
    /* A permutation or a tail says more than the weights that would do the same. */
    if (!nd_flat_asked(subject) || op == NULL || !op->product || !op->bias ||
        subject->slot == NULL || strcmp(subject->slot->name, "output.0") != 0 ||
        proof_is_folded(subject) ||
        nd_has_confirmed(subject, "one_channel different_weights"))
        return;
    if (!proof_with_weights(subject))
        proof_without_weights(subject);
}

const struct check nd_check_weights_proof = {
    .id = "weights_proof", .of_products = true, .run = proof_run};
