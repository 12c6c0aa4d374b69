// SKIP_GRAM of TensorFlow Lite: groups of the words of a sentence, in order, with at most so many
// words left out between two of them.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "smelt/kernels/kernel.h"

namespace smelt::lite {
namespace {

// More texts than any sentence should make.
constexpr size_t kMostGrams = size_t{1} << 24;

struct SkipGramState final : KernelState {
  int64_t size = 0, skip = 0;
  bool all = false;
};

StatusOr<std::unique_ptr<KernelState>> PrepareSkipGram(const Node& node) {
  auto s = std::make_unique<SkipGramState>();
  s->size = node.Int("ngram_size");
  s->skip = node.Int("max_skip_size");
  s->all = node.Bool("include_all_ngrams");
  if (s->size < 1 || s->skip < 0) {
    return InvalidArgument("it makes groups of ", s->size, " words that leave out ", s->skip);
  }
  return s;
}

// What stands between white space. What stands behind white space at the very beginning is no word,
// unless nothing follows: as there.
std::vector<absl::string_view> WordsOf(absl::string_view text) {
  std::vector<absl::string_view> words;
  const auto space = [&](size_t i) {
    return absl::ascii_isspace(static_cast<unsigned char>(text[i]));
  };
  size_t begin = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if (!space(i)) continue;
    if (i > begin && !space(begin)) words.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  if (text.size() > begin) words.push_back(text.substr(begin));
  return words;
}

class Grams {
 public:
  Grams(const SkipGramState& s, std::span<const absl::string_view> words) : s_(s), words_(words) {}

  // Longer groups come before the shorter ones that they begin with.
  Status From(size_t first) {
    gram_.push_back(words_[first]);
    if (static_cast<int64_t>(gram_.size()) < s_.size) {
      for (size_t next = first + 1;
           next < words_.size() && static_cast<int64_t>(next - first) <= s_.skip + 1; ++next) {
        RETURN_IF_ERROR(From(next));
      }
    }
    if (s_.all || static_cast<int64_t>(gram_.size()) == s_.size) {
      if (out.size() == kMostGrams) return ResourceExhausted("its groups are too many");
      out.push_back(absl::StrJoin(gram_, " "));
    }
    gram_.pop_back();
    return OkStatus();
  }

  std::vector<std::string> out;

 private:
  const SkipGramState& s_;
  std::span<const absl::string_view> words_;
  std::vector<absl::string_view> gram_;
};

Status RunSkipGram(OpContext& ctx) {
  const auto& s = ctx.state<SkipGramState>();
  const Tensor& in = ctx.input(0);
  if (in.num_elements() == 0) return InvalidArgument("it has no sentence");
  const std::vector<absl::string_view> words = WordsOf(in.data<std::string>()[0]);
  Grams grams(s, words);
  if (static_cast<int64_t>(words.size()) >= s.size) {
    for (size_t first = 0; first < words.size(); ++first) RETURN_IF_ERROR(grams.From(first));
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, Shape({static_cast<int64_t>(grams.out.size())})));
  std::move(grams.out.begin(), grams.out.end(), out->data<std::string>());
  return OkStatus();
}

std::string DeclineSkipGram(const Node& node) {
  if (node.num_inputs() != 1 || node.num_outputs() != 1 || node.input_types[0] != Dtype::kString ||
      node.output_types[0] != Dtype::kString) {
    return "it takes one tensor of strings and gives one";
  }
  return "";
}

constexpr Kernel kLiteSkipGramTable[] = {
    {"tfl.skip_gram", "", kAnyType, "lite:skip_gram", RunSkipGram, PrepareSkipGram,
     DeclineSkipGram},
};

}  // namespace
}  // namespace smelt::lite

namespace smelt {
extern constinit const std::span<const Kernel> kLiteSkipGramKernels = lite::kLiteSkipGramTable;
}  // namespace smelt
