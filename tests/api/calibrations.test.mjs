// Calibrations of a project: what its measurements say is shown before it counts, corrects every number of its answers alike,
// is named by them, and can be taken back.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { adviseRequest, estimateRequest, freshDatabase, problem, startDaemon, until } from './daemon.mjs';

let daemon;
let url;
before(async () => {
  url = freshDatabase('api_calibrations');
  daemon = await startDaemon({ database: url });
});
after(() => daemon.stop());

const near = (actual, expected, what) => assert.ok(Math.abs(actual / expected - 1) < 1e-6, `${what}: ${actual} is not ${expected}`);
const json = async (response, status = 200) => {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
};
const get = async (path) => json(await daemon.fetch(path));
const request = (project, steps = 1) => estimateRequest({ project, config: { ...estimateRequest().config, gradient_accumulation_steps: steps } });
const estimate = async (project, steps) => json(await daemon.post('/v1/estimate', request(project, steps)));
async function measure(project, slower, larger = 1, steps = 1) {
  const run = await json(await daemon.post('/v1/estimate', { ...request(project, steps), store: true }));
  await json(await daemon.post(`/v1/runs/${run.run_id}/measurements`, { step_time_s: run.step_time_s * slower, hbm_bytes_per_device: run.hbm_bytes_per_device * larger, source: 's', at: '2026-11-20T10:00:00Z' }), 201);
  return run;
}
const fit = async (project) => json(await daemon.post('/v1/calibrations', { project }), 201);
const change = (calibration, how) => daemon.fetch(`/v1/calibrations/${calibration.calibration_id}/${how}`, { method: 'POST' });

test('one plan that was measured nine times is one plan, and corrects nothing of the chip', async () => {
  const run = await json(await daemon.post('/v1/estimate', { ...request('repeated'), store: true }));
  for (let day = 1; day < 10; day++)
    await json(await daemon.post(`/v1/runs/${run.run_id}/measurements`, { step_time_s: run.step_time_s * 3, source: 's', at: `2026-11-0${day}` }), 201);
  const made = await fit('repeated');
  const { step_time: told } = made.chips[0];
  assert.deepEqual([told.measurements_count, told.plans_count, told.runs_count, told.weight_frac, told.correction_frac], [9, 1, 1, 0, 0]);
  near(told.bias_frac, 2, 'bias');
  assert.match(made.refusal, /corrects nothing/);
});

test('below three measured plans there is a bias to read and nothing to activate', async () => {
  await problem(assert, await daemon.post('/v1/calibrations', { project: 'few' }), 422, 'invalid-request');
  await problem(assert, await daemon.post('/v1/calibrations', {}), 422, 'invalid-request');
  await measure('few', 1.1, 1, 1);
  await measure('few', 1.1, 1, 2);
  const two = await fit('few');
  near(two.chips[0].step_time.bias_frac, 0.1, 'bias');
  assert.equal(two.chips[0].step_time.correction_frac, 0);
  const idle = await problem(assert, await change(two, 'activate'), 409, 'conflict');
  assert.match(two.refusal, /corrects nothing/);
  assert.equal(idle.detail, two.refusal);
  assert.equal((await estimate('few')).engine.calibration, (await estimate('nobody')).engine.calibration);
});

test('a calibration shows its effect first, then corrects every time and byte of the project alike, and is named', async () => {
  const before_ = await estimate('alpha', 3);
  for (const steps of [1, 2, 4, 8]) await measure('alpha', 1.2, 1.05, steps);
  const made = await fit('alpha');
  const [chip] = made.chips;
  assert.ok(chip.step_time.correction_frac > 0.19 && chip.step_time.correction_frac < 0.2, JSON.stringify(chip));
  assert.ok(chip.step_time.mean_abs_error_left_out_frac < chip.step_time.mean_abs_error_published_frac / 10);
  assert.equal(made.rows.length, 4);
  for (const row of made.rows) {
    near(row.measured_step_time_s / row.published_step_time_s, 1.2, 'as measured');
    assert.ok(Math.abs(row.error_calibrated_frac) < 0.005 && row.error_published_frac < -0.16);
  }
  assert.deepEqual(await estimate('alpha', 3), before_, 'fitted is not in force');

  const active = await json(await change(made, 'activate'));
  assert.deepEqual([active.active, made.refusal, active.refusal], [true, null, null]);
  const now = await estimate('alpha', 3);
  const slower = 1 + chip.step_time.correction_frac;
  assert.equal(now.engine.calibration, `calibration/${made.calibration_id}`);
  for (const name of ['step_time_s', 'step_time_low_s', 'step_time_high_s']) near(now[name], before_[name] * slower, name);
  for (const name of ['tokens_per_s_per_chip', 'mfu_frac', 'hfu_frac', 'tflops_per_s_per_chip']) near(now[name], before_[name] / slower, name);
  near(now.hbm_bytes_per_device, before_.hbm_bytes_per_device * (1 + chip.hbm.correction_frac), 'memory');
  near(now.time_parts.reduce((sum, part) => sum + part.exposed_seconds, 0), now.step_time_s, 'parts add up');
  assert.ok(now.fit_probability <= before_.fit_probability);
  const other = await estimate('beta', 3);
  assert.equal(other.step_time_s, before_.step_time_s, 'another project is as it was');
  const advice = await json(await daemon.post('/v1/advise', adviseRequest({ project: 'alpha', cluster: { chip: 'v6e', topology: '16x16' } })));
  const plain = await json(await daemon.post('/v1/advise', adviseRequest({ cluster: { chip: 'v6e', topology: '16x16' } })));
  assert.equal(advice.engine.calibration, `calibration/${made.calibration_id}`);
  assert.notEqual(advice.ranked[0].estimate.step_time_s, plain.ranked[0].estimate.step_time_s);
});

