// The operations of a layer on the roofline: work per byte against the rate that is reached, and what binds each.

import { extent, group, max, scaleLog, scaleSqrt, sum } from 'd3';
import { h, table } from '../dom.js';
import { compact, count, percent, resource, rounded, seconds, words } from '../format.js';
import { bottomAxis, leftAxis } from './axes.js';
import { frame, resourceLegend, valuesTable } from './frame.js';
import { planData } from './plan_data.js';

const TERA = 1e12;
const LETTER = 6.1; // pixels of a letter of the names

// Operations that reach the same rate on the same work per byte are one point, with all their names and passes.
export function pointsOf(operations) {
  const counted = operations.filter((operation) => operation.flops_per_device > 0 && operation.flops_per_byte > 0 && operation.flops_per_s_per_device > 0 && operation.seconds > 0);
  const place = (operation) => `${operation.flops_per_s_per_device.toPrecision(2)} ${operation.flops_per_byte.toPrecision(3)} ${operation.bound}`;
  return [...group(counted, place).values()]
    .map((same) => ({
      ...same[0],
      names: [...new Set(same.map((operation) => words(operation.name)))],
      passes: [...new Set(same.map((operation) => operation.pass))],
      seconds: sum(same, (operation) => operation.seconds),
    }))
    .sort((a, b) => b.seconds - a.seconds);
}

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// Writes `text` at the first of the spots where it lies on nothing of `taken`, else not at all (false).
function label(svg, name, text, spots, taken) {
  const boxOf = (spot) => [spot.x - 2, spot.y - 10, spot.x + text.length * LETTER, spot.y + 3];
  const spot = spots.find((at) => !taken.some((box) => overlap(box, boxOf(at))));
  if (!spot) return false;
  taken.push(boxOf(spot));
  svg.append('text').attr('class', name).attr('x', spot.x).attr('y', spot.y).text(text);
  return true;
}

// 1, 2 and 5 of each power of ten.
function decades([low, high], steps = [1, 2, 5]) {
  const ticks = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) ticks.push(...steps.map((step) => step * power));
  return ticks.filter((tick) => tick >= low && tick <= high);
}

