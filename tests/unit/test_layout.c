/*
 * Every layout against the index formulas of CANN's documentation, written out here by
 * hand: over random shapes each is a bijection onto its logical elements, gathers of any
 * range agree with it, and what is not zero in the padding is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/layout.h"

enum { ROUNDS = 60 };

static uint64_t random_state = 20240607;

static uint64_t random_below(uint64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % n;
}

/* One drawn case.  d: logical dimensions in the layout's own order of axes; b0 the block of
 * the last stored axis, b1 that of the other blocked one. */
struct drawn {
    uint64_t d[8], b0, b1, groups;
    struct nd_shape logical, storage;
};

static uint64_t up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

static uint64_t multiple(uint64_t a, uint64_t b)
{
    return a / divisor(a, b) * b;
}

static void shape_set(struct nd_shape *shape, uint32_t rank, const uint64_t *dim)
{
    shape->rank = rank;
    memcpy(shape->dim, dim, rank * sizeof *dim);
}

#define SHAPE(shape, ...)                                                                  \
    shape_set(shape, sizeof(uint64_t[]){__VA_ARGS__} / 8, (const uint64_t[]){__VA_ARGS__})

/* --- the formulas: i is the logical index -------------------------------------------- */

#define N  (t->d[0])
#define C  (t->d[1])
#define H  (t->d[2])
#define W  (t->d[3])
#define C0 (t->b0)
#define C1 up(C, C0)
#define N1 up(N, t->b1)
#define N0 (t->b1)

static uint64_t nchw(const struct drawn *t, const uint64_t *i)
{
    return ((i[0] * C + i[1]) * H + i[2]) * W + i[3];
}
static uint64_t nhwc(const struct drawn *t, const uint64_t *i)
{
    return ((i[0] * H + i[2]) * W + i[3]) * C + i[1];
}
static uint64_t hwcn(const struct drawn *t, const uint64_t *i)
{
    return ((i[2] * W + i[3]) * C + i[1]) * N + i[0];
}
static uint64_t chwn(const struct drawn *t, const uint64_t *i)
{
    return ((i[1] * H + i[2]) * W + i[3]) * N + i[0];
}
static uint64_t nc1hwc0(const struct drawn *t, const uint64_t *i)
{
    return (((i[0] * C1 + i[1] / C0) * H + i[2]) * W + i[3]) * C0 + i[1] % C0;
}
static uint64_t nc1hwc0_of_c(const struct drawn *t, const uint64_t *i)
{
    (void)t;
    return i[0]; /* (c / C0) * C0 + c % C0 */
}
static uint64_t nc1hwc0_of_chw(const struct drawn *t, const uint64_t *i) /* d: 1, C, H, W */
{
    return ((i[0] / C0 * H + i[1]) * W + i[2]) * C0 + i[0] % C0;
}
static uint64_t fractal_z(const struct drawn *t, const uint64_t *i)
{
    return ((((i[1] / C0 * H + i[2]) * W + i[3]) * N1 + i[0] / N0) * N0 + i[0] % N0) * C0 +
           i[1] % C0;
}
static uint64_t fractal_z_2d(const struct drawn *t, const uint64_t *i) /* (a, b), d: b, a */
{
    return ((i[0] / C0 * N1 + i[1] / N0) * N0 + i[1] % N0) * C0 + i[0] % C0;
}
static uint64_t fractal_z_groups(const struct drawn *t, const uint64_t *i) /* C = Cin */
{
    const uint64_t out = N / t->groups, k = i[0] / out, co = i[0] % out;
    uint64_t e = multiple(multiple(C, C0) / C, multiple(out, N0) / out);
    e = e < t->groups ? e : t->groups;
    const uint64_t c1 = up(e * C, C0), opt = up(e * out, N0) * N0;
    const uint64_t dc = k % e * C + i[1], dn = k % e * out + co;
    return (((k / e * c1 + dc / C0) * H + i[2]) * W + i[3]) * opt * C0 + dn * C0 + dc % C0;
}
static uint64_t fractal_z_c04(const struct drawn *t, const uint64_t *i)
{
    const uint64_t k = (i[2] * W + i[3]) * 4 + i[1];
    return ((k / C0 * N1 + i[0] / N0) * N0 + i[0] % N0) * C0 + k % C0;
}
static uint64_t c1hwncoc0(const struct drawn *t, const uint64_t *i)
{
    const uint64_t co = i[1] % C0;
    return ((((i[1] / C0 * H + i[2]) * W + i[3]) * N + i[0]) * C0 + co) * C0 + i[1] % C0;
}

