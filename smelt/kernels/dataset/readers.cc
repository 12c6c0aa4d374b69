// Readers of version 1: they take file names from a queue and give (key, record) pairs.
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/common/shared_handle.h"
#include "smelt/kernels/dataset/file_records.h"
#include "smelt/kernels/kernel.h"
#include "smelt/kernels/queue/queue.h"
#include "smelt/kernels/resource_types.h"
#include "smelt/wire/records/reader_state.h"

namespace smelt {
namespace {

enum class ReaderKind { kIdentity, kWholeFile, kLines, kTfRecords, kFixedLength };

struct ReaderOptions {
  ReaderKind kind;
  std::string name;
  std::string compression;
  int64_t skip_lines = 0;
  FixedLengths lengths;
};

struct ReaderRecord {
  std::string key;
  std::string value;
};

class Reader final : public Resource {
 public:
  static constexpr absl::string_view kKind = "reader";
  absl::string_view kind() const override { return kKind; }
  explicit Reader(ReaderOptions options) : options_(std::move(options)) {}

  // Up to `limit` records of one file; waits for a file name where none is being read.
  StatusOr<std::vector<ReaderRecord>> Read(Queue& queue, int64_t limit, const Step& step) {
    absl::MutexLock lock(&mutex_);
    std::vector<ReaderRecord> records;
    if (limit == 0) return records;
    while (records.empty()) {
      if (!working_) RETURN_IF_ERROR(StartWork(queue, step));
      while (working_ && static_cast<int64_t>(records.size()) < limit) {
        ASSIGN_OR_RETURN(auto record, NextRecord());
        if (record) {
          records.push_back(*std::move(record));
          ++state_.num_records_produced;
        }
        if (!record || files_.done_after_one) FinishWork();
      }
    }
    return records;
  }

  ReaderBaseState state() {
    absl::MutexLock lock(&mutex_);
    return state_;
  }

  StatusOr<std::string> Serialize() {
    absl::MutexLock lock(&mutex_);
    if (!KeepsState()) return Unimplemented("Reader SerializeState");
    return SerializeReaderState(state_);
  }

  Status Restore(const std::string& bytes) {
    absl::MutexLock lock(&mutex_);
    if (!KeepsState()) return Unimplemented("Reader RestoreState");
    auto parsed = ParseReaderState(bytes);
    if (!parsed.ok()) {
      const bool identity = options_.kind == ReaderKind::kIdentity;
      return InvalidArgument("Could not parse state for ",
                             identity ? "IdentityReader" : "WholeFileReader", " '", options_.name,
                             "': ", absl::CEscape(bytes));
    }
    ReaderBaseState state = *std::move(parsed);
    if (state.work_started < 0 || state.work_finished < 0 || state.num_records_produced < 0) {
      return InvalidArgument("Unexpected negative value when restoring in ", options_.name, ": ",
                             ShowReaderState(state));
    }
    if (state.work_started > state.work_finished) {
      return InvalidArgument("Inconsistent work started vs. finished when restoring in ",
                             options_.name, ": ", ShowReaderState(state));
    }
    state_ = std::move(state);
    working_ = false;
    return OkStatus();
  }

  Status Reset() {
    absl::MutexLock lock(&mutex_);
    state_ = {};
    working_ = false;
    files_ = {};
    return OkStatus();
  }

 private:
  struct Work {
    std::unique_ptr<FileRecords> records;
    bool done_after_one = false;  // the work is its own only record
  };

  bool KeepsState() const {
    return options_.kind == ReaderKind::kIdentity || options_.kind == ReaderKind::kWholeFile;
  }

  Status StartWork(Queue& queue, const Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ASSIGN_OR_RETURN(const Tuple tuple, queue.Dequeue(step));
    if (tuple.size() != 1) {
      return InvalidArgument("Expected single component queue");
    }
    if (tuple[0].dtype() != Dtype::kString) {
      return InvalidArgument("Expected queue with single string component");
    }
    if (tuple[0].num_elements() != 1) {
      return InvalidArgument("Expected to dequeue a one-element string tensor");
    }
    state_.current_work = tuple[0].scalar<std::string>();
    RETURN_IF_ERROR(OpenWork());
    ++state_.work_started;
    working_ = true;
    return OkStatus();
  }

