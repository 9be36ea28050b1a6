/*
 * Rotary positions: pairs of elements turned by position * base^(-2 j / d).  Other first
 * position, other pairs, other base, no turn at all?  Where the input is not dumped it is
 * the other side's output turned back; only a residual at the floor proves the assumption.
 */
#include "checks/subject.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HALF = 512, LOOK_VALUES = 1 << 12, ALL_VALUES = 1 << 17, REACH = 64 };

/* The bases of published models, the usual one first. */
static const double bases[] = {1e4, 5e5, 1e6, 1e5, 5e6, 1e7, 8e6};

enum { BASE_COUNT = sizeof bases / sizeof *bases };

struct turn {
    uint32_t axis;    /* of positions */
    bool interleaved; /* pairs of neighbours, else of the two halves */
    double base, offset;
    double sign; /* 1; -1 backwards, 0 not at all */
};

/* Rows of the innermost axis, on the side in question and on the other. */
struct rope {
    const struct subject *subject;
    uint64_t width, count;
    uint64_t *row;
    double *x, *y;             /* of the wrong side; x is made where it was not dumped */
    double *x_other, *y_other; /* of the other */
    double *turned;
    bool has_input;
    int side;     /* the wrong one */
    double *half; /* frequencies */
};

static bool rope_named(const char *text)
{
    static const char *const words[] = {"rope", "rotary"};

    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        for (const char *at = text; *at != '\0'; at++) {
            size_t k = 0;
            while (words[w][k] != '\0' && tolower((unsigned char)at[k]) == words[w][k])
                k++;
            if (words[w][k] == '\0')
                return true;
        }
    return false;
}

static void turn_frequencies(const struct turn *turn, uint64_t width, double *half)
{
    for (uint64_t j = 0; j < width / 2; j++)
        half[j] = pow(turn->base, -2.0 * (double)j / (double)width);
}

static void turn_row(const struct turn *turn, double position, const double *half,
                     uint64_t width, const double *x, double *y)
{
    for (uint64_t j = 0; j < width / 2; j++) {
        const double angle = turn->sign * (position + turn->offset) * half[j];
        const double c = cos(angle), s = sin(angle);
        const uint64_t a = turn->interleaved ? 2 * j : j;
        const uint64_t b = turn->interleaved ? 2 * j + 1 : j + width / 2;
        const double left = x[a], right = x[b];
        y[a] = left * c - right * s;
        y[b] = right * c + left * s;
    }
}

static double rope_position(const struct rope *rope, uint32_t axis, uint64_t i)
{
    uint64_t index[ND_MAX_RANK];

    nd_shape_unravel(&rope->subject->shape, rope->row[i] * rope->width, index);
    return (double)index[axis];
}

/* Residual of y against x turned; `step` 1: all rows, more: every so many. */
static double turn_misfit(const struct rope *rope, const struct turn *turn, const double *x,
                          const double *y, uint64_t step)
{
    double error = 0, size = 0;

    turn_frequencies(turn, rope->width, rope->half);
    for (uint64_t i = 0; i < rope->count; i += step) {
        const double *want = y + i * rope->width;
        turn_row(turn, rope_position(rope, turn->axis, i), rope->half, rope->width,
                 x + i * rope->width, rope->turned);
        for (uint64_t k = 0; k < rope->width; k++) {
            if (!isfinite(want[k]) || !isfinite(rope->turned[k]))
                continue;
            error += (want[k] - rope->turned[k]) * (want[k] - rope->turned[k]);
            size += want[k] * want[k];
        }
    }
    return size > 0 ? sqrt(error / size) : HUGE_VAL;
}

/* Half as many rows look as well as all of them while most turns are ruled out. */
static double turn_look(const struct rope *rope, const struct turn *turn, const double *x,
                        const double *y, double limit)
{
    const uint64_t look = LOOK_VALUES / rope->width + 1;
    const uint64_t step = rope->count / look + 1;
    const double first = turn_misfit(rope, turn, x, y, step);

    return step == 1 || first > 4 * limit ? first : turn_misfit(rope, turn, x, y, 1);
}

/* Turns back what the other side turned: the input, if it turned like this. */
static void turn_back(const struct rope *rope, const struct turn *turn)
{
    struct turn back = *turn;

    back.sign = -turn->sign;
    turn_frequencies(&back, rope->width, rope->half);
    for (uint64_t i = 0; i < rope->count; i++)
        turn_row(&back, rope_position(rope, turn->axis, i), rope->half, rope->width,
                 rope->y_other + i * rope->width, rope->x + i * rope->width);
}

