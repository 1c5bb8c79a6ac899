import assert from 'node:assert/strict';
import test from 'node:test';
import { likened, movedTerms, namesOf, overlapNote, stepOf } from '../../../web/js/compare.js';
import { limitsOf } from '../../../web/js/gate.js';
import {
  compact,
  days,
  energy,
  gib,
  gibLike,
  ordinal,
  percent,
  probability,
  seconds,
  signedPercent,
  secondsLike,
  secondsRange,
  sequences,
  usd,
  words,
} from '../../../web/js/format.js';
import { fitText, memoryRows, memoryStacks, verdictOfRun } from '../../../web/js/memory_bar.js';
import { axesAcross, batchText, jobSize, meshOfConfig, meshOfPlan, meshText, rematText } from '../../../web/js/plan_text.js';
import { ORDERS, advisedBy, clauseOf, complexity, firstOrder, marksOf, ordered } from '../../../web/js/order.js';
import { parseRoute } from '../../../web/js/router.js';
import { compareText } from '../../../web/js/runs.js';
import { changeToMine } from '../../../web/js/ranked_table.js';
import { byResource, orderParts } from '../../../web/js/time_bar.js';
import { emptyTitle, endOfSearch, fates } from '../../../web/js/search_stats.js';
import { range } from '../../../web/js/scatter.js';
import { savedByRow } from '../../../web/js/changes.js';
import { generalText } from '../../../web/js/errors.js';
import { readable } from '../../../web/js/detail.js';
import { sentenceOf } from '../../../web/js/inline.js';
import { machinesRule } from '../../../web/js/machines.js';
import { forTokensOf } from '../../../web/js/pictures/trade_off.js';
import { lowEnd } from '../../../web/js/pictures/waterfall.js';
import { letter } from '../../../web/js/bar.js';

const GIB = 1024 ** 3;

test('the button that compares runs says why it does not', () => {
  assert.deepEqual([0, 1, 2, 16, 17].map(compareText), [
    'Compare',
    'Compare 1, tick another',
    'Compare 2',
    'Compare 16',
    '17 ticked, at most 16 can be compared',
  ]);
});

test('numbers carry their unit and about four digits', () => {
  assert.equal(seconds(12.3456), '12.35 s');
  assert.equal(seconds(0.0123456), '12.35 ms');
  assert.equal(seconds(0), '0.000 s');
  assert.equal(secondsRange(0.95, 1.06), '0.950–1.060 s');
  assert.equal(secondsRange(0.7731, 1.0032, 0.8804), '773.1–1,003.2 ms');
  assert.deepEqual([0.9994, 0.99996, 9.9996, 999.96, 1e-3 * 0.99999].map(seconds), ['999.4 ms', '1.000 s', '10.00 s', '1,000 s', '1.000 ms'], 'rounded up into the next unit');
  assert.deepEqual([999400, 999600, 1e9 - 1].map(compact), ['999 k', '1.00 M', '1.00 B']);
  assert.equal(secondsLike(0.35, 6.8), '0.350 s');
  assert.equal(gib(1.5 * GIB), '1.5 GiB');
  assert.equal(gib(3 * 1024 * 1024), '3.0 MiB');
  assert.equal(gibLike(92.6 * 1024 * 1024), '0.09 GiB', 'one unit in a table');
  assert.equal(percent(0.4321), '43.2 %');
  assert.equal(percent(-0.0003), '0.0 %');
  assert.equal(signedPercent(-0.0003), '0.0 %', 'no sign before what is shown as nothing');
  assert.equal(signedPercent(0.0003), '0.0 %');
  assert.equal(signedPercent(0.0123), '+1.2 %');
  assert.equal(signedPercent(-0.0123), '-1.2 %');
  assert.deepEqual([usd(0.1234), usd(0.0000375), usd(0)], ['$0.1234', '$0.000038', '$0.0000']);
  assert.deepEqual([usd(1189.014), usd(1117698.5)], ['$1,189.01', '$1,117,699']);
  assert.deepEqual([days(30.25), days(0.4)], ['30.3 days', '9.60 h']);
  assert.deepEqual([energy(900), energy(101058)], ['900 kWh', '101 MWh']);
  assert.equal(words('fsdp_all_gather'), 'FSDP all gather');
});

