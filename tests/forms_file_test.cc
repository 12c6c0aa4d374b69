// Forms kept in a cache folder: what is found again, what is not believed, what makes room.
#include "smelt/io/forms_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "smelt/base/little_endian.h"
#include "smelt/io/crc32c.h"

namespace smelt {
namespace {

class FormsFileTest : public testing::Test {
 protected:
  FormsFileTest() {
    std::string pattern = JoinPath(testing::TempDir(), "forms_test_XXXXXX");
    dir_ = mkdtemp(pattern.data());
  }
  ~FormsFileTest() override { std::filesystem::remove_all(dir_); }

  static KeptBytes Bytes(std::string text) {
    auto owner = std::make_shared<const std::string>(std::move(text));
    return {owner->data(), owner->size(), owner};
  }
  static std::string Text(const std::optional<KeptBytes>& kept) {
    return kept ? std::string(static_cast<const char*>(kept->data), kept->size) : "none";
  }
  void Write(absl::string_view key, absl::string_view what, const std::string& text) const {
    const auto forms = FormsFile::Open(dir_, key);
    forms->Add(what, Bytes(text));
    EXPECT_TRUE(forms->Save().ok());
  }
  std::string Found(absl::string_view key, absl::string_view what, size_t size) const {
    return Text(FormsFile::Open(dir_, key)->Find(what, size));
  }

  std::string dir_;
};

TEST_F(FormsFileTest, FindsWhatWasKept) {
  const std::string large((3 << 20) + 17, 'x');
  Write("model", "a", "abc");
  Write("model", "b", large);  // beside what is there
  Write("model", "none", "");
  EXPECT_EQ(Found("model", "a", 3), "abc");
  EXPECT_EQ(Found("model", "b", large.size()), large);
  EXPECT_EQ(Found("model", "a", 4), "none");
  EXPECT_EQ(Found("model", "c", 3), "none");
  EXPECT_EQ(Found("another", "a", 3), "none");
  const auto forms = FormsFile::Open(dir_, "model");
  const auto b = forms->Find("b", large.size());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data) % 4096, 0U);
  EXPECT_TRUE(forms->TakeWarnings().empty());
}

// Each byte of a small file: nothing that is found differs from what was kept.
TEST_F(FormsFileTest, BelievesNoByte) {
  Write("model", "a", "abc");
  const std::string path = FormsFile::Open(dir_, "model")->path();
  const auto good = ReadFile(path);
  ASSERT_TRUE(good.ok());
  for (size_t i = 0; i < good->size(); ++i) {
    std::string bad = *good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
    ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
    const auto forms = FormsFile::Open(dir_, "model");
    const std::string text = Text(forms->Find("a", 3));
    EXPECT_TRUE(text == "abc" || (text == "none" && !forms->TakeWarnings().empty())) << i << text;
    ASSERT_TRUE(WriteFileAtomically(path, good->substr(0, i)).ok());
    EXPECT_EQ(Found("model", "a", 3), "none") << i;
  }
}

