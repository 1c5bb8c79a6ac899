#!/bin/sh
# run.sh FIT_STEPS OUT_DIR: judges the committed constants on the published steps, writes the accuracy page to
# OUT_DIR and fails when the page got worse than the committed one by more than rounding. Regenerate the committed page
# with `make fit` (new constants) or `make accuracy-update` (same constants, new engine).
set -eu
fit_steps=$1
out=$2
here=$(dirname "$0")
mkdir -p "$out"
"$fit_steps" "$here/e2e.json" --report "$out/report.md" --accounts "$here/resisting.json" --picture "$out/predicted.svg" --leave-one-out > "$out/rows.txt"
sed -n '/^| all |/,/^| model |/p' "$out/report.md" | sed '$d'
awk -F'|' '
    function number(text) { gsub(/[ ±%]/, "", text); return text + 0 }
    FNR == 1 { file++ }
    $2 ~ /^ (all chips|tpu7x|v6e|v5p|v5e|v4) $/ && NF > 11 {
        for (i = 4; i <= 10; i++) if (i != 7) value[file, $2, i] = number($i)
        if (file == 1) names[++count] = $2
    }
    END {
        split("x x x median p90 max x left-out@median left-out@p90 left-out@max", what, " ")
        for (n = 1; n <= count; n++)
            for (i = 4; i <= 10; i++) {
                if (i == 7 || (i == 6 || i == 10)) continue
                was = value[1, names[n], i]; is = value[2, names[n], i]
                if (is > was + 0.11) {
                    label = what[i]; sub(/@/, " ", label)
                    printf "worse:%s%s was %.1f %%, is %.1f %%\n", names[n], label, was, is
                    bad = 1
                }
            }
        if (count < 2) { print "the committed page has no rows to compare with"; bad = 1 }
        print bad ? "accuracy: FAILED" : "accuracy: no worse than the committed page"
        exit bad
    }' "$here/report.md" "$out/report.md"
