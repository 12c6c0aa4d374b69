#include "smelt/convert/advise/tpu_time.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "smelt/analysis/cost.h"
#include "smelt/analysis/xla_shapes.h"
#include "smelt/graph/einsum_equation.h"
#include "smelt/wire/xla/dimension_numbers.h"

namespace smelt {
namespace {

double BytesOf(const PartialShape& shape, Dtype dtype) {
  if (!IsPod(BaseType(dtype))) return 0;
  return static_cast<double>(CostElements(shape)) *
         static_cast<double>(Tensor::ElementSize(BaseType(dtype)));
}

double SizeAt(const PartialShape& shape, int64_t d) {
  const bool known = shape.known_rank() && d >= 0 && d < shape.rank();
  return known && shape[static_cast<int>(d)] > 0 ? static_cast<double>(shape[static_cast<int>(d)])
                                                 : 1;
}
double SizeOf(const PartialShape& shape, int from_end) {
  return SizeAt(shape, shape.rank() - from_end);
}

// What one node multiplies: a row for each op that runs on the matrix units.
class Products {
 public:
  Products(const Node& n, const ShapeTable& shapes) : n_(n), shapes_(shapes) {}

  // 0 for an op that runs elsewhere.
  double Count() const {
    static constexpr OpSet kMatrix = {"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"};
    static constexpr OpSet kFilter = {"Conv2D", "Conv3D"};
    static constexpr OpSet kUpwards = {"Conv2DBackpropInput", "Conv3DBackpropInputV2"};
    static constexpr OpSet kXlaDot = {"XlaDot", "XlaDotV2"};
    static constexpr OpSet kXlaConv = {"XlaConv", "XlaConvV2"};
    if (n_.Is(kMatrix)) {
      const bool transposed = n_.Bool("transpose_a") || n_.Bool("adj_x");
      return Out() * SizeOf(In(0), transposed ? 2 : 1);
    }
    // Each element of the result meets the filter of its channel.
    if (n_.Is(kFilter)) return Out() * Elements(1) / SizeOf(In(1), 1);
    if (n_.Is("DepthwiseConv2dNative")) {
      return Out() * Elements(1) / (SizeOf(In(1), 1) * SizeOf(In(1), 2));
    }
    if (n_.Is(kUpwards)) return Elements(2) * Elements(1) / SizeOf(In(1), 1);
    if (n_.Is("Einsum")) return OfEinsum();
    if (n_.Is(kXlaDot)) {
      const auto d = ParseDotDimensions(n_.String("dimension_numbers"));
      double contracted = 1;
      for (const int64_t dim : d.ok() ? d->lhs_contracting : Dims())
        contracted *= SizeAt(In(0), dim);
      return Out() * contracted;
    }
    if (n_.Is(kXlaConv)) {
      const auto d = ParseConvDimensions(n_.String("dimension_numbers"));
      return Out() * Elements(1) / (d.ok() ? SizeAt(In(1), d->kernel_output) : 1);
    }
    return 0;
  }
  // Is a size that counts unknown?
  bool Unknown() const {
    for (const Endpoint& e : n_.inputs()) {
      if (IsPod(BaseType(e.node->output_types[e.port])) && !shapes_.of(e).fully_known()) {
        return true;
      }
    }
    return false;
  }

 private:
  const PartialShape& In(int i) const { return shapes_.of(n_.inputs()[static_cast<size_t>(i)]); }
  double Elements(int i) const { return static_cast<double>(CostElements(In(i))); }
  double Out() const {
    return static_cast<double>(CostElements(shapes_.of({const_cast<Node*>(&n_), 0})));
  }
  // Each combination of labels is one product.
  double OfEinsum() const {
    if (n_.num_inputs() < 2) return 0;
    const auto equation = ParseEinsum(n_.String("equation"));
    std::vector<Shape> known;
    for (int i = 0; i < n_.num_inputs(); ++i) {
      if (!In(i).fully_known()) return Out();
      known.push_back(In(i).ToShape());
    }
    if (!equation.ok() || equation->inputs.size() != known.size()) return Out();
    std::vector<const Shape*> shapes;
    for (const Shape& s : known) shapes.push_back(&s);
    const auto sizes = ExpandEinsum(*equation, shapes);
    if (!sizes.ok()) return Out();
    double all = 1;
    for (const auto& [label, size] : sizes->sizes) all *= static_cast<double>(size);
    return all;
  }

