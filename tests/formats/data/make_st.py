"""Writes the safetensors fixtures with the real package (safetensors 0.8.0, numpy 2.4).

    python3 make_st.py        # into ./st; the values are those that test_format_*.c expects
"""
import json
import os

import numpy as np
from safetensors.numpy import save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "st")


def ramp(dtype, *shape):
    """0, 1, 2 ... in steps of 1/4: exact in every float type."""
    return (np.arange(int(np.prod(shape)), dtype=np.float64) / 4).reshape(shape).astype(dtype)


def types():
    words = "bool u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8 c8".split()
    arrays = {word: np.arange(4).reshape(2, 2).astype(word) for word in words}
    arrays["scalar"] = np.array(2.5, np.float32)
    arrays["empty"] = np.zeros((0, 3), np.float32)
    save_file(arrays, os.path.join(HERE, "types.safetensors"), metadata={"format": "np"})


def names():
    save_file({"layers.10.norm.output.0": ramp("f4", 2, 3), "layers.9.norm.output.0": ramp("f4", 3),
               "layers.9.norm.input.0": ramp("f2", 3), "bn.weight": ramp("f4", 2), "bn.running_var": ramp("f8", 2),
               "café \"q\"": ramp("f4", 1)}, os.path.join(HERE, "names.safetensors"))


def shards():
    one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    save_file({"fc.weight": ramp("f4", 2, 2), "fc.bias": ramp("f4", 2)}, os.path.join(HERE, one))
    save_file({"head.weight": ramp("f4", 3), "left_over": ramp("f4", 1)}, os.path.join(HERE, two))
    index = {"metadata": {"total_size": 36}, "weight_map": {"fc.weight": one, "fc.bias": one, "head.weight": two}}
    with open(os.path.join(HERE, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump(index, f, indent=2)
        f.write("\n")


def dump():
    record = {
        "version": 1, "device": "npu:0", "framework": "pytorch 2.1.0, torch_npu 2.1.0", "model": "tiny", "seed": 1234,
        "deterministic": True, "autocast": None, "step": 3, "rank": 1, "loss": 2.3145, "complete": True,
        "parallel": {"tp": 2, "tp_rank": 1, "pp": 1, "dp": 4}, "a key of the future": [1, 2],
        "layers": [
            {"name": "z.norm", "type": "LayerNorm", "direction": "forward", "call": 0,
             "attributes": {"eps": 1e-05, "normalized_shape": [3], "training": False, "bias": None, "mode": "same",
                            "limit": "inf", "mixed": ["a", 1, [True]]},
             "slots": {"input.0": {"tensor": "t0"},
                       "output.0": {"tensor": "t1", "format": "NC1HWC0", "logical_shape": [1, 3, 2, 2]},
                       "output.1": {"statistics": {"max": 1.5, "min": -2.0, "mean": "nan", "norm": 17}, "shape": [4, 128],
                                    "dtype": "float32"},
                       "param.weight": {"tensor": "p0", "dtype": "bfloat16",
                                        "statistics": {"max": 1.0, "min": None}}}},
            {"name": "a.block", "type": "Block", "container": True, "slots": {"output.0": {"tensor": "t0"}}},
            {"name": "z.norm", "type": "LayerNorm", "call": 1, "recompute": True, "micro_step": 2,
             "stack": ["train.py:10", "model.py:20"],
             "slots": {"output.0": {"tensor": "t0", "undefined": True, "valid": [3, 4],
                                    "shard": {"axis": 1, "index": 0, "of": 2}}}},
            {"name": "z.norm", "direction": "backward", "call": None,
             "slots": {"grad.weight": {"tensor": "gone"}, "output.0": {"tensor": "t1", "format": "FRACTAL_QQ"},
                       "output.1": {"tensor": "t1", "format": "NC1HWC0"}, "output.2": {}}}]}
    arrays = {"t0": ramp("f4", 2, 3), "t1": ramp("f4", 1, 1, 2, 2, 16), "p0": ramp("f4", 3), "unnamed": ramp("f4", 1)}
    save_file(arrays, os.path.join(HERE, "tiny.dump"), metadata={"normdiff": json.dumps(record)})


os.makedirs(HERE, exist_ok=True)
types()
names()
shards()
dump()
