/*
 * The JSON report, read by another reader and checked key by key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "normdiff/normdiff.h"
#include "report/canned.h"
#include "report/capture.h"

static cJSON *document_of(const struct nd_result *result)
{
    FILE *stream = capture_begin();

    assert_int_equal(nd_report_write(result, "json", NULL, stream, NULL), ND_OK);
    char *text = capture_end(stream);
    assert_int_equal(text[strlen(text) - 1], '\n');
    cJSON *document = cJSON_ParseWithOpts(text, NULL, 1);
    assert_non_null(document);
    free(text);
    return document;
}

/* The node at "a.b.0.c". */
static const cJSON *node(const cJSON *at, const char *path)
{
    char key[64];

    while (*path != '\0') {
        const size_t len = strcspn(path, ".");
        assert_true(len < sizeof key);
        memcpy(key, path, len);
        key[len] = '\0';
        at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, atoi(key))
                               : cJSON_GetObjectItemCaseSensitive(at, key);
        if (at == NULL)
            fail_msg("no key %s", key);
        path += len + (path[len] == '.');
    }
    return at;
}

static void assert_text(const cJSON *document, const char *path, const char *expected)
{
    const cJSON *found = node(document, path);

    if (!cJSON_IsString(found))
        fail_msg("%s is not a string", path);
    assert_string_equal(found->valuestring, expected);
}

static void assert_number(const cJSON *document, const char *path, double expected)
{
    const cJSON *found = node(document, path);

    if (!cJSON_IsNumber(found) || found->valuedouble != expected)
        fail_msg("%s is not %g", path, expected);
}

static void assert_nothing(const cJSON *document, const char *path)
{
    if (!cJSON_IsNull(node(document, path)))
        fail_msg("%s is not null", path);
}

/* The keys of the object at path, in order, blanks between them. */
static void assert_keys(const cJSON *document, const char *path, const char *expected)
{
    char keys[512] = "";

    for (const cJSON *child = node(document, path)->child; child != NULL;
         child = child->next) {
        strcat(keys, keys[0] == '\0' ? "" : " ");
        strcat(keys, child->string);
    }
    if (strncmp(keys, expected, strlen(expected)) != 0)
        fail_msg("%s has the keys %s, not %s", path, keys, expected);
}

static void keys_stand_in_the_order_of_the_contract(void **state)
{
    cJSON *document = document_of(nd_canned_drift());

    (void)state;
    assert_keys(
        document, "",
        "schema tool reference candidate policy coverage summary verdict reason exit_code "
        "result first first_divergence checklist causes steps layers");
    assert_keys(document, "reference", "path format device layers tensors bytes order");
    assert_keys(document, "policy", "tiers metric fail_on nan rel_floor");
    assert_keys(
        document, "coverage",
        "pairs tensors_compared bytes_compared bytes_total reference_only candidate_only "
        "covered_by excluded skipped");
    assert_keys(document, "summary",
                "exact noise reduction elevated fault unresolved checksum");
    assert_keys(document, "result", "layer slot drift top1_agreement");
    assert_keys(document, "first", "elevated fault origin");
    assert_keys(document, "first.fault", "layer index step rank tier drift");
    assert_keys(
        document, "first_divergence",
        "layer index step rank type slot tier drift role input_drift metrics worst");
    assert_keys(document, "checklist.0", "id status declared recovered evidence advice");
    assert_keys(document, "causes.0", "id status side explains parameters summary search");
    assert_keys(document, "steps.0", "id status evidence argv");
    assert_keys(
        document, "layers.0",
        "index step rank name candidate_name matched_by type tier drift fails bound "
        "expected role slots");
    assert_keys(
        document, "layers.0.slots.0",
        "slot evidence tier drift dtype shape layout n differ bit_equal hidden_up_to notes "
        "metrics nonfinite");
    assert_keys(document, "layers.0.slots.0.nonfinite",
                "mismatches masked reference candidate");
    cJSON_Delete(document);
}

