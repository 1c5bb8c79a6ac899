// Requests that meet: whichever comes first, what is stored is what one after the other would have stored.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { adviseRequest, costly, estimateRequest, freshDatabase, join, problem, root, run, sleep, sql, startDaemon, until } from './daemon.mjs';

const NAME = 'api_races';
let daemon, other, database;
before(async () => {
  database = freshDatabase(NAME);
  daemon = await startDaemon({ database });
  other = await startDaemon({ database });
});
after(async () => {
  await daemon.stop();
  await other.stop();
});

const log = Array.from({ length: 30 }, (_, step) => `completed step: ${step}, seconds: ${(3 + step / 1000).toFixed(3)}, TFLOP/s/device: 1\n`).join('');
const LATER = { Prefer: 'respond-async' };
const json = async (response, status = 200) => {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
};
const runsOf = (project) => Number(sql(NAME, `SELECT count(*) FROM runs WHERE project = '${project}'`));
const sweepEnds = (path) => until(`${path} ends`, async () => (await json(await daemon.fetch(path))).state === 'done');

const psql = () => spawn('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', process.env.CLUSTER_URL.replace('/tpu_advisor?', `/${NAME}?`)],
  { stdio: ['pipe', 'pipe', 'inherit'] });
const waitingFor = (what) => Number(sql(NAME, `SELECT count(*) FROM pg_locks WHERE NOT granted AND ${what}`));

// Another session that has done `first`; `commit` ends it after `last`, and gives psql's status.
async function began(first) {
  const holder = psql();
  holder.stdin.write(`BEGIN;\n${first};\n\\echo held\n`);
  await once(holder.stdout, 'data');
  return {
    commit: async (last = 'SELECT') => {
      holder.stdin.end(`${last};\nCOMMIT;\n`);
      return (await once(holder, 'close'))[0];
    },
  };
}

// What comes of `during` while another holds `lock`.
async function holding(lock, during) {
  const holder = await began(lock);
  try {
    return await during();
  } finally {
    await holder.commit();
  }
}

// What comes of `during` when it meets another, who does `first` before and `last` when `during` waits or has ended. That
// one gets to his end.
async function crossing(first, during, last) {
  const holder = await began(first);
  let over = false;
  const sent = during().finally(() => { over = true; });
  await until('it waits, or has ended', () => over || waitingFor("locktype <> 'advisory'") > 0);
  assert.equal(await holder.commit(last), 0, 'another got to his end');
  return sent;
}

// Sends requests that come as far as `lock` lets them; it is given up when `waiting` of them stand before it. `seen` is what
// `look` gave then.
async function meeting(lock, send, waiting, look = 'SELECT') {
  const holder = psql();
  holder.stdin.write(`BEGIN;\n${lock};\n\\echo held\n`);
  await once(holder.stdout, 'data');
  const sent = send();
  holder.stdin.end(`DO $$ BEGIN FOR i IN 1..1000 LOOP
    EXIT WHEN (SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted) >= ${waiting};
    PERFORM pg_sleep(0.01);
  END LOOP; END $$;\n${look};\nCOMMIT;\n`);
  let seen = '';
  holder.stdout.on('data', (bytes) => { seen += bytes; });
  const answers = await Promise.all(sent);
  if (holder.exitCode === null) await once(holder, 'close');
  return Object.assign(answers, { seen: seen.trim() });
}

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

test('a log that is sent several times at the same moment is one measurement', async () => {
  const { run_id: id } = await json(await daemon.post('/v1/estimate', estimateRequest({ store: true })));
  const path = `/v1/runs/${id}/measurements`;
  const send = (at, text) => at.post(path, text, { 'Content-Type': 'text/plain' });
  const sent = () => [daemon, other, daemon, other].map((at) => send(at, log));
  const answers = await meeting('LOCK TABLE measurements IN EXCLUSIVE MODE', sent, 2);
  const made = await Promise.all(answers.map(async (answer) => ({ status: answer.status, ...(await answer.json()) })));
  assert.equal(sql(NAME, `SELECT count(*) FROM measurements WHERE run_id = '${id}'`), '1');
  assert.deepEqual(made.map((one) => one.status).sort(), [200, 200, 200, 201]);
  assert.equal(new Set(made.map((one) => one.measurement_id)).size, 1);
  await json(await send(daemon, log.replaceAll('seconds: 3', 'seconds: 4')), 201);
  await json(await daemon.post(`${path}?source=other`, log, { 'Content-Type': 'text/plain' }), 200);
});

