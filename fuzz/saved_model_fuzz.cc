// libFuzzer target: the bytes as saved_model.pb. What parses is verified, written, and read back.
#include <cstdint>
#include <cstdlib>

#include "smelt/graph/verify.h"
#include "smelt/wire/saved_model/saved_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  smelt::SetHeapLimit(int64_t{256} << 20);
  auto model = smelt::ParseSavedModel({reinterpret_cast<const char*>(data), size});
  if (!model.ok()) return 0;
  for (const smelt::MetaGraph& meta : model->meta_graphs) {
    if (meta.graph) smelt::VerifyAll(*meta.graph).IgnoreError();
  }
  auto bytes = smelt::SerializeSavedModel(*model);
  if (bytes.ok() && !smelt::ParseSavedModel(*bytes).ok()) std::abort();
  return 0;
}
