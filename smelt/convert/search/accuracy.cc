#include "smelt/convert/search/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "absl/strings/str_join.h"
#include "smelt/io/fs.h"
#include "smelt/tensor/visit_types.h"
#include "smelt/wire/numpy/npy.h"

namespace smelt {
namespace {

using ScoreTypes = decltype(FloatTypes() + HalfTypes());

template <typename Types>
bool IsOneOf(Types types, Dtype dtype) {
  return VisitTypes(types, dtype, []<typename T>() {});
}

bool NamesClasses(const Tensor& t) { return t.rank() == 1 && IsOneOf(IntTypes(), t.dtype()); }
bool ScoresClasses(const Tensor& t) {
  return t.rank() == 2 && t.dim(1) > 1 && IsOneOf(ScoreTypes(), t.dtype());
}

template <typename T>
double ScoreOf(T score) {
  if constexpr (std::is_same_v<T, double>) return score;
  return static_cast<double>(static_cast<float>(score));
}

// The class that each row of the output names; -1: none.
std::vector<int64_t> ClassesOf(const Tensor& t) {
  std::vector<int64_t> out;
  const bool named = VisitTypes(IntTypes(), t.dtype(), [&]<typename T>() {
    for (const T value : t.flat<T>()) out.push_back(static_cast<int64_t>(value));
  });
  if (named) return out;
  VisitTypes(ScoreTypes(), t.dtype(), [&]<typename T>() {
    const std::span<const T> scores = t.flat<T>();
    const auto classes = static_cast<size_t>(t.dim(1));
    for (size_t row = 0; row < static_cast<size_t>(t.dim(0)); ++row) {
      int64_t best = -1;
      double most = -INFINITY;
      for (size_t k = 0; k < classes; ++k) {
        const double score = ScoreOf(scores[row * classes + k]);
        if (std::isnan(score) || (best >= 0 && score <= most)) continue;
        most = score;
        best = static_cast<int64_t>(k);
      }
      out.push_back(best);
    }
  });
  return out;
}

}  // namespace

StatusOr<RowLabels> ReadRowLabels(const std::string& flag) {
  RowLabels labels;
  std::string path = flag;
  // A file may have the sign in its name.
  if (const size_t sign = flag.find('='); sign != std::string::npos && !Exists(flag)) {
    labels.output = flag.substr(0, sign);
    path = flag.substr(sign + 1);
  }
  ASSIGN_OR_RETURN(const std::string bytes, ReadInput(path));
  auto array = ParseNpy(bytes);
  if (!array.ok()) return Prefix(array.status(), absl::StrCat("--labels: ", path, ": "));
  if (!IsOneOf(IntTypes(), array->dtype())) {
    return InvalidArgument("--labels: ", path, " holds ", DtypeName(array->dtype()),
                           ", not the number of a class for each row");
  }
  if (array->num_elements() == 0) return InvalidArgument("--labels: ", path, " holds no labels");
  VisitTypes(IntTypes(), array->dtype(), [&]<typename T>() {
    for (const T label : array->flat<T>()) labels.classes.push_back(static_cast<int64_t>(label));
  });
  return labels;
}

std::string AccuracyMeter::OutputOf(const std::map<std::string, Tensor>& answer) {
  if (!output_.empty()) return output_;
  std::vector<std::string> found;
  for (const auto& [name, t] : answer) {
    if (ScoresClasses(t) || NamesClasses(t)) found.push_back(name);
  }
  if (found.size() > 1) {
    status_ = InvalidArgument("--labels: which output is meant? Say OUTPUT=FILE; there are ",
                              absl::StrJoin(found, ", "));
  }
  if (found.size() == 1) output_ = found[0];
  return output_;
}

void AccuracyMeter::Add(const std::map<std::string, Tensor>& want,
                        const std::map<std::string, Tensor>& got) {
  const std::string name = OutputOf(want);
  const auto w = want.find(name), g = got.find(name);
  if (!status_.ok() || w == want.end() || g == got.end()) return;
  const Tensor& t = w->second;
  if (!ScoresClasses(t) && !NamesClasses(t)) {
    status_ = InvalidArgument("--labels: output '", name, "' is ", DtypeName(t.dtype()), " ",
                              t.shape().ToString(), ", which has no class for each row");
    return;
  }
  const int64_t classes = ScoresClasses(t) ? t.dim(1) : INT64_MAX;
  const std::vector<int64_t> wanted = ClassesOf(t);
  // What has another type or shape is refused by the comparison of the answers.
  const bool alike = g->second.dtype() == t.dtype() && g->second.shape() == t.shape();
  const std::vector<int64_t> given = alike ? ClassesOf(g->second) : std::vector<int64_t>();
  for (size_t row = 0; row < wanted.size(); ++row, ++rows_) {
    if (rows_ >= std::ssize(labels_.classes)) continue;
    const int64_t label = labels_.classes[static_cast<size_t>(rows_)];
    if (label < 0 || label >= classes) {
      status_ = InvalidArgument("--labels: row ", rows_, " is of class ", label, ", output '", name,
                                "' has ", classes, " classes");
      return;
    }
    wanted_right_ += wanted[row] == label;
    got_right_ += alike && given[row] == label;
  }
}

Status AccuracyMeter::Check() const {
  RETURN_IF_ERROR(status_);
  if (rows_ == 0) {
    return InvalidArgument("--labels: no answer has ",
                           output_.empty() ? "an output with a score for each class"
                                           : absl::StrCat("the output '", output_, "'"));
  }
  if (rows_ != std::ssize(labels_.classes)) {
    return InvalidArgument("--labels: ", labels_.classes.size(), " labels for ", rows_,
                           " rows that the model answers");
  }
  return OkStatus();
}

}  // namespace smelt
