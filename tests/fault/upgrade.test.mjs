// Several daemons on one database while daemons, the database and its schema change under them. A reader believes: what was
// answered as stored is there, once; a daemon works with a newer schema and says what an older one lacks.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { estimateRequest, freshDatabase, join, problem, root, run, sleep, sql, startDaemon, until } from '../api/daemon.mjs';

const cluster = (command) => promisify(execFile)(join(root, 'sql/dev-cluster.sh'), [command]);
const behind = '0096_questions.sql'; // is undone by the test that needs a version behind
// The next version: its column, and a table locked for as long as that takes.
const next = (seconds) => `BEGIN; SELECT pg_advisory_xact_lock(1); ALTER TABLE runs ADD COLUMN of_tomorrow text; SELECT pg_sleep(${seconds});
  INSERT INTO schema_migrations (version, name, sha256) VALUES (9999, '9999_tomorrow.sql', repeat('0', 64)); COMMIT`;

// Clients that store under keys of their own, again and again until they are told that it is stored.
function storing(origins) {
  const acknowledged = new Map();
  const refused = new Set();
  let going = true;
  let number = 0;
  const client = async () => {
    while (going) {
      const key = `key-${number++}`;
      for (let attempt = 0; going && !acknowledged.has(key); attempt++) {
        const origin = origins()[(number + attempt) % origins().length];
        const answer = await fetch(`${origin}/v1/estimate`, { method: 'POST', body: JSON.stringify(estimateRequest({ store: true, label: key })),
          headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key }, signal: AbortSignal.timeout(9000) }).catch(() => null);
        const body = answer && await answer.json().catch(() => null);
        if (answer?.status === 200 && body?.stored) acknowledged.set(key, body.run_id);
        else if (answer) refused.add(answer.status);
        if (!acknowledged.has(key)) await sleep(50);
      }
    }
  };
  const clients = [1, 2, 3, 4].map(client);
  return { acknowledged, refused, stop: async () => { going = false; await Promise.all(clients); } };
}

// Each acknowledged run is there under its key, and no key has two.
function nothingLost(database, acknowledged) {
  const rows = new Map(sql(database, 'SELECT label, string_agg(id::text, $$ $$) FROM runs GROUP BY label').split('\n').filter(Boolean).map((line) => line.split('|')));
  for (const [key, id] of acknowledged) assert.equal(rows.get(key), id, key);
  for (const [key, ids] of rows) assert.ok(!ids.includes(' '), `${key} is stored twice: ${ids}`);
}

test('a schema that is one version ahead is no obstacle', async () => {
  const database = freshDatabase('upgrade_ahead');
  await (await startDaemon({ database })).stop();
  sql('upgrade_ahead', next(0));
  const daemon = await startDaemon({ database, args: ['--auto-migrate=false'] });
  const stored = await (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).json();
  assert.equal((await daemon.fetch(`/v1/runs/${stored.run_id}`)).status, 200);
  await daemon.stop();
});

test('a schema that is one version behind is said, stores nothing, and is used as soon as it is migrated', async () => {
  const database = freshDatabase('upgrade_behind');
  await (await startDaemon({ database })).stop();
  sql('upgrade_behind', `DELETE FROM schema_migrations WHERE name = '${behind}'; ALTER TABLE runs DROP COLUMN question_sha256 CASCADE;
    CREATE TRIGGER runs_immutable BEFORE UPDATE OF response ON runs FOR EACH ROW EXECUTE FUNCTION refuse_change()`);
  const daemon = await startDaemon({ database, args: ['--auto-migrate=false'], waitFor: 'listening' });
  await until('the refusal', () => daemon.log.find((line) => line.state === 'refused'));
  assert.ok(daemon.log.some((line) => line.msg.includes(`${behind} is not applied`) && line.msg.includes('tpu-advisor migrate')));
  assert.equal((await daemon.post('/v1/estimate', estimateRequest())).status, 200);
  await problem(assert, await daemon.post('/v1/estimate', estimateRequest({ store: true })), 503, 'store-unavailable');
  assert.equal((await daemon.fetch('/readyz?require=database')).status, 503);
  assert.equal((await run(['migrate', '--database-url', database])).status, 0);
  await until('the database', async () => (await daemon.fetch('/readyz?require=database')).status === 200, 40000);
  assert.equal((await (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).json()).stored, true);
  await daemon.stop();
});

test('the schema moves on while a daemon stores and a newer one joins: nothing acknowledged is lost or doubled', async () => {
  const database = freshDatabase('upgrade_rolling');
  const daemons = [await startDaemon({ database })];
  const load = storing(() => daemons.map((daemon) => daemon.origin));
  await until('runs', () => load.acknowledged.size > 20, 30000);
  const migration = promisify(execFile)('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', process.env.CLUSTER_URL.replace('/tpu_advisor?', '/upgrade_rolling?'), '-c', next(1)]);
  daemons.push(await startDaemon({ database }));
  await migration;
  const before = load.acknowledged.size;
  await until('more runs', () => load.acknowledged.size > before + 20, 30000);
  const old = daemons.shift();
  old.child.kill('SIGTERM');
  await old.exit;
  const after = load.acknowledged.size;
  await until('runs of the newer alone', () => load.acknowledged.size > after + 20, 30000);
  await load.stop();
  nothingLost('upgrade_rolling', load.acknowledged);
  for (const daemon of daemons) await daemon.stop();
});

test('three daemons and their database are killed in turn under load: nothing acknowledged is lost or doubled', async () => {
  const database = freshDatabase('upgrade_killed');
  const daemons = [];
  for (let i = 0; i < 3; i++) daemons.push(await startDaemon({ database }));
  const load = storing(() => daemons.map((daemon) => daemon.origin));
  const goesOn = async (what) => {
    const before = load.acknowledged.size;
    await until(`runs after ${what}`, () => load.acknowledged.size > before + 10, 40000);
  };
  await goesOn('the start');
  for (let i = 0; i < 3; i++) {
    daemons[i].child.kill('SIGKILL');
    await goesOn(`the end of daemon ${i}`);
    daemons[i] = await startDaemon({ database });
    await goesOn(`the return of daemon ${i}`);
  }
  await cluster('kill');
  await sleep(300);
  await cluster('start');
  await goesOn('the end of the database');
  await load.stop();
  assert.ok([...load.refused].every((status) => [409, 503].includes(status)), `refused with ${[...load.refused]}`);
  nothingLost('upgrade_killed', load.acknowledged);
  for (const daemon of daemons) await daemon.stop();
});
