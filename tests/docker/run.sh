#!/bin/bash
# run.sh: what can be checked of docker/ without a container engine. `make compose-test` runs the real thing.
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0
checks=0
check() {
    local what=$1
    shift
    checks=$((checks + 1))
    if output=$("$@" 2>&1); then return; fi
    failed=$((failed + 1))
    echo "FAILED: $what"
    printf '%s\n' "$output" | head -20
}
dockerfile() { grep -Eq "$1" docker/Dockerfile; }

if [ ! -d tests/api/node_modules ] || [ tests/api/package-lock.json -nt tests/api/node_modules/.package-lock.json ]; then
    (cd tests/api && npm ci --no-audit --no-fund --loglevel=error) || exit 1
fi
check "compose.yaml is valid" docker-compose -f docker/compose.yaml config -q
check "compose.yaml with a verifier is valid" docker-compose -f docker/compose.yaml --profile verifier config -q
verifier() { grep -Eq "$1" docker/verifier.Dockerfile; }
check "the verifier's image runs as a numeric user" verifier '^USER [1-9][0-9]*:[1-9][0-9]*$'
check "it has the Python of the pinned releases" \
    verifier "^ARG PYTHON=python:$(sed -n 's/.*"python": *"\([^"]*\)".*/\1/p' server/verifier/versions.json)-slim"
check "it installs the environment by the program's own command" verifier '^RUN /usr/local/bin/tpu-advisor verify --install$'
check "the Kubernetes manifests hold by their schema" node --test tests/docker/k8s.test.mjs
check "proxy, monitoring and kustomize hold together" node --test tests/docker/operate.test.mjs
check "Grafana's files hold by its own types" node --test tests/docker/grafana.test.mjs
check "compose.yaml with tokens is valid" docker-compose -f docker/compose.yaml -f docker/compose.tokens.yaml config -q
check "the base image can be chosen" dockerfile '^ARG BASE=debian:bookworm-slim$'
check "the image runs as a numeric user" dockerfile '^USER [1-9][0-9]*:[1-9][0-9]*$'
check "the program is process 1, so that SIGTERM reaches it" dockerfile '^ENTRYPOINT \["/usr/local/bin/tpu-advisor"\]$'
check "the health check needs no shell" dockerfile 'CMD \["/usr/local/bin/tpu-advisor", "healthcheck"\]'

# Every setting that compose or the unit hands over is one the daemon knows.
settings=$(build/tpu-advisor serve --help | sed -n 's/^ *--\([a-z-]*\).*/\1/p' | tr 'a-z-' 'A-Z_')
for name in $(grep -rhoE '^ *TPU_ADVISOR_[A-Z_]+:' docker/compose*.yaml | grep -oE '[A-Z_]+' | sort -u); do
    setting=${name#TPU_ADVISOR_}
    check "$name is a setting of the daemon" \
        grep -qxF -e "$setting" -e "${setting%_FILE}" <<< "$settings"
done

for name in $(grep -oE 'TPU_ADVISOR_[A-Z_]+' docker/k8s/*.yaml docker/verifier.Dockerfile -h | sort -u); do
    setting=${name#TPU_ADVISOR_}
    check "$name is a setting of the verifier" \
        grep -qxF -e "$setting" -e "${setting%_FILE}" <<< "$settings"
done

# The second stage installs what the program is linked with, and nothing that is not.
linked=$(ldd build/tpu-advisor | grep -oE '(libcrypto|libjansson|libmicrohttpd|libpq|libyaml|libz)[-.][^ ]*' |
    sed 's/-0\.so.*/-0/; s/\.so\.\([0-9]*\)$/\1/; s/^libcrypto/libssl/; s/^libz1$/zlib1g/' | sort -u | xargs)
named=$(sed -n '/^FROM \${BASE}$/,$p' docker/Dockerfile | grep -oE '(libjansson|libmicrohttpd|libpq|libssl|libyaml|zlib)[0-9-]+g?' |
    sed 's/-2$//' | sort -u | xargs)
of_verifier=$(grep -oE '(libjansson|libmicrohttpd|libpq|libssl|libyaml|zlib)[0-9-]+g?' docker/verifier.Dockerfile | sed 's/-2$//' | sort -u | xargs)
check "the verifier's image has them too: '$of_verifier'" test "$(grep -oE 'lib[a-z]+' <<< "$linked" | xargs)" = "$(grep -oE 'lib[a-z]+' <<< "$of_verifier" | xargs)"
check "the image's libraries are the program's: '$linked', '$named'" test "$linked" = "$named"

# install puts the unit where systemd looks, with the real path in it.
check "make install" make -s install DESTDIR="$PWD/build/install" PREFIX=/usr
check "the unit starts the installed program" \
    grep -qx 'ExecStart=/usr/bin/tpu-advisor serve' build/install/usr/lib/systemd/system/tpu-advisor.service
# systemd reads the unit itself, started from where it was installed; a misspelt key or value must not pass.
unit=$(mktemp -d)/tpu-advisor.service
sed "s|^ExecStart=/usr|ExecStart=$PWD/build/install/usr|" build/install/usr/lib/systemd/system/tpu-advisor.service > "$unit"
check "systemd takes the unit" systemd-analyze verify --man=no --recursive-errors=no "$unit"
check "the unit leaves the service few rights" systemd-analyze security --offline=true --threshold=20 "$unit"
sed -i 's/^NoNewPrivileges/NoNewPrivilege/' "$unit"
check "and a broken one it does not" bash -c '! systemd-analyze verify --man=no --recursive-errors=no "$1"' - "$unit"
rm -r "${unit%/*}"

[ $failed -eq 0 ] && echo "docker: $checks checks passed" || echo "docker: $failed of $checks checks FAILED"
[ $failed -eq 0 ]
