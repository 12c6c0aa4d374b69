#include "smelt/compile/activation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "smelt/graph/op_facts.h"
#include "smelt/kernels/run_op.h"
#include "smelt/tensor/float16.h"

namespace smelt {
namespace {

// The longest spelling of GELU has nine.
constexpr size_t kMaxActions = 12;

// Where activations are as near to what bounds them as a float tells.
constexpr float kFar = 60;

std::span<const float> Samples() {
  static const std::vector<float> samples = [] {
    std::vector<float> s = {kFar, -kFar, 0.0F, -0.0F, 1e-6F, -1e-6F, 30.0F, -30.0F, 12.0F, -12.0F};
    for (int i = -80; i <= 80; ++i) s.push_back(static_cast<float>(i) * 0.0937F);
    return s;
  }();
  return samples;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double ValueOf(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
    case Activation::kGeluExact:
      return x * 0.5 * std::erfc(-x * std::sqrt(0.5));
    case Activation::kGeluApproximate:
      return x * Sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    case Activation::kSilu:
      return x * Sigmoid(x);
    case Activation::kHardSwish:
      return x * std::clamp(x + 3, 0.0, 6.0) / 6;
    default:
      return std::nan("");
  }
}
constexpr Activation kKnown[] = {
    Activation::kRelu,      Activation::kRelu6,           Activation::kTanh, Activation::kSigmoid,
    Activation::kGeluExact, Activation::kGeluApproximate, Activation::kSilu, Activation::kHardSwish,
};

// How far an activation may be off that is spelled out in the type: bfloat16 rounds its constants,
// which moves results by less than they are rounded by.
double ToleranceOf(Dtype type) { return type == Dtype::kFloat ? 1e-5 : 0x1p-9; }

// Logarithms and divisors tell 0 from the least that a clip or a sum leaves of it, and 1 from the
// most: what is bounded has to reach its bounds.
bool EndsAlike(double x, double want, double got, double tolerance) {
  if (want == x) return std::abs(got - want) <= tolerance * std::abs(want);
  return std::abs(want) < 1e-20 ? std::abs(got) < 1e-20 : static_cast<float>(want) == got;
}

// The nearest of those that are near enough: in bfloat16 both kinds of GELU may be.
std::optional<Activation> Recognize(const Tensor& y, double tolerance) {
  const std::span<const float> x = Samples();
  std::optional<Activation> found;
  double nearest = tolerance;
  for (const Activation activation : kKnown) {
    double off = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = ValueOf(activation, static_cast<double>(x[i]));
      const double got = static_cast<double>(y.data<float>()[i]);
      const double error = std::abs(got - want) / std::max(1.0, std::abs(want));
      // NaN is far off, too. A slope of 0 makes -0, by which something may be divided.
      if (!(error <= nearest) || (got == 0 && std::signbit(got) && !std::signbit(want)) ||
          (std::abs(x[i]) == kFar && !EndsAlike(x[i], want, got, tolerance))) {
        off = INFINITY;
        break;
      }
      off = std::max(off, error);
    }
    if (off > nearest || (found && off == nearest)) continue;
    found = activation;
    nearest = off;
  }
  return found;
}

// What the op would make of floats.
StatusOr<std::vector<Tensor>> RunInFloat(const Node& n, std::vector<Tensor> inputs) {
  Step step;
  if (n.Type("T") == Dtype::kFloat) return RunOp(n, std::move(inputs), step);
  Graph graph(std::make_shared<FunctionLibrary>());
  std::vector<Endpoint> args;
  for (const Tensor& t : inputs) args.push_back({graph.AddConst("x", t), 0});
  AttrMap attrs = n.attrs();
  attrs.Set("T", Dtype::kFloat);
  ASSIGN_OR_RETURN(const Node* copy, graph.Add("y", n.op(), args, std::move(attrs)));
  return RunOp(*copy, std::move(inputs), step);
}

// A constant of one element as a float.
Tensor FloatNumber(const Tensor& t) {
  if (t.dtype() == Dtype::kBfloat16) return Tensor::Scalar(static_cast<float>(*t.data<Bfloat16>()));
  return t.WithShape(Shape());
}

class Spelling {
 public:
  Spelling(const Plan& plan, int value, const PlanReaders& readers)
      : plan_(plan),
        type_(ValueAt(value).dtype),
        elements_(ValueAt(value).shape.num_elements()),
        readers_(readers) {
    samples_[plan_.Root(value)] = Tensor::Vector<float>(Samples());
    AddReaders(value);
  }

  std::optional<SpelledActivation> Find() {
    SpelledActivation found;
    while (!waiting_.empty() && found.actions.size() < kMaxActions) {
      const size_t next = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      const int made = Run(next);
      if (made < 0) return std::nullopt;
      found.actions.push_back(next);
      // Where nothing else waits this value is all that is left.
      if (waiting_.empty()) {
        if (const auto activation = Recognize(samples_.at(plan_.Root(made)), ToleranceOf(type_))) {
          found.activation = *activation;
          return found;
        }
      }
      AddReaders(made);
    }
    return std::nullopt;
  }

 private:
  const PlanValue& ValueAt(int value) const { return plan_.values[static_cast<size_t>(value)]; }
  void AddReaders(int value) {
    const auto& readers = readers_.Of(value);
    waiting_.insert(readers.begin(), readers.end());
  }

  // The value that the action makes of samples and numbers; -1: it is of another kind.
  int Run(size_t index) {
    if (index >= plan_.actions.size()) return -1;
    const PlanAction& action = plan_.actions[index];
    const Node& n = *action.node;
    if (!n.Is(kElementwiseOps) || action.outputs.size() != 1 || !action.then.empty()) return -1;
    const PlanValue& out = ValueAt(action.outputs[0]);
    if (out.dtype != type_ || n.Type("T") != type_ || out.shape.num_elements() != elements_) {
      return -1;
    }
    std::vector<Tensor> inputs;
    for (const int v : action.inputs) {
      const auto known = samples_.find(plan_.Root(v));
      const PlanValue& in = ValueAt(v);
      // The value may have been read through a reshape.
      if (known != samples_.end() && in.shape == out.shape) {
        inputs.push_back(known->second);
      } else if (in.place == PlanValue::Place::kConstant && in.shape.num_elements() == 1) {
        inputs.push_back(FloatNumber(plan_.constants[static_cast<size_t>(in.number)]));
      } else {
        return -1;
      }
    }
    auto results = RunInFloat(n, std::move(inputs));
    if (!results.ok() || results->size() != 1) return -1;
    const Tensor& y = (*results)[0];
    if (y.dtype() != Dtype::kFloat || y.num_elements() != std::ssize(Samples())) return -1;
    samples_[plan_.Root(action.outputs[0])] = y;
    return action.outputs[0];
  }

  const Plan& plan_;
  const Dtype type_;
  const int64_t elements_;
  const PlanReaders& readers_;
  std::map<int, Tensor> samples_;  // by root
  std::set<size_t> waiting_;       // actions that read them, in order
};

}  // namespace

std::optional<SpelledActivation> FindActivation(const Plan& plan, int value,
                                                const PlanReaders& readers) {
  const Dtype type = plan.values[static_cast<size_t>(value)].dtype;
  if (type != Dtype::kFloat && type != Dtype::kBfloat16) return std::nullopt;
  return Spelling(plan, value, readers).Find();
}

}  // namespace smelt
