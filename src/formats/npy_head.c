/*
 * The header of a NumPy array: a small reader of the Python literal that it is, and of
 * the names of element types.  Nothing is evaluated.  The byte layout stands in
 * format_npy.c.
 *
 * bfloat16 has no NumPy name: ml_dtypes writes it as V2, TensorFlow and others as <T2 or
 * <g2.  FP8 arrives as V1 or f1, which do not say which of the FP8 formats it is.
 */
#include "formats/npy.h"

#include <inttypes.h>

/* --- the literal ------------------------------------------------------------------- */

enum { LITERAL_DEPTH = 32 }; /* of brackets in a structured descr */

enum npy_key { KEY_DESCR, KEY_FORTRAN, KEY_SHAPE, KEY_COUNT };

struct literal {
    const char *at, *end;
    uint64_t begin_at; /* of the text in the file, for messages */
    const char *begin;
    bool python2; /* integers may end in L */
    struct arena *arena;
};

static enum nd_status literal_fail(const struct literal *in, const char *expected,
                                   struct nd_error *err)
{
    const uint64_t at = in->begin_at + (uint64_t)(in->at - in->begin);

    if (in->at == in->end)
        return nd_fail_at(err, ND_ERR_MALFORMED, at, expected, "the end of the header");
    return nd_fail_at(err, ND_ERR_MALFORMED, at, expected, "'%.*s' in the header",
                      in->end - in->at > 20 ? 20 : (int)(in->end - in->at), in->at);
}

static void literal_blank(struct literal *in)
{
    while (in->at < in->end &&
           (*in->at == ' ' || *in->at == '\n' || *in->at == '\t' || *in->at == '\r'))
        in->at++;
}

static bool literal_take(struct literal *in, char c)
{
    literal_blank(in);
    if (in->at == in->end || *in->at != c)
        return false;
    in->at++;
    return true;
}

/* A quoted text; escapes are stepped over, not resolved: no key or plain type has any. */
static bool literal_text(struct literal *in, const char **ret_text, size_t *ret_len)
{
    literal_blank(in);
    const char *at = in->at;
    if (at == in->end || (*at != '\'' && *at != '"'))
        return false;
    const char quote = *at++;
    const char *const begin = at;
    for (; at < in->end && *at != quote; at++)
        if (*at == '\\' && ++at == in->end)
            return false;
    if (at >= in->end)
        return false;
    *ret_text = begin;
    *ret_len = (size_t)(at - begin);
    in->at = at + 1;
    return true;
}

static bool literal_word(struct literal *in, const char *word)
{
    const size_t len = strlen(word);

    literal_blank(in);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0)
        return false;
    in->at += len;
    return true;
}

static enum nd_status literal_shape(struct literal *in, struct npy_head *head,
                                    struct nd_error *err)
{
    if (!literal_take(in, '('))
        return literal_fail(in, "a shape in brackets", err);
    for (bool more = true; !literal_take(in, ')');) {
        uint64_t value = 0;
        literal_blank(in);
        const char *const begin = in->at;
        for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++)
            if (!nd_size_mul(value, 10, &value) ||
                !nd_size_add(value, (uint64_t)(*in->at - '0'), &value) || value > INT64_MAX)
                return literal_fail(in, "a dimension below 2^63", err);
        if (in->at == begin || !more || (*begin == '0' && in->at != begin + 1))
            return literal_fail(in, "a dimension, a whole number", err);
        if (in->python2 && in->at < in->end && *in->at == 'L')
            in->at++;
        if (head->shape.rank == ND_MAX_RANK)
            return literal_fail(in, "at most 16 dimensions", err);
        head->shape.dim[head->shape.rank++] = value;
        more = literal_take(in, ',');
    }
    return ND_OK;
}

/* Steps over any nested literal: a structured descr. */
static enum nd_status literal_skip(struct literal *in, struct nd_error *err)
{
    char open[LITERAL_DEPTH];
    size_t depth = 0;

