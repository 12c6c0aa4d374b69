// Shapes of ops on strings.
#include <array>

#include "absl/strings/match.h"
#include "smelt/graph/shape/rules.h"

namespace smelt {
namespace {

// Each input is a scalar or has the one shape of the others.
Status JoinShape(ShapeContext& ctx) {
  PartialShape out = Shape();
  bool unknown = false;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const PartialShape& in = ctx.input(i);
    if (!in.known_rank()) {
      unknown = true;
    } else if (in.rank() > 0) {
      ASSIGN_OR_RETURN(out,
                       out.rank() == 0 ? StatusOr<PartialShape>(in) : PartialShape::Merge(out, in));
    }
  }
  if (unknown && out.rank() == 0) return OkStatus();
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// indices[n, 2], values[n], shape[2]
Status StringSplitShape(ShapeContext& ctx) {
  ctx.set_output(0, PartialShape::Of({kUnknownDim, 2}));
  ctx.set_output(1, VectorShape(kUnknownDim));
  ctx.set_output(2, VectorShape(2));
  return OkStatus();
}

// Positions broadcast against the strings.
Status SubstrShape(ShapeContext& ctx) {
  ASSIGN_OR_RETURN(const PartialShape at, PartialShape::Merge(ctx.input(1), ctx.input(2)));
  ASSIGN_OR_RETURN(PartialShape out, BroadcastShapes(ctx.input(0), at));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

// Outputs of ParseSequenceExample and its V2, by their names; of ParseSingleSequenceExample,
// without the batch dimension.
Status ParseSequenceShape(ShapeContext& ctx) {
  const Node& n = ctx.node();
  const PartialShape& batch =
      n.Is("ParseSingleSequenceExample") ? PartialShape(Shape()) : ctx.input(0);
  if (n.def() == nullptr || !batch.known_rank()) return OkStatus();
  const int64_t rank = batch.rank();
  int at = 0;
  for (const ArgDef& arg : n.def()->outputs) {
    ASSIGN_OR_RETURN(const int64_t arity, ArgArity(arg, *n.def(), n.attrs()));
    const bool list = absl::StartsWith(arg.name, "feature_list");
    const bool dense = absl::EndsWith(arg.name, "dense_values");
    const auto shapes = n.Get<std::vector<PartialShape>>(
        list ? "feature_list_dense_shapes" : "context_dense_shapes", {});
    for (int64_t i = 0; i < arity; ++i, ++at) {
      PartialShape out = VectorShape(kUnknownDim);
      if (absl::EndsWith(arg.name, "sparse_indices")) {
        out.Add(rank + (list ? 2 : 1));
      } else if (absl::EndsWith(arg.name, "sparse_shapes")) {
        out = VectorShape(rank + (list ? 2 : 1));
      } else if (absl::EndsWith(arg.name, "lengths")) {
        out = batch;
      } else if (dense && static_cast<size_t>(i) < shapes.size()) {
        out = Concatenate(list ? Concatenate(batch, out) : batch, shapes[static_cast<size_t>(i)]);
      } else if (rank == 0 && (absl::EndsWith(arg.name, "outer_splits") ||
                               absl::EndsWith(arg.name, "row_splits"))) {
        out = Shape();
      }
      if (at < n.num_outputs()) ctx.set_output(at, std::move(out));
    }
  }
  return OkStatus();
}

// sizes[messages..., fields], and for each field values[messages..., most values].
Status DecodeProtoShape(ShapeContext& ctx) {
  const PartialShape& in = ctx.input(0);
  ctx.set_output(0, Concatenate(in, VectorShape(ctx.node().num_outputs() - 1)));
  for (int i = 1; i < ctx.node().num_outputs(); ++i) {
    ctx.set_output(i, Concatenate(in, VectorShape(kUnknownDim)));
  }
  return OkStatus();
}

Status EncodeProtoShape(ShapeContext& ctx) {
  const PartialShape& sizes = ctx.input(0);
  if (sizes.rank() > 0) ctx.set_output(0, SubShape(sizes, 0, sizes.rank() - 1));
  return OkStatus();
}

constexpr std::array kTextRows = {
    ShapeRule{"AsString", SameShape},
    ShapeRule{"DecodeBase64", SameShape},
    ShapeRule{"DecodeCompressed", SameShape},
    ShapeRule{"DecodeJSONExample", SameShape},
    ShapeRule{"DecodeProtoV2", DecodeProtoShape},
    ShapeRule{"EncodeBase64", SameShape},
    ShapeRule{"EncodeProto", EncodeProtoShape},
    ShapeRule{"ParseSequenceExample", ParseSequenceShape},
    ShapeRule{"ParseSequenceExampleV2", ParseSequenceShape},
    ShapeRule{"ParseSingleSequenceExample", ParseSequenceShape},
    ShapeRule{"RegexFullMatch", SameShape},
    ShapeRule{"RegexReplace", SameShape},
    ShapeRule{"StaticRegexFullMatch", SameShape},
    ShapeRule{"StaticRegexReplace", SameShape},
    ShapeRule{"StringFormat", ScalarShapes},
    ShapeRule{"StringJoin", JoinShape},
    ShapeRule{"StringLength", SameShape},
    ShapeRule{"StringLower", SameShape},
    ShapeRule{"StringSplit", StringSplitShape},
    ShapeRule{"StringSplitV2", StringSplitShape},
    ShapeRule{"StringStrip", SameShape},
    ShapeRule{"StringToHashBucket", SameShape},
    ShapeRule{"StringToHashBucketFast", SameShape},
    ShapeRule{"StringToHashBucketStrong", SameShape},
    ShapeRule{"StringToNumber", SameShape},
    ShapeRule{"StringUpper", SameShape},
    ShapeRule{"Substr", SubstrShape},
    ShapeRule{"UnicodeScript", SameShape},
    ShapeRule{"UnicodeTranscode", SameShape},
    ShapeRule{"_TensorToHashBucketFast", SameShape},
};

}  // namespace

extern const std::span<const ShapeRule> kTextShapes;
constinit const std::span<const ShapeRule> kTextShapes = kTextRows;

}  // namespace smelt
