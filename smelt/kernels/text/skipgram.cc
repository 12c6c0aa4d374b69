// Pairs of neighboring words, as word2vec learns from them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/synchronization/mutex.h"
#include "smelt/kernels/common/philox.h"
#include "smelt/kernels/kernel.h"

namespace smelt {
namespace {

// How many pairs are made at a time, and how many words a sentence has, as in TensorFlow: the epoch
// and the count of words that the op returns are those of the pairs made ahead.
constexpr int kPairsAhead = 3000;
constexpr int kSentenceWords = 1000;

absl::string_view TakeWord(absl::string_view* text) {
  *text = absl::StripLeadingAsciiWhitespace(*text);
  const auto end = std::ranges::find_if(*text, absl::ascii_isspace) - text->begin();
  const absl::string_view word = text->substr(0, static_cast<size_t>(end));
  text->remove_prefix(word.size());
  return word;
}

struct SkipgramOptions {
  std::string filename;
  int64_t batch_size, window_size, min_count;
  float subsample;
};

// A text as ids of words: 0 for rare ones, then by falling frequency.
struct Corpus {
  Tensor words, counts;
  std::vector<int32_t> ids;
};

StatusOr<Corpus> ReadCorpus(const SkipgramOptions& options, const FileSystem& files) {
  ASSIGN_OR_RETURN(const std::string text, files.Read(options.filename));
  // Words of equal frequency come in the order of this map and of this sort, as in TensorFlow.
  std::unordered_map<std::string, int32_t> count;
  Corpus corpus;
  absl::string_view rest = text;
  int64_t size = 0;
  for (absl::string_view w = TakeWord(&rest); !w.empty(); w = TakeWord(&rest), ++size) {
    ++count[std::string(w)];
  }
  if (size < options.window_size * 10 || size == 0) {
    return InvalidArgument("The text file ", options.filename, " contains too little data: ", size,
                           " words");
  }
  if (size > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("The text file ", options.filename, " contains too much data: ", size,
                           " words");
  }
  std::vector<std::pair<std::string, int32_t>> frequent;
  for (const auto& p : count) {
    if (p.second >= options.min_count) frequent.push_back(p);
  }
  std::sort(frequent.begin(), frequent.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  const Shape shape({static_cast<int64_t>(frequent.size()) + 1});
  ASSIGN_OR_RETURN(corpus.words, Tensor::Make(Dtype::kString, shape));
  ASSIGN_OR_RETURN(corpus.counts, Tensor::Make(Dtype::kInt32, shape));
  auto* words = corpus.words.data<std::string>();
  auto* counts = corpus.counts.data<int32_t>();
  words[0] = "UNK";
  counts[0] = static_cast<int32_t>(size);
  std::unordered_map<std::string, int32_t> ids;
  for (size_t i = 0; i < frequent.size(); ++i) {
    words[i + 1] = frequent[i].first;
    counts[i + 1] = frequent[i].second;
    counts[0] -= frequent[i].second;
    ids[frequent[i].first] = static_cast<int32_t>(i + 1);
  }
  corpus.ids.reserve(static_cast<size_t>(size));
  rest = text;
  for (absl::string_view w = TakeWord(&rest); !w.empty(); w = TakeWord(&rest)) {
    const auto at = ids.find(std::string(w));
    corpus.ids.push_back(at == ids.end() ? 0 : at->second);
  }
  return corpus;
}

// Makes pairs from the text, beginning again at its end. Used by one thread at a time.
class PairSource {
 public:
  PairSource(Corpus corpus, const SkipgramOptions& options)
      : corpus_(std::move(corpus)),
        window_(static_cast<uint32_t>(options.window_size)),
        subsample_(options.subsample),
        at_(corpus_.ids.size()),
        sentence_(kSentenceWords) {}

  const Corpus& corpus() const { return corpus_; }
  int32_t epoch() const { return epoch_; }
  int64_t words_seen() const { return words_seen_; }

  // A word and its neighbor. REQUIRES: Refill was called since the pair before.
  std::pair<int32_t, int32_t> Next() { return pairs_[used_++]; }
  // Makes pairs when all are used: epoch() and words_seen() are those of the pairs made. CANCELLED
  // or DEADLINE_EXCEEDED while no word is kept; the source must not be used after that.
  Status Refill(const Step& step) {
    if (used_ != pairs_.size()) return OkStatus();
    pairs_.clear();
    used_ = 0;
    for (int i = 0; i < kPairsAhead; ++i) {
      RETURN_IF_ERROR(Advance(step));
      pairs_.emplace_back(sentence_[static_cast<size_t>(word_)],
                          sentence_[static_cast<size_t>(neighbor_++)]);
    }
    return OkStatus();
  }

 private:
  Status Advance(const Step& step) {
    while (true) {
      if (neighbor_ >= neighbors_end_) {
        ++words_seen_;
        if (++word_ >= kSentenceWords) {
          word_ = 0;
          RETURN_IF_ERROR(NextSentence(step));
        }
        const auto reach = static_cast<int32_t>(1 + random_.Below(window_));
        neighbor_ = std::max(0, word_ - reach);
        neighbors_end_ = std::min(kSentenceWords, word_ + reach + 1);
      }
      if (word_ != neighbor_) return OkStatus();
      ++neighbor_;
    }
  }

  // Frequent words are left out now and then: equation 5 of Mikolov et al., 2013.
  Status NextSentence(const Step& step) {
    const auto size = static_cast<float>(corpus_.ids.size());
    int64_t dropped = 0;
    for (int i = 0; i < kSentenceWords; ++at_) {
      if (at_ >= corpus_.ids.size()) {
        ++epoch_;
        at_ = 0;
      }
      const int32_t id = corpus_.ids[at_];
      if (subsample_ > 0) {
        const auto count = static_cast<float>(corpus_.counts.data<int32_t>()[id]);
        const float wanted = subsample_ * size;
        const float keep = (std::sqrt(count / wanted) + 1) * wanted / count;
        if (random_.Uniform() > keep) {
          if (++dropped % 4096 == 0 && step.cancellation != nullptr) {
            RETURN_IF_ERROR(step.cancellation->Check());
          }
          continue;
        }
      }
      sentence_[static_cast<size_t>(i++)] = id;
    }
    return OkStatus();
  }

  const Corpus corpus_;
  const uint32_t window_;
  const float subsample_;
  PhiloxDraws random_{Philox()};
  size_t at_;  // the next word of the text
  std::vector<int32_t> sentence_;
  int32_t word_ = kSentenceWords, neighbor_ = 0, neighbors_end_ = 0;  // in the sentence
  int32_t epoch_ = -1;
  int64_t words_seen_ = 0;
  std::vector<std::pair<int32_t, int32_t>> pairs_;
  size_t used_ = 0;
};

struct SkipgramState final : KernelState {
  SkipgramOptions options;
  absl::Mutex mutex;
  std::unique_ptr<PairSource> source ABSL_GUARDED_BY(mutex);
};

StatusOr<std::unique_ptr<KernelState>> PrepareSkipgram(const Node& node) {
  auto state = std::make_unique<SkipgramState>();
  SkipgramOptions& o = state->options;
  o.filename = node.String("filename");
  o.batch_size = node.Int("batch_size");
  o.window_size = node.Int("window_size", 5);
  o.min_count = node.Int("min_count", 5);
  o.subsample = node.Float("subsample", 1e-3f);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (o.batch_size < 0 || o.window_size < 0 || o.batch_size > kMost || o.window_size >= kMost) {
    return InvalidArgument("batch_size and window_size must be numbers that are not negative");
  }
  return state;
}

Status RunSkipgram(OpContext& ctx) {
  auto& state = ctx.state<SkipgramState>();
  const int64_t n = state.options.batch_size;
  ASSIGN_OR_RETURN(Tensor * examples, ctx.Allocate(5, Shape({n})));
  ASSIGN_OR_RETURN(Tensor * labels, ctx.Allocate(6, Shape({n})));
  absl::MutexLock lock(&state.mutex);
  if (state.source == nullptr) {
    ASSIGN_OR_RETURN(Corpus corpus, ReadCorpus(state.options, ctx.files()));
    state.source = std::make_unique<PairSource>(std::move(corpus), state.options);
  }
  PairSource& source = *state.source;
  Status made = source.Refill(ctx.step());
  for (int64_t i = 0; made.ok() && i < n; ++i) {
    const auto [word, neighbor] = source.Next();
    examples->data<int32_t>()[i] = word;
    labels->data<int32_t>()[i] = neighbor;
    made = source.Refill(ctx.step());
  }
  if (!made.ok()) {
    state.source.reset();
    return made;
  }
  ctx.set_output(0, source.corpus().words);
  ctx.set_output(1, source.corpus().counts);
  ctx.set_output(2, Tensor::Scalar(static_cast<int64_t>(source.corpus().ids.size())));
  ctx.set_output(3, Tensor::Scalar(source.epoch()));
  ctx.set_output(4, Tensor::Scalar(source.words_seen()));
  return OkStatus();
}

constexpr Kernel kSkipgramTable[] = {
    {"Skipgram", "", kAnyType, "text:skipgram", RunSkipgram, PrepareSkipgram},
};

}  // namespace

extern constinit const std::span<const Kernel> kSkipgramKernels = kSkipgramTable;

}  // namespace smelt
