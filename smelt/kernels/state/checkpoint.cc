// Saving and restoring tensors through variable bundles.
#include "smelt/base/parallel.h"
#include "smelt/io/fs.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/state/slice_tables.h"
#include "smelt/wire/bundle/bundle.h"
#include "smelt/wire/bundle/shared_bundle.h"

namespace smelt {
namespace {

// Keeps a reader for the rest of the step.
struct HeldBundle final : Resource {
  static constexpr absl::string_view kKind = "bundle_reader";
  explicit HeldBundle(std::shared_ptr<BundleReader> r) : reader(std::move(r)) {}
  absl::string_view kind() const override { return kKind; }
  const std::shared_ptr<BundleReader> reader;
};

StatusOr<std::shared_ptr<BundleReader>> OpenForStep(const OpContext& ctx,
                                                    const std::string& prefix) {
  ASSIGN_OR_RETURN(std::shared_ptr<BundleReader> reader, OpenSharedBundle(prefix, ctx.files()));
  ResourceManager* held = ctx.step().step_resources;
  if (held == nullptr) return reader;
  auto kept = held->FindOrCreate("", HeldBundle::kKind, prefix,
                                 [&]() -> StatusOr<std::shared_ptr<Resource>> {
                                   return std::make_shared<HeldBundle>(reader);
                                 });
  RETURN_IF_ERROR(kept.status());
  return reader;
}

// Inputs prefix, names, shape_and_slices of SaveV2 and RestoreV2.
Status CheckCheckpointInputs(const OpContext& ctx) {
  const Tensor &prefix = ctx.input(0), &names = ctx.input(1), &slices = ctx.input(2);
  if (prefix.num_elements() != 1) {
    return InvalidArgument("Input prefix should have a single element, got ", prefix.num_elements(),
                           " instead.");
  }
  if (names.rank() != 1 || slices.rank() != 1) {
    return InvalidArgument("Input tensor_names and shape_and_slices should be an 1-D tensors, got ",
                           names.shape().ToString(), " and ", slices.shape().ToString(),
                           " instead.");
  }
  if (names.num_elements() != slices.num_elements()) {
    return InvalidArgument("tensor_names and shape_and_slices have different number of elements: ",
                           names.num_elements(), " vs. ", slices.num_elements());
  }
  return OkStatus();
}

StatusOr<Tensor> RestoreOne(const BundleReader& reader, const std::string& name,
                            const std::string& shape_and_slice, Dtype dtype) {
  ASSIGN_OR_RETURN(const BundleEntry* entry, reader.Find(name));
  if (entry->dtype != dtype) {
    return InvalidArgument("tensor_name = ", name, "; expected dtype ", DtypeName(dtype),
                           " does not equal original dtype ", DtypeName(entry->dtype));
  }
  if (shape_and_slice.empty()) {
    if (!entry->partitioned()) return reader.Read(name);
    TensorSlice whole;
    whole.starts.assign(static_cast<size_t>(entry->shape.rank()), 0);
    whole.lengths.assign(whole.starts.size(), -1);
    return reader.ReadSlice(name, whole);
  }
  Shape full;
  TensorSlice slice;
  RETURN_IF_ERROR(ParseShapeAndSlice(shape_and_slice, &full, &slice));
  if (!(entry->shape == full)) {
    return InvalidArgument(
        "tensor_name = ", name, "; shape in shape_and_slice spec ", full.ToString(),
        " does not match the shape stored in checkpoint: ", entry->shape.ToString());
  }
  return reader.ReadSlice(name, slice);
}

Status RunRestoreV2(OpContext& ctx) {
  const auto& names = ctx.input(1);
  if (names.num_elements() != ctx.num_outputs()) {
    return InvalidArgument("Got ", names.num_elements(), " tensor names, but ", ctx.num_outputs(),
                           " expected dtypes.");
  }
  RETURN_IF_ERROR(CheckCheckpointInputs(ctx));
  const std::string& prefix = *ctx.input(0).data<std::string>();
  RETURN_IF_ERROR(ctx.files().MayRead(prefix));
  const int n = ctx.num_outputs();
  if (!Exists(absl::StrCat(prefix, ".index"))) {
    // No bundle: a checkpoint of version 1, whose files match the prefix.
    for (int i = 0; i < n; ++i) {
      ASSIGN_OR_RETURN(Tensor value, RestoreFromSliceTables(
                                         ctx, prefix, -1, ctx.input(1).data<std::string>()[i],
                                         ctx.input(2).data<std::string>()[i], ctx.output_type(i)));
      ctx.set_output(i, std::move(value));
    }
    return OkStatus();
  }
  ASSIGN_OR_RETURN(std::shared_ptr<BundleReader> reader, OpenForStep(ctx, prefix));
  // Reading computes a checksum of every byte, which is worth all cores.
  std::vector<Status> status(static_cast<size_t>(n));
  ParallelFor(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int out = static_cast<int>(i);
      auto value = RestoreOne(*reader, names.data<std::string>()[i],
                              ctx.input(2).data<std::string>()[i], ctx.output_type(out));
      if (value.ok()) {
        ctx.set_output(out, *std::move(value));
      } else {
        status[static_cast<size_t>(i)] = value.status();
      }
    }
  });
  for (const Status& s : status) RETURN_IF_ERROR(s);
  return OkStatus();
}

