// smelt optimize: TensorFlow's Grappler over a SavedModel or a GraphDef.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "smelt/cli/command.h"
#include "smelt/cli/optimize_report.h"
#include "smelt/cli/page/page.h"
#include "smelt/cli/resource_flags.h"
#include "smelt/cli/roofline.h"
#include "smelt/cli/show_passes.h"
#include "smelt/cli/usage.h"
#include "smelt/graph/text.h"
#include "smelt/io/fs.h"
#include "smelt/model/optimize_model.h"
#include "smelt/optimize/custom/plugin.h"
#include "smelt/wire/options/rewriter_options.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {
namespace {

struct OptimizeFlags {
  std::string graph_def, first, second;  // paths by position
  std::vector<std::string> feeds, fetches, init_ops, keep, signatures;
  std::string tag_set;
  bool overwrite = false, json = false, measure = false;
  ResourceFlags resources;
  std::string config;
  std::optional<std::vector<std::string>> passes;
  std::vector<std::string> devices;
  std::vector<std::string> optimizer_libraries;
  std::string explain;
  std::string html;
  PassFlags dump;
};

constexpr size_t kMostRewritesOfPage = 200'000;

// A GraphDef, or smelt's text form (.graph).
StatusOr<std::unique_ptr<Graph>> ReadGraph(const std::string& path, GraphVersions* versions) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadInput(path));
  auto graph = absl::EndsWith(path, ".graph") ? ParseGraph(bytes) : ParseGraphDef(bytes, versions);
  if (!graph.ok()) return Prefix(graph.status(), absl::StrCat(path, ": "));
  return graph;
}

Status WriteGraph(const std::string& path, const Graph& graph, const GraphVersions& versions) {
  if (absl::EndsWith(path, ".graph")) return WriteFileAtomically(path, PrintGraph(graph));
  ASSIGN_OR_RETURN(const std::string bytes, SerializeGraphDef(graph, versions));
  return WriteFileAtomically(path, bytes);
}

StatusOr<RewriterConfig> ConfigOf(const OptimizeFlags& flags) {
  RewriterConfig config;
  if (!flags.config.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadInput(flags.config));
    ASSIGN_OR_RETURN(config, ParseRewriterConfig(text));
  }
  if (flags.passes) {
    config.optimizers = *flags.passes;
    std::erase(config.optimizers, "");
  }
  return config;
}

// Sees the graph before it is optimized, and after.
using Look = std::function<void(const GraphItem& item)>;

// Reads, optimizes and writes a graph file.
StatusOr<OptimizationReport> OptimizeGraphFile(const OptimizeFlags& flags,
                                               const MetaOptions& options, const Look& look) {
  GraphItem item;
  ASSIGN_OR_RETURN(item.graph, ReadGraph(flags.graph_def, &item.versions));
  item.id = "tf_graph";
  item.feeds = flags.feeds;
  item.fetches = flags.fetches;
  // An empty list is written ''.
  std::erase(item.feeds, "");
  std::erase(item.fetches, "");
  item.init_ops = flags.init_ops;
  item.keep_ops = flags.keep;
  OptimizationReport report;
  look(item);
  // No passes at all: the graph is only written in the other form.
  if (!flags.passes || !options.config.optimizers.empty()) {
    ASSIGN_OR_RETURN(report, OptimizeItem(item, options));
  }
  look(item);
  if (!flags.first.empty()) RETURN_IF_ERROR(WriteGraph(flags.first, *item.graph, item.versions));
  return report;
}

StatusOr<OptimizationReport> OptimizeModelFolder(const OptimizeFlags& flags,
                                                 const MetaOptions& options, const Look& look) {
  OptimizeModelFlags model;
  model.input = flags.first;
  model.output = flags.second;
  model.overwrite = flags.overwrite;
  model.tags = SplitTags(flags.tag_set);
  model.signatures = flags.signatures;
  model.keep = flags.keep;
  model.files = flags.resources.Files();
  model.options = options;
  model.look = look;
  return OptimizeSavedModel(model);
}

// Flags that do not go together; empty: all do.
absl::string_view Misused(const OptimizeFlags& flags) {
  if (flags.graph_def.empty() && flags.first.empty()) return "a model or --graph_def is needed";
  const bool graph = !flags.graph_def.empty();
  if (graph && (!flags.signatures.empty() || !flags.tag_set.empty() || !flags.second.empty())) {
    return "--graph_def has neither signatures nor tags, and one output";
  }
  if (!graph && !(flags.feeds.empty() && flags.fetches.empty() && flags.init_ops.empty())) {
    return "a SavedModel's signatures say what is fed, fetched and initialized: --feeds, --fetches "
           "and --init_ops go with --graph_def";
  }
  return "";
}

