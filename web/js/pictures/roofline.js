// The operations of a layer on the roofline: work per byte against the rate that is reached, and what binds each.

import { extent, group, max, scaleLog, scaleSqrt, sum } from 'd3';
import { h, table } from '../dom.js';
import { compact, count, percent, resource, rounded, seconds, words } from '../format.js';
import { bottomAxis, fitting, leftAxis } from './axes.js';
import { frame, resourceLegend, valuesTable } from './frame.js';
import { planData } from './plan_data.js';

const TERA = 1e12;

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
    for (const roof of roofs) {
      const ridge = roof.flops / roof.bytes;
      const apartPx = Math.abs(py(roofs[1].flops) - py(roofs[0].flops)); // room for a name between the roofs
      const from = Math.max(x.domain()[0], (y.domain()[0] * TERA) / roof.bytes);
      svg.append('path').attr('class', roof.class).attr('d', `M${x(from)},${py(from * roof.bytes)}L${x(ridge)},${py(roof.flops)}H${right}`);
      svg.append('text').attr('class', 'roof-name').attr('x', Math.max(x(ridge), left) + 4).attr('y', py(roof.flops) + (roof.class === 'roof' || apartPx > 28 ? -5 : 14)).text(`${rounded(roof.flops / TERA)} TFLOP/s ${roof.name}`);
    }
    const radius = scaleSqrt([0, max(points, (point) => point.seconds)], [3, 17]);
    const taken = [];
    return points.map((point) => {
      const [cx, cy, r] = [x(point.flops_per_byte), py(point.flops_per_s_per_device), radius(point.seconds)];
      svg.append('circle').attr('class', `operation res-${point.bound}`).attr('cx', cx).attr('cy', cy).attr('r', r);
      const name = point.names.join(', ');
      const label = { x: Math.max(left + 4, Math.min(cx - name.length * 3, right - name.length * 6.2)), y: cy + r + 13 };
      if (!taken.some((other) => Math.abs(other.y - label.y) < 13 && Math.abs(other.x - label.x) < 80)) {
        taken.push(label);
        svg.append('text').attr('class', 'operation-name').attr('x', label.x).attr('y', label.y).text(fitting(name, right - label.x + 8));
      }
      return {
        x: cx,
        y: cy,
        box: [cx - r, cy - r, cx + r, cy + r],
        text: `${name} (${point.passes.join(', ')}): ${seconds(point.seconds)} in a layer, ${rounded(point.flops_per_s_per_device / TERA)} TFLOP/s (${percent(point.flops_per_s_per_device / peak)} of the peak) at ${count(Math.round(point.flops_per_byte))} FLOP per byte; bound by the ${resource(point.bound)}${point.bytes_are_least ? '. Its operands are counted once; it may move more' : ''}.`,
      };
    });
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
    resourceLegend(roofline.layers.flatMap((layer) => layer.operations).filter((operation) => operation.flops_per_byte > 0).map((operation) => operation.bound), { text: (name) => `bound by the ${name}` }),
    valuesTable(values),
  ];
}