test('half of a tenth of a GiB reads as in the texts of the daemon, and no plan fits with certainty', () => {
  assert.deepEqual([31.25, 15.75, 94.75, 31.26].map((value) => gib(value * GIB)), ['31.2 GiB', '15.8 GiB', '94.8 GiB', '31.3 GiB']);
  assert.deepEqual([1, 0.9995, 0.9796, 0.5, 0, null].map(probability), ['more than 99.9 %', 'more than 99.9 %', '97.9 %', '50.0 %', 'less than 0.1 %', '–']);
});

test('what is unknown is a dash, never NaN or zero', () => {
  for (const show of [seconds, gib, percent, usd, days, energy]) {
    assert.equal(show(null), '–');
    assert.equal(show(NaN), '–');
    assert.equal(show(undefined), '–');
  }
});

test('one of a thing is told as one', () => {
  assert.deepEqual([1, 2, 0.5].map(sequences), ['1 sequence', '2 sequences', '0.5 sequences']);
  assert.deepEqual([1, 2, 3, 4, 11, 12, 16, 21, 32, 112].map(ordinal), ['1st', '2nd', '3rd', '4th', '11th', '12th', '16th', '21st', '32nd', '112th']);
});

test('each moment stacks what is always there and what is there then', () => {
  const parts = [
    { name: 'weights', bytes: 2, at: 'always' },
    { name: 'acts', bytes: 5, at: 'loss' },
    { name: 'acts', bytes: 6, at: 'backward' },
    { name: 'logits', bytes: 1, at: 'loss' },
  ];
  assert.deepEqual(
    memoryStacks(parts).map((stack) => [stack.at, stack.total]),
    [
      ['loss', 8],
      ['backward', 8],
    ],
  );
  assert.deepEqual(
    memoryRows(parts).map((row) => row.name),
    ['weights', 'acts', 'logits'],
  );
  assert.deepEqual(
    memoryStacks([parts[0]]).map((stack) => [stack.at, stack.total]),
    [['always', 2]],
  );
});

test('a verdict says how surely, and a stored run no more than its row knows', () => {
  assert.equal(fitText({ fit_verdict: 'tight', fit_probability: 0.38 }), 'tight, fits with a probability of 38.0 %');
  assert.equal(fitText({ fit_verdict: 'fits', fit_probability: 0.991 }), 'fits with a probability of 99.1 %');
  assert.equal(fitText({ fit_verdict: 'does_not_fit', fit_probability: 0.04 }), 'does not fit with a probability of 96.0 %');
  assert.equal(fitText({ fit_verdict: 'tight' }), 'tight');
  assert.equal(verdictOfRun({ fits: true, fit_verdict: 'tight' }), 'tight');
  assert.equal(verdictOfRun({ fits: true }), 'fits_or_tight');
  assert.equal(verdictOfRun({ fits: true, hbm_bytes_per_device: 33, hbm_limit_bytes_per_device: 32 }), 'tight');
  assert.equal(verdictOfRun({ fits: false }), 'does_not_fit');
  assert.equal(verdictOfRun({ fits: null }), null);
});

test('exposed parts keep their sum and hidden time is what is left', () => {
  const parts = orderParts([
    { name: 'a', resource: 'ici', seconds: 3, exposed_seconds: 1 },
    { name: 'b', resource: 'mxu', seconds: 5, exposed_seconds: 5 },
  ]);
  assert.deepEqual(
    parts.map((part) => [part.name, part.hidden_seconds]),
    [
      ['b', 0],
      ['a', 2],
    ],
  );
  assert.deepEqual(byResource(parts), [
    { resource: 'mxu', exposed: 5, hidden: 0 },
    { resource: 'ici', exposed: 1, hidden: 2 },
  ]);
});

