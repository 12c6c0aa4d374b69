#include "smelt/kernels/custom/lite_instance.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "smelt/kernels/custom/lite_host.h"
#include "smelt/kernels/custom/lite_strings.h"

namespace smelt {
namespace {

// As many tensors as an operator may add in one call while it holds pointers to others.
constexpr size_t kLiteHeadroom = 16;

TfLiteIntArray* LiteArrayOf(std::span<const int64_t> values) {
  TfLiteIntArray* a = TfLiteIntArrayCreate(static_cast<int>(values.size()));
  if (a == nullptr) throw std::bad_alloc();
  for (size_t i = 0; i < values.size(); ++i) a->data[i] = static_cast<int>(values[i]);
  return a;
}

TfLiteIntArray* LiteIndices(const std::vector<int>& values) {
  return LiteArrayOf(std::vector<int64_t>(values.begin(), values.end()));
}

void SetLiteQuantization(const LiteTensorInfo& info, TfLiteTensor& t) {
  if (info.scales.empty()) return;
  auto* affine =
      static_cast<TfLiteAffineQuantization*>(std::calloc(1, sizeof(TfLiteAffineQuantization)));
  if (affine == nullptr) throw std::bad_alloc();
  affine->scale = TfLiteFloatArrayCreate(static_cast<int>(info.scales.size()));
  if (affine->scale == nullptr) throw std::bad_alloc();
  std::ranges::copy(info.scales, affine->scale->data);
  affine->zero_point = LiteArrayOf(info.zero_points);
  affine->quantized_dimension = static_cast<int32_t>(info.quantized_dim);
  t.quantization = {kTfLiteAffineQuantization, affine};
  if (info.scales.size() == 1 && info.zero_points.size() == 1) {
    t.params = {info.scales[0], static_cast<int32_t>(info.zero_points[0])};
  }
}

StatusOr<Shape> ShapeOfLite(const TfLiteTensor& t) {
  std::vector<int64_t> dims;
  if (t.dims != nullptr) dims.assign(t.dims->data, t.dims->data + std::max(t.dims->size, 0));
  return Shape::Make(dims);
}

bool SameDims(const TfLiteTensor& t, const Shape& shape) {
  if (t.dims == nullptr || t.dims->size != shape.rank()) return false;
  return std::equal(shape.dims().begin(), shape.dims().end(), t.dims->data);
}

}  // namespace

LiteOpInstance::LiteOpInstance(const LiteOp& op, const LiteOpInfo& info) : op_(op), info_(info) {
  std::vector<int> outputs;
  tensors_.reserve(info_.inputs.size() + info_.outputs.size() + kLiteHeadroom);
  for (const LiteTensorInfo& in : info_.inputs) {
    if (in.left_out) {
      input_tensors_.push_back(kTfLiteOptionalTensor);
      continue;
    }
    input_tensors_.push_back(static_cast<int>(tensors_.size()));
    tensors_.push_back(Describe(in, in.constant   ? kTfLiteMmapRo
                                    : in.variable ? kTfLiteArenaRwPersistent
                                                  : kTfLiteArenaRw));
    tensors_.back().is_variable = in.variable;
  }
  first_output_ = tensors_.size();
  for (const LiteTensorInfo& out : info_.outputs) {
    outputs.push_back(static_cast<int>(tensors_.size()));
    tensors_.push_back(Describe(out, out.type == Dtype::kString ? kTfLiteDynamic : kTfLiteArenaRw));
    std::vector<int64_t> dims;
    for (int i = 0; i < out.shape.rank(); ++i) {
      dims.push_back(std::max<int64_t>(out.shape[i], out.shape[i] < 0 ? 1 : 0));
    }
    tensors_.back().dims = LiteArrayOf(dims);
    tensors_.back().bytes = AbiBytes(tensors_.back().type, tensors_.back().dims).value_or(0);
  }
  first_added_ = tensors_.size();
  copies_.resize(info_.inputs.size());
  node_.inputs = LiteIndices(input_tensors_);
  node_.outputs = LiteIndices(outputs);
  node_.intermediates = TfLiteIntArrayCreate(0);
  node_.temporaries = TfLiteIntArrayCreate(0);
  node_.custom_initial_data = info_.options.data();
  node_.custom_initial_data_size = static_cast<int>(info_.options.size());
  context_ = Host::Of(this);
}

LiteOpInstance::~LiteOpInstance() {
  if (op_.free && node_.user_data != nullptr) op_.free(&context_, node_.user_data);
  for (TfLiteTensor& t : tensors_) TfLiteTensorFree(&t);
  for (TfLiteIntArray* a : {node_.inputs, node_.outputs, node_.intermediates, node_.temporaries}) {
    TfLiteIntArrayFree(a);
  }
}

TfLiteTensor LiteOpInstance::Describe(const LiteTensorInfo& info,
                                      TfLiteAllocationType allocation) const {
  TfLiteTensor t = {};
  t.type = AbiTypeOf(info.type);
  t.allocation_type = allocation;
  t.name = info.name.c_str();
  t.buffer_handle = -1;
  SetLiteQuantization(info, t);
  return t;
}

void LiteOpInstance::MakeRoom() {
  if (tensors_.capacity() - tensors_.size() < kLiteHeadroom) {
    tensors_.reserve(2 * tensors_.size() + kLiteHeadroom);
  }
  context_.tensors = tensors_.data();
  context_.tensors_size = tensors_.size();
}

Status LiteOpInstance::Failed(absl::string_view what) const {
  return Internal("the custom operator '", info_.code, "' failed to ", what,
                  reported_.empty() ? "" : ": ", reported_);
}

Status LiteOpInstance::Call(absl::string_view what, const LiteOp::Function& f) {
  MakeRoom();
  reported_.clear();
  TfLiteStatus status = kTfLiteError;
  try {
    status = f(&context_, &node_);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    return Internal("the custom operator '", info_.code, "' failed to ", what,
                    " with an exception: ", e.what());
  } catch (...) {
    return Internal("the custom operator '", info_.code, "' failed to ", what,
                    " with an exception");
  }
  if (status == kTfLiteOk) return OkStatus();
  if (status == kTfLiteOutputShapeNotKnown && !invoking_) return OkStatus();
  Status failed = Failed(what);
  if (status == kTfLiteCancelled) return absl::CancelledError(failed.message());
  return failed;
}

void LiteOpInstance::Init() {
  begun_ = true;
  if (!op_.init) return;
  MakeRoom();
  node_.user_data = op_.init(&context_, info_.options.data(), info_.options.size());
}

Status LiteOpInstance::SetInput(OpContext& ctx, size_t i, bool& changed) {
  if (input_tensors_[i] < 0) return OkStatus();
  TfLiteTensor& t = tensors_[static_cast<size_t>(input_tensors_[i])];
  const Tensor& value = ctx.input(static_cast<int>(i));
  if (t.dims == nullptr || !SameDims(t, value.shape())) {
    for (const int64_t size : value.shape().dims()) {
      if (size > std::numeric_limits<int>::max()) {
        return InvalidArgument("input ", i, " has the shape ", value.shape().ToString());
      }
    }
    TfLiteIntArrayFree(t.dims);
    t.dims = nullptr;
    t.dims = LiteArrayOf(value.shape().dims());
    changed = true;
  }
  Copy& copy = copies_[i];
  const bool misplaced = reinterpret_cast<uintptr_t>(value.raw()) % kAlignment != 0;
  if (info_.inputs[i].variable) {
    const auto at = static_cast<int>(
        info_.outputs.size() +
        static_cast<size_t>(std::count_if(info_.inputs.begin(),
                                          info_.inputs.begin() + static_cast<std::ptrdiff_t>(i),
                                          [](const LiteTensorInfo& in) { return in.variable; })));
    ASSIGN_OR_RETURN(Tensor * own, ctx.Allocate(at, value.shape()));
    std::memcpy(own->raw(), value.raw(), value.bytes());
    t.data.data = own->raw();
    t.bytes = value.bytes();
    return OkStatus();
  }
  if (value.dtype() == Dtype::kString || (misplaced && value.num_elements() > 0)) {
    // A value that is held cannot have been written since: what was made of it still holds.
    const bool same = copy.of.valid() && copy.of.raw() == value.raw() &&
                      copy.of.SharesBufferWith(value) && copy.of.bytes() == value.bytes();
    if (!same) {
      copy = {};
      if (value.dtype() == Dtype::kString) {
        ASSIGN_OR_RETURN(copy.bytes, LiteBlockOfStrings(value));
      } else {
        ASSIGN_OR_RETURN(copy.bytes, value.Clone());
      }
      if (info_.inputs[i].constant) copy.of = value;
    }
    t.data.data = copy.bytes.raw();
    t.bytes = copy.bytes.bytes();
    return OkStatus();
  }
  t.data.data = const_cast<void*>(value.raw());
  t.bytes = value.bytes();
  return OkStatus();
}

Status LiteOpInstance::MakeOutputs(OpContext& ctx) {
  for (size_t i = 0; i < info_.outputs.size(); ++i) {
    TfLiteTensor& t = output(i);
    if (t.type != AbiTypeOf(info_.outputs[i].type)) {
      return Internal("the custom operator '", info_.code, "' makes output ", i, " ",
                      TfLiteTypeGetName(t.type), ", and the file says ",
                      TfLiteTypeGetName(AbiTypeOf(info_.outputs[i].type)));
    }
    if (t.allocation_type == kTfLiteDynamic || t.allocation_type == kTfLitePersistentRo) continue;
    if (t.allocation_type != kTfLiteArenaRw && t.allocation_type != kTfLiteArenaRwPersistent) {
      return Internal("the custom operator '", info_.code, "' gives output ", i,
                      " the allocation type ", static_cast<int>(t.allocation_type));
    }
    if (t.type == kTfLiteString) {
      return Internal("the custom operator '", info_.code, "' makes output ", i,
                      ", which holds strings, other than dynamic");
    }
    ASSIGN_OR_RETURN(const Shape shape, ShapeOfLite(t));
    ASSIGN_OR_RETURN(Tensor * made, ctx.Allocate(static_cast<int>(i), shape));
    if (made->bytes() > 0) std::memset(made->raw(), 0, made->bytes());
    t.data.data = made->raw();
    t.bytes = made->bytes();
  }
  return OkStatus();
}

Status LiteOpInstance::MakeTemporaries() {
  for (int k = 0; node_.temporaries != nullptr && k < node_.temporaries->size; ++k) {
    const auto at = static_cast<size_t>(node_.temporaries->data[k]);
    if (at >= tensors_.size()) {
      return Internal("the custom operator '", info_.code, "' has a temporary of index ",
                      node_.temporaries->data[k], ", and there are ", tensors_.size(), " tensors");
    }
    TfLiteTensor& t = tensors_[at];
    const bool arena = t.allocation_type == kTfLiteArenaRw;
    if (at < first_added_ || (!arena && t.allocation_type != kTfLiteArenaRwPersistent)) continue;
    ASSIGN_OR_RETURN(const size_t bytes, AbiBytes(t.type, t.dims));
    Tensor& memory = memory_[at - first_added_];
    if (!memory.valid() || memory.bytes() != bytes) {
      ASSIGN_OR_RETURN(memory, Tensor::Zeros(Dtype::kUint8, Shape({static_cast<int64_t>(bytes)})));
    }
    t.data.data = memory.raw();
    t.bytes = bytes;
  }
  return OkStatus();
}

Status LiteOpInstance::TakeOutputs(OpContext& ctx) {
  for (size_t i = 0; i < info_.outputs.size(); ++i) {
    const TfLiteTensor& t = output(i);
    if (t.type != AbiTypeOf(info_.outputs[i].type)) {
      return Internal("the custom operator '", info_.code, "' makes output ", i, " ",
                      TfLiteTypeGetName(t.type));
    }
    ASSIGN_OR_RETURN(const Shape shape, ShapeOfLite(t));
    if (t.allocation_type != kTfLiteDynamic && t.allocation_type != kTfLitePersistentRo) {
      Tensor& made = ctx.output(static_cast<int>(i));
      if (made.num_elements() != shape.num_elements()) {
        return Internal("the custom operator '", info_.code, "' gives output ", i, " the shape ",
                        shape.ToString(), " when it is invoked, and it has memory for ",
                        made.shape().ToString());
      }
      if (made.shape() != shape) made = made.WithShape(shape);
      continue;
    }
    ASSIGN_OR_RETURN(Tensor * made, ctx.Allocate(static_cast<int>(i), shape));
    if (made->num_elements() == 0) continue;
    const absl::string_view bytes(t.data.raw, t.data.raw == nullptr ? 0 : t.bytes);
    Status fits = OkStatus();
    if (t.type == kTfLiteString) {
      fits = StringsOfLiteBlock(bytes, *made);
    } else if (bytes.size() != made->bytes()) {
      fits = InvalidArgument("it has ", bytes.size(), " bytes for the shape ", shape.ToString());
    } else {
      std::memcpy(made->raw(), bytes.data(), bytes.size());
    }
    if (!fits.ok()) {
      return Internal("the custom operator '", info_.code, "' makes an output ", i,
                      " that cannot be read: ", fits.message());
    }
  }
  return OkStatus();
}

void LiteOpInstance::Forget() {
  for (size_t i = 0; i < first_added_; ++i) {
    TfLiteTensor& t = tensors_[i];
    if (t.allocation_type != kTfLiteDynamic && t.allocation_type != kTfLitePersistentRo) {
      t.data.data = nullptr;
    }
  }
  for (size_t i = 0; i < copies_.size(); ++i) {
    if (!info_.inputs[i].constant) copies_[i] = {};
  }
  of_eval_.clear();
  invoking_ = false;
}

Status LiteOpInstance::Run(OpContext& ctx) {
  absl::MutexLock lock(&mutex_);
  if (!begun_) Init();
  struct Ending {
    LiteOpInstance& op;
    ~Ending() { op.Forget(); }
  } ending{*this};
  bool changed = !prepared_;
  for (size_t i = 0; i < info_.inputs.size(); ++i) RETURN_IF_ERROR(SetInput(ctx, i, changed));
  if (changed && op_.prepare) {
    prepared_ = false;
    scratch_.clear();
    RETURN_IF_ERROR(Call("prepare", op_.prepare));
  }
  prepared_ = true;
  RETURN_IF_ERROR(MakeOutputs(ctx));
  RETURN_IF_ERROR(MakeTemporaries());
  invoking_ = true;
  RETURN_IF_ERROR(Call("invoke", op_.invoke));
  return TakeOutputs(ctx);
}

}  // namespace smelt
