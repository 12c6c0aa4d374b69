#!/bin/sh
# One fuzz target of a build for some seconds: fuzz/run_one.sh BUILD SECONDS TARGET. It starts from fuzz/seeds/TARGET and from the files
# that the tests have, with SEED where one is set, and from the files under the folder FILES, those of 100 kB and more left out; what it
# finds worth keeping lies in BUILD/corpus, its log in BUILD/corpus/TARGET.log.
set -eu
build=$1 seconds=$2 target=$3
corpus="$build/corpus/$target"
mkdir -p "$corpus"
[ -d "fuzz/seeds/$target" ] && cp "fuzz/seeds/$target"/* "$corpus/"
case $target in
  saved_model_fuzz) for m in tests/models/*/; do cp "$m/saved_model.pb" "$corpus/$(basename "$m")"; done ;;
  bundle_fuzz) for m in tests/models/*/; do [ -f "$m/variables/variables.index" ] && cp "$m/variables/variables.index" "$corpus/$(basename "$m")"; done ;;
  # With a smelt that is built, that without sanitizers first, also what it exports of the models that the tests have.
  tflite_fuzz) for program in build/smelt "$build/smelt" ""; do [ -z "$program" ] || [ -x "$program" ] && break; done
    python3 fuzz/tflite_seeds.py "$corpus" ${program:+"$program"} ;;
  graph_text_fuzz) cp tests/passes/*.graph "$corpus/" ;;
  # A file for every fourth case: what is fed, what is fetched, the graph before. Reading all would take longer than a minute.
  optimize_fuzz) python3 -c 'import pathlib, re, sys
for path in pathlib.Path("tests/grappler").glob("*.graph"):
    for n, case in enumerate(re.split(r"(?m)^-{3,}\n", path.read_text())[::4]):
        field = lambda name: " ".join(re.findall(rf"(?m)^{name} (.*)", case.split("\nin\n")[0]))
        graph = re.split(r"(?m)^(?:out|same|smelt)$", case.split("\nin\n")[1])[0]
        (pathlib.Path(sys.argv[1]) / f"{path.stem}_{n}").write_text(field("feeds") + "\n" + field("fetches") + "\n" + graph)' "$corpus" ;;
  # Each byte is a choice: any will do, but for the number of them.
  graph_fuzz) python3 -c 'import random, sys
for n in range(1, 65): open(f"{sys.argv[1]}/drawn_{n}", "wb").write(random.Random(n).randbytes(8 * n))' "$corpus" ;;
esac
[ -z "${FILES:-}" ] || find -L "$FILES" -type f -size -100k | paste -sd, >"$corpus.files"
if grep -q "CMAKE_CXX_COMPILER:.*clang" "$build/CMakeCache.txt"; then
  set -- "$corpus" ${FILES:+"-seed_inputs=@$corpus.files"} -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 ${SEED:+-seed=$SEED} -artifact_prefix="$build/corpus/$target."
else
  # shellcheck disable=SC2046 # a list of names
  set -- "$seconds" 1 "$corpus"/* ${FILES:+$(tr , ' ' <"$corpus.files")}
fi
if "$build/fuzz/$target" "$@" >"$corpus.log" 2>&1; then
  echo "$target: $seconds s, ok"
else
  echo "$target: failed"
  tail -60 "$corpus.log"
  exit 1
fi
