#include "smelt/cli/show/program.h"

#include "absl/strings/str_cat.h"
#include "smelt/cli/memory_picture.h"
#include "smelt/io/fs.h"

namespace smelt {

StatusOr<std::string> ProgramText(const std::string& model, const SampleFlags& flags,
                                  const std::string& memory_svg) {
  ASSIGN_OR_RETURN(const Sample sample, LoadSample(model, flags));
  const auto answer = sample.model->RunSignature(flags.signature, sample.inputs);
  Session& session = sample.model->session();
  const std::string programs = session.ProgramsText(true);
  if (!answer.ok() && programs.empty()) return answer.status();
  std::string text = absl::StrCat("signature '", flags.signature, "' on ", sample.Inputs(), " (",
                                  sample.origin, ")\n", programs);
  // What ran before it failed is there to see.
  if (!answer.ok()) absl::StrAppend(&text, "the request failed: ", answer.status().message(), "\n");
  if (!memory_svg.empty()) RETURN_IF_ERROR(WriteFileAtomically(memory_svg, MemorySvg(session)));
  return text;
}

}  // namespace smelt
