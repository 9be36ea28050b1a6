/*
 * Finding layers and slots by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "formats/name_table.h"

enum { NAMES = 5000 };

static void every_key_is_found_and_no_other(void **state)
{
    struct arena *arena = nd_arena_new();
    struct name_table *table = NULL;
    char name[64];

    (void)state;
    for (size_t i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "layers.%zu.linear", i % (NAMES / 2));
        const struct name_key layer = {.layer = nd_arena_string(arena, name),
                                       .step = i < NAMES / 2 ? -1 : 7,
                                       .rank = -1,
                                       .index = i};
        const struct name_key slot = {.slot = "output.0", .index = i};
        assert_null(nd_name_find(table, &layer));
        assert_null(nd_name_find(table, &slot));
        assert_true(nd_name_add(&table, arena, &layer));
        assert_true(nd_name_add(&table, arena, &slot));
    }
    for (size_t i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "layers.%zu.linear", i % (NAMES / 2));
        struct name_key layer = {.layer = name, .step = i < NAMES / 2 ? -1 : 7, .rank = -1};
        struct name_key slot = {.slot = "output.0", .index = i};
        assert_int_equal(nd_name_find(table, &layer)->index, i);
        assert_int_equal(nd_name_find(table, &slot)->index, i);
        layer.rank = 0;
        slot.slot = "output.1";
        assert_null(nd_name_find(table, &layer));
        assert_null(nd_name_find(table, &slot));
    }
    nd_name_table_free(table);
    nd_arena_free(arena);
}

static void names_that_begin_alike_are_told_apart_at_every_length(void **state)
{
    struct arena *arena = nd_arena_new();
    struct name_table *table = NULL;
    char name[41] = "";

    (void)state;
    for (size_t len = 0; len <= 40; len++) {
        for (size_t i = 0; i < len; i++)
            name[i] = 'a';
        const struct name_key key = {.layer = nd_arena_string(arena, name), .index = len};
        assert_null(nd_name_find(table, &key));
        assert_true(nd_name_add(&table, arena, &key));
        assert_int_equal(nd_name_find(table, &key)->index, len);
    }
    nd_name_table_free(table);
    nd_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_found_and_no_other),
        cmocka_unit_test(names_that_begin_alike_are_told_apart_at_every_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
