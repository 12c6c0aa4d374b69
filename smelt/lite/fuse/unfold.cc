// A batch_matmul taken apart into the products of its matrices.
#include <algorithm>
#include <array>
#include <map>

#include "smelt/lite/common/attributes.h"
#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/fuse/fusion.h"

namespace smelt {
namespace {

// Dimensions of batches, those of both operands broadcast; nothing where some are free.
std::optional<std::vector<int64_t>> BatchOf(const PartialShape& x, const PartialShape& y) {
  const int rank = std::max(x.rank(), y.rank());
  std::vector<int64_t> out;
  for (int i = 0; i + 2 < rank; ++i) {
    const int from_x = i - (rank - x.rank()), from_y = i - (rank - y.rank());
    const int64_t a = from_x < 0 ? 1 : x[from_x], b = from_y < 0 ? 1 : y[from_y];
    if (a < 0 || b < 0 || (a != b && a != 1 && b != 1)) return std::nullopt;
    out.push_back(a == 1 ? b : a);
  }
  return out;
}

// The matrix of `of` that stands at `place` of the batch, by its number.
int64_t MatrixAt(const PartialShape& of, std::span<const int64_t> batch, int64_t place) {
  int64_t number = 0, step = 1;
  for (auto i = static_cast<int>(batch.size()) - 1; i >= 0; --i) {
    const int64_t at = place % batch[static_cast<size_t>(i)];
    place /= batch[static_cast<size_t>(i)];
    const int dim = i - (static_cast<int>(batch.size()) + 2 - of.rank());
    if (dim < 0) continue;
    if (of[dim] != 1) number += at * step;
    step *= of[dim];
  }
  return number;
}

// The matrices of a batch, apart: as they are, or transposed.
class Matrices {
 public:
  // `rows`: who reads them takes ones in front of the last two dimensions.
  Matrices(Endpoint e, bool transposed, bool rows, const Node& like, Fuser& f)
      : e_(e),
        shape_(Fuser::shape(e)),
        transposed_(transposed),
        flat_(transposed || !rows),
        like_(like),
        f_(f) {}

  const PartialShape& shape() const { return shape_; }

  StatusOr<Endpoint> At(int64_t number) {
    if (parts_.empty()) RETURN_IF_ERROR(Split());
    auto& made = made_[number];
    if (made.node != nullptr) return made;
    made = parts_[static_cast<size_t>(number)];
    if (transposed_) {
      ASSIGN_OR_RETURN(made, Transposed(made));
    }
    return made;
  }

 private:
  int64_t rows() const { return shape_[shape_.rank() - 2]; }
  int64_t columns() const { return shape_[shape_.rank() - 1]; }
  PartialShape Matrix() const { return PartialShape::Of(std::vector<int64_t>{rows(), columns()}); }

  StatusOr<Endpoint> Transposed(Endpoint matrix) {
    const std::array<int64_t, 2> order = {1, 0};
    if (const auto value = Fuser::Constant(matrix)) {
      ASSIGN_OR_RETURN(const Tensor t, smelt::Transposed(*value, {1, 0}));
      return f_.Const(t, like_);
    }
    return f_.AddShaped("tfl.transpose", {matrix, IntsConst(order, like_, f_)}, {}, Dtype::kFloat,
                        PartialShape::Of(std::vector<int64_t>{columns(), rows()}), like_);
  }

