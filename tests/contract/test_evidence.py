"""What dumps beside the pair change: second runs, a golden run, float32 runs.

  python3 tests/contract/test_evidence.py PATH_TO_NORMDIFF [unittest arguments]

Expected numbers are worked by hand from the definitions; dumps come from dumps.py.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from dumps import normdiff_dump, write

TOOL = ""
COUNT = 64
# Fractions that fill a float32's significand: rounder numbers would look computed in half precision.
X = [1 + i * 0.6180339887 % 1 for i in range(COUNT)]
Y = [2 - i * 0.7548776662 % 1 for i in range(COUNT)]


def moved(values, share):
    """Each value off by this share of itself, up and down in turn: drift = share."""
    return [v * (1 + (share if i % 2 else -share)) for i, v in enumerate(values)]


def run(y, x=None, dtype="F32", after=None):
    """A run of two layers: the first hands x on, the second makes y of it."""
    def t(v):
        return (dtype, (8, 8), v)
    x = X if x is None else x
    layers = [("first", "Linear", {"output.0": t(x)}),
              ("second", "Linear", {"input.0": t(x), "output.0": t(y)})]
    if after is not None:
        layers.append(("third", "Linear", {"input.0": t(y), "output.0": t(after)}))
    return normdiff_dump(layers)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="normdiff-evidence-")
        self.addCleanup(shutil.rmtree, self.dir)

    def compare(self, reference, candidate, status=None, options=(), **beside):
        paths = [write(self.dir, "reference.dump", reference), write(self.dir, "candidate.dump", candidate)]
        for name, content in beside.items():
            option = "--" + name.replace("_", "-")
            paths[:0] = [option, write(self.dir, name + ".dump", content)]
        done = subprocess.run([TOOL, "-f", "json", *options, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"))
        self.assertIn(done.returncode, (0, 1), done.stderr.decode())
        report = json.loads(done.stdout)
        self.assertEqual(report["exit_code"], done.returncode)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout.decode())
        return report

    def step(self, report, name):
        return next(s for s in report["steps"] if s["id"] == name)

    def layer(self, report, name):
        return next(one for one in report["layers"] if one["name"] == name)

    def says(self, step, number):
        """The step's evidence holds this number, to a thousandth."""
        found = re.findall(r"[0-9]+(?:[.][0-9]+)?(?:e[-+][0-9]+)?", step["evidence"])
        return any(abs(float(text) / number - 1) < 1e-3 for text in found)

    def finding(self, report, name):
        return next(f for f in report["checklist"] if f["id"] == name)


class Reruns(Case):
    def test_without_a_second_run_the_step_is_open_and_says_what_to_run(self):
        step = self.step(self.compare(run(Y), run(moved(Y, 2 ** -8))), "randomness")
        self.assertEqual(step["status"], "open")
        self.assertEqual(step["argv"][0], "normdiff")
        self.assertIn("--rerun-candidate", step["argv"])

    def test_equal_reruns_settle_the_step(self):
        y = moved(Y, 2 ** -8)
        report = self.compare(run(Y), run(y), rerun_candidate=run(y))
        step = self.step(report, "randomness")
        self.assertEqual((step["status"], step["argv"]), ("done", []))
        self.assertIn("candidate", step["evidence"])
        self.assertIn("2 layers", step["evidence"])
        self.assertEqual(report["first"]["origin"]["layer"], "second")
        self.assertEqual(self.finding(report, "randomness")["status"], "ok")

    def test_both_sides_may_have_been_run_again(self):
        report = self.compare(run(Y), run(Y), rerun_candidate=run(Y), rerun_reference=run(Y))
        self.assertEqual(self.step(report, "randomness")["status"], "done")
        self.assertIn("both sides", self.step(report, "randomness")["evidence"])

    def test_one_side_that_does_not_repeat_itself_leaves_the_step_open(self):
        report = self.compare(run(Y), run(Y), rerun_candidate=run(Y), rerun_reference=run(moved(Y, 2 ** -10)))
        step = self.step(report, "randomness")
        self.assertEqual(step["status"], "open")
        self.assertIn("--rerun-reference", step["argv"])
        for word in ("reference", "second"):
            self.assertIn(word, step["evidence"])
        self.assertTrue(self.says(step, 2 ** -10), step["evidence"])

    def test_a_layer_no_further_off_than_its_own_reruns_is_no_origin(self):
        reference, candidate = run(Y), run(moved(Y, 2 ** -12))
        report = self.compare(reference, candidate)
        self.assertEqual(report["first"]["origin"]["layer"], "second")
        report = self.compare(reference, candidate, rerun_candidate=run(moved(Y, 2 ** -11)))
        self.assertIsNone(report["first"]["origin"])
        self.assertNotEqual(self.layer(report, "second")["role"], "origin")
        self.assertEqual(self.step(report, "randomness")["status"], "open")

    def test_noise_far_below_the_drift_does_not_clear_the_layer(self):
        y = moved(Y, 2 ** -8)
        nearly = [v * (1 + 2 ** -20) for v in y]
        report = self.compare(run(Y), run(y), rerun_candidate=run(nearly))
        self.assertEqual(report["first"]["origin"]["layer"], "second")
        self.assertEqual(self.finding(report, "randomness")["status"], "suspect")

    def test_noise_of_a_layer_clears_no_other_layer(self):
        after = moved(X, 2 ** -9)
        report = self.compare(run(Y, after=X), run(moved(Y, 2 ** -12), after=after),
                              rerun_candidate=run(moved(Y, 2 ** -11), after=after))
        self.assertEqual(report["first"]["origin"]["layer"], "third")

    def test_a_side_that_draws_random_numbers_is_named(self):
        report = self.compare(run(Y), run(moved(Y, 2 ** -5)), rerun_candidate=run(moved(Y, -2 ** -5)))
        self.assertIsNone(report["first"]["origin"])
        self.assertEqual(report["first_divergence"]["layer"], "second")
        causes = {cause["id"]: cause for cause in report["causes"]}
        self.assertIn("random_source", causes)
        self.assertEqual(causes["random_source"]["status"], "supported")
        self.assertEqual(causes["random_source"]["side"], "candidate")
        self.assertEqual(self.finding(report, "randomness")["status"], "mismatch")


