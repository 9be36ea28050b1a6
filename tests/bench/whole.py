#!/usr/bin/env python3
"""Whole-process speed of normdiff beside a plain read of the same files, cmp and numpy.

  whole.py NORMDIFF BENCH_READ [--bytes N] [--dir DIR]

Makes pairs of .npy files that differ by rounding, warms the page cache, and prints GB/s (both files
counted, best of five) and the ratio to the plain read with the same number of threads. Needs numpy.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROUNDS = 5


def best(command, codes=(0, 1)):
    least = 1e9
    for _ in range(ROUNDS):
        began = time.perf_counter()
        code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        least = min(least, time.perf_counter() - began)
        if code not in codes:
            sys.exit("%s: exit status %d" % (command[0], code))
    return least


NUMPY = """import sys, numpy as np
a, b = np.load(sys.argv[1], mmap_mode='r'), np.load(sys.argv[2], mmap_mode='r')
e = b.astype('f8') - a
print(np.abs(e).max(), np.sqrt((e * e).sum() / (a.astype('f8') ** 2).sum()))"""


def main():
    try:
        import numpy as np
    except ImportError:
        print("skipped: no numpy")
        return 77
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("read")
    parser.add_argument("--bytes", type=int, default=512 << 20, help="of each file")
    parser.add_argument("--dir")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="normdiff-bench-", dir=options.dir)
    random = np.random.default_rng(1)
    print("%-8s %-26s %8s %8s" % ("dtype", "what", "GB/s", "ratio"))
    try:
        for dtype in ("f4", "f2", "f8"):
            count = options.bytes // int(dtype[1])
            values = random.standard_normal(count, dtype="f4").astype(dtype)
            paths = [os.path.join(folder, side + ".npy") for side in ("gpu", "npu")]
            np.save(paths[0], values)
            values[::3] *= np.asarray(1 + 2.0 ** (-22 if dtype != "f2" else -10), dtype)
            np.save(paths[1], values)
            size = sum(os.path.getsize(path) for path in paths) / 1e9
            for threads in (1, 2):
                ceiling = float(subprocess.check_output([options.read, str(threads)] + paths))
                print("%-8s %-26s %8.2f" % (dtype, "plain read, %d thread%s" % (threads, "s" * (threads > 1)), ceiling))
                speed = size / best([options.tool, "-q", "-j", str(threads)] + paths)
                print("%-8s %-26s %8.2f %8.2f" % (dtype, "normdiff -j %d" % threads, speed, speed / ceiling))
            copy = os.path.join(folder, "copy.npy")
            shutil.copyfile(paths[0], copy)
            print("%-8s %-26s %8.2f" % (dtype, "cmp of equal files", size / best(["cmp", "-s", paths[0], copy])))
            print("%-8s %-26s %8.2f" % (dtype, "normdiff of equal files", size / best([options.tool, "-q", paths[0], copy])))
            os.remove(copy)
            mine = best([options.tool, "-q"] + paths)
            peer = best([sys.executable, "-c", NUMPY] + paths)
            print("%-8s %-26s %8.2f %8s" % (dtype, "numpy, two of the figures", size / peer, "1/%.0f" % (peer / mine)))
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
