#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/compile/plan.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/shape/values.h"
#include "smelt/kernels/run_op.h"

namespace smelt {
namespace {

// The first input under another shape, which is the output's own.
constexpr OpSet kRenamesShape = {"Identity",     "Reshape",         "Squeeze",  "ExpandDims",
                                 "StopGradient", "PreventGradient", "Snapshot", "EnsureShape"};
// What is computed of constants alone is kept unless it is larger: a run computes it as fast as it
// would read it.
constexpr int64_t kMaxFoldedBytes = 1 << 20;

// Results depend on the input's shape and type.
constexpr OpSet kReadsShapeAlone = {"ZerosLike", "OnesLike"};

// Elementwise, and of integers not for all values.
constexpr OpSet kDivides = {"Div", "FloorDiv",    "FloorMod",   "Mod",
                            "Pow", "TruncateDiv", "TruncateMod"};

class Lowering {
 public:
  Lowering(const Graph& body, std::span<const Shape> args, KernelStates& states, Reasons* reasons)
      : body_(body), args_(args), states_(states), reasons_(reasons) {}

  StatusOr<Plan> Run() {
    std::vector<PartialShape> shapes(args_.begin(), args_.end());
    const auto run = [](const Node& n, std::vector<Tensor> inputs) {
      Step step;
      auto results = RunOp(n, std::move(inputs), step);
      // Fold and the run itself say what is wrong with it.
      return results.ok() ? *std::move(results) : std::vector<Tensor>();
    };
    ASSIGN_OR_RETURN(shapes_, InferShapes(body_, XlaShapeRules(), shapes, run));
    ASSIGN_OR_RETURN(const std::vector<Node*> order, body_.TopologicalOrder());
    for (const Node* n : order) {
      if (!n->Is("_Retval")) RETURN_IF_ERROR(Visit(*n));
    }
    for (const Node* n : order) {
      if (n->Is("_Retval")) Return(*n);
    }
    DropUnread();
    return std::move(plan_);
  }

 private:
  using Port = std::pair<int, int>;

  int ValueOf(Endpoint e) const { return value_of_.at({e.node->id(), e.port}); }
  PlanValue& At(int value) { return plan_.values[static_cast<size_t>(value)]; }

  const Tensor* Constant(int value) {
    const PlanValue& v = At(value);  // constants that are renamed are constants of their own
    if (v.place != PlanValue::Place::kConstant) return nullptr;
    return &plan_.constants[static_cast<size_t>(v.number)];
  }

  StatusOr<int> AddValue(const Node& n, int port) {
    PlanValue v;
    v.of = {const_cast<Node*>(&n), port};
    v.dtype = n.output_types[static_cast<size_t>(port)];
    PartialShape shape = shapes_.of(v.of);
    // TensorFlow's rule leaves open what the kernel keeps for a gradient: on CPUs a scalar.
    if (n.Is("FusedBatchNormV3") && port == 5) shape = PartialShape::Of({});
    if (!shape.fully_known()) {
      return Unimplemented("the shape of '", EndpointName(v.of), "' (", n.op(),
                           ") is known when it has run");
    }
    v.shape = shape.ToShape();
    const int number = static_cast<int>(plan_.values.size());
    value_of_[{n.id(), port}] = number;
    plan_.values.push_back(std::move(v));
    return number;
  }

  Status AddConstant(const Node& n, int port, Tensor t) {
    ASSIGN_OR_RETURN(const int v, AddValue(n, port));
    At(v).shape = t.shape();
    At(v).place = PlanValue::Place::kConstant;
    At(v).number = static_cast<int>(plan_.constants.size());
    plan_.constants.push_back(std::move(t));
    return OkStatus();
  }

