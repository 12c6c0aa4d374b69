#include "smelt/kernels/onednn/primitive.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "smelt/base/parallel.h"
#include "smelt/base/resting.h"
#include "smelt/kernels/onednn/conv_layout.h"
#include "smelt/kernels/onednn/library.h"

namespace smelt::onednn {
namespace {

// Windows come from graphs that are not trusted, and the library multiplies their sizes as int.
Status CheckWindow(const Window& w, std::span<const int64_t> kernel) {
  constexpr int64_t kLimit = 1 << 15;
  for (const Dims* dims : {&w.strides, &w.dilations, &w.pad_before, &w.pad_after}) {
    for (const int64_t d : *dims) {
      if (d < 0 || d > kLimit) return Unimplemented("oneDNN: window too large");
    }
  }
  for (const int64_t d : kernel) {
    if (d > kLimit) return Unimplemented("oneDNN: window too large");
  }
  return OkStatus();
}

// As the library counts them: 0 is dense.
Dims Dilates(const Window& w) {
  Dims dilates(w.dilations);
  for (int64_t& d : dilates) d -= 1;
  return dilates;
}

// oneDNN's descriptions of a convolution's tensors, the same for all kinds of convolutions.
struct ConvolutionDescs {
  dnnl_memory_desc_t src, given_weights, weights, dst;  // weights: as the library likes
  Dims dilates;
};
StatusOr<ConvolutionDescs> DescribeConvolution(const Layout& src, const Layout& weights,
                                               const Layout& dst, const Window& window) {
  RETURN_IF_ERROR(
      CheckWindow(window, std::span<const int64_t>(weights.dims).last(window.strides.size())));
  ConvolutionDescs d;
  ASSIGN_OR_RETURN(d.src, DescOf(src));
  ASSIGN_OR_RETURN(d.given_weights, DescOf(weights));
  ASSIGN_OR_RETURN(d.weights, AnyDescOf(weights));
  ASSIGN_OR_RETURN(d.dst, DescOf(dst));
  d.dilates = Dilates(window);
  return d;
}

// Memory objects of one execution. They only carry pointers, which each execution sets.
struct ArgSet {
  std::vector<dnnl_exec_arg_t> args;
  ~ArgSet() {
    for (const dnnl_exec_arg_t& a : args) dnnl_memory_destroy(a.memory);
  }
};

struct Attributes {
  dnnl_primitive_attr_t attr = nullptr;
  dnnl_post_ops_t ops = nullptr;
  ~Attributes() {
    if (attr != nullptr) dnnl_primitive_attr_destroy(attr);
    if (ops != nullptr) dnnl_post_ops_destroy(ops);
  }
};

dnnl_alg_kind_t EltwiseKind(PostOp::Kind kind) {
  switch (kind) {
    case PostOp::Kind::kRelu:
      return dnnl_eltwise_relu;
    case PostOp::Kind::kClip:
      return dnnl_eltwise_clip;
    case PostOp::Kind::kElu:
      return dnnl_eltwise_elu;
    case PostOp::Kind::kTanh:
      return dnnl_eltwise_tanh;
    case PostOp::Kind::kLogistic:
      return dnnl_eltwise_logistic;
    case PostOp::Kind::kGeluErf:
      return dnnl_eltwise_gelu_erf;
    case PostOp::Kind::kGeluTanh:
      return dnnl_eltwise_gelu_tanh;
    case PostOp::Kind::kSwish:
      return dnnl_eltwise_swish;
    case PostOp::Kind::kLinear:
      return dnnl_eltwise_linear;
    default:
      return dnnl_eltwise_hardswish;
  }
}

// Below this many multiply-adds a primitive runs in the calling thread: waking a team costs
// microseconds at best, and the scheduler's time slice where another process holds a core.
constexpr double kWorkOfTeam = 1 << 16;

// As floating point: a product of sizes that are not trusted may overflow.
double Elements(const Layout& l) {
  double n = 1;
  for (const int64_t d : l.dims) n *= static_cast<double>(d);
  return n;
}
// `spread`: the image in which each position meets the whole window.
double ConvolutionWork(const Layout& spread, const Layout& weights) {
  return Elements(spread) / std::max<double>(1, static_cast<double>(spread.dims[1])) *
         Elements(weights);
}

absl::string_view ImplementationOf(const_dnnl_primitive_desc_t desc) {
  const char* name = nullptr;
  dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, static_cast<void*>(&name));
  return name == nullptr ? "" : name;
}

}  // namespace

