// libFuzzer target: the bytes as saved_model.pb. What parses is verified, written, and read back;
// of its objects those that serve are kept, and nothing more is taken from these.
#include <cstdint>
#include <cstdlib>

#include "smelt/graph/verify.h"
#include "smelt/wire/saved_model/saved_model.h"
#include "smelt/wire/saved_model/serving_objects.h"

static void KeepServing(const smelt::MetaGraph& meta) {
  const auto trains = [](const std::string& function) { return function.size() % 2 == 1; };
  for (const std::string& checkpoint : {std::string(), meta.object_graph}) {
    const auto kept = smelt::KeepServingObjects(meta.object_graph, checkpoint, trains);
    if (!kept.ok()) continue;
    const auto again =
        smelt::KeepServingObjects(kept->object_graph, kept->checkpoint_graph, trains);
    if (!again.ok() || again->removed != 0) std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  smelt::SetHeapLimit(int64_t{256} << 20);
  auto model = smelt::ParseSavedModel({reinterpret_cast<const char*>(data), size});
  if (!model.ok()) return 0;
  for (const smelt::MetaGraph& meta : model->meta_graphs) {
    if (meta.graph) smelt::VerifyAll(*meta.graph).IgnoreError();
    KeepServing(meta);
  }
  auto bytes = smelt::SerializeSavedModel(*model);
  if (bytes.ok() && !smelt::ParseSavedModel(*bytes).ok()) std::abort();
  return 0;
}
