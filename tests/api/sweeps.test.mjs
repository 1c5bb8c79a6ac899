// Sweeps: many requests at once, worked off by every daemon on the database. What a client believes after 202: each of its
// requests ends exactly once (who is killed: sweep_kills.test.mjs); it can look on, come back, and stop it.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { adviseRequest, freshDatabase, problem, sleep, sql, startDaemon, until } from './daemon.mjs';
import { base, batches, grid, sweepsOf } from './sweeps.mjs';

const name = 'api_sweeps';
let daemon;
let url;
before(async () => {
  url = freshDatabase(name);
  daemon = await startDaemon({ database: url });
});
after(() => daemon.stop());

const { get, create, ended } = sweepsOf(() => daemon);

test('a grid is the product of its axes, and every item has the answer that it would have alone', async () => {
  const { path, sweep } = await create({ kind: 'estimate', label: 'l', grid: { base, axes: { '/config/per_device_batch_size': [1, 2], '/config/remat_policy': ['full', 'minimal', 'save_qkv_proj'] } } });
  assert.equal(sweep.items_count, 6);
  const done = await ended(path);
  assert.deepEqual([done.state, done.done_count, done.failed_count, done.queued_count, done.running_count], ['done', 6, 0, 0, 0]);
  assert.deepEqual(done.items.map((item) => item.item), [0, 1, 2, 3, 4, 5]);
  const fifth = await get(`${path}/items/4`);
  assert.deepEqual([fifth.request.config.per_device_batch_size, fifth.request.config.remat_policy], [2, 'minimal']);
  const alone = await (await daemon.post('/v1/estimate', fifth.request)).json();
  assert.deepEqual({ ...fifth.response }, alone);
  assert.ok(Math.abs(done.items[4].step_time_s / alone.step_time_s - 1) < 1e-9);
  assert.equal(done.items[4].tokens_per_s_per_chip, alone.tokens_per_s_per_chip);
  assert.equal(done.items[4].fit_verdict, alone.fit_verdict);
  const [batch, policy] = ['/config/per_device_batch_size', '/config/remat_policy'];
  const expected = [{ [batch]: 1, [policy]: 'full' }, { [policy]: 'minimal' }, { [policy]: 'save_qkv_proj' }, { [batch]: 2 }, { [batch]: 2, [policy]: 'minimal' }, { [batch]: 2, [policy]: 'save_qkv_proj' }];
  assert.deepEqual(done.items.map((item) => item.changes), expected, 'what each has otherwise than the first, the first than the last');
});

test('listed requests of each kind are answered; one that is refused fails with its problem and holds nothing up', async () => {
  const requests = Array.from({ length: 55 }, () => base);
  requests.push({ ...base, model: 'no-such-model' }); // past those that are read at once
  const { path } = await create({ kind: 'estimate', requests });
  const done = await ended(path);
  assert.deepEqual([done.state, done.done_count, done.failed_count], ['done', 55, 1]);
  const page = await get(`${path}?state=failed`);
  assert.equal(page.items.length, 1);
  assert.equal(page.items[0].problem.errors[0].pointer, '/model');
  assert.deepEqual(page.items[0].changes, { '/model': 'no-such-model' });
  const odd = await ended((await create({ kind: 'estimate', requests: [...requests.slice(0, 55), { ...base, config: 5 }] })).path);
  assert.deepEqual([odd.state, odd.failed_count], ['done', 1], 'a list with an item of no form is shown');
  const advice = await ended((await create({ kind: 'advise', requests: [adviseRequest()] })).path);
  assert.ok(advice.items[0].step_time_s > 0 && advice.items[0].tokens_per_s_per_chip > 0);
});

