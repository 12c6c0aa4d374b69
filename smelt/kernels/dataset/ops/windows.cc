// Windows and groups, as datasets, as batches (sliding windows) and folded into one element.
#include "smelt/kernels/dataset/windows.h"

#include <deque>
#include <map>
#include <utility>

#include "smelt/kernels/dataset/batches.h"
#include "smelt/kernels/dataset/ops/dataset_op.h"

namespace smelt {
namespace {

Status RunWindowDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t size, CountInput(ctx, 1, "size"));
  ASSIGN_OR_RETURN(const int64_t shift, CountInput(ctx, 2, "shift"));
  ASSIGN_OR_RETURN(const int64_t stride, CountInput(ctx, 3, "stride"));
  ASSIGN_OR_RETURN(const bool drop, ScalarInput<bool>(ctx, 4, "drop_remainder"));
  if (size <= 0) return InvalidArgument("Window size must be greater than zero.");
  if (shift <= 0) return InvalidArgument("Window shift must be greater than zero.");
  if (stride <= 0) return InvalidArgument("Window stride must be greater than zero.");
  int64_t span = 0;
  if (__builtin_mul_overflow(size, stride, &span)) {
    return InvalidArgument("a window of ", size, " elements with stride ", stride, " is too large");
  }
  span = (size - 1) * stride + 1;
  int64_t n = input->cardinality;
  if (n >= 0)
    n = drop ? (n < span ? 0 : (n - span) / shift + 1) : (n == 0 ? 0 : (n - 1) / shift + 1);
  const WindowSizes sizes{static_cast<size_t>(size), static_cast<size_t>(shift),
                          static_cast<size_t>(stride), drop};
  return SetDataset(ctx, {&input, 1}, n, WindowedElements(input, sizes));
}

Status RunGroupByWindowDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  auto function = [&](absl::string_view name) {
    const auto [first, count] = InputRange(ctx.node(), absl::StrCat(name, "_other_arguments"));
    return FunctionArgument(ctx, name, first, count, {});
  };
  ASSIGN_OR_RETURN(const auto key, function("key_func"));
  ASSIGN_OR_RETURN(const auto reduce, function("reduce_func"));
  ASSIGN_OR_RETURN(const auto window_size, function("window_size_func"));
  const GroupFunctions functions{key, reduce, window_size};
  return SetDataset(ctx, {&input, 1}, kUnknownCount, GroupedElements(input, functions));
}

class SlidingIterator {
 public:
  SlidingIterator(ElementIterator in, const WindowSizes& window)
      : in_(std::move(in)), window_(window) {}

  NextElement Next(Step& step) {
    const size_t span = window_.span();
    while (in_ && ahead_.size() < span) {
      ASSIGN_OR_RETURN(auto element, Pull(in_, step));
      if (!element) {
        in_ = nullptr;
      } else if (skip_ > 0) {
        --skip_;
      } else {
        ahead_.push_back(*std::move(element));
      }
    }
    if (ahead_.empty() || (window_.drop && ahead_.size() < span)) return EndOfElements();
    std::vector<Element> chosen;
    for (size_t i = 0; i < std::min(span, ahead_.size()); i += window_.stride) {
      chosen.push_back(ahead_[i]);
    }
    const size_t gone = std::min(window_.shift, ahead_.size());
    ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<int64_t>(gone));
    skip_ = window_.shift - gone;
    ASSIGN_OR_RETURN(Element batch, BatchElements(chosen, BatchRule::kSameShapes, step));
    return batch;
  }

 private:
  ElementIterator in_;  // nullptr: at its end
  const WindowSizes window_;
  std::deque<Element> ahead_;
  size_t skip_ = 0;  // elements to come that no window holds
};

// Batches of `size` elements, `stride` apart, each beginning `shift` elements after the last.
Status RunSlidingWindowDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t size, CountInput(ctx, 1, "window_size"));
  if (size <= 0) return InvalidArgument("Window size must be greater than zero.");
  ASSIGN_OR_RETURN(const int64_t shift, CountInput(ctx, 2, "window_shift"));
  if (shift <= 0) return InvalidArgument("Window shift must be greater than zero.");
  ASSIGN_OR_RETURN(const int64_t stride, CountInput(ctx, 3, "window_stride"));
  if (stride <= 0) return InvalidArgument("window_stride must be greater than zero.");
  int64_t span = 0;
  if (__builtin_mul_overflow(size, stride, &span)) {
    return InvalidArgument("a window of ", size, " elements with stride ", stride, " is too large");
  }
  const bool drop = ctx.node().Bool("drop_remainder", true);
  // TensorFlow counts windows by their beginnings, and so whole numbers of shifts where it drops.
  int64_t n = input->cardinality;
  if (n > 0) n = drop ? n / shift : (n - 1) / shift + 1;
  const WindowSizes window{static_cast<size_t>(size), static_cast<size_t>(shift),
                           static_cast<size_t>(stride), drop};
  const auto make = [input, window](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    auto sliding = std::make_unique<SlidingIterator>(std::move(in), window);
    return [sliding = std::move(sliding)](Step& step) { return sliding->Next(step); };
  };
  return SetDataset(ctx, {&input, 1}, n, make);
}

