#include "smelt/kernels/dataset/reader.h"

#include <utility>

#include "absl/strings/escaping.h"

namespace smelt {

StatusOr<std::vector<ReaderRecord>> Reader::Read(Queue& queue, int64_t limit, const Step& step) {
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
      if (!record || work_.done_after_one) FinishWork();
    }
  }
  return records;
}

ReaderBaseState Reader::state() {
  absl::MutexLock lock(&mutex_);
  return state_;
}

StatusOr<std::string> Reader::Serialize() {
  absl::MutexLock lock(&mutex_);
  if (!KeepsState()) return Unimplemented("Reader SerializeState");
  return SerializeReaderState(state_);
}

Status Reader::Restore(const std::string& bytes) {
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

Status Reader::Reset() {
  absl::MutexLock lock(&mutex_);
  state_ = {};
  working_ = false;
  work_ = {};
  return OkStatus();
}

Status Reader::StartWork(Queue& queue, const Step& step) {
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
  files_ = (step.files != nullptr ? *step.files : FileSystem::Nothing()).For("a reader");
  RETURN_IF_ERROR(OpenWork());
  ++state_.work_started;
  working_ = true;
  return OkStatus();
}

Status Reader::OpenWork() {
  const ReaderOptions& o = options_;
  const std::string& path = state_.current_work;
  work_ = {};
  switch (o.kind) {
    case ReaderKind::kIdentity:
    case ReaderKind::kWholeFile:
      work_.done_after_one = true;
      break;
    case ReaderKind::kLines: {
      ASSIGN_OR_RETURN(work_.records,
                       OpenLines(files_, path, "", CarriageReturns::kDropLast, o.skip_lines));
      break;
    }
    case ReaderKind::kTfRecords: {
      ASSIGN_OR_RETURN(work_.records, OpenTfRecords(files_, path, o.compression, 0));
      break;
    }
    case ReaderKind::kFixedLength: {
      ASSIGN_OR_RETURN(work_.records, OpenFixedLength(files_, path, o.compression, o.lengths,
                                                      OddLength::kLeaveOut));
      break;
    }
  }
  return OkStatus();
}

StatusOr<std::optional<ReaderRecord>> Reader::NextRecord() {
  const std::string& path = state_.current_work;
  if (options_.kind == ReaderKind::kIdentity) {
    return std::optional<ReaderRecord>(ReaderRecord{path, path});
  }
  if (options_.kind == ReaderKind::kWholeFile) {
    ASSIGN_OR_RETURN(std::string bytes, files_.Read(path));
    return std::optional<ReaderRecord>(ReaderRecord{path, std::move(bytes)});
  }
  ASSIGN_OR_RETURN(auto record, work_.records->Next());
  if (!record) return std::optional<ReaderRecord>();
  return std::optional<ReaderRecord>(
      ReaderRecord{absl::StrCat(path, ":", work_.records->position()), *std::move(record)});
}

void Reader::FinishWork() {
  working_ = false;
  work_ = {};
  state_.work_finished = state_.work_started;
}

}  // namespace smelt
