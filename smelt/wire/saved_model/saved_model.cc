// The reading half of saved_model.h, and the choice of a MetaGraph.
#include "smelt/wire/saved_model/saved_model.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "smelt/io/fs.h"
#include "smelt/wire/graph_def/attr_proto.h"
#include "smelt/wire/graph_def/graph_def.h"
#include "smelt/wire/graph_def/tensor_proto.h"
#include "smelt/wire/proto/proto_internal.h"
#include "smelt/wire/proto/saved_model.pb.h"
#include "smelt/wire/saved_model/run_part.h"

namespace smelt {
namespace {

TensorInfo TakeTensorInfo(tensorflow::TensorInfo* proto) {
  TensorInfo info;
  switch (proto->encoding_case()) {
    case tensorflow::TensorInfo::kName:
      info.kind = TensorInfo::Kind::kDense;
      info.name = proto->name();
      proto->clear_name();
      break;
    case tensorflow::TensorInfo::kCooSparse: {
      auto* sparse = proto->mutable_coo_sparse();
      info.kind = TensorInfo::Kind::kSparse;
      info.values_name = sparse->values_tensor_name();
      info.indices_name = sparse->indices_tensor_name();
      info.dense_shape_name = sparse->dense_shape_tensor_name();
      sparse->clear_values_tensor_name();
      sparse->clear_indices_tensor_name();
      sparse->clear_dense_shape_tensor_name();
      if (sparse->ByteSizeLong() == 0) proto->clear_coo_sparse();
      break;
    }
    case tensorflow::TensorInfo::kCompositeTensor: {
      auto* composite = proto->mutable_composite_tensor();
      info.kind = TensorInfo::Kind::kComposite;
      for (auto& c : *composite->mutable_components()) {
        info.components.push_back(TakeTensorInfo(&c));
      }
      composite->clear_components();
      if (composite->ByteSizeLong() == 0) proto->clear_composite_tensor();
      break;
    }
    case tensorflow::TensorInfo::ENCODING_NOT_SET:
      break;
  }
  info.dtype = DtypeFromProto(proto->dtype());
  if (info.dtype != Dtype::kInvalid) proto->clear_dtype();
  info.shape = ShapeFromProto(proto->tensor_shape());
  if (HoldsShape(proto->tensor_shape())) proto->clear_tensor_shape();
  info.extra = Remainder(*proto);
  return info;
}

Signature TakeSignature(tensorflow::SignatureDef* proto) {
  Signature signature;
  for (auto& [name, info] : *proto->mutable_inputs()) {
    signature.inputs[name] = TakeTensorInfo(&info);
  }
  for (auto& [name, info] : *proto->mutable_outputs()) {
    signature.outputs[name] = TakeTensorInfo(&info);
  }
  for (auto& [name, value] : *proto->mutable_defaults()) {
    signature.defaults[name] = TakeTensorValue(&value);
  }
  signature.method_name = proto->method_name();
  proto->clear_inputs();
  proto->clear_outputs();
  proto->clear_defaults();
  proto->clear_method_name();
  signature.extra = Remainder(*proto);
  return signature;
}

Collection TakeCollection(tensorflow::CollectionDef* proto) {
  Collection collection;
  google::protobuf::RepeatedPtrField<std::string>* values = nullptr;
  if (proto->kind_case() == tensorflow::CollectionDef::kNodeList) {
    collection.kind = Collection::Kind::kNodes;
    values = proto->mutable_node_list()->mutable_value();
  } else if (proto->kind_case() == tensorflow::CollectionDef::kBytesList) {
    collection.kind = Collection::Kind::kBytes;
    values = proto->mutable_bytes_list()->mutable_value();
  }
  if (values != nullptr) {
    collection.values.assign(std::move_iterator(values->begin()),
                             std::move_iterator(values->end()));
    values->Clear();
    const bool rest = proto->has_node_list() ? proto->node_list().ByteSizeLong() != 0
                                             : proto->bytes_list().ByteSizeLong() != 0;
    if (!rest) proto->clear_kind();
  }
  collection.extra = Remainder(*proto);
  return collection;
}

AssetFile TakeAsset(tensorflow::AssetFileDef* proto) {
  AssetFile asset;
  asset.filename = proto->filename();
  proto->clear_filename();
  if (proto->tensor_info().encoding_case() == tensorflow::TensorInfo::kName) {
    asset.tensor_name = proto->tensor_info().name();
    proto->mutable_tensor_info()->clear_name();
    if (proto->tensor_info().ByteSizeLong() == 0) proto->clear_tensor_info();
  }
  asset.extra = Remainder(*proto);
  return asset;
}

SaverDef TakeSaver(tensorflow::SaverDef* proto) {
  SaverDef saver;
  saver.filename_tensor_name = proto->filename_tensor_name();
  saver.save_tensor_name = proto->save_tensor_name();
  saver.restore_op_name = proto->restore_op_name();
  proto->clear_filename_tensor_name();
  proto->clear_save_tensor_name();
  proto->clear_restore_op_name();
  saver.extra = Remainder(*proto);
  return saver;
}

void TakeMetaInfo(tensorflow::MetaGraphDef::MetaInfoDef* proto, MetaGraph* meta) {
  meta->tags.assign(proto->tags().begin(), proto->tags().end());
  meta->tensorflow_version = proto->tensorflow_version();
  meta->tensorflow_git_version = proto->tensorflow_git_version();
  meta->stripped_default_attrs = proto->stripped_default_attrs();
  for (const auto& [name, alias] : proto->function_aliases()) meta->function_aliases[name] = alias;
  proto->clear_tags();
  proto->clear_tensorflow_version();
  proto->clear_tensorflow_git_version();
  proto->clear_stripped_default_attrs();
  proto->clear_function_aliases();
}

// Gives opaque nodes the outputs that only a signature reads.
void NoteTensorInfo(const Graph& graph, const TensorInfo& info) {
  for (const std::string* name :
       {&info.name, &info.values_name, &info.indices_name, &info.dense_shape_name}) {
    if (!name->empty()) NoteReader(graph, *name);
  }
  for (const TensorInfo& c : info.components) NoteTensorInfo(graph, c);
}

StatusOr<MetaGraph> TakeMetaGraph(tensorflow::MetaGraphDef* proto) {
  MetaGraph meta;
  auto library = std::make_shared<FunctionLibrary>();
  for (const auto& op : proto->meta_info_def().stripped_op_list().op()) {
    if (FindOpDef(op.name()) != nullptr || op.attr_size() > static_cast<int>(kMaxAttrDefs))
      continue;
    tensorflow::OpDef copy = op;  // the list itself is carried whole
    library->AddOp(TakeOpDef(&copy));
  }
  if (proto->has_meta_info_def()) {
    TakeMetaInfo(proto->mutable_meta_info_def(), &meta);
    if (proto->meta_info_def().ByteSizeLong() == 0) proto->clear_meta_info_def();
  }
  ASSIGN_OR_RETURN(meta.graph,
                   TakeGraph(proto->mutable_graph_def(), std::move(library), &meta.versions));
  if (proto->graph_def().ByteSizeLong() == 0) proto->clear_graph_def();
  for (auto& [name, signature] : *proto->mutable_signature_def()) {
    meta.signatures[name] = TakeSignature(&signature);
  }
  proto->clear_signature_def();
  for (const auto& [name, signature] : meta.signatures) {
    for (const auto& [key, info] : signature.inputs) NoteTensorInfo(*meta.graph, info);
    for (const auto& [key, info] : signature.outputs) NoteTensorInfo(*meta.graph, info);
  }
  if (proto->has_saver_def()) {
    meta.saver = TakeSaver(proto->mutable_saver_def());
    proto->clear_saver_def();
  }
  for (auto& [name, collection] : *proto->mutable_collection_def()) {
    meta.collections[name] = TakeCollection(&collection);
  }
  proto->clear_collection_def();
  for (auto& asset : *proto->mutable_asset_file_def()) meta.assets.push_back(TakeAsset(&asset));
  proto->clear_asset_file_def();
  // An object graph that is present but empty stays in `extra`.
  if (std::string object_graph = Remainder(proto->object_graph_def()); !object_graph.empty()) {
    meta.object_graph = std::move(object_graph);
    proto->clear_object_graph_def();
  }
  meta.extra = Remainder(*proto);
  return meta;
}

StatusOr<SavedModel> TakeSavedModel(tensorflow::SavedModel* proto) {
  SavedModel model;
  model.schema_version = proto->saved_model_schema_version();
  for (auto& meta : *proto->mutable_meta_graphs()) {
    ASSIGN_OR_RETURN(MetaGraph taken, TakeMetaGraph(&meta));
    model.meta_graphs.push_back(std::move(taken));
  }
  proto->clear_saved_model_schema_version();
  proto->clear_meta_graphs();
  model.extra = Remainder(*proto);
  return model;
}

// All messages of a model are freed together, which an arena does at once.
template <typename Message, typename Parse>
auto OnArena(Parse parse) {
  google::protobuf::ArenaOptions options;
  options.start_block_size = 64 << 10;
  options.max_block_size = 1 << 20;
  google::protobuf::Arena arena(options);
  return parse(google::protobuf::Arena::CreateMessage<Message>(&arena));
}

enum class ModelForm { kBinary, kText };

StatusOr<SavedModel> ParseSavedModelNamed(absl::string_view bytes, ModelForm form,
                                          absl::string_view what, ModelPart part) {
  if (part == ModelPart::kToRun && form == ModelForm::kBinary) {
    auto model =
        OnArena<tensorflow::SavedModel>([&](tensorflow::SavedModel* proto) -> StatusOr<SavedModel> {
          std::vector<absl::string_view> object_graphs;
          if (!ParseRunPart(bytes, proto, &object_graphs)) {
            return DataLoss("no part of it can be told apart");
          }
          ASSIGN_OR_RETURN(SavedModel taken, TakeSavedModel(proto));
          for (size_t i = 0; i < object_graphs.size(); ++i) {
            taken.meta_graphs[i].object_graph = std::string(object_graphs[i]);
          }
          return taken;
        });
    // What is wrong is said of the whole.
    if (model.ok()) return model;
  }
  return OnArena<tensorflow::SavedModel>(
      [&](tensorflow::SavedModel* proto) -> StatusOr<SavedModel> {
        RETURN_IF_ERROR(form == ModelForm::kText ? ParseTextProto(bytes, what, proto)
                                                 : ParseBinaryProto(bytes, what, proto));
        return TakeSavedModel(proto);
      });
}

}  // namespace

StatusOr<SavedModel> ParseSavedModel(absl::string_view bytes, ModelPart part) {
  return ParseSavedModelNamed(bytes, ModelForm::kBinary, "SavedModel as binary proto", part);
}

StatusOr<SavedModel> ReadSavedModel(const std::string& dir, ModelPart part) {
  const std::string binary = JoinPath(dir, "saved_model.pb");
  const std::string text = JoinPath(dir, "saved_model.pbtxt");
  const bool is_text = !Exists(binary);
  if (is_text && !Exists(text)) {
    return NotFound("SavedModel file does not exist at: ",
                    JoinPath(dir, "{saved_model.pbtxt|saved_model.pb}"));
  }
  const std::string& path = is_text ? text : binary;
  ASSIGN_OR_RETURN(auto file, MapFile(path));
  auto model =
      ParseSavedModelNamed(file->bytes(), is_text ? ModelForm::kText : ModelForm::kBinary,
                           absl::StrCat(path, is_text ? " as text" : " as binary", " proto"), part);
  if (model.ok()) model->dir = dir;
  return model;
}

bool MetaGraph::HasTags(const std::vector<std::string>& wanted) const {
  return std::set<absl::string_view>(tags.begin(), tags.end()) ==
         std::set<absl::string_view>(wanted.begin(), wanted.end());
}

StatusOr<MetaGraph*> FindMetaGraph(SavedModel& model, const std::vector<std::string>& tags) {
  for (MetaGraph& meta : model.meta_graphs) {
    if (meta.HasTags(tags)) return &meta;
  }
  const auto sets =
      absl::StrJoin(model.meta_graphs, ", ", [](std::string* out, const MetaGraph& m) {
        absl::StrAppend(out, "{", absl::StrJoin(m.tags, ", "), "}");
      });
  return NotFound("Could not find meta graph def matching supplied tags: { ",
                  absl::StrJoin(tags, " "),
                  " }. To inspect available tag-sets in the SavedModel, please use the SavedModel "
                  "CLI: `saved_model_cli` available tag-sets: [",
                  sets, "]");
}

StatusOr<MetaGraph*> ChosenMetaGraph(SavedModel& model, const std::vector<std::string>& tags) {
  if (!tags.empty()) return FindMetaGraph(model, tags);
  if (model.meta_graphs.size() == 1) return &model.meta_graphs[0];
  return FindMetaGraph(model, {"serve"});
}

StatusOr<std::unique_ptr<Graph>> ParseGraphDef(absl::string_view bytes, GraphVersions* versions) {
  return OnArena<tensorflow::GraphDef>(
      [&](tensorflow::GraphDef* proto) -> StatusOr<std::unique_ptr<Graph>> {
        Status status = ParseBinaryProto(bytes, "GraphDef as binary proto", proto);
        // Bytes with a zero are no text, so for them the binary parser's error is returned.
        if (!status.ok() && bytes.find('\0') == absl::string_view::npos) {
          proto->Clear();
          status = ParseTextProto(bytes, "GraphDef as binary or text proto", proto);
        }
        RETURN_IF_ERROR(status);
        GraphVersions ignored;
        return TakeGraph(proto, std::make_shared<FunctionLibrary>(),
                         versions != nullptr ? versions : &ignored);
      });
}

}  // namespace smelt
