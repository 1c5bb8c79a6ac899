import assert from 'node:assert/strict';
import test from 'node:test';
import { queryToState, stateToQuery } from '../../../web/js/permalink.js';
import { parseMachines, writeMachines } from '../../../web/js/machines_text.js';
import { suggestionsOf } from '../../../web/js/suggestions.js';
import { typedNumber } from '../../../web/js/typed_number.js';
import { DEFAULTS, buildRequest, fieldOfPointer, inheritedOf, overruledOf, stateOfRequest, unaskable } from '../../../web/js/request.js';

const job = { ...DEFAULTS, model: 'llama3.1-70b', chip: 'tpu7x', topology: '4x4x4' };

test('the form becomes an advise request of the contract', () => {
  const { path, body, errors } = buildRequest({
    ...job,
    batch: '2',
    quantization: 'any',
    pins: 'ici_tensor_parallelism=1',
    price: '3.5',
    label: 'a',
    store: 'true',
  });
  assert.deepEqual(errors, []);
  assert.equal(path, '/v1/advise');
  assert.deepEqual(body, {
    model: 'llama3.1-70b',
    cluster: { chip: 'tpu7x', topology: '4x4x4', slices: 1, price_usd_per_chip_hour: 3.5 },
    workload: { seq_len: 8192, per_device_batch_size: 2, quantization: 'any' },
    search: { objective: 'step_time', top_k: 10, sensitivities: true },
    pins: { ici_tensor_parallelism: 1 },
    strict: true,
    label: 'a',
    store: 'try',
  });
});

test('the probability that a near miss names is asked for and is a number', () => {
  assert.equal(buildRequest({ ...job, fit_probability: '0.82' }).body.search.fit_probability, 0.82);
  assert.equal('fit_probability' in buildRequest(job).body.search, false);
  assert.deepEqual(
    buildRequest({ ...job, fit_probability: 'high' }).errors.map((error) => error.pointer),
    ['/search/fit_probability'],
  );
  assert.equal(fieldOfPointer('/search/fit_probability', job).field, 'fit_probability');
  for (const [text, meant] of [['98', '0.98'], ['98.5 %', '0.985']]) {
    const [error] = buildRequest({ ...job, fit_probability: text }).errors;
    assert.match(error.detail, /in percent/);
    assert.deepEqual(suggestionsOf(error.hint), [meant]);
  }
});

test('a length in k is suggested in tokens', () => {
  const [error, ...others] = buildRequest({ ...job, seq_len: '8k' }).errors;
  assert.deepEqual([error.pointer, suggestionsOf(error.hint), others], ['/workload/seq_len', ['8192', '8000'], []]);
});

test('each way to count the batch is sent under its own name', () => {
  for (const kind of ['global_batch_sequences', 'per_device_batch_size', 'tokens_per_step']) {
    assert.deepEqual(buildRequest({ ...job, batch_kind: kind, batch: '4' }).body.workload, {
      seq_len: 8192,
      [kind]: 4,
    });
  }
});

test('what a pasted text says otherwise than the form is named, in whatever unit the form counts', () => {
  const form = { ...job, seq_len: '8,192', batch_kind: 'global_batch_sequences', batch: '256' };
  assert.deepEqual(overruledOf(form, { max_target_length: 4096, per_device_batch_size: 2, remat_policy: 'full' }, 128), { max_target_length: 4096 });
  assert.deepEqual(overruledOf(form, { max_target_length: 8192, per_device_batch_size: 2, gradient_accumulation_steps: 2 }, 128), { per_device_batch_size: 2 });
  assert.deepEqual(overruledOf(form, { per_device_batch_size: 3 }, null), {}, 'not known of a slice without a number of devices');
  assert.deepEqual(overruledOf({ ...form, batch_kind: 'tokens_per_step', batch: '1048576' }, { max_target_length: 4096, per_device_batch_size: 2 }, 128), { max_target_length: 4096 });
});

test('my configuration becomes an estimate request, or the baseline of an advise request', () => {
  const mine = { ...job, config: 'steps=3', xla_flags: '--xla_a=1' };
  const estimate = buildRequest({ ...mine, mode: 'estimate' });
  assert.equal(estimate.path, '/v1/estimate');
  assert.deepEqual(estimate.body, {
    model: 'llama3.1-70b',
    cluster: { chip: 'tpu7x', topology: '4x4x4', slices: 1 },
    config: { steps: 3, max_target_length: 8192, per_device_batch_size: 1 },
    xla_flags: ['--xla_a=1'],
  });
  assert.deepEqual(buildRequest(mine).body.baseline, { config: estimate.body.config, xla_flags: ['--xla_a=1'] });
});

