#!/usr/bin/env python3
"""Every metric of `normdiff --metrics all`, worked out again by numpy from the same bytes.

  python3 against_numpy.py PATH_TO_NORMDIFF [--large]

Pairs of every dtype, of mixed dtypes, of lengths 0 to 200 and at block edges, tame and with
values that are not finite, masked, subnormal or saturated; with --large also 10 million
elements.  Sums must agree to 1e-12 of the sum of the sizes of their terms, bins and counts
exactly.  Exit 77: there is no numpy.
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

try:
    import numpy as np
except ImportError:
    print("numpy is missing")
    sys.exit(77)

# --- dtypes: how bytes become float64, from the formats' definitions ---------------------


def small_float(bits, exponent_bits, mantissa_bits, bias, has_infinity):
    """Decodes an array of small floats (IEEE, or e4m3fn without infinity)."""
    bits = bits.astype(np.int64)
    sign = np.where(bits >> (exponent_bits + mantissa_bits) & 1, -1.0, 1.0)
    exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = bits & (1 << mantissa_bits) - 1
    digits = np.where(exponent == 0, mantissa, mantissa + (1 << mantissa_bits))
    value = np.ldexp(digits.astype(float), np.maximum(exponent, 1) - bias - mantissa_bits)
    top = (1 << exponent_bits) - 1
    if has_infinity:
        value = np.where(exponent == top, np.where(mantissa == 0, np.inf, np.nan), value)
    else:
        value = np.where((exponent == top) & (mantissa == (1 << mantissa_bits) - 1), np.nan, value)
    return sign * value


class Dtype:
    def __init__(self, tag, raw, decode, digits=0, emin=0, most=0.0, masks=()):
        self.tag, self.raw, self.decode = tag, np.dtype(raw), decode
        self.digits, self.emin, self.most = digits, emin, most  # floats only
        self.masks = [-math.inf, *masks] if digits else []
        self.is_complex = self.raw.kind == "c"
        self.is_float = digits > 0 and not self.is_complex


def plain(tag, raw, **facts):
    return Dtype(tag, raw, lambda a: a.astype(np.complex128 if a.dtype.kind == "c" else np.float64), **facts)


F32_MIN, BF16_MIN = -float(np.finfo(np.float32).max), -float.fromhex("0x1.fep127")
DTYPES = {
    "float64": plain("F64", "<f8", digits=53, emin=-1022, most=float(np.finfo(float).max),
                     masks=[-1e4, -65504, -1e9, BF16_MIN, F32_MIN, -float(np.finfo(float).max)]),
    "float32": plain("F32", "<f4", digits=24, emin=-126, most=-F32_MIN,
                     masks=[-1e4, -65504, -1e9, BF16_MIN, F32_MIN]),
    "float16": plain("F16", "<f2", digits=11, emin=-14, most=65504.0, masks=[-1e4, -65504]),
    # -1e4, -65504 and -1e9 at 8 significant bits
    "bfloat16": Dtype("BF16", "<u2", lambda a: (a.astype(np.uint32) << 16).view(np.float32).astype(float),
                      digits=8, emin=-126, most=-BF16_MIN, masks=[-9984, -65536, -998244352, BF16_MIN]),
    "float8_e4m3fn": Dtype("F8_E4M3", "u1", lambda a: small_float(a, 4, 3, 7, False), digits=4, emin=-6, most=448.0),
    "float8_e5m2": Dtype("F8_E5M2", "u1", lambda a: small_float(a, 5, 2, 15, True), digits=3, emin=-14,
                         most=57344.0, masks=[-10240]),
    "int64": plain("I64", "<i8"), "int32": plain("I32", "<i4"), "int16": plain("I16", "<i2"), "int8": plain("I8", "i1"),
    "uint64": plain("U64", "<u8"), "uint32": plain("U32", "<u4"), "uint16": plain("U16", "<u2"), "uint8": plain("U8", "u1"),
    "bool": plain("BOOL", "?"),
    "complex64": plain("C64", "<c8", digits=24, emin=-126), "complex128": plain(None, "<c16", digits=53, emin=-1022),
}


def safetensors(tag, array):
    head = json.dumps({"x": {"dtype": tag, "shape": list(array.shape), "data_offsets": [0, array.nbytes]}}).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + array.tobytes()


def write(path, dtype, array):
    if dtype.tag is not None and dtype.raw.kind in "u" and dtype.is_float:  # no numpy type
        with open(path, "wb") as file:
            file.write(safetensors(dtype.tag, array))
    else:
        with open(path, "wb") as file:
            np.save(file, array)


# --- the pair, by the definitions ----------------------------------------------------------


class Expected:
    """What the report must say; `slack` is the allowed error of each number."""

    def __init__(self, dtypes, arrays):
        self.metrics, self.slack = {}, {}
        r, c = (d.decode(a) for d, a in zip(dtypes, arrays))
        self.is_complex = any(d.is_complex for d in dtypes)
        with np.errstate(all="ignore"):
            self.positions(dtypes, arrays, r, c)
            if self.n:
                self.hot(r[self.kept], c[self.kept])
                self.detail(dtypes, r[self.kept], c[self.kept])

    def positions(self, dtypes, arrays, r, c):
        masked = np.zeros(len(r), bool)
        if all(d.is_float for d in dtypes):
            masked = np.isin(r, dtypes[0].masks) & np.isin(c, dtypes[1].masks)
        finite = np.isfinite(r) & np.isfinite(c)
        same = (np.isnan(r) & np.isnan(c)) | (r == c)
        self.kept = finite & ~masked
        self.n, self.masked = int(self.kept.sum()), int(masked.sum())
        self.mismatches = int((~finite & ~masked & ~same).sum())
        self.e = np.abs(c - r)
        # Integers of 64 bits: exact, and rounded once.
        if any(a.dtype.itemsize == 8 and a.dtype.kind in "iu" for a in arrays):
            exact = [abs(Fraction(y) - Fraction(x)) if k else Fraction(0)
                     for x, y, k in zip(arrays[0].tolist(), arrays[1].tolist(), self.kept)]
            self.e = np.array([float(x) for x in exact])
            unequal = np.array([x != 0 for x in exact], bool)
        else:
            unequal = r != c
        self.differ = int((unequal & self.kept).sum()) + self.mismatches
        self.sides = [{"nan": int((np.isnan(v) & ~masked).sum()), "pos_inf": int(((np.abs(v) if self.is_complex else v) == np.inf)[~masked].sum()),
                       "neg_inf": 0 if self.is_complex else int((v == -np.inf)[~masked].sum())} for v in (r, c)]
        self.bit_equal = dtypes[0] is dtypes[1] and arrays[0].tobytes() == arrays[1].tobytes()

    def put(self, key, value, slack=0.0):
        self.metrics[key] = value
        self.slack[key] = slack

    def hot(self, r, c):
        n, long = self.n, np.longdouble
        e = self.e = self.e[self.kept].astype(long)
        at = np.flatnonzero(self.kept)[int(np.argmax(e))]
        size_r, size_c = np.abs(r).astype(long), np.abs(c).astype(long)
        ee, rr, cc = (e * e).sum(), (size_r**2).sum(), (size_c**2).sum()
        self.rms = float(np.sqrt(rr / n))
        self.put("max_abs", float(e.max()), 4e-16 * float(e.max()) if self.is_complex else 0.0)
        self.put("max_abs_index", [int(at)])
        self.put("mean_abs", float(e.sum() / n), 1e-12 * float(e.sum() / n))
        self.put("rmse", float(np.sqrt(ee / n)), 1e-12 * float(np.sqrt(ee / n)))
        drift = float(np.sqrt(ee) / np.sqrt(rr)) if rr else 0.0 if ee == 0 else math.inf
        self.put("rel_l2", drift, 1e-12 * drift if rr else 0.0)
        terms = (r * np.conj(c)).real.astype(long) if self.is_complex else r.astype(long) * c.astype(long)
        norms = np.sqrt(rr) * np.sqrt(cc)
        self.put("cosine", float(terms.sum() / norms) if norms else 1.0 if rr == cc else 0.0,
                 1e-12 * (1 + float((size_r * size_c).sum() / norms)) if norms else 0.0)
        if not self.is_complex:
            self.pearson(r.astype(long), c.astype(long))
        r, c = (size_r, size_c) if self.is_complex else (r.astype(long), c.astype(long))
        # Moduli are roots of sums: right to their last bits, but not to the last.
        unsure = 4e-16 if self.is_complex else 0.0
        self.put("min", [float(r.min()), float(c.min())], unsure * self.rms)
        self.put("max", [float(r.max()), float(c.max())], unsure * float(max(r.max(), c.max())))
        self.put("mean", [float(r.sum() / n), float(c.sum() / n)], 1e-12 * float(max(size_r.sum(), size_c.sum()) / n))
        self.put("norm", [float(np.sqrt(rr)), float(np.sqrt(cc))], 1e-12 * float(max(np.sqrt(rr), np.sqrt(cc))))
        if ee or rr:
            snr = 10 * float(np.log10(rr / ee)) if ee and rr else math.inf if rr else -math.inf
            self.put("snr_db", snr, 1e-11 + 1e-12 * abs(snr) if ee and rr else 0.0)

    def pearson(self, r, c):
        n = self.n
        u, v = r - r[0], c - c[0]
        var = [float(((x - x.mean()) ** 2).sum()) for x in (u, v)]
        noise = [(4 * 2.0**-52 * float(np.abs(x).max())) ** 2 * n for x in (r, c)]
        if any(a <= 4 * b for a, b in zip(var, noise)):
            if all(a <= b / 4 for a, b in zip(var, noise)) or min(var) == 0:
                return  # surely constant: must be absent
            self.put("pearson", None)  # at the border: may be either
            return
        terms = [float((x * x).sum() + np.abs(x).sum() ** 2 / n) for x in (u, v)]
        shared = float(np.abs(u * v).sum() + np.abs(u).sum() * np.abs(v).sum() / n)
        slack = 1e-12 * (terms[0] / var[0] + terms[1] / var[1] + shared / math.sqrt(var[0]) / math.sqrt(var[1]))
        value = float(((u - u.mean()) * (v - v.mean())).sum()) / math.sqrt(var[0]) / math.sqrt(var[1])
        self.put("pearson", value, slack + 1e-12)

    def detail(self, dtypes, r, c):
        n, e = self.n, self.e.astype(float)
        size_r = np.abs(r)
        floor = self.rms * 2.0**-20
        near = 1 + 1e-12
        rel = np.where(e == 0, 0.0, e / np.maximum(size_r, floor))
        scaled = np.where(e == 0, 0.0, e / (size_r + self.rms))
        self.put("max_rel", float(rel.max()), 1e-12 * float(rel.max()) if np.isfinite(rel.max()) else 0.0)
        mean_rel = float(rel.astype(np.longdouble).sum() / n)
        self.put("mean_rel", mean_rel, 1e-12 * mean_rel if np.isfinite(mean_rel) else 0.0)
        for key, bound in (("within_1e3", 1e-3), ("within_5e3", 5e-3)):
            surely, at_most = (rel * near < bound).sum(), (rel < bound * near).sum()
            self.put(key, float(at_most) / n, (at_most - surely) / n + 1e-15)
        self.put("max_scaled", float(scaled.max()), 1e-12 * float(scaled.max()) if np.isfinite(scaled.max()) else 0.0)
        for key, q in (("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999)):
            self.put(key, quantile(e, q))
        floats = [d for d in dtypes if d.digits]
        if floats:
            coarse = min(floats, key=lambda d: d.digits)
            at = np.maximum(size_r, self.rms * 2.0**-10)
            exponent = np.maximum(np.frexp(at)[1] - 1, coarse.emin)
            exponent = np.where(at == 0, coarse.emin, exponent)
            ulp = np.ldexp(e, -(exponent - coarse.digits + 1))
            self.put("max_ulp", float(ulp.max()), 1e-12 * float(ulp.max()) if self.is_complex else 0.0)
            self.put("p99_ulp", quantile(ulp, 990))
        own = list(zip(dtypes, (size_r, np.abs(c))))
        self.put("zeros", [int((x == 0).sum()) for _, x in own])
        self.put("subnormals", [int(((x > 0) & (x < 2.0**d.emin)).sum()) if d.is_float else 0 for d, x in own])
        self.put("saturated", [int((x == d.most).sum()) if d.is_float else 0 for d, x in own])


def quantile(values, thousandths):
    """Nearest rank; the float32 whose bits are those of the value cut to 4 mantissa bits,
    plus one in the last of them.  Among ties of complex moduli the bin still is one."""
    n = len(values)
    value = float(np.partition(values, -(-n * thousandths // 1000) - 1)[-(-n * thousandths // 1000) - 1])
    if value == 0:
        return 0.0
    if value >= 2.0**128:
        return math.inf
    mantissa, exponent = math.frexp(value)  # value = mantissa * 2**exponent, 0.5 <= mantissa < 1
    if exponent - 1 < -126:
        return math.ldexp(math.floor(math.ldexp(value, 130)) + 1, -130)
    edge = math.ldexp(math.floor(mantissa * 32) + 1, exponent - 5)
    return edge if edge < 2.0**128 else math.inf


# --- data ------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, -1e4, -65504.0, -1e9, -9984.0, 65504.0, 448.0, 57344.0,
           6e-8, 1e-40, F32_MIN, BF16_MIN, -F32_MIN]


def as_raw(dtype, values):
    """Values in the dtype's own bits (rounded by truncation where numpy has no such type)."""
    if dtype.raw.kind == "f":
        return values.astype(dtype.raw)
    if dtype is DTYPES["bfloat16"]:
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    table = dtype.decode(np.arange(256, dtype=np.uint8))
    order = np.argsort(np.where(np.isfinite(table), table, np.inf), kind="stable")[: int(np.isfinite(table).sum())]
    bits = order[np.clip(np.searchsorted(table[order], values), 0, len(order) - 1)].astype(np.uint8)
    bits[np.isnan(values)] = 0x7F
    bits[values == -np.inf] = 0xFC if dtype is DTYPES["float8_e5m2"] else 0xFE
    return bits


