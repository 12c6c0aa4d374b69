// Bytes that are no StableHLO module, and nodes that TensorFlow's op refuses. Programs that run are
// in tests/models/stablehlo.
#include "gtest/gtest.h"
#include "smelt/stablehlo/bytecode.h"
#include "smelt/stablehlo/call_module.h"

namespace smelt {
namespace {

const std::string kHead = std::string("ML\xEFR\x0Dwriter\0", 12);  // version 6

absl::StatusCode CodeOf(const std::string& bytes) {
  return stablehlo::ReadModule(bytes).status().code();
}

TEST(StableHloBytecode, WrongBytesAreRefused) {
  EXPECT_EQ(CodeOf(""), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("module {}"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("ML\xEFR"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(kHead), absl::StatusCode::kInvalidArgument);
  // A section beyond the end, and one that stands there twice.
  EXPECT_EQ(CodeOf(kHead + std::string("\x00\xFF", 2)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(kHead + std::string("\x00\x01\x00\x01", 4)), absl::StatusCode::kInvalidArgument);
  // An alignment that is no power of two.
  EXPECT_EQ(CodeOf(kHead + std::string("\x80\x03\x07\x01", 4)), absl::StatusCode::kInvalidArgument);
}

TEST(StableHloBytecode, ANewerContainerIsUnimplemented) {
  EXPECT_EQ(CodeOf(std::string("ML\xEFR\x0Fwriter\0", 12)), absl::StatusCode::kUnimplemented);
}

Status CallOf(int64_t version, const std::string& module,
              const std::vector<std::string>& platforms = {}) {
  Graph graph(std::make_shared<FunctionLibrary>());
  Node* call = *graph.AddNode("call", "XlaCallModule");
  call->AttrsToChange().Set("version", version);
  call->AttrsToChange().Set("module", module);
  call->AttrsToChange().Set("platforms", platforms);
  RETURN_IF_ERROR(stablehlo::PrepareCallModules(graph));
  return stablehlo::PreparedCall(*call).status();
}

TEST(XlaCallModule, RefusalsAreTensorFlows) {
  Status s = CallOf(1, "x");
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(s.message().find("XlaCallModuleOp with version 1 is not supported anymore. Must be >= "
                             "2"),
            absl::string_view::npos)
      << s;
  s = CallOf(10, "");
  EXPECT_NE(s.message().find("Cannot deserialize computation"), absl::string_view::npos) << s;
  s = CallOf(9, "x", {"TPU", "CUDA"});
  EXPECT_EQ(s.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(s.message().find("The current platform CPU is not among the platforms required by the "
                             "module: [TPU, CUDA] [[{{node call}}]]"),
            absl::string_view::npos)
      << s;
  // Version 3 of the op has no portable artifacts.
  EXPECT_EQ(CallOf(3, "module {}").code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace smelt
