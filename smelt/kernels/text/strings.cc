// Elementwise ops on strings, joins and splits.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "smelt/kernels/common/summarize.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/text/icu.h"
#include "smelt/kernels/text/unicode.h"

namespace smelt {
namespace {

// ---- one string to one string ----

// Calls fn(string, output) for every string of input 0.
template <typename F>
Status MapStrings(OpContext& ctx, F fn) {
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  auto* p = out->data<std::string>();
  for (const std::string& s : in.flat<std::string>()) fn(s, p++);
  return OkStatus();
}

// What is not UTF-8 becomes U+FFFD.
std::u16string Utf16Of(absl::string_view s) {
  std::u16string out;
  out.reserve(s.size());
  while (!s.empty()) {
    int32_t c = 0;
    size_t size = 0;
    if (!DecodeOne(TextEncoding::kUtf8, s, &c, &size)) c = kReplacementCharacter;
    s.remove_prefix(size);
    if (c < 0x10000) {
      out.push_back(static_cast<char16_t>(c));
    } else {
      out.push_back(static_cast<char16_t>(0xD800 + ((c - 0x10000) >> 10)));
      out.push_back(static_cast<char16_t>(0xDC00 + ((c - 0x10000) & 0x3FF)));
    }
  }
  return out;
}

// REQUIRES: surrogates in pairs.
std::string Utf8Of(const std::u16string& s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    int32_t c = s[i];
    if (c >= 0xD800 && c < 0xDC00 && i + 1 < s.size()) {
      c = 0x10000 + ((c - 0xD800) << 10) + (s[++i] - 0xDC00);
    }
    EncodeOne(TextEncoding::kUtf8, c, &out);
  }
  return out;
}

template <bool kUpper>
Status RunCase(OpContext& ctx) {
  const std::string encoding = ctx.node().String("encoding");
  if (encoding.empty()) {
    return MapStrings(ctx, [](const std::string& s, std::string* out) {
      *out = kUpper ? absl::AsciiStrToUpper(s) : absl::AsciiStrToLower(s);
    });
  }
  if (encoding != "utf-8") {
    return InvalidArgument("only utf-8 or '' (no encoding) is supported, received ", encoding);
  }
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  auto* p = out->data<std::string>();
  for (const std::string& s : in.flat<std::string>()) {
    const std::u16string text = Utf16Of(s.c_str());  // TensorFlow's ends at a zero byte, too
    ASSIGN_OR_RETURN(const std::u16string mapped, kUpper ? UnicodeUpper(text) : UnicodeLower(text));
    *p++ = Utf8Of(mapped);
  }
  return OkStatus();
}

Status RunStrip(OpContext& ctx) {
  return MapStrings(ctx, [](const std::string& s, std::string* out) {
    const absl::string_view kept = absl::StripAsciiWhitespace(s);
    out->assign(kept.data(), kept.size());
  });
}

StatusOr<bool> InCharacters(const Node& node) {
  const std::string unit = node.String("unit", "BYTE");
  if (unit != "BYTE" && unit != "UTF8_CHAR") {
    return InvalidArgument("unit must be BYTE or UTF8_CHAR, got ", unit);
  }
  return unit == "UTF8_CHAR";
}

Status RunLength(OpContext& ctx) {
  ASSIGN_OR_RETURN(const bool characters, InCharacters(ctx.node()));
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  auto* p = out->data<int32_t>();
  for (const std::string& s : in.flat<std::string>()) {
    *p++ = static_cast<int32_t>(characters ? Utf8Length(s) : static_cast<int64_t>(s.size()));
  }
  return OkStatus();
}

// ---- substrings ----

// These two: part [pos, pos + len) of s, in bytes or characters, cut off at its end. A negative pos
// counts from the end; a negative len is the rest of the bytes but no characters, as in TensorFlow.
// False when pos lies outside of s.
bool SubstrBytes(const std::string& s, int64_t pos, int64_t len, std::string* out) {
  const auto size = static_cast<int64_t>(s.size());
  if (pos > size || pos < -size || (pos < 0 && len < 0)) return false;
  const int64_t from = pos < 0 ? size + pos : pos;
  const int64_t n = len < 0 ? size - from : std::min(len, size - from);
  out->assign(s, static_cast<size_t>(from), static_cast<size_t>(n));
  return true;
}

bool SubstrCharacters(const std::string& s, int64_t pos, int64_t len, std::string* out) {
  const int64_t size = Utf8Length(s);
  if (pos > size || pos < -size) return false;
  const int64_t from = pos < 0 ? size + pos : pos;
  const int64_t n = std::clamp<int64_t>(len, 0, size - from);
  const size_t begin = Utf8Offset(s, 0, from), end = Utf8Offset(s, begin, n);
  out->assign(s, begin, end - begin);
  return true;
}

// The shape that two shapes broadcast to; INVALID_ARGUMENT when there is none.
StatusOr<Shape> SubstrShape(const Shape& a, const Shape& b) {
  const auto mismatch = [&] {
    return InvalidArgument("Incompatible shapes: ", a.ToString(), " vs. ", b.ToString());
  };
  const int rank = std::max(a.rank(), b.rank());
  Dims dims(static_cast<size_t>(rank), 1);
  for (int k = 1; k <= rank; ++k) {
    const int64_t x = k <= a.rank() ? a.back(k) : 1, y = k <= b.rank() ? b.back(k) : 1;
    if (x != y && x != 1 && y != 1) return mismatch();
    dims[static_cast<size_t>(rank - k)] = x == 1 ? y : x;
  }
  return Shape::Make(dims);
}

// The element of a tensor of shape `from` that stands at element i of the broadcast `shape`.
int64_t SubstrSource(int64_t i, const Shape& shape, const Shape& from) {
  int64_t at = 0, step = 1;
  for (int k = 1; k <= shape.rank(); ++k) {
    const int64_t index = i % shape.back(k);
    i /= shape.back(k);
    if (k > from.rank()) continue;
    if (from.back(k) != 1) at += index * step;
    step *= from.back(k);
  }
  return at;
}

Status RunSubstr(OpContext& ctx) {
  ASSIGN_OR_RETURN(const bool characters, InCharacters(ctx.node()));
  const Tensor &in = ctx.input(0), &pos = ctx.input(1), &len = ctx.input(2);
  if (!(pos.shape() == len.shape())) {
    return InvalidArgument("pos and len should have the same shape, got: ", pos.shape().ToString(),
                           " vs. ", len.shape().ToString());
  }
  ASSIGN_OR_RETURN(const Shape shape, SubstrShape(in.shape(), pos.shape()));
  if (shape.rank() > 2 && pos.rank() > 0 && !(in.shape() == pos.shape())) {
    return Unimplemented("Substr broadcast not implemented for ", shape.rank(), " dimensions");
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  auto* p = out->data<std::string>();
  const int64_t n = shape.num_elements();
  const bool same_in = in.shape() == shape, same_pos = pos.shape() == shape;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t j = same_pos ? i : SubstrSource(i, shape, pos.shape());
    const std::string& s = in.data<std::string>()[same_in ? i : SubstrSource(i, shape, in.shape())];
    const int64_t at = IndexAt(pos, j);
    if (characters) {
      if (!SubstrCharacters(s, at, IndexAt(len, j), p + i)) {
        return InvalidArgument("pos ", at, " out of range for string at index ", i);
      }
    } else if (!SubstrBytes(s, at, IndexAt(len, j), p + i)) {
      return InvalidArgument("pos ", at, " out of range for string b'", s, "' at index ", i);
    }
  }
  return OkStatus();
}

// ---- joins ----

Status RunJoin(OpContext& ctx) {
  const std::string separator = ctx.node().String("separator");
  // Scalars repeat; the others have one shape.
  const Tensor* shaped = nullptr;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Tensor& t = ctx.input(i);
    if (t.rank() == 0) continue;
    if (shaped == nullptr) {
      shaped = &t;
    } else if (!(shaped->shape() == t.shape())) {
      return InvalidArgument("Input shapes do not match: ", shaped->shape().ToString(), " vs. ",
                             t.shape().ToString());
    }
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shaped ? shaped->shape() : Shape()));
  auto* p = out->data<std::string>();
  const int64_t n = out->num_elements();
  for (int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < ctx.num_inputs(); ++k) {
      const Tensor& t = ctx.input(k);
      if (k > 0) p[i] += separator;
      p[i] += t.data<std::string>()[t.rank() == 0 ? 0 : i];
    }
  }
  return OkStatus();
}

