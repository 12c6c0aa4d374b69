// Weights as the tiles of isa/conv.h read them.
#ifndef SMELT_KERNELS_NN_TILED_PANELS_H_
#define SMELT_KERNELS_NN_TILED_PANELS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "smelt/kernels/common/later_form.h"
#include "smelt/kernels/isa/conv.h"
#include "smelt/tensor/tensor.h"

namespace smelt::nn {

// Vectors of the widest panel that so many vectors of channels are cut into: where registers hold
// more pixels of two, panels are even rather than some of three, some of two.
inline int64_t WidestPanel(int64_t vectors) {
  const int* pixels = IsaConv().tile_pixels;
  return vectors % kConvTileVecs != 0 && pixels[1] > pixels[2] ? 2 : kConvTileVecs;
}

// How the channels of a result are cut into panels, as even as can be.
struct TiledPanels {
  explicit TiledPanels(int64_t channels)
      : lanes(IsaConv().lanes),
        vectors((channels + lanes - 1) / lanes),
        widest(WidestPanel(vectors)),
        count((vectors + widest - 1) / widest),
        pixels(IsaConv().tile_pixels[widest - 1]) {}
  // The vector that panel i begins with; that of panel `count` is the last one's end.
  int64_t First(int64_t i) const { return vectors * i / count; }

  int64_t lanes, vectors;
  int64_t widest;  // vectors of a panel, at most
  int64_t count;
  int64_t pixels;  // of a tile, at most
};

// [k, channels] in panels, each [k, its vectors], zeros behind the last channel. Those of channel c
// times factors[c] where there are factors. `turned`: they lie as [channels, k]. Their pages are
// given back.
StatusOr<Tensor> PackTiled(const Tensor& weights, int64_t k, int64_t channels, bool turned,
                           std::span<const float> factors, Allocator* allocator);

// What nodes keep of them.
using TiledForms = ConstantForms<std::monostate>;

// The weights of a bound kernel. Thread safe.
class TiledWeights {
 public:
  // Of constant `weights`, as PackTiled takes them.
  static StatusOr<std::unique_ptr<const TiledWeights>> Of(std::shared_ptr<TiledForms> forms,
                                                          const Tensor& weights, int64_t k,
                                                          int64_t channels, bool turned,
                                                          std::span<const float> factors);
  // As PackTiled made them.
  explicit TiledWeights(std::shared_ptr<const float> packed) : packed_(std::move(packed)) {}

  // As PackTiled makes them; nullptr: this run packs what it reads (LaterForm).
  StatusOr<const float*> ForRun() const {
    if (packed_ != nullptr) return packed_.get();
    ASSIGN_OR_RETURN(const Tensor* form, form_->ForRun());
    return form == nullptr ? nullptr : form->data<float>();
  }
  // The same where every run has it; else nullptr.
  const float* made() const {
    if (packed_ != nullptr) return packed_.get();
    const Tensor* form = form_->made();
    return form == nullptr ? nullptr : form->data<float>();
  }
  // Rows [begin, end) of panels [first, last), one panel behind the other.
  void Pack(int64_t first, int64_t last, int64_t begin, int64_t end, float* to) const;

 private:
  TiledWeights(std::unique_ptr<const LaterForm> form, Tensor raw, int64_t k, int64_t channels,
               bool turned, std::vector<float> factors)
      : form_(std::move(form)),
        raw_(std::move(raw)),
        k_(k),
        channels_(channels),
        turned_(turned),
        factors_(std::move(factors)) {}

  const std::shared_ptr<const float> packed_;
  const std::unique_ptr<const LaterForm> form_;
  const Tensor raw_;
  const int64_t k_ = 0, channels_ = 0;
  const bool turned_ = false;
  const std::vector<float> factors_;
};

// Rows of weights that are packed lie so far apart that no processor foresees them: each is asked
// for while the one so many before it is copied.
inline constexpr int64_t kRowsAhead = 16;
inline void PrefetchRow(const float* row, int64_t floats) {
  constexpr int64_t kLine = 64 / sizeof(float);
  for (int64_t i = 0; i < floats; i += kLine) __builtin_prefetch(row + i, 0, 2);
}

// How many runs of `count` panels, at most `most` each, the threads of a run are to take: as many
// for each of them.
int64_t GroupsOfPanels(int64_t count, int64_t most);

// `bias` of the channels in whole vectors, zeros behind the last one; zeros for all where it is
// nullptr.
std::vector<float> PaddedBias(const float* bias, int64_t channels);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_TILED_PANELS_H_
