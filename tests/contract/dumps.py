"""Writers for small dumps, from the formats' specifications and the standard library alone, so that
the tool is judged by something that shares no code with it."""
import io
import json
import os
import struct
import zipfile
import zlib

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
CODES = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "?"}
NPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1",
       "BOOL": "|b1"}


def pack(dtype, values):
    if dtype == "BF16":  # truncation: exact for values that bfloat16 holds
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack("<%d%s" % (len(values), CODES[dtype]), *values)


def safetensors(tensors, metadata=None):
    """tensors: {name: (dtype, shape, values)}"""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, values) in tensors.items():
        raw = pack(dtype, values)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def normdiff_dump(layers, **record):
    """layers: [(name, type, {slot: (dtype, shape, values) or a ready slot object}, {attributes}) + optional dict of
    further layer keys]"""
    tensors, out = {}, []
    for number, layer in enumerate(layers):
        name, kind, slots = layer[0], layer[1], layer[2]
        entry = {"name": name, "type": kind, "direction": "forward", "call": 0,
                 "attributes": layer[3] if len(layer) > 3 else {}, "slots": {}}
        entry.update(layer[4] if len(layer) > 4 else {})
        for slot, value in slots.items():
            if isinstance(value, dict):
                value = dict(value)
                if isinstance(value.get("tensor"), tuple):
                    key = "t%d.%s" % (number, slot)
                    tensors[key] = value["tensor"]
                    value["tensor"] = key
                entry["slots"][slot] = value
            else:
                key = "t%d.%s" % (number, slot)
                tensors[key] = value
                entry["slots"][slot] = {"tensor": key}
        out.append(entry)
    record = dict({"version": 1, "complete": True}, **record)
    record["layers"] = out
    return safetensors(tensors, {"normdiff": json.dumps(record)})


def npy(dtype, shape, values, descr=None, fortran=False):
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (
        descr or NPY[dtype], fortran, "".join("%d," % d for d in shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + pack(dtype, values)


def npz(members, deflate=False):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name + ".npy", content)
    return buffer.getvalue()


def write(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    return path
