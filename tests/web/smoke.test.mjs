// The same page served by the real daemon, which has no database; ORIGIN comes from run.sh.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { axe, drawn, launch, openPage, openTab, everyTab } from './browser.mjs';

const ORIGIN = process.env.ORIGIN;
const JOB = '/#/?model=llama3.1-70b&chip=tpu7x&topology=4x4x4&seq_len=8192&batch=2';
let browser;

before(async () => {
  assert.ok(ORIGIN, 'ORIGIN names the daemon');
  browser = await launch();
});
after(async () => {
  await browser?.close();
});

async function withPage(options, work) {
  const opened = await openPage(browser, ORIGIN, options);
  try {
    await work(opened.page);
    assert.deepEqual(opened.complaints, [], 'the console stays free of errors');
    assert.deepEqual(opened.foreign, [], 'no request leaves the host');
  } finally {
    await opened.close();
  }
}

async function advise(page) {
  await page.click('#submit');
  await page.waitForSelector('#ranked, #error-summary:not([hidden])', { timeout: 30000 });
  assert.equal(
    await page.locator('#error-summary').isVisible(),
    false,
    await page
      .locator('#error-summary')
      .innerText()
      .catch(() => ''),
  );
}

test('the page comes with a policy that allows its own host only', async () => {
  const response = await fetch(`${ORIGIN}/`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type'), /^text\/html/);
  assert.match(response.headers.get('content-security-policy') ?? '', /default-src 'self'/);
});

test('the first view is small, and nothing of it is asked for twice', () =>
  withPage({ path: '/' }, async (page) => {
    const session = await page.context().newCDPSession(page);
    await session.send('Network.enable');
    let bytes = 0;
    let requests = 0;
    const firstView = new Set(); // without the chunk of the pictures, which comes when the page is drawn and the browser idle
    session.on('Network.requestWillBeSent', ({ requestId, request }) => {
      if (!/\/assets\/all-[^/]*\.js$/.test(request.url)) firstView.add(requestId);
    });
    session.on('Network.loadingFinished', (event) => {
      if (!firstView.has(event.requestId)) return;
      bytes += event.encodedDataLength;
      requests += 1;
    });
    await session.send('Network.setCacheDisabled', { cacheDisabled: true });
    await page.reload();
    await page.waitForSelector('#models option', { state: 'attached' });
    await page.waitForLoadState('networkidle');
    assert.ok(bytes > 10_000 && bytes <= 100_000, `${bytes} bytes in ${requests} requests`);
    assert.ok(requests <= 12, `${requests} requests`);
    const script = await page.getAttribute('script[type="module"]', 'src');
    const response = await fetch(`${ORIGIN}/${script}`);
    assert.match(response.headers.get('cache-control'), /max-age=31536000, immutable/);
    assert.equal(response.headers.get('content-encoding'), 'gzip');
  }));

test('Cancel ends the search in the daemon, not only on the page', () =>
  withPage({ path: `/#/?model=deepseek3-671b&mode=machines&seq_len=4096&batch_kind=global_batch_sequences&batch=16384&machines=${Array(32).fill('tpu7x,8x16x16').join(';')}` }, async (page) => {
    let asked = 0;
    page.on('request', (request) => {
      asked += request.url().endsWith('/v1/advise') ? 1 : 0;
    });
    const running = async () => {
      const { running, waiting } = await (await fetch(`${ORIGIN}/readyz`)).json();
      return running + waiting;
    };
    await page.click('#submit');
    await page.click('#cancel');
    assert.equal(asked, 1);
    for (let i = 0; i < 400 && (await running()) > 0; i += 1) await page.waitForTimeout(50);
    assert.equal(await running(), 0);
    await page.waitForSelector('#results[aria-busy="false"]');
    assert.equal(await page.locator('#error-summary').isVisible(), false);
    assert.equal(await page.locator('#submit').innerText(), 'Compare');
  }));

const RECIPE = `#!/bin/bash
BATCH=\${BATCH:-2}
XLA_FLAGS=" --xla_tpu_scoped_vmem_limit_kib=65536 \\
  --xla_enable_async_all_gather=true "
ARGS="model_name=llama3.1-8b per_device_batch_size=\${BATCH} max_target_length=4096 remat_policy=full \\
  ici_fsdp_parallelism=-1 opt_type=adam_pax run_name=\${USER}-\$(date +%s)"
xpk workload create --cluster=c --tpu-type=v6e-16 --num-slices=1 --command="export LIBTPU_INIT_ARGS='\${XLA_FLAGS}' && \\
  python3 -m maxtext.trainers.pre_train.train base.yml \${ARGS}"
`;

for (const width of [1280, 360])
  test(`a pasted recipe fills the form, is estimated, and is the baseline of an advice, ${width} px`, () =>
    withPage({ width }, async (page) => {
      await page.getByText('Estimate mine').click();
      await page.evaluate((text) => navigator.clipboard.writeText(text), RECIPE);
      await page.focus('#config');
      await page.keyboard.press('Control+V');
      await page.locator('#config-read').getByText('Read as a recipe: llama3.1-8b on v6e 4x4, 5 settings, 2 XLA flags.').waitFor();
      const read = await page.evaluate(() => Object.fromEntries(['model', 'chip', 'topology', 'seq_len', 'batch'].map((id) => [id, document.getElementById(id).value])));
      assert.deepEqual(read, { model: 'llama3.1-8b', chip: 'v6e', topology: '4x4', seq_len: '4096', batch: '32' });
      assert.match(await page.inputValue('#config'), /^per_device_batch_size=2$/m);
      assert.equal(await page.inputValue('#xla_flags'), '--xla_tpu_scoped_vmem_limit_kib=65536\n--xla_enable_async_all_gather=true');
      await page.click('#submit');
      await page.getByRole('heading', { name: /^My configuration: fsdp 16/ }).waitFor();
      assert.deepEqual(await axe(page), []);
      await page.getByText('Find plans').click();
      await page.fill('#config', RECIPE); // and not by pasting: it is read when it is sent
      await page.click('#submit');
      await page.getByRole('heading', { name: /^Plan 1:/ }).waitFor();
      await page.getByRole('table', { name: 'Changes from my configuration' }).waitFor();
      assert.equal(await page.getByRole('table', { name: 'Changes from my configuration' }).getByText('opt_type').count(), 0, 'the plans keep its optimizer');
      await page.fill('#config', '#!/bin/bash\necho hello\n');
      await page.click('#submit');
      await page.locator('#config-error').getByText('There is no command that trains').waitFor();
      assert.deepEqual(await axe(page), []);
    }));

test('what is wrong with a key of pasted settings is mended by a button', () =>
  withPage({ path: '/#/?model=llama3.1-8b&chip=v6e&topology=4x4&mode=estimate' }, async (page) => {
    await page.fill('#config', 'remat_polciy=full\nper_device_batch_size=2');
    await page.click('#submit');
    await page.getByRole('button', { name: 'Use remat_policy' }).click();
    assert.equal(await page.inputValue('#config'), 'remat_policy=full\nper_device_batch_size=2');
  }));

test('the catalog fills the form', () =>
  withPage({}, async (page) => {
    assert.ok((await page.locator('#models option').count()) > 50, 'models');
    assert.ok((await page.locator('#chip option').allInnerTexts()).length >= 5, 'chips with slices');
    for (const chip of await page
      .locator('#chip option')
      .evaluateAll((options) => options.map((option) => option.value))) {
      await page.selectOption('#chip', chip);
      assert.ok((await page.locator('#topology option').count()) >= 5, `slices of ${chip}`);
    }
  }));

test('llama3.1-70b on tpu7x 4x4x4 gets ranked plans that fit, with bars', () =>
  withPage({ path: JOB }, async (page) => {
    await advise(page);
    assert.ok((await page.locator('#ranked tbody tr').count()) >= 2);
    const first = await page.locator('#ranked tbody tr').first().innerText();
    assert.match(first, /\d \S?s\b/, 'a step time');
    assert.match(first, /GiB/);
    assert.match(first, /fits|tight/);
    await openTab(page, 'Memory');
    assert.ok((await page.locator('.chart:has(.limit) [data-part]').count()) >= 3, 'memory parts');
    const widths = await page
      .locator('#detail .chart')
      .first()
      .locator('[data-part] rect')
      .evaluateAll((rects) => rects.map((rect) => Number.parseFloat(rect.getAttribute('width'))));
    assert.ok(
      Math.abs(widths.reduce((all, width) => all + width, 0) - 100) < 0.1,
      'exposed parts add up to the step',
    );
    await openTab(page, 'Run it');
    assert.match(await page.getByRole('region', { name: 'MaxText settings' }).innerText(), /parallelism=/);
    assert.doesNotMatch(await page.locator('#results').innerText(), /\bNaN\b|undefined|\[object/);
  }));

// Tables of which a part is seen only by scrolling sideways.
const cutTables = (page) =>
  page
    .locator('#results .scroll')
    .evaluateAll((all) =>
      all.filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.querySelector('caption')?.textContent),
    );

for (const width of [1280, 1024, 768, 360])
 test(`at ${width} px no table of the answer is cut`, () =>
  withPage({ width, path: JOB }, async (page) => {
    await page.check('#sensitivities');
    await advise(page);
    await page.getByRole('table', { name: 'The same plan with another batch' }).waitFor();
    await everyTab(page, async () => assert.deepEqual(await cutTables(page), []));
  }));

test('the found plan estimates to the same step time', () =>
  withPage({ path: JOB }, async (page) => {
    await advise(page);
    const found = (await page.locator('#detail .facts dd').first().innerText()).split('\n')[0];
    await page.getByRole('button', { name: 'Edit as my configuration' }).click();
    await page.click('#submit');
    await page.getByRole('heading', { name: /^My configuration:/ }).waitFor({ timeout: 10000 });
    assert.equal((await page.locator('.facts dd').first().innerText()).split('\n')[0], found);
  }));

test('without a database the answer comes all the same and says that it is not stored', () =>
  withPage({ path: JOB }, async (page) => {
    await page.click('#options-details summary');
    await page.check('#store');
    await advise(page);
    await page.getByText('Not stored: the daemon has no database').waitFor();
    await page.click('#nav-runs');
    assert.match(await page.getByRole('alert').innerText(), /database/i);
  }));

test('the keyboard alone leads from an empty form to the second plan', () =>
  withPage({}, async (page) => {
    const tabTo = async (id) => {
      for (let i = 0; i < 80 && (await page.evaluate(() => document.activeElement?.id)) !== id; i += 1)
        await page.keyboard.press('Tab');
      assert.equal(await page.evaluate(() => document.activeElement?.id), id);
    };
    await tabTo('model');
    await page.keyboard.type('llama3.1-70b');
    await tabTo('submit');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#ranked', { timeout: 30000 });
    await tabTo('plan-1');
    await page.keyboard.press('ArrowDown');
    assert.match(await page.locator('#detail h2').innerText(), /^Plan ([2-9]|10):/);
  }));

test('a misspelt model and a misspelt pin are shown beside their fields', () =>
  withPage({ path: '/#/?model=lama3.1-70b&pins=ici_fsdp_paralelism%3D4' }, async (page) => {
    await page.click('#submit');
    await page.waitForSelector('#model-error', { timeout: 10000 });
    assert.match(await page.locator('#model-error').innerText(), /lama3\.1-70b[\s\S]*llama3\.1-70b/);
    assert.match(await page.locator('#pins-error').innerText(), /ici_fsdp_paralelism[\s\S]*ici_fsdp_parallelism/);
    assert.equal(await page.inputValue('#model'), 'lama3.1-70b');
    assert.equal(await page.inputValue('#pins'), 'ici_fsdp_paralelism=4');
  }));

test('a misspelt key of my configuration is estimated with a warning beside the field', () =>
  withPage({ path: `${JOB}&mode=estimate&config=remat_polic%3Dfull%0Aper_device_batch_size%3D1` }, async (page) => {
    await page.click('#submit');
    await page.waitForSelector('#config-warning', { timeout: 10000 });
    assert.match(await page.locator('#config-warning').innerText(), /remat_polic[\s\S]*remat_policy/);
    assert.match(await page.locator('.facts dd').first().innerText(), /\d m?s/);
  }));

test('every configuration that breaks a rule is answered with errors beside the fields', () =>
  withPage(
    { path: '/#/?model=llama3.1-70b&topology=4x4x5&slices=0&mode=estimate&config=per_device_batch_size%3D-1' },
    async (page) => {
      await page.click('#submit');
      await page.waitForSelector('#topology-error', { timeout: 10000 });
      assert.match(await page.locator('#topology-error').innerText(), /4x4x5[\s\S]*4x4x4/);
      assert.match(await page.locator('#slices-error').innerText(), /^Slices is 0/);
      assert.match(await page.locator('#config-error').innerText(), /per_device_batch_size/);
      assert.deepEqual(await axe(page), []);
    },
  ));

test('tiles of every kernel of the catalog are found or the reason is beside a field', () =>
  withPage({ path: '/#/kernels' }, async (page) => {
    await page.waitForSelector('#k-shape input');
    const names = await page.locator('#k-kernel option').evaluateAll((all) => all.map((option) => option.value));
    let refused = 0;
    for (const name of names) {
      await page.selectOption('#k-kernel', name);
      await Promise.all([page.waitForResponse('**/v1/kernels/tune'), page.click('#k-submit')]);
      const heading = page.getByRole('heading', { name: `${name} on tpu7x`, exact: true });
      const reason = page.locator('#k-kernel-error');
      await page.waitForSelector('#k-results[aria-busy="false"]');
      await heading.or(reason).waitFor({ timeout: 20000 });
      if (await heading.count()) continue;
      assert.match(await reason.innerText(), /simulate it instead/, name);
      refused += 1;
    }
    assert.ok(refused >= 5 && names.length - refused >= 8, `${refused} of ${names.length} without tiles`);
  }));

test("a matmul, whose tiles are not the reader's, is simulated without them", () =>
  withPage({ path: '/#/kernels?kernel=matmul&task=simulate' }, async (page) => {
    await page.waitForSelector('#k-shape input');
    await page.click('#k-submit');
    await page.waitForSelector('.lanes', { timeout: 20000 });
    assert.match(await page.locator('#k-results .facts').innerText(), /VMEM\s+chosen by XLA/);
    assert.doesNotMatch(await page.locator('#k-results').innerText(), /\bNaN\b|undefined|\[object|0\.0 GiB/);
  }));

test('a tile of splash attention is drawn step by step from the real simulation', () =>
  withPage({ path: '/#/kernels?chip=v6e&shape.q_len=4096' }, async (page) => {
    await page.waitForSelector('#k-shape input');
    await page.click('#k-submit');
    await page.getByRole('img', { name: /^Steps 1 to 12 of \d/ }).waitFor({ timeout: 20000 });
    assert.ok((await page.locator('.lane-mxu').count()) >= 10, 'matrix unit');
    assert.ok((await page.locator('.lane-vector').count()) >= 10, 'vector unit');
    assert.match(await page.getByRole('region', { name: 'MaxText settings' }).innerText(), /sa_block_q=\d+/);
    await drawn(page);
    const map = page.locator('.picture-tiles svg').first();
    assert.ok((await map.locator('.heat').count()) >= 25, 'cells of the map');
    assert.match((await map.locator('.heat-mark').allTextContents()).join(' '), /★/, 'the best tile is on it');
    assert.doesNotMatch(await page.locator('#k-results').innerText(), /\bNaN\b|undefined|\[object/);
    assert.deepEqual(await axe(page), []);
  }));

test('the winner of a published sweep is marked on the map of its shape, and named with its source', () =>
  withPage({ path: '/#/kernels?chip=tpu7x&shape.batch=4&shape.q_heads=32&shape.kv_heads=32&shape.q_len=4096&shape.head_dim_qk=64' }, async (page) => {
    await page.waitForSelector('#k-shape input');
    await page.click('#k-submit');
    const map = page.locator('.picture-tiles');
    await map.getByText(/^▲ the winner of a published sweep of this shape: block_q 1024, block_kv 1024, block_kv_compute 512, measured 2\.439 ms \(tokamax .*2026-07-16\)\.$/).waitFor({ timeout: 20000 });
    assert.match((await map.locator('.heat-mark').allTextContents()).join(' '), /▲/);
    await map.locator('summary').click();
    assert.match(await map.locator('tbody tr').filter({ has: page.getByRole('rowheader', { name: '1024', exact: true }) }).innerText(), /▲/, 'in the table too');
    assert.deepEqual(await axe(page), []);
    await page.fill('#k-shape-q_len', '3968');
    await page.click('#k-submit');
    await map.getByText('No published sweep has this very shape.').waitFor();
  }));

test('machines are compared with dollars, a GPU as a roofline, and the best plan says what would change it', () =>
  withPage(
    {
      path: '/#/?model=llama3.1-8b&mode=machines&batch_kind=global_batch_sequences&batch=64&token_budget=1T&machines=tpu7x,any,16,,12;v6e,4x4,,1,2.7;v5e,1x1,,1;H100,,16,,4,0.4',
    },
    async (page) => {
      await advise(page);
      const table = page.getByRole('table', { name: 'Machines, best first' });
      assert.ok((await table.locator('tbody tr').count()) >= 3, 'shapes of tpu7x and one of v6e');
      assert.match(await table.innerText(), /v6e 4x4[\s\S]*\$2\.70 per chip and hour[\s\S]*\$\d/);
      assert.match(await page.getByRole('table', { name: 'Machines without a plan' }).innerText(), /v5e 1x1/);
      assert.match(
        await page.getByRole('table', { name: 'Headline rooflines of GPUs' }).innerText(),
        /16 H100[\s\S]*not modelled/,
      );
      assert.match(await page.getByRole('table', { name: /hardware rate changes/ }).innerText(), /Peak FLOP\/s/);
      await openTab(page, 'Time');
    await page.locator('summary', { hasText: /^Hardware figures of/ }).click();
      await page.getByRole('table', { name: /^Hardware figures of/ }).waitFor();
      assert.doesNotMatch(await page.locator('#results').innerText(), /\bNaN\b|undefined|\[object/);
      assert.deepEqual(await axe(page), []);
    },
  ));

for (const [scheme, width] of [
  ['light', 1280],
  ['dark', 1280],
  ['light', 360],
  ['dark', 360],
]) {
  test(`no accessibility violation: ${scheme}, ${width} px`, () =>
    withPage({ path: JOB, scheme, width }, async (page) => {
      assert.deepEqual(await axe(page), []);
      await advise(page);
      await everyTab(page, async () => assert.deepEqual(await axe(page), []));
      assert.ok(
        await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth),
        'the page is no wider than the screen',
      );
    }));
}
