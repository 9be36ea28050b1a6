/*
 * A fixed pseudo-random pair: its moments are the same bits on every machine, with every
 * compiler and instruction set.  golden/golden.py worked them out apart from our code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/golden/expected.h"
#include "kernels/moments.h"

static uint64_t random_state;

static uint32_t random_next(void)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(random_state >> 32);
}

static void golden_fill(uint32_t *r, uint32_t *c)
{
    static const uint32_t special[] = {0x7FC00000, 0x7F800000, 0xFF800000, 0xC61C4000,
                                       0xC77FE000, 0x00000001, 0x80000000};

    random_state = 1;
    for (uint32_t i = 0; i < GOLDEN_COUNT; i++) {
        const uint32_t first = random_next(), second = random_next();
        r[i] = (first & 0x807FFFFF) | (120 + (first >> 23 & 7)) << 23;
        c[i] = r[i] ^ (second & 0x7FF);
        if (second >> 20 == 7)
            r[i] = special[i % 7];
        if (second >> 19 == 15)
            c[i] = special[i / 7 % 7];
    }
}

static void assert_same_bits(double found, double expected)
{
    assert_memory_equal(&found, &expected, sizeof found);
}

static void assert_golden(const struct nd_moments *found)
{
    const struct nd_moments *const expected = &golden_moments;

    assert_int_equal(found->total, expected->total);
    assert_int_equal(found->n, expected->n);
    assert_int_equal(found->differ, expected->differ);
    assert_int_equal(found->mismatches, expected->mismatches);
    assert_int_equal(found->masked, expected->masked);
    assert_int_equal(found->masks_differ, expected->masks_differ);
    assert_memory_equal(found->side, expected->side, sizeof found->side);
    assert_false(found->bit_equal);
    assert_same_bits(found->sum_abs, expected->sum_abs);
    assert_same_bits(found->sum_ee, expected->sum_ee);
    assert_same_bits(found->sum_r, expected->sum_r);
    assert_same_bits(found->sum_c, expected->sum_c);
    assert_same_bits(found->sum_rr, expected->sum_rr);
    assert_same_bits(found->sum_cc, expected->sum_cc);
    assert_same_bits(found->sum_rc, expected->sum_rc);
    assert_same_bits(found->sum_pr, expected->sum_pr);
    assert_same_bits(found->sum_pc, expected->sum_pc);
    assert_same_bits(found->sum_prr, expected->sum_prr);
    assert_same_bits(found->sum_pcc, expected->sum_pcc);
    assert_same_bits(found->sum_prc, expected->sum_prc);
    assert_same_bits(found->max_abs, expected->max_abs);
    assert_int_equal(found->max_abs_at, expected->max_abs_at);
    for (int side = 0; side < 2; side++) {
        assert_same_bits(found->min[side], expected->min[side]);
        assert_same_bits(found->max[side], expected->max[side]);
    }
}

static void every_instruction_set_gives_the_golden_bits(void **state)
{
    const struct nd_shape shape = {.rank = 1, .dim = {GOLDEN_COUNT}};
    const size_t size = GOLDEN_COUNT * sizeof(uint32_t);
    const struct moments_policy policy = {.scale = 1.0};
    uint32_t *const r = malloc(size), *const c = malloc(size);
    struct tensor_view view[2];

    (void)state;
    assert_non_null(r);
    assert_non_null(c);
    golden_fill(r, c);
    nd_view_contiguous(&view[0], r, size, ND_DTYPE_f32, &shape);
    nd_view_contiguous(&view[1], c, size, ND_DTYPE_f32, &shape);
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const struct kernel_set *const set = nd_kernel_set_for((enum isa)isa);
        struct nd_moments whole, chunk;
        if (set == NULL)
            continue;
        const struct moments_pivot pivot =
            nd_moments_pivot(set, &view[0], &view[1], ND_DTYPE_f32, ND_DTYPE_f32);
        nd_moments_init(&whole);
        for (uint64_t at = 0; at < GOLDEN_COUNT; at += MOMENTS_CHUNK) {
            const uint64_t left = GOLDEN_COUNT - at;
            nd_moments_measure(set, &view[0], &view[1], ND_DTYPE_f32, ND_DTYPE_f32, at,
                               left < MOMENTS_CHUNK ? left : MOMENTS_CHUNK, &pivot, &policy,
                               &chunk);
            nd_moments_fold(&whole, &chunk);
        }
        assert_golden(&whole);
    }
    free(r);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_gives_the_golden_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
