/*
 * Pairing of layers: names, repeats, maps, order.  Dumps are built by hand.
 */
#define _GNU_SOURCE /* mkstemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "compare/align.h"

struct spec {
    const char *name, *type;
    int         call;
    uint64_t    width; /* of output.0; 0: no output */
};

static struct dump *build(struct arena *arena, const struct spec *specs, enum nd_order order)
{
    struct dump *dump = nd_arena_alloc(arena, 1, sizeof *dump);
    size_t       count = 0;

    while (specs[count].name != NULL)
        count++;
    dump->arena = arena;
    dump->order = order;
    dump->root_fd = -1;
    dump->layers = nd_arena_alloc(arena, count + 1, sizeof *dump->layers);
    dump->layer_count = count;
    for (size_t i = 0; i < count; i++) {
        struct dump_slot *slot = nd_arena_alloc(arena, 1, sizeof *slot);
        slot->name = "output.0";
        slot->dtype = ND_DTYPE_f32;
        slot->real_dtype = ND_DTYPE_NONE;
        slot->has_shape = true;
        slot->storage = (struct nd_shape){.rank = 1, .dim = {specs[i].width}};
        dump->layers[i] = (struct dump_layer){
            .name = specs[i].name, .type = specs[i].type == NULL ? "" : specs[i].type,
            .call = specs[i].call, .step = -1, .rank = -1, .micro_step = -1, .slots = slot,
            .slot_count = specs[i].width > 0};
    }
    return dump;
}

struct fixture {
    struct arena     *arena;
    struct nd_options options;
    struct comparison comparison;
    struct nd_error   err;
};

static enum nd_status align_in(struct fixture *fixture, const struct spec *a, const struct spec *b,
                               enum nd_order order)
{
    fixture->arena = nd_arena_new();
    fixture->options.step = fixture->options.rank = -1;
    fixture->comparison = (struct comparison){.arena = fixture->arena, .options = &fixture->options};
    fixture->comparison.dump[0] = build(fixture->arena, a, order);
    fixture->comparison.dump[1] = build(fixture->arena, b, order);
    return nd_align(&fixture->comparison, &fixture->err);
}

static enum nd_status align(struct fixture *fixture, const struct spec *a, const struct spec *b)
{
    return align_in(fixture, a, b, ND_ORDER_RECORDED);
}

/* "reference=candidate/match" for every layer, in order. */
static void assert_pairs(struct fixture *fixture, const char *want)
{
    static const char *const words[] = {"none", "exact", "normalised", "map", "order", "lone"};
    char got[1000] = "";

    for (size_t i = 0; i < fixture->comparison.layer_count; i++) {
        const struct layer_pair *pair = &fixture->comparison.layers[i];
        char one[200];
        snprintf(one, sizeof one, "%s%s#%d=%s#%d/%s", i == 0 ? "" : " ", pair->side[0]->name,
                 (int)pair->side[0]->call, pair->side[1] == NULL ? "-" : pair->side[1]->name,
                 pair->side[1] == NULL ? 0 : (int)pair->side[1]->call,
                 words[pair->side[1] == NULL ? ND_MATCH_NONE : pair->match]);
        strncat(got, one, sizeof got - strlen(got) - 1);
    }
    assert_string_equal(got, want);
    nd_arena_free(fixture->arena);
}

static void equal_names_pair_whatever_their_order(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(align(&f, (const struct spec[]){{"a", NULL, 0, 1}, {"b", NULL, 0, 1}, {0}},
                           (const struct spec[]){{"b", NULL, 0, 1}, {"a", NULL, 0, 1}, {0}}), ND_OK);
    assert_pairs(&f, "a#0=a#0/exact b#0=b#0/exact");
}

static void repeats_pair_by_call_number_then_in_order(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(align(&f, (const struct spec[]){{"r", NULL, 0, 1}, {"r", NULL, 1, 1}, {"r", NULL, 2, 1}, {0}},
                           (const struct spec[]){{"r", NULL, 1, 1}, {"r", NULL, 5, 1}, {0}}), ND_OK);
    assert_pairs(&f, "r#0=r#5/exact r#1=r#1/exact r#2=-#0/none");
}

static void wrappers_separators_and_synonyms_are_looked_through(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(
        align(&f, (const struct spec[]){{"module.layer.0.norm", NULL, 0, 1}, {"net/bn1", NULL, 0, 1},
                                        {"Module.fc.Linear.forward.0", NULL, 0, 1}, {"x.y", NULL, 0, 1}, {0}},
              (const struct spec[]){{"layer.0.norm", NULL, 0, 1}, {"net.bn1", NULL, 0, 1},
                                    {"Cell.fc.Dense.0.forward", NULL, 0, 1}, {"x_y", NULL, 0, 1}, {0}}),
        ND_OK);
    assert_pairs(&f, "module.layer.0.norm#0=layer.0.norm#0/normalised net/bn1#0=net.bn1#0/normalised "
                     "Module.fc.Linear.forward.0#0=Cell.fc.Dense.0.forward#0/normalised "
                     "x.y#0=x_y#0/normalised");
}

