#!/bin/sh
# with-cluster.sh COMMAND...: runs COMMAND with TPU_ADVISOR_DATABASE_URL set: as it is when it is set, otherwise to this
# checkout's private cluster, which is started before and, when it was not running, stopped after.
set -eu
if [ -n "${TPU_ADVISOR_DATABASE_URL:-}${TPU_ADVISOR_DATABASE_URL_FILE:-}" ]; then exec "$@"; fi
cluster=$(dirname "$0")/dev-cluster.sh
ours=yes
! "$cluster" running || ours=no
TPU_ADVISOR_DATABASE_URL=$("$cluster" start)
export TPU_ADVISOR_DATABASE_URL
"$@" &
child=$!
# A terminal's Ctrl-C reaches the child by itself; being told to end, we tell it.
trap 'kill -TERM "$child" 2>/dev/null || true' TERM
trap '' INT
status=0
wait "$child" || status=$?
while kill -0 "$child" 2>/dev/null; do
    status=0
    wait "$child" || status=$?
done
[ "$ours" = no ] || "$cluster" stop
exit "$status"
