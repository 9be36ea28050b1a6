/*
 * Another form of the activation?  Names mean different formulas in different frameworks:
 * GELU by erf, by tanh or by a sigmoid, SiLU or its piecewise stand-in, a bounded ReLU.
 */
#include "checks/flat.h"

#include <math.h>
#include <string.h>

#include "base/room.h"

static double gelu_erf(double x)
{
    return 0.5 * x * erfc(-x * sqrt(0.5));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double gelu_sigmoid(double x)
{
    return x / (1 + exp(-1.702 * x));
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double hardswish(double x)
{
    return x * fmin(fmax(x + 3, 0), 6) / 6;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* torch divides by 6 (ONNX's default slope 0.2 is the other one). */
static double hardsigmoid(double x)
{
    return fmin(fmax(x + 3, 0), 6) / 6;
}

static double hardsigmoid_fifth(double x)
{
    return fmin(fmax(0.2 * x + 0.5, 0), 1);
}

static double relu(double x)
{
    return x < 0 ? 0 : x;
}

static double relu6(double x)
{
    return fmin(fmax(x, 0), 6);
}

static double leaky_relu(double x)
{
    return x < 0 ? 0.01 * x : x;
}

static double leaky_relu_fifth(double x)
{
    return x < 0 ? 0.2 * x : x;
}

static double elu(double x)
{
    return x < 0 ? expm1(x) : x;
}

static double softplus(double x)
{
    return x > 30 ? x : log1p(exp(x));
}

static double mish(double x)
{
    return x * tanh(softplus(x));
}

static double identity(double x)
{
    return x;
}

struct form {
    const char *name;
    double (*value)(double x);
};

static const struct form forms[] = {
    {"GELU (erf)",                  gelu_erf         },
    {"GELU (tanh)",                 gelu_tanh        },
    {"GELU (x * sigmoid(1.702 x))", gelu_sigmoid     },
    {"SiLU",                        silu             },
    {"Hardswish",                   hardswish        },
    {"sigmoid",                     sigmoid          },
    {"Hardsigmoid (slope 1/6)",     hardsigmoid      },
    {"Hardsigmoid (slope 0.2)",     hardsigmoid_fifth},
    {"tanh",                        tanh             },
    {"ReLU",                        relu             },
    {"ReLU6",                       relu6            },
    {"LeakyReLU (0.01)",            leaky_relu       },
    {"LeakyReLU (0.2)",             leaky_relu_fifth },
    {"ELU",                         elu              },
    {"softplus",                    softplus         },
    {"Mish",                        mish             },
    {"identity",                    identity         },
};

enum { FORM_COUNT = sizeof forms / sizeof *forms };

/* Residual of every step-th y against a form of x. */
static double form_misfit(const struct form *form, const double *x, const double *y,
                          uint64_t count, uint64_t step)
{
    double error = 0, size = 0;

    for (uint64_t i = 0; i < count; i += step) {
        const double z = form->value(x[i]);
        if (!isfinite(y[i]) || !isfinite(z))
            continue;
        error += (y[i] - z) * (y[i] - z);
        size += z * z;
    }
    return size > 0 ? sqrt(error / size) : HUGE_VAL;
}

/* Elements that tell forms apart, and the most that the residual is taken over: a form
 * differs from another in a thousandth or more; those that are close are measured again. */
enum { FORM_RANKED = 1 << 14, FORM_MEASURED = 1 << 18 };
static const double FORM_CLOSE = 2;

static uint64_t form_step(uint64_t count, uint64_t most)
{
    return count > most ? count / most | 1 : 1; /* odd: rows are often powers of two long */
}

static const struct form *activation_best(const double *x, const double *y, uint64_t count,
                                          double *ret_residual)
{
    const struct form *best = NULL;
    double ranked[FORM_COUNT], least = HUGE_VAL;

    for (int i = 0; i < FORM_COUNT; i++) {
        ranked[i] = form_misfit(&forms[i], x, y, count, form_step(count, FORM_RANKED));
        least = fmin(least, ranked[i]);
    }
    for (int i = 0; i < FORM_COUNT; i++) {
        if (ranked[i] > FORM_CLOSE * least)
            continue;
        const double residual =
            count <= FORM_RANKED
                ? ranked[i]
                : form_misfit(&forms[i], x, y, count, form_step(count, FORM_MEASURED));
        if (best == NULL || residual < *ret_residual) {
            best = &forms[i];
            *ret_residual = residual;
        }
    }
    return best;
}

/* Which side departs from the name cannot be told unless one of them is the plain form. */
static enum nd_side activation_side(const struct subject *subject, const struct form *found)
{
    return strcmp(subject->own->op->name, "gelu") == 0 && found == &forms[0]
               ? ND_SIDE_UNKNOWN
               : nd_subject_side(subject);
}

static void activation_compare(struct subject *subject, double *x, double *y)
{
    const struct tensor_view *in[2], *out;
    const int side = subject->side;
    const double u = subject->own->roundoff;
    double good = HUGE_VAL, left = HUGE_VAL;

    for (int k = 0; k < 2; k++)
        if ((in[k] = nd_subject_like_output(subject, k, "input.0")) == NULL)
            return;
    out = nd_subject_like_output(subject, !side, subject->slot->name);
    if (out == NULL)
        return;
    nd_view_decode(in[!side], 0, subject->count, x);
    nd_view_decode(out, 0, subject->count, y);
    const struct form *expected = activation_best(x, y, subject->count, &good);
    if (!(good <= fmax(4 * u, 64 * 0x1p-24)))
        return; /* the other side is none of them */
    nd_view_decode(in[side], 0, subject->count, x);
    const struct form *found = activation_best(x, subject->actual, subject->count, &left);
    if (found == expected)
        return;
    const struct hypothesis variant = {.id = "activation_variant",
                                       .residual = left,
                                       .floor = fmax(good, 0.4247 * u),
                                       .side = activation_side(subject, found)};
    ND_PROPOSE(subject, variant, ND_WORD("expected", expected->name),
               ND_WORD("found", found->name));
}

/* --- without inputs --- */

/* Bisection of a form that rises for x > 0: where it gives y. */
static double form_inverse(const struct form *form, double y)
{
    double low = 0, high = y + 4; /* none of the forms lies 4 below x */

    for (int step = 0; step < 60; step++) {
        const double middle = 0.5 * (low + high);
        if (form->value(middle) < y)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

enum { BLIND_VALUES = 2048, BLIND_LEAST = 64, BLIND_FORMS = 4 };
static const double BLIND_APART = 4; /* how much better the forms must fit than others */

/* Positive outputs that tell the input, evenly spaced; returns how many. */
static uint64_t blind_take(const struct subject *subject, double *ret_y, double *ret_z)
{
    const double least = 0.05 * nd_flat_rms(subject->expected, subject->count);
    const uint64_t step = subject->count / BLIND_VALUES + 1;
    uint64_t count = 0;

    for (uint64_t i = 0; i < subject->count && count < BLIND_VALUES; i += step) {
        const double y = subject->actual[i], z = subject->expected[i];
        if (!isfinite(y) || !isfinite(z) || !(z > least))
            continue;
        ret_y[count] = y;
        ret_z[count++] = z;
    }
    return count;
}

/*
 * No input was dumped: positive outputs of the other side, put back through the form that
 * the name stands for, are that input, and another form of it may be what this side has.
 */
static void activation_blind(struct subject *subject, double *x, double *y)
{
    const bool is_gelu = strcmp(subject->own->op->name, "gelu") == 0;
    const int first = is_gelu ? 0 : 3, end = is_gelu ? 3 : 4;
    double *z = y + BLIND_VALUES, left = HUGE_VAL, second = HUGE_VAL;
    const struct form *expected = NULL, *found = NULL;
    const uint64_t count = blind_take(subject, y, z);

    if (count < BLIND_LEAST)
        return;
    for (int f = first; f < end; f++) {
        for (uint64_t i = 0; i < count; i++)
            x[i] = form_inverse(&forms[f], z[i]);
        for (int g = 0; g <= BLIND_FORMS; g++) {
            const double residual =
                g == f ? HUGE_VAL : form_misfit(&forms[g], x, y, count, 1);
            second = residual < left ? left : fmin(second, residual);
            if (residual < left) {
                left = residual;
                expected = &forms[f];
                found = &forms[g];
            }
        }
    }
    const double floor = fmax(subject->floor, 0.4247 * subject->own->roundoff);
    const struct hypothesis variant = {.id = "activation_variant",
                                       .residual = left,
                                       .floor = floor,
                                       .penalty = 0.1,
                                       .side = nd_subject_side(subject)};
    if (found != NULL && left <= 4 * floor && second > BLIND_APART * left)
        ND_PROPOSE(subject, variant, ND_WORD("expected", expected->name),
                   ND_WORD("found", found->name));
}

static bool activation_has_inputs(const struct subject *subject)
{
    return nd_subject_like_output(subject, 0, "input.0") != NULL &&
           nd_subject_like_output(subject, 1, "input.0") != NULL;
}

static void activation_run(struct subject *subject, struct nd_finding *finding)
{
    static const char *const names[] = {"gelu", "silu", "relu", "activation"};
    const struct op *op = subject->own->op;
    bool is_one = false;

    (void)finding;
    for (size_t i = 0; i < sizeof names / sizeof *names && op != NULL; i++)
        is_one = is_one || strcmp(op->name, names[i]) == 0;
    if (!is_one || subject->actual == NULL || !nd_subject_is_own(subject) ||
        strcmp(subject->slot->name, "output.0") != 0)
        return;
    const bool has_inputs = activation_has_inputs(subject);
    const bool is_blind = !has_inputs && nd_flat_asked(subject) &&
                          (strcmp(op->name, "gelu") == 0 || strcmp(op->name, "silu") == 0);
    const uint64_t room = has_inputs ? subject->count : 2 * BLIND_VALUES;
    double *x = nd_room_take(room, sizeof *x), *y = nd_room_take(room, sizeof *y);
    if (x != NULL && y != NULL && has_inputs)
        activation_compare(subject, x, y);
    else if (x != NULL && y != NULL && is_blind)
        activation_blind(subject, x, y);
    nd_room_give(x);
    nd_room_give(y);
}

const struct check nd_check_activation = {.id = "activation", .run = activation_run};
