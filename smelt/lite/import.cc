#include "smelt/lite/import.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/node_names.h"
#include "smelt/lite/common/quantization.h"
#include "smelt/lite/subgraph_names.h"
#include "smelt/tensor/float16.h"

namespace smelt {
namespace {

PartialShape ShapeOf(const LiteTensor& t) {
  const std::vector<int32_t>& sizes = t.shape_signature.empty() ? t.shape : t.shape_signature;
  return PartialShape::Of(std::vector<int64_t>(sizes.begin(), sizes.end()));
}

void NoteQuantization(const LiteQuantization& q, int port, AttrMap& attrs) {
  if (q.scale.empty()) return;
  SetQuantization(
      attrs, port,
      {q.scale, q.zero_point.empty() ? std::vector<int64_t>(q.scale.size()) : q.zero_point,
       q.dimension});
}

class Importer {
 public:
  Importer(const LiteModel& model, const LiteFunctions& all, const LiteSubgraph& from)
      : model_(model),
        all_(all),
        from_(from),
        values_(from.tensors.size()),
        made_(from.tensors.size()) {}

  // The subgraphs that its operators call; filled by Run.
  const std::vector<size_t>& calls() const { return calls_; }

  StatusOr<std::unique_ptr<Function>> Run(const std::string& name) {
    auto f = std::make_unique<Function>();
    f->signature.name = name;
    f->body = std::make_unique<Graph>(all_.library);
    graph_ = f->body.get();
    for (size_t i = 0; i < from_.inputs.size(); ++i) RETURN_IF_ERROR(AddArgument(i, *f));
    for (size_t i = 0; i < from_.operators.size(); ++i) {
      const Status added = AddOperator(from_.operators[i]);
      if (!added.ok()) {
        return Prefix(added, absl::StrCat("operator ", i, " (", from_.operators[i].op, "): "));
      }
    }
    for (size_t i = 0; i < from_.outputs.size(); ++i) {
      auto value = Value(from_.outputs[i]);
      if (!value.ok()) return Prefix(value.status(), absl::StrCat("output ", i, ": "));
      ArgDef arg;
      arg.name = absl::StrCat("output_", i);
      arg.type = from_.tensors[static_cast<size_t>(from_.outputs[i])].type;
      f->signature.outputs.push_back(std::move(arg));
      f->results.push_back({*value});
    }
    return f;
  }

 private:
  const LiteTensor& Tensor_(int32_t i) const { return from_.tensors[static_cast<size_t>(i)]; }
  // "x:0" is node x.
  std::string NameOf(int32_t i) const {
    return graph_->FreeName(
        LegalNodeName(absl::StripSuffix(Tensor_(i).name, ":0"), absl::StrCat("tensor_", i)));
  }

  Status AddArgument(size_t i, Function& f) {
    const int32_t index = from_.inputs[i];
    const LiteTensor& t = Tensor_(index);
    if (values_[static_cast<size_t>(index)].node != nullptr) {
      return InvalidArgument("tensor ", index, " is two inputs");
    }
    AttrMap attrs;
    attrs.Set("T", t.type);
    attrs.Set("index", static_cast<int64_t>(i));
    attrs.Set(kOutputShapes, std::vector<PartialShape>{ShapeOf(t)});
    NoteQuantization(t.quantization, 0, attrs);
    ASSIGN_OR_RETURN(Node * arg, graph_->Add(NameOf(index), "_Arg", {}, std::move(attrs)));
    values_[static_cast<size_t>(index)] = {arg, 0};
    ArgDef def;
    def.name = arg->name();
    def.type = t.type;
    f.signature.inputs.push_back(std::move(def));
    f.args.push_back(arg);
    return OkStatus();
  }

