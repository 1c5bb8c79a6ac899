// Every JSON answer says which engine gave it; pages lead to the next one.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { startDaemon, estimateRequest, adviseRequest, golden, freshDatabase } from './daemon.mjs';

let daemon;
let engine;
let run;
before(async () => {
  daemon = await startDaemon({ database: freshDatabase('api_engine') });
  ({ engine } = await (await daemon.fetch('/version')).json());
  run = await (await daemon.post('/v1/estimate', estimateRequest({ store: true, project: 'a b&c', label: 'l' }))).json();
});
after(() => daemon.stop());

test('every JSON answer names the engine, refusals too', async () => {
  const put = { method: 'PUT', body: JSON.stringify({ run_id: run.run_id }), headers: { 'Content-Type': 'application/json' } };
  const answers = {
    estimate: await daemon.post('/v1/estimate', estimateRequest()),
    advise: await daemon.post('/v1/advise', adviseRequest()),
    simulate: await daemon.post('/v1/kernels/simulate', golden('simulate-matmul.json')),
    tune: await daemon.post('/v1/kernels/tune', golden('tune-tgmm.json')),
    lint: await daemon.post('/v1/lint', { config: { steps: 1 } }),
    put: await daemon.fetch('/v1/baselines/a%20b%26c/l', put),
    baseline: await daemon.fetch('/v1/baselines/a%20b%26c/l'),
    history: await daemon.fetch('/v1/baselines/a%20b%26c/l?history=true'),
    check: await daemon.post('/v1/checks', { baseline: { run_id: run.run_id }, candidate: { run_id: run.run_id } }),
    measured: await daemon.post(`/v1/runs/${run.run_id}/measurements`, { step_time_s: 3, source: 's', at: '2026-11-20' }),
    refused: await daemon.post('/v1/estimate', {}),
    broken: await daemon.post('/v1/estimate', '{'),
    missing: await daemon.fetch('/v1/nothing'),
  };
  for (const path of ['/v1/runs', `/v1/runs/${run.run_id}`, `/v1/runs/${run.run_id}/measurements`, `/v1/compare?runs=${run.run_id},${run.run_id}`, '/v1/accuracy', '/v1/baselines', '/v1/catalog/chips', '/v1/catalog/models/llama3.1-8b', '/readyz', '/v1/runs?limit=0'])
    answers[path] = await daemon.fetch(path);
  for (const [name, response] of Object.entries(answers)) {
    const text = await response.text();
    assert.deepEqual(JSON.parse(text).engine, engine, `${name}: ${text.slice(0, 300)}`);
  }
});

test('a page links to the next, with the filters it was asked with', async () => {
  for (let i = 0; i < 3; i++) await daemon.post('/v1/estimate', estimateRequest({ store: true, project: 'a b&c', label: 'l' }));
  const seen = [];
  let path = `/v1/runs?project=${encodeURIComponent('a b&c')}&limit=2`;
  while (path) {
    const response = await daemon.fetch(path);
    const page = await response.json();
    seen.push(...page.runs.map(({ run_id: id }) => id));
    const link = response.headers.get('link');
    assert.equal(Boolean(link), page.next_cursor !== null);
    path = link && /^<([^>]*)>; rel="next"$/.exec(link)[1];
  }
  assert.equal(new Set(seen).size, 4);
  assert.equal(seen.length, 4);
});

test('every list links to its next page, and the last to none', async () => {
  const project = 'pages';
  const requests = [1, 2, 3].map((steps) => ({ ...estimateRequest(), config: { ...estimateRequest().config, gradient_accumulation_steps: steps } }));
  let sweep;
  for (let i = 0; i < 3; i++) {
    const run = await (await daemon.post('/v1/estimate', estimateRequest({ store: true, project }))).json();
    const put = { method: 'PUT', body: JSON.stringify({ run_id: run.run_id }), headers: { 'Content-Type': 'application/json' } };
    assert.equal((await daemon.fetch(`/v1/baselines/${project}/label-${i}`, put)).status, 201);
    assert.equal((await daemon.post(`/v1/runs/${run.run_id}/measurements`, { step_time_s: run.step_time_s, source: 's', at: '2026-11-20' })).status, 201);
    sweep = (await (await daemon.post('/v1/sweeps', { kind: 'estimate', project, requests })).json()).sweep_id;
  }
  for (let i = 0; i < 3; i++) assert.equal((await daemon.post('/v1/calibrations', { project })).status, 201);
  for (const [path, name] of [['/v1/runs', 'runs'], ['/v1/baselines', 'baselines'], ['/v1/accuracy', 'rows'], ['/v1/sweeps', 'sweeps'],
    ['/v1/calibrations', 'calibrations'], [`/v1/sweeps/${sweep}`, 'items']]) {
    const seen = new Set();
    let pages = 0;
    for (let next = `${path}?${name === 'items' ? '' : `project=${project}&`}limit=2`; next; pages++) {
      const response = await daemon.fetch(next);
      const page = await response.json();
      for (const row of page[name]) seen.add(JSON.stringify(row));
      const link = response.headers.get('link');
      assert.equal(Boolean(link), page.next_cursor !== null, `${next}: ${link}`);
      next = link && /^<([^>]*)>; rel="next"$/.exec(link)[1];
    }
    assert.deepEqual([pages, seen.size], [2, 3], path);
  }
});

test('the form\'s files keep their tags', async () => {
  const first = await daemon.fetch('/');
  const tag = first.headers.get('etag');
  assert.match(tag, /^"[0-9a-f]{64}(-gzip)?"$/);
  assert.equal((await daemon.fetch('/', { headers: { 'If-None-Match': tag } })).status, 304);
  assert.equal(first.headers.get('cache-control'), 'no-cache');
  const [bundled] = /assets\/main-[A-Z0-9]{8}\.js/.exec(await first.text());
  const asset = await daemon.fetch(`/${bundled}`);
  assert.notEqual(asset.headers.get('etag'), tag);
  assert.equal(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
});
