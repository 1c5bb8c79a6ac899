#!/bin/sh
# check.sh PROGRAM...: runs cmocka programs one after another. A program that runs no test counts as failed
# (cmocka would call it a pass).
set -u
programs=0
failed=
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in "$@"; do
    programs=$((programs + 1))
    "$program" > "$log" 2>&1
    status=$?
    ran=$(sed -n 's/^\[==========\].* \([0-9]*\) test(s) run\.$/\1/p' "$log" | tail -1)
    if [ $status -ne 0 ] || [ "${ran:-0}" -eq 0 ]; then
        failed="$failed $program"
        cat "$log"
        echo "check: $program: exit status $status, ${ran:-0} tests run"
    else
        printf '  %-46s %3s passed\n' "${program#*/tests/}" "$ran"
    fi
    total=$((${total:-0} + ${ran:-0}))
done
if [ -n "$failed" ]; then
    echo "check: FAILED:$failed"
    exit 1
fi
echo "check: ${total:-0} tests in $programs programs passed"
[ $programs -gt 0 ]
