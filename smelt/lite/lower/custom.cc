// Custom operators. Those of the Flex delegate hold a node of TensorFlow, which runs as it is.
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/lower/lowering.h"
#include "smelt/wire/graph_def/lone_node.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

LoweredEndpoints Flex(Node& n, absl::string_view named, Lowering& l) {
  ASSIGN_OR_RETURN(const FlexPair options, ReadFlexPair(n.String("custom_options")));
  ASSIGN_OR_RETURN(LoneNode node, ParseLoneNode(options.second));
  if (node.op != options.first || node.op != named) {
    return InvalidArgument("its custom code names the op '", named, "', its options '",
                           options.first, "' and its node '", node.op, "'");
  }
  const OpName op = OpName::Of(node.op);
  if (op.unknown() || absl::StartsWith(node.op, "_") || kControlFlow.Contains(op)) {
    return Unimplemented("the op '", node.op, "' runs in no operator");
  }
  if (node.num_inputs != n.num_inputs()) {
    return InvalidArgument("its node has ", node.num_inputs, " inputs, and it has ",
                           n.num_inputs());
  }
  if (node.attrs.may_have_functions()) {
    return Unimplemented("its node calls a function, which is in no file");
  }
  for (int i = 0; i < n.num_inputs(); ++i) {
    if (!Lowering::Has(n, i)) return InvalidArgument("its input ", i, " is left out");
  }
  ASSIGN_OR_RETURN(Node * made, l.AddNode(op, InputsOf(n), std::move(node.attrs)));
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_inputs(); ++i) {
    const Dtype wanted = made->input_types[static_cast<size_t>(i)];
    if (wanted == l.type(n.input(i))) continue;
    return InvalidArgument("its input ", i, " is ", DtypeName(l.type(n.input(i))), ", and ",
                           node.op, " wants ", DtypeName(wanted));
  }
  if (made->num_outputs() != n.num_outputs()) {
    return InvalidArgument("it has ", n.num_outputs(), " outputs, and ", node.op, " has ",
                           made->num_outputs());
  }
  for (int i = 0; i < n.num_outputs(); ++i) {
    const Dtype given = made->output_types[static_cast<size_t>(i)];
    if (given != n.output_types[static_cast<size_t>(i)]) {
      return InvalidArgument("its output ", i, " is ",
                             DtypeName(n.output_types[static_cast<size_t>(i)]), ", and ", node.op,
                             " gives ", DtypeName(given));
    }
    out.push_back({made, i});
  }
  return out;
}

LoweredEndpoints Custom(Node& n, Lowering& l) {
  const std::string code = n.String("custom_code");
  if (absl::StartsWith(code, "Flex")) return Flex(n, absl::StripPrefix(code, "Flex"), l);
  return Unimplemented("the custom operator '", code, "' has no kernel here");
}

constexpr LowerRow kCustomLowering[] = {{"tfl.custom", Custom}};

}  // namespace

std::span<const LowerRow> CustomLowering() { return kCustomLowering; }

}  // namespace smelt
