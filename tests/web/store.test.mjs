// Runs in a real PostgreSQL, from the form to the comparison; ORIGIN comes from run.sh.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test, { after, before } from 'node:test';
import { axe, drawn, launch, openPage, openTab } from './browser.mjs';
import { waterfallAddsUp } from './waterfall.mjs';

let browser;
let opened;

before(async () => {
  assert.ok(process.env.ORIGIN, 'ORIGIN names the daemon');
  browser = await launch();
  opened = await openPage(browser, process.env.ORIGIN);
});
after(async () => {
  await browser?.close();
});

async function adviseAndStore(page, label, batch) {
  await page.goto('about:blank');
  await page.goto(
    `${process.env.ORIGIN}/#/?model=llama3.1-8b&chip=v6e&topology=4x4&seq_len=4096&batch=${batch}&label=${label}`,
  );
  await page.waitForSelector('#models option', { state: 'attached' });
  await page.check('#store');
  await page.click('#submit');
  await page.getByText('Stored as run').waitFor({ timeout: 30000 });
  return page.locator('#results').getByRole('link').first().innerText();
}

// The picture of a comparison against the comparison itself; the second run for as many tokens as a step of the first has.
async function comparisonAddsUp(page, first, second) {
  await drawn(page);
  const compared = await fetch(`${process.env.ORIGIN}/v1/compare?runs=${first},${second}`);
  const [one, other] = (await compared.json()).runs;
  const scale = one.tokens_per_step / other.tokens_per_step;
  await waterfallAddsUp(page.locator('.picture-waterfall'), one.step_time_s, other.step_time_s * scale);
  return scale;
}

test('answers stored from the form are listed, opened and compared', async () => {
  const { page } = opened;
  const first = await adviseAndStore(page, 'small-batch', '1');
  const second = await adviseAndStore(page, 'large-batch', '2');
  assert.match(first, /^[0-9a-f-]{36}$/);
  assert.notEqual(first, second);

  const asked = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith('/v1/')) asked.push(pathname);
  });
  await page.click('#nav-runs');
  const list = page.getByRole('table', { name: 'Stored runs' });
  await list.waitFor();
  const rows = (await list.locator('tbody tr').allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' ').trim());
  assert.equal(rows.length, 2);
  assert.match(rows[0], /^large-batch advise llama3\.1-8b v6e 4x4 .*\d m?s .*GiB fits/);
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(asked.sort(), ['/v1/baselines', '/v1/runs'], 'one visit asks once');

  await page.getByLabel('Compare large-batch').check();
  await page.getByLabel('Compare small-batch').check();
  await page.getByRole('button', { name: 'Compare 2', exact: true }).click();
  const time = page.getByRole('table', { name: /Where the time went/ });
  await time.waitFor();
  assert.match(await time.locator('thead').innerText(), /small-batch\s+large-batch, scaled/, 'for the same tokens, as the picture');
  assert.ok((await time.locator('tbody tr').count()) >= 3, 'terms');
  assert.deepEqual(await axe(page), []);
  assert.equal(await comparisonAddsUp(page, first, second), 0.5);
  await page.getByText('Per token: large-batch is scaled to the tokens of a step of small-batch.').waitFor();

  await page.getByLabel('Time per token may grow by').fill('1000');
  await page.getByRole('button', { name: 'Check' }).click();
  const verdict = page.getByRole('group', { name: 'Verdict' });
  await verdict.getByText('passes').waitFor();
  assert.match(await verdict.innerText(), /Time per token [+-]?\d+\.\d %, memory/);
  await page.getByLabel('Time per token may grow by').fill('-99');
  await page.keyboard.press('Enter');
  await verdict.getByText('fails').waitFor();
  await page.getByLabel('Time per token may grow by').fill('-500');
  await page.keyboard.press('Enter');
  await page
    .getByText(/must be from -1/)
    .first()
    .waitFor();
  assert.match(await page.locator('#gate-step-error').innerText(), /must be from -1/);

  await page.getByRole('link', { name: 'small-batch' }).first().click();
  await page.waitForSelector('#run-ranked');
  await page.check('#run-plan-2');
  assert.match(await page.locator('#run-detail h2').innerText(), /^Plan 2/);
  await openTab(page, 'Run it');
  for (const name of await page
    .getByRole('table', { name: 'Files of plan 2' })
    .locator('tbody code')
    .allInnerTexts()) {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: `Download: ${name}` }).click(),
    ]);
    assert.equal(download.suggestedFilename(), name);
    assert.match(await readFile(await download.path(), 'utf8'), /\S/, name);
  }
  await page.getByText('Make this run a baseline for CI').click();
  await page.fill('#baseline-project', 'web');
  await page.fill('#baseline-label', 'main');
  await page.keyboard.press('Enter');
  await page.getByText('This run is now the baseline main of web.').first().waitFor();
  assert.equal((await (await fetch(`${process.env.ORIGIN}/v1/baselines/web/main`)).json()).run_id, first);

  const ids = await page.locator('[id]').evaluateAll((all) => all.map((element) => element.id));
  assert.equal(new Set(ids).size, ids.length, 'every id is used once');
  assert.equal(await page.locator('h1').locator('visible=true').innerText(), 'small-batch');
  await page.getByRole('link', { name: 'Open in the form' }).click();
  await page.locator('#form').waitFor(); // shown and filled in one go
  assert.equal(await page.inputValue('#model'), 'llama3.1-8b');
  assert.equal(await page.inputValue('#topology'), '4x4');
  assert.deepEqual(opened.complaints, [], 'the console stays free of errors');
  assert.deepEqual(opened.foreign, [], 'no request leaves the host');
});

