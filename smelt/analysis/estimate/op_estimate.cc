#include "smelt/analysis/estimate/op_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "smelt/analysis/estimate/rows.h"

namespace smelt {
namespace estimate {
namespace {

const PartialShape& UnknownShape() {
  static const auto* unknown = new PartialShape();
  return *unknown;
}

// By number of the op.
struct KnownOp {
  const Row* row = nullptr;
  int weight = -1;
};

const std::array<KnownOp, kNumOps>& AllKnownOps() {
  static const auto* all = [] {
    auto* known = new std::array<KnownOp, kNumOps>();
    for (const auto family : {kProducts, kWindows, kMovements, kNormalizations}) {
      for (const Row& row : family) (*known)[static_cast<size_t>(row.op.number())].row = &row;
    }
    for (const Weight& w : kWeights) (*known)[static_cast<size_t>(w.op.number())].weight = w.flops;
    return known;
  }();
  return *all;
}

}  // namespace

int64_t Multiply(int64_t a, int64_t b) {
  a = std::max<int64_t>(a, 0);
  b = std::max<int64_t>(b, 0);
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return kMostEstimated;
  return std::min(product, kMostEstimated);
}

const PartialShape& Op::input(int i) const {
  if (i >= node.num_inputs() || node.input(i).node == nullptr) return UnknownShape();
  return shapes_.of(node.input(i));
}

const PartialShape& Op::output(int i) const { return shapes_.of({const_cast<Node*>(&node), i}); }

Dtype Op::input_type(int i) const {
  const size_t at = static_cast<size_t>(i);
  return at < node.input_types.size() ? node.input_types[at] : Dtype::kInvalid;
}

Dims Op::Sizes(const PartialShape& shape, int rank) {
  Dims sizes(static_cast<size_t>(rank), 1);
  if (shape.known_rank() && shape.rank() == 0) return sizes;
  if (shape.rank() != rank) accurate_ = false;
  for (int i = 0; i < std::min(rank, shape.rank()); ++i) {
    if (shape[i] >= 0) {
      sizes[static_cast<size_t>(i)] = shape[i];
    } else {
      accurate_ = false;
    }
  }
  return sizes;
}

int64_t Op::Elements(const PartialShape& shape) {
  int64_t elements = 1;
  for (const int64_t size : Sizes(shape, std::max(1, shape.rank()))) {
    elements = Multiply(elements, size);
  }
  return elements;
}

int64_t Op::Bytes(Dtype type, const PartialShape& shape) {
  return Multiply(Elements(shape), static_cast<int64_t>(DtypeSize(BaseType(type))));
}

int64_t Op::InputBytes(int i) { return Bytes(input_type(i), input(i)); }

int64_t Op::OutputBytes(int i) {
  const size_t at = static_cast<size_t>(i);
  if (at >= node.output_types.size()) return 0;
  return Bytes(node.output_types[at], output(i));
}

int64_t Op::AllInputBytes() {
  int64_t bytes = 0;
  for (int i = 0; i < node.num_inputs(); ++i) bytes = AddEstimates(bytes, InputBytes(i));
  return bytes;
}

int64_t Op::AllOutputBytes() {
  int64_t bytes = 0;
  for (int i = 0; i < node.num_outputs(); ++i) bytes = AddEstimates(bytes, OutputBytes(i));
  return bytes;
}

int64_t Op::ElementwiseElements() {
  int64_t most = 0;
  int rank = 1;
  for (int i = 0; i < node.num_inputs(); ++i) {
    most = std::max(most, Elements(input(i)));
    rank = std::max(rank, input(i).rank());
  }
  if (node.num_outputs() > 0) most = std::max(most, Elements(output(0)));
  if (node.num_inputs() < 2) return most;
  Dims broadcast(static_cast<size_t>(rank), 0);
  for (int i = 0; i < node.num_inputs(); ++i) {
    const PartialShape& shape = input(i);
    for (int d = 0; d < shape.rank(); ++d) {
      int64_t& size = broadcast[static_cast<size_t>(d + rank - shape.rank())];
      size = std::max(size, shape[d]);
    }
  }
  int64_t elements = 1;
  for (const int64_t size : broadcast) elements = Multiply(elements, size);
  return std::max(most, elements);
}

OpEstimate Op::Of(int64_t flops, int64_t bytes_read, int64_t bytes_written) const {
  return {.flops = flops,
          .bytes_read = bytes_read,
          .bytes_written = bytes_written,
          .accurate = accurate_};
}

OpEstimate Op::Whole(int64_t flops) {
  const int64_t read = AllInputBytes(), written = AllOutputBytes();
  return Of(flops, read, written);
}

OpEstimate Op::Least() {
  AllOutputBytes();
  return {.least = true, .accurate = accurate_};
}

OpEstimate Op::Unknown() {
  OpEstimate whole = Whole(0);
  whole.accurate = false;
  return whole;
}

}  // namespace estimate

const OpSet kPersistentOps = {"Const",       "HostConst",     "Variable",       "VariableV2",
                              "VarHandleOp", "_VarHandlesOp", "ReadVariableOp", "_ReadVariablesOp"};

int64_t AddEstimates(int64_t a, int64_t b) { return std::min(kMostEstimated, a + b); }

OpEstimate EstimateOp(const Node& node, const ShapeTable& shapes, KnownOps known) {
  estimate::Op op(node, shapes);
  if (node.op_name().unknown()) return op.Unknown();
  const auto& found = estimate::AllKnownOps()[static_cast<size_t>(node.op_name().number())];
  if (found.row != nullptr &&
      (found.row->known == KnownOps::kTensorFlows || found.row->known == known)) {
    return found.row->estimate(op);
  }
  if (node.Is(kPersistentOps)) return op.Least();
  if (found.weight < 0) return op.Unknown();
  const int64_t elements = op.ElementwiseElements();
  return op.Whole(estimate::Multiply(elements, found.weight));
}

DeviceSpeed SpeedOf(const DeviceProperties& device) {
  const double gigahertz = static_cast<double>(device.frequency) * 1e-3;
  const double clocks = static_cast<double>(device.num_cores) * gigahertz;
  const double bandwidth = static_cast<double>(device.bandwidth) / 1e6;
  if (device.type == "CPU") return {clocks, device.bandwidth > 0 ? bandwidth : 32};
  if (device.type != "GPU") return {};
  const auto found = device.environment.find("architecture");
  if (found == device.environment.end()) return {100, 12};
  // In a multiprocessor, from the architecture's name as a text.
  const std::string& architecture = found->second;
  const int cores = architecture < "3"   ? 32
                    : architecture < "4" ? 192
                    : architecture < "6" ? 128
                                         : 64;
  return {clocks * cores * 2, device.bandwidth > 0 ? bandwidth : 100};
}

OpTime TimeOf(const OpEstimate& estimate, const DeviceSpeed& speed) {
  if (estimate.least) return {.compute = 1, .total = 1};
  // A device that does nothing would take for ever.
  const auto time = [](int64_t amount, double rate) {
    const double nanoseconds = std::ceil(static_cast<double>(amount) / rate);
    if (amount == 0) return int64_t{0};
    if (!(nanoseconds < static_cast<double>(kMostEstimated))) return kMostEstimated;
    return static_cast<int64_t>(nanoseconds);
  };
  OpTime out;
  out.compute = time(estimate.flops, speed.gflops);
  const int64_t bytes = AddEstimates(estimate.bytes_read, estimate.bytes_written);
  out.memory = time(bytes, speed.gb_per_second);
  out.total = AddEstimates(out.compute, out.memory);
  return out;
}

int64_t EstimatedBytes(Dtype type, const PartialShape& shape) {
  int64_t bytes = static_cast<int64_t>(DtypeSize(BaseType(type)));
  for (int i = 0; i < shape.rank(); ++i) {
    bytes = estimate::Multiply(bytes, shape[i] < 0 ? 1 : shape[i]);
  }
  return bytes;
}

}  // namespace smelt
