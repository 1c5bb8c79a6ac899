// The history of runs: finding them, in every order, page by page; tags; deleting and restoring; retention.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { startDaemon, estimateRequest, freshDatabase, golden, problem, scratchFolder, sql, until, join, writeFileSync } from './daemon.mjs';

const DATABASE = 'api_history';
let daemon;
let url;
before(async () => { daemon = await startDaemon({ database: url = freshDatabase(DATABASE) }); });
after(() => daemon.stop());

const store = async (extra = {}, config = {}) => {
  const request = estimateRequest({ store: true, ...extra });
  Object.assign(request.config, config);
  const response = await daemon.post('/v1/estimate', request);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
};
const get = async (path) => {
  const response = await daemon.fetch(path);
  const text = await response.text();
  assert.equal(response.status, 200, `${path}: ${text}`);
  return JSON.parse(text);
};
const ids = async (query) => (await get(`/v1/runs?${query}`)).runs.map((run) => run.run_id);
const tag = (id, tags) => daemon.fetch(`/v1/runs/${id}`, { method: 'PATCH', body: JSON.stringify({ tags }), headers: { 'Content-Type': 'application/json' } });
const remove = (id) => daemon.fetch(`/v1/runs/${id}`, { method: 'DELETE' });
const restore = (id) => daemon.fetch(`/v1/runs/${id}/restore`, { method: 'POST' });
async function walk(query, from = '') {
  const seen = [];
  let cursor = from;
  do {
    const page = await get(`/v1/runs?${query}${cursor && `&cursor=${cursor}`}`);
    seen.push(...page.runs);
    cursor = page.next_cursor;
  } while (cursor);
  return seen;
}

test('runs are found by words of their names and tags, each by its beginning, in any order', async () => {
  const one = await store({ project: 'search', label: 'feature/fast-path', git_ref: '3f9ab12cde' });
  const two = await store({ project: 'search', label: 'main', git_ref: '77aa' });
  assert.equal((await tag(two.run_id, ['Nightly', 'über'])).status, 200);
  for (const [query, found] of [
    ['fast', [one]], ['FAST feat', [one]], ['path fast', [one]], ['3f9ab', [one]], ['nightly', [two]], ['night main', [two]],
    ['über', [two]], ['llama3.1-8b', [two, one]], ['v6e llama', [two, one]], ['ast', []], ['fast main', []], ['llama3.1-70b', []],
    ['"fast" | !x', []], ["fast'", [one]], ['fast & path', [one]], ['\\', null], ['  -- ', null],
  ]) {
    const path = `project=search&q=${encodeURIComponent(query)}`;
    if (found) assert.deepEqual(await ids(path), found.map((run) => run.run_id), query);
    else await problem(assert, await daemon.fetch(`/v1/runs?${path}`), 400, 'bad-request');
  }
  assert.deepEqual(await ids('project=search&git_ref=3f9ab12cde'), [one.run_id]);
  assert.deepEqual(await ids('project=search&git_ref=3f9ab'), [], 'a filter is the whole reference');
});

test('tags and the git reference are given with the request that is stored, and are no part of the question', async () => {
  const first = await store({ project: 'given' });
  const given = await store({ project: 'given', git_ref: 'abc1', tags: ['nightly', 'v3 模型'] });
  const run = await get(`/v1/runs/${given.run_id}`);
  assert.deepEqual([run.tags, run.git_ref], [['nightly', 'v3 模型'], 'abc1']);
  assert.deepEqual((await get(`/v1/runs/${first.run_id}`)).tags, [], 'the answer came from the cache, the names did not');
  assert.deepEqual(await ids('project=given&tags=nightly'), [given.run_id]);
  assert.deepEqual(await ids('project=given&q=night'), [given.run_id]);
  const advised = await (await daemon.post('/v1/advise', { model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4' },
    workload: { seq_len: 8192, global_batch_sequences: 32 }, project: 'given', tags: ['night'], store: true })).json();
  assert.deepEqual((await get(`/v1/runs/${advised.run_id}`)).tags, ['night']);
  const text = 'python3 -m MaxText.train MaxText/configs/base.yml model_name=llama3.1-8b per_device_batch_size=2 max_target_length=8192 ici_fsdp_parallelism=16\n';
  const script = await (await daemon.fetch('/v1/estimate?chip=v6e&topology=4x4&store=true&project=given&tags=a,b', { method: 'POST', body: text, headers: { 'Content-Type': 'text/x-shellscript' } })).json();
  assert.deepEqual((await get(`/v1/runs/${script.run_id}`)).tags, ['a', 'b']);
  for (const path of ['/v1/estimate', '/v1/advise']) {
    const wrong = await problem(assert, await daemon.post(path, estimateRequest({ tags: ['', 'a,b', 'ok', 'ok', 'a\u0085'] })), 422, 'invalid-request');
    assert.deepEqual(wrong.errors.map((error) => error.pointer).filter((at) => at.startsWith('/tags')), ['/tags/0', '/tags/1', '/tags/3', '/tags/4']);
  }
  assert.match(JSON.stringify(await problem(assert, await daemon.post('/v1/estimate', estimateRequest({ tags: 'nightly' })), 422, 'invalid-request')), /\/tags/);
});

