// Where the step's time goes: the exposed parts, which add up to the step, and how busy each resource is, hidden work included.

import { linkRows, stackedBars, swatch } from './bar.js';
import { h, table } from './dom.js';
import { percent, plural, resource, seconds, secondsLike, secondsRange, words } from './format.js';

const SMALL = 1e-9;
const GREY = 7; // resources are not parts: no letter, one colour

// Largest exposed part first, then what is wholly hidden; the index is the part's letter everywhere.
export function orderParts(parts) {
  return [...parts]
    .sort((a, b) => b.exposed_seconds - a.exposed_seconds || b.seconds - a.seconds)
    .map((part, index) => ({ ...part, index, hidden_seconds: Math.max(0, part.seconds - part.exposed_seconds) }));
}

// [{resource, exposed, hidden}], busiest first.
export function byResource(parts) {
  const found = new Map();
  for (const part of parts) {
    const row = found.get(part.resource) ?? { resource: part.resource, exposed: 0, hidden: 0 };
    row.exposed += part.exposed_seconds;
    row.hidden += part.hidden_seconds;
    found.set(part.resource, row);
  }
  return [...found.values()].sort((a, b) => b.exposed + b.hidden - a.exposed - a.hidden);
}

function exposedTable(parts, step) {
  const exposed = parts.filter((part) => part.exposed_seconds > SMALL);
  const total = exposed.reduce((all, part) => all + part.exposed_seconds, 0);
  return table(
    'Exposed parts of the step, adding up to the step time',
    [
      { title: 'Part' },
      { title: 'Resource' },
      { title: 'Exposed', number: true },
      { title: 'Of step', number: true },
    ],
    exposed.map((part) => [
      [swatch(part.index), ' ', words(part.name)],
      words(part.resource),
      secondsLike(part.exposed_seconds, step),
      percent(part.exposed_seconds / step),
    ]),
    { footer: ['Step', '', secondsLike(total, step), percent(total / step)] },
  );
}

function hiddenTable(parts, step) {
  const hidden = parts
    .filter((part) => part.hidden_seconds > SMALL)
    .sort((a, b) => b.hidden_seconds - a.hidden_seconds);
  if (!hidden.length) return null;
  return h(
    'details',
    null,
    h('summary', null, `Hidden behind other work: ${plural(hidden.length, 'part', 'parts')}`),
    table(
      'Parts hidden behind other work; they add nothing to the step',
      [
        { title: 'Part' },
        { title: 'Resource' },
        { title: 'Hidden', number: true },
        { title: 'Of it all', number: true },
      ],
      hidden.map((part) => [
        [swatch(part.index), ' ', words(part.name)],
        words(part.resource),
        secondsLike(part.hidden_seconds, step),
        percent(part.hidden_seconds / part.seconds),
      ]),
    ),
  );
}

export function timeBar(estimate) {
  const parts = orderParts(estimate.time_parts ?? []);
  const step = estimate.step_time_s;
  const exposed = parts.filter((part) => part.exposed_seconds > SMALL);
  const busy = byResource(parts);
  const scale = Math.max(step, ...busy.map((row) => row.exposed + row.hidden)) || 1;
  const chart = stackedBars({
    label: `Step time ${seconds(step)}: ${exposed
      .slice(0, 4)
      .map((part) => `${words(part.name)} ${seconds(part.exposed_seconds)}`)
      .join(', ')}. All parts are in the table.`,
    scale: step || 1,
    rows: [
      {
        label: 'Exposed parts',
        parts: exposed.map((part) => ({
          index: part.index,
          value: part.exposed_seconds,
          title: `${words(part.name)}: ${seconds(part.exposed_seconds)}`,
        })),
      },
    ],
  });
  const use = stackedBars({
    label: `Busy time by resource: ${busy.map((row) => `${resource(row.resource)} ${seconds(row.exposed + row.hidden)}, of it hidden ${seconds(row.hidden)}`).join('; ')}.`,
    scale,
    rows: busy.map((row) => ({
      label: `${resource(row.resource)} · exposed ${secondsLike(row.exposed, step)}${row.hidden > SMALL ? `, hidden ${secondsLike(row.hidden, step)}` : ''}`,
      parts: [
        { index: GREY, value: row.exposed, class: 'exposed-part', title: `exposed ${seconds(row.exposed)}` },
        { index: GREY, value: row.hidden, class: 'hidden-part', title: `hidden ${seconds(row.hidden)}` },
      ],
    })),
  });
  const list = exposedTable(parts, step);
  linkRows(chart, list.querySelectorAll('tbody tr'));
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h3', null, 'Step time'),
      h(
        'p',
        null,
        `${seconds(step)}, 90 % interval ${secondsRange(estimate.step_time_low_s, estimate.step_time_high_s, estimate.step_time_s)}, decided by ${resource(estimate.bound)}`,
      ),
    ),
    chart,
    h(
      'div',
      { class: 'beside' },
      h('div', null, list, hiddenTable(parts, step)),
      h('div', null, h('h4', { class: 'soft' }, 'Busy time by resource (hidden part pale)'), use),
    ),
  );
}