test('each item has the warnings of its answer, those of its first plan once', async () => {
  const odd = (config) => ({ ...base, config: { ...base.config, ...config } });
  const told = (item) => item.warnings.map(({ code, pointer }) => `${code} ${pointer}`);
  const { path } = await create({ kind: 'estimate', requests: [odd({}), odd({ no_such_key: 1, nor_this: 2 })] });
  const done = await ended(path);
  assert.deepEqual(told(done.items[1]), ['unknown-key /config/no_such_key', 'unknown-key /config/nor_this', ...told(done.items[0])]);
  const second = await get(`${path}/items/1`);
  assert.deepEqual([second.response.warnings, done.items[1].warnings], [second.warnings, second.warnings]);
  const overrides = { hbm_bytes_per_chip: 40e9 };
  const request = adviseRequest({ pins: { no_such_key: 1 } });
  const advice = await ended((await create({ kind: 'advise', requests: [{ ...request, cluster: { ...request.cluster, overrides } }] })).path);
  const codes = advice.items[0].warnings.map(({ code }) => code);
  assert.deepEqual(codes.slice(0, 2), ['what-if-hardware', 'unknown-key']);
  const sentences = advice.items[0].warnings.map(({ detail }) => detail);
  assert.equal(new Set(sentences).size, sentences.length, 'what the request and its plan have in common is said once');
  const { path: kernels } = await create({ kind: 'simulate', requests: [{ chip: 'v6e', kernel: 'matmul', shape: { m: 1024, k: 1024, n: 1024, dtype: 'bfloat16' } }] });
  assert.deepEqual((await ended(kernels)).items[0].warnings, []);
});

test('mistakes are told at once, all of them', async () => {
  for (const [body, pointers, slug = 'invalid-request'] of [
    [{}, ['/kind', '']], [{ kind: 'guess', requests: [] }, ['/kind', '/requests']], [{ kind: 'estimate', requests: [1, base, []] }, ['/requests/0', '/requests/2']],
    [{ kind: 'estimate', requests: [base, { ...base, model: 'x' }, { ...base, nonsense: 1 }] }, ['/requests/1/model', '/requests/2/nonsense']],
    [{ kind: 'estimate', grid: { base, axes: { config: [1], '/model/deeper': [1], '/config/x': [] } } }, ['/grid/axes/config', '/grid/axes/~1model~1deeper', '/grid/axes/~1config~1x']],
    [{ kind: 'estimate', grid: { base, axes: { '/config/a': batches(101), '/config/b': batches(101) } } }, ['/grid/axes'], 'out-of-range'],
    [{ kind: 'estimate', requests: [base], grid: { base, axes: {} } }, ['']],
    [{ kind: 'estimate', grid: { base, axes: { '/config/remat_policy': ['fulll'], '/config/per_device_batch_size': [1] } } }, ['/grid/axes/~1config~1remat_policy/0']],
    [{ kind: 'estimate', grid: { base: { ...base, model: 'x' }, axes: { '/config': [{ ...base.config, remat_policy: 'fulll' }] } } }, ['/grid/axes/~1config/0/remat_policy', '/grid/base/model']],
  ]) {
    const document = await problem(assert, await daemon.post('/v1/sweeps', body), 422, slug).catch(async (error) => {
      throw new Error(`${JSON.stringify(body).slice(0, 200)}: ${error.message}`);
    });
    const found = document.errors.map((error) => error.pointer);
    for (const pointer of pointers) assert.ok(found.includes(pointer), `${pointer} in ${JSON.stringify(document.errors)}`);
  }
  await problem(assert, await daemon.fetch('/v1/sweeps/x'), 404, 'not-found');
  await problem(assert, await daemon.fetch('/v1/sweeps/00000000-0000-7000-8000-000000000000/events'), 404, 'not-found');
  const state = await problem(assert, await daemon.fetch('/v1/sweeps?state=queued'), 400, 'bad-request');
  assert.equal(state.errors[0].hint, 'running, done or cancelled', 'what a sweep may be, which is less than an item');
});

