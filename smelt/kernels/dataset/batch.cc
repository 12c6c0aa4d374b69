// Datasets that put elements together and take them apart.
#include <algorithm>
#include <utility>

#include "smelt/kernels/common/copy.h"
#include "smelt/kernels/control/tensor_list.h"
#include "smelt/kernels/dataset/dataset.h"

namespace smelt {
namespace {

// Puts the elements of a batch together.
using ElementJoiner = std::function<StatusOr<Element>(const std::vector<Element>&, Step&)>;

int64_t BatchCount(int64_t n, int64_t size, bool drop) {
  if (n < 0) return n;
  return n / size + (drop || n % size == 0 ? 0 : 1);
}

Status SetBatches(OpContext& ctx, const DatasetRef& input, int64_t size, bool drop,
                  ElementJoiner gather) {
  const int64_t n = BatchCount(input->cardinality, size, drop);
  return SetDataset(ctx, {&input, 1}, n, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in), ended = false](Step& step) mutable -> NextElement {
      std::vector<Element> elements;
      while (!ended && static_cast<int64_t>(elements.size()) < size) {
        ASSIGN_OR_RETURN(auto element, Pull(in, step));
        ended = !element;
        if (element) elements.push_back(*std::move(element));
      }
      if (elements.empty() || (drop && static_cast<int64_t>(elements.size()) < size)) {
        return EndOfElements();
      }
      ASSIGN_OR_RETURN(Element batch, gather(elements, step));
      return std::optional<Element>(std::move(batch));
    };
  });
}

StatusOr<int64_t> BatchSize(const OpContext& ctx, absl::string_view words) {
  ASSIGN_OR_RETURN(const int64_t size,
                   CountInput(ctx, ArgumentRange(ctx.node(), "batch_size").first, "batch_size"));
  if (size <= 0) return InvalidArgument(words);
  return size;
}

// false where the op has no such input.
StatusOr<bool> DropRemainder(const OpContext& ctx) {
  const auto [at, count] = ArgumentRange(ctx.node(), "drop_remainder");
  if (count == 0) return false;
  return ScalarInput<bool>(ctx, at, "drop_remainder");
}

template <BatchRule kRule>
StatusOr<Element> GatherRows(const std::vector<Element>& elements, Step& step) {
  return BatchElements(elements, kRule, step);
}

template <BatchRule kRule>
Status RunBatchDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t size, BatchSize(ctx, "Batch size must be greater than zero."));
  ASSIGN_OR_RETURN(const bool drop, DropRemainder(ctx));
  return SetBatches(ctx, input, size, drop, GatherRows<kRule>);
}

Status RunMapAndBatchDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t size, BatchSize(ctx, "batch_size must be greater than zero."));
  ASSIGN_OR_RETURN(const bool drop, DropRemainder(ctx));
  const Node& node = ctx.node();
  const int calls_at = ArgumentRange(node, "num_parallel_calls").first;
  ASSIGN_OR_RETURN(const int64_t calls, CountInput(ctx, calls_at, "num_parallel_calls"));
  if (calls <= 0 && calls != -1) {
    return InvalidArgument("num_parallel_calls must be greater than zero.");
  }
  const auto [first, count] = ArgumentRange(node, "other_arguments");
  ASSIGN_OR_RETURN(const auto f, DatasetFunction::Of(ctx, "f", first, count, StatedTypes(node)));
  const bool preserve = node.Bool("preserve_cardinality");
  auto mapped = std::make_shared<Dataset>(*input);
  mapped->types = StatedTypes(node);
  mapped->cardinality =
      preserve || input->cardinality == kInfinite ? input->cardinality : kUnknownCount;
  mapped->make = [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in)](Step& step) mutable -> NextElement {
      ASSIGN_OR_RETURN(auto element, Pull(in, step));
      if (!element) return element;
      auto out = f(*std::move(element), step);
      if (out.ok()) return std::optional<Element>(*std::move(out));
      if (!absl::IsOutOfRange(out.status())) return out.status();
      if (!preserve) return EndOfElements();
      return InvalidArgument("Function invocation produced OutOfRangeError: ",
                             out.status().message());
    };
  };
  return SetBatches(ctx, mapped, size, drop, GatherRows<BatchRule::kSameSizes>);
}

