#include "smelt/graph/device_properties.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace smelt {

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

}  // namespace smelt
