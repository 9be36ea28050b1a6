"""Weights and inputs of a model, from a seed: see models.py for what is promised."""
import math
import random

import torch
from torch import nn

from further_models import (ClassViT, ConvNext, DeepUNet, EncoderDecoder, ExpertBlock,
                            ExpertModel, Inception, Recurrent)
from models import (GPT, NORMS, BlockLN, GemmaRMSNorm, LBlock, Llama, RMSNorm, SmallResNet,
                    Style, Tall, UNet, ViT)
from rounding import rnd

# The order is part of the corpus: a seed draws from this list.
ARCHS = ['resnet18', 'resnet18_train', 'mobilenet_v2', 'gpt2', 'bert', 'vit', 'llama', 'unet',
         'style']
# Only kinds that ask for them use these.
MORE_ARCHS = ['gemma', 'smallres', 'smallres_train', 'tall']
# No kind draws these: whoever wants them names them.
FURTHER_ARCHS = ['recurrent', 'experts', 'encdec', 'classvit', 'deepunet', 'convnext',
                 'inception', 'inception_train', 'gpt1', 'gpt20', 'llama20']


def init_convolution(module, low):
    dead = torch.rand(module.weight.shape[0]) < .1
    scale = 10. ** -(1 + 2 * torch.rand(module.weight.shape[0]))
    factor = torch.where(dead, scale, torch.ones(1))
    module.weight.mul_(factor.view(-1, 1, 1, 1))
    if module.bias is not None:
        module.bias.mul_(factor)


def init_product(module, low):
    is_conv = isinstance(module, nn.Conv2d)
    fan = module.weight[0].numel()
    module.weight.normal_(0, math.sqrt((2. if is_conv else 1.) / fan))
    if module.bias is not None:
        module.bias.normal_(0, .1)
    if is_conv and low:
        init_convolution(module, low)


def init_norm(module, chooser, outliers):
    n = module.weight.numel()
    module.weight.copy_(torch.exp(torch.randn(n) * .35) * chooser.choice([.4, .8, 1.2]))
    if getattr(module, 'bias', None) is not None:
        module.bias.copy_(torch.randn(n) * .25)
    if outliers and isinstance(module, (nn.LayerNorm, RMSNorm)):
        module.weight[torch.randint(n, (2,))] *= 6
    if isinstance(module, GemmaRMSNorm):
        module.weight.sub_(1)


def init_weights(model, chooser):
    outliers = chooser.random() < .5
    low = chooser.random() < .6
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            init_product(module, low)
        if isinstance(module, nn.Embedding):
            module.weight.normal_(0, chooser.choice([.01, .02, .05]))
        if isinstance(module, NORMS):
            init_norm(module, chooser, outliers)
    blocks = [b for b in model.modules() if isinstance(b, (BlockLN, LBlock))
              and not isinstance(b, ExpertBlock)]
    for i, block in enumerate(blocks):
        out = block.fc2 if isinstance(block, BlockLN) else block.down
        out.weight.mul_(.15 * (1 + .6 * i))
        block.attn.o.weight.mul_(.15 * (1 + .6 * i))
        if out.bias is not None:
            out.bias.mul_(.1)
            block.attn.o.bias.mul_(.1)
        if outliers:
            out.weight[:2].mul_(25.)


