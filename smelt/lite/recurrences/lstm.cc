// An LSTM by what the body of a loop computes:
//   c' = sigmoid(f) * c + sigmoid(i) * tanh(g), h' = sigmoid(o) * tanh(c')
// where each of f, i, g, o is x * W + h * U + b. What is made of x alone stands in front of the
// loop, for all steps.
#include "smelt/lite/composites/lstm.h"

#include <algorithm>

#include "smelt/graph/constant.h"
#include "smelt/graph/op_facts.h"
#include "smelt/graph/shape/infer.h"
#include "smelt/graph/shape/values.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/recurrences/recurrence.h"

namespace smelt {
namespace {

constexpr OpSet kAdds = {"Add", "AddV2"};
constexpr int kInput = 0, kForget = 1, kCell = 2, kOutput = 3;

// The value that EnsureShape and Identity hand on.
Endpoint Behind(Endpoint e) {
  for (;;) {
    e = BehindIdentities(e);
    if (!e.node->Is("EnsureShape")) return e;
    e = e.node->input(0);
  }
}

std::optional<std::vector<int64_t>> Numbers(Endpoint e) {
  const auto value = ConstantTensor(*Behind(e).node);
  const auto ints = value ? IntVectorOf(*value) : std::nullopt;
  if (!ints || !ints->complete()) return std::nullopt;
  return std::vector<int64_t>(ints->values.begin(), ints->values.end());
}

bool Swaps(const Node& n) {
  return n.Is("Transpose") && Numbers(n.input(1)) == std::vector<int64_t>{1, 0, 2};
}

// One dimension of a tensor, and another that is the same.
struct Size {
  Endpoint of;
  int64_t dim;
  bool operator==(const Size&) const = default;
};
Size Origin(Size s) {
  for (;;) {
    s.of = Behind(s.of);
    const Node& n = *s.of.node;
    if (n.Is("Transpose")) {
      const auto order = Numbers(n.input(1));
      if (!order || s.dim >= static_cast<int64_t>(order->size())) return s;
      s.dim = (*order)[static_cast<size_t>(s.dim)];
    } else if (n.Is("tfl.unidirectional_sequence_lstm")) {
      if (s.dim > 1) return s;
    } else if (!n.Is({"ReverseV2", "BiasAdd", "Relu", "Tanh", "Sigmoid"})) {
      return s;
    }
    s.of = n.input(0);
  }
}

// Is the number that of the rows of x?
bool IsRowsOf(Endpoint number, Endpoint x, const ShapeTable& shapes) {
  number = Behind(number);
  const Node& n = *number.node;
  if (const auto stated = Numbers(number)) {
    const PartialShape& shape = shapes.of(x);
    return stated->size() == 1 && shape.known_rank() && shape.rank() > 0 &&
           shape[0] == stated->front();
  }
  if (n.Is("Maximum")) {
    for (const int i : {0, 1}) {
      const auto low = Numbers(n.input(i));
      if (low && low->size() == 1 && low->front() <= 0) return IsRowsOf(n.input(1 - i), x, shapes);
    }
    return false;
  }
  if (n.Is("Minimum")) {
    return IsRowsOf(n.input(0), x, shapes) && IsRowsOf(n.input(1), x, shapes);
  }
  if (!n.Is("StridedSlice") || n.Int("shrink_axis_mask") != 1 || n.Int("begin_mask") > 1) {
    return false;
  }
  const Node& of = *Behind(n.input(0)).node;
  const auto begin = Numbers(n.input(1));
  if (!of.Is("Shape") || !begin || begin->size() != 1) return false;
  const int64_t dim = n.Int("begin_mask") == 1 ? 0 : begin->front();
  if (dim < 0) return false;
  return Origin({of.input(0), dim}) == Origin({x, 0});
}

// Columns `part` of `parts`, where a matrix is split.
struct Columns {
  int64_t part = 0, parts = 1;
};

// What is added up for one gate.
struct Sum {
  Endpoint x;                       // of the caller's graph
  std::optional<Tensor> weights;    // [inputs, units]
  std::optional<Tensor> recurrent;  // [units, units]
  std::vector<Tensor> biases;       // [units]
};

class LstmReader {
 public:
  LstmReader(const Scan& scan) : scan_(scan) {}

