/*
 * Looking up words and filling in their placeholders.  The tables stand in an order made
 * for reading; lookups go through an index sorted by id, built once.
 */
#include "text/catalogue.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *id;
    const char *words[LANGUAGE_COUNT];
};

/* clang-format off */
static const struct entry entries[] = {
#define ND_TEXT(id, english, chinese) {#id, {english, chinese}},
#include "text/phrases.def"
#include "text/help.def"
#include "text/compare.def"
#include "text/diagnosis.def"
#include "text/norm_causes.def"
#include "text/ascend.def"
#include "text/evidence.def"
#include "text/product_causes.def"
#include "text/placement_causes.def"
#include "text/pages_runs.def"
#include "text/pages_norm.def"
#include "text/pages_other.def"
#undef ND_TEXT
};
/* clang-format on */

enum { ENTRY_COUNT = sizeof entries / sizeof entries[0] };

static const struct entry *sorted[ENTRY_COUNT];
static pthread_once_t sorted_once = PTHREAD_ONCE_INIT;

static int entry_compare(const void *a, const void *b)
{
    const struct entry *const *left = a;
    const struct entry *const *right = b;

    return strcmp((*left)->id, (*right)->id);
}

static void entry_sort(void)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        sorted[i] = &entries[i];
    qsort(sorted, ENTRY_COUNT, sizeof sorted[0], entry_compare);
}

enum language nd_language_of(const char *word)
{
    return word != NULL && strncmp(word, "zh", 2) == 0 ? LANGUAGE_ZH : LANGUAGE_EN;
}

const char *nd_catalogue_words(const char *id, enum language language)
{
    const struct entry wanted = {.id = id};
    const struct entry *key = &wanted;

    pthread_once(&sorted_once, entry_sort);
    const struct entry **hit =
        bsearch(&key, sorted, ENTRY_COUNT, sizeof sorted[0], entry_compare);
    return hit == NULL ? NULL : (*hit)->words[language];
}

const char *nd_catalogue_id(size_t i)
{
    return i < ENTRY_COUNT ? entries[i].id : NULL;
}

char *nd_number_words(double value, char *buf)
{
    const double size = fabs(value);

    nd_number_text(value, buf);
    if (!isfinite(value) || strlen(buf) <= 6)
        return buf;
    if (value == floor(value) && size < 1e15)
        snprintf(buf, 32, "%.0f", value);
    else if (size >= 1e4 && size < 1e6)
        snprintf(buf, 32, "%.0f", value);
    else if (size >= 1e-3 && size < 1e4)
        snprintf(buf, 32, "%.4g", value);
    else
        snprintf(buf, 32, "%.4e", value);
    return buf;
}

static const struct catalogue_value *value_of(const struct catalogue_value *values,
                                              size_t count, const char *key, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(values[i].key) == len && memcmp(values[i].key, key, len) == 0)
            return &values[i];
    return NULL;
}

static void value_put(const struct catalogue_value *value, struct text *out)
{
    char buf[32];

    nd_text_puts(out,
                 value->text != NULL ? value->text : nd_number_words(value->number, buf));
}

/* Fills one placeholder whose inside is [at, end); false if it has no value. */
static bool placeholder_put(const char *at, const char *end,
                            const struct catalogue_value *values, size_t count,
                            struct text *out)
{
    const char *bar = memchr(at, '|', (size_t)(end - at));
    const char *key_end = bar == NULL ? end : bar;
    const struct catalogue_value *value =
        value_of(values, count, at, (size_t)(key_end - at));

    if (value == NULL)
        return false;
    if (bar == NULL) {
        value_put(value, out);
        return true;
    }
    const char *one = bar + 1;
    const char *split = memchr(one, '|', (size_t)(end - one));
    if (split == NULL)
        return false;
    if (value->text == NULL && value->number == 1.0)
        nd_text_add(out, one, (size_t)(split - one));
    else
        nd_text_add(out, split + 1, (size_t)(end - split - 1));
    return true;
}

void nd_catalogue_fill(const char *words, const struct catalogue_value *values,
                       size_t count, struct text *out)
{
    while (*words != '\0') {
        const char *open = strchr(words, '{');
        const char *close = open == NULL ? NULL : strchr(open, '}');
        if (close == NULL) {
            nd_text_puts(out, words);
            return;
        }
        nd_text_add(out, words, (size_t)(open - words));
        if (!placeholder_put(open + 1, close, values, count, out))
            nd_text_add(out, open, (size_t)(close + 1 - open));
        words = close + 1;
    }
}
