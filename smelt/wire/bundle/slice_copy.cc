#include "smelt/wire/bundle/slice_copy.h"

#include <algorithm>
#include <cstring>

namespace smelt {

std::optional<SliceOverlap> Overlap(std::span<const int64_t> source_starts, const Shape& source,
                                    std::span<const int64_t> target_starts, const Shape& target) {
  SliceOverlap o;
  for (int d = 0; d < source.rank(); ++d) {
    const size_t i = static_cast<size_t>(d);
    const int64_t begin = std::max(source_starts[i], target_starts[i]);
    const int64_t end = std::min(source_starts[i] + source[d], target_starts[i] + target[d]);
    if (end <= begin) return std::nullopt;
    o.source.push_back(begin - source_starts[i]);
    o.target.push_back(begin - target_starts[i]);
    o.count.push_back(end - begin);
    o.elements *= end - begin;
  }
  return o;
}

bool ForEachRun(const SliceOverlap& o, const Shape& source, const Shape& target,
                absl::FunctionRef<bool(int64_t, int64_t, int64_t)> run) {
  int outer = source.rank();  // dimensions [outer, rank) are one stretch
  int64_t length = 1;
  while (outer > 0) {
    const size_t d = static_cast<size_t>(--outer);
    length *= o.count[d];
    if (o.count[d] != source[outer] || o.count[d] != target[outer]) break;
  }
  Dims at(static_cast<size_t>(outer), 0);
  while (true) {
    int64_t from = 0, to = 0;
    for (int d = 0; d < source.rank(); ++d) {
      const size_t i = static_cast<size_t>(d);
      const int64_t step = d < outer ? at[i] : 0;
      from = from * source[d] + o.source[i] + step;
      to = to * target[d] + o.target[i] + step;
    }
    if (!run(from, to, length)) return false;
    int d = outer - 1;
    for (; d >= 0; --d) {
      const size_t i = static_cast<size_t>(d);
      if (++at[i] < o.count[i]) break;
      at[i] = 0;
    }
    if (d < 0) return true;
  }
}

void CopyElements(const Tensor& source, int64_t from, Tensor* target, int64_t to, int64_t n) {
  if (source.dtype() == Dtype::kString) {
    std::copy_n(source.data<std::string>() + from, n, target->data<std::string>() + to);
    return;
  }
  const size_t size = DtypeSize(source.dtype());
  std::memcpy(static_cast<char*>(target->raw()) + static_cast<size_t>(to) * size,
              static_cast<const char*>(source.raw()) + static_cast<size_t>(from) * size,
              static_cast<size_t>(n) * size);
}

bool ElementSet::Add(int64_t begin, int64_t n) {
  bool fresh = true;
  while (n > 0) {
    const int64_t bit = begin % 64, some = std::min(n, 64 - bit);
    const uint64_t mask = (~uint64_t{0} >> (64 - some)) << bit;
    uint64_t& word = words_[static_cast<size_t>(begin / 64)];
    fresh = fresh && (word & mask) == 0;
    word |= mask;
    begin += some;
    n -= some;
  }
  return fresh;
}

}  // namespace smelt
