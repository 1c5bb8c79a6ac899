// Tokens of the database, and projects as their boundary. A reader believes: a token is shown once and kept nowhere, a
// revoked one stops working, one with a project neither sees nor changes anything else, and every write says by whom.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { adviseRequest, estimateRequest, freshDatabase, join, problem, run, scratchFolder, sql, startDaemon, until, writeFileSync } from './daemon.mjs';
import { readFileSync } from 'node:fs';

let daemon, url;
const token = async (...args) => run(['token', ...args, '--database-url', url]);
const make = async (name, scope, ...more) => {
  const made = await token('create', name, '--scope', scope, ...more);
  assert.equal(made.status, 0, made.err);
  assert.match(made.out, /^tpa_[0-9a-f]{64}\n$/);
  return made.out.trim();
};
const as = (secret) => ({ Authorization: `Bearer ${secret}` });
const get = (secret, path) => daemon.fetch(path, { headers: as(secret) });
const put = (secret, path, body) => daemon.fetch(path, { method: 'PUT', body: JSON.stringify(body), headers: { ...as(secret), 'Content-Type': 'application/json' } });
const works = (secret) => until('the token works', async () => (await get(secret, '/v1/runs')).status === 200);
const store = async (secret, extra = {}) => daemon.post('/v1/estimate', estimateRequest({ store: true, ...extra }), as(secret));
const list = async (secret, query = '') => (await (await get(secret, `/v1/runs${query}`)).json()).runs.map((one) => one.run_id).sort();

before(async () => {
  url = freshDatabase('tokens');
  assert.equal((await run(['migrate', '--database-url', url])).status, 0);
  daemon = await startDaemon({ database: url, args: ['--tokens-database'] });
});
after(() => daemon.stop());

test('a token is made, listed without its secret, works within seconds, and is revoked', async () => {
  assert.equal((await get('tpa_none', '/v1/runs')).status, 401);
  const secret = await make('ci', 'read,write', '--expires', '90d');
  await works(secret);
  const listed = await token('list');
  assert.match(listed.out, /^ci +read,write +all +\d{4}-\d\d-\d\d +\d{4}-\d\d-\d\d +in force$/m);
  assert.ok(!listed.out.includes(secret.slice(4)) && !JSON.stringify(sql('tokens', 'SELECT * FROM tokens')).includes(secret.slice(4)));
  assert.match((await token('create', 'ci', '--scope', 'read')).err, /token of that name/);
  assert.equal((await token('revoke', 'ci')).status, 0);
  await until('it stops working', async () => (await get(secret, '/v1/runs')).status === 401, 5000);
  assert.match((await token('revoke', 'ci')).err, /no token 'ci' is in force/);
  assert.match((await token('list')).out, /^ci .* revoked$/m);
});

test('a token that ends says so, and mistakes are named', async () => {
  const secret = await make('short', 'read');
  await works(secret);
  sql('tokens', "UPDATE tokens SET expires_at = now() - interval '1 s' WHERE name = 'short'");
  await until('it has expired', async () => (await get(secret, '/v1/runs')).status === 401, 5000);
  assert.match((await problem(assert, await get(secret, '/v1/runs'), 401, 'unauthorized')).detail, /expired/);
  for (const [wrong, about] of [[['x'], /--scope/], [['x', '--scope', 'fly'], /--scope/], [['x', '--scope', 'read', '--expires', 'soon'], /--expires/],
    [['', '--scope', 'read'], /usage|name/], [['x', '--scope', 'read', '--project', ''], /project/]]) {
    const refused = await token('create', ...wrong);
    assert.equal(refused.status, 2, wrong.join(' '));
    assert.match(refused.err, about);
    assert.equal(refused.out, '');
  }
});

