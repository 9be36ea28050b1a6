/*
 * --fusion FILE: device operators that the compiler made of several of the framework's.
 */
#ifndef ND_COMPARE_FUSION_H
#define ND_COMPARE_FUSION_H

#include "compare/align.h"
#include "formats/atc_graph.h"

/* A layer of its own for the outputs of one origin. */
struct fusion_part {
    const struct dump_layer *layer;
    const char *origin;
};

struct fusion {
    struct atc_graph graph;
    struct fused *by_name;     /* operators by their escaped names */
    struct fused *by_original; /* and by those of the operators in them */
    size_t original_count;
    struct fused *by_target; /* those that were dumped, by whose output they hold */
    size_t target_count;
    struct fusion_part *parts; /* sorted by layer */
    size_t part_count, part_capacity;
};

/* Nothing where no file is given. */
enum nd_status nd_fusion_read(struct comparison *comparison, struct fusion *ret,
                              struct nd_error *err);
/* The device operator of a dumped name; NULL: not in the graph. */
const struct atc_op *nd_fusion_op(struct arena *arena, const struct fusion *fusion,
                                  const char *name);
/* The device operator that a framework's operator went into, and its place among those;
 * NULL: none. */
const struct atc_op *nd_fusion_of(struct arena *arena, const struct fusion *fusion,
                                  const char *name, size_t *ret_within);
/* Before anything is paired: the graph's order where the candidate records none, and its
 * layers parted where their outputs come from several operators. */
enum nd_status nd_fusion_prepare(struct comparison *comparison, struct side_layers *side,
                                 struct fusion *fusion, struct nd_error *err);
/* Parts the candidate's layers whose outputs come from several operators. */
enum nd_status nd_fusion_split(struct arena *arena, struct fusion *fusion,
                               struct side_layers *side, struct nd_error *err);
/* Whose outputs a part holds; NULL: the layer is no part. */
const char *nd_fusion_part_origin(const struct fusion *fusion,
                                  const struct dump_layer *layer);
int nd_fusion_part_order(const void *a, const void *b);
/* Pairs candidate layers with the reference layers whose outputs they hold. */
enum nd_status nd_align_fused(struct comparison *comparison, struct side_layers *sides,
                              struct fusion *fusion, struct nd_error *err);
/* Once layers are paired: inputs of fused operators are no inputs of the layer whose output
 * they hold; reference layers inside one, or eliminated, are covered. */
enum nd_status nd_fusion_cover(struct comparison *comparison, const struct fusion *fusion,
                               struct nd_error *err);

#endif
