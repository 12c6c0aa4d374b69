"""Boxes: suppression of overlapping ones, drawing, sampling."""

from op_cases import *

F32, HALF = np.float32, np.float16


def scalar(v, t=F32):
    return np.array(v, t)


def boxes_of(r, n, t=F32):
    corner, size = r.uniform((n, 2)), r.uniform((n, 2), 0.2, 0.6)
    return np.concatenate([corner, corner + size], -1).astype(t)


def suppression(r, op, extra, t=F32, **attrs):
    """Cases of one version: `extra(iou, score, sigma)` are its inputs after max_output_size."""
    for n, limit, iou in [(10, 4, 0.5), (12, 12, 0.1), (6, 0, 0.3), (0, 3, 0.5), (9, 20, 1.0), (9, 20, 0.0)]:
        yield case(op, boxes_of(r, n, t), r.uniform((n,)).astype(t), i32(limit), *extra(iou, 0.3, 0.0), **attrs)
    ties = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, 1, 0, 0], [0, 2, 1, 3], [0, 0, 0, 1], [0, 2, 1, 3]], t)
    yield case(op, ties, np.array([0.5, 0.5, 0.5, 0.75, 0.25, 0.75], t), i32(6), *extra(0.4, 0.1, 0.0), **attrs)
    odd = np.array([np.nan, np.inf, -np.inf, 0.5, 0.4, 0.3], t)
    yield case(op, boxes_of(r, 6, t), odd, i32(6), *extra(0.5, -1.0, 0.0), **attrs)
    hurt = boxes_of(r, 4, t)
    hurt[1, 2] = np.nan
    hurt[2, 0] = np.inf
    yield case(op, hurt, np.array([0.9, 0.8, 0.7, 0.6], t), i32(4), *extra(0.5, 0.1, 0.0), **attrs)


def suppression_errors(r, op, extra):
    b, s = boxes_of(r, 3), r.uniform((3,))
    for iou in [1.5, -0.5, np.nan]:
        yield case(op, b, s, i32(2), *extra(iou, 0.0, 0.0), error="iou_threshold must be in [0, 1]")
    yield case(op, b[0], s, i32(2), *extra(0.5, 0.0, 0.0), error="boxes must be 2-D[4]")
    yield case(op, b[:, :3], s, i32(2), *extra(0.5, 0.0, 0.0), error="boxes must have 4 columns")
    yield case(op, b, s[:2], i32(2), *extra(0.5, 0.0, 0.0), error="scores has incompatible shape")
    yield case(op, b, b, i32(2), *extra(0.5, 0.0, 0.0), error="scores must be 1-D[3,4]")
    yield case(op, b, s, i32([2]), *extra(0.5, 0.0, 0.0), error="max_output_size must be 0-D, got shape [1]")
    yield case(op, b, s, i32(-1), *extra(0.5, 0.0, 0.0), error="output size must be non-negative")
    inputs = extra(0.5, 0.0, 0.0)
    for i, name in enumerate(["iou_threshold", "score_threshold", "soft_nms_sigma"][:len(inputs)]):
        bad = list(inputs)
        bad[i] = bad[i].reshape(1)
        yield case(op, b, s, i32(2), *bad, error=f"{name} must be 0-D, got shape [1]")


def nms_cases(r):
    for iou in [0.0, 0.3, 0.5, 1.0]:
        yield case("NonMaxSuppression", boxes_of(r, 8), r.uniform((8,)), i32(5), iou_threshold=iou)
    b, s = boxes_of(r, 3), r.uniform((3,))
    yield case("NonMaxSuppression", b, s, i32(2), iou_threshold=2.0, error="iou_threshold must be in [0, 1]")
    yield case("NonMaxSuppression", b[0], s, i32(2), error="boxes must be 2-D[4]")
    yield case("NonMaxSuppression", b, s[:1], i32(2), error="scores has incompatible shape")
    yield case("NonMaxSuppression", b, s, i32(-2), error="output size must be non-negative")
    yield case("NonMaxSuppression", b[:0], s[:0], i32(2))
    for t in [F32, HALF]:
        for other in [F32, HALF]:
            yield from suppression(r, "NonMaxSuppressionV2", lambda i, s, g: [scalar(i, other)], t)
            yield from suppression(r, "NonMaxSuppressionV3", lambda i, s, g: [scalar(i, other), scalar(s, other)], t)
            yield from suppression(r, "NonMaxSuppressionV4", lambda i, s, g: [scalar(i, other), scalar(s, other)], t,
                                   pad_to_max_output_size=other == HALF)
        for sigma in [0.0, 0.1, 0.5, 2.0]:
            yield from suppression(r, "NonMaxSuppressionV5", lambda i, s, g: [scalar(i, t), scalar(s, t),
                                                                             scalar(sigma, t)], t,
                                   pad_to_max_output_size=sigma == 0.5)
    yield from suppression_errors(r, "NonMaxSuppressionV2", lambda i, s, g: [scalar(i)])
    yield from suppression_errors(r, "NonMaxSuppressionV3", lambda i, s, g: [scalar(i), scalar(s)])
    yield from suppression_errors(r, "NonMaxSuppressionV4", lambda i, s, g: [scalar(i), scalar(s)])
    yield from suppression_errors(r, "NonMaxSuppressionV5", lambda i, s, g: [scalar(i), scalar(s), scalar(g)])
    yield case("NonMaxSuppressionV5", b, s, i32(2), scalar(0.5), scalar(0.0), scalar(-1), error="soft_nms_sigma_val mu")
    op = "NonMaxSuppressionWithOverlaps"
    for n, limit in [(6, 4), (9, 9), (1, 1), (0, 2)]:
        for threshold in [0.2, 0.7, -1.0]:
            yield case(op, r.uniform((n, n)), r.uniform((n,)), i32(limit), scalar(threshold), scalar(0.1))
    w = r.uniform((3, 3))
    yield case(op, w[:2], s, i32(2), scalar(0.5), scalar(0.0), error="overlaps must be square[2,3]")
    yield case(op, s, s, i32(2), scalar(0.5), scalar(0.0), error="overlaps must be 2-D[3]")
    yield case(op, w, s[:1], i32(2), scalar(0.5), scalar(0.0), error="scores has incompatible shape")
    yield case(op, w, s, i32(2), s, scalar(0.0), error="overlap_threshold must be 0-D, got shape [3]")
    yield case(op, w, s, i32(2), scalar(0.5), s, error="score_threshold must be 0-D, got shape [3]")
    yield case(op, w, s, i32(-1), scalar(0.5), scalar(0.0), error="output size must be non-negative")
    yield case(op, w, s, i32([1]), scalar(0.5), scalar(0.0), error="max_output_size must be 0-D, got shape [1]")


