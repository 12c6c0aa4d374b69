// Requests made up for a model's signatures: to warm a server up, and to compare two models.
#ifndef SMELT_MODEL_MADE_UP_REQUESTS_H_
#define SMELT_MODEL_MADE_UP_REQUESTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "smelt/analysis/value_uses.h"
#include "smelt/model/loaded_model.h"
#include "smelt/model/made_up_values.h"

namespace smelt {

// Looks at what the graph does with its inputs (analysis/value_uses.h): integers stay below the
// rows that they index, strings are Examples, images, numbers or keys of tables where the model
// reads such. What no analysis tells is tried: sizes that are open (the same for one dimension of
// all inputs), ranks, smaller integers. The same seed and model give the same requests. Not thread
// safe.
class MadeUpRequests {
 public:
  // How long an answer may take: a loop may never end for values that nobody meant.
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  // REQUIRES: the model outlives this.
  MadeUpRequests(LoadedModel& model, uint64_t seed, absl::Duration patience = kPatience);

  struct Answered {
    NamedTensors inputs, outputs;
  };
  // One that the model answers; dimension 0 is `batch` where it is open (0: drawn from 1 to 3).
  // Several are tried, a bounded number for each signature; the error of the first one when the
  // model refuses them all. UNIMPLEMENTED for inputs of types without made-up values, and
  // composite ones; RESOURCE_EXHAUSTED for very large ones; DEADLINE_EXCEEDED;
  // errors of LoadedModel::FindSignature.
  StatusOr<Answered> Ask(const std::string& signature, int64_t batch);
  // As the one that Ask found last, not asked.
  StatusOr<NamedTensors> Make(const std::string& signature, int64_t batch);

 private:
  // What is tried: how a request is made.
  struct Style {
    int64_t size = 0;   // of open dimensions other than the first; 0: drawn from 1 to 3
    int64_t batch = 0;  // of open first ones, where the caller leaves it open, too
    int rank = 2;       // where it is unknown
    ValueStyle values;
  };
  struct State {
    explicit State(MadeUpValues v) : values(std::move(v)) {}
    MadeUpValues values;
    std::map<std::string, LoadedModel::Slot> slots;
    std::map<std::string, ValueUse> uses;
    std::map<std::string, PartialShape> sparse;  // of sparse inputs' dense_shape slots
    std::vector<Style> styles;
    size_t style = 0;
    int64_t made = 0;
    Status refused;
  };

  StatusOr<State*> Of(const std::string& signature);
  static std::vector<Style> StylesFor(const State& state);
  StatusOr<NamedTensors> MakeIn(State& state, const Style& style, int64_t batch);
  void FindTableKeys();

  LoadedModel& model_;
  const uint64_t seed_;
  const absl::Duration patience_;
  MadeUpValues::TableKeys keys_;
  std::map<std::string, State> states_;
};

}  // namespace smelt

#endif  // SMELT_MODEL_MADE_UP_REQUESTS_H_
