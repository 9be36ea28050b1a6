"""Another device's arithmetic: every leaf module computed once more, in another order.

`alt(module, inputs, generator, fault)` permutes and splits reductions, takes statistics in
chunks, multiplies in another order and builds exp from exp2.  `fault` holds the options of the
one fault; without any, what comes out is honest rounding noise.  The generator's draws are
part of the corpus: a new option must not draw before an old one.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from models import NORMS, Add, MatMul, RMSNorm, Rope, Scores
from rounding import rnd


def mm(a, b, generator, in_dt=None, acc_dt=None, chunk=None):
    k = a.shape[-1]
    order = torch.randperm(k, generator=generator)
    a, b = rnd(a[..., order], in_dt), rnd(b[..., order, :], in_dt)
    chunk = chunk or (16 if acc_dt else 64)
    total = None
    for s in range(0, k, chunk):
        part = rnd(a[..., s:s + chunk] @ b[..., s:s + chunk, :], acc_dt)
        total = part if total is None else rnd(total + part, acc_dt)
    return total


def csum(x, generator, chunk=48):
    x = x[..., torch.randperm(x.shape[-1], generator=generator)]
    total = 0
    for s in range(0, x.shape[-1], chunk):
        total = total + x[..., s:s + chunk].sum(-1, keepdim=True)
    return total


def conv(module, x, weight, generator, **options):
    k = module.kernel_size
    columns = F.unfold(x, k, module.dilation, module.padding, module.stride)
    n, _, places = columns.shape
    groups = module.groups
    y = mm(weight.view(1, groups, weight.shape[0] // groups, -1),
           columns.view(n, groups, -1, places), generator, **options)
    height = (x.shape[2] + 2 * module.padding[0]
              - module.dilation[0] * (k[0] - 1) - 1) // module.stride[0] + 1
    return y.reshape(n, weight.shape[0], height, -1)


def exp_alt(x):
    return torch.exp2(x * 1.4426950408889634)


def ceil16(n):
    return -(-n // 16) * 16


# --- normalisations ---------------------------------------------------------------------------

class Rows:
    """The tensor cut into the groups that share statistics, and the way back."""

    def __init__(self, module, x, fault):
        self.shape = x.shape
        self.back = lambda t: t.reshape(x.shape)
        axis = fault.get('axis')
        if isinstance(module, (nn.LayerNorm, RMSNorm)):
            self.tokens(x, axis, fault.get('shards'))
        else:
            self.images(module, x, axis, fault)

    def tokens(self, x, axis, shards):
        width = self.shape[-1]
        self.x = x.reshape(-1, width)
        self.padded = ceil16(width)
        self.affine = lambda t: t
        if shards:
            self.x = x.reshape(-1, width // shards)
        if axis == 'all':
            self.x = x.reshape(self.shape[0], -1)
        if axis == 'other':
            self.x = x.transpose(1, 2).reshape(-1, self.shape[1])
            self.back = lambda t: t.reshape(self.shape[0], width, self.shape[1]).transpose(1, 2)

    def images(self, module, x, axis, fault):
        n, c, h, w = self.shape
        is_batch = isinstance(module, nn.BatchNorm2d)
        groups = fault.get('groups') or (module.num_groups if isinstance(module, nn.GroupNorm)
                                         else c)
        self.affine = lambda t: t.view(1, c, 1, 1)
        self.x = x.reshape(n * groups, -1)
        self.padded = ceil16(c // groups) * h * w
        if (is_batch and axis != 'sample') or axis == 'batch':
            self.x = x.transpose(0, 1).reshape(c, -1)
            self.back = lambda t: t.reshape(c, n, h, w).transpose(0, 1)
        if is_batch and fault.get('shards'):
            k = fault['shards']
            self.x = x.view(k, n // k, c, h, w).transpose(1, 2).reshape(k * c, -1)
            self.back = lambda t: t.reshape(k, c, n // k, h, w).transpose(1, 2).reshape(x.shape)
        if axis == 'channel':
            self.x = x.permute(0, 2, 3, 1).reshape(-1, c)
            self.back = lambda t: t.reshape(n, h, w, c).permute(0, 3, 1, 2)


def running_statistics(module, rows, r, nomean, fault):
    mean, var = fault.get('stats') or (module.running_mean0, module.running_var0)
    mean, var = mean.view(-1, 1), var.view(-1, 1)
    if fault.get('axis') == 'sample':
        raise ValueError('running statistics have no samples')
    return r(rows - (mean * 0 if nomean else mean)), var


def batch_statistics(rows, padded, generator, r, nomean, fault):
    m = rows.shape[-1]
    n = padded if fault.get('pad') else m
    mean = r(csum(rows, generator) / n)
    centred = rows if nomean else r(rows - mean)
    if nomean:
        mean = mean * 0
    if fault.get('ex2'):
        var = csum(rows * rows, generator) / n - mean * mean
        if fault.get('clamp', True):
            var = var.clamp(min=0)
    elif fault.get('sumsq16'):
        square = centred.half() * centred.half()
        total = square.float()
        total = total.clamp(max=65504.) if fault['sumsq16'] == 'saturate' else total
        var = csum(total, generator)
        var = var.half().float() if fault['sumsq16'] == 'inf' else var.clamp(max=65504.)
        var = var / n
    elif fault.get('neighbour'):
        return neighbour_statistics(rows, nomean, fault['neighbour'])
    else:
        var = csum(r(centred * centred), generator)
        if fault.get('pad') and not nomean:
            var = var + (n - m) * mean * mean
        var = var / fault.get('divisor', n - 1 if fault.get('unbiased') else n)
    return centred, r(var)


def neighbour_statistics(rows, nomean, k):
    """Statistics over a row and the first k elements of the next, or all but the last -k."""
    if k < 0:
        inside = rows[:, :k]
        mean = 0 * inside[:, :1] if nomean else inside.mean(-1, keepdim=True)
        return rows - mean, ((inside - mean) ** 2).mean(-1, keepdim=True)
    reach = torch.ones(rows.shape[0], k)
    reach[-1] = 0                        # nothing follows the last row
    count = rows.shape[-1] + reach.sum(-1, keepdim=True)
    extra = rows.roll(-1, 0)[:, :k]
    mean = (rows.sum(-1, keepdim=True) + (extra * reach).sum(-1, keepdim=True)) / count
    mean = mean * 0 if nomean else mean
    squares = ((rows - mean) ** 2).sum(-1, keepdim=True)
    return rows - mean, (squares + ((extra - mean) ** 2 * reach).sum(-1, keepdim=True)) / count


def approximate_rsqrt(v, how):
    """A function of v's mantissa only, as fast units compute it."""
    if how == 'magic':                   # one Newton step from the exponent trick
        bits = 0x5f3759df - (v.contiguous().view(torch.int32) >> 1)
        y = bits.view(torch.float32)
        return y * (1.5 - .5 * v * y * y)
    kept = {'12 bits': 11, '8 bits': 8}[how]
    mantissa, exponent = torch.frexp(v)  # the middle of the table's interval stands for it
    step = 2. ** -kept
    middle = (torch.floor(mantissa / step) + .5) * step
    return 1 / torch.sqrt(torch.ldexp(middle, exponent))


