import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import { startDaemon, estimateRequest, adviseRequest, golden, problem, raw, run } from './daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon.stop());

const MIB = 1024 * 1024;

test('estimate answers with the contract\'s members, and the parts add up to the step', async () => {
  const response = await daemon.post('/v1/estimate', estimateRequest());
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const answer = JSON.parse(text);
  for (const name of ['step_time_s', 'step_time_low_s', 'step_time_high_s', 'tokens_per_s_per_chip', 'tflops_per_s_per_chip', 'mfu_frac',
    'hfu_frac', 'global_batch_sequences', 'tokens_per_step', 'fits', 'fit_verdict', 'hbm_bytes_per_device', 'hbm_limit_bytes_per_device',
    'hbm_parts', 'time_parts', 'bound', 'mesh', 'kernels', 'confidence', 'advice', 'warnings', 'engine'])
    assert.ok(name in answer, name);
  assert.ok(answer.step_time_low_s <= answer.step_time_s && answer.step_time_s <= answer.step_time_high_s);
  const exposed = answer.time_parts.reduce((sum, part) => sum + part.exposed_seconds, 0);
  assert.ok(Math.abs(exposed / answer.step_time_s - 1) < 1e-6, `${exposed} s exposed of ${answer.step_time_s} s`);
  assert.ok(!('stored' in answer), 'nothing was asked to be stored');
});

test('the same request gives the same bytes, over HTTP and on the command line', async () => {
  const body = JSON.stringify(estimateRequest());
  const [first, second] = await Promise.all([0, 1].map(async () => (await daemon.post('/v1/estimate', body)).text()));
  assert.equal(first, second);
  assert.equal((await run(['estimate', '-'], { input: body })).out.trim(), first.trim());
});

test('a compressed body is refused as such; a byte order mark before JSON is not', async () => {
  const body = JSON.stringify(estimateRequest());
  const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' };
  const refused = await daemon.fetch('/v1/estimate', { method: 'POST', headers, body: gzipSync(body) });
  const document = await problem(assert, refused, 415, 'unsupported-media-type');
  assert.deepEqual(document.errors.map((error) => error.pointer), ['/headers/Content-Encoding']);
  const marked = await daemon.post('/v1/estimate', `\ufeff${body}`);
  assert.equal(marked.status, 200);
  assert.equal(await marked.text(), await (await daemon.post('/v1/estimate', body)).text());
});

test('advise ranks plans that fit', async () => {
  const response = await daemon.post('/v1/advise', adviseRequest());
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const answer = JSON.parse(text);
  assert.ok(answer.ranked.length > 0);
  answer.ranked.forEach((row, index) => {
    assert.equal(row.rank, index + 1);
    assert.equal(row.estimate.fits, true);
  });
  const { considered, illegal, pruned, out_of_memory: tooBig, evaluated, exhaustive, elapsed_ms: elapsed, evaluations_per_s: speed } = answer.search;
  assert.ok(exhaustive && considered > illegal + pruned + tooBig, 'what is not left out was solved');
  assert.ok(evaluated > considered - illegal - pruned - tooBig, 'what may be in the answer was priced at least once');
  assert.ok(elapsed > 0 && Math.abs(evaluated / (elapsed * 1e-3) / speed - 1) < 1e-3);
});

