/*
 * The normdiff tool: parses the command line, calls the library, delivers the reports.
 * Exit status: 0 nothing fails, 1 something fails or was not compared, 2 trouble.
 */
#define _POSIX_C_SOURCE 200809L /* signal numbers, open flags */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/out.h"
#include "cli/deliver.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "normdiff/normdiff.h"
#include "text/catalogue.h"

enum { EXIT_TROUBLE = 2, PHRASE_SIZE = 2048 };

struct tool {
    struct cli cli;
    struct terminal terminal;
    struct deliveries deliveries;
    struct progress progress;
};

static enum language tool_language(const struct tool *tool)
{
    return nd_language_of(tool->terminal.utf8 ? tool->terminal.lang : NULL);
}

static const char *tool_words(const struct tool *tool, const char *id)
{
    const char *words = nd_catalogue_words(id, tool_language(tool));

    return words == NULL ? id : words;
}

/* "normdiff: model.npy: at byte 128: found ..., expected ... (hint)" */
static void tool_complain(const struct tool *tool, const struct nd_error *err)
{
    struct out out = {.depth = 0};
    const char *found = err->found[0] == '\0' ? nd_status_text(err->status) : err->found;

    nd_out_raw(&out, "normdiff: ");
    if (err->file[0] != '\0') {
        nd_out_safe(&out, err->file);
        nd_out_raw(&out, ": ");
    }
    if (err->at[0] != '\0') {
        nd_out_raw(&out, err->status == ND_ERR_USAGE || err->at[0] == '-' ? "" : "at ");
        nd_out_safe(&out, err->at);
        nd_out_raw(&out, ": ");
    }
    const bool measured = err->expected[0] != '\0' && err->status != ND_ERR_IO;
    nd_out_raw(&out, measured ? "found " : "");
    nd_out_safe(&out, found);
    if (err->expected[0] != '\0') {
        nd_out_raw(&out, ", expected ");
        nd_out_safe(&out, err->expected);
    }
    if (err->hint[0] != '\0') {
        nd_out_raw(&out, " (");
        nd_out_safe(&out, err->hint);
        nd_out_raw(&out, ")");
    } else if (err->status == ND_ERR_USAGE && err->expected[0] == '\0') {
        nd_out_printf(&out, " (%s)", tool_words(tool, "tool.try_help"));
    }
    nd_out_raw(&out, "\n");
    nd_out_flush(&out, stderr);
    nd_out_done(&out);
}

static int tool_trouble(struct tool *tool, const struct nd_error *err)
{
    nd_progress_erase(&tool->progress);
    tool_complain(tool, err);
    nd_deliver_error(&tool->deliveries, err);
    return EXIT_TROUBLE;
}

static void tool_say(const struct tool *tool, const char *before,
                     const struct nd_phrase *phrase)
{
    char text[PHRASE_SIZE];

    nd_phrase_text(phrase, tool->terminal.utf8 ? tool->terminal.lang : NULL, text,
                   sizeof text);
    fprintf(stderr, "%s%s\n", before, text);
}

/* Warnings go to standard error, unless the report shows them on the same terminal. */
static void tool_warn(const struct tool *tool, const struct nd_result *result)
{
    const char *format = tool->deliveries.format;
    char before[64];

    if (format != NULL && strcmp(format, "text") == 0 && tool->terminal.out_is_tty &&
        tool->terminal.err_is_tty)
        return;
    snprintf(before, sizeof before, "normdiff: %s: ", tool_words(tool, "tool.warning"));
    for (size_t i = 0; i < result->warning_count; i++)
        tool_say(tool, before, &result->warnings[i]);
}

/* Why the exit status is not 0, where the report on standard output does not say it. */
static void tool_close(const struct tool *tool, const struct nd_result *result)
{
    const char *format = tool->deliveries.format;
    char before[64];

    if (result->exit_code == 0 || tool->cli.quiet ||
        (format != NULL && strcmp(format, "text") == 0))
        return;
    snprintf(before, sizeof before, "exit %d: ", result->exit_code);
    tool_say(tool, before, &result->reason);
}

static int tool_compare(struct tool *tool)
{
    const struct nd_strings *operands = &tool->cli.operands;
    struct nd_result *result = NULL;
    struct nd_error err = {.status = ND_OK};

    tool->cli.nd.progress = nd_progress_tick;
    tool->cli.nd.progress_user = &tool->progress;
    if (nd_compare(operands->items[0], operands->count > 1 ? operands->items[1] : NULL,
                   &tool->cli.nd, &result, &err) != ND_OK)
        return tool_trouble(tool, &err);
    nd_progress_erase(&tool->progress);
    tool_warn(tool, result);
    int status = result->exit_code;
    if (nd_deliver(&tool->deliveries, &tool->cli, &tool->terminal, result, NULL, &err) !=
        ND_OK)
        status = tool_trouble(tool, &err);
    else
        tool_close(tool, result);
    nd_result_free(result);
    return status;
}

