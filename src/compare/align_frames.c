/*
 * Calls of functions beside the modules that made them.  A dump of calls says in
 * construct.json which module each ran in (its frame), and another run may have dumped that
 * module:
 *
 *   1. of the calls in a module the one of its own kind is the module: linear in fc1.Linear
 *   2. without one, the last call gives the module's output if nothing within the module
 *      followed it; its inputs are others
 *
 * Layers are known by the module's path, which other formats name too: "layers.0.fc1".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compare/align.h"

struct framed {
    const char *key; /* step, rank, direction, call and path of the module */
    const char *path;
    size_t index;
};

static int framed_order(const void *a, const void *b)
{
    const struct framed *x = a, *y = b;
    const int order = strcmp(x->key, y->key);

    if (order != 0)
        return order;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The number beside "forward" or "backward"; 0 where there is none. */
static int64_t call_of(const char *name)
{
    static const char *const words[] = {"forward", "backward"};

    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        const char *at = strstr(name, words[w]);
        if (at == NULL)
            continue;
        const char *digits = at[strlen(words[w])] == '.' ? at + strlen(words[w]) + 1 : at;
        while (digits == at && digits > name && digits[-1] == '.' && digits - 2 >= name) {
            digits -= 2; /* "Cell.fc.Dense.0.forward" */
            while (digits > name && *digits >= '0' && *digits <= '9')
                digits--;
            digits += *digits == '.';
        }
        return strtoll(digits, NULL, 10);
    }
    return 0;
}

/* "Module.layers.0.fc1.Linear.forward.0" ran at "layers.0.fc1": a frame ends in its class.
 */
static const char *frame_path(struct arena *arena, const char *frame)
{
    const char *name = nd_normalised_name(arena, frame);
    const char *dot = name == NULL ? NULL : strrchr(name, '.');

    return dot == NULL ? name : nd_arena_copy(arena, name, (size_t)(dot - name));
}

/* A module's own path, without the class where its name ends in it. */
const char *nd_module_path(struct arena *arena, const struct dump_layer *layer)
{
    const char *name = nd_normalised_name(arena, layer->name);
    const char *dot = name == NULL ? NULL : strrchr(name, '.');
    const char *type = dot == NULL || layer->type[0] == '\0'
                           ? NULL
                           : nd_normalised_name(arena, layer->type);

    return type == NULL || strcmp(dot + 1, type) != 0
               ? name
               : nd_arena_copy(arena, name, (size_t)(dot - name));
}

/* The calls of one side that know their frames, or the modules of the other. */
static enum nd_status framed_list(struct arena *arena, const struct side_layers *side,
                                  bool calls, struct framed **ret_list, size_t *ret_count,
                                  struct nd_error *err)
{
    struct framed *list = nd_arena_alloc(arena, side->count + 1, sizeof *list);
    size_t count = 0, base;

    if (list == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < side->count; i++) {
        const struct dump_layer *layer = side->layers[i];
        if (side->partner[i] != ND_NO_INDEX || nd_call_base(layer->name, &base) != calls ||
            (calls && layer->frame == NULL))
            continue;
        const char *path =
            calls ? frame_path(arena, layer->frame) : nd_module_path(arena, layer);
        if (path == NULL)
            return nd_fail_memory(err);
        list[count] = (struct framed){.path = path, .index = i};
        list[count].key = nd_arena_format(
            arena, "%" PRId64 "|%" PRId64 "|%d|%" PRId64 "|%s", layer->step, layer->rank,
            layer->direction, calls ? call_of(layer->frame) : layer->call, path);
        if (list[count++].key == NULL)
            return nd_fail_memory(err);
    }
    if (count > 1)
        qsort(list, count, sizeof *list, framed_order);
    *ret_list = list;
    *ret_count = count;
    return ND_OK;
}

static size_t run_length(const struct framed *list, size_t count, size_t from)
{
    size_t to = from + 1;

    while (to < count && strcmp(list[to].key, list[from].key) == 0)
        to++;
    return to - from;
}

