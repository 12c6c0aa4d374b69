#include "smelt/model/optimize_model.h"

#include "absl/strings/str_join.h"
#include "smelt/model/model_folder.h"
#include "smelt/model/output_folder.h"
#include "smelt/wire/saved_model/collection_names.h"
#include "smelt/wire/saved_model/object_graph.h"

namespace smelt {
namespace {

// The tensors of one entry of a signature.
void AddTensors(const TensorInfo& info, std::vector<std::string>* names) {
  for (const std::string* name :
       {&info.name, &info.values_name, &info.indices_name, &info.dense_shape_name}) {
    if (!name->empty()) names->push_back(*name);
  }
  for (const TensorInfo& part : info.components) AddTensors(part, names);
}

Status KeepSignatures(MetaGraph& meta, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return OkStatus();
  std::map<std::string, Signature> kept;
  for (const std::string& name : wanted) {
    const auto it = meta.signatures.find(name);
    if (it == meta.signatures.end()) {
      std::vector<std::string> names;
      for (const auto& [key, signature] : meta.signatures) names.push_back(key);
      return NotFound("no signature '", name, "'; there are ", absl::StrJoin(names, ", "));
    }
    kept.insert(*it);
  }
  for (const auto& [name, signature] : meta.signatures) {
    if (name.starts_with("__saved_model_")) kept.emplace(name, signature);
  }
  meta.signatures = std::move(kept);
  return OkStatus();
}

}  // namespace

StatusOr<GraphItem> ItemOf(MetaGraph& meta, const std::vector<std::string>& keep) {
  GraphItem item;
  item.id = "tf_graph";
  item.keep_ops = keep;
  for (const auto& [key, signature] : meta.signatures) {
    for (const auto& [name, info] : signature.inputs) AddTensors(info, &item.feeds);
    for (const auto& [name, info] : signature.outputs) {
      // An op that is run for its effect, such as the init op, is no tensor.
      AddTensors(info, info.dtype == Dtype::kInvalid ? &item.init_ops : &item.fetches);
    }
  }
  if (meta.saver) {
    item.save_op = meta.saver->save_tensor_name;
    item.restore_op = meta.saver->restore_op_name;
    item.save_restore_loc_tensor = meta.saver->filename_tensor_name;
  }
  for (const AssetFile& asset : AssetsOf(meta)) item.keep_ops.push_back(asset.tensor_name);
  for (std::string& node : NodesOfCollections(meta)) item.keep_ops.push_back(std::move(node));
  if (!meta.object_graph.empty()) {
    ASSIGN_OR_RETURN(const ObjectGraph objects, ParseObjectGraph(meta.object_graph));
    for (const auto& [name, concrete] : objects.concrete_functions) {
      item.kept_functions.push_back(name);
    }
    for (const ObjectNode& object : objects.nodes) {
      if (object.kind != ObjectNode::Kind::kCapturedTensor) continue;
      for (const std::string& f : object.concrete_functions) {
        const std::string node = object.name.substr(0, object.name.find(':'));
        item.kept_in_functions[f].push_back(node);
      }
    }
    // Objects name nodes of the graph that make them: variables, tables, assets, constants.
    for (const Node* n : meta.graph->Nodes()) {
      if (n->def() == nullptr || n->def()->stateful || n->Is("Const")) {
        item.keep_ops.push_back(n->name());
      }
    }
  }
  item.graph = std::move(meta.graph);
  item.versions = meta.versions;
  return item;
}

StatusOr<OptimizationReport> OptimizeSavedModel(const OptimizeModelFlags& flags) {
  ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(flags.input));
  const FileSystem files = flags.files.With(FoldersOfModel(folder.dir()));
  std::unique_ptr<StagedFolder> output;
  if (!flags.output.empty()) {
    ASSIGN_OR_RETURN(output,
                     StageOutput({flags.input, folder.dir(), flags.output, flags.overwrite, {}}));
  }
  ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(folder.dir()));
  ASSIGN_OR_RETURN(MetaGraph * meta, ChosenMetaGraph(model, flags.tags));
  RETURN_IF_ERROR(KeepSignatures(*meta, flags.signatures));
  ASSIGN_OR_RETURN(GraphItem item, ItemOf(*meta, flags.keep));
  if (flags.look) flags.look(item);
  MetaOptions options = flags.options;
  // Whoever loads the model lowers loops and branches itself, and runs those that it lowered
  // faster than those it finds lowered.
  options.config.lower_control_flow = false;
  ASSIGN_OR_RETURN(OptimizationReport report, OptimizeItem(item, options));
  if (flags.look) flags.look(item);
  meta->graph = std::move(item.graph);
  // TensorFlow marks what its optimizer made in memory; tf.saved_model.load refuses the mark.
  for (Function* f : meta->graph->library()->Functions())
    f->attrs.Erase("_GrapplerSpecializedFunc");
  if (output != nullptr) {
    RETURN_IF_ERROR(CopyRest(folder.dir(), output->path(), {}, files));
    RETURN_IF_ERROR(WriteSavedModel(model, output->path()));
    RETURN_IF_ERROR(output->Publish());
  }
  return report;
}

}  // namespace smelt
