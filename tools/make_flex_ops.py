#!/usr/bin/env python3
"""Writes smelt/lite/flex/select_ops.inc: the ops that TensorFlow's converter gives to the Flex delegate.

Needs TensorFlow. Each op of TensorFlow is converted by itself. Without select ops the converter says of an op that it has no builtin for whether it is a
select op or a custom one; what it does have a builtin for is converted again by select ops alone, and the file shows what became of it. A few ops end the
process, so that others go on in a new one."""
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

TYPES = [1, 3, 7, 9, 8, 6]  # float, int32, string, int64, complex64, int8: the first that an attribute allows
FED = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 18, 19, 22, 23}  # what a converted graph takes as an input
# Where the first value that comes to mind is none.
TEXTS = {"equation": b"ab->ba", "mode": b"REFLECT", "config": b""}
TYPE_OF = {("Cast", "DstT"): 3, ("Bitcast", "type"): 3}
LOOK_SAME = ("strides", "ksize", "ksizes", "rates", "dilations")


def value_of(op, attr, value):
    allowed = lambda kind: next((t for t in TYPES if not kind or t in kind), kind[0] if kind else 1)
    least = max(attr.minimum if attr.has_minimum else 1, 1)
    if attr.HasField("default_value"):
        value.CopyFrom(attr.default_value)
    elif attr.type == "type":
        value.type = TYPE_OF.get((op.name, attr.name), allowed(list(attr.allowed_values.list.type)))
    elif attr.type == "int":
        counts_inputs = any(a.number_attr == attr.name for a in op.input_arg)
        value.i = max(least, 2) if op.name == "AddN" and counts_inputs or attr.name == "window_size" else least
    elif attr.type == "float":
        value.f = 0.5
    elif attr.type == "bool":
        value.b = False
    elif attr.type == "string":
        value.s = attr.allowed_values.list.s[0] if attr.allowed_values.list.s else TEXTS.get(attr.name, b"x")
    elif attr.type == "shape":
        value.shape.unknown_rank = attr.name not in ("shape", "element_shape", "dense_shapes")
    elif attr.type == "tensor":
        value.tensor.dtype = 1
        value.tensor.tensor_shape.SetInParent()
        value.tensor.float_val.append(1.0)
    elif attr.type == "func":
        value.func.name = "f"
    elif attr.type == "list(type)":
        value.list.type.extend([allowed(list(attr.allowed_values.list.type))] * (least if attr.has_minimum else 1))
    elif attr.type == "list(shape)":
        value.list.shape.add()
    elif attr.type == "list(int)":
        value.list.i.extend([1] * max(least, 4 if attr.name in LOOK_SAME or not attr.has_minimum else 1))
    elif attr.type == "list(float)":
        value.list.f.extend([1.0] * 4)
    elif attr.type == "list(string)":
        value.list.s.append(b"ROW_SPLITS")
    elif attr.type == "list(func)":
        value.list.func.add().name = "f"


