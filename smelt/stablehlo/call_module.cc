#include "smelt/stablehlo/call_module.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "smelt/stablehlo/bytecode.h"
#include "smelt/stablehlo/lower.h"

namespace smelt::stablehlo {
namespace {

constexpr absl::string_view kPlatform = "CPU";
// Values of the op's attribute `version`. From kPlatforms on a module may be for several platforms,
// from kPortable on it is a portable artifact, which alone is read.
constexpr int64_t kOldestVersion = 2, kPlatforms = 3, kPortable = 4, kNewestVersion = 10;

// Attributes that PrepareCallModules leaves on a node: function and input shapes, or the error.
constexpr absl::string_view kFunctionAttr = "_stablehlo_function";
constexpr absl::string_view kShapesAttr = "_stablehlo_shapes";
constexpr absl::string_view kErrorAttr = "_stablehlo_error", kCodeAttr = "_stablehlo_code";

std::vector<std::string> StringsOf(const Node& n, absl::string_view attr) {
  return n.Get<std::vector<std::string>>(attr, {});
}

// Position of kPlatform among the module's platforms. A module for several platforms takes it as
// its first argument; -1: it takes none.
StatusOr<int64_t> PlatformIndex(const Node& node, int64_t version) {
  const std::vector<std::string> platforms = StringsOf(node, "platforms");
  if (version < kPlatforms || platforms.empty()) return -1;
  auto it = std::ranges::find(platforms, kPlatform);
  if (it == platforms.end()) {
    const std::vector<std::string> disabled = StringsOf(node, "disabled_checks");
    if (std::ranges::find(disabled, "platform") == disabled.end()) {
      return NotFound("The current platform ", kPlatform,
                      " is not among the platforms required by the module: [",
                      absl::StrJoin(platforms, ", "), "]");
    }
    it = platforms.begin();
  }
  return platforms.size() > 1 ? it - platforms.begin() : -1;
}

// A scalar of `type`: the size that `spec` names. "1.0" is dimension 0 of argument 1.
StatusOr<Endpoint> DimensionArgument(Graph& g, const std::vector<Node*>& args,
                                     const std::string& spec, const TypeData& type) {
  const std::vector<std::string> parts = absl::StrSplit(spec, '.');
  int64_t arg = 0, axis = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &arg) ||
      !absl::SimpleAtoi(parts[1], &axis)) {
    return InvalidArgument("Syntax error in dim_args_spec '", spec, "'");
  }
  if (arg < 0 || arg >= static_cast<int64_t>(args.size())) {
    return InvalidArgument("Invalid argument index ", arg,
                           " when the number of non-dimension arguments is ", args.size(),
                           " in dim_arg_spec '", spec, "'");
  }
  AttrMap attrs;
  attrs.Set("T", args[static_cast<size_t>(arg)]->output_types[0]);
  attrs.Set("out_type", type.dtype);
  ASSIGN_OR_RETURN(Node * shape,
                   g.Add("shape", "Shape", {{args[static_cast<size_t>(arg)], 0}}, attrs));
  AttrMap gather;
  gather.Set("Tparams", type.dtype);
  gather.Set("Tindices", Dtype::kInt64);
  gather.Set("Taxis", Dtype::kInt32);
  ASSIGN_OR_RETURN(Node * size, g.Add("size", "GatherV2",
                                      {{shape, 0},
                                       {g.AddConst("axis", Tensor::Scalar<int64_t>(axis)), 0},
                                       {g.AddConst("zero", Tensor::Scalar<int32_t>(0)), 0}},
                                      gather));
  return Endpoint{size, 0};
}

// Makes the function that a node calls: the module's main function. Where main takes a platform
// index or sizes of dimensions before the node's inputs, a function of the inputs alone is put
// around it, which calls main with them.
class Wrapper {
 public:
  Wrapper(const Node& node, const Module& module, std::shared_ptr<FunctionLibrary> library)
      : node_(node), module_(module), library_(std::move(library)) {}

  // Of the node's inputs, as the module states them. REQUIRES: Make succeeded.
  std::vector<PartialShape> InputShapes() const {
    std::vector<PartialShape> shapes;
    const Operation* main = module_.functions.find("main")->second;
    for (const ValueId v : main->regions[0]->arguments) {
      const TypeData& type = module_.type(v);
      if (!type.is_tensor()) continue;
      shapes.push_back(PartialShape::Of(std::span<const int64_t>(type.dims)));
    }
    const auto inputs = static_cast<size_t>(node_.num_inputs());
    shapes.erase(shapes.begin(), shapes.end() - static_cast<ptrdiff_t>(inputs));
    return shapes;
  }