  StatusOr<Endpoint> Value(int32_t index) {
    Endpoint& known = values_[static_cast<size_t>(index)];
    if (known.node != nullptr) return known;
    const LiteTensor& t = Tensor_(index);
    AttrMap attrs;
    NoteQuantization(t.quantization, 0, attrs);
    if (t.is_variable) {
      attrs.Set("dtype", t.type);
      attrs.Set("shape", ShapeOf(t));
      ASSIGN_OR_RETURN(Node * n, graph_->Add(NameOf(index), "tfl.variable", {}, std::move(attrs)));
      return known = {n, 0};
    }
    auto value = LiteConstant(model_, t);
    if (!value.ok()) {
      return Prefix(value.status(), absl::StrCat("tensor ", index, " '", t.name, "': "));
    }
    if (!value->valid()) {
      return InvalidArgument("tensor ", index, " '", t.name, "' is read before it is there");
    }
    if (const Status blocks = SetBlocks(t, *value, attrs); !blocks.ok()) {
      return Prefix(blocks, absl::StrCat("tensor ", index, " '", t.name, "': "));
    }
    attrs.Set("dtype", t.type);
    attrs.Set("value", *value);
    ASSIGN_OR_RETURN(Node * n, graph_->Add(NameOf(index), "Const", {}, std::move(attrs)));
    return known = {n, 0};
  }

  // The scales of blocks are those of another tensor.
  Status SetBlocks(const LiteTensor& t, const Tensor& value, AttrMap& attrs) const {
    if (!t.quantization.blockwise) return OkStatus();
    const LiteQuantization::Blockwise& q = *t.quantization.blockwise;
    const auto count = static_cast<int32_t>(from_.tensors.size());
    if (q.scales < 0 || q.scales >= count || q.zero_points >= count) {
      return InvalidArgument("its blocks have scales of tensor ", q.scales, " and zero points of ",
                             q.zero_points, " among ", count, " tensors");
    }
    if (t.type != Dtype::kInt4 && t.type != Dtype::kInt8) {
      return Unimplemented("it has scales of blocks, and is ", DtypeName(t.type));
    }
    const Shape& shape = value.shape();
    if (shape.rank() < 1 || shape[shape.rank() - 1] % q.block_size != 0) {
      return InvalidArgument("its shape ", shape.ToString(), " has no blocks of ", q.block_size);
    }
    ASSIGN_OR_RETURN(const Tensor stated, LiteConstant(model_, Tensor_(q.scales)));
    std::vector<float> scales;
    if (stated.valid() && stated.dtype() == Dtype::kHalf) {
      for (const Half v : stated.flat<Half>()) scales.push_back(static_cast<float>(v));
    } else if (stated.valid() && stated.dtype() == Dtype::kFloat) {
      const auto numbers = stated.flat<float>();
      scales.assign(numbers.begin(), numbers.end());
    } else {
      return InvalidArgument("the scales of its blocks are no constant of float16 or float32");
    }
    if (static_cast<int64_t>(scales.size()) != value.num_elements() / q.block_size) {
      return InvalidArgument("there are ", scales.size(), " scales for ",
                             value.num_elements() / q.block_size, " blocks");
    }
    for (const float scale : scales) {
      if (!(scale >= 0) || !std::isfinite(scale)) {
        return InvalidArgument("a block of it has the scale ", scale);
      }
    }
    RETURN_IF_ERROR(CheckZeroPoints(q.zero_points));
    attrs.Set(kScales, scales);
    attrs.Set(kZeroPoints, std::vector<int64_t>(scales.size(), 0));
    attrs.Set(kBlockSize, int64_t{q.block_size});
    return OkStatus();
  }

  // No kernel reads the zero points of blocks. 0 is what a file has that says nothing of them, so
  // that the first tensor is meant where it could be.
  Status CheckZeroPoints(int32_t index) const {
    if (index < 0) return OkStatus();
    ASSIGN_OR_RETURN(const Tensor zeros, LiteConstant(model_, Tensor_(index)));
    const bool integers =
        zeros.valid() && (zeros.dtype() == Dtype::kInt4 || zeros.dtype() == Dtype::kInt8 ||
                          zeros.dtype() == Dtype::kInt32 || zeros.dtype() == Dtype::kInt64);
    if (!integers) {
      if (index == 0) return OkStatus();
      return InvalidArgument("the zero points of its blocks, tensor ", index,
                             ", are no constant integers");
    }
    const auto* bytes = static_cast<const char*>(zeros.raw());
    if (std::any_of(bytes, bytes + zeros.bytes(), [](char c) { return c != 0; })) {
      return Unimplemented("its blocks have zero points other than 0");
    }
    return OkStatus();
  }

