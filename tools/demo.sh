#!/bin/sh
# The main job on the sample model: show it, run it, convert it for the accelerator, run the converted model, compare, report.
set -eu
smelt="${BUILD:-build}/smelt"
model=tests/models/language_model
log=tests/models/language_model.tfrecord
out=$(mktemp -d)/converted
trap 'rm -rf "$(dirname "$out")"' EXIT
step() {
  printf '\n== %s\n   $ %s\n' "$1" "$(shift; echo "$*")"
  shift
  begin=$(date +%s%N)
  "$@"
  printf '   (%d ms)\n' "$(( ($(date +%s%N) - begin) / 1000000 ))"
}
step "The model: text in, scores out; words are looked up on the host, a transformer sits behind the alias tpu_func" \
  "$smelt" show "$model" --tag_set serve --signature_def serving_default
step "Run it" "$smelt" run "$model" --tag_set serve --signature_def serving_default --input_exprs 'text=["A great film, with a fine story!"]'
step "Convert it: tpu_func goes to the accelerator" "$smelt" convert "$model" "$out" \
  --converter_options_string 'tpu_functions { function_alias: "tpu_func" } disable_default_optimizations: true'
step "Run the converted model" "$smelt" run "$out" --tag_set serve --signature_def serving_default --input_exprs 'text=["A great film, with a fine story!"]'
step "Compare both with what TensorFlow answered to recorded requests: before" "$smelt" replay "$model" --log "$log"
step "... and after conversion" "$smelt" replay "$out" --log "$log"
cat <<EOF

The same with your own model:
  $smelt show MY_MODEL --all
  $smelt run MY_MODEL --tag_set serve --signature_def serving_default --input_exprs 'x=[[1.0,2.0]]'
  $smelt convert MY_MODEL CONVERTED \\
    --converter_options_string 'tpu_functions { function_alias: "MY_ALIAS" }'
  $smelt replay CONVERTED --log MY_REQUESTS.tfrecord
EOF
