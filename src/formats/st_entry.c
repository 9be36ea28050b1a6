/*
 * One tensor of a safetensors header: dtype, shape, data_offsets, in any order, each once,
 * and all three telling the same size.
 */
#include "formats/st_entry.h"

#include <inttypes.h>
#include <string.h>

#include "formats/json_scan.h"

/* Every dtype of the reference implementation; those we cannot decode have none. */
static const struct entry_dtype {
    const char *name;
    unsigned bits;
    enum nd_dtype dtype;
} entry_dtypes[] = {
    {"BOOL",        8,  ND_DTYPE_bool8   },
    {"U8",          8,  ND_DTYPE_u8      },
    {"I8",          8,  ND_DTYPE_i8      },
    {"I16",         16, ND_DTYPE_i16     },
    {"U16",         16, ND_DTYPE_u16     },
    {"F16",         16, ND_DTYPE_f16     },
    {"BF16",        16, ND_DTYPE_bf16    },
    {"I32",         32, ND_DTYPE_i32     },
    {"U32",         32, ND_DTYPE_u32     },
    {"F32",         32, ND_DTYPE_f32     },
    {"F64",         64, ND_DTYPE_f64     },
    {"I64",         64, ND_DTYPE_i64     },
    {"U64",         64, ND_DTYPE_u64     },
    {"C64",         64, ND_DTYPE_c64     },
    {"F8_E5M2",     8,  ND_DTYPE_f8e5m2  },
    {"F8_E4M3",     8,  ND_DTYPE_f8e4m3fn},
    {"F4",          4,  ND_DTYPE_NONE    },
    {"F6_E2M3",     6,  ND_DTYPE_NONE    },
    {"F6_E3M2",     6,  ND_DTYPE_NONE    },
    {"F8_E8M0",     8,  ND_DTYPE_NONE    },
    {"F8_E4M3FNUZ", 8,  ND_DTYPE_NONE    },
    {"F8_E5M2FNUZ", 8,  ND_DTYPE_NONE    },
};

enum { ST_HAS_DTYPE = 1, ST_HAS_SHAPE = 2, ST_HAS_OFFSETS = 4, ST_HAS_ALL = 7 };

/* What stands between the braces of one tensor. */
struct entry_info {
    unsigned seen;
    const struct entry_dtype *dtype; /* NULL: a name that we do not know */
    uint64_t shape_at, offsets_at;
    uint64_t rank; /* as listed: may exceed what a shape holds */
    uint64_t count;
    bool empty, huge; /* a dimension is 0; the product overflowed */
};

static enum nd_status entry_dtype(struct st_reader *reader, struct entry_info *info,
                                  struct st_entry *entry, struct nd_error *err)
{
    struct json_text text;
    char name[64];

    ND_TRY(nd_json_scan_text(&reader->in, &text, err));
    if (text.len >= sizeof name)
        return nd_fail_at(err, ND_ERR_MALFORMED, text.at, "a dtype of safetensors",
                          "a name of %zu bytes", text.len);
    const size_t len = nd_json_text_decode(&text, name);
    for (size_t i = 0; i < sizeof entry_dtypes / sizeof entry_dtypes[0]; i++)
        if (strcmp(entry_dtypes[i].name, name) == 0)
            info->dtype = &entry_dtypes[i];
    entry->dtype = info->dtype != NULL ? info->dtype->dtype : ND_DTYPE_NONE;
    entry->dtype_text =
        info->dtype != NULL ? info->dtype->name : nd_arena_copy(reader->arena, name, len);
    return entry->dtype_text == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status entry_shape(struct st_reader *reader, struct entry_info *info,
                                  struct st_entry *entry, struct nd_error *err)
{
    struct cursor *in = &reader->in;

    nd_json_skip_blank(in);
    info->shape_at = in->at;
    info->count = 1;
    ND_TRY(nd_json_expect(in, '[', err));
    if (nd_json_accept(in, ']'))
        return ND_OK;
    do {
        uint64_t dim;
        ND_TRY(nd_json_scan_size(in, &dim, err));
        if (info->rank < ND_MAX_RANK)
            entry->shape.dim[info->rank] = dim;
        info->rank++;
        info->empty = info->empty || dim == 0;
        info->huge =
            info->huge || (dim != 0 && !nd_size_mul(info->count, dim, &info->count));
    } while (nd_json_accept(in, ','));
    entry->shape.rank = info->rank < ND_MAX_RANK ? (uint32_t)info->rank : ND_MAX_RANK;
    return nd_json_expect(in, ']', err);
}

static enum nd_status entry_offsets(struct st_reader *reader, struct entry_info *info,
                                    struct st_entry *entry, struct nd_error *err)
{
    struct cursor *in = &reader->in;