  Status AddOperator(const LiteOperator& op) {
    std::vector<Endpoint> inputs;
    DtypeVector in, out;
    for (const int32_t i : op.inputs) {
      if (i < 0) {
        if (no_value_ == nullptr) {
          ASSIGN_OR_RETURN(no_value_, graph_->Add("no_value", "tfl.no_value", {}));
        }
        inputs.push_back({no_value_, 0});
        in.push_back(Dtype::kVariant);
        continue;
      }
      ASSIGN_OR_RETURN(const Endpoint e, Value(i));
      inputs.push_back(e);
      in.push_back(Tensor_(i).type);
    }
    AttrMap attrs;
    if (op.custom) {
      attrs.Set("custom_code", op.op);
      attrs.Set("custom_options", op.custom_options);
    } else {
      for (const auto& [name, value] : op.options) RETURN_IF_ERROR(SetOption(name, value, attrs));
      // Subgraph 0 is the default, which no table states.
      for (const LiteOption& o : LiteOptions(op.op)) {
        const bool subgraph = !FunctionOfOption(o.name).empty() && !o.default_value.is_list();
        if (!subgraph || op.options.Find(o.name) != nullptr) continue;
        RETURN_IF_ERROR(SetOption(o.name, o.default_value, attrs));
      }
    }
    std::vector<PartialShape> shapes;
    for (size_t port = 0; port < op.outputs.size(); ++port) {
      const LiteTensor& t = Tensor_(op.outputs[port]);
      const auto index = static_cast<size_t>(op.outputs[port]);
      if (!model_.buffers[t.buffer].bytes.empty()) {
        return InvalidArgument("tensor ", index, " '", t.name,
                               "' is a constant, which no operator makes");
      }
      if (made_[index] || values_[index].node != nullptr) {
        return InvalidArgument("tensor ", index, " '", t.name, "' is made twice");
      }
      made_[index] = true;
      out.push_back(t.type);
      shapes.push_back(ShapeOf(t));
      if (t.is_variable) attrs.Set(kVariableOutputs, true);
      NoteQuantization(t.quantization, static_cast<int>(port), attrs);
    }
    if (!op.intermediates.empty()) {
      std::vector<float> scales;
      std::vector<int64_t> zeros;
      for (const int32_t i : op.intermediates) {
        const LiteQuantization& q = Tensor_(i).quantization;
        scales.push_back(q.scale.empty() ? 0 : q.scale[0]);
        zeros.push_back(q.zero_point.empty() ? 0 : q.zero_point[0]);
      }
      attrs.Set(kIntermediateScales, scales);
      attrs.Set(kIntermediateZeros, zeros);
    }
    attrs.Set("Tin", in);
    attrs.Set("Tout", out);
    attrs.Set(kOutputShapes, std::move(shapes));
    const std::string name =
        op.outputs.empty() ? graph_->FreeName(absl::AsciiStrToLower(op.op)) : NameOf(op.outputs[0]);
    ASSIGN_OR_RETURN(
        Node * n,
        graph_->Add(name,
                    op.custom ? "tfl.custom" : absl::StrCat("tfl.", absl::AsciiStrToLower(op.op)),
                    inputs, std::move(attrs)));
    for (size_t port = 0; port < op.outputs.size(); ++port) {
      values_[static_cast<size_t>(op.outputs[port])] = {n, static_cast<int>(port)};
    }
    // Operators run one after another: those with an effect keep their order.
    if (n->def() != nullptr && n->def()->stateful) {
      if (last_effect_ != nullptr) graph_->AddControlInput(n, last_effect_);
      last_effect_ = n;
    }
    return OkStatus();
  }

  StatusOr<std::string> FunctionAt(int64_t subgraph) {
    if (subgraph < 0 || static_cast<size_t>(subgraph) >= all_.names.size()) {
      return InvalidArgument("it calls subgraph ", subgraph, " of ", all_.names.size());
    }
    calls_.push_back(static_cast<size_t>(subgraph));
    return all_.names[static_cast<size_t>(subgraph)];
  }

