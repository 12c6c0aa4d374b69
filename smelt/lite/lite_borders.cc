#include "smelt/lite/lite_borders.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "smelt/lite/lite_file.h"

namespace smelt {
namespace {

template <typename T>
StatusOr<Tensor> Quantized(const Tensor& value, Dtype type, float scale, int64_t zero_point) {
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(type, value.shape()));
  const float* from = value.data<float>();
  T* to = out.data<T>();
  constexpr double kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    const double q = std::round(from[i] / scale) + static_cast<double>(zero_point);
    to[i] = static_cast<T>(std::isnan(q) ? zero_point : std::clamp(q, kLeast, kMost));
  }
  return out;
}

template <typename T>
StatusOr<Tensor> Dequantized(const Tensor& value, float scale, int64_t zero_point) {
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(Dtype::kFloat, value.shape()));
  const T* from = value.data<T>();
  float* to = out.data<float>();
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    to[i] = scale * static_cast<float>(from[i] - zero_point);
  }
  return out;
}

}  // namespace

void LiteBorders::Note(const std::string& signature, const std::string& key, const LiteTensor& t,
                       Borders& to) {
  const LiteQuantization& q = t.quantization;
  const bool integers =
      t.type == Dtype::kInt8 || t.type == Dtype::kUint8 || t.type == Dtype::kInt16;
  if (!integers || q.scale.size() != 1 || q.zero_point.size() > 1 || q.blockwise) return;
  to[{signature, key}] = {t.type, q.scale[0], q.zero_point.empty() ? 0 : q.zero_point[0]};
}

LiteBorders::LiteBorders(const LiteModel& model) {
  for (const LiteSignature& s : LiteSignaturesOf(model)) {
    const std::vector<LiteTensor>& tensors = model.subgraphs[s.subgraph].tensors;
    for (const auto& [key, t] : s.inputs)
      Note(s.key, key, tensors[static_cast<size_t>(t)], inputs_);
    for (const auto& [key, t] : s.outputs) {
      Note(s.key, key, tensors[static_cast<size_t>(t)], outputs_);
    }
  }
}

StatusOr<Tensor> LiteBorders::ToInput(const std::string& signature, const std::string& key,
                                      const Tensor& value) const {
  const auto at = inputs_.find(std::pair{signature, key});
  if (at == inputs_.end() || value.dtype() != Dtype::kFloat) return value;
  const Border& b = at->second;
  switch (b.type) {
    case Dtype::kInt8:
      return Quantized<int8_t>(value, b.type, b.scale, b.zero_point);
    case Dtype::kUint8:
      return Quantized<uint8_t>(value, b.type, b.scale, b.zero_point);
    default:
      return Quantized<int16_t>(value, b.type, b.scale, b.zero_point);
  }
}

StatusOr<Tensor> LiteBorders::ToFloats(const std::string& signature, const std::string& key,
                                       const Tensor& value) const {
  const auto at = outputs_.find(std::pair{signature, key});
  if (at == outputs_.end() || value.dtype() != at->second.type) return value;
  const Border& b = at->second;
  switch (b.type) {
    case Dtype::kInt8:
      return Dequantized<int8_t>(value, b.scale, b.zero_point);
    case Dtype::kUint8:
      return Dequantized<uint8_t>(value, b.scale, b.zero_point);
    default:
      return Dequantized<int16_t>(value, b.scale, b.zero_point);
  }
}

}  // namespace smelt
