/*
 * The keys of lines of key and value, as people spell them.
 */
#ifndef ND_FORMATS_LOG_KEYS_H
#define ND_FORMATS_LOG_KEYS_H

#include "formats/log_record.h"

enum log_key {
    KEY_NONE,
    KEY_MAX,
    KEY_MIN,
    KEY_MEAN,
    KEY_NORM,
    KEY_NAN,
    KEY_SHAPE,
    KEY_DTYPE,
    KEY_DEVICE,
    KEY_NAME,
    KEY_SLOT,    /* "output=0" */
    KEY_ABS_MAX, /* of absolute values: read where nothing better is printed */
    KEY_ABS_MEAN,
    KEY_OTHER, /* a statistic that is not compared */
};

/* Without case, dashes, dots and underscores; KEY_NONE if it is none. */
enum log_key nd_log_key(struct slice word);
/* "out_max": the slot before the joint, and the key behind it. */
enum log_key nd_log_key_with_slot(struct slice word, char slot[32]);

#endif
