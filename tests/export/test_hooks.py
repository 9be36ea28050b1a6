"""The exporter in examples/export against torch itself: run with `python3 tests/export/test_hooks.py`.

Every dump is read by the small reader below, which knows the file format and nothing of the exporter.
Values are compared bit for bit with what torch says. Exit status 77 means that torch is missing.
"""
import collections
import contextlib
import copy
import dataclasses
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
EXPORT = os.path.join(HERE, "..", "..", "examples", "export")
sys.path.insert(0, EXPORT)
sys.dont_write_bytecode = True

warnings.simplefilter("ignore")
try:
    import torch
except ImportError:
    print("skipped: the exporter's tests need torch, which this python3 does not have")
    sys.exit(77)

import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import normdiff_hooks  # noqa: E402
import print_hooks  # noqa: E402
from normdiff_hooks import record  # noqa: E402

TORCH = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
WORDS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
         "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool", "C64": "complex64",
         "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}


class Dump:
    """A normdiff dump: .head, .layers, .tensors. With strict, the data must be covered exactly."""

    def __init__(self, path, strict=True):
        with open(path, "rb") as f:
            data = f.read()
        at = 8 + struct.unpack("<Q", data[:8])[0]
        self.size, self.header_size, self.tensors, self.begins = len(data), at, {}, {}
        header = json.loads(data[8:at].decode())
        self.head = json.loads(header.pop("__metadata__")["normdiff"], parse_constant=None)
        self.layers = self.head.pop("layers")
        end = 0
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            begin, stop = entry["data_offsets"]
            assert begin == end, "%s: hole or overlap before %s" % (path, name)
            end, dtype = stop, getattr(torch, WORDS[entry["dtype"]])
            values = torch.frombuffer(bytearray(data[at + begin:at + stop]), dtype=dtype) if stop > begin \
                else torch.empty(0, dtype=dtype)
            self.tensors[name], self.begins[name] = values.reshape(entry["shape"]), begin
        self.trailing = len(data) - at - end
        assert self.trailing == 0 if strict else self.trailing >= 0, "%s: %d bytes left over" % (path, self.trailing)
        used = {slot["tensor"] for layer in self.layers for slot in layer["slots"].values()}
        assert used <= set(self.tensors), "a slot names a tensor that is not there"

    def layer(self, name, direction="forward", call=0):
        found = [x for x in self.layers if (x["name"], x["direction"], x["call"]) == (name, direction, call)]
        assert len(found) == 1, "%d layers %s %s %d" % (len(found), name, direction, call)
        return found[0]

    def value(self, name, slot, direction="forward", call=0):
        return self.tensors[self.layer(name, direction, call)["slots"][slot]["tensor"]]

    def names(self, direction="forward"):
        return [(x["name"], x["call"]) for x in self.layers if x["direction"] == direction]


def bits(tensor):
    """dtype, shape and bytes: two tensors are the same if these are."""
    t = tensor.detach().resolve_conj().contiguous()
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]
    return str(t.dtype), tuple(t.shape), t.reshape(-1).view(width).tolist() if t.numel() else []


# ---- models --------------------------------------------------------------------------------------

class BasicBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.layer1 = nn.Sequential(BasicBlock(8), BasicBlock(8))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.avgpool(self.layer1(self.relu(self.bn1(self.conv1(x))))), 1))


def resnet():
    torch.manual_seed(1)
    try:
        import torchvision
        return torchvision.models.resnet18()
    except Exception:
        return ResNet()


class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(16, eps=1e-6), nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 16))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y)[0]
        return x + self.mlp(self.norm2(x))


class LlamaRMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.rand(width) + 0.5), 1e-6

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * F.relu(wide.to(x.dtype))  # a function call inside a leaf


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.post = LlamaRMSNorm(16), LlamaRMSNorm(16)
        self.qkv, self.gate, self.up, self.down = [nn.Linear(16, n, bias=False) for n in (48, 32, 32, 16)]
        self.down = nn.Linear(32, 16, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + F.softmax(q @ k.transpose(-1, -2) / 4, dim=-1) @ v
        y = self.post(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Lambda(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Answer:
    logits: object
    hidden: object = None
    extra: object = None


# ---- tests ---------------------------------------------------------------------------------------

class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "gpu.dump")
        torch.manual_seed(0)

    def tearDown(self):
        self.folder.cleanup()

    def same(self, one, other):
        self.assertEqual(bits(one), bits(other))

    def dump(self, model, *args, **options):
        with record(model, self.path, **options):
            model(*args)
        return Dump(self.path)


def seen_by_torch(model, *args):
    """(name, inputs, output) of every leaf call, from hooks that are the test's own."""
    seen, begun, handles = [], [], []
    for name, module in model.named_modules():
        if not list(module.children()):
            handles.append(module.register_forward_pre_hook(
                lambda m, args: begun.append([a.detach().clone() for a in args])))
            handles.append(module.register_forward_hook(
                lambda m, args, out, name=name: seen.append((name, begun.pop(), out.detach().clone()))))
    with torch.no_grad():
        model(*args)
    for handle in handles:
        handle.remove()
    return seen


class Modules(Case):
    def test_resnet_with_in_place_relu_is_recorded_as_it_ran(self):
        model, x = resnet().eval(), torch.randn(2, 3, 64, 64)
        with torch.no_grad():
            dump = self.dump(model, x)
        seen, calls = seen_by_torch(model, x), collections.Counter()
        self.assertEqual([name for name, _ in dump.names()], [name for name, _, _ in seen])
        for name, inputs, output in seen:
            self.same(dump.value(name, "input.0", call=calls[name]), inputs[0])
            self.same(dump.value(name, "output.0", call=calls[name]), output)
            calls[name] += 1
        self.assertGreater(max(calls.values()), 1)
        self.same(dump.value("relu", "input.0"), dump.value("bn1", "output.0"))
        self.assertNotEqual(bits(dump.value("relu", "input.0")), bits(dump.value("relu", "output.0")))
        for name, p in model.named_parameters():
            layer, own = name.rsplit(".", 1)
            self.same(dump.value(layer, "param." + own), p)

    def test_transformer_attributes_parameters_and_attention(self):
        model, x = nn.Sequential(EncoderBlock(), EncoderBlock()), torch.randn(5, 2, 16)
        dump = self.dump(model, x)
        norm = dump.layer("0.norm1")
        self.assertEqual((norm["type"], norm["attributes"]["eps"]), ("LayerNorm", 1e-6))
        self.assertEqual(norm["attributes"]["normalized_shape"], [16])
        self.assertIs(norm["attributes"]["elementwise_affine"], True)
        self.assertIs(norm["attributes"]["training"], True)
        self.assertEqual(dump.layer("0.mlp.2")["attributes"]["p"], 0.1)
        attention = dump.layer("1.attention")  # has a child, which never runs: it is no container
        self.assertNotIn("container", attention)
        self.same(dump.value("1.attention", "param.in_proj_weight"), model[1].attention.in_proj_weight)
        self.same(dump.value("1.attention", "param.out_proj.weight"), model[1].attention.out_proj.weight)
        self.assertIn("output.1", attention["slots"])
        self.assertEqual([name for name, _ in dump.names()][:3], ["0.norm1", "0.attention", "0.norm2"])
        self.assertNotIn("0.mlp", dict(dump.names()))

    def test_dropout_and_gradients_are_what_they_are_without_hooks(self):
        model, x = EncoderBlock(), torch.randn(5, 2, 16)
        plain, results = copy.deepcopy(model), []
        for m in (plain, model):
            torch.manual_seed(7)
            with contextlib.ExitStack() as stack:
                if m is model:
                    stack.enter_context(record(m, self.path, backward=True, functional=True, containers=True))
                y = m(x)
                y.square().sum().backward()
            results.append([y] + [p.grad for p in m.parameters()])
        for one, other in zip(*results):
            self.same(one, other)

    def test_rms_norm_and_functions_outside_of_leaves(self):
        model, x = LlamaBlock(), torch.randn(2, 5, 16)
        dump = self.dump(nn.Sequential(model), x, functional=True)
        self.assertEqual(dump.names(), [("0.norm", 0), ("0.qkv", 0), ("0.softmax", 0), ("0.post", 0), ("0.gate", 0),
                                        ("0.silu", 0), ("0.up", 0), ("0.down", 0)])
        self.assertEqual(dump.layer("0.norm")["attributes"]["variance_epsilon"], 1e-6)
        self.assertEqual(dump.layer("0.norm")["type"], "LlamaRMSNorm")
        self.same(dump.value("0.norm", "param.weight"), model.norm.weight)
        self.assertEqual(dump.layer("0.softmax")["attributes"]["dim"], -1)
        self.same(dump.value("0.softmax", "output.0"), torch.softmax(dump.value("0.softmax", "input.0"), -1))
        self.same(dump.value("0.silu", "input.0"), dump.value("0.gate", "output.0"))
        self.assertEqual(F.softmax.__module__, "torch.nn.functional")
        self.assertNotIn("0.softmax", dict(self.dump(nn.Sequential(model), x).names()))

    def test_functional_norms_have_parameters_state_and_attributes(self):
        w, b, mean, var = torch.rand(4), torch.rand(4), torch.zeros(4), torch.ones(4)
        x = torch.randn(8, 4)

        def work(x):
            y = F.layer_norm(x, [4], weight=w, eps=1e-3)
            y = F.batch_norm(y, mean, var, w, b, True, 0.5)
            return F.gelu(F.group_norm(y, 2), approximate="tanh") if TORCH >= (1, 12) else F.gelu(F.group_norm(y, 2))

        with record(nn.Sequential(nn.Identity()), self.path, functional=True):
            work(x)
        dump = Dump(self.path)
        self.assertEqual([name for name, _ in dump.names()], ["layer_norm", "batch_norm", "group_norm", "gelu"])
        norm = dump.layer("layer_norm")
        self.assertEqual((norm["type"], norm["attributes"]["eps"]), ("LayerNorm", 1e-3))
        self.assertEqual(set(norm["slots"]), {"input.0", "output.0", "param.weight"})
        batch = dump.layer("batch_norm")
        self.assertEqual((batch["attributes"]["training"], batch["attributes"]["momentum"]), (True, 0.5))
        self.same(dump.value("batch_norm", "state.running_mean"), torch.zeros(4))
        self.same(dump.value("batch_norm", "state_after.running_mean"), mean)
        self.assertNotEqual(mean.tolist(), [0] * 4)
        self.assertEqual(dump.layer("group_norm")["attributes"]["eps"], 1e-5)
        if TORCH >= (1, 12):
            self.assertEqual(dump.layer("gelu")["attributes"]["approximate"], "tanh")

    def test_a_module_called_twice_has_two_calls(self):
        shared = nn.Linear(4, 4)
        model, x = nn.Sequential(shared, nn.Tanh(), shared), torch.randn(3, 4)
        dump = self.dump(model, x)
        self.assertEqual(dump.names(), [("0", 0), ("1", 0), ("0", 1)])
        self.same(dump.value("0", "output.0", call=1), model(x))
        self.same(dump.value("0", "output.0", call=0), shared(x))
        self.assertEqual(dump.layer("0")["slots"]["param.weight"], dump.layer("0", call=1)["slots"]["param.weight"])

    def test_batch_norm_state_before_and_after_the_step(self):
        norm, x = nn.BatchNorm1d(4, momentum=0.3), torch.randn(8, 4) + 2
        before = {name: b.clone() for name, b in norm.named_buffers()}
        dump = self.dump(norm, x)
        for name, value in norm.named_buffers():
            self.same(dump.value("BatchNorm1d", "state." + name), before[name])
            self.same(dump.value("BatchNorm1d", "state_after." + name), value)
            self.assertNotEqual(bits(value), bits(before[name]))
        self.assertEqual(dump.value("BatchNorm1d", "state_after.num_batches_tracked").item(), 1)
        self.assertEqual(dump.layer("BatchNorm1d")["attributes"]["momentum"], 0.3)
        slots = self.dump(norm.eval(), x).layer("BatchNorm1d")["slots"]
        self.assertEqual(slots["state.running_var"], slots["state_after.running_var"])

    def test_containers_by_choice(self):
        model, x = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2)), torch.randn(3, 4)
        dump = self.dump(model, x, containers=True)
        self.assertEqual([n for n, _ in dump.names()], ["0.0", "0.1", "0", "1", "Sequential"])
        self.assertEqual([n["name"] for n in dump.layers if n.get("container")], ["0", "Sequential"])
        self.same(dump.value("Sequential", "output.0"), model(x))
        self.assertEqual([n for n, _ in self.dump(model, x).names()], ["0.0", "0.1", "1"])

    def test_filters(self):
        model, x = nn.Sequential(EncoderBlock(), EncoderBlock()), torch.randn(5, 2, 16)
        names = lambda only: [n for n, _ in self.dump(model, x, only=only).names()]
        self.assertEqual(names("*.norm1"), ["0.norm1", "1.norm1"])
        self.assertEqual(names(["0.norm?", "1.mlp.0"]), ["0.norm1", "0.norm2", "1.mlp.0"])
        self.assertEqual(names(lambda name, module: isinstance(module, nn.GELU)), ["0.mlp.1", "1.mlp.1"])
        self.assertEqual(names("1"), ["1"])  # a block whose inside is not asked for is one layer

    def test_a_filter_that_fails_leaves_nothing_behind(self):
        model = nn.Sequential(nn.Linear(2, 2))
        with self.assertRaises(ZeroDivisionError):
            record(model, self.path, only=lambda name, module: name == "Sequential" or 1 / 0).__enter__()
        self.assertFalse(any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()))
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_parameters_can_be_left_out(self):
        dump = self.dump(nn.Sequential(nn.Linear(4, 4)), torch.randn(2, 4), params=False)
        self.assertEqual(set(dump.layer("0")["slots"]), {"input.0", "output.0"})

    def test_a_parametrized_layer_is_a_layer_of_its_own_type(self):
        model, x = nn.Sequential(nn.utils.parametrizations.orthogonal(nn.Linear(4, 4))), torch.randn(2, 4)
        dump = self.dump(model, x)
        self.assertEqual(([n for n, _ in dump.names()], dump.layer("0")["type"]), (["0"], "Linear"))
        self.same(dump.value("0", "output.0"), model(x))

    def test_keyword_inputs_stand_where_forward_names_them(self):
        class Gate(nn.Module):
            def forward(self, x, mask=None, scale=None):
                return x * scale
        gate, x, s = Gate(), torch.randn(3), torch.rand(3)
        with record(gate, self.path):
            gate(x, scale=s)
            gate(x, None, s)
        dump = Dump(self.path)
        self.same(dump.value("Gate", "input.2", call=1), s)
        if TORCH >= (2, 0):
            self.same(dump.value("Gate", "input.2"), s)
            self.assertEqual(set(dump.layer("Gate")["slots"]), {"input.0", "input.2", "output.0"})

    @unittest.skipIf(TORCH < (2, 1), "this torch does not tell that it is inside backward")
    def test_a_checkpointed_layer_is_marked_as_recomputed(self):
        from torch.utils.checkpoint import checkpoint
        layer, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(2, 4, requires_grad=True)
        model = Lambda(lambda x: checkpoint(layer, x, use_reentrant=True))
        model.layer = layer
        with record(model, self.path, backward=True):
            model(x).sum().backward()
        dump = Dump(self.path)
        self.assertNotIn("recompute", dump.layer("layer.0"))
        self.assertIs(dump.layer("layer.0", call=1)["recompute"], True)
        self.same(dump.value("layer.0", "grad.weight", "backward", 1), layer[0].weight.grad)


