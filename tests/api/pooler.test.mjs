// Behind pgbouncer in transaction mode: every transaction may meet another session of the database, with what others left.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { startDaemon, estimateRequest, freshDatabase, scratchFolder, sql, until, join, writeFileSync } from './daemon.mjs';

const NAME = 'api_pooler';
const digest = (token) => createHash('sha256').update(token).digest('hex');
let daemon;
let pooler;
let cleanUp;
const as = (token, path, body) => daemon.fetch(path, { method: body ? 'POST' : 'GET', body: body && JSON.stringify(body), headers: { Authorization: `Bearer ${token}`, ...(body ? { 'Content-Type': 'application/json' } : {}) } });

before(async () => {
  const { folder, remove } = scratchFolder();
  cleanUp = remove;
  const host = new URL(freshDatabase(NAME)).searchParams.get('host');
  const file = join(folder, 'pgbouncer.ini');
  // Two sessions for all of the daemon's threads.
  writeFileSync(file, `[databases]\n${NAME} = host=${host} dbname=${NAME} user=tpu_advisor\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = ${folder}\n`
    + 'auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n');
  const isRoot = process.getuid() === 0; // pgbouncer refuses root, and the database's socket is that of postgres
  if (isRoot) spawnSync('chown', ['-R', 'postgres', folder]);
  const command = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups', 'pgbouncer', file] : ['pgbouncer', file];
  pooler = spawn(command[0], command.slice(1), { stdio: ['ignore', 'ignore', 'ignore'], env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } });
  const url = `postgresql:///${NAME}?host=${folder}&port=6432&user=tpu_advisor`;
  const tokens = join(folder, 'tokens');
  writeFileSync(tokens, `all read,write,admin ${digest('all')}\n`);
  daemon = await startDaemon({ database: url, args: ['--tokens-file', tokens, '--tokens-database', '--store-workers', '8'] });
  for (const project of ['alpha', 'beta'])
    sql(NAME, `INSERT INTO tokens (name, sha256, scopes, project) VALUES ('${project}', '${digest(project)}', 'read,write', '${project}')`);
  await until('tokens count', async () => (await as('alpha', '/v1/runs')).status === 200 && (await as('beta', '/v1/runs')).status === 200);
});
after(async () => {
  await daemon?.stop();
  pooler?.kill('SIGTERM');
  cleanUp?.();
});

test('migrations ran, runs are stored and listed, and no project sees another however sessions are shared', async () => {
  const tokens = ['alpha', 'beta', 'all'];
  await Promise.all(Array.from({ length: 60 }, async (_, i) => {
    const token = tokens[i % 3];
    const project = token === 'all' ? 'gamma' : token;
    const response = await as(token, '/v1/estimate', estimateRequest({ store: true, project, label: `l${i}` }));
    assert.equal(response.status, 200, await response.text());
    const list = await (await as(token, '/v1/runs?limit=200')).json();
    const seen = new Set(list.runs.map((run) => run.project));
    if (token !== 'all') assert.deepEqual([...seen], [project], 'its own, and its own only');
  }));
  assert.equal((await (await as('all', '/v1/runs?limit=200')).json()).runs.length, 60);
  for (const token of ['alpha', 'beta']) assert.equal((await (await as(token, '/v1/runs?limit=200')).json()).runs.length, 20);
  assert.equal(sql(NAME, "SELECT count(*) FROM audit WHERE object = 'runs' AND principal = project AND project IN ('alpha', 'beta')"), '40', 'the audit names who wrote, not who came before');
  assert.equal(sql(NAME, "SELECT count(DISTINCT pid) <= 3 FROM pg_stat_activity WHERE datname = 'api_pooler' AND backend_type = 'client backend' AND pid <> pg_backend_pid()"), 't', 'few sessions are shared by many threads');
});

test('a sweep and a measurement go their way behind it too', async () => {
  const asked = await as('alpha', '/v1/sweeps', { kind: 'estimate', requests: Array.from({ length: 6 }, () => estimateRequest({ store: true, project: 'alpha' })) });
  const sweep = await asked.json();
  assert.equal(asked.status, 202, JSON.stringify(sweep));
  const done = await until('the sweep is over', async () => {
    const state = await (await as('alpha', `/v1/sweeps/${sweep.sweep_id}`)).json();
    return state.state === 'done' && state;
  }, 20000);
  assert.equal(done.done_count, 6);
  assert.equal((await as('beta', `/v1/sweeps/${sweep.sweep_id}`)).status, 404);
  const measured = await as('alpha', `/v1/runs/${done.items[0].run_id}/measurements`, { step_time_s: 3, source: 's', at: '2026-11-20' });
  assert.equal(measured.status, 201, await measured.text());
});
