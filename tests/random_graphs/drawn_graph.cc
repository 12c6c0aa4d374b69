#include "tests/random_graphs/drawn_graph.h"

#include "absl/strings/str_cat.h"
#include "smelt/graph/text.h"

namespace smelt {
namespace {

std::string Literal(const Tensor& t) { return PrintTensor(*TensorValue::Of(t)); }

// Noise, as nodes of the graph: every bit of a value decides whether it grows or shrinks by some
// units of its last place, or stays.
class Disturber {
 public:
  Disturber(std::string* text, int number, int times)
      : text_(*text), number_(number), times_(static_cast<float>(times)) {}

  // The disturbed value's name. `near_one`: by units of one as well.
  std::string Of(const std::string& value, Dtype t, bool near_one = false) {
    float unit = 0;
    if (t == Dtype::kFloat) unit = 0x1p-20F;
    if (t == Dtype::kDouble) unit = 0x1p-48F;
    if (t == Dtype::kHalf) unit = 0x1p-10F;
    if (t == Dtype::kBfloat16) unit = 0x1p-7F;
    if (unit == 0) return value;
    unit *= times_;
    const std::string type(DtypeName(t));
    const std::string narrow =
        t == Dtype::kFloat ? value : Add("Cast", {value}, "SrcT=" + type + ", DstT=float");
    const std::string bits = Add("Bitcast", {narrow}, "T=float, type=int32");
    const std::string factor =
        Const(absl::StrCat("int32[]{", 0x2545F491 + 2 * (7919 * number_ + count_), "}"), "int32");
    const std::string shift = Const("int32[]{30}", "int32");
    const std::string hash = Add("Mul", {bits, factor}, "T=int32");
    const std::string few = Add("RightShift", {hash, shift}, "T=int32");
    const std::string sign = Add("Cast", {few}, "SrcT=int32, DstT=double");
    const std::string size = Const(
        PrintTensor(*TensorValue::Of(Tensor::Scalar<double>(static_cast<double>(unit)))), "double");
    const std::string one = Const("double[]{1}", "double");
    const std::string grown = Add("AddV2", {Add("Mul", {sign, size}, "T=double"), one}, "T=double");
    const std::string wide =
        t == Dtype::kDouble ? value : Add("Cast", {value}, "SrcT=" + type + ", DstT=double");
    std::string moved = Add("Mul", {wide, grown}, "T=double");
    if (near_one) {
      const std::string eighth = Const("double[]{0.125}", "double");
      const std::string of_one =
          Add("Mul", {Add("Mul", {sign, size}, "T=double"), eighth}, "T=double");
      moved = Add("AddV2", {moved, of_one}, "T=double");
    }
    return t == Dtype::kDouble ? moved : Add("Cast", {moved}, "SrcT=double, DstT=" + type);
  }

 private:
  std::string Add(const std::string& op, const std::vector<std::string>& inputs,
                  const std::string& attrs) {
    const std::string name = absl::StrCat("noise", count_++);
    absl::StrAppend(&text_, name, " = ", op);
    for (size_t i = 0; i < inputs.size(); ++i) absl::StrAppend(&text_, i ? ", " : "(", inputs[i]);
    absl::StrAppend(&text_, inputs.empty() ? "" : ")", " {", attrs, "}\n");
    return name;
  }
  std::string Const(const std::string& literal, const std::string& type) {
    return Add("Const", {}, absl::StrCat("dtype=", type, ", value=", literal));
  }

