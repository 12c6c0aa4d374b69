// The certificate of a conversion: what was converted, into which files, and how the answers of
// both models differ. It travels with the model (assets.extra/conversion_certificate.json), and
// holds nothing that another run would say otherwise. docs/report.md has its fields.
#ifndef SMELT_CONVERT_CERTIFICATE_H_
#define SMELT_CONVERT_CERTIFICATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "smelt/convert/conversion.h"

namespace smelt {

inline constexpr char kCertificatePath[] = "assets.extra/conversion_certificate.json";

struct CertifiedFile {
  std::string path;  // in the model's folder
  int64_t bytes = 0;
  std::string sha256;
};

struct Certificate {
  std::string smelt_version;
  std::string input_sha256;  // ReportModel::sha256
  std::string options;
  std::vector<std::string> flags;  // of the command line, that change what is written
  std::vector<CertifiedFile> files;
  int64_t requests = 0;    // made up for each signature
  std::string log_sha256;  // of recorded requests, or empty
  std::vector<std::string> shapes_only;
  double tolerance = 0;
};

// Takes away a certificate that came along from the input: it is about other files.
Status RemoveOldCertificate(const std::string& dir);
// Writes the certificate of the model in `dir`, which is complete. REQUIRES: data.model is there,
// and the verification was done and found no difference.
Status WriteCertificate(const ConvertFlags& flags, const Conversion& c, const ReportData& data,
                        const std::string& dir);
// NOT_FOUND where there is none, INVALID_ARGUMENT for one that is damaged or of a later version.
StatusOr<Certificate> ReadCertificate(const std::string& dir);

struct CertificateCheck {
  std::vector<std::string> differences;  // one line for each; empty: all is as certified
  size_t files = 0;                      // that were compared
  Verification verification;             // done where an input was given
};
// Compares the model in flags.output_dir with its certificate; where flags.input_dir is given also
// that model's hash, and the answers of both on the certified requests, of which a log must be
// given again. Writes nothing. Errors of ReadCertificate, of reading files and of
// VerifyConversion; INVALID_ARGUMENT without that log.
StatusOr<CertificateCheck> CheckCertificate(const ConvertFlags& flags);

}  // namespace smelt

#endif  // SMELT_CONVERT_CERTIFICATE_H_
