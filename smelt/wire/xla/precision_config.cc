#include "smelt/wire/xla/precision_config.h"

#include "smelt/wire/proto/precision_config.pb.h"

namespace smelt {

bool IsPrecisionConfig(absl::string_view bytes) {
  return xla::PrecisionConfig().ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace smelt
