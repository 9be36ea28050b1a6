#!/usr/bin/env python3
"""How time and memory grow: with tensors, with bytes, with threads; indexing, statistics, deflated members.

  growth.py NORMDIFF BENCH_INDEX BENCH_INFLATE [--dir DIR] [--large] [--msprobe PROGRAM]

Pairs are warm, times the best of five.  --large goes on to a pair of 20 GB, which needs that much room on the disk.
Needs numpy.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from common import best, head, line, peaks, rate, run, safetensors

MIB = 1 << 20


def pair(np, folder, count, elements):
    """Two files of `count` tensors; the bytes of a block that is drawn once."""
    random = np.random.default_rng(2)
    block = random.standard_normal(elements, dtype="f4").reshape(-1, 4)
    sides = [block.tobytes(), (block * np.float32(1 + 2.0 ** -22)).tobytes()]
    names = ["layers.%d.linear.output.0" % i for i in range(count)]
    paths = [os.path.join(folder, side) for side in ("gpu", "npu")]
    size = sum(safetensors(path, names, block.shape, lambda i, data=data: data) for path, data in zip(paths, sides))
    return paths, size


def by_tensors(tool, np, folder):
    head("tensors of 256 bytes", "ms", "us each", "anon MiB", "rss MiB")
    for count in (1, 10, 100, 1000, 10000, 100000):
        paths, _ = pair(np, folder, count, 64)
        took = best([tool, "-q"] + paths, rounds=3)
        anonymous, resident = peaks([tool, "-q"] + paths)
        line("%d tensors a side" % count, "%.1f" % (took * 1e3), "%.1f" % (took * 1e6 / count),
             "%.1f" % (anonymous / MIB), "%.1f" % (resident / MIB))


def by_bytes(tool, np, folder, large):
    head("bytes, float32, tensors of at most 512 MiB", "ms", "GB/s", "anon MiB", "rss MiB")
    sizes = [MIB, 16 * MIB, 128 * MIB, 1024 * MIB] + ([4096 * MIB, 20 * 1000 ** 3] if large else [])
    for size in sizes:
        half = size // 2
        count = max(1, half // (512 * MIB))
        paths, total = pair(np, folder, count, half // count // 16 * 4)
        took = best([tool, "-q"] + paths, rounds=3 if size < 4096 * MIB else 1)
        anonymous, resident = peaks([tool, "-q"] + paths)
        line("%.0f MB of both files" % (total / 1e6), "%.1f" % (took * 1e3), rate(total, took),
             "%.1f" % (anonymous / MIB), "%.1f" % (resident / MIB))
    for path in paths:
        os.remove(path)


def by_threads(tool, np, folder):
    processors = len(os.sched_getaffinity(0))
    head("threads", "one tensor", "64 tensors", "20000", "GB/s")
    cases = [(1, 64 * MIB), (64, MIB), (20000, 64)]
    for threads in sorted({1, 2, processors // 2, processors} - {0}):
        cells = []
        for count, elements in cases:
            paths, size = pair(np, folder, count, elements)
            cells.append(rate(size, best([tool, "-q", "-j", str(threads)] + paths, rounds=3)))
        line("-j %d" % threads, *cells)


def indexing(index, np, folder):
    head("opening and indexing, no values read", "ms", "tensors")
    paths, _ = pair(np, folder, 10000, 64)
    files = os.path.join(folder, "files")
    os.mkdir(files)
    for i in range(10000):
        np.save(os.path.join(files, "layer%d.npy" % i), np.zeros(64, "f4"))
    for what, path in (("one safetensors file", paths[0]), ("a folder of .npy files", files)):
        took, count = subprocess.check_output([index, path], text=True).split()
        line(what, took, count)
    shutil.rmtree(files)


def statistics_file(path, records, shift):
    """What msprobe writes in its statistics task: three tensors a record."""
    def tensor(i):
        return {"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4, 128, 768],
                "Max": 3.5 + i % 7 + shift, "Min": -3.25 - i % 5, "Mean": 1e-3 * (i % 11), "Norm": 400.0 + i % 13,
                "requires_grad": False}
    names = ("Torch.matmul", "Functional.layer_norm", "Functional.linear", "Tensor.__add__")
    data = {"%s.%d.forward" % (names[i % 4], i // 4): {"input_args": [tensor(i), tensor(i + 1)], "input_kwargs": {},
                                                      "output": [tensor(i + 2)]} for i in range(records)}
    os.makedirs(path)
    with open(os.path.join(path, "dump.json"), "w") as file:
        json.dump({"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data},
                  file, indent=1)
    for name in ("stack.json", "construct.json"):
        with open(os.path.join(path, name), "w") as file:
            file.write("{}")
    return os.path.getsize(os.path.join(path, "dump.json"))


def statistics(tool, index, folder, msprobe):
    head("statistics of msprobe, a pair", "ms", "index ms", "text MB", "anon/text")
    for records in (15000, 20000, 140000):
        roots = [os.path.join(folder, "%s%d" % (side, records)) for side in ("gpu", "npu")]
        size = sum(statistics_file(root, records, shift) for root, shift in zip(roots, (0, 1e-5)))
        took = best([tool, "-q"] + roots, rounds=3)
        opened = float(subprocess.check_output([index, roots[0]], text=True).split()[0])
        line("%d rows" % (3 * records), "%.0f" % (took * 1e3), "%.0f" % opened, "%.1f" % (size / 1e6),
             "%.1f" % (peaks([tool, "-q"] + roots)[0] / size))
        if records == 20000 and msprobe is not None:
            theirs = run([msprobe, "compare", "--golden_path", os.path.join(roots[0], "dump.json"), "--target_path",
                          os.path.join(roots[1], "dump.json"), "--output_path", os.path.join(folder, "out")])
            line("msprobe compare", "%.0f" % (theirs * 1e3), "", "", "1/%.0f" % (theirs / took))
        elif records == 20000:
            print("skipped: msprobe's compare (package mindstudio-probe)")


def deflated(tool, inflate, np, folder):
    head("deflated .npz beside zlib alone", "GB/s", "zlib", "ratio", "anon MiB")
    random = np.random.default_rng(3)
    for count in (1, 4, 64):
        values = {"layer%d" % i: random.standard_normal((32 << 20) // count, dtype="f4").astype("f2").astype("f4")
                  for i in range(count)}
        paths = [os.path.join(folder, side) for side in ("gpu.npz", "npu.npz")]
        np.savez_compressed(paths[0], **values)
        np.savez_compressed(paths[1], **{name: np.where(np.arange(v.size) % 7 == 0, v * np.float32(1 + 2.0 ** -22), v)
                                         for name, v in values.items()})
        size = 2 * sum(v.nbytes for v in values.values())
        for threads in (1, 2):
            mine = size / 1e9 / best([tool, "-q", "-j", str(threads)] + paths, rounds=3)
            alone = float(subprocess.check_output([inflate, str(threads)] + paths))
            anonymous = peaks([tool, "-q", "-j", str(threads)] + paths)[0]
            line("%d member%s, %d thread%s" % (count, "s" * (count > 1), threads, "s" * (threads > 1)), "%.2f" % mine,
                 "%.2f" % alone, "%.2f" % (mine / alone), "%.1f" % (anonymous / MIB))


def main():
    try:
        import numpy as np
    except ImportError:
        print("skipped: no numpy")
        return 77
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("index")
    parser.add_argument("inflate")
    parser.add_argument("--dir")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--msprobe")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="normdiff-bench-", dir=options.dir)
    try:
        indexing(options.index, np, folder)
        statistics(options.tool, options.index, folder, options.msprobe or shutil.which("msprobe"))
        by_tensors(options.tool, np, folder)
        by_threads(options.tool, np, folder)
        by_bytes(options.tool, np, folder, options.large)
        deflated(options.tool, options.inflate, np, folder)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
