/*
 * Metrics as functions of measured pairs.  The sample and its expected values are those of
 * test_detail.c's head, by the numpy expressions beside them.
 */
#include <math.h>

#include "kernels/measured.h"
#include "metrics/metric.h"

static const double infinity = HUGE_VAL;

static const float sample_r[] = {1.0F, -2.0F, 0.0F, 4.0F, 0.0F, 1e-3F, -8.0F, 100.0F};
static const float sample_c[] = {1.0005F, -2.008F, 0.0F, 4.5F, 1e-9F, 2e-3F, -8.0F, 99.0F};

struct values {
    bool defined;
    double of[2];
};

static struct values metric_of(const char *key, enum nd_dtype dtype, const void *r,
                               const void *c, uint64_t n)
{
    const struct metric *const metric = nd_metric_by_name(key);
    const struct sides sides = {
        {dtype, dtype},
        {r,     c    },
        n
    };
    const struct tensor_view view[2] = {sides_view(&sides, 0), sides_view(&sides, 1)};
    struct moments_policy policy = {.scale = 1.0};
    struct nd_moments moments = sides_measure(&sides, &policy);
    struct nd_detail_sums sums;
    struct values found = {.defined = false};

    assert_non_null(metric);
    policy.scale = nd_moments_rescale(&moments);
    if (policy.scale != 1.0)
        moments = sides_measure(&sides, &policy);
    const double rms = sqrt(moments.sum_rr / (double)moments.n) / moments.scale;
    const struct detail_params params = {
        .rms_r = n == 0 ? 0.0 : rms,
        .rel_floor = n == 0 ? 0.0 : rms * 0x1p-20,
        .ulp_dtype = dtype,
        .worst = 5,
        .real = {dtype, dtype}
    };
    nd_detail_init(&sums);
    nd_detail_measure(nd_kernel_set_for(nd_isa_best()), &view[0], &view[1], &params, 0, n, &sums);
    nd_detail_settle(&sums);
    found.defined = metric->value(&moments, metric->detail ? &sums.detail : NULL, found.of);
    return found;
}

static void every_metric_is_numpys(void **state)
{
    static const struct {
        const char *key;
        double value[2];
    } rows[] = {
        {"max_abs",       {1.0}                                   },
        {"max_abs_index", {7.0}                                   },
        {"mean_abs",      {0.18868748272638092}                   }, /* e.mean() */
        {"rmse",          {0.39529502405101147}                   }, /* sqrt(((y - x)**2).mean()) */
        {"rel_l2",        {0.011133414793182793}                  }, /* norm(y - x) / norm(x) */
        {"cosine",        {0.9999849305247243}                    }, /* x @ y / norm(x) / norm(y) */
        {"pearson",       {0.9999844049218908}                    }, /* corrcoef(x, y)[0, 1] */
        {"min",           {-8.0, -8.0}                            },
        {"max",           {100.0, 99.0}                           },
        {"mean",          {11.875125000005937, 11.811812508481525}},
        {"norm",          {100.42410069798983, 99.44990230142939} },
        {"max_rel",       {1.0}                                   },
        {"mean_rel",      {0.1424411806524565}                    },
        {"within_1e3",    {0.5}                                   },
        {"within_5e3",    {0.625}                                 },
        {"max_scaled",    {0.012656535621528782}                  },
        {"p50",           {0.000518798828125}                     },
        {"p90",           {1.0625}                                },
        {"p99",           {1.0625}                                },
        {"p999",          {1.0625}                                },
        {"max_ulp",       {1048576.0}                             },
        {"p99_ulp",       {1114112.0}                             },
        {"snr_db",        {39.067432205885865}                    }, /* 10 * log10((x**2).sum() / (e**2).sum()) */
        {"zeros",         {2.0, 1.0}                              },
        {"subnormals",    {0.0, 0.0}                              },
        {"saturated",     {0.0, 0.0}                              },
    };

    (void)state;
    assert_int_equal(nd_metric_count(), sizeof rows / sizeof *rows);
    for (size_t i = 0; i < nd_metric_count(); i++) {
        const struct values found =
            metric_of(rows[i].key, ND_DTYPE_f32, sample_r, sample_c, 8);
        assert_string_equal(nd_metric_at(i)->key, rows[i].key);
        assert_true(found.defined);
        for (int side = 0; side < (nd_metric_at(i)->pair ? 2 : 1); side++)
            assert_near(found.of[side], rows[i].value[side], 8.0);
    }
}

static void without_positions_nothing_is_defined(void **state)
{
    const float masked[] = {-1e9F, NAN};

    (void)state;
    for (size_t i = 0; i < nd_metric_count(); i++) {
        const char *const key = nd_metric_at(i)->key;
        assert_false(metric_of(key, ND_DTYPE_f32, sample_r, sample_c, 0).defined);
        assert_false(metric_of(key, ND_DTYPE_f32, masked, masked, 2).defined);
    }
}

static double of(const char *key, const double *r, const double *c, uint64_t n)
{
    const struct values found = metric_of(key, ND_DTYPE_f64, r, c, n);

    assert_true(found.defined);
    return found.of[0];
}

