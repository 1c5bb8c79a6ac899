import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { startDaemon, run, problem, raw, until } from './daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon.stop());

test('the process says that it lives, is ready, and without a database says so', async () => {
  assert.equal((await (await daemon.fetch('/livez')).json()).status, 'alive');
  const ready = await daemon.fetch('/readyz');
  assert.equal(ready.status, 200);
  assert.equal((await ready.json()).database, 'none');
  assert.equal((await daemon.fetch('/readyz?require=database')).status, 503);
  await problem(assert, await daemon.fetch('/readyz?require=wings'), 400, 'bad-request');
});

test('the health check command agrees, and fails when nobody is there', async () => {
  const healthy = await run(['healthcheck', '--listen', `127.0.0.1:${daemon.port}`]);
  assert.equal(healthy.status, 0, healthy.err);
  assert.equal((await run(['healthcheck', '--listen', '127.0.0.1:1'])).status, 1);
});

test('the version names the program, its catalog and its constants', async () => {
  const version = await (await daemon.fetch('/version')).json();
  assert.match(version.catalog_hash, /^[0-9a-f]{16}$/);
  assert.ok(version.version.length > 0 && version.calibration.length > 0);
});

test('metrics are well-formed Prometheus text and count requests by route template', async () => {
  await daemon.fetch('/v1/catalog/chips/none-such');
  const counted = /requests_total\{method="GET",route="\/v1\/catalog\/\{collection\}\/\{name\}",code="404"\} 1\n/;
  const text = await until('it is counted, which is after it is answered', async () => {
    const response = await daemon.fetch('/metrics');
    assert.match(response.headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
    const metrics = await response.text();
    return counted.test(metrics) && metrics;
  });
  const typed = new Set();
  for (const line of text.trimEnd().split('\n')) {
    const comment = line.match(/^# (HELP|TYPE) (tpu_advisor_[a-z_]+) (.+)$/);
    if (comment) {
      if (comment[1] === 'TYPE') {
        assert.ok(!typed.has(comment[2]), `${comment[2]} is described once`);
        typed.add(comment[2]);
      }
      continue;
    }
    const sample = line.match(/^(tpu_advisor_[a-z_]+)(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? (-?[0-9.e+-]+|\+Inf)$/);
    assert.ok(sample, line);
    assert.ok(typed.has(sample[1]) || typed.has(sample[1].replace(/_(bucket|sum|count)$/, '')), `${sample[1]} has a type`);
  }
  assert.ok(!text.includes('none-such'), 'no path is a label');
});

test('the OpenAPI document lists exactly the routes that the daemon serves', async () => {
  const response = await daemon.fetch('/v1/openapi.json');
  const document = await response.json();
  const documented = Object.entries(document.paths).flatMap(([path, item]) => Object.entries(item)
    .filter(([method]) => ['get', 'put', 'post', 'delete', 'patch'].includes(method))
    .map(([method, operation]) => `${method.toUpperCase()} ${path} ${operation.operationId}`));
  const served = (await run(['serve', '--print-routes'])).out.trim().split('\n');
  assert.deepEqual(documented.sort(), served.sort());
  const again = await daemon.fetch('/v1/openapi.json', { headers: { 'If-None-Match': response.headers.get('etag') } });
  assert.equal(again.status, 304);
});

test('a request id is taken over when it is one, and made otherwise', async () => {
  assert.equal((await daemon.fetch('/livez', { headers: { 'X-Request-Id': 'build-17/a.b' } })).headers.get('x-request-id'), 'build-17/a.b');
  for (const bad of ['a b', 'x'.repeat(129), '"quoted"'])
    assert.match((await daemon.fetch('/livez', { headers: { 'X-Request-Id': bad } })).headers.get('x-request-id'), /^[0-9a-f-]{36}$/);
});

test('OPTIONS tells the methods of a path', async () => {
  const response = await daemon.fetch('/v1/runs', { method: 'OPTIONS' });
  assert.equal(response.status, 204);
  assert.equal(response.headers.get('allow'), 'GET, HEAD, OPTIONS');
  assert.equal((await daemon.fetch('/nothing', { method: 'OPTIONS' })).status, 404);
});

test('unknown paths are 404, wrong methods 405 with Allow, HEAD is GET without a body', async () => {
  await problem(assert, await daemon.fetch('/v2/estimate'), 404, 'not-found');
  await problem(assert, await daemon.fetch('/v1/estimate/'), 404, 'not-found');
  const wrong = await daemon.fetch('/v1/estimate', { method: 'DELETE' });
  assert.equal(wrong.headers.get('allow'), 'POST');
  await problem(assert, wrong, 405, 'method-not-allowed');
  const runs = await daemon.fetch('/v1/runs/x', { method: 'PUT' });
  assert.equal(runs.headers.get('allow'), 'GET, HEAD, DELETE, PATCH');
  await runs.text();
  const head = await daemon.fetch('/livez', { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal(head.headers.get('content-length'), String((await (await daemon.fetch('/livez')).text()).length));
  assert.equal(await head.text(), '');
});

test('unknown query parameters and ones given twice are refused', async () => {
  const document = await problem(assert, await daemon.fetch('/v1/catalog/chips?colour=red&colour=blue'), 400, 'bad-request');
  assert.equal(document.errors.length, 3);
});

test('who does not accept what an operation answers is told so', async () => {
  const get = (path, accept) => daemon.fetch(path, { headers: { Accept: accept } });
  for (const accept of ['text/html', 'application/jsonx', 'application/json;q=0', 'application/json; q=0.0, */*', 'application/*;q=0', 'image/*, text/*;q=0.5'])
    await problem(assert, await get('/v1/catalog/chips', accept), 406, 'not-acceptable');
  for (const accept of ['', '*/*', 'application/json', 'APPLICATION/JSON;charset=utf-8', 'application/*', 'text/html, */*;q=0.1', 'application/*;q=0, application/json;q=1'])
    assert.equal((await get('/v1/catalog/chips', accept)).status, 200, accept);
  await problem(assert, await daemon.post('/v1/estimate', '{}', { Accept: 'text/csv' }), 406, 'not-acceptable');
  await problem(assert, await get('/v2/none', 'text/csv'), 404, 'not-found');
  for (const path of ['/livez', '/readyz', '/metrics', '/'])
    assert.equal((await get(path, 'image/png')).status, 200, `${path} answers whoever asks`);
});

test('bytes that are not UTF-8 are refused, in the path and in the query', async () => {
  await problem(assert, await daemon.fetch('/v1/catalog/%ff'), 400, 'bad-request');
  await problem(assert, await daemon.fetch('/v1/catalog/chips?a=%c0%80'), 400, 'bad-request');
  await problem(assert, await daemon.fetch('/v1/catalog/a%00b'), 400, 'bad-request');
});

test('the web form comes with its types, an entity tag and a policy without other hosts', async () => {
  const page = await daemon.fetch('/');
  assert.equal(page.status, 200);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(page.headers.get('content-security-policy'), /default-src 'self'/);
  const html = await page.text();
  const assets = [...html.matchAll(/(?:src|href)="([^"#:]+\.(?:js|css|svg))"/g)].map((match) => match[1]);
  assert.ok(assets.length > 0);
  for (const asset of assets) {
    const response = await daemon.fetch(`/${asset.replace(/^\.?\//, '')}`);
    assert.equal(response.status, 200, asset);
    assert.match(response.headers.get('content-type'), /^(text\/(javascript|css); charset=utf-8|image\/svg\+xml)$/);
    const tag = response.headers.get('etag');
    assert.equal((await daemon.fetch(`/${asset.replace(/^\.?\//, '')}`, { headers: { 'If-None-Match': `"other", ${tag}` } })).status, 304);
  }
  await problem(assert, await daemon.fetch('/../Makefile'), 404, 'not-found');
  const traversal = await raw(daemon.port, 'GET /../server/main.c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  assert.deepEqual(traversal.statuses, [404]);
});

test('every request leaves one line of JSON in the log', async () => {
  const id = `line-${Date.now()}`;
  await (await daemon.fetch('/v1/catalog/chips', { headers: { 'X-Request-Id': id } })).text();
  const last = `${id}-last`; // whose line comes after it
  await (await daemon.fetch('/livez', { headers: { 'X-Request-Id': last } })).text();
  await until('both lines', () => [id, last].every((one) => daemon.log.some((line) => line.request_id === one)));
  const lines = daemon.log.filter((line) => line.request_id === id);
  assert.equal(lines.length, 1);
  assert.equal(lines[0].route, '/v1/catalog/{collection}');
  assert.equal(lines[0].status, 200);
  assert.ok(lines[0].dur_us >= 0 && lines[0].out_bytes > 0);
  assert.equal(daemon.log.filter((line) => line.msg === 'not JSON').length, 0);
});
