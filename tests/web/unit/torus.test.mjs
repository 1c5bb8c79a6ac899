import assert from 'node:assert/strict';
import test from 'node:test';
import { orientation } from '../../../web/js/pictures/torus.js';

test('the longest dimension lies across, the shortest into the page', () => {
  assert.deepEqual(orientation([4, 8, 8]), { across: 1, down: 2, deep: 0 });
  assert.deepEqual(orientation([4, 4, 4]), { across: 0, down: 1, deep: 2 });
  assert.deepEqual(orientation([16, 16, 1]), { across: 0, down: 1, deep: 2 });
  assert.deepEqual(orientation([2, 2, 1]), { across: 0, down: 1, deep: 2 });
  assert.deepEqual(orientation([4, 4, 16]), { across: 2, down: 0, deep: 1 });
});
