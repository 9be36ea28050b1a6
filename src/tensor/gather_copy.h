/*
 * Copying runs of elements, in loops that the compiler knows the size of.
 */
#ifndef ND_TENSOR_GATHER_COPY_H
#define ND_TENSOR_GATHER_COPY_H

#include <stdint.h>
#include <string.h>

#define COPY_STRIDED(type)                                                                 \
    for (uint64_t i = 0; i < n; i++)                                                       \
        memcpy(out + i * sizeof(type), in + (int64_t)i * step * (int64_t)sizeof(type),     \
               sizeof(type));

/* n elements of `size` bytes, `step` elements apart. */
static inline void copy_strided(const unsigned char *in, int64_t step, uint64_t n, unsigned size,
                         unsigned char *out)
{
    if (step == 1) {
        switch (n * size) { /* whole blocks: no call */
        case 32:
            memcpy(out, in, 32);
            break;
        case 64:
            memcpy(out, in, 64);
            break;
        default:
            memcpy(out, in, n * size);
        }
        return;
    }
    switch (size) {
    case 1:
        COPY_STRIDED(uint8_t) break;
    case 2:
        COPY_STRIDED(uint16_t) break;
    case 4:
        COPY_STRIDED(uint32_t) break;
    case 8:
        COPY_STRIDED(uint64_t) break;
    default:
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + i * size, in + (int64_t)i * step * (int64_t)size, size);
    }
}

/* The lines that the next rows will take from the same block. */
enum { BLOCKS_AHEAD = 256 };

#define COPY_BLOCKS(bytes)                                                                 \
    for (; n > 0; n--, out += (bytes), at += step) {                                       \
        __builtin_prefetch((const void *)((uintptr_t)at + BLOCKS_AHEAD));                  \
        memcpy(out, at, (bytes));                                                          \
    }

/* n whole blocks of so many bytes, `step` bytes apart. */
static inline void copy_blocks(const unsigned char *at, int64_t step, uint64_t n, uint64_t bytes,
                        unsigned char *out)
{
    switch (bytes) {
    case 16:
        COPY_BLOCKS(16) break;
    case 32:
        COPY_BLOCKS(32) break;
    case 64:
        COPY_BLOCKS(64) break;
    default:
        COPY_BLOCKS(bytes)
    }
}

#endif
