// A daemon without tokens serves its own page and programs, not the pages of others.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { startDaemon, raw, scratchFolder, writeFileSync, join } from './daemon.mjs';
import { createHash } from 'node:crypto';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon.stop());

const get = (port, host) => raw(port, `GET /v1/catalog/chips HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
const lint = (headers, host = 'localhost') => raw(daemon.port, `POST /v1/lint HTTP/1.1\r\nHost: ${host}\r\nContent-Type: text/plain\r\n${headers}Content-Length: 10\r\n\r\nsteps=1000`);

test('a name that a page may have is not ours', async () => {
  for (const host of ['evil.example', 'evil.example:8080', 'a.b.c', '127.0.0.1.evil.example', 'localhost.evil.example', '127.0.0.1@x.y', '[::1].x.y', '.', '[::1', '127.0.0.1:80x']) {
    const answer = await get(daemon.port, host);
    assert.deepEqual(answer.statuses, [421], host);
    assert.match(answer.text, /problems\/misdirected/);
  }
});

test('probes answer under any name', async () => {
  assert.deepEqual((await raw(daemon.port, 'GET /metrics HTTP/1.1\r\nHost: advisor.monitoring.svc.cluster.local\r\nConnection: close\r\n\r\n')).statuses, [200]);
});

test('addresses and names without dots are', async () => {
  for (const host of [`127.0.0.1:${daemon.port}`, 'localhost', 'LOCALHOST:1', 'advisor', '[::1]:8080', '10.0.0.1', 'form.localhost'])
    assert.deepEqual((await get(daemon.port, host)).statuses, [200], host);
});

test('a page of another site posts nothing, also not what needs no asking', async () => {
  for (const headers of ['Origin: https://evil.example\r\n', 'Origin: null\r\n', 'Sec-Fetch-Site: cross-site\r\n', 'Sec-Fetch-Site: same-site\r\n', 'Origin: http://localhost\r\nSec-Fetch-Site: cross-site\r\n', 'Origin: http://localhost:1\r\n']) {
    const answer = await lint(headers);
    assert.deepEqual(answer.statuses, [403], headers);
  }
});

test('our own page and programs do', async () => {
  for (const headers of ['', 'Origin: http://localhost\r\n', 'Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost\r\n', 'Sec-Fetch-Site: none\r\n'])
    assert.deepEqual((await lint(headers)).statuses, [200], headers);
});

test('with tokens, and for names that were given, Host and Origin are no matter', async () => {
  const { folder, remove } = scratchFolder();
  writeFileSync(join(folder, 'tokens'), `me read ${createHash('sha256').update('secret').digest('hex')}\n`);
  const closed = await startDaemon({ args: ['--tokens-file', join(folder, 'tokens')] });
  assert.deepEqual((await raw(closed.port, 'GET /v1/catalog/chips HTTP/1.1\r\nHost: tpu.example.com\r\nAuthorization: Bearer secret\r\nConnection: close\r\n\r\n')).statuses, [200]);
  await closed.stop();
  remove();
  const named = await startDaemon({ args: ['--hosts', 'tpu.example.com, other.example.com'] });
  assert.deepEqual((await get(named.port, 'TPU.example.com:80')).statuses, [200]);
  assert.deepEqual((await get(named.port, 'example.com')).statuses, [421]);
  await named.stop();
});
