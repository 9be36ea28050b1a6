"""What make_pt.py saves: objects of many shapes, and what a reader must find in them."""
import collections
import sys
import types

import numpy as np
import torch

VERSION = ".".join(torch.__version__.split("+")[0].split(".")[:2]).rstrip("a0") or "0"
VERSION = ".".join("".join(c for c in part if c.isdigit()) for part in VERSION.split("."))
NEW = tuple(int(p) for p in VERSION.split(".")) >= (2, 3)


def values_of(tensor):
    if isinstance(tensor, np.ndarray):
        flat = tensor.reshape(-1)
        return [float(v) for v in flat], str(tensor.dtype.newbyteorder("=")), tensor.shape
    name = str(tensor.dtype).replace("torch.", "")
    tensor = tensor.detach()
    if tensor.is_complex():
        flat = torch.view_as_real(tensor.resolve_conj()).reshape(-1)
    elif name in ("uint16", "uint32", "uint64"):
        return [float(v) for v in tensor.numpy().reshape(-1)], name, tuple(tensor.shape)
    else:
        flat = tensor.double().reshape(-1)
    return [float(v) for v in flat], name, tuple(tensor.shape)


class Expect:
    def __init__(self):
        self.lines = []

    def tensor(self, layer, slot, tensor, note=""):
        values, dtype, shape = values_of(tensor)
        dims = ",".join(str(d) for d in shape)
        self.lines.append("|".join([layer, slot, dtype, dims, note,
                                    " ".join(repr(v) for v in values)]))

    def broken(self, layer, slot, reason):
        self.lines.append("|".join([layer, slot, "broken", reason]))

    def ignored(self, line):
        self.lines.append("ignored|" + line)


def some(*shape, start=0.5, step=0.25):
    n = int(np.prod(shape)) if shape else 1
    return (torch.arange(n, dtype=torch.float64) * step + start).reshape(shape).float()


# --- element types ---------------------------------------------------------------------

def types_dict():
    x = torch.tensor([1.5, -2.25, 0.1, 3e4], dtype=torch.float64)
    items = {
        "f64": x, "f32": x.float(), "f16": x.half(), "bf16": x.bfloat16(),
        "i64": torch.tensor([2**40, -3]), "i32": torch.tensor([7, -8], dtype=torch.int32),
        "i16": torch.tensor([300, -2], dtype=torch.int16),
        "i8": torch.tensor([-128, 127], dtype=torch.int8),
        "u8": torch.tensor([0, 255], dtype=torch.uint8),
        "flag": torch.tensor([True, False, True]),
        "c64": torch.tensor([1 + 2j, -0.5j], dtype=torch.complex64),
        "c128": torch.tensor([0.1 - 1j], dtype=torch.complex128),
    }
    if NEW:
        items["f8a"] = torch.tensor([1.5, -0.3, 200.0]).to(torch.float8_e4m3fn)
        items["f8b"] = torch.tensor([1.5, -0.3, 200.0]).to(torch.float8_e5m2)
        items["u16"] = torch.tensor([1, 65535], dtype=torch.uint16)
        items["u32"] = torch.tensor([2**32 - 1], dtype=torch.uint32)
        items["u64"] = torch.tensor([2**40 + 1], dtype=torch.uint64)
    expect = Expect()
    for key, tensor in items.items():
        expect.tensor(key, "output.0", tensor)
    return items, expect


# --- views -----------------------------------------------------------------------------

def views_dict():
    base = some(4, 6)
    image = some(2, 3, 2, 2)
    items = {
        "base": base, "t": base.t(), "row": base[1], "part": base[1:3, 2:5],
        "steps": base[::2, ::3], "diagonal": base.diagonal(),
        "one": base[2, 3], "none": base[:0],
        "wide": some(1, 3).expand(4, 3), "same": torch.tensor([2.5]).expand(2, 3),
        "nhwc": image.contiguous(memory_format=torch.channels_last),
        "permuted": image.permute(0, 2, 3, 1), "scalar": torch.tensor(4.25),
        "thin": some(3, 1).t(), "empty": torch.empty(0, 3),
        "window": torch.arange(6.0).unfold(0, 3, 1),
    }
    expect = Expect()
    for key, tensor in items.items():
        expect.tensor(key, "output.0", tensor)
    return items, expect


# --- containers ------------------------------------------------------------------------

