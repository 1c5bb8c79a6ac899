// What else must be known to read a verdict: a pass on a machine that does not exist, in other numbers, for other releases
// or at another price is not the pass that it looks like. And no candidate is its own baseline.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { startDaemon, estimateRequest, freshDatabase, join, program, root, sql } from './daemon.mjs';

let daemon;
let url;
before(async () => {
  url = freshDatabase('api_gate_notes');
  daemon = await startDaemon({ database: url });
});
after(() => daemon.stop());

const request = (extra = {}, config = {}) => {
  const whole = estimateRequest(extra);
  Object.assign(whole.config, config);
  return whole;
};
const store = async (body) => (await (await daemon.post('/v1/estimate', { ...body, store: true })).json()).run_id;
const judge = async (body) => {
  const response = await daemon.post('/v1/checks', body);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
};
// Has all that waits compiled by the program in the compiler's place.
const compile = async (FAKE = 'fits') => {
  const worker = spawn(program, ['verifier', '--database-url', url, '--compiler', join(root, 'tests/api/fake_compiler.mjs'), '--until-empty'],
    { env: { PATH: process.env.PATH, FAKE }, stdio: 'ignore' });
  assert.deepEqual(await once(worker, 'close'), [0, null]);
};
const noted = async (from, to, limits = {}) => {
  const { notes } = await judge({ baseline: { run_id: await store(from) }, candidate: to, limits });
  return Object.fromEntries(notes.map(({ code, detail }) => [code, detail]));
};
const cluster = (extra) => ({ chip: 'v6e', topology: '2x4', slices: 1, ...extra });
const whatIf = cluster({ overrides: { hbm_usable_bytes_per_device: 240e9 } });

test('a candidate that fits only on what-if hardware passes with a note, on either side and in every report', async () => {
  const big = request({ cluster: whatIf }, { per_device_batch_size: 8, remat_policy: 'minimal' });
  const real = await judge({ baseline: { run_id: await store(request()) }, candidate: { ...big, cluster: cluster() } });
  assert.equal(real.verdict, 'fail', 'it does not fit on the real chip');
  const verdict = await judge({ baseline: { run_id: await store(request()) }, candidate: big, reports: true });
  assert.equal(verdict.verdict, 'pass');
  const [note] = verdict.notes.filter(({ code }) => code === 'what_if_hardware');
  assert.match(note.detail, /^the candidate is priced with other hardware than the published/);
  assert.match(verdict.reports.markdown, /Note: the candidate is priced with other hardware/);
  assert.match((await noted({ ...request(), cluster: whatIf }, request())).what_if_hardware, /^the baseline is/);
  assert.match((await noted({ ...request(), cluster: whatIf }, { ...request(), cluster: whatIf })).what_if_hardware, /^the baseline and the candidate are/);
});

test('a run that is compared with itself is said to be: a pass tells of no change', async () => {
  const id = await store(request());
  const self = await judge({ baseline: { run_id: id }, candidate: { run_id: id }, limits: { time_per_token_increase_frac: 0 } });
  assert.equal(self.verdict, 'pass');
  assert.match(self.notes.find(({ code }) => code === 'same_run').detail, new RegExp(`run ${id} is compared with itself`));
  const equal = await judge({ baseline: { run_id: id }, candidate: request({ store: true }), limits: { time_per_token_increase_frac: 0 } });
  assert.deepEqual(equal.notes.filter(({ code }) => code === 'same_run'), [], 'one that equals it is another run');
});

test('a check without a limit says that it compares nothing', async () => {
  const { run_id: id } = { run_id: await store(request()) };
  for (const limits of [undefined, null, {}, { step_time_increase_frac: null }]) {
    const { verdict, notes } = await judge({ baseline: { run_id: id }, candidate: request(), limits });
    assert.equal(verdict, 'pass');
    assert.match(notes.find(({ code }) => code === 'no_limit').detail, /judged by itself, not against the baseline/);
  }
  const { notes } = await judge({ baseline: { run_id: id }, candidate: request(), limits: { must_fit: false } });
  assert.match(notes.find(({ code }) => code === 'no_limit').detail, /judged by itself, and by nothing, not/);
  assert.equal((await noted(request(), request(), { hbm_increase_frac: 0 })).no_limit, undefined);
});

