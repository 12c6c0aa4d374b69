// The optimizer: a line of feeds, a line of fetches, then a graph as text. Whatever the graph is,
// optimizing it neither crashes nor takes long; where it and its functions verify and each tensor
// is of a known type, no pass fails or leaves a graph that does not verify.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_split.h"
#include "smelt/graph/text.h"
#include "smelt/graph/verify.h"
#include "smelt/optimize/meta_optimizer.h"

namespace {

std::vector<std::string> Words(absl::string_view line) {
  return absl::StrSplit(line, ' ', absl::SkipEmpty());
}

bool KnowsItsTypes(const smelt::Graph& graph) {
  for (const smelt::Node* n : graph.Nodes()) {
    for (const smelt::Dtype type : n->output_types) {
      if (type == smelt::Dtype::kInvalid) return false;
    }
  }
  return true;
}

// Of generic functions the calls say the types: are they sound with these?
bool CallsAreSound(const smelt::Graph& graph) {
  const smelt::FunctionLibrary& library = *graph.library();
  std::vector<const smelt::Graph*> bodies = {&graph};
  for (const smelt::Function* f : library.Functions()) bodies.push_back(f->body.get());
  for (const smelt::Graph* body : bodies) {
    for (const smelt::Node* n : body->Nodes()) {
      const smelt::Function* f = library.Find(n->op());
      if (f == nullptr || f->signature.attrs.empty()) continue;
      const auto instance = smelt::Instantiate(*f, &n->attrs());
      if (!instance.ok() || !smelt::Verify(**instance).ok()) return false;
    }
  }
  return true;
}

bool IsSound(const smelt::Graph& graph) {
  if (!smelt::VerifyAll(graph).ok() || !KnowsItsTypes(graph)) return false;
  for (const smelt::Function* f : graph.library()->Functions()) {
    if (f->signature.attrs.empty() && !KnowsItsTypes(*f->body)) return false;
  }
  return CallsAreSound(graph);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  smelt::SetHeapLimit(int64_t{1} << 26);
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('\n', 2));
  if (parts.size() != 3) return 0;
  smelt::GraphItem item;
  item.feeds = Words(parts[0]);
  item.fetches = Words(parts[1]);
  auto graph = smelt::ParseGraph(parts[2]);
  if (!graph.ok()) return 0;
  item.graph = *std::move(graph);
  const bool sound = IsSound(*item.graph);
  smelt::MetaOptions options;
  options.config.min_graph_nodes = -1;
  options.config.debug_stripper = smelt::Toggle::kOn;
  options.config.arithmetic_optimization = smelt::Toggle::kAggressive;
  options.config.layout_optimizer = smelt::Toggle::kAggressive;
  options.config.cpu_layout_conversion = smelt::CpuLayout::kNchwToNhwc;
  auto report = smelt::OptimizeItem(item, options);
  if (!report.ok() || !sound) return 0;
  for (const auto& graph_report : report->graphs) {
    for (const auto& pass : graph_report.passes) {
      if (pass.outcome != smelt::PassRun::Outcome::kUndone) continue;
      std::fprintf(stderr, "%s: %s\n", pass.name.c_str(), pass.why_undone.c_str());
      std::abort();
    }
  }
  const smelt::Status valid = smelt::VerifyAll(*item.graph);
  if (!valid.ok()) {
    std::fprintf(stderr, "%s\n", std::string(valid.message()).c_str());
    std::abort();
  }
  return 0;
}
