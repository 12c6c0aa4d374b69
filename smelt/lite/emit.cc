#include "smelt/lite/emit.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "smelt/base/sampled_hash.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/quantization.h"
#include "smelt/lite/quantize/calibrate.h"
#include "smelt/lite/subgraph_names.h"
#include "smelt/tensor/float16.h"

namespace smelt {
namespace {

// Operators of which runtimes do not take the first version.
int32_t VersionOf(absl::string_view op) { return op == "BROADCAST_TO" ? 2 : 1; }

class Emitter {
 public:
  Emitter(const std::function<StatusOr<int64_t>(absl::string_view)>& subgraph_of, LiteModel& model)
      : subgraph_of_(subgraph_of), model_(model) {}

  StatusOr<LiteSubgraph> Emit(const Graph& graph, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs) {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
    std::vector<const Node*> args(inputs.size()), results(outputs.size());
    for (const Node* n : order) {
      if (n->Is("_Arg")) args[static_cast<size_t>(n->Int("index"))] = n;
      if (n->Is("_Retval")) results[static_cast<size_t>(n->Int("index"))] = n;
    }
    // What callers know a tensor by comes before the names of nodes.
    for (size_t i = 0; i < args.size(); ++i) {
      ASSIGN_OR_RETURN(const int32_t t, AddTensor({const_cast<Node*>(args[i]), 0}, inputs[i]));
      out_.inputs.push_back(t);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      names_.try_emplace(results[i]->input(0), outputs[i]);
    }
    for (const Node* n : order) {
      if (n->Is("_Arg") || n->Is("_Retval") || n->Is("Const") || n->Is("tfl.no_value") ||
          n->Is("tfl.variable")) {
        continue;
      }
      RETURN_IF_ERROR(AddOperator(*n));
    }
    for (const Node* result : results) {
      ASSIGN_OR_RETURN(const int32_t t, TensorOf(result->input(0)));
      out_.outputs.push_back(t);
    }
    return std::move(out_);
  }

  void Place(LiteTensorPlaces& to) const {
    for (const auto& [e, tensor] : tensors_) to[{e.node->name(), e.port}] = tensor;
  }

 private:
  StatusOr<int32_t> TensorOf(Endpoint e) {
    if (e.node->Is("tfl.no_value")) return -1;
    const auto it = tensors_.find(e);
    if (it != tensors_.end()) return it->second;
    const auto named = names_.find(e);
    if (named != names_.end()) return AddTensor(e, named->second);
    if (e.node->Is("Const")) return AddConstant(e);
    return AddTensor(e, e.port == 0 ? e.node->name() : absl::StrCat(e.node->name(), ":", e.port));
  }

  absl::string_view BytesOf(const LiteTensor& t) const { return model_.buffers[t.buffer].bytes; }

  // Constants that say the same are one tensor.
  StatusOr<int32_t> AddConstant(Endpoint e) {
    ASSIGN_OR_RETURN(const int32_t t, AddTensor(e, absl::StrCat("constant_", num_constants_)));
    const LiteTensor& added = out_.tensors.back();
    std::vector<int32_t>& alike = constants_[BytesOf(added)];
    for (const int32_t other : alike) {
      const LiteTensor& o = out_.tensors[static_cast<size_t>(other)];
      const bool same =
          o.type == added.type && o.shape == added.shape && o.quantization == added.quantization;
      if (!same) continue;
      out_.tensors.pop_back();
      model_.buffers.pop_back();
      tensors_[e] = other;
      return other;
    }
    alike.push_back(t);
    ++num_constants_;
    return t;
  }

  static void StateSeen(const Node& n, int port, LiteQuantization& q) {
    const auto seen = SeenRangeOf(n, port);
    if (!seen) return;
    q.min = {seen->first};
    q.max = {seen->second};
  }

  static LiteQuantization LiteQuantizationOf(Endpoint e) {
    Quantization stated = QuantizationOf(e);
    LiteQuantization q;
    q.scale = std::move(stated.scales);
    q.zero_point = std::move(stated.zero_points);
    q.dimension = static_cast<int32_t>(stated.dim);
    StateSeen(*e.node, e.port, q);
    return q;
  }

