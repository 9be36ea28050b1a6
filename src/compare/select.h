/*
 * Which layers and slots the options ask for, and in which order layers stand.
 */
#ifndef ND_COMPARE_SELECT_H
#define ND_COMPARE_SELECT_H

#include "compare/align.h"

struct fusion;

/* The layers of one dump that take part: recomputed calls taken out, --step, --rank,
 * --direction, --include and --exclude applied, in execution order. */
enum nd_status nd_select_layers(struct comparison *comparison, unsigned side,
                                struct side_layers *ret_side, struct nd_error *err);
/* Sorts the reference's layers by the better of the two dumps' orders, then by step. */
enum nd_status nd_select_order(struct comparison *comparison, struct side_layers *sides,
                               const struct fusion *fusion, struct nd_error *err);
bool nd_select_slot(const struct nd_options *options, const char *slot_name);
bool nd_globs_match(const struct nd_strings *globs, const char *name);

#endif
