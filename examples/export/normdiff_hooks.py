"""Record what every layer of a PyTorch model sees and makes, in one file that normdiff reads.

    import normdiff_hooks
    with normdiff_hooks.record(model, "gpu.dump"):              # on the GPU, or the CPU
        model(x)

    import torch_npu                                            # the same lines on the NPU
    with normdiff_hooks.record(model.npu(), "npu.dump"):
        model(x.npu())

    $ normdiff gpu.dump npu.dump

    with normdiff_hooks.record(model, "gpu.dump", step=0, backward=True) as r:
        for x, y in batches:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            r.loss = loss
            r.step()                # after backward, before the gradients are cleared
            optimizer.step()        # gpu.dump/step0/rank0.dump, gpu.dump/step1/rank0.dump ...

The dump is a safetensors file; the order of execution, layer types and attributes stand in its metadata.
It grows while the model runs, so memory stays small, and it can be read at any moment: a run that dies
(an exception, out of memory, SIGKILL) leaves the layers that had finished and says `"complete": false`.
With several ranks (torch.distributed, or WORLD_SIZE over 1), or with step=, the path is a directory
of step{N}/rank{R}.dump. Nothing is added to the graph: layers and gradients are what they are without
the hooks, bit for bit. (Where hooks are set torch itself may leave a fused path, as nn.TransformerEncoderLayer
does in eval mode.)

Needs PyTorch 1.11 or later and nothing else. Layers must run as eager modules: record the model
before torch.compile or torch.jit take it.
"""
import ctypes
import dataclasses
import fnmatch
import hashlib
import inspect
import json
import math
import os
import shutil
import sys
import threading
from collections.abc import Mapping

import torch

CODES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "complex64": "C64",
         "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "int64": "I64", "int32": "I32",
         "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
         "bool": "BOOL"}
DTYPES = {getattr(torch, word): code for word, code in CODES.items() if hasattr(torch, word)}

# torch_npu's numbers for the layouts in which a tensor may lie on the device.
NPU_LAYOUTS = {1: "NHWC", 3: "NC1HWC0", 4: "FRACTAL_Z", 29: "FRACTAL_NZ", 32: "NDC1HWC0", 33: "FRACTAL_Z_3D"}

# torch.nn.functional's name and the class that does the same work; what arguments are called that
# have no signature to read; and which arguments are no inputs.
FUNCTIONS = {"layer_norm": "LayerNorm", "group_norm": "GroupNorm", "rms_norm": "RMSNorm",
             "batch_norm": "BatchNorm", "instance_norm": "InstanceNorm", "normalize": "Normalize",
             "local_response_norm": "LocalResponseNorm", "softmax": "Softmax", "log_softmax": "LogSoftmax",
             "gelu": "GELU", "silu": "SiLU", "relu": "ReLU", "relu6": "ReLU6", "leaky_relu": "LeakyReLU",
             "elu": "ELU", "mish": "Mish", "hardswish": "Hardswish", "glu": "GLU", "softplus": "Softplus",
             "scaled_dot_product_attention": "ScaledDotProductAttention"}
BUILTINS = {"gelu": "input approximate", "softplus": "input beta threshold",
            "scaled_dot_product_attention": "query key value attn_mask dropout_p is_causal scale enable_gqa"}
ROLES = {"weight": "param.", "bias": "param.", "running_mean": "state.", "running_var": "state."}

HEADER_LIMIT = 100000000  # safetensors reads no longer header


# ---- tensors: which ones, and their values -------------------------------------------------------

