#!/usr/bin/env python3
"""Pairs of per-layer tensors with at most one fault in one layer, and the truth beside each.

  gen.py --out DIR --seed N --cases K [--kinds a,b,c] [--arch x,y] [--dtype fp32,bf16,fp16]
         [--no-inputs] [--no-params] [--list]

The reference is the plain torch model, rounded to dtype after every layer; the candidate is
the same model with every leaf recomputed in another device's order (devices.py) and the fault
put into one of them.  The same seed and kinds give the same bytes.  --kinds also takes
`catalogue` (the default), `later`, `foreign`, `all`; --list names them.
A case is a folder as casefile.py says; to_dump.py turns it into a pair of dumps.
"""
import argparse
import os
import random

import torch

import artefacts
import faults
from build import ARCHS, FURTHER_ARCHS, build
from casefile import pack, save
from kinds import CATALOGUE, FOREIGN, KINDS, LATER, LATER_ARCHS, NAMED_FAULTS, PRODUCTS
from record import run
from rounding import rnd

SEED_STEP = 1000003
WHOLE_MODEL = ('different_input', 'global_dtype', 'global_matmul')
ATTEMPTS = 60      # until a model has a layer that the fault fits
SETS = {'catalogue': list(CATALOGUE), 'later': list(LATER), 'foreign': list(FOREIGN),
        'all': list(KINDS)}


def mean_ratio(record):
    """The median of |mean| over standard deviation of the input's groups."""
    x = record['ins'][0].float()
    if x.dim() == 3:
        rows = x.reshape(-1, x.shape[-1])
    elif x.dim() == 4:
        groups = getattr(record['mod'], 'num_groups', x.shape[1])
        rows = x.reshape(x.shape[0] * groups, -1)
    else:
        rows = x.reshape(1, -1)
    return float((rows.mean(1).abs() / rows.std(1).clamp(min=1e-9)).median())


def facts_of(record, records):
    module, shape, out = record['mod'], list(record['out'].shape), record['out']
    groups = getattr(module, 'num_groups', None)
    per_group = shape[1] // groups if groups else shape[-1]
    same_size = [r for r in records[:record['idx']]
                 if r['out'].numel() == out.numel() and r['out'].is_floating_point()
                 and not torch.equal(r['out'].reshape(-1), out.reshape(-1))]
    return {'type': record['type'], 'shape': shape, 'numel': out.numel(),
            'train': module.training, 'bias': getattr(module, 'bias', None) is not None,
            'inmax': float(record['ins'][0].float().abs().max()), 'mratio': mean_ratio(record),
            'padc': per_group % 16 != 0, 'per_group': per_group,
            'stale_src': same_size[-1]['idx'] if same_size else None,
            'causal': getattr(module, 'causal', False)}


def terms_of(record):
    """How many products one output of a layer sums up."""
    weight = getattr(record['mod'], 'weight', None)
    return weight[0].numel() if weight is not None else record['ins'][0].shape[-1]


def choose_layer(kind, records, chooser):
    """The faulty layer's record, its facts and the fault's options, or None."""
    fitting = []
    for record in records:
        if record['type'] not in kind.types:
            continue
        facts = facts_of(record, records)
        if kind.fits is None or kind.fits(facts):
            fitting.append((record, facts))
    if not fitting:
        return None
    record, facts = chooser.choice(fitting)
    return record, facts, kind.sample(chooser, facts, record['mod'])


def other_input(original, how, generator):
    if original.is_floating_point():
        if how == 'other':
            return torch.randn(original.shape, generator=generator)
        if how == 'few':
            return original + (torch.rand(original.shape, generator=generator) < .01) * .3
        return original * 1.03 + .02 if how == 'scaled' else original.flip(1)
    if how == 'other':
        return torch.randint(200, original.shape, generator=generator)
    few = torch.rand(original.shape, generator=generator) < .08
    return torch.where(few, (original + 7) % 200, original)


def wrong_statistics(module, how, generator):
    mean, var = module.running_mean.clone(), module.running_var.clone()
    if how == 'initial':
        return torch.zeros_like(mean), torch.ones_like(var)
    if how == 'nan':
        var[::5] = float('nan')
        return mean, var
    n = len(mean)
    return (mean + var.sqrt() * torch.randn(n, generator=generator) * .3,
            var * torch.exp(torch.randn(n, generator=generator) * .4))


def choose_setting(name, kind, archs, dtypes, chooser, extra):
    pool = [a for a in kind.archs or (LATER_ARCHS if name in LATER else ARCHS)
            if not archs or a in archs]
    named = bool(archs) and set(archs) <= set(FURTHER_ARCHS)
    if extra.get('small') or named:      # whoever asks for these models names them
        pool = archs
    if not pool:
        return None
    arch = chooser.choice(pool)
    dtype = chooser.choice(dtypes or ['fp32'] * 4 + ['bf16', 'fp16'])
    if not kind.half and not dtypes:
        dtype = 'fp32'
    if name == 'clean' and not dtypes:
        dtype = chooser.choice(['fp32', 'bf16', 'fp16'])
    options = dict(kind.options)
    if name == 'ex2_minus_mean2':
        options['bigmean'] = chooser.choice([30., 100., 300., 1000.])
        dtype = 'fp32'
    if name == 'sumsq_overflow':
        options['massive'] = True
    return arch, dtype, options


