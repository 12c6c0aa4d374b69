#include "smelt/lite/quantize/samples.h"

#include "smelt/io/fs.h"
#include "smelt/io/record.h"
#include "smelt/wire/numpy/npy.h"
#include "smelt/wire/options/representative_data.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt {
namespace {

StatusOr<LiteSamples> FromArrays(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NpzNames(bytes));
  LiteSamples out;
  auto& samples = out[kAnySignature];
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const Tensor array, ParseNpzArray(bytes, name));
    if (array.rank() < 1) return InvalidArgument("array '", name, "' has no rows");
    if (name == names[0]) samples.resize(static_cast<size_t>(array.dim(0)));
    if (static_cast<size_t>(array.dim(0)) != samples.size()) {
      return InvalidArgument("array '", name, "' has ", array.dim(0), " rows, '", names[0],
                             "' has ", samples.size());
    }
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      samples[i][name] = array.Rows(row, row + 1);
    }
  }
  return out;
}

StatusOr<LiteSamples> FromRecords(const std::string& path) {
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(path));
  LiteSamples out;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<absl::string_view> record, reader.Next());
    if (!record) return out;
    // Both are messages of tensors by name; a log nests them deeper, which the other refuses.
    const auto log = ParsePredictionLog(*record);
    if (log.ok() && !log->inputs.empty()) {
      const std::string key = log->signature.empty() ? "serving_default" : log->signature;
      out[key].emplace_back(log->inputs.begin(), log->inputs.end());
      continue;
    }
    auto sample = ParseRepresentativeSample(*record);
    if (!sample.ok()) {
      return Prefix(sample.status(),
                    absl::StrCat("the record before byte ", reader.offset(), ": "));
    }
    out[kAnySignature].push_back(*std::move(sample));
  }
}

}  // namespace

StatusOr<LiteSamples> ReadLiteSamples(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, MapFile(path));
  auto out = NumpyFileKindOf(file->bytes()) == NumpyFileKind::kNpz ? FromArrays(file->bytes())
                                                                   : FromRecords(path);
  if (!out.ok()) return Prefix(out.status(), absl::StrCat(path, ": "));
  return out;
}

}  // namespace smelt