def graph_of(op, function):
    """The op alone, what is fed, and how many outputs it has."""
    from tensorflow.core.framework import attr_value_pb2, graph_pb2

    graph = graph_pb2.GraphDef()
    graph.versions.producer = 1882
    graph.library.function.add().CopyFrom(function)
    node = graph.node.add(name="the_op", op=op.name)
    attrs = {}
    for attr in op.attr:
        attrs[attr.name] = attr_value_pb2.AttrValue()
        value_of(op, attr, attrs[attr.name])
        node.attr[attr.name].CopyFrom(attrs[attr.name])

    def types_of(arg):
        if arg.type_list_attr:
            return list(attrs[arg.type_list_attr].list.type)
        return [attrs[arg.type_attr].type if arg.type_attr else arg.type] * (attrs[arg.number_attr].i if arg.number_attr else 1)

    # Their shapes are looked at; all arguments of such ops are one tensor.
    vectors = [f"in{i}" for i, arg in enumerate(op.input_arg) if arg.name == "block_shape"]
    fed = []
    for dtype in [t for arg in op.input_arg for t in types_of(arg)]:
        name = f"in{len(node.input)}"
        node.input.append(name)
        if dtype in FED:
            source = graph.node.add(name=name, op="Placeholder")
            source.attr["dtype"].type = dtype
            source.attr["shape"].shape.unknown_rank = name not in vectors
            if name in vectors:
                source.attr["shape"].shape.dim.add().size = 2
            fed.append((name, dtype))
            continue
        # Handles and lists come from an op that is no select op.
        iterator = graph.node.add(name=f"iterator_{name}", op="Iterator")
        source = graph.node.add(name=name, op="IteratorGetNext", input=[iterator.name])
        for maker in (iterator, source):
            maker.attr["output_types"].list.type.append(dtype)
            maker.attr["output_shapes"].list.shape.add().unknown_rank = True
        for text in ("shared_name", "container"):
            iterator.attr[text].s = b"i"
    return graph, fed, sum(len(types_of(arg)) for arg in op.output_arg)


def is_select_op(op, function):
    import tensorflow as tf
    from tensorflow.lite.python import convert, schema_py_generated as schema

    class Tensor:
        def __init__(self, name, dtype):
            self.name, self.dtype, self.shape = name, tf.dtypes.as_dtype(dtype), tf.TensorShape(None)

    graph, fed, outputs = graph_of(op, function)
    flags_of = convert.build_model_flags

    def with_control_output(**arguments):
        flags = flags_of(**arguments)
        if not outputs:
            flags.control_output_arrays.append("the_op")
        return flags

    def converted(ops):
        convert.build_model_flags = with_control_output
        try:
            return convert.convert_graphdef(graph, [Tensor(f"{n}:0", t) for n, t in fed], [Tensor(f"the_op:{i}", 1) for i in range(outputs)],
                                            enable_mlir_converter=True, lower_tensor_list_ops=False, target_ops={ops})
        finally:
            convert.build_model_flags = flags_of

    try:
        converted(tf.lite.OpsSet.TFLITE_BUILTINS)
        file = converted(tf.lite.OpsSet.SELECT_TF_OPS)
    except Exception as e:  # the converter's errors are of many classes
        select = re.search(r"TF Select ops: (.*)", str(e))
        return select is not None and op.name in select.group(1).split(", ")
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(file, 0))
    return f"Flex{op.name}".encode() in [code.customCode for code in model.operatorCodes]


def measure(names):
    """Prints "OP ?" before it measures an op, "OP yes" or "OP no" then."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def f(x):
        return x + 1.0

    function = f.get_concrete_function().function_def
    renamed = type(function)()
    renamed.CopyFrom(function)
    renamed.signature.name = "f"
    for name in names:
        print(name, "?", flush=True)
        op = op_def_registry.get(name)
        print(name, "yes" if op is not None and is_select_op(op, renamed) else "no", flush=True)


def main():
    if len(sys.argv) > 1:
        return measure(sys.stdin.read().split())
    root = Path(__file__).resolve().parent.parent
    table = (root / "smelt/graph/ops/ops.txt").read_text(encoding="utf8")
    # Names that begin with '_' are the runtime's own.
    todo = [b.split(None, 1)[0] for b in table.split("\n\n") if b and b[0] not in "#_"]
    found = []
    while todo:
        done = subprocess.run([sys.executable, __file__, "some"], input="\n".join(todo), text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}, check=False)
        answers = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        found += [name for name, answer in answers.items() if answer == "yes"]
        todo = todo[max(len(answers), 1):]
    text = "\n".join(textwrap.wrap(" ".join(f'"{name}",' for name in sorted(found)), 98))
    (root / "smelt/lite/flex/select_ops.inc").write_text(f"// Written by tools/make_flex_ops.py.\n{text}\n", encoding="utf8")


if __name__ == "__main__":
    main()
