// A scan as a While over tensors: it counts, takes row k of each array that it reads, and writes
// row k of each that it makes.
#include <algorithm>

#include "smelt/graph/constant.h"
#include "smelt/graph/function_ops.h"
#include "smelt/graph/op_facts.h"
#include "smelt/lite/common/attributes.h"
#include "smelt/lite/recurrences/recurrence.h"

namespace smelt {
namespace {

Dtype TypeOf(Endpoint e) { return BaseType(e.node->output_types[static_cast<size_t>(e.port)]); }

// One size of what an iteration makes: a number, or that of a value of the caller.
struct RowSize {
  int64_t number = -1;
  Endpoint of;
  int dim = 0;
};

// What sizes the rows of an array have is found out by trying: sizes that are not known are given
// numbers, twice different ones, and what comes out of the body is one of them, or the same both
// times, or nothing that is known.
class RowSizes {
 public:
  RowSizes(const Graph& caller, const Scan& scan)
      : scan_(scan), shapes_(InferSymbolicShapes(caller, {})) {}

  Status Find() {
    for (const int64_t first : {100'003, 700'001}) {
      std::vector<PartialShape> args;
      given_.clear();
      next_ = first;
      for (int i = 0; i < scan_.states; ++i) args.push_back(Given(scan_.state(i), 0));
      for (int i = 0; i < scan_.rows; ++i) args.push_back(Given(scan_.row(i), 1));
      for (int i = 0; i < scan_.rest; ++i) args.push_back(Given(scan_.rest_of(i), 0));
      ASSIGN_OR_RETURN(const ShapeTable body, InferShapes(**scan_.body, {}, args));
      for (int i = 0; i < scan_.arrays; ++i) {
        const Node* result = scan_.results[static_cast<size_t>(scan_.states + i)];
        Note(static_cast<size_t>(i), body.of(result->input(0)));
      }
    }
    return OkStatus();
  }
  // Empty optional: not known.
  std::vector<std::optional<std::vector<RowSize>>> by_array;

 private:
  // The shape of a value with numbers in place of what is not known, behind the first `skip`.
  PartialShape Given(Endpoint e, int skip) {
    const PartialShape& shape = shapes_.of(e);
    if (!shape.known_rank() || shape.rank() < skip) return {};
    std::vector<int64_t> dims;
    for (int i = skip; i < shape.rank(); ++i) {
      if (shape[i] >= 0) {
        dims.push_back(shape[i]);
        continue;
      }
      const auto same = std::ranges::find_if(given_, [&](const auto& g) {
        return IsSymbolicDim(shape[i]) && shapes_.of(g.second.of)[g.second.dim] == shape[i];
      });
      if (same != given_.end()) {
        dims.push_back(same->first);
        continue;
      }
      next_ += 2;
      given_.push_back({next_, {-1, e, i}});
      dims.push_back(next_);
    }
    return PartialShape::Of(dims);
  }

  void Note(size_t array, const PartialShape& shape) {
    std::optional<std::vector<RowSize>> sizes;
    if (shape.fully_known()) {
      sizes.emplace();
      for (int i = 0; i < shape.rank(); ++i) {
        const auto given =
            std::ranges::find_if(given_, [&](const auto& g) { return g.first == shape[i]; });
        sizes->push_back(given == given_.end() ? RowSize{shape[i], {}, 0} : given->second);
      }
    }
    if (array >= by_array.size()) {
      by_array.push_back(std::move(sizes));
      return;
    }
    // Found twice, it is true.
    const auto same = [](const RowSize& a, const RowSize& b) {
      return a.number == b.number && a.of == b.of && a.dim == b.dim;
    };
    auto& known = by_array[array];
    if (!known || !sizes || !std::ranges::equal(*known, *sizes, same)) known.reset();
  }

  const Scan& scan_;
  const ShapeTable shapes_;
  std::vector<std::pair<int64_t, RowSize>> given_;
  int64_t next_ = 0;
};

class WhileBuilder {
 public:
  WhileBuilder(Graph& graph, const Scan& scan)
      : graph_(graph), scan_(scan), body_(**scan.body), name_(scan.node->name()) {}

