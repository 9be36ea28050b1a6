/*
 * The graph that ATC compiled, as text: which of the framework's operators each device
 * operator stands for.
 */
#ifndef ND_FORMATS_ATC_GRAPH_H
#define ND_FORMATS_ATC_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/fail.h"

/* Whose output an output of a device operator is. */
struct atc_output {
    const char *origin; /* the framework's operator; NULL: not said */
    uint64_t index;     /* which of its outputs */
};

struct atc_op {
    const char *name, *type;
    uint64_t order;         /* `id` */
    const char **originals; /* the framework's operators that went into it, in order */
    size_t original_count;
    const char *origin; /* the one whose output the first output is; NULL: not said */
    struct atc_output *outputs; /* in the order of the dump's outputs */
    size_t output_count;
    double epsilon;          /* NAN: none */
    int training;            /* is_training: 0 or 1; -1: not said */
};

struct atc_graph {
    struct atc_op *ops; /* in the file's order */
    size_t count, capacity;
};

/* Everything lives in the arena. */
enum nd_status nd_atc_graph_read(struct arena *arena, const char *path,
                                 struct atc_graph *ret_graph, struct nd_error *err);

#endif
