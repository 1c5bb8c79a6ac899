// Prefer: respond-async: a client that does not wait gets all that one who waits gets: its project and label, what it asked to
// be stored and verified, one run for one key; and where nobody can take it in, the answer at once.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { adviseRequest, freshDatabase, join, problem, run, scratchFolder, sql, startDaemon, until } from './daemon.mjs';

const NAME = 'api_async';
const { folder, remove } = scratchFolder();
let daemon, url;
before(async () => {
  url = freshDatabase(NAME);
  daemon = await startDaemon({ database: url });
});
after(async () => {
  await daemon.stop();
  remove();
});

const LATER = { Prefer: 'respond-async' };
const json = async (response, status = 200) => {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
};
const get = async (path, headers = {}) => json(await daemon.fetch(path, { headers }));
const advise = (extra, headers = {}) => daemon.post('/v1/advise', adviseRequest({ search: { top_k: 2 }, ...extra }), headers);
const ended = (path) => until(`${path} ends`, async () => {
  const sweep = await get(path);
  return sweep.state === 'done' && sweep;
});
const later = async (extra, headers) => {
  const response = await advise(extra, { ...LATER, ...headers });
  await json(response, 202);
  return response.headers.get('location');
};
const runsOf = (project) => Number(sql(NAME, `SELECT count(*) FROM runs WHERE project = '${project}'`));

test('the sweep of one has the project and the label of its request', async () => {
  const made = await run(['token', 'create', 'alpha', '--scope', 'write', '--project', 'alpha', '--tokens-file', join(folder, 'tokens')]);
  const mine = { Authorization: `Bearer ${made.out.trim()}` };
  const path = await later({ project: 'alpha', label: 'night' });
  const sweep = await ended(path);
  assert.deepEqual([sweep.project, sweep.label], ['alpha', 'night']);
  assert.deepEqual((await get('/v1/sweeps?project=alpha')).sweeps.map((one) => `/v1/sweeps/${one.sweep_id}`), [path]);
  const closed = await startDaemon({ database: url, args: ['--tokens-file', join(folder, 'tokens')] });
  assert.equal((await closed.fetch(path, { headers: mine })).status, 200, 'the project\'s own token sees it');
  await closed.stop();
});

test('plans are sent to the compiler as in an answer at once: by respond-async, and by a sweep', async () => {
  const paths = [await later({ verify: { top: 1 }, project: 'verified' })];
  const { sweep_id: id } = await json(await daemon.post('/v1/sweeps', { kind: 'advise', project: 'verified', requests: [adviseRequest({ verify: { top: 2 } })] }), 202);
  paths.push(`/v1/sweeps/${id}`);
  for (const path of paths) {
    const { items: [{ run_id: runId }] } = await ended(path);
    const { response } = await get(`${path}/items/0`);
    const { verifications } = await get(`/v1/runs/${runId}/verifications`);
    assert.equal(verifications.length, 1, path);
    assert.equal(verifications[0].state, 'queued');
    assert.deepEqual([response.run_id, response.verification_id], [runId, verifications[0].verification_id]);
  }
});

test('an answer that is given again names its verification again', async () => {
  const key = { 'Idempotency-Key': 'verified-once' };
  const first = await json(await advise({ verify: { top: 1 }, project: 'again' }, key));
  const second = await advise({ verify: { top: 1 }, project: 'again' }, key);
  assert.equal(second.headers.get('idempotency-replayed'), 'true');
  const replayed = await json(second);
  assert.ok(first.verification_id);
  assert.deepEqual([replayed.run_id, replayed.verification_id], [first.run_id, first.verification_id]);
  assert.equal(sql(NAME, `SELECT count(*) FROM verifications WHERE run_id = '${first.run_id}'`), '1');
  const plain = await json(await advise({ store: true }, { 'Idempotency-Key': 'plain' }));
  assert.deepEqual(Object.keys(await json(await advise({ store: true }, { 'Idempotency-Key': 'plain' }))), Object.keys(plain));
});

test('one key stores one run, whether its requests wait or not', async () => {
  const now = { 'Idempotency-Key': 'first-now' };
  const { run_id: id } = await json(await advise({ store: true, project: 'now' }, now));
  const retried = await advise({ store: true, project: 'now' }, { ...LATER, ...now });
  assert.equal(retried.headers.get('idempotency-replayed'), 'true');
  assert.equal((await json(retried)).run_id, id, 'the answer is there already');
  await problem(assert, await advise({ store: true, project: 'other' }, { ...LATER, ...now }), 422, 'invalid-request');
  assert.equal(runsOf('now'), 1);

  const after_ = { 'Idempotency-Key': 'first-later' };
  const path = await later({ store: true, project: 'later' }, after_);
  const waited = await advise({ store: true, project: 'later' }, after_);
  assert.deepEqual([waited.status, waited.headers.get('location'), waited.headers.get('idempotency-replayed')], [202, path, 'true']);
  assert.equal(await later({ store: true, project: 'later' }, after_), path);
  await problem(assert, await advise({ store: true, project: 'other' }, after_), 422, 'invalid-request');
  await ended(path);
  assert.equal(runsOf('later'), 1);
});

test('while the database is away the answer comes at once', async () => {
  const alone = await startDaemon({ database: 'postgresql://127.0.0.1:1/none?connect_timeout=1', waitFor: 'listening' });
  await until('it is known to be away', async () => (await (await alone.fetch('/readyz')).json()).database === 'away');
  const response = await alone.post('/v1/advise', adviseRequest(), LATER);
  assert.equal(response.headers.get('preference-applied'), null);
  assert.ok((await json(response)).ranked.length > 0);
  await alone.stop();
});