test('of a space that is too large for a request a part is searched, and the answer says so', async () => {
  const request = { model: 'deepseek3-671b', cluster: { chip: 'tpu7x', topology: '16x16x16', slices: 8 },
    workload: { seq_len: 8192, global_batch_sequences: 4194304, quantization: 'any' }, search: { top_k: 100, max_evaluations: 20000 } };
  const response = await daemon.post('/v1/advise', request);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const { ranked, search, warnings } = JSON.parse(text);
  assert.ok(ranked.length > 3 && ranked.every((row) => row.estimate.fits), `${ranked.length} plans`);
  assert.equal(search.exhaustive, false);
  assert.ok(search.left_out > 0 && search.considered >= search.illegal + search.pruned + search.out_of_memory + search.left_out);
  const said = warnings.filter((warning) => warning.code === 'space-too-large');
  assert.deepEqual(said.map((warning) => warning.pointer), ['/search']);
  assert.match(said[0].detail, new RegExp(`^${search.left_out} of \\d+ legal combinations were not tried`));
  for (const narrower of [/search\.axes/, /gradient_accumulation_steps/, /workload\.quantization/, /search\.top_k/]) assert.match(said[0].hint, narrower);
  const narrowed = await (await daemon.post('/v1/advise', { ...request, workload: { ...request.workload, quantization: '' }, pins: { gradient_accumulation_steps: 4 },
    search: { top_k: 3, axes: ['fsdp', 'expert', 'data'] } })).json();
  assert.equal(narrowed.search?.exhaustive, true, JSON.stringify(narrowed).slice(0, 500));
  assert.ok(!('left_out' in narrowed.search) && !narrowed.warnings.some((warning) => warning.code === 'space-too-large'));
});

test('an advise without a batch is refused: plans of different batches do different work', async () => {
  const request = adviseRequest({ workload: { seq_len: 8192 } });
  const document = await problem(assert, await daemon.post('/v1/advise', request), 422, 'invalid-request');
  assert.deepEqual(document.errors.map((error) => error.pointer), ['/workload']);
  assert.equal((await daemon.post('/v1/advise', { ...request, pins: { per_device_batch_size: 1 } })).status, 200);
});

test('kernels are simulated and tuned', async () => {
  const simulated = await (await daemon.post('/v1/kernels/simulate', golden('simulate-matmul.json'))).json();
  assert.ok(simulated.time_us > 0);
  const tuned = await (await daemon.post('/v1/kernels/tune', golden('tune-tgmm.json'))).json();
  assert.ok(tuned.ranked.length > 0);
});

test('lint takes a configuration', async () => {
  const response = await daemon.post('/v1/lint', golden('lint-old-keys.json'));
  assert.equal(response.status, 200, await response.text());
});

test('all mistakes of a document are named at once, with their places', async () => {
  const document = await problem(assert, await daemon.post('/v1/estimate', { model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '2x4' }, config: {}, stoer: true, labell: 'x' }), 422, 'invalid-request');
  assert.deepEqual(document.errors.map((error) => error.pointer).filter((pointer) => ['/stoer', '/labell'].includes(pointer)).sort(), ['/labell', '/stoer']);
});

test('documents that are not JSON, or JSON two readers could take differently, are refused with their place', async () => {
  for (const bad of ['', '{', '[]x', '{"model": 1, "model": 2}', 'null', '{"a": NaN}', '{"a": 1e999}', '"text"', '{"a": "\\u0000"}',
    `{"a":${'['.repeat(40)}${']'.repeat(40)}}`]) {
    const response = await daemon.post('/v1/estimate', bad);
    const text = await response.text();
    assert.ok([400, 422].includes(response.status), `${bad} -> ${response.status} ${text}`);
    assert.equal(response.headers.get('content-type'), 'application/problem+json');
  }
  const invalid = await fetch(`${daemon.origin}/v1/estimate`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) });
  assert.equal(invalid.status, 400);
});

test('a body must say that it is JSON', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx'])
    await problem(assert, await daemon.post('/v1/estimate', '{}', { 'Content-Type': type }), 415, 'unsupported-media-type');
  const none = await raw(daemon.port, 'POST /v1/estimate HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}', { answers: 1 });
  assert.deepEqual(none.statuses, [415]);
  const parameter = await daemon.post('/v1/estimate', estimateRequest(), { 'Content-Type': 'application/json; charset=utf-8' });
  assert.equal(parameter.status, 200, await parameter.text());
});

test('a body beyond 1 MiB is refused before it is read when its length is known', async () => {
  const head = `POST /v1/estimate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${MIB + 1}\r\n`;
  for (const expect of ['', 'Expect: 100-continue\r\n']) {
    const answer = await raw(daemon.port, `${head}${expect}\r\n`);
    assert.deepEqual(answer.statuses, [413]);
    assert.ok(answer.closed);
  }
});

