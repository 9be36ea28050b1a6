/*
 * What one print says about one tensor, and the two kinds of lines that say it.  Slices
 * point into the line.
 */
#ifndef ND_FORMATS_LOG_RECORD_H
#define ND_FORMATS_LOG_RECORD_H

#include "formats/log_text.h"
#include "tensor/view.h"

enum {
    ND_LOG_GROUPS = 16,    /* tensors that one line speaks of */
    ND_LOG_COLUMNS = 128,  /* of a table */
    ND_LOG_NAME_MAX = 4000 /* a slot behind it still fits into a name of 4096 bytes */
};

/* How sure we are that a print of statistics was meant. */
enum log_strength { LOG_WEAK, LOG_FAIR, LOG_STRONG };

struct log_number {
    double value, half_unit;
    bool is_there;
};

struct log_record {
    struct slice name; /* of the layer, or of the tensor where slot is empty */
    struct slice type;
    char slot[32]; /* "output.0"; "": the name tells */
    bool backward;
    struct statistics statistics;
    size_t printed;                /* how many of max, min, mean and norm */
    bool has_absolute;             /* max and mean are those of absolute values */
    struct log_number absolute[2]; /* max, mean */
    bool has_shape;
    struct nd_shape shape;
    struct slice dtype, device;
    int64_t step, rank, micro_step; /* -1: none */
    enum log_strength strength;
};

struct log_record nd_log_record_init(void);
void nd_log_record_put(struct log_record *record, enum statistic which, double value,
                       double half_unit);

/* "out", "input[1]", "output.0.1": true, with the slot's name. */
bool nd_log_slot(struct slice word, char slot[32]);

/*
 * Lines of key and value: "layers.3.norm: max=4.56, mean=0.01", and relatives.  Returns
 * how many records were filled; 0 if the line is none of them.  *ret_nameless: there are
 * pairs, but nothing that names a layer.
 */
size_t nd_log_pairs(const char *at, const char *end,
                    struct log_record records[ND_LOG_GROUPS], bool *ret_nameless);

/* Which side of a table (or of a Polygraphy log) that shows two runs. */
enum log_side { LOG_SIDE_CANDIDATE, LOG_SIDE_REFERENCE };

enum log_column {
    COLUMN_NAME,
    COLUMN_MAX, /* the four statistics in the order of enum statistic */
    COLUMN_MIN,
    COLUMN_MEAN,
    COLUMN_NORM,
    COLUMN_SHAPE,
    COLUMN_DTYPE,
    COLUMN_STEP,
    COLUMN_MICRO_STEP,
    COLUMN_RANK,
    COLUMN_KINDS
};

/* The header of the table that the lines stand in. */
struct log_table {
    char delimiter; /* 0: no table */
    size_t columns;
    int column[COLUMN_KINDS]; /* -1: none */
};

/* True if the line is a header; then the table begins anew. */
bool nd_log_table_header(const char *at, const char *end, enum log_side side,
                         struct log_table *table);
/* True if the line is a row of the table with statistics in it. */
bool nd_log_table_row(const char *at, const char *end, const struct log_table *table,
                      struct log_record *ret_record);

#endif
