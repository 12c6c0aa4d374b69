// Ranges that a model states itself: what its training rounded to (FakeQuant), which exports leave
// as a QUANTIZE to int8 that has kDeclaresRange, and a DEQUANTIZE behind it. Integers of 16 bits
// are symmetric and do not end where such a range does, so that there roundings stay what they are.
#ifndef SMELT_LITE_QUANTIZE_DECLARED_RANGES_H_
#define SMELT_LITE_QUANTIZE_DECLARED_RANGES_H_

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "smelt/graph/graph.h"
#include "smelt/lite/quantize/integer_format.h"

namespace smelt {

// The QUANTIZE that states the range of this value, its result made float again; nullptr: none.
Node* DeclarationOf(Endpoint e);
// Does any node state a range?
bool HasDeclaredRanges(const Graph& graph);

struct Declared {
  Params params;
  LiteRange range;  // as the model names it: the integers may begin a part of a step beside
};
using DeclaredParams = absl::flat_hash_map<std::pair<const Node*, int>, Declared>;

// The params of values, in int8: those that are stated; of what is read by nothing
// but such a statement; and of what follows from these because an operator keeps the scale, or has
// a range of its own. `given` comes before what the graph states. `rest`: the range of results of
// operators with kernels for integers of which nothing else is known. Nothing where none is stated
// or given. `uint8`: params of int8 that stand for the same numbers as those of uint8.
// `own_ranges`: false where results of such operators are not taken for stated. REQUIRES: `order`
// is topological.
DeclaredParams FindDeclaredParams(std::span<Node* const> order, DeclaredParams given = {},
                                  const std::optional<Declared>& rest = std::nullopt,
                                  bool uint8 = false, bool own_ranges = true);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_DECLARED_RANGES_H_