  Status Visit(const Node& n) {
    if (n.Is("_Arg")) {
      ASSIGN_OR_RETURN(const int v, AddValue(n, 0));
      At(v).place = PlanValue::Place::kArgument;
      At(v).number = static_cast<int>(n.Int("index"));
      return OkStatus();
    }
    if (n.Is("Const")) {
      const TensorValue* value = StatedConstant(n);
      if (value == nullptr) return InvalidArgument("Const '", n.name(), "' has no value");
      ASSIGN_OR_RETURN(Tensor t, value->Materialize());
      return AddConstant(n, 0, std::move(t));
    }
    ASSIGN_OR_RETURN(const bool folded, Fold(n));
    if (folded) return OkStatus();
    if (n.Is(kRenamesShape)) {
      const int from = ValueOf(n.inputs()[0]);
      const PartialShape& shape = shapes_.of({const_cast<Node*>(&n), 0});
      // A shape that does not fit is an error, which the kernel words: also one that only a request
      // states, though no other than the inferred one would do.
      if (!shape.fully_known() || !OthersAreConstant(n) ||
          shape.ToShape().num_elements() != At(from).shape.num_elements()) {
        return AddAction(n);
      }
      if (const Tensor* t = Constant(from)) return AddConstant(n, 0, t->WithShape(shape.ToShape()));
      ASSIGN_OR_RETURN(const int v, AddValue(n, 0));
      At(v).same_as = from;
      return OkStatus();
    }
    return AddAction(n);
  }

  // All inputs but the first.
  bool OthersAreConstant(const Node& n) {
    return std::all_of(n.inputs().begin() + 1, n.inputs().end(),
                       [&](const Endpoint& e) { return Constant(ValueOf(e)) != nullptr; });
  }

  // What no run need compute: parts of shapes, and what is made of constants alone.
  StatusOr<bool> Fold(const Node& n) {
    absl::InlinedVector<const PartialShape*, 8> shapes;
    std::vector<std::optional<IntVector>> known(n.inputs().size());
    absl::InlinedVector<const IntVector*, 8> values;
    std::vector<Tensor> constants;
    for (size_t i = 0; i < n.inputs().size(); ++i) {
      shapes.push_back(&shapes_.of(n.inputs()[i]));
      const Tensor* t = Constant(ValueOf(n.inputs()[i]));
      if (t != nullptr) {
        known[i] = IntVectorOf(*t);
        constants.push_back(*t);
      }
      values.push_back(known[i] ? &*known[i] : nullptr);
    }
    if (std::ranges::all_of(n.output_types, IsIndexType)) {
      const auto results =
          FollowValues(n, {shapes.data(), shapes.size()}, {values.data(), values.size()});
      const bool all = !results.empty() && std::ranges::all_of(results, [](const auto& r) {
        return r.has_value() && r->complete();
      });
      for (size_t p = 0; all && p < results.size(); ++p) {
        RETURN_IF_ERROR(
            AddConstant(n, static_cast<int>(p), ToTensor(*results[p], n.output_types[p])));
      }
      if (all) return true;
    }
    if (n.Is(kReadsShapeAlone) && constants.empty() && shapes[0]->fully_known()) {
      ASSIGN_OR_RETURN(Tensor like, Tensor::Zeros(n.input_types[0], shapes[0]->ToShape()));
      constants.push_back(std::move(like));
    }
    if (constants.empty() || constants.size() != n.inputs().size()) return false;
    int64_t bytes = 0;
    for (const Tensor& t : constants) bytes += static_cast<int64_t>(t.bytes());
    if (bytes > kMaxFoldedBytes) return RunsEachTime(n, "reads", bytes);
    Step step;
    auto results = RunOp(n, std::move(constants), step);
    // The run says what is wrong with it.
    if (!results.ok()) return false;
    for (const Tensor& t : *results) {
      const auto made = static_cast<int64_t>(t.bytes());
      if (made > kMaxFoldedBytes) return RunsEachTime(n, "makes", made);
    }
    for (size_t p = 0; p < results->size(); ++p) {
      RETURN_IF_ERROR(AddConstant(n, static_cast<int>(p), std::move((*results)[p])));
    }
    return true;
  }

  // False.
  bool RunsEachTime(const Node& n, absl::string_view does, int64_t bytes) {
    NoteReason(reasons_, n, "has constants alone, and runs each time: it ", does, " ", bytes,
               " bytes, and what is kept has at most ", kMaxFoldedBytes);
    return false;
  }

