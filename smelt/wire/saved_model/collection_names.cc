#include "smelt/wire/saved_model/collection_names.h"

#include <google/protobuf/unknown_field_set.h>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace smelt {
namespace {

// Messages in messages are read so deep; no collection of TensorFlow's nests more than a few.
constexpr int kMaxDepth = 16;

class NameFinder {
 public:
  explicit NameFinder(const Graph& graph) : graph_(graph) {}

  void Text(absl::string_view text) {
    absl::ConsumePrefix(&text, "^");
    const absl::string_view name = text.substr(0, text.find(':'));
    if (name.empty() || graph_.Find(name) == nullptr) return;
    if (seen_.insert(std::string(name)).second) names_.emplace_back(name);
  }

  // A field of bytes may be a name or a message.
  void Message(const std::string& bytes, int depth) {
    google::protobuf::UnknownFieldSet fields;
    if (depth > kMaxDepth || !fields.ParseFromString(bytes)) return;
    for (int i = 0; i < fields.field_count(); ++i) {
      const auto& field = fields.field(i);
      if (field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) continue;
      Text(field.length_delimited());
      Message(field.length_delimited(), depth + 1);
    }
  }

  std::vector<std::string> Take() { return std::move(names_); }

 private:
  const Graph& graph_;
  absl::flat_hash_set<std::string> seen_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> NodesOfCollections(const MetaGraph& meta) {
  NameFinder finder(*meta.graph);
  for (const auto& [name, collection] : meta.collections) {
    for (const std::string& value : collection.values) {
      finder.Text(value);
      if (collection.kind != Collection::Kind::kNodes) finder.Message(value, 0);
    }
    finder.Message(collection.extra, 0);
  }
  return finder.Take();
}

}  // namespace smelt
