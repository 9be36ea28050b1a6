/*
 * Elements of a record: what a call took and returned.
 *
 *   1. {"type", "dtype", "shape", ["Max", "Min", "Mean", "Norm"], ["data_name"], ["md5"]}:
 *      a tensor of any class (torch.Tensor, DTensor, mindspore.Tensor, numpy.ndarray);
 *      bool tensors have true and false for Max and Min, and null is "not taken"
 *   2. {"type": "int", "value": 2} and the like: anything that is no tensor; "format" and
 *      "group_ranks" stand for "value"
 *   3. {"class_type": ..., "tensor": T, ...}: a P2POp, which wraps a tensor
 *   4. an object without "type" is a dict of the call
 */
#include "formats/msprobe_element.h"

#include <math.h>

#include "base/text.h"

#define KEY_IS(key, word)                                                                  \
    ((key)->len == sizeof(word) - 1 && memcmp((key)->raw, word, sizeof(word) - 1) == 0)

static bool peek_is(struct cursor *in, char c)
{
    nd_json_skip_blank(in);
    return in->at < in->size && in->bytes[in->at] == (unsigned char)c;
}

/* --- members of a tensor -------------------------------------------------------------- */

static enum nd_status take_text(struct cursor *in, struct json_text *ret_text,
                                bool *ret_has_text, struct nd_error *err)
{
    if (!peek_is(in, '"'))
        return nd_json_scan_value(in, true, NULL, err);
    *ret_has_text = true;
    return nd_json_scan_text(in, ret_text, err);
}

static enum nd_status take_shape(struct cursor *in, struct msprobe_element *element,
                                 struct nd_error *err)
{
    struct nd_shape shape = {0};

    if (!nd_json_accept(in, '['))
        return nd_json_scan_value(in, true, NULL, err);
    for (bool more = !nd_json_accept(in, ']'); more;) {
        uint64_t dim;
        ND_TRY(nd_json_scan_size(in, &dim, err));
        if (shape.rank < ND_MAX_RANK)
            shape.dim[shape.rank++] = dim;
        else
            element->broken = "a tensor of more than 16 dimensions";
        more = nd_json_accept(in, ',');
        if (!more)
            ND_TRY(nd_json_expect(in, ']', err));
    }
    element->shape = shape;
    element->has_shape = true;
    return ND_OK;
}

static enum nd_status statistic_set(struct msprobe_element *element, enum statistic which,
                                    double value)
{
    element->statistics.value[which] = value;
    element->statistics.is_nan[which] = isnan(value);
    element->has_statistics = true;
    return ND_OK;
}

enum nd_status nd_msprobe_statistic(struct cursor *in, struct msprobe_element *element,
                                    enum statistic which, struct nd_error *err)
{
    double value;

    if (nd_json_scan_number(in, &value))
        return statistic_set(element, which, value);
    const uint64_t first = in->at;
    ND_TRY(nd_json_scan_value(in, true, NULL, err));
    const char *at = (const char *)in->bytes + first;
    const char *end = (const char *)in->bytes + in->at;
    if (*at == 't' || *at == 'f') {
        value = *at == 't' ? 1 : 0;
    } else {
        if (*at == '"' && end - at >= 2) {
            at++;
            end--;
        }
        if (*at == 'n' && end - at == 4) /* null, not "nan" */
            return ND_OK;
        if (nd_number_read(at, end, &value) != end)
            return ND_OK;
    }
    return statistic_set(element, which, value);
}

static enum nd_status take_aside(struct cursor *in, struct cursor *ret_value,
                                 bool *ret_has_value, struct nd_error *err)
{
    nd_json_skip_blank(in);
    *ret_value = *in;
    *ret_has_value = true;
    return nd_json_scan_value(in, true, NULL, err);
}

