// What people write into a request comes out in lists, logs, reports and files: none of it has control characters, and the
// answer says which member has.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { estimateRequest, freshDatabase, problem, startDaemon } from './daemon.mjs';

let daemon, run;
before(async () => {
  daemon = await startDaemon({ database: freshDatabase('api_texts') });
  const stored = await (await daemon.post('/v1/estimate', estimateRequest({ store: true, project: 'p', label: 'l' }))).json();
  run = `/v1/runs/${stored.run_id}`;
});
after(() => daemon.stop());

const model = (name) => ({
  name, decoder_block: 'llama2', base_emb_dim: 1024, base_num_query_heads: 8, base_num_kv_heads: 8, head_dim: 128, base_mlp_dim: 4096,
  base_num_decoder_layers: 4, vocab_size: 32000, mlp_activations: ['silu', 'linear'],
});
const config = (extra) => ({ config: { ...estimateRequest().config, ...extra } });
const sweep = (extra) => ({ kind: 'estimate', requests: [estimateRequest()], ...extra });
const members = (text) => [
  ['/label', '/v1/estimate', estimateRequest({ label: text })],
  ['/project', '/v1/estimate', estimateRequest({ project: text })],
  ['/git_ref', '/v1/estimate', estimateRequest({ git_ref: text })],
  ['/tags/0', '/v1/estimate', estimateRequest({ tags: [text] })],
  ['/model/name', '/v1/estimate', estimateRequest({ model: model(text) })],
  ['/config/run_name', '/v1/estimate', estimateRequest(config({ run_name: text }))],
  [`/config/${text}`, '/v1/estimate', estimateRequest(config({ [text]: 1 }))],
  ['/source', `${run}/measurements`, { step_time_s: 1, source: text, at: '2026-11-20' }],
  ['/project', '/v1/calibrations', { project: text }],
  ['/label', '/v1/sweeps', sweep({ label: text })],
  ['/project', '/v1/sweeps', sweep({ project: text })],
  ['/baseline/label', '/v1/checks', { baseline: { project: 'p', label: text }, candidate: { run_id: run.slice(9) }, limits: { must_fit: true } }],
];

test('control characters are refused wherever a text is free, and the member is named', async () => {
  for (const character of ['\u0007', '\u001b', '\n', '\t', '\u007f', '\u0085', '\u2028', '\u202e', '\u2066', '\ufffe', '\uffff'])
    for (const [pointer, path, body] of members(`a${character}b`)) {
      const { errors } = await problem(assert, await daemon.post(path, body), 422, 'invalid-request');
      assert.deepEqual(errors.map((error) => error.pointer), [pointer], JSON.stringify(errors));
      assert.match(errors[0].detail, /control characters/);
    }
  const log = 'completed step: 1, seconds: 1.0\n'.repeat(20);
  const named = await daemon.post(`${run}/measurements?source=a%1Bb`, log, { 'Content-Type': 'text/plain' });
  assert.equal((await problem(assert, named, 400, 'bad-request')).errors[0].pointer, '/query/source');
  const flagged = await daemon.post('/v1/estimate', estimateRequest({ xla_flags: ['--xla_tpu_spmd_rng_bit_generator_unsafe=\u001b[2J'] }));
  assert.equal((await problem(assert, flagged, 422, 'invalid-request')).errors[0].pointer, '/xla_flags/0');
});

test('other letters are welcome, and lines where a text has lines', async () => {
  for (const [, path, body] of members('größe-日本語-😀-é').filter(([pointer]) => !pointer.startsWith('/config') && !pointer.startsWith('/baseline'))) {
    const answer = await daemon.post(path, body);
    assert.ok(answer.status < 300 || /has no measurements/.test(await answer.text()), `${path} ${JSON.stringify(body).slice(0, 80)}`);
  }
  for (const flags of ['--xla_tpu_scoped_vmem_limit_kib=98304 \\\n\t--xla_tpu_enable_data_parallel_all_reduce_opt=true\r\n', ['--xla_tpu_scoped_vmem_limit_kib=98304\n']])
    assert.equal((await daemon.post('/v1/estimate', estimateRequest({ xla_flags: flags }))).status, 200);
  const message = '\u001b[31mRESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 40.00G of 31.25G hbm. Exceeded hbm capacity by 8.75G.\u001b[0m\n';
  assert.equal((await daemon.post('/v1/explain/oom', { message })).status, 200);
});
