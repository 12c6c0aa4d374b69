// Protocol messages as tensors: DecodeProtoV2, EncodeProto, DecodeJSONExample.
#include <algorithm>

#include "smelt/kernels/kernel.h"
#include "smelt/wire/proto/proto_codec.h"

namespace smelt {
namespace {

struct ProtoState final : KernelState {
  std::unique_ptr<ProtoCodec> codec;
  std::vector<std::string> names;
  bool text = false, sanitize = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareProto(const Node& node) {
  auto state = std::make_unique<ProtoState>();
  const bool decode = node.Is("DecodeProtoV2");
  state->names = node.Get<std::vector<std::string>>("field_names", {});
  const auto types = node.Get<std::vector<Dtype>>(decode ? "output_types" : "Tinput_types", {});
  if (types.size() != state->names.size()) {
    // What TensorFlow reports first is a source or a message that it does not know, and, of fields
    // to encode, one that the message lacks.
    const std::vector<std::string> names = decode ? std::vector<std::string>() : state->names;
    RETURN_IF_ERROR(ProtoCodec::Make(node.String("descriptor_source"), node.String("message_type"),
                                     names, {}, ProtoCodec::Use::kEncode)
                        .status());
    return InvalidArgument(decode ? "field_names and output_types attributes must have the same "
                                    "length"
                                  : "Length of inputs list must match field_names");
  }
  ASSIGN_OR_RETURN(
      state->codec,
      ProtoCodec::Make(node.String("descriptor_source"), node.String("message_type"), state->names,
                       types, decode ? ProtoCodec::Use::kDecode : ProtoCodec::Use::kEncode));
  const std::string format = node.String("message_format", "binary");
  if (format != "binary" && format != "text") {
    return InvalidArgument("format must be one of binary or text");
  }
  state->text = format == "text";
  state->sanitize = node.Bool("sanitize");
  return state;
}

Status RunDecodeProto(OpContext& ctx) {
  const auto& state = ctx.state<ProtoState>();
  const Tensor& messages = ctx.input(0);
  if (messages.num_elements() == 0) {
    return InvalidArgument("Bufs argument must contain at least one value");
  }
  ASSIGN_OR_RETURN(ProtoCodec::Decoded decoded,
                   state.codec->Decode(messages.flat<std::string>(), state.text, state.sanitize,
                                       ctx.step().allocator));
  const auto shaped = [&](const Tensor& t) {
    Shape shape = messages.shape();
    shape.Add(t.dim(1));
    return t.WithShape(shape);
  };
  ctx.set_output(0, shaped(decoded.sizes));
  for (size_t f = 0; f < decoded.values.size(); ++f) {
    ctx.set_output(static_cast<int>(f) + 1, shaped(decoded.values[f]));
  }
  return OkStatus();
}

Status RunEncodeProto(OpContext& ctx) {
  const auto& state = ctx.state<ProtoState>();
  const Tensor& sizes = ctx.input(0);
  const auto num_fields = static_cast<int>(state.names.size());
  std::vector<const Tensor*> values;
  Dims batch;
  for (int f = 0; f < num_fields; ++f) {
    const Tensor& v = ctx.input(f + 1);
    if (v.rank() < 2) {
      return InvalidArgument("Invalid shape for field ", state.names[f], ".  Saw shape ",
                             v.shape().ToString(), " but it should be at least a matrix.");
    }
    Dims outer(v.shape().dims().begin(), v.shape().dims().end() - 1);
    if (f > 0 && outer != batch) {
      return InvalidArgument("Values must match up to the last dimension");
    }
    batch = std::move(outer);
    values.push_back(&v);
  }
  Dims want = batch;
  want.push_back(num_fields);
  if (!std::equal(want.begin(), want.end(), sizes.shape().dims().begin(),
                  sizes.shape().dims().end())) {
    return InvalidArgument("sizes should be batch_size + [len(field_names)].  Saw: ",
                           sizes.shape().ToString(), " but expected: ", Shape(want).ToString());
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape(batch)));
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    const int32_t* row = sizes.data<int32_t>() + i * num_fields;
    std::vector<int64_t> begin;
    for (int f = 0; f < num_fields; ++f) {
      const int64_t width = values[f]->shape().back();
      if (row[f] > width) {
        return InvalidArgument("Size to write must not be larger than value tensor; but saw: ",
                               row[f], " > ", width, " at message ", i, " field ", f);
      }
      begin.push_back(i * width);
    }
    out->data<std::string>()[i] =
        state.codec->Encode(std::span(row, static_cast<size_t>(num_fields)), values, begin);
  }
  return OkStatus();
}

Status RunDecodeJsonExample(OpContext& ctx) {
  const Tensor& json = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, json.shape()));
  for (int64_t i = 0; i < json.num_elements(); ++i) {
    ASSIGN_OR_RETURN(out->data<std::string>()[i], ExampleFromJson(json.data<std::string>()[i]));
  }
  return OkStatus();
}

constexpr Kernel kProtoTable[] = {
    {"DecodeProtoV2", "", kAnyType, "text:decode_proto", RunDecodeProto, PrepareProto},
    {"EncodeProto", "", kAnyType, "text:encode_proto", RunEncodeProto, PrepareProto},
    {"DecodeJSONExample", "", kAnyType, "text:json_example", RunDecodeJsonExample},
};

}  // namespace

extern constinit const std::span<const Kernel> kProtoKernels = kProtoTable;

}  // namespace smelt
