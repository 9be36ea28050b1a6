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

/* Characters of three bytes that move, break or hide what stands beside them: directions,
 * U+2028 and U+2029 (line ends to many a reader) and the byte order mark. */
static bool utf8_disturbs(unsigned code)
{
    return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff;
}

/* Length of the valid UTF-8 character at p (no overlong forms, surrogates, or C1 control
 * characters, which terminals obey); 0: not one. */
static size_t utf8_len(const unsigned char *p)
{
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf && (p[1] & 0xc0) == 0x80)
        return p[0] == 0xc2 && p[1] < 0xa0 ? 0 : 2;
    if ((p[0] & 0xf0) == 0xe0 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80) {
        const unsigned code = (unsigned)(p[0] & 15) << 12 | (unsigned)(p[1] & 63) << 6 | (p[2] & 63u);
        const bool surrogate = code >= 0xd800 && code <= 0xdfff;
        return code < 0x800 || surrogate || code >= 0xfffe || utf8_disturbs(code) ? 0 : 3;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80 &&
        (p[3] & 0xc0) == 0x80) {
        const unsigned code = (unsigned)(p[0] & 7) << 18 | (unsigned)(p[1] & 63) << 12;
        return code < 0x10000 || code > 0x10ffff ? 0 : 4;
    }
    return 0;
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

/* A JSON string; bytes that are not UTF-8 become the text \\xNN, so that a name can be
 * told from every other name. */
static void json_quote(struct out *out, const char *string)
{
    nd_out_raw(out, "\"");
    for (const unsigned char *p = (const unsigned char *)string; *p != '\0';) {
        const size_t len = utf8_len(p);
        if (len == 0) {
            nd_out_printf(out, "\\\\x%02x", *p++);
        } else if (*p == '"' || *p == '\\') {
            nd_out_printf(out, "\\%c", *p++);
        } else if (*p < 0x20 || *p == 0x7f) {
            nd_out_printf(out, "\\u%04x", *p++);
        } else {
            nd_text_add(&out->text, (const char *)p, len);
            p += len;
        }
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
    const bool fine = !out->text.broken &&
                      fwrite(out->text.bytes, 1, out->text.len, stream) == out->text.len;

    out->text.len = 0;
    return fine && fflush(stream) == 0;
}

void nd_out_done(struct out *out)
{
    nd_text_done(&out->text);
}
