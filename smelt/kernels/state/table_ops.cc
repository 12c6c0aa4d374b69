// The ops of lookup tables: handles, queries, changes.
#include "smelt/kernels/common/shared_handle.h"
#include "smelt/kernels/resource_types.h"
#include "smelt/kernels/state/tables.h"

namespace smelt {
namespace {

enum class TableForm : uint8_t { kFillOnce, kMutable, kTensors, kDense };

struct TableState final : KernelState {
  explicit TableState(const Node& node) : at(node) {}
  const ResourceName at;
  Dtype key_dtype;
  Dtype value_dtype;
  Shape value_shape;
  int64_t buckets = 0;
  float max_load = 0;
  HandleCache cache;
};

StatusOr<std::unique_ptr<KernelState>> PrepareTable(const Node& node) {
  auto state = std::make_unique<TableState>(node);
  state->key_dtype = node.Type("key_dtype");
  state->value_dtype = node.Type("value_dtype");
  const auto shape = node.Get<PartialShape>("value_shape", PartialShape(Shape()));
  if (!shape.fully_known()) {
    return InvalidArgument("table '", node.name(),
                           "' has a value_shape that is not known: ", shape.ToString());
  }
  ASSIGN_OR_RETURN(state->value_shape, Shape::Make(shape.dims()));
  state->buckets = node.Int("initial_num_buckets");
  state->max_load = node.Float("max_load_factor");
  return state;
}

StatusOr<std::shared_ptr<Resource>> MakeTable(const OpContext& ctx, TableForm form) {
  const auto& s = ctx.state<TableState>();
  if (form == TableForm::kDense) {
    DenseTableOptions o{s.key_dtype, s.value_dtype, s.value_shape, s.buckets,
                        s.max_load,  ctx.input(0),  Tensor()};
    if (ctx.num_inputs() > 1) o.deleted_key = ctx.input(1);
    return MakeDenseTable(o);
  }
  if (form == TableForm::kTensors && s.value_shape.rank() != 1) {
    return InvalidArgument("Default value must be a vector, got shape ", s.value_shape.ToString());
  }
  return MakeHashTable(s.key_dtype, s.value_dtype,
                       form == TableForm::kTensors ? s.value_shape : Shape(),
                       form == TableForm::kFillOnce);
}

Tensor MakeTableHandle(const OpContext& ctx, std::shared_ptr<Resource> table) {
  const auto& s = ctx.state<TableState>();
  ResourceHandle h;
  h.container = s.at.container;
  h.name = s.at.name;
  h.device = std::string(ctx.step().device);
  if (!IsRef(ctx.output_type(0))) h.type_name = std::string(ResourceTypeName(LookupTable::kKind));
  h.resource = std::move(table);
  return Tensor::Scalar(std::move(h));
}

template <TableForm kForm>
Status RunTable(OpContext& ctx) {
  auto& s = ctx.state<TableState>();
  ResourceManager* resources = ctx.step().resources;
  if (const Tensor* handle = s.cache.Find(resources)) {
    ctx.set_output(0, *handle);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<LookupTable> table,
      FindOrCreateResource<LookupTable>(ctx, "table", s.at, [&] { return MakeTable(ctx, kForm); }));
  if (table->key_dtype() != s.key_dtype || table->value_dtype() != s.value_dtype) {
    return InvalidArgument("Conflicting key/value dtypes ", DtypeName(s.key_dtype), "->",
                           DtypeName(s.value_dtype), " with ", DtypeName(table->key_dtype()), "-",
                           DtypeName(table->value_dtype()), " for table ", s.at.name);
  }
  ctx.set_output(0, MakeTableHandle(ctx, std::move(table)));
  s.cache.Set(resources, ctx.output(0));
  return OkStatus();
}

template <TableForm kForm>
Status RunAnonymousTable(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<Resource> resource, MakeTable(ctx, kForm));
  ctx.set_output(0, MakeTableHandle(ctx, std::move(resource)));
  return OkStatus();
}

// INVALID_ARGUMENT unless the op's types are the table's. As in TensorFlow the text shows both
// signatures.
Status CheckSignature(const OpContext& ctx, const LookupTable& table, bool with_values,
                      bool with_output) {
  const bool keys_fit = ctx.input(1).dtype() == table.key_dtype();
  const bool values_fit = !with_values || ctx.input(2).dtype() == table.value_dtype();
  const bool output_fits = !with_output || ctx.output_type(0) == table.value_dtype();
  if (keys_fit && values_fit && output_fits) return OkStatus();
  const absl::string_view handle = IsRef(ctx.node().input_types[0]) ? "string_ref" : "resource";
  std::string have = absl::StrCat(handle, ", ", DtypeName(ctx.input(1).dtype()));
  std::string want = absl::StrCat(handle, ", ", DtypeName(table.key_dtype()));
  if (with_values) {
    absl::StrAppend(&have, ", ", DtypeName(ctx.input(2).dtype()));
    absl::StrAppend(&want, ", ", DtypeName(table.value_dtype()));
  }
  have += "->";
  want += "->";
  if (with_output) {
    absl::StrAppend(&have, DtypeName(ctx.output_type(0)));
    absl::StrAppend(&want, DtypeName(table.value_dtype()));
  }
  return InvalidArgument("Signature mismatch, have: ", have, " expected: ", want);
}

Status RunTableFind(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table, FindTable(ctx, 0));
  RETURN_IF_ERROR(CheckSignature(ctx, *table, /*with_values=*/true, /*with_output=*/true));
  ASSIGN_OR_RETURN(Tensor out, table->Find(ctx.input(1), ctx.input(2), ctx.step().allocator));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status RunTableSize(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table, FindTable(ctx, 0));
  ctx.set_output(0, Tensor::Scalar(table->size()));
  return OkStatus();
}