test('a chunked body is counted', async () => {
  const chunk = `${(65536).toString(16)}\r\n${' '.repeat(65536)}\r\n`;
  const answer = await raw(daemon.port, `POST /v1/estimate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(17)}0\r\n\r\n`);
  assert.deepEqual(answer.statuses, [413]);
  const good = JSON.stringify(estimateRequest());
  const small = await raw(daemon.port, `POST /v1/estimate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${good.length.toString(16)}\r\n${good}\r\n0\r\n\r\n`);
  assert.deepEqual(small.statuses, [200]);
});

test('a body of exactly 1 MiB is read', async () => {
  const body = JSON.stringify(estimateRequest());
  const response = await daemon.post('/v1/estimate', body + ' '.repeat(MIB - body.length));
  assert.equal(response.status, 200, await response.text());
});

test('a body where none belongs is refused', async () => {
  const answer = await raw(daemon.port, 'GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}');
  assert.deepEqual(answer.statuses, [400]);
  assert.ok(answer.closed);
});

test('without a database what was to be stored is refused, and given as not stored to who only tries', async () => {
  const refused = await daemon.post('/v1/estimate', estimateRequest({ store: true }));
  assert.equal(refused.headers.get('retry-after'), '3600', 'no database comes soon');
  await problem(assert, refused, 503, 'store-unavailable');
  await problem(assert, await daemon.post('/v1/estimate', estimateRequest({ store: 'maybe' })), 422, 'invalid-request');
  const answer = await (await daemon.post('/v1/estimate', estimateRequest({ store: 'try' }))).json();
  assert.equal(answer.stored, false);
  assert.ok(!('run_id' in answer));
  assert.ok(answer.step_time_s > 0);
});

test('without a database what needs it is 503, and nobody is asked to try again soon', async () => {
  for (const path of ['/v1/runs', '/v1/runs/01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072', '/v1/compare?runs=a,b', '/v1/baselines/p/l',
    '/v1/sweeps/01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072/events']) {
    const response = await daemon.fetch(path);
    if (path !== '/v1/compare?runs=a,b') assert.equal(response.headers.get('retry-after'), '3600', path);
    assert.ok([503, 404].includes(response.status), path);
    await response.text();
  }
  const { detail, errors } = await problem(assert, await daemon.fetch('/v1/runs'), 503, 'store-unavailable');
  assert.match(`${detail} ${errors[0].hint}`, /no database is configured.*--database-url/);
});

test('the catalog lists and names, with entity tags', async () => {
  for (const [collection, name] of [['models', 'llama3.1-8b'], ['chips', 'tpu7x'], ['topologies', 'tpu7x-128'], ['keys', 'remat_policy'], ['kernels', 'splash_fwd']]) {
    const list = await daemon.fetch(`/v1/catalog/${collection}`);
    assert.equal(list.status, 200, collection);
    const tag = list.headers.get('etag');
    assert.ok((await list.text()).includes(name), `${name} in ${collection}`);
    assert.equal((await daemon.fetch(`/v1/catalog/${collection}`, { headers: { 'If-None-Match': tag } })).status, 304);
    const entry = await daemon.fetch(`/v1/catalog/${collection}/${name}`);
    assert.equal(entry.status, 200, `${collection}/${name}`);
    assert.ok((await entry.text()).includes(name));
    assert.equal((await daemon.fetch(`/v1/catalog/${collection}/${name}`, { headers: { 'If-None-Match': entry.headers.get('etag') } })).status, 304);
    await problem(assert, await daemon.fetch(`/v1/catalog/${collection}/none-such`), 404, 'not-found');
  }
  await problem(assert, await daemon.fetch('/v1/catalog/wings'), 404, 'not-found');
});

test('a hundred clients at once all get the same answer', async () => {
  const body = JSON.stringify(estimateRequest());
  const texts = await Promise.all(Array.from({ length: 100 }, async () => (await daemon.post('/v1/estimate', body)).text()));
  assert.equal(new Set(texts).size, 1);
});

