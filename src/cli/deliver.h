/*
 * Delivering reports: to standard output and to the files of -o, each whole or not at all.
 */
#ifndef ND_CLI_DELIVER_H
#define ND_CLI_DELIVER_H

#include "cli/options.h"
#include "cli/terminal.h"
#include "normdiff/normdiff.h"

/* One report that was asked for. */
struct delivery {
    const char *name; /* the format */
    const char *path; /* NULL: standard output */
    char *target;     /* the file behind path, links resolved */
    char *temporary;  /* written and not yet renamed */
    bool direct;      /* no regular file: written in place */
    bool ready;       /* may be touched at all */
};

struct deliveries {
    struct delivery *items;
    size_t count;
    const char *format; /* on standard output; NULL: nothing goes there */
};

/*
 * Works out what was asked for: unknown formats, a file that is asked for twice and one
 * that is read by the comparison are refused.  Usable by nd_deliver_error() even then.
 */
enum nd_status nd_deliver_plan(const struct cli *cli, struct deliveries *ret_deliveries,
                               struct nd_error *err);

/* Exactly one of result and listing. */
enum nd_status nd_deliver(const struct deliveries *deliveries, const struct cli *cli,
                          const struct terminal *terminal, const struct nd_result *result,
                          const struct nd_listing *listing, struct nd_error *err);

/*
 * The error in every machine format, and no other report file: an older one of that name
 * is removed.  Does what it can.
 */
void nd_deliver_error(const struct deliveries *deliveries, const struct nd_error *error);

void nd_deliver_done(struct deliveries *deliveries);

#endif
