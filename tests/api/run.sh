#!/bin/bash
# run.sh [FILE...]: the tests of the HTTP API, and of what it does when things fail (tests/fault). Every test file starts
# daemons of its own on free loopback ports. Files of tests/api mostly wait, so they run two at a time, each of the two
# with a private PostgreSQL cluster of its own, which is removed at the end. The others measure how long answers take and
# kill the server: they run alone, as all do where sanitizers make the program slow.
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
export scratch
# Processes are killed here, never the machine: what they have written stays, and a server that starts again after that
# need not sync the files of all databases first, which took it longer than all else.
export DEV_CLUSTER_OPTIONS='-c fsync=off'
finish() {
    for folder in "$scratch"/cluster*; do
        [ ! -d "$folder" ] || DEV_CLUSTER_DIR=$folder sql/dev-cluster.sh destroy
    done
    rm -rf "$scratch"
}
trap finish EXIT

failed=0
if tests/api/node_modules/.bin/redocly lint --config tests/api/redocly.yaml server/openapi.yaml > "$scratch/lint" 2>&1; then
    echo 'api openapi: the document is valid'
else
    cat "$scratch/lint"
    failed=1
fi

[ $# -gt 0 ] || set -- tests/api/*.test.mjs tests/fault/*.test.mjs
# The limit is for what never comes: a busy machine takes many times what a quiet one does.
export timeout_ms=${TIMEOUT_MS:-120000}
[ -z "${SANITIZER:-}" ] || timeout_ms=300000 # a checked program is several times slower

# Runs one file with the cluster of its lane and prints its lines in one piece.
run_file() {
    local file=$1 log passed status=0
    log=$scratch/$(basename "$file" .test.mjs).log
    export DEV_CLUSTER_DIR=$scratch/cluster$LANE CLUSTER_URL
    CLUSTER_URL=$(sql/dev-cluster.sh start) || return 1
    node --test --test-force-exit --test-timeout="$timeout_ms" --test-reporter=tap "$file" > "$log" 2>&1 || status=1
    passed=$(sed -n 's/^# pass //p' "$log")
    [ "${passed:-0}" != 0 ] || status=1
    {
        [ $status = 0 ] || grep -vE '^ *(ok |# Subtest|duration_ms|\.\.\.|---|type:)' "$log"
        echo "api $(basename "$file" .test.mjs): ${passed:-0} passed, $(sed -n 's/^# fail //p' "$log") failed"
    } > "$log.lines"
    flock "$scratch" cat "$log.lines"
    return $status
}
export -f run_file

# run_files LANES FILE...: so many at a time; a failed one does not keep the others from running.
run_files() {
    local lanes=$1
    shift
    [ $# -gt 0 ] || return 0
    # shellcheck disable=SC2016  # for the shell that runs one
    printf '%s\0' "$@" | xargs -0 -P "$lanes" -n 1 --process-slot-var=LANE bash -c 'run_file "$1"' one || failed=1
}
together=()
alone=()
for file; do
    case $file in
    tests/api/*) together+=("$file") ;;
    *) alone+=("$file") ;;
    esac
done
run_files "$([ -n "${SANITIZER:-}" ] && echo 1 || echo 2)" "${together[@]}"
run_files 1 "${alone[@]}"
exit $failed
