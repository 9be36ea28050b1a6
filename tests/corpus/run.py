#!/usr/bin/env python3
"""Score the diagnosis on a fault corpus: pairs of dumps with at most one fault, and the truth.

  run.py --tool NORMDIFF --convert TO_DUMP.PY [--levels 1,2,3] [--jobs N] [-v] CASE_DIR...

A case directory holds truth.json and what TO_DUMP.PY turns into gpu.dump and npu.dump.
Level 1 has outputs only, level 2 adds inputs, level 3 adds parameters and attributes.
Exit status 1 if a bar is missed: no alarm on a clean pair; the right layer in 98 % of the
visible faults of normalisation layers at levels 2 and 3; eps within 1 % where the report
calls it measured.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

# The corpus's names and the causes that the report names.
CAUSES = {
    "out_rounded": "dtype_effective", "weight_differs": "different_weights",
    "ex2_minus_mean2": "cancellation", "unbiased_var": "unbiased_variance",
    "global_dtype": "dtype_global", "global_matmul": "matmul_lowp",
    "matmul_acc_fp16": "matmul_lowp", "hw_transposed": "transposed", "nhwc_as_nchw": "layout",
    "tail_zero": "tail_not_written", "tail_stale": "tail_not_written", "dropout_on": "dropout",
    "gelu_variant": "activation_variant", "naninf": "nonfinite",
    "row_permuted": "batch_permuted", "attn_scale": "attention_scale",
    "mask_wrong": "attention_mask",
}
NORM_KINDS = {
    "eps", "eps_outside_sqrt", "unbiased_var", "mean_not_subtracted", "weight_dropped",
    "one_plus_weight", "running_vs_batch", "norm_internal_lowp", "cast_before_weight",
    "ex2_minus_mean2", "sumsq_overflow", "padding_counted", "wrong_axis", "wrong_groups",
}
ALWAYS_VISIBLE = {"clean", "global_dtype", "global_matmul", "different_input", "momentum",
                  "naninf", "mask_wrong"}
FLOOR = {"fp32": 1.2e-7, "bf16": 1.7e-3, "fp16": 2.1e-4}


def is_visible(truth):
    if truth["kind"] in ALWAYS_VISIBLE:
        return True
    noise = max(truth.get("noise_rel_l2", 0), FLOOR[truth["dtype"]])
    return truth.get("effect_rel_l2", 0) > 4 * noise


def run_case(tool, convert, case, level):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-B", convert, case, "--level", str(level), "--out", folder],
                       check=True, stdout=subprocess.DEVNULL)
        dumps = os.path.join(folder, os.path.basename(os.path.normpath(case)))
        done = subprocess.run([tool, os.path.join(dumps, "gpu.dump"),
                               os.path.join(dumps, "npu.dump"), "-f", "json",
                               "--fail-on", "never", "--jobs", "1"],
                              check=False, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError("%s level %d: exit %d: %s" % (case, level, done.returncode,
                                                         done.stderr.decode()))
    with open(os.path.join(case, "truth.json"), encoding="utf-8") as stream:
        truth = json.load(stream)
    return case, level, truth, json.loads(done.stdout)


class Score:
    def __init__(self, verbose):
        self.verbose = verbose
        self.rows = collections.defaultdict(lambda: [0, 0, 0, 0])
        self.alarms = []
        self.missed = []
        self.eps = []

    def add(self, case, level, truth, report):
        first = report["first_divergence"]
        at = None if first is None or first["role"] == "first_over" else first["index"]
        kind = truth["kind"]
        if kind == "clean":
            self.rows[level, kind][0] += 1
            if first is not None:
                self.alarms.append((case, level, first["layer"], first["role"]))
            return
        if not is_visible(truth) or (kind == "momentum" and level < 3):
            return
        row = self.rows[level, kind]
        right = at == truth["layer_idx"]
        top = report["causes"][0]["id"] if report["causes"] else None
        row[0] += 1
        row[1] += at is not None
        row[2] += right
        row[3] += right and top == CAUSES.get(kind, kind)
        if not right:
            self.missed.append((case, level, kind, truth["type"], truth["dtype"], at,
                                truth["layer_idx"]))
        elif self.verbose and top != CAUSES.get(kind, kind):
            print("%s level %d: %s %s %s: cause %s" % (case, level, kind, truth["type"],
                                                       truth["dtype"], top))
        if kind == "eps" and right:
            self.add_eps(case, level, truth, report)

    def add_eps(self, case, level, truth, report):
        line = next((f for f in report["checklist"] if f["id"] == "eps"), None)
        text = line and line["recovered"]["candidate"]
        if text and not text.startswith("<"):
            self.eps.append((abs(float(text) / truth["params"]["eps"] - 1), case, level))

    def share(self, level, column, kinds=None):
        rows = [row for (at, kind), row in self.rows.items()
                if at == level and kind != "clean" and (kinds is None or kind in kinds)]
        total = sum(row[0] for row in rows)
        return 100.0 * sum(row[column] for row in rows) / total if total else 100.0

    def print(self, levels):
        for level in levels:
            print("level %d                      cases  found  right layer  right cause" % level)
            for (at, kind), row in sorted(self.rows.items()):
                if at == level:
                    print("  %-24s %6d %6d %12d %12d" % (kind, *row))
            print("  all faults: right layer %.1f %%, right cause %.1f %%; of norms %.1f %%, %.1f %%"
                  % (self.share(level, 2), self.share(level, 3),
                     self.share(level, 2, NORM_KINDS), self.share(level, 3, NORM_KINDS)))
        for line in self.missed + [("alarm",) + alarm for alarm in self.alarms]:
            print(*line)
        for error, case, level in self.eps:
            if error > 0.01:
                print("eps off by %.2g: %s level %d" % (error, case, level))

    def is_good(self, levels):
        return (not self.alarms and all(error <= 0.01 for error, _, _ in self.eps)
                and all(self.share(level, 2, NORM_KINDS) >= 98 for level in levels if level > 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--convert", required=True)
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("cases", nargs="+")
    args = parser.parse_args()
    levels = [int(level) for level in args.levels.split(",")]
    score = Score(args.verbose)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(run_case, args.tool, args.convert, case, level)
                for case in args.cases for level in levels]
        for job in jobs:
            score.add(*job.result())
    score.print(levels)
    return 0 if score.is_good(levels) else 1


if __name__ == "__main__":
    sys.exit(main())
