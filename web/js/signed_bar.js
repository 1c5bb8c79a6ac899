// A bar from a zero in the middle: to the left what gets less, to the right what gets more. The number stands beside it.

import { svg } from './dom.js';

const HEIGHT = 14;

// less <= 0 and more >= 0 are both drawn; scale is the value at either end.
export function signedBar({ less = 0, more = 0, scale }) {
  const half = (value) => (50 * Math.min(1, Math.abs(value || 0) / (scale || 1))).toFixed(2);
  const bar = (kind, x, width) =>
    svg('rect', { class: kind, x: `${x}%`, width: `${width}%`, y: 1, height: HEIGHT - 2 });
  return svg(
    'svg',
    { class: 'signed', height: HEIGHT, 'aria-hidden': 'true', focusable: 'false' },
    bar('less', (50 - half(less)).toFixed(2), half(less)),
    bar('more', 50, half(more)),
    svg('line', { x1: '50%', x2: '50%', y1: 0, y2: HEIGHT }),
  );
}
