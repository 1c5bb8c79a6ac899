// The OpenAPI document's schemas hold for live answers, and its examples are taken by the daemon.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { startDaemon, adviseRequest, freshDatabase, golden, join, root, sql, until, estimateRequest } from './daemon.mjs';

let daemon;
let document;
let ajv;
before(async () => {
  daemon = await startDaemon({ database: freshDatabase('api_schemas') });
  document = await (await daemon.fetch('/v1/openapi.json')).json();
  ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema(document, 'api');
});
after(() => daemon.stop());

const escape = (segment) => segment.replaceAll('~', '~0').replaceAll('/', '~1');
function assertSchema(method, path, status, media, value) {
  const pointer = ['paths', path, method, 'responses', String(status)].map(escape);
  let response = document.paths[path][method].responses[status];
  assert.ok(response, `${method} ${path} documents ${status}`);
  let base = `api#/${pointer.map(encodeURIComponent).join('/')}`;
  if (response.$ref) {
    base = `api${response.$ref}`;
    response = document.components.responses[response.$ref.split('/').pop()];
  }
  assert.ok(response.content?.[media], `${method} ${path} ${status} documents ${media}`);
  const validate = ajv.getSchema(`${base}/content/${encodeURIComponent(escape(media))}/schema`);
  assert.ok(validate(value), `${method} ${path} ${status}: ${JSON.stringify(validate.errors?.slice(0, 5))}`);
}
async function assertAnswer(method, template, path, options = {}) {
  const response = await daemon.fetch(path, { method: method.toUpperCase(), ...options });
  const media = response.headers.get('content-type')?.split(';')[0];
  const text = await response.text();
  if (media) assertSchema(method, template, response.status, media, media.endsWith('json') ? JSON.parse(text) : text);
  return { status: response.status, text };
}
const json = (body) => ({ body: typeof body === 'string' ? body : JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });

const routes = { estimate: '/v1/estimate', advise: '/v1/advise', simulate: '/v1/kernels/simulate', tune: '/v1/kernels/tune', lint: '/v1/lint' };
const files = readdirSync(join(root, 'tests/golden/requests')).filter((name) => name.endsWith('.json'));
for (const [kind, path] of Object.entries(routes))
  test(`answers of ${path} are as documented`, async () => {
    const mine = files.filter((name) => name.startsWith(`${kind}-`));
    assert.ok(mine.length > 0);
    for (const name of mine) await assertAnswer('post', path, path, json(golden(name)));
  });

test('examples of the document are taken', async () => {
  let count = 0;
  for (const [path, item] of Object.entries(document.paths))
    for (const example of Object.values(item.post?.requestBody?.content['application/json']?.examples ?? {})) {
      if (path === '/v1/checks') continue; // it names a run that is not there
      const { status, text } = await assertAnswer('post', path, path, json(example.value));
      assert.equal(status, path === '/v1/sweeps' ? 202 : 200, `${path}: ${text}`);
      count++;
    }
  assert.ok(count >= 5);
});