  Status OpenWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const ReaderOptions& o = options_;
    const std::string& path = state_.current_work;
    files_ = {};
    switch (o.kind) {
      case ReaderKind::kIdentity:
      case ReaderKind::kWholeFile:
        files_.done_after_one = true;
        break;
      case ReaderKind::kLines: {
        ASSIGN_OR_RETURN(files_.records,
                         OpenLines(path, "", CarriageReturns::kDropLast, o.skip_lines));
        break;
      }
      case ReaderKind::kTfRecords: {
        ASSIGN_OR_RETURN(files_.records, OpenTfRecords(path, o.compression, 0));
        break;
      }
      case ReaderKind::kFixedLength: {
        ASSIGN_OR_RETURN(files_.records,
                         OpenFixedLength(path, o.compression, o.lengths, OddLength::kLeaveOut));
        break;
      }
    }
    return OkStatus();
  }

  StatusOr<std::optional<ReaderRecord>> NextRecord() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string& path = state_.current_work;
    if (options_.kind == ReaderKind::kIdentity) {
      return std::optional<ReaderRecord>(ReaderRecord{path, path});
    }
    if (options_.kind == ReaderKind::kWholeFile) {
      ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
      return std::optional<ReaderRecord>(ReaderRecord{path, std::move(bytes)});
    }
    ASSIGN_OR_RETURN(auto record, files_.records->Next());
    if (!record) return std::optional<ReaderRecord>();
    return std::optional<ReaderRecord>(
        ReaderRecord{absl::StrCat(path, ":", files_.records->position()), *std::move(record)});
  }

  void FinishWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    working_ = false;
    files_ = {};
    state_.work_finished = state_.work_started;
  }

  const ReaderOptions options_;
  absl::Mutex mutex_;
  ReaderBaseState state_ ABSL_GUARDED_BY(mutex_);
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  Work files_ ABSL_GUARDED_BY(mutex_);
};

struct ReaderState final : KernelState {
  explicit ReaderState(const Node& node) : shared(node) {}
  SharedHandle shared;
  ReaderOptions options;
};

template <ReaderKind kKind>
StatusOr<std::unique_ptr<KernelState>> PrepareReader(const Node& node) {
  auto state = std::make_unique<ReaderState>(node);
  ReaderOptions& o = state->options;
  o.kind = kKind;
  o.name = state->shared.at.name;
  o.compression = node.String("compression_type");
  // TensorFlow takes what it does not know for no compression.
  if (o.compression != "ZLIB" && o.compression != "GZIP") o.compression.clear();
  if (kKind == ReaderKind::kLines) o.skip_lines = node.Int("skip_header_lines");
  if (kKind != ReaderKind::kFixedLength) return state;
  o.compression = node.String("encoding");
  o.lengths = {node.Int("header_bytes"), node.Int("record_bytes"), node.Int("footer_bytes"),
               node.Int("hop_bytes")};
  auto refuse = [](absl::string_view what, absl::string_view limit, int64_t value) {
    return InvalidArgument(what, " must be ", limit, " ", value);
  };
  if (o.lengths.header < 0) return refuse("header_bytes", ">= 0 not", o.lengths.header);
  if (o.lengths.record <= 0) return refuse("record_bytes", "> 0 not", o.lengths.record);
  if (o.lengths.footer < 0) return refuse("footer_bytes", ">= 0 not", o.lengths.footer);
  if (o.lengths.hop < 0) return refuse("hop_bytes", ">= 0 not", o.lengths.hop);
  if (o.compression != "" && o.compression != "ZLIB") {
    return InvalidArgument("encoding must be either ZLIB or \"\", not ", o.compression);
  }
  return state;
}

Status RunReader(OpContext& ctx) {
  auto& s = ctx.state<ReaderState>();
  return AnswerWithHandle(ctx, s.shared, {Reader::kKind, "reader"},
                          [&] { return std::make_shared<Reader>(s.options); });
}

Status RunReaderRead(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto reader, FindResource<Reader>(ctx.input(0)));
  ASSIGN_OR_RETURN(auto queue, FindResource<Queue>(ctx.input(1)));
  ASSIGN_OR_RETURN(auto records, reader->Read(*queue, 1, ctx.step()));
  ctx.set_output(0, Tensor::Scalar(std::move(records[0].key)));
  ctx.set_output(1, Tensor::Scalar(std::move(records[0].value)));
  return OkStatus();
}

Status RunReaderReadUpTo(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto reader, FindResource<Reader>(ctx.input(0)));
  ASSIGN_OR_RETURN(auto queue, FindResource<Queue>(ctx.input(1)));
  const Tensor& limit = ctx.input(2);
  if (limit.num_elements() != 1 || limit.scalar<int64_t>() < 0) {
    return InvalidArgument("num_records must be a number that is not negative");
  }
  ASSIGN_OR_RETURN(auto records, reader->Read(*queue, limit.scalar<int64_t>(), ctx.step()));
  const Shape shape({static_cast<int64_t>(records.size())});
  ASSIGN_OR_RETURN(Tensor * keys, ctx.Allocate(0, shape));
  ASSIGN_OR_RETURN(Tensor * values, ctx.Allocate(1, shape));
  for (size_t i = 0; i < records.size(); ++i) {
    keys->data<std::string>()[i] = std::move(records[i].key);
    values->data<std::string>()[i] = std::move(records[i].value);
  }
  return OkStatus();
}

