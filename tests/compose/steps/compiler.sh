# shellcheck shell=bash
# compiler.sh: builds docker/verifier.Dockerfile for real (3 GB from PyPI) and lets it prove a plan in the stack. Its Python
# image is stood in for by this machine's Python. Sourced by run.sh.
: "${work:?}"
version=$(sed -n 's/.*"python": *"\([^"]*\)".*/\1/p' server/verifier/versions.json)
python=
for found in "python$version" "$HOME"/.pyenv/versions/"$version".*/bin/python; do
    prefix=$("$found" -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.base_prefix)' 2> /dev/null)
    [ "${prefix% *}" != "$version" ] || python=${prefix#* }
done
if [ -z "$python" ]; then
    step "compiler: NOT RUN: this machine has no Python $version"
    return
fi
mkdir -p "$work/python/python"
cp tests/compose/python/Dockerfile "$work/python/"
parts=("$python/bin/python$version" "$python/lib/python$version" "$python"/lib/libpython"$version".so*)
[ -e "${parts[2]}" ] || unset 'parts[2]' # linked in
tar -C "$python" --exclude=test --exclude=__pycache__ --exclude='*.a' --exclude=site-packages -c "${parts[@]#"$python/"}" |
    tar -C "$work/python/python" -x
build --build-arg VERSION="$version" -t "python:$version-slim-bookworm" "$work/python"
export TPU_ADVISOR_VERIFIER_IMAGE=tpu-advisor-verifier:real
build --build-arg ADVISOR="$TPU_ADVISOR_IMAGE" -t "$TPU_ADVISOR_VERIFIER_IMAGE" -f docker/verifier.Dockerfile .
step "verifier image, $(docker image inspect -f '{{.Size}}' "$TPU_ADVISOR_VERIFIER_IMAGE" | awk '{print int($1 / 1e6)}') MB"

TPU_ADVISOR_PORT=$(free_ports 1)
export TPU_ADVISOR_PORT
url=http://127.0.0.1:$TPU_ADVISOR_PORT
quietly compose --profile verifier up -d --no-build
until_healthy
run=$(ask -H 'Content-Type: application/json' "$url/v1/advise" -d '{"model": "llama3.1-8b", "cluster": {"chip": "v6e",
    "topology": "2x4"}, "workload": {"seq_len": 8192, "global_batch_sequences": 16}, "store": true}' | member run_id)
asked=$(ask -H 'Content-Type: application/json' "$url/v1/runs/$run/verifications" -d '{"rank": 1}') || fail "verification: $asked"
verification=$url/v1/verifications/$(member verification_id <<< "$asked")
proved() { [[ $(ask "$verification" | member state) =~ ^(done|cancelled)$ ]]; }
until_true 1200 "the plan is proved" proved
word=$(ask "$verification")
[ "$(member result.verdict <<< "$word")" = compiles ] || fail "the compiler's word: $word"
[ "$(member result.versions.libtpu <<< "$word")" = "$(member libtpu < server/verifier/versions.json)" ] || fail "another libtpu: $word"
step "the real compiler takes the best plan of run $run: $(member result.compiled_hbm_bytes_per_device <<< "$word") bytes per device"
unset TPU_ADVISOR_VERIFIER_IMAGE
