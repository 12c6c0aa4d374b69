// Quantization: pieces that the files of this folder share. The stage is quantize.cc; what it
// writes is docs/quantization.md. Names are of the float model unless said otherwise. Not thread
// safe.
#ifndef SMELT_CONVERT_QUANTIZE_QUANTIZE_H_
#define SMELT_CONVERT_QUANTIZE_QUANTIZE_H_

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "smelt/convert/stages.h"
#include "smelt/graph/shape/infer.h"

namespace smelt::quantize {

// A graph whose layers are quantized: a function's body, or the main graph as far as it is served.
struct Scope {
  Function* function = nullptr;  // nullptr: the main graph
  Graph* graph = nullptr;
  absl::flat_hash_set<const Node*> nodes;  // candidates for layers
  // Read from outside the graph: results of the function, tensors of signatures. Control results
  // have port -1.
  std::vector<Endpoint> results;
  std::string name() const { return function ? function->name() : "-"; }
  bool IsResult(Endpoint e) const;
};
// What the signatures reach. NOT_FOUND names a signature that the model lacks.
StatusOr<std::vector<Scope>> FindScopes(Conversion& c, const std::vector<std::string>& signatures);
// Quantization-aware training left FakeQuant nodes, served or not.
bool TrainedWithFakeQuant(const MetaGraph& meta);

// Values of tensors before anything runs: constants, variables that nothing served assigns, and
// what is computed from them. `variables` must outlive it; results are kept, so graphs must not
// change.
// An argument of a function is known where all calls of the whole model pass the same, and loops
// pass it on.
class KnownValues {
 public:
  KnownValues(Conversion& c, ModelVariables& variables);
  // The variable of the handle, when it can be no other and nothing served assigns it; else
  // nullptr.
  ModelVariable* ReadOnlyVariable(const Scope& scope, Endpoint handle) const;
  // Empty when the value is not known.
  std::optional<Tensor> Of(const Scope& scope, Endpoint e, int depth = 0) const;
  // What the argument (an endpoint of an _Arg) is at all calls of its function.
  struct Passed {
    Function* caller = nullptr;  // nullptr: the main graph
    Endpoint value;
  };
  std::optional<Passed> PassedAs(Endpoint argument) const { return PassedAs(argument, 0); }

 private:
  void FindCalls(Function* caller, const Graph& graph);
  void AddCall(Endpoint argument, Passed passed);
  // Behind identities, and out of functions.
  Passed Origin(Passed passed, int depth) const;
  std::optional<Passed> PassedAs(Endpoint argument, int depth) const;
  std::vector<Tensor> Compute(const Scope& scope, const Node& n, int depth) const;

