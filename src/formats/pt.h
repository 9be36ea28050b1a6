/*
 * PyTorch files: what format_pt.c (ZIP) and format_ptlegacy.c (a stream of pickles) share.
 * Both find the pickle and the storages; pt_tree.c walks the pickle's tree by name,
 * pt_tensor.c and pt_numpy.c turn one object of it into a slot, pt_storage.c finds its
 * bytes.
 */
#ifndef ND_FORMATS_PT_H
#define ND_FORMATS_PT_H

#include "formats/dump.h"
#include "formats/pickle.h"

/* The bytes of one storage. */
struct pt_storage {
    uint64_t offset, stored_size, size; /* size: decoded */
    enum codec codec;
};

/* A storage's persistent id, taken apart. */
struct pt_storage_id {
    const struct pickle *key, *location;
    enum nd_dtype dtype;
    bool untyped;
    uint64_t numel;      /* of the view, where there is one */
    uint64_t root_numel; /* of the whole storage */
    uint64_t view_first;
};

struct pt_source {
    struct dump *dump;
    size_t file;      /* where the storages lie */
    size_t text_file; /* where the pickle lies, for arrays inside it */
    bool swapped;     /* storages hold big-endian elements */
    bool is_cut;      /* the file ends before its storages do */

    /* Finds a storage by its key; NULL, or the reason why there is none. */
    const char *(*find)(struct pt_source *source, const struct pickle *key,
                        struct pt_storage *ret_storage);
    const void *user;

    /* Arrays whose bytes have to be decoded go to a temporary file; see pt_numpy.c. */
    int spool; /* descriptor, -1: none yet */
    size_t spool_file;
    uint64_t spool_used, spool_size;
    uint64_t text_left; /* bytes of array text that may still be looked at */
};

/* Adds every tensor of the tree to the dump, in insertion order. */
enum nd_status nd_pt_walk(struct pt_source *source, const struct pickle *root,
                          uint64_t pickle_size, struct nd_error *err);

/*
 * If the value stands for a tensor, a storage or a NumPy array, fills the slot and sets
 * *ret_is_tensor; what cannot be rebuilt gives a slot with `broken` set.  Fails only for
 * want of memory or of a temporary file.
 */
enum nd_status nd_pt_tensor(struct pt_source *source, const struct pickle *value,
                            bool *ret_is_tensor, struct dump_slot *ret_slot,
                            struct nd_error *err);
enum nd_status nd_pt_numpy(struct pt_source *source, const struct pickle *call,
                           bool *ret_is_tensor, struct dump_slot *ret_slot,
                           struct nd_error *err);

/* The functions below return NULL, or why not, for dump_slot.broken. */

/* Whole numbers of a tuple, a list or torch.Size as dimensions. */
const char *nd_pt_shape(const struct pickle *value, struct nd_shape *ret_shape);
const char *nd_pt_storage_id(struct arena *arena, const struct pickle *persistent,
                             struct pt_storage_id *ret_id);
const char *nd_pt_storage_find(struct pt_source *source, const struct pt_storage_id *id,
                               struct pt_storage *ret_storage);
/* Completes a slot whose dtype is set: shape and strides (in elements) from element `first`
 * of a storage on. */
const char *nd_pt_place(struct arena *arena, struct dump_slot *slot, size_t file,
                        const struct pt_storage *storage, uint64_t first,
                        const struct nd_shape *shape, const int64_t *strides);

/* A value that is a whole number from 0 on. */
bool nd_pt_size(const struct pickle *value, uint64_t *ret_size);
/* text and the name of a global or of a call's callable, in the arena. */
const char *nd_pt_reason(struct arena *arena, const char *text,
                         const struct pickle *global);

#endif
