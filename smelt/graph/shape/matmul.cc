// Shapes of matrix products.
#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_split.h"
#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

Status MatMulShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(const PartialShape a, WithRank(ctx.input(0), 2));
  ASSIGN_OR_RETURN(const PartialShape b, WithRank(ctx.input(1), 2));
  const bool ta = ctx.node().Bool("transpose_a"), tb = ctx.node().Bool("transpose_b");
  RETURN_IF_ERROR(MergeDims(a[ta ? 0 : 1], b[tb ? 1 : 0]).status());
  ctx.set_output(0, PartialShape::Of({a[ta ? 1 : 0], b[tb ? 0 : 1]}));
  return OkStatus();
}

// Version 1 wants equal batch dimensions, later ones broadcast them.
template <bool kBroadcast>
Status BatchMatMulShape(ShapeContext& ctx) {
  const PartialShape &a = ctx.input(0), &b = ctx.input(1);
  RETURN_IF_ERROR(RankAtLeast(a, 2));
  RETURN_IF_ERROR(RankAtLeast(b, 2));
  if (!a.known_rank() || !b.known_rank()) return OkStatus();
  const bool ta = ctx.node().Bool("adj_x"), tb = ctx.node().Bool("adj_y");
  const int ra = a.rank(), rb = b.rank();
  RETURN_IF_ERROR(MergeDims(a[ta ? ra - 2 : ra - 1], b[tb ? rb - 1 : rb - 2]).status());
  PartialShape batch;
  if (kBroadcast) {
    ASSIGN_OR_RETURN(batch, BroadcastShapes(SubShape(a, 0, ra - 2), SubShape(b, 0, rb - 2)));
  } else {
    ASSIGN_OR_RETURN(batch, PartialShape::Merge(SubShape(a, 0, ra - 2), SubShape(b, 0, rb - 2)));
  }
  batch.Add(a[ta ? ra - 1 : ra - 2]);
  batch.Add(b[tb ? rb - 2 : rb - 1]);
  ctx.set_output(0, std::move(batch));
  return OkStatus();
}

Status SparseDenseMatMulShape(ShapeContext& ctx) {
  const PartialShape a = ctx.constant_as_shape(2);
  ASSIGN_OR_RETURN(const PartialShape b, WithRank(ctx.input(3), 2));
  PartialShape out = PartialShape::UnknownOfRank(2);
  if (a.rank() == 2) out.Set(0, a[ctx.node().Bool("adjoint_a") ? 1 : 0]);
  out.Set(1, b[ctx.node().Bool("adjoint_b") ? 0 : 1]);
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

std::string EinsumLabels(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "...") {
      out.push_back('.');
      i += 2;
    } else if (text[i] != ' ') {
      out.push_back(text[i]);
    }
  }
  return out;
}

Status EinsumShape(ShapeContext& ctx) {
  const std::string equation = ctx.node().String("equation");
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) return OkStatus();
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (static_cast<int>(terms.size()) != ctx.num_inputs()) return OkStatus();
  std::map<char, int64_t> sizes;
  PartialShape ellipsis = Shape();
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const std::string labels = EinsumLabels(terms[i]);
    const PartialShape& in = ctx.input(i);
    const size_t dots = labels.find('.');
    const auto named = static_cast<int>(labels.size()) - (dots == std::string::npos ? 0 : 1);
    if (!in.known_rank()) {
      for (char c : labels) {
        if (c != '.') sizes.try_emplace(c, kUnknownDim);
      }
      if (dots != std::string::npos) ellipsis = PartialShape();
      continue;
    }
    if (dots == std::string::npos) {
      RETURN_IF_ERROR(WithRank(in, named).status());
    } else {
      RETURN_IF_ERROR(RankAtLeast(in, named));
    }
    int at = 0;
    for (char c : labels) {
      if (c == '.') {
        const int end = at + in.rank() - named;
        ASSIGN_OR_RETURN(ellipsis, BroadcastShapes(ellipsis, SubShape(in, at, end)));
        at = end;
        continue;
      }
      auto [it, added] = sizes.try_emplace(c, in[at]);
      // Within an operand sizes of a repeated label agree, between operands a 1 broadcasts.
      if (!added && it->second != in[at]) {
        if (it->second == 1) {
          it->second = in[at];
        } else if (in[at] != 1) {
          ASSIGN_OR_RETURN(it->second, MergeDims(it->second, in[at]));
        }
      }
      ++at;
    }
  }
  PartialShape out = Shape();
  for (char c : EinsumLabels(sides[1])) {
    if (c == '.') {
      out = Concatenate(out, ellipsis);
      continue;
    }
    auto it = sizes.find(c);
    if (it == sizes.end() || !out.known_rank()) return OkStatus();
    out.Add(it->second);
  }
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

constexpr std::array kMatMulRows = {
    ShapeRule{"BatchMatMul", BatchMatMulShape<false>},
    ShapeRule{"BatchMatMulV2", BatchMatMulShape<true>},
    ShapeRule{"BatchMatMulV3", BatchMatMulShape<true>},
    ShapeRule{"Einsum", EinsumShape},
    ShapeRule{"MatMul", MatMulShape},
    ShapeRule{"SparseMatMul", MatMulShape},
    ShapeRule{"SparseTensorDenseMatMul", SparseDenseMatMulShape},
    ShapeRule{"_FusedMatMul", MatMulShape},
    ShapeRule{"_MklFusedBatchMatMulV2", BatchMatMulShape<true>},
};

}  // namespace

extern const std::span<const ShapeRule> kMatMulShapes;
constinit const std::span<const ShapeRule> kMatMulShapes = kMatMulRows;

}  // namespace smelt