// What is looked for while a thread checks, and behind it, is what was kept; what is damaged is
// told once.
TEST_F(FormsFileTest, CheckedAhead) {
  const auto form = [](int i) { return std::string(static_cast<size_t>(i) * 50'000, 'a' + i % 7); };
  const auto key = [](int i) { return absl::StrCat("form ", i); };
  const auto forms = FormsFile::Open(dir_, "model");
  for (int i = 0; i < 30; ++i) forms->Add(key(i), Bytes(form(i)));
  EXPECT_TRUE(forms->Save().ok());
  auto bytes = *ReadFile(forms->path());
  bytes[bytes.find(form(29))] = 'x';
  ASSERT_TRUE(WriteFileAtomically(forms->path(), bytes).ok());
  for (const bool stopped : {true, false}) {
    const auto again = FormsFile::Open(dir_, "model");
    std::stop_source stop;
    if (stopped) stop.request_stop();
    std::vector<std::thread> threads;
    threads.emplace_back([&] { again->CheckAhead(stop.get_token()); });
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 29; ++i) EXPECT_EQ(Text(again->Find(key(i), form(i).size())), form(i));
        EXPECT_EQ(Text(again->Find(key(29), form(29).size())), "none");
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(again->TakeWarnings().size(), 1U);
  }
}

// Who can write the file can write checksums: places beyond its end are still none.
TEST_F(FormsFileTest, HostileTables) {
  Write("model", "a", "abc");
  const std::string path = FormsFile::Open(dir_, "model")->path();
  const auto good = ReadFile(path);
  ASSERT_TRUE(good.ok());
  const auto table = static_cast<size_t>(LoadLittle<uint64_t>(good->data() + 16));
  const auto set = [](std::string* bytes, size_t at, auto value) {
    std::string little;
    AppendLittle(value, &little);
    bytes->replace(at, little.size(), little);
  };
  for (const uint64_t offset : {uint64_t{1} << 63, ~uint64_t{0} - 63, uint64_t{1} << 40}) {
    for (const uint64_t size : {uint64_t{3}, ~uint64_t{0}, uint64_t{1} << 40}) {
      std::string bad = *good;
      set(&bad, table + 32, offset);
      set(&bad, table + 40, size);
      set(&bad, 96, MaskCrc32c(Crc32c(absl::string_view(bad).substr(table))));
      set(&bad, 100, MaskCrc32c(Crc32c(absl::string_view(bad).substr(0, 100))));
      ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
      const auto forms = FormsFile::Open(dir_, "model");
      EXPECT_EQ(Text(forms->Find("a", static_cast<size_t>(size))), "none");
      EXPECT_EQ(forms->TakeWarnings().size(), 1U);
    }
  }
}

TEST_F(FormsFileTest, OldestGoWhereOthersNeedRoom) {
  const std::string text(10'000, 'x');
  std::vector<std::string> paths;
  const FormsFileOptions limit{.folder_limit = 35'000};
  ASSERT_TRUE(MakeFile(JoinPath(dir_, "mine.forms"), text).ok());  // nobody's but the user's
  for (int i = 0; i < 4; ++i) {
    const auto forms = FormsFile::Open(dir_, absl::StrCat("model ", i), limit);
    forms->Add("a", Bytes(text));
    ASSERT_TRUE(forms->Save().ok());
    paths.push_back(forms->path());
    const timespec times[2] = {{1'000 + i, 0}, {1'000 + i, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, paths.back().c_str(), times, 0), 0);
  }
  EXPECT_FALSE(Exists(paths[0]));
  EXPECT_FALSE(Exists(paths[1]));
  EXPECT_TRUE(Exists(paths[2]));
  EXPECT_TRUE(Exists(paths[3]));
  EXPECT_TRUE(Exists(JoinPath(dir_, "mine.forms")));
  const auto forms = FormsFile::Open(dir_, "too large", limit);
  forms->Add("a", Bytes(std::string(40'000, 'x')));
  EXPECT_TRUE(absl::IsResourceExhausted(forms->Save()));
  EXPECT_TRUE(Exists(paths[3]));
}

// What is mapped stays what it was while others replace the file.
TEST_F(FormsFileTest, WritersAndReaders) {
  const std::string text(100'000, 'x');
  Write("model", "a", text);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto forms = FormsFile::Open(dir_, "model");
        const auto found = forms->Find("a", text.size());
        forms->Add(absl::StrCat("of ", t, " ", i), Bytes(std::string(5'000, 'y')));
        EXPECT_TRUE(forms->Save().ok());
        EXPECT_EQ(Text(found), text);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(Found("model", "a", text.size()), text);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
}

TEST_F(FormsFileTest, ProgramsDiffer) { EXPECT_NE(ProgramId(), ""); }

}  // namespace
}  // namespace smelt
