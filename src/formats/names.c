/*
 * From a tensor's name to its layer and slot, for containers that know names only.
 *
 *   1. LAYER.input.N, LAYER.output.N (nested: N.K): that slot; [N] may stand for .N
 *   2. LAYER.param.X, .grad.X, .state.X, .state_after.X: that slot
 *   3. LAYER.weight, .bias, .gamma, .beta: param.X
 *   4. LAYER.running_mean, .running_var, .num_batches_tracked: state.X
 *   5. anything else: the whole name is the layer, the slot output.0
 *
 * Every '/' may stand for a '.'.  Where nothing is left for the layer's name, the whole
 * name is that too, so that no two tensors are merged by accident.
 */
#include "formats/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name_split {
    size_t layer_len;
    char slot[64]; /* "" where X is too long to be anybody's slot */
};

static bool is_separator(char c)
{
    return c == '.' || c == '/';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Start of the component that ends before `end`. */
static size_t component_at(const char *name, size_t end)
{
    while (end > 0 && !is_separator(name[end - 1]))
        end--;
    return end;
}

static bool component_in(const char *at, size_t len, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strlen(*words) == len && memcmp(at, *words, len) == 0)
            return true;
    return false;
}

/* Start of a run of numbers that ends the name: ".0", ".0.1", "[0][1]"; `end` if none. */
static size_t numbers_at(const char *name, size_t end)
{
    size_t at = end;

    for (;;) {
        size_t i = at;
        const bool bracket = i > 0 && name[i - 1] == ']';
        if (bracket)
            i--;
        const size_t digits_end = i;
        while (i > 0 && is_digit(name[i - 1]))
            i--;
        if (i == digits_end || i == 0 ||
            (bracket ? name[i - 1] != '[' : !is_separator(name[i - 1])))
            return at;
        at = i - 1;
    }
}

/* Rule 1.  The slot is rewritten with dots. */
static bool split_numbered(const char *name, size_t len, struct name_split *split)
{
    static const char *const words[] = {"input", "output", NULL};
    const size_t at = numbers_at(name, len);
    const size_t word_at = component_at(name, at);
    size_t out = 0;

    if (at == len || len - word_at >= sizeof split->slot ||
        !component_in(name + word_at, at - word_at, words))
        return false;
    for (size_t i = word_at; i < len; i++)
        if (name[i] != ']')
            split->slot[out++] = name[i] == '/' || name[i] == '[' ? '.' : name[i];
    split->slot[out] = '\0';
    split->layer_len = word_at == 0 ? 0 : word_at - 1;
    return true;
}

/* Rules 2 to 4. */
static bool split_named(const char *name, size_t len, struct name_split *split)
{
    static const char *const groups[] = {"param", "grad", "state", "state_after", NULL};
    static const char *const params[] = {"weight", "bias", "gamma", "beta", NULL};
    static const char *const states[] = {"running_mean", "running_var",
                                         "num_batches_tracked", NULL};
    const size_t at = component_at(name, len);
    const size_t word_len = len - at;
    const size_t before = at == 0 ? 0 : at - 1;
    const size_t group_at = component_at(name, before);
    const char *group = NULL;

    if (word_len == 0 || word_len + 16 > sizeof split->slot)
        return false;
    split->layer_len = before;
    if (at > 0 && component_in(name + group_at, before - group_at, groups)) {
        snprintf(split->slot, sizeof split->slot, "%.*s.%.*s", (int)(before - group_at),
                 name + group_at, (int)word_len, name + at);
        split->layer_len = group_at == 0 ? 0 : group_at - 1;
        return true;
    }
    if (component_in(name + at, word_len, params))
        group = "param";
    else if (component_in(name + at, word_len, states))
        group = "state";
    if (group == NULL)
        return false;
    snprintf(split->slot, sizeof split->slot, "%s.%.*s", group, (int)word_len, name + at);
    return true;
}

static struct name_split name_split(const char *name)
{
    struct name_split split = {0};
    const size_t len = strlen(name);

    if (!split_numbered(name, len, &split) && !split_named(name, len, &split))
        split = (struct name_split){.slot = "output.0"};
    if (split.layer_len == 0)
        split.layer_len = len;
    return split;
}

/* --- layers and slots by name -------------------------------------------------------- */

void nd_names_done(struct dump *dump)
{
    nd_name_table_free(dump->names);
    dump->names = NULL;
}

/* It is freed when a dump is indexed; whoever adds to it later gets another. */
static struct arena *scratch_of(struct dump *dump)
{
    if (dump->scratch == NULL)
        dump->scratch = nd_arena_new();
    return dump->scratch;
}

static bool key_add(struct dump *dump, const struct name_key *key)
{
    struct arena *const scratch = scratch_of(dump);
    return scratch != NULL && nd_name_add(&dump->names, scratch, key);
}

/* The layer to put the slot in: the latest of its name, or, if that one has such a slot
 * already, one call more of it. */
