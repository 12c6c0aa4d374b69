#include "smelt/kernels/nn/line_chain.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "absl/container/inlined_vector.h"
#include "smelt/base/cache_size.h"
#include "smelt/base/parallel.h"

namespace smelt::nn {
namespace {

// What a step leaves over is moved to the front of its lines: of steps of a few lines it is little.
constexpr int64_t kMostAtOnce = 8;
constexpr int64_t kAlign = 64;

// The most lines that a kernel reads for `count` lines of its result.
int64_t MostRead(const LineKernel& kernel, int64_t count) {
  const int64_t lines = kernel.sizes().out_lines;
  int64_t most = 0;
  for (int64_t first = 0; first < lines; ++first) {
    most = std::max(most, kernel.Reads({first, std::min(lines, first + count)}).count());
  }
  return most;
}

// Of each link but the last, the bytes of the lines that wait to be read, at most, where the last
// one makes `at_once`.
struct KeptLines {
  std::vector<int64_t> bytes;
  int64_t all_bytes = 0;
};
KeptLines LinesToKeep(std::span<const LineLink> links, int64_t at_once) {
  KeptLines kept;
  kept.bytes.resize(links.size() - 1);
  for (size_t i = links.size() - 1; i > 0; --i) {
    const LineKernel& reader = *links[i].kernel->lines();
    at_once = MostRead(reader, at_once);
    kept.bytes[i - 1] = (at_once * reader.sizes().in_bytes + kAlign - 1) / kAlign * kAlign;
    kept.all_bytes += kept.bytes[i - 1];
  }
  return kept;
}

// As many as leave the larger part of a core's cache to weights and to what is read and written.
int64_t LinesAtOnce(std::span<const LineLink> links) {
  const int64_t room = NearCacheBytes(int64_t{1} << 20) / 4;
  int64_t at_once = std::min(kMostAtOnce, links.back().kernel->lines()->sizes().out_lines);
  while (at_once > 1 && LinesToKeep(links, at_once).all_bytes > room) --at_once;
  return at_once;
}

class BoundLineChain final : public BoundKernel {
 public:
  explicit BoundLineChain(std::vector<LineLink> links)
      : links_(std::move(links)),
        at_once_(LinesAtOnce(links_)),
        kept_(LinesToKeep(links_, at_once_)) {
    for (const LineLink& link : links_) sizes_.push_back(link.kernel->lines()->sizes());
    const LineSizes& last = sizes_.back();
    parts_ = std::clamp<int64_t>(last.images * last.out_lines / at_once_, 1, Threads());
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(parts_ * kept_.all_bytes); }
  Status Run(const void* const* inputs, void* const* outputs, void* scratch) const override {
    absl::InlinedVector<const void*, 16> own;
    for (const LineLink& link : links_) {
      for (const int i : link.inputs) own.push_back(inputs[i]);
    }
    const int64_t lines = sizes_.back().out_lines, all = sizes_.back().images * lines;
    ParallelFor(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        Pass pass(*this, own.data(), inputs[links_[0].inputs[0]],
                  static_cast<char*>(scratch) + part * kept_.all_bytes);
        const int64_t stop = all * (part + 1) / parts_;
        for (int64_t at = all * part / parts_; at < stop;) {
          const int64_t image = at / lines, first = at % lines;
          const int64_t count = std::min(stop - at, lines - first);
          pass.Image(image, {first, first + count}, static_cast<char*>(outputs[0]));
          at += count;
        }
      }
    });
    return OkStatus();
  }

 private:
  // Of one thread, over lines that follow each other.
  class Pass {
   public:
    Pass(const BoundLineChain& chain, const void* const* inputs, const void* x, char* scratch)
        : chain_(chain), x_(static_cast<const char*>(x)) {
      for (size_t i = 0; i < chain.links_.size(); ++i) {
        inputs_.push_back(inputs);
        inputs += chain.links_[i].inputs.size();
        if (i + 1 == chain.links_.size()) break;
        lines_.push_back({scratch, {}});
        scratch += chain.kept_.bytes[i];
      }
    }

    void Image(int64_t image, LineRange out, char* y) {
      for (Lines& lines : lines_) lines.held = {};
      image_ = image;
      const LineSizes& s = chain_.sizes_.back();
      for (int64_t at = out.first; at < out.last; at += chain_.at_once_) {
        Make(chain_.links_.size() - 1, {at, std::min(out.last, at + chain_.at_once_)},
             y + (image * s.out_lines + at) * s.out_bytes);
      }
    }

   private:
    // Of a link's result.
    struct Lines {
      char* at;
      LineRange held;
    };

    void Make(size_t link, LineRange out, char* to) {
      const LineKernel& kernel = *chain_.links_[link].kernel->lines();
      const LineRange in = kernel.Reads(out);
      const char* from = link > 0 ? Hold(link - 1, in) : Input(in.first);
      kernel.MakeLines(inputs_[link], from, image_, out, to);
    }
    const char* Input(int64_t line) const {
      const LineSizes& s = chain_.sizes_[0];
      return x_ + (image_ * s.in_lines + line) * s.in_bytes;
    }
    // Where lines `wanted` of a link's result lie. Each is made once.
    const char* Hold(size_t link, LineRange wanted) {
      Lines& lines = lines_[link];
      LineRange& held = lines.held;
      const int64_t bytes = chain_.sizes_[link].out_bytes;
      if (held.last <= wanted.first) {
        held = {wanted.first, wanted.first};
      } else if (held.first < wanted.first) {
        std::memmove(lines.at, lines.at + (wanted.first - held.first) * bytes,
                     static_cast<size_t>((held.last - wanted.first) * bytes));
        held.first = wanted.first;
      }
      if (held.last < wanted.last) {
        Make(link, {held.last, wanted.last}, lines.at + (held.last - held.first) * bytes);
        held.last = wanted.last;
      }
      return lines.at;
    }

    const BoundLineChain& chain_;
    const char* const x_;
    absl::InlinedVector<const void* const*, 8> inputs_;  // by link
    absl::InlinedVector<Lines, 8> lines_;                // by link but the last
    int64_t image_ = 0;
  };

  const std::vector<LineLink> links_;
  const int64_t at_once_;
  const KeptLines kept_;  // of one thread
  std::vector<LineSizes> sizes_;
  int64_t parts_ = 1;
};

}  // namespace

bool FollowsByLines(const LineSizes& first, const LineSizes& second) {
  return first.images == second.images && first.out_lines == second.in_lines &&
         first.out_bytes == second.in_bytes;
}

std::unique_ptr<BoundKernel> BindLineChain(std::vector<LineLink> links) {
  return std::make_unique<BoundLineChain>(std::move(links));
}

const Kernel& LineChainKernel() {
  static const Kernel row{OpName(), "", kAnyType, "nn:lines"};
  return row;
}

}  // namespace smelt::nn
