// Operators that run other subgraphs, and those with an effect: variables and tables.
//
// A subgraph is a function. What CALL_ONCE runs is run when the model is loaded: the file's
// resources are there before any request.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

std::string VariableKey(const Node& handle) {
  return absl::StrCat(handle.String("container"), "\n", handle.String("shared_name"));
}

LoweredEndpoints OutputsOf(StatusOr<Node*> n) {
  RETURN_IF_ERROR(n.status());
  std::vector<Endpoint> out;
  for (int i = 0; i < (*n)->num_outputs(); ++i) out.push_back({*n, i});
  return out;
}

DtypeVector Types(const Node& n, int first) {
  DtypeVector types;
  for (int i = first; i < n.num_inputs(); ++i) {
    const Endpoint& e = n.input(i);
    types.push_back(e.node->output_types[static_cast<size_t>(e.port)]);
  }
  return types;
}

DtypeVector OutputTypes(const Node& n) { return {n.output_types.begin(), n.output_types.end()}; }

// The subgraph that the attribute names takes these and gives those.
Status CheckCallee(const Node& n, absl::string_view attr, const DtypeVector& in,
                   const DtypeVector& out, Lowering& l) {
  const FuncAttr* named = n.Func(attr);
  const Function* f = named == nullptr ? nullptr : l.graph().library()->Find(named->name);
  if (f == nullptr) return InvalidArgument("its ", attr, " is no subgraph");
  const auto fits = [](const std::vector<ArgDef>& args, const DtypeVector& types) {
    return std::ranges::equal(args, types, {}, &ArgDef::type);
  };
  const auto &inputs = f->signature.inputs, &outputs = f->signature.outputs;
  if (fits(inputs, in) && fits(outputs, out)) return OkStatus();
  return InvalidArgument("it gives subgraph '", named->name, "' ", in.size(), " values and wants ",
                         out.size(), ", and the subgraph takes ", inputs.size(), " and makes ",
                         outputs.size(), ", or values of other types");
}

LoweredEndpoints If(Node& n, Lowering& l) {
  for (const absl::string_view branch : {"then_branch", "else_branch"}) {
    RETURN_IF_ERROR(CheckCallee(n, branch, Types(n, 1), OutputTypes(n), l));
  }
  AttrMap attrs;
  attrs.Set("Tcond", l.type(n.input(0)));
  attrs.Set("Tin", Types(n, 1));
  attrs.Set("Tout", OutputTypes(n));
  attrs.Set("then_branch", *n.Find("then_branch"));
  attrs.Set("else_branch", *n.Find("else_branch"));
  return OutputsOf(l.AddNode("If", InputsOf(n), std::move(attrs)));
}

LoweredEndpoints While(Node& n, Lowering& l) {
  if (Types(n, 0) != OutputTypes(n)) {
    return InvalidArgument("its outputs are not of the types of its inputs");
  }
  RETURN_IF_ERROR(CheckCallee(n, "cond", Types(n, 0), {Dtype::kBool}, l));
  RETURN_IF_ERROR(CheckCallee(n, "body", Types(n, 0), OutputTypes(n), l));
  AttrMap attrs;
  attrs.Set("T", Types(n, 0));
  attrs.Set("cond", *n.Find("cond"));
  attrs.Set("body", *n.Find("body"));
  return OutputsOf(l.AddNode("While", InputsOf(n), std::move(attrs)));
}

LoweredEndpoints CallOf(const Node& n, absl::string_view function, Lowering& l) {
  RETURN_IF_ERROR(CheckCallee(n, function, Types(n, 0), OutputTypes(n), l));
  AttrMap attrs;
  attrs.Set("f", *n.Find(function));
  attrs.Set("Tin", Types(n, 0));
  attrs.Set("Tout", OutputTypes(n));
  return OutputsOf(l.AddNode("StatefulPartitionedCall", InputsOf(n), std::move(attrs)));
}

LoweredEndpoints Call(Node& n, Lowering& l) { return CallOf(n, "callee", l); }

// What it stands for: the function is the operator.
LoweredEndpoints Composite(Node& n, Lowering& l) { return CallOf(n, "decomposition", l); }

LoweredEndpoints CallOnce(Node& n, Lowering& l) {
  l.resources().run_once.push_back(n.Func("init")->name);
  return std::vector<Endpoint>{};
}

LoweredEndpoints VarHandle(Node& n, Lowering& l) {
  const auto type = l.resources().variable_types.find(VariableKey(n));
  if (type == l.resources().variable_types.end()) {
    return Unimplemented("no operator reads or assigns the variable '", n.String("shared_name"),
                         "' where it stands, which would tell its type");
  }
  AttrMap attrs;
  attrs.Set("container", n.String("container"));
  attrs.Set("shared_name", n.String("shared_name"));
  attrs.Set("dtype", type->second);
  attrs.Set("shape", PartialShape::Unknown());
  if (const Attr* begin = n.attrs().Find(kVariableBegin)) attrs.Set(kVariableBegin, *begin);
  return OneOf(l.Add("VarHandleOp", {}, std::move(attrs)));
}