/* n, c, d, h, w */
#undef H
#undef W
#define D (t->d[2])
#define H (t->d[3])
#define W (t->d[4])
static uint64_t ncdhw(const struct drawn *t, const uint64_t *i)
{
    return (((i[0] * C + i[1]) * D + i[2]) * H + i[3]) * W + i[4];
}
static uint64_t ndhwc(const struct drawn *t, const uint64_t *i)
{
    return (((i[0] * D + i[2]) * H + i[3]) * W + i[4]) * C + i[1];
}
static uint64_t dhwcn(const struct drawn *t, const uint64_t *i)
{
    return (((i[2] * H + i[3]) * W + i[4]) * C + i[1]) * N + i[0];
}
static uint64_t dhwnc(const struct drawn *t, const uint64_t *i)
{
    return (((i[2] * H + i[3]) * W + i[4]) * N + i[0]) * C + i[1];
}
static uint64_t ndc1hwc0(const struct drawn *t, const uint64_t *i)
{
    return ((((i[0] * D + i[2]) * C1 + i[1] / C0) * H + i[3]) * W + i[4]) * C0 + i[1] % C0;
}
static uint64_t fractal_z_3d(const struct drawn *t, const uint64_t *i)
{
    return (((((i[2] * C1 + i[1] / C0) * H + i[3]) * W + i[4]) * N1 + i[0] / N0) * N0 +
            i[0] % N0) *
               C0 +
           i[1] % C0;
}
static uint64_t fractal_z_3d_transpose(const struct drawn *t, const uint64_t *i)
{
    return (((((i[2] * up(N, C0) + i[0] / C0) * H + i[3]) * W + i[4]) * up(C, N0) +
             i[1] / N0) *
                N0 +
            i[1] % N0) *
               C0 +
           i[0] % C0;
}

/* Matrices: d = B, B2, M, K. */
#define M  (t->d[2])
#define K  (t->d[3])
#define K0 (t->b0)
#define M0 (t->b1)
static uint64_t nz(const struct drawn *t, uint64_t b, uint64_t i, uint64_t j)
{
    return (((b * up(K, K0) + j / K0) * up(M, M0) + i / M0) * M0 + i % M0) * K0 + j % K0;
}
static uint64_t zz(const struct drawn *t, uint64_t b, uint64_t i, uint64_t j)
{
    return (((b * up(M, M0) + i / M0) * up(K, K0) + j / K0) * M0 + i % M0) * K0 + j % K0;
}
static uint64_t nz_2d(const struct drawn *t, const uint64_t *i)
{
    return nz(t, 0, i[0], i[1]);
}
static uint64_t nz_4d(const struct drawn *t, const uint64_t *i)
{
    return nz(t, i[0] * t->d[1] + i[1], i[2], i[3]);
}
static uint64_t zz_2d(const struct drawn *t, const uint64_t *i)
{
    return zz(t, 0, i[0], i[1]);
}
static uint64_t zz_3d(const struct drawn *t, const uint64_t *i)
{
    return zz(t, i[0], i[1], i[2]);
}
static uint64_t nz_row(const struct drawn *t, const uint64_t *i) /* K as 1 x K */
{
    return i[0] / K0 * M0 * K0 + i[0] % K0;
}
static uint64_t nz_column(const struct drawn *t, const uint64_t *i) /* K as K x 1 */
{
    return (i[0] / M0 * M0 + i[0] % M0) * K0;
}

