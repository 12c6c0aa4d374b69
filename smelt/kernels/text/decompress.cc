// DecodeCompressed: strings out of zlib and gzip streams.
#include "smelt/io/inflate.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

constexpr size_t kMaxDecompressed = size_t{1} << 30;

StatusOr<std::unique_ptr<KernelState>> PrepareDecompress(const Node& node) {
  struct DecompressState final : KernelState {};
  const std::string type = node.String("compression_type");
  if (type == "ZSTD") return Unimplemented("decompressing ZSTD");
  if (!type.empty() && type != "ZLIB" && type != "GZIP") {
    return InvalidArgument("Only ZLIB, ZSTD, GZIP or NONE are supported compressions");
  }
  return std::make_unique<DecompressState>();
}

Status RunDecompress(OpContext& ctx) {
  const std::string type = ctx.node().String("compression_type");
  if (type.empty()) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    const std::string& bytes = in.data<std::string>()[i];
    if (bytes.size() > kMaxDecompressed) {
      return InvalidArgument("Decompressed size exceeds 1GB limit");
    }
    auto inflated = Inflate(bytes, type == "GZIP" ? DeflateForm::kGzip : DeflateForm::kZlib,
                            CutShort::kKeepPrefix, kMaxDecompressed);
    if (absl::IsResourceExhausted(inflated.status())) {
      return InvalidArgument("Decompressed size exceeds 1GB limit");
    }
    ASSIGN_OR_RETURN(out->data<std::string>()[i], std::move(inflated));
  }
  return OkStatus();
}

constexpr Kernel kDecompressTable[] = {
    {"DecodeCompressed", "", kAnyType, "text:decompress", RunDecompress, PrepareDecompress},
};

}  // namespace

extern constinit const std::span<const Kernel> kDecompressKernels = kDecompressTable;

}  // namespace smelt
