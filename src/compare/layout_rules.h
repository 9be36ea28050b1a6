/*
 * The --layout option.
 */
#ifndef ND_COMPARE_LAYOUT_RULES_H
#define ND_COMPARE_LAYOUT_RULES_H

#include "compare/compare.h"

/* Fills slot_pair.adjusted; ND_ERR_USAGE for a rule that does not read. */
enum nd_status nd_layout_rules_apply(struct comparison *comparison, struct nd_error *err);

#endif
