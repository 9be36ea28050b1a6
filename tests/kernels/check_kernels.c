/*
 * Every pair of dtypes on the instruction set under test (NORMDIFF_ISA, else the best one)
 * against two others: the kernels of "base", and the element-by-element form of the rules.
 * All must give the same bits: at every length, at block and chunk edges, for any cut into
 * chunks, unaligned, and without reading a byte before or behind the data (the pages there
 * are closed).  Exit 77: this machine lacks the instruction set.
 *
 * A dtype's word as argument checks the pairs with it as reference alone.  NORMDIFF_SHORT in
 * the environment: fewer lengths, and pairs of one dtype or with float32 (for emulators).
 * --bench instead prints GB/s for each pair and instruction set, beside a plain read of the
 * same bytes.
 */
#if !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kernels/kernel_set.h"
#include "kernels/slices.h"

enum { SKIPPED = 77, RANDOM_ROUNDS = 2 };

/* --- data --------------------------------------------------------------------------- */

struct guarded {
    unsigned char *bytes; /* `size` bytes between two closed pages */
    size_t size;
};

static struct guarded guarded_new(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (size + page - 1) / page * page;
    unsigned char *map = mmap(NULL, whole + 2 * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED || mprotect(map, page, PROT_NONE) != 0 ||
        mprotect(map + page + whole, page, PROT_NONE) != 0) {
        perror("mmap");
        exit(2);
    }
    return (struct guarded){map + page, whole};
}

static uint64_t random_state = 1;

/* Knuth's MMIX generator; its high half is good enough here. */
static uint32_t random_next(void)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(random_state >> 32);
}

/* CAUSAL: rows masked by -infinity behind a diagonal, as attention scores are; LOWEST: so, by
 * the type's lowest value; FAR: a mean far larger than the spread; SAME: most blocks equal on
 * both sides; BROAD: magnitudes far apart, and zeros of both signs; BELOW: negative alone. */
enum flavour { TAME, ODD, WILD, CAUSAL, LOWEST, FAR, SAME, BROAD, BELOW, FLAVOURS };
static const char *const flavour_names[] = {"tame",   "odd", "wild", "causal",
                                            "lowest", "far", "same", "broad", "below"};

static const double odd_values[] = {
    0.0,
    -0.0,
    1e4,
    -1e4,
    -65504.0,
    -1e9,
    -9984.0,
    -65536.0,
    -0x1.fep127,
    -0x1.fffffep127,
    0x1.fffffep127,
    0x1p-149,
    -0x1p-140,
    0x1p-24,
    448.0,
    57344.0,
    -0x1.fffffffffffffp1023,
    0x1.8p1023,
    -0x1.8p1023,
    0x1p-1074,
    0x1p-600,
    0x1p53,
    0x1.0000000000001p53,
    -0x1p63,
};

static double random_value(enum flavour flavour)
{
    const double unit = (double)random_next() * 0x1p-32 - 0.5;

    if (flavour == FAR)
        return 100.0 + unit;
    if (flavour == BELOW)
        return unit - 1.0;
    if (flavour == BROAD)
        return random_next() % 16 == 0 ? copysign(0.0, unit)
                                       : ldexp(unit, (int)(random_next() % 36) - 22);
    if (flavour == TAME || flavour == CAUSAL || flavour == LOWEST ||
        random_next() % (flavour == SAME ? 16384 : 8) != 0)
        return unit;
    const unsigned kinds = (unsigned)(sizeof odd_values / sizeof *odd_values) + 3;
    const unsigned kind = random_next() % kinds;
    return kind == 0   ? (double)NAN
           : kind == 1 ? HUGE_VAL
           : kind == 2 ? -HUGE_VAL
                       : odd_values[kind - 3];
}

/* The bits of a value that its dtype holds exactly: exponent field over `mantissa` bits. */
static uint32_t small_bits(double value, int bits, int mantissa, int bias)
{
    const uint32_t sign = signbit(value) ? 1U << (bits - 1) : 0;
    const uint32_t top = (1U << (bits - 1 - mantissa)) - 1;
    int exponent;

    if (isnan(value))
        return sign | ((1U << (bits - 1)) - 1);
    if (isinf(value))
        return sign | top << mantissa;
    if (value == 0.0)
        return sign;
    frexp(value, &exponent);
    exponent = exponent - 1 + bias < 1 ? 1 : exponent - 1 + bias;
    /* The hidden bit of the digits raises the field by one, where there is a hidden bit. */
    const uint32_t digits = (uint32_t)ldexp(fabs(value), mantissa - exponent + bias);
    return sign | (((uint32_t)(exponent - 1) << mantissa) + digits);
}