  StatusOr<std::string> Make(const std::string& prefix, int64_t platform_index) {
    auto it = module_.functions.find("main");
    if (it == module_.functions.end()) return InvalidArgument("Cannot find 'main' in module");
    const Region& main = *it->second->regions[0];
    const std::vector<std::string> specs = StringsOf(node_, "dim_args_spec");
    RETURN_IF_ERROR(Check(main, specs.size(), platform_index));
    LowerOptions options;
    options.prefix = prefix;
    options.function_list = node_.Get<std::vector<FuncAttr>>("function_list", {});
    ASSIGN_OR_RETURN(const std::string callee, LowerFunction(module_, "main", library_, options));
    if (platform_index < 0 && specs.empty()) return callee;
    return AddWrapper(prefix, callee, main, specs, platform_index);
  }

 private:
  Status Check(const Region& main, size_t dim_args, int64_t platform_index) const {
    const size_t before = dim_args + (platform_index >= 0 ? 1 : 0);
    const size_t total = main.arguments.size();
    if (total < before) {
      return InvalidArgument("The module should have ", platform_index >= 0 ? 1 : 0,
                             " platform index arguments and ", dim_args,
                             " dimension arguments, but it has only ", total, " total arguments");
    }
    const auto tokens = static_cast<size_t>(std::ranges::count_if(
        main.arguments, [&](ValueId v) { return module_.type(v).kind == TypeData::Kind::kToken; }));
    const auto given = static_cast<size_t>(node_.num_inputs());
    if (given != total - before - tokens) {
      return InvalidArgument("Incorrect number of arguments passed to XlaCallModule = ", given,
                             ". The module main function takes ", total, " arguments of which ",
                             platform_index >= 0 ? 1 : 0, " platform index arguments, ", dim_args,
                             " dimension arguments and ", tokens,
                             " token arguments. It must be called with ", total - before - tokens,
                             " arguments.");
    }
    for (size_t i = 0; i < total; ++i) {
      const TypeData& type = module_.type(main.arguments[i]);
      if (i < before && (!type.dims.empty() || !IsInteger(type.dtype))) {
        return InvalidArgument("Module argument at index ", i,
                               " should be a 0-dimensional integer-tensor ",
                               i == 0 && platform_index >= 0 ? "platform index" : "dimension",
                               " argument but has type ", type.ToString());
      }
    }
    size_t input = 0;
    for (size_t i = before; i < total; ++i) {
      const TypeData& type = module_.type(main.arguments[i]);
      if (type.kind == TypeData::Kind::kToken) continue;
      const Dtype dtype = BaseType(node_.input_types[input]);
      if (type.dtype != dtype) {
        return InvalidArgument("Element type mismatch for argument ", input,
                               " passed to XlaCallModule: expecting array of type ",
                               type.ToString(), ", but got a tensor of ", DtypeName(dtype));
      }
      ++input;
    }
    return OkStatus();
  }

  StatusOr<std::string> AddWrapper(const std::string& prefix, const std::string& callee,
                                   const Region& main, const std::vector<std::string>& specs,
                                   int64_t platform_index) {
    const smelt::Function& inner = *library_->Find(callee);
    auto f = std::make_unique<smelt::Function>();
    f->body = std::make_unique<Graph>(library_);
    Graph& g = *f->body;
    for (int i = 0; i < node_.num_inputs(); ++i) {
      AttrMap attrs;
      attrs.Set("T", BaseType(node_.input_types[static_cast<size_t>(i)]));
      attrs.Set("index", i);
      ASSIGN_OR_RETURN(Node * arg, g.Add(absl::StrCat("arg", i), "_Arg", {}, attrs));
      ArgDef def;
      def.name = arg->name();
      def.type = arg->output_types[0];
      f->signature.inputs.push_back(def);
      f->args.push_back(arg);
    }
    std::vector<Endpoint> inputs;
    if (platform_index >= 0) {
      const bool wide = module_.type(main.arguments[0]).dtype == Dtype::kInt64;
      const Tensor index = wide ? Tensor::Scalar<int64_t>(platform_index)
                                : Tensor::Scalar(static_cast<int32_t>(platform_index));
      inputs.push_back({g.AddConst("platform_index", index), 0});
    }
    for (const std::string& spec : specs) {
      const TypeData& type = module_.type(main.arguments[inputs.size()]);
      ASSIGN_OR_RETURN(const Endpoint size, DimensionArgument(g, f->args, spec, type));
      inputs.push_back(size);
    }
    for (Node* arg : f->args) inputs.push_back({arg, 0});
    std::vector<Dtype> in, out;
    for (const ArgDef& a : inner.signature.inputs) in.push_back(a.type);
    for (const ArgDef& a : inner.signature.outputs) out.push_back(a.type);
    AttrMap attrs;
    attrs.Set("Tin", in);
    attrs.Set("Tout", out);
    attrs.Set("f", FuncAttr{callee, nullptr});
    ASSIGN_OR_RETURN(Node * call, g.Add("call", "StatefulPartitionedCall", inputs, attrs));
    for (size_t i = 0; i < out.size(); ++i) {
      f->results.push_back({Endpoint{call, static_cast<int>(i)}});
    }
    f->signature.outputs = inner.signature.outputs;
    f->control_results.emplace_back("call", call);
    f->signature.name = library_->FreeName(absl::StrCat(prefix, "entry"));
    std::string name = f->signature.name;
    RETURN_IF_ERROR(library_->Add(std::move(f)));
    return name;
  }

