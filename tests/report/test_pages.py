#!/usr/bin/env python3
"""The reports for browsers and pipelines (html, github, gitlab), held against the JSON report of
the same pair and against what their readers do: a strict walk over the HTML, the runner's
unescaping of workflow commands, the keys of GitLab's Code Quality.

    test_pages.py TOOL ROOT
"""
import html.parser
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.abspath(sys.argv[1])
ROOT = os.path.abspath(sys.argv[2])
sys.path.insert(0, os.path.join(ROOT, "tests", "contract"))
from dumps import normdiff_dump, write  # noqa: E402

VOID = {"meta", "br", "rect", "link", "img", "input", "hr", "wbr"}
HOSTILE = ["<script>alert(1)</script>", "a\"onmouseover=\"x&amp;", "::error::pwned", "##[error]pwned",
           "::stop-commands::x", "line\nbreak\r%0A,:", "\x1b[31mred", "\u202egnp.exe", "</title></style>",
           "]]>--><!--", "层.归一化", "{count} {layers|one|two}", "#layer-0", "' onload='x"]


def run(*arguments, status=None, cwd=None):
    done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
    if status is not None and done.returncode != status:
        raise AssertionError("exit %d, expected %d: %s" % (done.returncode, status, done.stderr.decode()))
    return done.stdout.decode("utf-8")


