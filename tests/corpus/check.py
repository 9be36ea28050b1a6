#!/usr/bin/env python3
"""Runs normdiff on the committed pairs and asserts layer, cause and status.

  check.py NORMDIFF [CASES-FOLDER] [--only NAME] [--list-open]

Needs nothing but Python.  A pair is a folder of gpu.dump, npu.dump and truth.json, whose
`expect` says what the report must hold:
  clean     no first divergence and no cause
  causes    the first diverging layer is the faulty one, and the first cause is one of these,
            confirmed or supported; null: the layer alone
  foreign   the layer is right, and no other cause is called confirmed
open.txt beside the pairs names those that are known to miss; they are run and reported, and
fail nothing.  --list-open prints such a file for the tool as it is.
"""
import json
import os
import subprocess
import sys

NAMED = ('confirmed', 'supported')


def run(tool, folder):
    command = [tool, os.path.join(folder, 'gpu.dump'), os.path.join(folder, 'npu.dump'),
               '-f', 'json', '--fail-on', 'never', '--jobs', '1']
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = done.communicate()
    if done.returncode != 0:
        words = err.decode('utf-8', 'replace').split()
        return None, 'exit %d: %s' % (done.returncode, ' '.join(words))
    return json.loads(out.decode('utf-8')), None


def wrong_layer(truth, report):
    first = report['first_divergence']
    if first is None:
        return 'no layer diverges, expected %s' % truth['layer']
    if truth.get('any_layer') or first['index'] == truth['index']:
        return None
    names = [layer['name'] for layer in report['layers']]
    if first['layer'] == truth['layer'] and names.count(first['layer']) == 1:
        return None
    return 'layer %d %s, expected %s' % (first['index'], first['layer'], truth['layer'])


def wrong_cause(expect, causes):
    first = causes[0] if causes else {'id': 'no cause', 'status': 'unknown'}
    if expect['foreign']:
        if first['status'] == 'confirmed' and first['id'] not in expect['causes']:
            return '%s is called confirmed' % first['id']
        return None
    if expect['causes'] is None:
        return None
    if first['id'] not in expect['causes']:
        return '%s, expected %s' % (first['id'], ' or '.join(expect['causes']))
    if first['status'] not in NAMED:
        return '%s is only %s' % (first['id'], first['status'])
    return None


def judge(truth, report):
    """None, or what is wrong with the report."""
    expect = truth['expect']
    if expect['clean']:
        if report['first_divergence'] is not None:
            return 'a clean pair diverges at %s' % report['first_divergence']['layer']
        return 'a clean pair has a cause' if report['causes'] else None
    if truth.get('may_be_covered') and report['first_divergence'] is None:
        return None
    return wrong_layer(truth, report) or wrong_cause(expect, report['causes'])


def check(tool, folder):
    with open(os.path.join(folder, 'truth.json'), encoding='utf-8') as stream:
        truth = json.load(stream)
    report, trouble = run(tool, folder)
    return trouble or judge(truth, report)


def read_open(folder):
    path = os.path.join(folder, 'open.txt')
    if not os.path.exists(path):
        return {}
    with open(path, encoding='utf-8') as stream:
        lines = [line.strip() for line in stream if line.strip() and line[0] != '#']
    return dict(line.split(': ', 1) for line in lines)


def main(argv):
    words = [a for a in argv if not a.startswith('--')]
    only = None
    if '--only' in argv:
        only = argv[argv.index('--only') + 1]
        words.remove(only)
    if not words:
        print(__doc__)
        return 2
    folder = words[1] if len(words) > 1 else os.path.join(os.path.dirname(
        os.path.abspath(__file__)), 'cases')
    known = read_open(folder)
    names = sorted(n for n in os.listdir(folder) if os.path.isdir(os.path.join(folder, n)))
    names = [n for n in names if only is None or n == only]
    wrong = {name: check(words[0], os.path.join(folder, name)) for name in names}
    wrong = {name: line for name, line in wrong.items() if line}
    if '--list-open' in argv:
        for name in sorted(wrong):
            print('%s: %s' % (name, wrong[name]))
        return 0
    bad = [name for name in sorted(wrong) if name not in known]
    for name in bad:
        print('%s: %s' % (name, wrong[name]))
    for name in sorted(known):
        if name in names and name not in wrong:
            print('%s: right now; take it out of open.txt' % name)
    print('%d pairs: %d right, %d open, %d wrong' % (
        len(names), len(names) - len(wrong), len(wrong) - len(bad), len(bad)))
    return 1 if bad or not names else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
