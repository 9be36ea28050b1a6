/*
 * What a msprobe mapping file makes of the candidate's names.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compare/map_yaml.h"
#include "formats/msprobe.h"

enum {
    MAX_PIECES = 4096, /* keys that are looked for inside every name */
    MAX_PARTS = 128    /* components of a path */
};

static int rule_key_order(const void *a, const void *b)
{
    const struct yaml_rule *x = a, *y = b;
    const int order = strcmp(x->owner, y->owner);

    return order != 0 ? order : strcmp(x->from, y->from);
}

static const char *find_rule(const struct map_yaml *yaml, const char *owner,
                             const char *from)
{
    const struct yaml_rule key = {.owner = owner, .from = from};
    const struct yaml_rule *const hit =
        yaml->count == 0
            ? NULL
            : bsearch(&key, yaml->rules, yaml->count, sizeof key, rule_key_order);

    if (hit == NULL)
        return NULL;
    yaml->met[hit->line] = true;
    return hit->to;
}

/* "Module.PATH.CLASS" of a base: what stands behind the prefix. */
static const char *behind_prefix(struct arena *arena, const char *text, size_t len)
{
    const char *dot = memchr(text, '.', len);

    return dot == NULL ? NULL
                       : nd_arena_copy(arena, dot + 1, (size_t)(text + len - dot) - 1);
}

/* Every key that stands in the name is replaced once, as msprobe does. */
static const char *replace_pieces(struct arena *arena, const struct map_yaml *yaml,
                                  const char *name)
{
    const size_t count = yaml->count < MAX_PIECES ? yaml->count : MAX_PIECES;
    const char *now = name;

    for (size_t i = 0; now != NULL && i < count; i++) {
        const struct yaml_rule *rule = &yaml->in_order[i];
        const char *at = strstr(now, rule->from);
        if (at == NULL || *rule->from == '\0')
            continue;
        yaml->met[rule->line] = true;
        now = nd_arena_format(arena, "%.*s%s%s", (int)(at - now), now, rule->to,
                              at + strlen(rule->from));
    }
    return now == NULL || strcmp(now, name) == 0 ? NULL : now;
}

/* Rules 1 to 3; NULL: no rule is about the name. */
static const char *map_name(struct arena *arena, const struct map_yaml *yaml,
                            const char *name)
{
    struct msprobe_name parsed;
    const char *to = find_rule(yaml, "", name);

    if (to != NULL)
        return to;
    nd_msprobe_name_read(name, &parsed);
    const char *suffix = name + parsed.base_len;
    if (!parsed.is_module) {
        const char *base = nd_arena_copy(arena, name, parsed.base_len);
        to = base == NULL ? NULL : find_rule(yaml, "", base);
        return to == NULL ? NULL : nd_arena_format(arena, "%s%s", to, suffix);
    }
    const char *middle = behind_prefix(arena, name, parsed.base_len);
    if (middle == NULL)
        return NULL;
    to = find_rule(yaml, "", middle);
    if (to == NULL)
        to = replace_pieces(arena, yaml, middle);
    return to == NULL ? NULL : nd_arena_format(arena, "Module.%s%s", to, suffix);
}

/* --- layer_mapping: rule 4 ----------------------------------------------------------- */

/* The path of a module without its class, in the arena; NULL: no module. */
static const char *module_path(struct arena *arena, const char *name,
                               struct msprobe_name *ret_parsed)
{
    nd_msprobe_name_read(name, ret_parsed);
    if (!ret_parsed->is_module || ret_parsed->type_len == 0)
        return NULL;
    const size_t end = (size_t)(ret_parsed->type - name);
    const char *dot = strchr(name, '.');
    if (dot == NULL || (size_t)(dot - name) + 1 >= end)
        return NULL; /* the model itself */
    return nd_arena_copy(arena, dot + 1, end - (size_t)(dot - name) - 2);
}

static int class_order(const void *a, const void *b)
{
    const struct class_of *x = a, *y = b;
    return strcmp(x->path, y->path);
}

enum nd_status nd_map_yaml_prepare(struct arena *arena, struct map_yaml *yaml,
                                   const struct side_layers *candidate,
                                   struct nd_error *err)
{
    struct msprobe_name parsed;

    if (!yaml->has_owners)
        return ND_OK;
    yaml->classes = nd_arena_alloc(arena, candidate->count + 1, sizeof *yaml->classes);
    if (yaml->classes == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < candidate->count; i++) {
        const struct dump_layer *layer = candidate->layers[i];
        const char *path = module_path(arena, layer->name, &parsed);
        if (path != NULL)
            yaml->classes[yaml->class_count++] = (struct class_of){path, layer->type};
    }
    if (yaml->class_count > 1)
        qsort(yaml->classes, yaml->class_count, sizeof *yaml->classes, class_order);
    return ND_OK;
}

static const char *class_at(const struct map_yaml *yaml, const char *path)
{
    const struct class_of key = {.path = path};
    const struct class_of *const hit =
        yaml->class_count == 0
            ? NULL
            : bsearch(&key, yaml->classes, yaml->class_count, sizeof key, class_order);

    return hit == NULL ? "" : hit->type;
}

/* The longest key of `owner` that `rest` begins with, component by component.  *ret_len:
 * bytes of the path it stands for. */
static const char *map_children(struct arena *arena, const struct map_yaml *yaml,
                                const char *owner, const char *rest, size_t *ret_len)
{
    size_t ends[MAX_PARTS], count = 0;

    for (size_t at = 0; count < MAX_PARTS; at++)
        if (rest[at] == '.' || rest[at] == '\0') {
            ends[count++] = at;
            if (rest[at] == '\0')
                break;
        }
    for (size_t i = count; *owner != '\0' && i-- > 0;) {
        const char *from = nd_arena_copy(arena, rest, ends[i]);
        const char *to = from == NULL ? NULL : find_rule(yaml, owner, from);
        if (to != NULL) {
            *ret_len = ends[i];
            return to;
        }
    }
    *ret_len = ends[0];
    return NULL;
}

static const char *map_path(struct arena *arena, const struct map_yaml *yaml,
                            const char *path)
{
    struct text out = {0};
    const char *owner = "TopLayer";
    size_t at = 0;

    for (;;) {
        size_t len;
        const char *to = map_children(arena, yaml, owner, path + at, &len);
        if (out.len > 0)
            nd_text_add(&out, ".", 1);
        if (to != NULL) /* "name(0)" in newer files: the bracket is a remark */
            nd_text_add(&out, to, strcspn(to, "("));
        else
            nd_text_add(&out, path + at, len);
        at += len;
        if (path[at] == '\0')
            break;
        const char *above = nd_arena_copy(arena, path, at);
        owner = above == NULL ? "" : class_at(yaml, above);
        at++;
    }
    const char *mapped = out.broken ? NULL : nd_arena_copy(arena, out.bytes, out.len);
    nd_text_done(&out);
    return mapped;
}

const char *nd_map_yaml_key(struct arena *arena, const struct map_yaml *yaml,
                            const struct dump_layer *layer, unsigned side)
{
    struct msprobe_name parsed;

    if (yaml->has_owners) {
        const char *path = module_path(arena, layer->name, &parsed);
        const char *group = parsed.form == MSPROBE_GRAD ? "parameters_grad" : "";
        if (path != NULL && side == 1)
            path = map_path(arena, yaml, path);
        return path == NULL ? NULL : nd_arena_format(arena, "%s %s", path, group);
    }
    const char *name = side == 0 ? layer->name : map_name(arena, yaml, layer->name);
    return name == NULL ? NULL : nd_normalised_name(arena, name);
}
