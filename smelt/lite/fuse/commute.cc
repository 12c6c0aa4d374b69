// Transposes and reshapes that pass each other, where what is behind, or before, takes one of both
// in.
#include <algorithm>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

using DimOrder = std::vector<int64_t>;

constexpr OpSet kPlainReshapes = {"tfl.reshape", "tfl.squeeze", "tfl.expand_dims"};

// What a transpose by a constant does: dimension i of its result is order[i] of its input.
std::optional<DimOrder> TransposedBy(const Node& n) {
  if (!n.Is("tfl.transpose")) return std::nullopt;
  std::optional<DimOrder> order = IntsOf(n.input(1));
  if (!order || Fuser::shape(n.input(0)).rank() != static_cast<int>(order->size())) {
    return std::nullopt;
  }
  DimOrder sorted = *order;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return std::nullopt;
  }
  return order;
}

// A dimension of more than one, or of a size that is not known.
struct LongDim {
  int64_t at, size;
};
std::vector<LongDim> LongDims(const PartialShape& s) {
  std::vector<LongDim> out;
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] != 1) out.push_back({i, std::max<int64_t>(s[i], -1)});
  }
  return out;
}

// Dimensions [from, from_end) that a reshape makes the dimensions [to, to_end).
struct DimBlock {
  size_t from, from_end, to, to_end;
};

// As many blocks as there can be; nothing where sizes do not tell.
std::optional<std::vector<DimBlock>> BlocksOf(const std::vector<LongDim>& from,
                                              const std::vector<LongDim>& to) {
  std::vector<DimBlock> out;
  size_t i = 0, k = 0;
  while (i < from.size() && k < to.size()) {
    DimBlock b = {i, i + 1, k, k + 1};
    int64_t a = from[i].size, c = to[k].size;
    if (a < 0 || c < 0) {
      if (a != c) return std::nullopt;
    } else {
      while (a != c) {
        std::vector<LongDim> const& side = a < c ? from : to;
        size_t& end = a < c ? b.from_end : b.to_end;
        if (end == side.size() || side[end].size <= 0 || a == 0 || c == 0) return std::nullopt;
        (a < c ? a : c) *= side[end++].size;
      }
    }
    i = b.from_end;
    k = b.to_end;
    out.push_back(b);
  }
  if (i != from.size() || k != to.size()) return std::nullopt;
  return out;
}

// A reshape to `sizes`, and a transposition of its result.
struct ReshapedFirst {
  std::vector<int64_t> sizes;
  DimOrder order;
};

// What reshape(transpose(x)) is, the reshape first. Nothing where it joins what the transpose put
// side by side.
std::optional<ReshapedFirst> ReshapeFirst(const PartialShape& x, const DimOrder& order,
                                          const PartialShape& to) {
  if (x.rank() != static_cast<int>(order.size()) || !to.known_rank()) return std::nullopt;
  std::vector<LongDim> turned;
  for (const int64_t o : order) {
    const int64_t size = x[static_cast<int>(o)];
    if (size != 1) turned.push_back({o, std::max<int64_t>(size, -1)});
  }
  const std::vector<LongDim> made = LongDims(to);
  const auto blocks = BlocksOf(turned, made);
  if (!blocks) return std::nullopt;
  const std::vector<LongDim> own = LongDims(x);
  const auto place = [&](size_t i) {
    return std::ranges::find(own, turned[i].at, &LongDim::at) - own.begin();
  };
  for (const DimBlock& b : *blocks) {
    for (size_t i = b.from + 1; i < b.from_end; ++i) {
      if (place(i) != place(i - 1) + 1) return std::nullopt;
    }
  }
  // Blocks as x has them; dimensions of one stay behind the dimension that they follow.
  std::vector<size_t> in_x(blocks->size());
  for (size_t i = 0; i < in_x.size(); ++i) in_x[i] = i;
  std::ranges::sort(in_x, {}, [&](size_t b) { return place((*blocks)[b].from); });
  ReshapedFirst out;
  out.order.resize(static_cast<size_t>(to.rank()));
  const auto put = [&](int64_t from, int64_t end) {
    for (int64_t d = from; d < end; ++d) {
      out.order[static_cast<size_t>(d)] = static_cast<int64_t>(out.sizes.size());
      out.sizes.push_back(std::max<int64_t>(to[static_cast<int>(d)], -1));
    }
  };
  put(0, made.empty() ? to.rank() : made[0].at);
  for (const size_t b : in_x) {
    const DimBlock& block = (*blocks)[b];
    const int64_t end = block.to_end == made.size() ? to.rank() : made[block.to_end].at;
    put(made[block.to].at, end);
  }
  return out;
}

