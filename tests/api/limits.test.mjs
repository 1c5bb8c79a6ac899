// Who asks too often, tries tokens or reads too slowly; and what SIGHUP reads again. A reader believes: a limit is said with
// the time after which it is over, a right token is never shut out, and a reload changes what it says and nothing else.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { readFileSync, renameSync } from 'node:fs';
import { adviseRequest, estimateRequest, join, problem, scratchFolder, sleep, startDaemon, until, writeFileSync } from './daemon.mjs';

const digest = (token) => createHash('sha256').update(token).digest('hex');
const as = (daemon, token, path = '/v1/catalog/chips') => daemon.fetch(path, { headers: { Authorization: `Bearer ${token}` } });
const hangUp = (daemon) => daemon.child.kill('SIGHUP');
const reloaded = (daemon, count) => until(`${count} reloads`, () => daemon.log.filter((line) => line.msg === 'reloaded').length >= count);

test('beyond loopback one address leaves connections to others; on loopback, or when told, it may have them all', async () => {
  const opened = async (expected, ...args) => {
    const daemon = await startDaemon({ args: ['--connections', '40', ...args], waitFor: 'listening' });
    const sockets = Array.from({ length: 36 }, () => connect(daemon.port, '127.0.0.1'));
    let closed = 0;
    for (const socket of sockets) socket.on('error', () => {}).on('close', () => { closed++; });
    await until('some are closed', () => closed >= 36 - expected);
    await sleep(1000); // for one more to be closed
    const open = 36 - closed;
    for (const socket of sockets) socket.destroy();
    await daemon.stop();
    return open;
  };
  const beyond = ['--listen', '0.0.0.0:0', '--insecure'];
  assert.equal(await opened(30, ...beyond), 30);
  assert.equal(await opened(36, ...beyond, '--connections-per-ip', '0'), 36);
  assert.equal(await opened(36), 36);
});

// Asks until it is refused. By then the burst is used up, and of what the rate gives anew in that time no more than there is.
async function spend(ask, { burst, perSecond, passes = 200, since = performance.now(), before = 0 }) {
  let answer;
  let count = before;
  while ((answer = await ask(count)).status === passes) {
    await answer.text();
    const most = burst + (perSecond * (performance.now() - since)) / 1000 + 1;
    assert.ok(++count <= most, `${count} passed, ${most} at most`);
  }
  assert.equal(answer.status, 429);
  assert.ok(count >= burst, `${count} passed`);
  return { count, answer, since };
}

test('who tries wrong tokens is told to wait; a right token passes all the while', async () => {
  const { folder, remove } = scratchFolder();
  writeFileSync(join(folder, 'tokens'), `ci read ${digest('right')}\n`);
  const daemon = await startDaemon({ args: ['--tokens-file', join(folder, 'tokens')] });
  const { answer } = await spend((i) => as(daemon, `wrong-${i}`), { burst: 10, perSecond: 0.2, passes: 401 });
  const wait = Number(answer.headers.get('retry-after'));
  assert.ok(wait >= 1 && wait <= 5, `Retry-After ${wait}`);
  await problem(assert, answer, 429, 'too-many-requests');
  for (let i = 0; i < 20; i++) assert.equal((await as(daemon, 'right')).status, 200);
  await until('it is counted', async () => /rejected_total\{reason="rate"\} 1\n/.test(await (await daemon.fetch('/metrics')).text()));
  await daemon.stop();
  remove();
});

test('an address has a rate and a burst, and probes are not counted', async () => {
  const daemon = await startDaemon({ args: ['--address-rate', '2'] });
  const ask = () => daemon.fetch('/v1/catalog/chips');
  const rate = { burst: 10, perSecond: 2 };
  const { count, since } = await spend(ask, rate);
  for (let i = 0; i < 20; i++) assert.equal((await daemon.fetch('/readyz')).status, 200);
  await sleep(600);
  const more = await spend(ask, { ...rate, since, before: count });
  assert.ok(more.count > count, 'one more every half second');
  await daemon.stop();
});

test('who listens for events and asks too often is told when to come back; without a valid token it is over', async () => {
  const { folder, remove } = scratchFolder();
  writeFileSync(join(folder, 'tokens'), `ci read ${digest('right')}\n`);
  const daemon = await startDaemon({ args: ['--tokens-file', join(folder, 'tokens'), '--address-rate', '1'] });
  const listen = (token) => daemon.fetch('/v1/sweeps/01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072/events',
    { headers: { Accept: 'text/event-stream', ...(token && { Authorization: `Bearer ${token}` }) } });
  assert.equal((await listen('wrong')).status, 401, 'a browser gives up');
  let answer = await listen('right');
  while (answer.status === 503) answer = await listen('right'); // no database is here
  assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'text/event-stream']);
  const [retry, event, data] = (await answer.text()).split('\n');
  assert.deepEqual([retry, event], ['retry: 1000', 'event: away']);
  assert.match(JSON.parse(data.slice('data: '.length)).detail, /requests of this address: more than 1 a second/);
  await daemon.stop();
  remove();
});