    do {
        const char *text;
        size_t len;
        literal_blank(in);
        if (in->at == in->end)
            return literal_fail(in, "the end of the type's description", err);
        if (literal_text(in, &text, &len))
            continue;
        const char c = *in->at;
        if (c == '(' || c == '[' || c == '{') {
            if (depth == LITERAL_DEPTH)
                return literal_fail(in, "at most 32 nested brackets", err);
            open[depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
        } else if (c == ')' || c == ']' || c == '}') {
            if (depth == 0 || open[--depth] != c)
                return literal_fail(in, "brackets that match", err);
        } else if (depth == 0) {
            return literal_fail(in, "a type: a text or a list of fields", err);
        }
        in->at++;
    } while (depth > 0);
    return ND_OK;
}

/* --- types ------------------------------------------------------------------------- */

static const struct {
    const char *code;
    enum nd_dtype dtype;
} codes[] = {
    {"f8",  ND_DTYPE_f64  },
    {"f4",  ND_DTYPE_f32  },
    {"f2",  ND_DTYPE_f16  },
    {"V2",  ND_DTYPE_bf16 },
    {"T2",  ND_DTYPE_bf16 },
    {"g2",  ND_DTYPE_bf16 },
    {"i8",  ND_DTYPE_i64  },
    {"i4",  ND_DTYPE_i32  },
    {"i2",  ND_DTYPE_i16  },
    {"i1",  ND_DTYPE_i8   },
    {"u8",  ND_DTYPE_u64  },
    {"u4",  ND_DTYPE_u32  },
    {"u2",  ND_DTYPE_u16  },
    {"u1",  ND_DTYPE_u8   },
    {"b1",  ND_DTYPE_bool8},
    {"?",   ND_DTYPE_bool8},
    {"c8",  ND_DTYPE_c64  },
    {"c16", ND_DTYPE_c128 },
    {"e",   ND_DTYPE_f16  },
    {"f",   ND_DTYPE_f32  },
    {"d",   ND_DTYPE_f64  },
    {"F",   ND_DTYPE_c64  },
    {"D",   ND_DTYPE_c128 },
};

static const char *type_trouble(const char *code, size_t len)
{
    if (len == 2 && (memcmp(code, "V1", 2) == 0 || memcmp(code, "f1", 2) == 0))
        return "one byte an element does not say which FP8 format it is; save it as "
               "float32";
    switch (len > 0 ? code[0] : '\0') {
    case 'O':
        return "Python objects are never loaded; save a numeric array";
    case 'S':
    case 'a':
    case 'U':
        return "texts are not compared";
    case 'M':
    case 'm':
        return "dates and times are not compared";
    case 'V':
        return "raw records are not compared";
    case 'f':
    case 'g':
        return "this floating point type differs between machines; save it as float64";
    case 'c':
    case 'G':
        return "this complex type differs between machines; save it as complex128";
    default:
        return "no such element type is known";
    }
}

static bool text_is(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

/* "float32", but not "f16": that is NumPy's long double, not half precision. */
static bool is_spelled_out(const char *code, size_t len)
{
    for (size_t i = 0; i < 3; i++)
        if (i == len || (code[i] | 0x20) < 'a' || (code[i] | 0x20) > 'z')
            return false;
    return true;
}

static void type_read(const char *text, size_t len, struct npy_head *head)
{
    const bool ordered = len > 0 && strchr("<>=|", text[0]) != NULL;
    const char *code = ordered ? text + 1 : text;
    const size_t code_len = ordered ? len - 1 : len;

    head->dtype = ND_DTYPE_NONE;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (text_is(code, code_len, codes[i].code))
            head->dtype = codes[i].dtype;
    if (head->dtype == ND_DTYPE_NONE && is_spelled_out(code, code_len))
        head->dtype = nd_dtype_by_name(code, code_len);
    if (head->dtype == ND_DTYPE_NONE)
        head->trouble = type_trouble(code, code_len);
    else
        head->swapped = ordered && text[0] == '>' && nd_dtype_info(head->dtype)->size > 1;
}

static enum nd_status type_value(struct literal *in, struct npy_head *head,
                                 struct nd_error *err)
{
    const char *text;
    size_t len;

    literal_blank(in);
    const char *const begin = in->at;
    if (literal_text(in, &text, &len)) {
        type_read(text, len, head);
    } else {
        ND_TRY(literal_skip(in, err));
        head->dtype = ND_DTYPE_NONE;
        head->trouble = "a structured array: its fields are not compared";
        text = begin;
        len = (size_t)(in->at - begin);
    }
    head->dtype_text = nd_arena_copy(in->arena, text, len < 80 ? len : 80);
    return head->dtype_text == NULL ? nd_fail_memory(err) : ND_OK;
}

/* --- the header -------------------------------------------------------------------- */

static enum nd_status head_value(struct literal *in, enum npy_key key,
                                 struct npy_head *head, struct nd_error *err)
{
    switch (key) {
    case KEY_DESCR:
        return type_value(in, head, err);
    case KEY_SHAPE:
        return literal_shape(in, head, err);
    default:
        break;
    }
    head->fortran = literal_word(in, "True");
    if (!head->fortran && !literal_word(in, "False"))
        return literal_fail(in, "True or False", err);
    return ND_OK;
}

static enum nd_status head_parse(struct literal *in, struct npy_head *head,
                                 struct nd_error *err)
{
    static const char *const names[KEY_COUNT] = {"descr", "fortran_order", "shape"};
    bool seen[KEY_COUNT] = {false};

    if (!literal_take(in, '{'))
        return literal_fail(in, "'{', the start of the header", err);
    for (bool more = true; !literal_take(in, '}');) {
        const char *text;
        size_t len;
        int key = 0;
        if (!more || !literal_text(in, &text, &len))
            return literal_fail(in, "a quoted key", err);
        while (key < KEY_COUNT && !text_is(text, len, names[key]))
            key++;
        if (key == KEY_COUNT || seen[key])
            return literal_fail(in, "each of descr, fortran_order and shape once", err);
        seen[key] = true;
        if (!literal_take(in, ':'))
            return literal_fail(in, "':' after a key", err);
        ND_TRY(head_value(in, (enum npy_key)key, head, err));
        more = literal_take(in, ',');
    }
    literal_blank(in);
    if (in->at != in->end)
        return literal_fail(in, "blanks after the header", err);
    for (int key = 0; key < KEY_COUNT; key++)
        if (!seen[key])
            return literal_fail(in, "all of descr, fortran_order and shape", err);
    return ND_OK;
}

enum nd_status nd_npy_head_size(const unsigned char *bytes, uint64_t size,
                                uint64_t *ret_size, struct nd_error *err)
{
    if (size < ND_NPY_MAGIC_SIZE || memcmp(bytes, "\x93NUMPY", ND_NPY_MAGIC_SIZE) != 0)
        return nd_fail_at(err, ND_ERR_MALFORMED, 0, "the magic \\x93NUMPY of an array",
                          size == 0 ? "nothing" : "other bytes");
    if (size < ND_NPY_MAGIC_SIZE + 2)
        return nd_fail_at(err, ND_ERR_MALFORMED, size, "the version of the format",
                          "the end of the file");
    const unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return nd_fail_at(err, ND_ERR_UNSUPPORTED, 6, "version 1.0, 2.0 or 3.0",
                          "version %u.%u", major, minor);
    const unsigned width = major == 1 ? 2 : 4;
    if (size < ND_NPY_MAGIC_SIZE + 2 + width)
        return nd_fail_at(err, ND_ERR_MALFORMED, size, "the length of the header",
                          "the end of the file");
    const uint64_t length = nd_load_le(bytes + 8, width);
    if (length > ND_NPY_MAX_HEADER)
        return nd_fail_at(err, ND_ERR_LIMIT, 8, "a header of at most 65536 bytes",
                          "a header of %" PRIu64 " bytes", length);
    *ret_size = ND_NPY_MAGIC_SIZE + 2 + width + length;
    return ND_OK;
}

static const int64_t *fortran_strides(struct arena *arena, const struct nd_shape *shape)
{
    int64_t *const strides = nd_arena_alloc(arena, shape->rank, sizeof *strides);
    int64_t stride = 1;

    for (uint32_t k = 0; strides != NULL && k < shape->rank; k++) {
        strides[k] = stride;
        stride *= (int64_t)shape->dim[k];
    }
    return strides;
}

enum nd_status nd_npy_head_read(struct cursor *in, struct arena *arena,
                                struct npy_head *ret_head, struct nd_error *err)
{
    const unsigned char *const bytes = in->bytes + in->at;
    const uint64_t left = nd_cursor_left(in);
    struct npy_head head = {.dtype = ND_DTYPE_NONE};

    ND_TRY(nd_npy_head_size(bytes, left, &head.header_size, err));
    if (head.header_size > left)
        return nd_fail_at(err, ND_ERR_MALFORMED, in->at + left, "the whole header",
                          "the end of the file, %" PRIu64 " bytes of %" PRIu64 " missing",
                          head.header_size - left, head.header_size);
    const unsigned text_at = bytes[6] == 1 ? 10 : 12;
    struct literal text = {.begin = (const char *)bytes + text_at,
                           .at = (const char *)bytes + text_at,
                           .end = (const char *)bytes + head.header_size,
                           .begin_at = in->at + text_at,
                           .python2 = bytes[6] <= 2,
                           .arena = arena};
    ND_TRY(head_parse(&text, &head, err));
    if (head.dtype != ND_DTYPE_NONE &&
        !nd_shape_bytes(&head.shape, nd_dtype_info(head.dtype)->size, &head.data_size)) {
        char shape[400];
        return nd_fail_at(err, ND_ERR_MALFORMED, in->at + text_at,
                          "a shape below 2^63 bytes", "shape %s of %s",
                          nd_shape_text(&head.shape, shape, sizeof shape),
                          nd_dtype_info(head.dtype)->name);
    }
    if (head.fortran && head.shape.rank > 1 && head.data_size > 0 &&
        (head.stride = fortran_strides(arena, &head.shape)) == NULL)
        return nd_fail_memory(err);
    in->at += head.header_size;
    *ret_head = head;
    return ND_OK;
}

struct dump_slot nd_npy_slot(const struct npy_head *head)
{
    struct dump_slot slot = nd_dump_slot_init();

    slot.dtype = head->dtype;
    slot.dtype_text = head->dtype_text;
    slot.broken = head->trouble;
    slot.storage = head->shape;
    slot.has_shape = true;
    slot.swapped = head->swapped;
    slot.stride = head->stride;
    slot.strided = head->stride != NULL;
    return slot;
}
