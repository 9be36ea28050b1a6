"""What is known of Ascend's operators, as the checklist tells it: defaults left alone, types that no page lists,
operators that another one replaced, where an operator rounds.

  python3 tests/contract/test_ascend.py PATH_TO_NORMDIFF [unittest arguments]
"""
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from cann_dumps import Tensor, v2
from dumps import normdiff_dump, pack, write

TOOL = ""
ROWS, WIDTH = 24, 32


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bf16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def f16(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


ROUND = {"F32": f32, "BF16": bf16, "F16": f16}


def noise(count, seed):
    """Numbers between -1 and 1, from a linear congruential generator."""
    out, state = [], seed
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        out.append((state >> 11) / float(1 << 52) - 1)
    return out


def rows(scale, dtype="F32", seed=1):
    flat = noise(ROWS * WIDTH, seed)
    return [[ROUND[dtype](scale * (1 + r % 5) * flat[r * WIDTH + c]) for c in range(WIDTH)] for r in range(ROWS)]


def norm(x, eps, centre=True, dtype="F32"):
    """y, mean, variance, rstd of the rows; y is rounded to the type."""
    y, means, variances, rstds = [], [], [], []
    for row in x:
        mean = sum(row) / len(row) if centre else 0.0
        variance = sum((v - mean) ** 2 for v in row) / len(row)
        rstd = 1 / math.sqrt(variance + eps)
        y += [ROUND[dtype]((v - mean) * rstd) for v in row]
        means.append(mean)
        variances.append(variance)
        rstds.append(rstd)
    return y, means, variances, rstds


def flat(x):
    return [v for row in x for v in row]


class Ascend(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-ascend-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_tool(self, *args):
        done = subprocess.run([TOOL] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"))
        return done.returncode, done.stdout.decode()

    def compare(self, reference, candidate, *options):
        paths = [write(self.dir, "ref/ref.bin", reference),
                 write(self.dir, candidate[0], candidate[1]) if isinstance(candidate, tuple)
                 else write(self.dir, "cand/cand.bin", candidate)]
        status, text = self.run_tool("-f", "json", *options, *paths)
        report = json.loads(text)
        self.assertEqual(report["schema"], "normdiff/report/1", report)
        return status, report, {line["id"]: line for line in report["checklist"]}

    def module(self, kind, x, y, dtype="F32", device="npu:0", slots=(), weight=None, **attributes):
        layer = {"input.0": (dtype, (ROWS, WIDTH), flat(x)), "output.0": (dtype, (ROWS, WIDTH), y)}
        if weight is not None:
            layer["param.weight"] = (weight, (WIDTH,), [1.0] * WIDTH)
        layer.update(slots)
        return normdiff_dump([("norm", kind, layer, attributes)], device=device)

    # --- an eps that nobody passed ---

    def test_an_eps_left_at_the_operators_default_is_named_where_the_values_prove_it(self):
        x = rows(1e-3)
        for kind, candidate, eps, default, name in (("LayerNorm", "LayerNorm", 1e-5, 1e-7, "LayerNorm"),
                                                    ("LlamaRMSNorm", "npu_rms_norm", 1e-5, 1e-6, "RmsNorm"),
                                                    ("LayerNorm", "LayerNormV3", 1e-7, 1e-5, "LayerNormV3")):
            centre = "RMS" not in kind
            status, report, lines = self.compare(
                self.module(kind, x, norm(x, eps, centre)[0], device="cuda:0", eps=eps),
                self.module(candidate, x, norm(x, default, centre)[0]))
            self.assertEqual((lines["eps"]["status"], report["causes"][0]["id"]), ("mismatch", "eps"), kind)
            self.assertIn("default of Ascend's %s:" % name, lines["eps"]["evidence"])
            self.assertIsNone(lines["eps"]["declared"]["candidate"])
            self.assertAlmostEqual(float(lines["eps"]["recovered"]["candidate"]) / default, 1, 2)
            self.assertIn("set epsilon=%s on the NPU operator (%s's default is %s)" % (
                ("1e-5" if eps == 1e-5 else "1e-7"), name, "1e-%d" % round(-math.log10(default))), lines["eps"]["advice"])

    def test_a_declared_eps_that_did_not_arrive_is_named_too(self):
        x = rows(1e-3)
        _, _, lines = self.compare(self.module("LayerNorm", x, norm(x, 1e-5)[0], device="cuda:0", eps=1e-5),
                                   self.module("LayerNorm", x, norm(x, 1e-7)[0], eps=1e-5))
        self.assertIn("default of Ascend's LayerNorm", lines["eps"]["evidence"])

    def test_an_eps_that_is_no_default_is_not_called_one(self):
        x = rows(1e-3)
        _, report, lines = self.compare(self.module("LayerNorm", x, norm(x, 1e-5)[0], device="cuda:0", eps=1e-5),
                                        self.module("LayerNorm", x, norm(x, 3e-6)[0]))
        self.assertEqual(report["causes"][0]["id"], "eps")
        self.assertNotIn("default", lines["eps"]["evidence"])
        _, _, lines = self.compare(self.module("LayerNorm", x, norm(x, 1e-5)[0], device="cuda:0", eps=1e-5),
                                   self.module("LayerNorm", x, norm(x, 1e-7)[0], device="cpu"))
        self.assertNotIn("default", lines["eps"]["evidence"])

    def cann(self, kind, outputs, inputs=()):
        content = v2("norm", inputs, outputs)
        return "cand/%s.norm.3.7.1700000000000000" % kind, content

    def test_an_operator_dump_without_eps_and_input_names_the_default_as_suspect(self):
        x = rows(1e-3)
        y = norm(x, 1e-5)[0]
        for kind, text in (("LayerNorm", "Ascend's LayerNorm uses its default 1e-7, the reference has 1e-5"),
                           ("LayerNormV4", None)):
            candidate = self.cann(kind, [Tensor("F32", (ROWS, WIDTH), pack("F32", [v * 1.5 for v in y]))])
            status, report, lines = self.compare(
                self.module("LayerNorm", x, y, device="cuda:0", eps=1e-5), candidate)
            self.assertEqual(status, 1)
            if text is None:  # the default is what the reference has
                self.assertNotIn("default", lines["eps"]["evidence"])
                continue
            self.assertEqual(lines["eps"]["status"], "suspect")
            self.assertIn(text, lines["eps"]["evidence"])
            self.assertTrue(all(c["status"] == "possible" for c in report["causes"] if c["id"] == "eps"))

    def test_inputs_of_an_operator_stand_beside_a_modules_parameters(self):
        x = rows(1)
        gamma, beta = [1 + 0.01 * c for c in range(WIDTH)], [0.1 * c for c in range(WIDTH)]
        y = [f32(v * gamma[i % WIDTH] + beta[i % WIDTH]) for i, v in enumerate(norm(x, 1e-5)[0])]
        reference = self.module("LayerNorm", x, y, device="cuda:0", slots={
            "param.weight": ("F32", (WIDTH,), gamma), "param.bias": ("F32", (WIDTH,), beta)}, eps=1e-5)
        inputs = [Tensor("F32", (ROWS, WIDTH), pack("F32", flat(x))), Tensor("F32", (WIDTH,), pack("F32", gamma)),
                  Tensor("F32", (WIDTH,), pack("F32", [v + 1 for v in beta]))]
        status, report, _ = self.compare(reference, self.cann("LayerNormV3", [
            Tensor("F32", (ROWS, WIDTH), pack("F32", y))], inputs))
        slots = {s["slot"]: s["tier"] for s in report["layers"][0]["slots"]}
        self.assertEqual((slots["param.weight"], slots["param.bias"], slots["input.0"]), ("exact", "fault", "exact"))
        self.assertEqual(report["coverage"]["candidate_only"], [])
        # a framework's function has its arguments in another order
        called = normdiff_dump([("norm", "layer_norm", {
            "input.0": ("F32", (ROWS, WIDTH), flat(x)), "input.2": ("F32", (WIDTH,), gamma), "input.3": ("F32", (WIDTH,), beta),
            "output.0": ("F32", (ROWS, WIDTH), y)})], device="npu:0")
        status, report, _ = self.compare(reference, called)
        self.assertEqual((status, sorted(report["coverage"]["candidate_only"])), (0, ["norm.input.2", "norm.input.3"]))
        # another count is another tensor
        inputs[1] = Tensor("F32", (WIDTH + 1,), pack("F32", gamma + [0.0]))
        _, report, _ = self.compare(reference, self.cann("LayerNormV3", [Tensor("F32", (ROWS, WIDTH), pack("F32", y))], inputs))
        self.assertEqual(report["coverage"]["candidate_only"], ["norm.input.1"])

    def test_the_compiled_graph_declares_what_an_operator_was_given(self):
        x = rows(1e-3)
        y = norm(x, 1e-5)[0]
        graph = {"graph": [{"op": [{"name": "norm", "type": "LayerNorm", "id": 0, "input": [], "attr": [
            {"key": "_datadump_original_op_names", "value": {"list": {"s": ["norm"], "val_type": 1}}},
            {"key": "epsilon", "value": {"f": f32(1e-4)}}, {"key": "is_training", "value": {"b": False}}],
            "output_desc": [{"attr": [{"key": "_datadump_origin_name", "value": {"s": "norm"}}]}]}]}]}
        fusion = write(self.dir, "model.json", json.dumps(graph))
        tensors = [Tensor("F32", (ROWS, WIDTH), pack("F32", v)) for v in (flat(x), [v * 1.5 for v in y])]
        _, _, lines = self.compare(self.module("LayerNorm", x, y, device="cuda:0", eps=1e-5),
                                   self.cann("LayerNorm", tensors[1:], tensors[:1]), "--fusion", fusion)
        self.assertEqual(float(lines["eps"]["declared"]["candidate"]), f32(1e-4))
        self.assertEqual(lines["eps"]["status"], "mismatch")
        self.assertNotIn("default", lines["eps"]["evidence"])

    # --- declared arguments ---

    def test_a_number_that_went_through_float32_is_the_same_argument(self):
        x = rows(1)
        y = norm(x, 1e-5)[0]
        bad = [v * 1.5 for v in y]
        for kind in ("LayerNorm", "MyScale"):
            _, report, lines = self.compare(self.module(kind, x, y, device="cuda:0", eps=1e-5, scale=0.1),
                                            self.module(kind, x, bad, eps=f32(1e-5), scale=f32(0.1)))
            self.assertNotIn("different_argument", [c["id"] for c in report["causes"]])
            self.assertNotIn("eps", [c["id"] for c in report["causes"]])

    def test_arguments_that_differ_are_a_cause(self):
        x = rows(1)
        y = norm(x, 1e-5)[0]
        bad = [v * 1.5 for v in y]
        for key, one, other in (("axis", -1, 1), ("scale", 0.1, 0.125), ("dims", [0, 1], [0, 2]), ("count", 16777216, 16777217),
                                ("eps", 1e-5, 1e-6), ("approximate", "none", "tanh")):
            _, report, _ = self.compare(self.module("Softmax", x, y, device="cuda:0", **{key: one}),
                                        self.module("Softmax", x, bad, **{key: other}))
            causes = {c["id"]: c["parameters"] for c in report["causes"]}
            self.assertEqual(causes["different_argument"]["argument"], key)

    # --- the operator's row ---

    def test_types_that_no_page_lists_are_named_with_the_product(self):
        for device, dtype, weight, text in (
                ("npu:0 Ascend310P3", "BF16", "BF16", "Ascend310P has no bfloat16"),
                ("npu:0 Ascend310P3", "F16", "F32", "RmsNorm does not take a float32 weight beside a float16 input on "
                                                   "Ascend310P"),
                ("npu:0 Ascend910A", "F16", "F16", "RmsNorm is not documented for Ascend910")):
            x = rows(1, dtype)
            reference = self.module("LlamaRMSNorm", x, norm(x, 1e-6, False, dtype)[0], dtype, "cuda:0", weight=weight)
            bad = [v * 1.5 for v in norm(x, 1e-6, False, dtype)[0]]
            _, _, lines = self.compare(reference, self.module("npu_rms_norm", x, [ROUND[dtype](v) for v in bad], dtype,
                                                              device, weight=weight))
            self.assertEqual(lines["operator"]["status"], "mismatch")
            self.assertIn(text, lines["operator"]["evidence"])
        _, _, lines = self.compare(reference, self.module("npu_rms_norm", x, [ROUND[dtype](v) for v in bad], dtype,
                                                          "npu:0 Ascend910B3", weight=weight))
        self.assertEqual(lines["operator"]["status"], "ok")
        self.assertIn("one rounding at the end", lines["operator"]["evidence"])

    def test_a_replaced_operator_names_its_successor(self):
        x = rows(1)
        y = norm(x, 1e-5)[0]
        _, _, lines = self.compare(self.module("LayerNorm", x, y, device="cuda:0", eps=1e-5),
                                   self.module("npu_layer_norm_eval", x, [v * 1.5 for v in y], eps=1e-5))
        self.assertEqual(lines["operator"]["status"], "suspect")
        self.assertIn("deprecated in favour of layer_norm", lines["operator"]["evidence"])
        self.assertIn("layer_norm", lines["operator"]["advice"])

    def test_where_a_fused_operator_rounds_is_said(self):
        x = rows(1, "F16")
        y = norm(x, 1e-6, False, "F16")[0]
        _, _, lines = self.compare(self.module("AddRmsNorm", x, y, "F16", "cuda:0"),
                                   self.module("npu_add_rms_norm", x, [f16(v * 1.5) for v in y], "F16"))
        self.assertIn("rounds x1 + x2 to float16", lines["operator"]["evidence"])

    def test_a_frameworks_module_has_no_operator_line(self):
        x = rows(1)
        y = norm(x, 1e-5)[0]
        _, _, lines = self.compare(self.module("LayerNorm", x, y, device="cuda:0", eps=1e-5),
                                   self.module("LayerNorm", x, [v * 1.5 for v in y], eps=1e-5))
        self.assertNotIn("operator", lines)

    # --- statistics in another form ---

    def test_a_variance_beside_an_rstd_is_recognised_in_16_bits(self):
        for dtype in ("F32", "F16", "BF16"):
            for form in ("variance", "deviation"):
                for scale in (0.05, 3.0):
                    x = rows(scale)
                    y, mean, variance, rstd = norm(x, 1e-5)
                    other = variance if form == "variance" else [math.sqrt(v + 1e-5) for v in variance]
                    slots = [{"output.1": (dtype, (ROWS, 1), [ROUND[dtype](v) for v in mean]),
                              "output.2": (dtype, (ROWS, 1), [ROUND[dtype](v) for v in values])}
                             for values in (rstd, other)]
                    status, report, _ = self.compare(
                        self.module("MyNorm", x, y, device="cuda:0", slots=slots[0]),
                        self.module("MyNorm", x, y, slots=slots[1]))
                    first = report["causes"][0]
                    self.assertEqual((status, first["id"], first["status"], first["parameters"]["form"]),
                                     (1, "variance_for_rstd", "confirmed", form), (dtype, form, scale))
                    if form == "variance":  # a deviation is the inverse of an rstd, and that of a deviation
                        self.assertEqual(first["parameters"]["rstd_side"], "reference")

    def test_another_statistic_is_not_taken_for_a_variance(self):
        x = rows(1)
        y, mean, variance, rstd = norm(x, 1e-5)
        for dtype in ("F32", "BF16"):
            for other in ([v * (1 + 0.3 * math.sin(9 * i)) for i, v in enumerate(variance)], [v * 4 for v in variance],
                          [max(abs(v) for v in row) for row in x]):
                slots = [{"output.2": (dtype, (ROWS, 1), [ROUND[dtype](v) for v in values])} for values in (rstd, other)]
                _, report, _ = self.compare(self.module("MyNorm", x, y, device="cuda:0", slots=slots[0]),
                                            self.module("MyNorm", x, y, slots=slots[1]))
                self.assertNotIn("variance_for_rstd", [c["id"] for c in report["causes"]])

    def test_the_rstd_of_npu_rms_norm_is_a_slot_of_its_own(self):
        x = rows(1, "F16")
        y, _, _, rstd = norm(x, 1e-6, False, "F16")
        good = {"output.1": ("F32", (ROWS, 1), [f32(v) for v in rstd])}
        bad = {"output.1": ("F32", (ROWS, 1), [f32(v * 1.01) for v in rstd])}
        status, report, _ = self.compare(self.module("npu_rms_norm", x, y, "F16", "cuda:0", good),
                                         self.module("npu_rms_norm", x, y, "F16", slots=bad))
        slots = {s["slot"]: s for s in report["layers"][0]["slots"]}
        self.assertEqual((slots["output.0"]["tier"], slots["output.1"]["tier"]), ("exact", "elevated"))
        self.assertEqual((report["first_divergence"]["slot"], status), ("output.1", 0))


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
