"""CANN's dump files field by field, from outside: every number of the message, of the nano head, of ATB files and of
overflow dumps; names, folders, threads; and what hostile files get.

  python3 tests/contract/test_cann.py PATH_TO_NORMDIFF [unittest arguments]
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import cann_dumps as cann
from cann_dumps import Tensor, field, varint
from dumps import normdiff_dump, npy, pack, write

TOOL = ""
TIME = 1700000000000000


def floats(count, start=0.0):
    return pack("F32", [start + 0.25 * i for i in range(count)])


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-cann-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_tool(self, *args):
        done = subprocess.run([TOOL] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              env=dict(os.environ, LC_ALL="C"))
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def list(self, path):
        status, out, err = self.run_tool("--list", "-f", "json", path)
        return status, json.loads(out)

    def layers(self, path, status=0):
        got, listing = self.list(path)
        self.assertEqual(got, status, listing)
        return listing["layers"]

    def one(self, content, name="Conv2D.a.1.2.%d" % TIME):
        """The slots of a lone file."""
        layers = self.layers(write(self.dir, name, content))
        self.assertEqual(len(layers), 1)
        self.assertTrue(layers[0]["index"] == 0)
        return {slot["slot"]: slot for slot in layers[0]["slots"]}

    def compare(self, reference, candidate, *options):
        status, out, err = self.run_tool("-f", "json", *options, reference, candidate)
        return status, json.loads(out)

    def same(self, path, outputs, status=0):
        """Compares with a dump of the values that are expected: {layer: {slot: (shape, values)}}."""
        layers = [(name, "x", {slot: ("F32", shape, values) for slot, (shape, values) in slots.items()})
                  for name, slots in outputs.items()]
        got, report = self.compare(write(self.dir, "expected.bin", normdiff_dump(layers)), path)
        tiers = {layer["name"]: {slot["slot"]: slot["tier"] for slot in layer["slots"]} for layer in report["layers"]}
        self.assertEqual((got, tiers), (status, {name: {slot: "exact" for slot in slots} for name, slots in outputs.items()}),
                         report)
        return report


class Message(Case):
    def test_the_example_of_the_documentation(self):
        head = bytes.fromhex("3000000000000000" "0a03") + b"2.0" + bytes.fromhex(
            "108080f9c0c1c48203" "1a17" "0802" "1003" "1a070a050102010110" "3040" "3a060a0401130101" "3207") + b"net/bn1"
        layers = self.layers(write(self.dir, "BNInfer.net_bn1.3.7.%d" % TIME, head + b"\0\x3c" * 32))
        slot = layers[0]["slots"][0]
        self.assertEqual((layers[0]["name"], layers[0]["type"], slot["slot"]), ("net/bn1", "BNInfer", "output.0"))
        self.assertEqual((slot["dtype"], slot["storage"], slot["shape"], slot["layout"]),
                         ("float16", [1, 2, 1, 1, 16], [1, 19, 1, 1], "NC1HWC0"))

    def test_inputs_and_outputs_number_their_fields_differently(self):
        x, y = list(range(12)), list(range(12, 24))
        content = cann.v2("a/b", [Tensor("F32", (2, 6), pack("F32", x), "ND", original=(3, 4))],
                          [Tensor("F32", (2, 6), pack("F32", y), "ND", original=(4, 3))])
        slots = self.one(content)
        self.assertEqual((slots["input.0"]["shape"], slots["output.0"]["shape"]), ([3, 4], [4, 3]))
        self.same(os.path.join(self.dir, "Conv2D.a.1.2.%d" % TIME),
                  {"a/b": {"input.0": ((3, 4), x), "output.0": ((4, 3), y)}})

    def test_blobs_lie_back_to_back_inputs_first_then_outputs_buffers_and_workspaces(self):
        tensors = [Tensor("F32", (3,), floats(3, 10.0 * k)) for k in range(5)]
        path = write(self.dir, "A.a.1.2.%d" % TIME, cann.v2("a", tensors[:3], tensors[3:], [b"l1" * 8], [b"log"]))
        expected = {"input.%d" % k: ((3,), [10.0 * k + 0.25 * i for i in range(3)]) for k in range(3)}
        expected.update({"output.%d" % (k - 3): ((3,), [10.0 * k + 0.25 * i for i in range(3)]) for k in (3, 4)})
        self.same(path, {"a": expected})
        self.assertTrue(any("19 bytes" in what for what in self.list(path)[1]["ignored"]))

    def test_fields_of_other_versions_are_passed_over(self):
        more = [(9, 0x1234), (10, field(1, 3) + field(2, 9)), (11, 77), (12, 5), (1000, b"later"), (2 ** 29 - 1, 1)]
        content = cann.v2("a", [Tensor("F32", (2,), floats(2), fields=more[:1] + more[2:])],
                          [Tensor("F32", (2,), floats(2), fields=more)], attrs=[("k", "{}")],
                          extra=field(9, "dfx") + field(77, 1) + varint(78 << 3 | 5) + b"1234" + varint(79 << 3 | 1) + b"12345678")
        self.assertEqual(sorted(self.one(content)), ["input.0", "output.0"])

    def test_shapes_may_be_packed_or_not(self):
        for packed in (True, False):
            slot = self.one(cann.v2("a", [], [Tensor("F32", (2, 3), floats(6), packed=packed)]))["output.0"]
            self.assertEqual((slot["shape"], slot["broken"]), ([2, 3], None))

    def test_every_element_type_is_read_or_named(self):
        names = {1: "float32", 2: "float16", 3: "int8", 4: "uint8", 5: "int16", 6: "uint16", 7: "int32", 8: "int64",
                 9: "uint32", 10: "uint64", 11: "bool", 12: "float64", 16: "complex64", 17: "complex128",
                 27: "bfloat16", 34: "float8_e5m2", 35: "float8_e4m3fn"}
        for number in range(1, 43):
            slot = self.one(cann.v2("a", [], [Tensor(number, (2,), bytes(32))]))["output.0"]
            if number in names:
                self.assertEqual((slot["dtype"], slot["broken"]), (names[number], None))
            else:
                self.assertIn("CANN type %d" % number, slot["broken"])
        self.assertIn("HIFLOAT8", self.one(cann.v2("a", [], [Tensor(33, (2,), bytes(2))]))["output.0"]["broken"])
        self.assertIn("INT4", self.one(cann.v2("a", [], [Tensor(28, (2,), bytes(1))]))["output.0"]["broken"])
        self.assertIn("CANN type 4711", self.one(cann.v2("a", [], [Tensor(4711, (2,), bytes(1))]))["output.0"]["broken"])

    def test_bytes_without_a_type_or_shape_are_int8_of_their_size(self):
        slot = self.one(cann.v2("a", [], [Tensor("UNDEFINED", (2, 2), bytes(range(7)))]))["output.0"]
        self.assertEqual((slot["dtype"], slot["broken"]), ("int8", None))
        slot = self.one(cann.v2("a", [], [Tensor("F32", (), floats(5))]))["output.0"]
        self.assertEqual(slot["shape"], [5])

    def test_dynamic_dimensions_are_unknown(self):
        slot = self.one(cann.v2("a", [], [Tensor("F32", (2, 3), floats(6), original=(2 ** 64 - 1, 3))]))["output.0"]
        self.assertEqual((slot["shape"], slot["broken"]), ([2, 3], None))
        slot = self.one(cann.v2("a", [], [Tensor("F32", (2 ** 64 - 1, 3), floats(6))]))["output.0"]
        self.assertEqual((slot["shape"], slot["broken"]), ([6], None))

    def test_a_size_above_the_shapes_is_cut_and_one_below_is_broken(self):
        path = write(self.dir, "A.a.1.2.%d" % TIME, cann.v2("a", [], [Tensor("F32", (3,), floats(8))]))
        self.same(path, {"a": {"output.0": ((3,), [0.0, 0.25, 0.5])}})
        slot = self.one(cann.v2("a", [], [Tensor("F32", (9,), floats(8))]))["output.0"]
        self.assertIn("takes 36 bytes, there are 32", slot["broken"])

    def test_bytes_behind_the_blobs_are_noted(self):
        slots = [(s, "x", {"output.0": ("F32", (2,), [0.0, 0.25])}) for s in ("a",)]
        path = write(self.dir, "A.a.1.2.%d" % TIME, cann.v2("a", [], [Tensor("F32", (2,), floats(2))]) + b"more")
        _, report = self.compare(write(self.dir, "r.bin", normdiff_dump(slots)), path)
        self.assertIn("trailing_bytes", report["layers"][0]["slots"][0]["notes"])

    def test_a_format_may_carry_the_whole_word_and_the_groups_stand_in_sub_format(self):
        # FRACTAL_Z of a convolution of 2 groups, N = 4, C = 3 each, 1x1: C0 16 and N0 16 hold both groups
        data = [0.0] * 256
        for k in range(2):
            for n in range(2):
                for c in range(3):
                    data[(k * 2 + n) * 16 + k * 3 + c] = 1.0 + 100 * k + 10 * n + c
        tensor = Tensor("F32", (1, 1, 16, 16), pack("F32", data), 4 | 2 << 8 | 5 << 24, original=(4, 3, 1, 1), sub=2)
        path = write(self.dir, "A.a.1.2.%d" % TIME, cann.v2("a", [], [tensor]))
        values = [1.0 + 100 * k + 10 * n + c for k in range(2) for n in range(2) for c in range(3)]
        self.same(path, {"a": {"output.0": ((4, 3, 1, 1), values)}})

    def test_a_layout_without_a_formula_is_named_with_its_number(self):
        for number, name in ((5, "NC1C0HWPAD"), (9, "C1HWNC0"), (38, "FRACTAL_ZN_LSTM"), (48, "FRACTAL_Z_WINO"),
                             (49, "C1HWC0"), (200, "without a name")):
            slots = self.one(cann.v2("a", [Tensor("F32", (2, 16), floats(32), number)],
                                     [Tensor("F32", (2, 16), floats(32))]))
            self.assertIn("no formula is known", slots["input.0"]["broken"])
            self.assertIn("CANN format %d" % number, slots["input.0"]["broken"])
            self.assertIn(name, slots["input.0"]["broken"])
            self.assertIsNone(slots["output.0"]["broken"])

    def test_the_original_operator_numbers_types_as_the_graph_engine_does(self):
        layers = self.layers(write(self.dir, "A.a.1.2.%d" % TIME, cann.v2("a", [], [
            Tensor("F16", (1, 2, 1, 1, 16), bytes(64), "NC1HWC0", (1, 1, 1, 19), ("net/conv", 1, "BF16", "NHWC"))])))
        self.assertIn("origin.0=net/conv", layers[0]["attributes"])
        self.assertIn("origin_dtype.0=BF16", layers[0]["attributes"])
        self.assertIn("origin_format.0=NHWC", layers[0]["attributes"])
        self.assertEqual(layers[0]["slots"][0]["shape"], [1, 1, 1, 19])

    def test_the_message_names_the_operator_and_else_the_file_does(self):
        for name, expected in (("net/conv 1.a", "net/conv 1.a"), (None, "net_conv_1_a")):
            layers = self.layers(write(self.dir, "Conv2D.net_conv_1_a.1.2.%d" % TIME,
                                       cann.v2(name, [], [Tensor("F32", (2,), floats(2))])))
            self.assertEqual((layers[0]["name"], layers[0]["type"]), (expected, "Conv2D"))


class Containers(Case):
    def test_version_1_holds_its_data_inside(self):
        path = write(self.dir, "A.a.1.2.%d" % TIME, cann.v1("a", [Tensor("F32", (3,), floats(3, 5))], [
            Tensor("F32", (3,), floats(3))]))
        self.assertEqual(self.list(path)[1]["dump"]["format"], "cannv1")
        self.same(path, {"a": {"input.0": ((3,), [5.0, 5.25, 5.5]), "output.0": ((3,), [0.0, 0.25, 0.5])}})
        path = write(self.dir, "A.b.1.2.%d" % TIME, cann.v1("b", [], [Tensor("F32", (3,), floats(3))], version=None))
        self.same(path, {"b": {"output.0": ((3,), [0.0, 0.25, 0.5])}})

    def test_nano_heads_number_types_as_the_graph_engine_does(self):
        for dtype, name in (("F32", "float32"), ("F16", "float16"), ("I8", "int8"), ("I32", "int32"), ("U8", "uint8"),
                            ("I64", "int64"), ("F64", "float64"), ("BOOL", "bool"), ("BF16", "bfloat16")):
            size = {"F32": 4, "F16": 2, "I8": 1, "I32": 4, "U8": 1, "I64": 8, "F64": 8, "BOOL": 1, "BF16": 2}[dtype]
            slots = self.one(cann.nano([Tensor(dtype, (3,), bytes(3 * size))],
                                       [Tensor(dtype, (1, 1, 1, 1, 16), bytes(16 * size), "NC1HWC0", (1, 5, 1, 1),
                                               ("net/x", 0, "F32", "NCHW"))]), "ConcatV2.a_b.3.7.%d" % TIME)
            self.assertEqual((slots["input.0"]["dtype"], slots["input.0"]["shape"]), (name, [3]))
            self.assertEqual((slots["output.0"]["dtype"], slots["output.0"]["shape"], slots["output.0"]["layout"]),
                             (name, [1, 5, 1, 1], "NC1HWC0"))
        layers = self.layers(write(self.dir, "n/ConcatV2.a_b.3.7.%d" % TIME, cann.nano([], [
            Tensor("F32", (2,), floats(2), origin=("net/concat", 0, "F16", "NHWC"))])))
        self.assertEqual((layers[0]["name"], layers[0]["type"]), ("a_b", "ConcatV2"))
        self.assertIn("origin.0=net/concat", layers[0]["attributes"])

    def test_atb_files_hold_one_tensor_and_later_runs_behind_it(self):
        one, two = (cann.atb(Tensor("F32", (3,), floats(3, k))) for k in (0, 7))
        path = write(self.dir, "intensor0.bin", one)
        slot = self.layers(path)[0]["slots"][0]
        self.assertEqual((slot["dtype"], slot["shape"]), ("float32", [3]))
        layers = self.layers(write(self.dir, "intensor1.bin", one + two))
        self.assertEqual(len([s for layer in layers for s in layer["slots"]]), 2)
        external = cann.atb(Tensor("F16", (2, 2), b""), ["data=bytes.dat"])
        write(self.dir, "bytes.dat", struct.pack("<4e", 1, 2, 3, 4))
        slot = self.layers(write(self.dir, "outtensor0.bin", external.replace(b"Object.Length=0", b"Object.Length=8")
                                 .replace(b"data=0,0", b"data=0,8")))[0]["slots"][0]
        self.assertEqual((slot["dtype"], slot["shape"], slot["broken"], slot["statistics"]["max"]),
                         ("float16", [2, 2], None, 4))

    def test_statistics_tables_give_what_the_device_printed(self):
        head = ("Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count,"
                "Negative Inf Count,Positive Inf Count\n")
        slots = self.one(head + "Input,0,24,DT_FLOAT,ND,2x3,3.5,-1.5,0.5,6,1,0,2\n"
                                "Output,0,12,DT_BF16,NC1HWC0,1x1x1x1x16,,,,,,,\n", "Relu.a.1.2.%d.csv" % TIME)
        x = slots["input.0"]
        self.assertEqual((x["evidence"], x["shape"], x["statistics"]["max"], x["statistics"]["min"], x["statistics"]["mean"]),
                         ("statistics", [2, 3], 3.5, -1.5, 0.5))
        self.assertEqual(x["nonfinite"]["nan"], 1)
        self.assertIn("BF16", json.dumps(slots["output.0"]))

    def test_statistics_leave_out_what_they_count(self):
        """The writer's own rule: NaN in no extreme, infinities in them, and a mean that shows both; six digits."""
        head = ("Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count,"
                "Negative Inf Count,Positive Inf Count\n")
        inf, nan = float("inf"), float("nan")
        for values, row, status in (
                ([1, 2, nan, 4], "4,1,nan,4,1,0,0", 0), ([1, 2, inf, 4], "inf,1,inf,4,0,0,1", 0),
                ([1, 2, -inf, inf], "inf,-inf,nan,4,0,1,1", 0), ([nan] * 4, "nan,nan,nan,4,4,0,0", 0),
                ([1, 2, 3, 4], "4,1,2.5,4,0,0,0", 0), ([1, 2, 3, 4], "4,1,nan,4,1,0,0", 1),
                ([1, 2, 3, 4], "inf,1,inf,4,0,0,1", 1), ([1, 2, nan, 4], "4,1,2.33333,4,0,0,0", 1),
                ([1, 2, 3, 4], "5,1,2.5,4,0,0,0", 1), ([1, 2, 3, 4], "4,1,2.6,4,0,0,0", 0)):
            reference = normdiff_dump([("a", "Relu", {"output.0": ("F32", (4,), values)})])
            got, report = self.compare(write(self.dir, "r.bin", reference), write(
                self.dir, "Relu.a.1.2.%d.csv" % TIME, head + "Output,0,16,DT_FLOAT,ND,4," + row + "\n"))
            self.assertEqual(got, status, row)
            if row in ("4,1,2.5,4,0,0,0", "4,1,2.6,4,0,0,0"):
                slot = report["layers"][0]["slots"][0]
                self.assertEqual(slot["tier"], "noise" if "2.5" in row else "elevated")

    def overflow(self, new):
        if new:
            acc = struct.pack("<11Q", 5, 7, 3, 0, 65535, 65535, 1, 2, 4, 6, 0x20)
            blob = struct.pack("<IIIIII", 0x5A5A5A5A, 0, 1, 0, 0, len(acc)) + acc
        else:
            info = struct.pack("<6Q", 5, 7, 3, 0, 1, 2)
            blob = info + bytes(128 - 48) + info + bytes(128 - 48) + info + bytes(256 - 48) + bytes(512)
            blob += struct.pack("<3Q", 9, 4, 0x20)
        blob += bytes(2048 - len(blob))
        return cann.v2("Node_OpDebug", [], [Tensor("U8", (2048,), blob)])

    def test_overflow_dumps_mark_the_operator_of_their_task(self):
        for new in (False, True):
            folder = "of%d" % new
            for task, name in ((3, "a"), (4, "b")):
                write(self.dir, "%s/Relu.%s.%d.7.%d" % (folder, name, task, TIME + task),
                      cann.v2(name, [], [Tensor("F32", (2,), floats(2))]))
            write(self.dir, "%s/Opdebug.Node_OpDebug.1.9.%d" % (folder, TIME + 9), self.overflow(new))
            reference = normdiff_dump([(n, "Relu", {"output.0": ("F32", (2,), [0, 0.25])}) for n in "ab"])
            _, report = self.compare(write(self.dir, "r.bin", reference), os.path.join(self.dir, folder))
            notes = {layer["name"]: layer["slots"][0]["notes"] for layer in report["layers"]}
            self.assertEqual(("overflow" in notes["a"], "overflow" in notes["b"]), (True, False), notes)


