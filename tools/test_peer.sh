#!/bin/sh
# One test against a peer: tools/test_peer.sh PYTHON SMELT NAME [ARGUMENT...]. Its output comes as one piece when it ends.
set -u
python=$1 smelt=$2 name=$3
shift 3
begin=$(date +%s)
out=$("$python" "tests/peers/$name.py" "$smelt" "$@" 2>&1)
status=$?
printf '%s\n%s: status %s, %s s\n' "$out" "$name $*" "$status" "$(($(date +%s) - begin))"
[ "$status" = 0 ]
