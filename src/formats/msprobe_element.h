/*
 * One typed element of a msprobe record, taken apart; for msprobe_slot.c.
 */
#ifndef ND_FORMATS_MSPROBE_ELEMENT_H
#define ND_FORMATS_MSPROBE_ELEMENT_H

#include "formats/dump.h"
#include "formats/json_scan.h"

/* The members of an element that has a "type". */
struct msprobe_element {
    struct json_text type, dtype, data_name, md5;
    bool has_type, has_dtype, has_data_name, has_md5, has_shape, has_value;
    bool is_scalar; /* anything that is no tensor */
    const char *broken;
    struct nd_shape shape;
    struct statistics statistics;
    bool has_statistics;
    struct cursor value, tensor;
    bool has_tensor;
};

/* Whether the object at the cursor is an element: it has a "type". */
bool nd_msprobe_is_element(struct cursor in);
enum nd_status nd_msprobe_element_read(struct cursor *in, struct msprobe_element *element,
                                       struct nd_error *err);
/* A number, a bool, a bare or quoted NaN; null and other values leave the element as it
 * is. */
enum nd_status nd_msprobe_statistic(struct cursor *in, struct msprobe_element *element,
                                    enum statistic which, struct nd_error *err);

#endif
