// Stored runs against the stand-in daemon: the list, one run, and a store that is away.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe, openTab, reopen } from '../browser.mjs';
import { RUNS, advice, estimate } from '../fixture.mjs';
import { tuning } from '../kernel_fixture.mjs';
import { pages } from '../pages_setup.mjs';

const { open } = pages({ path: '/#/runs' });

for (const [scheme, width] of [
  ['light', 1280],
  ['dark', 375],
]) {
  test(`stored runs are listed with model, cluster, time and memory: ${scheme}, ${width} px`, async () => {
    const page = await open({ 'GET /v1/runs': () => ({ runs: RUNS, next_cursor: null }) }, { scheme, width });
    const first = page.getByRole('row').nth(1);
    await first.waitFor();
    assert.match(
      await first.innerText(),
      /after\s+advise\s+demo\s+llama3\.1-70b\s+tpu7x 4x4x4\s+6\.800 s\s+plan 1\s+71\.5 GiB\s+fits or tight\s+2026-11-21 05:00 UTC/,
    );
    assert.equal(await page.getAttribute('#nav-runs', 'aria-current'), 'page');
    assert.deepEqual(await axe(page), []);
    assert.ok(
      await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth),
      'the page is no wider than the screen',
    );
  });
}

test('a list and what is opened from it begin at the top, with the header in sight', async () => {
  const id = RUNS[0].run_id;
  const page = await open(
    { 'GET /v1/runs': () => ({ runs: RUNS, next_cursor: null }), [`GET /v1/runs/${id}`]: () => ({ ...RUNS[0], request: {}, response: {} }) },
    { height: 300 },
  );
  const top = () => page.evaluate(() => [window.scrollY, document.activeElement.id]);
  await page.getByRole('table', { name: 'Stored runs' }).waitFor();
  assert.deepEqual(await top(), [0, 'view-other']);
  await page.evaluate(() => window.scrollTo(0, 1000));
  await page.evaluate((hash) => {
    window.location.hash = hash;
  }, `#/runs/${id}`);
  await page.getByRole('heading', { name: 'after' }).waitFor();
  await page.waitForFunction(() => document.activeElement.id === 'view-other' && window.scrollY === 0);
});

test('two ticked runs are compared, the earlier first', async () => {
  const page = await open({ 'GET /v1/runs': () => ({ runs: RUNS, next_cursor: null }) });
  const button = page.getByRole('button', { name: 'Compare' });
  await page.getByLabel('Compare after').check();
  assert.equal(await button.getAttribute('aria-disabled'), 'true');
  await page.getByLabel('Compare before').check();
  assert.equal(await button.getAttribute('aria-disabled'), 'false');
  await button.click();
  await page.waitForFunction(() => window.location.hash.startsWith('#/compare'));
  assert.equal(await page.evaluate(() => window.location.hash), `#/compare?runs=${RUNS[1].run_id},${RUNS[0].run_id}`);
});

test('the rows stay while others are asked for', async () => {
  const page = await open({ 'GET /v1/runs': () => ({ runs: RUNS, next_cursor: null }) });
  await page.getByRole('table', { name: 'Stored runs' }).waitFor();
  let release;
  const held = new Promise((resolve) => {
    release = resolve;
  });
  await page.route('**/v1/runs?*', (route) => held.then(() => route.fulfill({ json: { runs: RUNS.slice(1), next_cursor: null } })));
  await page.fill('#filter-q', 'before');
  await page.locator('.runs-list[aria-busy="true"]').waitFor();
  assert.equal(await page.getByLabel(/^Compare (after|before)$/).count(), 2, 'both rows');
  assert.deepEqual(await axe(page), []);
  release();
  await page.getByLabel('Compare after').waitFor({ state: 'detached' });
  assert.equal(await page.locator('.runs-list[aria-busy="true"]').count(), 0);
});

