// TensorFlow Lite files: what can be read is lowered, loaded and run with zeros for each signature,
// sizes that are free being 2 or, in a second run, 0; and with the file's own bytes for numbers and
// texts. Whatever comes is an answer or an error that is nobody's bug, in bounded memory and time;
// and what can be read is written and read again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "smelt/lite/lite_file.h"
#include "smelt/model/loaded_model.h"

namespace smelt {
namespace {

constexpr int64_t kHeap = int64_t{256} << 20;
constexpr absl::Duration kTimeout = absl::Milliseconds(200);
constexpr int64_t kMostElements = 1 << 16;

void MustNotBeInternal(const Status& s) {
  if (!absl::IsInternal(s)) return;
  // TensorFlow's own code for a remainder of integers by 0.
  if (absl::StrContains(s.message(), "only integer div and mod should have errors")) return;
  std::fprintf(stderr, "%s\n", s.ToString().c_str());
  std::abort();
}

// `bytes` again and again. Types of less than a byte have bytes that mean nothing: they stay zeros.
void Fill(absl::string_view bytes, Tensor& t) {
  if (bytes.empty() || t.num_elements() == 0) return;
  size_t at = 0;
  const auto next = [&] { return bytes[at++ % bytes.size()]; };
  if (t.dtype() == Dtype::kString) {
    for (std::string& text : t.flat<std::string>()) {
      for (int n = static_cast<uint8_t>(next()) % 64; n > 0; --n) text.push_back(next());
    }
  } else if (t.dtype() == Dtype::kBool) {
    for (bool& flag : t.flat<bool>()) flag = (next() & 1) != 0;
  } else if (IsPod(t.dtype()) && t.dtype() < Dtype::kInt4) {
    auto* to = static_cast<char*>(t.raw());
    for (size_t i = 0; i < t.bytes(); ++i) to[i] = next();
  }
}

// Zeros for what the signature wants, or `bytes`; false where that is too much, or no numbers and
// texts.
bool Inputs(const Signature& signature, int64_t free, absl::string_view bytes, NamedTensors& to) {
  for (const auto& [key, slot] : LoadedModel::Slots(signature.inputs)) {
    if (slot.dtype == Dtype::kResource || slot.dtype == Dtype::kVariant) return false;
    Dims dims;
    for (int i = 0; i < slot.shape.rank(); ++i) {
      dims.push_back(slot.shape[i] < 0 ? free : slot.shape[i]);
    }
    const auto shape = Shape::Make(dims);
    if (!shape.ok() || shape->num_elements() > kMostElements) return false;
    auto zeros = Tensor::Zeros(slot.dtype, *shape);
    if (!zeros.ok()) return false;
    Fill(bytes, *zeros);
    to[key] = *std::move(zeros);
  }
  return true;
}

void ReadAgain(const LiteModel& model) {
  std::string bytes;
  const Status written = WriteTflite(model, false, [&](absl::string_view piece) {
    absl::StrAppend(&bytes, piece);
    return OkStatus();
  });
  // What is read has more forms than what is written.
  if (!written.ok()) return MustNotBeInternal(written);
  const auto kept = std::make_shared<const std::string>(std::move(bytes));
  const Status read = ReadTflite(*kept, kept).status();
  if (read.ok() || absl::IsResourceExhausted(read)) return;
  std::fprintf(stderr, "what was read is written so that it cannot be read: %s\n",
               read.ToString().c_str());
  std::abort();
}

}  // namespace
}  // namespace smelt

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace smelt;
  SetHeapLimit(HeapLive() + kHeap);
  // As a mapped file is, the bytes are aligned.
  const auto bytes = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  const auto lite = ReadTflite(*bytes, bytes);
  MustNotBeInternal(lite.status());
  if (!lite.ok()) return 0;
  ReadAgain(*lite);
  auto meta = MetaGraphOfLite(*lite);
  MustNotBeInternal(meta.status());
  if (!meta.ok()) return 0;
  SessionOptions options;
  options.threads = 1;
  auto model = LoadedModel::Load(*std::move(meta), "", options);
  MustNotBeInternal(model.status());
  if (!model.ok()) return 0;
  RunOptions run;
  run.timeout = kTimeout;
  for (const auto& [name, signature] : (*model)->meta().signatures) {
    for (const int64_t free : {2, 0, -2}) {
      NamedTensors inputs;
      const bool filled = free < 0;
      if (!Inputs(signature, std::abs(free), filled ? *bytes : absl::string_view(), inputs))
        continue;
      MustNotBeInternal((*model)->RunSignature(name, inputs, run).status());
    }
  }
  return 0;
}
