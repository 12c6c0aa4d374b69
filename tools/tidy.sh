#!/bin/sh
# clang-tidy over the sources, or those named: tools/tidy.sh [FILE...]. Needs clang-tidy and a build. Loops that are compiled once per instruction set
# (*.isa.cpp) and what is written for other processors are left out.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- $(git ls-files 'smelt/*.cc' 'tests/*.cc' 'fuzz/*.cc' ':!:*.aarch64.cc')
# The compile commands may be GCC's, with warnings that clang does not know.
printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -n 2 clang-tidy -p "${BUILD:-build}" --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null
echo "tidy: ok"
