/*
 * A pair that is being measured, from its opening to its closing.
 */
#ifndef ND_COMPARE_MEASURE_JOB_H
#define ND_COMPARE_MEASURE_JOB_H

#include <stdatomic.h>

#include "compare/slot_pair.h"

struct job {
    struct layer_pair *layer;
    struct slot_pair *slot; /* stays where stored.h is told to find it */
    struct pair_views views;
    struct moments_pivot pivot;
    size_t first_unit, unit_count;
    struct nd_moments moments; /* of all units, once they are folded */
    bool streams;              /* decoded as it is measured */
    bool is_done;              /* a small one: finished and closed by who opened it, */
    enum nd_status status;     /* and how that went */
    const char *shrunk;        /* the file that did, for ND_ERR_CHANGED */
};

/* Of both sides, decoded. */
uint64_t nd_slot_pair_bytes(const struct slot_pair *slot);

/* Opens the views, and finds the pivot where they are ready. */
void nd_job_open(const struct comparison *comparison, struct job *job);
/* Where the bytes of some positions lie that are read in place; NULL: they are not. */
const unsigned char *nd_job_bytes(const struct job *job, uint64_t first, uint64_t count,
                                  unsigned side, uint64_t *ret_size);
/* Measures positions [first, first + count), each MEASURE_UNIT into moments of its own
 * (what needs no order may all be in the first); bytes are added to *done if somebody wants
 * to know. */
void nd_job_measure(const struct comparison *comparison, const struct job *job,
                    uint64_t first, uint64_t count, atomic_uint_least64_t *done,
                    struct nd_moments *ret_moments);
/* What follows the hot pass: figures from job->moments, notes, layout search, detail pass.
 */
enum nd_status nd_job_finish(struct comparison *comparison, struct job *job,
                             struct nd_error *err);
enum nd_status nd_job_close(struct job *job, struct nd_error *err);

/* Whether a job that was opened is so small that one thread does all of it. */
bool nd_job_is_small(const struct job *job);
/* Measures, finishes and closes it; what goes wrong is kept in the job. */
void nd_job_do(struct comparison *comparison, struct job *job, atomic_uint_least64_t *done);
/* What nd_job_do() kept. */
enum nd_status nd_job_status(const struct job *job, struct nd_error *err);

#endif
