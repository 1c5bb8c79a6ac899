import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { startDaemon, estimateRequest, adviseRequest, golden, freshDatabase, problem, sql } from './daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ database: freshDatabase('api_runs') }); });
after(() => daemon.stop());

const store = async (extra, headers) => {
  const response = await daemon.post('/v1/estimate', estimateRequest({ store: true, ...extra }), headers);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return { ...JSON.parse(text), text, headers: response.headers };
};
const get = async (path) => (await daemon.fetch(path)).json();

test('a stored answer is a run with its request and its answer as they were', async () => {
  const answer = await store({ project: 'alpha', label: 'nightly', git_ref: 'abc123' });
  assert.equal(answer.stored, true);
  const response = await daemon.fetch(`/v1/runs/${answer.run_id}`);
  const text = await response.text();
  const run = JSON.parse(text);
  assert.equal(run.run_id, answer.run_id);
  assert.deepEqual([run.kind, run.project, run.label, run.git_ref, run.model, run.chip], ['estimate', 'alpha', 'nightly', 'abc123', 'llama3.1-8b', 'v6e']);
  assert.equal(run.step_time_s, answer.step_time_s);
  assert.equal(run.hbm_bytes_per_device, answer.hbm_bytes_per_device);
  assert.deepEqual([run.fits, run.fit_verdict], [answer.fits, answer.fit_verdict]);
  assert.deepEqual(run.request, estimateRequest({ store: true, project: 'alpha', label: 'nightly', git_ref: 'abc123' }));
  assert.ok(text.includes(answer.text.trim()), 'the answer is kept byte for byte');
  assert.match(run.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.equal((await daemon.fetch(`/v1/runs/${answer.run_id}`, { headers: { 'If-None-Match': response.headers.get('etag') } })).status, 304);
});

test('an advise is stored too', async () => {
  const answer = await (await daemon.post('/v1/advise', adviseRequest({ store: true, label: 'advice' }))).json();
  const run = await get(`/v1/runs/${answer.run_id}`);
  assert.equal(run.kind, 'advise');
  assert.equal(run.response.ranked.length, answer.ranked.length);
  assert.equal(run.fit_verdict, answer.ranked[0].estimate.fit_verdict);
});

test('a list tells a tight run from one that fits and one that does not', async () => {
  const verdicts = [[1, 'fits'], [4, 'tight'], [16, 'does_not_fit']];
  for (const [batch] of verdicts)
    await daemon.post('/v1/estimate', { model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4' }, project: 'verdicts', store: true,
      config: { per_device_batch_size: batch, max_target_length: 8192, remat_policy: 'full' } });
  const { runs } = await get('/v1/runs?project=verdicts&sort=created_at');
  assert.deepEqual(runs.map(({ fits, fit_verdict }) => [fits, fit_verdict]), verdicts.map(([, verdict]) => [verdict !== 'does_not_fit', verdict]));
});

test('simulations and tunings are stored as runs of kind kernel, which have no plan to start, compare or check', async () => {
  for (const [path, name] of [['simulate', 'simulate-matmul.json'], ['tune', 'tune-tgmm.json']]) {
    const request = { ...JSON.parse(golden(name)), store: true, project: 'kernels', label: path, git_ref: 'abc123' };
    const answer = await (await daemon.post(`/v1/kernels/${path}`, request)).json();
    assert.equal(answer.stored, true);
    const run = await get(`/v1/runs/${answer.run_id}`);
    assert.deepEqual([run.kind, run.project, run.label, run.git_ref, run.chip, run.model], ['kernel', 'kernels', path, 'abc123', request.chip, null]);
    assert.deepEqual([run.step_time_s, run.hbm_bytes_per_device, run.fits, run.fit_verdict], [null, null, null, null]);
    assert.deepEqual(run.request, request);
    assert.deepEqual(run.response, answer);
    assert.deepEqual((await get(`/v1/runs?project=kernels&kind=kernel&label=${path}`)).runs.map((row) => row.run_id), [answer.run_id]);
    await problem(assert, await daemon.fetch(`/v1/runs/${answer.run_id}/artifacts/maxtext.sh`), 422, 'invalid-request');
    await problem(assert, await daemon.fetch(`/v1/compare?runs=${answer.run_id},${answer.run_id}`), 422, 'invalid-request');
    await problem(assert, await check({ baseline: { run_id: answer.run_id }, candidate: { run_id: answer.run_id } }), 422, 'invalid-request');
    await problem(assert, await daemon.post(`/v1/kernels/${path}`, { ...request, label: 'x'.repeat(96), store: 1 }), 422, 'invalid-request');
  }
});

test('runs are listed newest first, in pages that neither skip nor repeat while runs are added', async () => {
  const ids = [];
  for (let i = 0; i < 7; i++) ids.push((await store({ project: 'pages' })).run_id);
  const seen = [];
  let cursor = '';
  do {
    const page = await get(`/v1/runs?project=pages&limit=3${cursor && `&cursor=${cursor}`}`);
    assert.ok(page.runs.length <= 3);
    seen.push(...page.runs.map((run) => run.run_id));
    cursor = page.next_cursor;
    await store({ project: 'pages' });
  } while (cursor);
  assert.deepEqual(seen, ids.reverse());
});

test('runs are filtered by project, label, model, chip, kind and time', async () => {
  const before = new Date().toISOString();
  const mine = await store({ project: 'filters', label: 'one' });
  await store({ project: 'filters', label: 'two' });
  for (const query of ['label=one', 'project=filters&label=one', `label=one&since=${before}`, 'label=one&model=llama3.1-8b&chip=v6e&kind=estimate', 'label=one&chip=trillium', 'label=one&chip=V6E'])
    assert.deepEqual((await get(`/v1/runs?${query}`)).runs.map((run) => run.run_id), [mine.run_id], query);
  for (const query of ['label=one&chip=v5p', 'project=none', 'label=one&kind=advise', 'since=2200-01-01'])
    assert.deepEqual((await get(`/v1/runs?${query}`)).runs, [], query);
});

test('filters that cannot be read are refused', async () => {
  for (const query of ['limit=0', 'limit=201', 'limit=x', 'limit=%2B5', 'limit=%205', 'limit=05', 'limit=5.0', 'limit=4294967297',
     'cursor=x', 'since=yesterday', 'since=2026-13-40', 'since=2026-01-01T99:00:00Z', 'kind=tune', 'colour=red', 'chip=v9', 'chip=v6e-16'])
    await problem(assert, await daemon.fetch(`/v1/runs?${query}`), 400, 'bad-request');
});

test('quotes, percent signs and other scripts in names are just names', async () => {
  const label = '\'; DROP TABLE runs; -- "%_\\ 模型';
  const mine = await store({ project: 'odd', label });
  assert.deepEqual((await get(`/v1/runs?label=${encodeURIComponent(label)}`)).runs.map((run) => run.run_id), [mine.run_id]);
});

test('a run is deleted once, and then is not there', async () => {
  const { run_id: id } = await store({});
  assert.equal((await daemon.fetch(`/v1/runs/${id}`, { method: 'DELETE' })).status, 204);
  await problem(assert, await daemon.fetch(`/v1/runs/${id}`, { method: 'DELETE' }), 404, 'not-found');
  await problem(assert, await daemon.fetch(`/v1/runs/${id}`), 404, 'not-found');
  await problem(assert, await daemon.fetch('/v1/runs/not-an-id'), 404, 'not-found');
});

test('an Idempotency-Key stores once, however often and however concurrently it is sent', async () => {
  const key = { 'Idempotency-Key': `key-${Date.now()}` };
  const answers = await Promise.all(Array.from({ length: 8 }, () => store({ project: 'idem' }, key)));
  answers.push(await store({ project: 'idem' }, key));
  assert.equal(new Set(answers.map((answer) => answer.text.trim())).size, 1);
  assert.equal((await get('/v1/runs?project=idem')).runs.length, 1);
  assert.equal(answers[8].headers.get('idempotency-replayed'), 'true');
  await problem(assert, await daemon.post('/v1/estimate', estimateRequest({ store: true, project: 'other' }), key), 422, 'invalid-request');
  for (const bad of ['a b', 'x'.repeat(256)])
    await problem(assert, await daemon.post('/v1/estimate', estimateRequest({ store: true }), { 'Idempotency-Key': bad }), 400, 'bad-request');
});

test('a key is forgotten after a day', async () => {
  const key = { 'Idempotency-Key': 'old-key' };
  const first = await store({ project: 'old' }, key);
  sql('api_runs', 'UPDATE idempotency_keys SET created_at = now() - interval \'25 hours\' WHERE key = \'old-key\'');
  const second = await store({ project: 'old' }, key);
  assert.notEqual(first.run_id, second.run_id);
  assert.equal((await store({ project: 'old' }, key)).run_id, second.run_id);
});

test('a run gives the files to start it with', async () => {
  const advised = await (await daemon.post('/v1/advise', adviseRequest({ store: true }))).json();
  const single = await store({});
  const file = async (run, name, query = '') => daemon.fetch(`/v1/runs/${run}/artifacts/${name}${query}`);
  for (const name of ['maxtext.sh', 'maxtext.yml', 'libtpu.env', 'xpk.sh', 'gcluster.sh', 'jobset.yaml', 'verify.sh', 'report.md', 'trace.json', 'ranked.csv']) {
    const response = await file(advised.run_id, name);
    assert.equal(response.status, 200, `${name}: ${await response.clone().text()}`);
    assert.equal(response.headers.get('content-disposition'), `attachment; filename="${name}"`);
    assert.ok((await response.text()).length > 10, name);
  }
  const former = await file(advised.run_id, 'maxtext.yaml'); // its name until MaxText was found to refuse it
  assert.equal(former.headers.get('content-disposition'), 'attachment; filename="maxtext.yml"');
  const yaml = async (rank) => (await file(advised.run_id, 'maxtext.yml', `?rank=${rank}`)).text();
  assert.notEqual(await yaml(1), await yaml(2));
  assert.match(await (await file(single.run_id, 'maxtext.yml')).text(), /per_device_batch_size: 3/);
  await problem(assert, await file(advised.run_id, 'wings.txt'), 404, 'not-found');
  const csv = async (accept) => daemon.fetch(`/v1/runs/${advised.run_id}/artifacts/ranked.csv`, { headers: { Accept: accept } });
  await problem(assert, await csv('application/json'), 406, 'not-acceptable');
  assert.equal((await csv('text/csv')).status, 200);
  await problem(assert, await file('01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072', 'report.md'), 404, 'not-found');
  await problem(assert, await file(advised.run_id, 'report.md', '?rank=0'), 400, 'bad-request');
  assert.ok((await file(advised.run_id, 'report.md', '?rank=100')).status >= 400);
});

test('the files of a run are read by what they are for', async () => {
  const advised = await (await daemon.post('/v1/advise', adviseRequest({ store: true }))).json();
  const [{ estimate, config }] = advised.ranked;
  const file = async (name) => (await daemon.fetch(`/v1/runs/${advised.run_id}/artifacts/${name}`)).text();
  for (const name of ['maxtext.sh', 'xpk.sh', 'gcluster.sh', 'verify.sh']) {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: await file(name), encoding: 'utf8' });
    assert.equal(status, 0, `${name}: ${stderr}`);
  }
  assert.equal(parse(await file('maxtext.yml')).per_device_batch_size, config.per_device_batch_size);

  const job = parse(await file('jobset.yaml')).spec.replicatedJobs[0];
  const pod = job.template.spec.template.spec;
  const { hosts, chips, slices, topology } = advised.cluster;
  assert.deepEqual([job.replicas, job.template.spec.parallelism], [slices, hosts / slices]);
  assert.equal(pod.nodeSelector['cloud.google.com/gke-tpu-topology'], topology);
  assert.equal(pod.containers[0].resources.limits['google.com/tpu'], chips / hosts);
  const script = spawnSync('bash', ['-n'], { input: pod.containers[0].args[0], encoding: 'utf8' });
  assert.equal(script.status, 0, script.stderr);

  const { traceEvents } = JSON.parse(await file('trace.json'));
  const waited = traceEvents.filter(({ ph, tid }) => ph === 'X' && tid === 1);
  const sum = waited.reduce((total, { dur }) => total + dur, 0);
  assert.ok(Math.abs(sum - 1e6 * estimate.step_time_s) < 1, `${sum} us of ${estimate.step_time_s} s`);
  assert.deepEqual(waited.map(({ ts }) => ts), [...waited].sort((a, b) => a.ts - b.ts).map(({ ts }) => ts));
});

