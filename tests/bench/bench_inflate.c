/*
 * The ceiling of comparing deflated members: zlib alone on the members of two archives, a
 * thread a member as long as there are any, CRC-32 included.  Prints GB/s of decoded bytes,
 * best of ROUNDS.
 *
 *   bench_inflate THREADS ARCHIVE ARCHIVE
 */
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/pool.h"
#include "formats/dump.h"

enum { ROUNDS = 3, BLOCK = 1 << 20 };

struct member {
    const struct dump      *dump;
    const struct dump_slot *slot;
};
static struct member        *members;
static atomic_uint_least64_t decoded;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void decode(void *user, size_t i, unsigned worker)
{
    const struct dump_slot *slot = members[i].slot;
    uint64_t                left = slot->extent.raw_size - slot->extent.skip;
    struct slot_stream     *stream;
    unsigned char          *block = malloc(BLOCK);

    (void)user;
    (void)worker;
    if (block == NULL || nd_slot_stream_open(members[i].dump, slot, &stream, NULL) != ND_OK)
        exit(2);
    atomic_fetch_add(&decoded, left);
    while (left > 0) {
        const uint64_t step = left < BLOCK ? left : BLOCK;
        if (nd_slot_stream_read(stream, block, step, NULL) != ND_OK)
            exit(2);
        left -= step;
    }
    if (nd_slot_stream_close(stream, true, NULL) != ND_OK)
        exit(2);
    free(block);
}

int main(int argc, char **argv)
{
    struct dump *dump[2];
    size_t       count = 0;
    double       best = 1e9;

    if (argc != 4)
        return 2;
    for (int side = 0; side < 2; side++) {
        if (nd_dump_open(argv[2 + side], NULL, NULL, &dump[side], NULL) != ND_OK)
            return 2;
        count += dump[side]->tensor_count;
    }
    members = calloc(count + 1, sizeof *members);
    if (members == NULL)
        return 2;
    count = 0;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < dump[side]->layer_count; i++)
            for (size_t s = 0; s < dump[side]->layers[i].slot_count; s++)
                if (nd_slot_streams(&dump[side]->layers[i].slots[s]))
                    members[count++] =
                        (struct member){dump[side], &dump[side]->layers[i].slots[s]};
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&decoded, 0);
        const double began = seconds();
        nd_pool_run((unsigned)atoi(argv[1]), count, decode, NULL, NULL);
        const double took = seconds() - began;
        if (took < best)
            best = took;
    }
    printf("%.2f\n", (double)atomic_load(&decoded) / best / 1e9);
    for (int side = 0; side < 2; side++)
        nd_dump_close(dump[side]);
    free(members);
    return 0;
}
