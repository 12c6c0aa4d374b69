// A custom operator of a file in a session: what a library's functions are called with.
#ifndef SMELT_KERNELS_CUSTOM_LITE_INSTANCE_H_
#define SMELT_KERNELS_CUSTOM_LITE_INSTANCE_H_

#include <array>
#include <cstdarg>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "smelt/kernels/custom/lite_library.h"
#include "smelt/kernels/kernel.h"

namespace smelt {

// What a file says of a tensor.
struct LiteTensorInfo {
  std::string name;
  Dtype type = Dtype::kInvalid;
  PartialShape shape;         // of outputs
  std::vector<float> scales;  // empty: not quantized
  std::vector<int64_t> zero_points;
  int64_t quantized_dim = 0;
  bool left_out = false, constant = false, variable = false;  // of inputs
};

struct LiteOpInfo {
  std::string code, options;
  std::vector<LiteTensorInfo> inputs, outputs;
};

// Thread safe: who comes while it runs waits.
class LiteOpInstance final : public Resource {
 public:
  static constexpr absl::string_view kKind = "lite operator";
  LiteOpInstance(const LiteOp& op, const LiteOpInfo& info);
  ~LiteOpInstance() override;
  LiteOpInstance(const LiteOpInstance&) = delete;
  LiteOpInstance& operator=(const LiteOpInstance&) = delete;
  absl::string_view kind() const override { return kKind; }

  // Answers of the operator are the context's outputs; behind them come the new values of its
  // variables. INTERNAL with what it reported when it fails, CANCELLED when it says so,
  // UNIMPLEMENTED for a type that the interface has in another form.
  Status Run(OpContext& ctx);

 private:
  // The functions of TfLiteContext.
  struct Host;
  friend struct Host;

  TfLiteTensor Describe(const LiteTensorInfo& info, TfLiteAllocationType allocation) const;
  void Init();
  Status Call(absl::string_view what, const LiteOp::Function& f);
  Status SetInput(OpContext& ctx, size_t i, bool& changed);
  Status MakeOutputs(OpContext& ctx);
  Status MakeTemporaries();
  Status TakeOutputs(OpContext& ctx);
  // What belongs to the step is not the context's any more.
  void Forget();
  // Tensors may be added without moving those that are there.
  void MakeRoom();
  void Report(const char* format, va_list arguments);
  TfLiteStatus Resize(TfLiteTensor& t, TfLiteIntArray* dims);
  Status Failed(absl::string_view what) const;
  TfLiteTensor& output(size_t i) { return tensors_[first_output_ + i]; }

  const LiteOp op_;
  const LiteOpInfo info_;
  absl::Mutex mutex_;
  TfLiteContext context_ = {};
  TfLiteNode node_ = {};
  std::vector<TfLiteTensor> tensors_;  // inputs that are there, outputs, what was added
  std::vector<int> input_tensors_;     // of each input; -1: left out
  size_t first_output_ = 0, first_added_ = 0;
  // Of each input: its value in the form of the interface, and what it was made of.
  struct Copy {
    Tensor of, bytes;
  };
  std::vector<Copy> copies_;
  std::vector<Tensor> memory_;                    // of tensors that were added
  std::vector<std::unique_ptr<char[]>> kept_;     // AllocatePersistentBuffer
  std::vector<std::unique_ptr<char[]>> of_eval_;  // AllocateBufferForEval
  std::vector<std::unique_ptr<char[]>> scratch_;  // RequestScratchBufferInArena
  std::array<TfLiteExternalContext*, kTfLiteMaxExternalContexts> external_ = {};
  std::string reported_;
  bool begun_ = false, prepared_ = false, invoking_ = false;
};

}  // namespace smelt

#endif  // SMELT_KERNELS_CUSTOM_LITE_INSTANCE_H_
