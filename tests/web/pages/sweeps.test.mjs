// Sweeps against the stand-in daemon: what a new one asks.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe } from '../browser.mjs';
import { pages } from '../pages_setup.mjs';

const { open } = pages();

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
