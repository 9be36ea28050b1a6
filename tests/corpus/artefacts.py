"""Dumps that do not show what ran: another tensor under a layer's name, layers left out.

The run itself is honest, or has the fault of its base kind; only the record is changed, in the
layers of meta.json (casefile.py says how).  What comes after agrees again, which is how such a
dump is told from a device that computed something else.
"""
import numpy as np
import torch

from casefile import pack
from kinds import CATALOGUE, GN


def centre_of(name, records):
    """The layer that a pair without a faulty one is about."""
    if name == 'random_source':
        return next(r['idx'] for r in records if r['type'] == 'Dropout')
    return len(records) // 2


def finish(kind, pair, chooser):
    """An artefact at one layer of an honest pair."""
    index, = pair.faulty
    name, options = pair.faulty.pop(index)
    candidate, _ = pair.run()
    record = pair.reference[index]
    truth = pair.truth({})
    truth.update(layer=record['name'], layer_idx=index, type=record['type'], visible=True,
                 params={**pair.params})
    case = pack(pair.reference, candidate, pair.inputs, pair.candidate_inputs, truth, pair.arch,
                pair.dtype)
    return case if LAYER_ARTEFACTS[kind.artefact](case, index, options) else None


def relative(case, reference, candidate):
    """||candidate - reference|| / ||reference|| of two keys, over what is finite."""
    a, b = case['ref'][reference], case['cand'][candidate]
    if a.shape != b.shape or a.dtype.kind != 'f':
        return 0.
    a, b = a.astype(np.float64), b.astype(np.float64)
    valid = np.isfinite(a) & np.isfinite(b)
    return float(np.linalg.norm((b - a)[valid]) / (np.linalg.norm(a[valid]) or 1.))


# --- another tensor under the name ------------------------------------------------------------

def differs(case, index, key):
    layer = case['meta']['layers'][index]
    own, other = case['ref'][layer['out']], case['cand'][key]
    return own.shape == other.shape and relative(case, layer['out'], key) > 1e-2


def before_norm(case, index, options):
    layer = case['meta']['layers'][index]
    layer['cand_out'] = layer['cand_in'][0]
    return differs(case, index, layer['cand_out'])


def hidden_residual(case, index, options):
    """(hidden, residual): the sum that the other side shows is left to the next layer."""
    layer = case['meta']['layers'][index]
    residual, layer['cand_out'] = layer['cand_in']
    layer['extra'] = {'cand': {'output.1': residual}}
    return differs(case, index, layer['cand_out'])


def off_by_one(case, index, options):
    """What the layer of the same type one earlier put out."""
    layers = case['meta']['layers']
    layer = layers[index]
    earlier = [other for other in layers[:index] if other['type'] == layer['type']
               and other['shape'] == layer['shape']]
    if not earlier:
        return False
    layer['cand_out'] = earlier[-1]['out']
    case['truth']['params']['source'] = earlier[-1]['name']
    return differs(case, index, layer['cand_out'])


def bn_folded(case, index, options):
    """The convolution's weight holds the BatchNorm, which is gone."""
    layers = case['meta']['layers']
    conv = layers[index - 1]
    if index == 0 or layers[index]['cand_in'] != [conv['out']]:
        return False
    conv['cand_out'] = layers[index]['out']
    layers[index]['missing'] = ['cand']
    case['truth']['params']['norm'] = layers[index]['name']
    case['truth'].update(layer=conv['name'], layer_idx=index - 1, type=conv['type'],
                         may_be_covered=True)
    return True


def statistics_of(case, layer, side):
    x = case[side][layer[side + '_in'][0]].astype(np.float64)
    if layer['type'] == GN:
        rows = x.reshape(x.shape[0], layer['attrs']['num_groups'], -1)
    else:
        rows = x
    mean = rows.mean(-1) * (layer['type'] != 'RMSNorm')
    return mean, ((rows - mean[..., None]) ** 2).mean(-1)


def rstd_output(case, index, options):
    """Norms that give mean and rstd too; one side writes the variance under that name."""
    layer = case['meta']['layers'][index]
    layer['extra'] = {}
    for side in ('ref', 'cand'):
        mean, var = statistics_of(case, layer, side)
        form = 'rstd' if side == 'ref' else options['form']
        scale = {'rstd': 1 / np.sqrt(var + layer['attrs']['eps']), 'variance': var,
                 'deviation': np.sqrt(var + layer['attrs']['eps'])}[form]
        keys = ['extra/%04d/%d' % (index, i) for i in (1, 2)]
        case[side][keys[0]] = mean.astype(np.float32)
        case[side][keys[1]] = scale.astype(np.float32)
        layer['extra'][side] = {'output.1': keys[0], 'output.2': keys[1]}
    return True


