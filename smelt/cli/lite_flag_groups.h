// What the files of smelt lite's flags share.
#ifndef SMELT_CLI_LITE_FLAG_GROUPS_H_
#define SMELT_CLI_LITE_FLAG_GROUPS_H_

#include <string>
#include <vector>

#include "smelt/cli/lite_flags.h"

namespace smelt {

inline constexpr std::pair<const char*, LiteQuantize> kLiteModes[] = {
    {"none", LiteQuantize::kNone},
    {"float16", LiteQuantize::kFloat16},
    {"dynamic", LiteQuantize::kDynamic},
    {"int8", LiteQuantize::kInt8},
    {"int16x8", LiteQuantize::kInt16x8}};

// The sets of --supported_ops that are named.
struct LiteSets {
  bool builtins = false, select = false, int8 = false, int16 = false;
};

// "a,b" given once, "a" and "b" given twice.
std::vector<std::string> FlagPieces(const std::vector<std::string>& given, char by = ',');

// How numbers are quantized, in flags.lite. Errors are those of ReadLiteFlags.
Status ReadLiteQuantization(LiteCommandFlags& flags, const LiteSets& sets);

// Options of TFLiteConverter and tflite_convert that smelt does in one way: docs/lite.md lists
// them. INVALID_ARGUMENT with the reason for other values.
void AddFixedLiteFlags(CLI::App& app, LiteCommandFlags& flags);
Status CheckFixedLiteFlags(const LiteCommandFlags& flags);

}  // namespace smelt

#endif  // SMELT_CLI_LITE_FLAG_GROUPS_H_