static void put(enum nd_dtype dtype, double value, uint32_t noise, unsigned char *at)
{
    const struct dtype_info *info = nd_dtype_info(dtype);
    const enum nd_dtype part = dtype == ND_DTYPE_c64    ? ND_DTYPE_f32
                               : dtype == ND_DTYPE_c128 ? ND_DTYPE_f64
                                                        : dtype;
    const double held = nd_dtype_round(part, value);
    const float single = part == ND_DTYPE_f32 ? (float)held : 0.0F;
    uint64_t bits = (uint64_t)noise << 32 | (uint64_t)noise * 2654435761U;

    switch (part) {
    case ND_DTYPE_f64:
        memcpy(at, &held, sizeof held);
        return;
    case ND_DTYPE_f32:
        memcpy(at, &single, sizeof single);
        return;
    case ND_DTYPE_f16:
        bits = small_bits(held, 16, 10, 15);
        break;
    case ND_DTYPE_bf16:
        bits = small_bits(held, 16, 7, 127);
        break;
    case ND_DTYPE_f8e4m3fn:
        bits = small_bits(isinf(held) ? -448.0 : held, 8, 3, 7);
        break;
    case ND_DTYPE_f8e5m2:
        bits = small_bits(held, 8, 2, 15);
        break;
    default: /* of 64 bits only FAR and BELOW are all exact as doubles */
        if (info->size == 8 && fabs(value) > 0.5 && fabs(value) < 0x1p20)
            bits = (uint64_t)(int64_t)(value * 0x1p20);
        break;
    }
    memcpy(at, &bits, info->size);
}

/* Half of 256 rows, and most of fewer. */
static void mask_rows(enum nd_dtype dtype, double mask, size_t n, unsigned char *bytes)
{
    enum { COLUMNS = 512 };

    for (size_t i = 0; i < n; i++)
        if (i % COLUMNS > 2 * (i / COLUMNS) % COLUMNS)
            put(dtype, mask, 0, bytes + i * nd_dtype_info(dtype)->size);
}

/* Fills n elements; a third of the candidate's elements repeat the reference's. */
static void fill(enum nd_dtype dtype, enum flavour flavour, size_t n, unsigned char *bytes,
                 const unsigned char *same_as)
{
    const unsigned size = nd_dtype_info(dtype)->size;
    const size_t part = nd_dtype_info(dtype)->kind == ND_KIND_COMPLEX ? size / 2 : size;

    for (size_t at = 0; at < n * size; at += part)
        put(dtype, random_value(flavour), random_next(), bytes + at);
    if (flavour == WILD) /* long stretches of one odd value, as real masks are */
        for (size_t i = n / 3; i < n / 2; i++)
            put(dtype, i % 7 == 0 ? -1e4 : -HUGE_VAL, 0, bytes + i * size);
    if (nd_dtype_info(dtype)->kind == ND_KIND_FLOAT &&
        (flavour == CAUSAL || flavour == LOWEST))
        mask_rows(dtype, flavour == CAUSAL ? -HUGE_VAL : -nd_dtype_max(dtype), n, bytes);
    for (size_t i = 0; same_as != NULL && i < n; i++)
        if (random_next() % (flavour == SAME ? 4096 : 3) != 0 ? flavour == SAME
                                                               : flavour != SAME)
            memcpy(bytes + i * size, same_as + i * size, size);
}

/* --- checks -------------------------------------------------------------------------- */

static const struct kernel_set exact_set = {
    .isa = ISA_COUNT, .add = nd_lanes_add_exact, .pivot = nd_lanes_pivot_exact};

/* Dumps of bfloat16 runs are often float32: mask constants are those of both then. */
static enum nd_dtype computed_in(const struct tensor_view *view)
{
    return view->dtype == ND_DTYPE_f32 && view->count % 4 == 3 ? ND_DTYPE_bf16 : view->dtype;
}

