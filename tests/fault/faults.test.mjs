// The daemon's conduct when clients, the database or its own end get in the way.
import test from 'node:test';
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { startDaemon, adviseRequest, costly, estimateRequest, freshDatabase, problem, raw, root, join, sleep, sql, until } from '../api/daemon.mjs';

// Not synchronously: a client that sleeps for seconds would reuse connections that the daemon has closed by then.
const cluster = (command) => promisify(execFile)(join(root, 'sql/dev-cluster.sh'), [command]);
const readyz = async (daemon) => (await daemon.fetch('/readyz')).json();

test('SIGTERM: not ready, no new connections, requests under way are answered, exit status 0', async () => {
  const daemon = await startDaemon({ args: ['--cache-mib', '0', '--workers', '1', '--drain-delay', '3', '--queue-wait', '60'] });
  const before = connect(daemon.port, '127.0.0.1');
  await new Promise((resolve) => { before.once('connect', resolve); });
  let answered = 0;
  const answers = Array.from({ length: 8 }, async () => { const { status } = await daemon.post('/v1/advise', costly(1)); answered++; return status; });
  await until('all have come', async () => { const { running, waiting } = await (await daemon.fetch('/readyz')).json(); return running + waiting + answered === 8; });
  daemon.child.kill('SIGTERM');
  await until('not ready', async () => (await daemon.fetch('/readyz')).status === 503);
  assert.deepEqual(await Promise.all(answers), Array(8).fill(200));
  assert.equal(await daemon.exit, 0, daemon.raw().slice(-1000));
  await assert.rejects(daemon.fetch('/livez'));
  before.destroy();
});

test('SIGTERM with a deadline of zero cuts requests off with 503 instead of hanging', async () => {
  const daemon = await startDaemon({ args: ['--cache-mib', '0', '--workers', '1', '--drain-deadline', '0'] });
  const answers = Array.from({ length: 20 }, async () => (await daemon.post('/v1/advise', costly(64))).status);
  await until('work', async () => (await (await daemon.fetch('/readyz')).json()).waiting > 5);
  daemon.child.kill('SIGTERM');
  const statuses = await Promise.all(answers);
  assert.ok(statuses.includes(503), String(statuses));
  assert.ok(statuses.every((status) => [200, 503].includes(status)));
  assert.equal(await daemon.exit, 1);
});

test('a full queue answers 503 with Retry-After at once, and what was taken is answered', async () => {
  const daemon = await startDaemon({ args: ['--cache-mib', '0', '--workers', '1', '--queue', '2'] });
  const responses = await Promise.all(Array.from({ length: 20 }, () => daemon.post('/v1/advise', costly(2))));
  const busy = responses.filter((response) => response.status === 503);
  assert.ok(busy.length > 0 && busy.length < 20, `${busy.length} of 20 refused`);
  assert.ok(Number(busy[0].headers.get('retry-after')) > 0);
  await problem(assert, busy[0], 503, 'busy');
  assert.equal(responses.filter((response) => response.status === 200).length, 20 - busy.length);
  await daemon.stop();
});

test('a request that waits longer than the deadline gets 503, and the daemon goes on', async () => {
  const daemon = await startDaemon({ args: ['--cache-mib', '0', '--workers', '1', '--deadline', '1', '--queue-wait', '60', '--queue', '1000'] });
  // more than one worker does in a second on any computer
  const responses = await Promise.all(Array.from({ length: 60 }, () => daemon.post('/v1/advise', costly(2))));
  const late = responses.filter((response) => response.status === 503);
  assert.ok(late.length > 0, 'sixty such searches take longer than a second on one worker');
  await problem(assert, late[0], 503, 'deadline');
  await until('an answer', async () => (await daemon.post('/v1/estimate', estimateRequest())).status === 200);
  await daemon.stop();
});

test('clients that send slowly are closed, and nobody else notices', async () => {
  const daemon = await startDaemon({ args: ['--request-timeout', '1'] });
  const slow = Array.from({ length: 60 }, (_, index) => {
    const socket = connect(daemon.port, '127.0.0.1');
    const state = { closed: false };
    socket.on('error', () => {});
    socket.on('close', () => { state.closed = true; });
    socket.write(index % 2 ? 'GET /livez HTTP/1.1\r\nHost: x\r\n' : 'POST /v1/estimate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{');
    state.timer = setInterval(() => { if (!state.closed) socket.write(index % 2 ? 'X: y\r\n' : ' '); }, 200);
    return state;
  });
  const waits = [];
  await until('all are closed', async () => {
    const begin = performance.now();
    assert.equal((await daemon.fetch('/livez')).status, 200);
    waits.push(performance.now() - begin);
    await sleep(80);
    assert.equal(daemon.child.exitCode, null);
    return slow.every((state) => state.closed);
  });
  slow.forEach((state) => clearInterval(state.timer));
  const usual = waits.sort((a, b) => a - b)[waits.length >> 1];
  assert.ok(usual < 500, `service goes on: half of its answers took ${usual} ms and less, a slow client a second`);
  await daemon.stop();
});

