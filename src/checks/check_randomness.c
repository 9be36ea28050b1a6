/*
 * Would a second run give the same?  One pair of dumps cannot tell; a second run of a side
 * beside it can.
 */
#include "checks/subject.h"

#include <math.h>

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

static void randomness_run(struct subject *subject, struct nd_finding *finding)
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

const struct check nd_check_randomness = {
    .id = "randomness", .is_line = true, .run = randomness_run};
