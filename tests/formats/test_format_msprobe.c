/*
 * msprobe dumps: trees that mindstudio-probe 26.2.0 wrote with PyTorch on a CPU
 * (data/msprobe/make_msprobe.py), and records written by hand for what it does not do there.
 */
#define _GNU_SOURCE /* symlink */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/folder.h"

static struct nd_error error;

static struct dump *open_path(const char *path)
{
    struct dump *dump = NULL;

    if (nd_dump_open(path, NULL, NULL, &dump, &error) != ND_OK)
        fail_msg("%s: %s: found %s", path, error.at, error.found);
    return dump;
}

static struct dump *open_data(const char *name)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/msprobe/%s", DATA, name);
    return open_path(path);
}

static struct dump *open_json(const char *data)
{
    static char json[64 * 1024];
    struct dump *dump = NULL;

    snprintf(json, sizeof json, "{\"task\": \"statistics\", \"level\": \"mix\", \"data\": %s}",
             data);
    if (nd_dump_open_bytes(json, strlen(json), "dump.json", NULL, NULL, &dump, &error) != ND_OK)
        fail_msg("%s: found %s", error.at, error.found);
    return dump;
}

static enum nd_status status_of(const char *json)
{
    struct dump *dump = NULL;
    const enum nd_status status =
        nd_dump_open_bytes(json, strlen(json), "dump.json", NULL, NULL, &dump, &error);

    if (status == ND_OK)
        nd_dump_close(dump);
    return status;
}

static const struct dump_layer *layer_of(const struct dump *dump, const char *name)
{
    for (size_t i = 0; i < dump->layer_count; i++)
        if (strcmp(dump->layers[i].name, name) == 0)
            return &dump->layers[i];
    fail_msg("no layer %s", name);
    return NULL;
}

static const struct dump_slot *layer_slot(const struct dump_layer *layer, const char *name)
{
    for (size_t i = 0; i < layer->slot_count; i++)
        if (strcmp(layer->slots[i].name, name) == 0)
            return &layer->slots[i];
    return NULL;
}

static const struct dump_slot *slot_of(const struct dump *dump, const char *layer,
                                       const char *name)
{
    const struct dump_slot *const slot = layer_slot(layer_of(dump, layer), name);

    if (slot == NULL)
        fail_msg("%s has no slot %s", layer, name);
    return slot;
}

static const struct attribute *attribute_of(const struct dump *dump, const char *layer,
                                            const char *key)
{
    const struct dump_layer *const at = layer_of(dump, layer);

    for (size_t i = 0; i < at->attribute_count; i++)
        if (strcmp(at->attributes[i].key, key) == 0)
            return &at->attributes[i];
    fail_msg("%s has no attribute %s", layer, key);
    return NULL;
}

#define TENSOR(shape, stats)                                                               \
    "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": " shape stats "}"
#define STATS(n) ", \"Max\": " n ", \"Min\": " n ", \"Mean\": " n ", \"Norm\": " n

/* --- trees of the real tool --------------------------------------------------------------- */

static void every_tensor_file_holds_what_its_record_says_of_it(void **state)
{
    struct dump *const dump = open_data("gpu");
    size_t compared = 0;

    (void)state;
    for (size_t i = 0; i < dump->layer_count; i++)
        for (size_t k = 0; k < dump->layers[i].slot_count; k++) {
            const struct dump_slot *const slot = &dump->layers[i].slots[k];
            struct open_slot open;
            double values[64], max = -(double)INFINITY, min = (double)INFINITY;
            assert_null(slot->broken);
            assert_int_equal(slot->evidence, ND_EVIDENCE_VALUES);
            assert_int_equal(nd_slot_open(dump, slot, &open, &error), ND_OK);
            assert_in_range(open.view.count, 1, 64);
            nd_view_decode(&open.view, 0, open.view.count, values);
            for (uint64_t v = 0; v < open.view.count; v++) {
                max = fmax(max, values[v]);
                min = fmin(min, values[v]);
            }
            assert_true(max == slot->statistics.value[STATISTIC_MAX]);
            assert_true(min == slot->statistics.value[STATISTIC_MIN]);
            assert_true(nd_slot_close(&open));
            compared++;
        }
    assert_int_equal(compared, 47);
    nd_dump_close(dump);
}

