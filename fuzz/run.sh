#!/bin/sh
# Builds every fuzz target with clang and runs each for SECONDS (default 600), starting from the models in tests/.
set -eu
seconds=${SECONDS_EACH:-600}
build=${BUILD:-build-fuzz}
[ -f "$build/build.ninja" ] || CXX=clang++ cmake -G Ninja -S . -B "$build" -DSMELT_FUZZ=ON -DSMELT_SANITIZE=fuzzer-no-link,address,undefined -DCMAKE_BUILD_TYPE=Debug
ninja -C "$build" graph_text_fuzz saved_model_fuzz bundle_fuzz npy_fuzz
for target in graph_text_fuzz saved_model_fuzz bundle_fuzz npy_fuzz; do
  corpus="$build/corpus/$target"
  mkdir -p "$corpus"
  case $target in
    saved_model_fuzz) for m in tests/models/*/; do cp "$m/saved_model.pb" "$corpus/$(basename "$m")"; done ;;
    bundle_fuzz) for m in tests/models/*/; do [ -f "$m/variables/variables.index" ] && cp "$m/variables/variables.index" "$corpus/$(basename "$m")"; done ;;
    graph_text_fuzz) cp tests/passes/*.graph "$corpus/" ;;
  esac
  "$build/fuzz/$target" "$corpus" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048
done
