/*
 * Runs one case of the command line: a folder with
 *
 *   1. cmd               a shell script; "normdiff" is the tool, $CASE the folder
 *   2. stdout.exact      what standard output must be, byte for byte, or
 *      stdout.glob       a glob for each line; a line "..." stands for any lines
 *   3. stderr.exact, stderr.glob   the same for standard error
 *   4. exit              the exit status; 0 where the file is missing
 *
 * A stream without a file must be empty.  The script runs in an empty working directory
 * and in a bare environment.  UPDATE=1 rewrites the .exact files and `exit`.
 *
 *     run CASE TOOL WORK
 */
#define _XOPEN_SOURCE 700 /* realpath, nftw, mkdtemp */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

enum { LINE_LIMIT = 100000 };

static void run_die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(99);
}

static char *file_text(const char *folder, const char *name)
{
    char path[4096];
    struct text text = {0};
    char buf[4096];
    size_t len;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    while ((len = fread(buf, 1, sizeof buf, file)) > 0)
        nd_text_add(&text, buf, len);
    fclose(file);
    nd_text_puts(&text, "");
    return text.bytes;
}

static void file_write(const char *folder, const char *name, const char *text)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        run_die(path);
}

/* The lines of a text, which is taken apart; *ret_count of them. */
static char **text_lines(char *text, size_t *ret_count)
{
    char **lines = calloc(LINE_LIMIT, sizeof *lines);

    *ret_count = 0;
    if (lines == NULL)
        run_die("memory");
    while (*text != '\0' && *ret_count < LINE_LIMIT) {
        lines[(*ret_count)++] = text;
        text += strcspn(text, "\n");
        if (*text == '\n')
            *text++ = '\0';
    }
    return lines;
}

/* Globs against lines; "..." takes as many lines as it must. */
static bool lines_match(char **globs, size_t glob_count, char **lines, size_t line_count)
{
    size_t g = 0, l = 0, star = glob_count, retry = 0;

    for (;;) {
        if (g < glob_count && strcmp(globs[g], "...") == 0) {
            star = ++g;
            retry = l;
        } else if (g < glob_count && l < line_count && nd_glob_match(globs[g], lines[l])) {
            g++;
            l++;
        } else if (g == glob_count && l == line_count) {
            return true;
        } else if (star < glob_count + 1 && star > 0 &&
                   strcmp(globs[star - 1], "...") == 0 && retry < line_count) {
            g = star;
            l = ++retry;
        } else {
            return false;
        }
    }
}

static bool glob_matches(char *globs, const char *found)
{
    char *copy = strdup(found);
    size_t glob_count, line_count;

    if (copy == NULL)
        run_die("memory");
    char **glob_lines = text_lines(globs, &glob_count);
    char **lines = text_lines(copy, &line_count);
    const bool match = lines_match(glob_lines, glob_count, lines, line_count);
    free(glob_lines);
    free(lines);
    free(copy);
    return match;
}

static bool stream_check(const char *folder, const char *work, const char *stream)
{
    char name[64];

    char *found = file_text(work, stream);
    snprintf(name, sizeof name, "%s.glob", stream);
    char *globs = file_text(folder, name);
    snprintf(name, sizeof name, "%s.exact", stream);
    if (globs == NULL && getenv("UPDATE") != NULL && found != NULL && found[0] != '\0')
        file_write(folder, name, found);
    char *exact = file_text(folder, name);
    const bool fine =
        found != NULL && (globs != NULL ? glob_matches(globs, found)
                                        : strcmp(found, exact == NULL ? "" : exact) == 0);
    if (!fine)
        printf("--- %s was:\n%s--- expected (%s):\n%s\n", stream,
               found == NULL ? "" : found, globs != NULL ? "globs" : "exactly",
               globs != NULL   ? "see the file"
               : exact == NULL ? ""
                               : exact);
    free(found);
    free(globs);
    free(exact);
    return fine;
}

static void child_redirect(int fd, const char *name)
{
    const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    if (file < 0 || dup2(file, fd) < 0)
        run_die(name);
    close(file);
}

static int script_run(const char *folder, const char *work, const char *tool)
{
    char script[4200], streams[2][4200], path[8192], sandbox[4200];
    char *slash;

    snprintf(script, sizeof script, "%s/cmd", folder);
    snprintf(streams[0], sizeof streams[0], "%s/stdout", work);
    snprintf(streams[1], sizeof streams[1], "%s/stderr", work);
    snprintf(sandbox, sizeof sandbox, "%s/in", work);
    const pid_t child = fork();
    if (child == 0) {
        static const char *const removed[] = {
            "NO_COLOR",     "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS", "NORMDIFF_LANG",
            "NORMDIFF_ISA", "LC_MESSAGES",    "LC_CTYPE",    "LANG",    "LANGUAGE"};
        for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++)
            unsetenv(removed[i]);
        setenv("LC_ALL", "C.UTF-8", 1);
        setenv("CASE", folder, 1);
        snprintf(path, sizeof path, "%s", tool);
        if ((slash = strrchr(path, '/')) != NULL)
            *slash = '\0';
        const size_t used = strlen(path);
        snprintf(path + used, sizeof path - used, ":%s", getenv("PATH"));
        setenv("PATH", path, 1);
        if (chdir(sandbox) != 0)
            run_die(sandbox);
        child_redirect(STDOUT_FILENO, streams[0]);
        child_redirect(STDERR_FILENO, streams[1]);
        execl("/bin/sh", "sh", script, (char *)NULL);
        run_die("sh");
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        run_die("run");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool exit_check(const char *folder, int status)
{
    char text[16];

    snprintf(text, sizeof text, "%d\n", status);
    if (getenv("UPDATE") != NULL && status != 0)
        file_write(folder, "exit", text);
    char *expected = file_text(folder, "exit");
    const int wanted = expected == NULL ? 0 : atoi(expected);
    free(expected);
    if (wanted != status)
        printf("--- exit status %d, expected %d\n", status, wanted);
    return wanted == status;
}

static int entry_remove(const char *path, const struct stat *info, int type,
                        struct FTW *place)
{
    (void)info;
    (void)type;
    return place->level == 0 ? 0 : remove(path);
}

int main(int argc, char **argv)
{
    char work[4096], sandbox[4200];

    if (argc != 4) {
        fputs("usage: run CASE TOOL WORK\n", stderr);
        return 99;
    }
    char *folder = realpath(argv[1], NULL);
    char *tool = realpath(argv[2], NULL);
    mkdir(argv[3], 0777);
    snprintf(work, sizeof work, "%s/XXXXXX", argv[3]);
    if (folder == NULL || tool == NULL || mkdtemp(work) == NULL)
        run_die(argv[1]);
    snprintf(sandbox, sizeof sandbox, "%s/in", work);
    mkdir(sandbox, 0777);
    const int status = script_run(folder, work, tool);
    bool fine = stream_check(folder, work, "stdout");
    fine = stream_check(folder, work, "stderr") && fine;
    fine = exit_check(folder, status) && fine;
    nftw(work, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
    rmdir(work);
    free(folder);
    free(tool);
    return fine ? 0 : 1;
}
