/*
 * Pairing the layers and slots of two dumps.
 */
#include "compare/align.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compare/fusion.h"
#include "compare/map_yaml.h"
#include "compare/select.h"

static const char *own_name(struct arena *arena, const void *user, const struct dump_layer *layer,
                            unsigned side)
{
    (void)arena;
    (void)user;
    (void)side;
    return layer->name;
}

static const char *normalised(struct arena *arena, const void *user, const struct dump_layer *layer,
                              unsigned side)
{
    (void)user;
    (void)side;
    return nd_normalised_name(arena, layer->name);
}

/* Names that end in the layer's own class: "Module.emb.Linear.forward.0" is "emb". */
static const char *classless(struct arena *arena, const void *user, const struct dump_layer *layer,
                             unsigned side)
{
    const char *name = normalised(arena, user, layer, side);
    const char *dot = name == NULL ? NULL : strrchr(name, '.');

    if (dot == NULL || layer->type[0] == '\0')
        return name;
    const char *type = nd_normalised_name(arena, layer->type);
    return type == NULL || strcmp(dot + 1, type) != 0
               ? name
               : nd_arena_copy(arena, name, (size_t)(dot - name));
}

/* Names whose separators were escaped: "layers.3/norm" became "layers_3_norm". */
static const char *escaped(struct arena *arena, const void *user, const struct dump_layer *layer,
                           unsigned side)
{
    const char *name = nd_normalised_name(arena, layer->name);
    char       *out = name == NULL ? NULL : nd_arena_string(arena, name);

    (void)user;
    (void)side;
    for (char *p = out; p != NULL && *p != '\0'; p++)
        if (*p == '.')
            *p = '_';
    return out;
}

static const char *mapped(struct arena *arena, const void *user, const struct dump_layer *layer,
                          unsigned side)
{
    const struct map_rules *rules = user;
    const char             *name = NULL;

    if (rules->yaml != NULL)
        return nd_map_yaml_key(arena, rules->yaml, layer, side);

    if (side == 1)
        return layer->name;
    for (size_t i = 0; i < rules->count && name == NULL; i++)
        name = nd_map_rule_apply(arena, &rules->rules[i], layer->name);
    return name;
}

static int64_t *layer_number(struct dump_layer *layer, bool is_rank)
{
    return is_rank ? &layer->rank : &layer->step;
}

/* The lowest step or rank of a dump; -1: it numbers none. */
static int64_t first_number(const struct dump *dump, bool is_rank)
{
    int64_t first = -1;

    for (size_t i = 0; i < dump->layer_count; i++) {
        const int64_t number = *layer_number(&dump->layers[i], is_rank);
        if (number >= 0 && (first < 0 || number < first))
            first = number;
    }
    return first;
}

/* A lone file with one number that the other side does not have is still its counterpart:
 * that somebody named both files says so.  Folders are paired by number alone. */
static void adopt_number(const struct dump *lone, const struct dump *other, bool is_rank)
{
    const int64_t number = first_number(lone, is_rank), first = first_number(other, is_rank);

    if (lone->root_fd >= 0 || number < 0 || first < 0)
        return;
    for (size_t i = 0; i < lone->layer_count; i++)
        if (*layer_number(&lone->layers[i], is_rank) != number)
            return;
    for (size_t i = 0; i < other->layer_count; i++)
        if (*layer_number(&other->layers[i], is_rank) == number)
            return;
    for (size_t i = 0; i < lone->layer_count; i++)
        *layer_number(&lone->layers[i], is_rank) = first;
}

/* A side that numbers no steps (or ranks) is one moment, and meets the first of a side that
 * does: a run of ONNX Runtime beside the iterations of a device. */
static void meet_numbers(const struct dump *const dump[2], bool is_rank)
{
    const int64_t first[2] = {first_number(dump[0], is_rank), first_number(dump[1], is_rank)};
    const unsigned bare = first[0] >= 0;

    if ((first[0] < 0) == (first[1] < 0))
        return;
    for (size_t i = 0; i < dump[bare]->layer_count; i++)
        *layer_number(&dump[bare]->layers[i], is_rank) = first[!bare];
}

/* One layer of a concat rule: found by name among the candidate's unpaired layers. */
static size_t find_part(const struct side_layers *side, const struct dump_layer *reference,
                        const char *name)
{
    for (size_t i = 0; i < side->count; i++) {
        const struct dump_layer *layer = side->layers[i];
        if (side->partner[i] == ND_NO_INDEX && layer->step == reference->step &&
            layer->rank == reference->rank && layer->direction == reference->direction &&
            strcmp(layer->name, name) == 0)
            return i;
    }
    return ND_NO_INDEX;
}

struct concat_pair {
    size_t                    reference;
    const struct dump_layer **parts;
    const struct map_rule    *rule;
};

