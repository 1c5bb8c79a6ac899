// The plan page against the stand-in daemon: asking, reading and taking away an answer.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { axe, everyTab, openTab, reopen } from '../browser.mjs';
import { advice, estimate } from '../fixture.mjs';
import { pages } from '../pages_setup.mjs';
import { pictures } from '../pictures_fixture.mjs';

const { open } = pages();

const withJob = '/#/?model=llama3.1-70b';
const text = (page, selector) => page.locator(selector).innerText();

test('the form offers what the catalog knows', async () => {
  const page = await open();
  assert.equal(await page.locator('#models option').count(), 2);
  assert.deepEqual(await page.locator('#chip option').allInnerTexts(), ['TPU7x (Ironwood)', 'TPU v6e (Trillium)']);
  assert.match(await text(page, '#topology option:checked'), /4x4x4 · 64 chips, 128 devices/);
  await page.selectOption('#chip', 'v6e');
  assert.equal(await page.inputValue('#topology'), '4x4');
  await page.fill('#model', 'llama3.1-70b');
  assert.equal(await text(page, '#model-hint'), '70.6 B parameters');
});

test('advise sends the form as the contract says', async () => {
  let sent = null;
  const page = await open({
    'POST /v1/advise': (body) => {
      sent = body;
      return advice();
    },
  });
  await page.fill('#model', 'llama3.1-70b');
  await page.fill('#batch', '2');
  await page.click('#pins-details summary');
  await page.fill('#pins', 'ici_tensor_parallelism=1\nscan_layers=true');
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  assert.deepEqual(sent, {
    model: 'llama3.1-70b',
    cluster: { chip: 'tpu7x', topology: '4x4x4', slices: 1 },
    workload: { seq_len: 8192, per_device_batch_size: 2 },
    search: { objective: 'step_time', top_k: 10, sensitivities: true },
    pins: { ici_tensor_parallelism: 1, scan_layers: true },
    include: ['trade_off'],
    strict: true,
  });
});

test('the widths of the time bar add up to the step and the table agrees', async () => {
  const page = await open({}, { path: withJob });
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  await openTab(page, 'Time');
  const chart = page.locator('#plan-panel-time .chart').first();
  const widths = await chart
    .locator('[data-part] rect')
    .evaluateAll((rects) => rects.map((rect) => Number.parseFloat(rect.getAttribute('width'))));
  assert.ok(Math.abs(widths.reduce((all, width) => all + width, 0) - 100) < 0.05, `sum ${widths}`);
  const table = page.getByRole('table', { name: /Exposed parts/ });
  assert.match(await table.locator('tfoot').innerText(), /6\.800 s\s+100\.0 %/);
  await page.getByText('Hidden behind other work: 3 parts').click();
  assert.match(await page.getByRole('table', { name: /hidden behind/ }).innerText(), /weights read\s+HBM\s+1\.100 s/);
});

test('the memory bar stacks each moment below the limit', async () => {
  const page = await open({}, { path: withJob });
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  await openTab(page, 'Memory');
  assert.ok(
    await page
      .getByRole('img', { name: /71\.5 GiB of 94\.7 GiB used on each device.*At the loss: 66\.2 GiB/ })
      .isVisible(),
  );
  const limit = await page.locator('.chart .limit').evaluate((line) => line.getBoundingClientRect().x);
  const ends = await page
    .locator('.chart:has(.limit) [data-part] rect')
    .evaluateAll((rects) => rects.map((rect) => rect.getBoundingClientRect().right));
  assert.ok(Math.max(...ends) < limit, 'what fits ends before the limit');
  assert.match(
    await page
      .getByRole('table', { name: /Memory parts/ })
      .locator('tfoot')
      .innerText(),
    /66\.2 GiB\s+71\.5 GiB\s+10\.4 GiB/,
  );
});

test('everything works with the keyboard alone', async () => {
  const page = await open();
  const tabTo = async (id) => {
    for (let i = 0; i < 60; i += 1) {
      if (await page.evaluate((wanted) => document.activeElement?.id === wanted, id)) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`${id} cannot be reached with Tab`);
  };
  await tabTo('model');
  await page.keyboard.type('llama3.1-70b');
  await tabTo('chip');
  await tabTo('topology');
  await tabTo('batch');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('2');
  await tabTo('submit');
  const outline = await page.evaluate(() => window.getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, 'solid', 'the focus can be seen');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#ranked');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'results');
  await tabTo('plan-1');
  await page.keyboard.press('ArrowDown');
  assert.match(await text(page, '#detail h2'), /^Plan 2/);
});

test('a pasted command line is estimated with its flags', async () => {
  let sent = null;
  const page = await open(
    {
      'POST /v1/estimate': (body) => {
        sent = body;
        return estimate();
      },
    },
    { path: withJob },
  );
  await page.getByText('Estimate mine').click();
  await page.fill(
    '#config',
    'LIBTPU_INIT_ARGS="--xla_a=1" python3 -m MaxText.train base.yml per_device_batch_size=2 \\\n remat_policy=full',
  );
  await page.fill('#xla_flags', '--xla_b=2');
  assert.equal(await text(page, '#submit'), 'Estimate my configuration');
  await page.click('#submit');
  await page.getByRole('heading', { name: /^My configuration:/ }).waitFor();
  assert.deepEqual(sent, {
    model: 'llama3.1-70b',
    cluster: { chip: 'tpu7x', topology: '4x4x4', slices: 1 },
    config: { per_device_batch_size: 2, remat_policy: 'full', max_target_length: 8192 },
    xla_flags: ['--xla_a=1', '--xla_b=2'],
  });
});

