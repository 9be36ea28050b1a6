"""Layouts from outside: declared, found by search, contradicting; the index formulas are written out here.

  python3 tests/contract/test_layouts.py PATH_TO_NORMDIFF [unittest arguments]
"""
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from dumps import normdiff_dump, npy, write

TOOL = ""


def up(a, b):
    return -(-a // b)


def size(dims):
    return math.prod(dims)


def nc1hwc0(dims, c0):
    n, c, h, w = dims
    return (n, up(c, c0), h, w, c0), lambda i: ((((i[0] * up(c, c0) + i[1] // c0) * h + i[2]) * w + i[3]) * c0
                                                + i[1] % c0)


def ndc1hwc0(dims, c0):
    n, c, d, h, w = dims
    return (n, d, up(c, c0), h, w, c0), lambda i: (((((i[0] * d + i[2]) * up(c, c0) + i[1] // c0) * h + i[3]) * w + i[4])
                                                   * c0 + i[1] % c0)


def nz(dims, c0):
    lead, (m, k) = dims[:-2], dims[-2:]
    k1, m1 = up(k, c0), up(m, 16)

    def at(i):
        b = 0
        for index, dim in zip(i, lead):
            b = b * dim + index
        r, j = i[-2:]
        return (((b * k1 + j // c0) * m1 + r // 16) * 16 + r % 16) * c0 + j % c0
    return lead + (k1, m1, 16, c0), at


def zz(dims, c0):
    m, k = dims
    return (up(m, 16), up(k, c0), 16, c0), lambda i: ((i[0] // 16 * up(k, c0) + i[1] // c0) * 16 + i[0] % 16) * c0 + i[1] % c0


def fz(dims, c0):
    n, c, h, w = dims
    return (up(c, c0) * h * w, up(n, 16), 16, c0), lambda i: (
        (((i[1] // c0 * h + i[2]) * w + i[3]) * up(n, 16) + i[0] // 16) * 16 + i[0] % 16) * c0 + i[1] % c0


def fz_groups(groups):
    def layout(dims, c0):
        n, c, h, w = dims
        out = n // groups
        e = min(math.lcm(math.lcm(c, c0) // c, math.lcm(out, 16) // out), groups)
        c1, opt = up(e * c, c0), up(e * out, 16) * 16

        def at(i):
            k, co = divmod(i[0], out)
            dc, dn = k % e * c + i[1], k % e * out + co
            return (((k // e * c1 + dc // c0) * h + i[2]) * w + i[3]) * opt * c0 + dn * c0 + dc % c0
        return (up(groups, e) * c1 * h * w, opt // 16, 16, c0), at
    return layout


def plain(order):
    def layout(dims, c0):
        def at(i):
            flat = 0
            for k in order:
                flat = flat * dims[k] + i[k]
            return flat
        return tuple(dims[k] for k in order), at
    return layout


def values_of(dims):
    return [math.sin(1.0 + i * 1.7) + 0.001 * i for i in range(size(dims))]


def store(layout, dims, c0, values, padding=0.0):
    shape, at = layout(dims, c0)
    stored = [padding] * size(shape)
    for value, index in zip(values, itertools.product(*(range(d) for d in dims))):
        stored[at(index)] = value
    return shape, stored


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-layouts-")
        self.addCleanup(shutil.rmtree, self.dir)

    def compare(self, reference, candidate, *options, status=None):
        paths = [write(self.dir, "ref.bin", reference), write(self.dir, "cand.bin", candidate)]
        done = subprocess.run([TOOL, "-f", "json"] + list(options) + paths, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C"))
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout.decode() + done.stderr.decode())
        return json.loads(done.stdout)

    def slot(self, report):
        return report["layers"][0]["slots"][0]

    def layout(self, report):
        return self.slot(report)["layout"]

    def dumped(self, slot):
        return normdiff_dump([("l", "Conv2d", {"output.0": slot})])


DECLARED = [
    ("NC1HWC0", nc1hwc0, (2, 19, 3, 5), 16), ("NC1HWC0", nc1hwc0, (1, 33, 2, 2), 32), ("NC1HWC0_C04", nc1hwc0, (2, 3, 5, 4), 4),
    ("NDC1HWC0", ndc1hwc0, (2, 19, 2, 3, 2), 16), ("FRACTAL_NZ", nz, (20, 40), 16), ("FRACTAL_NZ", nz, (2, 3, 5, 20), 16),
    ("FRACTAL_NZ", nz, (17, 50), 32), ("FRACTAL_ZZ", zz, (20, 40), 16), ("FRACTAL_Z", fz, (18, 19, 3, 2), 16),
    ("HWCN", plain((2, 3, 1, 0)), (4, 5, 3, 2), 0), ("CHWN", plain((1, 2, 3, 0)), (4, 5, 3, 2), 0),
    ("NDHWC", plain((0, 2, 3, 4, 1)), (2, 5, 3, 2, 4), 0), ("DHWCN", plain((2, 3, 4, 1, 0)), (2, 5, 3, 2, 4), 0),
    ("BSND", plain((0, 2, 1, 3)), (2, 3, 7, 4), 0), ("SBH", plain((1, 0, 2)), (2, 5, 8), 0),
]


class Declared(Case):
    def test_a_declared_layout_is_compared_in_logical_order(self):
        for name, layout, dims, c0 in DECLARED:
            values = values_of(dims)
            shape, stored = store(layout, dims, c0, values)
            slot = {"tensor": ("F32", shape, stored), "format": name, "logical_shape": list(dims)}
            got = self.slot(self.compare(self.dumped(("F32", dims, values)), self.dumped(slot), status=0))
            self.assertEqual((got["tier"], got["n"], got["shape"], got["layout"]["candidate"], got["layout"]["how"]),
                             ("exact", size(dims), list(dims), name, "declared"), (name, dims))
            self.assertEqual(got["layout"]["c0"], c0 or None)

    def test_padding_is_in_no_metric_and_is_noted(self):
        for name, layout, dims, c0 in DECLARED:
            values = values_of(dims)
            shape, stored = store(layout, dims, c0, values, padding=float("nan"))
            slot = {"tensor": ("F32", shape, stored), "format": name, "logical_shape": list(dims)}
            got = self.slot(self.compare(self.dumped(("F32", dims, values)), self.dumped(slot), status=0))
            self.assertEqual((got["tier"], got["metrics"]["max_abs"], got["nonfinite"]["candidate"]["nan"]), ("exact", 0, 0))
            self.assertEqual("padding_nonzero" in got["notes"], len(stored) > len(values), name)

    def test_both_sides_may_lie_in_device_layouts(self):
        dims = (18, 19, 3, 2)
        values = values_of(dims)
        sides = []
        for name, layout in (("NC1HWC0", nc1hwc0), ("FRACTAL_Z", fz)):
            shape, stored = store(layout, dims, 16, values)
            sides.append(self.dumped({"tensor": ("F32", shape, stored), "format": name, "logical_shape": list(dims)}))
        got = self.layout(self.compare(*sides, status=0))
        self.assertEqual((got["reference"], got["candidate"]), ("NC1HWC0", "FRACTAL_Z"))


class Search(Case):
    def test_undeclared_layouts_are_found_and_named(self):
        for name, layout, dims, c0 in DECLARED:
            name = "NC1HWC0" if name == "NC1HWC0_C04" else name
            values = values_of(dims)
            shape, stored = store(layout, dims, c0, values)
            report = self.compare(npy("F32", dims, values), npy("F32", shape, stored), status=0)
            got = self.layout(report)
            self.assertEqual((got["candidate"], got["c0"], got["how"]), (name, c0 or None, "found"), (name, dims))
            self.assertEqual(self.slot(report)["tier"], "exact")

    def test_the_reference_may_be_the_side_in_a_device_layout(self):
        dims = (2, 19, 3, 5)
        values = values_of(dims)
        shape, stored = store(nc1hwc0, dims, 16, values)
        got = self.layout(self.compare(npy("F32", shape, stored), npy("F32", dims, values), status=0))
        self.assertEqual((got["reference"], got["c0"]), ("NC1HWC0", 16))

    def test_a_layer_is_diagnosed_through_the_layout_that_was_found(self):
        dims = (2, 19, 3, 5)
        x = values_of(dims)
        y = [max(v, 0.0) for v in x]
        y[7] += 0.5
        y[100] += 0.5
        for layout, c0 in ((nc1hwc0, 16), (plain((0, 2, 3, 1)), 0)):
            shape, stored_x = store(layout, dims, c0, x)
            _, stored_y = store(layout, dims, c0, y)
            report = self.compare(
                normdiff_dump([("act", "ReLU", {"input.0": ("F32", dims, x), "output.0": ("F32", dims, [max(v, 0.0) for v in x])})]),
                normdiff_dump([("act", "ReLU", {"input.0": ("F32", shape, stored_x), "output.0": ("F32", shape, stored_y)})]),
                "--metrics", "all", status=1)
            first = report["first_divergence"]
            self.assertEqual((first["role"], first["input_drift"]), ("origin", 0))
            slot = [s for s in report["layers"][0]["slots"] if s["slot"] == "output.0"][0]
            self.assertEqual((slot["layout"]["how"], slot["metrics"]["max_abs"]), ("found", 0.5))
            self.assertIn("p999", slot["metrics"])
            self.assertEqual(slot["shapes"]["candidate"], list(shape))

    def test_padding_of_a_found_layout_is_noted(self):
        dims = (2, 19, 3, 5)
        values = values_of(dims)
        shape, stored = store(nc1hwc0, dims, 16, values, padding=2.0)
        got = self.slot(self.compare(npy("F32", dims, values), npy("F32", shape, stored), status=0))
        self.assertIn("padding_nonzero", got["notes"])
        self.assertEqual(got["tier"], "exact")

    def test_the_option_takes_c0_from_the_count_where_the_shape_is_flat(self):
        dims = (2, 40, 3, 5)
        values = values_of(dims)
        for c0 in (16, 32):
            _, stored = store(nc1hwc0, dims, c0, values)
            report = self.compare(npy("F32", dims, values), npy("F32", (len(stored),), stored), "--layout",
                                  "cand:*=NC1HWC0", status=0)
            self.assertEqual((self.layout(report)["how"], self.slot(report)["tier"]), ("declared", "exact"))

    def test_a_channels_last_reference_is_met_too(self):
        dims = (2, 19, 3, 5)
        values = values_of(dims)
        shape, stored = store(nc1hwc0, dims, 16, values)
        nhwc, last = store(plain((0, 2, 3, 1)), dims, 0, values)
        got = self.layout(self.compare(npy("F32", nhwc, last), npy("F32", shape, stored), status=0))
        self.assertEqual((got["reference"], got["candidate"], got["c0"]), ("NHWC", "NC1HWC0", 16))

    def test_weights_of_grouped_convolutions_are_found(self):
        for groups, dims in ((32, (32, 1, 3, 3)), (4, (24, 5, 3, 3)), (2, (40, 20, 1, 3))):
            values = values_of(dims)
            shape, stored = store(fz_groups(groups), dims, 16, values)
            got = self.layout(self.compare(npy("F32", dims, values), npy("F32", shape, stored), status=0))
            self.assertEqual((got["candidate"], got["c0"]), ("FRACTAL_Z", 16), groups)

    def test_sequences_get_the_names_of_attention_operators(self):
        b, n, s, d = 2, 3, 7, 4
        values = values_of((b, n, s, d))
        shape, stored = store(plain((0, 2, 1, 3)), (b, n, s, d), 0, values)
        for seen, name in ((shape, "BSND"), ((b, s, n * d), "BSH"), ((b * s, n, d), "TND")):
            report = self.compare(npy("F32", (b, n, s, d), values), npy("F32", seen, stored), status=0)
            got = self.layout(report)
            self.assertEqual((got["reference"], got["candidate"], got["how"]), ("BNSD", name, "found"))
            report = self.compare(npy("F32", seen, stored), npy("F32", (b, n, s, d), values), status=0)
            self.assertIn(name, self.layout(report).values())

    def test_heads_split_on_one_side_are_named(self):
        b, s, n, d = 2, 7, 3, 4
        values = values_of((b, s, n, d))
        _, swapped = store(plain((1, 0, 2, 3)), (b, s, n, d), 0, values)
        shapes = {"BSH": (b, s, n * d), "BSND": (b, s, n, d), "TND": (b * s, n, d), "SBH": (s, b, n * d)}
        for one, other in (("BSH", "BSND"), ("BSND", "BSH"), ("BSH", "TND"), ("TND", "BSH"), ("BSND", "SBH"),
                           ("SBH", "BSND")):
            stored = [swapped if name == "SBH" else values for name in (one, other)]
            got = self.layout(self.compare(npy("F32", shapes[one], stored[0]), npy("F32", shapes[other], stored[1]),
                                           status=0))
            self.assertEqual((got["reference"], got["candidate"], got["how"]), (one, other, "found"))

    def test_a_reshape_that_is_no_layout_stays_a_fault(self):
        for one, other in (((2, 6), (3, 4)), ((2, 2), (4,)), ((2, 3, 4), (2, 12)), ((2, 3, 4), (3, 2, 4)),
                           ((1, 6, 4), (3, 2, 4)), ((1, 1, 8), (2, 1, 4))):
            values = values_of(one)
            report = self.compare(npy("F32", one, values), npy("F32", other, values), status=1)
            self.assertEqual(report["layers"][0]["fails"], "shape", (one, other))

    def test_a_tensor_cut_out_of_a_larger_one_is_no_layout(self):
        for small, large in (((3,), (4,)), ((2, 3), (2, 4)), ((20, 10), (32, 16)), ((2, 3, 1, 1), (2, 4, 1, 1))):
            values = values_of(large)
            cut = [values[sum(i * math.prod(large[k + 1:]) for k, i in enumerate(index))]
                   for index in itertools.product(*(range(d) for d in small))]
            report = self.compare(npy("F32", small, cut), npy("F32", large, values), status=1)
            self.assertEqual(report["layers"][0]["fails"], "shape", (small, large))

    def test_equal_shapes_say_the_layout_with_drift_before_and_after(self):
        dims = (16, 16, 1, 1)  # NC1HWC0 of (16, 16, 1, 1) is itself; NZ of a 32 x 32 matrix is not
        del dims
        m = (32, 32)
        values = values_of(m)
        _, stored = store(nz, m, 16, values)
        report = self.compare(npy("F32", m, values), npy("F32", m, stored), status=1)
        got = self.slot(report)
        self.assertEqual((got["layout"]["candidate"], got["layout"]["c0"], got["layout"]["how"]), ("FRACTAL_NZ", 16, "found"))
        self.assertGreater(got["drift"], 0.3)
        self.assertIn("equal_under_layout", got["notes"])
        line = [line for line in report["checklist"] if line["id"] == "layout"][0]
        self.assertEqual(line["status"], "mismatch")
        self.assertRegex(line["evidence"], r"off by 1\.\d+; if .* FRACTAL_NZ, they agree to 0$")


class Checklist(Case):
    """What the line about layouts says of a layer that is off for another reason."""

    def setUp(self):
        super().setUp()
        self.dims = (2, 19, 3, 5)
        self.values = values_of(self.dims)
        self.wrong = [v * 1.5 for v in self.values]
        self.reference = self.dumped(("F32", self.dims, self.values))

    def line(self, candidate):
        report = self.compare(self.reference, self.dumped(candidate), status=1)
        self.assertNotIn("layout", [c["id"] for c in report["causes"]])
        return [line for line in report["checklist"] if line["id"] == "layout"][0]

    def test_a_declared_layout_was_converted(self):
        shape, stored = store(nc1hwc0, self.dims, 16, self.wrong)
        line = self.line({"tensor": ("F32", shape, stored), "format": "NC1HWC0", "logical_shape": list(self.dims)})
        self.assertEqual((line["status"], line["declared"]["candidate"]), ("ok", "NC1HWC0"))
        self.assertEqual(line["evidence"], "brought into logical order before comparing")
        shape, stored = store(nc1hwc0, self.dims, 16, self.wrong, padding=math.nan)
        line = self.line({"tensor": ("F32", shape, stored), "format": "NC1HWC0", "logical_shape": list(self.dims)})
        self.assertIn("padding holds other values than zero", line["evidence"])

    def test_a_layout_that_is_only_noted_of_the_device_was_not_converted(self):
        line = self.line({"tensor": ("F32", self.dims, self.wrong), "device_layout": "NC1HWC0"})
        self.assertIn("nothing was converted", line["evidence"])

    def test_a_layout_that_was_found_for_contradicting_shapes_is_no_fault_of_its_own(self):
        shape, stored = store(nc1hwc0, self.dims, 16, [v + 0.02 * (i % 3) for i, v in enumerate(self.values)])
        report = self.compare(self.reference, self.dumped(("F32", shape, stored)))
        line = [line for line in report["checklist"] if line["id"] == "layout"][0]
        self.assertEqual((line["status"], line["declared"]["candidate"], line["recovered"]["candidate"]),
                         ("ok", None, "NC1HWC0"))
        self.assertIn("a search found the layout", line["evidence"])
        self.assertNotIn("layout", [c["id"] for c in report["causes"]])


class Contradictions(Case):
    def setUp(self):
        super().setUp()
        self.dims = (2, 19, 3, 5)
        self.values = values_of(self.dims)
        self.shape, self.stored = store(nc1hwc0, self.dims, 16, self.values)
        self.reference = self.dumped(("F32", self.dims, self.values))

    def test_a_wrong_declaration_is_overruled_by_what_fits(self):
        slot = {"tensor": ("F32", self.shape, self.stored), "format": "FRACTAL_NZ", "logical_shape": list(self.dims)}
        got = self.slot(self.compare(self.reference, self.dumped(slot), status=0))
        self.assertEqual((got["tier"], got["layout"]["candidate"], got["layout"]["how"]), ("exact", "NC1HWC0", "found"))
        self.assertIn("layout_contradicts", got["notes"])

    def test_a_missing_logical_shape_comes_from_the_other_side(self):
        slot = {"tensor": ("F32", self.shape, self.stored), "format": "NC1HWC0"}
        got = self.slot(self.compare(self.reference, self.dumped(slot), status=0))
        self.assertEqual((got["tier"], got["layout"]["candidate"], got["layout"]["c0"]), ("exact", "NC1HWC0", 16))

    def test_what_no_layout_explains_stays_unreadable_with_the_reason(self):
        slot = {"tensor": ("F32", (2, 2, 3, 5, 16), [float(i % 7) for i in range(len(self.stored))]), "format": "NC1HWC0",
                "logical_shape": [2, 40, 3, 5]}
        report = self.compare(self.reference, self.dumped(slot), status=1)
        self.assertEqual(report["layers"][0]["fails"], "unreadable")


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
