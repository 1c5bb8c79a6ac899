// One calibration for one question: a check prices both of its sides by the same one, a project's calibration is seen by that
// project only, a run that is asked again stays in its project, and a daemon that says it is ready knows what is in force.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { freshDatabase, join, problem, run, scratchFolder, sql, startDaemon, until, writeFileSync } from './daemon.mjs';

const NAME = 'api_calibrated';
const { folder, remove } = scratchFolder();
let daemon, closed, url;
const tokens = {};
before(async () => {
  url = freshDatabase(NAME);
  daemon = await startDaemon({ database: url });
  for (const project of ['slow', 'alpha', '']) {
    const made = await run(['token', 'create', project || 'all', '--scope', 'write', ...(project ? ['--project', project] : []), '--tokens-file', join(folder, 'tokens')]);
    assert.equal(made.status, 0, made.err);
    tokens[project] = { Authorization: `Bearer ${made.out.trim()}` };
  }
  for (const [project, factor] of [['slow', 1.3], ['fast', 0.77]]) baselines[project] = await calibrate(project, factor);
  closed = await startDaemon({ database: url, args: ['--tokens-file', join(folder, 'tokens')] });
});
after(async () => {
  await closed?.stop();
  await daemon.stop();
  remove();
});

const plan = (extra = {}, config = {}) => ({ model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4' },
  config: { per_device_batch_size: 1, max_target_length: 8192, ici_fsdp_parallelism: 16, remat_policy: 'full', ...config }, ...extra });
const dearer = (extra) => plan(extra, { ici_fsdp_parallelism: 4, ici_tensor_parallelism: 4 });
const json = async (response, status = 200) => {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
};
const estimate = async (extra, headers, from = daemon) => json(await from.post('/v1/estimate', plan(extra), headers));
const judge = async (body) => json(await daemon.post('/v1/checks', body));
const near = (actual, expected, what) => assert.ok(Math.abs(actual / expected - 1) < 1e-9, `${what}: ${actual} is not ${expected}`);

// The runs of the project's baseline, stored before its calibration was in force and after, and what it is called.
const baselines = {};
async function calibrate(project, factor) {
  const early = await estimate({ project, label: 'main', store: true });
  for (let day = 1; day < 6; day++) {
    const run = day === 1 ? early : await json(await daemon.post('/v1/estimate', plan({ project, store: true }, { gradient_accumulation_steps: day })));
    await json(await daemon.post(`/v1/runs/${run.run_id}/measurements`, { step_time_s: run.step_time_s * factor * (1 + day / 1000), hbm_bytes_per_device: run.hbm_bytes_per_device * 1.05, source: 's', at: `2026-11-0${day}` }), 201);
  }
  const { calibration_id: id } = await json(await daemon.post('/v1/calibrations', { project }), 201);
  await json(await daemon.fetch(`/v1/calibrations/${id}/activate`, { method: 'POST' }));
  const late = await estimate({ project, label: 'main', store: true });
  assert.ok(Math.abs(late.step_time_s / early.step_time_s - factor) < 0.07, `${early.step_time_s} became ${late.step_time_s}`);
  return { early, late, calibration: `calibration/${id}` };
}
const pin = (project, runId) => daemon.fetch(`/v1/baselines/${project}/main`, { method: 'PUT', body: JSON.stringify({ run_id: runId }), headers: { 'Content-Type': 'application/json' } });