  const Node& n_;
  const ShapeTable& shapes_;
};

class Timer {
 public:
  Timer(const FunctionLibrary& library, const ModelShapes& shapes, const CoreRates& rates)
      : library_(library), shapes_(shapes), rates_(rates) {}

  // What the host runs: the programs within count.
  void Host(const Graph& graph) {
    for (const Node* n : graph.Nodes()) {
      ForEachCallee(library_, *n, [&](absl::string_view name) {
        const Function* f = library_.Find(name);
        if (f == nullptr || f->body == nullptr || !entered_.insert(f).second) return;
        if (n->Is("TPUPartitionedCall")) {
          Program(*f);
        } else {
          Host(*f->body);
        }
        entered_.erase(f);  // another call costs again, one within itself does not
      });
    }
  }
  const CoreTime& time() const { return time_; }

 private:
  void Program(const Function& f) {
    ++time_.calls;
    const ShapeTable& shapes = ShapesOf(f.name());
    for (const auto& ends : {f.FlatArguments(), f.FlatResults()}) {
      for (const Endpoint& e : ends) {
        time_.transferred += BytesOf(shapes.of(e), e.node->output_types[e.port]);
      }
    }
    Nodes(*f.body, shapes);
  }

  void Nodes(const Graph& graph, const ShapeTable& shapes) {
    for (const Node* n : graph.Nodes()) {
      OneNode(*n, shapes);
      ForEachCallee(library_, *n, [&](absl::string_view name) {
        const Function* f = library_.Find(name);
        if (f == nullptr || f->body == nullptr || !entered_.insert(f).second) return;
        Nodes(*f->body, ShapesOf(name));
        entered_.erase(f);
      });
    }
  }

  void OneNode(const Node& n, const ShapeTable& shapes) {
    // Free nodes, and bookkeeping of shapes.
    if (CostModel::OfNodeAlone(n, shapes) <= 1) return;
    static constexpr OpSet kLookups = {"GatherV2", "ResourceGather", "GatherNd", "SparseSegmentSum",
                                       "SparseSegmentMean"};
    double in = 0, out = 0;
    int64_t largest = 0, results = 0;
    for (const Endpoint& e : n.inputs()) {
      in += BytesOf(shapes.of(e), e.node->output_types[e.port]);
      largest = std::max(largest, CostElements(shapes.of(e)));
    }
    for (int p = 0; p < n.num_outputs(); ++p) {
      const PartialShape& shape = shapes.of({const_cast<Node*>(&n), p});
      out += BytesOf(shape, n.output_types[p]);
      results = AddCost(results, CostElements(shape));
    }
    const Products products(n, shapes);
    const double count = products.Count();
    if (count > 0 && products.Unknown()) ++time_.unknown;
    // Lookups read what they fetch, not the table.
    if (n.Is(kLookups)) in = out;
    // The compiler joins what works element by element to what makes its input.
    else if (count == 0 && results == largest)
      return;
    time_.seconds += std::max(count / rates_.products, (in + out) / rates_.bytes);
  }

  const ShapeTable& ShapesOf(absl::string_view name) const {
    static const auto* none = new ShapeTable();
    const auto it = shapes_.functions.find(name);
    return it == shapes_.functions.end() ? *none : it->second;
  }

  const FunctionLibrary& library_;
  const ModelShapes& shapes_;
  const CoreRates& rates_;
  absl::flat_hash_set<const Function*> entered_;
  CoreTime time_;
};

}  // namespace

StatusOr<CoreTime> TimeOnCore(const Function& f, std::span<const PartialShape> arguments,
                              const CoreRates& rates) {
  ASSIGN_OR_RETURN(const ModelShapes shapes,
                   InferCalledShapes(*f.body, XlaShapeRules(), arguments));
  Timer timer(*f.body->library(), shapes, rates);
  timer.Host(*f.body);
  return timer.time();
}

}  // namespace smelt
