#!/bin/sh
# Layer, size and format checks: seconds, no build.
set -eu
tools/install_packages.sh debian-packages.txt
python3 tools/check_layers.py
python3 tools/check_sizes.py
python3 tools/check_names.py
git ls-files 'smelt/*.h' 'smelt/*.cc' 'smelt/*.cpp' 'tests/*.cc' 'fuzz/*.cc' | xargs clang-format --dry-run -Werror
echo "checks: ok"
