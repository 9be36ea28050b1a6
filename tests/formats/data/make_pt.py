#!/usr/bin/env python3
"""Writes the PyTorch fixtures of test_format_pt.c and test_format_ptlegacy.c.

    python3 make_pt.py FOLDER          once per PyTorch version; file names carry the version
    python3 make_pt.py FOLDER all      more of the same than is kept in the repository

Beside every NAME.pt stands NAME.txt with what a reader must find, as PyTorch and NumPy
themselves say it:

    layer|slot|dtype|shape|device format|values as float64, complex ones in two
    layer|slot|broken|beginning of the reason
    ignored|line
"""
import io
import os
import struct
import sys
import zipfile

import torch

import pt_cases
from pt_cases import NEW, VERSION, Expect

OUT = sys.argv[1]

# What is kept: each form once per version that writes it differently.
KEPT = {
    "1.11": "types nested legacy_nested",
    "1.13": "types views nested nested4 legacy_nested legacy_views legacy_tiny npu checkpoint"
            " module numpy2 numpy4 deflated script",
    "2": "types views nested npu objects unsupported numpy2 numpy5 list lone storage big nocrc"
         " legacy_types legacy_nested4",
}[VERSION if VERSION[0] == "1" else "2"].split()
ALL = len(sys.argv) > 2


def path_of(name):
    return os.path.join(OUT, "%s-%s.pt" % (name, VERSION))


def write_expected(name, expect):
    with open(path_of(name)[:-3] + ".txt", "w", encoding="utf-8") as out:
        out.write("".join(line + "\n" for line in expect.lines))


def save(name, value, expect, **options):
    if name not in KEPT and not ALL:
        return
    # Saved through a buffer: the root folder is "archive", not a path of this machine.
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    with open(path_of(name), "wb") as out:
        out.write(buffer.getvalue())
    write_expected(name, expect)


# --- the same bytes by other means ------------------------------------------------------

def repack(name, source, change, method=zipfile.ZIP_STORED):
    """Copies an archive member by member; a PyTorch of another machine, or another tool."""
    if name not in KEPT and not ALL:
        return
    with zipfile.ZipFile(path_of(source)) as old, \
            zipfile.ZipFile(path_of(name), "w", method) as new:
        for info in old.infolist():
            data = change(info.filename, old.read(info))
            if data is not None:
                entry = zipfile.ZipInfo(info.filename)
                entry.compress_type = method
                new.writestr(entry, data)
    with open(path_of(source)[:-3] + ".txt", encoding="utf-8") as text:
        with open(path_of(name)[:-3] + ".txt", "w", encoding="utf-8") as out:
            out.write(text.read())


def swap32(name, data):
    if name.endswith("/byteorder"):
        return b"big"
    if "/data/" in name:
        return b"".join(data[i:i + 4][::-1] for i in range(0, len(data), 4))
    return data


def main():
    os.makedirs(OUT, exist_ok=True)
    save("types", *pt_cases.types_dict())
    save("views", *pt_cases.views_dict())
    save("nested", *pt_cases.nested_dict())
    save("legacy_nested", *pt_cases.nested_dict(), _use_new_zipfile_serialization=False)
    save("legacy_types", *pt_cases.types_dict(), _use_new_zipfile_serialization=False)
    save("legacy_views", *pt_cases.views_dict(), _use_new_zipfile_serialization=False)
    save("npu", *pt_cases.npu_dict())

    x = pt_cases.some(2, 3)
    expect = Expect()
    expect.tensor("lone-" + VERSION, "output.0", x)
    save("lone", x, expect)
    if VERSION == "1.11":
        return

    save("checkpoint", *pt_cases.checkpoint())
    save("objects", *pt_cases.objects_dict())
    save("unsupported", *pt_cases.unsupported_dict())
    net = pt_cases.Net()
    save("module", net, pt_cases.expect_net("", net))
    tiny = pt_cases.Tiny()
    expect = Expect()
    expect.tensor("w", "output.0", tiny.w)
    save("legacy_tiny", tiny, expect, _use_new_zipfile_serialization=False)
    for protocol in (2, 4, 5):
        save("numpy%d" % protocol, *pt_cases.numpy_dict(), pickle_protocol=protocol)
    for protocol in (3, 4, 5):
        save("nested%d" % protocol, *pt_cases.nested_dict(), pickle_protocol=protocol)
    save("legacy_nested4", *pt_cases.nested_dict(), pickle_protocol=4,
         _use_new_zipfile_serialization=False)

    expect = Expect()
    expect.tensor("0", "output.0", x)
    expect.tensor("1.0", "output.0", x)
    expect.tensor("1.1", "output.0", x[0])
    save("list", [x, (x, x[0])], expect)

    expect = Expect()
    expect.tensor("storage-" + VERSION, "output.0",
                  torch.tensor(list(struct.pack("<2f", 0.5, 0.75)), dtype=torch.uint8))
    storage = pt_cases.some(2).untyped_storage() if NEW else pt_cases.some(2).storage()._storage
    if NEW:
        save("storage", storage, expect)

    if NEW:
        repack("big", "views", swap32)
    repack("deflated", "numpy2", lambda name, data: data, zipfile.ZIP_DEFLATED)
    if NEW:
        torch.serialization.set_crc32_options(False)
        expect = Expect()
        expect.tensor("x", "output.0", x)
        save("nocrc", {"x": x}, expect)
        torch.serialization.set_crc32_options(True)

    if "script" in KEPT:
        buffer = io.BytesIO()
        torch.jit.save(torch.jit.script(torch.nn.Identity()), buffer)
        with open(path_of("script"), "wb") as out:
            out.write(buffer.getvalue())


main()