  Status Split() {
    int64_t count = 1;
    for (int i = 0; i + 2 < shape_.rank(); ++i) count *= shape_[i];
    const std::vector<int64_t> matrix = {rows(), columns()};
    if (const auto value = Fuser::Constant(e_)) {
      const Tensor flat = value->WithShape(Shape({count, rows() * columns()}));
      for (int64_t i = 0; i < count; ++i) {
        ASSIGN_OR_RETURN(Tensor part, Tensor::Make(Dtype::kFloat, Shape({rows(), columns()})));
        std::copy_n(flat.data<float>() + i * rows() * columns(), rows() * columns(),
                    part.data<float>());
        parts_.push_back(f_.Const(part, like_));
      }
      return OkStatus();
    }
    if (count == 1) {
      if (shape_.rank() == 2 || !flat_) {
        parts_ = {e_};
        return OkStatus();
      }
      ASSIGN_OR_RETURN(parts_.emplace_back(), f_.Reshape(e_, matrix, like_));
      return OkStatus();
    }
    Endpoint all = e_;
    if (shape_.rank() != 3) {
      ASSIGN_OR_RETURN(all, f_.Reshape(e_, {count, rows(), columns()}, like_));
    }
    const Endpoint axis = {f_.graph().AddConst(like_.name(), Tensor::Scalar<int32_t>(0)), 0};
    AttrMap options;
    options.Set("num_splits", count);
    options.Set("Tin", DtypeVector{Dtype::kInt32, Dtype::kFloat});
    options.Set("Tout", DtypeVector(static_cast<size_t>(count), Dtype::kFloat));
    options.Set(kOutputShapes, std::vector<PartialShape>(
                                   static_cast<size_t>(count),
                                   PartialShape::Of(std::vector<int64_t>{1, rows(), columns()})));
    ASSIGN_OR_RETURN(Node * split,
                     f_.graph().Add(like_.name(), "tfl.split", {axis, all}, std::move(options)));
    for (int i = 0; i < count; ++i) {
      parts_.push_back({split, i});
      if (!flat_) continue;
      ASSIGN_OR_RETURN(parts_.back(), f_.Reshape(parts_.back(), matrix, like_));
    }
    return OkStatus();
  }

  const Endpoint e_;
  const PartialShape shape_;
  const bool transposed_, flat_;
  const Node& like_;
  Fuser& f_;
  std::vector<Endpoint> parts_;
  std::map<int64_t, Endpoint> made_;
};

// For runtimes and accelerators without BATCH_MATMUL: a product for each pair of matrices.
StatusOr<bool> UnfoldBatchMatmul(Node& n, Fuser& f) {
  const PartialShape to = Fuser::shape({&n, 0});
  if (Fuser::type(n.input(0)) != Dtype::kFloat || Fuser::type(n.input(1)) != Dtype::kFloat) {
    return f.Declined(n, "it does not multiply floats");
  }
  if (!Fuser::shape(n.input(0)).fully_known() || !Fuser::shape(n.input(1)).fully_known()) {
    return f.Declined(n, "sizes of its inputs are free");
  }
  Matrices left(n.input(0), n.Bool("adj_x"), true, n, f);
  Matrices right(n.input(1), !n.Bool("adj_y"), false, n, f);
  const auto batch = BatchOf(left.shape(), right.shape());
  if (!batch || !to.fully_known() || to.rank() < 2) return f.Declined(n, "its batches differ");
  int64_t count = 1;
  for (const int64_t size : *batch) count *= size;
  constexpr int64_t kMostProducts = 1024;
  if (count < 1 || count > kMostProducts) {
    return f.Declined(n, absl::StrCat("it is ", count, " products, and more than ", kMostProducts,
                                      " are not spelled out"));
  }
  const std::vector<int64_t> matrix = {to[to.rank() - 2], to[to.rank() - 1]};
  std::vector<Endpoint> products;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const Endpoint x, left.At(MatrixAt(left.shape(), *batch, i)));
    ASSIGN_OR_RETURN(const Endpoint y, right.At(MatrixAt(right.shape(), *batch, i)));
    const Endpoint none = {*f.graph().Add(n.name(), "tfl.no_value", {}), 0};
    ASSIGN_OR_RETURN(products.emplace_back(),
                     f.AddShaped("tfl.fully_connected", {x, y, none}, {}, Dtype::kFloat,
                                 PartialShape::Of(matrix), n));
  }
  Endpoint all = products[0];
  if (count > 1) {
    AttrMap options;
    options.Set("values_count", count);
    ASSIGN_OR_RETURN(
        all, f.AddShaped("tfl.pack", products, std::move(options), Dtype::kFloat,
                         PartialShape::Of(std::vector<int64_t>{count, matrix[0], matrix[1]}), n));
  }
  if (!(Fuser::shape(all) == to)) {
    ASSIGN_OR_RETURN(all, f.Reshape(all, StatedSizes(to), n));
  }
  f.Replace(&n, all);
  return true;
}

constexpr Fusion kUnfoldFusions[] = {
    {.name = "UnfoldBatchMatmul",
     .ops = {"tfl.batch_matmul"},
     .apply = UnfoldBatchMatmul,
     .what = "batch_matmul(x, y) of known sizes -> pack(fully_connected of each matrix), on "
             "request alone",
     .on_request = true},
};

}  // namespace

std::span<const Fusion> UnfoldFusions() { return kUnfoldFusions; }

}  // namespace smelt
