/*
 * Attention scores off by one factor.  With queries and keys at hand both sides' scales are
 * recovered; else the factor between the two outputs.
 */
#include "checks/product.h"
#include "checks/subject.h"

#include <math.h>
#include <string.h>

/* Scores this low are masked positions. */
static const double MASKED = -1e4;

static bool attention_usual(double scale, uint64_t width)
{
    return fabs(scale * sqrt((double)width) - 1) < 1e-2;
}

static void attention_recovered(struct subject *subject, const struct product *product,
                                double floor)
{
    /* The usual scale is 1 / sqrt(width): the side that has it is right. */
    const bool usual[2] = {attention_usual(product->scale[0], product->terms),
                           attention_usual(product->scale[1], product->terms)};
    const int bad = usual[1] && !usual[0] ? 0 : 1;
    const double factor = product->scale[bad] / product->scale[!bad];
    /* Both sides have to be products but for their scale. */
    const double residual = fmax(product->residual[0], product->residual[1]);

    if (!(fabs(factor - 1) > 8 * floor))
        return;
    const struct nd_param params[] = {
        ND_NUMBER("factor", factor), ND_NUMBER("reference", product->scale[0]),
        ND_NUMBER("candidate", product->scale[1]), ND_NUMBER("residual", residual)};
    const struct hypothesis scaled = {
        .id = "attention_scale",
        .residual = residual,
        .floor = floor,
        .penalty = 0.02,
        .side = bad == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
        .params = params,
        .param_count = 3,
        .summary =
            nd_phrase_make(subject->arena, "summary.attention_scale.known", params, 4)};
    nd_propose(subject, &scaled);
}

static bool attention_counts(double y, double z)
{
    return isfinite(y) && isfinite(z) && y > MASKED && z > MASKED;
}

/* One factor between the two outputs. */
static void attention_between(struct subject *subject)
{
    double cross = 0, square = 0, error = 0, size = 0;

    if (subject->actual == NULL)
        return;
    for (uint64_t i = 0; i < subject->count; i++) {
        const double y = subject->actual[i], z = subject->expected[i];
        if (!attention_counts(y, z))
            continue;
        cross += y * z;
        square += z * z;
    }
    const double factor = square > 0 ? cross / square : 1;
    for (uint64_t i = 0; i < subject->count; i++) {
        const double y = subject->actual[i], z = factor * subject->expected[i];
        if (!attention_counts(y, subject->expected[i]))
            continue;
        error += (y - z) * (y - z);
        size += z * z;
    }
    if (!(size > 0) || !(fabs(factor - 1) > 8 * subject->floor))
        return;
    const struct hypothesis scaled = {.id = "attention_scale",
                                      .residual = sqrt(error / size),
                                      /* the inputs' own error grows in the product */
                                      .floor = 2 * subject->floor,
                                      .penalty = 0.05,
                                      .side = nd_subject_side(subject)};
    ND_PROPOSE(subject, scaled, ND_NUMBER("factor", factor));
}

static void attention_run(struct subject *subject, struct nd_finding *finding)
{
    const struct op *op = subject->own->op;
    const double u = subject->own->roundoff;
    struct product product;

    (void)finding;
    if (op == NULL ||
        (strcmp(op->name, "matmul") != 0 && strcmp(op->name, "attention") != 0) ||
        !nd_subject_is_own(subject) || subject->slot == NULL ||
        subject->own->out.mismatches > 0 || subject->own->params.seen > 0)
        return;
    const double gate = fmax(4 * u, 64 * 0x1p-24);
    if (!nd_product_open(subject->pair, gate, subject->input->max_mem, subject->index,
                         &product)) {
        attention_between(subject);
        return;
    }
    const double best = fmin(product.residual[0], product.residual[1]);
    attention_recovered(subject, &product, fmax(best, fmax(0.4247 * u, 3 * 0x1p-24)));
    nd_product_close(&product);
}

const struct check nd_check_attention = {
    .id = "attention", .of_products = true, .run = attention_run};
