#!/usr/bin/env python3
"""Prints expected.h: the moments of a fixed pseudo-random pair, bit by bit.

Says in numpy what src/kernels/moments.h promises (16 lanes, blocks of 4096, chunks of
262144, a fixed tree; sums about the pivot from a block's other sums where little cancels),
from the description alone: every addition is written out here.
usage: python3 golden.py > expected.h
"""
import numpy as np

LANES, BLOCK, CHUNK = 16, 4096, 262144
COUNT = 300123
SPECIAL = [0x7FC00000, 0x7F800000, 0xFF800000, 0xC61C4000, 0xC77FE000, 0x00000001, 0x80000000]


def inputs():
    """Two float32 arrays as integers: Knuth's MMIX generator, upper halves."""
    state, reference, candidate = 1, [], []
    for i in range(COUNT):
        words = []
        for _ in range(2):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            words.append(state >> 32)
        # sign, an exponent of 120..127, 23 bits; the candidate differs in its last 11 bits
        r = (words[0] & 0x807FFFFF) | (120 + (words[0] >> 23 & 7)) << 23
        c = r ^ (words[1] & 0x7FF)
        if words[1] >> 20 == 7:
            r = SPECIAL[i % 7]
        if words[1] >> 19 == 15:
            c = SPECIAL[i // 7 % 7]
        reference.append(r)
        candidate.append(c)
    as_float = lambda bits: np.array(bits, dtype=np.uint32).view(np.float32).astype(np.float64)
    return as_float(reference), as_float(candidate)


def tree(lanes):
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]


def block_sum(terms):
    lanes = np.zeros(LANES)
    padded = np.zeros(-(-len(terms) // LANES) * LANES)
    padded[: len(terms)] = terms
    for group in padded.reshape(-1, LANES):
        lanes = lanes + group
    return tree(lanes)


def blocks(count):
    """The blocks of each chunk, as slices."""
    for chunk in range(0, count, CHUNK):
        end = min(chunk + CHUNK, count)
        yield [slice(at, min(at + BLOCK, end)) for at in range(chunk, end, BLOCK)]


def ordered_sum(terms):
    total = 0.0
    for chunk in blocks(len(terms)):
        chunk_total = 0.0
        for block in chunk:
            chunk_total += block_sum(terms[block])
        total += chunk_total
    return total


def block_about_pivot(kept, x, y, p, q):
    """One block's sums of r-p, c-q, their squares and their product."""
    n = float(kept.sum())
    r, c, rr, cc, rc = (block_sum(terms) for terms in (x, y, x * x, y * y, x * y))
    pr, pc = r - p * n, c - q * n
    prr, pcc, prc = (rr - p * r) - p * pr, (cc - q * c) - q * pc, (rc - p * c) - q * pr
    if prr * 64 >= rr + p * p * n and pcc * 64 >= cc + q * q * n:
        return [pr, pc, prr, pcc, prc]
    u, v = np.where(kept, x - p, 0.0), np.where(kept, y - q, 0.0)
    return [block_sum(terms) for terms in (u, v, u * u, v * v, u * v)]


def sums_about_pivot(kept, x, y, p, q):
    totals = [0.0] * 5
    for chunk in blocks(len(x)):
        chunk_totals = [0.0] * 5
        for block in chunk:
            found = block_about_pivot(kept[block], x[block], y[block], p, q)
            chunk_totals = [a + b for a, b in zip(chunk_totals, found)]
        totals = [a + b for a, b in zip(totals, chunk_totals)]
    return totals


def main():
    r, c = inputs()
    constants = [-np.inf, -1e4, -65504.0, -1e9, -float.fromhex("0x1.fep127"), -float.fromhex("0x1.fffffep127")]
    masked = np.isin(r, constants) & np.isin(c, constants)
    finite = np.isfinite(r) & np.isfinite(c)
    kept = finite & ~masked
    same = (np.isnan(r) & np.isnan(c)) | (r == c)
    first = int(np.argmax(kept))
    with np.errstate(invalid="ignore"):
        e = np.where(kept, c - r, 0.0)
    x, y = np.where(kept, r, 0.0), np.where(kept, c, 0.0)
    sums = {"abs": np.abs(e), "ee": e * e, "r": x, "c": y, "rr": x * x, "cc": y * y, "rc": x * y}
    about_pivot = sums_about_pivot(kept, x, y, r[first], c[first])
    print("/* Made by golden.py: the moments of its pair. */")
    print('#include "kernels/moments.h"')
    print("")
    print("enum { GOLDEN_COUNT = %d };" % COUNT)
    print("static const struct nd_moments golden_moments = {")
    print("    .total = %d," % COUNT)
    print("    .n = %d," % kept.sum())
    print("    .differ = %d," % (kept & (r != c) | ~finite & ~masked & ~same).sum())
    print("    .mismatches = %d," % (~finite & ~masked & ~same).sum())
    print("    .masked = %d," % masked.sum())
    print("    .masks_differ = %d," % (masked & (r != c)).sum())
    print("    .side = {")
    for side in (r, c):
        print("        {%d, %d, %d}," % tuple((t & ~masked).sum() for t in (np.isnan(side), side == np.inf, side == -np.inf)))
    print("    },")
    for name, terms in sums.items():
        print("    .sum_%s = %s," % (name, float(ordered_sum(terms)).hex()))
    for name, value in zip(("pr", "pc", "prr", "pcc", "prc"), about_pivot):
        print("    .sum_%s = %s," % (name, float(value).hex()))
    print("    .max_abs = %s," % float(np.abs(e).max()).hex())
    print("    .max_abs_at = %d," % np.argmax(np.abs(e)))
    print("    .min = {%s, %s}," % tuple(float(side[kept].min()).hex() for side in (r, c)))
    print("    .max = {%s, %s}," % tuple(float(side[kept].max()).hex() for side in (r, c)))
    print("    .scale = 1.0,")
    print("};")


main()
