#!/bin/bash
# sweeps.sh: items of sweeps per second with 1, 2 and 4 daemons on one PostgreSQL: a table, and gates that hold on any
# machine: every item ends once, and a second daemon (where there are two processors for them) brings some more.
# SWEEP_ITEMS: items of each measured sweep (3000).
set -u
cd "$(dirname "$0")/../.." || exit 1
program=$(realpath "${PROGRAM:-build/tpu-advisor}") || exit 1
items=${SWEEP_ITEMS:-3000}
while read -r variable; do unset "$variable"; done < <(compgen -e | grep '^TPU_ADVISOR_')
scratch=$(mktemp -d /tmp/tpu-advisor-sweeps.XXXXXX)
chmod 755 "$scratch" # the user postgres must be able to enter it
export DEV_CLUSTER_DIR=$scratch/cluster
daemons=()
finish() {
    [ ${#daemons[@]} = 0 ] || kill -KILL "${daemons[@]}" 2> /dev/null
    sql/dev-cluster.sh destroy
    rm -rf "$scratch"
}
trap finish EXIT
TPU_ADVISOR_DATABASE_URL=$(sql/dev-cluster.sh start) || exit 1
export TPU_ADVISOR_DATABASE_URL
sql() { psql -XAtq "$TPU_ADVISOR_DATABASE_URL" -c "$1"; }

start() { # WORKERS: a daemon; its address in $address
    local log=$scratch/log.${#daemons[@]}
    "$program" serve --listen 127.0.0.1:0 --sweep-workers "$1" 2> "$log" &
    daemons+=($!)
    for _ in $(seq 100); do
        address=$(sed -n 's/.*"msg":"listening","address":"\([^"]*\)".*/\1/p' "$log")
        [ -n "$address" ] && [ "$(curl -s -o /dev/null -w '%{http_code}' "http://$address/readyz?require=database")" = 200 ] && return
        sleep 0.1
    done
    cat "$log"
    exit 1
}

start 0 # takes the sweep, works off none
front=$address
steps=$(seq -s, 1 $(((items + 3) / 4)))
body='{"kind": "estimate", "grid": {"base": {"model": "llama3.1-8b", "cluster": {"chip": "v6e", "topology": "4x4"}, "config": {"max_target_length": 8192}},
    "axes": {"/config/gradient_accumulation_steps": ['$steps'], "/config/remat_policy": ["full", "minimal", "save_qkv_proj", "minimal_flash"]}}}'
printf '%-8s %12s %10s\n' daemons items/s CPUs
rates=()
for count in 1 2 4; do
    while [ ${#daemons[@]} -le $count ]; do start 1; done
    location=$(curl -s -o /dev/null -D - -H 'Content-Type: application/json' -d "$body" "http://$front/v1/sweeps" | tr -d '\r' | sed -n 's/^Location: //Ip')
    id=${location##*/}
    [ -n "$id" ] || { echo 'sweeps: the sweep is not taken'; exit 1; }
    for _ in $(seq 1200); do [ "$(sql "SELECT state FROM sweeps WHERE id = '$id'")" != running ] && break; sleep 0.1; done
    ended=$(sql "SELECT count(*), count(DISTINCT event) FROM sweep_items WHERE state = 'done' AND sweep_id = '$id'")
    whole=$(sql "SELECT items_count FROM sweeps WHERE id = '$id'")
    [ "$ended" = "$whole|$whole" ] || { echo "sweeps: $ended of $whole items have ended once"; exit 1; }
    rate=$(sql "SELECT round(items_count / extract(epoch FROM ended_at - created_at)) FROM sweeps WHERE id = '$id'")
    printf '%-8s %12s %10s\n' "$count" "$rate" "$(nproc)"
    rates+=("$rate")
done
[ "$(nproc)" -lt 2 ] || [ $((rates[1] * 10)) -ge $((rates[0] * 9)) ] || { echo 'sweeps: two daemons are slower than one'; exit 1; }
echo 'sweeps: every item ended once'