static struct nd_moments measure(const struct kernel_set *set,
                                 const struct tensor_view *view,
                                 const struct moments_policy *policy)
{
    const enum nd_dtype real[2] = {computed_in(&view[0]), computed_in(&view[1])};
    const struct moments_pivot pivot =
        nd_moments_pivot(set == &exact_set ? nd_kernel_set_for(ISA_BASE) : set, &view[0],
                         &view[1], real[0], real[1]);
    struct nd_moments whole, chunk;

    nd_moments_measure(set, &view[0], &view[1], real[0], real[1], 0, 0, &pivot, policy,
                       &whole);
    for (uint64_t at = 0; at < view[0].count; at += MOMENTS_CHUNK) {
        const uint64_t left = view[0].count - at;
        nd_moments_measure(set, &view[0], &view[1], real[0], real[1], at,
                           left < MOMENTS_CHUNK ? left : MOMENTS_CHUNK, &pivot, policy,
                           &chunk);
        nd_moments_fold(&whole, &chunk);
    }
    return whole;
}

static unsigned long checked, failed;

/* The detail pass and the slices of one set. */
struct details {
    struct nd_detail_sums sums;
    struct worst_slice channel, row;
};

static void measure_details(const struct kernel_set *set, const struct tensor_view *view,
                            struct details *ret)
{
    const enum nd_dtype real[2] = {computed_in(&view[0]), computed_in(&view[1])};
    const enum nd_dtype coarser = nd_dtype_coarser(real[0], real[1]);
    const bool has_ulp = nd_dtype_roundoff(coarser) != 0.0;
    const struct detail_params params = {.rms_r = 0.3,
                                         .rel_floor = 0.3 * 0x1p-20,
                                         .ulp_dtype = has_ulp ? coarser : ND_DTYPE_NONE,
                                         .worst = 5,
                                         .real = {real[0], real[1]}};
    struct slices slices;

    nd_detail_init(&ret->sums);
    for (uint64_t at = 0; at < view[0].count; at += MOMENTS_CHUNK) {
        const uint64_t left = view[0].count - at;
        nd_detail_measure(set, &view[0], &view[1], &params, at,
                          left < MOMENTS_CHUNK ? left : MOMENTS_CHUNK, &ret->sums);
    }
    if (!nd_slices_init(&slices, set, view, real, params.rms_r))
        exit(2);
    for (size_t part = 0; part < slices.part_count; part++)
        nd_slices_part(&slices, part);
    nd_slices_end(&slices, &ret->channel, &ret->row);
    nd_slices_done(&slices);
}

static bool same_slice(const struct worst_slice *a, const struct worst_slice *b)
{
    return a->known == b->known && a->axis == b->axis && a->at == b->at &&
           memcmp(&a->drift, &b->drift, sizeof a->drift) == 0;
}

/* Steps as the detail pass takes them, against the rules for one element. */
static bool sifts_by_the_rules(const struct kernel_set *set, const struct tensor_view *view)
{
    const struct moments_policy policy = {.nan_strict = false, .scale = 1.0};
    const struct moments_pivot instead = {-3.0, 7.0};
    unsigned char buffer[2][PAIR_STEP * PAIR_ELEMENT_MAX];
    double r[PAIR_STEP], c[PAIR_STEP];
    struct pair_values plain;
    struct pair pair;
    bool same = true;

    nd_pair_init(&pair, &view[0], &view[1], computed_in(&view[0]), computed_in(&view[1]),
                 &policy);
    for (uint64_t at = 0; !pair.is_complex && !pair.is_wide && at < view[0].count;
         at += PAIR_STEP) {
        const uint64_t left = view[0].count - at;
        const unsigned n = left < PAIR_STEP ? (unsigned)left : PAIR_STEP;
        const unsigned char *const from_r = nd_pair_bytes(&view[0], at, n, buffer[0]);
        const unsigned char *const from_c = nd_pair_bytes(&view[1], at, n, buffer[1]);
        unsigned kept = 0;
        nd_pair_read(&pair, from_r, from_c, n, &plain);
        const unsigned found = set->detail.sifted(&pair, from_r, from_c, n, &instead, r, c);
        for (unsigned i = 0; i < PAIR_STEP; i++) {
            const bool counts = i < n && plain.state[i] == PAIR_KEPT;
            const double of_r = counts ? plain.r[i] : instead.r;
            const double of_c = counts ? plain.c[i] : instead.c;
            kept += counts ? 1 : 0;
            same = same && memcmp(&r[i], &of_r, sizeof of_r) == 0 &&
                   memcmp(&c[i], &of_c, sizeof of_c) == 0;
        }
        same = same && found == kept;
    }
    return same;
}