test('tags are given and taken, filter together, and change the entity tag; nothing else of a run changes', async () => {
  const one = await store({ project: 'tags' });
  const two = await store({ project: 'tags' });
  const before = (await daemon.fetch(`/v1/runs/${one.run_id}`)).headers.get('etag');
  const tagged = await (await tag(one.run_id, ['release', 'v2', '模型 a'])).json();
  assert.deepEqual([tagged.run_id, tagged.tags], [one.run_id, ['release', 'v2', '模型 a']]);
  assert.notEqual((await daemon.fetch(`/v1/runs/${one.run_id}`)).headers.get('etag'), before);
  await tag(two.run_id, ['release']);
  assert.deepEqual(await ids('project=tags&tags=release'), [two.run_id, one.run_id]);
  assert.deepEqual(await ids('project=tags&tags=v2,release'), [one.run_id]);
  assert.deepEqual(await ids('project=tags&tags=v2,none'), []);
  assert.deepEqual((await get(`/v1/runs/${one.run_id}`)).tags, ['release', 'v2', '模型 a']);
  assert.deepEqual((await (await tag(one.run_id, [])).json()).tags, []);
  const wrong = await problem(assert, await tag(one.run_id, ['', 'a,b', 'x'.repeat(64), 3, 'a\u0001', 'ok', 'ok']), 422, 'invalid-request');
  assert.deepEqual(wrong.errors.map((error) => error.pointer), ['/tags/0', '/tags/1', '/tags/2', '/tags/3', '/tags/4', '/tags/6']);
  await problem(assert, await tag(one.run_id, Array.from({ length: 33 }, (_, i) => `t${i}`)), 422, 'invalid-request');
  const label = await daemon.fetch(`/v1/runs/${one.run_id}`, { method: 'PATCH', body: '{"label":"x"}', headers: { 'Content-Type': 'application/json' } });
  assert.match(JSON.stringify(await problem(assert, label, 422, 'invalid-request')), /nothing else changes/);
  await problem(assert, await tag('01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072', []), 404, 'not-found');
  await problem(assert, await daemon.fetch('/v1/runs?tags='), 400, 'bad-request');
});

test('two who tag or delete a run at once: If-Match lets one of them win', async () => {
  const { run_id: id } = await store({ project: 'match' });
  const path = `/v1/runs/${id}`;
  const change = (method, match, tags) => daemon.fetch(path, { method, body: tags && JSON.stringify({ tags }), headers: { 'Content-Type': 'application/json', 'If-Match': match } });
  const etag = async () => (await daemon.fetch(path)).headers.get('etag');
  const first = await etag();
  await problem(assert, await change('PATCH', '"wrong"', ['lost']), 412, 'precondition-failed');
  await problem(assert, await change('DELETE', '"wrong"'), 412, 'precondition-failed');
  await problem(assert, await change('DELETE', `W/${first}`), 412, 'precondition-failed'); // a weak tag guards nothing
  assert.deepEqual((await get(path)).tags, []);
  const race = await Promise.all(['a', 'b', 'c', 'd'].map((name) => change('PATCH', first, [name])));
  assert.deepEqual(race.map(({ status }) => status).sort(), [200, 412, 412, 412]);
  await problem(assert, await change('DELETE', first), 412, 'precondition-failed');
  assert.equal((await change('PATCH', `"other", ${await etag()}`, ['mine'])).status, 200);
  assert.equal((await change('PATCH', '*', ['any'])).status, 200);
  assert.equal((await change('DELETE', await etag())).status, 204);
  await problem(assert, await change('PATCH', '*', ['x']), 404, 'not-found');
});

