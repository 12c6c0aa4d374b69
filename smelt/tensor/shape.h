// Shape: the size of each dimension of a tensor in memory. PartialShape: what is known of one
// before it runs (a rank that may be unknown, dimensions that may be -1 or a symbol).
#ifndef SMELT_TENSOR_SHAPE_H_
#define SMELT_TENSOR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "smelt/base/status.h"

namespace smelt {

using Dims = absl::InlinedVector<int64_t, 6>;

// The largest rank that TensorFlow accepts.
inline constexpr int kMaxRank = 254;

class Shape {
 public:
  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}

  // Checked: no negative size, rank within kMaxRank, element count within int64.
  static StatusOr<Shape> Make(std::span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int i) const { return dims_[i]; }
  // The i-th size from the end. REQUIRES: 1 <= i <= rank().
  int64_t back(int i = 1) const { return dims_[dims_.size() - i]; }
  std::span<const int64_t> dims() const { return dims_; }
  void Set(int i, int64_t size) { dims_[i] = size; }
  void Add(int64_t size) { dims_.push_back(size); }
  void Insert(int i, int64_t size) { dims_.insert(dims_.begin() + i, size); }
  void Remove(int i) { dims_.erase(dims_.begin() + i); }

  int64_t num_elements() const { return Product(0, rank()); }
  // Product of the sizes of dimensions [begin, end). In a shape without elements the other sizes
  // may multiply beyond int64: the product is then modulo 2^64, and no element is ever found by it.
  int64_t Product(int begin, int end) const {
    uint64_t n = 1;
    for (int i = begin; i < end; ++i) n *= static_cast<uint64_t>(dims_[i]);
    return static_cast<int64_t>(n);
  }

  bool operator==(const Shape& o) const { return dims_ == o.dims_; }

  std::string ToString() const;  // "[2,3]"

 private:
  Dims dims_;
};

// Sizes below this are symbols: not known, but the same wherever the same symbol stands. Shape
// inference makes them on request (graph/shape/infer.h); nobody else does.
inline constexpr int64_t kSymbolicDims = -(int64_t{1} << 62);
constexpr bool IsSymbolicDim(int64_t size) {
  return size < kSymbolicDims && size > std::numeric_limits<int64_t>::min();
}

class PartialShape {
 public:
  PartialShape() = default;     // unknown rank
  PartialShape(const Shape& s)  // NOLINT: every shape is a partial shape
      : known_rank_(true), dims_(s.dims().begin(), s.dims().end()) {}
  static PartialShape Unknown() { return PartialShape(); }
  static PartialShape UnknownOfRank(int rank);
  static PartialShape Of(std::span<const int64_t> dims);  // a negative size that is no symbol: -1
  static PartialShape Of(std::initializer_list<int64_t> dims) {
    return Of(std::span<const int64_t>(dims.begin(), dims.size()));
  }

  bool known_rank() const { return known_rank_; }
  int rank() const { return known_rank_ ? static_cast<int>(dims_.size()) : -1; }
  int64_t operator[](int i) const { return dims_[i]; }  // -1 or a symbol: unknown
  std::span<const int64_t> dims() const { return dims_; }
  void Set(int i, int64_t size) { dims_[i] = size; }
  void Add(int64_t size) { dims_.push_back(size); }

  bool fully_known() const;
  // REQUIRES: fully_known().
  Shape ToShape() const { return Shape(std::span<const int64_t>(dims_)); }
  // Does `s` have the rank and the sizes that are known here?
  bool Matches(const Shape& s) const;
  // What either knows. INVALID_ARGUMENT in TensorFlow's words when they contradict each other.
  static StatusOr<PartialShape> Merge(const PartialShape& a, const PartialShape& b);

  bool operator==(const PartialShape& o) const {
    return known_rank_ == o.known_rank_ && dims_ == o.dims_;
  }

  std::string ToString() const;  // "[?,3]", "<unknown>"

 private:
  bool known_rank_ = false;
  Dims dims_;
};

}  // namespace smelt

#endif  // SMELT_TENSOR_SHAPE_H_
