#!/usr/bin/env python3
"""Prints dtype_rows.h: for every dtype the bytes of a small pair, as torch stores them, and
its sums, as numpy adds them.  Needs a torch that has float8 and the unsigned integers.
usage: python3 dtype_rows.py > dtype_rows.h
"""
import numpy as np
import torch

R = [1.5, -0.75, 3.25, -100.0, 0.0078125, 7.0, 0.0]
C = [1.25, -0.75, 3.0, -96.0, 0.015625, -7.0, 2.0]
INTEGERS = [[1, 2, 3, 100, 0, 7, 120], [1, 3, 2, 96, 0, 7, 127]]
DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8,
    "u64": torch.uint64, "u32": torch.uint32, "u16": torch.uint16, "u8": torch.uint8,
    "bool8": torch.bool, "c64": torch.complex64, "c128": torch.complex128,
}


def pair(word, dtype):
    if word[0] == "c":
        values = [complex(a, b) for a, b in zip(R, C)], [complex(b, -a) for a, b in zip(R, C)]
        return [torch.tensor(v, dtype=dtype) for v in values]
    if word == "bool8":
        return [torch.tensor([1, 1, 1, 1, 0, 1, 1]).bool(), torch.tensor([0, 1, 1, 1, 1, 1, 0]).bool()]
    if word[0] in "iu":
        return [torch.tensor(v).to(dtype) for v in INTEGERS]
    return [torch.tensor(v, dtype=torch.float64).to(dtype) for v in (R, C)]


def literal(tensor):
    raw = tensor.numpy().view(np.uint8) if tensor.dtype == torch.bool else tensor.view(torch.uint8).numpy()
    escapes = ["\\x%02x" % byte for byte in raw.reshape(-1)]
    lines = ["".join(escapes[i : i + 20]) for i in range(0, len(escapes), 20)]
    return "\n     ".join('"%s"' % line for line in lines)


print("/* Made by golden/dtype_rows.py with torch %s. */" % torch.__version__.split("+")[0])
print("static const struct dtype_row dtype_rows[] = {")
for word, dtype in DTYPES.items():
    sides = pair(word, dtype)
    wide = torch.complex128 if word[0] == "c" else torch.float64
    r, c = (side.to(wide).numpy() for side in sides)
    size = np.abs if word[0] == "c" else lambda x: x
    e = np.abs(c - r)
    sums = [e.sum(), (e * e).sum(), size(r).sum(), size(c).sum(), (np.abs(r) ** 2).sum(),
            (np.abs(c) ** 2).sum(), (r * np.conj(c)).real.sum(), e.max()]
    print("    {ND_DTYPE_%s,\n     %s,\n     %s," % (word, *map(literal, sides)))
    numbers = ["%r" % float(s) for s in sums]
    print("     {%s,\n      %s},\n     %d, %d}," % (", ".join(numbers[:4]), ", ".join(numbers[4:]), e.argmax(), (r != c).sum()))
print("};")
