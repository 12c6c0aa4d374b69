#!/usr/bin/env python3
"""Writes tests/ops/<family>.ops: op cases whose expected values TensorFlow computes. A module with
FOLDER = "sessions" writes tests/sessions/<family>.ops: graphs that need a session.

    make_op_cases.py FAMILY...            writes tests/ops/<family>.ops from tools/op_cases/<family>.py
    make_op_cases.py --all                every family
    make_op_cases.py --only OP FAMILY     prints the cases of one op instead of writing the file
    make_op_cases.py --messages FAMILY    also shows TensorFlow's message of every failing case
    make_op_cases.py --seed N             other random inputs

How to add cases: write (or extend) tools/op_cases/<family>.py with a function cases(r) that yields
case(...) and graph_case(...); tools/op_cases/__init__.py describes both and has the helpers. Run this
tool with a Python that has TensorFlow 2.21, then `smelt_case_tests ops tests/ops/<family>.ops`. Each op
should have a sweep over its types, a few shapes (scalar, empty, broadcasting), edge values, and its
errors. A case holds at most 300 elements per tensor. The format is docs/formats/op_cases.md.

Every case runs in a graph of its own, optimizers off, with inputs fed, so that the kernels themselves
compute. A family whose module says JIT = True holds ops that only XLA's compiler knows: its cases run
inside tf.function(jit_compile=True). A case that fails in TensorFlow is written as `error CODE`, with the substring that the spec
gives (checked against TensorFlow's message); one that the spec did not announce is reported.
"""
import argparse
import importlib
import os
import pathlib
import re
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_library, op_def_registry

TOOLS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS))
import op_cases  # noqa: E402

CODES = [
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"
]
MAX_ELEMENTS = 300
BARE = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/>")


# ---- the text form of tensors, attributes, nodes and functions (see docs/formats/graph_text.md) ----


def quote(s):
    if isinstance(s, str):
        s = s.encode()
    out = []
    for b in s:
        c = chr(b)
        if c in '"\\':
            out.append("\\" + c)
        elif c == "\n":
            out.append("\\n")
        elif c == "\t":
            out.append("\\t")
        elif c == "\r":
            out.append("\\r")
        elif 32 <= b < 127:
            out.append(c)
        else:
            out.append("\\%03o" % b)
    return '"' + "".join(out) + '"'


def name_text(n):
    return n if n and set(n) <= BARE and not n.startswith("-") else quote(n)


def type_text(enum):
    name = types_pb2.DataType.Name(enum)
    return name[3:].lower() if not name.endswith("_REF") else name[3:-4].lower() + "_ref"


def float_text(v):
    v = np.float64(v) if isinstance(v, np.float64) else np.float32(v)
    if np.isnan(v):
        return "nan"
    if np.isinf(v):
        return "inf" if v > 0 else "-inf"
    text = np.format_float_scientific(v, trim="-") if v != 0 and not 1e-4 <= abs(
        v) < 1e16 else np.format_float_positional(v, trim="-")
    return text


def element_text(a, v):
    kind = a.dtype.kind
    if kind == "b":
        return "true" if v else "false"
    if kind in "iu":
        return str(int(v))
    if kind == "c":
        part = np.float32 if a.dtype == np.complex64 else np.float64
        return f"({float_text(part(v.real))}, {float_text(part(v.imag))})"
    if kind in "OSU":
        return quote(v)
    return float_text(v if a.dtype == np.float64 else np.float32(v))


def tensor_text(value, dtype=None):
    if isinstance(value, op_cases.Typed):
        value, dtype = value.values, value.dtype
    # As an object: numpy's own string arrays drop trailing zero bytes.
    a = np.array(value, dtype=object) if isinstance(value, bytes) else np.asarray(value)
    if a.size > MAX_ELEMENTS:
        raise ValueError(f"tensor of {a.size} elements: keep cases under {MAX_ELEMENTS}")
    if dtype is None:
        dtype = "string" if a.dtype.kind in "OSU" else type_text(tf.as_dtype(a.dtype).as_datatype_enum)
    dims = ",".join(str(d) for d in a.shape)
    return f"{dtype}[{dims}]{{" + ", ".join(element_text(a, v) for v in a.reshape(-1)) + "}"


def shape_text(s):
    if s.unknown_rank:
        return "shape(?)"
    return "[" + ",".join("?" if d.size < 0 else str(d.size) for d in s.dim) + "]"