test('every order is whole, page by page, with equal rows and while runs are added', async () => {
  for (const batch of [1, 2, 3, 2, 1, 3, 2]) await store({ project: 'order' }, { per_device_batch_size: batch });
  await daemon.post('/v1/kernels/simulate', { ...JSON.parse(golden('simulate-matmul.json')), store: true, project: 'order' });
  for (const name of ['created_at', 'step_time_s', 'hbm_bytes_per_device'])
    for (const sort of [name, `-${name}`]) {
      const rows = await walk(`project=order&sort=${sort}&limit=2`);
      const values = rows.map((run) => run[name]);
      assert.equal(new Set(rows.map((run) => run.run_id)).size, name === 'created_at' ? 8 : 7, `${sort}: each once, kernels have no number`);
      assert.deepEqual(values, [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0) * (sort[0] === '-' ? -1 : 1)), sort);
    }
  const first = await get('/v1/runs?project=order&sort=step_time_s&limit=3');
  await store({ project: 'order' }, { per_device_batch_size: 1 }); // comes before the second page, and moves nothing there
  const rest = await walk('project=order&sort=step_time_s&limit=3', first.next_cursor);
  const seen = [...first.runs, ...rest].map((run) => run.run_id);
  assert.equal(new Set(seen).size, seen.length);
  assert.equal(seen.length, 7);
  await problem(assert, await daemon.fetch(`/v1/runs?sort=-step_time_s&cursor=${first.next_cursor}`), 400, 'bad-request');
  for (const bad of ['x', '-created_at~2026-13-40T00:00:00Z~01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072', '-created_at~now~01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072', '-created_at~2026-01-01~x'])
    assert.equal((await problem(assert, await daemon.fetch(`/v1/runs?cursor=${bad}`), 400, 'bad-request')).errors[0].pointer, '/query/cursor', bad);
  for (const bad of ['sort=label', 'sort=', 'sort=--created_at', 'deleted=maybe', 'deleted=true&sort=step_time_s'])
    await problem(assert, await daemon.fetch(`/v1/runs?${bad}`), 400, 'bad-request');
  const linked = await daemon.fetch('/v1/runs?project=order&sort=-hbm_bytes_per_device&limit=2');
  const next = linked.headers.get('link').match(/<(.*)>; rel="next"/)[1];
  assert.equal((await get(next)).runs.length, 2, 'the Link goes on in the same order');
});

test('a deleted run is nowhere, a baseline least of all, until it is restored', async () => {
  const key = { 'Idempotency-Key': 'deleted-run' };
  const body = estimateRequest({ store: true, project: 'gone', label: 'l' });
  const run = await (await daemon.post('/v1/estimate', body, key)).json();
  const other = await store({ project: 'gone' });
  const measured = await daemon.post(`/v1/runs/${run.run_id}/measurements`, { step_time_s: 3, source: 's', at: '2026-11-20' });
  assert.equal(measured.status, 201);
  assert.equal((await remove(run.run_id)).status, 204);
  const gone = await problem(assert, await daemon.fetch(`/v1/runs/${run.run_id}`), 404, 'not-found');
  assert.match(JSON.stringify(gone), /was deleted.*restore/);
  assert.deepEqual(await ids('project=gone'), [other.run_id]);
  assert.deepEqual(await ids('project=gone&q=gone'), [other.run_id]);
  assert.equal((await get('/v1/accuracy?project=gone')).judged_count, 0);
  for (const path of ['measurements', 'verifications', 'artifacts/report.md']) await problem(assert, await daemon.fetch(`/v1/runs/${run.run_id}/${path}`), 404, 'not-found');
  await problem(assert, await daemon.fetch(`/v1/compare?runs=${other.run_id},${run.run_id}`), 404, 'not-found');
  await problem(assert, await tag(run.run_id, ['x']), 404, 'not-found');
  const put = await daemon.fetch('/v1/baselines/gone/main', { method: 'PUT', body: JSON.stringify({ run_id: run.run_id }), headers: { 'Content-Type': 'application/json' } });
  await problem(assert, put, 404, 'not-found');
  await problem(assert, await daemon.post('/v1/checks', { baseline: { run_id: run.run_id }, candidate: estimateRequest() }), 404, 'not-found');
  const again = await (await daemon.post('/v1/estimate', body, key)).json();
  assert.notEqual(again.run_id, run.run_id, 'its key stands for a new run');
  const listed = (await get('/v1/runs?deleted=true&project=gone')).runs;
  assert.deepEqual(listed.map((row) => row.run_id), [run.run_id]);
  assert.match(listed[0].deleted_at, /^20/);
  assert.equal((await restore(run.run_id)).status, 200);
  assert.equal((await restore(run.run_id)).status, 200, 'once more is no mistake');
  assert.equal((await get(`/v1/runs/${run.run_id}`)).deleted_at, null);
  assert.equal((await get('/v1/accuracy?project=gone')).judged_count, 1, 'with its measurements');
  assert.equal((await ids('project=gone')).length, 3);
  await problem(assert, await restore('01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072'), 404, 'not-found');
});

