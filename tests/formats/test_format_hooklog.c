/*
 * Console logs: each shape of docs/formats/logs.md as people post it, with the prefixes,
 * colours and carriage returns around it; numbers with the precision they were printed
 * with; and texts that are no logs.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/format.h"
#include "formats/log_text.h"
#include "formats/st_build.h"

/* One expectation: NAN is "not printed". */
struct expected {
    const char *layer, *slot;
    double max, min, mean, norm;
};

static struct dump *open_log(const char *text, const char *format, struct st_opened *opened)
{
    struct bytes bytes = {0};

    bytes_text(&bytes, text);
    return st_open_sound(bytes, format, opened);
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void assert_slot(const struct dump *dump, const struct expected *row)
{
    const struct dump_slot *slot = find_slot(dump, row->layer, row->slot);

    if (slot == NULL)
        fail_msg("no %s %s", row->layer, row->slot);
    const double *value = slot->statistics.value;
    if (!same(value[STATISTIC_MAX], row->max) || !same(value[STATISTIC_MIN], row->min) ||
        !same(value[STATISTIC_MEAN], row->mean) || !same(value[STATISTIC_NORM], row->norm))
        fail_msg("%s %s: max %g min %g mean %g norm %g", row->layer, row->slot,
                 value[STATISTIC_MAX], value[STATISTIC_MIN], value[STATISTIC_MEAN],
                 value[STATISTIC_NORM]);
    assert_int_equal(slot->evidence, ND_EVIDENCE_STATISTICS);
    assert_true(slot->has_statistics);
}

/* The text is recognised, and holds these tensors and no others. */
static void assert_log_as(const char *text, const char *format, const struct expected *rows,
                          size_t count)
{
    struct st_opened opened;
    struct dump *dump = open_log(text, format, &opened);

    assert_string_equal(dump->format->name, format == NULL ? "hooklog" : format);
    assert_int_equal(dump->order, ND_ORDER_RECORDED);
    for (size_t i = 0; i < count; i++)
        assert_slot(dump, &rows[i]);
    assert_int_equal(dump->tensor_count, count);
    st_close(&opened);
}

#define ASSERT_LOG(text, ...)                                                              \
    do {                                                                                   \
        const struct expected rows_[] = {__VA_ARGS__};                                     \
        assert_log_as(text, NULL, rows_, sizeof rows_ / sizeof rows_[0]);                  \
    } while (0)

static const double none = (double)NAN;

static void the_guide_s_line_is_a_layer_s_output(void **state)
{
    (void)state;
    ASSERT_LOG("layers.3.norm: max=0.123456, mean=0.012345\n",
               {"layers.3.norm", "output.0", 0.123456, none, 0.012345, none});
    /* Without a newline, with other blanks, other keys around, in other cases. */
    ASSERT_LOG("a/b#1[0]:   Max = 4.5e+00 ,Mean: -1e-3 std=1 (ok)",
               {"a/b#1[0]", "output.0", 4.5, none, -1e-3, none});
    ASSERT_LOG("norm: max=1.5, mean=0.5\nmean: max=2.5, mean=0.25\n",
               {"norm", "output.0", 1.5, none, 0.5, none},
               {"mean", "output.0", 2.5, none, 0.25, none});
    ASSERT_LOG(
        "x: max=tensor(0.5000, device='npu:0', dtype=torch.float16), mean=tensor(0.25)\n",
        {"x", "output.0", 0.5, none, 0.25, none});
    ASSERT_LOG("x {'max': 0.5, 'mean': 0.25}\n", {"x", "output.0", 0.5, none, 0.25, none});
}

static void lines_keep_their_order_and_repeats_become_calls(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_log("z: max=1.0, mean=0.5\na: max=2.0, mean=0.5\n"
                                 "z: max=3.0, mean=0.5\nz: max=4.0, mean=0.5\n",
                                 NULL, &opened);

    (void)state;
    assert_int_equal(dump->layer_count, 4);
    assert_string_equal(dump->layers[0].name, "z");
    assert_string_equal(dump->layers[1].name, "a");
    for (int i = 2; i < 4; i++) {
        assert_string_equal(dump->layers[i].name, "z");
        assert_int_equal(dump->layers[i].call, i - 1);
        assert_true(dump->layers[i].slots[0].statistics.value[STATISTIC_MAX] == i + 1);
    }
    st_close(&opened);
}

static void numbers_keep_half_a_unit_of_their_last_digit(void **state)
{
    static const struct {
        const char *text;
        double value, half;
    } rows[] = {
        {"1.2500e-03",                   1.25e-3,  5e-8  },
        {"0.123456",                     0.123456, 5e-7  },
        {"3",                            3,        0.5   },
        {"3e+03",                        3000,     500   },
        {"-4.1",                         -4.1,     0.05  },
        {"+0.5",                         0.5,      0.05  },
        {".5",                           0.5,      0.05  },
        {"5.",                           5,        0.5   },
        {"1E5",                          1e5,      5e4   },
        {"1,234.5",                      1234.5,   0.05  },
        {"12,345,678",                   12345678, 0.5   },
        {"0",                            0,        0.5   },
        {"1.500000000000000000001e-300", 1.5e-300, 5e-322},
    };
    double value, half;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *end = rows[i].text + strlen(rows[i].text);
        if (nd_log_number(rows[i].text, end, &value, &half) != end)
            fail_msg("%s is no number", rows[i].text);
        assert_true(value == rows[i].value);
        assert_true(half == rows[i].half);
    }
}

