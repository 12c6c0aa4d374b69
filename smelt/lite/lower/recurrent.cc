// Recurrences: operators keep themselves, with kernels that give their new states beside what they
// answer (kernels/lite/).
#include <algorithm>
#include <array>

#include "smelt/kernels/kernel.h"
#include "smelt/lite/lower/lowering.h"

namespace smelt {
namespace {

// Where an operator has its states; they are kept between runs where the file says so.
struct StatePlaces {
  OpName op;
  int states[4];
  int count;
};
constexpr StatePlaces kStates[] = {
    {"tfl.lstm", {18, 19}, 2},
    {"tfl.unidirectional_sequence_lstm", {18, 19}, 2},
    {"tfl.bidirectional_sequence_lstm", {35, 36, 37, 38}, 4},
    {"tfl.rnn", {4}, 1},
    {"tfl.unidirectional_sequence_rnn", {4}, 1},
    {"tfl.bidirectional_sequence_rnn", {4, 8}, 2},
    {"tfl.svdf", {4}, 1},
};

bool IsKept(Endpoint state) {
  return state.node->Is("ReadVariableOp") && state.node->input(0).node->Is("VarHandleOp");
}

LoweredEndpoints Recurrence(Node& n, Lowering& l) {
  const auto* places = std::find_if(std::begin(kStates), std::end(kStates),
                                    [&](const StatePlaces& p) { return p.op == n.op_name(); });
  DtypeVector more;
  for (int i = 0; i < places->count; ++i) {
    const int at = places->states[i];
    if (!Lowering::Has(n, at)) return InvalidArgument("its state, input ", at, ", is left out");
    more.push_back(l.type(n.input(at)));
  }
  ASSIGN_OR_RETURN(Node * made, l.Keep(n, more));
  RETURN_IF_ERROR(FindKernel(*made).status());
  for (int i = 0; i < places->count; ++i) {
    const Endpoint state = n.input(places->states[i]);
    if (!IsKept(state)) continue;
    RETURN_IF_ERROR(l.Assign(state, {made, n.num_outputs() + i}));
  }
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back({made, i});
  return out;
}

LoweredEndpoints KeptBasicLstm(Node& n, Lowering& l) {
  ASSIGN_OR_RETURN(Node * made, l.Keep(n));
  RETURN_IF_ERROR(FindKernel(*made).status());
  std::vector<Endpoint> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back({made, i});
  return out;
}

LoweredEndpoints FloatBasicLstm(Node& n, Lowering& l) {
  AttrMap two, turned, four;
  two.Set("N", int64_t{2});
  turned.Set("transpose_b", true);
  four.Set("num_split", int64_t{4});
  ASSIGN_OR_RETURN(const Endpoint joined,
                   l.Add("ConcatV2", {n.input(0), n.input(1), l.Int(1)}, std::move(two)));
  ASSIGN_OR_RETURN(const Endpoint product,
                   l.Add("MatMul", {joined, n.input(2)}, std::move(turned)));
  ASSIGN_OR_RETURN(const Endpoint sums, l.Add("BiasAdd", {product, n.input(3)}));
  const std::array<Endpoint, 2> split = {l.Int(1), sums};
  ASSIGN_OR_RETURN(Node * gates, l.AddNode("Split", split, std::move(four)));
  ASSIGN_OR_RETURN(const Endpoint input, l.Add("Sigmoid", {{gates, 0}}));
  ASSIGN_OR_RETURN(const Endpoint fresh, l.Add("Tanh", {{gates, 1}}));
  ASSIGN_OR_RETURN(const Endpoint forget, l.Add("Sigmoid", {{gates, 2}}));
  ASSIGN_OR_RETURN(const Endpoint output, l.Add("Sigmoid", {{gates, 3}}));
  ASSIGN_OR_RETURN(const Endpoint added, l.Add("Mul", {input, fresh}));
  ASSIGN_OR_RETURN(const Endpoint kept, l.Add("Mul", {forget, n.input(4)}));
  ASSIGN_OR_RETURN(const Endpoint state, l.Add("AddV2", {added, kept}));
  ASSIGN_OR_RETURN(const Endpoint squashed, l.Add("Tanh", {state}));
  ASSIGN_OR_RETURN(const Endpoint answer, l.Add("Mul", {output, squashed}));
  return std::vector<Endpoint>{answer, state, joined, sums};
}

// A basic LSTM has its states among its inputs and outputs, and what it works with as well.
LoweredEndpoints BasicLstm(Node& n, Lowering& l) {
  if (n.num_inputs() != 5 || n.num_outputs() != 4) {
    return InvalidArgument("it has ", n.num_inputs(), " inputs and ", n.num_outputs(), " outputs");
  }
  const bool floats = l.type(n.input(0)) == Dtype::kFloat;
  const LoweredEndpoints out = floats ? FloatBasicLstm(n, l) : KeptBasicLstm(n, l);
  RETURN_IF_ERROR(out.status());
  constexpr int kStateInputs[] = {1, 4};  // of outputs 0 and 1
  for (size_t i = 0; i < std::size(kStateInputs); ++i) {
    const Endpoint state = n.input(kStateInputs[i]);
    if (IsKept(state)) RETURN_IF_ERROR(l.Assign(state, (*out)[i]));
  }
  return out;
}

LoweredEndpoints Lstm(Node& n, Lowering& l) {
  return n.String("kernel_type", "FULL") == "FULL" ? Recurrence(n, l) : BasicLstm(n, l);
}

constexpr LowerRow kRecurrentLowering[] = {
    {"tfl.lstm", Lstm},
    {"tfl.unidirectional_sequence_lstm", Recurrence},
    {"tfl.bidirectional_sequence_lstm", Recurrence},
    {"tfl.rnn", Recurrence},
    {"tfl.unidirectional_sequence_rnn", Recurrence},
    {"tfl.bidirectional_sequence_rnn", Recurrence},
    {"tfl.svdf", Recurrence},
};

}  // namespace

std::span<const LowerRow> RecurrentLowering() { return kRecurrentLowering; }

}  // namespace smelt
