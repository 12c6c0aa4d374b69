#include "smelt/kernels/common/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "smelt/base/parallel.h"

namespace smelt {
namespace {

// The fewest bytes that are worth a thread: of contiguous runs, and of elements moved one by one.
constexpr int64_t kCopyRunGrain = 256 << 10;
constexpr int64_t kCopyElementGrain = 96 << 10;

template <typename T>
void CopyElements(T* __restrict dst, const T* __restrict src, int64_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    // Short runs are common (a last dimension of 1 to 4), and a call of memcpy costs more.
    if (n <= 4) {
      for (int64_t i = 0; i < n; ++i) dst[i] = src[i];
    } else {
      std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
    }
  } else {
    std::copy_n(src, n, dst);
  }
}

// Walks all index tuples of `dims`, the last one fastest.
class CopyWalk {
 public:
  CopyWalk(std::span<const CopyDim> dims, int64_t start) : dims_(dims), index_(dims.size(), 0) {
    for (size_t d = dims.size(); d-- > 0 && start > 0;) {
      index_[d] = start % dims[d].size;
      start /= dims[d].size;
      dst += index_[d] * dims[d].dst;
      src += index_[d] * dims[d].src;
    }
  }
  void Next() {
    for (size_t d = dims_.size(); d-- > 0;) {
      dst += dims_[d].dst;
      src += dims_[d].src;
      if (++index_[d] < dims_[d].size) return;
      dst -= dims_[d].dst * dims_[d].size;
      src -= dims_[d].src * dims_[d].size;
      index_[d] = 0;
    }
  }

  int64_t dst = 0;
  int64_t src = 0;

