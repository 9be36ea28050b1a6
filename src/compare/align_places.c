/*
 * Steps and ranks of the two sides: which meet, and which have no counterpart.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/align.h"

enum { PLACES_SHOWN = 8 };

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

/* "dumps/step5/" names a step, "step5/rank0" a rank. */
static bool names_number(const char *path, bool is_rank)
{
    const char *word = is_rank ? "rank" : "step";
    size_t end = strlen(path), at;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (at = end; at > 0 && path[at - 1] != '/';)
        at--;
    const size_t len = strlen(word);
    if (end - at <= len || strncmp(path + at, word, len) != 0)
        return false;
    return strspn(path + at + len, "0123456789") == end - at - len;
}

/* A lone file with one number that the other side does not have is still its counterpart:
 * that somebody named both says so; and so is a folder that is one step's.  Folders of
 * several are paired by number alone. */
static enum nd_status adopt_number(struct comparison *comparison, unsigned side,
                                   bool is_rank, struct nd_error *err)
{
    const struct dump *lone = comparison->dump[side], *other = comparison->dump[!side];
    const int64_t number = first_number(lone, is_rank),
                  first = first_number(other, is_rank);

    if ((lone->root_fd >= 0 && !names_number(lone->path, is_rank)) || number < 0 ||
        first < 0)
        return ND_OK;
    for (size_t i = 0; i < lone->layer_count; i++)
        if (*layer_number(&lone->layers[i], is_rank) != number)
            return ND_OK;
    for (size_t i = 0; i < other->layer_count; i++)
        if (*layer_number(&other->layers[i], is_rank) == number)
            return ND_OK;
    for (size_t i = 0; i < lone->layer_count; i++)
        *layer_number(&lone->layers[i], is_rank) = first;
    return nd_warn(comparison, is_rank ? "warning.rank.adopted" : "warning.step.adopted",
                   (const struct nd_param[]){
                       {"reference", NULL, (double)(side == 0 ? number : first)},
                       {"candidate", NULL, (double)(side == 0 ? first : number)}
    },
                   2, err);
}

/* A side that numbers no steps (or ranks) is one moment, and meets the first of a side that
 * does: a run of ONNX Runtime beside the iterations of a device. */
static void meet_numbers(const struct dump *const dump[2], bool is_rank)
{
    const int64_t first[2] = {first_number(dump[0], is_rank),
                              first_number(dump[1], is_rank)};
    const unsigned bare = first[0] >= 0;

    if ((first[0] < 0) == (first[1] < 0))
        return;
    for (size_t i = 0; i < dump[bare]->layer_count; i++)
        *layer_number(&dump[bare]->layers[i], is_rank) = first[!bare];
}

enum nd_status nd_align_places(struct comparison *comparison, struct nd_error *err)
{
    for (unsigned is_rank = 0; is_rank < 2; is_rank++) {
        if ((is_rank ? comparison->options->rank : comparison->options->step) >= 0)
            continue;
        ND_TRY(adopt_number(comparison, 1, is_rank, err));
        ND_TRY(adopt_number(comparison, 0, is_rank, err));
        meet_numbers(comparison->dump, is_rank);
    }
    return ND_OK;
}

/* --- micro-batches ------------------------------------------------------------------- */

/* A call within its micro-batch: its number counts on over all that the dump holds, and a
 * dump may begin with a later one. */
static const char *micro_key(struct arena *arena, const void *user,
                             const struct dump_layer *layer, unsigned side)
{
    size_t len;

    (void)user;
    (void)side;
    if (layer->micro_step < 0)
        return NULL;
    const char *base = nd_call_base(layer->name, &len)
                           ? nd_arena_copy(arena, layer->name, len)
                           : nd_normalised_name(arena, layer->name);
    return base == NULL
               ? NULL
               : nd_arena_format(arena, "%lld|%s", (long long)layer->micro_step, base);
}

static void pair_micro(struct side_layers *sides, const struct keyed *a, size_t na,
                       const struct keyed *b, size_t nb, enum nd_match match)
{
    for (size_t i = 0; na == nb && i < na; i++) {
        const char *x = sides[0].layers[a[i].index]->name,
                   *y = sides[1].layers[b[i].index]->name;
        nd_align_pair(sides, a[i].index, b[i].index,
                      strcmp(x, y) == 0 ? ND_MATCH_EXACT : match);
    }
}

static bool has_micro_steps(const struct side_layers *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->layers[i]->micro_step >= 0)
            return true;
    return false;
}

enum nd_status nd_align_micro_steps(struct side_layers *sides, struct nd_error *err)
{
    if (!has_micro_steps(&sides[0]) || !has_micro_steps(&sides[1]))
        return ND_OK;
    return nd_align_runs(sides, micro_key, NULL, ND_MATCH_NORMALISED, pair_micro,
                         err);
}

/* --- without counterpart ------------------------------------------------------------- */

struct moment {
    int64_t step, rank;
};

