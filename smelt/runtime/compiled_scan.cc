#include <algorithm>
#include <array>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "smelt/kernels/node_error.h"
#include "smelt/runtime/compiled_body.h"
#include "smelt/runtime/compiled_item.h"
#include "smelt/runtime/executable.h"

namespace smelt {
namespace {

class CompiledScan final : public CompiledItem {
 public:
  CompiledScan(const Node& node, std::unique_ptr<Graph> body, std::string function)
      : node_(node),
        function_(function),
        last_(node.Get<std::vector<bool>>("last", {})),
        until_(node.Bool("until")),
        stacked_by_(node.Get<std::vector<std::string>>("stacked_by", {})),
        row_shapes_(node.Get<std::vector<PartialShape>>("row_shapes", {})),
        arrays_of_(node.Get<std::vector<std::string>>("arrays_of", {})),
        states_(node.Get<std::vector<Dtype>>("Tstates", {}).size()),
        rows_(node.Get<std::vector<Dtype>>("Trows", {}).size()),
        // A loop that says itself when it ends says so of all rows.
        body_(node, std::move(body), std::move(function),
              {until_ ? PartsWanted::Kind::kNone : PartsWanted::Kind::kOfLoop, states_}) {}

  Status Run(std::span<Tensor* const> inputs, std::span<Tensor> outputs, Step& step) override {
    Call call{.states = inputs.subspan(1, states_),
              .rows = inputs.subspan(1 + states_, rows_),
              .lengths = inputs.subspan(1 + states_ + rows_, last_.size()),
              .rest = inputs.subspan(1 + states_ + rows_ + last_.size()),
              .results = outputs,
              .step = step};
    // No node of the body is at fault.
    if (const Status s = FillCall(*inputs[0], &call); !s.ok()) return WithNode(s, function_, node_);
    if (call.steps <= 0) RETURN_IF_ERROR(CheckRowShapes(call));
    ASSIGN_OR_RETURN(const CompiledBody::Found found, ProgramOf(call));
    const Status s = found.program != nullptr ? RunProgram(*found.program, call) : RunPlain(call);
    return s.ok() ? s : WithNode(s, function_, node_);
  }
  std::string Text(bool reasons) override { return body_.Text(reasons); }
  void Visit(ProgramVisitor visit) override { body_.Visit(visit); }

 private:
  struct Call {
    const std::span<Tensor*const> states, rows, lengths, rest;
    const std::span<Tensor> results;
    Step& step;
    int64_t steps = 0;
    absl::InlinedVector<int64_t, 2> array_rows;  // of each array
    std::span<Tensor> arrays() const { return results.subspan(states.size()); }
  };

  static Status NoRow(const Tensor& t) {
    return InvalidArgument("Trying to access element ", t.dim(0), " in a list with ", t.dim(0),
                           " elements.");
  }
  static Status NoPlace(int64_t n) {
    return InvalidArgument("Trying to modify element ", n, " in a list with ", n, " elements.");
  }
  // What FillCall checks where nobody knows yet how often the body runs.
  Status CheckTurn(const Call& call, int64_t k) const {
    if (!until_) return OkStatus();
    if (call.step.cancellation != nullptr) RETURN_IF_ERROR(call.step.cancellation->Check());
    for (const Tensor* t : call.rows) {
      if (t->dim(0) <= k) return NoRow(*t);
    }
    for (size_t i = 0; i < last_.size(); ++i) {
      if (call.array_rows[i] <= (last_[i] ? 0 : k)) return NoPlace(call.array_rows[i]);
    }
    return OkStatus();
  }

  // Checks what lists would say as they are read and written.
  Status FillCall(const Tensor& steps, Call* call) const {
    if (steps.rank() != 0) {
      return InvalidArgument("a loop's bound must be a scalar, not of shape ",
                             steps.shape().ToString());
    }
    call->steps = IndexAt(steps, 0);
    for (const Tensor* t : call->rows) {
      if (t->rank() == 0) {
        return InvalidArgument("Tensor must be at least a vector, but saw shape: []");
      }
      if (!until_ && t->dim(0) < call->steps) return NoRow(*t);
    }
    for (size_t i = 0; i < call->lengths.size(); ++i) {
      const Tensor& length = *call->lengths[i];
      if (length.rank() != 0) {
        return InvalidArgument("num_elements must be a scalar, but has shape ",
                               length.shape().ToString());
      }
      const int64_t n = length.data<int32_t>()[0];
      if (n < 0) {
        return InvalidArgument(
            "The num_elements to reserve must be a non negative number, but got ", n);
      }
      const int64_t needed = last_[i] ? std::min<int64_t>(call->steps, 1) : call->steps;
      if (!until_ && n < needed) return NoPlace(n);
      call->array_rows.push_back(n);
    }
    return OkStatus();
  }

