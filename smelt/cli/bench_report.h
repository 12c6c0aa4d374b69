// What `smelt bench` measured, as text, JSON and a picture.
#ifndef SMELT_CLI_BENCH_REPORT_H_
#define SMELT_CLI_BENCH_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "smelt/cli/node_profile.h"
#include "smelt/cli/peaks.h"

namespace smelt {

// Of requests one after the other, or of clients that each wait for their own. The times are
// sorted by Set.
struct Latency {
  int clients = 1;
  size_t answers = 0;
  double median_ms = 0, p99_ms = 0;
  double per_second = 0;  // answers of all clients

  void Set(std::vector<double> ms, double seconds);
};

struct BenchResult {
  std::string model, signature, inputs, origin;
  int threads = 1;
  double first_ms = 0;
  Latency whole;
  std::optional<Latency> clients;
  // Where nodes were looked at.
  Peaks peaks;
  std::optional<Profile> profile;
};

// A table with the nodes that take longest first.
std::string BenchText(const BenchResult& result);
std::string BenchJson(const BenchResult& result);
// Both axes logarithmic: operations for each byte, and operations a second; a dot for each node, as
// large as its share of the time, below the roofs that the machine's peaks are. REQUIRES: a
// profile.
std::string RooflineSvg(const BenchResult& result);

}  // namespace smelt

#endif  // SMELT_CLI_BENCH_REPORT_H_
