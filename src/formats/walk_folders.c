/*
 * Walking over folders.
 */
#include "formats/walk_folders.h"

enum { MAX_DEPTH = 32 };

struct walk {
    struct dump *dump;
    nd_walk_fn *take;
    void *user;
};

const char *nd_walk_path(struct dump *dump, const char *folder, const char *name)
{
    return *folder == '\0' ? name : nd_arena_format(dump->arena, "%s/%s", folder, name);
}

static enum nd_status ignore_others(struct dump *dump,
                                    const struct dump_directory *directory,
                                    struct nd_error *err)
{
    for (size_t i = 0; i < directory->other_count; i++) {
        const char *const path = nd_walk_path(dump, directory->path, directory->others[i]);
        const char *const what =
            path == NULL ? NULL
                         : nd_arena_format(dump->arena,
                                           "%s: a link or a device, not followed", path);
        if (what == NULL)
            return nd_fail_memory(err);
        ND_TRY(nd_dump_ignore(dump, what, err));
    }
    return ND_OK;
}

static enum nd_status walk_folder(const struct walk *walk, const char *folder,
                                  unsigned depth, struct nd_error *err)
{
    struct dump *const dump = walk->dump;
    struct dump_directory directory;

    if (depth == MAX_DEPTH)
        return nd_fail_key(err, ND_ERR_LIMIT, folder, "at most 32 nested folders", "more");
    ND_TRY(nd_dump_directory_read(dump, folder, &directory, err));
    ND_TRY(ignore_others(dump, &directory, err));
    ND_TRY(walk->take(walk->user, dump, &directory, err));
    for (size_t i = 0; i < directory.folder_count; i++) {
        const char *const path = nd_walk_path(dump, folder, directory.folders[i]);
        if (path == NULL)
            return nd_fail_memory(err);
        if (directory.folders[i][0] == '.')
            ND_TRY(nd_dump_ignore(dump, path, err));
        else
            ND_TRY(walk_folder(walk, path, depth + 1, err));
    }
    return ND_OK;
}

enum nd_status nd_walk_folders(struct dump *dump, nd_walk_fn *take, void *user,
                               struct nd_error *err)
{
    const struct walk walk = {dump, take, user};

    return walk_folder(&walk, "", 0, err);
}
