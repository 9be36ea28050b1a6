/*
 * The head of a line of key and value: which layer, which of its tensors.
 *
 *   "layers.3.norm:"          "layers.3.norm | in"       "enc/ln3 | Stats:"
 *   "blocks[3] output[0]:"    "OUTPUT LayerNorm"         "conv1 (Conv2d):"
 *   "bn1.out.0"               "hooks | layers.3.norm:"   "a name with blanks |"
 */
#include <string.h>

#include "formats/log_head.h"

#define HEAD_EDGE " \t:,-=>*`'\"{("

static bool head_is_stats(struct slice word)
{
    return nd_slice_is(word, "stats") || nd_slice_is(word, "statistics");
}

/* Which part between bars names the layer; labels behind it are taken off.  True if a bar
 * follows the name. */
static bool head_part(struct slice *head, struct log_record *record)
{
    bool barred = false;

    for (;;) {
        size_t at = head->len;
        while (at > 0 && head->at[at - 1] != '|')
            at--;
        const struct slice part =
            nd_slice_trim((struct slice){head->at + at, head->len - at}, HEAD_EDGE);
        if (at == 0 || !(part.len == 0 || head_is_stats(part) ||
                         (record->slot[0] == '\0' && nd_log_slot(part, record->slot)))) {
            *head = part;
            return barred;
        }
        head->len = at - 1;
        barred = true;
    }
}

/* Takes the last word off a head, if it says "out" or the like; false if it does not. */
static bool head_take_last(struct slice *head, struct log_record *record)
{
    size_t at = head->len;

    while (at > 0 && head->at[at - 1] != ' ' && head->at[at - 1] != ':')
        at--;
    const struct slice word = {head->at + at, head->len - at};
    if (at == 0)
        return false;
    if (nd_slice_is(word, "forward") || nd_slice_is(word, "backward"))
        record->backward = nd_slice_is(word, "backward");
    else if (!head_is_stats(word) &&
             (record->slot[0] != '\0' || !nd_log_slot(word, record->slot)))
        return false;
    *head = nd_slice_trim((struct slice){head->at, at}, HEAD_EDGE);
    return true;
}

/* "OUTPUT LayerNorm". */
static void head_take_first(struct slice *head, struct log_record *record)
{
    const char *blank = memchr(head->at, ' ', head->len);

    if (blank == NULL || record->slot[0] != '\0')
        return;
    const struct slice word = {head->at, (size_t)(blank - head->at)};
    if (nd_log_slot(word, record->slot))
        *head = nd_slice_trim((struct slice){blank, head->len - word.len}, HEAD_EDGE);
}

/* "conv1 (Conv2d)", "conv1 [Conv2d]". */
static void head_take_type(struct slice *head, struct log_record *record)
{
    const char last = head->len > 0 ? head->at[head->len - 1] : '\0';
    size_t at = head->len;

    if (last != ')' && last != ']')
        return;
    while (at > 0 && head->at[at - 1] != (last == ')' ? '(' : '['))
        at--;
    if (at < 2 || head->at[at - 2] != ' ')
        return;
    record->type = (struct slice){head->at + at, head->len - at - 1};
    *head = nd_slice_trim((struct slice){head->at, at - 1}, HEAD_EDGE);
}

/* A dotted end: "bn1.out.0", "norm/in". */
static void head_take_suffix(struct slice *head, struct log_record *record)
{
    if (record->slot[0] != '\0')
        return;
    for (size_t at = head->len; at > 1 && head->len - at < 24; at--) {
        const char joint = head->at[at - 1];
        const struct slice word = {head->at + at, head->len - at};
        if ((joint != '.' && joint != '/' && joint != ':') || word.len < 2 ||
            nd_char_digit(word.at[0]))
            continue;
        if (nd_log_slot(word, record->slot))
            head->len = at - 1;
        return;
    }
}

/* A fraction is no name, and a verdict of Polygraphy is none either. */
static bool head_is_name(struct slice name, bool may_hold_blanks)
{
    double value, half;

    if (name.len == 0 || name.len > ND_LOG_NAME_MAX ||
        memchr(name.at, '=', name.len) != NULL)
        return false;
    if (!may_hold_blanks && memchr(name.at, ' ', name.len) != NULL)
        return false;
    if (nd_slice_is(name, "Absolute Difference") ||
        nd_slice_is(name, "Relative Difference"))
        return false;
    return nd_log_number(name.at, name.at + name.len, &value, &half) !=
               name.at + name.len ||
           memchr(name.at, '.', name.len) == NULL;
}

bool nd_log_head(struct slice head, struct log_record *record)
{
    const bool barred = head_part(&head, record);

    while (head_take_last(&head, record))
        continue;
    head_take_type(&head, record);
    head_take_first(&head, record);
    head_take_suffix(&head, record);
    if (head.len > 2 && head.at[0] == '[' &&
        memchr(head.at, ']', head.len) == head.at + head.len - 1)
        head = (struct slice){head.at + 1, head.len - 2};
    record->name = head;
    return head_is_name(head, barred);
}
