/*
 * Operators that the candidate's compiler put into the one before them: a BatchNorm folded
 * into its convolution, an activation computed on the way out.  Nothing of the candidate has
 * their name, and the layer before them is paired with an operator whose output is theirs.
 * Only the values tell, and they must tell clearly: then the last operator inside is compared
 * with that output, and those before it are covered.
 */
#include <math.h>
#include <string.h>

#include "compare/align.h"

/* So many layers can be inside one; a convolution, its norm, an activation, and some casts. */
enum { MAX_INSIDE = 8 };
/* What is looked at: runs of elements, evenly spaced. */
enum { RUNS = 64, RUN = 64 };
/* A folded norm rounds otherwise and half precision is coarse, but what is further away
 * than this is no proof.  The layer's own output must be further: what it agrees with is its
 * partner, whatever else agrees too. */
static const double NEAR = 1e-2;

struct output {
    const struct dump      *dump;
    const struct dump_slot *slot;
};

static struct output output_of(const struct comparison *comparison, unsigned side,
                               const struct dump_layer *layer)
{
    return (struct output){comparison->dump[side], nd_first_slot(layer, "output.")};
}

static bool is_readable(const struct output *output)
{
    const struct dump_slot *const slot = output->slot;

    return slot != NULL && output->dump->file_count > 0 &&
           slot->evidence == ND_EVIDENCE_VALUES && slot->broken == NULL &&
           slot->dtype != ND_DTYPE_NONE &&
           nd_dtype_info(slot->dtype)->kind == ND_KIND_FLOAT;
}

/* |c - r| / |r| over the runs; infinity: cannot be said. */
static double views_apart(const struct tensor_view *r, const struct tensor_view *c)
{
    const uint64_t count = r->count, step = count / RUNS;
    double x[RUN], y[RUN], errors = 0, squares = 0;

    if (count == 0 || c->count != count)
        return (double)INFINITY;
    for (uint64_t k = 0; k < RUNS; k++) {
        const uint64_t at = step * k;
        const uint64_t n = count - at < RUN ? count - at : RUN;
        nd_view_decode(r, at, n, x);
        nd_view_decode(c, at, n, y);
        for (uint64_t i = 0; i < n; i++) {
            errors += (y[i] - x[i]) * (y[i] - x[i]);
            squares += x[i] * x[i];
        }
    }
    return isfinite(errors) && squares > 0 ? sqrt(errors / squares) : (double)INFINITY;
}

static double outputs_apart(const struct output *r, const struct output *c)
{
    struct open_slot a, b;
    struct nd_error ignored; /* what cannot be read is said where it is measured */
    double apart = (double)INFINITY;

    if (nd_slot_open(r->dump, r->slot, &a, &ignored) != ND_OK)
        return apart;
    if (nd_slot_open(c->dump, c->slot, &b, &ignored) == ND_OK) {
        apart = views_apart(&a.view, &b.view);
        apart = nd_slot_close(&b) ? apart : (double)INFINITY;
    }
    return nd_slot_close(&a) ? apart : (double)INFINITY;
}

static bool follows(const struct dump_layer *before, const struct dump_layer *layer)
{
    return before->step == layer->step && before->rank == layer->rank &&
           before->direction == layer->direction;
}

/* The last layer behind `at` whose output the partner of `at` holds; `at`: none. */
static size_t last_inside(const struct comparison *comparison,
                          const struct side_layers *sides, size_t at)
{
    const struct dump_layer *const own = sides[0].layers[at];
    const struct output held =
        output_of(comparison, 1, sides[1].layers[sides[0].partner[at]]);
    struct output output = output_of(comparison, 0, own);
    size_t last = at;

    if (!is_readable(&held) || !is_readable(&output))
        return at;
    if (outputs_apart(&output, &held) <= NEAR)
        return at;
    double nearest = NEAR;
    for (size_t i = at + 1; i < sides[0].count && i - at <= MAX_INSIDE; i++) {
        if (sides[0].partner[i] != ND_NO_INDEX || !follows(own, sides[0].layers[i]))
            break;
        output = output_of(comparison, 0, sides[0].layers[i]);
        if (!is_readable(&output))
            continue;
        const double apart = outputs_apart(&output, &held);
        if (apart <= nearest) {
            nearest = apart;
            last = i;
        }
    }
    return last;
}

/* Is there a layer without a partner right behind it? */
static bool may_hold(const struct side_layers *side, size_t i)
{
    return side->partner[i] != ND_NO_INDEX && side->match[i] != ND_MATCH_MAP &&
           i + 1 < side->count && side->partner[i + 1] == ND_NO_INDEX &&
           follows(side->layers[i], side->layers[i + 1]);
}

enum nd_status nd_align_folded(const struct comparison *comparison,
                               struct side_layers *sides, struct nd_error *err)
{
    struct side_layers *const side = &sides[0];

    if (comparison->dump[0]->order >= ND_ORDER_NAME && !comparison->order_borrowed)
        return ND_OK; /* nothing is known to stand before anything */
    side->inside = nd_arena_alloc(comparison->scratch, side->count + 1, sizeof *side->inside);
    if (side->parted == NULL)
        side->parted =
            nd_arena_alloc(comparison->scratch, side->count + 1, sizeof *side->parted);
    if (side->inside == NULL || side->parted == NULL)
        return nd_fail_memory(err);
    for (size_t i = 0; i < side->count; i++) {
        const size_t last = may_hold(side, i) ? last_inside(comparison, sides, i) : i;
        if (last == i)
            continue;
        const size_t partner = side->partner[i];
        side->partner[i] = ND_NO_INDEX;
        side->match[i] = ND_MATCH_NONE;
        nd_align_pair(sides, last, partner, ND_MATCH_ORDER);
        side->parted[last] = true;
        for (size_t k = i; k < last; k++)
            side->inside[k] = sides[1].layers[partner]->name;
        i = last;
    }
    return ND_OK;
}
