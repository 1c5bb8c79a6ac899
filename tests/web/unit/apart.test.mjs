import assert from 'node:assert/strict';
import test from 'node:test';
import { apart } from '../../../web/js/pictures/apart.js';

const BOX = { x0: 0, x1: 300, y0: 0, y1: 200 };
const RADIUS = 10;

function least(places) {
  const distances = places.flatMap((a, i) => places.slice(i + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y)));
  return Math.min(...distances);
}

test('a mark that touches no other stays at its point', () => {
  const points = [{ x: 50, y: 50 }, { x: 90, y: 50 }];
  assert.deepEqual(apart(points, { radius: RADIUS, box: BOX }), points.map((point) => ({ ...point, isFixed: true })));
});

test('marks of one point, in a crowd and at the rim lie beside each other, inside, and off their points', () => {
  const crowds = {
    'ten at one point': Array.from({ length: 10 }, () => ({ x: 150, y: 100 })),
    'a crowd': Array.from({ length: 11 }, (_, index) => ({ x: 150 + 3 * index, y: 100 + ((index * 7) % 5) })),
    'in a corner': Array.from({ length: 5 }, (_, index) => ({ x: 299 - index, y: 199 })),
    'beside one that stays': [{ x: 150, y: 100 }, { x: 152, y: 100 }, { x: 176, y: 100 }],
  };
  for (const [name, points] of Object.entries(crowds)) {
    const places = apart(points, { radius: RADIUS, box: BOX });
    assert.ok(least(places) > 2 * RADIUS - 0.1, `${name}: ${least(places)}`);
    for (const place of places.filter(({ isFixed }) => !isFixed)) {
      assert.ok(place.x >= RADIUS && place.x <= 290 && place.y >= RADIUS && place.y <= 190, `${name} stays inside`);
      assert.ok(Math.min(...points.map((point) => (place === point ? 99 : Math.hypot(point.x - place.x, point.y - place.y)))) > RADIUS, `${name}: no point is covered`);
    }
    assert.deepEqual(apart(points, { radius: RADIUS, box: BOX }), places, 'the same points give the same places');
  }
});
