#include "smelt/convert/certificate.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "rapidjson/document.h"
#include "rapidjson/error/en.h"
#include "smelt/convert/report/report_data.h"
#include "smelt/io/descriptor.h"
#include "smelt/io/fs.h"
#include "smelt/io/json_writer.h"
#include "smelt/io/sha256.h"

namespace smelt {
namespace {

namespace stdfs = std::filesystem;

constexpr int kCertificateVersion = 1;

// Paths of the files below `dir`, ascending, without the certificate.
Status ListFiles(const std::string& dir, const std::string& below, std::vector<std::string>* out) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(JoinPath(dir, below)));
  for (const std::string& name : names) {
    const std::string path = below.empty() ? name : JoinPath(below, name);
    std::error_code e;
    const stdfs::path whole = JoinPath(dir, path);
    // A link to a folder may lead anywhere, also back.
    if (stdfs::is_directory(stdfs::symlink_status(whole, e))) {
      RETURN_IF_ERROR(ListFiles(dir, path, out));
    } else if (stdfs::is_regular_file(whole, e)) {
      if (path != kCertificatePath) out->push_back(path);
    } else {
      return InvalidArgument(whole.string(), " is neither a file nor a folder");
    }
  }
  return OkStatus();
}

StatusOr<std::vector<CertifiedFile>> HashFiles(const std::string& dir) {
  std::vector<std::string> paths;
  RETURN_IF_ERROR(ListFiles(dir, "", &paths));
  std::ranges::sort(paths);
  std::vector<CertifiedFile> files;
  for (const std::string& path : paths) {
    CertifiedFile& file = files.emplace_back();
    file.path = path;
    ASSIGN_OR_RETURN(file.bytes, FileSize(JoinPath(dir, path)));
    ASSIGN_OR_RETURN(file.sha256, Sha256OfFile(JoinPath(dir, path)));
  }
  return files;
}

std::vector<std::string> CertifiedFlags(const ConvertFlags& flags) {
  std::vector<std::string> out;
  const auto add = [&](bool given, const char* name) {
    if (given) out.push_back(name);
  };
  add(flags.settings.auto_place, "--auto_place");
  add(flags.settings.allow_soft_placement, "--allow_soft_placement");
  add(flags.settings.revert, "--revert");
  add(flags.settings.strip_training, "--strip_training");
  add(flags.warmup_requests, "--warmup_requests");
  for (const std::string& name : flags.exclude) out.push_back(absl::StrCat("--exclude=", name));
  return out;
}

void WriteCertifiedVerification(JsonWriter& w, const VerifyFlags& flags, const Verification& v,
                                const std::string& log_sha256) {
  w.Object("verification", [&] {
    w.Field("requests_per_signature", flags.log.empty() ? flags.count : 0);
    w.Field("log_sha256", log_sha256);
    w.Texts("shapes_only", flags.shapes_only);
    w.RealField("tolerance", v.tolerance);
    w.Field("tolerance_for", v.tolerance_for);
    w.Field("joined_requests", v.joined);
    w.Objects("outputs", v.outputs, [&](const VerifiedOutput& o) {
      w.Field("signature", o.signature);
      w.Field("output", o.output);
      w.Field("requests", o.requests);
      w.RealField("max_abs", o.max_abs);
      w.RealField("max_relative", o.max_relative);
      w.Flag("random", o.random);
      w.Flag("ok", o.ok);
    });
    w.Texts("notes", v.notes);
  });
}

void WriteCertifiedCalibration(JsonWriter& w, const ConversionRecords& r) {
  w.Object("calibration", [&] {
    w.Objects("tensors", r.calibrated, [&](const CalibratedTensor& t) {
      w.Field("function", t.function);
      w.Field("tensor", t.tensor);
      w.Field("samples", t.samples);
    });
    w.Objects("layers", r.layers, [&](const QuantizedLayer& l) {
      w.Field("function", l.function);
      w.Field("node", l.node);
      w.Flag("quantized", l.quantized);
      w.Field("method", l.method);
      w.Field("reason", l.reason);
    });
  });
}

// Reads fields of one object; the first that is missing or of another type is the error.
class CertificateReader {
 public:
  explicit CertificateReader(std::string where) : where_(std::move(where)) {}

