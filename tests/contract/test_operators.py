"""Outputs of norm operators from outside: paired by what they are, variances beside rstd, names in listings.

  python3 tests/contract/test_operators.py PATH_TO_NORMDIFF [unittest arguments]
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from dumps import normdiff_dump, write

TOOL = ""
ROWS, WIDTH = 12, 16


def inputs():
    return [[math.sin(0.7 * r + 1.3 * c) * (1 + r % 5) for c in range(WIDTH)] for r in range(ROWS)]


def layer_norm(eps):
    """y, mean, variance, rstd of the rows."""
    y, means, variances, rstds = [], [], [], []
    for row in inputs():
        mean = sum(row) / WIDTH
        variance = sum((v - mean) ** 2 for v in row) / WIDTH
        rstd = 1 / math.sqrt(variance + eps)
        y += [(v - mean) * rstd for v in row]
        means.append(mean)
        variances.append(variance)
        rstds.append(rstd)
    return y, means, variances, rstds


def dump(kind, outputs, **attributes):
    slots = {"input.0": ("F64", (ROWS, WIDTH), [v for row in inputs() for v in row])}
    for i, values in enumerate(outputs):
        slots["output.%d" % i] = ("F64", (ROWS, WIDTH) if len(values) > ROWS else (ROWS, 1), values)
    return normdiff_dump([("norm", kind, slots, attributes)])


class Operators(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-operators-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_tool(self, *args):
        done = subprocess.run([TOOL, "-f", "json"] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"))
        return done.returncode, json.loads(done.stdout)

    def compare(self, reference, candidate):
        status, report = self.run_tool(write(self.dir, "ref.bin", reference), write(self.dir, "cand.bin", candidate))
        return status, {slot["slot"]: slot for slot in report["layers"][0]["slots"]}

    def test_a_variance_is_converted_beside_an_rstd(self):
        y, mean, variance, rstd = layer_norm(1e-5)
        status, slots = self.compare(dump("native_layer_norm", [y, mean, rstd], eps=1e-5),
                                     dump("LayerNorm", [y, mean, variance], epsilon=1e-5))
        self.assertEqual(status, 0)
        self.assertLess(slots["output.2"]["drift"], 1e-12)
        self.assertIn("variance_as_rstd", slots["output.2"]["notes"])
        status, slots = self.compare(dump("LayerNorm", [y, mean, variance], epsilon=1e-5),
                                     dump("LayerNormV3", [y, mean, rstd], epsilon=1e-5))
        self.assertEqual((status, "variance_as_rstd" in slots["output.2"]["notes"]), (0, True))

    def test_the_operators_own_default_eps_stands_in_where_none_is_declared(self):
        y, mean, variance, rstd = layer_norm(1e-7)  # IR LayerNorm: 1e-7
        _, slots = self.compare(dump("native_layer_norm", [y, mean, rstd], eps=1e-7), dump("LayerNorm", [y, mean, variance]))
        self.assertLess(slots["output.2"]["drift"], 1e-12)

    def test_one_name_with_the_other_statistic_is_recognised_and_stays_a_fault(self):
        y, mean, variance, rstd = layer_norm(1e-5)
        status, slots = self.compare(dump("BatchNormV3", [y, mean, variance, mean, rstd], epsilon=1e-5),
                                     dump("BatchNormV3", [y, mean, variance, mean, variance], epsilon=1e-5))
        self.assertEqual(status, 1)
        self.assertIn("variance_for_rstd", slots["output.4"]["notes"])
        self.assertEqual(slots["output.4"]["tier"], "fault")

    def test_outputs_in_another_order_are_paired_by_what_they_are(self):
        y, mean, _, rstd = layer_norm(1e-6)
        status, slots = self.compare(dump("native_layer_norm", [y, mean, rstd]), dump("DeepNorm", [mean, rstd, y]))
        self.assertEqual((status, {s: slots[s]["tier"] for s in slots}),
                         (0, {"input.0": "exact", "output.0": "exact", "output.1": "exact", "output.2": "exact"}))
        status, slots = self.compare(dump("DeepNormModule", [y]), dump("npu_deep_norm", [mean, rstd, y]))
        self.assertEqual((status, slots["output.0"]["tier"]), (0, "exact"))

    def test_an_rstd_is_a_slot_of_its_own(self):
        y, _, _, rstd = layer_norm(1e-6)
        wrong = [v * 1.5 for v in rstd]
        status, slots = self.compare(dump("npu_rms_norm", [y, rstd]), dump("npu_rms_norm", [y, wrong]))
        self.assertEqual((status, slots["output.0"]["tier"], slots["output.1"]["tier"]), (1, "exact", "fault"))

    def test_the_listing_names_outputs(self):
        y, mean, _, rstd = layer_norm(1e-6)
        _, listing = self.run_tool("--list", write(self.dir, "d.bin", dump("DeepNorm", [mean, rstd, y])))
        names = {slot["slot"]: slot["meaning"] for slot in listing["layers"][0]["slots"]}
        self.assertEqual(names, {"input.0": None, "output.0": "mean", "output.1": "rstd", "output.2": "y"})
        done = subprocess.run([TOOL, "--list", os.path.join(self.dir, "d.bin")], stdout=subprocess.PIPE)
        self.assertIn(b"the operator's rstd", done.stdout)


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
