#!/bin/sh
# Installs TensorFlow into .venv-peers and runs the tests against it; ends with "N passed, N failed".
set -eu
venv=.venv-peers
tools/install_packages.sh debian-packages-peers.txt
if ! "$venv/bin/python" -c "import tensorflow, tensorflow_serving" 2>/dev/null; then
  echo "installing tensorflow into $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r tests/peers/requirements.txt
fi
"$venv/bin/python" tests/peers/run_all.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/keras_models.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/recurrent_models.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/convert_test.py "${BUILD:-build}/smelt" tests/models
"$venv/bin/python" tests/peers/strip_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/optimize_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/page_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/quantize_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_quantize_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_layers_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_fusions_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_composites_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_custom_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_command_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_show_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_op_library_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/stablehlo_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_files.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_models.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_export_ops.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_operands_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_outside_test.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_operators.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_hybrid.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_builtins.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/lite_recurrent.py "${BUILD:-build}/smelt"
"$venv/bin/python" tests/peers/random_graphs.py "${BUILD:-build}/smelt" --count 30
"$venv/bin/python" tests/peers/random_graphs.py "${BUILD:-build}/smelt" --count 30 --version_one
