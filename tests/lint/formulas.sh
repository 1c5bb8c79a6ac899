#!/bin/sh
# Every formula id that a ledger can show is explained in engine/README.md, and the page explains no other.
set -eu
cd "$(dirname "$0")/../.."
used=$(sed -n 's/^ *X([A-Z_]*, "[a-z_]*", [A-Z]*, "\(T-[a-z]*\)".*/\1/p' engine/cost/account.h | sort -u)
explained=$(sed -n 's/^| \(T-[a-z]*\) |.*/\1/p' engine/README.md | sort -u)
[ -n "$used" ]
if [ "$used" != "$explained" ]; then
    echo "lint: formula ids in engine/cost/account.h and in engine/README.md differ:"
    printf '%s\n%s\n' "$used" "$explained" | sort | uniq -u
    exit 1
fi
echo "lint: every formula of the ledger is explained ($(echo "$used" | wc -l) ids)"
