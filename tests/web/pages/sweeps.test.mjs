// Sweeps against the stand-in daemon: what a new one asks, and a daemon that is away while one is followed.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe, reopen } from '../browser.mjs';
import { pages } from '../pages_setup.mjs';

const ID = '0193a000-0000-7000-8000-00000000000b';
const { open } = pages();

const item = (number) => ({ item: number, state: 'done', fits: true, fit_verdict: 'fits', tokens_per_s_per_chip: 100 + number, step_time_s: 2, hbm_bytes_per_device: 1e10, changes: { '/config/per_device_batch_size': number + 1 } });
const sweep = (state, items) => ({
  sweep_id: ID,
  kind: 'estimate',
  state,
  label: 'nightly',
  created_at: '2026-11-21T05:00:00Z',
  items_count: 2,
  done_count: items.length,
  failed_count: 0,
  cancelled_count: 0,
  items,
  next_cursor: null,
});

test('a sweep asks for the slices and the project of its form, and errors of them stand there', async () => {
  const sent = [];
  const errors = [{ pointer: '/grid/base/cluster/slices', detail: 'v6e has no 3 slices' }];
  const page = await open(
    { 'GET /v1/sweeps': () => ({ sweeps: [] }), 'POST /v1/sweeps': (body) => sent.push(body) && { status: 422, title: 'No', errors } },
    { path: '/#/sweeps?model=llama3.1-8b&chip=v6e&topology=4x4&slices=3&project=alpha' },
  );
  await page.getByRole('button', { name: 'Start the sweep' }).click();
  await page.locator('#sweep-slices-error').waitFor();
  assert.deepEqual(sent[0].grid.base.cluster, { chip: 'v6e', topology: '4x4', slices: 3 });
  assert.equal(sent[0].grid.base.project, 'alpha');
  await page.fill('#sweep-slices', 'two');
  await page.getByRole('button', { name: 'Start the sweep' }).click();
  await page.locator('#sweep-slices-error').getByText('Give the number of slices.').waitFor();
  assert.equal(sent.length, 1);
  assert.deepEqual(await axe(page), []);
});

test('a sweep is followed on when the daemon was away', async () => {
  let asked = 0;
  const answers = [sweep('running', [item(0)]), { status: 503, title: 'The database cannot be reached' }, sweep('done', [item(0), item(1)])];
  const page = await open({ [`GET /v1/sweeps/${ID}`]: () => answers[Math.min(asked++, 2)] }, { path: `/#/sweeps/${ID}` });
  await page.getByText('1 of 2 items, running').waitFor();
  await page.getByRole('alert').waitFor();
  await page.getByText('2 of 2 items, done').waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
});

test('warnings of the items are listed once, with the items that have them, and stand beside each', async () => {
  const warned = (number, ...keys) => ({ ...item(number), warnings: keys.map((key) => ({ code: 'unknown-key', pointer: `/config/${key}`, detail: `${key} is not a MaxText key` })) });
  const page = await open({ [`GET /v1/sweeps/${ID}`]: () => sweep('done', [warned(0, 'remat_polici'), warned(1, 'remat_polici', 'foo')]) }, { path: `/#/sweeps/${ID}` });
  const panel = page.getByRole('region', { name: 'Warnings' });
  await panel.waitFor();
  const lines = await panel.getByRole('listitem').allInnerTexts();
  assert.deepEqual(lines.map((text) => text.replaceAll(/\s+/g, ' ')), ['remat_polici is not a MaxText key. In all 2 items with an answer.', 'foo is not a MaxText key. In 1 of 2 items with an answer: 1.']);
  assert.match(await page.getByRole('table', { name: 'Items of the sweep' }).locator('tbody tr').last().innerText(), /Warning: unknown-key$/);
  assert.deepEqual(await axe(page), []);
});

