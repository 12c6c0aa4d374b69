#!/usr/bin/env python3
"""Files for fuzz/tflite_fuzz.cc to begin with: tflite_seeds.py FOLDER [SMELT]

A file of one operator for each of many builtins, written by flatc, and with a smelt program what it exports of the models in tests/models in every form."""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "smelt/wire/tflite/tflite.fbs"
CODES = {"FLOAT32": "f", "INT32": "i", "INT64": "q", "INT8": "b", "UINT8": "B", "INT16": "h", "BOOL": "?"}
QUANTIZED = {"INT8": (0.5, 1), "UINT8": (0.5, 128), "INT16": (0.5, 0)}


def flex(options):
    """A FlexBuffer map of numbers and truth values, four bytes each."""
    word = lambda v: struct.pack("<f" if isinstance(v, float) else "<i", v)
    keys = sorted(options)
    out, at = b"", []
    for key in keys:
        at.append(len(out))
        out += key.encode() + b"\0"
    out += bytes(-len(out) % 4) + word(len(keys))
    listed = len(out)
    for where in at:
        out += word(len(out) - where)
    out += word(len(out) - listed) + word(4) + word(len(keys))
    values = len(out)
    out += b"".join(word(options[key]) for key in keys)
    out += bytes({bool: 26, int: 1, float: 3}[type(options[key])] << 2 | 2 for key in keys)
    out += bytes(-len(out) % 4)
    return out + word(len(out) - values) + bytes([9 << 2 | 2, 4])


class File:
    def __init__(self):
        self.codes, self.buffers, self.subgraphs = [], [{}], []
        self.begin()

    def begin(self):
        self.tensors, self.operators, self.inputs = [], [], []

    def tensor(self, shape, dtype="FLOAT32", **more):
        t = {"name": f"t{len(self.tensors)}", "shape": shape, "type": dtype, "has_rank": True, **more}
        if dtype in QUANTIZED and "quantization" not in more:
            scale, zero = QUANTIZED[dtype]
            t["quantization"] = {"scale": [scale], "zero_point": [zero]}
        self.tensors.append(t)
        return len(self.tensors) - 1

    def input(self, shape, dtype="FLOAT32", **more):
        self.inputs.append(self.tensor(shape, dtype, **more))
        return self.inputs[-1]

    def const(self, shape, values, dtype="INT32", **more):
        self.buffers.append({"data": list(struct.pack(f"<{len(values)}{CODES[dtype]}", *values))})
        return self.tensor(shape, dtype, buffer=len(self.buffers) - 1, **more)

    def custom(self, code, inputs, outputs, **options):
        self.operators.append({"opcode_index": len(self.codes), "inputs": inputs, "outputs": outputs, "custom_options": list(flex(options))})
        self.codes.append({"builtin_code": "CUSTOM", "deprecated_builtin_code": 32, "custom_code": code, "version": 1})

    def op(self, code, inputs, outputs, table="", **fields):
        operator = {"opcode_index": len(self.codes), "inputs": inputs, "outputs": outputs}
        if table:
            second = "_2" if table.startswith(("Stablehlo", "StableHLO", "Dilate")) else ""
            operator[f"builtin_options{second}_type"], operator[f"builtin_options{second}"] = table, fields
        self.codes.append({"builtin_code": code, "version": 1})
        self.operators.append(operator)

    def end(self, outputs):
        self.subgraphs.append({"name": f"s{len(self.subgraphs)}", "tensors": self.tensors, "inputs": self.inputs, "outputs": outputs, "operators": self.operators})
        self.begin()

    def model(self):
        main = self.subgraphs[0]
        names = lambda numbers: [{"name": f"k{i}", "tensor_index": n} for i, n in enumerate(numbers)]
        return {"version": 3, "operator_codes": self.codes, "subgraphs": self.subgraphs, "buffers": self.buffers,
                "signature_defs": [{"signature_key": "serving_default", "inputs": names(main["inputs"]), "outputs": names(main["outputs"])}]}


def split(shape):
    return [int(n) for n in shape.split(",")] if shape else []


