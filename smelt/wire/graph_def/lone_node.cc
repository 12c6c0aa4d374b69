#include "smelt/wire/graph_def/lone_node.h"

#include "smelt/wire/graph_def/attr_proto.h"
#include "smelt/wire/proto/framework.pb.h"
#include "smelt/wire/proto/proto_internal.h"

namespace smelt {

StatusOr<std::string> SerializeLoneNode(const Node& node) {
  AttrMap attrs;
  for (const auto& [name, value] : node.attrs()) {
    if (!name.empty() && name[0] != '_') attrs.Set(name, value);
  }
  if (node.def() != nullptr) {
    for (const AttrDef& attr : node.def()->attrs) {
      if (attr.default_value && attrs.Find(attr.name) == nullptr) {
        attrs.Set(attr.name, *attr.default_value);
      }
    }
  }
  tensorflow::NodeDef def;
  def.set_op(std::string(node.op()));
  for (int i = 0; i < node.num_inputs(); ++i) def.add_input("");
  AttrsToProto(attrs, def.mutable_attr());
  def.mutable_experimental_debug_info()->add_original_node_names(node.name());
  return SerializeProto(def);
}

StatusOr<LoneNode> ParseLoneNode(absl::string_view bytes) {
  tensorflow::NodeDef def;
  RETURN_IF_ERROR(ParseBinaryProto(bytes, "NodeDef", &def));
  const OpDef* op = FindOpDef(def.op());
  if (op == nullptr) return InvalidArgument("nobody defines the op '", def.op(), "'");
  for (const std::string& input : def.input()) {
    if (!input.empty() && input[0] == '^') {
      return InvalidArgument("its node waits for '", input, "', which is in no file");
    }
  }
  LoneNode out;
  out.op = def.op();
  out.num_inputs = def.input_size();
  out.attrs = TakeAttrs(def.mutable_attr());
  FillAbsentLists(*op, &out.attrs, def.mutable_attr());
  RETURN_IF_ERROR(CheckAttrs(*op, out.attrs, /*allow_placeholder=*/false));
  return out;
}

}  // namespace smelt
