#include "smelt/cli/picture.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "smelt/io/fs.h"
#include "smelt/io/utf8.h"

extern char** environ;

namespace smelt {
namespace {

// What can be read in one picture, and what dot lays out within a second.
constexpr size_t kMostPictureBoxes = 300, kMostPictureLines = 1500;
constexpr size_t kMostPictureText = 60;
constexpr int kMostScopes = 16;
constexpr absl::Duration kDrawingLimit = absl::Seconds(10);

std::string Quoted(absl::string_view bytes) {
  std::string out = "\"";
  size_t shown = 0;
  for (const char ch : Utf8Text(bytes)) {
    const auto byte = static_cast<unsigned char>(ch);
    if ((byte & 0xc0) != 0x80 && ++shown > kMostPictureText) {
      out += "…";
      break;
    }
    if (ch == '"' || ch == '\\') {
      out += '\\';
      out += ch;
    } else if (ch == '&') {
      out += "&amp;";
    } else {
      out += byte < 0x20 || byte == 0x7f ? ' ' : ch;
    }
  }
  return out + "\"";
}

// The first `depth` scopes of a name, or all of it where it has fewer.
absl::string_view ScopeOf(absl::string_view name, int depth) {
  size_t end = 0;
  for (int i = 0; i < depth; ++i) {
    end = name.find('/', end);
    if (end == absl::string_view::npos) return name;
    ++end;
  }
  return name.substr(0, end);
}

// Which box each node is in: the node's name, a scope or an op.
class Boxes {
 public:
  explicit Boxes(const Graph& graph) : nodes_(graph.Nodes()) {
    depth_ = nodes_.size() <= kMostPictureBoxes ? kAll : kByOp;
    for (int depth = 1; depth_ != kAll && depth <= kMostScopes; ++depth) {
      absl::flat_hash_set<absl::string_view> scopes;
      for (const Node* n : nodes_) {
        scopes.insert(ScopeOf(n->name(), depth));
        if (scopes.size() > kMostPictureBoxes) break;
      }
      if (scopes.size() > kMostPictureBoxes) break;
      depth_ = depth;
    }
    std::map<std::string, int> counts;
    for (const Node* n : nodes_) ++counts[KeyOf(*n)];
    // The largest stay, where there are too many even so.
    std::vector<std::pair<std::string, int>> largest(counts.begin(), counts.end());
    std::ranges::stable_sort(largest,
                             [](const auto& a, const auto& b) { return a.second > b.second; });
    if (largest.size() > kMostPictureBoxes) largest.resize(kMostPictureBoxes - 1);
    std::ranges::sort(largest);
    for (const auto& [key, count] : largest) {
      numbers_[key] = static_cast<int>(boxes_.size());
      boxes_.emplace_back(key, count);
    }
    if (largest.size() < counts.size()) boxes_.emplace_back("others", 0);
  }

  const std::vector<Node*>& nodes() const { return nodes_; }
  const std::vector<std::pair<std::string, int>>& boxes() const { return boxes_; }
  bool whole() const { return depth_ == kAll; }

  int Of(const Node& n) const {
    const auto it = numbers_.find(KeyOf(n));
    return it == numbers_.end() ? static_cast<int>(boxes_.size()) - 1 : it->second;
  }

 private:
  static constexpr int kAll = -1, kByOp = 0;

  std::string KeyOf(const Node& n) const {
    if (depth_ == kAll) return n.name();
    if (depth_ > 0) return std::string(ScopeOf(n.name(), depth_));
    const absl::string_view scope = ScopeOf(n.name(), 1);
    return scope.size() < n.name().size() ? std::string(scope) : absl::StrCat("op ", n.op());
  }

