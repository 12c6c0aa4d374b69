#include "smelt/wire/records/reader_state.h"

#include "smelt/wire/proto/reader.pb.h"

namespace smelt {
namespace {

tensorflow::ReaderBaseState ReaderProto(const ReaderBaseState& state) {
  tensorflow::ReaderBaseState proto;
  proto.set_work_started(state.work_started);
  proto.set_work_finished(state.work_finished);
  proto.set_num_records_produced(state.num_records_produced);
  proto.set_current_work(state.current_work);
  return proto;
}

}  // namespace

std::string SerializeReaderState(const ReaderBaseState& state) {
  return ReaderProto(state).SerializeAsString();
}

StatusOr<ReaderBaseState> ParseReaderState(absl::string_view bytes) {
  tensorflow::ReaderBaseState proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("Could not parse state of a reader: not a ReaderBaseState");
  }
  return ReaderBaseState{proto.work_started(), proto.work_finished(), proto.num_records_produced(),
                         proto.current_work()};
}

std::string ShowReaderState(const ReaderBaseState& state) {
  return ReaderProto(state).ShortDebugString();
}

}  // namespace smelt