test('a token with a project sees and changes that project only', async () => {
  const [all, alpha, beta] = [await make('all', 'admin'), await make('alpha', 'admin', '--project', 'alpha'), await make('beta', 'write', '--project', 'beta')];
  await works(beta);
  const ids = {};
  for (const [name, secret, extra] of [['a1', alpha, {}], ['a2', all, { project: 'alpha', label: 'main' }], ['b', beta, { project: 'beta' }], ['none', all, {}]]) {
    const answer = await store(secret, extra);
    assert.equal(answer.status, 200, await answer.clone().text());
    ids[name] = (await answer.json()).run_id;
  }
  assert.deepEqual(await list(all), Object.values(ids).sort());
  assert.deepEqual(await list(alpha), [ids.a1, ids.a2].sort(), 'what names no project is of the token\'s');
  assert.deepEqual(await list(alpha, '?project=beta'), []);
  assert.deepEqual(await list(beta), [ids.b]);

  await problem(assert, await get(beta, `/v1/runs/${ids.a1}`), 404, 'not-found');
  await problem(assert, await get(beta, `/v1/compare?runs=${ids.b},${ids.a1}`), 404, 'not-found');
  await problem(assert, await get(beta, `/v1/runs/${ids.a2}/artifacts/maxtext.sh`), 404, 'not-found');
  assert.match((await problem(assert, await store(beta, { project: 'alpha' }), 403, 'forbidden')).errors[0].detail, /beta/);
  const later = await daemon.post('/v1/advise', adviseRequest({ project: 'alpha' }), { ...as(beta), Prefer: 'respond-async' });
  const [refused] = (await problem(assert, later, 403, 'forbidden')).errors;
  assert.deepEqual([refused.pointer, refused.detail], ['/project', "the token is for the project 'beta'"]);
  await problem(assert, await daemon.fetch(`/v1/runs/${ids.b}`, { method: 'DELETE', headers: as(alpha) }), 404, 'not-found');
  assert.ok([403, 404].includes((await put(beta, '/v1/baselines/alpha/main', { run_id: ids.a2 })).status));
  assert.equal((await put(alpha, '/v1/baselines/alpha/main', { run_id: ids.a2 })).status, 201);
  assert.equal((await get(beta, '/v1/baselines/alpha/main')).status, 404);
  assert.equal((await (await get(beta, '/v1/baselines')).json()).baselines.length, 0);
  const measured = { step_time_s: 5.5, source: 'nightly', at: '2026-11-21T05:00:00Z' };
  assert.equal((await daemon.post(`/v1/runs/${ids.a1}/measurements`, measured, as(beta))).status, 404);
  assert.equal((await daemon.post(`/v1/runs/${ids.a1}/measurements`, measured, as(alpha))).status, 201);
  assert.equal((await (await get(beta, '/v1/accuracy')).json()).rows.length, 0);
  assert.equal((await (await get(alpha, '/v1/accuracy')).json()).rows.length, 1);
  const check = { baseline: { project: 'alpha', label: 'main' }, candidate: estimateRequest() };
  assert.equal((await daemon.post('/v1/checks', check, as(beta))).status, 404);
  assert.equal((await daemon.post('/v1/checks', check, as(alpha))).status, 200);
  assert.deepEqual(await list(all), Object.values(ids).sort(), 'and a connection that served one of them serves all again');
});

test('a project\'s pinned baseline serves its tokens, also when its run is of no project', async () => {
  const [owner, pinned, stranger] = [await make('owner', 'admin'), await make('pinned', 'write', '--project', 'pinned'), await make('stranger', 'write', '--project', 'stranger')];
  await works(stranger);
  const { run_id: id } = await (await store(owner)).json();
  assert.equal((await put(owner, '/v1/baselines/pinned/main', { run_id: id })).status, 201);
  const check = (secret, baseline) => daemon.post('/v1/checks', { baseline, candidate: estimateRequest() }, as(secret));
  const named = { project: 'pinned', label: 'main' };
  const answer = await check(pinned, named);
  assert.equal(answer.status, 200, await answer.clone().text());
  const verdict = await answer.json();
  assert.deepEqual([verdict.verdict, verdict.baseline.run_id], ['pass', id]);
  assert.deepEqual(await list(pinned), [], 'the run itself stays unseen, and is not theirs');
  await problem(assert, await check(pinned, { run_id: id }), 404, 'not-found');
  await problem(assert, await check(stranger, named), 404, 'not-found');
  assert.equal((await (await store(pinned)).json()).stored ?? true, true);
  assert.equal((await list(pinned)).length, 1, 'what it stores next is of its project again');
});

test('a sweep of a token that was revoked stores nothing more in its name', async () => {
  const [secret, all] = [await make('gone', 'write', '--project', 'gone'), await make('watcher', 'read')];
  await works(secret);
  await works(all);
  const requests = Array.from({ length: 300 }, (_, i) => adviseRequest({ store: true, label: `${i}` }));
  const made = await daemon.post('/v1/sweeps', { kind: 'advise', requests }, as(secret));
  assert.equal(made.status, 202, await made.clone().text());
  const { sweep_id } = await made.json();
  sql('tokens', "UPDATE tokens SET revoked_at = now() WHERE name = 'gone'");
  const state = async () => (await get(all, `/v1/sweeps/${sweep_id}?limit=1`)).json();
  await until('the sweep has ended', async () => (await state()).state === 'done', 20000);
  const [ended, count] = [await state(), (await list(all, '?project=gone&limit=200')).length];
  assert.ok(ended.failed_count > 0 && count === ended.done_count, JSON.stringify({ ...ended, items: [], count }));
  const failed = (await (await get(all, `/v1/sweeps/${sweep_id}?state=failed&limit=1`)).json()).items[0];
  assert.deepEqual([failed.problem.status, failed.problem.errors[0].code], [401, 'unauthorized']);
  assert.match(failed.problem.detail, /the token 'gone' .*revoked/);
});