test('a measurement of a deleted run is neither listed nor taken back until the run is restored', async () => {
  const { run_id: id } = await store({ project: 'measured-gone' });
  const path = `/v1/runs/${id}/measurements`;
  const { measurement_id: measurement } = await (await daemon.post(path, { step_time_s: 1, source: 'a', at: '2026-11-20T00:00:00Z' })).json();
  const take = () => daemon.fetch(`${path}/${measurement}`, { method: 'DELETE' });
  await remove(id);
  await problem(assert, await daemon.fetch(path), 404, 'not-found');
  await problem(assert, await take(), 404, 'not-found');
  assert.equal((await restore(id)).status, 200);
  assert.equal((await get(path)).measurements.length, 1);
  assert.equal((await take()).status, 204);
});

test('a run that passed no longer stands in for a baseline when it is deleted', async () => {
  const base = await store({ project: 'stand', label: 'other' });
  const passed = await store({ project: 'stand', label: 'ci' });
  const check = (body) => daemon.post('/v1/checks', { candidate: estimateRequest(), ...body });
  assert.equal((await (await check({ baseline: { run_id: base.run_id }, candidate: { run_id: passed.run_id }, limits: { step_time_increase_frac: 0 } })).json()).verdict, 'pass');
  const named = { baseline: { project: 'stand', label: 'ci' } };
  assert.equal((await (await check(named)).json()).baseline.run_id, passed.run_id);
  await remove(passed.run_id);
  await problem(assert, await check(named), 404, 'not-found');
});

test('deleting a run and making it a baseline at once never does both', async () => {
  const put = (id) => daemon.fetch('/v1/baselines/race/main', { method: 'PUT', body: JSON.stringify({ run_id: id }), headers: { 'Content-Type': 'application/json' } });
  for (let i = 0; i < 20; i++) {
    const { run_id: id } = await store({ project: 'race' });
    const [deleted, set] = await Promise.all([remove(id), put(id)]);
    assert.ok((deleted.status === 204) !== (set.status < 300), `${deleted.status} and ${set.status}`);
    assert.equal(sql(DATABASE, 'SELECT count(*) FROM baselines JOIN runs ON runs.id = run_id WHERE deleted_at IS NOT NULL'), '0');
  }
});

test('what is deleted for long is purged, what is old is deleted, and baselines and measured runs stay', async () => {
  const [purged, restorable, old, measured, pinned, young] = await Promise.all(Array.from({ length: 6 }, () => store({ project: 'keep' })));
  await daemon.post(`/v1/runs/${measured.run_id}/measurements`, { step_time_s: 3, source: 's', at: '2026-11-20' });
  await daemon.fetch('/v1/baselines/keep/main', { method: 'PUT', body: JSON.stringify({ run_id: pinned.run_id }), headers: { 'Content-Type': 'application/json' } });
  await Promise.all([purged, restorable].map((run) => remove(run.run_id)));
  sql(DATABASE, `UPDATE runs SET deleted_at = now() - interval '31 days' WHERE id = '${purged.run_id}'`);
  sql(DATABASE, `ALTER TABLE runs DISABLE TRIGGER runs_immutable; UPDATE runs SET created_at = now() - interval '91 days' WHERE id IN ('${[old, measured, pinned].map((run) => run.run_id).join("','")}'); ALTER TABLE runs ENABLE TRIGGER runs_immutable`);
  const tidy = await startDaemon({ database: url, args: ['--keep-days', '90'] });
  try {
    await until('tidied', () => tidy.log.some((line) => line.msg === 'runs tidied'));
    const line = tidy.log.find((row) => row.msg === 'runs tidied');
    assert.deepEqual([line.retired, line.purged], ['1', '1']);
    assert.deepEqual(new Set(await ids('project=keep')), new Set([measured, pinned, young].map((run) => run.run_id)));
    await problem(assert, await restore(purged.run_id), 404, 'not-found');
    for (const run of [restorable, old]) assert.equal((await restore(run.run_id)).status, 200, 'not for ever yet');
    const noted = (run) => sql(DATABASE, `SELECT string_agg(action || ' ' || principal, ', ' ORDER BY id) FROM audit WHERE object = 'runs' AND object_id = '${run.run_id}' AND at > now() - interval '1 minute'`);
    assert.match(noted(purged), /^insert , delete , update , purge retention$/);
    assert.match(noted(old), /delete retention, restore$/);
  } finally {
    await tidy.stop();
  }
});

