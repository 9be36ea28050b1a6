/*
 * Workflow commands of GitHub Actions: one annotation with the verdict, the first diverging
 * layer and why, then one for each failing layer.  A step shows ten annotations of a kind,
 * so the first of them is the one that counts and later layers are plain lines of the log.
 *
 * The form is "::error title=...::message" on a line of its own.  In the message % CR LF
 * are written %25 %0D %0A; in the title also : and , as %3A and %2C.  A runner takes "##["
 * anywhere in a line for a command too, so plain lines break it up.
 */
#include "report/text_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ANNOTATIONS = 10, PLAIN_LINES = 200 };

/* Text from anywhere; `special` are the characters that this place escapes. */
static void github_escape(struct report_job *job, const char *text, const char *special)
{
    struct out safe = {.depth = 0};

    nd_out_safe(&safe, text == NULL ? "" : text);
    for (const char *at = safe.text.len == 0 ? "" : safe.text.bytes; *at != '\0'; at++) {
        if (strchr(special, *at) != NULL)
            nd_out_printf(&job->page.out, "%%%02X", (unsigned)(unsigned char)*at);
        else
            nd_text_add(&job->page.out.text, at, 1);
    }
    nd_out_done(&safe);
}

static void github_title(struct report_job *job, const char *text)
{
    github_escape(job, text, "%\r\n:,");
}

static void github_text(struct report_job *job, const char *text)
{
    github_escape(job, text, "%\r\n");
}

/* A line of the log that must not be taken for a command. */
static void github_plain(struct report_job *job, const char *text)
{
    const char *at;

    for (; (at = strstr(text, "##[")) != NULL; text = at + 2) {
        struct text before = {0};
        nd_text_add(&before, text, (size_t)(at - text));
        nd_out_safe(&job->page.out, before.len == 0 ? "" : before.bytes);
        nd_out_raw(&job->page.out, "#\\x23");
        nd_text_done(&before);
    }
    nd_out_safe(&job->page.out, text);
}

static void github_phrase(struct report_job *job, const struct nd_phrase *phrase)
{
    struct text words = {0};

    nd_phrase_put(phrase, job->page.language, &words);
    github_text(job, words.len == 0 ? "" : words.bytes);
    nd_text_done(&words);
}

/* "LayerNorm, output.0, float32 [2, 12, 24]: drift 1.8e-01, bound 1e-1, origin" */
static void layer_words(const struct report_job *job, const struct nd_layer *layer,
                        struct text *out)
{
    const char *fails = nd_fail_word(layer->fails);
    char drift[FIGURE_SIZE], bound[FIGURE_SIZE];

    if (layer->worst_slot < layer->slot_count) {
        nd_text_slot_words(&job->page, layer, &layer->slots[layer->worst_slot], out);
        nd_text_puts(out, ": ");
    }
    if (fails != NULL && layer->fails != ND_FAIL_DRIFT)
        nd_text_printf(out, isnan(layer->drift) ? "%s" : "%s, ", fails);
    if (!isnan(layer->drift))
        nd_text_printf(out, "drift %s, bound %s", nd_figure_drift(layer->drift, drift),
                       nd_figure_bound(layer->bound, bound));
    if (layer->role != ND_ROLE_UNKNOWN)
        nd_text_printf(out, ", %s", nd_role_word(layer->role));
}

static void verdict_cause(struct report_job *job, const struct nd_result *result)
{
    char id[128];

    if (result->cause_count == 0)
        return;
    const struct nd_cause *cause = &result->causes[0];
    nd_out_raw(&job->page.out, "%0A");
    github_text(job, nd_text_cause_title(&job->page, cause));
    nd_out_printf(&job->page.out, " (%s): ", nd_cause_status_word(cause->status));
    github_phrase(job, &cause->summary);
    if (!nd_text_cause_advice(result, id, sizeof id))
        return;
    nd_out_raw(&job->page.out, "%0A");
    github_phrase(job, &(struct nd_phrase){id, cause->params, cause->param_count});
}

