"""Steps of training: the optimiser of one run moves the weights differently, through the tool.

  python3 tests/contract/test_optimizer.py PATH_TO_NORMDIFF [unittest arguments]

Weights are moved here by the formulas of SGD and AdamW, rounded to float32 as the frameworks do.
"""
import json
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
WIDTH, CHANNELS, ROWS = 24, 32, 4


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def numbers(seed, count, scale):
    draw = random.Random(seed)
    return [single(draw.gauss(0, scale)) for _ in range(count)]


X = numbers(1, ROWS * WIDTH, 1)
START = {"fc1": numbers(2, CHANNELS * WIDTH, 0.2), "fc2": numbers(3, CHANNELS * WIDTH, 0.2)}
GRADIENT = {"fc1": numbers(4, CHANNELS * WIDTH, 1e-2), "fc2": numbers(5, CHANNELS * WIDTH, 1e-2)}


def sgd(weights, gradients, rate, decay=0):
    return [single(w - single(rate * single(g + single(decay * w)))) for w, g in zip(weights, gradients)]


def adamw(weights, gradients, rate, decay):
    return [single(single(w * (1 - rate * decay)) - single(rate * single(g / (abs(g) + 1e-8))))
            for w, g in zip(weights, gradients)]


def step(weights, gradients, number):
    y = {name: [sum(X[r * WIDTH + k] * w[c * WIDTH + k] for k in range(WIDTH))
                for r in range(ROWS) for c in range(CHANNELS)] for name, w in weights.items()}
    shape = (CHANNELS, WIDTH)
    layers = [(name, "Linear", {"input.0": ("F32", (ROWS, WIDTH), X), "output.0": ("F32", (ROWS, CHANNELS), y[name]),
                                "param.weight": ("F32", shape, weights[name])}) for name in ("fc1", "fc2")]
    layers += [(name, "Linear", {"grad.weight": ("F32", shape, gradients[name])}, {}, {"direction": "backward"})
               for name in ("fc2", "fc1")]
    return normdiff_dump(layers, step=number, rank=0)


class Optimizer(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-optimizer-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_of(self, name, move, gradients=None):
        gradients = gradients or GRADIENT
        after = {layer: move(START[layer], gradients[layer]) for layer in START}
        write(self.dir, name + "/step0/rank0.dump", step(START, gradients, 0))
        write(self.dir, name + "/step1/rank0.dump", step(after, GRADIENT, 1))
        return os.path.join(self.dir, name)

    def report(self, *paths, options=("-f", "json")):
        done = subprocess.run([TOOL, "--fail-on", "never", *options, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout) if options[-1] == "json" else done.stdout.decode()

    def compare(self, reference, candidate, **gradients):
        return self.report(self.run_of("gpu", reference), self.run_of("npu", candidate, **gradients))

    def assert_update(self, report, status, side="candidate"):
        first = report["first_divergence"]
        self.assertEqual((first["layer"], first["step"], first["role"]), ("fc1", 1, "origin"))
        self.assertEqual(first["slot"], "param.weight")
        self.assertEqual([(c["id"], c["status"], c["side"]) for c in report["causes"]],
                         [("optimizer_update", status, side)])
        self.assertEqual({layer["role"] for layer in report["layers"] if layer["step"] == 0}, {"clean"})
        return report["causes"][0]

    def test_a_lost_weight_decay_is_recovered(self):
        cause = self.assert_update(self.compare(lambda w, g: sgd(w, g, 0.01, 0.1), lambda w, g: sgd(w, g, 0.01)),
                                   "confirmed")
        found = cause["parameters"]
        self.assertEqual(found["reference"], "SGD(lr=0.01, weight_decay=0.1)")
        self.assertEqual(found["candidate"], "SGD(lr=0.01, weight_decay=0)")
        self.assertAlmostEqual(found["reference_decay"], 0.1, delta=1e-3)

    def test_another_rate_of_adamw_is_recovered(self):
        found = self.assert_update(self.compare(lambda w, g: adamw(w, g, 1e-3, 0.01),
                                                lambda w, g: adamw(w, g, 2e-3, 0.01)), "confirmed")["parameters"]
        self.assertAlmostEqual(found["reference_lr"], 1e-3, delta=1e-7)
        self.assertAlmostEqual(found["candidate_lr"], 2e-3, delta=1e-7)

    def test_a_skipped_step_is_named_on_the_side_that_skipped_it(self):
        moved, still = (lambda w, g: sgd(w, g, 0.01)), (lambda w, g: w)
        cause = self.assert_update(self.compare(moved, still), "confirmed")
        self.assertIn("took no step", cause["summary"])
        shutil.rmtree(self.dir)
        os.mkdir(self.dir)
        self.assert_update(self.compare(still, moved), "confirmed", "reference")

    def test_equal_optimisers_agree(self):
        report = self.compare(lambda w, g: adamw(w, g, 1e-3, 0.01), lambda w, g: adamw(w, g, 1e-3, 0.01))
        self.assertEqual((report["verdict"], report["causes"]), ("agree", []))

    def test_gradients_that_differ_are_the_origin_and_not_the_optimiser(self):
        other = {name: [1.25 * value for value in values] for name, values in GRADIENT.items()}
        report = self.compare(lambda w, g: sgd(w, g, 0.01), lambda w, g: sgd(w, g, 0.02), gradients=other)
        self.assertEqual(report["first_divergence"]["step"], 0)
        self.assertNotIn("optimizer_update", [cause["id"] for cause in report["causes"]])

    def test_the_text_says_both_rules_in_both_languages(self):
        paths = (self.run_of("gpu", lambda w, g: sgd(w, g, 0.01, 0.1)), self.run_of("npu", lambda w, g: sgd(w, g, 0.01)))
        for language in ("en", "zh"):
            text = self.report(*paths, options=("--lang", language))
            self.assertIn("SGD(lr=0.01, weight_decay=0.1)", " ".join(text.split()))


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
