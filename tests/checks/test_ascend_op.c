/*
 * The table of Ascend's operators against the pages it was made from: CANN's ops-nn headers
 * and READMEs, the graph engine's IR headers, and the torch_npu API reference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ops/ascend_op.h"

static void outputs_are_named_in_the_order_of_the_dump(void **state)
{
    static const struct {
        const char *type;
        size_t index;
        const char *name;
        enum output_meaning meaning;
    } rows[] = {
        {"DeepNorm",          0, "mean",            OUTPUT_MEAN      },
        {"DeepNorm",          1, "rstd",            OUTPUT_RSTD      },
        {"npu_deep_norm",     2, "y",               OUTPUT_VALUE     },
        {"LayerNorm",         2, "variance",        OUTPUT_VARIANCE  },
        {"LayerNormV3",       2, "rstd",            OUTPUT_RSTD      },
        {"LayerNormV4",       1, "mean",            OUTPUT_MEAN      },
        {"GroupNorm",         2, "variance",        OUTPUT_VARIANCE  },
        {"GroupNormV2",       2, "rstd",            OUTPUT_RSTD      },
        {"npu_rms_norm",      1, "rstd",            OUTPUT_RSTD      },
        {"AddRmsNorm",        2, "x",               OUTPUT_VALUE     },
        {"AddRmsNormCast",    2, "rstd",            OUTPUT_RSTD      },
        {"BatchNorm",         2, "batch_variance",  OUTPUT_VARIANCE  },
        {"BatchNorm",         4, "reserve_space_2", OUTPUT_RSTD      },
        {"BatchNorm",         5, "reserve_space_3", OUTPUT_NOTHING   },
        {"BatchNormV3",       4, "save_rstd",       OUTPUT_RSTD      },
        {"BNTrainingReduce",  1, "square_sum",      OUTPUT_SQUARE_SUM},
        {"BNTrainingUpdate",  4, "batch_variance",  OUTPUT_VARIANCE  },
        {"native_layer_norm", 2, "rstd",            OUTPUT_RSTD      },
    };
    struct ascend_output output;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ascend_op *op = nd_ascend_op_for(rows[i].type);
        assert_non_null(op);
        assert_true(nd_ascend_output(op, rows[i].index, &output));
        assert_string_equal(output.name, rows[i].name);
        assert_int_equal(output.meaning, rows[i].meaning);
        assert_false(output.optional);
    }
    assert_true(nd_ascend_output(nd_ascend_op_for("AddLayerNorm"), 3, &output));
    assert_true(output.optional); /* additional_output is off by default */
    assert_false(nd_ascend_output(nd_ascend_op_for("RmsNorm"), 2, &output));
    assert_null(nd_ascend_op_for("Conv2D"));
    assert_null(nd_ascend_op_for(""));
}