static int moment_order(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The steps and ranks of a side that the options ask for, each once, in order. */
static enum nd_status moments_of(const struct comparison *comparison, unsigned side,
                                 struct moment **ret_list, size_t *ret_count,
                                 struct nd_error *err)
{
    const struct dump *dump = comparison->dump[side];
    const struct nd_options *options = comparison->options;
    struct moment *list =
        nd_arena_alloc(comparison->arena, dump->layer_count + 1, sizeof *list);
    size_t count = 0, kept = 0;

    if (list == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < dump->layer_count; i++) {
        const struct moment at = {dump->layers[i].step, dump->layers[i].rank};
        const bool asked = (options->step < 0 || at.step < 0 || at.step == options->step) &&
                           (options->rank < 0 || at.rank < 0 || at.rank == options->rank);
        if (asked && (count == 0 || moment_order(&list[count - 1], &at) != 0))
            list[count++] = at;
    }
    if (count > 1)
        qsort(list, count, sizeof *list, moment_order);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || moment_order(&list[kept - 1], &list[i]) != 0)
            list[kept++] = list[i];
    *ret_list = list;
    *ret_count = kept;
    return ND_OK;
}

static enum nd_status warn_moment(struct comparison *comparison, const struct moment *at,
                                  unsigned side, struct nd_error *err)
{
    const char *const id = at->rank < 0   ? "warning.only.step"
                           : at->step < 0 ? "warning.only.rank"
                                          : "warning.only.step.rank";

    return nd_warn(comparison, id,
                   (const struct nd_param[]){
                       {"step",         NULL, (double)at->step},
                       {"rank",         NULL, (double)at->rank},
                       {"is_candidate", NULL, (double)side    }
    },
                   3, err);
}

enum nd_status nd_warn_places(struct comparison *comparison, struct nd_error *err)
{
    struct moment *list[2] = {NULL, NULL};
    size_t count[2] = {0, 0}, at[2] = {0, 0}, alone = 0;

    for (unsigned side = 0; side < 2; side++)
        ND_TRY(moments_of(comparison, side, &list[side], &count[side], err));
    while (at[0] < count[0] || at[1] < count[1]) {
        const int order = at[0] == count[0] ? 1
                          : at[1] == count[1]
                              ? -1
                              : moment_order(&list[0][at[0]], &list[1][at[1]]);
        const unsigned side = order > 0;
        if (order != 0 && ++alone <= PLACES_SHOWN)
            ND_TRY(warn_moment(comparison, &list[side][at[side]], side, err));
        at[0] += order <= 0;
        at[1] += order >= 0;
    }
    if (alone <= PLACES_SHOWN)
        return ND_OK;
    return nd_warn(comparison, "warning.only.more",
                   (const struct nd_param[]){
                       {"count", NULL, (double)(alone - PLACES_SHOWN)}
    },
                   1, err);
}

static const char *moment_words(struct arena *arena, const struct moment *at)
{
    const char *words =
        at->step < 0   ? nd_arena_format(arena, "rank %lld", (long long)at->rank)
        : at->rank < 0 ? nd_arena_format(arena, "step %lld", (long long)at->step)
                       : nd_arena_format(arena, "step %lld rank %lld", (long long)at->step,
                                         (long long)at->rank);

    return words == NULL ? "" : words;
}

enum nd_status nd_check_places(const struct comparison *comparison, struct nd_error *err)
{
    struct moment *list[2] = {NULL, NULL};
    size_t count[2] = {0, 0};

    for (unsigned side = 0; side < 2; side++)
        ND_TRY(moments_of(comparison, side, &list[side], &count[side], err));
    for (size_t i = 0, k = 0; i < count[0] && k < count[1];) {
        const int order = moment_order(&list[0][i], &list[1][k]);
        if (order == 0)
            return ND_OK;
        i += order < 0;
        k += order > 0;
    }
    if (count[0] == 0 || count[1] == 0)
        return ND_OK;
    nd_fail(err, ND_ERR_NOTHING, "a step and rank that both sides have",
            "%s in the reference and %s in the candidate, and none in common",
            moment_words(comparison->arena, &list[0][0]),
            moment_words(comparison->arena, &list[1][0]));
    nd_error_file(err, comparison->dump[1]->path);
    nd_error_hint(err,
                  "to compare different steps, name the folder of one step on each side");
    return ND_ERR_NOTHING;
}

/* --- warnings ------------------------------------------------------------------------ */

enum nd_status nd_warn(struct comparison *comparison, const char *id,
                       const struct nd_param *params, size_t count, struct nd_error *err)
{
    struct nd_param *copy = nd_arena_alloc(comparison->arena, count + 1, sizeof *copy);
    struct nd_phrase *list =
        nd_arena_grow(comparison->arena, comparison->warnings, comparison->warning_count,
                      &comparison->warning_capacity, sizeof *list);

    if (copy == NULL || list == NULL)
        return nd_fail_memory(err);
    memcpy(copy, params, count * sizeof *copy);
    comparison->warnings = list;
    list[comparison->warning_count++] = (struct nd_phrase){id, copy, count};
    return ND_OK;
}
