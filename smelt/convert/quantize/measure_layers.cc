// How far each layer's output moved. Both models run on the first samples, and the outputs of each
// layer are compared: that includes the errors of the layers before it. For a layer's own error the
// float layer is run on the input that the quantized layer got.
#include <cmath>
#include <filesystem>

#include "smelt/convert/quantize/observe.h"
#include "smelt/graph/graph.h"
#include "smelt/io/fs.h"
#include "smelt/io/temporary_folder.h"
#include "smelt/kernels/run_op.h"

namespace smelt::quantize {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kMaxSamples = 16;
constexpr size_t kMaxSamplesAlone = 4;
// The first elements of each output that are compared: all layers' outputs are in memory at once.
constexpr int64_t kMaxElements = 1 << 16;

// Variables and assets of the quantized model, for as long as it is measured.
class QuantizedFolder {
 public:
  explicit QuantizedFolder(Conversion& c) : c_(c) {}
  StatusOr<std::string> Make() {
    if (c_.variables == nullptr || !c_.variables->changed()) return c_.model.dir;
    ASSIGN_OR_RETURN(folder_, TemporaryFolder::Make("smelt_quantize"));
    const stdfs::path path = folder_->path();
    RETURN_IF_ERROR(MakeDirs((path / "variables").string()));
    RETURN_IF_ERROR(c_.variables->WriteBundle((path / "variables" / "variables").string()));
    std::error_code e;
    const stdfs::path assets = stdfs::absolute(stdfs::path(c_.model.dir) / "assets", e);
    if (stdfs::exists(assets, e)) stdfs::create_directory_symlink(assets, path / "assets", e);
    if (e) return Internal("linking ", assets.string(), ": ", e.message());
    return path.string();
  }

 private:
  Conversion& c_;
  std::unique_ptr<TemporaryFolder> folder_;
};

using Captured = std::vector<std::vector<std::vector<float>>>;  // by id, by call

struct LayerError {
  double squares = 0, wrong = 0;
  void Add(double want, double got) {
    const double d = want - got;
    if (!std::isfinite(want) || !std::isfinite(d)) return;
    squares += want * want;
    wrong += d * d;
  }
  double relative() const { return squares > 0 ? std::sqrt(wrong / squares) : 0; }
};

std::vector<float> FirstElements(const Tensor& value) {
  const auto v = value.flat<float>();
  const auto n = std::min<int64_t>(kMaxElements, value.num_elements());
  return std::vector<float>(v.begin(), v.begin() + n);
}

Status Capture(ObservedModel& model, const SampleSet& set, size_t sample, Captured* out) {
  for (auto& calls : *out) calls.clear();
  return model
      .Run(set.signature, set.samples[sample],
           [&](int id, const Tensor& value) { (*out)[id].push_back(FirstElements(value)); })
      .status();
}

// Runs the float layers by themselves. `plain` is the model before quantization.
class LayersAlone {
 public:
  LayersAlone(const LayerSet& set, const Conversion& c, MetaGraph plain)
      : plain_(std::move(plain)), set_(set), inputs_(set.layers.size()) {
    for (const auto& l : set.layers) {
      const QuantizedLayer& record = c.records.layers[l->record];
      const Function* f =
          record.function == "-" ? nullptr : plain_.graph->library()->Find(record.function);
      const Graph& g = f != nullptr ? *f->body : *plain_.graph;
      const bool measured = l->read.node != nullptr && l->kind != LayerKind::kGather;
      nodes_.push_back(measured ? g.Find(record.node) : nullptr);
    }
    errors.resize(set.layers.size());
  }

  // Is the layer run alone, so that its input has to be observed?
  bool Wants(size_t i) const { return nodes_[i] != nullptr; }
  void Input(size_t i, const Tensor& value) { inputs_[i] = value; }
  void Output(size_t i, const std::vector<float>& got) {
    if (!Wants(i) || !inputs_[i].valid()) return;
    auto want = Result(i, std::exchange(inputs_[i], Tensor()));
    if (!want.ok() || want->dtype() != Dtype::kFloat) return;
    const Layer& l = *set_.layers[i];
    const auto values = want->flat<float>();
    for (size_t k = 0; k < std::min(got.size(), values.size()); ++k) {
      const size_t channel = k % static_cast<size_t>(l.channels);
      double v = values[k] * l.multiplier[l.multiplier.size() == 1 ? 0 : channel];
      if (!l.bias.empty()) v += l.bias[l.bias.size() == 1 ? 0 : channel];
      if (l.relu) v = std::max(v, 0.0);
      if (l.relu6) v = std::min(v, 6.0);
      errors[i].Add(v, got[k]);
    }
  }

