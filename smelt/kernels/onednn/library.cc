#include "smelt/kernels/onednn/library.h"

#include <limits>

#include "absl/strings/str_join.h"

namespace smelt::onednn {
namespace {

const char* StatusText(dnnl_status_t s) {
  switch (s) {
    case dnnl_success:
      return "success";
    case dnnl_out_of_memory:
      return "out of memory";
    case dnnl_invalid_arguments:
      return "invalid arguments";
    case dnnl_unimplemented:
      return "not implemented";
    default:
      return "runtime error";
  }
}

StatusOr<dnnl_data_type_t> TypeOf(Dtype t) {
  switch (t) {
    case Dtype::kFloat:
      return dnnl_f32;
    case Dtype::kBfloat16:
      return dnnl_bf16;
    case Dtype::kInt32:
      return dnnl_s32;
    case Dtype::kInt8:
      return dnnl_s8;
    case Dtype::kUint8:
      return dnnl_u8;
    default:
      return Unimplemented("oneDNN has no type ", DtypeName(t));
  }
}

// UNIMPLEMENTED for layouts that the library does not take.
StatusOr<dnnl_data_type_t> CheckedTypeOf(const Layout& l) {
  if (l.dims.size() > DNNL_MAX_NDIMS) return Unimplemented("oneDNN: too many dimensions");
  for (const int64_t d : l.dims) {
    // The library's generated code counts in int.
    if (d > std::numeric_limits<int32_t>::max()) return Unimplemented("oneDNN: too large");
  }
  return TypeOf(l.dtype);
}

}  // namespace

Status FromDnnl(dnnl_status_t s, absl::string_view what) {
  if (s == dnnl_success) return OkStatus();
  if (s == dnnl_out_of_memory) return ResourceExhausted("oneDNN ", what, ": out of memory");
  return Unimplemented("oneDNN ", what, ": ", StatusText(s));
}

dnnl_engine_t Engine() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t e = nullptr;
    dnnl_engine_create(&e, dnnl_cpu, 0);
    return e;
  }();
  return engine;
}

dnnl_stream_t ThreadStream() {
  struct Holder {
    dnnl_stream_t stream = nullptr;
    Holder() { dnnl_stream_create(&stream, Engine(), dnnl_stream_default_flags); }
    ~Holder() { dnnl_stream_destroy(stream); }
  };
  thread_local Holder holder;
  return holder.stream;
}

StatusOr<dnnl_memory_desc_t> DescOf(const Layout& l) {
  ASSIGN_OR_RETURN(const dnnl_data_type_t type, CheckedTypeOf(l));
  dnnl_memory_desc_t md{};
  DNNL_RETURN_IF_ERROR(dnnl_memory_desc_init_by_strides(&md, static_cast<int>(l.dims.size()),
                                                        l.dims.data(), type, l.strides.data()),
                       "layout");
  return md;
}

StatusOr<dnnl_memory_desc_t> AnyDescOf(const Layout& l) {
  ASSIGN_OR_RETURN(const dnnl_data_type_t type, CheckedTypeOf(l));
  dnnl_memory_desc_t md{};
  DNNL_RETURN_IF_ERROR(dnnl_memory_desc_init_by_tag(&md, static_cast<int>(l.dims.size()),
                                                    l.dims.data(), type, dnnl_format_tag_any),
                       "layout");
  return md;
}

Layout Layout::Dense(Dtype dtype, std::span<const int64_t> dims) {
  Layout l;
  l.dtype = dtype;
  l.dims.assign(dims.begin(), dims.end());
  l.strides.resize(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    l.strides[i] = stride;
    stride *= dims[i];
  }
  return l;
}

Layout Layout::Image(Dtype dtype, int64_t batch, int64_t channels, std::span<const int64_t> spatial,
                     bool channels_last) {
  Layout l;
  l.dtype = dtype;
  l.dims.push_back(batch);
  l.dims.push_back(channels);
  l.dims.insert(l.dims.end(), spatial.begin(), spatial.end());
  if (!channels_last) return Dense(dtype, l.dims);
  l.strides.resize(l.dims.size());
  l.strides[1] = 1;
  int64_t stride = channels;
  for (size_t i = l.dims.size(); i-- > 2;) {
    l.strides[i] = stride;
    stride *= l.dims[i];
  }
  l.strides[0] = stride;
  return l;
}

std::string TextOf(const dnnl_memory_desc_t& md) {
  if (md.format_kind != dnnl_blocked || md.extra.flags != dnnl_memory_extra_flag_none) return "";
  const dnnl_blocking_desc_t& blocks = md.format_desc.blocking;
  std::string text = absl::StrCat("type ", static_cast<int>(md.data_type), " from ", md.offset0);
  const auto add = [&](absl::string_view what, const dnnl_dims_t& numbers, int count) {
    absl::StrAppend(&text, " ", what, " ", absl::StrJoin(numbers, numbers + count, ","));
  };
  add("dims", md.dims, md.ndims);
  add("padded", md.padded_dims, md.ndims);
  add("before", md.padded_offsets, md.ndims);
  add("strides", blocks.strides, md.ndims);
  add("blocks", blocks.inner_blks, blocks.inner_nblks);
  add("of", blocks.inner_idxs, blocks.inner_nblks);
  return text;
}

}  // namespace smelt::onednn
