/*
 * A dump's layers and slots as text.
 */
#include "report/text_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SLOT_INDENT = 4,
    SLOT_LIMIT = 20,
    DTYPE_LIMIT = 14,
    SHAPE_LIMIT = 22,
    STATISTIC_COLUMNS = 9, /* "-4.3e-03" and a blank */
    IGNORED_SHOWN = 5
};

/* Where the columns of the slots begin. */
struct slot_columns {
    unsigned dtype, shape, values;
};

static void listing_plan(struct page *page, const struct nd_listing *listing,
                         struct slot_columns *ret_columns)
{
    char text[FIGURE_SIZE];
    unsigned name = 8, shape = 5, dtype = 7;

    for (size_t i = 0; i < listing->layer_count; i++) {
        const struct nd_list_layer *layer = &listing->layers[i];
        for (size_t k = 0; k < layer->slot_count; k++) {
            const struct nd_list_slot *slot = &layer->slots[k];
            const unsigned own_name = nd_page_columns(page, slot->name);
            const unsigned own_shape =
                nd_page_columns(page, nd_figure_shape(&slot->shape, text));
            const unsigned own_dtype =
                slot->dtype == NULL ? 1 : nd_page_columns(page, slot->dtype);
            name = own_name > name ? own_name : name;
            shape = own_shape > shape ? own_shape : shape;
            dtype = own_dtype > dtype ? own_dtype : dtype;
        }
    }
    ret_columns->dtype = SLOT_INDENT + (name > SLOT_LIMIT ? SLOT_LIMIT : name) + 2;
    ret_columns->shape =
        ret_columns->dtype + (dtype > DTYPE_LIMIT ? DTYPE_LIMIT : dtype) + 2;
    ret_columns->values =
        ret_columns->shape + (shape > SHAPE_LIMIT ? SHAPE_LIMIT : shape) + 2;
}

static const char *const statistic_ids[] = {"column.min", "column.max", "column.mean",
                                            "column.norm"};
enum { STATISTIC_COUNT = sizeof statistic_ids / sizeof statistic_ids[0] };

/* Whether the four statistics fit into columns of their own. */
static bool listing_is_wide(const struct page *page, const struct slot_columns *columns)
{
    return columns->values - 2 + STATISTIC_COUNT * STATISTIC_COLUMNS <= page->width;
}

static void listing_head(struct page *page, const struct slot_columns *columns)
{
    nd_page_tab(page, SLOT_INDENT);
    nd_page_put(page, INK_FAINT, nd_page_words(page, "column.slot"));
    nd_page_tab(page, columns->dtype);
    nd_page_put(page, INK_FAINT, nd_page_words(page, "column.dtype"));
    nd_page_tab(page, columns->shape);
    nd_page_put(page, INK_FAINT, nd_page_words(page, "column.shape"));
    for (unsigned i = 0; i < STATISTIC_COUNT && listing_is_wide(page, columns); i++)
        nd_page_right(page, INK_FAINT, nd_page_words(page, statistic_ids[i]),
                      columns->values - 2 + (i + 1) * STATISTIC_COLUMNS);
    nd_page_end(page);
}

static void listing_statistics(struct page *page, const struct slot_columns *columns,
                               const struct nd_list_slot *slot)
{
    const double values[] = {slot->min, slot->max, slot->mean, slot->norm};
    const bool printed[] = {slot->is_nan[1], slot->is_nan[0], slot->is_nan[2], slot->is_nan[3]};
    const bool wide = listing_is_wide(page, columns) && page->column <= columns->values - 2;
    char text[FIGURE_SIZE];

    for (unsigned i = 0; i < STATISTIC_COUNT; i++) {
        const bool unknown = isnan(values[i]) && !printed[i];
        const char *figure = unknown ? "-" : nd_figure_value(values[i], text);
        if (wide)
            nd_page_right(page, INK_PLAIN, figure,
                          columns->values - 2 + (i + 1) * STATISTIC_COLUMNS);
        else if (!unknown)
            ND_SAY_ITEM(page, INK_PLAIN, "report.listing.statistic",
                        VALUE_TEXT("name", nd_page_words(page, statistic_ids[i])),
                        VALUE_TEXT("value", figure));
    }
}

/* What stands below a slot: its layout, values that are not finite, why it is unreadable.
 */
static void listing_remarks(struct page *page, const struct nd_list_slot *slot)
{
    const struct nd_nonfinite_side *side = &slot->nonfinite;
    const bool nonfinite = side->nan + side->pos_inf + side->neg_inf > 0;
    char text[FIGURE_SIZE];

    const bool meant = slot->meaning != NULL && strcmp(slot->meaning, "y") != 0;

    if (slot->layout == NULL && slot->broken == NULL && !nonfinite && !meant)
        return;
    page->indent = SLOT_INDENT + 2;
    nd_page_tab(page, SLOT_INDENT + 2);
    if (meant)
        ND_SAY_ITEM(page, INK_PLAIN, "report.listing.meaning",
                    VALUE_TEXT("name", slot->meaning));
    if (slot->layout != NULL)
        ND_SAY_ITEM(page, INK_PLAIN, "report.storage", VALUE_TEXT("layout", slot->layout),
                    VALUE_TEXT("shape", nd_figure_shape(&slot->storage, text)));
    if (nonfinite)
        ND_SAY_ITEM(page, INK_WARN, "report.listing.nonfinite",
                    VALUE_NUMBER("nan", side->nan), VALUE_NUMBER("pos", side->pos_inf),
                    VALUE_NUMBER("neg", side->neg_inf));
    if (slot->broken != NULL)
        ND_SAY(page, INK_BAD, "report.broken", VALUE_TEXT("why", slot->broken));
    nd_page_end(page);
}

