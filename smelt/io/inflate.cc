#include "smelt/io/inflate.h"

#include <isa-l.h>

#include <algorithm>
#include <memory>

namespace smelt {

StatusOr<std::string> Inflate(absl::string_view bytes, DeflateForm form, size_t limit) {
  std::string out;
  while (!bytes.empty()) {
    auto state = std::make_unique<inflate_state>();
    isal_inflate_init(state.get());
    state->crc_flag = form == DeflateForm::kGzip ? ISAL_GZIP : ISAL_ZLIB;
    // The library counts in 32 bits.
    const auto fed = static_cast<uint32_t>(std::min<size_t>(bytes.size(), 1u << 30));
    state->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
    state->avail_in = fed;
    bytes.remove_prefix(fed);
    while (state->block_state != ISAL_BLOCK_FINISH) {
      if (state->avail_in == 0 && !bytes.empty()) {
        const auto more = static_cast<uint32_t>(std::min<size_t>(bytes.size(), 1u << 30));
        state->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
        state->avail_in = more;
        bytes.remove_prefix(more);
      }
      constexpr uint32_t kRoom = 1 << 16;
      const size_t before = out.size();
      if (before + kRoom > limit) {
        return ResourceExhausted("compressed data grows beyond ", limit, " bytes");
      }
      out.resize(before + kRoom);
      state->next_out = reinterpret_cast<uint8_t*>(out.data() + before);
      state->avail_out = kRoom;
      const int result = isal_inflate(state.get());
      out.resize(before + kRoom - state->avail_out);
      if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT) {
        return DataLoss("compressed data is damaged");
      }
      const bool stuck = state->avail_out == kRoom && state->avail_in == 0 && bytes.empty();
      if (stuck && state->block_state != ISAL_BLOCK_FINISH) {
        return DataLoss("compressed data is cut short");
      }
    }
    // What the stream did not need belongs to the next one.
    bytes = {bytes.data() - state->avail_in, bytes.size() + state->avail_in};
  }
  return out;
}

}  // namespace smelt