static void numbers_that_are_not_finite_have_no_unit(void **state)
{
    static const char *const nans[] = {"nan", "NaN", "-nan", "NAN", "+nan"};
    static const char *const infinities[] = {"inf", "Inf", "infinity", "-inf", "-Infinity"};
    double value, half;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        const char *end = nans[i] + strlen(nans[i]);
        assert_ptr_equal(nd_log_number(nans[i], end, &value, &half), end);
        assert_true(isnan(value) && half == 0);
        end = infinities[i] + strlen(infinities[i]);
        assert_ptr_equal(nd_log_number(infinities[i], end, &value, &half), end);
        assert_true(value == (i < 3 ? HUGE_VAL : -HUGE_VAL) && half == 0);
    }
}

static void what_runs_into_a_word_is_no_number(void **state)
{
    static const char *const texts[] = {"",     "-",    "x",    "3x",   "1.2.3",
                                        "3.2%", "0x10", "1e5e", "nano", "e5",
                                        ".",    "- 1",  "--1",  "infer"};
    double value = 7, half = 7;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (nd_log_number(texts[i], texts[i] + strlen(texts[i]), &value, &half) != NULL)
            fail_msg("%s is taken for a number", texts[i]);
    assert_true(value == 7 && half == 7);
    /* A comma groups exactly three digits; else it ends the number. */
    const char *list = "1,23";
    assert_ptr_equal(nd_log_number(list, list + 4, &value, &half), list + 1);
}

static void shapes_are_read_as_people_print_them(void **state)
{
    static const struct {
        const char *text, *shape; /* NULL: none */
    } rows[] = {
        {"[4, 16, 8, 8]",                       "[4, 16, 8, 8]"},
        {"(2, 16)",                             "[2, 16]"      },
        {"(64,)",                               "[64]"         },
        {"torch.Size([1, 2])",                  "[1, 2]"       },
        {"[]",                                  "[]"           },
        {"()",                                  "[]"           },
        {"2x16",                                "[2, 16]"      },
        {"1:1:8:16",                            "[1, 1, 8, 16]"},
        {"[4, ...]",                            NULL           },
        {"[4, 16",                              NULL           },
        {"7",                                   NULL           },
        {"[-1]",                                NULL           },
        {"[a]",                                 NULL           },
        {"[1.5]",                               NULL           },
        {"[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", NULL           },
        {"[9999999999999999999]",               NULL           },
    };
    struct nd_shape shape;
    char buf[400];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *end = rows[i].text + strlen(rows[i].text);
        const char *after = nd_log_shape(rows[i].text, end, &shape);
        if ((rows[i].shape == NULL) != (after == NULL))
            fail_msg("%s", rows[i].text);
        if (after != NULL) {
            assert_ptr_equal(after, end);
            assert_string_equal(nd_shape_text(&shape, buf, sizeof buf), rows[i].shape);
        }
    }
}

