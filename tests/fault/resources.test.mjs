// Resources that a program is short of: memory, disk, descriptors, the right time; and answers that are cut off. A reader believes:
// a shortage is said in the answer, costs nobody else, and is over when it is over; nothing crashes.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { openSync, readFileSync, writeSync } from 'node:fs';
import { adviseRequest, estimateRequest, freshDatabase, golden, join, program, root, run, scratchFolder, sleep, sql, startDaemon, until, writeFileSync } from '../api/daemon.mjs';

const { folder, remove } = scratchFolder();
const library = join(folder, 'preload.so');
const under = { skip: process.env.SANITIZER ? 'a sanitizer has allocators of its own' : false };
const faults = (name) => {
  const path = join(folder, name);
  writeFileSync(path, Buffer.alloc(24));
  const file = openSync(path, 'r+');
  const set = (index, value) => { const bytes = Buffer.alloc(8); bytes.writeBigInt64LE(BigInt(value)); writeSync(file, bytes, 0, 8, 8 * index); };
  return { env: { LD_PRELOAD: library, FAULT_FILE: path }, every: (n) => set(0, n), nth: (n) => set(1, n), ahead: (seconds) => set(2, seconds) };
};
before(() => execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, join(root, 'tests/fault/preload.c'), '-ldl']));
after(remove);

for (const [command, input] of [['estimate', golden('estimate-v6e-llama8b-8c.json')], ['lint', '{"config": {"per_device_batch_size": 2}}'],
  ['simulate', '{"chip": "tpu7x", "kernel": "matmul", "shape": {"m": 4096, "k": 4096, "n": 4096, "dtype": "bfloat16"}, "tile": {}}']])
  test(`${command}: whichever allocation fails, it says so and ends`, { ...under, timeout: 55000 }, async () => {
    const fault = faults(`nth-${command}`);
    const whole = await run([command, '-'], { env: fault.env, input });
    assert.ok(whole.out.length > 10);
    const seen = new Set();
    for (let nth = 1, streak = 0; streak < 5 && nth < 3e6; nth = Math.ceil(nth * 1.18) + 1) {
      fault.nth(nth);
      const result = await run([command, '-'], { env: fault.env, input });
      assert.ok([0, 1, 2].includes(result.status), `allocation ${nth}: status ${result.status} ${result.err.slice(0, 300)}`);
      if (result.out && result.out !== whole.out) assert.fail(`allocation ${nth}: another answer: ${result.out.slice(0, 200)}`);
      if (!result.out) assert.ok(result.err.length > 0, `allocation ${nth}: not a word`);
      seen.add(result.out ? 'answered' : 'refused');
      streak = result.out ? streak + 1 : 0;
    }
    assert.ok(seen.has('refused') && seen.has('answered'), [...seen].join());
  });

