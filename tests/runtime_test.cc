// Sessions: control flow, calls, variables, errors, several requests at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "smelt/base/team.h"
#include "smelt/graph/text.h"
#include "smelt/runtime/session.h"

namespace smelt {
namespace {

std::unique_ptr<Session> Open(absl::string_view text, SessionOptions options = {}) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::make_unique<Session>(std::shared_ptr<const Graph>(*std::move(graph)), options);
}

constexpr char kLoop[] = R"(
  start = Placeholder {dtype=int32, shape=[]}
  limit = Placeholder {dtype=int32, shape=[]}
  i = Enter(start) {T=int32, frame_name="loop"}
  n = Enter(limit) {T=int32, frame_name="loop", is_constant=true}
  merge = Merge(i, next) {T=int32, N=2}
  less = Less(merge:0, n) {T=int32}
  go = LoopCond(less)
  switch = Switch(merge:0, go) {T=int32}
  one = Const(^switch) {dtype=int32, value=int32[]{1}}
  sum = Add(switch:1, one) {T=int32}
  next = NextIteration(sum) {T=int32}
  out = Exit(switch:0) {T=int32}
)";

TEST(Dataflow, LoopsAsOftenAsItsConditionSays) {
  auto session = Open(kLoop);
  for (int limit : {0, 1, 1000}) {
    auto out = session->Run(
        {{"start", Tensor::Scalar<int32_t>(0)}, {"limit", Tensor::Scalar<int32_t>(limit)}}, {"out"},
        {});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<int32_t>(), limit);
  }
}

TEST(Dataflow, TakesOneBranchOnly) {
  auto session = Open(R"(
    x = Placeholder {dtype=float, shape=[]}
    p = Placeholder {dtype=bool, shape=[]}
    s = Switch(x, p) {T=float}
    neg = Neg(s:0) {T=float}
    sq = Square(s:1) {T=float}
    m = Merge(neg, sq) {T=float, N=2}
  )");
  for (bool taken : {false, true}) {
    auto out = session->Run({{"x", Tensor::Scalar<float>(3)}, {"p", Tensor::Scalar<bool>(taken)}},
                            {"m:0", "m:1"}, {});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), taken ? 9 : -3);
    EXPECT_EQ((*out)[1].scalar<int32_t>(), taken ? 1 : 0);
  }
  auto dead = session->Run({{"x", Tensor::Scalar<float>(3)}, {"p", Tensor::Scalar<bool>(true)}},
                           {"neg"}, {});
  EXPECT_EQ(dead.status().code(), absl::StatusCode::kInvalidArgument);
}

constexpr char kCounter[] = R"(
  v = VarHandleOp {dtype=float, shape=[], shared_name="v"}
  zero = Const {dtype=float, value=float[]{0}}
  init = AssignVariableOp(v, zero) {dtype=float}
  delta = Placeholder {dtype=float, shape=[]}
  add = AssignAddVariableOp(v, delta) {dtype=float}
  read = ReadVariableOp(v, ^add) {dtype=float}
  get = ReadVariableOp(v) {dtype=float}
  twice = Add(get, get) {T=float}
)";

TEST(Session, SeesAssignmentsToVariablesItTookForConstants) {
  auto session = Open(kCounter);
  ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
  float want = 0;
  for (int i = 0; i < 6; ++i) {
    auto twice = session->Run({}, {"twice"}, {});
    ASSERT_TRUE(twice.ok()) << twice.status();
    EXPECT_EQ((*twice)[0].scalar<float>(), 2 * want);
    auto out = session->Run({{"delta", Tensor::Scalar<float>(1.5)}}, {"read"}, {});
    ASSERT_TRUE(out.ok()) << out.status();
    want += 1.5;
    EXPECT_EQ((*out)[0].scalar<float>(), want);
  }
}

TEST(Session, NamesAnUninitializedVariable) {
  auto session = Open(kCounter);
  auto out = session->Run({}, {"twice"}, {});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(out.status().message().find("Could not find variable v"), absl::string_view::npos);
}

