/*
 * The library at its smallest: compares two dumps and prints the verdict and the layer
 * where the difference entered.
 *
 *     cc compare_two.c $(pkg-config --cflags --libs normdiff) -o compare_two
 *     ./compare_two gpu.dump npu.dump
 *
 * Exit status as the tool's: 0 agree, 1 differ, 2 trouble.
 */
#include <stdio.h>

#include <normdiff/normdiff.h>

static void print_error(const struct nd_error *error)
{
    fprintf(stderr, "compare_two: %s", error->file);
    if (error->at[0] != '\0')
        fprintf(stderr, ": %s", error->at);
    fprintf(stderr, ": %s\n", error->found[0] != '\0' ? error->found
                                                      : nd_status_text(error->status));
    if (error->expected[0] != '\0')
        fprintf(stderr, "  expected: %s\n", error->expected);
    if (error->hint[0] != '\0')
        fprintf(stderr, "  hint: %s\n", error->hint);
}

static void print_first(const struct nd_result *result)
{
    const struct nd_layer *layer;

    if (result->first.layer == ND_NO_INDEX) {
        puts("first divergence: none");
        return;
    }
    layer = &result->layers[result->first.layer];
    printf("first divergence: #%zu %s %s, tier %s, drift %.3g\n", layer->index, layer->name,
           layer->type, nd_tier_word(layer->tier), layer->drift);
}

int main(int argc, char **argv)
{
    struct nd_options options;
    struct nd_result *result;
    struct nd_error   error;
    int               exit_code;

    if (argc != 3) {
        fprintf(stderr, "usage: compare_two REFERENCE CANDIDATE\n");
        return 2;
    }
    nd_options_init(&options);
    if (nd_compare(argv[1], argv[2], &options, &result, &error) != ND_OK) {
        print_error(&error);
        return 2;
    }
    printf("verdict: %s\n", nd_verdict_word(result->verdict));
    print_first(result);
    for (size_t i = 0; i < result->cause_count; i++)
        printf("cause: %s (%s)\n", result->causes[i].id,
               nd_cause_status_word(result->causes[i].status));
    exit_code = result->exit_code;
    nd_result_free(result);
    return exit_code;
}
