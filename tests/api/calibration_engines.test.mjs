// A calibration is of one engine: what is fitted are its predictions of the measured plans, not those that were stored with
// them; plans that it does not price are left out, each with why; and another engine that answers by it says so.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { adviseRequest, estimateRequest, freshDatabase, problem, sql, startDaemon } from './daemon.mjs';

const NAME = 'api_calibration_engines';
let daemon;
before(async () => { daemon = await startDaemon({ database: freshDatabase(NAME) }); });
after(() => daemon.stop());

const near = (actual, expected, what) => assert.ok(Math.abs(actual / expected - 1) < 1e-9, `${what}: ${actual} is not ${expected}`);
const json = async (response, status = 200) => {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
};
const get = async (path) => json(await daemon.fetch(path));
const request = (project, steps = 1, extra = {}) => estimateRequest({ project, config: { ...estimateRequest().config, gradient_accumulation_steps: steps }, ...extra });
const estimate = async (project, steps, extra) => json(await daemon.post('/v1/estimate', request(project, steps, extra)));
const fit = async (project) => json(await daemon.post('/v1/calibrations', { project }), 201);
const activate = async (calibration) => json(await daemon.fetch(`/v1/calibrations/${calibration.calibration_id}/activate`, { method: 'POST' }));
const record = async (run, estimated, slower = 1, rank = 1, day = 1) => json(await daemon.post(`/v1/runs/${run.run_id}/measurements?rank=${rank}`,
  { step_time_s: estimated.step_time_s * slower, hbm_bytes_per_device: estimated.hbm_bytes_per_device, source: 's', at: `2026-11-0${day}` }), 201);
async function measure(project, steps, slower, extra) {
  const run = await estimate(project, steps, { store: true, ...extra });
  await record(run, run, slower);
  return run;
}
// Stored runs do not change, but for who is above the rules.
const alter = (statement) => sql(NAME, `SET session_replication_role = replica; ${statement}`);
// As an engine would have stored them that predicted half of the time and of the memory.
const halve = (project) => {
  alter(`UPDATE measurements m SET step_time_s = m.step_time_s / 2, step_time_low_s = m.step_time_low_s / 2, step_time_high_s = m.step_time_high_s / 2,
    hbm_bytes_per_device = m.hbm_bytes_per_device / 2 FROM runs r WHERE r.id = m.run_id AND r.project = '${project}'`);
  alter(`UPDATE runs SET engine_version = '0.9.0+0123456789ab', step_time_s = step_time_s / 2, response = (response::jsonb || jsonb_build_object('step_time_s', step_time_s / 2,
    'hbm_bytes_per_device', (response ->> 'hbm_bytes_per_device')::float8 / 2, 'engine', '{"version": "0.9.0+0123456789ab", "catalog_hash": "0123456789abcdef", "calibration": "old"}'::jsonb))::json WHERE project = '${project}'`);
};

test('what another engine predicted of a measured plan is not fitted: a plan as fast as this one says has no bias', async () => {
  const runs = [];
  for (const steps of [1, 2, 4, 8]) runs.push(await measure('halved', steps));
  halve('halved');
  const made = await fit('halved');
  const [chip] = made.chips;
  for (const part of [chip.step_time, chip.hbm]) {
    assert.equal(part.measurements_count, 4);
    assert.ok(Math.abs(part.bias_frac) < 1e-6 && Math.abs(part.correction_frac) < 1e-6, JSON.stringify(part));
  }
  for (const row of made.rows) {
    const run = runs.find(({ run_id: id }) => id === row.run_id);
    near(row.published_step_time_s, run.step_time_s, 'step time');
    near(row.published_hbm_bytes_per_device, run.hbm_bytes_per_device, 'memory');
  }
  const { rows } = await get('/v1/accuracy?project=halved');
  for (const row of rows) near(row.error_frac, -0.5, 'what was told then stays in the accuracy');
});

