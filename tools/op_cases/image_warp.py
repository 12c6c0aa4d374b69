"""Parts of images, resampled and projected: windows, random boxes, filters."""

from op_cases import *

F32 = np.float32


def glimpse_cases(r):
    x = r.uniform((2, 5, 6, 2))
    for op in ["ExtractGlimpse", "ExtractGlimpseV2"]:
        for centered in [True, False]:
            for normalized in [True, False]:
                options = dict(centered=centered, normalized=normalized, uniform_noise=False, noise="zero")
                spots = [[0, 0], [0.4, -0.6], [1, 1], [-0.9, 2.5], [0.5, 0.5]]
                if not normalized:
                    spots = [[0, 0], [2, -3], [4, 4.7], [-9, 1], [2.5, 3.5]]
                for size in [(3, 2), (4, 7), (1, 1)]:
                    for a, b in zip(spots, spots[1:]):
                        yield case(op, x, i32(size), np.array([a, b], F32), **options)
        bad = np.array([[np.nan, 0], [1e30, -1e30]], F32)
        yield case(op, x, i32([2, 2]), bad, uniform_noise=False, noise="zero")
        yield case(op, x, i32([0, 2]), bad, uniform_noise=False, noise="zero")
        at = np.array([[0.9, 0.9], [-0.9, 0]], F32)
        for options in [dict(), dict(noise="gaussian", uniform_noise=False), dict(noise="", uniform_noise=False)]:
            yield case(op, x, i32([4, 4]), at, compare="shape", **options)
        yield case(op, x, i32([2, 2]), at * 0, noise="")
        yield case(op, x, i32([2, 2]), at, noise="blue", uniform_noise=False, error="The noise could only be uniform, ga")
        yield case(op, x[0], i32([2, 2]), at, error="input must be 4-dimensional (batch_size, height, width, depth)")
        yield case(op, x, i32([2, 2, 2]), at, error="input must be a vector of size 2 (height, width)[3]")
        yield case(op, x, i32([2, 2]), at[0], error="input must be a matrix[2]")
        yield case(op, x, i32([2, 2]), at[:1], error="first dimension should be batch[1,2]")
        yield case(op, x, i32([2, 2]), np.zeros((2, 3), F32), error="second dimension should be of size 2 (y,x)[2,3]")
        yield case(op, x, i32([-2, 2]), at, error="")


def project_cases(r):
    turns = np.array([[1, 0, 0, 0, 1, 0, 0, 0], [0.5, 0.2, 1, -0.1, 0.8, 0.3, 0, 0], [1, 0, -3.5, 0, 1, 2.5, 0, 0],
                      [-1, 0, 4, 0, 2, -6, 0.1, 0.05], [3, 0.3, -9, 0.4, 3, -7, -0.5, 0], [0, 1, 0.5, 1, 0, 0.5, 0, -1]],
                     F32)
    for version in ["V2", "V3"]:
        op = "ImageProjectiveTransform" + version
        fill = [F32(2.75)] if version == "V3" else []
        for mode in ["CONSTANT", "REFLECT", "WRAP", "NEAREST"]:
            for method in ["NEAREST", "BILINEAR"]:
                for k in range(len(turns)):
                    x = r.uniform((1, 4, 5, 2), hi=9.0)
                    yield case(op, x, turns[k:k + 1], i32([5, 6]), *fill, interpolation=method, fill_mode=mode)
                for t in ["uint8", "int32", "int64", "half", "bfloat16", "double"]:
                    x = r.uniform((2, 4, 3, 1), hi=9.0, t=t)
                    yield case(op, x, turns[1:3], i32([3, 4]), *fill, interpolation=method, fill_mode=mode)
                yield case(op, r.uniform((1, 1, 1, 2)), turns[2:3], i32([3, 4]), *fill, interpolation=method,
                           fill_mode=mode)
        x, more = r.uniform((1, 4, 5, 2)), dict(interpolation="NEAREST")
        yield case(op, x[:0], turns[:1], i32([5, 6]), *fill, **more)
        yield case(op, x[0], turns[:1], i32([5, 6]), *fill, error="Input images must have rank 4", **more)
        yield case(op, x, turns[:2], i32([5, 6]), *fill, error="Input transform should be num_images x 8 or 1 x 8", **more)
        yield case(op, x, turns[0], i32([5, 6]), *fill, error="Input transform should be num_images x 8 or 1 x 8", **more)
        yield case(op, x, turns[:1], i32(5), *fill, error="output shape must be 1-dimensional[]", **more)
        yield case(op, x, turns[:1], i32([5]), *fill, error="output shape must have two elements[1]", **more)
        yield case(op, x, turns[:1], i32([5, 0]), *fill, error="output dimensions must be positive", **more)
    yield case(op, x, turns[:1], i32([5, 5]), np.zeros(2, F32), error="fill_value must be a scalar[2]", **more)


