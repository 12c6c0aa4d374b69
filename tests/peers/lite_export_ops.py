#!/usr/bin/env python3
"""Single ops exported by smelt: lite_export_ops.py SMELT [SUBSTRING of names] [--tensorflow]

A small tf.function for each op that is several operators. smelt exports the SavedModel; LiteRT's answers are to be TensorFlow's.
--tensorflow: those of lite_files.py, too, which have an operator each. TensorFlow's converter exports each function as well: where LiteRT runs its file
right, smelt's is to be right, with no more operators. That takes many minutes."""
import os
import sys
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

import lite_files
from checks import call, check, finish
from lite_files import B, CASES, F, I, L, case, positive, spec, value
from lite_process import difference, litert_answers, operators, reason

words = [w for w in sys.argv[2:] if w != "--tensorflow"]
only, with_tensorflow = words[0] if words else "", "--tensorflow" in sys.argv
random = np.random.default_rng(11)
raw = tf.raw_ops
num_theirs = len(CASES)
# Answers that a converter cannot be held to: numbers that are drawn.
DRAWN = ("random_uniform", "random_normal", "multinomial")
# More operators than TensorFlow's, and why.
MORE = {
    "suppression_of_all": "TensorFlow's file gives zeros behind what it finds, where that is less",
    "computed_update_nothing": "TensorFlow's file adds up what goes to one place",
}

# ---- ops of one element that are several operators
for n, f in {"asinh": tf.asinh, "erf": tf.math.erf, "erfc": tf.math.erfc, "atan": tf.atan, "sinh": tf.sinh, "cosh": tf.cosh, "expm1": tf.math.expm1, "is_nan": tf.math.is_nan,
             "is_inf": tf.math.is_inf, "is_finite": tf.math.is_finite, "tan": tf.tan, "rint": tf.math.rint, "reciprocal": tf.math.reciprocal, "ones_like": tf.ones_like}.items():
    case(n, lambda x, f=f: f(x), [None, 6])
case("acosh", tf.acosh, [None, 4], inputs=[1 + positive((3, 4))[0]])
for n, f in {"atanh": tf.atanh, "asin": tf.asin, "acos": tf.acos}.items():
    case(n, lambda x, f=f: f(x), [None, 4], inputs=[random.uniform(-0.9, 0.9, (3, 4)).astype(np.float32)])
for n in ("ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad"):
    case(n, lambda g, x, n=n: getattr(raw, n)(gradients=g, features=x * 4), [None, 4], [None, 4])
for n in ("EluGrad", "SeluGrad"):
    case(n, lambda g, x, n=n: getattr(raw, n)(gradients=g, outputs=x), [None, 4], [None, 4])
for n in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "SigmoidGrad", "TanhGrad"):
    case(n, lambda y, g, n=n: getattr(raw, n)(y=y, dy=g), [None, 4], [None, 4], inputs=positive((3, 4), (3, 4)))
for n in ("Xdivy", "Xlogy", "Xlog1py", "DivNoNan", "MulNoNan"):
    case(n, lambda x, y, n=n: getattr(raw, n)(x=x, y=y), [None, 3], [None, 3], inputs=[np.float32([[0, 1, 2]]), np.float32([[0, 3, 0.5]])])
for signed, low, high in ((True, -1.0, 2.0), (False, 0.0, 3.0), (True, -2.0, 1.0)):
    for rounding in ("HALF_TO_EVEN", "HALF_UP"):
        case(f"quantize_and_dequantize_{signed}_{high}_{rounding}", lambda x, s=signed, a=low, b=high, r=rounding: tf.quantization.quantize_and_dequantize_v2(x, a, b, signed_input=s, range_given=True, round_mode=r), [None, 40])
case("quantize_and_dequantize_narrow", lambda x: tf.quantization.quantize_and_dequantize_v2(x, -1.0, 2.0, range_given=True, narrow_range=True, num_bits=4), [None, 40])
case("global_normalization", lambda x: tf.compat.v1.nn.batch_norm_with_global_normalization(x, tf.constant([0.1, 0.2]), tf.constant([1.0, 2.0]), tf.constant([0.5, -0.5]), tf.constant([2.0, 3.0]), 1e-3, True), [2, 3, 3, 2])

case("cube", lambda x: x**3, [None, 4])
case("reshape_of_eleven", lambda x: tf.reshape(x, [-1, *[2] * 10]), [None, 1024])
case("atan2_free", tf.atan2, [None, 4], [None, 4])