  ModelVariables& variables_;
  // By argument, from each call; no node: not known.
  absl::flat_hash_map<std::pair<const Node*, int>, std::vector<Passed>> passed_;
  absl::flat_hash_set<const ModelVariable*> change_;  // assigned by what is served, or not stored
  mutable absl::flat_hash_map<const Node*, std::vector<Tensor>> computed_;  // empty: not known
};

struct Range {
  float min = 0, max = 0;
};
// real value = scale * (int8 value - zero_point).
struct ActivationScale {
  float scale = 1;
  int zero_point = 0;
};

// By place in the float model. Node names are unique in a function.
using TensorKey = std::pair<std::string, std::string>;  // scope, "node:port"
TensorKey KeyOf(const Scope& scope, Endpoint e);

class WeightFlow;

// What is stored as int8: symmetric, scale `scales[i]` where i runs over `scale_shape`, which
// broadcasts against the trailing dimensions.
struct Weights {
  ModelVariable* variable = nullptr;  // or
  Node* constant = nullptr;           // the node whose value they are, when no variable
  Scope* scope = nullptr;             // of `constant`
  Tensor value;                       // float
  Shape scale_shape;
  std::vector<float> scales;
  Node* quantized = nullptr;  // the int8 constant, once made
  // Where the value goes as int8 from `constant` or the variable's reads, which it replaces there;
  // nullptr: nowhere.
  std::shared_ptr<WeightFlow> flow;
  // Copies of kMove steps for int8, by what they read.
  std::map<std::tuple<const Node*, int, const Node*>, Node*> moves;
  bool floats_made = false;  // the int8 constant has been dequantized for its other readers
  // Root mean square of the rounding, relative to the weights' own.
  double error = 0;
};
// Fills scales and error. INVALID_ARGUMENT when there is a NaN or infinity.
Status ChooseScales(Weights& w);
// The weights as int8, in their own shape.
StatusOr<Tensor> QuantizeWeights(const Tensor& value, const Shape& scale_shape,
                                 const std::vector<float>& scales);

enum class LayerKind { kConv, kConv3d, kDepthwise, kMatMul, kBatchMatMul, kEinsum, kGather };

// An Einsum (XlaDot is one) of a tensor and known weights as one matrix product: what the tensor
// shares with the weights is summed over, the rest of either stays. Orders are permutations, empty
// where there is nothing to move.
struct ProductForm {
  std::vector<int32_t> input_order;    // so that what is summed over comes last
  std::vector<int32_t> weights_order;  // so that it comes first, in the same order
  std::vector<int32_t> output_order;   // from the input's rest and the weights' rest
  bool weights_last = false;           // in the weights it comes last, and stays there
  int summed = 1;                      // how many dimensions are summed over
  int input_rank = 0;
  Dims channels;                         // the weights' rest
  std::vector<int64_t> channel_strides;  // by dimension of the weights: channels per step
};

// One node on the way from what is stored to the layer that it is the weights of.
struct WeightStep {
  enum Kind {
    kSame,     // the values as they are
    kMove,     // elements in another place, or some of them
    kScale,    // every element times, or by, a known number
    kCompute,  // anything else
  };
  Node* node = nullptr;
  int input = 0;                 // where the values come in
  int port = 0;                  // and go out
  std::vector<Tensor> operands;  // the values of the other inputs; none of kSame
  Kind kind = kSame;
};
// The way itself, and what it does to the channels of the layer.
struct WeightChain {
  Endpoint source;         // ReadVariableOp or Const; of a gather from a variable its handle
  Scope* scope = nullptr;  // of `source`
  std::vector<WeightStep> steps;
  // Where they become an argument of the layer's function; no node: they do not. Values that
  // changed before are no longer what is stored.
  Endpoint entry;
  bool changed_before_entry = false;
  bool Has(WeightStep::Kind kind) const;
};
// From `e` back to what is stored. Empty where that is neither a constant nor a variable that is
// read, or what lies between is not known.
std::optional<WeightChain> FollowWeights(std::vector<Scope>& scopes, Scope& scope, Endpoint e,
                                         const KnownValues& known);
// What steps of the kinds make of a float tensor of the stored shape.
StatusOr<Tensor> RunSteps(const WeightChain& chain, Tensor x,
                          std::initializer_list<WeightStep::Kind> kinds);

// A float op with known weights, and what follows it that becomes part of it:
// output = activation(multiplier * op(input) + bias), by channel.
struct Layer {
  Scope* scope = nullptr;
  Node* node = nullptr;
  LayerKind kind = LayerKind::kMatMul;
  int input = 0;  // which input of the node is the activation
  int weights_input = 1;
  WeightChain chain;
  Weights* weights = nullptr;
  Tensor weight_value;  // float, in the shape that the layer reads
  // Channels per step of each dimension of weight_value; 0: the dimension is no channel.
  std::vector<int64_t> channel_strides;
  // By dimension of weights->value: where in it each channel lies. Empty: a channel has many
  // places.
  std::vector<std::vector<int64_t>> places;
  std::vector<float> factors{1};  // what the chain multiplies by: one, or one per channel
  std::vector<float> scales{1};   // of the int8 weights that the layer reads, alike
  // It stays a float op, and its int8 weights become floats before it.
  bool weight_only = false;
  int64_t channels = 1;
  Dims channel_dims;                  // the output's last dimensions, which are channels
  int output_rank = 2;                // or more
  int64_t terms = 1;                  // products in one sum
  std::vector<double> multiplier{1};  // one, or one per channel
  std::vector<double> bias;           // none, or one per channel
  Endpoint linear;                    // the result before the activation
  Node* activation = nullptr;         // Relu or Relu6
  Endpoint output;
  TensorKey output_key;  // of `output` in the float model
  size_t record = 0;     // in c.records.layers
  // Where the quantized model has the output: as floats, or as int8 where nobody reads floats.
  Endpoint written, written_int8;
  ActivationScale written_scale;
  // Where the quantized model has its input: int8 at this scale, or floats. No node: nowhere yet.
  Endpoint read;
  ActivationScale read_scale;
  bool relu = false, relu6 = false;  // what `activation` was; its node may have been removed
  bool int8_wanted = false;          // another layer, or a sum that becomes int8, reads it
};

struct LayerSet {
  std::vector<std::unique_ptr<Layer>> layers;
  std::map<const void*, std::unique_ptr<Weights>> weights;  // by variable or constant node
};
// All layers of the scopes that the options let be quantized. Every candidate gets a record, those
// left out with their reason.
StatusOr<LayerSet> FindLayers(Conversion& c, std::vector<Scope>& scopes, const KnownValues& known);
// Fills weight_value, places and factors of a layer whose chain, weights and channels are known.
// False when its channels cannot be told apart in what is stored: the layer must be weight_only.
bool FitChannels(Layer& layer, bool by_channel);
// Where what is stored goes; nullptr where some place on the way may hold something else, too.
StatusOr<std::shared_ptr<WeightFlow>> FollowValue(Conversion& c, const std::vector<Scope>& scopes,
                                                  const Weights& w);
bool PassesThrough(const WeightFlow& flow, Endpoint e);
// Makes all places of w.flow int8, and the constant. Readers are DequantizePlaces' to serve.
Status PassInt8(Weights& w);
Status DequantizePlaces(Conversion& c, const Weights& w);
// Names of nodes of the main graph that the object graph's functions captured: they must stay.
StatusOr<absl::flat_hash_set<std::string>> CapturedConstants(const MetaGraph& meta);
// The layer stays a float op: its weights alone are quantized, where they are no fewer than
// min_num_elements_for_weights, else nothing is (false). Its record says why.
bool WeightsAlone(Conversion& c, Layer& layer, std::string reason);
// Extends the layer by what follows it and can be folded into its multiplier, bias and activation.
void AbsorbFollowers(Layer& layer, const KnownValues& known);
// Of an Einsum layer whose weights are known; `input_rank` is -1 where it is not known, which
// matters when there is an ellipsis. INVALID_ARGUMENT says why it is no matrix product.
StatusOr<ProductForm> ProductFormOf(const Layer& layer, int input_rank);
// Marks the layer's record as not quantized, with the reason. Taking it out of its set is the
// caller's part.
void LeaveFloat(Conversion& c, Layer& layer, std::string reason);

// Asymmetric int8 with 0 in the range.
ActivationScale ScaleOf(Range range);

using Ranges = std::map<TensorKey, Range>;

// The tensors whose ranges static range needs: the layers' inputs, or the layer outputs behind
// them.
std::vector<std::pair<Scope*, Endpoint>> TensorsToCalibrate(const LayerSet& set);
// Runs the model on the samples. Tensors that had no finite value are left out.
StatusOr<Ranges> Calibrate(Conversion& c, const std::vector<std::pair<Scope*, Endpoint>>& tensors);
// Ranges that the training put into FakeQuant nodes, by what they read.
Ranges FakeQuantRanges(const std::vector<Scope>& scopes, const KnownValues& known);
// The node is a product (MatMul, BatchMatMul*) whose second operand is taken transposed. (grad_x
// and grad_y of BatchMatMul* say what an operand is, and change nothing.)
bool WeightsTransposed(const Node& n);
// The node is FakeQuantWithMinMax* of 8 bits.
bool IsFakeQuant(const Node& n);

// Rewriting, by method. The layers' variables become int8 in the checkpoint.
Status WriteStaticRange(Conversion& c, LayerSet& set, std::vector<Scope>& scopes, Ranges ranges);
Status WriteDynamicRange(Conversion& c, LayerSet& set, std::vector<Scope>& scopes);
Status WriteWeightOnly(Conversion& c, LayerSet& set, std::vector<Scope>& scopes);

// Writes the layers that are weight_only, of any method, between StoreWeights and
// DequantizeReaders. `dead` gets nodes that nothing may read any longer.
using DeadNodes = absl::flat_hash_map<const Scope*, std::vector<Node*>>;
Status WriteFloatLayers(Conversion& c, LayerSet& set, DeadNodes* dead);

// Chooses scales by channel where the options allow, records the weights' errors and stores the
// layers' variables as int8. From here until DequantizeReaders graphs may not verify: readers of
// the variables get int8, whatever they want.
Status StoreWeights(Conversion& c, LayerSet& set);
// The int8 weights as they are stored, in the graph of the layer's chain.source; a constant is made
// when first asked for.
StatusOr<Endpoint> StoredInt8(const Layer& layer);
// And as the layer reads them, in its graph. Of layers that are not weight_only.
StatusOr<Endpoint> Int8Weights(const Layer& layer);
// Gives readers of the int8 tensor `q` that want floats the dequantized tensor; results of `f`,
// too, unless the weights pass through calls.
Status DequantizeForFloats(Conversion& c, Graph& g, Function* f, Endpoint q, const Weights& w);
// The same weights by their values.
StatusOr<Tensor> Int8Values(const Layer& layer);
// Every reader of an int8 variable that wants floats gets them.
Status DequantizeReaders(Conversion& c, LayerSet& set);

// A copy of the model that may be run and changed without touching it; shares the constants.
StatusOr<MetaGraph> CopyModel(const MetaGraph& meta);

// Compares each layer's output in both models on the samples; fills the records' output_error.
// `plain` is the model before quantization.
Status MeasureLayers(Conversion& c, LayerSet& set, MetaGraph plain);

}  // namespace smelt::quantize

#endif  // SMELT_CONVERT_QUANTIZE_QUANTIZE_H_