def inverse_deviation(rows, var, eps, fault):
    if fault.get('eps_scaled'):          # the row was divided by its maximum before eps came in
        eps = eps * rows.abs().amax(-1, keepdim=True) ** 2
    if fault.get('eps_out'):
        return 1 / (var.sqrt() + eps)
    if fault.get('rsqrt'):
        return approximate_rsqrt(var + eps, fault['rsqrt'])
    return 1 / torch.sqrt(var + eps)


def affine_of(module, fault):
    weight, bias = getattr(module, 'weight', None), getattr(module, 'bias', None)
    if weight is not None and getattr(module, 'one_plus', False) != bool(fault.get('onepw')):
        weight = weight + 1
    if fault.get('now'):
        weight = None
    return fault.get('W', weight), None if fault.get('nob') else bias


def norm(module, x, generator, fault):
    """Every normalisation in one place."""
    def r(t):
        return rnd(t, fault.get('internal'))

    is_batch = isinstance(module, nn.BatchNorm2d)
    nomean = isinstance(module, RMSNorm) or fault.get('nomean')
    rows = Rows(module, x, fault)
    values = r(rows.x)
    if is_batch and (not module.training) != bool(fault.get('swap_stats')):
        centred, var = running_statistics(module, values, r, nomean, fault)
    else:
        centred, var = batch_statistics(values, rows.padded, generator, r, nomean, fault)
    scale = inverse_deviation(values, var, fault.get('eps', module.eps), fault)
    scale = rnd(r(scale), fault.get('rstd_dt'))
    y = rows.back(r(centred * scale))
    if fault.get('cast_before_w'):
        y = rnd(y, fault['cast_before_w'])
    weight, bias = affine_of(module, fault)
    if weight is not None:
        y = r(y * rows.affine(weight))
    if bias is not None:
        y = r(y + rows.affine(bias))
    if is_batch and module.training:
        module.state = state_after(module, x, fault)
    return y


