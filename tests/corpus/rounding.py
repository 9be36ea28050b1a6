"""Rounding of float32 tensors to the grids of narrower types, kept in float32."""
import torch

# Everything here only runs models forward, and one thread keeps the sums' order.
torch.set_grad_enabled(False)
torch.set_num_threads(1)


def _drop_bits(x, drop):
    """Round to nearest even after `drop` mantissa bits; infinities and NaN stay."""
    bits = x.float().contiguous().view(torch.int32)
    finite = torch.isfinite(x)
    half = (1 << (drop - 1)) - 1
    rounded = ((bits + half + ((bits >> drop) & 1)) & ~((1 << drop) - 1)).view(torch.float32)
    return torch.where(finite, rounded, x)


def rnd(x, dtype):
    if dtype in (None, 'fp32') or not x.is_floating_point():
        return x
    if dtype == 'bf16':
        return x.to(torch.bfloat16).float()
    if dtype == 'fp16':
        return x.half().float()
    if dtype == 'tf32':
        return _drop_bits(x, 13)
    if dtype == 'hf32':          # Ascend's HF32 has 1 + 8 + 11 bits
        return _drop_bits(x, 12)
    if dtype == 'e4m3':
        return _drop_bits(x.clamp(-448, 448), 20)
    if dtype == 'e5m2':
        return _drop_bits(x.clamp(-57344, 57344), 21)
    raise ValueError(dtype)
