#!/bin/bash
# run.sh: the daemon under load: a table of rates and latencies, and gates that hold on any machine, because they compare
# this run with itself: no errors, nothing refused, rates relative to cheaper answers, no memory and no descriptors lost. How
# fast runs are stored is the disk's affair and only shown. The daemon and its PostgreSQL cluster are private.
# LOAD_SECONDS: length of each measured row (3).
set -u
cd "$(dirname "$0")/../.." || exit 1
program=$(realpath "${PROGRAM:-build/tpu-advisor}") || exit 1
seconds=${LOAD_SECONDS:-3}
connections=32
for tool in wrk psql curl; do
    command -v $tool > /dev/null 2>&1 || { echo "load: missing: $tool (make deps provides it)"; exit 1; }
done
while read -r variable; do unset "$variable"; done < <(compgen -e | grep '^TPU_ADVISOR_')

scratch=$(mktemp -d /tmp/tpu-advisor-load.XXXXXX)
chmod 755 "$scratch" # the user postgres must be able to enter it
export DEV_CLUSTER_DIR=$scratch/cluster
daemon=
finish() {
    [ -z "$daemon" ] || kill -KILL "$daemon" 2> /dev/null
    sql/dev-cluster.sh destroy
    rm -rf "$scratch"
}
trap finish EXIT
TPU_ADVISOR_DATABASE_URL=$(sql/dev-cluster.sh start) || exit 1
export TPU_ADVISOR_DATABASE_URL

