"""What a report gets for a pair whose truth is known, and the table of many.

A fault counts where it is visible: its effect is over 4 times the device's own noise and
rounding.  The cause is right if it is one of the truth's words, or another reading of the
same numbers.
"""
import collections

from kinds import CLEAN, FOREIGN, KINDS

# Faults that no output's size measures.
ALWAYS_VISIBLE = {'global_dtype', 'global_matmul', 'different_input', 'momentum', 'naninf',
                  'mask_wrong', 'random_source', 'dump_dtype', 'nan_statistics'}
FLOOR = {'fp32': 1.2e-7, 'bf16': 1.7e-3, 'fp16': 2.1e-4}

# Level: detected, right layer, right cause first, among the first three; in percent.
BARS = {1: (99.5, 98, 91, 96), 2: (99.5, 99.5, 95, 99), 3: (99.5, 99.8, 99, 99.8)}
FOREIGN_LAYER_BAR = 99
FOREIGN_CONFIRMED_BAR = 2
EPS_ERROR_BAR = 0.01


def is_visible(truth):
    kind = truth.get('base', truth['kind'])
    if truth.get('visible') or kind in ALWAYS_VISIBLE or truth['kind'] in ALWAYS_VISIBLE:
        return True
    noise = max(truth.get('noise_rel_l2', 0), FLOOR[truth['dtype']])
    return truth.get('effect_rel_l2', 0) > 4 * noise


def is_counted(truth, level):
    """The step's running statistics are dumped at level 3 only."""
    return is_visible(truth) and (truth['kind'] != 'momentum' or level >= 3)


def same_numbers(truth, base):
    """Causes that leave exactly the numbers of the true one."""
    params = truth.get('params', {})
    if base == 'weight_differs' and params.get('_w') == 'row':
        return {'one_channel'}
    if base == 'weight_differs' and params.get('changed_channels') == 1 \
            and truth.get('level') <= (2 if truth['type'] == 'Conv2d' else 1):
        return {'one_channel'}           # neither input nor geometry tell why it is wrong
    if base == 'one_channel' and truth['type'] in ('Linear', 'Conv2d'):
        return {'different_weights'}
    if base == 'residual_missing':
        return {'stale_buffer'}
    if base == 'stale_buffer' and truth['type'] == 'Add':
        return {'residual_missing'}
    if base == 'momentum' and params.get('biased_running'):
        return {'unbiased_variance'}
    if base == 'matmul_acc_fp16' and params.get('terms', 99) <= 16:
        return {'dtype_effective'}       # one chunk of terms: rounded once, at its end
    if base in ('column_ramp', 'swirl', 'leak', 'checkerboard') and truth['type'] == 'Linear' \
            or base == 'leak' and truth['type'] == 'Conv2d':
        return {'different_weights'}     # a fixed linear map of the output is one of the input
    if base.startswith('index_overflow'):
        return {{'zero': 'tail_not_written', 'nan': 'nonfinite'}.get(params['how'])}
    return set()


def accepted(truth):
    """The causes that are right; None where no cause can be known."""
    if 'causes' in truth and truth['causes'] is None:
        return None
    kind = truth['kind']
    words = truth.get('causes')
    if words is None:
        words = KINDS[kind].causes
    if words is None:
        words = (kind,)
    return set(words) | same_numbers(truth, truth.get('base', kind))


class Verdict:
    """One report against its truth."""

    def __init__(self, truth, level, report):
        first, causes = report['first_divergence'], report['causes']
        self.kind, self.level, self.truth = truth['kind'], level, truth
        self.is_clean = self.kind in CLEAN
        self.is_foreign = self.kind in FOREIGN
        self.found = first is not None
        self.layer = first['layer'] if first else None
        self.index = first['index'] if first else None
        self.role = first['role'] if first else None
        self.causes = [cause['id'] for cause in causes]
        self.status = causes[0]['status'] if causes else None
        self.side = causes[0]['side'] if causes else None
        self.judge(truth, report)

    def judge(self, truth, report):
        right = accepted(truth)
        names = [layer['name'] for layer in report['layers']]
        self.right_layer = self.found and (
            truth.get('any_layer', False) or self.index == truth['index']
            or (self.layer == truth['layer'] and names.count(self.layer) == 1))
        if truth.get('may_be_covered') and not self.found:
            self.found = self.right_layer = self.top1 = self.top3 = True
            self.wrongly_confirmed = False
            return
        top = self.causes[0] if self.causes else None
        if right is None:
            self.top1 = self.top3 = self.right_layer
            self.wrongly_confirmed = False
            return
        self.top1 = self.right_layer and top in right
        self.top3 = self.right_layer and bool(right & set(self.causes[:3]))
        self.wrongly_confirmed = self.status == 'confirmed' and top not in right

    def taken_for(self):
        if not self.found:
            return 'nothing found'
        if not self.right_layer:
            return 'layer %s, %s' % (self.layer, self.causes[0] if self.causes else 'no cause')
        return self.causes[0] if self.causes else 'no cause'


def percent(part, whole, empty=100.):
    return 100. * part / whole if whole else empty


