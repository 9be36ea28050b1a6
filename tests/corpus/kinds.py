"""What can be wrong, and in which layers: one row a kind.

The first table is the catalogue that a seed draws from when no kinds are named; its order and
its draws are part of the corpus.  The second holds kinds that came later, the third faults
that no cause describes: there the tool must find the layer and claim nothing.
`causes` are the tool's words that are right; where the same numbers allow two, both stand.
"""
from dataclasses import dataclass, field
from typing import Callable, Optional

from devices import ceil16

LN, RMS, GN, IN, BN = 'LayerNorm', 'RMSNorm', 'GroupNorm', 'InstanceNorm2d', 'BatchNorm2d'
GEMMA = 'GemmaRMSNorm'
ALL_NORMS = (LN, RMS, GN, IN, BN)
WEIGHTED = ('Linear', 'Conv2d')
PRODUCTS = WEIGHTED + ('Scores', 'MatMul')
FLOATING = PRODUCTS + ('GELU', 'SiLU', 'Add', 'Mul', 'Softmax', 'ReLU', 'Rope') + ALL_NORMS
IMAGE_TYPES = ('Conv2d', BN, GN, IN, 'ReLU', 'ReLU6', 'SiLU')
TRANSFORMERS = ['gpt2', 'bert', 'vit', 'llama']
CONVOLUTIONAL = ['resnet18', 'resnet18_train', 'mobilenet_v2', 'unet', 'style']


@dataclass
class Kind:
    types: tuple                          # layers that may carry it; () is the whole model
    fits: Optional[Callable] = None       # of a layer's facts
    sample: Optional[Callable] = None     # (chooser, facts, module) -> options
    archs: Optional[list] = None          # where it can occur; None is everywhere
    half: bool = False                    # also in bf16 and fp16
    causes: Optional[tuple] = None        # None: the kind's own name
    options: dict = field(default_factory=dict)  # for the model
    artefact: Optional[str] = None        # done to the finished dumps: artefacts.py


def image(layer):
    shape = layer['shape']
    return len(shape) == 4 and shape[2] == shape[3] and shape[2] >= 4 \
        and layer['type'] in IMAGE_TYPES


def trained_or_other(layer):
    return layer['type'] != BN or layer['train']


def tail_length(chooser, layer, module):
    lengths = [t for t in (16, 32, 64, 128, 256, 512) if t * 3 < layer['numel']]
    return {'n': chooser.choice(lengths or [4])}


def nothing(chooser, layer, module):
    return {}


def always(**options):
    return lambda chooser, layer, module: dict(options)


def one_of(key, *values):
    return lambda chooser, layer, module: {key: chooser.choice(values)}


def sample_eps(chooser, layer, module):
    values = [e for e in (1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3) if e != module.eps]
    return {'eps': chooser.choice(values)}


def sample_momentum(chooser, layer, module):
    return chooser.choice([{'momentum': .9}, {'momentum': .01}, {'biased_running': True}])


def sample_axis(chooser, layer, module):
    axes = {LN: chooser.choice(['all', 'other']), RMS: chooser.choice(['all', 'other']),
            GN: 'channel', IN: 'batch', BN: 'sample'}
    return {'axis': axes[layer['type']]}


