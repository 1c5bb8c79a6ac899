// How one gets about, against the stand-in daemon: links, tabs, order, suggestions, repairs, themes, paper.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe, openTab, reopen } from '../browser.mjs';
import { RUNS, advice, estimate } from '../fixture.mjs';
import { pages } from '../pages_setup.mjs';

const JOB = '/#/?model=llama3.1-70b';
const GIB = 1024 ** 3;
const { open } = pages();
const text = (page, selector) => page.locator(selector).innerText();

test('a link runs at once and shows the chosen plan and tab again', async () => {
  const page = await open({}, { path: JOB });
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  await page.check('#plan-2');
  await openTab(page, 'Memory');
  await page.waitForFunction(() => window.location.hash.endsWith('plan=2&tab=memory'));
  await reopen(page);
  await page.getByRole('tabpanel', { name: 'Memory' }).waitFor();
  assert.match(await text(page, '#detail h2'), /^Plan 2/);
  assert.equal(await page.locator('#plan-2').isChecked(), true);
  await page.fill('#batch', '4');
  await page.waitForFunction(() => window.location.hash === '#/?model=llama3.1-70b&batch=4'); // names no plan: another question
});

test('the address names a plan only beside the question that it answers', async () => {
  const page = await open({}, { path: `${JOB}&plan=1` });
  await page.waitForSelector('#ranked');
  const address = () => page.evaluate(() => window.location.hash);
  const shown = () => text(page, '#detail h2');
  await page.check('#plan-2');
  assert.equal(await address(), '#/?model=llama3.1-70b&plan=2');
  await page.fill('#batch', '4');
  await page.check('#plan-3');
  await openTab(page, 'Memory');
  await page.check('#plan-1');
  assert.match(await shown(), /^Plan 1/);
  await page.getByRole('tabpanel', { name: 'Memory' }).waitFor(); // the tab stays open all the same
  assert.equal(await address(), '#/?model=llama3.1-70b&batch=4', 'the plans are of another question');
  await page.goBack();
  await page.waitForFunction(() => window.location.hash === '#/?model=llama3.1-70b&plan=2');
  await page.getByRole('heading', { name: /^Plan 2/ }).waitFor();
  assert.equal(await page.locator('#plan-2').isChecked(), true);
  assert.equal(await page.inputValue('#batch'), '1');
  await page.fill('#batch', '4');
  await page.fill('#batch', '1');
  await page.check('#plan-3');
  assert.equal(await address(), '#/?model=llama3.1-70b&plan=3', 'the form asks it again');
});

test('back on the page of the form, the address says again what is on it', async () => {
  const page = await open({ 'GET /v1/runs': () => ({ runs: RUNS, next_cursor: null }) }, { path: `${JOB}&plan=1` });
  const address = () => page.evaluate(() => window.location.hash);
  await page.waitForSelector('#ranked');
  await page.check('#plan-2');
  await openTab(page, 'Memory');
  for (const link of ['#nav-plan', '.brand a']) {
    await page.click('#nav-runs');
    await page.getByRole('heading', { name: 'Stored runs' }).waitFor();
    await page.click(link);
    await page.waitForFunction(() => window.location.hash === '#/?model=llama3.1-70b&plan=2&tab=memory');
  }
  await reopen(page);
  await page.getByRole('tabpanel', { name: 'Memory' }).waitFor();
  assert.match(await text(page, '#detail h2'), /^Plan 2/);
  await page.fill('#batch', '4');
  await page.click('#nav-runs');
  await page.getByRole('heading', { name: 'Stored runs' }).waitFor();
  await page.click('#nav-plan');
  await page.waitForFunction(() => window.location.hash === '#/?model=llama3.1-70b&batch=4'); // names no plan: another question
  await reopen(page);
  assert.equal(await page.inputValue('#batch'), '4');
  await page.click('#reset');
  await page.click('#nav-kernels');
  await page.fill('#k-shape-q_len', '4096');
  await page.click('#nav-plan');
  await page.waitForFunction(() => window.location.hash === '#/');
  await page.click('#nav-kernels');
  await page.waitForFunction(() => window.location.hash === '#/kernels?shape.q_len=4096');
  assert.equal(await address(), '#/kernels?shape.q_len=4096');
});