  std::vector<Node*> nodes_;
  int depth_ = kAll;
  absl::flat_hash_map<std::string, int> numbers_;
  std::vector<std::pair<std::string, int>> boxes_;  // what it holds, how many nodes
};

}  // namespace

std::string DotText(const Graph& graph) {
  const Boxes boxes(graph);
  struct Line {
    int64_t count = 0;
    bool control = true;
  };
  std::map<std::pair<int, int>, Line> all;
  std::vector<std::string> ops(boxes.boxes().size());
  for (const Node* n : boxes.nodes()) {
    const int to = boxes.Of(*n);
    ops[static_cast<size_t>(to)] = std::string(n->op());
    const auto add = [&](const Node* from, bool control) {
      if (from == nullptr || (!boxes.whole() && boxes.Of(*from) == to)) return;
      Line& line = all[{boxes.Of(*from), to}];
      ++line.count;
      line.control = line.control && control;
    };
    for (const Endpoint& e : n->inputs()) add(e.node, false);
    for (const Node* c : n->control_inputs()) add(c, true);
  }
  std::vector<std::pair<std::pair<int, int>, Line>> lines(all.begin(), all.end());
  std::ranges::stable_sort(
      lines, [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  const size_t left_out = lines.size() - std::min(lines.size(), kMostPictureLines);
  lines.resize(lines.size() - left_out);

  std::string title = absl::StrCat(graph.num_nodes(), " nodes");
  if (!boxes.whole()) absl::StrAppend(&title, " in ", boxes.boxes().size(), " boxes");
  if (left_out > 0) absl::StrAppend(&title, ", ", left_out, " lines left out");
  std::string out = absl::StrCat(
      "digraph {\n  label=", Quoted(title),
      "; labelloc=t; nslimit=2; nslimit1=2; mclimit=0.5; fontname=\"sans-serif\";\n"
      "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f2f4f7\", color=\"#98a1ad\", "
      "fontname=\"sans-serif\", fontsize=10];\n  edge [color=\"#98a1ad\", arrowsize=0.6];\n");
  for (size_t i = 0; i < boxes.boxes().size(); ++i) {
    const auto& [key, count] = boxes.boxes()[i];
    const std::string under = boxes.whole() || count == 1 ? ops[i]
                              : count == 0                ? "in smaller boxes"
                                                          : absl::StrCat(count, " nodes");
    absl::StrAppend(&out, "  n", i, " [label=", Quoted(key), " + \"\\n\" + ", Quoted(under),
                    "];\n");
  }
  for (const auto& [ends, line] : lines) {
    absl::StrAppend(&out, "  n", ends.first, " -> n", ends.second);
    if (line.control) absl::StrAppend(&out, " [style=dashed]");
    absl::StrAppend(&out, ";\n");
  }
  return out + "}\n";
}

Status DrawDot(const std::string& dot_path, const std::string& svg_path) {
  // Absolute or not, a path that begins with '-' must not be taken for an option.
  const auto file = [](const std::string& path) {
    return path.starts_with('-') ? "./" + path : path;
  };
  std::string program = "dot", format = "-Tsvg", to = "-o" + svg_path, from = file(dot_path);
  char* const args[] = {program.data(), format.data(), to.data(), from.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {0, 1, 2}) {
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "dot", &files, nullptr, args, environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed == ENOENT) {
    return absl::UnavailableError("the program dot (graphviz) is not installed");
  }
  if (failed != 0) return Internal("dot: ", std::strerror(failed));
  const absl::Time end = absl::Now() + kDrawingLimit;
  int how = 0;
  bool over = false;
  for (pid_t done = 0; done != child;) {
    done = waitpid(child, &how, over ? 0 : WNOHANG);
    if (done < 0 && errno != EINTR) return Internal("dot: ", std::strerror(errno));
    if (done != 0) continue;
    over = absl::Now() > end;
    if (over) {
      kill(child, SIGKILL);
    } else {
      absl::SleepFor(absl::Milliseconds(5));
    }
  }
  if (!over && WIFEXITED(how) && WEXITSTATUS(how) == 0) return OkStatus();
  std::remove(svg_path.c_str());
  if (over) {
    return absl::DeadlineExceededError(
        absl::StrCat("dot took more than ", absl::FormatDuration(kDrawingLimit)));
  }
  return Internal("dot failed on ", dot_path);
}

}  // namespace smelt
