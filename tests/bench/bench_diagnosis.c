/*
 * How long the diagnosis takes beside comparing, in one process: milliseconds of processor
 * time of all threads, of comparing and of the diagnosis, then of the clock.
 *
 *   bench_diagnosis THREADS REFERENCE CANDIDATE
 *
 * The linker puts the functions below in the place of those that they call (--wrap), so
 * that the library itself knows nothing of being timed.  To the diagnosis belongs all that
 * is done for it: opening the tensors for the checks, replays, checklist, causes.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "checks/check.h"
#include "compare/compare.h"
#include "normdiff/normdiff.h"

enum nd_status __real_nd_evidence_open(struct comparison *, struct evidence *,
                                       struct nd_error *);
enum nd_status __real_nd_diagnose(const struct diagnosis_input *, size_t, struct arena *,
                                  struct diagnosis *, struct nd_error *);
void __real_nd_evidence_close(struct evidence *);
enum nd_status __wrap_nd_evidence_open(struct comparison *, struct evidence *,
                                       struct nd_error *);
enum nd_status __wrap_nd_diagnose(const struct diagnosis_input *, size_t, struct arena *,
                                  struct diagnosis *, struct nd_error *);
void __wrap_nd_evidence_close(struct evidence *);

struct spent {
    double processor, clock; /* seconds */
};

static struct spent diagnosis, began;

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static struct spent spent_now(void)
{
    struct rusage usage;
    struct timespec now;

    getrusage(RUSAGE_SELF, &usage);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct spent){seconds(usage.ru_utime) + seconds(usage.ru_stime),
                          (double)now.tv_sec + (double)now.tv_nsec * 1e-9};
}

static void diagnosis_enter(void)
{
    began = spent_now();
}

static void diagnosis_leave(void)
{
    const struct spent now = spent_now();

    diagnosis.processor += now.processor - began.processor;
    diagnosis.clock += now.clock - began.clock;
}

enum nd_status __wrap_nd_evidence_open(struct comparison *comparison, struct evidence *ret,
                                       struct nd_error *err)
{
    diagnosis_enter();
    const enum nd_status status = __real_nd_evidence_open(comparison, ret, err);
    diagnosis_leave();
    return status;
}

enum nd_status __wrap_nd_diagnose(const struct diagnosis_input *input, size_t over_bar,
                                  struct arena *arena, struct diagnosis *ret,
                                  struct nd_error *err)
{
    diagnosis_enter();
    const enum nd_status status = __real_nd_diagnose(input, over_bar, arena, ret, err);
    diagnosis_leave();
    return status;
}

void __wrap_nd_evidence_close(struct evidence *evidence)
{
    diagnosis_enter();
    __real_nd_evidence_close(evidence);
    diagnosis_leave();
}

int main(int argc, char **argv)
{
    struct nd_options options;
    struct nd_result *result;
    struct nd_error error = {0};

    if (argc != 4)
        return 2;
    nd_options_init(&options);
    options.jobs = (unsigned)atoi(argv[1]);
    const struct spent from = spent_now();
    if (nd_compare(argv[2], argv[3], &options, &result, &error) != ND_OK) {
        fprintf(stderr, "%s: %s\n", argv[2], error.found);
        return 2;
    }
    nd_result_free(result);
    const struct spent now = spent_now();
    const struct spent rest = {now.processor - from.processor - diagnosis.processor,
                               now.clock - from.clock - diagnosis.clock};
    printf("%.1f %.1f %.1f %.1f\n", rest.processor * 1e3, diagnosis.processor * 1e3,
           rest.clock * 1e3, diagnosis.clock * 1e3);
    return 0;
}