test('plans are priced as they were asked for: of an advise, of other software', async () => {
  const wanted = new Map();
  for (const extra of [{ cluster: { chip: 'v6e', topology: '16x16' }, software: { maxtext: '0.2.2' } }, { cluster: { chip: 'v6e', topology: '16x16' } }]) {
    const advice = await json(await daemon.post('/v1/advise', adviseRequest({ project: 'asked', ...extra, store: true })));
    for (const rank of [1, 2, 3]) {
      const { estimate: estimated } = advice.ranked[rank - 1];
      for (const day of [1, 2]) await record(advice, estimated, 1.1, rank, day);
      wanted.set(`${advice.run_id} ${rank}`, estimated);
    }
  }
  const scaled = await measure('asked', 1, 1.1, { include: ['scaling'] });
  wanted.set(`${scaled.run_id} 1`, scaled);
  halve('asked');
  const made = await fit('asked');
  assert.equal(made.rows.length, 13);
  assert.equal(made.left_out_count, 0);
  for (const row of made.rows) {
    const estimated = wanted.get(`${row.run_id} ${row.rank}`);
    near(row.published_step_time_s, estimated.step_time_s, `step time of ${row.run_id} ${row.rank}`);
    near(row.published_hbm_bytes_per_device, estimated.hbm_bytes_per_device, 'memory');
  }
});

test('plans that the engine does not price are left out, counted, and each says why', async () => {
  const gone = await measure('refused', 1, 1.1);
  await record(gone, gone, 1.1, 1, 2);
  alter(`UPDATE runs SET request = (request::jsonb || '{"model": "llama-of-old"}')::json WHERE id = '${gone.run_id}'`);
  const none = await problem(assert, await daemon.post('/v1/calibrations', { project: 'refused' }), 422, 'invalid-request');
  assert.equal(none.errors[0].pointer, '/project');
  assert.match(none.errors[0].detail, /none of the measured plans.*llama-of-old/);
  for (const steps of [2, 4, 8]) await measure('refused', steps, 1.1);
  const made = await fit('refused');
  assert.equal(made.chips[0].step_time.measurements_count, 3);
  assert.equal(made.left_out_count, 2);
  assert.equal(made.left_out.length, 1);
  const [{ detail, ...left }] = made.left_out;
  assert.match(detail, /llama-of-old/);
  assert.deepEqual(left, { run_id: gone.run_id, rank: 1, measurements_count: 2, pointer: '/model', code: 'invalid-request' });
  assert.ok(!made.rows.some((row) => row.run_id === gone.run_id));
  const { calibrations } = await get('/v1/calibrations?project=refused');
  assert.deepEqual(calibrations.map((one) => [one.left_out_count, 'left_out' in one]), [[2, false]]);
});

test('a measurement says nothing of what-if hardware: neither accuracy nor a fit counts it, and both say so', async () => {
  const clusterOf = (overrides) => ({ cluster: { ...estimateRequest().cluster, overrides } });
  const faster = { clock_hz: 1.6e9 };
  const plain = [await measure('imagined', 1, 1.1), await measure('imagined', 2, 1.1, clusterOf({}))];
  const one = await measure('imagined', 4, 3, clusterOf(faster));
  await record(one, one, 3, 1, 2);
  const body = JSON.stringify({ ...request('imagined', 8, clusterOf(faster)), store: true }).replace('overrides', '\\u006fverrides');
  const spelled = await json(await daemon.fetch('/v1/estimate', { method: 'POST', body, headers: { 'Content-Type': 'application/json' } }));
  await record(spelled, spelled, 3);
  const { cluster: _, ...anywhere } = adviseRequest({ project: 'imagined', store: true });
  const machines = [{ chip: 'v6e', topology: '16x16' }, { chip: 'v5p', topology: '4x4x8' }];
  const left = [[spelled.run_id, 1, 1], [one.run_id, 1, 2]];
  const counted = plain.map(({ run_id: id }) => id);
  for (const which of [0, 1]) { // whichever is chosen is what-if hardware once
    const clusters = machines.map((machine, i) => (i === which ? { ...machine, overrides: faster } : machine));
    const advice = await json(await daemon.post('/v1/advise', { ...anywhere, clusters }));
    const [, { rank, estimate: second }] = advice.ranked;
    await record(advice, second, 2, rank);
    if (second.warnings.some(({ code }) => code === 'what-if-hardware')) left.push([advice.run_id, rank, 1]);
    else counted.push(advice.run_id);
  }
  assert.deepEqual([left.length, counted.length], [3, 3]);
  const check = ({ left_out: list, left_out_count: count }) => {
    assert.equal(count, left.reduce((sum, [, , each]) => sum + each, 0));
    assert.deepEqual(list.map((plan) => [plan.run_id, plan.rank, plan.measurements_count]).sort(), left.sort());
    for (const { pointer, code, detail } of list) {
      assert.deepEqual([pointer, code], ['/cluster/overrides', 'what-if-hardware']);
      assert.match(detail, /what-if hardware/);
    }
  };
  const accuracy = await get('/v1/accuracy?project=imagined');
  check(accuracy);
  assert.deepEqual(accuracy.rows.map((row) => row.run_id).sort(), counted.sort());
  assert.equal(accuracy.judged_count, counted.length);
  assert.equal((await get('/v1/accuracy?project=imagined&since=2026-11-02')).left_out_count, 1, 'the filter holds for these, too');
  const made = await fit('imagined');
  check(made);
  assert.deepEqual(made.rows.map((row) => row.run_id).sort(), counted.sort());
  await measure('imagined-alone', 1, 1, clusterOf(faster));
  const none = await problem(assert, await daemon.post('/v1/calibrations', { project: 'imagined-alone' }), 422, 'invalid-request');
  assert.match(none.errors[0].detail, /none of the measured plans.*what-if hardware/);
});