def make(random, dtypes, n, odd):
    base = random.standard_normal(n)
    other = base * (1 + 1e-3 * random.standard_normal(n)) * (random.random(n) > 0.3)
    arrays = []
    for dtype, values in zip(dtypes, (base, np.where(other == 0, base, other))):
        if dtype.raw.kind == "c":
            parts = values + 1j * random.standard_normal(n)
            arrays.append(parts.astype(dtype.raw))
        elif dtype.raw.kind in "iu" and not dtype.digits:
            top = min(100 if not odd else np.iinfo(dtype.raw).max, np.iinfo(dtype.raw).max)
            arrays.append((np.abs(values) / 6 * float(top)).astype(np.float64).clip(0, float(top) / 2).astype(dtype.raw))
        elif dtype.raw.kind == "b":
            arrays.append(values > 0)
        else:
            special = np.where(random.random(n) < 0.1, random.choice(SPECIAL, n), values) if odd else values
            with np.errstate(all="ignore"):
                arrays.append(as_raw(dtype, special))
    if odd and n:
        same = random.random(n) < 0.3
        if arrays[0].dtype == arrays[1].dtype:
            arrays[1] = np.where(same, arrays[0], arrays[1])
    return arrays


# --- the comparison ----------------------------------------------------------------------------


def number(value):
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}.get(value, value)


