#!/usr/bin/env python3
"""Compares `smelt run` with numpy, TensorFlow and saved_model_cli.

usage: run_test.py SMELT [--arrays N] [--seed S] [--cli]
Needs TensorFlow. --cli also runs saved_model_cli itself (slow to start) on a few command lines.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import tensorflow as tf

DTYPES = ['float32', 'float64', 'float16', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16',
          'uint32', 'uint64', 'bool', 'complex64', 'complex128', 'string', 'bfloat16']


def make_model(path):
  """One signature for each type, which answers what it is given."""
  module = tf.Module()
  signatures = {}
  for name in DTYPES:
    spec = tf.TensorSpec(None, tf.as_dtype(name), name='x')
    signatures[name] = tf.function(
        lambda x: {'y': tf.identity(x)}, input_signature=[spec]).get_concrete_function()
  spec = tf.TensorSpec([None, 2], tf.float32, name='x')
  other = tf.TensorSpec([None], tf.int32, name='n')
  signatures['two'] = tf.function(
      lambda x, n: {'a': x * 2, 'b': n + 1}, input_signature=[spec, other]).get_concrete_function()
  examples = tf.TensorSpec([None], tf.string, name='examples')

  def parse(examples):
    return tf.io.parse_example(examples, {
        'age': tf.io.FixedLenFeature([2], tf.float32),
        'id': tf.io.FixedLenFeature([1], tf.int64),
        'name': tf.io.FixedLenFeature([1], tf.string)})
  signatures['parse'] = tf.function(parse, input_signature=[examples]).get_concrete_function()
  tf.saved_model.save(module, path, signatures=signatures)


class Arrays:
  """Random arrays that reach every branch of numpy's printing."""

  def __init__(self, seed):
    self.rng = np.random.default_rng(seed)
    self.random = random.Random(seed)

  def shape(self):
    rank = self.random.choice([0, 1, 1, 1, 2, 2, 3, 4])
    large = self.random.random() < 0.15
    sizes = []
    for i in range(rank):
      most = 60 if large and i == rank - 1 else 40 if large else 9
      sizes.append(int(self.rng.integers(0 if self.random.random() < 0.05 else 1, most)))
    return tuple(sizes)

  def floats(self, dtype, n):
    rng = self.rng
    kind = self.random.randrange(9)
    if kind == 8:
      bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
      return rng.integers(0, np.iinfo(bits).max, n, dtype=bits, endpoint=True).view(dtype)
    values = [
        lambda: rng.normal(size=n),
        lambda: rng.normal(size=n) * 10.0**rng.integers(-12, 12),
        lambda: np.round(rng.normal(size=n) * 10, self.random.choice([0, 1, 2, 3])),
        lambda: 2.0**rng.integers(-60, 60, size=n),
        lambda: rng.integers(-1000, 1000, size=n).astype(float),
        lambda: np.exp(rng.normal(size=n) * 10),
        lambda: rng.choice([0, 1, -1, np.nan, np.inf, -np.inf, 0.5, 1e-5, 123456.789], size=n),
        lambda: rng.choice([0.0, -0.0, np.inf, np.nan, 2.0**-10, 2.0**-20, 1 / 3], size=n),
    ][kind]()
    with np.errstate(all='ignore'):
      return np.asarray(values).astype(dtype)

  def make(self, name):
    shape = self.shape()
    n = int(np.prod(shape, dtype=np.int64))
    if name == 'string':
      a = np.empty(shape, object)
      letters = np.array([97, 98, 32, 39, 34, 92, 10, 0, 200, 120], np.uint8)
      for i in np.ndindex(shape):
        a[i] = self.rng.choice(letters, size=self.rng.integers(0, 12)).tobytes()
      return a
    if name == 'bool':
      return np.asarray(self.rng.random(shape) < 0.5)
    if name == 'bfloat16':
      with np.errstate(all='ignore'):
        return self.floats(np.float32, n).astype(tf.bfloat16.as_numpy_dtype).reshape(shape)
    dtype = np.dtype(name)
    if dtype.kind == 'c':
      part = np.float32 if dtype.itemsize == 8 else np.float64
      a = np.empty(shape, dtype)
      a.real = self.floats(part, n).reshape(shape)
      a.imag = self.floats(part, n).reshape(shape)
      return a
    if dtype.kind == 'f':
      return self.floats(dtype, n).reshape(shape)
    info = np.iinfo(dtype)
    if self.random.random() < 0.5:
      return np.asarray(self.rng.integers(info.min, info.max, shape, dtype, endpoint=True))
    return np.asarray(self.rng.integers(0, 100, shape).astype(dtype))