# ---- types that no operator takes: computed in wider ones
BOTH = {"add": tf.add, "sub": tf.subtract, "mul": tf.multiply, "maximum": tf.maximum, "squared_difference": tf.math.squared_difference, "less": tf.less, "equal": tf.equal}
for t in (tf.int8, tf.uint8, tf.int16, tf.uint16, tf.uint32, tf.half, tf.bfloat16):
    low, high = (-3, 3) if not t.is_integer else (max(t.min, -2**31), min(t.max, 2**32))
    def draw(t=t, low=low, high=high):
        return random.uniform(low, high, (3, 4)).astype(t.as_numpy_dtype)
    for n, f in BOTH.items():
        if not (n == "squared_difference" and t not in (tf.half,)):
            case(f"wide_{n}_{t.name}", f, spec([None, 4], t), spec([None, 4], t), inputs=[draw(), draw()])
    for n, f in {"gather": lambda x: tf.gather(x, [2, 0, 3], axis=1), "concat": lambda x: tf.concat([x, x], 0), "stack": lambda x: tf.stack([x, x], 1), "unstack": lambda x: tf.unstack(x, 4, 1)[2],
                 "split": lambda x: tf.split(x, 2, 1)[1], "pad": lambda x: tf.pad(x, [[1, 0], [0, 2]]), "reverse": lambda x: tf.reverse(x, [1]), "top_k": lambda x: dict(zip("ab", tf.math.top_k(x, 2)))}.items():
        case(f"wide_{n}_{t.name}", f, spec([None, 4], t), inputs=[draw()])
    if t != tf.bfloat16:
        case(f"wide_reduce_{t.name}", lambda x: {"a": tf.reduce_sum(x, 1), "b": tf.reduce_max(x, 1)}, spec([None, 4], t), inputs=[draw() if t.is_integer else draw() * 0.1])
    if t.is_integer:
        case(f"wide_bits_{t.name}", lambda x, y: {"a": tf.bitwise.bitwise_and(x, y), "b": tf.bitwise.bitwise_or(x, y)}, spec([3, 4], t), spec([3, 4], t), inputs=[draw(), draw()])
        case(f"wide_floordiv_{t.name}", lambda x, y: {"a": x // y} if y.dtype == tf.uint32 else {"a": x // y, "b": x % y}, spec([None, 4], t), spec([None, 4], t), inputs=[draw(), np.abs(draw() // 3).astype(t.as_numpy_dtype) + t.as_numpy_dtype(3)])
for n, f in {"matmul": lambda x: tf.matmul(x, tf.constant(random.normal(0, 1, (4, 3)), x.dtype)), "softmax": tf.nn.softmax, "tanh": tf.tanh, "mean": lambda x: tf.reduce_mean(x, 1), "exp": tf.exp, "argmax": lambda x: tf.argmax(x, 1)}.items():
    case(f"wide_{n}_half", f, spec([None, 4], tf.half), inputs=[random.normal(0, 1, (3, 4)).astype(np.float16)])
for n, f in {"abs": tf.abs, "square": tf.square, "sign": tf.sign, "unstack": lambda x: tf.unstack(x, 4, 1)[2], "add_n": lambda x: tf.add_n([x, x, x])}.items():
    case(f"{n}_int64", f, spec([None, 4], L))
case("squared_difference_int64", tf.math.squared_difference, spec([None, 4], L), spec([4], L))
case("truncate_mod_int64", tf.truncatemod, spec([None, 4], L), spec([None, 4], L), inputs=[np.int64([[7, -7, 7, -7]]), np.int64([[3, 3, -3, -3]])])
case("bits_int64", lambda x, y: {"a": tf.bitwise.bitwise_and(x, y), "b": tf.bitwise.bitwise_or(x, y)}, spec([3, 4], L), spec([3, 4], L))

for n, f in {"is_nan": tf.math.is_nan, "is_inf": tf.math.is_inf, "is_finite": tf.math.is_finite}.items():
    case(f"{n}_of_others", f, [None], inputs=[np.float32([np.inf, -np.inf, np.nan, 0, np.finfo(np.float32).max])])

# ---- places
case("roll", lambda x: tf.roll(x, [1, -2], [1, 2]), [None, 4, 5])
for t in F, I:
    case(f"band_part_{t.name}", lambda x: tf.linalg.band_part(x, 1, 0), spec([None, 4, 5], t))
for low, high in (1, 0), (-1, 1), (2, -1), (-1, -1):
    case(f"band_part_computed_{low}_{high}", lambda x, i: tf.linalg.band_part(x, i[0], i[1]), [None, 4, 5], spec([2], L), inputs=[value([2, 4, 5], F), np.int64([low, high])])
case("diag_part", tf.linalg.diag_part, [None, 4, 5])
case("diag_part_above", lambda x: tf.linalg.diag_part(x, k=2), [None, 4, 5])
case("diag_part_below", lambda x: tf.linalg.diag_part(x, k=-1), [None, 4, 5])
for align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
    case(f"diag_part_several_{align}", lambda x, a=align: tf.linalg.diag_part(x, k=(-2, 3), padding_value=9.0, align=a), [None, 4, 5])
for t in I, L:
    case(f"diag_part_several_{t.name}", lambda x: tf.linalg.diag_part(x, k=(-1, 2), padding_value=7), spec([None, 4, 5], t))
case("diag_part_several_even", lambda x: tf.linalg.diag_part(x, k=(0, 1)), [None, 4, 5])
case("diag_part_several_below", lambda x: tf.linalg.diag_part(x, k=(-2, -1)), [None, 5, 3])
case("bincount", lambda x: tf.math.bincount(x, minlength=5, maxlength=5), spec([7], I), inputs=[np.int32([0, 1, 4, 4, 9, 2, 1])])
case("bincount_rows", lambda x: raw.DenseBincount(input=x, size=6, weights=tf.zeros([0], tf.float32)), spec([None, 7], I), inputs=[random.integers(0, 8, (3, 7)).astype(np.int32)])
case("bincount_present", lambda x: raw.DenseBincount(input=x, size=6, weights=tf.zeros([0], tf.float32), binary_output=True), spec([None, 7], I), inputs=[random.integers(0, 8, (3, 7)).astype(np.int32)])
case("bincount_weights", lambda x, w: raw.DenseBincount(input=x, size=6, weights=w), spec([None, 7], I), [None, 7], inputs=[random.integers(0, 8, (3, 7)).astype(np.int32), positive((3, 7))[0]])
for side in "left", "right":
    case(f"searchsorted_{side}", lambda x, s=side: tf.searchsorted(tf.constant([[0.0, 1.0, 1.0, 2.0]]), x, side=s), [1, 6], inputs=[np.float32([[-1, 0, 1, 1.5, 2, 3]])])
case("dynamic_stitch", lambda x, y: tf.dynamic_stitch([[0, 3], [1, 2, 0]], [x, y]), [2, 3], [3, 3])
case("dynamic_stitch_scalar", lambda x, y: tf.dynamic_stitch([0, [1, 2]], [x, y]), [3], [2, 3])
case("euclidean_norm", lambda x: tf.math.reduce_euclidean_norm(x, 1), [None, 3, 4])
case("bias_add_grad", lambda x: raw.BiasAddGrad(out_backprop=x), [None, 3, 4])
for n in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
    case(n, lambda x, i, s, n=n: getattr(raw, n)(data=x, indices=i, segment_ids=s), [5, 3], spec([None], I), spec([None], I), inputs=[value([5, 3], F), np.int32([0, 4, 4, 2]), np.int32([0, 0, 1, 3])])
case("segment_mean", lambda x, s: tf.math.segment_mean(x, s), [None, 3], spec([None], I), inputs=[value([4, 3], F), np.int32([0, 0, 2, 3])])
case("in_top_k", lambda t, x: tf.math.in_top_k(t, x, 2), spec([None], I), [None, 5], inputs=[np.int32([0, 4, 2]), value([3, 5], F)])
case("invert_permutation", tf.math.invert_permutation, spec([None], I), inputs=[np.int32([2, 0, 3, 1])])
case("shape_n", lambda x, y: dict(zip("ab", tf.shape_n([x, y]))), [None, 3], [None])
case("approx_top_k", lambda x: dict(zip("ab", tf.math.approx_max_k(x, 3))), [2, 20])
case("einsum_one", lambda x: tf.einsum("abc->ca", x), [None, 3, 4])
case("einsum_sums", lambda x: tf.einsum("abc->b", x), [None, 3, 4])

# ---- losses, functions of statistics, small matrices
case("cross_entropy", lambda x, y: dict(zip("ab", raw.SoftmaxCrossEntropyWithLogits(features=x * 5, labels=y))), [None, 6], [None, 6])
for t in I, L:
    case(f"sparse_cross_entropy_{t.name}", lambda x, y: dict(zip("ab", raw.SparseSoftmaxCrossEntropyWithLogits(features=x * 5, labels=y))), [None, 6], spec([None], t), inputs=[value([3, 6], F), np.array([5, 0, 2], t.as_numpy_dtype)])
for n, f in {"lgamma": tf.math.lgamma, "digamma": tf.math.digamma}.items():
    case(n, f, [None, 8], inputs=[np.float32([[0.1, 0.4999, 0.5, 1, 1.5, 2, 3.25, 10], [-0.3, -1.7, -2.5, 1e-3, 7, 50, 4.75, 20]])])
case("lgamma_poles", tf.math.lgamma, [4], inputs=[np.float32([0, -1, -2, np.inf])])
case("erfinv", tf.math.erfinv, [None, 9], inputs=[np.float32([[-1, -0.9999, -0.9, -0.3, 0, 1e-4, 0.5, 0.99, 1]])])
spd = random.normal(0, 1, (2, 4, 4))
spd = (spd @ spd.transpose(0, 2, 1) + 4 * np.eye(4)).astype(np.float32)
case("cholesky", tf.linalg.cholesky, [None, 4, 4], inputs=[spd])
for lower in True, False:
    for adjoint in True, False:
        case(f"triangular_solve_{lower}_{adjoint}", lambda a, b, w=lower, j=adjoint: tf.linalg.triangular_solve(a, b, lower=w, adjoint=j), [None, 4, 4], [None, 4, 3], inputs=[spd, value([2, 4, 3], F)])
for size in (1, 2, 3):
    case(f"matrix_inverse_{size}", tf.linalg.inv, [None, size, size], inputs=[spd[:, :size, :size]])
    case(f"matrix_inverse_adjoint_{size}", lambda x: tf.linalg.inv(x, adjoint=True), [None, size, size], inputs=[value([2, size, size], F)])
    case(f"determinant_{size}", tf.linalg.det, [None, size, size])
    case(f"log_determinant_{size}", lambda x: {"sign": tf.linalg.slogdet(x)[0], "log": tf.linalg.slogdet(x)[1]}, [None, size, size])
    case(f"tridiagonal_product_{size}", lambda a, b, c, x: raw.TridiagonalMatMul(superdiag=a, maindiag=b, subdiag=c, rhs=x), *[[None, 1, size]] * 3, [None, size, 2])
# The corners that the product does not reach.
unread = [value([2, 1, 4], F) for _ in range(3)]
unread[0][..., -1] = unread[2][..., 0] = np.nan
case("tridiagonal_product_unread", lambda a, b, c, x: raw.TridiagonalMatMul(superdiag=a, maindiag=b, subdiag=c, rhs=x), *[[2, 1, 4]] * 3, [2, 4, 3], inputs=[*unread, value([2, 4, 3], F)])
case("cross", tf.linalg.cross, [None, 3], [None, 3])
for n in "fft", "ifft":
    case(n, lambda x, y, f=getattr(tf.signal, n): (lambda z: {"a": tf.math.real(z), "b": tf.math.imag(z)})(f(tf.complex(x, y))), [None, 12], [None, 12])

# ---- parts
case("dynamic_partition", lambda x, p: dict(zip("abc", tf.dynamic_partition(x, p, 3))), [None, 2], spec([None], I), inputs=[value([5, 2], F), np.int32([2, 0, 2, 0, 2])])
case("dynamic_partition_matrix", lambda x, p: dict(zip("ab", tf.dynamic_partition(x, p, 2))), [2, 3, 2], spec([2, 3], I), inputs=[value([2, 3, 2], F), np.int32([[1, 0, 1], [0, 0, 1]])])
for t in F, I, L:
    case(f"unique_with_counts_{t.name}", lambda x: dict(zip("abc", tf.unique_with_counts(x))), spec([None], t), inputs=[np.array([4, 1, 4, 2, 1, 4], t.as_numpy_dtype)])
for n, f in {"max": tf.math.segment_max, "min": tf.math.segment_min, "prod": tf.math.segment_prod}.items():
    case(f"segment_{n}", f, [None, 3], spec([None], I), inputs=[value([4, 3], F), np.int32([0, 0, 2, 3])])
    case(f"segment_{n}_vector", f, spec([None], I), spec([None], L), inputs=[np.int32([-4, -7, 2, 3]), np.int64([0, 0, 2, 3])])
for adjoint in True, False:
    case(f"sparse_product_{adjoint}", lambda i, v, d, a=adjoint: tf.sparse.sparse_dense_matmul(tf.SparseTensor(i, v, [4, 4]), d, adjoint_a=a, adjoint_b=a), spec([None, 2], L), [None], [4, 4],
         inputs=[np.int64([[0, 1], [2, 3], [2, 0]]), np.float32([1, 2, 3]), value([4, 4], F)])
for reverse in True, False:
    case(f"nth_element_{reverse}", lambda x, r=reverse: raw.NthElement(input=x, n=2, reverse=r), [None, 6])
for reverse in True, False:
    for exclusive in True, False:
        case(f"cumprod_{reverse}_{exclusive}", lambda x, r=reverse, e=exclusive: tf.math.cumprod(x, 1, exclusive=e, reverse=r), [None, 7])
case("shift_left", tf.bitwise.left_shift, spec([4], I), spec([4], I), inputs=[np.int32([1, -3, 2**30, 7]), np.int32([0, 3, 2, 31])])
case("diagonal_of_vector", lambda x: raw.Diag(diagonal=x), [5])
case("text_of_class", lambda x: tf.strings.as_string(tf.argmax(x, 1)), [None, 12], inputs=[value([5, 12], F)])
case("text_of_class_wide", lambda x: tf.strings.as_string(tf.argmax(x, 1, output_type=I), width=4, fill="0"), [None, 12], inputs=[value([5, 12], F)])

# ---- images
for n, f in {"rgb_to_hsv": tf.image.rgb_to_hsv, "hsv_to_rgb": tf.image.hsv_to_rgb, "adjust_hue": lambda x: tf.image.adjust_hue(x, 0.3), "adjust_saturation": lambda x: tf.image.adjust_saturation(x, 1.7),
             "adjust_contrast": lambda x: tf.image.adjust_contrast(x, 1.7)}.items():
    case(n, lambda x, f=f: f(x), [None, 5, 6, 3], inputs=[random.uniform(0, 1, (2, 5, 6, 3)).astype(np.float32)])
for method in ("bicubic", "area", "lanczos3", "mitchellcubic", "gaussian"):
    case(f"resize_{method}", lambda x, m=method: tf.image.resize(x, [7, 4], m), [None, 5, 6, 3])
case("resize_antialias", lambda x: tf.image.resize(x, [3, 4], antialias=True), [None, 9, 8, 3])
for method in ("bilinear", "nearest"):
    case(f"crop_and_resize_{method}", lambda x, b, i, m=method: tf.image.crop_and_resize(x, b, i, [4, 3], m, 0.25), [None, 7, 8, 2], [None, 4], spec([None], I),
         inputs=[value([2, 7, 8, 2], F), np.float32([[0.1, 0.2, 0.8, 0.9], [0.9, 0.7, 0.2, 0.1], [-0.2, 0, 1.3, 1]]), np.int32([0, 1, 1])])
case("crop_to_one", lambda x, b, i: tf.image.crop_and_resize(x, b, i, [1, 1]), [None, 7, 8, 2], [None, 4], spec([None], I), inputs=[value([1, 7, 8, 2], F), np.float32([[0.1, 0.2, 0.8, 0.9]]), np.int32([0])])
for padding in "SAME", "VALID":
    case(f"extract_patches_{padding}", lambda x, p=padding: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 2, 1], [1, 1, 2, 1], p), [None, 7, 8, 2])
    case(f"extract_large_patches_{padding}", lambda x, p=padding: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 3, 1], p), [None, 7, 8, 400])

