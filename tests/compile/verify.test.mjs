// Verification for real: small plans before the installed MaxText and libtpu, and a verifier that is killed while they
// compile. Behind `make verify-test`; minutes, so not part of `make test`.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { freshDatabase, program, run, startDaemon, until } from '../api/daemon.mjs';

const MINUTES = 60000;
const model = {
  name: 'small', decoder_block: 'llama2', base_emb_dim: 1024, base_num_query_heads: 8, base_num_kv_heads: 8, head_dim: 128,
  base_mlp_dim: 4096, base_num_decoder_layers: 4, vocab_size: 32000, mlp_activations: ['silu', 'linear'],
};
const plan = (config = {}, flags = []) => ({
  model, cluster: { chip: 'v6e', topology: '2x2' },
  config: { per_device_batch_size: 2, max_target_length: 1024, ici_fsdp_parallelism: -1, attention: 'flash', remat_policy: 'full', ...config },
  xla_flags: flags,
});
const verify = async (request, ...args) => {
  const done = await run(['verify', '-', ...args], { input: JSON.stringify(request) });
  return { ...done, result: done.out ? JSON.parse(done.out).results[0] : undefined };
};
const options = { timeout: 5 * MINUTES }; // for each compile
let daemon;
let url;
before(async () => {
  url = freshDatabase('verify_for_real');
  daemon = await startDaemon({ database: url });
});
after(() => daemon.stop());

test('a small plan compiles, fits, and needs about what was predicted', options, async () => {
  const { status, err, result } = await verify(plan({}, ['--xla_sc_disjoint_spmem=true']));
  assert.equal(status, 0, err);
  assert.ok(Math.abs(result.hbm_error_frac) < 0.5, `${result.hbm_error_frac}`);
  assert.ok(result.buffers.length > 0 && result.parts.length > 3);
  assert.deepEqual(result.unknown_flags, ['xla_sc_disjoint_spmem']);
  const always = result.parts.find((part) => part.name === 'weights_and_optimizer_state');
  assert.ok(Math.abs(always.predicted_bytes_per_device / always.compiled_bytes_per_device - 1) < 0.02, 'weights are weights');
  const saved = result.parts.find((part) => part.name === 'saved_activations');
  assert.ok(Math.abs(saved.predicted_bytes_per_device / saved.compiled_bytes_per_device - 1) < 0.02, JSON.stringify(result.parts));
});

test('what does not fit is refused by XLA with its bytes', options, async () => {
  const { status, result } = await verify(plan({ per_device_batch_size: 256, remat_policy: 'minimal' }));
  assert.equal(status, 1);
  assert.equal(result.verdict, 'does_not_fit');
  assert.ok(result.compiled_hbm_bytes_per_device > result.hbm_limit_bytes_per_device);
});

test('what MaxText does not take is refused with its words', options, async () => {
  const { status, result } = await verify(plan({ ici_tensor_parallelism: 3, ici_fsdp_parallelism: 1 })).catch(() => ({}));
  assert.ok(status === 1 ? result.verdict === 'refused' : status === 2, 'by MaxText, or by us before it');
});

test('a step that XLA removes is no proof, and the keys that MaxText misses are named', { timeout: 3 * options.timeout }, async () => {
  const sparse = (config) => verify({ model: 'deepseek3.2-671b', cluster: { chip: 'v6e', topology: '4x4' }, config: {
    override_model_config: true, base_num_decoder_layers: 2, first_num_dense_layers: 1, num_experts: 16, per_device_batch_size: 1,
    max_target_length: 2048, ici_fsdp_parallelism: -1, attention: 'flash', use_tokamax_splash: true, remat_policy: 'full', ...config } });
  const empty = await sparse({ indexer_sparse_training: false });
  assert.equal(empty.status, 1, empty.err);
  assert.equal(empty.result.verdict, 'failed');
  assert.match(empty.result.reason, /holds no training step.*indexer_sparse_training/);
  const whole = await sparse({ indexer_sparse_training: true });
  assert.ok(['compiles', 'does_not_fit'].includes(whole.result.verdict), whole.result.reason);
  const { result } = await verify({ ...plan(), model: 'deepseek-custom', config: { ...plan().config, use_tokamax_splash: true } });
  assert.deepEqual(result.refused_keys, ['hf_access_token', 'tokenizer_path']);
});

test('killed in the middle of a compile, done once by another', options, async () => {
  const post = async (path, body) => (await daemon.post(path, body)).json();
  const stored = await post('/v1/estimate', { ...plan({ gradient_accumulation_steps: 2 }), store: true });
  const { verification_id: id } = await post(`/v1/runs/${stored.run_id}/verifications`, {});
  const get = async () => (await daemon.fetch(`/v1/verifications/${id}`)).json();
  const verifier = () => spawn(program, ['verifier', '--database-url', url, '--lease', '3', '--until-empty'], { stdio: 'ignore' });
  const lost = verifier();
  await until('it compiles', async () => ['tracing', 'compiling'].includes((await get()).result.stage), 2 * MINUTES);
  lost.kill('SIGKILL');
  await until('the lease is over', async () => {
    const other = verifier();
    await new Promise((resolve) => { other.on('close', resolve); });
    return (await get()).state === 'done';
  }, 4 * MINUTES);
  const done = await get();
  assert.equal(done.result.verdict, 'compiles');
  assert.equal(done.result.attempts, 2);
  const again = await post(`/v1/runs/${stored.run_id}/verifications`, {});
  assert.equal(again.state, 'done', 'answered from the store');
});
