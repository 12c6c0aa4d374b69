// Datasets whose elements hold datasets: windows and groups.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "smelt/kernels/dataset/dataset.h"

namespace smelt {
namespace {

// A dataset of elements that are already there.
Dataset HeldDataset(std::vector<Element> elements, std::vector<Dtype> types,
                    std::vector<PartialShape> shapes) {
  Dataset dataset;
  dataset.op = "WindowDataset";
  dataset.types = std::move(types);
  dataset.shapes = std::move(shapes);
  dataset.cardinality = static_cast<int64_t>(elements.size());
  auto held = std::make_shared<const std::vector<Element>>(std::move(elements));
  dataset.make = [held](Step&) -> StatusOr<ElementIterator> {
    return [held, at = size_t{0}](Step&) mutable -> NextElement {
      if (at == held->size()) return EndOfElements();
      return std::optional<Element>((*held)[at++]);
    };
  };
  return dataset;
}

// A window: for each component a dataset of its values.
Element WindowOf(const std::vector<Element>& elements, const Dataset& input) {
  Element window;
  for (size_t c = 0; c < input.types.size(); ++c) {
    std::vector<Element> values;
    for (const Element& e : elements) values.push_back({e[c]});
    window.push_back(
        DatasetTensor(HeldDataset(std::move(values), {input.types[c]}, {input.shapes[c]})));
  }
  return window;
}

struct WindowSizes {
  size_t size, shift, stride;
  bool drop;
  size_t span() const { return (size - 1) * stride + 1; }
};

class WindowIterator {
 public:
  WindowIterator(DatasetRef input, ElementIterator in, const WindowSizes& sizes)
      : input_(std::move(input)), in_(std::move(in)), sizes_(sizes) {}

  NextElement Next(Step& step) {
    while (in_ && buffer_.size() < sizes_.span()) {
      ASSIGN_OR_RETURN(auto element, Pull(in_, step));
      if (!element) {
        in_ = nullptr;
      } else if (element->size() != input_->types.size()) {
        return InvalidArgument("an element has ", element->size(), " components, not ",
                               input_->types.size());
      } else {
        buffer_.push_back(*std::move(element));
      }
    }
    if (buffer_.empty() || (sizes_.drop && buffer_.size() < sizes_.span())) return EndOfElements();
    std::vector<Element> elements;
    for (size_t i = 0; i < buffer_.size() && elements.size() < sizes_.size; i += sizes_.stride) {
      elements.push_back(buffer_[i]);
    }
    const size_t here = std::min(sizes_.shift, buffer_.size());
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(here));
    for (size_t i = here; in_ && i < sizes_.shift; ++i) {
      if (step.cancellation != nullptr) RETURN_IF_ERROR(step.cancellation->Check());
      const auto skipped = in_(step);  // what goes wrong there is nobody's
      if (skipped.ok() && !*skipped) in_ = nullptr;
    }
    return std::optional<Element>(WindowOf(elements, *input_));
  }

 private:
  const DatasetRef input_;
  ElementIterator in_;
  const WindowSizes sizes_;
  std::deque<Element> buffer_;
};

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
  return SetDataset(ctx, {&input, 1}, n, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    auto windows = std::make_unique<WindowIterator>(input, std::move(in), sizes);
    return [windows = std::move(windows)](Step& step) { return windows->Next(step); };
  });
}

// Elements by key; a group that is full, and at the end every group, is reduced to a dataset whose
// elements come next.
class GroupIterator {
 public:
  struct Functions {
    DatasetFunction key, reduce, window_size;
  };
  GroupIterator(DatasetRef input, ElementIterator in, Functions functions)
      : input_(std::move(input)), in_(std::move(in)), functions_(std::move(functions)) {}