def resample_cases(r):
    filters = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]
    maps = [((5, 6), (1, 1), (0, 0)), ((8, 3), (1.7, 0.6), (0.4, -0.5)), ((3, 9), (0.5, 2), (-1, 3)),
            ((2, 2), (0.05, 9), (0, -20))]
    for name in filters:
        for antialias in [True, False]:
            for size, scale, shift in maps:
                more = dict(kernel_type=name, antialias=antialias)
                x = r.normal((1, 5, 6, 2))
                yield case("ScaleAndTranslate", x, i32(size), np.array(scale, F32), np.array(shift, F32), **more)
                grad = r.normal((1,) + size + (2,))
                yield case("ScaleAndTranslateGrad", grad, x, np.array(scale, F32), np.array(shift, F32), **more)
    one, none = np.ones(2, F32), np.zeros(2, F32)
    for t in FLOATING + ["int8", "int16", "int32", "int64", "uint8", "uint16"]:
        yield case("ScaleAndTranslate", r.numbers(t, (2, 4, 3, 1)), i32([3, 5]), one * F32(1.3), none)
    x = r.normal((1, 4, 4, 1))
    x[0, 1, 1, 0] = np.inf
    yield case("ScaleAndTranslate", x, i32([4, 6]), one * F32(1.3), one)
    op = "ScaleAndTranslate"
    yield case(op, x[:0], i32([4, 6]), one, one)
    yield case(op, x[0], i32([4, 6]), one, one, error="input must be 4-dimensional[4,4,1]")
    yield case(op, x, i32([[4, 6]]), one, one, error="output_shape_t must be 1-dimensional[1,2]")
    yield case(op, x, i32([4, 6, 1]), one, one, error="output_shape_t must have two elements[3]")
    yield case(op, x, i32([4, 0]), one, one, error="output dimensions must be positive")
    yield case(op, x[..., :0], i32([4, 1]), one, one, error="image must have at least one channel")
    yield case(op, x[:, :0], i32([4, 1]), one, one, error="input image must be of non-zero size")
    yield case(op, x, i32([4, 1]), none, one, error="Scale must be greater than zero.")
    yield case(op, x, i32([4, 1]), one, one[:1], error="t must have two elements[1]")
    yield case(op, x, i32([4, 1]), np.ones((1, 2), F32), one, error="t must be 1-dimensional[1,2]")
    yield case(op, x, i32([4, 1]), one, one, kernel_type="sharp", error="Unrecognized kernel type: sharp")
    op = "ScaleAndTranslateGrad"
    yield case(op, x[0], x, one, one, error="input_grad must be 4-dimensional[4,4,1]")
    yield case(op, x, x[0], one, one, error="original_image must be 4-dimensional[4,4,1]")
    yield case(op, x, x, -one, one, error="Scale must be greater than zero.")
    yield case(op, x, x, one, one[:1], error="t must have two elements[1]")


def sample_cases(r):
    boxes = np.array([[[0.1, 0.2, 0.6, 0.7], [0.5, 0.5, 0.9, 1.0]]], F32)
    ops = ["SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox"]
    for op in ops:
        def sample(size, given, covered=0.1, seed=7, name=op, **more):
            if name == ops[0]:
                return case(name, size, given, seed=seed, min_object_covered=covered, **more)
            if name == ops[1]:
                return case(name, size, given, np.array(covered, F32), seed=seed, seed2=5, **more)
            return case(name, size, given, np.array(covered, F32), i32([seed, 5]), **more)

        for t in ["uint8", "int8", "int16", "int32", "int64"]:
            for seed in [1, 2]:
                yield sample(array(t, [100, 120, 3]), boxes, seed=seed)
        size = i32([480, 640, 3])
        for seed in range(1, 7):
            yield sample(size, boxes, seed=seed, covered=0.7)
            yield sample(size, boxes, seed=seed, area_range=[0.5, 0.9], aspect_ratio_range=[1.0, 2.5])
        yield sample(size, boxes, area_range=[0.99, 1.0], aspect_ratio_range=[7.0, 7.5], max_attempts=5)
        yield sample(size, boxes[:, :0], use_image_if_no_bounding_boxes=True)
        yield sample(i32([1, 1, 3]), boxes)
        yield sample(i32([0, 5, 3]), boxes)
        yield sample(size, boxes[:, :0], error="No bounding boxes provided as input. One must enable")
        yield sample(size, boxes * 2, error="All bounding box coordinates must be in [0.0, 1.0]: 1.2")
        yield sample(size, boxes[0], error="input boxes must be 3-dimensional [batch, num_boxes, coords]: [2,4]")
        yield sample(size, boxes[..., :3], error="bounding boxes must have shape [4] or [*, 4], got [1,2,3]")
        yield sample(size[:2], boxes, error="image_size must contain 3 elements[2]")
        yield sample(size[None], boxes, error="image_size must be 1-dimensional[1,3]")
        yield sample(-size, boxes, error="image height cannot be >= int32 max")
        yield sample(size, boxes, covered=-1.0, error="Min object covered must be non-negative: -1")
        yield sample(size, boxes, max_attempts=0, error="Max attempts must be non-negative: 0")
        yield sample(size, boxes, area_range=[0.5, 1.5], error="Area range must be less then or equal to 1.0: [0.5, 1.5]")
        yield sample(size, boxes, area_range=[0.0, 0.5], error="Area range must be non-negative: [0, 0.5]")
        yield sample(size, boxes, area_range=[0.5], error="Area range field must specify 2 dimensions")
        yield sample(size, boxes, aspect_ratio_range=[1.0], error="Aspect ratio range field must specify 2 dimensions")
        yield sample(size, boxes, aspect_ratio_range=[-1.0, 1.0], error="Aspect ratio range must be non-negative: [-1, 1]")
    yield case(ops[1], size, boxes, np.ones(1, F32), error="min_object_covered must be 0-D, got shape [1]")
    yield case(ops[2], size, boxes, F32(1), i32([1]), error="seed must have shape [2], not [1]")


def cases(r):
    yield from glimpse_cases(r)
    yield from project_cases(r)
    yield from resample_cases(r)
    yield from sample_cases(r)
