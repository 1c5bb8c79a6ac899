#!/bin/sh
# embed.sh TABLE ROOT FILE...: prints C that places the files (paths below ROOT) in the table adv_embedded_TABLE.
set -eu
table=$1
root=$2
shift 2
echo '#include "engine/base/embed.h"'
i=0
for file in "$@"; do
    printf '__asm__(".section .rodata\\n.global adv_%s_%d\\n.global adv_%s_%d_end\\n.balign 16\\nadv_%s_%d:\\n.incbin \\"%s\\"\\nadv_%s_%d_end:\\n.byte 0\\n.previous\\n");\n' \
        "$table" $i "$table" $i "$table" $i "$root/$file" "$table" $i
    printf 'extern const unsigned char adv_%s_%d[], adv_%s_%d_end[];\n' "$table" $i "$table" $i
    i=$((i + 1))
done
printf 'const struct adv_embedded_file adv_embedded_%s[] = {\n' "$table"
i=0
for file in "$@"; do
    printf '    {"%s", adv_%s_%d, %d},\n' "$file" "$table" $i "$(wc -c < "$root/$file")"
    i=$((i + 1))
done
printf '    {0, 0, 0},\n};\n'
