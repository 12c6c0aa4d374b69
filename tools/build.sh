#!/bin/sh
# Configures once and builds; prints ninja's own progress on a terminal, a line a minute elsewhere.
set -eu
build=${BUILD:-build}
start=$(date +%s)
[ -f "$build/build.ninja" ] || cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DSMELT_UNITY=ON >"$build.configure.log" 2>&1 || { cat "$build.configure.log"; exit 1; }
rm -f "$build.configure.log"
if [ -t 1 ]; then
  ninja -C "$build" -j "${JOBS:-2}"
else
  echo "building with ${JOBS:-2} jobs"
  NINJA_STATUS="[%f/%t %es] " ninja -C "$build" -j "${JOBS:-2}" >"$build/build.log" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    n=$((${n:-0} + 1))
    [ $((n % 30)) = 0 ] && tail -n 1 "$build/build.log"
  done
  wait "$pid" || { grep -E -A20 "FAILED|error:" "$build/build.log" | head -60; exit 1; }
fi
echo "build: $(( $(date +%s) - start )) s"
