#!/usr/bin/env python3
"""Writes an array as a dump of 16 layers, as msprobe's own dumper does; for a Python that has torch.

  msprobe_tree.py ARRAY.npy FOLDER
"""
import json
import os
import sys

import numpy as np
import torch

values, root = np.load(sys.argv[1]), sys.argv[2]
folder = os.path.join(root, "dump_tensor_data")
os.makedirs(folder)
data = {}
for i, part in enumerate(np.array_split(values, 16)):
    name = "Module.layer%d.Linear.forward.0" % i
    saved = "%s.output.0.pt" % name
    torch.save(torch.from_numpy(part.copy()), os.path.join(folder, saved))
    data[name] = {"input_args": [], "input_kwargs": {}, "output": [
        {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(part.shape), "Max": float(part.max()),
         "Min": float(part.min()), "Mean": float(part.mean()), "Norm": float(np.linalg.norm(part)),
         "requires_grad": False, "data_name": saved}]}
with open(os.path.join(root, "dump.json"), "w") as file:
    json.dump({"task": "tensor", "level": "L0", "framework": "pytorch", "dump_data_dir": folder, "data": data}, file)
for name in ("stack.json", "construct.json"):
    with open(os.path.join(root, name), "w") as file:
        file.write("{}")