def simple(code, operands, result, table="", **fields):
    """Operands: "float 1,4,4,2" is an input, "int = 1,2" a vector of constants, "int 0" a scalar, "-" is left out, "state 1,2" is a variable."""
    f = File()
    numbers = []
    for operand in operands:
        kind, _, text = operand.partition(" ")
        dtype = {"float": "FLOAT32", "int": "INT32", "long": "INT64", "byte": "INT8", "ubyte": "UINT8", "short": "INT16", "bool": "BOOL", "text": "STRING"}.get(kind, "")
        if operand == "-":
            numbers.append(-1)
        elif kind == "state":
            numbers.append(f.tensor(split(text), is_variable=True))
        elif kind == "zero":
            numbers.append(f.const([], [int(text)]))
        elif kind == "pairs":
            values = split(text)
            numbers.append(f.const([len(values) // 2, 2], values))
        elif text.startswith("= "):
            values = split(text[2:])
            numbers.append(f.const([len(values)], values, dtype))
        elif text.startswith("* "):
            shape = split(text[2:])
            size = 1
            for n in shape:
                size *= n
            numbers.append(f.const(shape, [1] * size, dtype))
        else:
            numbers.append(f.input(split(text), dtype))
    outputs = []
    for r in result.split(";") if result else []:
        kind, _, text = r.strip().partition(" ")
        outputs.append(f.tensor(split(text), {"float": "FLOAT32", "int": "INT32", "long": "INT64", "byte": "INT8", "ubyte": "UINT8", "short": "INT16", "bool": "BOOL", "complex": "COMPLEX64"}[kind]))
    f.op(code, numbers, outputs, table, **fields)
    f.end(outputs)
    return f.model()


def builtins():
    image = "1,4,4,2"
    for t in ("float", "byte", "ubyte", "short"):
        for code in "ABS NEG RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LOGISTIC TANH ELU EXP LOG GELU HARD_SWISH SQRT RSQRT SQUARE".split():
            yield f"{code}_{t}", simple(code, [f"{t} 2,3"], f"{t} 2,3")
        for code, table in dict(ADD="Add", SUB="Sub", MUL="Mul", DIV="Div", MAXIMUM="MaximumMinimum", MINIMUM="MaximumMinimum", SQUARED_DIFFERENCE="SquaredDifference",
                                FLOOR_DIV="FloorDiv", FLOOR_MOD="FloorMod", POW="Pow").items():
            yield f"{code}_{t}", simple(code, [f"{t} 2,3", f"{t} 3"], f"{t} 2,3", table + "Options")
        for code in "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL".split():
            yield f"{code}_{t}", simple(code, [f"{t} 2,3", f"{t} 3"], "bool 2,3")
        weights, bias = "ubyte" if t == "ubyte" else "float" if t == "float" else "byte", "float" if t == "float" else "long" if t == "short" else "int"
        stride = dict(stride_h=1, stride_w=2)
        yield f"CONV_2D_{t}", simple("CONV_2D", [f"{t} {image}", f"{weights} * 3,2,2,2", f"{bias} 3"], f"{t} 1,4,2,3", "Conv2DOptions", fused_activation_function="RELU6", **stride)
        yield f"DEPTHWISE_CONV_2D_{t}", simple("DEPTHWISE_CONV_2D", [f"{t} {image}", f"{weights} * 1,2,2,4", f"{bias} 4"], f"{t} 1,4,2,4", "DepthwiseConv2DOptions", depth_multiplier=2, **stride)
        yield f"TRANSPOSE_CONV_{t}", simple("TRANSPOSE_CONV", ["int = 1,4,8,3", f"{weights} * 3,2,2,2", f"{t} {image}"], f"{t} 1,4,8,3", "TransposeConvOptions", **stride)
        yield f"FULLY_CONNECTED_{t}", simple("FULLY_CONNECTED", [f"{t} 2,4", f"{weights} * 3,4", f"{bias} 3"], f"{t} 2,3", "FullyConnectedOptions", keep_num_dims=True)
        for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
            yield f"{code}_{t}", simple(code, [f"{t} {image}"], f"{t} 1,4,2,2", "Pool2DOptions", filter_height=2, filter_width=2, **stride)
        yield f"SOFTMAX_{t}", simple("SOFTMAX", [f"{t} 2,3"], f"{t} 2,3", "SoftmaxOptions", beta=1.0)
        yield f"LOG_SOFTMAX_{t}", simple("LOG_SOFTMAX", [f"{t} 2,3"], f"{t} 2,3", "LogSoftmaxOptions")
        yield f"L2_NORMALIZATION_{t}", simple("L2_NORMALIZATION", [f"{t} 2,3"], f"{t} 2,3", "L2NormOptions")
        yield f"LEAKY_RELU_{t}", simple("LEAKY_RELU", [f"{t} 2,3"], f"{t} 2,3", "LeakyReluOptions", alpha=0.1)
        yield f"PRELU_{t}", simple("PRELU", [f"{t} 2,3", f"{t} 3"], f"{t} 2,3")
        yield f"RESIZE_BILINEAR_{t}", simple("RESIZE_BILINEAR", [f"{t} {image}", "int = 3,5"], f"{t} 1,3,5,2", "ResizeBilinearOptions", half_pixel_centers=True)
        yield f"RESIZE_NEAREST_{t}", simple("RESIZE_NEAREST_NEIGHBOR", [f"{t} {image}", "int = 3,5"], f"{t} 1,3,5,2", "ResizeNearestNeighborOptions", align_corners=True)
        for code in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
            yield f"{code}_{t}", simple(code, [f"{t} {image}", "int = 1,2"], f"{t} 1,2", "ReducerOptions")
        yield f"CONCATENATION_{t}", simple("CONCATENATION", [f"{t} 2,3", f"{t} 2,1"], f"{t} 2,4", "ConcatenationOptions", axis=-1)
        yield f"BATCH_MATMUL_{t}", simple("BATCH_MATMUL", [f"{t} 2,2,3", f"{t} 1,4,3"], f"{t} 2,2,4", "BatchMatMulOptions", adj_y=True)
        yield f"QUANTIZE_{t}", simple("QUANTIZE", [f"{t} 2,3"], "byte 2,3", "QuantizeOptions")
        yield f"DEQUANTIZE_{t}", simple("DEQUANTIZE", [f"{t} 2,3"], "float 2,3", "DequantizeOptions")
    for t in ("float", "int", "byte"):
        yield f"RESHAPE_{t}", simple("RESHAPE", [f"{t} 2,3", "int = 3,-1"], f"{t} 3,2", "ReshapeOptions", new_shape=[3, -1])
        yield f"TRANSPOSE_{t}", simple("TRANSPOSE", [f"{t} 2,3", "int = 1,0"], f"{t} 3,2")
        yield f"PAD_{t}", simple("PAD", [f"{t} 2,3", "pairs 1,0,0,2"], f"{t} 3,5")
        yield f"PADV2_{t}", simple("PADV2", [f"{t} 2,3", "pairs 1,0,0,2", f"{t} "], f"{t} 3,5")
        yield f"MIRROR_PAD_{t}", simple("MIRROR_PAD", [f"{t} 2,3", "pairs 1,0,0,2"], f"{t} 3,5", "MirrorPadOptions", mode="SYMMETRIC")
        yield f"GATHER_{t}", simple("GATHER", [f"{t} 2,3", "int = 1,0"], f"{t} 2,2", "GatherOptions", axis=1)
        yield f"GATHER_ND_{t}", simple("GATHER_ND", [f"{t} 2,3", "pairs 1,0,0,2"], f"{t} 2")
        yield f"SCATTER_ND_{t}", simple("SCATTER_ND", ["pairs 1,0,0,2", f"{t} 2", "int = 2,3"], f"{t} 2,3")
        yield f"SLICE_{t}", simple("SLICE", [f"{t} 2,3", "int = 0,1", "int = -1,2"], f"{t} 2,2")
        yield f"STRIDED_SLICE_{t}", simple("STRIDED_SLICE", [f"{t} 2,3", "int = 0,1", "int = 2,3", "int = 1,2"], f"{t} 2,1", "StridedSliceOptions", begin_mask=1)
        yield f"SPLIT_{t}", simple("SPLIT", ["zero 1", f"{t} 2,4"], f"{t} 2,2; {t} 2,2", "SplitOptions", num_splits=2)
        yield f"SPLIT_V_{t}", simple("SPLIT_V", [f"{t} 2,4", "int = 3,-1", "zero 1"], f"{t} 2,3; {t} 2,1", "SplitVOptions", num_splits=2)
        yield f"PACK_{t}", simple("PACK", [f"{t} 2", f"{t} 2"], f"{t} 2,2", "PackOptions", values_count=2, axis=1)
        yield f"UNPACK_{t}", simple("UNPACK", [f"{t} 2,2"], f"{t} 2; {t} 2", "UnpackOptions", num=2, axis=1)
        yield f"TILE_{t}", simple("TILE", [f"{t} 2,3", "int = 2,1"], f"{t} 4,3")
        yield f"BROADCAST_TO_{t}", simple("BROADCAST_TO", [f"{t} 3", "int = 2,3"], f"{t} 2,3")
        yield f"EXPAND_DIMS_{t}", simple("EXPAND_DIMS", [f"{t} 2,3", "zero 1"], f"{t} 2,1,3")
        yield f"SQUEEZE_{t}", simple("SQUEEZE", [f"{t} 2,1,3"], f"{t} 2,3", "SqueezeOptions", squeeze_dims=[1])
        yield f"SPACE_TO_BATCH_ND_{t}", simple("SPACE_TO_BATCH_ND", [f"{t} {image}", "int = 2,2", "pairs 0,0,0,0"], f"{t} 4,2,2,2")
        yield f"BATCH_TO_SPACE_ND_{t}", simple("BATCH_TO_SPACE_ND", [f"{t} 4,2,2,2", "int = 2,2", "pairs 0,0,1,0"], f"{t} 1,4,3,2")
        yield f"SPACE_TO_DEPTH_{t}", simple("SPACE_TO_DEPTH", [f"{t} {image}"], f"{t} 1,2,2,8", "SpaceToDepthOptions", block_size=2)
        yield f"DEPTH_TO_SPACE_{t}", simple("DEPTH_TO_SPACE", [f"{t} 1,2,2,8"], f"{t} {image}", "DepthToSpaceOptions", block_size=2)
        yield f"REVERSE_V2_{t}", simple("REVERSE_V2", [f"{t} 2,3", "int = 1"], f"{t} 2,3")
        yield f"REVERSE_SEQUENCE_{t}", simple("REVERSE_SEQUENCE", [f"{t} 2,3", "int 2"], f"{t} 2,3", "ReverseSequenceOptions", seq_dim=1)
        yield f"TOPK_V2_{t}", simple("TOPK_V2", [f"{t} 2,3", "zero 2"], f"{t} 2,2; int 2,2")
        yield f"ARG_MAX_{t}", simple("ARG_MAX", [f"{t} 2,3", "zero 1"], "int 2", "ArgMaxOptions", output_type="INT32")
        yield f"SELECT_V2_{t}", simple("SELECT_V2", ["bool 2,1", f"{t} 2,3", f"{t} 3"], f"{t} 2,3")
        yield f"CUMSUM_{t}", simple("CUMSUM", [f"{t} 2,3", "zero 1"], f"{t} 2,3", "CumsumOptions", reverse=True)
        yield f"UNIQUE_{t}", simple("UNIQUE", [f"{t} 4"], f"{t} 4; int 4", "UniqueOptions")
        yield f"DYNAMIC_UPDATE_SLICE_{t}", simple("DYNAMIC_UPDATE_SLICE", [f"{t} 2,3", f"{t} 1,2", "int 2"], f"{t} 2,3")
        yield f"CAST_{t}", simple("CAST", [f"{t} 2,3"], "long 2,3", "CastOptions")
        yield f"SEGMENT_SUM_{t}", simple("SEGMENT_SUM", [f"{t} 3,2", "int = 0,0,1"], f"{t} 2,2")
        yield f"UNSORTED_SEGMENT_SUM_{t}", simple("UNSORTED_SEGMENT_SUM", [f"{t} 3,2", "int = 0,-1,1", "zero 2"], f"{t} 2,2")
        yield f"WHERE_{t}", simple("WHERE", [f"{t} 2,3"], "long 2,2")
        yield f"SPARSE_TO_DENSE_{t}", simple("SPARSE_TO_DENSE", ["int = 1,3", "int = 4", f"{t} 2", f"{t} "], f"{t} 4")
    yield "RANGE", simple("RANGE", ["int ", "int ", "int "], "int 1")
    yield "FILL", simple("FILL", ["int 2", "float "], "float 2,3")
    yield "ONE_HOT", simple("ONE_HOT", ["int 3", "zero 4", "float ", "float "], "float 3,4", "OneHotOptions", axis=-1)
    yield "EMBEDDING_LOOKUP", simple("EMBEDDING_LOOKUP", ["int 3", "float * 4,2"], "float 3,2")
    yield "EMBEDDING_LOOKUP_SPARSE", simple("EMBEDDING_LOOKUP_SPARSE", ["int 2", "int 2,2", "int = 2,2", "float 2", "float * 4,2"], "float 2,2", "EmbeddingLookupSparseOptions", combiner="MEAN")
    yield "LOCAL_RESPONSE_NORMALIZATION", simple("LOCAL_RESPONSE_NORMALIZATION", [f"float {image}"], f"float {image}", "LocalResponseNormalizationOptions", radius=1, bias=1.0, alpha=1.0, beta=0.5)
    yield "CONV_3D", simple("CONV_3D", ["float 1,3,4,4,2", "float * 2,2,2,2,3"], "float 1,3,4,4,3", "Conv3DOptions", stride_d=1, stride_h=1, stride_w=1)
    yield "RFFT2D", simple("RFFT2D", ["float 4,4", "int = 4,4"], "complex 4,3")
    yield "NMS", simple("NON_MAX_SUPPRESSION_V4", ["float 3,4", "float 3", "zero 2", "float ", "float "], "int 2; int ")
    yield "MATRIX_DIAG", simple("MATRIX_DIAG", ["float 2,3"], "float 2,3,3")
    yield "MATRIX_SET_DIAG", simple("MATRIX_SET_DIAG", ["float 2,3,3", "float 2,3"], "float 2,3,3")
    yield "SHAPE", simple("SHAPE", ["float 2,3"], "int 2", "ShapeOptions", out_type="INT32")
    yield "BUCKETIZE", simple("BUCKETIZE", ["float 3"], "int 3", "BucketizeOptions", boundaries=[0.0, 1.0])
    yield "FAKE_QUANT", simple("FAKE_QUANT", ["float 3"], "float 3", "FakeQuantOptions", min=-1.0, max=1.0, num_bits=8)
    yield "SVDF", simple("SVDF", ["float 1,2", "float * 2,2", "float * 2,3", "-", "state 1,6"], "float 1,2", "SVDFOptions", rank=1)
    yield "RNN", simple("RNN", ["float 1,2", "float * 3,2", "float * 3,3", "float 3", "state 1,3"], "float 1,3", "RNNOptions")
    yield "SEQUENCE_RNN", simple("UNIDIRECTIONAL_SEQUENCE_RNN", ["float 1,4,2", "float * 3,2", "float * 3,3", "float 3", "state 1,3"], "float 1,4,3", "SequenceRNNOptions")
    gates = ["float * 3,2"] * 4 + ["float * 3,3"] * 4 + ["-"] * 3 + ["float * 3"] * 4 + ["-"] * 2 + ["state 1,3"] * 2
    yield "SEQUENCE_LSTM", simple("UNIDIRECTIONAL_SEQUENCE_LSTM", ["float 1,4,2"] + gates + ["-"] * 4, "float 1,4,3", "UnidirectionalSequenceLSTMOptions", fused_activation_function="TANH")
    yield "LSTM", simple("LSTM", ["float 1,2"] + gates, "float 1,3", "LSTMOptions", fused_activation_function="TANH")
    yield "BASIC_LSTM", simple("LSTM", ["float 1,2", "float 1,3", "float * 12,5", "float * 12", "float 1,3"], "float 1,3; float 1,3; float 1,5; float 1,12", "LSTMOptions", kernel_type="BASIC")
    yield "STABLEHLO_ADD", simple("STABLEHLO_ADD", ["float 2", "float 2"], "float 2")
    yield "STABLEHLO_BROADCAST", simple("STABLEHLO_BROADCAST_IN_DIM", ["float 2"], "float 3,2", "StablehloBroadcastInDimOptions", broadcast_dimensions=[1])
    yield "STABLEHLO_SLICE", simple("STABLEHLO_SLICE", ["float 4"], "float 2", "StablehloSliceOptions", start_indices=[0], limit_indices=[4], strides=[2])
    yield "STABLEHLO_COMPARE", simple("STABLEHLO_COMPARE", ["float 4", "float 4"], "bool 4", "StablehloCompareOptions", comparison_direction="STABLEHLO_COMPARISON_DIRECTION_LT")
    for loop in (False, True):
        f = File()
        p, x = f.input([], "BOOL"), f.input([2])
        if loop:
            y, z = f.tensor([], "BOOL"), f.tensor([2])
            f.op("WHILE", [p, x], [y, z], "WhileOptions", cond_subgraph_index=1, body_subgraph_index=2)
            f.end([y, z])
            p, x = f.input([], "BOOL"), f.input([2])
            f.end([p])
            p, x, y = f.input([], "BOOL"), f.input([2]), f.tensor([2])
            q = f.tensor([], "BOOL")
            f.op("LOGICAL_NOT", [p], [q])
            f.op("NEG", [x], [y])
            f.end([q, y])
        else:
            y = f.tensor([2])
            f.op("IF", [p, x], [y], "IfOptions", then_subgraph_index=1, else_subgraph_index=2)
            f.end([y])
            for code in ("NEG", "ABS"):
                x, y = f.input([2]), f.tensor([2])
                f.op(code, [x], [y])
                f.end([y])
        yield "WHILE" if loop else "IF", f.model()
    f = File()
    x, h, v, y = f.input([2]), f.tensor([], "RESOURCE"), f.tensor([2]), f.tensor([2])
    f.op("CALL_ONCE", [], [], "CallOnceOptions", init_subgraph_index=1)
    f.op("VAR_HANDLE", [], [h], "VarHandleOptions", shared_name="v")
    f.op("READ_VARIABLE", [h], [v])
    f.op("ADD", [v, x], [y], "AddOptions")
    f.op("ASSIGN_VARIABLE", [h, y], [])
    f.end([y])
    h, c = f.tensor([], "RESOURCE"), f.const([2], [1, 2], "FLOAT32")
    f.op("VAR_HANDLE", [], [h], "VarHandleOptions", shared_name="v")
    f.op("ASSIGN_VARIABLE", [h, c], [])
    f.end([])
    yield "VARIABLE", f.model()
    for regular in (False, True):
        for t in ("FLOAT32", "UINT8"):
            f = File()
            x = [f.input([1, 3, 4], t), f.input([1, 3, 3], t), f.const([3, 4], [1] * 12, t)]
            y = [f.tensor(s) for s in ([1, 4, 4], [1, 4], [1, 4], [1])]
            f.custom("TFLite_Detection_PostProcess", x, y, max_detections=2, max_classes_per_detection=2, num_classes=2, detections_per_class=2, use_regular_nms=regular,
                     nms_score_threshold=0.0, nms_iou_threshold=0.5, y_scale=10.0, x_scale=10.0, h_scale=5.0, w_scale=5.0)
            f.end(y)
            yield f"DETECTION_{t}_{regular}", f.model()
    f = File()
    x, rate, s, y = f.input([40, 2]), f.const([1], [8000]), f.tensor([2, 3, 9]), f.tensor([2, 3, 4])
    f.custom("AudioSpectrogram", [x], [s], window_size=16, stride=12, magnitude_squared=True)
    f.custom("Mfcc", [s, rate], [y], upper_frequency_limit=3000.0, lower_frequency_limit=20.0, filterbank_channel_count=6, dct_coefficient_count=4)
    f.end([y])
    yield "MFCC", f.model()
    f = File()
    x, reference, y = f.input([2, 3], "INT8"), f.input([2, 3]), f.tensor([2, 3])
    f.custom("NumericVerify", [x, reference], [y], tolerance=5.0, log_if_failed=True)
    f.end([y])
    yield "NUMERIC_VERIFY", f.model()
    f = File()
    c, y = f.const([2, 2], [1, 2], "FLOAT32", sparsity={"traversal_order": [0, 1], "dim_metadata": [
        {"format": "DENSE", "dense_size": 2},
        {"format": "SPARSE_CSR", "array_segments_type": "Int32Vector", "array_segments": {"values": [0, 1, 2]}, "array_indices_type": "Uint8Vector", "array_indices": {"values": [0, 1]}}]}), f.tensor([2, 2])
    f.op("DENSIFY", [c], [y])
    f.end([y])
    yield "DENSIFY", f.model()


def main(folder, smelt=None):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        texts = []
        for name, model in builtins():
            path = pathlib.Path(scratch) / f"{name}.json"
            path.write_text(json.dumps(model))
            texts.append(path)
        subprocess.run(["flatc", "--binary", "-o", scratch, SCHEMA, *texts], check=True)
        for text in texts:
            written = text.with_suffix(".tflite")
            (folder / text.stem).write_bytes(written.read_bytes())
    if smelt is None:
        return
    for model in sorted((ROOT / "tests/models").iterdir()):
        if not (model / "saved_model.pb").exists():
            continue
        samples = ["--representative", f"{model}.tfrecord"]
        for mode in ([], ["--quantize", "float16"], ["--quantize", "dynamic"], ["--quantize", "int8", *samples], ["--quantize", "int16x8", *samples]):
            to = folder / "_".join([model.name, *mode[1:2]])
            subprocess.run([smelt, "lite", model, to, *mode], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
            if to.exists() and to.stat().st_size > 1 << 16:
                to.unlink()  # mutations of large files find little


if __name__ == "__main__":
    main(*sys.argv[1:])
