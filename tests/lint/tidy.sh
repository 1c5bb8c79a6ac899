#!/bin/sh
# tidy.sh FILE...: clang-tidy with the project's flags, printing one line per finding (VERBOSE=1: with the path that leads to it).
set -u
# shellcheck disable=SC2046  # a list of flags
output=$(clang-tidy --quiet "$@" -- -std=c17 -D_GNU_SOURCE -I. -Ibuild/gen \
    $(pkg-config --cflags jansson yaml-0.1 libmicrohttpd libpq nlopt cmocka 2> /dev/null) 2> /dev/null)
status=$?
[ -z "${VERBOSE:-}" ] || printf '%s\n' "$output"
printf '%s\n' "$output" | grep -E '(error|warning):' | sort -u
exit $status
