// The files of an estimate run train the model that was estimated: MaxText without a model trains its default one.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parse } from 'yaml';
import { adviseRequest, startDaemon, estimateRequest, golden, freshDatabase, join, problem, sql } from './daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ database: freshDatabase('api_estimate_files') }); });
after(() => daemon.stop());

const store = async (request) => {
  const response = await daemon.post('/v1/estimate', { ...request, store: true });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
};
const file = async (run, name) => {
  const response = await daemon.fetch(`/v1/runs/${run.run_id}/artifacts/${name}`);
  const text = await response.text();
  assert.equal(response.status, 200, `${name}: ${text}`);
  return text;
};
const SCRIPTS = ['maxtext.sh', 'xpk.sh', 'jobset.yaml', 'verify.sh'];
const own = {
  name: 'mine', decoder_block: 'llama2', base_emb_dim: 4096, base_num_query_heads: 32, base_num_kv_heads: 8, head_dim: 128,
  base_mlp_dim: 14336, base_num_decoder_layers: 32, vocab_size: 128256, mlp_activations: ['silu', 'linear'],
};

test('a model of the catalog is named in every file that starts something', async () => {
  const run = await store(estimateRequest());
  assert.equal(parse(await file(run, 'maxtext.yaml')).model_name, 'llama3.1-8b');
  for (const name of SCRIPTS) assert.match(await file(run, name), /\bmodel_name=llama3\.1-8b\b/, name);
});

test('a model of one\'s own is written out, in the values it was given with', async () => {
  const run = await store(estimateRequest({ model: own }));
  const config = parse(await file(run, 'maxtext.yaml'));
  for (const [key, value] of Object.entries(own)) if (key !== 'name') assert.deepEqual(config[key], value, key);
  assert.equal(config.model_name, undefined);
  for (const name of SCRIPTS) assert.match(await file(run, name), /\bbase_num_decoder_layers=32\b/, name);
});

test('a Hugging Face configuration becomes MaxText\'s keys', async () => {
  const run = await store(JSON.parse(golden('estimate-hf-config.json')));
  const config = parse(await file(run, 'maxtext.yaml'));
  for (const key of ['decoder_block', 'base_emb_dim', 'base_num_decoder_layers', 'vocab_size']) assert.ok(config[key], key);
});

test('architecture keys of the configuration stand over the model, and MaxText is told to take them', async () => {
  const request = estimateRequest();
  request.config.base_num_decoder_layers = 4;
  const config = parse(await file(await store(request), 'maxtext.yaml'));
  assert.deepEqual([config.model_name, config.base_num_decoder_layers, config.override_model_config], ['llama3.1-8b', 4, true]);
  assert.equal(Object.keys(config).filter((key) => key === 'base_num_decoder_layers').length, 1);
});

test('the model that was estimated counts, not another name in the configuration', async () => {
  const request = estimateRequest();
  request.config.model_name = 'llama3.1-70b';
  assert.equal(parse(await file(await store(request), 'maxtext.yaml')).model_name, 'llama3.1-8b');
});

test('what trains is what was estimated: the file\'s keys, estimated again, give the same step', async () => {
  for (const model of ['llama3.1-8b', own]) {
    const run = await store(estimateRequest({ model }));
    const { base_config: ignored, model_name: name, ...config } = parse(await file(run, 'maxtext.yaml'));
    const again = await store(estimateRequest({ model: name ?? Object.fromEntries(Object.keys(own).filter((key) => key in config).map((key) => [key, config[key]])), config }));
    assert.deepEqual([again.step_time_s, again.hbm_bytes_per_device, again.model.params_total], [run.step_time_s, run.hbm_bytes_per_device, run.model.params_total]);
  }
});

test('a shell hands MaxText every value as it is, whatever its letters are', async () => {
  const values = {
    trainable_parameters_mask: ['.*query.*', 'a, b', "it's", '[c]', 'd: e', '#f', '', '"g"', '$(h)', '*i', 'null', '7'], adamw_mask: ['bias', 'scale'],
    logical_axis_rules: [['activation_batch', ['data', 'fsdp']]], mesh_axes: ['data', 'fsdp'], hf_path: 'gs://bucket/a b', dataset_path: '', vocab_size: 128256,
    grain_train_files: '/data/*.array_record', metrics_file: "it's \"so\"", tokenizer_path: '1234', override_model_config: true,
  };
  const run = await store(estimateRequest({ config: { ...estimateRequest().config, ...values } }));
  const script = `python3() { printf '%s\\0' "$@"; }\n${await file(run, 'maxtext.sh')}`;
  const { stdout, status } = spawnSync('bash', ['-c', script], { env: { ...process.env, RUN_NAME: 'r', BASE_OUTPUT_DIRECTORY: 'gs://b' }, encoding: 'utf8' });
  assert.equal(status, 0);
  const words = new Map(stdout.split('\0').filter((word) => word.includes('=')).map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]));
  for (const [key, value] of Object.entries(values)) assert.deepEqual(parse(words.get(key), { version: '1.1' }), value, `${key}=${words.get(key)}`);
  assert.equal(words.get('adamw_mask'), '[bias,scale]', 'plain words stay so');
  const again = await daemon.fetch('/v1/lint', { method: 'POST', headers: { 'Content-Type': 'text/x-shellscript' }, body: await file(run, 'maxtext.sh') });
  const { findings } = await again.json();
  for (const key of Object.keys(values)) assert.ok(!findings.some(({ severity, pointer }) => severity === 'error' && pointer === `/config/${key}`), JSON.stringify(findings));
});