static void the_head_holds_dumps_policy_and_verdict(void **state)
{
    cJSON *document = document_of(nd_canned_drift());

    (void)state;
    assert_text(document, "schema", "normdiff/report/1");
    assert_text(document, "tool.version", "0.1.0");
    assert_text(document, "reference.path", "gpu.dump");
    assert_number(document, "reference.bytes", 1234567890);
    assert_text(document, "candidate.order", "timestamp");
    assert_number(document, "policy.tiers.1", 0.001);
    assert_nothing(document, "policy.rel_floor");
    assert_number(document, "coverage.tensors_compared", 148);
    assert_number(document, "summary.fault", 4);
    assert_text(document, "verdict", "drift");
    assert_text(document, "reason", "15 layers reach 1e-1");
    assert_number(document, "exit_code", 1);
    assert_number(document, "result.top1_agreement", 61.0 / 128.0);
    cJSON_Delete(document);
}

static void the_first_divergence_carries_metrics_of_all_three_kinds(void **state)
{
    cJSON *document = document_of(nd_canned_drift());

    (void)state;
    assert_text(document, "first_divergence.layer", "layers.4.input_layernorm");
    assert_number(document, "first_divergence.index", 17);
    assert_nothing(document, "first_divergence.step");
    assert_text(document, "first_divergence.tier", "fault");
    assert_text(document, "first_divergence.role", "origin");
    assert_number(document, "first_divergence.input_drift", 2.7e-7);
    assert_number(document, "first_divergence.metrics.max_abs", 1.3111);
    assert_number(document, "first_divergence.metrics.max_abs_index.2", 340);
    assert_number(document, "first_divergence.metrics.mean.candidate", 0.25);
    assert_number(document, "first_divergence.worst.0.reference", 2.4132);
    assert_text(document, "first_divergence.worst.1.candidate", "inf");
    cJSON_Delete(document);
}

static void findings_causes_and_steps_are_written_whole(void **state)
{
    cJSON *document = document_of(nd_canned_drift());

    (void)state;
    assert_text(document, "checklist.1.status", "mismatch");
    assert_text(document, "checklist.1.declared.reference", "1e-05");
    assert_nothing(document, "checklist.1.declared.candidate");
    assert_text(document, "checklist.1.recovered.candidate", "1.0002e-04");
    assert_nothing(document, "checklist.0.advice");
    assert_text(document, "causes.0.status", "confirmed");
    assert_text(document, "causes.0.side", "candidate");
    assert_number(document, "causes.0.parameters.candidate", 1.0002e-4);
    assert_text(document, "causes.0.summary",
                "the reference behaves as eps 1e-05, the candidate as 1.0002e-04");
    assert_text(document, "steps.0.id", "randomness");
    assert_text(document, "steps.0.argv.1", "--rerun-reference");
    assert_text(document, "steps.1.status", "done");
    cJSON_Delete(document);
}

static void layers_and_slots_are_written_whole(void **state)
{
    cJSON *document = document_of(nd_canned_drift());

    (void)state;
    assert_int_equal(cJSON_GetArraySize(node(document, "layers")), 32);
    assert_text(document, "layers.17.matched_by", "exact");
    assert_text(document, "layers.17.fails", "drift");
    assert_nothing(document, "layers.16.fails");
    assert_true(cJSON_IsTrue(node(document, "layers.16.expected")));
    assert_nothing(document, "layers.17.expected");
    assert_text(document, "layers.18.role", "inherited");
    assert_text(document, "layers.17.slots.0.layout.candidate", "NC1HWC0");
    assert_nothing(document, "layers.17.slots.0.layout.reference");
    assert_number(document, "layers.17.slots.0.layout.c0", 16);
    assert_nothing(document, "layers.16.slots.0.layout.c0");
    assert_number(document, "layers.17.slots.0.shape.2", 768);
    assert_nothing(document, "layers.17.slots.0.hidden_up_to");
    assert_text(document, "layers.20.slots.0.notes.0", "dtype_differs");
    cJSON_Delete(document);
}