# TensorFlow numbers functions over the process; a case must not depend on the cases before it.
function_names = {}


def name_functions(functions):
    function_names.clear()
    taken = set()
    # The numbers grow in the order in which the functions were made.
    for name in sorted(functions, key=lambda n: [int(d) for d in re.findall(r"_(\d+)$", n)]):
        base = re.sub(r"^__inference_(.*?)_\d+$", r"\1", name).replace("<lambda>", "lambda")
        new, i = base, 0
        while new in taken:
            i += 1
            new = f"{base}_{i}"
        taken.add(new)
        function_names[name] = new


def func_text(f):
    text = "@" + name_text(function_names.get(f.name, f.name))
    return text + (attrs_text(f.attr) if f.attr else "")


def attr_text(v):
    kind = v.WhichOneof("value")
    if kind == "s":
        return quote(v.s)
    if kind == "i":
        return str(v.i)
    if kind == "f":
        text = float_text(np.float32(v.f))
        return text + "f"
    if kind == "b":
        return "true" if v.b else "false"
    if kind == "type":
        return type_text(v.type)
    if kind == "shape":
        return shape_text(v.shape)
    if kind == "tensor":
        return tensor_text(tf.make_ndarray(v.tensor), type_text(v.tensor.dtype))
    if kind == "func":
        return func_text(v.func)
    if kind == "placeholder":
        return "$" + v.placeholder
    items = []
    if kind == "list":
        l = v.list
        items += [quote(s) for s in l.s] + [str(i) for i in l.i]
        items += [float_text(np.float32(f)) + "f" for f in l.f]
        items += ["true" if b else "false" for b in l.b] + [type_text(t) for t in l.type]
        items += [shape_text(s) for s in l.shape] + [func_text(f) for f in l.func]
        items += [tensor_text(tf.make_ndarray(t), type_text(t.dtype)) for t in l.tensor]
    return "list(" + ", ".join(items) + ")"


def attrs_text(attrs):
    # Names with an underscore in front are notes of TensorFlow's Python to itself.
    items = [f"{k}={attr_text(attrs[k])}" for k in sorted(attrs) if not k.startswith("_")]
    return " {" + ", ".join(items) + "}" if items else ""


def endpoint_text(node, port):
    return name_text(node) + (f":{port}" if port else "")


def node_text(node, inputs):
    args = "(" + ", ".join(inputs) + ")" if inputs else ""
    op = name_text(function_names.get(node.op, node.op))
    return f"{name_text(node.name)} = {op}{args}{attrs_text(node.attr)}"


def graph_input(text):
    if text.startswith("^"):
        return "^" + name_text(text[1:])
    name, _, port = text.partition(":")
    return endpoint_text(name, int(port or 0))


def arity(arg, attrs):
    if arg.number_attr:
        return attrs[arg.number_attr].i
    if arg.type_list_attr:
        return len(attrs[arg.type_list_attr].list.type)
    return 1


def function_text(f, functions):
    """A FunctionDef in the text form. Its endpoints are "node:output_argument:index", those of the text form "node:port"."""
    nodes = {n.name: n for n in f.node_def}

    def endpoint(text):
        if text.startswith("^"):
            return "^" + name_text(text[1:])
        parts = text.split(":")
        if len(parts) == 1:
            return name_text(parts[0])
        node = nodes.get(parts[0])
        if node is None:  # an argument with a list of tensors
            return endpoint_text(parts[0], int(parts[-1]))
        called = functions.get(node.op)
        op_def = called.signature if called else op_def_registry.get(node.op)
        port = 0
        for arg in op_def.output_arg:
            if arg.name == parts[1]:
                return endpoint_text(parts[0], port + int(parts[2]))
            port += arity(arg, node.attr)
        raise ValueError(f"no output {text}")

    def arg_text(a):
        return f"{name_text(a.name)}: {type_text(a.type) if a.type else a.type_attr}"

    s = f.signature
    lines = [
        f"func {name_text(function_names.get(s.name, s.name))}({', '.join(arg_text(a) for a in s.input_arg)}) -> "
        f"({', '.join(arg_text(a) for a in s.output_arg)}) {{"
    ]
    for n in f.node_def:
        lines.append("  " + node_text(n, [endpoint(i) for i in n.input]))
    rets = [f"{name_text(a.name)}={endpoint(f.ret[a.name])}" for a in s.output_arg]
    rets += [f"^{name_text(a)}={name_text(f.control_ret[a])}" for a in s.control_output]
    if rets:
        lines.append("  return " + " ".join(rets))
    lines.append("}")
    return lines


