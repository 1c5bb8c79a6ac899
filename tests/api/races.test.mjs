// Requests that meet: whichever comes first, what is stored is what one after the other would have stored.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { costly, estimateRequest, freshDatabase, problem, sql, startDaemon, until } from './daemon.mjs';

const NAME = 'api_races';
let daemon, other;
before(async () => {
  const database = freshDatabase(NAME);
  daemon = await startDaemon({ database });
  other = await startDaemon({ database });
});
after(async () => {
  await daemon.stop();
  await other.stop();
});

const LATER = { Prefer: 'respond-async' };
const json = async (response, status = 200) => {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
};
const runsOf = (project) => Number(sql(NAME, `SELECT count(*) FROM runs WHERE project = '${project}'`));
const sweepEnds = (path) => until(`${path} ends`, async () => (await json(await daemon.fetch(path))).state === 'done');

test('one key stores one run when a request that waits and one that does not come at the same moment', async () => {
  const body = costly(8, { top_k: 1 });
  body.store = true;
  for (const [first, second] of [[daemon, daemon], [daemon, other]]) {
    const project = `k-${first === second}`;
    const key = { 'Idempotency-Key': project };
    const waiting = first.post('/v1/advise', { ...body, project }, key);
    await until('it is computed', async () => /workers_busy\{pool="engine"\} [1-9]/.test(await (await first.fetch('/metrics')).text()));
    const path = (await second.post('/v1/advise', { ...body, project }, { ...key, ...LATER })).headers.get('location');
    const waited = await waiting;
    await sweepEnds(path);
    assert.equal(runsOf(project), 1);
    assert.deepEqual([waited.status, waited.headers.get('location'), waited.headers.get('idempotency-replayed')], [202, path, 'true']);
  }
});

test('a key that a sweep has is not another request\'s, and the other way round', async () => {
  const key = { 'Idempotency-Key': 'of-a-sweep' };
  await json(await daemon.post('/v1/sweeps', { kind: 'estimate', requests: [estimateRequest()] }, key), 202);
  await problem(assert, await daemon.post('/v1/estimate', estimateRequest({ store: true, project: 'taken' }), key), 422, 'invalid-request');
  assert.equal(runsOf('taken'), 0);
  const mine = { 'Idempotency-Key': 'of-an-estimate' };
  const { run_id: id } = await json(await daemon.post('/v1/estimate', estimateRequest({ store: true }), mine));
  await problem(assert, await daemon.post('/v1/sweeps', { kind: 'estimate', requests: [estimateRequest()] }, mine), 422, 'invalid-request');
  const check = { baseline: { run_id: id }, candidate: estimateRequest({ store: true }), limits: { must_fit: true } };
  await problem(assert, await daemon.post('/v1/checks', check, key), 422, 'invalid-request');
});
