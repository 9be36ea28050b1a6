"""Norms whose input no layer made, seen in outputs alone, and what honest pairs must not be accused of.

  python3 tests/contract/test_streams.py PATH_TO_NORMDIFF [unittest arguments]

The residual connections are plain additions between the layers, as models write them; norms are
computed here in Python's floats and stored in float32.
"""
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from dumps import normdiff_dump, write

TOOL = ""
ROWS, WIDTH = 30, 24
FITTED = ("confirmed", "supported")  # a shift that a bias takes up in part


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def half(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


def bf16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7fff + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xffff0000))[0]


def numbers(seed, count, scale=1.):
    draw = random.Random(seed)
    return [single(draw.gauss(0, scale)) for _ in range(count)]


def added(*terms):
    out = terms[0]
    for term in terms[1:]:
        out = [single(a + b) for a, b in zip(out, term)]
    return out


def norm(x, seed, eps=1e-5, width=WIDTH, centre=True, of=1.):
    """LayerNorm over rows of `width`; `of`: what the variance is multiplied by."""
    weight, bias, out = numbers(seed, width, .3), numbers(seed + 1, width, .2), []
    for at in range(0, len(x), width):
        row = x[at:at + width]
        mean = sum(row) / width
        var = sum((v - mean) ** 2 for v in row) / width * of
        shift = mean if centre else 0
        out += [single((v - shift) / math.sqrt(var + eps) * (1 + w) + b) for v, w, b in zip(row, weight, bias)]
    return out


