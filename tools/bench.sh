#!/bin/sh
# Measures beside TensorFlow: SUITE is a folder of benchmark models (bench/bench.py says of what form).
set -eu
: "${SUITE:?set SUITE to a folder of NAME/saved_model with inputs_B.npz and outputs_B.npz}"
venv=.venv-peers
"$venv/bin/python" -c "import tensorflow" 2>/dev/null || { tools/install_packages.sh debian-packages-peers.txt; python3 -m venv "$venv"; "$venv/bin/pip" install -q -r tests/peers/requirements.txt; }
exec "$venv/bin/python" bench/bench.py "${BUILD:-build}/smelt" "$SUITE" --cold ${NAMES:-}
