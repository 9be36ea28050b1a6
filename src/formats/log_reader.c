/*
 * From lines to records, and from records to layers.  Every line is cleaned, relieved of
 * its prefixes, and tried as a row of the table it may stand in, as the header of a new
 * table, and as pairs of key and value; what is none of these is noise.
 *
 * Where a log shows two runs, one side is read: of msprobe's comparison table the columns
 * of the run under test (NPU) or, on request, those of the other (Bench); of Polygraphy's
 * runners the first that is seen, or the second.
 */
#include "formats/log_reader.h"

#include <stdlib.h>
#include <string.h>

#include "formats/log_prefix.h"

enum {
    LOG_PROBE_SIZE = 1024 * 1024, /* start-up chatter comes before the first layer */
    LOG_RUNNER_MAX = 64
};

struct log_reader {
    struct cursor in;
    char line_end;
    enum log_side side;
    char *line;
    struct log_table table;
    char runners[2][LOG_RUNNER_MAX];          /* in order of appearance */
    struct log_record records[ND_LOG_GROUPS]; /* of the latest line */
    struct log_tags tags;
};

static bool log_reader_init(struct log_reader *reader, struct cursor in, enum log_side side)
{
    *reader =
        (struct log_reader){.in = in, .line_end = nd_log_line_end(&in), .side = side};
    reader->line = malloc(ND_LOG_LINE_MAX + 1);
    return reader->line != NULL;
}

/* True if lines of this runner are to be read. */
static bool log_wants_runner(struct log_reader *reader, struct slice runner)
{
    if (runner.len == 0)
        return true;
    if (runner.len >= LOG_RUNNER_MAX)
        return false;
    for (int i = 0; i < 2; i++) {
        if (reader->runners[i][0] == '\0')
            memcpy(reader->runners[i], runner.at,
                   runner.len); /* zeroed, so it ends there */
        if (nd_slice_is(runner, reader->runners[i]))
            return i == (reader->side == LOG_SIDE_CANDIDATE ? 0 : 1);
    }
    return false;
}

/*
 * The records of one cleaned line.  What looks like a prefix may be the layer's name
 * ("12: max=..."): where a start leaves no name, the one before it is tried.
 */
static size_t log_parse(struct log_reader *reader, const char *at, const char *end)
{
    const char *starts[ND_LOG_PREFIXES];
    const size_t count = nd_log_peel(at, end, starts, &reader->tags);
    size_t found = 0;
    bool nameless = true;

    for (size_t i = count; i > 0; i--) {
        if (nd_log_table_row(starts[i - 1], end, &reader->table, &reader->records[0]))
            return 1;
        if (nd_log_table_header(starts[i - 1], end, reader->side, &reader->table))
            return 0;
    }
    for (size_t i = count; i > 0 && nameless; i--)
        found = nd_log_pairs(starts[i - 1], end, reader->records, &nameless);
    return log_wants_runner(reader, reader->tags.runner) ? found : 0;
}

/* The next line's records; false at the end. */
static bool log_next(struct log_reader *reader, size_t *ret_count)
{
    size_t len;

    if (!nd_log_line(&reader->in, reader->line_end, reader->line, &len))
        return false;
    *ret_count = len == 0 ? 0 : log_parse(reader, reader->line, reader->line + len);
    return true;
}

/* --- recognising --------------------------------------------------------------------- */

/* Text has no NUL and hardly any control characters; JSON has formats of its own. */
static bool log_is_text(const struct dump_head *head, size_t size)
{
    size_t controls = 0, first = 0;

    for (size_t i = 0; i < size; i++) {
        const unsigned char c = head->bytes[i];
        if (c == 0)
            return false;
        controls += c < 0x20 && memchr("\t\n\r\b\f\v\a\x1b", c, 8) == NULL;
    }
    while (first < size && memchr(" \t\r\n", head->bytes[first], 4) != NULL)
        first++;
    const bool opens =
        first < size && (head->bytes[first] == '{' || head->bytes[first] == '[');
    for (first++;
         opens && first < size && memchr(" \t\r\n", head->bytes[first], 4) != NULL;)
        first++;
    return controls <= size / 100 && !(opens && first < size && head->bytes[first] == '"');
}

int nd_log_probe(const struct dump_head *head)
{
    const size_t size = head->size > LOG_PROBE_SIZE ? LOG_PROBE_SIZE : (size_t)head->size;
    size_t strong = 0, fair = 0, weak = 0, count;
    struct log_reader reader;

    if (size == 0 || !log_is_text(head, size) ||
        !log_reader_init(&reader, (struct cursor){.bytes = head->bytes, .size = size},
                         LOG_SIDE_CANDIDATE))
        return 0;
    while (strong < 8 && log_next(&reader, &count)) {
        for (size_t i = 0; i < count; i++) {
            const bool table = reader.table.delimiter != 0;
            strong += reader.records[i].strength == LOG_STRONG;
            fair += reader.records[i].strength == LOG_FAIR && !table;
            strong += reader.records[i].strength == LOG_FAIR && table;
            weak += reader.records[i].strength == LOG_WEAK;
        }
    }
    free(reader.line);
    if (strong > 0)
        return 24 + (int)strong;
    return fair >= 2 || fair + weak >= 4 ? 16 : fair > 0 ? 8 : 0;
}

