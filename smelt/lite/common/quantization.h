// How outputs of nodes are quantized, as their attributes say (attributes.h).
#ifndef SMELT_LITE_COMMON_QUANTIZATION_H_
#define SMELT_LITE_COMMON_QUANTIZATION_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "smelt/graph/graph.h"

namespace smelt {

struct Quantization {
  std::vector<float> scales;  // none: it is not quantized
  std::vector<int64_t> zero_points;
  int64_t dim = 0;    // whose elements they are of, where there are several
  int64_t block = 0;  // elements of a row that share a scale; 0: scales are not of blocks
  bool operator==(const Quantization&) const = default;
};

Quantization QuantizationOf(const Node& n, int port);
inline Quantization QuantizationOf(Endpoint e) { return QuantizationOf(*e.node, e.port); }
// Of scales that are not of blocks.
void SetQuantization(AttrMap& attrs, int port, const Quantization& q);

// The least and the greatest of an output that samples showed, of a file that only states these.
void SetSeenRange(AttrMap& attrs, int port, float least, float greatest);
std::optional<std::pair<float, float>> SeenRangeOf(const Node& n, int port);

}  // namespace smelt

#endif  // SMELT_LITE_COMMON_QUANTIZATION_H_