static void listing_slot(struct page *page, const struct slot_columns *columns,
                         const struct nd_list_slot *slot)
{
    char text[FIGURE_SIZE];

    nd_page_tab(page, SLOT_INDENT);
    nd_page_cut(page, INK_PLAIN, slot->name, columns->dtype - SLOT_INDENT - 2);
    nd_page_tab(page, columns->dtype);
    nd_page_cut(page, INK_PLAIN, slot->dtype == NULL ? "?" : slot->dtype,
                columns->shape - columns->dtype - 2);
    nd_page_tab(page, columns->shape);
    nd_page_cut(page, INK_PLAIN, nd_figure_shape(&slot->shape, text),
                page->width - columns->shape);
    page->indent = SLOT_INDENT + 2;
    if (slot->has_stats)
        listing_statistics(page, columns, slot);
    nd_page_end(page);
    listing_remarks(page, slot);
}

static void listing_layer(struct page *page, const struct slot_columns *columns,
                          const struct nd_list_layer *layer, size_t index)
{
    char text[32];

    page->indent = 4;
    snprintf(text, sizeof text, "#%zu", index);
    nd_page_put(page, INK_PLAIN, text);
    nd_page_tab(page, 5);
    nd_page_flow(page, INK_BOLD, layer->name);
    if (layer->type[0] != '\0') {
        nd_page_flow(page, INK_PLAIN, "  ");
        nd_page_flow(page, INK_PLAIN, layer->type);
    }
    if (layer->direction != NULL && strcmp(layer->direction, "backward") == 0) {
        nd_page_flow(page, INK_PLAIN, "  ");
        nd_page_flow(page, INK_PLAIN, layer->direction);
    }
    if (layer->call > 0) {
        nd_page_flow(page, INK_PLAIN, "  ");
        ND_SAY(page, INK_PLAIN, "report.call", VALUE_NUMBER("call", layer->call));
    }
    if (layer->step >= 0) {
        nd_page_flow(page, INK_PLAIN, "  ");
        ND_SAY(page, INK_PLAIN, "report.place.step", VALUE_NUMBER("step", layer->step));
    }
    if (layer->rank >= 0) {
        nd_page_flow(page, INK_PLAIN, "  ");
        ND_SAY(page, INK_PLAIN, "report.place.rank", VALUE_NUMBER("rank", layer->rank));
    }
    if (layer->container) {
        nd_page_flow(page, INK_PLAIN, "  ");
        nd_page_flow(page, INK_PLAIN, nd_page_words(page, "role.container"));
    }
    if (layer->attributes != NULL && layer->attributes[0] != '\0') {
        nd_page_flow(page, INK_PLAIN, "  ");
        nd_page_flow(page, INK_FAINT, layer->attributes);
    }
    nd_page_end(page);
    for (size_t i = 0; i < layer->slot_count; i++)
        listing_slot(page, columns, &layer->slots[i]);
}

void nd_text_listing(struct report_job *job, const struct nd_listing *listing)
{
    static const char *const label = "report.dump";
    struct page *page = &job->page;
    struct slot_columns columns;
    char id[64];

    nd_text_dumps(page, &label, &listing->dump, 1);
    nd_text_label(page, "report.order");
    snprintf(id, sizeof id, "order.%s", nd_order_word(listing->dump.order));
    nd_page_flow(page, INK_PLAIN, nd_page_words(page, id));
    nd_page_blank(page);
    listing_plan(page, listing, &columns);
    listing_head(page, &columns);
    for (size_t i = 0; i < listing->layer_count; i++)
        listing_layer(page, &columns, &listing->layers[i], i);
    if (listing->ignored_count == 0)
        return;
    nd_page_blank(page);
    page->indent = 2;
    ND_SAY(page, INK_PLAIN, "report.ignored",
           VALUE_NUMBER("count", listing->ignored_count));
    nd_page_end(page);
    const size_t shown =
        job->options->verbose || listing->ignored_count <= IGNORED_SHOWN + 1
            ? listing->ignored_count
            : IGNORED_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        nd_page_tab(page, 2);
        nd_page_cut(page, INK_PLAIN, listing->ignored[i], page->width - 2);
        nd_page_end(page);
    }
    if (shown < listing->ignored_count) {
        nd_page_tab(page, 2);
        ND_SAY(page, INK_PLAIN, "report.more",
               VALUE_NUMBER("count", listing->ignored_count - shown));
        nd_page_end(page);
    }
}
