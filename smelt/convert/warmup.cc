#include "smelt/convert/warmup.h"

#include <set>

#include "smelt/io/fs.h"
#include "smelt/io/record.h"
#include "smelt/model/made_up_requests.h"
#include "smelt/wire/records/prediction_log.h"
#include "smelt/wire/saved_model/signature_keys.h"

namespace smelt {
namespace {

constexpr size_t kMaxRequests = 1000;
constexpr uint64_t kWarmupSeed = 1;

std::set<int64_t> WarmupBatches(const ConverterOptions& options) {
  std::set<int64_t> sizes;
  for (const BatchOption& b : options.batch_options) {
    sizes.insert(b.allowed_batch_sizes.begin(), b.allowed_batch_sizes.end());
    if (b.allowed_batch_sizes.empty() && b.max_batch_size > 0) sizes.insert(b.max_batch_size);
  }
  if (sizes.empty()) sizes.insert(1);
  return sizes;
}

bool HasOpenBatch(const Signature& s) {
  for (const auto& [key, slot] : LoadedModel::Slots(s.inputs)) {
    if (slot.shape.known_rank() && slot.shape.rank() > 0 && slot.shape[0] < 0) return true;
  }
  return false;
}

// The records of the file, as they are.
StatusOr<std::vector<std::string>> ReadRequests(const std::string& path) {
  std::vector<std::string> out;
  if (!Exists(path)) return out;
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(path));
  while (true) {
    auto next = reader.Next();
    if (!next.ok()) return Prefix(next.status(), absl::StrCat(path, ": "));
    if (!*next) return out;
    out.emplace_back(**next);
  }
}

}  // namespace

Status WriteWarmupRequests(Conversion& c, const std::string& dir) {
  const std::string path = dir + "/assets.extra/tf_serving_warmup_requests";
  ASSIGN_OR_RETURN(std::vector<std::string> requests, ReadRequests(path));
  const std::set<std::string> there(requests.begin(), requests.end());
  ASSIGN_OR_RETURN(auto model, LoadedModel::Load(dir, c.meta->tags, {.files = c.files}));
  MadeUpRequests made_up(*model, kWarmupSeed);
  size_t left_out = 0;
  for (const auto& [name, signature] : c.meta->signatures) {
    if (name == kInitSignature) continue;
    std::set<int64_t> batches = WarmupBatches(c.options);
    if (!HasOpenBatch(signature)) batches = {1};
    for (int64_t batch : batches) {
      const auto request = made_up.Ask(name, batch);
      if (!request.ok()) {
        c.records.AddNote("warmup",
                          absl::StrCat("no warm-up request for signature '", name, "' at batch ",
                                       batch, ": ", request.status().message()),
                          name);
        continue;
      }
      PredictionRecord record;
      record.signature = name;
      record.inputs.assign(request->inputs.begin(), request->inputs.end());
      ASSIGN_OR_RETURN(std::string bytes, SerializePredictionLog(record));
      if (there.contains(bytes)) continue;
      if (requests.size() >= kMaxRequests) {
        ++left_out;
      } else {
        requests.push_back(std::move(bytes));
      }
    }
  }
  if (left_out > 0) {
    c.records.AddNote("warmup", absl::StrCat(left_out, " warm-up requests left out: TensorFlow ",
                                             "Serving takes ", kMaxRequests, " at most"));
  }
  if (requests.empty()) return OkStatus();
  std::string out;
  for (const std::string& r : requests) AppendRecord(r, &out);
  RETURN_IF_ERROR(MakeDirs(dir + "/assets.extra"));
  return WriteFileAtomically(path, out);
}

}  // namespace smelt