# A line of log per request would measure the disk: only warnings are logged. They do not tell the port, so it is chosen here.
for _ in 1 2 3 4 5; do
    address=127.0.0.1:$((20000 + RANDOM % 20000))
    "$program" serve --listen "$address" --log-level warning --cache-mib 8 --queue-wait 60 2> "$scratch/log" &
    daemon=$!
    for _ in $(seq 100); do
        kill -0 $daemon 2> /dev/null || break
        [ "$(curl -s -o /dev/null -w '%{http_code}' "http://$address/readyz?require=database")" = 200 ] && break 2
        sleep 0.1
    done
    kill -KILL $daemon 2> /dev/null
    wait $daemon 2> /dev/null
    daemon=
done
[ -n "$daemon" ] || { echo 'load: the daemon does not start:'; cat "$scratch/log"; exit 1; }
origin=http://$address

request='"model": "llama3.1-8b", "cluster": {"chip": "v6e", "topology": "4x4"}'
estimate="$request, \"config\": {\"per_device_batch_size\": 2, \"max_target_length\": 8192, \"remat_policy\": \"full\"}"
echo "{$estimate}" > "$scratch/estimate"
echo "{$estimate, \"store\": true, \"project\": \"load\"}" > "$scratch/store"
echo "{$request, \"workload\": {\"seq_len\": 8192, \"global_batch_sequences\": 32}}" > "$scratch/kept"
sed 's/"llama3.1-8b"/"llama3.1-8b", "project": "@count@"/' "$scratch/kept" > "$scratch/advise"
sed -i 's/"model"/"project": "@count@", "model"/' "$scratch/estimate" # no question twice: the engine answers
tag=$(curl -s -o /dev/null -D - "$origin/v1/catalog/chips" | tr -d '\r' | sed -n 's/^ETag: //Ip')
if [ "$(curl -s -o /dev/null -w '%{http_code}' -H "If-None-Match:$tag" "$origin/v1/catalog/chips")" != 304 ]; then
    echo 'load: the catalog does not know its ETag'
    exit 1
fi

# name | what wrk is told
rows=(
    "livez     | $origin/livez"
    "catalog   | -H @tag@ $origin/v1/catalog/chips"
    "chips     | $origin/v1/catalog/chips"
    "page      | $origin/"
    "estimate  | -s tests/load/post.lua $origin/v1/estimate -- $scratch/estimate"
    "advise    | -s tests/load/post.lua $origin/v1/advise -- $scratch/advise"
    "kept      | -H @gzip@ -s tests/load/post.lua $origin/v1/advise -- $scratch/kept"
    "store     | -s tests/load/post.lua $origin/v1/estimate -- $scratch/store"
)

# The same bytes from the HTTP library with nothing behind it.
# shellcheck disable=SC2046  # words
${CC:-cc} -O2 -o "$scratch/bare" tests/load/bare.c $(pkg-config --cflags --libs libmicrohttpd) || exit 1
bare() { # NAME SECONDS FILE [POSTED]
    local port
    rm -f "$scratch/$1.in" "$scratch/$1.port"
    mkfifo "$scratch/$1.in"
    "$scratch/bare" "$(nproc)" "$3" < "$scratch/$1.in" > "$scratch/$1.port" &
    exec {hold}> "$scratch/$1.in"
    for _ in $(seq 50); do [ -s "$scratch/$1.port" ] && break; sleep 0.05; done
    port=$(cat "$scratch/$1.port")
    row "$1" "$2" ${4:+-s tests/load/post.lua} "http://127.0.0.1:$port/" ${4:+-- "$4"}
    exec {hold}>&-
    wait $!
}
curl -s "$origin/" > "$scratch/page"
curl -s -H 'Content-Type: application/json' -H 'Accept-Encoding: gzip' -d "@$scratch/kept" "$origin/v1/advise" > "$scratch/kept.gz"
curl -s "$origin/v1/catalog/chips" > "$scratch/chips"

declare -A rate
requests=0
errors=0
# row NAME SECONDS ARGUMENT...: one line of the table; what wrk counts as errors is added up.
row() {
    local name=$1 time=$2
    wrk -t 2 -c $connections -d "${time}s" --timeout 20s --latency "${@:3}" > "$scratch/wrk" 2>&1 || { cat "$scratch/wrk"; errors=$((errors + 1)); }
    local count bad
    count=$(sed -n 's/^ *\([0-9]*\) requests in .*/\1/p' "$scratch/wrk")
    bad=$(awk '/Non-2xx or 3xx responses:/ {bad += $NF} /Socket errors:/ {gsub(",", ""); bad += $4 + $6 + $8 + $10} END {print bad + 0}' "$scratch/wrk")
    rate[$name]=$(sed -n 's/^Requests\/sec: *//p' "$scratch/wrk")
    requests=$((requests + ${count:-0}))
    errors=$((errors + bad))
    percentile() { sed -n "s/^ *$1% *//p" "$scratch/wrk"; }
    printf '%-10s %9d %12.1f %10s %10s %7d\n' "$name" "${count:-0}" "${rate[$name]:-0}" "$(percentile 50)" "$(percentile 99)" "$bad"
}
all_rows() { # SECONDS
    local line name arguments index
    for line in "${rows[@]}"; do
        IFS='|' read -r name arguments <<< "$line"
        read -ra arguments <<< "$arguments"
        for index in "${!arguments[@]}"; do # headers have a blank, which the split above would take
            arguments[index]=${arguments[index]/#@tag@/If-None-Match: $tag}
            arguments[index]=${arguments[index]/#@gzip@/Accept-Encoding: gzip}
        done
        row "${name// /}" "$1" "${arguments[@]}"
        case ${name// /} in page | chips) bare "bare_${name// /}" "$1" "$scratch/${name// /}" ;; # at the same time
        kept) bare bare_kept "$1" "$scratch/kept.gz" "$scratch/kept" ;;
        esac
    done
}
metric() { curl -s "$origin/metrics" | awk -v name="tpu_advisor_$1" '$1 == name {print $2; exit}'; }
resident_kib() { awk '/^VmRSS:/ {print $2}' "/proc/$daemon/status"; }
# The clients have gone; what is open then, metrics connection aside, must not grow.
descriptors() {
    for _ in $(seq 100); do
        [ "$(metric connections_open)" = 1 ] && break
        sleep 0.05
    done
    find "/proc/$daemon/fd" -mindepth 1 -maxdepth 1 | wc -l
}

echo "load: $connections connections, $(nproc) processors, $seconds s a row; the first pass warms up"
printf '%-10s %9s %12s %10s %10s %7s\n' row requests requests/s p50 p99 errors
all_rows 2
rss_before=$(resident_kib)
fds_before=$(descriptors)
echo
requests_before=$requests
all_rows "$seconds"
rss_after=$(resident_kib)
fds_after=$(descriptors)
measured=$((requests - requests_before))
if [ "$rss_after" -gt $((rss_before + rss_before / 20)) ]; then # the warm-up was short: a leak goes on, and this does not
    echo
    rss_before=$rss_after
    all_rows "$seconds"
    rss_after=$(resident_kib)
    fds_after=$(descriptors)
fi

echo
gates=0
failed=0
gate() { # PROMISE AWK-CONDITION MEASURED
    gates=$((gates + 1))
    local verdict=held
    awk "BEGIN {exit !($2)}" || { verdict=BROKEN; failed=$((failed + 1)); }
    printf '%-62s %-22s %s\n' "$1" "$3" $verdict
}
ratio() { awk "BEGIN {printf \"%.3f\", ${rate[$1]:-0} / (${rate[$2]:-0} + 1e-9)}"; }
runs=$(psql -XAtqc 'SELECT count(*) FROM runs' "$TPU_ADVISOR_DATABASE_URL")
gate 'no request failed' "$errors == 0" "$errors of $requests"
gate 'a catalog answer known by its tag costs little: >= 0.3 of livez' "$(ratio catalog livez) >= 0.3" "$(ratio catalog livez)"
gate 'the page costs little: >= 0.6 of the bare library' "$(ratio page bare_page) >= 0.6" "$(ratio page bare_page)"
gate 'so does a catalog: >= 0.6 of the bare library' "$(ratio chips bare_chips) >= 0.6" "$(ratio chips bare_chips)"
gate 'so does a question asked again: >= 0.5 of the bare library' "$(ratio kept bare_kept) >= 0.5" "$(ratio kept bare_kept)"
gate 'an estimate is worth HTTP: >= 0.01 of livez' "$(ratio estimate livez) >= 0.01" "$(ratio estimate livez)"
gate 'a search for 16 chips costs few estimates: >= 0.01 of estimate' "$(ratio advise estimate) >= 0.01" "$(ratio advise estimate)"
gate 'every answer that was to be stored is' "$(metric runs_not_stored_total) == 0 && $runs == $(metric runs_stored_total)" "$runs runs"
gate 'memory grows by < 5 %' "$rss_after < $rss_before * 1.05" "$rss_before to $rss_after KiB"
gate 'descriptors stay' "$fds_after == $fds_before" "$fds_before to $fds_after"
kill -TERM "$daemon"
wait "$daemon"
status=$?
daemon=
gate 'the daemon ends when told, in order' "$status == 0" "status $status"
[ ! -s "$scratch/log" ] || { echo 'the daemon warned:'; sort "$scratch/log" | head -5; }
# The promises while others ask much, with daemons of its own.
if command -v node > /dev/null 2>&1; then
    ulimit -n "$(ulimit -Hn)"
    CLUSTER_URL=$TPU_ADVISOR_DATABASE_URL node tests/load/bounds.mjs "$program" || failed=$((failed + 1))
    gates=$((gates + 1))
fi
echo "load: $((gates - failed)) of $gates gates held, $measured requests in the measured pass"
[ $failed -eq 0 ]
