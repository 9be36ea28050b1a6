/*
 * NumPy arrays inside a pickle.  Learned from numpy's arrayobject and descriptor code
 * (1.24, 2.x) and from pickles of both:
 *
 *   1. numpy.core.multiarray._reconstruct(class, (0,), b'b') with the state
 *      (version, shape, dtype, is_fortran, data); numpy 2 says numpy._core
 *   2. protocol 5: numpy.core.numeric._frombuffer(data, dtype, shape, order)
 *   3. dtype is numpy.dtype('f4', ...) with the state (version, byte order, ...); types of
 *      other packages (ml_dtypes.bfloat16) stand there as a global
 *   4. data are bytes of the pickle itself; but protocol 2 knows no bytes and writes
 *      _codecs.encode(text, 'latin1'), text being UTF-8
 *
 * Arrays of the second kind of data do not lie in the file as they are.  They are decoded
 * into one temporary file per dump, sparse and large enough, which is mapped like any
 * other.
 */
#define _GNU_SOURCE /* pwrite, ftruncate */
#include "formats/pt.h"

#include <errno.h>
#include <unistd.h>

struct array {
    enum nd_dtype dtype;
    bool swapped, fortran;
    struct nd_shape shape;
    const struct pickle *data;
};

static bool global_is_numpy(const struct pickle *global, const char *module,
                            const char *name)
{
    const struct pickle *where = nd_pickle_item(global, 0);
    const size_t len = strlen(module);

    return nd_pickle_is_global(global, NULL, name) &&
           (where->kind == PICKLE_TEXT || where->kind == PICKLE_BYTES) &&
           where->len > len && memcmp(where->as.text, "numpy.", 6) == 0 &&
           memcmp(where->as.text + where->len - len, module, len) == 0;
}

/* --- types ------------------------------------------------------------------------- */

/* NumPy counts bytes where others count bits: "i8" is 64 bits wide. */
static enum nd_dtype dtype_by_code(const struct pickle *code)
{
    static const struct {
        const char *code;
        enum nd_dtype dtype;
    } codes[] = {
        {"f4",  ND_DTYPE_f32  },
        {"f8",  ND_DTYPE_f64  },
        {"f2",  ND_DTYPE_f16  },
        {"i8",  ND_DTYPE_i64  },
        {"i4",  ND_DTYPE_i32  },
        {"i2",  ND_DTYPE_i16  },
        {"i1",  ND_DTYPE_i8   },
        {"u8",  ND_DTYPE_u64  },
        {"u4",  ND_DTYPE_u32  },
        {"u2",  ND_DTYPE_u16  },
        {"u1",  ND_DTYPE_u8   },
        {"b1",  ND_DTYPE_bool8},
        {"c8",  ND_DTYPE_c64  },
        {"c16", ND_DTYPE_c128 },
    };

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (nd_pickle_is(code, codes[i].code))
            return codes[i].dtype;
    return ND_DTYPE_NONE;
}

static const char *array_dtype(struct arena *arena, const struct pickle *dtype,
                               struct array *array)
{
    const struct pickle *code = nd_pickle_item(nd_pickle_item(dtype, CALL_ARGUMENTS), 0);
    const struct pickle *state = nd_pickle_item(dtype, CALL_STATE);

    if (dtype == NULL || dtype->kind != PICKLE_CALL || code == NULL)
        return "malformed: a NumPy array without a type";
    if (code->kind == PICKLE_GLOBAL) {
        const struct pickle *name = nd_pickle_item(code, 1);
        array->dtype = nd_dtype_by_name(name->as.text, name->len);
        if (array->dtype == ND_DTYPE_NONE)
            return nd_pt_reason(arena, "unsupported: a NumPy array of ", code);
    } else {
        array->dtype = dtype_by_code(code);
        if (array->dtype == ND_DTYPE_NONE && code->kind == PICKLE_TEXT)
            return nd_arena_format(arena, "unsupported: a NumPy array of '%.*s'",
                                   (int)(code->len < 40 ? code->len : 40), code->as.text);
        if (array->dtype == ND_DTYPE_NONE)
            return "unsupported: a NumPy array of an unknown type";
    }
    array->swapped = nd_pickle_is(nd_pickle_item(state, 1), ">");
    return NULL;
}

/* --- bytes ------------------------------------------------------------------------- */