test('filters go to the daemon and stay in the address', async () => {
  const page = await open({ 'GET /v1/runs': () => ({ runs: [], next_cursor: null }) });
  await page.getByText('No run is stored yet. Tick “Store the answer as a run”').waitFor();
  await page.fill('#filter-chip', 'v6e');
  const [request] = await Promise.all([page.waitForRequest(/chip=v6e/), page.keyboard.press('Enter')]);
  assert.equal(new URL(request.url()).search, '?limit=50&chip=v6e');
  await page.waitForFunction(() => document.getElementById('filter-chip')?.value === 'v6e');
  await page.getByText('No such run is stored. Words are matched by their beginning, all other entries as a whole.').waitFor();
  await page.selectOption('#filter-deleted', 'true');
  await page.getByText('No such run is deleted.').waitFor();
});

test('words are sent when typing pauses, once, and an answer that comes late is dropped', async () => {
  const asked = [];
  const late = [];
  const page = await open({
    'GET /v1/runs': async (_, request) => {
      const { searchParams } = new URL(request.url, 'http://fixture');
      asked.push(searchParams.get('q'));
      if (searchParams.get('q') === 'before') await new Promise((resolve) => late.push(resolve));
      return { runs: searchParams.get('q') === 'before' ? [RUNS[1]] : [RUNS[0]], next_cursor: null };
    },
  });
  await page.getByLabel('Compare after').waitFor();
  await page.locator('#filter-q').pressSequentially('before', { delay: 5 });
  await page.locator('.runs-list[aria-busy="true"]').waitFor();
  await page.fill('#filter-q', 'after');
  await page.locator('.runs-list:not([aria-busy])').waitFor();
  late.forEach((resolve) => resolve());
  assert.deepEqual(asked, [null, 'before', 'after']);
  assert.equal(await page.getByLabel('Compare after').count(), 1);
  assert.equal(await page.getByLabel('Compare before').count(), 0);
  assert.equal(await page.evaluate(() => location.hash), '#/runs?q=after');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'filter-q', 'the cursor stays in the words');
});

test('more runs come below, and the ticks of the first page stay', async () => {
  const page = await open({
    'GET /v1/runs': (_, request) =>
      request.url.includes('cursor=next') ? { runs: [RUNS[1]], next_cursor: null } : { runs: [RUNS[0]], next_cursor: 'next' },
  });
  await page.getByLabel('Compare after').check();
  await page.getByRole('button', { name: 'More runs' }).click();
  await page.getByLabel('Compare before').check();
  assert.equal(await page.getByLabel('Compare after').isChecked(), true);
  assert.equal(await page.getByRole('button', { name: 'Compare 2' }).getAttribute('aria-disabled'), 'false');
  assert.equal(await page.getByRole('button', { name: 'More runs' }).count(), 0);
});

test('what the daemon refuses of a search is said in its words', async () => {
  const errors = [{ pointer: '/query/tags', detail: 'a tag has 1 to 63 bytes' }];
  const page = await open(
    { 'GET /v1/runs': (_, request) => (request.url.includes('tags') ? { status: 400, title: 'Bad request', errors } : { runs: RUNS, next_cursor: null }) },
    { path: '/#/runs?tags=x' },
  );
  assert.match(await page.getByRole('alert').innerText(), /A tag has 1 to 63 bytes\./);
  assert.equal(await page.inputValue('#filter-tags'), 'x', 'the form is still there to mend it');
  await page.fill('#filter-tags', '');
  await page.keyboard.press('Enter');
  await page.getByLabel('Compare after').waitFor();
});

test('a stored estimate opens in full and goes back into the form', async () => {
  const id = RUNS[1].run_id;
  const request = {
    model: 'llama3.1-70b',
    cluster: { chip: 'tpu7x', topology: '2x2x1' },
    config: { remat_policy: 'full' },
    label: 'before',
  };
  const page = await open(
    { [`GET /v1/runs/${id}`]: () => ({ ...RUNS[1], request, response: estimate() }) },
    { path: `/#/runs/${id}` },
  );
  await page.locator('.plan-head').waitFor();
  assert.equal(await page.locator('h1').locator('visible=true').innerText(), 'before');
  await page.getByRole('link', { name: 'Open in the form' }).click();
  await page.locator('#form').waitFor(); // shown and filled in one go
  assert.equal(await page.inputValue('#topology'), '2x2x1');
  assert.equal(await page.inputValue('#config'), 'remat_policy=full');
  assert.equal(await page.locator('#submit').innerText(), 'Estimate my configuration');
});

