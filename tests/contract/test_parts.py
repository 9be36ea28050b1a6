"""Tensors that are too large to be looked at whole: of such a layer a part is recomputed and every cause is still
named, with the values that were put in; damage is found wherever it lies. `--max-mem` makes small tensors large.

  test_parts.py TOOL
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)

TOOL = sys.argv.pop(1)
F = np.float32
LARGE = ["--max-mem", str(16 << 20)]  # a part has 131,072 elements then
SHAPE = (4, 256, 512)                 # four times as many


def dump(path, layers):
    """layers: [(name, type, attributes, {slot: array})]; a safetensors file with the record of a normdiff dump."""
    header, data, record = {}, [], []
    at = 0
    for number, (name, kind, attributes, slots) in enumerate(layers):
        entry = {"name": name, "type": kind, "attributes": attributes, "slots": {}}
        for slot, array in slots.items():
            key = "t%d.%s" % (number, slot)
            raw = np.ascontiguousarray(array, dtype=F).tobytes()
            header[key] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
            entry["slots"][slot] = {"tensor": key}
            data.append(raw)
            at += len(raw)
        record.append(entry)
    header["__metadata__"] = {"normdiff": json.dumps({"version": 1, "layers": record})}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def layer_norm(x, w, b, eps):
    x = x.astype(np.float64)
    d = x - x.mean(-1, keepdims=True)
    return (d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * w + b).astype(F)


def rms_norm(x, w, eps):
    x = x.astype(np.float64)
    return (x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w).astype(F)


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rng = np.random.default_rng(11)
        cls.rng = rng
        scale = np.exp(rng.normal(0, 0.7, SHAPE[:2] + (1,)))
        cls.x = (0.1 * scale * rng.standard_normal(SHAPE)).astype(F)
        cls.w = np.exp(rng.normal(0, 0.3, SHAPE[-1])).astype(F)
        cls.b = rng.normal(0, 0.3, SHAPE[-1]).astype(F)
        cls.y = layer_norm(cls.x, cls.w, cls.b, 1e-5)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="normdiff-parts-")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_tool(self, a, b, *options):
        return subprocess.run([TOOL, "-f", "json", *options, a, b], capture_output=True, text=True)

    def pair(self, reference, candidate, *options):
        paths = [os.path.join(self.folder, name) for name in ("a.dump", "b.dump")]
        for path, layers in zip(paths, (reference, candidate)):
            dump(path, layers)
        return json.loads(self.run_tool(*paths, *(options or LARGE)).stdout)

    def norm(self, y, weights=True):
        slots = {"input.0": self.x, "output.0": y}
        if weights:
            slots.update({"param.weight": self.w, "param.bias": self.b})
        return [("norm", "LayerNorm", {"normalized_shape": [SHAPE[-1]]}, slots)]

    def cause(self, report, cause, status="confirmed"):
        first = report["causes"][0]
        self.assertEqual((first["id"], first["status"], first["side"]), (cause, status, "candidate"))
        return first["parameters"]

    def test_an_eps_is_recovered_from_a_part(self):
        for weights in (True, False):
            other = layer_norm(self.x, self.w, self.b, 1e-3)
            found = self.cause(self.pair(self.norm(self.y, weights), self.norm(other, weights)), "eps")
            self.assertAlmostEqual(found["candidate"] / 1e-3, 1, delta=0.01)
            self.assertAlmostEqual(found["reference"] / 1e-5, 1, delta=0.01)

    def test_a_tail_is_measured_on_the_whole(self):
        other = self.y.copy()
        other.reshape(-1)[-5000:] = 0
        found = self.cause(self.pair(self.norm(self.y), self.norm(other)), "tail_not_written")
        self.assertEqual((found["first"], found["count"], found["content"]), (self.y.size - 5000, 5000, "zeros"))

    def test_most_of_a_batch_that_was_not_written_is_a_tail(self):
        other = self.y.copy()
        other.reshape(-1)[180000:] = 0
        for options in (LARGE, ["-j2"]):
            found = self.cause(self.pair(self.norm(self.y), self.norm(other), *options), "tail_not_written")
            self.assertEqual((found["first"], found["count"]), (180000, self.y.size - 180000))

    def test_a_block_is_found_wherever_it_lies(self):
        for sample, row in ((0, 3), (3, 200)):
            other = self.y.copy()
            other[sample, row:row + 16, 64:128] = 3
            report = self.pair(self.norm(self.y), self.norm(other))
            found = self.cause(report, "memory_overwritten")
            self.assertEqual(found["block"], "%d:%d, %d:%d, 64:128" % (sample, sample + 1, row, row + 16))
            line = next(line for line in report["checklist"] if line["id"] == "damage")
            self.assertEqual(line["status"], "mismatch")

    def test_a_range_and_a_channel_have_their_places_in_the_whole(self):
        ranged, channel = self.y.copy(), self.y.copy()
        ranged.reshape(-1)[300000:300700] = -7
        channel[..., 17] *= F(1.5)
        found = self.cause(self.pair(self.norm(self.y), self.norm(ranged)), "memory_overwritten")
        self.assertEqual((found["first"], found["count"]), (300000, 700))
        found = self.cause(self.pair(self.norm(self.y), self.norm(channel)), "one_channel")
        self.assertEqual((found["channel"], found["count"]), (17, 512))

    def test_one_element_is_neither_a_channel_nor_a_tail(self):
        other = self.y.copy()
        other.reshape(-1)[123456] += 5
        report = self.pair(self.norm(self.y), self.norm(other))
        self.assertEqual(report["first"]["origin"]["layer"], "norm")
        self.assertNotIn(("one_channel", "confirmed"), [(c["id"], c["status"]) for c in report["causes"]])

    def test_weights_that_are_too_large_are_cut_with_the_outputs_they_make(self):
        x = self.rng.standard_normal((512, 256)).astype(F)
        w = (self.rng.standard_normal((2048, 256)) / 16).astype(F)
        b = self.rng.normal(0, 0.3, 2048).astype(F)
        layers = []
        for bias in (b, 0 * b):
            y = (x.astype(np.float64) @ w.T.astype(np.float64) + bias).astype(F)
            layers.append([("fc", "Linear", {}, {"input.0": x, "output.0": y, "param.weight": w, "param.bias": b})])
        self.cause(self.pair(*layers), "bias_dropped")

    def test_statistics_over_the_batch_are_cut_by_channels(self):
        x = (self.rng.standard_normal((8, 32, 48, 48)) * np.exp(self.rng.normal(-2, 0.7, (1, 32, 1, 1)))).astype(F)
        w = np.exp(self.rng.normal(0, 0.3, 32)).astype(F)
        mean = x.astype(np.float64).mean((0, 2, 3), keepdims=True)
        var = x.astype(np.float64).var((0, 2, 3), keepdims=True)
        layers = []
        for eps in (1e-5, 1e-3):
            y = ((x - mean) / np.sqrt(var + eps) * w.reshape(1, -1, 1, 1)).astype(F)
            layers.append([("bn", "BatchNorm2d", {"training": True},
                            {"input.0": x, "output.0": y, "param.weight": w, "param.bias": 0 * w})])
        found = self.cause(self.pair(*layers), "eps")
        self.assertAlmostEqual(found["candidate"] / 1e-3, 1, delta=0.01)

    def test_rounding_alone_is_no_divergence(self):
        other = self.y * (1 + 4e-8 * self.rng.standard_normal(SHAPE)).astype(F)
        report = self.pair(self.norm(self.y), self.norm(other))
        self.assertEqual((report["verdict"], report["first_divergence"], report["causes"]), ("agree", None, []))

    def test_the_figures_do_not_depend_on_the_number_of_threads(self):
        other = self.y.copy()
        other.reshape(-1)[-5000:] = 0
        self.pair(self.norm(self.y), self.norm(other))
        paths = [os.path.join(self.folder, name) for name in ("a.dump", "b.dump")]
        one, two = [self.run_tool(*paths, *LARGE, jobs).stdout for jobs in ("-j1", "-j2")]
        self.assertEqual(one, two)


class Names(unittest.TestCase):
    """Arrays of hooks have names but no types: a formula that a side follows is believed."""

    def report(self, reference, candidate):
        with tempfile.TemporaryDirectory(prefix="normdiff-parts-") as folder:
            paths = [os.path.join(folder, name) for name in ("a.npz", "b.npz")]
            np.savez(paths[0], **reference)
            np.savez(paths[1], **candidate)
            run = subprocess.run([TOOL, "-f", "json", *paths], capture_output=True, text=True)
            return json.loads(run.stdout)

    def test_a_norm_is_recognised_by_its_name_and_its_formula(self):
        for width in (96, 2048):
            rng = np.random.default_rng(5)
            x = (0.01 * np.exp(rng.normal(0, 0.7, (8, 64, 1))) * rng.standard_normal((8, 64, width))).astype(F)
            w = np.exp(rng.normal(0, 0.3, width)).astype(F)
            sides = [{"model.embed": x, "model.layers.0.input_layernorm": rms_norm(x, w, eps)}
                     for eps in (1e-6, 1e-4)]
            report = self.report(*sides)
            self.assertEqual(report["first"]["origin"]["layer"], "model.layers.0.input_layernorm")
            self.assertEqual((report["causes"][0]["id"], report["causes"][0]["status"]), ("eps", "confirmed"))
            self.assertAlmostEqual(report["causes"][0]["parameters"]["candidate"] / 1e-4, 1, delta=0.01)

    def test_a_name_alone_proves_nothing(self):
        rng = np.random.default_rng(6)
        x = rng.standard_normal((8, 64, 96)).astype(F)
        y = np.sin(3 * x)  # called a norm, and none
        report = self.report({"embed": x, "odd_norm": y}, {"embed": x, "odd_norm": (y + 0.01 * x).astype(F)})
        self.assertEqual(report["first_divergence"]["layer"], "odd_norm")
        self.assertEqual([c["id"] for c in report["causes"] if c["status"] == "confirmed"], [])
        self.assertNotIn("eps", [line["id"] for line in report["checklist"]])

    def test_dropout_in_the_candidate_is_no_stale_buffer_of_the_reference(self):
        rng = np.random.default_rng(7)
        x = rng.standard_normal((8, 64, 96)).astype(F)
        dropped = np.where(rng.random(x.shape) < 0.1, 0, x / F(0.9)).astype(F)
        report = self.report({"fc": x, "drop": x}, {"fc": x, "drop": dropped})
        self.assertEqual((report["causes"][0]["id"], report["causes"][0]["status"]), ("dropout", "confirmed"))


class Holes(unittest.TestCase):
    def test_an_input_in_another_order_is_a_gap_where_the_output_follows_it(self):
        rng = np.random.default_rng(8)
        x = rng.standard_normal((4, 16, 8, 8)).astype(F)
        h = rng.standard_normal((4, 16, 8, 8)).astype(F)  # of a convolution that was not dumped
        turned = np.ascontiguousarray(h.transpose(0, 2, 3, 1)).reshape(h.shape)
        sides = []
        for inner in (h, turned):
            d = inner.astype(np.float64)
            y = ((d - d.mean((0, 2, 3), keepdims=True)) / np.sqrt(d.var((0, 2, 3), keepdims=True) + 1e-5)).astype(F)
            sides.append([("relu", "ReLU", {}, {"input.0": x, "output.0": np.maximum(x, 0)}),
                          ("bn", "BatchNorm2d", {"training": True, "affine": False},
                           {"input.0": inner, "output.0": y})])
        with tempfile.TemporaryDirectory(prefix="normdiff-parts-") as folder:
            paths = [os.path.join(folder, name) for name in ("a.dump", "b.dump")]
            for path, layers in zip(paths, sides):
                dump(path, layers)
            run = subprocess.run([TOOL, "-f", "json", *paths], capture_output=True, text=True)
        first = json.loads(run.stdout)["first_divergence"]
        self.assertEqual((first["layer"], first["role"], run.returncode), ("bn", "gap", 1))


class Steps(unittest.TestCase):
    """Weights that an optimizer has moved: some layers part further than others."""

    def report(self, stale=None):
        rng = np.random.default_rng(9)
        weights = [(rng.standard_normal((64, 64)) / 8).astype(F) for _ in range(16)]
        spread = 10 ** rng.uniform(-7, -4.5, 16)
        noise = [rng.standard_normal((64, 64)) for _ in range(16)]
        x = rng.standard_normal((96, 64)).astype(F)
        with tempfile.TemporaryDirectory(prefix="normdiff-parts-") as folder:
            for side in (0, 1):
                for step in (0, 1):
                    h, layers = x, []
                    for i, w in enumerate(weights):
                        if side == 1 and step == 1:
                            w = (w * (1 + (1e-2 if i == stale else spread[i]) * noise[i])).astype(F)
                        y = np.tanh(h.astype(np.float64) @ w.T.astype(np.float64)).astype(F)
                        layers.append(("fc%d" % i, "Block", {}, {"input.0": h, "output.0": y, "param.weight": w}))
                        h = y
                    path = os.path.join(folder, "ab"[side], "step%d" % step)
                    os.makedirs(path)
                    dump(os.path.join(path, "rank0.dump"), layers)
            run = subprocess.run([TOOL, "-f", "json", os.path.join(folder, "a"), os.path.join(folder, "b")],
                                 capture_output=True, text=True)
            return json.loads(run.stdout)

    def test_weights_that_part_unevenly_are_no_origin(self):
        report = self.report()
        self.assertNotIn("different_weights", [c["id"] for c in report["causes"] if c["status"] == "confirmed"])

    def test_weights_of_one_layer_that_stand_out_from_all_are(self):
        report = self.report(stale=7)
        self.assertEqual((report["first_divergence"]["layer"], report["first_divergence"]["step"]), ("fc7", 1))
        self.assertEqual(report["causes"][0]["id"], "different_weights")


if __name__ == "__main__":
    unittest.main(verbosity=1)