 private:
  std::span<const CopyDim> dims_;
  absl::InlinedVector<int64_t, 8> index_;
};

typedef uint32_t Quad __attribute__((vector_size(16)));

// dst[k * dst_stride + i] = src[i * src_stride + k] for i < rows, k < cols.
template <typename T>
void TransposeTile(T* __restrict dst, int64_t dst_stride, const T* __restrict src,
                   int64_t src_stride, int64_t rows, int64_t cols) {
  int64_t k0 = 0;
  if constexpr (sizeof(T) == 4 && std::is_trivially_copyable_v<T>) {
    for (; k0 + 4 <= cols; k0 += 4) {
      int64_t i = 0;
      for (; i + 4 <= rows; i += 4) {
        const T* s = src + i * src_stride + k0;
        T* d = dst + k0 * dst_stride + i;
        auto load = [&](int64_t r) {
          Quad q;
          std::memcpy(&q, s + r * src_stride, sizeof(q));
          return q;
        };
        const Quad r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
        const Quad a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
        const Quad b = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
        const Quad c = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
        const Quad e = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
        auto store = [&](int64_t r, Quad v) { std::memcpy(d + r * dst_stride, &v, sizeof(v)); };
        store(0, __builtin_shufflevector(a, b, 0, 1, 4, 5));
        store(1, __builtin_shufflevector(a, b, 2, 3, 6, 7));
        store(2, __builtin_shufflevector(c, e, 0, 1, 4, 5));
        store(3, __builtin_shufflevector(c, e, 2, 3, 6, 7));
      }
      for (; i < rows; ++i) {
        for (int64_t k = k0; k < k0 + 4; ++k) dst[k * dst_stride + i] = src[i * src_stride + k];
      }
    }
  }
  if (rows < cols - k0) {
    for (int64_t k = k0; k < cols; ++k) {
      for (int64_t i = 0; i < rows; ++i) dst[k * dst_stride + i] = src[i * src_stride + k];
    }
  } else {
    for (int64_t k = k0; k < cols; ++k) {
      T* __restrict d = dst + k * dst_stride;
      for (int64_t i = 0; i < rows; ++i) d[i] = src[i * src_stride + k];
    }
  }
}

// The same loops in the same order, without those of one turn; two that walk as one are joined.
CopyDims Simplify(std::span<const CopyDim> dims) {
  CopyDims out;
  for (const CopyDim& d : dims) {
    if (d.size == 1) continue;
    if (!out.empty() && out.back().dst == d.size * d.dst && out.back().src == d.size * d.src) {
      out.back() = {out.back().size * d.size, d.dst, d.src};
    } else {
      out.push_back(d);
    }
  }
  return out;
}

int64_t Turns(std::span<const CopyDim> dims) {
  int64_t n = 1;
  for (const CopyDim& d : dims) n *= d.size;
  return n;
}

template <typename T>
void CopyByRuns(T* dst, const T* src, std::span<const CopyDim> outer, int64_t run) {
  const int64_t turns = Turns(outer);
  const auto size = static_cast<int64_t>(sizeof(T));
  if (turns * run * size <= 2 * kCopyRunGrain) {
    if (turns == 1) return CopyElements(dst, src, run);
    CopyWalk walk(outer, 0);
    for (int64_t t = 0; t < turns; ++t, walk.Next()) {
      CopyElements(dst + walk.dst, src + walk.src, run);
    }
    return;
  }
  // Few long runs are cut so that all threads have work.
  const int64_t piece = std::min(run, std::max<int64_t>(1, kCopyRunGrain / size));
  const int64_t pieces = (run + piece - 1) / piece;
  ParallelFor(turns * pieces, std::max<int64_t>(1, kCopyRunGrain / (piece * size)),
              [&](int64_t begin, int64_t end) {
                CopyWalk walk(outer, begin / pieces);
                int64_t p = begin % pieces;
                for (int64_t t = begin; t < end; ++t) {
                  const int64_t at = p * piece;
                  CopyElements(dst + walk.dst + at, src + walk.src + at, std::min(piece, run - at));
                  if (++p == pieces) {
                    p = 0;
                    walk.Next();
                  }
                }
              });
}

// Copies in tiles: `across` is contiguous in src, `along` in dst, and neither order suits both.
template <typename T>
void CopyTransposed(T* dst, const T* src, std::span<const CopyDim> outer, const CopyDim& across,
                    const CopyDim& along) {
  // A tile's lines on both sides stay in the first cache; few columns allow more rows.
  const int64_t side = std::max<int64_t>(8, 64 / static_cast<int64_t>(sizeof(T)));
  const int64_t tile_cols = along.size < side ? 8 * side : side;
  const int64_t tile_rows = across.size < side ? 8 * side : side;
  const int64_t blocks = (across.size + tile_cols - 1) / tile_cols;
  const int64_t turns = Turns(outer) * blocks;
  const int64_t bytes = std::min(tile_cols, across.size) * along.size * sizeof(T);
  ParallelFor(turns, std::max<int64_t>(1, kCopyElementGrain / bytes),
              [&](int64_t begin, int64_t end) {
                CopyWalk walk(outer, begin / blocks);
                int64_t b = begin % blocks;
                for (int64_t t = begin; t < end; ++t) {
                  const int64_t k = b * tile_cols;
                  const int64_t cols = std::min(tile_cols, across.size - k);
                  for (int64_t i = 0; i < along.size; i += tile_rows) {
                    TransposeTile(dst + walk.dst + k * across.dst + i, across.dst,
                                  src + walk.src + i * along.src + k, along.src,
                                  std::min(tile_rows, along.size - i), cols);
                  }
                  if (++b == blocks) {
                    b = 0;
                    walk.Next();
                  }
                }
              });
}

template <typename T>
void CopyOneByOne(T* dst, const T* src, std::span<const CopyDim> outer, const CopyDim& inner) {
  const int64_t bytes = inner.size * static_cast<int64_t>(sizeof(T));
  ParallelFor(Turns(outer), std::max<int64_t>(1, kCopyElementGrain / bytes),
              [&](int64_t begin, int64_t end) {
                CopyWalk walk(outer, begin);
                for (int64_t t = begin; t < end; ++t, walk.Next()) {
                  T* __restrict d = dst + walk.dst;
                  const T* __restrict s = src + walk.src;
                  if (inner.src == 0) {
                    const T value = *s;
                    if (inner.dst == 1) {
                      std::fill_n(d, inner.size, value);
                    } else {
                      for (int64_t i = 0; i < inner.size; ++i) d[i * inner.dst] = value;
                    }
                  } else if (inner.dst == 1) {
                    for (int64_t i = 0; i < inner.size; ++i) d[i] = s[i * inner.src];
                  } else {
                    for (int64_t i = 0; i < inner.size; ++i) d[i * inner.dst] = s[i * inner.src];
                  }
                }
              });
}

template <typename T>
void CopyTyped(T* dst, const T* src, std::span<const CopyDim> loops) {
  if (loops.empty()) {
    *dst = *src;
    return;
  }
  const CopyDim inner = loops.back();
  const std::span<const CopyDim> outer = loops.first(loops.size() - 1);
  if (inner.dst == 1 && inner.src == 1) return CopyByRuns(dst, src, outer, inner.size);
  if (inner.dst == 1 && inner.src != 0) {
    for (size_t d = 0; d < outer.size(); ++d) {
      if (outer[d].src != 1) continue;
      CopyDims rest(outer.begin(), outer.end());
      rest.erase(rest.begin() + d);
      return CopyTransposed<T>(dst, src, rest, outer[d], inner);
    }
  }
  CopyOneByOne(dst, src, outer, inner);
}

}  // namespace

