/*
 * Pairing by order what names cannot pair: calls of functions with calls of other names
 * ("NPU.npu_rms_norm.0.forward" beside "Functional.rms_norm.0.forward") and with modules
 * ("Module.fc1.Linear.forward.0" beside "Functional.linear.2.forward"), and modules of
 * other names with modules of the same parent.
 *
 *   1. layers that are paired already divide both runs into spans
 *   2. within a span, the best common sequence of equal kind of operator and output shape;
 *      of several, the one whose values, input shapes and names agree better
 *   3. what has no partner there is passed over: one operator for several is no pair
 *
 * The dtype takes no part, as everywhere in pairing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/align_token.h"

/* Cells of one span's table; a longer span is searched along its diagonal. */
enum { MAX_CELLS = 8 * 1024 * 1024, MIN_BAND = 32 };

/* A pair outweighs everything that is known of it, and what is known outweighs its name. */
enum {
    WEIGHT_PAIR = 128,
    WEIGHT_CLOSE = 16,
    WEIGHT_EQUAL = 24,
    WEIGHT_SHAPE = 4,
    WEIGHT_NAME = 1
};

struct span {
    struct side_layers *sides;
    struct tokens *tokens; /* of both sides */
    const size_t *list[2]; /* places of tokens */
    size_t count[2];
    size_t band;
    uint32_t *best; /* (count[0] + 1) rows of `band` cells */
};

static const struct token *span_token(const struct span *span, unsigned side, size_t i)
{
    return &span->tokens[side].items[span->list[side][i]];
}

/* The first column of a row's band. */
static size_t band_from(const struct span *span, size_t i)
{
    const size_t na = span->count[0], nb = span->count[1];
    const size_t middle = (size_t)((double)i / (double)na * (double)nb);
    const size_t half = span->band / 2;
    const size_t last = nb + 1 > span->band ? nb + 1 - span->band : 0;

    return middle < half ? 0 : middle - half < last ? middle - half : last;
}

static uint32_t best_of(const struct span *span, size_t i, size_t k)
{
    const size_t from = band_from(span, i);

    return k < from || k - from >= span->band ? 0 : span->best[i * span->band + (k - from)];
}

static uint32_t print_weight(const struct print *a, const struct print *b)
{
    switch (nd_prints_agree(a, b)) {
    case PRINTS_EQUAL:
        return WEIGHT_EQUAL;
    case PRINTS_CLOSE:
        return WEIGHT_CLOSE;
    case PRINTS_DIFFER:
        break;
    }
    return 0;
}

static bool may_pair(const struct token *a, const struct token *b)
{
    if (a->output == 0 || a->output != b->output)
        return false;
    const bool same_kind = a->kind != 0 && a->kind == b->kind;
    if (a->is_call || b->is_call)
        return same_kind;
    return a->parent == b->parent && a->type != 0 && (same_kind || a->type == b->type);
}

/* 0: no pair. */
static uint32_t pair_weight(const struct span *span, size_t i, size_t k)
{
    const struct token *a = span_token(span, 0, i), *b = span_token(span, 1, k);

    if (!may_pair(a, b))
        return 0;
    const char *x = span->sides[0].layers[a->index]->name,
               *y = span->sides[1].layers[b->index]->name;
    return WEIGHT_PAIR + (uint32_t)(a->input == b->input) * WEIGHT_SHAPE +
           (uint32_t)(strcmp(x, y) == 0) * WEIGHT_NAME + print_weight(&a->out, &b->out) +
           print_weight(&a->in, &b->in);
}

static void fill_table(struct span *span)
{
    const size_t na = span->count[0], nb = span->count[1];

    for (size_t i = na; i-- > 0;) {
        const size_t from = band_from(span, i);
        size_t k = from + span->band < nb ? from + span->band : nb;
        for (; k-- > from;) {
            const uint32_t down = best_of(span, i + 1, k), right = best_of(span, i, k + 1);
            const uint32_t weight = pair_weight(span, i, k);
            uint32_t most = down > right ? down : right;
            if (weight > 0 && best_of(span, i + 1, k + 1) + weight > most)
                most = best_of(span, i + 1, k + 1) + weight;
            span->best[i * span->band + (k - from)] = most;
        }
    }
}

static void take_pair(struct span *span, size_t i, size_t k)
{
    const size_t a = span_token(span, 0, i)->index, b = span_token(span, 1, k)->index;
    const bool same =
        strcmp(span->sides[0].layers[a]->name, span->sides[1].layers[b]->name) == 0;

    nd_align_pair(span->sides, a, b, same ? ND_MATCH_EXACT : ND_MATCH_ORDER);
}

static void take_best(struct span *span)
{
    for (size_t i = 0, k = 0; i < span->count[0] && k < span->count[1];) {
        const uint32_t weight = pair_weight(span, i, k);
        const uint32_t down = best_of(span, i + 1, k), right = best_of(span, i, k + 1);
        const uint32_t most = down > right ? down : right;
        if (weight > 0 && best_of(span, i + 1, k + 1) + weight >= most &&
            best_of(span, i, k) == best_of(span, i + 1, k + 1) + weight)
            take_pair(span, i++, k++);
        else if (down >= right)
            i++;
        else
            k++;
    }
}

