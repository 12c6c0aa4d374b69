// BMP to pixels: uncompressed images of 8 (gray), 24 or 32 bits a pixel.
#include <cstdlib>
#include <limits>

#include "smelt/base/little_endian.h"
#include "smelt/kernels/image/codec.h"

namespace smelt::image {
namespace {

constexpr size_t kBmpHeader = 32;  // all of the header that is looked at

// Blue, green, red (and alpha) in the file; a single value is gray.
void CopyBmpPixel(const uint8_t* from, int64_t in_channels, uint8_t* to, int64_t out_channels) {
  const bool gray = in_channels == 1;
  if (out_channels == 1) {
    to[0] = from[0];
    return;
  }
  for (int c = 0; c < 3; ++c) to[c] = gray ? from[0] : from[2 - c];
  if (out_channels == 4) to[3] = in_channels == 4 ? from[3] : 255;
}

}  // namespace

Status DecodeBmp(absl::string_view file, int channels, Room room) {
  if (file.size() < kBmpHeader) {
    return InvalidArgument(
        "Incomplete bmp content, requires at least 32 bytes to find the header size, width, "
        "height, and bpp, got ",
        file.size(), " bytes");
  }
  const int64_t header = LoadLittle<int32_t>(file.data() + 10);
  const int64_t width = LoadLittle<int32_t>(file.data() + 18);
  const int64_t height = LoadLittle<int32_t>(file.data() + 22);
  const int64_t in_channels = LoadLittle<int16_t>(file.data() + 28) / 8;
  if (in_channels != 1 && in_channels != 3 && in_channels != 4) {
    return InvalidArgument("Number of channels inherent in the image must be 1, 3 or 4, was ",
                           in_channels);
  }
  if (width <= 0) return InvalidArgument("Width must be positive");
  if (height == 0) return InvalidArgument("Height must be nonzero");
  if (header < 0) return InvalidArgument("header size must be nonnegative");
  const int64_t rows = std::abs(height);
  if (width * rows >= std::numeric_limits<int32_t>::max() / 8) {
    return InvalidArgument("Total possible pixel bytes must be less than 2^30");
  }
  // Rows are padded to four bytes, and stand bottom up unless the height is negative.
  const int64_t stride = (in_channels * width + 3) / 4 * 4;
  const int64_t excess = static_cast<int64_t>(file.size()) - header - stride * rows;
  if (excess != 0) {
    return InvalidArgument(
        "Input size should match (header_size + row_size * abs_height) but they differ by ",
        excess);
  }
  const int64_t out_channels = channels != 0 ? channels : in_channels;
  ASSIGN_OR_RETURN(uint8_t * to, room(Extent{1, rows, width, out_channels}));
  for (int64_t y = 0; y < rows; ++y) {
    const auto* from = reinterpret_cast<const uint8_t*>(file.data()) + header +
                       (height < 0 ? y : rows - 1 - y) * stride;
    for (int64_t x = 0; x < width; ++x, from += in_channels, to += out_channels) {
      CopyBmpPixel(from, in_channels, to, out_channels);
    }
  }
  return OkStatus();
}

}  // namespace smelt::image
