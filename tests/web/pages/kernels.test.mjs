// The kernel page against the stand-in daemon: finding tiles, drawing one, and what goes wrong.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { axe, reopen } from '../browser.mjs';
import { KERNELS, simulation, tuning } from '../kernel_fixture.mjs';
import { pages } from '../pages_setup.mjs';

const { open } = pages({ path: '/#/kernels', ready: '#k-shape input' });
const text = (page, selector) => page.locator(selector).innerText();
const line = (words) => words.replaceAll(/\s+/g, ' ').trim();

async function find(page) {
  await page.click('#k-submit');
  await page.waitForSelector('.lanes');
}

test('the form has the fields of the chosen kernel and keeps what was typed for another', async () => {
  const page = await open();
  const labels = () => page.locator('#k-shape label').allInnerTexts();
  assert.deepEqual(await labels(), ['batch', 'q_heads', 'kv_heads', 'q_len', 'head_dim_qk']);
  await page.fill('#k-shape-q_len', '4096');
  await page.selectOption('#k-kernel', 'gmm');
  assert.deepEqual(await labels(), ['m', 'k']);
  await page.selectOption('#k-kernel', 'splash_fwd');
  assert.equal(await page.inputValue('#k-shape-q_len'), '4096');
  assert.equal(await text(page, '#k-kernel-hint'), 'splash attention, forward');
});

test('tune sends what is filled in, typed as the catalog says', async () => {
  let sent = null;
  const page = await open({
    'POST /v1/kernels/tune': (body) => {
      sent = body;
      return tuning();
    },
  });
  await page.click('#k-more summary');
  await page.selectOption('#k-shape-causal', 'false');
  await page.fill('#k-shape-dtype', 'bf16');
  await page.fill('#k-limit_kib', '32,768');
  await find(page);
  assert.deepEqual(sent, {
    chip: 'tpu7x',
    kernel: 'splash_fwd',
    shape: { q_heads: 64, kv_heads: 8, q_len: 8192, head_dim_qk: 128, causal: false, dtype: 'bf16' },
    scoped_vmem_limit_kib: 32768,
    top_k: 10,
    tile_map: true,
  });
});

test('the tiles are listed with time and VMEM, the usual one last, the best one drawn', async () => {
  const page = await open();
  await find(page);
  const rows = await page.locator('table.choice tr').allInnerTexts();
  assert.deepEqual(rows.map(line), [
    'Tile Time Against the best block_q block_kv VMEM Decided by',
    '1 4.000 ms 2048 2048 25.0 MiB VPU',
    '2 4.400 ms +10.0 % 1024 2048 13.0 MiB VPU',
    '3 4.800 ms +20.0 % 1024 1024 12.0 MiB VPU',
    'Usual k_layout HEAD_DIM_MINOR 8.000 ms +100.0 % 512 512 4.0 MiB VPU',
  ]);
  await page.getByText('All of them with k_layout SEQ_MINOR.').waitFor();
  assert.match(
    await text(page, '#k-results'),
    /With a VMEM limit of 49,152 KiB, block_q 4096 · block_kv 2048 .*\(-10\.0 %\)/,
  );
  assert.equal(await page.getByRole('region', { name: 'MaxText settings' }).innerText(), 'sa_block_q=2048');
});

