/*
 * Lines of key and value.
 *
 *   HEAD PAIR PAIR ... [SLOT PAIR PAIR ...] ...
 *
 * HEAD names the layer ("layers.3.norm:", "enc/ln3 | Stats:", "OUTPUT LayerNorm",
 * "blocks[3] output[0]:"); a PAIR is KEY=VALUE, KEY: VALUE or [KEY]: VALUE; SLOT ("| in",
 * "out") says which tensor the pairs behind it speak of.  Keys that are no statistics of
 * ours are passed over, and so are words between pairs ("min=-4.1 at (0, 12, 7)").
 */
#include "formats/log_head.h"
#include "formats/log_keys.h"

#include <stdio.h>
#include <string.h>

static bool pair_char(char c)
{
    return nd_char_word(c) || c == '-' || c == '.';
}

/* --- pairs --------------------------------------------------------------------------- */

struct pair {
    enum log_key key;
    char slot[32];     /* of "out_max"; "": none */
    char sign;         /* '=' or ':' */
    const char *value; /* behind the sign and blanks */
};

/* A key at p with its sign: "max=", "[MAX]: ", "'max': "; false if none stands there. */
static bool pair_at(const char *p, const char *end, struct pair *ret_pair)
{
    struct pair pair = {0};
    const char opening = *p;
    const bool enclosed = opening == '[' || opening == '\'' || opening == '"';

    p += enclosed;
    struct slice word = {p, 0};
    while (p + word.len < end && pair_char(p[word.len]))
        word.len++;
    p += word.len;
    if (word.len == 0 || word.len > 32)
        return false;
    if (enclosed && (p >= end || *p++ != (opening == '[' ? ']' : opening)))
        return false;
    while (p < end && *p == ' ')
        p++;
    if (p >= end || (*p != '=' && *p != ':'))
        return false;
    pair.sign = *p++;
    if (p < end && (*p == ':' || *p == '='))
        return false; /* "::", "==" */
    while (p < end && *p == ' ')
        p++;
    pair.value = p;
    pair.key = nd_log_key(word);
    if (pair.key == KEY_NONE)
        pair.key = nd_log_key_with_slot(word, pair.slot);
    *ret_pair = pair;
    return true;
}

/* "tensor(0.5, device='npu:0')", "np.float32(0.5)" and the bare number. */
static const char *pair_number(const char *p, const char *end, double *ret_value,
                               double *ret_half_unit)
{
    const char *inner = p;

    while (inner < end && pair_char(*inner))
        inner++;
    const char *after = nd_log_number(p, end, ret_value, ret_half_unit);
    if (after != NULL || inner == p || inner >= end || *inner != '(')
        return after;
    after = nd_log_number(inner + 1, end, ret_value, ret_half_unit);
    if (after == NULL || after >= end || (*after != ')' && *after != ','))
        return NULL;
    while (after < end && *after != ')')
        after++;
    return after < end ? after + 1 : end;
}

static struct slice pair_word(const char *p, const char *end)
{
    struct slice word = {p, 0};

    while (p + word.len < end && strchr(" ,;|)}\"'", p[word.len]) == NULL)
        word.len++;
    return nd_slice_trim(word, "[]");
}

/* Past a value that nobody wants: a bracket whole, else a word. */
static const char *pair_skip(const char *p, const char *end)
{
    if (p < end && (*p == '(' || *p == '[' || *p == '{')) {
        size_t depth = 0;
        for (; p < end; p++) {
            depth += *p == '(' || *p == '[' || *p == '{';
            if ((*p == ')' || *p == ']' || *p == '}') && --depth == 0)
                return p + 1;
        }
        return p;
    }
    while (p < end && *p != ' ' && *p != ',')
        p++;
    return p;
}

