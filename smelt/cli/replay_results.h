// What became of recorded requests: how each answer compares with the recorded one.
#ifndef SMELT_CLI_REPLAY_RESULTS_H_
#define SMELT_CLI_REPLAY_RESULTS_H_

#include <map>
#include <string>
#include <vector>

#include "smelt/model/loaded_model.h"
#include "smelt/tensor/compare.h"
#include "smelt/wire/records/prediction_log.h"

namespace smelt {

struct AnswerRules {
  Tolerance tolerance;
  std::vector<std::string> shapes_only;  // outputs of which only dtype and shape are compared
};

// One answer beside the recorded one.
struct AnswerResult {
  bool ok = false;
  Status status;    // of the request
  std::string why;  // what differs, when the request succeeded
  std::map<std::string, Comparison> outputs;
};
// Thread safe.
AnswerResult JudgeAnswer(const PredictionRecord& record, const StatusOr<NamedTensors>& answer,
                         const AnswerRules& rules);

// All answers to one record. Not thread safe.
struct RecordResult {
  int answers = 0, differing = 0;
  Status status;    // of the first request that did not do what was recorded, else of the last one
  std::string why;  // what the first answer that differs differs in
  std::map<std::string, Comparison> outputs;  // the largest differences of all answers
  double ms = 0;                              // that the last request took

  bool ok() const { return answers > 0 && differing == 0; }
  void Add(AnswerResult answer, double took_ms);
  // What is wrong, in a line.
  std::string Complaint() const;
};

// "" means the default.
std::string SignatureOf(const PredictionRecord& record);
// The line of replay --json.
std::string RecordJson(int number, const std::string& signature, const RecordResult& r);

// All records of a signature.
struct SignatureResult {
  int records = 0, differing = 0;
  bool exact = true;  // every output of a type that is compared exactly
  double max_abs = 0, max_rel = 0, max_range = 0;

  void Add(const PredictionRecord& record, const RecordResult& r);
  std::string Line(const std::string& name, const Tolerance& tolerance) const;
};

}  // namespace smelt

#endif  // SMELT_CLI_REPLAY_RESULTS_H_