test('what is read is as documented', async () => {
  const stored = JSON.parse((await assertAnswer('post', '/v1/estimate', '/v1/estimate', json(estimateRequest({ store: true, project: 'p', label: 'l' })))).text);
  await assertAnswer('get', '/v1/runs', '/v1/runs');
  await assertAnswer('get', '/v1/runs', '/v1/runs?limit=0');
  await assertAnswer('get', '/v1/runs/{run_id}', `/v1/runs/${stored.run_id}`);
  await assertAnswer('get', '/v1/runs/{run_id}', '/v1/runs/x');
  assert.equal((await assertAnswer('patch', '/v1/runs/{run_id}', `/v1/runs/${stored.run_id}`, json({ tags: ['a'] }))).status, 200);
  assert.equal((await assertAnswer('post', '/v1/runs/{run_id}/restore', `/v1/runs/${stored.run_id}/restore`)).status, 200);
  assert.equal((await assertAnswer('post', '/v1/runs/{run_id}/reevaluate', `/v1/runs/${stored.run_id}/reevaluate`)).status, 201);
  const measured = json({ step_time_s: 3, source: 's', at: '2026-11-20T10:00:00Z' });
  for (const status of [201, 200])
    assert.equal((await assertAnswer('post', '/v1/runs/{run_id}/measurements', `/v1/runs/${stored.run_id}/measurements`, measured)).status, status);
  await assertAnswer('post', '/v1/runs/{run_id}/measurements', `/v1/runs/${stored.run_id}/measurements`, json({}));
  await assertAnswer('get', '/v1/runs/{run_id}/measurements', `/v1/runs/${stored.run_id}/measurements`);
  const verification = JSON.parse((await assertAnswer('post', '/v1/runs/{run_id}/verifications', `/v1/runs/${stored.run_id}/verifications`, json({ top: 2 }))).text);
  const result = { verdict: 'does_not_fit', reason: 'no', mode: 'assign', seconds: 3, compiled_hbm_bytes_per_device: 9e9, peak_at: 'loss', parts: [], buffers: [{ bytes: 1, shape: 'f32[1]', part: null }], versions: { jax: '1' } };
  sql('api_schemas', `UPDATE verification_plans SET state = 'done', verdict = 'does_not_fit', compiled_hbm_bytes_per_device = 9e9, result = '${JSON.stringify(result)}'`);
  for (const path of ['', '/events'])
    await assertAnswer('get', `/v1/verifications/{verification_id}${path}`, `/v1/verifications/${verification.verification_id}${path}`);
  await assertAnswer('get', '/v1/runs/{run_id}', `/v1/runs/${stored.run_id}`);
  await assertAnswer('get', '/v1/runs/{run_id}/verifications', `/v1/runs/${stored.run_id}/verifications`);
  await assertAnswer('post', '/v1/runs/{run_id}/verifications', `/v1/runs/${stored.run_id}/verifications`, json({ rank: 0 }));
  await assertAnswer('delete', '/v1/verifications/{verification_id}', `/v1/verifications/${verification.verification_id}`);
  const sweep = JSON.parse((await assertAnswer('post', '/v1/sweeps', '/v1/sweeps', json({ kind: 'estimate', requests: [estimateRequest()] }))).text);
  const place = `/v1/sweeps/${sweep.sweep_id}`;
  await until('the sweep ends', async () => (await (await daemon.fetch(place)).json()).state === 'done');
  for (const path of ['', '/events', '/items/0', '/items/1']) await assertAnswer('get', `/v1/sweeps/{sweep_id}${path.replace(/\d/, '{item}')}`, place + path);
  await assertAnswer('get', '/v1/sweeps', '/v1/sweeps');
  await assertAnswer('delete', '/v1/sweeps/{sweep_id}', place);
  await assertAnswer('post', '/v1/advise', '/v1/advise', { ...json(adviseRequest({ search: { top_k: 7 } })), headers: { 'Content-Type': 'application/json', Prefer: 'respond-async' } });
  const calibration = JSON.parse((await assertAnswer('post', '/v1/calibrations', '/v1/calibrations', json({ project: 'p' }))).text);
  await assertAnswer('get', '/v1/calibrations', '/v1/calibrations');
  await assertAnswer('get', '/v1/calibrations/{calibration_id}', `/v1/calibrations/${calibration.calibration_id}`);
  for (const how of ['activate', 'revert']) await assertAnswer('post', `/v1/calibrations/{calibration_id}/${how}`, `/v1/calibrations/${calibration.calibration_id}/${how}`);
  await assertAnswer('post', '/v1/explain/oom', '/v1/explain/oom', json({ message: 'RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 35.50G of 31.25G hbm.', request: estimateRequest() }));
  await assertAnswer('get', '/v1/accuracy', '/v1/accuracy');
  await assertAnswer('get', '/v1/accuracy', '/v1/accuracy?limit=0');
  await assertAnswer('put', '/v1/baselines/{project}/{label}', '/v1/baselines/p/l', json({ run_id: stored.run_id }));
  await assertAnswer('get', '/v1/baselines/{project}/{label}', '/v1/baselines/p/l');
  await assertAnswer('get', '/v1/baselines/{project}/{label}', '/v1/baselines/p/l?history=true');
  await assertAnswer('get', '/v1/baselines', '/v1/baselines');
  await assertAnswer('delete', '/v1/baselines/{project}/{label}', '/v1/baselines/p/l', { headers: { 'If-Match': '"x"' } });
  await assertAnswer('delete', '/v1/runs/{run_id}', `/v1/runs/${stored.run_id}`);
  await assertAnswer('get', '/v1/compare', `/v1/compare?runs=${stored.run_id},${stored.run_id}`);
  for (const query of ['', '?fail_status=true'])
    await assertAnswer('post', '/v1/checks', `/v1/checks${query}`, json({ baseline: { run_id: stored.run_id }, candidate: estimateRequest(), limits: { step_time_increase_frac: -0.5 } }));
  for (const collection of ['models', 'chips', 'topologies', 'kernels', 'keys']) await assertAnswer('get', '/v1/catalog/{collection}', `/v1/catalog/${collection}`);
  for (const path of ['/livez', '/readyz', '/version', '/metrics', '/v1/openapi.json', '/']) await assertAnswer('get', path, path);
});
