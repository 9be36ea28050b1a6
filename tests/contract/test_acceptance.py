"""Corners of the contract: prints of NaN, selected slots, numbered calls, steps and ranks.

  python3 tests/contract/test_acceptance.py PATH_TO_NORMDIFF [unittest arguments]

Expected values are worked by hand from the definitions; dumps come from dumps.py.
"""
import json
import os
import sys
import unittest

import test_contract
from dumps import normdiff_dump, write
from test_contract import NAN, Case

ONE = ("F32", [2], [1.0, 2.0])
OTHER = ("F32", [2], [8.0, 9.0])


def layers(report, *keys):
    return [tuple(layer[key] for key in keys) for layer in report["layers"]]


class Prints(Case):
    def test_nan_printed_on_both_sides_agrees_unless_strict(self):
        text = "a: max=nan, mean=nan\nb: max=1.000000, mean=0.500000\n"
        report = self.compare(text, text, status=0)
        self.assertEqual(layers(report, "name", "fails"), [("a", None), ("b", None)])
        self.assertEqual((report["verdict"], report["coverage"]["tensors_compared"]), ("agree", 2))
        report = self.compare(text, text, "--nan", "strict", status=1)
        self.assertEqual(report["layers"][0]["fails"], "nonfinite")

    def test_a_printed_nan_agrees_with_values_that_hold_one(self):
        values = normdiff_dump([("a", "ReLU", {"output.0": ("F32", [3], [1.0, NAN, 2.0])})])
        nan = {"max": "nan", "min": "nan", "mean": "nan", "norm": "nan"}
        prints = normdiff_dump([("a", "ReLU", {"output.0": {"statistics": nan, "shape": [3], "dtype": "float32"}})])
        self.assertIsNone(self.compare(values, prints, status=0)["layers"][0]["fails"])

    def test_the_scale_is_the_largest_statistic_of_the_reference_alone(self):
        def dump(**statistics):
            slot = {"statistics": statistics, "shape": [4], "dtype": "float32"}
            return normdiff_dump([("a", "ReLU", {"output.0": slot})])
        # the candidate has no max; the difference of the means is 0.1, the scale the max, 10
        report = self.compare(dump(max=10.0, mean=1.0), dump(mean=1.1), status=0)
        self.assertAlmostEqual(report["layers"][0]["drift"], 0.01, delta=1e-12)

    def test_a_listing_tells_a_printed_nan_from_a_missing_statistic(self):
        path = write(self.dir, "a.log", "a: max=nan, mean=0.5\n")
        listing = json.loads(self.run_tool("--list", "-f", "json", path).stdout)
        statistics = listing["layers"][0]["slots"][0]["statistics"]
        self.assertEqual(statistics, {"max": "nan", "min": None, "mean": 0.5, "norm": None})


class Judging(Case):
    def test_strict_dtype_holds_for_integers_that_agree(self):
        report = self.tensors([1, 2, 3], [1, 2, 3], dtype="I32", other="I64", status=0)
        self.assertEqual(self.slot(report)["notes"], ["dtype_differs"])
        report = self.tensors([1, 2, 3], [1, 2, 3], "--strict-dtype", dtype="I32", other="I64", status=1)
        self.assertEqual(report["layers"][0]["fails"], "dtype")

    def test_a_slot_says_why_it_fails(self):
        slots = [{"output.0": ONE, "output.1": ONE}, {"output.0": ONE, "output.1": OTHER}]
        dumps = [normdiff_dump([("a", "Linear", s)]) for s in slots]
        report = self.compare(*dumps, status=1)
        self.assertEqual([s["fails"] for s in report["layers"][0]["slots"]], [None, "drift"])
        report = self.compare(*dumps, "--fail-on", "never", status=0)
        self.assertEqual([s["fails"] for s in report["layers"][0]["slots"]], [None, None])

    def test_a_slot_undefined_on_either_side_is_skipped_as_such(self):
        plain = normdiff_dump([("a", "Empty", {"output.0": ONE}), ("b", "ReLU", {"output.0": ONE})])
        undefined = normdiff_dump([("a", "Empty", {"output.0": {"tensor": OTHER, "undefined": True}}),
                                   ("b", "ReLU", {"output.0": ONE})])
        for pair in ((plain, undefined), (undefined, plain)):
            report = self.compare(*pair, status=0)
            self.assertEqual([s["name"] for s in report["coverage"]["skipped"]], ["a.output.0"])
        without = normdiff_dump([("a", "Empty", {"input.0": ONE}), ("b", "ReLU", {"output.0": ONE})])
        report = self.compare(undefined, without, status=0)
        self.assertEqual([s["name"] for s in report["coverage"]["skipped"]], ["a.output.0"])

    def test_integers_one_step_apart_after_a_quantising_operator_are_elevated(self):
        def dump(kind, last):
            return normdiff_dump([("q", kind, {"output.0": ("I8", [4], [1, 2, 3, last])})])
        for kind, last, tier, fails in (("AscendQuantV2", 5, "elevated", None),
                                        ("AscendQuantV2", 6, "fault", "integer"),
                                        ("AscendDequant", 5, "fault", "integer"), ("Linear", 5, "fault", "integer")):
            report = self.compare(dump(kind, 4), dump(kind, last))
            self.assertEqual(layers(report, "tier", "fails"), [(tier, fails)], kind)
        self.compare(dump("quantize_per_tensor", 4), dump("quantize_per_tensor", 5), "--fail-on", "any", status=1)

    def test_memory_that_nobody_wrote_is_skipped_by_its_operator(self):
        def dump(values):
            return normdiff_dump([("buffer", "torch.empty_like", {"output.0": values}),
                                  ("fc", "Linear", {"output.0": ONE})])
        report = self.compare(dump(ONE), dump(OTHER), status=0)
        self.assertEqual([s["name"] for s in report["coverage"]["skipped"]], ["buffer.output.0"])

    def test_what_comes_from_a_partial_dump_carries_the_note(self):
        part, whole = (normdiff_dump([("a", "ReLU", {"output.0": ONE})], complete=c) for c in (False, True))
        self.assertIn("partial_dump", self.slot(self.compare(part, whole, status=0))["notes"])
        self.assertNotIn("partial_dump", self.slot(self.compare(whole, whole, status=0))["notes"])


