#!/usr/bin/env python3
"""Scores the diagnosis on pairs of dumps with at most one fault, and the truth.

  run.py --tool NORMDIFF [--pairs N] [--seed S] [--kinds a,b] [--arch x,y] [--levels 1,2,3]
         [--jobs N] [--keep DIR] [--results FILE] [-v] [CASE_DIR...]

Without CASE_DIRs it makes the pairs itself, the same for the same seed: all kinds of gen.py in
fp32, bf16 and fp16, clean ones and faults outside the catalogue among them, a fourth with the
reference as the faulty side.  A kind and a seed make the same pair again, alone: --kinds eps
--seed 700123 --pairs 1.  Level 1 has outputs only, level 2 adds inputs, level 3 adds
parameters and attributes.  --keep saves the pairs that went wrong, --results every verdict.
Exit status 0 if every bar of score.py is reached, 1 if not, 77 if torch is missing.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

for needed in ('numpy', 'torch', 'torchvision'):
    if importlib.util.find_spec(needed) is None:
        print('skipped: no %s for %s' % (needed, sys.executable))
        sys.exit(77)

from eps_truth import EpsReport, relative_sigma
from gen import make_case, parse_kinds, split
from kinds import CATALOGUE, CLEAN, FOREIGN, LATER
from score import Table, Verdict, is_counted
from to_dump import convert, load

# Of 100 pairs; the rest are faults of the catalogue.
SHARES = {'clean': 16, 'later': 20, 'foreign': 9}


def plan(pairs, seed, kinds):
    """(seed, kind): kinds in turn, each with its share."""
    if kinds:
        groups = [(kinds, pairs)]
    else:
        later = [k for k in LATER if k not in CLEAN]
        faults = [k for k in CATALOGUE if k not in CLEAN]
        counts = {key: -(-pairs * share // 100) for key, share in SHARES.items()}
        # Half of the clean pairs are plain ones, half have something unusual.
        clean = [k for other in CLEAN if other != 'clean' for k in ('clean', other)]
        groups = [(clean, counts['clean']), (later, counts['later']),
                  (list(FOREIGN), counts['foreign']),
                  (faults, max(0, pairs - sum(counts.values())))]
    jobs = []
    for names, count in groups:
        for i in range(count):
            jobs.append((seed + len(jobs), names[i % len(names)]))
    return jobs


def is_swapped(seed):
    """A fourth of the pairs has the faulty run as the reference."""
    return random.Random('swap %d' % seed).random() < .25


def run_tool(tool, folder):
    done = subprocess.run([tool, os.path.join(folder, 'gpu.dump'),
                           os.path.join(folder, 'npu.dump'), '-f', 'json', '--fail-on', 'never',
                           '--jobs', '1'], check=False, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError('%s: exit %d: %s' % (folder, done.returncode, done.stderr.decode()))
    return json.loads(done.stdout)


def score_level(args, case, name, level, swap):
    with tempfile.TemporaryDirectory() as folder:
        truth = convert(case, level, folder, swap)
        report = run_tool(args.tool, folder)
        verdict = Verdict(truth, level, report)
        wrong = verdict.found if verdict.is_clean else not verdict.top1 \
            and is_counted(truth, level)
        if args.keep and wrong:
            target = os.path.join(args.keep, '%s-level%d' % (name, level))
            shutil.copytree(folder, target, dirs_exist_ok=True)
    eps = None
    if truth['kind'] in ('eps', 'different_argument') and verdict.right_layer:
        eps = EpsReport(truth, level, report, relative_sigma(case))
    return verdict, eps


def score_job(args, job):
    if isinstance(job, str):
        case, name, swap = load(job), os.path.basename(os.path.normpath(job)), False
    else:
        seed, kind = job
        name, swap = '%s-%d' % (kind, seed), is_swapped(seed)
        try:
            case = make_case(seed, [kind], args.arch)
        except RuntimeError:
            if not args.arch:
                raise
            return []                    # no layer of this architecture can carry the kind
    return [score_level(args, case, name, level, swap) for level in args.levels]


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--tool', required=True)
    parser.add_argument('--convert', help=argparse.SUPPRESS)  # once the converter's path
    parser.add_argument('--pairs', type=int, default=660)
    parser.add_argument('--seed', type=int, default=700000)
    parser.add_argument('--kinds')
    parser.add_argument('--arch')
    parser.add_argument('--levels', default='1,2,3')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--keep')
    parser.add_argument('--results')
    parser.add_argument('-v', '--verbose', action='store_true')
    parser.add_argument('cases', nargs='*')
    args = parser.parse_args()
    args.levels = [int(level) for level in args.levels.split(',')]
    args.arch = split(args.arch)
    args.kinds = parse_kinds(parser, args.kinds)
    return args


def write_results(path, table):
    with open(path, 'w', encoding='utf-8') as f:
        for v in table.verdicts:
            json.dump({key: value for key, value in vars(v).items()}, f)
            f.write('\n')


def main():
    args = parse_args()
    jobs = args.cases or plan(args.pairs, args.seed, args.kinds)
    table = Table()
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        pending = [pool.submit(score_job, args, job) for job in jobs]
        for done in pending:
            for verdict, eps in done.result():
                table.add(verdict, eps)
    table.print(args.levels, args.verbose)
    if args.results:
        write_results(args.results, table)
    missed = table.missed(args.levels)
    for line in missed:
        print('missed: %s' % line)
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())