# ---- windows, boxes, and what is written at places
def parts(z):
    return {"a": tf.math.real(z), "b": tf.math.imag(z)}


for padding in "SAME", "VALID":
    for batched in False, True:
        case(f"max_pool_places_{padding}_{batched}", lambda x, p=padding, b=batched: dict(zip("ab", tf.nn.max_pool_with_argmax(x, [3, 2], 2, p, output_dtype=I if b else L, include_batch_in_index=b))), [2, 7, 8, 3])
    case(f"dilation_{padding}", lambda x, p=padding: tf.nn.dilation2d(x, tf.constant(np.linspace(-1, 1, 18).reshape(3, 2, 3), F), [1, 2, 1, 1], p, "NHWC", [1, 1, 2, 1]), [None, 7, 8, 3])
    case(f"erosion_{padding}", lambda x, f, p=padding: tf.nn.erosion2d(x, f, [1, 1, 1, 1], p, "NHWC", [1, 1, 1, 1]), [None, 7, 8, 3], [3, 3, 3])
case("max_pool_places_free", lambda x: dict(zip("ab", tf.nn.max_pool_with_argmax(x, 2, 2, "VALID"))), [None, 8, 8, 3])
case("max_pool_padded", lambda x: raw.MaxPool(input=x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 1, 1, 0, 0, 0]), [2, 8, 8, 3])
turns = np.float32([[1, 0, 0, 0, 1, 0, 0, 0], [0.7, -0.6, 2.5, 0.6, 0.8, -9, 0.01, -0.02], [-1, 0, 21, 0.3, -2, 30, 0, -0.25], [0.5, 0, -0.5, 0, 0.5, 0.5, 0, 0]])
for mode in ("CONSTANT", "NEAREST", "REFLECT", "WRAP"):
    for method in ("NEAREST", "BILINEAR"):
        turned = lambda x, t, m=mode, i=method: raw.ImageProjectiveTransformV3(images=x, transforms=t, output_shape=[6, 9], fill_value=0.3, interpolation=i, fill_mode=m)
        case(f"turned_{mode}_{method}", turned, [None, 5, 7, 2], [None, 8], inputs=[value([4, 5, 7, 2], F), turns])
        case(f"turned_alike_{mode}_{method}", turned, [3, 5, 7, 2], [1, 8], inputs=[value([3, 5, 7, 2], F), turns[1:2]])

# ---- products of int8, as layers that Keras quantized have them
for adjoint in True, False:
    whole = random.integers(-127, 128, (5, 40) if adjoint else (40, 5)).astype(np.int8)
    case(f"int8_product_{adjoint}", lambda x, w=whole, a=adjoint: raw.BatchMatMulV3(x=x, y=tf.constant(w), Tout=I, adj_y=a), spec([None, 3, 40], tf.int8), inputs=[random.integers(-127, 128, (2, 3, 40)).astype(np.int8)])
    case(f"int8_products_{adjoint}", lambda x, y, a=adjoint: raw.BatchMatMulV3(x=x, y=y, Tout=I, adj_y=a), spec([None, 3, 40], tf.int8), spec([2, *whole.shape], tf.int8), inputs=[random.integers(-127, 128, (2, 3, 40)).astype(np.int8), np.stack([whole, -whole])])

# ---- gradients
for n, (shape, f) in {"part": ([None, 5, 6], lambda x: x[:, 1:4, 2]), "steps": ([2, 7, 9], lambda x: x[1, ::3, 1:8:2]), "back": ([None, 7, 9], lambda x: x[:, ::-1, 6:0:-2]), "one": ([5], lambda x: x[-2]),
                      "new": ([4, None, 3], lambda x: x[1:, :, tf.newaxis, ..., :2]), "whole": ([None, 4], lambda x: x[:, :])}.items():
    case(f"slice_grad_{n}", lambda x, f=f: tf.gradients(tf.square(f(x)), x)[0], shape)