StridedCopy::StridedCopy(Dtype dtype, std::span<const CopyDim> dims)
    : dtype_(dtype),
      empty_(std::ranges::any_of(dims, [](const CopyDim& d) { return d.size == 0; })) {
  if (!empty_) loops_ = Simplify(dims);
}

int64_t StridedCopy::side_by_side() const {
  if (empty_) return 0;
  if (loops_.empty()) return 1;
  const bool one = loops_.size() == 1 && loops_[0].dst == 1 && loops_[0].src == 1;
  return one ? loops_[0].size : -1;
}

void StridedCopy::Run(void* dst, const void* src) const {
  if (empty_) return;
  VisitMovable(dtype_, [&]<typename T>() {
    CopyTyped<T>(static_cast<T*>(dst), static_cast<const T*>(src), loops_);
  });
}

void CopyStrided(Dtype dtype, void* dst, const void* src, std::span<const CopyDim> dims) {
  StridedCopy(dtype, dims).Run(dst, src);
}

void CopyRun(Dtype dtype, void* dst, const void* src, int64_t n) {
  VisitMovable(dtype, [&]<typename T>() {
    CopyElements(static_cast<T*>(dst), static_cast<const T*>(src), n);
  });
}

void FillRun(Dtype dtype, void* dst, const void* value, int64_t n) {
  VisitMovable(dtype, [&]<typename T>() {
    T* const d = static_cast<T*>(dst);
    const T v = *static_cast<const T*>(value);
    ParallelFor(n, kCopyRunGrain / static_cast<int64_t>(sizeof(T)),
                [&](int64_t begin, int64_t end) { std::fill(d + begin, d + end, v); });
  });
}

void ClearRun(Dtype dtype, void* dst, int64_t n) {
  if (IsPod(dtype)) {
    if (n > 0) std::memset(dst, 0, static_cast<size_t>(n) * DtypeSize(dtype));
    return;
  }
  VisitMovable(dtype, [&]<typename T>() { std::fill_n(static_cast<T*>(dst), n, T()); });
}

Dims Strides(const Shape& shape) {
  Dims strides(shape.rank());
  int64_t n = 1;
  for (int d = shape.rank(); d-- > 0;) {
    strides[d] = n;
    n *= shape[d];
  }
  return strides;
}

}  // namespace smelt
