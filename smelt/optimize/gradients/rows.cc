#include "smelt/optimize/gradients/rows.h"

#include "absl/container/flat_hash_map.h"

namespace smelt::gradients {
namespace {

// As TensorFlow says.
constexpr OpSet kConstants = {"Const",
                              "EditDistance",
                              "Equal",
                              "FakeQuantWithMinMaxArgsGradient",
                              "FakeQuantWithMinMaxVarsGradient",
                              "FakeQuantWithMinMaxVarsPerChannelGradient",
                              "Floor",
                              "FloorDiv",
                              "Greater",
                              "GreaterEqual",
                              "Less",
                              "LessEqual",
                              "LinSpace",
                              "LogicalAnd",
                              "LogicalNot",
                              "LogicalOr",
                              "NotEqual",
                              "OnesLike",
                              "RandomUniform",
                              "Range",
                              "Rank",
                              "Shape",
                              "Size",
                              "StatelessMultinomial",
                              "StatelessRandomNormal",
                              "StatelessRandomUniform",
                              "StatelessTruncatedNormal",
                              "StopGradient",
                              "TruncateDiv",
                              "ZerosLike"};

}  // namespace

const Row* FindRow(absl::string_view op) {
  static const auto& rows = *[] {
    auto* all = new absl::flat_hash_map<absl::string_view, const Row*>();
    for (const auto family : {kMathRows, kReductionRows, kArrayRows, kNnRows}) {
      for (const Row& row : family) all->emplace(row.op, &row);
    }
    return all;
  }();
  const auto it = rows.find(op);
  return it == rows.end() ? nullptr : it->second;
}

bool IsConstantForGradients(const Node& n) { return n.Is(kConstants); }

}  // namespace smelt::gradients
