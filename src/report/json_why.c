/*
 * Findings, causes and steps as JSON.
 */
#include "report/json_parts.h"

#include <stdio.h>
#include <string.h>

enum { SEARCH_LIMIT = 3 }; /* phrases that find a cause in documentation */

void nd_json_finding(struct report_job *job, const struct nd_finding *finding)
{
    struct out *out = &job->page.out;

    nd_json_open(out, '{');
    ND_JSON(out, "id", string, finding->id);
    ND_JSON(out, "status", string, nd_check_status_word(finding->status));
    nd_json_pair(out, "declared", finding->declared);
    nd_json_pair(out, "recovered", finding->recovered);
    nd_json_key(out, "evidence");
    nd_json_phrase(out, &finding->evidence, job->page.language);
    nd_json_key(out, "advice");
    nd_json_phrase(out, &finding->advice, job->page.language);
    nd_json_close(out);
}

/* The first few different phrases of the catalogue, English and Chinese in turn. */
static void why_search(struct out *out, const char *id)
{
    const char *shown[SEARCH_LIMIT] = {0};
    size_t count = 0;

    nd_json_open(out, '[');
    for (unsigned i = 0; i < 2 * SEARCH_LIMIT && count < SEARCH_LIMIT; i++) {
        char key[128];
        snprintf(key, sizeof key, "cause.%s.search.%u", id, i / 2 + 1);
        const char *words = nd_catalogue_words(key, i % 2 == 0 ? LANGUAGE_EN : LANGUAGE_ZH);
        bool fresh = words != NULL && words[0] != '\0';
        for (size_t k = 0; k < count && fresh; k++)
            fresh = strcmp(shown[k], words) != 0;
        if (!fresh)
            continue;
        shown[count++] = words;
        nd_json_string(out, words);
    }
    nd_json_close(out);
}

void nd_json_cause(struct report_job *job, const struct nd_cause *cause)
{
    struct out *out = &job->page.out;

    nd_json_open(out, '{');
    ND_JSON(out, "id", string, cause->id);
    ND_JSON(out, "status", string, nd_cause_status_word(cause->status));
    ND_JSON(out, "side", string, nd_side_word(cause->side));
    ND_JSON(out, "explains", number_or_null, cause->explains);
    nd_json_key(out, "parameters");
    nd_json_open(out, '{');
    for (size_t i = 0; i < cause->param_count; i++) {
        const struct nd_param *param = &cause->params[i];
        nd_json_key(out, param->key);
        if (param->text != NULL)
            nd_json_string(out, param->text);
        else
            nd_json_double(out, param->number);
    }
    nd_json_close(out);
    nd_json_key(out, "summary");
    nd_json_phrase(out, &cause->summary, job->page.language);
    nd_json_key(out, "search");
    why_search(out, cause->id);
    nd_json_close(out);
}

void nd_json_step(struct report_job *job, const struct nd_step *step)
{
    struct out *out = &job->page.out;

    nd_json_open(out, '{');
    ND_JSON(out, "id", string, step->id);
    ND_JSON(out, "status", string, nd_step_status_word(step->status));
    nd_json_key(out, "evidence");
    nd_json_phrase(out, &step->evidence, job->page.language);
    nd_json_key(out, "argv");
    nd_json_open(out, '[');
    for (size_t i = 0; i < step->argc; i++)
        nd_json_string(out, step->argv[i]);
    nd_json_close(out);
    nd_json_close(out);
}

void nd_json_error(struct report_job *job, const struct nd_error *error)
{
    struct out *const out = &job->page.out;
    const char *const keys[] = {"file", "at", "found", "expected", "hint"};
    const char *const values[] = {error->file, error->at, error->found, error->expected,
                                  error->hint};

    nd_json_open(out, '{');
    ND_JSON(out, "schema", string, "normdiff/error/1");
    ND_JSON(out, "exit_code", int, 2);
    nd_json_key(out, "error");
    nd_json_open(out, '{');
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ND_JSON(out, keys[i], string, values[i][0] == '\0' ? NULL : values[i]);
    nd_json_close(out);
    nd_json_close(out);
    nd_out_raw(out, "\n");
}
