// Memory by part at the step's moments, against the limit and its uncertainty; the host's memory; what one more sequence would need.

import { max, scaleLinear, sum } from 'd3';
import { post } from '../api.js';
import { h, table } from '../dom.js';
import { gib, percent, probability, sequences, words } from '../format.js';
import { fitting, leftAxis } from './axes.js';
import { frame, legend, valuesTable } from './frame.js';
import { planData, requestOf } from './plan_data.js';

const GIB = 1024 ** 3;
const MOMENTS = [
  ['loss', 'at the loss'],
  ['backward', 'in the backward pass'],
  ['update', 'at the update'],
];
const COLOURS = 8;

// The name with its size where both fit.
function label(part, room) {
  const whole = `${words(part.name)} ${gib(part.bytes)}`;
  return fitting(whole, room) === whole ? whole : fitting(words(part.name), room);
}

// Parts of each moment, those that are always there first. They add up to the moment's peak. Null where a part's size is not known.
export function momentsOf(estimate) {
  if (!estimate.hbm_parts?.length || !estimate.hbm_parts.every((part) => part.bytes >= 0 && Number.isFinite(part.bytes))) return null;
  return MOMENTS.map(([at, name]) => {
    const always = estimate.hbm_parts.filter((part) => part.at === 'always');
    const parts = [...always, ...estimate.hbm_parts.filter((part) => part.at === at)];
    return { at, name, parts, bytes: sum(parts, (part) => part.bytes), peak: estimate[`hbm_${at}_peak_bytes_per_device`] };
  });
}

// A sequence more per device; below one, twice as much of one.
const nextBatch = (batch) => (batch >= 1 ? Math.floor(batch) + 1 : batch * 2);

async function larger(plan) {
  const batch = nextBatch(Number(plan.config?.per_device_batch_size ?? 1));
  try {
    const estimate = await post('/v1/estimate', requestOf(plan, { config: { ...plan.config, per_device_batch_size: batch } }));
    return { batch, estimate };
  } catch (error) {
    return { batch, refused: error.errors?.[0]?.detail ?? error.detail ?? error.message };
  }
}

// What is left of the limit; less than a tenth of a GiB is none.
function roomOf(left) {
  if (Math.abs(left) < 0.05 * 2 ** 30) return 'just the limit';
  return left > 0 ? `${gib(left)} under the limit` : `${gib(-left)} too much`;
}

function nextSentence(next) {
  if (next.refused) return `${sequences(next.batch)} per device ${next.batch === 1 ? 'is' : 'are'} not possible: ${next.refused}`;
  const { estimate } = next;
  if (![estimate.hbm_limit_bytes_per_device, estimate.hbm_bytes_per_device, estimate.fit_probability].every(Number.isFinite)) return `What ${sequences(next.batch)} per device would need is not known.`;
  const left = estimate.hbm_limit_bytes_per_device - estimate.hbm_bytes_per_device;
  return `With ${sequences(next.batch)} per device (dotted) it needs ${gib(estimate.hbm_bytes_per_device)}: ${roomOf(left)}; it fits with a probability of ${probability(estimate.fit_probability)}.`;
}

function host(estimate) {
  if (!estimate.host_bytes_per_host) return 'Nothing of the step is kept in the memory of the hosts.';
  const limit = estimate.host_limit_bytes_per_host;
  return `Each host keeps ${gib(estimate.host_bytes_per_host)}${limit ? ` of its ${gib(limit)} (${percent(estimate.host_bytes_per_host / limit)})` : ''}.`;
}

