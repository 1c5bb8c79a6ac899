// `tpu-advisor verify`: the documents it takes, what it prints, how it leaves, and the limits of its child.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync, mkdtempSync } from 'node:fs';
import { adviseRequest, estimateRequest, join, root, run, scratchFolder, writeFileSync } from './daemon.mjs';

const fake = join(root, 'tests/api/fake_compiler.mjs');
const verify = (document, args = [], env = {}) => run(['verify', '-', ...args],
  { env: { TPU_ADVISOR_COMPILER: fake, ...env }, input: typeof document === 'string' ? document : JSON.stringify(document) });
const request = estimateRequest();

test('a plan that compiles leaves with 0 and stands beside the prediction', async () => {
  const done = await verify(request);
  assert.equal(done.status, 0, done.err);
  const { results: [result], first_proven_rank: proven } = JSON.parse(done.out);
  const estimate = JSON.parse((await run(['estimate', '-'], { input: JSON.stringify(request) })).out);
  assert.equal(proven, 1);
  assert.equal(result.verdict, 'compiles');
  assert.equal(result.predicted_hbm_bytes_per_device, estimate.hbm_bytes_per_device);
  assert.ok(Math.abs(result.hbm_error_frac - (estimate.hbm_bytes_per_device / 21e9 - 1)) < 1e-9);
  assert.equal(result.hbm_limit_bytes_per_device, estimate.hbm_limit_bytes_per_device);
  const logits = result.parts.find((part) => part.name === 'logits');
  assert.equal(logits.compiled_bytes_per_device, 5e9);
  assert.equal(logits.predicted_bytes_per_device, estimate.hbm_parts.find((part) => part.name === 'logits' && part.at === 'loss').bytes);
  const always = result.parts.find((part) => part.name === 'weights_and_optimizer_state');
  assert.ok(Math.abs(always.predicted_bytes_per_device
    - estimate.hbm_parts.filter((part) => part.at === 'always').reduce((sum, part) => sum + part.bytes, 0)) < 1);
  assert.match(done.err, /plan 1: compiling/);
});

test('a plan that does not fit, or is refused, leaves with 1 and the reason', async () => {
  const oom = await verify(request, [], { FAKE: 'oom' });
  assert.equal(oom.status, 1, oom.err);
  assert.equal(JSON.parse(oom.out).results[0].verdict, 'does_not_fit');
  assert.equal(JSON.parse(oom.out).first_proven_rank, null);
  const refused = await verify(request, ['--text'], { FAKE: 'refused' });
  assert.equal(refused.status, 1);
  assert.match(refused.out, /plan 1: refused: this MaxText does not know: sa_block_z/);
  assert.match(refused.out, /refused keys: sa_block_z/);
});

test('the word of other releases than those that the plan is for says so', async () => {
  const note = 'the plan is for maxtext 0.2.4, jax 0.12.0.1, libtpu 0.0.50.1, and this is the word of maxtext 0.2.5, jax 0.12.0.1, libtpu 0.0.50.1: ';
  const older = { ...request, software: { maxtext: '0.2.4' } };
  const done = await verify(older);
  assert.equal(done.status, 0, done.err);
  assert.ok(JSON.parse(done.out).results[0].note.startsWith(note), done.out);
  assert.ok((await verify(older, ['--text'])).out.includes(`\nnote: ${note}`));
  for (const same of [request, { ...request, software: { maxtext: '0.2.5' } }]) assert.ok(!('note' in JSON.parse((await verify(same)).out).results[0]));
});

test('a stored answer, a request of advise and a run are taken alike', async () => {
  const advise = adviseRequest({ search: { top_k: 3 } });
  const answer = (await run(['advise', '-'], { input: JSON.stringify(advise) })).out;
  const stored = { run_id: 'x', request: advise, response: JSON.parse(answer) };
  const bytes = [];
  for (const document of [advise, JSON.parse(answer), stored]) {
    const done = await verify(document, ['--rank', '2']);
    assert.equal(done.status, 0, done.err);
    const { results: [result] } = JSON.parse(done.out);
    assert.equal(result.rank, 2);
    bytes.push(result.predicted_hbm_bytes_per_device);
  }
  assert.deepEqual(bytes, Array(3).fill(JSON.parse(answer).ranked[1].estimate.hbm_bytes_per_device));
  const top = await verify(answer, ['--top', '9']);
  assert.equal(JSON.parse(top.out).results.length, 3, 'no more than there are');
});

