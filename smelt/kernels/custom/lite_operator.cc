// Operators that libraries make by lite_operator.h.
#include "smelt/kernels/custom/lite_operator.h"

#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/custom/lite_library.h"

struct TfLiteOperator {
  TfLiteBuiltinOperator builtin_code = kTfLiteBuiltinCustom;
  std::optional<std::string> custom_name;
  int version = 1;
  void* user_data = nullptr;
  void* (*init)(TfLiteOpaqueContext*, const char*, size_t) = nullptr;
  void (*free)(TfLiteOpaqueContext*, void*) = nullptr;
  TfLiteStatus (*prepare)(TfLiteOpaqueContext*, TfLiteOpaqueNode*) = nullptr;
  TfLiteStatus (*invoke)(TfLiteOpaqueContext*, TfLiteOpaqueNode*) = nullptr;
  void* (*init_with_data)(void*, TfLiteOpaqueContext*, const char*, size_t) = nullptr;
  void (*free_with_data)(void*, TfLiteOpaqueContext*, void*) = nullptr;
  TfLiteStatus (*prepare_with_data)(void*, TfLiteOpaqueContext*, TfLiteOpaqueNode*) = nullptr;
  TfLiteStatus (*invoke_with_data)(void*, TfLiteOpaqueContext*, TfLiteOpaqueNode*) = nullptr;
};

namespace smelt {
namespace {

// What a library's function returns is asked for here, before anybody looks into it.
struct MadeOperators {
  absl::Mutex mutex;
  absl::flat_hash_set<const void*> all ABSL_GUARDED_BY(mutex);
};

MadeOperators& Made() {
  static auto* made = new MadeOperators;
  return *made;
}

TfLiteOpaqueContext* Opaque(TfLiteContext* context) {
  return reinterpret_cast<TfLiteOpaqueContext*>(context);
}
TfLiteOpaqueNode* Opaque(TfLiteNode* node) { return reinterpret_cast<TfLiteOpaqueNode*>(node); }

LiteOp::Function FunctionOf(TfLiteStatus (*plain)(TfLiteOpaqueContext*, TfLiteOpaqueNode*),
                            TfLiteStatus (*with_data)(void*, TfLiteOpaqueContext*,
                                                      TfLiteOpaqueNode*),
                            void* data) {
  if (with_data != nullptr) {
    return [=](TfLiteContext* context, TfLiteNode* node) {
      return with_data(data, Opaque(context), Opaque(node));
    };
  }
  if (plain == nullptr) return nullptr;
  return [=](TfLiteContext* context, TfLiteNode* node) {
    return plain(Opaque(context), Opaque(node));
  };
}

}  // namespace

std::optional<MadeLiteOp> FindMadeLiteOp(const void* address) {
  {
    MadeOperators& made = Made();
    absl::MutexLock lock(&made.mutex);
    if (!made.all.contains(address)) return std::nullopt;
  }
  const TfLiteOperator op = *static_cast<const TfLiteOperator*>(address);
  MadeLiteOp out{op.custom_name.value_or(""), op.builtin_code == kTfLiteBuiltinCustom, {}};
  if (op.init_with_data != nullptr) {
    out.op.init = [f = op.init_with_data, data = op.user_data](TfLiteContext* context,
                                                               const char* buffer, size_t length) {
      return f(data, Opaque(context), buffer, length);
    };
  } else if (op.init != nullptr) {
    out.op.init = [f = op.init](TfLiteContext* context, const char* buffer, size_t length) {
      return f(Opaque(context), buffer, length);
    };
  }
  if (op.free_with_data != nullptr) {
    out.op.free = [f = op.free_with_data, data = op.user_data](TfLiteContext* context, void* of) {
      f(data, Opaque(context), of);
    };
  } else if (op.free != nullptr) {
    out.op.free = [f = op.free](TfLiteContext* context, void* of) { f(Opaque(context), of); };
  }
  out.op.prepare = FunctionOf(op.prepare, op.prepare_with_data, op.user_data);
  out.op.invoke = FunctionOf(op.invoke, op.invoke_with_data, op.user_data);
  return out;
}

}  // namespace smelt

TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name,
                                     int version, void* user_data) {
  auto* op = new TfLiteOperator;
  op->builtin_code = builtin_code;
  if (custom_name != nullptr) op->custom_name = custom_name;
  op->version = version;
  op->user_data = user_data;
  smelt::MadeOperators& made = smelt::Made();
  absl::MutexLock lock(&made.mutex);
  made.all.insert(op);
  return op;
}
TfLiteOperator* TfLiteOperatorCreateWithData(TfLiteBuiltinOperator builtin_code,
                                             const char* custom_name, int version,
                                             void* user_data) {
  return TfLiteOperatorCreate(builtin_code, custom_name, version, user_data);
}
void TfLiteOperatorDelete(TfLiteOperator* op) {
  {
    smelt::MadeOperators& made = smelt::Made();
    absl::MutexLock lock(&made.mutex);
    made.all.erase(op);
  }
  delete op;
}

TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator* op) {
  return op->builtin_code;
}
const char* TfLiteOperatorGetCustomName(const TfLiteOperator* op) {
  return op->custom_name ? op->custom_name->c_str() : nullptr;
}
int TfLiteOperatorGetVersion(const TfLiteOperator* op) { return op == nullptr ? -1 : op->version; }
void* TfLiteOperatorGetUserData(const TfLiteOperator* op) {
  return op == nullptr ? nullptr : op->user_data;
}

void TfLiteOperatorSetInit(TfLiteOperator* op,
                           void* (*init)(TfLiteOpaqueContext*, const char*, size_t)) {
  op->init = init;
}
void TfLiteOperatorSetFree(TfLiteOperator* op, void (*free)(TfLiteOpaqueContext*, void*)) {
  op->free = free;
}
void TfLiteOperatorSetPrepare(TfLiteOperator* op,
                              TfLiteStatus (*prepare)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  op->prepare = prepare;
}
void TfLiteOperatorSetInvoke(TfLiteOperator* op,
                             TfLiteStatus (*invoke)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  op->invoke = invoke;
}

namespace {

template <typename F>
TfLiteStatus SetOf(TfLiteOperator* op, F TfLiteOperator::*member, F f) {
  if (op == nullptr) return kTfLiteError;
  op->*member = f;
  return kTfLiteOk;
}

}  // namespace

TfLiteStatus TfLiteOperatorSetInitWithData(TfLiteOperator* op,
                                           void* (*init)(void*, TfLiteOpaqueContext*, const char*,
                                                         size_t)) {
  return SetOf(op, &TfLiteOperator::init_with_data, init);
}
TfLiteStatus TfLiteOperatorSetFreeWithData(TfLiteOperator* op,
                                           void (*free)(void*, TfLiteOpaqueContext*, void*)) {
  return SetOf(op, &TfLiteOperator::free_with_data, free);
}
TfLiteStatus TfLiteOperatorSetPrepareWithData(TfLiteOperator* op,
                                              TfLiteStatus (*prepare)(void*, TfLiteOpaqueContext*,
                                                                      TfLiteOpaqueNode*)) {
  return SetOf(op, &TfLiteOperator::prepare_with_data, prepare);
}
TfLiteStatus TfLiteOperatorSetInvokeWithData(TfLiteOperator* op,
                                             TfLiteStatus (*invoke)(void*, TfLiteOpaqueContext*,
                                                                    TfLiteOpaqueNode*)) {
  return SetOf(op, &TfLiteOperator::invoke_with_data, invoke);
}

void TfLiteOperatorSetInplaceOperator(TfLiteOperator*, uint64_t) {}
void TfLiteOperatorSetAsyncKernel(TfLiteOperator*,
                                  TfLiteAsyncKernel* (*)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
}
TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(
    TfLiteOperator* op, TfLiteAsyncKernel* (*)(void*, TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  return op == nullptr ? kTfLiteError : kTfLiteOk;
}
