#include "smelt/tensor/shape.h"

#include <limits>

#include "absl/strings/str_join.h"

namespace smelt {

StatusOr<Shape> Shape::Make(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("Shape has rank ", dims.size(), ", more than ", kMaxRank);
  }
  int64_t n = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) {
      return InvalidArgument("Shape ", PartialShape::Of(dims).ToString(), " is not fully defined");
    }
    if (d == 0) empty = true;
    if (!empty && __builtin_mul_overflow(n, d, &n)) {
      return InvalidArgument("Shape [", absl::StrJoin(dims, ","),
                             "] would have more than 2**63 - 1 elements");
    }
  }
  return Shape(dims);
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims_, ","), "]"); }

PartialShape PartialShape::UnknownOfRank(int rank) {
  PartialShape s;
  s.known_rank_ = true;
  s.dims_.assign(rank, -1);
  return s;
}

PartialShape PartialShape::Of(std::span<const int64_t> dims) {
  PartialShape s;
  s.known_rank_ = true;
  for (int64_t d : dims) s.dims_.push_back(d < 0 && !IsSymbolicDim(d) ? -1 : d);
  return s;
}

bool PartialShape::fully_known() const {
  if (!known_rank_) return false;
  for (int64_t d : dims_) {
    if (d < 0) return false;
  }
  return true;
}

bool PartialShape::Matches(const Shape& s) const {
  if (!known_rank_) return true;
  if (s.rank() != rank()) return false;
  for (int i = 0; i < rank(); ++i) {
    if (dims_[i] >= 0 && dims_[i] != s[i]) return false;
  }
  return true;
}

StatusOr<PartialShape> PartialShape::Merge(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank_) return b;
  if (!b.known_rank_) return a;
  if (a.rank() != b.rank()) {
    return InvalidArgument("Shapes must be equal rank, but are ", a.rank(), " and ", b.rank());
  }
  PartialShape out = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] < 0) {
      // The number, else a symbol.
      if (b[i] != -1) out.dims_[i] = b[i];
    } else if (b[i] >= 0 && a[i] != b[i]) {
      return InvalidArgument("Dimension ", i, " in both shapes must be equal, but are ", a[i],
                             " and ", b[i], ". Shapes are ", a.ToString(), " and ", b.ToString(),
                             ".");
    }
  }
  return out;
}

std::string PartialShape::ToString() const {
  if (!known_rank_) return "<unknown>";
  std::string out = "[";
  for (size_t i = 0; i < dims_.size(); ++i) {
    absl::StrAppend(&out, i ? "," : "");
    if (dims_[i] < 0) {
      absl::StrAppend(&out, "?");
    } else {
      absl::StrAppend(&out, dims_[i]);
    }
  }
  return absl::StrCat(out, "]");
}

}  // namespace smelt
