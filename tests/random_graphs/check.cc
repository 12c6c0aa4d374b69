#include "tests/random_graphs/check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "smelt/graph/text.h"
#include "smelt/kernels/elementwise/chain.h"
#include "smelt/runtime/session.h"

namespace smelt {
namespace {

using Results = StatusOr<std::vector<Tensor>>;

// How many disturbed runs tell how far results may be apart, and how many times as far. Elements
// that stay where they are until a kink is passed, such as a Relu's, move where noise is itself as
// many times as strong, if at all. One that cancels to where a Relu6 bends moves in half of the
// runs: of hundreds such in a graph none may stay in all.
constexpr int kDisturbed = 4, kStronglyDisturbed = 24;
constexpr int kTimes = 40;
constexpr double kTimesOfStrong = 2;

class Runner {
 public:
  Runner(const DrawnGraph& graph, const std::string& text, SessionOptions options, bool disturbed)
      : graph_(graph) {
    auto parsed = ParseGraph(text);
    if (!parsed.ok()) {
      error_ = parsed.status();
      return;
    }
    session_ = std::make_unique<Session>(std::shared_ptr<const Graph>(*std::move(parsed)), options);
    for (size_t k = 0; k < graph.fetches.size(); ++k) {
      fetches_.push_back(disturbed ? absl::StrCat("fetch", k) : NameOf(graph.fetches[k]));
    }
  }
  Results Run(size_t request) {
    if (session_ == nullptr) return error_;
    std::vector<std::pair<std::string, Tensor>> feeds;
    for (const auto& [node, t] : graph_.requests[request]) {
      feeds.emplace_back(absl::StrCat("n", node), t);
    }
    return session_->Run(feeds, fetches_, {});
  }
  Session& session() { return *session_; }
  bool ok() const { return session_ != nullptr; }

 private:
  const DrawnGraph& graph_;
  Status error_;
  std::unique_ptr<Session> session_;
  std::vector<std::string> fetches_;
};

double UnitOf(Dtype t) {
  switch (t) {
    case Dtype::kFloat:
      return 0x1p-23;
    case Dtype::kDouble:
      return 0x1p-52;
    case Dtype::kHalf:
      return 0x1p-10;
    case Dtype::kBfloat16:
      return 0x1p-7;
    default:
      return 0;
  }
}
// Noise moves what nodes read and give, and where that cancels to nothing, as the sum of one and
// minus one, it moves by nothing: two units of the last place of one are left. Narrow types are
// computed in float in between.
double LeastOf(Dtype t) { return t == Dtype::kDouble ? 0x1p-51 : 0x1p-22; }

double ElementOf(const Tensor& t, size_t i) {
  switch (t.dtype()) {
    case Dtype::kFloat:
      return static_cast<double>(t.data<float>()[i]);
    case Dtype::kDouble:
      return t.data<double>()[i];
    case Dtype::kHalf:
      return static_cast<double>(static_cast<float>(t.data<Half>()[i]));
    case Dtype::kBfloat16:
      return static_cast<double>(static_cast<float>(t.data<Bfloat16>()[i]));
    case Dtype::kInt32:
      return t.data<int32_t>()[i];
    case Dtype::kInt64:
      return static_cast<double>(t.data<int64_t>()[i]);
    default:
      return static_cast<double>(t.data<bool>()[i]);
  }
}
bool IsFloatType(Dtype t) { return UnitOf(t) != 0; }

bool SameBits(const Tensor& a, const Tensor& b, size_t i) {
  const size_t size = DtypeSize(a.dtype());
  const auto* x = static_cast<const char*>(a.raw()) + i * size;
  const auto* y = static_cast<const char*>(b.raw()) + i * size;
  if (std::memcmp(x, y, size) == 0) return true;
  return IsFloatType(a.dtype()) && std::isnan(ElementOf(a, i)) && std::isnan(ElementOf(b, i));
}

// The disturbed results of a request, made when first asked for.
class Disturbed {
 public:
  // `times` as strong as need be.
  Disturbed(const DrawnGraph& graph, int count, int times)
      : graph_(graph), times_(times), runners_(static_cast<size_t>(count)) {}
  const std::vector<Results>& Of(size_t request) {
    if (request_ != static_cast<int>(request)) {
      results_.clear();
      for (size_t k = 0; k < runners_.size(); ++k) {
        auto& r = runners_[k];
        if (r == nullptr) {
          r = std::make_unique<Runner>(
              graph_, TextOf(graph_, static_cast<int>(k) + 1, times_),
              SessionOptions{.threads = 1, .optimize = false, .compile = false}, true);
        }
        results_.push_back(r->Run(request));
      }
      request_ = static_cast<int>(request);
    }
    return results_;
  }