class Runner:
  def __init__(self, smelt, model, work):
    self.smelt, self.model, self.work = smelt, model, work
    self.failures = 0
    self.checks = 0

  def run(self, signature, *flags, stdin=None):
    command = [self.smelt, 'run', '--dir', self.model, '--tag_set', 'serve', '--signature_def',
               signature, *flags]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120)

  def check(self, ok, what, *details):
    self.checks += 1
    if not ok:
      self.failures += 1
      if self.failures <= 10:
        print('FAILED', what, *details, sep='\n')

  def expect(self, signature, flags, arrays):
    """The answer must print as numpy prints `arrays`, by output key."""
    want = ''.join('Result for output key %s:\n%s\n' % (k, numpy_text(v))
                   for k, v in sorted(arrays.items()))
    r = self.run(signature, *flags)
    self.check(r.returncode == 0 and r.stdout.decode() == want, f'{signature} {flags}',
               'want:', want[:800], 'got:', r.stdout.decode()[:800], r.stderr.decode()[:400])

  def refuse(self, signature, flags, *words):
    r = self.run(signature, *flags)
    message = r.stderr.decode()
    self.check(r.returncode == 1 and all(w in message for w in words), f'refuse {flags}', message)


def numpy_text(a):
  # A session returns scalars of numpy, and bytes, not arrays of rank 0.
  return str(a[()]) if isinstance(a, np.ndarray) and a.shape == () else str(a)


def test_arrays(runner, arrays, count):
  path = os.path.join(runner.work, 'x.npy')
  outdir = os.path.join(runner.work, 'out')
  for i in range(count):
    name = DTYPES[i % len(DTYPES)]
    a = arrays.make(name)
    given = a
    if a.ndim > 0 and a.dtype.kind in 'fiuc' and i % 5 == 0:
      given = np.asfortranarray(a).astype(a.dtype.newbyteorder('>'))
    flags = ['--outdir', outdir, '--overwrite']
    if i % 3 == 0 and name != 'bfloat16':
      np.savez_compressed(path[:-4] + '.npz', other=np.zeros(3), key=given)
      flags += ['--inputs', f'x={path[:-4]}.npz[key]']
    else:
      np.save(path, given)
      flags += ['--inputs', f'x={path}']
    r = runner.run(name, *flags)
    want = f'Result for output key y:\n{numpy_text(a)}\nOutput y is saved to {outdir}/y.npy\n'
    runner.check(r.returncode == 0 and r.stdout.decode() == want, f'{name} {a.shape}',
                 'want:', want[:800], 'got:', r.stdout.decode()[:800], r.stderr.decode()[:400])
    if r.returncode != 0:
      continue
    saved = np.load(os.path.join(outdir, 'y.npy'), allow_pickle=True)
    if name == 'bfloat16':
      same = saved.tobytes() == a.tobytes()
    elif name == 'string' and a.shape == ():
      same = saved.dtype.kind == 'S' and saved[()] == a[()].rstrip(b'\0')
    else:
      same = (saved.dtype == a.dtype and saved.shape == a.shape and
              (saved.tolist() == a.tolist() if name == 'string' else saved.tobytes() == a.tobytes()))
    runner.check(same, f'saved {name} {a.shape}')


