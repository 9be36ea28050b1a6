/*
 * The other side of logs that show two runs; all else about logs is tested with hooklog.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/format.h"
#include "formats/st_build.h"

static struct dump *open_bench(const char *text, struct st_opened *opened)
{
    struct bytes bytes = {0};

    bytes_text(&bytes, text);
    return st_open_sound(bytes, "benchlog", opened);
}

static void the_bench_columns_of_a_comparison_table_are_read(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_bench(
        "NPU Name,Bench Name,NPU Dtype,Bench Dtype,NPU max,NPU min,Bench max,Bench min\n"
        "Module.a.forward.0.output.0,Module.b.forward.0.output.0,torch.float16,torch."
        "float32,"
        "2.25,-2.5,2.26,-2.75\n"
        "Module.c.forward.0.output.0,N/A,torch.float16,N/A,2.25,-2.5,N/A,N/A\n",
        &opened);

    (void)state;
    assert_int_equal(dump->tensor_count, 1);
    const struct dump_slot *slot = find_slot(dump, "Module.b.forward.0", "output.0");
    assert_non_null(slot);
    assert_int_equal(slot->dtype, ND_DTYPE_f32);
    assert_true(slot->statistics.value[STATISTIC_MAX] == 2.26);
    assert_true(slot->statistics.value[STATISTIC_MIN] == -2.75);
    assert_true(isnan(slot->statistics.value[STATISTIC_MEAN]));
    st_close(&opened);
}

static void the_second_runner_of_polygraphy_is_read(void **state)
{
    struct st_opened opened;
    struct dump *dump =
        open_bench("[I] trt-runner-N0-03/05/24-10:11:12: a | Stats: mean=0.5, max=1.5\n"
                   "[I] trt-runner-N0-03/05/24-10:11:12: b | Stats: mean=0.5, max=1.5\n"
                   "[I] onnxrt-runner-N0-03/05/24-10:11:13: a | Stats: mean=0.25, max=2.5\n"
                   "[I] third-runner-N0-03/05/24-10:11:13: a | Stats: mean=0.75, max=3.5\n",
                   &opened);

    (void)state;
    assert_int_equal(dump->tensor_count, 1);
    assert_true(find_slot(dump, "a", "output.0")->statistics.value[STATISTIC_MAX] == 2.5);
    st_close(&opened);
}

static void lines_that_show_one_run_are_read_as_ever(void **state)
{
    struct st_opened opened;
    struct dump *dump = open_bench("a: max=0.5, mean=0.25\n", &opened);

    (void)state;
    assert_true(find_slot(dump, "a", "output.0")->statistics.value[STATISTIC_MEAN] == 0.25);
    st_close(&opened);
}

static void nothing_is_recognised_as_it(void **state)
{
    const char text[] = "a: max=0.5, mean=0.25\nb: max=0.5, mean=0.25\n";
    const struct dump_head head = {(const unsigned char *)text, sizeof text - 1, "x"};

    (void)state;
    assert_int_equal(nd_format_by_name("benchlog")->probe(&head), 0);
    assert_ptr_equal(nd_format_recognise(&head), nd_format_by_name("hooklog"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bench_columns_of_a_comparison_table_are_read),
        cmocka_unit_test(the_second_runner_of_polygraphy_is_read),
        cmocka_unit_test(lines_that_show_one_run_are_read_as_ever),
        cmocka_unit_test(nothing_is_recognised_as_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
