#!/bin/bash
# readme_paths.sh: every file that engine/README.md names is there.
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0
# shellcheck disable=SC2016  # backticks of Markdown
while IFS= read -r path; do
    [ -e "engine/$path" ] || [ -e "$path" ] || [ -e "engine/catalog/data/$path" ] || [ -e "tests/lint/$path" ] && continue
    echo "lint: engine/README.md names $path, which is not there"
    failed=1
done < <(grep -oE '`[a-z0-9_/]+(\.(c|h|json|sh|yaml)|/)`' engine/README.md | tr -d '`' | sort -u)
[ $failed -eq 0 ] || exit 1
echo 'lint: the files that engine/README.md names are there'
