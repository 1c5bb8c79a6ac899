#!/bin/bash
# size.sh: a file has at most 600 lines, a C function at most 60 (from its brace to its brace, both at the margin).
set -u
cd "$(dirname "$0")/../.." || exit 1
{
    git ls-files '*.c' '*.h' '*.js' '*.mjs' '*.css' '*.sh' | while IFS= read -r file; do
        lines=$(wc -l < "$file")
        [ "$lines" -le 600 ] || echo "lint: $file has $lines lines, at most 600 are allowed"
    done
    git ls-files '*.c' | xargs -r awk '
        FNR == 1 { start = 0 }
        /^[a-z].*\($|^[a-z].*[,(].*$/ { name = $0 }
        /^\{/ { start = FNR; who = name }
        /^\}$/ && start { if (FNR - start + 1 > 60)
            printf "lint: %s:%d: %d lines, at most 60 are allowed: %s\n", FILENAME, start, FNR - start + 1, who; start = 0 }'
} | (! grep .) || exit 1
echo 'lint: files and functions keep their size'