def combined_cases(r):
    op = "CombinedNonMaxSuppression"

    def combined(b, s, per, total, iou=0.5, score=0.2, **more):
        return case(op, b, s, i32(per), i32(total), scalar(iou), scalar(score), **more)

    for batch, n, q, classes in [(1, 6, 1, 1), (2, 5, 1, 3), (2, 4, 3, 3), (1, 3, 1, 0), (1, 0, 1, 2), (0, 3, 1, 2)]:
        b = r.uniform((batch, n, q, 4), -0.2, 1.3)
        s = r.uniform((batch, n, classes))
        for per, total in [(3, 5), (1, 2), (9, 4), (2, 20)]:
            yield combined(b, s, per, total)
            yield combined(b, s, per, total, clip_boxes=False, pad_per_class=True)
        yield combined(b, s // 0.5 * 0.5, 4, 9, score=-1.0, iou=0.3)
    b, s = r.uniform((2, 4, 1, 4)), r.uniform((2, 4, 3))
    yield combined(b[0, :2], s, 1, 1, error="boxes must be 4-D[2,1,4]")
    yield combined(np.concatenate([b, b], 2), s, 1, 1, error="third dimension of boxes must be either 1 or num cla")
    yield combined(b[..., :3], s, 1, 1, error="boxes must have 4 columns")
    yield combined(b, s[:, :3], 1, 1, error="scores has incompatible shape")
    yield combined(b, s[:1], 1, 1, error="boxes and scores must have same batch size")
    yield combined(b, s, [1], 1, error="max_size_per_class must be 0-D, got shape [1]")
    yield combined(b, s, 0, 1, error="max_size_per_class must be positive")
    yield combined(b, s, 1, [1], error="max_total_size must be 0-D, got shape [1]")
    yield combined(b, s, 1, 0, error="max_total_size must be > 0")
    yield combined(b, s, 1, 1, iou=1.5, error="iou_threshold must be in [0, 1]")
    yield combined(b, s, 1, 1, iou=[0.5], error="iou_threshold must be 0-D, got shape [1]")
    yield combined(b, s, 1, 1, score=[0.5], error="score_threshold must be 0-D, got shape [1]")


def draw_cases(r):
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.3, 0.7, 0.8], [-0.5, 0.4, 0.6, 1.7], [0.5, 0.5, 0.2, 0.9],
                      [1.5, 0, 2, 1], [-2, -2, 3, 3], [0.4, 0.4, 0.4, 0.4]], np.float32)
    for t in [F32, HALF]:
        for depth in [1, 3, 4]:
            image = r.uniform((1, 6, 7, depth)).astype(t)
            for k in range(0, 7, 2):
                yield case("DrawBoundingBoxes", image, boxes[None, k:k + 3])
                yield case("DrawBoundingBoxesV2", image, boxes[None, k:k + 3], r.uniform((2, 4)))
        image = r.uniform((2, 4, 5, 3)).astype(t)
        both = np.stack([boxes[:2], boxes[1:3]])
        yield case("DrawBoundingBoxes", image, both)
        yield case("DrawBoundingBoxesV2", image, both, r.uniform((0, 4)))
        yield case("DrawBoundingBoxesV2", image, both, r.uniform((1, 3)))
        yield case("DrawBoundingBoxes", image, both[:, :0])
        yield case("DrawBoundingBoxes", image[:, :1, :1], both)
    one = boxes[None]
    many = np.tile(r.uniform((1, 12, 2), hi=0.5), 2).astype(F32) + np.array([0, 0, 0.4, 0.3], F32)
    yield case("DrawBoundingBoxes", r.uniform((1, 6, 7, 4)), many)
    x = r.uniform((1, 6, 7, 3))
    yield case("DrawBoundingBoxes", x[0], one, error="The rank of the images should be 4")
    yield case("DrawBoundingBoxes", x, boxes, error="The rank of the boxes tensor should be 3")
    yield case("DrawBoundingBoxes", x, np.stack([boxes, boxes]), error="The batch sizes should be the same")
    yield case("DrawBoundingBoxes", x[..., :2], one, error="Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
    yield case("DrawBoundingBoxes", x, one[..., :3], error="The size of the third dimension of the box must be 4. Rec")
    yield case("DrawBoundingBoxesV2", x, one, r.uniform((2,)), error="colors must be a 2-D matrix[2]")
    yield case("DrawBoundingBoxesV2", x, one, r.uniform((2, 2)), error="colors must have equal or more channels than the")


def cases(r):
    yield from draw_cases(r)
    yield from nms_cases(r)
    yield from combined_cases(r)