struct Primitive::Impl {
  dnnl_primitive_desc_t desc = nullptr;
  dnnl_primitive_t primitive = nullptr;
  // What Run's tensors are: argument numbers and layouts.
  std::vector<std::pair<int, dnnl_memory_desc_t>> tensors;
  dnnl_memory_desc_t given_weights{}, weights{};  // the caller's, and what Run takes
  bool packs = false;
  dnnl_memory_desc_t scratch{};
  size_t scratch_bytes = 0;
  bool alone = false;  // compiled for the calling thread, without its team
  // Run first copies tensor number sum_from into tensor number sum_into, dst; -1: nothing.
  int sum_from = -1, sum_into = -1;
  // Argument sets that no execution uses; executions that find none make their own.
  mutable Resting<ArgSet> resting;

  ~Impl() {
    if (primitive != nullptr) dnnl_primitive_destroy(primitive);
    if (desc != nullptr) dnnl_primitive_desc_destroy(desc);
  }

  // `depth_dim`: the result's dimension that scales go along. `sum`: the kAdd whose tensor will lie
  // where the result goes.
  Status SetAttributes(std::span<const PostOp> post_ops, const Quantization* q, int depth_dim,
                       Attributes* out, int sum = -1) {
    DNNL_RETURN_IF_ERROR(dnnl_primitive_attr_create(&out->attr), "attributes");
    DNNL_RETURN_IF_ERROR(
        dnnl_primitive_attr_set_scratchpad_mode(out->attr, dnnl_scratchpad_mode_user),
        "attributes");
    if (q != nullptr) {
      const int mask = q->scales.size() > 1 ? 1 << depth_dim : 0;
      DNNL_RETURN_IF_ERROR(
          dnnl_primitive_attr_set_output_scales(
              out->attr, static_cast<dnnl_dim_t>(q->scales.size()), mask, q->scales.data()),
          "attributes");
      if (q->src_zero != 0) {
        DNNL_RETURN_IF_ERROR(
            dnnl_primitive_attr_set_zero_points(out->attr, DNNL_ARG_SRC, 1, 0, &q->src_zero),
            "attributes");
      }
    }
    if (post_ops.empty()) return OkStatus();
    DNNL_RETURN_IF_ERROR(dnnl_post_ops_create(&out->ops), "attributes");
    for (size_t i = 0; i < post_ops.size(); ++i) {
      const PostOp& p = post_ops[i];
      if (static_cast<int>(i) == sum) {
        DNNL_RETURN_IF_ERROR(dnnl_post_ops_append_sum_v3(out->ops, p.operand_scale, p.operand_zero,
                                                         dnnl_data_type_undef),
                             "post-op");
      } else if (p.takes_tensor()) {
        if (p.operand_scale != 1 || p.operand_zero != 0) {
          return Unimplemented("oneDNN: a scaled operand is only summed into dst");
        }
        ASSIGN_OR_RETURN(const dnnl_memory_desc_t md, DescOf(p.operand));
        const auto kind = p.kind == PostOp::Kind::kAdd ? dnnl_binary_add : dnnl_binary_mul;
        DNNL_RETURN_IF_ERROR(dnnl_post_ops_append_binary(out->ops, kind, &md), "post-op");
      } else {
        const float alpha = p.kind == PostOp::Kind::kSwish ? 1.0f : p.alpha;
        DNNL_RETURN_IF_ERROR(
            dnnl_post_ops_append_eltwise(out->ops, 1.0f, EltwiseKind(p.kind), alpha, p.beta),
            "post-op");
      }
    }
    DNNL_RETURN_IF_ERROR(dnnl_primitive_attr_set_post_ops(out->attr, out->ops), "attributes");
    return OkStatus();
  }

