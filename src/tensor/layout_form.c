/*
 * Reading rows of layouts.def and laying them over shapes.
 */
#include "tensor/layout_form.h"

#include <string.h>

#include "base/cursor.h"

/* No device has blocks like that; it keeps products of a few blocks far from overflow. */
static const uint64_t BLOCK_MAX = 1 << 16;

static unsigned letter_of(char c)
{
    return (unsigned char)c % FORM_LETTERS;
}

/* The stored digits, after as many batch axes as there are. */
static void form_digits(struct form *form)
{
    const char *at = form->layout->storage + (form->layout->storage[0] == '*');
    bool shared = false;

    for (uint32_t k = 0; k < form->lead; k++)
        form->digit[form->count++] =
            (struct digit){.letter = '*', .stored = form->stored++};
    for (; *at != '\0'; at++) {
        if (*at == '(' || *at == ')') {
            form->stored += shared; /* behind the last digit of the parenthesis */
            shared = *at == '(';
            continue;
        }
        struct digit *digit = &form->digit[form->count++];
        *digit = (struct digit){.letter = *at, .stored = form->stored};
        if (at[1] == '/' || at[1] == '%')
            digit->part = *++at;
        form->stored += !shared;
    }
}

bool nd_form_read(const struct layout *layout, const struct nd_shape *logical,
                  uint64_t groups, struct form *ret_form)
{
    const bool star = layout->logical[0] == '*';
    const char *letters = layout->logical + star;
    const uint32_t axes = (uint32_t)strlen(letters);

    if (logical->rank < axes || logical->rank > ND_MAX_RANK ||
        (!star && logical->rank != axes))
        return false;
    memset(ret_form, 0, sizeof *ret_form);
    ret_form->layout = layout;
    ret_form->letters = letters;
    ret_form->rank = logical->rank;
    ret_form->lead = logical->rank - axes;
    ret_form->groups = groups == 0 || strchr(layout->storage, 'g') == NULL ? 1 : groups;
    for (unsigned k = 0; k < FORM_LETTERS; k++)
        ret_form->dim[k] = ret_form->block[k] = 1;
    for (uint32_t k = 0; k < axes; k++)
        ret_form->dim[letter_of(letters[k])] = logical->dim[ret_form->lead + k];
    form_digits(ret_form);
    for (uint32_t k = 0; k < ret_form->lead; k++)
        ret_form->digit[k].size = logical->dim[k];
    return true;
}

/* --- groups and packed pixels -------------------------------------------------------- */

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * As many groups stand in one block as fill whole blocks of both channels: e = the least
 * common multiple of C0 / gcd(Cin, C0) and 16 / gcd(Cout, 16), but no more than there are.
 * The channels of the merged groups then count on, and their number is the axis' size.
 */
static const char *form_group(struct form *form)
{
    uint64_t *in = &form->dim['c'], *out = &form->dim['n'], *merged = &form->merged;

    if (form->groups == 1)
        return NULL;
    if (*out % form->groups != 0)
        return "the groups do not divide the output channels";
    form->inner[0] = *in;
    form->inner[1] = *out / form->groups;
    if (form->inner[0] == 0 || form->inner[1] == 0)
        return "a group without channels";
    const uint64_t a = form->block['c'] / greatest_divisor(*in, form->block['c']);
    const uint64_t b =
        form->block['n'] / greatest_divisor(form->inner[1], form->block['n']);
    *merged = a / greatest_divisor(a, b) * b;
    *merged = *merged < form->groups ? *merged : form->groups;
    form->dim['g'] = form->groups / *merged + (form->groups % *merged != 0);
    if (!nd_size_mul(*merged, form->inner[0], in) ||
        !nd_size_mul(*merged, form->inner[1], out))
        return "a dimension is too large";
    return NULL;
}

