#!/bin/bash
# run.sh: proves docker/compose.yaml for real: builds the image, brings the stack up, stores an answer, reads it back
# after a restart, and takes everything down. Behind `make compose-test`; not part of `make test`.
#
# Needs root. Starts a container engine of its own (Debian's docker.io, own socket and folders) and needs no image
# registry: the base image is made by debootstrap, and the postgres image is stood in for by postgres/ beside this
# file. Where no engine can be had it says so and exits 0.
set -u
cd "$(dirname "$0")/../.." || exit 1

not_run() { echo "compose-test: NOT RUN: $*"; exit 0; }
step() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

[ "$(uname -s)" = Linux ] || not_run "needs Linux"
[ "$(id -u)" = 0 ] || not_run "needs root to run a container engine"
docker/deps.sh compose || not_run "docker.io, docker-compose or debootstrap cannot be installed here"

work=$(mktemp -d /var/tmp/tpu-advisor-compose.XXXXXX)
export DOCKER_HOST=unix://$work/docker.sock DOCKER_BUILDKIT=0 COMPOSE_HTTP_TIMEOUT=180
export COMPOSE_PROJECT_NAME=tpu-advisor-test TPU_ADVISOR_IMAGE=tpu-advisor:test POSTGRES_IMAGE=postgres:15
compose() { docker-compose -f docker/compose.yaml "$@"; }

engine=
cleanup() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$engine" ]; then
        [ $status -eq 0 ] || compose logs --no-color --tail=40 2>&1 | tail -120
        compose down -v -t 5 > "$work/down.log" 2>&1
        kill "$engine" 2> /dev/null
        wait "$engine" 2> /dev/null
    fi
    # Mounts that a killed engine may leave.
    awk -v at="$work/" 'index($2, at) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount -l 2> /dev/null
    rm -rf --one-file-system "$work"
    exit $status
}
trap cleanup EXIT
trap 'exit 130' INT TERM
fail() { echo "compose-test: FAILED: $*"; exit 1; }
quietly() { "$@" > "$work/log" 2>&1 || { tail -60 "$work/log"; fail "$*"; }; }

# --- an engine ------------------------------------------------------------------------------------------------
dockerd --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" -H "$DOCKER_HOST" \
    --bridge none --iptables=false --ip6tables=false > "$work/dockerd.log" 2>&1 &
engine=$!
for _ in $(seq 100); do
    docker info > /dev/null 2>&1 && break
    kill -0 "$engine" 2> /dev/null || break
    sleep 0.2
done
docker info > /dev/null 2>&1 || { tail -5 "$work/dockerd.log"; not_run "dockerd does not start on this machine"; }
step "engine: $(docker version --format '{{.Server.Version}}')"

