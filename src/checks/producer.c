/*
 * Looking up outputs by their moments.
 */
#include "checks/producer.h"

#include <math.h>
#include <stdlib.h>

#include "checks/facts.h"

static bool producer_read(const struct nd_slot *slot, struct producer *ret)
{
    *ret = (struct producer){.n = slot->n,
                             .min = nd_slot_number(slot, "min", 0),
                             .max = nd_slot_number(slot, "max", 0),
                             .mean = nd_slot_number(slot, "mean", 0),
                             .norm = nd_slot_number(slot, "norm", 0)};
    return slot->n > 0 && !isnan(ret->min) && !isnan(ret->max) && !isnan(ret->mean) &&
           !isnan(ret->norm);
}

static int order_numbers(double a, double b)
{
    return a < b ? -1 : a > b;
}

static int producer_order(const struct producer *a, const struct producer *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    if (a->min != b->min)
        return order_numbers(a->min, b->min);
    if (a->max != b->max)
        return order_numbers(a->max, b->max);
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    return a->layer < b->layer ? -1 : a->layer > b->layer;
}

static int producer_compare(const void *a, const void *b)
{
    return producer_order(a, b);
}

bool nd_producers_make(const struct diagnosis_input *input, struct producers *ret)
{
    const struct nd_result *result = input->result;
    size_t slots = 0;
    bool asked = false;

    for (size_t i = 0; i < result->layer_count; i++) {
        slots += result->layers[i].slot_count;
        for (size_t k = 0; k < result->layers[i].slot_count && !asked; k++)
            asked = nd_slot_is(&result->layers[i].slots[k], "input");
    }
    slots = asked ? slots : 0; /* only an input has a producer */
    *ret = (struct producers){.items = calloc(slots + 1, sizeof *ret->items)};
    if (ret->items == NULL)
        return false;
    for (size_t i = 0; i < result->layer_count && asked; i++)
        for (size_t k = 0; k < result->layers[i].slot_count; k++) {
            const struct nd_slot *slot = &result->layers[i].slots[k];
            struct producer *item = &ret->items[ret->count];
            if (!nd_slot_is(slot, "output") || !nd_slot_measured(slot) ||
                !producer_read(slot, item))
                continue;
            item->run = input->runs->run[i];
            item->layer = i;
            item->slot = k;
            ret->count++;
        }
    if (ret->count > 1)
        qsort(ret->items, ret->count, sizeof *ret->items, producer_compare);
    return true;
}

void nd_producers_done(struct producers *producers)
{
    free(producers->items);
    *producers = (struct producers){.items = NULL};
}

/* Another order of summation moves the last digits of a mean, never more than this. */
static bool about_equal(double a, double b, double scale)
{
    return fabs(a - b) <= 1e-9 * scale;
}

enum { PRODUCER_LOOKS = 16 }; /* equal extremes, other contents: constants and masks */

const struct producer *nd_producer_of(const struct producers *producers,
                                      const struct nd_slot *slot, size_t run, size_t layer)
{
    struct producer wanted;
    size_t low = 0, high = producers->count;

    if (!producer_read(slot, &wanted))
        return NULL;
    wanted.run = run;
    wanted.layer = layer;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (producer_order(&producers->items[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (int looks = 0; looks < PRODUCER_LOOKS && low-- > 0; looks++) {
        const struct producer *item = &producers->items[low];
        const double rms = wanted.norm / sqrt((double)wanted.n);
        if (item->n != wanted.n || item->min != wanted.min || item->max != wanted.max ||
            item->run != run)
            return NULL;
        if (about_equal(item->norm, wanted.norm, wanted.norm) &&
            about_equal(item->mean, wanted.mean, rms))
            return item;
    }
    return NULL;
}