test('a value of a grid that no combination takes is told at once, wherever it stands in its axis', async () => {
  const axes = { '/config/per_device_batch_size': [1, 'two', 4], '/config/remat_policy': ['full', 'minimal', 'fulll'], '/cluster/topology': ['2x4', '4x4'] };
  const { errors } = await problem(assert, await daemon.post('/v1/sweeps', { kind: 'estimate', grid: { base, axes } }), 422, 'invalid-request');
  assert.deepEqual(errors.map((error) => error.pointer).sort(), ['/grid/axes/~1config~1per_device_batch_size/1', '/grid/axes/~1config~1remat_policy/2']);
  // Refused beside the first value of the other axis alone: those items fail, the others are answered.
  const pairs = { '/cluster/chip': ['v6e', 'v5p'], '/cluster/topology': ['2x4', '4x4x4'] };
  const mixed = await ended((await create({ kind: 'estimate', grid: { base: { ...base, config: {} }, axes: pairs } })).path);
  assert.deepEqual(mixed.items.map((item) => item.state), ['done', 'failed', 'failed', 'done']);
  const second = { '/cluster/topology': ['2x4', '4x4'], '/config/remat_policy': ['full', 'fulll'] };
  const told = await problem(assert, await daemon.post('/v1/sweeps', { kind: 'estimate', grid: { base: { ...base, model: 'x' }, axes: second } }), 422, 'invalid-request');
  assert.deepEqual(told.errors.map((error) => error.pointer).sort(), ['/grid/axes/~1config~1remat_policy/1', '/grid/base/model'], 'each mistake once');
});

test('an axis over a key that MaxText does not have is refused: no answer would change with it', async () => {
  const axis = '/config/per_device_batch_sise';
  const { errors } = await problem(assert, await daemon.post('/v1/sweeps', { kind: 'estimate', grid: { base, axes: { '/config/remat_policy': ['full', 'minimal'], [axis]: [1, 2] } } }), 422, 'invalid-request');
  assert.deepEqual(errors.map(({ pointer, code }) => [pointer, code]), [[`/grid/axes/${axis.replaceAll('/', '~1')}`, 'unknown-key']]);
  assert.match(`${errors[0].detail} ${errors[0].hint}`, /is not a MaxText key: no answer would change with it did you mean per_device_batch_size/);
  await create({ kind: 'estimate', grid: { base: { ...base, config: { ...base.config, key_of_a_fork: 1 } }, axes: { [axis]: [1], '/config/remat_policy': ['full', 'minimal'] } } });
});

test('a request of another project than the sweep is refused with the sweep, as it would be alone', async () => {
  for (const [body, pointer] of [[{ requests: [base, { ...base, project: 'other' }] }, '/requests/1/project'], [{ grid: { base: { ...base, project: 'other' }, axes: {} } }, '/grid/base/project']]) {
    const { errors } = await problem(assert, await daemon.post('/v1/sweeps', { kind: 'estimate', project: 'own', ...body }), 403, 'forbidden');
    assert.deepEqual(errors.map((error) => [error.pointer, error.detail]), [[pointer, "the sweep is for the project 'own'"]]);
  }
  await ended((await create({ kind: 'estimate', requests: [{ ...base, project: 'one' }, { ...base, project: 'two' }] })).path); // of no project
});

test('axes that lie in each other are refused, with both of them', async () => {
  for (const [first, second] of [['/config', '/config/per_device_batch_size'], ['/config/per_device_batch_size', '/config']]) {
    const values = (axis) => (axis === '/config' ? [base.config, { ...base.config, remat_policy: 'minimal' }] : [1, 2]);
    const grid_ = { base, axes: { '/model': [base.model], [first]: values(first), [second]: values(second) } };
    const { errors } = await problem(assert, await daemon.post('/v1/sweeps', { kind: 'estimate', grid: grid_ }), 422, 'invalid-request');
    assert.deepEqual(errors.map((error) => error.pointer), [`/grid/axes/${second.replaceAll('/', '~1')}`]);
    assert.ok(errors[0].detail.includes(`${first} and ${second}`), errors[0].detail);
  }
  await create({ kind: 'estimate', grid: { base, axes: { '/config/a': [1], '/config/ab': [1] } } }); // beside each other
});