def parts_of(value):
    """The parts of a tuple, list, dict or dataclass; None for anything else."""
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, Mapping):
        return list(value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return None


def leaves_of(value):
    parts = parts_of(value)
    return [value] if parts is None else [leaf for part in parts for leaf in leaves_of(part)]


def numbered(prefix, value):
    """(slot, tensor) for each tensor of an input or output: prefix.N, and prefix.N.K inside part N.

    Whatever is no tensor is skipped but counted, so that a slot means the same in every run.
    """
    parts, found = parts_of(value), []
    for n, part in enumerate([value] if parts is None else parts):
        inside = [("%d.%d" % (n, k), leaf) for k, leaf in enumerate(leaves_of(part))]
        for at, leaf in [(str(n), part)] if parts_of(part) is None else inside:
            if isinstance(leaf, torch.Tensor):
                found.append((prefix + at, leaf))
    return found


def arguments(module, args, kwargs):
    """A call's inputs in the order of forward()'s parameters, however the caller passed them."""
    rest = dict(kwargs)
    names = list(inspect.signature(module.forward).parameters) if kwargs else []
    return list(args) + [rest.pop(name, None) for name in names[len(args):]] + list(rest.values())


def device_layout(t):
    """The word for a layout other than plain row-major order, or None."""
    if t.device.type == "npu":
        try:
            return NPU_LAYOUTS.get(int(sys.modules["torch_npu"].get_npu_format(t)))
        except (AttributeError, KeyError, RuntimeError):
            return None  # a torch_npu that cannot say
    for rank, word in ((4, "channels_last"), (5, "channels_last_3d")):
        if t.dim() == rank and not t.is_contiguous() and t.is_contiguous(memory_format=getattr(torch, word)):
            return word
    return None


def host_copy(tensor):
    """A contiguous copy in host memory, of a dtype that safetensors has, and what its slot should add.

    It is a copy even on the CPU: the next layer may work in place.
    """
    t, about = tensor.detach(), {}
    if hasattr(t, "to_local"):
        t = t.to_local()  # of a DTensor, the shard of this rank
    if t.is_quantized or t.layout != torch.strided:
        about["note"] = "%s, stored dense" % plain(t.dtype if t.is_quantized else str(t.layout))
        t = t.dequantize() if t.is_quantized else t.to_dense()
    elif device_layout(t):
        about["device_layout"] = device_layout(t)
    t = t.resolve_conj().resolve_neg()
    if t.dtype == torch.complex128:
        t, about["note"] = torch.view_as_real(t), "complex128, stored as pairs of float64"
    elif t.dtype not in DTYPES:
        about["dtype"] = plain(t.dtype)
        t = t.to(torch.complex64 if t.is_complex() else torch.float32)
    on_host = t.device.type == "cpu"
    host = t.clone(memory_format=torch.contiguous_format) if on_host else t.cpu().contiguous()
    if host.numel() and not host.data_ptr():
        raise ValueError("%s without values" % type(tensor).__name__)
    return host, about


def snapshots(pairs):
    """(slot, copy, what to add) for (slot, tensor) pairs, as the tensors are now.

    A tensor that cannot be copied must not end the user's run: its copy is None, and the reason follows.
    """
    taken = []
    for slot, tensor in pairs:
        try:
            taken.append((slot,) + host_copy(tensor))
        except Exception as error:
            taken.append((slot, None, str(error).split("\n")[0]))
    return taken


# ---- words: what the run and its layers say about themselves -------------------------------------

def plain(value):
    """The value as JSON can hold it; TypeError if it is no scalar, dtype or short list of them."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value).replace("torch.", "")
    if isinstance(value, (tuple, list)) and len(value) <= 64:
        return [plain(item) for item in value]
    raise TypeError(type(value))


def attributes(fields):
    found = {}
    for name, value in fields.items():
        try:
            if not name.startswith("_"):
                found[name] = plain(value)
        except TypeError:
            pass
    return found


def bound(name, function, args, kwargs):
    """The arguments of a functional call by name, with defaults where the function tells them."""
    if name in BUILTINS:
        return dict(zip(BUILTINS[name].split(), args), **kwargs)
    call = inspect.signature(function).bind(*args, **kwargs)
    call.apply_defaults()
    return dict(call.arguments)


def autocast_word(device):
    """The dtype that autocast casts to just now, or None. The interface changed in torch 2.4."""
    try:
        if hasattr(torch, "get_autocast_dtype"):
            on, dtype = torch.is_autocast_enabled(device), lambda: torch.get_autocast_dtype(device)
        elif device == "cpu":
            on, dtype = torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype
        elif device == "npu":
            on, dtype = torch.npu.is_autocast_enabled(), torch.npu.get_autocast_dtype
        else:
            on, dtype = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype
        return plain(dtype()) if on else None
    except (AttributeError, RuntimeError):
        return None  # a device without autocast


def framework():
    npu = sys.modules.get("torch_npu")
    return "pytorch %s" % torch.__version__ + (", torch_npu %s" % npu.__version__ if npu else "")


def process_rank():
    """The rank in a distributed run, else None."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        return int(os.environ.get("RANK") or 0)
    return None


# ---- the file ------------------------------------------------------------------------------------

def dumps(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def quoted(value):
    """JSON text as it stands inside a JSON string."""
    return json.dumps(dumps(value))[1:-1].encode()


class Room:
    """A part of the header: text, then spaces into which it grows."""

    def __init__(self, start, text, size):
        self.start, self.at, self.end = start, start + len(text), start + size


class Writer:
    """A safetensors file that is whole after every layer.

        8 bytes  {"__metadata__":{"normdiff":"  HEAD spaces LAYERS spaces  ]}"}  TENSORS spaces  }  data

    JSON does not mind spaces between its tokens, so the three parts of the header have room behind them,
    and a layer is a few short writes: its data at the end of the file, then the entries that describe the
    data, then the layer that names the entries. A run killed between two of them leaves at worst data that
    no entry claims, or tensors that no layer names. When room runs out, a file with more is built beside
    this one and replaces it.

    safetensors allows no holes in the data, and torch wants each tensor aligned to its element size: where
    it would not be, a tensor "_padN" of a few zero bytes precedes it. The data begins on 64 bytes.
    """

    OPEN, MIDDLE, CLOSE = b'{"__metadata__":{"normdiff":"', b']}"}', b"}"

    def __init__(self, path, head, room):
        self.path, self.head, self.room = path, head, room
        self.layers, self.entries, self.names = [], [], {}
        self.file, self.data_at, self.data_size = None, 0, 0
        self._build()

    def put(self, host, kind):
        """Stores a tensor unless its equal is there already, and returns the name it has in the file.

        Content decides, not identity: memory is used again, and not every in-place operation of every
        device leaves a trace.
        """
        size = host.numel() * host.element_size()
        data = (ctypes.c_char * size).from_address(host.data_ptr()) if size else b""
        key = host.dtype, tuple(host.shape), hashlib.blake2b(data, digest_size=16).digest()
        if key not in self.names:
            gap = -self.data_size % host.element_size()
            if gap:
                self._store("_pad%d" % len(self.entries), "U8", (gap,), bytes(gap))
            self.names[key] = "%s%06d" % (kind, len(self.names))
            self._store(self.names[key], DTYPES[host.dtype], host.shape, data)
        return self.names[key]

    def title(self, head):
        self.head = head
        self._fill(self.head_room, self._head_text())

    def add(self, layer):
        self.layers.append(layer)
        self._append(self.layer_room, (b"," if len(self.layers) > 1 else b"") + quoted(layer))

    def close(self, head):
        """Writes layers and head as they are now. A file of much unused room is built anew without it."""
        self.head = head
        unused = sum(room.end - room.at for room in (self.head_room, self.layer_room, self.entry_room))
        if 16 * unused > self.data_at + self.data_size:
            self.room = 0
            self._build()
        else:
            self._fill(self.layer_room, self._layer_text())
            self.title(head)
        self.file.close()

    def _head_text(self):
        return quoted(self.head)[:-1] + b',\\"layers\\":['

    def _layer_text(self):
        return b",".join(map(quoted, self.layers))

    def _build(self):
        """Writes the file with all that is known and self.room for more, and copies the data over."""
        texts = self._head_text(), self._layer_text(), b"".join(self.entries)
        used = len(self.OPEN + self.MIDDLE + self.CLOSE) + sum(map(len, texts))
        room = min(self.room, (HEADER_LIMIT - used) // 2 - 1024)
        if room < 0:
            raise ValueError("%s: too many layers for one file; use only= or step=" % self.path)
        sizes = [len(text) + more for text, more in zip(texts, (min(room, 1024), room, room // 2))]
        sizes[2] += -(8 + used - sum(map(len, texts)) + sum(sizes)) % 64
        head, layers, entries = (text.ljust(size) for text, size in zip(texts, sizes))
        header = self.OPEN + head + layers + self.MIDDLE + entries + self.CLOSE
        with open(self.path + ".tmp", "wb") as new:
            new.write(len(header).to_bytes(8, "little") + header)
            if self.file:
                self.file.seek(self.data_at)
                shutil.copyfileobj(self.file, new, 1 << 22)
                self.file.close()
        os.replace(self.path + ".tmp", self.path)
        self.file, self.data_at = open(self.path, "r+b"), 8 + len(header)
        self.head_room = Room(8 + len(self.OPEN), texts[0], sizes[0])
        self.layer_room = Room(self.head_room.end, texts[1], sizes[1])
        self.entry_room = Room(self.layer_room.end + len(self.MIDDLE), texts[2], sizes[2])

    def _store(self, name, code, shape, data):
        begin, end = self.data_size, self.data_size + len(data)
        self._write(self.data_at + begin, data)
        self.data_size = end
        about = {"dtype": code, "shape": list(shape), "data_offsets": [begin, end]}
        self.entries.append((',"%s":%s' % (name, dumps(about))).encode())
        self._append(self.entry_room, self.entries[-1])

    def _append(self, room, text):
        """Writes text that is already on its list, and so is part of whatever _build() writes."""
        if room.at + len(text) > room.end:
            self.room = 2 * self.room + len(text)
            self._build()
        else:
            self._write(room.at, text)
            room.at += len(text)

    def _fill(self, room, text):
        room.at = room.start
        self._append(room, text.ljust(room.end - room.start))

    def _write(self, at, data):
        self.file.seek(at)
        self.file.write(data)
        self.file.flush()


# ---- gradients -----------------------------------------------------------------------------------

def rim(starts, inputs):
    """Where gradient leaves a module: (node, index among its results, slot).

    Full backward hooks would put a node of their own before and behind the module, which breaks in-place
    operations and changes the order of sums. So the graph is read instead: from the nodes that made the
    outputs back to those that made the inputs. The limit is for outputs that hang on more than the inputs.
    """
    outside, seen, ends = {node for _, node, _ in inputs}, set(), []
    todo = [node for node in starts if node not in outside]
    while todo and len(seen) < 4096:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        for k, (source, number) in enumerate(node.next_functions):
            source = getattr(source, "variable", source)  # the tensor itself, where it is a leaf
            ends += [(node, k, slot) for slot, made_by, nr in inputs if made_by is source and nr == number][:1]
            if source not in outside and hasattr(source, "next_functions"):
                todo.append(source)
    return ends


class Gradients:
    """Gathers what autograd hands over for one call of a module, and emits it when all has come."""

    def __init__(self, emit):
        self.emit, self.expected, self.waiting, self.found = emit, 0, set(), {}

    def watch(self, node, slot, pick):
        token = self.expected
        self.expected += 1
        self.waiting.add(token)
        node.register_hook(lambda given, received: self._take(token, slot, pick(given, received)))

    def _take(self, token, slot, grad):
        if self.emit and grad is not None:
            for _, host, about in snapshots([(slot, grad)]):
                if host is not None and self.found.get(slot, (None,))[0] is not None:
                    host.add_(self.found[slot][0])  # the input was used twice inside the module
                self.found[slot] = host, about
        self.waiting.discard(token)
        if not self.waiting:
            self.flush()

    def flush(self):
        if self.found:
            self.emit([(slot,) + self.found[slot] for slot in sorted(self.found)])
        self.waiting, self.found = set(range(self.expected)), {}

    def end(self):
        """Emits what has come, and ignores a backward pass that comes later still."""
        self.flush()
        self.emit = None


# ---- the recorder --------------------------------------------------------------------------------

class Call:
    """A module call that has begun and perhaps not ended."""

    def __init__(self, name, module, wanted):
        self.name, self.module, self.wanted = name, module, wanted
        self.container = False  # until a recorded module has run inside this one
        self.inputs, self.state, self.graph = [], [], []


class record:
    """A context manager that writes a dump of everything `model` runs inside the with block.

    only        a glob or a list of globs on layer names, or a callable(name, module): what to record
    functional  also torch.nn.functional norms, activations and softmax called outside of leaf modules
    containers  also modules whose work is done by other modules, marked "container"
    backward    also gradients: layers of direction "backward", with grad.NAME from p.grad at the end
    params      False leaves parameters out
    step, rank  numbers for a directory dump; rank defaults to that of the process
    parallel    a dict such as {"tp": 2, "tp_rank": 1, "pp": 1, "dp": 4}, kept as it is

    Assign `.loss`; call `.step()` where a training step ends, if step= was given.
    """

    def __init__(self, model, path, only=None, functional=False, containers=False, backward=False,
                 params=True, step=None, rank=None, parallel=None):
        self.model, self.path, self.parallel = model, os.path.abspath(os.fspath(path)), parallel
        self.only = [only] if isinstance(only, str) else only
        self.functional, self.containers, self.backward, self.params = functional, containers, backward, params
        here = process_rank() if rank is None else rank
        self.directory = step is not None or here is not None
        self.number, self.rank = (step or 0, here or 0) if self.directory else (None, None)
        self.device = self.autocast = None
        self.handles, self.replaced = [], []
        self.lock, self.local = threading.RLock(), threading.local()
        self._begin_step()

    def _begin_step(self):
        self.writer, self._loss = None, None
        self.next_call, self.taken, self.owned, self.pending = {}, set(), {}, []

    @property
    def loss(self):
        return self._loss

    @loss.setter
    def loss(self, value):
        self._loss = float(value.detach()) if isinstance(value, torch.Tensor) else value

    def step(self):
        """Ends a step: closes its file. The next layer that runs opens the next step's."""
        if not self.directory:
            raise ValueError("to record several steps, give the first one's number: record(..., step=0)")
        self._end_step(None)
        self.number += 1

    def __enter__(self):
        modules = [(name or type(self.model).__name__, module) for name, module in self.model.named_modules()
                   if "parametrizations" not in name.split(".")]  # those run inside the layer that they serve
        wanted = [self._wanted(name, module) for name, module in modules]
        self._look_around([])
        self._open()
        for (name, module), answer in zip(modules, wanted):
            self._attach(name, module, answer)
        for name in FUNCTIONS if self.functional else ():
            if hasattr(torch.nn.functional, name):
                self._replace(name, getattr(torch.nn.functional, name))
        return self

    def __exit__(self, kind, error, trace):
        for handle in self.handles:
            handle.remove()
        for name, function in self.replaced:
            setattr(torch.nn.functional, name, function)
        if self.writer:
            self._end_step(error)

    def _wanted(self, name, module):
        if self.only is None or callable(self.only):
            return self.only is None or bool(self.only(name, module))
        return any(fnmatch.fnmatchcase(name, glob) for glob in self.only)

    # Modules. Which of them are containers shows when they run, not in their tree: attention with an
    # unused child does its own work, and so does a fused block.

    def _attach(self, name, module, wanted):
        words = inspect.signature(module.register_forward_pre_hook).parameters
        self.handles.append(module.register_forward_pre_hook(
            lambda module, args, kwargs={}: self._before(Call(name, module, wanted), args, kwargs),
            **({"with_kwargs": True} if "with_kwargs" in words else {})))
        self.handles.append(module.register_forward_hook(
            lambda module, args, output: self._after(module, output)))

    @property
    def calls(self):
        """The calls under way in this thread: autograd repeats checkpointed ones in threads of its own."""
        return self.local.__dict__.setdefault("calls", [])

    def _before(self, call, args, kwargs):
        if call.module is self.model:
            del self.calls[:]  # whatever an exception in an earlier call left behind
        self.calls.append(call)
        if not call.wanted:
            return
        pairs = numbered("input.", arguments(call.module, args, kwargs))
        self._look_around(pairs)
        call.inputs, call.state = snapshots(pairs), self._buffers(call.module, "state.")
        if self.backward:
            call.graph = [(slot.replace("input", "output"), t.grad_fn or t, t.output_nr)
                          for slot, t in pairs if t.requires_grad]

    def _after(self, module, output):
        while self.calls and self.calls[-1].module is not module:
            self.calls.pop()
        call = self.calls.pop() if self.calls else None
        if call is None or not call.wanted or (call.container and not self.containers):
            return
        for outer in self.calls:
            outer.container = True
        owned = list(module.named_parameters(recurse=not call.container))
        slots = call.inputs + snapshots(numbered("output.", output)) + call.state
        slots += snapshots(("param." + name, value) for name, value in owned if self.params)
        slots += self._buffers(module, "state_after.")
        kind = type(module).__bases__[0] if hasattr(module, "parametrizations") else type(module)
        layer = {"name": call.name, "type": kind.__name__, "attributes": attributes(vars(module))}
        if call.container:
            layer["container"] = True
        if getattr(torch._C, "_current_graph_task_id", lambda: -1)() != -1:
            layer["recompute"] = True  # a checkpointed call, repeated inside backward
        number = self._emit(layer, "forward", slots)
        if self.backward:
            self.owned[call.name] = layer, owned
            self._watch(layer, number, call.graph, output)

    @staticmethod
    def _buffers(module, prefix):
        return snapshots((prefix + name, value) for name, value in module._buffers.items() if value is not None)

    # Functions.

    def _replace(self, name, function):
        def recorded(*args, **kwargs):
            around = self.calls[-1] if self.calls else None
            layer = "%s.%s" % (around.name, name) if around and around.module is not self.model else name
            inside = around and not list(around.module.children())
            if inside or not self._wanted(layer, function):
                return function(*args, **kwargs)
            return self._run(layer, name, function, args, kwargs)

        self.replaced.append((name, function))
        setattr(torch.nn.functional, name, recorded)

    def _run(self, layer, name, function, args, kwargs):
        named = bound(name, function, args, kwargs)
        tensors = [(key, value) for key, value in named.items() if isinstance(value, torch.Tensor)]
        pairs = numbered("input.", [value for key, value in tensors if key not in ROLES])
        pairs += [(ROLES[key] + key, value) for key, value in tensors if key in ROLES]
        self._look_around(pairs)
        slots = snapshots(pair for pair in pairs if self.params or not pair[0].startswith("param."))
        output = function(*args, **kwargs)
        slots += snapshots(numbered("output.", output))
        slots += snapshots(("state_after." + key, value) for key, value in tensors if ROLES.get(key) == "state.")
        self._emit({"name": layer, "type": FUNCTIONS[name], "attributes": attributes(named)}, "forward", slots)
        return output

    # Gradients.

    def _watch(self, layer, number, graph, output):
        made = [(slot, t) for slot, t in numbered("input.", output) if t.grad_fn is not None]
        gradients = Gradients(lambda slots: self._emit(layer, "backward", slots, number))
        for slot, t in made:
            gradients.watch(t.grad_fn, slot, lambda given, received, nr=t.output_nr: received[nr])
        for node, k, slot in rim([t.grad_fn for _, t in made], graph):
            gradients.watch(node, slot, lambda given, received, k=k: given[k])
        self.pending.append(gradients)

    def _add_grads(self):
        """Puts grad.NAME into the first backward layer of each module, or into one of its own."""
        written = {}
        for layer in self.writer.layers:
            if layer["direction"] == "backward":
                written.setdefault(layer["name"], layer)
        for name, (layer, owned) in self.owned.items():
            slots = snapshots(("grad." + key, p.grad) for key, p in owned if p.grad is not None)
            if name in written:
                self._fill_slots(written[name], slots)
            elif slots:
                self._emit(layer, "backward", slots)

    # Writing.

    def _look_around(self, pairs):
        if self.device in (None, "cpu"):
            tensors = [t for _, t in pairs] + list(self.model.parameters())[:1]
            devices = [str(t.device) for t in tensors if t.device.type != "meta"]
            self.device = min(devices, key=lambda device: device == "cpu", default=self.device)
        if self.autocast is None and self.device:
            self.autocast = autocast_word(torch.device(self.device).type)

    def _emit(self, about, direction, slots, number=None):
        """Adds a layer to the file, and returns its call number: `number`, or the first free one after it."""
        with self.lock:
            self._open()
            key = about["name"], direction
            number = self.next_call.get(key, 0) if number is None else number
            while key + (number,) in self.taken:
                number += 1
            self.taken.add(key + (number,))
            self.next_call[key] = number + 1
            layer = {"name": about["name"], "type": about["type"], "direction": direction, "call": number}
            layer.update(about, slots={})
            self._fill_slots(layer, slots)
            if not self.writer.layers:
                self.writer.title(self._head(False, None))
            self.writer.add(layer)
        return number

    def _fill_slots(self, layer, slots):
        for slot, host, about in slots:
            if host is None:
                layer.setdefault("skipped", {})[slot] = about
            else:
                name = self.writer.put(host, "p" if slot.startswith("param.") else "t")
                layer["slots"][slot] = dict(tensor=name, **about)

    def _open(self):
        if self.writer is None:
            path = self.path
            if self.directory:
                path = os.path.join(path, "step%d" % self.number, "rank%d.dump" % self.rank)
                os.makedirs(os.path.dirname(path), exist_ok=True)
            room = 2048 * len(list(self.model.modules())) * (1 + self.backward)
            self.writer = Writer(path, self._head(False, None), max(room, 1 << 16))

    def _head(self, complete, error):
        head = {"version": 1, "device": self.device, "framework": framework(),
                "model": type(self.model).__name__, "seed": torch.initial_seed(),
                "deterministic": torch.are_deterministic_algorithms_enabled(), "autocast": self.autocast,
                "step": self.number, "rank": self.rank, "loss": plain(self._loss), "complete": complete}
        if self.parallel:
            head["parallel"] = self.parallel
        if error is not None:
            head["error"] = ("%s: %s" % (type(error).__name__, error)).split("\n")[0][:200]
        return head

    def _end_step(self, error):
        with self.lock:
            self._open()
            for gradients in self.pending:
                gradients.end()
            if self.backward and error is None:
                self._add_grads()
            self.writer.close(self._head(error is None, error))
            self._begin_step()
