/*
 * The parts of the HTML report: one file that needs no network and no script, is read on a
 * screen in light or dark, and prints.
 */
#ifndef ND_REPORT_HTML_PARTS_H
#define ND_REPORT_HTML_PARTS_H

#include "report/text_parts.h"

enum { HTML_ROWS = 2000 }; /* layers that the table shows unless all are asked for */

extern const char nd_html_style[];

/* Text from anywhere, escaped; words of the catalogue; a phrase of the result. */
void nd_html_text(struct report_job *job, const char *text);
void nd_html_words(struct report_job *job, const char *id);
void nd_html_say(struct report_job *job, const char *id,
                 const struct catalogue_value *values, size_t count);
bool nd_html_phrase(struct report_job *job, const struct nd_phrase *phrase);

/* What a part of the text report says, a paragraph a line. */
void nd_html_lines(struct report_job *job,
                   void (*part)(struct report_job *job, const struct nd_result *result));

#define HTML_SAY(job, id, ...)                                                             \
    nd_html_say(job, id, (const struct catalogue_value[]){__VA_ARGS__},                    \
                sizeof((const struct catalogue_value[]){__VA_ARGS__}) /                    \
                    sizeof(struct catalogue_value))

/* The beginning and the end of the document. */
void nd_html_open(struct report_job *job, const char *title);
void nd_html_close(struct report_job *job);
/* A section with its heading; `id` is its anchor. */
void nd_html_section(struct report_job *job, const char *id, const char *heading);
void nd_html_section_end(struct report_job *job);

/* A name that a dump gave: in type of equal width, and apart from the text around it. */
void nd_html_name(struct report_job *job, const char *name);
/* "#17 layers.3.norm", as a link to its row where the table has one. */
void nd_html_layer_link(struct report_job *job, const struct nd_layer *layer);
/* The tier's word or bound, with the tier's colour. */
void nd_html_tier(struct report_job *job, enum nd_tier tier);
/* Whether the table shows the layer. */
bool nd_html_shows(const struct report_job *job, const struct nd_layer *layer);

void nd_html_head(struct report_job *job, const struct nd_result *result);
void nd_html_chart(struct report_job *job, const struct nd_result *result);
void nd_html_first(struct report_job *job, const struct nd_result *result);
void nd_html_why(struct report_job *job, const struct nd_result *result);
void nd_html_next(struct report_job *job, const struct nd_result *result);
void nd_html_step(struct report_job *job, const struct nd_step *step); /* a row */
void nd_html_coverage(struct report_job *job, const struct nd_result *result);

#endif
