// The page of accuracy, against the stand-in daemon: memory, and calibrations of another engine or that are refused.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe } from '../browser.mjs';
import { pages } from '../pages_setup.mjs';

const { open } = pages({ path: '/#/accuracy' });
const UNJUDGED = { median_abs_error_frac: null, p90_abs_error_frac: null, max_abs_error_frac: null, bias_frac: null };
const NO_MEMORY = { ...UNJUDGED, rows: [], left_out_count: 0, compiled_count: 0, measured_count: 0, measured: { ...UNJUDGED, judged_count: 0 } };
const NONE = { judged_count: 0, median_abs_error_frac: null, p90_abs_error_frac: null, bias_frac: null, interval_coverage_frac: null, groups: [], rows: [], memory: NO_MEMORY, next_cursor: null };
const FIT = { measurements_count: 4, plans_count: 3, weight_frac: 0.6, correction_frac: 0.06, mean_abs_error_published_frac: 0.09, mean_abs_error_calibrated_frac: 0.03 };

const calibration = (number, extra) => ({
  calibration_id: `0193a000-0000-7000-8000-00000000000${number}`,
  project: `project-${number}`,
  created_at: '2026-11-21T05:00:00Z',
  active: false,
  refusal: null,
  fitted_by: { version: '1.0.0', catalog_hash: '00aa' },
  outdated: false,
  left_out_count: 0,
  chips: [{ chip: 'v6e', step_time: FIT, hbm: { measurements_count: 0 } }],
  ...extra,
});

const withList = (calibrations, more) => ({
  'GET /v1/accuracy': () => NONE,
  'GET /v1/calibrations': () => ({ calibrations }),
  ...more,
});