static void layers_stand_in_key_order_with_step_and_rank(void **state)
{
    static const char *const names[] = {"Module.first.norm.LayerNorm.forward.0",
                                        "Module.first.fc.Linear.forward.0",
                                        "Module.first.Block.forward.0",
                                        "Module.second.norm.LayerNorm.forward.0"};
    struct dump *const dump = open_data("gpu");

    (void)state;
    assert_int_equal(dump->layer_count, 19);
    assert_int_equal(dump->order, ND_ORDER_RECORDED);
    assert_string_equal(dump->framework, "pytorch");
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(dump->layers[i].name, names[i]);
        assert_int_equal(dump->layers[i].step, 0);
        assert_int_equal(dump->layers[i].rank, 0);
    }
    assert_string_equal(dump->layers[0].type, "LayerNorm");
    nd_dump_close(dump);
}

static void a_checkpoint_s_second_run_is_recomputed_though_no_record_says_so(void **state)
{
    struct dump *const dump = open_data("stats");
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < dump->layer_count; i++)
        count += dump->layers[i].recompute;
    /* layer_norm, LayerNorm, linear, Linear, gelu (cut short) and the Block itself */
    assert_int_equal(count, 6);
    assert_true(layer_of(dump, "Module.second.Block.forward.1")->recompute);
    assert_true(layer_of(dump, "Functional.gelu.2.forward")->recompute);
    assert_false(layer_of(dump, "Functional.gelu.1.forward")->recompute);
    nd_dump_close(dump);
}

static void construct_gives_parents_and_containers(void **state)
{
    struct dump *const dump = open_data("stats");
    const struct dump_layer *const norm =
        layer_of(dump, "Module.first.norm.LayerNorm.forward.0");

    (void)state;
    assert_string_equal(norm->parent, "Module.first.Block.forward.0");
    assert_true(norm->container); /* of the API below */
    assert_string_equal(layer_of(dump, "Functional.layer_norm.0.forward")->parent,
                        "Module.first.norm.LayerNorm.forward.0");
    assert_false(layer_of(dump, "Functional.layer_norm.0.forward")->container);
    assert_true(layer_of(dump, "Module.first.Block.forward.0")->container);
    assert_true(layer_of(dump, "Module.second.Block.backward.0")->container);
    nd_dump_close(dump);
}

static void stacks_are_kept_innermost_first(void **state)
{
    struct dump *const dump = open_data("gpu");
    const char *const stack = layer_of(dump, "Module.first.norm.LayerNorm.forward.0")->stack;

    (void)state;
    assert_non_null(stack);
    assert_non_null(strstr(stack, "File make_msprobe.py, line 14, in forward,"));
    assert_null(strstr(stack, "\n x =")); /* a frame is one line */
    nd_dump_close(dump);
}

static void positional_arguments_of_an_api_are_named(void **state)
{
    struct dump *const dump = open_data("stats");
    const char *const name = "Functional.layer_norm.0.forward";
    const struct attribute *const shape = attribute_of(dump, name, "normalized_shape");

    (void)state;
    assert_true(attribute_of(dump, name, "eps")->number == 1e-5);
    assert_int_equal(shape->kind, ATTRIBUTE_LIST);
    assert_int_equal(shape->list_len, 1);
    assert_true(shape->list[0] == 4);
    assert_string_equal(shape->text, "[4]");
    assert_non_null(slot_of(dump, name, "input.0"));
    assert_non_null(slot_of(dump, name, "param.weight"));
    assert_non_null(slot_of(dump, name, "param.bias"));
    assert_string_equal(attribute_of(dump, "Functional.gelu.0.forward", "approximate")->text,
                        "tanh");
    assert_true(attribute_of(dump, "Module.first.Block.forward.0", "scale")->number == 0.5);
    nd_dump_close(dump);
}

static void gradients_of_parameters_are_slots_of_their_own_layer(void **state)
{
    struct dump *const dump = open_data("gpu");
    const struct dump_layer *const layer =
        layer_of(dump, "Module.first.fc.Linear.parameters_grad.0");

    (void)state;
    assert_int_equal(layer->direction, DIRECTION_BACKWARD);
    assert_string_equal(layer->type, "Linear");
    assert_int_equal(layer->slot_count, 2);
    assert_non_null(layer_slot(layer, "grad.weight"));
    assert_non_null(layer_slot(layer, "grad.bias"));
    nd_dump_close(dump);
}

/* zlib.crc32 of the tensor's bytes, as Python computed it. */
static void checksums_are_named_by_their_kind(void **state)
{
    struct dump *const dump = open_data("md5");
    const struct dump_slot *const slot =
        slot_of(dump, "Functional.layer_norm.0.forward", "param.weight");

    (void)state;
    assert_int_equal(slot->evidence, ND_EVIDENCE_CHECKSUM);
    assert_string_equal(slot->checksum, "crc32:e8681456");
    assert_true(slot->has_statistics);
    nd_dump_close(dump);
}