static void bare_carriage_returns_end_lines_where_nothing_else_does(void **state)
{
    (void)state;
    ASSERT_LOG("layers.0: max=0.5, mean=0.25\rlayers.1: max=0.75, mean=0.5\r",
               {"layers.0", "output.0", 0.5, none, 0.25, none},
               {"layers.1", "output.0", 0.75, none, 0.5, none});
    ASSERT_LOG("epoch 1\r\r\rlayers.0: max=0.5, mean=0.25\rdone",
               {"layers.0", "output.0", 0.5, none, 0.25, none});
}

static void colours_and_carriage_returns_leave_what_the_screen_showed(void **state)
{
    (void)state;
    ASSERT_LOG("\x1b[1;32mlayers.0\x1b[0m: max=\x1b[31m0.5\x1b[0m, mean=0.25\r\n",
               {"layers.0", "output.0", 0.5, none, 0.25, none});
    ASSERT_LOG("  1%|\xe2\x96\x8f   | 12/1000 x: max=9, mean=9\r"
               " 2%|\xe2\x96\x8f   | 24/1000\rlayers.1: max=0.75, mean=0.5\n",
               {"layers.1", "output.0", 0.75, none, 0.5, none});
    ASSERT_LOG("\x1b]0;title: max=1, mean=2\x07"
               "a: max=1.5, mean=0.5\n"
               "\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\: max=2.5, mean=0.5\x1b[K\n",
               {"a", "output.0", 1.5, none, 0.5, none},
               {"b", "output.0", 2.5, none, 0.5, none});
}

static void prefixes_are_peeled_in_any_number(void **state)
{
    static const char *const prefixes[] = {
        "2024-03-05T10:11:12.3456789Z ",
        "[2024-03-05T10:11:12.345Z] ",
        "2024-03-05 10:11:12,345 [INFO] ",
        "2024-03-05 10:11:12,345 - hooks - INFO - ",
        "2024-03-05 10:11:12 | INFO | hooks | ",
        "2024-03-05 10:11:12(4242)-[INFO]",
        "[03/05/2024-10:11:12] [W] [TRT] ",
        "12: I0305 10:11:12.345678  4242 compare.cpp:88] ",
        "12: ",
        "[1,0]<stdout>:",
        "[rank3]: ",
        "[default0]:",
        "rank 3: ",
        "(EngineCore_DP0 pid=4242) INFO 03-05 10:11:12 [core.py:77] ",
        "INFO:root:",
        "INFO:",
        "INFO ",
        "WARNING: ",
        "[I]         ",
        "OK  ",
        "*** ",
        "layer ",
        "2024-03-05 10:11:12 train.py:77: ",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        char text[200];
        const struct expected row = {"conv1", "output.0", 0.5, none, 0.25, none};
        snprintf(text, sizeof text, "%sconv1: max=0.5, mean=0.25\n", prefixes[i]);
        assert_log_as(text, NULL, &row, 1);
    }
}

static void what_looks_like_a_prefix_may_be_the_name(void **state)
{
    (void)state;
    ASSERT_LOG("12: max=0.5, mean=0.1\n", {"12", "output.0", 0.5, none, 0.1, none});
    ASSERT_LOG("[conv7]: max=0.5, mean=0.1\n", {"conv7", "output.0", 0.5, none, 0.1, none});
}