test('another daemon follows, a restarted one remembers, and a fit made under a calibration is not calibrated twice', async () => {
  const { calibrations } = await get('/v1/calibrations?project=alpha');
  const second = await startDaemon({ database: url });
  await until('the other daemon answers by it', async () => (await (await second.post('/v1/estimate', request('alpha', 5))).json()).engine.calibration === calibrations[0].name);
  await second.stop();
  const run = await json(await daemon.post('/v1/estimate', { ...request('alpha', 16), store: true }));
  await json(await daemon.post(`/v1/runs/${run.run_id}/measurements`, { step_time_s: run.step_time_s, source: 's', at: '2026-11-20T11:00:00Z' }), 201);
  const again = await fit('alpha');
  const row = again.rows.find((one) => one.run_id === run.run_id);
  near(row.published_step_time_s * (1 + calibrations[0].chips[0].step_time.correction_frac), run.step_time_s, 'the correction is taken out');
  assert.ok(again.chips[0].step_time.correction_frac > 0.19);
  await json(await change(again, 'activate'));
});

test('revert puts back what was in force before, to the published fit, and the history tells', async () => {
  const { calibrations } = await get('/v1/calibrations?project=alpha');
  const [newer, older] = calibrations;
  assert.deepEqual([newer.active, older.active], [true, false]);
  await problem(assert, await change(older, 'revert'), 409, 'conflict');
  assert.equal((await json(await change(newer, 'revert'))).active, false);
  assert.equal((await estimate('alpha')).engine.calibration, older.name);
  await json(await change(older, 'revert'));
  assert.equal((await estimate('alpha')).engine.calibration, (await estimate('nobody')).engine.calibration);
  const { history } = await get('/v1/calibrations?project=alpha');
  assert.deepEqual(history.map((row) => row.calibration_id), [null, older.calibration_id, newer.calibration_id, older.calibration_id]);
  await problem(assert, await change({ calibration_id: 'x' }, 'activate'), 404, 'not-found');
  await problem(assert, await daemon.fetch('/v1/calibrations/00000000-0000-7000-8000-000000000000'), 404, 'not-found');
});

test('a measurement in another unit is refused, and factors that no machine explains are not put in force', async () => {
  const run = await json(await daemon.post('/v1/estimate', { ...request('units'), store: true }));
  const send = (step_time_s, hbm_bytes_per_device) => daemon.post(`/v1/runs/${run.run_id}/measurements`, { step_time_s, hbm_bytes_per_device, source: 's', at: '2026-11-20T10:00:00Z' });
  const both = await problem(assert, await send(run.step_time_s * 1000, run.hbm_bytes_per_device / 2 ** 30), 422, 'invalid-request');
  assert.deepEqual(both.errors.map(({ pointer }) => pointer), ['/step_time_s', '/hbm_bytes_per_device']);
  assert.match(both.errors[0].hint, /seconds/);
  assert.match(both.errors[1].hint, /bytes/);
  await json(await send(run.step_time_s * 3, run.hbm_bytes_per_device / 3), 201); // odd, but a machine may be that odd
  const ids = [];
  for (const [steps, smaller] of [[1, 0.2], [2, 0.2], [4, 0.19], [8, 0.2]]) ids.push((await measure('odd', 1, smaller, steps)).run_id);
  const odd = await fit('odd');
  const furthest = odd.rows.find((row) => row.run_id === ids[2]);
  assert.match(odd.refusal, /memory of v6e by 0\.\d+, where 0\.5 to 2 is plausible/);
  assert.ok(odd.refusal.includes(`/v1/runs/${ids[2]}/measurements/${furthest.measurement_id}`), odd.refusal);
  const refused = await problem(assert, await change(odd, 'activate'), 409, 'conflict');
  assert.equal(refused.detail, odd.refusal);
  assert.deepEqual((await get('/v1/calibrations?project=odd')).calibrations.map((one) => [one.active, one.refusal]), [[false, odd.refusal]]);
  assert.equal((await estimate('odd')).engine.calibration, (await estimate('nobody')).engine.calibration);
});
