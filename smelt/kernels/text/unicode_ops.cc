// Strings between encodings and code points.
#include <algorithm>

#include "smelt/kernels/kernel.h"
#include "smelt/kernels/text/icu.h"
#include "smelt/kernels/text/unicode.h"

namespace smelt {
namespace {

enum class OnError : uint8_t { kStrict, kReplace, kIgnore };

struct UnicodeState final : KernelState {
  TextEncoding input = TextEncoding::kUtf8;  // kUnknown: a converter of ICU reads input_name
  std::string input_name;
  TextEncoding output = TextEncoding::kUtf8;
  OnError errors = OnError::kReplace;
  int32_t replacement = kReplacementCharacter;
  bool replace_controls = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareUnicode(const Node& node) {
  auto state = std::make_unique<UnicodeState>();
  const std::string input = node.String("input_encoding", "UTF-8");
  state->input = ParseTextEncoding(input);
  if (state->input == TextEncoding::kUnknown) {
    state->input_name = input;
  }
  const std::string output = node.String("output_encoding", "UTF-8");
  state->output = ParseTextEncoding(output);
  if (output != "UTF-8" && output != "UTF-16-BE" && output != "UTF-32-BE") {
    return InvalidArgument("output_encoding must be UTF-8, UTF-16-BE or UTF-32-BE, got ", output);
  }
  const std::string errors = node.String("errors", "replace");
  if (errors == "strict") {
    state->errors = OnError::kStrict;
  } else if (errors == "ignore") {
    state->errors = OnError::kIgnore;
  } else if (errors != "replace") {
    return InvalidArgument("errors must be strict, replace or ignore, got ", errors);
  }
  const int64_t replacement = node.Int("replacement_char", kReplacementCharacter);
  if (replacement < 0 || replacement > 0x10FFFF ||
      !IsCodePoint(static_cast<int32_t>(replacement))) {
    return InvalidArgument("replacement_char out of unicode codepoint range");
  }
  state->replacement = static_cast<int32_t>(replacement);
  state->replace_controls = node.Bool("replace_control_characters");
  if (!state->input_name.empty()) RETURN_IF_ERROR(IcuDecoder::Open(input).status());
  return state;
}

// The characters of the op's texts, one text after the other.
class CharacterReader {
 public:
  static StatusOr<CharacterReader> Open(const UnicodeState& state) {
    CharacterReader reader(state);
    if (state.input == TextEncoding::kUnknown) {
      ASSIGN_OR_RETURN(reader.decoder_, IcuDecoder::Open(state.input_name));
    }
    return reader;
  }

  // Calls fn(code point, offset) for every character that the op's error policy keeps or replaces.
  template <typename F>
  Status ForEach(absl::string_view s, F fn) {
    size_t at = 0;
    bool any_malformed = false;
    const auto take = [&](int32_t c, size_t size, bool malformed) {
      any_malformed |= malformed;
      if (!malformed && !(state_.replace_controls && c <= 0x1F)) {
        fn(c, at);
      } else if (state_.errors != OnError::kIgnore) {
        fn(state_.replacement, at);
      }
      at += size;
    };
    if (decoder_ != nullptr) {
      decoder_->ForEach(s, take);
    } else {
      while (at < s.size()) {
        int32_t c = 0;
        size_t size = 0;
        const bool ok = DecodeOne(state_.input, s.substr(at), &c, &size);
        take(c, size, !ok);
      }
    }
    if (any_malformed && state_.errors == OnError::kStrict) {
      return InvalidArgument("Invalid formatting on input string");
    }
    return OkStatus();
  }

 private:
  explicit CharacterReader(const UnicodeState& state) : state_(state) {}