static void ranks_count_only_where_there_are_several(void **state)
{
    struct st_opened opened;
    struct dump *dump =
        open_log("[rank0]: a: max=0.5, mean=0.1\n[rank1]: a: max=0.6, mean=0.1\n"
                 "[rank0]: b: max=0.5, mean=0.1\n",
                 NULL, &opened);

    (void)state;
    assert_int_equal(dump->layer_count, 3);
    assert_int_equal(dump->layers[0].rank, 0);
    assert_int_equal(dump->layers[1].rank, 1);
    assert_int_equal(dump->layers[1].call, 0);
    st_close(&opened);
    dump = open_log("[rank7]: a: max=0.5, mean=0.1\n[rank7]: b: max=0.6, mean=0.1\n", NULL,
                    &opened);
    assert_int_equal(dump->layers[0].rank, -1);
    st_close(&opened);
}

static void polygraphy_statistics_are_read_for_one_runner(void **state)
{
    static const char text[] =
        "[I]         trt-runner-N0-03/05/24-10:11:12: enc/ln3 | Stats: mean=-0.0021, "
        "std-dev=0.9871, var=0.97437, median=-0.0103, min=-4.1 at (0, 12, 7), "
        "max=3.9 at (0, 3, 88), avg-magnitude=0.78, p90=1.6\n"
        "[I]         onnxrt-runner-N0-03/05/24-10:11:13: enc/ln3 | Stats: mean=-0.0022, "
        "min=-4.2 at (0, 12, 7), max=3.8 at (0, 3, 88)\n"
        "[E]         FAILED | Output: 'ln3' | Difference exceeds tolerance (rel=1e-05)\n"
        "[I]             Absolute Difference | Stats: mean=1.2e-05, max=0.00031 at (6, "
        "42)\n"
        "    (-0.21 , -0.14 ) |        512 | ####\n";
    const struct expected first = {"enc/ln3", "output.0", 3.9, -4.1, -0.0021, none};
    const struct expected second = {"enc/ln3", "output.0", 3.8, -4.2, -0.0022, none};

    (void)state;
    assert_log_as(text, NULL, &first, 1);
    assert_log_as(text, "benchlog", &second, 1);
}

static const char comparison[] =
    "NPU Name,Bench Name,NPU Dtype,Bench Dtype,NPU Tensor Shape,Bench Tensor Shape,Cosine,"
    "MaxAbsErr,One Thousandth Err Ratio,NPU max,NPU min,NPU mean,NPU l2norm,Bench max,"
    "Bench min,Bench mean,Bench l2norm,Result,Err_message\r\n"
    "Module.conv1.Conv2d.forward.0.output.0,Module.conv1.Conv2d.forward.0.output.0,"
    "torch.float16,torch.float32,\"[4, 16, 8, 8]\",\"[4, 16, 8, 8]\",0.99,unsupported,3.2%,"
    "2.25,-2.5,0.0031,12.5,2.26,-2.5,0.0032,12.4,PASS,\"a, b\"\r\n"
    "Module.bn.BatchNorm2d.backward.0.input.0,N/A,torch.float16,N/A,[4],N/A,N/A,N/A,N/A,"
    "nan,-inf,0.0031,N/A,N/A,N/A,N/A,N/A,,\r\n"
    "Module.fc.Linear.forward.0.output.0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,"
    "N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,,\r\n";

static void a_comparison_table_is_read_for_the_run_under_test(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_log(comparison, NULL, &opened);
    char buf[400];

    (void)state;
    assert_int_equal(dump->tensor_count, 2);
    assert_slot(dump, &(struct expected){"Module.conv1.Conv2d.forward.0", "output.0", 2.25,
                                         -2.5, 0.0031, 12.5});
    const struct dump_slot *slot = &dump->layers[0].slots[0];
    assert_int_equal(slot->dtype, ND_DTYPE_f16);
    assert_string_equal(nd_shape_text(&slot->storage, buf, sizeof buf), "[4, 16, 8, 8]");
    assert_true(slot->statistics.half_unit[STATISTIC_MEAN] == 5e-5);
    assert_int_equal(dump->layers[1].direction, DIRECTION_BACKWARD);
    slot = &dump->layers[1].slots[0];
    assert_true(slot->statistics.is_nan[STATISTIC_MAX]);
    assert_true(slot->statistics.value[STATISTIC_MIN] == -HUGE_VAL);
    assert_false(slot->statistics.is_nan[STATISTIC_NORM]);
    st_close(&opened);
}

