// TensorFlow Text. A function of these names that does not fit is an error, as nothing but the
// operator runs what it does.
#include "smelt/lite/composites/composite.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

Status CheckTypes(const CompositeCall& call, Dtype first_in, Dtype first_out) {
  const Node& n = call.node;
  if (n.num_inputs() < 1 || n.num_outputs() < 1 || BaseType(n.input_types[0]) != first_in ||
      BaseType(n.output_types[0]) != first_out) {
    return InvalidArgument("'", call.implements.name, "' takes ", DtypeName(first_in),
                           " and gives ", DtypeName(first_out));
  }
  for (int i = 1; i < n.num_inputs(); ++i) {
    if (n.input_types[static_cast<size_t>(i)] != Dtype::kInt64) {
      return InvalidArgument("argument ", i, " of '", call.implements.name, "' is no int64");
    }
  }
  for (int i = 1; i < n.num_outputs(); ++i) {
    if (n.output_types[static_cast<size_t>(i)] != Dtype::kInt64) {
      return InvalidArgument("result ", i, " of '", call.implements.name, "' is no int64");
    }
  }
  return OkStatus();
}

// Tokens, and where each row begins, for each dimension of the input.
LiteEndpoints Whitespace(const CompositeCall& call, Legalizer& l) {
  RETURN_IF_ERROR(CheckTypes(call, Dtype::kString, Dtype::kString));
  const int rank = l.rank(call.node.input(0));
  if (call.node.num_inputs() != 1 || rank < 0 || rank > 2) {
    return InvalidArgument("'", call.implements.name, "' takes one input of at most 2 dimensions");
  }
  if (call.node.num_outputs() != rank + 1) {
    return InvalidArgument("'", call.implements.name, "' gives ", rank + 1, " results of ", rank,
                           " dimensions, not ", call.node.num_outputs());
  }
  return CustomOperator(call, call.implements.name, "", l);
}

LiteEndpoints Ngrams(const CompositeCall& call, Legalizer& l) {
  RETURN_IF_ERROR(CheckTypes(call, Dtype::kString, Dtype::kString));
  if (call.node.num_inputs() != call.node.num_outputs()) {
    return InvalidArgument("'", call.implements.name, "' gives as many results as it takes");
  }
  ASSIGN_OR_RETURN(const int64_t width, Option<int64_t>(call, "width"));
  ASSIGN_OR_RETURN(const int64_t axis, Option<int64_t>(call, "axis"));
  ASSIGN_OR_RETURN(const std::string reduction, Option<std::string>(call, "reduction_type"));
  ASSIGN_OR_RETURN(const std::string separator, Option<std::string>(call, "string_separator"));
  if (axis != -1) return InvalidArgument("'", call.implements.name, "' has the axis ", axis);
  if (reduction != "STRING_JOIN") {
    return InvalidArgument("'", call.implements.name, "' has the reduction '", reduction, "'");
  }
  const FlexEntry entries[] = {{"width", width},
                               {"string_separator", separator},
                               {"axis", axis},
                               {"reduction_type", reduction}};
  ASSIGN_OR_RETURN(const std::string options, FlexMap(entries));
  return CustomOperator(call, call.implements.name, options, l);
}

LiteEndpoints Projection(const CompositeCall& call, Legalizer& l) {
  RETURN_IF_ERROR(CheckTypes(call, Dtype::kString, Dtype::kFloat));
  if (call.node.num_inputs() != 2 || call.node.num_outputs() != 1 || l.rank({&call.node, 0}) != 2) {
    return InvalidArgument("'", call.implements.name,
                           "' takes values and rows, and gives a matrix");
  }
  ASSIGN_OR_RETURN(const auto seeds, Option<std::vector<int64_t>>(call, "hash_seed"));
  ASSIGN_OR_RETURN(const int64_t buckets, Option<int64_t>(call, "num_buckets"));
  const FlexEntry entries[] = {{"hash_seed", seeds}, {"num_buckets", buckets}};
  ASSIGN_OR_RETURN(const std::string options, FlexMap(entries));
  return CustomOperator(call, call.implements.name, options, l);
}

constexpr Composite kTextRows[] = {
    {"tftext:WhitespaceTokenizer", ImplementsKind::kFunction, false, Whitespace, "words"},
    {"tftext:Ngrams", ImplementsKind::kFunction, false, Ngrams, "neighbors joined"},
    {"tftext:custom:SgnnProjection", ImplementsKind::kFunction, false, Projection,
     "hashes of texts"},
};

}  // namespace

std::span<const Composite> TextComposites() { return kTextRows; }

}  // namespace smelt