test('verify.sh tells what fits, what does not and what could not be compiled', async () => {
  const advised = await (await daemon.post('/v1/advise', adviseRequest({ store: true }))).json();
  const script = await (await daemon.fetch(`/v1/runs/${advised.run_id}/artifacts/verify.sh`)).text();
  const folder = mkdtempSync(join(tmpdir(), 'verify-'));
  const run = (words, status = 0) => { // with a compiler that says these words
    writeFileSync(join(folder, 'python3'), `#!/bin/bash\nprintf '%s\\n' "$@" > ${folder}/arguments\ncat <<'END'\n${words}\nEND\nexit ${status}\n`, { mode: 0o755 });
    return spawnSync('bash', ['-c', script], { encoding: 'utf8', env: { PATH: `${folder}:${process.env.PATH}` } });
  };
  try {
    const gib = 2 ** 30;
    const memory = (temp) => `Memory analysis: CompiledMemoryStats(generated_code_size_in_bytes=0, argument_size_in_bytes=${10 * gib}, output_size_in_bytes=${10 * gib}, alias_size_in_bytes=${10 * gib}, temp_size_in_bytes=${temp}, host_generated_code_size_in_bytes=7, host_argument_size_in_bytes=7)`;
    const fits = run(memory(6 * gib));
    assert.equal(fits.status, 0, fits.stderr);
    assert.match(fits.stdout, /^fits: XLA 16\.00 GiB per device, predicted [0-9.]+ GiB \([-+][0-9.]+ %\)/);
    const asked = spawnSync('cat', [join(folder, 'arguments')], { encoding: 'utf8' }).stdout.split('\n');
    assert.deepEqual(asked.slice(0, 2), ['-m', 'maxtext.trainers.pre_train.train_compile']);
    assert.ok(asked.includes(`compile_topology=${advised.cluster.accelerator}`));
    assert.ok(asked.includes(`compile_xla_flags=${advised.ranked[0].xla_flags.join(' ')}`));
    const over = run('jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 101.38G of 94.75G', 1);
    assert.equal(over.status, 1);
    assert.match(over.stderr, /Used 101\.38G of 94\.75G[^]*does not fit/);
    const broken = run('ModuleNotFoundError: No module named maxtext', 1);
    assert.equal(broken.status, 2);
    assert.match(broken.stderr, /No module named maxtext[^]*could not be compiled/);
    assert.equal(run('Finished train_compile.py successfully!').status, 2, 'no memory printed is not "fits"');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const measure = (run, body, query = '') => daemon.post(`/v1/runs/${run}/measurements${query}`, body);
const AT = '2026-11-20T10:00:00Z';

test('a measurement is kept beside its prediction, once however often it is sent', async () => {
  const run = await store({ project: 'measured' });
  const tokens = (run.tokens_per_s_per_chip * run.step_time_s) / 2;
  const body = { step_time_s: 2, tokens_per_s_per_chip: tokens, hbm_bytes_per_device: run.hbm_bytes_per_device / 2, source: 'nightly', at: AT };
  const first = await measure(run.run_id, body);
  assert.equal(first.status, 201, await first.clone().text());
  const row = await first.json();
  assert.ok(Math.abs(row.error_frac - (run.step_time_s / 2 - 1)) < 1e-9);
  assert.deepEqual([row.run_id, row.rank, row.source, row.at, row.hbm_error_frac], [run.run_id, 1, 'nightly', '2026-11-20T10:00:00.000000Z', 1]);
  assert.equal(row.inside_interval, run.step_time_low_s <= 2 && 2 <= run.step_time_high_s);
  const again = await measure(run.run_id, body);
  assert.deepEqual([again.status, (await again.json()).measurement_id], [200, row.measurement_id]);
  await problem(assert, await measure(run.run_id, { ...body, step_time_s: 2.001 }), 409, 'conflict');
  assert.equal((await measure(run.run_id, { ...body, at: '2026-11-21' })).status, 201);
  const list = (await get(`/v1/runs/${run.run_id}/measurements`)).measurements;
  assert.equal(list.length, 2);
  assert.equal(list[1].measurement_id, row.measurement_id, 'newest first');
  const gone = () => daemon.fetch(`/v1/runs/${run.run_id}/measurements/${row.measurement_id}`, { method: 'DELETE' });
  assert.equal((await gone()).status, 204);
  await problem(assert, await gone(), 404, 'not-found');
  assert.equal((await daemon.fetch(`/v1/runs/${run.run_id}`, { method: 'DELETE' })).status, 204);
  sql('api_runs', `DELETE FROM runs WHERE id = '${run.run_id}'`);
  assert.equal(sql('api_runs', `SELECT count(*) FROM measurements WHERE run_id = '${run.run_id}'`).trim(), '0', 'measurements go with their run when it is purged');
});

test('a training log is read as the median of its steps after the first', async () => {
  const advised = await (await daemon.post('/v1/advise', adviseRequest({ store: true, project: 'logged' }))).json();
  const { estimate } = advised.ranked[1];
  const per_device = (estimate.tokens_per_step / advised.cluster.devices);
  const line = (step, seconds) => `I1120 10:00:00 metric_logger.py:158] completed step: ${step}, seconds: ${seconds}, TFLOP/s/device: 400.1, Tokens/s/device: ${(per_device / seconds).toFixed(3)}, total_weights: 1, loss: 9.1\n`;
  const log = ['starting\n', line(0, 90), line(1, 0.1), line(2, 7), line(3, 5), line(4, 6), line(5, 5.5), 'done\n'].join('');
  const post = (text, query) => daemon.fetch(`/v1/runs/${advised.run_id}/measurements${query}`, { method: 'POST', body: text, headers: { 'Content-Type': 'text/plain' } });
  const drop = (id) => daemon.fetch(`/v1/runs/${advised.run_id}/measurements/${id}`, { method: 'DELETE' });
  const stored = await post(log, '?rank=2&source=night%20run');
  assert.equal(stored.status, 201, await stored.clone().text());
  const row = await stored.json();
  assert.deepEqual([row.measured_step_time_s, row.steps_count, row.rank, row.source], [5.5, 3, 2, 'night run']);
  assert.ok(Math.abs(row.measured_tokens_per_s_per_chip / (estimate.tokens_per_step / 5.5 / advised.cluster.chips) - 1) < 1e-3, 'of a chip');
  const half = log.replaceAll(/device: ([0-9.]+), total/g, (_, rate) => `device: ${rate / 2}, total`);
  const other = await problem(assert, await post(half, '?rank=2'), 422, 'invalid-request');
  assert.match(other.errors[0].detail, /another batch/);
  await problem(assert, await post('no steps here', ''), 422, 'invalid-request');
  const hosts = await (await post(log.replaceAll(/.*completed step.*\n/g, (one) => one.repeat(4)) + line(5, 5.4), '?rank=2&source=4%20hosts')).json();
  assert.deepEqual([hosts.measured_step_time_s, hosts.steps_count, hosts.warm_up_steps_count], [5.5, 3, 3], 'a step counts once, whoever tells of it');
  assert.equal((await drop(hosts.measurement_id)).status, 204);
  const large = Array.from({ length: 12000 }, (_, step) => line(step, 5.5)).join('');
  for (const body of [large, new Blob([large]).stream()]) { // by its length, and in chunks
    const tried = await daemon.fetch(`/v1/runs/${advised.run_id}/measurements?rank=2`, { method: 'POST', body, duplex: 'half', headers: { 'Content-Type': 'text/plain' } });
    const refused = await problem(assert, tried, 413, 'too-large');
    assert.match(refused.errors[0].hint, /tail -c 1000000/);
  }
  const end = await (await post(large.slice(-1000000), '?rank=2&source=end')).json();
  assert.ok(end.steps_count > 5000 && end.measured_step_time_s === 5.5, JSON.stringify(end));
  assert.equal((await drop(end.measurement_id)).status, 204);
  const coded = await daemon.fetch(`/v1/runs/${advised.run_id}/measurements`, { method: 'POST', body: gzipSync(log), headers: { 'Content-Type': 'text/plain', 'Content-Encoding': 'gzip' } });
  assert.match((await problem(assert, coded, 415, 'unsupported-media-type')).errors[0].hint, /uncompressed/);
  const early = await problem(assert, await post(line(0, 90) + line(1, 1) + line(2, 5), ''), 422, 'invalid-request');
  assert.match(early.errors[0].detail, /first steps/);
  await problem(assert, await post(log, '?rank=99'), 404, 'not-found');
  await problem(assert, await post(log, '?at=yesterday'), 400, 'bad-request');
  const again = await post(log, '?rank=2&source=night%20run');
  assert.deepEqual([again.status, (await again.json()).measurement_id], [200, row.measurement_id], 'a log that is sent again is no other measurement');
  assert.equal((await post(log, '?source=night%20run')).status, 201, 'of another plan it is one');
  assert.equal((await post(log.replace('seconds: 90', 'seconds: 91'), '?rank=2&source=night%20run')).status, 201, 'and so is the log of another training');
  assert.equal((await get(`/v1/runs/${advised.run_id}/measurements`)).measurements.length, 3);
});

test('a log that grows is one measurement, however often it is sent', async () => {
  const run = await store({ project: 'growing' });
  const line = (step, seconds) => `completed step: ${step}, seconds: ${seconds}, TFLOP/s/device: 400.1, loss: 9.1\n`;
  const log = (steps, warm, head = 'starting\n') => head + Array.from({ length: steps }, (_, step) => line(step, step < 3 ? 90 - step : warm + step / 1000)).join('');
  const post = async (text, status, query = '') => {
    const answer = await daemon.fetch(`/v1/runs/${run.run_id}/measurements${query}`, { method: 'POST', body: text, headers: { 'Content-Type': 'text/plain' } });
    assert.equal(answer.status, status, await answer.clone().text());
    return answer.json();
  };
  const warm = run.step_time_s;
  const first = await post(log(5, warm), 201);
  const grown = await post(log(50, warm), 200);
  assert.deepEqual([grown.measurement_id, grown.steps_count, grown.source], [first.measurement_id, 47, first.source]);
  assert.ok(grown.at > first.at && grown.measured_step_time_s > first.measured_step_time_s, 'its numbers are those of the longer log');
  assert.deepEqual(await post(log(50, warm), 200), grown, 'the same again is the same');
  assert.deepEqual(await post(log(5, warm), 200), grown, 'what was sent before, and comes late, changes nothing');
  const named = await post(log(60, warm), 200, '?source=later&at=2026-11-20');
  assert.deepEqual([named.measurement_id, named.steps_count, named.source, named.at], [first.measurement_id, 57, 'later', '2026-11-20T00:00:00.000000Z']);
  const sent = await Promise.all([70, 80, 90, 100].map((steps) => post(log(steps, warm), 200)));
  assert.equal(new Set(sent.map((one) => one.measurement_id)).size, 1);
  assert.equal((await get('/v1/accuracy?project=growing')).judged_count, 1);
  const other = await post(log(5, warm, 'starting another\n'), 201);
  const { judged_count: judged, rows } = await get('/v1/accuracy?project=growing');
  assert.deepEqual([judged, rows.map((one) => [one.measurement_id, one.steps_count])], [2, [[other.measurement_id, 2], [first.measurement_id, 97]]]);
  const at = await Promise.all(Array.from({ length: 4 }, (_, n) => daemon.fetch(`/v1/runs/${run.run_id}/measurements`,
    { method: 'POST', body: log(5 + n, warm, 'at once\n'), headers: { 'Content-Type': 'text/plain' } })));
  assert.deepEqual(at.map((one) => one.status).sort(), [200, 200, 200, 201], 'sent for the first time at one moment');
  assert.equal((await get('/v1/accuracy?project=growing')).judged_count, 3);
});

test('accuracy is predicted against measured, by chip and model and in all', async () => {
  const empty = await get('/v1/accuracy?project=nobody');
  assert.deepEqual([empty.rows, empty.groups, empty.judged_count, empty.median_abs_error_frac], [[], [], 0, null]);
  const run = await store({ project: 'accuracy' });
  for (const [at, factor] of [1.1, 0.9, 1.3, 1.01].entries())
    assert.equal((await measure(run.run_id, { step_time_s: run.step_time_s / factor, source: 's', at: `2026-11-1${at}` })).status, 201);
  const whole = await get('/v1/accuracy?project=accuracy');
  const close = (actual, expected) => assert.ok(Math.abs(actual - expected) < 1e-9, `${actual} is not ${expected}`);
  close(whole.median_abs_error_frac, 0.1);
  close(whole.p90_abs_error_frac, 0.3);
  close(whole.max_abs_error_frac, 0.3);
  close(whole.bias_frac, 0.055);
  close(whole.interval_coverage_frac, whole.rows.filter((row) => row.inside_interval).length / 4);
  assert.deepEqual(whole.groups.map(({ chip, model, judged_count }) => [chip, model, judged_count]), [['v6e', 'llama3.1-8b', 4]]);
  const page = await get('/v1/accuracy?project=accuracy&limit=3');
  const rest = await get(`/v1/accuracy?project=accuracy&limit=3&cursor=${page.next_cursor}`);
  assert.deepEqual([...page.rows, ...rest.rows].map((row) => row.measurement_id), whole.rows.map((row) => row.measurement_id));
  assert.deepEqual([rest.next_cursor, rest.judged_count], [null, 4]);
  assert.equal((await get('/v1/accuracy?project=accuracy&since=2026-11-12')).judged_count, 2);
  for (const bad of ['since=soon', 'since=2026-13-40', 'limit=0', 'cursor=x', 'colour=red'])
    await problem(assert, await daemon.fetch(`/v1/accuracy?${bad}`), 400, 'bad-request');
});

test('a measurement that cannot be is refused, every fault at once', async () => {
  const run = await store({});
  const faults = await problem(assert, await measure(run.run_id, { step_time_s: -1, source: '', speed: 3 }), 422, 'invalid-request');
  assert.deepEqual(faults.errors.map((error) => error.pointer).sort(), ['/at', '/source', '/speed', '/step_time_s']);
  const body = { step_time_s: 1, source: 's', at: AT };
  for (const at of ['2026-02-31', '2026-11-20T10:00:00Z+1', '2026-11-20T10', '2026-11-20T', '2026-11-20 10:00', '2026-11-20T10:00:00.Z', '2026-11-20T10:00:00+', '2026-11-20T10:00:00+1', '2026-11-20T10:00Zx', '2026-11-20T-10:00'])
    assert.equal((await problem(assert, await measure(run.run_id, { ...body, at }), 422, 'invalid-request')).errors[0].pointer, '/at', at);
  for (const at of ['2026-11-20', '2026-11-20T10:00', '2026-11-20T10:01:00.25', '2026-11-20T10:02Z', '2026-11-20T10:03:00.123456+05:30', '2026-11-20T10:04:00-0930', '2026-11-20T10:05:00+02'])
    assert.equal((await measure(run.run_id, { ...body, step_time_s: run.step_time_s, at })).status, 201, at);
  await problem(assert, await measure(run.run_id, { ...body, tokens_per_s_per_chip: 1 }), 422, 'invalid-request');
  await problem(assert, await measure(run.run_id, body, '?rank=2'), 404, 'not-found');
  await problem(assert, await measure('01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072', body), 404, 'not-found');
  await problem(assert, await daemon.fetch('/v1/runs/x/measurements'), 404, 'not-found');
});

test('a measurement of the future is refused: it would be the latest for ever', async () => {
  const run = await store({});
  const ahead = (minutes) => new Date(Date.now() + minutes * 60000).toISOString();
  const body = { step_time_s: 1, source: 's' };
  const refused = await problem(assert, await measure(run.run_id, { ...body, at: ahead(7) }), 422, 'out-of-range');
  assert.deepEqual([refused.errors[0].pointer, refused.errors[0].code], ['/at', 'out-of-range']);
  assert.match(refused.errors[0].detail, /more than 5 minutes ahead of the database's clock, \d{4}-/);
  for (const zero of ['0001-01-01T00:00:00Z', '1970-01-01']) { // what some languages write where no time was set
    const never = await problem(assert, await measure(run.run_id, { ...body, at: zero }), 422, 'out-of-range');
    assert.deepEqual([never.errors[0].pointer, never.errors[0].detail], ['/at', `${zero} is before 2018, when no step was measured`]);
  }
  assert.match(refused.errors[0].hint, /offset/);
  await problem(assert, await measure(run.run_id, { ...body, at: '9999-12-31' }), 422, 'out-of-range');
  const log = [0, 1, 2, 3, 4].map((step) => `completed step: ${step}, seconds: 5.0, TFLOP/s/device: 1.0, Tokens/s/device: ${run.tokens_per_step / run.cluster.devices / 5}, loss: 9\n`).join('');
  const post = (at) => daemon.fetch(`/v1/runs/${run.run_id}/measurements?at=${encodeURIComponent(at)}`, { method: 'POST', body: log, headers: { 'Content-Type': 'text/plain' } });
  const late = await problem(assert, await post(ahead(7)), 422, 'out-of-range');
  assert.equal(late.errors[0].pointer, '/query/at');
  assert.deepEqual((await get(`/v1/runs/${run.run_id}/measurements`)).measurements, []);
  assert.equal((await measure(run.run_id, { ...body, at: ahead(2) })).status, 201, 'clocks may be a little apart');
  const stored = await post(ahead(2));
  assert.equal(stored.status, 201, await stored.text());
});

test('two runs are compared, and the differences add up', async () => {
  const one = await store({});
  const request = estimateRequest({ store: true });
  request.config.per_device_batch_size = 2;
  const two = await (await daemon.post('/v1/estimate', request)).json();
  const response = await daemon.fetch(`/v1/compare?runs=${one.run_id},${two.run_id}`);
  assert.equal(response.status, 200, await response.clone().text());
  assert.equal((await response.json()).runs.length, 2);
  await problem(assert, await daemon.fetch(`/v1/compare?runs=${one.run_id}`), 400, 'bad-request');
  await problem(assert, await daemon.fetch('/v1/compare'), 400, 'bad-request');
  await problem(assert, await daemon.fetch(`/v1/compare?runs=${one.run_id},01a1fc9a-21ef-7bb3-a4fd-a2b739d7a072`), 404, 'not-found');
  await problem(assert, await daemon.fetch(`/v1/compare?runs=${Array(17).fill(one.run_id)}`), 400, 'bad-request');
});

const put = (path, body) => daemon.fetch(path, { method: 'PUT', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });

test('a baseline is put, moved, read, and protects its run', async () => {
  const one = await store({});
  const two = await store({});
  await problem(assert, await daemon.fetch('/v1/baselines/beta/main'), 404, 'not-found');
  assert.equal((await put('/v1/baselines/beta/main', { run_id: one.run_id })).status, 201);
  assert.equal((await put('/v1/baselines/beta/main', { run_id: two.run_id })).status, 200);
  const baseline = await get('/v1/baselines/beta/main');
  assert.deepEqual([baseline.project, baseline.label, baseline.run_id], ['beta', 'main', two.run_id]);
  await problem(assert, await daemon.fetch(`/v1/runs/${two.run_id}`, { method: 'DELETE' }), 409, 'conflict');
  assert.equal((await daemon.fetch(`/v1/runs/${one.run_id}`, { method: 'DELETE' })).status, 204);
  await problem(assert, await put('/v1/baselines/beta/main', { run_id: one.run_id }), 404, 'not-found');
  await problem(assert, await put('/v1/baselines/beta/main', { run_id: 'x' }), 422, 'invalid-request');
  const both = await problem(assert, await put(`/v1/baselines/${'p'.repeat(100)}/main`, { rum_id: 'x' }), 422, 'invalid-request');
  assert.ok(both.errors.length >= 2, 'the path and the body');
});

test('what a client may not do is no error of the database', async () => {
  const counts = async (name) => (await (await daemon.fetch('/metrics')).text()).match(new RegExp(`^tpu_advisor_${name}.* \\d+$`, 'gm'));
  const errors = await counts('db_errors_total');
  const refused = async () => Number((await counts('db_refusals_total'))[0].split(' ')[1]);
  const before = await refused();
  const kept = await store({});
  assert.equal((await put('/v1/baselines/counted/main', { run_id: kept.run_id })).status, 201);
  await problem(assert, await daemon.fetch(`/v1/runs/${kept.run_id}`, { method: 'DELETE' }), 409, 'conflict');
  await problem(assert, await daemon.fetch('/v1/runs?since=2026-02-30'), 400, 'bad-request');
  assert.deepEqual(await counts('db_errors_total'), errors);
  assert.equal(await refused(), before + 2);
});

const check = (body, query = '', headers = {}) => daemon.post(`/v1/checks${query}`, body, headers);

test('a candidate that equals its baseline passes with limits of zero', async () => {
  const { run_id: id } = await store({});
  const response = await check({ baseline: { run_id: id }, candidate: estimateRequest(), limits: { step_time_increase_frac: 0, hbm_increase_frac: 0, must_fit: true } }, '?fail_status=true');
  const verdict = await response.json();
  assert.equal(response.status, 200);
  assert.equal(verdict.verdict, 'pass');
  assert.deepEqual(verdict.reasons, []);
  assert.equal(verdict.baseline.run_id, id);
  assert.equal(verdict.step_time_increase_frac, 0);
});

test('a slower candidate fails with the reason and the numbers, as 409 when asked', async () => {
  const { run_id: id } = await store({ project: 'gate', label: 'main' });
  const candidate = estimateRequest();
  candidate.config.remat_policy = 'full';
  const body = { baseline: { run_id: id }, candidate, limits: { step_time_increase_frac: 0.01, must_fit: false } };
  const plain = await check(body);
  assert.equal(plain.status, 200);
  const verdict = await plain.json();
  assert.equal(verdict.verdict, 'fail');
  assert.deepEqual(verdict.reasons.map((reason) => reason.code), ['step_time']);
  assert.ok(verdict.step_time_increase_frac > 0.01);
  assert.equal((await check(body, '?fail_status=true')).status, 409);
  const markdown = await check(body, '', { Accept: 'text/markdown' });
  assert.equal(markdown.headers.get('content-type'), 'text/markdown; charset=utf-8');
  assert.match(await markdown.text(), /^## TPU Advisor: fail/);
  const junit = await check(body, '?fail_status=true', { Accept: 'application/junit+xml' });
  assert.equal(junit.status, 409);
  assert.match(await junit.text(), /<testsuite name="tpu-advisor" tests="1" failures="1">/);
  await problem(assert, await check(body, '', { Accept: 'image/png' }), 406, 'not-acceptable');
  await problem(assert, await check(body, '?fail_status=maybe'), 400, 'bad-request');
});

test('a candidate that no longer fits fails', async () => {
  const { run_id: id } = await store({});
  const candidate = estimateRequest();
  candidate.config.per_device_batch_size = 64;
  const verdict = await (await check({ baseline: { run_id: id }, candidate })).json();
  assert.equal(verdict.verdict, 'fail');
  assert.deepEqual(verdict.reasons.map((reason) => reason.code), ['does_not_fit']);
});

test('a candidate whose kernels do not compile for want of VMEM fails', async () => {
  const { run_id: id } = await store({});
  const candidate = estimateRequest();
  Object.assign(candidate.config, { attention: 'flash', sa_block_q: 4096, sa_block_kv: 8192, sa_block_kv_compute: 8192 });
  const limits = { step_time_increase_frac: 10 };
  const verdict = await (await check({ baseline: { run_id: id }, candidate, limits })).json();
  assert.equal(verdict.verdict, 'fail');
  assert.deepEqual(verdict.reasons.map((reason) => reason.code), ['kernel_over_vmem']);
  assert.match(verdict.reasons[0].detail, /does not start: splash_fwd.* of VMEM/);
  const junit = await (await check({ baseline: { run_id: id }, candidate, limits }, '', { Accept: 'application/junit+xml' })).text();
  assert.match(junit, /failures="1"[^]*kernels fit in VMEM[^]*<failure/);
});

test('an advised plan whose pinned tiles do not compile fails', async () => {
  const pins = { attention: 'flash', sa_block_q: 8192, sa_block_kv: 8192, sa_block_kv_compute: 8192 };
  const request = { model: 'llama3.1-8b', cluster: { chip: 'v5e', topology: '4x4' }, workload: { seq_len: 8192, per_device_batch_size: 1 }, search: { top_k: 1 }, store: true };
  const advise = async (body) => (await daemon.fetch('/v1/advise', { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } })).json();
  const free = await advise(request);
  const pinned = await advise({ ...request, pins });
  const verdict = await (await check({ baseline: { run_id: free.run_id }, candidate: { run_id: pinned.run_id }, limits: { step_time_increase_frac: 10 } })).json();
  assert.deepEqual(verdict.reasons.map((reason) => reason.code), ['kernel_over_vmem']);
});

test('a candidate can be stored by the check', async () => {
  const { run_id: id } = await store({});
  const verdict = await (await check({ baseline: { run_id: id }, candidate: estimateRequest({ store: true, project: 'checked' }) })).json();
  assert.equal((await get('/v1/runs?project=checked')).runs[0].run_id, verdict.candidate.run_id);
});

test('mistakes of a check are named with their places', async () => {
  const { run_id: id } = await store({});
  const candidate = estimateRequest({ stoer: true });
  const inside = await problem(assert, await check({ baseline: { run_id: id }, candidate }), 422, 'invalid-request');
  assert.ok(inside.errors.some((error) => error.pointer === '/candidate/stoer'));
  const outside = await problem(assert, await check({ baselin: {}, limits: { must_fit: 1, step_time_increase_percent: 3, tokens_per_s_per_chip_decrease_frac: 1 } }), 422, 'invalid-request');
  const pointers = outside.errors.map((error) => error.pointer);
  for (const pointer of ['/baselin', '/baseline', '/candidate', '/limits/must_fit', '/limits/step_time_increase_percent', '/limits/tokens_per_s_per_chip_decrease_frac']) assert.ok(pointers.includes(pointer), pointer);
});

test('the database refuses to change a run', () => {
  assert.throws(() => sql('api_runs', 'UPDATE runs SET label = \'x\''), /immutable/);
  assert.throws(() => sql('api_runs', 'TRUNCATE runs CASCADE'), /immutable/);
});