// The programs for tune-jax, by what changes their text: masks, segments, directions, and how rows are spread.
const splash = { q_heads: 8, kv_heads: 2, q_len: 2048, head_dim_qk: 128 };
const grouped = { m: 8192, k: 2048, n: 1536, num_groups: 16 };
const shared = { ...splash, context_shards: 4, context_parallel_load_balance: true };
const sweeps = [
  ['splash_fwd', shared],
  ['splash_fwd', { ...shared, segment_ids: true }],
  ['splash_fwd', { ...splash, context_shards: 4, segment_ids: true }, { flags: { attn_logits_soft_cap: 30 } }],
  ['splash_fwd', { ...splash, context_shards: 4, context_parallel_strategy: 'ring' }],
  ['splash_fwd_residuals', { ...splash, window: 1000, dtype: 'float32' }, { scoped_vmem_limit_kib: 65536 }],
  ['splash_bwd_fused', { ...splash, chunk: 1024 }, { flags: { dq_reduction_steps: 3 } }],
  ['splash_bwd_dq', { ...splash, causal: false }],
  ['splash_bwd_dkv', { ...splash, batch: 0.5 }],
  ['gmm', { ...grouped, group_distribution: 'multinomial' }],
  ['gmm', { ...grouped, group_distribution: 'zipf' }],
  ['gmm', { ...grouped, num_groups: 2, group_sizes: [8192, 0], rhs_transposed: true, dtype: 'float8' }],
  ['tgmm', { ...grouped, group_distribution: 'worst' }],
  ['linear_xent', { tokens: 8192, emb_dim: 4096, vocab: 128256 }],
  ['linear_xent_bwd', { tokens: 8192, emb_dim: 2880, vocab: 32000 }, { scoped_vmem_limit_kib: 65536 }],
];
const checker = `
import ast, builtins, json, sys
from unittest.mock import MagicMock
tree = ast.parse(sys.stdin.read())
code = compile(tree, "sweep", "exec")
bound, used, tiles = set(dir(builtins)), set(), 0
for node in ast.walk(tree):
    if isinstance(node, ast.Name):
        (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
    elif isinstance(node, ast.arg):
        bound.add(node.arg)
    elif isinstance(node, ast.FunctionDef):
        bound.add(node.name)
    elif isinstance(node, ast.ImportFrom):
        sys.modules[node.module] = MagicMock()
    elif isinstance(node, ast.Import):
        sys.modules.update((alias.name, MagicMock()) for alias in node.names if alias.name != "importlib")
    elif isinstance(node, ast.alias):
        bound.add((node.asname or node.name).split(".")[0])
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "TILES":
        tiles = len(ast.literal_eval(node.value))
scope = {}
exec(code, scope)  # what it imports is made up: the program runs, and its function takes its own arguments
scope["run"](*scope["arguments"], tile=scope["TILES"][0])
print(json.dumps({"unbound": sorted(used - bound), "tiles": tiles}))`;
const hasPython = spawnSync('python3', ['--version']).status === 0;
test('a sweep is a Python program', { skip: !hasPython && 'there is no python3' }, async () => {
  for (const [kernel, shape, rest] of sweeps) {
    const response = await daemon.post('/v1/kernels/tune', { chip: 'v6e', kernel, shape, ...rest });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const { sweep } = JSON.parse(text);
    const asked = JSON.stringify({ kernel, shape });
    // Mere warnings of the compiler fail too; so does a name that nothing in the program binds, and what fails when run.
    const { status, stdout, stderr } = spawnSync('python3', ['-W', 'error', '-c', checker], { input: sweep.tune_jax, encoding: 'utf8' });
    assert.equal(status, 0, `${asked}: ${stderr}\n${sweep.tune_jax}`);
    assert.deepEqual(JSON.parse(stdout.trimEnd().split('\n').at(-1)), { unbound: [], tiles: sweep.tiles.length }, `${asked}:\n${sweep.tune_jax}`);
  }
});
