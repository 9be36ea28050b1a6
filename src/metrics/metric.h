/*
 * A metric: one pure function of the moments (and of the detail pass, where it says so),
 * one row of metrics.def, one file metric_<word>.c that defines
 * `const struct metric nd_metric_<word>`.
 */
#ifndef ND_METRICS_METRIC_H
#define ND_METRICS_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/moments.h"

struct metric {
    const char *key; /* as in JSON: "max_abs" */
    bool detail;     /* needs the detail pass */
    bool pair;       /* one value per side */
    bool index;      /* a flat position, shown as a multi-index */
    /*
     * Writes value[0] (and [1] for pairs; for an index the flat position, exact up to
     * 2^53); false: undefined here, left out of the report.  detail is NULL unless
     * `detail` is set.  Only + - * / and sqrt, so that every machine gives the same bits.
     */
    bool (*value)(const struct nd_moments *moments, const struct nd_detail *detail,
                  double *value);
};

size_t nd_metric_count(void);
const struct metric *nd_metric_at(size_t i);
/* '-' and '_' are alike ("max-abs"); NULL: unknown. */
const struct metric *nd_metric_by_name(const char *key);

#endif
