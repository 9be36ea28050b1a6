/*
 * The generator that chooses samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mix.h"

/* The reference implementation, seed 1234567: its first three outputs as published with many
 * ports of it (Rosetta Code, "Pseudo-random numbers/Splitmix64"). */
static void outputs_are_those_of_the_published_generator(void **state)
{
    (void)state;
    assert_true(mix64(1234567) == 6457827717110365317u);
    assert_true(mix64(1234567 + MIX_STEP) == 3203168211198807973u);
    assert_true(mix64(1234567 + 2 * MIX_STEP) == 9817491932198370423u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_those_of_the_published_generator),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
