// Answers that are kept, sent in gzip, and traced. A reader believes: the same question has the same answer, whoever asks
// and however it is written; another question has another; what is stored is stored anew.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { request } from 'node:http';
import { spawn } from 'node:child_process';
import { adviseRequest, estimateRequest, freshDatabase, join, run, scratchFolder, raw, sql, startDaemon, until } from './daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ database: freshDatabase('cache') }); });
after(() => daemon.stop());

const counts = async (of = daemon) => {
  const text = await (await of.fetch('/metrics')).text();
  const count = (result) => Number(text.match(new RegExp(`answer_cache_total\\{result="${result}"\\} (\\d+)`))[1]);
  return { hits: count('hit'), misses: count('miss'), evaluations: Number(text.match(/engine_evaluations_total (\d+)/)[1]) };
};
// fetch decodes bodies by itself: this does not.
const plain = (path, { method = 'GET', headers = {}, body } = {}) => new Promise((resolve, reject) => {
  const sent = request({ port: daemon.port, host: '127.0.0.1', path, method, headers: { Connection: 'close', ...headers } }, (answer) => {
    const parts = [];
    answer.on('data', (part) => parts.push(part));
    answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) }));
  });
  sent.on('error', reject);
  sent.end(body);
});
const posted = (path, body, headers = {}) => plain(path, { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers } });
const reversed = (value) => (value && typeof value === 'object' && !Array.isArray(value)
  ? Object.fromEntries(Object.entries(value).reverse().map(([name, member]) => [name, reversed(member)])) : value);

test('a question asked again costs no engine and has the same bytes and tag', async () => {
  const first = await daemon.post('/v1/advise', adviseRequest());
  const text = await first.text();
  assert.equal(first.headers.get('cache-status'), null);
  const before = await counts();
  const again = await daemon.post('/v1/advise', adviseRequest());
  assert.equal(await again.text(), text, 'also the time that the search took, which is that of the search');
  assert.equal(again.headers.get('cache-status'), 'tpu-advisor; hit');
  assert.equal(again.headers.get('etag'), first.headers.get('etag'));
  assert.deepEqual(await counts(), { ...before, hits: before.hits + 1 });
});

test('the order of members, blanks, label and git_ref are not of the question; everything else is', async () => {
  const first = await (await daemon.post('/v1/estimate', estimateRequest())).text();
  for (const same of [JSON.stringify(estimateRequest(), null, 3), reversed(estimateRequest()), estimateRequest({ label: 'other', git_ref: 'abc' })]) {
    const answer = await daemon.post('/v1/estimate', same);
    assert.equal(answer.headers.get('cache-status'), 'tpu-advisor; hit');
    assert.equal(await answer.text(), first);
  }
  const config = { ...estimateRequest().config, per_device_batch_size: 7 };
  for (const other of [estimateRequest({ config }), estimateRequest({ flops_convention: 'causal_half' }), estimateRequest({ project: 'alpha' })])
    assert.equal((await daemon.post('/v1/estimate', other)).headers.get('cache-status'), null);
  assert.equal((await daemon.post('/v1/advise', estimateRequest())).status, 422, 'the same text is another question elsewhere');
});

test('mistakes are answered anew, also beside a question that is kept', async () => {
  await daemon.post('/v1/estimate', estimateRequest());
  for (const wrong of [{ label: 7 }, { store: 'maybe' }, { label: 'x'.repeat(200) }, { unknown: 1 }]) {
    for (const round of [1, 2]) assert.equal((await daemon.post('/v1/estimate', estimateRequest(wrong))).status, 422, `${JSON.stringify(wrong)} ${round}`);
  }
});

test('who has the answer is told so', async () => {
  const tag = (await daemon.post('/v1/advise', adviseRequest())).headers.get('etag');
  const known = await posted('/v1/advise', adviseRequest(), { 'If-None-Match': tag });
  assert.equal(known.status, 304);
  assert.equal(known.body.length, 0);
  assert.equal((await posted('/v1/advise', adviseRequest(), { 'If-None-Match': '"another"' })).status, 200);
});

test('a kept answer is stored anew each time, under the names of its own request', async () => {
  const ask = async (extra) => (await daemon.post('/v1/estimate', estimateRequest({ store: true, ...extra }))).json();
  const evaluations = (await counts()).evaluations;
  const one = await ask({ label: 'one' });
  const two = await ask({ label: 'two', git_ref: 'f00' });
  assert.equal((await counts()).evaluations, evaluations, 'asked before by other tests');
  assert.notEqual(one.run_id, two.run_id);
  assert.ok(one.stored && two.stored);
  const run = await (await daemon.fetch(`/v1/runs/${two.run_id}`)).json();
  assert.deepEqual([run.label, run.git_ref, run.model, run.fits, run.fit_verdict], ['two', 'f00', 'llama3.1-8b', true, 'fits']);
  assert.equal(run.step_time_s, one.step_time_s);
});

