#include "smelt/kernels/custom/op_library.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "smelt/kernels/custom/lite_library.h"
#include "smelt/kernels/custom/smelt_op.h"
#include "smelt/kernels/kernel.h"

struct smelt_registry {
  smelt::Status status;
};

struct smelt_context {
  smelt::OpContext& ctx;
  mutable smelt::Status status;  // of the last call of the host's table that failed
};

namespace smelt {
namespace {

using CustomCompute = int32_t (*)(const smelt_host*, smelt_context*);

// A row of the kernel table, and the strings that its op and name refer to.
struct CustomRow {
  std::string op, name;
  Kernel kernel;
};

struct CustomOps {
  absl::Mutex mutex;
  // Kept for good, in a deque, which moves none of them: AddKernels and nodes keep pointers to
  // rows.
  std::deque<CustomRow> rows ABSL_GUARDED_BY(mutex);
  std::map<std::string, CustomCompute, std::less<>> computes ABSL_GUARDED_BY(mutex);
};

CustomOps& Customs() {
  static auto* customs = new CustomOps;
  return *customs;
}

struct CustomState final : KernelState {
  CustomCompute compute = nullptr;
  std::vector<std::pair<std::string, Attr>> attrs;  // defaults included
};

int32_t CodeOf(const Status& s) { return static_cast<int32_t>(s.code()); }

int32_t CustomFail(const smelt_context* c, Status status) {
  c->status = std::move(status);
  return CodeOf(c->status);
}

// An index that the library passes may be wrong: that must become an error of the step.
Status CheckIndex(absl::string_view what, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return OkStatus();
  return InvalidArgument(what, " ", i, " does not exist: there are ", n);
}

int32_t HostNumInputs(const smelt_context* c) { return c->ctx.num_inputs(); }
int32_t HostNumOutputs(const smelt_context* c) { return c->ctx.num_outputs(); }

int32_t HostInput(const smelt_context* c, int32_t i, smelt_tensor* tensor) {
  if (Status s = CheckIndex("input", i, c->ctx.num_inputs()); !s.ok()) {
    return CustomFail(c, std::move(s));
  }
  const Tensor& t = c->ctx.input(i);
  tensor->dtype = static_cast<int32_t>(t.dtype());
  tensor->rank = t.rank();
  tensor->dims = t.shape().dims().data();
  tensor->num_elements = t.num_elements();
  tensor->data = IsPod(t.dtype()) ? t.raw() : nullptr;
  return SMELT_OK;
}

int32_t HostInputString(const smelt_context* c, int32_t i, int64_t at, const char** data,
                        size_t* size) {
  if (Status s = CheckIndex("input", i, c->ctx.num_inputs()); !s.ok()) {
    return CustomFail(c, std::move(s));
  }
  const Tensor& t = c->ctx.input(i);
  if (t.dtype() != Dtype::kString) {
    return CustomFail(c, InvalidArgument("input ", i, " is not of strings"));
  }
  if (Status s = CheckIndex("element", at, t.num_elements()); !s.ok()) {
    return CustomFail(c, std::move(s));
  }
  const std::string& text = t.data<std::string>()[at];
  *data = text.data();
  *size = text.size();
  return SMELT_OK;
}

StatusOr<Tensor*> AllocateCustom(OpContext& ctx, int32_t i, int32_t rank, const int64_t* dims) {
  RETURN_IF_ERROR(CheckIndex("output", i, ctx.num_outputs()));
  if (rank < 0 || (rank > 0 && dims == nullptr)) {
    return InvalidArgument("output ", i, " is given rank ", rank);
  }
  ASSIGN_OR_RETURN(const Shape shape,
                   Shape::Make(std::span<const int64_t>(dims, static_cast<size_t>(rank))));
  return ctx.Allocate(i, shape);
}

void* HostOutput(smelt_context* c, int32_t i, int32_t rank, const int64_t* dims) {
  auto t = AllocateCustom(c->ctx, i, rank, dims);
  if (!t.ok()) {
    CustomFail(c, t.status());
    return nullptr;
  }
  static char nothing;  // stands for memory where there is none: no element, or strings
  if (!IsPod((*t)->dtype()) || (*t)->num_elements() == 0) return &nothing;
  return (*t)->raw();
}

int32_t HostSetOutputString(smelt_context* c, int32_t i, int64_t at, const char* data,
                            size_t size) {
  if (Status s = CheckIndex("output", i, c->ctx.num_outputs()); !s.ok()) {
    return CustomFail(c, std::move(s));
  }
  Tensor& t = c->ctx.output(i);
  if (!t.valid() || t.dtype() != Dtype::kString) {
    return CustomFail(c, InvalidArgument("output ", i, " is not made yet, or not of strings"));
  }
  if (Status s = CheckIndex("element", at, t.num_elements()); !s.ok()) {
    return CustomFail(c, std::move(s));
  }
  t.data<std::string>()[at].assign(data, size);
  return SMELT_OK;
}

template <typename T>
StatusOr<const T*> CustomAttr(const smelt_context* c, const char* name) {
  for (const auto& [key, value] : c->ctx.state<CustomState>().attrs) {
    if (key != name) continue;
    if (const T* v = value.template get<T>()) return v;
    return InvalidArgument("attribute '", name, "' is of another type");
  }
  return NotFound("attribute '", name, "' is not there");
}

int32_t HostAttrInt(const smelt_context* c, const char* name, int64_t* value) {
  if (auto type = CustomAttr<Dtype>(c, name); type.ok()) {
    *value = static_cast<int64_t>(**type);
    return SMELT_OK;
  }
  auto v = CustomAttr<int64_t>(c, name);
  if (!v.ok()) return CustomFail(c, v.status());
  *value = **v;
  return SMELT_OK;
}

int32_t HostAttrFloat(const smelt_context* c, const char* name, float* value) {
  auto v = CustomAttr<float>(c, name);
  if (!v.ok()) return CustomFail(c, v.status());
  *value = **v;
  return SMELT_OK;
}

int32_t HostAttrBool(const smelt_context* c, const char* name, int32_t* value) {
  auto v = CustomAttr<bool>(c, name);
  if (!v.ok()) return CustomFail(c, v.status());
  *value = **v ? 1 : 0;
  return SMELT_OK;
}

int32_t HostAttrString(const smelt_context* c, const char* name, const char** data, size_t* size) {
  auto v = CustomAttr<std::string>(c, name);
  if (!v.ok()) return CustomFail(c, v.status());
  *data = (*v)->data();
  *size = (*v)->size();
  return SMELT_OK;
}

int32_t HostFail(smelt_context* c, int32_t code, const char* message) {
  const auto known =
      code > 0 && code <= 16 ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kInternal;
  return CustomFail(c, Status(known, message == nullptr ? "" : message));
}

int32_t HostFailed(const smelt_context* c) { return CodeOf(c->status); }

int32_t HostAddOp(smelt_registry* registry, const smelt_op* op);

constexpr smelt_host kHost = {SMELT_OP_ABI_VERSION,
                              HostAddOp,
                              HostNumInputs,
                              HostNumOutputs,
                              HostInput,
                              HostInputString,
                              HostOutput,
                              HostSetOutputString,
                              HostAttrInt,
                              HostAttrFloat,
                              HostAttrBool,
                              HostAttrString,
                              HostFail,
                              HostFailed};

Status RunCustom(OpContext& ctx) {
  smelt_context c{ctx, OkStatus()};
  const int32_t code = ctx.state<CustomState>().compute(&kHost, &c);
  if (code != SMELT_OK) {
    if (!c.status.ok()) return c.status;
    return Internal("the kernel of '", ctx.node().op(), "' failed with code ", code);
  }
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    if (!ctx.output(i).valid()) {
      return Internal("the kernel of '", ctx.node().op(), "' did not make output ", i);
    }
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<KernelState>> PrepareCustom(const Node& node) {
  auto state = std::make_unique<CustomState>();
  CustomOps& customs = Customs();
  {
    absl::MutexLock lock(&customs.mutex);
    state->compute = customs.computes.find(std::string(node.op()))->second;
  }
  for (const AttrDef& a : node.def()->attrs) {
    if (const Attr* v = node.Find(a.name)) state->attrs.emplace_back(a.name, *v);
  }
  return state;
}

Status AddCustomOp(const smelt_op& op) {
  if (op.name == nullptr || op.inputs == nullptr || op.outputs == nullptr ||
      op.attributes == nullptr || op.compute == nullptr) {
    return InvalidArgument("an op lacks its name, a part of its definition or its compute");
  }
  std::string text = absl::StrCat(op.name, op.stateful != 0 ? " (stateful)" : "");
  if (*op.inputs != 0) absl::StrAppend(&text, "\n  in: ", op.inputs);
  if (*op.outputs != 0) absl::StrAppend(&text, "\n  out: ", op.outputs);
  if (*op.attributes != 0) absl::StrAppend(&text, "\n  attr: ", op.attributes);
  ASSIGN_OR_RETURN(OpDef def, ParseOpDef(text));
  CustomOps& customs = Customs();
  {
    absl::MutexLock lock(&customs.mutex);
    if (!customs.computes.try_emplace(op.name, op.compute).second) {
      return AlreadyExists("op '", op.name, "' is known already");
    }
  }
  const Status added = AddOpDef(std::move(def));
  absl::MutexLock lock(&customs.mutex);
  if (!added.ok()) {
    customs.computes.erase(op.name);
    return added;
  }
  CustomRow& row =
      customs.rows.emplace_back(CustomRow{op.name, absl::StrCat("custom:", op.name), Kernel()});
  row.kernel = {.name = row.name, .run = RunCustom, .prepare = PrepareCustom};
  AddKernels(row.op, std::span<const Kernel>(&row.kernel, 1));
  return OkStatus();
}

int32_t HostAddOp(smelt_registry* registry, const smelt_op* op) {
  Status s = op == nullptr ? InvalidArgument("no op is given") : AddCustomOp(*op);
  if (registry->status.ok()) registry->status = s;
  return CodeOf(s);
}

}  // namespace

namespace {

// What stands behind the colon of "LIB.so:NAME=SYMBOL,SYMBOL".
std::vector<LiteSymbol> CustomSymbolsOf(absl::string_view text) {
  std::vector<LiteSymbol> out;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> both =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (absl::StrContains(item, '=')) {
      out.push_back({std::string(both.first), std::string(both.second)});
    } else {
      out.push_back({"", std::string(item)});
    }
  }
  return out;
}

// A name without a slash would be looked for in the system's folders.
void* OpenLibrary(const std::string& path) {
  const std::string file = absl::StrContains(path, '/') ? path : absl::StrCat("./", path);
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

Status RegisterSmeltOps(void* symbol) {
  int32_t (*register_ops)(const smelt_host*, smelt_registry*) = nullptr;
  std::memcpy(&register_ops, &symbol, sizeof(symbol));
  smelt_registry registry;
  const int32_t code = register_ops(&kHost, &registry);
  RETURN_IF_ERROR(registry.status);
  if (code != SMELT_OK) return Internal("smelt_register_ops answered ", code);
  return OkStatus();
}

std::atomic<bool> loaded = false;

}  // namespace

bool OpLibraryLoaded() { return loaded; }

Status LoadOpLibrary(const std::string& path) {
  std::string named = path;
  std::vector<LiteSymbol> symbols;
  void* library = OpenLibrary(path);
  const size_t colon = path.rfind(':');
  if (library == nullptr && colon != std::string::npos) {
    named = path.substr(0, colon);
    symbols = CustomSymbolsOf(absl::string_view(path).substr(colon + 1));
    library = OpenLibrary(named);
  }
  if (library == nullptr) return NotFound("cannot load op library: ", dlerror());
  loaded = true;
  const std::string where = absl::StrCat("op library ", named, ": ");
  void* symbol = symbols.empty() ? dlsym(library, "smelt_register_ops") : nullptr;
  if (symbol != nullptr) {
    const Status registered = RegisterSmeltOps(symbol);
    if (!registered.ok()) return Prefix(registered, where);
  }
  const StatusOr<int> lite = AddLiteOps(library, symbols);
  if (!lite.ok()) return Prefix(lite.status(), where);
  if (symbol != nullptr || *lite > 0) return OkStatus();
  return InvalidArgument("op library ", named,
                         " exports neither smelt_register_ops nor a function Register_NAME of an "
                         "operator of TensorFlow Lite");
}

}  // namespace smelt
