/*
 * What a file is that no format claims.  People point the tool at whatever stands where
 * the dump should be; the name of the thing, and what to do about it, saves them an hour.
 * Only bytes count, never the file's name.
 */
#include "formats/format.h"

#include <ctype.h>
#include <stdio.h>

#include "base/text.h"
#include "formats/zip.h"

/* As much of a file as decides whether it is text. */
enum { TEXT_SAMPLE = 4096 };

struct known {
    unsigned at;
    const char *magic;
    unsigned len;
    const char *what;
    const char *hint;
};

#define MAGIC(at, bytes, what, hint)                                                       \
    {                                                                                      \
        at, bytes, sizeof bytes - 1, what, hint                                            \
    }

#define LFS_HINT      "the tensors are not here: run git lfs pull"
#define UNPACK_HINT   "unpack it first"
#define DOWNLOAD_HINT "a download or a share link may have saved a page instead of the file"

/* The first that holds; longer magics before their own prefixes. */
static const struct known knowns[] = {
    MAGIC(0, "version https://git-lfs.github.com/spec/",
          "a Git LFS pointer, not the file itself", LFS_HINT),
    MAGIC(0, "\x1f\x8b", "gzip inside gzip", "decompress it once before comparing"),
    MAGIC(0, "\x89HDF\r\n\x1a\n", "an HDF5 file",
          "write its datasets as .npz (h5py, numpy.savez)"),
    MAGIC(0, "\xff\xfe", "a UTF-16 text", "save it as UTF-8"),
    MAGIC(0, "\xfe\xff", "a UTF-16 text", "save it as UTF-8"),
    MAGIC(0, "CDF\x01", "a netCDF file", "write its variables as .npz (numpy.savez)"),
    MAGIC(0, "CDF\x02", "a netCDF file", "write its variables as .npz (numpy.savez)"),
    MAGIC(0, "GGUF", "a GGUF model file",
          "GGUF holds weights, not a dump of layer outputs"),
    MAGIC(0, "MATLAB 5.0 MAT-file", "a MATLAB file", "write its arrays as .npz"),
    MAGIC(4, "TFL3", "a TensorFlow Lite model",
          "a model is not a dump: run it and save tensors"),
    MAGIC(0, "\x89PNG\r\n\x1a\n", "a PNG image", NULL),
    MAGIC(0, "\xff\xd8\xff", "a JPEG image", NULL),
    MAGIC(0, "GIF8", "a GIF image", NULL),
    MAGIC(0, "%PDF-", "a PDF document", NULL),
    MAGIC(0, "SQLite format 3", "an SQLite database", NULL),
    MAGIC(0, "PAR1", "a Parquet file", NULL),
    MAGIC(0, "ARROW1", "an Arrow file", NULL),
    MAGIC(0, "\177ELF", "a program or a shared library", NULL),
    MAGIC(0, "\x28\xb5\x2f\xfd", "a zstd archive", UNPACK_HINT),
    MAGIC(0, "\3757zXZ", "an xz archive", UNPACK_HINT),
    MAGIC(0, "BZh", "a bzip2 archive", UNPACK_HINT),
    MAGIC(0, "\x04\x22\x4d\x18", "an lz4 archive", UNPACK_HINT),
    MAGIC(0, "7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK_HINT),
    MAGIC(0, "Rar!\x1a\x07", "a RAR archive", UNPACK_HINT),
    MAGIC(257, "ustar", "a tar archive",
          "unpack it and compare the folder (PyTorch before 0.1.10 wrote .pt as tar)"),
    MAGIC(0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a Microsoft Office document", NULL),
};

static bool head_has(const struct dump_head *head, uint64_t at, const char *magic,
                     size_t len)
{
    return head->size >= at && head->size - at >= len &&
           memcmp(head->bytes + at, magic, len) == 0;
}

/* True if the text starts with `word`, in any case, after blanks and a byte order mark. */
static bool head_says(const struct dump_head *head, const char *word)
{
    uint64_t at = head_has(head, 0, "\xef\xbb\xbf", 3) ? 3 : 0;

    while (at < head->size && at < TEXT_SAMPLE && isspace(head->bytes[at]))
        at++;
    for (; *word != '\0'; word++, at++)
        if (at >= head->size || tolower(head->bytes[at]) != *word)
            return false;
    return true;
}

static bool head_is_text(const struct dump_head *head)
{
    const uint64_t n = head->size < TEXT_SAMPLE ? head->size : TEXT_SAMPLE;

    for (uint64_t i = 0; i < n; i++)
        if (head->bytes[i] < 0x20 && !isspace(head->bytes[i]) && head->bytes[i] != 0x1b)
            return false;
    return true;
}

static bool head_is_zero(const struct dump_head *head)
{
    const uint64_t n = head->size < TEXT_SAMPLE ? head->size : TEXT_SAMPLE;

    for (uint64_t i = 0; i < n; i++)
        if (head->bytes[i] != 0)
            return false;
    return true;
}

static bool name_ends(const char *name, const char *end)
{
    const size_t a = strlen(name), b = strlen(end);
    return a >= b && strcmp(name + a - b, end) == 0;
}

/* Archives differ by what lies in them; a damaged directory is said as such. */
static enum nd_status unknown_zip(const struct dump_head *head, struct nd_error *err)
{
    struct arena *arena = nd_arena_new();
    struct zip zip;
    const char *what = "a ZIP archive without .npy members or a PyTorch data.pkl";
    const char *hint = "unpack it and compare the folder";

    if (arena == NULL)
        return nd_fail_memory(err);
    const enum nd_status status =
        nd_zip_read((struct cursor){head->bytes, head->size, 0}, arena, &zip, err);
    for (size_t i = 0; status == ND_OK && i < zip.count; i++) {
        const char *name = zip.members[i].name;
        if (name_ends(name, "constants.pkl") || strstr(name, "/code/") != NULL) {
            what = "a TorchScript program, not a file of tensors";
            hint =
                "load it with torch.jit.load and save its state_dict(), or dump its layers";
            break;
        }
        if (name_ends(name, ".npy")) {
            what = "a ZIP archive of arrays with other bytes in front of it";
            hint = "--input-format npz reads it";
            break;
        }
        if (strncmp(name, "xl/", 3) == 0) {
            what = "an Excel workbook (.xlsx)";
            hint = NULL;
            break;
        }
        if (strncmp(name, "word/", 5) == 0 || strncmp(name, "ppt/", 4) == 0) {
            what = "a Microsoft Office document";
            hint = NULL;
            break;
        }
    }
    nd_arena_free(arena);
    if (status != ND_OK)
        return status;
    nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "a dump of tensors", "%s", what);
    if (hint != NULL)
        nd_error_hint(err, hint);
    return ND_ERR_UNKNOWN_FORMAT;
}

static enum nd_status unknown_is(struct nd_error *err, const char *what, const char *hint)
{
    nd_fail(err, ND_ERR_UNKNOWN_FORMAT, "a dump of tensors", "%s", what);
    if (hint != NULL)
        nd_error_hint(err, hint);
    return ND_ERR_UNKNOWN_FORMAT;
}

/* Bytes that no magic names: how they begin is what a person can use. */
static enum nd_status unknown_bytes(const struct dump_head *head, struct nd_error *err)
{
    char shown[3 * 16 + 1] = "";
    unsigned n = head->size < 16 ? (unsigned)head->size : 16;

    for (unsigned i = 0; i < n; i++)
        snprintf(shown + (size_t)i * 3, sizeof shown - (size_t)i * 3, "%02x%s",
                 head->bytes[i], i + 1 < n ? " " : "");
    nd_fail_at(err, ND_ERR_UNKNOWN_FORMAT, 0, "the beginning of a known dump format", "%s",
               shown);
    nd_error_hint(err, "plain numbers without a header need --raw, for example "
                       "--raw float32:4,128,768");
    return ND_ERR_UNKNOWN_FORMAT;
}

enum nd_status nd_format_unknown(const struct dump_head *head, struct nd_error *err)
{
    if (head->size == 0)
        return unknown_is(err, "an empty file",
                          "the program that wrote it may have been stopped");
    for (size_t i = 0; i < sizeof knowns / sizeof *knowns; i++)
        if (head_has(head, knowns[i].at, knowns[i].magic, knowns[i].len))
            return unknown_is(err, knowns[i].what, knowns[i].hint);
    if (nd_zip_probe(head->bytes, head->size) || nd_zip_ends(head->bytes, head->size))
        return unknown_zip(head, err);
    if (head_says(head, "<!doctype html") || head_says(head, "<html"))
        return unknown_is(err, "an HTML page", DOWNLOAD_HINT);
    if (head_says(head, "<?xml") || head_says(head, "<error>"))
        return unknown_is(err, "an XML document", DOWNLOAD_HINT);
    if (head_is_zero(head))
        return unknown_is(err, "a file of zero bytes only",
                          "a copy that did not finish leaves such a file: copy it again");
    if (head->size < 6 && memcmp(head->bytes, "\x93NUMPY", head->size) == 0)
        return nd_fail_at(err, ND_ERR_MALFORMED, head->size, "the header of a NumPy array",
                          "the end of the file");
    if (head_says(head, "{") || head_says(head, "["))
        return unknown_is(err, "a JSON text that is no known dump", NULL);
    if (head_is_text(head))
        return unknown_is(
            err, "a text without any tensor statistics in it",
            "a line of a log reads like: layer1.conv: max=0.123456, mean=0.012345");
    if (head->size >= 2 && head->bytes[0] == 0x80 && head->bytes[1] >= 2 &&
        head->bytes[1] <= 5)
        return unknown_is(err, "a Python pickle that torch.save did not write",
                          "save the tensors with torch.save or numpy.savez");
    return unknown_bytes(head, err);
}
