// What has brought other readers of .tflite files down, restated: divisors of zero in the options
// and the shapes of operators, sizes whose product is beyond all integers, axes and indices that
// there are not, operands that are empty or left out. Each is an error or an answer here.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/tflite_text.h"

namespace smelt {
namespace {

constexpr char kInt8[] = "quantization: {scale: [0.5], zero_point: [0]}, ";

void ExpectError(const Status& status, absl::string_view words, absl::string_view what) {
  EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsOutOfRange(status) ||
              absl::IsUnimplemented(status) || absl::IsNotFound(status) ||
              absl::IsResourceExhausted(status))
      << what << "\n"
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), words)) << what << "\n" << status;
}

// An operator of inputs of the shapes, and constants behind them, and one output.
struct Case {
  absl::string_view code;
  std::vector<absl::string_view> inputs;   // shapes
  std::vector<std::vector<int32_t>> ints;  // constants of int32, vectors
  absl::string_view options;
  absl::string_view words;
  absl::string_view type = "FLOAT32";
  absl::string_view output = "[1,1,1,1]";
};

Status RunCase(const Case& c, int outputs = 1) {
  TfliteText text;
  const absl::string_view more = c.type == "INT8" ? kInt8 : "";
  std::vector<int> in, out;
  for (const absl::string_view shape : c.inputs) in.push_back(text.Input(shape, c.type, more));
  for (const std::vector<int32_t>& values : c.ints) in.push_back(text.Ints(values));
  for (int i = 0; i < outputs; ++i) out.push_back(text.Tensor(c.output, c.type, more));
  text.Op(c.code, in, out, c.options);
  return RunTflite(text.Bytes(out)).status();
}

void ExpectErrors(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    ExpectError(RunCase(c), c.words, absl::StrCat(c.code, " ", c.options, " ", c.type));
  }
}

TEST(TfliteKnown, OptionsDivideByNothing) {
  for (const absl::string_view type : {"FLOAT32", "INT8"}) {
    const absl::string_view in = "[1,4,4,1]", filter = "[1,2,2,1]";
    ExpectErrors({
        {"CONV_2D", {in, filter}, {}, "Conv2DOptions: {}", "stride_h is 0", type},
        {"CONV_2D",
         {in, filter},
         {},
         "Conv2DOptions: {stride_h: 1, stride_w: -1}",
         "stride_w is -1",
         type},
        {"CONV_2D",
         {in, filter},
         {},
         "Conv2DOptions: {stride_h: 1, stride_w: 1, dilation_h_factor: 0}",
         "dilation_h_factor is 0",
         type},
        {"DEPTHWISE_CONV_2D",
         {in, filter},
         {},
         "DepthwiseConv2DOptions: {depth_multiplier: 1}",
         "stride_h is 0",
         type},
        {"DEPTHWISE_CONV_2D",
         {in, filter},
         {},
         "DepthwiseConv2DOptions: {stride_h: 1, stride_w: 1, depth_multiplier: 0}",
         "",
         type},
        {"AVERAGE_POOL_2D",
         {in},
         {},
         "Pool2DOptions: {filter_height: 1, filter_width: 1}",
         "stride_h is 0",
         type},
        {"AVERAGE_POOL_2D",
         {in},
         {},
         "Pool2DOptions: {stride_h: 1, stride_w: 1}",
         "filter_height is 0",
         type},
        {"MAX_POOL_2D",
         {in},
         {},
         "Pool2DOptions: {stride_h: 1, stride_w: 1, filter_height: -3}",
         "filter_height is -3",
         type},
        {"SPACE_TO_DEPTH", {in}, {}, "SpaceToDepthOptions: {}", "block_size is 0", type},
        {"DEPTH_TO_SPACE",
         {in},
         {},
         "DepthToSpaceOptions: {block_size: -2}",
         "block_size is -2",
         type},
        {"UNPACK", {in}, {}, "UnpackOptions: {num: 0}", "num is 0, and it has 1 outputs", type},
        {"UNPACK", {in}, {}, "UnpackOptions: {num: 2147483647}", "num is 2147483647", type},
        {"PACK",
         {in, in},
         {},
         "PackOptions: {values_count: 2147483647}",
         "and it has 2 inputs",
         type},
    });
  }
  ExpectErrors({{"L2_POOL_2D", {"[1,4,4,1]"}, {}, "Pool2DOptions: {}", "is 0"},
                {"CONV_3D", {"[1,4,4,4,1]", "[1,1,1,1,1]"}, {}, "Conv3DOptions: {}", "is 0"}});
  TfliteText text;
  const int axis = text.Int(0), x = text.Input("[4]"), y = text.Tensor("[4]");
  text.Op("SPLIT", {axis, x}, {y}, "SplitOptions: {num_splits: 0}");
  ExpectError(RunTflite(text.Bytes({y})).status(), "num_splits is 0, and it has 1 outputs",
              "SPLIT");
}

