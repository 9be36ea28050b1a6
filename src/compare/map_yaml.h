/*
 * msprobe's mapping files, read (map_yaml.c) and applied (map_yaml_name.c).
 */
#ifndef ND_COMPARE_MAP_YAML_H
#define ND_COMPARE_MAP_YAML_H

#include "compare/align.h"

struct yaml_rule {
    const char *owner; /* the class above, of layer_mapping; "" for none */
    const char *from, *to;
    size_t line;
};

struct class_of {
    const char *path, *type;
};

struct map_yaml {
    struct yaml_rule *rules;
    size_t count, capacity;
    struct yaml_rule *in_order; /* rules as they stand in the file */
    bool has_owners, is_list; /* rules below a class; rules of an api_mapping */
    bool *met; /* by line: a name was mapped by it */
    struct class_of *classes; /* of the candidate's modules, by path */
    size_t class_count;
};

/* Whether a text is such a file and not one of our own rules. */
bool nd_map_yaml_is(const char *text, const char *end);
enum nd_status nd_map_yaml_read(struct arena *arena, const char *text, const char *end,
                                struct map_yaml **ret_yaml, struct nd_error *err);
/* Learns the candidate's classes, which layer_mapping needs; before the first key. */
enum nd_status nd_map_yaml_prepare(struct arena *arena, struct map_yaml *yaml,
                                   const struct side_layers *candidate,
                                   struct nd_error *err);
/* The name under which a layer is paired: a candidate's mapped, NULL where no rule is about
 * it; a reference's its own. */
const char *nd_map_yaml_key(struct arena *arena, const struct map_yaml *yaml,
                            const struct dump_layer *layer, unsigned side);

#endif
