#!/usr/bin/env node
// Stands in for the program that asks the real compiler: speaks the same lines, does what FAKE says at once or slowly.
// Notes each start in FAKE_LOG, so that a test can count who compiled what.
import { appendFileSync, readFileSync } from 'node:fs';

const say = (members) => process.stdout.write(`${JSON.stringify(members)}\n`);
const sleep = (seconds) => new Promise((resolve) => { setTimeout(resolve, seconds * 1000); });
const plan = JSON.parse(readFileSync(0, 'utf8'));
const whole = process.argv.includes('--whole');
const [kind, seconds] = (process.env.FAKE ?? 'fits').split(':');
if (process.env.FAKE_LOG) appendFileSync(process.env.FAKE_LOG, `${process.pid} ${plan.config.model_name} ${kind}\n`);

const result = (members) => ({
  result: {
    verdict: 'compiles', mode: whole ? 'whole' : 'assign', compiled_hbm_bytes_per_device: 21e9, hbm_limit_bytes_per_device: null,
    argument_bytes_per_device: 12e9, peak_at: 'loss', parts: [{ name: 'logits', bytes: 5e9 }, { name: 'other', bytes: 1e9 }],
    buffers: [{ bytes: 5e9, count: 1, shape: 'bf16[2,8192,128256]', part: 'logits', at: 'loss', operation: 'dot' }],
    refused_keys: [], unknown_flags: [], refused_flags: [], reason: null,
    versions: { maxtext: '0.2.5', jax: '0.12.0.1', libtpu: '0.0.50.1' }, seconds: 1, ...members,
  },
});

say({ stage: 'starting', seconds: 0 });
if (kind === 'silent') { process.stderr.write('Traceback: no such module\n'); process.exit(3); }
if (kind === 'hog') { const held = Buffer.alloc(1.5 * 2 ** 30, 1); await sleep(60); process.exit(held.length); }
say({ stage: 'compiling', seconds: 0 });
await sleep(Number(seconds ?? 0));
if (kind === 'oom') say(result({ verdict: 'does_not_fit', compiled_hbm_bytes_per_device: 40e9, hbm_limit_bytes_per_device: 33.5e9, reason: 'XLA needs more than the device has' }));
else if (kind === 'refused') say(result({ verdict: 'refused', refused_keys: ['sa_block_z'], compiled_hbm_bytes_per_device: null, reason: 'this MaxText does not know: sa_block_z' }));
else if (kind === 'first_refused') say(result(plan.config.per_device_batch_size > Number(seconds ?? 0) ? { verdict: 'does_not_fit', compiled_hbm_bytes_per_device: 40e9 } : {}));
else if (kind === 'no_bytes') say(result({ compiled_hbm_bytes_per_device: null }));
else say(result({}));
