/*
 * Would a second run give the same?  One pair of dumps cannot tell; a second run of a side
 * beside it can.
 */
#include "checks/subject.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

/* A side's second run is off here although the layers before were not: its own numbers. */
static void randomness_source(struct subject *subject, int side, double noise)
{
    const struct side_evidence *rerun = &subject->input->rerun[side];

    for (size_t i = 0; i < subject->index; i++)
        if (!subject->facts[i].container && rerun->drift[i] > noise / 8)
            return;
    const struct hypothesis random = {.id = "random_source",
                                      .residual = (double)NAN,
                                      .is_fingerprint = subject->own->out.rel <= 2 * noise,
                                      .side = side == 1 ? ND_SIDE_CANDIDATE
                                                        : ND_SIDE_REFERENCE};
    ND_PROPOSE(subject, random, ND_NUMBER("noise", noise),
               ND_NUMBER("drift", subject->own->out.rel));
}

/* --- operators that draw by nature --- */

/* By name, in lower case and letters alone: PyTorch's, and those of CANN. */
static const char *const draws[] = {
    "rand",           "randn",           "randlike",      "randnlike",  "randint*",
    "randperm",       "normal",          "uniform",       "random",     "bernoulli",
    "multinomial",    "poisson",         "exponential",   "stateless*", "dropoutgenmask*",
    "*randomnormal*", "*randomuniform*", "standardnormal"};

static bool randomness_draws(const char *type)
{
    const char *dot = strrchr(type, '.'); /* torch.randn */
    char plain[64];
    size_t len = 0;

    type = dot == NULL ? type : dot + 1;
    for (; *type != '\0' && len + 1 < sizeof plain; type++)
        if (isalpha((unsigned char)*type))
            plain[len++] = (char)tolower((unsigned char)*type);
    plain[len] = '\0';
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++)
        if (nd_glob_match(draws[i], plain))
            return true;
    return false;
}

/* Other numbers of one distribution: means and sizes agree within what chance allows. */
static bool randomness_alike(const struct nd_slot *slot)
{
    const double n = (double)slot->n;
    double mean[2], rms[2];

    for (int side = 0; side < 2; side++) {
        mean[side] = nd_slot_number(slot, "mean", side);
        rms[side] = nd_slot_number(slot, "norm", side) / sqrt(n);
    }
    /* Five standard errors of each; a square's is at most a few times its mean. */
    return n >= 64 && fabs(mean[0] - mean[1]) <= 5 * sqrt(2 / n) * fmax(rms[0], rms[1]) &&
           fabs(rms[0] - rms[1]) <= 10 / sqrt(n) * fmax(rms[0], rms[1]);
}

/* Nothing that comes in explains it, and the operator is there to draw. */
static void randomness_by_nature(struct subject *subject, struct nd_finding *finding)
{
    if (subject->slot == NULL || subject->own->out.equal || !nd_subject_is_own(subject) ||
        !randomness_draws(subject->layer->type))
        return;
    const struct hypothesis random = {
        .id = "random_source",
        .residual = (double)NAN,
        .is_declared = true,
        .is_certain = randomness_alike(subject->slot),
        .summary = ND_PHRASE(subject->arena, "summary.random_source.drawn",
                             ND_WORD("type", subject->layer->type))};
    ND_PROPOSE(subject, random, ND_WORD("type", subject->layer->type));
    finding->status = ND_CHECK_MISMATCH;
    finding->evidence = ND_PHRASE(subject->arena, "summary.random_source.drawn",
                                  ND_WORD("type", subject->layer->type));
    finding->advice = nd_phrase_plain("advice.randomness.seed");
}

static void randomness_line(struct subject *subject, struct nd_finding *finding)
{
    const struct side_evidence *rerun = subject->input->rerun;
    int side = -1;
    double noise = 0;

    for (int k = 0; k < 2; k++) {
        if (!rerun[k].given || rerun[k].drift == NULL ||
            isnan(rerun[k].drift[subject->index]))
            continue;
        if (side < 0 || rerun[k].drift[subject->index] > noise)
            side = k;
        noise = fmax(noise, rerun[k].drift[subject->index]);
    }
    if (side < 0) {
        finding->evidence = nd_phrase_plain("finding.randomness.unknown");
        finding->advice = nd_phrase_plain("advice.randomness");
        return;
    }
    if (noise == 0) {
        finding->status = ND_CHECK_OK;
        finding->evidence = ND_PHRASE(subject->arena, "finding.randomness.repeats",
                                      ND_NUMBER("is_candidate", side));
        return;
    }
    const bool is_all = subject->own->out.rel <= 2 * noise;
    finding->status = is_all ? ND_CHECK_MISMATCH : ND_CHECK_SUSPECT;
    finding->evidence = ND_PHRASE(
        subject->arena, is_all ? "finding.randomness.all" : "finding.randomness.some",
        ND_NUMBER("is_candidate", side), ND_NUMBER("noise", noise),
        ND_NUMBER("drift", subject->own->out.rel));
    finding->advice = nd_phrase_plain("advice.randomness.seed");
    randomness_source(subject, side, noise);
}

static void randomness_run(struct subject *subject, struct nd_finding *finding)
{
    randomness_line(subject, finding);
    randomness_by_nature(subject, finding);
}

const struct check nd_check_randomness = {
    .id = "randomness", .is_line = true, .run = randomness_run};