# Nothing of a dimension, which XNNPACK takes for all of it where it begins at 0.
case("slice_nothing", lambda x: tf.concat([x[:, :0], x, x[:, 2:2]], 1), [None, 4])
# Of free sizes, and from places that are computed.
for n, f in {"behind": lambda x, i: x[:, 1:], "before": lambda x, i: x[:, :-1], "last": lambda x, i: x[:, -2:, 1], "both": lambda x, i: x[..., 3:4], "place": lambda x, i: x[:, i[0]], "places": lambda x, i: x[i[0], :, i[1]]}.items():
    case(f"slice_grad_running_{n}", lambda x, i, f=f: tf.gradients(tf.square(f(x, i)), x)[0], [None, None, None], spec([2], I), inputs=[value([3, 4, 5], F), np.int32([2, -1])])
case("slice_grad_running_rank", lambda s, y: raw.StridedSliceGrad(shape=s, begin=[1], end=[0], strides=[1], dy=y, end_mask=1), spec([2], I), [None, None], inputs=[np.int32([5, 3]), value([4, 3], F)])
case("concat_grad", lambda x, y: dict(zip("ab", tf.gradients(tf.square(tf.concat([x, y, x], 1)), [x, y]))), [None, None, 3], [None, None, 3], inputs=[value([2, 3, 3], F), value([2, 5, 3], F)])
case("concat_offset", lambda a, b: dict(zip("abc", raw.ConcatOffset(concat_dim=-2, shape=[a, b, a]))), spec([3], I), spec([3], I), inputs=[np.int32([2, 3, 4]), np.int32([2, 7, 4])])
case("empty", lambda s: raw.Empty(shape=s, dtype=F, init=True), spec([2], I), inputs=[np.int32([2, 3])])
for padding in "SAME", "VALID":
    for n, size, stride in (("apart", [2, 2], [2, 2]), ("over", [3, 2], [2, 1]), ("gaps", [1, 2], [2, 3]), ("all", [7, 8], [7, 8])):
        window = {"ksize": [1, *size, 1], "strides": [1, *stride, 1], "padding": padding}
        for batch in (None, 2):
            case(f"avg_pool_grad_{n}_{padding}_{batch}", lambda x, w=window: tf.gradients(tf.square(raw.AvgPool(value=x, **w)), x)[0], [batch, 7, 8, 3])
            case(f"max_pool_grad_{n}_{padding}_{batch}", lambda x, w=window: tf.gradients(tf.square(raw.MaxPool(input=x, **w)), x)[0], [batch, 7, 8, 3])
    case(f"max_pool_grad_ties_{padding}", lambda x, p=padding: raw.MaxPoolGrad(orig_input=tf.round(x), orig_output=tf.nn.max_pool2d(tf.round(x), 3, 2, p), grad=tf.nn.max_pool2d(x, 3, 2, p), ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding=p), [None, 7, 8, 3])
    case(f"max_pool_grad_grad_{padding}", lambda x, g, p=padding: raw.MaxPoolGradGrad(orig_input=x, orig_output=tf.nn.max_pool2d(x, 3, 2, p), grad=g, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding=p), [None, 7, 8, 3], [None, 7, 8, 3])
    for step, spread in (1, 1), (2, 1), (1, 2):
        case(f"filter_grad_{padding}_{step}_{spread}", lambda x, p=padding, s=step, d=spread: (lambda f: tf.gradients(tf.square(tf.nn.conv2d(x, f, s, p, dilations=d)), f)[0])(tf.reshape(x[0, :3, :2, :1] * tf.constant(random.normal(0, 1, (1, 1, 12)), F), [3, 2, 3, 4])), [2, 7, 8, 3])
    case(f"filter_grad_{padding}_free", lambda x, y, p=padding: raw.Conv2DBackpropFilter(input=x, filter_sizes=[2, 2, 3, 4], out_backprop=y, strides=[1, 2, 2, 1], padding=p), [None, 8, 8, 3], [None, 4, 4, 4])
case("filter_grad_explicit", lambda x, y: raw.Conv2DBackpropFilter(input=x, filter_sizes=[3, 3, 3, 4], out_backprop=y, strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 2, 1, 0, 0]), [2, 7, 8, 3], [2, 4, 5, 4])
case("local_response_grad", lambda x: tf.gradients(tf.square(tf.nn.local_response_normalization(x, 2, 0.7, 0.3, 0.6)), x)[0], [None, 3, 4, 7])
for training in True, False:
    case(f"norm_grad_{training}", lambda g, x, t=training: dict(zip("abc", raw.FusedBatchNormGradV3(y_backprop=g, x=x, scale=tf.constant([1.0, 2, 0.5]), reserve_space_1=tf.constant([0.1, -0.2, 0.3]), reserve_space_2=tf.constant([1.0, 0.5, 2.0]), reserve_space_3=tf.zeros([0]), epsilon=1e-3, is_training=t))), [2, 4, 5, 3], [2, 4, 5, 3])
corner = random.uniform(0, 1, (2, 30, 4, 2))
corners = np.concatenate([corner, np.minimum(corner + random.uniform(0.1, 0.5, corner.shape), 1.2)], -1).astype(np.float32)
scores = (random.permutation(240).reshape(2, 30, 4) / 240).astype(np.float32)
for own in 1, 4:
    for pad, clip, each, total in ((False, True, 5, 12), (True, False, 3, 30), (False, False, 50, 200), (True, True, 50, 20)):
        case(f"combined_suppression_{own}_{pad}_{clip}_{each}_{total}", lambda x, s, p=pad, c=clip, e=each, t=total: dict(zip("abcd", tf.image.combined_non_max_suppression(x, s, e, t, 0.4, 0.2, p, c))),
             [2, 30, own, 4], [2, 30, 4], inputs=[corners[:, :, :own], scores])
case("combined_suppression_free", lambda x, s: dict(zip("abcd", tf.image.combined_non_max_suppression(x, s, 5, 10, 0.5, 0.6))), [1, None, 1, 4], [1, None, 4], inputs=[corners[:1, :, :1], scores[:1]])
infinite = np.float32([[np.inf, -np.inf, 0]] * 5)
apart, near = np.float32([[0, i, 1, i + 1] for i in (0, 2, 4, 6)]), np.float32([[0, i, 1, i + 1] for i in (0, 0.1, 4, 4.1)])
for n, boxes in {"all": apart, "few": near}.items():
    case(f"suppression_of_{n}", lambda b, s: tf.image.non_max_suppression(b, s, 3, 0.5), [4, 4], [4], inputs=[boxes, np.float32([0.9, 0.8, 0.7, 0.6])])
# An overlap of exactly the threshold drops nothing.
case("suppression_at_threshold", lambda b, s: tf.image.non_max_suppression_padded(b, s, 3, 0.5, pad_to_max_output_size=True)[0] + 0, [3, 4], [3], inputs=[np.float32([[0, 0, 1, 1], [0, 0, 1, 0.5], [0, 0, 1, 1]]), np.float32([0.9, 0.8, 0.7])])
for n in "TensorScatterMax", "TensorScatterMin":
    case(n, lambda x, u, n=n: getattr(raw, n)(tensor=x, indices=[[1], [3], [1]], updates=u), [5, 3], [3, 3])
    case(f"{n}_infinite", lambda x, i, u, n=n: getattr(raw, n)(tensor=x, indices=i, updates=u), [5, 3], spec([None, 2], I), [None], inputs=[infinite, np.int32([[0, 0], [0, 1], [4, 2], [4, 2]]), np.float32([1, 2, 3, -3])])
    case(f"{n}_int32", lambda x, i, u, n=n: getattr(raw, n)(tensor=x, indices=i, updates=u), spec([5], I), spec([2, 2, 1], I), spec([2, 2], I),
         inputs=[np.int32([1, 2, -2**31, 2**31 - 1, 5]), np.int32([[[0], [1]], [[1], [4]]]), np.int32([[7, 8], [9, -1]])])
case("scatter_sum", lambda x, u: raw.ScatterNdNonAliasingAdd(input=x, indices=[[1], [3], [1]], updates=u), [5, 3], [3, 3])
case("update_part", lambda x, u: raw.TensorStridedSliceUpdate(input=x, begin=[1, 0], end=[3, 2], strides=[1, 1], value=u), [5, 3], [2, 2])
case("update_row", lambda x, u: raw.TensorStridedSliceUpdate(input=x, begin=[-2, 0], end=[0, 0], strides=[1, 1], value=u, shrink_axis_mask=1, begin_mask=2, end_mask=2), [5, 3], [3])

