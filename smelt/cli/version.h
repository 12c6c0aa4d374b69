#ifndef SMELT_CLI_VERSION_H_
#define SMELT_CLI_VERSION_H_

namespace smelt {

// What `smelt version` prints and the reports hold.
inline constexpr char kSmeltVersion[] = "0.1.0";

}  // namespace smelt

#endif  // SMELT_CLI_VERSION_H_