class Streams(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-streams-")
        self.addCleanup(shutil.rmtree, self.dir)

    def report(self, reference, candidate):
        paths = [write(self.dir, name, content) for name, content in (("gpu.dump", reference), ("npu.dump", candidate))]
        done = subprocess.run([TOOL, "-f", "json", "--fail-on", "never", *paths], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def model(self, before, **fault):
        """Blocks of a norm and a branch; the last norm has the fault.  before: the norm stands before the
        branch (the stream goes on unnormalised), else behind the addition."""
        def layer(name, kind, values):
            return (name, kind, {"output.0": ("F32", (2, ROWS // 2, WIDTH), values)})

        x = numbers(1, ROWS * WIDTH, .05)
        layers = [layer("embed", "Embedding", x)]
        for k in range(3):
            last = dict(fault) if k == 2 else {}
            y = norm(x, 10 * k + 5, **last) if before else x
            if before:
                layers.append(layer("norm%d" % k, "LayerNorm", y))
            branch = [single(v) for v in numbers(10 * k + 7, ROWS * WIDTH, .1)]
            layers += [layer("gate%d" % k, "Linear", numbers(10 * k + 8, ROWS * WIDTH, .1)),
                       layer("out%d" % k, "Linear", branch)]
            x = added(x, branch)
            if not before:
                x = norm(x, 10 * k + 5, **last)
                layers.append(layer("norm%d" % k, "LayerNorm", x))
        return normdiff_dump(layers)

    def assert_cause(self, report, layer, cause, status=("confirmed",)):
        self.assertEqual(report["first_divergence"]["layer"], layer)
        self.assertTrue(report["causes"], "nothing was named")
        first = report["causes"][0]
        self.assertEqual(first["id"], cause)
        self.assertIn(first["status"], status)
        return first

    def test_eps_behind_a_residual_addition_is_recovered_from_outputs_alone(self):
        for before in (True, False):
            report = self.report(self.model(before), self.model(before, eps=1e-3))
            found = self.assert_cause(report, "norm2", "eps")["parameters"]
            self.assertAlmostEqual(math.log10(found["candidate"]), -3, delta=5e-3)

    def test_the_reference_may_be_the_side_with_the_larger_eps(self):
        report = self.report(self.model(True, eps=1e-3), self.model(True))
        found = self.assert_cause(report, "norm2", "eps")["parameters"]
        self.assertAlmostEqual(math.log10(found["reference"]), -3, delta=5e-3)

    def test_a_mean_that_stays_and_a_divisor_of_n_less_one_are_told_too(self):
        self.assert_cause(self.report(self.model(True), self.model(True, centre=False)), "norm2",
                          "mean_not_subtracted", FITTED)
        self.assert_cause(self.report(self.model(True), self.model(True, of=WIDTH / (WIDTH - 1))), "norm2",
                          "unbiased_variance")

    def test_a_norm_over_channels_is_fed_by_an_image_with_its_channels_moved_last(self):
        images, side, channels = 2, 4, 16
        image = numbers(50, images * channels * side * side)
        moved = [image[((n * channels + c) * side + h) * side + w]
                 for n in range(images) for h in range(side) for w in range(side) for c in range(channels)]

        def dump(**fault):
            return normdiff_dump([
                ("dw", "Conv2d", {"output.0": ("F32", (images, channels, side, side), image)}),
                ("norm", "LayerNorm", {"output.0": ("F32", (images, side, side, channels),
                                                    norm(moved, 60, width=channels, **fault))})])
        self.assert_cause(self.report(dump(), dump(centre=False)), "norm", "mean_not_subtracted", FITTED)


class Others(Streams):
    """Single layers: what the numbers show must be said, and no more."""

    def one(self, kind, shape, before, values, dtype="F32"):
        return normdiff_dump([("before", "Conv2d", {"output.0": before}),
                              ("layer", kind, {"input.0": before, "output.0": (dtype, shape, values)})])

    def test_a_layer_in_bfloat16_is_named_by_its_values_where_its_input_is_not_known(self):
        y = numbers(70, 8 * 32)
        held = [bf16(v * (1 + e)) for v, e in zip(y, numbers(71, len(y), 3e-3))]

        def dump(values):
            return normdiff_dump([("first", "Linear", {"output.0": ("F32", (8, 32), numbers(72, 256))}),
                                  ("probs", "Softmax", {"output.0": ("F32", (8, 32), values)})])
        report = self.report(dump(y), dump(held))
        self.assert_cause(report, "probs", "dtype_effective", ("supported",))

    def test_a_norm_fed_and_kept_in_bfloat16_is_told_from_one_that_is_rounded_throughout(self):
        x, shape = numbers(73, ROWS * WIDTH), (ROWS, WIDTH)
        lowered = [bf16(v) for v in norm([bf16(v) for v in x], 74)]
        report = self.report(self.one("LayerNorm", shape, ("F32", shape, x), norm(x, 74)),
                             self.one("LayerNorm", shape, ("F32", shape, x), lowered))
        found = self.assert_cause(report, "layer", "norm_internal_lowp")
        self.assertEqual(found["parameters"]["place"], "the input and the output")

    def test_a_damaged_score_behind_a_mask_is_not_called_transposed(self):
        tokens, head = 12, 4
        draw, scores = random.Random(75), []
        for row in range(tokens):
            scores += [single(draw.gauss(0, 1)) if column <= row else -math.inf for column in range(tokens)]
        wrong = list(scores)
        wrong[7 * tokens + 2] *= 1.25
        q = ("F32", (1, 1, tokens, head), numbers(76, tokens * head))
        report = self.report(*(self.one("Scores", (1, 1, tokens, tokens), q, values) for values in (scores, wrong)))
        self.assertEqual(report["first_divergence"]["layer"], "layer")
        self.assertNotIn("transposed", [cause["id"] for cause in report["causes"]])

    def test_many_short_channels_in_reverse_are_a_permutation_in_float16_as_well(self):
        width = 48
        y = [half(v) for v in numbers(77, 2 * width)]
        turned = [v for at in (0, width) for v in reversed(y[at:at + width])]
        x = ("F16", (2, 8), [half(v) for v in numbers(78, 16)])
        report = self.report(*(self.one("Linear", (2, width), x, values, "F16") for values in (y, turned)))
        self.assert_cause(report, "layer", "channels_permuted")
        other = [half(v) for v in numbers(79, 2 * width)]
        report = self.report(*(self.one("Linear", (2, width), x, values, "F16") for values in (y, other)))
        self.assertNotIn("channels_permuted", [cause["id"] for cause in report["causes"]])

    def test_the_channels_of_a_linear_layer_on_images_are_their_last_axis(self):
        shape, width = (2, 3, 3, 8), 8
        x = ("F32", shape, numbers(90, 144))
        y, bias = numbers(91, 144), numbers(92, width)
        wrong = [single(v - bias[at % width]) for at, v in enumerate(y)]
        report = self.report(*(self.one("Linear", shape, x, values) for values in (y, wrong)))
        self.assert_cause(report, "layer", "bias_dropped", FITTED)

    def test_the_second_axis_of_an_activation_between_images_is_its_channels(self):
        shape = (2, 6, 4, 4)
        x = numbers(93, 192)
        y = [max(v, 0.) for v in x]
        turned = [v for n in range(2) for c in reversed(range(6)) for v in y[(n * 6 + c) * 16:(n * 6 + c + 1) * 16]]
        report = self.report(*(self.one("ReLU", shape, ("F32", shape, x), values) for values in (y, turned)))
        self.assert_cause(report, "layer", "channels_permuted")

    def test_integers_with_a_scale_for_each_head_are_found(self):
        heads, tokens, head = 3, 8, 6
        shape, size = (2, heads, tokens, head), tokens * head
        y = numbers(94, 2 * heads * size)
        of = [at // size % heads for at in range(len(y))]
        step = [max(abs(v) for v, g in zip(y, of) if g == h) / 127 for h in range(heads)]
        held = [single(round(v / step[g]) * step[g]) for v, g in zip(y, of)]
        report = self.report(*(self.one("Rotary", shape, ("F32", shape, numbers(95, len(y))), values)
                               for values in (y, held)))
        self.assert_cause(report, "layer", "quantised")

    def test_a_long_sum_taken_term_by_term_is_no_fault(self):
        terms, outputs = 4608, 32
        x, weight = numbers(96, terms), numbers(97, terms * outputs, .02)
        exact, running = [], []
        for o in range(outputs):
            row, total = weight[o * terms:(o + 1) * terms], 0.
            exact.append(single(math.fsum(a * b for a, b in zip(x, row))))
            for a, b in zip(x, row):
                total = single(total + single(a * b))
            running.append(total)

        def dump(y):
            return normdiff_dump([("before", "Conv2d", {"output.0": ("F32", (1, terms), x)}),
                                  ("fc", "Linear", {"input.0": ("F32", (1, terms), x), "output.0": ("F32", (1, outputs), y),
                                                    "param.weight": ("F32", (outputs, terms), weight)})])
        report = self.report(dump(exact), dump(running))
        self.assertGreater(report["layers"][1]["drift"], 1e-7)
        self.assertIsNone(report["first_divergence"])

    # --- BatchNorm with few values a channel ---

    def batch_norm(self, x, batch, rounded, values=8, eps=1e-3):
        """Of [values, channels, 1, 1]; with running statistics of its own, or the batch's."""
        channels, out = len(x) // values, []
        weight, bias = [1 + w for w in numbers(80, channels, .3)], numbers(81, channels, .2)
        mean, var = numbers(82, channels, .3), [abs(v) + .3 for v in numbers(83, channels)]
        if batch:
            columns = [[x[n * channels + c] for n in range(values)] for c in range(channels)]
            mean = [sum(column) / values for column in columns]
            var = [sum((v - m) ** 2 for v in column) / values for column, m in zip(columns, mean)]
        for at, v in enumerate(x):
            c = at % channels
            out.append(rounded((v - mean[c]) / math.sqrt(var[c] + eps) * weight[c] + bias[c]))
        return out

    def batch_pair(self, x, other, batch, rounded, dtype, values=8):
        shape = (values, len(x) // values, 1, 1)
        return self.report(*(self.one("BatchNorm2d", shape, (dtype, shape, v),
                                      self.batch_norm(v, batch, rounded, values), dtype) for v in (x, other)))

    def test_a_channel_that_is_constant_on_one_side_accuses_nobody(self):
        channels, values = 40, 8
        x = [half(v) for v in numbers(84, values * channels)]
        other = [half(v * (1 + e)) for v, e in zip(x, numbers(85, len(x), 1e-2))]
        for n in range(values):  # behind a ReLU that cut all of it
            x[n * channels + 7] = 0.
            other[n * channels + 7] = half(0.02 * n)
        report = self.batch_pair(x, other, False, half, "F16")
        layer = report["layers"][1]
        self.assertNotIn(layer["role"], ("origin", "gap"), report["first_divergence"])

    def test_an_eps_that_is_large_beside_the_variances_is_no_other_scale(self):
        x = [v * .05 for v in numbers(86, 8 * 64)]
        other = [single(v * (1 + e)) for v, e in zip(x, numbers(87, len(x), 2e-6))]
        report = self.batch_pair([single(v) for v in x], other, True, single, "F32")
        self.assertIsNone(report["first_divergence"])

    def test_four_values_a_channel_are_enough_to_name_a_cause(self):
        channels, values = 64, 4
        x = numbers(88, values * channels)
        shape = (values, channels, 1, 1)
        mean = numbers(82, channels, .3)
        y = self.batch_norm(x, False, single, values)
        wrong = [single(v + (x[at] - m) * 0 + (x[at] - mean[at % channels]) /
                        math.sqrt(abs(numbers(83, channels)[at % channels]) + .3 + 1e-3))
                 for at, (v, m) in enumerate(zip(y, x))]
        report = self.report(*(self.one("BatchNorm2d", shape, ("F32", shape, x), v) for v in (y, wrong)))
        self.assertIn("one_plus_weight", [cause["id"] for cause in report["causes"][:3]])


for name in [name for name in dir(Streams) if name.startswith("test_")]:
    setattr(Others, name, None)  # what is inherited is asked once


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