static void saved_tensors_of_the_debug_level_are_layers(void **state)
{
    struct dump *const dump = open_data("debug");

    (void)state;
    assert_non_null(slot_of(dump, "kept.0.debug", "output.y"));
    assert_non_null(slot_of(dump, "kept.0.debug", "output.pair.0"));
    assert_non_null(slot_of(dump, "kept.1.debug", "output.0"));
    assert_int_equal(layer_of(dump, "kept.1.debug")->call, 1);
    assert_int_equal(layer_of(dump, "kept_grad.0.debug")->direction, DIRECTION_BACKWARD);
    nd_dump_close(dump);
}

static void any_folder_of_a_tree_or_its_json_is_a_root(void **state)
{
    static const char *const roots[] = {"gpu/step0", "gpu/step0/rank0",
                                        "gpu/step0/rank0/dump.json"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct dump *const dump = open_data(roots[i]);
        assert_int_equal(dump->layer_count, 19);
        assert_int_equal(dump->layers[0].step, -1);
        assert_int_equal(dump->layers[0].rank, i == 0 ? 0 : -1);
        assert_int_equal(dump->layers[0].slots[0].evidence, ND_EVIDENCE_VALUES);
        assert_non_null(dump->layers[0].stack);
        nd_dump_close(dump);
    }
}

/* --- records by hand --------------------------------------------------------------------- */

static void bare_nan_and_infinity_are_numbers(void **state)
{
    struct dump *const dump = open_json(
        "{\"Torch.exp.0.forward\": {\"output\": [{\"type\": \"torch.Tensor\", \"dtype\": "
        "\"torch.bfloat16\", \"shape\": [2], \"Max\": Infinity, \"Min\": -Infinity, \"Mean\": "
        "NaN, \"Norm\": null}]}}");
    const struct dump_slot *const slot = slot_of(dump, "Torch.exp.0.forward", "output.0");

    (void)state;
    assert_true(slot->statistics.value[STATISTIC_MAX] == (double)INFINITY);
    assert_true(slot->statistics.value[STATISTIC_MIN] == -(double)INFINITY);
    assert_true(slot->statistics.is_nan[STATISTIC_MEAN]);
    assert_true(isnan(slot->statistics.value[STATISTIC_NORM]));
    assert_false(slot->statistics.is_nan[STATISTIC_NORM]);
    assert_int_equal(slot->dtype, ND_DTYPE_bf16);
    nd_dump_close(dump);
}

