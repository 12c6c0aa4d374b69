// Times layers of oneDNN, 2.x or 3.x, for bench/onednn_layers.py, in processes of their own. Lines
// of stdin:
//   conv|deconv|matmul|max|avg NAME=VALUE...  makes a layer (the form is the script's); answers its
//   code's name and
//                                             the sum of one run's results
//   go MS                                     runs it for so many milliseconds; answers the least
//   ns of one run
// What cannot be made answers "refused". Time is the thread's where there is one: others take turns
// on its core.
#include <dnnl.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

extern "C" int omp_get_max_threads();  // <omp.h> is each compiler's own

namespace {

#if DNNL_VERSION_MAJOR >= 3
using Desc = dnnl_memory_desc_t;
using ConstDesc = const_dnnl_memory_desc_t;
size_t Bytes(ConstDesc d) { return dnnl_memory_desc_get_size(d); }
#else
using Desc = dnnl_memory_desc_t;
using ConstDesc = const dnnl_memory_desc_t*;
size_t Bytes(const dnnl_memory_desc_t& d) { return dnnl_memory_desc_get_size(&d); }
#endif

struct Refused {};
void Check(dnnl_status_t s) {
  if (s != dnnl_success) throw Refused();
}

struct Dims {
  dnnl_dims_t at{};
  int n = 0;
  dnnl_dim_t Product() const {
    dnnl_dim_t p = 1;
    for (int i = 0; i < n; ++i) p *= at[i];
    return p;
  }
};

Dims ParseDims(const std::string& text) {
  Dims d;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, 'x');) d.at[d.n++] = std::atoll(part.c_str());
  return d;
}

std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  return parts;
}

dnnl_data_type_t TypeNamed(const std::string& name) {
  static const std::map<std::string, dnnl_data_type_t> kTypes = {
      {"f32", dnnl_f32}, {"bf16", dnnl_bf16}, {"s32", dnnl_s32}, {"s8", dnnl_s8}, {"u8", dnnl_u8}};
  const auto found = kTypes.find(name);
  if (found == kTypes.end()) throw Refused();
  return found->second;
}

// type:dims:order, where order names the dimensions from the outermost in, or is "any".
struct Tensor {
  std::string type;
  Dims dims;
  std::string order;
  bool present() const { return !type.empty(); }
  Desc MakeDesc(bool as_given = false) const {
    Desc d{};
    if (order == "any" && !as_given) {
#if DNNL_VERSION_MAJOR >= 3
      Check(dnnl_memory_desc_create_with_tag(&d, dims.n, dims.at, TypeNamed(type),
                                             dnnl_format_tag_any));
#else
      Check(
          dnnl_memory_desc_init_by_tag(&d, dims.n, dims.at, TypeNamed(type), dnnl_format_tag_any));
#endif
      return d;
    }
    Dims strides;
    strides.n = dims.n;
    dnnl_dim_t stride = 1;
    for (int i = dims.n; i-- > 0;) {
      const int dim = order == "any" ? i : order[static_cast<size_t>(i)] - 'a';
      strides.at[dim] = stride;
      stride *= dims.at[dim];
    }
#if DNNL_VERSION_MAJOR >= 3
    Check(dnnl_memory_desc_create_with_strides(&d, dims.n, dims.at, TypeNamed(type), strides.at));
#else
    Check(dnnl_memory_desc_init_by_strides(&d, dims.n, dims.at, TypeNamed(type), strides.at));
#endif
    return d;
  }
};

Tensor ParseTensor(const std::string& text) {
  const std::vector<std::string> parts = Split(text, ':');
  Tensor t;
  if (parts.size() == 3) t = {parts[0], ParseDims(parts[1]), parts[2]};
  return t;
}

dnnl_engine_t Engine() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t e = nullptr;
    dnnl_engine_create(&e, dnnl_cpu, 0);
    return e;
  }();
  return engine;
}

dnnl_stream_t Stream() {
  static const dnnl_stream_t stream = [] {
    dnnl_stream_t s = nullptr;
    dnnl_stream_create(&s, Engine(), dnnl_stream_default_flags);
    return s;
  }();
  return stream;
}

void* Allocate(size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 4096, std::max<size_t>(bytes, 64)) != 0) std::abort();
  std::memset(p, 0, std::max<size_t>(bytes, 64));
  return p;
}