test('what an item has otherwise is said in JSON pointers, whatever its keys are', async () => {
  const odd = (value) => ({ ...base, config: { ...base.config, 'a/b~c': value } });
  const { items } = await ended((await create({ kind: 'estimate', requests: [odd(1), odd(2)] })).path);
  assert.deepEqual(items.map((item) => item.changes), [{ '/config/a~1b~0c': 1 }, { '/config/a~1b~0c': 2 }]);
});

test('pages of items and of sweeps have every row once', async () => {
  const { path } = await create(grid(23, { project: 'pages' }));
  await ended(path);
  const seen = [];
  for (let cursor = ''; cursor !== null;) {
    const page = await get(`${path}?limit=5${cursor && `&cursor=${cursor}`}`);
    seen.push(...page.items.map((item) => item.item));
    cursor = page.next_cursor;
  }
  assert.deepEqual(seen, batches(23, 0));
  await create(grid(1, { project: 'pages' }));
  const first = await get('/v1/sweeps?project=pages&limit=1');
  const second = await get(`/v1/sweeps?project=pages&limit=1&cursor=${first.next_cursor}`);
  assert.equal(second.next_cursor, null);
  assert.equal(`/v1/sweeps/${second.sweeps[0].sweep_id}`, path);
});

// A client as browsers have it: asks again with the id of the last event until it is told that there are no more.
async function listen(path, { stopAfter = Infinity, last } = {}) {
  const events = [];
  for (;;) {
    const response = await daemon.fetch(`${path}/events`, { headers: last ? { 'Last-Event-ID': last } : {} });
    if (response.status === 204) return { events, last, ended: true };
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    for (const block of (await response.text()).split('\n\n')) {
      const fields = Object.fromEntries(block.split('\n').filter(Boolean).map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]));
      if (!fields.data) continue;
      last = fields.id;
      events.push({ ...JSON.parse(fields.data), event: fields.event });
    }
    if (events.length >= stopAfter) return { events, last, ended: false };
    await sleep(30);
  }
}

test('the metrics count what the engine does for sweeps', async () => {
  const value = async (metric) => Number((await (await daemon.fetch('/metrics')).text()).match(new RegExp(`^tpu_advisor_${metric} ([\\d.]+)$`, 'm'))[1]);
  const metrics = ['engine_evaluations_total', 'engine_seconds_total'];
  const begin = performance.now();
  const before_ = await Promise.all(metrics.map(value));
  await ended((await create(grid(5))).path);
  const after_ = await Promise.all(metrics.map(value));
  assert.ok(after_[0] >= before_[0] + 5 && after_[1] > before_[1], `${before_} ${after_}`);
  const most = (performance.now() - begin) / 1000; // there is one worker of sweeps
  assert.ok(after_[1] - before_[1] < most, `seconds: ${after_[1] - before_[1]} in ${most}`);
});

test('events tell each item once, also to a client that was away in the middle', async () => {
  const { path } = await create(grid(300));
  const first = await listen(path, { stopAfter: 5 });
  await sleep(200);
  const rest = await listen(path, { last: first.last });
  const all = [...first.events, ...rest.events];
  const items = all.filter((event) => event.event === 'item').map((event) => event.item);
  assert.equal(items.length, 300);
  assert.equal(new Set(items).size, 300);
  assert.deepEqual([all.at(-1).event, all.at(-1).done_count], ['done', 300]);
  for (const id of ['x', '+1', '-1', '01', '1e3', '99999999999999999999'])
    await problem(assert, await daemon.fetch(`${path}/events`, { headers: { 'Last-Event-ID': id } }), 400, 'bad-request');
  for (const item of ['00', '+0', '-0', '%200', '300'])
    await problem(assert, await daemon.fetch(`${path}/items/${item}`), 404, 'not-found');
});

