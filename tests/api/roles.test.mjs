// The daemon as docker/compose.yaml runs it: under a role that reads and writes rows and owns nothing. The commands of the
// stack's own services make the secrets and the role here, on the tests' cluster.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { estimateRequest, freshDatabase, join, root, run, scratchFolder, sql, startDaemon, until } from './daemon.mjs';

const DATABASE = 'api_roles';
const { parse } = createRequire(import.meta.url)('yaml');
const { services } = parse(readFileSync(join(root, 'docker/compose.yaml'), 'utf8'), { merge: true });
const { folder, remove } = scratchFolder();
const owner = freshDatabase(DATABASE);
const app = owner.replace('user=tpu_advisor', 'user=tpu_advisor_app');
const secret = (name) => readFileSync(join(folder, name), 'utf8').trim();
let daemon, admin;

function runService(name, env = {}) {
  const script = services[name].command[0].replaceAll('$$', '$').replaceAll('/secrets', folder).replaceAll('/roles.sql', join(root, 'sql/roles.sql'));
  execFileSync('/bin/sh', ['-euc', `chown() { echo "$@" >> '${folder}/owners'; }\n${script}`], { env: { ...process.env, ...env }, stdio: 'pipe' });
}

before(async () => {
  const url = new URL(owner.replace('postgresql:///', 'postgresql://local/'));
  const place = { PGHOST: url.searchParams.get('host'), PGPORT: url.searchParams.get('port') ?? '', PGUSER: 'tpu_advisor', PGDATABASE: DATABASE };
  runService('secrets');
  assert.equal((await run(['migrate', '--database-url', owner])).status, 0);
  runService('roles', place);
  runService('roles', place); // every `up` does it again
  daemon = await startDaemon({ database: app, args: ['--auto-migrate=false', '--tokens-database'] });
});
after(async () => { await daemon?.stop(); remove(); });

test('the owner and the daemon have a password each, and the daemon knows its own only', () => {
  assert.notEqual(secret('app_password'), secret('database_password'));
  assert.match(secret('app_password'), /^[0-9a-f]{48}$/);
  assert.equal(secret('database_url'), `postgresql://tpu_advisor_app:${secret('app_password')}@database/tpu_advisor`);
  assert.equal(secret('migrate_url'), `postgresql://tpu_advisor:${secret('database_password')}@database/tpu_advisor`);
  assert.deepEqual(secret('owners').split('\n'), ['10002:10002 new', '10001:10001 new']);
  assert.equal(services.migrate.user, '10002:10002');
  for (const name of ['advisor', 'verifier']) {
    assert.equal(services[name].environment.TPU_ADVISOR_DATABASE_URL_FILE, '/secrets/database_url');
    assert.equal(services[name].environment.TPU_ADVISOR_AUTO_MIGRATE, 'false');
    assert.equal(services[name].depends_on.roles.condition, 'service_completed_successfully');
  }
  const before = ['app_password', 'database_password'].map(secret);
  runService('secrets');
  assert.deepEqual(['app_password', 'database_password'].map(secret), before, 'a second start keeps them');
  assert.equal(sql(DATABASE, "SELECT rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid WHERE rolname = 'tpu_advisor_app'"), 't');
});

test('the role changes no table, no trigger, no other role, and is above no rule', () => {
  const refused = (statement) => assert.throws(() => execFileSync('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', app, '-c', statement], { stdio: 'pipe' }), /permission denied|must be owner|must be superuser/, statement);
  for (const statement of ['CREATE TABLE x ()', 'CREATE TEMPORARY TABLE x ()', 'DROP TABLE runs', 'ALTER TABLE runs ADD COLUMN x text', 'ALTER TABLE runs DISABLE TRIGGER ALL',
    'ALTER TABLE runs DISABLE ROW LEVEL SECURITY', 'TRUNCATE runs CASCADE', 'CREATE ROLE x', "COPY runs TO '/tmp/x'", 'CREATE SCHEMA x']) refused(statement);
  assert.equal(sql(DATABASE, "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls FROM pg_roles WHERE rolname = 'tpu_advisor_app'"), 'f');
});

test('under it the daemon does all that it does: runs, tags, baselines, checks, measurements, sweeps, calibrations, tokens', async () => {
  const made = await run(['token', 'create', 'ci', '--scope', 'read,write,admin', '--database-url', app]);
  assert.equal(made.status, 0, made.err);
  const token = admin = made.out.trim();
  const known = async () => (await daemon.fetch('/v1/runs', { headers: { Authorization: `Bearer ${token}` } })).status === 200;
  await until('the token is known', known);
  const ask = async (method, path, body, type = 'application/json') => {
    const response = await daemon.fetch(path, { method, body: body && JSON.stringify(body), headers: { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': type }) } });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text.slice(0, 600)}`);
    return text ? JSON.parse(text) : null;
  };
  const request = estimateRequest({ store: true, project: 'p', tags: ['a'] });
  const { run_id: id } = await ask('POST', '/v1/estimate', request);
  await ask('PATCH', `/v1/runs/${id}`, { tags: ['b'] });
  await ask('PUT', '/v1/baselines/p/main', { run_id: id });
  assert.equal((await ask('POST', '/v1/checks', { baseline: { project: 'p', label: 'main' }, candidate: request, limits: { step_time_increase_frac: 0 } })).verdict, 'pass');
  await ask('POST', `/v1/runs/${id}/measurements`, { step_time_s: 1, source: 's', at: '2026-11-20T00:00:00Z' });
  await ask('POST', `/v1/runs/${id}/reevaluate`);
  await ask('POST', '/v1/calibrations', { project: 'p' });
  await ask('POST', `/v1/runs/${id}/verifications`, { rank: 1 });
  await ask('POST', '/v1/sweeps', { kind: 'estimate', requests: [estimateRequest()] });
  await ask('GET', '/v1/runs?q=p&sort=step_time_s');
  await ask('GET', '/v1/accuracy');
  const other = await ask('POST', '/v1/estimate', estimateRequest({ store: true, project: 'p', label: 'gone' }));
  await ask('DELETE', `/v1/runs/${other.run_id}`);
  await ask('POST', `/v1/runs/${other.run_id}/restore`);
  assert.notEqual(sql(DATABASE, 'SELECT count(*) FROM audit'), '0');
});

test('a right that the role lacks is said, and is no bug of the program', async () => {
  sql(DATABASE, 'REVOKE INSERT ON runs FROM tpu_advisor_app, tpu_advisor_project');
  const refused = await (await daemon.post('/v1/estimate', estimateRequest({ store: true }), { Authorization: `Bearer ${admin}` })).json();
  sql(DATABASE, 'GRANT INSERT ON runs TO tpu_advisor_app, tpu_advisor_project');
  assert.equal(refused.status, 503, JSON.stringify(refused));
  assert.match(refused.detail, /permission denied for table runs/);
  assert.match(refused.errors[0].hint, /roles\.sql/);
});