test('the map shows times, what does not fit and what is not legal, and a cell of it is simulated', async () => {
  const asked = [];
  const page = await open({
    'POST /v1/kernels/simulate': (body) => {
      asked.push([body.tile.block_q, body.tile.block_kv]);
      return simulation(body);
    },
  });
  await find(page);
  const map = page.locator('.picture-tiles');
  await map.locator('.heat').first().waitFor();
  const [time, vmem] = await map.locator('svg').all();
  assert.equal(await time.locator('.heat').count(), 16);
  const filled = (svg, wanted) =>
    svg.locator('.heat').evaluateAll((all, hatched) => all.filter((cell) => cell.style.fill.startsWith('url') === hatched).length, wanted);
  assert.equal(await filled(time, true), 4 + 3, 'a column breaks a rule, the rest of a row does not fit');
  assert.equal(await filled(vmem, true), 4, 'what does not fit has its VMEM');
  const said = map.locator('.picture-said').first();
  await time.focus();
  for (let at = 0; at < 11; at += 1) await page.keyboard.press('ArrowRight');
  assert.match(await said.innerText(), /^block_q 2048, block_kv 2048: 4\.000 ms at best, 24\.0 MiB of VMEM; the best tile/);
  await page.keyboard.press('ArrowRight');
  assert.match(await said.innerText(), /not legal: block_kv 3072 does not divide kv_len 8192/);
  await page.keyboard.press('ArrowRight');
  assert.match(await said.innerText(), /does not fit: at least 40\.0 MiB of 32\.0 MiB/);
  for (let at = 0; at < 7; at += 1) await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.lanes').length === 1);
  await assert.doesNotReject(async () => {
    for (let tries = 0; asked.length < 2 && tries < 50; tries += 1) await page.waitForTimeout(100);
    assert.deepEqual(asked.at(-1), [1024, 1024]);
  });
});

test('another tile is chosen with the arrow keys and simulated', async () => {
  const asked = [];
  const page = await open({
    'POST /v1/kernels/simulate': (body) => {
      asked.push(body.tile.block_q);
      return simulation(body);
    },
  });
  await find(page);
  await page.focus('#k-choice-1');
  await page.keyboard.press('ArrowDown');
  await page.getByText('block_q 1024 · block_kv 2048 · k_layout SEQ_MINOR').waitFor();
  assert.deepEqual(asked, [2048, 1024]);
  assert.equal(await page.getByRole('region', { name: 'MaxText settings' }).innerText(), 'sa_block_q=1024');
});

test('the timeline shows a window of steps that moves, with the same numbers as a table', async () => {
  const page = await open();
  await find(page);
  const picture = page.getByRole('img', { name: /^Steps / });
  const first = page.getByRole('img', { name: /^Steps 1 to 12 of 50, 0\.00 µs to 60\.00 µs/ });
  await first.waitFor();
  assert.equal(await picture.locator('.lane-mxu').count(), 12);
  assert.equal(await picture.locator('.lane-dma_out').count(), 6);
  assert.equal(await picture.locator('.axis').first().evaluate((text) => getComputedStyle(text).stroke), 'none', 'text without an outline');
  assert.match(line(await picture.innerText()), /DMA in 20 % MXU 60 % Vector 0 % DMA out 10 %/);
  await page.getByRole('button', { name: 'Later' }).click();
  await page.getByRole('img', { name: /^Steps 13 to 24 of 50/ }).waitFor();
  await page.getByRole('button', { name: 'Fewer steps' }).click();
  await page.getByRole('img', { name: /^Steps 13 to 18 of 50/ }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Fewer steps', 'the focus stays');
  await page.getByText('These steps as a table').click();
  const row = page.getByRole('table', { name: 'Steps in the picture' }).locator('tbody tr').first();
  assert.equal(line(await row.innerText()), '13 head 0, query block 12 60.00 µs 5.00 µs 1.00 µs 3.00 µs – –');
});

test('the keyboard alone leads from the kernel to a later window of the second tile', async () => {
  const page = await open();
  const tabTo = async (matches) => {
    for (let i = 0; i < 80; i += 1) {
      if (
        await page.evaluate(({ id, text }) => {
          const at = document.activeElement;
          return id ? at.id === id : at.textContent === text;
        }, matches)
      )
        return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`${JSON.stringify(matches)} cannot be reached with Tab`);
  };
  await tabTo({ id: 'k-kernel' });
  await tabTo({ id: 'k-shape-q_len' });
  await page.keyboard.press('Control+A');
  await page.keyboard.type('4096');
  await tabTo({ id: 'k-submit' });
  await page.keyboard.press('Enter');
  await page.waitForSelector('.lanes');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'k-results');
  await tabTo({ id: 'k-choice-1' });
  await page.keyboard.press('ArrowDown');
  await page.getByText('block_q 1024 · block_kv 2048 · k_layout SEQ_MINOR').waitFor();
  await tabTo({ text: 'Later' });
  await page.keyboard.press('Enter');
  await page.getByRole('img', { name: /^Steps 13 to 24 of 50/ }).waitFor();
  await page.locator('#skip').focus();
  await page.keyboard.press('Enter');
  assert.equal(
    await page.evaluate(() => document.activeElement.id),
    'k-results',
    'the skip link goes to these results',
  );
});

