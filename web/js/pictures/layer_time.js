// One layer in time: what computes and what is sent in its passes, lane by lane, and the whole step folded around it.

import { scaleLinear, sum } from 'd3';
import { saveButton } from '../copy.js';
import { h, table } from '../dom.js';
import { count, percent, resource, seconds, words } from '../format.js';
import { bottomAxis, fitting } from './axes.js';
import { frame, resourceLegend, valuesTable } from './frame.js';
import { planData } from './plan_data.js';

const LANES = {
  tensorcore: 'TensorCore',
  ici_fsdp: 'ICI: FSDP',
  ici_tensor: 'ICI: tensor',
  ici_context: 'ICI: context',
  ici_expert: 'ICI: expert',
  pcie: 'PCIe (host)',
  dcn: 'DCN (slices)',
};
const PASSES = ['forward', 'recompute', 'backward'];
const ROW = 30;

// Whether all lengths are known, and there are any.
const complete = (layer) => [layer.times, ...PASSES.map((pass) => layer[`${pass}_s`]), ...layer.blocks.flatMap((block) => [block.start_s, block.seconds])].every(Number.isFinite) && lengthOf(layer) > 0;

const lanesOf = (layer) => Object.keys(LANES).filter((lane) => layer.blocks.some((block) => block.lane === lane));
const lengthOf = (layer) => sum(PASSES, (pass) => layer[`${pass}_s`]);

// Says in words which operation a block is and how it changes the step.
function sentence(block) {
  const kind = block.lane === 'tensorcore' ? 'TensorCore busy' : block.exposed ? 'exposed: the TensorCore waits' : 'hidden behind computing';
  return `${words(block.name)}, ${block.pass}: ${seconds(block.seconds)} on ${LANES[block.lane]}, ${kind}; limited by ${resource(block.resource)}.`;
}

// The step as one bar: layers by pass, then what is outside of them.
function stepParts(timeline) {
  const layers = PASSES.map((pass) => ({
    name: `${pass} of all layers`,
    class: `pass-${pass}`,
    seconds: sum(timeline.layers, (layer) => layer.times * layer[`${pass}_s`]),
  }));
  const outside = timeline.outside.map((part) => ({ name: words(part.name), class: `res-${part.resource}`, seconds: part.exposed_seconds }));
  return [...layers, ...outside].filter((part) => part.seconds > 0);
}

function drawStep({ svg, width, timeline }) {
  const parts = stepParts(timeline);
  const x = scaleLinear([0, timeline.step_time_s], [0, width]);
  let at = 0;
  return parts.map((part) => {
    const [left, right] = [x(at), x(at + part.seconds)];
    at += part.seconds;
    svg.append('rect').attr('class', `block ${part.class}`).attr('x', left).attr('y', 0).attr('width', Math.max(0.5, right - left)).attr('height', 24);
    svg.append('text').attr('class', `block-name${part.class.startsWith('pass') ? ' on-pass' : ''}`).attr('x', left + 4).attr('y', 16).text(fitting(part.name, right - left - 8));
    return {
      x: (left + right) / 2,
      y: 12,
      box: [left, 0, Math.max(right, left + 3), 24],
      text: `${part.name}: ${seconds(part.seconds)}, ${percent(part.seconds / timeline.step_time_s)} of the step of ${seconds(timeline.step_time_s)}`,
    };
  });
}

function drawLayer({ svg, width, layer }) {
  const narrow = width < 560;
  const left = narrow ? 0 : 96;
  const top = 22;
  const row = narrow ? ROW + 15 : ROW;
  const lanes = lanesOf(layer);
  const x = scaleLinear([0, lengthOf(layer)], [left, width - 2]);
  const yOf = (lane) => top + lanes.indexOf(lane) * row + (narrow ? 15 : 0);
  const bottom = top + lanes.length * row + 4;
  let start = 0;
  for (const pass of PASSES) {
    const end = start + layer[`${pass}_s`];
    if (end > start) {
      svg.append('rect').attr('class', `pass pass-band-${pass}`).attr('x', x(start)).attr('width', x(end) - x(start)).attr('y', 0).attr('height', bottom);
      svg.append('text').attr('class', 'pass-name').attr('x', x(start) + 4).attr('y', 14).text(fitting(`${pass} ${seconds(end - start)}`, x(end) - x(start) - 6));
    }
    start = end;
  }
  for (const lane of lanes) {
    svg.append('text').attr('class', 'lane-name').attr('x', 0).attr('y', narrow ? yOf(lane) - 3 : yOf(lane) + 17).text(LANES[lane]);
    svg.append('line').attr('class', 'lane').attr('x1', left).attr('x2', width).attr('y1', yOf(lane) + 25).attr('y2', yOf(lane) + 25);
  }
  for (const block of layer.blocks.filter((one) => one.exposed && one.lane !== 'tensorcore')) {
    svg.append('rect').attr('class', 'wait').attr('x', x(block.start_s)).attr('width', Math.max(1, x(block.start_s + block.seconds) - x(block.start_s))).attr('y', yOf('tensorcore')).attr('height', 24);
  }
  const items = layer.blocks.map((block) => {
    const [x0, x1, y0] = [x(block.start_s), x(block.start_s + block.seconds), yOf(block.lane)];
    svg.append('rect').attr('class', `block res-${block.resource} ${block.exposed ? 'shows' : 'hides'}`).attr('x', x0).attr('width', Math.max(0.8, x1 - x0 - 0.6)).attr('y', y0).attr('height', 24);
    svg.append('text').attr('class', `block-name ${block.exposed ? '' : 'on-hidden'}`).attr('x', x0 + 4).attr('y', y0 + 16).text(fitting(words(block.name), x1 - x0 - 6));
    return { x: (x0 + x1) / 2, y: y0 + 12, box: [x0, y0, Math.max(x1, x0 + 3), y0 + 24], text: sentence(block) };
  });
  const scale = lengthOf(layer) >= 1 ? [1, 's'] : lengthOf(layer) >= 1e-3 ? [1e3, 'ms'] : [1e6, 'µs'];
  bottomAxis(svg, scaleLinear([0, lengthOf(layer) * scale[0]], [left, width - 2]), { y: bottom, ticks: narrow ? 4 : 8, title: `time in one layer, ${scale[1]}`, x1: width - 2 });
  return items;
}