# ---- steps of recurrent layers
cell_w, cell_b = random.normal(0, 0.5, (7, 16)).astype(np.float32), random.normal(0, 0.3, 16).astype(np.float32)
peeps = random.normal(0, 1, (3, 4)).astype(np.float32)
for peephole in False, True:
    def lstm(op, peephole=peephole, **more):
        return op(w=cell_w, wci=peeps[0], wcf=peeps[1], wco=peeps[2], b=cell_b, cell_clip=0.5, use_peephole=peephole, **more)
    case(f"lstm_cell_{peephole}", lambda x, c, h, f=lstm: dict(zip("abcdefg", f(raw.LSTMBlockCell, x=x, cs_prev=c, h_prev=h))), [None, 3], [None, 4], [None, 4])
    for op in raw.BlockLSTM, raw.BlockLSTMV2:
        n = f"{op.__name__}_{peephole}"
        case(f"{n}_outputs", lambda x, f=lstm, op=op: f(op, seq_len_max=np.int64(5), x=x, cs_prev=tf.zeros([2, 4]), h_prev=tf.zeros([2, 4])).h, [5, 2, 3])
        case(f"{n}_all", lambda x, c, h, f=lstm, op=op: dict(zip("abcdefg", f(op, seq_len_max=np.int64(5), x=x, cs_prev=c, h_prev=h))), [5, 2, 3], [None, 4], [None, 4], inputs=[value([5, 2, 3], F), value([2, 4], F), value([2, 4], F)])
        case(f"{n}_part", lambda x, c, h, f=lstm, op=op: f(op, seq_len_max=np.int64(3), x=x, cs_prev=c, h_prev=h).h, [5, 2, 3], [2, 4], [2, 4])
case("gru_cell", lambda x, h: dict(zip("abcd", raw.GRUBlockCell(x=x, h_prev=h, w_ru=cell_w[:, :8], w_c=cell_w[:, 8:12], b_ru=cell_b[:8], b_c=cell_b[8:12]))), [None, 3], [None, 4])

# ---- places and sizes
case("unravel_index", lambda x: tf.unravel_index(tf.argmax(tf.reshape(x, [-1, 24]), 1, tf.int32), [2, 3, 4]), [3, 2, 3, 4])
case("unravel_index_of_int64", lambda x: tf.unravel_index(tf.argmax(tf.reshape(x, [24])), tf.constant([4, 6], tf.int64)), [2, 3, 4])
case("unravel_index_of_one", lambda x: tf.unravel_index(tf.argmax(x, output_type=tf.int32), [7]), [7])
case("size_int64", lambda x: tf.size(x, tf.int64), [None, 4])
case("equal_scalar_rank", lambda x: tf.matmul(tf.where(x == 0.0, 1.0, x)[:, None], tf.ones([4, 2])), [None, 4])
case("equal_free_rank", lambda x: tf.matmul(tf.cast(x[:, 1:] == x[:, :-1], tf.float32)[:, None], tf.ones([3, 2])), [None, None], inputs=[value([3, 4], tf.float32)])



# ---- parts of variables that are read and written
class Written(tf.Module):
    def __init__(self, by):
        self.v, self.by = tf.Variable(np.arange(15, dtype=np.float32).reshape(5, 3)), by

    def __call__(self, ids, values):
        self.by(self.v, ids, values)
        return {"all": self.v.read_value(), "rows": self.v.sparse_read(ids), "places": self.v.gather_nd([[0, 1], [4, 2]])}


for n in ("update", "add", "sub", "max", "min"):
    case(f"variable_scatter_{n}", Written(lambda v, i, x, n=n: getattr(v, "scatter_" + n)(tf.IndexedSlices(x, i))), spec([None], I), [None, 3], inputs=[np.int32([3, 1]), value([2, 3], F)])
for n in ("update", "add", "sub", "max", "min"):
    case(f"variable_scatter_nd_{n}", Written(lambda v, i, x, n=n: getattr(v, "scatter_nd_" + n)(tf.stack([i, i], 1), x[:, 0])), spec([None], I), [None, 3], inputs=[np.int32([2, 1]), value([2, 3], F)])
case("variable_row", Written(lambda v, i, x: v[i[0]].assign(x[0])), spec([None], I), [None, 3], inputs=[np.int32([3]), value([1, 3], F)])
case("variable_row_from_the_end", Written(lambda v, i, x: v[i[0] - 4].assign(x[0])), spec([None], I), [None, 3], inputs=[np.int32([3]), value([1, 3], F)])
case("variable_place", Written(lambda v, i, x: v[i[0], i[1]].assign(x[0, 0])), spec([None], I), [None, 3], inputs=[np.int32([3, 1]), value([1, 3], F)])
case("variable_part", Written(lambda v, i, x: v[1:3, :2].assign(tf.ones([2, 2]) * x[0, 0])), spec([None], I), [None, 3], inputs=[np.int32([3]), value([1, 3], F)])
# A range whose place is computed: clamped to the variable, nothing where it has another size, and from the end.
for at in 0, 3, 5, 9, -1, -2, -5, -9:
    shape, ids = (spec([None], I), [2, 3]), dict(inputs=[np.int32([2]), value([2, 3], F)])
    case(f"variable_range_of_one_at_{at}", Written(lambda v, i, x, d=at - 2: v[i[0] + d:i[0] + d + 1].assign(x[:1])), *shape, **ids)
    case(f"variable_range_of_two_at_{at}", Written(lambda v, i, x, d=at - 2: v[i[0] + d:i[0] + d + 2, 1:].assign(x[:, 1:])), *shape, **ids)
case("variable_range_up_to", Written(lambda v, i, x: v[i[0] - 1:i[0]].assign(x[:1])), spec([None], I), [2, 3], inputs=[np.int32([3]), value([2, 3], F)])
for at in 0, 2, -1:
    case(f"variable_column_at_{at}", Written(lambda v, i, x: v[:, i[0] - 1].assign(x[0])), spec([None], I), [2, 5], inputs=[np.int32([at + 1]), value([2, 5], F)])
case("variable_range_to_the_end", Written(lambda v, i, x: v[i[0] + 1:].assign(x)), spec([None], I), [2, 3], inputs=[np.int32([2]), value([2, 3], F)])
case("variable_range_from_the_begin", Written(lambda v, i, x: v[:i[0] - 5].assign(x)), spec([None], I), [2, 3], inputs=[np.int32([2]), value([2, 3], F)])
case("concat_nothing", lambda x, y: {"y": tf.concat([x, y], 0)}, [0, 3], [2, 3])

# ---- complex numbers
for n in "fft2d", "ifft2d", "fft3d", "ifft3d":
    case(n, lambda x, y, f=getattr(tf.signal, n): parts(f(tf.complex(x, y))), [2, 4, 6, 5], [2, 4, 6, 5])
case("fft2d_free", lambda x, y: parts(tf.signal.fft2d(tf.complex(x, y))), [None, 6, 5], [None, 6, 5])
for n, shape, size in (("fft2d", [None, None, 5], [2, 7, 5]), ("ifft2d", [None, None, None], [2, 6, 4]), ("fft", [None, None], [3, 9]), ("ifft", [2, None], [2, 5])):
    case(f"{n}_open", lambda x, y, f=getattr(tf.signal, n): parts(f(tf.complex(x, y))), shape, shape, inputs=[value(size, F), value(size, F)])
