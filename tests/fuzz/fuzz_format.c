/*
 * Any bytes as a dump of one format: indexed, every tensor opened and read to its end.
 * FORMAT is the --input-format word.  For formats of folders the bytes are a small tree:
 *
 *   1. u8   length of the name; 128 more for a symbolic link
 *   2. the name, which may hold '/'
 *   3. u16  little-endian: length of the content
 *   4. the content; of a link what it points to
 *
 * For raw numbers the first line is what --raw says.
 */
#define _GNU_SOURCE /* nftw, mkdtemp, symlink */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A view of zero strides may have any number of elements: a million of them will do. */
enum { BLOCK = 4096, MOST_ELEMENTS = 1000000 };

static void read_slot(const struct dump *dump, const struct dump_slot *slot)
{
    static double values[2 * BLOCK]; /* complex elements are two */
    struct open_slot open;
    struct nd_error error;

    if (nd_slot_open(dump, slot, &open, &error) != ND_OK)
        return;
    const uint64_t count =
        open.view.count < MOST_ELEMENTS ? open.view.count : MOST_ELEMENTS;
    for (uint64_t at = 0; at < count; at += BLOCK)
        nd_view_decode(&open.view, at, count - at < BLOCK ? count - at : BLOCK, values);
    (void)nd_slot_close(&open);
}

static void read_all(const struct dump *dump)
{
    for (size_t i = 0; i < dump->layer_count; i++) {
        const struct dump_layer *const layer = &dump->layers[i];
        if (layer->name == NULL || layer->type == NULL)
            abort();
        for (size_t k = 0; k < layer->slot_count; k++)
            if (layer->slots[k].evidence == ND_EVIDENCE_VALUES)
                read_slot(dump, &layer->slots[k]);
    }
}

static void use_bytes(const uint8_t *data, size_t size)
{
    const struct dump_head head = {data == NULL ? (const uint8_t *)"" : data, size, "fuzz"};
    struct dump *dump;
    struct nd_error error;
    char raw[64] = "";
    size_t begin = 0;

    if (nd_format_recognise(&head) == NULL && nd_format_unknown(&head, &error) == ND_OK)
        abort(); /* what no format claims is an error */
    if (strcmp(FORMAT, "raw") == 0) {
        while (begin < size && begin < sizeof raw - 1 && data[begin] != '\n')
            begin++;
        memcpy(raw, head.bytes, begin);
        raw[begin] = '\0';
    }
    if (nd_dump_open_bytes(head.bytes + begin, size - begin, "fuzz", FORMAT, raw, &dump,
                           &error) != ND_OK)
        return;
    read_all(dump);
    nd_dump_close(dump);
}

/* --- trees ------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* Only names that stay below the folder are written. */
static int is_inside(const char *name)
{
    return *name != '\0' && *name != '/' && strstr(name, "..") == NULL;
}

static void write_file(const char *folder, const char *name, const uint8_t *bytes,
                       size_t size, int is_link)
{
    char path[512], target[64];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    if (is_link) {
        const size_t len = size < sizeof target ? size : sizeof target - 1;
        memcpy(target, bytes, len);
        target[len] = '\0';
        if (symlink(target, path) != 0)
            return;
    } else {
        FILE *const file = fopen(path, "wbx");
        if (file == NULL)
            return;
        (void)!fwrite(bytes, 1, size, file);
        fclose(file);
    }
}

static void write_tree(const char *folder, const uint8_t *data, size_t size)
{
    struct cursor in = {data, size, 0};
    const unsigned char *name, *content;
    uint64_t name_len, content_len;
    char text[128];

    while (nd_cursor_le(&in, 1, &name_len) && nd_cursor_take(&in, name_len & 127, &name) &&
           nd_cursor_le(&in, 2, &content_len) &&
           nd_cursor_take(&in, content_len, &content)) {
        memcpy(text, name, name_len & 127);
        text[name_len & 127] = '\0';
        if (is_inside(text))
            write_file(folder, text, content, (size_t)content_len, name_len > 127);
    }
}

static void use_tree(const uint8_t *data, size_t size)
{
    const char *const where = getenv("TMPDIR");
    char folder[256];
    struct dump *dump;
    struct nd_error error;

    snprintf(folder, sizeof folder, "%s/normdiff-fuzz-XXXXXX",
             where == NULL ? "/tmp" : where);
    if (mkdtemp(folder) == NULL)
        return;
    if (data != NULL)
        write_tree(folder, data, size);
    if (nd_dump_open(folder, FORMAT, NULL, &dump, &error) == ND_OK) {
        read_all(dump);
        nd_dump_close(dump);
    }
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct dump_format *const format = nd_format_by_name(FORMAT);

    if (format == NULL)
        abort();
    if (format->probe_directory != NULL)
        use_tree(data, size);
    if (format->probe != NULL)
        use_bytes(data, size);
    return 0;
}