test('pictures of a stored plan say where they are of other numbers than the answer', async () => {
  const id = RUNS[1].run_id;
  const request = { model: 'llama3.1-70b', cluster: { chip: 'tpu7x', topology: '4x4x4' }, config: { remat_policy: 'full' } };
  let stored = estimate(1.05);
  const page = await open({ [`GET /v1/runs/${id}`]: () => ({ ...RUNS[1], request, response: stored }) }, { path: `/#/runs/${id}?tab=memory` });
  const note = page.getByText('Drawn as the plan is estimated today: 6.800 s and 71.5 GiB, where the answer says 7.140 s and 69.5 GiB.');
  await note.waitFor();
  await openTab(page, 'Time');
  await page.locator('.picture-layer_time').getByText(/^Drawn as the plan is estimated today/).waitFor();
  stored = estimate();
  await reopen(page);
  await page.locator('.picture-place-layer_time[aria-busy="false"]').waitFor();
  assert.equal(await page.getByText(/^Drawn as the plan/).count(), 0);
});

test('a run of another engine says so, and of which project it is', async () => {
  const id = RUNS[1].run_id;
  let today = { version: 'next', catalog_hash: '0' };
  const request = { model: 'llama3.1-70b', cluster: { chip: 'tpu7x', topology: '4x4x4' }, config: { remat_policy: 'full' } };
  const page = await open({ [`GET /v1/runs/${id}`]: () => ({ ...RUNS[1], request, response: estimate(), engine: today }) }, { path: `/#/runs/${id}` });
  await page.getByText('estimate for project demo, stored 2026-11-21 05:00 UTC, priced by engine fixture, which is not today’s next').waitFor();
  today = { version: 'fixture', catalog_hash: '1' };
  await reopen(page);
  await page.getByText(/priced by engine fixture \(catalog 0\), which is not today’s fixture \(catalog 1\)$/).waitFor();
  today = { version: 'fixture', catalog_hash: '0' };
  await reopen(page);
  await page.getByText(/, engine fixture$/).waitFor();
});

test('a stored question that the form cannot ask says so, and offers no repair there', async () => {
  const id = RUNS[1].run_id;
  const request = {
    model: 'llama3.1-70b',
    cluster: { chip: 'tpu7x', topology: '2x2x1', overrides: { price_usd_per_chip_hour: 1 } },
    config: { remat_policy: 'full' },
    software: { maxtext: '0.2.1' },
  };
  const page = await open(
    { [`GET /v1/runs/${id}`]: () => ({ ...RUNS[1], request, response: estimate() }) },
    { path: `/#/runs/${id}` },
  );
  await page.getByText('The form has no field for software, cluster.overrides: there it is a question without.').waitFor();
});

