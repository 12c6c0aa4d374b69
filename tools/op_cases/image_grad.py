"""Gradients of resizing and cropping."""

from op_cases import *

F32 = np.float32
MODES = [dict(), dict(align_corners=True), dict(half_pixel_centers=True)]


def resize_cases(r):
    for op, types in [("ResizeBilinearGrad", FLOATING), ("ResizeBicubicGrad", FLOATS)]:
        for small, large in [((2, 3), (4, 5)), ((5, 4), (2, 3)), ((3, 3), (3, 3)), ((1, 4), (3, 1)), ((4, 1), (1, 6))]:
            for mode in MODES:
                yield case(op, r.normal((2,) + large + (2,)), r.normal((2,) + small + (2,)), **mode)
        for t in types:
            yield case(op, r.normal((1, 5, 4, 2)), r.normal((1, 3, 2, 2), t))
        x, g = r.normal((1, 3, 3, 1)), r.normal((1, 2, 4, 1))
        yield case(op, g[:0], x[:0])
        yield case(op, g[..., :0], x[..., :0])
        yield case(op, g, x, align_corners=True, half_pixel_centers=True, error="If half_pixel_centers is True, align_c")
        yield case(op, g[0], x, error="input_grad must be 4-dimensional[2,4,1]")
        yield case(op, g, x[0], error="original_image must be 4-dimensional[3,3,1]")
        yield case(op, g[:, :0], x, error="resized dimensions must be positive")
        yield case(op, g, x[:, :0], error="original dimensions must be positive")
    op = "ResizeNearestNeighborGrad"
    for shape, size in [((4, 5), (2, 3)), ((2, 3), (5, 4)), ((3, 3), (3, 3)), ((1, 4), (3, 1))]:
        for mode in MODES + [dict(align_corners=True, half_pixel_centers=True)]:
            yield case(op, r.normal((2,) + shape + (2,)), i32(size), **mode)
    for t in ["uint8", "int8", "int32", "half", "float", "double", "bfloat16"]:
        yield case(op, r.numbers(t, (1, 5, 4, 2)), i32([3, 2]))
    g = r.normal((1, 3, 3, 1))
    yield case(op, g[:0], i32([2, 2]))
    yield case(op, g[:, :0], i32([2, 2]))
    yield case(op, g[0], i32([2, 2]), error="input must be 4-dimensional[3,3,1]")
    yield case(op, g, i32([[2, 2]]), error="shape_t must be 1-dimensional[1,2]")
    yield case(op, g, i32([2, 2, 2]), error="shape_t must have two elements[3]")
    yield case(op, g, i32([2, -2]), error="shape_t's elements must be positive")


def crop_cases(r):
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.7], [-0.5, 0.3, 0.6, 1.5], [0.9, 0.8, 0.1, 0.2]], F32)
    which = i32([0, 1, 1, 0])
    for crop in [(3, 4), (1, 1), (2, 1), (5, 2)]:
        g = r.normal((4,) + crop + (2,))
        for method in ["bilinear", "nearest"]:
            for t in ["float", "double", "half"]:
                yield case("CropAndResizeGradImage", g, boxes, which, i32([2, 4, 5, 2]), T=tf.as_dtype(t), method=method)
        for t in ["uint8", "uint16", "int8", "int16", "int32", "int64", "half", "float", "double"]:
            yield case("CropAndResizeGradBoxes", g, r.numbers(t, (2, 4, 5, 2)), boxes, which, tol=(1e-4, 1e-5))
    g, x = r.normal((4, 3, 3, 1)), r.normal((2, 4, 4, 1))
    image, size = "CropAndResizeGradImage", i32([2, 4, 4, 1])
    none = np.zeros((0, 4), F32)
    yield case(image, g[:0], none, which[:0], size, T=tf.float32)
    yield case(image, g[0], boxes, which, size, T=tf.float32, error="grads image must be 4-D[3,3,1]")
    yield case(image, g[:, :0], boxes, which, size, T=tf.float32, error="grads dimensions must be positive")
    yield case(image, g[:3], boxes, which, size, T=tf.float32, error="boxes and grads have incompatible shape")
    yield case(image, g, boxes[0], which, size, T=tf.float32, error="boxes must be 2-D")
    yield case(image, g, boxes[:, :3], which, size, T=tf.float32, error="boxes must have 4 columns")
    yield case(image, g, boxes, which[:3], size, T=tf.float32, error="box_index has incompatible shape")
    yield case(image, g, boxes, which + 1, size, T=tf.float32, error="box_index has values outside [0, batch_size)")
    yield case(image, g, boxes, which, size[:3], T=tf.float32, error="image_size must have 4 elements[3]")
    yield case(image, g, boxes, which, size[None], T=tf.float32, error="image_size must be 1-D[1,4]")
    yield case(image, g, boxes, which, i32([2, 0, 4, 1]), T=tf.float32, error="image dimensions must be positive")
    yield case(image, g, boxes, which, i32([2, 4, 4, 2]), T=tf.float32, error="image_size and grads are incompatible")
    op = "CropAndResizeGradBoxes"
    yield case(op, g[:0], x, none, which[:0])
    yield case(op, g[0], x, boxes, which, error="grads image must be 4-D[3,3,1]")
    yield case(op, g, x[0], boxes, which, error="input image must be 4-D[4,4,1]")
    yield case(op, g, x[:, :0], boxes, which, error="image dimensions must be positive")
    yield case(op, np.concatenate([g, g], -1), x, boxes, which, error="image, grads depth differ")
    yield case(op, g[:3], x, boxes, which, error="boxes and grads have incompatible shape")
    yield case(op, g, x, boxes, which - 1, error="box_index has values outside [0, batch_size)")


def cases(r):
    yield from resize_cases(r)
    yield from crop_cases(r)