TEST(TfliteKnown, ShapesDivideByNothing) {
  for (const absl::string_view type : {"FLOAT32", "INT8"}) {
    const absl::string_view in = "[1,4,4,1]";
    ExpectErrors({
        {"CONV_2D", {in, "[0,0,0,0]"}, {}, "Conv2DOptions: {stride_h: 1, stride_w: 1}", "", type},
        {"CONV_2D", {in, "[1,2,2,0]"}, {}, "Conv2DOptions: {stride_h: 1, stride_w: 1}", "", type},
        {"CONV_2D",
         {"[1,4,4,3]", "[1,2,2,2]"},
         {},
         "Conv2DOptions: {stride_h: 1, stride_w: 1}",
         "",
         type},
        {"CONV_2D", {"[1,4]", "[1,2]"}, {}, "Conv2DOptions: {stride_h: 1, stride_w: 1}", "", type},
        {"DEPTHWISE_CONV_2D",
         {"[1,4,4,0]", "[1,1,1,2]"},
         {},
         "DepthwiseConv2DOptions: {stride_h: 1, stride_w: 1, depth_multiplier: 1}",
         "",
         type},
        {"FULLY_CONNECTED", {"[1,4]", "[2,0]"}, {}, "FullyConnectedOptions: {}", "", type, "[1,2]"},
        {"FULLY_CONNECTED", {"[1,4]", "[2,3]"}, {}, "FullyConnectedOptions: {}", "", type, "[1,2]"},
        {"FULLY_CONNECTED", {"[]", "[]"}, {}, "FullyConnectedOptions: {}", "", type, "[1,2]"},
        {"SPACE_TO_BATCH_ND", {in}, {{0, 0}, {0, 0, 0, 0}}, "", "", type},
        {"BATCH_TO_SPACE_ND", {in}, {{0, 0}, {0, 0, 0, 0}}, "", "", type},
        {"BATCH_TO_SPACE_ND", {in}, {{-1, 2}, {0, 0, 0, 0}}, "", "", type},
        {"RESIZE_BILINEAR", {"[1,0,0,1]"}, {{2, 2}}, "ResizeBilinearOptions: {}", "", type},
        {"RESIZE_BILINEAR", {in}, {{0, 2}}, "ResizeBilinearOptions: {}", "", type},
        {"RESIZE_BILINEAR", {in}, {{-1, 2147483647}}, "ResizeBilinearOptions: {}", "", type},
    });
  }
}

TEST(TfliteKnown, TransposedConvolutions) {
  for (const absl::string_view type : {"FLOAT32", "INT8"}) {
    const absl::string_view more = type == absl::string_view("INT8") ? kInt8 : "";
    const std::vector<std::vector<int32_t>> sizes = {
        {1, 4, 4},   {1, 4, 4, 1, 1}, {0, 4, 4, 1}, {1, -4, 4, 1}, {1, 2147483647, 2147483647, 1},
        {1, 4, 4, 7}};
    for (const std::vector<int32_t>& size : sizes) {
      TfliteText text;
      const int to = text.Ints(size), w = text.Input("[1,2,2,1]", type, more),
                x = text.Input("[1,2,2,1]", type, more), y = text.Tensor("[1,4,4,1]", type, more);
      text.Op("TRANSPOSE_CONV", {to, w, x}, {y},
              "TransposeConvOptions: {stride_h: 2, stride_w: 2}");
      ExpectError(RunTflite(text.Bytes({y})).status(), "", absl::StrJoin(size, ","));
    }
    TfliteText text;
    const int to = text.Ints({1, 4, 4, 1}), w = text.Input("[1,2,2,1]", type, more),
              x = text.Input("[1,2,2,1]", type, more), y = text.Tensor("[1,4,4,1]", type, more);
    text.Op("TRANSPOSE_CONV", {to, w, x}, {y}, "TransposeConvOptions: {}");
    ExpectError(RunTflite(text.Bytes({y})).status(), "stride_h is 0", "strides");
  }
}