  // Lets the library choose its code. `work`: multiply-adds. `forward`: of a gradient the primitive
  // of the forward operation.
  Status Choose(const void* op_desc, double work, const Attributes& attributes,
                const_dnnl_primitive_desc_t forward = nullptr) {
    alone = work < kWorkOfTeam;
    const OutsideTeam planning;
    const ScopedThreads team(TeamSize());
    if (desc != nullptr) dnnl_primitive_desc_destroy(desc);
    desc = nullptr;
    DNNL_RETURN_IF_ERROR(
        dnnl_primitive_desc_create(&desc, op_desc, attributes.attr, Engine(), forward),
        "primitive");
    return OkStatus();
  }

  Status Compile() {
    const OutsideTeam planning;
    const ScopedThreads team(TeamSize());
    DNNL_RETURN_IF_ERROR(dnnl_primitive_create(&primitive, desc), "primitive");
    if (const auto* md = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0)) {
      scratch = *md;
      scratch_bytes = dnnl_memory_desc_get_size(md);
    }
    return OkStatus();
  }

  int TeamSize() const { return alone ? 1 : Threads(); }

  // Compiled code for an operation without post-ops and quantization.
  static StatusOr<std::unique_ptr<Impl>> Plain(const void* op_desc, double work,
                                               const_dnnl_primitive_desc_t forward = nullptr) {
    auto impl = std::make_unique<Impl>();
    Attributes attributes;
    RETURN_IF_ERROR(impl->SetAttributes({}, nullptr, 0, &attributes));
    RETURN_IF_ERROR(impl->Choose(op_desc, work, attributes, forward));
    RETURN_IF_ERROR(impl->Compile());
    return impl;
  }

  // The library's plain loops are slower than the way through float.
  Status RefuseReference() const {
    if (!absl::StartsWith(ImplementationOf(desc), "ref")) return OkStatus();
    return Unimplemented("oneDNN has but plain loops");
  }

  void AddTensor(int arg, const dnnl_memory_desc_t& md) { tensors.emplace_back(arg, md); }

  // Src, weights, bias, dst and post-op operands of a compiled primitive that has weights.
  Status ListTensors(const dnnl_memory_desc_t& src, const dnnl_memory_desc_t& given, bool has_bias,
                     const dnnl_memory_desc_t* bias, const dnnl_memory_desc_t& dst,
                     std::span<const PostOp> post_ops, int sum = -1) {
    given_weights = given;
    weights = *dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    packs = dnnl_memory_desc_equal(&given_weights, &weights) == 0;
    AddTensor(DNNL_ARG_SRC, src);
    AddTensor(DNNL_ARG_WEIGHTS, weights);
    if (has_bias) AddTensor(DNNL_ARG_BIAS, *bias);
    AddTensor(DNNL_ARG_DST, dst);
    const int into = static_cast<int>(tensors.size()) - 1;
    for (size_t i = 0; i < post_ops.size(); ++i) {
      if (!post_ops[i].takes_tensor()) continue;
      if (static_cast<int>(i) == sum) {
        sum_from = static_cast<int>(tensors.size());
        sum_into = into;
      }
      ASSIGN_OR_RETURN(const dnnl_memory_desc_t md, DescOf(post_ops[i].operand));
      AddTensor(DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1, md);
    }
    return OkStatus();
  }

  StatusOr<std::unique_ptr<ArgSet>> MakeArgs() const {
    auto set = std::make_unique<ArgSet>();
    set->args.reserve(tensors.size() + 1);
    const auto add = [&](int arg, const dnnl_memory_desc_t& md) -> Status {
      dnnl_memory_t m = nullptr;
      DNNL_RETURN_IF_ERROR(dnnl_memory_create(&m, &md, Engine(), DNNL_MEMORY_NONE), "memory");
      set->args.push_back({arg, m});
      return OkStatus();
    };
    for (const auto& [arg, md] : tensors) RETURN_IF_ERROR(add(arg, md));
    if (scratch_bytes > 0) RETURN_IF_ERROR(add(DNNL_ARG_SCRATCHPAD, scratch));
    return set;
  }
};