struct concat_list {
    struct concat_pair *pairs;
    size_t              count, capacity;
};

static enum nd_status align_concat(struct arena *arena, struct side_layers *sides,
                                   const struct map_rule *rule, struct concat_list *list,
                                   struct nd_error *err)
{
    for (size_t i = 0; i < sides[0].count; i++) {
        if (sides[0].partner[i] != ND_NO_INDEX ||
            !nd_glob_match(rule->reference, sides[0].layers[i]->name))
            continue;
        const struct dump_layer **parts = nd_arena_alloc(arena, rule->part_count, sizeof *parts);
        struct concat_pair *pairs = nd_arena_grow(arena, list->pairs, list->count, &list->capacity,
                                                  sizeof *pairs);
        if (parts == NULL || pairs == NULL)
            return nd_fail_memory(err);
        list->pairs = pairs;
        size_t found = 0;
        for (size_t p = 0; p < rule->part_count; p++) {
            const size_t k = find_part(&sides[1], sides[0].layers[i], rule->parts[p]);
            if (k == ND_NO_INDEX)
                break;
            parts[found++] = sides[1].layers[k];
            sides[1].partner[k] = i;
            sides[0].partner[i] = k;
        }
        if (found < rule->part_count)
            continue; /* a part is missing: the layer stays unpaired and is named so */
        sides[0].match[i] = ND_MATCH_MAP;
        pairs[list->count++] = (struct concat_pair){i, parts, rule};
    }
    return ND_OK;
}

static enum nd_status align_mapped(struct comparison *comparison, struct side_layers *sides,
                                   struct concat_list *concats, struct nd_error *err)
{
    struct map_rules rules = {0};

    if (comparison->options->map_file == NULL)
        return ND_OK;
    ND_TRY(nd_map_rules_read(comparison->arena, comparison->options->map_file, &rules, err));
    if (rules.yaml != NULL)
        ND_TRY(nd_map_yaml_prepare(comparison->arena, rules.yaml, &sides[1], err));
    for (size_t i = 0; i < rules.count; i++)
        if (rules.rules[i].part_count > 0)
            ND_TRY(align_concat(comparison->arena, sides, &rules.rules[i], concats, err));
    return nd_align_by_key(comparison->arena, sides, mapped, &rules, ND_MATCH_MAP, err);
}

static enum nd_status align_layers(struct comparison *comparison, struct side_layers *sides,
                                   const struct fusion *fusion, struct concat_list *concats,
                                   struct nd_error *err)
{
    struct arena *arena = comparison->arena;

    ND_TRY(align_mapped(comparison, sides, concats, err));
    ND_TRY(nd_align_fused(comparison, sides, fusion, err));
    ND_TRY(nd_align_by_key(arena, sides, own_name, NULL, ND_MATCH_EXACT, err));
    ND_TRY(nd_align_by_key(arena, sides, normalised, NULL, ND_MATCH_NORMALISED, err));
    ND_TRY(nd_align_by_key(arena, sides, classless, NULL, ND_MATCH_NORMALISED, err));
    ND_TRY(nd_align_by_key(arena, sides, escaped, NULL, ND_MATCH_NORMALISED, err));
    if (sides[0].count == 1 && sides[1].count == 1 && sides[0].partner[0] == ND_NO_INDEX) {
        sides[0].partner[0] = sides[1].partner[0] = 0;
        sides[0].match[0] = ND_MATCH_LONE;
    }
    return nd_align_by_order(arena, sides, err);
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* True if some name in the sorted list begins with `frame` and a separator. */
static bool frames_others(const char **names, size_t count, const char *frame)
{
    const size_t len = strlen(frame);

    if (len == 0)
        return count > 1;
    for (const char *separator = "./"; *separator != '\0'; separator++) {
        size_t low = 0, high = count; /* the first name >= frame + separator */
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            const int    order = strncmp(names[middle], frame, len);
            if (order < 0 || (order == 0 && (unsigned char)names[middle][len] <
                                                (unsigned char)*separator))
                low = middle + 1;
            else
                high = middle;
        }
        if (low < count && strncmp(names[low], frame, len) == 0 && names[low][len] == *separator)
            return true;
    }
    return false;
}

/* A container is only a frame if layers inside it were dumped too. */
static enum nd_status mark_containers(struct comparison *comparison, struct nd_error *err)
{
    const size_t count = comparison->layer_count;
    const char **names = nd_arena_alloc(comparison->arena, count + 1, sizeof *names);
    size_t       paired = 0;