test('two runs side by side show which terms moved and that they add up', async () => {
  const [after_, before_] = RUNS;
  const side = (run) => ({ ...run, tokens_per_s_per_chip: 2000, mfu_frac: 0.4, fit_verdict: 'fits' });
  const term = (name, from, to) => ({ name, from, to, delta: to - from });
  const difference = {
    from: before_.run_id,
    to: after_.run_id,
    unlike: ['calibration', 'hardware', 'tokens_per_step'],
    time_terms: [term('mlp_matmul', 3, 3), term('fsdp_all_gather', 1, 0.25), term('recompute', 3.2, 3.55)],
    memory_terms: [term('weights', 2 * 1024 ** 3, 2 * 1024 ** 3)],
    memory_at_from: 'loss',
    memory_at_to: 'update',
  };
  const answer = { runs: [side(before_), side(after_)], differences: [difference] };
  const path = `/#/compare?runs=${before_.run_id},${after_.run_id}`;
  const page = await open(
    {
      'GET /v1/compare': () => answer,
      [`GET /v1/runs/${before_.run_id}`]: () => before_,
      [`GET /v1/runs/${after_.run_id}`]: () => after_,
    },
    { path },
  );
  const time = page.getByRole('table', { name: /Where the time went/ });
  await time.waitFor();
  await page.getByText('before and after are unlike in more than their settings: calibration, what-if hardware, tokens per step.').waitFor();
  await page.getByText('before needs most at the loss, after at the optimizer update: what is held at only one of these moments comes or goes whole.').waitFor();
  const rows = (await time.locator('tr').allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' ').trim());
  assert.deepEqual(rows, [
    'Term before after Difference Less or more',
    'FSDP all gather 1.000 s 0.250 s -0.750 s',
    'recompute 3.200 s 3.550 s +0.350 s',
    'unchanged 3.000 s 3.000 s 0.000 s',
    'Sum 7.200 s 6.800 s -0.400 s',
  ]);
  const linesOf = (word) => {
    const range = document.createRange();
    range.selectNodeContents(word);
    return new Set([...range.getClientRects()].map((rect) => rect.top)).size;
  };
  assert.equal(await time.getByRole('columnheader', { name: 'Difference' }).evaluate(linesOf), 1, 'no word is broken');
  assert.match(
    await page.getByRole('table', { name: 'Runs side by side' }).innerText(),
    /before\s+7\.200 s[\s\S]+after\s+plan 1 of the advice\s+6\.800 s\s*-5\.6 %/,
  );
  assert.deepEqual(await axe(page), []);
});

const [AFTER, BEFORE] = RUNS;
const PAIR = `/#/compare?runs=${BEFORE.run_id},${AFTER.run_id}`;

function compared(more = {}) {
  const side = (run) => ({ ...run, step_time_low_s: run.step_time_s - 0.1, step_time_high_s: run.step_time_s + 0.1 });
  return {
    'GET /v1/compare': () => ({ runs: [side(BEFORE), side(AFTER)], differences: [] }),
    [`GET /v1/runs/${BEFORE.run_id}`]: () => BEFORE,
    [`GET /v1/runs/${AFTER.run_id}`]: () => AFTER,
    ...more,
  };
}

test('runs of another batch have their intervals drawn for the same tokens', async () => {
  const side = (run, scale) => ({ ...run, tokens_per_step: 1000 * scale, step_time_s: 7 * scale, step_time_low_s: 6.5 * scale, step_time_high_s: 7.5 * scale });
  const page = await open(compared({ 'GET /v1/compare': () => ({ runs: [side(BEFORE, 1), side(AFTER, 4)], differences: [] }) }), { path: PAIR });
  const rows = page.getByRole('table', { name: 'Runs side by side' }).locator('tbody tr');
  await rows.nth(1).getByText('drawn per token').waitFor();
  assert.equal(await rows.nth(0).getByText('drawn per token').count(), 0);
  const ends = await rows.locator('.interval line:first-child').evaluateAll((lines) => lines.map((line) => [line.getAttribute('x1'), line.getAttribute('x2')]));
  assert.deepEqual(ends[0], ends[1], 'four times the work in four times the time');
});

test('a check lets another model or length pass for one of a kind only where that is ticked', async () => {
  const sent = [];
  const check = (body) => {
    sent.push(body.allow_unlike);
    return { verdict: 'pass', reasons: [], step_time_increase_frac: 0, time_per_token_increase_frac: 0, hbm_increase_frac: 0, limits: {} };
  };
  const page = await open(compared({ 'POST /v1/checks': check }), { path: PAIR });
  const place = page.getByRole('group', { name: 'Verdict' });
  await page.getByRole('button', { name: 'Check' }).click();
  await place.getByText('passes').waitFor();
  await page.getByLabel('Another sequence length is allowed').check();
  await page.getByRole('button', { name: 'Check' }).click();
  await page.waitForFunction(() => document.querySelector('[aria-label="Check in CI"]')?.textContent.includes('allow_unlike'));
  await page.getByText('The same in CI').click();
  assert.match(await page.getByRole('region', { name: 'Check in CI' }).innerText(), /, "allow_unlike": \["sequence_length"\]\}/);
  assert.deepEqual(sent, [undefined, ['sequence_length']]);
});

