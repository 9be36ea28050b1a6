/*
 * Hook prints and console logs: "layers.3.norm: max=4.561230, mean=0.012345" and the other
 * shapes of docs/formats/logs.md.  Where a log shows two runs, the run under test (NPU
 * columns, the first runner) is read; format_benchlog.c reads the other.
 */
#include "formats/log_reader.h"

static enum nd_status hooklog_index(struct dump *dump, size_t file, struct nd_error *err)
{
    return nd_log_index(dump, file, LOG_SIDE_CANDIDATE, err);
}

const struct dump_format nd_format_hooklog = {
    .name = "hooklog",
    .title = "hook print or console log",
    .probe = nd_log_probe,
    .index = hooklog_index,
    .is_log = true,
};
