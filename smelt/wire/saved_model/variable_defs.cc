#include "smelt/wire/saved_model/variable_defs.h"

#include "absl/strings/strip.h"
#include "smelt/wire/proto/framework.pb.h"

namespace smelt {

namespace {

// Only these collections hold VariableDefs.
constexpr const char* kVariableCollections[] = {
    "variables",       "trainable_variables",      "local_variables",
    "model_variables", "moving_average_variables", "global_step"};

}  // namespace

void DescribeAsResources(MetaGraph& meta, const absl::flat_hash_set<std::string>& nodes) {
  for (const char* name : kVariableCollections) {
    auto it = meta.collections.find(name);
    if (it == meta.collections.end() || it->second.kind != Collection::Kind::kBytes) continue;
    for (std::string& value : it->second.values) {
      tensorflow::VariableDef def;
      if (!def.ParseFromString(value)) continue;
      if (!nodes.contains(absl::StripSuffix(def.variable_name(), ":0"))) continue;
      def.set_is_resource(true);
      value = def.SerializeAsString();
    }
  }
}

std::vector<std::string> KeepVariableDefs(
    MetaGraph& meta, const std::function<bool(const std::string& node)>& stays) {
  std::vector<std::string> named;
  for (const char* name : kVariableCollections) {
    auto it = meta.collections.find(name);
    if (it == meta.collections.end() || it->second.kind != Collection::Kind::kBytes) continue;
    std::vector<std::string> kept;
    for (std::string& value : it->second.values) {
      tensorflow::VariableDef def;
      if (!def.ParseFromString(value)) {
        kept.push_back(std::move(value));
        continue;
      }
      const auto node = [](const std::string& tensor) {
        return tensor.substr(0, tensor.find(':'));
      };
      if (!stays(node(def.variable_name()))) continue;
      for (const auto* tensor :
           {&def.initializer_name(), &def.initial_value_name(), &def.snapshot_name()}) {
        if (!tensor->empty()) named.push_back(node(*tensor));
      }
      kept.push_back(std::move(value));
    }
    it->second.values = std::move(kept);
  }
  return named;
}

}  // namespace smelt