/* Sequences: d = B, N, S, D. */
static uint64_t bsnd(const struct drawn *t, const uint64_t *i)
{
    return ((i[0] * t->d[2] + i[2]) * t->d[1] + i[1]) * t->d[3] + i[3];
}
static uint64_t sbh(const struct drawn *t, const uint64_t *i) /* d: B, S, H */
{
    return (i[1] * t->d[0] + i[0]) * t->d[2] + i[2];
}

/* --- shapes -------------------------------------------------------------------------- */

#undef H
#undef W
#define H (t->d[2])
#define W (t->d[3])
static void four(struct drawn *t)
{
    SHAPE(&t->logical, N, C, H, W);
}
static void of_nchw(struct drawn *t)
{
    four(t);
    SHAPE(&t->storage, N, C, H, W);
}
static void of_nhwc(struct drawn *t)
{
    four(t);
    SHAPE(&t->storage, N, H, W, C);
}
static void of_hwcn(struct drawn *t)
{
    four(t);
    SHAPE(&t->storage, H, W, C, N);
}
static void of_chwn(struct drawn *t)
{
    four(t);
    SHAPE(&t->storage, C, H, W, N);
}
static void of_nc1hwc0(struct drawn *t)
{
    four(t);
    SHAPE(&t->storage, N, C1, H, W, C0);
}
static void of_c04(struct drawn *t)
{
    C0 = 4;
    of_nc1hwc0(t);
}
static void of_c(struct drawn *t)
{
    SHAPE(&t->logical, C);
    SHAPE(&t->storage, 1, C1, 1, 1, C0);
}
static void of_chw(struct drawn *t)
{
    SHAPE(&t->logical, C, H, W);
    SHAPE(&t->storage, 1, C1, H, W, C0);
}
static void of_fz(struct drawn *t)
{
    four(t);
    SHAPE(&t->storage, C1 * H * W, N1, N0, C0);
}
static void of_fz_2d(struct drawn *t)
{
    SHAPE(&t->logical, C, N);
    SHAPE(&t->storage, C1, N1, N0, C0);
}
static void of_fz_groups(struct drawn *t)
{
    t->groups = 2 + random_below(40);
    N = t->groups * (1 + random_below(20));
    C = 1 + random_below(20);
    N0 = 16;
    const uint64_t out = N / t->groups;
    uint64_t e = multiple(multiple(C, C0) / C, multiple(out, N0) / out);
    e = e < t->groups ? e : t->groups;
    four(t);
    SHAPE(&t->storage, up(t->groups, e) * up(e * C, C0) * H * W, up(e * out, N0), N0, C0);
}
static void of_depthwise(struct drawn *t)
{
    t->groups = N = 32; /* a known trap: 32 groups of 1 channel, 3 x 3 */
    C = 1;
    H = W = 3;
    C0 = N0 = 16;
    four(t);
    SHAPE(&t->storage, 2 * 9, 1, 16, 16);
}
static void of_fz_c04(struct drawn *t)
{
    C = 1 + random_below(4);
    C0 = 4u << random_below(4);
    four(t);
    SHAPE(&t->storage, up(4 * H * W, C0), N1, N0, C0);
}
static void of_diagonal(struct drawn *t)
{
    four(t);
    SHAPE(&t->storage, C1, H, W, N, C0, C0);
}
static void of_bsnd(struct drawn *t)
{
    four(t);
    SHAPE(&t->storage, N, H, C, W);
}
static void of_sbh(struct drawn *t)
{
    SHAPE(&t->logical, t->d[0], t->d[1], t->d[2]);
    SHAPE(&t->storage, t->d[1], t->d[0], t->d[2]);
}
static void of_nz_2d(struct drawn *t)
{
    SHAPE(&t->logical, M, K);
    SHAPE(&t->storage, up(K, K0), up(M, M0), M0, K0);
}
static void of_nz_4d(struct drawn *t)
{
    SHAPE(&t->logical, t->d[0], t->d[1], M, K);
    SHAPE(&t->storage, t->d[0], t->d[1], up(K, K0), up(M, M0), M0, K0);
}
static void of_zz_2d(struct drawn *t)
{
    SHAPE(&t->logical, M, K);
    SHAPE(&t->storage, up(M, M0), up(K, K0), M0, K0);
}
static void of_zz_3d(struct drawn *t)
{
    SHAPE(&t->logical, t->d[0], M, K);
    SHAPE(&t->storage, t->d[0], up(M, M0), up(K, K0), M0, K0);
}
static void of_nz_row(struct drawn *t)
{
    K += K0; /* more than one block: else both forms fit */
    SHAPE(&t->logical, K);
    SHAPE(&t->storage, up(K, K0), 1, M0, K0);
}
static void of_nz_column(struct drawn *t)
{
    M += M0;
    SHAPE(&t->logical, M);
    SHAPE(&t->storage, 1, up(M, M0), M0, K0);
}
#undef H
#undef W
#define H (t->d[3])
#define W (t->d[4])
static void five(struct drawn *t)
{
    SHAPE(&t->logical, N, C, D, H, W);
}
static void of_ncdhw(struct drawn *t)
{
    five(t);
    SHAPE(&t->storage, N, C, D, H, W);
}
static void of_ndhwc(struct drawn *t)
{
    five(t);
    SHAPE(&t->storage, N, D, H, W, C);
}
static void of_dhwcn(struct drawn *t)
{
    five(t);
    SHAPE(&t->storage, D, H, W, C, N);
}
static void of_dhwnc(struct drawn *t)
{
    five(t);
    SHAPE(&t->storage, D, H, W, N, C);
}
static void of_ndc1hwc0(struct drawn *t)
{
    five(t);
    SHAPE(&t->storage, N, D, C1, H, W, C0);
}
static void of_fz_3d(struct drawn *t)
{
    five(t);
    SHAPE(&t->storage, D * C1 * H * W, N1, N0, C0);
}
static void of_fz_3d_transpose(struct drawn *t)
{
    five(t);
    SHAPE(&t->storage, D * up(N, C0) * H * W, up(C, N0), N0, C0);
}

