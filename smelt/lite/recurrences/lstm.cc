// An LSTM by what the body of a loop computes:
//   c' = sigmoid(f) * c + sigmoid(i) * tanh(g), h' = sigmoid(o) * tanh(c')
// where each of f, i, g, o is x * W + h * U + b; in place of tanh, relu, relu6 or nothing. What is
// made of x alone stands in front of the loop, for all steps.
#include "smelt/lite/composites/lstm.h"

#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/recurrences/cell.h"
#include "smelt/lite/recurrences/sequence.h"

namespace smelt {
namespace {

constexpr int kInput = 0, kForget = 1, kCell = 2, kOutput = 3;

class LstmReader {
 public:
  explicit LstmReader(const Scan& scan) : scan_(scan), cell_(scan) {}

  // False, and why() says why, where the body is none.
  StatusOr<bool> Read() {
    if (scan_.until()) return cell_.No("it ends when its states say so");
    if (!cell_.TakeMask()) return false;
    if (IsGru()) return cell_.No("it computes a GRU, for which there is no builtin operator");
    if (scan_.states < 2) return cell_.No("it keeps one state, not two");
    bool any = false;
    for (hidden = 0; hidden < scan_.states; ++hidden) {
      for (own = 0; own < scan_.states; ++own) {
        if (own == hidden || !ReadCell()) continue;
        any = true;
        for (GateSum& s : sums) s = {};
        bool read = true;
        for (size_t g = 0; read && g < 4; ++g) {
          ASSIGN_OR_RETURN(read, cell_.AddGate(gates_[g], hidden, sums[g]));
        }
        if (read) return Check();
      }
    }
    if (any) return false;
    return cell_.No("its states are not those of an LSTM: sigmoids of three gates, tanh of one");
  }

  const std::string& why() const { return cell_.why(); }
  const CellReader& cell() const { return cell_; }
  int hidden = 0, own = 0;  // which state is the output, and which the cell's own
  std::string_view activation;
  GateSum sums[4];

 private:
  Endpoint Result(int i) const { return cell_.result(i).value; }
  // Of a product, what is in the sigmoid that is one factor, and the other factor.
  static std::optional<std::pair<Endpoint, Endpoint>> Gated(Endpoint product, int at) {
    if (!product.node->Is("Mul")) return std::nullopt;
    const Endpoint e = BehindIdentities(product.node->input(at));
    if (!e.node->Is("Sigmoid")) return std::nullopt;
    return std::pair(BehindIdentities(e.node->input(0)),
                     BehindIdentities(product.node->input(1 - at)));
  }
  static std::optional<std::pair<Endpoint, Endpoint>> GatedBy(Endpoint product, Endpoint other) {
    for (const int i : {0, 1}) {
      const auto gated = Gated(product, i);
      if (gated && gated->second == other) return gated;
    }
    return std::nullopt;
  }

  // h' = z * h + (1 - z) * tanh(candidate), where z is a sigmoid.
  bool IsGru() const {
    for (int h = 0; h < scan_.states; ++h) {
      const Endpoint next = Result(h);
      if (!next.node->Is(kCellAdds)) continue;
      for (const int i : {0, 1}) {
        const auto kept = GatedBy(BehindIdentities(next.node->input(i)), cell_.old(h));
        const Endpoint added = BehindIdentities(next.node->input(1 - i));
        if (!kept || !added.node->Is("Mul")) continue;
        for (const Endpoint& e : added.node->inputs()) {
          if (BehindIdentities(e).node->Is("Sub")) return true;
        }
      }
    }
    return false;
  }

  // What follows the cell on its way out, and its candidates on their way in.
  bool ReadOutput(Endpoint out, Endpoint cell) {
    for (const int i : {0, 1}) {
      const auto gated = Gated(out, i);
      if (!gated) continue;
      activation = CellActivation(gated->second);
      const Endpoint of =
          activation == "NONE" ? gated->second : BehindIdentities(gated->second.node->input(0));
      if (!(of == cell)) continue;
      gates_[kOutput] = gated->first;
      return true;
    }
    return false;
  }

  bool ReadCell() {
    const Endpoint new_c = Result(own);
    if (!new_c.node->Is(kCellAdds) || !ReadOutput(Result(hidden), new_c)) return false;
    for (const int i : {0, 1}) {
      const auto forget = GatedBy(BehindIdentities(new_c.node->input(i)), cell_.old(own));
      const Endpoint added = BehindIdentities(new_c.node->input(1 - i));
      if (!forget) continue;
      for (const int k : {0, 1}) {
        const auto in = Gated(added, k);
        if (!in || CellActivation(in->second) != activation) continue;
        gates_[kForget] = forget->first;
        gates_[kInput] = in->first;
        gates_[kCell] = activation == "NONE" ? in->second : in->second.node->input(0);
        return true;
      }
    }
    return false;
  }

  bool Check() {
    if (!cell_.CheckGates(sums) || !cell_.GivesOnly(hidden, own)) return false;
    if (scan_.node->NumUses(own) > 0) {
      return cell_.No("its last cell state is read, and its operator gives outputs alone");
    }
    return true;
  }

  const Scan& scan_;
  CellReader cell_;
  Endpoint gates_[4];
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
  SequenceBuilder builder(graph, scan, reader.cell(), shapes);
  const auto build = [&]() -> Status {
    Legalizer& l = builder.legalizer();
    SequenceLstm lstm;
    ASSIGN_OR_RETURN(lstm.input, builder.TakeInput(reader.sums[0].x));
    lstm.time_major = builder.time_major();
    lstm.hidden = scan.state(reader.hidden);
    lstm.cell = scan.state(reader.own);
    lstm.activation = reader.activation;
    for (size_t g = 0; g < 4; ++g) {
      const GateSum& s = reader.sums[g];
      ASSIGN_OR_RETURN(const Tensor w, Transposed(*s.weights, {1, 0}));
      ASSIGN_OR_RETURN(const Tensor u, Transposed(*s.recurrent, {1, 0}));
      ASSIGN_OR_RETURN(const Tensor b, s.Bias());
      lstm.weights[g] = l.Const(w);
      lstm.recurrent[g] = l.Const(u);
      lstm.bias[g] = l.Const(b);
    }
    lstm.output = builder.OutputOf(lstm.input, reader.sums[0].units());
    ASSIGN_OR_RETURN(const Endpoint all, AddSequenceLstm(lstm, l));
    return builder.Replace(all, reader.own);
  };
  return builder.Build(reader.sums[0].x, build, why);
}

}  // namespace smelt
