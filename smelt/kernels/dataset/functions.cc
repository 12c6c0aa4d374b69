// Datasets that call functions on the elements of others: map, filter, scan, flat_map, interleave.
#include <algorithm>
#include <thread>
#include <utility>

#include "smelt/kernels/dataset/dataset.h"

namespace smelt {
namespace {

// The function attribute `name` with the inputs other_arguments.
StatusOr<DatasetFunction> FunctionOf(const OpContext& ctx, absl::string_view name,
                                     std::vector<Dtype> results) {
  const auto [first, count] = ArgumentRange(ctx.node(), "other_arguments");
  return DatasetFunction::Of(ctx, name, first, count, std::move(results));
}

// A function's OUT_OF_RANGE ends the dataset, unless it is to have as many elements as its input.
NextElement EndOrError(Status status, bool preserve) {
  if (!absl::IsOutOfRange(status)) return status;
  if (!preserve) return EndOfElements();
  return InvalidArgument("Function invocation produced OutOfRangeError: ", status.message());
}

Status RunMapDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const auto f, FunctionOf(ctx, "f", StatedTypes(ctx.node())));
  const bool preserve = ctx.node().Bool("preserve_cardinality");
  int64_t n = input->cardinality;
  if (!preserve && n != kInfinite) n = kUnknownCount;
  return SetDataset(ctx, {&input, 1}, n, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in)](Step& step) mutable -> NextElement {
      ASSIGN_OR_RETURN(auto element, Pull(in, step));
      if (!element) return element;
      auto mapped = f(*std::move(element), step);
      if (!mapped.ok()) return EndOrError(mapped.status(), preserve);
      return std::optional<Element>(*std::move(mapped));
    };
  });
}

Status CheckParallelCalls(int64_t n) {
  if (n > 0 || n == -1) return OkStatus();
  return InvalidArgument("num_parallel_calls must be greater than zero.");
}

Status RunParallelMapDataset(OpContext& ctx) {
  const auto [at, count] = ArgumentRange(ctx.node(), "num_parallel_calls");
  const Tensor& n = ctx.input(at);
  if (n.rank() != 0) return InvalidArgument("num_parallel_calls must be a scalar");
  RETURN_IF_ERROR(CheckParallelCalls(IndexAt(n, 0)));
  return RunMapDataset(ctx);
}

StatusOr<bool> Holds(const DatasetFunction& predicate, const Element& element,
                     absl::string_view name, Step& step) {
  ASSIGN_OR_RETURN(const Element result, predicate(element, step));
  if (result.size() != 1 || result[0].dtype() != Dtype::kBool || result[0].num_elements() != 1) {
    return InvalidArgument(name, " must return a scalar bool.");
  }
  return result[0].scalar<bool>();
}

Status RunFilterDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const auto predicate, FunctionOf(ctx, "predicate", {}));
  const int64_t n = input->cardinality == 0 ? 0 : kUnknownCount;
  return SetDataset(ctx, {&input, 1}, n, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in)](Step& step) mutable -> NextElement {
      while (true) {
        ASSIGN_OR_RETURN(auto element, Pull(in, step));
        if (!element) return element;
        const auto keep = Holds(predicate, *element, "Filter predicate `predicate`", step);
        if (!keep.ok()) return EndOrError(keep.status(), false);
        if (*keep) return element;
      }
    };
  });
}

Status RunTakeWhileDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const auto predicate, FunctionOf(ctx, "predicate", {}));
  const int64_t n = input->cardinality == 0 ? 0 : kUnknownCount;
  return SetDataset(ctx, {&input, 1}, n, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in), ended = false](Step& step) mutable -> NextElement {
      if (ended) return EndOfElements();
      ASSIGN_OR_RETURN(auto element, Pull(in, step));
      if (!element) return element;
      const auto keep = Holds(predicate, *element, "TakeWhile predicate", step);
      if (!keep.ok()) return EndOrError(keep.status(), false);
      if (*keep) return element;
      ended = true;
      return EndOfElements();
    };
  });
}

// f(state, element) -> (next state, output)
Status RunScanDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  const auto [first, states] = ArgumentRange(ctx.node(), "initial_state");
  std::vector<Dtype> results = ctx.node().Get<std::vector<Dtype>>("Tstate", {});
  for (Dtype t : StatedTypes(ctx.node())) results.push_back(t);
  ASSIGN_OR_RETURN(const auto f, FunctionOf(ctx, "f", results));
  Element initial;
  for (int i = 0; i < states; ++i) initial.push_back(ctx.input(first + i));
  const bool preserve = ctx.node().Bool("preserve_cardinality");
  const int64_t n = preserve ? input->cardinality : kUnknownCount;
  return SetDataset(ctx, {&input, 1}, n, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in), state = initial](Step& step) mutable -> NextElement {
      ASSIGN_OR_RETURN(auto element, Pull(in, step));
      if (!element) return element;
      Element args = state;
      std::move(element->begin(), element->end(), std::back_inserter(args));
      auto out = f(std::move(args), step);
      if (!out.ok()) return EndOrError(out.status(), preserve);
      const auto split = out->begin() + static_cast<std::ptrdiff_t>(state.size());
      std::move(out->begin(), split, state.begin());
      out->erase(out->begin(), split);
      return std::optional<Element>(*std::move(out));
    };
  });
}

// The dataset that f makes of an element.
StatusOr<ElementIterator> IteratorFrom(const DatasetFunction& f, Element element, Step& step) {
  ASSIGN_OR_RETURN(const Element result, f(std::move(element), step));
  if (result.size() != 1) {
    return InvalidArgument("Function must return a single scalar of dtype DT_VARIANT.");
  }
  ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(result[0]));
  return dataset->make(step);
}

