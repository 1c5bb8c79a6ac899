#!/bin/sh
# accuracy.sh REPORT PAGE OUT_DIR ROWS...: writes a page of accuracy to OUT_DIR and fails when a group got worse than on the
# committed PAGE by more than rounding. Groups are named by a table's first two columns; the fourth and fifth are median
# and 90th percentile, the ninth, where there are eleven, how many verdicts are right. A page may also state a log loss,
# and the share of steps that copy stacks where the engine says so.
set -eu
report=$1
page=$2
out=$3
shift 3
mkdir -p "$out"
"$report" "$@" > "$out/$(basename "$page")"
awk -F'|' '
    function number(text) { gsub(/[ %]/, "", text); return text + 0 }
    FNR == 1 { file++; table = 0 }
    /median %/ { table = 1; next }
    /^Log loss/ { split($0, words, ": "); loss[file] = words[2] + 0 }
    /^Copies as/ { split($0, words, ": "); copies[file] = words[2] + 0 }
    !/^\|/ { table = 0 }
    !table || $4 !~ /[0-9]/ { next }
    {
        key = $2 $3
        if (file == 1) { keys[++count] = key; verdicts[key] = NF == 13 }
        seen[file, key] = 1
        for (i = 4; i <= 10; i++) value[file, key, i] = number($i)
    }
    END {
        for (n = 1; n <= count; n++) {
            key = keys[n]
            if (!seen[2, key]) { print "missing: " key; bad = 1; continue }
            for (i = 5; i <= 6; i++)
                if (value[2, key, i] > value[1, key, i] + 0.11) {
                    printf "worse:%s %s was %.1f %%, is %.1f %%\n", key, i == 5 ? "median" : "p90", value[1, key, i], value[2, key, i]
                    bad = 1
                }
            if (verdicts[key] && value[2, key, 10] < value[1, key, 10] - 0.5) {
                printf "worse:%s verdicts were right in %d %%, are in %d %%\n", key, value[1, key, 10], value[2, key, 10]
                bad = 1
            }
        }
        if (loss[2] > loss[1] + 0.0005) { printf "worse: log loss was %.4f, is %.4f\n", loss[1], loss[2]; bad = 1 }
        if (copies[2] < copies[1] - 0.005) { printf "worse: copies were right in %.3f, are in %.3f\n", copies[1], copies[2]; bad = 1 }
        if (count < 10) { print "the committed page has no rows to compare with"; bad = 1 }
        print FILENAME ": " (bad ? "FAILED" : "no worse than the committed page (" count " groups)")
        exit bad
    }' "$page" "$out/$(basename "$page")"