// The shape that all of component c are padded to: stated sizes, the largest where none is.
StatusOr<Shape> PaddedBatchShape(const std::vector<Element>& elements, size_t c,
                                 const PartialShape& stated) {
  Dims dims(stated.dims().begin(), stated.dims().end());
  for (const Element& e : elements) {
    if (c >= e.size()) return InvalidArgument("elements lack component ", c);
    const Tensor& t = e[c];
    if (t.rank() != stated.rank()) {
      return InvalidArgument("All elements in a batch must have the same rank as the padded shape ",
                             "for component", c, ": expected rank ", stated.rank(),
                             " but got element with rank ", t.rank());
    }
    for (int d = 0; d < t.rank(); ++d) {
      if (stated[d] < 0) {
        dims[static_cast<size_t>(d)] =
            std::max(std::max<int64_t>(dims[static_cast<size_t>(d)], 0), t.dim(d));
      } else if (t.dim(d) > stated[d]) {
        return DataLoss("Attempted to pad to a smaller size than the input element.");
      }
    }
  }
  dims.insert(dims.begin(), static_cast<int64_t>(elements.size()));
  return Shape::Make(dims);
}

StatusOr<Tensor> PadComponent(const std::vector<Element>& elements, size_t c,
                              const PartialShape& stated, const Tensor& padding, Step& step) {
  ASSIGN_OR_RETURN(const Shape shape, PaddedBatchShape(elements, c, stated));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(padding.dtype(), shape, step.allocator));
  FillRun(out.dtype(), out.raw(), padding.raw(), out.num_elements());
  if (out.num_elements() == 0) return out;
  const Dims strides = Strides(shape);
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& t = elements[i][c];
    if (t.dtype() != out.dtype()) {
      return InvalidArgument("Mismatched type between padding value ", c,
                             " and input dataset's component ", c, ": ", DtypeName(out.dtype()),
                             " vs. ", DtypeName(t.dtype()));
    }
    if (t.num_elements() == 0) continue;
    CopyDims dims;
    int64_t stride = t.num_elements();
    for (int d = 0; d < t.rank(); ++d) {
      stride /= t.dim(d);
      dims.push_back({t.dim(d), strides[static_cast<size_t>(d) + 1], stride});
    }
    if (dims.empty()) dims.push_back({1, 1, 1});
    CopyStrided(out.dtype(), At(out.dtype(), out.raw(), static_cast<int64_t>(i) * strides[0]),
                t.raw(), dims);
  }
  return out;
}

