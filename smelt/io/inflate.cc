#include "smelt/io/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "smelt/io/unpack_limit.h"

namespace smelt {
namespace {

constexpr int kGzipBits = 16;  // added to the window's: a gzip header and trailer are expected
// zlib counts its input in 32 bits: longer input is fed in parts.
constexpr size_t kMostFed = size_t{1} << 30;

}  // namespace

void InflateStream::Ender::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

InflateStream::InflateStream(absl::string_view packed, DeflateForm form, CutShort cut)
    : packed_(packed), form_(form), cut_(cut), limit_(UnpackLimit(packed.size())) {
  auto stream = std::make_unique<z_stream>();
  if (inflateInit2(stream.get(), MAX_WBITS + (form == DeflateForm::kZlib ? 0 : kGzipBits)) ==
      Z_OK) {
    stream_.reset(stream.release());
  }
}

InflateStream::~InflateStream() = default;

bool InflateStream::NothingFollows() const {
  const absl::string_view rest = packed_.substr(read_);
  if (form_ == DeflateForm::kPaddedGzip) return rest.find_first_not_of('\0') == rest.npos;
  return form_ == DeflateForm::kZlib || rest.empty();
}

StatusOr<absl::string_view> InflateStream::Next() {
  if (stream_ == nullptr) return ResourceExhausted("no memory to decompress");
  size_t have = 0;
  while (have == 0 && !done_) {
    const size_t fed = std::min(packed_.size() - read_, kMostFed);
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data())) + read_;
    stream_->avail_in = static_cast<uInt>(fed);
    stream_->next_out = reinterpret_cast<Bytef*>(block_);
    stream_->avail_out = sizeof(block_);
    const int code = inflate(stream_.get(), Z_NO_FLUSH);
    read_ += fed - stream_->avail_in;
    have = sizeof(block_) - stream_->avail_out;
    if (code == Z_STREAM_END) {
      done_ = NothingFollows();
      inflateReset(stream_.get());
    } else if (code == Z_BUF_ERROR) {
      if (cut_ == CutShort::kRefuse) return DataLoss("compressed data is cut short");
      done_ = true;
    } else if (code != Z_OK) {
      return DataLoss("inflate() failed with error ", code,
                      stream_->msg != nullptr ? absl::StrCat(": ", stream_->msg) : "");
    }
  }
  written_ += have;
  RETURN_IF_ERROR(CheckUnpacked("compressed data", written_, limit_));
  return absl::string_view(block_, have);
}

StatusOr<std::string> Inflate(absl::string_view packed, DeflateForm form, CutShort cut) {
  std::string out;
  if (packed.empty()) return out;
  InflateStream stream(packed, form, cut);
  while (true) {
    ASSIGN_OR_RETURN(const absl::string_view block, stream.Next());
    if (block.empty()) return out;
    out.append(block.data(), block.size());
  }
}

}  // namespace smelt
