#!/bin/sh
# Installs TensorFlow into .venv-peers and runs the tests against it, JOBS at a time, the long ones first; a test's output comes when it
# ends, its last line "N passed, N failed". The status is 1 where one fails.
set -eu
venv=.venv-peers
tools/install_packages.sh debian-packages-peers.txt
if ! "$venv/bin/python" -c "import tensorflow, tensorflow_serving" 2>/dev/null; then
  echo "installing tensorflow into $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r tests/peers/requirements.txt
fi
# The recurrent models are made once, by the first test, for the two that need them.
recurrent=$(mktemp -d)
trap 'rm -rf "$recurrent"' EXIT
xargs -P "${JOBS:-2}" -L 1 tools/test_peer.sh "$venv/bin/python" "${BUILD:-build}/smelt" <<END
recurrent_models --keep $recurrent
keras_models
run_all
lite_files
lite_composites_test
lite_quantize_test
lite_int16_test
lite_fake_quant_test
lite_int4_test
lite_operands_test
lite_ranks_test
optimize_test
quantize_test
page_test
stablehlo_test
random_graphs --count 30
random_graphs --count 30 --version_one
lite_models
convert_test tests/models
lite_loops --keep $recurrent
strip_test
lite_drawn_test
lite_layers_test
lite_fusions_test
lite_custom_test
lite_jax_test
lite_training_test
lite_command_test
lite_converter_test
lite_show_test
lite_op_library_test
lite_resolver_customs
lite_export_ops
lite_outside_test
lite_operators
lite_rounding_test
lite_hybrid
lite_builtins
lite_recurrent
END