Status RunSaveV2(OpContext& ctx) {
  RETURN_IF_ERROR(CheckCheckpointInputs(ctx));
  const auto names = ctx.input(1).flat<std::string>();
  const auto slices = ctx.input(2).flat<std::string>();
  const int n = ctx.num_inputs() - 3;
  if (static_cast<int64_t>(names.size()) != n) {
    return InvalidArgument("Got ", names.size(), " tensor names but ", n, " tensors.");
  }
  const std::string& prefix = ctx.input(0).scalar<std::string>();
  RETURN_IF_ERROR(ctx.files().MayWrite(prefix));
  ASSIGN_OR_RETURN(std::unique_ptr<BundleWriter> writer, BundleWriter::Create(prefix));
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<size_t>(i);
    const Tensor& value = ctx.input(3 + i);
    Status added;
    if (slices[k].empty()) {
      added = writer->Add(names[k], value);
    } else {
      Shape full;
      TensorSlice slice;
      RETURN_IF_ERROR(ParseShapeAndSlice(slices[k], &full, &slice));
      ASSIGN_OR_RETURN(const Shape part, slice.ShapeIn(full));
      if (!(part == value.shape())) {
        return InvalidArgument("Slice in shape_and_slice specification does not match the shape ",
                               "of the tensor to  save: ", slices[k],
                               ", tensor: ", value.shape().ToString());
      }
      added = writer->AddSlice(names[k], full, slice, value);
    }
    if (absl::IsAlreadyExists(added)) {
      return InvalidArgument("Adding duplicate key: ", names[k]);
    }
    RETURN_IF_ERROR(added);
  }
  return writer->Finish();
}

Status RunMergeCheckpoints(OpContext& ctx) {
  const Tensor &from = ctx.input(0), &to = ctx.input(1);
  if (from.rank() != 1) {
    return InvalidArgument("Input checkpoint_prefixes should be an 1-D tensor, got ",
                           from.shape().ToString(), " instead.");
  }
  if (to.rank() != 0) {
    return InvalidArgument("Input destination_prefix should be a scalar tensor, got ",
                           to.shape().ToString(), " instead.");
  }
  const bool allow_missing = ctx.node().Bool("allow_missing_files");
  std::vector<std::string> prefixes;
  // The parts go once they are merged.
  for (const std::string& prefix : from.flat<std::string>()) {
    RETURN_IF_ERROR(ctx.files().MayWrite(prefix));
    if (Exists(absl::StrCat(prefix, ".index"))) {
      prefixes.push_back(prefix);
    } else if (!allow_missing) {
      return InvalidArgument("allow_missing_files was set to false and ", prefix,
                             " did not exist.");
    }
  }
  if (prefixes.empty()) {
    return InvalidArgument("At least one prefix checkpoint file must exist, but none were found.");
  }
  const std::string& destination = to.scalar<std::string>();
  RETURN_IF_ERROR(ctx.files().MayWrite(destination));
  const size_t slash = destination.rfind('/');
  if (slash != std::string::npos && slash != 0) {
    RETURN_IF_ERROR(ctx.files().MakeFolders(destination.substr(0, slash)));
  }
  return MergeBundles(prefixes, destination, ctx.node().Bool("delete_old_dirs", true));
}

constexpr Kernel kCheckpointTable[] = {
    {"RestoreV2", "", kAnyType, "state:restore", RunRestoreV2},
    {"SaveV2", "", kAnyType, "state:save", RunSaveV2},
    {"MergeV2Checkpoints", "", kAnyType, "state:merge_checkpoints", RunMergeCheckpoints},
};

}  // namespace

extern constinit const std::span<const Kernel> kCheckpointKernels = kCheckpointTable;

}  // namespace smelt