/* The annotation that counts: the verdict, where, and why. */
static void github_verdict(struct report_job *job, const struct nd_result *result)
{
    const struct nd_layer *layer = nd_result_layer(result, result->first.layer);
    struct out *out = &job->page.out;
    struct text words = {0};

    nd_out_printf(
        out, "::%s title=normdiff%%3A %s::", result->exit_code != 0 ? "error" : "warning",
        nd_verdict_word(result->verdict));
    github_phrase(job, &result->reason);
    if (layer != NULL) {
        nd_text_printf(&words, "first diverging layer #%zu %s", layer->index, layer->name);
        nd_text_step_rank(&job->page, layer, &words);
        nd_text_puts(&words, ", ");
        layer_words(job, layer, &words);
        nd_out_raw(out, "%0A");
        github_text(job, words.len == 0 ? "" : words.bytes);
    }
    verdict_cause(job, result);
    nd_out_raw(out, "\n");
    nd_text_done(&words);
    job->shown++;
}

static void github_begin(struct report_job *job, const struct nd_result *result)
{
    struct text line = {0};

    job->page.utf8 = true;
    nd_text_printf(&line, "normdiff: %s: ", nd_verdict_word(result->verdict));
    nd_phrase_put(&result->reason, job->page.language, &line);
    github_plain(job, line.len == 0 ? "" : line.bytes);
    nd_out_raw(&job->page.out, "\n");
    nd_text_done(&line);
    if (result->verdict != ND_VERDICT_AGREE)
        github_verdict(job, result);
    for (size_t i = 0; i < result->warning_count && i < ANNOTATIONS; i++) {
        nd_out_raw(&job->page.out, "::warning title=normdiff::");
        github_phrase(job, &result->warnings[i]);
        nd_out_raw(&job->page.out, "\n");
    }
}

static void github_layer(struct report_job *job, const struct nd_layer *layer)
{
    struct out *out = &job->page.out;
    struct text name = {0}, words = {0};

    if (layer->fails == ND_FAIL_NONE ||
        layer == nd_result_layer(job->result, job->result->first.layer))
        return;
    if (job->shown++ >= ANNOTATIONS + PLAIN_LINES && !job->options->all)
        return;
    nd_text_printf(&name, "#%zu %s", layer->index, layer->name);
    nd_text_step_rank(&job->page, layer, &name);
    layer_words(job, layer, &words);
    if (job->shown <= ANNOTATIONS) {
        nd_out_printf(out,
                      "::%s title=", job->result->exit_code != 0 ? "error" : "warning");
        github_title(job, name.len == 0 ? "" : name.bytes);
        nd_out_raw(out, "::");
        github_text(job, words.len == 0 ? "" : words.bytes);
    } else {
        github_plain(job, name.len == 0 ? "" : name.bytes);
        nd_out_raw(out, ": ");
        github_plain(job, words.len == 0 ? "" : words.bytes);
    }
    nd_out_raw(out, "\n");
    nd_text_done(&name);
    nd_text_done(&words);
}

static void github_end(struct report_job *job, const struct nd_result *result)
{
    const size_t most = ANNOTATIONS + PLAIN_LINES;
    const struct catalogue_value left = {.key = "count",
                                         .number = (double)(job->shown - most)};
    struct text words = {0};

    (void)result;
    if (job->shown <= most || job->options->all)
        return;
    nd_catalogue_fill(nd_page_words(&job->page, "report.more.layers"), &left, 1, &words);
    github_plain(job, words.len == 0 ? "" : words.bytes);
    nd_out_raw(&job->page.out, "\n");
    nd_text_done(&words);
}

/* What of a dump cannot be read. */
static void github_listing(struct report_job *job, const struct nd_listing *listing)
{
    struct out *out = &job->page.out;
    struct text name = {0};

    nd_out_printf(out, "normdiff: %zu layers, %zu tensors\n", listing->dump.layers,
                  listing->dump.tensors);
    for (size_t i = 0; i < listing->layer_count; i++)
        for (size_t k = 0; k < listing->layers[i].slot_count; k++) {
            const struct nd_list_slot *slot = &listing->layers[i].slots[k];
            if (slot->broken == NULL)
                continue;
            name.len = 0;
            nd_text_printf(&name, "#%zu %s %s", i, listing->layers[i].name, slot->name);
            nd_out_raw(out, "::error title=");
            github_title(job, name.len == 0 ? "" : name.bytes);
            nd_out_raw(out, "::");
            github_text(job, slot->broken);
            nd_out_raw(out, "\n");
        }
    nd_text_done(&name);
}

const struct report nd_report_github = {
    .name = "github",
    .title = "annotations of GitHub Actions",
    .begin = github_begin,
    .layer = github_layer,
    .end = github_end,
    .listing = github_listing,
};