test('the next better limit goes into the form and is tried', async () => {
  const limits = [];
  const page = await open({
    'POST /v1/kernels/tune': (body) => {
      limits.push(body.scoped_vmem_limit_kib ?? null);
      return body.scoped_vmem_limit_kib ? { ...tuning(), next_better: null } : tuning();
    },
  });
  await find(page);
  await page.getByRole('button', { name: 'Find tiles with 49,152 KiB' }).click();
  await page.getByText('A higher VMEM limit admits no faster tile.').waitFor();
  assert.deepEqual(limits, [null, 49152]);
  assert.equal(await page.inputValue('#k-limit_kib'), '49152');
});

test('a limit is tried on the kernel that was asked for, whatever the form says by now', async () => {
  const sent = [];
  const page = await open({ 'POST /v1/kernels/tune': (body) => sent.push(body) && tuning() });
  await find(page);
  await page.selectOption('#k-kernel', 'gmm');
  await page.getByText('The form has been changed since.').waitFor();
  await page.getByRole('button', { name: 'Find tiles with 49,152 KiB' }).click();
  await page.getByText('The form has been changed since.').waitFor({ state: 'detached' });
  assert.deepEqual(sent.map((body) => [body.kernel, body.scoped_vmem_limit_kib ?? null]), [['splash_fwd', null], ['splash_fwd', 49152]]);
});

test('a tile goes into the form to be changed, and the address brings it back', async () => {
  const page = await open();
  await find(page);
  await page.getByRole('button', { name: 'Edit this tile' }).click();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'k-tile-block_q');
  await page.fill('#k-tile-block_q', '256');
  await reopen(page);
  await page.waitForSelector('#k-tile input');
  assert.equal(await page.inputValue('#k-tile-block_q'), '256');
  assert.equal(await text(page, '#k-submit'), 'Simulate');
  await find(page);
  assert.match(line(await text(page, '#k-results .facts')), /^Time 280\.0 µs .* MXU busy 53\.6 %/);
});

test('the buffers of a tile are drawn against the VMEM limit, and a tile too large says what it needs', async () => {
  const page = await open({
    'POST /v1/kernels/simulate': (body) => ({
      ...simulation(body),
      fits_vmem: Boolean(body.scoped_vmem_limit_kib),
      warnings: [{ severity: 'warning', pointer: '/tile/block_q', detail: 'not a multiple of 256' }],
    }),
  });
  await find(page);
  assert.deepEqual(
    (await page.getByRole('table', { name: 'Buffers in VMEM' }).locator('tr').allInnerTexts()).map(line),
    ['Part Size Of it all', 'A query blocks 20.0 MiB 80.0 %', 'B key blocks 5.0 MiB 20.0 %', 'Sum 25.0 MiB'],
  );
  assert.equal(await page.locator('#k-results .limit-text').textContent(), 'limit 32.0 MiB');
  await page.getByText('not a multiple of 256').waitFor();
  await page.getByRole('button', { name: 'Try with 25,600 KiB' }).click();
  await page.locator('#k-results .facts').getByText('does not fit').waitFor({ state: 'hidden' });
  assert.equal(await page.inputValue('#k-limit_kib'), '25600');
});

