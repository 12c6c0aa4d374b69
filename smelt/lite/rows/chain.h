// Rows that make several operators of one op.
#ifndef SMELT_LITE_ROWS_CHAIN_H_
#define SMELT_LITE_ROWS_CHAIN_H_

#include <initializer_list>
#include <span>
#include <vector>

#include "smelt/lite/rows/rows.h"

namespace smelt {

// Sizes as operators state them: those that are not known are -1. REQUIRES: a known rank.
std::vector<int64_t> StatedDims(const PartialShape& shape);

// Operators of float numbers, one behind the other. The first error is kept, and nothing is made
// behind it: a row looks at the end.
class OperatorChain {
 public:
  explicit OperatorChain(Legalizer& l) : l_(l) {}

  // A value, or a constant of one number.
  struct Arg {
    Arg(Endpoint e) : value(e) {}  // NOLINT: reads as the value
    Arg(double n) : number(n) {}   // NOLINT: and as the number
    Endpoint value;
    double number = 0;
  };

  // An operator of one element at a time; shapes broadcast.
  Endpoint Op(OpName op, std::initializer_list<Arg> inputs);
  Endpoint Add(Arg a, Arg b) { return Op("tfl.add", {a, b}); }
  Endpoint Sub(Arg a, Arg b) { return Op("tfl.sub", {a, b}); }
  Endpoint Mul(Arg a, Arg b) { return Op("tfl.mul", {a, b}); }
  Endpoint Div(Arg a, Arg b) { return Op("tfl.div", {a, b}); }
  Endpoint Max(Arg a, Arg b) { return Op("tfl.maximum", {a, b}); }
  Endpoint Min(Arg a, Arg b) { return Op("tfl.minimum", {a, b}); }
  Endpoint Less(Arg a, Arg b) { return Compare("tfl.less", a, b); }
  Endpoint LessEqual(Arg a, Arg b) { return Compare("tfl.less_equal", a, b); }
  Endpoint Equal(Arg a, Arg b) { return Compare("tfl.equal", a, b); }
  Endpoint And(Endpoint a, Endpoint b) { return Op("tfl.logical_and", {a, b}); }
  Endpoint Select(Endpoint condition, Arg then, Arg otherwise);

  // Any other operator.
  Endpoint Make(OpName op, std::initializer_list<Endpoint> inputs, AttrMap options,
                const LiteOutput& out);
  // The same of several results; so many that stand for none behind an error.
  std::vector<Endpoint> MakeMany(OpName op, std::initializer_list<Endpoint> inputs, AttrMap options,
                                 const std::vector<LiteOutput>& outputs);
  // Equal parts along an axis: so many, or one for each element, which are of the shape `part`.
  std::vector<Endpoint> Split(Endpoint e, int64_t count, int64_t axis);
  std::vector<Endpoint> Unpack(Endpoint e, int64_t count, int64_t axis, const PartialShape& part);
  Endpoint Cast(Endpoint e, Dtype to);
  Endpoint ShapeOf(Endpoint e);  // Legalizer::ShapeOf
  // The numbers from 0 to below `count`, int32; `size`: how many they are, -1 not known.
  Endpoint CountTo(Endpoint count, int64_t size);
  // Rows of `from` at the places that `at` says, which has a known rank.
  Endpoint Rows(Endpoint from, Endpoint at);
  Endpoint Transpose(Endpoint e, const std::vector<int64_t>& order);
  // At most one size is free (-1).
  Endpoint Reshape(Endpoint e, std::vector<int64_t> sizes);
  // The sum, or what else the operator reduces to, along axes.
  Endpoint Reduce(OpName op, Endpoint e, const std::vector<int64_t>& axes, bool keep);

  Legalizer& l() { return l_; }
  bool ok() const { return status_.ok(); }
  PartialShape shape(Endpoint e) const { return e.node == nullptr ? PartialShape() : l_.shape(e); }
  void Fail(Status why) { status_.Update(why); }
  LiteEndpoints Done(Endpoint e) const {
    RETURN_IF_ERROR(status_);
    return std::vector<Endpoint>{e};
  }
  LiteEndpoints Done(std::vector<Endpoint> all) const {
    RETURN_IF_ERROR(status_);
    return all;
  }

 private:
  Endpoint Compare(OpName op, Arg a, Arg b);
  // The values, with numbers as constants of the type of the first that is none.
  std::vector<Endpoint> Values(std::initializer_list<Arg> args);

  Legalizer& l_;
  Status status_;
};

// The shape that two broadcast to.
PartialShape Broadcast(const PartialShape& a, const PartialShape& b);

// ---- special.cc
// Of float numbers; `product` is (1 - x)(1 + x), however it is computed.
Endpoint InverseErf(Endpoint x, Endpoint product, OperatorChain& c);

// ---- partitions.cc
// What an operator of two makes of all elements up to each along an axis, or, `reverse`, from each
// on: each turn reaches twice as far. `neutral`: a number that changes nothing. REQUIRES: the size
// along the axis is known, and at most kMostRunning.
inline constexpr int64_t kMostRunning = int64_t{1} << 16;
Endpoint Running(OpName op, Endpoint e, int64_t axis, bool reverse, Endpoint neutral,
                 OperatorChain& c);

// ---- sparse.cc
// The floor of a / b, both of int64; `b` is not 0.
Endpoint WholeQuotient(Endpoint a, Endpoint b, OperatorChain& c);

}  // namespace smelt

#endif  // SMELT_LITE_ROWS_CHAIN_H_
