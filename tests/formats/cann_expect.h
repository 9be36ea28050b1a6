/*
 * What tests of CANN's formats ask of a dump.
 */
#ifndef ND_TESTS_FORMATS_CANN_EXPECT_H
#define ND_TESTS_FORMATS_CANN_EXPECT_H

#include "formats/dump.h"

/* The slot of a layer's call; the test fails if there is none. */
const struct dump_slot *expect_slot(const struct dump *dump, const char *layer,
                                    int64_t call, const char *slot);
/* Its shape, and that element i is (i - 8) / 4. */
void expect_ramp(const struct dump *dump, const struct dump_slot *slot, const char *shape);
void expect_broken(const struct dump_slot *slot, const char *what);
/* The text of an attribute of a layer's first call; NULL: none. */
const char *expect_attribute(const struct dump *dump, const char *layer, const char *key);
/* Opens a seed of the corpus by its content alone. */
struct dump *expect_seed(const char *format, const char *seed, unsigned char **ret_block);

#endif
