// The layers whose types --max_error chooses, and assignments of types to them. Thread safe.
#ifndef SMELT_CONVERT_SEARCH_LAYERS_H_
#define SMELT_CONVERT_SEARCH_LAYERS_H_

#include <string>
#include <vector>

#include "smelt/convert/conversion.h"

namespace smelt {

enum class LayerType { kInt8, kBfloat16, kFloat32 };

struct SearchedLayer {
  std::string function, node;         // as the quantizer knows it; empty: it does not
  std::vector<std::string> bfloat16;  // nodes that the bfloat16 stage makes of it; none: none
  bool int8 = false;                  // it may be int8
  double error = 0;                   // in int8: of its own output, relative, root mean square
  double cost = 0, int8_cost = 0;     // in float32 and in int8 (docs/cost_model.md)

  bool MayBe(LayerType type) const;
  double CostAs(LayerType type) const;
};
using LayerTypes = std::vector<LayerType>;  // by layer

// The layers of a model. `int8`: its conversion with every layer quantized; `bfloat16`: with none;
// nullptr where there is no such conversion.
std::vector<SearchedLayer> FindSearchedLayers(const Conversion* int8, const Conversion* bfloat16);

// Every layer in the cheapest type that it may have, of `least` and what is wider.
LayerTypes CheapestTypes(const std::vector<SearchedLayer>& layers, LayerType least);
// What became of each layer in a conversion.
LayerTypes TypesIn(const Conversion& c, const std::vector<SearchedLayer>& layers);
// Relative to all layers in float32.
double CostOf(const std::vector<SearchedLayer>& layers, const LayerTypes& types);

// From the cheapest types to float32, each with one layer wider than the one before: first where
// the expected error of the whole falls most for what it costs.
std::vector<LayerTypes> WideningPath(const std::vector<SearchedLayer>& layers);

// What stands in the options for the types.
struct TypeOptions {
  std::string quantization;  // fields of quantization_options but the unit-wise specifications
  bool everything = false;   // bfloat16 is for what the host serves, too
};
std::string OptionsText(const std::vector<SearchedLayer>& layers, const LayerTypes& types,
                        const TypeOptions& options);

}  // namespace smelt

#endif  // SMELT_CONVERT_SEARCH_LAYERS_H_
