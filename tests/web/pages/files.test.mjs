// Files of a plan against the stand-in daemon.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { axe, openTab } from '../browser.mjs';
import { RUNS, advice } from '../fixture.mjs';
import { pages } from '../pages_setup.mjs';

const ID = RUNS[0].run_id;
const REQUEST = { model: 'llama3.1-70b', cluster: { chip: 'tpu7x', topology: '4x4x4' }, workload: { seq_len: 8192 } };
const { open } = pages({ path: `/#/runs/${ID}`, ready: '#run-ranked' });

function stored(files = {}) {
  const answers = {
    [`GET /v1/runs/${ID}`]: () => ({ ...RUNS[0], request: REQUEST, response: { ...advice(2), run_id: ID } }),
  };
  for (const [name, answer] of Object.entries(files)) answers[`GET /v1/runs/${ID}/artifacts/${name}`] = answer;
  return answers;
}

test('each file of the chosen plan is downloaded as the daemon made it', async () => {
  const asked = [];
  const file = (body, request) => {
    asked.push(request.url);
    return { text: '#!/bin/bash\necho start\n' };
  };
  const page = await open(stored({ 'xpk.sh': file }));
  await page.check('#run-plan-2');
  await openTab(page, 'Run it');
  const table = page.getByRole('table', { name: 'Files of plan 2' });
  const names = ['maxtext.sh', 'maxtext.yml', 'libtpu.env', 'xpk.sh', 'gcluster.sh', 'jobset.yaml', 'verify.sh', 'report.md', 'trace.json', 'ranked.csv'];
  assert.deepEqual(await table.locator('tbody th code').allInnerTexts(), names);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download: xpk.sh' }).click(),
  ]);
  assert.equal(download.suggestedFilename(), 'xpk.sh');
  assert.equal(await readFile(await download.path(), 'utf8'), '#!/bin/bash\necho start\n');
  assert.deepEqual(asked, [`/v1/runs/${ID}/artifacts/xpk.sh?rank=2`]);
  assert.deepEqual(await axe(page), []);
});

test('a file is copied, and a refusal is said on its button', async () => {
  const page = await open(
    stored({
      'libtpu.env': () => ({ text: 'LIBTPU_INIT_ARGS=--xla_a=1\n' }),
      'maxtext.sh': () => ({ status: 503, title: 'The database cannot be reached' }),
    }),
  );
  const row = (name) => page.getByRole('row', { name: new RegExp(`^${name}`) });
  await openTab(page, 'Run it');
  await page.getByRole('button', { name: 'Copy: libtpu.env' }).click();
  await row('libtpu.env').getByText('Copied').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'LIBTPU_INIT_ARGS=--xla_a=1\n');
  await page.getByRole('button', { name: 'Download: maxtext.sh' }).click();
  await row('maxtext.sh').getByText('The database cannot be reached').waitFor();
  await page.getByRole('button', { name: 'Download: maxtext.sh' }).waitFor();
});

test('a plan that is not stored gives its files, made from the answer on screen', async () => {
  const asked = [];
  const file = (body, request) => {
    asked.push([request.url, body]);
    return { text: 'base_config: base.yml\n' };
  };
  const page = await open(
    { 'POST /v1/advise': () => advice(3), 'POST /v1/artifacts/maxtext.yml': file },
    { path: '/#/?model=llama3.1-70b&batch=2', ready: '#submit' },
  );
  await page.click('#submit');
  await page.check('#plan-2');
  await openTab(page, 'Run it');
  await page.getByRole('table', { name: 'Files of plan 2' }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download: maxtext.yml' }).click()]);
  assert.equal(await readFile(await download.path(), 'utf8'), 'base_config: base.yml\n');
  const [[url, body]] = asked;
  assert.equal(url, '/v1/artifacts/maxtext.yml?rank=2');
  const { engine, model, cluster, ranked } = advice(3);
  assert.deepEqual([body.engine, body.model, body.cluster], [engine, model, cluster]);
  assert.deepEqual(body.ranked.map((plan) => [plan.rank, plan.estimate.step_time_s, Boolean(plan.why)]), ranked.map((plan) => [plan.rank, plan.estimate.step_time_s, plan.rank === 2]));
  assert.deepEqual(body.ranked[1].xla_flags, ranked[1].xla_flags);
  assert.deepEqual(await axe(page), []);
});

test('an answer is stored from the tab that needs it, which then opens for that plan', async () => {
  const asked = [];
  const answers = {
    'POST /v1/advise': (body) => {
      asked.push(body);
      if (asked.length === 2) return { status: 503, title: 'The database cannot be reached' };
      return { ...advice(2), ...(body.store ? { run_id: ID, stored: true } : {}) };
    },
    ...stored(),
  };
  const page = await open(answers, { path: '/#/?model=llama3.1-70b&batch=2', ready: '#submit' });
  await page.click('#submit');
  await page.waitForSelector('#ranked');
  await page.check('#plan-2');
  await openTab(page, 'Measured');
  const button = page.getByRole('button', { name: 'Store as a run' });
  await page.fill('#batch', '4'); // the answer on screen is stored, not the question of the form
  await button.click();
  await page.getByRole('heading', { name: 'The database cannot be reached' }).waitFor();
  await button.click();
  await page.getByRole('heading', { name: 'Predicted against measured' }).waitFor();
  assert.equal(await page.evaluate(() => window.location.hash), `#/runs/${ID}?plan=2&tab=measured`);
  const [{ include, ...question }, , last] = asked;
  assert.deepEqual(include, ['trade_off'], 'which a stored run does not need');
  assert.deepEqual(last, { ...question, store: true });
  assert.equal(last.workload.per_device_batch_size, 2);
});
