#include "smelt/lite/quantize/integer_rewrite.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "smelt/graph/constant.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/quantization.h"
#include "smelt/lite/quantize/conversion.h"
#include "smelt/lite/quantize/integer_constants.h"
#include "smelt/lite/quantize/integer_lstm.h"
#include "smelt/lite/quantize/pair_scales.h"
#include "smelt/lite/quantize/quantized_ops.h"

namespace smelt {
namespace {

class IntegerRewriter {
 public:
  using Key = IntegerPlan::Key;
  IntegerRewriter(Graph& graph, IntegerPlan& plan)
      : graph_(graph), p_(plan), type_(plan.format.type) {}

  Status Run(std::span<Node* const> order) {
    for (Node* n : order) {
      if (p_.chosen.contains(n)) RETURN_IF_ERROR(Rewrite(n));
    }
    RETURN_IF_ERROR(RewriteVariables());
    for (Node* n : order) {
      if (Node* q = DeclarationOf({n, 0})) RETURN_IF_ERROR(RewriteDeclaration(n, q));
    }
    return Borders(order);
  }

 private:
  Status RewriteVariables() {
    for (const auto& [n, p] : p_.writes) {
      Endpoint value = n->input(1);
      if (const auto constant = ConstantTensor(*value.node)) {
        RETURN_IF_ERROR(CheckFinite(*n, *value.node, *constant));
        ASSIGN_OR_RETURN(value, QuantizedConstant(graph_, p_, *n, n->input(1), *constant, &p));
      } else {
        ASSIGN_OR_RETURN(value, InParams(value, p));
      }
      graph_.SetInput(n, 1, value);
      RETURN_IF_ERROR(UpdateInputTypes(graph_, n));
    }
    for (Node* n : p_.reads) {
      const Params p = p_.params.at({n, 0});
      SetQuantization(n->AttrsToChange(), 0, {{p.scale}, {p.zero}});
      n->AttrsToChange().Set("Tout", DtypeVector{type_});
      RETURN_IF_ERROR(graph_.ResolveTypes(n));
    }
    return OkStatus();
  }

  // The value under the params, from where it is first given.
  StatusOr<Endpoint> InParams(Endpoint e, const Params& wanted) {
    const Endpoint given = Given(e);
    if (p_.ParamsAt(e) == wanted) return given;
    auto& known = again_[{IntegerPlan::KeyOf(e), wanted.scale, wanted.zero}];
    if (known.node == nullptr) {
      ASSIGN_OR_RETURN(known, Converted("tfl.quantize", given, type_, "again"));
      SetQuantization(known.node->AttrsToChange(), 0, {{wanted.scale}, {wanted.zero}});
    }
    return known;
  }

  // The integers that stand for `e`: its node's own, or those of a QUANTIZE behind it.
  Endpoint Given(Endpoint e) {
    if (p_.GivesIntegers(e.node)) return e;
    if (Node* declaration = DeclarationOf(e)) return {declaration, 0};
    Endpoint& q = entered_[IntegerPlan::KeyOf(e)];
    if (q.node == nullptr) {
      // It has one input and no options: nothing can be wrong with it.
      q = *Converted("tfl.quantize", e, type_, "quantized");
      const Params p = p_.ParamsAt(e);
      SetQuantization(q.node->AttrsToChange(), 0, {{p.scale}, {p.zero}});
    }
    return q;
  }

  StatusOr<Endpoint> Converted(OpName op, Endpoint from, Dtype type, absl::string_view what) {
    return AddConversion(graph_, absl::StrCat(from.node->name(), "/", what), op, from, type);
  }

  // Without a projection what is before it is the result.
  Status RewriteLstm(Node* n) {
    constexpr int kProjection = 16;
    const Params from = p_.ParamsAt(n->input(0)), to = p_.params.at({n, 0});
    const bool projects = !n->input(kProjection).node->Is("tfl.no_value");
    const Params hidden = projects ? p_.Calibrated({n, kLstmRanges + kLstmHidden}) : to;
    return MakeIntegerLstm(graph_, n, p_.ranges, Given(n->input(0)), {from.scale, from.zero},
                           {to.scale, to.zero}, {hidden.scale, hidden.zero});
  }

  Status SpellDifference(Node* n) {
    const float scale = DifferenceScale(p_.params.at({n, 0}).scale);
    ASSIGN_OR_RETURN(Node * difference, MakeProductOfDifference(graph_, n));
    p_.params[{difference, 0}] = {scale, 0};
    p_.chosen.insert(difference);
    return Rewrite(difference);
  }

