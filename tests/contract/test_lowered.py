"""A candidate that computed everything in float16 where the reference is float32, as ATC builds models by default, and
images that the device prepares: said once, told from what is a layer's own.

  python3 tests/contract/test_lowered.py PATH_TO_NORMDIFF [unittest arguments]
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
from dumps import normdiff_dump, npy, pack, write

TOOL = ""
ROWS, WIDTH, BLOCKS = 16, 24, 10


def f16(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def wave(count, seed):
    return [math.sin(12.9898 * (i + 1) + 78.233 * seed) * 1.7 for i in range(count)]


def layer_norm(x, cast):
    out = []
    for r in range(ROWS):
        row = x[r * WIDTH:(r + 1) * WIDTH]
        mean = sum(row) / WIDTH
        variance = sum((v - mean) ** 2 for v in row) / WIDTH
        out += [cast((v - mean) / math.sqrt(variance + 1e-5)) for v in row]
    return out


def model(cast, fault=None, dtype="F32", inputs=True):
    """Blocks of norm, tanh and residual; every value goes through `cast`."""
    x, layers = [cast(v) for v in wave(ROWS * WIDTH, 1)], []

    def add(name, kind, out, *ins):
        slots = {"output.0": (dtype, (ROWS, WIDTH), out)}
        if inputs:
            slots.update({"input.%d" % k: (dtype, (ROWS, WIDTH), v) for k, v in enumerate(ins)})
        layers.append((name, kind, slots, {"eps": 1e-5} if kind == "LayerNorm" else {}))
        return out

    for b in range(BLOCKS):
        y = layer_norm(x, cast)
        if fault == b:
            y = [cast(v * (1 + 0.03 * (i % 7))) for i, v in enumerate(y)]
        y = add("block%d/norm" % b, "LayerNorm", y, x)
        t = add("block%d/tanh" % b, "Tanh", [cast(math.tanh(v)) for v in y], y)
        x = add("block%d/add" % b, "Add", [cast(u + v) for u, v in zip(x, t)], x, t)
    return layers


class Lowered(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-lowered-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_tool(self, *args):
        done = subprocess.run([TOOL] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"))
        return done.returncode, done.stdout.decode()

    def paths(self, reference, candidate):
        return [write(self.dir, "ref.bin", normdiff_dump(reference, device="cuda:0")),
                write(self.dir, "cand.bin", normdiff_dump(candidate, device="npu:0"))]

    def compare(self, reference, candidate, *options):
        status, text = self.run_tool("-f", "json", *options, *self.paths(reference, candidate))
        return status, json.loads(text)

    def test_an_honest_float16_candidate_is_said_once_with_the_drift_that_explains(self):
        for inputs in (True, False):
            status, report = self.compare(model(f32, inputs=inputs), model(f16, dtype="F16", inputs=inputs))
            lowered = report["lowered"]
            self.assertEqual((status, lowered["reference"], lowered["candidate"], lowered["layers"], lowered["of"]),
                             (0, "float32", "float16", 3 * BLOCKS, 3 * BLOCKS))
            worst = max(layer["drift"] for layer in report["layers"])
            # a rounding leaves 2e-4 of a float16; thirty of them that know nothing of each other about 1e-3
            self.assertTrue(2e-4 < lowered["explains"] < 2e-3, lowered["explains"])
            self.assertLess(worst, 2 * lowered["explains"])
            self.assertEqual(lowered["ranked"], [])
        _, text = self.run_tool(*self.paths(model(f32), model(f16, dtype="F16")))
        self.assertEqual(text.count("default of ATC"), 1)

    def test_layers_are_ranked_by_their_own_error(self):
        for inputs in (True, False):
            _, report = self.compare(model(f32, inputs=inputs), model(f16, fault=4, dtype="F16", inputs=inputs))
            ranked = report["lowered"]["ranked"]
            self.assertEqual([row["layer"] for row in ranked][:1], ["block4/norm"])
            self.assertGreater(ranked[0]["own_error"], 0.02)
            self.assertGreater(ranked[0]["roundings"], 50)
            self.assertNotIn("block5/norm", [row["layer"] for row in ranked])
            line = [c for c in report["checklist"] if c["id"] == "dtype"][0]
            self.assertIn("float16 in 30 of 30 layers", line["evidence"])

    def test_the_list_for_atc_holds_the_operators_one_a_line(self):
        paths = self.paths(model(f32), model(f16, fault=4, dtype="F16"))
        listed = os.path.join(self.dir, "keep.cfg")
        status, _ = self.run_tool("-q", "-o", "keep-dtype=" + listed, *paths)
        with open(listed) as f:
            self.assertEqual(f.read(), "block4/norm\n")
        status, text = self.run_tool("-f", "keep-dtype", *paths)
        self.assertEqual(text, "block4/norm\n")

    def test_names_come_from_the_framework_where_a_fusion_map_gives_them(self):
        reference, candidate = model(f32), model(f16, fault=4, dtype="F16")
        graph, fused = [], []
        for k, (name, kind, slots, _) in enumerate(candidate):
            own = "op_%d" % k
            graph.append({"name": own, "type": kind, "id": k, "input": [], "attr": [
                {"key": "_datadump_original_op_names", "value": {"list": {"s": [name], "val_type": 1}}}],
                "output_desc": [{"attr": [{"key": "_datadump_origin_name", "value": {"s": name}},
                                          {"key": "_datadump_origin_output_index", "value": {"i": 0}}]}]})
            fused.append((own, kind, slots, {}))
        fusion = write(self.dir, "model.json", json.dumps({"graph": [{"op": graph}]}))
        _, text = self.run_tool("-f", "keep-dtype", "--fusion", fusion, *self.paths(reference, fused))
        self.assertEqual(text, "block4/norm\n")

    def test_an_offline_comparison_lists_what_the_model_calls_its_operators(self):
        time, graph = 1700000000000000, []
        for k, ((name, kind, slots, _), (_, _, low, _)) in enumerate(zip(model(f32), model(f16, fault=4))):
            write(self.dir, "o/dump_data/onnx/%s.0.%d.npy" % (name.replace("/", "_"), time + k),
                  npy("F32", (ROWS, WIDTH), slots["output.0"][2]))
            tensors = {s: Tensor("F16", (ROWS, WIDTH), pack("F16", v[2])) for s, v in low.items()}
            write(self.dir, "o/dump_data/npu/20240102030405/0/m/1/0/%s.op_%d.%d.7.%d" % (kind, k, k, time + 1000 + k),
                  v2("op_%d" % k, [tensors[s] for s in sorted(tensors) if s.startswith("input")], [tensors["output.0"]]))
            graph.append({"name": "op_%d" % k, "type": kind, "id": k, "input": [], "attr": [
                {"key": "_datadump_original_op_names", "value": {"list": {"s": [name], "val_type": 1}}}],
                "output_desc": [{"attr": [{"key": "_datadump_origin_name", "value": {"s": name}},
                                          {"key": "_datadump_origin_output_index", "value": {"i": 0}}]}]})
        write(self.dir, "o/model/m.json", json.dumps({"graph": [{"op": graph}]}))
        status, text = self.run_tool("-f", "keep-dtype", os.path.join(self.dir, "o"))
        self.assertEqual((status, text), (1, "block4/norm\n"))
        _, text = self.run_tool("-f", "json", os.path.join(self.dir, "o"))
        self.assertEqual(json.loads(text)["lowered"]["layers"], 3 * BLOCKS)

    def test_an_operator_that_overflows_float16_comes_first(self):
        reference, candidate = model(f32), model(f16, fault=4, dtype="F16")
        name, kind, slots, attributes = candidate[22]
        values = list(slots["output.0"][2])
        values[5] = math.inf
        candidate[22] = (name, kind, dict(slots, **{"output.0": ("F16", (ROWS, WIDTH), values)}), attributes)
        _, report = self.compare(reference, candidate)
        first = report["lowered"]["ranked"][0]
        self.assertEqual((first["layer"], first["own_error"]), (name, "inf"))

    def test_one_layer_in_float16_is_no_lowered_candidate(self):
        reference, candidate = model(f32), model(f32)
        name, kind, slots, attributes = candidate[9]
        candidate[9] = (name, kind, {"output.0": ("F16", (ROWS, WIDTH), slots["output.0"][2])}, attributes)
        _, report = self.compare(reference, candidate)
        self.assertIsNone(report["lowered"])
        _, report = self.compare(model(f16, dtype="F16"), model(f16, dtype="F16"))
        self.assertIsNone(report["lowered"])

    def test_values_of_float16_in_a_float32_dump_count_as_well(self):
        _, report = self.compare(model(f32), model(f16))
        self.assertEqual((report["lowered"]["candidate"], report["lowered"]["layers"]), ("float16", 3 * BLOCKS))

    # --- images ---

    def image_pair(self, reference_slots, kind="Conv2D"):
        image = bytes(range(2 * 4 * 5 * 3))
        out = [0.25 * i for i in range(2 * 6 * 4 * 5)]
        reference = normdiff_dump([("conv1", "Conv", dict(reference_slots, **{
            "output.0": ("F32", (2, 6, 4, 5), out)}))])
        candidate = v2("conv1", [Tensor("U8", (2, 4, 5, 3), image, "NHWC")],
                       [Tensor("F32", (2, 6, 4, 5), pack("F32", out), "NCHW")])
        return [write(self.dir, "ref.bin", reference),
                write(self.dir, "npu/%s.conv1.3.7.1700000000000000" % kind, candidate)]

    def test_an_image_that_the_device_prepares_is_named_and_not_compared(self):
        pair = self.image_pair({"input.0": ("F32", (2, 3, 4, 5), [0.1 * i for i in range(2 * 3 * 4 * 5)])})
        status, text = self.run_tool("-f", "json", *pair)
        report = json.loads(text)
        self.assertEqual((status, report["verdict"], report["coverage"]["tensors_compared"]), (0, "agree", 1))
        skipped = {row["name"]: row["reason"] for row in report["coverage"]["skipped"]}
        self.assertTrue(skipped["conv1.input.0"].startswith("aipp"))
        self.assertEqual([s["slot"] for s in report["layers"][0]["slots"] if s["tier"] is not None], ["output.0"])

    def test_a_float_input_beside_it_is_compared(self):
        pair = self.image_pair({"input.0": ("U8", (2, 4, 5, 3), list(range(2 * 4 * 5 * 3)))})
        _, text = self.run_tool("-f", "json", *pair)
        report = json.loads(text)
        self.assertEqual((report["coverage"]["skipped"], report["coverage"]["tensors_compared"]), ([], 2))


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