TEST(Session, ResultsWithoutAValueAreAnError) {
  auto session = Open(R"(
    x = Placeholder {dtype=float, shape=[]}
    p = Const {dtype=bool, value=bool[]{true}}
    s = Switch(x, p) {T=float}
  )");
  const Status s = session->Run({{"x", Tensor::Scalar<float>(1)}}, {"s:0"}, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_TRUE(absl::StrContains(s.message(), "Retval[0] does not have value")) << s;
}

TEST(Session, ARequestLeavesItsThreadAsItWas) {
  auto session =
      Open("x = Placeholder {dtype=float, shape=[]}\ny = Neg(x) {T=float}", {.threads = 3});
  const ScopedThreads own(2);
  ASSERT_TRUE(session->Run({{"x", Tensor::Scalar<float>(1)}}, {"y"}, {}).ok());
  EXPECT_EQ(Threads(), 2);
}

TEST(Session, AnswersSeveralRequestsAtOnce) {
  SessionOptions options;
  options.threads = 1;
  auto session = Open(R"(
    x = Placeholder {dtype=float, shape=[?,4]}
    w = Const {dtype=float, value=float[4,4]{0.5}}
    y = MatMul(x, w) {T=float}
    z = Relu(y) {T=float}
  )",
                      options);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        auto x = *Tensor::Make(Dtype::kFloat, Shape({t + 1, 4}));
        for (float& f : x.flat<float>()) f = static_cast<float>(t);
        auto out = session->Run({{"x", x}}, {"z"}, {});
        if (!out.ok() || (*out)[0].dim(0) != t + 1 ||
            (*out)[0].scalar<float>() != 2.0F * static_cast<float>(t)) {
          ++wrong;
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, AFunctionThatCallsItselfEndsWithAnError) {
  auto session = Open(R"(
    func f(x: float) -> (y: float) {
      r = StatefulPartitionedCall(x) {Tin=list(float), Tout=list(float), f=@f}
      return y=r:0
    }
    x = Placeholder {dtype=float, shape=[]}
    y = StatefulPartitionedCall(x) {Tin=list(float), Tout=list(float), f=@f}
  )");
  auto out = session->Run({{"x", Tensor::Scalar<float>(1)}}, {"y"}, {});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted) << out.status();
}

TEST(Session, AnEndlessLoopEndsAtItsDeadline) {
  auto session = Open(R"(
    func cond(x: float) -> (go: bool) {
      t = Const {dtype=bool, value=bool[]{true}}
      return go=t:0
    }
    func body(x: float) -> (y: float) {
      y = Neg(x) {T=float}
      return y=y:0
    }
    x = Placeholder {dtype=float, shape=[]}
    w = While(x) {T=list(float), cond=@cond, body=@body}
  )");
  RunOptions options;
  options.timeout = absl::Milliseconds(50);
  auto out = session->Run({{"x", Tensor::Scalar<float>(1)}}, {"w"}, {}, options);
  EXPECT_EQ(out.status().code(), absl::StatusCode::kDeadlineExceeded) << out.status();
}

TEST(Session, ADetectionOfManyBoxesEndsAtItsDeadline) {
  auto session = Open(R"(
    boxes = Placeholder {dtype=float}
    scores = Placeholder {dtype=float}
    anchors = Placeholder {dtype=float}
    d = _LiteDetectionPostProcess(boxes, scores, anchors) {max_detections=200000,
        max_classes_per_detection=1, detections_per_class=1, num_classes=1,
        use_regular_nms=false, nms_score_threshold=0.0f, nms_iou_threshold=0.5f, y_scale=1.0f,
        x_scale=1.0f, h_scale=1.0f, w_scale=1.0f}
  )");
  // None overlaps another, so that each is held against all that are better.
  constexpr int64_t kBoxes = 200000;
  Tensor anchors = *Tensor::Zeros(Dtype::kFloat, Shape({kBoxes, 4}));
  for (int64_t i = 0; i < kBoxes; ++i) {
    float* anchor = anchors.data<float>() + 4 * i;
    anchor[0] = static_cast<float>(2 * i);
    anchor[2] = anchor[3] = 1;
  }
  RunOptions options;
  options.timeout = absl::Milliseconds(200);
  auto out = session->Run({{"boxes", *Tensor::Zeros(Dtype::kFloat, Shape({1, kBoxes, 4}))},
                           {"scores", *Tensor::Zeros(Dtype::kFloat, Shape({1, kBoxes, 1}))},
                           {"anchors", anchors}},
                          {"d:3"}, {}, options);
  EXPECT_EQ(out.status().code(), absl::StatusCode::kDeadlineExceeded) << out.status();
}

