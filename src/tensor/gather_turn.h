/*
 * Turning a strip of elements: positions of a few lanes that lie side by side become rows.
 *
 * The strip is turned in squares of 16-byte lines.  Rounds of pairing line i with line
 * i + half, as a perfect shuffle does, turn a square in registers.
 */
#ifndef ND_TENSOR_GATHER_TURN_H
#define ND_TENSOR_GATHER_TURN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    TURN_LINE = 64,   /* of a cache: what is written of a row before the next one's turn */
    TURN_WIDE = 256,  /* the same where so many rows take turns that lines would not last */
    TURN_SQUARE = 16, /* bytes of a square's line */
    TURN_FEW = 8,     /* positions that are left over */
    TURN_SLOW = 256,  /* positions, one element at a time, whose lines stay in the cache */
};

/* `count` positions, `step` bytes apart, of `lanes` elements each; lane i's go to
 * out + i * pitch. */
struct strip {
    const unsigned char *in;
    int64_t step;
    uint64_t count, lanes;
    int64_t ahead; /* bytes from a position to what is prefetched meanwhile; 0: nothing */
    unsigned char *out;
    uint64_t pitch;
};

typedef uint8_t turn_byte __attribute__((vector_size(16)));
typedef uint16_t turn_half __attribute__((vector_size(16)));
typedef uint32_t turn_word __attribute__((vector_size(16)));
typedef uint64_t turn_long __attribute__((vector_size(16)));
#if defined(__clang__)
#define PAIR_UP(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PAIR_UP(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#endif
#define LOW_BYTES(a, b)                                                                    \
    PAIR_UP(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_BYTES(a, b)                                                                   \
    PAIR_UP(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOW_HALVES(a, b)  PAIR_UP(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_HALVES(a, b) PAIR_UP(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_WORDS(a, b)   PAIR_UP(a, b, 0, 4, 1, 5)
#define HIGH_WORDS(a, b)  PAIR_UP(a, b, 2, 6, 3, 7)
#define LOW_LONGS(a, b)   PAIR_UP(a, b, 0, 2)
#define HIGH_LONGS(a, b)  PAIR_UP(a, b, 1, 3)

/* An address of what comes later, or past the end: only looked up, never read. */
static inline void turn_prefetch(const unsigned char *at, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)at + (uintptr_t)bytes));
}

/* The lines of n positions from `at` on, `ahead` of them. */
static inline void strip_prefetch(const struct strip *strip, const unsigned char *at,
                                  uint64_t n, unsigned size)
{
    const int64_t wide = (int64_t)(strip->lanes * size);

    if (strip->ahead == 0)
        return;
    if (strip->step > 0 && strip->step <= TURN_LINE) {
        for (int64_t b = 0; b < (int64_t)n * strip->step; b += TURN_LINE)
            turn_prefetch(at, strip->ahead + b);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        for (int64_t b = 0; b < wide; b += TURN_LINE)
            turn_prefetch(at, strip->ahead + (int64_t)i * strip->step + b);
}

/* A square: its first `rows` rows are wanted. */
#define SQUARE(type, edge, LOW, HIGH)                                                      \
    static inline __attribute__((always_inline)) void square_##type(                       \
        const unsigned char *in, int64_t step, unsigned char *out, uint64_t pitch,         \
        unsigned rows)                                                                     \
    {                                                                                      \
        turn_##type a[edge], b[edge];                                                      \
        for (unsigned i = 0; i < edge; i++)                                                \
            memcpy(&a[i], in + (int64_t)i * step, TURN_SQUARE);                            \
        for (unsigned round = 1; round < edge; round *= 2) {                               \
            for (unsigned i = 0; i < edge / 2; i++) {                                      \
                b[2 * i] = LOW(a[i], a[i + edge / 2]);                                     \
                b[2 * i + 1] = HIGH(a[i], a[i + edge / 2]);                                \
            }                                                                              \
            memcpy(a, b, sizeof a);                                                        \
        }                                                                                  \
        for (unsigned i = 0; i < edge; i++)                                                \
            if (i < rows)                                                                  \
                memcpy(out + i * pitch, &a[i], TURN_SQUARE);                               \
    }
SQUARE(byte, 16, LOW_BYTES, HIGH_BYTES)
SQUARE(half, 8, LOW_HALVES, HIGH_HALVES)
SQUARE(word, 4, LOW_WORDS, HIGH_WORDS)
SQUARE(long, 2, LOW_LONGS, HIGH_LONGS)
#undef SQUARE

/* Positions from `from` on, one element at a time. */
static inline __attribute__((always_inline)) void strip_slowly(const struct strip *strip,
                                                               unsigned size, uint64_t from)
{
    if (strip->count - from < TURN_FEW) { /* as many lanes as there are, at once */
        for (uint64_t i = from; i < strip->count; i++)
            for (uint64_t lane = 0; lane < strip->lanes; lane++)
                memcpy(strip->out + lane * strip->pitch + i * size,
                       strip->in + (int64_t)i * strip->step + lane * size, size);
        return;
    }
    for (uint64_t to; from < strip->count; from = to) {
        to = strip->count - from < TURN_SLOW ? strip->count : from + TURN_SLOW;
        for (uint64_t lane = 0; lane < strip->lanes; lane++)
            for (uint64_t i = from; i < to; i++)
                memcpy(strip->out + lane * strip->pitch + i * size,
                       strip->in + (int64_t)i * strip->step + lane * size, size);
    }
}

/* `size` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void strip_square(const struct strip *strip,
                                                               unsigned size, uint64_t at,
                                                               uint64_t lane, unsigned rows)
{
    const unsigned char *const in = strip->in + (int64_t)at * strip->step + lane * size;
    unsigned char *const out = strip->out + lane * strip->pitch + at * size;

    if (size == 1)
        square_byte(in, strip->step, out, strip->pitch, rows);
    else if (size == 2)
        square_half(in, strip->step, out, strip->pitch, rows);
    else if (size == 4)
        square_word(in, strip->step, out, strip->pitch, rows);
    else
        square_long(in, strip->step, out, strip->pitch, rows);
}

/*
 * What squares leave over at an edge is turned by one that lies over others: it writes the
 * same again.  Of fewer lanes than a square has, its lines reach into the position behind:
 * so the last position is not among them.
 */
static inline __attribute__((always_inline)) void strip_turn(const struct strip *given,
                                                             unsigned size)
{
    const struct strip own = *given, *const strip = &own; /* which no store can change */
    const unsigned edge = TURN_SQUARE / size;
    const unsigned piece = (strip->lanes * size > TURN_LINE ? TURN_WIDE : TURN_LINE) / size;
    const uint64_t lanes = strip->lanes, count = strip->count;
    const bool narrow = lanes < edge;
    /* Few positions that are over are copied sooner than turned. */
    const uint64_t last = narrow                     ? count - 1
                          : count % edge <= edge / 4 ? count - count % edge
                                                     : count;

    if (last < edge || lanes == 1 || lanes * 4 < edge ||
        (narrow && strip->step + (int64_t)(lanes * size) < TURN_SQUARE)) {
        strip_slowly(strip, size, 0);
        return;
    }
    for (uint64_t from = 0, to; from < last; from = to) {
        to = from + piece < last ? from + piece : last;
        strip_prefetch(strip, strip->in + (int64_t)from * strip->step, to - from, size);
        if (narrow) {
            for (uint64_t i = from; i < to; i += edge)
                strip_square(strip, size, i + edge <= to ? i : to - edge, 0,
                             (unsigned)lanes);
            continue;
        }
        for (uint64_t lane = 0; lane < lanes; lane += edge) {
            const uint64_t here = lane + edge <= lanes ? lane : lanes - edge;
            for (uint64_t i = from; i < to; i += edge)
                strip_square(strip, size, i + edge <= to ? i : to - edge, here, edge);
        }
    }
    strip_slowly(strip, size, last);
}

#endif
