/*
 * Console logs as a whole: the two formats that read them differ only in the side they
 * take where a log shows two runs.
 */
#ifndef ND_FORMATS_LOG_READER_H
#define ND_FORMATS_LOG_READER_H

#include "formats/format.h"
#include "formats/log_record.h"

/* Bits of evidence that these bytes are a log with prints of statistics. */
int nd_log_probe(const struct dump_head *head);

enum nd_status nd_log_index(struct dump *dump, size_t file, enum log_side side,
                            struct nd_error *err);

#endif
