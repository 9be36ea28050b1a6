/*
 * Pairing the layers and slots of two dumps.
 */
#include "compare/align.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compare/fusion.h"
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

/* The next layer from `at` on that is still alone and waits for nothing. */
static size_t next_free(const struct side_layers *side, size_t at)
{
    while (at < side->count && (side->partner[at] != ND_NO_INDEX ||
                                (side->held != NULL && side->held[at])))
        at++;
    return at;
}

static bool is_same(const struct dump_layer *a, const struct dump_layer *b)
{
    return a->call == b->call && a->step == b->step && a->rank == b->rank &&
           a->direction == b->direction && strcmp(a->name, b->name) == 0;
}

/* Mostly both sides hold the same layers in the same order: then equal names stand at equal
 * places, their calls too, and sorting would say nothing else. */
static bool pair_same(struct side_layers *sides)
{
    for (bool sure = false;; sure = true) {
        size_t a = next_free(&sides[0], 0), b = next_free(&sides[1], 0);
        while (a < sides[0].count && b < sides[1].count) {
            if (!sure && !is_same(sides[0].layers[a], sides[1].layers[b]))
                return false;
            if (sure)
                nd_align_pair(sides, a, b, ND_MATCH_EXACT);
            a = next_free(&sides[0], a + 1);
            b = next_free(&sides[1], b + 1);
        }
        if (sure)
            return true;
        if (a < sides[0].count || b < sides[1].count)
            return false;
    }
}

static enum nd_status align_layers(struct comparison *comparison, struct side_layers *sides,
                                   struct fusion *fusion, struct concat_list *concats,
                                   struct nd_error *err)
{
    struct arena *arena = comparison->scratch;

    ND_TRY(nd_fusion_prepare(comparison, &sides[1], fusion, err));
    ND_TRY(nd_align_mapped(comparison, sides, concats, err));
    ND_TRY(nd_align_fused(comparison, sides, fusion, err));
    ND_TRY(nd_align_micro_steps(sides, err));
    ND_TRY(nd_align_calls(arena, sides, err));
    if (!pair_same(sides))
        ND_TRY(nd_align_by_key(sides, own_name, NULL, ND_MATCH_EXACT, err));
    ND_TRY(nd_align_by_key(sides, normalised, NULL, ND_MATCH_NORMALISED, err));
    ND_TRY(nd_align_by_key(sides, classless, NULL, ND_MATCH_NORMALISED, err));
    ND_TRY(nd_align_by_key(sides, escaped, NULL, ND_MATCH_NORMALISED, err));
    if (sides[0].count == 1 && sides[1].count == 1 && sides[0].partner[0] == ND_NO_INDEX) {
        sides[0].partner[0] = sides[1].partner[0] = 0;
        sides[0].match[0] = ND_MATCH_LONE;
    }
    ND_TRY(nd_align_frames(comparison, sides, err));
    /* By name there is no order in which layers could follow each other. */
    if (comparison->dump[0]->order < ND_ORDER_NAME && comparison->dump[1]->order < ND_ORDER_NAME)
        ND_TRY(nd_align_sequence(comparison, sides, err));
    else
        ND_TRY(nd_align_by_order(arena, sides, err));
    return nd_align_calls_rest(sides, err);
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
        if (sides[0].inside != NULL)
            pair->covered_by = sides[0].inside[i];
        if (sides[0].parted != NULL && sides[0].parted[i])
            ND_TRY(nd_part_inputs(arena, pair, err));
    }
    for (size_t i = 0; i < sides[1].count; i++)
        if (sides[1].partner[i] == ND_NO_INDEX)
            comparison->unpaired_candidate[comparison->unpaired_candidate_count++] =
                sides[1].layers[i];
    return nd_mark_containers(comparison, err);
}

static enum nd_status count_common(const struct comparison *comparison, struct nd_error *err)
{
    for (size_t i = 0; i < comparison->layer_count; i++)
        if (comparison->layers[i].side[1] != NULL)
            return ND_OK;
    for (unsigned side = 0; side < 2; side++)
        if (comparison->dump[side]->layer_count == 0) {
            nd_fail(err, ND_ERR_NOTHING, "at least one tensor", "a dump without any tensor");
            nd_error_file(err, comparison->dump[side]->path);
            return ND_ERR_NOTHING;
        }
    ND_TRY(nd_check_places(comparison, err));
    nd_fail(err, ND_ERR_NOTHING, "at least one layer of the same name on both sides",
            "%zu reference and %zu candidate layers with nothing in common",
            comparison->layer_count, comparison->unpaired_candidate_count);
    /* The side that is empty is the one to look at. */
    nd_error_file(err, comparison->dump[comparison->layer_count > 0 ? 1 : 0]->path);
    if (comparison->layer_count > 0 && comparison->unpaired_candidate_count > 0)
        nd_error_hint(err, "normdiff --list shows the names of a dump; --map pairs different names");
    return ND_ERR_NOTHING;
}

static int concat_order(const void *a, const void *b)
{
    const struct concat_pair *x = a, *y = b;

    return x->reference < y->reference ? -1 : x->reference > y->reference;
}

/* Pairs learn of which candidate layers they are made. */
static void give_parts(struct comparison *comparison, const struct concat_list *concats)
{
    if (concats->count > 1)
        qsort(concats->pairs, concats->count, sizeof *concats->pairs, concat_order);
    for (size_t i = 0; concats->count > 0 && i < comparison->layer_count; i++) {
        struct layer_pair        *pair = &comparison->layers[i];
        const struct concat_pair  wanted = {.reference = pair->side[0]};
        const struct concat_pair *hit =
            bsearch(&wanted, concats->pairs, concats->count, sizeof wanted, concat_order);
        if (hit == NULL)
            continue;
        pair->parts = hit->parts;
        pair->part_count = hit->rule->part_count;
        pair->part_axis_asked = hit->rule->axis;
    }
}

static enum nd_status align(struct comparison *comparison, struct nd_error *err)
{
    struct side_layers sides[2];
    struct concat_list concats = {0};
    struct fusion      fusion;

    ND_TRY(nd_align_places(comparison, err));
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
    ND_TRY(nd_select_order(comparison, sides, &fusion, err));
    ND_TRY(nd_align_folded(comparison, sides, err));
    ND_TRY(make_pairs(comparison, sides, err));
    give_parts(comparison, &concats);
    ND_TRY(nd_fusion_cover(comparison, &fusion, err));
    nd_cover_idle(comparison);
    ND_TRY(nd_cover_frames(comparison, err));
    ND_TRY(nd_warn_places(comparison, err));
    return count_common(comparison, err);
}

enum nd_status nd_align(struct comparison *comparison, struct nd_error *err)
{
    comparison->scratch = nd_arena_new();
    const enum nd_status status =
        comparison->scratch == NULL ? nd_fail_memory(err) : align(comparison, err);
    nd_arena_free(comparison->scratch);
    comparison->scratch = NULL;
    return status;
}
