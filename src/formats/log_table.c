/*
 * Tables in logs: comma-separated files with a header line (msprobe's comparison and
 * monitor tables among them) and Markdown or console tables with bars.  A header counts
 * if it names a layer column and at least one statistic; the columns of the other run, and
 * all that we do not know, are passed over.
 */
#include <string.h>
#include <strings.h>

#include "formats/log_record.h"

/* Headers without case, blanks, dashes, underscores and stars, and without the side. */
static const struct {
    const char *word;
    enum log_column column;
} table_words[] = {
    {"name",        COLUMN_NAME      },
    {"layer",       COLUMN_NAME      },
    {"layername",   COLUMN_NAME      },
    {"module",      COLUMN_NAME      },
    {"modulename",  COLUMN_NAME      },
    {"op",          COLUMN_NAME      },
    {"opname",      COLUMN_NAME      },
    {"operator",    COLUMN_NAME      },
    {"node",        COLUMN_NAME      },
    {"tensor",      COLUMN_NAME      },
    {"tensorname",  COLUMN_NAME      },
    {"max",         COLUMN_MAX       },
    {"min",         COLUMN_MIN       },
    {"mean",        COLUMN_MEAN      },
    {"avg",         COLUMN_MEAN      },
    {"norm",        COLUMN_NORM      },
    {"l2norm",      COLUMN_NORM      },
    {"shape",       COLUMN_SHAPE     },
    {"tensorshape", COLUMN_SHAPE     },
    {"dtype",       COLUMN_DTYPE     },
    {"tensordtype", COLUMN_DTYPE     },
    {"step",        COLUMN_STEP      },
    {"microstep",   COLUMN_MICRO_STEP},
    {"rank",        COLUMN_RANK      },
};

/* Splits a line; quotes hold delimiters, a bar at either end of the line holds none. */
static size_t table_split(const char *at, const char *end, char delimiter,
                          struct slice cells[ND_LOG_COLUMNS])
{
    size_t count = 0;

    while (end > at && end[-1] == ' ')
        end--;
    if (delimiter == '|' && at < end && *at == '|') {
        at++;
        if (end > at && end[-1] == '|')
            end--;
    }
    for (const char *first = at; count < ND_LOG_COLUMNS; first = at + 1) {
        bool quoted = false;
        for (at = first; at < end && (quoted || *at != delimiter); at++)
            if (*at == '"' && delimiter != '|')
                quoted = !quoted;
        cells[count++] =
            nd_slice_trim((struct slice){first, (size_t)(at - first)}, " \"*`");
        if (at >= end)
            break;
    }
    return count;
}

/* "NPU Tensor Shape" as "tensorshape" of a side; -1: no column of ours or not our side. */
static int table_column(struct slice cell, enum log_side side)
{
    char plain[24];
    size_t len = 0;
    const char *word = plain;
    static const char *const sides[] = {"npu", "bench"};

    for (size_t i = 0; i < cell.len; i++) {
        const char c = cell.at[i];
        if (c == ' ' || c == '_' || c == '-' || c == '*')
            continue;
        if (len + 1 == sizeof plain)
            return -1;
        plain[len++] = c;
    }
    plain[len] = '\0';
    for (int i = 0; i < 2; i++) {
        const size_t prefix = strlen(sides[i]);
        if (strncasecmp(plain, sides[i], prefix) != 0)
            continue;
        if (i != (int)side)
            return -1;
        word = plain + prefix;
    }
    for (size_t i = 0; i < sizeof table_words / sizeof table_words[0]; i++)
        if (strcasecmp(word, table_words[i].word) == 0)
            return (int)table_words[i].column;
    return -1;
}

bool nd_log_table_header(const char *at, const char *end, enum log_side side,
                         struct log_table *table)
{
    static const char delimiters[] = ",|;";
    struct slice cells[ND_LOG_COLUMNS];

    if (memchr(at, '=', (size_t)(end - at)) != NULL)
        return false; /* a line of pairs, which is the common case */
    for (const char *delimiter = delimiters; *delimiter != '\0'; delimiter++) {
        struct log_table found = {.delimiter = *delimiter};
        if (memchr(at, *delimiter, (size_t)(end - at)) == NULL)
            continue;
        for (int i = 0; i < COLUMN_KINDS; i++)
            found.column[i] = -1;
        found.columns = table_split(at, end, *delimiter, cells);
        for (size_t i = 0; i < found.columns; i++) {
            const int column = table_column(cells[i], side);
            if (column >= 0 && found.column[column] < 0)
                found.column[column] = (int)i; /* the first of two equal headers */
        }
        bool has_statistic = false;
        for (int i = COLUMN_MAX; i <= COLUMN_NORM; i++)
            has_statistic = has_statistic || found.column[i] >= 0;
        if (found.column[COLUMN_NAME] < 0 || !has_statistic)
            continue;
        *table = found;
        return true;
    }
    return false;
}

static struct slice row_cell(const struct slice *cells, size_t count,
                             const struct log_table *table, enum log_column column)
{
    const int i = table->column[column];

    return i < 0 || (size_t)i >= count ? (struct slice){"", 0} : cells[i];
}

static int64_t row_whole(struct slice cell)
{
    int64_t value = 0;

    if (cell.len == 0 || cell.len > 15)
        return -1;
    for (size_t i = 0; i < cell.len; i++) {
        if (!nd_char_digit(cell.at[i]))
            return -1;
        value = value * 10 + (cell.at[i] - '0');
    }
    return value;
}

/* A whole cell that is one number ("≈0.5" has become "=0.5"). */
static bool row_number(struct slice cell, double *ret_value, double *ret_half_unit)
{
    cell = nd_slice_trim(cell, " =~*");
    const char *end = cell.at + cell.len;

    return cell.len > 0 && nd_log_number(cell.at, end, ret_value, ret_half_unit) == end;
}

bool nd_log_table_row(const char *at, const char *end, const struct log_table *table,
                      struct log_record *ret_record)
{
    struct slice cells[ND_LOG_COLUMNS];
    struct log_record record = nd_log_record_init();

    if (table->delimiter == 0 || at >= end)
        return false;
    const size_t count = table_split(at, end, table->delimiter, cells);
    if (count != table->columns)
        return false;
    record.name = row_cell(cells, count, table, COLUMN_NAME);
    if (record.name.len == 0 || record.name.len > ND_LOG_NAME_MAX ||
        nd_slice_is(record.name, "N/A"))
        return false;
    for (int i = 0; i < STATISTIC_COUNT; i++) {
        double value, half;
        if (row_number(row_cell(cells, count, table, (enum log_column)(COLUMN_MAX + i)),
                       &value, &half))
            nd_log_record_put(&record, (enum statistic)i, value, half);
    }
    if (record.printed == 0)
        return false;
    const struct slice shape = row_cell(cells, count, table, COLUMN_SHAPE);
    record.has_shape = shape.len > 0 && nd_log_shape(shape.at, shape.at + shape.len,
                                                     &record.shape) == shape.at + shape.len;
    record.dtype = row_cell(cells, count, table, COLUMN_DTYPE);
    record.step = row_whole(row_cell(cells, count, table, COLUMN_STEP));
    record.rank = row_whole(row_cell(cells, count, table, COLUMN_RANK));
    record.micro_step = row_whole(row_cell(cells, count, table, COLUMN_MICRO_STEP));
    record.strength = LOG_FAIR;
    *ret_record = record;
    return true;
}
