"""The architectures of the corpus, with weights of realistic scale that nobody trained.

`build(arch, seed, dtype, options)` returns a model and its inputs.  Every random number comes
from the seed in a fixed order, so the order of the statements here is part of the corpus: the
same seed must give the same bytes on every machine with the same torch.

Norm weights lie away from 1 and biases are small; half of the models have outlier channels,
most have a few channels that are nearly dead, and the residual stream grows with depth.
"""
import math

import torch
from torch import nn


# --- leaf modules that torch has no class for -------------------------------------------------

class RMSNorm(nn.Module):
    one_plus = False

    def __init__(self, d, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps
        self.d = d

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


class GemmaRMSNorm(RMSNorm):
    """The weight is stored as its distance from 1."""
    one_plus = True

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * (1 + self.weight)


class Add(nn.Module):
    def forward(self, a, b):
        return a + b


class Mul(nn.Module):
    def forward(self, a, b):
        return a * b


class Concat(nn.Module):
    def forward(self, a, b):
        return torch.cat([a, b], 1)


class Scores(nn.Module):
    def __init__(self, scale, causal):
        super().__init__()
        self.scale = scale
        self.causal = causal

    def forward(self, q, k):
        y = q @ k.transpose(-1, -2) * self.scale
        if not self.causal:
            return y
        return y.masked_fill(torch.ones(y.shape[-2:], dtype=torch.bool).triu(1), -math.inf)


class MatMul(nn.Module):
    def forward(self, a, b):
        return a @ b


class Rope(nn.Module):
    def __init__(self, hd, base=10000.):
        super().__init__()
        self.hd = hd
        self.base = base

    def forward(self, x, off=0, style='half', base=None, alt=False):
        power = -torch.arange(0, self.hd, 2, dtype=torch.float64) / self.hd
        inv = (base or self.base) ** power
        angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64) + off, inv)
        if alt:
            c, s = angle.float().cos(), angle.float().sin()
        else:
            c, s = angle.cos().float(), angle.sin().float()
        if style == 'half':
            a, b = x.chunk(2, -1)
            return torch.cat([a * c - b * s, b * c + a * s], -1)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)


# --- transformers -----------------------------------------------------------------------------

class Attn(nn.Module):
    def __init__(self, d, h, bias, causal, rope=None):
        super().__init__()
        self.h = h
        self.q = nn.Linear(d, d, bias)
        self.k = nn.Linear(d, d, bias)
        self.v = nn.Linear(d, d, bias)
        self.scores = Scores((d // h) ** -.5, causal)
        self.softmax = nn.Softmax(-1)
        self.av = MatMul()
        self.o = nn.Linear(d, d, bias)
        if rope:
            self.rope_q = Rope(d // h, rope)
            self.rope_k = Rope(d // h, rope)
        self.has_rope = bool(rope)

    def forward(self, x):
        batch, tokens, width = x.shape

        def split(t):
            return t.view(batch, tokens, self.h, -1).transpose(1, 2).contiguous()

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        if self.has_rope:
            q, k = self.rope_q(q), self.rope_k(k)
        y = self.av(self.softmax(self.scores(q, k)), v)
        return self.o(y.transpose(1, 2).reshape(batch, tokens, width))


class BlockLN(nn.Module):
    def __init__(self, d, h, eps, causal, post):
        super().__init__()
        self.ln1 = nn.LayerNorm(d, eps)
        self.attn = Attn(d, h, True, causal)
        self.add1 = Add()
        self.ln2 = nn.LayerNorm(d, eps)
        self.fc1 = nn.Linear(d, 4 * d)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4 * d, d)
        self.add2 = Add()
        self.post = post

    def forward(self, x):
        if self.post:
            x = self.ln1(self.add1(x, self.attn(x)))
            return self.ln2(self.add2(x, self.fc2(self.act(self.fc1(x)))))
        x = self.add1(x, self.attn(self.ln1(x)))
        return self.add2(x, self.fc2(self.act(self.fc1(self.ln2(x)))))


class GPT(nn.Module):
    def __init__(self, d, h, depth, eps, vocabulary=200, tokens=24, post=False):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, d)
        self.wpe = nn.Parameter(torch.randn(tokens, d) * .01)
        self.pos = Add()
        self.blocks = nn.ModuleList([BlockLN(d, h, eps, not post, post) for _ in range(depth)])
        self.ln_f = nn.LayerNorm(d, eps)
        self.head = nn.Linear(d, 64, False)

    def forward(self, ids):
        x = self.pos(self.wte(ids), self.wpe[None].expand(ids.shape[0], -1, -1))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


class ViT(nn.Module):
    def __init__(self, d, h, depth, eps):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 8, 8)
        self.pos_emb = nn.Parameter(torch.randn(16, d) * .02)
        self.pos = Add()
        self.blocks = nn.ModuleList([BlockLN(d, h, eps, False, False) for _ in range(depth)])
        self.ln_f = nn.LayerNorm(d, eps)
        self.head = nn.Linear(d, 50)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2).contiguous()
        x = self.pos(x, self.pos_emb[None].expand(x.shape[0], -1, -1))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x)[:, 0])


class LBlock(nn.Module):
    def __init__(self, d, h, f, eps, norm=RMSNorm):
        super().__init__()
        self.input_norm = norm(d, eps)
        self.attn = Attn(d, h, False, True, 10000.)
        self.add1 = Add()
        self.post_norm = norm(d, eps)
        self.gate = nn.Linear(d, f, False)
        self.up = nn.Linear(d, f, False)
        self.act = nn.SiLU()
        self.mul = Mul()
        self.down = nn.Linear(f, d, False)
        self.add2 = Add()

    def forward(self, x):
        x = self.add1(x, self.attn(self.input_norm(x)))
        y = self.post_norm(x)
        return self.add2(x, self.down(self.mul(self.act(self.gate(y)), self.up(y))))