# ---- running ----


class Writer:

    def __init__(self, messages):
        self.lines = []
        self.names = {}
        self.messages = messages
        self.problems = []
        self.unannounced = []
        self.count = 0

    def begin(self, spec):
        name = spec.op + (f"_{spec.name}" if spec.name else "")
        n = self.names[name] = self.names.get(name, -1) + 1
        if n or not spec.name:
            name += f"_{n}"
        name = "".join(c if c in BARE else "_" for c in name)
        self.name = name
        self.count += 1
        self.lines += ["---", "case " + name]
        return name

    def drop(self, spec, why):
        if getattr(spec, "otherwise", None) is None:
            self.problems.append(f"{self.name}: {why}")
        self.count -= 1
        del self.lines[max(i for i, l in enumerate(self.lines) if l == "---"):]

    def end(self, spec):
        if spec.tol:
            self.lines.append(f"tol {spec.tol[0]:g} {spec.tol[1]:g}")
        if spec.compare:
            self.lines.append("compare " + spec.compare)

    def error(self, code, message, wanted):
        # Python puts a stack trace and the node around the kernel's own words.
        message = message.rpartition("Original stack trace")[0] or message
        message = re.split(r"\nNode: '[^\n]*'\n", message)[-1].strip()
        if wanted == op_cases.AS_SAID:
            wanted = message.splitlines()[0]
        if self.messages:
            print(f"{self.name}: {code}: {message.splitlines()[0] if message else ''}", file=sys.stderr)
        if wanted is None:
            self.unannounced.append(f"{self.name}: {code}: {message.splitlines()[0][:150]}")
        elif wanted not in message:
            self.problems.append(f"{self.name}: message lacks {wanted!r}: {message.splitlines()[0]}")
        self.lines.append(f"error {code}" + (" " + quote(wanted) if wanted else ""))


def session():
    config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    return tf.compat.v1.Session(config=config)


PLAIN = {"qint8": tf.int8, "quint8": tf.uint8, "qint16": tf.int16, "quint16": tf.uint16,
         "qint32": tf.int32}


def default_attrs(op_def):
    """Defaults of the attributes that inputs do not settle, as Python values."""
    inferred = set()
    for a in op_def.input_arg:
        inferred |= {a.type_attr, a.number_attr, a.type_list_attr}
    out = {}
    for a in op_def.attr:
        if a.name in inferred or not a.HasField("default_value"):
            continue
        v = a.default_value
        kind = v.WhichOneof("value")
        out[a.name] = list(getattr(v.list, LIST_FIELDS[a.type])) if kind == "list" else getattr(v, kind)
    return out


LIST_FIELDS = {"list(string)": "s", "list(int)": "i", "list(float)": "f", "list(bool)": "b",
               "list(type)": "type", "list(shape)": "shape", "list(tensor)": "tensor", "list(func)": "func"}