static bool text_is_ascii(const struct pickle *text)
{
    for (uint32_t i = 0; i < text->len; i++)
        if ((text->as.text[i] & 0x80) != 0)
            return false;
    return true;
}

/* How many bytes the UTF-8 text has in latin-1; false if it is not of that kind. */
static bool latin1_size(const struct pickle *text, uint64_t *ret_size)
{
    const unsigned char *bytes = (const unsigned char *)text->as.text;
    uint64_t size = 0;

    for (uint32_t i = 0; i < text->len; i++, size++) {
        if (bytes[i] < 0x80)
            continue;
        if ((bytes[i] & 0xfe) != 0xc2 || i + 1 == text->len ||
            (bytes[i + 1] & 0xc0) != 0x80)
            return false;
        i++;
    }
    *ret_size = size;
    return true;
}

static enum nd_status spool_open(struct pt_source *source, struct nd_error *err)
{
    struct dump *dump = source->dump;
    struct map map;

    if (source->spool >= 0)
        return ND_OK;
    const int fd = nd_spool_new();
    if (fd < 0)
        return nd_fail_errno(err, "a temporary file", errno);
    source->spool = fd; /* closed by nd_pt_walk */
    if (ftruncate(fd, (off_t)source->spool_size) != 0)
        return nd_fail_errno(err, "a temporary file", errno);
    ND_TRY(nd_map_fd(fd, &map, err));
    return nd_dump_file_take(dump, dump->files[source->text_file].path, &map,
                             &source->spool_file, err);
}

static bool spool_write(struct pt_source *source, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = pwrite(source->spool, bytes, size, (off_t)source->spool_used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        size -= (size_t)n;
        source->spool_used += (uint64_t)n;
    }
    return true;
}

static enum nd_status spool_latin1(struct pt_source *source, const struct pickle *text,
                                   struct nd_error *err)
{
    const unsigned char *bytes = (const unsigned char *)text->as.text;
    unsigned char block[4096];
    size_t used = 0;

    for (uint32_t i = 0; i < text->len; i++) {
        block[used++] =
            bytes[i] < 0x80
                ? bytes[i]
                : (unsigned char)((bytes[i] & 0x03) << 6 | (bytes[i + 1] & 0x3f));
        if (bytes[i] >= 0x80)
            i++;
        if (used == sizeof block || i + 1 == text->len) {
            if (!spool_write(source, block, used))
                return nd_fail_errno(err, "a temporary file", errno);
            used = 0;
        }
    }
    return ND_OK;
}

/* The text or the bytes behind what protocol 2 makes of bytes: encode(text, 'latin1'),
 * bytes() for none, bytearray(any of these). */
static const struct pickle *bytes_text(const struct pickle *data)
{
    static const struct pickle none = {.kind = PICKLE_TEXT, .as.text = ""};

    for (int i = 0; i < 2 && data != NULL && data->kind == PICKLE_CALL; i++) {
        const struct pickle *callable = nd_pickle_item(data, CALL_CALLABLE);
        const struct pickle *first =
            nd_pickle_item(nd_pickle_item(data, CALL_ARGUMENTS), 0);
        if (first == NULL && (nd_pickle_is_global(callable, NULL, "bytes") ||
                              nd_pickle_is_global(callable, NULL, "bytearray")))
            return &none;
        if (!nd_pickle_is_global(callable, "_codecs", "encode") &&
            !nd_pickle_is_global(callable, NULL, "bytearray"))
            return NULL;
        data = first;
    }
    return data;
}

