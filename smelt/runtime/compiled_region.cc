#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "smelt/runtime/compiled_body.h"
#include "smelt/runtime/compiled_item.h"
#include "smelt/runtime/executable.h"

namespace smelt {
namespace {

class CompiledRegion final : public CompiledItem {
 public:
  CompiledRegion(const Node& node, std::unique_ptr<Graph> body, std::string function)
      : body_(node, std::move(body), std::move(function), {PartsWanted::Kind::kOfRun}) {}

  Status Run(std::span<Tensor* const> inputs, std::span<Tensor> outputs, Step& step) override {
    absl::InlinedVector<const Shape*, 16> shapes;
    for (const Tensor* t : inputs) shapes.push_back(&t->shape());
    ASSIGN_OR_RETURN(const CompiledBody::Found found, body_.ProgramFor(shapes));
    if (found.program != nullptr) return found.program->Run(inputs, outputs, step);
    ASSIGN_OR_RETURN(Executable * plain, body_.Plain());
    std::vector<Tensor> args, results;
    for (const Tensor* t : inputs) args.push_back(*t);
    RETURN_IF_ERROR(plain->Run(std::span<Tensor>(args), &results, step));
    std::ranges::move(results, outputs.begin());
    return OkStatus();
  }
  std::string Text(bool reasons) override { return body_.Text(reasons); }
  void Visit(ProgramVisitor visit) override { body_.Visit(visit); }

 private:
  CompiledBody body_;
};

}  // namespace

std::unique_ptr<CompiledItem> MakeCompiledRegion(const Node& node, std::unique_ptr<Graph> body,
                                                 std::string function) {
  return std::make_unique<CompiledRegion>(node, std::move(body), std::move(function));
}

}  // namespace smelt