static const struct {
    const char *name;
    void (*shapes)(struct drawn *t);
    uint64_t (*offset)(const struct drawn *t, const uint64_t *i);
} cases[] = {
    {"NCHW",                   of_nchw,            nchw                  },
    {"NHWC",                   of_nhwc,            nhwc                  },
    {"HWCN",                   of_hwcn,            hwcn                  },
    {"CHWN",                   of_chwn,            chwn                  },
    {"NC1HWC0",                of_nc1hwc0,         nc1hwc0               },
    {"NC1HWC0",                of_c,               nc1hwc0_of_c          },
    {"NC1HWC0",                of_chw,             nc1hwc0_of_chw        },
    {"NC1HWC0_C04",            of_c04,             nc1hwc0               },
    {"FRACTAL_Z",              of_fz,              fractal_z             },
    {"FRACTAL_Z",              of_fz_2d,           fractal_z_2d          },
    {"FRACTAL_Z",              of_fz_groups,       fractal_z_groups      },
    {"FRACTAL_Z",              of_depthwise,       fractal_z_groups      },
    {"FRACTAL_Z_C04",          of_fz_c04,          fractal_z_c04         },
    {"C1HWNCoC0",              of_diagonal,        c1hwncoc0             },
    {"NCDHW",                  of_ncdhw,           ncdhw                 },
    {"NDHWC",                  of_ndhwc,           ndhwc                 },
    {"DHWCN",                  of_dhwcn,           dhwcn                 },
    {"DHWNC",                  of_dhwnc,           dhwnc                 },
    {"NDC1HWC0",               of_ndc1hwc0,        ndc1hwc0              },
    {"FRACTAL_Z_3D",           of_fz_3d,           fractal_z_3d          },
    {"FRACTAL_Z_3D_TRANSPOSE", of_fz_3d_transpose, fractal_z_3d_transpose},
    {"FRACTAL_NZ",             of_nz_2d,           nz_2d                 },
    {"FRACTAL_NZ",             of_nz_4d,           nz_4d                 },
    {"FRACTAL_NZ",             of_nz_row,          nz_row                },
    {"FRACTAL_NZ",             of_nz_column,       nz_column             },
    {"FRACTAL_ZZ",             of_zz_2d,           zz_2d                 },
    {"FRACTAL_ZZ",             of_zz_3d,           zz_3d                 },
    {"BSND",                   of_bsnd,            bsnd                  },
    {"SBH",                    of_sbh,             sbh                   },
};
enum { CASES = sizeof cases / sizeof *cases };

