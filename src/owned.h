/*
 * The dumps that a result or a listing keeps alive, because its names point into them.
 */
#ifndef ND_OWNED_H
#define ND_OWNED_H

#include "formats/dump.h"
#include "normdiff/options.h"

enum { MAX_SIDE_DUMPS = 5 };

struct owned {
    struct arena *arena;
    struct dump  *dump[2];
    struct dump  *beside[MAX_SIDE_DUMPS]; /* reruns, golden, float32 runs */
    size_t        beside_count;
};

struct owned *nd_owned_new(struct nd_error *err); /* NULL: out of memory */
void          nd_owned_free(struct owned *owned); /* NULL is fine */

/* Opens both dumps at once; of two failures the reference's is told. */
enum nd_status nd_owned_open(struct owned *owned, const char *const *paths,
                             const struct nd_options *options, struct nd_error *err);
/* One root for both sides: the paths below it, and the model that maps fused operators
 * unless the user named another. */
enum nd_status nd_owned_find(struct owned *owned, const char **inout_paths,
                             struct nd_options *options, struct nd_error *err);
/* What was read from a file that shrank meanwhile is void, wherever it was read. */
enum nd_status nd_owned_intact(unsigned shrunk_before, const char *path,
                               struct nd_error *err);

#endif