TEST(TfliteKnown, SizesDoNotOverflow) {
  constexpr int32_t kMost = 2147483647;
  ExpectErrors({
      {"FILL", {}, {{kMost, kMost, kMost, kMost}}, "", ""},
      {"PAD", {"[1,1]"}, {{kMost, kMost, kMost, kMost}}, "", ""},
      {"PAD", {"[1,1]"}, {{-1, 0, 0, 0}}, "", ""},
      {"TILE", {"[2,2,2,2]"}, {{kMost, kMost, kMost, kMost}}, "", ""},
      {"TILE", {"[2,2]"}, {{-1, 1}}, "", ""},
      {"BROADCAST_TO", {"[1]"}, {{kMost, kMost, kMost, kMost}}, "", ""},
      {"RESHAPE", {"[4]"}, {{kMost, kMost, kMost, 2}}, "ReshapeOptions: {}", ""},
      {"RESHAPE", {"[4]"}, {{-1, -1}}, "ReshapeOptions: {}", ""},
      {"RESHAPE", {"[4]"}, {{0, -1}}, "ReshapeOptions: {}", ""},
      {"RESIZE_NEAREST_NEIGHBOR",
       {"[1,1,1,1]"},
       {{kMost, kMost}},
       "ResizeNearestNeighborOptions: {}",
       ""},
      {"RESIZE_BILINEAR", {"[1,1,1,1]"}, {{kMost, kMost}}, "ResizeBilinearOptions: {}", ""},
      {"RESIZE_BILINEAR", {"[1,1,1,1]"}, {{kMost, kMost}}, "ResizeBilinearOptions: {}", "", "INT8"},
  });
}

TEST(TfliteKnown, AxesAreThere) {
  for (const int32_t axis : {2, -3, 2147483647, -2147483647}) {
    ExpectErrors({
        {"SUM", {"[2,2]"}, {{axis}}, "ReducerOptions: {}", ""},
        {"MEAN", {"[2,2]"}, {{axis}}, "ReducerOptions: {}", "", "INT8"},
        {"REDUCE_MAX", {"[2,2]"}, {{axis}}, "ReducerOptions: {}", ""},
        {"CUMSUM", {"[2,2]"}, {{axis}}, "CumsumOptions: {}", ""},
        {"EXPAND_DIMS",
         {"[2,2]"},
         {{axis + (axis == 2    ? 1
                   : axis == -3 ? -1
                                : 0)}},
         "",
         ""},
        {"REVERSE_V2", {"[2,2]"}, {{axis}}, "", ""},
        {"CONCATENATION",
         {"[2,2]", "[2,2]"},
         {},
         absl::StrCat("ConcatenationOptions: {axis: ", axis, "}"),
         ""},
        {"SQUEEZE",
         {"[1,1]"},
         {},
         absl::StrCat("SqueezeOptions: {squeeze_dims: [", axis, "]}"),
         ""},
        {"TRANSPOSE", {"[2,2]"}, {{0, axis}}, "", ""},
    });
    TfliteText text;
    const int x = text.Input("[2,2]"), at = text.Int(axis), y = text.Tensor("[2]", "INT32");
    text.Op("ARG_MAX", {x, at}, {y}, "ArgMaxOptions: {output_type: \"INT32\"}");
    ExpectError(RunTflite(text.Bytes({y})).status(), "", "ARG_MAX");
  }
  ExpectErrors({{"TRANSPOSE", {"[2,2]"}, {{0, 0}}, "", ""},
                {"SQUEEZE", {"[2,2]"}, {}, "SqueezeOptions: {squeeze_dims: [0]}", ""},
                {"CONCATENATION", {"[2,2]", "[3,3]"}, {}, "ConcatenationOptions: {axis: 0}", ""},
                {"CONCATENATION", {"[2,2]", "[2]"}, {}, "ConcatenationOptions: {axis: 0}", ""}});
}

