/*
 * Names of permutations: images and weights by their axis letters, sequences by the letters
 * of attention operators (batch, sequence, heads N, head size D, hidden H = N * D, tokens
 * T).
 */
#include <stdio.h>
#include <string.h>

#include "compare/slot_pair.h"

static const struct {
    const char *stored, *shape;
} names[] = {
    {"NHWC",  "NCHW" },
    {"NCHW",  "NHWC" },
    {"HWCN",  "NCHW" },
    {"NCHW",  "HWCN" },
    {"CHWN",  "NCHW" },
    {"NHWC",  "HWCN" },
    {"HWCN",  "NHWC" },
    {"NDHWC", "NCDHW"},
    {"NCDHW", "NDHWC"},
    {"DHWCN", "NCDHW"},
    {"NCDHW", "DHWCN"},
    {"NDHWC", "DHWCN"},
};

static bool name_is(const uint32_t *order, uint32_t rank, const char *stored,
                    const char *shape)
{
    if (strlen(stored) != rank)
        return false;
    for (uint32_t k = 0; k < rank; k++)
        if (shape[order[k]] != stored[k])
            return false;
    return true;
}

/* There are fewer heads than tokens, and fewer samples: that tells the two apart. */
static bool name_sequence(const uint32_t *order, const struct nd_shape *shape,
                          const struct nd_shape *stored, const char **ret_stored,
                          const char **ret_shape)
{
    const uint32_t rank = shape->rank;
    const bool ascending = rank >= 3 && shape->dim[rank - 3] <= shape->dim[rank - 2];

    if (name_is(order, rank, "SBH", "BSH")) {
        *ret_stored = stored->rank == 4 ? (ascending ? "SBND" : "BSND") /* heads split */
                                        : (ascending ? "SBH" : "BSH");
        *ret_shape = ascending ? "BSH" : "SBH";
        return true;
    }
    if (name_is(order, rank, "BSND", "BNSD")) {
        *ret_shape = "BNSD";
        *ret_stored =
            stored->rank == 3 ? stored->dim[0] == shape->dim[0] ? "BSH" : "TND" : "BSND";
        if (stored->rank == 4 && !ascending) {
            *ret_shape = "BSND";
            *ret_stored = "BNSD";
        }
        return true;
    }
    if (name_is(order, rank, "SBND", "BSND")) {
        *ret_shape = "BSND";
        *ret_stored = stored->rank == 3 ? "SBH" : "SBND";
        return true;
    }
    if (name_is(order, rank, "SBND", "BNSD")) {
        *ret_shape = "BNSD";
        *ret_stored = stored->rank == 3 ? "SBH" : "SBND";
        return true;
    }
    return false;
}

void nd_name_permutation(const uint32_t *order, const struct nd_shape *shape,
                         const struct nd_shape *stored, char *ret_stored, char *ret_shape,
                         size_t size)
{
    const char *of_stored = NULL, *of_shape = "";
    size_t len;

    for (size_t i = 0; of_stored == NULL && i < sizeof names / sizeof *names; i++)
        if (name_is(order, shape->rank, names[i].stored, names[i].shape)) {
            of_stored = names[i].stored;
            of_shape = names[i].shape;
        }
    if (of_stored != NULL || name_sequence(order, shape, stored, &of_stored, &of_shape)) {
        snprintf(ret_stored, size, "%s", of_stored);
        snprintf(ret_shape, size, "%s", of_shape);
        return;
    }
    ret_shape[0] = '\0';
    len = (size_t)snprintf(ret_stored, size, "axes ");
    for (uint32_t k = 0; k < shape->rank && len + 12 < size; k++)
        len += (size_t)snprintf(ret_stored + len, size - len, "%s%u", k == 0 ? "" : ",",
                                order[k]);
}
