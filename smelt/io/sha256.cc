#include "smelt/io/sha256.h"

#include <nettle/sha2.h>

#include "absl/strings/escaping.h"
#include "smelt/io/fs.h"

namespace smelt {

std::string Sha256(absl::string_view bytes) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
  std::string digest(SHA256_DIGEST_SIZE, 0);
  sha256_digest(&context, digest.size(), reinterpret_cast<uint8_t*>(digest.data()));
  return absl::BytesToHexString(digest);
}

StatusOr<std::string> Sha256OfFile(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, MapFile(path));
  return Sha256(file->bytes());
}

}  // namespace smelt
