/*
 * Records of log lines: their defaults, and the words that name a slot.
 */
#include "formats/log_record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct log_record nd_log_record_init(void)
{
    struct log_record record = {.step = -1, .rank = -1, .micro_step = -1};

    for (int i = 0; i < STATISTIC_COUNT; i++)
        record.statistics.value[i] = (double)NAN;
    return record;
}

void nd_log_record_put(struct log_record *record, enum statistic which, double value,
                       double half_unit)
{
    struct statistics *statistics = &record->statistics;

    if (statistics->is_nan[which] || !isnan(statistics->value[which]))
        return; /* the first print counts */
    statistics->value[which] = value;
    statistics->half_unit[which] = half_unit;
    statistics->is_nan[which] = isnan(value);
    record->printed++;
}

/* "[0]", ".0", "_0", "0", several of them, as ".0.1" to out; false if anything else. */
static bool slot_numbers(struct slice rest, char out[28])
{
    size_t len = 0;

    for (size_t at = 0; at < rest.len;) {
        const bool bracket = rest.at[at] == '[';
        if (bracket || rest.at[at] == '.' || rest.at[at] == '_')
            at++;
        const size_t digits = at;
        if (len + 1 < 28)
            out[len++] = '.';
        while (at < rest.len && nd_char_digit(rest.at[at]) && len + 1 < 28)
            out[len++] = rest.at[at++];
        if (at == digits || (bracket && (at == rest.len || rest.at[at++] != ']')))
            return false;
    }
    out[len] = '\0';
    return true;
}

bool nd_log_slot(struct slice word, char slot[32])
{
    static const char *const ins[] = {"inputs", "input", "in"};
    static const char *const outs[] = {"outputs", "output", "out"};
    const char *kind = NULL;
    char numbers[28] = ".0";
    size_t at = 0;

    for (size_t i = 0; i < 3 && kind == NULL; i++) {
        if (word.len >= (at = strlen(ins[i])) && strncasecmp(word.at, ins[i], at) == 0)
            kind = "input";
        else if (word.len >= (at = strlen(outs[i])) &&
                 strncasecmp(word.at, outs[i], at) == 0)
            kind = "output";
    }
    if (kind == NULL ||
        (at < word.len &&
         !slot_numbers((struct slice){word.at + at, word.len - at}, numbers)))
        return false;
    snprintf(slot, 32, "%s%.20s", kind, numbers);
    return true;
}
