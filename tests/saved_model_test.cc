// SavedModels, read and written: everything survives, errors are TensorFlow's, any bytes may come.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph_def_of_text.h"
#include "smelt/wire/saved_model/variable_defs.h"

namespace smelt {
namespace {

const char* const kModel = R"(
saved_model_schema_version: 1
meta_graphs {
  meta_info_def {
    stripped_op_list { op { name: "Const" } op { name: "TheirOp"
      input_arg { name: "x" type_attr: "T" } output_arg { name: "y" type_attr: "T" }
      attr { name: "T" type: "type" allowed_values { list { type: [DT_FLOAT, DT_INT32] } } }
      description: "theirs" } }
    tags: "serve" tags: "tpu" tensorflow_version: "2.21.0" tensorflow_git_version: "g"
    stripped_default_attrs: true function_aliases { key: "f" value: "alias" }
  }
  graph_def {
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
      experimental_debug_info { original_node_names: "orig" } }
    node { name: "t" op: "TheirOp" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "y" op: "PartitionedCall" input: "t" device: "/device:TPU:0"
      attr { key: "Tin" value { list { type: DT_FLOAT } } }
      attr { key: "Tout" value { list { type: DT_FLOAT } } }
      attr { key: "f" value { func { name: "f" } } } }
    node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32
        tensor_shape { dim { size: 3 } } int_val: [1, 2, 3] } } } }
    library { function {
      signature { name: "f" input_arg { name: "a" type: DT_FLOAT description: "d" }
        output_arg { name: "r" type: DT_FLOAT } }
      node_def { name: "relu" op: "Relu" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "r" value: "relu:activations:0" } } }
    versions { producer: 1882 min_consumer: 12 }
    debug_info { files: "model.py" }
  }
  saver_def { filename_tensor_name: "c:0" save_tensor_name: "s:0" restore_op_name: "r"
    max_to_keep: 5 version: V2 }
  collection_def { key: "nodes" value { node_list { value: "x" } } }
  collection_def { key: "bytes" value { bytes_list { value: "\001\377" } } }
  collection_def { key: "ints" value { int64_list { value: 7 } } }
  signature_def { key: "serving_default" value {
    inputs { key: "in" value { name: "x:0" dtype: DT_FLOAT tensor_shape { dim { size: -1 } } } }
    inputs { key: "sp" value { coo_sparse { values_tensor_name: "v" indices_tensor_name: "i"
      dense_shape_tensor_name: "s" } dtype: DT_FLOAT tensor_shape { unknown_rank: true } } }
    inputs { key: "co" value { composite_tensor { type_spec { type_spec_class_name: "R" }
      components { name: "x:0" dtype: DT_FLOAT tensor_shape { } } } } }
    outputs { key: "out" value { name: "y:0" dtype: DT_FLOAT
      tensor_shape { dim { size: 3 name: "named" } } } }
    method_name: "tensorflow/serving/predict"
    defaults { key: "in" value { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
  asset_file_def { tensor_info { name: "c:0" dtype: DT_STRING } filename: "vocab.txt" }
  object_graph_def { nodes { user_object { identifier: "root" } } }
}
)";

TEST(SavedModelTest, EverythingSurvives) {
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/saved_model.pbtxt", kModel).ok());
  auto model = ReadSavedModel(dir.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->dir, dir.path());
  auto found = FindMetaGraph(*model, {"tpu", "serve"});
  ASSERT_TRUE(found.ok()) << found.status();
  MetaGraph& meta = **found;
  EXPECT_EQ(meta.tensorflow_version, "2.21.0");
  EXPECT_TRUE(meta.stripped_default_attrs);
  EXPECT_EQ(meta.function_aliases.at("f"), "alias");
  EXPECT_EQ(meta.versions.producer, 1882);
  EXPECT_NE(meta.graph->Find("t")->def(), nullptr);
  EXPECT_EQ(meta.graph->Find("t")->def()->attrs[0].allowed_types.size(), 2u);
  EXPECT_NE(meta.graph->Find("x")->extra, "");
  const Signature& s = meta.signatures.at("serving_default");
  EXPECT_EQ(s.inputs.at("in").kind, TensorInfo::Kind::kDense);
  EXPECT_EQ(s.inputs.at("in").shape.ToString(), "[?]");
  EXPECT_EQ(s.inputs.at("sp").indices_name, "i");
  EXPECT_FALSE(s.inputs.at("sp").shape.known_rank());
  ASSERT_EQ(s.inputs.at("co").components.size(), 1u);
  EXPECT_EQ(s.inputs.at("co").components[0].name, "x:0");
  EXPECT_EQ(s.defaults.at("in")->Materialize()->scalar<float>(), 1.0f);
  EXPECT_EQ(meta.saver->restore_op_name, "r");
  EXPECT_EQ(meta.collections.at("nodes").values, std::vector<std::string>{"x"});
  EXPECT_EQ(meta.collections.at("ints").kind, Collection::Kind::kOther);
  EXPECT_EQ(meta.assets[0].filename, "vocab.txt");
  EXPECT_NE(meta.object_graph, "");

  ASSERT_TRUE(WriteSavedModel(*model, dir.path()).ok());
  auto bytes = ReadFile(dir.path() + "/saved_model.pb");
  auto again = ReadSavedModel(dir.path());  // the binary file wins
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*SerializeSavedModel(*again), *bytes);
  for (absl::string_view kept : {"orig", "named", "model.py", "root", "theirs", "vocab.txt",
                                 "relu:activations:0", "/device:TPU:0", "PartitionedCall"}) {
    EXPECT_TRUE(absl::StrContains(*bytes, kept)) << kept;
  }
}

TEST(SavedModelTest, UnknownFieldsSurvive) {
  // Field 1000, a string, in the model and in a meta graph (the last field of the model).
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/saved_model.pbtxt", kModel).ok());
  std::string bytes = *SerializeSavedModel(*ReadSavedModel(dir.path()));
  const std::string in_meta = "\xc2\x3e\x06InMeta", in_model = "\xc2\x3e\x07InModel";
  bytes += in_model;
  bytes += absl::StrCat("\x12", std::string(1, static_cast<char>(in_meta.size())), in_meta);
  auto model = ParseSavedModel(bytes);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->meta_graphs.size(), 2u);
  auto written = SerializeSavedModel(*model);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_TRUE(absl::StrContains(*written, in_meta));
  EXPECT_TRUE(absl::StrContains(*written, in_model));
}

