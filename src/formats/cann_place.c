/*
 * What the folders of a CANN dump mean.
 *
 *   [step{N}|{N}/][rank{R}|rank_{R}|..._rank{R}/]{time}/{device}/[MODEL]
 *   MODEL: {model}/[{id}/[{iteration}]]
 *
 * `time` has 14 digits.  The device stands for the rank where nothing else names one.  A
 * folder may be opened at any depth, so that where no time is seen the last numbers are the
 * iteration and, before it, the model's id.
 */
#include "formats/cann_tree.h"

#include <string.h>

enum { MAX_PARTS = 40, TIME_DIGITS = 14 };

struct part {
    const char *at;
    size_t len;
    int64_t number; /* -1: none */
};

static int64_t digits_value(const char *at, size_t len)
{
    int64_t value = 0;

    if (len == 0 || len > 17)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        value = value * 10 + (at[i] - '0');
    }
    return value;
}

static size_t parts_split(const char *path, struct part *parts)
{
    size_t count = 0;

    while (*path != '\0' && count < MAX_PARTS) {
        const size_t len = strcspn(path, "/");
        if (len > 0)
            parts[count++] = (struct part){path, len, digits_value(path, len)};
        path += len;
        path += *path == '/';
    }
    return count;
}

static bool part_is_time(const struct part *part)
{
    return part->len == TIME_DIGITS && part->number >= 0;
}

/* "step3", "rank_1", "worldsize8_global_rank1": the number behind the last such word. */
static int64_t part_tagged(const struct part *part, const char *word)
{
    const size_t len = strlen(word);
    size_t digits = 0;

    while (digits < part->len && part->at[part->len - 1 - digits] >= '0' &&
           part->at[part->len - 1 - digits] <= '9')
        digits++;
    size_t end = part->len - digits;
    if (end > 0 && part->at[end - 1] == '_')
        end--;
    if (digits == 0 || end < len || memcmp(part->at + end - len, word, len) != 0)
        return -1;
    return digits_value(part->at + part->len - digits, digits);
}

/* Behind the time: device, model, id, iteration; each may be missing from the end. */
static void place_behind(const struct part *parts, size_t count, struct tree_place *place,
                         const struct part **ret_model)
{
    size_t at = 0;

    if (at < count && parts[at].number >= 0) {
        place->rank_is_device = place->rank < 0;
        if (place->rank < 0)
            place->rank = parts[at].number;
        at++;
    }
    if (at < count && parts[at].number < 0)
        *ret_model = &parts[at++];
    if (at < count && parts[at].number >= 0)
        at++; /* the model's id, which counts loads of a process */
    if (at < count && parts[at].number >= 0 && place->step < 0)
        place->step = parts[at].number;
}

/* Without a time: the last number is the iteration, one before it the model's id. */
static void place_tail(const struct part *parts, size_t count, struct tree_place *place,
                       const struct part **ret_model)
{
    size_t at = count;

    if (at > 0 && parts[at - 1].number >= 0) {
        at--;
        if (place->step < 0)
            place->step = parts[at].number;
    }
    if (at > 0 && parts[at - 1].number >= 0)
        at--;
    if (at > 0 && at < count)
        *ret_model = &parts[--at];
    if (at > 0 && parts[at - 1].number >= 0 && place->rank < 0) {
        place->rank = parts[at - 1].number;
        place->rank_is_device = true;
    }
}

enum nd_status nd_tree_place(struct arena *arena, const char *path,
                             struct tree_place *ret_place, struct nd_error *err)
{
    struct part parts[MAX_PARTS];
    const size_t count = parts_split(path, parts);
    struct tree_place place = {.step = -1, .rank = -1, .model = ""};
    const struct part *model = NULL;
    size_t first = 0, time = count;

    for (size_t i = 0; i < count; i++) {
        const int64_t step = part_tagged(&parts[i], "step");
        const int64_t rank = part_tagged(&parts[i], "rank");
        if (step >= 0)
            place.step = step;
        else if (rank >= 0)
            place.rank = rank;
        if (step >= 0 || rank >= 0)
            first = i + 1;
        if (part_is_time(&parts[i]))
            time = i;
    }
    if (time < count) {
        if (time > first && parts[time - 1].number >= 0 && place.step < 0)
            place.step = parts[time - 1].number;
        const size_t from = time + 1 > first ? time + 1 : first;
        place_behind(parts + from, count - from, &place, &model);
    } else {
        place_tail(parts + first, count - first, &place, &model);
    }
    if (model != NULL) {
        place.model = nd_arena_copy(arena, model->at, model->len);
        if (place.model == NULL)
            return nd_fail_memory(err);
    }
    *ret_place = place;
    return ND_OK;
}
