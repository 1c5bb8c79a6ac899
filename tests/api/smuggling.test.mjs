// Requests that two parsers could read differently must be refused and their connection closed.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { startDaemon, raw, until } from './daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon.stop());

const hidden = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n';
const json = 'Content-Type: application/json\r\n';
const refused = {
  'Content-Length beside Transfer-Encoding': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
  'Content-Length beside Transfer-Encoding on GET': `GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
  'two different Content-Lengths': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  'two equal Content-Lengths': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}${hidden}`,
  'a list of Content-Lengths': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: 2, 2\r\n\r\n{}`,
  'a signed Content-Length': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: +2\r\n\r\n{}`,
  'a negative Content-Length': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: -2\r\n\r\n{}`,
  'a hexadecimal Content-Length': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: 0x2\r\n\r\n{}`,
  'a Content-Length beyond any number': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: 99999999999999999999\r\n\r\n{}`,
  'a blank before the colon': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length : 2\r\n\r\n{}`,
  'a blank in a header name': 'GET /livez HTTP/1.1\r\nHost: x\r\nBad Name: 1\r\n\r\n',
  'no Host': 'GET /livez HTTP/1.1\r\n\r\n',
  'two Hosts': 'GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  'two tokens': 'GET /livez HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n',
  'two types of a body': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}`,
  'two keys': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 2\r\n\r\n{}`,
  'two timeouts': 'GET /livez HTTP/1.1\r\nHost: x\r\nRequest-Timeout: 5\r\nRequest-Timeout: 6\r\n\r\n',
  'two origins': 'GET /livez HTTP/1.1\r\nHost: x\r\nOrigin: null\r\nOrigin: http://x\r\n\r\n',
  'a method that is no token': 'G@T /livez HTTP/1.1\r\nHost: x\r\n\r\n',
  'an unknown Transfer-Encoding': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  'two Transfer-Encodings': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
  'a Transfer-Encoding in HTTP/1.0': `POST /v1/estimate HTTP/1.0\r\nHost: x\r\n${json}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  'an absolute target': 'GET http://other/livez HTTP/1.1\r\nHost: x\r\n\r\n',
  'a blank in the target': 'GET /livez x HTTP/1.1\r\nHost: x\r\n\r\n',
  'a control character in the target': 'GET /livez\x01 HTTP/1.1\r\nHost: x\r\n\r\n',
  'a folded header': 'GET /livez HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n',
  'a folded Content-Length': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: 2\r\n 0\r\n\r\n{}${hidden}`,
  'a header folded with a tab': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}X: y\r\n\tTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}`,
  'a fold before the first header': 'GET /livez HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n',
  'a NUL in a length': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: 2\x0000\r\n\r\n{}${hidden}`,
  'a NUL in the target': 'GET /livez\0/../v1/runs HTTP/1.1\r\nHost: x\r\n\r\n',
  'a NUL in a header name': 'GET /livez HTTP/1.1\r\nHost: x\r\nA\0B: c\r\n\r\n',
  'lines that end in a line feed alone': `GET /livez HTTP/1.1\nHost: x\n\n${hidden}`,
  'a header that hides behind a line feed': `GET /livez HTTP/1.1\r\nHost: x\r\nX: y\nContent-Length: 5\r\n\r\n${hidden}`,
  'a carriage return within a line': 'GET /livez HTTP/1.1\r\nHost: x\r\nX: y\rContent-Length: 5\r\n\r\n',
  'an endless chunk extension': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Transfer-Encoding: chunked\r\n\r\n2;${'x'.repeat(5000)}\r\n{}\r\n0\r\n\r\n`,
  'a chunk that is longer than it says': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Transfer-Encoding: chunked\r\n\r\n2\r\n{}{}\r\n0\r\n\r\n`,
  'a negative chunk': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n`,
  'a chunk beyond any number': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n`,
  'a folded trailer': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: b\r\n c\r\n\r\n`,
  'a trailer without end': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n${'A: b\r\n'.repeat(3000)}\r\n`,
  'a header without a name': `GET /livez HTTP/1.1\r\nHost: x\r\n: y\r\n${hidden}`,
  'a header that is only a colon': `GET /livez HTTP/1.1\r\nHost: x\r\n:\r\n${hidden}`,
  'a header without a colon': `GET /livez HTTP/1.1\r\nHost: x\r\ny\r\n${hidden}`,
  'a trailer without a name': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n: y\r\n${hidden}`,
  'an empty Content-Length': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length:\r\n\r\n${hidden}`,
  'a Content-Length with a vertical tab': `POST /v1/estimate HTTP/1.1\r\nHost: x\r\n${json}Content-Length: 2\v\r\n\r\n${hidden}`,
  'an unknown version': 'GET /livez HTTP/1.7\r\nHost: x\r\n\r\n',
};
for (const [what, bytes] of Object.entries(refused))
  test(`refused: ${what}`, async () => {
    const answer = await raw(daemon.port, bytes);
    assert.equal(answer.statuses.length, 1, `it is answered once: ${answer.text}`);
    assert.ok([400, 505].includes(answer.statuses[0]), answer.text);
    assert.ok(answer.closed, 'the connection is closed');
    assert.match(answer.text, /\r\nContent-Type: application\/problem\+json\r\n/);
  });