test('a token has a rate of its own', async () => {
  const { folder, remove } = scratchFolder();
  writeFileSync(join(folder, 'tokens'), `one read ${digest('one')}\ntwo read ${digest('two')}\n`);
  const daemon = await startDaemon({ args: ['--tokens-file', join(folder, 'tokens'), '--token-rate', '1'] });
  const rate = { burst: 5, perSecond: 1 };
  await spend(() => as(daemon, 'one'), rate);
  await spend(() => as(daemon, 'two'), rate);
  await daemon.stop();
  remove();
});

test('without a word about rates, loopback has none', async () => {
  const daemon = await startDaemon();
  for (let i = 0; i < 40; i++) assert.ok((await Promise.all(Array.from({ length: 40 }, () => daemon.fetch('/v1/catalog/chips')))).every((answer) => answer.status === 200));
  await daemon.stop();
});

test('SIGHUP reads tokens and settings again', async () => {
  const { folder, remove } = scratchFolder();
  const [tokens, settings] = ['tokens', 'settings'].map((name) => join(folder, name));
  writeFileSync(tokens, `old read ${digest('old')}\ngone read ${digest('gone')} expires=1000\n`);
  writeFileSync(settings, `log_level = info\nplans = 640\nlog_file =\n`);
  const daemon = await startDaemon({ args: ['--tokens-file', tokens, '--config', settings] });
  assert.equal((await as(daemon, 'old')).status, 200);
  assert.match((await problem(assert, await as(daemon, 'gone'), 401, 'unauthorized')).detail, /expired/);
  writeFileSync(tokens, `new read ${digest('new')}\n`);
  writeFileSync(settings, `log_level = info\nplans = 1\nqueue = 7\n`);
  hangUp(daemon);
  await reloaded(daemon, 1);
  const line = daemon.log.find((one) => one.msg === 'reloaded');
  assert.deepEqual([line.changed, line.need_a_new_start], ['plans', 'queue']);
  assert.deepEqual([(await as(daemon, 'old')).status, (await as(daemon, 'new')).status], [401, 200]);
  assert.equal((await daemon.post('/v1/advise', adviseRequest(), { Authorization: 'Bearer new' })).status, 422, 'ten plans are more than one');

  writeFileSync(tokens, 'broken\n');
  writeFileSync(settings, 'plans = many\n');
  hangUp(daemon);
  await until('mistakes', () => daemon.log.filter((one) => /^reload: /.test(one.msg)).length >= 3);
  assert.equal((await as(daemon, 'new')).status, 200, 'mistakes change nothing');
  assert.equal((await daemon.post('/v1/advise', adviseRequest(), { Authorization: 'Bearer new' })).status, 422);
  await daemon.stop();
  remove();
});

test('a log that was moved away is begun anew after SIGHUP, without a line lost', async () => {
  const { folder, remove } = scratchFolder();
  const log = join(folder, 'log');
  writeFileSync(join(folder, 'settings'), `log_file = ${log}\n`);
  const started = startDaemon({ args: ['--config', join(folder, 'settings')] }).catch(() => null); // says nothing where it is looked for
  const read = () => { try { return readFileSync(log, 'utf8'); } catch { return ''; } };
  const { address, pid } = JSON.parse(await until('its line', () => read().split('\n').find((line) => /"listening".*\}$/.test(line))));
  const origin = `http://${address}`;
  renameSync(log, `${log}.1`);
  process.kill(pid, 'SIGHUP');
  await until('a new file', () => /"reloaded"/.test(read()));
  for (let i = 0; i < 20; i++) await fetch(`${origin}/livez`);
  await until('20 lines', () => (read().match(/"route":"\/livez"/g) ?? []).length === 20);
  process.kill(pid, 'SIGTERM');
  await started;
  remove();
});

test('who does not read an answer is gone within 15 seconds, also when it reads a little', { timeout: 55000 }, async () => {
  const daemon = await startDaemon();
  const body = JSON.stringify(adviseRequest());
  const ask = 'POST /v1/advise HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ' + body.length + '\r\n\r\n' + body;
  await (await daemon.post('/v1/advise', adviseRequest())).text();
  const readers = [false, true].map((trickles) => {
    const socket = connect({ port: daemon.port, host: '127.0.0.1', highWaterMark: 1 });
    const state = { closed: false, since: Date.now() };
    socket.pause();
    socket.on('error', () => {});
    socket.on('close', () => { state.closed = true; });
    for (let i = 0; i < 60; i++) socket.write(ask); // more than the kernel's buffers hold
    state.timer = setInterval(() => { if (trickles) socket.read(100); else socket.read(0); }, 500);
    return state;
  });
  const open = async () => Number((await (await daemon.fetch('/metrics')).text()).match(/connections_open (\d+)/)[1]);
  await until('they are connected', async () => await open() >= 3);
  await until('only ours', async () => await open() <= 1, 25000);
  readers.forEach((state) => clearInterval(state.timer));
  assert.equal((await daemon.post('/v1/estimate', estimateRequest())).status, 200);
  await daemon.stop();
});
