"""Damage to a layer's finished output or weight; faults inside the arithmetic are devices.py's.

`damage(kind, options, y, records, chooser, generator)` returns what the faulty device left.
Options may gain what only the tensor could tell: the channel, the row.
"""
import math

import torch

from rounding import rnd


def channel_view(y, channel):
    return y[:, channel] if y.dim() == 4 else y[..., channel]


def channel_axis(y):
    return 1 if y.dim() == 4 else y.dim() - 1


def tail(kind, options, y, records):
    flat = y.contiguous().clone().view(-1)
    n = options['n']
    if kind == 'tail_zero':
        flat[-n:] = 0
    else:
        sources = [r for r in records if r['out'].numel() >= n and r['out'].is_floating_point()]
        stale = sources[-1]['out'].reshape(-1)
        flat[-n:] = stale[-n:] if stale.numel() >= flat.numel() else stale[:n]
    return flat.view(y.shape)


def one_channel(options, y, generator):
    channel = int(options['pick'] * y.shape[channel_axis(y)])
    options['channel'] = channel
    y = y.clone()
    view = channel_view(y, channel)
    if options['how'] == 'scale':
        view.copy_(view * 1.5)
    elif options['how'] == 'garbage':
        view.copy_(torch.randn(view.shape, generator=generator) * y.std())
    else:
        view.copy_(view * 0)
    return y


def nonfinite(options, y, chooser):
    y = y.clone()
    value = math.nan if options['val'] == 'nan' else math.inf
    if options['where'] == 'row':
        rows = y.reshape(-1, y.shape[-1])
        options['row'] = chooser.randrange(rows.shape[0])
        rows[options['row']] = value
        return rows.view(y.shape)
    flat = y.reshape(-1)
    options['index'] = chooser.randrange(flat.numel())
    flat[options['index']] = value
    return flat.view(y.shape)


