/*
 * MindSpore's statistic.csv, in all its headers:
 *
 *   1. Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape and
 *      then the statistics that were configured; msprobe's adump writes Input/Output for
 *      IO, and Format before Shape.  Columns are found by their titles
 *   2. Max Value, Min Value, Avg Value, L2Norm Value (old: L2 Value), NaN Count, Negative
 *      Inf Count, Positive Inf Count, MD5, SHA1 are read, counts of zeros and signs are not
 *   3. the shape is quoted: "(2,3)"; a row may end with one comma more
 *   4. max, min and mean leave NaN and infinities out; null where nothing is left
 *   5. numbers have six significant digits or more, without trailing zeros: 3 is 3.00000
 */
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/text.h"
#include "formats/log_text.h"
#include "formats/mindspore.h"
#include "formats/stream_digits.h"

enum { MAX_CELLS = 64, MAX_LINE = 64 * 1024 };

enum column {
    COLUMN_TYPE,
    COLUMN_NAME,
    COLUMN_TIME,
    COLUMN_SIDE,
    COLUMN_SLOT,
    COLUMN_DTYPE,
    COLUMN_FORMAT,
    COLUMN_SHAPE,
    COLUMN_MAX, /* four in the order of enum statistic */
    COLUMN_MIN,
    COLUMN_MEAN,
    COLUMN_NORM,
    COLUMN_NAN,
    COLUMN_NEG_INF,
    COLUMN_POS_INF,
    COLUMN_MD5,
    COLUMN_SHA1,
    COLUMNS
};

static const struct {
    const char *title;
    enum column column;
} titles[] = {
    {"Op Type",            COLUMN_TYPE   },
    {"Op Name",            COLUMN_NAME   },
    {"Timestamp",          COLUMN_TIME   },
    {"IO",                 COLUMN_SIDE   },
    {"Input/Output",       COLUMN_SIDE   },
    {"Slot",               COLUMN_SLOT   },
    {"Data Type",          COLUMN_DTYPE  },
    {"Format",             COLUMN_FORMAT },
    {"Shape",              COLUMN_SHAPE  },
    {"Max Value",          COLUMN_MAX    },
    {"Min Value",          COLUMN_MIN    },
    {"Avg Value",          COLUMN_MEAN   },
    {"L2Norm Value",       COLUMN_NORM   },
    {"L2 Value",           COLUMN_NORM   },
    {"NaN Count",          COLUMN_NAN    },
    {"Negative Inf Count", COLUMN_NEG_INF},
    {"Positive Inf Count", COLUMN_POS_INF},
    {"MD5",                COLUMN_MD5    },
    {"SHA1",               COLUMN_SHA1   },
};

struct row {
    struct slice cells[MAX_CELLS];
    size_t count;
};

struct table {
    struct dump *dump;
    int columns[COLUMNS]; /* -1: not there */
    struct row row;
    int64_t step, rank;
};

static const char magic[] = "Op Type,Op Name,";

bool nd_ms_table_is(const unsigned char *bytes, uint64_t size)
{
    const size_t len = sizeof magic - 1;

    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        bytes += 3;
        size -= 3;
    }
    return size >= len && strncasecmp((const char *)bytes, magic, len) == 0;
}

/* The cells of the next line; false at the end.  A line too long to be a row has none. */
static bool next_row(struct cursor *in, struct row *row)
{
    const char *at = (const char *)in->bytes + in->at;
    const size_t left = (size_t)nd_cursor_left(in);

    if (left == 0)
        return false;
    const char *const newline = memchr(at, '\n', left);
    const size_t len = newline == NULL ? left : (size_t)(newline - at);
    (void)nd_cursor_skip(in, newline == NULL ? len : len + 1);
    row->count = 0;
    const char *const end = at + len;
    while (len <= MAX_LINE && row->count < MAX_CELLS) {
        const char *const first = at;
        for (bool quoted = false; at < end && (quoted || *at != ','); at++)
            quoted = quoted != (*at == '"');
        row->cells[row->count++] =
            nd_slice_trim((struct slice){first, (size_t)(at - first)}, " \"\r\t");
        if (at++ >= end)
            break;
    }
    return true;
}

