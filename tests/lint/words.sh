#!/bin/bash
# words.sh: marks of unfinished work, traces of a developer's machine, and style rules a compiler does not know.
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0

# forbid WHY PATTERN FILES...: no line of the files matches the pattern (brackets keep this script from matching itself).
forbid() {
    local why=$1 pattern=$2
    shift 2
    local hits
    hits=$(git ls-files "$@" | grep -v -e 'package-lock.json' -e '^tests/data/' | xargs -r grep -n -I -E -e "$pattern" 2> /dev/null)
    [ -n "$hits" ] || return 0
    printf '%s\n' "$hits" | head -20 | sed "s|^|lint: $why: |"
    failed=1
}

forbid 'unfinished' '\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b|not implemente[d]' '*.c' '*.h' '*.js' '*.mjs' '*.sh' '*.sql' '*.html' '*.css' Makefile
forbid 'a path of one machine' '(^|[^a-zA-Z0-9_.])/(wor[k]|far[m]|roo[t]|home/[a-z]+)/' '*.c' '*.h' '*.js' '*.mjs' '*.sh' '*.sql' '*.md' '*.json' '*.yaml' Makefile
forbid 'a copy without a bound' '\b(strcpy|strcat|sprintf|vsprintf|gets)\(' '*.c'
forbid 'adv_json_load reads JSON' '[^_]json_load(s|b|f|fd|_file|_callback)\(' 'engine/*.c' 'server/*.c' ':!engine/json/json_load.c'
forbid 'rule 9: no state hidden in a function' '^ +static [a-z_]+ [a-z_]+( =|;|\[[^]]*\];)' 'engine/*.c'
forbid 'rule 11: no randomness in the engine' '\b(rand|random|drand48|arc4random|getrandom)\(' 'engine/*.c'
forbid 'rule 12: unknown is NAN, not a magic number' '(= |\()(-?999+|1e30|1e99|DBL_MAX)[^0-9]' 'engine/*.c'
forbid 'headers say #pragma once' '^#(ifndef|define) [A-Z_]+_H$' '*.h'
forbid 'include order: own header with quotes' '#include <(engine|server)/' '*.c' '*.h'
[ $failed -eq 0 ] || exit 1
echo 'lint: no forbidden words'
