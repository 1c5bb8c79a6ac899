// The plan at other sizes: slices, chips, sequence length and batch, each a small chart; and what each rate is worth (tornado).

import { line, max, scaleLinear, scaleLog } from 'd3';
import { h, table } from '../dom.js';
import { count, gib, percent, seconds, signedPercent, usd, words } from '../format.js';
import { bottomAxis, fitting, leftAxis } from './axes.js';
import { frame, legend, valuesTable } from './frame.js';
import { planData } from './plan_data.js';

const TITLES = { slices: 'Slices', chips_per_slice: 'Chips per slice', seq_len: 'Sequence length, tokens', per_device_batch_size: 'Batch per device, sequences' };
const NOTES = {
  slices: 'same batch per device, new slices along data',
  chips_per_slice: 'same batch per device, new chips along fsdp',
  seq_len: 'same tokens per device',
  per_device_batch_size: 'all else as it is',
};
const METRICS = {
  mfu_frac: { title: 'MFU', axis: 'MFU, %', of: (point) => (point.mfu_frac ?? Number.NaN) * 100, text: (point) => percent(point.mfu_frac) },
  step_time_s: { title: 'Step time', axis: 'step, s', of: (point) => point.step_time_s, text: (point) => seconds(point.step_time_s) },
  usd_per_billion_tokens: { title: 'Dollars per billion tokens', axis: '$ per B tokens', of: (point) => point.usd_per_billion_tokens, text: (point) => usd(point.usd_per_billion_tokens) },
};
const RATES = { peak_flops: 'MXU peak', hbm_bandwidth: 'HBM bandwidth', ici_link: 'ICI links', die_to_die: 'Die to die', dcn: 'DCN', pcie: 'PCIe' };
// Which break-even belongs on which scale.
const BREAKS = { per_device_batch_size: 'fsdp_hidden_per_device_batch', slices: 'dcn_binds_slices_at_per_device_batch' };

// 1024 and its multiples as people say them.
const short = (value) => (value >= 1024 && value % 1024 === 0 ? `${count(value / 1024)}k` : count(value));
const legalOf = (scale, metric) => scale.points.filter((point) => !point.broken_rule && point.value > 0 && Number.isFinite(metric.of(point)));

// Neighbours between which something else begins to decide: [value, what].
export function turnsOf(points) {
  return points.slice(1).flatMap((point, index) => (point.bound === points[index].bound ? [] : [[point.value, words(point.bound)]]));
}

function chart(scale, metric, breaks) {
  const points = legalOf(scale, metric);
  const reached = breaks.find((row) => row.name === BREAKS[scale.scale] && row.reached);
  const draw = ({ svg, width, height }) => {
    const [left, top, right, bottom] = [46, 22, width - 22, height - 40];
    const values = points.map((point) => point.value);
    const x = scaleLog([Math.min(...values), Math.max(...values, values[0] * 2)], [left + 8, right]);
    const y = scaleLinear([0, max(points, metric.of) * 1.15], [bottom, top]);
    const ticks = values.filter((_, index) => index % Math.ceil(values.length / (width < 300 ? 4 : 6)) === 0);
    leftAxis(svg, y, { x: left, ticks: 4, title: metric.axis, grid: right - left });
    bottomAxis(svg, x, { y: bottom, ticks, format: short, title: TITLES[scale.scale], x1: right });
    if (reached && reached.value >= x.domain()[0] && reached.value <= x.domain()[1]) {
      svg.append('line').attr('class', 'break').attr('x1', x(reached.value)).attr('x2', x(reached.value)).attr('y1', top).attr('y2', bottom);
      const late = x(reached.value) > right - 70; // there is no room on the right
      svg.append('text').attr('class', 'break-name').attr('x', x(reached.value) + (late ? -3 : 3)).attr('y', top + 9).attr('text-anchor', late ? 'end' : 'start').text(scale.scale === 'slices' ? 'DCN binds' : 'FSDP hidden');
    }
    svg.append('path').attr('class', 'curve').attr('d', line((point) => x(point.value), (point) => y(metric.of(point)))(points));
    return points.map((point) => {
      const own = point.value === scale.value;
      svg.append('circle').attr('class', `point fit-${point.fit_verdict}${own ? ' own' : ''}`).attr('cx', x(point.value)).attr('cy', y(metric.of(point))).attr('r', own ? 6 : 4);
      return { x: x(point.value), y: y(metric.of(point)), text: `${TITLES[scale.scale]} ${count(point.value)}${point.topology ? ` (${point.topology})` : ''}${own ? ', the plan as it is' : ''}: ${metric.text(point)}, step ${seconds(point.step_time_s)}, HBM ${gib(point.hbm_bytes_per_device)}, ${words(point.fit_verdict)}, bound by ${words(point.bound)}` };
    });
  };
  const turns = turnsOf(points);
  return h(
    'div',
    { class: 'small-chart' },
    h('h4', null, TITLES[scale.scale]),
    h('p', { class: 'soft' }, NOTES[scale.scale]),
    points.length > 1 ? frame({ label: `${metric.title} by ${TITLES[scale.scale]}.`, height: () => 190, draw }).place : h('p', null, 'No other value is possible with this plan.'),
    turns.length ? h('p', { class: 'soft' }, `Of the sizes drawn, ${turns.map(([value, what]) => `${what} decides from ${count(value)} on`).join(', then ')}.`) : null,
  );
}

