#!/bin/bash
# symbols.sh: the engine exports adv_ names only, holds nothing that can be written to, and computes nothing in engine/json/.
set -u
cd "$(dirname "$0")/../.." || exit 1
make -s build/libadv.a > /dev/null || exit 1
failed=0
strangers=$(nm -g --defined-only build/libadv.a | awk 'NF == 3 { print $3 }' | grep -v -e '^adv_' -e '\.c\.[0-9a-f]*$' | sort -u) # the second: marks of a piece compiled as one, no names
if [ -n "$strangers" ]; then
    printf '%s\n' "$strangers" | sed 's/^/lint: exported without the prefix adv_: /'
    failed=1
fi
# `reading`, a thread's own: the allocator that libjansson calls is not told for whom (engine/json/json_load.c).
writable=$(objdump -t build/libadv.a | awk '/ O \.(data|bss)\t/ || / \.t(data|bss)\t/ { print $NF }' |
    grep -v -e '^\.t' -e '^reading$' | sort -u)
if [ -n "$writable" ]; then
    printf '%s\n' "$writable" | sed 's/^/lint: writable global: /'
    failed=1
fi
# engine/json/ writes and reads; it prices, searches and explains nothing. It may ask for names and for what a struct says (fields, the edge of a bin).
functions=$(git ls-files 'engine/json/*.c' | sed 's,\(.*\)\.c,build/\1.o,' | xargs nm -u | awk 'NF == 2 { print $2 }' | sort -u)
algorithms=$(git ls-files engine/cost/'*.c' engine/rank/'*.c' engine/search/'*.c' engine/explain/'*.c' engine/hardware/'*.c' |
    sed 's,\(.*\)\.c,build/\1.o,' | xargs nm -g --defined-only | awk 'NF == 3 { print $3 }' | grep -v -e '_name$' -e '^adv_sensitivity_fields$' -e '^adv_cloud_time_s$')
called=$(comm -12 <(printf '%s\n' "$functions") <(printf '%s\n' "$algorithms" | sort -u))
if [ -n "$called" ]; then
    printf '%s\n' "$called" | sed 's/^/lint: engine\/json calls an algorithm, which is for engine\/answer: /'
    failed=1
fi
[ $failed -eq 0 ] || exit 1
echo 'lint: the engine exports adv_ names only, has no writable globals, and engine/json calls no algorithm'
