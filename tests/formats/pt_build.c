/*
 * Pickles and archives by hand.
 */
#include "formats/pt_build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void pkl_text(struct bytes *pickle, const char *text)
{
    bytes_text(pickle, "X");
    bytes_le(pickle, strlen(text), 4);
    bytes_text(pickle, text);
}

void pkl_int(struct bytes *pickle, int64_t value)
{
    bytes_put(pickle, "\x8a\x08", 2);
    bytes_le(pickle, (uint64_t)value, 8);
}

void pkl_tuple(struct bytes *pickle, const int64_t *values, size_t count)
{
    bytes_text(pickle, "(");
    for (size_t i = 0; i < count; i++)
        pkl_int(pickle, values[i]);
    bytes_text(pickle, "t");
}

void pkl_global(struct bytes *pickle, const char *module, const char *name)
{
    bytes_text(pickle, "c");
    bytes_text(pickle, module);
    bytes_text(pickle, "\n");
    bytes_text(pickle, name);
    bytes_text(pickle, "\n");
}

void pkl_tensor_put(struct bytes *pickle, const struct pkl_tensor *tensor)
{
    pkl_global(pickle, "torch._utils", "_rebuild_tensor_v2");
    bytes_text(pickle, "((");
    pkl_text(pickle, "storage");
    pkl_global(pickle, "torch", "FloatStorage");
    pkl_text(pickle, tensor->key);
    pkl_text(pickle, "cpu");
    pkl_int(pickle, tensor->numel);
    bytes_text(pickle, "tQ");
    pkl_int(pickle, tensor->offset);
    pkl_tuple(pickle, tensor->size, tensor->rank);
    pkl_tuple(pickle, tensor->stride, tensor->rank);
    bytes_text(pickle, "\x89");
    pkl_global(pickle, "collections", "OrderedDict");
    bytes_text(pickle, ")RtR");
}

struct bytes pt_archive(const struct bytes *pickle, const struct pt_member *members,
                        size_t count)
{
    struct zip_build zip = {0};
    char names[16][64]; /* the builder keeps no copies */

    assert_true(count <= sizeof names / sizeof *names);
    zip_build_add(&zip, "x/data.pkl", pickle->at, pickle->size, 0, LOCAL_TORCH);
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "x/%s", members[i].name);
        zip_build_add(&zip, names[i], members[i].data, members[i].size, 0, LOCAL_TORCH);
    }
    zip_build_end(&zip);
    return zip.bytes;
}

struct bytes pt_with_tensor(const struct pkl_tensor *tensor, size_t floats)
{
    static const struct pkl_tensor good = {"good", 1, 0, 1, {1}, {1}};
    float storage[64];
    struct bytes pickle = {0};

    assert_true(floats <= 64);
    for (size_t i = 0; i < floats; i++)
        storage[i] = (float)i;
    const struct pt_member members[] = {
        {"data/0",    storage, floats * sizeof *storage},
        {"data/good", storage, sizeof *storage         },
    };
    bytes_put(&pickle, "\x80\x02}(", 4);
    pkl_text(&pickle, "t");
    pkl_tensor_put(&pickle, tensor);
    pkl_text(&pickle, "good");
    pkl_tensor_put(&pickle, &good);
    bytes_text(&pickle, "u.");
    struct bytes archive = pt_archive(&pickle, members, floats == 0 ? 0 : 2);
    bytes_free(&pickle);
    return archive;
}