def image(n, c, size):
    coarse = torch.randn(n, c, size // 4, size // 4)
    coarse = coarse.repeat_interleave(4, 2).repeat_interleave(4, 3)
    return coarse * .7 + torch.randn(n, c, size, size) * .5


def build_residual(arch, chooser, options):
    """Residual networks with BatchNorm, whose running statistics come from a few images."""
    batch = options.get('batch', 2)
    size = 64
    if arch.startswith('smallres'):
        model, size = SmallResNet(12, 3), options.get('size', 8)
    else:
        import torchvision.models as tv
        model = tv.resnet18(num_classes=50) if arch.startswith('resnet') \
            else tv.mobilenet_v2(num_classes=50, width_mult=.5)
    init_weights(model, chooser)
    return with_statistics(model, image(batch, 3, size), arch, options)


def with_statistics(model, x, arch, options):
    size = x.shape[-1]
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
    model.train()
    dropouts = [m for m in model.modules() if isinstance(m, nn.Dropout)]
    for dropout in dropouts:
        dropout.eval()
    model(image(4, 3, size))
    model.eval()
    for norm in norms:
        norm.momentum = .1
        n = norm.num_features
        norm.running_mean += norm.running_var.sqrt() * torch.randn(n) * .15
        norm.running_var *= torch.exp(torch.randn(n) * .15)
        if arch.endswith('_train'):
            norm.train()
    if options.get('dropout'):
        for dropout in dropouts:
            dropout.train()
    if options.get('statistics'):
        break_statistics(norms, options['statistics'])
    return model, [x]


def break_statistics(norms, how):
    """Running statistics that a network in training never reads."""
    for norm in norms:
        if how == 'nan':
            norm.running_var[::3] = math.nan
        else:
            norm.reset_running_stats()
            norm.momentum = .1


def build_transformer(arch, chooser, options):
    small = options.get('small')
    widths = {'gpt2': [(64, 4), (72, 4), (100, 4), (96, 4)], 'vit': [(64, 4), (72, 4), (96, 4)],
              'llama': [(64, 4), (72, 4), (104, 4), (96, 4)]}
    widths['bert'], widths['gemma'] = widths['gpt2'], widths['llama']
    d, h = (24, 2) if small else chooser.choice(widths[arch])
    depth = 3 if small else chooser.randint(6, 12)
    tokens = 16 if small else 24
    if arch == 'vit':
        model = ViT(d, h, depth, 1e-6)
    elif arch in ('llama', 'gemma'):
        model = Llama(d, h, depth, chooser.choice([1e-5, 1e-6]),
                      norm=GemmaRMSNorm if arch == 'gemma' else RMSNorm)
    else:
        model = GPT(d, h, depth, 1e-12 if arch == 'bert' else 1e-5, tokens=tokens,
                    post=arch == 'bert')
    init_weights(model, chooser)
    inputs = [image(3, 3, 32)] if arch == 'vit' else [torch.randint(200, (2, tokens))]
    if options.get('massive'):
        # One token's activations in the hundreds, as large language models have them.
        model.emb.weight[int(inputs[0][0, 0]), :2] = 700.
    return model, inputs


def build_convolutional(arch, chooser, options):
    small = options.get('small')
    if arch == 'unet':
        c, g = (8, 2) if small else chooser.choice([(24, 4), (32, 8), (40, 4)])
        model = UNet(c, g, chooser.choice([1e-5, 1e-6]))
        init_weights(model, chooser)
        return model, [image(2, 4, 8 if small else 16)]
    c = 8 if small else chooser.choice([16, 24])
    model = Style(c, chooser.randint(3, 5), 1e-5)
    init_weights(model, chooser)
    return model, [image(2, 3, 8 if small else 16)]


def build_further(arch, chooser, options):
    batch = options.get('batch', 2)
    d = chooser.choice([32, 40, 72])
    if arch.startswith('inception'):
        model = Inception(chooser.choice([16, 24]), chooser.randint(2, 5))
        init_weights(model, chooser)
        return with_statistics(model, image(batch, 3, 24), arch, options)
    tokens, depth = chooser.choice([12, 20]), chooser.randint(1, 5)
    ids = torch.randint(200, (batch, tokens))
    if arch == 'recurrent':
        model, inputs = Recurrent(d, d, tokens), [ids]
    elif arch == 'experts':
        model, inputs = ExpertModel(d, 4, depth), [ids]
    elif arch == 'encdec':
        model = EncoderDecoder(d, 4, depth)
        inputs = [ids, torch.randint(200, (batch, tokens - 4))]
    elif arch == 'classvit':
        model, inputs = ClassViT(d, 4, depth), [image(batch, 3, 32)]
    elif arch == 'deepunet':
        model, inputs = DeepUNet(chooser.choice([16, 24]), 4), [image(batch, 3, 16)]
    elif arch == 'convnext':
        model, inputs = ConvNext(d, depth), [image(batch, 3, 32)]
    elif arch == 'llama20':
        model, inputs = Llama(d, 4, 20, 1e-6), [ids]
    else:
        model, inputs = GPT(d, 4, 1 if arch == 'gpt1' else 20, 1e-5, tokens=tokens), [ids]
    init_weights(model, chooser)
    return model, inputs


def build_tall(arch, chooser, options):
    model = Tall()
    init_weights(model, chooser)
    return model, [torch.randn(65536 + 700, 3)]


def shift_means(model, big):
    """Puts means of up to a thousand standard deviations in front of the norms."""
    if hasattr(model, 'wpe'):
        model.wpe.add_(big * float(model.wte.weight.std()))
    elif hasattr(model, 'pos_emb'):
        model.pos_emb.add_(big)
    else:
        for module in model.modules():
            if isinstance(module, nn.Conv2d) and module.bias is not None:
                module.bias.add_(big)


def build(arch, seed, dtype, options=None):
    options = options or {}
    torch.manual_seed(seed)
    chooser = random.Random(seed)
    if arch in FURTHER_ARCHS:
        make = build_further
    elif 'res' in arch or arch == 'mobilenet_v2':
        make = build_residual
    elif arch in ('unet', 'style'):
        make = build_convolutional
    else:
        make = build_tall if arch == 'tall' else build_transformer
    model, inputs = make(arch, chooser, options)
    if options.get('bigmean'):
        shift_means(model, options['bigmean'])
    if not arch.endswith('_train') and not options.get('dropout'):
        model.eval()
    if dtype != 'fp32':
        for parameter in model.parameters():
            parameter.copy_(rnd(parameter, dtype))
        inputs = [rnd(t, dtype) for t in inputs]
    return model, inputs