// Numbers that repeat, below one; small whole ones as integers.
void Fill(void* data, const std::string& type, dnnl_dim_t n, uint32_t seed) {
  for (dnnl_dim_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float f = static_cast<float>(static_cast<int>(seed >> 24) - 128) / 128.0f;
    if (type == "f32") static_cast<float*>(data)[i] = f;
    if (type == "s32") static_cast<int32_t*>(data)[i] = static_cast<int32_t>(f * 64);
    if (type == "s8") static_cast<int8_t*>(data)[i] = static_cast<int8_t>(f * 64);
    if (type == "u8") static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(f * 64 + 64);
    if (type == "bf16") {
      uint32_t bits;
      std::memcpy(&bits, &f, sizeof bits);
      static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
}

double Sum(const void* data, const std::string& type, dnnl_dim_t n) {
  double sum = 0;
  for (dnnl_dim_t i = 0; i < n; ++i) {
    double v = 0;
    if (type == "f32") v = static_cast<const float*>(data)[i];
    if (type == "s32") v = static_cast<const int32_t*>(data)[i];
    if (type == "s8") v = static_cast<const int8_t*>(data)[i];
    if (type == "u8") v = static_cast<const uint8_t*>(data)[i];
    if (type == "bf16") {
      const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16;
      float f;
      std::memcpy(&f, &bits, sizeof f);
      v = f;
    }
    sum += v * static_cast<double>(1 + i % 7);
  }
  return sum;
}

class Layer {
 public:
  Layer(const std::string& kind, std::map<std::string, std::string> values)
      : kind_(kind),
        v_(std::move(values)),
        src_(ParseTensor(v_["src"])),
        wei_(ParseTensor(v_["wei"])),
        bias_(ParseTensor(v_["bias"])),
        dst_(ParseTensor(v_["dst"])) {
    SetAttributes();
    Choose();
    Check(dnnl_primitive_create(&primitive_, desc_));
    MakeArguments();
  }
  ~Layer() {
    if (primitive_ != nullptr) dnnl_primitive_destroy(primitive_);
    if (desc_ != nullptr) dnnl_primitive_desc_destroy(desc_);
    dnnl_primitive_attr_destroy(attr_);
    for (dnnl_exec_arg_t& a : args_) dnnl_memory_destroy(a.memory);
    for (void* p : memory_) std::free(p);
  }

  void Run() {
    Check(
        dnnl_primitive_execute(primitive_, Stream(), static_cast<int>(args_.size()), args_.data()));
  }
  const char* Code() const {
    const char* name = "";
    dnnl_primitive_desc_query(desc_, dnnl_query_impl_info_str, 0, static_cast<void*>(&name));
    return name;
  }
  double SumOfResults() const { return Sum(dst_data_, dst_.type, dst_.dims.Product()); }

 private:
  // The dimension of the results that scales go along.
  int Depth() const { return kind_ == "matmul" ? dst_.dims.n - 1 : 1; }

  void SetAttributes() {
    Check(dnnl_primitive_attr_create(&attr_));
    Check(dnnl_primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user));
    if (!v_["scales"].empty()) {
      const bool each = v_["scales"] == "channel";
      scales_.assign(static_cast<size_t>(each ? dst_.dims.at[Depth()] : 1), 1.0f / 64);
#if DNNL_VERSION_MAJOR >= 3
      // Along the weights' results: of matrices the last dimension, of groups the first two.
      int mask = 0;
      if (each)
        mask = kind_ == "matmul" ? 1 << (wei_.dims.n - 1) : wei_.dims.n > src_.dims.n ? 3 : 1;
      Check(dnnl_primitive_attr_set_scales_mask(attr_, DNNL_ARG_WEIGHTS, mask));
#else
      Check(dnnl_primitive_attr_set_output_scales(attr_, static_cast<dnnl_dim_t>(scales_.size()),
                                                  each ? 1 << Depth() : 0, scales_.data()));
#endif
    }
    if (!v_["zero"].empty()) {
#if DNNL_VERSION_MAJOR >= 3
      Check(dnnl_primitive_attr_set_zero_points_mask(attr_, DNNL_ARG_SRC, 0));
#else
      Check(dnnl_primitive_attr_set_zero_points(attr_, DNNL_ARG_SRC, 1, 0, &zero_));
#endif
    }
    if (v_["post"].empty()) return;
    dnnl_post_ops_t ops = nullptr;
    Check(dnnl_post_ops_create(&ops));
    for (const std::string& op : Split(v_["post"], ',')) {
      const std::vector<std::string> p = Split(op, '/');
      const auto number = [&](size_t i, float otherwise) {
        return p.size() > i ? static_cast<float>(std::atof(p[i].c_str())) : otherwise;
      };
      if (p[0] == "sum") {
#if DNNL_VERSION_MAJOR >= 3
        Check(dnnl_post_ops_append_sum(ops, number(1, 1), static_cast<int32_t>(number(2, 0)),
                                       dnnl_data_type_undef));
#else
        Check(dnnl_post_ops_append_sum_v3(ops, number(1, 1), static_cast<int32_t>(number(2, 0)),
                                          dnnl_data_type_undef));
#endif
        operands_.push_back({});
      } else if (p[0] == "add" || p[0] == "mul") {
        // add/TYPE/MASK: as large as the results in the dimensions of MASK, in their order.
        Tensor t{p[1], dst_.dims, dst_.order};
        const int mask = std::atoi(p[2].c_str());
        for (int i = 0; i < t.dims.n; ++i) {
          if (!(mask >> i & 1)) t.dims.at[i] = 1;
        }
        const Desc d = t.MakeDesc();
        const dnnl_alg_kind_t alg = p[0] == "add" ? dnnl_binary_add : dnnl_binary_mul;
#if DNNL_VERSION_MAJOR >= 3
        Check(dnnl_post_ops_append_binary(ops, alg, d));
#else
        Check(dnnl_post_ops_append_binary(ops, alg, &d));
#endif
        operands_.push_back(t);
      } else {
        static const std::map<std::string, dnnl_alg_kind_t> kKinds = {
            {"relu", dnnl_eltwise_relu},
            {"clip", dnnl_eltwise_clip},
            {"elu", dnnl_eltwise_elu},
            {"tanh", dnnl_eltwise_tanh},
            {"logistic", dnnl_eltwise_logistic},
            {"gelu_erf", dnnl_eltwise_gelu_erf},
            {"gelu_tanh", dnnl_eltwise_gelu_tanh},
            {"swish", dnnl_eltwise_swish},
            {"linear", dnnl_eltwise_linear},
            {"hardswish", dnnl_eltwise_hardswish}};
        const auto found = kKinds.find(p[0]);
        if (found == kKinds.end()) throw Refused();
        float alpha = number(1, 0), beta = number(2, 0);
#if DNNL_VERSION_MAJOR >= 3
        // 2.x has these two numbers in its code.
        if (p[0] == "hardswish") alpha = 1.0f / 6, beta = 0.5f;
        Check(dnnl_post_ops_append_eltwise(ops, found->second, alpha, beta));
#else
        Check(dnnl_post_ops_append_eltwise(ops, 1.0f, found->second, alpha, beta));
#endif
        operands_.push_back({});
      }
    }
    Check(dnnl_primitive_attr_set_post_ops(attr_, ops));
    dnnl_post_ops_destroy(ops);
  }

  void Choose() {
    const Dims stride = ParseDims(v_["stride"]), dilate = ParseDims(v_["dilate"]),
               pad = ParseDims(v_["pad"]), pad_end = ParseDims(v_["pad_end"]),
               kernel = ParseDims(v_["kernel"]);
    const bool pool = kind_ == "max" || kind_ == "avg";
    const Desc src = src_.MakeDesc(), dst = dst_.MakeDesc();
    Desc wei{}, bias{};
    if (!pool) wei = wei_.MakeDesc();
#if DNNL_VERSION_MAJOR >= 3
    // Scales are of the products alone here: biases of whole numbers become floats.
    if (bias_.type == "s32") bias_.type = "f32";
#endif
    if (bias_.present()) bias = bias_.MakeDesc();
    const dnnl_alg_kind_t pooling =
        kind_ == "max" ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
#if DNNL_VERSION_MAJOR >= 3
    if (kind_ == "conv") {
      Check(dnnl_convolution_forward_primitive_desc_create(
          &desc_, Engine(), dnnl_forward_inference, dnnl_convolution_direct, src, wei, bias, dst,
          stride.at, dilate.at, pad.at, pad_end.at, attr_));
    } else if (kind_ == "deconv") {
      Check(dnnl_deconvolution_forward_primitive_desc_create(
          &desc_, Engine(), dnnl_forward_inference, dnnl_deconvolution_direct, src, wei, bias, dst,
          stride.at, dilate.at, pad.at, pad_end.at, attr_));
    } else if (kind_ == "matmul") {
      Check(dnnl_matmul_primitive_desc_create(&desc_, Engine(), src, wei, bias, dst, attr_));
    } else if (pool) {
      Check(dnnl_pooling_forward_primitive_desc_create(&desc_, Engine(), dnnl_forward_inference,
                                                       pooling, src, dst, stride.at, kernel.at,
                                                       dilate.at, pad.at, pad_end.at, attr_));
    } else {
      throw Refused();
    }
#else
    const Desc* with_bias = bias_.present() ? &bias : nullptr;
    if (kind_ == "conv") {
      dnnl_convolution_desc_t d;
      Check(dnnl_dilated_convolution_forward_desc_init(
          &d, dnnl_forward_inference, dnnl_convolution_direct, &src, &wei, with_bias, &dst,
          stride.at, dilate.at, pad.at, pad_end.at));
      Check(dnnl_primitive_desc_create(&desc_, &d, attr_, Engine(), nullptr));
    } else if (kind_ == "deconv") {
      dnnl_deconvolution_desc_t d;
      Check(dnnl_dilated_deconvolution_forward_desc_init(
          &d, dnnl_forward_inference, dnnl_deconvolution_direct, &src, &wei, with_bias, &dst,
          stride.at, dilate.at, pad.at, pad_end.at));
      Check(dnnl_primitive_desc_create(&desc_, &d, attr_, Engine(), nullptr));
    } else if (kind_ == "matmul") {
      dnnl_matmul_desc_t d;
      Check(dnnl_matmul_desc_init(&d, &src, &wei, with_bias, &dst));
      Check(dnnl_primitive_desc_create(&desc_, &d, attr_, Engine(), nullptr));
    } else if (pool) {
      dnnl_pooling_v2_desc_t d;
      Check(dnnl_pooling_v2_forward_desc_init(&d, dnnl_forward_inference, pooling, &src, &dst,
                                              stride.at, kernel.at, dilate.at, pad.at, pad_end.at));
      Check(dnnl_primitive_desc_create(&desc_, &d, attr_, Engine(), nullptr));
    } else {
      throw Refused();
    }
#endif
  }

  static dnnl_memory_t Memory(ConstDesc d, void* data) {
    dnnl_memory_t m = nullptr;
    Check(dnnl_memory_create(&m, d, Engine(), data));
    return m;
  }
  static ConstDesc Handle(const Desc& d) {
#if DNNL_VERSION_MAJOR >= 3
    return d;
#else
    return &d;
#endif
  }
  void* Kept(size_t bytes) { return memory_.emplace_back(Allocate(bytes)); }
  void* Add(int arg, const Tensor& t, uint32_t seed) {
    const Desc d = t.MakeDesc();
    void* data = Kept(Bytes(d));
    Fill(data, t.type, t.dims.Product(), seed);
    args_.push_back({arg, Memory(Handle(d), data)});
    return data;
  }

  // Weights are packed once, as the library likes them.
  void AddWeights() {
    const Desc given = wei_.MakeDesc(true);
    void* data = Allocate(Bytes(given));
    Fill(data, wei_.type, wei_.dims.Product(), 2);
    const ConstDesc wanted = dnnl_primitive_desc_query_md(desc_, dnnl_query_weights_md, 0);
    void* packed = Kept(dnnl_memory_desc_get_size(wanted));
    dnnl_memory_t from = Memory(Handle(given), data), to = Memory(wanted, packed);
    dnnl_primitive_desc_t reorder = nullptr;
    dnnl_primitive_t run = nullptr;
    Check(dnnl_reorder_primitive_desc_create(&reorder, Handle(given), Engine(), wanted, Engine(),
                                             nullptr));
    Check(dnnl_primitive_create(&run, reorder));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    Check(dnnl_primitive_execute(run, Stream(), 2, args));
    Check(dnnl_stream_wait(Stream()));
    dnnl_primitive_destroy(run);
    dnnl_primitive_desc_destroy(reorder);
    dnnl_memory_destroy(from);
    std::free(data);
    args_.push_back({DNNL_ARG_WEIGHTS, to});
  }

  void MakeArguments() {
    Add(DNNL_ARG_SRC, src_, 1);
    if (wei_.present()) AddWeights();
    if (bias_.present()) {
      void* data = Add(DNNL_ARG_BIAS, bias_, 3);
#if DNNL_VERSION_MAJOR >= 3
      if (!scales_.empty()) {  // what 2.x multiplies with the sums
        for (dnnl_dim_t i = 0; i < bias_.dims.Product() && bias_.type == "f32"; ++i) {
          float& b = static_cast<float*>(data)[i];
          if (Split(v_["bias"], ':')[0] == "s32")
            b = static_cast<float>(static_cast<int32_t>(b * 64));
          b *= scales_[0];
        }
      }
#else
      (void)data;
#endif
    }
    dst_data_ = Add(DNNL_ARG_DST, dst_, 4);
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].present())
        Add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1, operands_[i], 5);
    }