const stored = async (extra) => (await json(await daemon.post('/v1/estimate', estimateRequest({ store: true, ...extra })))).run_id;
const change = (at, method, path, body, headers = {}) => at.fetch(path, { method, body: body && JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers } });

test('nothing is added to a run that is being deleted', async () => {
  for (const add of [(id) => daemon.post(`/v1/runs/${id}/measurements`, { step_time_s: 3, source: 's', at: '2026-11-20' }),
    (id) => other.post(`/v1/runs/${id}/measurements`, log, { 'Content-Type': 'text/plain' }), (id) => daemon.post(`/v1/runs/${id}/verifications`, { rank: 1 })]) {
    const id = await stored();
    const [answer] = await meeting(`UPDATE runs SET deleted_at = now() WHERE id = '${id}'`, () => [add(id)], 1);
    await problem(assert, answer, 404, 'not-found');
    assert.equal(sql(NAME, `SELECT (SELECT count(*) FROM measurements WHERE run_id = '${id}') + (SELECT count(*) FROM verifications WHERE run_id = '${id}')`), '0');
  }
});

test('a run that is tagged meanwhile is not deleted by who read it before', async () => {
  const id = await stored();
  const path = `/v1/runs/${id}`;
  const tag = (await daemon.fetch(path)).headers.get('etag');
  const [answer] = await meeting(`UPDATE runs SET tags = '{keep}' WHERE id = '${id}'`, () => [change(daemon, 'DELETE', path, undefined, { 'If-Match': tag })], 1);
  await problem(assert, answer, 412, 'precondition-failed');
  assert.deepEqual((await json(await daemon.fetch(path))).tags, ['keep']);
});

test('calibrations that are put in force at the same moment follow each other', async () => {
  const made = [];
  for (const slower of [1.1, 1.2]) {
    for (let i = 0; i < 4; i++) {
      const run = await json(await daemon.post('/v1/estimate', estimateRequest({ store: true, project: 'turns' })));
      await json(await daemon.post(`/v1/runs/${run.run_id}/measurements`, { step_time_s: run.step_time_s * slower, source: 's', at: '2026-11-20' }), 201);
    }
    made.push((await json(await daemon.post('/v1/calibrations', { project: 'turns' }), 201)).calibration_id);
  }
  const act = (at, id, what) => at.post(`/v1/calibrations/${id}/${what}`, '', { 'Content-Type': '' });
  const history = () => sql(NAME, "SELECT count(*) FROM calibration_history WHERE project = 'turns'");
  const active = async () => (await json(await daemon.fetch('/v1/calibrations?project=turns'))).calibrations.filter((one) => one.active).map((one) => one.calibration_id);
  const lock = 'LOCK TABLE audit IN EXCLUSIVE MODE'; // a row of the history is written, and waits for its audit
  const both = await meeting(lock, () => [act(daemon, made[0], 'activate'), act(other, made[1], 'activate')], 2);
  for (const answer of both) await json(answer);
  const [last] = await active();
  const first = made.find((id) => id !== last);
  const twice = await meeting(lock, () => [act(daemon, last, 'revert'), act(other, last, 'revert')], 2);
  assert.deepEqual(twice.map((answer) => answer.status).sort(), [200, 409]);
  assert.deepEqual(await active(), [first], 'what was in force before');
  const rows = Number(history());
  for (const answer of await meeting(lock, () => [act(daemon, last, 'activate'), act(other, last, 'activate')], 2)) await json(answer);
  assert.equal(Number(history()), rows + 1, 'the same one is put in force once');
});

test('who sets a baseline is told what he has set, with its tag', async () => {
  const ids = await Promise.all(Array.from({ length: 6 }, () => stored({ project: 'set' })));
  const path = '/v1/baselines/set/main';
  for (let i = 0; i < 15; i++) {
    const answers = await Promise.all(ids.map((id, at) => change(at % 2 ? daemon : other, 'PUT', path, { run_id: id })));
    assert.deepEqual(await Promise.all(answers.map(async (answer) => (await answer.json()).run_id)), ids);
    assert.equal(new Set(answers.map((answer) => answer.headers.get('etag'))).size, ids.length);
    assert.equal(answers.filter((answer) => answer.status === 201).length, 1);
    await change(daemon, 'DELETE', path);
  }
});

test('a verification is there with its plans, or not at all', async () => {
  const id = await stored();
  const made = await meeting('LOCK TABLE verification_plans IN EXCLUSIVE MODE', () => [daemon.post(`/v1/runs/${id}/verifications`, { rank: 1 })], 1,
    `SELECT count(*) FROM verifications WHERE run_id = '${id}'`);
  const { verification_id: verification } = await json(made[0], 202);
  assert.equal(made.seen, '0');
  assert.equal((await json(await daemon.fetch(`/v1/verifications/${verification}`))).results.length, 1);
});

