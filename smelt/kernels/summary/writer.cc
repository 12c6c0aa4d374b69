// The summary writer, a resource that writes an event file, and the ops that add summaries to it.
#include <unistd.h>

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "smelt/io/record.h"
#include "smelt/kernels/common/shared_handle.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/resource_types.h"
#include "smelt/kernels/summary/as_double.h"

namespace smelt {
namespace {

double WallTime() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

// Writes an event file. Events are held back and written many at a time. Thread safe.
class EventWriter final : public Resource {
 public:
  static constexpr absl::string_view kKind = "summary_writer";
  absl::string_view kind() const override { return kKind; }
  explicit EventWriter(std::string name) : name_(std::move(name)) {}
  ~EventWriter() override {
    absl::MutexLock lock(&mutex_);
    if (open_) FlushLocked().IgnoreError();  // there is no caller to tell
  }

  // Begins a file in the folder; does nothing when a file is begun already.
  Status Open(const std::string& folder, const std::string& suffix, int64_t max_queue,
              absl::Duration flush_after, const FileSystem& files) {
    absl::MutexLock lock(&mutex_);
    if (open_) return OkStatus();
    RETURN_IF_ERROR(files.MakeFolders(folder));
    files_ = files;
    static std::atomic<int64_t> begun{0};
    char host[256] = "localhost";
    gethostname(host, sizeof(host) - 1);
    path_ = JoinPath(folder, absl::StrCat("events.out.tfevents.", absl::ToUnixSeconds(absl::Now()),
                                          ".", host, ".", getpid(), ".", begun++, suffix));
    max_queue_ = max_queue;
    flush_after_ = flush_after;
    open_ = true;
    AppendRecord(VersionEvent(WallTime()), &pending_);
    return FlushLocked();
  }

  Status Add(absl::string_view event) {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckOpen());
    AppendRecord(event, &pending_);
    if (++queued_ <= max_queue_ && absl::Now() - flushed_ <= flush_after_) return OkStatus();
    return FlushLocked();
  }

  Status Flush() {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckOpen());
    return FlushLocked();
  }

  Status Close() {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckOpen());
    open_ = false;
    return FlushLocked();
  }

  // NOT_FOUND when no file is open.
  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (open_) return OkStatus();
    return NotFound("Container localhost does not exist. (Could not find resource: localhost/",
                    name_, ")");
  }

 private:
  Status FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    flushed_ = absl::Now();
    queued_ = 0;
    if (pending_.empty()) return OkStatus();
    RETURN_IF_ERROR(files_.Append(path_, pending_));
    pending_.clear();
    return OkStatus();
  }

  const std::string name_;
  absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  FileSystem files_ ABSL_GUARDED_BY(mutex_) = FileSystem::Nothing();  // of the op that opened it
  std::string path_ ABSL_GUARDED_BY(mutex_);
  std::string pending_ ABSL_GUARDED_BY(mutex_);
  int64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t max_queue_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration flush_after_ ABSL_GUARDED_BY(mutex_);
  absl::Time flushed_ ABSL_GUARDED_BY(mutex_);
};

struct WriterState final : KernelState {
  explicit WriterState(const Node& node) : shared(node) {}
  SharedHandle shared;
};

StatusOr<std::unique_ptr<KernelState>> PrepareWriter(const Node& node) {
  return std::make_unique<WriterState>(node);
}

Status RunSummaryWriter(OpContext& ctx) {
  auto& s = ctx.state<WriterState>();
  return AnswerWithHandle(ctx, s.shared, {EventWriter::kKind, "writer"},
                          [&] { return std::make_shared<EventWriter>(s.shared.at.name); });
}

// Inputs [1, n) must be scalars.
Status CheckScalarInputs(const OpContext& ctx, int n) {
  for (int i = 1; i < n; ++i) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument("input ", i, " of ", ctx.node().op(), " must be a scalar, got shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  return OkStatus();
}

Status RunCreateFileWriter(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto writer, FindResource<EventWriter>(ctx.input(0)));
  RETURN_IF_ERROR(CheckScalarInputs(ctx, 5));
  return writer->Open(ctx.input(1).scalar<std::string>(), ctx.input(4).scalar<std::string>(),
                      ctx.input(2).scalar<int32_t>(),
                      absl::Milliseconds(ctx.input(3).scalar<int32_t>()), ctx.files());
}

