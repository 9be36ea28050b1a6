/*
 * Layers made comparable for the sequence.
 */
#include "compare/align_token.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is read to tell calls apart: a hint, so large tensors and many of them are left out.
 */
enum { MAX_ELEMENTS = 1 << 16, MAX_PRINTED = 8192 };

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static const uint64_t HASH_BEGIN = 0xcbf29ce484222325u;

/* 0 for a layer without such a slot. */
static uint64_t shape_of(const struct dump_layer *layer, const char *kind)
{
    const struct dump_slot *slot = nd_first_slot(layer, kind);

    if (slot == NULL || !slot->has_shape)
        return 0;
    const struct nd_shape shape = nd_slot_squeezed(slot);
    return hash_bytes(HASH_BEGIN, shape.dim, shape.rank * sizeof *shape.dim) | 1;
}

void nd_align_family(const struct comparison *comparison, const struct dump_layer *layer,
                     char *buf, size_t size)
{
    if (comparison->family != NULL && comparison->family(layer->type, buf, size))
        return;
    const size_t len = strlen(layer->type) < size - 1 ? strlen(layer->type) : size - 1;
    memcpy(buf, layer->type, len);
    buf[len] = '\0';
}

/* Attention writes heads apart or together: [B, S, H] is [B, N, S, D]. */
static uint64_t count_of(const struct dump_layer *layer, const char *kind)
{
    const struct dump_slot *slot = nd_first_slot(layer, kind);
    uint64_t count;

    if (slot == NULL || !slot->has_shape ||
        !nd_shape_count(slot->logical != NULL ? slot->logical : &slot->storage, &count))
        return 0;
    return hash_bytes(HASH_BEGIN, &count, sizeof count) | 1;
}

static uint64_t text_hash(const char *text, size_t len)
{
    return len == 0 ? 0 : hash_bytes(HASH_BEGIN, text, len) | 1;
}

/* A module's parent is the path above it: what is on top has the same one as its like. */
static enum nd_status token_module(struct arena *arena, const struct dump_layer *layer,
                                   struct token *token, struct nd_error *err)
{
    const char *name = nd_normalised_name(arena, layer->name);
    const char *dot = name == NULL ? NULL : strrchr(name, '.');

    if (name == NULL)
        return nd_fail_memory(err);
    token->type = text_hash(layer->type, strlen(layer->type));
    token->parent = dot == NULL ? 0 : text_hash(name, (size_t)(dot - name));
    return ND_OK;
}

static int token_order(const void *a, const void *b)
{
    const struct token *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->direction != y->direction)
        return x->direction < y->direction ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

enum nd_status nd_tokens_make(const struct comparison *comparison,
                              const struct side_layers *side, struct tokens *ret,
                              struct nd_error *err)
{
    struct tokens tokens = {.count = side->count};
    char kind[64];

    tokens.items = nd_arena_alloc(comparison->arena, side->count + 1, sizeof *tokens.items);
    if (tokens.items == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < side->count; i++) {
        const struct dump_layer *layer = side->layers[i];
        struct token *token = &tokens.items[i];
        size_t base;
        *token = (struct token){.step = layer->step,
                                .rank = layer->rank,
                                .direction = layer->direction,
                                .index = i};
        if (side->partner[i] != ND_NO_INDEX)
            continue; /* its place is all that counts */
        token->output = shape_of(layer, "output.");
        token->input = shape_of(layer, "input.");
        token->is_call = nd_call_base(layer->name, &base);
        nd_align_family(comparison, layer, kind, sizeof kind);
        if (strcmp(kind, "attention") == 0)
            token->output = count_of(layer, "output.");
        /* A collective may return nothing, a dump may hold inputs alone. */
        if (token->is_call && token->output == 0)
            token->output = ~token->input;
        /* A block's class may be called after what is in it. */
        if (kind[0] != '\0' && !layer->container)
            token->kind = text_hash(kind, strlen(kind));
        if (!token->is_call)
            ND_TRY(token_module(comparison->arena, layer, token, err));
    }
    if (tokens.count > 1)
        qsort(tokens.items, tokens.count, sizeof *tokens.items, token_order);
    *ret = tokens;
    return ND_OK;
}

static int group_order(const struct token *x, const struct token *y)
{
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->direction > y->direction) - (x->direction < y->direction);
}

static size_t group_end(const struct tokens *tokens, size_t from)
{
    size_t to = from + 1;

    while (to < tokens->count && group_order(&tokens->items[from], &tokens->items[to]) == 0)
        to++;
    return to;
}

