/*
 * Runs files through a fuzz target without libFuzzer: arguments are files or folders of
 * them.  Each is put into a heap block of exactly its size, so that a sanitizer sees the
 * first byte that is read too far.
 */
#define _GNU_SOURCE /* scandir, alphasort */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t run_count;

static int run_file(const char *path)
{
    FILE *const file = fopen(path, "rb");
    struct stat st;

    if (file == NULL || fstat(fileno(file), &st) != 0) {
        fprintf(stderr, "cannot read %s\n", path);
        return 1;
    }
    const size_t size = (size_t)st.st_size;
    uint8_t *const bytes = malloc(size > 0 ? size : 1);
    if (bytes == NULL || fread(bytes, 1, size, file) != size) {
        fprintf(stderr, "cannot read %s\n", path);
        return 1;
    }
    fclose(file);
    printf("%s\n", path);
    fflush(stdout); /* the last line names the file that ended the run */
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    run_count++;
    return 0;
}

static int run_folder(const char *path)
{
    struct dirent **entries;
    const int count = scandir(path, &entries, NULL, alphasort);
    int failed = count < 0;

    for (int i = 0; i < count; i++) {
        char name[4096];
        struct stat st;
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (stat(name, &st) == 0 && S_ISREG(st.st_mode))
            failed |= run_file(name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) != 0)
            failed = 1;
        else
            failed |= S_ISDIR(st.st_mode) ? run_folder(argv[i]) : run_file(argv[i]);
    }
    if (run_count == 0) {
        fprintf(stderr, "nothing was run\n");
        return 1;
    }
    return failed;
}