class Names(Case):
    def dump(self, name, value, op="a", folder="d"):
        return write(self.dir, folder + "/" + name, cann.v2(op, [], [Tensor("F32", (1,), pack("F32", [value]))]))

    def test_executions_are_kept_apart_and_paired_in_order(self):
        for k, time in enumerate((5, 3, 4)):
            self.dump("Relu.a.1.2.%d" % (TIME + time), float(time))
        layers = self.layers(os.path.join(self.dir, "d"))
        self.assertEqual([(layer["name"], layer["call"], layer["slots"][0]["statistics"]["max"]) for layer in layers],
                         [("a", 0, 3), ("a", 1, 4), ("a", 2, 5)])

    def test_a_name_without_stream_is_one_too(self):
        self.dump("Transpose.a.4.%d" % TIME, 1.0, None)
        self.assertEqual(self.layers(os.path.join(self.dir, "d"))[0]["name"], "a")

    def test_a_long_name_is_put_back_for_a_lone_file_as_in_a_folder(self):
        path = self.dump("12345678901234567890", 2.0, None)
        self.assertEqual(self.layers(path)[0]["type"], "")
        write(self.dir, "d/mapping.csv", "7,Relu.other.1.2.%d\n12345678901234567890,Conv2D.long_name.1.2.%d\n" % (TIME, TIME))
        for root in (path, os.path.join(self.dir, "d")):
            layer = self.layers(root)[0]
            self.assertEqual((layer["name"], layer["type"]), ("long_name", "Conv2D"))

    def test_a_mapping_that_leads_in_circles_is_looked_at_once(self):
        path = self.dump("1234567890", 2.0, None)
        write(self.dir, "d/mapping.csv", "1234567890,1234567891\n1234567891,1234567890\n1234567890\n,x\n\n" + "9" * 5000)
        self.assertEqual(len(self.layers(path)), 1)
        self.assertEqual(len(self.layers(os.path.join(self.dir, "d"))), 1)