// The elements of the input; TensorFlow counts them for a monitor that is none here.
Status RunStatsDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  if (ctx.input(1).rank() != 0) return InvalidArgument("tag must be a scalar");
  return SetDataset(ctx, {&input, 1}, input->cardinality, input->make);
}

struct ReducerFunctions {
  BoundFunction key, init, reduce, finalize;
};

class ReducerIterator {
 public:
  ReducerIterator(ElementIterator in, ReducerFunctions functions)
      : in_(std::move(in)), functions_(std::move(functions)) {}

  NextElement Next(Step& step) {
    while (in_) {
      ASSIGN_OR_RETURN(auto element, Pull(in_, step));
      if (!element) {
        in_ = nullptr;
      } else {
        RETURN_IF_ERROR(Add(*std::move(element), step));
      }
    }
    if (states_.empty()) return EndOfElements();
    Element state = std::move(states_.begin()->second);
    states_.erase(states_.begin());
    ASSIGN_OR_RETURN(Element result, functions_.finalize(std::move(state), step));
    return result;
  }

 private:
  Status Add(Element element, Step& step) {
    ASSIGN_OR_RETURN(const Element keys, functions_.key(element, step));
    if (keys.size() != 1 || keys[0].dtype() != Dtype::kInt64 || keys[0].num_elements() != 1) {
      return InvalidArgument("`key_func` must return a scalar int64.");
    }
    const auto key = keys[0].scalar<int64_t>();
    auto at = states_.find(key);
    if (at == states_.end()) {
      ASSIGN_OR_RETURN(Element initial, functions_.init({Tensor::Scalar(key)}, step));
      at = states_.emplace(key, std::move(initial)).first;
    }
    Element args = std::move(at->second);
    for (Tensor& t : element) args.push_back(std::move(t));
    ASSIGN_OR_RETURN(at->second, functions_.reduce(std::move(args), step));
    return OkStatus();
  }

  ElementIterator in_;  // nullptr: at its end
  ReducerFunctions functions_;
  std::map<int64_t, Element> states_;  // by key, the order in which they come out
};

Status RunGroupByReducerDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  const auto function = [&](absl::string_view name) {
    const auto [first, count] = InputRange(ctx.node(), absl::StrCat(name, "_other_arguments"));
    return FunctionArgument(ctx, name, first, count, {});
  };
  ASSIGN_OR_RETURN(const auto key, function("key_func"));
  ASSIGN_OR_RETURN(const auto init, function("init_func"));
  ASSIGN_OR_RETURN(const auto reduce, function("reduce_func"));
  ASSIGN_OR_RETURN(const auto finalize, function("finalize_func"));
  const ReducerFunctions functions{key, init, reduce, finalize};
  const auto make = [input, functions](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    auto groups = std::make_unique<ReducerIterator>(std::move(in), functions);
    return [groups = std::move(groups)](Step& step) { return groups->Next(step); };
  };
  return SetDataset(ctx, {&input, 1}, kUnknownCount, make);
}

constexpr Kernel kDatasetWindowTable[] = {
    {"WindowDataset", "", kAnyType, "dataset:window", RunWindowDataset},
    {"GroupByWindowDataset", "", kAnyType, "dataset:group_by_window", RunGroupByWindowDataset},
    {"SlidingWindowDataset", "", kAnyType, "dataset:sliding_window", RunSlidingWindowDataset},
    {"LatencyStatsDataset", "", kAnyType, "dataset:pass", RunStatsDataset},
    {"BytesProducedStatsDataset", "", kAnyType, "dataset:pass", RunStatsDataset},
    {"GroupByReducerDataset", "", kAnyType, "dataset:group_by_reducer", RunGroupByReducerDataset},
};

}  // namespace

extern constinit const std::span<const Kernel> kDatasetWindowKernels = kDatasetWindowTable;

}  // namespace smelt