def sample_groups(chooser, layer, module):
    now, channels = module.num_groups, module.num_channels
    counts = [g for g in (1, 2, now // 2, now * 2, channels) if g != now and channels % g == 0]
    return {'groups': chooser.choice(counts)}


def sample_channel(chooser, layer, module):
    return {'how': chooser.choice(['scale', 'garbage', 'zero']), 'pick': chooser.random()}


def sample_scale(chooser, layer, module):
    return {'scale': chooser.choice([1., module.scale ** 2, module.scale / 2])}


def sample_mask(chooser, layer, module):
    return chooser.choice([{'nomask': True}, {'mask_off': 1}])


def sample_rope(chooser, layer, module):
    return chooser.choice([{'off': 1}, {'off': 1}, {'style': 'interleaved'}, {'base': 500000.}])


def sample_residual(chooser, layer, module):
    return chooser.choice([{'skip_second': True}, {'skip_first': True}])


def sample_nonfinite(chooser, layer, module):
    return {'val': chooser.choice(['nan', 'inf']), 'where': chooser.choice(['row', 'element'])}


def sample_rows(chooser, layer, module):
    return {'dim': chooser.choice([0, 1]) if len(layer['shape']) == 3 else 0}


CATALOGUE = {
    'clean': Kind((), half=True, causes=()),
    'global_dtype': Kind((), causes=('dtype_global',)),
    'global_matmul': Kind((), causes=('matmul_lowp',)),
    'different_input': Kind((), half=True),
    'eps': Kind(ALL_NORMS, None, sample_eps, half=True),
    'eps_outside_sqrt': Kind(ALL_NORMS, None, always(eps_out=True)),
    'unbiased_var': Kind((LN, GN, IN, BN), trained_or_other, always(unbiased=True), half=True,
                         causes=('unbiased_variance',)),
    'mean_not_subtracted': Kind((LN, GN, IN, BN), None, always(nomean=True), half=True),
    'weight_dropped': Kind(ALL_NORMS, None, always(now=True), half=True),
    'one_plus_weight': Kind(ALL_NORMS, None, always(onepw=True), half=True),
    'bias_dropped': Kind((LN, GN, IN, BN) + WEIGHTED, lambda layer: layer['bias'],
                         always(nob=True), half=True),
    'running_vs_batch': Kind((BN,), None, always(swap_stats=True), half=True,
                             archs=['resnet18', 'resnet18_train', 'mobilenet_v2']),
    'momentum': Kind((BN,), lambda layer: layer['train'], sample_momentum,
                     archs=['resnet18_train']),
    'norm_internal_lowp': Kind(ALL_NORMS, None, one_of('internal', 'fp16', 'bf16', 'tf32')),
    'cast_before_weight': Kind(ALL_NORMS, None, one_of('cast_before_w', 'bf16', 'bf16', 'fp16'),
                               half=True),
    'ex2_minus_mean2': Kind((LN, GN, IN), lambda layer: layer['mratio'] > 15, always(ex2=True),
                            archs=['gpt2', 'bert', 'vit', 'unet', 'style'],
                            causes=('cancellation',)),
    'sumsq_overflow': Kind((RMS, LN), lambda layer: layer['inmax'] > 256,
                           one_of('sumsq16', 'inf', 'saturate'), archs=['llama']),
    'padding_counted': Kind((LN, RMS, GN), lambda layer: layer['padc'], always(pad=True),
                            half=True, archs=TRANSFORMERS + ['unet']),
    'wrong_axis': Kind(ALL_NORMS,
                       lambda layer: len(layer['shape']) >= 3 and trained_or_other(layer),
                       sample_axis, half=True),
    'wrong_groups': Kind((GN,), None, sample_groups, half=True, archs=['unet']),
    'out_rounded': Kind(FLOATING, None, one_of('_out', 'bf16', 'fp16', 'tf32'),
                        causes=('dtype_effective',)),
    'hw_transposed': Kind(FLOATING, image, nothing, half=True, archs=CONVOLUTIONAL,
                          causes=('transposed',)),
    'nhwc_as_nchw': Kind(FLOATING, image, nothing, half=True, archs=CONVOLUTIONAL,
                         causes=('layout',)),
    'tail_zero': Kind(FLOATING, None, tail_length, half=True, causes=('tail_not_written',)),
    'tail_stale': Kind(FLOATING, None, tail_length, half=True, causes=('tail_not_written',)),
    'one_channel': Kind(WEIGHTED + ALL_NORMS, None, sample_channel, half=True),
    'stale_buffer': Kind(FLOATING, lambda layer: layer['stale_src'] is not None, nothing,
                         half=True),
    'dropout_on': Kind(('Linear', 'Softmax', 'Add', 'Embedding'), None, one_of('p', .1, .2, .5),
                       half=True, causes=('dropout',)),
    'weight_differs': Kind(WEIGHTED, None,
                           one_of('_w', 'few', 'noise', 'scaled', 'other', 'row'), half=True,
                           causes=('different_weights',)),
    'matmul_lowp': Kind(PRODUCTS, None, one_of('in_dt', 'tf32', 'hf32', 'bf16', 'fp16')),
    'matmul_acc_fp16': Kind(PRODUCTS, None, always(acc_dt='fp16'), causes=('matmul_lowp',)),
    'gelu_variant': Kind(('GELU',), None, one_of('gelu', 'tanh', 'tanh', 'quick'), half=True,
                         archs=['gpt2', 'bert', 'vit'], causes=('activation_variant',)),
    'softmax_lowp': Kind(('Softmax',), None, one_of('internal', 'bf16', 'fp16'),
                         archs=TRANSFORMERS),
    'attn_scale': Kind(('Scores',), None, sample_scale, half=True, archs=TRANSFORMERS,
                       causes=('attention_scale',)),
    'mask_wrong': Kind(('Scores',), lambda layer: layer['causal'], sample_mask, half=True,
                       archs=['gpt2', 'llama'], causes=('attention_mask',)),
    'rope': Kind(('Rope',), None, sample_rope, half=True, archs=['llama']),
    'residual_missing': Kind(('Add',), None, sample_residual, half=True,
                             archs=TRANSFORMERS + ['unet', 'style']),
    'naninf': Kind(FLOATING, None, sample_nonfinite, half=True, causes=('nonfinite',)),
    'row_permuted': Kind(FLOATING,
                         lambda layer: len(layer['shape']) >= 2 and layer['shape'][0] >= 2,
                         sample_rows, half=True, causes=('batch_permuted',)),
}


# --- kinds that came later --------------------------------------------------------------------

ROW_NORMS = (LN, RMS, GEMMA)
LATER_FLOATING = FLOATING + (GEMMA,)
LATER_ARCHS = ['resnet18', 'mobilenet_v2', 'gpt2', 'bert', 'vit', 'llama', 'gemma', 'unet',
               'style', 'smallres', 'smallres_train']


def reduced(layer):
    """How many elements share one divisor."""
    shape = layer['shape']
    if layer['type'] in (LN, RMS, GEMMA):
        return shape[-1]
    pixels = shape[2] * shape[3]
    return pixels * {GN: layer['per_group'], IN: 1, BN: shape[0]}[layer['type']]


def sample_shards(chooser, layer, module):
    if layer['type'] == BN:
        counts = [k for k in (2, 4) if layer['shape'][0] % (2 * k) == 0]
    else:
        counts = [k for k in (2, 4) if layer['shape'][-1] % k == 0]
    return {'shards': chooser.choice(counts)}


def sample_divisor(chooser, layer, module):
    n = reduced(layer)
    how = chooser.choice(['sum', 'blocks of 16', 'two ranks', 'half'])
    return {'how': how, 'count': n,
            'divisor': {'sum': 1, 'blocks of 16': ceil16(n) // 16, 'two ranks': 2 * n,
                        'half': n / 2}[how]}


def sample_neighbour(chooser, layer, module):
    n = reduced(layer)
    lengths = [k for k in (1, 4, ceil16(n) - n, 16, -4) if k and abs(k) < n // 2]
    return {'neighbour': chooser.choice(lengths)}


def sample_permutation(chooser, layer, module):
    return {'how': chooser.choice(['reversed', 'swapped pair', 'shuffled', 'interleaved'])}


INDEX_LIMITS = (2 ** 15, 2 ** 16)  # what an index of 16 bits counts, signed and unsigned


def sample_index(chooser, layer, module):
    how = chooser.choice(['wrapped', 'zero', 'nan'])
    rows = layer['shape'][0]
    if rows > 65536:
        return {'limit': 65536 * (layer['numel'] // rows), 'rows': 65536, 'how': how}
    limits = [n for n in INDEX_LIMITS if n * 1.05 < layer['numel'] <= 8 * n]
    return {'limit': limits[-1], 'how': how}


def sample_range(chooser, layer, module):
    n = layer['numel']
    length = chooser.choice([k for k in (64, 128, 256, 512, 1024) if k * 6 < n] or [16])
    return {'start': chooser.randrange(n // 2) // 16 * 16, 'length': length}


def sample_stale(chooser, layer, module):
    return {'statistics': chooser.choice(['initial', 'initial', 'other step'])}


def long_enough(layer):
    return len(layer['shape']) >= 2 and layer['numel'] >= 64


NAMED_FAULTS = ['eps', 'weight_dropped', 'mean_not_subtracted', 'tail_zero', 'one_channel',
                'gelu_variant', 'residual_missing', 'naninf', 'out_rounded', 'wrong_axis',
                'hw_transposed', 'matmul_lowp']

LATER = {
    'shard_statistics': Kind(
        (LN, RMS, BN),
        lambda layer: layer['shape'][0] % 4 == 0 and layer['train'] if layer['type'] == BN
        else layer['shape'][-1] % 4 == 0,
        sample_shards, archs=['gpt2', 'vit', 'llama', 'smallres_train', 'resnet18_train'],
        half=True, options={'batch': 8}),
    'rstd_rounded': Kind(ALL_NORMS, None, one_of('rstd_dt', 'bf16', 'fp16', 'tf32')),
    'approximate_rsqrt': Kind(ALL_NORMS, trained_or_other,
                              one_of('rsqrt', 'magic', '12 bits', '8 bits')),
    'wrong_divisor': Kind(ALL_NORMS, trained_or_other, sample_divisor, half=True),
    'neighbour_in_statistics': Kind((LN, RMS, GN, IN), lambda layer: reduced(layer) >= 8,
                                    sample_neighbour, half=True),
    'eps_lost': Kind(ALL_NORMS, None, always(eps=0.), causes=('eps',), half=True),
    'eps_rescaled': Kind((LN, RMS, GN, IN), None, always(eps_scaled=True),
                         causes=('eps',)),
    'plain_weight': Kind((GEMMA,), None, always(onepw=True), archs=['gemma'], half=True,
                         causes=('one_plus_weight',)),
    'stale_statistics': Kind((BN,), lambda layer: not layer['train'], sample_stale, half=True,
                             archs=['resnet18', 'mobilenet_v2', 'smallres'],
                             causes=('running_vs_batch', 'different_weights')),
    'nan_statistics': Kind((BN,), lambda layer: not layer['train'],
                           always(statistics='nan'), half=True, causes=('nonfinite',),
                           archs=['resnet18', 'mobilenet_v2', 'smallres']),
    'trained_nan_statistics': Kind((), archs=['smallres_train', 'resnet18_train'], half=True,
                                   options={'statistics': 'nan'}, causes=()),
    'trained_stale_statistics': Kind((), archs=['smallres_train', 'resnet18_train'], half=True,
                                     options={'statistics': 'initial'}, causes=()),
    'index_overflow': Kind(LATER_FLOATING, lambda layer: layer['numel'] > 1.1 * INDEX_LIMITS[0]
                           and layer['numel'] <= 8 * INDEX_LIMITS[1],
                           sample_index, half=True,
                           archs=['resnet18', 'resnet18_train', 'mobilenet_v2', 'unet']),
    'index_overflow_rows': Kind(('LayerNorm', 'GELU', 'Add', 'Linear'),
                                lambda layer: layer['shape'][0] > 65536, sample_index,
                                archs=['tall'], causes=('index_overflow',)),
    'offset': Kind(LATER_FLOATING, long_enough, one_of('k', 1, 2, 8, 16, 32, -1, -8),
                   half=True),
    'channels_permuted': Kind(WEIGHTED + ALL_NORMS, long_enough, sample_permutation, half=True),
    'quantised': Kind(LATER_FLOATING, long_enough,
                      one_of('how', 'int8', 'int8 channels', 'int4', 'e4m3', 'e5m2')),
    'zeroed': Kind(LATER_FLOATING, None, nothing, half=True),
    'memory_overwritten': Kind(LATER_FLOATING, lambda layer: layer['numel'] >= 512,
                               sample_range, half=True),
    'padded_positions': Kind(('Linear', LN, RMS, 'Add', 'GELU', 'SiLU'),
                             lambda layer: len(layer['shape']) == 3, one_of('tokens', 2, 5),
                             archs=TRANSFORMERS + ['gemma'], half=True),
    'random_source': Kind((), archs=['smallres'], options={'dropout': True},
                          causes=('random_source', 'dropout')),
    'two_faults': Kind((), half=True),
    # What is done to the dumps of an otherwise honest pair.
    'variance_for_rstd': Kind((LN, RMS, GN), None, one_of('form', 'variance', 'deviation'),
                              artefact='rstd_output', half=True),
    'before_norm': Kind((LN, RMS, GEMMA), None, nothing, artefact='before_norm', half=True,
                        causes=('not_same_tensor',)),
    'hidden_residual': Kind(('Add',), None, nothing, artefact='hidden_residual', half=True,
                            archs=TRANSFORMERS + ['gemma'],
                            causes=('not_same_tensor',)),
    'off_by_one': Kind(('Add', LN, RMS, GEMMA), lambda layer: layer['stale_src'] is not None,
                       nothing, artefact='off_by_one', half=True,
                       archs=TRANSFORMERS + ['gemma'], causes=('not_same_tensor',)),
    'bn_folded': Kind((BN,), lambda layer: not layer['train'], nothing, artefact='bn_folded',
                      archs=['smallres', 'resnet18', 'mobilenet_v2'], half=True,
                      causes=('not_same_tensor',)),
    'dump_dtype': Kind((), None, one_of('dtype', 'bf16', 'fp16'), artefact='dump_dtype',
                       causes=('dtype_global', 'dtype_declared', 'dtype_effective')),
    'different_argument': Kind((), artefact='declared_eps', half=True,
                               causes=('eps', 'different_argument')),
    'holes': Kind((), artefact='holes', half=True),
    'holes_clean': Kind((), artefact='holes', half=True, causes=()),
    'fused': Kind((), artefact='fused', half=True, archs=TRANSFORMERS),
    'blocks_only': Kind((), artefact='blocks_only', half=True, archs=TRANSFORMERS),
    'blocks_clean': Kind((), artefact='blocks_only', half=True, archs=TRANSFORMERS,
                         causes=()),
    'gemma_clean': Kind((), archs=['gemma'], half=True, causes=()),
}

FOREIGN = {name: Kind(LATER_FLOATING, long_enough, nothing, archs=LATER_ARCHS, causes=causes)
           for name, causes in (
               ('clip', ('saturated',)), ('noise', ()), ('sign_flips', ()), ('row_scale', ()),
               ('inner_block', ('memory_overwritten',)), ('cubic_bend', ()),
               ('shift_by_one', ('offset',)), ('column_ramp', ()), ('swirl', ()),
               ('leak', ()), ('power', ()), ('smoothed', ()), ('bit_flips', ()),
               ('checkerboard', ()))}

# Pairs in which nothing is wrong.
CLEAN = [name for name, kind in {**CATALOGUE, **LATER}.items() if kind.causes == ()]
KINDS = {**CATALOGUE, **LATER, **FOREIGN}