Status RunFlatMapDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const auto f, FunctionOf(ctx, "f", {}));
  const int64_t n = input->cardinality == 0 ? 0 : kUnknownCount;
  return SetDataset(ctx, {&input, 1}, n, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in), inner = ElementIterator()](Step& step) mutable -> NextElement {
      while (true) {
        if (inner) {
          ASSIGN_OR_RETURN(auto element, Pull(inner, step));
          if (element) return element;
          inner = nullptr;
        }
        ASSIGN_OR_RETURN(auto from, Pull(in, step));
        if (!from) return from;
        ASSIGN_OR_RETURN(inner, IteratorFrom(f, *std::move(from), step));
      }
    };
  });
}

// Takes turns among `cycle` datasets, `block` elements at a time.
Status SetInterleave(OpContext& ctx, int64_t cycle, int64_t block) {
  constexpr int64_t kMaxCycle = 1 << 20;
  if (cycle > kMaxCycle) return ResourceExhausted("cycle_length ", cycle, " is too large");
  ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const auto f, FunctionOf(ctx, "f", {}));
  const int64_t n = input->cardinality == 0 ? 0 : kUnknownCount;
  return SetDataset(ctx, {&input, 1}, n, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    std::vector<ElementIterator> open(static_cast<size_t>(cycle));
    return [=, in = std::move(in), open = std::move(open), at = size_t{0}, taken = int64_t{0},
            count = 0, ended = false](Step& step) mutable -> NextElement {
      auto turn = [&] {
        taken = 0;
        at = (at + 1) % open.size();
      };
      while (!ended || count > 0) {
        if (open[at]) {
          ASSIGN_OR_RETURN(auto element, Pull(open[at], step));
          if (element) {
            if (++taken == block) turn();
            return element;
          }
          open[at] = nullptr;
          --count;
          turn();
        } else if (!ended) {
          ASSIGN_OR_RETURN(auto from, Pull(in, step));
          ended = !from;
          if (ended) continue;
          ASSIGN_OR_RETURN(open[at], IteratorFrom(f, *std::move(from), step));
          ++count;
        } else {
          turn();
        }
      }
      return EndOfElements();
    };
  });
}

StatusOr<int64_t> NamedCount(const OpContext& ctx, absl::string_view name) {
  return CountInput(ctx, ArgumentRange(ctx.node(), name).first, name);
}

Status RunInterleaveDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(int64_t cycle, NamedCount(ctx, "cycle_length"));
  ASSIGN_OR_RETURN(const int64_t block, NamedCount(ctx, "block_length"));
  if (cycle == -1) cycle = std::max(1u, std::thread::hardware_concurrency());
  if (cycle <= 0) return InvalidArgument("cycle_length must be greater than zero.");
  if (block <= 0) return InvalidArgument("block_length must be greater than zero.");
  return SetInterleave(ctx, cycle, block);
}

Status RunParallelInterleaveDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(int64_t cycle, NamedCount(ctx, "cycle_length"));
  ASSIGN_OR_RETURN(const int64_t block, NamedCount(ctx, "block_length"));
  ASSIGN_OR_RETURN(const int64_t calls, NamedCount(ctx, "num_parallel_calls"));
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (cycle == -1) cycle = calls == -1 ? (cores + 2) / 3 : std::min(calls, cores);
  if (cycle <= 0) {
    return InvalidArgument("`cycle_length` must be `tf.data.AUTOTUNE` or greater than 0 but is ",
                           cycle);
  }
  if (block <= 0) return InvalidArgument("`block_length` must be > 0");
  RETURN_IF_ERROR(CheckParallelCalls(calls));
  if (calls > cycle) {
    return InvalidArgument("If `cycle_length` is set to a fixed value, `num_parallel_calls` must ",
                           "be either `tf.data.AUTOTUNE` or a value less than or equal to ",
                           "`cycle_length`. However, `num_parallel_calls` is ", calls,
                           " and `cycle_length` is ", cycle, ".");
  }
  return SetInterleave(ctx, cycle, block);
}

constexpr Kernel kDatasetFunctionTable[] = {
    {"MapDataset", "", kAnyType, "dataset:map", RunMapDataset},
    {"ParallelMapDataset", "", kAnyType, "dataset:map", RunParallelMapDataset},
    {"ParallelMapDatasetV2", "", kAnyType, "dataset:map", RunParallelMapDataset},
    {"FilterDataset", "", kAnyType, "dataset:filter", RunFilterDataset},
    {"TakeWhileDataset", "", kAnyType, "dataset:take_while", RunTakeWhileDataset},
    {"ExperimentalTakeWhileDataset", "", kAnyType, "dataset:take_while", RunTakeWhileDataset},
    {"ScanDataset", "", kAnyType, "dataset:scan", RunScanDataset},
    {"ExperimentalScanDataset", "", kAnyType, "dataset:scan", RunScanDataset},
    {"FlatMapDataset", "", kAnyType, "dataset:flat_map", RunFlatMapDataset},
    {"InterleaveDataset", "", kAnyType, "dataset:interleave", RunInterleaveDataset},
    {"ParallelInterleaveDatasetV2", "", kAnyType, "dataset:interleave",
     RunParallelInterleaveDataset},
    {"ParallelInterleaveDatasetV3", "", kAnyType, "dataset:interleave",
     RunParallelInterleaveDataset},
    {"ParallelInterleaveDatasetV4", "", kAnyType, "dataset:interleave",
     RunParallelInterleaveDataset},
};

}  // namespace

extern constinit const std::span<const Kernel> kDatasetFunctionKernels = kDatasetFunctionTable;

}  // namespace smelt