TEST(TfliteKnown, IndicesAreThere) {
  for (const int32_t index : {4, -1, 2147483647, -2147483647 - 1}) {
    ExpectErrors({
        {"GATHER", {"[4]"}, {{index}}, "GatherOptions: {}", ""},
        {"GATHER", {"[4]"}, {{index}}, "GatherOptions: {}", "", "INT8"},
    });
    TfliteText text;
    const int x = text.Input("[4,2]"), at = text.Ints({index}), y = text.Tensor("[1,2]");
    text.Op("EMBEDDING_LOOKUP", {at, x}, {y});
    ExpectError(RunTflite(text.Bytes({y})).status(), "", "EMBEDDING_LOOKUP");
    TfliteText nd;
    const int params = nd.Input("[4]"), places = nd.Const<int32_t>("[1,1]", "INT32", {index}),
              picked = nd.Tensor("[1]");
    nd.Op("GATHER_ND", {params, places}, {picked});
    ExpectError(RunTflite(nd.Bytes({picked})).status(), "", "GATHER_ND");
    TfliteText scatter;
    const int where = scatter.Const<int32_t>("[1,1]", "INT32", {index}),
              updates = scatter.Input("[1]"), shape = scatter.Ints({4}),
              made = scatter.Tensor("[4]");
    scatter.Op("SCATTER_ND", {where, updates, shape}, {made});
    ExpectError(RunTflite(scatter.Bytes({made})).status(), "", "SCATTER_ND");
    TfliteText dense;
    const int sparse = dense.Const<int32_t>("[1,1]", "INT32", {index}), size = dense.Ints({4}),
              value = dense.Input("[1]"), otherwise = dense.Input("[]"), all = dense.Tensor("[4]");
    dense.Op("SPARSE_TO_DENSE", {sparse, size, value, otherwise}, {all},
             "SparseToDenseOptions: {}");
    ExpectError(RunTflite(dense.Bytes({all})).status(), "", "SPARSE_TO_DENSE");
  }
  ExpectErrors({{"GATHER", {"[4]"}, {{0}}, "GatherOptions: {axis: 1}", ""},
                {"GATHER", {"[4]"}, {{0}}, "GatherOptions: {axis: -2147483648}", ""},
                {"GATHER", {"[4]"}, {{0}}, "GatherOptions: {batch_dims: 7}", ""},
                {"SLICE", {"[4]"}, {{5}, {1}}, "", ""},
                {"SLICE", {"[4]"}, {{0}, {5}}, "", ""},
                {"SLICE", {"[4]"}, {{-1}, {1}}, "", ""},
                {"SLICE", {"[4]"}, {{2147483647}, {2147483647}}, "", ""},
                {"STRIDED_SLICE", {"[4]"}, {{0}, {4}, {0}}, "StridedSliceOptions: {}", ""},
                {"STRIDED_SLICE", {"[4]"}, {{0, 0}, {4, 4}, {1, 1}}, "StridedSliceOptions: {}", ""},
                {"STRIDED_SLICE",
                 {"[4]"},
                 {{9}, {4}, {1}},
                 "StridedSliceOptions: {shrink_axis_mask: 1}",
                 ""}});
}

