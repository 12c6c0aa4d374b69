// One scale for what an operator reads and gives, where its kernel cannot change scales: as
// CONCATENATION, MAXIMUM, SELECT_V2.
#ifndef SMELT_LITE_QUANTIZE_AGREED_SCALES_H_
#define SMELT_LITE_QUANTIZE_AGREED_SCALES_H_

#include <functional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/graph/graph.h"
#include "smelt/lite/quantize/integer_format.h"

namespace smelt {

// Inputs that are numbers and not constants.
bool IsActivation(Endpoint e);
int64_t NumActivations(const Node& n);
// REQUIRES: there is one.
int FirstActivation(const Node& n);

// Does an operator of one activation join constants with it, in its result `port`, for whose
// numbers the activation's params have no steps?
bool JoinsBeyond(const Node& n, int port, const LiteRanges& ranges, const Params& from,
                 const IntegerFormat& f);

struct ScaleChoices {
  using Key = std::pair<const Node*, int>;
  const IntegerFormat& format;
  const absl::flat_hash_set<const Node*>& chosen;  // they will be in integers
  const absl::flat_hash_set<const Node*>& beyond;  // of these, whose results go beyond their input
  bool stated = false;                             // the model states ranges
  std::function<bool(Endpoint)> fixed;             // has the value params that nobody may change?
  std::function<Params(Endpoint)> calibrated;      // of a value that has none yet
  std::function<bool(Endpoint)> zero;              // was it nothing but 0, which any scale has?
  absl::flat_hash_map<Key, Params>& params;
};

// Joins of what has ranges of very different size, where nothing but results and what is float
// reads them, through what moves numbers; and what does. In float none loses its steps to another.
// REQUIRES: `order` is topological.
absl::flat_hash_set<const Node*> FindMixedResults(std::span<Node* const> order,
                                                  const absl::flat_hash_set<const Node*>& chosen,
                                                  const LiteRanges& ranges);

// Who gives what such an operator reads takes over its params, through operators that keep scales,
// and for all its readers: a step from scale to scale loses as much as a somewhat wider range does,
// and takes an operator. Not where others would read it on a scale that is much coarser. What
// nobody else reads may saturate, as the result does; else the range of all is the widest. Where
// the model states ranges, only what nobody else reads changes.
// REQUIRES: `order` is topological.
void AgreeOnScales(std::span<Node* const> order, const ScaleChoices& choices);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_AGREED_SCALES_H_
