// Import and export of TensorProto: every field that holds values, and values that are wrong.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "graph_def_of_text.h"

namespace smelt {
namespace {

// The stated value of a Const node whose tensor is `fields`.
std::shared_ptr<const TensorValue> Value(absl::string_view dtype, absl::string_view fields) {
  auto graph = FromText(absl::StrCat(
      "node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: ", dtype,
      " } } attr { key: 'value' value { tensor { dtype: ", dtype, " ", fields, " } } } }"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return nullptr;
  auto before = *(*graph)->Find("c")->attrs().Find("value");
  // Whatever it is, it must survive a turn through the wire exactly.
  auto bytes = SerializeGraphDef(**graph, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  auto again = ParseGraphDef(*bytes, nullptr);
  EXPECT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(before == *(*again)->Find("c")->attrs().Find("value")) << fields;
  return *before.get<std::shared_ptr<const TensorValue>>();
}

constexpr absl::string_view kShape2 = "tensor_shape { dim { size: 2 } } ";

TEST(TensorProto, TypedLists) {
  auto v = Value("DT_FLOAT", absl::StrCat(kShape2, "float_val: [1.5, 2]"));
  EXPECT_EQ(v->values.data<float>()[1], 2.0f);
  v = Value("DT_INT8", absl::StrCat(kShape2, "int_val: [-3, 127]"));
  EXPECT_EQ(v->values.data<int8_t>()[0], -3);
  v = Value("DT_UINT16", absl::StrCat(kShape2, "int_val: [65535, 1]"));
  EXPECT_EQ(v->values.data<uint16_t>()[0], 65535);
  v = Value("DT_BFLOAT16", absl::StrCat(kShape2, "half_val: [16256, 0]"));
  EXPECT_EQ(static_cast<float>(v->values.data<Bfloat16>()[0]), 1.0f);
  v = Value("DT_COMPLEX64", absl::StrCat(kShape2, "scomplex_val: [1, 2, 3, 4]"));
  EXPECT_EQ(v->values.data<std::complex<float>>()[1], std::complex<float>(3, 4));
  v = Value("DT_STRING", absl::StrCat(kShape2, "string_val: ['a', 'b\\000c']"));
  EXPECT_EQ(v->values.data<std::string>()[1], std::string("b\0c", 3));
  v = Value("DT_UINT64", absl::StrCat(kShape2, "uint64_val: [18446744073709551615, 0]"));
  EXPECT_EQ(v->values.data<uint64_t>()[0], ~uint64_t{0});
  v = Value("DT_FLOAT8_E5M2", absl::StrCat(kShape2, "float8_val: '\\x41\\x42'"));
  EXPECT_EQ(v->values.num_elements(), 2);
}

TEST(TensorProto, SplatsStaySmall) {
  for (const char* list :
       {"DT_FLOAT float_val: 2", "DT_DOUBLE double_val: 2", "DT_INT32 int_val: 2",
        "DT_INT8 int_val: -2", "DT_QUINT8 int_val: 200", "DT_HALF half_val: 2",
        "DT_STRING string_val: 'x'", "DT_INT64 int64_val: 2", "DT_BOOL bool_val: true",
        "DT_UINT32 uint32_val: 2", "DT_COMPLEX128 dcomplex_val: [1, 2]",
        "DT_FLOAT8_E4M3FN float8_val: 'a'"}) {
    const std::string text = list;
    const size_t space = text.find(' ');
    const auto v =
        Value(text.substr(0, space),
              "tensor_shape { dim { size: 1000 } dim { size: 1000 } } " + text.substr(space + 1));
    ASSERT_NE(v, nullptr);
    EXPECT_EQ(v->values.num_elements(), 1) << list;
    EXPECT_EQ(v->num_elements(), 1000000) << list;
    EXPECT_EQ(v->problem, "") << list;
    EXPECT_EQ(v->wire, "") << list;
  }
  const auto none = Value("DT_FLOAT", "tensor_shape { dim { size: 100 } }");
  EXPECT_FALSE(none->values.valid());
  EXPECT_EQ(none->problem, "");
  const auto empty = Value("DT_STRING", "tensor_shape { dim { size: 0 } }");
  EXPECT_EQ(empty->Materialize()->num_elements(), 0);
}

// upstream evaluation_utils_test DeviceSimple_MakeTensorFromProto
TEST(TensorProto, Content) {
  auto v = Value("DT_INT16", absl::StrCat(kShape2, "tensor_content: '\\x01\\x00\\xff\\xff'"));
  EXPECT_EQ(v->values.data<int16_t>()[1], -1);
  v = Value("DT_STRING", absl::StrCat(kShape2, "tensor_content: '\\x01\\x02abc'"));
  EXPECT_EQ(v->values.data<std::string>()[1], "bc");
  v = Value("DT_BOOL", absl::StrCat(kShape2, "tensor_content: '\\x00\\x07'"));
  EXPECT_TRUE(v->values.data<bool>()[1]);
  EXPECT_EQ(static_cast<const uint8_t*>(v->values.raw())[1], 1);
  // Large contents are moved, not copied; the values are the same.
  v = Value("DT_UINT8", absl::StrCat("tensor_shape { dim { size: 5000 } } tensor_content: '",
                                     std::string(4999, 'a'), "b'"));
  EXPECT_EQ(v->values.data<uint8_t>()[4999], 'b');
}

TEST(TensorProto, ProblemsDoNotRefuseTheGraph) {
  for (const char* fields : {
           "tensor_shape { dim { size: -5 } } float_val: 1",
           "tensor_shape { unknown_rank: true } float_val: 1",
           "tensor_shape { dim { size: 4611686018427387904 } dim { size: 4 } } float_val: 1",
           "tensor_shape { dim { size: 2 } } tensor_content: 'abc'",
       }) {
    const auto v = Value("DT_FLOAT", fields);
    EXPECT_NE(v->problem, "") << fields;
    EXPECT_EQ(v->Materialize().status().code(), absl::StatusCode::kInvalidArgument);
  }
  for (const char* content : {"'\\x01'", "'\\x01\\x05abc'", "'\\xff\\xff\\xff\\xff\\xff\\xff'",
                              "'\\x01\\x01abc'", "'\\xff\\xff\\xff\\xff\\x0f\\x01a'"}) {
    const auto v = Value("DT_STRING", absl::StrCat(kShape2, "tensor_content: ", content));
    EXPECT_NE(v->problem, "") << content;
  }
  const auto handle = Value("DT_RESOURCE", "tensor_shape {} resource_handle_val { name: 'x' }");
  EXPECT_NE(handle->problem, "");
  EXPECT_NE(handle->wire, "");
  const auto variant =
      Value("DT_VARIANT", "tensor_shape {} variant_val { type_name: 't' metadata: 'm' }");
  EXPECT_NE(variant->wire, "");
  // More values than elements: the first ones count, and none is lost on disk.
  const auto more = Value("DT_FLOAT", absl::StrCat(kShape2, "float_val: [1, 2, 3]"));
  EXPECT_EQ(more->Materialize()->data<float>()[1], 2.0f);
  EXPECT_NE(more->wire, "");
  // A shape of 2^62 elements without values costs nothing to import.
  const auto large = Value("DT_FLOAT", "tensor_shape { dim { size: 4611686018427387904 } }");
  EXPECT_EQ(large->Materialize().status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace smelt
