/*
 * A report file is written under a temporary name beside its place and renamed when all
 * reports are complete, so that a reader never sees half of one.
 */
#define _XOPEN_SOURCE 700 /* mkstemp, realpath, fchmod */
#include "cli/deliver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

static bool format_known(const char *name)
{
    for (size_t i = 0; nd_report_name(i) != NULL; i++)
        if (strcmp(nd_report_name(i), name) == 0)
            return true;
    return false;
}

static enum nd_status format_check(const char *option, const char *name,
                                   struct nd_error *err)
{
    char names[256] = "", hint[160];

    if (format_known(name))
        return ND_OK;
    for (size_t i = 0; nd_report_name(i) != NULL; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, i == 0 ? "%s" : ", %s",
                 nd_report_name(i));
    }
    nd_fail_key(err, ND_ERR_USAGE, option, names, "the report format \"%s\"", name);
    const char *near = nd_nearest(name, nd_report_name);
    if (near != NULL) {
        snprintf(hint, sizeof hint, "did you mean %s?", near);
        nd_error_hint(err, hint);
    }
    return ND_ERR_USAGE;
}

/* Every path that the comparison reads: none of them may be written over. */
static const char *path_read(const struct cli *cli, size_t i)
{
    const struct nd_options *nd = &cli->nd;
    const char *const others[] = {nd->map_file, nd->order_file, nd->fusion_file,
                                  nd->baseline, nd->golden,     nd->rerun[0],
                                  nd->rerun[1], nd->fp32[0],    nd->fp32[1]};
    const size_t other_count = sizeof others / sizeof others[0];

    if (i < other_count)
        return others[i] == NULL ? "" : others[i];
    return i - other_count < cli->operands.count ? cli->operands.items[i - other_count]
                                                 : NULL;
}

static enum nd_status path_check(const struct cli *cli, const char *path,
                                 struct nd_error *err)
{
    struct stat own, other;

    if (stat(path, &own) != 0)
        return ND_OK;
    if (S_ISDIR(own.st_mode))
        return nd_fail_key(err, ND_ERR_USAGE, "--report", "a file", "%s, a directory",
                           path);
    if (!S_ISREG(own.st_mode))
        return ND_OK;
    for (size_t i = 0; path_read(cli, i) != NULL; i++)
        if (stat(path_read(cli, i), &other) == 0 && own.st_dev == other.st_dev &&
            own.st_ino == other.st_ino)
            return nd_fail_key(err, ND_ERR_USAGE, "--report", "a file that is not read",
                               "%s, which the comparison reads", path);
    return ND_OK;
}

static char *text_copy(const char *text)
{
    char *copy = malloc(strlen(text) + 1);

    return copy == NULL ? NULL : strcpy(copy, text);
}

/* "NAME=FILE" */
static enum nd_status plan_file(const struct cli *cli, const char *asked,
                                struct deliveries *deliveries, struct nd_error *err)
{
    struct delivery *item = &deliveries->items[deliveries->count];
    const char *equals = strchr(asked, '=');
    struct stat info;

    if (equals == NULL || equals == asked || equals[1] == '\0')
        return nd_fail_key(err, ND_ERR_USAGE, "--report", "NAME=FILE", "\"%s\"", asked);
    char *name = text_copy(asked);
    if (name == NULL)
        return nd_fail_memory(err);
    name[equals - asked] = '\0';
    *item = (struct delivery){.name = name, .path = equals + 1};
    deliveries->count++;
    ND_TRY(format_check("--report", name, err));
    if (strcmp(item->path, "-") == 0) {
        if (deliveries->format != NULL && strcmp(cli->format, "text") != 0)
            return nd_fail_key(err, ND_ERR_USAGE, "--report",
                               "one report on standard output",
                               "two reports on standard output");
        item->path = NULL;
        deliveries->format = name;
        return ND_OK;
    }
    ND_TRY(path_check(cli, item->path, err));
    for (size_t i = 0; i + 1 < deliveries->count; i++)
        if (deliveries->items[i].path != NULL &&
            strcmp(deliveries->items[i].path, item->path) == 0)
            return nd_fail_key(err, ND_ERR_USAGE, "--report",
                               "a file of its own for each report", "%s twice", item->path);
    item->direct = stat(item->path, &info) == 0 && !S_ISREG(info.st_mode);
    char *resolved = realpath(item->path, NULL);
    item->target = resolved != NULL ? resolved : text_copy(item->path);
    item->ready = item->target != NULL;
    return ND_OK;
}

enum nd_status nd_deliver_plan(const struct cli *cli, struct deliveries *ret_deliveries,
                               struct nd_error *err)
{
    enum nd_status status = format_check("--format", cli->format, err);
    struct nd_error later;

    *ret_deliveries = (struct deliveries){.format = status == ND_OK ? cli->format : NULL};
    ret_deliveries->items = calloc(cli->reports.count + 1, sizeof *ret_deliveries->items);
    if (ret_deliveries->items == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < cli->reports.count; i++) {
        const enum nd_status now = plan_file(cli, cli->reports.items[i], ret_deliveries,
                                             status == ND_OK ? err : &later);
        status = status == ND_OK ? now : status;
    }
    if (cli->quiet)
        ret_deliveries->format = NULL;
    return status;
}

void nd_deliver_done(struct deliveries *deliveries)
{
    for (size_t i = 0; i < deliveries->count; i++) {
        struct delivery *item = &deliveries->items[i];
        if (item->temporary != NULL)
            unlink(item->temporary);
        free(item->temporary);
        free(item->target);
        free((void *)(uintptr_t)item->name);
    }
    free(deliveries->items);
    *deliveries = (struct deliveries){0};
}

