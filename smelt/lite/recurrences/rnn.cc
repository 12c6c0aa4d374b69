// A simple cell by what the body of a loop computes: h' = activation(x * W + h * U + b).
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/composites/lstm.h"
#include "smelt/lite/recurrences/cell.h"
#include "smelt/lite/recurrences/sequence.h"

namespace smelt {

StatusOr<bool> TakeRnn(Graph& graph, const Scan& scan, const ShapeTable& shapes, std::string* why) {
  CellReader cell(scan);
  GateSum sum;
  int hidden = 0;
  std::string_view activation;
  const auto read = [&]() -> StatusOr<bool> {
    if (scan.until()) return cell.No("it ends when its states say so");
    if (scan.states == 0) return cell.No("it keeps no state");
    if (!cell.TakeMask()) return false;
    // Of several states, it is another cell, and which one is the question.
    if (!cell.GivesOnly(0, -1)) return cell.No("");
    const Endpoint value = cell.result(0).value;
    activation = CellActivation(value);
    const Endpoint from = activation == "NONE" ? value : value.node->input(0);
    for (hidden = 0; hidden < scan.states; ++hidden) {
      sum = {};
      ASSIGN_OR_RETURN(const bool added, cell.AddGate(from, hidden, sum));
      if (added) return cell.CheckGates({&sum, 1});
    }
    return false;
  };
  ASSIGN_OR_RETURN(const bool found, read());
  if (!found) {
    *why = cell.why();
    return false;
  }
  SequenceBuilder builder(graph, scan, cell, shapes);
  const auto build = [&]() -> Status {
    Legalizer& l = builder.legalizer();
    ASSIGN_OR_RETURN(const Endpoint input, builder.TakeInput(sum.x));
    ASSIGN_OR_RETURN(const Tensor w, Transposed(*sum.weights, {1, 0}));
    ASSIGN_OR_RETURN(const Tensor u, Transposed(*sum.recurrent, {1, 0}));
    ASSIGN_OR_RETURN(const Tensor b, sum.Bias());
    const Endpoint first = scan.state(hidden);
    ASSIGN_OR_RETURN(const auto states, VariableStates({&first, 1}, l));
    AttrMap options = Options({{"fused_activation_function", std::string(activation)}});
    if (builder.time_major()) options.Set("time_major", true);
    ASSIGN_OR_RETURN(const Endpoint all,
                     l.Add("tfl.unidirectional_sequence_rnn",
                           {input, l.Const(w), l.Const(u), l.Const(b), states[0]},
                           std::move(options), builder.OutputOf(input, sum.units())));
    return builder.Replace(all, -1);
  };
  return builder.Build(sum.x, build, why);
}

}  // namespace smelt