static const char *form_pack(struct form *form)
{
    uint64_t *packed = &form->dim['4'];

    if (strchr(form->layout->storage, '4') == NULL)
        return NULL;
    if (form->dim['c'] > 4 || form->block['4'] % 4 != 0)
        return "more than 4 channels, or blocks that do not hold 4 of them";
    if (!nd_size_mul(form->dim['h'], form->dim['w'], packed) ||
        !nd_size_mul(*packed, 4, packed))
        return "a dimension is too large";
    return NULL;
}

/* --- sizes --------------------------------------------------------------------------- */

const char *nd_form_measure(struct form *form)
{
    const char *why = form_group(form);
    int64_t stride = 1;

    if (why == NULL)
        why = form_pack(form);
    if (why != NULL)
        return why;
    for (uint32_t k = form->count; k-- > 0;) {
        struct digit *digit = &form->digit[k];
        const uint64_t dim = form->dim[letter_of(digit->letter)];
        const uint64_t block = form->block[letter_of(digit->letter)];
        if (digit->part == '%')
            digit->size = block;
        else if (digit->letter != '*')
            digit->size = digit->part == '\0' ? dim : dim / block + (dim % block != 0);
        digit->stride = stride;
        const uint64_t steps = digit->size == 0 ? 1 : digit->size;
        if (steps > (uint64_t)INT64_MAX ||
            __builtin_mul_overflow(stride, (int64_t)steps, &stride))
            return "a dimension is too large";
    }
    return NULL;
}

bool nd_form_stored(const struct form *form, uint32_t stored, uint64_t *ret_dim)
{
    *ret_dim = 1;
    for (uint32_t k = 0; k < form->count; k++)
        if (form->digit[k].stored == stored &&
            !nd_size_mul(*ret_dim, form->digit[k].size, ret_dim))
            return false;
    return true;
}

/* The blocks: the stored sizes of the remainders. */
static const char *form_blocks(struct form *form, const struct nd_shape *storage)
{
    for (uint32_t k = 0; k < form->count; k++) {
        const struct digit *digit = &form->digit[k];
        uint64_t *block = &form->block[letter_of(digit->letter)];
        if (digit->part != '%')
            continue;
        if (storage->dim[digit->stored] == 0)
            return "the block dimension is 0";
        if (storage->dim[digit->stored] > BLOCK_MAX)
            return "the block dimension is larger than any block";
        if (*block != 1 && *block != storage->dim[digit->stored])
            return "the diagonal's two dimensions differ";
        *block = storage->dim[digit->stored];
    }
    return NULL;
}

static const char *form_contradiction(const struct form *form,
                                      const struct nd_shape *storage)
{
    for (uint32_t k = 0; k < form->count; k++) {
        const struct digit *digit = &form->digit[k];
        uint64_t dim;
        if (!nd_form_stored(form, digit->stored, &dim))
            return "a dimension is too large";
        if (dim != storage->dim[digit->stored])
            return digit->part == '/' || (k + 1 < form->count &&
                                          form->digit[k + 1].stored == digit->stored)
                       ? "the stored block count does not fit the logical dimension"
                       : "a stored dimension differs from the logical one";
    }
    return NULL;
}

static const char *form_fits(struct form *form, const struct nd_shape *storage)
{
    const char *why;

    if (storage->rank != form->stored || storage->rank > ND_MAX_RANK)
        return "the stored shape has another rank than the layout";
    why = form_blocks(form, storage);
    if (why == NULL)
        why = nd_form_measure(form);
    return why != NULL ? why : form_contradiction(form, storage);
}

const char *nd_form_fit(const struct layout *layout, const struct nd_shape *storage,
                        const struct nd_shape *logical, uint64_t groups,
                        struct form *ret_form)
{
    const struct layout *end = nd_layout_at(0) + nd_layout_count();
    const char *why = NULL;

    for (const struct layout *row = layout;
         row < end && strcmp(row->name, layout->name) == 0; row++) {
        if (!nd_form_read(row, logical, groups, ret_form))
            continue;
        const char *reason = form_fits(ret_form, storage);
        if (reason == NULL)
            return NULL;
        why = why == NULL ? reason : why;
    }
    return why == NULL ? "the logical shape has another rank than the layout" : why;
}