test('clients that vanish in the middle leave nothing behind', async () => {
  const daemon = await startDaemon({ args: ['--cache-mib', '0', '--workers', '1'] });
  const body = JSON.stringify(adviseRequest());
  for (let i = 0; i < 30; i++) {
    const socket = connect(daemon.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(`POST /v1/advise HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${i % 3 ? body : body.slice(0, 20)}`);
    setTimeout(() => socket.resetAndDestroy(), 5 + i);
  }
  await until('no connection but ours', async () => /connections_open [12]\n/.test(await (await daemon.fetch('/metrics')).text()), 20000);
  await daemon.stop();
});

test('a killed backend costs nothing: the next request gets a new connection', async () => {
  const daemon = await startDaemon({ database: freshDatabase('fault_backend') });
  const store = async () => (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).json();
  for (let round = 0; round < 4; round++) {
    assert.equal((await store()).stored, true);
    sql('postgres', 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = \'fault_backend\'');
    await sleep(50);
  }
  await until('the runs are read', async () => (await daemon.fetch('/v1/runs')).status === 200, 5000); // the last kill
  assert.equal((await (await daemon.fetch('/v1/runs')).json()).runs.length, 4);
  await daemon.stop();
});

test('a database that is killed and comes back: answers go on, no stored run is lost', async () => {
  const daemon = await startDaemon({ database: freshDatabase('fault_cluster') });
  const store = async () => (await daemon.post('/v1/estimate', estimateRequest({ store: 'try' }))).json();
  const acknowledged = [];
  const note = (answer) => { if (answer.stored) acknowledged.push(answer.run_id); return answer; };
  for (let round = 0; round < 3; round++) {
    await until('stored', async () => note(await store()).stored);
    const during = Array.from({ length: 10 }, async () => note(await store()));
    await cluster('kill');
    await Promise.all(during);
    await until('noticed', async () => (await (await daemon.fetch('/readyz')).json()).database === 'away');
    // A backend may outlive its killed parent for a moment, and then still commits.
    const away = await until('nothing is stored', async () => { const answer = note(await store()); return answer.stored ? null : answer; });
    assert.ok(away.step_time_s > 0);
    assert.equal((await daemon.fetch('/readyz')).status, 200);
    await problem(assert, await daemon.fetch('/v1/runs'), 503, 'store-unavailable');
    await cluster('start');
    await until('back', async () => (await daemon.fetch('/readyz?require=database')).status === 200, 15000);
  }
  for (const id of acknowledged) assert.equal((await daemon.fetch(`/v1/runs/${id}`)).status, 200, id);
  assert.ok(acknowledged.length >= 3);
  await daemon.stop();
});

test('a daemon that starts before its database stores once it is there', async () => {
  const database = freshDatabase('fault_late');
  await cluster('stop');
  const daemon = await startDaemon({ database, waitFor: 'listening' });
  try {
    const answer = await (await daemon.post('/v1/estimate', estimateRequest({ store: 'try' }))).json();
    assert.equal(answer.stored, false);
  } finally {
    await cluster('start');
  }
  await until('stored', async () => (await (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).json()).stored, 15000);
  await daemon.stop();
});

test('who listens for events is told that the database is away, and hears the rest when it is back', async () => {
  const daemon = await startDaemon({ database: freshDatabase('fault_events') });
  const { run_id: id } = await (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).json();
  const verification = (await daemon.post(`/v1/runs/${id}/verifications`, { rank: 1, mode: 'assign' })).headers.get('location');
  const requests = [1, 2, 3].map((steps) => estimateRequest({ config: { ...estimateRequest().config, gradient_accumulation_steps: steps } }));
  const sweep = (await daemon.post('/v1/sweeps', { kind: 'estimate', requests })).headers.get('location');
  await until('all is told', async () => (await (await daemon.fetch(sweep)).json()).state === 'done');
  const listen = (path, last) => daemon.fetch(`${path}/events`, { headers: { Accept: 'text/event-stream', 'Last-Event-ID': last } });
  await cluster('kill');
  await until('noticed', async () => (await readyz(daemon)).database === 'away');
  for (const [path, last] of [[sweep, '1'], [sweep, 'end'], [verification, '0']]) {
    const answer = await listen(path, last); // a browser gives up for good on any other status
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'text/event-stream']);
    const [retry, event, data, ...rest] = (await answer.text()).split('\n');
    assert.deepEqual([retry, event, rest], ['retry: 2000', 'event: away', ['', '']], 'no id: the last one stays');
    const problem_ = JSON.parse(data.slice('data: '.length));
    assert.deepEqual([problem_.status, problem_.detail], [503, 'the database cannot be reached']);
  }
  await cluster('start');
  await until('back', async () => (await daemon.fetch('/readyz?require=database')).status === 200, 15000);
  assert.deepEqual((await (await listen(sweep, '1')).text()).match(/^id: .*$/gm), ['id: 2', 'id: 3', 'id: end']);
  await problem(assert, await daemon.fetch('/v1/sweeps/00000000-0000-7000-8000-000000000000/events'), 404, 'not-found');
  await daemon.stop();
});

