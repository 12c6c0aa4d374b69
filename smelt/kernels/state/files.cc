// Ops on whole files and on the names of sharded ones.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_format.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

Status RunReadFile(OpContext& ctx) {
  const Tensor& name = ctx.input(0);
  if (name.rank() != 0) {
    return InvalidArgument("Input filename tensor must be scalar, but had shape: ",
                           name.shape().ToString());
  }
  ASSIGN_OR_RETURN(std::string bytes, ctx.files().Read(name.scalar<std::string>()));
  ctx.set_output(0, Tensor::Scalar(std::move(bytes)));
  return OkStatus();
}

Status RunWriteFile(OpContext& ctx) {
  const Tensor& name = ctx.input(0);
  const Tensor& contents = ctx.input(1);
  if (name.rank() != 0) {
    return InvalidArgument("Input filename tensor must be scalar, but had shape: ",
                           name.shape().ToString());
  }
  if (contents.rank() != 0) {
    return InvalidArgument("Contents tensor must be scalar, but had shape: ",
                           contents.shape().ToString());
  }
  const std::string& path = name.scalar<std::string>();
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash != 0) {
    RETURN_IF_ERROR(ctx.files().MakeFolders(path.substr(0, slash)));
  }
  return ctx.files().WriteAtomically(path, contents.scalar<std::string>());
}

Status RunMatchingFiles(OpContext& ctx) {
  std::vector<std::string> found;
  for (const std::string& pattern : ctx.input(0).flat<std::string>()) {
    ASSIGN_OR_RETURN(std::vector<std::string> paths, ctx.files().Matching(pattern));
    std::ranges::move(paths, std::back_inserter(found));
  }
  std::sort(found.begin(), found.end());
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({static_cast<int64_t>(found.size())})));
  std::move(found.begin(), found.end(), out->data<std::string>());
  return OkStatus();
}

Status CheckScalars(const OpContext& ctx) {
  static constexpr absl::string_view kNames[] = {"basename", "shard", "num_shards"};
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).rank() != 0) {
      const int name = ctx.num_inputs() == 2 && i == 1 ? 2 : i;
      return InvalidArgument(kNames[name], " must be a scalar, got shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  return OkStatus();
}

Status RunShardedFilename(OpContext& ctx) {
  RETURN_IF_ERROR(CheckScalars(ctx));
  ctx.set_output(0, Tensor::Scalar(absl::StrFormat(
                        "%s-%05d-of-%05d", ctx.input(0).scalar<std::string>(),
                        ctx.input(1).scalar<int32_t>(), ctx.input(2).scalar<int32_t>())));
  return OkStatus();
}

Status RunShardedFilespec(OpContext& ctx) {
  RETURN_IF_ERROR(CheckScalars(ctx));
  ctx.set_output(
      0, Tensor::Scalar(absl::StrFormat("%s-\?\?\?\?\?-of-%05d", ctx.input(0).scalar<std::string>(),
                                        ctx.input(1).scalar<int32_t>())));
  return OkStatus();
}

// The tensor is the file's first bytes, which stay mapped while it lives.
Status RunImmutableConst(OpContext& ctx) {
  const Dtype dtype = ctx.output_type(0);
  if (dtype == Dtype::kResource || dtype == Dtype::kVariant) {
    return InvalidArgument("Resource and variant dtypes are invalid for this op.");
  }
  ASSIGN_OR_RETURN(const auto file, ctx.files().Map(ctx.node().String("memory_region_name")));
  if (!IsPod(dtype)) {
    return Unimplemented("Sorry, DT_STRING is not currently supported for ImmutableConstOp.");
  }
  const PartialShape stated = ctx.node().Get<PartialShape>("shape", {});
  if (!stated.fully_known()) return InvalidArgument("shape is not fully known");
  const Shape shape = stated.ToShape();
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(shape.num_elements()), DtypeSize(dtype), &bytes) ||
      bytes > file->size()) {
    return Internal("Readonly memory region has wrong length (", file->size(), ") when allocating ",
                    bytes);
  }
  if (dtype != Dtype::kBool) {
    ctx.set_output(0, Tensor(dtype, shape,
                             ForeignBuffer(file->data(), bytes, ForeignBytes::kMappedFile, file)));
    return OkStatus();
  }
  // A byte of the file may be neither 0 nor 1, which C++ does not allow in a bool.
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  for (size_t i = 0; i < bytes; ++i) out->data<bool>()[i] = file->data()[i] != 0;
  return OkStatus();
}

constexpr Kernel kFileTable[] = {
    {"ReadFile", "", kAnyType, "state:read_file", RunReadFile},
    {"WriteFile", "", kAnyType, "state:write_file", RunWriteFile},
    {"ImmutableConst", "", kAnyType, "state:mapped_file", RunImmutableConst},
    {"MatchingFiles", "", kAnyType, "state:matching_files", RunMatchingFiles},
    {"ShardedFilename", "", kAnyType, "state:sharded_filename", RunShardedFilename},
    {"ShardedFilespec", "", kAnyType, "state:sharded_filename", RunShardedFilespec},
};

}  // namespace

extern constinit const std::span<const Kernel> kFileKernels = kFileTable;

}  // namespace smelt
