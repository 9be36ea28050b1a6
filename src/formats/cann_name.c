/*
 * Names of CANN dump files; see cann_name.h.
 */
#include "formats/cann_name.h"

#include <string.h>

enum {
    TIME_DIGITS = 10,      /* a number as long as this is a time, not a task */
    SURE_TIME_DIGITS = 13, /* milliseconds; CANN itself writes 16 digits */
    MAX_DIGITS = 18
};

static const uint64_t not_known = 65535;

struct part {
    const char *at;
    size_t len;
};

/* The part that begins at *at, which moves behind its dot; false at the end. */
static bool part_next(const char **at, struct part *ret_part)
{
    if (*at == NULL)
        return false;
    const char *const dot = strchr(*at, '.');
    ret_part->at = *at;
    ret_part->len = dot == NULL ? strlen(*at) : (size_t)(dot - *at);
    *at = dot == NULL ? NULL : dot + 1;
    return ret_part->len > 0;
}

static bool part_number(struct part part, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (part.len == 0 || part.len > MAX_DIGITS)
        return false;
    for (size_t i = 0; i < part.len; i++) {
        if (part.at[i] < '0' || part.at[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(part.at[i] - '0');
    }
    *ret_number = number;
    return true;
}

static bool part_is(struct part part, const char *word)
{
    return strlen(word) == part.len && memcmp(part.at, word, part.len) == 0;
}

/* Up to `most` numbers; *at stands behind the last. */
static size_t numbers_read(const char **at, struct part *parts, uint64_t *numbers,
                           size_t most)
{
    size_t count = 0;
    const char *next = *at;

    while (count < most && part_next(&next, &parts[count]) &&
           part_number(parts[count], &numbers[count])) {
        count++;
        *at = next;
    }
    return count;
}

/* Rule 2 and the number of the parts that it covers. */
static size_t name_ffts(struct cann_name *name, const uint64_t *numbers, size_t count)
{
    if (count < 3)
        return 0;
    name->is_ffts = true;
    name->context = numbers[1];
    name->thread = numbers[2];
    name->device = count > 3 ? numbers[3] : 0;
    return count > 3 ? 4 : 3;
}

/* Rule 1 from the task on; returns how many numbers are the dump's, 0: it is none. */
static size_t name_numbers(struct cann_name *name, const struct part *parts,
                           const uint64_t *numbers, size_t count)
{
    size_t time = 1;

    if (count < 2)
        return 0;
    if (count > 2 && parts[1].len < TIME_DIGITS)
        time = 2;
    name->task = numbers[0];
    name->has_stream = time == 2;
    name->stream = name->has_stream ? numbers[1] : not_known;
    name->time = numbers[time];
    return time + 1 + name_ffts(name, numbers + time + 1, count - time - 1);
}

/* Rule 3. */
static void name_tail(struct cann_name *name, const char *tail)
{
    const char *at = *tail == '.' ? tail + 1 : NULL;
    struct part word, number;

    name->rest = tail;
    if (!part_next(&at, &word) || !(part_is(word, "input") || part_is(word, "output")) ||
        !part_next(&at, &number) || !part_number(number, &name->index))
        return;
    name->direction = word.len == 5 ? "input" : "output";
    name->rest = at == NULL ? number.at + number.len : at - 1;
}

bool nd_cann_name_parse(const char *text, struct cann_name *ret_name)
{
    enum { MOST = 7 };
    struct cann_name name = {.task = not_known};
    struct part type, op, parts[MOST];
    uint64_t numbers[MOST], op_number;
    const char *at = text;

    if (!part_next(&at, &type) || !part_next(&at, &op))
        return false;
    name.type = type.at;
    name.type_len = type.len;
    const size_t count = numbers_read(&at, parts, numbers, MOST);
    size_t used = name_numbers(&name, parts, numbers, count);
    const bool op_is_number = part_number(op, &op_number);
    if (used == 0 && op_is_number) { /* rule 4: it was the task */
        at = op.at;
        used = name_numbers(&name, parts, numbers, numbers_read(&at, parts, numbers, 2));
    } else if (op_is_number && part_is(type, "exception_info")) {
        name.stream = op_number;
        name.has_stream = true;
    } else {
        name.op = op.at;
        name.op_len = op.len;
    }
    if (used == 0)
        return false;
    const struct part last = parts[used - 1];
    name.dump_len = (size_t)(last.at + last.len - text);
    name_tail(&name, last.at + last.len);
    *ret_name = name;
    return true;
}

static bool text_ends(const char *text, const char *end)
{
    const size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static bool name_is_sure(const char *text, struct cann_name *name)
{
    uint64_t least = 1;

    for (int i = 1; i < SURE_TIME_DIGITS; i++)
        least *= 10;
    return nd_cann_name_parse(text, name) && name->time >= least;
}

bool nd_cann_name_is_dump(const char *text)
{
    struct cann_name name;

    return name_is_sure(text, &name) && name.direction == NULL &&
           (*name.rest == '\0' || strcmp(name.rest, ".csv") == 0);
}

bool nd_cann_name_is_array(const char *text)
{
    struct cann_name name;

    return name_is_sure(text, &name) && name.direction != NULL && name.op_len > 0 &&
           text_ends(name.rest, ".npy");
}

bool nd_golden_name_parse(const char *text, struct golden_name *ret_name)
{
    struct golden_name name;
    size_t end = strlen(text), at;

    if (!text_ends(text, ".npy"))
        return false;
    end -= strlen(".npy");
    for (int i = 0; i < 2; i++) {
        for (at = end; at > 0 && text[at - 1] != '.'; at--)
            continue;
        if (at < 2 || !part_number((struct part){text + at, end - at},
                                   i == 0 ? &name.time : &name.index))
            return false;
        end = at - 1;
    }
    name.op_len = end;
    *ret_name = name;
    return name.index < UINT32_MAX;
}

void nd_cann_escape(char *name)
{
    for (; *name != '\0'; name++)
        if (*name == ' ' || *name == '.' || *name == '/' || *name == '\\')
            *name = '_';
}
