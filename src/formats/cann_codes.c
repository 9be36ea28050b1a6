/*
 * Look-ups in the tables of CANN's numbers.
 */
#include "formats/cann_codes.h"

#include <string.h>
#include <strings.h>

#define ND_DTYPE_none ND_DTYPE_NONE

static const struct cann_dtype dtypes[] = {
/* clang-format off */
#define ND_CANN_DTYPE(name, proto, ge, word) {#name, {proto, ge}, ND_DTYPE_##word},
#include "formats/cann_dtypes.def"
#undef ND_CANN_DTYPE
/* clang-format on */
};

/* "NULL" is a macro of C's, and must not be expanded before it becomes text. */
static const struct cann_format formats[] = {
#define ND_CANN_FORMAT(number, name, axes) {number, #name, axes},
#include "formats/cann_formats.def"
#undef ND_CANN_FORMAT
};

enum {
    DTYPE_COUNT = sizeof dtypes / sizeof *dtypes,
    FORMAT_COUNT = sizeof formats / sizeof *formats
};

const struct cann_dtype *nd_cann_dtype(uint64_t number, enum cann_numbering numbering)
{
    for (size_t i = 0; i < DTYPE_COUNT; i++)
        if (dtypes[i].number[numbering] == number)
            return &dtypes[i];
    return NULL;
}

const struct cann_format *nd_cann_format(uint64_t number)
{
    return number < FORMAT_COUNT ? &formats[number] : NULL;
}

static bool code_is(const char *name, const char *text, size_t len)
{
    return strlen(name) == len && strncasecmp(name, text, len) == 0;
}

const struct cann_dtype *nd_cann_dtype_named(const char *name, size_t len)
{
    if (len > 3 && strncasecmp(name, "DT_", 3) == 0) {
        name += 3;
        len -= 3;
    }
    for (size_t i = 0; i < DTYPE_COUNT; i++)
        if (code_is(dtypes[i].name, name, len))
            return &dtypes[i];
    return NULL;
}

const struct cann_format *nd_cann_format_named(const char *name, size_t len)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (code_is(formats[i].name, name, len))
            return &formats[i];
    return NULL;
}

const struct layout *nd_cann_layout(const struct cann_format *format)
{
    /* FRACTAL_NZ_C0_16 and its like are FRACTAL_NZ whose C0 the stored shape shows too. */
    static const char nz[] = "FRACTAL_NZ_C0_";
    const struct layout *const layout = nd_layout_by_name(format->name);

    if (layout == NULL && strncmp(format->name, nz, sizeof nz - 1) == 0)
        return nd_layout_by_name("FRACTAL_NZ");
    return layout;
}
