// The plan page against the stand-in daemon: what a user sees when things go wrong.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe } from '../browser.mjs';
import { advice, estimate } from '../fixture.mjs';
import { pages } from '../pages_setup.mjs';

const { open, daemon } = pages();

const withJob = '/#/?model=llama3.1-70b';
const text = (page, selector) => page.locator(selector).innerText();

test('each error of a problem document stands beside its field and nothing typed is lost', async () => {
  const errors = [
    {
      pointer: '/pins/ici_fsdp_paralelism',
      code: 'unknown_key',
      detail: 'no such MaxText key',
      hint: 'Did you mean ici_fsdp_parallelism?',
    },
    { pointer: '/workload/seq_len', code: 'range', detail: 'seq_len 0 must be at least 1' },
    { pointer: '/elsewhere', code: 'odd', detail: 'something else' },
  ];
  const page = await open(
    { 'POST /v1/advise': () => ({ status: 422, title: 'The request has 3 errors', errors }) },
    { path: `${withJob}&seq_len=0&pins=ici_fsdp_paralelism%3D4` },
  );
  await page.click('#submit');
  await page.waitForSelector('#error-summary:not([hidden])');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'error-summary');
  assert.match(await text(page, '#pins-error'), /ici_fsdp_paralelism: no such MaxText key\s+Did you mean/);
  assert.equal(await page.getAttribute('#pins', 'aria-invalid'), 'true');
  assert.equal(await page.getAttribute('#pins', 'aria-describedby'), 'pins-hint pins-error');
  assert.equal(await page.getAttribute('#seq_len', 'aria-describedby'), 'seq_len-error');
  assert.match(await text(page, '#error-summary-list'), /\/elsewhere: something else/);
  assert.equal(await page.inputValue('#pins'), 'ici_fsdp_paralelism=4');
  await page.locator('#error-summary-list a').first().click();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'pins');
  assert.deepEqual(await axe(page), []);
});

test('what an answer warns about stands beside the field, without marking it as wrong', async () => {
  const warnings = [
    { pointer: '/config/foo', code: 'unknown-key', detail: 'foo is not a MaxText key', hint: 'did you mean food?' },
  ];
  const path = `${withJob}&mode=estimate&config=foo%3D1`;
  const page = await open({ 'POST /v1/estimate': () => ({ ...estimate(), warnings }) }, { path });
  await page.click('#submit');
  await page.waitForSelector('#config-warning');
  assert.match(await text(page, '#config-warning'), /foo is not a MaxText key\.\s+Did you mean food\?/);
  assert.equal(await page.getAttribute('#config', 'aria-describedby'), 'config-hint config-read config-inherits config-warning');
  assert.equal(await page.getAttribute('#config', 'aria-invalid'), null);
  assert.deepEqual(await axe(page), []);
  await page.click('#submit');
  await page.waitForSelector('#results[aria-busy="false"]');
  assert.equal(await page.locator('.field-warning').count(), 1);
});

test('errors go away when the next try succeeds', async () => {
  let tries = 0;
  const page = await open(
    {
      'POST /v1/advise': () => {
        tries += 1;
        return tries === 1
          ? { status: 422, title: 'One error', errors: [{ pointer: '/model', detail: 'unknown' }] }
          : advice();
      },
    },
    { path: withJob },
  );
  await page.click('#submit');
  await page.waitForSelector('#model-error');
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  assert.equal(await page.locator('.field-error').count(), 0);
  assert.equal(await page.getAttribute('#model', 'aria-invalid'), null);
  assert.equal(await page.getAttribute('#model', 'aria-describedby'), 'model-hint');
});

test('a wrong entry is caught before anything is sent', async () => {
  let sent = 0;
  const page = await open({
    'POST /v1/advise': () => {
      sent += 1;
      return advice();
    },
  });
  await page.fill('#batch', 'two');
  await page.click('#submit');
  assert.match(await text(page, '#batch-error'), /Batch: “two” is not a number/);
  assert.match(await text(page, '#model-error'), /Choose a model/);
  assert.equal(sent, 0);
});

test('an overloaded daemon is said plainly, with the time to wait', async () => {
  const page = await open(
    {
      'POST /v1/advise': () => ({ status: 503, title: 'Too many requests at once', headers: { 'Retry-After': '3' } }),
    },
    { path: withJob },
  );
  await page.click('#submit');
  await page.waitForSelector('#error-summary:not([hidden])');
  assert.match(await text(page, '#error-summary'), /Too many requests at once[\s\S]*Try again in 3 s/);
});

test('a daemon that is gone is said plainly and the entries stay', async () => {
  const page = await open({}, { path: withJob });
  await daemon().stop();
  await page.click('#submit');
  await page.waitForSelector('#error-summary:not([hidden])');
  assert.match(await text(page, '#error-summary'), /cannot be reached/);
  assert.equal(await page.inputValue('#model'), 'llama3.1-70b');
});

