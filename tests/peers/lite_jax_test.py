#!/usr/bin/env python3
"""What JAX writes with x.at[...], and its sorts, beside JAX's own answers: lite_jax_test.py SMELT [NAME...]

Each function is exported through jax2tf, once as it is and, where it says so, with a symbolic batch in place of its first sizes of 5; the .tflite file
answers in LiteRT. Indices reach outside, repeat, and count from behind."""
import os
import pathlib
import sys
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from jax.experimental import jax2tf

from checks import call, check, finish

BATCH = 5
work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_lite_jax_"))
random = np.random.default_rng(3)


def f32(*shape):
    return random.standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int32)


def below(limit, *shape):
    return random.integers(0, limit, shape).astype(np.int32)


ONE = np.int32(1)
# Name: the function, its arguments, and whether their first sizes of BATCH may be left free.
ROWS = {
    "set_row": (lambda x, i, v: x.at[i].set(v), (f32(5, 4), np.int32(2), f32(4)), False),
    "set_row_from_behind": (lambda x, i, v: x.at[i].set(v), (f32(5, 4), np.int32(-2), f32(4)), False),
    "set_row_outside": (lambda x, i, v: x.at[i].set(v), (f32(5, 4), np.int32(5), f32(4)), False),
    "set_rows": (lambda x, i, v: x.at[i].set(v), (f32(5, 4), ints(3, 0, 1), f32(3, 4)), False),
    "add_rows": (lambda x, i, v: x.at[i].add(v), (f32(5, 4), ints(0, 7, -9, 4, 0, -1), f32(6, 4)), False),
    "max_rows": (lambda x, i, v: x.at[i].max(v), (f32(5, 4), ints(1, 1, 4, 9), f32(4, 4)), False),
    "min_rows": (lambda x, i, v: x.at[i].min(v), (f32(5, 4), ints(1, 1, 4, 9), f32(4, 4)), False),
    "multiply_rows": (lambda x, v: x.at[1:3].multiply(v), (f32(6, 4), f32(2, 4)), False),
    "set_every_second": (lambda x, v: x.at[::2].set(v), (f32(5, 4), f32(3, 4)), False),
    "set_place": (lambda x, i, j, v: x.at[i, j].set(v), (f32(5, 4), ONE, np.int32(3), f32()), False),
    "add_places": (lambda x, i, j, v: x.at[i, j].add(v), (f32(5, 4), below(5, 6), below(4, 6), f32(6)), False),
    "diagonal": (lambda x: x.at[jnp.diag_indices(4)].add(1.0), (f32(4, 4),), False),
    "triangle": (lambda x: x.at[jnp.tril_indices(4)].set(0.0), (f32(4, 4),), False),
    "segment_sum": (lambda d, s: jax.ops.segment_sum(d, s, 6), (f32(5, 3), ints(0, 5, 5, 2, 7)), True),
    "bincount": (lambda s: jnp.bincount(s, length=8), (below(8, 20),), False),
    "first_where": (lambda x: jnp.nonzero(x > 0, size=8, fill_value=-1)[0], (f32(12),), False),
    "set_column": (lambda x: x.at[:, 0].set(-1e9), (f32(5, 4),), True),
    "set_column_to": (lambda x, v: x.at[:, -1].set(v), (f32(5, 4), f32(5)), True),
    "add_columns": (lambda x: x.at[:, 1:3].add(1.5), (f32(5, 4),), True),
    "set_a_column": (lambda x, i: x.at[:, i].set(0.0), (f32(5, 4), np.int32(2)), True),
    "place_of_each_row": (lambda x, i: x.at[jnp.arange(x.shape[0]), i].set(1.0), (f32(5, 4), below(4, 5)), True),
    "one_hot": (lambda i: jnp.zeros((i.shape[0], 7)).at[jnp.arange(i.shape[0]), i].set(1.0), (below(7, 5),), True),
    "set_by_vmap": (lambda x, i, v: jax.vmap(lambda a, b, c: a.at[b].set(c))(x, i, v), (f32(5, 4), below(4, 5), f32(5)), True),
    "add_by_vmap": (lambda x, i, v: jax.vmap(lambda a, b, c: a.at[b].add(c))(x, i, v), (f32(5, 4), below(4, 5, 2), f32(5, 2)), False),
    "sort": (lambda x: jnp.sort(x, axis=-1), (np.round(f32(5, 7), 1),), True),
    "sort_rows": (lambda x: jnp.sort(x, axis=0), (f32(6, 4),), False),
    "sort_ints": (lambda x: jnp.sort(x, axis=-1), (ints(3, -1, 2**31 - 1, -2**31, 0).reshape(1, 5),), False),
    "sort_down": (lambda x: jnp.sort(x, axis=-1, descending=True), (f32(5, 7),), True),
    "argsort": (lambda x: jnp.argsort(x, axis=-1), (np.round(f32(5, 7), 1),), True),
    "running_product": (lambda x: jnp.cumprod(x, axis=1), (f32(5, 7),), False),
    "running_maximum": (lambda x: jax.lax.cummax(x, axis=0), (f32(5, 7),), False),
    "running_minimum_of_ints": (lambda x: jax.lax.cummin(x, axis=0, reverse=True), (ints(3, -1, 2**31 - 1, -2**31, 0, 7),), False),
    "all_prefixes": (lambda x: jax.lax.associative_scan(jnp.multiply, x), (f32(5, 3),), False),
    "mod": (lambda x: x % 0.7, (f32(5, 7),), True),
    "remainder": (lambda x, y: jax.lax.rem(x, y), (10 * f32(5, 7), f32(5, 7)), True),
    "places_among": (lambda x: jnp.searchsorted(jnp.arange(5.0), x), (3 * f32(9),), False),
    "histogram": (lambda x: jnp.histogram(x, bins=5, range=(-2, 2))[0], (f32(19),), False),
    "bits": (lambda x: (x.astype(jnp.uint32) << 2) ^ (x.astype(jnp.uint32) >> 3), (below(2**31 - 1, 5),), False),
    "drawn": (lambda x: x + jax.random.normal(jax.random.PRNGKey(3), (3, 7)), (f32(3, 7),), False),
    "sort_with": (lambda x, y: jax.lax.sort((x, y), dimension=1, num_keys=1), (f32(5, 4), f32(5, 4)), False),
    "argmax": (lambda x: jnp.argmax(x, axis=-1), (f32(5, 4),), True),
    "top_k": (lambda x: jax.lax.top_k(x, 2), (f32(5, 4),), True),
    "median": (lambda x: jnp.median(x, axis=-1), (f32(5, 4),), False),
}


