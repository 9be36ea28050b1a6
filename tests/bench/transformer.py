"""A transformer's dumps with inputs: the reference, and the same model on a device that adds up in another order.

Every layer runs on its own side's inputs, so that noise grows through the model as it does between devices.  A layer's
input is stored as its producer's output, once.  Needs torch.
"""
import json
import math
import os
import struct

import torch
import torch.nn.functional as F

# (width, heads, batch, tokens, blocks) by the size of a pair
SIZES = {"40 MB": (256, 4, 4, 128, 1), "400 MB": (512, 8, 4, 256, 3), "10 GB": (1024, 16, 8, 512, 8)}
HEADER = 1 << 18  # bytes kept free for the header, which is known last
FAULTS = ("none", "eps", "gelu", "half")
CODES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}


def product(x, weight, bias, halves):
    """A Linear; as a convolution, which is fast without a BLAS too.  halves: the sum in two parts."""
    rows = x.reshape(1, -1, x.shape[-1]).transpose(1, 2).contiguous()
    if halves:
        middle = rows.shape[1] // 2
        y = F.conv1d(rows[:, :middle], weight[:, :middle, None]) + F.conv1d(rows[:, middle:], weight[:, middle:, None])
    else:
        y = F.conv1d(rows, weight[:, :, None])
    return y[0].t().reshape(x.shape[:-1] + (-1,)) + bias


def layer_norm(x, weight, bias, eps, other):
    """In the other order of the sums, with a square root and a division instead of rsqrt."""
    if not other:
        return F.layer_norm(x, (x.shape[-1],), weight, bias, eps)
    z = x - x.flip(-1).mean(-1, keepdim=True)
    return z / torch.sqrt((z * z).flip(-1).mean(-1, keepdim=True) + eps) * weight + bias


def softmax(x, other):
    if not other:
        return torch.softmax(x, -1)
    y = torch.exp2((x - x.amax(-1, keepdim=True)) * math.log2(math.e))
    return y / y.flip(-1).sum(-1, keepdim=True)


def gelu(x, other, wrong):
    if wrong:
        return F.gelu(x, approximate="tanh")
    return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476)) if other else F.gelu(x)


class Dump:
    """Layers as they run; tensors go to the file at once."""

    def __init__(self, path, device, dtype):
        self.file, self.device, self.dtype = open(path, "wb"), device, dtype
        self.file.write(b" " * HEADER)
        self.entries, self.layers, self.offset = {}, [], 0
        self.known = {}  # id of a tensor -> its name; the tensors are kept alive by `kept`
        self.kept = {}

    def keep(self, x):
        if id(x) in self.known:
            return self.known[id(x)]
        name = "t%06d" % len(self.entries)
        stored = (x.to(self.dtype) if x.is_floating_point() else x).contiguous()
        data = stored.view(torch.int16).numpy() if stored.dtype == torch.bfloat16 else stored.numpy()
        self.file.write(data.data)
        self.entries[name] = {"dtype": CODES[stored.dtype], "shape": list(x.shape),
                              "data_offsets": [self.offset, self.offset + data.nbytes]}
        self.offset += data.nbytes
        self.known[id(x)], self.kept[id(x)] = name, x
        return name

    def layer(self, name, kind, inputs, output, params=None, **attributes):
        slots = {"input.%d" % i: {"tensor": self.keep(x)} for i, x in enumerate(inputs)}
        slots["output.0"] = {"tensor": self.keep(output)}
        slots.update({"param." + key: {"tensor": self.keep(x)} for key, x in (params or {}).items()})
        self.layers.append({"name": name, "type": kind, "direction": "forward", "call": 0, "attributes": attributes,
                            "slots": slots})
        return output

    def forget(self, *kept):
        """Frees what later layers do not read."""
        self.known = {id(x): self.known[id(x)] for x in kept if id(x) in self.known}
        self.kept = {id(x): x for x in kept}

    def close(self):
        record = {"version": 1, "device": self.device, "framework": "pytorch " + torch.__version__,
                  "layers": self.layers, "complete": True}
        head = {"__metadata__": {"normdiff": json.dumps(record)}, **self.entries}
        text = json.dumps(head).encode()
        assert len(text) + 8 <= HEADER, len(text)
        self.file.seek(0)
        self.file.write(struct.pack("<Q", HEADER - 8) + text)
        self.file.close()


def values(seed, *shape, scale=1.0, dtype=torch.float32):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale
    return x.to(dtype).float()


