/*
 * The table of formats and the choice among them: every probe is asked, the most evidence
 * wins, so the order of formats.def decides nothing but ties.
 */
#include "formats/format.h"

#include <strings.h>

#include "base/text.h"

static const struct dump_format *const formats[] = {
#define ND_FORMAT(word) &nd_format_##word,
#include "formats/formats.def"
#undef ND_FORMAT
};

enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

const struct dump_format *nd_format_at(size_t i)
{
    return i < FORMAT_COUNT ? formats[i] : NULL;
}

const struct dump_format *nd_format_by_name(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (strcasecmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

const struct dump_format *nd_format_recognise(const struct dump_head *head)
{
    const struct dump_format *best = NULL;
    int most = 0;

    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        const int bits = formats[i]->probe == NULL ? 0 : formats[i]->probe(head);
        if (bits > most) {
            most = bits;
            best = formats[i];
        }
    }
    return best;
}

const struct dump_format *
nd_format_recognise_directory(const struct dump_directory *directory)
{
    const struct dump_format *best = NULL;
    int most = 0;

    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        const int bits = formats[i]->probe_directory == NULL
                             ? 0
                             : formats[i]->probe_directory(directory);
        if (bits > most) {
            most = bits;
            best = formats[i];
        }
    }
    return best;
}

enum nd_status nd_format_bad_word(const char *word, struct nd_error *err)
{
    struct text words = {0};

    for (size_t i = 0; i < FORMAT_COUNT; i++)
        nd_text_printf(&words, "%s%s", i == 0 ? "one of: " : ", ", formats[i]->name);
    nd_fail_key(err, ND_ERR_USAGE, "--input-format", words.broken ? NULL : words.bytes,
                "the word '%s', which names no format", word);
    nd_text_done(&words);
    return ND_ERR_USAGE;
}
