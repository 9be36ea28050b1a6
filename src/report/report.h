/*
 * A report: one way to write a result.  It is a visitor: report_write.c owns the walk and
 * calls begin, then one function per finding, cause, step and layer, then end; what a
 * report leaves NULL it does not show.
 */
#ifndef ND_REPORT_REPORT_H
#define ND_REPORT_REPORT_H

#include "normdiff/report.h"
#include "text/page.h"

/* The table of layers: the column where each of its columns ends. */
struct layer_table {
    unsigned index, place, name, type, tier, drift, max_abs;
    bool has_place, has_type;
};

struct report_job {
    struct page page; /* page.out is where every report writes */
    const struct nd_report_options *options;
    const struct nd_result *result; /* NULL for a listing */
    unsigned section;               /* of use to reports with sections */
    size_t shown;             /* cells of a row, rows of a table: how many are written */
    struct layer_table table; /* of the text report */
};

struct report {
    const char *name;  /* the --format word */
    const char *title; /* for people */
    bool people;       /* follows the reader's language; machine formats stay English */
    void (*begin)(struct report_job *job, const struct nd_result *result);
    void (*finding)(struct report_job *job, const struct nd_finding *finding);
    void (*cause)(struct report_job *job, const struct nd_cause *cause);
    void (*step)(struct report_job *job, const struct nd_step *step);
    void (*layer)(struct report_job *job, const struct nd_layer *layer);
    void (*end)(struct report_job *job, const struct nd_result *result);
    void (*listing)(struct report_job *job, const struct nd_listing *listing);
    /* NULL: nothing is written of an error, and an older report is removed. */
    void (*error)(struct report_job *job, const struct nd_error *error);
};

/* Appends a phrase in words; nothing for a phrase without an id. */
void nd_phrase_put(const struct nd_phrase *phrase, enum language language,
                   struct text *out);

/* A metric of a slot; NULL: not measured. */
const struct nd_metric_value *nd_slot_metric(const struct nd_slot *slot, const char *key);

/* Copies the next line of a call's stack, cut to fit; false at the end. */
bool nd_stack_line(const char **inout_stack, char *buf, size_t size);

/* The layer of an index that may be ND_NO_INDEX; NULL then. */
const struct nd_layer *nd_result_layer(const struct nd_result *result, size_t index);

#endif