  // The scales of blocks are a tensor of their own, before the one that they are of.
  Status AddBlockScales(const Node& n, const PartialShape& shape, absl::string_view name) {
    const auto scales = n.Get<std::vector<float>>(kScales, {});
    const int64_t block = n.Int(kBlockSize), row = shape.rank() < 1 ? 0 : shape[shape.rank() - 1];
    int64_t rows = 1;
    for (int i = 0; i < shape.rank() - 1; ++i) rows *= shape[i];
    if (block < 0 || block > INT32_MAX || row % block != 0 ||
        static_cast<int64_t>(scales.size()) != rows * (row / block)) {
      return Internal("node '", n.name(), "' has ", scales.size(), " scales of blocks of ", block);
    }
    ASSIGN_OR_RETURN(Tensor value, Tensor::Make(Dtype::kHalf, Shape({rows, row / block})));
    for (size_t i = 0; i < scales.size(); ++i) value.flat<Half>()[i] = Half(scales[i]);
    ASSIGN_OR_RETURN(LiteBuffer bytes, LiteBytes(value));
    LiteTensor& t = out_.tensors.emplace_back();
    t.name = absl::StrCat(name, "/scales");
    t.type = Dtype::kHalf;
    t.has_rank = true;
    t.shape = {static_cast<int32_t>(rows), static_cast<int32_t>(value.dim(1))};
    t.buffer = static_cast<uint32_t>(model_.buffers.size());
    model_.buffers.push_back(std::move(bytes));
    return OkStatus();
  }

