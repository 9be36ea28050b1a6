"""What the bench programs share: running a command, its least time, its memory, and dumps to compare."""
import json
import os
import re
import struct
import subprocess
import sys
import time

ROUNDS = 5


def run(command, codes=(0, 1)):
    """Seconds of one run."""
    began = time.perf_counter()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    took = time.perf_counter() - began
    if code not in codes:
        sys.exit("%s: exit status %d" % (" ".join(command), code))
    return took


def best(command, codes=(0, 1), rounds=ROUNDS):
    return min(run(command, codes) for _ in range(rounds))


def peaks(command):
    """Bytes that were anonymous, and bytes resident, at the most (sampled each millisecond)."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    anonymous = resident = 0
    while child.poll() is None:
        try:
            with open("/proc/%d/status" % child.pid) as file:
                text = file.read()
        except (FileNotFoundError, ProcessLookupError):
            break
        for name, value in re.findall(r"(RssAnon|VmHWM):\s+(\d+) kB", text):
            if name == "RssAnon":
                anonymous = max(anonymous, int(value) << 10)
            else:
                resident = max(resident, int(value) << 10)
        time.sleep(0.001)
    child.wait()
    return anonymous, resident


def line(what, *cells):
    print("%-44s" % what + "".join("%12s" % cell for cell in cells), flush=True)


def head(title, *cells):
    print("== " + title)
    line("", *cells)


def rate(size, seconds):
    return "%.2f" % (size / seconds / 1e9)


def safetensors(path, names, shape, values):
    """A file of float32 tensors of one shape; values(i) are the bytes of the i-th."""
    size = 4
    for dim in shape:
        size *= dim
    entries = {name: {"dtype": "F32", "shape": list(shape), "data_offsets": [i * size, (i + 1) * size]}
               for i, name in enumerate(names)}
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in range(len(names)):
            file.write(values(i))
    return os.path.getsize(path)
