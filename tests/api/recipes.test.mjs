// Recipes over HTTP: a script, a manifest or YAML as the body, or in JSON as the member `recipe`.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDaemon, freshDatabase, run as program } from './daemon.mjs';

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
  for (const type of ['application/json', 'application/json;charset=utf-8', 'application/json; charset=utf-8', 'application/json ; charset=utf-8']) {
    assert.equal((await send('/v1/estimate?chip=v6e', JSON.stringify(plain), type)).status, 400, type);
    const wrong = await send('/v1/estimate', script, type);
    assert.equal(wrong.status, 400);
    assert.match(JSON.stringify(wrong.json), /text\/x-shellscript/, type);
  }
  assert.equal((await send('/v1/kernels/simulate', script, 'text/x-shellscript')).status, 415);
});

test('flags and tags in the query are those of the request', async () => {
  const flags = '--xla_tpu_scoped_vmem_limit_kib=65536 --xla_tpu_enable_async_collective_fusion=true';
  const bare = script.replace(/export.*\n/, '');
  const query = `chip=v6e&topology=4x4&store=true&project=recipes&tags=nightly,llama&xla_flags=${encodeURIComponent(flags)}`;
  const got = await send(`/v1/estimate?${query}`, bare, 'text/x-shellscript');
  assert.equal(got.status, 200, JSON.stringify(got.json));
  const run = await (await daemon.fetch(`/v1/runs/${got.json.run_id}`)).json();
  assert.deepEqual([...run.tags].sort(), ['llama', 'nightly']);
  assert.deepEqual(run.request.xla_flags, flags.split(' '));
  assert.equal(got.json.step_time_s, (await json('/v1/estimate', { ...plain, xla_flags: flags.split(' ') })).json.step_time_s);
});

const phi4 = {
  architectures: ['Phi3ForCausalLM'], model_type: 'phi3', hidden_size: 5120, num_hidden_layers: 40, num_attention_heads: 40,
  num_key_value_heads: 10, intermediate_size: 17920, vocab_size: 100352, torch_dtype: 'bfloat16',
};

test('a Hugging Face configuration is read as it lies beside its weights', async () => {
  const config = { per_device_batch_size: 2, remat_policy: 'full' };
  const wanted = await json('/v1/estimate', { ...plain, model: { hf_config: phi4 }, config });
  const pasted = await json('/v1/estimate', { cluster: plain.cluster, config, recipe: JSON.stringify(phi4) });
  assert.equal(pasted.status, 200, JSON.stringify(pasted.json));
  assert.equal(pasted.json.step_time_s, wanted.json.step_time_s);
  const alone = await json('/v1/estimate', phi4);
  assert.equal(alone.status, 422);
  assert.deepEqual(alone.json.errors.map((error) => error.pointer), ['/cluster']);
});

test('the command takes several files, answers in their order, and names the file where one is wrong', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'recipes-'));
  const file = (name, text) => { writeFileSync(join(folder, name), text); return join(folder, name); };
  try {
    const files = [file('run.sh', xpk), file('pod.yaml', manifest), file('config.json', JSON.stringify(phi4))];
    const beside = ['--chip', 'v6e', '--topology', '4x4', '--per_device_batch_size', '1'];
    const several = await program(['estimate', ...files, ...beside]);
    assert.equal(several.status, 0, several.err);
    const alone = [];
    for (const one of files) alone.push(JSON.parse((await program(['estimate', one, ...beside])).out));
    assert.deepEqual(JSON.parse(several.out), alone);
    assert.deepEqual(alone.map((answer) => answer.model.name), ['llama3.1-8b', 'llama3.1-8b', 'phi3']);
    const wrong = await program(['estimate', files[0], file('bad.sh', 'echo hello\n'), join(folder, 'none.sh'), ...beside]);
    assert.equal(wrong.status, 2);
    assert.equal(wrong.out, '');
    const pointers = JSON.parse(wrong.err).errors.map((error) => error.pointer);
    assert.equal(pointers.length, 2);
    assert.match(pointers[0], /bad\.sh\/recipe$/);
    assert.match(pointers[1], /none\.sh$/);
  } finally {
    rmSync(folder, { recursive: true });
  }
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

test('options alone are a request, and a key that is none names the one that is meant', async () => {
  const job = ['--model', 'llama3.1-8b', '--chip', 'v6e', '--topology', '4x4'];
  const advised = await program(['advise', ...job, '--seq_len', '8192', '--global_batch_sequences', '64', '--top_k', '2']);
  assert.equal(advised.status, 0, advised.err);
  const { json: wanted } = await json('/v1/advise', {
    model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4' }, workload: { seq_len: 8192, global_batch_sequences: 64 },
    search: { top_k: 2 },
  });
  assert.deepEqual(JSON.parse(advised.out).ranked, wanted.ranked);
  const estimated = await program(['estimate', ...job, '--per_device_batch_size', '1', '--max_target_length', '8192']);
  assert.equal(estimated.status, 0, estimated.err);
  const misspelt = await program(['estimate', ...job, '--per_device_batch_sze', '1']);
  assert.equal(misspelt.status, 2);
  assert.match(JSON.parse(misspelt.err).errors[0].hint, /per_device_batch_size/);
  assert.equal((await program(['estimate'])).status, 2);
});