test('an answer under a calibration of a project says so', async () => {
  const under = (answer, name) => ({ ...answer, engine: { version: 'fixture', catalog_hash: '0', calibration: name } });
  const names = { alpha: 'calibration/0193a000-0000-7000-8000-000000000001' };
  const answers = {
    'POST /v1/advise': (body) => under(advice(), names[body.project] ?? 'none'),
    'POST /v1/estimate': (body) => under(estimate(), names[body.project] ?? 'none'),
  };
  const page = await open(answers, { path: `${JOB}&project=alpha&plan=1` });
  const link = page.getByRole('link', { name: 'calibration of project alpha' });
  await link.waitFor();
  assert.equal(await link.getAttribute('href'), '#/accuracy?project=alpha');
  await page.fill('#project', '');
  await page.click('#submit');
  await link.waitFor({ state: 'detached' });
  await page.fill('#project', 'alpha');
  await page.getByText('Estimate mine').click();
  await page.fill('#config', 'remat_policy=full');
  await page.click('#submit');
  await link.waitFor();
  assert.deepEqual(await axe(page), []);
});

test('an answer that arrives on another page leaves its address alone', async () => {
  let answer;
  const asked = new Promise((resolve) => {
    answer = resolve;
  });
  const runs = () => ({ runs: RUNS, next_cursor: null });
  const page = await open({ 'POST /v1/advise': () => asked, 'GET /v1/runs': runs }, { path: JOB });
  await page.click('#submit');
  await page.click('#nav-runs');
  await page.waitForSelector('#view-other table');
  answer(advice(2));
  await page.waitForSelector('#ranked', { state: 'attached' });
  assert.equal(await page.evaluate(() => window.location.hash), '#/runs');
});

test('an example of the empty page is answered by one click', async () => {
  const page = await open();
  await page.click('#example');
  await page.waitForSelector('#ranked');
  assert.equal(await page.inputValue('#model'), 'llama3.1-70b');
  assert.equal(await page.inputValue('#batch'), '2');
});

test('tabs are moved through with arrow keys', async () => {
  const page = await open({}, { path: `${JOB}&plan=1` });
  await page.getByRole('tab', { name: 'Overview' }).focus();
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.getByRole('tab', { name: 'Time' }).getAttribute('aria-selected'), 'true');
  await page.getByRole('table', { name: /^Exposed parts/ }).waitFor();
  await page.keyboard.press('End');
  await page.getByText('The time that a stored plan took on the machine').waitFor();
  assert.equal(await page.locator('[role="tabpanel"]:visible').count(), 1);
});

test('parts below one percent are folded, and the table still adds up to the step', async () => {
  const page = await open({}, { path: `${JOB}&plan=1&tab=time` });
  const table = page.getByRole('table', { name: /^Exposed parts/ });
  await table.waitFor();
  const shares = (await table.locator('tbody tr td:last-child').allInnerTexts()).map(Number.parseFloat);
  assert.ok(Math.abs(shares.reduce((all, share) => all + share, 0) - 100) < 0.5, shares.join());
  assert.equal(await page.locator('#plan-panel-time .chart .res-mxu').count() >= 4, true, 'coloured by resource');
});

test('plans are in the order of the rule that is shown, and another rule can be chosen', async () => {
  const answer = advice(3);
  const sure = answer.ranked[0].estimate; // tied with the second, and surer
  Object.assign(sure, { step_time_s: 7.35, step_time_low_s: 7.3, step_time_high_s: 7.4 });
  Object.assign(answer.ranked[1].estimate, { step_time_high_s: 7.5, fit_probability: 0.97 });
  Object.assign(answer.ranked[2].estimate, { step_time_high_s: 8, fit_probability: 0.999 });
  const page = await open({ 'POST /v1/advise': () => answer }, { path: `${JOB}&plan=1` });
  await page.waitForSelector('#ranked');
  const numbers = async () =>
    (await page.locator('#ranked tbody input').evaluateAll((all) => all.map((box) => box.value))).join();
  assert.equal(await numbers(), '2,1,3');
  assert.equal(await text(page, '#ranked thead th[aria-sort]'), 'Step time');
  assert.match(await text(page, '#ranked tbody tr:nth-child(1)'), /fastest[\s\S]*; a tie/);
  assert.match(await text(page, '#ranked tbody tr:nth-child(2)'), /advised[\s\S]*of plan 2’s, and it is surer/);
  assert.match(await text(page, '#ranked tbody tr:nth-child(3)'), /safest/);
  await page.selectOption('#plan-order', 'slow');
  assert.equal(await numbers(), '1,2,3');
  assert.equal(await page.locator('#plan-1').isChecked(), true, 'the choice stays');
  assert.match(await text(page, '.order'), /least first/);
  await page.selectOption('#plan-order', 'certain');
  assert.match(await text(page, '.order'), /most first/);
  assert.match(await numbers(), /^3,2/);
});

