/*
 * Turning a small square of elements in registers.
 *
 * Rows that lie beside each other, element for element, are the columns of a small matrix:
 * 16 bytes of each of its lines are loaded at once and turned in registers.
 */
#ifndef ND_TENSOR_GATHER_TURN_H
#define ND_TENSOR_GATHER_TURN_H

#include <stdint.h>
#include <string.h>

enum { TURN_AHEAD = 64 }; /* lines that are prefetched */

typedef uint16_t gather_half __attribute__((vector_size(16)));
typedef uint32_t gather_word __attribute__((vector_size(16)));
#if defined(__clang__)
#define PAIR_UP(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PAIR_UP(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#endif
#define LOW_HALVES(a, b)  PAIR_UP(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_HALVES(a, b) PAIR_UP(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_WORDS(a, b)   PAIR_UP(a, b, 0, 4, 1, 5)
#define HIGH_WORDS(a, b)  PAIR_UP(a, b, 2, 6, 3, 7)

/* An address of the next piece, or past the end: only looked up, never read. */
static const void *ahead_of(const unsigned char *at, int64_t bytes)
{
    return (const void *)((uintptr_t)at + (uintptr_t)bytes);
}

/* A square of 16-byte lines: rounds of pairing line i with line i + half, as a perfect
 * shuffle does, turn it. */
#define TURN(type, edge, LOW, HIGH)                                                        \
    static void turn_##type(const unsigned char *in, int64_t line, unsigned char *out,     \
                            uint64_t row)                                                  \
    {                                                                                      \
        gather_##type a[edge], b[edge];                                                    \
        for (unsigned i = 0; i < edge; i++) {                                              \
            __builtin_prefetch(ahead_of(in, (int64_t)(i + TURN_AHEAD) * line));            \
            memcpy(&a[i], in + (int64_t)i * line, 16);                                     \
        }                                                                                  \
        for (unsigned round = 1; round < edge; round *= 2) {                               \
            for (unsigned i = 0; i < edge / 2; i++) {                                      \
                b[2 * i] = LOW(a[i], a[i + edge / 2]);                                     \
                b[2 * i + 1] = HIGH(a[i], a[i + edge / 2]);                                \
            }                                                                              \
            memcpy(a, b, sizeof a);                                                        \
        }                                                                                  \
        for (unsigned i = 0; i < edge; i++)                                                \
            memcpy(out + i * row, &a[i], 16);                                              \
    }
TURN(half, 8, LOW_HALVES, HIGH_HALVES)
TURN(word, 4, LOW_WORDS, HIGH_WORDS)

#endif