  // Where no iteration runs: is it known what rows the arrays have? In the words of what would
  // stack them.
  Status CheckRowShapes(const Call& call) const {
    for (size_t i = 0; i < stacked_by_.size(); ++i) {
      const PartialShape& shape = row_shapes_[i];
      if (stacked_by_[i].empty()) continue;
      const bool none = call.array_rows[i] == 0;
      Status s;
      if (arrays_of_[i].empty()) {
        s = InvalidArgument(none ? "Tried to stack elements of an empty list with "
                                 : "Tried to stack list which only contains uninitialized tensors "
                                   "and has a ",
                            "non-fully-defined element_shape: ", shape.ToString());
      } else if (none) {
        s = Unimplemented("TensorArray has size zero, but element shape ", shape.ToString(),
                          " is not fully defined. Currently only static shapes are supported ",
                          "when packing zero-size TensorArrays.");
      } else {
        s = InvalidArgument("TensorArray ", arrays_of_[i],
                            ": Could not read from TensorArray index 0.  Furthermore, the element ",
                            "shape is not fully defined: ", shape.ToString(), ".");
      }
      return WithNode(s, function_, stacked_by_[i]);
    }
    return OkStatus();
  }

  // None also where an iteration leaves a state of another shape than it found.
  StatusOr<CompiledBody::Found> ProgramOf(const Call& call) {
    absl::InlinedVector<const Shape*, 16> shapes;
    absl::InlinedVector<Shape, 4> row_shapes;
    row_shapes.reserve(call.rows.size());
    for (const Tensor* t : call.states) shapes.push_back(&t->shape());
    for (const Tensor* t : call.rows) {
      shapes.push_back(&row_shapes.emplace_back(t->shape().dims().subspan(1)));
    }
    for (const Tensor* t : call.rest) shapes.push_back(&t->shape());
    ASSIGN_OR_RETURN(CompiledBody::Found made, body_.ProgramFor(shapes));
    if (made.program == nullptr) return made;
    for (size_t i = 0; i < states_; ++i) {
      if (!(made.program->ResultShape(i) == call.states[i]->shape())) return CompiledBody::Found();
    }
    if (until_ && made.program->ResultShape(states_ + last_.size()).rank() != 0) {
      return CompiledBody::Found();
    }
    return made;
  }

  // Room for an array of such rows; those that no iteration writes are zeros.
  Status MakeArray(const Call& call, size_t i, Dtype dtype, const Shape& row) const {
    Dims dims = {call.array_rows[i]};
    dims.insert(dims.end(), row.dims().begin(), row.dims().end());
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor& array = call.arrays()[i];
    ASSIGN_OR_RETURN(array, Tensor::Make(dtype, shape, call.step.allocator));
    const int64_t written = until_ ? 0 : last_[i] ? std::min<int64_t>(call.steps, 1) : call.steps;
    if (const size_t bytes = RowBytes(array); written < array.dim(0) && bytes > 0) {
      std::memset(static_cast<char*>(array.raw()) + static_cast<size_t>(written) * bytes, 0,
                  static_cast<size_t>(array.dim(0) - written) * bytes);
    }
    return OkStatus();
  }
  static size_t RowBytes(const Tensor& t) {
    return t.dim(0) == 0 ? 0 : t.bytes() / static_cast<size_t>(t.dim(0));
  }

  // The states as a turn reads and writes them: where the one before left them, and beside, or
  // there.
  using Written = std::array<std::vector<Tensor>, 2>;
  StatusOr<Written> MakeWritten(const PartedProgram& parted, const Call& call) const {
    Written written;
    for (size_t i = 0; i < states_; ++i) {
      const Tensor& t = *call.states[i];
      for (size_t side = 0; side < 2 && static_cast<int64_t>(side) < call.steps; ++side) {
        if (parted.may_stay(i) && side > 0) {
          written[1].push_back(written[0][i]);
          continue;
        }
        ASSIGN_OR_RETURN(written[side].emplace_back(),
                         Tensor::Make(t.dtype(), t.shape(), call.step.allocator));
      }
    }
    return written;
  }

