// Boxes and images.
#include "smelt/base/little_endian.h"
#include "smelt/lite/composites/composite.h"
#include "smelt/wire/tflite/flex.h"

namespace smelt {
namespace {

LiteEndpoints PaddedSuppression(const CompositeCall& call, Legalizer& l) {
  const Node& n = call.node;
  if (n.num_inputs() < 5) return Unimplemented("it has fewer than five arguments");
  if (n.num_outputs() != 2) return Unimplemented("it has ", n.num_outputs(), " results, not two");
  if (l.rank(n.input(0)) != 2) {
    return Unimplemented("its operator takes the boxes of one image, a matrix, not a batch");
  }
  const LiteOutput outputs[] = {l.OutputOf(n, 0), l.OutputOf(n, 1)};
  const std::vector<Endpoint> inputs(n.inputs().begin(), n.inputs().begin() + 5);
  ASSIGN_OR_RETURN(Node * op, l.AddMany("tfl.non_max_suppression_v4", inputs, {}, outputs));
  return std::vector<Endpoint>{{op, 0}, {op, 1}};
}

LiteEndpoints DetectionPostProcess(const CompositeCall& call, Legalizer& l) {
  RETURN_IF_ERROR(CheckCounts(call, 3, 4));
  std::vector<FlexEntry> entries;
  for (const char* name : {"max_detections", "max_classes_per_detection", "num_classes"}) {
    ASSIGN_OR_RETURN(const int64_t value, Option<int64_t>(call, name));
    entries.emplace_back(name, value);
  }
  for (const char* name :
       {"nms_score_threshold", "nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale"}) {
    ASSIGN_OR_RETURN(const float value, Option<float>(call, name));
    entries.emplace_back(name, value);
  }
  ASSIGN_OR_RETURN(const bool regular, Option<bool>(call, "use_regular_nms"));
  entries.emplace_back("use_regular_nms", int64_t{regular});  // as TensorFlow's converter has it
  ASSIGN_OR_RETURN(const std::string options, FlexMap(entries));
  return CustomOperator(call, call.implements.name, options, l);
}

// Two positive numbers; UNIMPLEMENTED otherwise.
StatusOr<std::vector<int64_t>> Pair(const CompositeCall& call, absl::string_view name) {
  const Attr* a = call.options().Find(name);
  const auto* list = a == nullptr ? nullptr : a->get<std::vector<int64_t>>();
  if (list == nullptr || list->size() != 2) {
    return Unimplemented("its option '", name, "' is no list of two integers");
  }
  for (const int64_t v : *list) {
    if (v <= 0 || v > INT32_MAX) return Unimplemented("its option '", name, "' has the size ", v);
  }
  return *list;
}

// The kernel reads its options as the structure that poolings have in memory: padding, stride by
// width and height, window by width and height, activation, and four sizes that it computes.
LiteEndpoints MaxUnpooling(const CompositeCall& call, Legalizer& l) {
  RETURN_IF_ERROR(CheckCounts(call, 2, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> pool, Pair(call, "pool_size"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> strides, Pair(call, "strides"));
  const Attr* a = call.options().Find("padding");
  const auto* padding = a == nullptr ? nullptr : a->get<std::string>();
  if (padding == nullptr || (*padding != "SAME" && *padding != "VALID")) {
    return Unimplemented("its option 'padding' is neither SAME nor VALID");
  }
  std::string options;
  for (const int64_t v : std::initializer_list<int64_t>{
           *padding == "SAME" ? 1 : 2, strides[1], strides[0], pool[1], pool[0], 0, 0, 0, 0, 0}) {
    AppendLittle(static_cast<int32_t>(v), &options);
  }
  return CustomOperator(call, "MaxUnpooling2D", options, l);
}

LiteEndpoints ImageWarp(const CompositeCall& call, Legalizer& l) {
  RETURN_IF_ERROR(CheckCounts(call, 2, 1));
  const Node& n = call.node;
  for (const auto& [what, e] : {std::pair{"image", n.input(0)}, std::pair{"flow", n.input(1)},
                                std::pair{"result", Endpoint{&call.node, 0}}}) {
    if (BaseType(l.type(e)) != Dtype::kFloat || l.rank(e) != 4) {
      return Unimplemented("its ", what, " is not a float of 4 dimensions, but ",
                           DtypeName(BaseType(l.type(e))), l.shape(e).ToString());
    }
  }
  return CustomOperator(call, "DenseImageWarp", "", l);
}

constexpr Composite kImageRows[] = {
    {"non_max_suppression_padded_v2", ImplementsKind::kString, false, PaddedSuppression,
     "boxes that do not overlap"},
    {"addons:DenseImageWarp", ImplementsKind::kString, false, ImageWarp, "pixels moved by a flow"},
    {"TFLite_Detection_PostProcess", ImplementsKind::kFunction, false, DetectionPostProcess,
     "boxes of a detector"},
    {"addons:MaxUnpooling2D", ImplementsKind::kFunction, false, MaxUnpooling,
     "maxima back at their places"},
};

}  // namespace

std::span<const Composite> ImageComposites() { return kImageRows; }

}  // namespace smelt
