"""What one drawn .tflite file is made of: scales, shapes and values out of a seeded generator, and the file of one operator with them."""
import numpy as np

from lite_builder import Lite, fb, packed

QUANTIZED = ("int8", "uint8", "int16")
SAME, VALID = 0, 1
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
TABLES = {n.lower(): n for n in [*vars(fb.BuiltinOptions), *vars(fb.BuiltinOptions2)]}
ODD_TABLES = {"AVERAGE_POOL_2D": "Pool2DOptions", "MAX_POOL_2D": "Pool2DOptions", "L2_POOL_2D": "Pool2DOptions", "L2_NORMALIZATION": "L2NormOptions", "MEAN": "ReducerOptions",
              "SUM": "ReducerOptions", "MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions", **{f"REDUCE_{k}": "ReducerOptions" for k in ("MAX", "MIN", "PROD", "ANY", "ALL")}}


def options_of(op):
    return ODD_TABLES.get(op) or TABLES.get(op.replace("_", "").lower() + "options")


class Draw:
    def __init__(self, *seed):
        self.random = np.random.default_rng(seed)
        self.lite, self.given, self.made, self.about = Lite(), [], [], []
        self.later = []  # inputs of calls behind the first
        self.tolerance = 1e-5

    def int(self, low, high):
        return int(self.random.integers(low, high + 1))

    def pick(self, *options):
        return options[self.int(0, len(options) - 1)]

    def chance(self, part):
        return bool(self.random.random() < part)

    def shape(self, low=1, high=4, most=7):
        return tuple(self.int(1, most) for _ in range(self.int(low, high)))

    def scale(self, dtype="int8", low=1e-3, high=0.3):
        """Powers of two meet halves."""
        power = 2.0 ** self.int(-9, -2)
        return float(np.float32((power if self.chance(0.15) else float(np.exp(self.random.uniform(np.log(low), np.log(high))))) / (256 if dtype == "int16" else 1)))

    def quant(self, dtype):
        if dtype not in QUANTIZED:
            return {}
        low, high = LIMITS[dtype]
        return {"scale": self.scale(dtype), "zero": 0 if dtype == "int16" else self.pick(low, high, (low + high + 1) // 2, *(self.int(low, high) for _ in range(5)))}

    def values(self, shape, dtype, low=-3.0, high=3.0, odd=0.0):
        """`odd`: how often floats are among those that roundings and signs are about. No NaN: XNNPACK answers any number there."""
        if dtype == "bool":
            return self.random.integers(0, 2, shape).astype(bool)
        if dtype in QUANTIZED:
            return self.random.integers(LIMITS[dtype][0], LIMITS[dtype][1] + 1, shape).astype(dtype)
        if np.dtype(dtype).kind in "iu":
            return self.random.integers(0 if dtype[0] == "u" else -20, 21, shape).astype(dtype)
        out = self.random.uniform(low, high, shape).astype(dtype)
        if self.chance(odd):
            ends = np.array([0.0, -0.0, 1e30, -1e30, 0.5, -0.5, 1.5, 2.5, -2.5, -1, 6], np.float32)
            out = np.where(self.random.random(shape) < 0.3, self.random.choice(ends, shape), out).astype(dtype)
        return out

    def input(self, value, **quant):
        self.given.append(value)
        self.about.append(f"{value.dtype}{list(value.shape)}" + (f" {quant['scale']!r} {quant['zero']}" if quant else ""))
        return self.lite.input(value.shape, value.dtype.name, **quant)

    def const(self, value, **quant):
        value = np.asarray(value)
        self.about.append(f"const {value.dtype}{list(value.shape)}" + (f" {quant['scale']!r} {quant['zero']}" if quant and np.ndim(quant["scale"]) == 0 else "") + (f" {value.tolist()}" if value.size < 9 else ""))
        return self.lite.const(value, **quant)

    def const_4(self, value, **quant):
        self.about.append(f"const int4{list(value.shape)}")
        return self.lite.tensor(value.shape, "int4", value=packed(value), **quant)

    def either(self, value, constant=0.4, **quant):
        """An input, or a constant."""
        return (self.const if self.chance(constant) else self.input)(value, **quant)

    def output(self, shape, dtype, **quant):
        self.about.append(f"-> {dtype}{list(shape)}" + (f" {quant['scale']!r} {quant['zero']}" if quant else ""))
        self.made.append(self.lite.tensor(shape, dtype, **quant))
        return self.made[-1]

    def state(self, shape, dtype="float32", **quant):
        """What the operator keeps between calls."""
        return self.lite.tensor(shape, dtype, variable=True, **quant)

    def repeat(self, calls):
        """So many calls, the later ones of the same numbers in other places."""
        self.about.append(f"{calls} calls")
        for _ in range(calls - 1):
            self.later.append([self.random.permutation(v.ravel()).reshape(v.shape) for v in self.given])

    def calls(self):
        return [{f"x{i}": v for i, v in enumerate(given)} for given in (self.given, *self.later)]

    def op(self, op, inputs, outputs, version=1, table=None, intermediates=None, **fields):
        left_out = [i for i, t in enumerate(inputs) if t == -1]
        self.about.insert(0, op + "".join(f" {k}={v}" for k, v in fields.items()) + (f" without {left_out}" if left_out else ""))
        return self.lite.op(op, inputs, outputs, table or options_of(op), version=version, intermediates=intermediates, **fields)

    def bytes(self):
        return self.lite.bytes(self.made)

    def window(self, size, kernel, stride, dilation, padding):
        """How many places a window has; 0: none."""
        reach = (kernel - 1) * dilation + 1
        return -(-size // stride) if padding == SAME else max(0, (size - reach) // stride + 1)