static void zero_tensors_have_their_own_rules(void **state)
{
    const double zeros[] = {0.0, -0.0}, ones[] = {1.0, 1.0};

    (void)state;
    assert_double(of("rel_l2", zeros, zeros, 2), 0.0);
    assert_double(of("rel_l2", zeros, ones, 2), infinity);
    assert_double(of("cosine", zeros, zeros, 2), 1.0);
    assert_double(of("cosine", zeros, ones, 2), 0.0);
    assert_double(of("cosine", ones, zeros, 2), 0.0);
    assert_false(metric_of("snr_db", ND_DTYPE_f64, zeros, zeros, 2).defined);
    assert_double(of("snr_db", ones, ones, 2), infinity);
    assert_double(of("snr_db", zeros, ones, 2), -infinity);
    assert_double(of("max_rel", zeros, zeros, 2), 0.0);
}

static void correlation_of_constant_data_is_absent(void **state)
{
    const double constant[] = {0.1, 0.1, 0.1}, spread[] = {0.1, 0.2, 0.4};
    const double rounded[] = {0.1, 0.1 + 0x1p-56, 0.1}, one[] = {2.0};

    (void)state;
    assert_false(metric_of("pearson", ND_DTYPE_f64, constant, spread, 3).defined);
    assert_false(metric_of("pearson", ND_DTYPE_f64, spread, rounded, 3).defined);
    assert_false(metric_of("pearson", ND_DTYPE_f64, one, one, 1).defined);
    assert_double(of("pearson", spread, spread, 3), 1.0);
}

static void correlation_of_complex_data_is_absent(void **state)
{
    const double r[] = {1.0, 2.0, 3.0, -1.0}, c[] = {1.0, 2.5, 3.0, 1.0};

    (void)state;
    assert_false(metric_of("pearson", ND_DTYPE_c128, r, c, 2).defined);
    assert_true(metric_of("rel_l2", ND_DTYPE_c128, r, c, 2).defined);
}

/* numpy.corrcoef of the same numbers less 1e6 */
static void correlation_sees_through_a_large_offset(void **state)
{
    const double r[] = {1e6 + 0.5, 1e6 - 0.25, 1e6 + 0.125, 1e6 - 1.0};
    const double c[] = {1e6 + 0.25, 1e6 - 0.5, 1e6 + 0.5, 1e6 - 0.75};

    (void)state;
    assert_near(of("pearson", r, c, 4), 0.8609160647753272, 1e4);
}

/* numpy in long double: 2, 1/sqrt(3), and what float64 cannot hold */
static void metrics_reach_beyond_the_range_of_squares(void **state)
{
    const double r[] = {1e308, -1e308, 1e308}, c[] = {-1e308, 1e308, -1e308};
    const double small[] = {3e-200, 4e-200}, twice[] = {6e-200, 8e-200};

    (void)state;
    assert_near(of("rel_l2", r, c, 3), 2.0, 2.0);
    assert_near(of("cosine", r, c, 3), -1.0, 2.0);
    assert_double(of("max_abs", r, c, 3), infinity);
    assert_double(of("max", r, c, 3), 1e308);
    assert_near(of("mean", r, c, 3), 1e308 / 3.0, 4.0);
    assert_near(of("rel_l2", small, twice, 2), 1.0, 2.0);
    assert_near(of("norm", small, twice, 2), 5e-200, 4.0);
    assert_near(of("rmse", small, twice, 2), 3.5355339059327376e-200, 4.0);
    assert_near(of("snr_db", r, c, 3), -6.020599913279624, 2.0);
}

/* 10 * mpmath.log10(r**2 / e**2), rounded */
static void decibels_are_right_to_the_last_places(void **state)
{
    static const struct {
        double r, e, db;
    } rows[] = {
        {1.0,     1.0,          0.0               },
        {2.0,     1.0,          6.020599913279624 },
        {10.0,    1.0,          20.0              },
        {1.0,     0.9375,       0.5605744720048708},
        {0.71875, 1.0,          -2.868442846046262},
        {1e150,   1e-120,       5400.0            },
        {3.0,     0.0009765625, 69.74842422718949 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct nd_moments moments = {.n = 1,
                                           .sum_rr = rows[i].r * rows[i].r,
                                           .sum_ee = rows[i].e * rows[i].e,
                                           .scale = 1.0};
        const struct nd_detail detail = {.n = 1};
        double found = 1.0;
        assert_true(nd_metric_by_name("snr_db")->value(&moments, &detail, &found));
        assert_near(found, rows[i].db, 4.0);
    }
}

static void names_may_be_written_with_hyphens(void **state)
{
    (void)state;
    assert_ptr_equal(nd_metric_by_name("max-abs"), nd_metric_by_name("max_abs"));
    assert_string_equal(nd_metric_by_name("max-abs-index")->key, "max_abs_index");
    assert_null(nd_metric_by_name("max_ab"));
    assert_null(nd_metric_by_name("max_abs_"));
    assert_null(nd_metric_by_name(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_metric_is_numpys),
        cmocka_unit_test(without_positions_nothing_is_defined),
        cmocka_unit_test(zero_tensors_have_their_own_rules),
        cmocka_unit_test(correlation_of_constant_data_is_absent),
        cmocka_unit_test(correlation_of_complex_data_is_absent),
        cmocka_unit_test(correlation_sees_through_a_large_offset),
        cmocka_unit_test(metrics_reach_beyond_the_range_of_squares),
        cmocka_unit_test(decibels_are_right_to_the_last_places),
        cmocka_unit_test(names_may_be_written_with_hyphens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
