/*
 * What every part of the HTML report is made of.  Nothing reaches the document unescaped:
 * names come from dumps, and words of the catalogue may hold a < too.
 */
#include "report/html_parts.h"

#include <stdio.h>
#include <string.h>

enum { LINE_COLUMNS = 1000000 }; /* no line is wrapped */

/* Control characters are shown as \\xNN, as on a terminal; then signs of HTML are escaped.
 */
void nd_html_text(struct report_job *job, const char *text)
{
    struct out safe = {.depth = 0};

    nd_out_safe(&safe, text == NULL ? "" : text);
    nd_out_xml(&job->page.out, safe.text.len == 0 ? "" : safe.text.bytes);
    nd_out_done(&safe);
}

void nd_html_words(struct report_job *job, const char *id)
{
    nd_html_text(job, nd_page_words(&job->page, id));
}

static bool is_number(const char *at, const char *end)
{
    for (; at + 2 < end; at++)
        if (at[0] == 'e' && at[1] == '-' && at[2] >= '0' && at[2] <= '9')
            return true;
    return false;
}

/* Sentences: a browser would break 6.7e-08 behind the hyphen. */
static void html_prose(struct report_job *job, const char *text)
{
    struct text word = {0};

    while (*text != '\0') {
        const size_t len = strcspn(text, " "), blanks = strspn(text + len, " ");
        const bool kept = is_number(text, text + len);
        word.len = 0;
        nd_text_add(&word, text, len);
        nd_out_raw(&job->page.out, kept ? "<span class=\"x\">" : "");
        nd_html_text(job, word.len == 0 ? "" : word.bytes);
        nd_out_raw(&job->page.out, kept ? "</span>" : "");
        nd_text_add(&job->page.out.text, text + len, blanks);
        text += len + blanks;
    }
    nd_text_done(&word);
}

void nd_html_say(struct report_job *job, const char *id,
                 const struct catalogue_value *values, size_t count)
{
    struct text words = {0};

    nd_catalogue_fill(nd_page_words(&job->page, id), values, count, &words);
    html_prose(job, words.len == 0 ? "" : words.bytes);
    nd_text_done(&words);
}

bool nd_html_phrase(struct report_job *job, const struct nd_phrase *phrase)
{
    struct text words = {0};

    nd_phrase_put(phrase, job->page.language, &words);
    const bool some = words.len > 0;
    html_prose(job, some ? words.bytes : "");
    nd_text_done(&words);
    return some;
}

void nd_html_lines(struct report_job *job,
                   void (*part)(struct report_job *job, const struct nd_result *result))
{
    struct report_job own = {.options = job->options, .result = job->result};

    nd_page_init(&own.page, job->page.language, LINE_COLUMNS, true, false);
    part(&own, job->result);
    char *at = own.page.out.text.len == 0 ? NULL : own.page.out.text.bytes;
    while (at != NULL && *at != '\0') {
        char *end = strchr(at, '\n');
        if (end != NULL)
            *end = '\0';
        at += strspn(at, " ");
        nd_out_raw(&job->page.out, "<p>");
        html_prose(job, at);
        nd_out_raw(&job->page.out, "</p>\n");
        at = end == NULL ? NULL : end + 1;
    }
    nd_page_done(&own.page);
}

static bool layer_matters(const struct nd_layer *layer)
{
    return layer->fails != ND_FAIL_NONE || layer->role == ND_ROLE_GAP ||
           layer->role == ND_ROLE_ORIGIN;
}

/* The place behind the last layer that the table of a large model shows. */
static size_t shown_up_to(const struct nd_result *result)
{
    size_t count = 0, place = 0;

    for (; place < result->layer_count && count < HTML_ROWS; place++)
        count += layer_matters(&result->layers[place]);
    return place;
}

void nd_html_open(struct report_job *job, const char *title)
{
    struct out *out = &job->page.out;

    job->page.utf8 = true;
    job->shown = job->result == NULL ? 0 : shown_up_to(job->result);
    nd_out_printf(out,
                  "<!doctype html>\n<html lang=\"%s\">\n<head>\n<meta charset=\"utf-8\">\n",
                  job->page.language == LANGUAGE_ZH ? "zh-CN" : "en");
    nd_out_raw(out,
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta name=\"color-scheme\" content=\"light dark\">\n"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
               "'none'; style-src 'unsafe-inline'\">\n<title>normdiff: ");
    nd_html_text(job, title);
    nd_out_raw(out, "</title>\n<style>\n");
    nd_out_raw(out, nd_html_style);
    nd_out_raw(out, "</style>\n</head>\n<body>\n");
}

void nd_html_close(struct report_job *job)
{
    nd_out_raw(&job->page.out, "</body>\n</html>\n");
}

void nd_html_section(struct report_job *job, const char *id, const char *heading)
{
    nd_out_printf(&job->page.out, "<section id=\"%s\">\n<h2>", id);
    nd_html_words(job, heading);
    nd_out_raw(&job->page.out, "</h2>\n");
}

void nd_html_section_end(struct report_job *job)
{
    nd_out_raw(&job->page.out, "</section>\n");
}

void nd_html_name(struct report_job *job, const char *name)
{
    nd_out_raw(&job->page.out, "<span class=\"n\">");
    nd_html_text(job, name);
    nd_out_raw(&job->page.out, "</span>");
}

void nd_html_layer_link(struct report_job *job, const struct nd_layer *layer)
{
    const bool linked = nd_html_shows(job, layer);

    if (linked)
        nd_out_printf(&job->page.out, "<a href=\"#layer-%zu\">", layer->index);
    nd_out_printf(&job->page.out, "#%zu ", layer->index);
    nd_html_name(job, layer->name);
    nd_out_raw(&job->page.out, linked ? "</a>" : "");
    struct text place = {0};
    nd_text_step_rank(&job->page, layer, &place);
    nd_html_text(job, place.len == 0 ? "" : place.bytes);
    nd_text_done(&place);
}

void nd_html_tier(struct report_job *job, enum nd_tier tier)
{
    char text[FIGURE_SIZE];

    if (tier > ND_TIER_FAULT)
        nd_out_raw(&job->page.out, "<span>");
    else
        nd_out_printf(&job->page.out, "<span class=\"t t%d\" title=\"%s\">", (int)tier,
                      nd_tier_word(tier));
    nd_html_text(job, nd_text_tier(&job->page, &job->result->policy, tier, text));
    nd_out_raw(&job->page.out, "</span>");
}

/* All layers of a model of usual size; of a larger one those that matter, up to the place
 * that nd_html_open() found. */
bool nd_html_shows(const struct report_job *job, const struct nd_layer *layer)
{
    const struct nd_result *result = job->result;
    const size_t place = (size_t)(layer - result->layers);

    return job->options->all || result->layer_count <= HTML_ROWS ||
           place == result->first.layer || place == result->first_origin ||
           (place < job->shown && layer_matters(layer));
}
