/*
 * Measuring through a layout gives the very bits of measuring contiguous bytes, whichever
 * way the elements are brought in order: piece by piece, or all rows of a bundle together.
 * The device bytes are laid out here by the index maps of the view, one element at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compare/slot_pair.h"
#include "compare/stage.h"
#include "compare/tiles.h"
#include "tensor/layout.h"

/* How the elements of two sides relate. */
enum kind { NEAR, EQUAL, TIES, WILD };

static uint64_t random_state = 1;

static uint64_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state ^ random_state >> 32;
}

/* One element of random bits: the exponent stays near that of 1, so that sums depend on
 * their order. */
static void fill_element(enum nd_dtype dtype, enum kind kind, uint64_t bits,
                         unsigned char *out)
{
    const unsigned size = nd_dtype_info(dtype)->size;

    memcpy(out, &bits, size);
    if (nd_dtype_info(dtype)->kind == ND_KIND_FLOAT)
        out[size - 1] = (unsigned char)((out[size - 1] & 0x83) | (size == 2 ? 0x38 : 0x3c));
    if (kind == TIES)
        memset(out, (int)(bits & 1), size);
    if (kind == WILD && bits >> 58 == 0)
        memset(out, 0xff, size); /* NaN */
}

/* A logical tensor, contiguous, and the same in a device layout. */
struct tensor {
    struct tensor_view flat, device;
    unsigned char *bytes, *stored;
};

static void tensor_store(struct tensor *tensor)
{
    const unsigned size = nd_dtype_info(tensor->flat.dtype)->size;
    const struct tensor_view *device = &tensor->device;
    const uint32_t last = device->shape.rank - 1;
    const uint64_t length = device->shape.dim[last];
    uint64_t index[ND_MAX_RANK];

    for (uint64_t row = 0; row < device->count; row += length) {
        int64_t at = (int64_t)device->base;
        nd_shape_unravel(&device->shape, row, index);
        for (uint32_t k = 0; k < last; k++)
            at += nd_axis_offset(&device->axis[k], index[k]);
        for (uint64_t i = 0; i < length; i++)
            memcpy(tensor->stored +
                       (at + nd_axis_offset(&device->axis[last], i)) * (int64_t)size,
                   tensor->bytes + (row + i) * size, size);
    }
}

static void tensor_make(struct tensor *tensor, const char *name, enum nd_dtype dtype,
                        uint32_t c0, const struct nd_shape *logical)
{
    const struct layout *layout = nd_layout_by_name(name);
    const unsigned size = nd_dtype_info(dtype)->size;
    struct nd_shape storage;
    uint64_t count, room;
    uint32_t block = 0;
    const char *why;

    assert_true(nd_layout_storage(layout, logical, c0, &storage));
    assert_true(nd_shape_count(&storage, &room));
    assert_true(nd_shape_count(logical, &count));
    tensor->bytes = malloc(count * size);
    tensor->stored =
        malloc(room * size); /* no byte more: a sanitizer sees what is beyond */
    assert_true(tensor->bytes != NULL && tensor->stored != NULL);
    memset(tensor->stored, 0, room * size);
    nd_view_contiguous(&tensor->flat, tensor->bytes, count * size, dtype, logical);
    nd_view_contiguous(&tensor->device, tensor->stored, room * size, dtype, &storage);
    assert_true(nd_layout_apply(&tensor->device, layout, &storage, logical, &block, &why));
}

static void tensor_free(struct tensor *tensor)
{
    free(tensor->bytes);
    free(tensor->stored);
}

static void fill(struct tensor *r, struct tensor *c, enum kind kind)
{
    const unsigned size = nd_dtype_info(r->flat.dtype)->size;

    for (uint64_t i = 0; i < r->flat.count * size; i += size) {
        const uint64_t bits = random_bits(), more = bits >> 20;
        fill_element(r->flat.dtype, kind, bits, r->bytes + i);
        memcpy(c->bytes + i, r->bytes + i, size);
        if (kind == WILD && more % 64 == 0)
            fill_element(r->flat.dtype, kind, bits * bits, c->bytes + i);
        if (kind != EQUAL && more % 4 > 0)
            c->bytes[i] ^= (unsigned char)(1 + (kind == TIES ? 0 : more / 64 % 8));
    }
    tensor_store(r);
    tensor_store(c);
}