test('a sweep says of which job it is, and what its items share', async () => {
  const request = { model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4', slices: 1 }, project: 'alpha', config: { remat_policy: 'full', per_device_batch_size: 1 }, xla_flags: ['--xla_f=1'] };
  const page = await open({ [`GET /v1/sweeps/${ID}`]: () => sweep('done', [item(0), item(1)]), [`GET /v1/sweeps/${ID}/items/0`]: () => ({ request }) }, { path: `/#/sweeps/${ID}` });
  await page.getByText('llama3.1-8b on v6e 4x4').waitFor();
  await page.getByText('estimate for project alpha, started 2026-11-21 05:00 UTC').waitFor();
  await page.getByText('Settings that all items share').click();
  assert.deepEqual(await page.locator('pre').allInnerTexts(), ['remat_policy=full', '--xla_f=1']);
  assert.deepEqual(await axe(page), []);
});

test('XLA flags that a sweep sends stand in its form, which a reload keeps', async () => {
  const sent = [];
  const answers = { 'GET /v1/sweeps': () => ({ sweeps: [] }), 'POST /v1/sweeps': (body) => sent.push(body) && { status: 422, title: 'No' } };
  const page = await open(answers, { path: '/#/sweeps?model=llama3.1-8b&xla_flags=--xla_a%3D1%0A--xla_b%3D2' });
  const flags = page.getByLabel('XLA flags that all share');
  assert.equal(await flags.inputValue(), '--xla_a=1\n--xla_b=2');
  await flags.fill('--xla_b=2');
  await page.locator('#sweep-topology').selectOption('4x4');
  await page.locator('#sweep-chip').selectOption('tpu7x');
  await reopen(page);
  assert.deepEqual([await page.inputValue('#sweep-chip'), await page.inputValue('#sweep-topology')], ['tpu7x', '4x4x4']);
  await page.getByRole('button', { name: 'Start the sweep' }).click();
  await page.getByRole('heading', { name: 'No', exact: true }).waitFor();
  assert.deepEqual(sent[0].grid.base.xla_flags, ['--xla_b=2']);
});

test('a sweep offers the chips and the slices of the catalog, as the plan form does', async () => {
  const page = await open({ 'GET /v1/sweeps': () => ({ sweeps: [] }) }, { path: '/#/sweeps?chip=tpu7x&topology=2x2x1' });
  const form = page.getByRole('form', { name: 'Start a sweep' });
  const chip = form.getByLabel('Chip');
  const chosen = async () => [await chip.inputValue(), await form.getByLabel('Slice topology').inputValue()];
  const offered = (id) => page.locator(`${id} option`).allInnerTexts();
  assert.deepEqual(await chosen(), ['tpu7x', '2x2x1']);
  assert.deepEqual(await offered('#sweep-chip'), await offered('#chip'));
  assert.deepEqual(await offered('#sweep-topology'), ['2x2x1 · 4 chips, 8 devices', '4x4x4 · 64 chips, 128 devices']);
  await chip.selectOption('v6e');
  assert.deepEqual([await chosen(), await offered('#sweep-topology')], [['v6e', '4x4'], ['4x4 · 16 chips']]);
  assert.deepEqual(await axe(page), []);
});

test('a machine that a link names and the catalog lacks stays, and one that it leaves open is asked for', async () => {
  const sent = [];
  const answers = { 'GET /v1/sweeps': () => ({ sweeps: [] }), 'POST /v1/sweeps': (body) => sent.push(body.grid.base.cluster) && { status: 422, title: 'No' } };
  const page = await open(answers, { path: '/#/sweeps?chip=v9&topology=3x3' });
  await page.locator('#sweep-chip').getByText('v9 (not in the catalog)').waitFor({ state: 'attached' });
  assert.deepEqual(await page.locator('#sweep-topology option').allInnerTexts(), ['3x3']);
  const start = () => page.getByRole('button', { name: 'Start the sweep' }).click();
  await start();
  await page.getByRole('heading', { name: 'No', exact: true }).waitFor();
  await page.evaluate(() => { window.location.hash = '#/sweeps?chip=&topology='; });
  await page.locator('#sweep-chip').getByText('choose one').waitFor({ state: 'attached' });
  await start();
  await page.getByRole('heading', { name: 'No', exact: true }).waitFor();
  assert.deepEqual(sent, [{ chip: 'v9', topology: '3x3', slices: 1 }, { chip: '', topology: '', slices: 1 }]);
});

test('a sweep over one key twice is refused beside it', async () => {
  const page = await open({ 'GET /v1/sweeps': () => ({ sweeps: [] }) }, { path: '/#/sweeps?y=remat_policy%3Dfull&x=remat_policy%3Dminimal' });
  await page.getByRole('button', { name: 'Start the sweep' }).click();
  await page.locator('#sweep-x-error').getByText('remat_policy is the key down, too. Give another key across.').waitFor();
});

test('of a sweep that is too large to be shown whole, the rest does not look as if it waited', async () => {
  const items = (from, to) => Array.from({ length: to - from }, (_, index) => ({ ...item(from + index), changes: {} }));
  const page = (query) => {
    const from = Number(query.get('cursor') ?? 0);
    return { ...sweep('done', items(from, from + 1000)), items_count: 2001, done_count: 2001, next_cursor: String(from + 1000) };
  };
  const axes = new URLSearchParams({ y: 'a=1,2,3', x: `b=${Array.from({ length: 667 }, (_, at) => at).join(',')}` });
  const shown = await open({ [`GET /v1/sweeps/${ID}`]: (_, request) => page(new URL(request.url, 'http://fixture').searchParams) }, { path: `/#/sweeps/${ID}?${axes}` });
  await shown.getByText('2,001 of 2,001 items, done; the first 2,000 are shown').waitFor();
  const cells = await shown.locator('.heatmap td').allInnerTexts();
  assert.deepEqual([cells.length, cells.filter((text) => text === 'not shown').length, cells.at(-1)], [2001, 1, 'not shown']);
});

test('a link that names other settings than the sweep has says so, and the table has those of the items', async () => {
  const axes = new URLSearchParams({ y: 'remat_policy=full', x: 'per_device_batch_size=8, 16' });
  const page = await open({ [`GET /v1/sweeps/${ID}`]: () => sweep('done', [item(0), item(1)]) }, { path: `/#/sweeps/${ID}?${axes}` });
  await page.getByText('The link names other settings than those of this sweep.').waitFor();
  assert.equal(await page.locator('.heatmap').count(), 0);
  await page.getByText('per_device_batch_size 1', { exact: true }).waitFor();
  assert.deepEqual(await axe(page), []);
});

test('what of a pasted YAML file is passed over is said at once', async () => {
  const page = await open({ 'GET /v1/sweeps': () => ({ sweeps: [] }) }, { path: '/#/sweeps' });
  await page.getByLabel('MaxText configuration that all share').fill('remat_policy: full\nlogical_axis_rules:\n  - [a, b]\n  - c: d');
  await page.getByText('Passed over, as lists and mappings are not modelled: logical_axis_rules.').waitFor();
  await page.getByLabel('MaxText configuration that all share').fill('remat_policy: full');
  await page.getByText('Passed over').waitFor({ state: 'detached' }).catch(() => assert.fail('said no longer'));
});

test('the numbers of a heatmap say what they are, and each cell opens its question in the form', async () => {
  const request = { model: 'llama3.1-70b', cluster: { chip: 'tpu7x', topology: '4x4x4', slices: 1 }, config: { max_target_length: 8192, remat_policy: 'full', per_device_batch_size: 1 } };
  const axes = new URLSearchParams({ y: 'remat_policy=full', x: 'per_device_batch_size=1, 2' });
  const answers = { [`GET /v1/sweeps/${ID}`]: () => sweep('done', [item(0), item(1)]), [`GET /v1/sweeps/${ID}/items/0`]: () => ({ request }) };
  const page = await open(answers, { path: `/#/sweeps/${ID}?${axes}` });
  await page.getByText('stronger colour is faster. Below it the step time and the HBM per device.').waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole('link', { name: '101 estimate remat_policy full, per_device_batch_size 2 in the form' }).click();
  await page.locator('#results .plan-head').waitFor();
  assert.match(await page.inputValue('#config'), /per_device_batch_size=2/);
  assert.ok(await page.getByLabel('Estimate mine').isChecked());
});

test('each entry that a link or a hand has spoilt is named, at its place', async () => {
  const page = await open({ 'GET /v1/sweeps': () => ({ sweeps: [] }) }, { path: '/#/sweeps?slices=x&y=foo&x=bar%3D' });
  await page.getByRole('button', { name: 'Start the sweep' }).click();
  await page.getByRole('heading', { name: '3 entries need a change' }).waitFor();
  assert.match(await page.locator('#sweep-y-error').innerText(), /^Down: write a key and its values/);
  assert.match(await page.locator('#sweep-x-error').innerText(), /^Across: write a key and its values[^]*4\.$/);
  assert.match(await page.locator('#sweep-slices-error').innerText(), /^Give the number of slices\.$/);
});