// What transpose(reshape(x)) is, the transpose first: its order.
std::optional<DimOrder> TransposeFirst(const PartialShape& x, const PartialShape& between,
                                       const DimOrder& order) {
  if (!x.known_rank() || between.rank() != static_cast<int>(order.size())) return std::nullopt;
  const std::vector<LongDim> from = LongDims(x), to = LongDims(between);
  const auto blocks = BlocksOf(from, to);
  if (!blocks) return std::nullopt;
  std::vector<size_t> turned;  // long dimensions of `between`, as the result has them
  for (const int64_t o : order) {
    const auto at = std::ranges::find(to, o, &LongDim::at);
    if (at != to.end()) turned.push_back(static_cast<size_t>(at - to.begin()));
  }
  DimOrder out;
  const auto put = [&](int64_t first, int64_t end) {
    for (int64_t d = first; d < end; ++d) out.push_back(d);
  };
  put(0, from.empty() ? x.rank() : from[0].at);
  for (size_t i = 0; i < turned.size();) {
    const auto block = std::ranges::find(*blocks, turned[i], &DimBlock::to);
    if (block == blocks->end()) return std::nullopt;
    for (size_t k = block->to; k < block->to_end; ++k, ++i) {
      if (i == turned.size() || turned[i] != k) return std::nullopt;
    }
    put(from[block->from].at, block->from_end == from.size() ? x.rank() : from[block->from_end].at);
  }
  return out;
}

bool StaysInOrder(const DimOrder& order) { return std::ranges::is_sorted(order); }

bool SwapsLast(const DimOrder& order) {
  if (order.size() < 2) return false;
  DimOrder plain = order;
  std::swap(plain[plain.size() - 1], plain[plain.size() - 2]);
  return StaysInOrder(plain);
}

PartialShape InOrder(const std::vector<int64_t>& sizes, const DimOrder& order) {
  std::vector<int64_t> dims;
  for (const int64_t o : order) dims.push_back(sizes[static_cast<size_t>(o)]);
  return PartialShape::Of(dims);
}

StatusOr<Endpoint> TransposedTo(Endpoint e, const DimOrder& order, const Node& like, Fuser& f) {
  if (StaysInOrder(order)) return e;
  return f.AddShaped("tfl.transpose", {e, IntsConst(order, like, f)}, {}, Fuser::type(e),
                     InOrder(StatedSizes(Fuser::shape(e)), order), like);
}

// reshape(transpose(x)) of dimensions of one, and reshape(transpose(reshape(x))).
StatusOr<bool> FuseReshapesAroundTranspose(Node& n, Fuser& f) {
  const Node& transpose = *n.input(0).node;
  const auto order = TransposedBy(transpose);
  if (!order) return false;
  const Endpoint x = transpose.input(0);
  const PartialShape from = Fuser::shape(x), to = Fuser::shape({&n, 0});
  const auto first = ReshapeFirst(from, *order, to);
  if (first && StaysInOrder(first->order) && CanReshapeTo(first->sizes)) {
    ASSIGN_OR_RETURN(const Endpoint by, f.Reshape(x, first->sizes, n));
    f.Replace(&n, by);
    return true;
  }
  if (!x.node->Is(kPlainReshapes) || !Fuser::ReadOnce(x) || !Fuser::ReadOnce(n.input(0))) {
    return false;
  }
  const Endpoint begin = x.node->input(0);
  if (first && CanReshapeTo(first->sizes)) {
    ASSIGN_OR_RETURN(const Endpoint shaped, f.Reshape(begin, first->sizes, n));
    ASSIGN_OR_RETURN(const Endpoint by, TransposedTo(shaped, first->order, n, f));
    f.Replace(&n, by);
    return true;
  }
  const auto before = TransposeFirst(Fuser::shape(begin), from, *order);
  const std::vector<int64_t> sizes = StatedSizes(to);
  if (!before || !to.known_rank() || !CanReshapeTo(sizes)) {
    return f.Declined(n, "the transpose parts what the reshapes join");
  }
  ASSIGN_OR_RETURN(const Endpoint turned, TransposedTo(begin, *before, n, f));
  ASSIGN_OR_RETURN(const Endpoint by, f.Reshape(turned, sizes, n));
  f.Replace(&n, by);
  return true;
}

// transpose(reshape(transpose(x))).
StatusOr<bool> FuseTransposesAroundReshape(Node& n, Fuser& f) {
  const Endpoint between = n.input(0);
  const auto outer = TransposedBy(n);
  if (!outer || !between.node->Is(kPlainReshapes)) return false;
  const Endpoint turned = between.node->input(0);
  const auto inner = TransposedBy(*turned.node);
  if (!inner) return false;
  if (!Fuser::ReadOnce(between) || !Fuser::ReadOnce(turned)) {
    return f.Declined(n, "others read what it follows");
  }
  const Endpoint x = turned.node->input(0);
  const PartialShape to = Fuser::shape({&n, 0});
  const auto first = ReshapeFirst(Fuser::shape(x), *inner, Fuser::shape(between));
  if (first && CanReshapeTo(first->sizes)) {
    DimOrder both;
    for (const int64_t o : *outer) both.push_back(first->order[static_cast<size_t>(o)]);
    ASSIGN_OR_RETURN(const Endpoint shaped, f.Reshape(x, first->sizes, n));
    ASSIGN_OR_RETURN(const Endpoint by, TransposedTo(shaped, both, n, f));
    f.Replace(&n, by);
    return true;
  }
  const auto before = TransposeFirst(Fuser::shape(turned), Fuser::shape(between), *outer);
  const std::vector<int64_t> sizes = StatedSizes(to);
  if (!before || !to.known_rank() || !CanReshapeTo(sizes)) {
    return f.Declined(n, "the reshape joins what the transposes part");
  }
  DimOrder both;
  for (const int64_t o : *before) both.push_back((*inner)[static_cast<size_t>(o)]);
  ASSIGN_OR_RETURN(const Endpoint moved, TransposedTo(x, both, n, f));
  ASSIGN_OR_RETURN(const Endpoint by, f.Reshape(moved, sizes, n));
  f.Replace(&n, by);
  return true;
}

