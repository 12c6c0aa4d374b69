// Composite functions: calls of functions whose attributes say what they implement (tf.function's
// experimental_implements and experimental_attributes), as one operator each.
//
// Where a function says it: "_implements" is a name, or a function attribute of a name and options;
// "api_implements" is a name that ends in something unique (Keras). The first of them counts.
// Function calls must still be there: signature_graph.h keeps them until ChooseComposites has seen
// them.
#ifndef SMELT_LITE_COMPOSITES_COMPOSITE_H_
#define SMELT_LITE_COMPOSITES_COMPOSITE_H_

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "smelt/lite/composite_choice.h"
#include "smelt/lite/fuse/fusion.h"
#include "smelt/lite/legalizer.h"

namespace smelt {

// How a function says what it implements.
enum class ImplementsKind : uint8_t { kString, kFunction, kApi };

struct Implements {
  ImplementsKind kind;
  std::string name;
  const AttrMap* options = nullptr;  // of the function attribute; may be nullptr
};
// Empty: the function says nothing.
std::optional<Implements> WhatItImplements(const Function& f);

// A call that is to become operators. Inputs that are left out, and results that nobody reads, are
// there all the same.
struct CompositeCall {
  Node& node;
  const Function& function;
  const Implements& implements;

  const AttrMap& options() const {
    static const AttrMap none;
    return implements.options == nullptr ? none : *implements.options;
  }
};

struct Composite {
  absl::string_view name;  // what is implemented; as --without names it
  ImplementsKind kind;
  bool prefix = false;  // `name` is what the function's begins with
  // UNIMPLEMENTED says why the call stays what it was; other errors are the model's.
  LiteEndpoints (*convert)(const CompositeCall& call, Legalizer& l) = nullptr;
  absl::string_view what = {};     // "LSTM(x)"
  absl::string_view differs = {};  // where the operator is not what the function computes
};

// In the order in which they are looked through.
std::span<const Composite> AllComposites();
// nullptr: the function implements nothing that is known.
const Composite* FindComposite(const Function& f);
// The function that the node calls, by its op or its attribute; nullptr: it is no call.
const Function* CalledFunction(const Graph& graph, const Node& n);

// Which functions stay calls until Legalize. `declined`: those that were looked at and do not fit.
bool IsKeptComposite(const Function& f, const CompositeNames& declined,
                     const CompositeChoice& choice);
// Why a function that implements something, and was not looked at, is none; empty: it implements
// nothing, or is kept.
std::string WhyNoComposite(const Function& f, const CompositeChoice& choice);
// Looks at every call of a composite function in the graph, and adds the functions to `declined`
// one of whose calls does not fit, with a note for each. True where it declined any. Errors are
// those of a row: options that are missing.
StatusOr<bool> ChooseComposites(Graph& graph, const CompositeChoice& choice,
                                CompositeNames& declined, std::vector<FusionNote>* notes);

// The rows that Legalize finds for calls.
std::span<const ExportRow> CompositeExport();

// ---- tables of the files of this folder
// What rules take as an operator: of any name.
LiteEndpoints OperatorForRules(const CompositeCall& call, Legalizer& l);
std::span<const Composite> CustomComposites();
std::span<const Composite> LookupComposites();
std::span<const Composite> LstmComposites();
std::span<const Composite> KerasComposites();
std::span<const Composite> ImageComposites();
std::span<const Composite> TextComposites();

// ---- what they share
// A custom operator with the call's arguments (but variables) and results.
LiteEndpoints CustomOperator(const CompositeCall& call, absl::string_view name,
                             const std::string& options, Legalizer& l);
// Of an option that must be there, of that type; INVALID_ARGUMENT names it.
template <typename T>
StatusOr<T> Option(const CompositeCall& call, absl::string_view name) {
  const Attr* a = call.options().Find(name);
  const T* value = a == nullptr ? nullptr : a->get<T>();
  if (value != nullptr) return *value;
  return InvalidArgument("'", call.implements.name, "' ",
                         a == nullptr ? "lacks the option '" : "has another type of option '", name,
                         "'");
}
// UNIMPLEMENTED unless there are so many inputs and outputs.
Status CheckCounts(const CompositeCall& call, int inputs, int outputs);

}  // namespace smelt

#endif  // SMELT_LITE_COMPOSITES_COMPOSITE_H_
