/*
 * The words of the enumerations, as JSON writes them.
 */
#include "normdiff/result.h"

#include <stddef.h>

#define WORD_OF(list, i)                                                                   \
    ((size_t)(i) < sizeof(list) / sizeof(list)[0] ? (list)[i] : "unknown")

const char *nd_tier_word(enum nd_tier tier)
{
    static const char *const words[] = {"exact", "noise",      "reduction", "elevated",
                                        "fault", "unresolved", "checksum",  "none"};

    return WORD_OF(words, tier);
}

const char *nd_evidence_word(enum nd_evidence evidence)
{
    static const char *const words[] = {"values", "statistics", "checksum"};

    return WORD_OF(words, evidence);
}

const char *nd_fail_word(enum nd_fail fail)
{
    static const char *const words[] = {NULL,        "missing", "unreadable", "shape",
                                        "nonfinite", "integer", "dtype",      "drift",
                                        "localised", "checksum"};

    return WORD_OF(words, fail);
}

const char *nd_role_word(enum nd_role role)
{
    static const char *const words[] = {"unknown",   "clean", "origin",
                                        "inherited", "gap",   "container"};

    return WORD_OF(words, role);
}

const char *nd_order_word(enum nd_order order)
{
    static const char *const words[] = {"option", "recorded", "container", "timestamp",
                                        "name"};

    return WORD_OF(words, order);
}

const char *nd_match_word(enum nd_match match)
{
    static const char *const words[] = {"none", "exact", "normalised",
                                        "map",  "order", "lone"};

    return WORD_OF(words, match);
}

const char *nd_verdict_word(enum nd_verdict verdict)
{
    static const char *const words[] = {"agree", "suspect", "drift", "incomplete"};

    return WORD_OF(words, verdict);
}

const char *nd_check_status_word(enum nd_check_status status)
{
    static const char *const words[] = {"ok", "mismatch", "suspect", "unknown"};

    return WORD_OF(words, status);
}

const char *nd_cause_status_word(enum nd_cause_status status)
{
    static const char *const words[] = {"confirmed", "supported", "possible"};

    return WORD_OF(words, status);
}

const char *nd_side_word(enum nd_side side)
{
    static const char *const words[] = {"unknown", "reference", "candidate"};

    return WORD_OF(words, side);
}

const char *nd_step_status_word(enum nd_step_status status)
{
    static const char *const words[] = {"done", "open", "failed"};

    return WORD_OF(words, status);
}