  Status SetOption(const std::string& name, const Attr& value, AttrMap& attrs) {
    const absl::string_view function = FunctionOfOption(name);
    if (function.empty()) {
      attrs.Set(name, value);
    } else if (const auto* list = value.get<std::vector<int64_t>>()) {
      std::vector<FuncAttr> functions;
      for (const int64_t i : *list) {
        ASSIGN_OR_RETURN(std::string f, FunctionAt(i));
        functions.push_back({std::move(f), nullptr});
      }
      attrs.Set(function, std::move(functions));
    } else if (const auto* number = value.get<int64_t>()) {
      ASSIGN_OR_RETURN(std::string f, FunctionAt(*number));
      attrs.Set(function, FuncAttr{std::move(f), nullptr});
    }
    return OkStatus();
  }

  const LiteModel& model_;
  const LiteFunctions& all_;
  const LiteSubgraph& from_;
  Graph* graph_ = nullptr;
  std::vector<Endpoint> values_;  // by tensor
  std::vector<bool> made_;        // by an operator
  Node* no_value_ = nullptr;
  Node* last_effect_ = nullptr;
  std::vector<size_t> calls_;
};

// Subgraphs whose names are not theirs alone get a number behind them.
std::vector<std::string> NamesOf(const LiteModel& model) {
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> taken;
  absl::flat_hash_map<std::string, int> next;  // by the name that several have
  for (size_t i = 0; i < model.subgraphs.size(); ++i) {
    const std::string& name = model.subgraphs[i].name;
    const std::string base = name.empty() ? absl::StrCat("subgraph_", i) : name;
    std::string free = base;
    while (!taken.insert(free).second) free = absl::StrCat(base, "_", ++next[base]);
    names.push_back(std::move(free));
  }
  return names;
}

// What calls may add to the operators of a file. Each call becomes a copy of what it calls before
// anything runs, which no deadline ends.
constexpr int64_t kMostCalledOperators = 100'000;

// A subgraph that calls itself, however indirectly, is one that no interpreter runs; one whose
// calls come to more operators than anybody writes is RESOURCE_EXHAUSTED.
Status CheckCalls(const LiteModel& model, const std::vector<std::vector<size_t>>& calls,
                  const std::vector<std::string>& names) {
  enum class State : uint8_t { kNew, kOpen, kDone };
  std::vector<State> states(calls.size(), State::kNew);
  std::vector<int64_t> sizes(calls.size());  // operators, with those of what is called
  int64_t most = kMostCalledOperators;
  for (const LiteSubgraph& s : model.subgraphs) most += static_cast<int64_t>(s.operators.size());
  std::vector<std::pair<size_t, size_t>> path;  // a subgraph, and which of its calls comes next
  for (size_t root = 0; root < calls.size(); ++root) {
    if (states[root] != State::kNew) continue;
    path.emplace_back(root, 0);
    states[root] = State::kOpen;
    while (!path.empty()) {
      auto& [at, next] = path.back();
      if (next == calls[at].size()) {
        states[at] = State::kDone;
        sizes[at] = static_cast<int64_t>(model.subgraphs[at].operators.size());
        for (const size_t callee : calls[at]) {
          sizes[at] += sizes[callee];
          if (sizes[at] <= most) continue;
          return ResourceExhausted("subgraph '", names[at], "' comes to more than ", most,
                                   " operators with those of the subgraphs that it calls");
        }
        path.pop_back();
        continue;
      }
      const size_t callee = calls[at][next++];
      if (states[callee] == State::kOpen) {
        return InvalidArgument("subgraph '", names[at], "' calls subgraph '", names[callee],
                               "', which is calling it: subgraphs do not recur");
      }
      if (states[callee] == State::kDone) continue;
      states[callee] = State::kOpen;
      path.emplace_back(callee, 0);
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<LiteFunctions> ImportLite(const LiteModel& model) {
  LiteFunctions out;
  out.library = std::make_shared<FunctionLibrary>();
  out.names = NamesOf(model);
  std::vector<std::vector<size_t>> calls;
  for (size_t i = 0; i < model.subgraphs.size(); ++i) {
    Importer importer(model, out, model.subgraphs[i]);
    auto f = importer.Run(out.names[i]);
    if (!f.ok()) return Prefix(f.status(), absl::StrCat("subgraph '", out.names[i], "': "));
    RETURN_IF_ERROR(out.library->Add(*std::move(f)));
    calls.push_back(importer.calls());
  }
  RETURN_IF_ERROR(CheckCalls(model, calls, out.names));
  return out;
}

}  // namespace smelt