class Pair:
    """One pair in the making: what the candidate does differently."""

    def __init__(self, name, seed, arch, dtype, model, inputs, reference, before=None):
        self.name, self.seed, self.arch, self.dtype = name, seed, arch, dtype
        self.model, self.inputs, self.reference = model, inputs, reference
        self.faulty = {}                 # execution index -> (kind, options)
        self.candidate_inputs, self.candidate_dtype = inputs, dtype
        self.precision, self.params = None, {}
        # A pair that will be cut has equal tensors up to the cut, as if the model began there.
        self.before, self.centre = before, None

    def put_fault(self, name, kind, chooser):
        chosen = choose_layer(kind, self.reference, chooser)
        if chosen is None:
            return False
        record, facts, options = chosen
        self.params = dict(options)
        if name == 'matmul_acc_fp16':
            self.params['terms'] = terms_of(record)
        generator = torch.Generator().manual_seed(self.seed)
        if '_w' in options:
            other = faults.weight(options['_w'], record['mod'].weight, generator, chooser)
            options['W'] = rnd(other, self.dtype)
            changed = (options['W'] != record['mod'].weight).flatten(1).any(1)
            self.params['changed_channels'] = int(changed.sum())
        if 'statistics' in options:
            options['stats'] = wrong_statistics(record['mod'], options['statistics'], generator)
        self.faulty[record['idx']] = (name, options)
        self.centre = min(self.faulty)
        if name == 'stale_buffer':       # the candidate's own earlier output
            self.params['src_idx'] = facts['stale_src']
            self.params['src'] = self.reference[facts['stale_src']]['name']
        return True

    def put_other_input(self, chooser):
        original = self.inputs[0]
        hows = ['other', 'few', 'scaled', 'rgb'] if original.is_floating_point() \
            else ['other', 'few']
        self.params = {'how': chooser.choice(hows)}
        generator = torch.Generator().manual_seed(self.seed)
        changed = other_input(original.clone(), self.params['how'], generator)
        if original.is_floating_point():
            changed = rnd(changed, self.dtype)
        self.candidate_inputs = [changed] + self.inputs[1:]
        return not torch.equal(changed, original)

    def put_whole_model_fault(self, chooser):
        if self.name == 'global_dtype':
            self.candidate_dtype = chooser.choice(['bf16', 'fp16'])
            self.params = {'dtype': self.candidate_dtype}
        if self.name == 'global_matmul':
            self.precision = chooser.choice(['tf32', 'hf32', 'bf16'])
            self.params = {'in_dt': self.precision}
        return self.name != 'different_input' or self.put_other_input(chooser)

    def known_outputs(self):
        if self.before is None or self.name in WHOLE_MODEL:
            return []
        centre = self.centre
        if centre is None:
            centre = artefacts.centre_of(self.name, self.reference)
        return [r['out'] for r in self.reference[:max(0, centre - self.before)]]

    def run(self):
        def device(*faults_and_precision):
            return run(self.model, self.candidate_inputs, 'cand', self.candidate_dtype,
                       self.seed + 7, *faults_and_precision, known=self.known_outputs())

        if self.name == 'stale_buffer':
            records, _ = device()
            (_, options), = self.faulty.values()
            options['_src'] = records[self.params['src_idx']]['out']
        return device(self.faulty, self.precision)

    def truth(self, effects):
        first = min(self.faulty) if self.faulty else None
        layer = self.reference[first] if self.faulty else None
        if self.faulty:
            hidden = ('W', '_src', 'stats')
            self.params = {k: v for k, v in {**self.params, **self.faulty[first][1]}.items()
                           if k not in hidden}
        everywhere = self.name in WHOLE_MODEL[:2]
        truth = {'kind': self.name,
                 'unfused_bias': self.candidate_dtype != 'fp32' and (self.seed + 7) % 2 == 1,
                 'layer': layer['name'] if layer else
                 ('<input>' if self.name == 'different_input' else None),
                 'layer_idx': first if layer else (0 if everywhere else None),
                 'type': layer['type'] if layer else None, 'params': self.params,
                 'arch': self.arch, 'dtype': self.dtype, 'seed': self.seed,
                 **effects.get(first, {})}
        if self.name == 'global_matmul':
            products = (r for r in self.reference if r['type'] in PRODUCTS)
            truth['layer_idx'] = next(products)['idx']
            truth['layer'] = self.reference[truth['layer_idx']]['name']
        if self.name in ('eps', 'eps_outside_sqrt', 'eps_lost', 'eps_rescaled'):
            truth['params']['eps_ref'] = layer['mod'].eps
        return truth


