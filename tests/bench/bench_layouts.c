/*
 * Comparing through a device layout beside comparing contiguous bytes: one thread, nearly the
 * same values, both in memory.  Prints GB/s of logical bytes of both sides, and the ratio;
 * then GB/s of one side for putting its elements in order alone, and for copying its bytes.
 *
 *   bench_layouts [TEXT]...    only the rows that contain one of these ("NHWC float32 [8,")
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare/slot_pair.h"

static const struct row {
    const char *layout;
    enum nd_dtype dtype;
    struct nd_shape logical;
    uint32_t c0;
} rows[] = {
    {"NC1HWC0",    ND_DTYPE_f32,  {4, {16, 64, 56, 56}},    16},
    {"NC1HWC0",    ND_DTYPE_f32,  {4, {8, 64, 112, 112}},   16},
    {"NC1HWC0",    ND_DTYPE_f32,  {4, {2, 64, 224, 224}},   16},
    {"NC1HWC0",    ND_DTYPE_f32,  {4, {1, 32, 640, 640}},   16},
    {"NC1HWC0",    ND_DTYPE_f32,  {4, {64, 512, 14, 14}},   16},
    {"NC1HWC0",    ND_DTYPE_f32,  {4, {64, 2048, 7, 7}},    16},
    {"NC1HWC0",    ND_DTYPE_f32,  {4, {4096, 2048, 1, 1}},  16},
    {"NC1HWC0",    ND_DTYPE_f16,  {4, {16, 64, 112, 112}},  16},
    {"NC1HWC0",    ND_DTYPE_f16,  {4, {1, 64, 640, 640}},   16},
    {"NC1HWC0",    ND_DTYPE_f32,  {4, {16, 72, 56, 56}},    16},
    {"NDC1HWC0",   ND_DTYPE_f16,  {5, {2, 64, 16, 56, 56}}, 16},
    {"FRACTAL_NZ", ND_DTYPE_f32,  {2, {4096, 4096}},        16},
    {"FRACTAL_NZ", ND_DTYPE_f16,  {2, {4096, 4096}},        16},
    {"FRACTAL_NZ", ND_DTYPE_f16,  {4, {4, 16, 512, 512}},   16},
    {"FRACTAL_NZ", ND_DTYPE_bf16, {2, {11008, 4096}},       16},
    {"FRACTAL_Z",  ND_DTYPE_f16,  {4, {2048, 512, 3, 3}},   16},
    {"NHWC",       ND_DTYPE_f32,  {4, {8, 64, 112, 112}},   0 },
    {"NHWC",       ND_DTYPE_f32,  {4, {8, 3, 512, 512}},    0 },
};

enum { ROUNDS = 7, ROOM = 65536 };

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at); /* other programs do not count */
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* One round, in seconds of this thread; keeps the best. */
static void timed(const struct tensor_view *view, struct nd_moments *ret,
                  double *inout_best)
{
    const struct kernel_set *set = nd_kernel_set_for(nd_isa_best());
    const enum nd_dtype real[2] = {view[0].dtype, view[1].dtype};
    const struct moments_policy policy = {.scale = 1};
    const double start = now();

    nd_measure_serially(set, view, real, &policy, ret);
    const double took = now() - start;
    *inout_best = took < *inout_best ? took : *inout_best;
}

/* Putting all of a view in order and nothing else, piece by piece; or, `plainly`, copying as
 * many bytes as they lie: what no way of measuring can go below. */
static double moved(const struct tensor_view *view, bool plainly)
{
    const unsigned size = nd_dtype_info(view->dtype)->size;
    const uint64_t reach = nd_view_reach(view), room = reach > ROOM ? reach : ROOM;
    unsigned char *const bytes = malloc(room * size);
    double best = 1e9;

    for (int round = 0; bytes != NULL && round < ROUNDS; round++) {
        const double start = now();
        for (uint64_t at = 0, n; at < view->count; at += n) {
            const uint64_t left = view->count - at;
            n = left <= room ? left : nd_view_cut(view, at, room);
            if (plainly)
                memcpy(bytes, view->data + at * size, n * size);
            else
                nd_view_gather(view, at, n, bytes);
        }
        const double took = now() - start;
        best = took < best ? took : best;
    }
    free(bytes);
    return best;
}

static int measure_row(const struct row *row)
{
    const struct layout *layout = nd_layout_by_name(row->layout);
    const unsigned size = nd_dtype_info(row->dtype)->size;
    struct tensor_view view[2];
    struct nd_shape storage;
    struct nd_moments plain, through;
    uint64_t stored, count;
    uint32_t c0 = 0;
    const char *why;
    char text[400];

    if (!nd_layout_storage(layout, &row->logical, row->c0, &storage) ||
        !nd_shape_count(&storage, &stored) || !nd_shape_count(&row->logical, &count))
        return 1;
    unsigned char *device = malloc(stored * size),
                  *host[2] = {malloc(count * size), malloc(count * size)};
    if (device == NULL || host[0] == NULL || host[1] == NULL)
        return 1;
    for (uint64_t i = 0; i < stored * size; i++) /* finite in every type: small exponents */
        device[i] =
            (unsigned char)((i * 2654435761u >> 13) & (i % size == size - 1 ? 0xbb : 0xff));
    nd_view_contiguous(&view[1], device, stored * size, row->dtype, &storage);
    if (!nd_layout_apply(&view[1], layout, &storage, &row->logical, &c0, &why))
        return 1;
    nd_view_gather(&view[1], 0, count, host[0]);
    memcpy(host[1], host[0], count * size);
    for (uint64_t i = 0; i < count * size; i += size)
        host[0][i] ^= 1; /* as two runs differ: equal blocks would be passed over */
    nd_view_contiguous(&view[0], host[0], count * size, row->dtype, &row->logical);
    struct tensor_view both[2] = {view[0], view[0]};
    both[1].data = host[1];
    double flat = 1e9, mapped = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        timed(both, &plain, &flat);
        timed(view, &through, &mapped);
    }
    const double bytes = 2.0 * (double)count * size * 1e-9;
    printf("%-11s %-9s %-24s %7.2f GB/s  of %6.2f  ratio %.2f  order %6.2f  copy %6.2f%s\n",
           row->layout, nd_dtype_info(row->dtype)->name,
           nd_shape_text(&row->logical, text, sizeof text), bytes / mapped, bytes / flat,
           flat / mapped, bytes / 2 / moved(&view[1], false),
           bytes / 2 / moved(&view[1], true),
           memcmp(&plain, &through, sizeof plain) == 0 ? "" : "  RESULTS DIFFER");
    free(device);
    free(host[0]);
    free(host[1]);
    return 0;
}

/* Does the row, "NHWC float32 [8, 3, 512, 512]", contain the words? */
static int row_matches(const struct row *row, const char *words)
{
    char shape[400], text[480];

    snprintf(text, sizeof text, "%s %s %s", row->layout, nd_dtype_info(row->dtype)->name,
             nd_shape_text(&row->logical, shape, sizeof shape));
    return strstr(text, words) != NULL;
}

int main(int argc, char **argv)
{
    int status = 0;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int chosen = argc == 1;
        for (int k = 1; k < argc; k++)
            chosen |= row_matches(&rows[i], argv[k]);
        if (chosen)
            status |= measure_row(&rows[i]);
    }
    return status;
}
