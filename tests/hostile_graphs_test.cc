// Graphs that no honest program writes: refused in TensorFlow's words, or run in bounded memory and
// stack until their time is up.
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "smelt/base/stack.h"
#include "smelt/graph/text.h"
#include "smelt/kernels/run_op.h"
#include "smelt/optimize/passes.h"
#include "smelt/runtime/session.h"

namespace smelt {
namespace {

std::unique_ptr<Session> Open(absl::string_view text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::make_unique<Session>(std::shared_ptr<const Graph>(*std::move(graph)));
}

StatusOr<Tensor> Fetch(absl::string_view text, const std::string& fetch,
                       const RunOptions& options = RunOptions()) {
  ASSIGN_OR_RETURN(auto results, Open(text)->Run({}, {fetch}, {}, options));
  return results[0];
}

Status Failure(absl::string_view text, const std::string& fetch) {
  return Fetch(text, fetch).status();
}

// Of what would never end.
Status FailureInTime(absl::string_view text, const std::string& fetch) {
  RunOptions options;
  options.timeout = absl::Milliseconds(300);
  return Fetch(text, fetch, options).status();
}

bool Contains(const Status& status, absl::string_view words) {
  return absl::StrContains(status.message(), words);
}

constexpr char kOne[] = "c = Const {dtype=float, value=float[]{1}}\n";

TEST(Definitions, MinimumsHoldInFunctionsThatAreInlined) {
  const std::string dataset =
      "d = TensorSliceDataset {Toutput_types=list(), output_shapes=list(), metadata=\"\"}\n";
  const std::string words = "Length for attr 'Toutput_types' of 0 must be at least minimum 1";
  EXPECT_PRED2(Contains, Failure(dataset, "d"), words);
  const std::string function = absl::StrCat("func f() -> (d: variant) {\n", dataset,
                                            "return d=d:0\n}\n"
                                            "p = PartitionedCall {f=@f, Tin=list(), "
                                            "Tout=list(variant)}\n");
  EXPECT_PRED2(Contains, Failure(function, "p"), words);
}

TEST(Definitions, LabelsOfAnEinsumComeFromItsInputs) {
  EXPECT_PRED2(Contains,
               Failure("m = Const {dtype=float, value=float[1,1]{1}}\n"
                       "e = Einsum(m, m) {N=2, T=float, equation=\"ij,jk->zz\"}\n",
                       "e"),
               "Einsum output subscripts for equation 'ij,jk->zz' has label 'z' which is not "
               "present in the input subscripts");
}

TEST(Calls, ArgumentsAndResultsAreNoNodesOfAModel) {
  for (const int index : {0, 99}) {
    const std::string arg =
        absl::StrCat("a = _Arg {T=float, index=", index, "}\nb = Identity(a) {T=float}\n");
    EXPECT_PRED2(Contains, Failure(arg, "b"),
                 absl::StrCat("GetArg ", index, " is not within [0, 0)\n\t [[{{node a}}]]"));
    const std::string result = absl::StrCat(kOne, "r = _Retval(c) {T=float, index=", index, "}");
    const Status refused = Open(result)->Run({}, {"c"}, {"r"}).status();
    EXPECT_PRED2(Contains, refused,
                 absl::StrCat("SetRetval ", index, " is not within [0, 0)\n\t [[{{node r}}]]"));
    // What nobody asks for does not count, and what is fed does not run.
    EXPECT_TRUE(Open(result)->Run({}, {"c"}, {}).ok());
    EXPECT_TRUE(Open(arg)->Run({{"a", Tensor::Scalar<float>(3)}}, {"b"}, {}).ok());
    const std::string body =
        absl::StrCat("func f(x: float) -> (y: float) {\nr = _Retval(x) {T=float, index=", index,
                     "}\nreturn y=x\n}\n", kOne, "p = f(c)\n");
    EXPECT_PRED2(Contains, Failure(body, "p"), "node 'r' (_Retval) is no argument or result");
  }
}

TEST(Effects, AnOpWithoutOutputsRunsWhereSomethingWaitsForIt) {
  const std::string abort = absl::StrCat(
      kOne, "a = Abort {error_msg=\"m\", exit_without_error=false}\nd = Identity(c, ^a) {T=float}");
  EXPECT_PRED2(Contains, Failure(abort, "d"), "Abort_op intentional failure; m");
}

TEST(Recursion, IsOneSentenceWithEachNodeOnce) {
  const Status status = Failure(absl::StrCat(R"(
    func f(x: float) -> (y: float) {
      r = StatefulPartitionedCall(x) {Tin=list(float), Tout=list(float), f=@f}
      return y=r:0
    }
    )",
                                             kOne, "p = f(c)"),
                                "p");
  EXPECT_EQ(std::string(status.message()),
            "function calls nest deeper than 128 at function 'f': it seems to call itself without "
            "end\n\t [[{{function_node f}}{{node r}}]]\n\t [[{{node p}}]]");
}

// A chain of functions, each of which calls the one before through an If, which is not inlined.
std::string Chain(int length) {
  std::string text = "func f0(x: float) -> (y: float) {\nn = Neg(x) {T=float}\nreturn y=n:0\n}\n";
  for (int i = 1; i <= length; ++i) {
    absl::StrAppend(&text, "func f", i, "(x: float) -> (y: float) {\n",
                    "t = Const {dtype=bool, value=bool[]{true}}\n",
                    "r = If(t, x) {Tcond=bool, Tin=list(float), Tout=list(float), then_branch=@f",
                    i - 1, ", else_branch=@f", i - 1, "}\nreturn y=r:0\n}\n");
  }
  return absl::StrCat(text, kOne, "p = f", length, "(c)\n");
}

void* RunAndDelete(void* function) {
  std::unique_ptr<std::function<void()>> f(static_cast<std::function<void()>*>(function));
  (*f)();
  return nullptr;
}

void OnStackOf(size_t bytes, std::function<void()> f) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  ASSERT_EQ(pthread_attr_setstacksize(&attr, bytes), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attr, RunAndDelete, new std::function<void()>(std::move(f))),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attr);
}

