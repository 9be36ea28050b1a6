"""A case in memory, {meta, truth, ref, cand, params}, and as a folder of .npz files.

meta.json     execution order, type, attributes, and where each tensor of a layer lies
truth.json    what is wrong, where, and how far above the device's own noise
ref, cand     tensors.npz: out/0007, in/0007/0 (only where no earlier tensor holds the same
              bytes), model_in/0; state.npz: running statistics after the step
ref           params.npz: 0007/weight ...
bfloat16 tensors lie in float32 containers (meta.dtype says so); fp16 tensors are float16.
A layer of meta.json may hold, for dumps that do not show what ran: `missing` (sides that lack
it), `cand_out` (another tensor under its name), `extra` (more outputs of a side),
`cand_attrs`, `container`.
"""
import hashlib
import json
import os

import numpy as np
from torch import nn

from record import attributes


def digest(array):
    return hashlib.blake2b(array.tobytes()).digest()


def pack_side(records, inputs, to_numpy):
    """Tensors by key, and each layer's input keys; equal bytes are stored once."""
    seen, tensors, keys = {}, {}, []
    for j, t in enumerate(inputs):
        array = to_numpy(t)
        tensors['model_in/%d' % j] = array
        seen[digest(array)] = 'model_in/%d' % j
    for record in records:
        own = []
        for j, t in enumerate(record['ins']):
            array = to_numpy(t)
            key = seen.get(digest(array))
            if key is None or tensors[key].shape != array.shape:
                key = 'in/%04d/%d' % (record['idx'], j)
                tensors[key] = array
            own.append(key)
        keys.append(own)
        out = 'out/%04d' % record['idx']
        tensors[out] = to_numpy(record['out'])
        seen[digest(tensors[out])] = out
        for name, value in (record.get('state') or {}).items():
            tensors['state/%04d/%s' % (record['idx'], name)] = value.numpy()
    return tensors, keys


def pack_params(records):
    params, names = {}, []
    for record in records:
        module, own = record['mod'], []
        for name, value in module.named_parameters(recurse=False):
            params['%04d/%s' % (record['idx'], name)] = value.numpy()
            own.append(name)
        if isinstance(module, nn.BatchNorm2d):
            for name in ('running_mean', 'running_var'):
                value = getattr(module, name + '0').numpy()
                params['%04d/%s' % (record['idx'], name)] = value
                own.append(name)
        names.append(own)
    return params, names


def pack(reference, candidate, inputs, candidate_inputs, truth, arch, dtype):
    def to_numpy(t):
        array = t.contiguous().numpy()
        narrow = dtype == 'fp16' and t.is_floating_point() and truth['kind'] != 'global_dtype'
        return array.astype(np.float16) if narrow else array

    ref, ref_in = pack_side(reference, inputs, to_numpy)
    cand, cand_in = pack_side(candidate, candidate_inputs, to_numpy)
    params, names = pack_params(reference)
    layers = [{'idx': r['idx'], 'name': r['name'], 'call': r['call'], 'type': r['type'],
               'shape': list(r['out'].shape), 'dtype': dtype, 'attrs': attributes(r['mod']),
               'out': 'out/%04d' % r['idx'], 'ref_in': ref_in[i], 'cand_in': cand_in[i],
               'params': names[i]} for i, r in enumerate(reference)]
    meta = {'format': 'normdiff-corpus-1', 'arch': arch, 'dtype': dtype, 'layers': layers}
    return {'meta': meta, 'truth': truth, 'ref': ref, 'cand': cand, 'params': params}


def write_json(folder, name, value):
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
        json.dump(value, f, indent=1)


def save(case, folder, inputs=True, params=True):
    for side in ('ref', 'cand'):
        here = os.path.join(folder, side)
        os.makedirs(here, exist_ok=True)
        tensors = {k: v for k, v in case[side].items()
                   if k.startswith('out/') or (inputs and not k.startswith('state/'))}
        np.savez(os.path.join(here, 'tensors.npz'), **tensors)
        state = {k: v for k, v in case[side].items() if k.startswith('state/')}
        if state:
            np.savez(os.path.join(here, 'state.npz'), **state)
    if params:
        np.savez(os.path.join(folder, 'ref', 'params.npz'), **case['params'])
    write_json(folder, 'meta.json', case['meta'])
    write_json(folder, 'truth.json', case['truth'])
