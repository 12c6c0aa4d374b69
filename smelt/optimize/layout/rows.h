// What a change of format does to each op: rows by family (sensitive.cc, agnostic.cc).
//
// A sensitive op states its format, and is computed in another one where that is wanted. An
// agnostic op computes the same whatever the format; it takes tensors in the new format where it
// follows a node that gives such. Immutable; any thread.
#ifndef SMELT_OPTIMIZE_LAYOUT_ROWS_H_
#define SMELT_OPTIMIZE_LAYOUT_ROWS_H_

#include <initializer_list>
#include <span>

#include "smelt/optimize/layout/format.h"
#include "smelt/optimize/rewrite/rewriter.h"

namespace smelt::layout {

// How an input or output changes with the format.
enum class Form : uint8_t {
  kSame,
  kTensor,     // transposed
  kVector,     // a value for each dimension, or a row of them: permuted
  kDimension,  // numbers of dimensions
};

// Some of a node's inputs, or of its outputs.
class Ports {
 public:
  constexpr Ports() = default;
  constexpr Ports(std::initializer_list<int> ports) {
    for (const int p : ports) mask_ |= uint32_t{1} << p;
  }
  static constexpr Ports All() { return Ports(0, 0); }
  static constexpr Ports AllButFirst() { return Ports(1, 0); }
  static constexpr Ports AllButLast() { return Ports(0, 1); }
  static constexpr Ports Last() { return Ports(-1, 0); }

  constexpr bool empty() const { return mask_ == 0 && !range_; }
  // Is port `i` of `count` one of them?
  constexpr bool Has(int i, int count) const {
    if (!range_) return i < 32 && (mask_ >> i & 1) != 0;
    return i >= (skipped_ < 0 ? count + skipped_ : skipped_) && i < count - left_;
  }

 private:
  constexpr Ports(int skipped, int left) : range_(true), skipped_(skipped), left_(left) {}
  uint32_t mask_ = 0;
  bool range_ = false;
  int skipped_ = 0, left_ = 0;  // negative `skipped_`: counted from the end
};

inline constexpr int kImages = 1, kVolumes = 2;  // of rank 4, of rank 5
inline constexpr int kAnyFormat = kImages | kVolumes;

struct LayoutRow {
  absl::string_view name;
  OpSet ops;
  int ranks = kAnyFormat;
  Ports data, vectors, dims;  // inputs that are kTensor, kVector, kDimension
  Ports results = {0};        // outputs that change
  Form results_form = Form::kTensor;
  // The input whose rank decides; -1: output 0.
  int rank_of_input = -1;
  // Inputs of another rank than that stay as they are.
  bool by_rank = false;
  // Each input, and the output of its number, changes by itself.
  bool each_by_itself = false;
  // Results change only where this attribute is true; empty: always.
  absl::string_view results_if;
  // A vector has a place for each dimension (1), or a row of two (2), and never fewer; 0: the op
  // has rules of its own.
  int per_dimension = 0;
  // Why the node stays; empty where it need not. nullptr: it never need.
  absl::string_view (*declines)(const Node& node, const Formats& formats, Rewriter& r) = nullptr;
  // Changes attributes that count dimensions, besides those of sensitive ops. nullptr: none.
  void (*change)(Node& node, const Formats& formats) = nullptr;
  // The format is one of rank 4 whatever the rank of the tensor.
  bool format_of_images = false;
};

std::span<const LayoutRow> SensitiveRows();
std::span<const LayoutRow> AgnosticRows();

// Why a node that states its format cannot be given the other one, or empty.
absl::string_view CannotChangeFormat(const Node& node, const LayoutRow& row,
                                     const Conversion& conversion, const Formats& formats);
// Gives the node the other format, and permutes what its attributes state of dimensions. REQUIRES:
// CannotChangeFormat is empty.
void ChangeFormat(Node& node, const LayoutRow& row, const Conversion& conversion,
                  const Formats& formats);

}  // namespace smelt::layout

#endif  // SMELT_OPTIMIZE_LAYOUT_ROWS_H_