def weight(how, original, generator, chooser):
    """Another checkpoint's weight, more or less."""
    changed = original.clone()
    flat = changed.view(-1)
    if how == 'few':
        k = max(1, flat.numel() // 2000)
        places = torch.randperm(flat.numel(), generator=generator)[:k]
        flat[places] += torch.randn(k, generator=generator) * changed.std() * 2
    elif how == 'noise':
        changed += torch.randn(changed.shape, generator=generator) * changed.std() \
            * 10 ** chooser.uniform(-3, -1)
    elif how == 'scaled':
        changed *= chooser.choice([.98, 1.02, .5])
    elif how == 'other':
        changed = torch.randn(changed.shape, generator=generator) * changed.std()
    elif how == 'row':
        changed[chooser.randrange(changed.shape[0])] *= -1
    return changed


# --- later kinds ------------------------------------------------------------------------------

def index_overflow(options, y, records):
    """Elements from `limit` on: addressed modulo the limit, or never written."""
    flat = y.contiguous().clone().view(-1)
    limit = options['limit']
    lost = flat.numel() - limit
    if options['how'] == 'wrapped':
        flat[limit:] = flat[:limit].repeat(-(-lost // limit))[:lost]
    else:
        flat[limit:] = 0 if options['how'] == 'zero' else math.nan
    return flat.view(y.shape)


def offset(options, y):
    """Element i holds what belongs to i + k; the rest keeps an old buffer's zeros."""
    flat = y.contiguous().view(-1)
    k = options['k']
    moved = torch.zeros_like(flat)
    if k > 0:
        moved[:-k] = flat[k:]
    else:
        moved[-k:] = flat[:k]
    return moved.view(y.shape)


def permuted(options, y, generator):
    axis = channel_axis(y)
    n = y.shape[axis]
    order = torch.arange(n)
    if options['how'] == 'reversed':
        order = order.flip(0)
    elif options['how'] == 'swapped pair':
        a, b = torch.randperm(n, generator=generator)[:2].tolist()
        order[a], order[b] = b, a
    elif options['how'] == 'shuffled':
        order = torch.randperm(n, generator=generator)
    else:                                # groups of channels, as a shuffle unit deals them
        groups = 4 if n % 4 == 0 else 2 if n % 2 == 0 else n
        order = order.view(groups, -1).t().reshape(-1)
    return y.index_select(axis, order).contiguous()


def quantised(options, y):
    how = options['how']
    if how in ('e4m3', 'e5m2'):
        return rnd(y, how)
    levels = 7 if how == 'int4' else 127
    finite = torch.where(torch.isfinite(y), y, torch.zeros(1)).abs()
    if how == 'int8 channels':
        axis = channel_axis(y)
        others = [i for i in range(y.dim()) if i != axis]
        top = finite.amax(others, keepdim=True)
    else:
        top = finite.max()
    step = (top / levels).clamp(min=1e-12)
    return (y / step).round().clamp(-levels - 1, levels) * step


def overwritten(options, y, generator):
    flat = y.contiguous().clone().view(-1)
    start, length = options['start'], options['length']
    scale = flat[torch.isfinite(flat)].std()
    flat[start:start + length] = torch.randn(length, generator=generator) * scale
    return flat.view(y.shape)


def padded_positions(options, y, generator):
    y = y.clone()
    rest = y[:, -options['tokens']:]
    rest.copy_(torch.randn(rest.shape, generator=generator) * y.std())
    return y


# --- faults that no cause describes -----------------------------------------------------------

def foreign(kind, options, y, generator):
    scale = y[torch.isfinite(y)].std()
    if kind == 'clip':
        return y.clamp(-1.5 * float(scale), 1.5 * float(scale))
    if kind == 'noise':
        return y + torch.randn(y.shape, generator=generator) * scale * 3e-3
    if kind == 'sign_flips':
        flips = torch.rand(y.shape, generator=generator) < .01
        return torch.where(flips, -y, y)
    if kind == 'row_scale':
        return y * (1 + .05 * torch.randn(y.shape[:-1] + (1,), generator=generator))
    if kind == 'inner_block':
        y = y.clone()
        rows, columns = y.shape[-2], y.shape[-1]
        y[..., rows // 4:rows // 4 + max(1, rows // 3),
          columns // 4:columns // 4 + max(1, columns // 3)] *= .7
        return y
    if kind == 'cubic_bend':
        return y + .02 * y ** 3 / (1 + (y / scale) ** 2) / scale ** 2
    if kind == 'shift_by_one':
        return y.reshape(-1).roll(1).view(y.shape)
    if kind == 'column_ramp':
        return y * torch.linspace(.98, 1.03, y.shape[-1])
    if kind == 'swirl':                  # neighbouring pairs turned by a small angle
        n = y.shape[-1] // 2 * 2
        a, b = y[..., 0:n:2], y[..., 1:n:2]
        turned = torch.stack([a * .995 - b * .0999, b * .995 + a * .0999], -1).flatten(-2)
        turned = torch.cat([turned, y[..., n:]], -1)
        return torch.where(torch.isfinite(turned), turned, y)
    return foreign_more(kind, y, scale, generator)


def foreign_more(kind, y, scale, generator):
    finite = torch.isfinite(y)
    plain = torch.where(finite, y, torch.zeros(1))
    if kind == 'leak':                   # each channel holds a little of its neighbour
        changed = plain + .04 * plain.roll(1, channel_axis(y))
    elif kind == 'power':                # a curve that is steeper for large values
        changed = plain.sign() * plain.abs() * (plain.abs() / scale + 1e-3) ** .02
    elif kind == 'smoothed':             # each row averaged a little with the next
        axis = 1 if y.dim() == 3 else y.dim() - 2
        changed = .97 * plain + .03 * plain.roll(-1, axis)
    elif kind == 'bit_flips':            # one bit of the significand, in one value of 300
        hit = torch.rand(y.shape, generator=generator) < 1 / 300
        changed = torch.where(hit, plain * 1.25, plain)
    elif kind == 'checkerboard':         # every other value is too large, as bad lanes make it
        flat = torch.arange(y.numel()).view(y.shape) % 2 == 0
        changed = torch.where(flat, plain * 1.02, plain)
    else:
        raise ValueError(kind)
    return torch.where(finite, changed, y)


FOREIGN = ('clip', 'noise', 'sign_flips', 'row_scale', 'inner_block', 'cubic_bend',
           'shift_by_one', 'column_ramp', 'swirl', 'leak', 'power', 'smoothed', 'bit_flips',
           'checkerboard')


def damage(kind, options, y, records, chooser, generator):
    if kind == 'out_rounded':
        return rnd(y, options['_out'])
    if kind == 'hw_transposed':
        return y.transpose(2, 3).contiguous()
    if kind == 'nhwc_as_nchw':
        return y.permute(0, 2, 3, 1).reshape(y.shape)
    if kind in ('tail_zero', 'tail_stale'):
        return tail(kind, options, y, records)
    if kind == 'one_channel':
        return one_channel(options, y, generator)
    if kind == 'stale_buffer':
        return options['_src'].reshape(y.shape).clone()
    if kind == 'dropout_on':
        kept = torch.rand(y.shape, generator=generator) >= options['p']
        return y * kept.float() / (1 - options['p'])
    if kind == 'naninf':
        return nonfinite(options, y, chooser)
    if kind == 'row_permuted':
        return torch.roll(y, 1, options['dim'])
    if kind.startswith('index_overflow'):
        return index_overflow(options, y, records)
    if kind == 'offset':
        return offset(options, y)
    if kind == 'channels_permuted':
        return permuted(options, y, generator)
    if kind == 'quantised':
        return quantised(options, y)
    if kind == 'zeroed':
        return torch.zeros_like(y)
    if kind == 'memory_overwritten':
        return overwritten(options, y, generator)
    if kind == 'padded_positions':
        return padded_positions(options, y, generator)
    return foreign(kind, options, y, generator) if kind in FOREIGN else y