test('a change just over its limit does not read like the limit', async () => {
  const baseline = { run_id: await store(request()) };
  const candidate = request({}, { remat_policy: 'full' });
  const { step_time_increase_frac: change } = await judge({ baseline, candidate });
  const { reasons } = await judge({ baseline, candidate, limits: { step_time_increase_frac: change - 1e-6 } });
  const [, over, limit] = /, (\S+) %; the limit is (\S+) %/.exec(reasons[0].detail);
  assert.ok(Number(over) > Number(limit), reasons[0].detail);
  assert.ok(Math.abs(over / 100 - change) < 1e-6);
});

test('other number formats and another optimizer are noted, another spelling of a default is not', async () => {
  const formats = await noted(request(), request({}, { quantization: 'int8' }));
  assert.match(formats.other_numerics, /quantization="int8" instead of MaxText's defaults/);
  assert.match((await noted(request(), request({}, { opt_type: 'sgd' }))).other_numerics, /opt_type="sgd"/);
  assert.match((await noted(request({}, { weight_dtype: 'bfloat16' }), request())).other_numerics, /defaults instead of weight_dtype="bfloat16"/);
  const same = request({}, { quantization: '', gradient_clipping_threshold: '1.0' });
  delete same.config.dtype;
  delete same.config.opt_type;
  assert.equal((await noted(request(), same)).other_numerics, undefined);
  assert.equal((await noted(request(), request({}, { optimizer_memory_host_offload: true }))).other_numerics, undefined, 'where the state lies changes no weight');
});

test('other releases and another price are noted', async () => {
  const plain = await noted(request(), request());
  for (const code of ['other_software', 'other_price', 'what_if_hardware', 'other_numerics']) assert.equal(plain[code], undefined);
  assert.match((await noted(request(), request({ software: { maxtext: '0.2.1' } }))).other_software, /for MaxText 0\.2\.1 .*the baseline for MaxText 0\.2\.5/);
  const cheap = request({ cluster: cluster({ price_usd_per_chip_hour: 1 }) }, { remat_policy: 'full' });
  const limits = { usd_per_token_increase_frac: 0 };
  const verdict = await judge({ baseline: { run_id: await store(request()) }, candidate: cheap, limits });
  assert.equal(verdict.verdict, 'pass', 'slower, and cheaper by the hour');
  assert.match(verdict.notes.find(({ code }) => code === 'other_price').detail, /costs 1 dollars instead of 2\.7/);
});

test('a word of other releases than the candidate is for is named', async () => {
  const [now, before] = [await store(request()), await store(request({ software: { maxtext: '0.2.1' } }))];
  assert.equal((await daemon.post(`/v1/runs/${now}/verifications`, {})).status, 202);
  await compile();
  const asked = (id) => judge({ baseline: { run_id: now }, candidate: { run_id: id }, limits: { must_compile: true } });
  const own = await asked(now);
  assert.equal(own.verdict, 'pass');
  assert.match(own.candidate.compiler_versions, /maxtext 0\.2\.5, jax 0\.12\.0\.1, libtpu 0\.0\.50\.1/);
  assert.ok(!own.notes.some(({ code }) => code === 'compiled_by_other_releases'));
  const other = await asked(before);
  assert.match(other.notes.find(({ code }) => code === 'compiled_by_other_releases').detail, /is that of .*maxtext 0\.2\.5.*is for MaxText 0\.2\.1/);
});

test('no run is its own baseline, however its id is written', async () => {
  const [first, second] = [await store(request({ project: 'own', label: 'main' })), await store(request())];
  assert.equal((await judge({ baseline: { run_id: second }, candidate: { run_id: first }, limits: { step_time_increase_frac: 0 } })).verdict, 'pass');
  for (const id of [first, first.toUpperCase()]) {
    const response = await daemon.post('/v1/checks', { baseline: { project: 'own', label: 'main' }, candidate: { run_id: id } });
    assert.equal(response.status, 404, 'it is the only run that ever passed');
  }
});

test('a check without a limit on time lets no run pass for a baseline, and a failed one is none', async () => {
  const names = { project: 'timeless', label: 'main' };
  const baseline = { run_id: await store(request()) };
  const slow = { run_id: await store(request(names, { remat_policy: 'full' })) };
  const stands = () => daemon.post('/v1/checks', { baseline: names, candidate: request() });
  for (const limits of [undefined, {}, { must_fit: false }, { hbm_increase_frac: 9 }, { usd_per_token_increase_frac: 9 }]) {
    assert.equal((await judge({ baseline, candidate: slow, limits })).verdict, 'pass');
    assert.equal((await stands()).status, 404, `nothing was said of its time by ${JSON.stringify(limits)}`);
  }
  assert.equal((await judge({ baseline, candidate: slow, limits: { time_per_token_increase_frac: 9 } })).verdict, 'pass');
  assert.equal((await (await stands()).json()).baseline.run_id, slow.run_id);
  assert.equal((await judge({ baseline, candidate: slow, limits: { hbm_increase_frac: -0.99 } })).verdict, 'fail');
  assert.equal((await stands()).status, 404, 'what failed, failed, whatever was asked');
});

test('a check that is sent again with its key does not compare its candidate with itself', async () => {
  const names = { project: 'resent', label: 'main' };
  const first = await store(request(names));
  const limits = { step_time_increase_frac: 0 };
  assert.equal((await judge({ baseline: { run_id: await store(request()) }, candidate: { run_id: first }, limits })).verdict, 'pass');
  const faster = request({ ...names, store: true }, { per_device_batch_size: 3 });
  const send = async () => (await daemon.post('/v1/checks', { baseline: names, candidate: faster, limits }, { 'Idempotency-Key': 'resent-1' })).json();
  const [once, again] = [await send(), await send()];
  assert.deepEqual([once.verdict, once.baseline.run_id], ['pass', first]);
  assert.deepEqual([again.baseline.run_id, again.candidate.run_id], [first, once.candidate.run_id]);
});

test('a candidate on what-if hardware never stands in for a baseline', async () => {
  const names = { project: 'what-if', label: 'main' };
  const baseline = { run_id: await store(request()) };
  const faster = cluster({ overrides: { peak_bf16_flops_per_s_per_chip: 2e15 } });
  const passed = await judge({ baseline, candidate: { ...request(names), cluster: faster, store: true }, limits: { step_time_increase_frac: 0 } });
  assert.equal(passed.verdict, 'pass');
  const check = (extra) => daemon.post('/v1/checks', { baseline: names, candidate: request(extra) });
  assert.equal((await check({})).status, 404, 'no run of a real machine has passed yet');
  const whatIf = { run_id: await store({ ...request(), cluster: cluster({ overrides: { peak_bf16_flops_per_s_per_chip: 1e14 } }) }) };
  const easy = await judge({ baseline: whatIf, candidate: request({ ...names, store: true }), limits: { step_time_increase_frac: 0 } });
  assert.deepEqual([easy.verdict, (await check({})).status], ['pass', 404], 'nor does one that was held to such hardware');
  const real = await judge({ baseline, candidate: request({ ...names, store: true }), limits: { step_time_increase_frac: 0 } });
  assert.equal((await (await check({})).json()).baseline.run_id, real.candidate.run_id);
});

test('a candidate that the compiler has refuted does not fit, whatever is predicted', async () => {
  const [baseline, candidate] = [await store(request()), await store(request({}, { per_device_batch_size: 1 }))];
  const asked = (limits) => judge({ baseline: { run_id: baseline }, candidate: { run_id: candidate }, limits });
  const codes = (list) => list.map(({ code }) => code);
  assert.equal((await asked({})).verdict, 'pass', 'nobody has asked the compiler');
  assert.equal((await daemon.post(`/v1/runs/${candidate}/verifications`, {})).status, 202);
  await compile('oom');
  const refuted = await asked({});
  assert.deepEqual([refuted.verdict, codes(refuted.reasons), refuted.candidate.fits], ['fail', ['does_not_fit'], true]);
  assert.match(refuted.reasons[0].detail, /predicted to fit .* the compiler says that it does not .*maxtext 0\.2\.5/);
  assert.equal((await asked({ must_fit: false })).verdict, 'pass', 'then memory is no question');
  assert.ok(codes((await judge({ baseline: { run_id: candidate }, candidate: { run_id: baseline } })).notes).includes('baseline_does_not_fit'));
});

test('a word that says otherwise than the prediction is noted, unless a limit that asks for it has told it', async () => {
  const [baseline, tight] = [await store(request()), await store(request({}, { per_device_batch_size: 64, remat_policy: 'minimal' }))];
  const refused = await store(request({}, { per_device_batch_size: 2 }));
  const asked = (id, limits = {}) => judge({ baseline: { run_id: baseline }, candidate: { run_id: id }, limits });
  assert.equal((await daemon.post(`/v1/runs/${tight}/verifications`, {})).status, 202);
  await compile();
  assert.equal((await daemon.post(`/v1/runs/${refused}/verifications`, {})).status, 202);
  await compile('refused');
  const one = await asked(tight);
  assert.equal(one.verdict, 'fail');
  assert.match(one.notes.find(({ code }) => code === 'compiler_disagrees').detail, /not to fit, and the compiler's verdict on it is compiles/);
  const proven = await asked(tight, { must_compile: true }); // who asks for the compiler's word is told that it was good
  assert.deepEqual([proven.verdict, proven.reasons.map(({ code }) => code)], ['fail', ['does_not_fit']]);
  assert.match(proven.notes.find(({ code }) => code === 'compiler_disagrees').detail, /not to fit, and the compiler's verdict on it is compiles/);
  const told = await asked(refused, { must_compile: true });
  assert.deepEqual([told.reasons.map(({ code }) => code), told.notes.filter(({ code }) => code === 'compiler_disagrees')], [['does_not_compile'], []]);
  const two = await asked(refused);
  assert.equal(two.verdict, 'pass');
  assert.match(two.notes.find(({ code }) => code === 'compiler_disagrees').detail, /to fit, and the compiler's verdict on it is refused/);
});

test('a tight plan passes with its probability, in every report, until the compiler has spoken', async () => {
  const baseline = await store(request());
  const tight = { model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4' }, config: { per_device_batch_size: 4, max_target_length: 8192, remat_policy: 'full' } };
  const { fits, fit_verdict, fit_probability } = await (await daemon.post('/v1/estimate', tight)).json();
  assert.deepEqual([fits, fit_verdict], [true, 'tight']);
  const allow_unlike = ['model', 'sequence_length'];
  const verdict = await judge({ baseline: { run_id: baseline }, candidate: tight, allow_unlike, reports: true });
  assert.deepEqual([verdict.verdict, verdict.candidate.fit_verdict, verdict.candidate.fit_probability], ['pass', 'tight', fit_probability]);
  assert.match(verdict.notes.find(({ code }) => code === 'tight').detail, new RegExp(`^the candidate is tight: .* probability of ${fit_probability.toPrecision(2)}`));
  assert.match(verdict.reports.markdown, /\| fits \| yes \| tight \| \|\n\| fit probability \| 1 \| 0\.\d+ \|/);
  assert.match(verdict.reports.junit, /<system-out>[^]*the candidate is tight/);
  const stored = await store(tight);
  assert.equal((await daemon.post(`/v1/runs/${stored}/verifications`, {})).status, 202);
  await compile();
  const { notes } = await judge({ baseline: { run_id: baseline }, candidate: { run_id: stored }, allow_unlike });
  assert.ok(!notes.some(({ code }) => code === 'tight'), 'then its word counts');
});

test('a candidate that does not fit passes with must_fit false, and a note says that it does not', async () => {
  const huge = await noted(request(), request({}, { per_device_batch_size: 64 }), { must_fit: false });
  assert.match(huge.candidate_does_not_fit, /^the candidate needs \d+\.\d\d GiB per device and does not fit, which does not count: must_fit is false$/);
  assert.ok(!('candidate_does_not_fit' in await noted(request(), request(), { must_fit: false })));
});

test('a report for people says with what the candidate was compared', async () => {
  const id = await store(request({ git_ref: 'a_b' }));
  const answer = await daemon.post('/v1/checks', { baseline: { run_id: id }, candidate: request() }, { Accept: 'text/markdown' });
  assert.match(await answer.text(), new RegExp(`^## TPU Advisor: pass\n\nAgainst run ${id}, stored at 20\\S+Z, git_ref a\\\\_b: llama3\\.1-8b on 1 x v6e 2x4\n\n- `));
});

test('a run without a time is refused as what it is', async () => {
  const kernel = await (await daemon.post('/v1/kernels/simulate', { chip: 'v6e', kernel: 'matmul', shape: { m: 1024, k: 1024, n: 1024, dtype: 'bf16' }, tile: {}, store: true })).json();
  const response = await daemon.post('/v1/checks', { baseline: { run_id: await store(request()) }, candidate: { run_id: kernel.run_id } });
  const { errors } = await response.json();
  assert.deepEqual([response.status, errors[0].detail, errors[0].hint], [422, 'the run has no step time to compare', 'use a run of an estimate, or of an advise with a plan that fits']);
});

test('what the estimate of a candidate warns of is noted: no limit counts it', async () => {
  const typo = await noted(request(), request({ xla_flags: ['--xla_tpu_no_such_flag=1'] }, { remat_polcy: 'full' }));
  assert.match(typo.candidate_warnings, /^the estimate of the candidate warns of 2 things, which no limit counts: remat_polcy is not a MaxText key; xla_tpu_no_such_flag .*\. POST \/v1\/lint/);
  const clean = (extra, config) => request({ xla_flags: [], ...extra }, config);
  assert.ok(!('candidate_warnings' in await noted(clean({}, { remat_polcy: 'full' }), clean())), 'of the candidate alone');
  assert.ok(!('candidate_warnings' in await noted(clean(), clean({ cluster: whatIf }))), 'what has a note of its own is not told twice');
});

test('runs of the candidate\'s own commit never stand in: they are checked beside it', async () => {
  const name = { project: 'siblings', label: 'main' };
  const commit = (number) => `c0ffee${String(number).padEnd(34, '0')}`; // 40 digits, as git has them
  const judge_ = async (git_ref, candidate = {}) => {
    const response = await daemon.post('/v1/checks', { baseline: name, candidate: request({ ...name, store: true, ...(git_ref && { git_ref }), ...candidate }), limits: { time_per_token_increase_frac: 0.03 } });
    return { status: response.status, ...await response.json() };
  };
  const { run_id: first } = await (await daemon.post('/v1/estimate', request({ store: true }))).json();
  const old = await (await daemon.post('/v1/checks', { baseline: { run_id: first }, candidate: request({ ...name, store: true, git_ref: commit(0) }), limits: { time_per_token_increase_frac: 0.03 } })).json();
  const stored = (said) => said.notes.find(({ code }) => code === 'stand_in_baseline').detail;
  for (let job = 0; job < 3; job++) { // jobs of one pipeline, each a call of its own
    const said = await judge_(commit(1));
    assert.equal(said.baseline.run_id, old.candidate.run_id);
    assert.match(stored(said), /, stored at 20\S+ with git_ref c0ffee0{34}, the last that passed .* stands in, and limits count from there$/);
  }
  const next = await judge_(commit(2));
  assert.notEqual(next.baseline.run_id, old.candidate.run_id, 'the last of another commit');
  const byRun = await (await daemon.post('/v1/checks', { baseline: name, candidate: { run_id: next.candidate.run_id } })).json();
  assert.equal(byRun.baseline.run_id, next.baseline.run_id);
  const branch = [await judge_('main'), await judge_('main')];
  assert.equal(branch[1].baseline.run_id, branch[0].candidate.run_id, 'runs of a branch follow one another');
  const unnamed = await judge_('');
  assert.match(stored(unnamed), /, and limits count from there\. It may be of the candidate's own commit$/);
});

test('only a limit on the time of a token lets a run stand in, and a stand-in is told', async () => {
  const named = (label) => ({ project: 'stands', label });
  const price = (usd) => ({ cluster: cluster({ price_usd_per_chip_hour: usd }) });
  const baseline = { run_id: await store(request(price(2))) };
  const slow = { per_device_batch_size: 1, gradient_accumulation_steps: 2 };
  const cheap = request({ ...named('cheap'), ...price(0.2), store: true }, slow);
  const paid = await judge({ baseline, candidate: cheap, limits: { usd_per_token_increase_frac: 0.03 } });
  assert.equal(paid.verdict, 'pass', JSON.stringify(paid.reasons));
  assert.ok(paid.time_per_token_increase_frac > 0.03, 'it is slower');
  const wide = request({ ...named('wide'), cluster: { ...price(2).cluster, topology: '4x4' }, store: true }, slow);
  const fewer = await judge({ baseline, candidate: wide, limits: { tokens_per_s_per_chip_decrease_frac: 0.9 } });
  assert.equal(fewer.verdict, 'pass');
  for (const label of ['cheap', 'wide']) {
    const refused = await daemon.post('/v1/checks', { baseline: named(label), candidate: request() });
    assert.equal(refused.status, 404, `${label} stands in for nothing`);
  }
  const kept = await judge({ baseline, candidate: request({ ...named('kept'), ...price(2), store: true }), limits: { tokens_per_s_per_chip_decrease_frac: 0.01 } });
  assert.equal(kept.verdict, 'pass');
  assert.ok(!kept.notes.some(({ code }) => code === 'stand_in_baseline'));
  const next = await judge({ baseline: named('kept'), candidate: request() });
  assert.equal(next.baseline.run_id, kept.candidate.run_id);
  assert.match(next.notes.find(({ code }) => code === 'stand_in_baseline').detail, new RegExp(`^no baseline is set \\(PUT /v1/baselines/\\{project\\}/\\{label\\}\\): run ${kept.candidate.run_id}`));
});

test('of a plan without a word it is said what became of the question', async () => {
  const baseline = await store(request());
  const candidate = await store(request({}, { per_device_batch_size: 1, gradient_accumulation_steps: 3 }));
  const asked = async (run_id = candidate) => (await judge({ baseline: { run_id: baseline }, candidate: { run_id }, limits: { must_compile: true } })).reasons
    .find(({ code }) => code === 'does_not_compile')?.detail;
  assert.match(await asked(), /has not been asked about the candidate: POST/);
  assert.equal((await daemon.post(`/v1/runs/${candidate}/verifications`, {})).status, 202);
  assert.match(await asked(), /has been asked about the candidate and has not answered yet/);
  await compile('silent');
  assert.match(await asked(), /was asked about the candidate and gave no verdict: .+\. POST/);
  sql('api_gate_notes', `UPDATE verification_plans p SET result = '{}' FROM verifications v WHERE v.id = p.verification_id AND v.run_id = '${candidate}'`);
  assert.match(await asked(), /gave no verdict: it ended without saying why\. POST/, 'of a result that names no reason');
  assert.equal((await daemon.post(`/v1/runs/${candidate}/verifications`, {})).status, 202);
  assert.match(await asked(), /has not answered yet/, 'it was asked again');
  await compile();
  assert.equal(await asked(), undefined);
  const imagined = await store({ ...request({}, { per_device_batch_size: 1, gradient_accumulation_steps: 3 }), cluster: whatIf });
  assert.match(await asked(imagined), /knows the published hardware only/, 'though the same plan compiles on the real');
});

test('what the compiler has refuted, or what does not start, is no baseline', async () => {
  const put = async (run_id) => {
    const response = await daemon.fetch('/v1/baselines/none/main', { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ run_id }) });
    return [response.status, (await response.json()).errors?.[0].detail ?? ''];
  };
  const refuted = await store(request({}, { per_device_batch_size: 1, gradient_accumulation_steps: 5 }));
  assert.equal((await daemon.post(`/v1/runs/${refuted}/verifications`, {})).status, 202);
  await compile('oom');
  const [status, detail] = await put(refuted);
  assert.equal(status, 422);
  assert.match(detail, /the real compiler says that the run does not fit in memory/);
  const tiles = Object.fromEntries(['sa_block_q', 'sa_block_kv', 'sa_block_kv_compute'].map((key) => [key, 8192]));
  const stuck = request({}, { ...tiles, attention: 'flash', per_device_batch_size: 1, max_target_length: 8192 });
  const answer = await (await daemon.post('/v1/estimate', { ...stuck, store: true })).json();
  assert.ok(answer.warnings.some(({ code }) => code === 'kernel-over-vmem'), JSON.stringify(answer.warnings));
  assert.deepEqual((await put(answer.run_id))[0], 422);
  const judged = await judge({ baseline: { run_id: answer.run_id }, candidate: request({}, { max_target_length: 8192, per_device_batch_size: 1 }) });
  assert.ok(judged.notes.some(({ code }) => code === 'baseline_kernel_over_vmem'));
});
