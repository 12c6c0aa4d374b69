// Optimizer steps: each formula stands once, for all the ops that use it (on variables of either
// kind, with a dense gradient or with rows of one). Private to this folder. Thread safe.
#ifndef SMELT_KERNELS_TRAIN_APPLY_H_
#define SMELT_KERNELS_TRAIN_APPLY_H_

#include <array>
#include <complex>

#include "absl/strings/string_view.h"
#include "smelt/tensor/dtype.h"

namespace smelt {

inline constexpr int kMaxApplySlots = 4;    // variables of an op
inline constexpr int kMaxApplyScalars = 6;  // learning rate and the like

// The attributes of the ops that change formulas, and whether the op is one on rows.
struct ApplyFlags {
  bool use_nesterov = false;
  bool update_slots = true;
  bool multiply_linear_by_lr = false;
  bool rows = false;  // TensorFlow's sparse code: its results differ where values are not finite
  bool wide = false;  // and that for rows of more than one element
};

// The values of the scalar arguments; a complex double holds those of every type without loss.
using ApplyScalars = std::array<std::complex<double>, kMaxApplyScalars>;

// One step of n elements: slots[k][i] change by grad[i]. slots[0] is the variable, the rest its
// optimizer's. All are of the type that the loop was asked for; two may be the same variable.
using ApplyLoop = void (*)(void* const* slots, const void* grad, const ApplyScalars& scalars,
                           const ApplyFlags& flags, int64_t n);

// Which values of a scalar ops on rows accept; dense ones accept all, unless the rule says else.
enum class ApplyRange : uint8_t { kAny, kPositive, kNonNegative, kNonPositive };

struct ApplyScalar {
  absl::string_view name;       // the op's argument; empty: no more
  absl::string_view otherwise;  // the error when it is none, up to its shape
  ApplyRange range = ApplyRange::kAny;
  absl::string_view rows_otherwise = "";  // of ops on rows, where that differs
  // Looked at behind everything else but indices that are outside.
  bool late = false;
  bool by_count = false;  // one element of any shape will do
};

// The check behind which TensorFlow looks at the scalars that are not late: an op that is given two
// bad arguments names the first.
enum class ApplyScalarsAt : uint8_t { kFirst, kSlots, kIndices, kGrad };

struct ApplyRule {
  absl::string_view name;  // that of ApplyAdam, ResourceSparseApplyAdam, ... is "Adam"
  // What errors call the variables; empty: no more.
  std::array<absl::string_view, kMaxApplySlots> slots;
  std::array<ApplyScalar, kMaxApplyScalars> scalars;
  // The loop for a type; nullptr for types that the rule does not take.
  ApplyLoop (*loop)(Dtype dtype) = nullptr;
  bool dense_ranges = false;  // dense ops look at the ranges too
  ApplyScalarsAt dense_at = ApplyScalarsAt::kFirst;
  // The rest is of ops on rows.
  ApplyScalarsAt rows_at = ApplyScalarsAt::kSlots;
  // An index outside stops the op behind the steps on the rows before it, as in TensorFlow; else
  // nothing changes.
  bool in_turn = false;
  // Rows may not be empty; where they are of one element, grad is read as a vector.
  bool filled_rows = false;
  bool same_rank = false;  // the gradient's rank must be the variable's, not only its dimensions
  bool element_named = false;  // an index outside is "indices[1] = 3", not "Index 3 at offset 1"
  absl::string_view rows_slot_1 = "";  // what errors call slot 1, where that differs
};

// nullptr when no rule has that name.
const ApplyRule* FindApplyRule(absl::string_view name);

}  // namespace smelt

#endif  // SMELT_KERNELS_TRAIN_APPLY_H_