# --- images ---------------------------------------------------------------------------------------------------
# The mirror is the one that apt uses here.
base=build/compose/base.tar
if [ ! -s $base ]; then
    mirror=$(sed -n 's/^URIs: *//p; s/^deb [^h]*\(http[^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources \
        /etc/apt/sources.list 2> /dev/null | grep -v security | head -1)
    quietly debootstrap --variant=minbase bookworm "$work/base" \
        "${mirror:-http://deb.debian.org/debian}"
    rm -rf "$work"/base/var/cache/apt/archives/*.deb
    # A machine behind a proxy trusts it; so must npm in the image.
    mkdir -p "$work/base/usr/local/share/ca-certificates"
    cp /usr/local/share/ca-certificates/*.crt "$work/base/usr/local/share/ca-certificates/" 2> /dev/null
    mkdir -p build/compose
    tar -C "$work/base" -c . > $base.new && mv $base.new $base
    rm -rf "$work/base"
fi
quietly docker import $base debian:bookworm-slim
step "base image"
quietly docker build --network host -t "$POSTGRES_IMAGE" tests/compose/postgres
step "stand-in for the postgres image"
quietly docker build --network host --build-arg BASE=debian:bookworm-slim -t "$TPU_ADVISOR_IMAGE" -f docker/Dockerfile .
step "tpu-advisor image, $(docker image inspect -f '{{.Size}}' "$TPU_ADVISOR_IMAGE" | awk '{print int($1 / 1e6)}') MB"

# --- up -------------------------------------------------------------------------------------------------------
TPU_ADVISOR_PORT=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1",
    () => { console.log(s.address().port); s.close(); })')
export TPU_ADVISOR_PORT
url=http://127.0.0.1:$TPU_ADVISOR_PORT
until_healthy() {
    local id health
    for _ in $(seq 120); do
        id=$(compose ps -q advisor 2> /dev/null)
        health=$(docker inspect -f '{{.State.Health.Status}}' "$id" 2> /dev/null)
        [ "$health" = healthy ] && return
        sleep 0.5
    done
    fail "the advisor is not healthy after 60 s: $health"
}
quietly compose up -d --no-build
until_healthy
step "stack is up and healthy"

# --- what it is for -------------------------------------------------------------------------------------------
ask() { curl -sS --fail-with-body --max-time 60 "$@"; }
member() { node -e 'let t = ""; process.stdin.on("data", d => t += d).on("end", () => {
    const v = process.argv[1].split(".").reduce((o, k) => o?.[k], JSON.parse(t));
    console.log(typeof v === "object" ? JSON.stringify(v) : v); })' "$1"; }

answer=$(ask -H 'Content-Type: application/json' "$url/v1/advise" -d '{
    "model": "llama3.1-8b", "cluster": {"chip": "v6e", "topology": "4x4"},
    "workload": {"seq_len": 8192, "global_batch_sequences": 64}, "label": "compose", "store": true}') ||
    fail "advise: $answer"
run=$(member run_id <<< "$answer")
[[ $run =~ ^[0-9a-zA-Z-]{8,}$ ]] || fail "advise was not stored: $(head -c 400 <<< "$answer")"
best=$(member ranked.0.estimate.step_time_s <<< "$answer")
awk -v s="$best" 'BEGIN {exit !(s > 0)}' || fail "no plan was ranked: $(head -c 400 <<< "$answer")"
step "advise stored as run $run: best step $best s"

quietly compose restart advisor
until_healthy
again=$(ask "$url/v1/runs/$run") || fail "the run is gone after a restart: $again"
grep -q "$best" <<< "$again" || fail "the run came back changed: $(head -c 400 <<< "$again")"
step "the run is there after a restart"

# --- a verifier is killed in the middle of a compile ------------------------------------------------------------
export TPU_ADVISOR_VERIFIER_IMAGE=tpu-advisor-verifier:test
quietly docker build --network host --build-arg ADVISOR="$TPU_ADVISOR_IMAGE" -t "$TPU_ADVISOR_VERIFIER_IMAGE" tests/compose/verifier
quietly compose --profile verifier up -d --no-build --scale verifier=2
asked=$(ask -H 'Content-Type: application/json' "$url/v1/runs/$run/verifications" -d '{"rank": 1}') || fail "verification: $asked"
verification=$url/v1/verifications/$(member verification_id <<< "$asked")
until_said() { # MEMBER VALUE SECONDS
    for _ in $(seq $(($3 * 2))); do
        [ "$(ask "$verification" | member "$1")" = "$2" ] && return
        sleep 0.5
    done
    fail "$1 is not $2 after $3 s: $(ask "$verification" | head -c 600)"
}
until_said result.stage compiling 30
for id in $(compose --profile verifier ps -q verifier); do
    docker top "$id" 2> /dev/null | grep -q compiler.sh && quietly docker kill -s KILL "$id"
done
until_said state "done" 90
[ "$(ask "$verification" | member result.attempts)" = 2 ] || fail "the plan was not taken by another: $(ask "$verification")"
step "a verifier was killed in the middle: another has done its plan, once"

# --- hardening is in effect -----------------------------------------------------------------------------------
id=$(compose ps -q advisor)
[ "$(docker exec "$id" id -u)" = 10001 ] || fail "the daemon does not run as 10001"
docker exec "$id" sh -c 'echo > /usr/local/x' 2> /dev/null && fail "the root file system can be written"
[ "$(docker exec "$id" awk '/^CapBnd/ {print $2}' /proc/self/status)" = 0000000000000000 ] || fail "capabilities are left"
[ "$(docker exec "$id" awk '/^NoNewPrivs/ {print $2}' /proc/self/status)" = 1 ] || fail "new privileges are possible"
for secret in database_password migrate_url app_password; do
    docker exec "$id" cat /secrets/$secret > /dev/null 2>&1 && fail "the daemon's user can read $secret"
done
docker exec "$id" cat /secrets/database_url | grep -q '//tpu_advisor_app:' || fail "the daemon connects as another role than tpu_advisor_app"
docker inspect "$id" | grep -q "$(docker exec "$id" cat /secrets/database_url)" && fail "the password is in the environment"
step "not root, nothing writable, no capabilities, no secret in the environment"

# --- a second up changes nothing; stop is clean ---------------------------------------------------------------
quietly compose up -d --no-build
until_healthy
ask "$url/v1/runs/$run" > /dev/null || fail "the run is gone after a second up"
begin=$SECONDS
quietly compose stop advisor
[ "$(docker inspect -f '{{.State.ExitCode}}' "$id")" = 0 ] || fail "SIGTERM did not end the daemon cleanly"
step "second up keeps the data; SIGTERM ends the daemon with status 0 in $((SECONDS - begin)) s"

# --- with tokens ----------------------------------------------------------------------------------------------
echo "ci read,write $(printf %s sesame | sha256sum | cut -d' ' -f1)" > "$work/tokens"
chmod 755 "$work"
chmod 644 "$work/tokens"
export TPU_ADVISOR_TOKENS=$work/tokens
compose() { docker-compose -f docker/compose.yaml -f docker/compose.tokens.yaml "$@"; }
quietly compose up -d --no-build
until_healthy
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/runs/$run")" = 401 ] || fail "a request without a token was served"
ask -H 'Authorization: Bearer sesame' "$url/v1/runs/$run" > /dev/null || fail "the token was refused"
step "with compose.tokens.yaml: 401 without a token, 200 with it"
echo "compose-test: passed in $SECONDS s"