Status RunPaddedBatchDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  ASSIGN_OR_RETURN(const int64_t size, BatchSize(ctx, "Batch size must be greater than zero."));
  ASSIGN_OR_RETURN(const bool drop, DropRemainder(ctx));
  const auto [shapes_at, num_shapes] = ArgumentRange(ctx.node(), "padded_shapes");
  const auto [values_at, num_values] = ArgumentRange(ctx.node(), "padding_values");
  const auto components = static_cast<int>(input->types.size());
  if (num_shapes != components) {
    return InvalidArgument(
        "Number of padded shapes (", num_shapes,
        ") must match the number of components in the input dataset's elements (", components, ")");
  }
  if (num_values != components) {
    return InvalidArgument(
        "Number of padding values (", num_values,
        ") must match the number of components in the input dataset's elements (", components, ")");
  }
  std::vector<PartialShape> shapes;
  std::vector<Tensor> values;
  for (int i = 0; i < components; ++i) {
    const Tensor& shape = ctx.input(shapes_at + i);
    const Tensor& value = ctx.input(values_at + i);
    if (shape.rank() != 1) return InvalidArgument("All padded shapes must be vectors");
    for (const int64_t d : shape.flat<int64_t>()) {
      if (d < -1) return InvalidArgument("a padded shape has the size ", d);
    }
    shapes.push_back(PartialShape::Of(shape.flat<int64_t>()));
    if (value.rank() != 0) return InvalidArgument("All padding values must be scalars");
    if (value.dtype() != input->types[static_cast<size_t>(i)]) {
      return InvalidArgument("Mismatched type between padding value ", i,
                             " and input dataset's component ", i, ": ", DtypeName(value.dtype()),
                             " vs. ", DtypeName(input->types[static_cast<size_t>(i)]));
    }
    values.push_back(value);
  }
  return SetBatches(ctx, input, size, drop,
                    [=](const std::vector<Element>& elements, Step& step) -> StatusOr<Element> {
                      Element batch;
                      for (size_t c = 0; c < shapes.size(); ++c) {
                        ASSIGN_OR_RETURN(batch.emplace_back(),
                                         PadComponent(elements, c, shapes[c], values[c], step));
                      }
                      return batch;
                    });
}

// The rows that all components have; INVALID_ARGUMENT where they differ.
StatusOr<int64_t> CommonRows(const Element& element) {
  if (element.empty()) return InvalidArgument("Input element has no components.");
  for (size_t c = 0; c < element.size(); ++c) {
    if (element[c].rank() == 0) {
      return InvalidArgument("Input element must have a non-scalar value in each component.");
    }
    if (element[c].dim(0) != element[0].dim(0)) {
      return InvalidArgument("Input element must have the same batch size in each component. ",
                             "Component 0 had size ", element[0].dim(0), " but component ", c,
                             " had size, ", element[c].dim(0), ".");
    }
  }
  return element[0].dim(0);
}

Status RunUnbatchDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  int64_t n = kUnknownCount;
  for (const PartialShape& shape : input->shapes) {
    if (shape.rank() > 0 && shape[0] >= 0 && input->cardinality >= 0) {
      if (__builtin_mul_overflow(shape[0], input->cardinality, &n)) n = kUnknownCount;
    }
  }
  return SetDataset(ctx, {&input, 1}, n, [input](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [in = std::move(in), batch = Element(), at = int64_t{0},
            rows = int64_t{0}](Step& step) mutable -> NextElement {
      while (at == rows) {
        ASSIGN_OR_RETURN(auto next, Pull(in, step));
        if (!next) return next;
        batch = *std::move(next);
        at = rows = 0;
        ASSIGN_OR_RETURN(rows, CommonRows(batch));
      }
      Element row;
      for (const Tensor& t : batch) {
        row.push_back(t.Rows(at, at + 1).WithShape(RowShape(t.shape())));
      }
      ++at;
      return std::optional<Element>(std::move(row));
    };
  });
}

// Rows [begin, end) of all components.
Element SliceRows(const Element& batch, int64_t begin, int64_t end) {
  Element out;
  for (const Tensor& t : batch) out.push_back(t.Rows(begin, end));
  return out;
}

StatusOr<Element> ConcatRows(const std::vector<Element>& parts, Step& step) {
  Element out;
  for (size_t c = 0; c < parts[0].size(); ++c) {
    Shape shape = parts[0][c].shape();
    int64_t rows = 0;
    for (const Element& part : parts) {
      if (part.size() <= c || part[c].dtype() != parts[0][c].dtype() ||
          !(RowShape(part[c].shape()) == RowShape(shape))) {
        return InvalidArgument("Cannot concatenate batches of different shapes in component ", c);
      }
      rows += part[c].dim(0);
    }
    shape.Set(0, rows);
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(parts[0][c].dtype(), shape, step.allocator));
    int64_t at = 0;
    for (const Element& part : parts) {
      CopyRun(t.dtype(), At(t.dtype(), t.raw(), at), part[c].raw(), part[c].num_elements());
      at += part[c].num_elements();
    }
    out.push_back(std::move(t));
  }
  return out;
}