  Status RunProgram(const PartedProgram& parted, Call& call) const {
    for (size_t i = 0; i < last_.size(); ++i) {
      const PlanValue& row = parted.program().result(states_ + i);
      RETURN_IF_ERROR(MakeArray(call, i, row.dtype, parted.ResultShape(states_ + i)));
    }
    ASSIGN_OR_RETURN(const Written written, MakeWritten(parted, call));
    int64_t turns = call.steps;  // as many of every part, but of a loop that says when it ends
    RETURN_IF_ERROR(parted.ForParts(
        call.steps, [&](const Program& program, int64_t begin, int64_t end) -> Status {
          Step own = call.step;
          ProgramRunner runner(program, own);
          RETURN_IF_ERROR(runner.Start());
          for (int64_t part = begin; part < end; ++part) {
            ASSIGN_OR_RETURN(const int64_t done,
                             RunTurns(parted, program, part, runner, written, call));
            if (until_) turns = done;
          }
          return OkStatus();
        }));
    for (size_t i = 0; i < states_; ++i) {
      call.results[i] =
          turns == 0 ? *call.states[i] : written[static_cast<size_t>((turns - 1) % 2)][i];
    }
    return OkStatus();
  }

  // A state that is the row of an array, too.
  struct StateInArray {
    size_t state, array;
  };
  std::vector<StateInArray> StatesInArrays(const PartedProgram& parted, const Program& program,
                                           int64_t part, const Call& call) const {
    std::vector<StateInArray> out;
    const Plan& plan = program.plan();
    const auto root = [&](size_t result) { return plan.Root(plan.results[result]); };
    for (size_t i = 0; i < last_.size(); ++i) {
      const size_t bytes = RowBytes(call.arrays()[i]);
      if (until_ || bytes % kAlignment != 0 || parted.OffsetOf(part, bytes) % kAlignment != 0) {
        continue;
      }
      for (size_t s = 0; s < states_; ++s) {
        const PlanValue& value = plan.values[static_cast<size_t>(root(s))];
        const bool taken =
            std::ranges::any_of(out, [s](const StateInArray& in) { return in.state == s; });
        if (taken || root(s) != root(states_ + i) || value.place != PlanValue::Place::kResult ||
            program.result(s).bytes() != value.bytes() ||
            program.result(states_ + i).bytes() != value.bytes()) {
          continue;
        }
        out.push_back({s, i});
        break;
      }
    }
    return out;
  }

  // Of the rows of one part; how many there were.
  StatusOr<int64_t> RunTurns(const PartedProgram& parted, const Program& program, int64_t part,
                             ProgramRunner& runner, const Written& written,
                             const Call& call) const {
    const std::vector<StateInArray> in_arrays = StatesInArrays(parted, program, part, call);
    std::vector<TensorBytes> args, results, rows;
    for (const auto* list : {&call.states, &call.rows, &call.rest}) {
      for (const Tensor* t : *list) {
        const size_t bytes = list == &call.rows ? RowBytes(*t) : t->bytes();
        args.push_back({t, parted.OffsetOfArgument(args.size(), part, bytes)});
      }
    }
    for (size_t i = 0; i < states_; ++i) {
      results.push_back({nullptr, parted.OffsetOf(part, call.states[i]->bytes())});
    }
    for (const Tensor& t : call.arrays()) rows.push_back({&t, parted.OffsetOf(part, RowBytes(t))});
    const std::vector<TensorBytes> states(results);
    results.insert(results.end(), rows.begin(), rows.end());
    Tensor goes_on = Tensor::Scalar<bool>(true);
    if (until_) results.push_back({&goes_on, 0});
    int64_t k = 0;
    for (; k < call.steps && goes_on.scalar<bool>(); ++k) {
      RETURN_IF_ERROR(CheckTurn(call, k));
      const auto side = static_cast<size_t>(k % 2);
      if (k > 0) std::copy_n(results.begin(), states_, args.begin());
      for (size_t i = 0; i < states_; ++i) results[i] = {&written[side][i], states[i].offset};
      std::ranges::copy(rows, results.begin() + static_cast<std::ptrdiff_t>(states_));
      // The last turn leaves states by themselves, and rows that each turn makes anew.
      for (const StateInArray& in : in_arrays) {
        if (k + 1 == call.steps) break;
        TensorBytes& row = results[states_ + in.array];
        if (last_[in.array]) {
          row = results[in.state];
        } else {
          results[in.state] = row;
        }
      }
      RETURN_IF_ERROR(runner.Run(args, results));
      for (size_t i = 0; i < rows_; ++i) args[states_ + i].offset += RowBytes(*call.rows[i]);
      for (size_t i = 0; i < last_.size(); ++i) {
        if (!last_[i]) rows[i].offset += RowBytes(call.arrays()[i]);
      }
    }
    return k;
  }

