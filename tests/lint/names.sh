#!/bin/bash
# names.sh: a chip or a MaxText key is spelled as a whole string in C only in engine/maxtext/ and the tests. Who asks for a
# key by name takes it from maxtext/names.h, and what is true of one chip alone is data of that chip. Sentences may name both.
set -u
cd "$(dirname "$0")/../.." || exit 1
# Files whose strings are something else that is called like a key, and why.
allowed() {
    case $1 in
    engine/maxtext/*) ;;
    engine/spec/plan.h | engine/spec/model_build.c) ;;      # the tables of tensors, axes and dimensions, which keys are called after
    engine/spec/plan_rules*.c) ;;                           # a rule points to the key that breaks it
    engine/kernel/*.c | engine/json/decode_kernel.c | engine/json/kernel_members.c) ;; # members of kernel requests
    engine/explain/advice_rules.c) ;;                       # codes of advice
    engine/json/decode_request.c | engine/json/decode_model.c | engine/json/gate_side.c) ;; # members of requests
    engine/json/encode_*.c) ;;                              # members of answers
    engine/json/decode_catalog_chips.c) ;;                  # members of catalog files
    engine/json/decode_hf*.c) ;;                            # members of Hugging Face configurations, and the keys they become
    engine/json/decode_shell.c | engine/json/decode_recipe*.c | engine/recipe/*) ;; # arguments of launch commands and recipes
    server/bench_*.c) ;;                                    # fixed requests
    *) return 1 ;;
    esac
}

names=$(mktemp)
trap 'rm -f "$names"' EXIT
grep -ohE '^ ?\{"name":"[A-Za-z0-9_]+"' engine/catalog/data/keys.json engine/catalog/data/chips.json | cut -d'"' -f4 | grep -e _ -e "[0-9]" | sort -u > "$names"
[ "$(wc -l < "$names")" -gt 700 ] || { echo 'lint: no names of keys and chips found in engine/catalog/data'; exit 1; }
failed=0
# shellcheck disable=SC2016  # an awk program
while read -r file name; do
    allowed "$file" && continue
    echo "lint: $file spells \"$name\": take it from engine/maxtext/names.h, or make it data of the chip"
    failed=1
done < <(git ls-files 'engine/*.c' 'engine/*.h' 'server/*.c' 'server/*.h' | xargs awk '
    NR == FNR { known[$1] = 1; next }
    FNR == 1 { comment = 0 }
    /^ *#include/ { next }
    {
        line = $0
        if (comment) { if (!sub(/^.*\*\//, "", line)) next; comment = 0 }
        gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
        if (sub(/\/\*.*$/, "", line)) comment = 1
        while (match(line, /"[A-Za-z0-9_]+"/)) {
            name = substr(line, RSTART + 1, RLENGTH - 2)
            if (name in known) print FILENAME, name
            line = substr(line, RSTART + RLENGTH)
        }
    }' "$names" | sort -u)
[ $failed -eq 0 ] || exit 1
echo 'lint: keys and chips are spelled where they belong'