static void draw(struct drawn *t, size_t which)
{
    static const uint64_t blocks[] = {16, 32, 8, 4, 64}, others[] = {16, 1, 8};

    memset(t, 0, sizeof *t);
    t->groups = 1;
    for (int k = 0; k < 8; k++)
        t->d[k] = 1 + random_below(k < 2 ? 40 : 9);
    if (strncmp(cases[which].name, "FRACTAL_NZ", 10) == 0 ||
        strcmp(cases[which].name, "FRACTAL_ZZ") == 0) {
        t->d[0] = 1 + random_below(3);
        t->d[1] = 1 + random_below(3);
        t->d[2] = 1 + random_below(50);
        t->d[3] = 1 + random_below(50);
    }
    t->b0 = blocks[random_below(5)];
    t->b1 = others[random_below(3)];
    cases[which].shapes(t);
}

/* The storage of a case: element i of the tensor holds i + 1, all else 0. */
static uint32_t *store(const struct drawn *t, size_t which, struct tensor_view *ret_storage)
{
    uint64_t stored, count, index[ND_MAX_RANK];
    uint32_t *bytes;

    assert_true(nd_shape_count(&t->storage, &stored));
    assert_true(nd_shape_count(&t->logical, &count));
    bytes = calloc(stored, sizeof *bytes);
    assert_non_null(bytes);
    for (uint64_t i = 0; i < count; i++) {
        nd_shape_unravel(&t->logical, i, index);
        const uint64_t at = cases[which].offset(t, index);
        assert_true(at < stored);
        assert_int_equal(bytes[at], 0); /* no two elements in one place */
        bytes[at] = (uint32_t)(i + 1);
    }
    nd_view_contiguous(ret_storage, bytes, stored * 4, ND_DTYPE_u32, &t->storage);
    return bytes;
}

static void every_layout_maps_the_logical_elements_as_its_formula_says(void **state)
{
    (void)state;
    for (size_t which = 0; which < CASES; which++)
        for (int round = 0; round < ROUNDS; round++) {
            struct drawn t;
            struct tensor_view view, storage;
            uint32_t c0 = 0;
            const char *why = NULL;
            draw(&t, which);
            uint32_t *bytes = store(&t, which, &storage);
            const struct layout *layout = nd_layout_by_name(cases[which].name);
            assert_non_null(layout);
            view = storage;
            if (!nd_layout_apply_groups(&view, layout, &t.storage, &t.logical, t.groups,
                                        &c0, &why))
                fail_msg("%s: %s", cases[which].name, why);
            assert_true(nd_shape_equal(&view.shape, &t.logical));
            if (nd_layout_padded(layout))
                assert_int_equal(c0, t.storage.dim[t.storage.rank - 1]);
            uint32_t *got = malloc(view.count * sizeof *got);
            assert_non_null(got);
            nd_view_gather(&view, 0, view.count, got);
            for (uint64_t i = 0; i < view.count; i++)
                assert_int_equal(got[i], i + 1);
            for (int k = 0; k < 8; k++) { /* any range */
                const uint64_t first = random_below(view.count);
                const uint64_t n = 1 + random_below(view.count - first);
                memset(got, 0, n * sizeof *got);
                nd_view_gather(&view, first, n, got);
                for (uint64_t i = 0; i < n; i++)
                    assert_int_equal(got[i], first + i + 1);
            }
            free(got);
            free(bytes);
        }
}

