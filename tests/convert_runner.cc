// smelt_case_tests convert FILE...: the converter's text tests, files of cases, each a model,
// options, and what must come out.
//
//   case NAME
//   options
//   ...ConverterOptions text...
//   settings auto_place allow_soft_placement revert strip_training in_memory        (optional)
//   saver FILENAME SAVE RESTORE                         (optional) nodes of the MetaGraph's saver
//   alias FUNCTION ALIAS
//   sample SIGNATURE KEY=TENSOR; KEY=TENSOR             (repeated) a record of the signature's
//                                                       representative dataset
//   request SIGNATURE KEY=TENSOR; KEY=TENSOR            (repeated) a record of a log of requests,
//                                                       which is the dataset of all its signatures
//   input SIGNATURE KEY TENSOR TYPE SHAPE               input serving_default x x:0 float [?,4]
//   output SIGNATURE KEY TENSOR TYPE SHAPE
//   sparse SIGNATURE KEY VALUES INDICES DENSE_SHAPE     an input that is a sparse tensor of floats
//   sparse_output SIGNATURE KEY VALUES INDICES DENSE_SHAPE
//   component SIGNATURE KEY TENSOR TYPE SHAPE           (repeated) of an output that is composite
//   variable KEY=TENSOR                                 (repeated) an entry of the checkpoint; such
//                                                       cases are converted, not run
//   graph
//   ...graph text...
//   expect
//   error CODE "part of the text"                        the conversion fails
//   note "part of a note's text"
//   has FUNCTION NODE                                    regular expressions: some function's (main
//   lacks FUNCTION NODE                                  graph: "-") line in the text form matches
//   count N FUNCTION NODE
//   names SIGNATURE KEY TENSORS                          the tensors of an output, with spaces
//   transfer FUNCTION in|out INDEX NAME                  a record of what crosses
//   cost FUNCTION N                                      of the function's own nodes, as reported
//   tolerance 0.02                                       of the output's range; else 1e-5
//   run SIGNATURE KEY=TENSOR; KEY=TENSOR                 both models run; outputs must agree
//
// Cases are separated by lines of dashes. FUNCTION and NODE must match somewhere in the name and in
// the line. Lines of `expect` that begin with # are skipped.
#include <re2/re2.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "smelt/convert/conversion.h"
#include "smelt/convert/report/report_data.h"
#include "smelt/convert/stages.h"
#include "smelt/graph/text.h"
#include "smelt/io/record.h"
#include "smelt/model/loaded_model.h"
#include "smelt/wire/bundle/bundle.h"
#include "smelt/wire/options/representative_data.h"
#include "smelt/wire/records/prediction_log.h"
#include "tests/case_tests.h"

