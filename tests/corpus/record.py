"""Runs a model as the reference or as the other device and records every leaf's tensors."""
import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

import faults
from devices import alt
from kinds import PRODUCTS
from rounding import rnd

ATTRIBUTES = ('eps', 'momentum', 'num_groups', 'num_channels', 'num_features', 'affine',
              'track_running_stats', 'kernel_size', 'stride', 'padding', 'dilation', 'groups',
              'scale', 'causal', 'base', 'hd', 'dim', 'p', 'normalized_shape', 'scale_factor')


def attributes(module):
    found = {}
    for key in ATTRIBUTES:
        value = getattr(module, key, None)
        if value is not None and not callable(value):
            found[key] = list(value) if isinstance(value, (tuple, torch.Size)) else value
    if isinstance(module, nn.BatchNorm2d):
        found['training'] = module.training
    return found


def reference_output(module, inputs):
    """The plain module, with the running statistics that it had before the step."""
    if isinstance(module, nn.BatchNorm2d):
        return F.batch_norm(inputs[0], module.running_mean0.clone(),
                            module.running_var0.clone(), module.weight, module.bias,
                            module.training, .1, module.eps)
    return type(module).forward(module, *[t.clone() for t in inputs])


def measure_effect(module, inputs, honest, faulty, dtype):
    """The fault against the same device without it, and that device's own noise."""
    base = reference_output(module, inputs)
    valid = torch.isfinite(base) & torch.isfinite(faulty)
    scale = float(base[valid].double().norm()) or 1.
    effect, noise = faulty - honest, honest - rnd(base, dtype)
    return {'effect_rel_l2': float(effect[valid].double().norm()) / scale,
            'noise_rel_l2': float(noise[valid].double().norm()) / scale,
            'effect_max': float(effect[valid].abs().max()) if valid.any() else 0.,
            'effect_bits': int((faulty != honest).sum()),
            'noise_max': float(noise[valid].abs().max()) if valid.any() else 0.}


class Recorder:
    def __init__(self, model, mode, dtype, seed, faulty, precision, known):
        self.known = known                       # outputs that are given, not computed
        self.model = copy.deepcopy(model)
        self.mode, self.dtype = mode, dtype
        self.faulty = faulty                     # execution index -> (kind, options)
        self.precision = precision               # of the operands of every product
        self.generator = torch.Generator().manual_seed(seed)
        self.chooser = random.Random(seed)
        # Half of the narrow candidates add the bias after the product was rounded.
        self.unfused = mode == 'cand' and dtype != 'fp32' and seed % 2 == 1
        self.names = {module: name for name, module in self.model.named_modules()}
        self.calls, self.records, self.effects = {}, [], {}
        for module in self.model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean0 = module.running_mean.clone()
                module.running_var0 = module.running_var.clone()
            if not list(module.children()):
                module.register_forward_pre_hook(self.before)
                module.register_forward_hook(self.after)

    def before(self, module, inputs):
        inputs = tuple(rnd(t, self.dtype) for t in inputs)
        module._saved = [t.clone() for t in inputs]  # an in-place operator changes them
        return inputs

    def recompute(self, module, inputs, index):
        base = {}
        if self.precision and type(module).__name__ in PRODUCTS:
            base['in_dt'] = self.precision
        if self.unfused:
            base['unfused'] = self.dtype
        state = self.generator.get_state()
        honest = rnd(alt(module, inputs, self.generator, base), self.dtype)
        if index not in self.faulty:
            return honest
        kind, options = self.faulty[index]
        self.generator.set_state(state)
        y = alt(module, inputs, self.generator, {**base, **options})
        y = rnd(faults.damage(kind, options, y, self.records, self.chooser, self.generator),
                self.dtype)
        self.effects[index] = measure_effect(module, inputs, honest, y, self.dtype)
        return y

    def after(self, module, _, y):
        inputs, name, index = module._saved, self.names[module], len(self.records)
        self.calls[name] = self.calls.get(name, -1) + 1
        y = self.recompute(module, inputs, index) if self.mode == 'cand' else rnd(y, self.dtype)
        if index < len(self.known):
            y = self.known[index].clone()
        record = {'idx': index, 'name': name, 'call': self.calls[name],
                  'type': type(module).__name__, 'mod': module, 'out': y.detach().clone(),
                  'ins': list(inputs)}
        if isinstance(module, nn.BatchNorm2d) and module.training:
            record['state'] = getattr(module, 'state', None) if self.mode == 'cand' else {
                'running_mean': module.running_mean.clone(),
                'running_var': module.running_var.clone()}
        self.records.append(record)
        return y


def run(model, inputs, mode, dtype, seed, faulty=None, precision=None, known=()):
    """Records in execution order, and each fault's effect by execution index."""
    recorder = Recorder(model, mode, dtype, seed, faulty or {}, precision, known)
    torch.manual_seed(seed)              # for what draws by itself: dropout
    recorder.model(*[t.clone() for t in inputs])
    return recorder.records, recorder.effects
