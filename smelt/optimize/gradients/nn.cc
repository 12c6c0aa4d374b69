// Layers: activations, convolutions, pools. TensorFlow's own rows lack some attributes, such as
// dilations and the format of pools; here they count.
#include "smelt/optimize/gradients/rows.h"

namespace smelt::gradients {
namespace {

constexpr Form kConv = {"input filter grad", "input_grad filter_grad"};
constexpr Form kBias = {"input bias grad", "input_grad bias_grad"};
constexpr Form kPoolGrad = {"input output dy grad", "input_grad output_grad dy_grad"};

constexpr Row kAllNnRows[] = {
    {"Softmax", &kUnary, R"(
softmax = Softmax(x)
n0 = Mul(dy, softmax)
indices = Const {value=int32[1]{-1}}
n1 = Sum(n0, indices) {keep_dims=true}
n2 = Sub(dy, n1)
dx = Mul(n2, softmax)
)"},
    {"LogSoftmax", &kUnary, R"(
softmax = Softmax(x)
indices = Const {value=int32[1]{-1}}
n0 = Sum(dy, indices) {keep_dims=true}
n1 = Mul(n0, softmax)
dx = Sub(dy, n1)
)"},
    {"Relu", &kUnary, "dx = ReluGrad(dy, x)\n"},
    {"Relu6", &kUnary, "dx = Relu6Grad(dy, x)\n"},
    {"Conv2D", &kConv, R"(
i_shape = Shape(input)
input_grad = Conv2DBackpropInput(i_shape, filter, grad) {strides=$strides, padding=$padding, explicit_paddings=$explicit_paddings, dilations=$dilations, data_format=$data_format, use_cudnn_on_gpu=$use_cudnn_on_gpu}
f_shape = Shape(filter)
filter_grad = Conv2DBackpropFilter(input, f_shape, grad) {strides=$strides, padding=$padding, explicit_paddings=$explicit_paddings, dilations=$dilations, data_format=$data_format, use_cudnn_on_gpu=$use_cudnn_on_gpu}
)"},
    {"MaxPool", &kUnary, R"(
maxpool = MaxPool(x) {ksize=$ksize, strides=$strides, padding=$padding, explicit_paddings=$explicit_paddings, data_format=$data_format}
dx = MaxPoolGrad(x, maxpool, dy) {ksize=$ksize, strides=$strides, padding=$padding, explicit_paddings=$explicit_paddings, data_format=$data_format}
)"},
    {"AvgPool", &kUnary, R"(
i_shape = Shape(x)
dx = AvgPoolGrad(i_shape, dy) {ksize=$ksize, strides=$strides, padding=$padding, data_format=$data_format}
)"},
    {"MaxPoolGrad", &kPoolGrad, R"(
input_grad = ZerosLike(input)
output_grad = ZerosLike(output)
dy_grad = MaxPoolGradGrad(input, output, grad) {ksize=$ksize, strides=$strides, padding=$padding, data_format=$data_format}
)"},
    {"BiasAdd", &kBias, R"(
input_grad = Identity(grad)
bias_grad = BiasAddGrad(grad) {data_format=$data_format}
)"},
};

}  // namespace

const std::span<const Row> kNnRows = kAllNnRows;

}  // namespace smelt::gradients