static void a_class_at_the_end_of_a_name_is_looked_through(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(align(&f, (const struct spec[]){{"emb", "Linear", 0, 1}, {"a.Linear", "ReLU", 0, 1}, {0}},
                           (const struct spec[]){{"Module.emb.Linear.forward.0", "Linear", 0, 1}, {"a", "ReLU", 0, 1}, {0}}),
                     ND_OK);
    assert_pairs(&f, "emb#0=Module.emb.Linear.forward.0#0/normalised a.Linear#0=-#0/none");
}

static void order_pairs_equal_types_and_shapes_of_one_parent(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(
        align(&f, (const struct spec[]){{"p.a", "Linear", 0, 4}, {"p.b", "Norm", 0, 4}, {"p.c", "Linear", 0, 8}, {0}},
              (const struct spec[]){{"p.x", "Linear", 0, 4}, {"p.z", "Linear", 0, 8}, {"q.y", "Norm", 0, 4}, {0}}),
        ND_OK);
    assert_pairs(&f, "p.a#0=p.x#0/order p.b#0=-#0/none p.c#0=p.z#0/order");
}

static void without_an_order_names_give_the_places(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(
        align_in(&f, (const struct spec[]){{"p.c", "Linear", 0, 8}, {"p.a", "Linear", 0, 4}, {0}},
                 (const struct spec[]){{"p.z", "Linear", 0, 8}, {"p.x", "Linear", 0, 4}, {0}}, ND_ORDER_NAME),
        ND_OK);
    assert_pairs(&f, "p.a#0=p.x#0/order p.c#0=p.z#0/order");
}

static void order_does_not_pair_across_what_is_paired(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(
        align(&f, (const struct spec[]){{"a", "Norm", 0, 4}, {"fc", "Linear", 0, 4}, {"b", "Norm", 0, 4}, {0}},
              (const struct spec[]){{"fc", "Linear", 0, 4}, {"c", "Norm", 0, 4}, {0}}),
        ND_OK);
    assert_pairs(&f, "a#0=-#0/none fc#0=fc#0/exact b#0=c#0/order");
}

static void calls_pair_with_modules_of_their_kind_and_shape(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(
        align(&f, (const struct spec[]){{"Module.a.relu.forward.0", "relu", 0, 4},
                                        {"Module.b.tanh.forward.0", "tanh", 0, 4},
                                        {"Module.c.relu.forward.0", "relu", 0, 8}, {0}},
              (const struct spec[]){{"Torch.relu.0.forward", "relu", 0, 4}, {"Torch.relu.1.forward", "relu", 1, 2},
                                    {"Torch.relu.2.forward", "relu", 2, 8}, {0}}),
        ND_OK);
    assert_pairs(&f, "Module.a.relu.forward.0#0=Torch.relu.0.forward#0/order "
                     "Module.b.tanh.forward.0#0=-#0/none "
                     "Module.c.relu.forward.0#0=Torch.relu.2.forward#2/order");
}

/* More calls than a whole table of them would have room for. */
static void a_long_span_is_paired_along_its_diagonal(void **state)
{
    enum { CALLS = 6000 };
    static const char *const types[] = {"relu", "tanh", "gelu"};
    static struct spec       a[CALLS + 1], b[CALLS + 1];
    static char              names[2][CALLS][40];
    struct fixture           f = {0};

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        snprintf(names[0][i], sizeof names[0][i], "Module.m%d.forward.0", i);
        snprintf(names[1][i], sizeof names[1][i], "Torch.%s.%d.forward", types[i % 3], i / 3);
        a[i] = (struct spec){names[0][i], types[i % 3], 0, 1 + (uint64_t)(i % 7)};
        b[i] = (struct spec){names[1][i], types[i % 3], i / 3, 1 + (uint64_t)(i % 7)};
    }
    assert_int_equal(align(&f, a, b), ND_OK);
    for (size_t i = 0; i < CALLS; i++) {
        assert_non_null(f.comparison.layers[i].side[1]);
        assert_string_equal(f.comparison.layers[i].side[1]->name, names[1][i]);
    }
    nd_arena_free(f.arena);
}

static void one_layer_each_is_a_pair_whatever_the_names(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(align(&f, (const struct spec[]){{"gpu", NULL, 0, 1}, {0}},
                           (const struct spec[]){{"npu", NULL, 0, 1}, {0}}), ND_OK);
    assert_pairs(&f, "gpu#0=npu#0/lone");
}

