/*
 * Pairing: one pass per rule over the layers that are still alone.
 */
#ifndef ND_COMPARE_ALIGN_H
#define ND_COMPARE_ALIGN_H

#include "compare/compare.h"

/* One side's layers during pairing. */
struct side_layers {
    const struct dump_layer **layers;
    size_t                    count;
    size_t                   *partner; /* index on the other side, ND_NO_INDEX: alone */
    enum nd_match            *match;
};

/* The name by which a pass pairs a layer; NULL: it takes no part. */
typedef const char *key_fn(struct arena *arena, const void *user, const struct dump_layer *layer,
                           unsigned side);

/*
 * Pairs layers of equal key (and step, rank, direction): equal call numbers first, the rest
 * in order.
 */
enum nd_status nd_align_by_key(struct arena *arena, struct side_layers *sides, key_fn *key,
                               const void *user, enum nd_match match, struct nd_error *err);

/* Order, type and shape within one parent, for what no name paired. */
enum nd_status nd_align_by_order(struct arena *arena, struct side_layers *sides,
                                 struct nd_error *err);

/* The reference's slots in its order, then those that only the candidate has. */
enum nd_status nd_pair_slots(struct comparison *comparison, struct layer_pair *pair,
                             struct nd_error *err);

/* A layer's name without the frame that frameworks put around it; see names there. */
const char *nd_normalised_name(struct arena *arena, const char *name);

/* --- the --map file ---------------------------------------------------------------- */

struct map_rule {
    const char  *reference, *candidate; /* globs; candidate NULL for concat */
    const char **parts;                 /* concat(...) */
    size_t       part_count;
    int64_t      axis;
    size_t       line;
};
struct map_rules {
    struct map_rule *rules;
    size_t           count;
    struct map_yaml *yaml; /* a msprobe mapping file in place of rules; NULL: none */
};
enum nd_status nd_map_rules_read(struct arena *arena, const char *path, struct map_rules *ret,
                                 struct nd_error *err);
/* What a rule makes of a reference name: the candidate's name or glob; NULL: no match. */
const char *nd_map_rule_apply(struct arena *arena, const struct map_rule *rule, const char *name);

#endif
