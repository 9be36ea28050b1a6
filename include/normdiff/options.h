/*
 * What a comparison is asked to do.  nd_options_init() sets every default; the command
 * line fills the same structure.  Strings and lists are borrowed for the call.
 */
#ifndef NORMDIFF_OPTIONS_H
#define NORMDIFF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nd_strings {
    const char **items;
    size_t       count;
};

enum nd_fail_on {
    ND_FAIL_ON_DEFAULT, /* the third bound of --tiers */
    ND_FAIL_ON_NUMBER,
    ND_FAIL_ON_ANY,
    ND_FAIL_ON_ELEVATED,
    ND_FAIL_ON_ORIGIN,
    ND_FAIL_ON_UNEXPECTED,
    ND_FAIL_ON_NEVER
};

/* Called from the comparing thread a few times a second; done and total are bytes. */
typedef void nd_progress_fn(void *user, const char *phase, uint64_t done, uint64_t total);

struct nd_options {
    /* choose */
    struct nd_strings include, exclude, slots;
    const char       *direction; /* NULL: both */
    int64_t           step, rank; /* -1: all */
    /* match */
    const char       *map_file, *order_file, *fusion_file;
    bool              allow_unmatched; /* all of them */
    struct nd_strings allow_unmatched_globs;
    /* judge */
    double            tiers[3];
    const char       *metric; /* "rel_l2" (default), "max_abs" ... '-' and '_' are alike */
    bool              metrics_all;
    enum nd_fail_on   fail_on;
    double            fail_on_number;
    struct nd_strings tol; /* GLOB=NUMBER */
    bool              nan_strict;
    double            rel_floor, abs_floor; /* NAN: automatic */
    bool              strict_dtype;
    const char       *baseline, *write_baseline;
    size_t            worst;
    /* evidence */
    const char *golden, *rerun[2], *fp32[2];
    /* read */
    const char       *input_format[2]; /* NULL: by content */
    struct nd_strings layout;          /* [ref:|cand:]GLOB=FORMAT[:C0] */
    const char       *raw;
    /* run */
    unsigned    jobs; /* 0: as many as there are processors */
    const char *isa;  /* NULL: best there is */
    uint64_t    max_mem;

    nd_progress_fn *progress; /* NULL: none */
    void           *progress_user;
};

void nd_options_init(struct nd_options *options);

#ifdef __cplusplus
}
#endif
#endif