namespace smelt {
namespace {

struct ConvertCase {
  std::string name, options, graph;
  ConvertSettings settings;
  std::map<std::string, std::string> aliases;
  std::map<std::string, Signature> signatures;
  std::optional<SaverDef> saver;
  std::vector<std::string> expect;
  std::string requests;                        // the bytes of a TFRecord file
  std::set<std::string> requested;             // signatures
  std::map<std::string, std::string> samples;  // signature key to the bytes of a TFRecord file
  std::map<std::string, Tensor> variables;     // of the checkpoint
};

// Cuts the first word of `line` off and returns it.
std::string Word(absl::string_view* line) {
  *line = absl::StripLeadingAsciiWhitespace(*line);
  const size_t end = std::min(line->find(' '), line->size());
  std::string word(line->substr(0, end));
  *line = absl::StripLeadingAsciiWhitespace(line->substr(end));
  return word;
}

std::string Unquoted(absl::string_view s) {
  absl::ConsumePrefix(&s, "\"");
  absl::ConsumeSuffix(&s, "\"");
  return std::string(s);
}

void AddSparse(absl::string_view line, bool input, ConvertCase* c) {
  const std::string signature = Word(&line), key = Word(&line);
  TensorInfo info;
  info.kind = TensorInfo::Kind::kSparse;
  info.dtype = Dtype::kFloat;
  info.values_name = Word(&line);
  info.indices_name = Word(&line);
  info.dense_shape_name = Word(&line);
  Signature& s = c->signatures[signature];
  (input ? s.inputs : s.outputs)[key] = info;
}

enum class InfoKind { kInput, kOutput, kComponent };

Status AddInfo(absl::string_view line, InfoKind kind, ConvertCase* c) {
  const std::string signature = Word(&line), key = Word(&line), tensor = Word(&line),
                    type = Word(&line);
  TensorInfo info;
  info.kind = TensorInfo::Kind::kDense;
  info.name = tensor;
  ASSIGN_OR_RETURN(const Attr dtype, ParseAttrText(type));
  ASSIGN_OR_RETURN(const Attr shape, ParseAttrText(line));
  if (dtype.get<Dtype>() == nullptr || shape.get<PartialShape>() == nullptr) {
    return InvalidArgument("not a type and a shape: ", type, " ", line);
  }
  info.dtype = *dtype.get<Dtype>();
  info.shape = *shape.get<PartialShape>();
  Signature& s = c->signatures[signature];
  s.method_name = "tensorflow/serving/predict";
  if (kind == InfoKind::kComponent) {
    TensorInfo& whole = s.outputs[key];
    whole.kind = TensorInfo::Kind::kComposite;
    whole.components.push_back(std::move(info));
  } else {
    (kind == InfoKind::kInput ? s.inputs : s.outputs)[key] = info;
  }
  return OkStatus();
}

StatusOr<NamedTensors> ParseTensors(absl::string_view line) {
  NamedTensors tensors;
  for (absl::string_view part : absl::StrSplit(line, "; ", absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> kv =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    ASSIGN_OR_RETURN(tensors[std::string(kv.first)], ParseTensorText(kv.second));
  }
  return tensors;
}

Status AddSample(absl::string_view line, ConvertCase* c) {
  const std::string signature = Word(&line);
  ASSIGN_OR_RETURN(const NamedTensors inputs, ParseTensors(line));
  ASSIGN_OR_RETURN(const std::string record, SerializeRepresentativeSample(inputs));
  AppendRecord(record, &c->samples[signature]);
  return OkStatus();
}

Status AddRequest(absl::string_view line, ConvertCase* c) {
  PredictionRecord record;
  record.signature = Word(&line);
  ASSIGN_OR_RETURN(const NamedTensors inputs, ParseTensors(line));
  record.inputs.assign(inputs.begin(), inputs.end());
  ASSIGN_OR_RETURN(const std::string bytes, SerializePredictionLog(record));
  AppendRecord(bytes, &c->requests);
  c->requested.insert(record.signature);
  return OkStatus();
}

// Files of the case's samples, named in the options; removed with the object.
class SampleFiles {
 public:
  SampleFiles(const ConvertCase& c, ConverterOptions& options) {
    for (const auto& [signature, bytes] : c.samples) {
      if (!options.quantization_options) continue;
      paths_.push_back(std::filesystem::temp_directory_path() /
                       absl::StrCat("smelt-convert-test-", getpid(), "-", paths_.size()));
      std::ofstream(paths_.back(), std::ios::binary) << bytes;
      options.quantization_options->representative_datasets[signature] = paths_.back();
    }
    if (c.requests.empty() || !options.quantization_options) return;
    paths_.push_back(std::filesystem::temp_directory_path() /
                     absl::StrCat("smelt-convert-test-", getpid(), "-", paths_.size()));
    std::ofstream(paths_.back(), std::ios::binary) << c.requests;
    for (const std::string& signature : c.requested) {
      options.quantization_options->representative_datasets[signature] = paths_.back();
      options.quantization_options->prediction_logs.insert(signature);
    }
  }
  ~SampleFiles() {
    for (const auto& path : paths_) std::filesystem::remove(path);
  }

 private:
  std::vector<std::filesystem::path> paths_;
};

// A model's folder that holds the case's checkpoint alone; removed with the object.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(const ConvertCase& c) : status_(OkStatus()) {
    if (c.variables.empty()) return;
    dir_ = std::filesystem::temp_directory_path() / absl::StrCat("smelt-convert-test-", getpid());
    status_ = Write(c);
  }
  ~CheckpointFolder() {
    if (!dir_.empty()) std::filesystem::remove_all(dir_);
  }
  const std::string& dir() const { return dir_; }  // empty: there is no checkpoint
  const Status& status() const { return status_; }

