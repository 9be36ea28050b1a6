/*
 * The list that `atc --keep_dtype` reads: names of the original model's operators, one a
 * line, that should keep their precision.  The origin of the drift, and where the whole
 * candidate is in a narrower type, the layers whose own error stands out, worst first.
 */
#include "report/report.h"

#include <string.h>

/* What the model calls an operator; dumps may have it with '_' for '/'. */
static const char *keep_name(const struct nd_layer *layer)
{
    return layer->original != NULL ? layer->original : layer->name;
}

static const char *keep_ranked(const struct nd_result *result, size_t row)
{
    return keep_name(&result->layers[result->lowered.ranked[row].layer]);
}

/* A name that is there already, or with an end of line in it, has no place in the list. */
static bool keep_fits(const struct nd_result *result, size_t row, const char *name)
{
    for (const char *at = name; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20)
            return false;
    for (size_t i = 0; i < row; i++)
        if (strcmp(keep_ranked(result, i), name) == 0)
            return false;
    return name[0] != '\0';
}

static void keep_line(struct report_job *job, const char *name)
{
    nd_out_raw(&job->page.out, name);
    nd_out_raw(&job->page.out, "\n");
}

static void keep_begin(struct report_job *job, const struct nd_result *result)
{
    const struct nd_layer *origin = nd_result_layer(result, result->first_origin);
    enum { KEEP_MOST = 2000 }; /* a longer list means the whole model */

    for (size_t i = 0; i < result->lowered.ranked_count && i < KEEP_MOST; i++) {
        if (keep_fits(result, i, keep_ranked(result, i)))
            keep_line(job, keep_ranked(result, i));
    }
    if (result->lowered.ranked_count == 0 && origin != NULL &&
        keep_fits(result, 0, keep_name(origin)))
        keep_line(job, keep_name(origin));
}

static void keep_end(struct report_job *job, const struct nd_result *result)
{
    (void)job;
    (void)result;
}

/* Every operator of a dump, to be cut down by hand. */
static void keep_listing(struct report_job *job, const struct nd_listing *listing)
{
    for (size_t i = 0; i < listing->layer_count; i++)
        if (!listing->layers[i].container)
            keep_line(job, listing->layers[i].name);
}

const struct report nd_report_keep_dtype = {
    .name = "keep-dtype",
    .title = "operators for atc --keep_dtype, one a line",
    .begin = keep_begin,
    .end = keep_end,
    .listing = keep_listing,
};
