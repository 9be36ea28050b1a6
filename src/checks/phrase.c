/*
 * Phrases in the arena of the result.
 */
#include "checks/phrase.h"

#include <string.h>

const struct nd_param *nd_params_copy(struct arena *arena, const struct nd_param *params,
                                      size_t count)
{
    struct nd_param *copy = nd_arena_alloc(arena, count, sizeof *copy);

    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = params[i];
        if (params[i].text != NULL)
            copy[i].text = nd_arena_string(arena, params[i].text);
    }
    return copy;
}

struct nd_phrase nd_phrase_make(struct arena *arena, const char *id,
                                const struct nd_param *params, size_t count)
{
    const struct nd_param *copy = nd_params_copy(arena, params, count);

    return (struct nd_phrase){
        .id = id, .params = copy, .param_count = copy == NULL ? 0 : count};
}