 private:
  Status Write(const ConvertCase& c) const {
    ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(dir_ + "/variables/variables"));
    for (const auto& [key, value] : c.variables) RETURN_IF_ERROR(writer->Add(key, value));
    return writer->Finish();
  }

  std::string dir_;
  Status status_;
};

StatusOr<MetaGraph> MakeMeta(const ConvertCase& c) {
  MetaGraph meta;
  meta.tags = {"serve"};
  meta.function_aliases = c.aliases;
  meta.signatures = c.signatures;
  meta.saver = c.saver;
  meta.versions.producer = 2474;
  ASSIGN_OR_RETURN(meta.graph, ParseGraph(c.graph));
  return meta;
}

// Lines of the text form by function; the main graph is "-".
std::multimap<std::string, std::string> Lines(const MetaGraph& meta) {
  std::multimap<std::string, std::string> lines;
  for (const Node* n : meta.graph->Nodes()) lines.emplace("-", PrintNode(*n));
  for (const Function* f : meta.graph->library()->Functions()) {
    for (const Node* n : f->body->Nodes()) lines.emplace(f->name(), PrintNode(*n));
  }
  return lines;
}

int CountLines(const MetaGraph& meta, const std::string& function, const std::string& node) {
  int count = 0;
  for (const auto& [name, line] : Lines(meta)) {
    count += RE2::PartialMatch(name, function) && RE2::PartialMatch(line, node);
  }
  return count;
}

// The largest difference, relative to the range of `want`.
double RelativeDifference(const Tensor& got, const Tensor& want) {
  double low = INFINITY, high = -INFINITY, worst = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    low = std::min<double>(low, want.data<float>()[i]);
    high = std::max<double>(high, want.data<float>()[i]);
    const double d = std::abs(double{got.data<float>()[i]} - double{want.data<float>()[i]});
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  const double range = std::max({high - low, std::abs(high), std::abs(low), 1e-30});
  return worst / range;
}

StatusOr<std::string> RunBoth(const ConvertCase& c, const Conversion& converted,
                              absl::string_view line, double tolerance) {
  const std::string signature = Word(&line);
  ASSIGN_OR_RETURN(const NamedTensors inputs, ParseTensors(line));
  ASSIGN_OR_RETURN(MetaGraph plain, MakeMeta(c));
  ASSIGN_OR_RETURN(auto before, LoadedModel::Load(std::move(plain), ""));
  ASSIGN_OR_RETURN(const NamedTensors want, before->RunSignature(signature, inputs));
  // A turn through the text form, so that nothing but the graph itself reaches the second model.
  MetaGraph meta;
  meta.tags = converted.meta->tags;
  meta.signatures = converted.meta->signatures;
  meta.versions = converted.meta->versions;
  ASSIGN_OR_RETURN(meta.graph, ParseGraph(PrintGraph(*converted.meta->graph)));
  ASSIGN_OR_RETURN(auto after, LoadedModel::Load(std::move(meta), ""));
  ASSIGN_OR_RETURN(const NamedTensors got, after->RunSignature(signature, inputs));
  if (got.size() != want.size()) return absl::StrCat(got.size(), " outputs for ", want.size());
  for (const auto& [key, w] : want) {
    auto it = got.find(key);
    if (it == got.end()) return absl::StrCat("no output ", key);
    const Tensor& g = it->second;
    if (g.dtype() != w.dtype() || !(g.shape() == w.shape())) {
      return absl::StrCat(key, " is ", DtypeName(g.dtype()), g.shape().ToString(), ", not ",
                          DtypeName(w.dtype()), w.shape().ToString());
    }
    if (w.dtype() != Dtype::kFloat) {
      if (!g.Identical(w)) return absl::StrCat(key, " differs: ", Summarize(g, 8));
      continue;
    }
    const double d = RelativeDifference(g, w);
    if (!(d <= tolerance)) {
      return absl::StrCat(key, " differs by ", d, ": ", Summarize(g, 8), " for ", Summarize(w, 8));
    }
  }
  return std::string();
}

