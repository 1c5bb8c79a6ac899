import assert from 'node:assert/strict';
import test from 'node:test';
import { sweepAddress } from '../../../web/js/sweep_address.js';
import { axesOf, gridOf, isSweptBy, locateSweep, parseAxis } from '../../../web/js/sweep_axes.js';
import { sharedOf } from '../../../web/js/sweep_job.js';
import { codesOf, warningsOf, whoseText } from '../../../web/js/sweep_warnings.js';

const [A, B] = ['/config/a', '/config/b'];
const items = (changes) => changes.map((row, item) => ({ item, changes: row }));

test('the axes of a sweep are what its items differ in; the last one varies fastest', () => {
  const six = items([{ [A]: 1, [B]: 'x' }, { [B]: 'y' }, { [B]: 'z' }, { [A]: 2 }, { [A]: 2, [B]: 'y' }, { [A]: 2, [B]: 'z' }]);
  assert.deepEqual(axesOf(six).map(({ key, values }) => [key, values]), [['a', [1, 2]], ['b', ['x', 'y', 'z']]]);
  assert.deepEqual(gridOf(six).map((axis) => axis.key), ['a', 'b']);
  const turned = items([{ [B]: 'x', [A]: 1 }, { [B]: 'y' }, { [A]: 2 }, { [A]: 2, [B]: 'y' }]);
  assert.deepEqual(gridOf(turned).map((axis) => axis.key), ['a', 'b'], 'whatever the order of the names');
});

test('a sweep around a plan keeps its slices and its project, and there is none for a model without a name', () => {
  const plan = { config: { dcn_data_parallelism: 2 }, cluster: { chip: 'v6e', topology: '4x4', slices: 2 } };
  const query = new URLSearchParams(sweepAddress(plan, { model: 'llama3.1-8b', project: 'alpha' }).split('?')[1]);
  assert.deepEqual(['slices', 'project', 'config'].map((name) => query.get(name)), ['2', 'alpha', 'dcn_data_parallelism=2']);
  assert.equal(sweepAddress(plan, { model: { hf_config: {} } }), null);
});

test('a sweep that is no grid of two axes has no heatmap', () => {
  assert.equal(gridOf(items([{ [A]: 1 }, { [A]: 2 }])), null);
  assert.equal(gridOf(items([{ [A]: 1, [B]: 1 }, { [A]: 2, [B]: 2 }])), null);
  assert.equal(gridOf(items([{ [A]: 1, [B]: 'x' }, { [B]: 'y' }, { [A]: 2, [B]: 'y' }, { [A]: 2 }])), null, 'not in the order of a grid');
  assert.equal(gridOf([]), null);
});

test('what the items of a sweep share is told without what is swept', () => {
  const request = { model: 'llama3.1-8b', cluster: { chip: 'v6e', topology: '4x4', slices: 2 }, project: 'alpha', config: { a: 1, b: 'x' }, xla_flags: ['--xla_f=1'] };
  assert.deepEqual(sharedOf(request, [A]), { title: 'llama3.1-8b on 2 × v6e 4x4', project: 'alpha', settings: 'b=x', flags: '--xla_f=1' });
  const swept = sharedOf(request, ['/cluster/topology', '/xla_flags', '/project']);
  assert.deepEqual(swept, { title: 'llama3.1-8b', project: '', settings: 'a=1\nb=x', flags: '' });
  assert.equal(sharedOf(request, ['/model']).title, '2 × v6e 4x4');
  assert.equal(sharedOf(request, ['/config']).settings, '');
  assert.deepEqual(sharedOf({}, []), { title: '', project: '', settings: '', flags: '' });
});

test('the warnings of a sweep are told once for each code and place, with the items that have them', () => {
  const warning = (code, pointer, detail) => ({ code, pointer, detail });
  const [a, b, other] = [warning('unknown-key', '/config/a', 'a is none'), warning('unknown-key', '/config/b', 'b is none'), warning('unknown-key', '/config/b', 'b has 3')];
  const three = [{ item: 0, warnings: [a, b] }, { item: 1 }, { item: 2, warnings: [b, a, other] }];
  assert.deepEqual(warningsOf(three), [{ warning: a, items: [0, 2], differs: false }, { warning: b, items: [0, 2], differs: true }]);
  assert.deepEqual(three.map(codesOf), ['unknown-key', '', 'unknown-key']);
  assert.equal(whoseText({ items: [0, 2] }, 3), 'In 2 of 3 items with an answer: 0, 2.');
  assert.equal(whoseText({ items: [0, 2], differs: true }, 2), 'In all 2 items with an answer. These are the words of item 0; others have their own.');
  assert.match(whoseText({ items: Array.from({ length: 20 }, (_, at) => at) }, 21), /: 0, 1, 2, 3, 4, 5, 6, 7 …\.$/);
});

test('an axis is a key and its values, with commas or as a list of YAML', () => {
  const numbers = { key: 'per_device_batch_size', values: [1, 2, 4] };
  for (const values of ['=1, 2, 4', ': 1, 2, 4', '=[1, 2, 4]', ':\n  - 1\n  - 2\n  - 4', ': - 1 - 2 - 4'])
    assert.deepEqual(parseAxis(`per_device_batch_size${values}`), numbers, values);
  assert.deepEqual(parseAxis('mlp_activations=["silu","linear"], ["gelu","linear"]').values, [['silu', 'linear'], ['gelu', 'linear']]);
  assert.deepEqual(parseAxis('a=-1, -2').values, [-1, -2]);
  assert.equal(parseAxis('batch'), null);
  assert.equal(parseAxis('batch='), null);
});

test('axes of a link are those of the sweep, or not', () => {
  const axis = (key, ...values) => ({ key, values });
  const four = items([{ [A]: 1, [B]: 'x' }, { [B]: 'y' }, { [A]: 2 }, { [A]: 2, [B]: 'y' }]);
  assert.ok(isSweptBy(four, axis('a', 1, 2), axis('b', 'x', 'y')));
  assert.ok(!isSweptBy(four, axis('a', 1, 3), axis('b', 'x', 'y')), 'another value');
  assert.ok(!isSweptBy(four, axis('a', 1, 2), axis('c', 'x', 'y')), 'another key');
  assert.ok(!isSweptBy(four, axis('b', 'x', 'y'), axis('a', 1, 2)), 'turned round');
  assert.ok(isSweptBy(items([{ [B]: 'x' }, { [B]: 'y' }]), axis('a', 1), axis('b', 'x', 'y')), 'one value, in which no item differs');
});

test('an error of a swept value stands at its entry', () => {
  const keys = { y: 'remat_policy', x: 'per_device_batch_size' };
  assert.equal(locateSweep('/grid/axes/~1config~1remat_policy/1', keys).field, 'sweep-y');
  assert.equal(locateSweep('/grid/axes/~1config~1per_device_batch_size/0', keys).field, 'sweep-x');
  assert.equal(locateSweep('/grid/base/cluster/slices', keys).field, 'sweep-slices');
  assert.equal(locateSweep('/y', { y: undefined, x: undefined }).field, 'sweep-y', 'before there are keys');
});