  std::string& text_;
  const int number_;
  const float times_;
  int count_ = 0;
};

}  // namespace

std::string NameOf(DrawnPort p) {
  return p.port == 0 ? absl::StrCat("n", p.node) : absl::StrCat("n", p.node, ":", p.port);
}

std::string TextOf(const DrawnGraph& graph, int disturbed, int times) {
  std::string text = graph.library;
  Disturber noise(&text, disturbed, times);
  // What readers read.
  std::vector<std::vector<std::string>> names(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const DrawnNode& n = graph.nodes[i];
    const bool moves = disturbed > 0 && n.rounds;
    std::vector<std::string> inputs;
    for (const DrawnPort& p : n.inputs) {
      std::string in = names[static_cast<size_t>(p.node)][static_cast<size_t>(p.port)];
      if (moves) in = noise.Of(in, graph.ValueOf(p).dtype());
      inputs.push_back(std::move(in));
    }
    const bool fetched_noise = moves;
    const std::string name = absl::StrCat(fetched_noise ? "before" : "n", i);
    absl::StrAppend(&text, name, " = ", n.op);
    for (size_t k = 0; k < inputs.size(); ++k) absl::StrAppend(&text, k ? ", " : "(", inputs[k]);
    if (!inputs.empty()) absl::StrAppend(&text, ")");
    if (n.Is("Const")) {
      absl::StrAppend(&text, " {dtype=", DtypeName(n.values[0].dtype()),
                      ", value=", Literal(n.values[0]), "}\n");
    } else if (n.Is("Placeholder")) {
      absl::StrAppend(&text, " {dtype=", DtypeName(n.values[0].dtype()), ", shape=", n.stated_shape,
                      "}\n");
    } else {
      absl::StrAppend(&text, " {", n.attrs, "}\n");
    }
    for (size_t p = 0; p < std::max<size_t>(n.values.size(), 1); ++p) {
      std::string out = p == 0 ? name : absl::StrCat(name, ":", p);
      // These meet numbers near one on their way to one near zero.
      const bool near_one = n.Is("Elu") || n.Is("LogSoftmax");
      if (moves && p < n.values.size()) out = noise.Of(out, n.values[p].dtype(), near_one);
      names[i].push_back(std::move(out));
    }
  }
  if (disturbed == 0) return text;
  // Fetches keep their names.
  for (size_t k = 0; k < graph.fetches.size(); ++k) {
    const DrawnPort p = graph.fetches[k];
    absl::StrAppend(&text, "fetch", k, " = Identity(",
                    names[static_cast<size_t>(p.node)][static_cast<size_t>(p.port)], ")\n");
  }
  return text;
}

std::string CaseOf(const DrawnGraph& graph, const std::string& name,
                   const std::vector<StatusOr<std::vector<Tensor>>>& results) {
  std::string text = absl::StrCat("---\ncase ", name, "\ngraph\n", TextOf(graph), "end\n");
  for (size_t r = 0; r < graph.requests.size() && r < results.size(); ++r) {
    if (r > 0) absl::StrAppend(&text, "step\n");
    for (const auto& [node, t] : graph.requests[r]) {
      absl::StrAppend(&text, "feed n", node, " ", Literal(t), "\n");
    }
    for (size_t k = 0; k < graph.fetches.size(); ++k) {
      absl::StrAppend(&text, "fetch ", NameOf(graph.fetches[k]));
      if (results[r].ok()) absl::StrAppend(&text, " ", Literal((*results[r])[k]));
      absl::StrAppend(&text, "\n");
    }
    if (!results[r].ok()) {
      absl::StrAppend(&text, "error ", CodeName(results[r].status().code()), " ",
                      results[r].status().message(), "\n");
    }
  }
  return text;
}

std::vector<bool> Rounded(const DrawnGraph& graph) {
  std::vector<bool> rounded(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    rounded[i] = graph.nodes[i].rounds;
    for (const DrawnPort& p : graph.nodes[i].inputs) {
      if (rounded[static_cast<size_t>(p.node)]) rounded[i] = true;
    }
  }
  return rounded;
}

DrawnGraph Pruned(const DrawnGraph& graph) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (const DrawnPort& p : graph.fetches) needed[static_cast<size_t>(p.node)] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const DrawnPort& p : graph.nodes[i].inputs) needed[static_cast<size_t>(p.node)] = true;
  }
  DrawnGraph out;
  out.library = graph.library;
  out.nan_after_relu = graph.nan_after_relu;
  std::vector<int> now(graph.nodes.size(), -1);
  const auto moved = [&](DrawnPort p) {
    return DrawnPort{now[static_cast<size_t>(p.node)], p.port};
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!needed[i]) continue;
    now[i] = static_cast<int>(out.nodes.size());
    DrawnNode n = graph.nodes[i];
    for (DrawnPort& p : n.inputs) p = moved(p);
    out.nodes.push_back(std::move(n));
  }
  for (const DrawnPort& p : graph.fetches) out.fetches.push_back(moved(p));
  for (const DrawnFeeds& feeds : graph.requests) {
    out.requests.emplace_back();
    for (const auto& [node, t] : feeds) {
      if (needed[static_cast<size_t>(node)])
        out.requests.back().emplace_back(now[static_cast<size_t>(node)], t);
    }
  }
  return out;
}

}  // namespace smelt
