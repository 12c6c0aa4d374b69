#!/bin/sh
# test_aarch64.sh BUILD: cross-compiles the loops and teams of threads for AArch64 into BUILD and runs their tests under qemu-user.
# Exits with 77, which ctest calls skipped, where the compiler or the emulator is not installed.
set -eu
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null || { echo "skipped: there is no $tool (Debian's g++-aarch64-linux-gnu and qemu-user)"; exit 77; }
done
cmake -G Ninja -S . -B "$1" -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DSMELT_LOOPS_ONLY=ON
ninja -C "$1" -j "${JOBS:-2}"
cd "$1"
ctest --output-on-failure