#if DNNL_VERSION_MAJOR >= 3
    const auto numbers = [&](int arg, const std::string& type, size_t n, const void* from) {
      Tensor t{type, {}, "a"};
      t.dims.n = 1;
      t.dims.at[0] = static_cast<dnnl_dim_t>(n);
      std::memcpy(Add(arg, t, 0), from, n * 4);
    };
    if (!scales_.empty())
      numbers(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, "f32", scales_.size(), scales_.data());
    if (!v_["zero"].empty()) numbers(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, "s32", 1, &zero_);
#endif
    const ConstDesc scratch = dnnl_primitive_desc_query_md(desc_, dnnl_query_scratchpad_md, 0);
    if (scratch != nullptr && dnnl_memory_desc_get_size(scratch) > 0) {
      args_.push_back(
          {DNNL_ARG_SCRATCHPAD, Memory(scratch, Kept(dnnl_memory_desc_get_size(scratch)))});
    }
  }

  const std::string kind_;
  std::map<std::string, std::string> v_;
  Tensor src_, wei_, bias_, dst_;
  std::vector<Tensor> operands_;
  std::vector<float> scales_;
  int32_t zero_ = 3;
  dnnl_primitive_attr_t attr_ = nullptr;
  dnnl_primitive_desc_t desc_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  std::vector<dnnl_exec_arg_t> args_;
  std::vector<void*> memory_;
  void* dst_data_ = nullptr;
};