static struct moments_pivot pivot_of(const struct tensor_view *flat)
{
    return nd_moments_pivot(nd_kernel_set_for(nd_isa_best()), &flat[0], &flat[1],
                            flat[0].dtype, flat[1].dtype);
}

/* Chunk after chunk of contiguous bytes. */
static struct nd_moments measured_flat(const struct kernel_set *set,
                                       const struct tensor_view *view, uint64_t first,
                                       uint64_t count, const struct moments_pivot *pivot)
{
    const struct moments_policy policy = {.scale = 1};
    struct nd_moments all, chunk;

    nd_moments_init(&all);
    for (uint64_t at = first; at < first + count; at += MOMENTS_CHUNK) {
        const uint64_t left = first + count - at;
        nd_moments_measure(set, &view[0], &view[1], view[0].dtype, view[1].dtype, at,
                           left < MOMENTS_CHUNK ? left : MOMENTS_CHUNK, pivot, &policy,
                           &chunk);
        nd_moments_fold(&all, &chunk);
    }
    return all;
}

static struct nd_moments measured_staged(const struct kernel_set *set,
                                         const struct tensor_view *view, uint64_t first,
                                         uint64_t count, const struct moments_pivot *pivot)
{
    const struct moments_policy policy = {.scale = 1};
    const enum nd_dtype real[2] = {view[0].dtype, view[1].dtype};
    struct nd_moments all;
    struct stage stage;

    nd_moments_init(&all);
    nd_stage_init(view, &stage);
    nd_stage_measure(&stage, set, view, real, first, count, pivot, &policy, &all);
    nd_stage_done(&stage);
    return all;
}

static void assert_same(const struct nd_moments *found, const struct nd_moments *expected,
                        const char *what)
{
    if (found->max_abs_at != expected->max_abs_at || found->n != expected->n ||
        memcmp(&found->sum_abs, &expected->sum_abs, sizeof found->sum_abs) != 0 ||
        memcmp(found, expected, sizeof *found) != 0)
        fail_msg("%s: sum of |e| %a, not %a; largest at %llu, not %llu; n %llu, not %llu",
                 what, found->sum_abs, expected->sum_abs,
                 (unsigned long long)found->max_abs_at,
                 (unsigned long long)expected->max_abs_at, (unsigned long long)found->n,
                 (unsigned long long)expected->n);
}

/* All of the pair, and parts of it that begin and end with chunks. */
static void check_pairs(struct tensor_view (*device)[2], int pairs,
                        const struct tensor_view *flat, const char *what)
{
    const struct moments_pivot pivot = pivot_of(flat);
    const struct kernel_set *set = nd_kernel_set_for(nd_isa_best());
    const uint64_t count = flat[0].count, chunks = (count - 1) / MOMENTS_CHUNK + 1;

    for (uint64_t from = 0; from < chunks; from += chunks / 3 + 1) {
        const uint64_t first = from * MOMENTS_CHUNK;
        const uint64_t some = chunks / 2 * MOMENTS_CHUNK;
        const uint64_t n =
            from == 0 || some > count - first || some == 0 ? count - first : some;
        const struct nd_moments expected = measured_flat(set, flat, first, n, &pivot);
        for (int k = 0; k < pairs; k++) {
            const struct nd_moments found =
                measured_staged(set, device[k], first, n, &pivot);
            assert_same(&found, &expected, what);
        }
    }
}