  // False, and why() says why, where the body is none.
  StatusOr<bool> Read() {
    if (IsGru()) return No("it computes a GRU, for which there is no builtin operator");
    if (scan_.states != 2) return No("it keeps ", scan_.states, " states, not two");
    if (scan_.until()) return No("it ends when its states say so");
    for (const int h : {0, 1}) {
      if (ReadCell(h, 1 - h)) {
        hidden = h;
        for (size_t g = 0; g < 4; ++g) {
          ASSIGN_OR_RETURN(const bool read, Add(gates_[g], true, {}, sums[g]));
          if (!read) return false;
        }
        return Check();
      }
    }
    return No("its states are not those of an LSTM: sigmoids of three gates, tanh of one");
  }

  const std::string& why() const { return why_; }
  int hidden = 0;  // which state
  Sum sums[4];
  int64_t units = 0;

 private:
  template <typename... T>
  bool No(T&&... why) {
    why_ = absl::StrCat(std::forward<T>(why)...);
    return false;
  }
  Endpoint Result(int i) const {
    return BehindIdentities(scan_.results[static_cast<size_t>(i)]->input(0));
  }
  // Of a product, the other factor of one that is `op`; no node: neither is.
  static std::optional<std::pair<Endpoint, Endpoint>> Factor(Endpoint product, OpName op) {
    if (!product.node->Is("Mul")) return std::nullopt;
    for (const int i : {0, 1}) {
      const Endpoint e = BehindIdentities(product.node->input(i));
      if (e.node->Is(op)) {
        return std::pair(e.node->input(0), BehindIdentities(product.node->input(1 - i)));
      }
    }
    return std::nullopt;
  }

  // h' = z * h + (1 - z) * tanh(candidate), where z is a sigmoid.
  bool IsGru() const {
    if (scan_.states != 1 || scan_.until()) return false;
    const Endpoint next = Result(0), state = {scan_.args[0], 0};
    if (!next.node->Is(kAdds)) return false;
    for (const int i : {0, 1}) {
      const auto kept = Factor(BehindIdentities(next.node->input(i)), "Sigmoid");
      const auto added = Factor(BehindIdentities(next.node->input(1 - i)), "Tanh");
      if (kept && added && kept->second == state && added->second.node->Is("Sub")) return true;
    }
    return false;
  }

  bool ReadCell(int h, int c) {
    const Endpoint new_h = Result(h), new_c = Result(c);
    const Endpoint old_c = {scan_.args[static_cast<size_t>(c)], 0};
    const auto out = Factor(new_h, "Tanh");
    if (!out || !(BehindIdentities(out->first) == new_c) || !out->second.node->Is("Sigmoid")) {
      return false;
    }
    if (!new_c.node->Is(kAdds)) return false;
    for (const int i : {0, 1}) {
      const Endpoint kept = BehindIdentities(new_c.node->input(i));
      const Endpoint added = BehindIdentities(new_c.node->input(1 - i));
      const auto forget = Factor(kept, "Sigmoid");
      const auto in = Factor(added, "Tanh");
      if (!forget || !(forget->second == old_c) || !in || !in->second.node->Is("Sigmoid")) continue;
      gates_[kForget] = forget->first;
      gates_[kCell] = in->first;
      gates_[kInput] = in->second.node->input(0);
      gates_[kOutput] = out->second.node->input(0);
      return true;
    }
    return false;
  }

  // A constant, wherever it is stated.
  std::optional<Tensor> Constant(Endpoint e, bool in_body) const {
    e = Behind(e);
    if (in_body && e.node->Is("_Arg")) {
      const int rest = static_cast<int>(e.node->Int("index")) - scan_.states - scan_.rows;
      if (rest < 0) return std::nullopt;
      e = Behind(scan_.rest_of(rest));
    }
    return ConstantTensor(*e.node);
  }

