/*
 * Numbers that look random and are the same on every machine: splitmix64 (Steele, Lea and
 * Flood, "Fast splittable pseudorandom number generators", 2014).  Samples are chosen by it,
 * so that the same dumps give the same report.
 */
#ifndef ND_BASE_MIX_H
#define ND_BASE_MIX_H

#include <stdint.h>

#define MIX_STEP 0x9e3779b97f4a7c15u /* 2^64 over the golden ratio, odd */

/* The output of the generator whose state is `state`; outputs pass the usual tests from any. */
static inline uint64_t mix64(uint64_t state)
{
    state += MIX_STEP;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
    return state ^ (state >> 31);
}

#endif
