// Pixels to JPEG, by libjpeg-turbo. Errors jump back as in jpeg_decode.cc.
#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>

// After <cstdio>, which it needs.
#include <jerror.h>
#include <jpeglib.h>

#include "smelt/kernels/image/codec.h"

namespace smelt::image {
namespace {

struct JpegWriterErrors {
  jpeg_error_mgr base;  // first: libjpeg hands this back
  std::jmp_buf landing;
};

struct JpegSink {
  jpeg_destination_mgr base;  // first
  std::string* out;
  JOCTET buffer[1 << 14];
};

[[noreturn]] void JpegWriterFail(j_common_ptr info) {
  std::longjmp(reinterpret_cast<JpegWriterErrors*>(info->err)->landing, 1);
}
void JpegWriterSilence(j_common_ptr) {}

void JpegSinkBegin(j_compress_ptr info) {
  auto* sink = reinterpret_cast<JpegSink*>(info->dest);
  sink->base.next_output_byte = sink->buffer;
  sink->base.free_in_buffer = sizeof(sink->buffer);
}
boolean JpegSinkFull(j_compress_ptr info) {
  auto* sink = reinterpret_cast<JpegSink*>(info->dest);
  sink->out->append(reinterpret_cast<const char*>(sink->buffer), sizeof(sink->buffer));
  JpegSinkBegin(info);
  return TRUE;
}
void JpegSinkEnd(j_compress_ptr info) {
  auto* sink = reinterpret_cast<JpegSink*>(info->dest);
  sink->out->append(reinterpret_cast<const char*>(sink->buffer),
                    sizeof(sink->buffer) - sink->base.free_in_buffer);
}

class JpegWriter {
 public:
  explicit JpegWriter(std::string* out) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = JpegWriterFail;
    errors_.base.output_message = JpegWriterSilence;
    sink_.base.init_destination = JpegSinkBegin;
    sink_.base.empty_output_buffer = JpegSinkFull;
    sink_.base.term_destination = JpegSinkEnd;
    sink_.out = out;
  }
  ~JpegWriter() {
    if (created_) jpeg_destroy_compress(&info_);
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;

  // `xmp` is the whole application segment; none when empty. False when the library reports an
  // error.
  bool Write(const uint8_t* pixels, const Extent& e, const JpegSettings& s,
             const std::string& xmp) {
    if (setjmp(errors_.landing)) return false;
    jpeg_create_compress(&info_);
    created_ = true;
    info_.dest = &sink_.base;
    info_.image_width = static_cast<JDIMENSION>(e.width);
    info_.image_height = static_cast<JDIMENSION>(e.height);
    info_.input_components = static_cast<int>(e.channels);
    info_.in_color_space = e.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    info_.optimize_coding = s.optimize_size ? TRUE : FALSE;
    info_.density_unit = static_cast<UINT8>(s.density_unit);
    info_.X_density = static_cast<UINT16>(s.x_density);
    info_.Y_density = static_cast<UINT16>(s.y_density);
    jpeg_set_quality(&info_, s.quality, TRUE);
    if (s.progressive) jpeg_simple_progression(&info_);
    for (int i = 0; i < info_.num_components && !s.chroma_downsampling; ++i) {
      info_.comp_info[i].h_samp_factor = 1;
      info_.comp_info[i].v_samp_factor = 1;
    }
    jpeg_start_compress(&info_, TRUE);
    if (!xmp.empty()) {
      jpeg_write_marker(&info_, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(xmp.data()),
                        static_cast<unsigned>(xmp.size()));
    }
    while (info_.next_scanline < info_.image_height) {
      auto* row = const_cast<JSAMPLE*>(pixels + info_.next_scanline * e.width * e.channels);
      jpeg_write_scanlines(&info_, &row, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }

 private:
  jpeg_compress_struct info_{};
  JpegWriterErrors errors_{};
  JpegSink sink_;
  bool created_ = false;
};

}  // namespace

StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, const Extent& extent,
                                 const JpegSettings& settings) {
  const int64_t size = extent.height * extent.width;
  std::string out, xmp;
  if (!settings.xmp_metadata.empty()) {
    xmp = absl::StrCat("http://ns.adobe.com/xap/1.0/", absl::string_view("\0", 1),
                       settings.xmp_metadata);
  }
  if (size <= 0 || size >= kMaxPixels || !JpegWriter(&out).Write(pixels, extent, settings, xmp)) {
    return Internal("JPEG encoding failed");
  }
  return out;
}

}  // namespace smelt::image