/* Long rows go through squares turned in registers, short ones through windows of many
 * bundles: by the size of an element. */
static void elements_of_every_size_are_gathered_from_long_and_from_short_rows(void **state)
{
    static const struct {
        const char *layout;
        uint32_t c0;
        struct nd_shape logical;
    } rows[] = {
        {"NC1HWC0",   16, {4, {2, 19, 9, 33}}  },
        {"NC1HWC0",   16, {4, {1, 33, 1, 700}} },
        {"NC1HWC0",   32, {4, {3, 40, 3, 3}}   },
        {"NHWC",      0,  {4, {2, 24, 5, 41}}  },
        {"NHWC",      0,  {4, {2, 24, 2, 2}}   },
        {"FRACTAL_Z", 16, {4, {20, 35, 3, 3}}  },
        {"FRACTAL_Z", 8,  {4, {20, 35, 1, 130}}},
        {"HWCN",      0,  {4, {12, 6, 2, 3}}   },
        {"NDC1HWC0",  16, {5, {2, 20, 5, 3, 33}}},
        {"NDC1HWC0",  16, {5, {1, 40, 70, 1, 9}}},
        {"FRACTAL_NZ", 16, {3, {3, 70, 600}}   },
    };
    static const enum nd_dtype types[] = {ND_DTYPE_u8, ND_DTYPE_u16, ND_DTYPE_u32,
                                          ND_DTYPE_u64, ND_DTYPE_c64, ND_DTYPE_c128};

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            const struct layout *layout = nd_layout_by_name(rows[r].layout);
            const unsigned size = nd_dtype_info(types[k])->size;
            struct nd_shape stored;
            struct tensor_view view;
            uint64_t room, index[ND_MAX_RANK];
            uint32_t c0 = 0;
            const char *why;
            assert_true(nd_layout_storage(layout, &rows[r].logical, rows[r].c0, &stored));
            assert_true(nd_shape_count(&stored, &room));
            unsigned char *bytes = malloc(room * size);
            assert_non_null(bytes);
            for (uint64_t i = 0; i < room * size; i++)
                bytes[i] = (unsigned char)random_below(256);
            nd_view_contiguous(&view, bytes, room * size, types[k], &stored);
            assert_true(nd_layout_apply(&view, layout, &stored, &rows[r].logical, &c0, &why));
            assert_true(nd_view_reach(&view) >= 1 && nd_view_reach(&view) <= view.count);
            for (uint64_t first = 0, most = 1; first < view.count; first += 97, most += 61)
                assert_true(nd_view_cut(&view, first, most) - 1 < most); /* 1 to most */
            unsigned char *got = malloc(view.count * size);
            assert_non_null(got);
            for (int round = 0; round < 12; round++) {
                const uint64_t first = round == 0 ? 0 : random_below(view.count);
                const uint64_t n = round == 0 ? view.count : 1 + random_below(view.count - first);
                nd_view_gather(&view, first, n, got);
                for (uint64_t i = 0; i < n; i++) {
                    int64_t at = (int64_t)view.base;
                    nd_shape_unravel(&view.shape, first + i, index);
                    for (uint32_t axis = 0; axis < view.shape.rank; axis++)
                        at += nd_axis_offset(&view.axis[axis], index[axis]);
                    assert_memory_equal(got + i * size, bytes + (uint64_t)at * size, size);
                }
            }
            free(got);
            free(bytes);
        }
}

