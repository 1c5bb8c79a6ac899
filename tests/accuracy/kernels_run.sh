#!/bin/sh
# kernels_run.sh KERNELS_REPORT TIMINGS OUT_DIR: writes the kernels' accuracy page to OUT_DIR and fails when it got worse
# than the committed one: errors by more than rounding, or a winner that left the short list.
set -eu
here=$(dirname "$0")
mkdir -p "$3"
"$1" "$2" "$3/kernels_report.md"
awk -F'|' '
    function number(text) { gsub(/[ %]/, "", text); return text + 0 }
    FNR == 1 { file++ }
    NF < 8 || $2 ~ /^ kernel/ || $2 ~ /^-/ { next }
    {
        key = $2 "on" $3
        if (file == 1) { keys[++count] = key; kind[key] = NF }
        seen[file, key] = 1
        for (i = 4; i <= NF - 1; i++) value[file, key, i] = number($i)
    }
    END {
        for (n = 1; n <= count; n++) {
            key = keys[n]
            if (!seen[2, key]) { print "missing: " key; bad = 1; continue }
            if (kind[key] == 8) {
                for (i = 5; i <= 6; i++)
                    if (value[2, key, i] > value[1, key, i] + 0.11) {
                        printf "worse:%s %s was %.1f %%, is %.1f %%\n", key, i == 5 ? "median" : "p90", value[1, key, i], value[2, key, i]
                        bad = 1
                    }
            } else if (kind[key] == 10) {
                for (i = 5; i <= 7; i += 2)
                    if (value[2, key, i + 1] * value[1, key, i] < value[1, key, i + 1] * value[2, key, i]) {
                        printf "worse:%s %d of %d %s were ordered, %d of %d are\n", key, value[1, key, i + 1], value[1, key, i], i == 5 ? "pairs" : "dates", value[2, key, i + 1], value[2, key, i]
                        bad = 1
                    }
            } else if (kind[key] > 10 && value[2, key, 5] / value[2, key, 4] < value[1, key, 5] / value[1, key, 4] - 1e-9) {
                printf "worse:%s five tiles held %d of %d, hold %d of %d\n", key, value[1, key, 5], value[1, key, 4], value[2, key, 5], value[2, key, 4]
                bad = 1
            } else if (value[2, key, 6] / value[2, key, 4] < value[1, key, 6] / value[1, key, 4] - 1e-9) {
                printf "worse:%s short list held %d of %d, holds %d of %d\n", key, value[1, key, 6], value[1, key, 4], value[2, key, 6], value[2, key, 4]
                bad = 1
            }
        }
        if (count < 10) { print "the committed page has no rows to compare with"; bad = 1 }
        print bad ? "kernel accuracy: FAILED" : "kernel accuracy: no worse than the committed page (" count " rows)"
        exit bad
    }' "$here/kernels_report.md" "$3/kernels_report.md"
