/*
 * PyTorch's zip form (torch.save since 1.6; .pt, .pth, .bin).  Learned from
 * torch/serialization.py, caffe2/serialize/inline_container.cc and files of 1.11, 1.13
 * and 2.x:
 *
 *   1. a ZIP archive (zip.c) with one root folder, named after the file or "archive"
 *   2. ROOT/data.pkl: a pickle of the saved object (pickle.c, pt_tree.c)
 *   3. ROOT/data/KEY: the bytes of one storage each
 *   4. ROOT/byteorder: "little" or "big"; absent before 2.1: little
 *   5. ROOT/version, .format_version, .storage_alignment, .data/serialization_id: unused
 *
 * CRCs are never checked: torch can be told to write wrong ones.  A root that also holds
 * code/ or constants.pkl is a TorchScript program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "formats/format.h"
#include "formats/pt.h"
#include "formats/zip.h"

enum { MAX_MEMBER_NAME = 4096 };

struct archive {
    struct zip zip;
    const char *root; /* with the slash; "" where members lie on the top */
};

static bool name_ends(const char *name, size_t len, const char *end)
{
    const size_t n = strlen(end);

    return len >= n && memcmp(name + len - n, end, n) == 0;
}

/* --- recognising ------------------------------------------------------------------- */

/* The name in the first local header: enough to tell one's own archive, cut or not. */
static bool first_is_ours(const struct dump_head *head)
{
    static const char *const names[] = {"/data.pkl", "/.format_version", "/byteorder",
                                        "/.storage_alignment"};
    struct cursor in = {head->bytes, head->size, 0};
    const unsigned char *p, *name;

    if (!nd_cursor_take(&in, 30, &p) || memcmp(p, "PK\3\4", 4) != 0 ||
        !nd_cursor_take(&in, nd_load_le(p + 26, 2), &name))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (name_ends((const char *)name, (size_t)nd_load_le(p + 26, 2), names[i]))
            return true;
    return false;
}

/* The one ROOT/data.pkl; NULL: none. */
static const struct zip_member *find_pickle(const struct zip *zip)
{
    const struct zip_member *found = NULL;

    for (size_t i = 0; i < zip->count && found == NULL; i++) {
        const char *name = zip->members[i].name;
        const char *slash = strchr(name, '/');
        if (strcmp(slash == NULL ? name : slash + 1, "data.pkl") == 0)
            found = &zip->members[i];
    }
    return found;
}

static int pt_probe(const struct dump_head *head)
{
    int bits = 0;

    if (!nd_zip_probe(head->bytes, head->size))
        return 0;
    if (first_is_ours(head))
        return 64; /* 32 bits of the ZIP mark, 32 of the name */
    struct arena *arena = nd_arena_new();
    struct zip zip;
    if (arena != NULL &&
        nd_zip_read((struct cursor){head->bytes, head->size, 0}, arena, &zip, NULL) ==
            ND_OK &&
        find_pickle(&zip) != NULL)
        bits = 48;
    nd_arena_free(arena);
    return bits;
}

/* --- members ----------------------------------------------------------------------- */

static const struct zip_member *archive_find(const struct archive *archive,
                                             const char *name, size_t len)
{
    char path[MAX_MEMBER_NAME + 1];
    const size_t root_len = strlen(archive->root);

    if (len > MAX_MEMBER_NAME || root_len > MAX_MEMBER_NAME - len ||
        memchr(name, '\0', len) != NULL)
        return NULL;
    memcpy(path, archive->root, root_len);
    memcpy(path + root_len, name, len);
    path[root_len + len] = '\0';
    return nd_zip_find(&archive->zip, path);
}

static const char *pt_find(struct pt_source *source, const struct pickle *key,
                           struct pt_storage *ret_storage)
{
    const struct archive *archive = source->user;
    struct arena *arena = source->dump->arena;
    char name[256];

    if ((key->kind != PICKLE_TEXT && key->kind != PICKLE_BYTES) || key->len > 200)
        return "malformed: the key of its storage";
    const int len = snprintf(name, sizeof name, "data/%.*s", (int)key->len, key->as.text);
    const struct zip_member *member =
        len < 0 ? NULL : archive_find(archive, name, (size_t)len);
    if (member == NULL)
        return nd_arena_format(arena, "malformed: its storage %s is not in the archive",
                               name);
    if (member->trouble != NULL)
        return nd_arena_format(arena, "its storage %s: %s", name, member->trouble);
    *ret_storage = (struct pt_storage){
        .offset = member->offset,
        .stored_size = member->stored_size,
        .size = member->size,
        .codec = member->method == 0 ? CODEC_STORED : CODEC_DEFLATE,
    };
    return NULL;
}

static enum nd_status read_byteorder(struct dump *dump, size_t file,
                                     const struct archive *archive, bool *ret_swapped,
                                     struct nd_error *err)
{
    const struct zip_member *member =
        archive_find(archive, "byteorder", strlen("byteorder"));