test('a plan reads in a few words', () => {
  assert.equal(
    meshText([
      { axis: 'data', size: 1 },
      { axis: 'fsdp', size: 128 },
      { axis: 'context', size: 2 },
    ]),
    'fsdp 128 × context 2',
  );
  assert.equal(meshText([{ axis: 'fsdp', size: 1 }]), 'one device');
  assert.equal(
    meshOfConfig({ ici_fsdp_parallelism: -1, dcn_data_parallelism: 2, ici_tensor_parallelism: 1 }),
    'dcn data 2 × fsdp the rest',
  );
  assert.deepEqual(rematText({ remat_policy: 'custom', out_proj: 'device', decoder_layer_input: 'offload' }), {
    text: 'custom: saves 1, offloads 1',
    tensors: 'out_proj, decoder_layer_input (host)',
  });
  assert.equal(batchText({ per_device_batch_size: 2, gradient_accumulation_steps: 4 }), '2 × 4 accumulated');
});

test('the mesh of a plan on several slices names the axes across them', () => {
  const estimate = { mesh: [{ axis: 'fsdp', size: 128 }, { axis: 'context', size: 1 }] };
  const mesh = (config, slices) => meshOfPlan({ config, estimate, cluster: { slices } });
  assert.equal(mesh({ ici_fsdp_parallelism: 128, dcn_data_parallelism: 2 }, 2), 'dcn data 2 × fsdp 128');
  assert.equal(mesh({}, 2), 'dcn data 2 × fsdp 128', 'MaxText gives data the slices that no key names');
  assert.equal(mesh({ dcn_pipeline_parallelism: 2, dcn_data_parallelism: -1 }, 8), 'dcn data 4 × dcn stage 2 × fsdp 128');
  assert.equal(mesh({ dcn_data_parallelism: -1 }, 1), 'fsdp 128');
  assert.equal(meshOfPlan({ config: { dcn_fsdp_parallelism: 2 }, estimate: { mesh: [] }, cluster: { slices: 2 } }), 'dcn fsdp 2');
  assert.deepEqual(axesAcross({ dcn_data_parallelism: -1 }), [{ axis: 'dcn data', size: -1 }]);
  assert.equal(meshOfPlan({ config: { dcn_data_parallelism: 2 } }), 'dcn data 2');
});

test('letters go on after Z', () => {
  assert.deepEqual([0, 25, 26, 27].map(letter), ['A', 'Z', 'AA', 'AB']);
});

test('addresses lead to their views', () => {
  assert.deepEqual(parseRoute('#/?model=x'), { view: 'plan', query: 'model=x' });
  assert.deepEqual(parseRoute('#/runs/a%2Fb'), { view: 'run', id: 'a/b' });
  assert.deepEqual(parseRoute('#/compare?runs=a,b'), { view: 'compare', runs: ['a', 'b'] });
  assert.equal(parseRoute('').view, 'plan');
  assert.equal(parseRoute('#/').view, 'plan');
  assert.deepEqual(parseRoute('#/nosuchpage?a=b'), { view: 'missing', path: '/nosuchpage' });
  assert.deepEqual(parseRoute('#/runs/%E0%A4%A'), { view: 'run', id: '%E0%A4%A' }, 'an address that was cut off');
});

test('a problem says each thing once, with the time to wait', () => {
  const away = {
    message: 'The database cannot be reached',
    detail: 'the database cannot be reached',
    retryAfter: '2',
    errors: [{ pointer: '', detail: 'the database cannot be reached', hint: 'estimates go on working' }],
  };
  assert.equal(generalText(away), 'Estimates go on working. Try again in 2 s.');
  assert.equal(generalText({ title: 'No', detail: 'because', errors: [] }), 'Because.');
  assert.equal(
    generalText({ title: 'No', detail: 'x is wrong', errors: [{ pointer: '/x', detail: 'x is wrong' }] }),
    '',
  );
});

