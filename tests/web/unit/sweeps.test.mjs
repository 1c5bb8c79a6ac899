import assert from 'node:assert/strict';
import test from 'node:test';
import { axesOf, gridOf } from '../../../web/js/sweeps.js';

const [A, B] = ['/config/a', '/config/b'];
const items = (changes) => changes.map((row, item) => ({ item, changes: row }));

test('the axes of a sweep are what its items differ in; the last one varies fastest', () => {
  const six = items([{ [A]: 1, [B]: 'x' }, { [B]: 'y' }, { [B]: 'z' }, { [A]: 2 }, { [A]: 2, [B]: 'y' }, { [A]: 2, [B]: 'z' }]);
  assert.deepEqual(axesOf(six).map(({ key, values }) => [key, values]), [['a', [1, 2]], ['b', ['x', 'y', 'z']]]);
  assert.deepEqual(gridOf(six).map((axis) => axis.key), ['a', 'b']);
  const turned = items([{ [B]: 'x', [A]: 1 }, { [B]: 'y' }, { [A]: 2 }, { [A]: 2, [B]: 'y' }]);
  assert.deepEqual(gridOf(turned).map((axis) => axis.key), ['a', 'b'], 'whatever the order of the names');
});

test('a sweep that is no grid of two axes has no heatmap', () => {
  assert.equal(gridOf(items([{ [A]: 1 }, { [A]: 2 }])), null);
  assert.equal(gridOf(items([{ [A]: 1, [B]: 1 }, { [A]: 2, [B]: 2 }])), null);
  assert.equal(gridOf(items([{ [A]: 1, [B]: 'x' }, { [B]: 'y' }, { [A]: 2, [B]: 'y' }, { [A]: 2 }])), null, 'not in the order of a grid');
  assert.equal(gridOf([]), null);
});