class Choosing(Case):
    def test_layers_without_a_chosen_slot_are_left_out(self):
        def dump(output):
            return normdiff_dump([("fc", "Linear", {"output.0": output, "param.weight": ONE}),
                                  ("act", "ReLU", {"output.0": output})])
        report = self.compare(dump(ONE), dump(OTHER), "--slots", "param", status=0)
        self.assertEqual((layers(report, "name", "tier"), report["coverage"]["excluded"]), ([("fc", "exact")], 1))
        self.compare(dump(ONE), dump(ONE), "--slots", "nothing", status=2)

    def test_two_layers_alone_are_a_lone_pair_even_of_one_type(self):
        a, b = (normdiff_dump([(name, "Linear", {"output.0": ONE})]) for name in ("fc", "head"))
        self.assertEqual(layers(self.compare(a, b, status=0), "candidate_name", "matched_by"), [("head", "lone")])

    def calls(self, *calls):
        return normdiff_dump([("fc", "Linear", {"output.0": ("F32", [2], [float(value)] * 2)}, {},
                               {"call": number, "recompute": recompute})
                              for number, value, recompute in calls])

    def test_recomputed_calls_are_taken_out_before_calls_are_numbered(self):
        plain = self.calls((0, 1, False), (1, 2, False), (2, 3, False))
        recomputed = self.calls((0, 1, False), (1, 9, True), (2, 2, False), (3, 3, False))
        for pair in ((plain, recomputed), (recomputed, plain)):
            self.assertEqual(layers(self.compare(*pair, status=0), "tier"), [("exact",)] * 3)


class StepsAndRanks(Case):
    def dump(self, **record):
        return normdiff_dump([("a", "Linear", {"output.0": ONE})], **record)

    def test_a_lone_file_keeps_its_step_and_rank(self):
        pair = self.dump(step=3, rank=1), self.dump(step=3, rank=1)
        self.assertEqual(layers(self.compare(*pair, status=0), "step", "rank"), [(3, 1)])
        self.compare(*pair, "--step", "3", status=0)
        self.compare(*pair, "--step", "4", status=2)

    def test_lone_files_are_a_pair_whatever_their_numbers(self):
        report = self.compare(self.dump(step=3), self.dump(step=5), status=0)
        self.assertEqual(layers(report, "step", "matched_by"), [(3, "exact")])

    def test_a_broken_file_of_a_tree_is_named_with_its_reason(self):
        for side in ("ref", "cand"):
            for step in (0, 1):
                write(self.dir, "%s/step%d/rank0.dump" % (side, step), self.dump(step=step, rank=0))
        write(self.dir, "cand/step1/rank0.dump", self.dump(step=1, rank=0)[:40])
        paths = [os.path.join(self.dir, side) for side in ("ref", "cand")]
        done = self.run_tool("-f", "json", *paths)
        report = json.loads(done.stdout)
        self.assertEqual((done.returncode, report["verdict"]), (1, "incomplete"))
        self.assertEqual(layers(report, "step", "fails"), [(0, None), (1, "missing")])
        self.assertIn("40", report["coverage"]["skipped"][0]["reason"])  # the file's length


if __name__ == "__main__":
    test_contract.TOOL = sys.argv.pop(1)
    unittest.main()