case("rfft2d", lambda x: parts(tf.signal.rfft2d(x)), [2, 12, 10])
case("rfft2d_of_others", lambda x: parts(tf.signal.rfft2d(x, [15, 9])), [12, 10])
case("rfft3d", lambda x: parts(tf.signal.rfft3d(x)), [2, 4, 6, 5])
case("irfft2d", lambda x, y: tf.signal.irfft2d(tf.complex(x, y), [6, 12]), [2, 6, 7], [2, 6, 7])
case("irfft3d", lambda x, y: tf.signal.irfft3d(tf.complex(x, y), [4, 6, 10]), [2, 4, 6, 6], [2, 4, 6, 6])
case("complex_product", lambda x, y: parts(tf.signal.rfft(x) * tf.signal.rfft(y)), [3, 16], [3, 16])
case("complex_product_real", lambda x, y: parts(tf.cast(y, tf.complex64) * tf.signal.rfft(x)), [3, 16], [3, 9])
case("complex_product_constant", lambda x: parts(tf.constant(2 + 3j, tf.complex64) * tf.signal.rfft(x)), [3, 16])
case("complex_cast", lambda x: tf.abs(tf.cast(x, tf.complex64)), [3, 16])
case("complex_quotient", lambda x, y: parts(tf.signal.rfft(x) / (tf.signal.rfft(y) + 5.0)), [3, 16], [3, 16])
case("complex_quotient_real", lambda x, y: parts(tf.signal.rfft(x) / tf.cast(y, tf.complex64)), [3, 16], [3, 9], inputs=[value([3, 16], tf.float32), *positive((3, 9))])
case("complex_square", lambda x: parts(tf.square(tf.signal.rfft(x))), [3, 16])
case("complex_pad", lambda x: parts(tf.pad(tf.signal.rfft(x), [[0, 0], [1, 2]])), [3, 16])
case("complex_roll", lambda x: parts(tf.signal.fftshift(tf.signal.rfft(x), 1)), [3, 16])
case("complex_einsum", lambda x, y: parts(tf.einsum("bix,iox->box", tf.signal.rfft(x), tf.complex(y, y * 0.5))), [2, 3, 8], [3, 4, 5])
case("complex_matmul", lambda x, y: parts(tf.matmul(tf.complex(x, x * 0.5), tf.complex(y, -y))), [3, 4], [4, 2])
case("complex_matmul_adjoint", lambda x, y: parts(tf.matmul(tf.complex(x, x * 0.5)[None], tf.complex(y, -y)[None], transpose_b=True)), [3, 4], [2, 4])
case("filtered", lambda x, y: tf.signal.irfft(tf.signal.rfft(x) * tf.signal.rfft(y), [16]), [3, 16], [3, 16])

# ---- numbers
for mode in "MIN_COMBINED", "MIN_FIRST", "SCALED":
    for t in tf.quint8, tf.qint8, tf.qint16, tf.quint16:
        def there_and_back(x, mode=mode, t=t):
            q, low, high = raw.QuantizeV2(input=x, min_range=0.0 if mode == "SCALED" and t in (tf.quint8, tf.quint16) else -1.3, max_range=2.0, T=t, mode=mode)
            return raw.Dequantize(input=q, min_range=low, max_range=high, mode=mode)
        if (mode, t) != ("MIN_FIRST", tf.quint8):  # its kernel rounds otherwise on some processors
            case(f"quantize_{mode}_{t.name}", there_and_back, [None, 40])
edges = np.float32(list(np.arange(-3, 14) * 0.1) + [0.7, 0.3, 0.05])
case("histogram", lambda x: tf.histogram_fixed_width(x, [0.0, 1.0], 10), [None], inputs=[edges])
case("histogram_int32", lambda x: tf.histogram_fixed_width(x, [0, 10], 7), spec([None], I))
case("histogram_int64", lambda x: raw.HistogramFixedWidth(values=x, value_range=[-1.0, 3.0], nbins=100, dtype=L), [3, 40])
case("ndtri", tf.math.ndtri, [None], inputs=[np.float32([0, 1, 0.5, 0.1, 0.9, 1e-6, 0.999999, 0.3])])
case("linspace", lambda a, b: raw.LinSpace(start=a, stop=b, num=7), [], [])
case("format_order", lambda x: raw.DataFormatVecPermute(x=x, src_format="NHWC", dst_format="NCHW"), spec([4], I))
case("format_order_pairs", lambda x: raw.DataFormatVecPermute(x=x, src_format="NCHW", dst_format="NHWC"), spec([4, 2], I))
case("format_order_sides", lambda x: raw.DataFormatVecPermute(x=x, src_format="NHWC", dst_format="NCHW"), spec([2], I))
case("format_axis", lambda x: raw.DataFormatDimMap(x=x, src_format="NHWC", dst_format="NCHW"), spec([8], I), inputs=[np.int32([0, 1, 2, 3, -1, -2, -3, -4])])
case("conjugate_transpose", lambda x: raw.ConjugateTranspose(x=x, perm=[1, 0]), [None, 3])
for n in "Sum", "Mean", "SqrtN":
    case(f"SparseSegment{n}WithNumSegments", lambda x, i, s, n=n: getattr(raw, f"SparseSegment{n}WithNumSegments")(data=x, indices=i, segment_ids=s, num_segments=6), [5, 3], spec([None], I), spec([None], I),
         inputs=[value([5, 3], F), np.int32([0, 4, 4, 2]), np.int32([0, 0, 1, 3])])
for a in False, True:
    for b in False, True:
        case(f"matmul_{a}_{b}", lambda x, y, a=a, b=b: tf.matmul(x, y, transpose_a=a, transpose_b=b), [4, 3] if a else [None, 4], [5, 4] if b else [4, 5])
case("matmul_by_constant", lambda x: tf.matmul(cell_w, x), [16, 4])
case("matmul_sparse", lambda x, y: raw.SparseMatMul(a=x, b=y, a_is_sparse=True), [3, 4], [4, 5])
case("transposed_convolution_nchw", lambda x: raw.Conv2DBackpropInput(input_sizes=[1, 3, 8, 8], filter=np.arange(108, dtype=np.float32).reshape(3, 3, 3, 4) * 0.01, out_backprop=x, strides=[1, 1, 2, 2], padding="SAME", data_format="NCHW"), [1, 4, 4, 4])
case("random_uniform_truncated", lambda x: tf.random.truncated_normal(tf.shape(x)), [None, 3])
case("random_uniform_shuffled", lambda x: tf.random.shuffle(x), [None, 3])
for method in "bilinear", "nearest":
    case(f"crop_of_free_sizes_{method}", lambda x, b, i, m=method: tf.image.crop_and_resize(x, b, i, [4, 3], m, 0.25), [None, None, None, 2], [None, 4], spec([None], I),
         inputs=[value([2, 7, 8, 2], F), np.float32([[0.1, 0.2, 0.8, 0.9], [0.9, 0.7, 0.2, 0.1], [-0.2, 0, 1.3, 1]]), np.int32([0, 1, 1])])

# ---- rows of their own lengths, sparse tensors, places that are computed: "computed_..."
P = lambda *v, t=np.int32: np.array(v, t)
S = tf.string
SPLITS = P(0, 3, 3, 4, 8, t=np.int64)


def dense_of(x, s, rows=None, default=-1.0, shape=None):
    return tf.RaggedTensor.from_row_splits(x, s).to_tensor(default, shape=shape)


case("computed_ragged_dense", dense_of, [None], spec([None], L), inputs=[value([8], F), SPLITS])
case("computed_ragged_dense_rows", dense_of, [None, 3], spec([None], L), inputs=[value([8, 3], F), SPLITS])
case("computed_ragged_dense_free", dense_of, [None, None], spec([None], L), inputs=[value([8, 3], F), SPLITS])
case("computed_ragged_dense_shape", lambda x, s: dense_of(x, s, shape=[None, 2]), [None], spec([None], L), inputs=[value([8], F), SPLITS])
case("computed_ragged_dense_wide", lambda x, s: dense_of(x, s, default=7, shape=[None, 6]), spec([None], I), spec([None], L), inputs=[value([8], I), SPLITS])
case("computed_ragged_dense_nothing", dense_of, [None], spec([None], L), inputs=[np.zeros(0, np.float32), P(0, 0, 0, t=np.int64)])
case("computed_ragged_dense_rowids", lambda x, r: tf.RaggedTensor.from_value_rowids(x, r, nrows=5).to_tensor(), [None], spec([None], L), inputs=[value([4], F), P(0, 0, 2, 3, t=np.int64)])
case("computed_ragged_dense_twice", lambda x, a, b: tf.RaggedTensor.from_nested_row_splits(x, [a, b]).to_tensor(-1.0), [None, 2], spec([None], L), spec([None], L),
     inputs=[value([8, 2], F), P(0, 2, 2, 4, t=np.int64), SPLITS])
case("computed_ragged_gather", lambda x, s, i: (lambda r: {"v": r.values, "s": r.row_splits})(tf.gather(tf.RaggedTensor.from_row_splits(x, s), i)), [None, 2], spec([None], L), spec([None], I),
     inputs=[value([8, 2], F), SPLITS, P(3, 1, 0, 3)])
case("computed_ragged_gather_nothing", lambda x, s, i: (lambda r: {"v": r.values, "s": r.row_splits})(tf.gather(tf.RaggedTensor.from_row_splits(x, s), i)), [None], spec([None], L), spec([None], I),
     inputs=[value([8], F), SPLITS, P(1, 1)])