test('a check within limits says pass or fail, why, and how CI does the same', async () => {
  const sent = [];
  const check = (body) => {
    sent.push(body);
    const verdict = body.limits.step_time_increase_frac < 0.05 ? 'fail' : 'pass';
    const reasons = verdict === 'fail' ? [{ code: 'step_time', detail: '+8.14 %; the limit is +3.00 %' }] : [];
    return { verdict, reasons, step_time_increase_frac: 0.0814, time_per_token_increase_frac: 0.0814, hbm_increase_frac: -0.01, limits: {} };
  };
  const page = await open(compared({ 'POST /v1/checks': check }), { path: PAIR });
  await page.getByRole('button', { name: 'Check' }).click();
  const place = page.getByRole('group', { name: 'Verdict' });
  await place.getByText('fails').waitFor();
  assert.match(await place.innerText(), /Time per token \+8\.1 %, memory -1\.0 %\.\s+\+8\.14 %; the limit is \+3\.00 %/);
  await page.getByText('The same in CI').click();
  const command = await page.getByRole('region', { name: 'Check in CI' }).innerText();
  assert.match(command, /fail_status=true[\s\S]*"run_id": "0193a000-[^"]*1"[\s\S]*"step_time_increase_frac":0\.03/);
  await page.getByLabel('Time per token may grow by').fill('10 %');
  await page.getByLabel('Memory may grow by').fill('0');
  await page.keyboard.press('Enter');
  await place.getByText('passes').waitFor();
  assert.deepEqual(
    sent.map((body) => body.limits),
    [
      { must_fit: true, step_time_increase_frac: 0.03 },
      { must_fit: true, step_time_increase_frac: 0.1, hbm_increase_frac: 0 },
    ],
  );
  assert.deepEqual(sent[0].candidate, { run_id: AFTER.run_id });
  assert.deepEqual(await axe(page), []);
});

test('a verdict names its run, and goes when the entries change or the next check is refused', async () => {
  let answer = { verdict: 'pass', reasons: [], step_time_increase_frac: 0, time_per_token_increase_frac: 0, hbm_increase_frac: 0, limits: {} };
  const page = await open(compared({ 'POST /v1/checks': () => answer }), { path: PAIR });
  const place = page.getByRole('group', { name: 'Verdict' });
  const check = page.getByRole('button', { name: 'Check' });
  await check.click();
  await place.getByText(/^after\s+passes/).waitFor();
  await page.getByLabel('Memory may grow by').fill('5');
  assert.equal(await place.innerText(), '', 'no verdict on other limits');
  await check.click();
  await place.getByText(/^after\s+passes/).waitFor();
  answer = { status: 422, title: 'No', errors: [{ pointer: '/candidate', code: 'unlike-sequence-length', detail: 'unlike work is not compared', hint: 'compare runs of one length' }] };
  await check.click();
  await page.locator('#gate-unlike-length-error').getByText('Unlike work is not compared. compare runs of one length').waitFor();
  assert.equal(await place.innerText(), '', 'no verdict beside a refusal');
  assert.deepEqual(await axe(page), []);
  answer = { status: 422, title: 'No', errors: [{ pointer: '/candidate', detail: 'it has no step time', hint: 'take another' }] };
  await check.click();
  await page.getByText('it has no step time take another').waitFor();
});

