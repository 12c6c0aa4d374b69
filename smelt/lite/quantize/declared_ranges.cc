#include "smelt/lite/quantize/declared_ranges.h"

#include <algorithm>
#include <optional>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/quantize/quantized_ops.h"

namespace smelt {
namespace {

using Key = std::pair<const Node*, int>;

bool IsFloat(Endpoint e) {
  return e.node->output_types[static_cast<size_t>(e.port)] == Dtype::kFloat;
}
Key KeyOf(Endpoint e) { return {e.node, e.port}; }

LiteRange RangeOf(const Params& p) {
  return {p.scale * static_cast<float>(kInt8Format.low - p.zero),
          p.scale * static_cast<float>(kInt8Format.high - p.zero)};
}

bool OnlyStated(Endpoint e) {
  return std::ranges::all_of(e.node->uses(), [&](const Use& use) {
    return use.is_control() || use.port() != e.port || use.node->Find(kDeclaresRange) != nullptr;
  });
}

class ParamSpreader {
 public:
  // `some`: where an operator keeps the scale of several, those that are known give it to all, as
  // version 1 of TensorFlow's converter has it.
  ParamSpreader(DeclaredParams& params, bool uint8, bool some, bool own)
      : params_(params), uint8_(uint8), some_(some), own_(own) {}

  // What is left takes `rest`.
  void SetRest(const Declared& rest) { rest_ = rest; }

  // What stands before an operator that keeps the scale has that of its result.
  void Back(const Node& n) {
    if (!KeepsScale(n) || n.num_outputs() != 1 || !params_.contains({&n, 0})) return;
    const std::vector<Endpoint> from = Activations(n);
    if (from.size() > 1 && !some_) return;
    for (const Endpoint& e : from) {
      if (OneReader(e)) params_.try_emplace(KeyOf(e), params_.at({&n, 0}));
    }
  }

  void Forward(const Node& n) {
    const QuantizedOp* row = FindQuantizedOp(n.op_name());
    if (row == nullptr) return;
    for (int i = 0; i < n.num_outputs(); ++i) {
      if (!IsFloat({const_cast<Node*>(&n), i})) continue;
      if (row->results == ResultRange::kFixed) {
        if (!own_) continue;
        const Params p = {row->fixed_scale, row->fixed_zero};
        params_.try_emplace({&n, i}, Declared{p, RangeOf(p)});
      } else if (KeepsScale(n)) {
        if (const auto p = JoinedParams(n)) params_.try_emplace({&n, i}, *p);
      } else if (rest_ && row->integer && !row->recurrent &&
                 row->results == ResultRange::kCalibrated) {
        params_.try_emplace({&n, i}, *rest_);
      }
    }
  }

 private:
  static bool KeepsScale(const Node& n) {
    const QuantizedOp* row = FindQuantizedOp(n.op_name());
    return row != nullptr && row->results == ResultRange::kAsInput;
  }
  static bool OneReader(Endpoint e) { return e.node->NumUses(e.port) == 1; }

  static std::vector<Endpoint> Activations(const Node& n) {
    std::vector<Endpoint> out;
    for (const Endpoint& e : n.inputs()) {
      if (IsFloat(e) && !e.node->Is("Const")) out.push_back(e);
    }
    return out;
  }

  // Of all that is joined; nothing where the params of one are not known.
  std::optional<Declared> JoinedParams(const Node& n) const {
    const std::vector<Endpoint> from = Activations(n);
    if (from.empty()) return std::nullopt;
    std::vector<Declared> known;
    for (const Endpoint& e : from) {
      const auto p = params_.find(KeyOf(e));
      if (p == params_.end() && some_) continue;
      if (p == params_.end()) return std::nullopt;
      if (from.size() == 1) return p->second;
      known.push_back(p->second);
    }
    if (known.empty()) return std::nullopt;
    if (some_ && known.size() == 1) return known[0];
    LiteRange all;
    for (const Declared& d : known) {
      all = {std::min(all.min, d.range.min), std::max(all.max, d.range.max)};
    }
    // One that holds all others stays as it is stated: its zero point may be rounded otherwise.
    const auto widest = std::ranges::find_if(
        known, [&](const Declared& d) { return d.range.min <= all.min && d.range.max >= all.max; });
    if (widest != known.end()) return *widest;
    if (!uint8_) return Declared{ParamsOf(all, kInt8Format), all};
    Params p = ParamsOf(all, kUint8Format);
    p.zero -= 128;
    return Declared{p, all};
  }

  DeclaredParams& params_;
  const bool uint8_, some_, own_;
  std::optional<Declared> rest_;
};

}  // namespace

Node* DeclarationOf(Endpoint e) {
  if (!e.node->Is("tfl.dequantize")) return nullptr;
  Node* q = e.node->input(0).node;
  return q->Is("tfl.quantize") && q->Find(kDeclaresRange) != nullptr ? q : nullptr;
}

bool HasDeclaredRanges(const Graph& graph) {
  return std::ranges::any_of(graph.Nodes(), [](const Node* n) {
    return DeclarationOf({const_cast<Node*>(n), 0}) != nullptr;
  });
}

DeclaredParams FindDeclaredParams(std::span<Node* const> order, DeclaredParams given,
                                  const std::optional<Declared>& rest, bool uint8,
                                  bool own_ranges) {
  DeclaredParams out = std::move(given);
  for (Node* n : order) {
    const Node* q = DeclarationOf({n, 0});
    if (q == nullptr) continue;
    const auto range = q->Get<std::vector<float>>(kDeclaresRange, {0, 0});
    const Declared p = {{q->Get<std::vector<float>>(kScales, {1.0f})[0], q->Ints(kZeroPoints)[0]},
                        {range[0], range[1]}};
    out[{n, 0}] = p;
    const Endpoint from = q->input(0);
    if (OnlyStated(from)) out.try_emplace(KeyOf(from), p);
  }
  if (out.empty() && !rest) return out;
  ParamSpreader spreader(out, uint8, rest.has_value(), own_ranges);
  for (auto n = order.rbegin(); n != order.rend(); ++n) spreader.Back(**n);
  for (const Node* n : order) spreader.Forward(*n);
  if (!rest) return out;
  for (auto n = order.rbegin(); n != order.rend(); ++n) spreader.Back(**n);
  spreader.SetRest(*rest);
  for (const Node* n : order) spreader.Forward(*n);
  return out;
}

}  // namespace smelt
