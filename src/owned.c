/*
 * Opening the dumps of a comparison, and keeping them.
 */
#include "owned.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/pool.h"

struct owned *nd_owned_new(struct nd_error *err)
{
    struct owned *owned = calloc(1, sizeof *owned);

    if (owned != NULL)
        owned->arena = nd_arena_new();
    if (owned == NULL || owned->arena == NULL) {
        free(owned);
        nd_fail_memory(err);
        return NULL;
    }
    return owned;
}

void nd_owned_free(struct owned *owned)
{
    if (owned == NULL)
        return;
    nd_dump_close(owned->dump[0]);
    nd_dump_close(owned->dump[1]);
    for (size_t i = 0; i < owned->beside_count; i++)
        nd_dump_close(owned->beside[i]);
    nd_arena_free(owned->arena);
    free(owned);
}

struct opening {
    struct owned            *owned;
    const char *const       *paths;
    const struct nd_options *options;
    enum nd_status           status[2];
    struct nd_error          error[2];
};

static void open_side(void *user, size_t side, unsigned worker)
{
    struct opening *opening = user;

    (void)worker;
    opening->status[side] =
        nd_dump_open(opening->paths[side], opening->options->input_format[side],
                     opening->options->raw, &opening->owned->dump[side], &opening->error[side]);
}

enum nd_status nd_owned_open(struct owned *owned, const char *const *paths,
                             const struct nd_options *options, struct nd_error *err)
{
    struct opening opening = {.owned = owned, .paths = paths, .options = options};

    nd_pool_run(options->jobs, 2, open_side, NULL, &opening);
    for (unsigned side = 0; side < 2; side++)
        if (opening.status[side] != ND_OK) {
            if (err != NULL)
                *err = opening.error[side];
            return opening.status[side];
        }
    return ND_OK;
}

enum nd_status nd_owned_find(struct owned *owned, const char **inout_paths,
                             struct nd_options *options, struct nd_error *err)
{
    struct dump_sides sides;

    ND_TRY(nd_dump_find_sides(inout_paths[0], owned->arena, &sides, err));
    inout_paths[0] = sides.reference;
    inout_paths[1] = sides.candidate;
    if (options->fusion_file == NULL)
        options->fusion_file = sides.fusion;
    return ND_OK;
}

enum nd_status nd_owned_intact(unsigned shrunk_before, const char *path,
                               struct nd_error *err)
{
    if (nd_map_shrink_count() == shrunk_before)
        return ND_OK;
    nd_fail(err, ND_ERR_CHANGED, "a file that stays as it is while it is read",
            "less than at the start: a file shrank while it was read");
    nd_error_file(err, path);
    return ND_ERR_CHANGED;
}
