/*
 * Any bytes as a file that is given beside the dumps: BESIDE is "graph" (--fusion, the ATC
 * graph as JSON) or "map" (--map, our rules and msprobe's YAML).  What was read is used on
 * a few layers, as pairing does.
 */
#define _GNU_SOURCE /* mkstemp */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare/fusion.h"
#include "compare/map_yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"conv1",
                                    "model/relu1",
                                    "model_conv1model_relu1",
                                    "Cell.part.fc.Dense.forward.0",
                                    "Module.part.fc.Linear.forward.0",
                                    "Functional.linear.0.forward",
                                    "",
                                    "a.b.c.d"};

enum { NAMES = sizeof names / sizeof *names };

static struct dump_slot slots[NAMES][3];
static struct dump_layer layers[NAMES];
static const struct dump_layer *list[NAMES];

static struct dump *dump_make(struct arena *arena)
{
    static const char *const slot_names[] = {"output.0", "output.1", "input.0"};
    struct dump *dump = nd_arena_alloc(arena, 1, sizeof *dump);

    if (dump == NULL)
        return NULL;
    *dump = (struct dump){.arena = arena,
                          .layers = layers,
                          .layer_count = NAMES,
                          .root_fd = -1,
                          .order = ND_ORDER_NAME,
                          .path = "dump"};
    for (size_t i = 0; i < NAMES; i++) {
        for (size_t s = 0; s < 3; s++)
            slots[i][s] = (struct dump_slot){.name = slot_names[s], .has_shape = true};
        layers[i] = (struct dump_layer){.name = names[i],
                                        .type = "Linear",
                                        .step = -1,
                                        .rank = -1,
                                        .micro_step = (int64_t)i % 3 - 1,
                                        .slots = slots[i],
                                        .slot_count = 3};
        list[i] = &layers[i];
    }
    return dump;
}

static void use_file(const char *path)
{
    struct arena *arena = nd_arena_new();
    struct dump *dump = arena == NULL ? NULL : dump_make(arena);
    struct nd_options options = {.step = -1, .rank = -1};
    struct comparison comparison = {
        .arena = arena, .options = &options, .dump = {dump, dump}
    };
    struct nd_error error;

    if (strcmp(BESIDE, "graph") == 0)
        options.fusion_file = path;
    else
        options.map_file = path;
    if (dump != NULL && nd_align(&comparison, &error) == ND_OK)
        for (size_t i = 0; i < comparison.layer_count; i++)
            if (comparison.layers[i].slot_count > 0 && comparison.layers[i].slots == NULL)
                abort();
    nd_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const where = getenv("TMPDIR");
    char path[256];

    snprintf(path, sizeof path, "%s/normdiff-fuzz-XXXXXX", where == NULL ? "/tmp" : where);
    const int fd = mkstemp(path);
    if (fd < 0)
        return 0;
    if (size == 0 || write(fd, data, size) == (ssize_t)size)
        use_file(path);
    close(fd);
    unlink(path);
    return 0;
}