static void nothing_in_common_is_an_error(void **state)
{
    struct fixture f = {0};

    (void)state;
    assert_int_equal(align(&f, (const struct spec[]){{"a", NULL, 0, 1}, {"b", NULL, 0, 1}, {0}},
                           (const struct spec[]){{"c", NULL, 0, 1}, {"d", NULL, 0, 1}, {0}}), ND_ERR_NOTHING);
    nd_arena_free(f.arena);
}

static void a_pattern_that_selects_nothing_is_an_error(void **state)
{
    struct fixture f = {0};
    const char    *globs[] = {"zz*"};

    (void)state;
    f.options.include = (struct nd_strings){globs, 1};
    assert_int_equal(align(&f, (const struct spec[]){{"a", NULL, 0, 1}, {0}},
                           (const struct spec[]){{"a", NULL, 0, 1}, {0}}), ND_ERR_USAGE);
    nd_arena_free(f.arena);
}

static void write_file(char *path, const char *text)
{
    strcpy(path, "/tmp/normdiff-test-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void a_map_carries_what_its_stars_matched(void **state)
{
    struct fixture f = {0};
    char           path[64];

    (void)state;
    write_file(path, "# comment\n\nblocks.*.norm* = encoder.layer.*.ln*\nhead = lm.out\n");
    f.options.map_file = path;
    const enum nd_status status =
        align(&f, (const struct spec[]){{"blocks.0.norm1", NULL, 0, 1}, {"blocks.11.norm2", NULL, 0, 1},
                                        {"head", NULL, 0, 1}, {"tail", NULL, 0, 1}, {0}},
              (const struct spec[]){{"encoder.layer.0.ln1", NULL, 0, 1}, {"encoder.layer.11.ln2", NULL, 0, 1},
                                    {"lm.out", NULL, 0, 1}, {"head", NULL, 0, 1}, {0}});
    unlink(path);
    assert_int_equal(status, ND_OK);
    assert_pairs(&f, "blocks.0.norm1#0=encoder.layer.0.ln1#0/map "
                     "blocks.11.norm2#0=encoder.layer.11.ln2#0/map head#0=lm.out#0/map tail#0=-#0/none");
}

static void concat_takes_all_its_parts(void **state)
{
    struct fixture f = {0};
    char           path[64];

    (void)state;
    write_file(path, "qkv = concat(q, k, v; axis=-1)\n");
    f.options.map_file = path;
    const enum nd_status status =
        align(&f, (const struct spec[]){{"qkv", NULL, 0, 12}, {0}},
              (const struct spec[]){{"q", NULL, 0, 4}, {"k", NULL, 0, 4}, {"v", NULL, 0, 4}, {0}});
    unlink(path);
    assert_int_equal(status, ND_OK);
    assert_int_equal(f.comparison.layers[0].part_count, 3);
    assert_string_equal(f.comparison.layers[0].parts[2]->name, "v");
    assert_int_equal(f.comparison.unpaired_candidate_count, 0);
    nd_arena_free(f.arena);
}

static void map_lines_that_do_not_read_are_named_by_number(void **state)
{
    static const char *const bad[] = {"a\n", "= b\n", "a = concat(\n", "a = concat(;axis=1)\n",
                                      "a = concat(b; axis=x)\n", "a =\n"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fixture f = {0};
        char           path[64], text[100];
        snprintf(text, sizeof text, "# one\n%s", bad[i]);
        write_file(path, text);
        f.options.map_file = path;
        const enum nd_status status = align(&f, (const struct spec[]){{"a", NULL, 0, 1}, {0}},
                                            (const struct spec[]){{"a", NULL, 0, 1}, {0}});
        unlink(path);
        assert_int_equal(status, ND_ERR_USAGE);
        assert_string_equal(f.err.at, "line 2");
        nd_arena_free(f.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_names_pair_whatever_their_order),
        cmocka_unit_test(repeats_pair_by_call_number_then_in_order),
        cmocka_unit_test(wrappers_separators_and_synonyms_are_looked_through),
        cmocka_unit_test(a_class_at_the_end_of_a_name_is_looked_through),
        cmocka_unit_test(order_pairs_equal_types_and_shapes_of_one_parent),
        cmocka_unit_test(without_an_order_names_give_the_places),
        cmocka_unit_test(order_does_not_pair_across_what_is_paired),
        cmocka_unit_test(calls_pair_with_modules_of_their_kind_and_shape),
        cmocka_unit_test(a_long_span_is_paired_along_its_diagonal),
        cmocka_unit_test(one_layer_each_is_a_pair_whatever_the_names),
        cmocka_unit_test(nothing_in_common_is_an_error),
        cmocka_unit_test(a_pattern_that_selects_nothing_is_an_error),
        cmocka_unit_test(a_map_carries_what_its_stars_matched),
        cmocka_unit_test(concat_takes_all_its_parts),
        cmocka_unit_test(map_lines_that_do_not_read_are_named_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
