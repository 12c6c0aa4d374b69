// What integers of a .tflite file's inputs and results stand for: how floats of requests that a
// model answered are asked of the file that was made of it, and compared with what that says.
#ifndef SMELT_LITE_LITE_BORDERS_H_
#define SMELT_LITE_LITE_BORDERS_H_

#include <map>
#include <string>
#include <utility>

#include "smelt/tensor/tensor.h"
#include "smelt/wire/tflite/tflite.h"

namespace smelt {

// Thread safe once made.
class LiteBorders {
 public:
  LiteBorders() = default;
  explicit LiteBorders(const LiteModel& model);

  // The number of an input of that signature in the integers that it is of, rounded half away from
  // zero and saturated, as by QUANTIZE. The value as it is where it is no float, or the input takes
  // floats, or there is none.
  StatusOr<Tensor> ToInput(const std::string& signature, const std::string& key,
                           const Tensor& value) const;
  // The numbers that a result's integers stand for. The value as it is where it is not of these.
  StatusOr<Tensor> ToFloats(const std::string& signature, const std::string& key,
                            const Tensor& value) const;

 private:
  struct Border {
    Dtype type = Dtype::kInvalid;
    float scale = 1;
    int64_t zero_point = 0;
  };
  using Borders = std::map<std::pair<std::string, std::string>, Border, std::less<>>;
  static void Note(const std::string& signature, const std::string& key, const LiteTensor& t,
                   Borders& to);

  Borders inputs_, outputs_;
};

}  // namespace smelt

#endif  // SMELT_LITE_LITE_BORDERS_H_