double Now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// The least ns of one run. Runs are timed together until they take 100 us.
double Time(Layer& layer, double milliseconds) {
  const clockid_t clock = omp_get_max_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  double least = 1e30;
  int together = 1;
  const double begin = Now(clock);
  for (int timed = 0; timed < 3 || Now(clock) - begin < milliseconds * 1e6; ++timed) {
    const double from = Now(clock);
    for (int i = 0; i < together; ++i) layer.Run();
    const double took = (Now(clock) - from) / together;
    if (took * together < 1e5) {
      together = static_cast<int>(std::min(1e5 / took + 1, 1e4));
      --timed;
      if (took * together < 1e5) together *= 2;
      continue;
    }
    least = std::min(least, took);
  }
  return least;
}

}  // namespace

int main() {
  const dnnl_version_t* version = dnnl_version();
  std::cout << "oneDNN " << version->major << "." << version->minor << "." << version->patch
            << std::endl;
  Layer* layer = nullptr;
  for (std::string line; std::getline(std::cin, line);) {
    std::stringstream in(line);
    std::string kind;
    in >> kind;
    try {
      if (kind == "go") {
        double milliseconds = 0;
        in >> milliseconds;
        if (layer == nullptr) throw Refused();
        std::cout << Time(*layer, milliseconds) << std::endl;
        continue;
      }
      delete layer;
      layer = nullptr;
      std::map<std::string, std::string> values;
      for (std::string word; in >> word;) {
        const size_t at = word.find('=');
        if (at != std::string::npos) values[word.substr(0, at)] = word.substr(at + 1);
      }
      layer = new Layer(kind, values);
      layer->Run();
      std::cout << layer->Code() << " " << layer->SumOfResults() << std::endl;
    } catch (const Refused&) {
      std::cout << "refused" << std::endl;
    }
  }
  delete layer;
}
