#include "smelt/model/made_up_values.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "smelt/kernels/audio/wav_file.h"
#include "smelt/kernels/image/codec.h"
#include "smelt/wire/example/example_writer.h"

namespace smelt {
namespace {

constexpr int64_t kMaxList = 4, kMaxWords = 6;
constexpr uint32_t kWavRate = 16000;  // a second of it

template <typename T, typename F>
void FillValues(Tensor& t, F value) {
  for (T& x : t.flat<T>()) x = static_cast<T>(value());
}

}  // namespace

// SplitMix64.
uint64_t MadeUpValues::Next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double MadeUpValues::Real(const ValueUse& use, const ValueStyle& style) {
  if (use.rows > 0) return static_cast<double>(Integer(use, int64_t{1} << 24, style));
  const auto unit = [this] { return static_cast<float>(Next() >> 40) / float{1 << 24}; };
  switch (style.numbers) {
    case ValueStyle::Numbers::kAroundZero:
      return 2 * unit() - 1;
    case ValueStyle::Numbers::kPositive:
      return unit();
    case ValueStyle::Numbers::kNormal:
      break;
  }
  const double radius = std::sqrt(-2 * std::log(1.0 - unit()));
  return radius * std::cos(6.283185307179586 * unit());
}

int64_t MadeUpValues::Integer(const ValueUse& use, int64_t most, const ValueStyle& style) {
  const int64_t limit = use.rows > 0 ? use.rows : style.otherwise;
  return Below(std::min({limit, most, style.most}));
}

template <typename T>
void MadeUpValues::FillIntegers(Tensor& t, const ValueUse& use, const ValueStyle& style) {
  // Bytes without another use are most often pixels.
  ValueStyle own = style;
  if constexpr (std::is_same_v<T, uint8_t>) own.otherwise = 256;
  const auto most = static_cast<int64_t>(
      std::min<uint64_t>(std::numeric_limits<T>::max(), std::numeric_limits<int64_t>::max() - 1));
  const Tensor* keys = Keys(use, t.dtype());
  FillValues<T>(t, [&]() -> T {
    if (keys != nullptr) return keys->data<T>()[Below(keys->num_elements())];
    return static_cast<T>(Integer(use, most + 1, own));
  });
}

const Tensor* MadeUpValues::Keys(const ValueUse& use, Dtype dtype) {
  std::vector<const Tensor*> fit;
  for (const Node* table : use.tables) {
    const auto keys = keys_.find(table);
    if (keys == keys_.end() || keys->second.dtype() != dtype) continue;
    if (keys->second.num_elements() > 0) fit.push_back(&keys->second);
  }
  return fit.empty() ? nullptr : fit[static_cast<size_t>(Below(std::ssize(fit)))];
}

StatusOr<Tensor> MadeUpValues::Make(Dtype dtype, const Shape& shape, const ValueUse& use,
                                    const ValueStyle& style) {
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  const auto real = [&] { return Real(use, style); };
  switch (dtype) {
    case Dtype::kFloat:
      FillValues<float>(t, real);
      break;
    case Dtype::kDouble:
      FillValues<double>(t, real);
      break;
    case Dtype::kHalf:
      FillValues<Half>(t, [&] { return static_cast<float>(real()); });
      break;
    case Dtype::kBfloat16:
      FillValues<Bfloat16>(t, [&] { return static_cast<float>(real()); });
      break;
    case Dtype::kComplex64:
      FillValues<std::complex<float>>(t, [&] { return static_cast<float>(real()); });
      break;
    case Dtype::kComplex128:
      FillValues<std::complex<double>>(t, real);
      break;
    case Dtype::kInt8:
      FillIntegers<int8_t>(t, use, style);
      break;
    case Dtype::kUint8:
      FillIntegers<uint8_t>(t, use, style);
      break;
    case Dtype::kInt16:
      FillIntegers<int16_t>(t, use, style);
      break;
    case Dtype::kUint16:
      FillIntegers<uint16_t>(t, use, style);
      break;
    case Dtype::kInt32:
      FillIntegers<int32_t>(t, use, style);
      break;
    case Dtype::kUint32:
      FillIntegers<uint32_t>(t, use, style);
      break;
    case Dtype::kInt64:
      FillIntegers<int64_t>(t, use, style);
      break;
    case Dtype::kUint64:
      FillIntegers<uint64_t>(t, use, style);
      break;
    case Dtype::kBool:
      FillValues<bool>(t, [this] { return (Next() >> 63) != 0; });
      break;
    case Dtype::kString:
      for (std::string& s : t.flat<std::string>()) {
        ASSIGN_OR_RETURN(s, Text(use, style));
      }
      break;
    default:
      return Unimplemented("no made-up values of type ", DtypeName(dtype));
  }
  return t;
}

std::string MadeUpValues::Word(const ValueUse& use, const ValueStyle& style) {
  static constexpr const char* kWords[] = {"a", "the", "of", "one", "red", "fox", "sun", "42"};
  const Tensor* keys = Keys(use, Dtype::kString);
  const bool strange = keys == nullptr || (style.strange_words && Below(8) == 0);
  if (strange) return kWords[Below(std::ssize(kWords))];
  return keys->data<std::string>()[Below(keys->num_elements())];
}

StatusOr<std::string> MadeUpValues::Text(const ValueUse& use, const ValueStyle& style) {
  std::string text;
  if (!use.features.empty()) {
    ASSIGN_OR_RETURN(text, Example(use, style));
  } else if (!use.decoder.empty()) {
    ASSIGN_OR_RETURN(text, File(use.decoder, style));
  } else if (!use.columns.empty()) {
    std::vector<std::string> fields;
    for (const Dtype column : use.columns) {
      fields.push_back(column == Dtype::kString ? Word(use, style)
                       : IsInteger(column)      ? absl::StrCat(Integer({}, style.most, style))
                                                : absl::StrCat(Real({}, style)));
    }
    text = absl::StrJoin(fields, ",");
  } else if (use.number) {
    text = use.integer ? absl::StrCat(Integer(use, style.most, style))
                       : absl::StrCat(Real(use, style));
  } else {
    text = Word(use, style);
    for (int64_t more = use.words ? Below(kMaxWords) : 0; more > 0; --more) {
      absl::StrAppend(&text, " ", Word(use, style));
    }
  }
  return use.base64 ? absl::WebSafeBase64Escape(text) : text;
}

StatusOr<std::string> MadeUpValues::Example(const ValueUse& use, const ValueStyle& style) {
  std::vector<FeatureValue> values;
  for (const auto& feature : use.features) {
    const PartialShape& shape = feature->shape;
    const auto list = [&] { return style.list > 0 ? style.list : Below(kMaxList); };
    int64_t n = shape.known_rank() ? 1 : list();
    for (const int64_t size : shape.dims()) n *= size >= 0 ? size : list();
    ASSIGN_OR_RETURN(const Shape all, Shape::Make(Dims{n}));
    ASSIGN_OR_RETURN(Tensor t, Make(feature->dtype, all, feature->use, style));
    values.push_back({feature->key, std::move(t)});
  }
  return SerializeExample(values);
}

StatusOr<std::string> MadeUpValues::File(const std::string& decoder, const ValueStyle& style) {
  if (decoder == "DecodeWav") {
    std::vector<float> samples(kWavRate);
    for (float& s : samples) s = static_cast<float>(Real({}, style));
    return EncodeWav(samples, kWavRate, 1, 0);
  }
  if (decoder == "DecodeBmp" || decoder == "DecodeGif") {
    return Unimplemented("no made-up files for ", decoder);
  }
  const image::Extent extent{.frames = 1, .height = style.side, .width = style.side, .channels = 3};
  std::vector<uint8_t> pixels;
  // A slope for each channel and a little noise: as images are, unlike noise alone.
  const int64_t across[] = {Below(5), Below(5), Below(5)}, base = Below(128);
  for (int64_t y = 0; y < extent.height; ++y) {
    for (int64_t x = 0; x < extent.width; ++x) {
      for (const int64_t slope : across) {
        const int64_t value = base + (slope * x + (4 - slope) * y) * 24 / extent.width + Below(16);
        pixels.push_back(static_cast<uint8_t>(std::min<int64_t>(value, 255)));
      }
    }
  }
  if (decoder == "DecodePng") return image::EncodePng(pixels.data(), extent, 8, -1);
  return image::EncodeJpeg(pixels.data(), extent, {});
}

}  // namespace smelt