LoweredEndpoints ReadVariable(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("dtype", n.output_types[0]);
  return OneOf(l.Add("ReadVariableOp", InputsOf(n), std::move(attrs)));
}

LoweredEndpoints AssignVariable(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("dtype", l.type(n.input(1)));
  RETURN_IF_ERROR(l.AddNode("AssignVariableOp", InputsOf(n), std::move(attrs)).status());
  return std::vector<Endpoint>{};
}

// Begins as zeros, and keeps what an operator assigns (Lowering::Assign).
LoweredEndpoints State(Node& n, Lowering& l) {
  const PartialShape shape = n.Get<PartialShape>("shape", {});
  if (!shape.fully_known())
    return InvalidArgument("a tensor that is kept between runs has no fixed shape");
  const std::string name = absl::StrCat("lite_state/", l.function(), "/", n.name());
  const Dtype type = n.Type("dtype");
  const Quantization* q = l.quantization({&n, 0});
  const bool shifted = type == Dtype::kInt8 && q != nullptr && !q->zero_points.empty();
  l.resources().states.push_back(
      {name, type, shape.ToShape(), shifted ? q->zero_points[0] : int64_t{0}});
  AttrMap attrs;
  attrs.Set("shared_name", name);
  attrs.Set("dtype", type);
  attrs.Set("shape", shape);
  ASSIGN_OR_RETURN(const Endpoint handle, l.Add("VarHandleOp", {}, std::move(attrs)));
  AttrMap read;
  read.Set("dtype", type);
  return OneOf(l.Add("ReadVariableOp", {handle}, std::move(read)));
}

LoweredEndpoints HashTable(Node& n, Lowering& l) {
  AttrMap attrs;
  attrs.Set("shared_name", absl::StrCat("lite_table/", n.Int("table_id")));
  attrs.Set("key_dtype", n.Type("key_dtype"));
  attrs.Set("value_dtype", n.Type("value_dtype"));
  return OneOf(l.Add("HashTableV2", {}, std::move(attrs)));
}

LoweredEndpoints HashTableImport(Node& n, Lowering& l) {
  RETURN_IF_ERROR(l.AddNode("LookupTableImportV2", InputsOf(n)).status());
  return std::vector<Endpoint>{};
}

// A vector of one element there.
// The default is one value in a vector.
LoweredEndpoints HashTableFind(Node& n, Lowering& l) {
  const std::vector<int64_t> none;
  ASSIGN_OR_RETURN(const Endpoint one, l.Add("Reshape", {n.input(2), l.Ints(none)}));
  return OneOf(l.Add("LookupTableFindV2", {n.input(0), n.input(1), one}));
}

LoweredEndpoints HashTableSize(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(const Endpoint size, l.Add("LookupTableSizeV2", InputsOf(n)));
  const std::vector<int64_t> one = {1};
  return OneOf(l.Add("Reshape", {size, l.Ints(one)}));
}

constexpr LowerRow kControlLowering[] = {
    {"tfl.if", If},
    {"tfl.while", While},
    {"tfl.call", Call},
    {"tfl.call_once", CallOnce},
    {"tfl.stablehlo_composite", Composite},
    {"tfl.stablehlo_while", While},
    {"tfl.var_handle", VarHandle},
    {"tfl.read_variable", ReadVariable},
    {"tfl.assign_variable", AssignVariable},
    {"tfl.variable", State},
    {"tfl.hashtable", HashTable},
    {"tfl.hashtable_find", HashTableFind},
    {"tfl.hashtable_import", HashTableImport},
    {"tfl.hashtable_size", HashTableSize},
};

}  // namespace

void FindVariableTypes(const Graph& graph, LiteResources& resources) {
  for (const Node* n : graph.Nodes()) {
    if (!n->Is("tfl.var_handle")) continue;
    for (const Use& use : n->uses()) {
      const Node& user = *use.node;
      if (use.is_control()) continue;
      if (user.Is("tfl.read_variable")) {
        resources.variable_types[VariableKey(*n)] = user.output_types[0];
      } else if (user.Is("tfl.assign_variable") && user.num_inputs() == 2) {
        const Endpoint& value = user.input(1);
        resources.variable_types[VariableKey(*n)] =
            value.node->output_types[static_cast<size_t>(value.port)];
      }
    }
  }
}

std::span<const LowerRow> ControlLowering() { return kControlLowering; }

}  // namespace smelt