  StatusOr<Tensor> Part(const Tensor& t, Columns c, bool transposed) {
    Tensor from = t;
    if (transposed) {
      ASSIGN_OR_RETURN(from, Transposed(t, {1, 0}));
    }
    if (c.parts == 1) return from;
    const int64_t width = from.dim(from.rank() - 1) / c.parts;
    std::vector<int64_t> begin(static_cast<size_t>(from.rank()), 0), sizes;
    for (int i = 0; i < from.rank(); ++i) sizes.push_back(from.dim(i));
    begin.back() = c.part * width;
    sizes.back() = width;
    AttrMap attrs;
    attrs.Set("T", from.dtype());
    attrs.Set("Index", Dtype::kInt64);
    ASSIGN_OR_RETURN(auto out, Evaluate("Slice",
                                        {from, Tensor::Vector(std::span<const int64_t>(begin)),
                                         Tensor::Vector(std::span<const int64_t>(sizes))},
                                        std::move(attrs)));
    return std::move(out[0]);
  }

  StatusOr<bool> Add(Endpoint e, bool in_body, Columns c, Sum& sum) {
    e = Behind(e);
    const Node& n = *e.node;
    if (const auto value = Constant(e, in_body)) {
      if (value->rank() != 1) return No("what it adds is no vector of a bias: ", n.name());
      ASSIGN_OR_RETURN(sum.biases.emplace_back(), Part(*value, c, false));
      return true;
    }
    if (n.Is(kAdds) || n.Is("BiasAdd")) {
      ASSIGN_OR_RETURN(const bool left, Add(n.input(0), in_body, c, sum));
      if (!left) return false;
      return Add(n.input(1), in_body, c, sum);
    }
    if (n.Is("Split")) {
      const auto axis = Numbers(n.input(0));
      const int64_t dims = in_body ? 2 : 3;
      if (c.parts != 1 || !axis || (axis->front() != -1 && axis->front() != dims - 1)) {
        return No("its gates are split in another way: ", n.name());
      }
      return Add(n.input(1), in_body, {e.port, n.Int("num_split")}, sum);
    }
    if (in_body && n.Is("_Arg")) {
      const int row = static_cast<int>(n.Int("index")) - scan_.states;
      if (row < 0 || row >= scan_.rows) return No("a gate adds a state: ", n.name());
      return Add(scan_.row(row), false, c, sum);
    }
    if (in_body && n.Is("MatMul")) {
      const auto matrix = Constant(n.input(1), true);
      if (!matrix || matrix->rank() != 2 || n.Bool("transpose_a") || sum.recurrent) {
        return No("a product of its state is not with one constant matrix: ", n.name());
      }
      const Endpoint state = BehindIdentities(n.input(0));
      if (state.node != scan_.args[static_cast<size_t>(hidden)]) {
        return No("a gate multiplies something else than the last output: ", n.name());
      }
      ASSIGN_OR_RETURN(sum.recurrent, Part(*matrix, c, n.Bool("transpose_b")));
      return true;
    }
    if (!in_body && n.Is({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})) {
      const auto matrix = Constant(n.input(1), false);
      if (!matrix || matrix->rank() != 2 || n.Bool("adj_x") || sum.weights) {
        return No("a product of its input is not with one constant matrix: ", n.name());
      }
      sum.x = Behind(n.input(0));
      ASSIGN_OR_RETURN(sum.weights, Part(*matrix, c, n.Bool("adj_y")));
      return true;
    }
    return No("a gate is made by ", n.op(), " '", n.name(), "'");
  }

  StatusOr<bool> Check() {
    for (const Sum& s : sums) {
      if (!s.weights || !s.recurrent) return No("a gate lacks its input or its state");
      if (!(s.x == sums[0].x)) return No("its gates read several inputs");
      if (s.weights->dtype() != Dtype::kFloat) return No("it does not compute in float");
    }
    units = sums[0].weights->dim(1);
    for (const Sum& s : sums) {
      if (s.weights->dim(1) != units || s.recurrent->dim(0) != units ||
          s.recurrent->dim(1) != units) {
        return No("its gates have several sizes");
      }
      for (const Tensor& b : s.biases) {
        if (b.dim(0) != units) return No("its biases are broadcast");
      }
    }
    for (int i = 0; i < scan_.arrays; ++i) {
      if (!(Result(scan_.states + i) == Result(hidden))) {
        return No("it gives something else than its outputs");
      }
    }
    if (scan_.node->NumUses(1 - hidden) > 0) return No("its last cell state is read");
    return true;
  }