def attempt_case(name, seed, archs, dtypes, chooser, extra):
    kind = KINDS[name]
    setting = choose_setting(name, kind, archs, dtypes, chooser, extra)
    if setting is None:
        return None
    arch, dtype, options = setting
    model, inputs = build(arch, chooser.randrange(1 << 30), dtype, {**options, **extra})
    reference, _ = run(model, inputs, 'ref', dtype, 1)
    if any(not torch.isfinite(r['out']).all() and r['type'] != 'Scores' for r in reference):
        return None
    pair = Pair(name, seed, arch, dtype, model, inputs, reference, extra.get('before'))
    if kind.types and not pair.put_fault(name, kind, chooser):
        return None
    if name == 'two_faults' and not put_two_faults(pair, chooser):
        return None
    if not pair.put_whole_model_fault(chooser):
        return None
    if kind.artefact:
        return artefacts.finish(kind, pair, chooser)
    candidate, effects = pair.run()
    if pair.faulty and name != 'momentum' and \
            any(e.get('effect_bits', 1) == 0 for e in effects.values()):
        return None                      # no bit differs: not a fault
    truth = pair.truth(effects)
    if name == 'random_source':
        if all(r['type'] != 'Dropout' for r in reference):
            return None
        mark_layer(truth, reference[artefacts.centre_of(name, reference)])
    if name == 'two_faults':
        mark_second(truth, pair)
    return pack(reference, candidate, inputs, pair.candidate_inputs, truth, arch, dtype)


def mark_layer(truth, record):
    truth.update(layer=record['name'], layer_idx=record['idx'], type=record['type'])


def put_two_faults(pair, chooser):
    names = chooser.sample([n for n in NAMED_FAULTS if pair.dtype == 'fp32'
                            or CATALOGUE[n].half], 2)
    placed = [pair.put_fault(n, CATALOGUE[n], chooser) for n in names]
    return all(placed) and len(pair.faulty) == 2


def mark_second(truth, pair):
    (first, (name, _)), (second, (other, _)) = sorted(pair.faulty.items())
    truth['causes'] = list(CATALOGUE[name].causes or (name,))
    truth['second'] = {'layer': pair.reference[second]['name'], 'layer_idx': second,
                       'kind': other}


def base_case(name, seed, archs, dtypes, extra):
    """The pair under an artefact of the dumps that hides no fault of its own."""
    if name in ('holes', 'fused', 'blocks_only'):
        kinds = [NAMED_FAULTS[seed % len(NAMED_FAULTS)]]
    else:
        kinds = ['eps'] if name == 'different_argument' else ['clean']
    if name == 'dump_dtype':
        dtypes = ['fp32']
    if KINDS[name].archs:                # transformers, which have no images
        kinds = ['eps' if k == 'hw_transposed' else k for k in kinds]
    return make_case(seed, kinds, archs or KINDS[name].archs, dtypes, extra)


def make_case(seed, kinds=None, archs=None, dtypes=None, extra=None):
    """One case in memory; retries until a layer fits the fault."""
    chooser = random.Random(seed)
    kinds = kinds or list(CATALOGUE)
    for attempt in range(ATTEMPTS):
        name = kinds[seed % len(kinds)] if attempt < 20 else chooser.choice(kinds)
        if KINDS[name].artefact and not KINDS[name].types:
            case = base_case(name, seed + attempt * SEED_STEP, archs, dtypes, extra)
            case['truth']['seed'] = seed
            case = artefacts.apply(name, KINDS[name], case, random.Random(seed))
        else:
            case = attempt_case(name, seed, archs, dtypes, chooser, extra or {})
        if case is not None:
            return case
    raise RuntimeError('no case for seed %d kinds %s' % (seed, kinds))


def split(words):
    return words.split(',') if words else None


def parse_kinds(parser, text):
    names = []
    for word in split(text) or []:
        if word not in SETS and word not in KINDS:
            parser.error('unknown kind %s (see --list)' % word)
        names += SETS.get(word, [word])
    return names or None


def list_kinds():
    for title, names in list(SETS.items())[:3]:
        print(title)
        for name in names:
            print('  %-26s %s' % (name, ','.join(KINDS[name].types) or '(whole model)'))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--cases', type=int, default=10)
    parser.add_argument('--kinds')
    parser.add_argument('--arch')
    parser.add_argument('--dtype')
    parser.add_argument('--no-inputs', action='store_true')
    parser.add_argument('--no-params', action='store_true')
    parser.add_argument('--list', action='store_true')
    args = parser.parse_args()
    if args.list:
        list_kinds()
        return
    if not args.out:
        parser.error('--out is required')
    kinds = parse_kinds(parser, args.kinds)
    for i in range(args.cases):
        case = make_case(args.seed + i, kinds, split(args.arch), split(args.dtype))
        folder = os.path.join(args.out, 'case_%03d' % i)
        save(case, folder, not args.no_inputs, not args.no_params)
        t = case['truth']
        print('%s %-20s %-14s %-5s %-32s effect %.1e noise %.1e'
              % (os.path.basename(folder), t['kind'], t['arch'], t['dtype'], t['layer'],
                 t.get('effect_rel_l2', 0), t.get('noise_rel_l2', 0)), flush=True)


if __name__ == '__main__':
    main()