class Table:
    def __init__(self):
        self.verdicts, self.eps = [], []

    def add(self, verdict, eps=None):
        self.verdicts.append(verdict)
        if eps is not None:
            self.eps.append(eps)

    def chosen(self, level, keep):
        return [v for v in self.verdicts if v.level == level and keep(v)]

    def faults(self, level):
        return self.chosen(level, lambda v: not v.is_clean and not v.is_foreign
                           and is_counted(v.truth, level))

    def foreign(self, level):
        return self.chosen(level, lambda v: v.is_foreign and is_counted(v.truth, level))

    def clean(self, level):
        return self.chosen(level, lambda v: v.is_clean)

    def shares(self, verdicts):
        n = len(verdicts)
        return [percent(sum(getattr(v, key) for v in verdicts), n)
                for key in ('found', 'right_layer', 'top1', 'top3')]

    def rows(self, level):
        by_kind = collections.defaultdict(list)
        for v in self.faults(level) + self.foreign(level):
            by_kind[v.kind].append(v)
        order = list(KINDS)
        for kind in sorted(by_kind, key=order.index):
            yield kind, by_kind[kind]

    def print_level(self, level):
        print('\nlevel %d %25s found  layer  first  top 3  side  wrongly confirmed; taken for'
              % (level, 'n'))
        for kind, verdicts in self.rows(level):
            others = collections.Counter(v.taken_for().split(',')[0].split(' ')[0]
                                         if not v.right_layer else v.taken_for()
                                         for v in verdicts if not v.top1)
            print('  %-26s %4d %6d %6d %6d %6d %5d %4d   %s' % (
                kind, len(verdicts), sum(v.found for v in verdicts),
                sum(v.right_layer for v in verdicts), sum(v.top1 for v in verdicts),
                sum(v.top3 for v in verdicts),
                sum(v.top1 and v.side == v.truth['side'] for v in verdicts),
                sum(v.wrongly_confirmed for v in verdicts),
                ', '.join('%s %d' % item for item in others.most_common(5))))

    def print_summary(self, level):
        faults, foreign, clean = self.faults(level), self.foreign(level), self.clean(level)
        print('level %d: %d faults: found %.1f %%, layer %.1f %%, first %.1f %%, '
              'top 3 %.1f %%, wrongly confirmed %.1f %%' % (
                  (level, len(faults), *self.shares(faults),
                   percent(sum(v.wrongly_confirmed for v in faults), len(faults)))))
        confirmed = [v for v in faults if v.status == 'confirmed']
        print('  confirmed and right: %d of %d' % (sum(v.top1 for v in confirmed),
                                                   len(confirmed)))
        print('  %d outside the catalogue: layer %.1f %%, wrongly confirmed %.1f %%' % (
            len(foreign), self.shares(foreign)[1],
            percent(sum(v.wrongly_confirmed for v in foreign), len(foreign), 0.)))
        print('  %d clean pairs: %d alarms' % (len(clean), sum(v.found for v in clean)))

    def print_eps(self):
        for eps in self.eps:
            if eps.is_bad():
                print('eps: %s' % eps)
        known = [e for e in self.eps if e.error is not None and e.identifiable]
        print('eps recovered where it is identifiable: %d of %d, worst error %.1g' % (
            len(known), sum(e.identifiable for e in self.eps),
            max([e.error for e in known], default=0)))

    def missed_bars(self, level):
        faults, foreign = self.faults(level), self.foreign(level)
        for name, share, bar in zip(('found', 'layer', 'first', 'top 3'), self.shares(faults),
                                    BARS[level]):
            if share < bar:
                yield 'level %d: %s %.1f %%, to reach %.1f %%' % (level, name, share, bar)
        alarms = sum(v.found for v in self.clean(level))
        if alarms:
            yield 'level %d: %d alarms on clean pairs' % (level, alarms)
        if self.shares(foreign)[1] < FOREIGN_LAYER_BAR:
            yield 'level %d: outside the catalogue the layer is right in %.1f %%' % (
                level, self.shares(foreign)[1])
        wrong = percent(sum(v.wrongly_confirmed for v in foreign), len(foreign), 0.)
        if wrong > FOREIGN_CONFIRMED_BAR:
            yield 'level %d: outside the catalogue %.1f %% are wrongly confirmed' % (
                level, wrong)

    def print(self, levels, verbose):
        for level in levels:
            self.print_level(level)
        if verbose:
            for v in self.verdicts:
                wrong = v.found if v.is_clean else is_counted(v.truth, v.level) and not (
                    v.right_layer and (v.is_foreign or v.top1) and not v.wrongly_confirmed)
                if wrong:
                    print('%s level %d seed %d %s %s: %s at %s %s; %s %s' % (
                        v.kind, v.level, v.truth['seed'], v.truth['arch'], v.truth['dtype'],
                        v.truth['type'], v.truth['layer'], v.truth.get('params'),
                        v.taken_for(), v.status or ''))
        print()
        for level in levels:
            self.print_summary(level)
        self.print_eps()

    def missed(self, levels):
        lines = [line for level in levels for line in self.missed_bars(level)]
        bad = sum(eps.is_bad() for eps in self.eps)
        return lines + (['eps is off in %d reports' % bad] if bad else [])
