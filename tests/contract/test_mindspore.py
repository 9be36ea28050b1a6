"""MindSpore's dumps from outside: its folders, file names, npy dialect, tables of statistics and execution order.

  python3 tests/contract/test_mindspore.py PATH_TO_NORMDIFF [unittest arguments]
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from dumps import normdiff_dump, pack, write

TOOL = ""
TIME = 1733905446819790
DESCR = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "|i1", "U8": "|u1", "I32": "<i4", "I64": "<i8", "BOOL": "|b1",
         "BF16": "<T2"}


def npy(dtype, dims, values, descr=None):
    """As MindSpore writes it: no blank in the shape, a comma behind every dimension, a full extra line of 64 bytes
    where the head is aligned already."""
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (
        descr or DESCR[dtype], "(%s)" % "".join("%d," % d for d in dims) if dims else "()")
    length = 10 + len(head) + 1
    head += " " * (64 - length % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + pack(dtype, values)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-mindspore-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_tool(self, *args):
        done = subprocess.run([TOOL, "-f", "json"] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60, env=dict(os.environ, LC_ALL="C"))
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        return done.returncode, json.loads(done.stdout)

    def layers(self, path):
        status, listing = self.run_tool("--list", path)
        self.assertEqual((status, listing.get("dump", {}).get("format")), (0, "mindspore"), listing)
        return listing

    def tensor(self, path, value, dtype="F32", **more):
        return write(self.dir, path, npy(dtype, (1,), [value], **more))

    def name(self, op, kind="Add", io="output", slot=0, layout="DefaultFormat", dtype=".float32", time=TIME):
        return "%s.%s.0.0.%d.%s.%d.%s%s.npy" % (kind, op, time, io, slot, layout, dtype)


class Trees(Case):
    def test_every_tree_of_the_documentation_has_its_rank_and_step(self):
        for tree, step, rank in (
                ("{root}/rank_3/Net/0/7", 7, 3),
                ("{root}/rank_3/Net/1/0", 0, 3),
                ("{root}/5/20240102030405/3/Net/1/0", 5, None),
                ("{root}/20240102030405/3/Net/1/4", 4, None),
                ("{root}/Net/device_2/iteration_9", None, None),
                ("{root}/Net/iteration_9", None, None)):
            root = "t%d" % abs(hash(tree))
            self.tensor(tree.format(root=root) + "/" + self.name("Default_a-op0"), 1.0)
            layer = self.layers(os.path.join(self.dir, root))["layers"][0]
            if step is not None:
                self.assertEqual(layer["step"], step, tree)
            if rank is not None:
                self.assertEqual(layer["rank"], rank, tree)
            self.assertEqual((layer["name"], layer["type"]), ("Default_a-op0", "Add"))

    def test_parameters_of_constants_are_there_and_other_files_are_ignored(self):
        base = "d/rank_0/Net/0/"
        self.tensor(base + "0/" + self.name("Default_a-op0"), 1.0)
        self.tensor(base + "constants/" + self.name("data-3", "Parameter"), 2.0)
        write(self.dir, base + "0/Add.Default_a-op0.json", "{}")
        write(self.dir, "d/rank_0/graphs/ms_output_trace_code_graph_0.ir", "x")
        write(self.dir, "d/rank_0/.dump_metadata/hyper.json", "{}")
        listing = self.layers(os.path.join(self.dir, "d"))
        self.assertEqual(sum(len(layer["slots"]) for layer in listing["layers"]), 2)

    def test_the_execution_order_is_recorded(self):
        for k, op in enumerate(("c-op2", "a-op0", "b-op1")):
            self.tensor("d/rank_0/Net/0/0/" + self.name("Default_net_" + op, time=TIME + k), 1.0)
        write(self.dir, "d/rank_0/execution_order/ms_execution_order_graph_0.csv",
              "Default/net/a-op0\nDefault/net/b-op1\nDefault/net/c-op2\n")
        write(self.dir, "d/rank_0/execution_order/ms_global_execution_order_graph_0.csv", "0\n1\n")
        listing = self.layers(os.path.join(self.dir, "d"))
        self.assertEqual([layer["name"][-5:] for layer in listing["layers"]], ["a-op0", "b-op1", "c-op2"])
        self.assertEqual(listing["dump"]["order"], "recorded")

    def test_a_long_name_is_put_back_by_mapping_csv(self):
        folder = "d/rank_0/Net/0/0/"
        self.tensor(folder + "12345678901234567890.npy", 3.0)
        self.tensor(folder + self.name("Default_a-op0"), 1.0)
        write(self.dir, folder + "mapping.csv", "12345678901234567890,%s\n" % self.name("Default_long-op1", "Mul", time=TIME + 5))
        layers = self.layers(os.path.join(self.dir, "d"))["layers"]
        self.assertEqual([(layer["name"], layer["type"]) for layer in layers],
                         [("Default_a-op0", "Add"), ("Default_long-op1", "Mul")])


class Names(Case):
    def slot(self, name, content):
        write(self.dir, "d/" + name, content)
        layer = self.layers(os.path.join(self.dir, "d"))["layers"][0]
        return layer["slots"][0]

    def test_the_dialect_of_its_arrays(self):
        for dims in ((), (3,), (2, 3), (1, 1, 1, 1, 2)):
            count = 1
            for d in dims:
                count *= d
            for dtype in DESCR:
                shutil.rmtree(os.path.join(self.dir, "d"), ignore_errors=True)
                slot = self.slot(self.name("a-op0", dtype=""), npy(dtype, dims, [1] * count))
                self.assertEqual((slot["shape"], slot["broken"]), (list(dims), None))
                self.assertEqual(slot["dtype"], {"F32": "float32", "F16": "float16", "F64": "float64", "I8": "int8", "U8": "uint8",
                                                 "I32": "int32", "I64": "int64", "BOOL": "bool", "BF16": "bfloat16"}[dtype])

    def test_bfloat16_lies_as_float32_and_is_judged_as_bfloat16(self):
        slot = self.slot(self.name("a-op0", dtype=".bfloat16"), npy("F32", (2,), [1.0, 2.5]))
        self.assertEqual((slot["dtype"], slot["statistics"]["max"]), ("bfloat16", 2.5))

    def test_an_array_that_stays_in_a_device_layout_is_compared_in_logical_order(self):
        dims = (2, 5, 3, 4)
        values = [float(i) for i in range(2 * 5 * 3 * 4)]
        stored = [0.0] * (2 * 3 * 4 * 16)
        for n in range(2):
            for c in range(5):
                for h in range(3):
                    for w in range(4):
                        stored[((n * 3 + h) * 4 + w) * 16 + c] = values[((n * 5 + c) * 3 + h) * 4 + w]
        reference = write(self.dir, "r.bin", normdiff_dump([("Default_a-op0", "Conv2D", {"output.0": ("F32", dims, values)})]))
        write(self.dir, "d/" + self.name("Default_a-op0", "Conv2D", layout="NC1HWC0"), npy("F32", (2, 1, 3, 4, 16), stored))
        status, report = self.run_tool(reference, os.path.join(self.dir, "d"))
        slot = report["layers"][0]["slots"][0]
        self.assertEqual((status, slot["tier"], slot["layout"]["candidate"], slot["layout"]["c0"]), (0, "exact", "NC1HWC0", 16))

    def test_calls_of_one_operator_are_kept_apart(self):
        for k in range(3):
            for io in ("input", "output"):
                self.tensor("d/" + self.name("a-op0", io=io, time=TIME + 10 * k + (io == "output")), float(k))
        layers = self.layers(os.path.join(self.dir, "d"))["layers"]
        self.assertEqual([(layer["call"], [slot["statistics"]["max"] for slot in layer["slots"]]) for layer in layers],
                         [(0, [0, 0]), (1, [1, 1]), (2, [2, 2])])


HEAD = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"


class Tables(Case):
    def slots(self, text, name="statistic.csv"):
        path = write(self.dir, name, text)
        return [slot for layer in self.layers(path)["layers"] for slot in layer["slots"]]

    def test_the_example_of_the_documentation(self):
        slot = self.slots(HEAD + "Max Value,Min Value,L2Norm Value\nSub,Default_Sub-op0,0,0,1733905446819790,input,0,4,float32,"
                                 "\"()\",3,3,3,\n")[0]
        self.assertEqual((slot["slot"], slot["dtype"], slot["shape"], slot["statistics"]["max"], slot["statistics"]["norm"]),
                         ("input.0", "float32", [], 3, 3))

    def test_every_set_of_columns_is_found_by_its_titles(self):
        for head, cells, expected in (
                (HEAD + "Max Value,Min Value,Avg Value,Count,Negative Zero Count,Positive Zero Count,NaN Count,"
                        "Negative Inf Count,Positive Inf Count,Zero Count", "4,-2,1,6,1,2,0,0,0,3", (4, -2, 1, None)),
                (HEAD + "Max Value,Min Value,Avg Value,Count,Negative Zero Count,Positive Zero Count,NaN Count,"
                        "Negative Inf Count,Positive Inf Count,Zero Count,L2 Value,MD5",
                 "4,-2,1,6,1,2,0,0,0,3,5,0123456789abcdef0123456789abcdef", (4, -2, 1, 5)),
                (HEAD + "L2Norm Value,Max Value", "5,4", (4, None, None, 5)),
                ("Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,Data Size,Data Type,Format,Shape,Max Value,"
                 "Min Value,Avg Value,L2Norm Value", None, (4, -2, 1, 5))):
            fixed = "Add,a-op0,0,0,%d,output,1,24,%s," % (TIME, "float32" if cells else "FLOAT16,NC1HWC0")
            row = fixed + "\"(2,3)\"," + (cells or "4,-2,1,5")
            for end in ("", ","):
                slot = self.slots(head + "\n" + row + end + "\n")[0]
                got = tuple(slot["statistics"][k] for k in ("max", "min", "mean", "norm"))
                self.assertEqual((slot["slot"], slot["shape"], got), ("output.1", [2, 3], expected), head)

    def test_null_stands_for_what_nothing_is_left_of(self):
        slot = self.slots(HEAD + "Max Value,Min Value,Avg Value,NaN Count,L2Norm Value\n"
                                 "Add,a-op0,0,0,1,output,0,8,float32,\"(2,)\",null,null,null,2,nan\n")[0]
        self.assertEqual((slot["statistics"]["max"], slot["nonfinite"]["nan"]), (None, 2))

    def test_a_table_compares_with_values(self):
        reference = write(self.dir, "r.bin", normdiff_dump([("a-op0", "Add", {"output.0": ("F32", (3,), [1.0, -2.0, 4.0])})]))
        good = HEAD + "Max Value,Min Value,Avg Value,L2Norm Value\nAdd,a-op0,0,0,1,output,0,12,float32,\"(3,)\",4,-2,1,4.58258\n"
        status, report = self.run_tool(reference, write(self.dir, "good/statistic.csv", good))
        self.assertEqual((status, report["layers"][0]["slots"][0]["evidence"]), (0, "statistics"))
        status, _ = self.run_tool(reference, write(self.dir, "bad/statistic.csv", good.replace(",4,-2,", ",8,-2,")))
        self.assertEqual(status, 1)

    def test_tables_that_are_damaged_get_a_reason_or_what_is_whole(self):
        row = "Add,a-op0,0,0,1,output,0,8,float32,\"(2,)\",1,1,1\n"
        for text in (HEAD + "Max Value\n" + "Add," * 100000, HEAD + "Max Value\n\"" + "x" * 200000, HEAD, "Op Type,Op Name,\n" + row,
                     HEAD + "Max Value\nAdd,a-op0,0,0,1,output,99999999999999999999,8,float32,\"(2,)\",1\n",
                     HEAD + "Max Value\nAdd,a-op0,0,0,1,output,0,8,float32,\"(%s)\",1\n" % ("2," * 40),
                     HEAD + "Max Value\nAdd,a-op0,0,0,1,output,0,8,float32,\"(18446744073709551616,)\",1\n"):
            status, _ = self.run_tool("--list", write(self.dir, "statistic.csv", text))
            self.assertIn(status, (0, 2))


class Hostile(Case):
    def test_arrays_that_lie(self):
        good = npy("F32", (2,), [1.0, 2.0])
        for k, bad in enumerate((good[:-4], good.replace(b"(2,)", b"(9,)"), good.replace(b"(2,)", b"(4294967296,4294967296,16,)"),
                                 good[:20], good.replace(b"<f4", b"<q9"), b"")):
            folder = "d%d/" % k
            write(self.dir, folder + self.name("a-op0"), bad)
            self.tensor(folder + self.name("b-op1"), 1.0)
            listing = self.layers(os.path.join(self.dir, folder))
            broken = {layer["name"]: layer["slots"][0]["broken"] for layer in listing["layers"]}
            self.assertTrue(broken["a-op0"], bad)
            self.assertIsNone(broken["b-op1"])

    def test_device_bytes_behind_a_host_shape_are_put_in_order(self):
        """A head with the framework's shape over device-ordered, padded bytes: longer than it says."""
        values = [float(1 + i) for i in range(15)]
        stored = [0.0] * 256
        for r in range(3):
            for c in range(5):
                stored[r * 16 + c] = values[r * 5 + c]
        head = npy("F32", (3, 5), [])
        reference = write(self.dir, "r.bin", normdiff_dump([("a-op0", "Add", {"output.0": ("F32", (3, 5), values)})]))
        write(self.dir, "d/" + self.name("a-op0", layout="FRACTAL_NZ"), head + pack("F32", stored))
        status, report = self.run_tool(reference, os.path.join(self.dir, "d"))
        slot = report["layers"][0]["slots"][0]
        self.assertEqual((status, slot["tier"], slot["layout"]["candidate"]), (0, "exact", "FRACTAL_NZ"), slot)
        # of another length it is not taken for that layout
        write(self.dir, "e/" + self.name("a-op0", layout="FRACTAL_NZ"), head + pack("F32", stored[:-16]))
        status, report = self.run_tool(reference, os.path.join(self.dir, "e"))
        self.assertEqual(status, 1)


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
