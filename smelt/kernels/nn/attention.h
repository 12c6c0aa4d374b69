// Attention in one pass over its queries.
#ifndef SMELT_KERNELS_NN_ATTENTION_H_
#define SMELT_KERNELS_NN_ATTENTION_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "smelt/kernels/bound_kernel.h"

namespace smelt::nn {

// softmax(q k^T * scale + masks) v, or after(softmax(before(q k^T * scale))) v, where a choice of
// bytes replaces numbers before and after, for matrices that lie anywhere in their tensors. Places
// and steps are counted in elements. All sizes are positive.
struct Attention {
  // One matrix of each: where its first element lies.
  struct Unit {
    int64_t q = 0, k = 0, v = 0, out = 0;
    std::array<int64_t, 2> masks = {0, 0};
  };
  // From a row to the next, and from a number to the next, 0 or 1.
  struct Mask {
    int64_t row = 0, column = 0;
  };
  std::vector<Unit> units;
  int64_t queries = 0, keys = 0, depth = 0;  // of a query and a key
  int64_t width = 0;                         // of a value
  float scale = 1;
  // From a row to the next; rows of q, v and out are without gaps.
  int64_t q_row = 0, v_row = 0, out_row = 0;
  int64_t k_row = 0, k_column = 0;  // one of them is 1
  std::vector<Mask> masks;          // at most two, added one after the other
  // The only mask is a choice: bytes that keep scores where they are, or are not, zero. Others
  // become `hidden`, and their probabilities, where `hides_behind`, `hidden_behind`.
  bool chooses = false, keeps = true, hides_behind = false;
  float hidden = 0, hidden_behind = 0;
  // All tensors are bfloat16: products are rounded, what is in between is float.
  bool narrow = false;
};

// Can a narrow attention be bound, on this processor, and is that faster than its parts?
bool SuitsNarrowAttention(const Attention& attention);

// Inputs: q, k, v and the masks or the choice. Threads take blocks of queries, whose scores stay in
// the nearest caches. REQUIRES: SuitsNarrowAttention where it is narrow.
std::unique_ptr<BoundKernel> BindAttention(Attention attention);
std::unique_ptr<BoundKernel> BindNarrowAttention(Attention attention);

}  // namespace smelt::nn

#endif  // SMELT_KERNELS_NN_ATTENTION_H_
