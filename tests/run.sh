#!/bin/bash
# run.sh [SUITE...]: the test runner behind `make test`. Builds, runs every suite (or those named) one after
# another, each printing its own closing lines, and ends with a table. Exit status 1 when any suite failed.
set -u
cd "$(dirname "$0")/.." || exit 1

# name | command | the question it answers
suites='
build    | make -s -j2 all                 | does it compile
check    | make -s -j2 check               | unit, property and oracle: do the formulas hold
golden   | make -s -j2 golden              | the same bytes as last time, whatever the compiler
accuracy | make -s accuracy                | no worse against published measurements than the committed report
kernel-accuracy | make -s kernel-accuracy         | no worse against published kernel timings than the committed report
memory-accuracy | make -s memory-accuracy         | no worse against compiled steps than the committed report
cycle-accuracy | make -s cycle-accuracy          | no worse against compiled operations than the committed report
products | node --test --test-reporter=dot tests/compile/products.test.mjs | as many multiplications as compiled steps hold
sql      | tests/sql/run.sh                | migrations, constraints, roles, the private cluster
api      | tests/api/run.sh                | every endpoint, every error, hostile and slow clients
questions | node --test --test-reporter=dot tests/questions/questions.test.mjs | what people asked in public gets the answer that it ended with
eco      | node --test --test-reporter=dot tests/eco/recorded.test.mjs | emitted files against what the real MaxText and XPK said
web      | tests/web/run.sh                | the form in a real browser
readme   | tests/readme/run.sh             | the lines that the README tells users to type
docker   | tests/docker/run.sh             | the container files are well-formed and fit the program
'

wanted() { [ $# -eq 1 ] && return 0; local name=$1; shift; local w; for w; do [ "$w" = "$name" ] && return 0; done; return 1; }

table=
failed=0
begin_all=$SECONDS
while IFS='|' read -r name command question; do
    name=${name// /}
    [ -n "$name" ] && wanted "$name" "$@" || continue
    read -r command <<< "$command"
    echo
    echo "=== $name:$question"
    begin=$SECONDS
    if bash -c "$command" < /dev/null 2>&1; then
        verdict=passed
    else
        verdict=FAILED
        failed=$((failed + 1))
    fi
    table+=$(printf '%-10s %-7s %4d s' "$name" $verdict $((SECONDS - begin)))$'\n'
done <<< "$suites"

echo
echo "=== summary"
printf '%s' "$table"
count=$(printf '%s' "$table" | grep -c .)
if [ "$count" -eq 0 ]; then
    echo "no such suite: $*"
    exit 1
fi
echo "$((count - failed)) of $count suites passed in $((SECONDS - begin_all)) s"
[ $failed -eq 0 ]