test('a cancelled sweep stops at once, keeps what is done, and says so', async () => {
  const { path } = await create({ kind: 'advise', grid: { base: adviseRequest({ search: { top_k: 20, sensitivities: true } }), axes: { '/workload/seq_len': batches(60, 4).map((i) => 1024 * i) } } });
  await until('some are done', async () => (await get(path)).done_count > 0);
  assert.equal((await daemon.fetch(path, { method: 'DELETE' })).status, 204);
  const now = await get(path);
  assert.equal(now.state, 'cancelled');
  assert.equal(now.done_count + now.failed_count + now.cancelled_count, 60);
  assert.ok(now.cancelled_count > 0);
  await sleep(500);
  assert.equal((await get(path)).done_count, now.done_count);
  assert.equal((await daemon.fetch(path, { method: 'DELETE' })).status, 204, 'again changes nothing');
  assert.equal((await listen(path)).events.at(-1).event, 'cancelled');
  await problem(assert, await daemon.fetch('/v1/sweeps/x', { method: 'DELETE' }), 404, 'not-found');
});

test('the same Idempotency-Key makes one sweep', async () => {
  const headers = { 'Idempotency-Key': 'once' };
  const [one, two] = await Promise.all([create(grid(3), headers), create(grid(3), headers)]);
  assert.equal(one.path, two.path);
  await problem(assert, await daemon.post('/v1/sweeps', grid(4), headers), 422, 'invalid-request');
});

test('a key is known for a day, then it makes another sweep, also of other requests', async () => {
  const headers = { 'Idempotency-Key': 'daily' };
  const replayed = async (count) => {
    const response = await daemon.post('/v1/sweeps', grid(count), headers);
    assert.equal(response.status, 202, await response.clone().text());
    return [(await response.json()).sweep_id, response.headers.get('idempotency-replayed')];
  };
  const age = (id, hours) => sql(name, `UPDATE sweeps SET created_at = now() - interval '${hours} hours' WHERE id = '${id}'`);
  const [first] = await replayed(2);
  age(first, 23);
  assert.deepEqual(await replayed(2), [first, 'true']);
  age(first, 25);
  const [second, again] = await replayed(2);
  assert.notEqual(second, first);
  assert.equal(again, null);
  age(second, 25);
  const [third] = await replayed(3);
  assert.deepEqual(await replayed(3), [third, 'true']);
  assert.equal((await get(`/v1/sweeps/${first}`)).items_count, 2, 'the sweeps stay');
});

test('what a deleted run answered is told by its sweep no more, until it is restored', async () => {
  const { path } = await create({ kind: 'estimate', project: 'deleted', requests: [{ ...base, store: true }, { ...base, store: true }] });
  const { items } = await ended(path);
  assert.deepEqual(items.map((item) => item.run_deleted), [false, false]);
  assert.equal((await daemon.fetch(`/v1/runs/${items[0].run_id}`, { method: 'DELETE' })).status, 204);
  const { response, ...alone } = await get(`${path}/items/0`);
  assert.equal(response, null);
  const { events } = await listen(path);
  assert.ok(items[0].warnings.length > 0);
  assert.deepEqual([(await get(path)).items[0].warnings, alone.warnings], [[], []]);
  for (const told of [(await get(path)).items[0], alone, events.find((event) => event.item === 0)]) {
    const { run_deleted: isDeleted, state, step_time_s: time, tokens_per_s_per_chip: speed, hbm_bytes_per_device: bytes, fits, fit_verdict: verdict, run_id: run } = told;
    assert.deepEqual([isDeleted, state, time, speed, bytes, fits, verdict, run], [true, 'done', null, null, null, null, null, null]);
  }
  assert.deepEqual((await get(path)).items[1], items[1]);
  assert.equal((await daemon.fetch(`/v1/runs/${items[0].run_id}/restore`, { method: 'POST' })).status, 200);
  assert.deepEqual((await get(path)).items, items);
});