export async function show(plan) {
  const { roofline, timeline } = await planData(plan);
  const rates = ['peak_flops_per_s_per_device', 'hbm_bytes_per_s_per_device', 'step_flops_per_s_per_device', 'step_hbm_bytes_per_s_per_device'];
  if (!rates.every((name) => roofline?.[name] > 0) || !roofline.layers?.length || timeline?.layers?.length !== roofline.layers.length) return null;
  const layerTime = (index) => timeline.layers[index].times * sum(roofline.layers[index].operations, (operation) => operation.seconds);
  let index = roofline.layers.reduce((best, _, at) => (layerTime(at) > layerTime(best) ? at : best), 0);
  const peak = roofline.peak_flops_per_s_per_device;
  const stream = roofline.hbm_bytes_per_s_per_device;
  const roofs = [
    { name: 'datasheet', flops: peak, bytes: stream, class: 'roof' },
    { name: 'reached in steps', flops: roofline.step_flops_per_s_per_device, bytes: roofline.step_hbm_bytes_per_s_per_device, class: 'roof roof-step' },
  ];
  const streamed = h('p', { class: 'soft' });
  const apart = h('p', { class: 'soft' });
  const values = h('div');

  const draw = ({ svg, width, height }) => {
    const points = pointsOf(roofline.layers[index].operations);
    const [left, top, right, bottom] = [56, 22, width - 12, height - 42];
    const [least, most] = extent([...points.map((point) => point.flops_per_byte), peak / stream]);
    const lowest = Math.min(...points.map((point) => point.flops_per_s_per_device), stream * (least / 2));
    const x = scaleLog([least / 2.5, most * 2.5], [left, right]);
    const y = scaleLog([Math.max(lowest / 1.5, peak / 1000) / TERA, (peak * 1.6) / TERA], [bottom, top]);
    const py = (flops) => y(flops / TERA);
    leftAxis(svg, y, { x: left, ticks: decades(y.domain()), format: (value) => count(value), title: 'TFLOP/s per device', grid: right - left });
    bottomAxis(svg, x, { y: bottom, ticks: decades(x.domain(), width < 500 ? [1, 5] : [1, 2, 5]), format: (value) => count(value), title: 'FLOP per byte of HBM', x1: right });
    const radius = scaleSqrt([0, max(points, (point) => point.seconds)], [3, 17]);
    const placed = points.map((point) => ({ point, cx: x(point.flops_per_byte), cy: py(point.flops_per_s_per_device), r: radius(point.seconds) }));
    const taken = placed.map(({ cx, cy, r }) => [cx - r, cy - r, cx + r, cy + r]);
    for (const roof of roofs) {
      const from = Math.max(x.domain()[0], (y.domain()[0] * TERA) / roof.bytes);
      svg.append('path').attr('class', roof.class).attr('d', `M${x(from)},${py(from * roof.bytes)}L${x(roof.flops / roof.bytes)},${py(roof.flops)}H${right}`);
    }
    for (const { point, cx, cy, r } of placed) svg.append('circle').attr('class', `operation res-${point.bound}`).attr('cx', cx).attr('cy', cy).attr('r', r);
    const named = [];
    const items = placed.map(({ point, cx, cy, r }) => {
      const name = point.names.join(', ');
      const wide = name.length * LETTER;
      const inside = (at) => Math.max(left + 4, Math.min(at, right - wide));
      const spots = [
        { x: inside(cx - wide / 2), y: cy + r + 13 },
        { x: cx + r + 5, y: cy + 4 },
        { x: cx - r - 5 - wide, y: cy + 4 },
        { x: inside(cx - wide / 2), y: cy + r + 27 },
        { x: inside(cx - wide / 2), y: cy + r + 41 },
        { x: inside(cx - wide / 2), y: cy - r - 5 },
      ].filter((spot) => spot.x >= left && spot.x + wide <= right + 8 && spot.y < bottom);
      const isNamed = named.some((other) => other.name === name && Math.hypot(other.cx - cx, other.cy - cy) < 45); // another pass
      if (!isNamed && label(svg, 'operation-name', name, spots, taken)) named.push({ name, cx, cy });
      return {
        x: cx,
        y: cy,
        box: [cx - r, cy - r, cx + r, cy + r],
        text: `${name} (${point.passes.join(', ')}): ${seconds(point.seconds)} in a layer, ${rounded(point.flops_per_s_per_device / TERA)} TFLOP/s (${percent(point.flops_per_s_per_device / peak)} of the peak) at ${count(Math.round(point.flops_per_byte))} FLOP per byte; bound by the ${resource(point.bound)}${point.bytes_are_least ? '. Its operands are counted once; it may move more' : ''}.`,
      };
    });
    for (const roof of roofs) {
      const [ridge, level] = [x(roof.flops / roof.bytes), py(roof.flops)];
      const name = `${rounded(roof.flops / TERA)} TFLOP/s ${roof.name}`;
      const end = right - name.length * LETTER;
      const start = Math.min(end, Math.max(ridge, left) + 4);
      const isTop = roof.class === 'roof';
      const along = (down) => [0, 0.25, 0.5, 0.75, 1].map((part) => ({ x: start + part * (end - start), y: level + down }));
      const before = { x: ridge - name.length * LETTER - 8, y: level + (isTop ? 0 : 10) };
      const spots = [...along(-5), ...(isTop ? [] : along(14)), ...(before.x > left ? [before] : []), ...along(isTop ? -18 : 28), ...(isTop ? [] : [...along(42), ...along(56)])];
      label(svg, 'roof-name', name, spots, taken);
    }
    return items;
  };
  const picture = frame({
    label: 'Operations of one layer on the roofline.',
    height: (width) => Math.min(400, Math.max(300, width * 0.5)),
    hint: 'Point at an operation; its area is its time in a layer.',
    draw,
  });
  const choose = (next) => {
    index = next;
    const { operations } = roofline.layers[index];
    const none = operations.filter((operation) => !(operation.flops_per_device > 0));
    const unplaced = operations.filter((operation) => operation.flops_per_device > 0 && !(operation.flops_per_byte > 0));
    const rates = unplaced.map((operation) => `${words(operation.name)} (${operation.pass}) ${seconds(operation.seconds)} at ${rounded(operation.flops_per_s_per_device / TERA)} TFLOP/s, bound by the ${resource(operation.bound)}`);
    apart.textContent = rates.length ? `Not on the picture, as their bytes are not told apart: ${rates.join('; ')}.` : '';
    streamed.textContent = none.length ? `Not on the picture, as they compute next to nothing: ${[...new Set(none.map((operation) => words(operation.name)))].join(', ')} take ${seconds(sum(none, (operation) => operation.seconds))} of a layer, at the speed of HBM.` : '';
    values.replaceChildren(
      table(
        'Operations of one layer',
        [{ title: 'Operation' }, { title: 'Pass' }, { title: 'Time', number: true }, { title: 'FLOPs', number: true }, { title: 'Bytes', number: true }, { title: 'FLOP/byte', number: true }, { title: 'TFLOP/s', number: true }, { title: 'Bound by' }],
        operations.map((operation) => [words(operation.name), operation.pass, seconds(operation.seconds), compact(operation.flops_per_device), compact(operation.bytes_per_device), operation.flops_per_byte === null ? '–' : count(Math.round(operation.flops_per_byte)), rounded(operation.flops_per_s_per_device / TERA), words(operation.bound)]),
      ),
    );
    picture.redraw();
  };
  const kinds = h('select', { 'aria-label': 'Kind of layer', class: 'small-select' }, roofline.layers.map((layer, at) => h('option', { value: at, selected: at === index }, `${layer.layer}, ${count(layer.times)} a step`)));
  kinds.addEventListener('change', () => choose(Number(kinds.value)));
  choose(index);
  return [
    roofline.layers.length > 1 ? h('p', { class: 'actions' }, kinds) : null,
    picture.place,
    apart,
    streamed,
    resourceLegend(roofline.layers.flatMap((layer) => layer.operations).filter((operation) => operation.flops_per_byte > 0).map((operation) => operation.bound), {
      text: (name) => `bound by the ${name}`,
      others: Object.fromEntries(roofs.map((roof) => [roof.class === 'roof' ? 'swatch-roof' : 'swatch-roof-step', `${rounded(roof.flops / TERA)} TFLOP/s ${roof.name}`])),
    }),
    valuesTable(values),
  ];
}