static void default_eps_is_that_of_the_operator(void **state)
{
    static const struct {
        const char *type;
        double eps;
    } rows[] = {
        {"BatchNorm",                          1e-4},
        {"BatchNormV3",                        1e-5},
        {"LayerNorm",                          1e-7},
        {"LayerNormV3",                        1e-5},
        {"LayerNormV4",                        1e-5},
        {"RmsNorm",                            1e-6},
        {"GroupNorm",                          1e-4},
        {"GroupNormV2",                        1e-5},
        {"InstanceNorm",                       1e-6},
        {"MVNV2",                              1e-9},
        {"INInferV2",                          1e-5},
        {"DeepNorm",                           1e-6},
        {"SyncBatchNormGatherStatsWithCounts", 1e-3},
        {"npu_group_norm_silu",                1e-5},
        {"BNInfer",                            0   },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(nd_ascend_op_for(rows[i].type)->default_eps == rows[i].eps);
}

static void unsupported_pairs_of_types_are_told_by_product(void **state)
{
    (void)state;
    assert_int_equal(nd_ascend_product("npu:0 Ascend910B3"), ASCEND_A2);
    assert_int_equal(nd_ascend_product("Ascend910_9382"), ASCEND_A3);
    assert_int_equal(nd_ascend_product("Ascend910A"), ASCEND_910);
    assert_int_equal(nd_ascend_product("cuda:0"), 0);
    assert_int_equal(nd_ascend_product(NULL), 0);
    static const struct {
        const char *type;
        unsigned product;
        enum nd_dtype x, weight;
        enum ascend_gap gap;
    } rows[] = {
        {"RmsNorm",           ASCEND_A2,   ND_DTYPE_bf16, ND_DTYPE_f32,  ASCEND_GAP_NONE   },
        {"RmsNorm",           ASCEND_310P, ND_DTYPE_bf16, ND_DTYPE_bf16, ASCEND_GAP_BF16   },
        {"RmsNorm",           ASCEND_310P, ND_DTYPE_f16,  ND_DTYPE_f32,  ASCEND_GAP_WEIGHT },
        {"RmsNorm",           ASCEND_310P, ND_DTYPE_f16,  ND_DTYPE_f16,  ASCEND_GAP_NONE   },
        {"RmsNorm",           ASCEND_910,  ND_DTYPE_f16,  ND_DTYPE_f16,  ASCEND_GAP_PRODUCT},
        {"RmsNorm",           0,           ND_DTYPE_bf16, ND_DTYPE_f32,  ASCEND_GAP_NONE   },
        {"RmsNorm",           0,           ND_DTYPE_f64,  ND_DTYPE_NONE, ASCEND_GAP_DTYPE  },
        {"AddRmsNorm",        ASCEND_A2,   ND_DTYPE_f16,  ND_DTYPE_f32,  ASCEND_GAP_WEIGHT },
        {"AddRmsNormCast",    0,           ND_DTYPE_f32,  ND_DTYPE_f32,  ASCEND_GAP_DTYPE  },
        {"GemmaRmsNorm",      ASCEND_310P, ND_DTYPE_f16,  ND_DTYPE_f16,  ASCEND_GAP_PRODUCT},
        {"GroupNormV2",       ASCEND_310P, ND_DTYPE_f16,  ND_DTYPE_f16,  ASCEND_GAP_PRODUCT},
        /* a float16 BatchNorm has float32 parameters everywhere */
        {"BatchNorm",         ASCEND_310P, ND_DTYPE_f16,  ND_DTYPE_f32,  ASCEND_GAP_NONE   },
        {"BatchNorm",         ASCEND_910,  ND_DTYPE_bf16, ND_DTYPE_f32,  ASCEND_GAP_BF16   },
        {"native_layer_norm", ASCEND_910,  ND_DTYPE_bf16, ND_DTYPE_bf16, ASCEND_GAP_NONE   },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(nd_ascend_gap(nd_ascend_op_for(rows[i].type), rows[i].product,
                                       rows[i].x, rows[i].weight),
                         rows[i].gap);
    assert_string_equal(nd_ascend_product_name(ASCEND_A3), "Ascend910_93");
    assert_null(nd_ascend_product_name(0));
}

static void calls_are_known_by_their_operator(void **state)
{
    static const struct {
        const char *call, *name;
        bool native;
    } rows[] = {
        {"npu_rms_norm",                "RmsNorm",             true },
        {"torch_npu.npu_rms_norm",      "RmsNorm",             true },
        {"torch.ops.npu.npu_deep_norm", "DeepNorm",            true },
        {"aclnnAddRmsNorm",             "AddRmsNorm",          true },
        {"aclnnLayerNormWithImplMode",  "LayerNormV4",         true },
        {"aclnnBatchNorm",              "BatchNormV3",         true },
        {"npu_layer_norm_eval",         "npu_layer_norm_eval", true },
        {"LayerNormV3",                 "LayerNormV3",         true },
        {"LayerNorm",                   "LayerNorm",           false},
        {"native_layer_norm",           "native_layer_norm",   false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(nd_ascend_op_for(rows[i].call)->name, rows[i].name);
        assert_int_equal(nd_ascend_is_native(rows[i].call), rows[i].native);
    }
    assert_null(nd_ascend_op_for("npu_conv2d"));
    assert_false(nd_ascend_is_native("Conv2d"));
}

/* The graph engine's headers: BatchNorm 1e-4, LayerNorm 1e-7, RmsNorm 1e-6. */
static void an_eps_leads_to_the_operator_that_it_is_the_default_of(void **state)
{
    (void)state;
    assert_string_equal(nd_ascend_default_of("BatchNorm2d", 1e-4, 1e-6)->name, "BatchNorm");
    assert_string_equal(nd_ascend_default_of("BatchNorm2d", 1e-5, 1e-7)->name, "BatchNormV3");
    assert_string_equal(nd_ascend_default_of("LayerNorm", 1e-7, 1e-9)->name, "LayerNorm");
    assert_string_equal(nd_ascend_default_of("LlamaRMSNorm", 1e-6, 1e-8)->name, "RmsNorm");
    assert_null(nd_ascend_default_of("LlamaRMSNorm", 1e-5, 1e-7));
    assert_null(nd_ascend_default_of("Conv2d", 1e-4, 1e-6));
}

/* The inputs of the graph engine's headers. */
static void inputs_that_are_parameters_of_a_module_are_told(void **state)
{
    (void)state;
    assert_null(nd_ascend_parameter(nd_ascend_op_for("BatchNorm"), 0));
    assert_string_equal(nd_ascend_parameter(nd_ascend_op_for("BatchNorm"), 1), "param.weight");
    assert_string_equal(nd_ascend_parameter(nd_ascend_op_for("BNInfer"), 4),
                        "state.running_var");
    assert_string_equal(nd_ascend_parameter(nd_ascend_op_for("DeepNorm"), 2), "param.bias");
    assert_string_equal(nd_ascend_parameter(nd_ascend_op_for("LayerNormV4"), 3), "param.bias");
    assert_null(nd_ascend_parameter(nd_ascend_op_for("LayerNormV4"), 1));
    assert_null(nd_ascend_parameter(nd_ascend_op_for("AddRmsNorm"), 3));
}

static void deprecated_operators_name_their_successor_and_rows_their_source(void **state)
{
    (void)state;
    assert_string_equal(nd_ascend_op_for("npu_layer_norm_eval")->instead, "layer_norm");
    assert_null(nd_ascend_op_for("LayerNormV4")->instead);
    assert_int_equal(nd_ascend_op_for("AddRmsNorm")->rounding, ASCEND_ROUND_SUM_TOO);
    assert_int_equal(nd_ascend_op_for("RmsNorm")->rounding, ASCEND_ROUND_END);
    assert_non_null(strstr(nd_ascend_op_for("RmsNorm")->source, "ops-nn"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_named_in_the_order_of_the_dump),
        cmocka_unit_test(default_eps_is_that_of_the_operator),
        cmocka_unit_test(unsupported_pairs_of_types_are_told_by_product),
        cmocka_unit_test(calls_are_known_by_their_operator),
        cmocka_unit_test(an_eps_leads_to_the_operator_that_it_is_the_default_of),
        cmocka_unit_test(inputs_that_are_parameters_of_a_module_are_told),
        cmocka_unit_test(deprecated_operators_name_their_successor_and_rows_their_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