static void old_and_new_names_mean_the_same(void **state)
{
    static const struct {
        const char *key, *type;
        enum direction direction;
        int64_t call;
    } rows[] = {
        {"Module.a.b.Conv2d.forward.3", "Conv2d", DIRECTION_FORWARD, 3},
        {"Cell.a.b.Dense.2.backward", "Dense", DIRECTION_BACKWARD, 2},
        {"Functional.conv2d.11.forward", "conv2d", DIRECTION_FORWARD, 11},
        {"NPU.npu_rms_norm.0.backward", "npu_rms_norm", DIRECTION_BACKWARD, 0},
        {"Aten.add.Tensor.4.forward", "add", DIRECTION_FORWARD, 4},
        {"Module.0.layer.forward.forward.1", "forward", DIRECTION_FORWARD, 1},
        {"Tensor.__add__.5.forward", "__add__", DIRECTION_FORWARD, 5},
        {"odd", "", DIRECTION_FORWARD, 0},
        {"forward", "", DIRECTION_FORWARD, 0},
        {"forward.0", "", DIRECTION_FORWARD, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char data[256];
        snprintf(data, sizeof data, "{\"%s\": {\"output\": [" TENSOR("[1]", STATS("1")) "]}}",
                 rows[i].key);
        struct dump *const dump = open_json(data);
        assert_string_equal(dump->layers[0].name, rows[i].key);
        assert_string_equal(dump->layers[0].type, rows[i].type);
        assert_int_equal(dump->layers[0].direction, rows[i].direction);
        assert_int_equal(dump->layers[0].call, rows[i].call);
        nd_dump_close(dump);
    }
}

static void an_old_parameters_grad_is_the_first(void **state)
{
    struct dump *const dump = open_json(
        "{\"Module.fc.Linear.parameters_grad\": {\"weight\": [" TENSOR("[2]", STATS("1")) "]}}");

    (void)state;
    assert_non_null(slot_of(dump, "Module.fc.Linear.parameters_grad.0", "grad.weight"));
    nd_dump_close(dump);
}

static void nested_arguments_have_their_place_in_the_name(void **state)
{
    struct dump *const dump = open_json(
        "{\"Torch.cat.0.forward\": {\"input_args\": [[" TENSOR("[1]", STATS("1")) ", null, "
        TENSOR("[1]", STATS("2")) "], {}, null, {\"type\": \"slice\", \"value\": [0, null, 2]}], "
        "\"input_kwargs\": {\"out\": {\"a\": [" TENSOR("[1]", STATS("3")) "]}, \"dim\": {\"type\": "
        "\"int\", \"value\": -1}, \"where\": {\"type\": \"torch.device\", \"value\": \"npu:0\"}}, "
        "\"output\": " TENSOR("[1]", STATS("4")) "}}");
    const char *const name = "Torch.cat.0.forward";

    (void)state;
    assert_true(slot_of(dump, name, "input.0.2")->statistics.value[STATISTIC_MAX] == 2);
    assert_true(slot_of(dump, name, "input.out.a.0")->statistics.value[STATISTIC_MAX] == 3);
    assert_true(slot_of(dump, name, "output.0")->statistics.value[STATISTIC_MAX] == 4);
    assert_int_equal(layer_of(dump, name)->slot_count, 4);
    assert_true(attribute_of(dump, name, "dim")->number == -1);
    assert_string_equal(attribute_of(dump, name, "input.3")->text, "[0, null, 2]");
    assert_string_equal(attribute_of(dump, name, "device")->text, "npu:0");
    nd_dump_close(dump);
}

static void other_tensors_and_wrappers_are_tensors(void **state)
{
    struct dump *const dump = open_json(
        "{\"Distributed.batch_isend_irecv.0.forward\": {\"input_args\": [[{\"class_type\": "
        "\"torch.distributed.P2POp\", \"tensor\": " TENSOR("[3]", STATS("1"))
        ", \"op\": \"irecv\", \"peer\": 1}]], \"output\": []},"
        "\"Torch.abs.0.forward\": {\"input_args\": [{\"type\": "
        "\"torch.distributed.tensor.DTensor\", \"dtype\": \"torch.float16\", \"shape\": [4], "
        "\"Max\": true, \"Min\": false, \"device_mesh\": [0, 1], \"placements\": [{\"Shard\": "
        "{\"dim\": 0}}]}], \"output\": [{\"type\": \"float32\", \"value\": 1.5}]}}");
    const struct dump_slot *const slot = slot_of(dump, "Torch.abs.0.forward", "input.0");

    (void)state;
    assert_true(
        slot_of(dump, "Distributed.batch_isend_irecv.0.forward", "input.0.0")->undefined);
    assert_int_equal(slot->dtype, ND_DTYPE_f16);
    assert_true(slot->statistics.value[STATISTIC_MAX] == 1);
    assert_true(slot->statistics.value[STATISTIC_MIN] == 0);
    assert_true(slot_of(dump, "Torch.abs.0.forward", "output.0")
                    ->statistics.value[STATISTIC_NORM] == 1.5);
    nd_dump_close(dump);
}

static void what_has_no_meaning_is_undefined(void **state)
{
    struct dump *const dump = open_json(
        "{\"Torch.empty.0.forward\": {\"output\": [" TENSOR("[1]", STATS("1")) "]},"
        "\"Torch.gather.0.forward\": {\"input_args\": [" TENSOR("[1]", STATS("1")) "]},"
        "\"Distributed.all_gather_into_tensor.0.forward\": {\"input_args\": ["
        TENSOR("[1]", STATS("1")) ", " TENSOR("[1]", STATS("1")) "]}}");

    (void)state;
    assert_true(slot_of(dump, "Torch.empty.0.forward", "output.0")->undefined);
    assert_false(slot_of(dump, "Torch.gather.0.forward", "input.0")->undefined);
    assert_true(
        slot_of(dump, "Distributed.all_gather_into_tensor.0.forward", "input.0")->undefined);
    assert_false(
        slot_of(dump, "Distributed.all_gather_into_tensor.0.forward", "input.1")->undefined);
    nd_dump_close(dump);
}

static void epsilon_of_npu_rms_norm_is_its_third_argument(void **state)
{
    struct dump *const dump = open_json(
        "{\"NPU.npu_rms_norm.0.forward\": {\"input_args\": [" TENSOR("[2, 4]", STATS("1")) ", "
        TENSOR("[4]", STATS("1")) ", {\"type\": \"float\", \"value\": 1e-06}], \"output\": ["
        TENSOR("[2, 4]", STATS("1")) "]}}");
    const char *const name = "NPU.npu_rms_norm.0.forward";

    (void)state;
    assert_true(attribute_of(dump, name, "epsilon")->number == 1e-6);
    assert_non_null(slot_of(dump, name, "param.weight"));
    nd_dump_close(dump);
}

/* bfloat16 holds 718 = 0x1.67p9 only as 720 or 716: 8 bits, so a printed 720 was rounded by
 * up to 2^-8 of itself; 718 was not computed in bfloat16. */
static void half_precision_statistics_carry_its_rounding(void **state)
{
    struct dump *const dump = open_json(
        "{\"Torch.exp.0.forward\": {\"output\": [{\"type\": \"torch.Tensor\", \"dtype\": "
        "\"torch.bfloat16\", \"shape\": [2], \"Max\": 720.0, \"Mean\": 718.0, \"Norm\": 720.0}]}}");
    const struct dump_slot *const slot = slot_of(dump, "Torch.exp.0.forward", "output.0");

    (void)state;
    assert_true(slot->statistics.half_unit[STATISTIC_MAX] == 0);
    assert_true(slot->statistics.half_unit[STATISTIC_MEAN] == 0);
    assert_true(slot->statistics.half_unit[STATISTIC_NORM] == 720.0 / 256);
    nd_dump_close(dump);
}

static void task_xor_has_a_value_where_there_is_no_dimension(void **state)
{
    struct dump *const dump = open_json(
        "{\"Tensor.sum.0.forward\": {\"input_args\": [{\"type\": \"torch.Tensor\", \"dtype\": "
        "\"torch.float32\", \"shape\": [2, 4, 3], \"md5\": \"0x00f2258300cb0824\"}], \"output\": "
        "[{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [], \"md5\": "
        "4.832815647125244}]}}");
    const struct dump_slot *const value = slot_of(dump, "Tensor.sum.0.forward", "output.0");

    (void)state;
    assert_string_equal(slot_of(dump, "Tensor.sum.0.forward", "input.0")->checksum,
                        "xor:0x00f2258300cb0824");
    assert_int_equal(value->evidence, ND_EVIDENCE_STATISTICS);
    assert_true(value->statistics.value[STATISTIC_MEAN] == 4.832815647125244);
    nd_dump_close(dump);
}

static void calls_are_numbered_without_recomputed_ones(void **state)
{
#define CALL(n, x, y, more)                                                                \
    "\"Torch.exp." n ".forward\": {\"input_args\": [" TENSOR("[1]", STATS(x))              \
        "], \"output\": [" TENSOR("[1]", STATS(y)) "]" more "}"
    struct dump *const dump = open_json(
        "{" CALL("0", "1", "5", "") ", " CALL("1", "2", "6", "") ", "
        CALL("2", "2", "6", ", \"is_recompute\": true") ", "
        "\"Torch.exp.2.backward\": {\"input\": [], \"output\": []}, "
        CALL("3", "1", "5.5", ", \"is_recompute\": true") ", "
        "\"Torch.exp.3.backward\": {\"input\": [], \"output\": []}, "
        CALL("4", "3", "7", "") "}");
#undef CALL

    (void)state;
    assert_int_equal(dump->layer_count, 7);
    assert_true(dump->layers[2].recompute);
    assert_string_equal(dump->layers[3].name, "Torch.exp.1.backward"); /* of what 2 repeats */
    assert_string_equal(dump->layers[5].name, "Torch.exp.0.backward");
    assert_string_equal(dump->layers[6].name, "Torch.exp.2.forward"); /* was 4 */
    assert_int_equal(dump->layers[6].call, 2);
    /* 3 repeats 0, and came to another output. */
    assert_string_equal(slot_of(dump, "Torch.exp.0.forward", "output.0")->note,
                        "recompute_differs");
    assert_null(slot_of(dump, "Torch.exp.1.forward", "output.0")->note);
    nd_dump_close(dump);
}

/* --- trees by hand ------------------------------------------------------------------------- */

static const char one_record[] =
    "{\"task\": \"tensor\", \"level\": \"L1\", \"dump_data_dir\": \"elsewhere\", \"data\": "
    "{\"Torch.exp.0.forward\": {\"output\": [{\"type\": \"torch.Tensor\", \"dtype\": "
    "\"torch.float32\", \"shape\": [1], \"Max\": 2.0, \"data_name\": \"%s\"}]}}}";

static void write_record(const char *path, const char *data_name)
{
    char json[2048];

    snprintf(json, sizeof json, one_record, data_name);
    folder_text(path, json);
}

static void ranks_steps_and_processes_are_sorted_by_number(void **state)
{
    const char *const root = folder_new();

    (void)state;
    write_record("step0/rank0/dump.json", "-1");
    write_record("step0/rank10/dump.json", "-1");
    write_record("step0/rank2/dump.json", "-1");
    write_record("step0/proc77/dump.json", "-1"); /* a helper process beside ranks */
    write_record("step3/proc12/dump.json", "-1");
    struct dump *const dump = open_path(root);
    static const int64_t places[][2] = {{0, 0}, {0, 2}, {0, 10}, {3, -1}};
    assert_int_equal(dump->layer_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(dump->layers[i].step, places[i][0]);
        assert_int_equal(dump->layers[i].rank, places[i][1]);
    }
    assert_int_equal(dump->ignored_count, 1);
    nd_dump_close(dump);
    folder_free();
}

static void folders_above_the_steps_become_a_prefix_where_they_differ(void **state)
{
    const char *const root = folder_new();

    (void)state;
    write_record("step_1/actor_update/step0/rank0/dump.json", "-1");
    struct dump *dump = open_path(root);
    assert_string_equal(dump->layers[0].name, "Torch.exp.0.forward");
    nd_dump_close(dump);
    write_record("step_1/rollout/step0/rank0/dump.json", "-1");
    dump = open_path(root);
    assert_int_equal(dump->layer_count, 2);
    assert_string_equal(dump->layers[1].name, "step_1/rollout/Torch.exp.0.forward");
    nd_dump_close(dump);
    folder_free();
}

static void tensor_files_are_read_below_the_dump_s_own_folder_only(void **state)
{
    static const char *const names[] = {"../x.npy", "/etc/passwd", "..", ".", "a/b.npy"};
    const char *const root = folder_new();

    (void)state;
    folder_array("x.npy", 1);
    folder_array("dump_tensor_data/y.npy", 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_record("dump.json", names[i]);
        struct dump *const dump = open_path(root);
        assert_non_null(slot_of(dump, "Torch.exp.0.forward", "output.0")->broken);
        assert_int_equal(dump->bytes, 4); /* y.npy alone */
        nd_dump_close(dump);
    }
    assert_int_equal(symlink("../x.npy", folder_path("dump_tensor_data/link.npy")), 0);
    write_record("dump.json", "link.npy");
    struct dump *const dump = open_path(root);
    const struct dump_slot *const slot = slot_of(dump, "Torch.exp.0.forward", "output.0");
    assert_int_equal(slot->evidence, ND_EVIDENCE_STATISTICS); /* it is not there */
    assert_string_equal(slot->note, "tensor_file_missing");
    nd_dump_close(dump);
    folder_free();
}

static void a_missing_tensor_file_leaves_the_statistics(void **state)
{
    const char *const root = folder_new();

    (void)state;
    write_record("dump.json", "gone.npy");
    struct dump *dump = open_path(root);
    assert_int_equal(dump->layers[0].slots[0].evidence, ND_EVIDENCE_STATISTICS);
    assert_null(dump->layers[0].slots[0].note); /* a dump of statistics, then */
    nd_dump_close(dump);
    folder_text("dump_tensor_data/broken.npy", "no array");
    write_record("dump.json", "broken.npy");
    dump = open_path(root);
    assert_non_null(dump->layers[0].slots[0].broken);
    nd_dump_close(dump);
    folder_free();
}

static void files_without_records_are_taken_by_their_names(void **state)
{
    const char *const root = folder_new();

    (void)state;
    folder_array("step0/rank1/dump_tensor_data/Torch.exp.10.forward.output.0.npy", 3);
    folder_array("step0/rank1/dump_tensor_data/Torch.exp.9.forward.kwargs.out.npy", 2);
    folder_array("step0/rank1/dump_tensor_data/Module.f.Linear.forward.0.parameters.bias.npy", 1);
    folder_array("step0/rank1/dump_tensor_data/Module.f.Linear.parameters_grad.0.bias.npy", 1);
    struct dump *const dump = open_path(root);
    assert_int_equal(dump->order, ND_ORDER_NAME);
    assert_non_null(slot_of(dump, "Torch.exp.10.forward", "output.0"));
    assert_non_null(slot_of(dump, "Torch.exp.9.forward", "input.out"));
    assert_non_null(slot_of(dump, "Module.f.Linear.forward.0", "param.bias"));
    assert_non_null(slot_of(dump, "Module.f.Linear.parameters_grad.0", "grad.bias"));
    assert_int_equal(dump->layers[0].rank, 1);
    nd_dump_close(dump);
    folder_free();
}

static void records_that_a_run_lost_make_the_dump_partial(void **state)
{
    const char *const root = folder_new();

    (void)state;
    folder_array("dump_tensor_data/a.npy", 2);
    folder_array("dump_tensor_data/Torch.exp.1.forward.output.0.npy", 2);
    write_record("dump.json", "a.npy");
    struct dump *dump = open_path(root);
    assert_true(dump->partial);
    assert_int_equal(dump->layer_count, 2);
    nd_dump_close(dump);
    folder_text("dump.json", "");
    dump = open_path(root);
    assert_true(dump->partial);
    assert_int_equal(dump->layer_count, 2); /* "a" is one too */
    nd_dump_close(dump);
    folder_free();
}

static void a_frame_that_points_in_a_circle_has_no_parents(void **state)
{
    const char *const root = folder_new();

    (void)state;
    folder_text("dump.json",
                "{\"task\": \"statistics\", \"level\": \"mix\", \"data\": {"
                "\"Module.a.A.forward.0\": {}, \"Module.b.B.forward.0\": {}, "
                "\"Module.c.C.forward.0\": {}, \"Module.d.D.forward.0\": {}}}");
    folder_text("construct.json",
                "{\"Module.a.A.forward.0\": \"Module.b.B.forward.0\", "
                "\"Module.b.B.forward.0\": \"Module.a.A.forward.0\", "
                "\"Module.c.C.forward.0\": [\"Module.x.X.forward.0\", 3], "
                "\"Module.x.X.forward.0\": [\"Module.d.D.forward.0\", 3], "
                "\"Module.d.D.forward.0\": \"Module.d.D.forward.0\", "
                "\"megatron_micro_step_number\": 4}");
    struct dump *const dump = open_path(root);
    /* x was not dumped: c's parent is d. */
    assert_string_equal(layer_of(dump, "Module.c.C.forward.0")->parent, "Module.d.D.forward.0");
    assert_int_equal(layer_of(dump, "Module.c.C.forward.0")->micro_step, 3);
    assert_null(layer_of(dump, "Module.d.D.forward.0")->parent);
    assert_true(layer_of(dump, "Module.a.A.forward.0")->parent == NULL ||
                layer_of(dump, "Module.b.B.forward.0")->parent == NULL);
    nd_dump_close(dump);
    folder_free();
}

static void a_broken_aid_is_ignored_and_listed(void **state)
{
    const char *const root = folder_new();

    (void)state;
    write_record("dump.json", "-1");
    folder_text("stack.json", "{\"0\": [[\"Torch.exp.0.forward\"], [\"File a\"");
    folder_text("construct.json", "[]");
    struct dump *const dump = open_path(root);
    assert_int_equal(dump->layer_count, 1);
    assert_int_equal(dump->ignored_count, 2);
    nd_dump_close(dump);
    folder_free();
}

static void both_forms_of_stacks_are_read(void **state)
{
    const char *const root = folder_new();

    (void)state;
    write_record("dump.json", "-1");
    folder_text("stack.json", "{\"0\": [[\"x\", \"Torch.exp.0.forward\"], [\"File a, line 1, in "
                              "f, \\n y = g(x)\", \"File b\"]]}");
    struct dump *dump = open_path(root);
    assert_string_equal(dump->layers[0].stack, "File a, line 1, in f,  y = g(x)\nFile b");
    nd_dump_close(dump);
    folder_text("stack.json", "{\"Torch.exp.0.forward\": [\"File c\"]}");
    dump = open_path(root);
    assert_string_equal(dump->layers[0].stack, "File c");
    nd_dump_close(dump);
    folder_free();
}

/* --- what must be refused ---------------------------------------------------------------------- */

static void malformed_json_is_refused_by_place(void **state)
{
    static const char *const texts[] = {
        "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {\"a\": {\"output\": [",
        "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {}} x",
        "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": []}",
        "{\"task\": \"tensor\", \"level\": \"L1\"}",
        "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {\"a\": {}, \"a\": {}}}",
        "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {\"a\": {}}, \"data\": {}}",
        "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {\"a\": {\"output\": [], "
        "\"output\": []}}}",
        "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {\"a\": {\"input_kwargs\": {\"k\": "
        TENSOR("[1]", STATS("1")) ", \"k\": " TENSOR("[1]", STATS("1")) "}}}}",
        "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {\"a\": {\"output\": ["
        TENSOR("[-1]", STATS("1")) "]}}}",
        "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {\"a\": {\"output\": ["
        TENSOR("[99999999999999999999]", STATS("1")) "]}}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (status_of(texts[i]) != ND_ERR_MALFORMED)
            fail_msg("accepted: %s", texts[i]);
}

static void of_records_that_stand_there_twice_the_first_by_name_is_named(void **state)
{
    (void)state;
    assert_int_equal(status_of("{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {"
                               "\"z\": {}, \"q\": {}, \"z\": {}, \"b.0\": {}, \"q\": {}, "
                               "\"b.0\": {}, \"a\": {}}}"),
                     ND_ERR_MALFORMED);
    assert_string_equal(error.found, "b.0 twice");
}

static void deep_nesting_is_refused_by_its_limit(void **state)
{
    struct bytes text = {0};

    (void)state;
    bytes_text(&text, "{\"task\": \"tensor\", \"level\": \"L1\", \"data\": {\"a.0.debug\": ");
    for (int i = 0; i < 100000; i++)
        bytes_text(&text, i % 2 ? "[" : "{\"a\":");
    bytes_text(&text, "");
    bytes_put(&text, "", 1);
    assert_int_equal(status_of((const char *)text.at), ND_ERR_LIMIT);
    bytes_free(&text);
}

static void a_tensor_of_seventeen_dimensions_is_a_broken_one(void **state)
{
    struct dump *const dump = open_json(
        "{\"a\": {\"output\": [" TENSOR("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", STATS("1")) "]}}");

    (void)state;
    assert_non_null(dump->layers[0].slots[0].broken);
    nd_dump_close(dump);
}

static void a_dump_without_records_says_so(void **state)
{
    (void)state;
    assert_int_equal(status_of("{\"task\": \"structure\", \"level\": \"mix\", \"data\": {}}"),
                     ND_ERR_UNKNOWN_FORMAT);
    assert_non_null(strstr(error.found, "without any"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tensor_file_holds_what_its_record_says_of_it),
        cmocka_unit_test(layers_stand_in_key_order_with_step_and_rank),
        cmocka_unit_test(a_checkpoint_s_second_run_is_recomputed_though_no_record_says_so),
        cmocka_unit_test(construct_gives_parents_and_containers),
        cmocka_unit_test(stacks_are_kept_innermost_first),
        cmocka_unit_test(positional_arguments_of_an_api_are_named),
        cmocka_unit_test(gradients_of_parameters_are_slots_of_their_own_layer),
        cmocka_unit_test(checksums_are_named_by_their_kind),
        cmocka_unit_test(saved_tensors_of_the_debug_level_are_layers),
        cmocka_unit_test(any_folder_of_a_tree_or_its_json_is_a_root),
        cmocka_unit_test(bare_nan_and_infinity_are_numbers),
        cmocka_unit_test(old_and_new_names_mean_the_same),
        cmocka_unit_test(an_old_parameters_grad_is_the_first),
        cmocka_unit_test(nested_arguments_have_their_place_in_the_name),
        cmocka_unit_test(other_tensors_and_wrappers_are_tensors),
        cmocka_unit_test(what_has_no_meaning_is_undefined),
        cmocka_unit_test(epsilon_of_npu_rms_norm_is_its_third_argument),
        cmocka_unit_test(half_precision_statistics_carry_its_rounding),
        cmocka_unit_test(task_xor_has_a_value_where_there_is_no_dimension),
        cmocka_unit_test(calls_are_numbered_without_recomputed_ones),
        cmocka_unit_test(ranks_steps_and_processes_are_sorted_by_number),
        cmocka_unit_test(folders_above_the_steps_become_a_prefix_where_they_differ),
        cmocka_unit_test(tensor_files_are_read_below_the_dump_s_own_folder_only),
        cmocka_unit_test(a_missing_tensor_file_leaves_the_statistics),
        cmocka_unit_test(files_without_records_are_taken_by_their_names),
        cmocka_unit_test(records_that_a_run_lost_make_the_dump_partial),
        cmocka_unit_test(a_frame_that_points_in_a_circle_has_no_parents),
        cmocka_unit_test(a_broken_aid_is_ignored_and_listed),
        cmocka_unit_test(both_forms_of_stacks_are_read),
        cmocka_unit_test(malformed_json_is_refused_by_place),
        cmocka_unit_test(of_records_that_stand_there_twice_the_first_by_name_is_named),
        cmocka_unit_test(deep_nesting_is_refused_by_its_limit),
        cmocka_unit_test(a_tensor_of_seventeen_dimensions_is_a_broken_one),
        cmocka_unit_test(a_dump_without_records_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