TEST(Stack, IsWhatItsThreadHas) {
  OnStackOf(size_t{1} << 20, [] {
    EXPECT_LT(StackLeft(), size_t{1} << 20);
    EXPECT_GT(StackLeft(), size_t{1} << 19);
    char block[size_t{1} << 18];
    const size_t before = StackLeft();
    [](volatile char* b) { b[0] = 1; }(block);
    EXPECT_LE(before, (size_t{1} << 20) - sizeof(block));
  });
}

TEST(Stack, CallsNestAsDeepAsItAllows) {
  const std::string text = Chain(120);
  EXPECT_TRUE(Fetch(text, "p").ok()) << Failure(text, "p");
  OnStackOf(size_t{144} << 10, [&] {
    const Status status = Failure(text, "p");
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_PRED2(Contains, status, "and the thread has no stack for more");
  });
}

TEST(Frames, NodesWaitForNodesOfTheirFrame) {
  const std::string enter = absl::StrCat(kOne, "e = Enter(c) {T=float, frame_name=\"a\"}\n");
  EXPECT_PRED2(
      Contains,
      Failure(absl::StrCat(enter, "s = AddV2(e, c) {T=float}\nx = Exit(s) {T=float}"), "x"),
      "{{node s}} has inputs from different frames. The input {{node e}} is in frame "
      "'a'. The input {{node c}} is in frame ''.");
  EXPECT_PRED2(Contains,
               Failure(absl::StrCat(enter, "f = Enter(c) {T=float, frame_name=\"b\"}\n",
                                    "s = AddV2(e, f) {T=float}\nx = Exit(s) {T=float}"),
                       "x"),
               "{{node s}} has inputs from different frames.");
  EXPECT_PRED2(Contains, Failure(absl::StrCat(kOne, "x = Exit(c) {T=float}"), "x"),
               "Invalid Exit op: Cannot find a corresponding Enter op.");
  EXPECT_PRED2(Contains,
               Failure(absl::StrCat(kOne, "e = Enter(c) {T=float, frame_name=\"\"}\n",
                                    "x = Exit(e) {T=float}"),
                       "x"),
               "The Enter {{node e}} must have a frame name.");
}

