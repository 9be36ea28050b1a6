/*
 * The verdict, its reason in words, and the exit status, from a count of what failed.
 */
#ifndef ND_COMPARE_VERDICT_H
#define ND_COMPARE_VERDICT_H

#include "compare/compare.h"

struct tally {
    size_t failing;                     /* layers that fail, of whatever kind */
    size_t kind[ND_FAIL_CHECKSUM + 1]; /* the same by kind */
    size_t origins;                     /* that fail as an origin alone (--fail-on origin) */
    size_t excused;                     /* at fault, and yet they do not fail */
    size_t missing;                     /* reference layers that were not compared */
};

void nd_verdict(const struct comparison *comparison, const struct tally *tally,
                struct nd_result *result);

#endif