test('retention does not take a run with a measurement that comes at the same moment', async () => {
  const id = await stored();
  sql(NAME, `ALTER TABLE runs DISABLE TRIGGER runs_immutable; UPDATE runs SET created_at = now() - interval '9 days' WHERE id = '${id}';
    ALTER TABLE runs ENABLE TRIGGER runs_immutable`);
  sql(NAME, `CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM pg_advisory_xact_lock(77) WHERE current_setting('tpu_advisor.principal') = 'retention'; RETURN NULL; END $$;
    CREATE TRIGGER pause BEFORE UPDATE ON runs FOR EACH STATEMENT EXECUTE FUNCTION pause()`);
  const [measured, closed] = await holding('SELECT pg_advisory_xact_lock(77)', async () => {
    const retention = psql();
    retention.stdin.end('SELECT tidy_runs(1, 30, 100);\n');
    await until('retention waits', () => waitingFor("locktype = 'advisory'") > 0);
    let answered = false;
    const answer = daemon.post(`/v1/runs/${id}/measurements`, { step_time_s: 3, source: 's', at: '2026-11-20' }).finally(() => { answered = true; });
    await until('it is measured, or waits', () => answered || waitingFor("locktype <> 'advisory'") > 0);
    return [answer, once(retention, 'close')];
  });
  await closed;
  const { status } = await measured;
  sql(NAME, 'DROP TRIGGER pause ON runs; DROP FUNCTION pause');
  const deleted = sql(NAME, `SELECT deleted_at IS NOT NULL FROM runs WHERE id = '${id}'`);
  assert.ok([201, 404].includes(status), `${status}`);
  assert.equal(deleted, status === 201 ? 'f' : 't');
});

test('who looks for work does not wait for a sweep that another has in hand', async () => {
  const id = sql(NAME, "INSERT INTO sweeps (id, kind, items_count) VALUES (uuid_v7(), 'estimate', 1) RETURNING id");
  await holding(`SELECT FROM sweeps WHERE id = '${id}' FOR NO KEY UPDATE`, () => {
    sql(NAME, `INSERT INTO sweep_items (sweep_id, item, state, attempts, lease_until, request)
      VALUES ('${id}', 0, 'running', 99, now() - interval '1 hour', '{}')`);
    assert.equal(sql(NAME, "SET lock_timeout = '2s'; SELECT count(*) FROM sweep_take('me', 60, 1, 3, '{}')"), '0');
  });
  await until('it is given up', () => sql(NAME, `SELECT failed_count FROM sweeps WHERE id = '${id}'`) === '1');
});

// A verification of two plans that wait: its path, and what locks one of them.
async function twoPlans() {
  const { run_id: id } = await json(await daemon.post('/v1/advise', adviseRequest({ store: true, search: { top_k: 2 } })));
  const { verification_id: verification } = await json(await daemon.post(`/v1/runs/${id}/verifications`, { top: 2 }), 202);
  const of = `verification_id = '${verification}'`;
  assert.equal(sql(NAME, `SELECT count(*) FROM verification_plans WHERE ${of} AND state = 'queued'`), '2');
  return { path: `/v1/verifications/${verification}`, of, lock: (rank) => `SELECT FROM verification_plans WHERE ${of} AND rank = ${rank} FOR UPDATE` };
}
const verifier = () => run(['verifier', '--database-url', database, '--compiler', join(root, 'tests/api/fake_compiler.mjs'), '--until-empty']);

test('a verifier that settles plans and another who has them in hand do not wait for each other', async () => {
  for (const [verdict, prepare] of [
    ['refused', "INSERT INTO proofs (plan_sha256, mode, versions, verdict, result) SELECT plan_sha256, 'assign', 'v', 'refused', '{}' FROM verification_plans WHERE"],
    ['failed', "UPDATE verification_plans SET state = 'running', attempts = 99, lease_until = now() - interval '1 hour' WHERE"]])
    for (const [first, last] of [[1, 2], [2, 1]]) {
      const { of, lock } = await twoPlans();
      sql(NAME, `${prepare} ${of}`);
      const { status, err } = await crossing(lock(first), verifier, lock(last));
      assert.equal(status, 0, err);
      assert.doesNotMatch(err, /"level":"error"/);
      await verifier();
      assert.equal(sql(NAME, `SELECT string_agg(verdict, ' ') FROM verification_plans WHERE ${of}`), `${verdict} ${verdict}`);
      sql(NAME, `DELETE FROM proofs WHERE plan_sha256 IN (SELECT plan_sha256 FROM verification_plans WHERE ${of})`);
    }
});

