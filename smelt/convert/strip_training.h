// --strip_training: what only training uses leaves the model.
#ifndef SMELT_CONVERT_STRIP_TRAINING_H_
#define SMELT_CONVERT_STRIP_TRAINING_H_

#include <cstdint>
#include <string>
#include <thread>

#include "smelt/convert/records.h"
#include "smelt/convert/variables.h"
#include "smelt/io/file_system.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

// Removes from the model what its signatures, its initialization and the functions that its objects
// serve do not need: optimizers, metrics, traces for training, gradients, MetaGraphs tagged "train"
// or "eval" beside another, and all that only those reach. `meta` is the MetaGraph that is served,
// and points to it afterwards; of others that stay nothing is removed that they restore. Errors of
// reading the checkpoint in model.dir, which `files` must permit.
StatusOr<TrainingParts> StripTraining(SavedModel& model, MetaGraph** meta, const FileSystem& files,
                                      StrippedCheckpoint* checkpoint);

// What StripTraining would take from the model in `dir`, which is read once more: on a thread of
// its own, beside the conversion.
class TrainingMeasurement {
 public:
  // `files` must outlive it.
  TrainingMeasurement(std::string dir, const FileSystem& files);
  ~TrainingMeasurement();
  // Waits for it; asked once. Without a thread it is measured now.
  StatusOr<TrainingParts> Get();

 private:
  StatusOr<TrainingParts> Measure() const;

  std::string dir_;
  const FileSystem& files_;
  std::thread thread_;
  StatusOr<TrainingParts> parts_;  // the thread's until it ended
};

}  // namespace smelt

#endif  // SMELT_CONVERT_STRIP_TRAINING_H_