test('what a purged run answered is gone from its sweep, and sweeps that ended long ago are deleted', async () => {
  const { path, sweep } = await create({ kind: 'estimate', project: 'retention', requests: [{ ...base, store: true }, { ...base, store: true }, base] });
  const { items } = await ended(path);
  const old = await create(grid(2, { project: 'retention' }));
  await ended(old.path);
  assert.equal((await daemon.fetch(`/v1/runs/${items[0].run_id}`, { method: 'DELETE' })).status, 204);
  sql(name, `UPDATE runs SET deleted_at = now() - interval '31 days' WHERE id = '${items[0].run_id}'`);
  sql(name, `UPDATE sweeps SET ended_at = now() - interval '91 days' WHERE id = '${old.sweep.sweep_id}'`);
  const tidy = await startDaemon({ database: url, args: ['--keep-days', '90'] });
  try {
    await until('the run is purged', () => sql(name, `SELECT count(*) FROM runs WHERE id = '${items[0].run_id}'`) === '0');
    await until('the old sweep is deleted', async () => (await daemon.fetch(old.path)).status === 404, 5000);
    assert.equal(sql(name, `SELECT count(*) FROM sweep_items WHERE sweep_id = '${old.sweep.sweep_id}'`), '0');
    const answers = [0, 1, 2].map((item) => get(`${path}/items/${item}`));
    assert.deepEqual((await Promise.all(answers)).map(({ state, response }) => [state, response?.step_time_s > 0]), [['done', false], ['done', true], ['done', true]]);
    const { sweeps } = await get('/v1/sweeps?project=retention');
    assert.deepEqual(sweeps.map((one) => one.sweep_id), [sweep.sweep_id]);
  } finally {
    await tidy.stop();
  }
});

test('requests that ask for it are stored as runs, of the sweep\'s project and label', async () => {
  const { path } = await create({ kind: 'estimate', project: 'stored', label: 'grid', grid: { base: { ...base, label: undefined, store: true }, axes: { '/config/gradient_accumulation_steps': [1, 2, 3] } } });
  const done = await ended(path);
  const { runs } = await get('/v1/runs?project=stored');
  assert.deepEqual(runs.map((run) => run.id ?? run.run_id).sort(), done.items.map((item) => item.run_id).sort());
  assert.deepEqual(runs.map((run) => run.label), Array(3).fill('grid'));
  const own = await ended((await create({ kind: 'estimate', project: 'stored', label: 'grid', requests: [{ ...base, store: true, label: 'own' }] })).path);
  assert.equal((await get(`/v1/runs/${own.items[0].run_id}`)).label, 'own', 'a request that says one keeps it');
  const requests = [...Array(50).fill(base), { ...base, store: true, project: 'other' }]; // past those that are read at once
  const { path: mixed } = await create({ kind: 'estimate', project: 'stored', requests });
  await ended(mixed);
  assert.equal((await get(`${mixed}?state=failed`)).items[0].problem.errors[0].pointer, '/project');
});

test('Prefer: respond-async gives an advise back at once, and its answer later', async () => {
  const request = adviseRequest({ workload: { seq_len: 4096, global_batch_sequences: 512 } });
  const response = await daemon.post('/v1/advise', request, { Prefer: 'respond-async, wait=5' });
  assert.equal(response.status, 202);
  assert.equal(response.headers.get('preference-applied'), 'respond-async');
  const path = response.headers.get('location');
  assert.equal((await ended(path)).done_count, 1);
  const { response: later } = await get(`${path}/items/0`);
  const now = await (await daemon.post('/v1/advise', request)).json();
  assert.deepEqual(later.ranked, now.ranked);
  const bad = await problem(assert, await daemon.post('/v1/advise', { ...request, model: 'x', cluster: 3 }, { Prefer: 'respond-async' }), 422, 'invalid-request');
  assert.ok(bad.errors.some((error) => error.pointer === '/model'), JSON.stringify(bad.errors));
});
