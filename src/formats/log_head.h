/*
 * The head of a line of key and value; for log_pairs.c.
 */
#ifndef ND_FORMATS_LOG_HEAD_H
#define ND_FORMATS_LOG_HEAD_H

#include "formats/log_record.h"

/* Fills name, type, slot and direction; false if no layer is named. */
bool nd_log_head(struct slice head, struct log_record *record);

#endif