Status RunReduceJoin(OpContext& ctx) {
  const Tensor &in = ctx.input(0), &axes = ctx.input(1);
  const std::string separator = ctx.node().String("separator");
  const bool keep = ctx.node().Bool("keep_dims");
  const int rank = in.rank();
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  std::vector<int> order;  // the axes backwards: the first that is given varies fastest
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int64_t axis = axes.data<int32_t>()[i];
    const int64_t d = axis < 0 ? axis + rank : axis;
    if (d < 0 || d >= rank) {
      return OutOfRange("Invalid reduction dimension ", axis, " for input with ", rank,
                        " dimension(s)");
    }
    if (reduced[static_cast<size_t>(d)]) {
      return InvalidArgument("Duplicate reduction dimension ", axis);
    }
    reduced[static_cast<size_t>(d)] = true;
    order.push_back(static_cast<int>(d));
  }
  std::reverse(order.begin(), order.end());
  Shape shape;
  std::vector<int> kept;
  Dims strides(static_cast<size_t>(rank), 1);
  for (int d = rank - 2; d >= 0; --d) strides[d] = strides[d + 1] * in.dim(d + 1);
  for (int d = 0; d < rank; ++d) {
    if (!reduced[static_cast<size_t>(d)]) {
      shape.Add(in.dim(d));
      kept.push_back(d);
    } else if (keep) {
      shape.Add(1);
    }
  }
  // Walks the dimensions `dims`, the last fastest: element i of the walk.
  const auto offset = [&](const std::vector<int>& dims, int64_t i) {
    int64_t at = 0;
    for (size_t k = dims.size(); k-- > 0;) {
      const int64_t size = in.dim(dims[k]);
      at += i % size * strides[static_cast<size_t>(dims[k])];
      i /= size;
    }
    return at;
  };
  int64_t joined = 1;
  for (int d : order) joined *= in.dim(d);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  auto* p = out->data<std::string>();
  const auto* from = in.data<std::string>();
  const int64_t n = out->num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t base = offset(kept, i);
    for (int64_t j = 0; j < joined; ++j) {
      if (j > 0) p[i] += separator;
      p[i] += from[base + offset(order, j)];
    }
  }
  return OkStatus();
}

