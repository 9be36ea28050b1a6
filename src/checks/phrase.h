/*
 * Making phrases: an id of the catalogue and the values that its words name.
 */
#ifndef ND_CHECKS_PHRASE_H
#define ND_CHECKS_PHRASE_H

#include "base/arena.h"
#include "normdiff/result.h"

#define ND_NUMBER(key_, value_)                                                            \
    {                                                                                      \
        .key = (key_), .number = (value_)                                                  \
    }
#define ND_WORD(key_, text_)                                                               \
    {                                                                                      \
        .key = (key_), .text = (text_)                                                     \
    }

/* ND_PHRASE(arena, "finding.eps.declared", ND_NUMBER("reference", 1e-5), ...) */
#define ND_PHRASE(arena_, id_, ...)                                                        \
    nd_phrase_make((arena_), (id_), (const struct nd_param[]){__VA_ARGS__},                \
                   sizeof((const struct nd_param[]){__VA_ARGS__}) /                        \
                       sizeof(struct nd_param))

/* A copy in the arena (texts are copied too); without memory a phrase with no values. */
struct nd_phrase nd_phrase_make(struct arena *arena, const char *id,
                                const struct nd_param *params, size_t count);

static inline struct nd_phrase nd_phrase_plain(const char *id)
{
    return (struct nd_phrase){.id = id};
}

/* Copies values for a cause's parameters; NULL without memory. */
const struct nd_param *nd_params_copy(struct arena *arena, const struct nd_param *params,
                                      size_t count);

#endif
