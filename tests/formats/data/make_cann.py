#!/usr/bin/env python3
"""Write CANN dump files from their description, for tests and as seeds for fuzzing.

  make_cann.py CORPUS_DIR

Written from the message's field numbers and the documented layouts alone; it shares nothing
with the reader.  Values: element i of a tensor is (i - 8) / 4, in logical order.
"""
import os
import struct
import sys

import numpy


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while True:
        byte = value & 0x7F
        value >>= 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def shape(field, dims, packed=True):
    if packed:
        return block(field, block(1, b"".join(varint(d) for d in dims)))
    return block(field, b"".join(number(1, d) for d in dims))


def tensor(is_output, dtype, fmt, dims, size, original=None, origin=None, group=None, data=b"",
           packed=True):
    base = 5 if is_output else 4
    out = number(1, dtype) + number(2, fmt) + shape(3, dims, packed)
    if origin is not None:
        name, index, ge_dtype, ge_format = origin
        out += block(4, block(1, name.encode()) + number(2, index) + number(3, ge_dtype) +
                     number(4, ge_format))
    if data:
        out += block(base, data)
    out += number(base + 1, size)
    if original is not None:
        out += shape(base + 2, original, packed)
    if group is not None:
        out += number(base + 3, group)
    return out


def message(op_name=None, time=1700000000000000, inputs=(), outputs=(), buffers=(), spaces=(),
            attr=None, version="2.0"):
    out = block(1, version.encode()) + number(2, time)
    out += b"".join(block(3, t) for t in outputs) + b"".join(block(4, t) for t in inputs)
    out += b"".join(block(5, number(3, n)) for n in buffers)
    if op_name is not None:
        out += block(6, op_name.encode())
    if attr is not None:
        out += block(7, block(1, b"ffts") + block(2, attr.encode()))
    out += b"".join(block(8, number(3, n)) for n in spaces)
    return out


def v2(head, *blobs):
    return struct.pack("<Q", len(head)) + head + b"".join(blobs)


def values(dims, dtype="<f4"):
    n = int(numpy.prod(dims))
    return ((numpy.arange(n) - 8) / 4).reshape(dims).astype(dtype)