test('what pasted settings leave open comes from the form, a batch of all devices divided by them', () => {
  const of = (state, config = {}, devices = 128) => inheritedOf({ ...DEFAULTS, ...state }, config, devices);
  assert.deepEqual(of({ seq_len: '8,192', batch: '2' }), { max_target_length: 8192, per_device_batch_size: 2 });
  assert.deepEqual(of({ batch_kind: 'global_batch_sequences', batch: '64' }).per_device_batch_size, 0.5);
  const tokens = { batch_kind: 'tokens_per_step', batch: String(128 * 4096 * 3) };
  assert.deepEqual(of(tokens, { max_target_length: 4096 }), { per_device_batch_size: 3 });
  assert.deepEqual(of({ batch_kind: 'global_batch_sequences', batch: '64' }, {}, null), { max_target_length: 8192 });
  assert.deepEqual(of({}, { max_target_length: 1, per_device_batch_size: 1 }), {});
  const four = { gradient_accumulation_steps: 4 };
  assert.equal(of({ batch_kind: 'global_batch_sequences', batch: '1,024' }, four).per_device_batch_size, 2, 'the same work in four passes');
  assert.equal(of(tokens, { max_target_length: 4096, ...four }).per_device_batch_size, 0.75);
});

test('a pin that is a list of rules is refused, not left out', () => {
  const { errors } = buildRequest({ ...job, pins: 'logical_axis_rules:\n  - [a, [b]]' });
  assert.deepEqual(errors, [{ pointer: '/pins', detail: 'logical_axis_rules is a list or mapping, which cannot be pinned.' }]);
});

test('unknown pins are refused, unknown keys of a baseline only warned about', () => {
  assert.equal(buildRequest({ ...job, pins: 'a=1' }).body.strict, true);
  assert.equal(buildRequest({ ...job, pins: 'a=1', config: 'b=1' }).body.strict, undefined);
  assert.equal(buildRequest(job).body.strict, undefined);
});

test('a pasted model is sent as hf_config or as MaxText dimensions', () => {
  assert.deepEqual(buildRequest({ ...job, model_kind: 'hf', model_text: '{"hidden_size": 8}' }).body.model, {
    hf_config: { hidden_size: 8 },
  });
  assert.deepEqual(
    buildRequest({ ...job, model_kind: 'dims', model_text: 'base_emb_dim=8\nmlp_activations=["silu"]' }).body.model,
    { base_emb_dim: 8, mlp_activations: ['silu'] },
  );
});

test('entries that cannot be sent are all reported at once with their pointers', () => {
  const { errors } = buildRequest({ ...DEFAULTS, seq_len: '8k', batch: '', slices: 'two', pins: 'nonsense' });
  assert.deepEqual(errors.map((error) => error.pointer).sort(), [
    '/cluster/slices',
    '/model',
    '/pins',
    '/workload/per_device_batch_size',
    '/workload/seq_len',
  ]);
});

test('every pointer leads to its field', () => {
  assert.deepEqual(fieldOfPointer('/pins/ici_fsdp_paralelism', job), { field: 'pins', below: 'ici_fsdp_paralelism' });
  assert.equal(fieldOfPointer('/cluster/topology', job).field, 'topology');
  assert.equal(fieldOfPointer('/workload/tokens_per_step', job).field, 'batch');
  assert.equal(fieldOfPointer('/baseline/config/steps', job).field, 'config');
  assert.equal(fieldOfPointer('/model/hf_config/hidden_size', { ...job, model_kind: 'hf' }).field, 'model_text');
  assert.equal(fieldOfPointer('', job).field, null);
  assert.equal(fieldOfPointer('/pinsx', job).field, null);
});

test('a link holds the whole form and nothing that stores', () => {
  const state = { ...job, mode: 'estimate', config: 'a=1\nb="x & y"', label: 'é', store: 'true' };
  assert.deepEqual(queryToState(stateToQuery(state)), { ...state, store: '' });
  assert.equal(stateToQuery(DEFAULTS), '');
  assert.deepEqual(queryToState('model=x&evil=1'), { ...DEFAULTS, model: 'x' });
});

test('a stored request opens in the form and would be sent again unchanged', () => {
  for (const state of [
    { ...job, pins: 'a=1\nb=x', price: '2', fit_probability: '0.9' },
    { ...job, mode: 'estimate', config: 'steps=3\nremat_policy=full', xla_flags: '--xla_a=1' },
    { ...job, mode: 'machines', machines: 'v6e,any,64,2,2.5;H100,,8,,,0.4', token_budget: '2T', sensitivities: '' },
    { ...job, model: '', model_kind: 'dims', model_text: '{"base_emb_dim": 8}' },
  ]) {
    const { body } = buildRequest(state);
    assert.deepEqual(buildRequest(stateOfRequest(body)).body, body);
  }
});

test('stored settings that need quotes open as they can be sent', () => {
  const { model, cluster } = buildRequest(job).body;
  const config = { run_name: 'my run 7', base_output_directory: 'gs://a b#c', max_target_length: 4096, per_device_batch_size: 1, mlp_activations: ['silu', 'linear'] };
  const { body, errors } = buildRequest(stateOfRequest({ model, cluster, config }));
  assert.deepEqual(errors, []);
  assert.deepEqual(body.config, config);
});

