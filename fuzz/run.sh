#!/bin/sh
# Builds the fuzz targets and runs each for SECONDS_EACH (default 600): fuzz/run.sh [TARGET...]. With clang++ (Debian: clang,
# libclang-rt-14-dev) they are libFuzzer's; without it g++ runs them on random bytes.
# Each starts from fuzz/seeds/TARGET and from the models in tests/; what it finds worth keeping lies in BUILD/corpus.
set -eu
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-600}
build=${BUILD:-build-fuzz}
targets=${*:-graph_text_fuzz saved_model_fuzz bundle_fuzz slice_table_fuzz npy_fuzz options_fuzz example_fuzz stablehlo_fuzz image_fuzz op_fuzz}
if command -v clang++ >/dev/null; then
  export CC=clang CXX=clang++
  sanitize=fuzzer-no-link,address,undefined
else
  sanitize=address,undefined
fi
[ -f "$build/build.ninja" ] || cmake -G Ninja -S . -B "$build" -DSMELT_FUZZ=ON -DSMELT_UNITY=ON -DSMELT_SANITIZE=$sanitize -DCMAKE_BUILD_TYPE=Debug
# shellcheck disable=SC2086 # a list of names
ninja -C "$build" $targets
for target in $targets; do
  corpus="$build/corpus/$target"
  mkdir -p "$corpus"
  [ -d "fuzz/seeds/$target" ] && cp "fuzz/seeds/$target"/* "$corpus/"
  case $target in
    saved_model_fuzz) for m in tests/models/*/; do cp "$m/saved_model.pb" "$corpus/$(basename "$m")"; done ;;
    bundle_fuzz) for m in tests/models/*/; do [ -f "$m/variables/variables.index" ] && cp "$m/variables/variables.index" "$corpus/$(basename "$m")"; done ;;
    graph_text_fuzz) cp tests/passes/*.graph "$corpus/" ;;
  esac
  echo "$target: $seconds s"
  if [ -n "${CXX:-}" ]; then
    "$build/fuzz/$target" "$corpus" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048
  else
    "$build/fuzz/$target" "$seconds" 1 "$corpus"/*
  fi
done
