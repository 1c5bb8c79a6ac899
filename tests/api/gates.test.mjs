// A pipeline's beliefs after reading a verdict, and the meaning of a baseline.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { startDaemon, estimateRequest, adviseRequest, golden, freshDatabase, problem, sql } from './daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ database: freshDatabase('api_gates') }); });
after(() => daemon.stop());

const request = (extra = {}, config = {}) => {
  const whole = estimateRequest(extra);
  Object.assign(whole.config, config);
  return whole;
};
const store = async (body, path = '/v1/estimate') => {
  const response = await daemon.post(path, { ...body, store: true });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
};
const check = (body, query = '', headers = {}) => daemon.post(`/v1/checks${query}`, body, headers);
const judge = async (body) => {
  const response = await check(body);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
};
const put = (path, body, headers = {}) =>
  daemon.fetch(path, { method: 'PUT', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers } });
const remove = (path, headers = {}) => daemon.fetch(path, { method: 'DELETE', headers });
const get = async (path) => (await daemon.fetch(path)).json();
const codes = (list) => list.map(({ code }) => code);
const near = (actual, expected) => assert.ok(Math.abs(actual - expected) < 1e-9, `${actual} is not ${expected}`);

test('a smaller step that costs more per token fails, a larger one that costs less passes', async () => {
  const small = request({}, { per_device_batch_size: 2 });
  const large = request({}, { per_device_batch_size: 3 });
  const limits = { step_time_increase_frac: 0 };
  const down = await judge({ baseline: { run_id: (await store(large)).run_id }, candidate: small, limits });
  assert.ok(down.step_time_increase_frac < -0.2 && down.time_per_token_increase_frac > 0, 'the step is shorter, the token dearer');
  assert.deepEqual([down.verdict, codes(down.reasons)], ['fail', ['step_time']]);
  const up = await judge({ baseline: { run_id: (await store(small)).run_id }, candidate: large, limits });
  assert.deepEqual([up.verdict, codes(up.reasons)], ['pass', []]);
  assert.ok(codes(up.notes).includes('other_batch'));
  near(up.candidate.time_per_token_s, up.candidate.step_time_s / up.candidate.tokens_per_step);
  near(up.time_per_token_increase_frac, up.candidate.time_per_token_s / up.baseline.time_per_token_s - 1);
  near(up.tokens_per_s_per_chip_increase_frac, up.candidate.tokens_per_s_per_chip / up.baseline.tokens_per_s_per_chip - 1);
});