LAYER_ARTEFACTS = {'before_norm': before_norm, 'hidden_residual': hidden_residual,
                   'off_by_one': off_by_one, 'bn_folded': bn_folded,
                   'rstd_output': rstd_output}


# --- the whole dump ---------------------------------------------------------------------------

def holes(case, chooser):
    """A third of the layers is missing, on both sides or on one; never the faulty one."""
    layers = case['meta']['layers']
    rest = [layer for layer in layers if layer['idx'] != case['truth']['layer_idx']]
    both = chooser.random() < .5
    for layer in chooser.sample(rest, len(layers) // 3):
        layer['missing'] = ['ref', 'cand'] if both else ['cand']
    case['truth']['params']['both_sides'] = both
    return True


INSIDE_ATTENTION = ('Scores', 'Softmax', 'MatMul', 'Rope')


def fused(case, chooser):
    """The candidate's attention is one kernel: its inner layers do not exist there."""
    for layer in case['meta']['layers']:
        if layer['type'] in INSIDE_ATTENTION and layer['idx'] != case['truth']['layer_idx']:
            layer['missing'] = ['cand']
    return case['truth']['type'] not in INSIDE_ATTENTION


def block_name(name):
    """blocks.3.attn.q -> blocks.3"""
    parts = name.split('.')
    return '.'.join(parts[:2]) if len(parts) > 2 and parts[1].isdigit() else None


def frame(name, inside, sides):
    first, last = inside[0], inside[-1]
    return {'idx': None, 'name': name, 'call': 0, 'type': 'Block', 'container': sides,
            'attrs': {}, 'params': [], 'shape': last['shape'], 'dtype': last['dtype'],
            'out': last['out'], 'ref_in': first['ref_in'], 'cand_in': first['cand_in']}


def block_effect(case, inside):
    """What the frame shows of the fault: its output's error against its input's."""
    first, last = inside[0], inside[-1]
    case['truth']['effect_rel_l2'] = relative(case, last['out'], last['out'])
    case['truth']['noise_rel_l2'] = relative(case, first['ref_in'][0], first['cand_in'][0])


def blocks_only(case, chooser):
    """Both sides have the blocks' frames; the candidate has nothing inside of every other."""
    truth, inside, layers = case['truth'], {}, []
    for layer in case['meta']['layers']:
        inside.setdefault(block_name(layer['name']), []).append(layer)
    for layer in case['meta']['layers']:
        layers.append(layer)
        name = block_name(layer['name'])
        if name is None:
            continue
        hidden = int(name.split('.')[1]) % 2 == 1
        if hidden:
            layer['missing'] = ['cand']
        if layer is inside[name][-1]:
            layers.append(frame(name, inside[name], ['ref'] if hidden else ['ref', 'cand']))
        if hidden and layer['idx'] == truth['layer_idx']:
            truth.update(layer=name, type='Block')
            truth['causes'] = None       # the frame alone does not say what went wrong in it
            block_effect(case, inside[name])
    case['meta']['layers'] = layers
    return True


def dump_dtype(case, chooser):
    """The candidate ran in float32 and was saved in a narrower type, declared or not."""
    dtype = chooser.choice(['bf16', 'fp16'])
    declared = chooser.random() < .5
    for key, array in list(case['cand'].items()):
        if array.dtype == np.float32 and not key.startswith('state/'):
            t = torch.from_numpy(np.ascontiguousarray(array))
            narrow = t.half() if dtype == 'fp16' else t.to(torch.bfloat16)
            case['cand'][key] = narrow.numpy() if declared and dtype == 'fp16' \
                else narrow.float().numpy()
    if declared:
        case['meta']['cand_dtype'] = dtype
    # A declared type explains its rounding: then no layer needs to be named.
    case['truth'].update(layer_idx=None, any_layer=True, may_be_covered=declared,
                         params={'dtype': dtype, 'declared': declared})
    return case['meta']['dtype'] == 'fp32'


def declared_eps(case, chooser):
    """The candidate says which eps it used."""
    for layer in case['meta']['layers']:
        if layer['idx'] == case['truth']['layer_idx']:
            layer['cand_attrs'] = {**layer['attrs'], 'eps': case['truth']['params']['eps']}
    return True


DUMP_ARTEFACTS = {'holes': holes, 'fused': fused, 'blocks_only': blocks_only,
                  'dump_dtype': dump_dtype, 'declared_eps': declared_eps}


def apply(name, kind, case, chooser):
    base = case['truth']
    base.update(base=base['kind'], kind=name, visible=True)
    causes = kind.causes
    if name in ('holes', 'fused', 'blocks_only'):
        causes = CATALOGUE[base['base']].causes or (base['base'],)
    base['causes'] = list(causes)
    if base['base'] != 'clean':
        del base['visible']              # as visible as the fault itself
    return case if DUMP_ARTEFACTS[kind.artefact](case, chooser) else None