class Threads(Case):
    """FFTS+: one file a thread."""

    def thread(self, number, of, dims, values, attr, name="c", time=TIME, inputs=(), folder="d", layout="ND", original=None):
        content = cann.v2(name, inputs, [Tensor("F32", dims, pack("F32", values), layout, original)],
                          attrs=[("ffts", json.dumps(attr) if isinstance(attr, dict) else attr)])
        return write(self.dir, "%s/Conv2D.%s.2.9.%d.4.487.%d.0" % (folder, name, time + number, number), content)

    def root(self, folder="d"):
        return os.path.join(self.dir, folder)

    def test_slices_of_dumped_shapes_are_joined_along_the_axis_that_was_cut(self):
        whole = [float(i) for i in range(5 * 6)]
        for axis, cut in ((0, [2, 1]), (1, [1, 2])):
            attr = {"threadMode": 0, "slice_instance_num": 2, "outputCutList": [cut]}
            folder = "axis%d" % axis
            if axis == 0:
                self.thread(0, 2, (3, 6), whole[:18], attr, folder=folder)
                self.thread(1, 2, (2, 6), whole[18:], attr, folder=folder)
            else:
                for t in range(2):
                    part = [whole[r * 6 + 3 * t + c] for r in range(5) for c in range(3)]
                    self.thread(t, 2, (5, 3), part, attr, folder=folder)
            self.same(self.root(folder), {"c": {"output.0": ((5, 6), whole)}})

    def test_slices_of_the_automatic_mode_have_the_shapes_of_the_attribute(self):
        whole = [float(i) for i in range(5 * 2 * 3)]
        bounds = ((0, 2), (2, 5))
        attr = {"threadMode": 1, "slice_instance_num": 2, "outputCutList": [[2, 1, 1]], "output_tensor_slice": [
            [[{"lower": low, "higher": high}, {"lower": 0, "higher": 2}, {"lower": 0, "higher": 3}]] for low, high in bounds]}
        for t, (low, high) in enumerate(bounds):
            self.thread(t, 2, (5, 2, 3), whole[low * 6:high * 6], attr)  # the shape is that of the whole
        self.same(self.root(), {"c": {"output.0": ((5, 2, 3), whole)}})

    def test_executions_of_threads_are_calls_of_the_whole(self):
        attr = {"threadMode": 0, "slice_instance_num": 2, "outputCutList": [[2]]}
        for call in range(2):
            for t in range(2):
                self.thread(t, 2, (2,), [10.0 * call + t, 10.0 * call + t + 0.5], attr, time=TIME + 100 * call)
        layers = self.layers(self.root())
        self.assertEqual([(layer["name"], layer["call"], layer["slots"][0]["shape"], layer["slots"][0]["statistics"]["max"])
                          for layer in layers], [("c", 0, [4], 1.5), ("c", 1, [4], 11.5)])

    def test_device_layouts_are_joined_as_they_lie(self):
        values = [float(i) for i in range(4 * 5 * 1 * 2)]
        attr = {"threadMode": 0, "slice_instance_num": 2, "outputCutList": [[2, 1, 1, 1, 1]]}
        for t in range(2):
            stored = [0.0] * (2 * 2 * 16)
            for n in range(2):
                for c in range(5):
                    for w in range(2):
                        stored[(n * 2 + w) * 16 + c] = values[((2 * t + n) * 5 + c) * 2 + w]
            self.thread(t, 2, (2, 1, 1, 2, 16), stored, attr, layout="NC1HWC0", original=(2, 5, 1, 2))
        self.same(self.root(), {"c": {"output.0": ((4, 5, 1, 2), values)}})

    def test_inputs_are_joined_or_left_out(self):
        x = [float(i) for i in range(8)]
        attr = {"threadMode": 0, "slice_instance_num": 2, "outputCutList": [[2]], "inputCutList": [[2], [1]]}
        for t in range(2):
            self.thread(t, 2, (4,), [v + 1 for v in x[4 * t:4 * t + 4]], attr, inputs=[
                Tensor("F32", (4,), pack("F32", x[4 * t:4 * t + 4])), Tensor("F32", (3,), floats(3))])
        self.same(self.root(), {"c": {"input.0": ((8,), x), "input.1": ((3,), [0.0, 0.25, 0.5]),
                                      "output.0": ((8,), [v + 1 for v in x])}})

    def test_a_large_tensor_is_joined_too(self):
        count = 300000
        values = [float(i % 1000) for i in range(2 * count)]
        attr = {"threadMode": 0, "slice_instance_num": 2, "outputCutList": [[2, 1]]}
        for t in range(2):
            self.thread(t, 2, (1, count), values[count * t:count * (t + 1)], attr)
        self.same(self.root(), {"c": {"output.0": ((2, count), values)}})

    def test_a_slice_that_is_cut_off_is_not_joined(self):
        attr = {"threadMode": 1, "slice_instance_num": 2, "outputCutList": [[2]], "output_tensor_slice": [
            [[{"lower": 0, "higher": 4}]], [[{"lower": 4, "higher": 8}]]]}
        for t in range(2):
            path = self.thread(t, 2, (4,), [1, 2, 3, 4], attr)
        with open(path, "rb") as f:
            content = f.read()
        write(self.dir, os.path.relpath(path, self.dir), content[:-8])
        slots = {layer["name"]: layer["slots"][0]["broken"] for layer in self.layers(self.root())}
        self.assertEqual(sorted(slots), ["c.thread0", "c.thread1"])
        self.assertEqual([slots[k] is None for k in sorted(slots)], [True, False])

    def test_what_the_attribute_does_not_explain_stays_apart(self):
        good = {"threadMode": 0, "slice_instance_num": 2, "outputCutList": [[2]]}
        for k, attr in enumerate((dict(good, slice_instance_num=3), dict(good, outputCutList=[[2, 2]]), "{", "[" * 5000,
                                  dict(good, outputCutList=[["x"]]), "3", dict(good, slice_instance_num=1e300),
                                  {"threadMode": 1, "slice_instance_num": 2, "outputCutList": [[2]], "output_tensor_slice": [
                                      [[{"lower": 0, "higher": 2 ** 52}]], [[{"lower": 5, "higher": 1}]]]})):
            folder = "k%d" % k
            for t in range(2):
                self.thread(t, 2, (2,), [t, t + 0.5], attr, folder=folder)
            names = sorted(layer["name"] for layer in self.layers(self.root(folder)))
            self.assertIn(names, (["c.thread0", "c.thread1"], ["c"]), attr)
            if k not in (7,):
                self.assertEqual(names, ["c.thread0", "c.thread1"], attr)
        self.thread(0, 2, (2,), [1, 2], good, folder="holes")
        self.thread(2, 2, (2,), [1, 2], good, folder="holes")
        self.assertEqual(sorted(layer["name"] for layer in self.layers(self.root("holes"))), ["c.thread0", "c.thread2"])