const metric = async (of, result) => Number((await (await of.fetch('/metrics')).text()).match(new RegExp(`answer_cache_total\\{result="${result}"\\} (\\d+)`))[1]);
const asked = (count, extra = {}) => adviseRequest({ search: { objective: 'step_time', top_k: count }, ...extra });

test('a stored answer is given again after a restart and by another daemon, byte for byte and with its tag', async () => {
  const database = freshDatabase('cache_stored');
  const first = await startDaemon({ database });
  const stored = await (await first.post('/v1/advise', asked(3, { store: true }))).json();
  const answer = await first.post('/v1/advise', asked(3));
  const text = await answer.text(), tag = answer.headers.get('etag');
  assert.equal(await metric(first, 'stored'), 0);
  const second = await startDaemon({ database });
  await first.stop();
  for (const daemon_ of [second, await startDaemon({ database })]) {
    const again = await daemon_.post('/v1/advise', asked(3));
    assert.equal(again.headers.get('cache-status'), 'tpu-advisor; hit');
    assert.equal(again.headers.get('etag'), tag);
    assert.equal(await again.text(), text, 'also the time that the search took');
    assert.deepEqual([(await counts(daemon_)).evaluations, await metric(daemon_, 'stored')], [0, 1]);
    assert.equal((await daemon_.post('/v1/advise', asked(3), { 'If-None-Match': tag })).status, 304);
    const anew = await (await daemon_.post('/v1/advise', asked(3, { store: true, label: 'anew' }))).json();
    assert.notEqual(anew.run_id, stored.run_id);
    const { label, fit_verdict } = await (await daemon_.fetch(`/v1/runs/${anew.run_id}`)).json();
    assert.deepEqual([label, fit_verdict], ['anew', 'fits']);
    assert.equal((await daemon_.post('/v1/advise', asked(4))).headers.get('cache-status'), null, 'another question');
    assert.equal((await daemon_.post('/v1/advise', asked(3, { project: 'alpha' }))).headers.get('cache-status'), null, 'another project');
    if (daemon_ !== second) await daemon_.stop();
  }
  await second.stop();
});

test('a deleted run answers no more, nor does one of another engine', async () => {
  const database = freshDatabase('cache_deleted');
  const first = await startDaemon({ database });
  const { run_id: id } = await (await first.post('/v1/advise', asked(3, { store: true }))).json();
  await first.post('/v1/advise', asked(4, { store: true }));
  assert.equal((await first.fetch(`/v1/runs/${id}`, { method: 'DELETE' })).status, 204);
  await first.stop();
  const second = await startDaemon({ database });
  assert.equal((await second.post('/v1/advise', asked(3))).headers.get('cache-status'), null);
  assert.equal((await second.post('/v1/advise', asked(4))).headers.get('cache-status'), 'tpu-advisor; hit');
  await second.stop();
  sql('cache_deleted', "ALTER TABLE runs DISABLE TRIGGER runs_immutable; UPDATE runs SET question_sha256 = repeat('0', 64)");
  const third = await startDaemon({ database });
  assert.equal((await third.post('/v1/advise', asked(4))).headers.get('cache-status'), null, 'the digest tells engines apart');
  await third.stop();
});

test('a slow database delays one answer by a quarter of a second and no other', async () => {
  const slow = await startDaemon({ database: freshDatabase('cache_slow') });
  const locked = spawn('psql', ['-XAtq', process.env.CLUSTER_URL.replace('/tpu_advisor?', '/cache_slow?'), '-c', 'BEGIN; LOCK TABLE runs; SELECT 1; SELECT pg_sleep(30)']);
  try {
    await until('the lock', () => sql('cache_slow', "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'runs'::regclass") !== '0');
    const took = async (batch) => {
      const begin = Date.now();
      assert.equal((await slow.post('/v1/advise', asked(batch))).status, 200);
      return Date.now() - begin;
    };
    const begin = performance.now();
    const first = await took(3);
    assert.ok(first >= 250, `${first} ms: it was looked for`);
    for (const count of [4, 5, 6]) await took(count);
    const looked = Number((await (await slow.fetch('/metrics')).text()).match(/db_errors_total\{class="timeout"\} (\d+)/)[1]);
    const most = 1 + Math.floor((performance.now() - begin) / 5000);
    assert.ok(looked >= 1 && looked <= most, `looked for ${looked} times: once, and once more after five seconds`);
  } finally {
    locked.kill();
    await slow.stop();
  }
});

