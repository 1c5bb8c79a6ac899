// Comparing machines and what would change a plan, against the stand-in daemon.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe, everyTab, openTab, reopen } from '../browser.mjs';
import { CATALOG, advice, estimate } from '../fixture.mjs';
import { CHIP, SENSITIVITIES, TRAINING, machines } from '../machines_fixture.mjs';
import { pages } from '../pages_setup.mjs';

const { open } = pages();
const JOB = '/#/?model=llama3.1-70b&mode=machines&token_budget=1T';
const CHIPS = () => ({
  engine: {},
  chips: [...CATALOG.chips, { name: 'H100', title: 'NVIDIA H100', is_tpu: false }],
});
const line = (words) => words.replaceAll(/\s+/g, ' ').trim();
const lines = async (table) => (await table.locator('tbody tr').allInnerTexts()).map(line);

async function compare(page) {
  await page.click('#submit');
  await page.waitForSelector('#ranked');
}

test('the listed machines are sent as clusters, each with what it needs', async () => {
  let sent = null;
  const page = await open(
    {
      'GET /v1/catalog/chips': CHIPS,
      'POST /v1/advise': (body) => {
        sent = body;
        return machines();
      },
    },
    { path: JOB },
  );
  assert.equal(await page.locator('.machine').count(), 3);
  assert.equal(await page.locator('#topology').isVisible(), false);
  assert.equal(await page.locator('#machine-2-slices').isVisible(), false, 'a GPU has no slices');
  await page.selectOption('#machine-1-topology', '4x4');
  assert.equal(await page.locator('#machine-1-chips').isVisible(), false, 'the shape counts the chips');
  await page.fill('#machine-0-price', '12.5');
  await page.click('#add-machine');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'machine-3-chip');
  await page.selectOption('#machine-3-chip', 'tpu7x');
  await page.fill('#machine-3-chips', '8');
  await page.locator('.machine').nth(1).getByRole('button', { name: 'Remove' }).click();
  await compare(page);
  assert.deepEqual(sent.clusters, [
    { chip: 'tpu7x', topology: 'any', chips: 64, price_usd_per_chip_hour: 12.5 },
    { chip: 'H100', chips: 64, assumed_mfu_frac: 0.4 },
    { chip: 'tpu7x', topology: 'any', chips: 8 },
  ]);
  assert.equal(sent.cluster, undefined);
  assert.equal(sent.workload.token_budget, 1e12);
  await reopen(page);
  await page.waitForSelector('#models option', { state: 'attached' });
  assert.equal(await page.locator('.machine').count(), 3, 'the address holds the machines');
  assert.equal(await page.inputValue('#machine-0-price'), '12.5');
});

test('machines are listed with time, dollars and energy, GPUs apart as rooflines', async () => {
  const page = await open({ 'POST /v1/advise': () => machines() }, { path: JOB });
  await compare(page);
  assert.deepEqual(await lines(page.getByRole('table', { name: 'Machines, best first' })), [
    '1. tpu7x 4x4x4 $12.00 per chip and hour · on the front 64 6.800 s 6.460–7.208 s 40.3 % 30.3 days $1,117,698 101 MWh fits',
    '2. 2 × v6e 4x4 no price given 32 9.520 s 9.044–10.091 s 28.8 % 45.5 days – – tight',
  ]);
  assert.deepEqual(await lines(page.getByRole('table', { name: 'Machines without a plan' })), [
    'v5e 2x2 4 weights alone are 65.7 GiB on each device',
  ]);
  assert.deepEqual(await lines(page.getByRole('table', { name: 'Headline rooflines of GPUs' })), [
    '128 H100 roofline at peak, not modelled · $4.00 per chip and hour 3.250 s 100.0 % 18.0 days $2,000,000 900 kWh',
  ]);
  await page.getByRole('heading', { name: 'Headline rooflines of GPUs: not predictions' }).waitFor();
  await page.getByRole('img', { name: /Days against dollars of 2 machines/ }).waitFor();
  assert.equal(await page.locator('.headline rect').count(), 1);
  assert.doesNotMatch(await page.locator('#results').innerText(), /NaN|undefined|null/);
});

test('a machine is chosen, shown in full and taken into the form', async () => {
  const page = await open({ 'POST /v1/advise': () => machines() }, { path: JOB });
  await compare(page);
  assert.match(await page.locator('#detail h2').innerText(), /^Plan 1/);
  await page.check('#plan-machine-2');
  assert.match(await page.locator('#detail h2').innerText(), /^2 × v6e 4x4: dcn data 2 × fsdp 64/);
  assert.equal(await page.locator('input[name="plan"]:checked').count(), 1, 'one thing is chosen');
  await page.getByRole('button', { name: 'Edit as my configuration' }).click();
  assert.equal(await page.inputValue('#chip'), 'v6e');
  assert.equal(await page.inputValue('#topology'), '4x4');
  assert.equal(await page.inputValue('#slices'), '2');
  assert.match(await page.inputValue('#config'), /ici_fsdp_parallelism=64/);
});

