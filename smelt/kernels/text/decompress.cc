// DecodeCompressed: strings out of zlib and gzip streams.
#include <zlib.h>

#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

constexpr size_t kMaxDecompressed = size_t{1} << 30;

class Inflater {
 public:
  Inflater() = default;
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Everything that the stream holds, up to where it ends early. gzip members follow each other.
  StatusOr<std::string> Run(absl::string_view in, bool gzip) {
    constexpr int kGzipBits = 16;
    if (inflateInit2(&stream_, MAX_WBITS + (gzip ? kGzipBits : 0)) != Z_OK) {
      return ResourceExhausted("no memory to decompress");
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    std::string out;
    char buffer[1 << 15];
    for (;;) {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer);
      stream_.avail_out = sizeof(buffer);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      out.append(buffer, sizeof(buffer) - stream_.avail_out);
      if (out.size() > kMaxDecompressed) {
        return InvalidArgument("Decompressed size exceeds 1GB limit");
      }
      if (code == Z_STREAM_END && gzip && stream_.avail_in > 0) {
        inflateReset(&stream_);
      } else if (code == Z_STREAM_END || code == Z_BUF_ERROR) {
        return out;
      } else if (code != Z_OK) {
        return DataLoss("inflate() failed with error ", code,
                        stream_.msg != nullptr ? absl::StrCat(": ", stream_.msg) : "");
      }
    }
  }

 private:
  z_stream stream_{};
};

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
    ASSIGN_OR_RETURN(out->data<std::string>()[i], Inflater().Run(bytes, type == "GZIP"));
  }
  return OkStatus();
}

constexpr Kernel kDecompressTable[] = {
    {"DecodeCompressed", "", kAnyType, "text:decompress", RunDecompress, PrepareDecompress},
};

}  // namespace

extern constinit const std::span<const Kernel> kDecompressKernels = kDecompressTable;

}  // namespace smelt
