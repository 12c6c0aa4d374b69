// SKIP_GRAM of TensorFlow Lite: groups of the words of a sentence, in order, with at most so many
// words left out between two of them.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "smelt/kernels/common/cancellable.h"
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

// Sentences are as long as files and requests want: no group is begun that cannot be ended, and
// none is a call in a call.
class Grams {
 public:
  Grams(const SkipGramState& s, std::span<const absl::string_view> words, const Step& step)
      : s_(s), words_(words), step_(step) {}

  // Longer groups come before the shorter ones that they begin with.
  Status From(size_t first) {
    gram_ = {{first, first + 1}};
    while (!gram_.empty()) {
      Word& last = gram_.back();
      if (CanGoOn(last)) {
        const size_t next = last.next++;
        gram_.push_back({next, next + 1});
        continue;
      }
      if (s_.all || static_cast<int64_t>(gram_.size()) == s_.size) RETURN_IF_ERROR(Keep());
      gram_.pop_back();
    }
    return OkStatus();
  }

  std::vector<std::string> out;

 private:
  struct Word {
    size_t at;
    size_t next;  // which one is tried behind it
  };

  bool CanGoOn(const Word& last) const {
    const auto length = static_cast<int64_t>(gram_.size());
    const auto left = static_cast<int64_t>(words_.size() - last.next);
    return length < s_.size && left > 0 &&
           static_cast<int64_t>(last.next - last.at) <= s_.skip + 1 &&
           (s_.all || length + left >= s_.size);
  }

  Status Keep() {
    RETURN_IF_ERROR(CheckStep(step_));
    if (out.size() == kMostGrams) return ResourceExhausted("its groups are too many");
    out.push_back(absl::StrJoin(gram_, " ", [&](std::string* to, const Word& word) {
      absl::StrAppend(to, words_[word.at]);
    }));
    return OkStatus();
  }

  const SkipGramState& s_;
  std::span<const absl::string_view> words_;
  const Step& step_;
  std::vector<Word> gram_;
};

Status RunSkipGram(OpContext& ctx) {
  const auto& s = ctx.state<SkipGramState>();
  const Tensor& in = ctx.input(0);
  if (in.num_elements() == 0) return InvalidArgument("it has no sentence");
  const std::vector<absl::string_view> words = WordsOf(in.data<std::string>()[0]);
  Grams grams(s, words, ctx.step());
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
