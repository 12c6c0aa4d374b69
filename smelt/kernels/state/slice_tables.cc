// Saving and restoring tensors through checkpoints of version 1.
#include "smelt/kernels/state/slice_tables.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "smelt/io/fs.h"
#include "smelt/kernels/kernel.h"
#include "smelt/wire/bundle/slice_table.h"

namespace smelt {
namespace {

// Keeps a reader for the rest of the step.
struct HeldSliceTables final : Resource {
  static constexpr absl::string_view kKind = "slice_table_reader";
  explicit HeldSliceTables(std::shared_ptr<SliceTableReader> r) : reader(std::move(r)) {}
  absl::string_view kind() const override { return kKind; }
  const std::shared_ptr<SliceTableReader> reader;
};

StatusOr<std::shared_ptr<SliceTableReader>> OpenSliceTables(const OpContext& ctx,
                                                            const std::string& pattern,
                                                            int preferred_shard) {
  const auto open = [&]() -> StatusOr<std::shared_ptr<Resource>> {
    ASSIGN_OR_RETURN(std::vector<std::string> paths, ctx.files().Matching(pattern));
    if (paths.empty()) {
      return NotFound(
          "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ",
          pattern);
    }
    ASSIGN_OR_RETURN(auto reader, SliceTableReader::Open(std::move(paths), preferred_shard));
    return std::make_shared<HeldSliceTables>(std::move(reader));
  };
  ResourceManager* held = ctx.step().step_resources;
  const std::string key = absl::StrCat(preferred_shard, " ", pattern);
  ASSIGN_OR_RETURN(
      const std::shared_ptr<Resource> made,
      held == nullptr ? open() : held->FindOrCreate("", HeldSliceTables::kKind, key, open));
  return static_cast<const HeldSliceTables&>(*made).reader;
}

Status CheckSliceTableType(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat:
    case Dtype::kDouble:
    case Dtype::kHalf:
    case Dtype::kInt8:
    case Dtype::kInt16:
    case Dtype::kInt32:
    case Dtype::kInt64:
    case Dtype::kUint8:
    case Dtype::kUint16:
    case Dtype::kUint32:
    case Dtype::kUint64:
    case Dtype::kBool:
    case Dtype::kString:
    case Dtype::kComplex64:
    case Dtype::kComplex128:
    case Dtype::kQint8:
    case Dtype::kQuint8:
    case Dtype::kQint32:
      return OkStatus();
    default:
      return Unimplemented("Restoring data type ", DtypeName(dtype), " not yet supported");
  }
}

Status RunRestoreSlices(OpContext& ctx) {
  const Tensor &pattern = ctx.input(0), &name = ctx.input(1);
  if (pattern.num_elements() != 1) {
    return InvalidArgument("Input 0 (file_pattern) must be a string scalar; got a tensor of ",
                           pattern.num_elements(), " elements");
  }
  if (name.num_elements() < 1) {
    return InvalidArgument("Input 1 (file_pattern) must be a have at least 1 elements");
  }
  std::string text;
  if (ctx.num_inputs() == 3) {
    if (ctx.input(2).num_elements() < 1) {
      return InvalidArgument("Expected at least 1 element for the tensor shape and slice");
    }
    text = *ctx.input(2).data<std::string>();
  }
  ASSIGN_OR_RETURN(Tensor value,
                   RestoreFromSliceTables(ctx, *pattern.data<std::string>(),
                                          static_cast<int>(ctx.node().Int("preferred_shard", -1)),
                                          *name.data<std::string>(), text, ctx.output_type(0)));
  ctx.set_output(0, std::move(value));
  return OkStatus();
}

// The positions of the names in the order in which TensorFlow saves them: sorted by std::sort as
// there, so that equal names come in the same order.
std::vector<int> SavingOrder(const Tensor& names) {
  const auto flat = names.flat<std::string>();
  std::vector<int> order(flat.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return flat[static_cast<size_t>(a)] < flat[static_cast<size_t>(b)];
  });
  return order;
}