/* "12/8192" or "12" NaNs. */
static const char *pair_nan_count(const char *p, const char *end, struct log_record *record)
{
    uint64_t count = 0;
    size_t len = 0;

    while (p + len < end && nd_char_digit(p[len]) && len < 18)
        count = count * 10 + (uint64_t)(p[len++] - '0');
    if (len == 0)
        return pair_skip(p, end);
    record->statistics.nan_count = count;
    p += len;
    if (p < end && *p == '/')
        while (p + 1 < end && nd_char_digit(p[1]))
            p++;
    return p < end && *p == '/' ? p + 1 : pair_skip(p, end);
}

/* Takes the value of a known key into the record; returns the position behind it. */
static const char *pair_take(const struct pair *pair, const char *end,
                             struct log_record *record)
{
    const char *p = pair->value, *after = NULL;
    double value, half;

    switch (pair->key) {
    case KEY_MAX:
    case KEY_MIN:
    case KEY_MEAN:
    case KEY_NORM:
        after = pair_number(p, end, &value, &half);
        if (after != NULL)
            nd_log_record_put(record, (enum statistic)(pair->key - KEY_MAX), value, half);
        break;
    case KEY_ABS_MAX:
    case KEY_ABS_MEAN:
        after = pair_number(p, end, &value, &half);
        if (after != NULL) {
            record->absolute[pair->key - KEY_ABS_MAX] =
                (struct log_number){value, half, true};
            record->has_absolute = true;
        }
        break;
    case KEY_NAN:
        return pair_nan_count(p, end, record);
    case KEY_SHAPE:
        after = nd_log_shape(p, end, &record->shape);
        record->has_shape = record->has_shape || after != NULL;
        break;
    case KEY_DTYPE:
        record->dtype = pair_word(p, end);
        break;
    case KEY_DEVICE:
        record->device = pair_word(p, end);
        break;
    default:
        break;
    }
    return after != NULL ? after : pair_skip(p, end);
}

/* --- lines --------------------------------------------------------------------------- */

struct pair_line {
    struct log_record *records; /* [count] is the one being filled */
    size_t count;
    struct slice named; /* by NAME=, if the head names nothing */
    bool only_equals;   /* every key so far had '=' */
    bool full;
};

static bool line_boundary(const char *p, const char *line)
{
    return p == line || strchr(" ,;|:([{=>*`'\"", p[-1]) != NULL;
}

/* The first known key with a value, or NULL: the head ends there. */
static const char *line_first_pair(const char *line, const char *end, struct pair *ret_pair)
{
    for (const char *p = line; p < end; p++) {
        double value, half;
        if (!line_boundary(p, line) || !(pair_char(*p) || strchr("['\"", *p) != NULL) ||
            !pair_at(p, end, ret_pair) || ret_pair->key == KEY_NONE)
            continue;
        if (ret_pair->key > KEY_NORM ||
            pair_number(ret_pair->value, end, &value, &half) != NULL)
            return p;
    }
    return NULL;
}

static bool record_holds(const struct log_record *record)
{
    return record->printed > 0 || record->statistics.nan_count > 0 || record->has_absolute;
}

/* Statistics of absolute values stand in where there are no others. */
static void record_settle(struct log_record *record)
{
    static const enum statistic as[2] = {STATISTIC_MAX, STATISTIC_MEAN};

    record->has_absolute = record->has_absolute && record->printed == 0;
    for (int i = 0; i < 2 && record->has_absolute; i++)
        if (record->absolute[i].is_there)
            nd_log_record_put(record, as[i], record->absolute[i].value,
                              record->absolute[i].half_unit);
}

/* Begins the next record if the one being filled has something. */
static void line_switch(struct pair_line *line, const char slot[32])
{
    struct log_record *record = &line->records[line->count];

    if (record_holds(record)) {
        if (line->count + 1 == ND_LOG_GROUPS) {
            line->full = true;
            return;
        }
        const struct log_record *before = record;
        line->count++;
        line->records[line->count] = nd_log_record_init();
        record = &line->records[line->count];
        record->dtype = before->dtype;
        record->device = before->device;
    }
    memcpy(record->slot, slot, 32);
}