class Hostile(Case):
    """Each gets a reason, in time, and never a wrong figure."""

    def refused(self, content, word=None, name="Relu.a.1.2.%d" % TIME):
        status, listing = self.list(write(self.dir, name, content))
        if status == 2:
            self.assertEqual(listing["schema"], "normdiff/error/1")
            text = json.dumps(listing["error"])
        else:
            broken = [slot["broken"] for layer in listing["layers"] for slot in layer["slots"]]
            self.assertTrue(all(broken), listing)
            text = " ".join(broken)
        if word is not None:
            self.assertIn(word, text)

    def test_lengths_of_64_bits(self):
        good = cann.v2("a", [], [Tensor("F32", (2,), floats(2))])
        for length in (2 ** 64 - 1, 2 ** 63, 2 ** 32, len(good), 0, 2 ** 31):
            self.refused(struct.pack("<Q", length) + good[8:])
        for size in (2 ** 64 - 1, 2 ** 63 - 1, 2 ** 62):
            self.refused(cann.v2("a", [], [Tensor("F32", (2 ** 40,), floats(2), size=size)]))

    def test_sizes_whose_sum_leaves_the_file_or_overflows(self):
        tensors = [Tensor("F32", (2,), floats(2), size=2 ** 63), Tensor("F32", (2,), floats(2), size=2 ** 63)]
        self.refused(cann.v2("a", [], tensors))
        slots = self.one(cann.v2("a", [Tensor("F32", (2,), floats(2))], [Tensor("F32", (2,), b"", size=8)]))
        self.assertIsNone(slots["input.0"]["broken"])
        self.assertIsNotNone(slots["output.0"]["broken"])

    def test_dimensions_whose_product_overflows(self):
        for dims in ((2 ** 32, 2 ** 32), (2 ** 62, 4), (2 ** 63 - 1, 2 ** 63 - 1), (3,) * 17, (2 ** 61,)):
            self.refused(cann.v2("a", [], [Tensor("F32", dims, floats(2))]))
        for layout, dims in (("NC1HWC0", (2 ** 31, 2 ** 31, 1, 1, 16)), ("FRACTAL_NZ", (2 ** 60, 2 ** 60, 16, 16))):
            self.refused(cann.v2("a", [], [Tensor("F32", dims, floats(2), layout, original=(2 ** 40, 2 ** 40))]))

    def test_varints_of_eleven_bytes(self):
        tensor = Tensor("F32", (2,), floats(2)).message(False, False)
        for bad in (field(3, tensor) + b"\x10" + b"\x80" * 10 + b"\x01", b"\x80" * 11 + b"\x01",
                    field(3, b"\x08" + b"\xff" * 11), field(3, field(3, b"\x0a\x0b" + b"\xff" * 11)), b"\x1a\xff\xff\xff\xff\x0f"):
            head = field(1, "2.0") + bad
            self.refused(struct.pack("<Q", len(head)) + head + floats(2))

    def test_groups_and_reserved_wire_types(self):
        for wire in (3, 4, 6, 7):
            head = field(1, "2.0") + varint(50 << 3 | wire) + field(3, Tensor("F32", (2,), floats(2)).message(False, False))
            self.refused(struct.pack("<Q", len(head)) + head + floats(2))

    def test_a_format_that_contradicts_its_shape(self):
        for layout, dims, original in (("NC1HWC0", (1, 1, 2, 2, 16), (1, 40, 2, 2)), ("NC1HWC0", (2, 2), (2, 2)),
                                       ("FRACTAL_NZ", (1, 1, 16, 16), (40, 40)), ("FRACTAL_Z", (1, 1, 16, 16), (17, 17, 9, 9))):
            count = 1
            for d in dims:
                count *= d
            path = write(self.dir, "Relu.a.1.2.%d" % TIME, cann.v2("a", [], [Tensor("F32", dims, floats(count), layout, original)]))
            reference = normdiff_dump([("a", "Relu", {"output.0": ("F32", original, [0.5] * _count(original))})])
            status, report = self.compare(write(self.dir, "r.bin", reference), path)
            self.assertEqual(status, 1)
            self.assertIn(report["layers"][0]["fails"], ("unreadable", "shape", "drift"))

    def test_nano_heads_that_lie(self):
        good = cann.nano([Tensor("F32", (2,), floats(2))], [Tensor("F32", (2,), floats(2))])
        for at in range(8, len(good) - 16, 4):
            for value in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF):
                status, _ = self.list(write(self.dir, "Relu.a.1.2.%d" % TIME, good[:at] + struct.pack("<I", value) + good[at + 4:]))
                self.assertIn(status, (0, 1, 2))
        self.refused(good[:40])

    def test_atb_heads_that_lie(self):
        good = cann.atb(Tensor("F32", (2,), floats(2))).decode("latin-1")
        for old, new in (("dims=2", "dims=99999999999999999999"), ("dims=2", "dims=4294967296,4294967296,16"),
                         ("data=0,8", "data=18446744073709551615,8"), ("data=0,8", "data=8,18446744073709551615"),
                         ("data=0,8", "data=4,8"), ("dtype=0", "dtype=999"), ("$End=1", "$End"), ("dims=2", "data=missing.dat\ndims=2"),
                         ("dims=2", "data=../../../etc/passwd\ndims=2"), ("dims=2", "dims=" + "1," * 40 + "1")):
            with self.subTest(new=new):
                self.refused(good.replace(old, new, 1).encode("latin-1"), name="t.bin")

    def test_a_cut_file_keeps_what_is_whole(self):
        content = cann.v2("a", [Tensor("F32", (4,), floats(4))], [Tensor("F32", (4,), floats(4))])
        slots = self.one(content[:-4])
        self.assertEqual((slots["input.0"]["broken"], slots["output.0"]["broken"] is None), (None, False))
        for cut in range(0, len(content) - 32, 5):
            status, _ = self.list(write(self.dir, "Relu.a.1.2.%d" % TIME, content[:cut]))
            self.assertEqual(status, 2, cut)


def _count(dims):
    count = 1
    for d in dims:
        count *= d
    return count


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
