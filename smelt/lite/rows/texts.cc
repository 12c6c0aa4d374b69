// Texts that are known when a model is exported: there are no operators that make any.
#include <algorithm>

#include "smelt/lite/common/evaluate.h"
#include "smelt/lite/rows/chain.h"

namespace smelt {
namespace {

// Numbers are looked up among so many at most.
constexpr int64_t kMostTexts = 1 << 16;

// Numbers from 0 on are less than what this gives; nothing: nobody knows.
std::optional<int64_t> LessThan(Endpoint e, const Legalizer& l) {
  const Node& n = *e.node;
  if (n.Is({"tfl.reshape", "tfl.expand_dims", "tfl.squeeze", "tfl.cast", "tfl.tile", "tfl.gather",
            "tfl.slice", "tfl.strided_slice", "tfl.transpose", "tfl.broadcast_to"})) {
    return LessThan(n.input(0), l);
  }
  if (n.Is({"tfl.arg_max", "tfl.arg_min"})) {
    const PartialShape from = l.shape(n.input(0));
    const auto axis = l.Integers(n.input(1));
    if (!from.known_rank() || !axis || axis->size() != 1) return std::nullopt;
    const int64_t at = (*axis)[0] < 0 ? (*axis)[0] + from.rank() : (*axis)[0];
    if (at < 0 || at >= from.rank() || from[static_cast<int>(at)] < 1) return std::nullopt;
    return from[static_cast<int>(at)];
  }
  const auto value = l.Integers(e);
  if (!value || value->empty() || *std::ranges::min_element(*value) < 0) return std::nullopt;
  return *std::ranges::max_element(*value) + 1;
}

// The texts of all numbers that there may be, of which each is one.
LiteEndpoints AsString(Node& n, Legalizer& l) {
  const Dtype type = n.input_types[0];
  if (type != Dtype::kInt32 && type != Dtype::kInt64) {
    return Unimplemented("no operator writes ", DtypeName(type), " as text");
  }
  const std::optional<int64_t> count = LessThan(n.input(0), l);
  if (!count || *count > kMostTexts) {
    return Unimplemented("no operator writes numbers, and they are not known to be few");
  }
  ASSIGN_OR_RETURN(Tensor numbers, Tensor::Make(type, Shape({*count})));
  for (int64_t i = 0; i < *count; ++i) {
    if (type == Dtype::kInt32) {
      numbers.data<int32_t>()[i] = static_cast<int32_t>(i);
    } else {
      numbers.data<int64_t>()[i] = i;
    }
  }
  ASSIGN_OR_RETURN(const auto texts, Evaluate("AsString", {numbers}, n.attrs()));
  return One(l.Add("tfl.gather", {l.Const(texts[0]), n.input(0)}, Options({{"axis", int64_t{0}}}),
                   l.OutputOf(n)));
}

// A file of the model.
LiteEndpoints ReadFile(Node& n, Legalizer& l) {
  const auto name = l.Constant(n.input(0));
  if (!name || name->dtype() != Dtype::kString) {
    return Unimplemented("no operator reads files, and the name of this one is no constant");
  }
  if (l.files() == nullptr) return Unimplemented("no operator reads files");
  const auto read = Evaluate("ReadFile", {*name}, n.attrs(), l.files());
  if (!read.ok()) return Unimplemented("its file is not read: ", read.status().message());
  return std::vector<Endpoint>{l.Const((*read)[0])};
}

// Texts that are a constant table's, at computed places.
struct TextTable {
  std::vector<std::string> texts;
  Endpoint at;  // int32
};
// Nothing where more than `steps` operators move it.
std::optional<TextTable> TableOf(Endpoint e, Legalizer& l, int steps = 16) {
  if (const auto value = l.Constant(e); value && value->dtype() == Dtype::kString) {
    TextTable out;
    const auto count = value->num_elements();
    auto places = Tensor::Make(Dtype::kInt32, value->shape());
    if (!places.ok()) return std::nullopt;
    for (int64_t i = 0; i < count; ++i) {
      out.texts.push_back(value->data<std::string>()[i]);
      places->data<int32_t>()[i] = static_cast<int32_t>(i);
    }
    out.at = l.Const(*places);
    return out;
  }
  const Node& n = *e.node;
  if (n.Is("tfl.gather") && n.Int("axis") == 0 && n.Int("batch_dims") == 0) {
    const auto table = l.Constant(n.input(0));
    auto at = AsInt32(n.input(1), l);
    if (!table || table->rank() != 1 || !at.ok()) return std::nullopt;
    const auto texts = table->flat<std::string>();
    return TextTable{{texts.begin(), texts.end()}, *at};
  }
  if (!n.Is({"tfl.reshape", "tfl.expand_dims", "tfl.squeeze", "tfl.slice", "tfl.strided_slice"})) {
    return std::nullopt;
  }
  if (steps == 0) return std::nullopt;
  auto from = TableOf(n.input(0), l, steps - 1);
  if (!from) return std::nullopt;
  std::vector<Endpoint> inputs(n.inputs().begin(), n.inputs().end());
  inputs[0] = from->at;
  auto moved = l.Add(n.op_name(), inputs, n.attrs(), {Dtype::kInt32, l.shape(e)});
  if (!moved.ok()) return std::nullopt;
  from->at = *moved;
  return from;
}

constexpr ExportRow kTextRows[] = {
    {"AsString", AsString},
    {"ReadFile", ReadFile},
};

}  // namespace

LiteEndpoints SelectedTexts(Node& n, Legalizer& l) {
  const PartialShape of = l.shape(n.input(0)), x = l.shape(n.input(1));
  if (n.Is("Select") && (!of.known_rank() || of.rank() != x.rank())) {
    return Unimplemented("its operator does not take texts");
  }
  const auto then = TableOf(n.input(1), l), otherwise = TableOf(n.input(2), l);
  if (!then || !otherwise) {
    return Unimplemented("its operator does not take texts");
  }
  OperatorChain c(l);
  const Endpoint behind = c.Add(otherwise->at, static_cast<double>(then->texts.size()));
  const Endpoint at = c.Select(n.input(0), then->at, behind);
  const auto count = static_cast<int64_t>(then->texts.size() + otherwise->texts.size());
  ASSIGN_OR_RETURN(Tensor texts, Tensor::Make(Dtype::kString, Shape({count})));
  std::ranges::copy(then->texts, texts.data<std::string>());
  std::ranges::copy(otherwise->texts, texts.data<std::string>() + then->texts.size());
  return c.Done(
      c.Make("tfl.gather", {l.Const(texts), at}, Options({{"axis", int64_t{0}}}), l.OutputOf(n)));
}

std::span<const ExportRow> TextExport() { return kTextRows; }

}  // namespace smelt
