// Images that a projection turns: each pixel is gathered from where it comes from.
#include <algorithm>

#include "smelt/lite/composites/lstm.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// One dimension of the image that is read, in floats that hold whole numbers.
struct Side {
  double size;
  double last() const { return size - 1; }
};

Endpoint FloorOf(Endpoint x, OperatorChain& c) { return c.Op("tfl.floor", {x}); }
Endpoint OrOf(Endpoint a, Endpoint b, OperatorChain& c) { return c.Op("tfl.logical_or", {a, b}); }

// As std::round does, of what may be inside: of -0.5 and more.
Endpoint RoundedAway(Endpoint x, OperatorChain& c) {
  const Endpoint down = FloorOf(x, c), rest = c.Sub(x, down);
  const Endpoint inside = c.LessEqual(0, x), half = c.And(c.Equal(rest, 0.5), inside);
  const Endpoint up = c.Add(down, 1);
  return c.Select(OrOf(c.Less(0.5, rest), half, c), up, down);
}

// So many whole multiples of `size` are in x, which is not negative.
Endpoint Times(Endpoint x, double size, OperatorChain& c) { return FloorOf(c.Div(x, size), c); }

// A coordinate brought into the image, as the mode has it; as it is where others are filled.
Endpoint Folded(Endpoint x, const std::string& mode, Side side, OperatorChain& c) {
  if (mode == "CONSTANT") return x;
  if (mode != "NEAREST" && side.size > 1) {
    const Endpoint away = c.Op("tfl.abs", {x});
    Endpoint below, above;
    if (mode == "REFLECT") {
      const double period = 2 * side.size;
      const Endpoint whole = c.Mul(Times(away, period, c), period);
      below = c.Add(whole, x);
      const Endpoint turned = c.Sub(c.Sub(0, below), 1), moved = c.Add(below, period);
      below = c.Select(c.Less(below, -side.size), moved, turned);
      above = c.Sub(x, whole);
      const Endpoint back = c.Sub(c.Sub(period, above), 1);
      above = c.Select(c.LessEqual(side.size, above), back, above);
    } else {
      const Endpoint times = Times(away, side.last(), c);
      below = c.Add(x, c.Mul(c.Add(times, 1), side.size));
      above = c.Sub(x, c.Mul(times, side.size));
    }
    const Endpoint others = c.Select(c.Less(side.last(), x), above, x);
    x = c.Select(c.Less(x, 0), below, others);
  }
  return c.Min(c.Max(x, 0), side.last());
}

// The pixels of images, rows of a matrix.
struct Pixels {
  Endpoint rows, first, fill;  // [images * height * width, channels], [images, 1], a number
  Side height, width;

  // Those at places that are whole numbers, or the fill: [images, places, channels].
  Endpoint At(Endpoint y, Endpoint x, OperatorChain& c) const {
    const Endpoint left = c.Less(x, width.size), above = c.And(c.Less(y, height.size), left);
    const Endpoint right = c.LessEqual(0, x), below = c.And(c.LessEqual(0, y), right);
    const Endpoint inside = c.And(below, above);
    const Endpoint place = c.Select(inside, c.Add(c.Mul(y, width.size), x), 0);
    const Endpoint pixels = c.Rows(rows, c.Add(c.Cast(place, Dtype::kInt32), first));
    return c.Select(Column(inside, c), pixels, fill);
  }
  // A value of each place, for all channels.
  static Endpoint Column(Endpoint e, OperatorChain& c) {
    const PartialShape shape = c.shape(e);
    if (!c.ok()) return {};
    return c.Reshape(e, {shape[0], shape[1], 1});
  }
};

// The places of the result, row by row: [1, count].
StatusOr<Endpoint> PlacesOf(int64_t height, int64_t width, bool rows, Legalizer& l) {
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(Dtype::kFloat, Shape({1, height * width})));
  for (int64_t i = 0; i < height * width; ++i) {
    t.data<float>()[i] = static_cast<float>(rows ? i / width : i % width);
  }
  return l.Const(t);
}

