// Custom operators of TensorFlow Lite that libraries bring: "tfl.custom" as lite/lower/custom.cc
// leaves it, with attributes for what the file says of its tensors.
#include <algorithm>

#include "smelt/kernels/common/shared_handle.h"
#include "smelt/kernels/custom/lite_host.h"
#include "smelt/kernels/custom/lite_instance.h"

namespace smelt {
namespace {

struct LiteKernelState final : KernelState {
  explicit LiteKernelState(const Node& node) : at(node) {
    at.name = node.String("_instance", at.name);
  }
  ResourceName at;
  const LiteOp* op = nullptr;
  LiteOpInfo info;
};

void ReadQuantization(const Node& node, absl::string_view of, absl::string_view behind,
                      LiteTensorInfo& to) {
  const Attr* scales = node.Find(absl::StrCat("_", of, "scales", behind));
  if (scales == nullptr || scales->get<std::vector<float>>() == nullptr) return;
  to.scales = *scales->get<std::vector<float>>();
  to.zero_points = node.Ints(absl::StrCat("_", of, "zero_points", behind));
  to.quantized_dim = node.Int(absl::StrCat("_", of, "quantized_dim", behind));
}

StatusOr<std::unique_ptr<KernelState>> PrepareLiteCustom(const Node& node) {
  auto s = std::make_unique<LiteKernelState>(node);
  s->info.code = node.String("custom_code");
  s->info.options = node.String("custom_options");
  s->op = FindLiteOp(s->info.code);
  if (s->op == nullptr) {
    return Unimplemented("Encountered unresolved custom op: ", s->info.code, ".");
  }
  const auto mark = [&](absl::string_view attr, bool LiteTensorInfo::*flag) {
    for (const int64_t i : node.Ints(attr)) {
      if (i >= 0 && i < node.num_inputs()) s->info.inputs[static_cast<size_t>(i)].*flag = true;
    }
  };
  for (int i = 0; i < node.num_inputs(); ++i) {
    LiteTensorInfo in;
    in.name = std::string(node.input(i).node->name());
    in.type = node.input_types[static_cast<size_t>(i)];
    ReadQuantization(node, "input_", absl::StrCat("_", i), in);
    s->info.inputs.push_back(std::move(in));
  }
  mark("_left_out", &LiteTensorInfo::left_out);
  mark("_constants", &LiteTensorInfo::constant);
  mark("_variables", &LiteTensorInfo::variable);
  const auto variables =
      std::ranges::count_if(s->info.inputs, [](const LiteTensorInfo& in) { return in.variable; });
  const Attr* shapes = node.Find("_stated_shapes");
  const auto* stated = shapes == nullptr ? nullptr : shapes->get<std::vector<PartialShape>>();
  for (int i = 0; i < node.num_outputs() - static_cast<int>(variables); ++i) {
    LiteTensorInfo out;
    out.name = i == 0 ? std::string(node.name()) : absl::StrCat(node.name(), ":", i);
    out.type = node.output_types[static_cast<size_t>(i)];
    if (stated != nullptr && static_cast<size_t>(i) < stated->size()) {
      out.shape = (*stated)[static_cast<size_t>(i)];
    }
    ReadQuantization(node, "", i == 0 ? "" : absl::StrCat("_", i), out);
    s->info.outputs.push_back(std::move(out));
  }
  const auto known = [&](const std::vector<LiteTensorInfo>& tensors,
                         absl::string_view what) -> Status {
    for (const LiteTensorInfo& t : tensors) {
      if (t.left_out || AbiTypeOf(t.type) != kTfLiteNoType) continue;
      return Unimplemented("the custom operator '", s->info.code, "' has an ", what, " of type ",
                           DtypeName(t.type));
    }
    return OkStatus();
  };
  RETURN_IF_ERROR(known(s->info.inputs, "input"));
  RETURN_IF_ERROR(known(s->info.outputs, "output"));
  return s;
}

Status RunLiteCustom(OpContext& ctx) {
  const auto& s = ctx.state<LiteKernelState>();
  ASSIGN_OR_RETURN(const std::shared_ptr<LiteOpInstance> found,
                   FindOrCreateResource<LiteOpInstance>(ctx, "custom operator", s.at, [&] {
                     return std::make_shared<LiteOpInstance>(*s.op, s.info);
                   }));
  return found->Run(ctx);
}

constexpr Kernel kLiteCustomTable[] = {
    {"tfl.custom", "", kAnyType, "lite:custom", RunLiteCustom, PrepareLiteCustom},
};

}  // namespace

extern constinit const std::span<const Kernel> kLiteCustomKernels = kLiteCustomTable;

}  // namespace smelt
