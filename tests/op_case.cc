#include "tests/op_case.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "smelt/graph/text.h"

namespace smelt {
namespace {

// Cuts the first word of *text off and returns it; a quoted name is one word.
std::string TakeWord(absl::string_view* text) {
  *text = absl::StripAsciiWhitespace(*text);
  size_t end = 0;
  bool quoted = false;
  for (; end < text->size() && (quoted || (*text)[end] != ' '); ++end) {
    if ((*text)[end] == '\\' && quoted) {
      ++end;
    } else if ((*text)[end] == '"') {
      quoted = !quoted;
    }
  }
  std::string word(text->substr(0, end));
  *text = absl::StripAsciiWhitespace(text->substr(std::min(end, text->size())));
  return word;
}

std::string Unquoted(absl::string_view text) {
  std::string out;
  if (absl::ConsumePrefix(&text, "\"") && absl::ConsumeSuffix(&text, "\"") &&
      absl::CUnescape(text, &out)) {
    return out;
  }
  return std::string(text);
}

std::string UnquotedEndpoint(const std::string& text) {
  if (text.empty() || text[0] != '"') return text;
  const size_t end = text.rfind('"');
  return Unquoted(text.substr(0, end + 1)) + text.substr(end + 1);
}

}  // namespace

Status ReadCases(const std::string& path, std::vector<TestCase>* cases) {
  std::ifstream file(path);
  if (!file) return NotFound(path, ": cannot open");
  std::string line;
  bool in_graph = false;
  for (int number = 1; std::getline(file, line); ++number) {
    absl::string_view rest = absl::StripAsciiWhitespace(line);
    if (in_graph) {
      if (rest == "end") {
        in_graph = false;
      } else {
        absl::StrAppend(&cases->back().graph, line, "\n");
      }
      continue;
    }
    if (rest.empty() || rest[0] == '#' || rest == "---") continue;
    const std::string word = TakeWord(&rest);
    if (word == "case") {
      TestCase c;
      c.file = path;
      c.line = number;
      c.name = std::string(rest);
      cases->push_back(std::move(c));
      continue;
    }
    if (cases->empty() || cases->back().file != path) {
      return InvalidArgument(path, ":", number, ": '", word, "' before the first case");
    }
    TestCase& c = cases->back();
    TestStep& step = c.steps.back();
    if (word == "op") {
      c.op = std::string(rest);
    } else if (word == "graph") {
      c.is_graph = in_graph = true;
    } else if (word == "in") {
      c.ins.emplace_back(rest);
    } else if (word == "out") {
      c.outs.emplace_back(rest);
    } else if (word == "feed" || word == "fetch") {
      std::string endpoint = UnquotedEndpoint(TakeWord(&rest));
      (word == "feed" ? step.feeds : step.fetches)
          .emplace_back(std::move(endpoint), std::string(rest));
    } else if (word == "run") {
      step.runs.push_back(Unquoted(rest));
    } else if (word == "step") {
      c.steps.emplace_back();
    } else if (word == "error") {
      step.failure.expected = true;
      step.failure.code = TakeWord(&rest);
      step.failure.words = Unquoted(rest);
    } else if (word == "tol") {
      if (std::sscanf(std::string(rest).c_str(), "%lf %lf", &c.rtol, &c.atol) != 2) {
        return InvalidArgument(path, ":", number, ": tol RTOL ATOL");
      }
    } else if (word == "compare") {
      c.shape_only = rest == "shape";
    } else {
      return InvalidArgument(path, ":", number, ": unknown word '", word, "'");
    }
  }
  return OkStatus();
}

std::string TestCase::NodeText(absl::string_view node,
                               const std::vector<std::string>& inputs) const {
  const size_t name_end = std::min(op.find_first_of(" {"), op.size());
  return absl::StrCat(node, " = ", op.substr(0, name_end),
                      inputs.empty() ? "" : absl::StrCat("(", absl::StrJoin(inputs, ", "), ")"),
                      op.substr(name_end), "\n");
}

std::optional<std::vector<Tensor>> TestCase::Inputs() const {
  std::vector<Tensor> inputs;
  for (const std::string& literal : ins) {
    auto t = ParseTensorText(literal);
    if (!t.ok()) return std::nullopt;
    inputs.push_back(*std::move(t));
  }
  return inputs;
}

bool ReadOneOpCases(int argc, char** argv, std::vector<TestCase>* cases) {
  std::string filter;
  int every = 1;
  std::vector<TestCase> all;
  for (int i = 1; i < argc; ++i) {
    if (absl::string_view(argv[i]) == "--filter" && i + 1 < argc) {
      filter = argv[++i];
    } else if (absl::string_view(argv[i]) == "--every" && i + 1 < argc) {
      if (!absl::SimpleAtoi(argv[++i], &every) || every < 1) {
        std::fprintf(stderr, "--every takes a number above 0\n");
        return false;
      }
    } else if (const Status s = ReadCases(argv[i], &all); !s.ok()) {
      std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
      return false;
    }
  }
  for (size_t i = 0; i < all.size(); i += static_cast<size_t>(every)) {
    if (!all[i].is_graph && absl::StrContains(all[i].op, filter)) {
      cases->push_back(std::move(all[i]));
    }
  }
  return true;
}

}  // namespace smelt
