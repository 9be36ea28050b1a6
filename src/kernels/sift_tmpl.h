/*
 * Takes the positions that do not count out of pairs of floats, or of doubles: included
 * once for each by odd_tmpl.h.
 *
 * Parameters:
 *   SIFT(name)   the operation of that name on vectors of such numbers (ops_*_tmpl.h), and
 *                the suffix of the names here
 *   SIFT_VECTOR  the type of a vector
 *   SIFT_NUMBER  float or double
 *   SIFT_WIDTH   how many a vector holds
 */

/* Vectors that values are held against. */
struct SIFT(sieve) {
    SIFT_VECTOR top[2];
    SIFT_VECTOR mask[2][PAIR_MASKS];
    unsigned count; /* of constants; the side that has fewer repeats its last */
    /* The constants of the two sides that are tried first: a tensor has one of each, as a
     * rule. */
    SIFT_VECTOR usual[2];
    bool is_known; /* they were found in this step */
    bool nan_strict;
};

/* Least and largest of the positions that count. */
struct SIFT(sift_ends) {
    SIFT_VECTOR min[2], max[2];
};

#define SIFT_AND(a, b) ((SIFT(where))((a) & (b)))
#define SIFT_BUT(a, b) ((SIFT(where))((a) & ~(b)))
#define SIFT_OR(a, b)  ((SIFT(where))((a) | (b)))

TMPL_INLINE void SIFT(sieve_of)(const struct pair *pair, struct SIFT(sieve) *ret)
{
    const unsigned of_r = pair->masks[0].count, of_c = pair->masks[1].count;

    ret->count = of_r > of_c ? of_r : of_c;
    ret->is_known = false;
    ret->nan_strict = pair->nan_strict;
    for (int side = 0; side < 2; side++) {
        const struct pair_masks *const masks = &pair->masks[side];
        ret->top[side] = SIFT(set)((SIFT_NUMBER)masks->top);
        ret->usual[side] = SIFT(set)((SIFT_NUMBER)-HUGE_VAL);
        for (unsigned k = 0; k < ret->count; k++)
            ret->mask[side][k] = SIFT(set)(
                (SIFT_NUMBER)masks->value[k < masks->count ? k : masks->count - 1]);
    }
}

/* Remembers the first of the masked ones. */
static void SIFT(learn)(struct SIFT(sieve) *sieve, SIFT_VECTOR x, SIFT_VECTOR y,
                        SIFT(where) masked)
{
    SIFT_NUMBER of_r[SIFT_WIDTH], of_c[SIFT_WIDTH];
    size_t i = 0;

    SIFT(store)(of_r, SIFT(pick)(masked, x, SIFT(set)((SIFT_NUMBER)NAN)));
    SIFT(store)(of_c, y);
    while (of_r[i] != of_r[i])
        i++;
    sieve->usual[0] = SIFT(set)(of_r[i]);
    sieve->usual[1] = SIFT(set)(of_c[i]);
    sieve->is_known = true;
}

/* Both sides are as low as masks at `low`; where are they masks? */
TMPL_INLINE SIFT(where) SIFT(masked)(struct SIFT(sieve) *sieve, SIFT_VECTOR x,
                                     SIFT_VECTOR y, SIFT(where) low)
{
    const SIFT(where) usual = SIFT_AND(SIFT_AND(low, SIFT(equal)(x, sieve->usual[0])),
                                       SIFT(equal)(y, sieve->usual[1]));
    SIFT(where) r = SIFT_BUT(low, low), c = r;

    if (sieve->count == 0 || !SIFT(any)(SIFT_BUT(low, usual)))
        return sieve->count == 0 ? r : usual;
    for (unsigned k = 0; k < sieve->count; k++) {
        r = SIFT_OR(r, SIFT(equal)(x, sieve->mask[0][k]));
        c = SIFT_OR(c, SIFT(equal)(y, sieve->mask[1][k]));
    }
    const SIFT(where) masked = SIFT_AND(r, c);
    if (!sieve->is_known && SIFT(any)(masked))
        SIFT(learn)(sieve, x, y, masked);
    return masked;
}

