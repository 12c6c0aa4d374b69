#include "smelt/lite/prepare/quotients.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"

namespace smelt {
namespace {

// The int32 that becomes a double here; nothing: others do.
std::optional<Endpoint> CastOfInts(Endpoint e) {
  const Node& n = *BehindIdentities(e).node;
  if (!n.Is("Cast") || n.Type("SrcT") != Dtype::kInt32) return std::nullopt;
  return n.input(0);
}

std::optional<Tensor> DoublesOf(Endpoint e) {
  auto value = ConstantTensor(*BehindIdentities(e).node);
  if (!value || value->dtype() != Dtype::kDouble) return std::nullopt;
  return value;
}

// All of them from 1 on, and int32.
bool ArePositiveInts(const Tensor& value) {
  return std::ranges::all_of(value.flat<double>(), [](double v) {
    return v >= 1 && v <= std::numeric_limits<int32_t>::max() && v == std::trunc(v);
  });
}

template <typename T>
StatusOr<Tensor> NumbersOf(const Tensor& doubles, Dtype type) {
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(type, doubles.shape()));
  std::ranges::transform(doubles.flat<double>(), out.flat<T>().begin(),
                         [](double v) { return static_cast<T>(v); });
  return out;
}

class Division {
 public:
  Division(Graph& graph, Node* cast) : graph_(graph), cast_(cast), to_(cast->Type("DstT")) {}

  Status Replace() {
    Node* n = BehindIdentities(cast_->input(0)).node;
    const bool down = n->Is("Floor"), up = n->Is("Ceil");
    if (down || up) n = BehindIdentities(n->input(0)).node;
    if (!n->Is("RealDiv") || n->Type("T") != Dtype::kDouble) return OkStatus();
    if (to_ == Dtype::kFloat && !down && !up) return ByFloats(*n);
    const auto a = CastOfInts(n->input(0));
    const auto b = DoublesOf(n->input(1));
    if (!a || !b || !ArePositiveInts(*b)) return OkStatus();
    ASSIGN_OR_RETURN(const Tensor by, NumbersOf<int32_t>(*b, Dtype::kInt32));
    const Endpoint divisor = {graph_.AddConst(Name("divisor"), by), 0};
    Endpoint e = *a;
    if (up) {
      ASSIGN_OR_RETURN(e, Add("less", "Neg", {e}));
    }
    ASSIGN_OR_RETURN(e, Add("quotient", down || up ? "FloorDiv" : "TruncateDiv", {e, divisor}));
    if (up) {
      ASSIGN_OR_RETURN(e, Add("up", "Neg", {e}));
    }
    if (to_ != Dtype::kInt32) {
      ASSIGN_OR_RETURN(e, Cast(e));
    }
    return Stand(e);
  }

 private:
  static bool IsOfDoubles(const Node& n) {
    return n.Is({"Floor", "Ceil", "RealDiv", "Identity", "Cast"}) &&
           n.output_types[0] == Dtype::kDouble;
  }

  std::string Name(absl::string_view what) const { return absl::StrCat(cast_->name(), "/", what); }

  StatusOr<Endpoint> Add(absl::string_view what, absl::string_view op,
                         const std::vector<Endpoint>& inputs, Dtype type = Dtype::kInt32) {
    AttrMap attrs;
    attrs.Set("T", type);
    ASSIGN_OR_RETURN(Node * n, graph_.Add(Name(what), op, inputs, std::move(attrs)));
    return Endpoint{n, 0};
  }
  StatusOr<Endpoint> Cast(Endpoint ints) {
    AttrMap attrs;
    attrs.Set("SrcT", Dtype::kInt32);
    attrs.Set("DstT", to_);
    ASSIGN_OR_RETURN(Node * n, graph_.Add(Name("cast"), "Cast", {ints}, std::move(attrs)));
    return Endpoint{n, 0};
  }

  Status ByFloats(const Node& n) {
    std::vector<Endpoint> operands;
    for (const int i : {0, 1}) {
      if (const auto ints = CastOfInts(n.input(i))) {
        ASSIGN_OR_RETURN(const Endpoint floats, Cast(*ints));
        operands.push_back(floats);
      } else if (const auto value = DoublesOf(n.input(i))) {
        ASSIGN_OR_RETURN(const Tensor floats, NumbersOf<float>(*value, Dtype::kFloat));
        operands.push_back({graph_.AddConst(Name("operand"), floats), 0});
      } else {
        return OkStatus();
      }
    }
    ASSIGN_OR_RETURN(const Endpoint e, Add("quotient", "RealDiv", operands, Dtype::kFloat));
    return Stand(e);
  }

  Status Stand(Endpoint e) {
    graph_.ReplaceAllUses({cast_, 0}, e);
    graph_.ReplaceControlUses(cast_, e.node);
    // With what nobody else reads of the doubles.
    for (Node* n = cast_; n != nullptr && n->uses().empty();) {
      Node* from = n->num_inputs() == 0 || n->Is("_Arg") ? nullptr : n->input(0).node;
      graph_.Remove(n);
      n = from != nullptr && IsOfDoubles(*from) ? from : nullptr;
    }
    return OkStatus();
  }

  Graph& graph_;
  Node* cast_;
  Dtype to_;
};

}  // namespace

Status DivideWithoutDoubles(Graph& graph) {
  constexpr DtypeSet kTo = Types(Dtype::kInt32, Dtype::kInt64, Dtype::kFloat);
  for (Node* n : graph.Nodes()) {
    if (!n->Is("Cast") || n->Type("SrcT") != Dtype::kDouble || n->Bool("Truncate")) continue;
    if (Has(kTo, n->Type("DstT"))) RETURN_IF_ERROR(Division(graph, n).Replace());
  }
  return OkStatus();
}

}  // namespace smelt