static bool same_output(const struct dump_layer *a, const struct dump_layer *b)
{
    const struct dump_slot *x = nd_first_slot(a, "output."),
                           *y = nd_first_slot(b, "output.");

    if (x == NULL || y == NULL)
        return false;
    const struct nd_shape p = nd_slot_squeezed(x), q = nd_slot_squeezed(y);
    return nd_shape_equal(&p, &q);
}

static bool same_kind(const struct comparison *comparison, const struct dump_layer *a,
                      const struct dump_layer *b)
{
    char x[64], y[64];

    nd_align_family(comparison, a, x, sizeof x);
    nd_align_family(comparison, b, y, sizeof y);
    return x[0] != '\0' && strcmp(x, y) == 0;
}

/* Does the next call still run within `path`? */
static bool is_followed(struct arena *arena, const struct side_layers *side, size_t index,
                        const char *path)
{
    const struct dump_layer *layer = side->layers[index];
    const size_t len = strlen(path);

    if (index + 1 >= side->count)
        return false;
    const struct dump_layer *next = side->layers[index + 1];
    if (next->step != layer->step || next->rank != layer->rank ||
        next->direction != layer->direction || next->frame == NULL)
        return false;
    const char *other = frame_path(arena, next->frame);
    return other == NULL ||
           (strncmp(other, path, len) == 0 && (other[len] == '\0' || other[len] == '.'));
}

/* The call of a run that stands for the module; ND_NO_INDEX: none does. */
static size_t choose_call(const struct comparison *comparison,
                          const struct side_layers *side, const struct framed *run,
                          size_t count, const struct dump_layer *module)
{
    size_t own = ND_NO_INDEX;

    for (size_t i = 0; i < count; i++) {
        const struct dump_layer *call = side->layers[run[i].index];
        if (same_output(call, module) && same_kind(comparison, call, module))
            own = run[i].index;
    }
    if (own != ND_NO_INDEX)
        return own;
    const size_t last = run[count - 1].index;
    return same_output(side->layers[last], module) &&
                   !is_followed(comparison->arena, side, last, run[count - 1].path)
               ? last
               : ND_NO_INDEX;
}

/* `of` is the side whose calls know their frames. */
static enum nd_status pair_frames(const struct comparison *comparison,
                                  struct side_layers *sides, unsigned of,
                                  struct nd_error *err)
{
    struct arena *arena = comparison->arena;
    struct framed *calls, *modules;
    size_t call_count, module_count;

    ND_TRY(framed_list(arena, &sides[of], true, &calls, &call_count, err));
    if (call_count == 0)
        return ND_OK;
    ND_TRY(framed_list(arena, &sides[!of], false, &modules, &module_count, err));
    for (size_t i = 0, k = 0; i < call_count && k < module_count;) {
        const size_t run = run_length(calls, call_count, i);
        const int order = strcmp(calls[i].key, modules[k].key);
        const struct dump_layer *module = sides[!of].layers[modules[k].index];
        const size_t at = order != 0
                              ? ND_NO_INDEX
                              : choose_call(comparison, &sides[of], calls + i, run, module);
        if (at != ND_NO_INDEX) {
            const size_t a = of == 0 ? at : modules[k].index,
                         b = of == 0 ? modules[k].index : at;
            nd_align_pair(sides, a, b, ND_MATCH_ORDER);
            sides[0].parted[a] = !same_kind(comparison, sides[of].layers[at], module);
        }
        i += order <= 0 ? run : 0;
        k += order >= 0 ? run_length(modules, module_count, k) : 0;
    }
    return ND_OK;
}

enum nd_status nd_align_frames(const struct comparison *comparison,
                               struct side_layers *sides, struct nd_error *err)
{
    sides[0].parted =
        nd_arena_alloc(comparison->arena, sides[0].count + 1, sizeof *sides[0].parted);
    if (sides[0].parted == NULL)
        return nd_fail_memory(err);
    ND_TRY(pair_frames(comparison, sides, 0, err));
    return pair_frames(comparison, sides, 1, err);
}