  Status Build(const RowSizes& sizes) {
    const Dtype counter = TypeOf(scan_.steps());
    const Tensor zero =
        counter == Dtype::kInt64 ? Tensor::Scalar<int64_t>(0) : Tensor::Scalar<int32_t>(0);
    const Tensor one =
        counter == Dtype::kInt64 ? Tensor::Scalar<int64_t>(1) : Tensor::Scalar<int32_t>(1);
    // What the loop carries: the counter, its end, states, arrays, whether it goes on, and what
    // stays the same.
    const Endpoint k = Carry({graph_.AddConst(name_ + "/first", zero), 0});
    const Endpoint steps = Carry(scan_.steps());
    ASSIGN_OR_RETURN(const Endpoint next,
                     AddOp(body_, "next", "AddV2", {k, {body_.AddConst("one", one), 0}}));
    results_ = {next, steps};
    for (int i = 0; i < scan_.states; ++i) {
      Take(scan_.args[static_cast<size_t>(i)], Carry(scan_.state(i)));
      results_.push_back(Result(i));
    }
    for (int i = 0; i < scan_.arrays; ++i) {
      ASSIGN_OR_RETURN(const Endpoint array, Array(i, *sizes.by_array[static_cast<size_t>(i)]));
      const Endpoint carried = Carry(array);
      const bool last = scan_.last[static_cast<size_t>(i)];
      const Endpoint at = last ? Endpoint{body_.AddConst("row", zero), 0} : k;
      ASSIGN_OR_RETURN(const Endpoint row,
                       RowFor(carried, Result(scan_.states + i), scan_.length(i),
                              sizes.by_array[static_cast<size_t>(i)]->size()));
      ASSIGN_OR_RETURN(
          const Endpoint written,
          Written(carried, row, sizes.by_array[static_cast<size_t>(i)]->size(), at, counter));
      results_.push_back(written);
    }
    if (scan_.until()) {
      // The scan runs no step where its number of steps is none.
      Carry({graph_.AddConst(name_ + "/goes_on", Tensor::Scalar(true)), 0});
      results_.push_back(Result(scan_.states + scan_.arrays));
    }
    for (int i = 0; i < scan_.rows; ++i) {
      const Endpoint rows = Carry(scan_.row(i));
      Endpoint axis = {body_.AddConst("axis", Tensor::Scalar<int32_t>(0)), 0};
      ASSIGN_OR_RETURN(const Endpoint row, AddOp(body_, "row", "GatherV2", {rows, k, axis}));
      Take(scan_.args[static_cast<size_t>(scan_.states + i)], row);
      results_.push_back(rows);
    }
    for (int i = 0; i < scan_.rest; ++i) {
      const Endpoint rest = Carry(scan_.rest_of(i));
      Take(scan_.args[static_cast<size_t>(scan_.states + scan_.rows + i)], rest);
      results_.push_back(rest);
    }
    ASSIGN_OR_RETURN(const std::string cond, AddCondition());
    ASSIGN_OR_RETURN(const std::string body, AddBody());
    AttrMap attrs;
    DtypeVector types;
    for (const Endpoint& e : carried_) types.push_back(TypeOf(e));
    attrs.Set("T", types);
    attrs.Set("cond", FuncAttr{cond, nullptr});
    attrs.Set("body", FuncAttr{body, nullptr});
    ASSIGN_OR_RETURN(Node * loop, graph_.Add(name_, "StatelessWhile", carried_, std::move(attrs)));
    for (int i = 0; i < scan_.states + scan_.arrays; ++i) {
      graph_.ReplaceAllUses({scan_.node, i}, {loop, i + 2});
    }
    graph_.SetControlInputs(loop, scan_.node->control_inputs());
    graph_.ReplaceControlUses(scan_.node, loop);
    graph_.Remove(scan_.node);
    return OkStatus();
  }

