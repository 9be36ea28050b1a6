"""Architectures that no threshold of the tool was set on: what holds on models.py must hold here.

Modules that are called many times in one pass (recurrent), outputs that are indices (experts),
inputs from far back (skip connections, cross attention), permutes between the layers
(channels last), one product for queries, keys and values, and depths from 1 to 20 blocks.
"""
import torch
from torch import nn

from models import Add, BlockLN, Concat, LBlock, MatMul, Mul, ResGN, RMSNorm, Scores


class TopK(nn.Module):
    """The indices of the k largest: an integer output."""

    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        return x.topk(self.k, -1)[1]


class Gates(nn.Module):
    """The probabilities of the chosen experts, scaled to one; zero for the others."""

    def forward(self, probabilities, chosen):
        kept = torch.zeros_like(probabilities).scatter(-1, chosen, 1.) * probabilities
        return kept / kept.sum(-1, keepdim=True)


class LayerScale(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.full((d,), .3))

    def forward(self, x):
        return x * self.weight


# --- recurrent --------------------------------------------------------------------------------

class GRUCell(nn.Module):
    """One step out of leaves, so that each is called once a token."""

    def __init__(self, d, h):
        super().__init__()
        self.reset_x, self.reset_h = nn.Linear(d, h), nn.Linear(h, h)
        self.update_x, self.update_h = nn.Linear(d, h), nn.Linear(h, h)
        self.new_x, self.new_h = nn.Linear(d, h), nn.Linear(h, h)
        self.add, self.mul = Add(), Mul()
        self.sigmoid, self.tanh = nn.Sigmoid(), nn.Tanh()

    def forward(self, x, h):
        r = self.sigmoid(self.add(self.reset_x(x), self.reset_h(h)))
        z = self.sigmoid(self.add(self.update_x(x), self.update_h(h)))
        n = self.tanh(self.add(self.new_x(x), self.mul(r, self.new_h(h))))
        return self.add(self.mul(1 - z, n), self.mul(z, h))


class Recurrent(nn.Module):
    def __init__(self, d, h, tokens):
        super().__init__()
        self.emb = nn.Embedding(200, d)
        self.norm_in = nn.LayerNorm(d)
        self.cell = GRUCell(d, h)
        self.norm = nn.LayerNorm(h)
        self.head = nn.Linear(h, 40)
        self.h, self.tokens = h, tokens

    def forward(self, ids):
        x = self.norm_in(self.emb(ids))
        h, out = torch.zeros(ids.shape[0], self.h), []
        for t in range(self.tokens):
            h = self.cell(x[:, t], h)
            out.append(h)
        return self.head(self.norm(torch.stack(out, 1)))


# --- transformers -----------------------------------------------------------------------------

class Experts(nn.Module):
    def __init__(self, d, count, k):
        super().__init__()
        self.router = nn.Linear(d, count, False)
        self.softmax = nn.Softmax(-1)
        self.topk = TopK(k)
        self.gates = Gates()
        self.up = nn.ModuleList([nn.Linear(d, 2 * d, False) for _ in range(count)])
        self.act = nn.SiLU()
        self.down = nn.ModuleList([nn.Linear(2 * d, d, False) for _ in range(count)])
        self.mul, self.add = Mul(), Add()

    def forward(self, x):
        p = self.softmax(self.router(x))
        gates, total = self.gates(p, self.topk(p)), None
        for e, (up, down) in enumerate(zip(self.up, self.down)):
            y = self.mul(down(self.act(up(x))), gates[..., e:e + 1].expand_as(x).contiguous())
            total = y if total is None else self.add(total, y)
        return total


class ExpertBlock(LBlock):
    def __init__(self, d, h, eps, count, k):
        super().__init__(d, h, d, eps)
        self.experts = Experts(d, count, k)
        del self.gate, self.up, self.act, self.mul, self.down

    def forward(self, x):
        x = self.add1(x, self.attn(self.input_norm(x)))
        return self.add2(x, self.experts(self.post_norm(x)))


