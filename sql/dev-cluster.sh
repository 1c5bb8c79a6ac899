#!/bin/sh
# dev-cluster.sh start|stop|url|kill|destroy: a private PostgreSQL cluster for this checkout.
#
# It listens on a socket only, in a folder that only its owner may enter; that folder is the lock, so there is no
# password (initdb -A trust). Run by root, the server runs as the user postgres, because it refuses root. The cluster
# lives outside the checkout, which postgres may not be able to traverse: below /var/lib/tpu-advisor (root) or
# ~/.local/state/tpu-advisor. DEV_CLUSTER_DIR names another place, DEV_CLUSTER_OPTIONS more settings of the server.
# `start` prints the URL and may be repeated.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd -P)
name=$(printf '%s' "$here" | cksum | cut -d ' ' -f 1)
if [ "$(id -u)" = 0 ]; then
    dir=${DEV_CLUSTER_DIR:-/var/lib/tpu-advisor/dev-$name}
else
    dir=${DEV_CLUSTER_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/tpu-advisor/dev-$name}
fi

die() {
    echo "dev-cluster: $*" >&2
    exit 1
}

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[ -n "$bin" ] || bin=$(pg_config --bindir 2>/dev/null) || die "PostgreSQL is not installed (make deps installs it)"
[ -x "$bin/pg_ctl" ] || die "PostgreSQL's server is not installed (make deps installs it)"

as() { # runs a command as the cluster's owner, from a folder it may read
    if [ "$(id -u)" = 0 ]; then
        (cd / && setpriv --reuid=postgres --regid=postgres --init-groups env LC_ALL=C.UTF-8 "$@")
    else
        (cd / && env LC_ALL=C.UTF-8 "$@")
    fi
}

# The socket's path has at most 107 bytes, ".s.PGSQL.5432" included: a long folder gets a short one beside it.
socket_dir() {
    if [ ${#dir} -le 90 ]; then
        echo "$dir"
    elif [ "$(id -u)" = 0 ]; then
        echo "/run/tpu-advisor-dev-$(printf '%s' "$dir" | cksum | cut -d ' ' -f 1)"
    else
        echo "/tmp/tpu-advisor-$(id -u)-$(printf '%s' "$dir" | cksum | cut -d ' ' -f 1)"
    fi
}

private_folder() {
    if [ "$(id -u)" = 0 ]; then
        mkdir -p "$(dirname "$1")"
        install -d -o postgres -g postgres -m 700 "$1"
    else
        mkdir -p "$(dirname "$1")"
        (umask 077 && mkdir -p "$1")
        [ -O "$1" ] || die "$1 belongs to somebody else"
        chmod 700 "$1"
    fi
}

running() { # not pg_ctl status: it takes a dead server that nobody has waited for yet for a running one
    "$bin/pg_isready" -q -h "$(socket_dir)"
}

url() {
    echo "postgresql:///tpu_advisor?host=$(socket_dir)&user=tpu_advisor"
}

start() {
    private_folder "$dir"
    private_folder "$(socket_dir)"
    as test -x "$dir" || die "the user postgres cannot enter $dir; name another folder with DEV_CLUSTER_DIR"
    if [ ! -f "$dir/data/PG_VERSION" ]; then
        as rm -rf "$dir/data"
        as "$bin/initdb" -D "$dir/data" -U tpu_advisor -A trust --no-sync --data-checksums -E UTF8 --locale=C.UTF-8 \
            > /dev/null || die "initdb failed in $dir"
    fi
    # After a crash the old server's pid may linger for a moment, and what it left is read first: try again.
    tries=0
    until running; do
        as "$bin/pg_ctl" -D "$dir/data" -s -w -t 30 -l "$dir/log" \
            -o "-c listen_addresses='' -c unix_socket_directories='$(socket_dir)' -c unix_socket_permissions=0700 ${DEV_CLUSTER_OPTIONS:-}" start \
            > /dev/null 2>&1 && break
        tries=$((tries + 1))
        [ "$tries" -lt 120 ] || die "the server does not start; see $dir/log"
        sleep 0.5
    done
    as "$bin/psql" -h "$(socket_dir)" -U tpu_advisor -d postgres -Atqc "SELECT 1 FROM pg_database WHERE datname = 'tpu_advisor'" |
        grep -q 1 || as "$bin/createdb" -h "$(socket_dir)" -U tpu_advisor tpu_advisor
    url
}

case ${1:-} in
start) start ;;
running) running ;;
stop) ! running || as "$bin/pg_ctl" -D "$dir/data" -s -m fast -w stop ;;
url) url ;;
kill) # as if the machine had lost it; for tests
    as kill -9 "$(as head -1 "$dir/data/postmaster.pid")"
    ;;
destroy)
    ! running || as "$bin/pg_ctl" -D "$dir/data" -s -m immediate -w stop
    rm -rf "$dir" "$(socket_dir)"
    ;;
*)
    echo "usage: $0 start|running|stop|url|kill|destroy" >&2
    exit 2
    ;;
esac