  const UnicodeState& state_;
  std::unique_ptr<IcuDecoder> decoder_;
};

StatusOr<Tensor> SplitsOf(const OpContext& ctx, const std::vector<int64_t>& splits) {
  const auto n = static_cast<int64_t>(splits.size());
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(ctx.output_type(0), Shape({n}), ctx.step().allocator));
  for (int64_t i = 0; i < n; ++i) {
    if (t.dtype() == Dtype::kInt32) {
      t.data<int32_t>()[i] = static_cast<int32_t>(splits[static_cast<size_t>(i)]);
    } else {
      t.data<int64_t>()[i] = splits[static_cast<size_t>(i)];
    }
  }
  return t;
}

Status RunUnicodeDecode(OpContext& ctx) {
  const auto& state = ctx.state<UnicodeState>();
  std::vector<int32_t> characters;
  std::vector<int64_t> splits{0}, starts;
  ASSIGN_OR_RETURN(CharacterReader reader, CharacterReader::Open(state));
  for (const std::string& s : ctx.input(0).flat<std::string>()) {
    RETURN_IF_ERROR(reader.ForEach(s, [&](int32_t c, size_t at) {
      characters.push_back(c);
      starts.push_back(static_cast<int64_t>(at));
    }));
    splits.push_back(static_cast<int64_t>(characters.size()));
  }
  ASSIGN_OR_RETURN(Tensor rows, SplitsOf(ctx, splits));
  ctx.set_output(0, std::move(rows));
  const Shape shape({static_cast<int64_t>(characters.size())});
  ASSIGN_OR_RETURN(Tensor * values, ctx.Allocate(1, shape));
  std::copy(characters.begin(), characters.end(), values->data<int32_t>());
  if (ctx.num_outputs() > 2) {
    ASSIGN_OR_RETURN(Tensor * offsets, ctx.Allocate(2, shape));
    std::copy(starts.begin(), starts.end(), offsets->data<int64_t>());
  }
  return OkStatus();
}

Status RunUnicodeTranscode(OpContext& ctx) {
  const auto& state = ctx.state<UnicodeState>();
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  auto* p = out->data<std::string>();
  ASSIGN_OR_RETURN(CharacterReader reader, CharacterReader::Open(state));
  for (const std::string& s : in.flat<std::string>()) {
    RETURN_IF_ERROR(reader.ForEach(s, [&](int32_t c, size_t) { EncodeOne(state.output, c, p); }));
    ++p;
  }
  return OkStatus();
}

Status RunUnicodeEncode(OpContext& ctx) {
  const auto& state = ctx.state<UnicodeState>();
  const Tensor &values = ctx.input(0), &splits = ctx.input(1);
  if (values.rank() != 1 || splits.rank() != 1) {
    return InvalidArgument("Both the input_tensor and input_splits should be of rank 1. ");
  }
  if (splits.dim(0) < 1) return InvalidArgument("input_splits must not be empty");
  const int64_t n = splits.dim(0) - 1;
  if (IndexAt(splits, 0) != 0) {
    return InvalidArgument("First value in input_splits must be zero.");
  }
  if (IndexAt(splits, n) != values.num_elements()) {
    return InvalidArgument("Last value in input_splits must be equal to length of input_tensor.");
  }
  for (int64_t i = 0; i < n; ++i) {
    if (IndexAt(splits, i) > IndexAt(splits, i + 1)) {
      return InvalidArgument("Values in input_splits must be equal or in ascending order.");
    }
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({n})));
  const int32_t* c = values.data<int32_t>();
  for (int64_t i = 0; i < n; ++i) {
    std::string& to = out->data<std::string>()[i];
    for (int64_t k = IndexAt(splits, i); k < IndexAt(splits, i + 1); ++k) {
      if (IsCodePoint(c[k])) {
        EncodeOne(state.output, c[k], &to);
      } else if (state.errors == OnError::kStrict) {
        return InvalidArgument("Code point is out of range for Unicode, or is a surrogate.");
      } else if (state.errors == OnError::kReplace) {
        EncodeOne(state.output, state.replacement, &to);
      }
    }
  }
  return OkStatus();
}

Status RunUnicodeScript(OpContext& ctx) {
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  return UnicodeScripts(in.data<int32_t>(), in.num_elements(), out->data<int32_t>());
}

constexpr Kernel kUnicodeTable[] = {
    {"UnicodeDecode", "", kAnyType, "text:unicode_decode", RunUnicodeDecode, PrepareUnicode},
    {"UnicodeDecodeWithOffsets", "", kAnyType, "text:unicode_decode", RunUnicodeDecode,
     PrepareUnicode},
    {"UnicodeTranscode", "", kAnyType, "text:unicode_transcode", RunUnicodeTranscode,
     PrepareUnicode},
    {"UnicodeEncode", "", kAnyType, "text:unicode_encode", RunUnicodeEncode, PrepareUnicode},
    {"UnicodeScript", "", kAnyType, "text:unicode_script", RunUnicodeScript},
};

}  // namespace

extern constinit const std::span<const Kernel> kUnicodeKernels = kUnicodeTable;

}  // namespace smelt
