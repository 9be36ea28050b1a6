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
    bool                     *held; /* calls that wait for the sequence; NULL: none */
    bool                     *parted; /* of the reference: one side is a part of the other, which
                                       * ends in it: inputs are not the same; NULL: none */
    const char              **inside; /* of the reference: the candidate's layer that it went
                                       * into; NULL: none */
};

/* The name by which a pass pairs a layer, in the arena, which is freed after the pass; NULL:
 * it takes no part. */
typedef const char *key_fn(struct arena *arena, const void *user, const struct dump_layer *layer,
                           unsigned side);

/*
 * Pairs layers of equal key (and step, rank, direction): equal call numbers first, the rest
 * in order.
 */
enum nd_status nd_align_by_key(struct side_layers *sides, key_fn *key, const void *user,
                               enum nd_match match, struct nd_error *err);

/* Layers of one key, by call number. */
struct keyed {
    const char *key;
    int64_t     call;
    size_t      index;
};
/* Pairs what it will of two runs of one key. */
typedef void run_fn(struct side_layers *sides, const struct keyed *a, size_t na,
                    const struct keyed *b, size_t nb, enum nd_match match);
enum nd_status nd_align_runs(struct side_layers *sides, key_fn *key, const void *user,
                             enum nd_match match, run_fn *run, struct nd_error *err);
void nd_align_pair(struct side_layers *sides, size_t a, size_t b, enum nd_match match);

/* --- steps and ranks ------------------------------------------------------------------- */

/* Brings steps and ranks together where only one side numbers them, or a lone file does. */
enum nd_status nd_align_places(struct comparison *comparison, struct nd_error *err);
/* Calls of one micro-batch, where both dumps say which it is. */
enum nd_status nd_align_micro_steps(struct side_layers *sides, struct nd_error *err);
/* An error if they have no step and rank in common. */
enum nd_status nd_check_places(const struct comparison *comparison, struct nd_error *err);
/* Names the steps and ranks that only one side has. */
enum nd_status nd_warn_places(struct comparison *comparison, struct nd_error *err);

/* --- calls of functions and modules ---------------------------------------------------- */

/* Is the name a call's, "Functional.linear.3.forward"?  Then the length of what stands
 * before the number. */
bool nd_call_base(const char *name, size_t *ret_len);
/* The first slot of a kind ("output."); NULL: none. */
const struct dump_slot *nd_first_slot(const struct dump_layer *layer, const char *kind);
struct nd_shape nd_slot_squeezed(const struct dump_slot *slot);
/* The kind of operator that a type is, the same for a class and a function. */
void nd_align_family(const struct comparison *comparison, const struct dump_layer *layer,
                     char *buf, size_t size);

/* Pairs calls by number where the numbers can be trusted, and holds back the others. */
enum nd_status nd_align_calls(struct arena *arena, struct side_layers *sides, struct nd_error *err);
/* Those that nothing else has paired. */
enum nd_status nd_align_calls_rest(struct side_layers *sides, struct nd_error *err);
/* Calls with the modules that they ran in, as construct.json has it: the call of the module's
 * own kind, else the last one, at its output alone. */
enum nd_status nd_align_frames(const struct comparison *comparison, struct side_layers *sides,
                               struct nd_error *err);
/* Kind, shape, values and order, between what is paired. */
enum nd_status nd_align_sequence(const struct comparison *comparison, struct side_layers *sides,
                                 struct nd_error *err);

/* Type and shape within one parent, by place among the names: where no order is known. */
enum nd_status nd_align_by_order(struct arena *arena, struct side_layers *sides,
                                 struct nd_error *err);

/* Once the reference stands in order: layers without a partner whose output the partner of
 * the layer before them holds. */
enum nd_status nd_align_folded(const struct comparison *comparison, struct side_layers *sides,
                               struct nd_error *err);

/* Takes inputs and weights apart that are not each other's, where one layer stands for several. */
enum nd_status nd_part_inputs(struct arena *arena, struct layer_pair *layer,
                              struct nd_error *err);

/* The reference's slots in its order, then those that only the candidate has. */
enum nd_status nd_pair_slots(struct comparison *comparison, struct layer_pair *pair,
                             struct nd_error *err);

/* What a layer is looked up by; lists of structs that begin with one are sorted and searched
 * by nd_named_layer_order, for qsort() and bsearch(). */
struct named_layer {
    const char *name;
    int64_t     step, rank;
};
int nd_named_layer_order(const void *a, const void *b);

/* A layer's name without the frame that frameworks put around it; see names there. */
const char *nd_normalised_name(struct arena *arena, const char *name);

/* --- frames of other layers -------------------------------------------------------------- */

/* Which paired layers are only the frame of others that are compared. */
enum nd_status nd_mark_containers(struct comparison *comparison, struct nd_error *err);
/* Layers of the reference that compute nothing, and that the other side left out. */
void nd_cover_idle(struct comparison *comparison);
/* Where one side dumped calls and the other modules: what of the reference is compared
 * although nothing on the other side has its name. */
enum nd_status nd_cover_frames(struct comparison *comparison, struct nd_error *err);
/* Of those, the calls that ran in a module of the other side. */
enum nd_status nd_cover_calls(struct comparison *comparison, struct nd_error *err);

/* A module's path without its class: "layers.0.fc1" of "Module.layers.0.fc1.Linear.forward.0";
 * NULL: out of memory. */
const char *nd_module_path(struct arena *arena, const struct dump_layer *layer);

/* --- the --map file ---------------------------------------------------------------- */

struct map_rule {
    const char  *reference, *candidate; /* globs; candidate NULL for concat */
    const char **parts;                 /* concat(...) */
    size_t       part_count;
    int64_t      axis;
    size_t       line;
    bool         used; /* it paired something */
};
struct map_rules {
    struct map_rule *rules;
    size_t           count;
    struct map_yaml *yaml; /* a msprobe mapping file in place of rules; NULL: none */
};
enum nd_status nd_map_rules_read(struct arena *arena, const char *path, struct map_rules *ret,
                                 struct nd_error *err);
/* One reference layer and the candidate layers that make it up. */
struct concat_pair {
    const struct dump_layer  *reference;
    const struct dump_layer **parts;
    const struct map_rule    *rule;
};
struct concat_list {
    struct concat_pair *pairs;
    size_t              count, capacity;
};
/* Pairs what --map says, if it is given, and warns of lines that pair nothing. */
enum nd_status nd_align_mapped(struct comparison *comparison, struct side_layers *sides,
                               struct concat_list *concats, struct nd_error *err);
/* What a rule makes of a reference name: the candidate's name or glob; NULL: no match. */
const char *nd_map_rule_apply(struct arena *arena, const struct map_rule *rule, const char *name);

#endif