test('a daemon that wants a token gets it from the form, and the address never holds it', async () => {
  const guarded = (answer) => (body, request) =>
    request.headers.authorization === 'Bearer secret' ? answer() : { status: 401, title: 'A token is needed' };
  const models = { engine: {}, models: [{ name: 'llama3.1-70b' }] };
  const page = await open(
    { 'GET /v1/catalog/models': guarded(() => models), 'POST /v1/advise': guarded(() => advice()) },
    { path: withJob },
  );
  await page.getByRole('heading', { name: 'A token is needed' }).waitFor();
  await page.fill('#token', 'secret');
  await page.keyboard.press('Tab');
  await page.waitForSelector('#models option', { state: 'attached' });
  assert.equal(await page.locator('#error-summary').isVisible(), false);
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  assert.ok(!page.url().includes('secret'));
});

test('no plan fits: the near misses say what is short', async () => {
  const page = await open({ 'POST /v1/advise': () => ({ ...advice(0) }) }, { path: withJob });
  await page.click('#submit');
  await page.getByText('No legal plan fits in memory.').waitFor();
  assert.match(await text(page, '#results'), /needs 101\.2 GiB of 94\.7 GiB; remat_policy=full would fit/);
  assert.deepEqual(await axe(page), []);
});

test('a running request can be cancelled', async () => {
  let answer;
  const wanted = new Promise((resolve) => {
    answer = resolve;
  });
  const page = await open(
    {
      'POST /v1/advise': async () => {
        await wanted;
        return advice();
      },
    },
    { path: withJob },
  );
  await page.click('#submit');
  assert.equal(await page.getAttribute('#results', 'aria-busy'), 'true');
  await page.click('#cancel');
  await page.waitForSelector('#results[aria-busy="false"]');
  answer();
  assert.equal(await text(page, '#submit'), 'Advise');
});

test('names from the daemon are shown as text, never run', async () => {
  const evil = '<img src=x onerror="document.title=1">';
  const page = await open(
    {
      'POST /v1/advise': () => {
        const answer = advice(1);
        answer.ranked[0].why = [evil];
        answer.ranked[0].estimate.time_parts[0].name = evil;
        return answer;
      },
    },
    { path: withJob },
  );
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  assert.equal(await page.locator('img').count(), 0);
  assert.ok((await text(page, '#detail')).includes(evil));
});

test('errors and remarks speak of the entries by the labels of the form', async () => {
  const errors = [
    { pointer: '/workload/seq_len', detail: '`seq_len` is -1, must be from 1 to 16777216' },
    { pointer: '/search/objective', detail: 'no price of a chip hour is known', hint: 'give cluster.price_usd_per_chip_hour' },
  ];
  const refused = { status: 422, title: 'The request has members that are missing, unknown or wrong', errors };
  const warnings = [
    { pointer: '/workload/quantization', detail: 'v5p has no faster matmul rate for fp8', hint: 'leave it out, or say "any" for the formats that pay' },
    { pointer: '/baseline/config', detail: 'a step of the baseline has 524288 tokens' },
  ];
  let isRefused = true;
  const page = await open({ 'POST /v1/advise': () => (isRefused ? refused : { ...advice(), warnings }) }, { path: '/#/?model=llama3.1-70b' });
  await page.click('#submit');
  await page.locator('#seq_len-error').getByText('Sequence length is -1, must be from 1 to 16777216.').waitFor();
  await page.locator('#objective-error').getByText(/Give a price: “Price” under Options, or that of each machine\./).waitFor();
  await page.getByRole('heading', { name: 'Something that was entered needs a change' }).waitFor();
  isRefused = false;
  await page.click('#submit');
  await page.getByText('Number format of matrix products: v5p has no faster matmul rate for fp8.').first().waitFor();
  await page.getByText(/Choose “bf16 \(no quantization\)”, or “any the chip supports” for the formats that pay\./).first().waitFor();
  await page.getByText('My configuration: a step of my configuration has 524288 tokens.').waitFor();
  assert.doesNotMatch(await page.locator('#view-plan').innerText(), /\/(workload|baseline|search)\/|_usd_per_chip/);
});

test('errors of several kinds are counted, not told by the title of the first', async () => {
  const errors = [
    { pointer: '/workload/seq_len', code: 'out-of-range', detail: '`seq_len` is 0' },
    { pointer: '/model', code: 'invalid-request', detail: 'the catalog has no model "lama"' },
  ];
  const page = await open({ 'POST /v1/advise': () => ({ status: 422, title: 'A value is outside its range', errors }) }, { path: '/#/?model=lama' });
  await page.click('#submit');
  await page.getByRole('heading', { name: '2 entries need a change' }).waitFor();
});

test('a page without a database keeps its name, and sends nobody to wait for one', async () => {
  const errors = [{ pointer: '', detail: 'no database is configured', hint: 'start the daemon with --database-url' }];
  const away = () => ({ status: 503, title: 'The database cannot be reached', errors, headers: { 'Retry-After': '2' } });
  const page = await open({ 'GET /v1/accuracy': away, 'GET /v1/sweeps': away }, { path: '/#/accuracy' });
  await page.getByRole('heading', { name: 'Accuracy', level: 1 }).waitFor();
  assert.match(await page.getByRole('alert').innerText(), /Start the daemon with --database-url\.$/);
  await page.click('#nav-sweeps');
  await page.getByRole('heading', { name: 'Sweeps', level: 1 }).waitFor();
  assert.deepEqual(await axe(page), []);
});
