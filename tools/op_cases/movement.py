"""Shapes, transposes, concatenation, splitting, slicing. The helpers serve the other movement families."""

from op_cases import *
import itertools


def vec(*values):
    return np.array(values, np.int32)


def vec64(*values):
    return np.array(values, np.int64)


def arr(values, t=np.int32):
    return np.array(values, t)


def count(*shape, dt=np.float32):
    """0, 1, 2, ... of any numpy type."""
    return np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape).astype(dt)


def words(*shape):
    return np.array([b"s%d" % i for i in range(int(np.prod(shape)))], dtype=object).reshape(shape)


F32 = np.float32
HALF = np.float16
BF16 = np_type("bfloat16").type
NO_INTS = np.zeros((0,), np.int32)


def strided(x, begin, end, strides, dt=np.int32, error=None, **attrs):
    return case("StridedSlice", x, arr(begin, dt), arr(end, dt), arr(strides, dt), error=error, **attrs)


def strided_grad(shape, begin, end, strides, dy, error=None, **attrs):
    return case("StridedSliceGrad", arr(shape), arr(begin), arr(end), arr(strides), dy, error=error, **attrs)


def strided_update(x, begin, end, strides, value, error=None, **attrs):
    return case(
        "TensorStridedSliceUpdate", x, arr(begin), arr(end), arr(strides), value, error=error, **attrs
    )


def more(r):
    yield case("ConjugateTranspose", count(0, 2, dt=np.complex64), vec(1, 0), name="empty")
    yield case("ConjugateTranspose", count(dt=np.complex64), NO_INTS, name="scalar")
    yield case("ConjugateTranspose", count(1, 2, dt=np.complex64), vec(1, 2), error="")
    for shape in [(), (0, 1), (1, 1, 1)]:
        yield case("Squeeze", count(*shape), name="shape")
    for t in ["float", "double", "half", "bfloat16", "int8", "uint32", "complex64", "bool", "string"]:
        yield case("Concat", i32(1), [r.numbers(t, (2, n)) for n in (1, 0, 3)], name=t)
    yield case("Concat", i32(-1), [r.normal((2, 2, 1)), r.normal((2, 2, 2))], name="last")
    yield case("Concat", i32(2), [count(2, 2), count(2, 2)], error="")


