/*
 * Where the first diverging layer stands: the span in which the drift entered if operators
 * before it have no partner, and the place in the program that called it.
 */
#include "report/text_parts.h"

#include <string.h>

enum {
    NAMES_SHOWN = 3, /* of each side's operators without a partner */
    LINE_SIZE = 4096
};

bool nd_stack_line(const char **inout_stack, char *buf, size_t size)
{
    const char *at = *inout_stack;
    const size_t len = at == NULL ? 0 : strcspn(at, "\n");
    const size_t kept = len < size ? len : size - 1;

    if (at == NULL)
        return false;
    memcpy(buf, at, kept);
    buf[kept] = '\0';
    *inout_stack = at[len] == '\0' ? NULL : at + len + 1;
    return true;
}

static void where_add(struct text *out, const char *words)
{
    nd_text_add(out, words, strlen(words));
}

static void where_say(const struct page *page, const char *id,
                      const struct nd_param *params, size_t count, struct text *out)
{
    const struct nd_phrase phrase = {id, params, count};

    nd_phrase_put(&phrase, page->utf8 ? page->language : LANGUAGE_EN, out);
}

/* --- the span ------------------------------------------------------------------------ */

static void where_span(const struct report_job *job, const struct nd_result *result,
                       struct text *out)
{
    const struct nd_span *span = &result->first.span;
    const struct nd_layer *from = nd_result_layer(result, span->from);
    const struct nd_layer *to = nd_result_layer(result, span->to);

    if (span->points == 0 || to == NULL)
        return;
    where_say(&job->page, from == NULL ? "report.span.begin" : "report.span",
              (const struct nd_param[]){
                  {"points", NULL,                           (double)span->points},
                  {"from",   from == NULL ? "" : from->name, 0                   },
                  {"to",     to->name,                       0                   }
    },
              3, out);
}

static void where_skipped(const struct report_job *job, const struct nd_span *span,
                          unsigned side, struct text *out)
{
    static const char *const ids[] = {"report.span.reference", "report.span.candidate"};
    const struct page *page = &job->page;
    const size_t count = span->points == 0 ? 0 : span->skipped_count[side];
    const size_t shown =
        job->options->verbose || count <= NAMES_SHOWN + 1 ? count : NAMES_SHOWN;

    if (count == 0)
        return;
    where_add(out, nd_page_words(page, ids[side]));
    for (size_t i = 0; i < shown; i++) {
        where_add(out, nd_page_words(page, i == 0 ? "report.colon" : "report.comma"));
        where_add(out, span->skipped[side][i]);
    }
    if (shown == count)
        return;
    where_add(out, nd_page_words(page, "report.comma"));
    where_say(page, "report.more",
              (const struct nd_param[]){
                  {"count", NULL, (double)(count - shown)}
    },
              1, out);
}

/* --- the call ------------------------------------------------------------------------ */

/* Frames of torch itself and of what was installed say nothing about the user's model. */
static bool is_library(const char *line)
{
    static const char *const parts[] = {"site-packages", "dist-packages", "/torch/",
                                        "/torch_npu/",   "/msprobe/",     "/mindspore/"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(line, parts[i]) != NULL)
            return true;
    return false;
}

/* The innermost line of the user's; the innermost of all if there is none. */
static bool user_line(const char *stack, char *buf, size_t size)
{
    const char *at = stack;

    while (nd_stack_line(&at, buf, size))
        if (!is_library(buf))
            return true;
    at = stack;
    return nd_stack_line(&at, buf, size);
}

/* "File /a/model.py, line 32, in forward,  x = f(x)" as "model.py:32 in forward: x = f(x)";
 * another form stays as it is. */
static void call_words(const char *line, struct text *out)
{
    static const char file[] = "File ", number[] = ", line ", in[] = ", in ";
    line += strspn(line, " \t");
    const char *path_end = strstr(line, number);
    const char *digits = path_end == NULL ? "" : path_end + sizeof number - 1;
    const size_t digits_len = strspn(digits, "0123456789");

    if (strncmp(line, file, sizeof file - 1) != 0 || digits_len == 0) {
        where_add(out, line);
        return;
    }
    path_end -= path_end[-1] == '"'; /* as Python's own tracebacks write it */
    const char *base = path_end;
    while (base > line + sizeof file - 1 && base[-1] != '/' && base[-1] != '"')
        base--;
    nd_text_add(out, base, (size_t)(path_end - base));
    nd_text_add(out, ":", 1);
    nd_text_add(out, digits, digits_len);
    const char *rest = digits + digits_len;
    if (strncmp(rest, in, sizeof in - 1) == 0) {
        const size_t name = strcspn(rest + sizeof in - 1, ",");
        nd_text_add(out, rest + 1, sizeof in - 2 + name);
        rest += sizeof in - 1 + name;
    }
    rest += strspn(rest, ", ");
    if (*rest != '\0') {
        where_add(out, ": ");
        where_add(out, rest);
    }
}

/* One sentence where both sides were called at one place, or one side does not say. */
static void where_call(const struct report_job *job, const struct nd_result *result,
                       unsigned side, struct text *out)
{
    static const char *const ids[] = {"report.stack.reference", "report.stack.candidate"};
    char line[2][LINE_SIZE];
    bool has[2];

    for (unsigned i = 0; i < 2; i++)
        has[i] = result->first.stack[i] != NULL &&
                 user_line(result->first.stack[i], line[i], LINE_SIZE);
    const bool same = has[0] && has[1] && strcmp(line[0], line[1]) == 0;
    if (!has[side] || (side == 1 && same))
        return;
    struct text place = {0};
    call_words(line[side], &place);
    if (place.len > 0)
        where_say(&job->page, same || !has[!side] ? "report.stack" : ids[side],
                  (const struct nd_param[]){
                      {"place", place.bytes, 0}
        },
                  1, out);
    nd_text_done(&place);
}

/* --- the report ---------------------------------------------------------------------- */

void nd_text_where_words(const struct report_job *job, const struct nd_result *result,
                         unsigned sentence, struct text *out)
{
    if (sentence == 0)
        where_span(job, result, out);
    else if (sentence <= 2)
        where_skipped(job, &result->first.span, sentence - 1, out);
    else
        where_call(job, result, sentence - 3, out);
}

static void where_lines(struct page *page, const char *stack)
{
    char line[LINE_SIZE];

    while (nd_stack_line(&stack, line, sizeof line)) {
        nd_page_tab(page, 4);
        page->indent = 6;
        nd_page_flow(page, INK_PLAIN, line);
        nd_page_end(page);
    }
}

void nd_text_where(struct report_job *job, const struct nd_result *result)
{
    struct page *page = &job->page;

    for (unsigned i = 0; i < TEXT_WHERE_COUNT; i++) {
        struct text words = {0};
        nd_text_where_words(job, result, i, &words);
        if (words.len > 0) {
            page->indent = 4;
            nd_page_tab(page, 2);
            nd_page_flow(page, INK_PLAIN, words.bytes);
            nd_page_end(page);
        }
        if (words.len > 0 && i >= 3 && job->options->verbose)
            where_lines(page, result->first.stack[i - 3]);
        nd_text_done(&words);
    }
}
