#!/usr/bin/env python3
"""What the diagnosis costs beside comparing, on a transformer's dumps with inputs.

  diagnosis.py BENCH_DIAGNOSIS [--dir DIR] [--quick | --large]

Pairs that agree but for float noise, and pairs with one fault in the middle block; warm, the least of a few runs.  Times
are of all threads' processors, which a busy machine changes little; `clock` is what a user waits for.  --large goes on
to a pair of 11 GB, which needs 17 GB of disk and as much memory as the pair to be warm.  Needs torch.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from common import head, line

WHAT = {"none": "float noise", "eps": "wrong eps", "gelu": "GELU by tanh", "half": "float16 operands"}
PLAN = {"40 MB": ("none", "eps", "gelu", "half"), "400 MB": ("none", "eps", "gelu", "half"), "10 GB": ("none", "eps")}


def least(command, rounds):
    """Of each of the four figures by itself: processors' and clock's ms of comparing and of the diagnosis."""
    runs = [[float(x) for x in subprocess.check_output(command, text=True).split()] for _ in range(rounds)]
    return [min(column) for column in zip(*runs)]


def warm(paths):
    for path in paths:
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass


def measure(program, folder, size, transformer):
    for fault in PLAN[size]:
        paths = transformer.write(folder, size, fault)
        total = sum(os.path.getsize(path) for path in paths)
        warm(paths)
        for threads in sorted({1, min(2, len(os.sched_getaffinity(0)))}):
            compared, diagnosed, _, waited = least([program, str(threads)] + paths, 5 if total < 1e9 else 2)
            line("%.0f MB, %s, -j %d" % (total / 1e6, WHAT[fault], threads), "%.0f" % compared, "%.0f" % diagnosed,
                 "%.2f" % (diagnosed / compared), "%.0f" % waited)
        os.remove(paths[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--dir")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    head("diagnosis beside comparing, a transformer with inputs", "compare ms", "diagnose ms", "ratio", "clock ms")
    try:
        import transformer
    except ImportError:
        print("skipped: no torch for %s" % sys.executable)
        return 0
    folder = tempfile.mkdtemp(prefix="normdiff-bench-", dir=options.dir)
    try:
        for size in ["40 MB"] + ["400 MB"] * (not options.quick) + ["10 GB"] * options.large:
            measure(options.program, os.path.join(folder, size.replace(" ", "")), size, transformer)
            shutil.rmtree(os.path.join(folder, size.replace(" ", "")))
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