static double rope_limit(const struct rope *rope)
{
    return 0.5 * rope->subject->unexplained;
}

/* The angles themselves are float32 numbers that grow with the position. */
static double rope_floor(const struct rope *rope)
{
    double last = 0;

    for (uint32_t axis = 0; axis + 1 < rope->subject->shape.rank; axis++)
        last = fmax(last, (double)rope->subject->shape.dim[axis]);
    return fmax(rope->subject->floor,
                fmax(0.4247 * rope->subject->own->roundoff, 0x1p-24 * fmin(last, 1e5) / 4));
}

static void rope_propose(const struct rope *rope, struct subject *subject,
                         const struct turn *expected, const struct turn *other,
                         const char *summary, double penalty)
{
    const double residual = turn_look(rope, other, rope->x, rope->y, rope_limit(rope));

    if (!(residual < rope_limit(rope)))
        return;
    const bool by_base = other->base != expected->base;
    const struct nd_param params[] = {
        ND_NUMBER("is_candidate", rope->side),
        ND_NUMBER("residual", residual),
        ND_NUMBER("interleaved", other->interleaved),
        ND_NUMBER("expected", by_base ? expected->base : expected->offset),
        ND_NUMBER("offset", other->offset),
        ND_NUMBER("base", other->base)};
    const size_t count = sizeof params / sizeof *params;
    const struct hypothesis turned = {
        .id = "rope",
        .residual = residual,
        .floor = rope_floor(rope),
        .penalty = penalty,
        .side = rope->side == 1 ? ND_SIDE_CANDIDATE : ND_SIDE_REFERENCE,
        .summary = nd_phrase_make(subject->arena, summary, params, count)};
    nd_propose_with(subject, &turned, params + 2, count - 2);
}

static struct turn rope_best_base(const struct rope *rope, const struct turn *expected)
{
    struct turn best = *expected, other = *expected;
    double least = HUGE_VAL;

    for (int b = 0; b < BASE_COUNT; b++) {
        other.base = bases[b];
        const double residual =
            other.base == expected->base
                ? HUGE_VAL
                : turn_look(rope, &other, rope->x, rope->y, rope_limit(rope));
        if (residual < least) {
            least = residual;
            best = other;
        }
    }
    return best;
}

static struct turn rope_best_offset(const struct rope *rope, const struct turn *expected)
{
    struct turn best = *expected, other = *expected;
    double least = HUGE_VAL;

    for (int k = -REACH; k <= REACH; k++) {
        other.offset = expected->offset + k;
        const double residual =
            k == 0 ? HUGE_VAL : turn_look(rope, &other, rope->x, rope->y, rope_limit(rope));
        if (residual < least) {
            least = residual;
            best = other;
        }
    }
    return best;
}

/* Every neighbour of the turn that the other side makes. */
static void rope_neighbours(const struct rope *rope, struct subject *subject,
                            const struct turn *expected, double penalty)
{
    struct turn other = *expected;

    other.interleaved = !expected->interleaved;
    rope_propose(rope, subject, expected, &other, "summary.rope.pairs", penalty);
    other = *expected;
    other.sign = 0;
    rope_propose(rope, subject, expected, &other, "summary.rope.none", penalty);
    other.sign = -1;
    rope_propose(rope, subject, expected, &other, "summary.rope.backwards", penalty);
    other = rope_best_base(rope, expected);
    rope_propose(rope, subject, expected, &other, "summary.rope.base", penalty + 0.02);
    other = rope_best_offset(rope, expected);
    rope_propose(rope, subject, expected, &other, "summary.rope.offset", penalty + 0.02);
}

/* With the input: only turns that a side is shown to make. */
static bool rope_follows(const struct rope *rope, const struct turn *turn, const double *x,
                         const double *y)
{
    const double limit = fmax(4 * rope->subject->own->roundoff, 4 * rope_floor(rope));

    return turn_look(rope, turn, x, y, limit) <= limit;
}

/* The side that turns as expected is not the one to blame. */
static bool rope_is_expected(struct rope *rope, const struct turn *turn)
{
    if (rope_follows(rope, turn, rope->x_other, rope->y_other))
        return true;
    if (!rope_follows(rope, turn, rope->x, rope->y))
        return false;
    double *const x = rope->x, *const y = rope->y;
    rope->x = rope->x_other;
    rope->y = rope->y_other;
    rope->x_other = x;
    rope->y_other = y;
    rope->side = !rope->side;
    return true;
}