def nested_dict():
    x, y, z = some(2, 3), some(2, 2, start=-1.0), some(3)
    w = torch.nn.Parameter(some(2))
    tagged = torch.nn.Parameter(some(2, start=9.0))
    tagged.tag = "an attribute"
    items = collections.OrderedDict()
    items["conv1"] = {"input": (x,), "output": y}
    items["block"] = {"input": [x, z], "output": (y, [z, x])}
    items["bn1"] = z
    items["bn1.weight"] = w
    items["tagged"] = tagged
    items[7] = z
    items[("a", 1)] = y
    items["deep"] = {"er": [{"est": y}]}
    items["meta"] = {"lr": 0.1, "name": "net", "ok": True, "nothing": None}
    items["sizes"] = [1, 2, 3]
    items["shape"] = x.shape
    items["device"] = torch.device("cpu")
    items["dtype"] = torch.float16
    items["set"] = {5}
    expect = Expect()
    expect.tensor("conv1", "input.0", x)
    expect.tensor("conv1", "output.0", y)
    expect.tensor("block", "input.0", x)
    expect.tensor("block", "input.1", z)
    expect.tensor("block", "output.0", y)
    expect.tensor("block", "output.1.0", z)
    expect.tensor("block", "output.1.1", x)
    expect.tensor("bn1", "output.0", z)
    expect.tensor("bn1", "param.weight", w)
    expect.tensor("tagged", "output.0", tagged)
    expect.tensor("7", "output.0", z)
    expect.tensor("a.1", "output.0", y)
    expect.tensor("deep.er.0.est", "output.0", y)
    expect.ignored("meta (dict of 4)")
    expect.ignored("sizes (list of 3)")
    expect.ignored("shape (torch.Size)")
    expect.ignored("device (torch.device)")
    expect.ignored("dtype (torch.float16)")
    return items, expect


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 2)
        self.bn = torch.nn.BatchNorm2d(2)
        self.head = torch.nn.Linear(2, 2, bias=False)
        self.tied = torch.nn.Linear(2, 2, bias=False)
        self.tied.weight = self.head.weight
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(torch.arange(p.numel()).reshape(p.shape) * 0.5 + i)


# PyTorch's legacy form keeps the source and its path; of a class made this way it has none.
exec("""class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(some(2))
""")


def expect_net(prefix, net):
    expect = Expect()
    for name, tensor in net.state_dict().items():
        layer, leaf = name.rsplit(".", 1)
        kind = "param" if leaf in ("weight", "bias") else "state"
        expect.tensor(prefix + layer, kind + "." + leaf, tensor)
    return expect


def checkpoint():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    expect = expect_net("model.", net)
    for i, p in enumerate(net.parameters()):
        expect.tensor("optimizer.state.%d.momentum_buffer" % i, "output.0",
                      optimizer.state[p]["momentum_buffer"])
    return {"epoch": 3, "model": net.state_dict(), "optimizer": optimizer.state_dict()}, expect


# --- objects ---------------------------------------------------------------------------

class ModelOutput(collections.OrderedDict):
    """Holds its tensors as items, as attributes and as arguments, as transformers' does."""

    def __init__(self, hidden=None, logits=None):
        super().__init__()
        for key, value in (("hidden", hidden), ("logits", logits)):
            if value is not None:
                self[key] = value
                self.__dict__[key] = value

    def __reduce__(self):
        cls, _, *rest = super().__reduce__()
        return (cls, (self.__dict__.get("hidden"), self.__dict__.get("logits")), *rest)


Pair = collections.namedtuple("Pair", "first second")


class Record:
    def __init__(self, tensor):
        self.name = "x"
        self.tensor = tensor


class Twice:
    __slots__ = ("left", "right")


class Marked(torch.Tensor):
    pass


def objects_dict():
    x, y = some(2, 2), some(3, start=5.0)
    twice = Twice()
    twice.left, twice.right = x, y
    marked = x.clone().as_subclass(Marked)
    ring = Record(y)
    ring.me = ring
    top = torch.max(x, dim=1)
    counts = collections.defaultdict(list)
    counts["c"].append(y)
    items = {"out": ModelOutput(x, y), "pair": Pair(x, y), "record": Record(x),
             "twice": twice, "marked": marked, "ring": ring, "top": top, "counts": counts,
             "queue": collections.deque([x, y]), "plain": Record(None), "value": 1 + 2j}
    expect = Expect()
    expect.tensor("out.hidden", "output.0", x)
    expect.tensor("out.logits", "output.0", y)
    expect.tensor("pair.0", "output.0", x)
    expect.tensor("pair.1", "output.0", y)
    expect.tensor("record.tensor", "output.0", x)
    expect.tensor("twice.left", "output.0", x)
    expect.tensor("twice.right", "output.0", y)
    expect.tensor("marked", "output.0", x)
    expect.tensor("ring.tensor", "output.0", y)
    expect.tensor("top.0", "output.0", top.values)
    expect.tensor("top.1", "output.0", top.indices)
    expect.tensor("counts.c.0", "output.0", y)
    expect.tensor("queue.0", "output.0", x)
    expect.tensor("queue.1", "output.0", y)
    expect.ignored("plain (%s.Record)" % __name__)
    return items, expect