test('a project sees, tags, deletes and restores its own runs only', async () => {
  const digest = (token) => createHash('sha256').update(token).digest('hex');
  const { folder, remove: cleanUp } = scratchFolder();
  const database = freshDatabase('api_history_projects');
  const file = join(folder, 'tokens');
  writeFileSync(file, `all read,write,admin ${digest('all')}\n`);
  const closed = await startDaemon({ database, args: ['--tokens-file', file, '--tokens-database'] });
  try {
    sql('api_history_projects', `INSERT INTO tokens (name, sha256, scopes, project) VALUES ('a', '${digest('a')}', 'read,write,admin', 'alpha')`);
    const as = (token, path, options = {}) => closed.fetch(path, { ...options, headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...options.headers } });
    await until('the token counts', async () => (await as('a', '/v1/runs')).status === 200);
    const make = async (token, project) => (await (await as(token, '/v1/estimate', { method: 'POST', body: JSON.stringify(estimateRequest({ store: true, project })) })).json()).run_id;
    const mine = await make('a', 'alpha');
    const theirs = await make('all', 'beta');
    for (const query of ['', '?q=llama', '?sort=step_time_s', '?project=alpha', '?q=v6e&sort=-hbm_bytes_per_device'])
      assert.deepEqual((await (await as('a', `/v1/runs${query}`)).json()).runs.map((run) => run.run_id), [mine], query);
    assert.deepEqual((await (await as('a', '/v1/runs?project=beta')).json()).runs, []);
    for (const [path, options] of [['', { method: 'DELETE' }], ['', { method: 'PATCH', body: '{"tags":["x"]}' }], ['/restore', { method: 'POST', headers: {} }]])
      await problem(assert, await as('a', `/v1/runs/${theirs}${path}`, options), 404, 'not-found');
    assert.equal((await as('a', `/v1/runs/${mine}`, { method: 'PATCH', body: '{"tags":["x"]}' })).status, 200);
    assert.equal((await as('a', `/v1/runs/${mine}`, { method: 'DELETE' })).status, 204);
    assert.deepEqual((await (await as('a', '/v1/runs?deleted=true')).json()).runs.map((run) => run.run_id), [mine]);
    assert.equal((await as('a', `/v1/runs/${mine}/restore`, { method: 'POST' })).status, 200);
    assert.equal(sql('api_history_projects', `SELECT count(*) FROM audit WHERE principal = 'a' AND action IN ('update', 'delete', 'restore') AND object_id = '${mine}'`), '3');
  } finally {
    await closed.stop();
    cleanUp();
  }
});

const otherEngine = (run, id, slower = 2) => {
  sql(DATABASE, `INSERT INTO runs (id, kind, project, label, model, chip, topology, step_time_s, hbm_bytes_per_device, fits, engine_version, catalog_hash, request, response)
    SELECT '${id}', kind, project, label, model, chip, topology, step_time_s * ${slower}, hbm_bytes_per_device, fits, '0.9.0', 'oldhash', request,
    regexp_replace(replace(response::text, '"version":"', '"version":"0.'), '"step_time_s":([0-9.]+)', '"step_time_s":' || step_time_s * ${slower})::json FROM runs WHERE id = '${run.run_id}'`);
  return id;
};
const again = (id) => daemon.fetch(`/v1/runs/${id}/reevaluate`, { method: 'POST' });