  // Where states change their shapes until something is found, requests tend to go through the same
  // shapes. No program: there is none, or states go through shapes as often as the body runs.
  StatusOr<CompiledBody::Found> ProgramOfTurn(const std::vector<Tensor>& args) {
    if (!until_) return CompiledBody::Found();
    absl::InlinedVector<const Shape*, 16> shapes;
    for (const Tensor& t : args) shapes.push_back(&t.shape());
    return body_.ProgramFor(shapes);
  }

  // One turn after another, for states whose shapes change and shapes that only a run tells.
  Status RunPlain(Call& call) {
    ASSIGN_OR_RETURN(Executable * plain, body_.Plain());
    std::vector<Tensor> states, args, results;
    for (const Tensor* t : call.states) states.push_back(*t);
    // Without an iteration a run on zeros tells what rows the arrays would have.
    for (int64_t k = 0; k < std::max<int64_t>(call.steps, 1); ++k) {
      if (call.step.cancellation != nullptr) RETURN_IF_ERROR(call.step.cancellation->Check());
      if (call.steps > 0) RETURN_IF_ERROR(CheckTurn(call, k));
      args = call.steps > 0 ? std::move(states) : states;
      for (const Tensor* t : call.rows) {
        const Shape row(t->shape().dims().subspan(1));
        if (call.steps > 0) {
          args.push_back(t->Rows(k, k + 1).WithShape(row));
        } else {
          ASSIGN_OR_RETURN(args.emplace_back(), Tensor::Zeros(t->dtype(), row));
        }
      }
      for (const Tensor* t : call.rest) args.push_back(*t);
      ASSIGN_OR_RETURN(const CompiledBody::Found turn, ProgramOfTurn(args));
      results.clear();
      if (turn.program != nullptr) {
        std::vector<Tensor*> pointers;
        for (Tensor& t : args) pointers.push_back(&t);
        results.resize(states_ + last_.size() + 1);
        RETURN_IF_ERROR(turn.program->Run(pointers, results, call.step));
      } else {
        RETURN_IF_ERROR(plain->Run(std::span<Tensor>(args), &results, call.step));
      }
      for (size_t i = 0; i < last_.size(); ++i) {
        RETURN_IF_ERROR(WriteRow(call, i, k, results[states_ + i]));
      }
      bool goes_on = true;
      if (until_) {
        const Tensor& last = results[states_ + last_.size()];
        if (last.rank() != 0) {
          return InvalidArgument("a loop's condition must be a scalar, not of shape ",
                                 last.shape().ToString());
        }
        goes_on = last.scalar<bool>();
      }
      if (call.steps > 0) {
        results.resize(states_);
        states = std::move(results);
      }
      if (!goes_on) break;
    }
    std::ranges::move(states, call.results.begin());
    return OkStatus();
  }

  Status WriteRow(const Call& call, size_t i, int64_t k, const Tensor& row) const {
    Tensor& array = call.arrays()[i];
    if (k == 0) RETURN_IF_ERROR(MakeArray(call, i, row.dtype(), row.shape()));
    if (call.steps == 0) return OkStatus();
    if (!std::ranges::equal(array.shape().dims().subspan(1), row.shape().dims())) {
      return InvalidArgument("Tried to stack list which only contains uninitialized tensors or ",
                             "elements of several shapes: ", array.shape().ToString(), " and ",
                             row.shape().ToString());
    }
    const size_t at = last_[i] ? 0 : static_cast<size_t>(k);
    if (row.bytes() > 0) {
      std::memcpy(static_cast<char*>(array.raw()) + at * row.bytes(), row.raw(), row.bytes());
    }
    return OkStatus();
  }

  const Node& node_;
  const std::string function_;
  const std::vector<bool> last_;  // by array
  const bool until_;              // the body says how often it runs
  const std::vector<std::string> stacked_by_;
  const std::vector<PartialShape> row_shapes_;
  const std::vector<std::string> arrays_of_;
  const size_t states_, rows_;
  CompiledBody body_;
};

}  // namespace

std::unique_ptr<CompiledItem> MakeCompiledScan(const Node& node, std::unique_ptr<Graph> body,
                                               std::string function) {
  return std::make_unique<CompiledScan>(node, std::move(body), std::move(function));
}

}  // namespace smelt
