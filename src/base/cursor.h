/*
 * Bounded reads: the only code that advances over untrusted bytes.  A read past the end
 * returns false and leaves the position alone.
 */
#ifndef ND_BASE_CURSOR_H
#define ND_BASE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const unsigned char *bytes;
    uint64_t             size, at;
};

static inline uint64_t nd_cursor_left(const struct cursor *in)
{
    return in->size - in->at;
}

static inline bool nd_cursor_skip(struct cursor *in, uint64_t n)
{
    if (n > nd_cursor_left(in))
        return false;
    in->at += n;
    return true;
}

/* Points *ret_bytes at the next n bytes, in place. */
static inline bool nd_cursor_take(struct cursor *in, uint64_t n, const unsigned char **ret_bytes)
{
    if (n > nd_cursor_left(in))
        return false;
    *ret_bytes = in->bytes + in->at;
    in->at += n;
    return true;
}

static inline uint64_t nd_load_le(const unsigned char *p, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static inline bool nd_cursor_le(struct cursor *in, unsigned size, uint64_t *ret_value)
{
    const unsigned char *p;
    if (!nd_cursor_take(in, size, &p))
        return false;
    *ret_value = nd_load_le(p, size);
    return true;
}

/* Overflow-checked arithmetic on sizes from files: false if the result does not fit. */
static inline bool nd_size_add(uint64_t a, uint64_t b, uint64_t *ret_sum)
{
    if (a > UINT64_MAX - b)
        return false;
    *ret_sum = a + b;
    return true;
}

static inline bool nd_size_mul(uint64_t a, uint64_t b, uint64_t *ret_product)
{
    if (a != 0 && b > UINT64_MAX / a)
        return false;
    *ret_product = a * b;
    return true;
}

#endif