test('runs of one batch are compared by the step', async () => {
  const { page } = opened;
  const store = async (label, remat_policy) => {
    const body = {
      model: 'llama3.1-8b',
      cluster: { chip: 'v6e', topology: '4x4' },
      config: { remat_policy, per_device_batch_size: 1, max_target_length: 4096 },
      store: true,
      label,
    };
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
    return (await (await fetch(`${process.env.ORIGIN}/v1/estimate`, init)).json()).run_id;
  };
  const [full, minimal] = [await store('all-recomputed', 'full'), await store('less-recomputed', 'minimal')];
  await page.goto(`${process.env.ORIGIN}/#/compare?runs=${full},${minimal}`);
  await page.locator('.picture-waterfall').waitFor();
  assert.equal(await comparisonAddsUp(page, full, minimal), 1);
  assert.equal(await page.getByText('Per token: less-recomputed').count(), 0);
  assert.ok((await page.locator('.picture-waterfall .fall-gain').count()) > 0, 'less recompute saves time');
});

test('a tuning is stored from its form, listed, opened and drawn again', async () => {
  const { page } = opened;
  await page.goto('about:blank');
  await page.goto(`${process.env.ORIGIN}/#/kernels?chip=v6e&shape.q_len=4096&label=tuned`);
  await page.waitForSelector('#k-shape input');
  await page.check('#k-store');
  await page.click('#k-submit');
  await page.locator('#k-results').getByText('Stored as run').waitFor({ timeout: 20000 });
  await page.click('#nav-runs');
  await page.getByRole('link', { name: 'tuned' }).click();
  await page.waitForSelector('#view-other .lanes', { timeout: 20000 });
  assert.equal(await page.locator('h1').locator('visible=true').innerText(), 'tuned');
  const ids = await page.locator('[id]').evaluateAll((all) => all.map((element) => element.id));
  assert.equal(new Set(ids).size, ids.length, 'every id is used once');
  assert.deepEqual(await axe(page), []);
});

// Of a trace: "lane: name" -> seconds of the step. times: how often an event happens in a step.
function busyOf({ traceEvents }, times = () => 1) {
  const lanes = new Map(traceEvents.filter(({ name }) => name === 'thread_name').map(({ tid, args }) => [tid, args.name]));
  const busy = new Map();
  for (const event of traceEvents.filter(({ ph }) => ph === 'X')) {
    const key = `${lanes.get(event.tid)}: ${event.name}`;
    busy.set(key, (busy.get(key) ?? 0) + event.dur * 1e-6 * times(event));
  }
  return busy;
}

