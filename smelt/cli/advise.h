// The flags of smelt convert that ask for batching options from recorded traffic.
#ifndef SMELT_CLI_ADVISE_H_
#define SMELT_CLI_ADVISE_H_

#include "smelt/convert/advise/advise.h"

namespace CLI {
class App;
}  // namespace CLI

namespace smelt {

// REQUIRES: `flags` outlives the parse.
void AddAdviseFlags(CLI::App& app, AdviseFlags* flags);

// Prints the advice, sets its options in convert.options and adds them to `text`, the options'
// text.
void TakeAdvice(ConvertFlags& convert, std::string* text);

}  // namespace smelt

#endif  // SMELT_CLI_ADVISE_H_