TEST(SavedModelTest, NewOpsJoinTheList) {
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/saved_model.pbtxt", kModel).ok());
  auto model = ReadSavedModel(dir.path());
  Graph& graph = *model->meta_graphs[0].graph;
  ASSERT_TRUE(graph.Add("ordinal", "TPUOrdinalSelector", {}).ok());
  const std::string bytes = *SerializeSavedModel(*model);
  EXPECT_TRUE(absl::StrContains(bytes, "device_ordinals"));  // its output argument
}

TEST(SavedModelTest, Errors) {
  TempDir dir;
  EXPECT_EQ(ReadSavedModel(dir.path()).status(),
            absl::NotFoundError(absl::StrCat("SavedModel file does not exist at: ", dir.path(),
                                             "/{saved_model.pbtxt|saved_model.pb}")));
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/saved_model.pb", "garbage").ok());
  const Status bad = ReadSavedModel(dir.path()).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(bad.message(), "as binary proto")) << bad;
  SavedModel model;
  model.meta_graphs.emplace_back().tags = {"train"};
  model.meta_graphs.emplace_back().tags = {"serve", "tpu"};
  EXPECT_EQ(FindMetaGraph(model, {"serve"}).status().message(),
            "Could not find meta graph def matching supplied tags: { serve }. To inspect available "
            "tag-sets in the SavedModel, please use the SavedModel CLI: `saved_model_cli` "
            "available tag-sets: [{train}, {serve, tpu}]");
}

// A graph of calls, and functions named by what they are for; `body` calls what it is given.
std::string FunctionOf(const std::string& name, const std::string& callee,
                       const std::string& interface = "") {
  const std::string node = callee.empty() ? "node_def { name: 'n' op: 'NoOp' }"
                                          : absl::StrCat(
                                                "node_def { name: 'n' op: 'PartitionedCall' "
                                                "attr { key: 'Tin' value { list { } } } "
                                                "attr { key: 'Tout' value { list { } } } "
                                                "attr { key: 'f' value { func { name: '",
                                                callee, "' } } } }");
  const std::string attr =
      interface.empty()
          ? ""
          : absl::StrCat("attr { key: 'api_implements' value { s: '", interface, "' } }");
  return absl::StrCat("function { signature { name: '", name, "' } ", node, attr, " }\n");
}

std::string CallOf(const std::string& node, const std::string& callee, const std::string& input) {
  return absl::StrCat("node { name: '", node, "' op: 'StatefulPartitionedCall' input: '", input,
                      "' attr { key: 'Tin' value { list { } } } "
                      "attr { key: 'Tout' value { list { } } } "
                      "attr { key: 'f' value { func { name: '",
                      callee, "' } } } }\n");
}

