/*
 * Statistics that the device computes in place of a dump (dump_data "stats"): one table a
 * file, {type}.{operator}.{task}.{stream}.{time}.csv.
 *
 *   1. a header line: Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min
 * Value, Avg Value,Count,Nan Count,Negative Inf Count,Positive Inf Count; L2norm and MD5
 * Value may follow
 *   2. a row a tensor; shape as 1x2x3, "-" where it is not known; types that the device
 *      cannot sum (BF16 among them) leave the numbers empty
 *
 * Learned from dump_task.cpp of hicann/runtime.  The figures are of the bytes as they lie:
 * in a padded format the padding counts, and the shape is not the framework's.
 */
#include <stdio.h>
#include <strings.h>

#include "formats/cann_op.h"
#include "formats/format.h"
#include "formats/log_text.h"
#include "formats/stream_digits.h"

enum { STATS_MAX_CELLS = 64, STATS_MAX_LINE = 64 * 1024 };

enum stats_column {
    STATS_SIDE,
    STATS_INDEX,
    STATS_DTYPE,
    STATS_FORMAT,
    STATS_SHAPE,
    STATS_MAX, /* four in the order of enum statistic */
    STATS_MIN,
    STATS_MEAN,
    STATS_NORM,
    STATS_NAN,
    STATS_MD5,
    STATS_COLUMNS
};

static const struct {
    const char *title;
    enum stats_column column;
} stats_titles[] = {
    {"Input/Output", STATS_SIDE  },
    {"Index",        STATS_INDEX },
    {"Data Type",    STATS_DTYPE },
    {"Format",       STATS_FORMAT},
    {"Shape",        STATS_SHAPE },
    {"Max Value",    STATS_MAX   },
    {"Min Value",    STATS_MIN   },
    {"Avg Value",    STATS_MEAN  },
    {"l2norm",       STATS_NORM  },
    {"L2Norm Value", STATS_NORM  },
    {"Nan Count",    STATS_NAN   },
    {"MD5 Value",    STATS_MD5   },
    {"MD5",          STATS_MD5   },
};

static const char stats_magic[] = "Input/Output,Index,";

static int cannstats_probe(const struct dump_head *head)
{
    const size_t len = sizeof stats_magic - 1;

    return head->size >= len &&
                   strncasecmp((const char *)head->bytes, stats_magic, len) == 0
               ? 8 * (int)len
               : 0;
}

struct stats_row {
    struct slice cells[STATS_MAX_CELLS];
    size_t count;
};

