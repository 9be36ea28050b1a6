/*
 * The JSON that `atc --mode=1 --om=MODEL.om --json=FILE` writes.
 *
 *   1. {"graph": [{"op": [OP, ...]}, ...]}
 *   2. OP: "name", "type", "id" (place in the order), "attr" and "output_desc"
 *   3. attr: a list of {"key": K, "value": V}; V holds {"s": text}, {"i": number} or
 *      {"list": {"s": [text, ...]}}
 *   4. attr _datadump_original_op_names: the framework's operators; an empty list is an
 *      operator that the compiler put in (TransData, Cast)
 *   5. output_desc[k].attr _datadump_origin_name: the one whose output this is, and
 *      _datadump_origin_output_index which of them; a single original without it is the
 *      operator itself under another name
 *   6. attr epsilon {"f": number} and is_training {"b": flag} are what the operator was given
 *
 * Learned from the graph engine's documentation of ATC and from a model file of msprobe's
 * tests.
 */
#include "formats/atc_graph.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "formats/json_in.h"

enum { GRAPH_MAX_ORIGINALS = 65536, GRAPH_MAX_OUTPUTS = 4096 };

static const cJSON *attribute_value(const cJSON *owner, const char *key)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(owner, "attr"), *item;
    const char *name;

    if (!cJSON_IsArray(list))
        return NULL;
    cJSON_ArrayForEach(
        item, list) if (nd_json_text(item, "key", &name) &&
                        strcmp(name, key) ==
                            0) return cJSON_GetObjectItemCaseSensitive(item, "value");
    return NULL;
}

static enum nd_status op_originals(struct arena *arena, const cJSON *in, struct atc_op *op,
                                   struct nd_error *err)
{
    const cJSON *value = attribute_value(in, "_datadump_original_op_names");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(value, "list"), "s");
    const cJSON *item;
    size_t count = 0;

    if (!cJSON_IsArray(list))
        return ND_OK;
    cJSON_ArrayForEach(item, list) count +=
        cJSON_IsString(item) && count < GRAPH_MAX_ORIGINALS;
    op->originals = nd_arena_alloc(arena, count + 1, sizeof *op->originals);
    if (op->originals == NULL)
        return nd_fail_memory(err);
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item) || *item->valuestring == '\0' ||
            op->original_count == count)
            continue;
        const char *name = nd_arena_string(arena, item->valuestring);
        if (name == NULL)
            return nd_fail_memory(err);
        op->originals[op->original_count++] = name;
    }
    return ND_OK;
}

/* One element of output_desc. */
static enum nd_status op_output(struct arena *arena, const cJSON *in,
                                struct atc_output *ret, struct nd_error *err)
{
    const char *name;
    uint64_t index;

    if (!nd_json_text(attribute_value(in, "_datadump_origin_name"), "s", &name) ||
        *name == '\0')
        return ND_OK;
    ret->origin = nd_arena_string(arena, name);
    if (nd_json_size(cJSON_GetObjectItemCaseSensitive(
                         attribute_value(in, "_datadump_origin_output_index"), "i"),
                     &index) &&
        index < GRAPH_MAX_OUTPUTS)
        ret->index = index;
    return ret->origin == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status op_outputs(struct arena *arena, const cJSON *in, struct atc_op *op,
                                 struct nd_error *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(in, "output_desc"), *item;
    size_t count = 0;

    if (cJSON_IsArray(list))
        cJSON_ArrayForEach(item, list) count += count < GRAPH_MAX_OUTPUTS;
    op->outputs = nd_arena_alloc(arena, count + 1, sizeof *op->outputs);
    if (op->outputs == NULL)
        return nd_fail_memory(err);
    if (count > 0)
        cJSON_ArrayForEach(item, list)
        {
            if (op->output_count == count)
                break;
            ND_TRY(op_output(arena, item, &op->outputs[op->output_count++], err));
        }
    if (op->output_count > 0 && op->outputs[0].origin != NULL)
        op->origin = op->outputs[0].origin;
    else if (op->original_count == 1)
        op->origin = op->originals[0];
    return ND_OK;
}

/* Rule 6. */
static void op_arguments(const cJSON *in, struct atc_op *op)
{
    static const char *const keys[] = {"epsilon", "eps"};
    bool flag;

    op->epsilon = (double)NAN;
    op->training = -1;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && isnan(op->epsilon); i++)
        (void)nd_json_number(attribute_value(in, keys[i]), "f", &op->epsilon);
    if (nd_json_bool(attribute_value(in, "is_training"), "b", &flag))
        op->training = flag;
}

static enum nd_status graph_op(struct arena *arena, const cJSON *in,
                               struct atc_graph *graph, struct nd_error *err)
{
    struct atc_op op = {.order = graph->count};
    const char *name, *type;
    uint64_t order;

    if (!nd_json_text(in, "name", &name) || !nd_json_text(in, "type", &type))
        return nd_fail(err, ND_ERR_MALFORMED, "\"name\" and \"type\"",
                       "an operator without them");
    if (nd_json_size(cJSON_GetObjectItemCaseSensitive(in, "id"), &order))
        op.order = order;
    op.name = nd_arena_string(arena, name);
    op.type = nd_arena_string(arena, type);
    struct atc_op *ops =
        nd_arena_grow(arena, graph->ops, graph->count, &graph->capacity, sizeof *ops);
    if (op.name == NULL || op.type == NULL || ops == NULL)
        return nd_fail_memory(err);
    graph->ops = ops;
    ND_TRY(op_originals(arena, in, &op, err));
    ND_TRY(op_outputs(arena, in, &op, err));
    op_arguments(in, &op);
    graph->ops[graph->count++] = op;
    return ND_OK;
}

static enum nd_status graph_fill(struct arena *arena, const cJSON *root,
                                 struct atc_graph *graph, struct nd_error *err)
{
    const cJSON *graphs = cJSON_GetObjectItemCaseSensitive(root, "graph"), *each, *op;

    if (!cJSON_IsArray(graphs))
        return nd_fail(err, ND_ERR_MALFORMED, "a list \"graph\", as atc --mode=1 writes",
                       "JSON without it");
    cJSON_ArrayForEach(each, graphs)
    {
        const cJSON *ops = cJSON_GetObjectItemCaseSensitive(each, "op");
        if (!cJSON_IsArray(ops))
            return nd_fail(err, ND_ERR_MALFORMED, "a list \"op\" in every graph",
                           "a graph without it");
        cJSON_ArrayForEach(op, ops) ND_TRY(graph_op(arena, op, graph, err));
    }
    return ND_OK;
}

enum nd_status nd_atc_graph_read(struct arena *arena, const char *path,
                                 struct atc_graph *ret_graph, struct nd_error *err)
{
    struct atc_graph graph = {.count = 0};
    struct map map;
    cJSON *root = NULL;

    ND_TRY(nd_map_open(path, &map, err));
    enum nd_status status = nd_json_parse(map.bytes, map.size, true, &root, err);
    if (status == ND_OK)
        status = graph_fill(arena, root, &graph, err);
    cJSON_Delete(root);
    nd_map_close(&map);
    if (status == ND_OK)
        *ret_graph = graph;
    else
        nd_error_file(err, path);
    return status;
}
