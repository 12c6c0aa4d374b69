// Names of ops, interned: every op of the tables (ops/ops.txt, ops/own_ops.txt) has a number, so
// that asking which op a node is compares no text, and a name that is spelled wrong in the source
// does not compile.
//
// A model may name ops that no table has: its functions, its own ops, unknown ones. Those have no
// number and are compared by their text. All of this is immutable; any thread.
#ifndef SMELT_GRAPH_OP_NAME_H_
#define SMELT_GRAPH_OP_NAME_H_

#include <array>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/string_view.h"

namespace smelt {

namespace internal {

inline constexpr const char* kOpNames[] = {
#include "op_names.inc"
};
inline constexpr int kNumOps = static_cast<int>(std::size(kOpNames));

// The position in kOpNames, or -1.
constexpr int FindOpNumber(absl::string_view name) {
  int low = 0, high = kNumOps;
  while (low < high) {
    const int middle = (low + high) / 2;
    const char* row = kOpNames[middle];
    size_t i = 0;
    while (i < name.size() && row[i] != 0 && row[i] == name[i]) ++i;
    const unsigned char a = static_cast<unsigned char>(row[i]);
    const unsigned char b = i < name.size() ? static_cast<unsigned char>(name[i]) : 0;
    if (a == b && i == name.size()) return middle;
    if (a < b) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return -1;
}

}  // namespace internal

class OpName {
 public:
  // Unknown.
  constexpr OpName() = default;
  // Of a literal; does not compile when no table has the op.
  consteval OpName(const char* name)  // NOLINT: reads as text where it is used
      : number_(static_cast<int16_t>(internal::FindOpNumber(name))) {
    if (number_ < 0) throw "no table of ops has this name";
  }
  // Of any text; unknown() where no table has it.
  static OpName Of(absl::string_view name);
  // REQUIRES: -1 <= number < kNumOps; -1: unknown.
  static constexpr OpName OfNumber(int number) {
    OpName op;
    op.number_ = static_cast<int16_t>(number);
    return op;
  }

  constexpr bool unknown() const { return number_ < 0; }
  // From 0 to kNumOps - 1; -1 when unknown.
  constexpr int number() const { return number_; }
  // Empty when unknown.
  constexpr absl::string_view text() const {
    return unknown() ? absl::string_view() : internal::kOpNames[number_];
  }
  friend constexpr bool operator==(OpName, OpName) = default;

 private:
  int16_t number_ = -1;
};

inline constexpr int kNumOps = internal::kNumOps;

// A set of ops that have a number.
class OpSet {
 public:
  constexpr OpSet(std::initializer_list<OpName> ops) {
    for (const OpName op : ops) Add(op);
  }
  // REQUIRES: !op.unknown().
  constexpr void Add(OpName op) {
    words_[static_cast<size_t>(op.number()) / 64] |= uint64_t{1} << (op.number() % 64);
  }
  // An unknown op is in no set.
  constexpr bool Contains(OpName op) const {
    return !op.unknown() &&
           (words_[static_cast<size_t>(op.number()) / 64] >> (op.number() % 64) & 1) != 0;
  }

 private:
  std::array<uint64_t, (kNumOps + 63) / 64> words_{};
};

}  // namespace smelt

#endif  // SMELT_GRAPH_OP_NAME_H_
