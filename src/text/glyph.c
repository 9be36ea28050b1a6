/*
 * Widths follow Unicode's East Asian Width: wide and fullwidth blocks take two columns,
 * combining marks none.
 */
#include "text/glyph.h"

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint32_t first, last;
};

static const struct range wide[] = {
    {0x1100,  0x115f },
    {0x2e80,  0x303e },
    {0x3041,  0x33ff },
    {0x3400,  0x4dbf },
    {0x4e00,  0x9fff },
    {0xa000,  0xa4cf },
    {0xa960,  0xa97f },
    {0xac00,  0xd7a3 },
    {0xf900,  0xfaff },
    {0xfe30,  0xfe6f },
    {0xff00,  0xff60 },
    {0xffe0,  0xffe6 },
    {0x1f300, 0x1f64f},
    {0x1f900, 0x1f9ff},
    {0x20000, 0x3fffd},
};
static const struct range no_width[] = {
    {0x0300, 0x036f},
    {0x200b, 0x200f},
    {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff},
};

size_t nd_glyph_len(const char *at)
{
    const unsigned char lead = (unsigned char)*at;
    const size_t want = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    size_t len = 1;

    while (len < want && at[len] != '\0')
        len++;
    return len;
}

static bool range_holds(const struct range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

unsigned nd_glyph_columns(const char *at, size_t len)
{
    static const unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)at[0] & lead_bits[len];

    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)at[i] & 0x3f);
    if (code < 0x300)
        return 1;
    if (range_holds(no_width, sizeof no_width / sizeof no_width[0], code))
        return 0;
    return range_holds(wide, sizeof wide / sizeof wide[0], code) ? 2 : 1;
}

unsigned nd_glyph_columns_between(const char *at, const char *end)
{
    unsigned columns = 0;

    while (at < end) {
        const size_t len = nd_glyph_len(at);
        columns += nd_glyph_columns(at, len);
        at += len;
    }
    return columns;
}