// What is wrong with the line's expectation, or empty.
StatusOr<std::string> CheckLine(const ConvertCase& c, Conversion& conversion,
                                absl::string_view line, double* tolerance) {
  const std::string what = Word(&line);
  const MetaGraph& meta = *conversion.meta;
  if (what == "note") {
    for (const Note& note : conversion.records.notes) {
      if (absl::StrContains(note.text, Unquoted(line))) return std::string();
    }
    std::string notes;
    for (const Note& note : conversion.records.notes) notes += "\n  " + note.text;
    return "no such note; there are" + notes;
  }
  if (what == "has" || what == "lacks" || what == "count") {
    const std::string wanted = what == "count" ? Word(&line) : "";
    const std::string function = Word(&line);
    const int count = CountLines(meta, function, std::string(line));
    const bool ok = what == "has"     ? count > 0
                    : what == "lacks" ? count == 0
                                      : absl::StrCat(count) == wanted;
    return ok ? std::string() : absl::StrCat(count, " such lines in\n", PrintGraph(*meta.graph));
  }
  if (what == "names") {
    const std::string signature = Word(&line), key = Word(&line);
    const std::string names =
        absl::StrJoin(TensorNames(meta.signatures.at(signature).outputs.at(key)), " ");
    return names == line ? std::string() : absl::StrCat("it names ", names);
  }
  if (what == "transfer") {
    std::string found;
    for (const TransferredTensor& t : conversion.records.transfers) {
      const std::string text =
          absl::StrCat(t.function, t.input ? " in " : " out ", t.index, " ", t.name);
      if (text == line) return std::string();
      absl::StrAppend(&found, "\n  ", text);
    }
    return "no such record; there are" + found;
  }
  if (what == "cost") {
    const std::string function = Word(&line);
    ASSIGN_OR_RETURN(const ReportData data,
                     MakeReportData(conversion, *FindTpuGeneration(kDefaultTpuGeneration)));
    for (const ReportFunction& f : data.functions) {
      if (f.name != function) continue;
      return absl::StrCat(f.cost) == line ? std::string() : absl::StrCat("it is ", f.cost);
    }
    return "no such function in the report";
  }
  if (what == "tolerance") {
    *tolerance = std::stod(std::string(line));
    return std::string();
  }
  if (what == "run") return RunBoth(c, conversion, line, *tolerance);
  return "what is that?";
}

// TensorFlow's importer refuses other names.
std::string OddName(const MetaGraph& meta) {
  static const RE2* const allowed = new RE2("[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*");
  std::vector<const Graph*> graphs{meta.graph.get()};
  for (const Function* f : meta.graph->library()->Functions()) graphs.push_back(f->body.get());
  for (const Graph* g : graphs) {
    for (const Node* n : g->Nodes()) {
      if (!RE2::FullMatch(n->name(), *allowed)) return n->name();
    }
  }
  return "";
}

// Sets *library to the model's functions, so that the caller sees whether the conversion freed
// them.
bool RunConvertCase(const ConvertCase& c, std::weak_ptr<FunctionLibrary>* library) {
  const auto fail = [&](absl::string_view line, absl::string_view why) {
    std::printf("FAILED %s: %s: %s\n", c.name.c_str(), std::string(line).c_str(),
                std::string(why).c_str());
    return false;
  };
  Conversion conversion;
  conversion.settings = c.settings;
  auto options = ParseConverterOptions(c.options);
  Status status = options.status();
  const CheckpointFolder checkpoint(c);
  if (!checkpoint.status().ok()) return fail("variable", checkpoint.status().ToString());
  conversion.model.dir = checkpoint.dir();
  conversion.files = FileSystem::Of({checkpoint.dir()}, {});
  if (options.ok()) {
    conversion.options = *options;
    const SampleFiles files(c, conversion.options);
    auto meta = MakeMeta(c);
    if (!meta.ok()) return fail("graph", meta.status().ToString());
    *library = meta->graph->library();
    conversion.model.meta_graphs.push_back(*std::move(meta));
    status = Convert(conversion);
  }
  if (c.expect.empty()) return fail("case", "expects nothing");
  if (status.ok()) {
    const std::string odd = OddName(*conversion.meta);
    if (!odd.empty()) return fail("names", absl::StrCat("node '", odd, "' has no valid name"));
  }
  double tolerance = 1e-5;
  for (const std::string& text : c.expect) {
    absl::string_view line = text;
    if (absl::ConsumePrefix(&line, "error ")) {
      const std::string code = Word(&line);
      if (status.ok()) return fail(text, "no error");
      if (absl::StatusCodeToString(status.code()) != code ||
          !absl::StrContains(status.message(), Unquoted(line))) {
        return fail(text, status.ToString());
      }
      return true;
    }
    if (!status.ok()) return fail("conversion", status.ToString());
    auto wrong = CheckLine(c, conversion, text, &tolerance);
    if (!wrong.ok()) return fail(text, wrong.status().ToString());
    if (!wrong->empty()) return fail(text, *wrong);
  }
  return true;
}