  const Scan& scan_;
  Endpoint gates_[4];
  std::string why_;
};

class LstmBuilder {
 public:
  LstmBuilder(Graph& graph, const Scan& scan, const ShapeTable& shapes)
      : graph_(graph), scan_(scan), l_(graph, shapes) {}

  Status Build(const LstmReader& read) {
    static const ExportRow row = {"_Scan", nullptr};
    l_.Begin(*scan_.node, row);
    SequenceLstm lstm;
    RETURN_IF_ERROR(TakeInput(read.sums[0].x, lstm));
    lstm.hidden = scan_.state(read.hidden);
    lstm.cell = scan_.state(1 - read.hidden);
    for (size_t g = 0; g < 4; ++g) {
      const Sum& s = read.sums[g];
      ASSIGN_OR_RETURN(const Tensor w, Transposed(*s.weights, {1, 0}));
      ASSIGN_OR_RETURN(const Tensor u, Transposed(*s.recurrent, {1, 0}));
      ASSIGN_OR_RETURN(Tensor b, Tensor::Zeros(Dtype::kFloat, Shape({read.units})));
      for (size_t i = 0; i < s.biases.size(); ++i) {
        if (i == 0) {
          b = s.biases[0];
        } else {
          ASSIGN_OR_RETURN(b, Binary("AddV2", b, s.biases[i]));
        }
      }
      lstm.weights[g] = l_.Const(w);
      lstm.recurrent[g] = l_.Const(u);
      lstm.bias[g] = l_.Const(b);
    }
    const PartialShape x = l_.shape(lstm.input);
    lstm.output = {Dtype::kFloat,
                   PartialShape::Of(std::vector<int64_t>{
                       x.known_rank() ? std::max<int64_t>(x[0], -1) : -1,
                       x.known_rank() ? std::max<int64_t>(x[1], -1) : -1, read.units})};
    ASSIGN_OR_RETURN(all_, AddSequenceLstm(lstm, l_));
    major_ = lstm.time_major;
    if (scan_.node->NumUses(read.hidden) > 0) {
      ASSIGN_OR_RETURN(const Endpoint last, Last());
      graph_.ReplaceAllUses({scan_.node, read.hidden}, last);
    }
    for (int i = 0; i < scan_.arrays; ++i) {
      RETURN_IF_ERROR(
          ReplaceArray({scan_.node, scan_.states + i}, scan_.last[static_cast<size_t>(i)]));
    }
    graph_.ReplaceControlUses(scan_.node, all_.node);
    for (Node* before : scan_.node->control_inputs()) graph_.AddControlInput(all_.node, before);
    graph_.Remove(scan_.node);
    return OkStatus();
  }

 private:
  // The operator reads sequences side by side as well: what turned them need not run.
  Status TakeInput(Endpoint x, SequenceLstm& lstm) {
    if (Swaps(*x.node)) {
      lstm.input = x.node->input(0);
      return OkStatus();
    }
    if (x.node->Is("ReverseV2") && Numbers(x.node->input(1)) == std::vector<int64_t>{0}) {
      const Endpoint of = Behind(x.node->input(0));
      if (Swaps(*of.node)) {
        lstm.input = of.node->input(0);
        ASSIGN_OR_RETURN(lstm.input,
                         Op("ReverseV2", {lstm.input, l_.Ints(std::array<int64_t, 1>{1})}, {}));
        Declare(lstm.input, l_.shape(of.node->input(0)));
        return OkStatus();
      }
    }
    lstm.input = x;
    lstm.time_major = true;
    return OkStatus();
  }

  StatusOr<Endpoint> Op(absl::string_view op, std::initializer_list<Endpoint> inputs,
                        AttrMap attrs) {
    return AddOp(graph_, scan_.node->name(), op, inputs, std::move(attrs));
  }
  // What shape inference finds as well, for who asks before it runs again.
  static void Declare(Endpoint e, const PartialShape& shape) {
    e.node->AttrsToChange().Set(kOutputShapes, std::vector<PartialShape>{shape});
  }

