// Fingerprint: eight bytes for each row of a tensor.
#include "smelt/base/hash.h"
#include "smelt/base/little_endian.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

absl::string_view BytesOf(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

Status RunFingerprint(OpContext& ctx) {
  const Tensor& method = ctx.input(1);
  if (method.rank() != 0) {
    return InvalidArgument("`method` should be a scalar string: ", method.shape().ToString());
  }
  if (method.scalar<std::string>() != "farmhash64") {
    return InvalidArgument("Unsupported fingerprint method: ", method.scalar<std::string>());
  }
  const Tensor& data = ctx.input(0);
  if (data.rank() < 1) {
    return InvalidArgument("`data` should have at least one dimension: ", data.shape().ToString());
  }
  const int64_t rows = data.dim(0), width = data.shape().Product(1, data.rank());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({rows, 8})));
  if (rows == 0) return OkStatus();
  uint8_t* to = out->data<uint8_t>();
  if (data.dtype() != Dtype::kString) {
    const size_t size = static_cast<size_t>(width) * DtypeSize(data.dtype());
    const auto* from = static_cast<const char*>(data.raw());
    for (int64_t i = 0; i < rows; ++i) {
      StoreLittle(Fingerprint64({from + static_cast<size_t>(i) * size, size}), to + i * 8);
    }
    return OkStatus();
  }
  // Strings are hashed first, rows of several by their hashes.
  std::vector<uint64_t> hashes(static_cast<size_t>(width));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      hashes[j] = Fingerprint64(data.data<std::string>()[i * width + j]);
    }
    StoreLittle(width == 1 ? hashes[0] : Fingerprint64(BytesOf(hashes.data(), hashes.size() * 8)),
                to + i * 8);
  }
  return OkStatus();
}

std::string DeclineObjects(const Node& node) {
  const Dtype t = node.Type("T");
  return IsPod(t) || t == Dtype::kString ? "" : "wants plain bytes or strings";
}

constexpr Kernel kFingerprintTable[] = {
    {"Fingerprint", "", kAnyType, "text:fingerprint", RunFingerprint, nullptr, DeclineObjects},
};

}  // namespace

extern constinit const std::span<const Kernel> kFingerprintKernels = kFingerprintTable;

}  // namespace smelt