/* Parts that are measured at once are folded as if each had been measured alone. */
static void check_parts(const struct tensor_view *device, const struct tensor_view *flat,
                        const char *what)
{
    enum { PARTS = 64 };
    const struct moments_policy policy = {.scale = 1};
    const struct moments_pivot pivot = pivot_of(flat);
    const struct kernel_set *set = nd_kernel_set_for(nd_isa_best());
    const enum nd_dtype real[2] = {flat[0].dtype, flat[1].dtype};
    const uint64_t count = flat[0].count, part = 2 * MOMENTS_CHUNK;
    const uint64_t parts = (count - 1) / part + 1;
    struct nd_moments found[PARTS], all, alone, together;
    struct stage stage;

    assert_true(parts <= PARTS);
    nd_moments_init(&alone);
    nd_moments_init(&together);
    for (uint64_t i = 0; i < parts; i++)
        nd_moments_init(&found[i]);
    nd_stage_init(device, &stage);
    nd_stage_measure_parts(&stage, set, device, real, 0, count, part, &pivot, &policy,
                           found);
    nd_stage_done(&stage);
    for (uint64_t i = 0; i < parts; i++) {
        const uint64_t left = count - i * part;
        all = measured_flat(set, flat, i * part, left < part ? left : part, &pivot);
        assert_true(found[i].sum_abs == all.sum_abs && found[i].sum_rc == all.sum_rc);
        nd_moments_fold(&alone, &all);
        nd_moments_fold(&together, &found[i]);
    }
    assert_same(&together, &alone, what);
}

static const struct row {
    const char *layout;
    enum nd_dtype dtype;
    uint32_t c0;
    bool tiles; /* rows so long that they advance together */
    struct nd_shape logical;
} rows[] = {
    {"NC1HWC0",    ND_DTYPE_f32,  16, false, {4, {3, 20, 29, 31}}     },
    {"NC1HWC0",    ND_DTYPE_f32,  16, false, {4, {2, 48, 56, 57}}     },
    {"NC1HWC0",    ND_DTYPE_f16,  16, false, {4, {5, 33, 7, 7}}       },
    {"NC1HWC0",    ND_DTYPE_i8,   32, false, {4, {2, 40, 113, 57}}    },
    {"NC1HWC0",    ND_DTYPE_f64,  16, false, {4, {2, 19, 30, 23}}     },
    {"NC1HWC0",    ND_DTYPE_f32,  16, true,  {4, {1, 35, 181, 193}}   },
    {"NC1HWC0",    ND_DTYPE_f32,  16, true,  {4, {2, 16, 192, 256}}   },
    {"NC1HWC0",    ND_DTYPE_f16,  16, true,  {4, {1, 21, 257, 259}}   },
    {"NC1HWC0",    ND_DTYPE_i8,   32, true,  {4, {1, 34, 257, 259}}   },
    {"NC1HWC0",    ND_DTYPE_f64,  16, true,  {4, {1, 18, 131, 127}}   },
    {"NDC1HWC0",   ND_DTYPE_f16,  16, false, {5, {2, 20, 3, 19, 23}}  },
    {"NDC1HWC0",   ND_DTYPE_f32,  16, true,  {5, {1, 18, 3, 111, 101}}},
    {"NHWC",       ND_DTYPE_f32,  0,  true,  {4, {1, 3, 421, 419}}    },
    {"NHWC",       ND_DTYPE_bf16, 0,  false, {4, {2, 65, 57, 33}}     },
    {"FRACTAL_NZ", ND_DTYPE_f16,  16, false, {2, {517, 1030}}         },
    {"FRACTAL_NZ", ND_DTYPE_f32,  16, false, {4, {2, 3, 70, 333}}     },
    {"FRACTAL_NZ", ND_DTYPE_i8,   32, false, {2, {300, 999}}          },
    {"FRACTAL_ZZ", ND_DTYPE_f16,  16, false, {2, {401, 530}}          },
    {"FRACTAL_Z",  ND_DTYPE_f16,  16, false, {4, {150, 53, 3, 3}}     },
    {"FRACTAL_Z",  ND_DTYPE_f32,  8,  false, {4, {61, 40, 5, 7}}      },
    {"HWCN",       ND_DTYPE_f32,  0,  false, {4, {70, 30, 5, 5}}      },
};
enum { ROWS = sizeof rows / sizeof *rows };