static struct slice cell(const struct table *table, enum column column)
{
    const int i = table->columns[column];
    return i < 0 || (size_t)i >= table->row.count ? (struct slice){"", 0}
                                                  : table->row.cells[i];
}

static enum nd_status read_head(struct table *table, struct cursor *in,
                                struct nd_error *err)
{
    for (int i = 0; i < COLUMNS; i++)
        table->columns[i] = -1;
    if (in->size >= 3 && memcmp(in->bytes, "\xef\xbb\xbf", 3) == 0)
        in->at = 3;
    if (!next_row(in, &table->row))
        return nd_fail(err, ND_ERR_MALFORMED, "a header line", "an empty file");
    for (size_t i = 0; i < table->row.count; i++)
        for (size_t k = 0; k < sizeof titles / sizeof *titles; k++)
            if (nd_slice_is(table->row.cells[i], titles[k].title) &&
                table->columns[titles[k].column] < 0)
                table->columns[titles[k].column] = (int)i;
    if (table->columns[COLUMN_NAME] >= 0 && table->columns[COLUMN_SIDE] >= 0 &&
        table->columns[COLUMN_SLOT] >= 0)
        return ND_OK;
    return nd_fail_at(err, ND_ERR_MALFORMED, 0, "the columns Op Name, IO and Slot",
                      "a header without them");
}

static bool whole(struct slice text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (text.len == 0 || text.len > 18)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!nd_char_digit(text.at[i]))
            return false;
        value = value * 10 + (uint64_t)(text.at[i] - '0');
    }
    *ret_value = value;
    return true;
}

/* --- a row --------------------------------------------------------------------------- */

/* "(2,3)", "(2,3,)", "()"; nd_log_shape knows the rest. */
static bool read_shape(struct slice text, struct nd_shape *ret_shape)
{
    struct nd_shape shape = {0};
    uint64_t dim;

    if (text.len < 2 || text.at[0] != '(' || text.at[text.len - 1] != ')') {
        const char *const end = text.at + text.len;
        return text.len > 0 && nd_log_shape(text.at, end, ret_shape) == end;
    }
    const char *at = text.at + 1, *const end = text.at + text.len - 1;
    while (at < end) {
        const char *const comma = memchr(at, ',', (size_t)(end - at));
        const char *const stop = comma == NULL ? end : comma;
        const struct slice digits =
            nd_slice_trim((struct slice){at, (size_t)(stop - at)}, " ");
        if (shape.rank == ND_MAX_RANK || !whole(digits, &dim))
            return false;
        shape.dim[shape.rank++] = dim;
        at = stop + 1;
    }
    *ret_shape = shape;
    return true;
}

static void read_statistics(const struct table *table, struct dump_slot *slot)
{
    uint64_t count;

    for (int s = 0; s < STATISTIC_COUNT; s++) {
        const struct slice text = cell(table, (enum column)(COLUMN_MAX + s));
        const char *const end = text.at + text.len;
        double value, half_unit;
        if (nd_slice_is(text, "true") || nd_slice_is(text, "false")) {
            value = nd_slice_is(text, "true") ? 1 : 0;
            half_unit = 0;
        } else if (text.len == 0 ||
                   nd_log_number(text.at, end, &value, &half_unit) != end) {
            continue;
        }
        /* Whole numbers of whole-numbered tensors are exact, not rounded to the unit. */
        const bool is_exact = slot->dtype != ND_DTYPE_NONE && s < STATISTIC_MEAN &&
                              nd_dtype_info(slot->dtype)->kind != ND_KIND_FLOAT;
        slot->statistics.value[s] = value;
        slot->statistics.half_unit[s] = is_exact ? 0 : nd_stream_half_unit(value, half_unit);
        slot->statistics.is_nan[s] = isnan(value);
        slot->has_statistics = true;
    }
    if (whole(cell(table, COLUMN_NAN), &count)) {
        slot->statistics.nan_count = count;
        slot->has_statistics = slot->has_statistics || count > 0;
    }
    if (whole(cell(table, COLUMN_POS_INF), &count) && count > 0) {
        slot->statistics.value[STATISTIC_MAX] = (double)INFINITY;
        slot->has_statistics = true;
    }
    if (whole(cell(table, COLUMN_NEG_INF), &count) && count > 0) {
        slot->statistics.value[STATISTIC_MIN] = -(double)INFINITY;
        slot->has_statistics = true;
    }
}

