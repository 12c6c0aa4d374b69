// DecodeCompressed: strings out of zlib and gzip streams.
#include "smelt/io/inflate.h"
#include "smelt/io/unpack_limit.h"
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
  uint64_t packed = 0, unpacked = 0;
  for (const std::string& bytes : in.flat<std::string>()) packed += bytes.size();
  const uint64_t limit = UnpackLimit(packed);
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    const std::string& bytes = in.data<std::string>()[i];
    if (bytes.empty()) continue;
    const Status exceeds = InvalidArgument("Decompressed size exceeds 1GB limit");
    if (bytes.size() > kMaxDecompressed) return exceeds;
    InflateStream stream(bytes, type == "GZIP" ? DeflateForm::kGzip : DeflateForm::kZlib,
                         CutShort::kKeepPrefix);
    std::string& text = out->data<std::string>()[i];
    while (true) {
      ASSIGN_OR_RETURN(const absl::string_view block, stream.Next());
      if (block.empty()) break;
      if (block.size() > kMaxDecompressed - text.size()) return exceeds;
      text.append(block.data(), block.size());
      unpacked += block.size();
      // Many strings together, each of which may be within its limit.
      RETURN_IF_ERROR(CheckUnpacked("compressed data", unpacked, limit));
    }
  }
  return OkStatus();
}

constexpr Kernel kDecompressTable[] = {
    {"DecodeCompressed", "", kAnyType, "text:decompress", RunDecompress, PrepareDecompress},
};

}  // namespace

extern constinit const std::span<const Kernel> kDecompressKernels = kDecompressTable;

}  // namespace smelt