static void staged_bits_are_those_of_contiguous_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        struct tensor r, c;
        tensor_make(&r, rows[i].layout, rows[i].dtype, rows[i].c0, &rows[i].logical);
        tensor_make(&c, rows[i].layout, rows[i].dtype, rows[i].c0, &rows[i].logical);
        const struct tensor_view flat[2] = {r.flat, c.flat};
        struct tensor_view sides[3][2] = {
            {r.flat,   c.device},
            {r.device, c.flat  },
            {r.device, c.device}
        };
        fill(&r, &c, NEAR);
        check_pairs(sides, 3, flat, rows[i].layout);
        fill(&r, &c, (enum kind)(EQUAL + i % 3));
        check_pairs(sides, 1, flat, rows[i].layout);
        check_parts(sides[0], flat, rows[i].layout);
        struct tiles *tiles = nd_tiles_new(sides[0], 8 << 20);
        assert_int_equal(tiles != NULL, rows[i].tiles);
        nd_tiles_free(tiles);
        tensor_free(&r);
        tensor_free(&c);
    }
}

static void sides_of_two_layouts_and_byte_orders_are_staged_too(void **state)
{
    static const struct nd_shape logical = {
        4, {1, 35, 181, 193}
    };
    struct tensor r, c;

    (void)state;
    tensor_make(&r, "NHWC", ND_DTYPE_f32, 0, &logical);
    tensor_make(&c, "NC1HWC0", ND_DTYPE_f32, 16, &logical);
    fill(&r, &c, NEAR);
    const struct tensor_view flat[2] = {r.flat, c.flat};
    struct tensor_view sides[1][2] = {
        {r.device, c.device}
    };
    check_pairs(sides, 1, flat, "NHWC against NC1HWC0");
    unsigned char *const swapped = malloc(4 * r.flat.count);
    assert_non_null(swapped);
    for (uint64_t i = 0; i < 4 * r.flat.count; i++)
        swapped[i] = r.bytes[i ^ 3];
    sides[0][0] = r.flat;
    sides[0][0].data = swapped;
    sides[0][0].swapped = true;
    check_pairs(sides, 1, flat, "big-endian against NC1HWC0");
    free(swapped);
    tensor_free(&r);
    tensor_free(&c);
}

/* The sums of more blocks than are held at once. */
static void a_tensor_of_many_millions_is_measured_in_parts(void **state)
{
    static const struct nd_shape logical = {
        4, {1, 17, 1010, 1000}
    };
    const uint64_t pixels = logical.dim[2] * logical.dim[3];
    struct tensor r, c;

    (void)state;
    tensor_make(&r, "NC1HWC0", ND_DTYPE_f16, 16, &logical);
    tensor_make(&c, "NC1HWC0", ND_DTYPE_f16, 16, &logical);
    uint16_t *const x = (void *)r.bytes, *const y = (void *)c.bytes,
                    *const z = (void *)c.stored;
    for (uint64_t i = 0; i < r.flat.count; i++) {
        x[i] = (uint16_t)((i * 2654435761u >> 13) & 0x3bff);
        y[i] = x[i] ^ 1;
        z[(i / pixels / 16 * pixels + i % pixels) * 16 + i / pixels % 16] = y[i];
    }
    const struct tensor_view flat[2] = {r.flat, c.flat}, sides[2] = {r.flat, c.device};
    const struct moments_pivot pivot = pivot_of(flat);
    const struct kernel_set *set = nd_kernel_set_for(nd_isa_best());
    const struct nd_moments expected = measured_flat(set, flat, 0, r.flat.count, &pivot);
    const struct nd_moments found = measured_staged(set, sides, 0, r.flat.count, &pivot);
    assert_same(&found, &expected, "17 channels of 1010 x 1000");
    tensor_free(&r);
    tensor_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staged_bits_are_those_of_contiguous_bytes),
        cmocka_unit_test(sides_of_two_layouts_and_byte_orders_are_staged_too),
        cmocka_unit_test(a_tensor_of_many_millions_is_measured_in_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
