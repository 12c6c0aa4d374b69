#include "smelt/graph/einsum_equation.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace smelt {
namespace {

StatusOr<EinsumLabels> ParseSubscript(absl::string_view text) {
  EinsumLabels labels;
  bool ellipsis = false;
  while (!text.empty()) {
    if (absl::ConsumePrefix(&text, "...")) {
      if (ellipsis) {
        return InvalidArgument("Subscript cannot contain more than one ellipsis.");
      }
      ellipsis = true;
      labels.push_back(kEllipsis);
      continue;
    }
    if (text[0] == '.') {
      return InvalidArgument("Invalid label: . in einsum subscript (is it an ellipsis?)");
    }
    labels.push_back(static_cast<unsigned char>(text[0]));
    text.remove_prefix(1);
  }
  return labels;
}

bool HasLabel(const EinsumLabels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// The labels of one operand's dimensions.
StatusOr<EinsumLabels> ExpandInput(const EinsumLabels& subscript, int index, const Shape& shape) {
  const int named = static_cast<int>(subscript.size());
  if (!HasLabel(subscript, kEllipsis)) {
    if (shape.rank() != named) {
      return InvalidArgument("Expected input ", index, " to have rank ", named,
                             " but got: ", shape.rank());
    }
    return subscript;
  }
  if (shape.rank() + 1 < named) {
    return InvalidArgument("Expected input ", index, " to have rank at least ", named - 1,
                           " but got: ", shape.rank());
  }
  EinsumLabels out;
  const int hidden = shape.rank() - (named - 1);
  for (const int label : subscript) {
    if (label != kEllipsis) {
      out.push_back(label);
      continue;
    }
    for (int i = hidden; i-- > 0;) out.push_back(kEllipsis + i);
  }
  return out;
}

}  // namespace

StatusOr<EinsumEquation> ParseEinsum(const std::string& equation) {
  const std::vector<absl::string_view> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) {
    return InvalidArgument("Expecting exactly one '->' in einsum equation: ", equation);
  }
  const std::vector<absl::string_view> subscripts = absl::StrSplit(sides[0], ',');
  if (subscripts.size() != 1 && subscripts.size() != 2) {
    return InvalidArgument("Expecting 1 or 2 input subscripts in equation '", equation,
                           "' but got: ", subscripts.size());
  }
  EinsumEquation e;
  for (const absl::string_view s : subscripts) {
    ASSIGN_OR_RETURN(EinsumLabels labels, ParseSubscript(s));
    e.inputs.push_back(std::move(labels));
  }
  ASSIGN_OR_RETURN(e.output, ParseSubscript(sides[1]));
  for (const int label : e.output) {
    const bool known = label == kEllipsis || std::ranges::any_of(e.inputs, [&](const auto& labels) {
                         return HasLabel(labels, label);
                       });
    if (known) continue;
    return InvalidArgument("Einsum output subscripts for equation '", equation, "' has label '",
                           std::string(1, static_cast<char>(label)),
                           "' which is not present in the input subscripts");
  }
  return e;
}

int64_t EinsumShapes::Size(int label) const {
  for (const auto& [l, size] : sizes) {
    if (l == label) return size;
  }
  return -1;
}

StatusOr<EinsumShapes> ExpandEinsum(const EinsumEquation& e, std::span<const Shape* const> shapes) {
  if (shapes.size() != e.inputs.size()) {
    return InvalidArgument("Expected ", e.inputs.size(), " inputs but got: ", shapes.size());
  }
  EinsumShapes s;
  int hidden = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape& shape = *shapes[i];
    ASSIGN_OR_RETURN(EinsumLabels labels, ExpandInput(e.inputs[i], static_cast<int>(i), shape));
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const int label = labels[axis];
      if (label >= kEllipsis) hidden = std::max(hidden, label - kEllipsis + 1);
      auto known = std::find_if(s.sizes.begin(), s.sizes.end(),
                                [&](const auto& entry) { return entry.first == label; });
      if (known == s.sizes.end()) {
        s.sizes.emplace_back(label, shape[axis]);
      } else if (known->second != shape[axis]) {
        const bool broadcast = label >= kEllipsis && (known->second == 1 || shape[axis] == 1);
        if (!broadcast) {
          return InvalidArgument("Expected dimension ", known->second, " at axis ", axis,
                                 " of the input shaped ", shape.ToString(), " but got dimension ",
                                 shape[axis]);
        }
        if (known->second == 1) known->second = shape[axis];
      }
    }
    s.inputs.push_back(std::move(labels));
  }
  if (hidden > 0 && !HasLabel(e.output, kEllipsis)) {
    return InvalidArgument("Output contains ", hidden, " broadcasting dimension(s) but no ellipsis",
                           " (...) was found in the output subscripts.");
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (int axis = 0; axis < shapes[i]->rank(); ++axis) {
      int& label = s.inputs[i][axis];
      if ((*shapes[i])[axis] == 1 && label >= kEllipsis && s.Size(label) != 1) {
        label = EinsumShapes::kNone;
      }
    }
  }
  for (const int label : e.output) {
    if (label == kEllipsis) {
      for (int i = hidden; i-- > 0;) s.output.push_back(kEllipsis + i);
    } else {
      s.output.push_back(label);
    }
  }
  return s;
}

}  // namespace smelt
