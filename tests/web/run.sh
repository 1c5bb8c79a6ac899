#!/bin/bash
# run.sh: the tests of the web form. Static checks and unit tests, then pages in real Chromium: first against a stand-in
# daemon (odd answers and failures), then against the program itself, started here on free loopback ports: without a
# database, and with a private PostgreSQL cluster that is removed at the end.
# "run.sh bench" prints the waits of the page instead. Needs the packages chromium-headless-shell, nodejs, npm and postgresql.
set -u
cd "$(dirname "$0")/../.." || exit 1
program=${PROGRAM:-build/tpu-advisor}
failed=0

missing=
command -v node > /dev/null 2>&1 || missing="$missing nodejs"
command -v npm > /dev/null 2>&1 || missing="$missing npm"
command -v curl > /dev/null 2>&1 || missing="$missing curl"
[ -x "${CHROMIUM:-/usr/bin/chromium-headless-shell}" ] || missing="$missing chromium-headless-shell"
if [ -n "$missing" ]; then
    echo "web-test: missing packages:$missing (make deps installs them)"
    exit 1
fi

if [ ! -d tests/web/node_modules ] || [ tests/web/package-lock.json -nt tests/web/node_modules/.package-lock.json ]; then
    (cd tests/web && npm ci --no-audit --no-fund --loglevel=error) || exit 1
fi

scratch=$(mktemp -d /tmp/tpu-advisor-web.XXXXXX)
chmod 755 "$scratch" # the user postgres must be able to enter it
export DEV_CLUSTER_DIR=$scratch/cluster
daemons=
finish() {
    for daemon in $daemons; do kill "$daemon" 2> /dev/null; done
    wait 2> /dev/null
    [ ! -d "$DEV_CLUSTER_DIR" ] || sql/dev-cluster.sh destroy
    rm -rf "$scratch"
}
trap finish EXIT

# Starts a daemon on a free port and sets ORIGIN; $1 is the database's URL, "" for none.
serve() {
    : > "$scratch/daemon" # the loop below may read it before the program starts
    TPU_ADVISOR_DATABASE_URL=$1 "$program" serve --listen 127.0.0.1:0 > "$scratch/daemon" 2>&1 &
    local daemon=$!
    daemons="$daemons $daemon"
    export ORIGIN
    for _ in $(seq 300); do
        ORIGIN=http://$(sed -n 's/.*"msg":"listening","address":"\([^"]*\)".*/\1/p' "$scratch/daemon")
        curl -sf "$ORIGIN/readyz${1:+?require=database}" > /dev/null && return
        kill -0 "$daemon" 2> /dev/null || break
        sleep 0.1
    done
    echo "web-test: $program serve does not answer on $ORIGIN:"
    tail -5 "$scratch/daemon"
    exit 1
}

# Runs one group of test files; prints the failures and one closing line.
group() {
    local name=$1
    shift
    if node --test --test-reporter=tap "$@" > "$scratch/log" 2>&1; then
        :
    else
        grep -vE '^ *(ok |# Subtest|duration_ms|\.\.\.|---|type:)' "$scratch/log"
        failed=1
    fi
    echo "web $name: $(sed -n 's/^# pass //p' "$scratch/log") passed, $(sed -n 's/^# fail //p' "$scratch/log") failed"
    [ "$(sed -n 's/^# pass //p' "$scratch/log")" != 0 ] || failed=1
}

if [ "${1:-}" = bench ]; then # how long the reader waits; it fails where nothing is answered
    serve ''
    node tests/web/latency.mjs
    exit
fi

tests/web/node_modules/.bin/html-validate --config tests/web/htmlvalidate.json web/index.html && echo 'web static: index.html is valid' || failed=1
group unit tests/web/unit/*.test.mjs
# Each page has a stand-in daemon of its own; by itself node would keep one of two processors free.
group pages --test-concurrency=2 tests/web/pages/*.test.mjs

if [ ! -x "$program" ]; then
    echo "web-test: $program is missing (make builds it)"
    exit 1
fi
serve ''
group daemon tests/web/smoke.test.mjs tests/web/pictures.test.mjs
cluster=$(sql/dev-cluster.sh start) || exit 1
serve "$cluster"
group store tests/web/store.test.mjs
exit $failed