test('the size of a job counts chips, devices and hosts', () => {
  const cluster = { chips: 64, devices: 128, hosts: 1 };
  assert.equal(
    jobSize({ model: { params_total: 671e9, params_active: 37.5e9 }, cluster }),
    '671 B parameters, 37.5 B active; 64 chips, 128 devices, 1 host',
  );
  assert.equal(jobSize({}), '');
});

test('the fates of a search add up, and are not drawn when they cannot', () => {
  const search = { considered: 10, illegal: 4, pruned: 3, out_of_memory: 1 };
  assert.equal(
    fates(search).reduce((all, part) => all + part.value, 0),
    10,
  );
  assert.deepEqual(fates({ considered: 0, illegal: 0, pruned: 0, out_of_memory: 0 }), []);
  assert.deepEqual(fates({ considered: 5, illegal: 9, pruned: 0, out_of_memory: 0 }), []);
  assert.deepEqual(fates({}), []);
});

test('what a search left out is a fate of its own, and the reason why it is not exhaustive', () => {
  const search = { considered: 10, illegal: 4, pruned: 1, out_of_memory: 1, left_out: 3, exhaustive: false };
  assert.deepEqual(
    fates(search).map((part) => part.value),
    [4, 1, 1, 3, 1],
  );
  assert.match(endOfSearch(search), /^3 combinations not tried.*narrower/);
  assert.match(endOfSearch({ ...search, left_out: undefined }), /more evaluations/);
  assert.match(endOfSearch({ ...search, left_out: undefined, exhaustive: true }), /whole space/);
});

test('the headline of an answer without plans is its own reason', () => {
  const search = { considered: 136, illegal: 39, exhaustive: true };
  assert.equal(emptyTitle(search), 'No legal plan fits in memory.');
  assert.equal(emptyTitle({ ...search, illegal: 136, empty_why: 'none of 136 combinations is legal: …' }), 'No legal plan.');
  assert.equal(emptyTitle({ ...search, exhaustive: false, empty_why: '1 evaluation was not enough …' }), 'The search ended before it found a plan that fits.');
  assert.equal(emptyTitle({ ...search, empty_why: 'the length … change 3 keys of the baseline, search.max_changes allows 1: …' }), 'No plan has as few changes as are allowed.');
  assert.equal(emptyTitle({ ...search, empty_why: 'none of the 97 legal combinations can be priced: …' }), 'No legal plan can be priced.');
});

test('plans of another batch are compared per token, and that is said', () => {
  const mine = { step_time_s: 2, tokens_per_step: 100 };
  assert.equal(changeToMine(mine, { step_time_s: 1.8, tokens_per_step: 100 }), '-10.0 % vs mine');
  assert.equal(changeToMine(mine, { step_time_s: 6, tokens_per_step: 400 }), '-25.0 % per token vs mine');
  assert.equal(changeToMine(mine, { step_time_s: null, tokens_per_step: 400 }), '');
});

test('terms that hardly moved are one row, and the differences still add up', () => {
  const term = (name, from, to) => ({ name, from, to, delta: to - from });
  const rows = movedTerms([term('a', 3, 3), term('b', 1, 1.5), term('c', 2, 2.0001), term('d', 0, 0)]);
  assert.deepEqual(
    rows.map((row) => row.name),
    ['b', 'all other terms'],
  );
  assert.ok(Math.abs(rows.reduce((all, row) => all + row.delta, 0) - 0.5001) < 1e-12);
  assert.deepEqual(movedTerms([term('a', 1, 2)]).length, 1, 'no empty rest');
  assert.deepEqual(movedTerms([term('a', 0, 0)]), []);
});

test('limits in percent become fractions, and what is empty is not checked', () => {
  const form = { 'gate-step': '3 %', 'gate-hbm': '', 'gate-fit': false };
  assert.deepEqual(
    limitsOf((id) => form[id]),
    { limits: { must_fit: false, step_time_increase_frac: 0.03 }, errors: [] },
  );
});

