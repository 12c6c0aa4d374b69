// Diagonals: MatrixDiag, MatrixDiagPart and MatrixSetDiag (all versions), MatrixBandPart, Diag,
// DiagPart.
#include <algorithm>

#include "smelt/kernels/common/arguments.h"
#include "smelt/kernels/common/copy.h"

namespace smelt {
namespace {

// The diagonals [lower, upper] of matrices [rows, cols], stored as rows of `width` elements, the
// uppermost first; a shorter diagonal lies at the left or right end of its row.
struct DiagBand {
  int64_t lower = 0, upper = 0, rows = 0, cols = 0, width = 0;
  bool left_above = false, left_below = true;  // align: super- and subdiagonals at the left?

  int64_t count() const { return upper - lower + 1; }
  int64_t Length(int64_t d) const {
    return std::min(rows + std::min<int64_t>(0, d), cols - std::max<int64_t>(0, d));
  }
  // Where diagonal d begins in its row.
  int64_t Offset(int64_t d) const {
    const bool left = d >= 0 ? left_above : left_below;
    return left ? 0 : width - Length(d);
  }
};

struct DiagAlign final : KernelState {
  bool left_above = true, left_below = true;
};

// V3 ops have the attribute align; the older ones put every diagonal at the left.
StatusOr<std::unique_ptr<KernelState>> PrepareDiag(const Node& node) {
  auto state = std::make_unique<DiagAlign>();
  const Attr* attr = node.Find("align");
  if (attr != nullptr && attr->get<std::string>() != nullptr) {
    const std::string& align = *attr->get<std::string>();
    if (align != "LEFT_RIGHT" && align != "RIGHT_LEFT" && align != "LEFT_LEFT" &&
        align != "RIGHT_RIGHT") {
      return InvalidArgument("Value for attr 'align' of \"", align, "\" is not in the list of ",
                             "allowed values: \"LEFT_RIGHT\", \"RIGHT_LEFT\", \"LEFT_LEFT\", ",
                             "\"RIGHT_RIGHT\"");
    }
    state->left_above = align.starts_with("LEFT");
    state->left_below = align.ends_with("LEFT");
  }
  return state;
}

Status CheckDiagOrder(const DiagBand& b) {
  if (b.lower <= b.upper) return OkStatus();
  return InvalidArgument("lower_diag_index must not be larger than upper_diag_index: ", b.lower,
                         " > ", b.upper);
}

Status ReadDiagRange(const Tensor& k, absl::string_view none, DiagBand* band) {
  const int64_t n = k.num_elements();
  if (k.rank() > 1) {
    return InvalidArgument("diag_index must be a scalar or vector, received shape: ",
                           k.shape().ToString());
  }
  if (n < 1) {
    return InvalidArgument(none);
  }
  if (n > 2) {
    return InvalidArgument("diag_index must have only one or two elements, received ", n,
                           " elements.");
  }
  band->lower = IndexAt(k, 0);
  band->upper = IndexAt(k, n - 1);
  return OkStatus();
}

Status CheckDiagRange(const DiagBand& b, absl::string_view stop) {
  if (!((b.lower > -b.rows && b.lower < b.cols) || b.lower == 0)) {
    return InvalidArgument("lower_diag_index is out of bound: ", b.lower, stop,
                           " It must be between ", -b.rows, " and ", b.cols);
  }
  if (!((b.upper > -b.rows && b.upper < b.cols) || b.upper == 0)) {
    return InvalidArgument("upper_diag_index is out of bound: ", b.upper, " It must be between ",
                           -b.rows, " and ", b.cols);
  }
  return CheckDiagOrder(b);
}

// Copies the diagonals of one matrix to rows of `width`, or back.
template <typename T>
void CopyDiagonals(const DiagBand& b, T* matrix, T* rows, bool to_matrix) {
  for (int64_t d = b.upper; d >= b.lower; --d) {
    T* row = rows + (b.upper - d) * b.width + b.Offset(d);
    T* cell = matrix + (d >= 0 ? d : -d * b.cols);
    const int64_t n = b.Length(d);
    for (int64_t i = 0; i < n; ++i) {
      if (to_matrix) {
        cell[i * (b.cols + 1)] = row[i];
      } else {
        row[i] = cell[i * (b.cols + 1)];
      }
    }
  }
}

Status ScalarInput(const Tensor& t, absl::string_view name) {
  if (t.rank() == 0) return OkStatus();
  return InvalidArgument(name, " must be a scalar");
}

Status RunMatrixDiag(OpContext& ctx) {
  const Tensor& diagonal = ctx.input(0);
  DiagBand b;
  b.left_above = ctx.state<DiagAlign>().left_above;
  b.left_below = ctx.state<DiagAlign>().left_below;
  int64_t given_rows = -1, given_cols = -1;
  const bool extended = ctx.num_inputs() > 1;
  if (extended) {
    RETURN_IF_ERROR(
        ReadDiagRange(ctx.input(1), "Expected diag_index to have at least 1 element", &b));
    RETURN_IF_ERROR(ScalarInput(ctx.input(2), "num_rows"));
    RETURN_IF_ERROR(ScalarInput(ctx.input(3), "num_cols"));
    RETURN_IF_ERROR(ScalarInput(ctx.input(4), "padding_value"));
    given_rows = IndexAt(ctx.input(2), 0);
    given_cols = IndexAt(ctx.input(3), 0);
  }
  const int rank = diagonal.rank();
  if (rank < 1) {
    return InvalidArgument("diagonal must be at least 1-dim, received shape: ",
                           diagonal.shape().ToString());
  }
  RETURN_IF_ERROR(CheckDiagOrder(b));
  const bool one = b.count() == 1;
  if (!one) {
    if (rank < 2 || diagonal.dim(rank - 2) != b.count()) {
      return InvalidArgument("The number of diagonals provided in the input does not match the ",
                             "lower_diag_index and upper_diag_index range.");
    }
  }
  b.width = diagonal.dim(rank - 1);
  const int64_t min_rows = b.width - std::min<int64_t>(b.upper, 0);
  const int64_t min_cols = b.width + std::max<int64_t>(b.lower, 0);
  if (given_rows != -1 && given_rows < min_rows) {
    return InvalidArgument("The number of rows is too small.");
  }
  if (given_cols != -1 && given_cols < min_cols) {
    return InvalidArgument("The number of columns is too small.");
  }
  if (given_rows == -1 && given_cols == -1) {
    b.rows = b.cols = std::max(min_rows, min_cols);
  } else {
    b.rows = given_rows == -1 ? min_rows : given_rows;
    b.cols = given_cols == -1 ? min_cols : given_cols;
  }
  if (b.rows != min_rows && b.cols != min_cols) {
    return InvalidArgument("The number of rows or columns is not consistent with the specified ",
                           "d_lower, d_upper, and diagonal.");
  }
  const int outer = rank - (one ? 1 : 2);
  Dims dims(diagonal.shape().dims().begin(), diagonal.shape().dims().begin() + outer);
  dims.push_back(b.rows);
  dims.push_back(b.cols);
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  if (extended) {
    FillRun(out->dtype(), out->raw(), ctx.input(4).raw(), out->num_elements());
  } else {
    ClearRun(out->dtype(), out->raw(), out->num_elements());
  }
  const int64_t batch = diagonal.shape().Product(0, outer);
  VisitMovable(out->dtype(), [&]<typename T>() {
    T* to = static_cast<T*>(out->raw());
    // CopyDiagonals only reads the rows when it copies to the matrix.
    T* from = const_cast<T*>(static_cast<const T*>(diagonal.raw()));
    for (int64_t i = 0; i < batch; ++i) {
      CopyDiagonals(b, to + i * b.rows * b.cols, from + i * b.count() * b.width, true);
    }
  });
  return OkStatus();
}

Status RunMatrixDiagPart(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int rank = input.rank();
  const bool extended = ctx.num_inputs() > 1;
  DiagBand b;
  b.left_above = ctx.state<DiagAlign>().left_above;
  b.left_below = ctx.state<DiagAlign>().left_below;
  if (extended) {
    RETURN_IF_ERROR(
        ReadDiagRange(ctx.input(1), "Expected diag_index to have at least 1 element", &b));
    if (ctx.input(2).num_elements() != 1) {
      return InvalidArgument("Padding must be scalar.");
    }
  }
  if (rank < 2) {
    return InvalidArgument("input must be at least 2-dim, received shape: ",
                           input.shape().ToString());
  }
  b.rows = input.dim(rank - 2);
  b.cols = input.dim(rank - 1);
  if (extended) RETURN_IF_ERROR(CheckDiagRange(b, "."));
  b.width =
      std::min(b.rows + std::min<int64_t>(b.upper, 0), b.cols - std::max<int64_t>(b.lower, 0));
  Dims dims(input.shape().dims().begin(), input.shape().dims().end() - 2);
  if (b.count() > 1) dims.push_back(b.count());
  dims.push_back(b.width);
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  if (b.count() > 1) FillRun(out->dtype(), out->raw(), ctx.input(2).raw(), out->num_elements());
  const int64_t batch = input.shape().Product(0, rank - 2);
  VisitMovable(out->dtype(), [&]<typename T>() {
    T* to = static_cast<T*>(out->raw());
    T* from = const_cast<T*>(static_cast<const T*>(input.raw()));
    for (int64_t i = 0; i < batch; ++i) {
      CopyDiagonals(b, from + i * b.rows * b.cols, to + i * b.count() * b.width, false);
    }
  });
  return OkStatus();
}

Status RunMatrixSetDiag(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& diagonal = ctx.input(1);
  const int rank = input.rank();
  const bool extended = ctx.num_inputs() > 2;
  DiagBand b;
  b.left_above = ctx.state<DiagAlign>().left_above;
  b.left_below = ctx.state<DiagAlign>().left_below;
  if (extended) {
    RETURN_IF_ERROR(ReadDiagRange(ctx.input(2), "diag_index must have at least one element", &b));
  }
  if (rank < 2) {
    return InvalidArgument("input must be at least 2-dim, received shape: ",
                           input.shape().ToString());
  }
  if (diagonal.rank() < 1) {
    return InvalidArgument("diagonal must be at least 1-dim, received shape: ",
                           diagonal.shape().ToString());
  }
  b.rows = input.dim(rank - 2);
  b.cols = input.dim(rank - 1);
  if (extended) RETURN_IF_ERROR(CheckDiagRange(b, ""));
  b.width =
      std::min(b.rows + std::min<int64_t>(b.upper, 0), b.cols - std::max<int64_t>(b.lower, 0));
  if (b.count() > 1) {
    if (diagonal.rank() < rank - 1 || diagonal.dim(rank - 2) != b.count()) {
      return InvalidArgument("The number of diagonals provided in `diag` is not consistent ",
                             "with `lower_diag_index` and `upper_diag_index`");
    }
  }
  Dims dims(input.shape().dims().begin(), input.shape().dims().end() - 2);
  if (b.count() > 1) dims.push_back(b.count());
  dims.push_back(b.width);
  const Shape expected{std::span<const int64_t>(dims)};
  if (!(diagonal.shape() == expected)) {
    return InvalidArgument(
        "Either first dimensions of diagonal don't match input.shape[:-2], or ",
        "diagonal.shape[:-1] is not equal to the longests diagonal in range ",
        "[lower_diag_index:upper_diag_index].\nInput shape: ", input.shape().ToString(),
        "\nDiagonal shape: ", diagonal.shape().ToString(),
        "\nExpected diagonal shape: ", expected.ToString());
  }
  Tensor out = ctx.TakeInput(0);
  if (!out.Writable() || out.SharesBufferWith(diagonal)) {
    ASSIGN_OR_RETURN(out, out.Clone(ctx.step().allocator));
  }
  const int64_t batch = out.num_elements() == 0 ? 0 : out.shape().Product(0, rank - 2);
  VisitMovable(out.dtype(), [&]<typename T>() {
    T* to = static_cast<T*>(out.raw());
    T* from = const_cast<T*>(static_cast<const T*>(diagonal.raw()));
    for (int64_t i = 0; i < batch; ++i) {
      CopyDiagonals(b, to + i * b.rows * b.cols, from + i * b.count() * b.width, true);
    }
  });
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status RunMatrixBandPart(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int rank = input.rank();
  if (rank < 2) {
    return InvalidArgument("input must be at least 2-dim, received shape: ",
                           input.shape().ToString());
  }
  static constexpr absl::string_view kNames[] = {"num_lower", "num_upper"};
  int64_t keep[2];
  const int64_t rows = input.dim(rank - 2), cols = input.dim(rank - 1);
  for (int i = 0; i < 2; ++i) {
    if (ctx.input(i + 1).rank() != 0) {
      return InvalidArgument(kNames[i], " must be scalar, got shape ",
                             ctx.input(i + 1).shape().ToString());
    }
  }
  for (int i = 0; i < 2; ++i) {
    keep[i] = IndexAt(ctx.input(i + 1), 0);
    const int64_t size = i == 0 ? rows : cols;
    if (keep[i] > size) {
      return InvalidArgument(kNames[i], " must be negative or less or equal to number of ",
                             i == 0 ? "rows" : "columns", " (", size, ") got: ", keep[i]);
    }
    if (keep[i] < 0) keep[i] = size;
  }
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, input.shape()));
  if (input.num_elements() == 0) return OkStatus();
  const Dtype dtype = input.dtype();
  const int64_t lines = input.num_elements() / cols;
  for (int64_t i = 0; i < lines; ++i) {
    const int64_t row = i % rows;
    const int64_t begin = std::clamp<int64_t>(row - keep[0], 0, cols);
    const int64_t end = std::clamp<int64_t>(row + keep[1] + 1, begin, cols);
    void* to = At(dtype, out->raw(), i * cols);
    ClearRun(dtype, to, begin);
    CopyRun(dtype, At(dtype, to, begin), At(dtype, input.raw(), i * cols + begin), end - begin);
    ClearRun(dtype, At(dtype, to, end), cols - end);
  }
  return OkStatus();
}

Status RunDiag(OpContext& ctx) {
  const Tensor& diagonal = ctx.input(0);
  if (diagonal.rank() < 1) {
    return InvalidArgument("Input must be at least rank 1, got 0");
  }
  Dims dims(diagonal.shape().dims().begin(), diagonal.shape().dims().end());
  dims.insert(dims.end(), diagonal.shape().dims().begin(), diagonal.shape().dims().end());
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  ClearRun(out->dtype(), out->raw(), out->num_elements());
  const int64_t n = diagonal.num_elements();
  const CopyDim loop{n, n + 1, 1};
  CopyStrided(diagonal.dtype(), out->raw(), diagonal.raw(), std::span(&loop, 1));
  return OkStatus();
}

Status RunDiagPart(OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const int rank = input.rank();
  if (rank % 2 != 0) {
    // TensorFlow's text has this gap, too.
    return InvalidArgument("The rank of the tensor should be ", std::string(41, ' '),
                           "even and positive, got shape ", input.shape().ToString());
  }
  for (int i = 0; i < rank / 2; ++i) {
    if (input.dim(i) != input.dim(i + rank / 2)) {
      return InvalidArgument("Invalid shape ", input.shape().ToString(), ": dimensions ", i,
                             " and ", i + rank / 2, " do not match.");
    }
  }
  const Shape shape(input.shape().dims().first(static_cast<size_t>(rank / 2)));
  ASSIGN_OR_RETURN(Tensor * out, ctx.Allocate(0, shape));
  const int64_t n = shape.num_elements();
  const CopyDim loop{n, 1, n + 1};
  CopyStrided(input.dtype(), out->raw(), input.raw(), std::span(&loop, 1));
  return OkStatus();
}

constexpr Kernel kDiagTable[] = {
    {"MatrixDiag", "", kAnyType, "movement:matrix_diag", RunMatrixDiag, PrepareDiag},
    {"MatrixDiagPart", "", kAnyType, "movement:matrix_diag", RunMatrixDiagPart, PrepareDiag},
    {"MatrixSetDiag", "", kAnyType, "movement:matrix_diag", RunMatrixSetDiag, PrepareDiag},
    {"MatrixBandPart", "", kAnyType, "movement:matrix_band", RunMatrixBandPart},
    {"Diag", "", kAnyType, "movement:diag", RunDiag},
    {"DiagPart", "", kAnyType, "movement:diag", RunDiagPart},
};

}  // namespace

extern constinit const std::span<const Kernel> kDiagKernels = kDiagTable;

}  // namespace smelt
