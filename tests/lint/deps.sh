#!/bin/bash
# deps.sh: dependencies point down only, and each third-party library has one folder that may include it.
# A layer may include itself and the layers before it in this list. answer is above all other folders of the engine;
# advise.h, which it implements, is text in and text out and needs the catalog alone.
# emit (files for people) comes before json, which answers with them.
set -u
cd "$(dirname "$0")/../.." || exit 1
set -f # patterns below are for `case`, not for file names
layers='base recipe spec catalog maxtext hardware kernel cost rank search explain calibrate emit json answer server'
findings=$(mktemp)
trap 'rm -f "$findings"' EXIT

report() { echo "lint: $*" >> "$findings"; }

layer_of() { # of a path below the top
    case $1 in
    engine/*/*) local rest=${1#engine/}; echo "${rest%%/*}" ;;
    engine/advise.h) echo catalog ;; # the interface in JSON text
    server/*) echo server ;;
    *) echo none ;;
    esac
}

rank_of() {
    local i=0 layer
    for layer in $layers; do
        [ "$layer" = "$1" ] && { echo $i; return; }
        i=$((i + 1))
    done
    echo none
}

checked=0
while IFS= read -r file; do
    layer=$(layer_of "$file")
    rank=$(rank_of "$layer")
    checked=$((checked + 1))
    if [ "$rank" = none ]; then
        report "$file: folder '$layer' has no place in the layers of tests/lint/deps.sh"
        continue
    fi
    while IFS= read -r included; do
        above=$(rank_of "$(layer_of "$included")")
        if [ "$above" != none ] && [ "$above" -gt "$rank" ]; then
            report "$file includes $included: dependencies point down only"
        fi
        case $file:$included in
        engine/*:server/*) report "$file includes $included: the engine knows no server" ;;
        *:tests/*) report "$file includes $included: the product knows no tests" ;;
        esac
    done < <(sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' "$file")
    while IFS= read -r header; do
        case $header in
        microhttpd.h) allowed='server/http*' ;;
        libpq-fe.h) allowed='server/db*' ;;
        jansson.h) allowed='engine/json/*' ;;
        openssl/*) allowed='server/sha256.c server/http_client.c' ;;
        zlib.h) allowed='server/gzip.c' ;;
        yaml.h) allowed="engine/json/decode_yaml.c" ;;
        nlopt.h) allowed='engine/calibrate/*' ;;
        # of the engine only what lets a helper work beside a search knows threads, and a clock to wait by
        pthread.h) allowed='server/* engine/base/crew.c engine/search/in_order.c engine/search/space_tiles.c' ;;
        time.h) allowed='server/* engine/search/in_order.c' ;;
        unistd.h) allowed='server/* engine/base/crew.c' ;;
        sys/socket.h | netinet/* | arpa/* | sys/time.h) allowed='server/*' ;;
        *) continue ;;
        esac
        fits=no
        for pattern in $allowed; do
            # shellcheck disable=SC2254  # a pattern
            case $file in $pattern) fits=yes ;; esac
        done
        [ $fits = yes ] || report "$file includes <$header>: only $allowed may"
    done < <(sed -n 's/^ *# *include *<\([^>]*\)>.*/\1/p' "$file")
done < <(git ls-files 'engine/*.c' 'engine/*.h' 'server/*.c' 'server/*.h')

sort "$findings"
[ "$checked" -gt 0 ] || { echo 'lint: no source files found'; exit 1; }
[ ! -s "$findings" ] || exit 1
echo "lint: dependencies point down ($checked files)"