static void compare_details(const struct kernel_set *set, const struct tensor_view *view,
                            const char *what)
{
    static struct details ours, plain;

    measure_details(set, view, &ours);
    measure_details(nd_kernel_set_for(ISA_BASE), view, &plain);
    checked++;
    if (sifts_by_the_rules(set, view) &&
        memcmp(&ours.sums, &plain.sums, sizeof ours.sums) == 0 &&
        same_slice(&ours.channel, &plain.channel) && same_slice(&ours.row, &plain.row))
        return;
    if (failed++ < 20)
        printf("FAIL %s/%s n %llu %s: detail: sum_rel %a, base %a\n",
               nd_dtype_info(view[0].dtype)->word, nd_dtype_info(view[1].dtype)->word,
               (unsigned long long)view[0].count, what, ours.sums.detail.sum_rel,
               plain.sums.detail.sum_rel);
}

static void compare(const struct kernel_set *set, const struct tensor_view *view,
                    const char *what, const struct moments_policy *policy)
{
    const struct kernel_set *const base = nd_kernel_set_for(ISA_BASE);
    const struct nd_moments ours = measure(set, view, policy);
    const struct nd_moments plain = measure(base, view, policy);
    const struct nd_moments exact = measure(&exact_set, view, policy);

    checked++;
    if (memcmp(&ours, &plain, sizeof ours) == 0 && memcmp(&ours, &exact, sizeof ours) == 0)
        return;
    if (failed++ < 20)
        printf("FAIL %s/%s n %llu %s scale %g: sum_ee %a, base %a, exact %a\n",
               nd_dtype_info(view[0].dtype)->word, nd_dtype_info(view[1].dtype)->word,
               (unsigned long long)view[0].count, what, policy->scale, ours.sum_ee,
               plain.sum_ee, exact.sum_ee);
}

/* Bytes that end, or that start, where the closed page does. */
static struct tensor_view view_of(const struct guarded *memory, enum nd_dtype dtype,
                                  size_t n, bool at_end, size_t shift)
{
    const struct nd_shape shape = {.rank = 1, .dim = {n}};
    const size_t size = n * nd_dtype_info(dtype)->size;
    struct tensor_view view;

    nd_view_contiguous(
        &view, at_end ? memory->bytes + memory->size - size - shift : memory->bytes + shift,
        size, dtype, &shape);
    return view;
}

static void check_length(const struct kernel_set *set, const struct guarded *memory,
                         enum nd_dtype r, enum nd_dtype c, size_t n, enum flavour flavour)
{
    const struct moments_policy plain = {.nan_strict = n % 2 == 1, .scale = 1.0};
    const struct moments_policy scaled = {.nan_strict = false, .scale = 0x1p-583};

    /* At the end of the memory, at its start, a few bytes off; mixed pairs take turns. */
    const unsigned from = r == c ? 0 : (unsigned)(n / FLAVOURS % 3);
    const unsigned to = r == c ? 3 : from + 1;

    for (unsigned place = from; place < to; place++) {
        const struct tensor_view view[2] = {
            view_of(&memory[0], r, n, place == 0, place == 2 ? 1 : 0),
            view_of(&memory[1], c, n, place == 0, place == 2 ? 3 : 0)};
        unsigned char *bytes[2] = {memory[0].bytes + (view[0].data - memory[0].bytes),
                                   memory[1].bytes + (view[1].data - memory[1].bytes)};
        fill(r, flavour, n, bytes[0], NULL);
        fill(c, flavour, n, bytes[1], r == c ? bytes[0] : NULL);
        compare(set, view, flavour_names[flavour], &plain);
        if (place == from && r == c && (n % 31 == 7 || n > 200))
            compare_details(set, view, flavour_names[flavour]);
        if (r == ND_DTYPE_f64 || c == ND_DTYPE_f64 || r == ND_DTYPE_c128)
            compare(set, view, flavour_names[flavour], &scaled);
    }
}