test('a verification that is cancelled while it is purged: neither waits for the other\'s plans', async () => {
  for (const [first, last] of [[1, 2], [2, 1]]) {
    const { path, of, lock } = await twoPlans();
    const purged = `SELECT FROM verifications WHERE id = '${path.split('/').pop()}' FOR UPDATE; ${lock(first)}`; // as a cascade of deletes does
    const answer = await crossing(purged, () => daemon.fetch(path, { method: 'DELETE' }), lock(last));
    assert.equal(answer.status, 204, await answer.text());
    assert.equal(sql(NAME, `SELECT string_agg(state, ' ') FROM verification_plans WHERE ${of}`), 'cancelled cancelled');
  }
});

test('a plan that was tried too often is not tried again because another had it in hand', async () => {
  const { of, lock } = await twoPlans();
  sql(NAME, `UPDATE verification_plans SET state = 'running', attempts = 99, lease_until = now() - interval '1 hour' WHERE ${of}`);
  sql(NAME, `CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM pg_advisory_xact_lock(77) WHERE current_query() LIKE 'WITH next%'; RETURN NULL; END $$;
    CREATE TRIGGER pause BEFORE UPDATE ON verification_plans FOR EACH STATEMENT EXECUTE FUNCTION pause()`);
  const holder = await began(lock(1));
  const [ended] = await holding('SELECT pg_advisory_xact_lock(77)', async () => {
    const sent = [verifier()];
    await until('it has settled, and looks for a plan', () => waitingFor("locktype = 'advisory'") > 0);
    await holder.commit();
    return sent;
  });
  assert.equal((await ended).status, 0);
  sql(NAME, 'DROP TRIGGER pause ON verification_plans; DROP FUNCTION pause');
  await verifier();
  assert.equal(sql(NAME, `SELECT string_agg(verdict || attempts, ' ') FROM verification_plans WHERE ${of}`), 'failed99 failed99');
});

test('two daemons that tidy at the same moment do not wait for each other', async () => {
  const old = (n) => `now() - interval '${n} days'`;
  const runs = [await stored(), await stored()];
  // Each session purges the run of the sweep that the other deletes.
  const sweeps = runs.map((run, i) => sql(NAME, `WITH s AS (INSERT INTO sweeps (id, kind, items_count, done_count, state, ended_at)
      VALUES (uuid_v7(), 'estimate', 1, 1, 'done', ${old(90 - i)}) RETURNING id)
    INSERT INTO sweep_items (sweep_id, item, state, event, run_id, request, response) SELECT id, 0, 'done', 1, '${run}', '{}', '{}' FROM s RETURNING sweep_id`));
  runs.forEach((run, i) => sql(NAME, `UPDATE runs SET deleted_at = ${old(80 + i)} WHERE id = '${run}'`));
  sql(NAME, `CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM pg_advisory_xact_lock(current_setting('test.pause', true)::bigint); RETURN NULL; END $$;
    CREATE TRIGGER pause AFTER UPDATE ON sweep_items FOR EACH STATEMENT EXECUTE FUNCTION pause()`);
  const holders = [await began('SELECT pg_advisory_xact_lock(77)'), await began('SELECT pg_advisory_xact_lock(78)')];
  const ends = [];
  for (const key of [77, 78]) {
    const session = psql();
    session.stdin.end(`SET test.pause = ${key};\nSELECT tidy_runs(60, 30, 1);\n`);
    ends.push(once(session, 'close'));
    await until('it waits, or has ended', () => session.exitCode !== null || waitingFor("locktype = 'advisory'") === ends.length);
  }
  await holders[0].commit();
  await until('the first waits, or has ended', () => waitingFor("locktype <> 'advisory'") > 0 || sql(NAME, `SELECT count(*) FROM sweeps WHERE id = '${sweeps[0]}'`) === '0');
  await holders[1].commit();
  assert.deepEqual((await Promise.all(ends)).map(([status]) => status), [0, 0]);
  sql(NAME, 'DROP TRIGGER pause ON sweep_items; DROP FUNCTION pause');
  const ids = [...runs, ...sweeps].map((id) => `'${id}'`);
  await until('all is purged', () => sql(NAME, `SELECT tidy_runs(60, 30, 1);
    SELECT (SELECT count(*) FROM runs WHERE id IN (${ids})) + (SELECT count(*) FROM sweeps WHERE id IN (${ids}))`).endsWith('\n0'));
});

