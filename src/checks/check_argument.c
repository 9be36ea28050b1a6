/*
 * Were both sides called alike?  Declared scalars and lists that differ, other than those
 * that a line of the checklist is about.
 */
#include "checks/subject.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

static bool key_is_among(const char *key, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        if (strcmp(key, *keys) == 0)
            return true;
    return false;
}

/* Lines about eps and statistics are those of norms. */
static bool argument_has_line(const struct subject *subject, const char *key)
{
    static const char *const norms[] = {"eps",           "epsilon",      "variance_epsilon",
                                        "layer_norm_eps", "rms_norm_eps", "training",
                                        "is_training",   "track_running_stats", NULL};
    static const char *const all[] = {"data_format", "dtype", "device", NULL};

    return key_is_among(key, all) || (subject->norm != NULL && key_is_among(key, norms));
}

/* One number may have been kept in float32 on its way, 1e-5 and 9.99999975e-06 are one; whole
 * numbers are counts. */
static bool number_equal(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return true;
    return (a != floor(a) || b != floor(b)) && (float)a == (float)b;
}

static bool list_equal(const struct attribute *a, const struct attribute *b)
{
    if (a->list_len != b->list_len)
        return false;
    for (size_t i = 0; i < a->list_len; i++)
        if (!number_equal(a->list[i], b->list[i]))
            return false;
    return true;
}

static bool argument_equal(const struct attribute *a, const struct attribute *b)
{
    const bool numbers = (a->kind == ATTRIBUTE_NUMBER || a->kind == ATTRIBUTE_BOOL) &&
                         (b->kind == ATTRIBUTE_NUMBER || b->kind == ATTRIBUTE_BOOL);

    if (numbers)
        return number_equal(a->number, b->number);
    if (a->kind == ATTRIBUTE_NULL || b->kind == ATTRIBUTE_NULL)
        return true; /* a default that one side does not spell out */
    if (a->kind == ATTRIBUTE_LIST && b->kind == ATTRIBUTE_LIST && a->list != NULL &&
        b->list != NULL)
        return list_equal(a, b);
    if (a->kind != b->kind || a->text == NULL || b->text == NULL)
        return true; /* spelled in different ways: no evidence */
    return strcmp(a->text, b->text) == 0;
}

static const char *argument_text(const struct subject *subject,
                                 const struct attribute *attribute)
{
    char buf[32];
    const char *text = attribute->text;

    if (attribute->kind == ATTRIBUTE_NUMBER)
        text = nd_number_text(attribute->number, buf);
    else if (attribute->kind == ATTRIBUTE_BOOL)
        text = attribute->number != 0 ? "true" : "false";
    text = nd_arena_string(subject->arena, text == NULL ? "" : text);
    return text == NULL ? "" : text;
}

static void argument_run(struct subject *subject, struct nd_finding *finding)
{
    const struct layer_view *const *side = subject->pair->side;

    (void)finding;
    if (side[0] == NULL || side[1] == NULL)
        return;
    for (size_t i = 0; i < side[0]->attribute_count; i++) {
        const struct attribute *a = &side[0]->attributes[i];
        const struct attribute *b = nd_layer_attribute(side[1], a->key);
        if (b == NULL || argument_has_line(subject, a->key) || argument_equal(a, b))
            continue;
        const struct hypothesis differs = {
            .id = "different_argument", .residual = (double)NAN, .is_declared = true};
        ND_PROPOSE(subject, differs, ND_WORD("argument", a->key),
                   ND_WORD("reference", argument_text(subject, a)),
                   ND_WORD("value", argument_text(subject, b)));
        return;
    }
}

const struct check nd_check_argument = {.id = "argument", .run = argument_run};
