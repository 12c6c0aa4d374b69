// PNG to pixels and back, by libpng, whose errors jump back into the method that called it: nothing
// between there and the library has a destructor.
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "smelt/kernels/image/codec.h"

namespace smelt::image {
namespace {

[[noreturn]] void PngFail(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void PngWarn(png_structp, png_const_charp) {}

void PngTake(png_structp png, png_bytep to, png_size_t n) {
  auto* rest = static_cast<absl::string_view*>(png_get_io_ptr(png));
  if (rest->size() < n) png_error(png, "the file ends early");
  std::memcpy(to, rest->data(), n);
  rest->remove_prefix(n);
}
void PngPut(png_structp png, png_bytep from, png_size_t n) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(from), n);
}
void PngFlush(png_structp) {}

// Methods return false when the library reports an error, after which only the destructor may be
// called.
class PngReader {
 public:
  explicit PngReader(absl::string_view file) : rest_(file) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Reads the header and asks for rows of `channels` (0: those of the file) values of `bits` bits.
  bool Start(int channels, int bits) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, PngFail, PngWarn);
    if (png_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_))) return false;
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return false;
    png_set_read_fn(png_, &rest_, PngTake);
    png_read_info(png_, info_);
    int depth = 0, color = 0;
    png_get_IHDR(png_, info_, &width, &height, &depth, &color, nullptr, nullptr, nullptr);
    const bool transparent = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    const bool palette = color == PNG_COLOR_TYPE_PALETTE;
    this->channels = channels;
    if (channels == 0) {
      this->channels = palette ? (transparent ? 4 : 3) : png_get_channels(png_, info_);
    }
    const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0;
    const bool wants_alpha = this->channels % 2 == 0;
    if (wants_alpha && !has_alpha) {
      if (transparent) {
        png_set_tRNS_to_alpha(png_);
      } else {
        png_set_add_alpha(png_, (1U << depth) - 1, PNG_FILLER_AFTER);
      }
    } else if (!wants_alpha && (has_alpha || transparent)) {
      png_set_strip_alpha(png_);
    }
    if (depth > 8 && bits == 8) png_set_strip_16(png_);
    widen = depth <= 8 && bits == 16;
    png_set_packing(png_);
    passes_ = png_set_interlace_handling(png_);
    if (bits == 16) png_set_swap(png_);
    if (palette) png_set_palette_to_rgb(png_);
    const bool gray = (color & PNG_COLOR_MASK_COLOR) == 0;
    if (gray && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (this->channels < 3 && !gray) {
      png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    } else if (this->channels >= 3 && gray) {
      png_set_gray_to_rgb(png_);
    }
    png_read_update_info(png_, info_);
    return true;
  }

  bool ReadPixels(uint8_t* pixels, size_t stride) {
    if (setjmp(png_jmpbuf(png_))) return false;
    if (png_get_rowbytes(png_, info_) > stride) return false;
    for (int pass = 0; pass < passes_; ++pass) {
      for (png_uint_32 y = 0; y < height; ++y) png_read_row(png_, pixels + y * stride, nullptr);
    }
    png_read_end(png_, info_);
    return true;
  }

  png_uint_32 width = 0, height = 0;
  int channels = 0;
  bool widen = false;  // rows come in bytes though 16 bits are wanted

 private:
  absl::string_view rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
};

class PngWriter {
 public:
  explicit PngWriter(std::string* out) : out_(out) {}
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  bool Write(const uint8_t* pixels, const Extent& e, int bits, int compression) {
    constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                               PNG_COLOR_TYPE_RGB_ALPHA};
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, PngFail, PngWarn);
    if (png_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_))) return false;
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return false;
    png_set_write_fn(png_, out_, PngPut, PngFlush);
    png_set_compression_level(png_, compression < 0 ? Z_DEFAULT_COMPRESSION : compression);
    png_set_compression_mem_level(png_, 9);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(e.width), static_cast<png_uint_32>(e.height),
                 bits, kColors[e.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    if (bits == 16) png_set_swap(png_);
    const int64_t stride = e.width * e.channels * bits / 8;
    for (int64_t y = 0; y < e.height; ++y) png_write_row(png_, pixels + y * stride);
    png_write_end(png_, nullptr);
    return true;
  }

 private:
  std::string* out_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

// Bytes at the start of each row become 16-bit values of twice the byte, from the end so that none
// is overwritten before it is read.
void WidenRows(uint8_t* pixels, int64_t height, int64_t values) {
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* row = pixels + y * values * 2;
    for (int64_t i = values - 1; i >= 0; --i) {
      const uint8_t v = row[i];
      row[2 * i] = v;
      row[2 * i + 1] = v;
    }
  }
}

}  // namespace

Status DecodePng(absl::string_view file, int channels, int bits, Room room) {
  PngReader reader(file);
  if (!reader.Start(channels, bits)) {
    return InvalidArgument("Invalid PNG. Failed to initialize decoder.");
  }
  const int64_t width = reader.width, height = reader.height;
  constexpr int64_t kMaxSide = int64_t{1} << 27;
  if (width <= 0 || height <= 0 || width >= kMaxSide || height >= kMaxSide ||
      width * height >= kMaxPixels) {
    return InvalidArgument("PNG size too large for int: ", width, " by ", height);
  }
  ASSIGN_OR_RETURN(uint8_t* const pixels, room(Extent{1, height, width, reader.channels}));
  const int64_t values = width * reader.channels;
  if (!reader.ReadPixels(pixels, static_cast<size_t>(values * bits / 8))) {
    return InvalidArgument("Invalid PNG data, size ", file.size());
  }
  if (reader.widen) WidenRows(pixels, height, values);
  return OkStatus();
}

StatusOr<std::string> EncodePng(const void* pixels, const Extent& extent, int bits,
                                int compression) {
  std::string out;
  if (extent.width == 0 || extent.height == 0 ||
      !PngWriter(&out).Write(static_cast<const uint8_t*>(pixels), extent, bits, compression)) {
    return Internal("PNG encoding failed");
  }
  return out;
}

}  // namespace smelt::image
