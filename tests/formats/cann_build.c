/*
 * Writes CANN dump files for tests.
 */
#include "formats/cann_build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void pb_varint(struct bytes *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        bytes_le(out, (value & 0x7f) | 0x80, 1);
    bytes_le(out, value, 1);
}

void pb_number(struct bytes *out, unsigned field, uint64_t value)
{
    pb_varint(out, field << 3);
    pb_varint(out, value);
}

void pb_block(struct bytes *out, unsigned field, struct bytes *inner)
{
    pb_varint(out, field << 3 | 2);
    pb_varint(out, inner->size);
    bytes_put(out, inner->at, inner->size);
    bytes_free(inner);
}

void pb_text(struct bytes *out, unsigned field, const char *text)
{
    struct bytes inner = {0};

    bytes_text(&inner, text);
    pb_block(out, field, &inner);
}

void pb_shape(struct bytes *out, unsigned field, size_t rank, const uint64_t *dims)
{
    struct bytes packed = {0}, shape = {0};

    for (size_t i = 0; i < rank; i++)
        pb_varint(&packed, dims[i]);
    pb_block(&shape, 1, &packed);
    pb_block(out, field, &shape);
}

void cann_build_tensor(struct bytes *message, const struct cann_build *tensor)
{
    const unsigned size_field = tensor->is_output ? 6 : 5;
    struct bytes out = {0};

    pb_number(&out, 1, tensor->dtype);
    pb_number(&out, 2, tensor->format);
    if (tensor->rank > 0)
        pb_shape(&out, 3, tensor->rank, tensor->dims);
    if (tensor->origin != NULL) {
        struct bytes origin = {0};
        pb_text(&origin, 1, tensor->origin);
        pb_number(&origin, 2, 5);
        pb_number(&origin, 3, 0);
        pb_number(&origin, 4, tensor->origin_format);
        pb_block(&out, 4, &origin);
    }
    pb_number(&out, size_field, tensor->size);
    if (tensor->original_rank > 0)
        pb_shape(&out, size_field + 1, tensor->original_rank, tensor->original);
    if (tensor->group > 0)
        pb_number(&out, size_field + 2, tensor->group);
    pb_block(message, tensor->is_output ? 3 : 4, &out);
}

void cann_build_file(struct bytes *out, struct bytes *message, const void *data,
                     size_t size)
{
    bytes_le(out, message->size, 8);
    bytes_put(out, message->at, message->size);
    bytes_put(out, data, size);
    bytes_free(message);
}

void cann_build_float(struct bytes *out, const char *op_name, float value)
{
    const struct cann_build tensor = {
        .is_output = true, .dtype = 1, .format = 2, .rank = 1, .dims = {1}, .size = 4};
    struct bytes message = {0};

    pb_text(&message, 1, "2.0");
    cann_build_tensor(&message, &tensor);
    if (op_name != NULL)
        pb_text(&message, 6, op_name);
    cann_build_file(out, &message, &value, sizeof value);
}

struct bytes corpus_file(const char *format, const char *name)
{
    char folder[1024];

    snprintf(folder, sizeof folder, "%s/../../corpus/%s", DATA, format);
    return bytes_of_file(folder, name);
}

void use_every_length(const struct bytes *bytes, const char *format)
{
    for (size_t n = 0; n <= bytes->size; n++) {
        use_exact(bytes->at, n, "MatMul.fc.3.7.1700000000000000", NULL);
        use_exact(bytes->at, n, "MatMul.fc.3.7.1700000000000000", format);
    }
}
