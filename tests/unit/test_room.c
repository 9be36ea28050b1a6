/*
 * Buffers that a thread keeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/pool.h"
#include "base/room.h"

enum { COUNT = 1 << 16 };

static void buffers_are_apart_and_as_large_as_asked_for(void **state)
{
    unsigned char *const first = nd_room_take(COUNT, 1);
    unsigned char *const second = nd_room_take(COUNT / 8, 8);

    (void)state;
    assert_non_null(first);
    assert_non_null(second);
    memset(first, 1, COUNT);
    memset(second, 2, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(first[i], 1);
    assert_int_equal((uintptr_t)first % 16, 0); /* for any type */
    nd_room_give(first);
    nd_room_give(second);
    nd_room_clear();
}

static void a_buffer_given_back_serves_what_fits_and_nothing_larger(void **state)
{
    unsigned char *room = nd_room_take(COUNT, 1);

    (void)state;
    nd_room_give(room);
    for (size_t size = COUNT / 2; size <= 4 * (size_t)COUNT; size += COUNT / 2) {
        room = nd_room_take(size, 1);
        assert_non_null(room);
        memset(room, 3, size); /* sanitizers see what lies outside */
        nd_room_give(room);
    }
    nd_room_clear();
}

static void more_buffers_than_are_kept_are_freed(void **state)
{
    void *rooms[64];

    (void)state;
    for (int i = 0; i < 64; i++) {
        rooms[i] = nd_room_take((uint64_t)(i + 1) << 12, sizeof(double));
        assert_non_null(rooms[i]);
    }
    for (int i = 0; i < 64; i++)
        nd_room_give(rooms[i]);
    nd_room_give(NULL);
    nd_room_clear();
    nd_room_clear();
}

static void a_count_that_no_memory_holds_is_refused(void **state)
{
    (void)state;
    assert_null(nd_room_take(UINT64_MAX, 8));
    assert_null(nd_room_take(UINT64_MAX / 8, 8));
}

static void take_and_give(void *user, size_t i, unsigned worker)
{
    double *const room = nd_room_take(COUNT + i, sizeof *room);

    (void)worker;
    if (room != NULL)
        room[COUNT - 1] = room[0] = (double)i;
    ((bool *)user)[i] = room != NULL;
    nd_room_give(room);
}

/* Leak checkers see what a thread would leave. */
static void what_a_thread_keeps_goes_with_it(void **state)
{
    bool taken[64] = {false};

    (void)state;
    nd_pool_run(4, 63, take_and_give, NULL, taken);
    for (int i = 0; i < 63; i++)
        assert_true(taken[i]);
    nd_room_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_are_apart_and_as_large_as_asked_for),
        cmocka_unit_test(a_buffer_given_back_serves_what_fits_and_nothing_larger),
        cmocka_unit_test(more_buffers_than_are_kept_are_freed),
        cmocka_unit_test(a_count_that_no_memory_holds_is_refused),
        cmocka_unit_test(what_a_thread_keeps_goes_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
