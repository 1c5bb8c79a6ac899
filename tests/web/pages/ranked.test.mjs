// The table of ranked plans against the stand-in daemon: what a row says, ties and order, choosing one.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe, openTab } from '../browser.mjs';
import { advice, estimate } from '../fixture.mjs';
import { pages } from '../pages_setup.mjs';

const withJob = '/#/?model=llama3.1-70b';
const { open } = pages();
const text = (page, selector) => page.locator(selector).innerText();

test('the ranked table shows each plan with units and the first one in full', async () => {
  const page = await open({}, { path: withJob });
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  const first = await text(page, '#ranked tbody tr:first-child');
  for (const part of [
    'fsdp 64 × context 2',
    'custom: saves 1, offloads 1',
    '6.800 s',
    '6.460–7.208 s',
    '40.3 %',
    '71.5 GiB',
    'fits',
    'of 94.7 GiB',
  ]) {
    assert.ok(first.includes(part), `${part} in ${first}`);
  }
  assert.match(await text(page, '#detail h2'), /^Plan 1: fsdp 64 × context 2$/);
});

test('each plan says in one clause why it stands there, and a tie says so', async () => {
  const page = await open({}, { path: withJob });
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  assert.deepEqual(
    (await page.locator('#ranked tbody th').allInnerTexts()).map((cell) => cell.replaceAll(/\s+/g, ' ').trim()),
    ['Plan 1 advised fastest simplest', 'Plan 2', 'Plan 3 safest'],
  );
  assert.match(await text(page, '#ranked tbody tr:nth-child(2) .clause'), /^\+7\.0 % a token against plan 1: .*a tie/);
  assert.doesNotMatch(await text(page, '#ranked tbody tr:nth-child(3) .clause'), /tie/);
  await page.getByText('plans within 0.5 % of the best are a tie').waitFor();
});

test('each plan shows its interval on one scale, and a confidence that is not the usual one', async () => {
  const page = await open(
    {
      'POST /v1/advise': () => {
        const answer = advice(2);
        answer.ranked[1].estimate.confidence = 'extrapolated';
        return answer;
      },
    },
    { path: withJob },
  );
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  const ends = await page
    .locator('#ranked .interval')
    .evaluateAll((marks) =>
      marks.map(
        (mark) => mark.querySelector('line').getBoundingClientRect().right - mark.getBoundingClientRect().left,
      ),
    );
  assert.equal(ends.length, 2);
  assert.ok(ends[0] < ends[1], 'the slower plan reaches further right');
  const rows = await page.locator('#ranked tbody tr').allInnerTexts();
  assert.doesNotMatch(rows[0], /calibrated|extrapolated/);
  assert.match(rows[1], /extrapolated/);
});

test('my configuration stands beside the plans, with what each gains', async () => {
  const page = await open(
    {
      'POST /v1/advise': () => {
        const answer = advice(2);
        answer.baseline = { config: { remat_policy: 'full' }, xla_flags: [], estimate: estimate(1.25) };
        answer.ranked[0].changes_from_baseline = [
          { key: 'remat_policy', from: 'full', to: 'custom', group: 'remat', order: 1, gain_frac: 0.15 },
          { key: 'out_proj', from: null, to: 'device', group: 'remat', order: 1, gain_frac: 0.15 },
        ];
        return answer;
      },
    },
    { path: `${withJob}&config=remat_policy%3Dfull` },
  );
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  assert.match(await text(page, '#ranked tbody tr:first-child'), /-20\.0 % vs mine/);
  const changes = page.getByRole('table', { name: 'Changes from my configuration' }).locator('tbody tr');
  const cells = (await changes.allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' ').trim());
  assert.deepEqual(cells, ['remat_policy full custom remat 15.0 %', 'out_proj unset device remat']);
  await page.check('#plan-mine');
  assert.match(await text(page, '#detail h2'), /^My configuration/);
  await openTab(page, 'Run it');
  assert.match(await page.locator('#detail pre').first().innerText(), /^remat_policy=full$/);
});

test('a plan is chosen by the mouse on its row and by arrow keys', async () => {
  const page = await open({}, { path: withJob });
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  await page.locator('#ranked tbody tr').nth(2).locator('td').nth(3).click();
  assert.match(await text(page, '#detail h2'), /^Plan 3/);
  await page.keyboard.press('ArrowUp');
  assert.match(await text(page, '#detail h2'), /^Plan 2/);
});

test('a plan on several slices names the axes across them in its row, its title and its mesh', async () => {
  const page = await open(
    {
      'POST /v1/advise': () => {
        const answer = advice(1);
        answer.cluster = { ...answer.cluster, slices: 2 };
        answer.ranked[0].config = { ...answer.ranked[0].config, dcn_data_parallelism: 2 };
        return answer;
      },
    },
    { path: `${withJob}&slices=2` },
  );
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  assert.match(await text(page, '#ranked tbody tr:first-child'), /dcn data 2 × fsdp 64 × context 2/);
  assert.match(await text(page, '#detail h2'), /^Plan 1: dcn data 2 × fsdp 64 × context 2$/);
  await openTab(page, 'Mesh');
  const row = page.getByRole('table', { name: 'Mesh placement' }).locator('tbody tr').first();
  assert.match((await row.innerText()).replaceAll(/\s+/g, ' '), /^dcn data 2 DCN, between slices – –$/);
});

test('a tight plan says in its row and its head how surely it fits, and what tight means', async () => {
  const page = await open(
    {
      'POST /v1/advise': () => {
        const answer = advice(1);
        Object.assign(answer.ranked[0].estimate, { fit_verdict: 'tight', fit_probability: 0.38 });
        return answer;
      },
    },
    { path: withJob },
  );
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  assert.equal(await page.locator('#ranked .verdict').first().getAttribute('title'), 'tight, fits with a probability of 38.0 %');
  await page.locator('.summary-figures').getByRole('button', { name: 'fits with a probability of 38.0 %' }).click();
  assert.match(await text(page, '#glossary'), /“tight”: it may fit, less surely than that/);
});

test('a link to a plan that the answer does not have says which one is shown instead', async () => {
  const page = await open({ 'POST /v1/advise': () => advice(3) }, { path: '/#/?model=llama3.1-70b&plan=99&tab=memory' });
  const note = page.getByText('The link names plan 99, which this answer does not have. Shown is plan 1.');
  await note.waitFor();
  assert.ok(await page.isChecked('#plan-1'));
  assert.deepEqual(await axe(page), []);
  await page.locator('#plan-2').check();
  await note.waitFor({ state: 'hidden' });
  await page.evaluate(() => {
    window.location.hash = '#/?model=llama3.1-70b&plan=mine';
  });
  await page.getByText('The link names my configuration, which this answer does not have.').waitFor();
});
