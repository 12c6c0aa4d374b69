// What tests of wire formats share: a folder of their own, and graphs from protobuf's text form,
// which goes through the same import as the binary one.
#ifndef SMELT_TESTS_GRAPH_DEF_OF_TEXT_H_
#define SMELT_TESTS_GRAPH_DEF_OF_TEXT_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "smelt/io/fs.h"
#include "smelt/wire/saved_model/saved_model.h"

namespace smelt {

class TempDir {
 public:
  TempDir() {
    std::string pattern = JoinPath(testing::TempDir(), "wire_test_XXXXXX");
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() {
    auto names = ListDir(path_);
    if (names.ok()) {
      for (const auto& n : *names) unlink(JoinPath(path_, n).c_str());
    }
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline StatusOr<std::unique_ptr<Graph>> FromText(const std::string& text) {
  return ParseGraphDef(text, nullptr);
}

inline void ExpectError(const std::string& text, absl::StatusCode code, absl::string_view message) {
  auto graph = FromText(text);
  ASSERT_FALSE(graph.ok()) << text;
  EXPECT_EQ(graph.status().code(), code) << graph.status();
  EXPECT_TRUE(absl::StrContains(graph.status().message(), message)) << graph.status();
}

inline void ExpectInvalid(const std::string& text, absl::string_view message) {
  ExpectError(text, absl::StatusCode::kInvalidArgument, message);
}

}  // namespace smelt

#endif  // SMELT_TESTS_GRAPH_DEF_OF_TEXT_H_
