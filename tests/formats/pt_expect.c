/*
 * Expected tensors as text: layer|slot|dtype|shape|device format|values.
 */
#include "formats/pt_expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/build.h"
#include "formats/format.h"

enum { FIELDS = 6 };

/* Cuts the line at each '|'; missing fields are empty. */
static void split(char *line, char *fields[FIELDS])
{
    static char empty[1];

    for (int i = 0; i < FIELDS; i++) {
        fields[i] = line;
        char *bar = strchr(line, '|');
        if (bar == NULL || i == FIELDS - 1) {
            line = empty;
        } else {
            *bar = '\0';
            line = bar + 1;
        }
    }
}

static void expect_ignored(const struct dump *dump, const char *line)
{
    for (size_t i = 0; i < dump->ignored_count; i++)
        if (strcmp(dump->ignored[i], line) == 0)
            return;
    fail_msg("not listed as ignored: %s", line);
}

static void expect_shape(const struct dump_slot *slot, const char *layer, char *shape)
{
    uint32_t rank = 0;

    for (char *dim = strtok(shape, ","); dim != NULL; dim = strtok(NULL, ","))
        if (rank >= slot->storage.rank ||
            slot->storage.dim[rank++] != strtoull(dim, NULL, 10))
            fail_msg("%s: dimension %u is not %s", layer, rank, dim);
    assert_int_equal(slot->storage.rank, rank);
}

static void expect_values(const struct dump *dump, const struct dump_slot *slot,
                          const char *layer, char *values)
{
    const unsigned parts = nd_dtype_info(slot->dtype)->kind == ND_KIND_COMPLEX ? 2 : 1;
    uint64_t count, n = 0;
    double *const got = slot_values(dump, slot, &count);

    for (char *value = strtok(values, " "); value != NULL; value = strtok(NULL, " "), n++) {
        const double want = strtod(value, NULL);
        if (n >= count * parts || memcmp(&got[n], &want, sizeof want) != 0)
            fail_msg("%s: value %u is not %s", layer, (unsigned)n, value);
    }
    assert_int_equal(n, count * parts);
    free(got);
}

static void expect_tensor(const struct dump *dump, char *fields[FIELDS])
{
    const struct dump_slot *slot = find_slot(dump, fields[0], fields[1]);

    if (slot == NULL)
        fail_msg("no tensor %s %s", fields[0], fields[1]);
    if (strcmp(fields[2], "broken") == 0) {
        if (slot->broken == NULL ||
            strncmp(slot->broken, fields[3], strlen(fields[3])) != 0)
            fail_msg("%s: broken is '%s', not '%s'", fields[0],
                     slot->broken == NULL ? "" : slot->broken, fields[3]);
        return;
    }
    if (slot->broken != NULL)
        fail_msg("%s %s is broken: %s", fields[0], fields[1], slot->broken);
    assert_int_equal(slot->evidence, ND_EVIDENCE_VALUES);
    assert_string_equal(nd_dtype_info(slot->dtype)->name, fields[2]);
    expect_shape(slot, fields[0], fields[3]);
    assert_string_equal(slot->layout_text == NULL ? "" : slot->layout_text, fields[4]);
    assert_null(slot->layout); /* what is noted must not change how bytes are read */
    expect_values(dump, slot, fields[0], fields[5]);
}

void expect_fixture(const char *folder, const char *name, const char *format)
{
    char path[4096], text_name[256];
    struct dump *dump = NULL;
    struct nd_error error = {0};
    size_t tensors = 0, found = 0;

    snprintf(path, sizeof path, "%s/%s.pt", folder, name);
    snprintf(text_name, sizeof text_name, "%s.txt", name);
    if (nd_dump_open(path, NULL, NULL, &dump, &error) != ND_OK)
        fail_msg("%s: %s: %s (expected %s)", name, error.at, error.found, error.expected);
    assert_string_equal(dump->format->name, format);
    assert_int_equal(dump->order, ND_ORDER_CONTAINER);
    for (size_t i = 0; i < dump->layer_count; i++)
        found += dump->layers[i].slot_count;

    struct bytes text = bytes_of_file(folder, text_name);
    bytes_put(&text, "", 1);
    for (char *line = (char *)text.at, *next; *line != '\0'; line = next) {
        char *fields[FIELDS];
        next = strchr(line, '\n');
        assert_non_null(next);
        *next++ = '\0';
        split(line, fields);
        if (strcmp(fields[0], "ignored") == 0) {
            expect_ignored(dump, fields[1]);
            continue;
        }
        tensors++;
        expect_tensor(dump, fields);
    }
    assert_int_equal(found, tensors);
    bytes_free(&text);
    nd_dump_close(dump);
}
