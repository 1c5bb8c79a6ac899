// Dots over two quantities, named ones large; the numbers stand in a table beside it.

import { h, svg } from './dom.js';

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

// A headline alone is a square with its name beside it; the rest are circles with their names on them.
function dotOf(point, left, down) {
  const headline = point.class === 'headline';
  const title = svg('title', null, point.title);
  const shape = headline
    ? svg('rect', { x: left, y: down - 6, width: 12, height: 12 }, title)
    : svg('circle', { cx: left, cy: down, r: point.name ? 8 : 4 }, title);
  const beside = headline ? { class: 'axis', dx: 10 } : { class: 'letter' };
  const name = point.name ? svg('text', { ...beside, x: left, y: down + 4 }, point.name) : null;
  return svg('g', { class: `dot ${point.class ?? ''}` }, shape, name);
}

// points: [{x, y, name, title, class?}], the first one drawn on top; show.x and show.y give a number its unit.
export function scatter({ label, points, xTitle, yTitle, show }) {
  const x = range(points.map((point) => point.x));
  const y = range(points.map((point) => point.y));
  const left = (value) => `${(3 + (94 * (value - x.low)) / (x.high - x.low)).toFixed(2)}%`;
  const down = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - y.low) / (y.high - y.low));
  const axis = (at, anchor, text) =>
    svg('text', { class: 'axis', x: at, y: HEIGHT - 6, 'text-anchor': anchor }, text);
  return h(
    'div',
    { class: 'chart', role: 'img', 'aria-label': label },
    svg(
      'svg',
      { height: HEIGHT, 'aria-hidden': 'true', focusable: 'false' },
      svg('rect', { class: 'track', x: 0, y: TOP, width: '100%', height: HEIGHT - TOP - BOTTOM }),
      axis(0, 'start', show.x(x.low)),
      axis('50%', 'middle', xTitle),
      axis('100%', 'end', show.x(x.high)),
      svg(
        'text',
        { class: 'axis', x: 0, y: TOP - 6 },
        `${yTitle}, ${show.y(y.low, y.high)} at the bottom to ${show.y(y.high, y.high)}`,
      ),
      ...points.map((point) => dotOf(point, left(point.x), down(point.y))).reverse(),
    ),
  );
}
