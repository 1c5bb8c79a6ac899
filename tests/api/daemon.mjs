// A daemon of its own for each test file, on a free loopback port, with a database of its own; and raw sockets.
import { spawn, execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
export const program = join(root, process.env.PROGRAM ?? 'build/tpu-advisor');
export const golden = (name) => readFileSync(join(root, 'tests/golden/requests', name), 'utf8');
export const estimateRequest = (extra = {}) => ({ ...JSON.parse(golden('estimate-v6e-llama8b-8c.json')), ...extra });
export const adviseRequest = (extra = {}) => ({ ...JSON.parse(golden('advise-llama70b-64c.json')), ...extra });

const environment = (extra) => {
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TPU_ADVISOR_')));
  return { ...clean, ...extra };
};

export function scratchFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'tpu-advisor-test-'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

// The private cluster that run.sh started; each caller gets an empty database.
export function freshDatabase(name) {
  const url = process.env.CLUSTER_URL;
  sql('postgres', `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  sql('postgres', `CREATE DATABASE ${name}`);
  return url.replace('/tpu_advisor?', `/${name}?`);
}

export function sql(database, statement) {
  const url = process.env.CLUSTER_URL.replace('/tpu_advisor?', `/${database}?`);
  return execFileSync('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', url, '-c', statement], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}

// A search that takes about a tenth of a second for each machine on a quiet computer; each is searched, and again for its sensitivities.
export const costly = (machines, extra = {}) => ({
  model: 'deepseek3-671b',
  clusters: Array.from({ length: machines }, () => ({ chip: 'tpu7x', topology: '8x16x16' })),
  workload: { seq_len: 8192, global_batch_sequences: 16384 },
  search: { top_k: 1, sensitivities: true, ...extra },
});

export const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// The limit is for what never comes, so it is long: a busy machine takes many times what a quiet one does.
export async function until(what, condition, ms = 30000) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${ms} ms in vain: ${what}`);
    await sleep(20);
  }
}

// Runs the program to its end: {status, out, err}.
export function run(args, { env = {}, input = '' } = {}) {
  return new Promise((resolve) => {
    const child = spawn(program, args, { env: environment(env) });
    let out = '';
    let err = '';
    child.stdout.on('data', (bytes) => { out += bytes; });
    child.stderr.on('data', (bytes) => { err += bytes; });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    child.on('close', (status) => resolve({ status, out, err }));
  });
}

// A failed test must not leave its daemon behind.
const started = new Set();
process.on('exit', () => { for (const child of started) child.kill('SIGKILL'); });

export async function startDaemon({ database, args = [], env = {}, waitFor = 'ready' } = {}) {
  const child = spawn(program, ['serve', '--listen', '127.0.0.1:0', ...args],
    { env: environment(database ? { TPU_ADVISOR_DATABASE_URL: database, ...env } : env), stdio: ['ignore', 'inherit', 'pipe'] });
  started.add(child);
  child.on('close', (status, signal) => {
    started.delete(child);
    if (signal || status) process.stdout.write(`# the daemon ended with ${signal ?? status}: ${raw.slice(-3000)}\n`);
  });
  const log = [];
  let pending = '';
  let raw = '';
  child.stderr.setEncoding('utf8');
  child.stderr.on('data', (text) => {
    raw += text;
    pending += text;
    const lines = pending.split('\n');
    pending = lines.pop();
    for (const line of lines) {
      try { log.push(JSON.parse(line)); } catch { log.push({ msg: 'not JSON', line }); }
    }
  });
  const exit = new Promise((resolve) => { child.on('close', (status, signal) => resolve(status ?? signal)); });
  const daemon = { child, log, exit, raw: () => raw };
  const listening = await until(`listening; log: ${raw}`, () => log.find((line) => line.msg === 'listening') || child.exitCode !== null)
    .catch(() => true);
  if (listening === true) throw new Error(`the daemon did not start: ${raw}`);
  daemon.origin = `http://${listening.address}`;
  daemon.port = Number(listening.address.split(':').pop());
  if (waitFor === 'ready')
    await until('ready', async () => (await fetch(`${daemon.origin}/readyz${database ? '?require=database' : ''}`)).status === 200);
  daemon.stop = async () => {
    child.kill('SIGTERM');
    const status = await exit;
    if (status !== 0) throw new Error(`the daemon ended with ${status}: ${raw.slice(-2000)}`);
    if (/Sanitizer|runtime error/.test(raw)) throw new Error(`sanitizer report: ${raw.slice(-4000)}`);
  };
  daemon.fetch = (path, options) => fetch(daemon.origin + path, options);
  daemon.post = (path, body, headers = {}) => fetch(daemon.origin + path, {
    method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers },
  });
  return daemon;
}

// Sends bytes as they are; resolves with everything received once the peer closes, `answers` have come, or nothing more came
// for `quiet` ms. The first byte has more time: a busy machine may be long in answering.
export function raw(port, bytes, { answers = Infinity, quiet = 2000, first = 20000 } = {}) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    let closed = false;
    const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map((match) => Number(match[1]));
    let timer = setTimeout(() => socket.destroy(), first);
    socket.on('data', (data) => {
      text += data;
      clearTimeout(timer);
      timer = setTimeout(() => socket.destroy(), statuses().length >= answers ? 300 : quiet);
    });
    socket.on('end', () => { closed = true; });
    socket.on('error', () => { closed = true; });
    socket.on('close', () => {
      clearTimeout(timer);
      resolve({ text, closed, statuses: statuses() });
    });
    socket.write(bytes);
  });
}

// Asserts a problem document (RFC 9457) and returns it.
export async function problem(assert, response, status, slug) {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assert.equal(response.headers.get('content-type'), 'application/problem+json');
  const document = JSON.parse(text);
  for (const name of ['type', 'title', 'status', 'detail', 'instance', 'errors']) assert.ok(name in document, `${name} in ${text}`);
  assert.equal(document.status, status);
  assert.ok(document.type.endsWith(`/${slug}`), `${document.type} ends with ${slug}`);
  assert.ok(document.instance.includes(response.headers.get('x-request-id')));
  for (const error of document.errors) for (const name of ['pointer', 'code', 'detail']) assert.ok(name in error, `${name} in ${text}`);
  return document;
}

export { writeFileSync, join };