test('the calibration of a token\'s project corrects no answer of another project, kept or stored', async () => {
  const { folder, remove } = scratchFolder();
  const file = join(folder, 'tokens');
  const token = {};
  for (const project of ['alpha', 'beta']) token[project] = { Authorization: `Bearer ${(await run(['token', 'create', project, '--scope', 'write', '--project', project, '--tokens-file', file])).out.trim()}` };
  const args = ['--tokens-file', file], database = freshDatabase('cache_projects');
  const one = await startDaemon({ database, args });
  for (const steps of [1, 2, 4, 8]) {
    const config = { ...estimateRequest().config, gradient_accumulation_steps: steps };
    const stored = await (await one.post('/v1/estimate', estimateRequest({ config, store: true }), token.alpha)).json();
    const measured = await one.post(`/v1/runs/${stored.run_id}/measurements`, { step_time_s: stored.step_time_s * 1.3, source: 's', at: '2026-11-20T10:00:00Z' }, token.alpha);
    assert.equal(measured.status, 201, await measured.text());
  }
  const made = await (await one.post('/v1/calibrations', { project: 'alpha' }, token.alpha)).json();
  assert.equal((await one.fetch(`/v1/calibrations/${made.calibration_id}/activate`, { method: 'POST', headers: token.alpha })).status, 200);
  const calibration = async (of, path, body, who) => (await (await of.post(path, body, token[who])).json()).engine.calibration;
  for (const [path, body] of [['/v1/estimate', estimateRequest()], ['/v1/advise', asked(3, { store: true })], ['/v1/advise', asked(3)]]) {
    assert.match(await calibration(one, path, body, 'alpha'), /^calibration\//);
    assert.doesNotMatch(await calibration(one, path, body, 'beta'), /^calibration\//, `${path} of beta`);
  }
  await one.stop();
  const two = await startDaemon({ database, args });
  await until('the calibration', async () => /^calibration/.test(await calibration(two, '/v1/estimate', estimateRequest(), 'alpha')));
  assert.doesNotMatch(await calibration(two, '/v1/advise', asked(3), 'beta'), /^calibration\//);
  assert.match(await calibration(two, '/v1/advise', asked(3), 'alpha'), /^calibration\//);
  assert.equal(await (async () => Number((await (await two.fetch('/metrics', { headers: token.alpha })).text()).match(/result="stored"\} (\d+)/)?.[1]))(), 2, 'each its own');
  await two.stop();
  remove();
});

test('without room nothing is kept, and the memory of the kept is bounded', async () => {
  const without = await startDaemon({ args: ['--cache-mib', '0'] });
  for (const round of [1, 2]) assert.equal((await without.post('/v1/estimate', estimateRequest())).headers.get('cache-status'), null, String(round));
  await without.stop();
  const small = await startDaemon({ args: ['--cache-mib', '1'] });
  for (let batch = 1; batch <= 200; batch++) {
    const config = { ...estimateRequest().config, per_device_batch_size: batch };
    assert.equal((await small.post('/v1/estimate', estimateRequest({ config }))).status, 200);
  }
  const bytes = Number((await (await small.fetch('/metrics')).text()).match(/answer_cache_bytes (\d+)/)[1]);
  assert.ok(bytes > 100000 && bytes <= 1024 * 1024, `${bytes} bytes`);
  await small.stop();
});

test('bodies over 1 kB come in gzip to who takes it, from wherever they come', async () => {
  const config = { ...estimateRequest().config, per_device_batch_size: 5 };
  const sources = {
    'the page': () => plain('/', { headers: { 'Accept-Encoding': 'gzip' } }),
    'a document made at the start': () => plain('/v1/openapi.json', { headers: { 'Accept-Encoding': 'br;q=1, gzip;q=0.5' } }),
    'an answer': () => posted('/v1/estimate', estimateRequest({ config }), { 'Accept-Encoding': 'gzip, deflate' }),
    'the same, kept': () => posted('/v1/estimate', estimateRequest({ config }), { 'Accept-Encoding': '*' }),
    'metrics': () => plain('/metrics', { headers: { 'Accept-Encoding': 'gzip' } }),
  };
  for (const [what, ask] of Object.entries(sources)) {
    const answer = await ask();
    assert.equal(answer.headers['content-encoding'], 'gzip', what);
    assert.equal(answer.headers.vary, 'Accept-Encoding', what);
    assert.equal(Number(answer.headers['content-length']), answer.body.length);
    assert.ok(gunzipSync(answer.body).length > answer.body.length, what);
  }
  for (const refused of ['gzip;q=0', 'identity', 'br', '*, gzip;q=0', '']) {
    const answer = await plain('/v1/openapi.json', { headers: { 'Accept-Encoding': refused } });
    assert.equal(answer.headers['content-encoding'], undefined, refused);
    assert.equal(answer.headers.vary, 'Accept-Encoding', refused);
    JSON.parse(answer.body);
  }
  assert.equal((await plain('/livez', { headers: { 'Accept-Encoding': 'gzip' } })).headers['content-encoding'], undefined, 'short');
});

test('a coded body has a tag of its own, and both tags are known', async () => {
  const gzip = { 'Accept-Encoding': 'gzip' };
  const coded = (await plain('/', { headers: gzip })).headers.etag, whole = (await plain('/')).headers.etag;
  assert.notEqual(coded, whole);
  for (const tag of [coded, whole]) assert.equal((await plain('/', { headers: { ...gzip, 'If-None-Match': tag } })).status, 304);
  assert.equal((await plain('/', { headers: { 'If-None-Match': `${whole.slice(0, -2)}"` } })).status, 200);
});

test('a trace is logged, returned with a span of ours, and ignored when it is none', async () => {
  const trace = '0af7651916cd43dd8448eb211c80319c', parent = 'b7ad6b7169203331';
  const answer = await daemon.fetch('/livez', { headers: { traceparent: `00-${trace}-${parent}-01`, 'X-Request-Id': 'traced' } });
  const [, span] = answer.headers.get('traceparent').match(new RegExp(`^00-${trace}-([0-9a-f]{16})-01$`));
  assert.notEqual(span, parent);
  const line = await until('its line, which comes after the answer', () => daemon.log.find((one) => one.request_id === 'traced'));
  assert.deepEqual([line.trace_id, line.parent_id, line.span_id], [trace, parent, span]);
  const zero = '0'.repeat(32);
  for (const none of [`00-${trace}-${parent}`, `00-${zero}-${parent}-01`, `00-${trace}-${parent}-01-more`, `ff-${trace}-${parent}-01`,
    `00-${trace.toUpperCase()}-${parent}-01`, 'x', `00-${trace}-${'0'.repeat(16)}-01`])
    assert.equal((await daemon.fetch('/livez', { headers: { traceparent: none } })).headers.get('traceparent'), null, none);
  assert.ok((await daemon.fetch('/livez', { headers: { traceparent: `01-${trace}-${parent}-00-later` } })).headers.get('traceparent'), 'a later version may say more');
});

test('of two traceparents none is believed, equal or not', async () => {
  const [one, two] = ['0af7651916cd43dd8448eb211c80319c', '1bf7651916cd43dd8448eb211c80319c'].map((trace) => `00-${trace}-b7ad6b7169203331-01`);
  const ask = async (id, ...headers) => {
    const { text, statuses } = await raw(daemon.port, `GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`, { answers: 1 });
    assert.deepEqual(statuses, [200], text);
    const line = await until('its line', () => daemon.log.find((entry) => entry.request_id === id));
    return [/\r\ntraceparent: /i.test(text), line.trace_id];
  };
  assert.deepEqual(await ask('trace-1', `traceparent: ${one}`), [true, one.slice(3, 35)]);
  assert.deepEqual(await ask('trace-2', `traceparent: ${one}`, `Traceparent: ${two}`), [false, undefined]);
  assert.deepEqual(await ask('trace-3', `traceparent: ${one}`, 'X: y', `TRACEPARENT: ${one}`), [false, undefined]);
  assert.deepEqual(await ask('trace-4', `traceparent: ${one}`, 'traceparent: none'), [false, undefined]);
});

test('every answer in JSON names its engine', async () => {
  const version = await (await daemon.fetch('/version')).json();
  const { run_id: id } = await (await daemon.post('/v1/estimate', estimateRequest({ store: true, project: 'p', label: 'l' }))).json();
  await daemon.fetch('/v1/baselines/p/l', { method: 'PUT', body: JSON.stringify({ run_id: id }), headers: { 'Content-Type': 'application/json' } });
  const answers = ['/livez', '/readyz', '/version', '/v1/catalog/models', '/v1/catalog/chips/v6e', '/v1/catalog/none', '/none', '/v1/runs', `/v1/runs/${id}`,
    '/v1/runs/none', '/v1/baselines', '/v1/baselines/p/l', '/v1/baselines/p/none', '/v1/accuracy', `/v1/compare?runs=${id},${id}`, `/v1/runs/${id}/measurements`];
  for (const path of answers) assert.deepEqual((await (await daemon.fetch(path)).json()).engine, version.engine, path);
  const posts = { '/v1/estimate': estimateRequest(), '/v1/advise': adviseRequest(), '/v1/lint': { config: {} }, '/v1/kernels/tune': {},
    '/v1/kernels/simulate': { chip: 'tpu7x', kernel: 'matmul', shape: { m: 4096, k: 4096, n: 4096, dtype: 'bfloat16' }, tile: {} },
    '/v1/checks': { baseline: { project: 'p', label: 'l' }, candidate: { run_id: id } } };
  for (const [path, body] of Object.entries(posts)) assert.deepEqual((await (await daemon.post(path, body)).json()).engine, version.engine, path);
});