  std::string Text(const rapidjson::Value& object, const char* key) {
    const rapidjson::Value* v = Member(object, key);
    if (v == nullptr || !v->IsString()) return Wrong(key, "text"), "";
    return {v->GetString(), v->GetStringLength()};
  }
  int64_t Integer(const rapidjson::Value& object, const char* key) {
    const rapidjson::Value* v = Member(object, key);
    if (v == nullptr || !v->IsInt64()) return Wrong(key, "an integer"), 0;
    return v->GetInt64();
  }
  double Number(const rapidjson::Value& object, const char* key) {
    const rapidjson::Value* v = Member(object, key);
    if (v == nullptr || !v->IsNumber()) return Wrong(key, "a number"), 0;
    return v->GetDouble();
  }
  std::vector<std::string> Texts(const rapidjson::Value& object, const char* key) {
    std::vector<std::string> out;
    for (const rapidjson::Value& v : List(object, key)) {
      if (!v.IsString()) return Wrong(key, "a list of texts"), out;
      out.emplace_back(v.GetString(), v.GetStringLength());
    }
    return out;
  }
  const rapidjson::Value& Object(const rapidjson::Value& object, const char* key) {
    static const rapidjson::Value empty(rapidjson::kObjectType);
    const rapidjson::Value* v = Member(object, key);
    if (v == nullptr || !v->IsObject()) return Wrong(key, "an object"), empty;
    return *v;
  }
  rapidjson::Value::ConstArray List(const rapidjson::Value& object, const char* key) {
    static const rapidjson::Value empty(rapidjson::kArrayType);
    const rapidjson::Value* v = Member(object, key);
    if (v == nullptr || !v->IsArray()) return Wrong(key, "a list"), empty.GetArray();
    return v->GetArray();
  }
  const Status& status() const { return status_; }

 private:
  static const rapidjson::Value* Member(const rapidjson::Value& object, const char* key) {
    if (!object.IsObject()) return nullptr;
    const auto it = object.FindMember(key);
    return it == object.MemberEnd() ? nullptr : &it->value;
  }
  void Wrong(const char* key, const char* what) {
    if (status_.ok()) status_ = InvalidArgument(where_, ": \"", key, "\" is not ", what);
  }

  const std::string where_;
  Status status_;
};

// What the conversion that is checked was, as far as comparing its answers depends on it.
StatusOr<Conversion> CertifiedConversion(const Certificate& certificate, const FileSystem& files) {
  Conversion c;
  ASSIGN_OR_RETURN(c.options, ParseConverterOptions(certificate.options));
  c.files = files;
  return c;
}

Status CheckInput(const ConvertFlags& flags, const Certificate& certificate,
                  const ModelFolder& output, CertificateCheck* out) {
  ASSIGN_OR_RETURN(const ModelFolder input, ModelFolder::Open(flags.input_dir));
  ASSIGN_OR_RETURN(const ReportModel model, DescribeModel(flags.input_dir, input, MetaGraph()));
  if (model.sha256 != certificate.input_sha256) {
    out->differences.push_back(absl::StrCat(flags.input_dir, ": is not the model that was ",
                                            "converted: SHA-256 is ", model.sha256,
                                            ", certified is ", certificate.input_sha256));
    return OkStatus();
  }
  VerifyFlags verify;
  verify.count = static_cast<int>(certificate.requests);
  verify.shapes_only = certificate.shapes_only;
  verify.tolerance = certificate.tolerance;
  if (!certificate.log_sha256.empty()) {
    verify.log = flags.verify.log;
    if (verify.log.empty()) {
      return InvalidArgument("the certified requests are those of a file with SHA-256 ",
                             certificate.log_sha256, ": give it by --verify_log");
    }
    ASSIGN_OR_RETURN(const std::string sum, Sha256OfFile(verify.log));
    if (sum != certificate.log_sha256) {
      out->differences.push_back(absl::StrCat(verify.log, ": changed: SHA-256 is ", sum,
                                              ", certified is ", certificate.log_sha256));
      return OkStatus();
    }
  }
  FileSystem files = flags.files.With(FoldersOfModel(input.dir()));
  files = files.With(FoldersOfModel(output.dir()));
  ASSIGN_OR_RETURN(const Conversion c, CertifiedConversion(certificate, files));
  ASSIGN_OR_RETURN(out->verification,
                   VerifyConversion(verify, c, input.dir(), output.dir(), flags.count));
  if (!out->verification.ok) {
    out->differences.push_back("the answers of both models differ by more than is certified");
  }
  return OkStatus();
}

}  // namespace

Status RemoveOldCertificate(const std::string& dir) {
  const std::string path = JoinPath(dir, kCertificatePath);
  if (!Exists(path)) return OkStatus();
  RETURN_IF_ERROR(RemoveFile(path));
  const stdfs::path folder = stdfs::path(path).parent_path();
  std::error_code e;
  if (stdfs::is_empty(folder, e)) stdfs::remove(folder, e);
  return e ? FileError(folder.string(), e.value()) : OkStatus();
}

