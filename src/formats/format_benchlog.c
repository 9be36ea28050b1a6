/*
 * The other side of a log that shows two runs (format_hooklog.c): the Bench columns of
 * msprobe's comparison table, the second runner of Polygraphy.  Nothing in such a file says
 * which side is wanted, so it is never recognised; --input-format asks for it.
 */
#include "formats/log_reader.h"

static int benchlog_probe(const struct dump_head *head)
{
    (void)head;
    return 0;
}

static enum nd_status benchlog_index(struct dump *dump, size_t file, struct nd_error *err)
{
    return nd_log_index(dump, file, LOG_SIDE_REFERENCE, err);
}

const struct dump_format nd_format_benchlog = {
    .name = "benchlog",
    .title = "console log, reference side",
    .probe = benchlog_probe,
    .index = benchlog_index,
    .is_log = true,
};