  // The last output.
  StatusOr<Endpoint> Last() {
    if (last_.node != nullptr) return last_;
    std::array<int64_t, 3> begin = {0, -1, 0};
    if (major_) begin = {-1, 0, 0};
    const std::array<int64_t, 3> zeros = {0, 0, 0}, ones = {1, 1, 1};
    ASSIGN_OR_RETURN(last_,
                     Op("StridedSlice", {all_, l_.Ints(begin), l_.Ints(zeros), l_.Ints(ones)},
                        Options({{"begin_mask", int64_t{major_ ? 6 : 5}},
                                 {"end_mask", int64_t{7}},
                                 {"shrink_axis_mask", int64_t{major_ ? 1 : 2}}})));
    return last_;
  }

  // Does it read the last row of an array, as a tensor of one dimension less?
  static bool ReadsLast(const Node& n, bool only_one) {
    if (!n.Is("StridedSlice") || n.Int("shrink_axis_mask") != 1 || n.Int("begin_mask") != 0) {
      return false;
    }
    const auto begin = Numbers(n.input(1));
    if (!begin || begin->size() != 1) return false;
    return begin->front() == -1 || (only_one && begin->front() == 0);
  }

  // `array`: all outputs, by time; where `last`, the last one alone.
  Status ReplaceArray(Endpoint array, bool last) {
    std::vector<Endpoint> todo = {array};
    while (!todo.empty()) {
      const Endpoint e = todo.back();
      todo.pop_back();
      for (const Use& use : e.node->OrderedUses()) {
        if (use.is_control() || use.port() != e.port) continue;
        Node* n = use.node;
        if (n->Is({"EnsureShape", "Identity"})) {
          todo.push_back({n, 0});
        } else if (use.input == 0 && ReadsLast(*n, last)) {
          ASSIGN_OR_RETURN(const Endpoint by, Last());
          graph_.ReplaceAllUses({n, 0}, by);
        } else if (use.input == 0 && !last && !major_ && Swaps(*n)) {
          graph_.ReplaceAllUses({n, 0}, all_);
        }
      }
    }
    if (array.node->NumUses(array.port) == 0) return OkStatus();
    Endpoint by = all_;
    if (last) {
      ASSIGN_OR_RETURN(by, Last());
      ASSIGN_OR_RETURN(by, Op("ExpandDims", {by, l_.Int(0)}, {}));
    } else if (!major_) {
      ASSIGN_OR_RETURN(by, Op("Transpose", {by, l_.Ints(std::array<int64_t, 3>{1, 0, 2})}, {}));
    }
    graph_.ReplaceAllUses(array, by);
    return OkStatus();
  }

  Graph& graph_;
  const Scan& scan_;
  Legalizer l_;
  Endpoint all_, last_;
  bool major_ = false;
};

}  // namespace

StatusOr<bool> TakeLstm(Graph& graph, const Scan& scan, const ShapeTable& shapes,
                        std::string* why) {
  LstmReader reader(scan);
  ASSIGN_OR_RETURN(const bool read, reader.Read());
  if (!read) {
    *why = reader.why();
    return false;
  }
  const Endpoint x = reader.sums[0].x;
  if (!IsRowsOf(scan.steps(), x, shapes)) {
    *why = "it is not known to read all of its input";
    return false;
  }
  for (int i = 0; i < scan.arrays; ++i) {
    const Endpoint length = scan.length(i);
    const bool fits = scan.last[static_cast<size_t>(i)] ? Numbers(length) == std::vector<int64_t>{1}
                                                        : IsRowsOf(length, x, shapes);
    if (fits) continue;
    *why = "it gives more rows than it has steps";
    return false;
  }
  const Status built = LstmBuilder(graph, scan, shapes).Build(reader);
  if (absl::IsUnimplemented(built)) {
    *why = std::string(built.message());
    return false;
  }
  RETURN_IF_ERROR(built);
  return true;
}

}  // namespace smelt
