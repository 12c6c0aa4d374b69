// XLA's dimension numbers: serialised messages in string attributes, as plain structs. Values are
// as the file states them; whoever knows the ranks checks them. Thread safe.
#ifndef SMELT_WIRE_XLA_DIMENSION_NUMBERS_H_
#define SMELT_WIRE_XLA_DIMENSION_NUMBERS_H_

#include <string>

#include "smelt/tensor/shape.h"

namespace smelt {

struct ConvDimensions {
  int64_t input_batch = 0, input_feature = 0;
  int64_t kernel_input = 0, kernel_output = 0;
  int64_t output_batch = 0, output_feature = 0;
  Dims input_spatial, kernel_spatial, output_spatial;
};

struct DotDimensions {
  Dims lhs_contracting, rhs_contracting;
  Dims lhs_batch, rhs_batch;
};

// Of a gather and, read the other way, of a scatter. `window` are the dimensions of the result (the
// updates) that run within a slice, `collapsed` those of the operand that have none there.
struct GatherDimensions {
  Dims window, collapsed;
  Dims index_map;  // operand dimension by position in the index vector
  int64_t index_vector = 0;
  Dims operand_batch, indices_batch;
};

// INVALID_ARGUMENT when the bytes are no such message.
StatusOr<ConvDimensions> ParseConvDimensions(const std::string& bytes);
// Those of UniformQuantizedConvolution, which has a message of its own.
StatusOr<ConvDimensions> ParseUniformConvDimensions(const std::string& bytes);
StatusOr<DotDimensions> ParseDotDimensions(const std::string& bytes);
// As attributes hold them; equal numbers give equal bytes.
std::string SerializeConvDimensions(const ConvDimensions& d);
std::string SerializeDotDimensions(const DotDimensions& d);
std::string SerializeGatherDimensions(const GatherDimensions& d);
std::string SerializeScatterDimensions(const GatherDimensions& d);
StatusOr<GatherDimensions> ParseGatherDimensions(const std::string& bytes);
StatusOr<GatherDimensions> ParseScatterDimensions(const std::string& bytes);

}  // namespace smelt

#endif  // SMELT_WIRE_XLA_DIMENSION_NUMBERS_H_