static const size_t edges[] = {255,  256,  257,  511,  512,  513,  4095,
                               4096, 4097, 4352, 8191, 8192, 8193, 12289};

/* Lengths one by one up to this; of the edges every so many. */
enum { LENGTHS = 200, SHORT_LENGTHS = 40, SHORT_EDGES = 3 };
static bool is_short;

static void check_pair(const struct kernel_set *set, const struct guarded *memory,
                       enum nd_dtype r, enum nd_dtype c, bool is_long)
{
    for (size_t n = 0; n <= (is_short ? SHORT_LENGTHS : LENGTHS); n++)
        check_length(set, memory, r, c, n, (enum flavour)(n % FLAVOURS));
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i += is_short ? SHORT_EDGES : 1)
        for (int flavour = 0; flavour < FLAVOURS; flavour++)
            check_length(set, memory, r, c, edges[i], (enum flavour)flavour);
    for (size_t n = 2 * MOMENTS_CHUNK - 1; is_long && n <= 2 * MOMENTS_CHUNK + 1; n++)
        check_length(set, memory, r, c, n, ODD);
}

/* The views that need gathering: transposed, stepped, byte-swapped. */
static void check_gathered(const struct kernel_set *set, const struct guarded *memory,
                           enum nd_dtype dtype)
{
    const struct moments_policy policy = {.nan_strict = false, .scale = 1.0};
    const struct nd_shape shape = {
        .rank = 2, .dim = {97, 131}
    };
    const int64_t transposed[2] = {1, 97}, stepped[2] = {300, 2};
    const size_t size = nd_dtype_info(dtype)->size;
    struct tensor_view view[2];

    for (int side = 0; side < 2; side++) {
        fill(dtype, ODD, 97 * 300, memory[side].bytes, NULL);
        nd_view_contiguous(&view[side], memory[side].bytes, 97 * 300 * size, dtype, &shape);
    }
    if (!nd_view_set_strides(&view[0], 0, transposed) ||
        !nd_view_set_strides(&view[1], 5, stepped))
        failed++;
    compare(set, view, "strided", &policy);
    compare_details(set, view, "strided");
    view[0].swapped = true;
    compare(set, view, "swapped", &policy);
}

/* only NULL, or the one dtype of references. */
static int check_all(const struct kernel_set *set, const char *only)
{
    const size_t size = (2 * MOMENTS_CHUNK + 16) * (size_t)PAIR_ELEMENT_MAX;
    const struct guarded memory[2] = {guarded_new(size), guarded_new(size)};

    for (int r = 0; r < ND_DTYPE_COUNT; r++) {
        if (only != NULL && strcmp(only, nd_dtype_info((enum nd_dtype)r)->word) != 0)
            continue;
        for (int c = 0; c < ND_DTYPE_COUNT; c++) {
            const bool is_plain = r == c || r == ND_DTYPE_f32 || c == ND_DTYPE_f32;
            if (!is_short || is_plain)
                check_pair(set, memory, (enum nd_dtype)r, (enum nd_dtype)c,
                           is_short ? r == c && r == ND_DTYPE_f32
                                    : r == c || (r == ND_DTYPE_f32 && c == ND_DTYPE_bf16));
        }
        check_gathered(set, memory, (enum nd_dtype)r);
    }
    printf("%s: %lu comparisons of bits, %lu failed\n", nd_isa_name(set->isa), checked,
           failed);
    return failed != 0;
}

