"""How well eps can be known from a layer's data at all, and whether the report knows it.

One row of variance v shows a relative change of eps by e'/(2 (v + e')) of it, against one
rounding of rstd per row in float32 and independent roundings per element in 16 bits.  All rows
together give sigma.  The estimate holds within a factor of 8, so eps is called identifiable
where 8 sigma is under the bar.
"""
import numpy as np

from score import EPS_ERROR_BAR

UNIT = {'fp32': 6e-8, 'bf16': 3.9e-3, 'fp16': 4.9e-4}
MARGIN = 8


def row_variances(case, layer):
    x = case['ref'][layer['ref_in'][0]].astype(np.float64)
    kind = layer['type']
    if kind == 'BatchNorm2d':
        if not layer['attrs']['training']:
            return case['params']['%04d/running_var' % layer['idx']].astype(np.float64), 1
        rows = x.swapaxes(0, 1).reshape(x.shape[1], -1)
    elif x.ndim == 4:
        groups = layer['attrs'].get('num_groups', x.shape[1])
        rows = x.reshape(x.shape[0] * groups, -1)
    else:
        rows = x.reshape(-1, x.shape[-1])
    if kind.endswith('RMSNorm'):
        return (rows ** 2).mean(1), rows.shape[1]
    return rows.var(1), rows.shape[1]


def relative_sigma(case):
    """Of the recovered eps, by the formula above."""
    truth = case['truth']
    layer, = [l for l in case['meta']['layers'] if l['idx'] == truth['layer_idx']]
    eps, dtype = truth['params']['eps'], truth['dtype']
    var, length = row_variances(case, layer)
    noise = UNIT[dtype] if dtype == 'fp32' else .42 * UNIT[dtype] / np.sqrt(length)
    information = ((eps / (2 * (var + eps))) ** 2).sum() / noise ** 2
    return 1 / np.sqrt(information) if information > 0 else np.inf


class EpsReport:
    def __init__(self, truth, level, report, sigma):
        line = next((f for f in report['checklist'] if f['id'] == 'eps'), None)
        text = line and line['recovered'][truth['side']]
        self.text = text
        self.error = None
        if text and text[0].isdigit():
            self.error = abs(float(text.split()[0]) / truth['params']['eps'] - 1)
        weights_needed = truth['type'] == 'BatchNorm2d'
        self.needs_number = level >= (3 if weights_needed else 2)
        self.identifiable = MARGIN * sigma < EPS_ERROR_BAR and self.needs_number
        self.where = '%s level %d seed %d %s %s: %s for %g, sigma %.1g' % (
            truth['type'], level, truth['seed'], truth['arch'], truth['dtype'], text,
            truth['params']['eps'], sigma)

    def is_bad(self):
        return self.identifiable and (self.error is None or self.error > EPS_ERROR_BAR)

    def __str__(self):
        return self.where