    nd_json_skip_blank(in);
    info->offsets_at = in->at;
    ND_TRY(nd_json_expect(in, '[', err));
    ND_TRY(nd_json_scan_size(in, &entry->begin, err));
    ND_TRY(nd_json_expect(in, ',', err));
    ND_TRY(nd_json_scan_size(in, &entry->end, err));
    ND_TRY(nd_json_expect(in, ']', err));
    const uint64_t data_at = reader->header->data_at;
    if (entry->begin > entry->end || entry->end > INT64_MAX - data_at)
        return nd_fail_at(err, ND_ERR_MALFORMED, info->offsets_at,
                          "data_offsets in rising order, below 2^63",
                          "tensor \"%s\" at %" PRIu64 "..%" PRIu64, entry->name,
                          entry->begin, entry->end);
    entry->begin += data_at;
    entry->end += data_at;
    return ND_OK;
}

static enum nd_status entry_member(struct st_reader *reader, struct entry_info *info,
                                   struct st_entry *entry, struct nd_error *err)
{
    struct json_text key;

    ND_TRY(nd_json_scan_text(&reader->in, &key, err));
    ND_TRY(nd_json_expect(&reader->in, ':', err));
    const unsigned bit = nd_json_text_is(&key, "dtype")          ? ST_HAS_DTYPE
                         : nd_json_text_is(&key, "shape")        ? ST_HAS_SHAPE
                         : nd_json_text_is(&key, "data_offsets") ? ST_HAS_OFFSETS
                                                                 : 0;
    if ((info->seen & bit) != 0)
        return nd_fail_at(err, ND_ERR_MALFORMED, key.at, "keys that differ",
                          "the key \"%.*s\" a second time", (int)key.len,
                          (const char *)key.raw);
    info->seen |= bit;
    switch (bit) {
    case ST_HAS_DTYPE:
        return entry_dtype(reader, info, entry, err);
    case ST_HAS_SHAPE:
        return entry_shape(reader, info, entry, err);
    case ST_HAS_OFFSETS:
        return entry_offsets(reader, info, entry, err);
    default:
        return nd_json_scan_value(&reader->in, false, NULL, err);
    }
}

/* Shape, dtype and range must tell the same size. */
static enum nd_status entry_check_size(const struct st_reader *reader,
                                       const struct entry_info *info,
                                       struct st_entry *entry, struct nd_error *err)
{
    char text[400];
    uint64_t bits;
    const uint64_t have = entry->end - entry->begin;
    const uint64_t count = info->empty ? 0 : info->count;

    if (info->dtype == NULL) {
        entry->broken =
            nd_arena_format(reader->arena, "dtype %s is not known", entry->dtype_text);
    } else if (info->huge && !info->empty) {
        return nd_fail_at(err, ND_ERR_MALFORMED, info->shape_at,
                          "a shape whose product is below 2^64",
                          "tensor \"%s\" with shape %s", entry->name,
                          nd_shape_text(&entry->shape, text, sizeof text));
    } else if (!nd_size_mul(count, info->dtype->bits, &bits) || bits % 8 != 0 ||
               bits / 8 != have) {
        return nd_fail_at(err, ND_ERR_MALFORMED, info->offsets_at,
                          "a range as long as shape and dtype need",
                          "tensor \"%s\", %s %s, in a range of %" PRIu64 " bytes",
                          entry->name, entry->dtype_text,
                          nd_shape_text(&entry->shape, text, sizeof text), have);
    } else if (info->rank > ND_MAX_RANK) {
        entry->broken = nd_arena_format(reader->arena,
                                        "%" PRIu64 " dimensions; at most %d "
                                        "are supported",
                                        info->rank, ND_MAX_RANK);
    } else if (entry->dtype == ND_DTYPE_NONE) {
        entry->broken =
            nd_arena_format(reader->arena, "dtype %s is not supported", entry->dtype_text);
    } else {
        return ND_OK;
    }
    return entry->broken == NULL ? nd_fail_memory(err) : ND_OK;
}

enum nd_status nd_st_entry_read(struct st_reader *reader, struct st_entry *entry,
                                struct nd_error *err)
{
    struct entry_info info = {0};

    nd_json_skip_blank(&reader->in);
    const uint64_t at = reader->in.at;
    ND_TRY(nd_json_expect(&reader->in, '{', err));
    if (!nd_json_accept(&reader->in, '}')) {
        do {
            ND_TRY(entry_member(reader, &info, entry, err));
        } while (nd_json_accept(&reader->in, ','));
        ND_TRY(nd_json_expect(&reader->in, '}', err));
    }
    if (info.seen != ST_HAS_ALL)
        return nd_fail_at(err, ND_ERR_MALFORMED, at, "dtype, shape and data_offsets",
                          "tensor \"%s\" without %s", entry->name,
                          (info.seen & ST_HAS_DTYPE) == 0   ? "dtype"
                          : (info.seen & ST_HAS_SHAPE) == 0 ? "shape"
                                                            : "data_offsets");
    return entry_check_size(reader, &info, entry, err);
}
