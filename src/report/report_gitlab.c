/*
 * GitLab's Code Quality: a JSON array with one issue for each failing layer, and for the
 * first diverging layer where nothing fails.  An issue has description, check_name,
 * fingerprint, severity and location; the fingerprint must stay the same from run to run,
 * so it is made of what names the layer and not of figures.  A dump has no lines: the path
 * is the candidate's, the line the layer's place in the order, counted from 1.
 */
#include "report/text_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a, 64 bits, of a text and the NUL behind it. */
static uint64_t fingerprint_add(uint64_t hash, const char *text)
{
    for (;; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
        if (*text == '\0')
            return hash;
    }
}

static void fingerprint(const char *check, const char *name, const char *place,
                        char ret_hex[33])
{
    const uint64_t basis = UINT64_C(0xcbf29ce484222325);
    uint64_t half[2] = {basis, fingerprint_add(basis, "normdiff")};

    for (size_t i = 0; i < 2; i++) {
        half[i] = fingerprint_add(half[i], check);
        half[i] = fingerprint_add(half[i], name);
        half[i] = fingerprint_add(half[i], place);
    }
    snprintf(ret_hex, 33, "%016" PRIx64 "%016" PRIx64, half[0], half[1]);
}

/* A path inside the repository: without a leading "./" or "/". */
static const char *relative(const char *path)
{
    while (path[0] == '/' || (path[0] == '.' && path[1] == '/'))
        path += path[0] == '/' ? 1 : 2;
    return path[0] == '\0' ? "dump" : path;
}

static void gitlab_issue(struct report_job *job, const char *check, const char *severity,
                         const char *print, const char *path, size_t line,
                         const struct text *words)
{
    struct out *out = &job->page.out;

    nd_json_open(out, '{');
    nd_json_key(out, "description");
    nd_json_string(out, words->len == 0 ? "" : words->bytes);
    nd_json_key(out, "check_name");
    nd_json_string(out, check);
    nd_json_key(out, "fingerprint");
    nd_json_string(out, print);
    nd_json_key(out, "severity");
    nd_json_string(out, severity);
    nd_json_key(out, "location");
    nd_json_open(out, '{');
    nd_json_key(out, "path");
    nd_json_string(out, relative(path));
    nd_json_key(out, "lines");
    nd_json_open(out, '{');
    nd_json_key(out, "begin");
    nd_json_uint(out, line);
    nd_json_close(out);
    nd_json_close(out);
    nd_json_close(out);
}

/* "#10 blocks.1.norm1: LayerNorm, output.0, float32 [2, 12, 24], drift 1.8e-01; eps ..." */
static void layer_words(const struct report_job *job, const struct nd_layer *layer,
                        bool is_first, struct text *out)
{
    const struct nd_result *result = job->result;
    const char *fails = nd_fail_word(layer->fails);
    char drift[FIGURE_SIZE];

    nd_text_printf(out, "#%zu %s", layer->index, layer->name);
    nd_text_step_rank(&job->page, layer, out);
    nd_text_puts(out, ": ");
    if (layer->worst_slot < layer->slot_count) {
        nd_text_slot_words(&job->page, layer, &layer->slots[layer->worst_slot], out);
        nd_text_puts(out, ", ");
    }
    if (fails != NULL && layer->fails != ND_FAIL_DRIFT)
        nd_text_printf(out, isnan(layer->drift) ? "%s" : "%s, ", fails);
    if (!isnan(layer->drift))
        nd_text_printf(out, "drift %s", nd_figure_drift(layer->drift, drift));
    if (layer->role != ND_ROLE_UNKNOWN)
        nd_text_printf(out, ", %s", nd_role_word(layer->role));
    if (!is_first || result->cause_count == 0)
        return;
    nd_text_printf(out, "; %s (%s): ", nd_text_cause_title(&job->page, result->causes),
                   nd_cause_status_word(result->causes[0].status));
    nd_phrase_put(&result->causes[0].summary, job->page.language, out);
}

/* Where the drift entered weighs most; what only inherits it, least. */
static const char *layer_severity(const struct nd_layer *layer, bool is_first)
{
    if (layer->fails == ND_FAIL_NONE)
        return "minor";
    if (is_first || layer->role == ND_ROLE_ORIGIN)
        return "critical";
    return layer->role == ND_ROLE_INHERITED ? "minor" : "major";
}

static void gitlab_begin(struct report_job *job, const struct nd_result *result)
{
    (void)result;
    job->page.utf8 = true;
    nd_json_open(&job->page.out, '[');
}

static void gitlab_layer(struct report_job *job, const struct nd_layer *layer)
{
    const struct nd_result *result = job->result;
    const bool is_first = layer == nd_result_layer(result, result->first.layer);
    char check[64], place[96], print[33];
    struct text words = {0};

    if (layer->fails == ND_FAIL_NONE && !is_first)
        return;
    const char *fails = nd_fail_word(layer->fails);
    snprintf(check, sizeof check, "normdiff/%s", fails == NULL ? "divergence" : fails);
    snprintf(place, sizeof place, "%s/%lld/%lld",
             layer->direction == NULL ? "" : layer->direction, (long long)layer->step,
             (long long)layer->rank);
    fingerprint(check, layer->name, place, print);
    layer_words(job, layer, is_first, &words);
    gitlab_issue(job, check, layer_severity(layer, is_first), print, result->dump[1].path,
                 layer->index + 1, &words);
    nd_text_done(&words);
}

static void gitlab_end(struct report_job *job, const struct nd_result *result)
{
    (void)result;
    nd_json_close(&job->page.out);
    nd_out_raw(&job->page.out, "\n");
}

/* What of a dump cannot be read. */
static void gitlab_listing(struct report_job *job, const struct nd_listing *listing)
{
    char print[33];
    struct text words = {0};

    nd_json_open(&job->page.out, '[');
    for (size_t i = 0; i < listing->layer_count; i++)
        for (size_t k = 0; k < listing->layers[i].slot_count; k++) {
            const struct nd_list_slot *slot = &listing->layers[i].slots[k];
            if (slot->broken == NULL)
                continue;
            words.len = 0;
            nd_text_printf(&words, "#%zu %s %s: %s", i, listing->layers[i].name, slot->name,
                           slot->broken);
            fingerprint("normdiff/unreadable", listing->layers[i].name, slot->name, print);
            gitlab_issue(job, "normdiff/unreadable", "major", print, listing->dump.path,
                         i + 1, &words);
        }
    nd_json_close(&job->page.out);
    nd_out_raw(&job->page.out, "\n");
    nd_text_done(&words);
}

const struct report nd_report_gitlab = {
    .name = "gitlab",
    .title = "Code Quality of GitLab",
    .begin = gitlab_begin,
    .layer = gitlab_layer,
    .end = gitlab_end,
    .listing = gitlab_listing,
};
