"""Ops that move data, with constant arguments: a session that compiles its graphs binds them to shapes."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops


def moved(r, op, name, shapes, make):
    """make(tensors): the outputs. Other ops stand around them, so that a region has several."""

    def build():
        xs = [tf.compat.v1.placeholder(tf.float32, s) for s in shapes]
        outs = make([R.Exp(x=x) for x in xs])
        outs = [R.Neg(x=y) for y in (outs if isinstance(outs, (list, tuple)) else [outs])]
        return [Step(fetch=outs, feed={x: r.normal(s) for x, s in zip(xs, shapes)})]

    return graph_case(op, build, name=name)


def along(r, shape, axis):
    of = "x".join(map(str, shape)) + f"_{axis}"
    n = shape[axis]
    yield moved(r, "ConcatV2", of, [shape] * 3, lambda x: R.ConcatV2(values=x, axis=axis))
    yield moved(r, "Pack", of, [shape] * 2, lambda x: R.Pack(values=x, axis=axis))
    if n > 0:
        yield moved(r, "Unpack", of, [shape], lambda x: R.Unpack(value=x[0], num=n, axis=axis))
    yield moved(r, "Split", of, [shape],
                lambda x: R.Split(axis=axis, value=x[0], num_split=max(n, 1)))
    yield moved(r, "SplitV", of, [shape],
                lambda x: R.SplitV(value=x[0], size_splits=i32([n - min(n, 1), -1, 0]), axis=axis, num_split=3))
    yield moved(r, "ReverseV2", of, [shape], lambda x: R.ReverseV2(tensor=x[0], axis=i32([axis])))
    if n > 0:
        yield moved(r, "GatherV2", of, [shape],
                    lambda x: R.GatherV2(params=x[0], indices=i32([n - 1, 0, 0]), axis=axis))


def whole(r, shape):
    of, one = "x".join(map(str, shape)), [shape]
    yield moved(r, "Slice", of, one, lambda x: R.Slice(input=x[0], begin=i32([0, 0, 1]), size=i32([-1, -1, 2])))
    yield moved(r, "Slice", f"{of}_rows", one, lambda x: R.Slice(input=x[0], begin=i32([0, 0, 0]), size=i32([1, -1, -1])))
    yield moved(r, "Slice", f"{of}_whole", one, lambda x: R.Slice(input=x[0], begin=i32([0, 0, 0]), size=i32([-1] * 3)))
    yield moved(r, "StridedSlice", of, one, lambda x: x[0][:, ::-1, 1:4:2])
    yield moved(r, "StridedSlice", f"{of}_new_axis", one, lambda x: x[0][0, tf.newaxis, ..., -1])
    yield moved(r, "Transpose", of, one, lambda x: R.Transpose(x=x[0], perm=i32([2, 0, 1])))
    yield moved(r, "Transpose", f"{of}_in_order", one, lambda x: R.Transpose(x=x[0], perm=i32([0, 1, 2])))
    pads = i32([[1, 0], [0, 2], [0, 1]])
    yield moved(r, "Pad", of, one, lambda x: R.Pad(input=x[0], paddings=pads))
    yield moved(r, "PadV2", of, one, lambda x: R.PadV2(input=x[0], paddings=pads, constant_values=np.float32(2.5)))
    yield moved(r, "Tile", of, one, lambda x: R.Tile(input=x[0], multiples=i32([2, 1, 3])))
    yield moved(r, "BroadcastTo", of, one, lambda x: R.BroadcastTo(input=x[0], shape=i32([2] + shape)))


def mirrored(r, mode):
    yield moved(r, "MirrorPad", mode, [[2, 3]],
                lambda x: R.MirrorPad(input=x[0], paddings=i32([[1, 0], [2, 1]]), mode=mode))


def blocks(r):
    crops = i32([[0, 1], [1, 0]])
    yield moved(r, "SpaceToBatchND", None, [[2, 3, 5, 2]],
                lambda x: R.SpaceToBatchND(input=x[0], block_shape=i32([2, 3]), paddings=crops))
    yield moved(r, "BatchToSpaceND", None, [[6, 2, 2, 2]],
                lambda x: R.BatchToSpaceND(input=x[0], block_shape=i32([2, 3]), crops=crops))
    yield moved(r, "SpaceToDepth", None, [[2, 4, 2, 3]], lambda x: R.SpaceToDepth(input=x[0], block_size=2))
    yield moved(r, "DepthToSpace", None, [[2, 2, 1, 8]], lambda x: R.DepthToSpace(input=x[0], block_size=2))
    yield moved(r, "GatherV2", "batches", [[2, 3, 4]],
                lambda x: R.GatherV2(params=x[0], indices=i32([[2, 0], [1, 1]]), axis=1, batch_dims=1))


def chosen(r, rows, row, dtype="float"):
    """A choice of rows and of what Tile repeats, among elementwise ops."""

    def build():
        c, m = tf.compat.v1.placeholder(tf.bool, [rows]), tf.compat.v1.placeholder(tf.bool, [rows, 1])
        a, b = (tf.compat.v1.placeholder(tf.as_dtype(dtype), [rows, row]) for _ in range(2))
        y = R.Neg(x=a)
        kept = R.Select(condition=c, x=y, y=b)
        shown = R.SelectV2(condition=R.Tile(input=m, multiples=[1, row]), t=y, e=kept)
        alone = R.Select(condition=c, x=R.ZerosLike(x=y), y=R.OnesLike(x=y))
        number = lambda: (r.normal([rows, row]) * 8).astype(tf.as_dtype(dtype).as_numpy_dtype)
        return [Step(fetch=[kept, shown, R.Square(x=shown), alone], feed={c: r.bools([rows]), m: r.bools([rows, 1]), a: number(), b: number()})]

    return graph_case("Select", build, name=f"rows_{rows}_{row}_{dtype}")


def heads(r, rows, length):
    """Rows of words, flattened for a product and laid out again, then cut into heads with -1 for their number of words: of no rows, too."""

    def build():
        x = tf.compat.v1.placeholder(tf.float32, [None, None, 8])
        w = tf.constant(r.normal([8, 8]))
        shape = tf.shape(x)
        y = tf.reshape(tf.matmul(tf.reshape(x, [-1, 8]), w), tf.stack([shape[0], shape[1], 8]))
        y = tf.reshape(y, tf.stack([shape[0], -1, 2, 4]))
        return [Step(fetch=[tf.transpose(y, [0, 2, 1, 3])], feed={x: r.normal([rows, length, 8])})]

    return graph_case("Reshape", build, name=f"heads_{rows}_{length}")


def cases(r):
    tf.compat.v1.disable_eager_execution()
    for shape in ([2, 3, 4], [1, 3, 4], [2, 0, 4]):
        for axis in (0, 1, -1):
            yield from along(r, shape, axis)
        yield from whole(r, shape)
    yield from mirrored(r, "REFLECT")
    yield from mirrored(r, "SYMMETRIC")
    yield from blocks(r)
    for rows, row in ((8, 32), (1, 64), (64, 1), (5, 16), (9, 9), (0, 7), (2, 140)):
        yield chosen(r, rows, row)
    yield chosen(r, 6, 40, "double")
    yield chosen(r, 6, 40, "int32")
    for rows in (0, 2):
        yield heads(r, rows, 3)