test('an old run is asked again: a new run that names it, both numbers, both engines, and what moved', async () => {
  const run = await store({ project: 'again', label: 'main' });
  const old = otherEngine(run, '01a1fc9a-21ef-7bb3-a4fd-a2b739d7b001');
  const response = await again(old);
  assert.equal(response.status, 201, await response.clone().text());
  const told = await response.json();
  assert.equal(response.headers.get('location'), `/v1/runs/${told.run_id}`);
  assert.deepEqual([told.reevaluates, told.before.run_id, told.after.run_id], [old, old, told.run_id]);
  assert.ok(Math.abs(told.before.step_time_s / run.step_time_s - 2) < 1e-9);
  assert.equal(told.after.step_time_s, run.step_time_s);
  assert.ok(Math.abs(told.step_time_change_frac + 0.5) < 1e-9);
  assert.equal(told.hbm_change_frac, 0);
  assert.deepEqual(told.after.engine, told.engine);
  assert.notEqual(told.before.engine.version, told.engine.version);
  assert.deepEqual(told.compare.runs.map((row) => row.run_id), [old, told.run_id]);
  const stored = await get(`/v1/runs/${told.run_id}`);
  assert.deepEqual([stored.reevaluates, stored.project, stored.label, stored.step_time_s], [old, 'again', 'main', run.step_time_s]);
  assert.deepEqual(stored.request, (await get(`/v1/runs/${old}`)).request);
  assert.equal((await get(`/v1/runs/${old}`)).step_time_s, told.before.step_time_s, 'the old one is as it was');
});

test('an advise is asked again whole; what has no step time, or is refused today, is said and stores nothing', async () => {
  const request = JSON.parse(golden('advise-llama70b-64c.json'));
  const advised = await (await daemon.post('/v1/advise', { ...request, store: true, project: 'again-advise' })).json();
  const told = await (await again(advised.run_id)).json();
  assert.equal((await get(`/v1/runs/${told.run_id}`)).response.ranked.length, advised.ranked.length);
  assert.equal(told.step_time_change_frac, 0);
  const kernel = await (await daemon.post('/v1/kernels/simulate', { ...JSON.parse(golden('simulate-matmul.json')), store: true, project: 'again-none' })).json();
  await problem(assert, await again(kernel.run_id), 422, 'invalid-request');
  const run = await store({ project: 'again-none' });
  const id = '01a1fc9a-21ef-7bb3-a4fd-a2b739d7b002';
  sql(DATABASE, `INSERT INTO runs (id, kind, project, step_time_s, fits, engine_version, catalog_hash, request, response)
    SELECT '${id}', kind, project, step_time_s, fits, '0.9.0', 'h', replace(request::text, 'llama3.1-8b', 'llama0.1-8b')::json, response FROM runs WHERE id = '${run.run_id}'`);
  assert.match(JSON.stringify(await problem(assert, await again(id), 422, 'invalid-request')), /today's words/);
  assert.equal((await get('/v1/runs?project=again-none')).runs.length, 3, 'nothing was stored');
  await problem(assert, await again('01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072'), 404, 'not-found');
});

const measure = (run, body, type, query = '') => daemon.fetch(`/v1/runs/${run}/measurements${query}`, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers: { 'Content-Type': type ?? 'application/json' } });

test('the file that MaxText writes its metrics to is a measurement, with the scatter of its steps', async () => {
  const run = await store({ project: 'jsonl' });
  const devices = run.cluster.devices;
  // As MaxText's metric logger writes it: Python's json.dumps, NaN and all; a step of evaluation has no perf/ members.
  const line = (step, seconds) => `{"learning/loss": NaN, "learning/total_weights": 65536.0, "perf/step_time_seconds": ${seconds}, "perf/per_device_tflops": 100.5, "perf/per_device_tflops_per_sec": ${100.5 / seconds}, "perf/per_device_tokens": ${run.tokens_per_step / devices}, "perf/per_device_tokens_per_sec": ${run.tokens_per_step / devices / seconds}, "learning/current_learning_rate": 3e-05, "step": ${step}.0, "run_name": "r \\"seconds: 1\\""}\n`;
  const evaluation = '{"eval/step_time_seconds": 0.1, "eval/avg_loss": 2.5, "step": 5.0, "run_name": "r"}\n';
  const file = [line(0, 90), line(1, 9), line(2, 7), line(3, 3), line(4, 3.1), evaluation, line(5, 2.9), line(6, 3.3), line(7, 60)].join('');
  for (const [type, status] of [['application/jsonl', 201], ['application/x-ndjson', 200], ['text/plain', 200]]) {
    const response = await measure(run.run_id, file, type, `?source=${encodeURIComponent(type)}`);
    const row = await response.json();
    assert.equal(response.status, status, JSON.stringify(row));
    assert.deepEqual([row.measured_step_time_s, row.steps_count, row.warm_up_steps_count], [3.1, 5, 3]);
    assert.deepEqual([row.measured_step_time_p25_s, row.measured_step_time_p75_s], [3, 3.3]);
    assert.ok(Math.abs(row.measured_step_time_mad_s - 0.2) < 1e-9, 'one slow step moves neither the time nor the scatter');
    assert.ok(Math.abs(row.measured_tokens_per_s_per_chip / (run.tokens_per_step / 3.1 / run.cluster.chips) - 1) < 1e-9);
  }
  const given = await (await measure(run.run_id, { step_time_s: 3, source: 'given', at: '2026-11-20' })).json();
  assert.deepEqual([given.steps_count, given.warm_up_steps_count, given.measured_step_time_mad_s], [null, null, null]);
  await problem(assert, await measure(run.run_id, evaluation, 'application/jsonl'), 422, 'invalid-request');
  await problem(assert, await measure(run.run_id, line(0, 90) + line(1, 3), 'application/jsonl'), 422, 'invalid-request');
  await problem(assert, await measure(run.run_id, file, 'application/xml'), 415, 'unsupported-media-type');
});