const livez = (target, headers = '') => raw(daemon.port, `GET ${target} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`, { answers: 1 });

test('a head beyond 8 KiB is refused with a problem document, in the headers or in the target', async () => {
  for (const answer of [await livez('/livez', `Big: ${'x'.repeat(8300)}\r\n`), await livez('/livez', `Big: ${'x'.repeat(12000)}\r\n`), await livez(`/livez?${'x'.repeat(10000)}`)]) {
    assert.deepEqual(answer.statuses, [431]);
    assert.ok(answer.closed);
    assert.match(answer.text, /"type":"https:\/\/tpu-advisor.dev\/problems\/head-too-large"/);
  }
  assert.deepEqual((await livez('/livez', `Big: ${'x'.repeat(8000)}\r\n`)).statuses, [200]);
});

test('a head beyond what the library reads is refused', async () => {
  assert.deepEqual((await livez('/livez', `Big: ${'x'.repeat(100000)}\r\n`)).statuses, [431]);
  assert.deepEqual((await livez('/livez', 'a: b\r\n'.repeat(5000))).statuses, [431]);
});

test('a refusal within a pipeline, or in pieces, is a refusal', async () => {
  const folded = 'GET /livez HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n';
  assert.ok(!(await raw(daemon.port, hidden + folded + hidden)).text.includes('200 OK'.repeat(2)));
  for (const pieces of [[folded.slice(0, 40), folded.slice(40)], [...folded].slice(0, -1)]) {
    const socket = connect(daemon.port, '127.0.0.1');
    let text = '';
    socket.on('data', (data) => { text += data; });
    socket.on('error', () => {});
    const closed = new Promise((resolve) => { socket.on('close', resolve); });
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => { setTimeout(resolve, 5); });
    }
    await closed;
    assert.match(text, /^HTTP\/1\.1 400 /);
  }
  await until('it is counted', async () => /connections_refused_total [1-9]/.test(await (await daemon.fetch('/metrics')).text()));
});

test('proper bodies of every form are read, whole and in pieces', async () => {
  const body = JSON.stringify({ config: { steps: 1 } });
  const half = body.length >> 1;
  const chunk = (text, extension = '') => `${text.length.toString(16)}${extension}\r\n${text}\r\n`;
  const forms = [
    `Content-Length: ${body.length}\r\n\r\n${body}`,
    `content-length:${body.length}\r\n\r\n${body}`,
    `Transfer-Encoding: chunked\r\n\r\n${chunk(body)}0\r\n\r\n`,
    `Transfer-Encoding: Chunked\r\n\r\n${chunk(body.slice(0, half), ';a=b')}${chunk(body.slice(half))}0\r\nX-Trailer: y\r\n\r\n`,
  ].map((rest) => `POST /v1/lint HTTP/1.1\r\nHost: x\r\n${json}${rest}`);
  for (const form of forms) assert.deepEqual((await raw(daemon.port, form, { answers: 1 })).statuses, [200], form);
  assert.deepEqual((await raw(daemon.port, forms.join(''), { answers: 4 })).statuses, [200, 200, 200, 200]);
  const slow = connect(daemon.port, '127.0.0.1');
  let text = '';
  slow.setNoDelay(true);
  slow.on('data', (data) => { text += data; });
  for (const byte of forms.join('')) {
    slow.write(byte);
    await new Promise((resolve) => { setImmediate(resolve); });
  }
  await until('all four', () => [...text.matchAll(/HTTP\/1\.1 200/g)].length === 4);
  slow.destroy();
});

test('a list may come in several fields', async () => {
  const tag = /ETag: ("[^"]*")/.exec((await raw(daemon.port, 'GET /v1/catalog/chips HTTP/1.1\r\nHost: x\r\n\r\n', { answers: 1 })).text)[1];
  for (const tags of [[tag, '"other"'], ['"other"', tag], ['"a", "b"', '"c"', tag]]) {
    const fields = tags.map((one) => `If-None-Match: ${one}\r\n`).join('');
    assert.deepEqual((await raw(daemon.port, `GET /v1/catalog/chips HTTP/1.1\r\nHost: x\r\n${fields}\r\n`, { answers: 1 })).statuses, [304], fields);
  }
  const accepts = 'Accept: text/html\r\nAccept: application/json\r\n';
  assert.deepEqual((await raw(daemon.port, `GET /v1/catalog/chips HTTP/1.1\r\nHost: x\r\n${accepts}\r\n`, { answers: 1 })).statuses, [200]);
});

test('two proper requests on one connection are both answered', async () => {
  assert.deepEqual((await raw(daemon.port, hidden + hidden, { answers: 2 })).statuses, [200, 200]);
});

test('after garbage the daemon still answers', async () => {
  await raw(daemon.port, Buffer.from([0x16, 0x03, 0x01, 0, 1, 2, 3, 0x0d, 0x0a, 0x0d, 0x0a]), { first: 700 });
  await raw(daemon.port, '\r\n\r\n\r\n', { first: 700 });
  assert.deepEqual((await raw(daemon.port, hidden, { answers: 1 })).statuses, [200]);
});