/* The first position need not be 0, but mostly is. */
static void rope_known(struct rope *rope, struct subject *subject)
{
    for (int offset = 0; offset <= REACH; offset++)
        for (uint32_t axis = 0; axis + 1 < subject->shape.rank; axis++)
            for (int k = 0; k < 2 * BASE_COUNT && subject->shape.dim[axis] > 1; k++) {
                const struct turn turn = {.axis = axis,
                                          .interleaved = k % 2 == 1,
                                          .base = bases[k / 2],
                                          .offset = offset,
                                          .sign = 1};
                if (!rope_is_expected(rope, &turn))
                    continue;
                rope_neighbours(rope, subject, &turn, 0);
                return;
            }
}

/* Guesses are for the common bases only; a rarer assumption costs more. */
static void rope_guessed(struct rope *rope, struct subject *subject)
{
    for (uint32_t axis = 0; axis + 1 < subject->shape.rank; axis++)
        for (int k = 0; k < 6 && subject->shape.dim[axis] > 1; k++) {
            const struct turn turn = {
                .axis = axis, .interleaved = k % 2 == 1, .base = bases[k / 2], .sign = 1};
            turn_back(rope, &turn);
            rope_neighbours(rope, subject, &turn, 0.01 * k);
        }
}

static bool rope_allocate(struct rope *rope)
{
    const uint64_t values = rope->count * rope->width;

    rope->row = malloc(rope->count * sizeof *rope->row);
    rope->x = malloc(values * sizeof *rope->x);
    rope->y = malloc(values * sizeof *rope->y);
    rope->x_other = malloc(values * sizeof *rope->x_other);
    rope->y_other = malloc(values * sizeof *rope->y_other);
    rope->turned = malloc(rope->width * sizeof *rope->turned);
    rope->half = malloc(rope->width * sizeof *rope->half);
    return rope->row != NULL && rope->x != NULL && rope->y != NULL &&
           rope->x_other != NULL && rope->y_other != NULL && rope->turned != NULL &&
           rope->half != NULL;
}

static void rope_load(struct rope *rope)
{
    const struct subject *subject = rope->subject;
    const struct tensor_view *out =
        nd_subject_like_output(subject, !subject->side, "output.0");
    const struct tensor_view *in[2];
    const uint64_t rows = subject->count / rope->width, width = rope->width;

    for (int side = 0; side < 2; side++)
        in[side] = nd_subject_like_output(subject, side, "input.0");
    rope->has_input = in[0] != NULL && in[1] != NULL;
    for (uint64_t i = 0; i < rope->count; i++) {
        const uint64_t row = rows / rope->count * i + rows % rope->count * i / rope->count;
        rope->row[i] = row;
        memcpy(rope->y + i * width, subject->actual + row * width, width * sizeof(double));
        nd_view_decode(out, row * width, width, rope->y_other + i * width);
        if (!rope->has_input)
            continue;
        nd_view_decode(in[subject->side], row * width, width, rope->x + i * width);
        nd_view_decode(in[!subject->side], row * width, width, rope->x_other + i * width);
    }
}

static void rope_run(struct subject *subject, struct nd_finding *finding)
{
    struct rope rope = {.subject = subject, .side = subject->side};

    (void)finding;
    if (subject->actual == NULL || !nd_subject_is_own(subject) || subject->shape.rank < 2 ||
        strcmp(subject->slot->name, "output.0") != 0 || !rope_named(subject->layer->type) ||
        nd_subject_like_output(subject, !subject->side, "output.0") == NULL)
        return;
    rope.width = subject->shape.dim[subject->shape.rank - 1];
    if (rope.width < 2 || rope.width % 2 != 0 || rope.width > 2 * MAX_HALF)
        return;
    rope.count = subject->count / rope.width;
    if (rope.count > ALL_VALUES / rope.width)
        rope.count = ALL_VALUES / rope.width;
    if (rope_allocate(&rope)) {
        rope_load(&rope);
        if (rope.has_input)
            rope_known(&rope, subject);
        else
            rope_guessed(&rope, subject);
    }
    free(rope.row);
    free(rope.x);
    free(rope.y);
    free(rope.x_other);
    free(rope.y_other);
    free(rope.turned);
    free(rope.half);
}

const struct check nd_check_rope = {.id = "rope", .run = rope_run};
