/*
 * The sink of the reports.
 */
#include "base/out.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

void nd_out_raw(struct out *out, const char *string)
{
    nd_text_puts(&out->text, string);
}

void nd_out_printf(struct out *out, const char *fmt, ...)
{
    va_list args;
    char    buf[1024];

    va_start(args, fmt);
    const int len = vsnprintf(buf, sizeof buf, fmt, args);
    va_end(args);
    if (len < 0)
        return;
    nd_text_add(&out->text, buf, (size_t)len < sizeof buf ? (size_t)len : sizeof buf - 1);
}

/* Characters that move, break or hide what stands beside them, or that nobody can see: C1
 * controls (which terminals obey), directions, U+2028 and U+2029 (line ends to many a
 * reader), zero widths, the soft hyphen, the byte order mark, and tags. */
static bool utf8_disturbs(unsigned code)
{
    return (code >= 0x80 && code < 0xa0) || code == 0xfffe || code == 0xffff || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || code == 0xad ||
           code == 0x61c || (code >= 0xe0000 && code <= 0xe0fff);
}

/* Length of the valid UTF-8 character at p (no overlong forms, no surrogates); 0: not one. */
static size_t utf8_read(const unsigned char *p, unsigned *ret_code)
{
    const size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3
                       : p[0] < 0xf5 ? 4 : 0;
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    static const unsigned      least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned                   code = p[0] & first_bits[len];

    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 63u);
    }
    *ret_code = code;
    return code < least[len] || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff ? 0 : len;
}

/* The same for what may be shown as it is. */
static size_t utf8_len(const unsigned char *p)
{
    unsigned     code = 0;
    const size_t len = utf8_read(p, &code);

    return utf8_disturbs(code) ? 0 : len;
}

void nd_out_safe(struct out *out, const char *string)
{
    for (const unsigned char *p = (const unsigned char *)string; *p != '\0';) {
        const size_t len = utf8_len(p);
        if (len == 0 || *p < 0x20 || *p == 0x7f) {
            nd_out_printf(out, "\\x%02x", *p);
            p++;
        } else {
            nd_text_add(&out->text, (const char *)p, len);
            p += len;
        }
    }
}

void nd_out_xml(struct out *out, const char *string)
{
    for (const unsigned char *p = (const unsigned char *)string; *p != '\0';) {
        const size_t len = utf8_len(p);
        if (*p == '&')
            nd_out_raw(out, "&amp;");
        else if (*p == '<')
            nd_out_raw(out, "&lt;");
        else if (*p == '>')
            nd_out_raw(out, "&gt;");
        else if (*p == '"')
            nd_out_raw(out, "&quot;");
        else if (*p == '\t' || *p == '\n') /* bare ones in an attribute become spaces */
            nd_out_printf(out, "&#%d;", *p);
        else if (len == 0 || *p < 0x20 || *p == 0x7f)
            nd_out_printf(out, "\\x%02x", *p);
        else
            nd_text_add(&out->text, (const char *)p, len);
        p += len == 0 ? 1 : len;
    }
}

static void json_before_value(struct out *out)
{
    if (out->after_key) {
        out->after_key = false;
        return;
    }
    if (out->depth > 0) {
        if (out->started[out->depth - 1])
            nd_out_raw(out, ",");
        out->started[out->depth - 1] = true;
    }
}

void nd_json_open(struct out *out, char bracket)
{
    json_before_value(out);
    nd_text_add(&out->text, &bracket, 1);
    assert(out->depth < ND_OUT_DEPTH);
    out->started[out->depth] = false;
    out->bracket[out->depth] = bracket;
    out->depth++;
}

void nd_json_close(struct out *out)
{
    assert(out->depth > 0);
    out->depth--;
    nd_out_raw(out, out->bracket[out->depth] == '{' ? "}" : "]");
}

static void json_escape(struct out *out, unsigned code)
{
    if (code > 0xffff) {
        nd_out_printf(out, "\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
        code = 0xdc00 + (code & 0x3ff);
    }
    nd_out_printf(out, "\\u%04x", code);
}

/* A JSON string, which reads back as the name that it was; bytes that are not UTF-8 become
 * the text \\xNN, so that a name can be told from every other name. */
static void json_quote(struct out *out, const char *string)
{
    nd_out_raw(out, "\"");
    for (const unsigned char *p = (const unsigned char *)string; *p != '\0';) {
        unsigned     code = 0;
        const size_t len = utf8_read(p, &code);
        if (len == 0)
            nd_out_printf(out, "\\\\x%02x", *p);
        else if (*p == '"' || *p == '\\')
            nd_out_printf(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f || utf8_disturbs(code))
            json_escape(out, code);
        else
            nd_text_add(&out->text, (const char *)p, len);
        p += len == 0 ? 1 : len;
    }
    nd_out_raw(out, "\"");
}

void nd_json_key(struct out *out, const char *key)
{
    json_before_value(out);
    json_quote(out, key);
    nd_out_raw(out, ":");
    out->after_key = true;
}

void nd_json_string(struct out *out, const char *string)
{
    if (string == NULL) {
        nd_json_null(out);
        return;
    }
    json_before_value(out);
    json_quote(out, string);
}

void nd_json_double(struct out *out, double value)
{
    char buf[32];

    nd_number_text(value, buf);
    json_before_value(out);
    nd_out_printf(out, isfinite(value) ? "%s" : "\"%s\"", buf);
}

void nd_json_uint(struct out *out, uint64_t value)
{
    json_before_value(out);
    nd_out_printf(out, "%" PRIu64, value);
}

void nd_json_int(struct out *out, int64_t value)
{
    json_before_value(out);
    nd_out_printf(out, "%" PRId64, value);
}

void nd_json_boolean(struct out *out, bool value)
{
    json_before_value(out);
    nd_out_raw(out, value ? "true" : "false");
}

void nd_json_null(struct out *out)
{
    json_before_value(out);
    nd_out_raw(out, "null");
}

bool nd_out_flush(struct out *out, FILE *stream)
{
    const bool fine = !out->text.broken && /* a report may be empty, and has no bytes then */
                      (out->text.len == 0 ||
                       fwrite(out->text.bytes, 1, out->text.len, stream) == out->text.len);

    out->text.len = 0;
    return fine && fflush(stream) == 0;
}

void nd_out_done(struct out *out)
{
    nd_text_done(&out->text);
}