for (const [scheme, width] of [
  ['light', 1280],
  ['dark', 375],
])
  test(`a calibration of another engine says so, which, and what to do; in force or not: ${scheme}, ${width} px`, async () => {
    const list = [
      calibration(1, { active: true, outdated: true, fitted_by: { version: '0.9.0+0123', catalog_hash: 'beef' } }),
      calibration(2, { outdated: true, fitted_by: null }),
      calibration(3),
    ];
    const page = await open(withList(list), { scheme, width });
    const row = (number) => page.getByRole('row', { name: new RegExp(`^project-${number}`) });
    await row(3).waitFor();
    assert.match(await row(1).innerText(), /Fitted by engine 0\.9\.0\+0123 \(catalog beef\), which is not this one[^.]*\. Fit the project again, and activate that\.[\s\S]*in force\s+outdated\s+Revert/);
    assert.match(await row(2).innerText(), /Fitted by an engine of an earlier release, which is not this one[\s\S]*no\s+outdated\s+Activate/);
    assert.doesNotMatch(await row(3).innerText(), /Fitted by|outdated/);
    assert.deepEqual(await axe(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'the page is no wider than the screen');
  });

test('a calibration that is refused says why, and is not offered', async () => {
  const refusal = 'it multiplies the step time of v6e by 12, where 0.2 to 5 is plausible: 84 seconds were measured, 7 predicted';
  const page = await open(withList([calibration(1, { refusal })]));
  const row = page.getByRole('row', { name: /^project-1/ });
  await row.waitFor();
  assert.match(await row.innerText(), /It cannot be put in force: it multiplies the step time of v6e by 12[^]*7 predicted\./);
  assert.equal(await row.getByRole('button', { name: 'Activate' }).count(), 0);
});

test('a failure to activate is said once, however often it is tried', async () => {
  const list = [calibration(1)];
  const page = await open(withList(list, { [`POST /v1/calibrations/${list[0].calibration_id}/activate`]: () => ({ status: 503, title: 'The database cannot be reached' }) }));
  for (let i = 0; i < 2; i += 1) await Promise.all([page.waitForResponse(/activate$/), page.getByRole('button', { name: 'Activate' }).click()]);
  await page.getByRole('alert').waitFor();
  assert.equal(await page.getByRole('alert').count(), 1);
});

test('memory that was measured is told of, though the compiler has spoken of no plan', async () => {
  const memory = { ...NO_MEMORY, measured: { judged_count: 3, median_abs_error_frac: 0.021, p90_abs_error_frac: 0.05, max_abs_error_frac: 0.05, bias_frac: -0.018 } };
  const page = await open(withList([], { 'GET /v1/accuracy': () => ({ ...NONE, memory }) }));
  const panel = page.locator('section', { has: page.getByRole('heading', { name: 'Memory: predicted, compiled, measured' }) });
  await panel.waitFor();
  assert.match(await panel.innerText(), /Against measured bytes\s+3 plans\s+median 2\.1\s?%, 90 % below 5\.0\s?%, bias [−-]1\.8\s?%/);
  assert.doesNotMatch(await panel.innerText(), /Against the compiler|Compiled/);
  assert.equal(await panel.getByRole('table').count(), 0);
});

test('nothing is said of memory where no plan has any', async () => {
  const page = await open(withList([calibration(1)]));
  await page.getByRole('row', { name: /^project-1/ }).waitFor();
  assert.equal(await page.getByRole('heading', { name: /^Memory/ }).count(), 0);
});

// A measurement of a run, `error` of the prediction: -0.1 where it was a tenth too short.
const measured = (number, predicted, error) => ({
  measurement_id: `0193a000-0000-7000-8000-00000000010${number}`,
  run_id: `0193a000-0000-7000-8000-00000000000${number}`,
  rank: 1,
  label: `run-${number}`,
  model: 'llama3.1-8b',
  chip: 'v6e',
  topology: '4x4',
  source: 'test',
  at: `2026-11-0${number}T05:00:00Z`,
  measured_step_time_s: predicted / (1 + error),
  step_time_s: predicted,
  step_time_low_s: predicted * 0.9,
  step_time_high_s: predicted * 1.1,
  error_frac: error,
  inside_interval: true,
});

test('measured steps of other lengths are drawn as shares of their predictions, and errors say to which side', async () => {
  const rows = [measured(2, 60, -0.05), measured(1, 0.5, 0.02)];
  const page = await open(withList([], { 'GET /v1/accuracy': () => ({ ...NONE, rows, judged_count: 2, bias_frac: -0.015 }) }));
  const chart = page.getByRole('img', { name: /^Measured step times of 2 measurements/ });
  await chart.getByText('Step time as a share of the predicted, 90 % to 110 %; whisker: predicted 90 %, dot: measured.').waitFor();
  const heights = await chart.locator('.whisker').evaluateAll((all) => all.map((line) => line.getAttribute('y1') - line.getAttribute('y2')));
  assert.ok(heights[0] > 50 && Math.abs(heights[0] - heights[1]) < 1e-6, String(heights));
  const ticks = await chart.locator('svg .axis text').evaluateAll((all) => all.map((text) => [text.textContent, text.previousSibling.getAttribute('y1')]));
  assert.deepEqual(ticks.map(([words]) => words), ['90 %', '100 %', '110 %']);
  const whisker = chart.locator('.whisker').first();
  assert.deepEqual([ticks[0][1], ticks[2][1]], [await whisker.getAttribute('y1'), await whisker.getAttribute('y2')]); // a tick is where its value is drawn
  assert.match(await chart.locator('title').first().textContent(), /^run-1, 2026-11-01 05:00 UTC: measured 490\.2 ms, predicted 500\.0 ms$/);
  const list = page.getByRole('table', { name: 'Measurements, newest first' });
  assert.match(await list.innerText(), /-5\.0 %\s+too short[\s\S]+\+2\.0 %\s+too long/);
  await page.getByText('median of the signed errors; below zero is predicted too short').waitFor();
  assert.deepEqual(await axe(page), []);
});

test('a page without measurements tells a filter from none at all', async () => {
  const page = await open(withList([]));
  await page.getByText('Nothing is measured here yet.').waitFor();
  await page.fill('#filter-model', 'llama');
  await page.keyboard.press('Enter');
  await page.getByText('Nothing is measured of such plans. Each entry is matched as a whole.').waitFor();
  assert.equal(await page.getByText('Nothing is measured here yet.').count(), 0);
});
