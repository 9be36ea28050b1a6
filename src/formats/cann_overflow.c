/*
 * Reading what op debug dumps hold; see cann_overflow.h.
 */
#include "formats/cann_overflow.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const task_names[] = {"model_id", "stream_id", "task_id", "task_type"};

enum { TASK_FIELDS = 4, MAX_OWN = 8 };

/* What the units of the new layout have behind the four fields of the task. */
static const struct {
    const char *unit;
    const char *names[MAX_OWN];
} units[] = {
    {"AIC",
     {"context_id", "thread_id", "pc_start", "para_base", "core_id", "block_id", "status"}},
    {"AIV",
     {"context_id", "thread_id", "pc_start", "para_base", "core_id", "block_id", "status"}},
    {"AICPU", {"context_id", "cpu_id", "thread_id", "status"}                             },
    {"SDMA",  {"context_id", "thread_id", "src_addr", "dst_addr", "channel_id", "status"} },
};

static const uint64_t overflow_magic = 0x5A5A5A5A;
static const uint64_t overflow_unknown = 65535;

static bool overflow_take(struct cursor *in, const char *name,
                          struct cann_overflow *overflow)
{
    if (overflow->count == ND_OVERFLOW_FIELDS ||
        !nd_cursor_le(in, 8, &overflow->values[overflow->count]))
        return false;
    overflow->names[overflow->count++] = name;
    return true;
}

static bool overflow_task(struct cursor *in, struct cann_overflow *overflow)
{
    for (int i = 0; i < TASK_FIELDS; i++)
        if (!overflow_take(in, task_names[i], overflow))
            return false;
    return true;
}

static bool overflow_new(struct cursor in, struct cann_overflow *overflow)
{
    uint64_t version, valid, unit, unused, length;

    if (!nd_cursor_le(&in, 4, &version) || !nd_cursor_le(&in, 4, &valid) ||
        !nd_cursor_le(&in, 4, &unit) || !nd_cursor_le(&in, 4, &unused) ||
        !nd_cursor_le(&in, 4, &length) || valid == 0 ||
        unit >= sizeof units / sizeof *units)
        return false;
    if (length < nd_cursor_left(&in))
        in.size = in.at + length;
    overflow->unit = units[unit].unit;
    if (!overflow_task(&in, overflow))
        return false;
    for (int i = 0; i < MAX_OWN && units[unit].names[i] != NULL; i++)
        if (!overflow_take(&in, units[unit].names[i], overflow))
            break;
    return true;
}

static bool overflow_old(struct cursor in, struct cann_overflow *overflow)
{
    /* The most telling first: the unit, where its task and where its status stand. */
    static const struct {
        const char *unit;
        uint64_t task, status, status_at;
    } places[] = {
        {"AICore", 256, 1024, 16},
        {"L2",     128, 768,  0 },
        {"DHA",    0,   512,  0 },
    };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct cursor task = in, status = in;
        *overflow = (struct cann_overflow){.unit = places[i].unit};
        if (!nd_cursor_skip(&task, places[i].task) || !overflow_task(&task, overflow) ||
            !overflow_take(&task, "pc_start", overflow) ||
            !overflow_take(&task, "para_base", overflow) ||
            !nd_cursor_skip(&status, places[i].status + places[i].status_at) ||
            !overflow_take(&status, "status", overflow))
            continue;
        if (nd_cann_overflow_field(overflow, "status") != 0 ||
            nd_cann_overflow_field(overflow, "pc_start") != 0)
            return true;
    }
    return false;
}

bool nd_cann_overflow_read(struct cursor in, struct cann_overflow *ret_overflow)
{
    struct cann_overflow overflow = {0};
    struct cursor fresh = in;
    uint64_t magic;

    if (!nd_cursor_le(&fresh, 4, &magic))
        return false;
    if (!(magic == overflow_magic ? overflow_new(fresh, &overflow)
                                  : overflow_old(in, &overflow)))
        return false;
    *ret_overflow = overflow;
    return true;
}

uint64_t nd_cann_overflow_field(const struct cann_overflow *overflow, const char *name)
{
    for (size_t i = 0; i < overflow->count; i++)
        if (strcmp(overflow->names[i], name) == 0)
            return overflow->values[i];
    return overflow_unknown;
}

enum nd_status nd_cann_overflow_describe(struct dump *dump, struct dump_layer *layer,
                                         const struct cann_overflow *overflow,
                                         struct nd_error *err)
{
    struct attribute attribute = {
        .key = "overflow.unit", .kind = ATTRIBUTE_TEXT, .text = overflow->unit};
    char key[64], text[32];

    ND_TRY(nd_dump_add_attribute(dump, layer, &attribute, err));
    for (size_t i = 0; i < overflow->count; i++) {
        const bool is_id = strstr(overflow->names[i], "_id") != NULL ||
                           strcmp(overflow->names[i], "task_type") == 0;
        snprintf(key, sizeof key, "overflow.%s", overflow->names[i]);
        /* Addresses and status bits may not fit a double. */
        snprintf(text, sizeof text, is_id ? "%" PRIu64 : "0x%" PRIx64, overflow->values[i]);
        attribute.key = key;
        attribute.text = text;
        ND_TRY(nd_dump_add_attribute(dump, layer, &attribute, err));
    }
    return ND_OK;
}