test('names that are too long are cut between their letters, in each report', async () => {
  const named = (name, layers) => ({ ...request(), model: { name, decoder_block: 'llama2', base_emb_dim: 1024, base_num_query_heads: 8, base_num_kv_heads: 8, head_dim: 128,
    base_mlp_dim: 4096, base_num_decoder_layers: layers, vocab_size: 32000, mlp_activations: ['silu', 'linear'] } });
  for (const [letter, most] of [['ü', 47], ['語', 31], ['😀', 23]])
    for (const before of ['', 'a', 'ab', 'abc']) {
      const [one, other] = ['1', '2'].map((digit) => before.slice(1) + digit + letter.repeat(most - 2));
      const body = { baseline: { run_id: (await store(named(one, 4))).run_id }, candidate: named(other, 8), limits: { must_fit: false } };
      const texts = [await (await check(body)).text()];
      for (const type of ['application/json', 'text/markdown', 'application/junit+xml'])
        texts.push(await (await check({ ...body, allow_unlike: ['model'] }, '', { Accept: type })).text());
      for (const text of texts) assert.ok(!/\ufffd|\\ufffd|[ü語😀]\?/u.test(text), text.slice(0, 1500));
      assert.match(texts[0], /is [bc]*2[ü語😀]+ \(.*parameters/u);
      assert.match(texts[1], /models differ: [bc]*2[ü語😀]+ instead of [bc]*1[ü語😀]+"/u);
    }
});

test('time and tokens per chip and dollars per token are limits of their own', async () => {
  const { run_id: id } = await store(request());
  const candidate = request({}, { remat_policy: 'full' });
  for (const [limit, code] of [['time_per_token_increase_frac', 'time_per_token'], ['tokens_per_s_per_chip_decrease_frac', 'tokens_per_s_per_chip'], ['usd_per_token_increase_frac', 'usd_per_token']]) {
    assert.deepEqual(codes((await judge({ baseline: { run_id: id }, candidate, limits: { [limit]: 0.01, must_fit: false } })).reasons), [code]);
    assert.deepEqual((await judge({ baseline: { run_id: id }, candidate, limits: { [limit]: 0.9, must_fit: false } })).reasons, []);
  }
  const free = request();
  free.cluster = { chip: 'v6e', topology: '2x4', overrides: {} };
  const verdict = await judge({ baseline: { run_id: id }, candidate: free, limits: { usd_per_token_increase_frac: 0.5 } });
  if (verdict.candidate.usd_per_billion_tokens === null) assert.deepEqual(codes(verdict.reasons), ['usd_per_token']);
});

test('another model or another sequence length is not compared unless told', async () => {
  const { run_id: id } = await store(request());
  const other = request({ model: 'llama3.1-70b' });
  const refused = await problem(assert, await check({ baseline: { run_id: id }, candidate: other, limits: { must_fit: false } }), 422, 'invalid-request');
  assert.deepEqual(refused.errors.map(({ code, pointer }) => [code, pointer]), [['unlike-model', '/candidate']]);
  assert.match(refused.errors[0].detail, /llama3\.1-70b.*llama3\.1-8b/);
  assert.match(refused.errors[0].hint, /allow_unlike/);
  const allowed = await judge({ baseline: { run_id: id }, candidate: other, limits: { must_fit: false }, allow_unlike: ['model'] });
  assert.ok(codes(allowed.notes).includes('unlike_model'));
  const shorter = request({}, { max_target_length: 4096, per_device_batch_size: 6 });
  const length = await problem(assert, await check({ baseline: { run_id: id }, candidate: shorter }), 422, 'invalid-request');
  assert.deepEqual(codes(length.errors), ['unlike-sequence-length']);
  assert.ok(codes((await judge({ baseline: { run_id: id }, candidate: shorter, allow_unlike: ['sequence_length'] })).notes).includes('unlike_sequence_length'));
  const wrong = await problem(assert, await check({ baseline: { run_id: id }, candidate: shorter, allow_unlike: ['weather', 3] }), 422, 'invalid-request');
  assert.deepEqual(wrong.errors.map(({ pointer }) => pointer), ['/allow_unlike/0', '/allow_unlike/1']);
  const layers = request({}, { base_num_decoder_layers: 16, override_model_config: true });
  assert.deepEqual(codes((await problem(assert, await check({ baseline: { run_id: id }, candidate: layers }), 422, 'invalid-request')).errors), ['unlike-model'], 'a model of one name and half the layers');
});

test('a model that drops tokens is not compared with one that takes all', async () => {
  const moe = (config) => ({ model: 'mixtral-8x7b', cluster: { chip: 'v6e', topology: '8x8' },
    config: { per_device_batch_size: 1, max_target_length: 4096, ici_fsdp_parallelism: -1, attention: 'flash', remat_policy: 'full', sparse_matmul: false, megablox: false, ...config } });
  const limits = { must_fit: false };
  const { run_id: dropless } = await store(moe({ capacity_factor: -1 }));
  const { errors } = await problem(assert, await check({ baseline: { run_id: dropless }, candidate: moe({ capacity_factor: 1 }), limits }), 422, 'invalid-request');
  assert.deepEqual(codes(errors), ['unlike-model']);
  assert.match(errors[0].detail, /candidate is mixtral-8x7b \([^)]*expert capacity 1\), the baseline mixtral-8x7b \([^)]*token\)/);
  const { run_id: dropping } = await store(moe({ capacity_factor: 1 }));
  await problem(assert, await check({ baseline: { run_id: dropping }, candidate: moe({ capacity_factor: 1.25 }), limits }), 422, 'invalid-request');
  assert.ok(codes((await judge({ baseline: { run_id: dropping }, candidate: moe({ capacity_factor: 1 }), limits })).notes).every((code) => code !== 'unlike_model'));
  const unread = moe({ capacity_factor: 1, sparse_matmul: true, megablox: true });
  assert.ok(!codes((await judge({ baseline: { run_id: dropless }, candidate: unread, limits })).notes).includes('unlike_model'), 'a factor that is not read drops nothing');
  const dense = (factor) => request({}, { sparse_matmul: false, megablox: false, capacity_factor: factor });
  const { run_id: plain } = await store(dense(-1));
  assert.ok(!codes((await judge({ baseline: { run_id: plain }, candidate: dense(1), limits })).notes).includes('unlike_model'), 'nor does a model without experts');
});