LiteEndpoints Projected(Node& n, Legalizer& l) {
  RETURN_IF_ERROR(CheckType(n, Types(Dtype::kFloat)));
  const PartialShape in = l.shape(n.input(0)), of = l.shape(n.input(1));
  const auto sizes = l.Integers(n.input(2));
  if (in.rank() != 4 || in[1] < 1 || in[2] < 1 || in[3] < 1 || of.rank() != 2 || of[1] != 8 ||
      !sizes || sizes->size() != 2 || (*sizes)[0] < 1 || (*sizes)[1] < 1) {
    return Unimplemented("the sizes of its images are not known");
  }
  const std::string mode = n.String("fill_mode", "CONSTANT");
  const Side height = {static_cast<double>(in[1])}, width = {static_cast<double>(in[2])};
  OperatorChain c(l);
  ASSIGN_OR_RETURN(const Endpoint rows, PlacesOf((*sizes)[0], (*sizes)[1], true, l));
  ASSIGN_OR_RETURN(const Endpoint columns, PlacesOf((*sizes)[0], (*sizes)[1], false, l));
  std::vector<Endpoint> m;  // of each image: [images, 1]
  for (int64_t i = 0; i < 8; ++i) {
    ASSIGN_OR_RETURN(m.emplace_back(),
                     LitePart(n.input(1), {0, i}, {of[0] < 0 ? -1 : of[0], 1}, l));
  }
  const auto plane = [&](Endpoint x, Endpoint y) {
    const Endpoint down = c.Mul(y, rows);
    return c.Add(c.Mul(x, columns), down);
  };
  const Endpoint depth = c.Add(plane(m[6], m[7]), 1), nowhere = c.Equal(depth, 0);
  const auto coordinate = [&](size_t i, Side side) {
    const Endpoint at = c.Div(c.Add(plane(m[i], m[i + 1]), m[i + 2]), depth);
    return Folded(c.Select(nowhere, -2, at), mode, side, c);
  };
  const Endpoint x = coordinate(0, width), y = coordinate(3, height);

  ASSIGN_OR_RETURN(const Endpoint images, SizeOf(n.input(0), 0, l));
  Endpoint first = c.CountTo(images, std::max<int64_t>(in[0], -1));
  first = c.Reshape(c.Mul(first, static_cast<double>(in[1] * in[2])), {in[0], 1});
  const Endpoint fill = n.num_inputs() == 4 ? n.input(3) : l.Floats(0);
  const Pixels pixels = {c.Reshape(n.input(0), {-1, in[3]}), first, fill, height, width};
  Endpoint e;
  if (n.String("interpolation") == "NEAREST") {
    const Endpoint column = RoundedAway(x, c), row = RoundedAway(y, c);
    e = pixels.At(row, column, c);
  } else {
    const Endpoint y0 = FloorOf(y, c), x0 = FloorOf(x, c), y1 = c.Add(y0, 1), x1 = c.Add(x0, 1);
    const auto mixed = [&](Endpoint from, Endpoint to, Endpoint at, Endpoint a, Endpoint b) {
      const Endpoint second = c.Mul(Pixels::Column(c.Sub(at, from), c), b);
      return c.Add(c.Mul(Pixels::Column(c.Sub(to, at), c), a), second);
    };
    const Endpoint upper_right = pixels.At(y0, x1, c), upper_left = pixels.At(y0, x0, c);
    const Endpoint upper = mixed(x0, x1, x, upper_left, upper_right);
    const Endpoint lower_right = pixels.At(y1, x1, c), lower_left = pixels.At(y1, x0, c);
    const Endpoint lower = mixed(x0, x1, x, lower_left, lower_right);
    e = mixed(y0, y1, y, upper, lower);
  }
  // Elsewhere what is nowhere was folded into the image.
  if (mode != "CONSTANT") e = c.Select(Pixels::Column(nowhere, c), fill, e);
  return c.Done(c.Reshape(e, {in[0], (*sizes)[0], (*sizes)[1], in[3]}));
}

constexpr ExportRow kProjectiveRows[] = {
    {"ImageProjectiveTransformV2", Projected},
    {"ImageProjectiveTransformV3", Projected},
};

}  // namespace

std::span<const ExportRow> ProjectiveExport() { return kProjectiveRows; }

}  // namespace smelt
