#!/bin/bash
# run.sh [FILE...]: the tests of the HTTP API, and of what it does when things fail (tests/fault). Every test file starts
# daemons of its own on free loopback ports; they share one private PostgreSQL cluster, which is removed at the end.
# PROGRAM names the program, relative to the top folder. `make api-test SANITIZER=thread` (or address,undefined) runs
# them against a build with sanitizers; any report of theirs fails the test whose daemon made it.
set -u
cd "$(dirname "$0")/../.." || exit 1
export PROGRAM=${PROGRAM:-build/tpu-advisor} REDOCLY_TELEMETRY=off
missing=
for tool in node npm psql; do command -v $tool > /dev/null 2>&1 || missing="$missing $tool"; done
if [ -n "$missing" ] || [ ! -x "$PROGRAM" ]; then
    echo "api-test: missing:$missing $([ -x "$PROGRAM" ] || echo "$PROGRAM") (make deps and make provide them)"
    exit 1
fi

if [ ! -d tests/api/node_modules ] || [ tests/api/package-lock.json -nt tests/api/node_modules/.package-lock.json ]; then
    (cd tests/api && npm ci --no-audit --no-fund --loglevel=error) || exit 1
fi

scratch=$(mktemp -d /tmp/tpu-advisor-api.XXXXXX)
chmod 755 "$scratch" # the user postgres must be able to enter it
export DEV_CLUSTER_DIR=$scratch/cluster
# Processes are killed here, never the machine: what they have written stays, and a server that starts again after that
# need not sync the files of all databases first, which took it longer than all else.
export DEV_CLUSTER_OPTIONS='-c fsync=off'
finish() {
    sql/dev-cluster.sh destroy
    rm -rf "$scratch"
}
trap finish EXIT
CLUSTER_URL=$(sql/dev-cluster.sh start) || exit 1
export CLUSTER_URL

failed=0
if tests/api/node_modules/.bin/redocly lint --config tests/api/redocly.yaml server/openapi.yaml > "$scratch/lint" 2>&1; then
    echo 'api openapi: the document is valid'
else
    cat "$scratch/lint"
    failed=1
fi

[ $# -gt 0 ] || set -- tests/api/*.test.mjs tests/fault/*.test.mjs
timeout_ms=${TIMEOUT_MS:-60000}
[ -z "${SANITIZER:-}" ] || timeout_ms=300000 # a checked program is several times slower
for file; do
    node --test --test-force-exit --test-timeout=$timeout_ms --test-reporter=tap "$file" > "$scratch/log" 2>&1 || {
        grep -vE '^ *(ok |# Subtest|duration_ms|\.\.\.|---|type:)' "$scratch/log"
        failed=1
    }
    passed=$(sed -n 's/^# pass //p' "$scratch/log")
    echo "api $(basename "$file" .test.mjs): ${passed:-0} passed, $(sed -n 's/^# fail //p' "$scratch/log") failed"
    [ "${passed:-0}" != 0 ] || failed=1
done
exit $failed
