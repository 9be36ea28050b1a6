/*
 * Phrases in words.
 */
#include "report/report.h"

#include <string.h>

enum { VALUE_LIMIT = 32 }; /* placeholders that one phrase may have */

void nd_phrase_put(const struct nd_phrase *phrase, enum language language, struct text *out)
{
    struct catalogue_value values[VALUE_LIMIT];
    size_t count = 0;

    if (phrase->id == NULL)
        return;
    for (; count < phrase->param_count && count < VALUE_LIMIT; count++) {
        const struct nd_param *param = &phrase->params[count];
        values[count] = (struct catalogue_value){param->key, param->text, param->number};
    }
    const char *words = nd_catalogue_words(phrase->id, language);
    nd_catalogue_fill(words == NULL ? phrase->id : words, values, count, out);
}

const char *nd_phrase_text(const struct nd_phrase *phrase, const char *lang, char *buf,
                           size_t size)
{
    struct text words = {0};
    struct out safe = {.depth = 0};

    nd_phrase_put(phrase, nd_language_of(lang), &words);
    if (words.len > 0)
        nd_out_safe(&safe, words.bytes);
    size_t keep = safe.text.len < size ? safe.text.len : size - 1;
    if (keep > 0)
        memcpy(buf, safe.text.bytes, keep);
    while (keep > 0 && keep < safe.text.len && (safe.text.bytes[keep] & 0xc0) == 0x80)
        keep--; /* not in the middle of a character */
    buf[keep] = '\0';
    nd_text_done(&words);
    nd_out_done(&safe);
    return buf;
}