/* --- layers -------------------------------------------------------------------------- */

struct log_layers {
    struct dump *dump;
    size_t file;
    size_t first;       /* the dump's layers before this file */
    int64_t step, rank; /* the dump's own */
    bool many_ranks;
    int64_t rank_seen; /* -2: none yet */
};

static enum nd_status log_fill(struct arena *arena, const struct log_record *record,
                               struct dump_slot *slot, struct nd_error *err)
{
    slot->evidence = ND_EVIDENCE_STATISTICS;
    slot->statistics = record->statistics;
    slot->has_statistics = true;
    slot->note = record->has_absolute ? "absolute_statistics" : NULL;
    slot->has_shape = record->has_shape;
    slot->storage = record->shape;
    slot->dtype = nd_dtype_by_name(record->dtype.at, record->dtype.len);
    if (record->dtype.len > 0)
        slot->dtype_text = nd_arena_copy(arena, record->dtype.at, record->dtype.len);
    if (record->device.len > 0)
        slot->device = nd_arena_copy(arena, record->device.at, record->device.len);
    if ((record->dtype.len > 0 && slot->dtype_text == NULL) ||
        (record->device.len > 0 && slot->device == NULL))
        return nd_fail_memory(err);
    return ND_OK;
}

/* "Module.conv1.Conv2d.backward.0": msprobe's names say the direction. */
static bool log_says_backward(const char *name)
{
    const char *word = strstr(name, ".backward");

    return word != NULL && (word[9] == '.' || word[9] == '\0');
}

static enum nd_status log_add(struct log_layers *layers, const struct log_record *record,
                              int64_t rank, struct nd_error *err)
{
    struct dump *dump = layers->dump;
    struct dump_slot slot = nd_dump_slot_init();
    const size_t before = dump->layer_count;

    ND_TRY(log_fill(dump->scratch, record, &slot, err));
    const char *name =
        record->slot[0] == '\0'
            ? nd_arena_copy(dump->scratch, record->name.at, record->name.len)
            : nd_arena_format(dump->scratch, "%.*s.%s", (int)record->name.len,
                              record->name.at, record->slot);
    if (name == NULL)
        return nd_fail_memory(err);
    dump->step = record->step >= 0 ? record->step : layers->step;
    dump->rank = rank >= 0 ? rank : layers->rank;
    layers->many_ranks =
        layers->many_ranks || (layers->rank_seen != -2 && layers->rank_seen != rank);
    layers->rank_seen = rank;
    ND_TRY(nd_dump_add_tensor(dump, name, &slot, err));
    if (dump->layer_count == before)
        return ND_OK;
    struct dump_layer *layer = &dump->layers[before];
    layer->micro_step = record->micro_step;
    if (record->backward || log_says_backward(name))
        layer->direction = DIRECTION_BACKWARD;
    if (record->type.len == 0)
        return ND_OK;
    layer->type = nd_arena_copy(dump->arena, record->type.at, record->type.len);
    return layer->type == NULL ? nd_fail_memory(err) : ND_OK;
}

static enum nd_status log_read(struct log_reader *reader, struct log_layers *layers,
                               struct nd_error *err)
{
    size_t count;

    while (log_next(reader, &count)) {
        for (size_t i = 0; i < count; i++) {
            const struct log_record *record = &reader->records[i];
            ND_TRY(log_add(layers, record,
                           record->rank >= 0 ? record->rank : reader->tags.rank, err));
        }
    }
    return ND_OK;
}

enum nd_status nd_log_index(struct dump *dump, size_t file, enum log_side side,
                            struct nd_error *err)
{
    struct log_layers layers = {.dump = dump,
                                .file = file,
                                .first = dump->layer_count,
                                .step = dump->step,
                                .rank = dump->rank,
                                .rank_seen = -2};
    struct log_reader reader;

    if (!log_reader_init(&reader, nd_dump_bytes(dump, file), side))
        return nd_fail_memory(err);
    dump->order = ND_ORDER_RECORDED;
    const enum nd_status status = log_read(&reader, &layers, err);
    free(reader.line);
    dump->step = layers.step;
    dump->rank = layers.rank;
    ND_TRY(status);
    if (dump->layer_count == layers.first)
        return nd_fail(err, ND_ERR_MALFORMED,
                       "lines like \"name: max=0.123456, mean=0.012345\"",
                       "a text without one");
    /* One rank in all prints tells nothing; the other run may have printed none. */
    for (size_t i = layers.first; !layers.many_ranks && i < dump->layer_count; i++)
        dump->layers[i].rank = layers.rank;
    return ND_OK;
}