test('a recipe is taken as it lies in a repository, with the same plan as its estimate', async () => {
  const plain = JSON.parse((await run(['estimate', '-'], { input: JSON.stringify(request) })).out);
  const answer = { ...plain, xla_flags: plain.xla_flags ?? request.xla_flags };
  const artifact = async (name) => (await run(['artifact', name, '-'], { input: JSON.stringify(answer) })).out;
  for (const [name, args] of [['maxtext.sh', []], ['maxtext.yml', ['--xla_flags', answer.xla_flags.join(' ')]], ['xpk.sh', []], ['jobset.yaml', []], ['verify.sh', []]]) {
    const text = await artifact(name);
    const estimate = await run(['estimate', '-', ...args], { input: text });
    const done = await verify(text, args);
    assert.equal(done.status, 0, `${name}: ${done.err}`);
    assert.equal(JSON.parse(done.out).results[0].predicted_hbm_bytes_per_device, JSON.parse(estimate.out).hbm_bytes_per_device, name);
    assert.equal(JSON.parse(done.out).results[0].predicted_hbm_bytes_per_device, answer.hbm_bytes_per_device, name);
  }
  const yaml = `model: llama3.1-8b\ncluster: {chip: v6e, topology: 4x4}\nworkload: {seq_len: 4096, per_device_batch_size: 1}\n`;
  const advised = await verify(yaml);
  assert.equal(advised.status, 0, advised.err);
  const script = await artifact('maxtext.sh');
  const elsewhere = JSON.parse((await run(['estimate', '-', '--chip', 'tpu7x', '--topology', '2x2x1'], { input: script })).out);
  assert.deepEqual([elsewhere.cluster.chip, elsewhere.cluster.topology], ['tpu7x', '2x2x1'], 'what is given beside the file counts');
  const flagless = JSON.parse((await run(['estimate', '-'], { input: await artifact('maxtext.yml') })).out);
  assert.ok(flagless.warnings.some((warning) => warning.code === 'recipe-flags'), 'its flags stand in another file');
  const nowhere = await verify(script.replace(/^# .* predicted .*$/m, '# another script'));
  assert.equal(nowhere.status, 2);
  assert.match(nowhere.err, /cluster is missing/);
});

test('members and keys beside a request count; beside an answer they are refused', async () => {
  const bytes = async (args) => JSON.parse((await verify(request, args)).out).results[0].predicted_hbm_bytes_per_device;
  assert.ok(await bytes(['--per_device_batch_size', '1']) < await bytes(['--per_device_batch_size=4']));
  const { config, ...plain } = request;
  assert.equal((await verify({ ...plain, recipe: `python3 -m maxtext.trainers.pre_train.train base.yml ${Object.entries(config).map((pair) => pair.join('=')).join(' ')}` })).status, 0);
  const answer = (await run(['estimate', '-'], { input: JSON.stringify(request) })).out;
  const refused = await verify(answer, ['--per_device_batch_size', '1']);
  assert.equal(refused.status, 2);
  assert.match(refused.err, /per_device_batch_size changes nothing in an answer/);
});

test('what is no plan is bad input', async () => {
  for (const [document, args] of [['{', []], ['{"a":1}', []], ['{"ranked":[]}', []], [{ ...request, model: 'llama9' }, []], [request, ['--rank', '2']]]) {
    const done = await verify(document, args);
    assert.equal(done.status, 2, JSON.stringify(document));
    assert.equal(done.out, '');
    assert.ok(JSON.parse(done.err.slice(done.err.indexOf('{'))).errors.length > 0);
  }
  for (const args of [['--rank', '0'], ['--rank', '1', '--top', '2'], ['--nope'], ['--timeout', 'x']])
    assert.equal((await verify(request, args)).status, 2, args.join(' '));
});

test('without an environment it leaves with 3 and names the command that makes one', async () => {
  const { folder, remove } = scratchFolder();
  const done = await run(['verify', '-'], { env: { TPU_ADVISOR_COMPILE_ENV: join(folder, 'none') }, input: JSON.stringify(request) });
  remove();
  assert.equal(done.status, 3, done.err);
  assert.equal(done.out, '');
  assert.match(done.err, /tpu-advisor verify --install/);
});

test('a child that says nothing, takes too long or too much memory is a failed verdict, and nothing is left', async () => {
  const place = mkdtempSync('/tmp/tpu-advisor-verify-test-');
  const silent = await verify(request, [], { FAKE: 'silent', TMPDIR: place });
  assert.equal(silent.status, 1, silent.err);
  assert.match(JSON.parse(silent.out).results[0].reason, /status 3 and gave no result: Traceback: no such module/);
  const hog = await verify(request, ['--memory-gib', '1'], { FAKE: 'hog', TMPDIR: place });
  assert.equal(hog.status, 1, hog.err);
  assert.equal(JSON.parse(hog.out).results[0].verdict, 'failed');
  assert.match(JSON.parse(hog.out).results[0].reason, /GiB of this machine's memory, 1 GiB are allowed/);
  const slow = await verify(request, ['--timeout', '1'], { FAKE: 'fits:60', TMPDIR: place });
  assert.match(JSON.parse(slow.out).results[0].reason, /not compiled within 1 s/);
  assert.deepEqual(readdirSync(place), []);
  rmSync(place, { recursive: true });
});

test('what is put before the compiler is the same text for the same plan', async () => {
  const { folder, remove } = scratchFolder();
  const seen = join(folder, 'seen.sh');
  writeFileSync(seen, `#!/bin/sh\ncat >> ${folder}/plans; echo >> ${folder}/plans\n`, { mode: 0o755 });
  const turned = { ...request, config: Object.fromEntries(Object.entries(request.config).reverse()) };
  for (const document of [request, turned]) await verify(document, [], { TPU_ADVISOR_COMPILER: seen });
  const { readFileSync } = await import('node:fs');
  const [first, second] = readFileSync(join(folder, 'plans'), 'utf8').trim().split('\n');
  remove();
  assert.equal(first, second);
  const plan = JSON.parse(first);
  assert.deepEqual(Object.keys(plan), ['cluster', 'config', 'xla_flags']);
  assert.equal(plan.config.model_name, request.model);
});

// Operations of a compiled step in the order of its schedule: [name, op_name, bytes]. XLA gives the iteration that it takes
// out of a loop no op_name for its loop, and fuses small matmuls anywhere.
const layer = (differentiated, inLoop) => `jit(train_step)/${differentiated}/${inLoop ? 'while/body/' : 'layers/'}`;
const step = (inLoop) => [
  ['embed', 'jit(train_step)/jvp(decoder)/gather', 900],
  ['up', `${layer('jvp(decoder)', inLoop)}mlp/dot_general`, 800],
  ['down', `${layer('jvp(decoder)', inLoop)}mlp/dot_general`, 800],
  ['logits', 'jit(train_step)/jvp(decoder)/logits/dot_general', 5000],
  ['small', `${layer('transpose(jvp(decoder))', inLoop)}checkpoint/norm/dot_general`, 1],
  ['logits_gradient', 'jit(train_step)/transpose(jvp(decoder))/logits/dot_general', 5000],
  ['up_again', `${layer('transpose(jvp(decoder))', inLoop)}checkpoint/mlp/dot_general`, 800],
  ['peeled', '', 800],
  ['down_gradient', `${layer('transpose(jvp(decoder))', inLoop)}checkpoint/mlp/dot_general`, 800],
  ['adam', 'jit(train_step)/add', 900],
];
const hasPython = spawnSync('python3', ['--version']).status === 0;
test("the layers' matmuls part a compiled step into its moments, in a loop and out of one", { skip: !hasPython && 'there is no python3' }, () => {
  for (const inLoop of [true, false]) {
    const { stdout, stderr } = spawnSync('python3', ['-B', '-c', `
import json, sys
sys.path.insert(0, "server/verifier")
import dump
rows = json.load(sys.stdin)
print(json.dumps(dump.moments([n for n, _, _ in rows], {n: op for n, op, _ in rows}, {n: b for n, _, b in rows}, 100)))`],
    { cwd: root, input: JSON.stringify(step(inLoop)), encoding: 'utf8' });
    assert.equal(stderr, '');
    assert.deepEqual(JSON.parse(stdout), ['before', 'forward', 'forward', 'loss', 'loss', 'loss', 'backward', 'backward', 'backward', 'update']);
  }
});

// How verify.py judges a compile that left these files in its folder. `child`: Python that stands in for it.
const judged = (files, end, known = [], child = '') => {
  const { folder, remove } = scratchFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const { stdout, stderr } = spawnSync('python3', ['-B', '-c', `
import errno, json, os, signal, sys, time, types
sys.path.insert(0, "server/verifier")
import step, verify
folder, end, known, train = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
job = object.__new__(step.Job)
job.folder, job.timeout_s, job.began, job.left_out, job.disabled = folder, 1, 0, [], []
job.last, job.steady, job.fault = None, 0, ""
if train:
    def main(_):
        exec(train)
    names = ["maxtext", "maxtext.trainers", "maxtext.trainers.pre_train", "maxtext.trainers.pre_train.train_compile"]
    sys.modules.update({name: types.ModuleType(name) for name in names})
    sys.modules["maxtext"].__file__ = train_file = "/maxtext/__init__.py"
    it = sys.modules[names[2]].train_compile = sys.modules[names[3]]
    it.__file__, it.main, it.pyconfig = train_file, main, types.SimpleNamespace(initialize=None)
    job = step.Job([], [], folder + "/job", 60, False)
    while not (end := job.poll()):
        time.sleep(0.01)
print(json.dumps(verify.judge(job, end, [], known)))`,
  folder, end, JSON.stringify(known), child], { cwd: root, encoding: 'utf8' });
  remove();
  assert.equal(stderr, '');
  return JSON.parse(stdout);
};
// The dump of a step: its scheduled program, and 4 GB of weights and state.
const dumped = (program, checked = {}) => ({
  log: '', checked: JSON.stringify({ vocab_size: 129280, emb_dim: 7168, num_decoder_layers: 4, ...checked }),
  'module_0000.jit_train_step.after_optimizations.txt': `HloModule jit_train_step\nENTRY %main {\n${program}}\n`,
  'module_0000.jit_train_step.after_optimizations-memory-usage-report.txt': 'Memory Space: HBM (color=0)\nTotal bytes: 3981560480\n',
});
const line = (operation, name, rest = '') => `  %x = f32[8]{0} ${operation}(%a, %b)${rest}, metadata={op_name="jit(train_step)/${name}"}\n`;
const updates = line('reduce', 'jvp()/reduce_sum') + line('multiply', 'mul') + line('convolution', 'muon/dot_general')
  + '  %y = f32[8]{0} custom-call(%a), custom_call_target="ConcatBitcast"\n';
test('a compiled program that holds no step proves nothing', { skip: !hasPython && 'there is no python3' }, () => {
  const empty = judged(dumped(updates), 'assigned');
  assert.equal(empty.verdict, 'failed');
  assert.match(empty.reason, /holds no training step/);
  assert.equal(empty.compiled_hbm_bytes_per_device, null);
  assert.doesNotMatch(empty.reason, /indexer/);
  const warmUp = judged(dumped(updates, { use_indexer: true, indexer_sparse_training: false }), 'assigned');
  assert.match(warmUp.reason, /unless indexer_sparse_training is true/);
  for (const work of [line('convolution', 'transpose(jvp())/while/body/dot_general'), line('dot', 'jvp(decoder)/dot_general'),
    line('custom-call', 'jvp()/while/body/gmm', ', custom_call_target="tpu_custom_call"')])
    assert.equal(judged(dumped(updates + work), 'finished').verdict, 'compiles', work);
});

test('buffers of a computation that runs on the host take no HBM', { skip: !hasPython && 'there is no python3' }, () => {
  const work = line('dot', 'jvp(decoder)/dot_general');
  const found = judged({ ...dumped(work), 'module_0000.jit_train_step.after_optimizations-buffer-assignment.txt': [
    'allocation 0: size 1981560480, page 0, thread-local:',
    ' value: <1 pad.1 @0> (size=1981560480,offset=0): bf16[16,4,40,8192,128]{4,3,2,1,0}',
    'allocation 1: size 1000000000, page 0, preallocated-temp:',
    ' value: <2 dot.1 @0> (size=1000000000,offset=0): bf16[8]{0}',
    'allocation 2: size 700, color 6, page 0, thread-local:',
    ' value: <3 copy.1 @0> (size=700,offset=0): s32[8]{0:S(6)}', ''].join('\n') }, 'assigned');
  assert.equal(found.verdict, 'compiles');
  assert.equal(found.compiled_hbm_bytes_per_device, 2000000000);
});

test('a compile that the machine ends, or of which XLA leaves nothing, is no word on the plan', { skip: !hasPython && 'there is no python3' }, () => {
  const how = (child) => { const { verdict, reason } = judged({}, '', [], child); return [verdict, reason]; };
  assert.deepEqual(how('print("Jitting...", flush=True); os.kill(os.getpid(), signal.SIGKILL)'), ['failed', 'the compile was ended by signal 9: Jitting...']);
  assert.deepEqual(how('raise OSError(errno.ENOSPC, "No space left on device")'),
    ['failed', 'this machine had no room for the compile: OSError: [Errno 28] No space left on device']);
  assert.deepEqual(how('raise MemoryError()'), ['failed', 'this machine had no room for the compile: MemoryError']);
  assert.deepEqual(how('os.mkdir("refusal"); raise ValueError("mesh of 3")'), ['failed', 'this machine had no room for the compile']);
  assert.deepEqual(how('pass'), ['failed', "XLA left no report of the program's memory"]);
  assert.deepEqual(how('raise ValueError("mesh of 3")'), ['refused', 'ValueError: mesh of 3']);
  assert.deepEqual(how('raise OSError("no such tokenizer")'), ['refused', 'OSError: no such tokenizer']);
});

test('the keys that MaxText refuses, or misses, are named', { skip: !hasPython && 'there is no python3' }, () => {
  const known = ['hf_access_token', 'tokenizer_path', 'use_indexer'];
  const refusal = "ValidationError: 1 validation error for MaxTextConfig\n  Value error, Engram requires both 'hf_access_token' and 'tokenizer_path' to load the Hugging Face tokenizer.";
  const found = judged({ log: '', refusal }, 'refused', known);
  assert.equal(found.verdict, 'refused');
  assert.deepEqual(found.refused_keys, ['hf_access_token', 'tokenizer_path']);
  assert.match(found.reason, /Engram requires both/);
  const places = `\nSuspected Python Code Location:\n${'  /usr/lib/python3.12/maxtext/layers/decoders.py:1195:35 [layers]\n'.repeat(40)}`;
  const internal = 'JaxRuntimeError: INTERNAL: host-call.2 expects the shape of operand 0 to match the async shape';
  assert.equal(judged({ ...dumped(''), refusal: internal + places }, 'refused', known).reason, internal, 'not where it came from');
  assert.deepEqual(judged({ ...dumped(''), refusal: "XlaRuntimeError: 'use_indexer'" }, 'refused', known).refused_keys, [], 'not of its checks');
});
