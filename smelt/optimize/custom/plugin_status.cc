// Statuses and buffers of tf_graph_optimizer.h.
#include <cstdlib>
#include <cstring>

#include "absl/strings/cord.h"
#include "smelt/optimize/custom/plugin_abi.h"

namespace smelt {
namespace {

void FreePluginBytes(void* data, size_t) { std::free(data); }

}  // namespace

void SetTfStatus(TF_Status* to, Status status) {
  to->message = std::string(status.message());
  to->status = std::move(status);
}

Status FillTfBuffer(absl::string_view bytes, TF_Buffer* buffer) {
  if (buffer->data != nullptr) return InvalidArgument("Passing non-empty TF_Buffer is invalid.");
  void* copy = std::malloc(bytes.empty() ? 1 : bytes.size());
  if (copy == nullptr) return ResourceExhausted("no memory for ", bytes.size(), " bytes");
  std::memcpy(copy, bytes.data(), bytes.size());
  *buffer = {copy, bytes.size(), FreePluginBytes};
  return OkStatus();
}

}  // namespace smelt

extern "C" {

TF_Status* TF_NewStatus() { return new TF_Status; }

void TF_DeleteStatus(TF_Status* status) { delete status; }

void TF_SetStatus(TF_Status* status, TF_Code code, const char* message) {
  smelt::SetTfStatus(status, smelt::Status(static_cast<absl::StatusCode>(code),
                                           message == nullptr ? "" : message));
}

TF_Code TF_GetCode(const TF_Status* status) { return status->status.raw_code(); }

const char* TF_Message(const TF_Status* status) { return status->message.c_str(); }

void TF_SetStatusFromIOError(TF_Status* status, int error_code, const char* context) {
  smelt::SetTfStatus(status, smelt::Status(absl::ErrnoToStatusCode(error_code),
                                           absl::StrCat(context, "; ", std::strerror(error_code))));
}

void TF_SetPayload(TF_Status* status, const char* key, const char* value) {
  status->status.SetPayload(key, absl::Cord(value));
}

void TF_ForEachPayload(const TF_Status* status, TF_PayloadVisitor visitor, void* capture) {
  status->status.ForEachPayload([&](absl::string_view key, const absl::Cord& value) {
    visitor(std::string(key).c_str(), std::string(value).c_str(), capture);
  });
}

TF_Buffer* TF_NewBuffer() { return new TF_Buffer{nullptr, 0, nullptr}; }

TF_Buffer* TF_NewBufferFromString(const void* bytes, size_t length) {
  TF_Buffer* buffer = TF_NewBuffer();
  if (smelt::FillTfBuffer({static_cast<const char*>(bytes), length}, buffer).ok()) return buffer;
  delete buffer;
  return nullptr;
}

void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (buffer == nullptr) return;
  if (buffer->data_deallocator != nullptr) {
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  }
  delete buffer;
}

TF_Buffer TF_GetBuffer(TF_Buffer* buffer) { return *buffer; }

}  // extern "C"
