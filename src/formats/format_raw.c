/*
 * Numbers without a header, as --raw describes them.
 *
 *   1. the description: an element type as any framework spells it, optionally ':' and the
 *      dimensions, split by ',' or 'x': "float32:4,128,768", "half:16x16"; without
 *      dimensions the file is one row.  '>' in front means big-endian, '<' little-endian
 *   2. the file: exactly that many elements, the last axis running fastest
 *
 * No bytes are evidence of this format: it is used where it was asked for by
 * --input-format raw, and with --raw for files that nothing else claims.
 */
#include <inttypes.h>

#include "formats/format.h"

static enum nd_status fail_description(const char *raw, const char *at,
                                       const char *expected, struct nd_error *err)
{
    return nd_fail_key(err, ND_ERR_USAGE, "--raw", expected, "'%s' in '%s'", at, raw);
}

static enum nd_status read_dimensions(const char *raw, const char *at,
                                      struct nd_shape *shape, struct nd_error *err)
{
    for (;; at++) {
        uint64_t value = 0;
        const char *const begin = at;
        for (; *at >= '0' && *at <= '9'; at++)
            if (!nd_size_mul(value, 10, &value) ||
                !nd_size_add(value, (uint64_t)(*at - '0'), &value) || value > INT64_MAX)
                return fail_description(raw, begin, "a dimension below 2^63", err);
        if (at == begin || (*at != '\0' && *at != ',' && *at != 'x'))
            return fail_description(raw, begin, "dimensions such as 4,128,768", err);
        if (shape->rank == ND_MAX_RANK)
            return fail_description(raw, begin, "at most 16 dimensions", err);
        shape->dim[shape->rank++] = value;
        if (*at == '\0')
            return ND_OK;
    }
}

static enum nd_status read_description(const char *raw, uint64_t size,
                                       struct dump_slot *slot, struct nd_error *err)
{
    const char *const type = *raw == '<' || *raw == '>' ? raw + 1 : raw;
    const char *const colon = strchr(type, ':');
    const size_t len = colon == NULL ? strlen(type) : (size_t)(colon - type);

    slot->dtype = nd_dtype_by_name(type, len);
    if (slot->dtype == ND_DTYPE_NONE)
        return fail_description(raw, type, "an element type such as float32", err);
    const unsigned element = nd_dtype_info(slot->dtype)->size;
    slot->swapped = *raw == '>' && element > 1;
    slot->has_shape = true;
    if (colon != NULL)
        return read_dimensions(raw, colon + 1, &slot->storage, err);
    slot->storage = (struct nd_shape){1, {size / element}};
    return ND_OK;
}

enum nd_status nd_raw_check(const char *raw, struct nd_error *err)
{
    struct dump_slot slot = nd_dump_slot_init();
    uint64_t need;

    if (raw == NULL)
        return ND_OK;
    ND_TRY(read_description(raw, 0, &slot, err));
    if (!nd_shape_bytes(&slot.storage, nd_dtype_info(slot.dtype)->size, &need))
        return fail_description(raw, raw, "a shape below 2^63 bytes", err);
    return ND_OK;
}

static int raw_probe(const struct dump_head *head)
{
    (void)head;
    return 0;
}

static enum nd_status raw_index(struct dump *dump, size_t file, struct nd_error *err)
{
    const uint64_t size = nd_dump_bytes(dump, file).size;
    struct dump_slot slot = nd_dump_slot_init();
    uint64_t need;
    char shape[400];

    if (dump->raw == NULL)
        return nd_fail_key(err, ND_ERR_USAGE, "--raw",
                           "a type and a shape: --raw float32:4,128",
                           "none, and raw numbers do not say what they are");
    ND_TRY(read_description(dump->raw, size, &slot, err));
    const struct dtype_info *const info = nd_dtype_info(slot.dtype);
    nd_shape_text(&slot.storage, shape, sizeof shape);
    if (!nd_shape_bytes(&slot.storage, info->size, &need))
        return fail_description(dump->raw, shape, "a shape below 2^63 bytes", err);
    if (need != size) {
        nd_fail(err, ND_ERR_MALFORMED, NULL,
                "%" PRIu64 " bytes: %" PRIu64 " elements of %s", size, size / info->size,
                info->name);
        nd_error_expected(err, "%" PRIu64 " bytes for shape %s", need, shape);
        return ND_ERR_MALFORMED;
    }
    slot.extent = (struct extent){.file = file, .size = size, .raw_size = size};
    dump->order = ND_ORDER_NAME;
    return nd_dump_add_lone(dump, file, &slot, err);
}

const struct dump_format nd_format_raw = {
    .name = "raw",
    .title = "raw numbers",
    .probe = raw_probe,
    .index = raw_index,
};