Status ReadLine(const std::string& line, std::string* section, ConvertCase* c) {
  absl::string_view rest = line;
  if (line == "options" || line == "graph" || line == "expect") {
    *section = line;
  } else if (*section == "expect") {
    if (!line.empty() && line[0] != '#') c->expect.push_back(line);
  } else if (*section == "graph") {
    c->graph += line + "\n";
  } else if (absl::ConsumePrefix(&rest, "case ")) {
    c->name = std::string(rest);
  } else if (absl::ConsumePrefix(&rest, "settings ")) {
    c->settings.auto_place = absl::StrContains(rest, "auto_place");
    c->settings.allow_soft_placement = absl::StrContains(rest, "allow_soft_placement");
    c->settings.revert = absl::StrContains(rest, "revert");
    c->settings.strip_training = absl::StrContains(rest, "strip_training");
    c->settings.write = !absl::StrContains(rest, "in_memory");
  } else if (absl::ConsumePrefix(&rest, "saver ")) {
    SaverDef& saver = c->saver.emplace();
    saver.filename_tensor_name = Word(&rest) + ":0";
    saver.save_tensor_name = Word(&rest) + ":0";
    saver.restore_op_name = Word(&rest);
  } else if (absl::ConsumePrefix(&rest, "alias ")) {
    const std::string function = Word(&rest);
    c->aliases[function] = Word(&rest);
  } else if (absl::ConsumePrefix(&rest, "sample ")) {
    return AddSample(rest, c);
  } else if (absl::ConsumePrefix(&rest, "request ")) {
    return AddRequest(rest, c);
  } else if (absl::ConsumePrefix(&rest, "input ")) {
    return AddInfo(rest, InfoKind::kInput, c);
  } else if (absl::ConsumePrefix(&rest, "output ")) {
    return AddInfo(rest, InfoKind::kOutput, c);
  } else if (absl::ConsumePrefix(&rest, "component ")) {
    return AddInfo(rest, InfoKind::kComponent, c);
  } else if (absl::ConsumePrefix(&rest, "sparse ")) {
    AddSparse(rest, true, c);
  } else if (absl::ConsumePrefix(&rest, "sparse_output ")) {
    AddSparse(rest, false, c);
  } else if (absl::ConsumePrefix(&rest, "variable ")) {
    ASSIGN_OR_RETURN(NamedTensors entry, ParseTensors(rest));
    c->variables.merge(entry);
  } else if (*section == "options") {
    c->options += line + "\n";
  } else if (!line.empty() && line[0] != '#') {
    return InvalidArgument("what is '", line, "'?");
  }
  return OkStatus();
}

int RunConvertFile(const std::string& path, int* passed) {
  std::ifstream file(path);
  std::string line, section;
  ConvertCase c;
  int failed = 0;
  const auto finish = [&] {
    if (!c.name.empty()) {
      std::weak_ptr<FunctionLibrary> library;
      bool ok = RunConvertCase(c, &library);
      if (!library.expired()) {
        std::printf("FAILED %s: functions outlive the conversion\n", c.name.c_str());
        ok = false;
      }
      ok ? ++*passed : ++failed;
    }
    c = ConvertCase();
    section.clear();
  };
  while (std::getline(file, line)) {
    if (absl::StartsWith(line, "---")) {
      finish();
    } else if (Status s = ReadLine(line, &section, &c); !s.ok()) {
      std::printf("FAILED %s: %s\n", c.name.c_str(), s.ToString().c_str());
      ++failed;
      c.name.clear();
    }
  }
  finish();
  return failed;
}

}  // namespace

int ConvertTests(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::filesystem::is_regular_file(argv[i])) {
      failed += RunConvertFile(argv[i], &passed);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.path().extension() == ".case") {
        failed += RunConvertFile(entry.path(), &passed);
      }
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace smelt
