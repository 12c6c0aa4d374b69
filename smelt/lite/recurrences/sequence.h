// What is around an operator that takes the place of a loop: how its input lies, which of its
// outputs are read, and steps that a mask leaves out.
#ifndef SMELT_LITE_RECURRENCES_SEQUENCE_H_
#define SMELT_LITE_RECURRENCES_SEQUENCE_H_

#include <functional>
#include <map>
#include <string>

#include "smelt/lite/legalizer.h"
#include "smelt/lite/recurrences/cell.h"

namespace smelt {

// As operators name what a cell's sum goes through; "NONE": it is no such op, and its own value.
std::string_view CellActivation(Endpoint e);

// Where a mask leaves out steps, sequences close up: rows that count come first, in their order,
// and the operator runs over these and what is left behind them. What a step gave is then found by
// how many rows counted up to it. So it is right for every mask.
class SequenceBuilder {
 public:
  // REQUIRES: `shapes` are those of `graph`; all outlive this.
  SequenceBuilder(Graph& graph, const Scan& scan, const CellReader& cell, const ShapeTable& shapes)
      : graph_(graph), scan_(scan), cell_(cell), shapes_(shapes), l_(graph, shapes) {}

  // Runs `build`, which calls what is below. False, and `why` says why: the loop is another, or no
  // operator does that.
  StatusOr<bool> Build(Endpoint x, const std::function<Status()>& build, std::string* why);

  Legalizer& legalizer() { return l_; }
  // The operator's input, of x [time, batch, inputs].
  StatusOr<Endpoint> TakeInput(Endpoint x);
  bool time_major() const { return major_; }
  LiteOutput OutputOf(Endpoint input, int64_t units) const;
  // Replaces the loop: `all` is what the operator gives, state `own` (-1: none) nobody reads.
  Status Replace(Endpoint all, int own);

 private:
  StatusOr<Endpoint> Op(absl::string_view op, std::initializer_list<Endpoint> inputs,
                        AttrMap attrs = {});
  StatusOr<Endpoint> Turned(Endpoint e, int rank);
  StatusOr<Endpoint> Picked(Endpoint from, Endpoint at);
  Status TakeMask(Endpoint x);
  Endpoint FirstOf(int state) const;
  StatusOr<Endpoint> WithFirst(int state);
  StatusOr<Endpoint> LastOf(int state, Endpoint all);
  StatusOr<Endpoint> AllOf(int state);
  Status ReplaceArray(int array);

  Graph& graph_;
  const Scan& scan_;
  const CellReader& cell_;
  const ShapeTable& shapes_;
  Legalizer l_;
  Endpoint all_;
  bool major_ = false;
  // Of a mask [batch, time]: itself, how many rows count up to each, and in all.
  Endpoint mask_, counts_, total_, order_;
  std::map<int, Endpoint> last_, with_first_;
};

}  // namespace smelt

#endif  // SMELT_LITE_RECURRENCES_SEQUENCE_H_