Status RunSegmentJoin(OpContext& ctx) {
  const Tensor &in = ctx.input(0), &ids = ctx.input(1), &count = ctx.input(2);
  // TensorFlow reads it up to a zero byte.
  const std::string separator = ctx.node().String("separator").c_str();
  if (count.num_elements() == 0) {
    return InvalidArgument("Number of segments cannot be empty.");
  }
  if (count.rank() != 0) return InvalidArgument("Number of segments must be a scalar");
  const int64_t segments = IndexAt(count, 0);
  if (segments < 0) {
    return InvalidArgument("Number of segments must be non-negative but got ", segments);
  }
  if (ids.rank() == 0) return InvalidArgument("Segment_id cannot have rank 0");
  if (ids.rank() > in.rank()) {
    return OutOfRange("Invalid segment_id rank ", ids.rank(), " for input with ", in.rank(),
                      " dimension(s)");
  }
  for (int d = 0; d < ids.rank(); ++d) {
    if (ids.dim(d) != in.dim(d)) {
      return InvalidArgument("Segment dimension is ", ids.dim(d), " while input dimension is ",
                             in.rank(), " in rank ", d);
    }
  }
  const int64_t n = ids.num_elements(), row = in.shape().Product(ids.rank(), in.rank());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = IndexAt(ids, i);
    if (id < 0 || id >= segments) {
      return InvalidArgument(
          "segment_ids are not allowed to exceed num_segments or to have negative values.");
    }
  }
  Dims dims{segments};
  for (int d = ids.rank(); d < in.rank(); ++d) dims.push_back(in.dim(d));
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  auto* p = out->data<std::string>();
  const auto* from = in.data<std::string>();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = IndexAt(ids, i);
    for (int64_t j = 0; j < row; ++j) {
      std::string& to = p[id * row + j];
      if (!to.empty()) to += separator;
      to += from[i * row + j];
    }
  }
  return OkStatus();
}

Status RunFormat(OpContext& ctx) {
  const Node& node = ctx.node();
  const std::string form = node.String("template", "%s");
  const std::string placeholder = node.String("placeholder", "%s");
  const int64_t summarize = node.Int("summarize", 3);
  std::string out;
  size_t at = 0;
  int next = 0;
  while (!placeholder.empty()) {
    const size_t found = form.find(placeholder, at);
    if (found == std::string::npos) break;
    out.append(form, at, found - at);
    if (next >= ctx.num_inputs()) {
      return InvalidArgument("num placeholders in template and num inputs must match: ", next + 1,
                             " vs. ", ctx.num_inputs());
    }
    out += SummarizeEnds(ctx.input(next++), summarize);
    at = found + placeholder.size();
  }
  if (next != ctx.num_inputs()) {
    return InvalidArgument("num placeholders in template and num inputs must match: ", next,
                           " vs. ", ctx.num_inputs());
  }
  out.append(form, at, std::string::npos);
  ctx.set_output(0, Tensor::Scalar(std::move(out)));
  return OkStatus();
}

constexpr Kernel kStringTable[] = {
    {"StringLower", "", kAnyType, "text:lower", RunCase<false>},
    {"StringUpper", "", kAnyType, "text:upper", RunCase<true>},
    {"StringStrip", "", kAnyType, "text:strip", RunStrip},
    {"StringLength", "", kAnyType, "text:length", RunLength},
    {"Substr", "", kAnyType, "text:substr", RunSubstr},
    {"StringJoin", "", kAnyType, "text:join", RunJoin},
    {"ReduceJoin", "", kAnyType, "text:reduce_join", RunReduceJoin},
    {"UnsortedSegmentJoin", "", kAnyType, "text:segment_join", RunSegmentJoin},
    {"StringFormat", "", kAnyType, "text:format", RunFormat},
};

}  // namespace

extern constinit const std::span<const Kernel> kStringKernels = kStringTable;

}  // namespace smelt
