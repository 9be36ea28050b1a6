/*
 * Inside the msprobe reader: its parts, from the tree of folders down to one element of a
 * record.
 *
 *   format_msprobe.c    recognising, and one site after the other
 *   msprobe_tree.c      the folders: step, rank or process, and what lies above them
 *   msprobe_json.c      dump.json and debug.json as a stream of records
 *   msprobe_slot.c      the members of a record become slots and attributes
 *   msprobe_element.c   one of them taken apart
 *   msprobe_scalar.c    scalar arguments
 *   msprobe_key.c       the grammar of record names
 *   msprobe_operator.c  what positional arguments are called, and what has no meaning
 *   msprobe_payload.c   tensor files, those that no record names too
 *   msprobe_frame.c     construct.json: parents, containers, micro-batches
 *   msprobe_stack.c     stack.json
 *   msprobe_recompute.c recomputed calls: found, checked, taken out of the numbering
 */
#ifndef ND_FORMATS_MSPROBE_H
#define ND_FORMATS_MSPROBE_H

#include "base/text.h"
#include "formats/dump.h"
#include "formats/json_scan.h"

/* --- names of records ---------------------------------------------------------------- */

enum msprobe_form {
    MSPROBE_CALL_LAST,  /* Module.conv1.Conv2d.forward.0 */
    MSPROBE_CALL_FIRST, /* Functional.relu.0.forward, Cell.conv1.Conv2d.0.forward */
    MSPROBE_NO_CALL,    /* Module.conv1.Conv2d.forward */
    MSPROBE_GRAD,       /* Module.conv1.Conv2d.parameters_grad[.0] */
    MSPROBE_DEBUG,      /* attention.3.debug */
    MSPROBE_OTHER
};

struct msprobe_name {
    enum msprobe_form form;
    size_t base_len; /* of the text before direction and call */
    enum direction direction;
    int64_t call;
    bool is_module;   /* Module. or Cell.: the base ends with a class */
    const char *type; /* class or API; in the text, type_len bytes */
    size_t type_len;
};

void nd_msprobe_name_read(const char *text, struct msprobe_name *ret_name);
/* The name with another call number; NULL: out of memory. */
const char *nd_msprobe_name_write(struct arena *arena, const char *text,
                                  const struct msprobe_name *name, int64_t call);

/* --- what is known of operators ------------------------------------------------------- */

struct msprobe_operator {
    const char *name;      /* "layer_norm", or with its prefix: "Torch.batch_norm" */
    const char *arguments; /* names of positional arguments, separated by blanks */
};

/* NULL: nothing is known of its arguments. */
const struct msprobe_operator *nd_msprobe_operator(const char *key,
                                                   const struct msprobe_name *name);
/* The i-th argument's name; false: it has none. */
bool nd_msprobe_argument(const struct msprobe_operator *op, size_t i, char *buf,
                         size_t size);
/* The slot that a tensor argument fills by its name: "weight" gives "param.weight"; NULL:
 * it is an input like any other. */
const char *nd_msprobe_parameter(const struct msprobe_operator *op, const char *argument);
/* Whether a slot's content has no meaning: what empty() returns, a receive buffer.  Without
 * a slot: whether a record may have such slots. */
bool nd_msprobe_undefined(const char *key, const struct msprobe_name *name,
                          const char *slot);

/* --- sites --------------------------------------------------------------------------- */

/* A folder with records or tensor files. */
struct msprobe_site {
    const char *folder;  /* below the root, "" for itself */
    const char *outer;   /* what lies above step and rank, "" for nothing */
    const char *json[2]; /* dump.json, debug.json; NULL: not there */
    bool has_stack, has_construct, has_tensors;
    int64_t step, rank, process; /* -1: none */
};

struct msprobe_sites {
    struct msprobe_site *sites;
    size_t count, capacity;
    bool has_outers; /* of several names */
};

/* Whether a folder holds a msprobe dump, at most a few levels down. */
bool nd_msprobe_tree_probe(int fd);
enum nd_status nd_msprobe_tree_walk(struct dump *dump, struct msprobe_sites *ret_sites,
                                    struct nd_error *err);