test('a sweep of a token that has left the token file stores nothing more, one of a token that stays does', async () => {
  const { folder, remove } = scratchFolder();
  const [file, database] = [join(folder, 'tokens'), freshDatabase('tokens_file')];
  const secrets = {};
  for (const [name, ...more] of [['stays'], ['leaves', '--project', 'beta'], ['lapses']]) secrets[name] = (await run(['token', 'create', name, '--scope', 'write', ...more, '--tokens-file', file])).out.trim();
  const other = await startDaemon({ database, args: ['--tokens-file', file] });
  sql('tokens_file', `INSERT INTO tokens (name, sha256, scopes, revoked_at) VALUES ('stays', '${'0'.repeat(64)}', 'write', now())`);
  const sweep = async (name, count) => {
    const requests = Array.from({ length: count }, (_, i) => adviseRequest({ store: true, label: `${i}` }));
    const made = await other.post('/v1/sweeps', { kind: 'advise', requests }, as(secrets[name]));
    assert.equal(made.status, 202, await made.clone().text());
    return (await made.json()).sweep_id;
  };
  const [leaves, lapses] = [await sweep('leaves', 300), await sweep('lapses', 300)];
  const kept = readFileSync(file, 'utf8').split('\n').filter((line) => !line.startsWith('leaves')).map((line) => (line.startsWith('lapses') ? `${line} expires=1` : line));
  writeFileSync(file, kept.join('\n'));
  other.child.kill('SIGHUP');
  const stays = await sweep('stays', 3);
  const state = async (id, query) => (await other.fetch(`/v1/sweeps/${id}?limit=1${query}`, { headers: as(secrets.stays) })).json();
  for (const id of [leaves, lapses, stays]) await until('the sweep has ended', async () => (await state(id, '')).state === 'done');
  const ended = await state(stays, '');
  assert.deepEqual([ended.done_count, ended.failed_count], [3, 0], 'also where the database has had a token of that name');
  for (const [id, name] of [[leaves, 'leaves'], [lapses, 'lapses']]) {
    const { done_count: done, failed_count: failed } = await state(id, '');
    assert.ok(failed > 0, name);
    assert.equal(sql('tokens_file', `SELECT count(*) FROM audit WHERE object = 'runs' AND principal = '${name}'`), `${done}`, name);
    assert.equal((await state(id, '&state=failed')).items[0].problem.status, 401);
  }
  await other.stop();
  remove();
});

test('every write leaves who did it, and that cannot be changed', async () => {
  const secret = await make('auditor', 'admin');
  await works(secret);
  const { run_id: id } = await (await store(secret, { project: 'gamma' })).json();
  assert.equal((await daemon.fetch(`/v1/runs/${id}`, { method: 'DELETE', headers: as(secret) })).status, 204);
  assert.equal(sql('tokens', `SELECT principal, action, object, project FROM audit WHERE object_id = '${id}' ORDER BY id`), 'auditor|insert|runs|gamma\nauditor|delete|runs|gamma');
  const audited = (object) => sql('tokens', `SELECT action || ' ' || object FROM audit WHERE principal = 'auditor' AND object_id = '${object}' ORDER BY id`).split('\n');
  const post = async (path, body) => (await daemon.post(path, body, as(secret))).json();
  const { sweep_id: sweep } = await post('/v1/sweeps', { kind: 'advise', requests: Array.from({ length: 20 }, () => adviseRequest()) });
  assert.equal((await daemon.fetch(`/v1/sweeps/${sweep}`, { method: 'DELETE', headers: as(secret) })).status, 204);
  assert.deepEqual(audited(sweep), ['insert sweeps', 'update sweeps'], 'also who cancelled it');
  const { run_id: run_ } = await (await store(secret, { project: 'gamma' })).json();
  const { verification_id: verification } = await post(`/v1/runs/${run_}/verifications`, {});
  assert.equal((await daemon.fetch(`/v1/verifications/${verification}`, { method: 'DELETE', headers: as(secret) })).status, 204);
  assert.deepEqual(audited(verification), ['insert verifications', 'update verification_plans']);
  assert.match(sql('tokens', "SELECT string_agg(DISTINCT object, ' ' ORDER BY object) FROM audit"), /^baselines (checks )?measurements runs sweeps tokens verification_plans verifications$/);
  assert.throws(() => sql('tokens', 'DELETE FROM audit'), /only added to/);
  assert.throws(() => sql('tokens', "UPDATE audit SET principal = ''"), /only added to/);
});

test('a token can be a line of a file, with its project', async () => {
  const { folder, remove } = scratchFolder();
  const file = join(folder, 'tokens');
  const made = await run(['token', 'create', 'ci', '--scope', 'write', '--project', 'delta', '--tokens-file', file]);
  assert.equal(made.status, 0, made.err);
  assert.match(readFileSync(file, 'utf8'), /^ci write [0-9a-f]{64} project=delta\n$/);
  const other = await startDaemon({ database: url, args: ['--tokens-file', file] });
  const answer = await other.post('/v1/estimate', estimateRequest({ store: true }), as(made.out.trim()));
  const { run_id: id } = await answer.json();
  assert.equal(sql('tokens', `SELECT project FROM runs WHERE id = '${id}'`), 'delta');
  const runs = await (await other.fetch('/v1/runs', { headers: as(made.out.trim()) })).json();
  assert.deepEqual(runs.runs.map((one) => one.run_id), [id]);
  await other.stop();
  remove();
});
