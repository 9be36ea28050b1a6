"""Honest backward passes: what rounding alone does to gradients is nobody's fault, through the tool.

  python3 tests/contract/test_gradients.py PATH_TO_NORMDIFF [unittest arguments]

Gradients are computed here by the chain rule; the candidate's forward values are the reference's and
a little noise.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

from dumps import normdiff_dump, write

TOOL = ""
BACKWARD = {"direction": "backward"}
ROWS, WIDTH = 8, 16


def numbers(seed, count, scale=1.):
    draw = random.Random(seed)
    return [draw.gauss(0, scale) for _ in range(count)]


def noisy(values, seed, size=1e-7):
    return [v * (1 + e) for v, e in zip(values, numbers(seed, len(values), size))]


def sums(gradient, width):
    return [sum(gradient[r * width + c] for r in range(len(gradient) // width)) for c in range(width)]


class Gradients(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-gradients-")
        self.addCleanup(shutil.rmtree, self.dir)

    def report(self, reference, candidate, exit_code):
        paths = [write(self.dir, name, content) for name, content in (("gpu.dump", reference), ("npu.dump", candidate))]
        done = subprocess.run([TOOL, "-f", "json", *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"))
        self.assertEqual(done.returncode, exit_code, done.stdout.decode() + done.stderr.decode())
        return json.loads(done.stdout)

    def notes(self, report, layer, slot):
        return [s["notes"] for entry in report["layers"] if entry["name"] == layer for s in entry["slots"]
                if s["slot"] == slot and "gradient_at_kink" in s["notes"]]

    # --- an activation's kink ---

    def relu(self, values, gradient, wrong=None, forward=True):
        """fc -> relu, and the gradient back through both; `wrong`: an element whose gradient is lost."""
        back = [g if v > 0 else 0. for v, g in zip(values, gradient)]
        if wrong is not None:
            back[wrong] = 0.
        shape = (ROWS, WIDTH)
        layers = [("fc", "Linear", {"output.0": ("F32", shape, values)}),
                  ("relu", "ReLU", {"input.0": ("F32", shape, values),
                                    "output.0": ("F32", shape, [max(v, 0.) for v in values])})] if forward else []
        layers += [("relu", "ReLU", {"input.0": ("F32", shape, gradient), "output.0": ("F32", shape, back)}, {}, BACKWARD),
                   ("fc", "Linear", {"input.0": ("F32", shape, back), "grad.bias": ("F32", (WIDTH,), sums(back, WIDTH))},
                    {}, BACKWARD)]
        return normdiff_dump(layers)

    def crossing(self):
        values = [v if abs(v) > 1e-3 else 1e-3 for v in numbers(1, ROWS * WIDTH)]
        other = noisy(values, 2)
        values[37], other[37] = 4e-8, -3e-8
        gradient = numbers(3, ROWS * WIDTH)
        gradient[37] = 0.6
        return values, other, gradient

    def test_a_value_on_either_side_of_zero_loses_its_gradient_on_one_side_only(self):
        values, other, gradient = self.crossing()
        for pair in ((values, other), (other, values)):
            report = self.report(self.relu(pair[0], gradient), self.relu(pair[1], gradient), 0)
            self.assertIsNone(report["first_divergence"])
            self.assertEqual(report["summary"]["fault"], 0)
            self.assertTrue(self.notes(report, "relu", "output.0"))
            self.assertTrue(self.notes(report, "fc", "grad.bias"), "the sum over that column is as local")

    def test_the_same_loss_is_a_fault_where_the_value_is_far_from_zero(self):
        values, other, gradient = self.crossing()
        values[37] = other[37] = 0.7
        report = self.report(self.relu(values, gradient), self.relu(other, gradient, wrong=37), 1)
        self.assertEqual((report["first_divergence"]["layer"], report["first_divergence"]["role"]), ("relu", "origin"))
        self.assertIn("localised", [layer["fails"] for layer in report["layers"]])

    def test_a_second_lost_element_is_not_excused_by_the_first(self):
        values, other, gradient = self.crossing()
        values[90] = other[90] = 0.7
        report = self.report(self.relu(values, gradient), self.relu(other, gradient, wrong=90), 1)
        self.assertEqual(report["layers"][2]["fails"], "localised")

    def test_without_the_forward_values_nothing_is_excused(self):
        values, other, gradient = self.crossing()
        report = self.report(self.relu(values, gradient, forward=False), self.relu(other, gradient, forward=False), 1)
        self.assertEqual(report["layers"][0]["fails"], "localised")

    # --- a maximum that two values share ---

    def pool(self, values, gradient, chosen=None):
        """MaxPool2d(2) over 32 x 32: each gradient goes to the largest of its window."""
        out, back = [], [0.] * 1024
        for r in range(16):
            for c in range(16):
                places = [(2 * r + i) * 32 + 2 * c + j for i in range(2) for j in range(2)]
                best = max(places, key=lambda p: values[p])
                if chosen is not None and chosen[0] in places:
                    best = chosen[1]
                out.append(values[best])
                back[best] = gradient[16 * r + c]
        whole, half = (1, 1, 32, 32), (1, 1, 16, 16)
        return normdiff_dump([
            ("pool", "MaxPool2d", {"input.0": ("F32", whole, values), "output.0": ("F32", half, out)}),
            ("pool", "MaxPool2d", {"input.0": ("F32", half, gradient), "output.0": ("F32", whole, back)}, {}, BACKWARD)])

    def shared(self):
        values, gradient = [abs(v) for v in numbers(4, 1024, 0.5)], numbers(5, 256)
        gradient[17] = 0.7  # of the window of places 66, 67, 98, 99
        return values, gradient

    def test_a_shared_maximum_gives_its_gradient_to_either(self):
        values, gradient = self.shared()
        values[66], values[99] = 3., 3. + 2.4e-7
        other = noisy(values, 6, 1e-8)
        other[66], other[99] = 3. + 2.4e-7, 3.
        report = self.report(self.pool(values, gradient), self.pool(other, gradient), 0)
        self.assertIsNone(report["first_divergence"])
        self.assertTrue(self.notes(report, "pool", "output.0"))

    def test_a_gradient_given_to_a_smaller_value_is_a_fault(self):
        values, gradient = self.shared()
        values[66], values[99] = 3., 2.5
        report = self.report(self.pool(values, gradient), self.pool(noisy(values, 6, 1e-8), gradient, (66, 99)), 1)
        self.assertEqual(report["layers"][1]["fails"], "localised")

    # --- sums that are zero in theory ---

    def convolution(self, dtype, bias):
        shape, gradient = (2, 4, 4, 4), numbers(7, 128)
        return normdiff_dump([("conv", "Conv2d", {
            "input.0": (dtype, shape, gradient), "grad.weight": ("F32", (4, 4), numbers(8, 16)),
            "grad.bias": ("F32", (4,), bias)}, {}, BACKWARD)])

    def test_what_bfloat16_leaves_of_a_sum_of_zero_is_residue_in_whatever_it_is_kept(self):
        report = self.report(self.convolution("F32", numbers(9, 4, 1e-9)),
                             self.convolution("BF16", numbers(10, 4, 1e-4)), 0)
        bias = report["layers"][0]["slots"][2]
        self.assertGreater(bias["drift"], 1e3)
        self.assertEqual(bias["tier"], "elevated")
        self.assertIn("rounding_residue", bias["notes"])
        self.assertEqual(report["causes"], [])

    def test_a_gradient_that_is_there_on_the_reference_is_no_residue(self):
        bias = numbers(9, 4, 0.5)
        report = self.report(self.convolution("F32", bias), self.convolution("BF16", [0.] * 4), 1)
        self.assertEqual(report["layers"][0]["slots"][2]["tier"], "fault")

    # --- bias gradients and the forward pass behind them ---

    def linear(self, gradient, saved=None):
        """Column sums that nearly cancel; `saved`: the forward output of the same layer."""
        shape = (ROWS, WIDTH)
        layers = [] if saved is None else [("act", "GELU", {"output.0": ("F32", shape, saved)})]
        kind = ("fc", "Linear", {"input.0": ("F32", shape, gradient),
                                 "grad.bias": ("F32", (WIDTH,), sums(gradient, WIDTH))}, {}, BACKWARD)
        return normdiff_dump(layers + [kind])

    def test_a_bias_gradient_may_err_by_as_much_as_what_cancelled_in_it(self):
        gradient = numbers(11, ROWS * WIDTH)
        for c in range(WIDTH):  # of each column a thousandth is left
            total = sum(gradient[r * WIDTH + c] for r in range(ROWS))
            gradient[c] -= total * 0.999
        report = self.report(self.linear(gradient), self.linear(noisy(gradient, 12, 1e-6)), 0)
        self.assertEqual([cause["id"] for cause in report["causes"]], [])
        self.assertNotEqual(report["layers"][0]["role"], "origin")

    def test_a_gradient_follows_the_forward_values_that_it_is_computed_with(self):
        shape, values, gradient = (ROWS, WIDTH), numbers(13, ROWS * WIDTH), numbers(14, ROWS * WIDTH)
        other = noisy(values, 15, 1e-4)

        def dump(x, forward):
            layers = [("act", "Square", {"input.0": ("F32", shape, x)})] if forward else []
            layers.append(("act", "Square", {"input.0": ("F32", shape, gradient),
                                             "output.0": ("F32", shape, [2 * g * v for g, v in zip(gradient, x)])},
                           {}, BACKWARD))
            return normdiff_dump([("embed", "Embedding", {"output.0": ("F32", shape, x)})] * forward + layers)
        report = self.report(dump(values, True), dump(other, True), 0)
        self.assertEqual(report["layers"][-1]["role"], "inherited")
        report = self.report(dump(values, False), dump(other, False), 0)
        self.assertEqual(report["layers"][-1]["role"], "origin", "nothing else was dumped that accounts for it")

    def test_a_layer_of_which_only_the_input_was_dumped_inherits(self):
        gradient, shape = numbers(16, ROWS * WIDTH), (ROWS, WIDTH)

        def dump(g):
            return normdiff_dump([
                ("out", "Linear", {"output.0": ("F32", shape, g)}, {}, BACKWARD),
                ("drop", "Dropout", {"input.0": ("F32", shape, g)}, {}, BACKWARD)])
        report = self.report(dump(gradient), dump(noisy(gradient, 17, 1e-3)), 0)
        self.assertEqual(report["layers"][1]["role"], "inherited")


class Steps(unittest.TestCase):
    """An optimizer that divides by the gradient's size makes whole steps of noise."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-steps-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_of(self, name, seed):
        shape, width, rate = (ROWS, WIDTH), WIDTH, 1e-3
        x, bias = numbers(20, ROWS * WIDTH), numbers(21, WIDTH, .1)
        noise = numbers(seed, WIDTH, 1e-10)  # what is left of a sum that is zero in theory
        weight = numbers(22, WIDTH)
        for step in range(2):
            y = [v * weight[i % width] + bias[i % width] for i, v in enumerate(x)]
            layers = [("fc", "Affine", {"input.0": ("F32", shape, x), "output.0": ("F32", shape, y),
                                        "param.weight": ("F32", (WIDTH,), weight), "param.bias": ("F32", (WIDTH,), bias)})]
            layers += [(other, "Affine", {"param.weight": ("F32", (WIDTH,), noisy(numbers(23 + k, WIDTH), seed, 1e-7 * step))})
                       for k, other in enumerate(("a", "b", "c"))]
            layers.append(("fc", "Affine", {"grad.weight": ("F32", (WIDTH,), numbers(24, WIDTH)),
                                            "grad.bias": ("F32", (WIDTH,), noise)}, {}, BACKWARD))
            write(self.dir, "%s/step%d/rank0.dump" % (name, step), normdiff_dump(layers, step=step, rank=0))
            bias = [b - rate * (1 if g > 0 else -1) for b, g in zip(bias, noise)]
        return os.path.join(self.dir, name)

    def test_weights_moved_apart_by_noise_are_not_said_to_have_been_loaded_differently(self):
        done = subprocess.run([TOOL, "-f", "json", self.run_of("gpu", 30), self.run_of("npu", 31)], stdout=subprocess.PIPE)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0, report["reason"])
        self.assertNotIn("confirmed", [cause["status"] for cause in report["causes"]])
        self.assertNotIn("origin", [layer["role"] for layer in report["layers"]])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
