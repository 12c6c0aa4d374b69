// Regular expressions (RE2) and splits.
#include <re2/re2.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

re2::StringPiece Piece(const std::string& s) { return re2::StringPiece(s.data(), s.size()); }

StatusOr<std::shared_ptr<const RE2>> CompileRegex(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_shared<RE2>(Piece(pattern), options);
  if (!regex->ok()) {
    return InvalidArgument("Invalid pattern: ", pattern, ", error: ", regex->error());
  }
  return std::shared_ptr<const RE2>(std::move(regex));
}

struct RegexState final : KernelState {
  std::shared_ptr<const RE2> fixed;  // of the Static ops
  std::string rewrite;
  bool replace_global = true;

  // The regex of the last pattern that came as an input.
  absl::Mutex mutex;
  std::string last_pattern ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const RE2> last ABSL_GUARDED_BY(mutex);

  StatusOr<std::shared_ptr<const RE2>> Compile(const std::string& pattern) {
    absl::MutexLock lock(&mutex);
    if (last == nullptr || last_pattern != pattern) {
      ASSIGN_OR_RETURN(last, CompileRegex(pattern));
      last_pattern = pattern;
    }
    return last;
  }
};

StatusOr<std::unique_ptr<KernelState>> PrepareRegex(const Node& node) {
  auto state = std::make_unique<RegexState>();
  state->rewrite = node.String("rewrite");
  state->replace_global = node.Bool("replace_global", true);
  if (node.Is("StaticRegexFullMatch") || node.Is("StaticRegexReplace")) {
    ASSIGN_OR_RETURN(state->fixed, CompileRegex(node.String("pattern")));
  }
  return state;
}

StatusOr<std::shared_ptr<const RE2>> RegexInput(const OpContext& ctx) {
  auto& state = ctx.state<RegexState>();
  if (state.fixed != nullptr) return state.fixed;
  const Tensor& pattern = ctx.input(1);
  if (pattern.rank() != 0) {
    return InvalidArgument("Pattern must be scalar, but received ", pattern.shape().ToString());
  }
  return state.Compile(pattern.scalar<std::string>());
}

Status RunFullMatch(OpContext& ctx) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const RE2> regex, RegexInput(ctx));
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  bool* p = out->data<bool>();
  for (const std::string& s : in.flat<std::string>()) *p++ = RE2::FullMatch(Piece(s), *regex);
  return OkStatus();
}

// What RE2 writes for a match before it comes to an escape that means nothing.
std::string UsablePart(const std::string& rewrite) {
  size_t at = 0;
  while ((at = rewrite.find('\\', at)) != std::string::npos) {
    if (at + 1 == rewrite.size()) break;
    const char c = rewrite[at + 1];
    if (c != '\\' && !absl::ascii_isdigit(static_cast<unsigned char>(c))) break;
    at += 2;
  }
  return rewrite.substr(0, at);
}

Status RunReplace(OpContext& ctx) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const RE2> regex, RegexInput(ctx));
  const auto& state = ctx.state<RegexState>();
  const std::string* rewrite = &state.rewrite;
  if (ctx.num_inputs() > 2) {
    if (ctx.input(2).rank() != 0) {
      return InvalidArgument("Rewrite must be scalar, but received ",
                             ctx.input(2).shape().ToString());
    }
    rewrite = &ctx.input(2).scalar<std::string>();
  }
  const Tensor& in = ctx.input(0);
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, in.shape()));
  auto* p = out->data<std::string>();
  // RE2 leaves a text alone when the rewrite has groups that the pattern lacks or, for one
  // replacement, a wrong escape; replacing all, it ends each at that escape. It would print an
  // error for every match.
  std::string error;
  bool usable = regex->CheckRewriteString(Piece(*rewrite), &error);
  std::string part;
  if (!usable && state.replace_global &&
      RE2::MaxSubmatch(Piece(*rewrite)) <= regex->NumberOfCapturingGroups()) {
    part = UsablePart(*rewrite);
    rewrite = &part;
    usable = true;
  }
  for (const std::string& s : in.flat<std::string>()) {
    *p = s;
    if (usable) {
      if (state.replace_global) {
        RE2::GlobalReplace(p, *regex, Piece(*rewrite));
      } else {
        RE2::Replace(p, *regex, Piece(*rewrite));
      }
    }
    ++p;
  }
  return OkStatus();
}

// ---- splits: a sparse matrix of tokens ----