// Inputs: filename, tensor_names, with `slices` shapes_and_slices, then the tensors.
Status SaveToSliceTable(OpContext& ctx, bool slices) {
  const Tensor &path = ctx.input(0), &names = ctx.input(1);
  if (path.num_elements() != 1) {
    return InvalidArgument("Input 0 (filename) must be a string scalar; got a tensor of ",
                           path.num_elements(), "elements");
  }
  const int fixed = slices ? 3 : 2;
  const int64_t n = names.num_elements();
  if (slices && ctx.input(2).num_elements() != n) {
    return InvalidArgument("Expected ", n, " elements for the tensor shapes and slices but got ",
                           ctx.input(2).num_elements());
  }
  if (ctx.num_inputs() != n + fixed) {
    return InvalidArgument("Expected totally ", n + fixed, " inputs as input #1 (which is a ",
                           "string tensor of saved names) contains ", n, " names, but received ",
                           ctx.num_inputs(), " inputs");
  }
  SliceTableWriter writer;
  for (const int i : SavingOrder(names)) {
    const std::string& name = names.data<std::string>()[i];
    const Tensor& value = ctx.input(i + fixed);
    Shape full = value.shape();
    TensorSlice slice = TensorSlice::Whole(full.rank());
    const std::string text = slices ? ctx.input(2).data<std::string>()[i] : "";
    if (!text.empty()) {
      RETURN_IF_ERROR(ParseShapeAndSlice(text, &full, &slice));
      ASSIGN_OR_RETURN(const Shape part, slice.ShapeIn(full));
      if (!(part == value.shape())) {
        return InvalidArgument("Slice in shape_and_slice specification does not match the shape ",
                               "of the tensor to  save: ", text,
                               ", tensor: ", value.shape().ToString());
      }
    }
    RETURN_IF_ERROR(writer.Add(name, full, slice, value));
  }
  RETURN_IF_ERROR(ctx.files().MayWrite(*path.data<std::string>()));
  return writer.Finish(*path.data<std::string>());
}

Status RunSaveWhole(OpContext& ctx) { return SaveToSliceTable(ctx, false); }
Status RunSaveSlices(OpContext& ctx) { return SaveToSliceTable(ctx, true); }

constexpr Kernel kSliceTableTable[] = {
    {"Save", "", kAnyType, "state:save_v1", RunSaveWhole},
    {"SaveSlices", "", kAnyType, "state:save_v1", RunSaveSlices},
    {"Restore", "", kAnyType, "state:restore_v1", RunRestoreSlices},
    {"RestoreSlice", "", kAnyType, "state:restore_v1", RunRestoreSlices},
};

}  // namespace

StatusOr<Tensor> RestoreFromSliceTables(const OpContext& ctx, const std::string& pattern,
                                        int preferred_shard, const std::string& name,
                                        const std::string& shape_and_slice, Dtype dtype) {
  ASSIGN_OR_RETURN(const auto reader, OpenSliceTables(ctx, pattern, preferred_shard));
  ASSIGN_OR_RETURN(const auto info, reader->Find(name));
  if (!info) {
    return NotFound("Tensor name \"", name, "\" not found in checkpoint files ", pattern);
  }
  if (info->dtype != dtype) {
    return InvalidArgument("Expected to restore a tensor of type ", DtypeName(dtype),
                           ", got a tensor of type ", DtypeName(info->dtype),
                           " instead: tensor_name = ", name);
  }
  TensorSlice slice = TensorSlice::Whole(info->shape.rank());
  if (!shape_and_slice.empty()) {
    Shape full;
    RETURN_IF_ERROR(ParseShapeAndSlice(shape_and_slice, &full, &slice));
    if (!(full == info->shape)) {
      return InvalidArgument("Shape in shape_and_slice spec does not match the shape in the ",
                             "save file: ", full.ToString(),
                             ", save file shape: ", info->shape.ToString());
    }
  }
  RETURN_IF_ERROR(CheckSliceTableType(dtype));
  return reader->ReadSlice(name, slice);
}

extern constinit const std::span<const Kernel> kSliceTableKernels = kSliceTableTable;

}  // namespace smelt