def state_after(module, x, fault):
    momentum = fault.get('momentum', module.momentum)
    channels = x.transpose(0, 1).reshape(x.shape[1], -1)
    var = channels.var(1, unbiased=not fault.get('biased_running'))
    if fault.get('broken_state') == 'nan':
        var = var * math.nan
    return {'running_mean': (1 - momentum) * module.running_mean0 + momentum * channels.mean(1),
            'running_var': (1 - momentum) * module.running_var0 + momentum * var}


# --- every other leaf -------------------------------------------------------------------------

def gelu(x, variant):
    if variant == 'tanh':
        return .5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + .044715 * x ** 3)))
    if variant == 'quick':
        return x * torch.sigmoid(1.702 * x)
    return x * (.5 * torch.erfc(-x * .7071067811865476))


def silu(x, r):
    return r(r(x) * r(1 / r(1 + r(exp_alt(-r(x))))))


def softmax(x, generator, r, fault):
    x = r(x)
    top = 0 if fault.get('nomax') else x.max(-1, keepdim=True)[0]
    e = r(exp_alt(r(x - top)))
    return r(e / r(csum(e, generator)))


def scores(module, q, k, generator, fault, **products):
    y = mm(q, k.transpose(-1, -2), generator, **products) * fault.get('scale', module.scale)
    if not module.causal or fault.get('nomask'):
        return y
    future = torch.ones(y.shape[-2:], dtype=torch.bool).triu(1 + fault.get('mask_off', 0))
    return y.masked_fill(future, -math.inf)


def add(a, b, fault):
    if fault.get('skip_second'):
        return a + 0
    return b + 0 if fault.get('skip_first') else a + b


def product(module, x, generator, fault, products):
    weight = fault.get('W', module.weight)
    bias = None if fault.get('nob') else module.bias
    if isinstance(module, nn.Linear):
        y = rnd(mm(x, weight.t(), generator, **products), fault.get('unfused'))
        return y + bias if bias is not None else y
    y = rnd(conv(module, x, weight, generator, **products), fault.get('unfused'))
    return y + bias.view(1, -1, 1, 1) if bias is not None else y


def alt(module, inputs, generator, fault):
    x = inputs[0]
    products = {key: fault[key] for key in ('in_dt', 'acc_dt') if key in fault}

    def r(t):
        return rnd(t, fault.get('internal'))

    if isinstance(module, (nn.Linear, nn.Conv2d)):
        return product(module, x, generator, fault, products)
    if isinstance(module, NORMS):
        return norm(module, x, generator, fault)
    if isinstance(module, nn.Embedding):
        return fault.get('W', module.weight)[x]
    if isinstance(module, nn.ReLU):
        return x.clamp(min=0)
    if isinstance(module, nn.ReLU6):
        return x.clamp(min=0) if fault.get('noclip') else x.clamp(0, 6)
    if isinstance(module, nn.GELU):
        return gelu(x, fault.get('gelu'))
    if isinstance(module, nn.SiLU):
        return silu(x, r)
    if isinstance(module, nn.Softmax):
        return softmax(x, generator, r, fault)
    if isinstance(module, Scores):
        return scores(module, x, inputs[1], generator, fault, **products)
    if isinstance(module, MatMul):
        return mm(x, inputs[1], generator, **products)
    if isinstance(module, Rope):
        return module.forward(x, fault.get('off', 0), fault.get('style', 'half'),
                              fault.get('base'), alt=True)
    if isinstance(module, Add):
        return add(x, inputs[1], fault)
    if isinstance(module, nn.AdaptiveAvgPool2d):
        return csum(x.flatten(2), generator).unsqueeze(-1) / (x.shape[2] * x.shape[3])
    return module.forward(*inputs)
