// oneDNN's C API in smelt's terms: its errors, its engine and how it describes a Layout. For the
// files that call the library; the others use primitive.h.
#ifndef SMELT_KERNELS_ONEDNN_LIBRARY_H_
#define SMELT_KERNELS_ONEDNN_LIBRARY_H_

#include <dnnl.h>

#include "smelt/kernels/onednn/primitive.h"

namespace smelt::onednn {

// RESOURCE_EXHAUSTED for want of memory, UNIMPLEMENTED for any other failure: callers then compute
// without the library. `what` names the call in the message.
Status FromDnnl(dnnl_status_t s, absl::string_view what);

#define DNNL_RETURN_IF_ERROR(expr, what)                                                \
  do {                                                                                  \
    if (const dnnl_status_t s_ = (expr); s_ != dnnl_success) return FromDnnl(s_, what); \
  } while (false)

// Never destroyed: primitives in static storage may outlive every other object.
dnnl_engine_t Engine();

// One per thread: executing on a stream is not promised to be thread safe.
dnnl_stream_t ThreadStream();

// UNIMPLEMENTED for layouts that the library does not take.
StatusOr<dnnl_memory_desc_t> DescOf(const Layout& l);
// Of l's type and sizes; where elements lie is the library's choice.
StatusOr<dnnl_memory_desc_t> AnyDescOf(const Layout& l);

// Everything that a description says, in words that another process says of an equal one. Empty
// for those that are no blocks of numbers alone.
std::string TextOf(const dnnl_memory_desc_t& md);

}  // namespace smelt::onednn

#endif  // SMELT_KERNELS_ONEDNN_LIBRARY_H_
