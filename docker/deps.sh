#!/bin/sh
# deps.sh run|test|compose: installs what this machine lacks to build and run (run), to test as well (test), or to try
# the containers (compose).
# Every item is looked for first, by what it brings and not by package name, so that a machine that has everything
# is left alone and the check costs milliseconds. Installs on Debian only, as root or through sudo.
set -eu
cd "$(dirname "$0")/.."
scope=${1:-run}

missing=
# need PACKAGE... : remembers Debian packages to install
need() { missing="$missing $*"; }
command_or() { command -v "$1" > /dev/null 2>&1 || { shift; need "$@"; }; }

has_postgres() {
    command -v initdb > /dev/null 2>&1 && return
    for initdb in /usr/lib/postgresql/*/bin/initdb; do
        [ -x "$initdb" ] && return
    done
    return 1
}

# --- to build and run -----------------------------------------------------------------------------------------
command_or gcc gcc libc6-dev
command_or make make
command_or git git ca-certificates
command_or curl curl ca-certificates
if command -v pkg-config > /dev/null 2>&1; then
    for library in libmicrohttpd:libmicrohttpd-dev jansson:libjansson-dev libpq:libpq-dev yaml-0.1:libyaml-dev \
        libssl:libssl-dev zlib:zlib1g-dev; do
        pkg-config --exists "${library%%:*}" || need "${library#*:}"
    done
else
    need pkg-config libmicrohttpd-dev libjansson-dev libpq-dev libyaml-dev libssl-dev zlib1g-dev
fi
has_postgres || need postgresql
command_or node nodejs # bundles the web form
command_or npm npm

# --- to test as well ------------------------------------------------------------------------------------------
if [ "$scope" = test ]; then
    for library in cmocka:libcmocka-dev nlopt:libnlopt-dev gsl:libgsl-dev; do
        pkg-config --exists "${library%%:*}" 2> /dev/null || need "${library#*:}"
    done
    command_or clang clang
    set -- /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a
    [ -e "$1" ] || need libclang-rt-14-dev # make fuzz
    command_or clang-format clang-format
    command_or clang-tidy clang-tidy
    command_or cppcheck cppcheck
    command_or shellcheck shellcheck
    command_or chromium-headless-shell chromium-headless-shell
    command_or wrk wrk # make load
    [ -x /usr/sbin/pgbouncer ] || need pgbouncer # the daemon behind a pooler
    command_or pg_prove libtap-parser-sourcehandler-pgtap-perl # runs the pgTAP tests of the schema
    set -- /usr/share/postgresql/*/extension/pgtap.control
    [ -e "$1" ] || need pgtap
    command_or docker-compose docker-compose
    command_or systemd-analyze systemd # reads the unit
fi

if [ "$scope" = compose ]; then
    command_or dockerd docker.io iptables
    command_or docker-compose docker-compose
    command_or debootstrap debootstrap
fi

# The browser driver and the OpenAPI checker want Node.js 20; Debian 12 has 18. A newer one then comes from npm into the
# build folder, for this checkout only; the Makefile puts it first in PATH.
own_node=build/node/node_modules/node/bin/node
needs_node() {
    [ "$scope" = test ] && [ ! -x $own_node ] || return 1
    command -v node > /dev/null 2>&1 || return 0
    version=$(node --version)
    version=${version#v}
    [ "${version%%.*}" -lt 20 ]
}

# The tools that bundle and draw the web form; pinned by its lock file.
needs_web() {
    [ ! -e web/node_modules/.package-lock.json ] ||
        [ -n "$(find web/package-lock.json -newer web/node_modules/.package-lock.json)" ]
}

[ -n "$missing" ] || needs_node || needs_web || exit 0

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# quietly WHAT COMMAND...: one line when it works, the whole output when it does not
quietly() {
    echo "deps: $1"
    shift
    "$@" > "$log" 2>&1 || { cat "$log"; echo "deps: failed: $*" >&2; exit 1; }
}

install_packages() {
    echo "deps: missing on this machine:$missing"
    if ! command -v apt-get > /dev/null 2>&1; then
        echo "deps: this is not a Debian system; install what these packages bring, then run again" >&2
        exit 1
    fi
    as_root=
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo > /dev/null 2>&1; then
            echo "deps: not root and no sudo; as root run: apt-get install --no-install-recommends$missing" >&2
            exit 1
        fi
        as_root=sudo
    fi
    quietly "apt-get update" $as_root apt-get -q update
    # shellcheck disable=SC2086  # a list of package names
    quietly "apt-get install$missing" \
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends $missing
}

[ -z "$missing" ] || install_packages
if needs_node; then
    quietly "npm install node@22 into build/node" \
        npm install --prefix build/node --no-save --no-fund --no-audit --loglevel=error node@22
fi
if needs_web; then
    quietly "npm ci in web" npm ci --prefix web --no-fund --no-audit --loglevel=error
    touch web/node_modules/.package-lock.json
fi
echo "deps: done"