/* The cells of the next line; false at the end. */
static bool stats_line(struct cursor *in, struct stats_row *row)
{
    const char *at = (const char *)in->bytes + in->at;
    const size_t left = (size_t)nd_cursor_left(in);

    if (left == 0)
        return false;
    const char *const newline = memchr(at, '\n', left);
    size_t len = newline == NULL ? left : (size_t)(newline - at);
    (void)nd_cursor_skip(in, newline == NULL ? len : len + 1);
    row->count = 0;
    if (len > STATS_MAX_LINE)
        return true; /* no row: passed over */
    const char *const end = at + len;
    while (row->count < STATS_MAX_CELLS) {
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

static struct slice stats_cell(const struct stats_row *row, const int *columns,
                               enum stats_column column)
{
    const int i = columns[column];
    return i < 0 || (size_t)i >= row->count ? (struct slice){"", 0} : row->cells[i];
}

static bool stats_whole(struct slice cell, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (size_t i = 0; i < cell.len; i++) {
        if (!nd_char_digit(cell.at[i]) || i > 17)
            return false;
        value = value * 10 + (uint64_t)(cell.at[i] - '0');
    }
    *ret_value = value;
    return cell.len > 0;
}

/* Whole numbers of whole-numbered tensors are exact. */
static size_t stats_numbers(const struct stats_row *row, const int *columns, bool is_whole,
                            struct statistics *ret)
{
    size_t count = 0;

    for (int i = 0; i < STATISTIC_COUNT; i++) {
        const struct slice cell =
            stats_cell(row, columns, (enum stats_column)(STATS_MAX + i));
        const char *const end = cell.at + cell.len;
        double value, half_unit;
        if (cell.len == 0 || nd_log_number(cell.at, end, &value, &half_unit) != end)
            continue;
        ret->value[i] = value;
        ret->half_unit[i] = is_whole && i < STATISTIC_MEAN
                                ? 0
                                : nd_stream_half_unit(value, half_unit);
        ret->is_nan[i] = value != value;
        count++;
    }
    (void)stats_whole(stats_cell(row, columns, STATS_NAN), &ret->nan_count);
    return count;
}

/* The shape counts only where it is the framework's too. */
static void stats_shape(struct slice cell, const struct cann_format *format,
                        struct dump_slot *slot)
{
    struct nd_shape shape = {0};
    uint64_t dim;

    if (stats_whole(cell, &dim))
        shape = (struct nd_shape){1, {dim}};
    else if (cell.len == 0 ||
             nd_log_shape(cell.at, cell.at + cell.len, &shape) != cell.at + cell.len)
        return;
    slot->storage = shape;
    slot->has_shape = format != NULL && *format->axes != '\0';
}

static enum nd_status stats_slot(struct dump *dump, size_t file,
                                 const struct stats_row *row, const int *columns,
                                 struct dump_slot *slot, struct nd_error *err)
{
    const struct slice type = stats_cell(row, columns, STATS_DTYPE);
    const struct slice format_name = stats_cell(row, columns, STATS_FORMAT);
    const struct slice md5 = stats_cell(row, columns, STATS_MD5);
    const struct cann_dtype *const dtype = nd_cann_dtype_named(type.at, type.len);
    const struct cann_format *const format =
        nd_cann_format_named(format_name.at, format_name.len);

    const bool is_whole = dtype != NULL && dtype->dtype != ND_DTYPE_NONE &&
                          nd_dtype_info(dtype->dtype)->kind != ND_KIND_FLOAT;

    slot->extent.file = file;
    slot->evidence = ND_EVIDENCE_STATISTICS;
    slot->dtype = dtype == NULL ? ND_DTYPE_NONE : dtype->dtype;
    slot->dtype_text = nd_arena_copy(dump->arena, type.at, type.len);
    slot->has_statistics = stats_numbers(row, columns, is_whole, &slot->statistics) > 0;
    stats_shape(stats_cell(row, columns, STATS_SHAPE), format, slot);
    if (format != NULL && *format->axes == '\0')
        slot->layout_text = format->name;
    if (md5.len > 0 && md5.len <= 64)
        slot->checksum = nd_arena_format(dump->arena, "md5:%.*s", (int)md5.len, md5.at);
    if (!slot->has_statistics && slot->checksum != NULL)
        slot->evidence = ND_EVIDENCE_CHECKSUM;
    else if (!slot->has_statistics)
        slot->broken =
            nd_arena_format(dump->arena, "no statistics: the device computes none of %.*s",
                            (int)(type.len < 64 ? type.len : 64), type.at);
    return slot->dtype_text == NULL ||
                   (!slot->has_statistics && slot->broken == NULL && slot->checksum == NULL)
               ? nd_fail_memory(err)
               : ND_OK;
}

static void stats_header(const struct stats_row *row, int *ret_columns)
{
    for (int c = 0; c < STATS_COLUMNS; c++)
        ret_columns[c] = -1;
    for (size_t i = 0; i < row->count; i++)
        for (size_t t = 0; t < sizeof stats_titles / sizeof *stats_titles; t++)
            if (nd_slice_is(row->cells[i], stats_titles[t].title) &&
                ret_columns[stats_titles[t].column] < 0)
                ret_columns[stats_titles[t].column] = (int)i;
}

static enum nd_status cannstats_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct cursor in = nd_dump_bytes(dump, file);
    struct stats_row row = {.count = 0};
    struct dump_layer *layer = NULL;
    int columns[STATS_COLUMNS];
    uint64_t index, last = 0;
    char name[48];

    (void)stats_line(&in, &row);
    stats_header(&row, columns);
    while (stats_line(&in, &row)) {
        const struct slice side = stats_cell(&row, columns, STATS_SIDE);
        const bool is_output = nd_slice_is(side, "output");
        struct dump_slot slot = nd_dump_slot_init();
        if ((!is_output && !nd_slice_is(side, "input")) ||
            !stats_whole(stats_cell(&row, columns, STATS_INDEX), &index) ||
            index > UINT32_MAX)
            continue;
        /* Rows rise, inputs first; one that does not begins another run of the operator. */
        const uint64_t key = index + (is_output ? UINT64_C(1) << 40 : 0) + 1;
        if (layer == NULL || key <= last)
            layer = nd_cann_layer(dump, file, NULL, 0);
        last = key;
        if (layer == NULL)
            return nd_fail_memory(err);
        ND_TRY(stats_slot(dump, file, &row, columns, &slot, err));
        snprintf(name, sizeof name, "%s.%u", is_output ? "output" : "input",
                 (unsigned)index);
        slot.name = name;
        ND_TRY(nd_dump_add_slot(dump, layer, &slot, err));
    }
    if (layer == NULL)
        return nd_fail(err, ND_ERR_MALFORMED, "rows of inputs and outputs", "none");
    dump->device = "npu";
    dump->order = ND_ORDER_TIMESTAMP;
    return ND_OK;
}

const struct dump_format nd_format_cannstats = {
    .name = "cannstats",
    .title = "CANN statistics (.csv)",
    .probe = cannstats_probe,
    .index = cannstats_index,
};
