"""What the tool promises, checked from outside: tiers, verdicts, exit status, coverage, matching, JSON.

  python3 tests/contract/test_contract.py PATH_TO_NORMDIFF [unittest arguments]

Expected numbers are worked by hand from the definitions; dumps come from dumps.py.
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from dumps import normdiff_dump, npy, npz, safetensors, write

TOOL = ""
INF, NAN = float("inf"), float("nan")


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-contract-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_tool(self, *args, stdin=None, env=None):
        full = dict(os.environ, LC_ALL="C", **(env or {}))
        return subprocess.run([TOOL] + list(args), input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=full)

    def paths(self, reference, candidate, names=("ref.bin", "cand.bin")):
        return [write(self.dir, names[0], reference), write(self.dir, names[1], candidate)]

    def compare(self, reference, candidate, *options, status=None):
        done = self.run_tool("-f", "json", *options, *self.paths(reference, candidate))
        report = json.loads(done.stdout)
        if done.returncode == 2:
            self.assertEqual(report["schema"], "normdiff/error/1")
            self.assertEqual(report["exit_code"], 2)
        else:
            self.assertEqual(report["schema"], "normdiff/report/1")
            self.assertEqual(report["exit_code"], done.returncode)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout.decode() + done.stderr.decode())
        return report

    def tensors(self, r, c, *options, dtype="F32", other=None, shape=None, status=None):
        shape = shape if shape is not None else (len(r),)
        return self.compare(npy(dtype, shape, r), npy(other or dtype, shape, c), *options, status=status)

    def slot(self, report, layer=0, slot=0):
        return report["layers"][layer]["slots"][slot]


class Tiers(Case):
    def test_drift_is_the_error_norm_over_the_reference_norm(self):
        report = self.tensors([3.0, 4.0], [3.0, 4.5], dtype="F64", status=1)  # 0.5 / 5
        self.assertEqual(report["layers"][0]["drift"], 0.1)
        self.assertEqual(report["layers"][0]["tier"], "fault")  # >= 1e-1
        self.assertEqual(report["layers"][0]["fails"], "drift")
        self.assertEqual(report["verdict"], "drift")

    def test_the_bounds_belong_where_the_contract_puts_them(self):
        # one element: drift = (c - r) / r, and these quotients round to the bounds themselves
        for r, c, drift, tier in ((1.0, 1.0, 0, "exact"), (1e6, 1e6 + 1, 1e-6, "noise"), (1e6, 1e6 + 2, 2e-6, "reduction"),
                                  (1000.0, 1001.0, 1e-3, "reduction"), (1000.0, 1002.0, 2e-3, "elevated"),
                                  (100.0, 109.0, 0.09, "elevated"), (10.0, 11.0, 0.1, "fault"), (1.0, 2.0, 1, "fault")):
            layer = self.tensors([r], [c], dtype="F64")["layers"][0]
            self.assertEqual((layer["drift"], layer["tier"]), (drift, tier))

    def test_the_worst_channel_and_row_are_named(self):
        good = [-20000.0] * 12  # no mask constant, however negative
        bad = list(good)
        for k in range(4, 8):
            bad[k] *= 1.5  # channel 1 drifts by 0.5
        bad[11] += 40000.0  # row [0, 2, 1]: 2 / sqrt(2); channel 2: 2 / sqrt(4)
        metrics = self.slot(self.tensors(good, bad, shape=(1, 3, 2, 2), status=1))["metrics"]
        self.assertEqual(metrics["worst_channel"], {"axis": 1, "index": 2, "drift": 1})
        self.assertEqual(metrics["worst_row"]["index"], [0, 2, 1])
        self.assertAlmostEqual(metrics["worst_row"]["drift"], math.sqrt(2), delta=1e-15)

    def test_equal_values_are_exact_and_zeros_of_both_signs_are_equal(self):
        report = self.tensors([0.0, 1.0], [-0.0, 1.0], status=0)
        slot = self.slot(report)
        self.assertEqual((slot["tier"], slot["differ"], slot["bit_equal"]), ("exact", 0, False))
        self.assertTrue(self.slot(self.tensors([0.0, 1.0], [0.0, 1.0]))["bit_equal"])
        self.assertEqual(report["verdict"], "agree")

    def test_an_empty_tensor_is_exact_with_a_note_and_no_evidence(self):
        slot = self.slot(self.tensors([], [], status=0))
        self.assertEqual((slot["tier"], slot["n"]), ("exact", 0))
        self.assertIn("empty", slot["notes"])

    def test_a_zero_reference_gives_infinite_drift(self):
        report = self.tensors([0.0, 0.0], [0.0, 1e-30], status=1)
        self.assertEqual(report["layers"][0]["drift"], "inf")
        self.assertEqual(self.tensors([0.0], [0.0], status=0)["layers"][0]["drift"], 0)

    def test_tiers_moves_the_bounds_and_not_the_words(self):
        report = self.tensors([1.0] * 8, [1.01] * 8, "--tiers", "1e-3,1e-2,0.5", dtype="F64", status=0)
        self.assertEqual(report["policy"]["tiers"], [0.001, 0.01, 0.5])
        self.assertEqual(report["layers"][0]["tier"], "elevated")

    def test_integers_drift_by_the_share_that_differs_and_fail(self):
        report = self.tensors([1, 2, 3, 4], [1, 2, 3, 5], dtype="I64", status=1)
        self.assertEqual((report["layers"][0]["drift"], report["layers"][0]["fails"]), (0.25, "integer"))
        report = self.tensors([1, 2, 3, 4], [1, 2, 3, 5], "--tol", "*=0.3", dtype="I64", status=0)
        self.assertEqual(report["layers"][0]["bound"], 0.3)

    def test_64_bit_integers_are_compared_exactly(self):
        report = self.tensors([2 ** 53, 2 ** 62], [2 ** 53 + 1, 2 ** 62], dtype="I64", status=1)
        self.assertEqual((self.slot(report)["differ"], report["layers"][0]["drift"]), (1, 0.5))
        self.assertEqual(self.slot(report)["metrics"]["max_abs"], 1)

    def test_a_localised_fault_fails_below_the_bound(self):
        good = [1.0] * 10000
        bad = list(good)
        bad[77] = 3.0  # s = 2 / (1 + 1) = 1
        report = self.tensors(good, bad, status=1)
        self.assertEqual((report["layers"][0]["fails"], report["layers"][0]["tier"]), ("localised", "fault"))
        self.assertLess(report["layers"][0]["drift"], 0.1)
        self.assertIn("localised", self.slot(report)["notes"])
        self.tensors(good, bad, "--tol", "*=0.5", status=0)

    def test_rounding_residue_is_elevated_at_most(self):
        small, other = [1e-9, -2e-9, 3e-9, 1e-9], [-1e-9, 2e-9, 1e-9, 0.0]
        big = [1.0, 2.0, 3.0, 4.0]
        a = normdiff_dump([("conv", "Conv2d", {"grad.weight": ("F32", [4], big), "grad.bias": ("F32", [4], small)})])
        b = normdiff_dump([("conv", "Conv2d", {"grad.weight": ("F32", [4], big), "grad.bias": ("F32", [4], other)})])
        report = self.compare(a, b, status=0)
        bias = [s for s in report["layers"][0]["slots"] if s["slot"] == "grad.bias"][0]
        self.assertEqual(bias["tier"], "elevated")
        self.assertIn("rounding_residue", bias["notes"])

    def test_an_output_is_no_residue_of_its_large_input(self):
        def dump(output):
            return normdiff_dump([("n", "LayerNorm", {"input.0": ("BF16", [4], [64.0, -64.0, 32.0, 8.0]),
                                                      "output.0": ("BF16", [4], output)})])
        report = self.compare(dump([1.0, -1.0, 0.5, 0.25]), dump([2.0, -2.0, 1.0, 0.5]), status=1)
        self.assertEqual(report["layers"][0]["fails"], "drift")

    def test_huge_and_tiny_float64_keep_their_ratio(self):
        for size in (1e200, 1e-200, 1e-300, 1e300):
            report = self.tensors([3 * size, 4 * size], [3 * size, 4.6 * size], dtype="F64", status=1)
            self.assertAlmostEqual(report["layers"][0]["drift"], 0.12, delta=1e-15)
            self.assertAlmostEqual(self.slot(report)["metrics"]["max_abs"] / (0.6 * size), 1, delta=1e-12)


    def test_complex_elements_are_measured_by_modulus(self):
        a = npy("F32", (4,), [3.0, 4.0] * 4, descr="<c8")  # 3+4i, modulus 5
        b = npy("F32", (4,), [3.0, 7.0] * 4, descr="<c8")  # error 3i
        report = self.compare(a, b, "--metrics", "all", status=1)
        self.assertAlmostEqual(report["layers"][0]["drift"], 0.6, delta=1e-15)
        self.assertEqual(self.slot(report)["metrics"]["max_abs"], 3)
        self.assertEqual(self.slot(report)["n"], 4)


class Nonfinite(Case):
    def test_nan_against_a_number_is_a_fault(self):
        report = self.tensors([1.0, 2.0, NAN], [1.0, NAN, NAN], status=1)
        slot = self.slot(report)
        self.assertEqual((report["layers"][0]["fails"], slot["nonfinite"]["mismatches"]), ("nonfinite", 1))
        self.assertEqual(slot["nonfinite"]["reference"]["nan"], 1)
        self.assertEqual(slot["nonfinite"]["candidate"]["nan"], 2)
        self.assertEqual(slot["n"], 1)

    def test_equal_nonfinites_agree_unless_strict(self):
        values = [NAN, INF, 1.0, 2.0]
        self.tensors(values, values, status=0)
        report = self.tensors(values, values, "--nan", "strict", status=1)
        self.assertEqual(self.slot(report)["nonfinite"]["mismatches"], 1)

    def test_opposite_infinities_differ(self):
        self.assertEqual(self.slot(self.tensors([INF, 1.0], [-INF, 1.0], status=1))["nonfinite"]["mismatches"], 1)

    def test_mask_constants_are_left_out_and_counted(self):
        report = self.tensors([-INF, 1.0, -1e4, -65504.0], [-1e9, 1.0, -1e4, -3.4028234663852886e38], status=0)
        slot = self.slot(report)
        self.assertEqual((slot["nonfinite"]["masked"], slot["n"]), (3, 1))
        self.assertEqual(slot["nonfinite"]["reference"]["neg_inf"], 0)
        self.assertIn("mask_constants_differ", slot["notes"])
        self.tensors([-INF, 1.0], [-1e9, 1.0], "--fail-on", "any", status=1)
        self.tensors([-INF, 1.0], [-INF, 1.0], "--fail-on", "any", status=0)

    def test_nonfinite_is_excused_only_by_exclude_or_never(self):
        a = npz({"x": npy("F32", (2,), [1.0, NAN]), "y": npy("F32", (1,), [1.0])})
        b = npz({"x": npy("F32", (2,), [1.0, 2.0]), "y": npy("F32", (1,), [1.0])})
        self.compare(a, b, "--tol", "*=9", status=1)
        self.compare(a, b, "--fail-on", "never", status=0)
        report = self.compare(a, b, "--exclude", "x", status=0)
        self.assertEqual(report["coverage"]["excluded"], 1)


class Coverage(Case):
    def test_a_missing_layer_is_never_passed(self):
        a = npz({"x": npy("F32", (1,), [1.0]), "y": npy("F32", (1,), [1.0])})
        b = npz({"x": npy("F32", (1,), [1.0]), "z": npy("F32", (1,), [1.0])})
        report = self.compare(a, b, status=1)
        self.assertEqual(report["verdict"], "incomplete")
        self.assertEqual(report["coverage"]["reference_only"], ["y"])
        self.assertEqual(report["coverage"]["candidate_only"], ["z"])
        layer = [l for l in report["layers"] if l["name"] == "y"][0]
        self.assertEqual((layer["fails"], layer["tier"], layer["candidate_name"]), ("missing", None, None))
        self.compare(a, b, "--allow-unmatched", status=0)
        self.compare(a, b, "--allow-unmatched=y", status=0)
        self.compare(a, b, "--allow-unmatched=q*", status=1)

    def test_a_broken_tensor_is_named_and_the_rest_is_compared(self):
        whole = safetensors({"a": ("F32", [2], [1.0, 2.0]), "b": ("F32", [2], [3.0, 4.0])})
        report = self.compare(whole, whole[:-4], status=1)
        self.assertEqual({l["name"]: l["fails"] for l in report["layers"]}, {"a": None, "b": "unreadable"})
        self.assertEqual([s["name"] for s in report["coverage"]["skipped"]], ["b.output.0"])

    def test_a_wrong_crc_is_a_broken_tensor(self):
        good = npz({"a": npy("F32", (2,), [1.0, 2.0]), "b": npy("F32", (2,), [3.0, 4.0])})
        at = good.index(npy("F32", (2,), [3.0, 4.0])) + 128
        bad = good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]
        report = self.compare(good, bad, status=1)
        self.assertEqual({l["name"]: l["fails"] for l in report["layers"]}, {"a": None, "b": "unreadable"})

    def test_one_sided_parameters_are_listed_and_do_not_fail(self):
        a = normdiff_dump([("n", "LayerNorm", {"output.0": ("F32", [2], [1.0, 2.0]), "param.weight": ("F32", [2], [1.0, 1.0])})])
        b = normdiff_dump([("n", "LayerNorm", {"output.0": ("F32", [2], [1.0, 2.0])})])
        report = self.compare(a, b, status=0)
        self.assertEqual(report["coverage"]["reference_only"], ["n.param.weight"])
        c = normdiff_dump([("n", "LayerNorm", {"output.0": ("F32", [2], [1.0, 2.0]), "output.1": ("F32", [1], [1.0])})])
        self.assertEqual(self.compare(c, b, status=1)["layers"][0]["fails"], "missing")

    def test_shapes_that_no_layout_reconciles_fail(self):
        report = self.compare(npy("F32", (3,), [1.0, 2.0, 3.0]), npy("F32", (4,), [1.0, 2.0, 3.0, 4.0]), status=1)
        self.assertEqual((report["layers"][0]["fails"], report["layers"][0]["tier"]), ("shape", "fault"))

    def test_another_shape_of_equal_elements_fails_unless_leading_axes_merge(self):
        values = [float(i * i % 17) for i in range(24)]
        report = self.compare(npy("F32", (4, 6), values), npy("F32", (24,), values), status=1)
        self.assertEqual(report["layers"][0]["fails"], "shape")
        report = self.compare(npy("F32", (4, 6), values), npy("F32", (8, 3), values), status=1)
        self.assertEqual(report["layers"][0]["fails"], "shape")
        report = self.compare(npy("F32", (2, 4, 3), values), npy("F32", (8, 3), values), status=0)
        self.assertIn("reshaped", self.slot(report)["notes"])

    def test_dimensions_of_one_are_squeezed(self):
        report = self.compare(npy("F32", (1, 4), [1.0, 2.0, 3.0, 4.0]), npy("F32", (4, 1, 1), [1.0, 2.0, 3.0, 4.0]), status=0)
        self.assertIn("squeezed", self.slot(report)["notes"])

    def test_counts_and_bytes_add_up(self):
        a = npz({"x": npy("F32", (3,), [1.0, 2.0, 3.0]), "y": npy("F64", (2,), [1.0, 2.0])})
        report = self.compare(a, a, status=0)
        cover = report["coverage"]
        self.assertEqual((cover["pairs"], cover["tensors_compared"]), (2, 2))
        self.assertEqual((cover["bytes_compared"], cover["bytes_total"]), (56, 56))
        self.assertEqual(sum(report["summary"].values()), 2)


class Layouts(Case):
    def nchw(self, n, c, h, w):
        return [math.sin(1.0 + i * 1.7) + 0.01 * i for i in range(n * c * h * w)]

    def reorder(self, values, dims, order):
        out = []
        shape = [dims[k] for k in order]
        for flat in range(len(values)):
            rest, index = flat, [0] * 4
            for k in range(3, -1, -1):
                index[order[k]] = rest % shape[k]
                rest //= shape[k]
            at = 0
            for k in range(4):
                at = at * dims[k] + index[k]
            out.append(values[at])
        return out

    def nc1hwc0(self, values, dims, c0):
        n, c, h, w = dims
        c1 = -(-c // c0)
        out = [0.0] * (n * c1 * h * w * c0)
        for b in range(n):
            for ch in range(c):
                for y in range(h):
                    for x in range(w):
                        out[(((b * c1 + ch // c0) * h + y) * w + x) * c0 + ch % c0] = values[((b * c + ch) * h + y) * w + x]
        return out

    def test_declared_nc1hwc0_is_compared_as_nchw(self):
        dims = (2, 19, 3, 4)
        values = self.nchw(*dims)
        a = normdiff_dump([("c", "Conv2d", {"output.0": ("F32", dims, values)})])
        stored = self.nc1hwc0(values, dims, 16)
        slot = {"tensor": ("F32", (2, 2, 3, 4, 16), stored), "format": "NC1HWC0", "logical_shape": list(dims)}
        report = self.compare(a, normdiff_dump([("c", "Conv2d", {"output.0": slot})]), status=0)
        got = self.slot(report)
        self.assertEqual((got["tier"], got["shape"], got["layout"]["candidate"], got["layout"]["c0"], got["layout"]["how"]),
                         ("exact", list(dims), "NC1HWC0", 16, "declared"))
        stored[-1] = 5.0  # a padding lane: 38 channels are 32 + 6, lane 15 of the last block is padding
        slot["tensor"] = ("F32", (2, 2, 3, 4, 16), stored)
        got = self.slot(self.compare(a, normdiff_dump([("c", "Conv2d", {"output.0": slot})]), status=0))
        self.assertIn("padding_nonzero", got["notes"])
        self.assertEqual(got["tier"], "exact")

    def test_undeclared_layouts_are_found_by_search(self):
        dims = (2, 19, 3, 4)
        values = self.nchw(*dims)
        for c0 in (16, 32, 8, 4):
            stored = self.nc1hwc0(values, dims, c0)
            report = self.compare(npy("F32", dims, values), npy("F32", (2, -(-19 // c0), 3, 4, c0), stored), status=0)
            layout = self.slot(report)["layout"]
            self.assertEqual((layout["candidate"], layout["c0"], layout["how"]), ("NC1HWC0", c0, "found"))
        nhwc = self.reorder(values, dims, (0, 2, 3, 1))
        report = self.compare(npy("F32", dims, values), npy("F32", (2, 3, 4, 19), nhwc), status=0)
        self.assertEqual(self.slot(report)["layout"]["candidate"], "NHWC")
        report = self.compare(npy("F32", (2, 3, 4, 19), nhwc), npy("F32", dims, values), status=0)
        self.assertEqual(self.slot(report)["layout"], {"reference": "NHWC", "candidate": "NCHW", "c0": None, "how": "found"})

    def test_a_wrong_order_under_a_right_shape_stays_a_fault_and_is_named(self):
        dims = (2, 4, 4, 4)
        values = self.nchw(*dims)
        wrong = self.reorder(values, dims, (0, 2, 3, 1))
        report = self.compare(npy("F32", dims, values), npy("F32", dims, wrong), status=1)
        self.assertEqual(report["layers"][0]["fails"], "drift")
        self.assertEqual(self.slot(report)["layout"]["candidate"], "NHWC")

    def test_the_layout_option_declares_it(self):
        dims = (1, 3, 2, 2)
        values = self.nchw(*dims)
        nhwc = self.reorder(values, dims, (0, 2, 3, 1))
        report = self.compare(npy("F32", dims, values), npy("F32", (1, 2, 2, 3), nhwc), "--layout", "cand:*=NHWC", status=0)
        self.assertEqual(self.slot(report)["layout"]["how"], "declared")
        stored = self.nc1hwc0(values, dims, 16)
        report = self.compare(npy("F32", dims, values), npy("F32", (64,), stored), "--layout", "cand:*=NC1HWC0:16", status=0)
        self.assertEqual(self.slot(report)["tier"], "exact")
        self.compare(npy("F32", dims, values), npy("F32", dims, values), "--layout", "x=NOPE", status=2)


class Policy(Case):
    def setUp(self):
        super().setUp()
        self.a = npz({"x": npy("F64", (2,), [3.0, 4.0]), "y": npy("F64", (2,), [3.0, 4.0])})
        self.b = npz({"x": npy("F64", (2,), [3.0, 4.0]), "y": npy("F64", (2,), [3.0, 4.05])})  # 0.01

    def test_fail_on_moves_the_bar(self):
        for option, status in (("0.02", 0), ("0.005", 1), ("any", 1), ("elevated", 1), ("never", 0)):
            self.compare(self.a, self.b, "--fail-on", option, status=status)
        self.compare(self.a, self.b, status=0)
        self.compare(self.a, self.a, "--fail-on", "any", status=0)

    def test_tol_wins_over_fail_on(self):
        report = self.compare(self.a, self.b, "--fail-on", "0.005", "--tol", "y=0.5", status=0)
        self.assertEqual([l["bound"] for l in report["layers"]], [0.005, 0.5])

    def test_metric_names_another_scalar(self):
        report = self.compare(self.a, self.b, "--metric", "max-abs", "--tiers", "1e-6,1e-3,0.04", status=1)
        self.assertAlmostEqual(report["layers"][1]["drift"], 0.05, delta=1e-15)
        self.compare(self.a, self.b, "--metric", "cosine", status=2)

    def test_strict_dtype(self):
        a, b = npy("F32", (2,), [1.0, 2.0]), npy("F16", (2,), [1.0, 2.0])
        report = self.compare(a, b, status=0)
        self.assertIn("dtype_differs", self.slot(report)["notes"])
        self.assertEqual(self.slot(report)["dtype"], {"reference": "float32", "candidate": "float16"})
        self.assertEqual(self.compare(a, b, "--strict-dtype", status=1)["layers"][0]["fails"], "dtype")

    def test_suspect_is_no_failure(self):
        report = self.compare(self.a, self.b, status=0)
        self.assertEqual(report["verdict"], "suspect")
        self.assertEqual(report["first"]["elevated"]["layer"], "y")
        self.assertIsNone(report["first"]["fault"])

    def test_usage_errors_are_exit_2_with_the_error_document(self):
        for options in (("--tiers", "1,2"), ("--tiers", "3,2,1"), ("--fail-on", "sometimes"), ("--tol", "x"),
                        ("--isa", "sse9"), ("--no-such-option",), ("--golden", "x"), ("--include", "zz*")):
            self.compare(self.a, self.b, *options, status=2)

    def test_quiet_says_nothing(self):
        done = self.run_tool("-q", *self.paths(self.a, self.b))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def test_jobs_and_isa_change_no_byte(self):
        a = npz({"x": npy("F32", (300000,), [math.sin(i) for i in range(300000)])})
        b = npz({"x": npy("F32", (300000,), [math.sin(i) * (1 + 1e-3 * math.cos(i)) for i in range(300000)])})
        paths = self.paths(a, b)
        want = self.run_tool("-f", "json", "-j", "1", "--metrics", "all", *paths).stdout
        self.assertIn(b"p999", want)
        for options in (("-j", "2"), ("-j", "7"), ("--isa", "base")):
            self.assertEqual(self.run_tool("-f", "json", "--metrics", "all", *options, *paths).stdout, want)


class Matching(Case):
    def test_two_lone_tensors_are_a_pair_whatever_their_names(self):
        done = self.run_tool("-f", "json", *self.paths(npy("F32", (1,), [1.0]), npy("F32", (1,), [1.0]), ("gpu.npy", "npu.npy")))
        self.assertEqual(json.loads(done.stdout)["layers"][0]["matched_by"], "lone")

    def test_nothing_in_common_is_exit_2(self):
        self.compare(npz({"a": npy("F32", (1,), [1.0]), "b": npy("F32", (1,), [1.0])}),
                     npz({"c": npy("F32", (1,), [1.0]), "d": npy("F32", (1,), [1.0])}), status=2)

    def test_names_carry_slots(self):
        a = npz({n: npy("F32", (1,), [1.0]) for n in ("c.input.0", "c/output/0", "c.weight", "bn.running_mean", "z")})
        report = self.compare(a, a, status=0)
        self.assertEqual([(l["name"], [s["slot"] for s in l["slots"]]) for l in report["layers"]],
                         [("c", ["input.0", "output.0", "param.weight"]), ("bn", ["state.running_mean"]), ("z", ["output.0"])])

    def test_inputs_do_not_make_a_layers_tier_beside_its_outputs(self):
        a = npz({"c.input.0": npy("F32", (1,), [1.0]), "c.output.0": npy("F32", (1,), [1.0])})
        b = npz({"c.input.0": npy("F32", (1,), [9.0]), "c.output.0": npy("F32", (1,), [1.0])})
        report = self.compare(a, b, status=0)
        self.assertEqual(report["layers"][0]["tier"], "exact")

    def test_a_block_is_judged_where_its_leaves_are_not_compared(self):
        def dump(value, leaves):
            layers = [("b.a", "Linear", {"output.0": ("F32", [2], [1.0, 2.0])})] if leaves else []
            return normdiff_dump(layers + [("b", "Block", {"output.0": ("F32", [2], [1.0, value])}, {}, {"container": True}),
                                           ("c", "ReLU", {"output.0": ("F32", [2], [1.0, 2.0])})])
        report = self.compare(dump(2.0, True), dump(9.0, True), status=0)
        self.assertEqual([l["role"] == "container" for l in report["layers"]], [False, True, False])
        report = self.compare(dump(2.0, True), dump(9.0, False), "--allow-unmatched", status=1)
        self.assertEqual({l["name"]: l["fails"] for l in report["layers"]}["b"], "drift")

    def test_concat_compares_a_fused_projection(self):
        a = npz({"qkv": npy("F32", (2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), "o": npy("F32", (1,), [1.0])})
        b = npz({"q": npy("F32", (2, 1), [1.0, 4.0]), "k": npy("F32", (2, 2), [2.0, 3.0, 5.0, 6.0]), "o": npy("F32", (1,), [1.0])})
        rules = write(self.dir, "map.txt", "qkv = concat(q, k; axis=-1)\n")
        report = self.compare(a, b, "--map", rules, status=0)
        self.assertEqual((report["layers"][0]["tier"], report["layers"][0]["matched_by"]), ("exact", "map"))

    def test_order_file_and_container_order(self):
        a = npz({n: npy("F32", (1,), [1.0]) for n in ("b", "a", "c")})
        report = self.compare(a, a)
        self.assertEqual([l["name"] for l in report["layers"]], ["b", "a", "c"])
        self.assertEqual(report["reference"]["order"], "container")
        order = write(self.dir, "order.txt", "c\na\n")
        report = self.compare(a, a, "--order", order)
        self.assertEqual([l["name"] for l in report["layers"]], ["c", "a", "b"])
        self.assertEqual(report["reference"]["order"], "option")
        self.compare(a, a, "--order", write(self.dir, "other.txt", "nobody\n"), status=2)
        s = safetensors({n: ("F32", [1], [1.0]) for n in ("l10", "l9")})
        report = self.compare(s, s)
        self.assertEqual(([l["name"] for l in report["layers"]], report["reference"]["order"]), (["l9", "l10"], "name"))

    def test_steps_and_ranks_pair_by_number(self):
        for side, drift in (("gpu", 0.0), ("npu", 0.5)):
            for step in (0, 1):
                for rank in (0, 1):
                    value = 1.0 + (drift if (step, rank) == (1, 0) else 0)
                    write(self.dir, "%s/step%d/rank%d.dump" % (side, step, rank),
                          normdiff_dump([("l", "Linear", {"output.0": ("F32", [1], [value])})], step=step, rank=rank))
        paths = [os.path.join(self.dir, "gpu"), os.path.join(self.dir, "npu")]
        report = json.loads(self.run_tool("-f", "json", *paths).stdout)
        self.assertEqual([(l["step"], l["rank"], l["tier"]) for l in report["layers"]],
                         [(0, 0, "exact"), (0, 1, "exact"), (1, 0, "fault"), (1, 1, "exact")])
        self.assertEqual((report["first"]["fault"]["step"], report["first"]["fault"]["rank"]), (1, 0))
        report = json.loads(self.run_tool("-f", "json", "--rank", "1", *paths).stdout)
        self.assertEqual([l["rank"] for l in report["layers"]], [1, 1])


class Statistics(Case):
    def test_prints_are_judged_beyond_their_last_digit(self):
        a = "conv1: max=2.000000, mean=0.500000\nbn1: max=1.000000, mean=0.100000\n"
        b = "conv1: max=2.000001, mean=0.500000\nbn1: max=1.300000, mean=0.100000\n"
        report = self.compare(a, b, status=1)
        conv, bn = report["layers"]
        self.assertEqual((conv["drift"], conv["tier"]), (0, "noise"))  # never exact
        self.assertEqual(self.slot(report)["evidence"], "statistics")
        self.assertAlmostEqual(self.slot(report)["hidden_up_to"], 1e-6 / 2, delta=1e-18)
        self.assertAlmostEqual(bn["drift"], 0.3 - 1e-6, delta=1e-12)
        self.assertEqual(report["reference"]["order"], "recorded")

    def test_coarse_prints_are_unresolved(self):
        report = self.compare("a: max=0.0001, mean=0.0000\n", "a: max=0.0001, mean=0.0000\n", status=0)
        self.assertEqual((report["layers"][0]["tier"], report["summary"]["unresolved"]), ("unresolved", 1))

    def test_values_against_statistics(self):
        values = npz({"a": npy("F32", (4,), [1.0, 2.0, 3.0, 4.0])})
        self.compare(values, "a: max=4.000000, mean=2.500000\n", status=0)
        report = self.compare(values, "a: max=4.000000, mean=3.500000\n", status=1)
        self.assertAlmostEqual(report["layers"][0]["drift"], (1 - 5e-7) / 4, delta=1e-12)

    def test_statistics_in_json_count_as_exact(self):
        def dump(m):
            stats = {"max": m, "min": -2.0, "mean": 0.0, "norm": 17.0}
            return normdiff_dump([("l", "LayerNorm", {"output.0": {"statistics": stats, "shape": [4, 128], "dtype": "float32"}})])
        report = self.compare(dump(2.0), dump(2.0), status=0)
        self.assertEqual((report["layers"][0]["tier"], self.slot(report)["hidden_up_to"]), ("noise", 0))
        report = self.compare(dump(2.0), dump(2.2), status=1)
        self.assertAlmostEqual(report["layers"][0]["drift"], 0.1, delta=1e-12)

    def test_nan_and_overflow_in_prints(self):
        report = self.compare("a: max=1.0, mean=0.5\n", "a: max=nan, mean=nan\n", status=1)
        self.assertEqual(report["layers"][0]["fails"], "nonfinite")
        self.compare("a: max=nan, mean=nan\n", "a: max=nan, mean=nan\n")


class Errors(Case):
    def check(self, content, *words):
        good = npy("F32", (1,), [1.0])
        for pair in ((good, content), (content, good)):
            report = self.compare(*pair, status=2)
            error = report["error"]
            self.assertEqual(sorted(error), ["at", "expected", "file", "found", "hint"])
            self.assertTrue(error["file"])
            for word in words:
                self.assertIn(word, json.dumps(error))

    def test_what_is_no_dump_is_said_by_name(self):
        self.check(b"", "empty")
        self.check(b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n", "git lfs pull")
        self.check(b"<!DOCTYPE html><html><body>404</body></html>", "HTML")
        self.check(b"\x00\x01\x02\x03garbage" * 10)

    def test_a_short_lone_tensor_is_a_broken_dump(self):
        whole = npy("F32", (4,), [1.0, 2.0, 3.0, 4.0])
        for cut in range(1, len(whole)):
            self.check(whole[:cut])

    def test_a_header_cut_short_is_a_broken_dump(self):
        whole = safetensors({"a": ("F32", [2], [1.0, 2.0])})
        for cut in range(1, len(whole) - 8):
            self.check(whole[:cut])

    def test_missing_paths_and_fifos(self):
        good = write(self.dir, "a.npy", npy("F32", (1,), [1.0]))
        self.assertEqual(self.run_tool(good, os.path.join(self.dir, "none")).returncode, 2)
        fifo = os.path.join(self.dir, "fifo")
        os.mkfifo(fifo)
        done = self.run_tool(good, fifo)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"fifo", done.stderr)

    def test_standard_input_once(self):
        data = npy("F32", (1,), [1.0])
        good = write(self.dir, "a.npy", data)
        self.assertEqual(self.run_tool(good, "-", stdin=data).returncode, 0)
        self.assertEqual(self.run_tool("-", "-", stdin=data).returncode, 2)

    def test_one_path_twice_is_compared_with_a_warning(self):
        good = write(self.dir, "a.npy", npy("F32", (1,), [1.0]))
        done = self.run_tool(good, good)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"same", done.stderr + done.stdout)

    def test_no_escape_reaches_the_terminal(self):
        a = npz({"x\x1b[31m": npy("F32", (2,), [1.0, 2.0])})
        b = npz({"x\x1b[31m": npy("F32", (2,), [1.0, 9.0])})
        for options in ((), ("-a",), ("-v", "-a"), ("-f", "json"), ("--color", "never")):
            done = self.run_tool(*options, *self.paths(a, b))
            self.assertNotIn(b"\x1b", done.stdout + done.stderr)


class Diagnosis(Case):
    def layer_norm(self, rows, eps):
        out = []
        for row in rows:
            mean = sum(row) / len(row)
            var = sum((v - mean) ** 2 for v in row) / len(row)
            out += [(v - mean) / math.sqrt(var + eps) for v in row]
        return out

    def test_eps_is_recovered_and_named(self):
        rows = [[0.004 * (r + 1) * math.sin(1 + 3.1 * i + r) for i in range(64)] for r in range(16)]
        flat = [v for row in rows for v in row]
        ones, zeros = ("F32", [64], [1.0] * 64), ("F32", [64], [0.0] * 64)

        def dump(eps, declared, device):
            slots = {"input.0": ("F32", [16, 64], flat), "output.0": ("F32", [16, 64], self.layer_norm(rows, eps)),
                     "param.weight": ones, "param.bias": zeros}
            return normdiff_dump([("in", "Identity", {"output.0": ("F32", [16, 64], flat)}),
                                  ("norm", "LayerNorm", slots, {"eps": declared, "normalized_shape": [64]})], device=device)
        report = self.compare(dump(1e-5, 1e-5, "cuda:0"), dump(1e-4, 1e-4, "npu:0"))
        first = report["first_divergence"]
        self.assertEqual((first["layer"], first["role"]), ("norm", "origin"))
        self.assertEqual(first["input_drift"], 0)
        cause = report["causes"][0]
        self.assertEqual((cause["id"], cause["status"], cause["side"]), ("eps", "confirmed", "candidate"))
        line = [c for c in report["checklist"] if c["id"] == "eps"][0]
        self.assertEqual(line["status"], "mismatch")
        self.assertAlmostEqual(float(line["recovered"]["candidate"]) / 1e-4, 1, delta=0.01)
        self.assertAlmostEqual(float(line["recovered"]["reference"]) / 1e-5, 1, delta=0.01)
        self.assertEqual([s["id"] for s in report["steps"]], ["randomness", "fp32", "layers", "norm"])


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