test('a log that begins late says that it may be a part of one that is here', async () => {
  const run = await store({ project: 'late' });
  const lines = (from, count) => Array.from({ length: count }, (_, i) => `completed step: ${from + i}, seconds: ${3 + i / 100}, TFLOP/s/device: 1\n`).join('');
  const send = async (text) => (await measure(run.run_id, text, 'text/plain')).json();
  assert.ok(!('note' in await send(lines(0, 8))));
  const late = await send(lines(5120, 8));
  assert.match(late.note, /^the log begins with step 5120\. Where it is the end of a longer one, .* counts as often: DELETE /);
  const again_ = await send(lines(5120, 9));
  assert.deepEqual([again_.measurement_id, again_.note], [late.measurement_id, late.note], 'it has grown');
  assert.equal((await get(`/v1/runs/${run.run_id}/measurements`)).measurements_count, 2);
});

test('accuracy of many models is answered in time, each with its drift', async () => {
  const run = await store({ project: 'many-models' });
  sql(DATABASE, `INSERT INTO runs (id, kind, project, model, chip, engine_version, catalog_hash, request, response)
      SELECT uuid_v7(), kind, project, 'many-' || n % 400, chip, engine_version, catalog_hash, '{}', '{}' FROM runs, generate_series(1, 1600) n WHERE id = '${run.run_id}';
    INSERT INTO measurements (id, run_id, measured_at, source, measured_step_time_s, step_time_s, step_time_low_s, step_time_high_s, hbm_bytes_per_device)
      SELECT uuid_v7(), r.id, now() - d * interval '1 day', 's', CASE WHEN d > 5 THEN 3 ELSE 4 END, 3, 2, 5, 1e9 FROM runs r, generate_series(1, 10) d WHERE r.model LIKE 'many-%'`);
  const { groups, drift } = await get('/v1/accuracy?project=many-models&limit=1');
  assert.equal(groups.length, 400);
  assert.deepEqual([drift.drifts, groups[399].drift.drifts, groups[399].drift.earlier_count], [true, true, 20]);
});

test('a run with ten thousand measurements shows them in pages, with their number', async () => {
  const { run_id: id } = await store({ project: 'measured-much' });
  sql(DATABASE, `INSERT INTO measurements (id, run_id, rank, measured_at, source, measured_step_time_s, step_time_s, step_time_low_s, step_time_high_s, hbm_bytes_per_device)
    SELECT uuid_v7(), '${id}', CASE WHEN d <= 3 THEN 2 ELSE 1 END, now() - d * interval '1 minute', 's', CASE WHEN d > 5000 THEN 3 ELSE 4 END, 3, 2, 5, 1e9 FROM generate_series(1, 10000) d`);
  const path = `/v1/runs/${id}/measurements`;
  const first = await daemon.fetch(`${path}?limit=200`);
  const page = await first.json();
  assert.deepEqual([first.status, page.measurements.length, page.measurements_count, page.drift.drifts], [200, 200, 10000, true]);
  assert.equal(first.headers.get('link'), `<${path}?limit=200&cursor=${page.next_cursor}>; rel="next"`);
  assert.equal((await get(path)).measurements.length, 50);
  const second = await get(`${path}?limit=200&cursor=${page.next_cursor}`);
  assert.equal(new Set([...page.measurements, ...second.measurements].map((one) => one.measurement_id)).size, 400);
  const ranked = await get(`${path}?rank=2`);
  assert.deepEqual([ranked.measurements.map(({ rank }) => rank), ranked.measurements_count, ranked.next_cursor], [[2, 2, 2], 3, null]);
  for (const query of ['limit=201', 'rank=0', 'cursor=x', 'since=2026-01-01']) await problem(assert, await daemon.fetch(`${path}?${query}`), 400, 'bad-request');
});

