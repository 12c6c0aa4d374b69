#!/bin/sh
# Builds smelt under sanitizers and runs every test: tools/sanitize.sh [address|thread|quick]. `address` stands for address,undefined;
# `quick` for the same, its slow tests left out, and a minute of each fuzz target (SECONDS_EACH).
# Clang where it is installed: it also checks conversions out of range, and its thread sanitizer finds more.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-address}
case $kind in
  address | quick) sanitize=address,undefined folder=address fuzz=ON ;;
  thread) sanitize=thread folder=thread fuzz=OFF ;;
  *) echo "usage: tools/sanitize.sh [address|thread|quick]" >&2; exit 2 ;;
esac
export BUILD="${BUILD:-build}-$folder"
if command -v clang++ >/dev/null; then
  export CC=clang CXX=clang++
  [ $fuzz = ON ] && sanitize=fuzzer-no-link,$sanitize
fi
# Without optimization the build takes less than half as long, and the tests are small.
[ -f "$BUILD/build.ninja" ] || cmake -G Ninja -S . -B "$BUILD" "-DSMELT_SANITIZE=$sanitize;-O0" -DSMELT_FUZZ=$fuzz -DCMAKE_BUILD_TYPE=Debug -DSMELT_UNITY=ON
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
# oneDNN is not instrumented: accesses inside of it are not seen.
export TSAN_OPTIONS=ignore_noninstrumented_modules=1:allocator_may_return_null=1
tools/build.sh
if [ "$kind" = quick ]; then
  SLOW="$(grep -v '^#' tools/slow_tests.txt | paste -sd '|')" tools/test.sh
  # The same inputs each time: a change is blamed for what it breaks. fuzz/run.sh alone tries new ones.
  SEED=${SEED:-1} JOBS=${JOBS:-2} SECONDS_EACH=${SECONDS_EACH:-60} fuzz/run.sh
else
  tools/test.sh
fi