test('trace.json has the lanes of the layer in time, each as busy as there', async () => {
  const { page } = opened;
  const body = {
    model: 'mixtral-8x7b',
    cluster: { chip: 'v5p', topology: '4x4x4' },
    config: { ici_fsdp_parallelism: 16, ici_expert_parallelism: 4, per_device_batch_size: 1, max_target_length: 4096, remat_policy: 'full' },
    store: true,
  };
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const { run_id: id } = await (await fetch(`${process.env.ORIGIN}/v1/estimate`, init)).json();
  const step = busyOf(await (await fetch(`${process.env.ORIGIN}/v1/runs/${id}/artifacts/trace.json`)).json());
  await page.goto(`${process.env.ORIGIN}/#/runs/${id}?tab=time`);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download for Perfetto' }).click()]);
  const layers = busyOf(JSON.parse(await readFile(await download.path(), 'utf8')), ({ args }) => args.times_per_step);
  const sent = [...layers].filter(([key]) => !key.startsWith('TensorCore'));
  assert.ok(sent.length >= 3, 'weights gathered, gradients scattered, tokens dispatched');
  for (const [key, seconds] of sent) {
    assert.ok(step.has(key), `trace.json has ${key}, of ${[...step.keys()].join(', ')}`);
    const outside = step.get(key) - seconds; // embedding and head
    assert.ok(outside > -1e-6 * seconds && outside < 0.1 * step.get(key), `${key}: ${seconds} s in layers, ${step.get(key)} s in the step`);
  }
});