// batch_matmul(x, reshape(transpose(y))), whose transpose moves the last two dimensions that the
// reshape leaves.
StatusOr<bool> FuseTransposedReshapeIntoBatchMatmul(Node& n, Fuser& f) {
  for (const int i : {0, 1}) {
    const Endpoint e = n.input(i);
    if (!e.node->Is(kPlainReshapes)) continue;
    const Endpoint turned = e.node->input(0);
    const auto order = TransposedBy(*turned.node);
    if (!order || !Fuser::ReadOnce(e) || !Fuser::ReadOnce(turned)) continue;
    const Endpoint x = turned.node->input(0);
    const auto first = ReshapeFirst(Fuser::shape(x), *order, Fuser::shape(e));
    if (!first || !SwapsLast(first->order) || !CanReshapeTo(first->sizes)) {
      f.Declined(n, absl::StrCat("'", turned.node->name(), "' moves more than the last two"));
      continue;
    }
    ASSIGN_OR_RETURN(const Endpoint by, f.Reshape(x, first->sizes, n));
    const absl::string_view option = i == 0 ? "adj_x" : "adj_y";
    n.AttrsToChange().Set(option, !n.Bool(option));
    f.SetInput(&n, i, by);
    return true;
  }
  return false;
}

// transpose(reshape(batch_matmul(x, y))) -> reshape(batch_matmul(y, x)), both transposed.
StatusOr<bool> FuseTransposeAfterReshapedBatchMatmul(Node& n, Fuser& f) {
  const Endpoint between = n.input(0);
  const auto order = TransposedBy(n);
  if (!order || !between.node->Is(kPlainReshapes)) return false;
  const Endpoint e = between.node->input(0);
  if (!e.node->Is("tfl.batch_matmul")) return false;
  if (!Fuser::ReadOnce(between) || !Fuser::ReadOnce(e)) {
    return f.Declined(n, "others read what it follows");
  }
  const Node& product = *e.node;
  const auto before = TransposeFirst(Fuser::shape(e), Fuser::shape(between), *order);
  const std::vector<int64_t> sizes = StatedSizes(Fuser::shape({&n, 0}));
  if (!before || !SwapsLast(*before) || !CanReshapeTo(sizes)) {
    return f.Declined(n, "it moves more than rows and columns");
  }
  AttrMap options = OptionsOf(product);
  options.Set("adj_x", !product.Bool("adj_y"));
  options.Set("adj_y", !product.Bool("adj_x"));
  ASSIGN_OR_RETURN(
      const Endpoint swapped,
      f.AddShaped("tfl.batch_matmul", {product.input(1), product.input(0)}, std::move(options),
                  Fuser::type(e), InOrder(StatedSizes(Fuser::shape(e)), *before), n));
  ASSIGN_OR_RETURN(const Endpoint by, f.Reshape(swapped, sizes, n));
  f.Replace(&n, by);
  return true;
}

constexpr Fusion kCommuteFusions[] = {
    {"FuseReshapesAroundTranspose", kPlainReshapes, FuseReshapesAroundTranspose,
     "reshape(transpose(reshape(x))) -> transpose(reshape(x)), or reshape(transpose(x))"},
    {"FuseTransposesAroundReshape",
     {"tfl.transpose"},
     FuseTransposesAroundReshape,
     "transpose(reshape(transpose(x))) -> transpose(reshape(x)), or reshape(transpose(x))"},
    {"FuseTransposedReshapeIntoBatchMatmul",
     {"tfl.batch_matmul"},
     FuseTransposedReshapeIntoBatchMatmul,
     "batch_matmul(x, reshape(transpose(y))) -> batch_matmul(x, reshape(y)) with adj_y"},
    {"FuseTransposeAfterReshapedBatchMatmul",
     {"tfl.transpose"},
     FuseTransposeAfterReshapedBatchMatmul,
     "transpose(reshape(batch_matmul(x, y))) -> reshape(batch_matmul(y, x)), both transposed"},
};

}  // namespace

std::span<const Fusion> CommuteFusions() { return kCommuteFusions; }

}  // namespace smelt
