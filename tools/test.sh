#!/bin/sh
# Runs every test that needs nothing but the Debian packages, but for those whose names match SLOW; ends with "N passed, N failed".
set -u
build=${BUILD:-build}
log="$build/test.log"
(cd "$build" && ctest --output-on-failure -j "${JOBS:-2}" --timeout 600 ${SLOW:+-E "$SLOW"}) >"$log" 2>&1
status=$?
grep -E "^ *[0-9]+/[0-9]+ Test" "$log" | sed 's/\.\.\.*/ /'
grep -h "^skipped: " "$build/Testing/Temporary/LastTest.log"
[ "$status" = 0 ] || grep -E "FAILED|Failure|failed|error:|wanted|got:" "$log" | grep -v "tests passed" | head -80
line=$(grep "tests passed" "$log" | tail -1)
failed=$(echo "$line" | sed 's/.* \([0-9]*\) tests failed.*/\1/')
total=$(echo "$line" | sed 's/.* out of \([0-9]*\).*/\1/')
case "$failed$total" in *[!0-9]*|"") echo "no test ran"; cat "$log" | tail -20; exit 1 ;; esac
echo "$((total - failed)) passed, $failed failed"
exit "$status"