test('what a check notes is said below its reasons', async () => {
  const notes = [{ code: 'other_batch', detail: 'the batch is another: 32 sequences instead of 16' }, { code: 'priced_again', detail: '`before` was priced again' }];
  const check = () => ({ verdict: 'pass', reasons: [], notes, time_per_token_increase_frac: 0.01, hbm_increase_frac: 0, limits: {} });
  const page = await open(compared({ 'POST /v1/checks': check }), { path: PAIR });
  await page.getByRole('button', { name: 'Check' }).click();
  const place = page.getByRole('group', { name: 'Verdict' });
  await place.getByText('passes').waitFor();
  assert.match(await place.innerText(), /The batch is another: 32 sequences instead of 16\.\s+before was priced again\./);
});

test('runs of two batches are set side by side per token', async () => {
  const { 'GET /v1/compare': both, ...rest } = compared();
  const answer = both();
  const [first, other] = answer.runs;
  Object.assign(other, { step_time_s: first.step_time_s * 2.2, tokens_per_step: 2 });
  first.tokens_per_step = 1;
  const page = await open({ ...rest, 'GET /v1/compare': () => answer }, { path: PAIR });
  const row = page.getByRole('table', { name: 'Runs side by side' }).locator('tbody tr').nth(1);
  await row.waitFor();
  assert.match(await row.innerText(), /\+10\.0 % per token/);
});

test('a link to a run that was deleted offers to restore it', async () => {
  const id = RUNS[1].run_id;
  let restored = false;
  const gone = { status: 404, title: 'There is no such resource', errors: [] };
  const page = await open(
    {
      [`GET /v1/runs/${id}`]: () => (restored ? { ...RUNS[1], request: { model: 'x', config: {} }, response: estimate() } : { ...gone, detail: `the run '${id}' was deleted` }),
      [`POST /v1/runs/${id}/restore`]: () => {
        restored = true;
        return RUNS[1];
      },
    },
    { path: `/#/runs/${id}` },
  );
  await page.getByRole('heading', { name: 'This run was deleted' }).waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole('button', { name: 'Restore' }).click();
  await page.getByRole('heading', { name: 'before', exact: true }).waitFor();
});

test('a limit that is no number is said beside it', async () => {
  const page = await open(compared(), { path: PAIR });
  await page.getByLabel('Time per token may grow by').fill('little');
  await page.getByRole('button', { name: 'Check' }).click();
  assert.match(await page.locator('#gate-step-error').innerText(), /“little” is not a number of percent/);
  assert.equal(await page.inputValue('#gate-step'), 'little');
  assert.deepEqual(await axe(page), []);
});

test('runs whose intervals overlap are not told apart without a word', async () => {
  const near = { ...BEFORE, step_time_s: 6.85 };
  const page = await open(
    compared({
      'GET /v1/compare': () => ({
        runs: [near, AFTER].map((run) => ({
          ...run,
          step_time_low_s: run.step_time_s - 0.1,
          step_time_high_s: run.step_time_s + 0.1,
        })),
        differences: [],
      }),
    }),
    { path: PAIR },
  );
  await page.getByText('The intervals of before and after overlap').waitFor();
});

test('a run becomes the baseline of a project', async () => {
  let sent = null;
  const path = `/v1/baselines/demo/main%20branch`;
  const page = await open(
    {
      [`GET /v1/runs/${BEFORE.run_id}`]: () => ({
        ...BEFORE,
        request: { model: 'llama3.1-70b', cluster: {}, config: {} },
        response: estimate(),
      }),
      [`PUT ${path}`]: (body) => {
        sent = body;
        return { project: 'demo', label: 'main branch', run_id: BEFORE.run_id };
      },
    },
    { path: `/#/runs/${BEFORE.run_id}` },
  );
  await page.getByText('Make this run a baseline for CI').click();
  await page.fill('#baseline-label', '');
  await page.getByRole('button', { name: 'Make it the baseline' }).click();
  assert.match(await page.locator('#baseline-label-error').innerText(), /Label is missing/);
  await page.fill('#baseline-label', 'main branch');
  await page.keyboard.press('Enter');
  await page.getByText('This run is now the baseline main branch of demo.').first().waitFor();
  assert.deepEqual(sent, { run_id: BEFORE.run_id });
  assert.deepEqual(await axe(page), []);
});