TEST(SavedModelTest, TheRunPartIsWhatRequestsReach) {
  const std::string text = absl::StrCat(
      R"(meta_graphs { meta_info_def { tags: 'serve' } graph_def {
         node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
         node { name: 'file' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }
         node { name: 'late' op: 'NoOp' }
         node { name: 'unread' op: 'NoOp' input: '^x' }
         node { name: 'y' op: 'Identity' input: 'x' input: '^late'
           attr { key: 'T' value { type: DT_FLOAT } } }
      )",
      CallOf("save", "saves", "^x"), CallOf("restore", "restores", "^file"),
      CallOf("other", "outer", "^x"), "library {\n", FunctionOf("saves", "of_saves"),
      FunctionOf("of_saves", ""), FunctionOf("restores", ""), FunctionOf("outer", "inner"),
      FunctionOf("inner", "chosen"), FunctionOf("chosen", "", "api"),
      FunctionOf("as_well", "of_as_well", "api"), FunctionOf("of_as_well", ""),
      FunctionOf("of_another", "", "api2"), FunctionOf("inner_grad", ""), FunctionOf("grad", ""),
      R"( gradient { function_name: 'inner' gradient_func: 'inner_grad' } } }
         saver_def { filename_tensor_name: 'file:0' save_tensor_name: 'save:0'
           restore_op_name: 'restore' }
         signature_def { key: 's' value { outputs { key: 'y' value { name: 'y:0' } } } } })");
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/saved_model.pbtxt", text).ok());
  auto whole = ReadSavedModel(dir.path());
  ASSERT_TRUE(whole.ok()) << whole.status();
  auto part = ParseSavedModel(*SerializeSavedModel(*whole), ModelPart::kToRun);
  ASSERT_TRUE(part.ok()) << part.status();
  const Graph& graph = *part->meta_graphs[0].graph;
  std::vector<std::string> nodes, functions;
  for (const Node* n : graph.Nodes()) nodes.push_back(n->name());
  for (const Function* f : graph.library()->Functions()) functions.push_back(f->name());
  std::ranges::sort(nodes);
  std::ranges::sort(functions);
  EXPECT_EQ(nodes, (std::vector<std::string>{"file", "late", "other", "restore", "x", "y"}));
  EXPECT_EQ(functions, (std::vector<std::string>{"as_well", "chosen", "inner", "inner_grad",
                                                 "of_as_well", "outer", "restores"}));
  EXPECT_EQ(part->meta_graphs[0].signatures.size(), 1u);
  EXPECT_EQ(graph.library()->gradients.size(), 1u);
}

// It is left where it lies, and yet one that does not parse is refused.
TEST(SavedModelTest, ObjectGraphOfTheRunPart) {
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/saved_model.pbtxt", kModel).ok());
  auto whole = ReadSavedModel(dir.path());
  ASSERT_TRUE(whole.ok()) << whole.status();
  std::string bytes = *SerializeSavedModel(*whole);
  auto part = ParseSavedModel(bytes, ModelPart::kToRun);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_NE(part->meta_graphs[0].object_graph, "");
  EXPECT_EQ(part->meta_graphs[0].object_graph, whole->meta_graphs[0].object_graph);

  const size_t root = bytes.rfind("root");
  ASSERT_NE(root, std::string::npos);
  bytes[root - 1] = 100;  // its length
  const Status refused = ParseSavedModel(bytes).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseSavedModel(bytes, ModelPart::kToRun).status(), refused);
}

// Any bytes are parsed or refused; a model that parses can be written and read again.
void Feed(const std::string& bytes) {
  auto model = ParseSavedModel(bytes);
  // What is wrong where no request comes is not seen.
  auto part = ParseSavedModel(bytes, ModelPart::kToRun);
  EXPECT_TRUE(part.ok() || !model.ok()) << part.status();
  if (!model.ok()) return;
  auto written = SerializeSavedModel(*model);
  if (!written.ok()) return;
  auto again = ParseSavedModel(*written);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*SerializeSavedModel(*again), *written);
}

TEST(SavedModelTest, HostileBytes) {
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/saved_model.pbtxt", kModel).ok());
  const std::string good = *SerializeSavedModel(*ReadSavedModel(dir.path()));
  for (size_t n = 0; n < good.size(); ++n) Feed(good.substr(0, n));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      Feed(bad);
    }
  }
  std::mt19937 random(7);
  for (int round = 0; round < 5000; ++round) {
    std::string bad = good;
    for (int k = 0; k < 4; ++k) {
      const size_t at = random() % bad.size();
      switch (random() % 4) {
        case 0:
          bad[at] = static_cast<char>(random());
          break;
        case 1:
          bad.erase(at, random() % 8);
          break;
        case 2:
          bad.insert(at, random() % 8, static_cast<char>(random()));
          break;
        default:
          bad.replace(at, 4, good.substr(random() % good.size(), 4));
      }
    }
    Feed(bad);
  }
}

TEST(VariableDefs, NamedVariablesBecomeResources) {
  const std::string v = "\x0a\x03v:0", w = "\x0a\x03w:0";
  MetaGraph meta;
  for (const char* name : {"variables", "trainable_variables", "cond_context"}) {
    meta.collections[name].kind = Collection::Kind::kBytes;
    meta.collections[name].values = {v, w, "no message"};
  }
  DescribeAsResources(meta, {"v"});
  const std::vector<std::string> described{v + "\x28\x01", w, "no message"};
  EXPECT_EQ(meta.collections["variables"].values, described);
  EXPECT_EQ(meta.collections["trainable_variables"].values, described);
  EXPECT_EQ(meta.collections["cond_context"].values[0], v);
}

}  // namespace
}  // namespace smelt