test('a stored estimate opens without settings that it had not, and a training with its tokens by either name', () => {
  const request = { model: 'llama3.1-70b', cluster: { chip: 'tpu7x', topology: '4x4x4', slices: 1 }, config: { remat_policy: 'full', max_target_length: 4096 } };
  const state = stateOfRequest(request);
  assert.deepEqual(buildRequest(state, 128).body, request);
  assert.equal(state.seq_len, '4096');
  const training = { ...request, workload: { seq_len: 4096, per_device_batch_size: 1, total_tokens: 1e12 } };
  assert.equal(stateOfRequest(training).token_budget, String(1e12));
  assert.equal(fieldOfPointer('/workload/total_tokens', job).field, 'token_budget');
});

test('what of a stored request the form has no field for is named', () => {
  const cluster = { chip: 'tpu7x', topology: '4x4x4', slices: 1 };
  const asked = { model: 'llama3.1-70b', cluster, workload: { seq_len: 4096, per_device_batch_size: 1 }, search: { objective: 'step_time' }, label: 'x', tags: { a: 'b' }, strict: true };
  assert.deepEqual(unaskable(asked), []);
  assert.deepEqual(unaskable({ ...asked, cluster: { chip: 'v6e', accelerator: 'v6e-256' }, software: null, search: { sensitivities: false } }), []);
  assert.deepEqual(unaskable({ ...asked, cluster: { ...cluster, topology: 'any', chips: 64 } }), []);
  const more = { ...asked, software: { maxtext: '0.2.1' }, cluster: { ...cluster, overrides: {} }, search: { axes: ['fsdp'] }, workload: { ...asked.workload, weight_dtype: 'bfloat16' } };
  assert.deepEqual(unaskable(more), ['software', 'cluster.overrides', 'workload.weight_dtype', 'search.axes']);
  assert.deepEqual(unaskable({ model: 'llama3.1-70b', cluster, config: { remat_policy: 'full' }, flops_convention: 'full' }), ['flops_convention']);
});

test('a comma parts thousands, and nothing else', () => {
  assert.deepEqual(['8,192', '1 000_000', '1,234,567.5', '0.98', '1e6'].map(typedNumber), [8192, 1e6, 1234567.5, 0.98, 1e6]);
  for (const text of ['2,5', '1,00', '12,3456', '1,5T', '']) assert.ok(Number.isNaN(typedNumber(text)), text);
  assert.deepEqual(buildRequest({ ...job, price: '2,70' }).errors, [{ pointer: '/cluster/price_usd_per_chip_hour', detail: 'Price: “2,70” is not a number.' }]);
});

test('machines are kept as text that survives a link, and each sends what it needs', () => {
  const rows = [
    { chip: 'v6e', topology: '4x4', chips: '99', slices: '2', price: '1,5;%', mfu: '' },
    { chip: 'H100', topology: '', chips: '8', slices: '7', price: '', mfu: '0.4' },
  ];
  const text = writeMachines(rows);
  assert.deepEqual(parseMachines(text), rows);
  assert.deepEqual(queryToState(stateToQuery({ ...job, machines: text })).machines, text);
  const { body, errors } = buildRequest({ ...job, mode: 'machines', machines: text });
  assert.deepEqual(body.clusters, [
    { chip: 'v6e', topology: '4x4', slices: 2, price_usd_per_chip_hour: NaN },
    { chip: 'H100', chips: 8, assumed_mfu_frac: 0.4 },
  ]);
  assert.deepEqual(
    errors.map((error) => error.pointer),
    ['/clusters/0/price_usd_per_chip_hour'],
  );
  const missing = buildRequest({ ...job, mode: 'machines', machines: 'v6e,any' });
  assert.equal(missing.errors[0].pointer, '/clusters/0/chips');
  assert.equal(buildRequest({ ...job, mode: 'machines', machines: '' }).errors[0].pointer, '/machines');
});

test('an error of a machine leads to its entry', () => {
  assert.equal(fieldOfPointer('/clusters/2/assumed_mfu_frac', job).field, 'machine-2-mfu');
  assert.equal(fieldOfPointer('/clusters/1/topology', job).field, 'machine-1-topology');
  assert.equal(fieldOfPointer('/clusters/1/overrides/x', job).field, 'machine-1-chip');
  assert.equal(fieldOfPointer('/clusters', job).field, 'add-machine', 'of all of them');
});

test('a search over any shape opens as a comparison of machines', () => {
  const { mode, machines, chip } = stateOfRequest({
    workload: {},
    cluster: { chip: 'v6e', topology: 'any', chips: 64 },
  });
  assert.deepEqual([mode, machines, chip], ['machines', 'v6e,any,64', DEFAULTS.chip]);
});