def export(name, f, args, free):
    poly = ["b, ..." if free and np.ndim(a) > 0 and np.shape(a)[0] == BATCH else None for a in args]
    specs = [tf.TensorSpec([None if p and i == 0 else d for i, d in enumerate(np.shape(a))], a.dtype, name=f"a{k}")
             for k, (a, p) in enumerate(zip(args, poly))]
    module = tf.Module()
    module.f = tf.function(jax2tf.convert(f, polymorphic_shapes=poly, with_gradient=False), autograph=False, input_signature=specs)
    tf.saved_model.save(module, str(work / name), signatures=module.f)


def answers_alike(name, f, args):
    code, printed = call("lite", work / name, work / f"{name}.tflite")
    if code:
        return printed
    interpreter = Interpreter(str(work / f"{name}.tflite"))
    got = interpreter.get_signature_runner()(**{f"a{k}": np.asarray(a) for k, a in enumerate(args)})
    wanted = jax.tree_util.tree_leaves(f(*map(jnp.asarray, args)))
    for key, w in zip(sorted(got), wanted):
        if got[key].shape != w.shape or not np.allclose(got[key], w, rtol=1e-5, atol=1e-5):
            return f"{key}: {got[key]} instead of {w}"
    return ""


names = sys.argv[2:] or list(ROWS)
for name in names:
    f, args, may_be_free = ROWS[name]
    for free in [False, True] if may_be_free else [False]:
        title = name + ("_of_any_batch" if free else "")
        export(title, f, args, free)
        why = answers_alike(title, f, args)
        check(title, not why, why)
finish()
