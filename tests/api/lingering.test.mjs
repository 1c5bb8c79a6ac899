// Who is refused while still sending reads why, and not "connection reset"; and nobody holds connections by that.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { connect } from 'node:net';
import { readdirSync } from 'node:fs';
import { promisify } from 'node:util';
import { sleep, startDaemon, until } from './daemon.mjs';

const LINGERING = 64; // at once, as server/linger.h has it
const MiB = 2 ** 20;
let daemon;
before(async () => { daemon = await startDaemon({ args: ['--connections', '400'] }); });
after(() => daemon.stop());

const json = 'Content-Type: application/json\r\n';
const post = (headers, path = '/v1/estimate') => `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;

// As most clients are: everything is sent before a byte of the answer is read.
const sender = `
import socket, sys
port, head, size = int(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
    connection.sendall(head)
    block = b"x" * 1048576
    for _ in range(size // len(block)):
        connection.sendall(block)
    answer = b""
    while part := connection.recv(65536):
        answer += part
sys.stdout.buffer.write(answer)
`;
const send = async (head, bytes) => (await promisify(execFile)('python3', ['-c', sender, String(daemon.port), head, String(bytes)], { encoding: 'latin1' })).stdout;

for (const [what, status, head, bytes] of [
  ['a body of 64 MiB, by its length', 413, post(`${json}Content-Length: ${64 * MiB}\r\n`), 64 * MiB],
  ['a body of 64 MiB in one chunk, of another type', 415, post(`Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n${(64 * MiB).toString(16)}`), 64 * MiB],
  ['a body where none is taken', 400, post(`Content-Length: ${MiB}\r\n`, '/v1/runs/x/reevaluate'), MiB],
  ['a body for what is not there', 404, post(`${json}Content-Length: ${8 * MiB}\r\n`, '/v1/none'), 8 * MiB],
  ['a folded header before 8 MiB', 400, post('X: a\r\n b\r\n'), 8 * MiB],
  ['two lengths before 8 MiB', 400, post(`${json}Content-Length: 5\r\nContent-Length: 6\r\n`), 8 * MiB],
  ['a chunk that is longer than it says, before 8 MiB', 400, post(`${json}Transfer-Encoding: chunked\r\n\r\n1\r\n`), 8 * MiB],
  ['a head of 12 kB before 8 MiB', 431, post(`${json}Content-Length: ${8 * MiB}\r\nBig: ${'x'.repeat(12000)}\r\n`), 8 * MiB],
  ['a head of 8 MiB', 431, `GET /livez HTTP/1.1\r\nHost: x\r\nBig: `, 8 * MiB],
])
  test(`the refusal is read: ${what}`, async () => {
    const answer = await send(head, bytes);
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), answer.slice(0, 300));
    assert.equal([...answer.matchAll(/HTTP\/1\.1 \d/g)].length, 1, answer);
    assert.match(answer, /[}>]\s*$/, 'the whole answer');
  });

const descriptors = () => readdirSync(`/proc/${daemon.child.pid}/fd`).length;

test('who goes on sending for ever is cut off', { timeout: 60000 }, async () => {
  const socket = connect(daemon.port, '127.0.0.1');
  let sent = 0;
  let ended = false;
  socket.on('error', () => {}).on('close', () => { ended = true; });
  socket.write(post(`${json}Content-Length: ${2 ** 40}\r\n`));
  while (!ended && sent < 2 ** 31) {
    sent += MiB;
    if (!socket.write(Buffer.alloc(MiB))) await Promise.race([new Promise((resolve) => { socket.once('drain', resolve); }), until('the end', () => ended, 20000)]);
  }
  assert.ok(ended, `${sent / MiB} MiB were taken`);
});

for (const [what, seconds, trickles] of [['stays silent', 2, false], ['sends a little at a time', 10, true]])
  test(`who ${what} is gone after ${seconds} seconds; of many at once only some are kept`, { timeout: 60000 }, async () => {
    const before = await until('quiet', async () => { const one = descriptors(); await sleep(500); return one === descriptors() && one; });
    const sockets = Array.from({ length: 3 * LINGERING }, () => {
      const socket = connect({ port: daemon.port, host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => {}).resume();
      socket.write(`${post(`${json}Content-Length: ${64 * MiB}\r\n`)}x`);
      if (trickles) socket.trickle = setInterval(() => socket.write('x'), 300);
      return socket;
    });
    const since = Date.now();
    await until('all are answered', () => sockets.every((socket) => socket.bytesRead > 0));
    await until('the rest is closed', () => descriptors() <= before + LINGERING + 2);
    assert.equal((await daemon.fetch('/livez')).status, 200);
    if (trickles) {
      await sleep(3000);
      assert.ok(descriptors() > before + LINGERING / 2, 'they have their time');
    }
    await until('all are gone', () => descriptors() <= before + 2, 30000);
    assert.ok(Date.now() - since >= seconds * 1000 - 100, 'not before their time');
    for (const socket of sockets) { clearInterval(socket.trickle); socket.destroy(); }
  });
