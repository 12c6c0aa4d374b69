#!/bin/sh
# Builds the fuzz targets and runs each for SECONDS_EACH (default 600), JOBS at a time: fuzz/run.sh [TARGET...]. With clang++ (Debian:
# clang, libclang-rt-14-dev) they are libFuzzer's; without it g++ runs them on random bytes. BUILD may be the address sanitizer's build.
# FILES is a folder of real files to start from, besides those that each target has: of tflite_fuzz that of bench/lite_many.py, for example.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build-fuzz}
targets=${*:-tflite_fuzz graph_text_fuzz saved_model_fuzz bundle_fuzz slice_table_fuzz npy_fuzz options_fuzz example_fuzz stablehlo_fuzz image_fuzz op_fuzz graph_fuzz optimize_fuzz}
if command -v clang++ >/dev/null; then
  export CC=clang CXX=clang++
  sanitize=fuzzer-no-link,address,undefined
else
  sanitize=address,undefined
fi
[ -f "$build/build.ninja" ] || cmake -G Ninja -S . -B "$build" -DSMELT_FUZZ=ON -DSMELT_UNITY=ON -DSMELT_SANITIZE=$sanitize -DCMAKE_BUILD_TYPE=Debug
# shellcheck disable=SC2086 # a list of names
ninja -C "$build" $targets
# shellcheck disable=SC2086
printf '%s\n' $targets | xargs -P "${JOBS:-1}" -n 1 fuzz/run_one.sh "$build" "${SECONDS_EACH:-600}"
