"""Large and many: deflated members are measured as they are decoded, with the figures that stored ones have; memory
stays within what is promised; the order of work shows nowhere.

  test_scale.py TOOL
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)

from dumps import safetensors

TOOL = sys.argv.pop(1)
CHUNK = 262144  # elements that one block of a stream holds
STREAMED = {
    "float32 over several blocks": (np.float32, 3 * CHUNK + 17),
    "float16": (np.float16, CHUNK + 1),
    "float64": (np.float64, CHUNK - 1),
    "one element": (np.float32, 1),
    "big-endian": (">f4", 2 * CHUNK),
}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="normdiff-scale-")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def report(self, reference, candidate, *options, code=None):
        run = subprocess.run([TOOL, "-f", "json", *options, reference, candidate], capture_output=True, text=True)
        if code is not None:
            self.assertEqual(run.returncode, code, run.stderr)
        return json.loads(run.stdout)

    def write(self, name, compressed, **arrays):
        (np.savez_compressed if compressed else np.savez)(self.path(name), **arrays)
        return self.path(name)

    def figures(self, report):
        slot = report["layers"][0]["slots"][0]
        return {key: slot[key] for key in ("n", "differ", "bit_equal", "drift", "metrics", "nonfinite")}


class Streams(Folder):
    def test_deflated_pairs_have_the_figures_of_stored_ones(self):
        for what, (dtype, count) in STREAMED.items():
            with self.subTest(what):
                random = np.random.default_rng(7)
                a = random.standard_normal(count).astype(dtype)
                b = (a * np.asarray(1 + 2.0 ** -9, a.dtype)).astype(dtype)
                stored = [self.write("s%d.npz" % k, False, x=v) for k, v in enumerate((a, b))]
                packed = [self.write("p%d.npz" % k, True, x=v) for k, v in enumerate((a, b))]
                expected = self.figures(self.report(*stored))
                self.assertEqual(expected["n"], count)
                error = np.linalg.norm(b.astype("f8") - a.astype("f8")) / np.linalg.norm(a.astype("f8"))
                self.assertAlmostEqual(expected["drift"] / error, 1, delta=1e-9)
                for pair in (packed, [stored[0], packed[1]], [packed[0], stored[1]]):
                    for jobs in ("1", "2", "5"):
                        self.assertEqual(self.figures(self.report(*pair, "-j", jobs)), expected)

    def test_the_pivot_is_the_first_pair_that_counts_wherever_it_stands(self):
        a = np.full(2 * CHUNK + 9, np.nan, np.float32)
        a[CHUNK + 5:] = np.random.default_rng(1).standard_normal(CHUNK + 4).astype(np.float32) + 1e3
        b = a + np.float32(1)
        pairs = [[self.write("%s%d.npz" % (kind, k), kind == "p", x=v) for k, v in enumerate((a, b))] for kind in "sp"]
        expected, got = [self.figures(self.report(*pair)) for pair in pairs]
        self.assertEqual(got, expected)
        finite = ~np.isnan(a)
        pearson = np.corrcoef(a[finite].astype("f8"), b[finite].astype("f8"))[0, 1]
        self.assertAlmostEqual(got["metrics"]["pearson"], pearson, places=9)

    def test_sums_beyond_float64_are_scaled_in_streams_too(self):
        a = np.random.default_rng(2).standard_normal(CHUNK + 3) * 1e200
        b = a * (1 + 1e-7)
        packed = [self.write("p%d.npz" % k, True, x=v) for k, v in enumerate((a, b))]
        figures = self.figures(self.report(*packed))
        self.assertAlmostEqual(figures["drift"] / 1e-7, 1, delta=1e-6)

    def test_a_member_that_does_not_fit_its_checksum_is_named_and_the_rest_is_compared(self):
        a = np.arange(100000, dtype=np.float32)
        names = [self.write("%d.npz" % k, True, bad=a, good=a + 1) for k in range(2)]
        with open(names[1], "rb") as file:
            data = bytearray(file.read())
        crc = struct.pack("<I", zipfile.ZipFile(names[1]).getinfo("bad.npy").CRC)
        while data.find(crc) >= 0:  # in the local header and in the directory
            at = data.find(crc)
            data[at:at + 4] = bytes(4) if crc != bytes(4) else b"\1\2\3\4"
        with open(names[1], "wb") as file:
            file.write(data)
        report = self.report(*names, code=1)
        self.assertEqual([(x["name"], x["fails"]) for x in report["layers"]], [("bad", "unreadable"), ("good", None)])

    def test_a_byte_that_flipped_anywhere_in_a_large_stored_member_is_found_on_any_number_of_threads(self):
        a = np.random.default_rng(4).standard_normal((3 << 20) + 5).astype(np.float32)  # parts of 4 MB and a bit
        names = [self.write("%d.npz" % k, False, x=a) for k in range(2)]
        with open(names[1], "rb") as file:
            data = bytearray(file.read())
        for jobs in ("1", "3"):
            self.assertEqual(self.report(*names, "-j", jobs, code=0)["summary"]["exact"], 1)
        for at in (1 << 20, 6 << 20, 11 << 20, data.rindex(b"PK\1\2") - 1):
            data[at] ^= 16
            with open(names[1], "wb") as file:
                file.write(data)
            data[at] ^= 16
            for jobs in ("1", "3"):
                report = self.report(*names, "-j", jobs, code=1)
                self.assertEqual(report["layers"][0]["fails"], "unreadable")
                self.assertIn("CRC-32", report["coverage"]["skipped"][0]["reason"])

    def test_a_fault_in_a_deflated_pair_has_its_details(self):
        a = np.random.default_rng(3).standard_normal((64, 5000)).astype(np.float32)
        b = a.copy()
        b[7, 11] += 3
        packed = [self.write("p%d.npz" % k, True, x=v) for k, v in enumerate((a, b))]
        slot = self.report(*packed)["layers"][0]["slots"][0]
        self.assertEqual(slot["worst"][0]["index"], [7, 11])
        self.assertEqual(slot["metrics"]["max_abs_index"], [7, 11])


class Prints(Folder):
    def test_values_beside_a_log_are_summed_up_alike_on_any_number_of_threads(self):
        random = np.random.default_rng(6)
        values = {"m%d" % i: random.standard_normal(50000 + i).astype(np.float32) for i in range(9)}
        self.write("values.npz", False, **values)
        with open(self.path("run.log"), "w") as file:
            for name, v in values.items():
                file.write("%s: max=%.9e, min=%.9e, mean=%.9e, norm=%.9e\n" %
                           (name, v.max(), v.min(), v.mean(dtype="f8"), 1.001 * np.linalg.norm(v.astype("f8"))))
        for pair in (("values.npz", "run.log"), ("run.log", "values.npz")):
            pair = [self.path(name) for name in pair]
            one = self.report(*pair, "-j", "1")
            for jobs in ("2", "7"):
                self.assertEqual(self.report(*pair, "-j", jobs), one)
            for layer, (name, v) in zip(one["layers"], values.items()):
                slot = layer["slots"][0]
                self.assertEqual((layer["name"], slot["evidence"]), (name, "statistics"))
                printed, computed = slot["metrics"]["norm"], np.linalg.norm(v.astype("f8"))
                mine = printed["reference" if pair[0].endswith("npz") else "candidate"]
                self.assertAlmostEqual(mine / computed, 1, delta=1e-12)


class Top1(Folder):
    def test_rows_whose_largest_element_stands_elsewhere_are_counted(self):
        random = np.random.default_rng(5)
        for dtype in (np.float32, np.float16):
            a = random.permuted(np.tile(np.arange(1000), (40, 1)), axis=1).astype(dtype)
            b = a.copy()
            for row in range(0, 40, 4):
                b[row, (a[row].argmax() + 1) % 1000] = 2000
            a[1, :3] = b[1, :3] = np.nan
            for k, v in enumerate((a, b)):
                np.save(self.path("%d.npy" % k), v)
            result = self.report(self.path("0.npy"), self.path("1.npy"))["result"]
            rows = [np.nanargmax(a[i]) == np.nanargmax(b[i]) for i in range(40)]
            self.assertEqual(result["top1_agreement"], np.mean(rows))
            self.assertEqual(result["top1_rows"], 40)

    def test_equal_outputs_agree_in_every_row(self):
        a = np.random.default_rng(5).standard_normal((6, 10)).astype(np.float32)
        for k in range(2):
            np.save(self.path("%d.npy" % k), a)
        result = self.report(self.path("0.npy"), self.path("1.npy"))["result"]
        self.assertEqual((result["top1_agreement"], result["top1_rows"]), (1, 6))


class Memory(Folder):
    def peak(self, *command):
        """Anonymous bytes at the most, as the kernel saw them while the tool ran."""
        run = subprocess.Popen([TOOL, "-q", *command], stdout=subprocess.DEVNULL)
        most = 0
        while run.poll() is None:
            try:
                with open("/proc/%d/status" % run.pid) as status:
                    found = re.search(r"RssAnon:\s+(\d+) kB", status.read())
            except (FileNotFoundError, ProcessLookupError):
                break
            most = max(most, int(found.group(1)) << 10 if found else 0)
        self.assertIn(run.wait(), (0, 1))
        return most

    def skip_others_memory(self):
        """What AddressSanitizer or an emulator takes for itself counts as the tool's."""
        with open(TOOL, "rb") as tool, open(os.path.realpath(sys.executable), "rb") as python:
            program, native = tool.read(), python.read(20)
        if b"__asan_init" in program:
            self.skipTest("AddressSanitizer keeps what is freed")
        if program[:4] != native[:4] or program[18:20] != native[18:20]:  # e_machine of an ELF file
            self.skipTest("the tool runs in an emulator")

    def test_many_tensors_take_four_kilobytes_each_beside_64_megabytes(self):
        self.skip_others_memory()
        count = 10000
        for side, shift in (("a", 0.0), ("b", 1e-7)):
            with open(self.path(side), "wb") as file:
                file.write(safetensors({"layers.%d.linear.output.0" % i: ("F32", [2, 2], [1 + shift, 2, 3, 4])
                                        for i in range(count)}))
        peak = self.peak(self.path("a"), self.path("b"))
        self.assertLess(peak, (64 << 20) + count * 4096)
        self.assertGreater(peak, 1 << 20)  # the figure is one

    def test_each_further_pair_takes_at_most_four_kilobytes(self):
        self.skip_others_memory()
        counts, peaks = (4000, 24000), []
        for count in counts:
            for side, factor in (("a", 1.0), ("b", 1 + 1e-6)):
                with open(self.path(side), "wb") as file:
                    file.write(safetensors({"model.layers.%d.self_attn.q_proj.output.0" % i:
                                            ("F32", [2, 2], [factor, 2, 3, 4]) for i in range(count)}))
            peaks.append(self.peak(self.path("a"), self.path("b")))
        each = (peaks[1] - peaks[0]) / (counts[1] - counts[0])
        self.assertLess(each, 4096)
        self.assertGreater(each, 256)  # a pair is more than its name

    def test_the_diagnosis_of_a_long_row_stays_within_max_mem(self):
        self.skip_others_memory()
        x = np.tile(np.random.default_rng(8).standard_normal(1 << 16).astype(np.float32) * 0.05, (2, 128))
        for side, eps in (("a", 1e-5), ("b", 1e-3)):
            os.mkdir(self.path(side))
            var = x[0].var(dtype="f8")
            y = ((x - x[0].mean(dtype="f8")) / np.sqrt(var + eps)).astype(np.float16)
            np.savez(self.path(side + "/ln.npz"), **{"ln.input.0": x.astype(np.float16), "ln.output.0": y})
        pair = [self.path("a/ln.npz"), self.path("b/ln.npz")]
        self.assertGreater(self.peak("-j", "2", "--max-mem", "1G", *pair), 40 << 20)  # there is something to limit
        self.assertLess(self.peak("-j", "2", "--max-mem", "16M", *pair), (16 + 16) << 20)  # comparing takes a few

    def test_decoded_members_that_the_checks_look_at_stay_within_max_mem(self):
        self.skip_others_memory()
        block = np.round(np.random.default_rng(9).standard_normal(60000).astype(np.float32), 1)
        pair = [self.write("m%d.npz" % k, True, **{"l%d" % i: (block + i) * np.float32(1 + k / 100)
                                                   for i in range(500)}) for k in range(2)]
        self.assertGreater(self.peak("--max-mem", "1G", *pair), 120 << 20)  # 240 MB are decoded
        self.assertLess(self.peak("--max-mem", "32M", *pair), (64 + 32) << 20)

    def test_statistics_take_six_times_their_text_at_the_most(self):
        self.skip_others_memory()
        size = 0
        for side, shift in (("a", 0.0), ("b", 1e-5)):
            tensor = {"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4, 128, 768], "Max": 3.5 + shift,
                      "Min": -3.25, "Mean": 1e-3, "Norm": 400.0, "requires_grad": False}
            data = {"Functional.linear.%d.forward" % i: {"input_args": [tensor, tensor], "input_kwargs": {},
                                                         "output": [tensor]} for i in range(10000)}
            os.mkdir(self.path(side))
            with open(self.path(side + "/dump.json"), "w") as file:
                json.dump({"task": "statistics", "level": "L1", "framework": "pytorch", "data": data}, file, indent=1)
            size += os.path.getsize(self.path(side + "/dump.json"))
        peak = self.peak(self.path("a"), self.path("b"))
        self.assertLess(peak, 6 * size)
        self.assertGreater(peak, size // 2)  # the figure is one

    def test_a_large_deflated_pair_takes_no_memory_of_its_size(self):
        self.skip_others_memory()
        a = np.zeros(40 << 20, np.float32)
        packed = [self.write("p%d.npz" % k, True, x=a) for k in range(2)]
        self.assertLess(self.peak(*packed), 64 << 20)


class Hostile(Folder):
    def test_a_record_of_many_scalars_ends_at_a_named_limit(self):
        os.mkdir(self.path("dump"))
        with open(self.path("dump/dump.json"), "w") as file:
            file.write('{"task":"statistics","level":"L0","framework":"pytorch","data":{"Torch.a.0.forward":'
                       '{"input_args":[' + "1," * 10000 + '1],"output":[]}}}')
        run = subprocess.run([TOOL, self.path("dump"), self.path("dump")], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("at most 4096 attributes", run.stderr)


class Folders(Folder):
    def test_folders_of_many_files_are_read_in_their_order_on_any_number_of_threads(self):
        for side in "ab":
            os.mkdir(self.path(side))
            for i in range(2500):
                np.save(self.path("%s/t%d.npy" % (side, i)), np.full(3 if i % 2 else 5000, i, np.float32))
        one = self.report(self.path("a"), self.path("b"), "-j", "1", code=0)
        self.assertEqual(one, self.report(self.path("a"), self.path("b"), "-j", "3"))
        self.assertEqual([x["name"] for x in one["layers"]], ["t%d" % i for i in range(2500)])
        means = [x["slots"][0]["metrics"]["mean"]["candidate"] for x in one["layers"]]
        self.assertEqual(means, list(range(2500)))


if __name__ == "__main__":
    unittest.main()
