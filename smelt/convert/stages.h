// The stages of a conversion and the pieces that they share. plan.cc lists the stages in order.
#ifndef SMELT_CONVERT_STAGES_H_
#define SMELT_CONVERT_STAGES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "smelt/convert/conversion.h"

namespace smelt {

// Refuses options that cannot be met: wrong numbers, contradictions (INVALID_ARGUMENT,
// UNIMPLEMENTED). Fills in the defaults of quantization_options; the model is not touched.
Status CheckOptions(Conversion& c);
// Resolves what tpu_functions name to placements, and checks that they can stand together.
Status ResolveTpuFunctions(Conversion& c);
// Removes what only training uses (strip_training.h).
Status StripTrainingParts(Conversion& c);
// Rewrites float layers to 8-bit integers, as quantization_options say (quantize/).
Status QuantizeModel(Conversion& c);
// Finds the part of each named function, else of each signature, that a TPU can run, and places
// that.
Status AutoPlace(Conversion& c);
// Makes each placement's body: a copy of the function with its calls inlined.
Status MakeBodies(Conversion& c);
// Notes the ops of the bodies whose random numbers will not be those of a CPU.
Status NoteRandomNumbers(Conversion& c);
// Finds what a TPU cannot compile. INVALID_ARGUMENT lists it.
Status CheckCompatibility(Conversion& c);
// Makes float32 computation bfloat16 where docs/bfloat16.md allows: in the bodies, or in all that
// is served; variables too.
Status ConvertToBfloat16(Conversion& c);
// Ties each body's nodes to a cluster; arguments and results cross through replicated inputs and
// outputs.
Status MakeClusters(Conversion& c);
// Each placed function becomes a stub that calls its body on the accelerator.
Status MakeStubs(Conversion& c);

// Chooses the form of each transfer between host and accelerator, and records it; tensors stay as
// they are when the optimization is off.
Status LayOutTransfers(Conversion& c);

// INVALID_ARGUMENT when the cores, the topology and the device assignment do not fit together.
Status CheckSharding(const XlaShardingOption& options);
// Spreads each TPU function over several cores, as xla_sharding_options say.
Status ShardOverCores(Conversion& c);
// Wraps functions in BatchFunction, and updates those that are there.
Status AddBatching(Conversion& c);

// Turns a converted model back into a plain one: no batching, no accelerator, no bfloat16. int8
// stays.
Status Revert(Conversion& c);
// Removes functions that nothing names any more: no node, alias, concrete function or gradient.
Status RemoveUnusedFunctions(Conversion& c);
// Fills in the defaults of quantization_options. Errors are TensorFlow's.
Status CheckQuantizationOptions(QuantizationOption& q);

// ---- shared pieces

// The keys as Python prints a set, {'a', 'b'}: for texts that are TensorFlow's.
std::string KeySetText(const std::vector<std::string>& keys);

// Makes a signature of TensorFlow 1, which is nodes of the graph, one call of a new function, whose
// name is returned. UNIMPLEMENTED names the node that cannot be moved into a function.
StatusOr<std::string> OutlineSignature(Conversion& c, const std::string& name);

// Turns the main graph's reference variables into resources where every use allows it; of each
// other a note says what that means, unless `otherwise` is empty. REQUIRES: no variable was stored
// as another type.
Status MakeResourceVariables(Conversion& c, absl::string_view stage, absl::string_view otherwise);
// Calls in the function, of which a part is to run on a TPU, become what they call; those that are
// too large stay.
Status InlineAllCalls(Conversion& c, Function& function);

// The function that a name of the options means. NOT_FOUND with the nearest names, INVALID_ARGUMENT
// for an alias of several functions.
StatusOr<std::string> FunctionByAlias(Conversion& c, const std::string& alias);
StatusOr<std::string> FunctionByConcreteName(Conversion& c, const std::string& name);
// The function that a signature is one call of; a signature that is no call is made one.
StatusOr<std::string> FunctionBySignature(Conversion& c, const std::string& name);

// The names of tensors in `info`, through sparse and composite ones, empty ones left out; the
// second form gives pointers into it, to change them.
std::vector<std::string> TensorNames(const TensorInfo& info);
void TensorNames(TensorInfo& info, std::vector<std::string*>* names);
// Nodes of the main graph that some signature's outputs need, the initialization left out.
std::vector<Node*> ServedNodes(const MetaGraph& meta);
// The same for the outputs of one signature.
std::vector<Node*> NodesOf(const MetaGraph& meta, const Signature& signature);
// Functions that the served nodes call, directly or through others, but for `except` and what only
// those call.
std::vector<std::string> ServedFunctions(const MetaGraph& meta,
                                         const absl::flat_hash_set<std::string>& except = {});

// Replaces calls of `wanted` functions in the function by their bodies; effects that no result
// needs become control outputs. Of functions that stand for each other (optimize/implementations.h)
// a call becomes the one for `device` ("TPU"), or where that is empty the one that it names; a call
// that stays is as it was.
Status InlineCalls(Function& f, absl::string_view device,
                   const std::function<bool(const Function& callee)>& wanted);

// The mark of functions, and of calls, that were exported with jit_compile=True.
inline constexpr char kMustCompile[] = "_XlaMustCompile";
// Takes the mark kMustCompile from `functions`, which hold ops that only the host can run, and
// from the nodes that call them outside of the placements' bodies.
void RunOnHost(Conversion& c, const absl::flat_hash_set<std::string>& functions);

// All functions of a placement that run on the accelerator: its body and its callees.
std::vector<Function*> FunctionsOnTpu(Conversion& c, const TpuPlacement& p);

// Marks every node that a layer in int8 was written as.
inline constexpr char kLayerAttr[] = "_quantized_layer";

// The attribute that ties a node to a cluster.
inline constexpr char kClusterAttr[] = "_tpu_replicate";

}  // namespace smelt

#endif  // SMELT_CONVERT_STAGES_H_
