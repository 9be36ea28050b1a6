/*
 * Arenas, small and so large that they take pages from the kernel.
 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

enum { PIECES = 20000, PIECE = 200 }; /* 4 MB: beyond the first half megabyte */

static void pieces_of_a_large_arena_are_zeroed_aligned_and_apart(void **state)
{
    struct arena *arena = nd_arena_new();
    unsigned char **pieces = nd_arena_alloc(arena, PIECES, sizeof *pieces);

    (void)state;
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = nd_arena_alloc(arena, 1, PIECE - i % 100);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < PIECE - i % 100; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)(i % 251), PIECE - i % 100);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < PIECE - i % 100; k++)
            assert_int_equal(pieces[i][k], i % 251);
    nd_arena_free(arena);
}

static void what_an_arena_takes_over_stays_where_it_is(void **state)
{
    struct arena *into = nd_arena_new(), *from = nd_arena_new();
    char *large = nd_arena_alloc(from, 100000, 1), *first = nd_arena_string(into, "first");
    static char *texts[PIECES];

    (void)state;
    memset(large, 'x', 100000);
    for (int i = 0; i < PIECES; i++)
        texts[i] = nd_arena_format(from, "text %d of many that fill several chunks", i);
    nd_arena_take(into, from);
    nd_arena_take(into, NULL);
    char *const last = nd_arena_string(into, "last"); /* goes on in its own chunk */
    assert_true(last - first > 0 && last - first < 64);
    for (int i = 0; i < PIECES; i++) {
        assert_non_null(nd_arena_string(into, "in between"));
        assert_int_equal(strncmp(texts[i], "text ", 5), 0);
        assert_string_equal(strchr(texts[i] + 5, ' '), " of many that fill several chunks");
    }
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(large[i], 'x');
    nd_arena_free(into);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_a_large_arena_are_zeroed_aligned_and_apart),
        cmocka_unit_test(what_an_arena_takes_over_stays_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