def run_op_case(spec, w):
    w.begin(spec)
    op_def = op_def_registry.get(spec.op)
    if op_def is None:
        raise ValueError(f"no op {spec.op}")
    if len(spec.inputs) != len(op_def.input_arg):
        raise ValueError(f"{w.name}: {spec.op} takes {[a.name for a in op_def.input_arg]}")
    flat, feed, kwargs = [], {}, dict(default_attrs(op_def), **spec.attrs)
    with tf.Graph().as_default():
        if op_def.deprecation.version:  # as a graph of the time when the op was in use
            old = tf.compat.v1.GraphDef()
            old.versions.producer = op_def.deprecation.version - 1
            tf.import_graph_def(old)

        def tensor(v):
            v = v if isinstance(v, op_cases.Typed) else np.asarray(v)
            flat.append(v)
            if isinstance(v, op_cases.Typed):
                p = tf.compat.v1.placeholder(PLAIN[v.dtype], v.values.shape if spec.static else None)
                feed[p] = v.values
                return tf.raw_ops.Bitcast(input=p, type=tf.as_dtype(v.dtype))
            t = tf.string if v.dtype.kind in "OSU" else tf.as_dtype(v.dtype)
            p = tf.compat.v1.placeholder(t, v.shape if spec.static else None)
            feed[p] = v
            return p

        for arg, v in zip(op_def.input_arg, spec.inputs):
            kwargs[arg.name] = [tensor(x) for x in v] if isinstance(v, (list, tuple)) else tensor(v)
        try:
            _, _, op, _ = op_def_library._apply_op_helper(spec.op, name="case_op", **kwargs)
        except (ValueError, TypeError, NotImplementedError) as e:
            w.drop(spec, f"TensorFlow builds no such op: {str(e)[:300]}")
            return
        node = op.node_def
        fetches = []
        for o in op.outputs:
            q = PLAIN.get(o.dtype.name)
            fetches.append((tf.raw_ops.Bitcast(input=o, type=q), o.dtype.name) if q else (o, None))
        w.lines.append(f"op {spec.op}{attrs_text(node.attr)}")
        w.lines += ["in " + tensor_text(v) for v in flat]
        try:
            with session() as s:
                outs = s.run([f for f, _ in fetches] + [op], feed)[:-1]
            for o, (f, q) in zip(outs, fetches):
                w.lines.append("out " + tensor_text(o, q or type_text(f.dtype.base_dtype.as_datatype_enum)))
            if spec.error is not None:
                w.problems.append(f"{w.name}: was to fail, does not")
        except tf.errors.OpError as e:
            if spec.otherwise is not None:
                w.drop(spec, e.message)
                return
            w.error(CODES[e.error_code], e.message, spec.error)
    w.end(spec)


def run_graph_case(spec, w):
    w.begin(spec)
    with tf.Graph().as_default() as g:
        try:
            made = spec.build()
        except (ValueError, TypeError, NotImplementedError) as e:
            w.drop(spec, f"TensorFlow builds no such graph: {str(e)[:300]}")
            return
        if not isinstance(made, (list, tuple)):
            made = [made]
        steps = list(made)
        if not steps or not isinstance(steps[0], op_cases.Step):
            steps = [op_cases.Step(fetch=steps, error=spec.error)]
        graph_def = g.as_graph_def()
        functions = {f.signature.name: f for f in graph_def.library.function}
        name_functions(functions)
        w.lines.append("graph")
        for n in graph_def.node:
            w.lines.append("  " + node_text(n, [graph_input(i) for i in n.input]))
        for name in sorted(functions, key=function_names.get):
            w.lines += ["  " + l for l in function_text(functions[name], functions)]
        w.lines.append("end")
        with session() as s:
            for i, step in enumerate(steps):
                if i:
                    w.lines.append("step")
                for t, v in step.feed.items():
                    w.lines.append(f"feed {graph_input(t.name)} {tensor_text(v)}")
                for op in step.run:
                    w.lines.append("run " + name_text(op.name))
                try:
                    outs = step.answers or s.run(list(step.fetch) + list(step.run), step.feed)
                    for t, o in zip(step.fetch, outs):
                        w.lines.append(f"fetch {graph_input(t.name)} " +
                                       tensor_text(o, type_text(t.dtype.base_dtype.as_datatype_enum)))
                    if step.error is not None:
                        w.problems.append(f"{w.name}: was to fail, does not")
                except tf.errors.OpError as e:
                    w.lines += [f"fetch {graph_input(t.name)}" for t in step.fetch]
                    w.error(CODES[e.error_code], e.message, step.error)
    w.end(spec)


