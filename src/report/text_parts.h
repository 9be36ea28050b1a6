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
/* a candidate in a narrower type, and its layers by their own error */
void nd_text_lowered(struct page *page, const struct nd_result *result);
void nd_text_sparkline(struct page *page, const struct nd_result *result);

/* the block about the first diverging layer, and why */
void nd_text_first(struct report_job *job, const struct nd_result *result);
/* in which span the drift entered, and where in the program the layer was called */
void nd_text_where(struct report_job *job, const struct nd_result *result);
/* The same by sentences, for other reports; nothing is added for one that does not apply. */
enum { TEXT_WHERE_COUNT = 5 };
void nd_text_where_words(const struct report_job *job, const struct nd_result *result,
                         unsigned sentence, struct text *out);
void nd_text_why(struct report_job *job, const struct nd_result *result);
void nd_text_finding(struct report_job *job, const struct nd_finding *finding);
/* Words that reports for people share: what a finding says, what a cause is called, how it
 * is known that the drift entered (an id), and "LayerNorm, output.0, float32 [4, 768]". */
void nd_text_finding_words(const struct page *page, const struct nd_finding *finding,
                           struct text *out);
const char *nd_text_cause_title(const struct page *page, const struct nd_cause *cause);
const char *nd_text_entered_id(const struct nd_result *result);
void nd_text_slot_words(const struct page *page, const struct nd_layer *layer,
                        const struct nd_slot *slot, struct text *out);
const char *nd_text_first_id(const struct nd_result *result);
const char *nd_text_scope_id(const struct nd_coverage *coverage, bool whole);
/* The advice of the findings that matter, each sentence once; how many. */
enum { TEXT_ADVICE_LIMIT = 6 };
size_t nd_text_advice(const struct nd_result *result,
                      const struct nd_phrase *ret_said[TEXT_ADVICE_LIMIT]);
/* The id of what the best cause calls for, if it is more than possible; false: nothing. */
bool nd_text_cause_advice(const struct nd_result *result, char *id, size_t size);
bool nd_text_step_matters(const struct report_job *job, const struct nd_step *step);
/* A word as a shell reads it back, quoted where it must be. */
void nd_text_shell_word(const char *word, struct text *out);
/* Appends " (step 1, rank 3)", as far as the layer has one; names repeat over them. */
void nd_text_step_rank(const struct page *page, const struct nd_layer *layer, struct text *out);
/* Why a layer fails, where its drift alone does not say it; NULL: it does, or nothing fails. */
const char *nd_text_fails(const struct page *page, const struct nd_layer *layer);
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

/* A layer's name, without what all names of its kind have if it is too long; `buf` may hold
 * it.  It may still be longer than `columns`. */
const char *nd_text_short_name(struct page *page, const struct nd_layer *layer,
                               bool has_type, unsigned columns, char *buf, size_t size);

/* what was not compared; the last line */
void nd_text_coverage(struct report_job *job, const struct nd_result *result);
void nd_text_closing(struct report_job *job, const struct nd_result *result);

void nd_text_listing(struct report_job *job, const struct nd_listing *listing);

#endif