test('a read-only database is said to be one: 503, not a bug, and what is stored can be read', async () => {
  const database = freshDatabase('read_only');
  const daemon = await startDaemon({ database });
  const { run_id: id } = await (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).json();
  sql('postgres', 'ALTER DATABASE read_only SET default_transaction_read_only = on');
  sql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'read_only'");
  await until('it is said by /readyz', async () => (await readyz(daemon)).database === 'read-only');
  for (const refused of [await daemon.post('/v1/estimate', estimateRequest({ store: true })),
    await daemon.fetch(`/v1/runs/${id}`, { method: 'DELETE' })]) {
    assert.ok(Number(refused.headers.get('retry-after')) > 0);
    assert.match((await problem(assert, refused, 503, 'store-unavailable')).detail, /read-only/);
  }
  assert.equal((await readyz(daemon)).status, 'degraded');
  assert.equal((await daemon.fetch('/readyz?require=database')).status, 503);
  assert.match(await (await daemon.fetch('/metrics')).text(), /tpu_advisor_database_up 1\n[^]*tpu_advisor_database_read_only 1\n/);
  assert.equal((await daemon.fetch(`/v1/runs/${id}`)).status, 200);
  const later = await daemon.post('/v1/advise', adviseRequest(), { Prefer: 'respond-async' });
  assert.equal(later.status, 200, 'a job cannot be kept: the answer comes at once');
  sql('postgres', 'ALTER DATABASE read_only RESET default_transaction_read_only');
  sql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'read_only'");
  await until('it is up again', async () => (await readyz(daemon)).status === 'ready');
  await until('it stores again', async () => (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).status === 200);
  await daemon.stop();
});

test('a run that locks wait for is not stored, in bounded time', async () => {
  const daemon = await startDaemon({ database: freshDatabase('fault_lock') });
  const holder = spawn('psql', ['-Xq', process.env.CLUSTER_URL.replace('/tpu_advisor?', '/fault_lock?')], { stdio: ['pipe', 'ignore', 'ignore'] });
  holder.stdin.write('BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE;\n');
  await until('locked', () => sql('fault_lock', "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'runs'::regclass") !== '0');
  const begin = Date.now();
  await problem(assert, await daemon.post('/v1/estimate', estimateRequest({ store: true })), 503, 'store-unavailable');
  assert.ok(Date.now() - begin < 4800, 'the lock timeout is 2 s, that of a statement 5 s');
  holder.stdin.end('ROLLBACK;\n');
  await until('stored again', async () => (await (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).json()).stored);
  await daemon.stop();
});

