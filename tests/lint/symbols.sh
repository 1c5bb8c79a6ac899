#!/bin/bash
# symbols.sh: the engine exports adv_ names only, and holds nothing that can be written to.
set -u
cd "$(dirname "$0")/../.." || exit 1
make -s build/libadv.a > /dev/null || exit 1
failed=0
strangers=$(nm -g --defined-only build/libadv.a | awk 'NF == 3 { print $3 }' | grep -v '^adv_' | sort -u)
if [ -n "$strangers" ]; then
    printf '%s\n' "$strangers" | sed 's/^/lint: exported without the prefix adv_: /'
    failed=1
fi
writable=$(objdump -t build/libadv.a | awk '($4 == ".data" || $4 == ".bss" || $3 == ".data" || $3 == ".bss") && / O / { print $NF }' | sort -u)
if [ -n "$writable" ]; then
    printf '%s\n' "$writable" | sed 's/^/lint: writable global: /'
    failed=1
fi
[ $failed -eq 0 ] || exit 1
echo 'lint: the engine exports adv_ names only and has no writable globals'