test('a plan passes against itself and a dearer one fails, stored or not, whatever the calibration and the age of the baseline', async () => {
  const files = {};
  for (const [name, candidate] of [['same', plan()], ['dearer', dearer()]]) writeFileSync(files[name] = join(folder, `${name}.json`), JSON.stringify(candidate));
  for (const [project, { early, late, calibration }] of Object.entries(baselines)) {
    for (const pinned of [early, late]) {
      assert.ok([200, 201].includes((await pin(project, pinned.run_id)).status));
      for (const store of [[], ['--store']])
        for (const [name, status] of [['same', 0], ['dearer', 1]]) {
          const told = await run(['check', '--baseline', `${project}/main`, ...store, '--json', '-', files[name]], { env: { TPU_ADVISOR_URL: daemon.origin } });
          const what = `${project} ${name} ${store} against the ${pinned === early ? 'early' : 'late'} run`;
          assert.equal(told.status, status, `${what}: ${told.err}${told.out}`);
          const [{ check }] = JSON.parse(told.out).checks;
          assert.deepEqual([check.engine, check.baseline.engine, check.candidate.engine].map((engine) => engine.calibration), Array(3).fill(calibration), what);
          assert.ok(name === 'same' ? Math.abs(check.time_per_token_increase_frac) < 1e-9 : check.time_per_token_increase_frac > 0.15, `${what}: ${check.time_per_token_increase_frac}`);
        }
      for (const candidate of [plan(), plan({ project }), { run_id: early.run_id }, { run_id: late.run_id }]) {
        const verdict = await judge({ baseline: { run_id: pinned.run_id }, candidate, limits: { time_per_token_increase_frac: 1e-6 } });
        assert.ok(Math.abs(verdict.time_per_token_increase_frac) < 1e-9, JSON.stringify([project, candidate, verdict.time_per_token_increase_frac]));
      }
    }
    const verdict = await judge({ baseline: { run_id: early.run_id }, candidate: plan() });
    assert.equal(verdict.baseline.reevaluated, true);
    assert.match(verdict.notes.find(({ code }) => code === 'reevaluated').detail, new RegExp(calibration), 'what it is priced by is named');
  }
  for (const project of Object.keys(baselines)) {
    const stored = sql(NAME, `SELECT DISTINCT label, response -> 'engine' ->> 'calibration' FROM runs WHERE project = '${project}' AND id NOT IN (SELECT run_id FROM measurements)`);
    assert.equal(stored, `main|${baselines[project].calibration}`, 'candidates are stored as their project prices them');
  }
});