Primitive::Primitive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Primitive::~Primitive() = default;

StatusOr<std::unique_ptr<Primitive>> Primitive::Convolution(
    const Layout& src, const Layout& weights, const Layout& bias, const Layout& dst,
    const Window& window, std::span<const PostOp> post_ops, const Quantization* q) {
  ASSIGN_OR_RETURN(const ConvolutionDescs c, DescribeConvolution(src, weights, dst, window));
  dnnl_memory_desc_t bias_md{};
  if (bias.present()) {
    ASSIGN_OR_RETURN(bias_md, DescOf(bias));
  }
  dnnl_convolution_desc_t d;
  DNNL_RETURN_IF_ERROR(dnnl_dilated_convolution_forward_desc_init(
                           &d, dnnl_forward_inference, dnnl_convolution_direct, &c.src, &c.weights,
                           bias.present() ? &bias_md : nullptr, &c.dst, window.strides.data(),
                           c.dilates.data(), window.pad_before.data(), window.pad_after.data()),
                       "convolution");
  auto impl = std::make_unique<Impl>();
  const double work = ConvolutionWork(dst, weights);
  int sum = WholeAddend(post_ops, dst);
  // Its brgemm fails where there is nothing to multiply before the sum.
  if (sum >= 0 && SeesPaddingAlone(src, weights, dst, window)) sum = -1;
  if (sum >= 0) {
    // The library's fastest code (brgemm) can add to what dst holds, but no other whole tensor;
    // that by plain products (gemm) adds a whole tensor wrongly unless dst holds it.
    Attributes attributes;
    RETURN_IF_ERROR(impl->SetAttributes(post_ops, q, 1, &attributes, sum));
    const Status chosen = impl->Choose(&d, work, attributes);
    if (dst.dtype == Dtype::kInt8 || dst.dtype == Dtype::kUint8) {
      // The scales of an int8 operand are those of a sum.
      RETURN_IF_ERROR(chosen);
    } else if (!chosen.ok() || (!absl::StrContains(ImplementationOf(impl->desc), "gemm") &&
                                !absl::StartsWith(ImplementationOf(impl->desc), "brg"))) {
      sum = -1;
    }
  }
  Attributes attributes;
  if (sum < 0) {
    RETURN_IF_ERROR(impl->SetAttributes(post_ops, q, 1, &attributes));
    RETURN_IF_ERROR(impl->Choose(&d, work, attributes));
  }
  const bool plain_products = absl::StrContains(ImplementationOf(impl->desc), "x64:gemm");
  for (size_t i = 0; plain_products && i < post_ops.size(); ++i) {
    if (static_cast<int>(i) == sum || !post_ops[i].operand.present()) continue;
    // It adds no second tensor, and in three dimensions gives channels the operands of others.
    if (AddsWhole(post_ops[i], dst) || window.strides.size() == 3) {
      return Unimplemented("a convolution by plain products and such an operand");
    }
  }
  RETURN_IF_ERROR(impl->Compile());
  if (src.dtype != Dtype::kFloat) RETURN_IF_ERROR(impl->RefuseReference());
  RETURN_IF_ERROR(
      impl->ListTensors(c.src, c.given_weights, bias.present(), &bias_md, c.dst, post_ops, sum));
  return std::unique_ptr<Primitive>(new Primitive(std::move(impl)));
}

StatusOr<std::unique_ptr<Primitive>> Primitive::Deconvolution(const Layout& src,
                                                              const Layout& weights,
                                                              const Layout& dst,
                                                              const Window& window) {
  ASSIGN_OR_RETURN(const ConvolutionDescs c, DescribeConvolution(src, weights, dst, window));
  dnnl_deconvolution_desc_t d;
  DNNL_RETURN_IF_ERROR(dnnl_dilated_deconvolution_forward_desc_init(
                           &d, dnnl_forward_inference, dnnl_deconvolution_direct, &c.src,
                           &c.weights, nullptr, &c.dst, window.strides.data(), c.dilates.data(),
                           window.pad_before.data(), window.pad_after.data()),
                       "deconvolution");
  ASSIGN_OR_RETURN(auto impl, Impl::Plain(&d, ConvolutionWork(src, weights)));
  RETURN_IF_ERROR(impl->ListTensors(c.src, c.given_weights, false, nullptr, c.dst, {}));
  return std::unique_ptr<Primitive>(new Primitive(std::move(impl)));
}