TEST(TfliteKnown, Segments) {
  const struct {
    std::vector<int32_t> ids;
    absl::string_view code;
  } kCases[] = {{{-1, 0}, "SEGMENT_SUM"},         {{1, 0}, "SEGMENT_SUM"},
                {{0, 2147483647}, "SEGMENT_SUM"}, {{0, 2}, "SEGMENT_SUM"},
                {{1, 1}, "SEGMENT_SUM"},          {{0}, "SEGMENT_SUM"},
                {{0, 0, 0}, "SEGMENT_SUM"}};
  for (const auto& c : kCases) {
    TfliteText text;
    const int x = text.Input("[2,2]"), ids = text.Ints(c.ids), y = text.Tensor("[1,2]");
    text.Op(c.code, {x, ids}, {y});
    const Status status = RunTflite(text.Bytes({y})).status();
    EXPECT_FALSE(absl::IsResourceExhausted(status)) << status;
    ExpectError(status, "", absl::StrJoin(c.ids, ","));
  }
  for (const int32_t segments : {-1, 2147483647}) {
    TfliteText text;
    const int x = text.Input("[2,2147483]"), ids = text.Ints({0, 1}), n = text.Int(segments),
              y = text.Tensor("[1,2]");
    text.Op("UNSORTED_SEGMENT_SUM", {x, ids, n}, {y});
    ExpectError(RunTflite(text.Bytes({y})).status(), "", absl::StrCat(segments));
  }
}