# --- NumPy -----------------------------------------------------------------------------

def numpy_dict():
    a = np.array([[1.5, -2.5, 1e10], [0.1, 3.0, -0.0]], dtype=np.float32)
    items = {
        "a": a, "fortran": np.asfortranarray(a.astype(np.float64)),
        "big": np.array([1, -2, 300], dtype=">i4"), "flags": np.array([True, False]),
        "half": np.array([0.1, 65504], dtype=np.float16), "none": np.zeros((0, 2), np.int64),
        "point": np.array(2.5), "zeros": np.zeros(40, np.float32),
        "again": a, "tensor": some(2),
        "object": np.array([None, 1], dtype=object), "text": np.array(["ab", "c"]),
        "scalar": np.float32(3.5),
    }
    expect = Expect()
    for key in ("a", "fortran", "big", "flags", "half", "none", "point", "zeros", "again",
                "tensor"):
        expect.tensor(key, "output.0", items[key])
    expect.broken("object", "output.0", "unsupported: a NumPy array of 'O8'")
    expect.broken("text", "output.0", "unsupported: a NumPy array of 'U2'")
    expect.ignored("scalar (numpy.%s.multiarray.scalar)" %
                   ("core" if np.__version__ < "2" else "_core"))
    return items, expect


# --- torch_npu -------------------------------------------------------------------------

def fake_torch_npu():
    """torch_npu needs a device; its pickles only need its names."""
    for name in ("torch_npu", "torch_npu.utils", "torch_npu.utils.storage", "torch_npu.npu",
                 "torch_npu.npu._format"):
        sys.modules[name] = types.ModuleType(name)

    def _rebuild_npu_tensor(*args):
        raise RuntimeError("never called")

    _rebuild_npu_tensor.__module__ = "torch_npu.utils.storage"
    _rebuild_npu_tensor.__qualname__ = "_rebuild_npu_tensor"
    sys.modules["torch_npu.utils.storage"]._rebuild_npu_tensor = _rebuild_npu_tensor

    import enum
    Format = enum.IntEnum("Format", {"ND": 2, "NC1HWC0": 3}, module="torch_npu.npu._format")
    sys.modules["torch_npu.npu._format"].Format = Format
    return _rebuild_npu_tensor, Format


class FromNpu:
    def __init__(self, rebuild, tensor, *last):
        storage = tensor._typed_storage() if hasattr(tensor, "_typed_storage") else tensor.storage()
        self.reduced = (rebuild, (storage, tensor.storage_offset(), tuple(tensor.size()),
                                  tensor.stride(), tensor.requires_grad,
                                  collections.OrderedDict()) + last)

    def __reduce_ex__(self, protocol):
        return self.reduced


def npu_dict():
    rebuild, Format = fake_torch_npu()
    x, y = some(2, 3), some(1, 2, 2, 2)
    flags = {"base_sizes_/2/3/": True, "origin_format_/ND": True, "npu_format_/FRACTAL_NZ": True}
    items = {"nz": FromNpu(rebuild, x, 29), "nd": FromNpu(rebuild, x.t(), Format.ND),
             "five": FromNpu(rebuild, y, Format.NC1HWC0), "old": FromNpu(rebuild, x, False),
             "new": FromNpu(torch._utils._rebuild_tensor_v2, x, flags)}
    expect = Expect()
    expect.tensor("nz", "output.0", x, "npu_format 29 FRACTAL_NZ")
    expect.tensor("nd", "output.0", x.t())
    expect.tensor("five", "output.0", y, "npu_format 3 NC1HWC0")
    expect.tensor("old", "output.0", x)
    expect.tensor("new", "output.0", x, "npu_format 29 FRACTAL_NZ")
    return items, expect


# --- what is not read ------------------------------------------------------------------

def unsupported_dict():
    items = {
        "quantised": torch.quantize_per_tensor(some(2, 2), 0.1, 0, torch.qint8),
        "sparse": torch.eye(2).to_sparse(),
        "meta": torch.empty(2, device="meta"),
        "good": some(2),
    }
    expect = Expect()
    expect.broken("quantised", "output.0", "unsupported: torch._utils._rebuild_qtensor")
    expect.broken("sparse", "output.0", "unsupported: torch._utils._rebuild_sparse_tensor")
    expect.broken("meta", "output.0",
                  "unsupported: torch._utils._rebuild_meta_tensor_no_storage")
    expect.tensor("good", "output.0", items["good"])
    if NEW:
        items["conjugate"] = torch.tensor([1 + 2j, 3 - 4j]).conj()
        items["negative"] = torch._neg_view(some(3))
        expect.broken("conjugate", "output.0", "unsupported: a lazy conjugate")
        expect.broken("negative", "output.0", "unsupported: a lazy negation")
    return items, expect
