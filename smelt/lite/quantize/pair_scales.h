// Which scales operators of two operands take: LiteRT's kernels end the program at others, refuse
// the file, or answer wrongly.
#ifndef SMELT_LITE_QUANTIZE_PAIR_SCALES_H_
#define SMELT_LITE_QUANTIZE_PAIR_SCALES_H_

#include "smelt/graph/graph.h"

namespace smelt {

// ADD, SUB, MUL, SQUARED_DIFFERENCE, and SQUARE, which is MUL of one operand.
bool IsScaledPair(OpName op);
// REQUIRES: IsScaledPair(op). `int16`: operands and result are, else of 8 bits.
bool PairScalesFit(OpName op, bool int16, float a, float b, float result);

// SQUARE becomes MUL of its operand by itself: it has kernels of floats alone.
void MakeProduct(Graph& graph, Node* square);

// SQUARED_DIFFERENCE, which has no kernel of int16, becomes MUL of a SUB, the result, by itself.
StatusOr<Node*> MakeProductOfDifference(Graph& graph, Node* n);
// Of that SUB, by the scale of the square: what is greatest in one is in the other.
float DifferenceScale(float square);

// Is it DIV by a constant whose reciprocals are numbers, or NEG?
bool IsScaling(const Node& n);
// It becomes MUL, which has kernels of more types, and rounds less than integers do.
// REQUIRES: IsScaling(*n).
Status MakeScaling(Graph& graph, Node* n);

}  // namespace smelt

#endif  // SMELT_LITE_QUANTIZE_PAIR_SCALES_H_