bool nd_tokens_next(const struct tokens *tokens, struct place_range *inout_a,
                    struct place_range *inout_b)
{
    size_t i = inout_a->to, k = inout_b->to;

    while (i < tokens[0].count && k < tokens[1].count) {
        const int order = group_order(&tokens[0].items[i], &tokens[1].items[k]);
        const size_t to_a = group_end(&tokens[0], i), to_b = group_end(&tokens[1], k);
        if (order == 0) {
            *inout_a = (struct place_range){i, to_a};
            *inout_b = (struct place_range){k, to_b};
            return true;
        }
        i = order < 0 ? to_a : i;
        k = order > 0 ? to_b : k;
    }
    return false;
}

/* --- prints -------------------------------------------------------------------------- */

static struct print print_measured(const struct dump *dump, const struct dump_slot *slot)
{
    static const struct print unknown;
    struct open_slot open;
    struct nd_error err;
    struct print print = {.known = true, .max = -(double)INFINITY, .min = (double)INFINITY};
    double values[256], sum = 0, squares = 0;
    uint64_t elements;

    if (!nd_shape_count(&slot->storage, &elements) || elements > MAX_ELEMENTS)
        return unknown;
    if (slot->evidence != ND_EVIDENCE_VALUES || slot->broken != NULL ||
        dump->file_count == 0 || slot->dtype == ND_DTYPE_NONE ||
        slot->extent.codec != CODEC_STORED ||
        nd_dtype_info(slot->dtype)->kind == ND_KIND_COMPLEX ||
        nd_slot_open(dump, slot, &open, &err) != ND_OK)
        return unknown;
    const uint64_t count = open.view.count;
    for (uint64_t at = 0; count <= MAX_ELEMENTS && at < count;) {
        const uint64_t n = count - at < 256 ? count - at : 256;
        nd_view_decode(&open.view, at, n, values);
        for (uint64_t i = 0; i < n; i++) {
            print.max = values[i] > print.max ? values[i] : print.max;
            print.min = values[i] < print.min ? values[i] : print.min;
            sum += values[i];
            squares += values[i] * values[i];
        }
        at += n;
    }
    const bool fine = nd_slot_close(&open);
    if (!fine || count == 0 || count > MAX_ELEMENTS)
        return unknown;
    print.mean = sum / (double)count;
    print.norm = sqrt(squares);
    return print;
}

struct print nd_slot_print(const struct dump *dump, const struct dump_slot *slot)
{
    const double *value = slot->statistics.value;
    struct print print = {.known = slot->has_statistics,
                          .max = value[STATISTIC_MAX],
                          .min = value[STATISTIC_MIN],
                          .mean = value[STATISTIC_MEAN],
                          .norm = value[STATISTIC_NORM]};

    if (!print.known || isnan(print.norm) || isnan(print.mean))
        print = print_measured(dump, slot);
    print.known = print.known && isfinite(print.max) && isfinite(print.min) &&
                  isfinite(print.mean) && isfinite(print.norm) && print.norm > 0;
    return print;
}

void nd_token_print(const struct comparison *comparison, unsigned side,
                    const struct side_layers *sides, struct tokens *tokens, size_t i)
{
    struct token *token = &tokens->items[i];
    const struct dump_layer *layer = sides[side].layers[token->index];
    const struct dump *dump = comparison->dump[side];
    const struct dump_slot *out = nd_first_slot(layer, "output."),
                           *in = nd_first_slot(layer, "input.");

    if (token->is_printed || tokens->printed >= MAX_PRINTED)
        return;
    token->is_printed = true;
    tokens->printed++;
    if (out != NULL)
        token->out = nd_slot_print(dump, out);
    if (in != NULL)
        token->in = nd_slot_print(dump, in);
}

static bool within(double a, double b, double limit)
{
    return fabs(a - b) <= limit;
}

/* A print that four numbers make agrees by chance in none of them; 16 bits round by 2^-8.
 */
enum prints nd_prints_agree(const struct print *a, const struct print *b)
{
    if (!a->known || !b->known)
        return PRINTS_DIFFER;
    const double scale =
        fmax(fmax(fabs(a->max), fabs(a->min)), fmax(fabs(b->max), fabs(b->min)));
    const double norm = fmax(a->norm, b->norm);
    for (double share = 1e-4; share < 0.05; share *= 100)
        if (within(a->norm, b->norm, share * norm) &&
            within(a->max, b->max, share * scale) &&
            within(a->min, b->min, share * scale) &&
            within(a->mean, b->mean, share * scale))
            return share < 1e-3 ? PRINTS_EQUAL : PRINTS_CLOSE;
    return PRINTS_DIFFER;
}
