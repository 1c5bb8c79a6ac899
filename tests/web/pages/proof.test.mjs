// The compiler's word and the machine's beside a stored plan, against the stand-in daemon.

import assert from 'node:assert/strict';
import test from 'node:test';
import { axe } from '../browser.mjs';
import { RUNS, advice, estimate } from '../fixture.mjs';
import { pages } from '../pages_setup.mjs';

const ID = RUNS[0].run_id;
const PROOF = '0193a000-0000-7000-8000-00000000000a';
const GIB = 1024 ** 3;
const REQUEST = { model: 'llama3.1-70b', cluster: { chip: 'tpu7x', topology: '4x4x4' }, workload: { seq_len: 8192, per_device_batch_size: 2 } };
const { open } = pages({ path: `/#/runs/${ID}?plan=1&tab=prove` });

const DONE = {
  rank: 1,
  state: 'done',
  stage: '',
  attempts: 1,
  verdict: 'refused',
  reason: 'MaxText has no such key.',
  mode: 'assign',
  compiled_hbm_bytes_per_device: 70 * GIB,
  predicted_hbm_bytes_per_device: 71.4 * GIB,
  hbm_error_frac: 0.02,
  hbm_limit_bytes_per_device: 94.7 * GIB,
  peak_at: 'backward',
  parts: [
    { name: 'saved_activations', compiled_bytes_per_device: 51 * GIB, predicted_bytes_per_device: 52 * GIB },
    { name: 'workspace', compiled_bytes_per_device: null, predicted_bytes_per_device: 9 * GIB },
  ],
  buffers: Array.from({ length: 15 }, (_, index) => ({ bytes: (16 - index) * GIB * 0.4, count: 1, shape: `bf16[2,8192,${index}]`, part: index ? 'saved_activations' : null })),
  refused_keys: ['out_proj'],
  refused_flags: [],
  unknown_flags: ['--xla_tpu_scoped_vmem_limit_kib=65536'],
  versions: { maxtext: '0.2', jax: '0.9', libtpu: '0.0.30' },
  seconds: 41.2,
};

const verification = (proof) => ({ verification_id: PROOF, run_id: ID, mode: 'assign', created_at: RUNS[0].created_at, state: proof.state, first_proven_rank: null, result: proof, results: [proof] });

const base = (extra) => ({
  [`GET /v1/runs/${ID}`]: () => ({ ...RUNS[0], request: REQUEST, response: { ...advice(2), run_id: ID } }),
  [`GET /v1/runs/${ID}/verifications`]: () => ({ verifications: [] }),
  [`GET /v1/runs/${ID}/measurements`]: () => ({ measurements: [] }),
  ...extra,
});

test('a plan is put before the compiler, followed, and its word stands beside the prediction', async () => {
  let asked = 0;
  const waiting = { rank: 1, state: 'running', stage: 'compiling', attempts: 1, verdict: null, predicted_hbm_bytes_per_device: 71.4 * GIB };
  const page = await open(
    base({
      [`POST /v1/runs/${ID}/verifications`]: (body) => {
        assert.deepEqual(body, { rank: 1 });
        return verification({ ...waiting, state: 'queued', stage: '' });
      },
      [`GET /v1/verifications/${PROOF}`]: () => {
        asked += 1;
        return verification(asked === 1 ? waiting : { ...DONE, verdict: 'compiles', reason: null, refused_keys: [], unknown_flags: [] });
      },
      [`GET /v1/runs/${ID}/measurements`]: () => ({ measurements: [{ rank: 1, measured_hbm_bytes_per_device: 69 * GIB }] }),
    }),
  );
  await page.getByRole('button', { name: 'Prove with the real compiler' }).click();
  await page.getByText('Waiting for a verifier').waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByText('compiling …').waitFor();
  await page.getByText('It compiles, and fits.').waitFor();
  const bytes = page.getByRole('table', { name: /^HBM of one device/ });
  assert.match(await bytes.innerText(), /Whole step\s+70\.0 GiB\s+71\.4 GiB\s+\+2\.0 %\s+69\.0 GiB\s+-1\.4 %/);
  await page.getByText('The prediction is 2.0 % above the compiler.').waitFor();
  await page.getByRole('img', { name: /^The 12 largest buffers/ }).waitFor();
  assert.equal(await page.getByRole('table', { name: 'Buffers at the peak' }).locator('tbody tr').count(), 12);
  assert.doesNotMatch(await page.locator('#run-plan-panel-prove').innerText(), /NaN|undefined|null/);
  assert.deepEqual(await axe(page), []);
});