test('a model whose heads or windows are others is another model, one that is said in other words is not', async () => {
  const gemma = (config, length = 8192) => ({ model: 'gemma3-12b', cluster: { chip: 'v5p', topology: '4x4x4' },
    config: { per_device_batch_size: 2, max_target_length: length, ici_fsdp_parallelism: -1, attention: 'flash', remat_policy: 'full', ...config } });
  const limits = { time_per_token_increase_frac: 0, must_fit: false };
  const unlike = async (id, candidate) => (await problem(assert, await check({ baseline: { run_id: id }, candidate, limits }), 422, 'invalid-request')).errors;
  const { run_id: window } = await store(gemma({}));
  const [narrow] = await unlike(window, gemma({ override_model_config: true, sliding_window_size: 256 }));
  assert.equal(narrow.code, 'unlike-model');
  assert.match(narrow.detail, /gemma3-12b \([^)]*72\.7 GFLOP a token; sliding_window_size 256 instead of 1024\), the baseline gemma3-12b \([^)]*74\.09 GFLOP a token\)/);
  const llama = (config) => request({}, config);
  const { run_id: heads } = await store(llama({}));
  const [wide] = await unlike(heads, llama({ override_model_config: true, base_num_query_heads: 16, head_dim: 256, base_num_kv_heads: 4 }));
  assert.match(wide.detail, /base_num_query_heads 16 instead of 32/);
  assert.ok(codes((await judge({ baseline: { run_id: heads }, candidate: llama({ override_model_config: true, base_num_query_heads: 16, head_dim: 256, base_num_kv_heads: 4 }), limits, allow_unlike: ['model'] })).notes).includes('unlike_model'));
  const same = llama({ override_model_config: true, base_num_query_heads: 32, per_device_batch_size: 2, remat_policy: 'full', quantization: 'int8', gradient_accumulation_steps: 2 });
  assert.ok(!codes((await judge({ baseline: { run_id: heads }, candidate: same, limits })).notes).includes('unlike_model'));
  const hub = JSON.parse(golden('estimate-hf-config.json'));
  const { run_id: named } = await store({ ...hub, model: 'llama3.1-8b' });
  assert.equal((await judge({ baseline: { run_id: named }, candidate: hub, limits })).verdict, 'pass');
  const shorter = await judge({ baseline: { run_id: window }, candidate: gemma({}, 4096), limits, allow_unlike: ['sequence_length'] });
  assert.ok(!codes(shorter.notes).includes('unlike_model'), 'attention of another length is no other model');
  const other = { ...llama({}), flops_convention: 'full' };
  assert.equal((await judge({ baseline: { run_id: heads }, candidate: other, limits })).verdict, 'pass', 'nor are other conventions');
});

test('a limit inside the interval of the prediction and another machine are said', async () => {
  const { run_id: id } = await store(request());
  const inside = await judge({ baseline: { run_id: id }, candidate: request(), limits: { step_time_increase_frac: 0.03 } });
  assert.ok(codes(inside.notes).includes('limit_inside_interval'));
  const wide = await judge({ baseline: { run_id: id }, candidate: request(), limits: { step_time_increase_frac: 0.6 } });
  assert.deepEqual(codes(wide.notes), ['candidate_warnings'], 'of its flags alone');
  const machine = await judge({ baseline: { run_id: id }, candidate: request({ cluster: { chip: 'v6e', topology: '4x4' } }), limits: { step_time_increase_frac: 0.6 } });
  assert.ok(codes(machine.notes).includes('other_machine'));
});

