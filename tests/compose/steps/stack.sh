# shellcheck shell=bash
# stack.sh: one daemon, as docker/compose.yaml alone has it: an answer outlives a restart, a verifier's death costs nothing,
# rights are few, stop is clean, tokens are asked for. Sourced by run.sh.
: "${work:?}"
TPU_ADVISOR_PORT=$(free_ports 1)
export TPU_ADVISOR_PORT
url=http://127.0.0.1:$TPU_ADVISOR_PORT
quietly compose up -d --no-build
until_healthy
step "stack is up and healthy"

# --- what it is for -------------------------------------------------------------------------------------------
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
build --build-arg ADVISOR="$TPU_ADVISOR_IMAGE" -t "$TPU_ADVISOR_VERIFIER_IMAGE" tests/compose/verifier
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
chmod 644 "$work/tokens"
export TPU_ADVISOR_TOKENS=$work/tokens
files+=(-f docker/compose.tokens.yaml)
quietly compose up -d --no-build
until_healthy
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/runs/$run")" = 401 ] || fail "a request without a token was served"
ask -H 'Authorization: Bearer sesame' "$url/v1/runs/$run" > /dev/null || fail "the token was refused"
step "with compose.tokens.yaml: 401 without a token, 200 with it"
