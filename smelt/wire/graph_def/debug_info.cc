#include "smelt/wire/graph_def/debug_info.h"

#include "absl/strings/match.h"
#include "smelt/io/fs.h"
#include "smelt/wire/proto/debug_info.pb.h"
#include "smelt/wire/proto/framework.pb.h"
#include "smelt/wire/proto/proto_internal.h"

namespace smelt {
namespace {

using tensorflow::GraphDebugInfo;

bool IsLibraryFile(absl::string_view file) {
  return absl::StrContains(file, "site-packages/") || absl::StrContains(file, "dist-packages/") ||
         absl::StrContains(file, "/tensorflow/python/") || absl::StrContains(file, "/keras/src/");
}

// The line that a trace stands for. Frames are in the order of the calls, the innermost last.
std::string LineOfTrace(const GraphDebugInfo& info, const GraphDebugInfo::StackTrace& trace) {
  std::vector<const GraphDebugInfo::FileLineCol*> frames;
  for (const auto& frame : trace.file_line_cols()) frames.push_back(&frame);
  for (uint64_t id : trace.frame_id()) {
    if (auto it = info.frames_by_id().find(id); it != info.frames_by_id().end()) {
      frames.push_back(&it->second);
    }
  }
  const auto file_of = [&](const GraphDebugInfo::FileLineCol& f) -> absl::string_view {
    if (f.file_index() < 0 || f.file_index() >= info.files_size()) return "";
    return info.files(f.file_index());
  };
  const GraphDebugInfo::FileLineCol* best = nullptr;
  for (auto it = frames.rbegin(); it != frames.rend(); ++it) {
    if (file_of(**it).empty()) continue;
    if (best == nullptr) best = *it;
    if (!IsLibraryFile(file_of(**it))) {
      best = *it;
      break;
    }
  }
  if (best == nullptr) return "";
  std::string line = absl::StrCat(file_of(*best), ":", best->line());
  if (!best->func().empty()) absl::StrAppend(&line, ", in ", best->func());
  return line;
}

}  // namespace

StatusOr<DebugInfo> DebugInfo::Read(const std::string& dir) {
  DebugInfo out;
  const std::string path = dir + "/debug/saved_model_debug_info.pb";
  if (dir.empty() || !Exists(path)) return out;
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  GraphDebugInfo info;
  RETURN_IF_ERROR(ParseBinaryProto(bytes, path, &info));
  std::map<uint64_t, std::string> by_id;
  for (const auto& [id, trace] : info.traces_by_id()) by_id[id] = LineOfTrace(info, trace);
  for (const auto& [key, trace] : info.traces()) out.lines_[key] = LineOfTrace(info, trace);
  for (const auto& [key, id] : info.name_to_trace_id()) {
    if (auto it = by_id.find(id); it != by_id.end()) out.lines_[key] = it->second;
  }
  return out;
}

std::string DebugInfo::Line(absl::string_view node, absl::string_view function) const {
  auto it = lines_.find(absl::StrCat(node, "@", function));
  // Nodes of the main graph have no function in their keys.
  if (it == lines_.end() && function.empty()) it = lines_.find(node);
  return it == lines_.end() ? "" : it->second;
}

std::string DebugInfo::Line(const Node& node, absl::string_view function) const {
  if (empty()) return "";
  if (std::string line = Line(node.name(), function); !line.empty()) return line;
  tensorflow::NodeDef def;
  if (node.extra.empty() || !ParseBinaryProto(node.extra, node.name(), &def).ok()) return "";
  const auto& origin = def.experimental_debug_info();
  for (int i = 0; i < origin.original_node_names_size(); ++i) {
    absl::string_view from;
    if (i < origin.original_func_names_size()) from = origin.original_func_names(i);
    if (std::string line = Line(origin.original_node_names(i), from); !line.empty()) return line;
  }
  return "";
}

}  // namespace smelt