  StatusOr<int32_t> AddTensor(Endpoint e, std::string name) {
    const TensorValue* constant = StatedConstant(*e.node);
    const bool blocks = constant != nullptr && e.node->Int(kBlockSize) != 0;
    if (blocks) RETURN_IF_ERROR(AddBlockScales(*e.node, constant->shape, name));
    LiteTensor& t = out_.tensors.emplace_back();
    t.name = std::move(name);
    t.type = BaseType(e.node->output_types[static_cast<size_t>(e.port)]);
    t.quantization = LiteQuantizationOf(e);
    PartialShape shape;
    if (const TensorValue* stated = StatedConstant(*e.node)) {
      ASSIGN_OR_RETURN(const Tensor value, stated->Materialize());
      ASSIGN_OR_RETURN(LiteBuffer bytes, LiteBytes(value));
      t.buffer = static_cast<uint32_t>(model_.buffers.size());
      model_.buffers.push_back(std::move(bytes));
      shape = value.shape();
    } else if (e.node->Is("tfl.variable")) {
      t.is_variable = true;
      shape = e.node->Get<PartialShape>("shape", {});
    } else if (const Attr* shapes = e.node->attrs().Find(kOutputShapes)) {
      t.is_variable = e.node->Bool(kVariableOutputs);
      shape = (*shapes->get<std::vector<PartialShape>>())[static_cast<size_t>(e.port)];
    }
    if (blocks) {
      t.quantization = {};
      t.quantization.blockwise = {static_cast<int32_t>(out_.tensors.size()) - 2, -1,
                                  static_cast<int32_t>(e.node->Int(kBlockSize))};
    }
    // A free size is 1 until inputs are resized; a rank that is not known reads as a scalar's.
    t.has_rank = shape.known_rank();
    bool free = false;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] > INT32_MAX) {
        return InvalidArgument("tensor '", t.name, "' has the size ", shape[i],
                               ", which a .tflite file cannot state");
      }
      free = free || shape[i] < 0;
      t.shape.push_back(shape[i] < 0 ? 1 : static_cast<int32_t>(shape[i]));
      t.shape_signature.push_back(shape[i] < 0 ? -1 : static_cast<int32_t>(shape[i]));
    }
    if (!free) t.shape_signature.clear();
    const auto index = static_cast<int32_t>(out_.tensors.size() - 1);
    tensors_[e] = index;
    return index;
  }

  Status AddOperator(const Node& n) {
    LiteOperator op;
    if (n.Is("tfl.custom")) {
      op.custom = true;
      op.op = n.String("custom_code");
      op.custom_options = n.String("custom_options");
    } else if (absl::StartsWith(n.op(), "tfl.")) {
      op.op = absl::AsciiStrToUpper(absl::StripPrefix(n.op(), "tfl."));
      op.version = VersionOf(op.op);
      RETURN_IF_ERROR(AddOptions(n, op));
    } else {
      return Internal("node '", n.name(), "' of op ", n.op(), " is no operator");
    }
    for (const Endpoint& e : n.inputs()) {
      ASSIGN_OR_RETURN(const int32_t t, TensorOf(e));
      op.inputs.push_back(t);
    }
    for (int i = 0; i < n.num_outputs(); ++i) {
      ASSIGN_OR_RETURN(const int32_t t, TensorOf({const_cast<Node*>(&n), i}));
      op.outputs.push_back(t);
    }
    AddIntermediates(n, op);
    out_.operators.push_back(std::move(op));
    return OkStatus();
  }

  // Tensors without elements, which say how what is in between is quantized: of four gates in 16
  // bits, of what is before the projection in 8.
  void AddIntermediates(const Node& n, LiteOperator& op) {
    auto scales = n.Get<std::vector<float>>(kIntermediateScales, {});
    // Where ranges alone are stated they have these.
    if (SeenRangeOf(n, kLstmRanges + kLstmHidden)) scales.assign(kLstmHidden + 1, 0.0f);
    const std::vector<int64_t> zeros = n.Ints(kIntermediateZeros);
    for (size_t i = 0; i < scales.size(); ++i) {
      op.intermediates.push_back(static_cast<int32_t>(out_.tensors.size()));
      LiteTensor& t = out_.tensors.emplace_back();
      t.name = absl::StrCat(n.name(), "/intermediate_", i);
      t.shape = {0};
      t.has_rank = true;
      StateSeen(n, kLstmRanges + static_cast<int>(i), t.quantization);
      if (scales[i] == 0) continue;
      t.type = i < 4 ? Dtype::kInt16 : Dtype::kInt8;
      t.quantization.scale = {scales[i]};
      t.quantization.zero_point = {i < zeros.size() ? zeros[i] : 0};
    }
  }

  Status AddOptions(const Node& n, LiteOperator& op) {
    for (const LiteOption& option : LiteOptions(op.op)) {
      const absl::string_view function = FunctionOfOption(option.name);
      const Attr* value = n.attrs().Find(function.empty() ? option.name : function);
      if (value == nullptr) continue;
      // LiteRT reads up to eight sizes here, and refuses more; the operand states them anyway.
      constexpr size_t kMostSizes = 8;
      const auto* sizes = value->get<std::vector<int64_t>>();
      if (option.name == "new_shape" && sizes != nullptr && sizes->size() > kMostSizes) continue;
      if (function.empty()) {
        op.options.Set(option.name, *value);
      } else if (const auto* f = value->get<FuncAttr>()) {
        ASSIGN_OR_RETURN(const int64_t number, subgraph_of_(f->name));
        op.options.Set(option.name, number);
      } else if (const auto* list = value->get<std::vector<FuncAttr>>()) {
        std::vector<int64_t> numbers;
        for (const FuncAttr& f : *list) {
          ASSIGN_OR_RETURN(numbers.emplace_back(), subgraph_of_(f.name));
        }
        op.options.Set(option.name, std::move(numbers));
      }
    }
    return OkStatus();
  }

  struct EndpointHash {
    size_t operator()(const Endpoint& e) const { return absl::HashOf(e.node, e.port); }
  };
  const std::function<StatusOr<int64_t>(absl::string_view)>& subgraph_of_;
  LiteModel& model_;
  LiteSubgraph out_;
  absl::flat_hash_map<Endpoint, int32_t, EndpointHash> tensors_;
  absl::flat_hash_map<Endpoint, std::string, EndpointHash> names_;
  int64_t num_constants_ = 0;
  ByBytes<std::vector<int32_t>> constants_;
};

}  // namespace

StatusOr<LiteSubgraph> EmitSubgraph(
    const Graph& graph, const std::string& name, const std::vector<std::string>& inputs,
    const std::vector<std::string>& outputs,
    const std::function<StatusOr<int64_t>(absl::string_view function)>& subgraph_of,
    LiteModel& model, LiteTensorPlaces* places) {
  Emitter emitter(subgraph_of, model);
  ASSIGN_OR_RETURN(LiteSubgraph out, emitter.Emit(graph, inputs, outputs));
  out.name = name;
  if (places != nullptr) emitter.Place(*places);
  return out;
}

}  // namespace smelt
