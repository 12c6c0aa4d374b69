#include "smelt/kernels/custom/lite_host.h"

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>

namespace smelt {
namespace {

constexpr std::pair<Dtype, TfLiteType> kLiteTypes[] = {
    {Dtype::kFloat, kTfLiteFloat32},
    {Dtype::kInt32, kTfLiteInt32},
    {Dtype::kUint8, kTfLiteUInt8},
    {Dtype::kInt64, kTfLiteInt64},
    {Dtype::kString, kTfLiteString},
    {Dtype::kBool, kTfLiteBool},
    {Dtype::kInt16, kTfLiteInt16},
    {Dtype::kComplex64, kTfLiteComplex64},
    {Dtype::kInt8, kTfLiteInt8},
    {Dtype::kHalf, kTfLiteFloat16},
    {Dtype::kDouble, kTfLiteFloat64},
    {Dtype::kComplex128, kTfLiteComplex128},
    {Dtype::kUint64, kTfLiteUInt64},
    {Dtype::kUint32, kTfLiteUInt32},
    {Dtype::kUint16, kTfLiteUInt16},
    {Dtype::kBfloat16, kTfLiteBFloat16},
    {Dtype::kFloat8E4m3fn, kTfLiteFloat8E4M3FN},
    {Dtype::kFloat8E5m2, kTfLiteFloat8E5M2},
};

}  // namespace

TfLiteType AbiTypeOf(Dtype type) {
  for (const auto& [ours, lite] : kLiteTypes) {
    if (ours == type) return lite;
  }
  return kTfLiteNoType;
}

StatusOr<size_t> AbiBytes(TfLiteType type, const TfLiteIntArray* dims) {
  Dtype ours = Dtype::kInvalid;
  for (const auto& [of, lite] : kLiteTypes) {
    if (lite == type) ours = of;
  }
  if (!IsPod(ours) || DtypeSize(ours) == 0) {
    return InvalidArgument("tensors of ", TfLiteTypeGetName(type), " have no memory here");
  }
  std::vector<int64_t> sizes;
  if (dims != nullptr) sizes.assign(dims->data, dims->data + std::max(dims->size, 0));
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
  const auto elements = static_cast<size_t>(shape.num_elements());
  if (elements > std::numeric_limits<size_t>::max() / 2 / DtypeSize(ours)) {
    return InvalidArgument("there is no tensor of the shape ", shape.ToString());
  }
  return elements * DtypeSize(ours);
}

void LiteOpInstance::Report(const char* format, va_list arguments) {
  char text[4096];
  if (format == nullptr || std::vsnprintf(text, sizeof(text), format, arguments) < 0) return;
  absl::string_view line = text;
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  if (line.empty() || reported_.size() > 16 * sizeof(text)) return;
  absl::StrAppend(&reported_, reported_.empty() ? "" : "; ", line);
}

TfLiteStatus LiteOpInstance::Resize(TfLiteTensor& t, TfLiteIntArray* dims) {
  const auto refuse = [&](const std::string& why) {
    if (dims != t.dims) TfLiteIntArrayFree(dims);
    context_.ReportError(&context_, "%s", why.c_str());
    return kTfLiteError;
  };
  if (dims == nullptr) return refuse("a tensor is given no shape");
  const bool arena =
      t.allocation_type == kTfLiteArenaRw || t.allocation_type == kTfLiteArenaRwPersistent;
  const bool own = t.allocation_type == kTfLiteDynamic || t.allocation_type == kTfLitePersistentRo;
  if (!arena && !own) return refuse("Attempting to resize a fixed-size tensor.");
  if (t.type != kTfLiteString) {
    const auto bytes = AbiBytes(t.type, dims);
    if (!bytes.ok()) return refuse(std::string(bytes.status().message()));
    if (arena && invoking_ && *bytes != t.bytes) {
      return refuse("a tensor that is not dynamic has its size from prepare");
    }
    if (TfLiteTensorResizeMaybeCopy(*bytes, &t, false) != kTfLiteOk) {
      return refuse(absl::StrCat("there is no memory for ", *bytes, " bytes"));
    }
    t.bytes = *bytes;
  }
  if (t.dims != dims) TfLiteIntArrayFree(t.dims);
  t.dims = dims;
  if (arena && !invoking_) t.data.raw = nullptr;
  return kTfLiteOk;
}

namespace {

LiteOpInstance* OfContext(const TfLiteContext* context) {
  return static_cast<LiteOpInstance*>(context->impl_);
}

// What only delegates may call.
template <typename... Arguments>
TfLiteStatus ForDelegates(TfLiteContext* context, Arguments...) {
  context->ReportError(context, "The function is forbidden if not calling in delegate.");
  return kTfLiteError;
}

// nullptr when there is no memory.
char* TakeMemory(std::vector<std::unique_ptr<char[]>>& from, size_t bytes) {
  try {
    std::unique_ptr<char[]> memory(new (std::nothrow) char[std::max<size_t>(bytes, 1)]());
    if (memory == nullptr) return nullptr;
    from.push_back(std::move(memory));
    return from.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

void LiteOpInstance::Host::ReportError(TfLiteContext* context, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  OfContext(context)->Report(format, arguments);
  va_end(arguments);
}

TfLiteContext LiteOpInstance::Host::Of(LiteOpInstance* op) {
  TfLiteContext c = {};
  c.impl_ = op;
  c.recommended_num_threads = -1;
  c.GetExecutionPlan = [](TfLiteContext* context, TfLiteIntArray** plan) {
    return ForDelegates(context, plan);
  };
  c.GetNodeAndRegistration = [](TfLiteContext* context, int, TfLiteNode**, TfLiteRegistration**) {
    return ForDelegates(context);
  };
  c.ReplaceNodeSubsetsWithDelegateKernels = [](TfLiteContext* context, TfLiteRegistration,
                                               const TfLiteIntArray*,
                                               TfLiteDelegate*) { return ForDelegates(context); };
  c.PreviewDelegatePartitioning = [](TfLiteContext* context, const TfLiteIntArray*,
                                     TfLiteDelegateParams**,
                                     int*) { return ForDelegates(context); };
  c.AcquireSubgraphContext = [](TfLiteContext* context, int, TfLiteContext**) {
    return ForDelegates(context);
  };
  c.ReleaseSubgraphContext = [](TfLiteContext* context, int) { return ForDelegates(context); };
  c.ResizeTensor = [](TfLiteContext* context, TfLiteTensor* t, TfLiteIntArray* dims) {
    return OfContext(context)->Resize(*t, dims);
  };
  c.ResizeTensorExplicit = [](TfLiteContext* context, TfLiteTensor* t, int rank, const int* shape) {
    TfLiteIntArray* dims = TfLiteIntArrayCreate(rank);
    for (int i = 0; dims != nullptr && i < rank; ++i) dims->data[i] = shape[i];
    return OfContext(context)->Resize(*t, dims);
  };
  c.ReportError = ReportError;
  c.AddTensors = [](TfLiteContext* context, int count, int* first) {
    LiteOpInstance& op = *OfContext(context);
    const size_t before = op.tensors_.size();
    if (count < 0 || before + static_cast<size_t>(count) > (size_t{1} << 20)) {
      context->ReportError(context, "%d tensors are too many", count);
      return kTfLiteError;
    }
    try {
      TfLiteTensor fresh = {};
      fresh.buffer_handle = -1;
      op.tensors_.resize(before + static_cast<size_t>(count), fresh);
      op.memory_.resize(op.tensors_.size() - op.first_added_);
    } catch (const std::bad_alloc&) {
      return kTfLiteError;
    }
    context->tensors = op.tensors_.data();
    context->tensors_size = op.tensors_.size();
    if (first != nullptr) *first = static_cast<int>(before);
    return kTfLiteOk;
  };
  c.GetTensor = [](const TfLiteContext* context, int i) -> TfLiteTensor* {
    const bool there = i >= 0 && static_cast<size_t>(i) < context->tensors_size;
    return there ? context->tensors + i : nullptr;
  };
  c.GetEvalTensor = [](const TfLiteContext*, int) -> TfLiteEvalTensor* { return nullptr; };
  c.GetExternalContext = [](TfLiteContext* context,
                            TfLiteExternalContextType type) -> TfLiteExternalContext* {
    const auto& all = OfContext(context)->external_;
    return static_cast<size_t>(type) < all.size() ? all[static_cast<size_t>(type)] : nullptr;
  };
  c.SetExternalContext = [](TfLiteContext* context, TfLiteExternalContextType type,
                            TfLiteExternalContext* external) {
    auto& all = OfContext(context)->external_;
    if (static_cast<size_t>(type) < all.size()) all[static_cast<size_t>(type)] = external;
  };
  c.AllocatePersistentBuffer = [](TfLiteContext* context, size_t bytes) -> void* {
    return TakeMemory(OfContext(context)->kept_, bytes);
  };
  c.AllocateBufferForEval = [](TfLiteContext* context, size_t bytes, void** ptr) {
    *ptr = TakeMemory(OfContext(context)->of_eval_, bytes);
    return *ptr == nullptr ? kTfLiteError : kTfLiteOk;
  };
  c.RequestScratchBufferInArena = [](TfLiteContext* context, size_t bytes, int* index) {
    auto& all = OfContext(context)->scratch_;
    *index = static_cast<int>(all.size());
    return TakeMemory(all, bytes) == nullptr ? kTfLiteError : kTfLiteOk;
  };
  c.GetScratchBuffer = [](TfLiteContext* context, int index) -> void* {
    const auto& all = OfContext(context)->scratch_;
    const bool there = index >= 0 && static_cast<size_t>(index) < all.size();
    return there ? all[static_cast<size_t>(index)].get() : nullptr;
  };
  // Nothing of a file but its operators comes this far.
  c.GetModelMetadata = [](const TfLiteContext* context, const char* name, const char**, size_t*) {
    context->ReportError(const_cast<TfLiteContext*>(context),
                         "the metadata '%s' of the file is not there for operators",
                         name == nullptr ? "" : name);
    return kTfLiteError;
  };
  return c;
}

}  // namespace smelt
