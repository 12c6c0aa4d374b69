// Writes JSON: objects and arrays are calls that nest as their braces do.
//
//   JsonWriter w;
//   w.Object([&] {
//     w.Field("name", "x");
//     w.Array("sizes", sizes, [&](int64_t n) { w.Int(n); });
//   });
//
// Strings become UTF-8 as Utf8Text has it. A number that JSON lacks (an infinity, NaN) is written
// as null. Not thread safe.
#ifndef SMELT_IO_JSON_WRITER_H_
#define SMELT_IO_JSON_WRITER_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "rapidjson/prettywriter.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"
#include "smelt/io/utf8.h"

namespace smelt {

// Format: rapidjson's PrettyWriter or Writer; the names below are what others use.
template <typename Format>
class JsonWriterOf {
 public:
  template <typename F>
  void Object(F fill) {
    w_.StartObject();
    fill();
    w_.EndObject();
  }
  template <typename List, typename F>
  void Array(const List& list, F element) {
    w_.StartArray();
    for (const auto& e : list) element(e);
    w_.EndArray();
  }
  void Text(absl::string_view s) {
    const std::string text = Utf8Text(s);
    w_.String(text.data(), Size(text));
  }
  void Int(int64_t n) { w_.Int64(n); }
  void Bool(bool b) { w_.Bool(b); }
  void Real(double v) { std::isfinite(v) ? w_.Double(v) : w_.Null(); }
  void Null() { w_.Null(); }

  // Within an object: what follows is the value of `key`.
  void Key(absl::string_view key) {
    const std::string text = Utf8Text(key);
    w_.Key(text.data(), Size(text));
  }
  template <typename F>
  void Object(absl::string_view key, F fill) {
    Key(key);
    Object(fill);
  }
  template <typename List, typename F>
  void Array(absl::string_view key, const List& list, F element) {
    Key(key);
    Array(list, element);
  }
  // An array of objects: fill(e) writes the fields of each.
  template <typename List, typename F>
  void Objects(absl::string_view key, const List& list, F fill) {
    Array(key, list, [&](const auto& e) { Object([&] { fill(e); }); });
  }
  void Field(absl::string_view key, absl::string_view text) {
    Key(key);
    Text(text);
  }
  void Field(absl::string_view key, int64_t n) {
    Key(key);
    Int(n);
  }
  void Flag(absl::string_view key, bool b) {
    Key(key);
    Bool(b);
  }
  void RealField(absl::string_view key, double v) {
    Key(key);
    Real(v);
  }
  template <typename List>
  void Texts(absl::string_view key, const List& texts) {
    Array(key, texts, [&](const auto& t) { Text(t); });
  }
  template <typename List>
  void Ints(absl::string_view key, const List& values) {
    Array(key, values, [&](int64_t n) { Int(n); });
  }

  // What has been written so far.
  absl::string_view text() const { return {buffer_.GetString(), buffer_.GetSize()}; }

 private:
  static rapidjson::SizeType Size(absl::string_view s) {
    return static_cast<rapidjson::SizeType>(s.size());
  }

  rapidjson::StringBuffer buffer_;
  Format w_{buffer_};
};

// Indented, for files that people read.
using JsonWriter = JsonWriterOf<rapidjson::PrettyWriter<rapidjson::StringBuffer>>;
// On one line.
using JsonLineWriter = JsonWriterOf<rapidjson::Writer<rapidjson::StringBuffer>>;

}  // namespace smelt

#endif  // SMELT_IO_JSON_WRITER_H_
