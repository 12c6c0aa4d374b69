#!/usr/bin/env python3
"""Compares `smelt show` with TensorFlow's saved_model_cli, text by text.

usage: show_test.py SMELT MODEL_DIR...
Needs TensorFlow. Each command line is tried on each model: no flag, --all, each tag set, and each
signature of it, --list_ops. Sets and dicts print in an order that Python leaves to chance: they are
sorted on both sides. Functions are compared where TensorFlow can load the model.
"""

import os
import re
import subprocess
import sys
import tempfile

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''
from absl import flags
from tensorflow.python.tools import saved_model_cli
from tensorflow.python.tools import saved_model_utils

NO_FUNCTIONS = 'Concrete Functions: N/A'


def sorted_braces(text):
  """The text with the elements of each {...} sorted; quotes are respected."""
  def group(i, close):
    items, item = [], ''
    while i < len(text):
      c = text[i]
      if c == close:
        return i + 1, items + [item]
      if c in '\'"':
        end = i + 1
        while end < len(text) and text[end] != c:
          end += 2 if text[end] == '\\' else 1
        item += text[i:end + 1]
        i = end + 1
      elif c in '{[(':
        other = {'{': '}', '[': ']', '(': ')'}[c]
        i, inner = group(i + 1, other)
        inner = [s.strip(' \b') for s in inner]
        inner = sorted(s for s in inner if s) if c == '{' else inner
        item += c + ', '.join(inner) + other
      elif c == ',' and close:
        items.append(item)
        item = ''
        i += 1
      else:
        item += c
        i += 1
    return i, items + [item]
  return ','.join(group(0, '')[1])


def normal(text):
  lines = []
  for line in text.split('\n'):
    chance = 'contains the following ops:' in line or line.lstrip().startswith('Value: ')
    lines.append(sorted_braces(line) if chance else line)
  out, names = [], []
  for i, line in enumerate(lines):
    if 'Named Argument #' in line:
      continue
    if i > 0 and 'Named Argument #' in lines[i - 1]:
      names.append(line)
      continue
    out += sorted(names)
    names = []
    out.append(line)
  return '\n'.join(out + sorted(names))


def theirs(args):
  """What saved_model_cli prints, from a process of its own: its numbering starts afresh in each.
  None when it fails."""
  with tempfile.TemporaryFile() as out:
    pid = os.fork()
    if pid == 0:
      try:
        os.dup2(out.fileno(), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        flags.FLAGS(['saved_model_cli'] + args)
        saved_model_cli.show()
        sys.stdout.flush()
        os._exit(0)
      except BaseException:  # the parent only needs to know
        sys.stdout.flush()
        os._exit(1)
    _, status = os.waitpid(pid, 0)
    out.seek(0)
    return out.read().decode() if status == 0 else None


def ours(smelt, args):
  done = subprocess.run([smelt, 'show'] + args, capture_output=True, text=True, timeout=120)
  return done.stdout if done.returncode == 0 else f'exit {done.returncode}: {done.stderr}'


def first_difference(a, b):
  a, b = a.split('\n'), b.split('\n')
  for i, (x, y) in enumerate(zip(a + [''], b + [''])):
    if x != y:
      return f'line {i + 1}\n  smelt:      {x[:300]!r}\n  TensorFlow: {y[:300]!r}'
  return f'{len(a)} lines, TensorFlow has {len(b)}'


def command_lines(model):
  yield ['--all']
  yield []
  yield ['--list_ops']
  for meta in saved_model_utils.read_saved_model(model).meta_graphs:
    tags = ','.join(meta.meta_info_def.tags)
    yield [f'--tag_set={tags}']
    if not tags:
      continue  # saved_model_cli refuses the empty tag set below
    yield [f'--tag_set={tags}', '--list_ops']
    for key in sorted(meta.signature_def):
      yield [f'--tag_set={tags}', f'--signature_def={key}']


def main():
  if len(sys.argv) < 3:
    print(__doc__, file=sys.stderr)
    return 2
  smelt, models = sys.argv[1], sys.argv[2:]
  compared = failed = without_functions = 0
  for model in models:
    for flags_of_line in command_lines(model):
      args = [f'--dir={model}'] + flags_of_line
      want = theirs(args)
      got = ours(smelt, args)
      if want is None:
        # What TensorFlow refuses, smelt may print as far as it goes.
        print(f'{model} {" ".join(flags_of_line)}: saved_model_cli fails')
        continue
      if '--all' in args:
        got = re.split(r'\n?\nDetails of the MetaGraphDef', got)[0]
        want = want.rstrip('\n')
        got = got.rstrip('\n')
        if NO_FUNCTIONS in want:
          without_functions += 1
          want = want.split(NO_FUNCTIONS)[0]
          got = got.split('Concrete Functions:')[0]
      compared += 1
      if normal(got) != normal(want):
        failed += 1
        print(f'{model} {" ".join(flags_of_line)}: {first_difference(normal(got), normal(want))}')
  print(f'{compared} texts compared, {failed} differ; {without_functions} models whose functions '
        'TensorFlow cannot list')
  return 1 if failed else 0


if __name__ == '__main__':
  sys.exit(main())
