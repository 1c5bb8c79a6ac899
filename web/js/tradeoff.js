// Step time against memory: a dot for each ranked plan and each plan of the front, so that one sees what memory buys.

import { h, svg, table } from './dom.js';
import { gib, seconds, secondsLike } from './format.js';
import { meshOfPlan } from './plan_text.js';

const HEIGHT = 190;
const TOP = 20;
const BOTTOM = 22;

// The lowest and highest value with a margin, so that no dot sits on the edge; never an empty range.
export function range(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const margin = (high - low || high || 1) * 0.08;
  return { low: Math.max(0, low - margin), high: high + margin };
}

function estimateOf(plan) {
  return plan.estimate ?? plan;
}

// [{name, plan, time, bytes}] without doubles: a plan of the front that is ranked too appears as ranked.
export function pointsOf(ranked, pareto) {
  const point = (plan, name) => ({
    name,
    plan,
    time: estimateOf(plan).step_time_s,
    bytes: estimateOf(plan).hbm_bytes_per_device,
  });
  const points = ranked.map((plan) => point(plan, String(plan.rank)));
  for (const plan of pareto ?? []) {
    const candidate = point(plan, null);
    if (!points.some((known) => known.time === candidate.time && known.bytes === candidate.bytes))
      points.push(candidate);
  }
  return points.filter((candidate) => Number.isFinite(candidate.time) && Number.isFinite(candidate.bytes));
}

function chart(points) {
  const x = range(points.map((point) => point.bytes));
  const y = range(points.map((point) => point.time));
  const left = (bytes) => `${(3 + (94 * (bytes - x.low)) / (x.high - x.low)).toFixed(2)}%`;
  const down = (time) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (time - y.low) / (y.high - y.low));
  const dots = points.map((point) =>
    svg(
      'g',
      { class: point.name ? 'dot ranked-dot' : 'dot' },
      svg(
        'circle',
        { cx: left(point.bytes), cy: down(point.time), r: point.name ? 8 : 4 },
        svg('title', null, `${point.name ? `Plan ${point.name}: ` : ''}${seconds(point.time)}, ${gib(point.bytes)}`),
      ),
      point.name ? svg('text', { class: 'letter', x: left(point.bytes), y: down(point.time) + 4 }, point.name) : null,
    ),
  );
  return h(
    'div',
    {
      class: 'chart',
      role: 'img',
      'aria-label': `Step time against memory of ${points.length} plans; the values are in the table.`,
    },
    svg(
      'svg',
      { height: HEIGHT, 'aria-hidden': 'true', focusable: 'false' },
      svg('rect', { class: 'track', x: 0, y: TOP, width: '100%', height: HEIGHT - TOP - BOTTOM }),
      svg('text', { class: 'axis', x: 0, y: HEIGHT - 6 }, gib(x.low)),
      svg('text', { class: 'axis', x: '50%', y: HEIGHT - 6, 'text-anchor': 'middle' }, 'HBM per device'),
      svg('text', { class: 'axis', x: '100%', y: HEIGHT - 6, 'text-anchor': 'end' }, gib(x.high)),
      svg(
        'text',
        { class: 'axis', x: 0, y: TOP - 6 },
        `step time, ${secondsLike(y.low, y.high)} at the bottom to ${secondsLike(y.high, y.high)}`,
      ),
      ...dots.reverse(),
    ),
  );
}

export function tradeoff(ranked, pareto) {
  const points = pointsOf(ranked, pareto);
  if (points.length < 2) return null;
  const rows = [...points]
    .sort((a, b) => a.time - b.time)
    .map((point) => [
      h('span', { class: 'nowrap' }, point.name ? `Plan ${point.name}` : 'front'),
      meshOfPlan(point.plan),
      seconds(point.time),
      gib(point.bytes),
    ]);
  return h(
    'details',
    { class: 'tradeoff' },
    h('summary', null, 'Step time against memory'),
    h(
      'div',
      { class: 'beside' },
      chart(points),
      table(
        'Step time and memory of the plans',
        [
          { title: 'Plan' },
          { title: 'Mesh' },
          { title: 'Step time', number: true },
          { title: 'HBM per device', number: true },
        ],
        rows,
      ),
    ),
  );
}
