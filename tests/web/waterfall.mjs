// The waterfall's promise: each bar begins where the one before ended, from the first total to the last.

import assert from 'node:assert/strict';

const UNITS = { s: 1, ms: 1e-3, µs: 1e-6 };
export const secondsIn = (text) => {
  const [, number, unit] = /([\d,.]+) (s|ms|µs)/.exec(text);
  return Number(number.replaceAll(',', '')) * UNITS[unit];
};
const near = (a, b, what) => assert.ok(Math.abs(a / b - 1) < 2e-3, `${what}: ${a}, not ${b}`);

// picture: locator of a drawn waterfall; from_s and to_s: what its ends have to say. The bars' lengths and the numbers beside
// them have to add up, each by itself.
export async function waterfallAddsUp(picture, from_s, to_s) {
  const bars = await picture.locator('.fall').evaluateAll((all) =>
    all.map((bar) => {
      const [x, width] = ['x', 'width'].map((name) => Number(bar.getAttribute(name)));
      return { left: x, right: x + width, kind: bar.getAttribute('class').split('fall-')[1] };
    }),
  );
  assert.ok(bars.length >= 3, 'two ends, and what moved between them');
  const [start, ...moves] = bars;
  const end = moves.pop();
  let level = start.right;
  for (const { left, right, kind } of moves) {
    const from = kind === 'gain' ? right : left;
    assert.ok(Math.abs(from - level) < 2, `a bar begins at ${from}, the one before ended at ${level}`);
    level = kind === 'gain' ? left : right;
  }
  assert.ok(Math.abs(end.right - level) < 2, `the last one ends at ${end.right}, its bars at ${level}`);

  const texts = await picture.locator('text.value').allTextContents();
  near(secondsIn(texts[0]), from_s, 'the first end');
  near(secondsIn(texts.at(-1)), to_s, 'the last end');
  const changes_frac = texts.slice(1, -1).map((text) => Number.parseFloat(text.replace('−', '-')) / 100);
  const sum = changes_frac.reduce((all, change) => all + change, 0);
  const rounding = 0.0006 * texts.length;
  assert.ok(Math.abs(sum - (to_s / from_s - 1)) < rounding, `${texts.join(' ')} is ${sum}, not ${to_s / from_s - 1}`);
}