class Checker:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        self.pairs = self.failed = 0

    def complain(self, what, *details):
        self.failed += 1
        if self.failed <= 20:
            print("FAIL", what, *details)

    def report(self, what, dtypes, arrays):
        paths = [os.path.join(self.folder, name) for name in ("r.bin", "c.bin")]
        for path, dtype, array in zip(paths, dtypes, arrays):
            write(path, dtype, array)
        done = subprocess.run([self.tool, "--metrics", "all", "-f", "json", *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode not in (0, 1):
            print(what, "exit", done.returncode, done.stdout.decode(), done.stderr.decode())
            sys.exit(1)
        return json.loads(done.stdout.decode())["layers"][0]["slots"][0]

    def check(self, what, dtypes, arrays):
        slot, expected = self.report(what, dtypes, arrays), Expected(dtypes, arrays)
        self.pairs += 1
        facts = {"n": expected.n, "differ": expected.differ, "bit_equal": expected.bit_equal}
        for key, value in facts.items():
            if slot[key] != value:
                self.complain(what, key, slot[key], "expected", value)
        nonfinite = {"mismatches": expected.mismatches, "masked": expected.masked,
                     "reference": expected.sides[0], "candidate": expected.sides[1]}
        if slot["nonfinite"] != nonfinite:
            self.complain(what, slot["nonfinite"], "expected", nonfinite)
        found = dict(slot["metrics"])
        if expected.metrics.get("pearson", 0) is None:
            found.pop("pearson", None)
            del expected.metrics["pearson"]
        if found.keys() != expected.metrics.keys():
            self.complain(what, "metrics", sorted(found.keys() ^ expected.metrics.keys()))
        for key in found.keys() & expected.metrics.keys():
            self.check_metric(what, key, found[key], expected)

    def check_metric(self, what, key, found, expected):
        if isinstance(found, dict):
            found = [found["reference"], found["candidate"]]
        found = [number(x) for x in (found if isinstance(found, list) else [found])]
        value = expected.metrics[key]
        for a, b in zip(found, value if isinstance(value, list) else [value]):
            if not (a == b or abs(a - b) <= expected.slack[key]):
                self.complain(what, key, repr(a), "expected", repr(b), "within", expected.slack[key])


MIXED = [("float32", "bfloat16"), ("float32", "float16"), ("float16", "bfloat16"), ("float64", "float32"),
         ("int64", "float64"), ("uint64", "int64"), ("int32", "float32"), ("bool", "uint8"), ("complex64", "float32")]


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    random = np.random.default_rng(20240607)
    with tempfile.TemporaryDirectory(prefix="normdiff-numpy-") as folder:
        checker = Checker(sys.argv[1], folder)
        pairs = [(name, name) for name in DTYPES] + MIXED
        for names in pairs:
            dtypes = [DTYPES[name] for name in names]
            lengths = range(0, 201, 1 if names == ("float32", "float32") else 40)
            for n in [*lengths, 1, 255, 257, 4097, 12345]:
                for odd in (False, True):
                    what = "%s/%s n %d %s" % (*names, n, "odd" if odd else "tame")
                    checker.check(what, dtypes, make(random, dtypes, n, odd))
        if "--large" in sys.argv:
            for names in [("float32", "float32"), ("bfloat16", "bfloat16"), ("float64", "float64"), ("float32", "float16")]:
                dtypes = [DTYPES[name] for name in names]
                checker.check("%s/%s 10 M" % names, dtypes, make(random, dtypes, 10_000_000, False))
        print("%d pairs, %d differences" % (checker.pairs, checker.failed))
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
