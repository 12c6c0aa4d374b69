"""Drawers of .tflite files of several operators, which smelt joins: chains of functions, and small networks."""
import numpy as np

from lite_draw import LIMITS, SAME

FUNCTIONS = ("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "HARD_SWISH", "ELU", "EXP", "GELU", "ABS", "QUANTIZE", "RELU_N1_TO_1", "RELU_0_TO_1")


class Net:
    """Tensors of one shape and type, each with its scale, of which some are not yet read."""

    def __init__(self, d, dtype, shape):
        self.d, self.dtype, self.shape = d, dtype, shape
        d.tolerance = 1e-4  # of floats: sums of sums, of which a clamp leaves little
        quant = self.quant(0.02)
        self.made = [(d.input(d.values(shape, dtype), **quant), quant)]
        self.read = set()

    def quant(self, scale):
        if self.dtype == "float32":
            return {}
        low, high = LIMITS[self.dtype]
        scale = scale * float(self.d.random.uniform(0.6, 1.7)) if self.d.chance(0.9) else 1 / 32
        return {"scale": float(np.float32(scale / (256 if self.dtype == "int16" else 1))), "zero": 0 if self.dtype == "int16" else self.d.int(low + 60, high - 60) if self.d.chance(0.8) else low}

    def scale(self, t):
        return t[1]["scale"] * (256 if self.dtype == "int16" else 1) if t[1] else 0

    def pick(self):
        i = len(self.made) - 1 - min(self.d.int(0, 3) * self.d.int(0, 1), len(self.made) - 1)
        self.read.add(i)
        return self.made[i]

    def op(self, op, inputs, quant, **fields):
        y = self.d.lite.tensor(self.shape, self.dtype, **quant)
        about = self.d.about
        self.d.op(op, inputs, [y], **fields)
        about.append(f"{about.pop(0)} {inputs}->{y} {quant}")
        self.made.append((y, quant))

    def finish(self):
        """What nothing reads is an output, and now and then what something does."""
        self.d.made += [t for i, (t, _) in enumerate(self.made) if i and (i not in self.read or self.d.chance(0.1))]

    def function(self):
        op = self.d.pick(*(f for f in FUNCTIONS if self.dtype != "float32" or f not in ("QUANTIZE", "EXP")))
        if self.dtype == "int16" and op in ("HARD_SWISH", "ELU", "GELU", "RELU_N1_TO_1", "RELU_0_TO_1", "EXP"):
            op = "LEAKY_RELU"
        if self.dtype == "uint8" and op in ("ELU", "EXP", "ABS"):
            op = "TANH"
        x = self.pick()
        fixed = {"LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}, "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)}}.get(op, {}).get(self.dtype)
        quant = {"scale": fixed[0], "zero": fixed[1]} if fixed else self.quant(self.scale(x))
        if op == "ABS" and self.dtype == "int16":
            quant = x[1]
        self.op(op, [x[0]], quant, **({"alpha": self.d.pick(0.1, 0.3, -0.5)} if op == "LEAKY_RELU" else {"approximate": self.d.chance(0.5)} if op == "GELU" else {}))

    def pair(self):
        op = self.d.pick("ADD", "ADD", "SUB", "MUL")
        a, b = self.pick(), self.pick()
        scale = self.scale(a) * self.scale(b) * 60 if op == "MUL" else self.scale(a) + self.scale(b)
        self.op(op, [a[0], b[0]], self.quant(scale), fusedActivationFunction=self.d.pick(0, 0, 1, 3), **({"potScaleInt16": False} if op != "MUL" else {}))

    def layer(self):
        op = self.d.pick("CONV_2D", "CONV_2D", "DEPTHWISE_CONV_2D")
        kernel, c, x = self.d.pick(1, 3), self.shape[3], self.pick()
        dim = 0 if op == "CONV_2D" else 3
        shape = (c, kernel, kernel, c) if dim == 0 else (1, kernel, kernel, c)
        if self.dtype == "float32":
            weights, bias = [self.d.lite.const(self.d.values(s, "float32", -0.5, 0.5)) for s in (shape, (c,))]
            quant = {}
        else:
            several = self.dtype != "uint8" and self.d.chance(0.7)
            scales = np.float32(self.d.random.uniform(0.003, 0.01, c if several else 1))
            wide = np.int64 if self.dtype == "int16" else np.int32
            values = self.d.values(shape, "uint8") if self.dtype == "uint8" else self.d.random.integers(-127, 128, shape).astype(np.int8)
            weights = self.d.lite.const(values, scale=scales.tolist(), zero=130 if self.dtype == "uint8" else 0, dim=dim if several else 0)
            bias = self.d.lite.const(self.d.random.integers(-900, 900, c).astype(wide), scale=(scales * np.float32(x[1]["scale"])).tolist(), zero=0)
            quant = self.quant(self.scale(x) * (np.prod(shape) / c) ** 0.5 * 0.5)
        self.op(op, [x[0], weights, bias], quant, version=5 if dim and self.dtype == "int16" else 4 if self.dtype == "int16" else 3, padding=SAME, strideH=1, strideW=1,
                fusedActivationFunction=self.d.pick(0, 0, 1, 3), **({"depthMultiplier": 1} if dim else {}))

    def pool(self):
        x = self.pick()
        self.op(self.d.pick("MAX_POOL_2D", "AVERAGE_POOL_2D"), [x[0]], x[1], padding=SAME, strideH=1, strideW=1, filterHeight=self.d.int(1, 3), filterWidth=self.d.int(1, 3), fusedActivationFunction=0)


def chain(d):
    net = Net(d, d.pick("int8", "int8", "uint8", "int16", "float32"), (2, d.int(1, 9), d.int(1, 40), d.int(1, 9)))
    for _ in range(d.int(2, 5)):
        net.function()
    net.finish()


def network(d):
    net = Net(d, d.pick("int8", "int8", "int8", "uint8", "int16", "float32"), (d.int(1, 2), d.int(1, 9), d.int(1, 9), d.pick(1, 3, 8, 16, 24, 33)))
    for _ in range(d.int(2, 6)):
        d.pick(net.layer, net.layer, net.pair, net.function, net.pool)()
    net.finish()


GRAPHS = {f.__name__: f for f in (chain, network)}