function tornado(sensitivities) {
  const rows = (sensitivities?.rates ?? [])
    .map((rate) => ({ name: RATES[rate.rate] ?? words(rate.rate), faster: rate.faster_step_time_change_frac, slower: rate.slower_step_time_change_frac }))
    .filter((row) => Number.isFinite(row.faster) && Number.isFinite(row.slower))
    .sort((a, b) => b.slower - b.faster - (a.slower - a.faster));
  if (!rows.length) return null;
  const widest = Math.max(0.005, max(rows, (row) => Math.max(Math.abs(row.faster), Math.abs(row.slower))));
  const draw = ({ svg, width }) => {
    const left = width < 480 ? 96 : 130;
    const room = 48; // of a number beside the longest bar
    const x = scaleLinear([-widest, widest].map((frac) => frac * 100), [left + room, width - room]);
    const items = rows.map((row, index) => {
      const y = index * 30 + 6;
      svg.append('text').attr('class', 'lane-name').attr('x', 0).attr('y', y + 15).text(fitting(row.name, left - 4));
      for (const [frac, name] of [[row.faster, 'less'], [row.slower, 'more']]) {
        const [x0, x1] = [Math.min(x(0), x(frac * 100)), Math.max(x(0), x(frac * 100))];
        svg.append('rect').attr('class', `tornado-${name}`).attr('x', x0).attr('width', Math.max(1, x1 - x0)).attr('y', y).attr('height', 22);
        svg.append('text').attr('class', 'value').attr('x', name === 'less' ? x0 - 4 : x1 + 4).attr('y', y + 15).attr('text-anchor', name === 'less' ? 'end' : 'start').text(Math.abs(frac) >= 0.0005 ? signedPercent(frac) : '');
      }
      if (Math.abs(row.faster) < 0.0005 && Math.abs(row.slower) < 0.0005) svg.append('text').attr('class', 'value').attr('x', x(0) + 6).attr('y', y + 15).text('no change');
      return { x: x(0), y: y + 11, box: [left, y, width, y + 22], text: `${row.name}: 10 % faster changes the step by ${signedPercent(row.faster)}, 10 % slower by ${signedPercent(row.slower)}` };
    });
    svg.append('line').attr('class', 'zero').attr('x1', x(0)).attr('x2', x(0)).attr('y1', 0).attr('y2', rows.length * 30 + 6);
    bottomAxis(svg, x, { y: rows.length * 30 + 8, ticks: width < 480 ? 4 : 8, title: 'change of the step time, %', x1: width - room });
    return items;
  };
  return [h('h4', null, 'What each rate is worth: 10 % faster, 10 % slower'), frame({ label: 'Change of the step time when a rate changes by a tenth.', height: () => rows.length * 30 + 50, draw }).place];
}

export async function show(plan) {
  const { scaling } = await planData(plan);
  if (!scaling?.length) return null;
  const breaks = plan.sensitivities?.break_evens ?? [];
  const priced = scaling.some((scale) => scale.points.some((point) => point.usd_per_billion_tokens > 0));
  const place = h('div', { class: 'small-charts' });
  const draw = (name) => place.replaceChildren(...scaling.map((scale) => chart(scale, METRICS[name], breaks)));
  const select = h('select', { 'aria-label': 'What to show', class: 'small-select' }, Object.entries(METRICS).filter(([name]) => priced || name !== 'usd_per_billion_tokens').map(([name, metric]) => h('option', { value: name }, metric.title)));
  select.addEventListener('change', () => draw(select.value));
  draw('mfu_frac');
  const rows = scaling.flatMap((scale) => scale.points.map((point) => [TITLES[scale.scale], point.topology ?? count(point.value), point.broken_rule ? `not legal: ${point.broken_rule}` : words(point.fit_verdict), seconds(point.step_time_s), percent(point.mfu_frac), gib(point.hbm_bytes_per_device), usd(point.usd_per_billion_tokens), point.bound ? words(point.bound) : '–']));
  return [
    h('p', { class: 'actions' }, select, priced ? null : h('span', { class: 'soft' }, ' A price of a chip hour adds dollars.')),
    place,
    legend({ 'swatch-own': 'the plan as it is', 'swatch-fits': 'fits', 'swatch-tight-dot': 'tight', 'swatch-not': 'does not fit' }),
    valuesTable(table('The plan at other sizes', [{ title: 'Scale' }, { title: 'Value' }, { title: 'Fit' }, { title: 'Step time', number: true }, { title: 'MFU', number: true }, { title: 'HBM', number: true }, { title: '$ per B tokens', number: true }, { title: 'Bound by' }], rows)),
    tornado(plan.sensitivities),
  ].flat();
}
