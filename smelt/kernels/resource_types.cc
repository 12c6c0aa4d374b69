#include "smelt/kernels/resource_types.h"

#include <cxxabi.h>

#include <cstdlib>

#include "smelt/base/hash.h"

namespace smelt {
namespace {

struct ResourceType {
  absl::string_view kind, name;
};

constexpr ResourceType kResourceTypes[] = {
    {"variable", "N10tensorflow3VarE"},
    {"hash_table", "N10tensorflow6lookup15LookupInterfaceE"},
    {"queue", "N10tensorflow14QueueInterfaceE"},
    {"barrier", "N10tensorflow7barrier7BarrierE"},
    {"reader", "N10tensorflow15ReaderInterfaceE"},
    {"iterator", "N10tensorflow4data16IteratorResourceE"},
    {"memory_cache", "N10tensorflow4data18MemoryCacheManagerE"},
    {"seed_generator", "N10tensorflow4data20SeedGeneratorManagerE"},
    {"conditional_accumulator", "N10tensorflow26ConditionalAccumulatorBaseE"},
    {"summary_writer", "N10tensorflow22SummaryWriterInterfaceE"},
    {"stack", "N10tensorflow5StackE"},
    {"tensor_array", "N10tensorflow11TensorArrayE"},
    {"mutex", "N10tensorflow12_GLOBAL__N_15MutexE"},
};

// "tensorflow::Var" of "N10tensorflow3VarE".
std::string DemangledName(absl::string_view mangled) {
  const std::string name(mangled);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? std::string(text.get()) : name;
}

std::string DescribedType(absl::string_view kind) {
  const absl::string_view name = ResourceTypeName(kind);
  return absl::StrCat("'", DemangledName(name), "' (hash code ", Hash64(name), ")");
}

}  // namespace

absl::string_view ResourceTypeName(absl::string_view kind) {
  for (const ResourceType& row : kResourceTypes) {
    if (row.kind == kind) return row.name;
  }
  return kind;
}

Status NoSuchResource(absl::string_view container, absl::string_view name, absl::string_view kind) {
  return NotFound("Resource ", container, "/", name, "/", ResourceTypeName(kind),
                  " does not exist.");
}

StatusOr<std::shared_ptr<Resource>> ResourceOfKind(const ResourceHandle& h,
                                                   absl::string_view kind) {
  if (h.resource != nullptr && h.resource->kind() == kind) return h.resource;
  if (h.resource == nullptr || h.type_name.empty()) {
    return NoSuchResource(h.container, h.name, kind);
  }
  return InvalidArgument(
      "Trying to access a handle's resource using the wrong type. The handle ",
      "points to a resource (name '", h.name, "') of type ", DescribedType(h.resource->kind()),
      " but you are trying to access the resource as type ", DescribedType(kind));
}

}  // namespace smelt