static void a_comparison_table_is_read_for_the_other_run_on_request(void **state)
{
    const struct expected row = {
        "Module.conv1.Conv2d.forward.0", "output.0", 2.26, -2.5, 0.0032, 12.4};

    (void)state;
    assert_log_as(comparison, "benchlog", &row, 1);
}

static void a_monitor_table_has_steps_and_micro_steps(void **state)
{
    struct st_opened opened;
    struct dump *dump =
        open_log("vpp_stage,name,step,micro_step,norm,mean,min,max\n"
                 "0,decoder.layers.0.input_layernorm.weight,3,0,12.4031,0.00012,-0.3,0.4\n"
                 "0,decoder.layers.0.input_layernorm.weight,3,1,12.5,0.00013,-0.3,0.5\n"
                 "0,decoder.layers.0.input_layernorm.weight,4,0,12.6,0.00013,-0.3,0.6\n",
                 NULL, &opened);

    (void)state;
    assert_int_equal(dump->layer_count, 3);
    assert_slot(dump, &(struct expected){"decoder.layers.0.input_layernorm", "param.weight",
                                         0.4, -0.3, 0.00012, 12.4031});
    assert_int_equal(dump->layers[0].step, 3);
    assert_int_equal(dump->layers[0].micro_step, 0);
    assert_int_equal(dump->layers[1].step, 3);
    assert_int_equal(dump->layers[1].micro_step, 1);
    assert_int_equal(dump->layers[1].call, 1);
    assert_int_equal(dump->layers[2].step, 4);
    assert_int_equal(dump->layers[2].call, 0);
    assert_int_equal(dump->step, -1);
    st_close(&opened);
}

static void hook_one_liners_name_slots_in_many_ways(void **state)
{
    (void)state;
    ASSERT_LOG("layers.3.norm | in mean=0.0123 std=1.0021 | out max=4.56e+00 min=-3.9\n",
               {"layers.3.norm", "input.0", none, none, 0.0123, none},
               {"layers.3.norm", "output.0", 4.56, -3.9, none, none});
    ASSERT_LOG("OK  rope output[0]: shape=[64, 32] min=-1 max=1\n"
               "OK  rope output[1]: shape=[64, 32] min=-2 max=2\n",
               {"rope", "output.0", 1, -1, none, none},
               {"rope", "output.1", 2, -2, none, none});
    ASSERT_LOG("conv1 (Conv2d): out_max=0.5 out_mean=0.25 in_max=1.5\n",
               {"conv1", "output.0", 0.5, none, 0.25, none},
               {"conv1", "input.0", 1.5, none, none, none});
    ASSERT_LOG("a name with blanks | max=0.5, mean=0.25\n",
               {"a name with blanks", "output.0", 0.5, none, 0.25, none});
    ASSERT_LOG("OUTPUT LayerNorm: max=0.5, mean=0.25\n",
               {"LayerNorm", "output.0", 0.5, none, 0.25, none});
}

static void a_count_of_nans_stands_beside_the_clean_extremes(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_log("*** NaN in blocks[3] output[0]: shape=[1, 64, 128] "
                                 "NaN=12/8192 clean_min=-2.5e+03 clean_max=3e+03\n",
                                 NULL, &opened);
    const struct dump_slot *slot = &dump->layers[0].slots[0];

    (void)state;
    assert_slot(dump, &(struct expected){"blocks[3]", "output.0", 3000, -2500, none, none});
    assert_int_equal(slot->statistics.nan_count, 12);
    assert_true(slot->has_shape && slot->storage.dim[2] == 128);
    st_close(&opened);
}

