// Answers that are odd but possible: nothing known, nothing found, very long names, a single plan. The page shows what there
// is, says what there is not, and never NaN, undefined, null or [object.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe, everyTab, openTab } from '../browser.mjs';
import { RUNS, advice, estimate } from '../fixture.mjs';
import { tuning } from '../kernel_fixture.mjs';
import { SENSITIVITIES, machines } from '../machines_fixture.mjs';
import { pictures } from '../pictures_fixture.mjs';
import { pages } from '../pages_setup.mjs';

const { open } = pages({ path: '/#/?model=llama3.1-70b' });
const LONG = 'a-very-long-label-without-a-single-space-in-it-'.repeat(5);

async function holds(page, place = '#results') {
  await everyTab(page, async () => {
    assert.doesNotMatch(await page.locator(place).innerText(), /\bNaN\b|undefined|\bnull\b|\[object|Infinity/);
    assert.ok(
      await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth),
      'the page is no wider than the screen',
    );
    assert.deepEqual(await axe(page), []);
  });
}

async function ask(page, ready = '#results .panel') {
  await page.click('#submit');
  await page.waitForSelector(ready);
}

// Every number of the answer gone, as far down as there are numbers; settings and tiles are the question, not the answer.
function unknown(value, name) {
  if (name === 'config' || name === 'tile' || name === 'maxtext_keys') return value;
  if (typeof value === 'number') return null;
  if (Array.isArray(value)) return value.map((item) => unknown(item));
  if (value && typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, unknown(member, key)]));
  return value;
}

test('an estimate of which no number is known', async () => {
  const page = await open(
    { 'POST /v1/estimate': () => unknown(estimate()) },
    { path: '/#/?model=x&mode=estimate&config=a%3D1' },
  );
  await ask(page);
  assert.match(await page.locator('.facts').first().innerText(), /Step time\s+–/);
  await holds(page);
});

test('plans of which no number is known', async () => {
  const odd = advice(2);
  odd.ranked = odd.ranked.map((plan, index) => ({ ...unknown(plan), rank: index + 1 }));
  const page = await open({
    'POST /v1/advise': () => ({ ...odd, search: unknown(odd.search), pareto: unknown(odd.pareto) }),
  });
  await ask(page, '#ranked');
  await holds(page);
});

test('pictures of which no number is known', async () => {
  const page = await open({
    'POST /v1/estimate': (body) => unknown({ ...estimate(), ...pictures(body.include) }),
  });
  await ask(page, '#ranked');
  for (const tab of ['Time', 'Memory', 'Mesh', 'Kernels', 'Scaling', 'What if']) {
    await openTab(page, tab);
    const panel = page.getByRole('tabpanel', { name: tab, exact: true });
    await panel.locator('.picture-place[aria-busy="false"]').waitFor();
    assert.equal(await panel.locator('.error-summary').count(), 0, tab);
  }
  await holds(page);
});

test('an estimate with the least the contract asks for', async () => {
  const { step_time_s, fits, fit_verdict, hbm_bytes_per_device } = estimate();
  const least = { step_time_s, fits, fit_verdict, hbm_bytes_per_device, confidence: 'unsupported' };
  const page = await open({ 'POST /v1/estimate': () => least }, { path: '/#/?model=x&mode=estimate&config=a%3D1' });
  await ask(page);
  await holds(page);
});

test('nothing ranked and no near miss', async () => {
  const nothing = {
    ...advice(0),
    near_misses: [],
    pareto: [],
    search: { considered: 0, evaluated: 0, exhaustive: true },
  };
  const page = await open({
    'POST /v1/advise': () => ({ ...nothing, search: { ...nothing.search, empty_why: 'every mesh breaks a rule' } }),
  });
  await ask(page);
  await page.getByText('No legal plan.').waitFor();
  await page.getByText('every mesh breaks a rule').waitFor();
  await holds(page);
});

test('no machine has a plan', async () => {
  const answer = { ...machines(), ranked: [], near_misses: [] };
  answer.platforms = answer.platforms.filter((machine) => !machine.best);
  const page = await open({ 'POST /v1/advise': () => answer }, { path: '/#/?model=x&mode=machines' });
  await ask(page);
  await page.getByText('None of these machines has a plan; the table says why.').waitFor();
  assert.equal(await page.getByText(/Choose (one|it)/).count(), 0, 'there is none to choose');
  await holds(page);
});

