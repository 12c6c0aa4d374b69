// Values made up for the inputs of a model, by what it does with them.
#ifndef SMELT_MODEL_MADE_UP_VALUES_H_
#define SMELT_MODEL_MADE_UP_VALUES_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "smelt/analysis/value_uses.h"
#include "smelt/base/status.h"
#include "smelt/tensor/tensor.h"

namespace smelt {

// What is drawn alike within one request.
struct ValueStyle {
  enum class Numbers { kAroundZero, kPositive, kNormal };
  Numbers numbers = Numbers::kAroundZero;  // [-1, 1), [0, 1), or normally distributed
  // Integers stay below it, whatever they index.
  int64_t most = std::numeric_limits<int64_t>::max();
  int64_t otherwise = 4;      // the limit of integers that index nothing
  int64_t list = 1;           // values of a feature without a size; 0: drawn from 0 to 3
  bool strange_words = true;  // now and then a word that the table lacks
  int64_t side = 48;          // height and width of images
};

// The same seed gives the same values everywhere. Not thread safe.
class MadeUpValues {
 public:
  // The keys of lookup tables, by the node that makes the table.
  using TableKeys = std::map<const Node*, Tensor>;

  // REQUIRES: `keys` outlives this.
  MadeUpValues(uint64_t seed, const TableKeys& keys) : state_(seed), keys_(keys) {}

  uint64_t Next();
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(Next() % static_cast<uint64_t>(limit));
  }

  // UNIMPLEMENTED for types without such values, and for files that nothing here can write;
  // RESOURCE_EXHAUSTED where memory does not suffice.
  StatusOr<Tensor> Make(Dtype dtype, const Shape& shape, const ValueUse& use,
                        const ValueStyle& style);

 private:
  double Real(const ValueUse& use, const ValueStyle& style);
  int64_t Integer(const ValueUse& use, int64_t most, const ValueStyle& style);
  template <typename T>
  void FillIntegers(Tensor& t, const ValueUse& use, const ValueStyle& style);
  // The tables among those of the use whose keys are of this type, one of them; nullptr: none.
  const Tensor* Keys(const ValueUse& use, Dtype dtype);
  std::string Word(const ValueUse& use, const ValueStyle& style);
  StatusOr<std::string> Text(const ValueUse& use, const ValueStyle& style);
  StatusOr<std::string> Example(const ValueUse& use, const ValueStyle& style);
  StatusOr<std::string> File(const std::string& decoder, const ValueStyle& style);

  uint64_t state_;
  const TableKeys& keys_;
};

}  // namespace smelt

#endif  // SMELT_MODEL_MADE_UP_VALUES_H_
