#!/bin/bash
# run.sh [STEP...]: proves docker/ for real: builds the images, brings stacks up, breaks them, upgrades them, and takes
# everything down. Behind `make compose-test`; not part of `make test`. Steps are the files steps/*.sh; without names all
# run but `compiler`, which downloads 3 GB and runs with VERIFIER=1.
#
# Needs root. Starts a container engine of its own (Debian's docker.io, own socket and folders) and needs no image
# registry: the base image is made by debootstrap, and foreign images are stood in for by Debian's packages (the folders
# beside this file). Where no engine can be had it says so and exits 0. COMPOSE_WORK names a folder in which the engine
# keeps its images for the next time.
set -u
cd "$(dirname "$0")/../.." || exit 1
steps=("$@")
[ $# -gt 0 ] || steps=(stack proxy upgrade)
[ $# -gt 0 ] || [ -z "${VERIFIER:-}" ] || steps+=(compiler)

not_run() { echo "compose-test: NOT RUN: $*"; exit 0; }
step() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

[ "$(uname -s)" = Linux ] || not_run "needs Linux"
[ "$(id -u)" = 0 ] || not_run "needs root to run a container engine"
docker/deps.sh compose || not_run "docker.io, docker-compose or debootstrap cannot be installed here"

work=${COMPOSE_WORK:-$(mktemp -d /var/tmp/tpu-advisor-compose.XXXXXX)}
mkdir -p "$work"
chmod 755 "$work" # containers read files in it
export DOCKER_HOST=unix://$work/docker.sock DOCKER_BUILDKIT=0 COMPOSE_HTTP_TIMEOUT=180
export COMPOSE_PROJECT_NAME=tpu-advisor-test TPU_ADVISOR_IMAGE=tpu-advisor:test POSTGRES_IMAGE=postgres:15
files=(-f docker/compose.yaml)
compose() { docker-compose "${files[@]}" "$@"; }

engine=
background=() # processes that a step started
cleanup() {
    status=$?
    trap - EXIT INT TERM
    [ ${#background[@]} -eq 0 ] || kill "${background[@]}" 2> /dev/null
    if [ -n "$engine" ]; then
        [ $status -eq 0 ] || compose logs --no-color --tail=40 2>&1 | tail -120
        compose down -v -t 5 --remove-orphans > "$work/down.log" 2>&1
        kill "$engine" 2> /dev/null
        wait "$engine" 2> /dev/null
    fi
    # Mounts that a killed engine may leave.
    awk -v at="$work/" 'index($2, at) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount -l 2> /dev/null
    [ -n "${COMPOSE_WORK:-}" ] || rm -rf --one-file-system "$work"
    exit $status
}
trap cleanup EXIT
trap 'exit 130' INT TERM
fail() { echo "compose-test: FAILED: $*"; exit 1; }
quietly() { "$@" > "$work/log" 2>&1 || { tail -60 "$work/log"; fail "$*"; }; }
build() { quietly docker build --network host "$@"; } # TAG and folder as docker's

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

# --- images that every step needs --------------------------------------------------------------------------------
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
docker image inspect debian:bookworm-slim > /dev/null 2>&1 || quietly docker import $base debian:bookworm-slim
step "base image"
build -t "$POSTGRES_IMAGE" tests/compose/postgres
step "stand-in for the postgres image"
build --build-arg BASE=debian:bookworm-slim -t "$TPU_ADVISOR_IMAGE" -f docker/Dockerfile .
step "tpu-advisor image, $(docker image inspect -f '{{.Size}}' "$TPU_ADVISOR_IMAGE" | awk '{print int($1 / 1e6)}') MB"

# --- what the steps share ----------------------------------------------------------------------------------------
free_ports() { # COUNT: the first of so many in a row
    node -e 'const { createServer } = require("net"), count = Number(process.argv[1]);
        const take = (port) => new Promise((done) => { const s = createServer().on("error", () => done(null))
            .listen(port, "127.0.0.1", () => done(s)); });
        (async () => { for (;;) {
            const first = 20000 + Math.floor(Math.random() * 10000);
            const taken = await Promise.all(Array.from({ length: count }, (_, i) => take(first + i)));
            for (const s of taken) s?.close();
            if (taken.every(Boolean)) return console.log(first);
        } })();' "$1"
}
ask() { curl -sS --fail-with-body --max-time 60 "$@"; }
member() { node -e 'let t = ""; process.stdin.on("data", d => t += d).on("end", () => {
    const v = process.argv[1].split(".").reduce((o, k) => o?.[k], JSON.parse(t));
    console.log(typeof v === "object" ? JSON.stringify(v) : v); })' "$1"; }
until_true() { # SECONDS WHAT COMMAND...
    local end=$(($(date +%s%N) + $1 * 1000000000))
    until "${@:3}" > /dev/null 2>&1; do
        [ "$(date +%s%N)" -lt $end ] || fail "not after $1 s: $2"
        sleep 0.1
    done
}
healthy() { # COUNT [SERVICE]: so many containers of the service run and are healthy
    local id count=0
    for id in $(compose ps -q "${2:-advisor}" 2> /dev/null); do
        [ "$(docker inspect -f '{{.State.Health.Status}} {{.State.Running}}' "$id")" != "healthy true" ] || count=$((count + 1))
    done
    [ $count -eq "$1" ]
}
until_healthy() { until_true 180 "healthy: ${1:-1} of advisor" healthy "${1:-1}"; }
sql() { # STATEMENT
    compose exec -T database sh -c 'PGPASSWORD=$(cat /secrets/database_password) psql -h 127.0.0.1 -U tpu_advisor \
        -d tpu_advisor -XAtqc "$1"' - "$1" < /dev/null
}

for name in "${steps[@]}"; do
    # shellcheck source=/dev/null  # one of steps/
    . "tests/compose/steps/$name.sh"
    compose --profile verifier --profile monitoring down -v -t 5 --remove-orphans > "$work/down.log" 2>&1 || fail "down"
    files=(-f docker/compose.yaml)
done
echo "compose-test: passed in $SECONDS s"
