// Verifications over HTTP and the verifiers that work them off, with a program in the compiler's place: what a client is
// told when, that a plan is compiled once, and what is left when a verifier is killed in the middle.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { adviseRequest, estimateRequest, freshDatabase, join, problem, program, root, run, scratchFolder, sleep, sql, startDaemon, until } from './daemon.mjs';

const fake = join(root, 'tests/api/fake_compiler.mjs');
const name = 'api_verifications';
const { folder, remove } = scratchFolder();
let daemon;
let url;
const verifiers = new Set();
before(async () => {
  url = freshDatabase(name);
  daemon = await startDaemon({ database: url });
});
after(async () => {
  for (const child of verifiers) child.kill('SIGKILL');
  await daemon.stop();
  remove();
});

let seed = 8;
const fresh = () => { seed += 8; return seed; }; // another batch is another plan, which nobody has compiled
const store = async (request) => (await (await daemon.post(request.workload ? '/v1/advise' : '/v1/estimate', { ...request, store: true })).json()).run_id;
const storeNew = () => store(estimateRequest({ config: { ...estimateRequest().config, gradient_accumulation_steps: fresh() } }));
const get = async (path) => (await daemon.fetch(path)).json();
const ask = async (runId, body = {}) => {
  const response = await daemon.post(`/v1/runs/${runId}/verifications`, body);
  const text = await response.text();
  assert.equal(response.status, 202, text);
  const path = response.headers.get('location');
  assert.equal(path, `/v1/verifications/${JSON.parse(text).verification_id}`);
  return path;
};
const gauge = async (of) => Number((await (await daemon.fetch('/metrics')).text()).match(new RegExp(`^tpu_advisor_${of} (\\d+)$`, 'm'))?.[1]);
const ended = (path, ms) => until(`${path} ends`, async () => {
  const now = await get(path);
  return ['done', 'cancelled'].includes(now.state) && now;
}, ms);
// The lease is long, so that no verifier loses its plan on a busy machine; a test that waits for its end says a shorter one.
function verifier({ FAKE = 'fits', args = [], log = 'log', lease = 60, compiler = fake } = {}) {
  const child = spawn(program, ['verifier', '--database-url', url, '--compiler', compiler, '--lease', String(lease), ...args],
    { env: { PATH: process.env.PATH, TMPDIR: folder, FAKE, FAKE_LOG: join(folder, log) }, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (bytes) => { said += bytes; });
  verifiers.add(child);
  const exit = new Promise((resolve) => { child.on('close', (status, signal) => { verifiers.delete(child); resolve(status ?? signal); }); });
  return { child, exit, log: () => said, stop: async () => { child.kill('SIGTERM'); return exit; } };
}
const compiles = (log = 'log') => (existsSync(join(folder, log)) ? readFileSync(join(folder, log), 'utf8').trim().split('\n') : []);

test('a plan is queued, compiled and stands beside its prediction; the next question is answered at once', async () => {
  const runId = await storeNew();
  assert.equal((await get(`/v1/runs/${runId}`)).verification, null);
  const tag = (await daemon.fetch(`/v1/runs/${runId}`)).headers.get('etag');
  const path = await ask(runId);
  assert.equal((await get(path)).state, 'queued');
  await until('operators are told of it', async () => (await gauge('verifications_waiting')) === 1);
  assert.deepEqual(await Promise.all(['verifications_running', 'verifiers_busy', 'sweep_items_waiting', 'sweep_items_running'].map(gauge)), [0, 0, 0, 0]);
  const worker = verifier();
  const done = await ended(path);
  assert.equal(done.state, 'done');
  assert.equal(done.first_proven_rank, 1);
  assert.equal(done.result.verdict, 'compiles');
  assert.equal(done.result.compiled_hbm_bytes_per_device, 21e9);
  const stored = await get(`/v1/runs/${runId}`);
  assert.equal(done.result.predicted_hbm_bytes_per_device, stored.hbm_bytes_per_device);
  assert.equal(stored.verification.plans[0].verdict, 'compiles');
  assert.equal(stored.verification.message, null);
  const fresher = await daemon.fetch(`/v1/runs/${runId}`, { headers: { 'If-None-Match': tag } });
  assert.equal(fresher.status, 200, 'a run with news is not "not modified"');
  assert.equal((await get(`/v1/runs/${runId}/verifications`)).verifications.length, 1);
  const before = compiles().length;
  const again = await (await daemon.post(`/v1/runs/${runId}/verifications`, { rank: 1 })).json();
  assert.equal(again.state, 'done');
  assert.equal(again.result.compiled_hbm_bytes_per_device, 21e9);
  assert.equal((await get(await ask(runId, { mode: 'whole' }))).state, 'queued', 'another mode is another question');
  await until('whole', async () => compiles().length === before + 1);
  assert.equal(await worker.stop(), 0);
});

test('the same Idempotency-Key makes one verification, and is no other request\'s', async () => {
  const [runId, otherId] = [await storeNew(), await storeNew()];
  const headers = { 'Idempotency-Key': 'verified' };
  const post = (id, body) => daemon.post(`/v1/runs/${id}/verifications`, body, headers);
  const [one, two] = await Promise.all([post(runId, {}), post(runId, {})]);
  assert.deepEqual([one.status, two.status], [202, 202]);
  assert.equal(one.headers.get('location'), two.headers.get('location'));
  assert.deepEqual([one, two].map((response) => response.headers.get('idempotency-replayed')).sort(), [null, 'true'].sort());
  assert.equal((await get(`/v1/runs/${runId}/verifications`)).verifications.length, 1);
  for (const refused of [post(runId, { mode: 'whole' }), post(otherId, {}), daemon.post('/v1/estimate', { ...estimateRequest(), store: true }, headers), daemon.post('/v1/sweeps', { kind: 'estimate', requests: [estimateRequest()] }, headers)]) {
    const { errors } = await problem(assert, await refused, 422, 'invalid-request');
    assert.equal(errors[0].pointer, '/headers/Idempotency-Key');
  }
  const run = await daemon.post('/v1/estimate', { ...estimateRequest(), store: true }, { 'Idempotency-Key': 'stored' });
  assert.equal(run.status, 200);
  await problem(assert, await daemon.post(`/v1/runs/${runId}/verifications`, {}, { 'Idempotency-Key': 'stored' }), 422, 'invalid-request');
  const id = one.headers.get('location').split('/').pop();
  sql(name, `UPDATE verifications SET created_at = now() - interval '25 hours' WHERE id = '${id}'`);
  const later = await post(runId, { mode: 'whole' });
  assert.deepEqual([later.status, later.headers.get('idempotency-replayed')], [202, null], 'a day later it is free');
});

test('the verifications of a run come in pages, newest first, and of one plan where that is asked', async () => {
  const runId = await store(adviseRequest({ search: { top_k: 2 } }));
  const path = `/v1/runs/${runId}/verifications`;
  assert.deepEqual([(await get(path)).verifications, (await get(path)).next_cursor], [[], null]);
  const made = [];
  for (let n = 0; n < 51; n++) made.unshift((await ask(runId, n === 20 ? { top: 2 } : { rank: 1 })).split('/').pop());
  const first = await daemon.fetch(`${path}?limit=20`);
  const seen = [await first.json()];
  assert.equal(first.headers.get('link'), `<${path}?limit=20&cursor=${seen[0].next_cursor}>; rel="next"`);
  while (seen.at(-1).next_cursor) seen.push(await get(`${path}?limit=20&cursor=${seen.at(-1).next_cursor}`));
  assert.deepEqual(seen.map(({ verifications }) => verifications.length), [20, 20, 11]);
  assert.deepEqual(seen.flatMap(({ verifications }) => verifications.map((one) => one.verification_id)), made);
  assert.equal((await get(path)).verifications.length, 50);
  const second = await get(`${path}?rank=2`);
  assert.deepEqual([second.verifications.map(({ ranks }) => ranks), second.next_cursor], [[[1, 2]], null]);
  for (const query of ['limit=201', 'limit=0', 'rank=0', 'rank=101', 'cursor=x', 'since=2026-01-01'])
    await problem(assert, await daemon.fetch(`${path}?${query}`), 400, 'bad-request');
  for (const id of made) await daemon.fetch(`/v1/verifications/${id}`, { method: 'DELETE' }); // no verifier of another test takes them
});

test('when plan 1 does not fit the run says so and names the first that does', async () => {
  const runId = await store(adviseRequest({ search: { top_k: 3 } }));
  const plans = (await get(`/v1/runs/${runId}`)).response.ranked;
  const path = await ask(runId, { top: 9 });
  // the word on the first stays, the others are asked again and get another
  const first = verifier({ FAKE: 'oom', args: ['--until-empty'] });
  assert.equal(await first.exit, 0);
  sql(name, `UPDATE verification_plans SET state = 'queued', verdict = NULL, result = NULL, compiled_hbm_bytes_per_device = NULL WHERE rank > 1 AND verification_id = '${path.split('/').pop()}';
    DELETE FROM proofs WHERE verdict = 'does_not_fit' AND plan_sha256 IN (SELECT plan_sha256 FROM verification_plans WHERE rank > 1)`);
  const second = verifier({ args: ['--until-empty'] });
  const done = await ended(path);
  assert.equal(await second.exit, 0, 'leaves when no plan waits');
  assert.deepEqual(done.results.map((one) => one.verdict), ['does_not_fit', ...Array(plans.length - 1).fill('compiles')]);
  assert.equal(done.first_proven_rank, 2);
  const { verification } = await get(`/v1/runs/${runId}`);
  assert.match(verification.message, /does not take plan 1 \(does_not_fit: XLA needs more.*plan 2 is the first/);
  assert.equal(verification.first_proven_rank, 2);
});

test('a verifier that is killed in the middle: another does the job, once', async () => {
  const runId = await storeNew();
  const path = await ask(runId);
  const lost = verifier({ FAKE: 'fits:60', log: 'killed', lease: 3 });
  await until('the compile has begun', async () => compiles('killed').length === 1 && (await get(path)).results[0].stage === 'compiling');
  const pid = Number(compiles('killed')[0].split(' ')[0]);
  lost.child.kill('SIGKILL');
  await lost.exit;
  await until('its child is gone too', () => !existsSync(`/proc/${pid}`));
  const next = [verifier({ log: 'killed' }), verifier({ log: 'killed' })];
  const done = await ended(path);
  assert.equal(done.result.verdict, 'compiles');
  assert.equal(done.result.attempts, 2);
  await sleep(1500);
  assert.equal(compiles('killed').length, 2, 'one lost, one done, no third');
  for (const worker of next) assert.equal(await worker.stop(), 0);
});

test('many verifiers do each plan once, and equal plans together', async () => {
  const runs = await Promise.all([1, 2, 3, 4, 5, 6].map(storeNew));
  const paths = [];
  for (const runId of [...runs, ...runs]) paths.push(await ask(runId));
  const workers = [1, 2, 3].map(() => verifier({ FAKE: 'fits:0.2', log: 'many', args: ['--until-empty'] }));
  for (const path of paths) assert.equal((await ended(path)).result.verdict, 'compiles');
  for (const worker of workers) assert.equal(await worker.exit, 0);
  assert.equal(compiles('many').length, runs.length);
});

test('of two that take equal plans in the same moment one waits for the word of the other', async () => {
  const runId = await storeNew();
  const paths = [await ask(runId), await ask(runId)];
  const id = paths[0].split('/').pop();
  // another verifier, seen from its middle: it has taken the first plan and has not committed yet
  const other = spawn('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', url]);
  other.stdin.write(`BEGIN; UPDATE verification_plans SET state = 'running', attempts = 1, worker = 'other', lease_until = now() + interval '1 hour' WHERE verification_id = '${id}' RETURNING 'taken';\n`);
  await once(other.stdout, 'data');
  const worker = verifier({ log: 'twins', args: ['--until-empty'] });
  await until('the worker waits for it', () => sql(name, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'") === '1');
  other.stdin.end('COMMIT;\n');
  assert.equal(await worker.exit, 0);
  assert.equal(compiles('twins').length, 0);
  assert.equal((await get(paths[1])).results[0].state, 'queued');
  sql(name, `UPDATE verification_plans SET lease_until = now() - interval '1 second' WHERE verification_id = '${id}'`);
  const next = verifier({ log: 'twins', args: ['--until-empty'] });
  for (const path of paths) assert.equal((await ended(path)).result.verdict, 'compiles');
  assert.equal(await next.exit, 0);
  assert.equal(compiles('twins').length, 1);
});

test('a plan that ends its verifier each time is given up', async () => {
  const path = await ask(await storeNew());
  const id = path.split('/').pop();
  sql(name, `UPDATE verification_plans SET state = 'running', attempts = 3, lease_until = now() - interval '1 second' WHERE verification_id = '${id}'`);
  const worker = verifier({ log: 'given-up' });
  const done = await ended(path);
  assert.equal(done.result.verdict, 'failed');
  assert.match(done.result.reason, /too many attempts/);
  assert.equal(compiles('given-up').length, 0);
  await worker.stop();
});

test('a plan that was given back often has ended no verifier', async () => {
  const path = await ask(await storeNew());
  const running = (state) => until(state, async () => (await get(path)).state === state);
  for (let i = 0; i < 3; i++) {
    const leaves = verifier({ FAKE: 'fits:60', log: 'back' });
    await running('running');
    assert.equal(await leaves.stop(), 0);
    assert.equal((await get(path)).results[0].attempts, 0);
  }
  const lost = verifier({ FAKE: 'fits:60', log: 'back', lease: 1 });
  await running('running');
  lost.child.kill('SIGKILL');
  await lost.exit;
  const next = verifier({ log: 'back' });
  const { result } = await ended(path);
  assert.deepEqual([result.verdict, result.attempts], ['compiles', 2]);
  await next.stop();
});

test('who has given a plan back has no say in it any more, though the next one makes the same attempt', async () => {
  for (const [late, FAKE, lease] of [['report', 'fits:3', 60], ['heartbeat', 'fits:60', 3], ['give-back', 'fits:60', 60]]) {
    const path = await ask(await storeNew());
    const where = `verification_id = '${path.split('/').pop()}'`;
    const worker = verifier({ FAKE, lease, log: late });
    await until('it compiles', async () => compiles(late).length === 1 && (await get(path)).results[0].stage === 'compiling');
    // its plan was given back in its name, and another has taken it, before it says its next word
    worker.child.kill('SIGSTOP');
    sql(name, `UPDATE verification_plans SET state = 'queued', attempts = attempts - 1, lease_until = NULL WHERE ${where};
      UPDATE verification_plans SET state = 'running', attempts = attempts + 1, worker = 'other', lease_until = now() + interval '1 hour' WHERE ${where}`);
    const row = () => sql(name, `SELECT state, stage, worker, attempts, lease_until, changes, verdict FROM verification_plans WHERE ${where}`);
    const held = row();
    worker.child.kill('SIGCONT');
    if (late !== 'give-back') await until(`the ${late} comes`, () => /another/.test(worker.log()) || row() !== held);
    assert.equal(await worker.stop(), 0);
    assert.equal(row(), held, `a late ${late} changes nothing`);
    assert.equal((await daemon.fetch(path, { method: 'DELETE' })).status, 204);
  }
});

test('failed is no word on a plan: asked again, it is compiled again', async () => {
  const runId = await storeNew();
  const silent = verifier({ FAKE: 'silent' });
  assert.equal((await ended(await ask(runId))).result.verdict, 'failed');
  await silent.stop();
  const path = await ask(runId);
  assert.equal((await get(path)).state, 'queued');
  const worker = verifier();
  assert.equal((await ended(path)).result.verdict, 'compiles');
  await worker.stop();
});

test('the word of other releases is told with them, and answers nobody who asks these', async () => {
  const baseline = await storeNew();
  const runId = await storeNew();
  const older = join(folder, 'older_compiler.mjs');
  writeFileSync(older, readFileSync(fake, 'utf8').replace("maxtext: '0.2.5'", "maxtext: '0.1.0'"), { mode: 0o755 });
  const paths = [await ask(runId), await ask(runId)];
  const first = verifier({ compiler: older, args: ['--until-empty'], log: 'older' });
  assert.equal(await first.exit, 0);
  for (const path of paths) assert.deepEqual((await get(path)).result.versions, { maxtext: '0.1.0', jax: '0.12.0.1', libtpu: '0.0.50.1' });
  assert.equal(compiles('older').length, 2, 'nor is it the answer to another question');
  const check = async () => (await daemon.post('/v1/checks', { baseline: { run_id: baseline }, candidate: { run_id: runId }, limits: { must_compile: true } })).json();
  const unasked = await check();
  assert.equal(unasked.verdict, 'fail');
  assert.match(unasked.reasons[0].detail, /the compiler of .*maxtext 0\.2\.5, .* has not been asked/);
  const path = await ask(runId);
  assert.equal((await get(path)).state, 'queued');
  const worker = verifier({ args: ['--until-empty'] });
  assert.equal(await worker.exit, 0);
  assert.equal((await get(path)).result.versions.maxtext, '0.2.5');
  assert.equal((await check()).verdict, 'pass');
  assert.ok(!('note' in (await get(path)).result));
  const { request } = await get(`/v1/runs/${runId}`);
  const forOlder = await store({ ...request, software: { maxtext: '0.2.4' } });
  assert.match((await get(await ask(forOlder))).result.note, /^the plan is for maxtext 0\.2\.4, .* and this is the word of maxtext 0\.2\.5, /);
  assert.equal((await get(`/v1/runs/${forOlder}`)).verification.plans[0].versions.maxtext, '0.2.5');
});

test('a verifier that is told to leave gives its plan back at once', async () => {
  const path = await ask(await storeNew());
  const worker = verifier({ FAKE: 'fits:60' });
  await until('it runs', async () => (await get(path)).state === 'running');
  assert.equal(await worker.stop(), 0);
  assert.equal((await get(path)).state, 'queued');
  assert.equal((await daemon.fetch(path, { method: 'DELETE' })).status, 204);
});

test('cancelled: the compile ends, and what is done stays', async () => {
  const path = await ask(await storeNew());
  const worker = verifier({ FAKE: 'fits:60', log: 'cancelled', lease: 3 }); // asks thrice in it whether it is still wanted
  await until('it runs', async () => compiles('cancelled').length === 1);
  const pid = Number(compiles('cancelled')[0].split(' ')[0]);
  assert.equal((await daemon.fetch(path, { method: 'DELETE' })).status, 204);
  assert.equal((await get(path)).state, 'cancelled');
  await until('the child is gone', () => !existsSync(`/proc/${pid}`));
  await worker.stop();
  await problem(assert, await daemon.fetch('/v1/verifications/x', { method: 'DELETE' }), 404, 'not-found');
});

test('a deleted run has no verification, and is not compiled before it is restored', async () => {
  const runId = await storeNew();
  const path = await ask(runId);
  assert.equal((await daemon.fetch(`/v1/runs/${runId}`, { method: 'DELETE' })).status, 204);
  for (const its of [path, `${path}/events`]) await problem(assert, await daemon.fetch(its), 404, 'not-found');
  await problem(assert, await daemon.fetch(path, { method: 'DELETE' }), 404, 'not-found');
  assert.equal(await verifier({ log: 'deleted', args: ['--until-empty'] }).exit, 0);
  assert.equal(compiles('deleted').length, 0);
  assert.equal((await daemon.post(`/v1/runs/${runId}/restore`, '')).status, 200);
  assert.equal((await get(path)).state, 'queued');
  assert.equal(await verifier({ log: 'deleted', args: ['--until-empty'] }).exit, 0);
  assert.equal((await get(path)).result.verdict, 'compiles');
});

test('events: what is new since the last one, then no more', async () => {
  const path = await ask(await storeNew());
  const events = async (last) => {
    const response = await daemon.fetch(`${path}/events`, { headers: last ? { 'Last-Event-ID': last } : {} });
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
  };
  const first = await events();
  assert.equal(first.type, 'text/event-stream');
  assert.match(first.text, /^retry: 1000\nid: 0\nevent: progress\ndata: \{"verification_id"/);
  assert.equal((await events('0')).text, 'retry: 1000\n\n\n', 'nothing new');
  const worker = verifier();
  await ended(path);
  const last = await events('0');
  assert.match(last.text, /event: done\ndata: .*"verdict":"compiles"/);
  assert.equal((await events(last.text.match(/id: (\d+)/)[1])).status, 204);
  await worker.stop();
});

test('bad questions', async () => {
  const runId = await storeNew();
  for (const [body, pointer] of [[{ rank: 0 }, '/rank'], [{ rank: 1, top: 2 }, '/top'], [{ mode: 'half' }, '/mode'], [{ rang: 1 }, '/rang'], [{ rank: 2 }, '/rank']]) {
    const found = await problem(assert, await daemon.post(`/v1/runs/${runId}/verifications`, body), 422, body.rank === 0 ? 'out-of-range' : 'invalid-request')
      .catch(async () => problem(assert, await daemon.post(`/v1/runs/${runId}/verifications`, body), 422, 'out-of-range'));
    assert.equal(found.errors[0].pointer, pointer);
  }
  await problem(assert, await daemon.post('/v1/runs/x/verifications', {}), 404, 'not-found');
  for (const path of ['/v1/verifications/x', `/v1/verifications/${runId}`, `/v1/verifications/${runId}/events`])
    await problem(assert, await daemon.fetch(path), 404, 'not-found');
});

test('without an environment a verifier takes nothing and says how to make one', async () => {
  const path = await ask(await storeNew());
  const done = await run(['verifier', '--database-url', url, '--compile-env', join(folder, 'none')]);
  assert.equal(done.status, 3);
  assert.match(done.err, /tpu-advisor verify --install/);
  assert.equal((await get(path)).state, 'queued');
  assert.deepEqual(readdirSync(folder).filter((entry) => entry.startsWith('tpu-advisor-verify')).length, 2, 'only the two that were killed left a folder');
});

test('advise with verify answers at once and proves behind', async () => {
  const response = await daemon.post('/v1/advise', adviseRequest({ search: { top_k: 2 }, verify: { top: 2 }, label: 'behind' }));
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  assert.ok(answer.run_id, 'it is stored without being asked');
  const path = `/v1/verifications/${answer.verification_id}`;
  assert.equal((await get(path)).results.length, 2);
  assert.equal((await get(path)).run_id, answer.run_id);
  for (const [extra, pointer] of [[{ verify: { top: 0 } }, '/verify/top'], [{ verify: {} }, '/verify/top'], [{ verify: { top: 1 }, store: false }, '/store']]) {
    const refused = await daemon.post('/v1/advise', adviseRequest(extra));
    assert.equal(refused.status, 422);
    assert.equal((await refused.json()).errors[0].pointer, pointer);
  }
  await daemon.fetch(path, { method: 'DELETE' });
});

test('a gate that must compile fails without a word, with a bad one, and passes with a good one', async () => {
  const baseline = await storeNew();
  const candidate = await storeNew();
  const check = async (headers = {}) => {
    const response = await daemon.post('/v1/checks', { baseline: { run_id: baseline }, candidate: { run_id: candidate }, limits: { must_compile: true } }, headers);
    return headers.Accept ? response.text() : response.json();
  };
  const unasked = await check();
  assert.equal(unasked.verdict, 'fail');
  assert.deepEqual(unasked.reasons.map((one) => one.code), ['does_not_compile']);
  assert.match(unasked.reasons[0].detail, /has not been asked/);
  assert.equal(unasked.candidate.compiler_verdict, null);
  const bad = verifier({ FAKE: 'oom' });
  const path = await ask(candidate);
  await ended(path);
  await bad.stop();
  const refused = await check();
  assert.match(refused.reasons[0].detail, /does_not_fit/);
  assert.equal(refused.candidate.compiled_hbm_bytes_per_device, 40e9);
  assert.match(await check({ Accept: 'text/markdown' }), /\| compiler's verdict \| not asked \| does_not_fit \| \|\n\| compiled HBM per device \| \| 37.253 GiB \| \|/);
  assert.match(await check({ Accept: 'application/junit+xml' }), /the real compiler takes the candidate"><failure/);
  sql(name, `UPDATE proofs SET verdict = 'compiles' WHERE plan_sha256 = (SELECT plan_sha256 FROM verification_plans WHERE verification_id = '${path.split('/').pop()}')`);
  assert.equal((await check()).verdict, 'pass');
  const unproven = verifier({ FAKE: 'no_bytes', log: 'no_bytes' });
  const empty = await storeNew();
  const { result } = await ended(await ask(empty));
  await unproven.stop();
  assert.deepEqual([result.verdict, result.reason], ['failed', 'the compiler named no bytes of the program']);
  const nothing = await (await daemon.post('/v1/checks', { baseline: { run_id: baseline }, candidate: { run_id: empty }, limits: { must_compile: true } })).json();
  assert.equal(nothing.verdict, 'fail');
  const compared = await get(`/v1/compare?runs=${baseline},${candidate}`);
  assert.equal(compared.compiled[0], null);
  assert.equal(compared.compiled[1].verdict, 'compiles');
  assert.match(await (await daemon.fetch(`/v1/runs/${candidate}/artifacts/report.md`)).text(), /## The compiler's word\n\nVerdict of the real compiler \(maxtext 0.2.5.*\): compiles/);
  assert.doesNotMatch(await (await daemon.fetch(`/v1/runs/${baseline}/artifacts/report.md`)).text(), /The compiler's word/);
});

test('a refusal of the whole is not taken back by a later word on its memory alone, nor a word by a failure', async () => {
  const baseline = await storeNew();
  const candidate = await storeNew();
  const check = async () => (await (await daemon.post('/v1/checks', { baseline: { run_id: baseline }, candidate: { run_id: candidate }, limits: { must_compile: true } })).json()).verdict;
  const said = async () => (await get(`/v1/runs/${candidate}`)).verification.plans[0].verdict;
  const hear = async (FAKE, body) => {
    await ask(candidate, body);
    assert.equal(await verifier({ FAKE, args: ['--until-empty'], log: 'modes' }).exit, 0);
  };
  await hear('silent', {});
  assert.deepEqual([await said(), await check()], ['failed', 'fail']);
  await ask(candidate);
  assert.equal((await get(`/v1/runs/${candidate}`)).verification.plans[0].state, 'queued', 'a failure is no word: what is under way is shown');
  await hear('fits', {});
  await hear('silent', { mode: 'whole' });
  assert.deepEqual([await said(), await check()], ['compiles', 'pass'], 'a compile that failed says nothing');
  await hear('refused', { mode: 'whole' });
  assert.deepEqual([await said(), await check()], ['refused', 'fail']);
  await hear('fits', {});
  assert.deepEqual([await said(), await check()], ['refused', 'fail']);
});

test('accuracy sets predicted, compiled and measured memory side by side', async () => {
  const runId = await store(estimateRequest({ project: 'side-by-side', config: { ...estimateRequest().config, gradient_accumulation_steps: fresh() } }));
  const of = async () => (await get('/v1/accuracy?project=side-by-side')).memory;
  assert.deepEqual(await of(), { rows: [], left_out_count: 0, compiled_count: 0, measured_count: 0, median_abs_error_frac: null, p90_abs_error_frac: null, max_abs_error_frac: null, bias_frac: null,
    measured: { judged_count: 0, median_abs_error_frac: null, p90_abs_error_frac: null, max_abs_error_frac: null, bias_frac: null } });
  const run = await get(`/v1/runs/${runId}`);
  for (const [bytes, at] of [[null, '2026-11-18'], [25e9, '2026-11-19'], [20e9, '2026-11-20']])
    await daemon.post(`/v1/runs/${runId}/measurements`, { step_time_s: run.step_time_s, ...(bytes && { hbm_bytes_per_device: bytes }), source: 's', at });
  const { measured } = await of();
  assert.equal(measured.judged_count, 1, 'what was measured is judged before it is compiled: the newest of each plan');
  assert.ok(Math.abs(measured.bias_frac - (run.hbm_bytes_per_device / 20e9 - 1)) < 1e-9, JSON.stringify(measured));
  const worker = verifier();
  await ended(await ask(runId));
  await worker.stop();
  const cluster = { ...estimateRequest().cluster, overrides: { clock_hz: 1.6e9 } };
  const imagined = await store(estimateRequest({ project: 'side-by-side', cluster }));
  const { detail } = await problem(assert, await daemon.post(`/v1/runs/${imagined}/verifications`, {}), 422, 'unsupported');
  assert.match(detail, /about other hardware: it knows the published \S+ only/);
  const memory = await of();
  assert.equal(memory.compiled_count, 1);
  assert.equal(memory.measured_count, 1);
  const [row] = memory.rows;
  assert.deepEqual([row.predicted_hbm_bytes_per_device, row.compiled_hbm_bytes_per_device, row.measured_hbm_bytes_per_device], [run.hbm_bytes_per_device, 21e9, 20e9]);
  assert.ok(Math.abs(memory.bias_frac - (run.hbm_bytes_per_device / 21e9 - 1)) < 1e-9);
  // A release that asked the compiler about what-if hardware has left such words.
  const older = await store(estimateRequest({ project: 'side-by-side', config: { ...estimateRequest().config, gradient_accumulation_steps: fresh() } }));
  const another = verifier();
  await ended(await ask(older));
  await another.stop();
  const { warnings } = (await get(`/v1/runs/${imagined}`)).response;
  sql(name, `SET session_replication_role = replica; UPDATE runs SET request = jsonb_set(request::jsonb, '{cluster,overrides}', '{}'), response = jsonb_set(response::jsonb, '{warnings}', '${JSON.stringify(warnings).replaceAll("'", "''")}') WHERE id = '${older}'`);
  assert.deepEqual(await of(), { ...memory, left_out_count: 1 }, 'the compiler knows no hardware that does not exist');
});

test('a disagreement over 5 % becomes a row of truth by one command', async () => {
  const runId = await store(adviseRequest({ workload: { seq_len: 4096, global_batch_sequences: 256 }, search: { top_k: 2 } }));
  const path = await ask(runId, { rank: 2 });
  const out = join(folder, 'field.json');
  const add = (...args) => new Promise((resolve) => {
    const child = spawn(process.execPath, [join(root, 'tests/compile/truth_add.mjs'), '--url', daemon.origin, '--out', out, ...args]);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => { text += bytes; });
    child.on('close', (status) => resolve({ status, text }));
  });
  assert.equal((await add('--run', runId)).status, 1, 'nothing is compiled yet');
  const worker = verifier({ FAKE: 'oom' });
  const { result } = await ended(path);
  await worker.stop();
  assert.ok(Math.abs(result.hbm_error_frac) > 0.05);
  const added = await add('--run', runId);
  assert.equal(added.status, 0, added.text);
  const [row] = JSON.parse(readFileSync(out, 'utf8'));
  const run = await get(`/v1/runs/${runId}`);
  assert.deepEqual(row.request.config, run.response.ranked[1].config);
  assert.deepEqual(row.request.cluster, { chip: 'tpu7x', topology: '4x4x4', slices: 1 });
  assert.equal(row.compiled.verdict, 'does_not_fit');
  assert.equal(row.compiled.need_bytes_per_device, 40e9);
  assert.equal(row.software, 'maxtext 0.2.5, jax 0.12.0.1, libtpu 0.0.50.1');
  assert.match((await add('--run', runId)).text, /is there already/);
  const estimate = await (await daemon.post('/v1/estimate', row.request)).json();
  assert.equal(estimate.hbm_bytes_per_device, result.predicted_hbm_bytes_per_device, 'the row asks for the same plan');
});
