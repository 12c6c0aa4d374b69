// How far each layer's output moved: both models run on the first samples, layer by layer compared.
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "smelt/convert/quantize/observe.h"
#include "smelt/io/fs.h"

namespace smelt::quantize {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kMaxSamples = 16;
// Of each output so many elements are compared: outputs of all layers are in memory at once.
constexpr int64_t kMaxElements = 1 << 16;

// Variables and assets of the quantised model, for as long as it is measured.
class QuantizedFolder {
 public:
  explicit QuantizedFolder(Conversion& c) : c_(c) {
    std::error_code ignored;
    path_ = stdfs::temp_directory_path(ignored) / absl::StrCat("smelt-quantize-", getpid());
  }
  ~QuantizedFolder() {
    std::error_code ignored;
    stdfs::remove_all(path_, ignored);
  }
  StatusOr<std::string> Make() {
    if (c_.variables == nullptr || !c_.variables->changed()) return c_.model.dir;
    RETURN_IF_ERROR(MakeDirs((path_ / "variables").string()));
    RETURN_IF_ERROR(c_.variables->WriteBundle((path_ / "variables" / "variables").string()));
    std::error_code e;
    const stdfs::path assets = stdfs::absolute(stdfs::path(c_.model.dir) / "assets", e);
    if (stdfs::exists(assets, e)) stdfs::create_directory_symlink(assets, path_ / "assets", e);
    if (e) return Internal("linking ", assets.string(), ": ", e.message());
    return path_.string();
  }

 private:
  Conversion& c_;
  stdfs::path path_;
};

using Captured = std::vector<std::vector<std::vector<float>>>;  // by id, by call

struct LayerError {
  double squares = 0, wrong = 0;
};

Status Capture(ObservedModel& model, const SampleSet& set, size_t sample, Captured* out) {
  for (auto& calls : *out) calls.clear();
  return model
      .Run(set.signature, set.samples[sample],
           [&](int id, const Tensor& value) {
             const auto v = value.flat<float>();
             const auto n = std::min<int64_t>(kMaxElements, value.num_elements());
             (*out)[id].emplace_back(v.begin(), v.begin() + n);
           })
      .status();
}

void Accumulate(const Captured& want, const Captured& got, std::vector<LayerError>* errors) {
  for (size_t id = 0; id < want.size(); ++id) {
    if (want[id].size() != got[id].size()) continue;
    for (size_t call = 0; call < want[id].size(); ++call) {
      if (want[id][call].size() != got[id][call].size()) continue;
      for (size_t i = 0; i < want[id][call].size(); ++i) {
        const double w = want[id][call][i], d = w - got[id][call][i];
        if (!std::isfinite(w) || !std::isfinite(d)) continue;
        (*errors)[id].squares += w * w;
        (*errors)[id].wrong += d * d;
      }
    }
  }
}

}  // namespace

Status MeasureLayers(Conversion& c, LayerSet& set, MetaGraph plain) {
  ASSIGN_OR_RETURN(const std::vector<SampleSet> samples, ReadSamples(c));
  std::vector<ObservedTensor> before, after;
  for (size_t i = 0; i < set.layers.size(); ++i) {
    const Layer& l = *set.layers[i];
    ObservedTensor t;
    t.id = static_cast<int>(i);
    const bool int8 = l.written.node->output_types[l.written.port] == Dtype::kInt8;
    // Rows that are looked up become floats somewhere behind.
    if (int8 && l.written_int8.node == nullptr) continue;
    t.key = l.output_key;
    before.push_back(t);
    t.key = KeyOf(*l.scope, l.written);
    t.int8 = int8;
    t.scale = l.written_scale;
    after.push_back(t);
  }
  ASSIGN_OR_RETURN(const auto float_model,
                   ObservedModel::Load(std::move(plain), c.model.dir, before));
  if (c.variables != nullptr) RETURN_IF_ERROR(c.variables->UpdateObjectGraph());
  QuantizedFolder folder(c);
  ASSIGN_OR_RETURN(const std::string dir, folder.Make());
  ASSIGN_OR_RETURN(MetaGraph copy, CopyModel(*c.meta));
  auto quantized = ObservedModel::Load(std::move(copy), dir, after);
  if (!quantized.ok()) return Prefix(quantized.status(), "loading the quantised model: ");
  std::vector<LayerError> errors(set.layers.size());
  Captured want(set.layers.size()), got(set.layers.size());
  for (const SampleSet& s : samples) {
    for (size_t i = 0; i < s.samples.size() && i < kMaxSamples; ++i) {
      RETURN_IF_ERROR(Capture(*float_model, s, i, &want));
      if (Status status = Capture(**quantized, s, i, &got); !status.ok()) {
        return Prefix(status, "running the quantised model: ");
      }
      Accumulate(want, got, &errors);
    }
  }
  for (size_t i = 0; i < set.layers.size(); ++i) {
    const LayerError& e = errors[i];
    c.records.layers[set.layers[i]->record].output_error =
        e.squares > 0 ? std::sqrt(e.wrong / e.squares) : 0;
  }
  return OkStatus();
}

}  // namespace smelt::quantize