/* Where the array's bytes lie; *ret_why: why nowhere. */
static enum nd_status array_bytes(struct pt_source *source, const struct pickle *data,
                                  size_t *ret_file, struct pt_storage *ret_storage,
                                  const char **ret_why, struct nd_error *err)
{
    const struct pickle *text = bytes_text(data);
    uint64_t size;

    *ret_why = NULL;
    *ret_file = source->text_file;
    if (text == NULL || (text->kind != PICKLE_BYTES && text->kind != PICKLE_TEXT)) {
        *ret_why = data != NULL && data->kind == PICKLE_LIST
                       ? "unsupported: a NumPy array of Python objects"
                       : "malformed: a NumPy array without data";
        return ND_OK;
    }
    if (text->kind == PICKLE_TEXT && text->len > source->text_left) {
        *ret_why = "limit: arrays that share their data take over four times the pickle";
        return ND_OK;
    }
    if (text->kind == PICKLE_TEXT)
        source->text_left -= text->len;
    if (text->len == 0) {
        *ret_storage = (struct pt_storage){0};
        return ND_OK;
    }
    if (text->kind == PICKLE_BYTES || text_is_ascii(text)) {
        const struct cursor in = nd_dump_bytes(source->dump, source->text_file);
        const uint64_t at = (uint64_t)((const unsigned char *)text->as.text - in.bytes);
        *ret_storage = (struct pt_storage){at, text->len, text->len, CODEC_STORED};
        return ND_OK;
    }
    if (!latin1_size(text, &size)) {
        *ret_why = "malformed: the text of a NumPy array is no latin-1";
        return ND_OK;
    }
    ND_TRY(spool_open(source, err));
    *ret_file = source->spool_file;
    *ret_storage = (struct pt_storage){source->spool_used, size, size, CODEC_STORED};
    return spool_latin1(source, text, err);
}

/* --- arrays ------------------------------------------------------------------------ */

static bool array_strides(const struct array *array, int64_t *strides)
{
    uint64_t step = 1;

    for (uint32_t i = 0; i < array->shape.rank; i++) {
        const uint32_t axis = array->fortran ? i : array->shape.rank - 1 - i;
        strides[axis] = (int64_t)step;
        if (!nd_size_mul(step, array->shape.dim[axis] == 0 ? 1 : array->shape.dim[axis],
                         &step) ||
            step > INT64_MAX)
            return false;
    }
    return true;
}

static enum nd_status array_slot(struct pt_source *source, const struct array *array,
                                 struct dump_slot *slot, struct nd_error *err)
{
    struct pt_storage storage;
    int64_t strides[ND_MAX_RANK];
    uint64_t bytes;
    size_t file;

    slot->dtype = array->dtype;
    slot->swapped = array->swapped;
    slot->storage = array->shape;
    slot->has_shape = true;
    if (!array_strides(array, strides) ||
        !nd_shape_bytes(&array->shape, nd_dtype_info(array->dtype)->size, &bytes)) {
        slot->broken = "malformed: its shape overflows";
        return ND_OK;
    }
    ND_TRY(array_bytes(source, array->data, &file, &storage, &slot->broken, err));
    if (slot->broken == NULL && storage.size != bytes)
        slot->broken = "malformed: the data of a NumPy array do not go with its shape";
    if (slot->broken == NULL)
        slot->broken = nd_pt_place(source->dump->arena, slot, file, &storage, 0,
                                   &array->shape, strides);
    return ND_OK;
}

enum nd_status nd_pt_numpy(struct pt_source *source, const struct pickle *call,
                           bool *ret_is_tensor, struct dump_slot *ret_slot,
                           struct nd_error *err)
{
    const struct pickle *callable = nd_pickle_item(call, CALL_CALLABLE);
    const struct pickle *parts;
    struct array array = {.dtype = ND_DTYPE_NONE};
    size_t shape_at, dtype_at, order_at, data_at;

    if (global_is_numpy(callable, ".multiarray", "_reconstruct")) {
        parts = nd_pickle_item(call, CALL_STATE);
        shape_at = 1, dtype_at = 2, order_at = 3, data_at = 4;
    } else if (global_is_numpy(callable, ".numeric", "_frombuffer")) {
        parts = nd_pickle_item(call, CALL_ARGUMENTS);
        data_at = 0, dtype_at = 1, shape_at = 2, order_at = 3;
    } else {
        return ND_OK;
    }
    *ret_is_tensor = true;
    const struct pickle *order = nd_pickle_item(parts, order_at);
    array.fortran = nd_pickle_is(order, "F") ||
                    (order != NULL && order->kind == PICKLE_BOOL && order->as.integer != 0);
    array.data = nd_pickle_item(parts, data_at);
    ret_slot->broken = nd_pt_shape(nd_pickle_item(parts, shape_at), &array.shape);
    if (ret_slot->broken == NULL)
        ret_slot->broken =
            array_dtype(source->dump->arena, nd_pickle_item(parts, dtype_at), &array);
    return ret_slot->broken == NULL ? array_slot(source, &array, ret_slot, err) : ND_OK;
}
