#!/usr/bin/env python3
"""What a person reads: the text report on the shipped pairs and on small dumps, at any width and in
both languages, and the pages of --explain.

    test_screens.py TOOL ROOT
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unicodedata
import unittest

TOOL = os.path.abspath(sys.argv[1])
ROOT = os.path.abspath(sys.argv[2])
sys.path.insert(0, os.path.join(ROOT, "tests", "contract"))
from dumps import normdiff_dump, write  # noqa: E402

PAIRS = ("eps", "autocast", "bn_train", "channels_last", "clean")
NAN = float("nan")


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def words(text):
    return re.sub(r"\s+", " ", text)


class Screens(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = folder.name

    def run_tool(self, *arguments, status=None, locale="C.UTF-8", width=80):
        done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={"PATH": os.environ["PATH"], "LC_ALL": locale, "COLUMNS": str(width)})
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout.decode("utf-8")

    def pair(self, reference, candidate, names=("gpu.dump", "npu.dump"), **record):
        return [write(self.here, name, normdiff_dump(layers, **record))
                for name, layers in zip(names, (reference, candidate))]

    def example(self, name):
        return [os.path.join(ROOT, "examples", "pairs", name, one) for one in ("gpu.dump", "npu.dump")]

    def report(self, *arguments):
        return json.loads(self.run_tool("-f", "json", *arguments))

    def test_no_line_is_wider_than_the_terminal(self):
        for name in PAIRS:
            for language in ("en", "zh"):
                for width in (60, 80, 120, 200):
                    text = self.run_tool("--lang", language, "-a", "-v", *self.example(name), width=width)
                    for line in text.splitlines():
                        if not line.endswith("\\") and "--rerun" not in line and "_RUN" not in line:
                            self.assertLessEqual(columns(line), width, line)

    def test_without_utf8_all_is_ascii(self):
        for name in PAIRS:
            for locale in ("C", "zh_CN.GB18030"):
                self.assertTrue(self.run_tool("-a", "-v", *self.example(name), locale=locale).isascii())

    def test_no_sentence_of_the_checklist_is_broken_off(self):
        for name in PAIRS:
            for width in (60, 80, 120):
                text = self.run_tool(*self.example(name), width=width)
                start = text.find("\nCHECKLIST")
                if start < 0:
                    continue
                checklist = words(text[start:text.find("\nNEXT", start)])
                self.assertNotIn("\u2026", checklist)
                for line in self.report(*self.example(name))["checklist"]:
                    if line["status"] == "ok":
                        self.assertIn(line["evidence"], checklist)

    def test_the_output_goes_before_a_counter(self):
        def norm(counter, values):
            return [("bn", "BatchNorm2d", {"output.0": ("F32", [4], values),
                                           "state_after.num_batches_tracked": ("I64", [1], [counter])})]
        paths = self.pair(norm(7, [1, 1, 1, 1]), norm(8, [1.5, 1.5, 1.5, 1.5]))
        layer = self.report(*paths)["layers"][0]
        self.assertEqual((layer["tier"], layer["fails"]), ("fault", "integer"))
        self.assertAlmostEqual(layer["drift"], 0.5, delta=1e-12)
        self.assertEqual({slot["slot"]: slot["drift"] for slot in layer["slots"]},
                         {"output.0": 0.5, "state_after.num_batches_tracked": 1})
        text = self.run_tool(*paths, status=1)
        self.assertIn("#0  bn  5.0e-01\n", text)
        self.assertNotIn("1.0e+00", text)

    def test_a_counter_alone_still_fails_its_layer(self):
        def norm(counter):
            return [("bn", "BatchNorm2d", {"output.0": ("F32", [2], [1, 2]),
                                           "state_after.num_batches_tracked": ("I64", [1], [counter])})]
        layer = self.report(*self.pair(norm(7), norm(8)))["layers"][0]
        self.assertEqual((layer["tier"], layer["fails"], layer["drift"]), ("fault", "integer", 1))

    def test_a_drift_beside_nan_is_said_to_be_that_of_the_rest(self):
        def layer(*values):
            return [("a", "ReLU", {"output.0": ("F32", [len(values)], values)})]
        paths = self.pair(layer(1, 2, 3, 4), layer(1, NAN, 3, 4))
        text = self.run_tool(*paths, status=1)
        self.assertIn("where both are finite: drift 0", words(text))
        self.assertIn("#0  a  0  nonfinite", text)

    def test_the_last_line_counts_what_fails_and_what_is_missing(self):
        one, two = ("F32", [2], [1.0, 2.0]), ("F32", [2], [2.0, 4.0])
        paths = self.pair([("a", "Linear", {"output.0": one}), ("b", "Conv2d", {"output.0": one}),
                           ("c", "ReLU", {"output.0": one})],
                          [("a", "Linear", {"output.0": two})])
        text = self.run_tool(*paths, status=1)
        self.assertEqual(text.splitlines()[-1],
                         "exit 1: 1 layer reaches 1e-1, 2 reference layers were not compared")
        self.assertEqual(self.report(*paths)["reason"], text.splitlines()[-1][len("exit 1: "):])

    def test_steps_are_left_out_where_nothing_diverges(self):
        one = ("F32", [2], [1.0, 2.0])
        paths = self.pair([("a", "Linear", {"output.0": one}), ("b", "Conv2d", {"output.0": one})],
                          [("a", "Linear", {"output.0": one})])
        text = self.run_tool(*paths, status=1)
        self.assertNotIn("NEXT", text)
        self.assertIn("only in the reference (1):", text)

    def test_a_named_cause_points_to_its_page(self):
        self.assertIn("more about this cause: normdiff --explain eps\n", self.run_tool(*self.example("eps"), status=1))

    def test_bounds_of_the_policy_are_numbers(self):
        report = self.report("--tol", "a*=2.5e-2", "--tol", "b=1", *self.example("clean"))
        self.assertEqual(report["policy"]["tol"], [{"name": "a*", "bound": 0.025}, {"name": "b", "bound": 1}])

    def test_the_step_in_float32_knows_wider_types(self):
        said = {}
        for types in (("F32", "F32"), ("F64", "F64"), ("F32", "F64")):
            layers = [[("a", "ReLU", {"output.0": (one, [2], [1.0, 2.0])})] for one in types]
            steps = self.report(*self.pair(*layers))["steps"]
            said[types] = [step["evidence"] for step in steps if step["id"] == "fp32"][0]
        self.assertEqual(said, {("F32", "F32"): "both sides are float32", ("F64", "F64"): "both sides are float64",
                                ("F32", "F64"): "both sides are float32 or wider"})

    def test_reruns_that_differ_leave_randomness_open_with_where_and_what_to_run(self):
        def layers(last):
            return [("a", "ReLU", {"output.0": ("F32", [2], [1.0, 2.0])}),
                    ("b", "ReLU", {"output.0": ("F32", [2], [1.0, last])})]
        paths = self.pair(layers(2.0), layers(2.0))
        again = write(self.here, "again.dump", normdiff_dump(layers(2.5)))
        step = [s for s in self.report("--rerun-candidate", again, *paths)["steps"] if s["id"] == "randomness"][0]
        self.assertEqual(step["status"], "open")
        self.assertIn("first at b", step["evidence"])
        self.assertEqual(step["argv"][:3] + step["argv"][3:4], ["normdiff", *paths, "--rerun-candidate"])
        same = write(self.here, "same.dump", normdiff_dump(layers(2.0)))
        step = [s for s in self.report("--rerun-candidate", same, *paths)["steps"] if s["id"] == "randomness"][0]
        self.assertEqual((step["status"], step["argv"]), ("done", []))

    def test_commands_to_copy_are_quoted_for_a_shell(self):
        names = ("it's a dump", "$(npu) `x`.dump")
        one = [("a", "ReLU", {"output.0": ("F32", [2], [1.0, 2.0])})]
        paths = self.pair(one, one, names)
        text = self.run_tool("-v", *paths, width=400)
        line = [line for line in text.splitlines() if "--rerun-candidate" in line][0]
        self.assertEqual(shlex.split(line), ["normdiff", *paths, "--rerun-candidate", "SECOND_CANDIDATE_RUN"])

    # --explain

    def causes(self):
        return [line.split()[0] for line in self.run_tool("--explain", "list", status=0).splitlines()
                if re.match(r"  \S", line)]

    def test_every_cause_has_a_whole_page_in_both_languages(self):
        headings = {"en": ["What it is", "How it looks in the data", "What proves it", "What it can be taken for",
                           "What to do", "To search for"],
                    "zh": ["是什么", "数据中的表现", "什么能证实它", "容易与什么混淆", "怎么办", "检索词"]}
        causes = self.causes()
        self.assertGreaterEqual(len(causes), 55)
        self.assertEqual(len(set(causes)), len(causes))
        for language, lines in headings.items():
            for cause in causes:
                text = self.run_tool("--explain", cause, "--lang", language, status=0)
                found = [line for line in text.splitlines() if line in lines]
                self.assertEqual(found, lines, cause)
                for label in ("PyTorch", "torch_npu", "CANN"):
                    self.assertRegex(text, r"(?m)^  %s[:：]" % label)
                self.assertLessEqual(max(columns(line) for line in text.splitlines()), 80)
                if language == "zh":
                    self.assertNotRegex(text, r"(?m)（$", "an opening bracket ends a line")

    def test_neighbours_that_a_page_names_have_pages(self):
        causes = set(self.causes())
        for cause in causes:
            text = words(self.run_tool("--explain", cause, status=0))
            named = text[text.index("What it can be taken for"):text.index("What to do")]
            others = {one for one in re.findall(r"[a-z]+(?:_[a-z]+)*", named) if one in causes} - {cause}
            self.assertTrue(others, cause)
            named_like_one = re.findall(r"[a-z]+(?:_[a-z]+)+", named)
            self.assertLessEqual(set(named_like_one), causes, cause)

    def test_what_is_no_cause_is_explained_in_a_sentence(self):
        for identifier in ("fault", "origin", "statistics", "squeezed", "nonfinite", "layout"):
            self.assertTrue(self.run_tool("--explain", identifier, status=0).startswith(identifier))

    def test_the_page_of_all_causes_is_sound_markdown(self):
        for language in ("en", "zh"):
            text = self.run_tool("--explain", "all", "-f", "markdown", "--lang", language, status=0)
            titles = re.findall(r"(?m)^### (\S+)$", text)
            self.assertEqual(titles, self.causes())
            self.assertLessEqual(set(re.findall(r"\]\(#([^)]+)\)", text)), set(titles))
            self.assertEqual(text.count("\n- [`"), len(titles))
            for line in text.splitlines():
                self.assertEqual(line.count("`") % 2, 0, line)
                self.assertNotIn("``", line)
                if not line.startswith("### "):
                    line = re.sub(r"`[^`]*`|\]\(#[^)]*\)", "", line)
                    self.assertNotRegex(line, r"(?<!\\)_", "a bare _ may begin emphasis")

    def test_shells_complete_the_causes(self):
        for shell in ("bash", "zsh", "fish"):
            lines = [line for line in self.run_tool("--completion", shell, status=0).splitlines() if "one_plus_weight" in line]
            self.assertEqual(len(lines), 1, shell)
            for cause in ["list", "all"] + self.causes():
                self.assertRegex(lines[0], r"\b%s\b" % cause)

    def test_an_unknown_id_is_trouble(self):
        for arguments in (("--explain", "nothing"), ("--explain", "eps", "-f", "json"), ("--explain", ""),
                          ("--explain", "x" * 5000), ("--explain", "status.ok.")):
            self.assertIn(self.run_tool(*arguments, status=2)[:29], ("", '{"schema":"normdiff/error/1",'))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