    *ret_swapped = false;
    if (member == NULL)
        return ND_OK;
    const unsigned char *bytes = nd_dump_bytes(dump, file).bytes + member->offset;
    unsigned char word[8] = {0};
    size_t got;
    if (member->trouble == NULL && member->size < sizeof word) {
        if (member->method == 0)
            memcpy(word, bytes, (size_t)member->size);
        else
            (void)nd_zip_inflate_head(bytes, member->stored_size, word,
                                      (size_t)member->size, &got);
    }
    *ret_swapped = memcmp(word, "big", sizeof "big") == 0;
    if (*ret_swapped || memcmp(word, "little", sizeof "little") == 0)
        return ND_OK;
    return nd_fail_at(err, ND_ERR_MALFORMED, member->offset, "the byte order little or big",
                      "another word");
}

/* A pickle that another tool compressed: unpacked into a file of its own. */
static enum nd_status inflate_pickle(struct dump *dump, size_t file,
                                     const struct zip_member *member, size_t *ret_file,
                                     struct nd_error *err)
{
    enum { MOST = 100 << 20 };
    struct map map;
    size_t got;

    if (member->size > MOST)
        return nd_fail_at(err, ND_ERR_LIMIT, member->offset,
                          "a compressed data.pkl of at most 100 MiB", "a larger one");
    unsigned char *const bytes = malloc(member->size == 0 ? 1 : (size_t)member->size);
    if (bytes == NULL)
        return nd_fail_memory(err);
    const int fd = nd_spool_new();
    enum nd_status status = ND_OK;
    if (!nd_zip_inflate_head(nd_dump_bytes(dump, file).bytes + member->offset,
                             member->stored_size, bytes, (size_t)member->size, &got))
        status = nd_fail_at(err, ND_ERR_MALFORMED, member->offset, "deflated data",
                            "data.pkl does not inflate");
    else if (fd < 0 || !nd_spool_write(fd, bytes, member->size))
        status = nd_fail(err, ND_ERR_IO, NULL, "no temporary file can be written");
    free(bytes);
    if (status == ND_OK)
        status = nd_map_fd(fd, &map, err);
    if (fd >= 0)
        close(fd);
    return status == ND_OK
               ? nd_dump_file_take(dump, dump->files[file].path, &map, ret_file, err)
               : status;
}

/* --- indexing ---------------------------------------------------------------------- */

static enum nd_status archive_open(struct dump *dump, size_t file,
                                   struct archive *ret_archive,
                                   const struct zip_member **ret_pickle,
                                   struct nd_error *err)
{
    struct archive archive = {.root = ""};

    ND_TRY(nd_zip_read(nd_dump_bytes(dump, file), dump->arena, &archive.zip, err));
    const struct zip_member *pickle = find_pickle(&archive.zip);
    if (pickle == NULL)
        return nd_fail(err, ND_ERR_MALFORMED, "a member ROOT/data.pkl",
                       "a ZIP archive without one");
    archive.root =
        nd_arena_copy(dump->arena, pickle->name, strlen(pickle->name) - strlen("data.pkl"));
    if (archive.root == NULL)
        return nd_fail_memory(err);
    bool is_program =
        archive_find(&archive, "constants.pkl", strlen("constants.pkl")) != NULL;
    const size_t root_len = strlen(archive.root);
    for (size_t i = 0; i < archive.zip.count && !is_program; i++)
        is_program = strncmp(archive.zip.members[i].name, archive.root, root_len) == 0 &&
                     strncmp(archive.zip.members[i].name + root_len, "code/", 5) == 0;
    if (is_program) {
        nd_fail(err, ND_ERR_UNSUPPORTED, "a dump of tensors", "a TorchScript program");
        nd_error_hint(err, "load it with torch.jit.load and save its state_dict(), or dump "
                           "its layers");
        return ND_ERR_UNSUPPORTED;
    }
    *ret_archive = archive;
    *ret_pickle = pickle;
    return ND_OK;
}

static enum nd_status pt_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct archive archive;
    const struct zip_member *member = NULL;
    struct pickle root;
    struct pt_source source = {
        .dump = dump, .file = file, .text_file = file, .find = pt_find, .user = &archive};

    ND_TRY(archive_open(dump, file, &archive, &member, err));
    if (member->trouble != NULL)
        return nd_fail_key(err, ND_ERR_MALFORMED, member->name, "a readable pickle", "%s",
                           member->trouble);
    ND_TRY(read_byteorder(dump, file, &archive, &source.swapped, err));
    uint64_t at = member->offset;
    if (member->method != 0) {
        ND_TRY(inflate_pickle(dump, file, member, &source.text_file, err));
        at = 0;
    }
    struct cursor in = {nd_dump_bytes(dump, source.text_file).bytes, at + member->size, at};
    ND_TRY(nd_pickle_read(&in, dump->arena, &root, NULL, err));
    return nd_pt_walk(&source, &root, member->size, err);
}

const struct dump_format nd_format_pt = {
    .name = "pt",
    .title = "PyTorch (.pt)",
    .probe = pt_probe,
    .index = pt_index,
};
