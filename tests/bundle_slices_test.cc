// Slices of tensors in bundles: their text and keys, and tensors that are written in parts.
#include <gtest/gtest.h>

#include "bundle_fixture.h"

namespace smelt {
namespace {

using BundleSlicesTest = BundleTest;

using absl::StatusCode;

TEST(Slices, Text) {
  Shape full;
  TensorSlice slice;
  ASSERT_TRUE(ParseShapeAndSlice("100 20 0,50:-", &full, &slice).ok());
  EXPECT_EQ(full, Shape({100, 20}));
  EXPECT_EQ(slice, (TensorSlice{{0, 0}, {50, -1}}));
  EXPECT_EQ(slice.ToString(), "0,50:-");
  EXPECT_EQ(*slice.ShapeIn(full), Shape({50, 20}));
  EXPECT_FALSE(slice.IsFull());
  EXPECT_TRUE(TensorSlice::Whole(3).IsFull());

  const auto expect = [&](absl::string_view text, StatusCode code, absl::string_view words) {
    const Status status = ParseShapeAndSlice(text, &full, &slice);
    EXPECT_EQ(status.code(), code) << text;
    EXPECT_EQ(status.message(), words) << text;
  };
  const auto invalid = StatusCode::kInvalidArgument, internal = StatusCode::kInternal;
  expect("-:-", invalid, "Need least two elements in shape_and_slice specification: -:-");
  expect("", invalid, "Need least two elements in shape_and_slice specification: ");
  expect("4 x -:-", invalid, "Non numerical dimension in shape_and_slice: 4 x -:-");
  expect("4 -3 -:-", invalid, "Negative dimension in shape_and_slice: 4 -3 -:-");
  expect("4 3 0,1,2:-", invalid,
         "Expected a pair of numbers or '-' but got '0,1,2': string = 0,1,2:-");
  expect("4 3 0,0:-", invalid,
         "Expected non-negative start and positive length but got start = 0, length = 0: string = "
         "0,0:-");
  expect("4 3 0,2", internal, "Mismatching ranks: shape = [4,3], slice = 0,2");
  expect("4 3 3,2:-", internal,
         "Extent in dimension 0 out of bounds: shape = [4,3], slice = 3,2:-");
  expect("4 9223372036854775807,9223372036854775807", internal,
         "Extent in dimension 0 out of bounds: shape = [4], slice = "
         "9223372036854775807,9223372036854775807");
  EXPECT_FALSE(ParseShapeAndSlice("4611686018427387904 4 -:-", &full, &slice).ok());
}

TEST(Slices, Keys) {
  const auto key = [](absl::string_view name, TensorSlice slice) {
    return absl::BytesToHexString(SliceKey(name, slice));
  };
  EXPECT_EQ(key("h", {{108192}, {1 << 20}}),
            "00680001"
            "0101"
            "e1a6a0"
            "f0100000");
  EXPECT_EQ(key("h", {{64}, {127}}),
            "00680001"
            "0101"
            "c040"
            "c07f");
  EXPECT_EQ(key("h", {{8191}, {1}}),
            "00680001"
            "0101"
            "dfff"
            "81");
  EXPECT_EQ(key("h", {{0, 0}, {63, -1}}),
            "00680001"
            "0102"
            "80bf"
            "807f");
  EXPECT_EQ(key(absl::string_view("\0\xff", 2), {}),
            "00"
            "00ffff00"
            "0001"
            "00");
  EXPECT_EQ(key("", {{INT64_MAX}, {INT64_MIN}}),
            "000001"
            "0101"
            "ffc07fffffffffffffff"
            "003f8000000000000000");
}

// A tensor of shape [10,7,3] in four parts.
std::vector<TensorSlice> FourParts() {
  return {TensorSlice{{0, 0, 0}, {4, -1, -1}}, TensorSlice{{4, 0, 0}, {6, 2, -1}},
          TensorSlice{{4, 2, 0}, {6, 5, 1}}, TensorSlice{{4, 2, 1}, {6, 5, 2}}};
}

// The slice of `whole` that ReadSlice must give, element by element.
Tensor Cut(const Tensor& whole, const TensorSlice& slice) {
  const Shape shape = *slice.ShapeIn(whole.shape());
  Tensor out = *Tensor::Make(whole.dtype(), shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      from += (rest % shape[d] + slice.starts[static_cast<size_t>(d)]) * stride;
      rest /= shape[d];
      stride *= whole.dim(d);
    }
    if (whole.dtype() == Dtype::kString) {
      out.data<std::string>()[i] = whole.data<std::string>()[from];
    } else {
      out.data<int32_t>()[i] = whole.data<int32_t>()[from];
    }
  }
  return out;
}

TEST_F(BundleSlicesTest, SlicesOfWholeAndPartitionedTensors) {
  const Tensor numbers = Iota(Shape({10, 7, 3}));
  const Tensor strings = Random(Dtype::kString, Shape({10, 7, 3}));
  auto writer = *BundleWriter::Create(Path("p"), {2, 1});
  for (const Tensor& t : {numbers, strings}) {
    const std::string type(DtypeName(t.dtype()));
    ASSERT_TRUE(writer->Add("whole/" + type, t).ok());
    for (const TensorSlice& s : FourParts()) {
      ASSERT_TRUE(writer->AddSlice("parts/" + type, t.shape(), s, Cut(t, s)).ok());
    }
    // One part that is all of it.
    const TensorSlice all{{0, 0, 0}, {10, 7, -1}};
    ASSERT_TRUE(writer->AddSlice("one/" + type, t.shape(), all, t).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  auto reader = Open(Path("p"));
  EXPECT_EQ(reader->names().size(), 6u);
  std::mt19937 random(2);
  for (const Tensor& t : {numbers, strings}) {
    for (absl::string_view how : {"whole/", "parts/", "one/"}) {
      const std::string name = absl::StrCat(how, DtypeName(t.dtype()));
      ExpectReads(*reader, name, t);
      EXPECT_EQ((*reader->Find(name))->partitioned(), how == "parts/");
      for (int k = 0; k < 100; ++k) {
        TensorSlice slice = TensorSlice::Whole(3);
        for (size_t d = 0; d < 3; ++d) {
          const int64_t dim = t.dim(static_cast<int>(d));
          if (random() % 3 == 0) continue;
          slice.starts[d] = static_cast<int64_t>(random()) % dim;
          slice.lengths[d] = 1 + static_cast<int64_t>(random()) % (dim - slice.starts[d]);
        }
        auto got = reader->ReadSlice(name, slice);
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_TRUE(got->Identical(Cut(t, slice))) << name << " " << slice.ToString();
      }
    }
  }
  ExpectStatus(reader->ReadSlice("whole/int32", TensorSlice{{1}, {1}}).status(),
               StatusCode::kInternal, "Mismatching ranks");
  ExpectStatus(reader->ReadSlice("parts/int32", TensorSlice{{9, 0, 0}, {2, -1, -1}}).status(),
               StatusCode::kInternal, "Extent in dimension 0 out of bounds");
  // Rows of a tensor that is stored whole are not copied.
  EXPECT_FALSE(reader->ReadSlice("whole/int32", TensorSlice{{2, 0, 0}, {3, -1, -1}})->Writable());
}

TEST_F(BundleSlicesTest, PartsThatDoNotCoverOrDoOverlap) {
  const Tensor t = Iota(Shape({4, 2}));
  auto writer = *BundleWriter::Create(Path("gap"));
  ASSERT_TRUE(writer->AddSlice("v", t.shape(), {{0, 0}, {1, -1}}, t.Rows(0, 1)).ok());
  ASSERT_TRUE(writer->AddSlice("v", t.shape(), {{2, 0}, {2, -1}}, t.Rows(2, 4)).ok());
  ASSERT_TRUE(writer->AddSlice("w", t.shape(), {{0, 0}, {3, -1}}, t.Rows(0, 3)).ok());
  ASSERT_TRUE(writer->AddSlice("w", t.shape(), {{2, 0}, {2, -1}}, t.Rows(2, 4)).ok());
  ASSERT_TRUE(writer->AddSlice("x", t.shape(), {{0, 0}, {2, -1}}, t.Rows(0, 2)).ok());
  ASSERT_TRUE(writer->AddSlice("x", t.shape(), {{1, 0}, {2, -1}}, t.Rows(1, 3)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  auto reader = Open(Path("gap"));
  EXPECT_EQ(reader->Read("v").status(),
            InvalidArgument("Does not have sufficient slices for partitioned tensor v to restore "
                            "in slice_spec: -:-"));
  EXPECT_TRUE(reader->ReadSlice("v", {{2, 0}, {2, -1}}).ok());
  ExpectStatus(reader->Read("w").status(), StatusCode::kDataLoss, "overlap");
  // Parts whose element count is right, as one row is there twice and one not at all.
  ExpectStatus(reader->Read("x").status(), StatusCode::kDataLoss, "overlap");
}

// Writing and merging.

}  // namespace
}  // namespace smelt