/* A word that is no key: "out" and the like say that another tensor follows. */
static const char *line_word(struct pair_line *line, const char *p, const char *end)
{
    struct slice word = {p, 0};
    char slot[32];

    while (p + word.len < end &&
           (pair_char(p[word.len]) || strchr("[]", p[word.len]) != NULL))
        word.len++;
    if (word.len == 0)
        return p + 1;
    if (nd_log_slot(word, slot))
        line_switch(line, slot);
    return p + word.len;
}

static const char *line_pair(struct pair_line *line, const struct pair *pair, const char *p,
                             const char *end)
{
    struct log_record *record = &line->records[line->count];
    char slot[32];

    if (pair->key == KEY_NONE)
        return line_word(line, p, end);
    line->only_equals = line->only_equals && pair->sign == '=';
    if (pair->key == KEY_NAME) {
        line->named = pair_word(pair->value, end);
        return line->named.len > 0 ? line->named.at + line->named.len : pair->value;
    }
    if (pair->key == KEY_SLOT) { /* "output=0", but "out: max=..." is a label */
        size_t digits = 0;
        while (pair->value + digits < end && nd_char_digit(pair->value[digits]))
            digits++;
        if (pair->sign == ':' || digits == 0 || digits > 6)
            return line_word(line, p, end);
        snprintf(slot, sizeof slot, "%s.%.*s", (*p | 0x20) == 'o' ? "output" : "input",
                 (int)digits, pair->value);
        line_switch(line, slot);
        return pair->value + digits;
    }
    if (pair->slot[0] != '\0' && strcmp(pair->slot, record->slot) != 0) {
        line_switch(line, pair->slot);
        record = &line->records[line->count];
    }
    return pair_take(pair, end, record);
}

/* Name, slots and strength for every record of the line. */
static size_t line_finish(struct pair_line *line, struct slice head, bool has_colon)
{
    struct log_record first = line->records[0];
    size_t kept = 0;

    first.name = (struct slice){0};
    const char explicit_slot = first.slot[0];
    if (!nd_log_head(line->named.len > 0 ? line->named : head, &first))
        return 0;
    for (size_t i = 0; i <= line->count; i++) {
        struct log_record record = line->records[i];
        if (!record_holds(&record))
            continue;
        record_settle(&record);
        record.name = first.name;
        record.type = first.type;
        record.backward = first.backward;
        if (i == 0 && explicit_slot == '\0')
            memcpy(record.slot, first.slot, sizeof record.slot);
        record.strength = has_colon && line->only_equals && record.printed >= 2 ? LOG_STRONG
                          : record.printed >= 2 || record.has_shape             ? LOG_FAIR
                                                                                : LOG_WEAK;
        line->records[kept++] = record;
    }
    return kept;
}

size_t nd_log_pairs(const char *at, const char *end,
                    struct log_record records[ND_LOG_GROUPS], bool *ret_nameless)
{
    struct pair_line line = {.records = records, .only_equals = true};
    struct pair pair;
    const char *p = line_first_pair(at, end, &pair);

    *ret_nameless = false;
    if (p == NULL)
        return 0;
    const struct slice head = {at, (size_t)(p - at)};
    const struct slice tight = nd_slice_trim(head, " ");
    const char last = tight.len > 0 ? tight.at[tight.len - 1] : '|';
    if (pair.sign == ':' && *p != '[' && strchr(":|,([{)]", last) == NULL)
        return 0; /* "grad norm: 1.5" is one key of two words */
    records[0] = nd_log_record_init();
    while (p < end && !line.full) {
        if (line_boundary(p, at) && strchr(" ,;|:({=>*`", *p) == NULL) {
            p = pair_at(p, end, &pair) ? line_pair(&line, &pair, p, end)
                                       : line_word(&line, p, end);
        } else {
            p++;
        }
    }
    *ret_nameless = tight.len == 0 && line.named.len == 0;
    return *ret_nameless ? 0 : line_finish(&line, head, last == ':');
}