static void what_is_not_zero_in_the_padding_is_counted_and_nothing_else(void **state)
{
    (void)state;
    for (size_t which = 0; which < CASES; which++) {
        const struct layout *layout = nd_layout_by_name(cases[which].name);
        for (int round = 0; nd_layout_padded(layout) && round < ROUNDS; round++) {
            struct drawn t;
            struct tensor_view storage;
            uint64_t set = 0;
            draw(&t, which);
            uint32_t *bytes = store(&t, which, &storage);
            assert_int_equal(
                nd_layout_padding_nonzero_groups(&storage, layout, &t.logical, t.groups, 0),
                0);
            for (uint64_t i = 0; i < storage.count; i++)
                if (bytes[i] == 0 && random_below(3) == 0) {
                    bytes[i] = 7;
                    set++;
                }
            assert_int_equal(
                nd_layout_padding_nonzero_groups(&storage, layout, &t.logical, t.groups, 0),
                set);
            free(bytes);
        }
    }
}

static void permuted_and_squeezed_views_of_linked_axes_read_the_same(void **state)
{
    static const struct {
        const char *name;
        size_t which;
    } linked[] = {
        {"FRACTAL_Z",     10},
        {"FRACTAL_Z",     11},
        {"FRACTAL_Z_C04", 12}
    };
    static const uint32_t orders[][4] = {
        {0, 2, 3, 1},
        {2, 3, 1, 0},
        {3, 2, 1, 0},
        {1, 3, 0, 2}
    };

    (void)state;
    for (size_t l = 0; l < 3; l++)
        for (size_t o = 0; o < 4; o++)
            for (int round = 0; round < 20; round++) {
                struct drawn t;
                struct tensor_view view, storage;
                uint32_t c0 = 0;
                const char *why;
                uint64_t index[ND_MAX_RANK], logical[4];
                draw(&t, linked[l].which);
                uint32_t *bytes = store(&t, linked[l].which, &storage);
                view = storage;
                assert_true(nd_layout_apply_groups(&view, nd_layout_by_name(linked[l].name),
                                                   &t.storage, &t.logical, t.groups, &c0,
                                                   &why));
                nd_view_permute(&view, orders[o]);
                const struct nd_shape permuted = view.shape;
                const struct nd_shape squeezed = nd_shape_squeezed(&permuted);
                nd_view_squeeze_to(&view, &squeezed);
                for (uint64_t i = 0; i < view.count; i++) {
                    uint32_t got;
                    nd_shape_unravel(&permuted, i, index);
                    for (uint32_t k = 0; k < 4; k++)
                        logical[orders[o][k]] = index[k];
                    nd_view_gather(&view, i, 1, &got);
                    assert_int_equal(
                        got, ((logical[0] * t.d[1] + logical[1]) * t.d[2] + logical[2]) *
                                     t.d[3] +
                                 logical[3] + 1);
                }
                free(bytes);
            }
}

static void storage_shapes_are_those_of_the_documentation(void **state)
{
    static const struct {
        const char *name;
        struct nd_shape logical;
        uint32_t c0;
        struct nd_shape storage;
    } rows[] = {
        {"NC1HWC0",       {4, {2, 19, 5, 7}},     16, {5, {2, 2, 5, 7, 16}}    },
        {"NC1HWC0",       {4, {2, 33, 5, 7}},     32, {5, {2, 2, 5, 7, 32}}    },
        {"FRACTAL_NZ",    {3, {6, 20, 40}},       16, {5, {6, 3, 2, 16, 16}}   },
        {"FRACTAL_NZ",    {2, {20, 40}},          32, {4, {2, 2, 16, 32}}      },
        {"FRACTAL_ZZ",    {2, {20, 40}},          16, {4, {2, 3, 16, 16}}      },
        {"FRACTAL_Z",     {4, {40, 19, 3, 5}},    16, {4, {30, 3, 16, 16}}     },
        {"FRACTAL_Z_3D",  {5, {40, 19, 2, 3, 5}}, 16, {4, {60, 3, 16, 16}}     },
        {"NDC1HWC0",      {5, {2, 19, 4, 5, 7}},  16, {6, {2, 4, 2, 5, 7, 16}} },
        {"FRACTAL_Z_C04", {4, {40, 3, 7, 7}},     16, {4, {13, 3, 16, 16}}     },
        {"C1HWNCoC0",     {4, {1, 19, 3, 3}},     16, {6, {2, 3, 3, 1, 16, 16}}},
        {"HWCN",          {4, {40, 19, 3, 5}},    0,  {4, {3, 5, 19, 40}}      },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nd_shape got;
        assert_true(nd_layout_storage(nd_layout_by_name(rows[i].name), &rows[i].logical,
                                      rows[i].c0, &got));
        assert_true(nd_shape_equal(&got, &rows[i].storage));
    }
}