class Side:
    """One run.  dtype: every result is rounded to it."""

    def __init__(self, dump, other, dtype, size, fault):
        self.dump, self.other, self.dtype, self.size, self.fault = dump, other, dtype, size, fault

    def narrow(self, x):
        return x if self.dtype == torch.float32 else x.to(self.dtype).float()

    def put(self, name, kind, inputs, output, params=None, **attributes):
        return self.dump.layer(name, kind, inputs, self.narrow(output), params, **attributes)

    def linear(self, name, x, out, seed):
        width = x.shape[-1]
        weight = values(seed, out, width, scale=width ** -0.5, dtype=self.dtype)
        bias = values(seed + 1, out, scale=0.02, dtype=self.dtype)
        if self.other and self.fault == name + ".half":
            y = product(x.half().float(), weight.half().float(), bias, self.other).half().float()
        else:
            y = product(x, weight, bias, self.other)
        return self.put(name, "Linear", [x], y, {"weight": weight, "bias": bias}, in_features=width, out_features=out)

    def norm(self, name, x, seed):
        width, eps = x.shape[-1], 1e-5
        weight = 1 + values(seed, width, scale=0.2, dtype=self.dtype)
        weight = self.narrow(weight)
        bias = values(seed + 1, width, scale=0.05, dtype=self.dtype)
        wrong = self.other and self.fault == name + ".eps"
        y = layer_norm(x, weight, bias, 1e-3 if wrong else eps, self.other)
        return self.put(name, "LayerNorm", [x], y, {"weight": weight, "bias": bias}, eps=eps, normalized_shape=[width],
                        elementwise_affine=True)

    def attention(self, name, x, seed):
        width, heads, batch, tokens, _ = self.size

        def split(y):
            return y.view(batch, tokens, heads, -1).transpose(1, 2).contiguous()

        q, k, v = (split(self.linear(name + "." + part, x, width, seed + 2 * i)) for i, part in enumerate("qkv"))
        scores = q @ k.transpose(-1, -2) * (width // heads) ** -0.5
        if self.other:
            half = q.shape[-1] // 2
            scores = (q[..., :half] @ k[..., :half].transpose(-1, -2) + q[..., half:] @ k[..., half:].transpose(-1, -2)
                      ) * (width // heads) ** -0.5
        scores = scores.masked_fill(torch.ones(tokens, tokens, dtype=torch.bool).triu(1), -math.inf)
        scores = self.put(name + ".scores", "Scores", [q, k], scores, scale=(width // heads) ** -0.5, causal=True)
        weights = self.put(name + ".softmax", "Softmax", [scores], softmax(scores, self.other), dim=-1)
        y = weights @ v
        if self.other:
            half = tokens // 2
            y = weights[..., :half] @ v[..., :half, :] + weights[..., half:] @ v[..., half:, :]
        y = self.put(name + ".context", "MatMul", [weights, v], y)
        return self.linear(name + ".o", y.transpose(1, 2).reshape(batch, tokens, width), width, seed + 6)

    def block(self, name, x, seed):
        width = self.size[0]
        y = self.attention(name + ".attn", self.norm(name + ".ln1", x, seed), seed + 2)
        x = self.put(name + ".add1", "Add", [x, y], x + y)
        self.dump.forget(x)
        y = self.linear(name + ".fc1", self.norm(name + ".ln2", x, seed + 10), 4 * width, seed + 12)
        wrong = self.other and self.fault == name + ".act.gelu"
        y = self.put(name + ".act", "GELU", [y], gelu(y, self.other, wrong), approximate="none")
        y = self.linear(name + ".fc2", y, width, seed + 14)
        x = self.put(name + ".add2", "Add", [x, y], x + y)
        self.dump.forget(x)
        return x

    def run(self):
        width, _, batch, tokens, blocks = self.size
        ids = torch.randint(0, 1000, (batch, tokens), generator=torch.Generator().manual_seed(1))
        table = values(2, 1000, width, scale=0.1, dtype=self.dtype)
        x = self.put("wte", "Embedding", [ids], table[ids], {"weight": table}, num_embeddings=1000)
        for i in range(blocks):
            x = self.block("blocks.%d" % i, x, 100 * (i + 1))
        self.norm("ln_f", x, 10)
        self.dump.close()


def write(folder, size, fault="none", dtype=torch.float32):
    """Two paths; the reference is written once.  fault: in the middle block."""
    os.makedirs(folder, exist_ok=True)
    middle = "blocks.%d." % (SIZES[size][4] // 2)
    name = {"none": "", "eps": middle + "ln2.eps", "gelu": middle + "act.gelu", "half": middle + "fc1.half"}[fault]
    paths = [os.path.join(folder, "gpu.dump"), os.path.join(folder, "npu-%s.dump" % fault)]
    with torch.no_grad():
        for path, device in zip(paths, ("cuda:0", "npu:0")):
            if not os.path.exists(path):
                dump = Dump(path, device, dtype)
                Side(dump, device == "npu:0", dtype, SIZES[size], name).run()
    return paths