def run_jit_case(spec, w):
    """A case in a function that XLA compiles. What takes functions is written as a graph."""
    w.begin(spec)
    op_def = op_def_registry.get(spec.op)
    if len(spec.inputs) != len(op_def.input_arg):
        raise ValueError(f"{w.name}: {spec.op} takes {[a.name for a in op_def.input_arg]}")
    flat = []
    for v in spec.inputs:
        flat += [np.asarray(x) for x in v] if isinstance(v, (list, tuple)) else [np.asarray(v)]

    def compute(*tensors):
        rest, kwargs = list(tensors), dict(default_attrs(op_def), **spec.attrs)
        for arg, v in zip(op_def.input_arg, spec.inputs):
            n = len(v) if isinstance(v, (list, tuple)) else None
            kwargs[arg.name] = rest.pop(0) if n is None else [rest.pop(0) for _ in range(n)]
        for k, v in kwargs.items():
            if isinstance(v, op_cases.Body):
                args = [tf.TensorSpec(shape, tf.as_dtype(t)) for t, shape in v.args]
                kwargs[k] = tf.function(v.fn, autograph=False).get_concrete_function(*args)
        _, _, op, _ = op_def_library._apply_op_helper(spec.op, name="case_op", **kwargs)
        return op.outputs if spec.after is None else spec.after(*op.outputs)

    specs = [tf.TensorSpec(None, v.dtype, name=f"in{i}") for i, v in enumerate(flat)]
    try:
        f = tf.function(compute, jit_compile=True, autograph=False).get_concrete_function(*specs)
    except (ValueError, TypeError, NotImplementedError) as e:
        w.drop(spec, f"TensorFlow builds no such op: {str(e)[:300]}")
        return
    error = None
    try:
        outs = [o.numpy() for o in f(*[tf.constant(v) for v in flat])]
        if spec.error is not None:
            w.problems.append(f"{w.name}: was to fail, does not")
    except tf.errors.OpError as e:
        error = e
    node = f.graph.get_operation_by_name("case_op")
    # What is fetched, without the identities that functions end in.
    fetches = [t.op.inputs[0] if t.op.type == "Identity" else t for t in f.graph.outputs]
    kinds = [type_text(o.dtype.as_datatype_enum) for o in fetches]
    if spec.after is not None or any(isinstance(v, op_cases.Body) for v in spec.attrs.values()):
        graph_def = f.graph.as_graph_def()
        functions = {g.signature.name: g for g in graph_def.library.function}
        name_functions(functions)
        w.lines.append("graph")
        w.lines += ["  " + node_text(n, [graph_input(i) for i in n.input]) for n in graph_def.node
                    if not n.name.startswith("Identity")]
        for name in sorted(functions, key=function_names.get):
            w.lines += ["  " + l for l in function_text(functions[name], functions)]
        w.lines.append("end")
        w.lines += [f"feed in{i} {tensor_text(v)}" for i, v in enumerate(flat)]
        values = [""] * len(kinds) if error else [" " + tensor_text(o, t) for o, t in zip(outs, kinds)]
        w.lines += [f"fetch {graph_input(t.name)}{v}" for t, v in zip(fetches, values)]
    else:
        w.lines.append(f"op {spec.op}{attrs_text(node.node_def.attr)}")
        w.lines += ["in " + tensor_text(v) for v in flat]
        w.lines += [] if error else ["out " + tensor_text(o, t) for o, t in zip(outs, kinds)]
    if error:
        w.error(CODES[error.error_code], error.message, spec.error)
    w.end(spec)


def make(family, args):
    module = importlib.import_module("op_cases." + family)
    seed = [args.seed] + [ord(c) for c in family]
    w = Writer(args.messages)
    for spec in module.cases(op_cases.Random(seed)):
        if args.only and spec.op != args.only:
            continue
        if args.verbose:
            print(spec.op, spec.name, flush=True)
        if isinstance(spec, op_cases.GraphCase):
            run_graph_case(spec, w)
        elif getattr(module, "JIT", False):
            with context.eager_mode():  # families before this one may have turned it off
                run_jit_case(spec, w)
        else:
            count = w.count
            run_op_case(spec, w)
            for other in spec.otherwise or []:
                if w.count == count:
                    other.otherwise = []
                    run_op_case(other, w)
    header = [f"# Written by tools/make_op_cases.py {family} with TensorFlow {tf.__version__}; do not edit."]
    text = "\n".join(header + w.lines) + "\n"
    if args.only:
        sys.stdout.write(text)
    else:
        out = pathlib.Path(args.out) / getattr(module, "FOLDER", "ops") / (family + ".ops")
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
        print(f"{out}: {w.count} cases")
    for u in w.unannounced:
        print("unannounced error: " + u, file=sys.stderr)
    for p in w.problems:
        print("PROBLEM: " + p, file=sys.stderr)
    return not w.problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", metavar="OP")
    parser.add_argument("--messages", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="names each case before it runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=str(TOOLS.parent / "tests"))
    args = parser.parse_args()
    families = args.families
    if args.all:
        families = sorted(p.stem for p in (TOOLS / "op_cases").glob("*.py") if p.stem != "__init__")
    if not families:
        parser.error("which families?")
    ok = True
    for family in families:
        ok = make(family, args) and ok
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
