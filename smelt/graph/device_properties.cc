#include "smelt/graph/device_properties.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace smelt {
namespace {

bool ReadDeviceNumber(absl::string_view text, int* number) {
  return text == "*" || (absl::SimpleAtoi(text, number) && *number >= 0);
}

}  // namespace

StatusOr<DeviceProperties> ParseDeviceProperties(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" ,"), absl::SkipEmpty());
  if (words.size() < 2) return InvalidArgument("a device is 'NAME TYPE key=value ...': ", text);
  DeviceProperties device;
  device.name = std::string(words[0]);
  device.type = std::string(words[1]);
  const std::pair<absl::string_view, int64_t*> numbers[] = {{"frequency", &device.frequency},
                                                            {"num_cores", &device.num_cores},
                                                            {"memory_size", &device.memory_size},
                                                            {"bandwidth", &device.bandwidth}};
  for (size_t i = 2; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (pair.first.empty() || pair.second.empty()) {
      return InvalidArgument("'", words[i], "' of a device is no key=value: ", text);
    }
    int64_t* number = nullptr;
    for (const auto& [key, field] : numbers) {
      if (key == pair.first) number = field;
    }
    if (number == nullptr) {
      device.environment[std::string(pair.first)] = std::string(pair.second);
    } else if (!absl::SimpleAtoi(pair.second, number) || *number < 0) {
      return InvalidArgument("'", words[i], "' of a device is no number: ", text);
    }
  }
  return device;
}

std::string DeviceType(absl::string_view device) {
  constexpr absl::string_view kPart = "/device:";
  const size_t at = device.rfind(kPart);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = device.substr(at + kPart.size());
  return std::string(rest.substr(0, rest.find(':')));
}

absl::string_view TaskOfDevice(absl::string_view device) {
  const size_t at = device.find("/device:");
  if (at != absl::string_view::npos) return device.substr(0, at);
  const size_t task = device.find("/task:");
  if (task == absl::string_view::npos) return "";
  return device.substr(0, device.find('/', task + 1));
}

std::string DeviceName::Task() const {
  return absl::StrCat("/job:", job, "/replica:", replica, "/task:", task);
}

std::string DeviceName::Whole() const {
  return absl::StrCat(Task(), "/device:", type, ":", number);
}

std::optional<DeviceName> ParseDeviceName(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  DeviceName name;
  const bool local = !absl::StartsWith(lower, "/");
  if (local) name.job = "localhost";
  for (absl::string_view part : absl::StrSplit(lower, '/', absl::SkipEmpty())) {
    part = absl::StripPrefix(part, "device:");
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    bool good = true;
    if (local && (part == "cpu" || part == "gpu")) {
      name.type = std::string(part);
    } else if (words.first == "job") {
      name.job = std::string(words.second);
    } else if (words.first == "replica") {
      good = ReadDeviceNumber(words.second, &name.replica);
    } else if (words.first == "task") {
      good = ReadDeviceNumber(words.second, &name.task);
    } else {
      name.type = std::string(words.first);
      good = ReadDeviceNumber(words.second, &name.number);
    }
    if (!good) return std::nullopt;
  }
  return name;
}

}  // namespace smelt