/* Counts infinities among them. */
TMPL_INLINE void SIFT(count_infinite)(const SIFT_VECTOR *of, SIFT(where) wild,
                                      struct lanes_sifted *inout)
{
    const SIFT_VECTOR high = SIFT(set)((SIFT_NUMBER)HUGE_VAL);
    const SIFT(where) high_r = SIFT(equal)(of[0], high), low_r = SIFT(equal)(of[0], -high);
    const SIFT(where) high_c = SIFT(equal)(of[1], high), low_c = SIFT(equal)(of[1], -high);
    const SIFT(where) any = SIFT_OR(SIFT_OR(high_r, low_r), SIFT_OR(high_c, low_c));

    if (!SIFT(any)(SIFT_AND(wild, any)))
        return; /* most are NaN */
    inout->side[0].pos_inf += SIFT(count)(SIFT_AND(wild, high_r));
    inout->side[0].neg_inf += SIFT(count)(SIFT_AND(wild, low_r));
    inout->side[1].pos_inf += SIFT(count)(SIFT_AND(wild, high_c));
    inout->side[1].neg_inf += SIFT(count)(SIFT_AND(wild, low_c));
}

/* Counts by kind and side what is neither finite nor masked. */
static void SIFT(count_wild)(SIFT_VECTOR x, SIFT_VECTOR y, SIFT(where) wild,
                             bool nan_strict, struct lanes_sifted *inout)
{
    const SIFT_VECTOR of[2] = {x, y};
    const SIFT(where) nan_r = SIFT_BUT(wild, SIFT(equal)(x, x));
    const SIFT(where) nan_c = SIFT_BUT(wild, SIFT(equal)(y, y));
    SIFT(where) differ = SIFT_BUT(wild, SIFT(equal)(x, y));

    inout->wild += SIFT(count)(wild);
    inout->side[0].nan += SIFT(count)(nan_r);
    inout->side[1].nan += SIFT(count)(nan_c);
    SIFT(count_infinite)(of, wild, inout);
    if (!nan_strict)
        differ = SIFT_BUT(differ, SIFT_AND(nan_r, nan_c));
    inout->mismatches += SIFT(count)(differ);
}

/* Of a vector where not all are ordinary: which count?  Counts the others. */
TMPL_INLINE SIFT(where) SIFT(sort)(struct SIFT(sieve) *sieve, SIFT_VECTOR x,
                                   SIFT_VECTOR y, SIFT(where) finite, SIFT(where) low,
                                   struct lanes_sifted *inout)
{
    SIFT(where) kept = finite, masked = SIFT_BUT(low, low);

    if (SIFT(any)(low)) {
        masked = SIFT(masked)(sieve, x, y, low);
        kept = SIFT_BUT(finite, masked);
        inout->masked += SIFT(count)(masked);
        inout->masks_differ += SIFT(count)(SIFT_BUT(masked, SIFT(equal)(x, y)));
    }
    const SIFT(where) wild = (SIFT(where))(~SIFT_OR(kept, masked));
    if (SIFT(any)(wild))
        SIFT(count_wild)(x, y, wild, sieve->nan_strict, inout);
    return kept;
}

/* One vector of each side: where they count for the extremes and for the sums. */
struct SIFT(sift_pair) {
    SIFT_VECTOR least[2], most[2], to[2];
    SIFT(where) equal;
};

TMPL_INLINE void SIFT(leave_out)(SIFT(where) kept, const SIFT_VECTOR *instead,
                                 struct SIFT(sift_pair) *inout)
{
    const SIFT_VECTOR high = SIFT(set)((SIFT_NUMBER)HUGE_VAL);

    inout->least[0] = SIFT(pick)(kept, inout->least[0], high);
    inout->least[1] = SIFT(pick)(kept, inout->least[1], high);
    inout->most[0] = SIFT(pick)(kept, inout->most[0], -high);
    inout->most[1] = SIFT(pick)(kept, inout->most[1], -high);
    inout->to[0] = SIFT(pick)(kept, inout->to[0], instead[0]);
    inout->to[1] = SIFT(pick)(kept, inout->to[1], instead[1]);
    inout->equal = SIFT_AND(kept, inout->equal);
}

