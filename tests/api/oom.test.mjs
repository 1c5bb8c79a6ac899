// The answer to somebody who pastes an out-of-memory message: which memory, whose tensors, which keys, and what to change at which price.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { estimateRequest, problem, startDaemon } from './daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon.stop());

const GiB = 2 ** 30;
const near = (actual, expected) => assert.ok(Math.abs(actual / expected - 1) < 1e-9, `${actual} is not ${expected}`);
const hbm = `jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 35.50G of 31.25G hbm. Exceeded hbm capacity by 4.25G.

Total hbm usage >= 35.75G:
    reserved        256.00M
    program          27.25G
    arguments         8.25G

  Largest program allocations in hbm:

  1. Size: 16.00G
     Operator: op_name="jit(train_step)/jit(main)/transpose(jvp(Transformer))/decoder/while/body/checkpoint/layers/mul"
     Shape: bf16[32,4,8192,8192]{3,2,1,0:T(8,128)(2,1)}
     Unpadded size: 16.00G
     XLA label: fusion.1
     Allocation type: HLO temp
     ==========================

  2. Size: 3.91G
     Operator: op_name="jit(train_step)/jit(main)/jvp(Transformer)/decoder/logits_dense/dot_general"
     Shape: f32[4,8192,32000]{2,1,0:T(8,128)}
     Unpadded size: 3.91G
     Allocation type: HLO temp
     ==========================
`;
const explain = async (body, type = 'text/plain') => {
  const response = await daemon.fetch('/v1/explain/oom', { method: 'POST', headers: { 'Content-Type': type }, body });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
};

test('a compiler message gives the memory, the buffers, their tensors and keys', async () => {
  const told = await explain(hbm);
  assert.deepEqual([told.memory_space, told.at_run_time], ['hbm', false]);
  near(told.used_bytes, 35.5 * GiB);
  near(told.limit_bytes, 31.25 * GiB);
  near(told.exceeded_bytes, 4.25 * GiB);
  near(told.program_bytes, 27.25 * GiB);
  near(told.reserved_bytes, 256 * 2 ** 20);
  assert.deepEqual(told.buffers.map((buffer) => buffer.part), ['saved_activations', 'logits']);
  near(told.buffers[1].bytes, 3.91 * GiB);
  assert.ok(told.buffers[0].shape.startsWith('bf16[32,4,8192,8192]'));
  assert.ok(told.buffers[0].keys.includes('remat_policy') && told.buffers[1].keys.includes('num_vocab_tiling'));
  assert.deepEqual([told.predicted, told.levers.length], [null, 0]);
});

test('host memory, VMEM and the allocator at run time are told apart', async () => {
  const vmem = await explain('RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for %splash. Scoped allocation with size 17.07M and limit 16.00M exceeded scoped vmem limit by 1.07M.');
  assert.equal(vmem.memory_space, 'vmem');
  near(vmem.limit_bytes, 16 * 2 ** 20);
  near(vmem.exceeded_bytes, 1.07 * 2 ** 20);
  assert.ok(vmem.keys.includes('sa_block_kv'));
  const host = await explain('RESOURCE_EXHAUSTED: Ran out of memory in memory space host. Used 400.00G of 360.00G host. Exceeded host capacity by 40.00G.');
  assert.equal(host.memory_space, 'host');
  assert.ok(host.keys.includes('optimizer_memory_host_offload'));
  const late = await explain('RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 8.00G. That was not possible. There are 4.50G free.; (0x0x0_HBM0)');
  assert.deepEqual([late.memory_space, late.at_run_time, late.used_bytes], ['hbm', true, null]);
  near(late.exceeded_bytes, 3.5 * GiB);
  const loading = await explain('RESOURCE_EXHAUSTED: Error loading program: Attempting to reserve 12.50G at the bottom of memory. That was not possible. There are 10.25G free, 0B reserved, and 9.00G reservable.');
  assert.deepEqual([loading.memory_space, loading.at_run_time, loading.used_bytes], ['hbm', true, null]);
  near(loading.exceeded_bytes, 3.5 * GiB);
});

test('with the request the nearest plans that fit are given with their price, by the count of the compiler', async () => {
  const request = estimateRequest();
  Object.assign(request.config, { per_device_batch_size: 8, remat_policy: 'minimal' });
  const told = await explain(JSON.stringify({ message: hbm, request }), 'application/json');
  assert.ok(told.predicted.hbm_bytes_per_device > 0);
  assert.ok(told.levers.length > 0, JSON.stringify(told.near_misses)?.slice(0, 800));
  const allowed = told.predicted.hbm_limit_bytes_per_device * Math.min(1, told.predicted.hbm_bytes_per_device / told.used_bytes);
  for (const lever of told.levers) {
    assert.ok(lever.hbm_bytes_per_device <= allowed, `${lever.hbm_bytes_per_device} of ${allowed}`);
    assert.ok(lever.changes_from_baseline.length >= 1);
    near(1 + lever.step_time_increase_frac, lever.step_time_s / told.predicted.step_time_s);
  }
});

test('what is no such message, or a wrong request, is said', async () => {
  const none = await problem(assert, await daemon.post('/v1/explain/oom', { message: 'Segmentation fault' }), 422, 'invalid-request');
  assert.equal(none.errors[0].pointer, '/message');
  const wrong = await problem(assert, await daemon.post('/v1/explain/oom', { message: hbm, request: { ...estimateRequest(), nonsense: 1 } }), 422, 'invalid-request');
  assert.ok(wrong.errors.some((error) => error.pointer === '/request/nonsense'), JSON.stringify(wrong.errors));
  await problem(assert, await daemon.post('/v1/explain/oom', { request: {}, more: 1 }), 422, 'invalid-request');
});
