// TensorFlow's batch_op_rewrite: who serves a model sets how its batch ops batch, without a change
// of the model.
#include <utility>

#include "smelt/optimize/custom/custom_optimizer.h"
#include "smelt/wire/options/batch_op_options.h"

namespace smelt {
namespace {

// A low priority queue is set up as the one for high priority where the model says nothing of it.
constexpr std::pair<absl::string_view, absl::string_view> kLowPriority[] = {
    {"max_batch_size", "low_priority_max_batch_size"},
    {"batch_timeout_micros", "low_priority_batch_timeout_micros"},
    {"allowed_batch_sizes", "low_priority_allowed_batch_sizes"},
    {"max_enqueued_batches", "low_priority_max_enqueued_batches"},
};

void SetAdaptive(const AdaptiveBatchOptions& options, AttrMap* attrs) {
  attrs->Set("_enable_adaptive_scheduler", true);
  attrs->Set("_max_inflight_batches", options.max_inflight_batches);
  attrs->Set("_min_inflight_batches", options.min_inflight_batches);
  attrs->Set("_initial_inflight_batches", options.initial_inflight_batches);
  attrs->Set("_batches_to_average_over", options.batches_to_average_over);
  if (options.full_batch_scheduling_boost_micros != -1) {
    attrs->Set("_full_batch_scheduling_boost_micros", options.full_batch_scheduling_boost_micros);
  }
}

void SetBatching(const ModelBatchOptions& options, AttrMap* attrs) {
  const auto set = [&](absl::string_view name, const std::optional<int64_t>& value) {
    if (value) attrs->Set(name, *value);
  };
  set("num_batch_threads", options.num_batch_threads);
  set("num_warmup_batch_threads", options.num_warmup_batch_threads);
  set("max_batch_size", options.max_batch_size);
  set("batch_timeout_micros", options.batch_timeout_micros);
  set("max_enqueued_batches", options.max_enqueued_batches);
  if (!options.allowed_batch_sizes.empty()) {
    attrs->Set("allowed_batch_sizes", options.allowed_batch_sizes);
  }
  // The attribute says the opposite of the option.
  if (options.disable_large_batch_splitting) {
    attrs->Set("enable_large_batch_splitting", !*options.disable_large_batch_splitting);
  }
}

class BatchOpRewriter final : public CustomOptimizer {
 public:
  BatchOpRewriter(BatchOpOptions options, std::optional<std::string> model)
      : options_(std::move(options)), model_(std::move(model)) {}

  StatusOr<bool> Optimize(Graph& graph, const PassContext& context) override {
    ASSIGN_OR_RETURN(const ModelBatchOptions* batching, OfModel());
    bool changed = false;
    for (Node* n : graph.Nodes()) {
      if (!n->Is("BatchFunction")) continue;
      const AttrMap before = n->attrs();
      Rewrite(batching, &n->AttrsToChange());
      if (n->attrs() == before) continue;
      context.Fired("BatchOptions", *n);
      changed = true;
    }
    return changed;
  }

 private:
  // What is stated for the model; nullptr: nothing is, or nobody says which model it is.
  StatusOr<const ModelBatchOptions*> OfModel() const {
    if (!model_) return nullptr;
    if (options_.deprecated_scheduler_options) {
      return InvalidArgument(
          "model_scheduler_options is deprecated. Please use the adaptive_batch_scheduler_option "
          "field in batch_options instead.");
    }
    const auto it = options_.models.find(*model_);
    if (it == options_.models.end()) return nullptr;
    const ModelBatchOptions& of_model = it->second;
    if (of_model.adaptive) {
      const AdaptiveBatchOptions& a = *of_model.adaptive;
      if (a.min_inflight_batches > a.initial_inflight_batches ||
          a.initial_inflight_batches > a.max_inflight_batches ||
          a.min_inflight_batches > a.max_inflight_batches) {
        return InvalidArgument(
            "Requires min_inflight_batches <= initial_inflight_batches and "
            "initial_inflight_batches <= max_inflight_batches; Got {min_inflight_batches : ",
            a.min_inflight_batches, ", initial_inflight_batches : ", a.initial_inflight_batches,
            ", max_inflight_batches : ", a.max_inflight_batches, "}.");
      }
    } else if (options_.shared_thread_pool && of_model.num_batch_threads.value_or(0) != 0) {
      return InvalidArgument(
          "Unable to enable adapative shared batching because it requires num_batch_threads=0 but "
          "the BatchOpRewriteConfig is also trying to set num_batch_threads. Set either set "
          "enable_adaptive_shared_batching_thread_pool or num_batch_threads but not both.");
    }
    return &of_model;
  }

  void Rewrite(const ModelBatchOptions* batching, AttrMap* attrs) const {
    if (batching != nullptr) {
      if (batching->adaptive) SetAdaptive(*batching->adaptive, attrs);
      SetBatching(*batching, attrs);
      // A scheduler of its own comes before what is meant for all models.
      if (batching->adaptive) return;
    }
    if (options_.shared_thread_pool) attrs->Set("num_batch_threads", 0);
    if (!options_.global_prioritization_threads) return;
    attrs->Set("num_batch_threads", *options_.global_prioritization_threads);
    attrs->Set("mixed_priority_policy", "priority_merge");
    for (const auto& [high, low] : kLowPriority) {
      const Attr* stated = attrs->Find(high);
      if (stated != nullptr && attrs->Find(low) == nullptr) attrs->Set(low, Attr(*stated));
    }
  }

  const BatchOpOptions options_;
  const std::optional<std::string> model_;
};

}  // namespace

StatusOr<std::unique_ptr<CustomOptimizer>> MakeBatchOpRewriter(const RewriterConfig& config,
                                                               const AttrMap* parameters) {
  const Attr* stated =
      parameters == nullptr ? nullptr : parameters->Find("batch_op_rewrite_config");
  if (stated == nullptr) {
    return Internal(
        "batch_op_rewrite_config param must be set in the rewriter config with a "
        "serialized/encoded BatchOpRewriteConfig.");
  }
  BatchOpOptions options;
  if (const auto* encoded = stated->get<std::string>()) {
    ASSIGN_OR_RETURN(options, ParseBatchOpOptions(*encoded));
  }
  return std::make_unique<BatchOpRewriter>(std::move(options), config.session_model);
}

}  // namespace smelt