test('a report says the same in Markdown and JUnit, whatever a model is called', async () => {
  const model = { name: '<b>|"&', decoder_block: 'llama2', base_emb_dim: 2048, base_num_query_heads: 16, base_num_kv_heads: 8, head_dim: 128, base_mlp_dim: 8192, base_num_decoder_layers: 16, vocab_size: 32000 };
  const { run_id: id } = await store(request());
  const body = { baseline: { run_id: id }, candidate: request({ model }), allow_unlike: ['model'], limits: { step_time_increase_frac: 0.03 } };
  const markdown = await (await check(body, '', { Accept: 'text/markdown' })).text();
  assert.match(markdown, /\| time per million tokens \| [\d.]+ s \|/);
  assert.match(markdown, /\\<b\\>\\\|/);
  const junit = await (await check(body, '', { Accept: 'application/junit+xml' })).text();
  assert.match(junit, /<system-out>[^<>]*&#60;b&#62;[^<>]*<\/system-out>/);
});

test('of the forms of a report the one that the client likes best is sent', async () => {
  const { run_id: id } = await store(request());
  for (const [accept, type] of [['text/markdown;q=0.9, application/json;q=0.1', 'text/markdown; charset=utf-8'], ['application/json;q=0.2, application/junit+xml', 'application/junit+xml'],
    ['*/*;q=0.5, text/markdown', 'text/markdown; charset=utf-8'], ['text/markdown, application/json', 'application/json'], ['*/*', 'application/json'], ['application/json;q=0, text/*', 'text/markdown; charset=utf-8']])
    assert.equal((await check({ baseline: { run_id: id }, candidate: request() }, '', { Accept: accept })).headers.get('content-type'), type, accept);
  await problem(assert, await check({ baseline: { run_id: id }, candidate: request() }, '', { Accept: 'application/json;q=0, text/html' }), 406, 'not-acceptable');
});

test('a check that has no verdict stores nothing, and one key stores its candidate once', async () => {
  const name = { project: 'kept', label: 'main' };
  const { run_id: id } = await store(request({ project: 'kept-base' }));
  const stored = async () => (await get('/v1/runs?project=kept')).runs.map((run) => run.run_id);
  const unlike = request({ ...name, model: 'llama3.1-70b', store: true });
  await problem(assert, await check({ baseline: { run_id: id }, candidate: unlike, limits: { must_fit: false } }), 422, 'invalid-request');
  await problem(assert, await check({ baseline: name, candidate: request({ ...name, store: true }) }), 404, 'not-found');
  assert.deepEqual(await stored(), []);
  const body = { baseline: { run_id: id }, candidate: request({ ...name, store: true }) };
  const twice = [await check(body, '', { 'Idempotency-Key': 'k' }), await check(body, '', { 'Idempotency-Key': 'k' })];
  const verdicts = await Promise.all(twice.map((response) => response.json()));
  assert.deepEqual(verdicts.map((one) => one.verdict), ['pass', 'pass']);
  assert.deepEqual(verdicts.map((one) => [one.candidate.run_id]), Array(2).fill(await stored()));
  await problem(assert, await check({ ...body, limits: { hbm_increase_frac: 1 } }, '', { 'Idempotency-Key': 'k' }), 422, 'invalid-request');
});

test('a failing candidate stays red however often it is tried', async () => {
  const name = { project: 'retry', label: 'main' };
  const good = await store(request(name));
  const slow = request({ ...name, store: true }, { remat_policy: 'full' });
  const body = { baseline: name, candidate: slow, limits: { step_time_increase_frac: 0.01, must_fit: false } };
  await problem(assert, await check(body), 404, 'not-found'); // what is only stored is no baseline
  assert.equal((await put('/v1/baselines/retry/main', { run_id: good.run_id })).status, 201);
  for (let i = 0; i < 3; i++) assert.equal((await judge(body)).verdict, 'fail');
  assert.equal((await remove('/v1/baselines/retry/main')).status, 204);
  await problem(assert, await check(body), 404, 'not-found');
  await problem(assert, await check({ ...body, candidate: { run_id: (await get('/v1/runs?project=retry')).runs[0].run_id } }), 404, 'not-found');
});

test('without a set baseline the last run that passed stands in, never the candidate itself', async () => {
  const name = { project: 'passed', label: 'main' };
  const first = await store(request(name));
  const limits = { step_time_increase_frac: 0.01, must_fit: false };
  const passing = await judge({ baseline: { run_id: first.run_id }, candidate: request({ ...name, store: true }), limits });
  assert.equal(passing.verdict, 'pass');
  const failing = await judge({ baseline: { run_id: first.run_id }, candidate: request({ ...name, store: true }, { remat_policy: 'full' }), limits });
  assert.equal(failing.verdict, 'fail');
  const next = await judge({ baseline: name, candidate: request(name), limits });
  assert.equal(next.baseline.run_id, passing.candidate.run_id);
  await problem(assert, await check({ baseline: name, candidate: { run_id: passing.candidate.run_id }, limits }), 404, 'not-found');
  await put('/v1/baselines/passed/main', { run_id: first.run_id });
  assert.equal((await judge({ baseline: name, candidate: { run_id: passing.candidate.run_id }, limits })).baseline.run_id, first.run_id);
});

test('what fails only because nobody knows yet is not held against a run', async () => {
  const name = { project: 'unknown', label: 'main' };
  const first = await store(request(name));
  const candidate = { run_id: (await store(request(name))).run_id };
  assert.equal((await judge({ baseline: { run_id: first.run_id }, candidate, limits: { must_compile: true } })).verdict, 'fail');
  assert.equal((await judge({ baseline: { run_id: first.run_id }, candidate, limits: { step_time_increase_frac: 0.01 } })).verdict, 'pass');
  assert.equal((await judge({ baseline: name, candidate: request(name), limits: { must_fit: true } })).baseline.run_id, candidate.run_id);
  // A price that is not known of the baseline: nobody can say that the candidate costs more.
  const unpriced = await store(request({ cluster: { chip: 'tpu7x', topology: '2x2x2' } }));
  const priced = { run_id: (await store(request({ ...name, cluster: { chip: 'tpu7x', topology: '2x2x2', price_usd_per_chip_hour: 5 } }))).run_id };
  const costs = await judge({ baseline: { run_id: unpriced.run_id }, candidate: priced, limits: { usd_per_token_increase_frac: 0.01 } });
  assert.deepEqual([costs.verdict, codes(costs.reasons)], ['fail', ['usd_per_token']]);
  assert.match(costs.reasons[0].detail, /not known of both sides/);
  assert.equal((await judge({ baseline: { run_id: unpriced.run_id }, candidate: priced, limits: { step_time_increase_frac: 0.01 } })).verdict, 'pass');
  assert.equal((await judge({ baseline: name, candidate: request(name), limits: { must_fit: false } })).baseline.run_id, priced.run_id);
  // Beside what is known to be too much, what is not known excuses nothing.
  const slow = request({ ...name, store: true }, { remat_policy: 'full' });
  await judge({ baseline: { run_id: first.run_id }, candidate: slow, limits: { must_compile: true, step_time_increase_frac: 0.01 } });
  const slow_id = (await get('/v1/runs?project=unknown&limit=1')).runs[0].run_id;
  assert.equal((await judge({ baseline: { run_id: first.run_id }, candidate: { run_id: slow_id }, limits: { hbm_increase_frac: 9 } })).verdict, 'pass');
  assert.equal((await judge({ baseline: name, candidate: request(name), limits: { must_fit: false } })).baseline.run_id, priced.run_id);
});

test('a run that was compared with itself only has proved nothing', async () => {
  const name = { project: 'itself', label: 'main' };
  const { run_id } = await store(request(name, { remat_policy: 'full' }));
  assert.equal((await judge({ baseline: { run_id }, candidate: { run_id } })).verdict, 'pass');
  await problem(assert, await check({ baseline: name, candidate: request(name) }), 404, 'not-found');
});

const asOfAnotherEngine = (run, slower, id) => {
  sql('api_gates', `INSERT INTO runs (id, kind, project, label, model, chip, topology, step_time_s, hbm_bytes_per_device, fits, engine_version, catalog_hash, request, response)
    SELECT '${id}', kind, project, label, model, chip, topology, step_time_s * ${slower}, hbm_bytes_per_device, fits, '0.9.0', 'oldhash', request,
    regexp_replace(replace(response::text, '"version":"', '"version":"0.'), '"step_time_s":([0-9.]+)', '"step_time_s":' || step_time_s * ${slower})::json FROM runs WHERE id = '${run.run_id}'`);
  return id;
};

test('a baseline of another engine is priced again, both numbers are shown, the new one counts', async () => {
  const run = await store(request({ project: 'engines', label: 'main' }));
  const old = asOfAnotherEngine(run, 2, '01a1fc9a-21ef-7bb3-a4fd-a2b739d7a0e1');
  const slow = request({}, { remat_policy: 'full' });
  const verdict = await judge({ baseline: { run_id: old }, candidate: slow, limits: { step_time_increase_frac: 0.01, must_fit: false } });
  assert.deepEqual([verdict.verdict, codes(verdict.reasons)], ['fail', ['step_time']], 'against the old number it would pass');
  assert.equal(verdict.baseline.reevaluated, true);
  near(verdict.baseline.step_time_s, run.step_time_s);
  near(verdict.baseline.as_stored.step_time_s, 2 * run.step_time_s);
  assert.notEqual(verdict.baseline.as_stored.engine.version, verdict.baseline.engine.version);
  assert.deepEqual(verdict.engine, verdict.baseline.engine);
  assert.ok(codes(verdict.notes).includes('reevaluated'));
  assert.equal(verdict.candidate.reevaluated, false);
  assert.equal(verdict.candidate.as_stored, null);
  const both = await judge({ baseline: { run_id: run.run_id }, candidate: { run_id: old }, limits: { step_time_increase_frac: 0 } });
  assert.deepEqual([both.verdict, both.candidate.reevaluated], ['pass', true]);
});

test('an engine of other sources is another engine: its answers are not today\'s', async () => {
  const run = await store(request({ project: 'builds', label: 'main' }));
  const { version } = run.engine;
  assert.match(version, /^\d+\.\d+\.\d+\+[0-9a-f]{12}$/);
  assert.equal((await get('/version')).engine.version, version);
  const old = '01a1fc9a-21ef-7bb3-a4fd-a2b739d7a0e4';
  const other = version.replace(/[0-9a-f]{12}$/, '000000000000');
  sql('api_gates', `INSERT INTO runs (id, kind, project, label, model, chip, topology, step_time_s, hbm_bytes_per_device, fits, engine_version, catalog_hash, request, response)
    SELECT '${old}', kind, project, label, model, chip, topology, step_time_s / 2, hbm_bytes_per_device, fits, '${other}', catalog_hash, request,
    regexp_replace(replace(response::text, '${version}', '${other}'), '"step_time_s":([0-9.]+)', '"step_time_s":' || step_time_s / 2)::json FROM runs WHERE id = '${run.run_id}'`);
  assert.equal((await put('/v1/baselines/builds/main', { run_id: old })).status, 201);
  const verdict = await judge({ baseline: { project: 'builds', label: 'main' }, candidate: request() });
  assert.deepEqual([verdict.verdict, verdict.baseline.reevaluated, verdict.baseline.as_stored.engine.version, verdict.engine.version], ['pass', true, other, version]);
  near(verdict.time_per_token_increase_frac, 0);
});

test('an advise run of another engine stands for its first plan, not for another search', async () => {
  const run = await store(adviseRequest({ project: 'engines' }), '/v1/advise');
  const old = asOfAnotherEngine(run, 1, '01a1fc9a-21ef-7bb3-a4fd-a2b739d7a0e2');
  const verdict = await judge({ baseline: { run_id: old }, candidate: { run_id: run.run_id }, limits: { step_time_increase_frac: 0 } });
  assert.equal(verdict.baseline.reevaluated, true);
  near(verdict.baseline.step_time_s, run.ranked[0].estimate.step_time_s);
  near(verdict.baseline.hbm_bytes_per_device, run.ranked[0].estimate.hbm_bytes_per_device);
});

test('a machine that was chosen is priced again with its what-if hardware', async () => {
  const overrides = { hbm_bytes_per_s_per_chip: 2e12, ici_link_bytes_per_s: 20e9 };
  const one = { chip: 'tpu7x', topology: '4x4x4' };
  const choices = [{ cluster: { chip: 'tpu7x', topology: 'any', chips: 64, slices: 1, overrides } },
    { cluster: undefined, clusters: [{ chip: 'v6e', topology: '2x4' }, { ...one, slices: 2 }, { ...one, overrides }] },
    { cluster: undefined, clusters: [{ accelerator: 'tpu7x-128', overrides }] }];
  const age = async (choice, id) => {
    const run = await store(adviseRequest({ project: 'engines', search: { top_k: 1 }, ...choice }), '/v1/advise');
    return [asOfAnotherEngine(run, 1, id), run];
  };
  for (const [index, choice] of choices.entries()) {
    const [old, run] = await age(choice, `01a1fc9a-21ef-7bb3-a4fd-a2b739d7a1e${index}`);
    const verdict = await judge({ baseline: { run_id: old }, candidate: { run_id: run.run_id } });
    assert.equal(verdict.baseline.reevaluated, true);
    near(verdict.baseline.step_time_s, run.ranked[0].estimate.step_time_s);
  }
  const [either] = await age({ cluster: undefined, clusters: [one, { ...one, overrides }] }, '01a1fc9a-21ef-7bb3-a4fd-a2b739d7a1ef');
  const refused = await problem(assert, await check({ baseline: { run_id: either }, candidate: { run_id: either } }), 422, 'invalid-request');
  assert.match(refused.detail, /several machines of the one that was chosen, with other overrides/);
  assert.match(refused.errors[0].hint, /use another run/);
});

test('a baseline whose request this engine does not take any more is said, not guessed', async () => {
  const run = await store(request());
  const id = '01a1fc9a-21ef-7bb3-a4fd-a2b739d7a0e3';
  sql('api_gates', `INSERT INTO runs (id, kind, step_time_s, fits, engine_version, catalog_hash, request, response)
    SELECT '${id}', kind, step_time_s, fits, '0.9.0', 'h', replace(request::text, 'llama3.1-8b', 'llama0.1-8b')::json, replace(response::text, '"catalog_hash":"', '"catalog_hash":"x')::json FROM runs WHERE id = '${run.run_id}'`);
  const refused = await problem(assert, await check({ baseline: { run_id: id }, candidate: request() }), 422, 'invalid-request');
  assert.match(refused.errors[0].pointer, /^\/baseline\/run_id/);
});

test('only a run that fits, of an estimate or advise, of this project can be a baseline', async () => {
  const kernel = await (await daemon.post('/v1/kernels/simulate', { ...JSON.parse(golden('simulate-matmul.json')), store: true })).json();
  const huge = await store(request({}, { per_device_batch_size: 64 }));
  const foreign = await store(request({ project: 'theirs' }));
  assert.equal(huge.fits, false);
  for (const [run, words] of [[kernel, /no step time/], [huge, /does not fit/], [foreign, /project 'theirs'/]]) {
    const refused = await problem(assert, await put('/v1/baselines/ours/main', { run_id: run.run_id }), 422, 'invalid-request');
    assert.equal(refused.errors[0].pointer, '/run_id');
    assert.match(refused.errors[0].detail, words);
  }
  await problem(assert, await daemon.fetch('/v1/baselines/ours/main'), 404, 'not-found');
  await problem(assert, await check({ baseline: { run_id: huge.run_id }, candidate: request() }), 422, 'invalid-request');
  assert.equal((await put('/v1/baselines/theirs/main', { run_id: foreign.run_id })).status, 201);
});

test('a label may be the name of a branch, a project one of an organisation', async () => {
  const run = await store(request());
  const path = '/v1/baselines/org%2Frepo/feature/x';
  assert.equal((await put(path, { run_id: run.run_id })).status, 201);
  for (const same of [path, '/v1/baselines/org%2Frepo/feature%2Fx', '/v1/baselines/org%2frepo/feature%2fx?history=false']) {
    const { project, label } = await get(same);
    assert.deepEqual([project, label], ['org/repo', 'feature/x'], same);
  }
  const name = { project: 'org/repo', label: 'feature/x' };
  assert.equal((await judge({ baseline: name, candidate: request(name) })).baseline.run_id, run.run_id);
  for (const odd of ['a%20b', 'x%2F', '%2F', 'history', 'ü', '100%', 'a//b']) {
    const there = `/v1/baselines/odd/${odd}`;
    assert.equal((await put(there, { run_id: run.run_id })).status, 201, odd);
    assert.equal((await remove(there)).status, 204, odd);
  }
  await problem(assert, await daemon.fetch('/v1/baselines/odd/'), 404, 'not-found');
  await problem(assert, await daemon.fetch('/v1/runs/a/b'), 404, 'not-found');
});

test('a name has no control characters', async () => {
  const odd = 'a\u0001b';
  const refused = await problem(assert, await daemon.post('/v1/estimate', request({ store: true, project: odd, label: odd, git_ref: 'a\u0085' })), 422, 'invalid-request');
  assert.deepEqual(refused.errors.map((error) => error.pointer).sort(), ['/git_ref', '/label', '/project']);
  const sweep = await problem(assert, await daemon.post('/v1/sweeps', { kind: 'estimate', requests: [request()], project: odd, label: odd }), 422, 'invalid-request');
  assert.deepEqual(sweep.errors.map((error) => error.pointer).sort(), ['/label', '/project']);
  const { run_id: id } = await store(request());
  for (const [path, pointer] of [['/v1/baselines/a%01b/main', '/path/project'], ['/v1/baselines/names/a%7fb', '/path/label']])
    assert.equal((await problem(assert, await put(path, { run_id: id }), 422, 'invalid-request')).errors[0].pointer, pointer);
});

test('a baseline that is put again, as by who had no answer, is not moved: its tag and its history stay', async () => {
  const path = '/v1/baselines/again/main';
  const [one, two] = [await store(request({ project: 'again' })), await store(request({ project: 'again' }))];
  const made = await put(path, { run_id: one.run_id });
  const again = await put(path, { run_id: one.run_id });
  assert.deepEqual([made.status, again.status, again.headers.get('etag')], [201, 200, made.headers.get('etag')]);
  assert.deepEqual(await again.json(), await made.json());
  const moved = await put(path, { run_id: two.run_id });
  assert.notEqual(moved.headers.get('etag'), made.headers.get('etag'));
  assert.equal((await put(path, { run_id: two.run_id })).status, 200);
  const { history } = await (await daemon.fetch(`${path}?history=true`)).json();
  assert.deepEqual(history.map((row) => row.run_id), [two.run_id, one.run_id]);
});

test('two who move a baseline at once: If-Match lets one of them win', async () => {
  const one = await store(request());
  const two = await store(request());
  const path = '/v1/baselines/match/main';
  await problem(assert, await put(path, { run_id: one.run_id }, { 'If-Match': '*' }), 412, 'precondition-failed');
  const made = await put(path, { run_id: one.run_id }, { 'If-None-Match': '*' });
  assert.equal(made.status, 201);
  const tag = made.headers.get('etag');
  await problem(assert, await put(path, { run_id: one.run_id }, { 'If-None-Match': '*' }), 412, 'precondition-failed');
  assert.equal((await daemon.fetch(path)).headers.get('etag'), tag);
  assert.equal((await daemon.fetch(path, { headers: { 'If-None-Match': tag } })).status, 304);
  const race = await Promise.all([one, two, one, two].map((run) => put(path, { run_id: run.run_id }, { 'If-Match': tag })));
  assert.deepEqual(race.map(({ status }) => status).sort(), [200, 412, 412, 412]);
  const after = race.find(({ status }) => status === 200).headers.get('etag');
  assert.notEqual(after, tag);
  await problem(assert, await remove(path, { 'If-Match': tag }), 412, 'precondition-failed');
  await problem(assert, await put(path, { run_id: one.run_id }, { 'If-None-Match': tag }), 400, 'bad-request');
  assert.equal((await remove(path, { 'If-Match': `"other", ${after}` })).status, 204);
  await problem(assert, await remove(path), 404, 'not-found');
});

test('the history says which run was the baseline when, also after it was deleted', async () => {
  const runs = [await store(request()), await store(request())];
  const path = '/v1/baselines/history/main';
  for (const run of runs) await put(path, { run_id: run.run_id });
  await remove(path);
  const past = await get(`${path}?history=true`);
  assert.equal(past.run_id, null);
  assert.deepEqual(past.history.map(({ run_id: id }) => id), [null, runs[1].run_id, runs[0].run_id]);
  assert.deepEqual(past.history.map(({ changed_at: at }) => at), past.history.map(({ changed_at: at }) => at).sort().reverse());
  await problem(assert, await daemon.fetch(path), 404, 'not-found');
  await problem(assert, await daemon.fetch('/v1/baselines/history/never?history=true'), 404, 'not-found');
  await problem(assert, await daemon.fetch(`${path}?history=perhaps`), 400, 'bad-request');
  assert.equal((await daemon.fetch(`/v1/runs/${runs[0].run_id}`, { method: 'DELETE' })).status, 204, 'a former baseline can be deleted');
});

test('baselines are listed by project and label, in pages', async () => {
  const run = await store(request());
  const labels = ['a', 'b/c', 'd', 'e', 'ü'];
  for (const label of labels) await put(`/v1/baselines/listed/${encodeURIComponent(label)}`, { run_id: run.run_id });
  const seen = [];
  let cursor = '';
  do {
    const page = await get(`/v1/baselines?project=listed&limit=2${cursor && `&cursor=${cursor}`}`);
    assert.ok(page.baselines.length <= 2);
    seen.push(...page.baselines.map(({ label }) => label));
    cursor = page.next_cursor;
  } while (cursor);
  assert.deepEqual(seen.sort(), labels.sort());
  assert.ok((await get('/v1/baselines')).baselines.length >= labels.length);
  assert.deepEqual((await get('/v1/baselines?project=nobody')).baselines, []);
  for (const label of ['l1', 'l2', 'l3']) sql('api_gates', `INSERT INTO baselines (project, label, run_id) VALUES (E'a\\x01b', '${label}', '${run.run_id}')`);
  const odd = [];
  for (let path = '/v1/baselines?limit=1', next; path && odd.length < 100; path = next && `/v1/baselines?limit=1&cursor=${next}`) {
    const page = await get(path);
    odd.push(...page.baselines.map((one) => `${one.project} ${one.label}`));
    next = page.next_cursor;
  }
  assert.equal(new Set(odd).size, odd.length, 'each once, whatever its name');
  assert.equal(odd.length, Number(sql('api_gates', 'SELECT count(*) FROM baselines')));
  for (const bad of ['cursor=xyz', 'cursor=f', 'limit=0', 'colour=red']) await problem(assert, await daemon.fetch(`/v1/baselines?${bad}`), 400, 'bad-request');
});