// A convolution by windows of one pixel takes all images as one row.
TEST(TfliteKnown, LongRowsOfConvolutions) {
  TfliteText text;
  const int x = text.Input("[1,1,3,64]");
  const int pads = text.Const<int32_t>("[4,2]", "INT32", {0, 1912602624, 0, 0, 0, 0, 0, 0});
  const int filter = text.Const<float>("[64,1,1,64]", "FLOAT32", std::vector<float>(64 * 64, 0.5f));
  const int wide = text.Tensor("[1912602625,1,3,64]"), y = text.Tensor("[1912602625,1,3,64]");
  text.Op("PAD", {x, pads}, {wide});
  text.Op("CONV_2D", {wide, filter}, {y},
          "Conv2DOptions: {padding: VALID, stride_h: 1, stride_w: 1}");
  const absl::Time start = absl::Now();
  ExpectError(RunTflite(text.Bytes({y})).status(), "", "5.7e9 pixels");
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

TEST(TfliteKnown, RangesEnd) {
  const std::vector<std::vector<int32_t>> kCases = {
      {0, 10, 0}, {0, 10, -1}, {-2147483647 - 1, 2147483647, 1}, {10, 0, 1}};
  for (const std::vector<int32_t>& c : kCases) {
    TfliteText text;
    const int a = text.Int(c[0]), b = text.Int(c[1]), s = text.Int(c[2]),
              y = text.Tensor("[1]", "INT32");
    text.Op("RANGE", {a, b, s}, {y});
    ExpectError(RunTflite(text.Bytes({y})).status(), "", absl::StrJoin(c, ","));
  }
  TfliteText text;
  const int a = text.Const<float>("[]", "FLOAT32", {0}),
            b = text.Const<float>("[]", "FLOAT32", {1}),
            s = text.Const<float>("[]", "FLOAT32", {1e-30f}), y = text.Tensor("[1]");
  text.Op("RANGE", {a, b, s}, {y});
  ExpectError(RunTflite(text.Bytes({y})).status(), "", "steps of 1e-30");
}

TEST(TfliteKnown, OneHotAndTopK) {
  for (const int32_t depth : {-1, 2147483647}) {
    TfliteText text;
    const int i = text.Input("[1048576]", "INT32"), d = text.Int(depth), on = text.Input("[]"),
              off = text.Input("[]"), y = text.Tensor("[4,1]");
    text.Op("ONE_HOT", {i, d, on, off}, {y}, "OneHotOptions: {axis: -1}");
    ExpectError(RunTflite(text.Bytes({y})).status(), "", absl::StrCat(depth));
  }
  TfliteText one;
  const int i = one.Input("[4]", "INT32"), d = one.Int(2), on = one.Input("[]"),
            off = one.Input("[]"), y = one.Tensor("[4,1]");
  one.Op("ONE_HOT", {i, d, on, off}, {y}, "OneHotOptions: {axis: 9}");
  ExpectError(RunTflite(one.Bytes({y})).status(), "", "axis");
  for (const int32_t k : {5, -1}) {
    TfliteText text;
    const int x = text.Input("[4]"), n = text.Int(k), values = text.Tensor("[1]"),
              places = text.Tensor("[1]", "INT32");
    text.Op("TOPK_V2", {x, n}, {values, places});
    ExpectError(RunTflite(text.Bytes({values})).status(), "", absl::StrCat(k));
  }
}

TEST(TfliteKnown, Splits) {
  const std::vector<std::vector<int32_t>> kSizes = {{3, 3}, {-1, -1}, {-2, 6}, {5, -1}, {4}};
  for (const std::vector<int32_t>& sizes : kSizes) {
    TfliteText text;
    const int x = text.Input("[4]"), s = text.Ints(sizes), axis = text.Int(0),
              a = text.Tensor("[2]"), b = text.Tensor("[2]");
    text.Op("SPLIT_V", {x, s, axis}, {a, b}, "SplitVOptions: {num_splits: 2}");
    ExpectError(RunTflite(text.Bytes({a, b})).status(), "", absl::StrJoin(sizes, ","));
  }
  for (const int32_t axis : {1, -2, 2147483647}) {
    TfliteText text;
    const int at = text.Int(axis), x = text.Input("[4]"), a = text.Tensor("[2]"),
              b = text.Tensor("[2]");
    text.Op("SPLIT", {at, x}, {a, b}, "SplitOptions: {num_splits: 2}");
    ExpectError(RunTflite(text.Bytes({a, b})).status(), "", absl::StrCat(axis));
  }
  TfliteText text;
  const int at = text.Int(0), x = text.Input("[3]"), a = text.Tensor("[2]"), b = text.Tensor("[2]");
  text.Op("SPLIT", {at, x}, {a, b}, "SplitOptions: {num_splits: 2}");
  ExpectError(RunTflite(text.Bytes({a, b})).status(), "", "3 in 2");
}

// Operands of no elements, of operators that take their first.
TEST(TfliteKnown, EmptyOperands) {
  const Case kCases[] = {
      {"SUM", {"[0]"}, {{0}}, "ReducerOptions: {}", "", "FLOAT32", "[]"},
      {"REDUCE_MAX", {"[0,2]"}, {{0}}, "ReducerOptions: {}", "", "FLOAT32", "[2]"},
      {"MEAN", {"[0,2]"}, {{0}}, "ReducerOptions: {}", "", "INT8", "[2]"},
      {"SUM", {"[2]"}, {{}}, "ReducerOptions: {}", "", "INT8", "[2]"},
      {"SOFTMAX", {"[0]"}, {}, "SoftmaxOptions: {beta: 1}", "", "FLOAT32", "[0]"},
      {"SOFTMAX", {"[2,0]"}, {}, "SoftmaxOptions: {beta: 1}", "", "INT8", "[2,0]"},
      {"TRANSPOSE", {"[0,2]"}, {{1, 0}}, "", "", "FLOAT32", "[2,0]"},
      {"CONV_2D",
       {"[0,4,4,1]", "[1,2,2,1]"},
       {},
       "Conv2DOptions: {stride_h: 1, stride_w: 1}",
       "",
       "INT8",
       "[0,4,4,1]"},
      {"AVERAGE_POOL_2D",
       {"[0,4,4,1]"},
       {},
       "Pool2DOptions: {stride_h: 1, stride_w: 1, filter_height: 1, filter_width: 1}",
       "",
       "INT8",
       "[0,4,4,1]"},
      {"FULLY_CONNECTED", {"[0,4]", "[2,4]"}, {}, "FullyConnectedOptions: {}", "", "INT8", "[0,2]"},
      {"FULLY_CONNECTED", {"[2,4]", "[0,4]"}, {}, "FullyConnectedOptions: {}", "", "INT8", "[2,0]"},
      {"ADD", {"[0]", "[1]"}, {}, "AddOptions: {}", "", "INT8", "[0]"},
      {"BATCH_MATMUL",
       {"[1,0,2]", "[1,2,0]"},
       {},
       "BatchMatMulOptions: {}",
       "",
       "FLOAT32",
       "[1,0,0]"},
  };
  for (const Case& c : kCases) {
    const Status status = RunCase(c);
    EXPECT_TRUE(status.ok()) << c.code << " " << c.type << status;
  }
  for (const absl::string_view axis : {"[0]", "[2]"}) {
    TfliteText text;
    const int x = text.Input("[2,2]"), at = text.Input(axis, "INT32"),
              y = text.Tensor("[2]", "INT64");
    text.Op("ARG_MIN", {x, at}, {y}, "ArgMinOptions: {output_type: \"INT64\"}");
    ExpectError(RunTflite(text.Bytes({y})).status(), "", axis);
  }
}

TEST(TfliteKnown, Recurrences) {
  // A filter of 3 rows is none of rank 2, and rows of other widths than the weights' are none.
  for (const absl::string_view rank : {"0", "2", "-1", "2147483647"}) {
    TfliteText text;
    const int x = text.Input("[1,2]"), w = text.Input("[3,2]"), t = text.Input("[3,4]"),
              state = text.Tensor("[1,12]", "FLOAT32", "is_variable: true, "),
              y = text.Tensor("[1,3]");
    text.Op("SVDF", {x, w, t, -1, state}, {y}, absl::StrCat("SVDFOptions: {rank: ", rank, "}"));
    ExpectError(RunTflite(text.Bytes({y})).status(), "", rank);
  }
  for (const absl::string_view depth : {"[1,0]", "[0,0]", "[1,3]"}) {
    TfliteText text;
    const int x = text.Input(depth), w = text.Input("[2,2]"), r = text.Input("[2,2]"),
              b = text.Input("[2]"), state = text.Tensor("[1,2]", "FLOAT32", "is_variable: true, "),
              y = text.Tensor("[1,2]");
    text.Op("RNN", {x, w, r, b, state}, {y}, "RNNOptions: {}");
    ExpectError(RunTflite(text.Bytes({y})).status(), "", depth);
  }
}

TEST(TfliteKnown, QuantizedOperandsWithoutScales) {
  for (const absl::string_view code : {"QUANTIZE", "DEQUANTIZE"}) {
    TfliteText text;
    const bool to = code == "QUANTIZE";
    const int x = text.Input("[2]", to ? "FLOAT32" : "INT8"),
              y = text.Tensor("[2]", to ? "INT8" : "FLOAT32",
                              to ? "quantization: {min: [0], max: [1]}, " : "");
    text.Op(code, {x}, {y});
    if (to) {
      ExpectError(RunTflite(text.Bytes({y})).status(), "its output has no scales", code);
    } else {
      EXPECT_TRUE(RunTflite(text.Bytes({y})).ok());  // plain integers, as LiteRT's cast
    }
  }
  // One scale for each channel of weights, and another number of channels.
  TfliteText text;
  const int x = text.Input("[1,4,4,1]", "INT8", kInt8),
            w = text.Input("[2,1,1,1]", "INT8",
                           "quantization: {scale: [1, 1], zero_point: [0, 0]}, "),
            y = text.Tensor("[1,4,4,2]", "INT8", kInt8), b = text.Input("[3]", "INT32");
  text.Op("CONV_2D", {x, w, b}, {y}, "Conv2DOptions: {stride_h: 1, stride_w: 1}");
  ExpectError(RunTflite(text.Bytes({y})).status(), "there are 3 biases for 2 channels", "bias");
}

TEST(TfliteKnown, Tables) {
  TfliteText text;
  const int t = text.Tensor("[]", "RESOURCE"), keys = text.Ints({1, 2}),
            values = text.Ints({1, 2, 3});
  text.Op("HASHTABLE", {}, {t},
          "HashtableOptions: {table_id: 1, key_dtype: \"INT32\", value_dtype: \"INT32\"}");
  text.Op("HASHTABLE_IMPORT", {t, keys, values}, {});
  const int n = text.Tensor("[1]", "INT64");
  text.Op("HASHTABLE_SIZE", {t}, {n});
  ExpectError(RunTflite(text.Bytes({n})).status(), "", "keys and values");
  TfliteText none;
  const int x = none.Input("[]"), y = none.Tensor("[1]", "INT64");
  none.Op("HASHTABLE_SIZE", {x}, {y});
  ExpectError(RunTflite(none.Bytes({y})).status(), "", "no table");
}

TEST(TfliteKnown, BranchesTakeWhatIsGiven) {
  const struct {
    absl::string_view type, shape;
    int inputs, outputs;
  } kBodies[] = {{"INT32", "[2]", 1, 1},
                 {"FLOAT32", "[2]", 2, 1},
                 {"FLOAT32", "[2]", 0, 1},
                 {"FLOAT32", "[2]", 1, 0},
                 {"FLOAT32", "[2]", 1, 2}};
  for (const auto& body : kBodies) {
    TfliteText text;
    const int p = text.Input("[]", "BOOL"), x = text.Input("[2]"), y = text.Tensor("[2]");
    text.Op("IF", {p, x}, {y}, "IfOptions: {then_subgraph_index: 1, else_subgraph_index: 1}");
    text.EndSubgraph({y});
    std::vector<int> out;
    for (int i = 0; i < body.inputs; ++i) text.Input(body.shape, body.type);
    const int c = text.Const<float>("[2]", "FLOAT32", {1, 2});
    for (int i = 0; i < body.outputs; ++i) out.push_back(body.inputs > 0 ? 0 : c);
    text.EndSubgraph(out);
    ExpectError(RunTflite(text.Bytes()).status(), "",
                absl::StrCat(body.type, body.inputs, body.outputs));
  }
}

TEST(TfliteKnown, HonestBranchesAndLoopsRun) {
  TfliteText text;
  const int p = text.Input("[]", "BOOL"), x = text.Input("[2]"), y = text.Tensor("[2]"),
            q = text.Tensor("[]", "BOOL"), z = text.Tensor("[2]");
  text.Op("IF", {p, x}, {y}, "IfOptions: {then_subgraph_index: 1, else_subgraph_index: 1}");
  text.Op("WHILE", {p, y}, {q, z},
          "WhileOptions: {cond_subgraph_index: 2, body_subgraph_index: 3}");
  text.EndSubgraph({z});
  const int a = text.Input("[2]"), one = text.Const<float>("[2]", "FLOAT32", {1, 1}),
            sum = text.Tensor("[2]");
  text.Op("ADD", {a, one}, {sum}, "AddOptions: {}");
  text.EndSubgraph({sum});
  const int go = text.Input("[]", "BOOL"), stop = text.Tensor("[]", "BOOL");
  text.Input("[2]");
  text.Op("LOGICAL_NOT", {go}, {stop}, "LogicalNotOptions: {}");
  text.EndSubgraph({stop});
  const int again = text.Input("[]", "BOOL"), b = text.Input("[2]"),
            other = text.Tensor("[]", "BOOL"), twice = text.Tensor("[2]");
  text.Op("LOGICAL_NOT", {again}, {other}, "LogicalNotOptions: {}");
  text.Op("ADD", {b, b}, {twice}, "AddOptions: {}");
  text.EndSubgraph({other, twice});
  const auto answers = RunTflite(text.Bytes());
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->at("t4").flat<float>()[0], 2);  // 0, of which 1 more, doubled once
}