static void bracketed_keys_with_a_launcher_s_prefix_are_read(void **state)
{
    static const char text[] =
        "[1,0]<stdout>:[NAME]: bn1.out.0 [SHAPE]: [4, 16, 8, 8]  [SUM]: 12.50, [MEAN]: "
        "0.0031, "
        "[MAX]: 2.25, [MIN]: -2.5, [VAR]: 0.98\n"
        "[1,0]<stdout>:[NAME]: bn1.in.0 [SHAPE]: [4, 16, 8, 8]  [MEAN]: 0.5, [MAX]: 1.25\n"
        "[rank3]: ln out 0.5\n";

    (void)state;
    ASSERT_LOG(text, {"bn1", "output.0", 2.25, -2.5, 0.0031, none},
               {"bn1", "input.0", 1.25, none, 0.5, none});
}

static void lines_of_test_suites_give_statistics_of_absolute_values(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_log(
        "case=rms-bf16-2x16 output=0 shape=(2, 16) dtype=torch.bfloat16 "
        "max_abs=1.56250000e-02 "
        "mean_abs=2.0e-04 max_rel=3.9e-03 tol=(atol=5.000e-02, rtol=2.000e-02) "
        "passed=True\n"
        "case=rms-bf16-2x16 output=1 shape=(2, 16) dtype=torch.bfloat16 max_abs=0.5 "
        "mean_abs=2.0e-04\n"
        "Forward train batch norm verification passed on running mean (2.5e-08)\n"
        "L1=0.9990  L12=0.9875\n"
        "max_diff1: 2.5e-10 median: 1.5e-10\n",
        NULL, &opened);

    (void)state;
    assert_int_equal(dump->tensor_count, 2);
    assert_slot(
        dump, &(struct expected){"rms-bf16-2x16", "output.0", 0.015625, none, 2e-4, none});
    assert_slot(dump,
                &(struct expected){"rms-bf16-2x16", "output.1", 0.5, none, 2e-4, none});
    assert_string_equal(dump->layers[0].slots[0].note, "absolute_statistics");
    assert_int_equal(dump->layers[0].slots[0].dtype, ND_DTYPE_bf16);
    st_close(&opened);
}

static void ci_logs_are_read_past_what_is_no_print(void **state)
{
    static const char text[] =
        "12: I0305 10:11:12.345678  4242 compare.cpp:88] layer ln3 ok\n"
        "12: I0305 10:11:12.345678  4242 compare.cpp:88] layer ln3: max=0.5, mean=0.1\n"
        "2024-03-05T10:11:12.3456789Z AssertionError: ...\n"
        "[2024-03-05T10:11:12.345Z] Mismatch at 5: 0.25 != 0.375\n"
        "[2024-03-05T10:11:12.345Z] ln5: max=-nan, mean=0.1\n"
        "max diff: -nan\n";

    (void)state;
    ASSERT_LOG(text, {"ln3", "output.0", 0.5, none, 0.1, none},
               {"ln5", "output.0", none, none, 0.1, none});
}

static void markdown_tables_are_read_with_bold_and_typographic_signs(void **state)
{
    static const char text[] =
        "| layer | max | **mean** | ok |\n"
        "|---|---:|---|---|\n"
        "| L12 | **NaN** | 1.3e\xe2\x80\x91"
        "3 | yes |\n" /* non-breaking hyphen */
        "| L13 | **0.875** | \xe2\x88\x92"
        "0.999 | no |\n" /* minus sign */
        "| L14 | \xe2\x89\x88"
        "0.5 | 0.25 | no |\n" /* almost equal */
        "\n"
        "| 12 | **0.875** | 0.999 |\n" /* three columns: not this table */
        "\xef\xbd\x9c"
        "name\xef\xbd\x9c"
        "max\xef\xbd\x9c\n" /* full-width bars */
        "\xef\xbd\x9c"
        "q\xef\xbd\x9c"
        "1.5\xef\xbd\x9c\n";

    (void)state;
    ASSERT_LOG(text, {"L12", "output.0", none, none, 1.3e-3, none},
               {"L13", "output.0", 0.875, none, -0.999, none},
               {"L14", "output.0", 0.5, none, 0.25, none},
               {"q", "output.0", 1.5, none, none, none});
}