class Golden(Case):
    def test_a_candidate_nearer_to_golden_than_the_reference_is_cleared(self):
        golden = run(Y, dtype="F64")
        reference, candidate = run(moved(Y, 2 ** -2)), run(moved(Y, 2 ** -6))
        self.assertEqual(self.layer(self.compare(reference, candidate, status=1), "second")["fails"], "drift")
        report = self.compare(reference, candidate, status=0, golden=golden)
        second = self.layer(report, "second")
        self.assertEqual((second["tier"], second["fails"]), ("fault", None))
        self.assertEqual(report["first"]["fault"]["layer"], "second")
        step = self.step(report, "layers")
        self.assertTrue(self.says(step, 2 ** -2) and self.says(step, 2 ** -6), step["evidence"])

    def test_a_candidate_far_from_golden_is_not_cleared(self):
        report = self.compare(run(Y), run(moved(Y, 2 ** -2)), status=1, golden=run(Y, dtype="F64"))
        self.assertEqual(self.layer(report, "second")["fails"], "drift")

    def test_few_elements_may_be_eight_times_as_far_off(self):
        # 64 elements: k is 8; the two errors against golden are 2^-5 and 2^-2, and 2^-5 and 3/8
        near = self.compare(run(moved(Y, 2 ** -5)), run(moved(Y, -2 ** -2)), golden=run(Y, dtype="F64"))
        self.assertIsNone(self.layer(near, "second")["fails"])
        far = self.compare(run(moved(Y, 2 ** -5)), run(moved(Y, -0.375)), golden=run(Y, dtype="F64"))
        self.assertEqual(self.layer(far, "second")["fails"], "drift")

    def test_a_layer_that_golden_lacks_is_judged_as_ever(self):
        golden = normdiff_dump([("first", "Linear", {"output.0": ("F64", (8, 8), X)})])
        report = self.compare(run(moved(Y, 2 ** -2)), run(Y), status=1, golden=golden)
        self.assertEqual(self.layer(report, "second")["fails"], "drift")


class Float32(Case):
    HALF = dict(reference=run(Y, dtype="F16"), candidate=run(moved(Y, 2 ** -4), dtype="F16"))

    def test_half_precision_leaves_the_step_open(self):
        step = self.step(self.compare(**self.HALF), "fp32")
        self.assertEqual(step["status"], "open")
        self.assertIn("normdiff", step["argv"])

    def test_agreement_in_float32_means_mixed_precision(self):
        step = self.step(self.compare(**self.HALF, fp32_reference=run(Y), fp32_candidate=run(moved(Y, 2 ** -22))), "fp32")
        self.assertEqual(step["status"], "done")
        self.assertIn("mixed precision is the cause", step["evidence"])

    def test_disagreement_in_float32_means_an_operator(self):
        step = self.step(self.compare(**self.HALF, fp32_reference=run(Y), fp32_candidate=run(moved(Y, 2 ** -4))), "fp32")
        self.assertEqual(step["status"], "failed")
        for word in ("second", "operator"):
            self.assertIn(word, step["evidence"])
        self.assertEqual([os.path.basename(a) for a in step["argv"]],
                         ["normdiff", "fp32_reference.dump", "fp32_candidate.dump"])

    def test_a_side_without_a_float32_run_stands_for_itself(self):
        step = self.step(self.compare(run(Y), run(moved(Y, 2 ** -4), dtype="F16"), fp32_candidate=run(Y)), "fp32")
        self.assertEqual(step["status"], "done")


if __name__ == "__main__":
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
