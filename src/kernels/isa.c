/*
 * Which instruction sets this build and this machine have (isas.def), and the kernels of
 * each.  NORMDIFF_ISA restricts the choice: tests run every set on one machine.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel_set.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* gcc before 11 has no word for it.  AVX2, which stands beside it, tells that the system
 * keeps the registers. */
static bool isa_has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

#if defined(__x86_64__)
#define ISA_IF_X86(value, otherwise) (value)
#else
#define ISA_IF_X86(value, otherwise) (otherwise)
#endif
#if defined(__aarch64__)
#define ISA_IF_ARM(value, otherwise) (value)
#else
#define ISA_IF_ARM(value, otherwise) (otherwise)
#endif
#define ISA_IF_ANY(value, otherwise) (value)

static const char *const isa_words[] = {
#define ND_ISA_ROW(word, id, arch, detected) [id] = #word,
#include "kernels/isas.def"
#undef ND_ISA_ROW
};

static const struct kernel_set *const isa_sets[] = {
#define ND_ISA_ROW(word, id, arch, detected) [id] = ISA_IF_##arch(&nd_kernels_##word, NULL),
#include "kernels/isas.def"
#undef ND_ISA_ROW
};

_Static_assert(sizeof isa_words / sizeof *isa_words == ISA_COUNT, "isas.def and enum isa");

enum isa nd_isa_by_name(const char *name)
{
    for (int isa = 0; isa < ISA_COUNT; isa++)
        if (strcmp(name, isa_words[isa]) == 0)
            return (enum isa)isa;
    return ISA_COUNT;
}

const char *nd_isa_name(enum isa isa)
{
    return isa < ISA_COUNT ? isa_words[isa] : "none";
}

bool nd_isa_available(enum isa isa)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    switch (isa) {
#define ND_ISA_ROW(word, id, arch, detected)                                               \
    case id:                                                                               \
        return ISA_IF_##arch((detected), false);
#include "kernels/isas.def"
#undef ND_ISA_ROW
    default:
        return false;
    }
}

enum isa nd_isa_best(void)
{
    const char *word = getenv("NORMDIFF_ISA");
    const enum isa named = word != NULL ? nd_isa_by_name(word) : ISA_COUNT;
    enum isa best = ISA_BASE;

    if (named < ISA_COUNT && isa_sets[named] == NULL)
        return ISA_BASE; /* a word of another architecture */
    for (int isa = 0; isa < ISA_COUNT; isa++)
        if (nd_isa_available((enum isa)isa) && (named == ISA_COUNT || isa <= (int)named))
            best = (enum isa)isa;
    return best;
}

const struct kernel_set *nd_kernel_set_for(enum isa isa)
{
    return nd_isa_available(isa) ? isa_sets[isa] : NULL;
}
