/*
 * The ceiling of a comparison: reads two files through mappings with N threads, adding up
 * their 64-bit words and doing nothing else.  Prints GB/s of both files, best of ROUNDS.
 *
 *   bench_read THREADS FILE FILE
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/map.h"
#include "base/pool.h"

enum { ROUNDS = 5, PIECE = 4 << 20 };

struct reading {
    struct map map[2];
    uint64_t   sums[256]; /* one a worker, so that nothing is optimised away */
};

static void read_piece(void *user, size_t i, unsigned worker)
{
    struct reading *reading = user;
    const uint64_t  at = (uint64_t)i * PIECE;
    uint64_t        lanes[8] = {0};

    for (int side = 0; side < 2; side++) {
        const struct map *map = &reading->map[side];
        const uint64_t    end = map->size < at + PIECE ? map->size : at + PIECE;
        if (at >= map->size)
            continue;
        const uint64_t *words = (const uint64_t *)(const void *)(map->bytes + at);
        for (uint64_t k = 0; k + 8 <= (end - at) / 8; k += 8)
            for (int lane = 0; lane < 8; lane++)
                lanes[lane] += words[k + (uint64_t)lane];
    }
    for (int lane = 0; lane < 8; lane++)
        reading->sums[worker] += lanes[lane];
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    double best = 1e9, bytes = 0;

    if (argc != 4)
        return 2;
    for (int round = 0; round < ROUNDS; round++) {
        struct reading *reading = calloc(1, sizeof *reading);
        const double    began = seconds(); /* mapping and unmapping count: a tool pays both */
        if (reading == NULL || nd_map_open(argv[2], &reading->map[0], NULL) != ND_OK ||
            nd_map_open(argv[3], &reading->map[1], NULL) != ND_OK)
            return 2;
        bytes = (double)reading->map[0].size + (double)reading->map[1].size;
        const uint64_t most = reading->map[0].size > reading->map[1].size ? reading->map[0].size
                                                                          : reading->map[1].size;
        nd_pool_run((unsigned)atoi(argv[1]), (size_t)(most / PIECE + 1), read_piece, NULL, reading);
        nd_map_close(&reading->map[0]);
        nd_map_close(&reading->map[1]);
        const double took = seconds() - began;
        best = took < best ? took : best;
        free(reading);
    }
    printf("%.2f\n", bytes / best / 1e9);
    return 0;
}