  const Node& node_;
  const Module& module_;
  std::shared_ptr<FunctionLibrary> library_;
};

StatusOr<FuncAttr> LowerCallModule(Node& node, const std::shared_ptr<FunctionLibrary>& library) {
  const int64_t version = node.Int("version");
  if (version < kOldestVersion) {
    return InvalidArgument("XlaCallModuleOp with version ", version,
                           " is not supported anymore. Must be >= ", kOldestVersion);
  }
  if (version > kNewestVersion) {
    return InvalidArgument("XlaCallModuleOp with version ", version,
                           " is not supported by this build. Must be <= ", kNewestVersion);
  }
  ASSIGN_OR_RETURN(const int64_t platform_index, PlatformIndex(node, version));
  const Attr* attr = node.Find("module");
  const auto* bytes = attr ? attr->get<std::string>() : nullptr;
  if (bytes == nullptr || bytes->empty()) {
    return InvalidArgument("Cannot deserialize computation");
  }
  if (version < kPortable || !IsBytecode(*bytes)) {
    return Unimplemented("XlaCallModule of version ", version,
                         " without a portable artifact: only version 4 and later is read");
  }
  auto module = ReadModule(*bytes);
  if (!module.ok()) return Prefix(module.status(), "Cannot deserialize computation: ");
  Wrapper wrapper(node, **module, library);
  ASSIGN_OR_RETURN(std::string name,
                   wrapper.Make(absl::StrCat("__stablehlo_", node.name(), "_"), platform_index));
  node.AttrsToChange().Set(kShapesAttr, wrapper.InputShapes());
  return FuncAttr{std::move(name), nullptr};
}

void PrepareGraph(Graph& graph, const std::shared_ptr<FunctionLibrary>& library) {
  for (Node* n : graph.Nodes()) {
    if (!n->Is("XlaCallModule") || n->attrs().Find(kFunctionAttr) != nullptr ||
        n->attrs().Find(kErrorAttr) != nullptr) {
      continue;
    }
    auto f = LowerCallModule(*n, library);
    if (f.ok()) {
      n->AttrsToChange().Set(kFunctionAttr, *std::move(f));
    } else {
      n->AttrsToChange().Set(kErrorAttr, std::string(f.status().message()));
      n->AttrsToChange().Set(kCodeAttr, static_cast<int64_t>(f.status().code()));
    }
  }
}

}  // namespace

Status PrepareCallModules(Graph& graph) {
  const std::shared_ptr<FunctionLibrary>& library = graph.library();
  PrepareGraph(graph, library);
  for (smelt::Function* f : library->Functions()) {
    if (f->body != nullptr) PrepareGraph(*f->body, library);
  }
  return OkStatus();
}

StatusOr<FuncAttr> PreparedCall(const Node& node) {
  if (const FuncAttr* f = node.Func(kFunctionAttr)) return *f;
  if (node.attrs().Find(kErrorAttr) == nullptr) {
    return FailedPrecondition("XlaCallModule '", node.name(), "' was not prepared");
  }
  return Status(static_cast<absl::StatusCode>(node.Int(kCodeAttr)),
                absl::StrCat(node.String(kErrorAttr), " [[{{node ", node.name(), "}}]]"));
}

std::vector<PartialShape> StatedShapes(const Node& node) {
  return node.Get<std::vector<PartialShape>>(kShapesAttr, {});
}

}  // namespace smelt::stablehlo
