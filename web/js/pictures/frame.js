// The frame that all pictures share: a place that is drawn at its width, words beneath it, keys to go through its marks, and a table.

import { select } from 'd3';
import { h } from '../dom.js';

const NEAR_PX = 28;
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

let used = 0;
let fresh = []; // frames that have not been drawn yet

// An id that no other element has: a plan may be drawn twice, as the form's answer and as a stored run.
export function freshId(name) {
  used += 1;
  return `picture-${name}-${used}`;
}

// Which resource has which colour, as a list beneath a picture. names: {class: text}.
export function legend(names) {
  return h(
    'ul',
    { class: 'legend' },
    Object.entries(names).map(([name, text]) => h('li', null, h('span', { class: `swatch ${name}` }), ` ${text}`)),
  );
}

const RESOURCES = { mxu: 'MXU', vpu: 'VPU', hbm: 'HBM', ici: 'ICI', dcn: 'DCN', pcie: 'PCIe', latency: 'latency' };

// The colours of the resources that a picture has, named by text(name); others: more classes with their text.
export function resourceLegend(resources, { text = (name) => name, others = {} } = {}) {
  const has = new Set(resources);
  const rows = Object.entries(RESOURCES).filter(([name]) => has.has(name)).map(([name, title]) => [`res-${name}`, text(title)]);
  return legend({ ...Object.fromEntries(rows), ...others });
}

function nearest(items, x, y) {
  let best = null;
  let least = NEAR_PX;
  for (const item of items) {
    const inside = item.box && x >= item.box[0] && x <= item.box[2] && y >= item.box[1] && y <= item.box[3];
    const distance = inside ? 0 : Math.hypot(item.x - x, item.y - y);
    if (distance < least) [best, least] = [item, distance];
  }
  return best;
}

// A picture of `label`, height(width) pixels high. draw({svg, width, height}) fills the d3 selection and gives its marks
// [{x, y, text, box?: [x0, y0, x1, y1], select?()}] in the order of the arrow keys; its property `others` is for the pointer alone. `more`: elements below it.
// The picture is drawn by drawFresh() or when it comes into sight, and anew when its width changes; redraw() does so at once.
export function frame({ label, height, draw, more = [], hint = '' }) {
  const svg = select(document.createElementNS('http://www.w3.org/2000/svg', 'svg'));
  const said = h('p', { class: 'picture-said', 'aria-live': 'polite' }, hint);
  const canvas = h('div', { class: 'picture-canvas' });
  const place = h('div', { class: 'picture' }, canvas, said, more);
  let items = [];
  let at = -1;
  let width = 0;

  svg.attr('role', 'application').attr('tabindex', 0).attr('aria-label', `${label} Arrow keys go through it, the table below holds its values.`);
  canvas.append(svg.node());

  const mark = (item) => {
    svg.selectAll('.picture-mark').remove();
    said.textContent = item ? item.text : hint;
    if (!item) return;
    const [x0, y0, x1, y1] = item.box ?? [item.x - 7, item.y - 7, item.x + 7, item.y + 7];
    svg
      .append('rect')
      .attr('class', 'picture-mark')
      .attr('x', x0 - 1.5)
      .attr('y', y0 - 1.5)
      .attr('width', Math.max(4, x1 - x0 + 3))
      .attr('height', y1 - y0 + 3)
      .attr('rx', 3);
  };
  const redraw = () => {
    if (!width) return;
    const tall = Math.round(height(width));
    svg.attr('width', width).attr('height', tall).attr('viewBox', `0 0 ${width} ${tall}`);
    svg.selectAll('*').remove();
    items = draw({ svg, width, height: tall }) ?? [];
    at = -1;
  };
  const point = (event) => {
    const box = svg.node().getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return nearest(items, x, y) ?? nearest(items.others ?? [], x, y);
  };
  svg.on('pointermove', (event) => {
    const item = point(event);
    at = items.indexOf(item);
    mark(item);
    svg.classed('can-select', Boolean(item?.select));
  });
  svg.on('pointerleave', () => mark(items[at] && document.activeElement === svg.node() ? items[at] : null));
  svg.on('click', (event) => {
    const item = point(event);
    mark(item);
    item?.select?.();
  });
  svg.on('keydown', (event) => {
    if (event.key === 'Enter' || event.key === ' ') items[at]?.select?.();
    else if (event.key === 'Escape') at = -1;
    else if (STEPS[event.key] && items.length) at = (at + STEPS[event.key] + items.length) % items.length;
    else return;
    event.preventDefault();
    mark(items[at]);
  });
  const fit = (room) => {
    const next = Math.floor(room);
    if (next === width || next === 0) return;
    width = next;
    redraw();
  };
  new ResizeObserver(([entry]) => fit(entry.contentRect.width)).observe(canvas);
  fresh.push(() => fit(canvas.clientWidth));
  return { place, redraw };
}

// Draws what has just been put into the page, so that it is there with the first paint; what is not in sight waits.
export function drawFresh() {
  const waiting = fresh;
  fresh = [];
  waiting.forEach((draw) => draw());
}

// The picture's values for those who cannot see it.
export function valuesTable(element) {
  return h('details', { class: 'picture-values' }, h('summary', null, 'Values as a table'), element);
}
