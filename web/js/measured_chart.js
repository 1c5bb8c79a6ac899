// Predicted against measured over time: for each measurement the 90 % interval of its prediction as a whisker and the measured time
// as a dot, on one axis: seconds of one plan, or shares of what was predicted of each of several. The numbers stand in a table beside it.

import { h, svg } from './dom.js';
import { dateTime, percent, seconds, secondsLike } from './format.js';

const HEIGHT = 182;
const TOP = 4;
const BOTTOM = 24;

const SHOWN = ['step_time_s', 'step_time_low_s', 'step_time_high_s', 'measured_step_time_s'];
const sharesOf = (row) => ({ ...row, ...Object.fromEntries(SHOWN.map((name) => [name, row[name] / row.step_time_s])) });

// measurements: those of GET /v1/accuracy, oldest first. isShare: of several plans, whose steps are of other lengths.
export function measuredChart(measurements, { isShare = false } = {}) {
  const rows = isShare ? measurements.map(sharesOf) : measurements;
  const values = rows.flatMap((row) => [row.step_time_low_s, row.step_time_high_s, row.measured_step_time_s]);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = (high - low || high) * 0.12; // the highest tick's words stand above its line
  const left = (index) => `${(12 + (86 * (index + 0.5)) / rows.length).toFixed(2)}%`;
  const down = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low + room) / (high - low + 2 * room));
  const axis = (x, y, anchor, text) => svg('text', { class: 'axis', x, y, 'text-anchor': anchor }, text);
  const told = (value) => (isShare ? percent(value, 0) : secondsLike(value, high));
  const tick = (value) => [
    svg('line', { class: 'grid', x1: 0, x2: '100%', y1: down(value), y2: down(value) }),
    svg('text', { x: 4, y: down(value) - 3 }, told(value)),
  ];
  const ticks = high > low ? [low, (low + high) / 2, high] : [low];
  const inside = rows.filter((row) => row.inside_interval).length;
  const titleOf = (row) => `${isShare ? `${row.label || row.model}, ` : ''}${dateTime(row.at)}: measured ${seconds(row.measured_step_time_s)}, predicted ${seconds(row.step_time_s)}`;
  const mark = (row, index) =>
    svg(
      'g',
      { class: row.inside_interval ? 'measured' : 'measured outside' },
      svg('title', null, titleOf(measurements[index])),
      svg('line', { class: 'whisker', x1: left(index), x2: left(index), y1: down(row.step_time_low_s), y2: down(row.step_time_high_s) }),
      svg('line', { class: 'predicted', x1: left(index), x2: left(index), y1: down(row.step_time_s) - 1.5, y2: down(row.step_time_s) + 1.5 }),
      svg('circle', { cx: left(index), cy: down(row.measured_step_time_s), r: 5 }),
    );
  return h(
    'div',
    {
      class: 'chart',
      role: 'img',
      'aria-label': `Measured step times of ${rows.length} measurements, ${inside} of them inside the predicted 90 % interval. The values are in the table.`,
    },
    h('p', { class: 'soft' }, `${isShare ? 'Step time as a share of the predicted' : 'Step time'}, ${told(low)} to ${told(high)}; whisker: predicted 90 %, dot: measured.`),
    svg(
      'svg',
      { height: HEIGHT, 'aria-hidden': 'true', focusable: 'false' },
      svg('rect', { class: 'track', x: 0, y: TOP, width: '100%', height: HEIGHT - TOP - BOTTOM }),
      svg('g', { class: 'axis' }, ...ticks.flatMap(tick)),
      axis(0, HEIGHT - 7, 'start', dateTime(rows[0].at)),
      rows.length > 1 ? axis('100%', HEIGHT - 7, 'end', dateTime(rows.at(-1).at)) : null,
      ...rows.map(mark),
    ),
  );
}
