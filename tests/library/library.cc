#include "tests/library/library.h"

#include <memory>
#include <string>

#include "smelt/io/record.h"
#include "smelt/model/loaded_model.h"
#include "smelt/tensor/compare.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt {
namespace {

const char* TextOf(const Status& status) {
  thread_local std::string text;
  text = status.ToString();
  return status.ok() ? nullptr : text.c_str();
}

StatusOr<std::unique_ptr<LoadedModel>> Load(int threads, const std::string& dir) {
  SessionOptions options;
  options.threads = threads;
  return LoadedModel::Load(dir, {"serve"}, options);
}

Status Replay(int threads, const std::string& dir, const std::string& log) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model, Load(threads, dir));
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(log));
  int records = 0;
  for (;; ++records) {
    ASSIGN_OR_RETURN(const auto bytes, reader.Next());
    if (!bytes) break;
    ASSIGN_OR_RETURN(const PredictionRecord record, ParsePredictionLog(*bytes));
    ASSIGN_OR_RETURN(
        const NamedTensors got,
        model->RunSignature("serving_default", {record.inputs.begin(), record.inputs.end()}));
    for (const auto& [name, want] : record.outputs) {
      const auto found = got.find(name);
      if (found == got.end()) return Internal("no output ", name);
      const Comparison same = Compare(want, found->second, Tolerance{});
      if (!same.equal) return Internal("output ", name, " of record ", records, ": ", same.why);
    }
  }
  return records > 0 ? OkStatus() : Internal("no records in ", log);
}

Status Run(int threads, const std::string& dir, const std::string& input_name,
           std::span<const int64_t> dims, const float* input, const std::string& output_name,
           std::span<float> output) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model, Load(threads, dir));
  ASSIGN_OR_RETURN(Tensor x, Tensor::Make(Dtype::kFloat, Shape(dims)));
  std::copy_n(input, x.num_elements(), x.data<float>());
  ASSIGN_OR_RETURN(const NamedTensors got,
                   model->RunSignature("serving_default", {{input_name, x}}));
  const auto found = got.find(output_name);
  if (found == got.end() || found->second.dtype() != Dtype::kFloat ||
      found->second.num_elements() != std::ssize(output)) {
    return Internal("no such output ", output_name);
  }
  std::copy_n(found->second.data<float>(), output.size(), output.begin());
  return OkStatus();
}

}  // namespace
}  // namespace smelt

const char* smelt_check_replay(int threads, const char* model, const char* log) {
  return smelt::TextOf(smelt::Replay(threads, model, log));
}

const char* smelt_check_run(int threads, const char* model, const char* input_name, int rank,
                            const int64_t* dims, const float* input, const char* output_name,
                            int64_t outputs, float* output) {
  return smelt::TextOf(smelt::Run(threads, model, input_name, {dims, static_cast<size_t>(rank)},
                                  input, output_name, {output, static_cast<size_t>(outputs)}));
}
