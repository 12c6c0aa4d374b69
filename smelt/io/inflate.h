// Deflate streams in memory. Their checksums are verified: CRC-32 and length of each gzip member,
// Adler-32 of a zlib stream.
#ifndef SMELT_IO_INFLATE_H_
#define SMELT_IO_INFLATE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "smelt/base/status.h"

struct z_stream_s;

namespace smelt {

// kGzip: one member after another, to the last byte. kPaddedGzip: zeros may follow the last member,
// as the gzip program has it.
enum class DeflateForm { kZlib, kGzip, kPaddedGzip };

// What becomes of a stream that ends early: an error, or what was decoded up to there, which no
// checksum confirms.
enum class CutShort { kRefuse, kKeepPrefix };

// Inflates block by block. Used by one thread at a time.
class InflateStream {
 public:
  // `packed` must outlive the stream, and holds at least one byte.
  InflateStream(absl::string_view packed, DeflateForm form, CutShort cut);
  ~InflateStream();

  // The next bytes, valid until the next call; none at the end, once all checksums were found
  // right. DATA_LOSS in zlib's words for damage, RESOURCE_EXHAUSTED beyond UnpackLimit.
  StatusOr<absl::string_view> Next();

 private:
  struct Ender {
    void operator()(z_stream_s* stream) const;
  };
  // Whether the stream is over, now that a member is.
  bool NothingFollows() const;

  const absl::string_view packed_;
  const DeflateForm form_;
  const CutShort cut_;
  const uint64_t limit_;
  std::unique_ptr<z_stream_s, Ender> stream_;  // nullptr: no memory for it
  size_t read_ = 0;
  uint64_t written_ = 0;
  bool done_ = false;
  char block_[1 << 15];
};

// The uncompressed bytes of a whole stream; nothing for no bytes. Errors as InflateStream::Next.
// Thread safe.
StatusOr<std::string> Inflate(absl::string_view packed, DeflateForm form,
                              CutShort cut = CutShort::kRefuse);

}  // namespace smelt

#endif  // SMELT_IO_INFLATE_H_
