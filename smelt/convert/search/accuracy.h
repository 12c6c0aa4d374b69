// Top-1 accuracy of two models on requests whose right classes are known. Not thread safe.
#ifndef SMELT_CONVERT_SEARCH_ACCURACY_H_
#define SMELT_CONVERT_SEARCH_ACCURACY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "smelt/tensor/tensor.h"

namespace smelt {

// The right class of each row of the requests, in their order.
struct RowLabels {
  std::string output;  // whose rows they are; empty: the model's only one that has classes
  std::vector<int64_t> classes;
};
// What `--labels` says: FILE.npy, or OUTPUT=FILE.npy. INVALID_ARGUMENT for a file that holds no
// whole numbers, or none at all; errors of reading it.
StatusOr<RowLabels> ReadRowLabels(const std::string& flag);

// Counts right answers. A row of an output is a score for each class, of which the largest counts
// (the first of equal ones, none of NaN), or, of whole numbers in one dimension, the class itself.
class AccuracyMeter {
 public:
  // `labels` must outlive it.
  explicit AccuracyMeter(const RowLabels& labels) : labels_(labels), output_(labels.output) {}

  // Both models' answers to the next request. Answers without the output have no rows.
  void Add(const std::map<std::string, Tensor>& want, const std::map<std::string, Tensor>& got);
  // INVALID_ARGUMENT when the answers had no such output, several that may be meant, classes that
  // labels are not among, or another number of rows than there are labels.
  Status Check() const;

  // The part of the rows that each model is right about. REQUIRES: Check() is OK.
  double wanted() const { return Part(wanted_right_); }
  double got() const { return Part(got_right_); }
  int64_t rows() const { return rows_; }

 private:
  double Part(int64_t right) const {
    return static_cast<double>(right) / static_cast<double>(rows_);
  }
  std::string OutputOf(const std::map<std::string, Tensor>& answer);

  const RowLabels& labels_;
  std::string output_;
  Status status_;
  int64_t rows_ = 0, wanted_right_ = 0, got_right_ = 0;
};

}  // namespace smelt

#endif  // SMELT_CONVERT_SEARCH_ACCURACY_H_
