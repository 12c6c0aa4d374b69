#include "smelt/graph/op_name.h"

#include <bit>

namespace smelt {
namespace {

constexpr size_t kSlots = std::bit_ceil(size_t{4} * internal::kNumOps);

constexpr size_t SlotOf(absl::string_view name) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash ^ (hash >> 15)) % kSlots;
}

// The numbers of ops by the hash of their names; a slot that is taken passes on to the next. Models
// name an op for each node, so that a search of the sorted names would take a good part of reading.
constexpr std::array<int16_t, kSlots> kNumbers = [] {
  std::array<int16_t, kSlots> numbers{};
  numbers.fill(-1);
  for (int i = 0; i < internal::kNumOps; ++i) {
    size_t slot = SlotOf(internal::kOpNames[i]);
    while (numbers[slot] >= 0) slot = (slot + 1) % kSlots;
    numbers[slot] = static_cast<int16_t>(i);
  }
  return numbers;
}();

}  // namespace

OpName OpName::Of(absl::string_view name) {
  for (size_t slot = SlotOf(name);; slot = (slot + 1) % kSlots) {
    const int16_t number = kNumbers[slot];
    if (number < 0 || name == internal::kOpNames[number]) return OfNumber(number);
  }
}

}  // namespace smelt