static void shapes_that_overflow_are_a_contradiction(void **state)
{
    static const struct {
        const char *name;
        struct nd_shape storage, logical;
    } rows[] = {
        {"FRACTAL_Z",     {4, {1, 1, 16, 16}},          {4, {1, 1, UINT64_MAX / 3, 12}}          },
        {"FRACTAL_Z",     {4, {1, 0, 16, 16}},          {4, {0, INT64_MAX, INT64_MAX, INT64_MAX}}},
        {"FRACTAL_Z_C04", {4, {1, 1, 16, 16}},          {4, {1, 3, INT64_MAX, INT64_MAX}}        },
        {"NC1HWC0",       {5, {1, 1, 1, 1, 0}},         {4, {1, 1, 1, 1}}                        },
        {"NC1HWC0",       {5, {1, 1, 1, 1, INT64_MAX}}, {4, {1, 1, 1, 1}}                        },
        {"FRACTAL_NZ",    {4, {1, 1, 16, 16}},          {1, {INT64_MAX}}                         },
        {"FRACTAL_NZ",    {4, {1, 1, 16, 16}},          {0, {0}}                                 },
        {"C1HWNCoC0",     {6, {1, 1, 1, 1, 16, 8}},     {4, {1, 3, 1, 1}}                        },
    };
    static const unsigned char bytes[4096];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensor_view view;
        const char *why = NULL;
        for (uint64_t groups = 0; groups < 3; groups++) {
            uint32_t c0 = 0;
            nd_view_contiguous(&view, bytes, sizeof bytes, ND_DTYPE_i8, &rows[i].storage);
            assert_false(nd_layout_apply_groups(&view, nd_layout_by_name(rows[i].name),
                                                &rows[i].storage, &rows[i].logical, groups,
                                                &c0, &why));
            assert_non_null(why);
        }
    }
}

static void an_empty_view_of_huge_dimensions_is_permuted_without_overflow(void **state)
{
    const struct nd_shape shape = {
        .rank = 3, .dim = {0, INT64_MAX, INT64_MAX}
    };
    const uint32_t order[] = {2, 1, 0};
    struct tensor_view view;

    (void)state;
    nd_view_contiguous(&view, "", 0, ND_DTYPE_f32, &(struct nd_shape){.rank = 1});
    view.shape = shape;
    for (int k = 0; k < 3; k++)
        view.axis[k] = (struct axis_map){.block = 1, .outer = 1};
    assert_true(nd_view_check(&view));
    view.axis[1].outer = INT64_MAX;
    nd_view_permute(&view, order);
    assert_true(view.contiguous);
    assert_int_equal(view.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_maps_the_logical_elements_as_its_formula_says),
        cmocka_unit_test(elements_of_every_size_are_gathered_from_long_and_from_short_rows),
        cmocka_unit_test(what_is_not_zero_in_the_padding_is_counted_and_nothing_else),
        cmocka_unit_test(permuted_and_squeezed_views_of_linked_axes_read_the_same),
        cmocka_unit_test(storage_shapes_are_those_of_the_documentation),
        cmocka_unit_test(shapes_that_overflow_are_a_contradiction),
        cmocka_unit_test(an_empty_view_of_huge_dimensions_is_permuted_without_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