test('as the baseline of an advice counts its first plan, which is said', async () => {
  const run = { ...AFTER, request: { model: 'llama3.1-70b', cluster: {}, workload: {} }, response: advice() };
  const page = await open({ [`GET /v1/runs/${AFTER.run_id}`]: () => run }, { path: `/#/runs/${AFTER.run_id}` });
  await page.getByText('Make this run a baseline for CI').click();
  await page.getByText('A check compares with plan 1 of this advice.').waitFor();
});

test('what has no step time cannot be ticked for a comparison', async () => {
  const kernel = { ...AFTER, run_id: 'k', kind: 'kernel', label: 'tuned', step_time_s: null, fits: null };
  const page = await open({ 'GET /v1/runs': () => ({ runs: [kernel, ...RUNS], next_cursor: null }) });
  await page.getByLabel('Compare after').waitFor();
  assert.equal(await page.getByLabel('Compare tuned').isDisabled(), true);
  assert.doesNotMatch(await page.locator('#view-other').innerText(), /null|NaN/);
});

test('a store that is away is said plainly', async () => {
  const page = await open({
    'GET /v1/runs': () => ({ status: 503, title: 'The store is away', headers: { 'Retry-After': '5' } }),
  });
  const alert = page.getByRole('alert');
  await alert.waitFor();
  assert.match(await alert.innerText(), /The store is away[\s\S]*Try again in 5 s/);
});

test('a stored tuning opens with its tiles and goes back into its form', async () => {
  const id = RUNS[0].run_id;
  const request = { chip: 'v6e', kernel: 'splash_fwd', shape: { q_heads: 4, q_len: 2048 }, top_k: 3 };
  const run = { ...RUNS[0], kind: 'kernel', label: 'tuned', request, response: tuning() };
  const page = await open({ [`GET /v1/runs/${id}`]: () => run }, { path: `/#/runs/${id}` });
  await page.waitForSelector('.lanes');
  await page.check('#run-choice-2');
  await page.getByText('block_q 1024 · block_kv 2048 · k_layout SEQ_MINOR').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Edit this tile' }).count(), 0, 'no form is open');
  assert.deepEqual(await axe(page), []);
  await page.getByRole('link', { name: 'Open in the form' }).click();
  await page.locator('#k-form').waitFor();
  await page.waitForSelector('#k-shape-q_len');
  assert.equal(await page.inputValue('#k-shape-q_len'), '2048');
  assert.equal(await page.inputValue('#k-chip'), 'v6e');
});

test('a measurement is taken back only when that is said twice', async () => {
  const id = RUNS[1].run_id;
  const row = { measurement_id: 'm1', rank: 1, at: '2026-11-22T05:00:00Z', source: 'nightly', measured_step_time_s: 7, step_time_s: 6.8, step_time_low_s: 6.5, step_time_high_s: 7.2, error_frac: -0.03, inside_interval: true };
  let rows = [row];
  const page = await open(
    {
      [`GET /v1/runs/${id}`]: () => ({ ...RUNS[1], request: { model: 'llama3.1-70b', cluster: {}, config: {} }, response: { ...estimate(), run_id: id } }),
      [`GET /v1/runs/${id}/measurements`]: () => ({ measurements: rows }),
      [`DELETE /v1/runs/${id}/measurements/m1`]: () => {
        rows = [];
        return {};
      },
    },
    { path: `/#/runs/${id}?plan=mine&tab=measured` },
  );
  const take = page.getByRole('button', { name: 'Take back 7.000 s of 2026-11-22 05:00 UTC' });
  await take.click();
  await page.getByRole('button', { name: 'Really take back, for good' }).waitFor();
  await page.keyboard.press('Tab');
  await take.waitFor(); // the first press is forgotten
  assert.equal(rows.length, 1);
  await take.click();
  assert.deepEqual(await axe(page), []);
  await page.getByRole('button', { name: 'Really take back, for good' }).click();
  await page.getByText('Nothing is measured yet.').waitFor();
  await page.waitForFunction(() => document.activeElement.getAttribute('aria-label') === 'Measurements');
});

