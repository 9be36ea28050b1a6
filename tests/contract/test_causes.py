"""Causes that only a whole dump can show, through the tool: padding that the dump declares, weights
proved through real files, products in both directions.

  python3 tests/contract/test_causes.py PATH_TO_NORMDIFF [unittest arguments]

Expected numbers are worked by hand; products are plain sums of Python floats.
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
SAMPLES, TOKENS, WIDTH, CHANNELS = 3, 10, 12, 8


def numbers(seed, count):
    draw = random.Random(seed)
    return [draw.gauss(0, 1) for _ in range(count)]


X = numbers(1, SAMPLES * TOKENS * WIDTH)
W = [value / 3 for value in numbers(2, CHANNELS * WIDTH)]


def product(x, w):
    return [sum(x[r * WIDTH + k] * w[c * WIDTH + k] for k in range(WIDTH))
            for r in range(SAMPLES * TOKENS) for c in range(CHANNELS)]


def tensor(values, last):
    return ("F32", (SAMPLES, TOKENS, last), values)


def run(y, weights=None, **slot):
    slots = {"input.0": tensor(X, WIDTH), "output.0": {"tensor": tensor(y, CHANNELS), **slot}}
    if weights is not None:
        slots["param.weight"] = ("F32", (CHANNELS, WIDTH), weights)
    return normdiff_dump([("first", "Identity", {"output.0": tensor(X, WIDTH)}),
                          ("fc", "Linear", slots)])


class Causes(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-causes-")
        self.addCleanup(shutil.rmtree, self.dir)

    def causes(self, reference, candidate):
        paths = [write(self.dir, "reference.dump", reference), write(self.dir, "candidate.dump", candidate)]
        done = subprocess.run([TOOL, "-f", "json", "--fail-on", "never", *paths], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        report = json.loads(done.stdout)
        self.assertEqual(report["first_divergence"]["layer"], "fc")
        return [(cause["id"], cause["status"], cause["side"]) for cause in report["causes"]]

    def test_a_tail_of_the_reference_is_seen_where_products_are_sampled(self):
        # 128,000 outputs of which at most 65,536 are recomputed: 1.95 in each slice.
        rows, columns, width, stale = 320, 400, 4, 2000
        x, w = numbers(5, rows * width), numbers(6, columns * width)
        y = [sum(x[r * width + k] * w[c * width + k] for k in range(width))
             for r in range(rows) for c in range(columns)]
        old = y[:-stale] + numbers(7, stale)
        y = [value * (1 + 1e-7 * (i % 3 - 1)) for i, value in enumerate(y)]

        def whole(output):
            return normdiff_dump([("first", "Identity", {"output.0": ("F32", (rows, width), x)}),
                                  ("fc", "Linear", {"input.0": ("F32", (rows, width), x),
                                                    "output.0": ("F32", (rows, columns), output),
                                                    "param.weight": ("F32", (columns, width), w)})])
        self.assertEqual(self.causes(whole(old), whole(y))[0], ("tail_not_written", "confirmed", "reference"))
        self.assertEqual(self.causes(whole(y), whole(old))[0], ("tail_not_written", "confirmed", "candidate"))

    def test_padding_that_one_dump_declares_explains_garbage_behind_it(self):
        y = product(X, W)
        garbage = list(y)
        for i in range((2 * TOKENS - 4) * CHANNELS, 2 * TOKENS * CHANNELS):   # four tokens of sample 1
            garbage[i] = 77.
        found = self.causes(run(y, W), run(garbage, None, valid=[TOKENS, TOKENS - 4, TOKENS]))
        self.assertEqual(found[0][:2], ("padded_positions", "confirmed"))

    def test_without_that_declaration_one_sample_is_no_padding(self):
        y = product(X, W)
        garbage = list(y)
        for i in range((2 * TOKENS - 4) * CHANNELS, 2 * TOKENS * CHANNELS):
            garbage[i] = 77.
        found = self.causes(run(y, W), run(garbage))
        self.assertNotIn("padded_positions", [cause for cause, _, _ in found])

    def test_a_declaration_does_not_excuse_what_differs_before_it(self):
        y = product(X, W)
        garbage = list(y)
        for i in range((2 * TOKENS - 4) * CHANNELS, 2 * TOKENS * CHANNELS):
            garbage[i] = 77.
        found = self.causes(run(y, W), run(garbage, None, valid=[TOKENS - 3]))
        self.assertNotIn("padded_positions", [cause for cause, _, _ in found])

    def test_one_other_weight_is_proved_on_whichever_side_has_it(self):
        other = list(W)
        other[3 * WIDTH + 5] += 1
        right, wrong = product(X, W), product(X, other)
        found = self.causes(run(right, W), run(wrong))
        self.assertEqual(found[0], ("different_weights", "confirmed", "candidate"))
        found = self.causes(run(wrong, W), run(right))
        self.assertEqual(found[0], ("different_weights", "confirmed", "reference"))

    def test_a_confirmed_cause_leaves_no_supported_ones_beside_it(self):
        found = self.causes(run(product(X, W), W), run(product(X, [1.02 * w for w in W])))
        self.assertEqual(found[0], ("different_weights", "confirmed", "candidate"))
        self.assertEqual([status for _, status, _ in found[1:] if status != "possible"], [])


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    unittest.main()