static void texts_without_prints_are_no_logs(void **state)
{
    static const char *const texts[] = {
        "",
        "\n\n\n",
        "A text about norms. The max is 3, and the mean: 5 apples; max=3 in the table.\n",
        " iteration       12/    5000 | consumed samples:         3072 | lm loss: "
        "9.812500E+00 | "
        "loss scale: 1.0 | grad norm: nan | number of nan iterations:   1 |\n",
        "{'loss': 2.125, 'grad_norm': nan, 'learning_rate': 1.5e-06, 'epoch': 0.01}\n",
        "2024-03-05 10:11:12 | INFO | train_inner | epoch 002:     40 / 900 loss=8.25, "
        "gnorm=1.75\n",
        "def clip(x, max=1, min=2):\n    return x\n",
        "{\"conv1\": {\"max\": 0.5, \"mean\": 0.25}}\n",
        "name,max,mean\n",
        "only: max=1\n",
        "Mismatched elements: 17 / 512 (3.3%)\nGreatest absolute difference: 0.0039 at "
        "index (3, 40)\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct bytes bytes = {0};
        bytes_text(&bytes, texts[i]);
        struct st_opened opened = st_open(bytes, NULL);
        if (opened.status == ND_OK)
            fail_msg("a log? %s", texts[i]);
        st_close(&opened);
    }
}

static void binary_data_is_no_log_whatever_stands_in_it(void **state)
{
    struct bytes bytes = {0};

    (void)state;
    bytes_text(&bytes, "a: max=0.5, mean=0.1\nb: max=0.5, mean=0.1\n");
    bytes_put(&bytes, "\0", 1);
    struct st_opened opened = st_open(bytes, NULL);
    assert_int_equal(opened.status, ND_ERR_UNKNOWN_FORMAT);
    st_close(&opened);
}

static void a_log_that_was_asked_for_and_holds_no_print_is_refused(void **state)
{
    struct bytes bytes = {0};

    (void)state;
    bytes_text(&bytes, "nothing here\n");
    assert_refused(bytes, "hooklog", ND_ERR_MALFORMED, "", "a text without one");
}

static void names_beyond_the_limit_are_no_names(void **state)
{
    struct bytes bytes = {0};
    struct st_opened opened;

    (void)state;
    for (int row = 0; row < 2; row++) { /* a line of pairs, then a row of a table */
        for (int i = 0; i < 4001; i++)
            bytes_text(&bytes, "n");
        bytes_text(&bytes,
                   row == 0 ? ": max=1.5, mean=0.5\nname,max\n" : ",2.5\nshort,3.5\n");
    }
    struct dump *dump = st_open_sound(bytes, NULL, &opened);
    assert_int_equal(dump->layer_count, 1);
    assert_string_equal(dump->layers[0].name, "short");
    st_close(&opened);
}

/* Over the limit of a line, nothing in it is a print; what follows is read. */
static void lines_of_any_length_are_passed_in_one_step(void **state)
{
    struct bytes bytes = {0};
    struct st_opened opened;

    (void)state;
    bytes_text(&bytes, "a: max=0.5, mean=0.1\n");
    for (int i = 0; i < 3000000; i++)
        bytes_text(&bytes, "[x max=1 ");
    bytes_text(&bytes, "\nb: max=0.5, mean=0.1\n");
    for (int i = 0; i < 1000000; i++)
        bytes_text(&bytes, "\r 1% max=1");
    bytes_text(&bytes, "\rc: max=0.5, mean=0.1");
    struct dump *dump = st_open_sound(bytes, NULL, &opened);
    assert_int_equal(dump->layer_count, 3);
    assert_string_equal(dump->layers[1].name, "b");
    assert_string_equal(dump->layers[2].name, "c");
    st_close(&opened);
}