// Batches of other sizes: batch_sizes, over and over.
Status RunRebatchDataset(OpContext& ctx) {
  ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(ctx, 0));
  const Tensor& given = ctx.input(1);
  if (given.rank() > 1) {
    return InvalidArgument("`batch_sizes` must be a scalar or a vector.");
  }
  const std::vector<int64_t> sizes(given.flat<int64_t>().begin(), given.flat<int64_t>().end());
  for (const int64_t size : sizes) {
    if (size < 0) return InvalidArgument("batch sizes must not be negative, got ", size);
  }
  if (sizes.empty() || std::ranges::all_of(sizes, [](int64_t s) { return s == 0; })) {
    return InvalidArgument("one of the batch sizes must be above 0");
  }
  ASSIGN_OR_RETURN(const bool drop, DropRemainder(ctx));
  return SetDataset(ctx, {&input, 1}, kUnknownCount, [=](Step& s) -> StatusOr<ElementIterator> {
    ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
    return [=, in = std::move(in), batch = Element(), at = int64_t{0}, rows = int64_t{0},
            turn = size_t{0}, ended = false](Step& step) mutable -> NextElement {
      const int64_t wanted = sizes[turn];
      std::vector<Element> parts;
      int64_t have = 0;
      // A batch of no rows takes its shapes from the rows at hand.
      while (!ended && (have < wanted || (wanted == 0 && at == rows))) {
        if (at == rows) {
          ASSIGN_OR_RETURN(auto next, Pull(in, step));
          ended = !next;
          if (ended) break;
          batch = *std::move(next);
          at = rows = 0;
          ASSIGN_OR_RETURN(rows, CommonRows(batch));
          continue;
        }
        const int64_t end = std::min(at + wanted - have, rows);
        parts.push_back(SliceRows(batch, at, end));
        have += end - at;
        at = end;
      }
      turn = (turn + 1) % sizes.size();
      if (wanted == 0 && !ended) parts.push_back(SliceRows(batch, at, at));
      if (parts.empty() || (drop && have < wanted)) return EndOfElements();
      ASSIGN_OR_RETURN(Element out, ConcatRows(parts, step));
      return std::optional<Element>(std::move(out));
    };
  });
}

constexpr Kernel kDatasetBatchTable[] = {
    {"BatchDataset", "", kAnyType, "dataset:batch", RunBatchDataset<BatchRule::kSameSizes>},
    {"BatchDatasetV2", "", kAnyType, "dataset:batch", RunBatchDataset<BatchRule::kSameSizes>},
    {"ParallelBatchDataset", "", kAnyType, "dataset:batch",
     RunBatchDataset<BatchRule::kSameShapes>},
    {"MapAndBatchDataset", "", kAnyType, "dataset:map_and_batch", RunMapAndBatchDataset},
    {"ExperimentalMapAndBatchDataset", "", kAnyType, "dataset:map_and_batch",
     RunMapAndBatchDataset},
    {"PaddedBatchDataset", "", kAnyType, "dataset:padded_batch", RunPaddedBatchDataset},
    {"PaddedBatchDatasetV2", "", kAnyType, "dataset:padded_batch", RunPaddedBatchDataset},
    {"UnbatchDataset", "", kAnyType, "dataset:unbatch", RunUnbatchDataset},
    {"ExperimentalUnbatchDataset", "", kAnyType, "dataset:unbatch", RunUnbatchDataset},
    {"RebatchDatasetV2", "", kAnyType, "dataset:rebatch", RunRebatchDataset},
};

}  // namespace

extern constinit const std::span<const Kernel> kDatasetBatchKernels = kDatasetBatchTable;

}  // namespace smelt