Status WriteCertificate(const ConvertFlags& flags, const Conversion& c, const ReportData& data,
                        const std::string& dir) {
  ASSIGN_OR_RETURN(const std::vector<CertifiedFile> files, HashFiles(dir));
  std::string log_sha256;
  if (!flags.verify.log.empty()) {
    ASSIGN_OR_RETURN(log_sha256, Sha256OfFile(flags.verify.log));
  }
  JsonWriter w;
  w.Object([&] {
    w.Field("version", kCertificateVersion);
    w.Field("smelt_version", flags.smelt_version);
    w.Object("input", [&] {
      w.Field("sha256", data.model.sha256);
      w.Texts("tags", data.model.tags);
      w.Field("tensorflow_version", data.model.tensorflow_version);
    });
    w.Field("options", flags.options_text);
    w.Texts("flags", CertifiedFlags(flags));
    w.Objects("files", files, [&](const CertifiedFile& f) {
      w.Field("path", f.path);
      w.Field("bytes", f.bytes);
      w.Field("sha256", f.sha256);
    });
    WriteCertifiedVerification(w, flags.verify, data.verification, log_sha256);
    WriteCertifiedCalibration(w, c.records);
  });
  const std::string path = JoinPath(dir, kCertificatePath);
  RETURN_IF_ERROR(MakeDirs(stdfs::path(path).parent_path().string()));
  return WriteFileAtomically(path, absl::StrCat(w.text(), "\n"));
}

StatusOr<Certificate> ReadCertificate(const std::string& dir) {
  const std::string path = JoinPath(dir, kCertificatePath);
  if (!Exists(path)) {
    return NotFound(path, ": the model has no certificate (smelt convert --certificate)");
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  rapidjson::Document json;
  // Iterative: nesting is not bounded by the stack.
  json.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (json.HasParseError()) {
    return InvalidArgument(path, ": byte ", json.GetErrorOffset(), ": ",
                           rapidjson::GetParseError_En(json.GetParseError()));
  }
  CertificateReader reader(path);
  Certificate out;
  const int64_t version = reader.Integer(json, "version");
  RETURN_IF_ERROR(reader.status());
  if (version != kCertificateVersion) {
    return InvalidArgument(path, ": version ", version, " is not known, ", kCertificateVersion,
                           " is");
  }
  out.smelt_version = reader.Text(json, "smelt_version");
  out.input_sha256 = reader.Text(reader.Object(json, "input"), "sha256");
  out.options = reader.Text(json, "options");
  out.flags = reader.Texts(json, "flags");
  for (const rapidjson::Value& f : reader.List(json, "files")) {
    CertifiedFile& file = out.files.emplace_back();
    file.path = reader.Text(f, "path");
    file.bytes = reader.Integer(f, "bytes");
    file.sha256 = reader.Text(f, "sha256");
  }
  const rapidjson::Value& v = reader.Object(json, "verification");
  out.requests = reader.Integer(v, "requests_per_signature");
  out.log_sha256 = reader.Text(v, "log_sha256");
  out.shapes_only = reader.Texts(v, "shapes_only");
  out.tolerance = reader.Number(v, "tolerance");
  RETURN_IF_ERROR(reader.status());
  const bool asks =
      out.log_sha256.empty() ? out.requests > 0 && out.requests <= INT32_MAX : out.requests == 0;
  if (!asks || !(out.tolerance >= 0)) {
    return InvalidArgument(path, ": \"verification\" says of no requests");
  }
  return out;
}

StatusOr<CertificateCheck> CheckCertificate(const ConvertFlags& flags) {
  ASSIGN_OR_RETURN(const ModelFolder output, ModelFolder::Open(flags.output_dir));
  ASSIGN_OR_RETURN(const Certificate certificate, ReadCertificate(output.dir()));
  CertificateCheck out;
  ASSIGN_OR_RETURN(const std::vector<CertifiedFile> files, HashFiles(output.dir()));
  std::map<std::string, const CertifiedFile*> found;
  for (const CertifiedFile& f : files) found[f.path] = &f;
  for (const CertifiedFile& f : certificate.files) {
    const auto it = found.find(f.path);
    if (it == found.end()) {
      out.differences.push_back(f.path + ": missing");
      continue;
    }
    if (it->second->sha256 != f.sha256 || it->second->bytes != f.bytes) {
      out.differences.push_back(absl::StrCat(f.path, ": changed: ", it->second->bytes,
                                             " bytes with SHA-256 ", it->second->sha256,
                                             ", certified are ", f.bytes, " with ", f.sha256));
    }
    found.erase(it);
  }
  for (const auto& [path, file] : found) out.differences.push_back(path + ": extra");
  out.files = certificate.files.size();
  // A changed model may be anything: its answers are asked for only where it is the certified one.
  if (!flags.input_dir.empty() && out.differences.empty()) {
    RETURN_IF_ERROR(CheckInput(flags, certificate, output, &out));
  }
  return out;
}

}  // namespace smelt
