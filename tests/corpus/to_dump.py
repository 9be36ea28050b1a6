#!/usr/bin/env python3
"""Turns corpus cases into pairs of dumps that normdiff reads.

  to_dump.py CASE_DIR... [--level 1|2|3] [--swap] [--out DIR]

Writes DIR/<case>/gpu.dump (reference) and npu.dump (candidate), normdiff dumps.  Level 1 holds
outputs only; level 2 adds every layer's inputs; level 3 adds attributes, parameters and running
statistics.  Parameters stand in the reference only: they come from the checkpoint that both
runs loaded, and whether the candidate used them is part of the question.  With --swap the
faulty run is the reference.  truth.json goes along, with `index`, the faulty layer's place in
the reference dump.
"""
import argparse
import json
import os
import struct

import numpy as np

CODES = {'float64': 'F64', 'float32': 'F32', 'float16': 'F16', 'int64': 'I64', 'int32': 'I32',
         'int16': 'I16', 'int8': 'I8', 'uint8': 'U8', 'bool': 'BOOL'}
REAL = {'bf16': 'bfloat16', 'fp16': 'float16'}


def save_safetensors(path, tensors, metadata):
    header, offset = {'__metadata__': metadata}, 0
    for name, array in tensors.items():
        header[name] = {'dtype': CODES[array.dtype.name], 'shape': list(array.shape),
                        'data_offsets': [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text)
        for array in tensors.values():
            f.write(np.ascontiguousarray(array).tobytes())


def load_npz(path):
    return dict(np.load(path)) if os.path.exists(path) else {}


def load_json(path):
    with open(path, encoding='utf-8') as f:
        return json.load(f)


def load(folder):
    case = {'folder': os.path.normpath(folder),
            'meta': load_json(os.path.join(folder, 'meta.json')),
            'truth': load_json(os.path.join(folder, 'truth.json')),
            'params': load_npz(os.path.join(folder, 'ref', 'params.npz'))}
    for side in ('ref', 'cand'):
        case[side] = {**load_npz(os.path.join(folder, side, 'tensors.npz')),
                      **load_npz(os.path.join(folder, side, 'state.npz'))}
    return case


class Dump:
    """One side's dump: tensors stored once, layers in execution order."""

    def __init__(self, case, side, level, has_params):
        self.meta, self.side, self.level = case['meta'], side, level
        self.have = case[side]
        self.params = case['params'] if has_params else {}
        self.tensors, self.layers, self.positions = {}, [], {}
        for layer in self.meta['layers']:
            if side not in layer.get('missing', ()):
                self.positions[layer['idx']] = len(self.layers)
                self.layers.append(self.layer(layer))

    def slot(self, name, array, floating=True):
        self.tensors.setdefault(name, array)
        entry = {'tensor': name}
        dtype = self.meta.get(self.side + '_dtype', self.meta['dtype'])
        if floating and array.dtype == np.float32 and dtype in REAL:
            entry['dtype'] = REAL[dtype]
        return entry

    def layer(self, layer):
        slots, have = {}, self.have
        if self.level >= 2:
            for j, name in enumerate(layer[self.side + '_in']):
                slots['input.%d' % j] = self.slot(name, have[name])
        out = layer.get(self.side + '_out', layer['out'])
        slots['output.0'] = self.slot(out, have[out])
        for slot, name in layer.get('extra', {}).get(self.side, {}).items():
            slots[slot] = self.slot(name, have[name], not name.startswith('extra/'))
        if self.level >= 3:
            self.add_params(layer, slots)
        attributes = layer.get(self.side + '_attrs', layer['attrs']) if self.level >= 3 else {}
        entry = {'name': layer['name'], 'type': layer['type'], 'direction': 'forward',
                 'call': layer['call'], 'attributes': attributes, 'slots': slots}
        if self.side in layer.get('container', ()):
            entry['container'] = True
        return entry

    def add_params(self, layer, slots):
        if layer['idx'] is None:
            return
        for p in layer['params']:
            name = '%04d/%s' % (layer['idx'], p)
            if name in self.params:
                kind = 'state' if p.startswith('running_') else 'param'
                slots['%s.%s' % (kind, p)] = self.slot(name, self.params[name], kind == 'param')
        for p in ('running_mean', 'running_var'):
            name = 'state/%04d/%s' % (layer['idx'], p)
            if name in self.have:
                slots['state_after.' + p] = self.slot(name, self.have[name], False)

    def save(self, path, device):
        record = {'version': 1, 'device': device, 'framework': 'corpus',
                  'model': self.meta['arch'], 'layers': self.layers}
        save_safetensors(path, self.tensors,
                         {'normdiff': json.dumps(record, separators=(',', ':'))})


def convert(case, level, folder, swap=False):
    """Writes gpu.dump, npu.dump and truth.json; returns the truth."""
    os.makedirs(folder, exist_ok=True)
    sides = ('cand', 'ref') if swap else ('ref', 'cand')
    dumps = [Dump(case, side, level, i == 0) for i, side in enumerate(sides)]
    dumps[0].save(os.path.join(folder, 'gpu.dump'), 'cuda:0')
    dumps[1].save(os.path.join(folder, 'npu.dump'), 'npu:0')
    truth = dict(case['truth'])
    index = truth.get('layer_idx')
    if truth.get('type') == 'Block':     # only the frame is there on both sides
        truth['index'] = [layer['name'] for layer in dumps[0].layers].index(truth['layer'])
    else:
        truth['index'] = dumps[0].positions.get(index)
    truth.update(level=level, side='reference' if swap else 'candidate')
    if os.path.normpath(folder) != case.get('folder'):
        with open(os.path.join(folder, 'truth.json'), 'w', encoding='utf-8') as f:
            json.dump(truth, f, indent=1)
    return truth


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('cases', nargs='+')
    p.add_argument('--level', type=int, choices=(1, 2, 3), default=2)
    p.add_argument('--swap', action='store_true')
    p.add_argument('--out')
    args = p.parse_args()
    for folder in args.cases:
        name = os.path.basename(os.path.normpath(folder))
        out = os.path.join(args.out, name) if args.out else folder
        convert(load(folder), args.level, out, args.swap)
        print(out)


if __name__ == '__main__':
    main()
