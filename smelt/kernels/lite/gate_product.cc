#include "smelt/kernels/lite/gate_product.h"

#include "smelt/base/parallel.h"
#include "smelt/kernels/isa/isa.h"

namespace smelt::lite {
namespace {

// Rows that one call of dense_packed takes.
constexpr int64_t kGateRows = 8;

// Sums of so many products of int8 are within int32.
constexpr int64_t kMostDepth = 1 << 17;

bool AllZero(const float* x, int64_t n) {
  return std::all_of(x, x + n, [](float v) { return v == 0; });
}

}  // namespace

QuantizedRow QuantizeRow(const float* x, int64_t n, bool asymmetric, int8_t* steps) {
  QuantizedRow out;
  if (n == 0) return out;
  const auto [min, max] = std::minmax_element(x, x + n);
  // A row with a NaN has no range that means anything: its steps are those of 0.
  const double low = asymmetric ? std::min(0.0, static_cast<double>(*min)) : *min;
  const double high = asymmetric ? std::max(0.0, static_cast<double>(*max)) : *max;
  const double range = asymmetric ? high - low : std::max(std::abs(low), std::abs(high));
  if (!(range > 0) || !std::isfinite(range)) {
    std::fill(steps, steps + n, int8_t{0});
    return out;
  }
  float inverse = 0;
  if (asymmetric) {
    const double scale = range / 255;
    const double from_low = -128 - low / scale, from_high = 127 - high / scale;
    const double error_low = 128 + std::abs(low / scale), error_high = 127 + std::abs(high / scale);
    const double zero = error_low < error_high ? from_low : from_high;
    out.zero = static_cast<int32_t>(std::round(std::clamp(zero, -128.0, 127.0)));
    out.scale = static_cast<float>(scale);
    inverse = 1.0f / out.scale;
  } else {
    out.scale = static_cast<float>(range) / 127.0f;
    inverse = 127.0f / static_cast<float>(range);
  }
  const float least = asymmetric ? -128.0f : -127.0f;
  for (int64_t i = 0; i < n; ++i) {
    const float step = std::round(static_cast<float>(out.zero) + x[i] * inverse);
    steps[i] = static_cast<int8_t>(step > least ? std::min(step, 127.0f) : least);
  }
  return out;
}

const int8_t* StepsOf(const Tensor& t) {
  if (t.dtype() != Dtype::kInt8 && t.dtype() != Dtype::kUint8) return nullptr;
  return static_cast<const int8_t*>(t.raw());
}

StatusOr<GateProduct> GateProduct::Make(std::span<const Gate> gates, bool asymmetric) {
  GateProduct p;
  const Tensor& first = *gates[0].weights;
  for (const Gate& g : gates) {
    if (g.weights->dtype() != first.dtype() || !(g.weights->shape() == first.shape())) {
      return InvalidArgument("weights of its gates are ", DtypeName(first.dtype()),
                             first.shape().ToString(), " and ", DtypeName(g.weights->dtype()),
                             g.weights->shape().ToString());
    }
  }
  const bool narrow = StepsOf(first) != nullptr;
  if (first.rank() < 1 || first.rank() > 2 || (narrow && first.rank() != 2)) {
    return InvalidArgument("weights of a gate have the shape ", first.shape().ToString());
  }
  if (!narrow && first.dtype() != Dtype::kFloat) {
    return Unimplemented("weights of its gates are ", DtypeName(first.dtype()));
  }
  p.diagonal_ = first.rank() == 1;
  p.asymmetric_ = asymmetric;
  p.units_ = first.dim(0);
  p.depth_ = p.diagonal_ ? p.units_ : first.dim(1);
  p.columns_ = p.units_ * static_cast<int64_t>(gates.size());
  if (narrow) {
    if (p.depth_ > kMostDepth) return Unimplemented("sums of ", p.depth_, " products");
    for (const Gate& g : gates) {
      const int8_t* w = StepsOf(*g.weights);
      p.rows_.insert(p.rows_.end(), w, w + g.weights->num_elements());
      p.scales_.push_back(g.scale);
      for (int64_t u = 0; u < p.units_; ++u) {
        int32_t total = 0;
        for (int64_t i = 0; i < p.depth_; ++i) total += w[u * p.depth_ + i];
        p.totals_.push_back(total);
      }
    }
    return p;
  }
  std::vector<float> rows;
  for (const Gate& g : gates) {
    const float* w = g.weights->data<float>();
    rows.insert(rows.end(), w, w + g.weights->num_elements());
  }
  if (p.diagonal_) {
    p.packed_ = std::move(rows);
    return p;
  }
  const int64_t panel = Isa().dense_panel, panels = (p.columns_ + panel - 1) / panel;
  p.packed_.resize(static_cast<size_t>(p.depth_ * panels * panel));
  Isa().dense_pack_turned(rows.data(), p.depth_, p.depth_, p.columns_, p.packed_.data());
  return p;
}

void GateProduct::AddFloat(const float* x, int64_t rows, float* sums) const {
  const auto& add =
      Isa().binary[static_cast<int>(IsaBinary::kAdd)][static_cast<int>(IsaType::kF32)];
  std::vector<float> part(static_cast<size_t>(std::min(rows, kGateRows) * columns_));
  for (int64_t r = 0; r < rows; r += kGateRows) {
    const int64_t n = std::min(kGateRows, rows - r);
    Isa().dense_packed(x + r * depth_, depth_, n, depth_, packed_.data(), columns_, nullptr,
                       nullptr, UnaryF32::kIdentity, 0, part.data(), columns_);
    float* to = sums + r * columns_;
    add.vv(to, part.data(), to, n * columns_);
  }
}

void GateProduct::AddQuantized(const float* x, float* sums) const {
  // Rows of zeros, as first states are, are left out.
  if (AllZero(x, depth_)) return;
  std::vector<int8_t> steps(static_cast<size_t>(depth_));
  const QuantizedRow row = QuantizeRow(x, depth_, asymmetric_, steps.data());
  for (int64_t c = 0; c < columns_; ++c) {
    const int8_t* w = rows_.data() + c * depth_;
    int32_t sum = 0;
    for (int64_t i = 0; i < depth_; ++i) sum += int32_t{steps[static_cast<size_t>(i)]} * w[i];
    sum -= row.zero * totals_[static_cast<size_t>(c)];
    sums[c] += static_cast<float>(sum) * (row.scale * scales_[static_cast<size_t>(c / units_)]);
  }
}

void GateProduct::Add(const float* x, int64_t rows, float* sums) const {
  if (columns_ == 0 || depth_ == 0) return;
  const int64_t grain = std::max<int64_t>(kGateRows, (1 << 18) / (columns_ * depth_));
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    const float* from = x + begin * depth_;
    float* to = sums + begin * columns_;
    if (rows_.empty() && !diagonal_) return AddFloat(from, end - begin, to);
    for (int64_t r = begin; r < end; ++r, from += depth_, to += columns_) {
      if (!diagonal_) {
        AddQuantized(from, to);
        continue;
      }
      for (int64_t c = 0; c < columns_; ++c) {
        to[c] += packed_[static_cast<size_t>(c)] * from[c % units_];
      }
    }
  });
}

}  // namespace smelt::lite
