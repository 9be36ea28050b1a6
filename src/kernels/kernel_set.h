/*
 * What the kernels of one instruction set offer.
 */
#ifndef ND_KERNELS_KERNEL_SET_H
#define ND_KERNELS_KERNEL_SET_H

#include "kernels/lanes.h"

typedef void (*kernel_decode)(const unsigned char *bytes, size_t n, double *ret);

struct kernel_set {
    enum isa isa;
    kernel_decode decode[ND_DTYPE_COUNT]; /* packed elements to doubles; NULL: complex */
    /*
     * Adds n positions, which start at a multiple of PAIR_STEP within their block; n is
     * PAIR_STEP but for the last step of a tensor.  `at` is the flat index of the first.
     */
    void (*step)(struct lanes_run *run, const unsigned char *r, const unsigned char *c,
                 size_t n, uint64_t at);
};

#define ND_ISA_ROW(word, id, arch, detected)                                               \
    extern const struct kernel_set nd_kernels_##word;
#include "kernels/isas.def"
#undef ND_ISA_ROW

#endif