test('a log beside a stored plan: predicted against measured, on the plan and on the page of accuracy', async () => {
  const { page } = opened;
  const id = await adviseAndStore(page, 'measured', '1');
  const run = await (await fetch(`${process.env.ORIGIN}/v1/runs/${id}`)).json();
  const { step_time_s: predicted, tokens_per_s_per_chip: tokens } = run.response.ranked[0].estimate;
  const line = (step, seconds) =>
    `completed step: ${step}, seconds: ${seconds.toFixed(4)}, TFLOP/s/device: 400.1, Tokens/s/device: ${((tokens * predicted) / seconds).toFixed(3)}, total_weights: 1, loss: 9.1\n`;
  await page.goto(`${process.env.ORIGIN}/#/runs/${id}?plan=1&tab=measured`);
  await page.getByText('Nothing is measured yet.').waitFor();
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.locator('#run-measure-step-error').waitFor();
  assert.deepEqual(await axe(page), []);
  const log = Array.from({ length: 12 }, (_, step) => line(step, predicted * (step < 3 ? 9 : 1.02))).join('');
  await page.fill('#run-measure-log', log);
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  const list = page.getByRole('table', { name: 'Measurements of this plan' });
  await list.waitFor();
  assert.match(await list.innerText(), /median of 9 steps[\s\S]*-2\.0 %\s+too short\s+inside/);
  await page.getByRole('img', { name: /1 of them inside the predicted 90 % interval/ }).waitFor();
  assert.deepEqual(await axe(page), []);
  const stored = page.getByText(/ measured, the prediction is 2\.0 % too short\.$/);
  await stored.waitFor();
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.locator('#run-measure-step-error').waitFor();
  assert.equal(await stored.count(), 0, 'nothing was stored this time');

  await page.click('#nav-accuracy');
  await page.getByRole('table', { name: 'Measurements, newest first' }).waitFor();
  assert.match(await page.getByRole('table', { name: 'Errors by chip and model' }).innerText(), /v6e llama3\.1-8b\s+1\s+2\.0 %\s+-2\.0 %\s+100 %/);
  assert.ok((await page.getByRole('table', { name: 'Published steps by chip' }).locator('tbody tr').count()) >= 5);
  assert.ok((await page.getByRole('table', { name: 'Compiled steps by chip' }).locator('tbody tr').count()) >= 6);
  assert.deepEqual(await axe(page), []);
  await page.setViewportSize({ width: 360, height: 900 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'no wider than a phone');
  await page.setViewportSize({ width: 1280, height: 900 });

  await page.goto(`${process.env.ORIGIN}/#/runs/${id}?plan=1&tab=measured`);
  await page.getByRole('button', { name: 'Take back' }).click();
  await page.getByRole('button', { name: 'Really take back, for good' }).click();
  await page.getByText('Nothing is measured yet.').waitFor();
  assert.deepEqual(opened.complaints, [], 'the console stays free of errors');
});

test('a project is calibrated by its measurements, in force and reverted', async () => {
  const { page } = opened;
  const id = await adviseAndStore(page, 'calibrated&project=web-cal', '1');
  const { response } = await (await fetch(`${process.env.ORIGIN}/v1/runs/${id}`)).json();
  for (const day of [1, 2, 3, 4])
    await fetch(`${process.env.ORIGIN}/v1/runs/${id}/measurements?rank=${day}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ step_time_s: response.ranked[day - 1].estimate.step_time_s * 1.1, source: 'test', at: `2026-11-0${day}T00:00:00Z` }),
    });
  await page.goto(`${process.env.ORIGIN}/#/accuracy?project=web-cal`);
  await page.getByText('No project is calibrated.').waitFor();
  await page.getByRole('button', { name: 'Fit', exact: true }).click();
  const list = page.getByRole('table', { name: 'Calibrations, newest first' });
  await list.waitFor();
  assert.match(await list.innerText(), /v6e step time \+\d+\.\d % from 4 measurements of 4 plans, trusted \d+ %; mean error 9\.1 %/);
  await list.getByRole('button', { name: 'Activate' }).click();
  await list.getByText('in force', { exact: true }).waitFor();
  await list.getByText('Effect on every measured plan').click();
  await page.getByRole('table', { name: 'Measured plans before and after' }).waitFor();
  assert.deepEqual(await axe(page), []);
  await list.getByRole('button', { name: 'Revert' }).click();
  await list.getByRole('button', { name: 'Activate' }).waitFor();
  assert.deepEqual(opened.complaints, [], 'the console stays free of errors');
});

test('a plan is queued for the compiler and cancelled', async () => {
  const { page } = opened;
  const id = await adviseAndStore(page, 'proved', '1');
  await page.goto(`${process.env.ORIGIN}/#/runs/${id}?plan=2&tab=prove`);
  await page.getByRole('button', { name: 'Prove with the real compiler' }).click();
  await page.getByText('Waiting for a verifier').waitFor();
  const { verifications } = await (await fetch(`${process.env.ORIGIN}/v1/runs/${id}/verifications`)).json();
  assert.deepEqual(verifications.map((row) => row.ranks), [[2]]);
  await page.getByRole('button', { name: 'Cancel', exact: true }).locator('visible=true').click();
  await page.getByText('The last verification was cancelled.').waitFor();
  assert.deepEqual(await axe(page), []);
});

test('runs are found by words and tags, put in order, deleted and restored', async () => {
  const { page } = opened;
  const id = await adviseAndStore(page, 'find-delete', '1');
  const keep = await adviseAndStore(page, 'find-keep', '2');
  const send = (method, path, body) =>
    fetch(`${process.env.ORIGIN}${path}`, { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.equal((await send('PUT', '/v1/baselines/web/kept', { run_id: keep })).ok, true);
  await page.goto(`${process.env.ORIGIN}/#/runs/${keep}`);
  await page.getByText('Change the tags').click();
  await page.fill('#run-tags', 'nightly, large, nightly');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'nightly' }).waitFor();
  const tags = async () => (await (await fetch(`${process.env.ORIGIN}/v1/runs/${keep}`)).json()).tags.sort();
  assert.deepEqual(await tags(), ['large', 'nightly']);
  assert.deepEqual(await axe(page), []);
  assert.equal((await send('PATCH', `/v1/runs/${keep}`, { tags: ['nightly', 'of-another-tab'] })).ok, true);
  await page.fill('#run-tags', 'nightly, mine');
  await page.keyboard.press('Enter');
  await page.locator('#run-tags-error').getByText('Somebody has changed the tags since this page was opened: nightly, of-another-tab.').waitFor();
  assert.deepEqual(await tags(), ['nightly', 'of-another-tab'], 'nothing is lost');
  assert.equal(await page.inputValue('#run-tags'), 'nightly, mine', 'nor what was entered');
  await page.fill('#run-tags', 'nightly, large');
  const stored = page.waitForResponse((response) => response.request().method() === 'PATCH' && response.ok()); // its tags were in sight all the time
  await page.keyboard.press('Enter');
  await stored;
  assert.deepEqual(await tags(), ['large', 'nightly']);
  assert.equal((await send('POST', `/v1/runs/${keep}/verifications`, { rank: 1 })).ok, true); // changes the run, not its tags
  await page.fill('#run-tags', 'nightly');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'large' }).waitFor({ state: 'detached' });
  await page.fill('#run-tags', 'nightly, large');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'large' }).waitFor();

  const list = page.getByRole('table', { name: 'Stored runs' });
  const names = () => list.locator('tbody th a:not(.tag)').allInnerTexts();
  const settled = async () => {
    await page.locator('.runs-list[aria-busy="true"]').waitFor({ state: 'detached' });
    return names();
  };
  const asks = (pattern, act) => Promise.all([page.waitForResponse((response) => pattern.test(response.url())), act()]).then(settled);
  await page.getByRole('link', { name: 'nightly' }).click();
  await list.waitFor();
  assert.deepEqual(await names(), ['find-keep'], 'only the run with the tag');
  await page.getByText('baseline web kept').waitFor();
  await asks(/tags=nightly%2Cnone/, async () => {
    await page.fill('#filter-tags', 'nightly, none');
    await page.keyboard.press('Enter');
  });
  await page.getByText('No such run is stored.').waitFor();
  await page.fill('#filter-tags', '');
  const found = await asks(/q=V6E\+find-/, () => page.locator('#filter-q').pressSequentially('V6E find-', { delay: 10 }));
  assert.deepEqual(found, ['find-keep', 'find-delete'], 'newest first');
  assert.match(await page.evaluate(() => location.hash), /q=V6E/);
  await page.getByLabel('Compare find-keep').check();
  assert.deepEqual(await asks(/sort=step_time_s/, () => page.selectOption('#filter-sort', 'step_time_s')), ['find-delete', 'find-keep'], 'the smaller batch takes less time');
  assert.equal(await page.getByLabel('Compare find-keep').isChecked(), true, 'ticks outlast another order');
  await page.getByText('Kernels have no such number').waitFor();
  assert.deepEqual(await axe(page), []);

  await page.getByRole('button', { name: 'Delete find-keep' }).click();
  await page.getByRole('button', { name: 'Really delete' }).click();
  await page.getByRole('alert').waitFor(); // a baseline cannot be deleted, and the page says so
  await page.getByRole('button', { name: 'Delete find-delete' }).click();
  await page.getByRole('button', { name: 'Really delete' }).click();
  await page.getByText('find-delete is deleted.').waitFor();
  assert.deepEqual(await settled(), ['find-keep']);
  assert.equal((await fetch(`${process.env.ORIGIN}/v1/runs/${id}`)).status, 404);
  await page.getByRole('button', { name: 'Restore find-delete' }).click(); // at once
  await page.getByText('find-delete is restored.').waitFor();
  assert.deepEqual(await settled(), ['find-delete', 'find-keep']);

  await send('DELETE', `/v1/runs/${id}`);
  await asks(/deleted=true/, () => page.selectOption('#filter-deleted', 'true'));
  const gone = list.getByRole('row').filter({ hasText: 'find-delete' });
  assert.match(await gone.innerText(), /deleted 20\d\d-/);
  assert.equal(await gone.getByRole('checkbox').count(), 0, 'what is deleted is not compared');
  assert.equal(await page.locator('#filter-sort').isDisabled(), true, 'deleted runs have one order');
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 900 });
    assert.deepEqual(await axe(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${width} px`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await gone.getByRole('button', { name: 'Restore find-delete' }).click();
  await page.getByText('No such run is deleted.').waitFor();
  assert.equal((await fetch(`${process.env.ORIGIN}/v1/runs/${id}`)).status, 200);
  await page.goBack();
  await list.waitFor();
  assert.deepEqual(await settled(), ['find-delete', 'find-keep'], 'back to what was asked before');
  assert.deepEqual(opened.complaints, [], 'the console stays free of errors');
});

test('a sweep is started, followed and shown as a heatmap, and what cannot be estimated says so', async () => {
  const { page } = opened;
  await page.click('#nav-sweeps');
  await page.fill('#sweep-model', 'lama3.1-8b');
  await page.getByRole('button', { name: 'Start the sweep' }).click();
  await page.locator('#sweep-model-error').waitFor();
  assert.deepEqual(await axe(page), []);
  await page.fill('#sweep-model', 'llama3.1-8b');
  await page.fill('#sweep-x', 'per_device_batch_size=1, 2, 64');
  await page.fill('#sweep-y', 'remat_policy=full, minimal');
  await page.fill('#sweep-label', 'batch and remat');
  await page.getByRole('button', { name: 'Start the sweep' }).click();
  const map = page.getByRole('table', { name: /^Tokens per second and chip by remat_policy and per_device_batch_size/ });
  await map.waitFor();
  await page.getByText('6 of 6 items, done').waitFor({ timeout: 20000 });
  assert.equal(await map.locator('td').count(), 6);
  assert.match(await map.locator('tr').last().innerText(), /minimal[\s\S]*does not fit/);
  await page.click('#nav-sweeps');
  await page.getByRole('link', { name: 'batch and remat' }).first().click();
  await map.waitFor(); // the link of the list names no axes
  assert.equal(await map.locator('td').count(), 6);
  await page.getByText('Every item').click();
  await page.setViewportSize({ width: 360, height: 900 });
  const broken = await map.locator('td strong').evaluateAll((all) => all.filter((cell) => /^[\d,]+$/.test(cell.textContent) && cell.getClientRects().length > 1).length);
  assert.equal(broken, 0, 'no number is broken over lines on a phone');
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'nor is the page wider');
  await page.setViewportSize({ width: 1280, height: 900 });
  const items = page.getByRole('table', { name: 'Items of the sweep' });
  assert.match(await items.locator('tbody tr').nth(4).innerText(), /remat_policy minimal, per_device_batch_size 2|per_device_batch_size 2, remat_policy minimal/);
  assert.ok((await map.locator('td.heat-0').count()) >= 1, 'the best one is dark');
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 900 });
    assert.deepEqual(await axe(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${width} px`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  assert.deepEqual(opened.complaints, [], 'the console stays free of errors');
});