test('outdated keys are tidied without waiting for one that another has in hand', async () => {
  for (const key of ['first', 'second'])
    await json(await daemon.post('/v1/estimate', estimateRequest({ store: true, project: key }), { 'Idempotency-Key': key }));
  sql(NAME, "UPDATE idempotency_keys SET created_at = now() - interval '2 days' WHERE key IN ('first', 'second')");
  await holding("SELECT FROM idempotency_keys WHERE key = 'first' FOR UPDATE", async () => {
    const late = await startDaemon({ database }); // tidies when it begins
    await until('the other is gone', () => sql(NAME, "SELECT count(*) FROM idempotency_keys WHERE key = 'second'") === '0');
    await late.stop();
  });
});

test('an item whose holder renews it at the last moment is not given up', async () => {
  const id = sql(NAME, "INSERT INTO sweeps (id, kind, items_count) VALUES (uuid_v7(), 'estimate', 1) RETURNING id");
  const item = `sweep_id = '${id}' AND item = 0`;
  let holder;
  await holding(`SELECT FROM sweeps WHERE id = '${id}' FOR NO KEY UPDATE`, async () => {
    sql(NAME, `INSERT INTO sweep_items (sweep_id, item, state, attempts, lease_until, request)
      VALUES ('${id}', 0, 'running', 99, now() - interval '1 hour', '{}')`);
    holder = await began(`UPDATE sweep_items SET lease_until = now() + interval '1 hour' WHERE ${item}`);
  });
  const looks = psql(); // this one or a daemon, whoever comes first, has the sweep and looks at the item that is being renewed
  looks.stdin.end("SELECT FROM sweep_take('me', 60, 1, 3, '{}');\n");
  await until('it waits, or has ended', () => looks.exitCode !== null || waitingFor('true') > 0);
  assert.equal(await holder.commit(), 0);
  if (looks.exitCode === null) await once(looks, 'close');
  assert.equal(sql(NAME, `SELECT failed_count FROM sweeps WHERE id = '${id}' FOR UPDATE`), '0');
  assert.equal(sql(NAME, `SELECT state FROM sweep_items WHERE ${item}`), 'running');
  sql(NAME, `UPDATE sweep_items SET lease_until = now() - interval '1 hour' WHERE ${item}`);
  await until('it is given up', () => sql(NAME, `SELECT failed_count FROM sweeps WHERE id = '${id}'`) === '1');
});

test('who renews items of a sweep and who cancels it do not wait for each other', async () => {
  const batch = { kind: 'estimate', grid: { base: estimateRequest(), axes: { '/config/gradient_accumulation_steps': Array.from({ length: 4000 }, (_, i) => i + 1) } } };
  const { sweep_id: id } = await json(await daemon.post('/v1/sweeps', batch), 202);
  const all = (signal) => { for (const one of [daemon, other]) one.child.kill(signal); };
  const inHand = () => sql(NAME, `SELECT min(item) || ' ' || max(item) FROM sweep_items WHERE sweep_id = '${id}' AND state = 'running'
    GROUP BY worker HAVING count(*) > 1 ORDER BY max(item) DESC LIMIT 1`);
  const failures = async () => (await Promise.all([daemon, other].map(async (one) => (await (await one.fetch('/metrics')).text()).match(/.*db_errors.*other.* \d+$/gm)))).flat();
  const before = await failures();
  const isRenewing = () => sql(NAME, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%sweep_items i SET lease_until%'") !== '0';
  const met = async () => {
    const [first, last] = (await until('several items are in one hand', async () => {
      all('SIGSTOP');
      const items = inHand();
      if (!items) all('SIGCONT');
      return items;
    })).split(' ');
    await sleep(5500); // the leases are to be renewed
    const lock = (item) => `SELECT FROM sweep_items WHERE sweep_id = '${id}' AND item = ${item} FOR UPDATE`;
    const holder = await began(`SELECT FROM sweeps WHERE id = '${id}' FOR UPDATE; ${lock(last)}`);
    all('SIGCONT');
    const end = Date.now() + 3000;
    while (!isRenewing() && Date.now() < end) await sleep(20);
    const does = isRenewing();
    assert.equal(await holder.commit(does ? lock(first) : 'SELECT'), 0);
    return does;
  };
  try {
    await until('a renewal waits', met, 60000); // who was stopped when all was answered sends it, and renews nothing
  } finally {
    all('SIGCONT');
  }
  assert.ok(before.length > 0);
  assert.deepEqual(await failures(), before);
  assert.equal((await daemon.fetch(`/v1/sweeps/${id}`, { method: 'DELETE' })).status, 204);
  assert.equal((await json(await daemon.fetch(`/v1/sweeps/${id}`))).failed_count, 0);
});
