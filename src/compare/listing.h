/*
 * What --list shows of one dump.
 */
#ifndef ND_COMPARE_LISTING_H
#define ND_COMPARE_LISTING_H

#include "compare/compare.h"

/* Fills layers, slots and what is ignored; values are read for their statistics. */
enum nd_status nd_list_dump(const struct dump *dump, const struct nd_options *options,
                            const struct kernel_set *kernels, struct arena *arena,
                            struct nd_listing *listing, struct nd_error *err);

#endif