test('a found plan can be taken into the form, changed and estimated', async () => {
  const page = await open({}, { path: withJob });
  await page.click('#submit');
  await page.getByRole('button', { name: 'Edit as my configuration' }).click();
  assert.match(await page.inputValue('#config'), /ici_fsdp_parallelism=64\n/);
  assert.match(await page.inputValue('#xla_flags'), /^--xla_tpu_scoped_vmem_limit_kib=65536\n/);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'config');
});

test('the address brings the whole form back', async () => {
  const page = await open();
  await page.fill('#model', 'deepseek3-671b');
  await page.selectOption('#topology', '2x2x1');
  await page.selectOption('#batch_kind', 'tokens_per_step');
  await page.fill('#batch', '1048576');
  await reopen(page);
  await page.waitForSelector('#models option', { state: 'attached' });
  assert.equal(await page.inputValue('#model'), 'deepseek3-671b');
  assert.equal(await page.inputValue('#topology'), '2x2x1');
  assert.equal(await page.inputValue('#batch_kind'), 'tokens_per_step');
  assert.equal(await page.inputValue('#batch'), '1048576');
});

test('a link to a slice the catalog does not know keeps it and says so', async () => {
  const page = await open({}, { path: '/#/?topology=3x5x7' });
  assert.equal(await page.inputValue('#topology'), '3x5x7');
  assert.match(await text(page, '#topology option:checked'), /not in the catalog/);
});

test('settings and flags are copied as they are shown', async () => {
  const page = await open({}, { path: withJob });
  await page.click('#submit');
  await openTab(page, 'Run it');
  await page.getByRole('button', { name: 'Copy: MaxText settings' }).click();
  await page.getByText('Copied').first().waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, await page.getByRole('region', { name: 'MaxText settings' }).innerText());
  assert.match(copied, /^model_name=llama3\.1-70b\nper_device_batch_size=2\n/);
});

test('the answer can be saved as JSON', async () => {
  const page = await open({}, { path: withJob });
  await page.click('#submit');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download JSON' }).click(),
  ]);
  assert.equal(download.suggestedFilename(), 'advice-llama3.1-70b-on-tpu7x-4x4x4.json');
  assert.equal(JSON.parse(await readFile(await download.path(), 'utf8')).ranked.length, 3);
});

for (const [scheme, width] of [
  ['light', 1280],
  ['dark', 1280],
  ['light', 360],
  ['dark', 360],
]) {
  test(`no accessibility violation and no sideways scrolling: ${scheme}, ${width} px`, async () => {
    const page = await open({}, { path: withJob, scheme, width });
    assert.deepEqual(await axe(page), []);
    await page.click('#submit');
    await page.waitForSelector('#ranked');
    await everyTab(page, async () => {
      assert.deepEqual(await axe(page), []);
      assert.ok(
        await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth),
        'the page is no wider than the screen',
      );
    });
  });
}

test('settings are printed to their last line and to the end of each', async () => {
  const page = await open(
    {
      'POST /v1/advise': () => {
        const answer = advice(1);
        const many = Array.from({ length: 60 }, (_, index) => [`setting_${index}`, index]);
        Object.assign(answer.ranked[0], { config: Object.fromEntries(many), xla_flags: [`--xla_${'x'.repeat(300)}=1`] });
        return answer;
      },
    },
    { path: withJob },
  );
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  await openTab(page, 'Run it');
  await page.setViewportSize({ width: 800, height: 1100 });
  await page.emulateMedia({ media: 'print' });
  const cut = await page.locator('#plan-panel-run pre:visible').evaluateAll((boxes) => boxes.filter((box) => box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1).length);
  assert.equal(cut, 0);
});

test('a picture that could not be loaded is asked for again when its tab is opened again, or at once', async () => {
  let isAway = true;
  const page = await open(
    { 'POST /v1/estimate': (body) => (isAway ? { status: 503, title: 'The daemon is away' } : { ...estimate(), ...pictures(body?.include) }) },
    { path: withJob },
  );
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  await openTab(page, 'Mesh');
  const panel = page.getByRole('tabpanel', { name: 'Mesh' });
  await panel.getByRole('heading', { name: 'The daemon is away' }).waitFor();
  await panel.getByRole('button', { name: 'Try again' }).click();
  await panel.locator('[data-failed]').waitFor();
  isAway = false;
  await openTab(page, 'Overview');
  await openTab(page, 'Mesh');
  await panel.locator('svg.picture, .picture-place svg').first().waitFor();
  assert.equal(await panel.getByRole('button', { name: 'Try again' }).count(), 0);
});