// The server and all its processes: they answer nothing, and no connection breaks.
const signal = (name) => {
  const server = Number(readFileSync(join(process.env.DEV_CLUSTER_DIR, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
  const backends = spawnSync('ps', ['-o', 'pid=', '--ppid', String(server)], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean);
  for (const pid of [server, ...backends.map(Number)]) process.kill(pid, name);
};

test('trouble of the database that passes is a 503 to try again, and ends no item of a sweep', async () => {
  const daemon = await startDaemon({ database: freshDatabase('fault_passing') });
  const refuse = (state) => sql('fault_passing', `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '${state}'; END $$; CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION refuse()`);
  const request = estimateRequest({ store: true });
  for (const [state, said] of [['40P01', /taken back/], ['40001', /taken back/], ['53100', /out of resources/], ['57P01', /told to stop/], ['58030', /read or write its files/]]) {
    refuse(state);
    const refused = await daemon.post('/v1/estimate', request);
    assert.ok(Number(refused.headers.get('retry-after')) > 0, state);
    assert.match((await problem(assert, refused, 503, 'store-unavailable')).detail, said);
  }
  const { sweep_id: id } = await (await daemon.post('/v1/sweeps', { kind: 'estimate', requests: [request] })).json();
  await until('the item was tried', () => daemon.log.some((line) => line.msg === 'sweep items left for later'));
  sql('fault_passing', 'DROP TRIGGER refuse ON runs');
  const sweep = await until('the sweep has ended', async () => { const now = await (await daemon.fetch(`/v1/sweeps/${id}`)).json(); return now.state === 'done' && now; });
  assert.deepEqual([sweep.done_count, sweep.failed_count], [1, 0]);
  await daemon.stop();
});

test('a database that stops answering slows nothing but what needs it', async () => {
  const daemon = await startDaemon({ database: freshDatabase('fault_stopped'), args: ['--store-workers', '2', '--queue', '8'] });
  const stored = await (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).json();
  signal('SIGSTOP');
  try {
    const begin = Date.now();
    const waiting = Array.from({ length: 20 }, () => daemon.post('/v1/estimate', estimateRequest({ store: true })));
    await sleep(200);
    const trying = daemon.post('/v1/estimate', estimateRequest({ store: 'try' }));
    const listening = Array.from({ length: 3 }, () => daemon.fetch(`/v1/sweeps/${stored.run_id}/events`));
    const waits = [];
    for (let i = 0; i < 20; i++) {
      const one = performance.now();
      assert.equal((await daemon.post('/v1/estimate', estimateRequest())).status, 200);
      waits.push(performance.now() - one);
    }
    const longest = Math.max(...waits);
    assert.ok(longest < 3000, `${longest} ms: shorter than the wait for a database`);
    const ready = await (await daemon.fetch('/readyz')).json();
    assert.ok(ready.store_waiting > 0);
    for (const response of await Promise.all(waiting)) assert.equal(response.status, 503, await response.text());
    assert.equal((await (await trying).json()).stored, false);
    for (const response of await Promise.all(listening)) // no room, no worker in time or no answer: an event in any case
      assert.match(`${response.status} ${await response.text()}`, /^200 retry: 2000\nevent: away\ndata: \{.*"status":503,.*\}\n\n$/);
    assert.ok(Date.now() - begin < 25000, `${Date.now() - begin} ms`);
    await until('noticed', async () => (await (await daemon.fetch('/readyz')).json()).database === 'away');
    const fast = Date.now();
    await problem(assert, await daemon.fetch(`/v1/runs/${stored.run_id}`), 503, 'store-unavailable');
    assert.ok(Date.now() - fast < 3000);
    const metrics = await (await daemon.fetch('/metrics')).text();
    assert.ok(Number(/db_errors_total\{class="timeout"\} (\d+)/.exec(metrics)[1]) > 0);
  } finally {
    signal('SIGCONT');
  }
  await until('back', async () => (await daemon.fetch(`/v1/runs/${stored.run_id}`)).status === 200);
  await daemon.stop();
});

test('what can do without a database that stopped answering does not wait behind what cannot', async () => {
  const daemon = await startDaemon({ database: freshDatabase('fault_behind') });
  signal('SIGSTOP');
  let waiting = [];
  try {
    waiting = Array.from({ length: 12 }, () => daemon.post('/v1/estimate', estimateRequest({ store: true })));
    await until('they wait', async () => (await (await daemon.fetch('/readyz')).json()).store_waiting > 0);
    const trying = Array.from({ length: 6 }, () => daemon.post('/v1/estimate', estimateRequest({ store: 'try' })));
    const looking = Array.from({ length: 6 }, (_, i) => daemon.post('/v1/kernels/tune',
      { chip: 'v6e', kernel: 'splash_fwd', shape: { q_heads: 8, kv_heads: 8, q_len: 4096 * (i + 1), head_dim_qk: 128 } }));
    for (const answer of await Promise.all(looking)) assert.equal(answer.status, 200, await answer.text());
    for (const answer of await Promise.all(trying)) {
      const text = await answer.text();
      assert.deepEqual([answer.status, JSON.parse(text).stored], [200, false], text);
    }
  } finally {
    signal('SIGCONT');
  }
  await Promise.all(waiting);
  await daemon.stop();
});

test('half a request and a hang-up are no request', async () => {
  const daemon = await startDaemon();
  assert.deepEqual((await raw(daemon.port, 'GET /livez HT', { first: 100 })).statuses, []);
  await daemon.stop();
});