for (const width of [320, 1280, 3840]) {
  test(`very long names and many plans stay inside a page of ${width} px`, async () => {
    const answer = advice(30);
    for (const plan of answer.ranked) {
      plan.why = [LONG];
      plan.config = { ...plan.config, [LONG]: LONG, model_name: LONG };
      plan.estimate = {
        ...plan.estimate,
        step_time_s: 123456.789,
        confidence_why: LONG,
        advice: [{ severity: 'warning', code: 'x', message: LONG, change: { [LONG]: LONG }, gain_frac: 0.5 }],
        mesh: Array.from({ length: 6 }, (_, index) => ({
          axis: `axis_${index}_of_the_mesh`,
          size: 16,
          placed_on: ['x'],
        })),
        kernels: [{ kernel: LONG, shape: LONG, tile: LONG, time_us: 1, count: 1 }],
        time_parts: [{ name: LONG, resource: LONG, seconds: 1, exposed_seconds: 1, formula: LONG, source: LONG }],
      };
      plan.changes_from_baseline = [{ key: LONG, from: LONG, to: LONG, group: LONG, group_gain_frac: 0.1 }];
    }
    answer.near_misses[0].reason = LONG;
    answer.warnings = [{ pointer: `/config/${LONG}`, detail: LONG, hint: LONG }];
    answer.sensitivities = {
      ...SENSITIVITIES,
      break_evens: [{ name: LONG, reached: false, value: null, sentence: LONG }],
    };
    answer.run_id = RUNS[0].run_id;
    const page = await open({ 'POST /v1/advise': () => answer }, { width });
    await page.fill('#model', LONG);
    await ask(page, '#ranked');
    assert.equal(await page.locator('#ranked tbody tr').count(), 30);
    await holds(page);
  });
}

test('very long labels of runs, alone and side by side', async () => {
  const runs = RUNS.map((run) => ({ ...run, label: LONG + run.label, project: LONG, model: LONG, topology: LONG }));
  const side = (run) => ({ ...run, tokens_per_s_per_chip: null, mfu_frac: null, fit_verdict: 'fits' });
  const terms = [{ name: LONG, from: 1, to: 2, delta: 1 }];
  const page = await open(
    {
      'GET /v1/runs': () => ({ runs, next_cursor: null }),
      'GET /v1/compare': () => ({
        runs: runs.map(side),
        differences: [{ from: runs[0].run_id, to: runs[1].run_id, time_terms: terms, memory_terms: [] }],
      }),
      [`GET /v1/runs/${runs[0].run_id}`]: () => runs[0],
      [`GET /v1/runs/${runs[1].run_id}`]: () => runs[1],
    },
    { path: '/#/runs', width: 375 },
  );
  await page.waitForSelector('#view-other table');
  await holds(page, '#view-other');
  for (const box of await page.locator('#view-other input[type="checkbox"]').all()) await box.check();
  await page.getByRole('button', { name: `Compare ${runs.length}`, exact: true }).click();
  await page.getByRole('heading', { name: 'Check against limits' }).waitFor();
  await holds(page, '#view-other');
  await page.setViewportSize({ width: 1280, height: 900 });
  const inSight = (cell) => cell.getBoundingClientRect().right <= cell.closest('.scroll').getBoundingClientRect().right;
  assert.ok(await page.locator('.terms tbody tr:first-child td:nth-child(4)').first().evaluate(inSight), 'the numbers are beside the names');
});

test('a tuning of which no number is known', async () => {
  const page = await open({ 'POST /v1/kernels/tune': () => unknown(tuning()) }, { path: '/#/kernels' });
  await page.waitForSelector('#k-shape input');
  await page.click('#k-submit');
  await page.waitForSelector('.lanes');
  await holds(page, '#k-results');
});

test('an address that leads nowhere says so, and is left by its link', async () => {
  const page = await open({}, { path: '/#/nosuchpage?a=b' });
  await page.getByRole('heading', { name: 'No such page' }).waitFor();
  assert.match(await page.locator('#view-other').innerText(), /#\/nosuchpage is not one of them/);
  assert.match(await page.title(), /^No such page/);
  assert.deepEqual(await axe(page), []);
  await page.click('#view-other a');
  await page.locator('#view-plan').waitFor();
});