TEST(Frames, WithoutALoopNextIterationPassesItsValueOnOnce) {
  auto once = Fetch(absl::StrCat(kOne, "n = NextIteration(c) {T=float}"), "n");
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(once->scalar<float>(), 1);
  const std::string circle =
      absl::StrCat(kOne, "m = Merge(c, n) {T=float, N=2}\nn = NextIteration(m) {T=float}\n");
  EXPECT_PRED2(Contains, Failure(circle, "m"), "Retval[0] has already been set.");
  // Fetched behind it, nothing ever comes.
  const Status endless =
      FailureInTime(absl::StrCat(circle, "f = Const {dtype=bool, value=bool[]{false}}\n",
                                 "t = Identity(f, ^m) {T=bool}\ns = Switch(m, t) {T=float}\n"),
                    "s:1");
  EXPECT_FALSE(endless.ok());
}

TEST(Frames, MayNestDeeperThanTheStack) {
  constexpr int kDepth = 20000;
  std::string text = kOne, last = "c";
  for (int i = 0; i < kDepth; ++i) {
    absl::StrAppend(&text, "e", i, " = Enter(", last, ") {T=float, frame_name=\"f", i, "\"}\n");
    last = absl::StrCat("e", i);
  }
  for (int i = 0; i < kDepth; ++i) {
    absl::StrAppend(&text, "x", i, " = Exit(", last, ") {T=float}\n");
    last = absl::StrCat("x", i);
  }
  auto session = Open(text);
  OnStackOf(size_t{256} << 10, [&] {
    const auto out = session->Run({}, {last}, {});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), 1);
  });
}

// f0 is a node; each function calls the one before twice.
std::string Doubling(int levels) {
  std::string text = "func f0(x: float) -> (y: float) {\nn = Neg(x) {T=float}\nreturn y=n:0\n}\n";
  for (int i = 1; i <= levels; ++i) {
    absl::StrAppend(&text, "func f", i, "(x: float) -> (y: float) {\na = f", i - 1, "(x)\nb = f",
                    i - 1, "(a:0)\nreturn y=b:0\n}\n");
  }
  return text;
}

