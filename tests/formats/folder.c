/*
 * A temporary folder for tests.
 */
#define _GNU_SOURCE /* nftw, mkdtemp */
#include "formats/folder.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/build.h"

static char root[512];

const char *folder_new(void)
{
    const char *where = getenv("TMPDIR");

    snprintf(root, sizeof root, "%s/normdiff-test-XXXXXX", where == NULL ? "/tmp" : where);
    assert_non_null(mkdtemp(root));
    return root;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void folder_free(void)
{
    /* Folders that a test made unreadable stay removable by whoever owns them. */
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *folder_path(const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    char *const path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s%s%s", root, *name == '\0' ? "" : "/", name);
    return path;
}

void folder_write(const char *name, const void *bytes, size_t size)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0755);
        *at = '/';
    }
    FILE *const file = fopen(path, "wb");
    if (file == NULL)
        fail_msg("cannot write %s", path);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void folder_text(const char *name, const char *text)
{
    folder_write(name, text, strlen(text));
}

void folder_array(const char *name, double value)
{
    struct bytes bytes = {0};
    const float element = (float)value;

    npy_put_array(&bytes, "<f4", "(1,)", &element, sizeof element);
    folder_write(name, bytes.at, bytes.size);
    bytes_free(&bytes);
}