Status AddSummary(OpContext& ctx, EventWriter& writer, absl::string_view summary) {
  ASSIGN_OR_RETURN(const std::string event,
                   SummaryEvent(WallTime(), ctx.input(1).scalar<int64_t>(), summary));
  return writer.Add(event);
}

Status CheckSummaryType(const Tensor& values) {
  if (values.dtype() != Dtype::kBfloat16) return OkStatus();
  return Unimplemented("SummaryFileWriter bfloat16 not supported.");
}

// Inputs: writer, step, tag, value.
Status RunWriteScalar(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto writer, FindResource<EventWriter>(ctx.input(0)));
  RETURN_IF_ERROR(CheckScalarInputs(ctx, 4));
  RETURN_IF_ERROR(CheckSummaryType(ctx.input(3)));
  return AddSummary(ctx, *writer,
                    ScalarSummary(ctx.input(2).scalar<std::string>(),
                                  static_cast<float>(DoubleAt(ctx.input(3), 0))));
}

// Inputs: writer, step, tag, values.
Status RunWriteHistogram(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto writer, FindResource<EventWriter>(ctx.input(0)));
  RETURN_IF_ERROR(CheckScalarInputs(ctx, 3));
  RETURN_IF_ERROR(CheckSummaryType(ctx.input(3)));
  const std::string& tag = ctx.input(2).scalar<std::string>();
  ASSIGN_OR_RETURN(const SummaryHistogram histogram, HistogramOf(ctx.input(3), tag));
  return AddSummary(ctx, *writer, HistogramSummary(tag, histogram));
}

// Inputs: writer, step, tensor, tag, summary_metadata.
Status RunWriteSummary(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto writer, FindResource<EventWriter>(ctx.input(0)));
  if (ctx.input(1).rank() != 0 || ctx.input(3).rank() != 0 || ctx.input(4).rank() != 0) {
    return InvalidArgument("step, tag and summary_metadata must be scalars");
  }
  std::optional<absl::string_view> metadata = ctx.input(4).scalar<std::string>();
  if (metadata->empty()) metadata.reset();
  ASSIGN_OR_RETURN(const std::string summary,
                   TensorSummary(ctx.input(3).scalar<std::string>(), "", ctx.input(2), metadata));
  return AddSummary(ctx, *writer, summary);
}

// Inputs: writer, step, serialized Summary messages.
Status RunWriteRawProto(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto writer, FindResource<EventWriter>(ctx.input(0)));
  if (ctx.input(1).rank() != 0) return InvalidArgument("step must be scalar");
  for (const std::string& summary : ctx.input(2).flat<std::string>()) {
    RETURN_IF_ERROR(AddSummary(ctx, *writer, summary));
  }
  return OkStatus();
}

Status RunWriteGraph(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto writer, FindResource<EventWriter>(ctx.input(0)));
  RETURN_IF_ERROR(CheckScalarInputs(ctx, 3));
  return writer->Add(
      GraphEvent(WallTime(), ctx.input(1).scalar<int64_t>(), ctx.input(2).scalar<std::string>()));
}

Status RunFlushWriter(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto writer, FindResource<EventWriter>(ctx.input(0)));
  return writer->Flush();
}

Status RunCloseWriter(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto writer, FindResource<EventWriter>(ctx.input(0)));
  return writer->Close();
}

constexpr DtypeSet kTensorSummaryTypes = kNumberTypes | Types(Dtype::kBool, Dtype::kString);

constexpr Kernel kSummaryWriterTable[] = {
    {"SummaryWriter", "", kAnyType, "summary:writer", RunSummaryWriter, PrepareWriter},
    {"CreateSummaryFileWriter", "", kAnyType, "summary:create_file", RunCreateFileWriter},
    {"WriteScalarSummary", "T", kRealTypes, "summary:write_scalar", RunWriteScalar},
    {"WriteHistogramSummary", "T", kRealTypes | Bit(Dtype::kBool), "summary:write_histogram",
     RunWriteHistogram},
    {"WriteSummary", "T", kTensorSummaryTypes, "summary:write", RunWriteSummary},
    {"WriteRawProtoSummary", "", kAnyType, "summary:write_raw", RunWriteRawProto},
    {"WriteGraphSummary", "", kAnyType, "summary:write_graph", RunWriteGraph},
    {"FlushSummaryWriter", "", kAnyType, "summary:flush", RunFlushWriter},
    {"CloseSummaryWriter", "", kAnyType, "summary:close", RunCloseWriter},
};

}  // namespace

extern constinit const std::span<const Kernel> kSummaryWriterKernels = kSummaryWriterTable;

}  // namespace smelt