  Status Rewrite(Node* n) {
    const QuantizedOp& row = *FindQuantizedOp(n->op_name());
    if (row.recurrent) return RewriteLstm(n);
    if (n->Is("tfl.square")) MakeProduct(graph_, n);
    if (n->Is("tfl.squared_difference") && p_.flags.int16) RETURN_IF_ERROR(SpellDifference(n));
    const bool agrees = row.results == ResultRange::kAsInput;
    // Copies: what is made on the way gets params, too.
    std::optional<Params> result;
    if (n->num_outputs() > 0 && IntegerPlan::IsFloat({n, 0})) result = p_.params.at({n, 0});
    std::vector<float> weight_scales;
    float input_scale = 1;
    std::vector<Endpoint> inputs = {n->inputs().begin(), n->inputs().end()};
    // Weights and activations first: the scale of a bias is theirs.
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Endpoint e = inputs[static_cast<size_t>(i)];
      if (!WasFloat(e) || i == row.bias) continue;
      Endpoint& to = inputs[static_cast<size_t>(i)];
      const bool weights = i >= row.first_weights && i <= row.last_weights;
      if (const auto value = ConstantTensor(*e.node)) {
        if (weights) {
          ASSIGN_OR_RETURN(auto made, WeightsOf(graph_, p_, *n, *e.node, *value));
          to = made.values;
          weight_scales = std::move(made.scales);
        } else {
          const bool has_range = agrees || p_.ranges.contains(IntegerPlan::KeyOf(e));
          RETURN_IF_ERROR(CheckFinite(*n, *e.node, *value, has_range));
          // Zeros alone have no scale of their own, and stand on any.
          const LiteRange range = p_.RangeOfConstant(e, *value);
          const bool as_other = n->Is(kComparisons) && range.min == range.max;
          std::optional<Params> forced = agrees ? result : std::nullopt;
          if (as_other && !n->input(1 - i).node->Is("Const")) {
            forced = p_.ParamsAt(n->input(1 - i));
          }
          ASSIGN_OR_RETURN(
              to, QuantizedConstant(graph_, p_, *n, e, *value, forced ? &*forced : nullptr));
        }
        continue;
      }
      const Params p = agrees && result ? *result : p_.ParamsAt(e);
      ASSIGN_OR_RETURN(to, InParams(e, p));
      if (!weights) input_scale = p.scale;
    }
    if (row.bias >= 0 && row.bias < n->num_inputs()) {
      const Endpoint e = inputs[static_cast<size_t>(row.bias)];
      if (const auto value = ConstantTensor(*e.node); value && value->dtype() == Dtype::kFloat) {
        RETURN_IF_ERROR(CheckFinite(*n, *e.node, *value));
        ASSIGN_OR_RETURN(inputs[static_cast<size_t>(row.bias)],
                         QuantizedBias(graph_, p_.flags, *n, *value, input_scale, weight_scales));
      }
    }
    graph_.SetInputs(n, inputs);
    DtypeVector types;
    for (size_t i = 0; i < n->output_types.size(); ++i) {
      const bool number = n->output_types[i] == Dtype::kFloat;
      types.push_back(number ? type_ : n->output_types[i]);
      if (!number) continue;
      const Params p = p_.params.at({n, static_cast<int>(i)});
      SetQuantization(n->AttrsToChange(), static_cast<int>(i), {{p.scale}, {p.zero}});
    }
    n->AttrsToChange().Set("Tout", types);
    if (p_.flags.int16 && row.bias >= 0 && n->Find("quantized_bias_type") != nullptr) {
      n->AttrsToChange().Set("quantized_bias_type", BiasType(*n, p_.flags));
    }
    return UpdateInputTypes(graph_, n);
  }

  // A stated range whose value is integers on its scale by now states nothing more; others are
  // integers from another scale, or from floats.
  Status RewriteDeclaration(Node* dequantize, Node* q) {
    const Params p = p_.ParamsAt({dequantize, 0});
    if (dequantize->uses().empty()) graph_.Remove(dequantize);
    SetQuantization(q->AttrsToChange(), 0, {{p.scale}, {p.zero}});
    q->EraseAttr(kDeclaresRange);
    Endpoint from = q->input(0);
    const bool given = p_.IsGivenArgument(*from.node);
    const bool same = (given || p_.chosen.contains(from.node)) && p_.ParamsAt(from) == p;
    if (given) {
      from = Given(from);
      graph_.SetInput(q, 0, from);
    }
    if (same) graph_.ReplaceAllUses({q, 0}, from);
    if (!q->uses().empty()) return UpdateInputTypes(graph_, q);
    graph_.ReplaceControlUses(q, nullptr);
    graph_.Remove(q);
    return OkStatus();
  }

  // Float before the rewriting: operators that were rewritten give integers by now.
  bool WasFloat(Endpoint e) const {
    return IntegerPlan::IsFloat(e) || p_.params.contains(IntegerPlan::KeyOf(e));
  }

  // Who still wants floats gets them, and arguments and results are integers where that is asked.
  Status Borders(std::span<Node* const> order) {
    // Of `order` some are gone by now, which the next loop asks for no more than their address.
    for (Node* n : graph_.Nodes()) {
      if (p_.flags.input_type == Dtype::kFloat || !p_.IsGivenArgument(*n) || n->uses().empty())
        continue;
      Given({n, 0});
    }
    for (Node* n : order) {
      if (!p_.GivesIntegers(n)) continue;
      for (int port = 0; port < n->num_outputs(); ++port) {
        if (!p_.params.contains({n, port})) continue;
        std::vector<Use> floats;
        for (const Use& use : n->OrderedUses()) {
          if (use.is_control() || use.port() != port) continue;
          const bool takes =
              p_.chosen.contains(use.node) || IsConversion(*use.node) ||
              std::ranges::find(p_.writes, use.node, &IntegerPlan::Write::first) != p_.writes.end();
          if (!takes) floats.push_back(use);
        }
        if (floats.empty()) continue;
        ASSIGN_OR_RETURN(const Endpoint back,
                         Converted("tfl.dequantize", {n, port}, Dtype::kFloat, "float"));
        for (const Use& use : floats) graph_.SetInput(use.node, use.input, back);
      }
    }
    return OkStatus();
  }

  Graph& graph_;
  IntegerPlan& p_;
  const Dtype type_;
  absl::flat_hash_map<Key, Endpoint> entered_;
  std::map<std::tuple<Key, float, int64_t>, Endpoint> again_;
};

}  // namespace

Status RewriteToIntegers(Graph& graph, std::span<Node* const> order, IntegerPlan& plan) {
  return IntegerRewriter(graph, plan).Run(order);
}

}  // namespace smelt