test('more plans than are read at a time are all fitted, and a fit ends with its deadline', async () => {
  const { run_id: first } = await measure('many', 1, 1.2);
  alter(`INSERT INTO runs SELECT (json_populate_record(r, json_build_object('id', gen_random_uuid()))).* FROM runs r, generate_series(1, 299) WHERE r.id = '${first}'`);
  alter(`INSERT INTO measurements SELECT (json_populate_record(m, json_build_object('id', gen_random_uuid(), 'run_id', r.id))).* FROM measurements m, runs r
    WHERE m.run_id = '${first}' AND r.project = 'many' AND r.id <> m.run_id`);
  const made = await fit('many');
  assert.deepEqual([made.rows.length, made.left_out_count, made.chips[0].step_time.runs_count], [300, 0, 300]);
  near(made.chips[0].step_time.bias_frac, 0.2, 'bias');
  await problem(assert, await daemon.post('/v1/calibrations', { project: 'many' }, { 'Request-Timeout': '0.001' }), 503, 'deadline');
});

const OUTDATED = 'calibration-of-another-engine';
const warned = (answer) => answer.warnings.filter(({ code }) => code === OUTDATED);

test('an answer by a calibration of another engine says so and what to do, until it is fitted again', async () => {
  for (const steps of [1, 2, 4, 8]) await measure('aged', steps, 1.2);
  const baseline = await estimate('aged', 3, { store: true });
  const advise = adviseRequest({ project: 'aged', cluster: { chip: 'v6e', topology: '16x16' } });
  for (const [version, hash, named] of [['0.9.0+0123456789ab', '0123456789abcdef', /engine 0\.9\.0\+0123456789ab \(catalog 0123456789abcdef\)/], ['', '', /an engine of an earlier release/]]) {
    const made = await fit('aged');
    const { version: own, catalog_hash: ownHash } = made.engine;
    assert.deepEqual([made.fitted_by, made.outdated], [{ version: own, catalog_hash: ownHash }, false]);
    sql(NAME, `UPDATE calibrations SET engine_version = '${version}', catalog_hash = '${hash}' WHERE id = '${made.calibration_id}'`);
    const active = await activate(made);
    assert.deepEqual([active.fitted_by, active.outdated, active.refusal], [version ? { version, catalog_hash: hash } : null, true, null]);
    for (const answer of [await estimate('aged', 3), await json(await daemon.post('/v1/advise', advise))]) {
      const [said] = warned(answer);
      assert.match(said.detail, named);
      assert.ok(said.detail.includes(made.calibration_id) && said.detail.includes(own), said.detail);
      assert.match(said.hint, /\/v1\/calibrations/);
    }
    assert.deepEqual(warned(await estimate('aged', 1, { cluster: { chip: 'v5p', topology: '2x2x2' } })), [], 'a chip that it does not correct');
    assert.deepEqual(warned(await estimate('fresh', 3)), [], 'another project');
    const verdict = await json(await daemon.post('/v1/checks', { baseline: { run_id: baseline.run_id }, candidate: request('aged', 3) }));
    assert.match(verdict.notes.find(({ code }) => code === 'calibration_of_another_engine').detail, named);
    const told = await json(await daemon.post('/v1/explain/oom', { message: 'RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 35.50G of 31.25G hbm.', request: request('aged', 3) }));
    assert.equal(warned(told.predicted).length, 1);
  }
  const again = await activate(await fit('aged'));
  assert.equal(again.outdated, false);
  const now = await estimate('aged', 3);
  assert.equal(now.engine.calibration, again.name);
  assert.deepEqual(warned(now), []);
});
