# shellcheck shell=bash
# proxy.sh: three daemons behind nginx under load while one daemon dies by itself, one is killed, the database is killed,
# their number changes; what Prometheus sees of them; and TLS. Sourced by run.sh.
. tests/compose/load.sh
export NGINX_IMAGE=nginx-unprivileged:test PROMETHEUS_IMAGE=prometheus:test
build -t "$NGINX_IMAGE" tests/compose/nginx
build -t "$PROMETHEUS_IMAGE" tests/compose/prometheus
step "stand-ins for the images of nginx and Prometheus"
first=$(free_ports 8)
export TPU_ADVISOR_PORT=$((first + 1))-$((first + 7)) TPU_ADVISOR_PROXY_PORT=$first
url=http://127.0.0.1:$first
files+=(-f docker/compose.proxy.yaml -f docker/compose.monitoring.yaml)
up() { quietly compose up -d --no-build --scale "advisor=$1" "${@:2}"; }
address() { docker inspect -f '{{range $name, $net := .NetworkSettings.Networks}}{{$name}} {{$net.IPAddress}}
{{end}}' "$1" | awk '/_default / {print $2}'; }
# CONTAINER: waits until it is ready, and leaves in `after` how many milliseconds after its start that was, as its log says.
until_ready() {
    until_true 60 "the daemon is ready again" log_says_up "$1"
    after=$(($(date -d "$(log_says_up "$1")" +%s%3N) - $(date -d "$(started "$1")" +%s%3N)))
}
started() { docker inspect -f '{{.State.StartedAt}}' "$1"; }
log_says_up() { docker logs --since "$(started "$1")" "$1" 2>&1 | sed -n '/"msg":"database","state":"up"/{s/.*"ts":"//;s/".*//p;q}' | grep .; }
restarted() { [ "$(docker inspect -f '{{.RestartCount}} {{.State.Running}}' "$1")" = "1 true" ]; }
replicas() { compose ps -q advisor; }
at_most() { # WHAT MS LIMIT: beyond what a busy machine takes without any fault
    [ "$2" -le $(($3 + noise)) ] || fail "$1: $2 ms, more than $3 and the $noise that this machine takes without a fault"
}

up 3
until_healthy 3
load_begin
begin=$(now_ms)
sleep 5
noise=$(longest_gap "$begin" "$(now_ms)")
for id in $(replicas); do
    until_ready "$id"
    [ "$after" -le "$noise" ] || noise=$after
done
step "three daemons behind nginx; clients store under keys of their own; a first start or a pause takes $noise ms"

# --- a daemon dies and comes back by itself ---------------------------------------------------------------------
id=$(replicas | sed -n 1p)
begin=$(now_ms)
kill -KILL "$(docker inspect -f '{{.State.Pid}}' "$id")"
until_true 60 "the dead daemon is started again" restarted "$id"
until_ready "$id"
load_goes_on "the death of a daemon"
gap=$(longest_gap "$begin" "$(now_ms)")
at_most "ready after its start" "$after" 2000
at_most "without an acknowledgement" "$gap" 2000
step "a daemon died: ready $after ms after its start, others went on (longest gap $gap ms; $(answers "$begin" "$(now_ms)"))"

# --- a daemon is killed and stays away ----------------------------------------------------------------------------
id=$(replicas | sed -n 2p)
begin=$(now_ms)
quietly docker kill -s KILL "$id"
sleep 5
load_goes_on "the loss of a daemon"
up 3
until_ready "$id"
gap=$(longest_gap "$begin" "$(now_ms)")
at_most "ready after its start" "$after" 2000
at_most "without an acknowledgement" "$gap" 2000
step "a daemon was away for 5 s: ready $after ms after its start, longest gap $gap ms; $(answers "$begin" "$(now_ms)")"

# --- the database is killed ------------------------------------------------------------------------------------------
begin=$(now_ms)
quietly docker kill -s KILL "$(compose ps -q database)"
sleep 4
end=$(now_ms)
unstored=$(answers $((begin + 500)) "$end" unstored)
[[ $unstored =~ ^200:\ [0-9]+$ ]] || fail "without the database, what needs none is answered $unstored"
[ "$(longest_gap $((begin + 500)) "$end")" -ge 3000 ] || fail "runs were acknowledged without a database"
during=$(answers "$begin" "$end")
up 3
until_true 60 "the database is back" sql 'SELECT 1'
begin=$(now_ms)
load_goes_on "the return of the database"
after=$(($(now_ms) - begin))
at_most "acknowledging after the database's return" $after 6000
step "the database was away for 4 s ($during; unstored $unstored), runs are stored $after ms after its return"

# --- more and fewer daemons -----------------------------------------------------------------------------------------
begin=$(now_ms)
up 5
until_healthy 5
served() { curl -s "http://$(address "$1"):8080/metrics" | grep -q 'requests_total{.*route="/v1/estimate".*code="200"'; }
for id in $(replicas); do until_true 60 "each of five daemons gets requests" served "$id"; done
up 2
load_goes_on "scaling"
gap=$(longest_gap "$begin" "$(now_ms)")
at_most "without an acknowledgement" "$gap" 2000
step "five daemons and then two, all of them found by the proxy: longest gap $gap ms; $(answers "$begin" "$(now_ms)")"
# --- monitoring -----------------------------------------------------------------------------------------------------
# Debian has no Grafana: what its dashboard draws is asked of Prometheus itself.
query() { compose exec -T prometheus promtool query instant http://localhost:9090 "$1" < /dev/null; }
targets_up() { [ "$(query 'up{job="tpu-advisor"}' | grep -c '=> 1 @')" -eq "$1" ]; }
all_drawn() {
    local expression
    while read -r expression; do
        query "$expression" | grep -q '=>' || { echo "$expression"; return 1; }
    done < "$work/expressions"
}
node -p 'JSON.parse(require("fs").readFileSync("docker/monitoring/grafana/advisor.json")).panels
    .flatMap((panel) => panel.targets.map((target) => target.expr)).join("\n")' > "$work/expressions"
up 3 advisor
up 3 prometheus
until_true 60 "three targets are up" targets_up 3
until_true 60 "each picture of the dashboard has a series" all_drawn
step "Prometheus scrapes every replica; each of $(wc -l < "$work/expressions") pictures of the dashboard has its series"
load_end

# --- TLS ------------------------------------------------------------------------------------------------------------
mkdir -p "$work/certificates"
quietly openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    -keyout "$work/certificates/key.pem" -out "$work/certificates/cert.pem"
chmod 644 "$work/certificates/key.pem" # the proxy's user is not root
export TPU_ADVISOR_PROXY_CONF=./proxy/tls.conf TPU_ADVISOR_CERTIFICATES=$work/certificates
up 3
tls() { ask --cacert "$work/certificates/cert.pem" "$@"; }
until_true 60 "https works" tls -o /dev/null "https://localhost:$first/readyz"
tls -o /dev/null -D "$work/headers" "https://localhost:$first/v1/catalog/chips" || fail "https"
grep -qi '^strict-transport-security: max-age=' "$work/headers" || fail "no Strict-Transport-Security"
tls -H 'Content-Type: application/json' -d @tests/golden/requests/estimate-v6e-llama8b-8c.json "https://localhost:$first/v1/estimate" |
    grep -q '"step_time_s"' || fail "an estimate over https"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/readyz")" = 400 ] || fail "plain http was served"
curl -s --tls-max 1.1 --cacert "$work/certificates/cert.pem" "https://localhost:$first/readyz" > /dev/null && fail "TLS 1.1 was served"
step "https is served, plain http on its port and TLS 1.1 are not"
unset TPU_ADVISOR_PROXY_CONF TPU_ADVISOR_CERTIFICATES