 private:
  const DrawnGraph& graph_;
  const int times_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Results> results_;
  int request_ = -1;
};

struct Noise {
  explicit Noise(const DrawnGraph& graph)
      : few(graph, kDisturbed, 1), strong(graph, kStronglyDisturbed, kTimes) {}
  Disturbed few, strong;
  int64_t far = 0;  // elements that the strong one explains
};

// May the elements be apart so far, `times` as far as the disturbed ones? Not where these agree.
bool MayDiffer(double want, double got, Dtype t, const std::vector<double>& disturbed,
               double times) {
  double moved = 0;
  for (const double d : disturbed) {
    if (std::isnan(d) != std::isnan(want) || std::isinf(d) != std::isinf(want)) return true;
    if (!std::isfinite(want)) {
      if (d != want && !std::isnan(want)) return true;
      continue;
    }
    moved = std::max(moved, std::abs(d - want));
  }
  if (!std::isfinite(want) || !std::isfinite(got)) return want == got;
  return std::abs(want - got) <=
         times * moved + 8 * UnitOf(t) * std::abs(want) + (IsFloatType(t) ? LeastOf(t) : 0);
}

std::string Compare(const Tensor& got, const Tensor& want, bool rounded, bool spare_nan,
                    Noise& noise, size_t request, size_t fetch) {
  if (got.dtype() != want.dtype() || !(got.shape() == want.shape())) {
    return absl::StrCat("is ", DtypeName(got.dtype()), got.shape().ToString(), ", not ",
                        DtypeName(want.dtype()), want.shape().ToString());
  }
  const auto n = static_cast<size_t>(want.num_elements());
  size_t wrong = 0, first = 0;
  const auto may_differ = [&](Disturbed& disturbed, size_t i, double times) {
    std::vector<double> others;
    for (const Results& r : disturbed.Of(request)) {
      if (!r.ok() || !((*r)[fetch].shape() == want.shape())) return true;
      others.push_back(ElementOf((*r)[fetch], i));
    }
    return MayDiffer(ElementOf(want, i), ElementOf(got, i), want.dtype(), others, times);
  };
  for (size_t i = 0; i < n; ++i) {
    if (SameBits(got, want, i)) continue;
    if (rounded && spare_nan && (std::isnan(ElementOf(got, i)) || std::isnan(ElementOf(want, i)))) {
      continue;
    }
    if (rounded) {
      if (may_differ(noise.few, i, kTimes)) continue;
      if (may_differ(noise.strong, i, kTimesOfStrong)) {
        ++noise.far;
        continue;
      }
    }
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return absl::StrCat(wrong, " of ", n, " values differ, first [", first,
                      "]: ", ElementOf(got, first), " instead of ", ElementOf(want, first),
                      rounded ? "" : ", where nothing rounds otherwise");
}

SessionOptions PlainOptions() { return {.threads = 1, .compile = false}; }

// What programs say otherwise. A scan that never runs gives an array of no rows, where the list
// says that it does not know its elements' shape. A program for parts of the rows says how many
// rows the part has.
bool IsKnown(const Results& got, const Results& want) {
  const absl::string_view says = want.status().message();
  if (got.ok()) return absl::StrContains(says, "Tried to stack elements of an empty list");
  return absl::StrContains(says, "Expected dimension") &&
         got.status().code() == want.status().code();
}

// Is it what the executor says of one fetch alone, of the node that the error names, or of another
// one, where that cannot run?
bool AlsoFails(const DrawnGraph& graph, size_t request, const Status& status) {
  for (size_t k = 0; graph.fetches.size() > 1 && k < graph.fetches.size(); ++k) {
    DrawnGraph one = graph;
    one.fetches = {graph.fetches[k]};
    if (Runner(one, TextOf(one), PlainOptions(), false).Run(request).status() == status)
      return true;
  }
  const absl::string_view text = status.message();
  const size_t at = text.rfind("{{node ");
  if (at == absl::string_view::npos) return false;
  const absl::string_view name = text.substr(at + 7, text.find('}', at) - at - 7);
  // Passes give what they make names of their own.
  if (absl::StrContains(name, "ArithmeticOptimizer")) return true;
  int node = -1;
  if (!absl::SimpleAtoi(name.substr(1, name.find('/') - 1), &node)) return false;
  DrawnGraph alone = graph;
  alone.fetches = {{node, 0}};
  const std::string text_alone = TextOf(alone);
  const Status plain = Runner(alone, text_alone, PlainOptions(), false).Run(request).status();
  if (plain == status) return true;
  if (plain.code() != status.code()) return false;
  if (!absl::StrContains(plain.message(), absl::StrCat("{{node n", node, "}}"))) return true;
  // What passes make of the node depends on the fetches.
  const SessionOptions as_stated = {.threads = 1, .optimize = false, .compile = false};
  return plain != Runner(alone, text_alone, as_stated, false).Run(request).status();
}

std::string CompareResults(const Results& got, const Results& want, const DrawnGraph& graph,
                           const std::vector<bool>& rounded, Noise& noise, size_t request) {
  if (got.status() != want.status()) {
    if (IsKnown(got, want)) return "";
    // Of several nodes that fail either may be the first.
    if (!got.ok() && !want.ok() && AlsoFails(graph, request, got.status())) return "";
    return absl::StrCat(got.status().ToString(), " instead of ", want.status().ToString());
  }
  if (!got.ok()) return "";
  for (size_t k = 0; k < graph.fetches.size(); ++k) {
    const bool loose = rounded[static_cast<size_t>(graph.fetches[k].node)];
    const bool spare_nan = graph.nan_after_relu && request > 0;
    std::string why = Compare((*got)[k], (*want)[k], loose, spare_nan, noise, request, k);
    if (!why.empty()) return absl::StrCat(NameOf(graph.fetches[k]), " ", why);
  }
  return "";
}

// All requests by every client, each in an order of its own, in a session that no request has come
// to: clients make programs while others run theirs.
std::string CheckAtOnce(const DrawnGraph& graph, const std::vector<Results>& want,
                        const std::vector<bool>& rounded, Noise& noise, size_t clients) {
  const size_t requests = graph.requests.size();
  Runner compiled(graph, TextOf(graph), {.threads = 2, .compile = true}, false);
  std::vector<std::vector<Results>> got(clients, std::vector<Results>(3 * requests));
  std::vector<std::thread> threads;
  for (size_t c = 0; c < clients; ++c) {
    threads.emplace_back([&, c] {
      for (size_t i = 0; i < got[c].size(); ++i) got[c][i] = compiled.Run((i + c) % requests);
    });
  }
  for (std::thread& t : threads) t.join();
  for (size_t c = 0; c < clients; ++c) {
    for (size_t i = 0; i < got[c].size(); ++i) {
      const size_t r = (i + c) % requests;
      const std::string why = CompareResults(got[c][i], want[r], graph, rounded, noise, r);
      if (!why.empty()) {
        return absl::StrCat("client ", c, " of ", clients, ", request ", r, ", its run ", i, ": ",
                            why);
      }
    }
  }
  return "";
}

}  // namespace

std::vector<StatusOr<std::vector<Tensor>>> PlainResults(const DrawnGraph& graph) {
  Runner plain(graph, TextOf(graph), PlainOptions(), false);
  std::vector<Results> results;
  for (size_t r = 0; r < graph.requests.size(); ++r) results.push_back(plain.Run(r));
  return results;
}

std::string CheckGraph(const DrawnGraph& graph, int64_t clients, CheckCounts* counts) {
  const std::vector<Results> want = PlainResults(graph);
  const std::vector<bool> rounded = Rounded(graph);
  Noise noise(graph);
  const std::string text = TextOf(graph);
  for (const int threads : {1, 2}) {
    Runner compiled(graph, text, {.threads = threads, .compile = true}, false);
    for (size_t r = 0; r < graph.requests.size(); ++r) {
      std::vector<Results> again;
      // The second finds everything made; the third an arena that others have written in.
      for (int turn = 0; turn < 2; ++turn) {
        const Results got = compiled.Run(r);
        const std::string why = CompareResults(got, want[r], graph, rounded, noise, r);
        if (!why.empty()) {
          return absl::StrCat("threads ", threads, ", request ", r, ", turn ", turn, ": ", why);
        }
      }
      if (counts != nullptr) {
        ++counts->requests;
        if (!want[r].ok()) ++counts->errors;
        for (const DrawnPort& p : graph.fetches) {
          ++counts->values;
          if (rounded[static_cast<size_t>(p.node)]) ++counts->rounded;
        }
      }
    }
    if (counts != nullptr && compiled.ok()) {
      compiled.session().VisitPrograms([&](const VisitedProgram& p) {
        ++counts->programs;
        const auto stages = p.program.stages();
        if (stages.size() > 1) ++counts->in_stages;
        if (std::ranges::any_of(stages, [](const auto& s) { return s.part > 0; })) {
          ++counts->in_parts;
        }
        for (const PartedProgram::Stage& stage : stages) {
          const Plan& plan = stage.program->plan();
          for (const PlanValue& v : plan.values) {
            if (v.same_as >= 0 && v.bytes() < plan.RootOf(v.same_as).bytes()) ++counts->in_place;
          }
          for (const PlanAction& a : plan.actions) {
            if (a.then.empty()) continue;
            ++(IsChainKernel(*a.kernel) ? counts->chains : counts->followed);
          }
        }
      });
    }
  }
  std::string at_once;
  if (clients > 0) {
    at_once = CheckAtOnce(graph, want, rounded, noise, static_cast<size_t>(clients));
  }
  if (counts != nullptr) counts->far += noise.far;
  return at_once;
}

}  // namespace smelt