class TokenRows {
 public:
  void Add(absl::string_view token) {
    tokens_.emplace_back(token.data(), token.size());
    rows_.push_back(row_);
    columns_.push_back(column_++);
    widest_ = std::max(widest_, column_);
  }
  void NextRow() {
    ++row_;
    column_ = 0;
  }
  Status Finish(OpContext& ctx) {
    const auto n = static_cast<int64_t>(tokens_.size());
    ASSIGN_OR_RETURN(Tensor * indices, ctx.Allocate(0, Shape({n, 2})));
    int64_t* p = indices->data<int64_t>();
    for (size_t i = 0; i < tokens_.size(); ++i) {
      *p++ = rows_[i];
      *p++ = columns_[i];
    }
    ASSIGN_OR_RETURN(Tensor * values, ctx.Allocate(1, Shape({n})));
    std::move(tokens_.begin(), tokens_.end(), values->data<std::string>());
    ctx.set_output(2, Tensor::Vector<int64_t>({row_, widest_}));
    return OkStatus();
  }

 private:
  std::vector<std::string> tokens_;
  std::vector<int64_t> rows_, columns_;
  int64_t row_ = 0, column_ = 0, widest_ = 0;
};

Status RunSplit(OpContext& ctx) {
  const Tensor &in = ctx.input(0), &delimiter = ctx.input(1);
  if (in.rank() != 1) {
    return InvalidArgument("input must be a vector, got shape: ", in.shape().ToString());
  }
  if (delimiter.rank() != 0) {
    return InvalidArgument("delimiter must be a scalar, got shape: ", delimiter.shape().ToString());
  }
  const bool skip_empty = ctx.node().Bool("skip_empty", true);
  const std::string& set = delimiter.scalar<std::string>();
  TokenRows rows;
  for (const std::string& s : in.flat<std::string>()) {
    if (set.empty()) {  // characters, one by one
      for (const char& c : s) rows.Add(absl::string_view(&c, 1));
    } else if (!s.empty()) {
      size_t at = 0;
      while (true) {
        size_t end = s.find_first_of(set, at);
        if (end == std::string::npos) end = s.size();
        if (end > at || !skip_empty) rows.Add(absl::string_view(s).substr(at, end - at));
        if (end == s.size()) break;
        at = end + 1;
      }
    }
    rows.NextRow();
  }
  return rows.Finish(ctx);
}

// Tokens between runs of white space; after `limit` splits the rest is one token, be it empty.
void SplitAtSpace(absl::string_view s, int64_t limit, TokenRows* rows) {
  s = absl::StripLeadingAsciiWhitespace(s);
  for (int64_t splits = 1; !s.empty(); ++splits) {
    size_t end = 0;
    while (end < s.size() && !absl::ascii_isspace(static_cast<unsigned char>(s[end]))) ++end;
    rows->Add(s.substr(0, end));
    s = absl::StripLeadingAsciiWhitespace(s.substr(end));
    if (splits == limit) return rows->Add(s);
  }
}

Status RunSplitV2(OpContext& ctx) {
  const Tensor &in = ctx.input(0), &separator = ctx.input(1);
  if (in.rank() != 1) {
    return InvalidArgument("input must be a vector, got shape: ", in.shape().ToString());
  }
  if (separator.rank() != 0) {
    return InvalidArgument("sep must be a scalar, got shape: ", separator.shape().ToString());
  }
  const int64_t limit = ctx.node().Int("maxsplit", -1);
  const std::string& sep = separator.scalar<std::string>();
  TokenRows rows;
  for (const std::string& s : in.flat<std::string>()) {
    if (limit == 0) {
      rows.Add(s);
    } else if (sep.empty()) {
      SplitAtSpace(s, limit, &rows);
    } else {
      size_t at = 0;
      for (int64_t splits = 0; limit < 0 || splits < limit; ++splits) {
        const size_t end = s.find(sep, at);
        if (end == std::string::npos) break;
        rows.Add(absl::string_view(s).substr(at, end - at));
        at = end + sep.size();
      }
      rows.Add(absl::string_view(s).substr(at));
    }
    rows.NextRow();
  }
  return rows.Finish(ctx);
}

constexpr Kernel kRegexTable[] = {
    {"StaticRegexFullMatch", "", kAnyType, "text:regex", RunFullMatch, PrepareRegex},
    {"RegexFullMatch", "", kAnyType, "text:regex", RunFullMatch, PrepareRegex},
    {"StaticRegexReplace", "", kAnyType, "text:regex", RunReplace, PrepareRegex},
    {"RegexReplace", "", kAnyType, "text:regex", RunReplace, PrepareRegex},
    {"StringSplit", "", kAnyType, "text:split", RunSplit},
    {"StringSplitV2", "", kAnyType, "text:split", RunSplitV2},
};

}  // namespace

extern constinit const std::span<const Kernel> kRegexKernels = kRegexTable;

}  // namespace smelt
