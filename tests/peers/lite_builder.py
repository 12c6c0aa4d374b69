"""Builds .tflite files operator by operator: what TensorFlow's converter does not write, and quantized operators with scales of the test's own choice."""
import copy

import flatbuffers
import numpy as np
from tensorflow.lite.python import schema_py_generated as fb

TYPES = {"float32": fb.TensorType.FLOAT32, "float16": fb.TensorType.FLOAT16, "int32": fb.TensorType.INT32, "uint8": fb.TensorType.UINT8,
         "int64": fb.TensorType.INT64, "str": fb.TensorType.STRING, "bool": fb.TensorType.BOOL, "int16": fb.TensorType.INT16, "int8": fb.TensorType.INT8,
         "complex64": fb.TensorType.COMPLEX64, "uint32": fb.TensorType.UINT32, "float64": fb.TensorType.FLOAT64, "int4": fb.TensorType.INT4,
         "resource": fb.TensorType.RESOURCE, "uint16": fb.TensorType.UINT16,
         "uint64": fb.TensorType.UINT64}


def code_of(op):
    return getattr(fb.BuiltinOperator, op)


def packed(values):
    """The bytes of numbers of 4 bits."""
    nibbles = values.astype(np.int8).ravel() & 15
    nibbles = np.append(nibbles, 0) if len(nibbles) % 2 else nibbles
    return (nibbles[0::2] | nibbles[1::2] << 4).astype(np.uint8).tobytes()


class Lite:
    """The first subgraph, and others by `sub`. Tensors are numbers; run order is that of the calls of `op`."""

    def __init__(self):
        self.model = fb.ModelT()
        self.model.version = 3
        self.model.buffers = [fb.BufferT()]
        self.model.operatorCodes = []
        self.graph = fb.SubGraphT()
        self.graph.name = b"main"
        self.graph.tensors, self.graph.operators = [], []
        self.graph.inputs, self.graph.outputs = [], []
        self.model.subgraphs = [self.graph]
        self.codes = {}

    def sub(self, name="more"):
        """Another subgraph of the file, whose operators are added to it; its `index` is what options name."""
        other = copy.copy(self)
        other.graph = fb.SubGraphT()
        other.graph.name = name.encode()
        other.graph.tensors, other.graph.operators, other.graph.inputs, other.graph.outputs = [], [], [], []
        other.index = len(self.model.subgraphs)
        self.model.subgraphs.append(other.graph)
        return other

    def tensor(self, shape, dtype, scale=None, zero=None, dim=0, value=None, variable=False, signature=None):
        t = fb.TensorT()
        t.name = f"t{len(self.graph.tensors)}".encode()
        t.shape, t.type, t.hasRank, t.isVariable, t.buffer = list(shape), TYPES[dtype], True, variable, 0
        if signature is not None:
            t.shapeSignature = list(signature)
        if scale is not None:
            q = fb.QuantizationParametersT()
            q.scale = np.atleast_1d(np.asarray(scale, np.float32)).tolist()
            q.zeroPoint = np.broadcast_to(np.asarray(0 if zero is None else zero, np.int64), len(q.scale)).tolist()
            q.quantizedDimension = dim
            t.quantization = q
        if value is not None:
            b = fb.BufferT()
            b.data = np.frombuffer(value if isinstance(value, bytes) else np.ascontiguousarray(value).tobytes(), np.uint8)
            t.buffer = len(self.model.buffers)
            self.model.buffers.append(b)
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def const(self, value, **kw):
        value = np.asarray(value)
        return self.tensor(value.shape, value.dtype.name, value=value, **kw)

    def input(self, shape, dtype, **kw):
        i = self.tensor(shape, dtype, **kw)
        self.graph.inputs.append(i)
        return i

    def op(self, name, inputs, outputs, /, options=None, version=1, intermediates=None, custom=None, custom_options=b"", **fields):
        """`options`: the name of its table, "Conv2DOptions"; `intermediates`: tensors; `fields`: what differs from the defaults, as the table's object has them.
        `custom`: the code of an operator CUSTOM, whose options are bytes."""
        kind = (name, version, custom)
        if kind not in self.codes:
            c = fb.OperatorCodeT()
            c.builtinCode, c.version, c.customCode = code_of(name), version, custom
            c.deprecatedBuiltinCode = min(c.builtinCode, 127)
            self.codes[kind] = len(self.model.operatorCodes)
            self.model.operatorCodes.append(c)
        o = fb.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs = self.codes[kind], list(inputs), list(outputs)
        if intermediates is not None:
            o.intermediates = list(intermediates)
        if custom_options:
            o.customOptions = np.frombuffer(custom_options, np.uint8)
        if options:
            second = hasattr(fb.BuiltinOptions2, options)
            table = getattr(fb, options + "T")()
            for k, v in fields.items():
                assert hasattr(table, k), (options, k, vars(table))
                setattr(table, k, v)
            if second:
                o.builtinOptions2Type, o.builtinOptions2 = getattr(fb.BuiltinOptions2, options), table
            else:
                o.builtinOptionsType, o.builtinOptions = getattr(fb.BuiltinOptions, options), table
        self.graph.operators.append(o)
        return outputs[0]

    def bytes(self, outputs):
        """The file, with signature serving_default: inputs x0, x1, ..., outputs y0, ..."""
        self.graph.outputs = list(outputs)
        s = fb.SignatureDefT()
        s.signatureKey, s.subgraphIndex = b"serving_default", 0

        def maps(indices, letter):
            out = []
            for i, t in enumerate(indices):
                m = fb.TensorMapT()
                m.name, m.tensorIndex = f"{letter}{i}".encode(), t
                out.append(m)
            return out
        s.inputs, s.outputs = maps(self.graph.inputs, "x"), maps(outputs, "y")
        self.model.signatureDefs = [s]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