test('a copied link shows the machine that was chosen, and its tab', async () => {
  const page = await open({ 'POST /v1/advise': () => machines() }, { path: JOB });
  await compare(page);
  await page.check('#plan-machine-2');
  await openTab(page, 'Mesh');
  await page.click('#copy-link');
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, /plan=machine-2&tab=mesh/);
  await page.goto('about:blank');
  await page.goto(link);
  await page.locator('#detail h2').getByText(/^2 × v6e 4x4: /).waitFor();
  assert.ok(await page.isChecked('#plan-machine-2'));
  assert.equal(await page.getAttribute('#plan-tab-mesh', 'aria-selected'), 'true');
});

test('without a token budget the machines have dollars per billion tokens', async () => {
  const answer = machines();
  answer.platforms[0].best.estimate.usd_per_billion_tokens = 1189.01;
  const page = await open({ 'POST /v1/advise': () => answer }, { path: '/#/?model=llama3.1-70b&mode=machines' });
  await compare(page);
  const table = page.getByRole('table', { name: 'Machines, best first' });
  assert.match(line(await table.locator('thead').innerText()), /Per billion tokens Fit$/);
  assert.match((await lines(table))[0], /\$1,189\.01 fits$/);
});

test('an error of one machine stands beside its entry', async () => {
  const errors = [
    { pointer: '/clusters/1/chips', detail: '250 chips make no shape', hint: '256 do' },
    { pointer: '/clusters/0/price_usd_per_chip_hour', detail: 'must not be negative' },
  ];
  const page = await open({ 'POST /v1/advise': () => ({ status: 422, title: 'Two errors', errors }) }, { path: JOB });
  await page.fill('#machine-1-chips', '250');
  await page.click('#submit');
  await page.waitForSelector('#machine-1-chips-error');
  assert.match(await page.locator('#machine-1-chips-error').innerText(), /250 chips make no shape\.\s+256 do/);
  assert.match(await page.locator('#machine-0-price-error').innerText(), /must not be negative/);
  assert.equal(await page.inputValue('#machine-1-chips'), '250');
  await page.fill('#machine-1-chips', 'many');
  await page.fill('#token_budget', 'lots');
  await page.click('#submit');
  await page.waitForSelector('#token_budget-error');
  assert.match(await page.locator('#machine-1-chips-error').innerText(), /“many” is not a number/);
  assert.deepEqual(await axe(page), []);
});

test('one machine and a token budget: the whole training in a sentence', async () => {
  const answer = machines();
  answer.platforms.length = 1;
  const path = '/#/?model=llama3.1-70b&token_budget=15e12';
  const page = await open({ 'POST /v1/advise': () => answer }, { path });
  await compare(page);
  await page.getByText('15.0 T tokens with plan 1: 30.3 days, $1,117,698, 101 MWh.').waitFor();
  assert.equal(await page.getByRole('table', { name: 'Machines, best first' }).count(), 0);
});

test('what would change the first plan is shown with it, and only with it', async () => {
  const page = await open(
    { 'POST /v1/advise': () => ({ ...advice(2), sensitivities: SENSITIVITIES }) },
    { path: '/#/?model=llama3.1-70b' },
  );
  await compare(page);
  assert.deepEqual(await lines(page.getByRole('table', { name: 'Step time when a hardware rate changes' })), [
    'Peak FLOP/s -6.7 % +9.0 %',
    'a_new_rate -0.8 % +1.0 %',
    'Data-centre network no change no change',
  ]);
  assert.deepEqual(await lines(page.getByRole('table', { name: 'The same plan with another batch' })), [
    '0.5 – – – not legal: the batch does not divide among the devices that share it',
    '3 10.20 s +50.0 % 2,060 100.0 GiB does not fit',
  ]);
  assert.deepEqual(await lines(page.getByRole('table', { name: 'Break-evens' })), [
    'Batch per device that hides FSDP from 4 sequences on, FSDP is hidden 4',
    'something_new not reached in range not reached',
  ]);
  await page.check('#plan-2');
  assert.equal(await page.getByRole('heading', { name: 'What would change it' }).count(), 0);
});

test('every combination of the search has its fate, adding up', async () => {
  const page = await open({}, { path: '/#/?model=llama3.1-70b' });
  await compare(page);
  await page.getByText('18,240 combinations considered, 1,116 plans evaluated inside them in 412.5 ms').click();
  assert.deepEqual(await lines(page.getByRole('table', { name: 'Combinations of mesh, batch and format' })), [
    'A against a rule, or not placeable 9,120 50.0 %',
    'B cannot be among the best, by a lower bound 6,800 37.3 %',
    'C every plan inside needs too much memory 1,204 6.6 %',
    'D best plan found inside 1,116 6.1 %',
  ]);
});

