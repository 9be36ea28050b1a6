/*
 * A layer of the reference that computes nothing (an Identity, a dropout that is switched off)
 * and that the other side left out is covered by the layer whose output it hands on.
 */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "compare/align.h"

enum { TYPE_SIZE = 64 };

static const struct attribute *attribute_of(const struct dump_layer *layer, const char *key)
{
    for (size_t i = 0; i < layer->attribute_count; i++)
        if (strcmp(layer->attributes[i].key, key) == 0)
            return &layer->attributes[i];
    return NULL;
}

static bool is_zero(const struct attribute *attribute)
{
    return attribute != NULL &&
           (attribute->kind == ATTRIBUTE_BOOL || attribute->kind == ATTRIBUTE_NUMBER) &&
           attribute->number == 0;
}

/* "torch.nn.Dropout2d" -> "dropout2d" */
static void type_word(const struct dump_layer *layer, char word[TYPE_SIZE])
{
    const char *const dot = layer->type == NULL ? NULL : strrchr(layer->type, '.');
    const char *from = dot != NULL ? dot + 1 : layer->type == NULL ? "" : layer->type;
    size_t len = 0;

    for (; *from != '\0' && len + 1 < TYPE_SIZE; from++)
        word[len++] = (char)tolower((unsigned char)*from);
    word[len] = '\0';
}

static bool is_idle(const struct dump_layer *layer)
{
    char word[TYPE_SIZE];

    type_word(layer, word);
    if (strcmp(word, "identity") == 0)
        return true;
    return (nd_glob_match("*dropout*", word) || strcmp(word, "droppath") == 0) &&
           (is_zero(attribute_of(layer, "training")) || is_zero(attribute_of(layer, "p")));
}

enum { LOOK_BACK = 256 }; /* ranks stand side by side */

/* The layer of the candidate whose output it hands on, where that is near. */
static const char *fed_by(const struct comparison *comparison, size_t index)
{
    const struct dump_layer *const own = comparison->layers[index].side[0];

    for (size_t i = index; i > 0 && index - i < LOOK_BACK; i--) {
        const struct layer_pair *const pair = &comparison->layers[i - 1];
        if (pair->side[1] != NULL && pair->side[0]->step == own->step &&
            pair->side[0]->rank == own->rank)
            return pair->side[1]->name;
    }
    return "eliminated: it computes nothing";
}

void nd_cover_idle(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->layer_count; i++) {
        struct layer_pair *const pair = &comparison->layers[i];
        if (pair->side[1] == NULL && pair->covered_by == NULL && is_idle(pair->side[0]))
            pair->covered_by = fed_by(comparison, i);
    }
}
