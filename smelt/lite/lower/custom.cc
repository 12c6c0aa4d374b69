// Custom operators. What a library brings (--op_library) goes first, as a resolver's operators do
// in TensorFlow Lite; then those that its own resolver brings, and those of the Flex delegate,
// which hold a node of TensorFlow that runs as it is.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "smelt/graph/op_facts.h"
#include "smelt/kernels/custom/lite_library.h"
#include "smelt/lite/common/attributes.h"
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

// Is the input a tensor that the file keeps between runs? It is read where the operator stands, so
// that it sees what those before it wrote.
bool IsState(Endpoint e, Lowering& l) {
  if (!e.node->Is("ReadVariableOp") || !e.node->input(0).node->Is("VarHandleOp")) return false;
  const std::string name = e.node->input(0).node->String("shared_name");
  return std::ranges::any_of(l.resources().states,
                             [&](const LiteResources::State& s) { return s.name == name; });
}

LoweredEndpoints OfLibrary(Node& n, Lowering& l) {
  std::vector<int64_t> left_out, constants, variables;
  DtypeVector states;
  for (int i = 0; i < n.num_inputs(); ++i) {
    const Endpoint e = n.input(i);
    if (Lowering::IsLeftOut(e)) {
      left_out.push_back(i);
    } else if (l.Constant(e)) {
      constants.push_back(i);
    } else if (IsState(e, l)) {
      variables.push_back(i);
      states.push_back(l.type(e));
      AttrMap attrs;
      attrs.Set("dtype", l.type(e));
      ASSIGN_OR_RETURN(const Endpoint fresh,
                       l.Add("ReadVariableOp", {e.node->input(0)}, std::move(attrs)));
      if (const Quantization* q = l.quantization(e)) l.SetQuantization(fresh, Quantization(*q));
      l.graph().SetInput(&n, i, fresh);
    }
  }
  AttrMap& attrs = n.AttrsToChange();
  // One state for each session, however often the graph around it is copied.
  attrs.Set("_instance", absl::StrCat(l.function(), "/", n.name()));
  attrs.Set("_left_out", left_out);
  attrs.Set("_constants", constants);
  attrs.Set("_variables", variables);
  if (const Attr* shapes = n.attrs().Find(kOutputShapes)) attrs.Set("_stated_shapes", *shapes);
  ASSIGN_OR_RETURN(Node * made, l.Keep(n, states));
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back({made, i});
  for (size_t k = 0; k < variables.size(); ++k) {
    const Endpoint state = n.input(static_cast<int>(variables[k]));
    RETURN_IF_ERROR(l.Assign(state, {made, n.num_outputs() + static_cast<int>(k)}));
  }
  return out;
}

LoweredEndpoints Custom(Node& n, Lowering& l) {
  const std::string code = n.String("custom_code");
  if (FindLiteOp(code) != nullptr) return OfLibrary(n, l);
  if (std::optional<LoweredEndpoints> lowered = ResolverCustomLowered(n, l)) return *lowered;
  if (absl::StartsWith(code, "Flex")) return Flex(n, absl::StripPrefix(code, "Flex"), l);
  const std::vector<std::string> known = LiteOpNames();
  return Unimplemented("Encountered unresolved custom op: ", code, ". ",
                       known.empty()
                           ? "No op library is given (--op_library)"
                           : absl::StrCat("The op libraries bring ", absl::StrJoin(known, ", ")));
}

constexpr LowerRow kCustomLowering[] = {{"tfl.custom", Custom}};

}  // namespace

std::span<const LowerRow> CustomLowering() { return kCustomLowering; }

}  // namespace smelt