TMPL_INLINE struct SIFT(sift_ends) SIFT(sift_none)(void)
{
    const SIFT_VECTOR high = SIFT(set)((SIFT_NUMBER)HUGE_VAL);

    return (struct SIFT(sift_ends)){{high, high}, {-high, -high}};
}

TMPL_INLINE void SIFT(ends_add_pair)(struct SIFT(sift_ends) *ends,
                                     const struct SIFT(sift_pair) *pair)
{
    ends->min[0] = SIFT(min)(pair->least[0], ends->min[0]);
    ends->min[1] = SIFT(min)(pair->least[1], ends->min[1]);
    ends->max[0] = SIFT(max)(pair->most[0], ends->max[0]);
    ends->max[1] = SIFT(max)(pair->most[1], ends->max[1]);
}

/* One vector of a side each, from which *inout was made.  False: none of it counts. */
TMPL_INLINE bool SIFT(sift_one)(struct SIFT(sieve) *sieve, SIFT_VECTOR x, SIFT_VECTOR y,
                                const SIFT_VECTOR *instead, struct SIFT(sift_pair) *inout,
                                struct lanes_sifted *sifted)
{
    /* An infinity less itself is NaN. */
    const SIFT(where) finite = SIFT(equal)(x - x, y - y);
    const SIFT(where) low =
        SIFT_AND(SIFT(at_most)(x, sieve->top[0]), SIFT(at_most)(y, sieve->top[1]));

    if (!SIFT(any)((SIFT(where))(~SIFT_BUT(finite, low))))
        return true;
    const SIFT(where) kept = SIFT(sort)(sieve, x, y, finite, low, sifted);
    SIFT(leave_out)(kept, instead, inout);
    return SIFT(any)(kept);
}

/*
 * n pairs, which fill groups of lanes.  Makes x and y: values * scale, or `instead` of the
 * side where a position does not count.  close: groups of which none counts are left out.
 * x may be r, and y be c.
 */
static void SIFT(sift)(const struct pair *pair, const void *r, const void *c, size_t n,
                       const struct moments_pivot *instead, bool close, SIFT_NUMBER *x,
                       SIFT_NUMBER *y, struct SIFT(sift_ends) *ret_ends,
                       struct lanes_sifted *ret)
{
    const unsigned char *const from_r = r, *const from_c = c;
    const SIFT_VECTOR scale = SIFT(set)((SIFT_NUMBER)pair->scale);
    const SIFT_VECTOR out[2] = {SIFT(set)((SIFT_NUMBER)instead->r),
                                SIFT(set)((SIFT_NUMBER)instead->c)};
    struct SIFT(sift_ends) ends = SIFT(sift_none)();
    struct lanes_sifted sifted = {.total = (unsigned)n};
    struct SIFT(sieve) sieve;
    size_t end = 0; /* of what was made */

    SIFT(sieve_of)(pair, &sieve);
    TMPL_KEEP_LOOP
    for (size_t at = 0; at < n; at += MOMENTS_LANES) {
        bool any = !close;
        for (size_t l = 0; l < MOMENTS_LANES; l += SIFT_WIDTH) {
            const size_t i = (at + l) * sizeof(SIFT_NUMBER);
            const SIFT_VECTOR v = SIFT(load)((const void *)(from_r + i));
            const SIFT_VECTOR w = SIFT(load)((const void *)(from_c + i));
            struct SIFT(sift_pair) here = {{v, w}, {v, w}, {v * scale, w * scale},
                                           SIFT(equal)(v, w)};
            any = SIFT(sift_one)(&sieve, v, w, out, &here, &sifted) || any;
            SIFT(ends_add_pair)(&ends, &here);
            sifted.equal += SIFT(count)(here.equal);
            SIFT(store)(x + end + l, here.to[0]);
            SIFT(store)(y + end + l, here.to[1]);
        }
        end += any ? MOMENTS_LANES : 0;
    }
    sifted.left = (unsigned)end;
    *ret_ends = ends;
    *ret = sifted;
}

#undef SIFT_AND
#undef SIFT_BUT
#undef SIFT_OR