test('a daemon that is short of memory answers 503 or hangs up, and goes on', { ...under, timeout: 50000 }, async () => {
  const fault = faults('daemon');
  const daemon = await startDaemon({ database: freshDatabase('fault_memory'), env: fault.env, args: ['--cache-mib', '1'] });
  const statuses = new Map();
  for (const every of [5000, 997, 211, 53]) {
    fault.every(every);
    await Promise.all(Array.from({ length: 8 }, async (_, client) => {
      for (let i = 0; i < 12; i++) {
        const asked = [() => daemon.post('/v1/estimate', estimateRequest({ label: `${every}-${client}-${i}` })), () => daemon.post('/v1/estimate', estimateRequest({ store: true })),
          () => daemon.fetch('/v1/runs'), () => daemon.fetch('/metrics'), () => daemon.fetch('/v1/catalog/models')][i % 5];
        const status = await asked().then(async (answer) => { await answer.arrayBuffer().catch(() => 0); return answer.status; }).catch(() => 'hung up');
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }));
    assert.equal(daemon.child.exitCode ?? daemon.child.signalCode, null, `every ${every}th allocation: ${daemon.raw().slice(-500)}`);
  }
  assert.deepEqual([...statuses.keys()].filter((status) => ![200, 503, 500, 'hung up'].includes(status)), [], JSON.stringify([...statuses]));
  assert.ok(statuses.get(503) > 0 && statuses.get(200) > 0, JSON.stringify([...statuses]));
  fault.every(0);
  await until('ready and storing', async () => (await daemon.post('/v1/estimate', estimateRequest({ store: true }))).status === 200, 10000);
  const runs = Number(sql('fault_memory', 'SELECT count(*) FROM runs'));
  assert.ok(runs >= 1);
  await daemon.stop();
});

test('a clock that jumps, by years and back, moves no deadline', { ...under, timeout: 55000 }, async () => {
  const fault = faults('clock');
  const daemon = await startDaemon({ database: freshDatabase('fault_clock'), env: fault.env, args: ['--deadline', '2', '--request-timeout', '2', '--cache-mib', '0'] });
  for (const ahead of [3e8, -3e8, 0]) {
    fault.ahead(ahead);
    const begin = process.cpuUsage && readFileSync(`/proc/${daemon.child.pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number).reduce((a, b) => a + b);
    const slow = connect(daemon.port, '127.0.0.1');
    slow.on('error', () => {});
    slow.write('GET /livez HTTP/1.1\r\n');
    const since = Date.now();
    const closed = new Promise((resolve) => { slow.on('close', () => resolve(Date.now() - since)); });
    slow.resume();
    assert.equal((await daemon.post('/v1/estimate', estimateRequest({ store: true }), { Connection: 'close' })).status, 200, `ahead ${ahead}`);
    const ms = await Promise.race([closed, sleep(10000)]);
    assert.ok(ms >= 1500 && ms < 10000, `half a request is closed after its time, not ${ms} ms, ahead ${ahead}`);
    await until('ready', async () => (await daemon.fetch('/readyz?require=database').catch(() => ({}))).status === 200);
    const end = readFileSync(`/proc/${daemon.child.pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number).reduce((a, b) => a + b);
    assert.ok(end - begin < 150, `no thread runs in circles: ${end - begin} ticks`);
  }
  await daemon.stop();
});

test('without descriptors nobody new is served, and those who are go on', async () => {
  const child = spawn('sh', ['-c', `ulimit -n 48; exec "${program}" serve --listen 127.0.0.1:0`], { stdio: ['ignore', 'ignore', 'pipe'] });
  let text = '';
  child.stderr.on('data', (bytes) => { text += bytes; });
  const port = Number((await until('listening', () => text.match(/"address":"127.0.0.1:(\d+)"/)))[1]);
  const ask = (socket) => new Promise((resolve) => { socket.once('data', (data) => resolve(String(data).slice(9, 12))); socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'); setTimeout(() => resolve('nothing'), 5000); });
  const open = () => { const socket = connect(port, '127.0.0.1'); socket.on('error', () => {}); return socket; };
  const first = open();
  assert.equal(await ask(first), '200');
  const crowd = Array.from({ length: 80 }, open);
  await sleep(300);
  assert.equal(await ask(first), '200', 'who is served goes on');
  crowd.forEach((socket) => socket.destroy());
  await until('somebody new', async () => { const socket = open(); const said = await ask(socket); socket.destroy(); return said === '200'; });
  assert.equal(child.exitCode, null);
  child.kill('SIGTERM');
  await new Promise((resolve) => { child.on('close', resolve); });
});

test('a full disk stops the log, not the service; a report that cannot be written is an error', async () => {
  const daemon = spawn(program, ['serve', '--listen', '127.0.0.1:0', '--log-file', '/dev/full'], { stdio: 'ignore' });
  const line = await until('its port', () => {
    const said = (command) => { try { return execFileSync('sh', ['-c', command], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }); } catch { return ''; } };
    const inodes = said(`readlink /proc/${daemon.pid}/fd/*`);
    const listening = said(`awk '$4 == "0A" {print $2, $10}' /proc/${daemon.pid}/net/tcp`);
    return listening.split('\n').find((one) => one && inodes.includes(`socket:[${one.split(' ')[1]}]`));
  });
  const origin = `http://127.0.0.1:${parseInt(line.split(':')[1], 16)}`;
  for (let i = 0; i < 20; i++) assert.equal((await fetch(`${origin}/livez`)).status, 200);
  daemon.kill('SIGTERM');
  assert.equal(await new Promise((resolve) => { daemon.on('close', resolve); }), 0);
  const full = spawn('sh', ['-c', `"${program}" estimate - > /dev/full`], { stdio: ['pipe', 'ignore', 'pipe'] });
  full.stdin.end(golden('estimate-v6e-llama8b-8c.json'));
  assert.notEqual(await new Promise((resolve) => { full.on('close', resolve); }), 0, 'half an answer is no success');
  for (const command of ['version', 'serve --print-config', `validate ${join(root, 'tests/accuracy/e2e.json')}`, '--version'])
    assert.throws(() => execFileSync('sh', ['-c', `"${program}" ${command} > /dev/full`], { stdio: 'pipe' }), /standard output/, command);
});

test('an answer that is cut off in the middle costs nobody else', async () => {
  const daemon = await startDaemon();
  const body = JSON.stringify(adviseRequest());
  await (await daemon.post('/v1/advise', adviseRequest())).text();
  for (let i = 0; i < 60; i++) await new Promise((resolve) => {
    const socket = connect(daemon.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.once('data', () => { socket.resetAndDestroy(); resolve(); });
    socket.write(`POST /v1/advise HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  });
  assert.equal((await daemon.post('/v1/advise', adviseRequest())).status, 200);
  await until('nothing is held', async () => /connections_open [12]\n/.test(await (await daemon.fetch('/metrics')).text()), 15000);
  await daemon.stop();
});

test('the last run that passed is the last by the clock of the database, whichever daemon was ahead', under, async () => {
  const fault = faults('hour');
  fault.ahead(3600);
  const database = freshDatabase('fault_hour');
  const ahead = await startDaemon({ database, env: fault.env });
  const right = await startDaemon({ database });
  const name = { project: 'clocks', label: 'main' };
  const limits = { step_time_increase_frac: 0.5, must_fit: false };
  const pass = async (daemon, baseline, extra) => {
    const answer = await daemon.post('/v1/checks', { baseline, candidate: estimateRequest({ ...name, store: true, ...extra }), limits });
    const { verdict, candidate } = await answer.json();
    assert.deepEqual([answer.status, verdict], [200, 'pass']);
    return candidate.run_id;
  };
  const { run_id: first } = await (await ahead.post('/v1/estimate', estimateRequest({ ...name, store: true }))).json();
  const older = await pass(ahead, { run_id: first });
  const newer = await pass(right, { run_id: first });
  assert.ok(older > newer, 'the id of the daemon that is ahead sorts behind');
  const { baseline } = await (await right.post('/v1/checks', { baseline: name, candidate: estimateRequest(name), limits })).json();
  assert.equal(baseline.run_id, newer);
  await ahead.stop();
  await right.stop();
});

test('what is newest is so by the clock of the database, whichever daemon was ahead', under, async () => {
  const fault = faults('newest');
  fault.ahead(3600);
  const database = freshDatabase('fault_newest');
  const ahead = await startDaemon({ database, env: fault.env });
  const right = await startDaemon({ database });
  const request = estimateRequest({ project: 'clocks', store: true });
  const run_ = await (await right.post('/v1/estimate', request)).json();
  const here = `/v1/runs/${run_.run_id}`;
  const made = async (path, body, member) => {
    const ids = [];
    for (const daemon of [ahead, right]) {
      const answer = await (await daemon.post(path, body(ids.length))).json();
      assert.ok(answer[member], JSON.stringify(answer));
      ids.push(answer[member]);
    }
    return ids.reverse(); // newest first
  };
  const list = async (path, name) => (await (await right.fetch(path)).json())[name];
  const memory = (n) => ({ step_time_s: run_.step_time_s * (1 + n / 100), hbm_bytes_per_device: run_.hbm_bytes_per_device / (1 + n), source: 's', at: `2026-11-2${n}` });
  const measurements = await made(`${here}/measurements`, memory, 'measurement_id');
  assert.deepEqual((await list(`${here}/measurements`, 'measurements')).map((one) => one.measurement_id), measurements);
  assert.deepEqual((await list('/v1/accuracy', 'rows')).map((one) => one.measurement_id), measurements);
  assert.equal((await (await right.fetch('/v1/accuracy')).json()).memory.measured.bias_frac, 1, 'of the newest bytes');
  const verifications = await made(`${here}/verifications`, (n) => ({ rank: 1, mode: n ? 'whole' : 'assign' }), 'verification_id');
  assert.deepEqual((await list(`${here}/verifications`, 'verifications')).map((one) => one.verification_id), verifications);
  const sweeps = await made('/v1/sweeps', () => ({ kind: 'estimate', requests: [estimateRequest()] }), 'sweep_id');
  assert.deepEqual((await list('/v1/sweeps', 'sweeps')).map((one) => one.sweep_id), sweeps);
  const calibrations = await made('/v1/calibrations', () => ({ project: 'clocks' }), 'calibration_id');
  assert.deepEqual((await list('/v1/calibrations', 'calibrations')).map((one) => one.calibration_id), calibrations);
  await ahead.stop();
  await right.stop();
});
