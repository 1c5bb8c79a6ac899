// Recipes over HTTP: a script, a manifest or YAML as the body, or in JSON as the member `recipe`.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { startDaemon, freshDatabase } from './daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ database: freshDatabase('api_recipes') }); });
after(() => daemon.stop());

const train = 'python3 -m maxtext.trainers.pre_train.train maxtext/configs/base.yml';
const keys = 'model_name=llama3.1-8b per_device_batch_size=${BATCH:-2} max_target_length=4096 remat_policy=full steps=${STEPS:-30}';
const script = `#!/bin/bash
export LIBTPU_INIT_ARGS="--xla_tpu_scoped_vmem_limit_kib=65536"
${train} ${keys} run_name=$RUN_NAME
`;
const xpk = `xpk workload create --device-type=v6e-16 --num-slices=2 --command="${train} ${keys}"\n`;
const manifest = `apiVersion: v1
kind: Pod
spec:
  nodeSelector: {cloud.google.com/gke-tpu-accelerator: tpu-v6e-slice, cloud.google.com/gke-tpu-topology: 4x4}
  containers:
  - name: train
    command: [bash, -c, "${train} ${keys}"]
`;
const plain = {
  model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4' },
  config: { model_name: 'llama3.1-8b', per_device_batch_size: 2, max_target_length: 4096, remat_policy: 'full', steps: 30 },
};

const send = async (path, body, type) => {
  const response = await daemon.fetch(path, { method: 'POST', body, headers: { 'content-type': type } });
  return { status: response.status, json: JSON.parse(await response.text()) };
};
const json = (path, document) => send(path, JSON.stringify(document), 'application/json');

test('a script means what its request means, with the machine in the query', async () => {
  const wanted = await json('/v1/estimate', { ...plain, xla_flags: ['--xla_tpu_scoped_vmem_limit_kib=65536'] });
  assert.equal(wanted.status, 200);
  for (const type of ['text/x-shellscript', 'application/x-sh; charset=utf-8']) {
    const got = await send('/v1/estimate?chip=v6e&topology=4x4', script, type);
    assert.equal(got.status, 200, JSON.stringify(got.json));
    assert.equal(got.json.step_time_s, wanted.json.step_time_s, type);
    assert.equal(got.json.hbm_bytes_per_device, wanted.json.hbm_bytes_per_device);
  }
});

test('a manifest is application/yaml, and names its machine', async () => {
  const [wanted, got] = [await json('/v1/estimate', plain), await send('/v1/estimate', manifest, 'application/yaml')];
  assert.equal(got.status, 200, JSON.stringify(got.json));
  assert.equal(got.json.step_time_s, wanted.json.step_time_s);
});

test('the member recipe says the same, and what stands beside it counts more', async () => {
  const two = { ...plain, cluster: { chip: 'v6e', topology: '4x4', slices: 2 } };
  const wanted = await json('/v1/estimate', two);
  assert.equal((await json('/v1/estimate', { recipe: xpk })).json.step_time_s, wanted.json.step_time_s);
  const three = await json('/v1/estimate', { ...two, config: { ...plain.config, per_device_batch_size: 3 } });
  const beside = await json('/v1/estimate', { recipe: xpk, config: { per_device_batch_size: 3 } });
  assert.equal(beside.json.step_time_s, three.json.step_time_s);
  assert.notEqual(beside.json.step_time_s, wanted.json.step_time_s);
});

test('advise takes a recipe as its baseline', async () => {
  const got = await send('/v1/advise?top_k=1', xpk, 'text/x-shellscript');
  assert.equal(got.status, 200, JSON.stringify(got.json));
  const wanted = await json('/v1/estimate', { recipe: xpk });
  assert.equal(got.json.baseline.estimate.step_time_s, wanted.json.step_time_s);
  assert.ok(got.json.ranked[0].estimate.step_time_s <= got.json.baseline.estimate.step_time_s);
});

test('lint reads what MaxText would be given', async () => {
  const got = await send('/v1/lint', xpk.replace('remat_policy=full', 'remat_policy=ful'), 'text/x-shellscript');
  assert.equal(got.status, 200);
  assert.equal(got.json.valid, false);
  assert.ok(got.json.findings.some((finding) => finding.pointer === '/config/remat_policy'));
});

test('what a recipe leaves open is a 422 that names it', async () => {
  const got = await send('/v1/estimate?chip=v6e&topology=4x4', script.replace('${BATCH:-2}', '$BATCH'), 'text/x-shellscript');
  assert.equal(got.status, 422);
  assert.match(got.json.detail, /per_device_batch_size is \$BATCH/);
  const given = await send('/v1/estimate?chip=v6e&topology=4x4&per_device_batch_size=2', script.replace('${BATCH:-2}', '$BATCH'), 'text/x-shellscript');
  assert.equal(given.status, 200, JSON.stringify(given.json));
});

test('queries are for recipes, and their names are known', async () => {
  assert.equal((await send('/v1/estimate?chp=v6e', script, 'text/x-shellscript')).status, 400);
  assert.equal((await send('/v1/estimate?chip=v6e&chip=v5p', script, 'text/x-shellscript')).status, 400);
  assert.equal((await send('/v1/estimate?chip=v6e', JSON.stringify(plain), 'application/json')).status, 400);
  const wrong = await send('/v1/estimate', script, 'application/json');
  assert.equal(wrong.status, 400);
  assert.match(JSON.stringify(wrong.json), /text\/x-shellscript/);
  assert.equal((await send('/v1/kernels/simulate', script, 'text/x-shellscript')).status, 415);
});

test('a stored recipe is stored as the request that it means, and its files train that', async () => {
  const got = await send('/v1/estimate?store=true&project=recipes&label=nightly', xpk, 'text/x-shellscript');
  assert.equal(got.status, 200, JSON.stringify(got.json));
  const run = await (await daemon.fetch(`/v1/runs/${got.json.run_id}`)).json();
  assert.equal(run.request.model, 'llama3.1-8b');
  assert.deepEqual(run.request.cluster, { accelerator: 'v6e-16', slices: 2 });
  assert.equal(run.request.recipe, undefined);
  const file = await (await daemon.fetch(`/v1/runs/${got.json.run_id}/artifacts/maxtext.sh`)).text();
  assert.match(file, /model_name=llama3\.1-8b/);
  const again = await json('/v1/estimate', run.request);
  assert.equal(again.json.step_time_s, got.json.step_time_s);
});

test('a check takes a recipe as its candidate', async () => {
  const stored = await json('/v1/estimate', { recipe: xpk, store: true });
  const check = await json('/v1/checks', { baseline: { run_id: stored.json.run_id }, candidate: { recipe: xpk }, limits: { step_time_increase_frac: 0.03 } });
  assert.equal(check.status, 200, JSON.stringify(check.json));
  assert.equal(check.json.verdict, 'pass');
});