test('intervals overlap, touch or are apart', () => {
  const run = (low, high) => ({ run_id: 'r', step_time_low_s: low, step_time_high_s: high });
  assert.ok(overlapNote(run(1, 2), run(2, 3), String));
  assert.equal(overlapNote(run(1, 2), run(2.1, 3), String), null);
  assert.equal(overlapNote(run(1, 2), run(null, undefined), String), null);
  const batch = (tokens_per_step, ...ends) => ({ ...run(...ends), tokens_per_step });
  assert.match(overlapNote(batch(100, 1, 2), batch(200, 2.4, 4), String), /overlap per token:/, 'twice the work in twice the time');
  assert.equal(overlapNote(batch(100, 1, 2), batch(400, 1, 2), String), null, 'four times the work in the same time');
});

test('the interval of a run of another batch is drawn for the same tokens', () => {
  const run = (tokens_per_step, step_time_s, step_time_low_s, step_time_high_s) => ({ tokens_per_step, step_time_s, step_time_low_s, step_time_high_s });
  assert.deepEqual(likened(run(100, 1), run(400, 8, 6, null)), run(400, 2, 1.5, null));
  assert.deepEqual(likened(run(100, 1), run(undefined, 8, 6, 9)), run(undefined, 8, 6, 9));
});

test('compared runs of one label are told apart by their date, or by their id', () => {
  const run = (run_id, label, created_at) => ({ run_id, label, created_at });
  const names = (...runs) => [...namesOf(runs).values()];
  assert.deepEqual(names(run('a', 'x', '2026-11-21T05:00Z'), run('b', 'y', '2026-11-21T05:00Z')), ['x', 'y']);
  assert.deepEqual(names(run('a', 'x', '2026-11-21T05:00Z'), run('b', 'x', '2026-11-22T05:00Z')), ['x (2026-11-21 05:00 UTC)', 'x (2026-11-22 05:00 UTC)']);
  assert.deepEqual(names(run('a', 'x', '2026-11-21T05:00Z'), run('b', 'x', '2026-11-21T05:00Z')), ['x (a)', 'x (b)']);
  assert.deepEqual(names(run('0193a000-0000-7000-8000-000000000002', null, '2026-11-21T05:00Z')), ['0193a000-0000']);
});

test('a single value has a range', () => {
  assert.ok(range([5]).high > range([5]).low);
  assert.ok(range([0]).high > 0);
});

test('a configuration of another batch is drawn at the time that the tokens of a plan take it', () => {
  const plan = (tokens_per_step, step_time_s) => ({ estimate: { tokens_per_step, step_time_s } });
  const plans = [plan(200, 12), plan(200, 13)];
  assert.deepEqual(forTokensOf(plans, plan(100, 7)), { ...plan(100, 14), isScaled: true });
  assert.deepEqual(forTokensOf(plans, plan(200, 7)), plan(200, 7));
  assert.deepEqual(forTokensOf([...plans, plan(300, 15)], plan(100, 7)), plan(100, 7), 'no batch is that of all plans');
  assert.equal(forTokensOf(plans, null), null);
});

test('messages of the daemon are sentences, and names of settings keep their letters', () => {
  assert.equal(sentenceOf('a head of 128 fills 50 %'), 'A head of 128 fills 50 %.');
  assert.equal(sentenceOf('remat_policy=full would fit'), 'remat_policy=full would fit.');
  assert.equal(sentenceOf('foo is not a MaxText key.'), 'foo is not a MaxText key.');
  assert.equal(sentenceOf('`context` is remat'), '`context` is remat.');
  assert.equal(sentenceOf('did you mean `food`?'), 'Did you mean `food`?');
  assert.equal(sentenceOf('name is longer than 95 bytes'), 'name is longer than 95 bytes.');
  assert.equal(sentenceOf(''), '');
});

test('what the rows of the changes save adds up to the whole, as in the waterfall', () => {
  const rows = [
    { key: 'remat_policy', group: 'remat', group_gain_frac: 0.2, order: 2, gain_frac: 0.07 },
    { key: 'sa_block_q', group: 'kernel', group_gain_frac: 0.12, order: 1, gain_frac: 0.11 },
    { key: 'out_proj', group: 'remat', group_gain_frac: 0.2, order: 2, gain_frac: 0.07 },
    { key: 'unpriced', group: 'other', order: null, gain_frac: null },
  ];
  assert.deepEqual(savedByRow(rows), [0.07, 0.11, null, null]);
});

