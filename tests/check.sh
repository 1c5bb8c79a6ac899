#!/bin/bash
# check.sh PROGRAM...: runs cmocka programs, one per processor at a time, and prints their lines in the order given. A
# program that runs no test counts as failed (cmocka would call it a pass).
set -u
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export logs
# shellcheck disable=SC2016  # for the shell that runs one
printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -I {} bash -c '"$1" > "$logs/${1//\//_}" 2>&1; echo $? > "$logs/${1//\//_}.status"' one {}
total=0
failed=
for program; do
    log=$logs/${program//\//_}
    status=$(cat "$log.status")
    ran=$(sed -n 's/^\[==========\].* \([0-9]*\) test(s) run\.$/\1/p' "$log" | tail -1)
    if [ "$status" != 0 ] || [ "${ran:-0}" -eq 0 ]; then
        failed="$failed $program"
        cat "$log"
        echo "check: $program: exit status $status, ${ran:-0} tests run"
    else
        printf '  %-46s %3s passed\n' "${program#*/tests/}" "$ran"
    fi
    total=$((total + ${ran:-0}))
done
if [ -n "$failed" ]; then
    echo "check: FAILED:$failed"
    exit 1
fi
echo "check: $total tests in $# programs passed"
[ $# -gt 0 ]