static enum nd_status layer_for(struct dump *dump, const char *layer_name, const char *slot,
                                size_t *ret_index, struct nd_error *err)
{
    struct name_key wanted = {.layer = layer_name, .step = dump->step, .rank = dump->rank};
    struct name_key *const found = nd_name_find(dump->names, &wanted);
    int64_t call = 0;

    if (found != NULL) {
        const struct name_key slot_key = {.slot = slot, .index = found->index};
        *ret_index = found->index;
        if (nd_name_find(dump->names, &slot_key) == NULL)
            return ND_OK;
        call = dump->layers[found->index].call + 1;
    }
    struct dump_layer *const layer = nd_dump_push_layer(dump, layer_name, "");
    if (layer == NULL)
        return nd_fail_memory(err);
    layer->call = call;
    *ret_index = dump->layer_count - 1;
    if (found != NULL) {
        found->index = *ret_index;
        return ND_OK;
    }
    wanted.layer = layer->name;
    wanted.index = *ret_index;
    return key_add(dump, &wanted) ? ND_OK : nd_fail_memory(err);
}

static enum nd_status add_named(struct dump *dump, const char *layer_name,
                                const char *slot_name, const struct dump_slot *slot,
                                struct nd_error *err)
{
    struct dump_slot named = *slot;
    size_t index = 0;

    ND_TRY(layer_for(dump, layer_name, slot_name, &index, err));
    named.name = slot_name;
    struct dump_layer *const layer = &dump->layers[index];
    ND_TRY(nd_dump_add_slot(dump, layer, &named, err));
    const struct name_key key = {.slot = layer->slots[layer->slot_count - 1].name,
                                 .index = index};
    return key_add(dump, &key) ? ND_OK : nd_fail_memory(err);
}

static enum nd_status add_split(struct dump *dump, const char *name,
                                const struct dump_slot *slot, struct nd_error *err)
{
    const struct name_split split = name_split(name);
    struct arena *const scratch = scratch_of(dump);
    char *const layer =
        scratch == NULL ? NULL : nd_arena_copy(scratch, name, split.layer_len);

    if (layer == NULL)
        return nd_fail_memory(err);
    return add_named(dump, layer, split.slot, slot, err);
}

enum nd_status nd_dump_add_tensor(struct dump *dump, const char *name,
                                  const struct dump_slot *slot, struct nd_error *err)
{
    const char *full = name;

    if (strlen(name) > ND_MAX_NAME)
        return nd_fail(err, ND_ERR_LIMIT, "tensor names of at most 4096 bytes",
                       "a name of %zu bytes", strlen(name));
    if (dump->prefix != NULL && strcmp(name, dump->prefix) != 0) {
        struct arena *const scratch = scratch_of(dump);
        full = scratch == NULL ? NULL
                               : nd_arena_format(scratch, "%s/%s", dump->prefix, name);
    }
    return full == NULL ? nd_fail_memory(err) : add_split(dump, full, slot, err);
}

enum nd_status nd_dump_add_lone(struct dump *dump, size_t file,
                                const struct dump_slot *slot, struct nd_error *err)
{
    const char *const stem = nd_dump_stem(dump, file);

    if (stem == NULL)
        return nd_fail_memory(err);
    if (dump->is_lone)
        return add_named(dump, stem, "output.0", slot, err);
    return add_split(dump, stem, slot, err);
}

/* --- stems ------------------------------------------------------------------------- */

/* Extensions that dumps have.  Layers have dots in their names, so that only these are
 * cut in directories. */
static const char *const extensions[] = {
    "npy", "npz",  "pt",  "pth", "ckpt",        "bin",  "raw",    "dat",
    "log", "json", "txt", "csv", "safetensors", "dump", "tensor", NULL};

static bool extension_is(const char *at, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(at, word, len) == 0;
}

static bool extension_known(const char *at, size_t len)
{
    for (const char *const *word = extensions; *word != NULL; word++)
        if (extension_is(at, len, *word))
            return true;
    return false;
}

/* Anything but a number, for a file that stands alone: "conv1.tensor", not "conv1.0". */
static bool extension_any(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (at[i] < '0' || at[i] > '9')
            return true;
    return false;
}

/* Length of a name without its extension; a leading dot starts none. */
static size_t stem_len(const char *name, size_t len, bool is_lone)
{
    size_t dot = len;

    while (dot > 0 && name[dot - 1] != '.' && name[dot - 1] != '/')
        dot--;
    if (dot < 2 || name[dot - 1] != '.' || name[dot - 2] == '/')
        return len;
    const char *const at = name + dot;
    if (extension_is(at, len - dot, "gz"))
        return stem_len(name, dot - 1, is_lone);
    const bool cut =
        is_lone ? extension_any(at, len - dot) : extension_known(at, len - dot);
    return cut ? dot - 1 : len;
}

const char *nd_dump_path_stem(struct dump *dump, const char *path)
{
    return nd_arena_copy(dump->arena, path, stem_len(path, strlen(path), false));
}

const char *nd_dump_stem(struct dump *dump, size_t file)
{
    const struct dump_file *const at = &dump->files[file];
    const char *name = at->open_name;

    if (at->stem != NULL)
        return at->stem;
    const bool is_lone = name == NULL;
    if (is_lone) {
        const char *const slash = strrchr(at->path, '/');
        name = slash == NULL ? at->path : slash + 1;
        if (strcmp(name, "-") == 0)
            return "stdin";
    }
    return nd_arena_copy(dump->arena, name, stem_len(name, strlen(name), is_lone));
}

bool nd_slot_numbered(const char *name, const char *head, size_t below, size_t *ret_number)
{
    const size_t len = strlen(head);
    char *end;

    if (strncmp(name, head, len) != 0 || !is_digit(name[len]))
        return false;
    const unsigned long number = strtoul(name + len, &end, 10);
    *ret_number = number;
    return *end == '\0' && number < below;
}
