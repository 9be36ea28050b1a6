/*
 * What of a dump is recomputed: small layers whole, of large ones as much as all can have,
 * and the place of the largest error always.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "checks/facts.h"
#include "checks/replay_budget.h"

enum { LAYERS = 64 };

struct dump {
    struct nd_layer layers[LAYERS];
    struct nd_slot slots[LAYERS][2];
    struct nd_result result;
};

/* Layers of one type: input.0 [rows, width], output.0 [rows, width]. */
static struct nd_result *dump_of(struct dump *dump, size_t count, const char *type,
                                 uint64_t rows, uint64_t width)
{
    static const char *const names[] = {"input.0", "output.0"};

    *dump = (struct dump){.result = {.layers = dump->layers, .layer_count = count}};
    for (size_t i = 0; i < count; i++) {
        for (int s = 0; s < 2; s++)
            dump->slots[i][s] = (struct nd_slot){.name = names[s],
                                                 .tier = ND_TIER_NOISE,
                                                 .shape = {2, {rows, width}},
                                                 .n = rows * width};
        dump->layers[i] = (struct nd_layer){
            .name = "layer", .type = type, .slots = dump->slots[i], .slot_count = 2};
    }
    return &dump->result;
}

static void small_layers_are_recomputed_whole(void **state)
{
    struct dump dump;

    (void)state;
    dump_of(&dump, LAYERS, "LayerNorm", 128, 64);
    assert_true(nd_replay_budget(&dump.result).norm >= 128 * 64);
    dump_of(&dump, LAYERS, "GELU", 128, 64);
    assert_true(nd_replay_budget(&dump.result).other >= 128 * 64);
    /* 64 products of 32 * 64 outputs, each over 64 terms: 2^23 multiply-adds. */
    dump_of(&dump, LAYERS, "Linear", 32, 64);
    assert_true(nd_replay_budget(&dump.result).terms >= 32 * 64 * 64);
}

static void large_layers_share_what_comparing_them_allows(void **state)
{
    struct dump dump;
    const uint64_t rows = 4096, width = 4096, compared = 2 * rows * width * LAYERS;
    struct replay_budget budget;

    (void)state;
    budget = nd_replay_budget(dump_of(&dump, LAYERS, "LayerNorm", rows, width));
    assert_true(budget.norm * LAYERS <= (1 << 21) + compared / 64);
    budget = nd_replay_budget(dump_of(&dump, LAYERS, "GELU", rows, width));
    assert_true(budget.other * LAYERS <= (1 << 21) + compared / 64);
    budget = nd_replay_budget(dump_of(&dump, LAYERS, "Linear", rows, width));
    assert_true(budget.terms * LAYERS <= (1 << 23) + compared / 8);
    assert_true(budget.terms >= 1 << 16);
}

/* The others of a model are small: a large one may take what they leave. */
static void what_small_layers_leave_is_for_the_large_ones(void **state)
{
    struct dump dump;
    uint64_t alike;

    (void)state;
    alike = nd_replay_budget(dump_of(&dump, LAYERS, "GELU", 4096, 1024)).other;
    dump_of(&dump, LAYERS, "GELU", 16, 16);
    dump.slots[7][1].n = 4096 * 1024;
    assert_true(nd_replay_budget(&dump.result).other >= 8 * alike);
}

static void the_place_of_the_largest_error_is_known_without_a_detailed_pass(void **state)
{
    static const uint64_t place[] = {2, 1, 4}, detailed[] = {1, 2, 3};
    const struct nd_metric_value metrics[] = {
        {.key = "rel_l2", .value = {1e-6}},
        {.key = "max_abs_index", .kind = ND_METRIC_INDEX, .index = place, .index_len = 3}};
    const struct nd_worst worst = {.index = detailed, .index_len = 3};
    struct nd_slot slot = {
        .shape = {3, {4, 20, 30}}, .metrics = metrics, .metric_count = 2};

    (void)state;
    assert_ptr_equal(nd_slot_worst(&slot), place);
    slot.worst = &worst;
    slot.worst_count = 1;
    assert_ptr_equal(nd_slot_worst(&slot), detailed);
    slot = (struct nd_slot){.shape = {1, {4}}, .metrics = metrics, .metric_count = 1};
    assert_null(nd_slot_worst(&slot));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_layers_are_recomputed_whole),
        cmocka_unit_test(large_layers_share_what_comparing_them_allows),
        cmocka_unit_test(what_small_layers_leave_is_for_the_large_ones),
        cmocka_unit_test(the_place_of_the_largest_error_is_known_without_a_detailed_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
