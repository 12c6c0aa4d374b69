// Ops on whole files and on the names of sharded ones.
#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "smelt/io/fs.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

Status RunReadFile(OpContext& ctx) {
  const Tensor& name = ctx.input(0);
  if (name.rank() != 0) {
    return InvalidArgument("Input filename tensor must be scalar, but had shape: ",
                           name.shape().ToString());
  }
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(name.scalar<std::string>()));
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
    RETURN_IF_ERROR(MakeDirs(path.substr(0, slash)));
  }
  return WriteFileAtomically(path, contents.scalar<std::string>());
}

// Adds the files that match the path components from `at` on, below `dir`.
void MatchBelow(const std::string& dir, absl::string_view rest, std::vector<std::string>* found) {
  const size_t slash = rest.find('/');
  const std::string part(rest.substr(0, slash));
  const bool last = slash == absl::string_view::npos;
  const absl::string_view below = last ? absl::string_view() : rest.substr(slash + 1);
  const auto descend = [&](const std::string& name) {
    const std::string path = dir == "/" ? absl::StrCat("/", name) : JoinPath(dir, name);
    if (last) {
      if (Exists(path)) found->push_back(path);
    } else if (IsDir(path)) {
      MatchBelow(path, below, found);
    }
  };
  if (part.empty()) {  // a doubled slash
    if (!last) MatchBelow(dir, below, found);
    return;
  }
  if (part.find_first_of("*?[\\") == std::string::npos) return descend(part);
  const auto names = ListDir(dir.empty() ? "." : dir);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (fnmatch(part.c_str(), name.c_str(), 0) == 0) descend(name);
  }
}

Status RunMatchingFiles(OpContext& ctx) {
  std::vector<std::string> found;
  for (const std::string& pattern : ctx.input(0).flat<std::string>()) {
    const bool absolute = !pattern.empty() && pattern[0] == '/';
    MatchBelow(absolute ? "/" : "", absl::string_view(pattern).substr(absolute ? 1 : 0), &found);
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

constexpr Kernel kFileTable[] = {
    {"ReadFile", "", kAnyType, "state:read_file", RunReadFile},
    {"WriteFile", "", kAnyType, "state:write_file", RunWriteFile},
    {"MatchingFiles", "", kAnyType, "state:matching_files", RunMatchingFiles},
    {"ShardedFilename", "", kAnyType, "state:sharded_filename", RunShardedFilename},
    {"ShardedFilespec", "", kAnyType, "state:sharded_filename", RunShardedFilespec},
};

}  // namespace

extern constinit const std::span<const Kernel> kFileKernels = kFileTable;

}  // namespace smelt
