#!/bin/bash
# run.sh: what README.md tells users to type, typed: the request of its exchange and the step for CI, against a daemon
# with a database of its own. The lines are taken from README.md, so that they cannot rot.
set -u
cd "$(dirname "$0")/../.." || exit 1
program=$(realpath "${PROGRAM:-build/tpu-advisor}")

if [ "${1:-}" != with-cluster ]; then
    scratch=$(mktemp -d /tmp/tpu-advisor-readme.XXXXXX)
    DEV_CLUSTER_DIR=$scratch/cluster
    export DEV_CLUSTER_DIR scratch
    chmod 755 "$scratch"
    env -u TPU_ADVISOR_DATABASE_URL sql/with-cluster.sh "$0" with-cluster
    status=$?
    sql/dev-cluster.sh destroy
    rm -rf "$scratch"
    exit $status
fi

checks=0
failed=0
passes() {
    checks=$((checks + 1))
    if "${@:2}" > "$scratch/out" 2>&1; then return; fi
    failed=$((failed + 1))
    echo "FAILED: $1"
    head -c 600 "$scratch/out"
    echo
}
fails() { # the command must fail and say PATTERN
    checks=$((checks + 1))
    if ! "${@:3}" > "$scratch/out" 2>&1 && grep -q "$2" "$scratch/out"; then return; fi
    failed=$((failed + 1))
    echo "FAILED: $1"
    head -c 600 "$scratch/out"
    echo
}
# The shell lines of a part of README.md.
lines_of() { sed -n "/^<!-- begin: $1 -->$/,/^<!-- end: $1 -->$/p" README.md | sed -n '/^```sh$/,/^```$/p' | grep -v '^```'; }

"$program" serve --listen 127.0.0.1:0 > "$scratch/daemon.log" 2>&1 &
daemon=$!
trap 'kill $daemon; wait $daemon' EXIT
for _ in $(seq 300); do
    TPU_ADVISOR_URL=http://$(sed -n 's/.*"msg":"listening","address":"\([^"]*\)".*/\1/p' "$scratch/daemon.log")
    curl -sf "$TPU_ADVISOR_URL/readyz?require=database" > /dev/null && break
    kill -0 $daemon 2> /dev/null || break
    sleep 0.1
done
if ! curl -sf "$TPU_ADVISOR_URL/readyz?require=database" > /dev/null; then
    echo "the daemon is not ready:"
    tail -5 "$scratch/daemon.log"
    exit 1
fi

# --- the exchange ---------------------------------------------------------------------------------------------
lines_of exchange | sed "s,http://127.0.0.1:8080,$TPU_ADVISOR_URL," > "$scratch/exchange.sh"
shown=$(sed -n 's/.*"step_time_s": \([0-9.]*\).*/\1/p' README.md | head -1)
passes "the README has an exchange" test -s "$scratch/exchange.sh" -a -n "$shown"
passes "its request is answered" bash -eu "$scratch/exchange.sh"
mv "$scratch/out" "$scratch/answer"
passes "the best plan's step time is the one shown, $shown" node -e '
    const best = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).ranked[0].estimate.step_time_s;
    if (Number(best.toPrecision(4)) !== Number(process.argv[2])) throw new Error(`it is ${best}`);' "$scratch/answer" "$shown"

# --- the step for CI ------------------------------------------------------------------------------------------
request() { # PER_DEVICE_BATCH STORE
    echo '{"model": "llama3.1-8b", "cluster": {"chip": "v6e", "topology": "4x4"}, "store": '"$2"',
        "config": {"per_device_batch_size": '"$1"', "max_target_length": 8192, "ici_fsdp_parallelism": 16,
                   "remat_policy": "full"}}'
}
export TPU_ADVISOR_URL TPU_ADVISOR_TOKEN=unused
BASELINE_RUN=$(request 2 true | curl -sS -H 'Content-Type: application/json' -d @- "$TPU_ADVISOR_URL/v1/estimate" |
    sed -n 's/.*"run_id": *"\([^"]*\)".*/\1/p')
