"""msprobe dumps as a user compares them, side by side with what msprobe's own compare said.

  python3 tests/contract/test_msprobe.py PATH_TO_NORMDIFF [unittest arguments]

The trees were written by mindstudio-probe 26.2.0 (tests/formats/data/msprobe), and
compare_result.csv is what its `compare` made of the pair gpu and npu.
"""
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = ""
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "formats", "data", "msprobe")
GROUPS = {"input": "input.", "output": "output.", "parameters": "param."}


def place(full_name):
    """Module.a.A.forward.0.parameters.weight -> (Module.a.A.forward.0, param.weight)"""
    match = re.match(r"(.*?)\.(input|output|parameters)\.(.*)$", full_name)
    if match:
        return match.group(1), GROUPS[match.group(2)] + match.group(3)
    match = re.match(r"(.*\.parameters_grad\.\d+)\.(.*)$", full_name)
    return match.group(1), "grad." + match.group(2)


class Msprobe(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-msprobe-")
        self.addCleanup(shutil.rmtree, self.dir)

    def compare(self, reference, candidate, *options, status=None):
        done = subprocess.run([TOOL, reference, candidate, "-f", "json", "--metrics", "all", *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        report = json.loads(done.stdout)
        self.assertNotEqual(done.returncode, 2, report)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        return report

    def data(self, name):
        return os.path.join(DATA, name)

    def test_figures_are_those_of_msprobe(self):
        report = self.compare(self.data("gpu"), self.data("npu"))
        slots = {(layer["name"], slot["slot"]): slot["metrics"]
                 for layer in report["layers"] for slot in layer["slots"]}
        columns = (("Cosine", "cosine"), ("MaxAbsErr", "max_abs"),
                   ("One Thousandth Err Ratio", "within_1e3"),
                   ("Five Thousandths Err Ratio", "within_5e3"))
        compared = 0
        with open(self.data("compare_result.csv"), encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                metrics = slots.get(place(row["NPU Name"]))
                if metrics is None or row["Cosine"] == "unsupported":
                    continue  # scalars are attributes, recomputed calls are taken out
                compared += 1
                for column, key in columns:
                    if key in metrics:  # msprobe rounds cosines over 0.9999 to six digits
                        self.assertAlmostEqual(float(row[column]), metrics[key], delta=1e-6,
                                               msg=row["NPU Name"] + " " + column)
        self.assertEqual(compared, 38)

    def test_a_wrong_eps_is_found_in_the_tensors(self):
        report = self.compare(self.data("gpu"), self.data("npu"), status=1)
        self.assertEqual(report["first_divergence"]["layer"], "Module.first.norm.LayerNorm.forward.0")
        self.assertEqual(report["first_divergence"]["role"], "origin")
        self.assertEqual(report["causes"][0]["id"], "eps")
        skipped = {item["name"]: item["reason"] for item in report["coverage"]["skipped"]}
        self.assertEqual(skipped["Module.second.Block.forward.1"], "recomputed call")

    def test_tensors_beside_statistics_of_another_level(self):
        report = self.compare(self.data("gpu"), self.data("stats"), status=0)
        self.assertEqual(report["coverage"]["pairs"], 16)
        self.assertEqual(report["layers"][0]["slots"][0]["evidence"], "statistics")

    def test_equal_checksums_are_exact_and_statistics_decide_between_others(self):
        report = self.compare(self.data("md5"), self.data("md5"), status=0)
        self.assertEqual(report["layers"][0]["slots"][0]["evidence"], "checksum")
        self.assertEqual(report["layers"][0]["tier"], "exact")
        # without construct.json the calls that a checkpoint repeats are calls like any other
        report = self.compare(self.data("md5"), self.data("stats"), status=1)
        self.assertEqual(report["summary"]["fault"], 0)
        slot = next(layer for layer in report["layers"]
                    if layer["name"] == "Functional.layer_norm.0.forward")["slots"][0]
        self.assertEqual((slot["evidence"], slot["drift"]), ("statistics", 0))

    def renamed(self):
        """The npu tree as MindSpore names it."""
        folder = os.path.join(self.dir, "step0", "rank0")
        os.makedirs(folder)
        for name in ("dump.json", "construct.json"):
            with open(self.data(os.path.join("npu/step0/rank0", name)), encoding="utf-8") as stream:
                text = stream.read()
            text = re.sub(r"Module\.(first|second)\.fc\.Linear", r"Cell.part_\1.proj.Dense", text)
            text = re.sub(r"Module\.(first|second)\.", r"Cell.part_\1.", text)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
                stream.write(text)
        return self.dir

    def map_file(self, text):
        path = os.path.join(self.dir, "map.yaml")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def check_mapped(self, text):
        report = self.compare(self.data("gpu"), self.renamed(), "--map", self.map_file(text))
        self.assertEqual(report["coverage"]["pairs"], 16, report["coverage"])
        self.assertEqual(report["coverage"]["reference_only"], [])
        self.assertEqual({layer["matched_by"] for layer in report["layers"]}, {"map"})
        self.assertEqual(report["layers"][1]["candidate_name"],
                         "Cell.part_first.proj.Dense.forward.0")

    def test_a_cell_mapping_is_accepted(self):
        self.check_mapped("# cells\npart_first.proj.Dense: first.fc.Linear\n"
                          "part_first: first\n'part_second': \"second\"\nproj.Dense: fc.Linear\n")

    def test_a_layer_mapping_is_accepted(self):
        self.check_mapped("TopLayer:\n  part_first: first\n  part_second: second\n"
                          "Block:\n  proj: fc\n")

    def test_a_data_mapping_is_accepted(self):
        with open(self.data("gpu/step0/rank0/dump.json"), encoding="utf-8") as stream:
            names = list(json.load(stream)["data"])
        lines = []
        for name in names:
            other = re.sub(r"Module\.(first|second)\.fc\.Linear", r"Cell.part_\1.proj.Dense", name)
            other = re.sub(r"Module\.(first|second)\.", r"Cell.part_\1.", other)
            slot = ".weight" if "parameters_grad" in name else ".output.0"
            lines.append("%s%s: %s%s\n" % (other, slot, name, slot))
        self.check_mapped("".join(lines))

    def test_an_api_mapping_is_accepted(self):
        def tree(name, api):
            path = os.path.join(self.dir, name)
            with open(path, "w", encoding="utf-8") as stream:
                json.dump({"task": "statistics", "level": "L1", "data": {api + ".0.forward": {
                    "output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2],
                                "Max": 1, "Min": 0, "Mean": 0.5, "Norm": 1}]}}}, stream)
            return path
        report = self.compare(tree("gpu.json", "Torch.add"), tree("npu.json", "Functional.plus"), "--map",
                              self.map_file("- ms_api: Functional.plus\n  pt_api: Torch.add\n"
                                            "  ms_args: [0, 1]\n  pt_args:\n  - 0\n  - 1\n"))
        self.assertEqual(report["layers"][0]["matched_by"], "map")

    def test_a_key_with_two_meanings_is_refused(self):
        done = subprocess.run([TOOL, self.data("gpu"), self.data("npu"), "--map",
                               self.map_file("a.A: b.B\na.A: c.C\n")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"line 2", done.stderr)


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    unittest.main()