  NextElement Next(Step& step) {
    while (true) {
      if (current_) {
        ASSIGN_OR_RETURN(auto element, Pull(current_, step));
        if (element) return element;
        current_ = nullptr;
      }
      if (in_) {
        ASSIGN_OR_RETURN(auto element, Pull(in_, step));
        if (element) {
          RETURN_IF_ERROR(Add(*std::move(element), step));
        } else {
          in_ = nullptr;
        }
        continue;
      }
      if (groups_.empty()) return EndOfElements();
      RETURN_IF_ERROR(Reduce(groups_.begin(), step));
    }
  }

 private:
  struct Group {
    int64_t size;
    std::vector<Element> elements;
  };
  using Groups = std::map<int64_t, Group>;

  static StatusOr<int64_t> OneInt(const Element& result, absl::string_view what) {
    if (result.size() != 1 || result[0].dtype() != Dtype::kInt64 || result[0].num_elements() != 1) {
      return InvalidArgument("`", what, "` must return a scalar int64.");
    }
    return result[0].scalar<int64_t>();
  }

  Status Add(Element element, Step& step) {
    ASSIGN_OR_RETURN(const Element keys, functions_.key(element, step));
    ASSIGN_OR_RETURN(const int64_t key, OneInt(keys, "key_func"));
    auto at = groups_.find(key);
    if (at == groups_.end()) {
      ASSIGN_OR_RETURN(const Element sizes, functions_.window_size({Tensor::Scalar(key)}, step));
      ASSIGN_OR_RETURN(const int64_t size, OneInt(sizes, "window_size_func"));
      if (size <= 0) {
        return InvalidArgument("Window size must be greater than zero, but got ", size, ".");
      }
      at = groups_.emplace(key, Group{size, {}}).first;
    }
    Group& group = at->second;
    group.elements.push_back(std::move(element));
    if (static_cast<int64_t>(group.elements.size()) < group.size) return OkStatus();
    return Reduce(at, step);
  }

  Status Reduce(Groups::iterator at, Step& step) {
    const int64_t key = at->first;
    std::vector<Element> elements = std::move(at->second.elements);
    groups_.erase(at);
    Tensor group = DatasetTensor(HeldDataset(std::move(elements), input_->types, input_->shapes));
    ASSIGN_OR_RETURN(const Element result,
                     functions_.reduce({Tensor::Scalar(key), std::move(group)}, step));
    if (result.size() != 1) return InvalidArgument("`reduce_func` must return a single dataset.");
    ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(result[0]));
    ASSIGN_OR_RETURN(current_, dataset->make(step));
    return OkStatus();
  }

  const DatasetRef input_;
  ElementIterator in_;
  const Functions functions_;
  Groups groups_;
  ElementIterator current_;
};

Status RunGroupByWindowDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  auto function = [&](absl::string_view name) {
    const auto [first, count] = ArgumentRange(ctx.node(), absl::StrCat(name, "_other_arguments"));
    return DatasetFunction::Of(ctx, name, first, count, {});
  };
  ASSIGN_OR_RETURN(const auto key, function("key_func"));
  ASSIGN_OR_RETURN(const auto reduce, function("reduce_func"));
  ASSIGN_OR_RETURN(const auto window_size, function("window_size_func"));
  const GroupIterator::Functions functions{key, reduce, window_size};
  return SetDataset(
      ctx, {&input, 1}, kUnknownCount, [input, functions](Step& s) -> StatusOr<ElementIterator> {
        ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
        auto groups = std::make_unique<GroupIterator>(input, std::move(in), functions);
        return [groups = std::move(groups)](Step& step) { return groups->Next(step); };
      });
}

constexpr Kernel kDatasetWindowTable[] = {
    {"WindowDataset", "", kAnyType, "dataset:window", RunWindowDataset},
    {"GroupByWindowDataset", "", kAnyType, "dataset:group_by_window", RunGroupByWindowDataset},
    {"ExperimentalGroupByWindowDataset", "", kAnyType, "dataset:group_by_window",
     RunGroupByWindowDataset},
};

}  // namespace

extern constinit const std::span<const Kernel> kDatasetWindowKernels = kDatasetWindowTable;

}  // namespace smelt
