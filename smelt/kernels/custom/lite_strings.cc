#include "smelt/kernels/custom/lite_strings.h"

#include <cstring>
#include <limits>

namespace smelt {

StatusOr<Tensor> LiteBlockOfStrings(const Tensor& strings) {
  const auto in = strings.flat<std::string>();
  size_t size = (in.size() + 2) * sizeof(int32_t);
  for (const std::string& s : in) size += s.size();
  if (size > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("its strings take ", size, " bytes, and int32 counts them");
  }
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(Dtype::kUint8, Shape({static_cast<int64_t>(size)})));
  auto* to = static_cast<char*>(out.raw());
  const auto put = [&](size_t at, size_t value) {
    const auto number = static_cast<int32_t>(value);
    std::memcpy(to + at * sizeof(number), &number, sizeof(number));
  };
  size_t at = (in.size() + 2) * sizeof(int32_t);
  put(0, in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    put(1 + i, at);
    if (!in[i].empty()) std::memcpy(to + at, in[i].data(), in[i].size());
    at += in[i].size();
  }
  put(1 + in.size(), at);
  return out;
}

Status StringsOfLiteBlock(absl::string_view block, Tensor& strings) {
  const auto number = [&](size_t at) {
    int32_t value = 0;
    std::memcpy(&value, block.data() + at * sizeof(value), sizeof(value));
    return value;
  };
  const auto out = strings.flat<std::string>();
  const int32_t count = block.size() < sizeof(int32_t) ? 0 : number(0);
  if (static_cast<int64_t>(out.size()) != count) {
    return InvalidArgument("it holds ", count, " strings for the shape ",
                           strings.shape().ToString());
  }
  if (out.empty()) return OkStatus();
  if (block.size() / sizeof(int32_t) < out.size() + 2) {
    return InvalidArgument("its ", count, " strings do not fit in ", block.size(), " bytes");
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const int32_t begin = number(1 + i), end = number(2 + i);
    if (begin < 0 || end < begin || static_cast<size_t>(end) > block.size()) {
      return InvalidArgument("its string ", i, " lies from ", begin, " to ", end, " of ",
                             block.size(), " bytes");
    }
    out[i].assign(block.data() + begin, static_cast<size_t>(end - begin));
  }
  return OkStatus();
}

}  // namespace smelt
