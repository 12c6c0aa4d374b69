// FlexBuffers: the options of custom operators, which state names beside values.
#ifndef SMELT_WIRE_TFLITE_FLEX_H_
#define SMELT_WIRE_TFLITE_FLEX_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "smelt/graph/attr.h"

namespace smelt {

using FlexEntry = std::pair<std::string, Attr>;

// A map. Keys are written in the order given, and found in any. INVALID_ARGUMENT names a value that
// is none of string, int, float, bool and lists of strings, ints and floats, and a key that holds a
// zero byte.
StatusOr<std::string> FlexMap(std::span<const FlexEntry> entries);
// What a map states, in its order: numbers (int, or float for whatever has a fraction), truth
// values and short texts; other values, null among them, are left out. INVALID_ARGUMENT for bytes
// that are no map, and for more entries than any operator has options.
StatusOr<std::vector<FlexEntry>> ReadFlexMap(absl::string_view bytes);

// Two texts, as an operator of the Flex delegate has them: the name of an op, and a NodeDef.
struct FlexPair {
  std::string first, second;
};
std::string WriteFlexPair(const FlexPair& pair);
// INVALID_ARGUMENT for bytes that are none.
StatusOr<FlexPair> ReadFlexPair(absl::string_view bytes);

}  // namespace smelt

#endif  // SMELT_WIRE_TFLITE_FLEX_H_