// Chrome's trace format, which Perfetto opens: a row for each lane, one layer of each kind after the other.
export function perfettoTrace(timeline) {
  const lanes = Object.keys(LANES);
  const names = lanes.map((lane, index) => ({ ph: 'M', pid: 1, tid: index + 1, name: 'thread_name', args: { name: LANES[lane] } }));
  let start = 0;
  const events = timeline.layers.flatMap((layer) => {
    const from = start;
    start += lengthOf(layer);
    return layer.blocks.map((block) => ({
      ph: 'X',
      pid: 1,
      tid: lanes.indexOf(block.lane) + 1,
      ts: (from + block.start_s) * 1e6,
      dur: block.seconds * 1e6,
      name: block.name,
      cat: block.exposed ? 'exposed' : 'hidden',
      args: { pass: block.pass, resource: block.resource, layer: layer.layer, times_per_step: layer.times },
    }));
  });
  return { displayTimeUnit: 'ms', traceEvents: [{ ph: 'M', pid: 1, name: 'process_name', args: { name: 'one layer of each kind' } }, ...names, ...events] };
}

function layerTable(layer) {
  return table(
    'Operations and transfers of one layer',
    [{ title: 'What' }, { title: 'Pass' }, { title: 'Lane' }, { title: 'Starts at', number: true }, { title: 'Takes', number: true }, { title: 'In the step' }],
    layer.blocks.map((block) => [words(block.name), block.pass, LANES[block.lane], seconds(block.start_s), seconds(block.seconds), block.exposed ? 'shows' : 'hidden']),
  );
}

export async function show(plan) {
  const { timeline } = await planData(plan);
  const layers = (timeline?.layers ?? []).filter(complete);
  if (!layers.length || !(timeline.step_time_s > 0)) return null;
  let layer = [...layers].sort((a, b) => b.times * lengthOf(b) - a.times * lengthOf(a))[0];
  const step = frame({
    label: 'The step by passes and what is outside of the layers.',
    height: () => 26,
    draw: ({ svg, width }) => drawStep({ svg, width, timeline }),
  });
  const caption = h('p', { class: 'soft' });
  const values = h('div');
  const one = frame({
    label: 'One layer in time, lane by lane.',
    height: (width) => 22 + lanesOf(layer).length * (width < 560 ? ROW + 15 : ROW) + 46,
    hint: 'Point at a block for what it is.',
    draw: ({ svg, width }) => drawLayer({ svg, width, layer }),
  });
  const choose = (next) => {
    layer = next;
    const waits = sum(layer.blocks.filter((block) => block.exposed && block.lane !== 'tensorcore'), (block) => block.seconds);
    caption.textContent = `${seconds(lengthOf(layer))} for one layer (${layer.layer}), ${count(layer.times)} of them in a step on one device; the TensorCore waits ${seconds(waits)} of it (${percent(waits / lengthOf(layer))}). Lengths are predicted; the order inside a pass is that of the layer.`;
    values.replaceChildren(layerTable(layer));
    one.redraw();
  };
  const kinds = h('select', { 'aria-label': 'Kind of layer', class: 'small-select' }, layers.map((item, index) => h('option', { value: index, selected: item === layer }, `${item.layer}, ${count(item.times)} a step`)));
  kinds.addEventListener('change', () => choose(layers[Number(kinds.value)]));
  choose(layer);
  return [
    h('p', { class: 'soft' }, `The whole step: ${seconds(timeline.step_time_s)}`),
    step.place,
    h('p', { class: 'actions' }, layers.length > 1 ? kinds : null, saveButton('Download for Perfetto', 'layer-trace.json', () => JSON.stringify(perfettoTrace({ ...timeline, layers })))),
    caption,
    one.place,
    resourceLegend([...layers.flatMap((item) => item.blocks), ...timeline.outside].map((part) => part.resource), { others: { 'swatch-hides': 'outlined: hidden', 'swatch-wait': 'dashed: TensorCore waits' } }),
    valuesTable(values),
  ];
}