static enum nd_status file_failed(const struct delivery *item, struct nd_error *err)
{
    const int number = errno;

    nd_fail(err, ND_ERR_IO, "a file that can be written", "%s", strerror(number));
    nd_error_file(err, item->path);
    return ND_ERR_IO;
}

/* The permissions of the file that is replaced, or those of any new file. */
static mode_t file_mode(const struct delivery *item)
{
    struct stat info;
    const mode_t mask = umask(0);

    umask(mask);
    return stat(item->target, &info) == 0 ? info.st_mode & 07777 : 0666 & ~mask;
}

static FILE *file_begin(struct delivery *item)
{
    if (item->direct)
        return fopen(item->path, "w");
    const char *slash = strrchr(item->target, '/');
    const size_t folder = slash == NULL ? 0 : (size_t)(slash + 1 - item->target);
    const size_t size = folder + sizeof ".normdiff-XXXXXX";
    item->temporary = malloc(size);
    if (item->temporary == NULL)
        return NULL;
    snprintf(item->temporary, size, "%.*s.normdiff-XXXXXX", (int)folder, item->target);
    const int fd = mkstemp(item->temporary);
    if (fd < 0) {
        free(item->temporary);
        item->temporary = NULL;
        return NULL;
    }
    FILE *stream = fchmod(fd, file_mode(item)) == 0 ? fdopen(fd, "w") : NULL;
    if (stream == NULL)
        close(fd);
    return stream;
}

static void report_options(struct nd_report_options *options, const struct cli *cli,
                           const struct terminal *terminal, const char *name, bool is_file)
{
    *options = (struct nd_report_options){
        .all = cli->all,
        .verbose = cli->verbose,
        .color = is_file ? strcmp(cli->color, "always") == 0 : terminal->color,
        .utf8 = terminal->utf8,
        .width = is_file ? 0 : terminal->width};
    options->lang = nd_report_for_people(name) ? terminal->lang : terminal->lang_asked;
    if (!nd_report_for_people(name))
        options->utf8 = true;
}

static enum nd_status report_put(const char *name, const struct nd_report_options *options,
                                 const struct nd_result *result,
                                 const struct nd_listing *listing, FILE *stream,
                                 struct nd_error *err)
{
    if (result != NULL)
        return nd_report_write(result, name, options, stream, err);
    return nd_report_listing(listing, name, options, stream, err);
}

static enum nd_status deliver_file(struct delivery *item, const struct cli *cli,
                                   const struct terminal *terminal,
                                   const struct nd_result *result,
                                   const struct nd_listing *listing, struct nd_error *err)
{
    struct nd_report_options options;
    FILE *stream = file_begin(item);

    if (stream == NULL)
        return file_failed(item, err);
    report_options(&options, cli, terminal, item->name, true);
    const enum nd_status status =
        report_put(item->name, &options, result, listing, stream, err);
    if (fclose(stream) != 0 && status == ND_OK)
        return file_failed(item, err);
    nd_error_file(status == ND_OK ? NULL : err, item->path);
    return status;
}

static enum nd_status deliver_rename(struct delivery *item, struct nd_error *err)
{
    if (item->temporary == NULL)
        return ND_OK;
    if (rename(item->temporary, item->target) != 0)
        return file_failed(item, err);
    free(item->temporary);
    item->temporary = NULL;
    return ND_OK;
}

enum nd_status nd_deliver(const struct deliveries *deliveries, const struct cli *cli,
                          const struct terminal *terminal, const struct nd_result *result,
                          const struct nd_listing *listing, struct nd_error *err)
{
    struct nd_report_options options;

    for (size_t i = 0; i < deliveries->count; i++)
        if (deliveries->items[i].ready)
            ND_TRY(
                deliver_file(&deliveries->items[i], cli, terminal, result, listing, err));
    if (deliveries->format != NULL) {
        report_options(&options, cli, terminal, deliveries->format, false);
        errno = 0;
        const enum nd_status status =
            report_put(deliveries->format, &options, result, listing, stdout, err);
        if (status == ND_ERR_IO && errno != 0)
            nd_fail(err, ND_ERR_IO, NULL, "%s", strerror(errno));
        nd_error_file(status == ND_OK ? NULL : err, "standard output");
        ND_TRY(status);
    }
    for (size_t i = 0; i < deliveries->count; i++)
        ND_TRY(deliver_rename(&deliveries->items[i], err));
    return ND_OK;
}

/* Writes the error document; false if the format has none or it could not be written. */
static bool error_file(struct delivery *item, const struct nd_error *error)
{
    if (item->temporary != NULL) {
        unlink(item->temporary);
        free(item->temporary);
        item->temporary = NULL;
    }
    FILE *stream = file_begin(item);
    if (stream == NULL)
        return false;
    const bool written = nd_report_error(error, item->name, stream) == ND_OK;
    const bool some = ftell(stream) > 0;
    return fclose(stream) == 0 && written && some && deliver_rename(item, NULL) == ND_OK;
}

void nd_deliver_error(const struct deliveries *deliveries, const struct nd_error *error)
{
    struct stat info;

    if (deliveries->format != NULL)
        nd_report_error(error, deliveries->format, stdout);
    for (size_t i = 0; i < deliveries->count; i++) {
        struct delivery *item = &deliveries->items[i];
        if (!item->ready || error_file(item, error) || item->direct)
            continue;
        if (stat(item->target, &info) == 0 && S_ISREG(info.st_mode))
            unlink(item->target);
    }
}