test('a daemon that is away for a moment does not end what is followed', async () => {
  let asked = 0;
  const running = { rank: 1, state: 'running', stage: 'compiling', attempts: 1, verdict: null };
  const page = await open(
    base({
      [`GET /v1/runs/${ID}/verifications`]: () => ({ verifications: [{ verification_id: PROOF, ranks: [1] }] }),
      [`GET /v1/verifications/${PROOF}`]: () => {
        asked += 1;
        if (asked === 2 || asked === 3) return { status: 503, title: 'The database cannot be reached' };
        return verification(asked === 1 ? running : { ...DONE, verdict: 'compiles', reason: null, refused_keys: [], unknown_flags: [] });
      },
    }),
  );
  await page.getByText('compiling …').waitFor();
  await page.getByRole('alert').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Prove with the real compiler' }).isVisible(), false, 'it is not over');
  await page.getByText('It compiles, and fits.').waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
});

for (const [scheme, width] of [
  ['light', 1280],
  ['dark', 360],
])
  test(`what the releases refuse is taken out by a button: ${scheme}, ${width} px`, async () => {
    const sent = [];
    const page = await open(
      base({
        [`GET /v1/runs/${ID}/verifications`]: () => ({ verifications: [{ verification_id: PROOF, ranks: [1], state: 'done' }] }),
        [`GET /v1/verifications/${PROOF}`]: () => verification(DONE),
        'POST /v1/estimate': (body) => sent.push(body) && estimate(),
      }),
      { scheme, width },
    );
    const refused = page.getByRole('group', { name: 'Refused' });
    await refused.waitFor();
    assert.match(await refused.innerText(), /out_proj[\s\S]*--xla_tpu_scoped_vmem/);
    assert.deepEqual(await axe(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'no wider than the screen');
    await refused.getByRole('button').click();
    await page.getByRole('heading', { name: /^My configuration:/ }).waitFor();
    assert.equal('out_proj' in sent[0].config, false);
    assert.equal(sent[0].config.decoder_layer_input, 'offload', 'the other keys stay');
    assert.deepEqual(sent[0].xla_flags, ['--xla_tpu_enable_async_collective_fusion_fuse_all_gather=false']);
    assert.equal(sent[0].model, 'llama3.1-70b');
  });

test('a verification that waits can be cancelled', async () => {
  let cancelled = false;
  const state = () => (cancelled ? 'cancelled' : 'queued');
  const page = await open(
    base({
      [`GET /v1/runs/${ID}/verifications`]: (_, { url }) => {
        assert.match(url, /\?rank=1&limit=1$/, 'the newest of this plan, however many were asked of the run');
        return { verifications: [{ verification_id: PROOF, ranks: [1], state: 'queued' }], next_cursor: PROOF };
      },
      [`GET /v1/verifications/${PROOF}`]: () => verification({ rank: 1, state: state(), stage: '', attempts: 0, verdict: null }),
      [`DELETE /v1/verifications/${PROOF}`]: () => {
        cancelled = true;
        return {};
      },
    }),
  );
  await page.getByRole('button', { name: 'Cancel', exact: true }).locator('visible=true').click();
  await page.getByText('The last verification was cancelled.').waitFor();
  await page.getByRole('button', { name: 'Prove with the real compiler' }).waitFor();
});
