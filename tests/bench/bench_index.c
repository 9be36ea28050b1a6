/*
 * How long opening and indexing a dump takes, without reading values: milliseconds, best of
 * ROUNDS, and the tensors found.
 *
 *   bench_index DUMP
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>

#include "formats/dump.h"

enum { ROUNDS = 5 };

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    double best = 1e9;
    size_t tensors = 0;

    if (argc != 2)
        return 2;
    for (int round = 0; round < ROUNDS; round++) {
        struct dump    *dump = NULL;
        struct nd_error err = {0};
        const double    began = seconds();
        if (nd_dump_open(argv[1], NULL, NULL, &dump, &err) != ND_OK) {
            fprintf(stderr, "%s: %s\n", argv[1], err.found);
            return 2;
        }
        const double took = seconds() - began;
        tensors = dump->tensor_count;
        nd_dump_close(dump);
        if (took < best)
            best = took;
    }
    printf("%.2f %zu\n", best * 1e3, tensors);
    return 0;
}