  Status AddAction(const Node& n) {
    PlanAction action;
    action.node = &n;
    ASSIGN_OR_RETURN(action.kernel, FindKernel(n));
    for (const Endpoint& e : n.inputs()) action.inputs.push_back(ValueOf(e));
    for (int p = 0; p < n.num_outputs(); ++p) {
      ASSIGN_OR_RETURN(action.outputs.emplace_back(), AddValue(n, p));
    }
    if (action.kernel->prepare != nullptr) {
      std::shared_ptr<KernelState>& state = states_[n.id()];
      if (state == nullptr) {
        ASSIGN_OR_RETURN(state, action.kernel->prepare(n));
      }
      action.state = state;
    }
    plan_.actions.push_back(std::move(action));
    return OkStatus();
  }

  void Return(const Node& n) {
    const auto index = static_cast<size_t>(n.Int("index"));
    if (plan_.results.size() <= index) plan_.results.resize(index + 1, -1);
    const int v = ValueOf(n.inputs()[0]);
    plan_.results[index] = v;
    PlanValue& root = At(plan_.Root(v));
    if (root.place != PlanValue::Place::kArena) return;
    root.place = PlanValue::Place::kResult;
    root.number = static_cast<int>(index);
  }

  // May a run find values wrong, though all shapes are right? Places, sizes and divisors are
  // integers. Kernels refuse some tensors without elements.
  bool MayFail(const PlanAction& action) {
    if (action.node->Is("CheckNumerics")) return true;
    if (action.node->Is(kElementwiseOps) && !action.node->Is(kDivides)) return false;
    return std::ranges::any_of(action.inputs, [&](int v) {
      return At(v).shape.num_elements() == 0 ||
             (IsIndexType(At(v).dtype) && Constant(plan_.Root(v)) == nullptr);
    });
  }

  // May a run find its constants wrong, such as places that an argument of this shape does not
  // have? What the other inputs hold does not matter, so a run on zeros tells.
  bool FailsByConstants(const PlanAction& action) {
    const auto places = [&](int v) {
      return IsIndexType(At(v).dtype) ? Constant(plan_.Root(v)) : nullptr;
    };
    if (std::ranges::all_of(action.inputs, [&](int v) { return places(v) == nullptr; })) {
      return false;
    }
    std::vector<Tensor> inputs;
    for (const int v : action.inputs) {
      const PlanValue& value = At(v);
      if (const Tensor* t = places(v)) {
        inputs.push_back(t->WithShape(value.shape));
        continue;
      }
      auto zeros = Tensor::Zeros(value.dtype, value.shape);
      if (!zeros.ok()) return true;
      inputs.push_back(*std::move(zeros));
    }
    Step step;
    return !RunOp(*action.node, std::move(inputs), step).ok();
  }

  // Actions whose results only what was folded has read. One that may fail is run for its error.
  void DropUnread() {
    std::vector<bool> read(plan_.values.size(), false);
    for (const int v : plan_.results) read[static_cast<size_t>(plan_.Root(v))] = true;
    for (size_t i = plan_.actions.size(); i-- > 0;) {
      PlanAction& action = plan_.actions[i];
      const bool is_read =
          std::ranges::any_of(action.outputs, [&](int v) { return read[static_cast<size_t>(v)]; });
      if (!is_read && !MayFail(action) && !FailsByConstants(action)) {
        plan_.actions.erase(plan_.actions.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      for (const int v : action.inputs) read[static_cast<size_t>(plan_.Root(v))] = true;
    }
  }

  const Graph& body_;
  const std::span<const Shape> args_;
  KernelStates& states_;
  Reasons* const reasons_;
  ShapeTable shapes_;
  absl::flat_hash_map<Port, int> value_of_;
  Plan plan_;
};

}  // namespace

StatusOr<Plan> Lower(const Graph& body, std::span<const Shape> args, KernelStates& states,
                     Reasons* reasons) {
  return Lowering(body, args, states, reasons).Run();
}

}  // namespace smelt
