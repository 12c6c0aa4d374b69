// A SavedModel as it lies on disk, in smelt's own types.
//
// What smelt works with is typed; the rest of each message (and every field that this program does
// not know) is kept serialized in `extra` and written back, so that reading and writing loses
// nothing. A SavedModel is not thread safe while it changes.
#ifndef SMELT_WIRE_SAVED_MODEL_SAVED_MODEL_H_
#define SMELT_WIRE_SAVED_MODEL_SAVED_MODEL_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "smelt/graph/graph.h"
#include "smelt/wire/graph_def/graph_versions.h"

namespace smelt {

// What a signature calls a tensor, and where it lies in the graph.
struct TensorInfo {
  enum class Kind { kNone, kDense, kSparse, kComposite };
  Kind kind = Kind::kNone;
  std::string name;  // dense: "node:0"
  // Sparse: the three parts.
  std::string values_name, indices_name, dense_shape_name;
  std::vector<TensorInfo> components;  // composite
  Dtype dtype = Dtype::kInvalid;       // may be a reference type (TF1)
  PartialShape shape;
  std::string extra;  // serialized TensorInfo fields not named here
};

struct Signature {
  std::map<std::string, TensorInfo> inputs;
  std::map<std::string, TensorInfo> outputs;
  std::string method_name;
  std::map<std::string, std::shared_ptr<const TensorValue>> defaults;
  std::string extra;
};

struct AssetFile {
  std::string tensor_name;  // fed with the path DIR/assets/filename
  std::string filename;
  std::string extra;
};

struct SaverDef {
  std::string filename_tensor_name;
  std::string save_tensor_name;
  std::string restore_op_name;
  std::string extra;
};

// A collection of TF1: node names, bytes, or something that is only carried.
struct Collection {
  enum class Kind { kNodes, kBytes, kOther };
  Kind kind = Kind::kOther;
  std::vector<std::string> values;
  std::string extra;  // serialized CollectionDef when kOther, unknown fields else
};

struct MetaGraph {
  std::vector<std::string> tags;
  std::string tensorflow_version;
  std::string tensorflow_git_version;
  bool stripped_default_attrs = false;
  std::map<std::string, std::string> function_aliases;  // function name -> alias
  GraphVersions versions;
  std::unique_ptr<Graph> graph;
  std::map<std::string, Signature> signatures;
  std::optional<SaverDef> saver;
  std::map<std::string, Collection> collections;
  std::vector<AssetFile> assets;
  std::string object_graph;  // serialized SavedObjectGraph, empty when there is none (TF1)
  std::string extra;         // serialized MetaGraphDef with every other field

  bool HasTags(const std::vector<std::string>& wanted) const;  // as sets
};

struct SavedModel {
  std::string dir;
  int64_t schema_version = 1;
  std::vector<MetaGraph> meta_graphs;
  std::string extra;
};

// kToRun leaves out what no request can reach (run_part.h): training, saving, functions that no
// signature calls. Such a model answers as the whole does, and is not for writing. What is left out
// is not checked.
enum class ModelPart { kWhole, kToRun };

// Reads DIR/saved_model.pb, or DIR/saved_model.pbtxt. Errors:
//   NOT_FOUND          neither file is there (both paths named)
//   INVALID_ARGUMENT / DATA_LOSS   the bytes do not parse as a SavedModel
//   INVALID_ARGUMENT   a node or edge contradicts the definitions: names the node and function
// Nodes of unknown ops are kept opaque, not refused. Memory stays in proportion to the file.
StatusOr<SavedModel> ReadSavedModel(const std::string& dir, ModelPart part = ModelPart::kWhole);
// The same from bytes of saved_model.pb (for tests and fuzzing).
StatusOr<SavedModel> ParseSavedModel(absl::string_view bytes, ModelPart part = ModelPart::kWhole);

// Writes DIR/saved_model.pb (beside, then renamed into place), deterministically: equal models give
// equal bytes.
Status WriteSavedModel(const SavedModel& model, const std::string& dir);
StatusOr<std::string> SerializeSavedModel(const SavedModel& model);

// The MetaGraph whose tag set equals `tags`. NOT_FOUND as TensorFlow says it, listing what is
// there.
StatusOr<MetaGraph*> FindMetaGraph(SavedModel& model, const std::vector<std::string>& tags);
// The same; without tags the only MetaGraph that there is, else that of {"serve"}.
StatusOr<MetaGraph*> ChosenMetaGraph(SavedModel& model, const std::vector<std::string>& tags = {});

// The model's assets, of either generation: asset_file_def, else collection "saved_model_assets".
std::vector<AssetFile> AssetsOf(const MetaGraph& meta);

// A GraphDef, binary or text, for frozen graphs and --graph flags.
StatusOr<std::unique_ptr<Graph>> ParseGraphDef(absl::string_view bytes, GraphVersions* versions);
StatusOr<std::string> SerializeGraphDef(const Graph& graph, const GraphVersions& versions);

}  // namespace smelt

#endif  // SMELT_WIRE_SAVED_MODEL_SAVED_MODEL_H_
