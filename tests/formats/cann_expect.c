/*
 * What tests of CANN's formats ask of a dump.
 */
#include "formats/cann_expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "formats/cann_build.h"
#include "formats/format.h"

static const struct dump_layer *expect_layer(const struct dump *dump, const char *layer,
                                             int64_t call)
{
    for (size_t i = 0; i < dump->layer_count; i++)
        if (strcmp(dump->layers[i].name, layer) == 0 && dump->layers[i].call == call)
            return &dump->layers[i];
    fail_msg("no call %d of layer %s", (int)call, layer);
    return NULL;
}

const struct dump_slot *expect_slot(const struct dump *dump, const char *layer,
                                    int64_t call, const char *slot)
{
    const struct dump_layer *const at = expect_layer(dump, layer, call);

    for (size_t i = 0; i < at->slot_count; i++)
        if (strcmp(at->slots[i].name, slot) == 0)
            return &at->slots[i];
    fail_msg("no %s of %s", slot, layer);
    return NULL;
}

void expect_ramp(const struct dump *dump, const struct dump_slot *slot, const char *shape)
{
    struct nd_error error = {0};
    struct open_slot open;
    char text[400];

    if (nd_slot_open(dump, slot, &open, &error) != ND_OK)
        fail_msg("%s: %s", slot->name, error.found);
    assert_string_equal(nd_shape_text(&open.view.shape, text, sizeof text), shape);
    for (uint64_t i = 0; i < open.view.count; i++) {
        const double value = nd_view_at(&open.view, i);
        if (value != ((double)i - 8) / 4)
            fail_msg("%s[%u] is %g", slot->name, (unsigned)i, value);
    }
    assert_true(nd_slot_close(&open));
}

void expect_broken(const struct dump_slot *slot, const char *what)
{
    if (slot->broken == NULL || strstr(slot->broken, what) == NULL)
        fail_msg("%s: '%s' does not say '%s'", slot->name,
                 slot->broken == NULL ? "" : slot->broken, what);
}

const char *expect_attribute(const struct dump *dump, const char *layer, const char *key)
{
    const struct dump_layer *const at = expect_layer(dump, layer, 0);

    for (size_t i = 0; i < at->attribute_count; i++)
        if (strcmp(at->attributes[i].key, key) == 0)
            return at->attributes[i].text;
    return NULL;
}

struct dump *expect_seed(const char *format, const char *seed, unsigned char **ret_block)
{
    struct bytes bytes = corpus_file(format, seed);
    struct nd_error error = {0};
    struct dump *dump;

    if (open_exact(bytes.at, bytes.size, seed, NULL, &dump, ret_block, &error) != ND_OK)
        fail_msg("%s: %s: %s", seed, error.at, error.found);
    bytes_free(&bytes);
    assert_string_equal(dump->format->name, format);
    return dump;
}