export async function show(plan) {
  const [estimate, next] = await Promise.all([planData(plan), larger(plan)]);
  const moments = momentsOf(estimate);
  const limit = estimate.hbm_limit_bytes_per_device;
  if (!moments || !(limit > 0)) return null;
  const names = [...new Set(moments.flatMap((moment) => moment.parts.map((part) => part.name)))];
  const colour = (name) => `part-${names.indexOf(name) % COLOURS}${names.indexOf(name) >= COLOURS ? ' second-round' : ''}`;
  const spread = [estimate.hbm_low_bytes_per_device, estimate.hbm_high_bytes_per_device].map((bytes) => (bytes > 0 ? bytes / estimate.hbm_bytes_per_device : Number.NaN));
  const after = next.estimate ? momentsOf(next.estimate) : null;
  const most = max([limit, ...moments.map((moment) => moment.bytes * (spread[1] || 1)), ...(after ?? []).map((moment) => moment.bytes)]) * 1.06;

  const draw = ({ svg, width, height }) => {
    const [left, top, bottom] = [46, 22, height - 24];
    const y = scaleLinear([0, most / GIB], [bottom, top]);
    const column = (width - left - 8) / moments.length;
    const py = (bytes) => y(bytes / GIB);
    leftAxis(svg, y, { x: left, title: 'HBM per device, GiB', grid: width - left });
    svg.append('rect').attr('class', 'zone-over').attr('x', left).attr('width', width - left).attr('y', top).attr('height', Math.max(0, py(limit) - top));
    const items = moments.flatMap((moment, index) => {
      const x0 = left + index * column + column * 0.16;
      const wide = column * 0.56;
      let under = 0;
      svg.append('text').attr('class', 'moment-name').attr('x', x0 + wide / 2).attr('y', height - 7).attr('text-anchor', 'middle').text(fitting(moment.name, column));
      const bars = moment.parts.map((part) => {
        const [y0, y1] = [py(under + part.bytes), py(under)];
        under += part.bytes;
        svg.append('rect').attr('class', `block ${colour(part.name)}`).attr('x', x0).attr('width', wide).attr('y', y0).attr('height', Math.max(0.5, y1 - y0 - 0.5));
        if (y1 - y0 > 15) svg.append('text').attr('class', 'block-name').attr('x', x0 + 5).attr('y', (y0 + y1) / 2 + 4).text(label(part, wide - 8));
        return { x: x0 + wide / 2, y: (y0 + y1) / 2, box: [x0, y0, x0 + wide, Math.max(y1, y0 + 2)], text: `${words(part.name)}, ${moment.name}: ${gib(part.bytes)} of ${gib(moment.bytes)}` };
      });
      const bar = x0 + wide + column * 0.06;
      const [low, high] = spread.map((frac) => py(frac * moment.bytes));
      if (Number.isFinite(low) && Number.isFinite(high)) svg.append('path').attr('class', 'spread').attr('d', `M${bar - 4},${low}h8M${bar - 4},${high}h8M${bar},${low}V${high}`);
      if (Number.isFinite(low) && Number.isFinite(high)) bars.push({ x: bar, y: (low + high) / 2, box: [bar - 5, high, bar + 5, low], text: `The peak ${moment.name}: ${gib(moment.bytes)}, with 90 % between ${gib(spread[0] * moment.bytes)} and ${gib(spread[1] * moment.bytes)}` });
      if (after) {
        const ahead = after[index];
        svg.append('rect').attr('class', 'next').attr('x', x0 - 3).attr('width', wide + 6).attr('y', py(ahead.bytes)).attr('height', bottom - py(ahead.bytes));
        bars.push({ x: x0 + wide / 2, y: py(ahead.bytes), text: `With ${sequences(next.batch)} per device, ${moment.name}: ${gib(ahead.bytes)}` });
      }
      return bars;
    });
    svg.append('line').attr('class', 'limit').attr('x1', left).attr('x2', width).attr('y1', py(limit)).attr('y2', py(limit));
    svg.append('text').attr('class', 'limit-name').attr('x', width - 2).attr('y', py(limit) - 5).attr('text-anchor', 'end').text(`limit ${gib(limit)}`);
    return items;
  };
  const rows = names.map((name) => [words(name), ...moments.map((moment) => {
    const bytes = sum(moment.parts.filter((part) => part.name === name), (part) => part.bytes);
    return bytes ? gib(bytes) : '–';
  })]);
  const picture = frame({
    label: 'Memory of a device at three moments of the step, by part, against the limit.',
    height: (width) => Math.min(400, Math.max(320, width * 0.45)),
    hint: 'Point at a part for its size.',
    draw,
    more: [
      h('p', null, nextSentence(next)),
      h('p', null, host(estimate)),
      legend(Object.fromEntries(names.map((name) => [colour(name), words(name)]))),
      valuesTable(table('Memory by part and moment', [{ title: 'Part' }, ...moments.map((moment) => ({ title: moment.name, number: true }))], rows, { footer: ['Together', ...moments.map((moment) => gib(moment.bytes))] })),
    ],
  });
  return picture.place;
}
