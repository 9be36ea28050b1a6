/*
 * The operators: which row a type's name means, and the replays against numpy.
 *
 * All expected values: numpy 1.24 in float64 on the arrays below, for example
 * ((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * w + b).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ops/norm.h"

static const double x[12] = {1, 2, 4, -1, 0.5, 3, 2, 2, 5, 0, -3, 1.5};
static const double w2[] = {1.5, -0.5}, b2[] = {0.25, 2}, w3[] = {1, 0.5, 2},
                    b3[] = {0, 1, -1};

/* As the modelling code of each model has it. */
static void gemma_scales_by_one_plus_weight_and_its_neighbours_do_not(void **state)
{
    static const struct {
        const char *type;
        double plus;
    } rows[] = {
        {"GemmaRMSNorm", 1},       {"Gemma2RMSNorm", 1}, {"Gemma3RMSNorm", 1},
        {"npu_gemma_rms_norm", 1}, {"Gemma3nRMSNorm", 0}, {"LlamaRMSNorm", 0},
        {"LayerNorm", 0},          {"BatchNorm2d", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(fabs(nd_op_for(rows[i].type)->norm->one_plus - rows[i].plus) < 0.5);
}

static void a_type_is_recognised_under_the_names_of_many_frameworks(void **state)
{
    static const char *const names[][2] = {
        {"LayerNorm",         "layernorm"   },
        {"FusedLayerNorm",    "layernorm"   },
        {"layer_norm",        "layernorm"   },
        {"LayerNorm2d",       "layernorm"   },
        {"LlamaRMSNorm",      "rmsnorm"     },
        {"Qwen2RMSNorm",      "rmsnorm"     },
        {"T5LayerNorm",       "rmsnorm"     },
        {"npu_rms_norm",      "rmsnorm"     },
        {"RMS",               "rmsnorm"     },
        {"MistralRMSNorm",    "rmsnorm"     },
        {"GemmaRMSNorm",      "rmsnorm"     },
        {"RmsNorm",           "rmsnorm"     },
        {"BatchNorm2d",       "batchnorm"   },
        {"SyncBatchNorm",     "batchnorm"   },
        {"BNInfer",           "batchnorm"   },
        {"GroupNorm",         "groupnorm"   },
        {"InstanceNorm3d",    "instancenorm"},
        {"npu_add_rms_norm",  "fused_norm"  },
        {"GroupNormSilu",     "fused_norm"  },
        {"Linear",            "linear"      },
        {"Dense",             "linear"      },
        {"Conv2d",            "conv"        },
        {"ReLU6",             "relu"        },
        {"GELU",              "gelu"        },
        {"NewGELUActivation", "gelu"        },
        {"SiLU",              "silu"        },
        {"SiLUActivation",    "silu"        },
        {"Softmax",           "softmax"     },
        {"MatMul",            "matmul"      },
        {"Add",               "add"         },
        {"Mul",               "multiply"    },
        {"Embedding",         "embedding"   },
        {"Dropout",           "dropout"     },
        {"Identity",          "identity"    },
        {"AdaptiveAvgPool2d", "pooling"     },
        {"MaxPool2d",         "pooling"     },
        {"LlamaAttention",    "attention"   },
        {"Exp",               "unbounded"   },
        {"Sub",               "subtract"    },
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct op *op = nd_op_for(names[i][0]);
        if (op == NULL || strcmp(op->name, names[i][1]) != 0)
            fail_msg("%s is taken for %s", names[i][0], op == NULL ? "nothing" : op->name);
    }
    assert_null(nd_op_for("MyOwnBlock"));
    assert_null(nd_op_for(""));
}

/* More types than are kept, and longer ones, asked for in two orders. */
static void an_operator_is_the_same_whatever_was_asked_before(void **state)
{
    enum { TYPES = 300, WORD = 96 };
    static char types[TYPES][WORD];
    const struct op *first[TYPES];

    (void)state;
    for (int i = 0; i < TYPES; i++)
        snprintf(types[i], WORD, "%s%.*s%d%s", i % 3 == 0 ? "Fused" : "", i % 7 * 10,
                 "_________________________________________________________________", i,
                 i % 3 == 2 ? "Thing" : i % 2 == 0 ? "LayerNorm" : "RMSNorm");
    for (int i = 0; i < TYPES; i++)
        first[i] = nd_op_for(types[i]);
    for (int i = TYPES; i-- > 0;) {
        const struct op *const op = nd_op_for(types[i]);
        assert_ptr_equal(op, first[i]);
        assert_ptr_equal(nd_op_for(types[i]), op);
        if (i % 3 == 2)
            assert_null(op);
        else
            assert_string_equal(op->name, i % 2 == 0 ? "layernorm" : "rmsnorm");
    }
}

static void check_norm(const char *type, uint32_t rank, const uint64_t *dim,
                       uint64_t groups, const struct norm_model *model,
                       const double *expected)
{
    const struct layer_view layer = {.type = type};
    const struct op *op = nd_op_for(type);
    struct nd_shape shape = {.rank = rank};
    struct op_rows rows;
    double out[12];

    memcpy(shape.dim, dim, rank * sizeof *dim);
    assert_true(nd_norm_rows(op, &layer, &shape, groups, &rows));
    assert_int_equal(rows.rows * rows.row_len, 12);
    for (uint64_t g = 0; g < rows.rows; g++) {
        struct tensor_view view;
        double row[12];
        nd_view_contiguous(&view, x, sizeof x, ND_DTYPE_f64, &shape);
        nd_view_permute(&view, rows.order);
        nd_view_decode(&view, g * rows.row_len, rows.row_len, row);
        nd_norm_row(model, &rows, g, row, out + g * rows.row_len);
    }
    for (uint64_t i = 0; i < 12; i++) { /* expected stands in logical order */
        struct nd_shape ordered = {.rank = rank};
        uint64_t index[ND_MAX_RANK], logical[ND_MAX_RANK], flat = 0;
        for (uint32_t k = 0; k < rank; k++)
            ordered.dim[k] = dim[rows.order[k]];
        nd_shape_unravel(&ordered, i, index);
        for (uint32_t k = 0; k < rank; k++)
            logical[rows.order[k]] = index[k];
        for (uint32_t k = 0; k < rank; k++)
            flat = flat * dim[k] + logical[k];
        assert_true(fabs(out[i] - expected[flat]) < 1e-14 * 4);
    }
}

static const uint64_t image[] = {2, 2, 3}, matrix[] = {4, 3};

static const double layer_norm_out[] = {
    -1.0687015116389473, 0.86641231104513161, 1.6717537790973678,   -1.1109637631749496,
    0.89900329425682279, 1.625914349322608,   -0.70693007075490233, 0.64653496462254889,
    1.8277202830196093,  0.26722306991452743, 0.33194232521368139,  1.1377845593162195};

static void layernorm_is_what_numpy_makes_of_it(void **state)
{
    const struct norm_model model = {.eps = 1e-3, .centre = true, .weight = w3, .bias = b3};

    (void)state;
    check_norm("LayerNorm", 2, matrix, 0, &model, layer_norm_out);
    check_norm("LayerNorm", 3, image, 0, &model, layer_norm_out);
}

static void rmsnorm_subtracts_no_mean(void **state)
{
    static const double out[] = {0.37793747843911035,  0.37793747843911035,
                                 3.0234998275128828,   -0.54092262718290773,
                                 0.13523065679572693,  3.2455357630974464,
                                 0.60299528090202337,  0.30149764045101168,
                                 3.0149764045101168,   0,
                                 -0.77449341033690655, 1.5489868206738131};
    const struct norm_model model = {.eps = 1e-3, .weight = w3};

    (void)state;
    check_norm("LlamaRMSNorm", 2, matrix, 0, &model, out);
}

static void batchnorm_takes_a_channel_over_the_batch(void **state)
{
    static const double out[] = {
        -1.5685358743241151,  -0.47741434972964591, 1.7048286994592923,
        2.3093157223036553,   1.9116240793418129,   1.2488046744054087,
        -0.47741434972964591, -0.47741434972964591, 2.7959502240537617,
        2.0441879603290936,   2.8395712462527785,   1.6464963173672511};
    const struct norm_model model = {.eps = 1e-3, .centre = true, .weight = w2, .bias = b2};

    (void)state;
    check_norm("BatchNorm1d", 3, image, 0, &model, out);
}

static void batchnorm_takes_running_statistics_where_they_are_given(void **state)
{
    static const double mean[] = {0.5, 1}, var[] = {4, 0.25};
    static const double out[] = {
        0.62495313378723183, 1.3748594013616955,    2.8746719365106226, 3.9960119601394979,
        2.4990029900348745,  0.0039880398605018907, 1.3748594013616955, 1.3748594013616955,
        3.6245782040850862,  2.9980059800697489,    5.9920239202789958, 1.5009970099651255};
    const struct norm_model model = {
        .eps = 1e-3, .centre = true, .weight = w2, .bias = b2, .mean = mean, .var = var};

    (void)state;
    check_norm("BatchNorm1d", 3, image, 0, &model, out);
}

static void groupnorm_of_one_group_takes_a_sample(void **state)
{
    static const double out[] = {
        -0.28227262368101946, 0.63019473120072833, 2.4551294409642241,  2.7857357778148382,
        2.3295021003739644,   1.569112637972508,   0.71658812774170966, 0.71658812774170966,
        2.5829406387085485,   2.2592156265231722,  2.8813331301787848,  1.9481568746953657};
    const struct norm_model model = {.eps = 1e-3, .centre = true, .weight = w2, .bias = b2};

    (void)state;
    check_norm("GroupNorm", 3, image, 1, &model, out);
}

static void instancenorm_takes_a_channel_of_a_sample(void **state)
{
    static const double out[] = {
        -1.3530522674584211,  -0.15076306686460533, 2.2538153343230256,
        2.5554818815874749,   2.1009967057431771,   1.343521412669348,
        -0.81039510613235355, -0.81039510613235355, 2.3707902122647071,
        1.8663884650427363,   2.6680576747863185,   1.465553860170945};
    const struct norm_model model = {.eps = 1e-3, .centre = true, .weight = w2, .bias = b2};

    (void)state;
    check_norm("InstanceNorm1d", 3, image, 0, &model, out);
    check_norm("GroupNorm", 3, image, 2, &model, out);
}

static void variants_are_other_parameters(void **state)
{
    static const double unbiased[] = {
        -0.87268457713784475, 0.89091442785776942, 1.1817114428446112,
        -0.90715363548954198, 0.91753148768276893, 1.1441813202480082,
        -0.57725406819434177, 0.71137296590282917, 1.3090162727773671,
        0.21819711054825913,  0.45450722362935214, 0.74557688438607306};
    static const double outside[] = {
        -1.0681885114851695, 0.86647643606435376, 1.670471278712923,    -1.1104947375565193,
        0.89904593294940738, 1.6248057433154091,  -0.70660713449011481, 0.6466964327549426,
        1.8264285379604592,  0.26711846108912757, 0.33220384727718111,  1.1369476887130205};
    static const double padded[] = {
        -0.50697668569225529, 1.0844961142820426,  2.0418601141535317,
        -1.1023918497385137,  0.95760031347159558, 2.2223761761587322,
        -0.14000604839193861, 0.92999697580403073, 2.0801330646226495,
        0.22937281431845885,  0.19719514988539399, 1.2937281431845888};
    static const double less[] = {0, -0.5, 1}; /* w3 = 1 + less */
    struct norm_model model = {.eps = 1e-3, .centre = true, .weight = w3, .bias = b3};

    (void)state;
    model.unbiased = true;
    check_norm("LayerNorm", 2, matrix, 0, &model, unbiased);
    model.unbiased = false;
    model.eps_outside = true;
    check_norm("LayerNorm", 2, matrix, 0, &model, outside);
    model.eps_outside = false;
    model.padded = 4.0 / 3; /* np.pad(x, ((0, 0), (0, 1))) */
    check_norm("LayerNorm", 2, matrix, 0, &model, padded);
    model.padded = 0;
    model.weight = less;
    model.plus = 1;
    check_norm("LayerNorm", 2, matrix, 0, &model, layer_norm_out);
}

static void check_rows(const char *type, unsigned variant, const double *expected)
{
    static const double in[] = {-3, -0.5, 0, 1.25, 4};
    const struct nd_shape shape = {.rank = 1, .dim = {5}};
    const struct layer_view layer = {.type = type};
    const struct op *op = nd_op_for(type);
    const double *const inputs[] = {in, in};
    struct op_rows rows;
    struct op_call call;
    double out[5];

    assert_true(op->plan(&layer, &shape, &rows, &call));
    assert_int_equal(rows.row_len, 5);
    call.variant = variant;
    op->row(&call, inputs, 5, out);
    for (int i = 0; i < 5; i++)
        assert_true(fabs(out[i] - expected[i]) <= 1e-15 * 4);
}

static void elementwise_replays_are_what_the_formulas_give(void **state)
{
    static const double erf_form[] = {-0.004049694094890287, -0.15426876936299344, 0,
                                      1.1179377829164308, 3.9998733150326675};
    static const double tanh_form[] = {-0.0036373920817729943, -0.15428599017485606, 0,
                                       1.1177142029697147, 3.9999297540518075};
    static const double silu[] = {-0.14227761953270035, -0.1887703343990727, 0,
                                  0.9716248264683639, 3.9280551601516338};
    static const double softmax[] = {0.00083332874887311146, 0.010152022450427263,
                                     0.016737855354644664, 0.058420855560098975,
                                     0.91385593788595598};
    static const double relu[] = {0, 0, 0, 1.25, 4}, add[] = {-6, -1, 0, 2.5, 8};
    static const double mul[] = {9, 0.25, 0, 1.5625, 16};

    (void)state;
    check_rows("GELU", 0, erf_form);
    check_rows("GELU", 1, tanh_form);
    check_rows("SiLU", 0, silu);
    check_rows("Softmax", 0, softmax);
    check_rows("ReLU", 0, relu);
    check_rows("Add", 0, add);
    check_rows("Mul", 0, mul);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemma_scales_by_one_plus_weight_and_its_neighbours_do_not),
        cmocka_unit_test(a_type_is_recognised_under_the_names_of_many_frameworks),
        cmocka_unit_test(an_operator_is_the_same_whatever_was_asked_before),
        cmocka_unit_test(layernorm_is_what_numpy_makes_of_it),
        cmocka_unit_test(rmsnorm_subtracts_no_mean),
        cmocka_unit_test(batchnorm_takes_a_channel_over_the_batch),
        cmocka_unit_test(batchnorm_takes_running_statistics_where_they_are_given),
        cmocka_unit_test(groupnorm_of_one_group_takes_a_sample),
        cmocka_unit_test(instancenorm_takes_a_channel_of_a_sample),
        cmocka_unit_test(variants_are_other_parameters),
        cmocka_unit_test(elementwise_replays_are_what_the_formulas_give),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