test('a sweep is cancelled from its page, and what is left of it does not run', async () => {
  const { page } = opened;
  const search = (batch) => ({
    model: 'deepseek3-671b',
    clusters: Array(16).fill({ chip: 'tpu7x', topology: '8x16x16' }), // each takes long, so that none is done before the click
    workload: { seq_len: 4096, global_batch_sequences: 8192 * batch },
    search: { top_k: 1, sensitivities: true },
  });
  const body = { kind: 'advise', label: 'too long', requests: Array.from({ length: 60 }, (_, index) => search(index + 1)) };
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const { sweep_id: id } = await (await fetch(`${process.env.ORIGIN}/v1/sweeps`, init)).json();
  await page.goto(`${process.env.ORIGIN}/#/sweeps/${id}`);
  await page.getByRole('button', { name: 'Cancel the sweep' }).click();
  await page.getByRole('status').filter({ hasText: /60 of 60 items.*, \d+ cancelled, cancelled/ }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Cancel the sweep' }).count(), 0, 'nothing is left to cancel');
  assert.deepEqual(await axe(page), []);
  const sweep = await (await fetch(`${process.env.ORIGIN}/v1/sweeps/${id}`)).json();
  assert.equal(sweep.state, 'cancelled');
  assert.ok(sweep.cancelled_count > 40, `${sweep.cancelled_count} of 60 did not run`);
  assert.deepEqual(opened.complaints, [], 'the console stays free of errors');
});

test('files come with an answer that is not stored, and storing it leaves the reader at the same tab', async () => {
  const { page } = opened;
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto('about:blank');
    await page.goto(`${process.env.ORIGIN}/#/?model=llama3.1-8b&chip=v6e&topology=4x4&seq_len=4096&batch=3&label=${width}`);
    await page.waitForSelector('#models option', { state: 'attached' });
    await page.click('#submit');
    await page.check('#plan-2');
    await openTab(page, 'Run it');
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download: maxtext.sh' }).click()]);
    const script = await readFile(await download.path(), 'utf8');
    assert.match(script, /^#!\/bin\/bash\n# llama3\.1-8b on v6e 4x4: predicted/);
    await openTab(page, 'Measured');
    const top = () => page.locator('.tab-panel.current').last().evaluate((panel) => panel.getBoundingClientRect().top);
    const before = await top();
    await page.getByRole('button', { name: 'Store as a run' }).click();
    await page.getByRole('heading', { name: 'Predicted against measured' }).waitFor();
    await drawn(page);
    assert.ok(Math.abs((await top()) - before) < 8, `${width} px: the tab stays where it was, ${before} against ${await top()}`);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Measured');
    await openTab(page, 'Run it');
    const [stored] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download: maxtext.sh' }).last().click()]);
    assert.equal(await readFile(await stored.path(), 'utf8'), script, 'the run has the same file');
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  assert.deepEqual(opened.complaints, [], 'the console stays free of errors');
});

test('a run that does not exist is said plainly', async () => {
  const { page } = opened;
  await page.goto(`${process.env.ORIGIN}/#/runs/00000000-0000-7000-8000-000000000000`);
  const alert = page.getByRole('alert');
  await alert.waitFor();
  assert.match(await alert.innerText(), /no run|not found|does not exist/i);
});