 private:
  // The loop takes the value: an argument of the body.
  Endpoint Carry(Endpoint from) {
    carried_.push_back(from);
    Node* arg = *body_.AddNode(body_.FreeName("carried"), "_Arg");
    arg->AttrsToChange().Set("T", TypeOf(from));
    arg->AttrsToChange().Set("index", static_cast<int64_t>(args_.size()));
    arg->SetOutputTypes({TypeOf(from)});
    args_.push_back(arg);
    return {arg, 0};
  }
  // Who read the argument of the scan's body reads the value. The argument may be a result too.
  void Take(Node* arg, Endpoint by) {
    if (arg == nullptr) return;
    body_.ReplaceAllUses({arg, 0}, by);
    body_.ReplaceControlUses(arg, nullptr);
    for (Endpoint& e : results_) {
      if (e.node == arg) e = by;
    }
    old_.push_back(arg);
  }
  Endpoint Result(int i) const { return scan_.results[static_cast<size_t>(i)]->input(0); }

  // Zeros with room for all rows.
  StatusOr<Endpoint> Array(int i, const std::vector<RowSize>& sizes) {
    const auto shape_name = name_ + "/array_shape";
    const Dtype type = TypeOf({scan_.node, scan_.states + i});
    ASSIGN_OR_RETURN(const Tensor nothing, Tensor::Zeros(type, Shape()));
    std::vector<Endpoint> dims = {scan_.length(i)};
    const auto number = [&](int64_t n) {
      return Endpoint{graph_.AddConst(shape_name, Tensor::Scalar(static_cast<int32_t>(n))), 0};
    };
    for (const RowSize& s : sizes) {
      if (s.number >= 0) {
        dims.push_back(number(s.number));
        continue;
      }
      ASSIGN_OR_RETURN(const Endpoint shape, AddOp(graph_, shape_name, "Shape", {s.of}));
      const auto at = [&](int32_t n) {
        return Endpoint{graph_.AddConst(shape_name, Tensor::Vector<int32_t>({n})), 0};
      };
      AttrMap attrs;
      attrs.Set("shrink_axis_mask", int64_t{1});
      ASSIGN_OR_RETURN(dims.emplace_back(),
                       AddOp(graph_, shape_name, "StridedSlice",
                             {shape, at(s.dim), at(s.dim + 1), at(1)}, std::move(attrs)));
    }
    AttrMap attrs;
    attrs.Set("T", Dtype::kInt32);
    attrs.Set("N", static_cast<int64_t>(dims.size()));
    ASSIGN_OR_RETURN(Node * packed, graph_.Add(shape_name, "Pack", dims, std::move(attrs)));
    const Endpoint value = {graph_.AddConst(name_ + "/nothing", nothing), 0};
    return AddOp(graph_, name_ + "/array", "Fill", {{packed, 0}, value});
  }

  // The row as a part of the array. Of one without rows it is none: runtimes look whether it fits
  // in before they know that the loop takes no turn.
  StatusOr<Endpoint> RowFor(Endpoint array, Endpoint row, Endpoint length, size_t rank) {
    const Endpoint axis = {body_.AddConst("axis", Tensor::Scalar<int32_t>(0)), 0};
    ASSIGN_OR_RETURN(const Endpoint one, AddOp(body_, "row", "ExpandDims", {row, axis}));
    const std::optional<Tensor> known = ConstantTensor(*BehindIdentities(length).node);
    if (known && IndexAt(*known, 0) > 0) return one;
    const auto ints = [&](int32_t n) {
      const std::vector<int32_t> numbers(rank + 1, n);
      return Endpoint{body_.AddConst("row", Tensor::Vector(std::span<const int32_t>(numbers))), 0};
    };
    ASSIGN_OR_RETURN(const Endpoint sizes, AddOp(body_, "row", "Shape", {array}));
    return AddOp(body_, "row", "StridedSlice", {one, ints(0), sizes, ints(1)});
  }