def cases(r):
    yield case("Shape", count(2, 3))
    yield case("Shape", count(2, 3), out_type=np.int64)
    yield case("Shape", count())
    yield case("Shape", words(2))
    yield case("ShapeN", [count(2), count(3, 0)])
    yield case("ShapeN", [count(2), count(3, 0)], out_type=np.int64)
    yield case("Size", count(2, 3))
    yield case("Size", count(0, 3), out_type=np.int64)
    yield case("Rank", count(2, 3))
    yield case("Rank", count())
    for sh in [
        (3, 2),
        (6,),
        (-1,),
        (-1, 2),
        (2, -1, 3),
        (0, -1),
        (-1, -1),
        (4, -1),
        (5,),
        (-2, 3),
        (1, 6, 1),
    ]:
        yield case("Reshape", count(2, 3), vec(*sh))
        yield case("Reshape", count(2, 3), vec64(*sh))
    yield case("Reshape", count(1), NO_INTS)
    yield case("Reshape", count(), vec(1))
    yield case("Reshape", count(0, 3), vec(0, -1))
    yield case("Reshape", count(0, 3), vec(-1, 0))
    yield case("Reshape", count(0, 3), vec(-1))
    yield case("Reshape", count(0, 3), vec(-1, 5))
    yield case("Reshape", count(6), i32(6))
    yield case("Reshape", count(6), np.array([[6]], np.int32), error="sizes input must be 1-D, not [1,1]")
    yield case("Reshape", count(6), i32(-1))
    yield case("Reshape", count(0), vec(0, 0, -1))
    yield case("Reshape", count(4, 0), vec(2, -1, 0))
    yield case(
        "Reshape",
        count(6),
        vec64(1 << 40, 1 << 40),
        error="Shape [1099511627776, 1099511627776] has too many elements",
    )
    yield case(
        "Reshape",
        count(2, 3),
        NO_INTS,
        error="Input to reshape is a tensor with 6 values, but the requested shape has 1",
    )
    yield case("Reshape", words(2, 3), vec(3, 2))
    yield case("Reshape", count(0, 3), vec(-1, -1), error="Only one input size may be -1, not both 0 and 1")
    for d in [0, 1, 2, -1, -3, 3, -4]:
        yield case("ExpandDims", count(2, 3), i32(d))
    yield case("ExpandDims", count(2), vec(1))
    yield case("ExpandDims", count(2), vec64(0))
    yield case("ExpandDims", count(2), vec(0, 1), error="'dim' must be a tensor with a single value")
    yield case("ExpandDims", count(), i32(0))
    yield case("ExpandDims", count(), i32(-1))
    yield case("ExpandDims", count(2), np.array([[0]], np.int32))
    yield case("Squeeze", count(1, 2, 1))
    for a in [[0], [-1], [0, 2], [1], [3], [-4], [0, 0]]:
        yield case("Squeeze", count(1, 2, 1), squeeze_dims=a)
    yield case("EnsureShape", count(2, 3), shape=[2, None])
    yield case("EnsureShape", count(2, 3), shape=[2, 4], error="is not compatible with expected shape")
    yield case("EnsureShape", count(2, 3), shape=None)
    yield case("EnsureShape", count(2, 3), shape=[2], error="is not compatible with expected shape")
    yield case("BroadcastArgs", vec(2, 1), vec(1, 3))
    yield case("BroadcastArgs", vec(2, 1), vec(3))
    yield case("BroadcastArgs", vec64(2, 3), vec64(4, 3), error="Incompatible shapes: [2,3] vs. [4,3]")
    yield case("BroadcastArgs", NO_INTS, vec(2))
    yield case("BroadcastArgs", vec(0), vec(1))
    yield case("BroadcastArgs", i32(2), vec(1), error="In[0] must be a vector.[]")
    yield case("BroadcastArgs", vec(1), i32(2), error="In[1] must be a vector.[]")
    yield case("BroadcastArgs", vec(0), vec(2), error="Incompatible shapes: [0] vs. [2]")
    for a, b in [
        ((2, 1), (1, 3)),
        ((2, 3), (3,)),
        ((2, 3), (2, 3)),
        ((1, 2), (1, 2)),
        ((1,), (2, 3)),
        ((1, 1), (1,)),
        ((), (2,)),
        ((2,), (3,)),
        ((), ()),
        ((1, 2), (2,)),
        ((4, 1, 3, 1), (1, 5, 1, 1)),
        ((0, 1), (1, 1)),
        ((1,), ()),
    ]:
        yield case("BroadcastGradientArgs", vec(*a), vec(*b))
    yield case("BroadcastGradientArgs", i32(1), vec(2), error="In[0] must be a vector.[]")
    yield case("BroadcastGradientArgs", vec64(2, 1), vec64(2))
    yield case("ConcatOffset", i32(1), [vec(2, 2, 7), vec(2, 3, 7), vec(2, 9, 7)])
    yield case("ConcatOffset", i32(-1), [vec(2, 2, 7), vec(2, 2, 5)])
    yield case(
        "ConcatOffset", i32(3), [vec(2, 2, 7), vec(2, 2, 5)], error="Concat dim is out of range: 3 vs. 3"
    )
    yield case(
        "ConcatOffset",
        i32(0),
        [vec(2, 2, 7), vec(2, 2, 5)],
        error="All dimensions except 0 must match. Input 1 has shape [2 2 5] and doesn't match",
    )
    yield case(
        "ConcatOffset",
        i32(0),
        [vec(2, 2, 7), vec(2, 2)],
        error="input 1 should contain 3 elements, but got 2",
    )
    yield case(
        "ConcatOffset",
        vec(0),
        [vec(2), vec(2)],
        error="Concat dim tensor should be a scalar integer, but got shape [1]",
    )
    yield case("ConcatOffset", i32(0), [i32(2), vec(2)], error="input 1 should be a vector, but got shape []")
    yield case("ConcatOffset", i32(0), [vec64(2), vec64(2)])
    yield case("InvertPermutation", vec(2, 0, 1))
    yield case("InvertPermutation", vec64(2, 0, 1))
    yield case("InvertPermutation", vec(2, 0, 2), error="2 is duplicated in the input.")
    yield case("InvertPermutation", vec(2, 0, 3), error="3 is not between 0 and 3")
    yield case("InvertPermutation", i32(0), error="invert_permutation expects a 1D vector.")
    yield case("InvertPermutation", NO_INTS)
    yield case("UnravelIndex", vec(5, 0, 11), vec(3, 4))
    yield case("UnravelIndex", i32(5), vec(3, 4))
    yield case("UnravelIndex", vec(12), vec(3, 4), error="index is out of bound as with dims")
    yield case(
        "UnravelIndex",
        vec(1),
        vec(3, 0),
        error="Input dims cannot contain a dim of zero, but dims contains zero at index 1",
    )
    yield case("UnravelIndex", vec64(5), vec64(3, 4))
    yield case("UnravelIndex", vec(5), i32(3), error='The indices can only be 1-D, got "[]"')
    yield case(
        "UnravelIndex",
        np.array([[1]], np.int32),
        vec(3),
        error='The indices can only be scalar or vector, got "[1,1]"',
    )
    yield case("UnravelIndex", vec(-1), vec(3, 4))
    yield case(
        "UnravelIndex",
        vec(1),
        vec(1 << 20, 1 << 20),
        error="Input dims product is causing integer overflow: (1048576 1048576)",
    )
    for p in itertools.permutations(range(3)):
        yield case("Transpose", count(2, 3, 4), vec(*p))
    for p in itertools.permutations(range(4)):
        yield case("Transpose", count(2, 3, 5, 4), vec(*p))
        yield case("Transpose", count(2, 9, 3, 2, dt=np.float64), vec64(*p))
        yield case("Transpose", count(2, 4, 3, 5, dt=np.uint8), vec64(*p))
        yield case("Transpose", count(2, 3, 3, 4, dt=np.complex128), vec64(*p))
        yield case("Transpose", count(2, 7, 3, 3, dt=np.int16), vec64(*p))
        yield case("Transpose", words(2, 3, 2, 2), vec64(*p))
    for sh in [(10, 20), (13, 14), (1, 5), (5, 1), (3, 66), (66, 3), (17, 11), (9, 16)]:
        yield case("Transpose", count(*sh), vec(1, 0))
        yield case("ConjugateTranspose", count(*sh).astype(np.complex64) * (1 + 2j), vec(1, 0))
    yield case("Transpose", count(2, 3), vec(-1, 0))
    yield case("Transpose", count(2, 3), vec(0, 0), error="1 is missing from {0,0}.")
    yield case("Transpose", count(2, 3), vec(0, 2), error="2 is out of range [0 .. 2)")
    yield case(
        "Transpose",
        count(2, 3),
        vec(0),
        error="transpose expects a vector of size 2. But input(1) is a vector of size 1",
    )
    yield case("Transpose", count(2, 3), i32(0), error="perm must be rank 1, got shape []")
    yield case("Transpose", count(), NO_INTS)
    yield case("Transpose", count(0, 3), vec(1, 0))
    yield case("Transpose", count(2, 1, 3), vec(1, 0, 2))
    yield case("Transpose", count(2, 3), vec(-3, 0), error="-1 is out of range [0 .. 2)")
    yield case("ConjugateTranspose", count(2, 1).astype(np.complex64) * 1j, vec(1, 0))
    yield case(
        "Transpose", count(2, 3), np.array([[1, 0]], np.int32), error="perm must be rank 1, got shape [1,2]"
    )
    for n in [2, 3]:
        for ax in [0, 1, -1, -2, 2, -3]:
            yield case("ConcatV2", [count(2, 3)] * n, i32(ax))
    yield case("ConcatV2", [count(2, 3), count(2, 4)], i32(1))
    yield case(
        "ConcatV2",
        [count(2, 3), count(2, 4)],
        i32(0),
        error="ConcatOp : Dimension 1 in both shapes must be equal: shape[0] = [2,3] vs.",
    )
    yield case(
        "ConcatV2",
        [count(2, 3), count(2)],
        i32(0),
        error="ConcatOp : Ranks of all input tensors should match: shape[0] = [2,3] vs.",
    )
    yield case(
        "ConcatV2",
        [count(), count()],
        i32(0),
        error="ConcatOp : Can't concatenate scalars (use tf.stack instead)",
    )
    yield case("ConcatV2", [count(0, 3), count(2, 3)], i32(0))
    yield case("ConcatV2", [count(0, 3), count(0, 3)], vec64(0)[0])
    yield case("ConcatV2", [count(2, 3), count(2, 3)], vec(0))
    yield case(
        "ConcatV2",
        [count(2, 3), count(2, 3)],
        vec(0, 1),
        error="axis tensor should be a scalar integer, but got shape [2]",
    )
    yield case("ConcatV2", [count(2, 1, 3), count(2, 5, 3), count(2, 0, 3)], i32(1))
    yield case("ConcatV2", [words(2), words(3)], i32(0))
    yield case("ConcatV2", [count(2, 3, dt=np.uint8), count(2, 5, dt=np.uint8)], i32(1))
    yield case(
        "ConcatV2",
        [count(3), count(2, 3)],
        i32(0),
        error="ConcatOp : Ranks of all input tensors should match: shape[0] = [3] vs. shape[1]",
    )
    yield case("Concat", i32(1), [count(2, 3), count(2, 4)])
    yield case(
        "Concat",
        i32(2),
        [count(2, 3), count(2, 4)],
        error="ConcatOp : Expected concatenating dimensions in the range [-2, 2), but got 2",
    )
    yield case("Concat", vec(0), [count(2, 3), count(2, 3)])
    yield case(
        "Concat",
        vec(0, 1),
        [count(2, 3), count(2, 3)],
        error="concat_dim tensor should be a scalar integer, but got shape [2]",
    )
    for ax in [0, 1, 2, -1, -3, 3, -4]:
        yield case("Pack", [count(2, 3), count(2, 3)], axis=ax)
    yield case("Pack", [count(2, 3)])
    yield case(
        "Pack",
        [count(2, 3), count(3, 2)],
        error="Shapes of all inputs must match: values[0].shape = [2,3] != values[1].shape =",
    )
    yield case("Pack", [i32(1), i32(2), i32(3)])
    yield case("Pack", [i32(1)], axis=1, error="axis = 1 not in [-1, 1)")
    yield case("Pack", [count(0, 3), count(0, 3)], axis=1)
    yield case("Pack", [words(2), words(2)], axis=1)
    yield case("Pack", [count(1), count(1)], axis=1)
    for ax in [0, 1, -1, -2, 2, -3]:
        yield case("Split", i32(ax), count(4, 6), num_split=2)
    yield case(
        "Split",
        i32(0),
        count(4, 6),
        num_split=3,
        error="Number of ways to split should evenly divide the split dimension, but got",
    )
    yield case("Split", i32(0), count(4, 6), num_split=1)
    yield case("Split", vec(0), count(4, 6), num_split=2, error="split_dim must be a scalar but has rank 1")
    yield case("Split", i32(1), count(2, 6, 3), num_split=3)
    yield case("Split", i32(0), count(0, 3), num_split=2)
    yield case("Split", i32(0), words(4), num_split=2)
    yield case(
        "Split",
        i32(0),
        count(),
        num_split=1,
        error="-input rank(-0) <= split_dim < input rank (0), but got 0",
    )
    yield case("Split", i32(1), count(1, 6), num_split=6)
    yield case(
        "Split",
        i32(0),
        count(3, 2),
        num_split=4,
        error="Number of ways to split should evenly divide the split dimension, but got",
    )
    yield case("Split", i32(1), count(3, 0), num_split=3)
    yield case("SplitV", count(6, 2), vec64(1, 2, 3), i32(0), num_split=3)
    yield case("SplitV", count(6, 2), vec(1, -1, 3), i32(0), num_split=3)
    yield case("SplitV", count(2, 6), vec(1, -1, 3), i32(1), num_split=3)
    yield case(
        "SplitV",
        count(2, 6),
        vec(1, 1, 3),
        i32(1),
        num_split=3,
        error="Determined shape must either match input shape along split_dim exactly if fully",
    )
    yield case(
        "SplitV",
        count(2, 6),
        vec(-1, -1, 3),
        i32(1),
        num_split=3,
        error="There can only be one -1 in the input.",
    )
    yield case(
        "SplitV",
        count(2, 6),
        vec(4, -1, 3),
        i32(1),
        num_split=3,
        error="Determined shape must either match input shape along split_dim exactly if fully",
    )
    yield case(
        "SplitV",
        count(2, 6),
        vec(-2, 5, 3),
        i32(1),
        num_split=3,
        error="Split size at index 0 must be >= 0. Got: -2",
    )
    yield case(
        "SplitV",
        count(2, 6),
        vec(3, 3),
        i32(1),
        num_split=3,
        error="size of the split_tensor must be 1-D and have the same elements as outputs got",
    )
    yield case("SplitV", count(2, 6), vec(6), i32(1), num_split=1)
    yield case(
        "SplitV",
        count(2, 6),
        vec(5),
        i32(1),
        num_split=1,
        error="If there is only one output, it must have the same size as the input. Input",
    )
    yield case(
        "SplitV",
        count(2, 6),
        vec(0, 6),
        i32(2),
        num_split=2,
        error="-input rank(-2) <= split_dim < input rank (2), but got 2",
    )
    yield case("SplitV", count(2, 6), vec(0, 6), i32(-1), num_split=2)
    yield case("SplitV", count(2, 6), vec(0, 6), vec(-1), num_split=2)
    yield case("SplitV", count(2, 6), np.array([3, 3], np.int8), i32(1), num_split=2)
    yield case(
        "SplitV",
        count(2, 6),
        np.array([[3, 3]], np.int32),
        i32(1),
        num_split=2,
        error="size of the split_tensor must be 1-D and have the same elements as outputs got",
    )
    yield case(
        "SplitV",
        count(2, 6),
        vec(3, 3),
        vec(0, 1),
        num_split=2,
        error="split_dim_tensor must have exactly one element.",
    )
    yield case(
        "SplitV",
        count(2, 6),
        vec(3, -3, 6),
        i32(1),
        num_split=3,
        error="Split size at index 1 must be >= 0. Got: -3",
    )
    for ax in [0, 1, -1]:
        yield case("Unpack", count(2, 2), num=2, axis=ax)
    yield case("Unpack", count(2, 2), num=3, error="Input shape axis 0 must equal 3, got shape [2,2]")
    yield case("Unpack", count(2, 2), num=2, axis=2, error="axis = 2 not in [-2, 2)")
    yield case("Unpack", count(2, 2), num=2, axis=-3, error="axis = -3 not in [-2, 2)")
    yield case("Unpack", count(0, 2), num=0)
    yield case("Unpack", count(0, 2), num=2, axis=1)
    yield case("Unpack", count(2, 3, 4), num=3, axis=1)
    yield case("Unpack", count(5), num=5)
    yield case("Unpack", words(2, 2), num=2, axis=1)
    for b, s in [
        ((0, 0), (2, 3)),
        ((0, 1), (2, 1)),
        ((1, 0), (1, 3)),
        ((1, 0), (-1, -1)),
        ((0, 4), (1, 1)),
        ((0, -1), (1, 1)),
        ((0, 3), (1, -1)),
        ((0, 3), (1, 0)),
        ((0, 2), (1, 2)),
        ((2, 0), (0, 3)),
        ((0, 0), (-2, 1)),
        ((5, 0), (-1, 1)),
    ]:
        yield case("Slice", count(2, 3), vec(*b), vec(*s))
        yield case("Slice", count(2, 3), vec64(*b), vec64(*s))
    yield case(
        "Slice",
        count(2, 3),
        vec(0),
        vec(1),
        error="Expected begin and size arguments to be 1-D tensors of size 2, but got shapes",
    )
    yield case(
        "Slice",
        count(2, 3),
        i32(0),
        vec(1, 1),
        error="Expected begin and size arguments to be 1-D tensors of size 2, but got shapes",
    )
    yield case("Slice", count(0, 3), vec(0, 0), vec(0, 2))
    yield case(
        "Slice",
        count(0, 3),
        vec(1, 0),
        vec(0, 2),
        error="Expected begin[0] == 0 (got 1) and size[0] == 0 (got 0) when input.dim_size(0)",
    )
    yield case("Slice", count(0, 3), vec(0, 0), vec(-1, -1))
    yield case("Slice", count(), NO_INTS, NO_INTS)
    yield case("Slice", words(3, 2), vec(1, 0), vec(2, 1))
    yield case("Slice", count(3, 4, 5), vec(1, 1, 1), vec(2, 2, 3))
    yield case("Slice", count(8, 2, dt=np.complex128), vec(1, 0), vec(1, 2))
    yield case(
        "Slice",
        count(2, 3),
        vec(0, 0),
        vec(1),
        error="Expected begin and size arguments to be 1-D tensors of size 2, but got shapes",
    )
    yield case(
        "Slice",
        count(0, 3),
        vec(0, 0),
        vec(1, 2),
        error="Expected begin[0] == 0 (got 0) and size[0] == 0 (got 1) when input.dim_size(0)",
    )
    rng = np.random.RandomState(1)
    yield strided(count(4, 5), [1, 1], [3, 4], [1, 1])
    yield strided(count(4, 5), [-1, -1], [-5, -6], [-1, -2])
    yield strided(count(4, 5), [0], [2], [1])
    yield strided(count(4, 5), [1], [0], [1], shrink_axis_mask=1)
    yield strided(count(4, 5), [-1], [0], [1], shrink_axis_mask=1)
    yield strided(
        count(4, 5), [4], [0], [1], shrink_axis_mask=1, error="slice index 4 of dimension 0 out of bounds."
    )
    yield strided(
        count(4, 5), [-5], [0], [1], shrink_axis_mask=1, error="slice index -1 of dimension 0 out of bounds."
    )
    yield strided(
        count(4, 5),
        [0, 0, 0],
        [1, 1, 1],
        [1, 1, 1],
        error="Index out of range using input dim 2; input has only 2 dims",
    )
    yield strided(count(4, 5), [0], [0], [0], error="strides[0] must be non-zero")
    yield strided(
        count(4, 5), [0], [1], [-1], shrink_axis_mask=1, error="only stride 1 allowed on non-range indexing."
    )
    yield strided(
        count(4, 5),
        [0, 0],
        [1],
        [1, 1],
        error="Expected begin, end, and strides to be 1D equal size tensors, but got shapes",
    )
    yield strided(
        count(4, 5),
        [0, 0],
        [0, 0],
        [1, 1],
        ellipsis_mask=3,
        error="Multiple ellipses in slice spec not allowed",
    )
    yield strided(count(4, 5), [0, 0, 1], [0, 0, 2], [1, 1, 1], ellipsis_mask=2, new_axis_mask=1)
    yield strided(
        count(4, 5),
        0,
        1,
        1,
        error="Expected begin, end, and strides to be 1D equal size tensors, but got shapes",
    )
    yield strided(count(4, 5), [2], [0], [2], shrink_axis_mask=1)
    yield strided(count(4, 5), [2], [0], [1], shrink_axis_mask=1, begin_mask=1, end_mask=1)
    yield strided(count(4, 5), [0], [0], [1], new_axis_mask=1, shrink_axis_mask=1)
    yield strided(count(10), [1], [9], [1 << 30])
    yield strided(count(10), [9], [0], [-(1 << 31)])
    yield strided(count(10), [-(1 << 62)], [1 << 62], [1 << 62], dt=np.int64)
    yield strided(count(10), [1], [5], [2], dt=np.int16)
    yield strided(words(4, 3), [0, 2], [4, 0], [1, -1])
    yield strided(count(0, 3), [0], [1], [1])
    yield strided(
        count(0, 3), [0], [1], [1], shrink_axis_mask=1, error="slice index 0 of dimension 0 out of bounds."
    )
    yield strided(count(3, 4), [], [], [])
    yield strided(count(), [], [], [])
    yield strided(count(), [0], [0], [1], new_axis_mask=1)
    yield strided(count(), [0], [0], [1], error="Attempting to slice scalar input.")
    yield strided(count(2, 3, 2, 4, 2), [0, 1], [2, 2], [1, 1], ellipsis_mask=1)
    yield strided(count(6, 4), [1, 0], [6, 4], [2, 1])
    yield strided(count(6, 4), [1, 0], [6, 4], [2, 1], end_mask=3, begin_mask=3)
    yield strided(count(8, 4), [3], [7], [1])
    yield strided(count(8, 4), [3], [4], [1])
    yield strided(count(8, 4), [3], [3], [1])
    for t in range(150):
        rank = rng.randint(1, 5)
        sh = tuple(rng.randint(0, 5, rank))
        k = rng.randint(0, rank + 2)
        yield strided(
            count(*sh, dt=[F32, np.int8, np.float64, np.complex128][t % 4]),
            rng.randint(-6, 7, k),
            rng.randint(-6, 7, k),
            rng.choice([-3, -2, -1, 1, 1, 1, 2, 3], k),
            begin_mask=int(rng.choice([0, rng.randint(16)])),
            end_mask=int(rng.choice([0, rng.randint(16)])),
            new_axis_mask=int(rng.choice([0, 0, 0, 1, 2, 4])),
            shrink_axis_mask=int(rng.choice([0, 0, 0, 1, 2, 3])),
            ellipsis_mask=int(rng.choice([0, 0, 1, 2, 4])),
        )
    yield strided_grad([4, 5], [1, 1], [3, 4], [1, 1], count(2, 3))
    yield strided_grad([4, 5], [3], [0], [-2], count(2, 5))
    yield strided_grad([4, 5], [1], [0], [1], count(5), shrink_axis_mask=1)
    yield strided_grad(
        [4, 5], [1], [0], [1], count(4), shrink_axis_mask=1, error="shape of dy was [4] instead of [5]"
    )
    yield strided_grad([4], [1], [1], [1], count(0))
    yield strided_grad([4, 0], [1], [2], [1], count(1, 0))
    yield strided_grad([-1], [1], [2], [1], count(1), error="Dimension -1 must be >= 0")
    yield strided_update(count(4, 5), [1, 1], [3, 4], [1, 1], count(2, 3))
    yield strided_update(count(4, 5), [1, 1], [3, 4], [1, 1], count(3))
    yield strided_update(count(4, 5), [1, 1], [3, 4], [1, 1], count())
    yield strided_update(count(4, 5), [3], [0], [-2], count(2, 5))
    yield strided_update(
        count(4, 5),
        [3],
        [0],
        [-2],
        count(3, 5),
        error="Cannot broadcast input shape [3,5] into final shape [2,5]",
    )
    yield strided_update(count(4), [1], [1], [1], count(0))
    yield strided_update(count(4, 5), [1, 1], [3, 4], [1, 1], count(1))
    yield strided_update(count(4, 5), [1, 1], [3, 4], [1, 1], count(2, 1))
    yield from more(r)
