#!/bin/bash
# run.sh [--update] PROGRAM...: does each PROGRAM still give the stored answers, byte for byte?
# requests/COMMAND-NAME.* is given to `PROGRAM COMMAND FILE`; answers/COMMAND-NAME has the exit status, standard output
# and the problem of standard error, a member per line. With --update the first PROGRAM's answers are stored.
# Left out of the comparison: the engine's name tag (it holds a digest of the sources) and how long a search took.
set -u
cd "$(dirname "$0")" || exit 1
update=
[ "${1:-}" = --update ] && { update=yes; shift; }
[ $# -gt 0 ] || { echo 'usage: run.sh [--update] PROGRAM...' >&2; exit 2; }

answer_of() { # PROGRAM REQUEST
    local name=${2#requests/} status
    "$1" "${name%%-*}" "$2" > "$scratch/out" 2> "$scratch/err" < /dev/null
    status=$?
    echo "exit status $status"
    cat "$scratch/out"
    [ $status -eq 0 ] || cat "$scratch/err"
}

canonical() {
    sed -E 's/"engine": ?\{[^{}]*\}/"engine":{}/g; s/"(elapsed_ms|evaluations_per_s)": ?[-+.0-9e]+/"\1":0/g
            s/,"/,\n"/g; s/(\[|\{)("|\{)/\1\n\2/g; s/\},\{/},\n{/g'
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p answers
failed=0
compared=0
for program in "$@"; do
    [ -x "$program" ] || { echo "golden: there is no program $program"; exit 1; }
    for request in requests/*; do
        name=${request#requests/}
        stored=answers/${name%.*}
        answer_of "$program" "$request" | canonical > "$scratch/answer"
        case $(head -1 "$scratch/answer") in
        'exit status 0' | 'exit status 2') ;;
        'exit status 1') # lint's answer about a configuration that is not valid
            [ "${name%%-*}" = lint ] || {
                echo "golden: $program ${name%%-*} $request: exit status 1"
                failed=$((failed + 1))
                continue
            }
            ;;
        *)
            echo "golden: $program ${name%%-*} $request: $(head -1 "$scratch/answer"), neither an answer (0) nor a refusal (2)"
            failed=$((failed + 1))
            continue
            ;;
        esac
        if [ -n "$update" ]; then
            cmp -s "$scratch/answer" "$stored" || { cp "$scratch/answer" "$stored"; echo "golden: stored $stored"; }
        elif ! cmp -s "$scratch/answer" "$stored"; then
            failed=$((failed + 1))
            echo "golden: $program ${name%%-*} $request: not the stored answer"
            diff "$stored" "$scratch/answer" | head -12
        fi
        compared=$((compared + 1))
    done
    [ -z "$update" ] || break
done
for stored in answers/*; do
    [ -n "$(find requests -name "${stored#answers/}.*" -print -quit)" ] || { echo "golden: $stored has no request"; failed=$((failed + 1)); }
done
if [ $failed -gt 0 ]; then
    echo "golden: FAILED: $failed of $compared answers differ (make golden-update stores them, once you know why)"
    exit 1
fi
echo "golden: $compared answers of $# programs are as stored"
[ $compared -gt 0 ]
