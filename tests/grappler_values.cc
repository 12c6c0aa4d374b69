#include "tests/grappler_values.h"

#include <cmath>
#include <random>

#include "tests/graph_runner.h"

namespace smelt {
namespace {

// Sums in another order differ by less.
constexpr float kTolerance = 1e-4f;

const FileSystem kFilesOfValues = FileSystem::Whole();

StatusOr<Tensor> Numbers(const Node& placeholder, std::mt19937& random) {
  const Attr* stated = placeholder.Find("shape");
  const auto* shape = stated == nullptr ? nullptr : stated->get<PartialShape>();
  if (shape == nullptr || !shape->fully_known() || placeholder.Type("dtype") != Dtype::kFloat) {
    return InvalidArgument(placeholder.name(), " is no placeholder of float that states its shape");
  }
  std::vector<float> values(static_cast<size_t>(shape->ToShape().num_elements()));
  std::uniform_real_distribution<float> numbers(0.1f, 1.0f);
  for (float& v : values) v = numbers(random);
  return Tensor::Vector<float>(values).WithShape(shape->ToShape());
}

StatusOr<std::vector<Tensor>> Values(const Graph& graph, const std::vector<std::string>& feeds,
                                     const std::vector<std::string>& fetches) {
  std::mt19937 random(1);
  GraphRunner runner(*graph.library());
  ResourceManager resources, step_resources;
  Cancellation cancellation;
  Step step;
  step.id = 1;
  step.resources = &resources;
  step.step_resources = &step_resources;
  step.functions = &runner;
  step.cancellation = &cancellation;
  step.files = &kFilesOfValues;
  GraphRunner::Values values;
  for (const std::string& name : feeds) {
    ASSIGN_OR_RETURN(const Endpoint e, graph.FindEndpoint(name));
    ASSIGN_OR_RETURN(values[std::make_pair(e.node, e.port)], Numbers(*e.node, random));
  }
  std::vector<Endpoint> wanted;
  for (const std::string& name : fetches) {
    ASSIGN_OR_RETURN(wanted.emplace_back(), graph.FindEndpoint(name));
  }
  std::vector<Tensor> results;
  RETURN_IF_ERROR(runner.Run(graph, std::move(values), wanted, {}, &results, step));
  return results;
}

bool AreNear(const Tensor& a, const Tensor& b) {
  if (a.dtype() != Dtype::kFloat) return a.Identical(b);
  if (b.dtype() != Dtype::kFloat || !(a.shape() == b.shape())) return false;
  for (size_t i = 0; i < a.flat<float>().size(); ++i) {
    const float x = a.flat<float>()[i], y = b.flat<float>()[i];
    if (!(std::abs(x - y) <= kTolerance * std::max(1.0f, std::abs(x)))) return false;
  }
  return true;
}

}  // namespace

Status HaveSameValues(const Graph& before, const Graph& after,
                      const std::vector<std::string>& feeds,
                      const std::vector<std::string>& fetches) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> want, Values(before, feeds, fetches));
  ASSIGN_OR_RETURN(const std::vector<Tensor> got, Values(after, feeds, fetches));
  for (size_t i = 0; i < fetches.size(); ++i) {
    if (AreNear(want[i], got[i])) continue;
    return Internal("'", fetches[i], "' was ", want[i].shape().ToString(), " ",
                    Summarize(want[i], 20), " and is ", got[i].shape().ToString(), " ",
                    Summarize(got[i], 20));
  }
  return OkStatus();
}

}  // namespace smelt
