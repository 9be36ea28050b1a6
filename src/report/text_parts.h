/*
 * The parts of the text report, from top to bottom.
 */
#ifndef ND_REPORT_TEXT_PARTS_H
#define ND_REPORT_TEXT_PARTS_H

#include "report/figures.h"
#include "report/report.h"

enum { LABEL_COLUMNS = 11 }; /* "reference" and two spaces: where the head's values begin */

/* A value for a placeholder. */
#define VALUE_TEXT(key_, text_) ((struct catalogue_value){.key = (key_), .text = (text_)})
#define VALUE_NUMBER(key_, number_)                                                        \
    ((struct catalogue_value){.key = (key_), .number = (double)(number_)})

/* Flows a phrase with values, one or more. */
#define ND_SAY(page, ink, id, ...)                                                         \
    nd_page_say(page, ink, id, (const struct catalogue_value[]){__VA_ARGS__},              \
                sizeof((const struct catalogue_value[]){__VA_ARGS__}) /                    \
                    sizeof(struct catalogue_value))

/* The same for an item that is not broken. */
#define ND_SAY_ITEM(page, ink, id, ...)                                                    \
    nd_page_say_item(page, ink, id, (const struct catalogue_value[]){__VA_ARGS__},         \
                     sizeof((const struct catalogue_value[]){__VA_ARGS__}) /               \
                         sizeof(struct catalogue_value))

/* Begins a line of the head: the label, then the column where values begin. */
void nd_text_label(struct page *page, const char *id);

/* dumps, order, drift line, tiers, result, firsts, warnings */
void nd_text_head(struct report_job *job, const struct nd_result *result);
void nd_text_dumps(struct page *page, const char *const *labels,
                   const struct nd_dump_info *dumps, size_t count);
void nd_text_sparkline(struct page *page, const struct nd_result *result);

/* the block about the first diverging layer, and why */
void nd_text_first(struct report_job *job, const struct nd_result *result);
void nd_text_why(struct report_job *job, const struct nd_result *result);
void nd_text_finding(struct report_job *job, const struct nd_finding *finding);
/* Whether a cause is confirmed: then what is still open matters less. */
bool nd_text_settled(const struct nd_result *result);
void nd_text_next(struct report_job *job, const struct nd_result *result);
/* Flows a phrase of the result; false if it has none. */
bool nd_text_phrase(struct page *page, enum ink ink, const struct nd_phrase *phrase);

/* the table of layers */
void nd_text_table_plan(struct report_job *job, const struct nd_result *result,
                        size_t first, size_t last, struct layer_table *ret_table);
void nd_text_table_head(struct page *page, const struct layer_table *table);
void nd_text_table_row(struct report_job *job, const struct layer_table *table,
                       const struct nd_layer *layer);
const char *nd_text_tier(const struct page *page, const struct nd_policy *policy,
                         enum nd_tier tier, char *buf);
enum ink nd_text_tier_ink(enum nd_tier tier);

/* what was not compared; the last line */
void nd_text_coverage(struct report_job *job, const struct nd_result *result);
void nd_text_closing(struct report_job *job, const struct nd_result *result);

void nd_text_listing(struct report_job *job, const struct nd_listing *listing);

#endif
