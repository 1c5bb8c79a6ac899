# shellcheck shell=bash
# load.sh: clients at work while a step breaks things, and what they saw. Sourced by steps; needs $url and $work.
now_ms() { date +%s%3N; }
: "${work:?}" "${url:=}"
load_begin() {
    log=$work/answers
    : > "$log"
    node tests/compose/client.mjs "$url" "$log" &
    client=$!
    background+=("$client")
    load_goes_on "the start"
}
# WHAT: a key that is asked for the first time from now on is acknowledged, within a minute.
load_goes_on() {
    local since
    since=$(now_ms)
    until_true 60 "an acknowledgement after $1" acknowledged_since "$since"
}
acknowledged_since() {
    awk -v since="$1" '$1 >= since && $2 == 200 && $4 != "-" {found++} END {exit found < 10}' "$log"
}
# FROM_MS TO_MS: the longest time without an acknowledgement in between, in milliseconds.
longest_gap() {
    awk -v from="$1" -v to="$2" '$1 >= from && $1 <= to && $2 == 200 && $4 != "-" {
        if (!last) last = from
        if ($1 - last > gap) gap = $1 - last
        last = $1
    } END {if (to - last > gap) gap = to - last; print gap + 0}' "$log"
}
# FROM_MS TO_MS [KEY]: the answers in between as "STATUS: COUNT"; with KEY those to that key only.
answers() {
    awk -v from="$1" -v to="$2" -v key="${3:-}" '$1 >= from && $1 <= to && (key == "" || $3 == key) {count[$2]++}
        END {for (status in count) printf "%s%s: %d", n++ ? ", " : "", status, count[status]}' "$log"
}
# Ends the clients, and reads everything back.
load_end() {
    local stored
    kill "$client" && wait "$client" || fail "a client has seen what it must not see"
    node tests/compose/client.mjs --check "$url" "$log" > "$work/check" 2>&1 || fail "$(cat "$work/check")"
    stored=$(sql "SELECT count(*), count(DISTINCT label) FROM runs WHERE label LIKE 'key-$client-%'") || fail "$stored"
    [ "${stored%|*}" = "${stored#*|}" ] || fail "runs and their keys: $stored"
    step "all of $(cat "$work/check") are read back; $stored of runs and keys are stored"
}