StatusOr<int> RunOptimize(const OptimizeFlags& flags) {
  if (const absl::string_view wrong = Misused(flags); !wrong.empty()) return UsageError(wrong);
  MetaOptions options;
  ASSIGN_OR_RETURN(options.config, ConfigOf(flags));
  for (const std::string& path : flags.optimizer_libraries) {
    RETURN_IF_ERROR(LoadOptimizerLibrary(path));
  }
  for (const std::string& text : flags.devices) {
    ASSIGN_OR_RETURN(options.devices.emplace_back(), ParseDeviceProperties(text));
  }
  MeasuredReport measured;
  if (flags.measure) {
    ASSIGN_OR_RETURN(measured.machine, MeasureRoofline());
    const auto is_cpu = [](const DeviceProperties& device) { return device.type == "CPU"; };
    if (std::ranges::none_of(options.devices, is_cpu)) {
      options.devices.push_back(MeasuredCpu(*measured.machine));
    }
  }
  const Look look = [&](const GraphItem& item) {
    if (!flags.measure) return;
    measured.estimates.push_back(EstimateItem(item, options.devices));
  };
  RewriteLog log;
  if (!flags.explain.empty()) log.Explain(flags.explain);
  options.log = &log;
  ASSIGN_OR_RETURN(const PipelineOptions dump, PassOptions(flags.dump));
  options.after = dump.after;
  OptimizationHistory history;
  if (!flags.html.empty()) {
    log.RecordRewrites(kMostRewritesOfPage);
    options.before = [&](absl::string_view name, const Graph& graph) {
      history.Begin(name, graph);
    };
    options.after = [&](const PassRun& run, const Graph& graph) {
      history.Add(run, graph);
      if (dump.after) dump.after(run, graph);
    };
  }
  OptimizationReport report;
  if (flags.graph_def.empty()) {
    ASSIGN_OR_RETURN(report, OptimizeModelFolder(flags, options, look));
  } else {
    ASSIGN_OR_RETURN(report, OptimizeGraphFile(flags, options, look));
  }
  for (const std::string& name : report.unknown_optimizers) {
    std::fprintf(stderr, "no optimizer '%s': it is left out, as TensorFlow does\n", name.c_str());
  }
  if (!flags.html.empty()) {
    history.End();
    const std::string& title = flags.graph_def.empty() ? flags.first : flags.graph_def;
    RETURN_IF_ERROR(WriteFileAtomically(flags.html, OptimizationPage(title, history, log)));
  }
  const std::string text = flags.json ? OptimizationJson(report, log, flags.explain, measured)
                                      : OptimizationText(report, log, flags.explain, measured);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

}  // namespace

CommandBody SetupOptimize(CLI::App& app) {
  auto flags = std::make_shared<OptimizeFlags>();
  app.add_option("model", flags->first, absl::StrCat(kModelHelp, "; with --graph_def the output"));
  app.add_option("output", flags->second, "Where the optimized model is written");
  app.add_option("--graph_def", flags->graph_def,
                 "GraphDef in place of a model, binary or text; .graph: smelt's text form");
  app.add_option("--signature", flags->signatures, "Signatures that are kept; left out: all")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--tag_set", flags->tag_set, "Tags of the MetaGraph, separated by commas");
  app.add_flag("--overwrite", flags->overwrite, "Replace the SavedModel that stands at the output");
  app.add_option("--feeds", flags->feeds, "Tensors that requests feed, NODE:PORT")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--fetches", flags->fetches, "Tensors that requests fetch")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--init_ops", flags->init_ops, "Nodes that are run once, before any request")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--keep", flags->keep, "Nodes that stay as well")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--config", flags->config, "RewriterConfig or ConfigProto, text format");
  const CLI::Option* passes =
      app.add_option(
             "--passes", flags->passes,
             "Optimizers in order, in place of the default list, as RewriterConfig.optimizers "
             "names them; '' for none")
          ->delimiter(',')
          ->allow_extra_args(false);
  app.add_option(
         "--device", flags->devices,
         "A device that the graph is for, 'NAME TYPE key=value ...' (docs/optimizer.md); may "
         "be given again")
      ->allow_extra_args(false);
  app.add_option("--optimizer_library", flags->optimizer_libraries,
                 "Shared library with a graph optimizer, as TensorFlow's plug-ins are "
                 "(smelt/optimize/custom/tf_graph_optimizer.h); may be given again")
      ->allow_extra_args(false);
  app.add_option("--explain", flags->explain,
                 "Node whose story is told: rules that rewrote it, "
                 "and why others did not");
  app.add_option("--html", flags->html,
                 "A page to look at: the graph before and after each pass, side by side");
  app.add_flag("--measure", flags->measure,
               "Measure this machine, tell the passes, and estimate what the graph takes");
  app.add_flag("--json", flags->json, "The report as JSON");
  AddPassFlags(app, &flags->dump);
  AddResourceFlags(app, &flags->resources);
  return [flags, passes] {
    // '' leaves an option without a value.
    if (passes->count() > 0 && !flags->passes) flags->passes.emplace();
    return RunOptimize(*flags);
  };
}

}  // namespace smelt
