"""Corners that a newcomer or a script runs into: every metric as the drift, reasons that claim no more than was
counted, names that nobody can see, ranks side by side, and commands that can be pasted.

Run by ctest; alone: python3 test_probes.py TOOL
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dumps import normdiff_dump, npy, safetensors, write  # noqa: E402

TOOL = "normdiff"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="normdiff-probes-")
        self.dir = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def run_tool(self, *args, env=None, cwd=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("NORMDIFF", "LC_", "LANG", "COLUMNS"))}
        environment.update({"LC_ALL": "C.UTF-8"}, **(env or {}))
        done = subprocess.Popen([TOOL] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                                cwd=cwd or self.dir)
        out, err = done.communicate()
        return done.returncode, out.decode("utf-8"), err.decode("utf-8")

    def compare(self, *args, status=None):
        code, out, err = self.run_tool("-f", "json", *args)
        self.assertIn(code, (0, 1), err)
        report = json.loads(out)
        self.assertEqual(report["exit_code"], code)
        if status is not None:
            self.assertEqual(code, status, err)
        return report

    def pair(self, reference, candidate, dtype="F32", slot="output.0", others=None):
        """Two dumps of one layer; others: slots that are the same on both sides."""
        paths = []
        for side, values in (("r", reference), ("c", candidate)):
            slots = {slot: (dtype, [len(values)], list(values))}
            slots.update(others or {})
            paths.append(write(self.dir, side + ".dump", normdiff_dump([("l", "Thing", slots)])))
        return paths


class Judging(Case):
    def test_every_measure_of_error_may_be_the_drift(self):
        paths = self.pair([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3.5, 4, 5, 6, 7, 10])
        for metric in ("rel_l2", "max_abs", "mean_abs", "rmse", "max_rel", "mean_rel", "max_scaled", "p50", "p90",
                       "p99", "p999", "max_ulp", "p99_ulp"):
            layer = self.compare("--metric", metric, *paths)["layers"][0]
            self.assertEqual(layer["drift"], layer["slots"][0]["metrics"][metric], metric)
        for metric, value in (("max_abs", 2), ("mean_abs", 2.5 / 8), ("max_rel", 0.25),
                              ("rmse", math.sqrt((0.25 + 4) / 8))):
            drift = self.compare("--metric", metric.replace("_", "-"), *paths)["layers"][0]["drift"]
            self.assertAlmostEqual(drift, value, places=14)

    def test_the_floor_given_by_hand_bounds_the_rms_of_both_sides(self):
        paths = self.pair([3, -4, 3, -4], [4, -3, 4, -3])  # both rms are sqrt(12.5), the largest error is 1
        for floor, tier in (("3.54", "elevated"), ("3.53", "fault"), ("1.5", "fault")):
            slot = self.compare("--abs-floor", floor, *paths)["layers"][0]["slots"][0]
            self.assertEqual(slot["tier"], tier, floor)
            self.assertEqual("rounding_residue" in slot["notes"], tier == "elevated", floor)
        paths = self.pair([1] * 4, [9] * 4)  # one side alone is small
        self.assertEqual(self.compare("--abs-floor", "2", *paths, status=1)["layers"][0]["tier"], "fault")

    def test_leading_zeros_are_no_python_number(self):
        for digits, code in (("04", 2), ("4", 0), ("0", 0)):
            count = int(digits)
            array = npy("F32", [count], [1.0] * count).replace(b"(%d,)" % count, b"(%s,)" % digits.encode()
                                                               if digits != "04" else b"(04)")
            path = write(self.dir, "a.npy", array)
            self.assertEqual(self.run_tool("-q", path, path)[0], code, digits)


class Reasons(Case):
    """What the last line says is true of what was compared."""

    def reason(self, *args):
        return self.compare(*args)["reason"]

    def test_excused_faults_are_not_said_to_stay_under_the_bound(self):
        paths = self.pair([1, 2, 3, 4], [2, 4, 6, 8])
        self.assertEqual(self.reason(*paths), "1 layer reaches 1e-1")
        for excuse in (["--fail-on", "never"], ["--tol", "l=3"]):
            words = self.reason(*excuse, *paths)
            self.assertNotIn("no layer reaches", words)
            self.assertIn("1 layer at fault is excused", words)
        self.assertIn("no layer reaches 5", self.reason("--fail-on", "5", "--tiers", "1e-6,1e-3,5", *paths))

    def test_expected_drift_over_the_bound_is_said_to_be_excused(self):
        """Products in bfloat16: each layer is off by rounding alone."""
        def round_to(value, bits):
            mantissa, exponent = math.frexp(value)
            return math.ldexp(round(mantissa * 2 ** bits), exponent - bits)
        x = [[math.sin(7 * i + 3 * k) for k in range(16)] for i in range(8)]
        w = [[math.cos(5 * i + 2 * k) for k in range(16)] for i in range(16)]
        for side, dtype, bits in (("r", "F32", 24), ("c", "BF16", 8)):
            a = [[round_to(v, bits) for v in row] for row in x]
            b = [[round_to(v, bits) for v in row] for row in w]
            y = [round_to(math.fsum(p * q for p, q in zip(row, col)), bits) for row in a for col in b]
            slots = {"input.0": (dtype, [8, 16], sum(a, [])), "param.weight": (dtype, [16, 16], sum(b, [])),
                     "output.0": (dtype, [8, 16], y)}
            write(self.dir, side + ".dump", normdiff_dump([("fc", "Linear", slots)]))
        options = ["--tiers", "1e-6,1e-4,1e-3", "r.dump", "c.dump"]
        self.assertEqual(self.compare(*options, status=1)["reason"], "1 layer reaches 1e-3")
        report = self.compare("--fail-on", "unexpected", *options, status=0)
        self.assertIs(report["layers"][0]["expected"], True)
        self.assertEqual(report["reason"], "nothing fails: 1 layer at fault is excused")

    def test_what_statistics_cannot_show_does_not_agree(self):
        for name in ("r.log", "c.log"):
            write(self.dir, name, b"l1: max=0.1, mean=0.0\nl2: max=0.1, mean=0.0\n")
        report = self.compare("r.log", "c.log", status=0)
        self.assertEqual(report["summary"]["unresolved"], 2)
        self.assertIn("2 layers could not be judged", report["reason"])

    def test_failures_of_one_kind_are_named(self):
        for reference, candidate, dtype, options, words in (
                ([1.0, math.nan], [1.0, 2.0], "F32", [], "in 1 layer NaN or infinity stands on one side only"),
                ([1, 2], [1, 3], "I32", [], "in 1 layer integers differ"),
                ([1.0] * 64, [3.0] + [1.0] * 63, "F32", ["--tiers", "1e-6,1e-3,9"], "in 1 layer a few elements"),
                ([1.0] * 5, [1.0] * 7, "F32", [], "1 layer has a shape"),
                ([1.0] * 64, [1.00001] * 64, "F32", ["--fail-on", "any"], "1 layer differs"),
                ([1.0] * 64, [1.01] * 64, "F32", ["--fail-on", "elevated"], "1 layer is over 1e-3"),
                ([1.0] * 64, [1.02] * 64, "F32", ["--fail-on", "1e-2"], "1 layer reaches 1e-2")):
            report = self.compare(*options, *self.pair(reference, candidate, dtype))
            self.assertTrue(report["reason"].startswith(words), report["reason"])
            self.assertEqual(report["exit_code"], 1, words)

    def test_an_origin_under_every_bound_is_called_one(self):
        base = [math.sin(k) for k in range(64)]
        paths = []
        for side, off in (("r", 0), ("c", 1e-4)):
            out = [math.tanh(x) + off * (-1) ** k for k, x in enumerate(base)]
            layers = [("a", "Tanh", {"input.0": ("F32", [64], base), "output.0": ("F32", [64], out)})]
            paths.append(write(self.dir, side + ".dump", normdiff_dump(layers)))
        self.compare(*paths, status=0)
        self.assertEqual(self.compare("--fail-on", "origin", *paths, status=1)["reason"],
                         "drift enters in 1 layer, under every bound")

    def test_the_order_by_name_is_said_to_be_one(self):
        for side in "rc":
            write(self.dir, side + ".st", safetensors({"b": ("F32", [2], [1, 2]), "a": ("F32", [2], [1, 2])}))
        self.assertIn("first by name", self.run_tool("r.st", "c.st")[1])


class Names(Case):
    HIDDEN = ("a\u200bb", "a\u00adb", "a\u061cb", "a\u200fb", "a\u2060b", "a\U000e0041b", "a\u202eb", "a\u0085b")

    def test_characters_that_nobody_sees_are_shown_escaped_and_kept_in_json(self):
        tensors = {name: ("F32", [2], [1.0, 2.0]) for name in self.HIDDEN}
        other = {name: ("F32", [2], [3.0, 2.0]) for name in self.HIDDEN}
        write(self.dir, "r.st", safetensors(tensors))
        write(self.dir, "c.st", safetensors(other))
        report = self.compare("r.st", "c.st", status=1)
        self.assertEqual({layer["name"] for layer in report["layers"]}, set(self.HIDDEN))
        for word in ("text", "markdown", "html", "csv", "junit", "github", "gitlab", "json", "jsonl"):
            out = self.run_tool("-f", word, "-a", "r.st", "c.st")[1]
            for name in self.HIDDEN:
                self.assertNotIn(name[1], out, word)

    def test_a_report_without_a_line_is_written(self):
        path = write(self.dir, "a.st", safetensors({"a": ("F32", [1], [1.0])}))
        write(self.dir, "b.st", safetensors({"a": ("F32", [1], [1.0])}))
        code, out, _ = self.run_tool("-f", "keep-dtype", "-o", "keep-dtype=k.txt", path, "b.st")
        self.assertEqual((code, out, os.path.getsize(os.path.join(self.dir, "k.txt"))), (0, "", 0))


class Nothing(Case):
    def test_a_dump_without_tensors_is_said_to_be_one(self):
        write(self.dir, "a.st", safetensors({"a": ("F32", [1], [1.0])}))
        write(self.dir, "none.st", safetensors({}))
        for paths in (("a.st", "none.st"), ("none.st", "a.st"), ("none.st", "none.st")):
            code, _, err = self.run_tool(*paths)
            self.assertEqual(code, 2)
            self.assertIn("none.st: found a dump without any tensor", err)

    def test_layers_without_a_common_tensor_agree_on_nothing(self):
        for side, slot in (("r", "output.0"), ("c", "output.1")):
            write(self.dir, side + ".dump", normdiff_dump([("l", "Thing", {slot: ("F32", [1], [1.0])})]))
        code, out, _ = self.run_tool("-f", "json", "--fail-on", "never", "--allow-unmatched", "r.dump", "c.dump")
        self.assertEqual((code, json.loads(out)["schema"]), (2, "normdiff/error/1"))

    def test_tensors_that_cannot_be_compared_are_named_and_are_no_trouble(self):
        paths = self.pair([1.0] * 3, [1.0] * 4)
        report = self.compare("--fail-on", "never", *paths, status=0)
        self.assertEqual([item["name"] for item in report["coverage"]["skipped"]], ["l.output.0"])
        self.assertNotIn("agrees", report["reason"])
        broken = safetensors({"a": ("F32", [1], [1.0])}).replace(b'"F32"', b'"F77"')
        write(self.dir, "a.st", broken)
        report = self.compare("--allow-unmatched", "a.st", "a.st", status=0)
        self.assertEqual(report["reason"], "nothing fails, and nothing was compared")

    def test_a_rank_whose_json_broke_off_is_named_and_the_others_are_compared(self):
        record = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0, "Mean": 0.5,
                  "Norm": 1.0}
        text = json.dumps({"task": "statistics", "level": "L1", "dump_data_dir": None,
                           "data": {"Functional.relu.0.forward": {"input_args": [record], "output": [record]}}})
        for side in ("ref", "cand"):
            for rank in (0, 1):
                write(self.dir, "%s/step0/rank%d/dump.json" % (side, rank), text)
        self.compare("ref", "cand", status=0)
        for length in (0, 1, 9, 60, 200, len(text) - 1):
            write(self.dir, "cand/step0/rank1/dump.json", text[:length])
            report = self.compare("ref", "cand", status=1)
            self.assertEqual([(l["rank"], l["tier"], l["fails"]) for l in report["layers"]],
                             [(0, "noise", None), (1, None, "missing")], length)
            self.assertIn("step0/rank1/dump.json", report["coverage"]["skipped"][0]["name"], length)
            self.assertTrue(report["coverage"]["skipped"][0]["reason"], length)


class Covered(Case):
    def test_what_computes_nothing_is_covered_by_what_it_hands_on(self):
        value = ("F32", [4], [1.0, 2.0, 3.0, 4.0])
        both = [("a", "Linear", {"output.0": value}), ("b", "ReLU", {"input.0": value, "output.0": value})]
        idle = [("id", "Identity", {}), ("d1", "Dropout", {"training": False, "p": 0.5}),
                ("d2", "Dropout2d", {"training": True, "p": 0.0})]
        alive = [("d3", "Dropout", {"training": True, "p": 0.5}), ("e", "ReLU", {})]
        write(self.dir, "c.dump", normdiff_dump(both))
        for name, kind, attributes in idle + alive:
            extra = (name, kind, {"input.0": value, "output.0": value}, attributes)
            write(self.dir, "r.dump", normdiff_dump([both[0], extra, both[1]]))
            is_idle = (name, kind, attributes) in idle
            report = self.compare("r.dump", "c.dump", status=0 if is_idle else 1)
            self.assertEqual(report["coverage"]["covered_by"], [{"name": name, "by": "a"}] if is_idle else [])
            self.assertEqual(report["coverage"]["reference_only"], [] if is_idle else [name])


class Ranks(Case):
    """Two ranks side by side, two steps; one layer of rank 1 computes something else."""
    COUNT, FAULTY = 6, 2

    def layers(self, step, rank, faulty, statistics, inputs):
        x = [math.sin(1 + k + 10 * rank + 100 * step) for k in range(32)]
        out = []
        for number in range(self.COUNT):
            weight = [1 + 0.01 * number + (1e-2 * step * (1 + (k + number) % 3) if faulty else 0) for k in range(32)]
            y = [math.tanh(v * w) for v, w in zip(x, weight)]
            if faulty and number == self.FAULTY and rank == 1:
                y = [v * (1 + 0.02 * (1 + k % 5)) for k, v in enumerate(y)]
            slots = {"output.0": self.slot(y, statistics), "param.weight": self.slot(weight, statistics)}
            if inputs:
                slots["input.0"] = self.slot(x, statistics)
            out.append(("l%d" % number, "Scaled", slots))
            x = y
        return out

    @staticmethod
    def slot(values, statistics):
        values = [struct.unpack("<f", struct.pack("<f", v))[0] for v in values]
        if not statistics:
            return ("F32", [len(values)], values)
        return {"statistics": {"max": max(values), "min": min(values), "mean": math.fsum(values) / len(values),
                               "norm": math.sqrt(math.fsum(v * v for v in values))},
                "shape": [len(values)], "dtype": "float32"}

    def dumps(self, statistics=False, inputs=True):
        for side in ("ref", "cand"):
            for step in (0, 1):
                for rank in (0, 1):
                    layers = self.layers(step, rank, side == "cand", statistics, inputs)
                    write(self.dir, "%s/step%d/rank%d.dump" % (side, step, rank),
                          normdiff_dump(layers, step=step, rank=rank))
        return "ref", "cand"

    def roles(self, report, step, rank):
        return [l["role"] for l in report["layers"] if (l["step"], l["rank"]) == (step, rank)]

    def test_a_rank_is_judged_on_its_own_layers(self):
        for statistics in (False, True):
            for inputs in (True, False):
                report = self.compare(*self.dumps(statistics, inputs))
                first = report["first_divergence"]
                what = "statistics %s, inputs %s" % (statistics, inputs)
                self.assertEqual((first["layer"], first["step"], first["rank"], first["role"]),
                                 ("l2", 0, 1, "origin"), what)
                self.assertEqual(self.roles(report, 0, 0), ["clean"] * 6, what)
                self.assertEqual(self.roles(report, 0, 1), ["clean"] * 2 + ["origin"] + ["inherited"] * 3, what)
                self.assertNotIn("gap", [l["role"] for l in report["layers"]], what)

    def test_weights_that_parted_in_a_later_step_are_no_cause_in_the_first(self):
        for statistics in (False, True):
            report = self.compare(*self.dumps(statistics))
            self.assertNotIn("different_weights", [cause["id"] for cause in report["causes"]])
            later = self.compare("--step", "1", *self.dumps(statistics))
            self.assertEqual(later["causes"][0]["id"], "different_weights")

    def test_the_page_shows_neighbours_of_the_same_rank_and_where_the_result_is_from(self):
        text = self.run_tool(*self.dumps())[1]
        rows = [line.split()[:4] for line in text.splitlines() if " 0/1 " in line or " 0/0 " in line]
        self.assertEqual([row[1:3] for row in rows][:1], [["0/1", "l1"]])
        self.assertEqual([row for row in rows if "0/0" in row], [])
        self.assertIn("l5 output.0 (step 1, rank 1) drift", text)


class Commands(Case):
    def test_a_proposed_command_reads_and_judges_as_this_one_did(self):
        os.mkdir(os.path.join(self.dir, "it's $HOME"))
        for name, values in (("it's $HOME/r.bin", [1.0, 2, 3, 4]), ("-c.bin", [1.0, 2.5, 3.4, 4.1])):
            write(self.dir, name, struct.pack("<4f", *values))
        options = ["--raw", "float32:2,2", "--tiers", "1e-6,1e-3,1e-2", "--nan", "strict", "--tol", "zz=1"]
        _, out, err = self.run_tool(*options, "--", "it's $HOME/r.bin", "-c.bin", env={"COLUMNS": "400"})
        lines = [line.strip() for line in out.splitlines() if line.strip().startswith("normdiff ")]
        self.assertEqual(len(lines), 1, out + err)
        script = lines[0].replace("SECOND_CANDIDATE_RUN", "./-c.bin").replace("normdiff", "'%s' -f json" % TOOL, 1)
        done = subprocess.Popen(["sh", "-c", script], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        report, err = done.communicate()
        self.assertEqual(done.returncode, 1, err)
        report = json.loads(report.decode("utf-8"))
        self.assertEqual(report["policy"]["tiers"], [1e-6, 1e-3, 1e-2])
        self.assertEqual(report["policy"]["nan"], "strict")
        self.assertEqual(report["steps"][0]["status"], "done")

    def test_further_dumps_are_said_again(self):
        paths = self.pair([1, 2, 3, 4], [1, 2.5, 3.4, 4.1])
        step = self.compare("--golden", paths[0], *paths)["steps"][0]
        self.assertEqual(step["argv"], ["normdiff", *paths, "--golden", paths[0], "--rerun-candidate",
                                        "SECOND_CANDIDATE_RUN"])


class Claims(Case):
    def test_a_jump_behind_an_origin_is_not_said_to_be_explained(self):
        base = [1.0 + k for k in range(16)]
        for side, off in (("r", {}), ("c", {2: 1e-3, 6: 5.0})):
            layers = [("l%d" % n, "Thing", {"output.0": ("F32", [16], [v + off.get(n, 0) * (-1) ** k
                                                                        for k, v in enumerate(base)])})
                      for n in range(8)]
            write(self.dir, side + ".dump", normdiff_dump(layers))
        report = self.compare("r.dump", "c.dump", status=1)
        self.assertEqual([layer["role"] for layer in report["layers"]],
                         ["clean", "clean", "origin", "clean", "clean", "clean", "unknown", "clean"])

    def test_statistics_say_nothing_of_the_mantissa(self):
        slot = {"statistics": {"max": 1.5, "min": -1.0, "mean": 0.25, "norm": 3.0}, "shape": [16], "dtype": "float32"}
        off = dict(slot, statistics=dict(slot["statistics"], max=1.25))
        for side, value in (("r", slot), ("c", off)):
            write(self.dir, side + ".dump", normdiff_dump([("l", "Thing", {"input.0": slot, "output.0": value})]))
        report = self.compare("r.dump", "c.dump")
        line = [item for item in report["checklist"] if item["id"] == "dtype"][0]
        self.assertNotIn("mantissa", line["evidence"])
        self.assertIn("the statistics of its input are equal", self.run_tool("r.dump", "c.dump",
                                                                             env={"COLUMNS": "200"})[1])

    def test_values_of_both_sides_on_a_narrow_grid_are_said_to_lie_there(self):
        values = [1 + k / 128.0 for k in range(64)]  # 8 significant bits: bfloat16 in float32
        paths = self.pair(values, [v * 2 for v in values])
        line = [item for item in self.compare(*paths)["checklist"] if item["id"] == "dtype"][0]
        self.assertIn("lie on the bfloat16 grid", line["evidence"])


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