class Llama(nn.Module):
    def __init__(self, d, h, depth, eps, vocabulary=200, norm=RMSNorm):
        super().__init__()
        self.emb = nn.Embedding(vocabulary, d)
        self.layers = nn.ModuleList([LBlock(d, h, int(2.7 * d), eps, norm)
                                     for _ in range(depth)])
        self.norm = norm(d, eps)
        self.lm_head = nn.Linear(d, 64, False)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


# --- convolutional networks -------------------------------------------------------------------

class ResGN(nn.Module):
    def __init__(self, ci, co, g, eps):
        super().__init__()
        self.n1 = nn.GroupNorm(g, ci, eps)
        self.a1 = nn.SiLU()
        self.c1 = nn.Conv2d(ci, co, 3, 1, 1)
        self.n2 = nn.GroupNorm(g, co, eps)
        self.a2 = nn.SiLU()
        self.c2 = nn.Conv2d(co, co, 3, 1, 1)
        self.skip = nn.Conv2d(ci, co, 1) if ci != co else None
        self.add = Add()

    def forward(self, x):
        y = self.c2(self.a2(self.n2(self.c1(self.a1(self.n1(x))))))
        return self.add(self.skip(x) if self.skip is not None else x, y)


class UNet(nn.Module):
    def __init__(self, c, g, eps):
        super().__init__()
        self.conv_in = nn.Conv2d(4, c, 3, 1, 1)
        self.d1 = ResGN(c, c, g, eps)
        self.down = nn.Conv2d(c, 2 * c, 3, 2, 1)
        self.d2 = ResGN(2 * c, 2 * c, g, eps)
        self.mid = ResGN(2 * c, 2 * c, g, eps)
        self.upsample = nn.Upsample(scale_factor=2)
        self.up = nn.Conv2d(2 * c, c, 3, 1, 1)
        self.cat = Concat()
        self.u1 = ResGN(2 * c, c, g, eps)
        self.norm_out = nn.GroupNorm(g, c, eps)
        self.act = nn.SiLU()
        self.conv_out = nn.Conv2d(c, 4, 3, 1, 1)

    def forward(self, x):
        a = self.d1(self.conv_in(x))
        y = self.mid(self.d2(self.down(a)))
        y = self.u1(self.cat(self.up(self.upsample(y)), a))
        return self.conv_out(self.act(self.norm_out(y)))


class ResIN(nn.Module):
    def __init__(self, c, eps):
        super().__init__()
        self.c1 = nn.Conv2d(c, c, 3, 1, 1)
        self.n1 = nn.InstanceNorm2d(c, eps, affine=True)
        self.a = nn.ReLU()
        self.c2 = nn.Conv2d(c, c, 3, 1, 1)
        self.n2 = nn.InstanceNorm2d(c, eps, affine=True)
        self.add = Add()

    def forward(self, x):
        return self.add(x, self.n2(self.c2(self.a(self.n1(self.c1(x))))))


class Style(nn.Module):
    def __init__(self, c, depth, eps):
        super().__init__()
        self.c0 = nn.Conv2d(3, c, 3, 1, 1)
        self.n0 = nn.InstanceNorm2d(c, eps, affine=True)
        self.a0 = nn.ReLU()
        self.down = nn.Conv2d(c, 2 * c, 3, 2, 1)
        self.n1 = nn.InstanceNorm2d(2 * c, eps, affine=True)
        self.a1 = nn.ReLU()
        self.res = nn.Sequential(*[ResIN(2 * c, eps) for _ in range(depth)])
        self.out = nn.Conv2d(2 * c, 3, 3, 1, 1)

    def forward(self, x):
        return self.out(self.res(self.a1(self.n1(self.down(self.a0(self.n0(self.c0(x))))))))


class ResBN(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1 = nn.Conv2d(c, c, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c)
        self.a1 = nn.ReLU()
        self.c2 = nn.Conv2d(c, c, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c)
        self.add = Add()
        self.a2 = nn.ReLU()

    def forward(self, x):
        return self.a2(self.add(x, self.bn2(self.c2(self.a1(self.bn1(self.c1(x)))))))


class SmallResNet(nn.Module):
    """A residual network whose layers fit into a few kilobytes."""

    def __init__(self, c, depth):
        super().__init__()
        self.conv = nn.Conv2d(3, c, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(c)
        self.act = nn.ReLU()
        self.res = nn.Sequential(*[ResBN(c) for _ in range(depth)])
        self.drop = nn.Dropout(.2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(c, 20)

    def forward(self, x):
        x = self.drop(self.res(self.act(self.bn(self.conv(x)))))
        return self.fc(self.pool(x).flatten(1))


class Tall(nn.Module):
    """More than 65,536 rows: what an index of 16 bits cannot count."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.ln1 = nn.LayerNorm(4)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4, 4)
        self.add = Add()
        self.ln2 = nn.LayerNorm(4)

    def forward(self, x):
        x = self.fc1(x)
        return self.ln2(self.add(x, self.fc2(self.act(self.ln1(x)))))


NORMS = (nn.LayerNorm, RMSNorm, nn.GroupNorm, nn.InstanceNorm2d, nn.BatchNorm2d)
