// Which operators compute in integers, and what these stand for.
#ifndef SMELT_LITE_QUANTIZE_INTEGER_PLAN_H_
#define SMELT_LITE_QUANTIZE_INTEGER_PLAN_H_

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/lite/quantize/declared_ranges.h"
#include "smelt/lite/quantize/integer_format.h"
#include "smelt/lite/quantize/quantize.h"

namespace smelt {

constexpr OpSet kComparisons = {"tfl.equal",      "tfl.not_equal", "tfl.less",
                                "tfl.less_equal", "tfl.greater",   "tfl.greater_equal"};

// The format of activations under the flags.
const IntegerFormat& FormatOf(const IntegerFlags& flags);

// Of a graph that still computes in floats. REQUIRES: the flags live as long.
class IntegerPlan {
 public:
  using Key = std::pair<const Node*, int>;
  using Write = std::pair<Node*, Params>;
  static Key KeyOf(Endpoint e) { return {e.node, e.port}; }
  static bool IsFloat(Endpoint e) {
    return e.node->output_types[static_cast<size_t>(e.port)] == Dtype::kFloat;
  }

  IntegerPlan(const LiteRanges& ranges, const IntegerFlags& flags)
      : ranges(ranges), flags(flags), format(FormatOf(flags)) {}

  // Chooses operators and params. DIV by a constant and NEG become MUL; ranges that the model
  // states become uint8 where all is.
  Status Make(Graph& graph, std::span<Node* const> order);

  // Is it an argument that integers are given for?
  bool IsGivenArgument(const Node& n) const {
    return n.Is("_Arg") && flags.input_params.contains(n.Int("index"));
  }
  // Does the node give integers by itself?
  bool GivesIntegers(const Node* n) const {
    return chosen.contains(n) || std::ranges::find(reads, n) != reads.end();
  }
  // What the model states comes before what samples showed.
  Params Calibrated(Key key) const;
  // The params under which the value is first given: those of its producer where that is quantized,
  // else its own range's.
  Params& ParamsAt(Endpoint e);
  // With zero in it. What is lower than a mask needs to be saturates.
  LiteRange RangeOfConstant(Endpoint e, const Tensor& value) const;

  LiteRanges ranges;  // masks count as what they need to be
  const IntegerFlags& flags;
  const IntegerFormat& format;
  DeclaredParams declared;
  absl::flat_hash_set<const Node*> chosen;
  std::vector<Node*> reads;   // of variables that hold integers
  std::vector<Write> writes;  // and what their numbers stand for
  absl::flat_hash_map<Key, Params> params;

 private:
  // Declared params are those of int8 until all are found.
  int64_t Shift() const { return flags.uint8 ? 128 : 0; }
  Status Declare(Graph& graph, std::span<Node* const> order);
  bool Wanted(const Node& n) const;
  bool IsKnown(Key key) const { return declared.contains(key) || ranges.contains(key); }
  bool IsZero(Key key) const;
  bool IsFixed(Endpoint e) const;
  float ScaleOf(Endpoint e);
  bool HasSmallScales(const Node& n);
  bool ScalesFit(const Node& n);
  Params CalibratedWithState(const Node& n) const;
  void ChooseParams(Node& n);
  void AgreeAlone(Endpoint e, const Params& p);
  void ChooseVariables(std::span<Node* const> order);

  // Of the chosen, whose results go beyond their input; what is too near zero to be chosen.
  absl::flat_hash_set<const Node*> beyond_, near_zero_;
};

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_INTEGER_PLAN_H_