test('pasted settings take length and batch from the form, and the page says so', async () => {
  const sent = [];
  const answers = { 'POST /v1/advise': (body) => sent.push(body) && advice(1) };
  const page = await open(answers, { path: `${JOB}&batch_kind=global_batch_sequences&batch=256` });
  await page.click('#mine-details summary');
  await page.fill('#config', 'remat_policy=full');
  assert.match(await text(page, '#config-inherits'), /max_target_length=8192, per_device_batch_size=2\./);
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  assert.deepEqual(sent[0].baseline.config, { remat_policy: 'full', max_target_length: 8192, per_device_batch_size: 2 });
  await page.fill('#config', 'max_target_length=4096\nper_device_batch_size=1');
  assert.equal(await page.locator('#config-inherits').textContent(), '', 'advice is for the form’s workload; the answer warns of a baseline of other work');
  await page.getByLabel('Estimate mine').check();
  assert.match(await text(page, '#config-inherits'), /The text’s own count, not the workload of this form: max_target_length=4096, per_device_batch_size=1\./);
  await page.fill('#seq_len', '4096');
  assert.match(await text(page, '#config-inherits'), /form: per_device_batch_size=1\./);
});

test('what an error suggests is entered by a button, a key of pasted settings in its place', async () => {
  const errors = [
    { pointer: '/model', detail: 'the catalog has no model "lama"', hint: 'did you mean `llama3.1-70b`?' },
    { pointer: '/cluster/topology', detail: '4x4x5 is no slice', hint: 'nearest slices of tpu7x: 4x4x4 (64 chips) 4x4x8 (128 chips)' },
    { pointer: '/pins/remat_polic', detail: 'MaxText has no key `remat_polic`', hint: 'did you mean `remat_policy`?' },
  ];
  const answers = { 'POST /v1/advise': () => ({ status: 422, title: 'The request has `members` that are wrong', errors }) };
  const page = await open(answers, { path: '/#/?model=lama&topology=4x4x5&pins=remat_polic%3Dfull' });
  await page.click('#submit');
  await page.waitForSelector('#model-error');
  assert.doesNotMatch(await text(page, '#form'), /`/, 'no marks of code');
  assert.deepEqual(await axe(page), []);
  await page.getByRole('button', { name: 'Use llama3.1-70b' }).click();
  await page.getByRole('button', { name: 'Use 4x4x4' }).click();
  await page.getByRole('button', { name: 'Use remat_policy' }).click();
  assert.equal(await page.inputValue('#model'), 'llama3.1-70b');
  assert.equal(await page.inputValue('#topology'), '4x4x4');
  assert.equal(await page.inputValue('#pins'), 'remat_policy=full');
  assert.equal(await page.locator('#model').getAttribute('aria-invalid'), null);
});

for (const scheme of ['light', 'dark'])
  test(`an answer beside a later failure says that it is the older one: ${scheme}`, async () => {
    let fail = false;
    const answers = { 'POST /v1/advise': () => (fail ? { status: 503, title: 'Too busy' } : advice(2)) };
    const page = await open(answers, { path: `${JOB}&plan=1`, scheme });
    await page.waitForSelector('#ranked');
    fail = true;
    await page.click('#submit');
    await page.getByText('What is below answers the one before it').waitFor();
    assert.deepEqual(await axe(page), []);
    fail = false;
    await page.click('#submit');
    await page.getByText('What is below answers the one before it').waitFor({ state: 'detached' });
  });

test('an answer beside a changed form says so, and what is done with its plans is done for the job that was asked', async () => {
  const sent = [];
  const page = await open({ 'POST /v1/estimate': (body) => sent.push(body) && estimate() }, { path: `${JOB}&plan=1` });
  await page.waitForSelector('#ranked');
  const note = page.getByText('The form has been changed since.');
  assert.equal(await note.count(), 0);
  await page.fill('#batch', '3');
  await note.waitFor();
  assert.deepEqual(await axe(page), []);
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight / 2));
  const seen = await note.evaluate((element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return document.elementFromPoint(left + width / 2, top + height / 2) === element;
  });
  assert.ok(seen, 'it stays in sight in the middle of a long answer');
  await page.fill('#batch', '1');
  await note.waitFor({ state: 'detached' });
  await page.fill('#model', 'deepseek3-671b');
  await note.waitFor();
  assert.match(await page.getByRole('link', { name: 'Sweep around it' }).getAttribute('href'), /model=llama3\.1-70b/);
  await page.check('#plan-2');
  assert.match(await page.getByRole('link', { name: 'Sweep around it' }).getAttribute('href'), /model=llama3\.1-70b/);
  await page.getByRole('button', { name: 'Apply and estimate' }).click();
  await page.getByRole('heading', { name: /^My configuration/ }).waitFor();
  assert.equal(sent.find((body) => body.config.attention_out === 'device').model, 'llama3.1-70b');
  assert.equal(await page.inputValue('#model'), 'llama3.1-70b');
  assert.equal(await note.count(), 0);
});

test('the pictures of a plan are of its project and its releases', async () => {
  const sent = [];
  const page = await open({ 'POST /v1/estimate': (body) => sent.push(body) && estimate() }, { path: `${JOB}&project=alpha&plan=1&tab=memory` });
  await page.waitForSelector('#plan-panel-memory.current');
  await page.locator('.picture-place-memory[aria-busy="false"]').waitFor();
  assert.ok(sent.length >= 2 && sent.every((body) => body.project === 'alpha'), JSON.stringify(sent.map((body) => body.project)));
});

test('dollars say at which price they are', async () => {
  const priced = (plan) => ({ ...plan, usd_per_step: 3.5, usd_per_billion_tokens: 209.04, cluster: { ...plan.cluster, price_usd_per_chip_hour: 2.7 } });
  const page = await open({ 'POST /v1/estimate': () => priced(estimate()) }, { path: `${JOB}&mode=estimate&config=remat_policy%3Dfull&plan=mine` });
  await page.getByText('$3.50 per step, at $2.70 per chip and hour').waitFor();
});

test('one goes back from an answer to the one before it', async () => {
  const asked = [];
  const page = await open({ 'POST /v1/advise': (body) => asked.push(body.workload.per_device_batch_size) && advice(2) }, { path: `${JOB}&plan=1` });
  await page.waitForSelector('#ranked');
  await page.fill('#batch', '24');
  await page.click('#submit');
  await page.waitForFunction(() => window.location.hash === '#/?model=llama3.1-70b&batch=24&plan=1');
  await page.goBack();
  await page.waitForFunction(() => window.location.hash === '#/?model=llama3.1-70b&plan=1');
  assert.equal(await page.inputValue('#batch'), '1');
  await page.locator('#results[aria-busy="false"] #ranked').waitFor();
  assert.deepEqual(asked, [1, 24, 1]);
});

test('a plan that does not fit looks like one and is repaired by a button', async () => {
  const sent = [];
  const short = {
    ...estimate(),
    fit_verdict: 'does_not_fit',
    fits: false,
    hbm_bytes_per_device: 120 * GIB,
    config: { remat_policy: 'minimal', per_device_batch_size: 8 },
    advice: [{ severity: 'error', code: 'memory_exceeded', message: 'too much', change: { remat_policy: 'full' }, gain_frac: null }],
  };
  const answers = { 'POST /v1/estimate': (body) => (sent.push(body) === 1 ? short : estimate()) };
  const page = await open(answers, { path: `${JOB}&mode=estimate&config=remat_policy%3Dminimal&plan=mine` });
  const banner = page.getByRole('group', { name: 'Does not fit' });
  await banner.waitFor();
  assert.match(await banner.innerText(), /120\.0 GiB needed[\s\S]*25\.3 GiB too much[\s\S]*remat_policy=full/);
  assert.doesNotMatch(await text(page, '.summary'), /MFU/);
  assert.deepEqual(await axe(page), []);
  await openTab(page, 'Memory');
  assert.match(await text(page, '#plan-panel-memory'), /needed on each device/);
  await banner.getByRole('button', { name: 'Repair and estimate' }).click();
  await banner.waitFor({ state: 'detached' });
  const repaired = sent.find((body) => body.config.remat_policy === 'full'); // pictures ask on their own
  assert.deepEqual(repaired.config, { remat_policy: 'full', per_device_batch_size: 8, max_target_length: 8192 });
});

test('a term explains itself: what it means, how it is computed, where that is from', async () => {
  const page = await open({}, { path: `${JOB}&plan=1` });
  await page.waitForSelector('#ranked');
  await page.locator('.facts').getByRole('button', { name: 'MFU' }).click();
  const card = page.getByRole('dialog', { name: 'MFU' });
  assert.match(await card.innerText(), /utilisation[\s\S]*model FLOPs per step[\s\S]*Source:/);
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press('Escape');
  await card.waitFor({ state: 'hidden' });
});

test('light and dark are switched by hand and kept', async () => {
  const page = await open({}, { scheme: 'light' });
  const colour = () => page.evaluate(() => window.getComputedStyle(document.body).backgroundColor);
  const light = await colour();
  await page.click('#theme');
  await page.click('#theme');
  assert.equal(await text(page, '#theme'), 'Theme: Dark');
  const dark = await colour();
  assert.notEqual(dark, light);
  assert.deepEqual(await axe(page), []);
  await reopen(page);
  assert.equal(await colour(), dark);
});

test('on paper all tabs stand one below the other, with colours', async () => {
  const page = await open({}, { path: `${JOB}&plan=1` });
  await page.waitForSelector('#ranked');
  await page.emulateMedia({ media: 'print' });
  for (const name of ['Overview', 'Time', 'Memory', 'Mesh', 'Kernels', 'Run it'])
    await page.getByRole('tabpanel', { name, exact: true }).waitFor();
  await page.getByRole('table', { name: /Memory parts/ }).waitFor();
  const exact = await page
    .locator('#detail .chart rect.gap')
    .first()
    .evaluate((rect) => window.getComputedStyle(rect).printColorAdjust ?? window.getComputedStyle(rect).webkitPrintColorAdjust);
  assert.equal(exact, 'exact');
  assert.equal(await page.locator('#ranked thead').isVisible(), true);
  assert.equal(await page.locator('.order select').isVisible(), true, 'the rule that sorts the plans');
  assert.equal(await page.locator('a.button:visible').count(), 0, 'nothing to press');
  const grids = await page.locator('.panel:visible, .results:visible, .tab-panel:visible').evaluateAll((all) => all.filter((box) => window.getComputedStyle(box).display !== 'block').length);
  assert.equal(grids, 0, 'rows of a grid that breaks over a page lie upon each other');
  await page.setViewportSize({ width: 718, height: 900 });
  assert.equal(await page.locator('#ranked thead').evaluate((head) => window.getComputedStyle(head).position), 'static', 'paper keeps its tables');
});

test('nothing jumps while the page fills, on a phone', async () => {
  const page = await open({}, { path: `${JOB}&plan=1`, width: 360 });
  await page.waitForSelector('#ranked');
  const shift = await page.evaluate(
    () =>
      new Promise((resolve) => {
        let all = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) if (!entry.hadRecentInput) all += entry.value;
        }).observe({ type: 'layout-shift', buffered: true });
        window.requestAnimationFrame(() => window.setTimeout(() => resolve(all), 300));
      }),
  );
  assert.ok(shift <= 0.1, `layout shift ${shift}`);
});

test('pasted YAML says which of its lists are passed over', async () => {
  const page = await open({}, { path: '/#/?model=llama3.1-70b&mode=estimate' });
  await page.fill('#config', '---\nremat_policy: full\nper_device_batch_size: 1\nmax_target_length: 8192\nlogical_axis_rules:\n  - [a, [b]]\n');
  await page.getByText('Passed over, as lists and mappings are not modelled: logical_axis_rules.').waitFor();
  const [request] = await Promise.all([page.waitForRequest(/\/v1\/estimate$/), page.click('#submit')]);
  assert.deepEqual(request.postDataJSON().config, { remat_policy: 'full', per_device_batch_size: 1, max_target_length: 8192 });
});

test('a link with choices that the form does not have says so, and asks nothing', async () => {
  let asked = 0;
  const page = await open({ 'POST /v1/advise': () => (asked += 1) && advice() }, { path: '/#/?mode=foo&batch_kind=bar&quantization=zzz&model=llama3.1-70b&plan=1' });
  await page.getByRole('heading', { name: 'The link was changed: check the form, then ask' }).waitFor();
  assert.match(await text(page, '#form .error-summary'), /Task: the link says “foo”/);
  assert.match(await text(page, '#batch_kind-error'), /“bar”, which is no choice/);
  assert.equal(await page.inputValue('#batch_kind'), 'per_device_batch_size');
  assert.match(await text(page, '#quantization-error'), /“zzz”/);
  assert.equal(asked, 0);
  assert.deepEqual(await axe(page), []);
  await page.click('#submit');
  await page.waitForSelector('#ranked');
});