test('a run whose model is no longer known gives no script that trains another', async () => {
  const run = await store(estimateRequest());
  const id = '01a1fc9a-21ef-7bb3-a4fd-a2b739d7a0f1';
  sql('api_estimate_files', `INSERT INTO runs (id, kind, engine_version, catalog_hash, request, response)
    SELECT '${id}', kind, engine_version, catalog_hash, replace(request::text, 'llama3.1-8b', 'llama0.1-8b')::json, response FROM runs WHERE id = '${run.run_id}'`);
  const response = await daemon.fetch(`/v1/runs/${id}/artifacts/maxtext.sh`);
  assert.equal(response.status, 422);
  assert.match((await response.json()).detail, /model/);
});

test('an answer that is not stored gives the files that its run gives, without a database too', async () => {
  const bare = await startDaemon();
  const kinds = [['/v1/estimate', estimateRequest()], ['/v1/estimate', estimateRequest({ model: own })], ['/v1/advise', adviseRequest()]];
  for (const [path, request] of kinds) {
    const answer = await (await daemon.post(path, { ...request, store: true })).json();
    for (const name of [...SCRIPTS, 'maxtext.yml', 'libtpu.env', 'gcluster.sh', 'report.md', 'trace.json', 'ranked.csv']) {
      for (const rank of path === '/v1/advise' ? [1, 2] : [1]) {
        const made = await bare.post(`/v1/artifacts/${name}?rank=${rank}`, answer);
        assert.equal(made.headers.get('content-disposition'), `attachment; filename="${name}"`);
        const stored = await daemon.fetch(`/v1/runs/${answer.run_id}/artifacts/${name}?rank=${rank}`);
        assert.equal(await made.text(), await stored.text(), `${path} ${name} ${rank}`);
      }
    }
  }
  await bare.stop();
});

test('what is no answer, no plan or no file is told', async () => {
  const answer = await (await daemon.post('/v1/advise', adviseRequest())).json();
  await problem(assert, await daemon.post('/v1/artifacts/maxtext.sh', adviseRequest()), 422, 'invalid-request');
  await problem(assert, await daemon.post('/v1/artifacts/maxtext.sh', '{'), 400, 'malformed-document');
  await problem(assert, await daemon.post('/v1/artifacts/wings.txt', answer), 404, 'not-found');
  await problem(assert, await daemon.post('/v1/artifacts/maxtext.sh?rank=100', answer), 404, 'not-found');
  await problem(assert, await daemon.post('/v1/artifacts/maxtext.sh?rank=0', answer), 400, 'bad-request');
  await problem(assert, await daemon.post('/v1/artifacts/ranked.csv', answer, { Accept: 'application/json' }), 406, 'not-acceptable');
  await problem(assert, await daemon.fetch('/v1/artifacts/maxtext.sh'), 405, 'method-not-allowed');
});

// What a shell gets of a text that goes through envsubst, where it names variables, and then through Kubernetes.
const substituted = (text, variables) => text.replaceAll(/\$(?:\{(\w+)\}|(\w+))/g, (whole, braced, plain) => variables[braced ?? plain] ?? whole);
const expanded = (text, variables) => text.replaceAll(/\$\$|\$\((\w+)\)/g, (whole, name) => (name ? variables[name] ?? whole : '$'));

test('a value that looks like a variable reaches the training as it is', async () => {
  const [path, flag] = ['gs://b/$(RUN_NAME)/$$(RUN_NAME)/$$$/${STEPS}/$STEPS\'s $', '--xla_dump_to=/tmp/$(RUN_NAME)/${STEPS}'];
  const request = estimateRequest({ xla_flags: [flag] });
  request.config.hf_path = path;
  const run = await store(request);
  const variables = { RUN_NAME: 'r', STEPS: '7', WORKLOAD: 'w', DOCKER_IMAGE: 'i', BASE_OUTPUT_DIRECTORY: 'gs://o', DATASET_TYPE: 'synthetic', EXTRA_ARGS: '' };
  const folder = mkdtempSync(join(tmpdir(), 'variables-'));
  const says = (name, text) => writeFileSync(join(folder, name), `#!/bin/bash\n${text}\n`, { mode: 0o755 });
  says('python3', 'printf "%s\\n" "$LIBTPU_INIT_ARGS" "$@"');
  for (const name of ['xpk', 'gcluster']) says(name, 'while [ "$1" != --command ]; do shift; done; printf "%s" "$2"');
  const bash = (input, env = variables) => {
    const { status, stdout, stderr } = spawnSync('bash', ['-s'], { input, encoding: 'utf8', env: { PATH: `${folder}:${process.env.PATH}`, ...env } });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  const jobset = async () => parse(substituted(await file(run, 'jobset.yaml'), variables)).spec.replicatedJobs[0].template.spec.template.spec.containers[0].args[0];
  const submitted = async (name) => bash(await file(run, name), { ...variables, CLUSTER: 'c', CLUSTER_NAME: 'c', PROJECT_ID: 'p', ZONE: 'z', WORKLOAD_NAME: 'w', WORKLOAD_IMAGE: 'i' });
  for (const [name, script] of [['maxtext.sh', await file(run, 'maxtext.sh')], ['jobset.yaml', expanded(await jobset(), variables)],
    ['xpk.sh', expanded(await submitted('xpk.sh'), variables)], ['gcluster.sh', expanded(await submitted('gcluster.sh'), variables)]]) {
    const words = bash(script).split('\n');
    assert.ok(words[0].split(' ').includes(flag), `${name}: ${words[0]}`);
    assert.ok(words.includes(`hf_path=${JSON.stringify(path)}`), `${name}: ${words.find((word) => word.startsWith('hf_path='))}`);
  }
});
