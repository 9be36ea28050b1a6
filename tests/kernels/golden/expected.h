/* Made by golden.py: the moments of its pair. */
#include "kernels/moments.h"

enum { GOLDEN_COUNT = 300123 };
static const struct nd_moments golden_moments = {
    .total = 300123,
    .n = 300075,
    .differ = 299959,
    .mismatches = 36,
    .masked = 10,
    .masks_differ = 9,
    .side = {
        {11, 15, 7},
        {5, 5, 4},
    },
    .sum_abs = 0x1.6bcc9a77676b0p+19,
    .sum_ee = 0x1.4664990bb8341p+35,
    .sum_r = -0x1.3d0f5da228dd8p+19,
    .sum_c = -0x1.744791dc36ec0p+16,
    .sum_rr = 0x1.2430a64c12185p+35,
    .sum_cc = 0x1.11a36f75159ddp+32,
    .sum_rc = 0x1.ecbbf2605045ap+16,
    .sum_pr = -0x1.3efc9559c1cf8p+19,
    .sum_pc = -0x1.83b0d79e87c00p+16,
    .sum_prr = 0x1.2430aea9200eap+35,
    .sum_pcc = 0x1.11a37972fc642p+32,
    .sum_prc = 0x1.0997200bfc4abp+17,
    .max_abs = 0x1.ffc0681a0a800p+15,
    .max_abs_at = 268482,
    .min = {-0x1.ffc0000000000p+15, -0x1.ffc0000000000p+15},
    .max = {0x1.fff7dc0000000p+0, 0x1.fff9120000000p+0},
    .scale = 1.0,
};