Status RunTableInsert(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table, FindTable(ctx, 0));
  RETURN_IF_ERROR(CheckSignature(ctx, *table, /*with_values=*/true, /*with_output=*/false));
  return table->Insert(ctx.input(1), ctx.input(2));
}

Status RunTableRemove(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table, FindTable(ctx, 0));
  RETURN_IF_ERROR(CheckSignature(ctx, *table, /*with_values=*/false, /*with_output=*/false));
  return table->Remove(ctx.input(1));
}

Status RunTableImport(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table, FindTable(ctx, 0));
  RETURN_IF_ERROR(CheckSignature(ctx, *table, /*with_values=*/true, /*with_output=*/false));
  return table->Import(ctx.input(1), ctx.input(2));
}

Status RunTableExport(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table, FindTable(ctx, 0));
  if (ctx.output_type(0) != table->key_dtype() || ctx.output_type(1) != table->value_dtype()) {
    return InvalidArgument("Signature mismatch, have: ->", DtypeName(ctx.output_type(0)), ", ",
                           DtypeName(ctx.output_type(1)), " expected: ->",
                           DtypeName(table->key_dtype()), ", ", DtypeName(table->value_dtype()));
  }
  ASSIGN_OR_RETURN(auto content, table->Export(ctx.step().allocator));
  ctx.set_output(0, std::move(content.first));
  ctx.set_output(1, std::move(content.second));
  return OkStatus();
}

Status RunTableInitialize(OpContext& ctx) {
  ASSIGN_OR_RETURN(std::shared_ptr<LookupTable> table, FindTable(ctx, 0));
  RETURN_IF_ERROR(CheckSignature(ctx, *table, /*with_values=*/true, /*with_output=*/false));
  const Tensor& keys = ctx.input(1);
  const Tensor& values = ctx.input(2);
  if (keys.rank() != 1) {
    return InvalidArgument("Keys must be a vector, but received shape", keys.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("Values must be a vector, but received shape",
                           values.shape().ToString());
  }
  if (keys.num_elements() != values.num_elements()) {
    return InvalidArgument("Keys and values must have the same size ", keys.num_elements(), " vs ",
                           values.num_elements());
  }
  return table->Initialize(keys, values);
}

constexpr Kernel kTableTable[] = {
    {"HashTable", "", kAnyType, "state:hash_table", RunTable<TableForm::kFillOnce>, PrepareTable},
    {"AnonymousHashTable", "", kAnyType, "state:hash_table",
     RunAnonymousTable<TableForm::kFillOnce>, PrepareTable},
    {"MutableHashTable", "", kAnyType, "state:hash_table", RunTable<TableForm::kMutable>,
     PrepareTable},
    {"AnonymousMutableHashTable", "", kAnyType, "state:hash_table",
     RunAnonymousTable<TableForm::kMutable>, PrepareTable},
    {"MutableHashTableOfTensors", "", kAnyType, "state:hash_table", RunTable<TableForm::kTensors>,
     PrepareTable},
    {"AnonymousMutableHashTableOfTensors", "", kAnyType, "state:hash_table",
     RunAnonymousTable<TableForm::kTensors>, PrepareTable},
    {"MutableDenseHashTableV2", "", kAnyType, "state:dense_table", RunTable<TableForm::kDense>,
     PrepareTable},
    {"AnonymousMutableDenseHashTable", "", kAnyType, "state:dense_table",
     RunAnonymousTable<TableForm::kDense>, PrepareTable},
    {"LookupTableFind", "", kAnyType, "state:table_find", RunTableFind},
    {"LookupTableSize", "", kAnyType, "state:table_size", RunTableSize},
    {"LookupTableInsert", "", kAnyType, "state:table_insert", RunTableInsert},
    {"LookupTableRemoveV2", "", kAnyType, "state:table_remove", RunTableRemove},
    {"LookupTableImport", "", kAnyType, "state:table_import", RunTableImport},
    {"LookupTableExport", "", kAnyType, "state:table_export", RunTableExport},
    {"InitializeTable", "", kAnyType, "state:table_initialize", RunTableInitialize},
};

}  // namespace

extern constinit const std::span<const Kernel> kTableKernels = kTableTable;

StatusOr<std::shared_ptr<LookupTable>> FindTable(const OpContext& ctx, int i) {
  const Tensor& handle = ctx.input(i);
  if (handle.dtype() == Dtype::kResource && handle.num_elements() == 1) {
    const ResourceHandle& h = handle.scalar<ResourceHandle>();
    if (h.resource == nullptr && ctx.step().resources != nullptr) {
      auto found = ctx.step().resources->Find(h.container, LookupTable::kKind, h.name);
      if (found != nullptr) return std::static_pointer_cast<LookupTable>(std::move(found));
    }
  }
  return FindResource<LookupTable>(handle);
}

}  // namespace smelt