  std::vector<LayerError> errors;

 private:
  StatusOr<Tensor> Result(size_t i, Tensor input) const {
    const Layer& l = *set_.layers[i];
    std::vector<Tensor> inputs(2);
    inputs[l.input] = std::move(input);
    inputs[l.weights_input] = l.weight_value;
    Step step;
    ResourceManager resources, of_step;
    step.resources = &resources;
    step.step_resources = &of_step;
    ASSIGN_OR_RETURN(const auto outputs, RunOp(*nodes_[i], std::move(inputs), step));
    return outputs[0];
  }

  const MetaGraph plain_;
  const LayerSet& set_;
  std::vector<const Node*> nodes_;  // nullptr: not measured
  std::vector<Tensor> inputs_;
};

void Accumulate(const Captured& want, const Captured& got, std::vector<LayerError>* errors) {
  for (size_t id = 0; id < want.size(); ++id) {
    if (want[id].size() != got[id].size()) continue;
    for (size_t call = 0; call < want[id].size(); ++call) {
      if (want[id][call].size() != got[id][call].size()) continue;
      for (size_t i = 0; i < want[id][call].size(); ++i) {
        (*errors)[id].Add(want[id][call][i], got[id][call][i]);
      }
    }
  }
}

}  // namespace

Status MeasureLayers(Conversion& c, LayerSet& set, MetaGraph plain) {
  ASSIGN_OR_RETURN(const std::vector<SampleSet> samples, ReadSamples(c));
  std::vector<ObservedTensor> before, after;
  ASSIGN_OR_RETURN(MetaGraph whole, CopyModel(plain));
  LayersAlone alone(set, c, std::move(whole));
  const auto layers = static_cast<int>(set.layers.size());
  for (size_t i = 0; i < set.layers.size(); ++i) {
    const Layer& l = *set.layers[i];
    ObservedTensor t;
    t.id = static_cast<int>(i);
    const bool int8 = l.written.node->output_types[l.written.port] == Dtype::kInt8;
    // Looked-up rows of int8 weights, which are dequantized behind the lookup.
    if (int8 && l.written_int8.node == nullptr) continue;
    t.key = l.output_key;
    before.push_back(t);
    t.key = KeyOf(*l.scope, l.written);
    t.int8 = int8;
    t.scale = l.written_scale;
    after.push_back(t);
    if (!alone.Wants(i)) continue;
    t.id += layers;
    t.key = KeyOf(*l.scope, l.read);
    t.int8 = l.read.node->output_types[l.read.port] == Dtype::kInt8;
    t.scale = l.read_scale;
    after.push_back(t);
  }
  ASSIGN_OR_RETURN(const auto float_model,
                   ObservedModel::Load(std::move(plain), c.model.dir, c.files, before));
  if (c.variables != nullptr) RETURN_IF_ERROR(c.variables->UpdateObjectGraph());
  QuantizedFolder folder(c);
  ASSIGN_OR_RETURN(const std::string dir, folder.Make());
  ASSIGN_OR_RETURN(MetaGraph copy, CopyModel(*c.meta));
  auto quantized = ObservedModel::Load(std::move(copy), dir, c.files, after);
  if (!quantized.ok()) return Prefix(quantized.status(), "loading the quantized model: ");
  std::vector<LayerError> errors(set.layers.size());
  Captured want(set.layers.size()), got(set.layers.size());
  int64_t done = 0, all = 0;
  for (const SampleSet& s : samples) {
    all += static_cast<int64_t>(std::min<size_t>(s.samples.size(), kMaxSamples));
  }
  for (const SampleSet& s : samples) {
    for (size_t i = 0; i < s.samples.size() && i < kMaxSamples; ++i) {
      if (c.count) c.count(++done, all);
      RETURN_IF_ERROR(Capture(*float_model, s, i, &want));
      for (auto& calls : got) calls.clear();
      const auto look = [&](int id, const Tensor& value) {
        if (id >= layers) {
          if (i < kMaxSamplesAlone) alone.Input(id - layers, value);
          return;
        }
        got[id].push_back(FirstElements(value));
        alone.Output(id, got[id].back());
      };
      if (Status status = (*quantized)->Run(s.signature, s.samples[i], look).status();
          !status.ok()) {
        return Prefix(status, "running the quantized model: ");
      }
      Accumulate(want, got, &errors);
    }
  }
  for (size_t i = 0; i < set.layers.size(); ++i) {
    QuantizedLayer& record = c.records.layers[set.layers[i]->record];
    record.output_error = errors[i].relative();
    record.own_error = alone.errors[i].relative();
  }
  return OkStatus();
}

}  // namespace smelt::quantize
