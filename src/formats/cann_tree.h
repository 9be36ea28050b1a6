/*
 * Inside the readers of CANN's folders: the files below one, with what their paths tell.
 */
#ifndef ND_FORMATS_CANN_TREE_H
#define ND_FORMATS_CANN_TREE_H

#include "formats/cann_name.h"
#include "formats/format.h"

struct tree_file {
    const char *path;  /* below the root */
    const char *name;  /* the base name, looked up in mapping.csv where it is a number */
    const char *model; /* "": none */
    int64_t step, rank;
    bool rank_is_device; /* nothing but the device's number stands for the rank */
    struct cann_name parsed;
    bool is_named; /* parsed is filled */
    size_t file;   /* of the dump; SIZE_MAX: not opened */
};

struct tree {
    struct tree_file *files;
    size_t count, capacity;
};

/* Lists all files below the root, with long names put back and paths understood. */
enum nd_status nd_tree_walk(struct dump *dump, struct tree *tree, struct nd_error *err);
/* True if names below the folder are those of CANN dumps, or of arrays made from such. */
enum tree_kind { TREE_NONE, TREE_ARRAYS, TREE_DUMPS };
enum tree_kind nd_tree_kind(const struct dump_directory *directory);

/* What a folder's path says of the files in it. */
struct tree_place {
    int64_t step, rank;
    bool rank_is_device;
    const char *model; /* "": none */
};
/* `path` has no trailing slash; "" is the root. */
enum nd_status nd_tree_place(struct arena *arena, const char *path,
                             struct tree_place *ret_place, struct nd_error *err);

/* The layers of a tree with what is known of their files, in any order. */
struct tree_layer {
    struct dump_layer layer;
    const struct tree_file *file;
    const char *key; /* the escaped name: one operator has one */
    size_t index;
};
/* Orders the dump's layers by time, numbers the executions of each operator, and drops
 * what is there in a better form too.  owners[i] is the file of layer i. */
enum nd_status nd_tree_number(struct dump *dump, const struct tree_file *const *owners,
                              struct nd_error *err);

#endif