test('a long label keeps its row in line, and no name of a model or a slice is broken', async () => {
  const runs = [{ ...RUNS[0], label: 'a long label of a nightly run of the team that trains the large model '.repeat(2).slice(0, 95) }];
  const page = await open({ 'GET /v1/runs': () => ({ runs, next_cursor: null }) }, { width: 1280 });
  await page.getByRole('table', { name: 'Stored runs' }).waitFor();
  const top = (text) => page.getByText(text, { exact: true }).first().evaluate((element) => element.getClientRects()[0].top);
  const [name, model] = [await page.locator('.run-name a').evaluate((link) => link.getClientRects()[0].top), await top('llama3.1-70b')];
  assert.ok(Math.abs(name - model) < 4, `${name} ${model}`);
  for (const text of ['llama3.1-70b', 'tpu7x 4x4x4']) assert.equal(await page.getByText(text, { exact: true }).first().evaluate((element) => element.getClientRects().length), 1);
});

test('a link that compares one run, or none, says what a comparison is of', async () => {
  const page = await open({}, { path: '/#/compare?runs=garbage' });
  await page.getByText('A comparison is of 2 to 16 runs, and the link names 1. Tick them in the list of stored runs.').waitFor();
  await page.getByRole('heading', { name: 'Comparison', level: 1 }).waitFor();
});

test('a page that is long in coming says so, and a quick one does not', async () => {
  const id = RUNS[1].run_id;
  const page = await open({ 'GET /v1/runs': () => ({ runs: RUNS, next_cursor: null }), [`GET /v1/runs/${id}`]: () => ({ ...RUNS[1], request: {}, response: {} }) });
  await page.getByRole('table', { name: 'Stored runs' }).waitFor();
  assert.equal(await page.locator('.loading').count(), 0);
  let release;
  const held = new Promise((resolve) => {
    release = resolve;
  });
  await page.route(`**/v1/runs/${id}`, (route) => held.then(() => route.continue()));
  await page.getByRole('link', { name: 'before' }).click();
  await page.getByText('Loading …').waitFor();
  await page.getByRole('heading', { name: 'Run', level: 1 }).waitFor();
  assert.deepEqual(await axe(page), []);
  release();
  await page.getByRole('heading', { name: 'before' }).waitFor();
  assert.equal(await page.locator('.loading').count(), 0);
});

test('the head of the page is one line on a tablet', async () => {
  const page = await open({ 'GET /v1/runs': () => ({ runs: [], next_cursor: null }), 'GET /v1/catalog/models': () => ({ engine: { version: '1.0.0+925cce725660' }, models: [] }) }, { width: 768 });
  await page.getByText('engine 1.0.0').waitFor();
  const middle = (selector) => page.locator(selector).evaluate((element) => element.getBoundingClientRect().top + element.getBoundingClientRect().height / 2);
  assert.ok(Math.abs((await middle('#theme')) - (await middle('.brand'))) < 12);
});

test('two runs that are predicted alike are said to be, not drawn', async () => {
  const sides = RUNS.map((run) => ({ ...estimate(), run_id: run.run_id }));
  const terms = [{ name: 'mlp_matmul', from: 3, to: 3, delta: 0 }];
  const answer = { runs: sides, differences: [{ from: RUNS[0].run_id, to: RUNS[1].run_id, time_terms: terms, memory_terms: [], unlike: [] }] };
  const stored = Object.fromEntries(RUNS.map((run) => [`GET /v1/runs/${run.run_id}`, () => run]));
  const page = await open({ 'GET /v1/compare': () => answer, ...stored }, { path: `/#/compare?runs=${RUNS[0].run_id},${RUNS[1].run_id}` });
  await page.getByText('No term of the time moves: after and before are predicted alike.').waitFor();
  assert.equal(await page.locator('.picture-place').count(), 0);
});