static void a_missing_layer_has_null_for_what_it_lacks(void **state)
{
    cJSON *document = document_of(nd_canned_incomplete());

    (void)state;
    assert_text(document, "layers.1.name", "decoder.\x1b[31mred\x1b[0m");
    assert_text(document, "layers.1.fails", "missing");
    assert_nothing(document, "layers.1.tier");
    assert_nothing(document, "layers.1.drift");
    assert_nothing(document, "layers.1.candidate_name");
    assert_nothing(document, "layers.1.matched_by");
    assert_number(document, "layers.1.step", 3);
    assert_number(document, "layers.1.rank", 0);
    assert_nothing(document, "result");
    assert_nothing(document, "first.origin");
    assert_nothing(document, "first_divergence");
    assert_text(document, "coverage.skipped.0.reason", "bad CRC");
    assert_int_equal(cJSON_GetArraySize(node(document, "checklist")), 0);
    assert_int_equal(cJSON_GetArraySize(node(document, "steps")), 0);
    cJSON_Delete(document);
}

static void an_error_document_has_null_for_what_does_not_apply(void **state)
{
    const struct nd_error error = {.status = ND_ERR_MALFORMED,
                                   .file = "model.npy",
                                   .at = "byte 128",
                                   .found = "4096 \"bytes\"",
                                   .expected = "310"};
    FILE *stream = capture_begin();

    (void)state;
    assert_int_equal(nd_report_error(&error, "json", stream), ND_OK);
    char *text = capture_end(stream);
    assert_string_equal(text, "{\"schema\":\"normdiff/error/1\",\"exit_code\":2,\"error\":{"
                              "\"file\":\"model.npy\",\"at\":\"byte 128\","
                              "\"found\":\"4096 \\\"bytes\\\"\",\"expected\":\"310\","
                              "\"hint\":null}}\n");
    free(text);
}

static void the_text_report_has_no_error_document(void **state)
{
    const struct nd_error error = {.status = ND_ERR_IO, .found = "trouble"};
    FILE *stream = capture_begin();

    (void)state;
    assert_int_equal(nd_report_error(&error, "text", stream), ND_OK);
    char *text = capture_end(stream);
    assert_string_equal(text, "");
    free(text);
}

static void a_listing_holds_statistics_and_what_is_broken(void **state)
{
    FILE *stream = capture_begin();

    (void)state;
    assert_int_equal(nd_report_listing(nd_canned_listing(), "json", NULL, stream, NULL),
                     ND_OK);
    char *text = capture_end(stream);
    cJSON *document = cJSON_Parse(text);
    assert_non_null(document);
    assert_text(document, "schema", "normdiff/list/1");
    assert_text(document, "layers.0.type", "Conv2d");
    assert_number(document, "layers.0.slots.0.statistics.min", -2.5);
    assert_number(document, "layers.0.slots.0.storage.4", 16);
    assert_nothing(document, "layers.0.slots.1.statistics");
    assert_text(document, "layers.0.slots.1.broken", "bad CRC");
    assert_text(document, "ignored.0", "epoch (int)");
    cJSON_Delete(document);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_stand_in_the_order_of_the_contract),
        cmocka_unit_test(the_head_holds_dumps_policy_and_verdict),
        cmocka_unit_test(the_first_divergence_carries_metrics_of_all_three_kinds),
        cmocka_unit_test(findings_causes_and_steps_are_written_whole),
        cmocka_unit_test(layers_and_slots_are_written_whole),
        cmocka_unit_test(a_missing_layer_has_null_for_what_it_lacks),
        cmocka_unit_test(an_error_document_has_null_for_what_does_not_apply),
        cmocka_unit_test(the_text_report_has_no_error_document),
        cmocka_unit_test(a_listing_holds_statistics_and_what_is_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
