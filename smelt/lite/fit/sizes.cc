#include "smelt/lite/fit/sizes.h"

#include <algorithm>

#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/rows/rows.h"

namespace smelt {

LiteSizes SizesOf(Endpoint e, const Legalizer& l) {
  const PartialShape shape = l.shape(e);
  LiteSizes out;
  for (int i = 0; i < shape.rank(); ++i) {
    LiteSize& size = out.emplace_back();
    if (shape[i] >= 0) {
      size.known = shape[i];
    } else {
      size.free = {{e, i}};
    }
  }
  return out;
}

LiteSizes MergedSizes(const LiteSizes& sizes, std::span<const DimRun> runs) {
  LiteSizes out;
  for (const DimRun& run : runs) {
    LiteSize& product = out.emplace_back();
    for (int i = 0; i < run.count; ++i) product *= sizes[static_cast<size_t>(run.first + i)];
  }
  return out;
}

PartialShape ShapeOfSizes(const LiteSizes& sizes) {
  std::vector<int64_t> dims;
  for (const LiteSize& s : sizes) dims.push_back(s.is_known() ? s.known : -1);
  return PartialShape::Of(dims);
}

namespace {

// Are they all that the tensor has, in order?
bool AreOf(const LiteSizes& sizes, Endpoint e, const Legalizer& l) {
  const PartialShape shape = l.shape(e);
  if (shape.rank() != static_cast<int>(sizes.size())) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    const LiteSize& s = sizes[static_cast<size_t>(i)];
    const bool known = s.is_known() && s.known == shape[i];
    const bool own = s.known == 1 && s.free.size() == 1 && s.free[0] == std::pair(e, i);
    if (!known && !own) return false;
  }
  return true;
}

}  // namespace

StatusOr<Endpoint> SizesVector(const LiteSizes& sizes, Legalizer& l) {
  const PartialShape shape = ShapeOfSizes(sizes);
  if (shape.fully_known()) return l.Ints(shape.dims());
  for (const LiteSize& s : sizes) {
    if (s.is_known() || !AreOf(sizes, s.free[0].first, l)) continue;
    return l.ShapeOf(s.free[0].first);
  }
  const LiteOutput number = {Dtype::kInt32, PartialShape::Of({})};
  std::vector<Endpoint> numbers;
  for (const LiteSize& s : sizes) {
    Endpoint product = s.is_known() || s.known != 1 ? l.Int(s.known) : Endpoint();
    for (const auto& [e, axis] : s.free) {
      ASSIGN_OR_RETURN(const Endpoint size, SizeOf(e, axis, l));
      if (product.node == nullptr) {
        product = size;
      } else {
        ASSIGN_OR_RETURN(product, l.Add("tfl.mul", {product, size}, {}, number));
      }
    }
    numbers.push_back(product);
  }
  return l.Add("tfl.pack", numbers,
               Options({{"values_count", static_cast<int64_t>(numbers.size())}}),
               {Dtype::kInt32, PartialShape::Of({static_cast<int64_t>(numbers.size())})});
}

StatusOr<Endpoint> WithSizes(Endpoint e, const LiteSizes& sizes, Legalizer& l) {
  const PartialShape to = ShapeOfSizes(sizes);
  if (SameWhenEqualElements(l.shape(e), to) || AreOf(sizes, e, l)) return e;
  if (const auto value = l.Constant(e); value && to.fully_known()) {
    return l.Const(value->WithShape(to.ToShape()));
  }
  if (e.node->Is("tfl.reshape")) {
    const Endpoint from = e.node->input(0);
    if (SameWhenEqualElements(l.shape(from), to)) return from;
    if (l.shape(from).known_rank()) e = from;
  }
  // Beside a size of zero a free one cannot be told.
  const auto free = std::ranges::count_if(to.dims(), [](int64_t d) { return d < 0; });
  const bool empty = std::ranges::find(to.dims(), 0) != to.dims().end();
  AttrMap options;
  Endpoint shape;
  if (free == 0 || (free == 1 && !empty)) {
    options.Set("new_shape", std::vector<int64_t>(to.dims().begin(), to.dims().end()));
    shape = l.Ints(to.dims());
  } else {
    ASSIGN_OR_RETURN(shape, SizesVector(sizes, l));
  }
  return l.Add("tfl.reshape", {e, shape}, std::move(options), {l.type(e), to});
}

}  // namespace smelt