def test_expressions(runner):
  cases = [
      ('float32', '[[1.0, 2], [-3e-2, .5]]'), ('float32', '1'), ('float64', '[1_000.5, 0x1f, 1e300]'),
      ('float32', '[]'), ('float32', '[[], []]'), ('int32', '[1.9, -1.9, True]'), ('int8', '(1, -128)'),
      ('uint64', '[18446744073709551615]'), ('bool', '[True, False, 2, 0.0]'),
      ('complex64', '[1+2j, -3.5j, 2]'), ('int64', 'np.arange(5)'), ('float32', 'np.ones((2, 3))'),
      ('float32', 'np.arange(0, 1, 0.1)'), ('float32', 'np.linspace(0, 1, 7)'),
      ('int32', 'np.arange(12).reshape(3, -1)'), ('float16', 'np.full((2, 2), 1.1)'),
      ('float32', 'np.array([[1, 2]], dtype=np.float32)'), ('int32', 'np.zeros(3, dtype=int)'),
      ('float32', '[np.nan, np.inf, -np.inf]'), ('float32', '[[0.5] * 3] * 2'),
      ('uint8', 'np.array([1.5, 2.7]).astype(np.uint8)'), ('int64', 'np.zeros((0, 3))'),
      ('float32', '[[1, 2,], [3, 4,],]'), ('float32', '[np.float32(0.1), 0.2]')]
  for name, text in cases:
    a = np.asarray(eval(text), dtype=name)  # pylint: disable=eval-used
    runner.expect(name, ['--input_exprs', f'x={text}'], {'y': a})
  strings = ["['a', b'b\\x00', \"it's\", r'\\n', 'tab\\t', 'x' 'y', '\\u00e9;=']", "b'one'",
             '[["""long"""], [\'\']]']
  for text in strings:
    def encode(v):
      return [encode(i) for i in v] if isinstance(v, list) else v.encode() if isinstance(
          v, str) else v
    value = encode(eval(text))  # pylint: disable=eval-used
    runner.expect('string', ['--input_exprs', f'x={text}'], {'y': np.array(value, object)})
  runner.expect('two', ['--input_exprs', 'x=[[1, 2]]; n=[7]'],
                {'a': np.array([[2, 4]], np.float32), 'b': np.array([8], np.int32)})
  runner.expect(
      'parse', ['--input_examples', 'examples=[{"age":[22.0, 1],"id":[3],"name":[b"x"]},'
                '{"age":[1.5,2.5],"id":[-4],"name":["y"]}]'],
      {'age': np.array([[22, 1], [1.5, 2.5]], np.float32), 'id': np.array([[3], [-4]]),
       'name': np.array([[b'x'], [b'y']], object)})


def test_refusals(runner):
  pickle = os.path.join(runner.work, 'p.pkl')
  np.array({'a': np.zeros(2)}).dump(pickle)
  many = os.path.join(runner.work, 'many.npz')
  np.savez(many, a=np.zeros(2), b=np.zeros(2))
  dictionary = os.path.join(runner.work, 'd.npy')
  np.save(dictionary, np.array({'a': 1}), allow_pickle=True)
  e = '--input_exprs'
  runner.refuse('float32', [e, 'x=[1, None]'], 'column 5', 'None')
  runner.refuse('float32', [e, 'x=[1, 2'], 'column', 'expected')
  runner.refuse('float32', [e, 'x=__import__("os")'], 'column 1')
  runner.refuse('float32', [e, 'x=np.load("f")'], 'np.load')
  runner.refuse('float32', [e, 'x=' + '[' * 500], 'too deep')
  runner.refuse('float32', [e, 'x=np.zeros((100000, 100000))'], 'too many elements')
  runner.refuse('float32', [e, 'x=[[1], [2, 3]]'], 'inhomogeneous')
  runner.refuse('float32', [e, 'x=["a"]'], 'str', 'float32')
  runner.refuse('uint8', [e, 'x=[300]'], '300 out of bounds for uint8')
  runner.refuse('int32', [e, 'x=[np.nan]'], 'NaN')
  runner.refuse('string', [e, 'x=[1]'], 'string')
  runner.refuse('float32', [e, 'z=[1]'], '"z" is not a valid input key. Please choose from "x"')
  runner.refuse('float32', [e, 'x'], 'format is incorrect')
  runner.refuse('float32', [], 'At least one of --inputs, --input_exprs or --input_examples')
  runner.refuse('nope', [e, 'x=1'], 'Could not find signature "nope"', 'float32')
  runner.refuse('two', [e, 'x=[[1, 2]]'], "'n'", 'missing')
  runner.refuse('two', [e, 'x=[[1, 2, 3]];n=[1]'],
                'Cannot feed value of shape (1, 3)', 'which has shape (None, 2)')
  runner.refuse('float32', ['--inputs', f'x={pickle}'], 'pickle')
  runner.refuse('float32', ['--inputs', f'x={dictionary}'], 'pickle', 'dict')
  runner.refuse('float32', ['--inputs', f'x={many}'], 'more than one ndarrays', 'a, b')
  runner.refuse('float32', ['--inputs', f'x={many}[c]'], 'does not contain variable with name "c"')
  runner.refuse('float32', ['--inputs', 'x=/nowhere.npy'], 'No such file')
  runner.refuse('parse', ['--input_examples', 'examples={"a":[1]}'], 'list of dictionaries')
  runner.refuse('parse', ['--input_examples', 'examples=[{"a":1}]'], 'feature value must be a list')
  runner.refuse('float32', [e, 'x=np.ones(100000)', '--memory_limit', '1000'],
                'RESOURCE_EXHAUSTED')
  outdir = os.path.join(runner.work, 'taken')
  runner.run('float32', e, 'x=1', '--outdir', outdir)
  runner.refuse('float32', [e, 'x=1', '--outdir', outdir], 'already exists', '--overwrite')


