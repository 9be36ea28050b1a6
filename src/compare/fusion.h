/*
 * --fusion FILE: device operators that the compiler made of several of the framework's.
 */
#ifndef ND_COMPARE_FUSION_H
#define ND_COMPARE_FUSION_H

#include "compare/align.h"
#include "formats/atc_graph.h"

struct fusion {
    struct atc_graph graph;
    struct fused *by_name;     /* operators by their escaped names */
    struct fused *by_original; /* and by those of the operators in them */
    size_t original_count;
};

/* Nothing where no file is given. */
enum nd_status nd_fusion_read(struct comparison *comparison, struct fusion *ret,
                              struct nd_error *err);
/* Pairs candidate layers with the reference layers whose outputs they hold. */
enum nd_status nd_align_fused(struct comparison *comparison, struct side_layers *sides,
                              const struct fusion *fusion, struct nd_error *err);
/* Once layers are paired: inputs of fused operators are no inputs of the layer whose output
 * they hold; reference layers inside one, or eliminated, are covered. */
enum nd_status nd_fusion_cover(struct comparison *comparison, const struct fusion *fusion,
                               struct nd_error *err);

#endif