passes "a stored answer has a run id" test -n "$BASELINE_RUN"
set_baseline() { curl -sS --fail -X PUT -H 'Content-Type: application/json' -d "{\"run_id\": \"$1\"}" "$TPU_ADVISOR_URL/v1/baselines/alpha/main"; }
passes "it becomes the baseline" set_baseline "$BASELINE_RUN"
lines_of ci > "$scratch/ci.sh"
passes "the README has a step for CI" grep -q '^tpu-advisor check ' "$scratch/ci.sh"
mkdir -p "$scratch/bin" "$scratch/train"
ln -s "$(realpath "${PROGRAM:-build/tpu-advisor}")" "$scratch/bin/tpu-advisor"
PATH=$scratch/bin:$PATH
cd "$scratch" || exit 1
request 2 false > train/one.json
passes "the step passes when nothing changed" bash -eu ci.sh
passes "and says so, in three forms" grep -q '1 of 1 candidates pass' report.md
passes "of which JUnit" grep -q '<testsuite name="train/one.json" tests=' report.xml
passes "and JSON" grep -q '"verdict":"pass"' report.json
request 1 false > train/two.json
passes "the step fails with 1 when a configuration got slower" bash -c 'bash -eu ci.sh; [ $? = 1 ]'
passes "and says which" grep -q '1 of 2 candidates pass' report.md
request 64 false > train/two.json
passes "the step fails with 1 when a configuration no longer fits" bash -c 'bash -eu ci.sh; [ $? = 1 ]'
request 2.3 false > train/two.json
fails "the step fails when a configuration is illegal, and says where" 'per_device_batch_size' bash -eu ci.sh
rm train/two.json
TPU_ADVISOR_URL=http://127.0.0.1:1 fails "the step fails when nobody is there" 'nobody answers' bash -eu ci.sh
cd - > /dev/null || exit 1
for example in docker/ci-examples/*.yml; do
    passes "$example runs the same lines" node -e '
        const strip = (text) => text.split("\n").map((line) => line.trim()).filter((line) => line).join("\n");
        const [example, step] = process.argv.slice(1).map((path) => strip(require("fs").readFileSync(path, "utf8")));
        if (!step || !example.includes(step)) throw new Error("they differ");' "$example" "$scratch/ci.sh"
done

# --- from a recipe to a better one ----------------------------------------------------------------------------
mkdir -p "$scratch/recipe"
lines_of recipe > "$scratch/recipe/commands.sh"
cd "$scratch/recipe" || exit 1
cat > run_recipe.sh << 'END'
#!/bin/bash
export WORKLOAD_NAME="${WORKLOAD_NAME:-$(printf "%.11s" "${USER//_/-}")-llama3-8b-$(date +%H%M)}"
XLA_FLAGS=" \
  --xla_tpu_scoped_vmem_limit_kib=98304 "
MAXTEXT_ARGS="\
model_name=llama3.1-8b per_device_batch_size=3 max_target_length=8192 remat_policy=full \
ici_fsdp_parallelism=-1 attention=flash dataset_type=synthetic enable_checkpointing=False \
steps=${STEPS:-30} base_output_directory=${BASE_OUTPUT_DIR} run_name=${WORKLOAD_NAME}"
"${GCLUSTER_BIN:-gcluster}" job submit --compute-type=ct6e-standard-4t --topology=4x4 --num-slices=1 \
  --name="${WORKLOAD_NAME}" --command="set -e && export LIBTPU_INIT_ARGS='${XLA_FLAGS}' && \
if [ -f MaxText/train.py ]; then python3 MaxText/train.py MaxText/configs/base.yml ${MAXTEXT_ARGS}; \
else python3 -m maxtext.trainers.pre_train.train maxtext/configs/base.yml ${MAXTEXT_ARGS}; fi"
END
passes "the README goes from a recipe to a better one in five commands" test "$(wc -l < commands.sh)" = 5
passes "four of them run" bash -eu -c "$(head -4 commands.sh)"
passes "MaxText accepts the fifth's plan, where it is installed" bash -c "$(tail -1 commands.sh); [ \$? = 0 -o \$? = 3 ]"
passes "the better plan is better, and the script starts it" node -e '
    const read = (name) => JSON.parse(require("fs").readFileSync(name, "utf8"));
    const [before, after] = [read("before.json"), read("after.json")];
    const script = require("fs").readFileSync("run_better.sh", "utf8");
    if (after.baseline.estimate.step_time_s !== before.step_time_s) throw new Error("another baseline");
    if (!(after.ranked[0].estimate.step_time_s < before.step_time_s)) throw new Error("no better plan");
    if (!script.includes("model_name=llama3.1-8b") || !script.includes("ct6e-standard-4t")) throw new Error(script);'
cd - > /dev/null || exit 1

if [ $failed -eq 0 ]; then echo "readme: $checks checks passed"; else echo "readme: $failed of $checks checks FAILED"; fi
[ $failed -eq 0 ]
