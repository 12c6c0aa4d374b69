// From which format to which a graph is converted, and for which kind of device. Immutable; any
// thread.
#ifndef SMELT_OPTIMIZE_LAYOUT_FORMAT_H_
#define SMELT_OPTIMIZE_LAYOUT_FORMAT_H_

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "smelt/optimize/passes.h"

namespace smelt::layout {

// The two formats of tensors of one rank, a letter for each dimension ("NHWC").
struct Formats {
  Formats(absl::string_view from, absl::string_view to);

  int rank() const { return static_cast<int>(src.size()); }
  // The dimension of the source format that a letter names; -1 for a letter that it lacks.
  int Dim(char letter) const {
    const size_t at = src.find(letter);
    return at == std::string::npos ? -1 : static_cast<int>(at);
  }

  std::string src, dst;
  // Dimension i of the target is dimension to_dst[i] of the source, and the other way: as Transpose
  // takes them.
  std::vector<int32_t> to_dst, to_src;
};

struct Conversion {
  std::string device_type;  // "GPU": nodes of other devices stay
  Formats images, volumes;  // of rank 4, of rank 5
  const Formats* OfRank(int rank) const {
    return rank == images.rank() ? &images : rank == volumes.rank() ? &volumes : nullptr;
  }
};

// What the machines of `context` and its configuration ask for; nothing: formats stay.
std::optional<Conversion> ChooseConversion(const Graph& graph, const PassContext& context);

// Does the node's device state a kind whose name contains `type`, and a number?
bool IsOnDevice(const Node& node, absl::string_view type);

// What belongs to dimension i of the target, of `per_dimension` values for each dimension.
// REQUIRES: as many values as the formats have dimensions, times `per_dimension`.
template <typename T>
std::vector<T> Permuted(const std::vector<T>& values, const std::vector<int32_t>& permutation,
                        int per_dimension = 1) {
  std::vector<T> out;
  for (const int32_t from : permutation) {
    for (int i = 0; i < per_dimension; ++i) {
      out.push_back(values[static_cast<size_t>(from * per_dimension + i)]);
    }
  }
  return out;
}

}  // namespace smelt::layout

#endif  // SMELT_OPTIMIZE_LAYOUT_FORMAT_H_
