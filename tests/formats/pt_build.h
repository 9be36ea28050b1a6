/*
 * PyTorch files put together by hand: pickles that torch.save would never write, around
 * storages of any size.
 */
#ifndef ND_TESTS_FORMATS_PT_BUILD_H
#define ND_TESTS_FORMATS_PT_BUILD_H

#include "formats/build.h"

/* Parts of a pickle. */
void pkl_text(struct bytes *pickle, const char *text);
void pkl_int(struct bytes *pickle, int64_t value);
void pkl_tuple(struct bytes *pickle, const int64_t *values, size_t count);
void pkl_global(struct bytes *pickle, const char *module, const char *name);

/* One call of _rebuild_tensor_v2 over a FloatStorage. */
struct pkl_tensor {
    const char *key;
    int64_t numel, offset;
    size_t rank;
    int64_t size[20], stride[20];
};
void pkl_tensor_put(struct bytes *pickle, const struct pkl_tensor *tensor);

/* A member of an archive named "x": x/NAME. */
struct pt_member {
    const char *name;
    const void *data;
    size_t size;
};
/* Archive with this data.pkl and these further members, in PyTorch's manner. */
struct bytes pt_archive(const struct bytes *pickle, const struct pt_member *members,
                        size_t count);
/* The same for {"t": tensor, "good": tensor 0 of storage "good"} and storage "0" of
 * `floats` floats 0, 1, 2 ... */
struct bytes pt_with_tensor(const struct pkl_tensor *tensor, size_t floats);

#endif