StatusOr<std::unique_ptr<Primitive>> Primitive::ConvolutionWeightsGrad(const Layout& src,
                                                                       const Layout& dst_grad,
                                                                       const Layout& weights_grad,
                                                                       const Window& window) {
  ASSIGN_OR_RETURN(const ConvolutionDescs c,
                   DescribeConvolution(src, weights_grad, dst_grad, window));
  const double work = ConvolutionWork(dst_grad, weights_grad);
  Impl forward;
  Attributes none;
  dnnl_convolution_desc_t forward_desc, d;
  DNNL_RETURN_IF_ERROR(dnnl_dilated_convolution_forward_desc_init(
                           &forward_desc, dnnl_forward_training, dnnl_convolution_direct, &c.src,
                           &c.given_weights, nullptr, &c.dst, window.strides.data(),
                           c.dilates.data(), window.pad_before.data(), window.pad_after.data()),
                       "convolution");
  RETURN_IF_ERROR(forward.SetAttributes({}, nullptr, 0, &none));
  RETURN_IF_ERROR(forward.Choose(&forward_desc, work, none));
  DNNL_RETURN_IF_ERROR(dnnl_dilated_convolution_backward_weights_desc_init(
                           &d, dnnl_convolution_direct, &c.src, &c.given_weights, nullptr, &c.dst,
                           window.strides.data(), c.dilates.data(), window.pad_before.data(),
                           window.pad_after.data()),
                       "gradient of convolution");
  ASSIGN_OR_RETURN(auto impl, Impl::Plain(&d, work, forward.desc));
  impl->AddTensor(DNNL_ARG_SRC, c.src);
  impl->AddTensor(DNNL_ARG_DIFF_DST, c.dst);
  impl->AddTensor(DNNL_ARG_DIFF_WEIGHTS, c.given_weights);
  return std::unique_ptr<Primitive>(new Primitive(std::move(impl)));
}

StatusOr<std::unique_ptr<Primitive>> Primitive::Matmul(const Layout& src, const Layout& weights,
                                                       bool pack, const Layout& bias,
                                                       const Layout& dst,
                                                       std::span<const PostOp> post_ops,
                                                       const Quantization* q) {
  ASSIGN_OR_RETURN(const dnnl_memory_desc_t src_md, DescOf(src));
  ASSIGN_OR_RETURN(const dnnl_memory_desc_t given_md, DescOf(weights));
  dnnl_memory_desc_t weights_md = given_md;
  if (pack) {
    ASSIGN_OR_RETURN(weights_md, AnyDescOf(weights));
  }
  ASSIGN_OR_RETURN(const dnnl_memory_desc_t dst_md, DescOf(dst));
  dnnl_memory_desc_t bias_md{};
  if (bias.present()) {
    ASSIGN_OR_RETURN(bias_md, DescOf(bias));
  }
  dnnl_matmul_desc_t d;
  DNNL_RETURN_IF_ERROR(
      dnnl_matmul_desc_init(&d, &src_md, &weights_md, bias.present() ? &bias_md : nullptr, &dst_md),
      "matmul");
  auto impl = std::make_unique<Impl>();
  Attributes attributes;
  RETURN_IF_ERROR(impl->SetAttributes(post_ops, q, dst_md.ndims - 1, &attributes));
  RETURN_IF_ERROR(
      impl->Choose(&d, Elements(dst) * static_cast<double>(src.dims.back()), attributes));
  RETURN_IF_ERROR(impl->Compile());
  if (src.dtype != Dtype::kFloat) RETURN_IF_ERROR(impl->RefuseReference());
  RETURN_IF_ERROR(impl->ListTensors(src_md, given_md, bias.present(), &bias_md, dst_md, post_ops));
  return std::unique_ptr<Primitive>(new Primitive(std::move(impl)));
}