class ExpertModel(nn.Module):
    def __init__(self, d, h, depth, eps=1e-6):
        super().__init__()
        self.emb = nn.Embedding(200, d)
        self.layers = nn.ModuleList([ExpertBlock(d, h, eps, 4, 2) for _ in range(depth)])
        self.norm = RMSNorm(d, eps)
        self.lm_head = nn.Linear(d, 64, False)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


class CrossAttention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.q, self.kv = nn.Linear(d, d), nn.Linear(d, 2 * d)
        self.scores = Scores((d // h) ** -.5, False)
        self.softmax = nn.Softmax(-1)
        self.av = MatMul()
        self.o = nn.Linear(d, d)

    def split(self, t):
        return t.view(t.shape[0], t.shape[1], self.h, -1).transpose(1, 2).contiguous()

    def forward(self, x, memory):
        k, v = self.kv(memory).chunk(2, -1)
        y = self.av(self.softmax(self.scores(self.split(self.q(x)),
                                             self.split(k.contiguous()))),
                    self.split(v.contiguous()))
        return self.o(y.transpose(1, 2).reshape(x.shape))


class DecoderBlock(BlockLN):
    def __init__(self, d, h, eps):
        super().__init__(d, h, eps, True, False)
        self.ln_cross = nn.LayerNorm(d, eps)
        self.cross = CrossAttention(d, h)
        self.add_cross = Add()

    def forward(self, x, memory):
        x = self.add1(x, self.attn(self.ln1(x)))
        x = self.add_cross(x, self.cross(self.ln_cross(x), memory))
        return self.add2(x, self.fc2(self.act(self.fc1(self.ln2(x)))))


class EncoderDecoder(nn.Module):
    def __init__(self, d, h, depth, eps=1e-6):
        super().__init__()
        self.emb = nn.Embedding(200, d)
        self.encoder = nn.ModuleList([BlockLN(d, h, eps, False, False) for _ in range(depth)])
        self.ln_enc = nn.LayerNorm(d, eps)
        self.decoder = nn.ModuleList([DecoderBlock(d, h, eps) for _ in range(depth)])
        self.ln_dec = nn.LayerNorm(d, eps)
        self.head = nn.Linear(d, 64, False)

    def forward(self, source, target):
        memory = self.emb(source)
        for block in self.encoder:
            memory = block(memory)
        memory, x = self.ln_enc(memory), self.emb(target)
        for block in self.decoder:
            x = block(x, memory)
        return self.head(self.ln_dec(x))


class FusedBlock(nn.Module):
    """Queries, keys and values in one product; scaled branches; a class token."""

    def __init__(self, d, h, eps):
        super().__init__()
        self.h = h
        self.ln1 = nn.LayerNorm(d, eps)
        self.qkv = nn.Linear(d, 3 * d)
        self.scores = Scores((d // h) ** -.5, False)
        self.softmax = nn.Softmax(-1)
        self.av = MatMul()
        self.proj = nn.Linear(d, d)
        self.scale1, self.scale2 = LayerScale(d), LayerScale(d)
        self.add1, self.add2 = Add(), Add()
        self.ln2 = nn.LayerNorm(d, eps)
        self.fc1, self.act, self.fc2 = nn.Linear(d, 3 * d), nn.GELU(), nn.Linear(3 * d, d)

    def forward(self, x):
        n, tokens, d = x.shape
        parts = self.qkv(self.ln1(x)).view(n, tokens, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        q, k, v = (p.contiguous() for p in parts)
        y = self.av(self.softmax(self.scores(q, k)), v).transpose(1, 2).reshape(n, tokens, d)
        x = self.add1(x, self.scale1(self.proj(y)))
        return self.add2(x, self.scale2(self.fc2(self.act(self.fc1(self.ln2(x))))))


class ClassViT(nn.Module):
    def __init__(self, d, h, depth, eps=1e-6):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 8, 8)
        self.cls = nn.Parameter(torch.randn(1, 1, d) * .1)
        self.drop = nn.Dropout(.1)
        self.blocks = nn.ModuleList([FusedBlock(d, h, eps) for _ in range(depth)])
        self.norm = nn.LayerNorm(d, eps)
        self.head = nn.Linear(d, 50)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = self.drop(torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0].contiguous())


# --- convolutional ----------------------------------------------------------------------------

class DeepUNet(nn.Module):
    """Three levels, two skip connections, learned upsampling."""

    def __init__(self, c, g, eps=1e-5):
        super().__init__()
        self.conv_in = nn.Conv2d(3, c, 3, 1, 1)
        self.d1, self.down1 = ResGN(c, c, g, eps), nn.Conv2d(c, 2 * c, 3, 2, 1)
        self.d2, self.down2 = ResGN(2 * c, 2 * c, g, eps), nn.Conv2d(2 * c, 2 * c, 3, 2, 1)
        self.mid = ResGN(2 * c, 2 * c, g, eps)
        self.up2, self.cat2 = nn.ConvTranspose2d(2 * c, 2 * c, 2, 2), Concat()
        self.u2 = ResGN(4 * c, 2 * c, g, eps)
        self.up1, self.cat1 = nn.ConvTranspose2d(2 * c, c, 2, 2), Concat()
        self.u1 = ResGN(2 * c, c, g, eps)
        self.norm_out, self.act = nn.GroupNorm(g, c, eps), nn.SiLU()
        self.conv_out = nn.Conv2d(c, 3, 1)

    def forward(self, x):
        a = self.d1(self.conv_in(x))
        b = self.d2(self.down1(a))
        y = self.u2(self.cat2(self.up2(self.mid(self.down2(b))), b))
        y = self.u1(self.cat1(self.up1(y), a))
        return self.conv_out(self.act(self.norm_out(y)))


class ConvNextBlock(nn.Module):
    def __init__(self, c, eps):
        super().__init__()
        self.dw = nn.Conv2d(c, c, 7, 1, 3, groups=c)
        self.norm = nn.LayerNorm(c, eps)
        self.fc1, self.act, self.fc2 = nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c)
        self.scale, self.add = LayerScale(c), Add()

    def forward(self, x):
        y = self.norm(self.dw(x).permute(0, 2, 3, 1).contiguous())
        y = self.scale(self.fc2(self.act(self.fc1(y)))).permute(0, 3, 1, 2).contiguous()
        return self.add(x, y)


class ConvNext(nn.Module):
    def __init__(self, c, depth, eps=1e-6):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 4, 4)
        self.blocks = nn.Sequential(*[ConvNextBlock(c, eps) for _ in range(depth)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.norm = nn.LayerNorm(c, eps)
        self.head = nn.Linear(c, 30)

    def forward(self, x):
        return self.head(self.norm(self.pool(self.blocks(self.stem(x))).flatten(1)))


class Branches(nn.Module):
    """Parallel branches that are concatenated, BatchNorm in each, pooling in one."""

    def __init__(self, c):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(c, c // 2, 1, bias=False), nn.BatchNorm2d(c // 2)
        self.c3, self.b3 = nn.Conv2d(c, c // 2, 3, 1, 1, bias=False), nn.BatchNorm2d(c // 2)
        self.pool = nn.MaxPool2d(3, 1, 1)
        self.act, self.cat = nn.ReLU(), Concat()
        self.mix, self.bm = nn.Conv2d(2 * c, c, 1, bias=False), nn.BatchNorm2d(c)
        self.cat2 = Concat()

    def forward(self, x):
        a, b = self.act(self.b1(self.c1(x))), self.act(self.b3(self.c3(x)))
        return self.act(self.bm(self.mix(self.cat2(self.cat(a, b), self.pool(x)))))


class Inception(nn.Module):
    def __init__(self, c, depth):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, c, 3, 2, 1, bias=False), nn.BatchNorm2d(c)
        self.act = nn.ReLU6()
        self.blocks = nn.Sequential(*[Branches(c) for _ in range(depth)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(c, 30)

    def forward(self, x):
        x = self.blocks(self.act(self.norm(self.stem(x))))
        return self.fc(self.pool(x).flatten(1))