/* --- bench --------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static volatile uint64_t bench_sink;

static void bench_read(const struct tensor_view *view)
{
    uint64_t sum = 0;

    for (int side = 0; side < 2; side++)
        for (uint64_t at = 0; at + 64 <= view[side].data_size; at += 64) {
            uint64_t word[8];
            memcpy(word, view[side].data + at, sizeof word);
            for (int i = 0; i < 8; i++)
                sum ^= word[i];
        }
    bench_sink = sum;
}

static double bench_rate(const struct kernel_set *set, const struct tensor_view *view)
{
    const struct moments_policy policy = {.nan_strict = false, .scale = 1.0};
    const double bytes = (double)view[0].data_size + (double)view[1].data_size;
    double best = HUGE_VAL;

    for (int round = 0; round < 40; round++) {
        const double start = seconds();
        const double once = 2e7 / bytes;
        const int repeats = once < 1.0 ? 1 : (int)once;
        for (int i = 0; i < repeats; i++) {
            if (set != NULL)
                bench_sink = measure(set, view, &policy).n;
            else
                bench_read(view);
        }
        const double took = (seconds() - start) / repeats;
        best = took < best ? took : best;
    }
    return bytes / best * 1e-9;
}

/* Integers are never masked. */
static bool bench_has(const enum nd_dtype *pair, enum flavour flavour)
{
    return (flavour != CAUSAL && flavour != LOWEST) ||
           (nd_dtype_info(pair[0])->kind == ND_KIND_FLOAT &&
            nd_dtype_info(pair[1])->kind == ND_KIND_FLOAT);
}

static void bench_pair(const enum nd_dtype *pair, enum flavour flavour, size_t n,
                       const struct guarded *memory)
{
    struct tensor_view view[2];
    char name[40];

    for (int side = 0; side < 2; side++) {
        view[side] = view_of(&memory[side], pair[side], n, false, 0);
        fill(pair[side], flavour, n, memory[side].bytes, NULL);
    }
    snprintf(name, sizeof name, "%s/%s %s", nd_dtype_info(pair[0])->word,
             nd_dtype_info(pair[1])->word, flavour_names[flavour]);
    printf("%-25s %8.1f", name, bench_rate(NULL, view));
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const struct kernel_set *set = nd_kernel_set_for((enum isa)isa);
        printf(" %8.2f", set == NULL ? 0.0 : bench_rate(set, view));
        fflush(stdout);
    }
    printf("\n");
}

static int bench(size_t n)
{
    static const enum nd_dtype pairs[][2] = {
        {ND_DTYPE_f32,      ND_DTYPE_f32     },
        {ND_DTYPE_f16,      ND_DTYPE_f16     },
        {ND_DTYPE_bf16,     ND_DTYPE_bf16    },
        {ND_DTYPE_f32,      ND_DTYPE_f16     },
        {ND_DTYPE_f32,      ND_DTYPE_bf16    },
        {ND_DTYPE_f64,      ND_DTYPE_f64     },
        {ND_DTYPE_i8,       ND_DTYPE_i8      },
        {ND_DTYPE_i32,      ND_DTYPE_i32     },
        {ND_DTYPE_f8e4m3fn, ND_DTYPE_f8e4m3fn},
        {ND_DTYPE_i64,      ND_DTYPE_i64     },
        {ND_DTYPE_c64,      ND_DTYPE_c64     },
    };
    const size_t size = n * PAIR_ELEMENT_MAX;
    const struct guarded memory[2] = {guarded_new(size), guarded_new(size)};

    printf("%-25s %8s", "GB/s", "read");
    for (int isa = 0; isa < ISA_COUNT; isa++)
        printf(" %8s", nd_isa_name((enum isa)isa));
    printf("\n");
    for (int flavour = 0; flavour <= LOWEST; flavour++)
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            if (bench_has(pairs[i], (enum flavour)flavour))
                bench_pair(pairs[i], (enum flavour)flavour, n, memory);
    return 0;
}

int main(int argc, char **argv)
{
    const char *const word = getenv("NORMDIFF_ISA");
    const enum isa isa =
        word != NULL && *word != '\0' ? nd_isa_by_name(word) : nd_isa_best();

    if (argc > 1 && strcmp(argv[1], "--bench") == 0)
        return bench(argc > 2 ? (size_t)atol(argv[2]) : MOMENTS_CHUNK / 2);
    if (isa == ISA_COUNT || !nd_isa_available(isa)) {
        printf("%s: not on this machine\n", word);
        return SKIPPED;
    }
    is_short = getenv("NORMDIFF_SHORT") != NULL;
    return check_all(nd_kernel_set_for(isa), argc > 1 ? argv[1] : NULL);
}