StatusOr<std::unique_ptr<Primitive>> Primitive::Pooling(Pool kind, const Layout& src,
                                                        const Layout& dst, const Window& window,
                                                        std::span<const int64_t> kernel) {
  RETURN_IF_ERROR(CheckWindow(window, kernel));
  ASSIGN_OR_RETURN(const dnnl_memory_desc_t src_md, DescOf(src));
  ASSIGN_OR_RETURN(const dnnl_memory_desc_t dst_md, DescOf(dst));
  const Dims dilates = Dilates(window);
  dnnl_pooling_v2_desc_t d;
  DNNL_RETURN_IF_ERROR(dnnl_pooling_v2_forward_desc_init(
                           &d, dnnl_forward_inference,
                           kind == Pool::kMax ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding,
                           &src_md, &dst_md, window.strides.data(), kernel.data(), dilates.data(),
                           window.pad_before.data(), window.pad_after.data()),
                       "pooling");
  double work = 8 * Elements(dst);  // a comparison takes as long as some multiply-adds
  for (const int64_t k : kernel) work *= static_cast<double>(k);
  ASSIGN_OR_RETURN(auto impl, Impl::Plain(&d, work));
  if (src.dtype != Dtype::kFloat) RETURN_IF_ERROR(impl->RefuseReference());
  impl->AddTensor(DNNL_ARG_SRC, src_md);
  impl->AddTensor(DNNL_ARG_DST, dst_md);
  return std::unique_ptr<Primitive>(new Primitive(std::move(impl)));
}

bool Primitive::packs_weights() const { return impl_->packs; }

size_t Primitive::weights_bytes() const { return dnnl_memory_desc_get_size(&impl_->weights); }

bool Primitive::PacksAlike(const Primitive& o) const {
  return dnnl_memory_desc_equal(&impl_->given_weights, &o.impl_->given_weights) != 0 &&
         dnnl_memory_desc_equal(&impl_->weights, &o.impl_->weights) != 0;
}

std::string Primitive::PackingText() const {
  const std::string given = TextOf(impl_->given_weights), wanted = TextOf(impl_->weights);
  if (given.empty() || wanted.empty()) return "";
  return absl::StrCat("the library's: ", given, " as ", wanted);
}

namespace {

// Where the thread is as one without a team.
struct AloneForNow {
  const OutsideTeam outside;
  const ScopedThreads one;
  AloneForNow() : one(1) {}
};

// A member of a team does all of it: the library plans for a number of threads, and what each adds
// up for int8 weights lies where its number says.
struct Reorder {
  std::optional<AloneForNow> alone;
  dnnl_primitive_attr_t attr = nullptr;
  dnnl_primitive_desc_t desc = nullptr;
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_t from = nullptr;
  dnnl_memory_t to = nullptr;
  Reorder() {
    if (InTeam()) alone.emplace();
  }
  ~Reorder() {
    if (primitive != nullptr) dnnl_primitive_destroy(primitive);
    if (desc != nullptr) dnnl_primitive_desc_destroy(desc);
    if (attr != nullptr) dnnl_primitive_attr_destroy(attr);
    if (from != nullptr) dnnl_memory_destroy(from);
    if (to != nullptr) dnnl_memory_destroy(to);
  }