  // The array with the row, which has its rank, in its place.
  StatusOr<Endpoint> Written(Endpoint array, Endpoint one, size_t rank, Endpoint at,
                             Dtype counter) {
    const Endpoint axis = {body_.AddConst("axis", Tensor::Scalar<int32_t>(0)), 0};
    ASSIGN_OR_RETURN(const Endpoint first, AddOp(body_, "at", "ExpandDims", {at, axis}));
    Endpoint begin = first;
    if (rank > 0) {
      ASSIGN_OR_RETURN(const Tensor zeros,
                       Tensor::Zeros(counter, Shape({static_cast<int64_t>(rank)})));
      const Endpoint rest = {body_.AddConst("at", zeros), 0};
      AttrMap attrs;
      attrs.Set("N", int64_t{2});
      ASSIGN_OR_RETURN(begin,
                       AddOp(body_, "at", "ConcatV2", {first, rest, axis}, std::move(attrs)));
    }
    return AddOp(body_, "written", "XlaDynamicUpdateSlice", {array, one, begin});
  }

  StatusOr<std::string> AddFunction(absl::string_view what, std::unique_ptr<Graph> graph,
                                    std::vector<Node*> args, std::vector<Endpoint> results) {
    auto f = std::make_unique<Function>();
    const std::string name = graph_.library()->FreeName(absl::StrCat(name_, "_", what));
    f->signature.name = name;
    for (Node* arg : args) {
      ArgDef def;
      def.name = arg->name();
      def.type = arg->output_types[0];
      f->signature.inputs.push_back(std::move(def));
    }
    f->args = std::move(args);
    for (size_t i = 0; i < results.size(); ++i) {
      ArgDef def;
      def.name = absl::StrCat("result_", i);
      def.type = TypeOf(results[i]);
      f->signature.outputs.push_back(std::move(def));
      f->results.push_back({results[i]});
    }
    f->body = std::move(graph);
    RETURN_IF_ERROR(graph_.library()->Add(std::move(f)));
    return name;
  }

  StatusOr<std::string> AddBody() {
    std::vector<Node*> gone = scan_.results;
    body_.Remove(gone);
    body_.Remove(old_);
    return AddFunction("body", std::move(*scan_.body), args_, results_);
  }

  StatusOr<std::string> AddCondition() {
    auto graph = std::make_unique<Graph>(graph_.library());
    std::vector<Node*> args;
    for (const Node* from : args_) {
      ASSIGN_OR_RETURN(Node * arg, graph->AddNode(from->name(), "_Arg"));
      arg->AttrsToChange() = from->attrs();
      RETURN_IF_ERROR(graph->ResolveTypes(arg));
      args.push_back(arg);
    }
    ASSIGN_OR_RETURN(Endpoint goes_on,
                     AddOp(*graph, "goes_on", "Less", {{args[0], 0}, {args[1], 0}}));
    if (scan_.until()) {
      Node* says = args[static_cast<size_t>(2 + scan_.states + scan_.arrays)];
      ASSIGN_OR_RETURN(goes_on, AddOp(*graph, "goes_on", "LogicalAnd", {goes_on, {says, 0}}));
    }
    return AddFunction("cond", std::move(graph), std::move(args), {goes_on});
  }

  Graph& graph_;
  const Scan& scan_;
  Graph& body_;
  const std::string name_;
  std::vector<Endpoint> carried_, results_;
  std::vector<Node*> args_, old_;
};

}  // namespace

StatusOr<bool> TakeWhile(Graph& graph, const Scan& scan, std::string* why) {
  RowSizes sizes(graph, scan);
  const Status found = sizes.Find();
  if (!found.ok()) {
    *why = std::string(found.message());
    return false;
  }
  WhileBuilder builder(graph, scan);
  for (size_t i = 0; i < sizes.by_array.size(); ++i) {
    if (!sizes.by_array[i]) {
      *why = "the shape of what it collects is not known before it runs";
      return false;
    }
  }
  RETURN_IF_ERROR(builder.Build(sizes));
  return true;
}

}  // namespace smelt