test('the rule that sorts machines is named', () => {
  assert.equal(machinesRule('step_time'), 'most tokens per second first');
  assert.equal(machinesRule('usd_per_token', 1e12), 'for 1.00 T tokens, fewest dollars per token first');
  assert.equal(machinesRule('hbm'), 'least memory per device first');
});

test('reasons name parts as the tables do, and leave settings alone', () => {
  const estimate = { time_parts: [{ name: 'fsdp_all_gather' }], hbm_parts: [{ name: 'saved_activations' }] };
  assert.equal(
    readable('The mxu binds: fsdp_all_gather, saved_activations 4.0; query_proj, remat_policy=full; +0.250 s tensor_collectives', estimate),
    'The MXU binds: FSDP all gather, saved activations 4.0; query_proj, remat_policy=full; +0.250 s tensor collectives',
  );
});

test('a plan is as complex as its mesh, its accumulation and what it keeps on the host', () => {
  const plan = (sizes, host_bytes_per_host, config = {}) => ({ estimate: { host_bytes_per_host, mesh: Object.entries(sizes).map(([axis, size]) => ({ axis, size })) }, config });
  assert.equal(complexity(plan({ fsdp: 8, data: 1 }, 0)), 1);
  assert.equal(complexity(plan({ fsdp: 8, tensor: 2, tensor_sequence: 2 }, 0)), 5, 'tensor axes twice');
  assert.equal(complexity(plan({ fsdp: 8 }, 0, { gradient_accumulation_steps: 2 })), 2);
  assert.equal(complexity(plan({ fsdp: 8 }, 1e9)), 2);
  assert.equal(complexity(plan({ fsdp: 8 }, 0, { dcn_data_parallelism: 2 })), 2, 'an axis across slices is one, too');
});

test('what plans are told to be ordered by is what they are ordered by', () => {
  const plan = (rank, time, gibs, fit_probability = 1) => ({
    rank,
    tie_group: 1,
    config: {},
    estimate: { step_time_s: time, step_time_high_s: time * 1.1, tokens_per_step: 1, hbm_bytes_per_device: gibs * GIB, fit_probability, mesh: [{ axis: 'fsdp', size: 8 }] },
  });
  const plans = [plan(1, 20, 8.9, 0.98), plan(2, 60, 8.8), plan(3, 10, 9, 0.99)];
  const hbm = { objective: 'hbm', tie_frac: 0.02 };
  assert.match(advisedBy(hbm), /memory of a device/);
  assert.equal(clauseOf(plans[0], plans, hbm), 'its memory is within 2 % of plan 2’s, and it is simpler');
  assert.equal(clauseOf(plans[1], plans, hbm), '+200.0 % a token against plan 1; memory -1.1 %, a tie');
  assert.equal(clauseOf(plans[1], plans.slice(1), hbm), 'its memory, 8.8 GiB, is the least of all');
  const time = { objective: 'step_time', tie_frac: 0.02 };
  assert.match(advisedBy(time), /predicted time/);
  assert.match(clauseOf(plans[2], plans, time), /^−50\.0 % a token against plan 1; a tie$/);
  assert.equal(clauseOf(plans[0], plans, time), 'its predicted time is within 2 % of plan 3’s, and it is simpler');
  plans[0].estimate.step_time_high_s = 20.5;
  assert.equal(clauseOf(plans[0], plans, time), 'its predicted time is within 2 % of plan 3’s, and it is surer');
  assert.equal(clauseOf(plans[2], plans.slice(2), time), '');
  const tight = { ...plan(3, 10, 9, 0.9834), tie_group: 1 };
  const safe = plan(1, 20, 8.9, 0.99995);
  assert.match(clauseOf(safe, [safe, { ...tight, config: { quantization: 'int8' } }], time), /within 2 % of plan 3’s, and it is not quantised$/);
  assert.equal(
    clauseOf(safe, [safe, tight], { ...time, tie_fit_probability: 0.99 }),
    'its predicted time is within 2 % of plan 3’s, and it fits more surely (with more than 99.9 % against 98.3 %)',
  );
  const behind = { ...plan(4, 21, 9), tie_group: 2 };
  behind.estimate.step_time_high_s = 20.4;
  assert.match(clauseOf(behind, [plans[0], behind], time), /^\+5\.0 % a token against plan 1; but surer: at most 20\.40 s against 20\.50 s$/);
  const slow = { objective: 'step_time_high', tie_frac: 0.02 };
  assert.match(advisedBy(slow), /slow end/);
  assert.match(clauseOf({ ...plans[2], tie_group: 2 }, plans, slow), /; but its slow end is -46\.3 %$/);
  assert.equal(firstOrder('step_time_high'), 'slow');
  assert.equal(ORDERS.find(({ id }) => id === 'certain').end, 'most first');
  assert.deepEqual(ordered(plans, 'certain').map(({ rank }) => rank), [2, 3, 1]);
});