test('the trace is saved as a file', async () => {
  const page = await open();
  await find(page);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download trace (Perfetto)' }).click(),
  ]);
  assert.equal(download.suggestedFilename(), 'splash_fwd-tpu7x.trace.json');
  assert.equal(JSON.parse(await readFile(await download.path(), 'utf8')).traceEvents.length, 1);
});

test('errors stand beside the fields of the shape, and nothing typed is lost', async () => {
  const errors = [
    { pointer: '/shape/kv_heads', detail: '3 query heads are not a multiple of 2', hint: 'a divisor of q_heads' },
    { pointer: '/tile/nosuch', detail: 'unknown member' },
  ];
  const page = await open({ 'POST /v1/kernels/tune': () => ({ status: 422, title: 'Two errors', errors }) });
  await page.fill('#k-shape-kv_heads', '2');
  await page.click('#k-submit');
  await page.waitForSelector('#k-shape-kv_heads-error');
  assert.match(await text(page, '#k-shape-kv_heads-error'), /not a multiple of 2\.\s+A divisor of q_heads\./);
  assert.match(await text(page, '#k-form .error-summary'), /Two errors[\s\S]*\/tile\/nosuch: unknown member/);
  assert.equal(await page.inputValue('#k-shape-kv_heads'), '2');
  await page.fill('#k-shape-q_heads', 'many');
  await page.click('#k-submit');
  await page.waitForSelector('#k-shape-q_heads-error');
  assert.match(await text(page, '#k-shape-q_heads-error'), /“many” is not a number/);
  assert.deepEqual(await axe(page), []);
});

test('no tile fits: that is said, and the usual tile is drawn', async () => {
  const page = await open({ 'POST /v1/kernels/tune': () => ({ ...tuning(0), maxtext_keys: null, short_list: [] }) });
  await find(page);
  assert.match(await text(page, '#k-results'), /No legal tile fits in the VMEM limit/);
  assert.doesNotMatch(await text(page, '#k-results'), /NaN|undefined/);
});

test('a kernel that is not walked and a tile that cannot be simulated are said plainly', async () => {
  let tries = 0;
  const page = await open({
    'POST /v1/kernels/simulate': (body) => {
      tries += 1;
      if (tries > 1) return { status: 422, title: 'No model of this tile', errors: [] };
      const answer = simulation(body, 1);
      answer.timeline = { ...answer.timeline, walked: false, omitted: { count: 5, mxu_us: null } };
      return answer;
    },
  });
  await find(page);
  await page.getByText('is not walked step by step').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Later' }).count(), 0);
  await page.check('#k-choice-2');
  await page.getByRole('alert').getByText('No model of this tile').waitFor();
});

test('without a token the page says where to enter one, and goes on when it is there', async () => {
  const guarded = (answer) => (body, request) =>
    request.headers.authorization === 'Bearer secret' ? answer : { status: 401, title: 'A token is needed' };
  const page = await open(
    { 'GET /v1/catalog/kernels': guarded({ kernels: KERNELS }) },
    { ready: '#k-form .error-summary:not([hidden])' },
  );
  assert.match(await text(page, '#k-form .error-summary'), /A token is needed[\s\S]*on the Plan page, under Options/);
  await page.click('#nav-plan');
  await page.click('#options-details summary');
  await page.fill('#token', 'secret');
  await page.click('#nav-kernels');
  await page.waitForSelector('#k-shape input');
  await page.locator('#k-form .error-summary').waitFor({ state: 'hidden' });
});

for (const [scheme, width] of [
  ['light', 1280],
  ['dark', 320],
  ['light', 3840],
]) {
  test(`no accessibility violation and no sideways scrolling: ${scheme}, ${width} px`, async () => {
    const page = await open({}, { scheme, width });
    assert.deepEqual(await axe(page), []);
    await find(page);
    await page.locator('details').evaluateAll((all) =>
      all.forEach((part) => {
        part.open = true;
      }),
    );
    assert.deepEqual(await axe(page), []);
    assert.ok(
      await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth),
      'the page is no wider than the screen',
    );
  });
}
