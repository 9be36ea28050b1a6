"""Makes five pairs of dumps from real small models, each run in two ways: examples/pairs/NAME/{gpu,npu}.dump.

    python3 examples/make_examples.py [NAME ...]        needs torch; --out DIR writes elsewhere

    eps            one LayerNorm has eps 1e-4 where the reference has 1e-5, and its input varies little
    autocast       the candidate ran under bfloat16 autocast
    channels_last  the candidate kept its images in NHWC order
    bn_train       one BatchNorm of the candidate was left in train mode
    clean          the same model, its convolutions and products computed by another library

Both runs of a pair take place on this machine's CPU, and the dumps say so; gpu.dump and npu.dump are the
names that the reference and the candidate have by habit.
"""
import argparse
import contextlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "export"))
sys.dont_write_bytecode = True

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from normdiff_hooks import record  # noqa: E402


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        shape = x.shape[:2] + (self.heads, -1)
        q, k, v = [part.reshape(shape).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1)]
        weights = F.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
        x = x + self.proj((weights @ v).transpose(1, 2).flatten(2))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Language(nn.Module):
    """A small language model with small weights, so that what enters its norms varies little."""

    def __init__(self, words=40, width=24, length=12):
        super().__init__()
        self.token, self.position = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        for name, p in self.named_parameters():
            if name.endswith("bias") and "norm" not in name:
                nn.init.zeros_(p)
            elif p.dim() == 2:
                nn.init.normal_(p, std=0.008 if "token" in name or "position" in name else 0.02)

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))[:, -1]


class Vision(nn.Module):
    """Patches by convolution, two transformer blocks, and a classifier."""

    def __init__(self, width=32):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, width, 4, stride=4, bias=False), nn.BatchNorm2d(width)
        self.act, self.blocks = nn.ReLU(inplace=True), nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)
        self.position = nn.Parameter(0.1 * torch.randn(4, width))

    def forward(self, x):
        x = self.act(self.bn(self.stem(x))).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.relu, self.layer1, self.layer2 = nn.ReLU(inplace=True), Residual(width), Residual(width)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(width, 10)

    def forward(self, x):
        x = self.layer2(self.layer1(self.relu(self.bn1(self.conv1(x)))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def seeded(kind, seed):
    """The same model on every call, with the running statistics and scales of one that has seen data."""
    torch.manual_seed(seed)
    model = kind()
    for name, p in model.named_parameters():
        if p.dim() == 1 and name.endswith("weight"):
            nn.init.uniform_(p, 0.5, 1.5)
    if any(isinstance(module, nn.BatchNorm2d) for module in model.modules()):
        for _ in range(60):
            model(images(16))
    return model.eval()


def images(count):
    """Random images whose channels differ in mean and spread."""
    return torch.randn(count, 3, 8, 8) * torch.tensor([0.9, 1.1, 0.7]).view(3, 1, 1) + torch.rand(count, 3, 1, 1)


def run(path, kind, x, seed, change=None, around=contextlib.nullcontext()):
    """One recorded forward pass; `change` works on the model first, `around` is the context it runs in."""
    model = seeded(kind, seed)
    if change:
        change(model)
    torch.manual_seed(seed)
    labels = torch.arange(len(x)) % 10
    with torch.no_grad(), record(model, path, functional=True) as r, around:
        y = model(x)
        r.loss = F.cross_entropy(y.float(), labels)
    return y.float()


def eps(gpu, npu):
    torch.manual_seed(1)
    ids = torch.randint(40, (2, 12))

    def change(model):
        model.blocks[1].norm1.eps = 1e-4
    return run(gpu, Language, ids, 11), run(npu, Language, ids, 11, change)


def autocast(gpu, npu):
    torch.manual_seed(2)
    x = images(4)
    return run(gpu, Vision, x, 12), run(npu, Vision, x, 12, around=torch.autocast("cpu", dtype=torch.bfloat16))


def channels_last(gpu, npu):
    torch.manual_seed(3)
    x = images(4)
    nhwc = dict(memory_format=torch.channels_last)
    return run(gpu, ResNet, x, 13), run(npu, ResNet, x.to(**nhwc), 13, lambda model: model.to(**nhwc))


def bn_train(gpu, npu):
    torch.manual_seed(4)
    x = images(3) * 1.4  # brighter than what the model has seen, as a new set of images may be
    return run(gpu, ResNet, x, 14), run(npu, ResNet, x, 14, lambda model: model.layer1.bn2.train())


def clean(gpu, npu):
    torch.manual_seed(5)
    x = images(4)
    return run(gpu, Vision, x, 15), run(npu, Vision, x, 15, around=torch.backends.mkldnn.flags(enabled=False))


def main():
    pairs = {make.__name__: make for make in (eps, autocast, channels_last, bn_train, clean)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which pairs (default: all)")
    parser.add_argument("--out", default=os.path.join(HERE, "pairs"), help="where to (default: pairs, beside this file)")
    options = parser.parse_args()
    torch.set_num_threads(1)  # sums in the same order on every machine
    for name in options.names or pairs:
        folder = os.path.join(options.out, name)
        os.makedirs(folder, exist_ok=True)
        files = [os.path.join(folder, side) for side in ("gpu.dump", "npu.dump")]
        reference, candidate = pairs[name](*files)
        drift = ((candidate - reference).norm() / reference.norm()).item()
        print("%-14s %7d bytes   the output drifts by %.1e" % (name, sum(map(os.path.getsize, files)), drift))


if __name__ == "__main__":
    main()