class Page(html.parser.HTMLParser):
    """Tags in order, with a check that each is closed where it should be."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.words = [], [], [], []
        self.cells, self.titles = [], []
        self.feed(text)
        self.close()
        if self.open:
            raise AssertionError("left open: %s" % self.open)

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        if len(set(names)) != len(names):
            raise AssertionError("an attribute twice: %s" % attributes)
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag not in VOID or (tag == "rect" and "band" not in attributes.get("class", "")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError("</%s> closes something else" % tag)

    def handle_data(self, data):
        if self.open and self.open[-1] == "title" and "svg" in self.open:
            self.titles.append(data)
        if "style" not in self.open:
            self.words.append(data)

    def text(self):
        return "".join(self.words)

    def with_class(self, tag, name):
        return [a for t, a in self.tags if t == tag and name in a.get("class", "").split()]


def pair(folder, names, drifts, candidate_names=None, **record):
    """Two dumps whose layers drift by just these figures: 1 against 1 + drift."""
    paths = []
    for side in (0, 1):
        layers = [(name, "Linear", {"output.0": ("F64", [4], [1.0 + side * drift] * 4)})
                  for name, drift in zip(names if side == 0 else candidate_names or names, drifts)]
        name = ("gpu.dump", "npu.dump")[side]
        write(folder, name, normdiff_dump(layers, **record))
        paths.append(os.path.join(folder, name))
    return paths


class Reports(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.here = self.folder.name

    def example(self, name):
        folder = os.path.join(ROOT, "examples", "pairs", name)
        return [os.path.join(folder, one) for one in ("gpu.dump", "npu.dump")]

    # html

    def check_page(self, text):
        page = Page(text)
        self.assertTrue(text.startswith("<!doctype html>\n<html lang="))
        self.assertEqual(len(set(page.ids)), len(page.ids), "an id twice")
        for tag, attributes in page.tags:
            self.assertNotIn(tag, {"script", "link", "img", "iframe", "object", "base", "form"})
            for name, value in attributes.items():
                self.assertFalse(name.startswith("on"), "%s=%s" % (name, value))
                self.assertNotIn(name, {"src", "srcset", "action", "xlink:href"})
                if name == "href":
                    self.assertTrue(value.startswith("#"), value)
                    self.assertIn(value[1:], page.ids)
        self.assertNotRegex(text, r"url\(|@import|https?:")
        self.assertNotRegex(page.text(), r"\{[a-z]+[|}]")
        return page

    def test_html_draws_every_layer_at_the_height_of_its_drift(self):
        names = ["l%d" % i for i in range(12)]
        drifts = [0, 1e-12, 1e-9, 3e-8, 1e-7, 5e-6, 1e-5, 2e-3, 0.05, 0.1, 0.7, 30]
        reference, candidate = pair(self.here, names, drifts)
        page = self.check_page(run("-f", "html", reference, candidate, status=1))
        bars = [a for t, a in page.tags if t == "rect" and "band" not in a["class"]]
        layers = json.loads(run("-f", "json", reference, candidate))["layers"]
        self.assertEqual(len(bars), 12)
        tiers = ["exact", "noise", "reduction", "elevated", "fault"]
        for bar, layer, drift in zip(bars, layers, drifts):
            self.assertAlmostEqual(layer["drift"], drift, delta=1e-6 * drift + 1e-15)
            want = 0 if drift == 0 else min(900, max(0, 100 * (math.log10(drift) + 9)))
            self.assertAlmostEqual(float(bar["height"]), max(want, 8), delta=0.51)
            self.assertEqual(float(bar["height"]) + float(bar["y"]), 900)
            self.assertEqual(bar["class"], "c%d" % tiers.index(layer["tier"]))
        xs = [float(bar["x"]) for bar in bars]
        self.assertEqual([int(x) for x in xs], list(range(12)))

    def test_html_bands_stand_at_the_bounds_of_the_tiers(self):
        reference, candidate = pair(self.here, ["a"], [0.5])
        for option, bounds in (((), (1e-3, 1e-1)), (("--tiers", "1e-8,1e-5,1e-2"), (1e-5, 1e-2))):
            page = self.check_page(run("-f", "html", *option, reference, candidate))
            bands = {a["class"]: a for t, a in page.tags if t == "rect" and "band" in a["class"]}
            top = {name: 900 - int(a["y"]) for name, a in bands.items()}
            self.assertEqual(top["band4"], 900)
            self.assertEqual(top["band3"], round(100 * (math.log10(bounds[1]) + 9)))
            self.assertEqual(top["band2"], round(100 * (math.log10(bounds[0]) + 9)))

    def test_html_says_what_json_says(self):
        for name in ("eps", "autocast", "bn_train", "channels_last", "clean"):
            reference, candidate = self.example(name)
            page = self.check_page(run("-f", "html", reference, candidate))
            report = json.loads(run("-f", "json", reference, candidate))
            text = re.sub(r"\s+", " ", page.text())
            self.assertIn("normdiff: " + report["verdict"], text)
            self.assertIn(report["reason"], text)
            rows = [i for i in page.ids if i.startswith("layer-")]
            self.assertEqual(rows, ["layer-%d" % layer["index"] for layer in report["layers"]])
            first = report["first_divergence"]
            self.assertEqual(first is not None, "first" in page.ids)
            if first is not None:
                self.assertIn("#%d %s" % (first["index"], first["layer"]), text)
            for cause in report["causes"]:
                if cause["status"] != "possible" or report["causes"][0]["status"] == "possible":
                    self.assertIn(cause["summary"], text)
            for line in report["checklist"]:
                self.assertIn(line["evidence"] or "", text)
            for tier, count in report["summary"].items():
                if tier in ("exact", "noise", "reduction", "elevated", "fault"):
                    number = ["exact", "noise", "reduction", "elevated", "fault"].index(tier)
                    self.assertEqual(len(page.with_class("span", "t%d" % number)),
                                     count + 1, tier)

    def test_html_speaks_chinese(self):
        reference, candidate = self.example("eps")
        page = self.check_page(run("-f", "html", "--lang", "zh", reference, candidate))
        self.assertIn(("html", {"lang": "zh-CN"}), page.tags)
        self.assertIn("最先发散的层", page.text())
        for english in ("FIRST DIVERGING", "CHECKLIST", "recomputed", "layers", "inherited"):
            self.assertNotIn(english, page.text())

    def test_html_shows_hostile_names_as_text(self):
        reference, candidate = pair(self.here, HOSTILE, [0.5] * len(HOSTILE))
        page = self.check_page(run("-f", "html", reference, candidate, status=1)
                               .replace("{count} {layers|one|two}", "braces"))
        names = page.with_class("span", "n")
        self.assertGreaterEqual(len(names), len(HOSTILE))
        for name in HOSTILE[:3] + HOSTILE[8:11]:
            self.assertIn(name, page.text())
        self.assertNotRegex(page.text(), "[\x00-\x08\x0b-\x1f\x7f]")

    def test_html_of_a_large_model_stays_small_and_links_to_what_it_shows(self):
        names = ["l%d" % i for i in range(5000)]
        reference, candidate = pair(self.here, names, [0.0] * 2500 + [0.5] * 2500)
        page = self.check_page(run("-f", "html", reference, candidate, status=1))
        bars = [a for t, a in page.tags if t == "rect" and "band" not in a["class"]]
        self.assertEqual(len(bars), 1000)
        self.assertEqual(sum(i.startswith("layer-") for i in page.ids), 2000)
        self.assertIn("and 3000 more layers", page.text())
        whole = self.check_page(run("-f", "html", "-a", reference, candidate, status=1))
        self.assertEqual(sum(i.startswith("layer-") for i in whole.ids), 5000)

    def test_html_names_what_was_not_compared(self):
        reference, candidate = pair(self.here, ["a", "b", "<gone>"], [0, 0, 0], ["a", "b"])
        page = self.check_page(run("-f", "html", reference, candidate, status=1))
        self.assertIn("coverage", page.ids)
        self.assertIn("only in the reference (1):\n\n<gone>", page.text())

    def test_html_names_the_span_in_which_the_drift_entered(self):
        def dump(name, layers):
            return write(self.here, name, normdiff_dump(layers))
        x, y, z = ("F32", [4], [1.0, 2.0, 3.0, 4.0]), ("F32", [4], [2.0, 3.0, 4.0, 5.0]), ("F32", [4], [9.0, 8.0, 7.0, 6.0])
        far = ("F32", [4], [2.6, 3.9, 5.2, 6.5])
        paths = [dump("gpu.dump", [("in", "Linear", {"input.0": x, "output.0": x}),
                                   ("<conv>", "Conv2d", {"input.0": x, "output.0": y}),
                                   ("relu", "ReLU", {"input.0": y, "output.0": y}),
                                   ("fc", "Linear", {"input.0": y, "output.0": z})]),
                 dump("npu.dump", [("in", "Linear", {"input.0": x, "output.0": x}),
                                   ("<fused>", "FusedConvRelu", {"input.0": x, "output.0": far}),
                                   ("fc", "Linear", {"input.0": far, "output.0": ("F32", [4], [9.9, 8.1, 7.3, 6.9])})])]
        text = run(*paths, status=1)
        self.assertIn("the drift entered between in and fc", re.sub(r"\s+", " ", text))
        page = self.check_page(run("-f", "html", *paths, status=1))
        self.assertIn("the drift entered between in and fc", page.text())
        self.assertIn("without a partner, in the reference: <conv>, relu", page.text())
        self.assertIn("without a partner, in the candidate: <fused>", page.text())

    def test_html_ranks_the_layers_of_a_candidate_in_a_narrower_type(self):
        values = [[1.0 + i / 7 + k / 3 for i in range(64)] for k in range(6)]
        def layers(dtype, off):
            return [("l%d" % k, "ReLU", {"input.0": (dtype, [64], one),
                                         "output.0": (dtype, [64], [v * (1 + off * (k == 4)) for v in one])})
                    for k, one in enumerate(values)]
        paths = [write(self.here, "gpu.dump", normdiff_dump(layers("F32", 0))),
                 write(self.here, "npu.dump", normdiff_dump(layers("F16", 0.02)))]
        ranked = json.loads(run("-f", "json", *paths))["lowered"]["ranked"]
        self.assertEqual([one["layer"] for one in ranked], ["l4"])
        page = self.check_page(run("-f", "html", *paths))
        start = page.text().index("float16 in ")
        self.assertIn("#4 l4", page.text()[start:start + 300])

    def test_html_lists_a_dump(self):
        reference, _ = pair(self.here, HOSTILE, [0] * len(HOSTILE))
        page = self.check_page(run("--list", "-f", "html", reference, status=0)
                               .replace("{count} {layers|one|two}", "braces"))
        self.assertEqual(sum(t == "tr" for t, _ in page.tags), len(HOSTILE) + 1)

    # github

    @staticmethod
    def commands(text):
        """What the runner makes of a log: (command, properties, message) and plain lines."""
        commands, plain = [], []
        for line in text.splitlines():
            if not line.strip().startswith("::"):
                if "##[" in line:
                    raise AssertionError("an old command in " + line)
                plain.append(line)
                continue
            head, message = line.strip()[2:].split("::", 1)
            name, _, rest = head.partition(" ")
            properties = {}
            for one in rest.split(",") if rest else []:
                key, _, value = one.partition("=")
                for code, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
                    value = value.replace(code, sign)
                properties[key] = value
            for code, sign in (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
                message = message.replace(code, sign)
            commands.append((name, properties, message))
        return commands, plain

    def test_github_annotates_the_verdict_first_and_then_each_failing_layer(self):
        reference, candidate = self.example("eps")
        commands, plain = self.commands(run("-f", "github", reference, candidate, status=1))
        report = json.loads(run("-f", "json", reference, candidate))
        self.assertEqual(plain, ["normdiff: drift: " + report["reason"]])
        self.assertEqual({name for name, _, _ in commands}, {"error"})
        self.assertEqual(commands[0][1], {"title": "normdiff: drift"})
        lines = commands[0][2].split("\n")
        self.assertEqual(lines[0], report["reason"])
        self.assertIn("#10 blocks.1.norm1", lines[1])
        self.assertIn(report["causes"][0]["summary"], lines[2])
        failing = [layer for layer in report["layers"] if layer["fails"] and layer["index"] != 10]
        self.assertEqual([p["title"] for _, p, _ in commands[1:]],
                         ["#%d %s" % (layer["index"], layer["name"]) for layer in failing])

    def test_github_has_one_line_for_a_pair_that_agrees(self):
        reference, candidate = self.example("clean")
        text = run("-f", "github", reference, candidate, status=0)
        self.assertEqual(text.count("\n"), 1)
        self.assertTrue(text.startswith("normdiff: agree: "))

    def test_github_lets_no_name_be_a_command(self):
        reference, candidate = pair(self.here, HOSTILE, [0.5] * len(HOSTILE))
        commands, plain = self.commands(run("-f", "github", reference, candidate, status=1))
        self.assertEqual({name for name, _, _ in commands}, {"error"})
        self.assertEqual(len(commands), 10)
        self.assertEqual(len(commands) + len(plain) - 1, len(HOSTILE))
        titles = [p["title"] for _, p, _ in commands]
        for i, name in enumerate(HOSTILE[1:5], 1):
            self.assertIn("#%d %s" % (i, name), titles)
        self.assertIn("#5 line\\x0abreak\\x0d%0A,:", titles)

    def test_github_passes_warnings_on(self):
        reference, _ = pair(self.here, ["a"], [0])
        commands, _ = self.commands(run("-f", "github", reference, reference, status=0))
        self.assertEqual(commands, [("warning", {"title": "normdiff"}, "both operands are the same path")])

    def test_a_layer_that_is_missing_has_no_figures(self):
        paths = pair(self.here, ["a", "b"], [0, 0], ["a"])
        commands, _ = self.commands(run("-f", "github", *paths, status=1))
        self.assertEqual(commands[1], ("error", {"title": "#1 b"}, "missing"))
        self.assertEqual([i["description"] for i in self.issues(*paths, status=1)], ["#1 b: missing"])

    def test_github_warns_where_nothing_fails_but_a_divergence_was_found(self):
        reference, candidate = self.example("eps")
        commands, _ = self.commands(run("-f", "github", "--fail-on", "0.9", reference, candidate, status=0))
        self.assertEqual([name for name, _, _ in commands], ["warning"])
        self.assertEqual(commands[0][1]["title"], "normdiff: suspect")

    # markdown

    def test_markdown_holds_what_is_declared_and_recovered_and_what_to_do(self):
        reference, candidate = self.example("eps")
        text = run("-f", "markdown", reference, candidate, status=1)
        report = json.loads(run("-f", "json", reference, candidate))
        line = [one for one in report["checklist"] if one["id"] == "eps"][0]
        row = [one for one in text.splitlines() if one.startswith("| eps | MISMATCH")][0]
        for value in (*line["declared"].values(), *line["recovered"].values()):
            self.assertIn(value, row)
        self.assertEqual(text.count(line["advice"]), 1)
        self.assertTrue(text.endswith("\nexit 1: %s\n" % report["reason"]))

    def test_markdown_says_why_a_layer_has_no_figures(self):
        text = run("-f", "markdown", *pair(self.here, ["a", "b"], [0, 0], ["a"]), status=1)
        self.assertIn("| 1 | b | Linear | - | - | missing |\n", text)

    # gitlab

    def issues(self, *arguments, status=None):
        text = run("-f", "gitlab", *arguments, status=status)
        issues = json.loads(text)
        self.assertIsInstance(issues, list)
        for issue in issues:
            self.assertEqual(list(issue), ["description", "check_name", "fingerprint", "severity", "location"])
            self.assertIn(issue["severity"], {"info", "minor", "major", "critical", "blocker"})
            self.assertRegex(issue["fingerprint"], "^[0-9a-f]{32}$")
            self.assertEqual(list(issue["location"]), ["path", "lines"])
            self.assertFalse(issue["location"]["path"].startswith(("/", "./")))
            self.assertGreaterEqual(issue["location"]["lines"]["begin"], 1)
        prints = [issue["fingerprint"] for issue in issues]
        self.assertEqual(len(set(prints)), len(prints))
        return issues

    def test_gitlab_has_an_issue_for_each_failing_layer(self):
        reference, candidate = self.example("eps")
        issues = self.issues(reference, candidate, status=1)
        report = json.loads(run("-f", "json", reference, candidate))
        failing = [layer for layer in report["layers"] if layer["fails"]]
        self.assertEqual([i["location"]["lines"]["begin"] for i in issues],
                         [layer["index"] + 1 for layer in failing])
        self.assertEqual([i["check_name"] for i in issues], ["normdiff/drift"] * len(failing))
        worst = [i for i in issues if i["severity"] == "critical"]
        self.assertEqual(len(worst), 1)
        self.assertIn("#10 blocks.1.norm1", worst[0]["description"])
        self.assertIn(report["causes"][0]["summary"], worst[0]["description"])

    def test_gitlab_is_an_empty_array_where_all_agrees(self):
        reference, candidate = self.example("clean")
        self.assertEqual(run("-f", "gitlab", reference, candidate, status=0), "[]\n")

    def test_gitlab_fingerprints_outlive_figures_and_places(self):
        folders = [os.path.join(self.here, one) for one in "ab"]
        for folder in folders:
            os.mkdir(folder)
        one = self.issues(*pair(folders[0], ["x", "y", "z"], [0.5, 0.5, 0.5]), status=1)
        two = self.issues(*pair(folders[1], ["w", "x", "y", "z"], [0, 0.25, 0.75, 0.5]), status=1)
        self.assertEqual([i["fingerprint"] for i in one], [i["fingerprint"] for i in two])

    def test_gitlab_paths_are_inside_the_repository(self):
        pair(self.here, HOSTILE, [0.5] * len(HOSTILE))
        text = run("-f", "gitlab", "./gpu.dump", "./npu.dump", status=1, cwd=self.here)
        issues = json.loads(text)
        self.assertEqual({i["location"]["path"] for i in issues}, {"npu.dump"})
        self.assertEqual(len(issues), len(HOSTILE))
        self.assertIn(HOSTILE[0], issues[0]["description"])

    # steps and ranks

    def test_a_name_that_repeats_over_ranks_is_told_apart_everywhere(self):
        for side in ("gpu", "npu"):
            for rank in (0, 1):
                values = [1.0 + 0.5 * (side == "npu") * rank] * 4
                layers = [(name, "Linear", {"output.0": ("F64", [4], values)}) for name in ("a", "b")]
                write(self.here, "%s/step3/rank%d.dump" % (side, rank), normdiff_dump(layers))
        paths = [os.path.join(self.here, side) for side in ("gpu", "npu")]
        text = run(*paths, status=1)
        self.assertIn("#1  a (step 3, rank 1)  5.0e-01", text)
        self.assertRegex(text, r"# +step/rank +layer")
        self.assertRegex(text, r"(?m)^> +1 +3/1 +a ")
        page = self.check_page(run("-f", "html", *paths, status=1))
        self.assertIn("a (step 3, rank 1)", page.text())
        self.assertIn("a (step 3, rank 0)", page.text())
        commands, _ = self.commands(run("-f", "github", *paths, status=1))
        self.assertIn("#1 a (step 3, rank 1), ", commands[0][2])
        self.assertEqual(commands[1][1]["title"], "#3 b (step 3, rank 1)")
        issues = self.issues(*paths, status=1)
        self.assertEqual([i["description"].split(":")[0] for i in issues],
                         ["#1 a (step 3, rank 1)", "#3 b (step 3, rank 1)"])
        self.assertIn("| 1 | a (step 3, rank 1) | ", run("-f", "markdown", *paths, status=1))

    # trouble

    def test_trouble_writes_none_of_them_and_removes_older_ones(self):
        for name in ("html", "github", "gitlab"):
            path = os.path.join(self.here, name)
            write(self.here, name, "older")
            done = subprocess.run([TOOL, "-f", name, "-o", name + "=" + path, "/nowhere/a", "/nowhere/b"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stdout, b"")
            self.assertIn(b"/nowhere/a", done.stderr)
            self.assertFalse(os.path.exists(path), name)

    def test_two_runs_write_the_same_bytes(self):
        reference, candidate = self.example("eps")
        for name in ("html", "github", "gitlab"):
            self.assertEqual(run("-f", name, "-j1", reference, candidate), run("-f", name, "-j2", reference, candidate))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