class Tensors(Case):
    def test_dtypes_are_kept(self):
        words = ["float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "complex64"]
        values = [torch.tensor([1, 2, 3]).to(getattr(torch, word)) / 1 if "float" in word or "complex" in word
                  else torch.tensor([1, 2, 3]).to(getattr(torch, word)) for word in words]
        values += [torch.tensor([True, False, True]), torch.tensor(2.5), torch.empty(0, 3), torch.tensor(-0.0),
                   torch.tensor([float("nan"), float("-inf")])]
        values += [torch.tensor([0.5, 448.0]).to(getattr(torch, word)) for word in ("float8_e4m3fn", "float8_e5m2")
                   if hasattr(torch, word)]
        dump = self.dump(Lambda(lambda: tuple(values)))
        for n, value in enumerate(values):
            self.same(dump.value("Lambda", "output.%d" % n), value)

    def test_what_safetensors_cannot_say_is_stored_wider_or_noted(self):
        wide = torch.randn(3, dtype=torch.complex128)
        sparse = torch.eye(3).to_sparse()
        quantised = torch.quantize_per_tensor(torch.tensor([0.1, 0.2]), 0.1, 0, torch.quint8)
        meta = torch.empty(2, device="meta")
        dump = self.dump(Lambda(lambda: (wide, sparse, quantised, meta, wide.conj())))
        layer = dump.layer("Lambda")
        self.same(dump.value("Lambda", "output.0"), torch.view_as_real(wide))
        self.assertIn("complex128", layer["slots"]["output.0"]["note"])
        self.same(dump.value("Lambda", "output.1"), torch.eye(3))
        self.same(dump.value("Lambda", "output.2"), quantised.dequantize())
        self.assertNotIn("output.3", layer["slots"])
        self.assertIn("output.3", layer["skipped"])
        self.same(dump.value("Lambda", "output.4")[:, 1], -wide.imag)

    @unittest.skipIf(not hasattr(torch, "float8_e4m3fnuz"), "no float8_e4m3fnuz")
    def test_a_rare_float_is_widened_and_says_so(self):
        value = torch.tensor([0.5, 3.0]).to(torch.float8_e4m3fnuz)
        dump = self.dump(Lambda(lambda: value))
        self.same(dump.value("Lambda", "output.0"), value.float())
        self.assertEqual(dump.layer("Lambda")["slots"]["output.0"]["dtype"], "float8_e4m3fnuz")

    def test_views_are_stored_in_logical_order(self):
        base = torch.arange(24.).reshape(2, 3, 4)
        views = base.transpose(0, 2), base[:, 1], base[0, 0].expand(3, 4), base.flip(0)
        dump = self.dump(Lambda(lambda: views))
        for n, view in enumerate(views):
            self.same(dump.value("Lambda", "output.%d" % n), view)

    def test_channels_last_is_named_and_stored_in_logical_order(self):
        conv, x = nn.Conv2d(3, 8, 3), torch.randn(2, 3, 6, 6)
        conv, x = conv.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        dump = self.dump(conv, x)
        self.same(dump.value("Conv2d", "input.0"), x)
        self.assertEqual(dump.layer("Conv2d")["slots"]["input.0"]["device_layout"], "channels_last")
        self.assertNotIn("device_layout", dump.layer("Conv2d")["slots"]["param.bias"])

    def test_the_layout_on_an_npu_is_named(self):
        tensor, npu = types.SimpleNamespace(device=types.SimpleNamespace(type="npu")), types.ModuleType("torch_npu")
        npu.get_npu_format = lambda t: 29
        with unittest.mock.patch.dict(sys.modules, torch_npu=npu):
            self.assertEqual(normdiff_hooks.device_layout(tensor), "FRACTAL_NZ")
            npu.get_npu_format = lambda t: 2  # ND: nothing to say
            self.assertIsNone(normdiff_hooks.device_layout(tensor))
            del npu.get_npu_format
            self.assertIsNone(normdiff_hooks.device_layout(tensor))

    def test_nested_outputs(self):
        a, b, c, d, e = [torch.full((2,), float(k)) for k in range(5)]
        cases = [((a, (b, [c, None, d]), None, "word", e), {"0": a, "1.0": b, "1.1": c, "1.3": d, "4": e}),
                 ({"x": a, "y": {"z": b}}, {"0": a, "1.0": b}),
                 (Answer(a, (b, c)), {"0": a, "1.0": b, "1.1": c}),
                 (Pair(a, b), {"0": a, "1": b}),
                 ([a, b], {"0": a, "1": b}),
                 (None, {})]
        for value, expected in cases:
            dump = self.dump(Lambda(lambda: value))
            slots = dump.layer("Lambda")["slots"]
            self.assertEqual(set(slots), {"output." + at for at in expected})
            for at, tensor in expected.items():
                self.same(dump.value("Lambda", "output." + at), tensor)

    def test_nothing_is_stored_twice(self):
        x = torch.randn(64, 64)
        model = nn.Sequential(*[nn.Identity() for _ in range(20)], nn.Linear(64, 64), nn.Flatten(0), nn.Dropout(0.0))
        dump = self.dump(model, x)
        self.assertEqual(len(dump.tensors), 5)  # x, the product, weight, bias, and the product flattened
        self.assertLess(dump.size - dump.header_size, 4 * (4 * 64 * 64 + 64) + 64)
        self.assertLess(dump.header_size, 16 * 1024)
        self.assertEqual(dump.layer("20")["slots"]["input.0"], dump.layer("0")["slots"]["input.0"])

    def test_equal_bytes_of_another_type_or_shape_are_another_tensor(self):
        values = torch.zeros(4), torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32), torch.tensor([-0.0] * 4)
        dump = self.dump(Lambda(lambda: values))
        for n, value in enumerate(values):
            self.same(dump.value("Lambda", "output.%d" % n), value)

    def test_memory_that_is_used_again_is_not_taken_for_the_same_tensor(self):
        buffer = torch.zeros(4)
        model = Lambda(lambda k: buffer.data.copy_(torch.full((4,), float(k))))  # .data: no version is counted
        with record(model, self.path):
            for k in range(3):
                model(k)
        for k in range(3):
            self.assertEqual(Dump(self.path).value("Lambda", "output.0", call=k).tolist(), [k] * 4)

    def test_every_tensor_is_aligned_to_its_element_size(self):
        values = torch.ones(3, dtype=torch.bool), torch.ones(3), torch.ones(1, dtype=torch.int8), \
            torch.ones(3, dtype=torch.float16), torch.ones(2, dtype=torch.float64)
        dump = self.dump(Lambda(lambda: values))
        self.assertEqual(dump.header_size % 64, 0)
        for name, value in dump.tensors.items():
            self.assertEqual(dump.begins[name] % value.element_size(), 0, name)
        self.assertTrue(any(name.startswith("_pad") for name in dump.tensors))

    def test_the_official_package_opens_it(self):
        try:
            from safetensors import safe_open
        except ImportError:
            self.skipTest("the safetensors package is not installed")
        values = torch.ones(3, dtype=torch.bool), torch.randn(3), torch.randn(2).bfloat16(), torch.empty(0)
        with record(Lambda(lambda: values + (torch.randn(2, dtype=torch.complex64),)), self.path) as r:
            r.model()
            for _ in (0, 1):  # while it is being written, and when it is finished
                dump = Dump(self.path)
                with safe_open(self.path, "pt") as f:
                    self.assertEqual(set(f.keys()), set(dump.tensors))
                    for name in f.keys():
                        self.same(f.get_tensor(name), dump.tensors[name])
                r.__exit__(None, None, None)