    if (names == NULL)
        return nd_fail_memory(err);
    /* Only leaves that are compared take its frame's place: where the other side dumped the
     * blocks alone, the blocks are what is judged. */
    for (size_t i = 0; i < count; i++)
        if (comparison->layers[i].side[1] != NULL)
            names[paired++] = comparison->layers[i].side[0]->name;
    qsort(names, paired, sizeof *names, name_order);
    for (size_t i = 0; i < count; i++)
        comparison->layers[i].container =
            comparison->layers[i].side[0]->container &&
            frames_others(names, paired, comparison->layers[i].side[0]->name);
    return ND_OK;
}

static enum nd_status make_pairs(struct comparison *comparison, const struct side_layers *sides,
                                 struct nd_error *err)
{
    struct arena *arena = comparison->arena;

    comparison->layer_count = sides[0].count;
    comparison->layers = nd_arena_alloc(arena, sides[0].count + 1, sizeof *comparison->layers);
    comparison->unpaired_candidate =
        nd_arena_alloc(arena, sides[1].count + 1, sizeof *comparison->unpaired_candidate);
    if (comparison->layers == NULL || comparison->unpaired_candidate == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < sides[0].count; i++) {
        struct layer_pair *pair = &comparison->layers[i];
        pair->side[0] = sides[0].layers[i];
        pair->match = sides[0].match[i];
        if (sides[0].partner[i] != ND_NO_INDEX && pair->match != ND_MATCH_NONE)
            pair->side[1] = sides[1].layers[sides[0].partner[i]];
        pair->step = pair->side[0]->step;
        pair->rank = pair->side[0]->rank;
        ND_TRY(nd_pair_slots(comparison, pair, err));
    }
    for (size_t i = 0; i < sides[1].count; i++)
        if (sides[1].partner[i] == ND_NO_INDEX)
            comparison->unpaired_candidate[comparison->unpaired_candidate_count++] =
                sides[1].layers[i];
    return mark_containers(comparison, err);
}

static enum nd_status count_common(const struct comparison *comparison, struct nd_error *err)
{
    for (size_t i = 0; i < comparison->layer_count; i++)
        if (comparison->layers[i].side[1] != NULL)
            return ND_OK;
    nd_fail(err, ND_ERR_NOTHING, "at least one layer of the same name on both sides",
            "%zu reference and %zu candidate layers with nothing in common",
            comparison->layer_count, comparison->unpaired_candidate_count);
    /* The side that is empty is the one to look at. */
    nd_error_file(err, comparison->dump[comparison->layer_count > 0 ? 1 : 0]->path);
    if (comparison->layer_count > 0 && comparison->unpaired_candidate_count > 0)
        nd_error_hint(err, "normdiff --list shows the names of a dump; --map pairs different names");
    return ND_ERR_NOTHING;
}

enum nd_status nd_align(struct comparison *comparison, struct nd_error *err)
{
    struct side_layers sides[2];
    struct concat_list concats = {0};
    struct fusion      fusion;

    for (unsigned is_rank = 0; is_rank < 2; is_rank++)
        if ((is_rank ? comparison->options->rank : comparison->options->step) < 0) {
            adopt_number(comparison->dump[1], comparison->dump[0], is_rank);
            adopt_number(comparison->dump[0], comparison->dump[1], is_rank);
            meet_numbers(comparison->dump, is_rank);
        }
    for (unsigned side = 0; side < 2; side++)
        ND_TRY(nd_select_layers(comparison, side, &sides[side], err));
    if (comparison->dump[0]->layer_count > 0 && sides[0].count == 0) {
        nd_fail(err, ND_ERR_USAGE, "a pattern that fits some layer's name",
                "%zu reference layers, of which the options select none",
                comparison->dump[0]->layer_count);
        nd_error_file(err, comparison->dump[0]->path);
        return ND_ERR_USAGE;
    }
    ND_TRY(nd_fusion_read(comparison, &fusion, err));
    ND_TRY(align_layers(comparison, sides, &fusion, &concats, err));
    /* Concatenations know their reference layer by place: remember the layer itself. */
    const struct dump_layer **concat_layers =
        nd_arena_alloc(comparison->arena, concats.count + 1, sizeof *concat_layers);
    if (concat_layers == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < concats.count; i++)
        concat_layers[i] = sides[0].layers[concats.pairs[i].reference];
    ND_TRY(nd_select_order(comparison, sides, err));
    ND_TRY(make_pairs(comparison, sides, err));
    for (size_t i = 0; i < concats.count; i++)
        for (size_t k = 0; k < comparison->layer_count; k++)
            if (comparison->layers[k].side[0] == concat_layers[i]) {
                comparison->layers[k].parts = concats.pairs[i].parts;
                comparison->layers[k].part_count = concats.pairs[i].rule->part_count;
                comparison->layers[k].part_axis_asked = concats.pairs[i].rule->axis;
            }
    ND_TRY(nd_fusion_cover(comparison, &fusion, err));
    return count_common(comparison, err);
}
