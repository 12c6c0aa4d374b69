#include "smelt/wire/xla/dimension_numbers.h"

#include "smelt/wire/proto/uniform_quant.pb.h"
#include "smelt/wire/proto/xla_data.pb.h"

namespace smelt {
namespace {

template <typename Field>
Dims DimsOf(const Field& field) {
  return Dims(field.begin(), field.end());
}

template <typename Message>
StatusOr<Message> ParseNumbers(const std::string& bytes) {
  Message m;
  if (!m.ParseFromString(bytes)) {
    return InvalidArgument("attribute dimension_numbers holds no ", m.GetTypeName());
  }
  return m;
}

template <typename Message>
StatusOr<ConvDimensions> ConvNumbers(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto m, ParseNumbers<Message>(bytes));
  ConvDimensions d;
  d.input_batch = m.input_batch_dimension();
  d.input_feature = m.input_feature_dimension();
  d.kernel_input = m.kernel_input_feature_dimension();
  d.kernel_output = m.kernel_output_feature_dimension();
  d.output_batch = m.output_batch_dimension();
  d.output_feature = m.output_feature_dimension();
  d.input_spatial = DimsOf(m.input_spatial_dimensions());
  d.kernel_spatial = DimsOf(m.kernel_spatial_dimensions());
  d.output_spatial = DimsOf(m.output_spatial_dimensions());
  return d;
}

}  // namespace

StatusOr<ConvDimensions> ParseConvDimensions(const std::string& bytes) {
  return ConvNumbers<::xla::ConvolutionDimensionNumbers>(bytes);
}

StatusOr<ConvDimensions> ParseUniformConvDimensions(const std::string& bytes) {
  return ConvNumbers<tensorflow::UniformQuantizedConvolutionDimensionNumbersAttr>(bytes);
}

StatusOr<DotDimensions> ParseDotDimensions(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto m, ParseNumbers<::xla::DotDimensionNumbers>(bytes));
  DotDimensions d;
  d.lhs_contracting = DimsOf(m.lhs_contracting_dimensions());
  d.rhs_contracting = DimsOf(m.rhs_contracting_dimensions());
  d.lhs_batch = DimsOf(m.lhs_batch_dimensions());
  d.rhs_batch = DimsOf(m.rhs_batch_dimensions());
  return d;
}

std::string SerializeConvDimensions(const ConvDimensions& d) {
  ::xla::ConvolutionDimensionNumbers m;
  m.set_input_batch_dimension(d.input_batch);
  m.set_input_feature_dimension(d.input_feature);
  m.set_kernel_input_feature_dimension(d.kernel_input);
  m.set_kernel_output_feature_dimension(d.kernel_output);
  m.set_output_batch_dimension(d.output_batch);
  m.set_output_feature_dimension(d.output_feature);
  m.mutable_input_spatial_dimensions()->Assign(d.input_spatial.begin(), d.input_spatial.end());
  m.mutable_kernel_spatial_dimensions()->Assign(d.kernel_spatial.begin(), d.kernel_spatial.end());
  m.mutable_output_spatial_dimensions()->Assign(d.output_spatial.begin(), d.output_spatial.end());
  return m.SerializeAsString();
}

std::string SerializeDotDimensions(const DotDimensions& d) {
  ::xla::DotDimensionNumbers m;
  m.mutable_lhs_contracting_dimensions()->Assign(d.lhs_contracting.begin(),
                                                 d.lhs_contracting.end());
  m.mutable_rhs_contracting_dimensions()->Assign(d.rhs_contracting.begin(),
                                                 d.rhs_contracting.end());
  m.mutable_lhs_batch_dimensions()->Assign(d.lhs_batch.begin(), d.lhs_batch.end());
  m.mutable_rhs_batch_dimensions()->Assign(d.rhs_batch.begin(), d.rhs_batch.end());
  return m.SerializeAsString();
}

StatusOr<GatherDimensions> ParseGatherDimensions(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto m, ParseNumbers<::xla::GatherDimensionNumbers>(bytes));
  GatherDimensions d;
  d.window = DimsOf(m.offset_dims());
  d.collapsed = DimsOf(m.collapsed_slice_dims());
  d.index_map = DimsOf(m.start_index_map());
  d.index_vector = m.index_vector_dim();
  d.operand_batch = DimsOf(m.operand_batching_dims());
  d.indices_batch = DimsOf(m.start_indices_batching_dims());
  return d;
}

StatusOr<GatherDimensions> ParseScatterDimensions(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto m, ParseNumbers<::xla::ScatterDimensionNumbers>(bytes));
  GatherDimensions d;
  d.window = DimsOf(m.update_window_dims());
  d.collapsed = DimsOf(m.inserted_window_dims());
  d.index_map = DimsOf(m.scatter_dims_to_operand_dims());
  d.index_vector = m.index_vector_dim();
  d.operand_batch = DimsOf(m.input_batching_dims());
  d.indices_batch = DimsOf(m.scatter_indices_batching_dims());
  return d;
}

std::string SerializeGatherDimensions(const GatherDimensions& d) {
  ::xla::GatherDimensionNumbers m;
  m.mutable_offset_dims()->Assign(d.window.begin(), d.window.end());
  m.mutable_collapsed_slice_dims()->Assign(d.collapsed.begin(), d.collapsed.end());
  m.mutable_start_index_map()->Assign(d.index_map.begin(), d.index_map.end());
  m.set_index_vector_dim(d.index_vector);
  m.mutable_operand_batching_dims()->Assign(d.operand_batch.begin(), d.operand_batch.end());
  m.mutable_start_indices_batching_dims()->Assign(d.indices_batch.begin(), d.indices_batch.end());
  return m.SerializeAsString();
}

std::string SerializeScatterDimensions(const GatherDimensions& d) {
  ::xla::ScatterDimensionNumbers m;
  m.mutable_update_window_dims()->Assign(d.window.begin(), d.window.end());
  m.mutable_inserted_window_dims()->Assign(d.collapsed.begin(), d.collapsed.end());
  m.mutable_scatter_dims_to_operand_dims()->Assign(d.index_map.begin(), d.index_map.end());
  m.set_index_vector_dim(d.index_vector);
  m.mutable_input_batching_dims()->Assign(d.operand_batch.begin(), d.operand_batch.end());
  m.mutable_scatter_indices_batching_dims()->Assign(d.indices_batch.begin(), d.indices_batch.end());
  return m.SerializeAsString();
}

}  // namespace smelt