class Gradients(Case):
    def test_gradients_of_each_layer(self):
        linear, norm, x = nn.Linear(4, 6), nn.BatchNorm1d(6), torch.randn(5, 4, requires_grad=True)
        model = nn.Sequential(linear, norm, nn.ReLU(inplace=True))
        with record(model, self.path, backward=True) as r:
            model(x).square().sum().backward()
        dump, y = Dump(self.path), linear(x)
        out = F.batch_norm(y, None, None, norm.weight, norm.bias, True)
        grads = torch.autograd.grad(F.relu(out).square().sum(), (x, y, out))
        self.same(dump.value("0", "output.0", "backward"), grads[0])
        self.same(dump.value("1", "output.0", "backward"), grads[1])
        self.same(dump.value("0", "input.0", "backward"), grads[1])
        self.same(dump.value("1", "input.0", "backward"), grads[2])
        self.same(dump.value("2", "output.0", "backward"), grads[2])
        self.assertEqual(dump.names("backward"), [("2", 0), ("1", 0), ("0", 0)])
        self.same(dump.value("0", "grad.weight", "backward"), linear.weight.grad)
        self.same(dump.value("1", "grad.bias", "backward"), norm.bias.grad)

    def test_resnet_with_in_place_operations_trains_as_before(self):
        plain, x, y = resnet().train(), torch.randn(4, 3, 64, 64), torch.tensor([1, 2, 3, 4])
        model = copy.deepcopy(plain)
        F.cross_entropy(plain(x), y).backward()
        with record(model, self.path, backward=True):
            F.cross_entropy(model(x), y).backward()
        dump = Dump(self.path)
        for (name, p), (_, q) in zip(model.named_parameters(), plain.named_parameters()):
            layer, own = name.rsplit(".", 1)
            self.same(p.grad, q.grad)
            self.same(dump.value(layer, "grad." + own, "backward"), q.grad)
        relu = [n for n in dump.names("backward") if n[0] == "layer1.0.relu"]
        self.assertEqual(relu, [("layer1.0.relu", 1), ("layer1.0.relu", 0)])
        self.assertEqual(sorted(dump.names()), sorted(dump.names("backward")))
        logits = dump.value("fc", "output.0").requires_grad_()
        grad, = torch.autograd.grad(F.cross_entropy(logits, y), logits)
        self.same(dump.value("fc", "input.0", "backward"), grad)

    def test_a_forward_without_backward_has_no_backward_layers(self):
        model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        with record(model, self.path, backward=True):
            model(torch.randn(2, 3)).sum().backward()
            model.eval()
            with torch.no_grad():
                model(torch.randn(2, 3))
            model(torch.randn(2, 3))
        dump = Dump(self.path)
        self.assertEqual((len(dump.names()), dump.names("backward")), (6, [("1", 0), ("0", 0)]))

    def test_only_this_modules_share_of_a_gradient_is_recorded(self):
        """x feeds two layers: each layer's output.0 is what it sent back, not the sum."""
        class Fork(nn.Module):
            def __init__(self):
                super().__init__()
                self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 3)

            def forward(self, x):
                x = x * 1
                return self.left(x) + self.right(x)
        model, x = Fork(), torch.randn(2, 3, requires_grad=True)
        with record(model, self.path, backward=True):
            model(x).sum().backward()
        dump, ones = Dump(self.path), torch.ones(2, 3)
        self.same(dump.value("left", "output.0", "backward"), ones @ model.left.weight)
        self.same(dump.value("right", "output.0", "backward"), ones @ model.right.weight)

    def test_an_input_used_twice_gets_the_sum(self):
        model, x = Lambda(lambda x: x * x), torch.randn(4, requires_grad=True)
        with record(model, self.path, backward=True):
            model(x * 1).sum().backward()
        self.same(Dump(self.path).value("Lambda", "output.0", "backward"), 2 * x)

    def test_gradient_is_not_followed_past_an_input(self):
        """y comes from x outside of the module, so what y sends to x is no work of the module's."""
        both, last = Lambda(lambda x, y: x + y), Lambda(lambda x, y: y)
        for module, expected in ((both, {"output.0": [1, 1], "output.1": [1, 1]}), (last, {})):
            x = torch.ones(2, requires_grad=True) * 1
            with record(module, self.path, backward=True):
                module(x, 5 * x).sum().backward()
            slots = Dump(self.path).layer("Lambda", "backward")["slots"]
            self.assertEqual({slot: Dump(self.path).value("Lambda", slot, "backward").tolist()
                              for slot in slots if slot.startswith("output")}, expected)

    def test_parts_of_one_tensor_keep_their_own_gradients(self):
        model = nn.Sequential(Lambda(lambda x: (x * 1).chunk(2, 1)), Lambda(lambda pair: 3 * pair[1] + 2 * pair[0]))
        with record(model, self.path, backward=True):
            model(torch.randn(2, 4, requires_grad=True)).sum().backward()
        dump, ones = Dump(self.path), torch.ones(2, 2)
        for layer, slot in (("0", "input.0"), ("1", "output.0.0")):
            self.same(dump.value(layer, slot, "backward"), 2 * ones)
        for layer, slot in (("0", "input.1"), ("1", "output.0.1")):
            self.same(dump.value(layer, slot, "backward"), 3 * ones)
        self.same(dump.value("0", "output.0", "backward"), torch.tensor([[2., 2, 3, 3]] * 2))

    def test_a_second_backward_pass_is_another_call(self):
        model = nn.Linear(3, 3)
        with record(model, self.path, backward=True):
            loss = model(torch.randn(2, 3)).sum()
            loss.backward(retain_graph=True)
            (2 * loss).backward()
        dump = Dump(self.path)
        self.assertEqual(dump.names("backward"), [("Linear", 0), ("Linear", 1)])
        self.same(dump.value("Linear", "input.0", "backward", 1), 2 * torch.ones(2, 3))
        self.same(dump.value("Linear", "grad.bias", "backward"), torch.tensor([6.] * 3))

    def test_gradients_that_were_there_before_have_a_layer_too(self):
        model = nn.Linear(3, 3)
        model(torch.randn(2, 3)).sum().backward()
        with record(model, self.path, backward=True), torch.no_grad():
            model(torch.randn(2, 3))
        dump = Dump(self.path)
        self.assertEqual(set(dump.layer("Linear", "backward")["slots"]), {"grad.weight", "grad.bias"})
        self.same(dump.value("Linear", "grad.weight", "backward"), model.weight.grad)

    def test_two_calls_of_one_module_are_told_apart(self):
        shared = nn.Linear(3, 3)
        model, x = nn.Sequential(shared, nn.Tanh(), shared), torch.randn(2, 3)
        with record(model, self.path, backward=True):
            model(x).sum().backward()
        dump = Dump(self.path)
        self.assertEqual(dump.names("backward"), [("0", 1), ("1", 0), ("0", 0)])
        self.same(dump.value("0", "input.0", "backward", 1), torch.ones(2, 3))
        self.same(dump.value("0", "grad.weight", "backward", 1), shared.weight.grad)

    def test_backward_after_the_block_is_ignored(self):
        model = nn.Linear(3, 3)
        with record(model, self.path, backward=True):
            loss = model(torch.randn(2, 3)).sum()
        size = os.path.getsize(self.path)
        loss.backward()
        self.assertEqual(os.path.getsize(self.path), size)
        self.assertEqual(Dump(self.path).names("backward"), [])