TEST(Inlining, StaysInItsBudget) {
  auto graph = ParseGraph(absl::StrCat(Doubling(40), "a = _Arg {T=float, index=0}\np = f40(a)\n",
                                       "r = _Retval(p) {T=float, index=0}\n"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Status status = OptimizeFunctions(**graph, PassContext());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_LT((*graph)->num_nodes(), 600'000);
  // What fits is inlined whole.
  graph = ParseGraph(absl::StrCat(Doubling(8), "a = _Arg {T=float, index=0}\np = f8(a)\n",
                                  "r = _Retval(p) {T=float, index=0}\n"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(OptimizeFunctions(**graph, PassContext()).ok());
  int calls = 0, nodes = 0;
  for (const Node* n : (*graph)->Nodes()) {
    calls += (*graph)->library()->Find(n->op()) != nullptr ? 1 : 0;
    nodes += n->Is("Neg") ? 1 : 0;
  }
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(nodes, 256);
}

TEST(Inlining, CallsThatStayRunUntilTheirDeadline) {
  const Status status = FailureInTime(absl::StrCat(Doubling(40), kOne, "p = f40(c)\n"), "p");
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST(Inlining, LongChainsOfCallsRun) {
  std::string text = "func f0(x: float) -> (y: float) {\nn = Neg(x) {T=float}\nreturn y=n:0\n}\n";
  for (int i = 1; i <= 5000; ++i) {
    absl::StrAppend(&text, "func f", i, "(x: float) -> (y: float) {\na = f", i - 1,
                    "(x)\nreturn y=a:0\n}\n");
  }
  auto session = Open(absl::StrCat(text, kOne, "p = f5000(c)\n"));
  const auto out = session->Run({}, {"p"}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), -1);
}

// Ops whose time is not in proportion to their inputs and outputs.
TEST(Deadlines, EndLongKernels) {
  const std::string dataset = R"(
    zero = Const {dtype=int64, value=int64[]{0}}
    one = Const {dtype=int64, value=int64[]{1}}
    huge = Const {dtype=int64, value=int64[]{9223372036854775806}}
    all = RangeDataset(zero, huge, one) {output_types=list(int64), output_shapes=list([])}
    none = RangeDataset(zero, zero, one) {output_types=list(int64), output_shapes=list([])}
  )";
  const std::string element = "{output_types=list(int64), output_shapes=list([])}";
  const auto element_of = [&](absl::string_view made) {
    return absl::StrCat(dataset, "d = ", made, element, "\nout = DatasetToSingleElement(d) ",
                        element);
  };
  const std::string graphs[] = {
      element_of("SkipDataset(all, huge) "),
      element_of("ShardDataset(all, huge, one) "),
      element_of("RepeatDataset(none, huge) "),
      absl::StrCat("func no(x: int64) -> (y: bool) {\n",
                   "f = Const {dtype=bool, value=bool[]{false}}\nreturn y=f:0\n}\n", dataset,
                   "d = FilterDataset(all) {predicate=@no, Targuments=list(), "
                   "output_types=list(int64), output_shapes=list([])}\n"
                   "out = DatasetToSingleElement(d) ",
                   element),
      absl::StrCat("func sum(x: int64, y: int64) -> (z: int64) {\n",
                   "s = AddV2(x, y) {T=int64}\nreturn z=s:0\n}\n", dataset,
                   "out = ReduceDataset(all, zero) {f=@sum, Tstate=list(int64), "
                   "Targuments=list(), output_types=list(int64), output_shapes=list([])}\n"),
      R"(points = Const {dtype=float, value=float[2,1]{1, 2}}
         one = Const {dtype=int64, value=int64[]{1}}
         huge = Const {dtype=int64, value=int64[]{4611686018427387904}}
         out = KmeansPlusPlusInitialization(points, one, one, huge))",
      R"(shape = Const {dtype=int32, value=int32[1]{100000000}}
         rate = Const {dtype=double, value=double[]{1e15}}
         out = RandomPoissonV2(shape, rate) {S=int32, R=double, dtype=int32})",
  };
  for (const std::string& graph : graphs) {
    const absl::Time start = absl::Now();
    const Status status = FailureInTime(graph, "out");
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status << graph;
    EXPECT_LT(absl::Now() - start, absl::Seconds(20)) << graph;
  }
}

// Between two matrices of a batch, each of which may take long.
TEST(Deadlines, EndBatchesOfMatrices) {
  Cancellation cancellation;
  cancellation.Cancel();
  Step step;
  step.cancellation = &cancellation;
  Tensor x = *Tensor::Make(Dtype::kFloat, Shape({3, 2, 2}));
  for (int i = 0; i < 12; ++i) x.data<float>()[i] = i % 4 == 0 || i % 4 == 3 ? 2 : 0;
  for (const char* op : {"Cholesky", "MatrixInverse", "MatrixExponential", "MatrixDeterminant"}) {
    const auto graph = ParseGraph(absl::StrCat("x = Placeholder {dtype=float}\nout = ", op,
                                               "(x) {T=float, adjoint=false}\n"));
    ASSERT_TRUE(graph.ok()) << graph.status();
    const Status status = RunOp(*(*graph)->Find("out"), {x}, step).status();
    EXPECT_TRUE(absl::IsCancelled(status)) << op << status;
  }
}

// Values that hold values, as deep as a loop made them.
TEST(Variants, NestDeeperThanTheStack) {
  const std::string text = R"(
    func more(i: int32, list: variant) -> (go: bool) {
      n = Const {dtype=int32, value=int32[]{20000}}
      l = Less(i, n) {T=int32}
      return go=l:0
    }
    func nest(i: int32, list: variant) -> (j: int32, deeper: variant) {
      one = Const {dtype=int32, value=int32[]{1}}
      j = AddV2(i, one) {T=int32}
      s = Const {dtype=int32, value=int32[0]{}}
      e = EmptyTensorList(s, one) {element_dtype=variant, shape_type=int32}
      p = TensorListPushBack(e, list) {element_dtype=variant}
      return j=j:0 deeper=p:0
    }
    zero = Const {dtype=int32, value=int32[]{0}}
    s = Const {dtype=int32, value=int32[0]{}}
    e = EmptyTensorList(s, zero) {element_dtype=float, shape_type=int32}
    w = StatelessWhile(zero, e) {T=list(int32, variant), cond=@more, body=@nest}
  )";
  auto session = Open(text);
  OnStackOf(size_t{256} << 10, [&] {
    const auto out = session->Run({}, {"w:1"}, {});
    EXPECT_TRUE(out.ok()) << out.status();
  });
}

}  // namespace
}  // namespace smelt