static int tool_list(struct tool *tool)
{
    struct nd_listing *listing = NULL;
    struct nd_error err = {.status = ND_OK};

    tool->cli.nd.progress = nd_progress_tick;
    tool->cli.nd.progress_user = &tool->progress;
    if (nd_list(tool->cli.operands.items[0], &tool->cli.nd, &listing, &err) != ND_OK)
        return tool_trouble(tool, &err);
    nd_progress_erase(&tool->progress);
    int status = 0;
    if (nd_deliver(&tool->deliveries, &tool->cli, &tool->terminal, NULL, listing, &err) !=
        ND_OK)
        status = tool_trouble(tool, &err);
    nd_listing_free(listing);
    return status;
}

/* One folder alone may hold both sides (an offline comparison's root). */
static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum nd_status operands_check(const struct cli *cli, struct nd_error *err)
{
    const size_t wanted = cli->list ? 1 : 2;
    const size_t count = cli->operands.count;

    if (!cli->list && count == 1 && is_folder(cli->operands.items[0]))
        return ND_OK;
    if (count < wanted)
        return nd_fail(err, ND_ERR_USAGE,
                       wanted == 1
                           ? "a dump to list"
                           : "two dumps, REFERENCE and CANDIDATE; see normdiff --help",
                       count == 0 ? "no dump" : "one dump alone");
    if (count > wanted)
        return nd_fail_key(err, ND_ERR_USAGE, cli->operands.items[wanted],
                           wanted == 1 ? "one dump" : "two dumps", "%zu operands", count);
    if (count == 2 && strcmp(cli->operands.items[0], "-") == 0 &&
        strcmp(cli->operands.items[1], "-") == 0)
        return nd_fail_key(err, ND_ERR_USAGE, "-", "standard input once",
                           "standard input twice");
    for (size_t i = 0; i < count; i++)
        if (cli->operands.items[i][0] == '\0')
            return nd_fail(err, ND_ERR_USAGE, "the path of a dump", "an empty path");
    return ND_OK;
}

/* --help and its like: they print and are done.  False: none was asked for. */
static bool tool_inform(struct tool *tool, int *ret_status)
{
    const struct cli *cli = &tool->cli;
    struct nd_error err = {.status = ND_OK};
    enum nd_status status = ND_OK;
    bool written = true;

    if (cli->help != NULL && cli->help[0] != '\0' && strcmp(cli->help, "man") != 0)
        status = nd_fail_key(&err, ND_ERR_USAGE, "--help", "man", "\"%s\"", cli->help);
    else if (cli->help != NULL)
        written = cli->help[0] == '\0' ? nd_help_print(&tool->terminal) : nd_help_man();
    else if (cli->version)
        written = printf("normdiff %s\n", nd_version()) > 0 && fflush(stdout) == 0;
    else if (cli->completion != NULL)
        written = nd_completion_print(cli->completion);
    else if (cli->explain != NULL)
        status = nd_explain(cli->explain, cli->format, &tool->terminal, &err);
    else
        return false;
    if (!written)
        status = nd_fail(&err, ND_ERR_IO, NULL, "standard output cannot be written");
    *ret_status = status == ND_OK ? 0 : tool_trouble(tool, &err);
    return true;
}

static int tool_run(struct tool *tool, int argc, char **argv)
{
    struct nd_error err = {.status = ND_OK}, later;
    int exit_status = 0;
    enum nd_status status = nd_cli_parse(argc, argv, &tool->cli, &err);

    if (tool->cli.arena == NULL)
        return tool_trouble(tool, &err);
    nd_terminal_init(&tool->terminal, tool->cli.color, tool->cli.lang);
    nd_progress_init(&tool->progress, tool->cli.progress, tool->terminal.err_is_tty,
                     tool->terminal.utf8, tool->terminal.lang);
    const enum nd_status plan =
        nd_deliver_plan(&tool->cli, &tool->deliveries, status == ND_OK ? &err : &later);
    if (status == ND_OK && tool_inform(tool, &exit_status))
        return exit_status;
    status = status == ND_OK ? plan : status;
    if (status == ND_OK)
        status = operands_check(&tool->cli, &err);
    if (status != ND_OK)
        return tool_trouble(tool, &err);
    return tool->cli.list ? tool_list(tool) : tool_compare(tool);
}

/* Standard streams that are closed would be taken by the next file that is opened; a
 * descriptor that cannot be written keeps "cannot be written" an error. */
static void tool_hold_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

int main(int argc, char **argv)
{
    struct tool tool = {.terminal = {.lang = "en"}};

    tool_hold_streams();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error like any other */
    nd_guard_install();
    const int status = tool_run(&tool, argc, argv);
    nd_deliver_done(&tool.deliveries);
    nd_cli_done(&tool.cli);
    return status;
}