case("computed_ragged_gather_twice", lambda x, a, b, i: tf.gather(tf.RaggedTensor.from_nested_row_splits(x, [a, b]), i).flat_values, [None], spec([None], L), spec([None], L), spec([None], I),
     inputs=[value([8], F), P(0, 2, 2, 4, t=np.int64), SPLITS, P(2, 0)])
for t in (I, L):
    case(f"computed_ragged_range_{t.name}", lambda a, b: (lambda r: {"v": r.values, "s": r.row_splits})(tf.ragged.range(a, b)), spec([None], t), spec([None], t), inputs=[P(3, 5, 0, t=t.as_numpy_dtype), P(5, 2, 4, t=t.as_numpy_dtype)])
case("computed_ragged_range_first", lambda b: tf.ragged.range(b).values, spec([None], I), inputs=[P(3, 0, 2)])
case("computed_ragged_concat", lambda x, s: dense_of(tf.concat([tf.RaggedTensor.from_row_splits(x, s)] * 2, 1).values, s * 2), [None], spec([None], L), inputs=[value([8], F), SPLITS])

SPARSE = P([2, 1], [0, 3], [0, 1], [3, 0], t=np.int64)
sparse_spec = (spec([None, 2], L), spec([None], F), spec([2], L))
sparse_values = [SPARSE, value([4], F), P(5, 6, t=np.int64)]
sparse_parts = lambda s: {"i": s.indices, "v": s.values, "n": s.dense_shape}
sparse_of = lambda *a: tf.SparseTensor(*a)
case("computed_sparse_reorder", lambda *a: sparse_parts(tf.sparse.reorder(sparse_of(*a))), *sparse_spec, inputs=sparse_values)
for name, shape in {"row": [-1], "inferred": [3, -1], "three": [5, 2, 3], "same": [5, 6]}.items():
    case(f"computed_sparse_reshape_{name}", lambda *a, s=shape: sparse_parts(tf.sparse.reshape(sparse_of(*a), s)), *sparse_spec, inputs=sparse_values)
case("computed_sparse_reshape_given", lambda i, v, n, s: sparse_parts(tf.sparse.reshape(sparse_of(i, v, n), s)), *sparse_spec, spec([3], L), inputs=[*sparse_values, P(2, -1, 5, t=np.int64)])
case("computed_sparse_reshape_large", lambda i, v, n: sparse_parts(tf.sparse.reshape(sparse_of(i, v, n), [-1, 1000])), *sparse_spec, inputs=[P([3, 7], [2, 2**39 + 1], t=np.int64), value([2], F), P(4, 2**40 * 1000, t=np.int64)])
case("computed_sparse_fill", lambda *a: (lambda f: sparse_parts(f[0]) | {"e": f[1]})(tf.sparse.fill_empty_rows(sparse_of(*a), 9.0)), *sparse_spec, inputs=sparse_values)
case("computed_sparse_fill_places", lambda i, v, n: raw.SparseFillEmptyRows(indices=i, values=v, dense_shape=n, default_value=5)[3], spec([None, 2], L), spec([None], I), spec([2], L), inputs=[SPARSE, value([4], I), P(5, 6, t=np.int64)])
for axis in (0, 1, None):
    for keep in (False, True):
        case(f"computed_sparse_sum_{axis}_{keep}", lambda *a, axis=axis, keep=keep: tf.sparse.reduce_sum(sparse_of(*a), axis, keep), *sparse_spec, inputs=sparse_values)
case("computed_sparse_embedding", lambda e, *a: tf.nn.safe_embedding_lookup_sparse(e, tf.SparseTensor(a[0], tf.cast(a[1] > 0, L), a[2]), combiner="mean"), [7, 3], *sparse_spec, inputs=[value([7, 3], F), *sparse_values])

for depth, at in {1: P([4], [1], [4], [0]), 2: P([4, 0], [1, 1], [4, 0], [0, 2])}.items():
    for free in (False, True):
        case(f"computed_update_last_{depth}_{free}", lambda x, i, u: tf.tensor_scatter_nd_update(x, i, u), [None if free else 5, 3, 2], spec([None, depth], I), [None, *[3, 2][depth - 1:]],
             inputs=[value([5, 3, 2], F), at, value([4, 3, 2][:1] + [3, 2][depth - 1:], F)])
case("computed_update_last_inner_free", lambda x, i, u: tf.tensor_scatter_nd_update(x, i, u), [None, None, None], spec([None, 1], L), [None, None, None], inputs=[value([5, 3, 2], F), P([4], [1], [4], t=np.int64), value([3, 3, 2], F)])
case("computed_update_once", lambda x, i, u: tf.tensor_scatter_nd_update(x, i, u), spec([5], I), spec([2, 1], I), spec([2], I), inputs=[P(1, 2, 3, 4, 5), P([1], [3]), P(7, 8)])
case("computed_update_nothing", lambda x, i, u: tf.tensor_scatter_nd_update(x, i, u), [5, 3], spec([None, 1], I), [None, 3], inputs=[value([5, 3], F), np.zeros((0, 1), np.int32), np.zeros((0, 3), np.float32)])
case("computed_update_where", lambda x: tf.tensor_scatter_nd_update(x, tf.where(x > 0), tf.boolean_mask(x, x > 0) * 2), [None, 4])
case("computed_stitch", lambda a, b, x, y: tf.dynamic_stitch([a, b], [x, y]), spec([None], I), spec([None], I), [None, 2], [None, 2], inputs=[P(3, 0), P(1, 2, 3), value([2, 2], F), value([3, 2], F)])
case("computed_stitch_partition", lambda x, k: tf.dynamic_stitch(tf.dynamic_partition(tf.range(tf.size(k)), k, 2), [p * s for p, s in zip(tf.dynamic_partition(x, k, 2), (2.0, 3.0))]), [None, 2], spec([None], I),
     inputs=[value([5, 2], F), P(0, 1, 1, 0, 1)])
case("computed_bincount_size", lambda k, n: tf.math.bincount(k, minlength=n, maxlength=n), spec([None], I), spec([], I), inputs=[P(0, 3, 1, 1), np.int32(5)])

BIG = P(0, 7, -7, 8, 2**40 + 13, -(2**62) - 5, 2**63 - 1, -(2**63), 10**18 + 7, t=np.int64)
for d in (1, 3, 7, -7, 3600, 2**31 + 11, 2**61 - 1, 10**18):
    case(f"computed_quotient_{d}", lambda x, d=d: x // d, spec([None], L), inputs=[BIG])
case("computed_quotient_of_two", lambda x, y: x // y, spec([None], L), spec([None], L), inputs=[BIG, P(3, -2, 5, 8, 2**20, -3, 2**40, 2, -(10**9), t=np.int64)])
case("computed_difference", lambda x, y: dict(zip("vi", raw.ListDiff(x=x, y=y))), spec([None], I), spec([None], I), inputs=[P(3, 1, 4, 1, 5, 3), P(1, 9)])
for exclusive in (False, True):
    for reverse in (False, True):
        case(f"computed_logsum_{exclusive}_{reverse}", lambda x, e=exclusive, r=reverse: tf.maximum(tf.math.cumulative_logsumexp(x * 20, 1, exclusive=e, reverse=r), -1e3), [None, 5, 2])
for padding in ("SAME", "VALID"):
    for k in (2, 3):
        case(f"computed_pool_int_{padding}_{k}", lambda x, p=padding, k=k: raw.MaxPool(input=x, ksize=[1, k, k, 1], strides=[1, 2, 2, 1], padding=p), spec([1, 7, 6, 2], I))
    case(f"computed_pool_int_free_{padding}", lambda x, p=padding: raw.MaxPool(input=x, ksize=[1, 2, 1, 1], strides=[1, 2, 1, 1], padding=p), spec([None, None, None, 2], I), inputs=[value([2, 7, 3, 2], I)])
case("computed_solve", lambda a, b: tf.linalg.solve(a, b), [None, 3, 3], [None, 3, 2], inputs=[value([2, 3, 3], F) + 3 * np.eye(3, dtype=np.float32), value([2, 3, 2], F)])
case("computed_solve_adjoint", lambda a, b: tf.linalg.solve(a, b, adjoint=True), [2, 2], [2, 1], inputs=[value([2, 2], F) + 2 * np.eye(2, dtype=np.float32), value([2, 1], F)])
NAMES = np.array(["ant", "bee", "cat", "dog"])
case("computed_texts", lambda x: tf.where(x > 0, tf.gather(NAMES, tf.argmax(x, 1))[:, None], "none"), [None, 4])
case("computed_texts_of_two", lambda c, i: tf.where(c, tf.gather(NAMES, i), tf.gather(NAMES[::-1].copy(), i)), spec([None], B), spec([None], I), inputs=[np.array([True, False, True]), P(3, 3, 0)])
case("computed_double_table", lambda i: tf.cast(tf.gather(np.linspace(0, 1, 30).reshape(10, 3), i)[:, :2], F), spec([None], I), inputs=[P(1, 9, 4)])
case("computed_dct_ortho", lambda x: tf.signal.dct(x, 2, norm="ortho"), [None, 40])
case("computed_mfcc", lambda x: tf.signal.mfccs_from_log_mel_spectrograms(x), [None, 4, 40])
case("computed_complex_moved", lambda x: tf.math.real(tf.transpose(tf.reshape(tf.signal.rfft(x), [-1, 7, 3]), [0, 2, 1])[:, 1:, ::2]), [2, 40])
case("computed_einsum_free", lambda x: tf.einsum("td,dnh->tnh", x, np.arange(24, dtype=np.float32).reshape(4, 2, 3)), [None, None], inputs=[value([5, 4], F)])
case("computed_einsum_rank", lambda x, c: tf.einsum("td,dnh->tnh", tf.cond(c, lambda: x * 2, lambda: x[0]), np.arange(24, dtype=np.float32).reshape(4, 2, 3)), [None, None], spec([], B), inputs=[value([5, 4], F), np.bool_(True)])

# ---- control flow
case("case_four", lambda i, x: tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: x + 1, lambda: -x]), spec([], I), [3], inputs=[np.int32(2), value([3], F)])
case("case_beyond", lambda i, x: tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: x + 1, lambda: -x]), spec([], I), [3], inputs=[np.int32(7), value([3], F)])