TEST(Session, SaysWhatIsWrongWithARequest) {
  auto session = Open("x = Placeholder {dtype=float, shape=[]}\ny = Neg(x) {T=float}");
  const Tensor one = Tensor::Scalar<float>(1);
  EXPECT_EQ(session->Run({}, {"nowhere"}, {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(session->Run({{"nowhere", one}}, {"y"}, {}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(session->Run({}, {"y"}, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->Run({{"x", Tensor::Scalar<int32_t>(1)}}, {"y"}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->Run({{"x", one}, {"x", one}}, {"y"}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->Run({}, {}, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

constexpr char kTpu[] = R"(
  func body(x: float) -> (y: float) {
    meta = TPUReplicateMetadata {num_replicas=1, _tpu_replicate="cluster"}
    in = TPUReplicatedInput(x) {N=1, T=float}
    w = Const(^meta) {dtype=float, value=float[256,256]{0.5}, _tpu_replicate="cluster"}
    m = MatMul(in, w) {T=float, _tpu_replicate="cluster"}
    out = TPUReplicatedOutput(m) {num_replicas=1, T=float}
    return y=out:0
  }
  x = Placeholder {dtype=float, shape=[?,256]}
  core = TPUOrdinalSelector
  y = TPUPartitionedCall(x, core) {Tin=list(float), Tout=list(float), f=@body}
)";

TEST(Tpu, AReplicaOfSeveralCoresHoldsItsWeightsOnEach) {
  std::string text = kTpu;
  text.replace(text.find("num_replicas=1, _tpu"), 14, "num_replicas=1, num_cores_per_replica=2");
  SessionOptions options;
  options.tpu_cores = 4;
  auto session = Open(text, options);
  const Tensor x = *Tensor::Zeros(Dtype::kFloat, Shape({1, 256}));
  for (int i = 0; i < 2; ++i) {
    auto y = session->Run({{"x", x}}, {"y"}, {});
    ASSERT_TRUE(y.ok()) << y.status();
  }
  const int64_t each = session->tpu_core(0).memory_used();
  EXPECT_GT(each, 0);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(session->tpu_core(i).memory_used(), each);
  options.tpu_cores = 1;
  auto refused = Open(text, options)->Run({{"x", x}}, {"y"}, {});
  EXPECT_NE(refused.status().message().find("num_cores_per_replica: 2 in the graph is larger"),
            absl::string_view::npos)
      << refused.status();
}

TEST(Tpu, ATraceLooksIntoItsPrograms) {
  auto session = Open(kTpu);
  StepStats stats;
  RunOptions options;
  options.stats = &stats;
  const Tensor x = *Tensor::Zeros(Dtype::kFloat, Shape({1, 256}));
  ASSERT_TRUE(session->Run({{"x", x}}, {"y"}, {}, options).ok());
  std::vector<std::string> ops;
  for (const StepStats::Event& e : stats.events()) ops.push_back(e.op);
  EXPECT_EQ(std::ranges::count(ops, "MatMul"), 1) << absl::StrJoin(ops, " ");
  EXPECT_EQ(std::ranges::count(ops, "TPUPartitionedCall"), 1) << absl::StrJoin(ops, " ");
}

// Runs the body on two cores and compares with its answer on one. `split`: how often the rows must
// have been split.
void ExpectSplit(const std::string& body, const Tensor& x, int64_t split) {
  const std::string shape = R"(
    return y=y:0
  }
  x = Placeholder {dtype=float}
  core = TPUOrdinalSelector
  y = TPUPartitionedCall(x, core) {Tin=list(float), Tout=list(float), f=@body}
)";
  const auto text = [&](int cores) {
    return absl::StrCat("func body(x: float) -> (y: float) {\n",
                        "meta = TPUReplicateMetadata {num_replicas=1, num_cores_per_replica=",
                        cores, "}\n", body, shape);
  };
  SessionOptions options;
  options.tpu_cores = 2;
  options.threads = 1;
  options.least_work_of_core = 0;
  // Programs for several cores are not compiled: the answers are compared node by node.
  options.compile = false;
  auto one = Open(text(1), options), two = Open(text(2), options);
  auto want = one->Run({{"x", x}}, {"y"}, {}), got = two->Run({{"x", x}}, {"y"}, {});
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].shape(), (*want)[0].shape());
  const auto g = (*got)[0].flat<float>(), w = (*want)[0].flat<float>();
  ASSERT_EQ(g.size(), w.size());
  // A product of few rows adds in another order than one of many.
  for (size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], w[i], 4e-7 * std::abs(w[i])) << body;
  EXPECT_EQ(two->split_runs(), split) << body;
  EXPECT_EQ(one->split_runs(), 0);
  // By the default, so little work is not worth a second core.
  options.least_work_of_core = 1 << 22;
  auto small = Open(text(2), options);
  ASSERT_TRUE(small->Run({{"x", x}}, {"y"}, {}).ok());
  EXPECT_EQ(small->split_runs(), 0);
}

Tensor Counting(const Shape& shape) {
  Tensor t = *Tensor::Zeros(Dtype::kFloat, shape);
  float next = 0;
  for (float& v : t.flat<float>()) v = static_cast<float>(std::sin(next++));
  return t;
}

TEST(Tpu, SplitsRowsOverTheCoresOfAReplica) {
  constexpr char kProduct[] = R"(
    w = Const {dtype=float, value=float[4,3]{0.5, 1, 2, 3, -1, -2, 4, 1, 1, 0.25, 0.125, 7}}
    b = Const {dtype=float, value=float[3]{1, 2, 3}}
    m = MatMul(x, w) {T=float}
    s = BiasAdd(m, b) {T=float}
    y = Softmax(s) {T=float}
)";
  ExpectSplit(kProduct, Counting(Shape({6, 4})), 1);
  ExpectSplit(kProduct, Counting(Shape({5, 4})), 1);
  ExpectSplit(kProduct, Counting(Shape({1, 4})), 0);
  // Sizes that are taken from the input follow the rows.
  ExpectSplit(R"(
    sh = Shape(x) {T=float, out_type=int32}
    b = Const {dtype=int32, value=int32[1]{0}}
    e = Const {dtype=int32, value=int32[1]{1}}
    n = StridedSlice(sh, b, e, e) {T=int32, Index=int32, shrink_axis_mask=1}
    four = Const {dtype=int32, value=int32[]{4}}
    two = Const {dtype=int32, value=int32[]{2}}
    to = Pack(n, four, two) {T=int32, N=3}
    r = Reshape(x, to) {T=float}
    perm = Const {dtype=int32, value=int32[3]{0, 2, 1}}
    t = Transpose(r, perm) {T=float}
    axis = Const {dtype=int32, value=int32[1]{-1}}
    y = Mean(t, axis) {T=float, keep_dims=true}
)",
              Counting(Shape({4, 8})), 1);
  ExpectSplit(R"(
    f = Const {dtype=float, value=float[3,3,2,2]{0.5}}
    c = Conv2D(x, f) {T=float, strides=list(1, 1, 1, 1), padding="SAME"}
    y = MaxPool(c) {T=float, ksize=list(1, 2, 2, 1), strides=list(1, 2, 2, 1), padding="VALID"}
)",
              Counting(Shape({4, 6, 6, 2})), 1);
}

TEST(Tpu, SplitsRowsBesideVariablesOfAsManyRows) {
  constexpr char kText[] = R"(
  func body(v: resource, i: int32) -> (y: float) {
    meta = TPUReplicateMetadata {num_replicas=1, num_cores_per_replica=2}
    r = ReadVariableOp(v) {dtype=float}
    g = ResourceGather(v, i) {dtype=float, Tindices=int32}
    m = MatMul(g, r) {T=float}
    return y=m:0
  }
  v = VarHandleOp {dtype=float, shape=[24,24], shared_name="v"}
  value = Placeholder {dtype=float, shape=[24,24]}
  assign = AssignVariableOp(v, value) {dtype=float}
  i = Placeholder {dtype=int32}
  core = TPUOrdinalSelector
  y = TPUPartitionedCall(v, i, core) {Tin=list(resource, int32), Tout=list(float), f=@body}
)";
  SessionOptions options;
  options.least_work_of_core = 0;
  auto split = Open(kText, options);
  options.least_work_of_core = 1 << 22;
  auto whole = Open(kText, options);
  // So many rows that every processor's tiles come out even, whole and split: sums of rows that are
  // left over are added in another order.
  constexpr int32_t kRows = 24;
  std::vector<int32_t> turned(kRows);
  for (int32_t r = 0; r < kRows; ++r) turned[static_cast<size_t>(r)] = kRows - 1 - r;
  const Tensor i = Tensor::Vector<int32_t>(turned);
  std::vector<Tensor> answers;
  for (Session* s : {split.get(), whole.get()}) {
    ASSERT_TRUE(s->Run({{"value", Counting(Shape({kRows, kRows}))}}, {}, {"assign"}).ok());
    auto y = s->Run({{"i", i}}, {"y"}, {});
    ASSERT_TRUE(y.ok()) << y.status();
    answers.push_back((*y)[0]);
  }
  EXPECT_EQ(split->split_runs(), 1);
  EXPECT_EQ(whole->split_runs(), 0);
  EXPECT_TRUE(std::ranges::equal(answers[0].flat<float>(), answers[1].flat<float>()));
}

TEST(Tpu, RunsWholeWhatMixesRows) {
  const Tensor x = Counting(Shape({4, 4}));
  // A row's result depends on all rows, on another row, on its place, on a row of a constant.
  for (const char* body : {R"(
    axis = Const {dtype=int32, value=int32[1]{0}}
    y = Mean(x, axis) {T=float}
)",
                           R"(
    axis = Const {dtype=int32, value=int32[1]{-2}}
    m = Max(x, axis) {T=float, keep_dims=true}
    y = Sub(x, m) {T=float}
)",
                           R"(
    y = MatMul(x, x) {T=float, transpose_b=true}
)",
                           R"(
    axis = Const {dtype=int32, value=int32[1]{0}}
    y = ReverseV2(x, axis) {T=float}
)",
                           R"(
    w = Const {dtype=float, value=float[4,4]{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}
    y = AddV2(x, w) {T=float}
)",
                           R"(
    to = Const {dtype=int32, value=int32[2]{2, 8}}
    y = Reshape(x, to) {T=float}
)",
                           R"(
    sh = Shape(x) {T=float, out_type=int32}
    c = Cast(sh) {SrcT=int32, DstT=float}
    y = AddV2(x, c) {T=float}
)"}) {
    if (std::string(body).find("sh = Shape") != std::string::npos) {
      ExpectSplit(body, Counting(Shape({4, 2})), 0);
    } else {
      ExpectSplit(body, x, 0);
    }
  }
}

TEST(Tpu, CountsWeightsOnEachCoreAndRefusesWhatDoesNotFit) {
  auto x = *Tensor::Zeros(Dtype::kFloat, Shape({1, 256}));
  SessionOptions options;
  options.tpu_cores = 2;
  auto session = Open(kTpu, options);
  for (int i = 0; i < 2; ++i) {
    auto out = session->Run({{"x", x}}, {"y"}, {});
    ASSERT_TRUE(out.ok()) << out.status();
  }
  EXPECT_GE(session->tpu_core(0).memory_used(), 256 * 256 * 4);
  EXPECT_GE(session->tpu_core(1).memory_used(), 256 * 256 * 4);
  options.hbm_bytes = 100000;
  auto small = Open(kTpu, options);
  auto refused = small->Run({{"x", x}}, {"y"}, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted) << refused.status();
  options.tpu_cores = 0;
  EXPECT_FALSE(Open(kTpu, options)->Run({{"x", x}}, {"y"}, {}).ok());
}

}  // namespace
}  // namespace smelt