  Status Scale(std::span<const float> factors, int mask) {
    DNNL_RETURN_IF_ERROR(dnnl_primitive_attr_create(&attr), "attributes");
    DNNL_RETURN_IF_ERROR(dnnl_primitive_attr_set_output_scales(
                             attr, static_cast<dnnl_dim_t>(factors.size()), mask, factors.data()),
                         "attributes");
    return OkStatus();
  }
  Status Choose(const dnnl_memory_desc_t& from_md, const dnnl_memory_desc_t& to_md) {
    DNNL_RETURN_IF_ERROR(
        dnnl_reorder_primitive_desc_create(&desc, &from_md, Engine(), &to_md, Engine(), attr),
        "reorder");
    return OkStatus();
  }
  Status Run(const dnnl_memory_desc_t& from_md, const void* source, const dnnl_memory_desc_t& to_md,
             void* target) {
    DNNL_RETURN_IF_ERROR(dnnl_primitive_create(&primitive, desc), "reorder");
    DNNL_RETURN_IF_ERROR(dnnl_memory_create(&from, &from_md, Engine(), const_cast<void*>(source)),
                         "memory");
    DNNL_RETURN_IF_ERROR(dnnl_memory_create(&to, &to_md, Engine(), target), "memory");
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    DNNL_RETURN_IF_ERROR(dnnl_primitive_execute(primitive, ThreadStream(), 2, args), "reorder");
    return OkStatus();
  }
};

}  // namespace

Status Primitive::PackWeights(const void* weights, void* packed) const {
  Reorder r;
  RETURN_IF_ERROR(r.Choose(impl_->given_weights, impl_->weights));
  return r.Run(impl_->given_weights, weights, impl_->weights, packed);
}

StatusOr<bool> Primitive::PackScaledWeights(const void* weights, std::span<const float> factors,
                                            void* packed) const {
  const dnnl_memory_desc_t& given = impl_->given_weights;
  int mask = 0;
  size_t places = 1;
  for (int i = 0; i < given.ndims && places < factors.size(); ++i) {
    places *= static_cast<size_t>(given.dims[i]);
    mask |= 1 << i;
  }
  if (places != factors.size()) return false;
  Reorder r;
  // Its plain loops are slower than a pass of our own.
  if (!r.Scale(factors, mask).ok() || !r.Choose(given, impl_->weights).ok() ||
      !absl::StartsWith(ImplementationOf(r.desc), "jit")) {
    return false;
  }
  RETURN_IF_ERROR(r.Run(given, weights, impl_->weights, packed));
  return true;
}

size_t Primitive::scratch_bytes() const { return impl_->scratch_bytes; }

int Primitive::summed_tensor() const { return impl_->sum_from; }

Status Primitive::Run(std::span<const void* const> tensors, Allocator* allocator) const {
  BufferRef scratch;
  if (impl_->scratch_bytes > 0) {
    ASSIGN_OR_RETURN(scratch, allocator->Allocate(impl_->scratch_bytes));
  }
  return Run(tensors, scratch ? scratch->data() : nullptr);
}

Status Primitive::Run(std::span<const void* const> tensors, void* scratch) const {
  const Impl& impl = *impl_;
  const ScopedThreads team(impl.TeamSize());
  if (impl.sum_from >= 0 && tensors[impl.sum_from] != tensors[impl.sum_into]) {
    const auto* from = static_cast<const char*>(tensors[impl.sum_from]);
    auto* into = static_cast<char*>(const_cast<void*>(tensors[impl.sum_into]));
    const size_t bytes = dnnl_memory_desc_get_size(&impl.tensors[impl.sum_into].second);
    ParallelFor(static_cast<int64_t>(bytes), 1 << 17, [&](int64_t begin, int64_t end) {
      std::memcpy(into + begin, from + begin, end - begin);
    });
  }
  std::unique_ptr<ArgSet> set = impl.resting.Take();
  if (set == nullptr) {
    ASSIGN_OR_RETURN(set, impl.MakeArgs());
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    DNNL_RETURN_IF_ERROR(
        dnnl_memory_set_data_handle(set->args[i].memory, const_cast<void*>(tensors[i])), "memory");
  }
  if (impl.scratch_bytes > 0) {
    DNNL_RETURN_IF_ERROR(dnnl_memory_set_data_handle(set->args.back().memory, scratch), "memory");
  }
  DNNL_RETURN_IF_ERROR(dnnl_primitive_execute(impl.primitive, ThreadStream(),
                                              static_cast<int>(set->args.size()), set->args.data()),
                       "execution");
  impl.resting.Rest(std::move(set));
  return OkStatus();
}

}  // namespace smelt::onednn
