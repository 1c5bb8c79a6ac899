#!/bin/sh
# tidy.sh FILE...: clang-tidy with the project's flags, printing findings only.
set -u
# shellcheck disable=SC2046  # a list of flags
output=$(clang-tidy --quiet "$@" -- -std=c17 -D_GNU_SOURCE -I. -Ibuild/gen \
    $(pkg-config --cflags jansson yaml-0.1 libmicrohttpd libpq nlopt cmocka 2> /dev/null) 2> /dev/null)
status=$?
[ -z "$output" ] || printf '%s\n' "$output"
exit $status
