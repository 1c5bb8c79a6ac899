// The 90 % interval of several values on one scale, so that one sees which of them the prediction can tell apart.

import { h, svg } from './dom.js';
import { words } from './format.js';

const HEIGHT = 16;

const known = (estimate) => Number.isFinite(estimate?.step_time_low_s) && Number.isFinite(estimate?.step_time_high_s);

// The scale of a column: {low, high} over all estimates, with a little room at both ends; null when nothing is known.
export function intervalScale(estimates) {
  const rows = estimates.filter(known);
  if (!rows.length) return null;
  const low = Math.min(...rows.map((row) => row.step_time_low_s));
  const high = Math.max(...rows.map((row) => row.step_time_high_s));
  const room = (high - low || high || 1) * 0.03;
  return { low: low - room, high: high + room };
}

// A whisker from low to high with a mark at the value. The numbers stand beside it in the table.
export function intervalMark(estimate, scale) {
  if (!scale || !known(estimate)) return '–';
  const at = (value) => `${((100 * (value - scale.low)) / (scale.high - scale.low)).toFixed(2)}%`;
  const { step_time_low_s: low, step_time_high_s: high, step_time_s: value } = estimate;
  const middle = HEIGHT / 2;
  const tick = (x, half) => svg('line', { x1: at(x), x2: at(x), y1: middle - half, y2: middle + half });
  return svg(
    'svg',
    { class: 'interval', height: HEIGHT, 'aria-hidden': 'true', focusable: 'false' },
    svg('line', { x1: at(low), x2: at(high), y1: middle, y2: middle }),
    tick(low, 3),
    tick(high, 3),
    svg('circle', { cx: at(value), cy: middle, r: 4 }),
  );
}

// The mark for a table, with the confidence below it where that is not the usual one.
export function intervalCell(estimate, scale) {
  const { confidence } = estimate;
  const unusual = confidence && confidence !== 'calibrated';
  return [intervalMark(estimate, scale), unusual ? h('span', { class: 'second' }, words(confidence)) : null];
}
