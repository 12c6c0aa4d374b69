#include "smelt/model/random_inputs.h"

#include "absl/strings/match.h"

namespace smelt {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 28;
constexpr int kMaxDims = 8;

template <typename T, typename F>
void FillValues(Tensor& t, F value) {
  for (T& x : t.flat<T>()) x = static_cast<T>(value());
}

}  // namespace

// SplitMix64.
uint64_t RandomInputs::Next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

StatusOr<Tensor> RandomInputs::Value(Dtype dtype, const Shape& shape) {
  static constexpr const char* kWords[] = {"a", "the", "of", "one", "red", "fox", "sun", "42"};
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  const auto real = [this] { return static_cast<float>(Next() >> 40) / float{1 << 23} - 1.0f; };
  const auto small = [this] { return Next() >> 62; };
  switch (dtype) {
    case Dtype::kFloat:
      FillValues<float>(t, real);
      break;
    case Dtype::kDouble:
      FillValues<double>(t, real);
      break;
    case Dtype::kHalf:
      FillValues<Half>(t, real);
      break;
    case Dtype::kBfloat16:
      FillValues<Bfloat16>(t, real);
      break;
    case Dtype::kComplex64:
      FillValues<std::complex<float>>(t, real);
      break;
    case Dtype::kComplex128:
      FillValues<std::complex<double>>(t, real);
      break;
    case Dtype::kInt8:
      FillValues<int8_t>(t, small);
      break;
    case Dtype::kUint8:
      FillValues<uint8_t>(t, small);
      break;
    case Dtype::kInt16:
      FillValues<int16_t>(t, small);
      break;
    case Dtype::kUint16:
      FillValues<uint16_t>(t, small);
      break;
    case Dtype::kInt32:
      FillValues<int32_t>(t, small);
      break;
    case Dtype::kUint32:
      FillValues<uint32_t>(t, small);
      break;
    case Dtype::kInt64:
      FillValues<int64_t>(t, small);
      break;
    case Dtype::kUint64:
      FillValues<uint64_t>(t, small);
      break;
    case Dtype::kBool:
      FillValues<bool>(t, [this] { return (Next() >> 63) != 0; });
      break;
    case Dtype::kString:
      FillValues<std::string>(t, [this] { return std::string(kWords[Next() >> 61]); });
      break;
    default:
      return Unimplemented("no random values of type ", DtypeName(dtype));
  }
  return t;
}

StatusOr<NamedTensors> RandomInputs::Make(const Signature& signature, int64_t batch) {
  int64_t sizes[kMaxDims];
  for (int64_t& s : sizes) s = 1 + static_cast<int64_t>(Next() % 3);
  if (batch > 0) sizes[0] = batch;
  NamedTensors out;
  for (const auto& [key, info] : signature.inputs) {
    if (info.kind != TensorInfo::Kind::kDense) {
      return Unimplemented("no random values for input '", key, "', which is not one dense tensor");
    }
  }
  for (const auto& [key, slot] : LoadedModel::Slots(signature.inputs)) {
    if (!slot.shape.known_rank() || slot.shape.rank() > kMaxDims) {
      return Unimplemented("no random values for input '", key, "' of shape ",
                           slot.shape.ToString());
    }
    Dims dims;
    int64_t elements = 1;
    for (int i = 0; i < slot.shape.rank(); ++i) {
      dims.push_back(slot.shape[i] >= 0 ? slot.shape[i] : sizes[i]);
      if (__builtin_mul_overflow(elements, dims.back(), &elements) || elements > kMaxElements) {
        return ResourceExhausted("input '", key, "' of shape ", slot.shape.ToString(),
                                 " is too large");
      }
    }
    ASSIGN_OR_RETURN(out[key], Value(BaseType(slot.dtype), Shape(dims)));
  }
  return out;
}

}  // namespace smelt