TEST(TfliteKnown, CustomOptions) {
  const struct {
    absl::string_view code, options, words;
  } kCases[] = {{"custom:FlexAdd", "", "its options are no FlexBuffer"},
                {"custom:FlexAdd", "1, 2, 3", "its options are no FlexBuffer"},
                {"custom:FlexAdd", "255, 255, 255, 255, 255, 255", "its options are no FlexBuffer"},
                {"custom:Flex", "0, 0, 1", "its options are no"},
                {"custom:Mine", "0, 0, 1", "Encountered unresolved custom op: Mine"}};
  for (const auto& c : kCases) {
    TfliteText text;
    const int x = text.Input("[2]"), y = text.Tensor("[2]");
    text.Op(c.code, {x, x}, {y}, "", absl::StrCat(", custom_options: [", c.options, "]"));
    ExpectError(RunTflite(text.Bytes({y})).status(), c.words, c.options);
  }
  TfliteText text;
  const int x = text.Input("[2]"), y = text.Tensor("[2]");
  text.Op("custom:Mine", {x, x}, {y}, "",
          ", large_custom_options_offset: 99999, large_custom_options_size: 1");
  ExpectError(RunTflite(text.Bytes({y})).status(),
              "its custom options reach beyond the end of the file", "large");
}

}  // namespace
}  // namespace smelt
