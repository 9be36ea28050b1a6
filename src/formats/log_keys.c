/*
 * The keys of lines of key and value: one table.  Keys that are statistics but none of ours
 * stand in it too, because a line that begins with one of them is a print all the same.
 */
#include "formats/log_keys.h"

#include <strings.h>

static const struct {
    const char *word;
    enum log_key key;
} log_keys[] = {
    {"max",          KEY_MAX     },
    {"maximum",      KEY_MAX     },
    {"amax",         KEY_MAX     },
    {"cleanmax",     KEY_MAX     },
    {"maxvalue",     KEY_MAX     },
    {"min",          KEY_MIN     },
    {"minimum",      KEY_MIN     },
    {"amin",         KEY_MIN     },
    {"cleanmin",     KEY_MIN     },
    {"minvalue",     KEY_MIN     },
    {"mean",         KEY_MEAN    },
    {"avg",          KEY_MEAN    },
    {"average",      KEY_MEAN    },
    {"meanvalue",    KEY_MEAN    },
    {"norm",         KEY_NORM    },
    {"l2norm",       KEY_NORM    },
    {"nan",          KEY_NAN     },
    {"nans",         KEY_NAN     },
    {"numnan",       KEY_NAN     },
    {"nancount",     KEY_NAN     },
    {"shape",        KEY_SHAPE   },
    {"size",         KEY_SHAPE   },
    {"dtype",        KEY_DTYPE   },
    {"device",       KEY_DEVICE  },
    {"name",         KEY_NAME    },
    {"layer",        KEY_NAME    },
    {"layername",    KEY_NAME    },
    {"module",       KEY_NAME    },
    {"case",         KEY_NAME    },
    {"op",           KEY_NAME    },
    {"output",       KEY_SLOT    },
    {"input",        KEY_SLOT    },
    {"std",          KEY_OTHER   },
    {"stddev",       KEY_OTHER   },
    {"var",          KEY_OTHER   },
    {"variance",     KEY_OTHER   },
    {"sum",          KEY_OTHER   },
    {"median",       KEY_OTHER   },
    {"absmax",       KEY_ABS_MAX },
    {"absmean",      KEY_ABS_MEAN},
    {"avgmagnitude", KEY_OTHER   },
    {"rms",          KEY_OTHER   },
    {"numel",        KEY_OTHER   },
    {"numinf",       KEY_OTHER   },
    {"inf",          KEY_OTHER   },
    {"numzero",      KEY_OTHER   },
    {"maxabs",       KEY_ABS_MAX },
    {"meanabs",      KEY_ABS_MEAN},
    {"maxrel",       KEY_OTHER   },
};

enum log_key nd_log_key(struct slice word)
{
    char plain[24];
    size_t len = 0;

    for (size_t i = 0; i < word.len; i++) {
        const char c = word.at[i];
        if (c == '-' || c == '_' || c == '.')
            continue;
        if (len + 1 == sizeof plain)
            return KEY_NONE;
        plain[len++] = c;
    }
    plain[len] = '\0';
    const char first = (char)(plain[0] | 0x20);
    for (size_t i = 0; i < sizeof log_keys / sizeof log_keys[0]; i++)
        if (log_keys[i].word[0] == first &&
            strcasecmp(log_keys[i].word, plain) == 0)
            return log_keys[i].key;
    return KEY_NONE;
}

/* "out_max": the slot before the first joint, and the key behind it. */
enum log_key nd_log_key_with_slot(struct slice word, char slot[32])
{
    for (size_t i = 1; i + 1 < word.len; i++) {
        if (word.at[i] != '_' && word.at[i] != '.' && word.at[i] != '-')
            continue;
        const enum log_key key =
            nd_log_key((struct slice){word.at + i + 1, word.len - i - 1});
        if (key != KEY_NONE && nd_log_slot((struct slice){word.at, i}, slot))
            return key;
    }
    return KEY_NONE;
}
