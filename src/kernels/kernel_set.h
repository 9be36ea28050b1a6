/*
 * What the kernels of one instruction set offer.
 */
#ifndef ND_KERNELS_KERNEL_SET_H
#define ND_KERNELS_KERNEL_SET_H

#include "kernels/detail_step.h"
#include "kernels/lanes.h"

typedef void (*kernel_decode)(const unsigned char *bytes, size_t n, double *ret);
/* About n <= MOMENTS_BLOCK positions of a block from flat index `at`, which is a multiple of
 * PAIR_STEP within the block. */
typedef void (*kernel_add)(struct lanes_run *run, const unsigned char *r,
                           const unsigned char *c, size_t n, uint64_t at);

struct kernel_set {
    enum isa isa;
    kernel_decode decode[ND_DTYPE_COUNT]; /* packed elements to doubles; NULL: complex */
    kernel_add add;                       /* to the sums, counts and extremes */
    kernel_add pivot;                     /* to the sums about the pivot, after all of them */
    /*
     * Adds a block, or the last part of one, if its bytes are equal on both sides, of one
     * type.  False: they are not, or not all of them count; nothing was added, it has to go
     * through add().  NULL: equal bytes are not told from others.
     */
    bool (*same)(struct lanes_run *run, const struct lanes_place *block);
    struct detail_kernels detail;
};

#define ND_ISA_ROW(word, id, arch, detected)                                               \
    extern const struct kernel_set nd_kernels_##word;
#include "kernels/isas.def"
#undef ND_ISA_ROW

#endif
