// A stacked bar as SVG: positions in percent, so it follows the width of its place; colours by class, so it follows the theme.

import { h, svg } from './dom.js';

const HEIGHT = 26;
const LABEL = 18;
const COLOURS = 8;

export function colour(index) {
  return `part-${index % COLOURS}`;
}

// A, B, … Z, AA: names a part in the bar and in the table, so that colour is never the only key.
export function letter(index) {
  return index < 26 ? String.fromCharCode(65 + index) : letter(Math.floor(index / 26) - 1) + letter(index % 26);
}

export function swatch(index) {
  return h('span', { class: `swatch ${colour(index)}` }, letter(index));
}

function percentOf(value, scale) {
  return `${((100 * value) / scale).toFixed(3)}%`;
}

// Whether a part of a bar is wide enough for its letter.
export function hasLetter(value, scale) {
  return value / scale > 0.028;
}

function segment(part, start, scale, top) {
  return svg(
    'g',
    { 'data-part': part.index },
    svg(
      'rect',
      {
        x: percentOf(start, scale),
        width: percentOf(part.value, scale),
        y: top,
        height: HEIGHT,
        class: `gap ${part.colour ?? colour(part.index)} ${part.class ?? ''}`,
      },
      svg('title', null, part.title),
    ),
    hasLetter(part.value, scale) && !part.class
      ? svg(
          'text',
          { class: 'letter', x: percentOf(start + part.value / 2, scale), y: top + HEIGHT / 2 + 4 },
          letter(part.index),
        )
      : null,
  );
}

// rows: [{label, total, parts: [{index, value, title, colour?, class?}]}]; limit: {value, label} or null; scale: the value at the right edge.
export function stackedBars({ label, rows, scale, limit }) {
  const top = limit ? LABEL : 0;
  const pitch = HEIGHT + LABEL + 6;
  const drawn = rows.map((row, index) => {
    const y = top + index * pitch;
    let start = 0;
    const parts = row.parts
      .filter((part) => part.value > 0)
      .map((part) => {
        const shape = segment(part, start, scale, y + LABEL);
        start += part.value;
        return shape;
      });
    return [
      svg('text', { class: 'axis', x: 0, y: y + LABEL - 5 }, row.label),
      svg('rect', { class: 'track', x: 0, y: y + LABEL, width: '100%', height: HEIGHT }),
      ...parts,
    ];
  });
  const height = top + rows.length * pitch;
  const line = limit
    ? [
        svg('line', {
          class: 'limit',
          x1: percentOf(limit.value, scale),
          x2: percentOf(limit.value, scale),
          y1: LABEL - 2,
          y2: height,
        }),
        svg(
          'text',
          { class: 'limit-text', x: percentOf(limit.value, scale), y: LABEL - 6, 'text-anchor': 'end' },
          limit.label,
        ),
      ]
    : [];
  return h(
    'div',
    { class: 'chart', role: 'img', 'aria-label': label },
    svg('svg', { height, 'aria-hidden': 'true', focusable: 'false' }, ...drawn.flat(), ...line),
  );
}

// Pointing at a row of the table shows its part in the bar.
export function linkRows(chart, rows) {
  rows.forEach((row, index) => {
    const mark = (on) =>
      chart.querySelectorAll('[data-part]').forEach((part) => {
        part.classList.toggle('dim', on && part.dataset.part !== String(index));
      });
    row.addEventListener('pointerenter', () => mark(true));
    row.addEventListener('pointerleave', () => mark(false));
  });
}
