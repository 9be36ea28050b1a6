/*
 * Layers as the sequence compares them: kind, shapes, and a print of the values.
 */
#ifndef ND_COMPARE_ALIGN_TOKEN_H
#define ND_COMPARE_ALIGN_TOKEN_H

#include "compare/align.h"

/* Statistics of a tensor, as dumped or measured. */
struct print {
    bool known;
    double max, min, mean, norm;
};

enum prints { PRINTS_DIFFER, PRINTS_CLOSE, PRINTS_EQUAL };
/* Are they prints of one tensor, but for rounding (EQUAL) or a small drift (CLOSE)? */
enum prints nd_prints_agree(const struct print *a, const struct print *b);

struct token {
    int64_t step, rank;
    enum direction direction;
    size_t index;           /* among the side's layers */
    uint64_t kind;          /* of operator; 0: unknown */
    uint64_t type, parent;  /* of a module; 0: it has none */
    uint64_t output, input; /* shapes of the first ones */
    bool is_call, is_printed;
    struct print out, in;
};

struct tokens { /* sorted by step, rank and direction, then in order */
    struct token *items;
    size_t count, printed;
};

struct place_range {
    size_t from, to;
};

enum nd_status nd_tokens_make(const struct comparison *comparison,
                              const struct side_layers *side, struct tokens *ret,
                              struct nd_error *err);
/* The next step, rank and direction that both sides have, behind the ranges given. */
bool nd_tokens_next(const struct tokens *tokens, struct place_range *inout_a,
                    struct place_range *inout_b);
/* Fills a token's prints, where values are cheap to read. */
void nd_token_print(const struct comparison *comparison, unsigned side,
                    const struct side_layers *sides, struct tokens *tokens, size_t i);
/* The print of a slot. */
struct print nd_slot_print(const struct dump *dump, const struct dump_slot *slot);

#endif
