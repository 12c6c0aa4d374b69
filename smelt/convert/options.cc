// What the converter options may say, checked before anything is done.
#include <re2/re2.h>

#include <algorithm>

#include "smelt/convert/stages.h"

namespace smelt {
namespace {

// The batch scheduler's own checks and texts (facts: core/kernels/batch_kernels.cc).
Status CheckBatchOptions(const BatchOption& o) {
  if (o.num_batch_threads <= 0) {
    return InvalidArgument("num_batch_threads must be positive; was ", o.num_batch_threads);
  }
  if (o.max_batch_size <= 0) {
    return InvalidArgument("max_batch_size must be positive; was ", o.max_batch_size);
  }
  if (o.batch_timeout_micros < 0) {
    return InvalidArgument("batch_timeout_micros must be non-negative; was ",
                           o.batch_timeout_micros);
  }
  if (o.max_enqueued_batches < 0) {
    return InvalidArgument("max_enqueued_batches must be non-negative; was ",
                           o.max_enqueued_batches);
  }
  if (o.allowed_batch_sizes.empty()) return OkStatus();
  int last = 0;
  for (int size : o.allowed_batch_sizes) {
    if (size <= last) {
      return InvalidArgument("allowed_batch_sizes entries must be monotonically increasing: ", size,
                             last == 0 ? " is not positive" : absl::StrCat(" follows ", last));
    }
    last = size;
  }
  if (o.disable_large_batch_splitting && last != o.max_batch_size) {
    return InvalidArgument(
        "final entry in allowed_batch_sizes must equal max_batch_size when "
        "enable_large_batch_splitting is False: ",
        last, " is not ", o.max_batch_size);
  }
  if (last > o.max_batch_size) {
    return InvalidArgument(
        "final entry in allowed_batch_sizes must be less than or equal to max_batch_size: ", last,
        " is more than ", o.max_batch_size);
  }
  return OkStatus();
}

Status CheckNodeFilterlist(const Bfloat16Option& o) {
  for (const std::string& name : o.node_filterlist) {
    const RE2 re(name, RE2::Quiet);
    if (!re.ok()) {
      return InvalidArgument("node_filterlist: \"", name,
                             "\" is no regular expression: ", re.error());
    }
  }
  return OkStatus();
}

}  // namespace

Status CheckOptions(Conversion& c) {
  if (c.options.batch_options.size() > 1) {
    return Unimplemented("only one batch_options is supported; ", c.options.batch_options.size(),
                         " are given");
  }
  for (const BatchOption& o : c.options.batch_options) {
    RETURN_IF_ERROR(Prefix(CheckBatchOptions(o), "batch_options: "));
  }
  if (c.options.xla_sharding_options) {
    RETURN_IF_ERROR(
        Prefix(CheckSharding(*c.options.xla_sharding_options), "xla_sharding_options: "));
  }
  if (c.options.quantization_options) {
    RETURN_IF_ERROR(CheckQuantizationOptions(*c.options.quantization_options));
  }
  const auto names_none = [](const TpuFunctionOption& o) {
    return o.kind == TpuFunctionOption::Kind::kJitCompiled && !o.jit_compiled;
  };
  const auto& bfloat16 = c.options.bfloat16_optimization_options;
  if (bfloat16) RETURN_IF_ERROR(CheckNodeFilterlist(*bfloat16));
  const bool all_bfloat16 = c.Bfloat16() && bfloat16 && bfloat16->scope_all;
  if (std::ranges::all_of(c.options.tpu_functions, names_none) && c.options.batch_options.empty() &&
      !c.options.quantization_options && !c.settings.auto_place && !all_bfloat16 &&
      !c.settings.strip_training) {
    return InvalidArgument(
        c.options.tpu_functions.empty()
            ? "the converter options name nothing to do"
            : "jit_compile_functions: false places no function, and the converter options name "
              "nothing else to do",
        ": give tpu_functions, batch_options, quantization_options, bfloat16_optimization_options "
        "{ scope: ALL }, or --auto_place");
  }
  return OkStatus();
}

}  // namespace smelt
