#!/usr/bin/env python3
"""Whole-process speed of normdiff beside a plain read of the same files, and beside cmp, numpy, h5diff and msprobe.

  whole.py NORMDIFF BENCH_READ [--bytes N] [--dir DIR] [--msprobe PROGRAM]

Makes pairs of .npy files that differ by rounding, warms the page cache, and prints GB/s (both files counted, best of
five) and the ratio to the plain read with the same number of threads, or to the peer.  Needs numpy.  A peer that is not
here is said to be skipped; msprobe is looked for in PATH.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from common import best, head, line, rate, run

NUMPY = """import sys, numpy as np
a, b = np.load(sys.argv[1], mmap_mode='r'), np.load(sys.argv[2], mmap_mode='r')
e = b.astype('f8') - a
print(np.abs(e).max(), np.sqrt((e * e).sum() / (a.astype('f8') ** 2).sum()))"""


def compared(size, mine, what, seconds):
    line(what, rate(size, seconds), "1/%.1f" % (seconds / mine))


def peer_h5diff(folder, values, size, mine):
    try:
        import h5py
    except ImportError:
        h5py = None
    if h5py is None or shutil.which("h5diff") is None:
        return print("skipped: h5diff (it needs hdf5-tools and python3-h5py)")
    paths = [os.path.join(folder, "%d.h5" % side) for side in range(2)]
    for path, array in zip(paths, values):
        with h5py.File(path, "w") as file:
            file.create_dataset("output", data=array)
    compared(size, mine, "h5diff -p 1e-3", best(["h5diff", "-q", "-p", "1e-3"] + paths, rounds=2))


def peer_msprobe(options, folder, paths, size):
    program = options.msprobe or shutil.which("msprobe")
    python = None if program is None else os.path.join(os.path.dirname(program), "python3")
    if python is None or not os.path.exists(python):
        return print("skipped: msprobe's compare (package mindstudio-probe, in a virtual environment)")
    roots = [os.path.join(folder, side) for side in ("gpu", "npu")]
    for path, root in zip(paths, roots):
        run([python, os.path.join(os.path.dirname(__file__), "msprobe_tree.py"), path, root], codes=(0,))
    mine = best([options.tool, "-q"] + roots)
    line("normdiff of msprobe's trees", rate(size, mine))
    theirs = run([program, "compare", "--golden_path", os.path.join(roots[0], "dump.json"), "--target_path",
                  os.path.join(roots[1], "dump.json"), "--output_path", os.path.join(folder, "out")])
    compared(size, mine, "msprobe compare", theirs)


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
    parser.add_argument("--msprobe")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="normdiff-bench-", dir=options.dir)
    random = np.random.default_rng(1)
    processors = len(os.sched_getaffinity(0))
    try:
        for dtype in ("f4", "f2", "f8"):
            head("whole process, float%d" % (8 * int(dtype[1])), "GB/s", "ratio")
            count = options.bytes // int(dtype[1])
            values = random.standard_normal(count, dtype="f4").astype(dtype)
            paths = [os.path.join(folder, side + ".npy") for side in ("gpu", "npu")]
            np.save(paths[0], values)
            values[::3] *= np.asarray(1 + 2.0 ** (-22 if dtype != "f2" else -10), dtype)
            np.save(paths[1], values)
            size = sum(os.path.getsize(path) for path in paths)
            for threads in sorted({1, 2, processors}):
                ceiling = float(subprocess.check_output([options.read, str(threads)] + paths))
                line("plain read, %d thread%s" % (threads, "s" * (threads > 1)), "%.2f" % ceiling)
                speed = size / 1e9 / best([options.tool, "-q", "-j", str(threads)] + paths)
                line("normdiff -j %d" % threads, "%.2f" % speed, "%.2f" % (speed / ceiling))
            copy = os.path.join(folder, "copy.npy")
            shutil.copyfile(paths[0], copy)
            equal = best([options.tool, "-q", paths[0], copy])
            line("normdiff of equal files", rate(size, equal))
            compared(size, equal, "cmp of equal files", best(["cmp", "-s", paths[0], copy]))
            os.remove(copy)
            mine = best([options.tool, "-q"] + paths)
            compared(size, mine, "numpy, two of the figures", best([sys.executable, "-c", NUMPY] + paths))
            if dtype == "f4":
                small = [np.load(path, mmap_mode="r")[:count // 4] for path in paths]
                part = [os.path.join(folder, "part%d.npy" % side) for side in range(2)]
                for path, array in zip(part, small):
                    np.save(path, array)
                part_size = 2 * small[0].nbytes
                peer_h5diff(folder, small, part_size, best([options.tool, "-q"] + part))
                peer_msprobe(options, folder, part, part_size)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