static enum nd_status read_checksum(const struct table *table, struct dump_slot *slot,
                                    struct nd_error *err)
{
    const struct slice md5 = cell(table, COLUMN_MD5), sha1 = cell(table, COLUMN_SHA1);
    const struct slice *const which = md5.len > 0 ? &md5 : &sha1;

    if (which->len == 0 || nd_slice_is(*which, "null") || which->len > 128)
        return ND_OK;
    slot->checksum =
        nd_arena_format(table->dump->arena, "%s:%.*s", which == &md5 ? "md5" : "sha1",
                        (int)which->len, which->at);
    if (slot->checksum == NULL)
        return nd_fail_memory(err);
    slot->evidence = ND_EVIDENCE_CHECKSUM;
    return ND_OK;
}

static const char *keep(const struct table *table, enum column column)
{
    const struct slice text = cell(table, column);
    char *const copy = nd_arena_copy(table->dump->arena, text.at, text.len);

    for (char *p = copy; column == COLUMN_NAME && p != NULL && *p != '\0'; p++)
        if (*p == '/')
            *p = '_';
    return copy;
}

static enum nd_status read_slot(const struct table *table, struct dump_slot *slot,
                                struct nd_error *err)
{
    const struct slice dtype = cell(table, COLUMN_DTYPE);
    const struct slice format = cell(table, COLUMN_FORMAT);

    *slot = nd_dump_slot_init();
    slot->evidence = ND_EVIDENCE_STATISTICS;
    slot->dtype = nd_dtype_by_name(dtype.at, dtype.len);
    if (slot->dtype == ND_DTYPE_NONE && dtype.len > 0)
        slot->dtype_text = keep(table, COLUMN_DTYPE);
    if (format.len > 0 && !nd_slice_is(format, "DefaultFormat") &&
        !nd_slice_is(format, "ND"))
        slot->layout_text = keep(table, COLUMN_FORMAT);
    slot->has_shape = read_shape(cell(table, COLUMN_SHAPE), &slot->storage);
    read_statistics(table, slot);
    return read_checksum(table, slot, err);
}

static enum nd_status read_row(struct table *table, struct ms_items *items,
                               struct nd_error *err)
{
    struct ms_item item = {.step = table->step, .rank = table->rank, .is_row = true};
    const struct slice side = cell(table, COLUMN_SIDE);

    item.is_output = nd_slice_is(side, "output");
    if ((!item.is_output && !nd_slice_is(side, "input")) ||
        !whole(cell(table, COLUMN_SLOT), &item.slot) || cell(table, COLUMN_NAME).len == 0)
        return ND_OK; /* an empty line, a header again, or one cut short */
    (void)whole(cell(table, COLUMN_TIME), &item.time);
    item.type = keep(table, COLUMN_TYPE);
    item.op = keep(table, COLUMN_NAME);
    if (item.type == NULL || item.op == NULL)
        return nd_fail_memory(err);
    ND_TRY(read_slot(table, &item.values, err));
    return nd_ms_item_add(table->dump, items, &item, err);
}

enum nd_status nd_ms_table(struct dump *dump, size_t file, int64_t step, int64_t rank,
                           struct ms_items *items, struct nd_error *err)
{
    struct cursor in = nd_dump_bytes(dump, file);
    struct table table = {.dump = dump, .step = step, .rank = rank};

    ND_TRY(read_head(&table, &in, err));
    while (next_row(&in, &table.row))
        ND_TRY(read_row(&table, items, err));
    return ND_OK;
}