test('a calibration is seen by its own project: a token of another can neither ask by it nor read its factor', async () => {
  const plain = await estimate();
  const mine = await estimate({}, tokens.slow, closed);
  assert.equal(mine.engine.calibration, baselines.slow.calibration, 'a token asks for its project');
  near((await estimate({}, tokens.alpha, closed)).step_time_s, plain.step_time_s, 'another has the published fit');
  const advise = { model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4' }, workload: { seq_len: 8192, global_batch_sequences: 16 }, project: 'slow' };
  for (const [path, body] of [['/v1/estimate', plan({ project: 'slow' })], ['/v1/advise', advise], ['/v1/explain/oom', { message: oom, request: plan({ project: 'slow' }) }]]) {
    const refused = await problem(assert, await closed.post(path, body, tokens.alpha), 403, 'forbidden');
    assert.match(refused.errors[0].detail, /project 'alpha'/, path);
    assert.match(refused.errors[0].pointer, /\/project$/, path);
    await json(await closed.post(path, body, tokens.slow));
  }
  const mixed = { kind: 'estimate', requests: [plan({ project: 'slow' }), plan()] };
  const refused = await problem(assert, await closed.post('/v1/sweeps', mixed, tokens.alpha), 403, 'forbidden');
  assert.equal(refused.errors[0].pointer, '/requests/0/project');
  const late = [...Array(50).fill(plan()), plan({ project: 'slow' })]; // past those that are read at once
  const made = await json(await closed.post('/v1/sweeps', { kind: 'estimate', requests: late }, tokens.alpha), 202);
  const sweep = await until('the sweep ends', async () => {
    const now = await (await closed.fetch(`/v1/sweeps/${made.sweep_id}`, { headers: tokens.alpha })).json();
    return now.state === 'done' && now;
  });
  const { items } = await json(await closed.fetch(`/v1/sweeps/${made.sweep_id}?state=failed`, { headers: tokens.alpha }));
  assert.deepEqual(items.map((item) => [item.item, item.problem.errors[0].pointer]), [[50, '/project']]);
  near(sweep.items[0].step_time_s, plain.step_time_s, 'the others');
});

test('a sweep and its items name the calibration that their numbers are by', async () => {
  const get = async (path) => json(await daemon.fetch(path));
  const published = (await estimate()).engine.calibration;
  const asked = [plan({ project: 'slow' }), plan(), plan({ project: 'slow' }, { remat_policy: 'minimal' })];
  const made = await json(await daemon.post('/v1/sweeps', { kind: 'estimate', requests: asked }), 202);
  assert.ok(made.engine.version, 'before there is an answer, the engine that will give it');
  const sweep = await until('the sweep ends', async () => {
    const now = await get(`/v1/sweeps/${made.sweep_id}`);
    return now.state === 'done' && now;
  });
  const { calibration } = baselines.slow;
  const names = [calibration, published, calibration];
  assert.deepEqual(sweep.items.map((item) => item.calibration), names);
  assert.equal(sweep.engine.calibration, calibration, 'that of most of them');
  assert.ok([calibration, published].includes((await get(`/v1/sweeps/${made.sweep_id}?state=failed`)).engine.calibration));
  for (const [i, name] of names.entries()) {
    const item = await get(`/v1/sweeps/${made.sweep_id}/items/${i}`);
    assert.deepEqual([item.engine, item.engine.calibration], [item.response.engine, name]);
  }
});

test('a daemon that has just become ready answers by the calibration in force', async () => {
  for (let i = 0; i < 3; i++) {
    const fresh = await startDaemon({ database: url });
    const first = await estimate({ project: 'slow' }, {}, fresh);
    await fresh.stop();
    assert.equal(first.engine.calibration, baselines.slow.calibration, `start ${i}`);
  }
});

test('a run of a project is asked again in that project, by its calibration, also where a token gave the project', async () => {
  const { run_id: id, step_time_s: before_ } = await estimate({ store: true, label: 'L1' }, tokens.slow, closed);
  const told = await json(await closed.post(`/v1/runs/${id}/reevaluate`, '', tokens['']), 201);
  assert.deepEqual([told.before.step_time_s, told.after.step_time_s, told.step_time_change_frac], [before_, before_, 0]);
  assert.deepEqual([told.engine, told.engine.calibration], [told.after.engine, baselines.slow.calibration]);
  const again = await json(await closed.fetch(`/v1/runs/${told.run_id}`, { headers: tokens.slow }));
  assert.deepEqual([again.project, again.label, again.response.engine.calibration], ['slow', 'L1', baselines.slow.calibration]);
  const verdict = await judge({ baseline: { run_id: baselines.slow.early.run_id }, candidate: { run_id: id } });
  near(verdict.candidate.step_time_s, before_, 'a check prices it by the same');
});

const oom = 'RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 35.50G of 31.25G hbm. Exceeded hbm capacity by 4.25G.';

test('an out-of-memory message is explained by the calibration of the project that the request names, and nothing is stored', async () => {
  const ask = (request, from = daemon, headers = {}) => from.post('/v1/explain/oom', { message: oom, request }, headers);
  const plain = await json(await ask(plan()));
  const { late, calibration } = baselines.slow;
  for (const told of [await json(await ask(plan({ project: 'slow' }))), await json(await ask(plan(), closed, tokens.slow))]) {
    assert.equal(told.engine.calibration, calibration);
    near(told.predicted.hbm_bytes_per_device, late.hbm_bytes_per_device, 'memory');
    assert.ok(told.predicted.hbm_bytes_per_device > plain.predicted.hbm_bytes_per_device);
  }
  const refused = await problem(assert, await ask(plan({ store: true })), 422, 'invalid-request');
  assert.equal(refused.errors[0].pointer, '/request/store');
});

test('a daemon that has never reached the database corrects no project by a calibration that it does not know', async () => {
  const away = await startDaemon({ database: 'postgresql://127.0.0.1:1/nobody?connect_timeout=1', waitFor: 'listening' });
  try {
    const refused = await problem(assert, await away.post('/v1/estimate', plan({ project: 'slow' })), 503, 'store-unavailable');
    assert.equal(refused.errors[0].pointer, '/project');
    assert.match(refused.errors[0].detail, /not known which calibration is in force/);
    assert.equal((await away.post('/v1/estimate', plan())).status, 200, 'without a project nothing is corrected');
    const explained = await problem(assert, await away.post('/v1/explain/oom', { message: oom, request: plan({ project: 'slow' }) }), 503, 'store-unavailable');
    assert.equal(explained.errors[0].pointer, '/request/project');
  } finally {
    await away.stop();
  }
});

test('a calibration whose measurements were deleted is not put in force again', async () => {
  const early = await estimate({ project: 'mended', store: true });
  const measured = [];
  for (let day = 1; day < 4; day++) {
    const run = day === 1 ? early : await json(await daemon.post('/v1/estimate', plan({ project: 'mended', store: true }, { gradient_accumulation_steps: day })));
    const body = { step_time_s: run.step_time_s * (1.5 + day / 1000), source: 's', at: `2026-11-0${day}` };
    measured.push((await json(await daemon.post(`/v1/runs/${run.run_id}/measurements`, body), 201)).measurement_id);
  }
  const { calibration_id: id } = await json(await daemon.post('/v1/calibrations', { project: 'mended' }), 201);
  assert.equal((await json(await daemon.fetch(`/v1/calibrations/${id}`))).refusal, null);
  assert.equal((await daemon.fetch(`/v1/runs/${early.run_id}/measurements/${measured[0]}`, { method: 'DELETE' })).status, 204);
  const refused = await problem(assert, await daemon.fetch(`/v1/calibrations/${id}/activate`, { method: 'POST' }), 409, 'conflict');
  assert.match(refused.detail, /1 of its measurements have been deleted since: fit again/);
  near((await estimate({ project: 'mended' })).step_time_s, early.step_time_s, 'it corrects nothing');
});