def nc1hwc0(array, c0, pad=0):
    n, c, h, w = array.shape
    c1 = -(-c // c0)
    out = numpy.full((n, c1 * c0, h, w), pad, array.dtype)
    out[:, :c] = array
    return numpy.ascontiguousarray(out.reshape(n, c1, c0, h, w).transpose(0, 1, 3, 4, 2))


def bfloat16(array):
    return (array.astype("<f4").view("<u4") >> 16).astype("<u2")


def simple(op_name="net/fc1", time=1700000000000000, first=0.0):
    """One float32 output of shape (2, 3), ND."""
    data = (values((2, 3)) + numpy.float32(first)).tobytes()
    return v2(message(op_name, time, outputs=[tensor(True, 1, 2, (2, 3), len(data), (2, 3))]), data)


def blocked():
    """Input float16 NC1HWC0 (1,19,2,3) with padding 7, output float32 ND (4)."""
    x = nc1hwc0(values((1, 19, 2, 3), "<f2"), 16, 7).tobytes()
    y = values((4,)).tobytes()
    return v2(message("net/bn1", inputs=[tensor(False, 2, 3, (1, 2, 2, 3, 16), len(x), (1, 19, 2, 3))],
                      outputs=[tensor(True, 1, 2, (4,), len(y), (4,), ("bn1", 0, 0, 0))]), x, y)


def worked_example():
    """The example of the description, byte for byte."""
    head = bytes.fromhex("0a03322e30" "108080f9c0c1c48203" "1a17" "08021003" "1a070a050102010110"
                         "3040" "3a060a0401130101" "32076e65742f626e31")
    return struct.pack("<Q", len(head)) + head + values((1, 2, 1, 1, 16), "<f2").tobytes()


def types():
    """Elements of many types: [1, 0.5] or as near as they come; then types that nobody reads."""
    rows = [(1, "<f4"), (2, "<f2"), (3, "i1"), (4, "u1"), (5, "<i2"), (6, "<u2"), (7, "<i4"),
            (8, "<i8"), (9, "<u4"), (10, "<u8"), (11, "?"), (12, "<f8"), (16, "<c8"), (17, "<c16")]
    blobs = [numpy.array([1, 0.5]).astype(t).tobytes() for _, t in rows]
    numbers = [n for n, _ in rows]
    blobs += [bfloat16(numpy.array([1, 0.5])).tobytes(), b"\x3c\x38", b"\x38\x30"]
    numbers += [27, 34, 35]
    for unread in (0, 13, 18, 28, 32, 33, 36, 37, 39, 41, 99):
        blobs.append(b"\x01\x02")
        numbers.append(unread)
    head = message("types", outputs=[tensor(True, n, 2, (2,), len(b)) for n, b in zip(numbers, blobs)])
    return v2(head, *blobs)


def version1():
    x, y = values((3,)).tobytes(), values((2, 2), "<f2").tobytes()
    return message("net/relu", inputs=[tensor(False, 1, 2, (3,), len(x), data=x)],
                   outputs=[tensor(True, 2, 2, (2, 2), len(y), (2, 2), data=y)], version="1.0")


def nano_record(is_output, dtype, fmt, size, dims, original, name=None, index=0):
    details = struct.pack("<II", 0, 8 * len(dims)) + struct.pack("<%dQ" % len(dims), *dims)
    details += struct.pack("<II", 1, 8 * len(original)) + struct.pack("<%dQ" % len(original), *original)
    if name is not None:
        details += struct.pack("<II", 2, len(name)) + name.encode()
    out = struct.pack("<iii", dtype, fmt, 0)
    if is_output:
        out += struct.pack("<iii", index, 0, 1)
    return out + struct.pack("<QQQI", 0x1000, 0, size, len(details)) + details


def nano():
    """Two float16 inputs (1, 5) and (1, 3), one output (1, 8) that the framework calls concat."""
    a, b = values((1, 5), "<f2"), values((1, 3), "<f2")
    y = numpy.concatenate([a, b], 1)
    ins = [nano_record(False, 1, 1, t.nbytes, t.shape, t.shape) for t in (a, b)]
    outs = [nano_record(True, 1, 1, y.nbytes, y.shape, y.shape, "concat")]
    head = struct.pack("<II", 0x5A5A5A5A, 1)
    for tag, records in ((4, ins), (5, outs)):
        body = struct.pack("<I", len(records)) + b"".join(records)
        head += struct.pack("<II", tag, len(body)) + body
    return struct.pack("<Q", len(head)) + head + a.tobytes() + b.tobytes() + y.tobytes()


def atb(array, ge_dtype, fmt=2, dims=None, extra=""):
    data = array.tobytes()
    dims = array.shape if dims is None else dims
    text = ("$Version=1.0\n$Object.Count=1\n$Object.Length=%d\nformat=%d\ndtype=%d\ndims=%s\n%s"
            "$Object.data=0,%d\n$End=1\n") % (len(data), fmt, ge_dtype, ",".join(map(str, dims)),
                                              extra, len(data))
    return text.encode() + data


STATS = """Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count,Negative Inf Count,Positive Inf Count
Input,0,24,DT_FLOAT,ND,2x3,1.25,-0.5,0.375,6,0,0,0
Input,1,64,DT_BF16,NC1HWC0,1x2x1x1x16,,,,,,,
Output,0,24,FLOAT16,NC1HWC0,1x1x1x1x16,3.5,-2,0.125,16,1,0,0
Output,1,4,INT32,ND,1,nan,-inf,7,1,0,0,0
"""


def overflow(account, time=1700000000000009):
    account = account.ljust(2048, b"\0")
    return v2(message("Node_OpDebug", time, outputs=[tensor(True, 4, 2, (2048,), 2048)]), account)


def overflow_new(task, stream, status=0x20):
    fields = [7, stream, task, 0, 65535, 65535, 0x1240ABCD1000, 0x1240ABCD2000, 3, 5, status]
    return overflow(struct.pack("<6I", 0x5A5A5A5A, 0, 1, 0, 0, 8 * len(fields)) +
                    struct.pack("<11Q", *fields))


def overflow_old(task, stream):
    account = bytearray(2048)
    struct.pack_into("<6Q", account, 256, 7, stream, task, 0, 0x1000, 0x2000)
    struct.pack_into("<3Q", account, 1024, 11, 2, 0x800)
    return overflow(bytes(account))


def npy(array):
    import io
    out = io.BytesIO()
    numpy.save(out, array)
    return out.getvalue()


def tree(files):
    """The form in which the fuzz target of folders takes a tree."""
    out = b""
    for name, content in files.items():
        out += bytes([len(name)]) + name.encode() + struct.pack("<H", len(content)) + content
    return out


def trees():
    run = "20240102030405/0/resnet/1/"
    small = simple()
    return {
        "canntree": {
            "flat": tree({"MatMul.net_fc1.3.7.1700000000000000": small,
                          "MatMul.net_fc1.3.7.1700000000000005": simple(time=1700000000000005, first=1),
                          "Relu.net_r.4.7.1700000000000002.csv": STATS.encode(),
                          "Cast.c.5.7.1700000000000003.output.0.npy": npy(values((2,)))}),
            "run": tree({run + "0/MatMul.net_fc1.3.7.1700000000000000": small,
                         run + "1/MatMul.net_fc1.3.7.1700000000000100": small,
                         run + "0/Opdebug.Node_OpDebug.3.7.1700000000000009": overflow_new(3, 7),
                         run + "0/A.b.1.2.1700000000000001": small[:40]}),
            "mapped": tree({"12345678901234567890": small,
                            "1": small,
                            "mapping.csv": b"12345678901234567890,MatMul.long_name.3.7.1700000000000000\n"
                                           b"1,12345678901234567890\nx\n,\n1,\n",
                            "MatMul.b.3.7.1700000000000001": small}),
            "ffts": tree({"Conv2D.c.2.9.1700000000000000.4.487.0.0": small,
                          "Conv2D.c.2.9.1700000000000001.4.487.1.0": small}),
        },
        "canngolden": {
            "onnx": tree({"conv1.0.1700000000000000.npy": npy(values((2, 3))),
                          "input_conv1.0.1700000000000000.npy": npy(values((3,))),
                          "fc.0.1700000000000001.npy": npy(values((4,))),
                          "bad.0.1700000000000002.npy": b"\x93NUMPY"}),
        },
    }


def seeds():
    small = simple()
    return {
        "cann": {
            "simple": small,
            "blocked": blocked(),
            "example": worked_example(),
            "types": types(),
            "short": small[:-5],
            "trailing": small + b"more",
            "buffers": v2(message("b", outputs=[tensor(True, 4, 2, (2,), 2)], buffers=[4], spaces=[3]),
                          b"ab" + b"\0" * 7),
            "unpacked": v2(message("u", outputs=[tensor(True, 4, 2, (2,), 2, (1, 2), packed=False)]), b"ab"),
            "dynamic": v2(message("d", outputs=[tensor(True, 4, 2, (-1, 2), 4)]), b"abcd"),
            "huge_dims": v2(message("h", outputs=[tensor(True, 1, 2, (1 << 62, 1 << 62), 4)]), b"abcd"),
            "huge_sizes": v2(message("h", outputs=[tensor(True, 1, 2, (1,), (1 << 64) - 1),
                                                   tensor(True, 1, 2, (1,), (1 << 64) - 1)]), b"abcd"),
            "contradiction": v2(message("c", outputs=[tensor(True, 2, 3, (1, 2, 1, 1, 16), 64, (1, 90, 1, 1))]),
                                b"\0" * 64),
            "format38": v2(message("l", outputs=[tensor(True, 2, 38, (2, 2), 8)]), b"\0" * 8),
            "varint11": v2(block(1, b"2.0") + b"\x10" + b"\xff" * 10 + b"\x01" + block(6, b"n")),
            "group": v2(block(1, b"2.0") + b"\x53\x54" + block(6, b"n")),
            "length": struct.pack("<Q", (1 << 64) - 1) + small[8:],
        },
        "cannv1": {"pair": version1(), "short": version1()[:-3],
                   "nested": message("n", outputs=[block(3, block(1, block(1, block(1, b"\x01"))))])},
        "cannnano": {"concat": nano(), "short": nano()[:-9],
                     "count": struct.pack("<QIIIII", 20, 0x5A5A5A5A, 1, 4, 4, 0xFFFFFFFF) + b"\0" * 4},
        "cannstats": {"table": STATS.encode(), "none": STATS.splitlines()[0].encode() + b"\n",
                      "cut": STATS.encode()[:260]},
        "cannoverflow": {"new": overflow_new(3, 7), "old": overflow_old(3, 7),
                         "short": overflow_new(3, 7)[:-2030]},
        "atb": {"plain": atb(values((2, 3)), 0),
                "twice": atb(values((2,), "<f2"), 1) + atb(values((2,), "<f2"), 1),
                "elsewhere": atb(values((2,)), 0, extra="data=other.bin\n"),
                "undefined_format": atb(values((2,), "<i4"), 3, -1),
                "cut": atb(values((2, 3)), 0)[:-3],
                "dims": atb(values((2,)), 0, dims=(1 << 63, 4)),
                "length": b"$Version=1.0\n$Object.Length=18446744073709551615\ndtype=0\n$End=1\nabcd"},
    }


def main():
    corpus = sys.argv[1]
    for word, files in {**seeds(), **trees()}.items():
        os.makedirs(os.path.join(corpus, word), exist_ok=True)
        for name, content in files.items():
            with open(os.path.join(corpus, word, name), "wb") as stream:
                stream.write(content)


if __name__ == "__main__":
    main()
