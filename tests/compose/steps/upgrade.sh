# shellcheck shell=bash
# upgrade.sh: from the program as it was two migrations ago to today's, daemon by daemon, under load. Sourced by run.sh.
. tests/compose/load.sh
newest_but_one=$(find sql/migrations -name '*.sql' | sort | tail -2 | head -1)
added=$(git log -1 --format=%H --diff-filter=A -- "$newest_but_one" 2> /dev/null)
if [ -z "$added" ] || ! git cat-file -e "$added^:docker/Dockerfile" 2> /dev/null; then
    step "upgrade: NOT RUN: the history of $newest_but_one is not here"
    return
fi
export NGINX_IMAGE=nginx-unprivileged:test
build -t "$NGINX_IMAGE" tests/compose/nginx
mkdir -p "$work/earlier"
git archive "$added^" | tar -x -C "$work/earlier" || fail "git archive"
build --build-arg BASE=debian:bookworm-slim -t tpu-advisor:earlier -f "$work/earlier/docker/Dockerfile" "$work/earlier"
earlier_migrations=$(find "$work/earlier/sql/migrations" -name '*.sql' | wc -l)
migrations=$(find sql/migrations -name '*.sql' | wc -l)
step "image of an earlier version, with $earlier_migrations of $migrations migrations"

first=$(free_ports 8)
export TPU_ADVISOR_PORT=$((first + 1))-$((first + 7)) TPU_ADVISOR_PROXY_PORT=$first
url=http://127.0.0.1:$first
files+=(-f docker/compose.proxy.yaml)
TPU_ADVISOR_IMAGE=tpu-advisor:earlier quietly compose up -d --no-build --scale advisor=3
until_healthy 3
[ "$(sql 'SELECT count(*) FROM schema_migrations')" = "$earlier_migrations" ] || fail "the earlier version's migrations"
run=$(ask -H 'Content-Type: application/json' "$url/v1/advise" -d '{"model": "llama3.1-8b", "project": "p", "label": "kept",
    "cluster": {"chip": "v6e", "topology": "4x4"}, "workload": {"seq_len": 8192, "global_batch_sequences": 64}, "store": true}' | member run_id)
stored() { ask "$url/v1/runs/$run" | sed 's/,"engine":{[^}]*}}$//'; } # without what the daemon says of itself
stored > "$work/run"
grep -q '"label":"kept"' "$work/run" || fail "run $run"
ask -X PUT -H 'Content-Type: application/json' -d "{\"run_id\": \"$run\"}" "$url/v1/baselines/p/kept" > /dev/null || fail "baseline"
mapfile -t old < <(compose ps -q advisor)
load_begin
step "three daemons of the earlier version store under load"

# --- the schema first, while the earlier daemons work on ------------------------------------------------------------
begin=$(now_ms)
quietly compose up -d --no-build roles
[ "$(docker wait "$(compose ps -q roles)")" = 0 ] || fail "the migration"
[ "$(sql 'SELECT count(*) FROM schema_migrations')" = "$migrations" ] || fail "not every migration was applied"
[ "$(docker logs "$(compose ps -q migrate)" 2>&1 | grep -c 'migration .* applied')" = $((migrations - earlier_migrations)) ] ||
    fail "the migrations were not applied once: $(docker logs "$(compose ps -q migrate)" 2>&1)"
load_goes_on "the migration"
step "the schema has moved on below them"

# --- then the daemons: new ones beside them, which take over ----------------------------------------------------------
quietly compose up -d --no-build --no-deps --no-recreate --scale advisor=6 advisor
until_healthy 6
load_goes_on "the coming of the new daemons"
mapfile -t new < <(compose ps -q advisor | grep -vxF "$(printf '%s\n' "${old[@]}")")
[ ${#new[@]} -eq 3 ] || fail "${#new[@]} new daemons"
for id in "${new[@]}"; do
    [ "$(docker inspect -f '{{.Config.Image}}' "$id")" = "$TPU_ADVISOR_IMAGE" ] || fail "a new daemon is of the earlier version"
    docker logs "$id" 2>&1 | grep -q '"state":"refused"' && fail "a new daemon refused the schema"
done
quietly docker stop "${old[@]}"
for id in "${old[@]}"; do
    [ "$(docker inspect -f '{{.State.ExitCode}}' "$id")" = 0 ] || fail "an earlier daemon did not end cleanly"
done
quietly docker rm "${old[@]}"
load_goes_on "the end of the earlier daemons"
gap=$(longest_gap "$begin" "$(now_ms)")
[ "$gap" -le 2000 ] || fail "$gap ms without an acknowledgement"
step "six side by side, then the three new ones: longest gap $gap ms; $(answers "$begin" "$(now_ms)")"
load_end

# --- as if it had always been there -------------------------------------------------------------------------------------
quietly compose up -d --no-build --scale advisor=3
[ "$(compose ps -q advisor | sort)" = "$(printf '%s\n' "${new[@]}" | sort)" ] || fail "up has made daemons anew"
until_healthy 3
stored | cmp - "$work/run" || fail "the earlier version's run is read otherwise"
[ "$(ask "$url/v1/baselines/p/kept" | member run_id)" = "$run" ] || fail "the earlier version's baseline"
step "the earlier version's run is read byte by byte, its baseline is set, and a second up changes nothing"
