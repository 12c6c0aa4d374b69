"""What XLA's compiler, or TensorFlow's bridge to it, refuses of the ops that it alone knows."""
from op_cases import *
from op_cases.xla import ADD, body, conv_numbers

JIT = True


def cases(r):
    for rhs, rank, groups, e in (((2, 3, 3, 3), 4, 1, "Expected the size of kernel_input_features (value 3) in rhs times"),
                                 ((2, 3, 2, 3), 4, 3, "feature_group_count (value 3) in lhs should equal the size of the z"),
                                 ((2, 3, 2, 3), 3, 1, "both input tensor and kernel tensor must have same number of dimensions.")):
        args = [r.numbers("float", (1, 4, 5, 2)[:rank]), r.numbers("float", rhs), i32((1, 1)), i32(((0, 0), (0, 0))), i32((1, 1)),
                i32((1, 1)), i32(groups)]
        common = dict(dimension_numbers=conv_numbers("b01f", "01io", "b01f"), precision_config=b"", error=e)
        yield case("XlaConv", *args, **common)
        yield case("XlaConvV2", *args, preferred_element_type=tf.float32, batch_group_count=1, **common)
    yield case("XlaEinsum", r.numbers("float", (2, 3)), r.numbers("float", (3, 4)), equation="abc,bc->ac", error="")
    yield case("XlaReduceWindow", r.numbers("float", (4, 5)), r.numbers("float", (2,)), i32([2, 3]), i32([1, 1]), i32([1, 1]),
               i32([1, 1]), i32([[0, 0], [0, 0]]), computation=body(ADD), error="")
    yield case("XlaSelectAndScatter", r.numbers("float", (4, 4)), i32([2, 2]), i32([2, 2]), i32([[0, 0], [0, 0]]),
               r.numbers("float", (3, 2)), r.numbers("float"), select=body(tf.greater_equal), scatter=body(ADD),
               error="Source shape does not match the shape of window-reduced operand")
    yield case("XlaSort", r.numbers("float", ()), error="dimension attribute value must be in range [-0, 0), but found -1")
    yield case("XlaSvd", r.numbers("float", (3, 2)), max_iter=100, epsilon=1e-6, precision_config=b"x",
               error="Error parsing precision config.")
    args = [("int32", [])]
    for cond, step, e in ((lambda i: i < 5, lambda i: tf.stack([i, i]),
                           "Input and output shapes of loop body do not match: (s32[]) vs. (s32[2])"),
                          (lambda i: tf.stack([i < 5, i < 3]), lambda i: i + 1,
                           "Output shape of loop condition should be (pred[]) or (pred[], token[]), got: (pred[2])")):
        yield case("XlaWhile", [i32(0)], cond=Body(cond, args), body=Body(step, args), error=e)
