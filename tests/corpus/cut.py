#!/usr/bin/env python3
"""Makes tests/corpus/cases: small pairs of all kinds, cut to the layers around the fault.

  cut.py --out DIR [--seed S]

Models are small, and of each only a few layers before and after the fault are kept, so that
a pair is some ten kilobytes and the whole set a few megabytes.  What a cut pair must give
stands in its truth.json.
"""
import argparse
import json
import os
import shutil
import sys

from gen import make_case
from kinds import CATALOGUE, CLEAN, FOREIGN, KINDS, LATER
from score import ALWAYS_VISIBLE, FLOOR, accepted
from to_dump import convert

AROUND = ((6, 3), (4, 2), (2, 1))  # layers kept before and after the fault; the first that fits
LARGEST = 80 * 1024         # bytes of a pair
EFFECT = 6                  # times the noise: a committed case is no matter of luck
SEED_TRIES = 60

# More than 65,536 rows are no small pair.
LEFT_OUT = {'index_overflow_rows'}
SPECIAL = {
    # More elements than 15 bits count: few layers, 16 bits each.
    'index_overflow': {'dtype': 'fp16', 'archs': ['smallres'], 'size': 40, 'around': ((1, 1),),
                       'largest': 500 * 1024},
    # A block and what is around it.
    'blocks_only': {'around': ((14, 6), (10, 4)), 'largest': 160 * 1024},
    'blocks_clean': {'around': ((14, 10), (12, 6)), 'largest': 200 * 1024},
}
SMALL = {'resnet18': 'smallres', 'resnet18_train': 'smallres_train', 'mobilenet_v2': 'smallres'}
LEVELS = (3, 2, 1)


def small_archs(name):
    """The kind's architectures, the large residual networks replaced by small ones."""
    archs = KINDS[name].archs or ['gpt2', 'bert', 'vit', 'llama', 'unet', 'style', 'smallres',
                                  'smallres_train']
    return sorted({SMALL.get(a, a) for a in archs})


def cut(case, around):
    """Keeps the layers around the fault, and only tensors that they name."""
    truth, layers = case['truth'], case['meta']['layers']
    centre = truth['layer_idx']
    if centre is None:
        centre = sum(layer['idx'] is not None for layer in layers) // 2
    low = max(0, centre - around[0])
    high = max(centre, truth.get('second', {}).get('layer_idx', 0)) + around[1]
    if truth['type'] == 'Block':         # to the frame, which follows what is in it
        frame = [layer['name'] for layer in layers].index(truth['layer'])
        high = layers[frame - 1]['idx'] + around[1]
    places = [i for i, layer in enumerate(layers)
              if layer['idx'] is not None and low <= layer['idx'] <= high]
    return {**case, 'meta': {**case['meta'], 'layers': layers[places[0]:places[-1] + 1]}}


def clear_enough(truth):
    if truth['kind'] in ALWAYS_VISIBLE or truth.get('base') in ALWAYS_VISIBLE:
        # A narrow type that the dump declares is no riddle.
        return not truth['params'].get('declared')
    noise = max(truth.get('noise_rel_l2', 0), FLOOR[truth['dtype']])
    return 'effect_rel_l2' not in truth or truth['effect_rel_l2'] > EFFECT * noise


def folder_size(folder):
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


def make_pair(name, seed, dtype, level, swap, folder):
    """The first seed from this on that gives a clear and small pair."""
    special = SPECIAL.get(name, {})
    for other in range(seed, seed + SEED_TRIES):
        for around in special.get('around', AROUND):
            extra = {'small': True, 'size': special.get('size', 8), 'before': around[0]}
            try:
                case = make_case(other, [name], special.get('archs') or small_archs(name),
                                 [dtype], extra)
            except RuntimeError:
                break
            if not clear_enough(case['truth']):
                break
            truth = convert(cut(case, around), level, folder, swap)
            if folder_size(folder) <= special.get('largest', LARGEST):
                return truth
    shutil.rmtree(folder, ignore_errors=True)
    return None


def plan():
    """(kind, dtype, level, swap): every kind once or more, dtypes and levels in turn."""
    rows, turn = [], 0
    for name, kind in {**CATALOGUE, **LATER}.items():
        if name in LEFT_OUT:
            continue
        rows.append((name, 'fp32', LEVELS[turn % 3], turn % 4 == 3))
        if name in CATALOGUE and kind.half:
            rows.append((name, ('bf16', 'fp16')[turn % 2], LEVELS[(turn + 1) % 3],
                         turn % 4 == 1))
        turn += 1
    rows += [(name, 'fp32', 3, False) for name in FOREIGN]
    rows += [('clean', 'fp16', 1, False), ('clean', 'fp32', 2, True)]
    return rows


def expectation(truth):
    """What check.py asks of the report."""
    if truth['kind'] in CLEAN:
        return {'clean': True}
    causes = accepted(truth)
    return {'clean': False, 'foreign': truth['kind'] in FOREIGN,
            'causes': None if causes is None else sorted(causes - {None})}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', required=True)
    parser.add_argument('--seed', type=int, default=4000)
    args = parser.parse_args()
    for i, (name, dtype, level, swap) in enumerate(plan()):
        dtype = SPECIAL.get(name, {}).get('dtype', dtype)
        title = '%s-%s-%d%s' % (name.replace('_', '-'), dtype, level, '-swapped' * swap)
        folder = os.path.join(args.out, title)
        truth = make_pair(name, args.seed + 100 * i, dtype, level, swap, folder)
        if truth is None:
            print('%s: no clear small pair' % title)
            continue
        truth['expect'] = expectation(truth)
        with open(os.path.join(folder, 'truth.json'), 'w', encoding='utf-8') as f:
            json.dump(truth, f, indent=1, sort_keys=True)
            f.write('\n')
        print('%-40s %4d KB %s' % (title, folder_size(folder) // 1024, truth['layer']),
              flush=True)


if __name__ == '__main__':
    sys.exit(main())