class Files(Case):
    def test_the_head_says_what_ran(self):
        torch.manual_seed(1234)
        npu = types.ModuleType("torch_npu")
        npu.__version__ = "2.1.0"
        with unittest.mock.patch.dict(sys.modules, torch_npu=npu):
            with record(nn.Linear(2, 2), self.path, parallel={"tp": 2, "tp_rank": 1}) as r:
                r.model(torch.ones(1, 2))
                r.loss = torch.tensor(2.5, requires_grad=True)
        self.assertEqual(Dump(self.path).head, {
            "version": 1, "device": "cpu", "framework": "pytorch %s, torch_npu 2.1.0" % torch.__version__,
            "model": "Linear", "seed": 1234, "deterministic": False, "autocast": None, "step": None, "rank": None,
            "loss": 2.5, "complete": True, "parallel": {"tp": 2, "tp_rank": 1}})

    def test_deterministic_and_autocast_are_recorded(self):
        torch.use_deterministic_algorithms(True)
        try:
            with record(nn.Linear(2, 2), self.path) as r, torch.autocast("cpu", dtype=torch.bfloat16):
                r.model(torch.ones(1, 2))
        finally:
            torch.use_deterministic_algorithms(False)
        dump = Dump(self.path)
        self.assertEqual((dump.head["deterministic"], dump.head["autocast"]), (True, "bfloat16"))
        self.assertEqual(dump.value("Linear", "output.0").dtype, torch.bfloat16)

    def test_a_dump_under_way_knows_what_its_first_layer_knew(self):
        model = Lambda(lambda x: x)  # without parameters, so without a device to begin with
        with record(model, self.path):
            self.assertIsNone(Dump(self.path).head["device"])
            with torch.autocast("cpu", dtype=torch.bfloat16):
                model(torch.ones(1))
            head = Dump(self.path).head
        self.assertEqual((head["device"], head["autocast"], head["complete"]), ("cpu", "bfloat16", False))

    def test_numbers_that_json_cannot_hold_are_words(self):
        model = Lambda(lambda: torch.ones(1))
        model.low, model.high, model.none = float("-inf"), float("inf"), float("nan")
        model.pairs, model.long, model.kind = [(1, 2), (3, 4)], list(range(1000)), torch.float16
        with record(model, self.path) as r:
            model()
            r.loss = float("nan")
        dump = Dump(self.path)
        found = dump.layer("Lambda")["attributes"]
        self.assertEqual(found, {"training": True, "low": "-inf", "high": "inf", "none": "nan",
                                 "pairs": [[1, 2], [3, 4]], "kind": "float16"})
        self.assertEqual(dump.head["loss"], "nan")

    def test_the_file_is_whole_after_every_layer(self):
        with record(nn.Linear(2, 2), self.path) as r:
            sizes = [os.path.getsize(self.path)]
            self.assertEqual(Dump(self.path).layers, [])
            for k in range(400):  # enough to outgrow the first header
                r.model(torch.full((1, 2), float(k)))
                if k % 20 == 0:
                    dump = Dump(self.path)
                    self.assertEqual((len(dump.layers), dump.head["complete"]), (k + 1, False))
                    self.assertEqual(dump.value("Linear", "input.0", call=k).tolist(), [[k, k]])
                    sizes.append(os.path.getsize(self.path))
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreater(sizes[-1], 2 * sizes[0])
        dump = Dump(self.path)
        self.assertEqual((len(dump.layers), dump.head["complete"]), (400, True))
        self.assertEqual(os.listdir(self.folder.name), ["gpu.dump"])

    def test_a_large_dump_keeps_its_header_in_place(self):
        model, x = nn.Linear(8, 8), torch.randn(1 << 18, 8)
        with record(model, self.path, backward=True) as r:
            loss = model(x).sum()
            header = Dump(self.path).header_size
            loss.backward()
            r.loss = loss
        dump = Dump(self.path)
        self.assertEqual(dump.header_size, header)
        self.assertIs(dump.head["complete"], True)
        self.same(dump.value("Linear", "grad.weight", "backward"), model.weight.grad)

    def test_names_with_odd_characters(self):
        model = nn.Sequential()
        model.add_module('quote " and \\ and \u6807', nn.ReLU())
        self.assertEqual(self.dump(model, torch.ones(2)).names(), [('quote " and \\ and \u6807', 0)])

    def test_an_exception_leaves_a_partial_dump_and_no_hooks(self):
        def fail(x):
            raise FloatingPointError("loss is nan\nsecond line")
        model = nn.Sequential(nn.Linear(2, 2), Lambda(fail), nn.Linear(2, 2))
        with self.assertRaises(FloatingPointError):
            with record(model, self.path, functional=True, backward=True):
                model(torch.ones(1, 2))
        dump = Dump(self.path)
        self.assertIs(dump.head["complete"], False)
        self.assertEqual(dump.head["error"], "FloatingPointError: loss is nan")
        self.assertEqual(dump.names(), [("0", 0)])
        self.assertFalse(any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()))
        self.assertEqual(F.softmax.__module__, "torch.nn.functional")

    def test_a_model_is_usable_after_a_caught_exception(self):
        def fail(x):
            if x.sum() > 0:
                raise ValueError
            return x
        model = nn.Sequential(nn.Sequential(Lambda(fail)), nn.Identity())
        with record(model, self.path) as r:
            with contextlib.suppress(ValueError):
                model(torch.ones(2))
            model(-torch.ones(2))
            self.assertEqual(r.calls, [])
        self.assertEqual(Dump(self.path).names(), [("0.0", 0), ("1", 0)])

    def test_a_model_that_catches_its_own_exceptions(self):
        def fail(x):
            raise ValueError

        class Try(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = Lambda(fail), nn.ReLU()

            def forward(self, x):
                with contextlib.suppress(ValueError):
                    return self.first(x)
                return self.second(x)
        dump = self.dump(nn.Sequential(Try()), torch.ones(2), containers=True)
        self.assertEqual([n for n, _ in dump.names()], ["0.second", "0", "Sequential"])

    def test_a_path_that_cannot_be_written_fails_before_the_model_runs(self):
        model = nn.Linear(2, 2)
        with self.assertRaises(OSError):
            record(model, os.path.join(self.path, "no", "such", "folder")).__enter__()
        self.assertFalse(model._forward_hooks or model._forward_pre_hooks)


class Steps(Case):
    def test_steps_in_one_block(self):
        model, values = nn.BatchNorm1d(2), torch.randn(3, 4, 2)
        with record(model, self.path, step=5, backward=True) as r:
            for k in range(3):
                model.zero_grad(set_to_none=True)
                loss = model(values[k]).square().sum()
                loss.backward()
                r.loss = loss
                r.step()
        self.assertEqual(sorted(os.listdir(self.path)), ["step5", "step6", "step7"])
        for k in range(3):
            dump = Dump(os.path.join(self.path, "step%d" % (5 + k), "rank0.dump"))
            self.assertEqual((dump.head["step"], dump.head["rank"], dump.head["complete"]), (5 + k, 0, True))
            self.same(dump.value("BatchNorm1d", "input.0"), values[k])
            self.assertEqual(dump.value("BatchNorm1d", "state.num_batches_tracked").item(), k)
            self.assertEqual(dump.names("backward"), [("BatchNorm1d", 0)])
            self.assertIn("grad.weight", dump.layer("BatchNorm1d", "backward")["slots"])
        self.assertEqual(dump.head["loss"], float(loss))

    def test_steps_by_successive_calls(self):
        for k in range(2):
            with record(nn.Identity(), self.path, step=k) as r:
                r.model(torch.full((1,), float(k)))
        self.assertEqual(Dump(os.path.join(self.path, "step1", "rank0.dump")).value("Identity", "input.0").item(), 1)

    def test_a_step_without_a_number_is_refused(self):
        with record(nn.Identity(), self.path) as r:
            with self.assertRaisesRegex(ValueError, "step=0"):
                r.step()

    def test_a_rank_of_several_writes_its_own_file(self):
        code = "import torch, normdiff_hooks as n, sys\nm = torch.nn.Identity()\n" \
               "with n.record(m, sys.argv[1]): m(torch.ones(1))"
        for rank in "01":
            run(code, self.path, RANK=rank, WORLD_SIZE="2")
        for rank in (0, 1):
            self.assertEqual(Dump(os.path.join(self.path, "step0", "rank%d.dump" % rank)).head["rank"], rank)
        alone = os.path.join(self.folder.name, "alone.dump")
        run(code, alone, RANK="0", WORLD_SIZE="1")
        self.assertIsNone(Dump(alone).head["rank"])

    @unittest.skipIf(not torch.distributed.is_available(), "torch without torch.distributed")
    def test_torch_distributed_gives_the_rank(self):
        code = "import torch, normdiff_hooks as n, sys\nm = torch.nn.Identity()\n" \
               "torch.distributed.init_process_group('gloo', init_method='file://' + sys.argv[1] + '.rendezvous'," \
               " rank=0, world_size=1)\nwith n.record(m, sys.argv[1]): m(torch.ones(1))"
        run(code, self.path)
        self.assertEqual(Dump(os.path.join(self.path, "step0", "rank0.dump")).head["rank"], 0)


def run(code, *args, **environment):
    """Runs code in a process of its own, and returns its exit status."""
    env = dict(os.environ, PYTHONPATH=EXPORT, PYTHONDONTWRITEBYTECODE="1", **environment)
    for name in {"RANK", "WORLD_SIZE"} - set(environment):
        env.pop(name, None)
    return subprocess.run([sys.executable, "-W", "ignore", "-c", code] + list(args), env=env,
                          stderr=subprocess.DEVNULL).returncode


class Death(Case):
    def test_sigkill_inside_a_layer_leaves_all_before_it(self):
        code = """
import os, signal, sys, torch, torch.nn as nn, normdiff_hooks
class Die(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGKILL)
model = nn.Sequential(nn.Identity(), nn.ReLU(), Die(), nn.Identity())
with normdiff_hooks.record(model, sys.argv[1]):
    model(torch.arange(-3., 4.))
"""
        self.assertEqual(run(code, self.path), -signal.SIGKILL)
        dump = Dump(self.path)
        self.assertIs(dump.head["complete"], False)
        self.assertEqual(dump.names(), [("0", 0), ("1", 0)])
        self.assertEqual(dump.value("1", "output.0").tolist(), [0, 0, 0, 0, 1, 2, 3])

    def test_sigkill_at_any_moment_leaves_a_readable_dump(self):
        code = """
import sys, torch, normdiff_hooks
model = torch.nn.Linear(64, 64)
with normdiff_hooks.record(model, sys.argv[1]):
    print(flush=True)
    while True:
        model(torch.randn(64, 64))
"""
        for delay in (0.05, 0.21, 0.43, 0.8):
            process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code, self.path], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL,
                                       env=dict(os.environ, PYTHONPATH=EXPORT, PYTHONDONTWRITEBYTECODE="1"))
            process.stdout.readline()
            time.sleep(delay)
            process.kill()
            process.wait()
            process.stdout.close()
            dump = Dump(self.path, strict=False)
            self.assertIs(dump.head["complete"], False)
            self.assertGreater(len(dump.layers), 0)
            last = len(dump.layers) - 1
            weight, bias = dump.value("Linear", "param.weight"), dump.value("Linear", "param.bias")
            torch.testing.assert_close(F.linear(dump.value("Linear", "input.0", call=last), weight, bias),
                                       dump.value("Linear", "output.0", call=last))


class Prints(unittest.TestCase):
    def test_the_printed_lines(self):
        torch.manual_seed(0)
        model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), torch.randn(3, 4)
        handles, text = print_hooks.attach(model), io.StringIO()
        with contextlib.redirect_stdout(text):
            y = model(x)
        lines = text.getvalue().splitlines()
        self.assertEqual([line.split(":")[0] for line in lines], ["0", "1", "2"])
        for line in lines:
            self.assertRegex(line, r"^\S+: max=-?\d+\.\d{6}, mean=-?\d+\.\d{6}$")
        self.assertEqual(lines[2], "2: max=%.6f, mean=%.6f" % (y.max().item(), y.mean().item()))
        self.assertEqual(len(handles), 3)


if __name__ == "__main__":
    unittest.main()
