#include "smelt/wire/options/batch_op_options.h"

#include "absl/strings/escaping.h"
#include "smelt/wire/proto/batch_op_rewriter.pb.h"

namespace smelt {
namespace {

using Proto = tensorflow::serving::BatchOpRewriteConfig;

AdaptiveBatchOptions FromProto(const Proto::AdaptiveBatchSchedulerOption& proto) {
  AdaptiveBatchOptions out;
  // TensorFlow keeps these in 32 bits with a sign.
  const auto value = [](const auto& wrapped) { return static_cast<int32_t>(wrapped.value()); };
  if (proto.has_min_inflight_batches_limit()) {
    out.min_inflight_batches = value(proto.min_inflight_batches_limit());
  }
  if (proto.has_initial_inflight_batches_limit()) {
    out.initial_inflight_batches = value(proto.initial_inflight_batches_limit());
  }
  if (proto.has_max_inflight_batches_limit()) {
    out.max_inflight_batches = value(proto.max_inflight_batches_limit());
  }
  if (proto.has_batches_to_average_over()) {
    out.batches_to_average_over = value(proto.batches_to_average_over());
  }
  if (proto.has_full_batch_scheduling_boost_micros()) {
    out.full_batch_scheduling_boost_micros = proto.full_batch_scheduling_boost_micros().value();
  }
  return out;
}

ModelBatchOptions FromProto(const Proto::BatchOptions& proto) {
  ModelBatchOptions out;
  if (proto.has_num_batch_threads()) out.num_batch_threads = proto.num_batch_threads();
  if (proto.has_num_warmup_batch_threads()) {
    out.num_warmup_batch_threads = proto.num_warmup_batch_threads();
  }
  if (proto.has_max_batch_size()) out.max_batch_size = proto.max_batch_size();
  if (proto.has_batch_timeout_micros()) out.batch_timeout_micros = proto.batch_timeout_micros();
  if (proto.has_max_enqueued_batches()) out.max_enqueued_batches = proto.max_enqueued_batches();
  out.allowed_batch_sizes.assign(proto.allowed_batch_sizes().begin(),
                                 proto.allowed_batch_sizes().end());
  if (proto.has_disable_large_batch_splitting()) {
    out.disable_large_batch_splitting = proto.disable_large_batch_splitting();
  }
  if (proto.has_adaptive_batch_scheduler_option()) {
    out.adaptive = FromProto(proto.adaptive_batch_scheduler_option());
  }
  return out;
}

}  // namespace

StatusOr<BatchOpOptions> ParseBatchOpOptions(absl::string_view encoded) {
  std::string bytes;
  if (!absl::Base64Unescape(encoded, &bytes)) {
    return Internal("Failed to unencode batch_op_rewrite_config from params.");
  }
  Proto proto;
  if (!proto.ParseFromString(bytes)) {
    return Internal("Failed to parse batch_op_rewrite_config from params.");
  }
  BatchOpOptions out;
  out.shared_thread_pool = proto.enable_adaptive_shared_batching_thread_pool();
  out.deprecated_scheduler_options = !proto.model_scheduler_options().empty();
  for (const auto& [model, options] : proto.batch_options()) out.models[model] = FromProto(options);
  if (proto.has_global_prioritization()) {
    out.global_prioritization_threads = proto.global_prioritization().num_threads();
  }
  return out;
}

}  // namespace smelt