static enum nd_status pair_span(const struct comparison *comparison, struct span *span,
                                struct nd_error *err)
{
    if (span->count[0] == 0 || span->count[1] == 0)
        return ND_OK;
    for (unsigned side = 0; side < 2; side++)
        for (size_t i = 0; i < span->count[side]; i++)
            nd_token_print(comparison, side, span->sides, &span->tokens[side],
                           span->list[side][i]);
    const size_t rows = span->count[0] + 1, room = MAX_CELLS / rows;
    span->band = span->count[1] + 1;
    if (span->band > room)
        span->band = room > MIN_BAND ? room : MIN_BAND;
    if (span->band > span->count[1] + 1)
        span->band = span->count[1] + 1;
    span->best = calloc(rows * span->band, sizeof *span->best);
    if (span->best == NULL)
        return nd_fail_memory(err);
    fill_table(span);
    take_best(span);
    free(span->best);
    return ND_OK;
}

/* --- spans between pairs ------------------------------------------------------------- */

/* The longest rising subsequence of partners: pairs that stand in one order on both sides.
 * after[i] is the place on the other side of token i if it is one of them. */
static enum nd_status find_fixed(const struct side_layers *sides,
                                 const struct tokens *tokens, struct place_range a,
                                 const size_t *place, size_t *after, struct nd_error *err)
{
    const size_t count = a.to - a.from;
    size_t *tail = malloc((count + 1) * sizeof *tail); /* places in a of the best ends */
    size_t *before = malloc((count + 1) * sizeof *before);
    size_t len = 0;

    if (tail == NULL || before == NULL) {
        free(tail);
        free(before);
        return nd_fail_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        const size_t partner = sides[0].partner[tokens[0].items[a.from + i].index];
        const size_t at = partner == ND_NO_INDEX ? ND_NO_INDEX : place[partner];
        size_t low = 0, high = len;
        after[i] = ND_NO_INDEX;
        if (at == ND_NO_INDEX)
            continue;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            const size_t end =
                sides[0].partner[tokens[0].items[a.from + tail[middle]].index];
            if (place[end] < at)
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low == 0 ? ND_NO_INDEX : tail[low - 1];
        tail[low] = i;
        len += low == len;
    }
    for (size_t i = len == 0 ? ND_NO_INDEX : tail[len - 1]; i != ND_NO_INDEX; i = before[i])
        after[i] = place[sides[0].partner[tokens[0].items[a.from + i].index]];
    free(tail);
    free(before);
    return ND_OK;
}

/* Unpaired tokens of places [from, to) with a partner to look for. */
static size_t collect(const struct side_layers *side, const struct tokens *tokens,
                      size_t from, size_t to, size_t *list)
{
    size_t count = 0;

    for (size_t i = from; i < to; i++)
        if (side->partner[tokens->items[i].index] == ND_NO_INDEX &&
            (tokens->items[i].kind != 0 || tokens->items[i].type != 0))
            list[count++] = i;
    return count;
}

/* One step, rank and direction: places [a) of the reference, [b) of the candidate. */
static enum nd_status pair_group(const struct comparison *comparison,
                                 struct side_layers *sides, struct tokens *tokens,
                                 struct place_range a, struct place_range b,
                                 const size_t *place, struct nd_error *err)
{
    const size_t na = a.to - a.from;
    size_t *room = malloc((2 * na + (b.to - b.from) + 3) * sizeof *room);
    size_t *after = room, *list_a = room + na + 1, *list_b = room + 2 * na + 2;
    size_t from_a = a.from, from_b = b.from;

    if (room == NULL)
        return nd_fail_memory(err);
    enum nd_status status = find_fixed(sides, tokens, a, place, after, err);
    for (size_t i = 0; i <= na && status == ND_OK; i++) {
        if (i < na && after[i] == ND_NO_INDEX)
            continue;
        const size_t to_b = i < na ? after[i] : b.to;
        struct span span = {
            .sides = sides, .tokens = tokens, .list = {list_a, list_b}
        };
        span.count[0] = collect(&sides[0], &tokens[0], from_a, a.from + i, list_a);
        span.count[1] = collect(&sides[1], &tokens[1], from_b, to_b, list_b);
        status = pair_span(comparison, &span, err);
        from_a = a.from + i + 1;
        from_b = to_b + 1;
    }
    free(room);
    return status;
}

static bool any_alone(const struct side_layers *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->partner[i] == ND_NO_INDEX)
            return true;
    return false;
}

enum nd_status nd_align_sequence(const struct comparison *comparison,
                                 struct side_layers *sides, struct nd_error *err)
{
    struct tokens tokens[2];

    if (!any_alone(&sides[0]) || !any_alone(&sides[1]))
        return ND_OK;
    for (unsigned side = 0; side < 2; side++)
        ND_TRY(nd_tokens_make(comparison, &sides[side], &tokens[side], err));
    size_t *place = nd_arena_alloc(comparison->arena, sides[1].count + 1, sizeof *place);
    if (place == NULL)
        return nd_fail_memory(err);
    struct place_range a = {0, 0}, b = {0, 0};
    for (size_t i = 0; i < sides[1].count; i++)
        place[i] = ND_NO_INDEX;
    while (nd_tokens_next(tokens, &a, &b)) {
        for (size_t k = b.from; k < b.to; k++)
            place[tokens[1].items[k].index] = k;
        ND_TRY(pair_group(comparison, sides, tokens, a, b, place, err));
        for (size_t k = b.from; k < b.to; k++)
            place[tokens[1].items[k].index] = ND_NO_INDEX;
    }
    return ND_OK;
}