test('drift is what the same plans take more or less than before, beyond their scatter', async () => {
  const series = async (project, values) => {
    const run = await store({ project });
    for (const [day, value] of values.entries())
      assert.equal((await measure(run.run_id, { step_time_s: value, source: 's', at: `2026-10-${10 + day}` })).status, 201);
    return (await get(`/v1/runs/${run.run_id}/measurements`)).drift;
  };
  const few = await series('drift-few', [3, 3, 3, 4, 4]);
  assert.deepEqual([few.drifts, few.change_frac], [null, null]);
  assert.match(few.says, /not known: there are 5 .* 6 are needed/);
  const slower = await series('drift-slower', [3, 3.01, 2.99, 3, 3.3, 3.31, 3.29, 3.3]);
  assert.equal(slower.drifts, true);
  assert.ok(Math.abs(slower.change_frac - 0.1) < 1e-9);
  assert.deepEqual([slower.earlier_count, slower.recent_count], [4, 4]);
  assert.match(slower.says, /^drift: the last 4 measurements took 10.0 % more than the 4 before/);
  const noisy = await series('drift-noisy', [3, 3.6, 2.7, 3.2, 3.5, 2.9, 3.7, 3.1]);
  assert.equal(noisy.drifts, false, JSON.stringify(noisy));
  assert.ok(noisy.threshold_frac > 0.1);
  const steady = await series('drift-steady', [3, 3.01, 2.99, 3, 3.03, 3.04, 3.02, 3.03]);
  assert.equal(steady.drifts, false, '1 % is not called drift, however steady');
  // Two plans of one project, one measured early and one late: another plan is no drift, nor is another prediction.
  const small = await store({ project: 'drift-plans' }, { per_device_batch_size: 1 });
  const large = await store({ project: 'drift-plans' }, { per_device_batch_size: 3 });
  for (let day = 0; day < 8; day++)
    await measure((day < 4 ? small : large).run_id, { step_time_s: day < 4 ? 1.0 : 3.5, source: 's', at: `2026-10-1${day}` });
  const plans = await get('/v1/accuracy?project=drift-plans');
  assert.deepEqual([plans.drift.drifts, plans.groups[0].drift.drifts], [false, false], JSON.stringify(plans.drift));
  const whole = await get('/v1/accuracy?project=drift-slower');
  assert.deepEqual([whole.drift.drifts, whole.groups[0].drift.change_frac], [true, slower.change_frac]);
});

test('a run is asked again once by each Idempotency-Key, also by requests that come at once', async () => {
  const { run_id: old } = await store({ project: 'again-once' });
  const { run_id: other } = await store({ project: 'again-once' });
  const post = (id, key) => daemon.fetch(`/v1/runs/${id}/reevaluate`, { method: 'POST', headers: { 'Idempotency-Key': key } });
  const answers = await Promise.all([1, 2, 3].map(() => post(old, 'again')));
  assert.deepEqual(answers.map(({ status }) => status), [201, 201, 201]);
  assert.equal(answers.filter((answer) => answer.headers.get('idempotency-replayed') === 'true').length, 2);
  const bodies = await Promise.all(answers.map((answer) => answer.json()));
  for (const body of bodies) assert.deepEqual(body, bodies[0]);
  assert.equal(answers[2].headers.get('location'), `/v1/runs/${bodies[0].run_id}`);
  assert.equal((await ids('project=again-once')).length, 3);
  const { errors } = await problem(assert, await post(other, 'again'), 422, 'invalid-request');
  assert.equal(errors[0].pointer, '/headers/Idempotency-Key');
  assert.equal((await post(old, 'anew')).headers.get('idempotency-replayed'), null);
  assert.equal((await ids('project=again-once')).length, 4);
});
