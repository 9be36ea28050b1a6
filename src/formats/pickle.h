/*
 * Pickle as data: the opcodes build an inert tree; nothing is imported or called.
 *
 * A value is 16 bytes.  Texts are slices of the pickle itself (no NUL); everything that
 * contains others is a list in the arena.  Lists may be shared and may contain
 * themselves, as the memo allows: whoever walks the tree needs a depth limit and uses
 * `walking` to stop at cycles.
 */
#ifndef ND_FORMATS_PICKLE_H
#define ND_FORMATS_PICKLE_H

#include "base/arena.h"
#include "base/cursor.h"

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,   /* integer */
    PICKLE_INT,    /* integer */
    PICKLE_LONG,   /* text: two's complement of more than 8 bytes, little-endian */
    PICKLE_FLOAT,  /* number */
    PICKLE_TEXT,   /* text: UTF-8 as found, not checked */
    PICKLE_BYTES,  /* text: bytes, and the str of Python 2 */
    PICKLE_TUPLE,  /* list */
    PICKLE_LIST,   /* list */
    PICKLE_SET,    /* list */
    PICKLE_DICT,   /* list: key, value, key, value ... in insertion order */
    PICKLE_GLOBAL, /* list: module, name (both TEXT or BYTES) */
    PICKLE_CALL,   /* list of CALL_PARTS: REDUCE, NEWOBJ and their kin, not carried out */
    PICKLE_PERSISTENT, /* list: the persistent id */
    PICKLE_MARK        /* never in a finished tree */
};

/* The items of a PICKLE_CALL; a part that is missing is NONE. */
enum pickle_call_part {
    CALL_CALLABLE,
    CALL_ARGUMENTS, /* TUPLE */
    CALL_STATE,     /* BUILD's argument */
    CALL_ENTRIES,   /* DICT: keyword arguments, and what SETITEMS added */
    CALL_ELEMENTS,  /* LIST: what APPENDS or ADDITEMS added */
    CALL_PARTS
};

struct pickle {
    enum pickle_kind kind;
    uint32_t len; /* bytes of text */
    union {
        int64_t integer;
        double number;
        const char *text;
        struct pickle_list *list;
    } as;
};

struct pickle_list {
    struct pickle *items;
    uint32_t count, capacity;
    bool walking; /* a walk is inside this list now */
};

/* What a pickle may cost in memory, whatever its size; see pickle.c. */
#define ND_PICKLE_MAX_MEMORY ((uint64_t)1 << 30)

/*
 * Reads one pickle of protocol 2 to 5 from in->at to its STOP; in->at is moved past it.
 * persistent (may be NULL) receives every persistent id in order of appearance.
 * ND_ERR_UNSUPPORTED: an opcode of protocol 0 or of buffers outside the stream;
 * ND_ERR_LIMIT: more objects than ND_PICKLE_MAX_MEMORY holds.  Errors carry the byte
 * offset and the opcode's name.
 */
enum nd_status nd_pickle_read(struct cursor *in, struct arena *arena,
                              struct pickle *ret_root, struct pickle_list *ret_persistent,
                              struct nd_error *err);

/* Text or bytes equal to a C string. */
bool nd_pickle_is(const struct pickle *value, const char *text);
/* A GLOBAL of this module and name; NULL module: any. */
bool nd_pickle_is_global(const struct pickle *value, const char *module, const char *name);
/* The i-th item of a tuple, list, set, call or global; NULL past the end or for others. */
const struct pickle *nd_pickle_item(const struct pickle *value, size_t i);
/* The value of a dict's entry by text key; NULL if there is none. */
const struct pickle *nd_pickle_entry(const struct pickle *dict, const char *key);
/* What people call the value: "int", "torch.Size", "os.system (never called)". Returns buf.
 */
const char *nd_pickle_title(const struct pickle *value, char *buf, size_t size);

#endif
