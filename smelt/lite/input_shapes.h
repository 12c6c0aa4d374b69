// Sizes of inputs that an export fixes, where the model leaves them free.
#ifndef SMELT_LITE_INPUT_SHAPES_H_
#define SMELT_LITE_INPUT_SHAPES_H_

#include <map>
#include <set>
#include <string>

#include "smelt/tensor/shape.h"

namespace smelt {

struct InputShapes {
  // By the key of an input in its signature, or the name of its tensor ("x:0", "x"). -1: stays as
  // it is.
  std::map<std::string, PartialShape, std::less<>> by_name;
  int64_t batch = -1;  // the first size of every input that has it free; -1: none
  bool empty() const { return by_name.empty() && batch < 0; }
};

// Pins the inputs of one signature after another.
class InputPinner {
 public:
  // `wanted` outlives this.
  explicit InputPinner(const InputShapes& wanted) : wanted_(wanted) {}
  // INVALID_ARGUMENT where the wanted shape contradicts `stated`.
  StatusOr<PartialShape> Pin(const std::string& key, const std::string& tensor,
                             const PartialShape& stated);
  // INVALID_ARGUMENT names the inputs that no signature has, or a batch that no input takes.
  Status CheckAllUsed() const;

 private:
  const InputShapes& wanted_;
  std::set<std::string> used_;
  bool batch_used_ = false;
};

}  // namespace smelt

#endif  // SMELT_LITE_INPUT_SHAPES_H_