test('the numbers say where they come from: formulas, and hardware figures asked for once', async () => {
  let asked = 0;
  const page = await open(
    {
      'GET /v1/catalog/chips/tpu7x': () => {
        asked += 1;
        return CHIP;
      },
      'POST /v1/advise': () => {
        const answer = advice(1);
        answer.ranked[0].estimate = estimate();
        Object.assign(answer.ranked[0].estimate.time_parts[0], {
          formula: 'T-matmul',
          source: 'FLOPs over rate',
          count: 80,
        });
        return answer;
      },
    },
    { path: '/#/?model=llama3.1-70b' },
  );
  await compare(page);
  await openTab(page, 'Time');
  await page.locator('summary', { hasText: 'Formulas of the time parts' }).click();
  const [formula] = await lines(page.getByRole('table', { name: 'Formulas of the time parts' }));
  assert.match(formula, /^mlp matmul T-matmul projections and feed-forward: max\(2 · rows .* FLOPs over rate 80 –$/);
  const summary = page.locator('summary', { hasText: 'Hardware figures of tpu7x' });
  await summary.click();
  const figures = page.getByRole('table', { name: 'Hardware figures of TPU7x' });
  await figures.waitFor();
  assert.deepEqual(await lines(figures), [
    'TensorCore clock 1.7500 × 10^9 Hz low computed, 2026 inferred',
    'power watts per chip not published high none found, 2026',
  ]);
  await summary.click();
  await summary.click();
  assert.equal(asked, 1);
});

for (const [scheme, width] of [
  ['light', 1280],
  ['dark', 320],
]) {
  test(`no accessibility violation and no sideways scrolling: ${scheme}, ${width} px`, async () => {
    const answer = { ...machines(), sensitivities: SENSITIVITIES };
    const answers = { 'POST /v1/advise': () => answer, 'GET /v1/catalog/chips/tpu7x': () => CHIP };
    const page = await open(answers, { path: JOB, scheme, width });
    await compare(page);
    await openTab(page, 'Time');
    await page.locator('summary', { hasText: 'Hardware figures of tpu7x' }).click();
    await page.getByRole('table', { name: 'Hardware figures of TPU7x' }).waitFor();
    await everyTab(page, async () => {
      assert.deepEqual(await axe(page), []);
      assert.ok(
        await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth),
        'the page is no wider than the screen',
      );
    });
  });
}

test('a training is told with failures, checkpoints and where the assumptions come from', async () => {
  const answer = machines();
  answer.platforms[0].training = TRAINING;
  const page = await open(
    { 'GET /v1/catalog/chips': CHIPS, 'POST /v1/advise': () => answer },
    { path: JOB },
  );
  await compare(page);
  const note = page.locator('details.goodput');
  assert.match(line(await note.locator('summary').innerText()), /^Machine 1, with failures and checkpoints: 68\.4 days \(62\.2 days to 74\.9 days\), \$525,312/);
  await note.locator('summary').click();
  const text = line(await note.innerText());
  assert.match(text, /97\.4 % of the time is productive\. A checkpoint every 127 steps/);
  assert.match(text, /2\.1 failures and 270 M tokens trained twice/);
  assert.match(text, /failures_per_chip_day 0\.000474: a published count/);
  const [first] = await lines(page.getByRole('table', { name: 'Machines, best first' }));
  assert.match(first, /68\.4 days/, 'the table counts failures, too');
  assert.deepEqual(await axe(page), []);
});

test('days with failures beside days without them are told apart', async () => {
  const answer = machines();
  const said = 'Failures, checkpoints and restarts are in the days and dollars of the machines above, and not in these.';
  const page = await open({ 'POST /v1/advise': () => answer }, { path: JOB });
  await compare(page);
  await page.getByRole('heading', { name: /^Headline rooflines/ }).waitFor();
  assert.equal(await page.getByText(said).count(), 0);
  answer.platforms[0].training = TRAINING;
  await page.click('#submit');
  await page.getByText(said).waitFor();
});

test('what a configuration that is compared with does to the order of the machines is said', async () => {
  const page = await open({ 'POST /v1/advise': () => machines() }, { path: JOB });
  await compare(page);
  assert.equal(await page.getByText('Beside my configuration').count(), 0);
  await page.evaluate((hash) => {
    window.location.hash = hash;
  }, '#/?model=llama3.1-70b&mode=machines&config=remat_policy%3Dfull&plan=1');
  const note = page.getByText('Beside my configuration');
  await note.waitFor();
  assert.match(line(await note.innerText()), /order of machines may be others than without it\. A machine on which it cannot run has no plan here/);
});

test('an error of all machines together stands at none of them', async () => {
  const errors = [{ pointer: '/clusters', detail: 'GPUs are headline rows for comparison; steps on them are not modelled', hint: 'add a cluster of TPUs to compare with' }];
  const page = await open({ 'POST /v1/advise': () => ({ status: 422, title: 'No', errors }) }, { path: JOB });
  await page.click('#submit');
  await page.locator('#add-machine-error').getByText('Add a cluster of TPUs to compare with.').waitFor();
  assert.equal(await page.locator('#machine-0-chip-error').count(), 0);
});