/* Whether bytes begin like dump.json: "task", "level", "framework" or "dump_data_dir". */
bool nd_msprobe_head(const unsigned char *bytes, uint64_t size);
/* folder/name; NULL: out of memory. */
const char *nd_msprobe_path(struct dump *dump, const char *folder, const char *name);

/* --- reading ------------------------------------------------------------------------- */

struct msprobe_record {
    const char *key; /* as the dump spells it */
    size_t layer;
    struct msprobe_name name;
    bool recompute;
    const struct msprobe_record *parent; /* NULL: none that was dumped */
    const char *frame; /* of a call: the module around it, dumped or not; NULL: unknown */
};

struct msprobe_row {
    uint64_t hash; /* of the record's key */
    struct msprobe_record *record;
};

struct msprobe_reader {
    struct dump *dump;
    const struct msprobe_site *site;
    struct cursor in; /* dump.json */

    struct msprobe_record *records; /* of this site, in key order */
    size_t record_count, record_capacity;
    struct msprobe_row *by_key; /* sorted by hash and key */

    const char **tensor_files; /* names below dump_tensor_data, sorted */
    bool *tensor_used;
    size_t tensor_file_count;

    /* the record at hand */
    const struct msprobe_operator *op;
    struct text path;  /* of the element at hand: "input.0.1" */
    char argument[64]; /* what the operator calls it; "" for nothing */
    bool is_output;    /* its scalars are results, not arguments */
    bool has_undefined; /* nd_msprobe_undefined may say so of a slot */

    /* the last dtype that was looked up, as it was written and decoded */
    unsigned char dtype_raw[64];
    size_t dtype_len;
    char dtype_text[64];
    enum nd_dtype dtype;
};

/* Reads all records of a file that is mapped. */
enum nd_status nd_msprobe_json(struct msprobe_reader *reader, size_t file,
                               struct nd_error *err);
/*
 * Everything below one member of a record, at the cursor: lists number what they hold,
 * objects name it.  `group` begins the slots' names: "input", "output", "param", "grad".
 */
enum nd_status nd_msprobe_elements(struct msprobe_reader *reader, const char *group,
                                   struct nd_error *err);

/* A JSON value as an attribute of the layer; `key` is its name. */
enum nd_status nd_msprobe_attribute(struct msprobe_reader *reader, struct cursor value,
                                    const char *key, struct nd_error *err);
/*
 * If a list of nothing but scalars ({"type": "int", "value": 8}) stands at the cursor, it
 * becomes one attribute, and the cursor stands behind it; else *ret_done is false.
 */
enum nd_status nd_msprobe_scalar_list(struct msprobe_reader *reader, const char *key,
                                      bool *ret_done, struct nd_error *err);

struct dump_layer *nd_msprobe_layer(struct msprobe_reader *reader);

/* --- tensor files -------------------------------------------------------------------- */

enum nd_status nd_msprobe_files(struct msprobe_reader *reader, struct nd_error *err);
/* Puts the values of a tensor file into a slot that statistics have described; a file
 * that is not there leaves it as it is, with a note. */
enum nd_status nd_msprobe_payload(struct msprobe_reader *reader, const char *data_name,
                                  struct dump_slot *slot, struct nd_error *err);
/* Tensor files that no record named. */
enum nd_status nd_msprobe_leftovers(struct msprobe_reader *reader, struct nd_error *err);

/* --- beside the records -------------------------------------------------------------- */

/* NULL: no record of this name. */
struct msprobe_record *nd_msprobe_find(const struct msprobe_reader *reader,
                                       const char *key);
enum nd_status nd_msprobe_frame(struct msprobe_reader *reader, struct nd_error *err);
enum nd_status nd_msprobe_stack(struct msprobe_reader *reader, struct nd_error *err);
enum nd_status nd_msprobe_recompute(struct msprobe_reader *reader, struct nd_error *err);

/* A JSON string in the arena; NULL: out of memory. */
const char *nd_msprobe_text(struct dump *dump, const struct json_text *text);

#endif