static void a_log_cut_at_any_byte_or_changed_in_one_does_not_crash(void **state)
{
    static const unsigned char changes[] = {0,   '\r', '\n', 0x1b, '[', ']',  '(', '|',
                                            ',', '=',  ':',  '"',  '9', 0xe2, 0xff};
    struct bytes whole = {0};

    (void)state;
    bytes_text(&whole, comparison);
    bytes_text(&whole,
               "[I]  trt-runner-N0-03/05/24-10:11:12: enc/ln3 | Stats: mean=-0.0021, "
               "min=-4.1 at (0, 12, 7)\n[1,0]<stdout>:[NAME]: bn1.out.0 [SHAPE]: [4, 16] "
               "[MAX]: 2.25\n12: I0305 10:11:12.345  42 c.cpp:88] layer ln3 | in max=1 | "
               "out max=tensor(2., dtype=f)\n| layer | max |\n| \xe2\x80\x91q | **1** |\n"
               "case=a output=0 shape=(2, 16) NaN=1/2 max_abs=1 tol=(a=1)\n");
    for (size_t size = 0; size <= whole.size; size++)
        use_exact(whole.at, size, "x", "hooklog");
    for (size_t at = 0; at < whole.size; at++) {
        const unsigned char was = whole.at[at];
        for (size_t i = 0; i < sizeof changes; i++) {
            whole.at[at] = changes[i];
            use_exact(whole.at, whole.size, "x", i % 2 == 0 ? "hooklog" : "benchlog");
        }
        whole.at[at] = was;
    }
    bytes_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_guide_s_line_is_a_layer_s_output),
        cmocka_unit_test(lines_keep_their_order_and_repeats_become_calls),
        cmocka_unit_test(numbers_keep_half_a_unit_of_their_last_digit),
        cmocka_unit_test(numbers_that_are_not_finite_have_no_unit),
        cmocka_unit_test(what_runs_into_a_word_is_no_number),
        cmocka_unit_test(shapes_are_read_as_people_print_them),
        cmocka_unit_test(bare_carriage_returns_end_lines_where_nothing_else_does),
        cmocka_unit_test(colours_and_carriage_returns_leave_what_the_screen_showed),
        cmocka_unit_test(prefixes_are_peeled_in_any_number),
        cmocka_unit_test(what_looks_like_a_prefix_may_be_the_name),
        cmocka_unit_test(ranks_count_only_where_there_are_several),
        cmocka_unit_test(polygraphy_statistics_are_read_for_one_runner),
        cmocka_unit_test(a_comparison_table_is_read_for_the_run_under_test),
        cmocka_unit_test(a_comparison_table_is_read_for_the_other_run_on_request),
        cmocka_unit_test(a_monitor_table_has_steps_and_micro_steps),
        cmocka_unit_test(hook_one_liners_name_slots_in_many_ways),
        cmocka_unit_test(a_count_of_nans_stands_beside_the_clean_extremes),
        cmocka_unit_test(bracketed_keys_with_a_launcher_s_prefix_are_read),
        cmocka_unit_test(lines_of_test_suites_give_statistics_of_absolute_values),
        cmocka_unit_test(ci_logs_are_read_past_what_is_no_print),
        cmocka_unit_test(markdown_tables_are_read_with_bold_and_typographic_signs),
        cmocka_unit_test(texts_without_prints_are_no_logs),
        cmocka_unit_test(binary_data_is_no_log_whatever_stands_in_it),
        cmocka_unit_test(a_log_that_was_asked_for_and_holds_no_print_is_refused),
        cmocka_unit_test(names_beyond_the_limit_are_no_names),
        cmocka_unit_test(lines_of_any_length_are_passed_in_one_step),
        cmocka_unit_test(a_log_cut_at_any_byte_or_changed_in_one_does_not_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