template <int64_t ReaderBaseState::*kCount>
Status RunReaderCount(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto reader, FindResource<Reader>(ctx.input(0)));
  ctx.set_output(0, Tensor::Scalar(reader->state().*kCount));
  return OkStatus();
}

Status RunReaderSerialize(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto reader, FindResource<Reader>(ctx.input(0)));
  ASSIGN_OR_RETURN(std::string bytes, reader->Serialize());
  ctx.set_output(0, Tensor::Scalar(std::move(bytes)));
  return OkStatus();
}

Status RunReaderRestore(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto reader, FindResource<Reader>(ctx.input(0)));
  if (ctx.input(1).rank() != 0) {
    return InvalidArgument("Reader state must be scalar, but had shape: ",
                           ctx.input(1).shape().ToString());
  }
  return reader->Restore(ctx.input(1).scalar<std::string>());
}

Status RunReaderReset(OpContext& ctx) {
  ASSIGN_OR_RETURN(auto reader, FindResource<Reader>(ctx.input(0)));
  return reader->Reset();
}

constexpr Kernel kReaderTable[] = {
    {"IdentityReader", "", kAnyType, "reader:identity", RunReader,
     PrepareReader<ReaderKind::kIdentity>},
    {"IdentityReaderV2", "", kAnyType, "reader:identity", RunReader,
     PrepareReader<ReaderKind::kIdentity>},
    {"WholeFileReader", "", kAnyType, "reader:whole_file", RunReader,
     PrepareReader<ReaderKind::kWholeFile>},
    {"WholeFileReaderV2", "", kAnyType, "reader:whole_file", RunReader,
     PrepareReader<ReaderKind::kWholeFile>},
    {"TextLineReader", "", kAnyType, "reader:lines", RunReader, PrepareReader<ReaderKind::kLines>},
    {"TextLineReaderV2", "", kAnyType, "reader:lines", RunReader,
     PrepareReader<ReaderKind::kLines>},
    {"TFRecordReader", "", kAnyType, "reader:tf_records", RunReader,
     PrepareReader<ReaderKind::kTfRecords>},
    {"TFRecordReaderV2", "", kAnyType, "reader:tf_records", RunReader,
     PrepareReader<ReaderKind::kTfRecords>},
    {"FixedLengthRecordReaderV2", "", kAnyType, "reader:fixed_length", RunReader,
     PrepareReader<ReaderKind::kFixedLength>},
    {"ReaderRead", "", kAnyType, "reader:read", RunReaderRead},
    {"ReaderReadV2", "", kAnyType, "reader:read", RunReaderRead},
    {"ReaderReadUpTo", "", kAnyType, "reader:read_up_to", RunReaderReadUpTo},
    {"ReaderReadUpToV2", "", kAnyType, "reader:read_up_to", RunReaderReadUpTo},
    {"ReaderNumRecordsProduced", "", kAnyType, "reader:count",
     RunReaderCount<&ReaderBaseState::num_records_produced>},
    {"ReaderNumRecordsProducedV2", "", kAnyType, "reader:count",
     RunReaderCount<&ReaderBaseState::num_records_produced>},
    {"ReaderNumWorkUnitsCompleted", "", kAnyType, "reader:count",
     RunReaderCount<&ReaderBaseState::work_finished>},
    {"ReaderNumWorkUnitsCompletedV2", "", kAnyType, "reader:count",
     RunReaderCount<&ReaderBaseState::work_finished>},
    {"ReaderSerializeState", "", kAnyType, "reader:serialize", RunReaderSerialize},
    {"ReaderSerializeStateV2", "", kAnyType, "reader:serialize", RunReaderSerialize},
    {"ReaderRestoreState", "", kAnyType, "reader:restore", RunReaderRestore},
    {"ReaderRestoreStateV2", "", kAnyType, "reader:restore", RunReaderRestore},
    {"ReaderReset", "", kAnyType, "reader:reset", RunReaderReset},
    {"ReaderResetV2", "", kAnyType, "reader:reset", RunReaderReset},
};

}  // namespace

extern constinit const std::span<const Kernel> kReaderKernels = kReaderTable;

}  // namespace smelt