def grows(write):
    def function(x):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[3])
        return write(array, x)
    return function


case("loop_over_nothing", lambda x: tf.map_fn(lambda v: v * 2 + 1, x), [None, 3], inputs=[np.zeros((0, 3), np.float32)])
case("loop_over_rows", lambda x: tf.map_fn(lambda v: tf.reduce_sum(v) * v, x), [None, 3])
case("array_grows", grows(lambda a, x: tf.while_loop(lambda i, _: i < 4, lambda i, a: (i + 1, a.write(i, x[i])), [0, a])[1].stack()), [6, 3])
case("array_grows_by_two", grows(lambda a, x: tf.while_loop(lambda i, _: i < 4, lambda i, a: (i + 1, a.write(2 * i + 1, x[i])), [0, a])[1].stack()), [6, 3])
case("array_grows_unrolled", grows(lambda a, x: a.write(0, x[0]).write(3, x[1]).write(1, x[2]).stack()), [6, 3])
case("array_concat", grows(lambda a, x: tf.concat([a.write(0, x[0]).write(1, x[1]).stack(), x], 0)), [6, 3])
def growing(x):
    """As many elements as turns, in a list that starts empty."""
    def turn(i, v, out):
        return i + 1, v * 0.5, out.write(i, v)
    return tf.while_loop(lambda i, v, _: tf.logical_and(i < 6, tf.reduce_max(v) > 0.1), turn, (0, x, tf.TensorArray(F, 0, dynamic_size=True)))[2].stack()


# ---- sizes and branches that are known, of shapes that are free beside
case("free_sizes_known", lambda x: x * tf.cast(tf.range(tf.shape(x)[1]), F)[:, None] / tf.cast(tf.shape(x)[2], F), [None, 4, 3])
case("free_sizes_branch", lambda x: tf.cond(tf.equal(tf.shape(x)[1], 4), lambda: tf.reverse(x, [1]), lambda: x + 1), [None, 4])
case("free_sizes_band", lambda x: tf.linalg.band_part(x, 1, -1), [None, None, None], inputs=[value([2, 4, 5], F)])
case("free_sizes_band_both", lambda x: tf.linalg.band_part(x, 0, 1), [None, None], inputs=[value([4, 4], F)])
case("free_sizes_einsum_column", lambda x, y: tf.einsum("bsd,d->bs", x, y), [None, 3, 4], [4])
case("free_sizes_einsum_two", lambda x, y: tf.einsum("abcd,cde->abe", x, y), [None, 3, 2, 4], [2, 4, 5])
case("free_sizes_einsum_heads", lambda x, y: tf.einsum("bqhk,hkd->bqd", x, y), [None, None, 2, 3], [2, 3, 4], inputs=[value([2, 5, 2, 3], F), value([2, 3, 4], F)])
case("free_sizes_list_grows", growing, [None], inputs=[np.float32([1, 0.5])])
case("free_sizes_loop", lambda x: tf.while_loop(lambda v: tf.reduce_max(tf.abs(v)) > 0.1, lambda v: (v * 0.5,), (x,))[0], [None, 3])
case("free_sizes_loss", lambda x, y: tf.nn.softmax_cross_entropy_with_logits(y, x), [3, 5], [3, 5])
case("free_sizes_loss_sparse", lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x), [3, 5], spec([3], I), inputs=[value([3, 5], F), np.int32([0, 4, 2])])


def save(function, specs, folder):
    module = function if isinstance(function, tf.Module) else tf.Module()

    def named(*args):
        out = function(*args)
        return out if isinstance(out, dict) else {"y": out}
    module.f = tf.function(named, autograph=False, input_signature=[tf.TensorSpec(s, t, name=f"x{i}") for i, (s, t) in enumerate(specs)])
    tf.saved_model.save(module, folder, signatures=module.f.get_concrete_function())
    return module


def main():
    jobs, facts = [], []
    work = tempfile.mkdtemp(prefix="smelt_lite_ops_")
    for number, (name, function, specs, inputs, options) in enumerate(CASES):
        if only not in name or options or (number < num_theirs and not with_tensorflow):
            continue
        inputs = {f"x{i}": np.asarray(v) for i, v in enumerate(inputs or [value(s, t) for s, t in specs])}
        folder = os.path.join(work, str(number))
        try:
            module = save(function, specs, folder)
        except (AttributeError, TypeError, ValueError) as e:  # this TensorFlow has no such op
            print(f"not made: {name}: {reason(str(e))}")
            continue
        said = {}
        code, text = call("lite", folder, folder + ".smelt")
        said["smelt"] = "" if code == 0 else text.strip()
        said["tensorflow"] = "" if with_tensorflow else "not asked"
        try:
            data = with_tensorflow and tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module).convert()
            if data:
                open(folder + ".tensorflow", "wb").write(data)
        except Exception as e:  # the converter has many kinds
            said["tensorflow"] = reason(f"{type(e).__name__}: {e}")
        for who in said:
            jobs.append((folder + "." + who, [("serving_default", inputs)]) if not said[who] else (folder, []))
        want = {k: v.numpy() for k, v in module.f(*[tf.constant(v) for v in inputs.values()]).items()}
        facts.append((name, folder, said, want))
    answers = iter(litert_answers([j for j in jobs if j[1]]))
    refused = []
    for name, folder, said, want in facts:
        unlike = list(want) if any(d in name for d in DRAWN) else ()
        why = {who: said[who] or difference(next(answers)[0], want, 2e-3 if "half" in name or "float16" in name else 1e-4, unlike) for who in ("smelt", "tensorflow")}
        if why["smelt"] and said["smelt"] and why["tensorflow"]:
            refused.append(f"{name}: {why['smelt'][:300]}")
            continue
        check(name, not why["smelt"], f"{why['smelt'][-600:]} (TensorFlow's: {why['tensorflow'] or 'right'})")
        if why["smelt"] or why["tensorflow"]:
            continue
        ours, others = (operators(open(f"{folder}.{who}", "rb").read()) for who in ("smelt", "tensorflow"))
        check(f"{name}: operators", name in MORE or sum(map(len, ours)) <= sum(map(len, others)), f"{ours}, TensorFlow's {others}")
    for r in refused:
        print("refused:", r)
    check("few are refused", bool(only) or len(refused) < 12, len(refused))
    finish()


if __name__ == "__main__":
    main()