def test_json(runner):
  def ask(body, want):
    text = body if isinstance(body, str) else json.dumps(body)
    r = runner.run('', '--json', '-', stdin=text.encode())
    got = json.loads(r.stdout) if r.returncode == 0 else r.stderr.decode()
    ok = repr(got) == repr(want) if not isinstance(want, str) else want in str(got)
    runner.check(ok, f'json {text}', f'want: {want}', f'got: {got}')
  ask({'signature_name': 'float32', 'instances': [[1, 0.1], [2.5, 3e20]]},
      {'predictions': [[1.0, 0.1], [2.5, 3e20]]})
  ask({'signature_name': 'float64', 'inputs': 0.1}, {'outputs': 0.1})
  ask({'signature_name': 'two', 'instances': [{'x': [1, 2], 'n': 3}, {'x': [3, 4], 'n': 4}]},
      {'predictions': [{'a': [2.0, 4.0], 'b': 4}, {'a': [6.0, 8.0], 'b': 5}]})
  ask({'signature_name': 'two', 'inputs': {'x': [[1, 2]], 'n': [3]}},
      {'outputs': {'a': [[2.0, 4.0]], 'b': [4]}})
  ask({'signature_name': 'string', 'instances': ['a', {'b64': '/w=='}]},
      {'predictions': ['a', {'b64': '/w=='}]})
  ask('{"signature_name": "float32", "inputs": [NaN, Infinity, -Infinity]}',
      {'outputs': [float('nan'), float('inf'), float('-inf')]})
  ask({'signature_name': 'int8', 'inputs': [300]}, 'is not of expected type: int8')
  ask({'signature_name': 'float32', 'inputs': 123456789}, 'without loss of precision')
  ask({'signature_name': 'float32', 'inputs': [[1], [2, 3]]}, 'Encountered list at unexpected size')
  ask({'signature_name': 'two', 'instances': [1]}, 'instances is a plain list')
  ask({'signature_name': 'float32'}, "Missing 'inputs' or 'instances' key")
  ask('{"a"', 'JSON Parse error')
  ask('[' * 100000, 'JSON Parse error')


def test_saved_model_cli(runner):
  cli = shutil.which('saved_model_cli', path=os.path.dirname(sys.executable))
  cases = [('float32', ['--input_exprs', 'x=[[1.0,2.5e-7]]']),
           ('string', ['--input_exprs', "x=['a',b'b']"]),
           ('two', ['--input_exprs', 'x=[[1,2]];n=[1]', '--outdir', runner.work + '/cli_out',
                    '--overwrite'])]
  for signature, flags in cases:
    theirs = subprocess.run(
        [cli, 'run', '--dir', runner.model, '--tag_set', 'serve', '--signature_def', signature,
         *flags], capture_output=True)
    ours = runner.run(signature, *flags)
    runner.check(theirs.returncode == 0 and theirs.stdout == ours.stdout, f'cli {flags}',
                 theirs.stdout.decode(), ours.stdout.decode(), theirs.stderr.decode()[-500:])


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument('smelt')
  parser.add_argument('--arrays', type=int, default=320)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('--cli', action='store_true')
  args = parser.parse_args()
  with tempfile.TemporaryDirectory() as work:
    model = os.path.join(work, 'model')
    make_model(model)
    runner = Runner(args.smelt, model, work)
    test_arrays(runner, Arrays(args.seed), args.arrays)
    test_expressions(runner)
    test_refusals(runner)
    test_json(runner)
    if args.cli:
      test_saved_model_cli(runner)
    print(f'{runner.checks} checks, {runner.failures} failed')
  return 1 if runner.failures else 0


if __name__ == '__main__':
  sys.exit(main())