/* Tensors of no dimension have their value where others have a checksum (task xor). */
static enum nd_status take_checksum(struct cursor *in, struct msprobe_element *element,
                                    struct nd_error *err)
{
    if (peek_is(in, '"'))
        return take_text(in, &element->md5, &element->has_md5, err);
    const struct cursor value = *in;
    for (int s = 0; s < STATISTIC_COUNT; s++) {
        *in = value;
        ND_TRY(nd_msprobe_statistic(in, element, (enum statistic)s, err));
    }
    return ND_OK;
}

static enum nd_status take_member(struct cursor *in, const struct json_text *key,
                                  struct msprobe_element *element, struct nd_error *err)
{
    if (KEY_IS(key, "type") || KEY_IS(key, "class_type"))
        return take_text(in, &element->type, &element->has_type, err);
    if (KEY_IS(key, "dtype"))
        return take_text(in, &element->dtype, &element->has_dtype, err);
    if (KEY_IS(key, "shape"))
        return take_shape(in, element, err);
    if (KEY_IS(key, "Max"))
        return nd_msprobe_statistic(in, element, STATISTIC_MAX, err);
    if (KEY_IS(key, "Min"))
        return nd_msprobe_statistic(in, element, STATISTIC_MIN, err);
    if (KEY_IS(key, "Mean"))
        return nd_msprobe_statistic(in, element, STATISTIC_MEAN, err);
    if (KEY_IS(key, "Norm"))
        return nd_msprobe_statistic(in, element, STATISTIC_NORM, err);
    if (KEY_IS(key, "data_name"))
        return take_text(in, &element->data_name, &element->has_data_name, err);
    if (KEY_IS(key, "md5"))
        return take_checksum(in, element, err);
    if (KEY_IS(key, "value") || KEY_IS(key, "format") || KEY_IS(key, "group_ranks"))
        return take_aside(in, &element->value, &element->has_value, err);
    if (KEY_IS(key, "tensor"))
        return take_aside(in, &element->tensor, &element->has_tensor, err);
    return nd_json_scan_value(in, true, NULL, err);
}

enum nd_status nd_msprobe_element_read(struct cursor *in, struct msprobe_element *element,
                                       struct nd_error *err)
{
    struct json_text key;

    *element = (struct msprobe_element){0};
    for (int s = 0; s < STATISTIC_COUNT; s++)
        element->statistics.value[s] = (double)NAN;
    ND_TRY(nd_json_expect(in, '{', err));
    for (bool more = !nd_json_accept(in, '}'); more;) {
        ND_TRY(nd_json_scan_text(in, &key, err));
        ND_TRY(nd_json_expect(in, ':', err));
        ND_TRY(take_member(in, &key, element, err));
        more = nd_json_accept(in, ',');
        if (!more)
            ND_TRY(nd_json_expect(in, '}', err));
    }
    return ND_OK;
}

/* A dict of the call may be large and nested, and would be read once more at every level:
 * only objects that begin like an element are looked through for a "type". */
bool nd_msprobe_is_element(struct cursor in)
{
    static const char *const firsts[] = {"type",      "class_type", "dtype",
                                         "shape",     "Max",        "value",
                                         "data_name", "md5",        "requires_grad"};
    struct json_text key;

    if (!nd_json_accept(&in, '{') || nd_json_scan_text(&in, &key, NULL) != ND_OK ||
        !nd_json_accept(&in, ':'))
        return false;
    const bool is_text = peek_is(&in, '"');
    if (KEY_IS(&key, "type") || KEY_IS(&key, "class_type"))
        return is_text;
    bool known = false;
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        known = known || nd_json_text_is(&key, firsts[i]);
    for (; known; known = nd_json_accept(&in, ',') &&
                          nd_json_scan_text(&in, &key, NULL) == ND_OK &&
                          nd_json_accept(&in, ':')) {
        if (KEY_IS(&key, "type") && peek_is(&in, '"'))
            return true;
        if (nd_json_scan_value(&in, true, NULL, NULL) != ND_OK)
            return false;
    }
    return false;
}