test('a plan names what it gains most on the advised one and what it loses most', () => {
  const plan = (rank, ...parts) => ({
    rank,
    config: {},
    estimate: {
      step_time_s: parts.reduce((all, seconds) => all + seconds, 0),
      tokens_per_step: 1,
      hbm_bytes_per_device: GIB,
      mesh: [],
      time_parts: ['recompute', 'fsdp_all_gather', 'norms'].map((name, index) => ({ name, exposed_seconds: parts[index] })),
    },
  });
  const advised = plan(1, 8, 1, 2);
  const clause = (other) => clauseOf(other, [advised, other], {}).replaceAll('\u00a0', ' ').split(';')[0];
  assert.equal(clause(plan(2, 3.71, 3.07, 4)), '−2.0 % a token against plan 1: −4.29 s recompute, +2.07 s FSDP all gather');
  assert.equal(clause(plan(2, 9, 1.5, 2.25)), '+15.9 % a token against plan 1: +1.00 s recompute, +0.50 s FSDP all gather');
  assert.equal(clause(plan(2, 8, 1, 1)), '−9.1 % a token against plan 1: −1.00 s norms');
  assert.equal(clause(plan(2, 8, 1, 2)), '0.0 % a token against plan 1');
});

test('the simplest of plans alike in mesh is the one that the engine puts first for that', () => {
  const plan = (rank, time) => ({ rank, config: {}, estimate: { step_time_s: time, tokens_per_step: 1, mesh: [{ axis: 'fsdp', size: 8 }] } });
  const [first, faster] = [plan(1, 2), plan(2, 1)];
  const marks = marksOf([first, faster]);
  assert.ok(marks.get(first).includes('simplest') && !marks.get(faster).includes('simplest'));
});

test('a waterfall begins at zero unless its moves would be too small to be seen', () => {
  assert.equal(lowEnd([3.35, 1.03, 2]), 0);
  assert.equal(lowEnd([1, 10]), 0);
  assert.ok(lowEnd([10, 9.5]) > 9);
  assert.ok(lowEnd([10, 10]) < 10);
});

test('terms of two runs have the digits of their own step, not of a longer run beside them', () => {
  const terms = [{ from: 3, to: 0.5 }, { from: 0.35, to: 0.015 }];
  assert.ok(Math.abs(stepOf({ time_terms: terms }, 2) - 3.35) < 1e-9);
  assert.ok(Math.abs(stepOf({ time_terms: terms }, 20) - 10.3) < 1e-9);
  assert.equal(stepOf({ time_terms: null }, 1), undefined);
});

test('who asks for the cheapest is told why plans of one machine go by time', () => {
  assert.equal(advisedBy({ objective: 'usd_per_token' }), 'the predicted time of a token, in which its cost on one machine lies');
  assert.equal(advisedBy({ objective: 'step_time' }), 'the predicted time of a token');
});
